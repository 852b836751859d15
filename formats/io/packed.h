/* Texts that are compressed, or members of an archive, unpacked while they are read: through libarchive, which is
 * opened when the first such text is met. Nothing is ever written to a disk, and no program is started.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PACKED_H
#define PACKED_H

#include "runtime.h"

/* The first bytes that packed_form looks at. */
enum { PACKED_HEAD = 512 };

/* What a file that begins so is: "gz", "xz", "zst", "bz2", "tar"; NULL: none of these. */
const char *packed_form(const char *head, int64_t bytes);

/* Where packed bytes come from: up to bytes > 0 of them; how many, 0 at the end, -1 after an error, of which *failed is
 * the status and the context has the sentence. */
struct packed_input {
    void *user;
    int64_t (*read)(void *user, char *to, int64_t bytes, spmv_status *failed);
    bool (*rewind)(void *user); /* back to the first byte; NULL or false: not possible */
};

struct packed_limits {
    int64_t bytes; /* of unpacked text, at most */
    int64_t ratio; /* of unpacked text to packed bytes, at most */
};

struct packed;

/* Opens the text, or the member of the archive: the one called so, or (NULL) its matrix. name: of the file, in
 * sentences and for the rule that finds the matrix of ldoor.tar.gz. The structs that are pointed to must live as long.
 * packed_close in any case. Errors: SPMV_ERROR_UNSUPPORTED (no libarchive), SPMV_ERROR_OPEN (no such member),
 * SPMV_ERROR_FORMAT (damaged), SPMV_ERROR_MEMORY and those of the input. */
spmv_status packed_open(spmv_context *ctx, const char *name, const char *member, const struct packed_input *input,
                        const struct packed_limits *limits, struct packed **packed);
void packed_close(struct packed *packed);

/* Up to bytes > 0 bytes of text; *got 0: its end. Errors: SPMV_ERROR_FORMAT (damaged), SPMV_ERROR_LIMIT, those of the
 * input. */
spmv_status packed_read(struct packed *packed, char *to, int64_t bytes, int64_t *got);

/* Packed bytes read so far. */
int64_t packed_taken(const struct packed *packed);

/* "gz", "tar.gz" ... of an open text. */
const char *packed_form_of(const struct packed *packed);

/* Compressions that can be written. */
enum packing { PACKING_NONE, PACKING_GZIP, PACKING_XZ, PACKING_ZSTD, PACKING_BZIP2 };

/* The text compressed, as a piece that other pieces may follow; *to is to be released with
 * host_free. The same text gives the same bytes. Any thread. False: no libarchive, or no memory. */
bool packed_pack(enum packing packing, const char *text, int64_t bytes, char **to, int64_t *to_bytes);

/* Whether this machine's libarchive can compress so; the sentence otherwise. */
spmv_status packed_can_pack(spmv_context *ctx, const char *name, enum packing packing);

/* Whether this build and this machine can unpack and pack; the sentence otherwise. */
spmv_status packed_available(spmv_context *ctx, const char *name);

#endif
