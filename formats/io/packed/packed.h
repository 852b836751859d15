/* Reads compressed texts, and members of archives, without temporary files or other programs.
 * libarchive is opened when the first such text is read.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PACKED_H
#define PACKED_H

#include "core/runtime.h"
#include "formats/io/packed/compressions.h"

/* Number of bytes that packed_begins needs. */
enum { PACKED_HEAD = 512 };

/* The first bytes of a text, which are read to determine its form and then given to the reader. */
struct packed_head {
    char byte[PACKED_HEAD];
    int64_t bytes, given;
};

/* Gives up to bytes bytes of the head; returns their number, 0 if all are given. */
static inline int64_t packed_head_give(struct packed_head *head, char *to, int64_t bytes)
{
    const int64_t n = min_i64(bytes, head->bytes - head->given);
    memcpy(to, head->byte + head->given, (size_t)n);
    head->given += n;
    return n;
}

/* Whether a file that begins with these bytes is compressed or an archive. */
bool packed_begins(const char *head, int64_t bytes);

/* The source of packed bytes. read returns up to bytes > 0 bytes: their number, 0 at the end, -1
 * after an error (*failed is the status; the context has the message). */
struct packed_input {
    void *user;
    int64_t (*read)(void *user, char *to, int64_t bytes, spmv_status *failed);
    bool (*rewind)(void *user); /* goes back to the first byte; NULL or false: not possible */
};

struct packed_limits {
    int64_t bytes; /* limit of the unpacked text */
    int64_t ratio; /* limit of unpacked text / packed bytes */
};

struct packed;

/* Opens the text, or a member of the archive: the one named member or (NULL) the archive's matrix.
 * name: of the file, for messages and for the rule that finds the matrix of ldoor.tar.gz. The
 * structs passed must outlive the result. Call packed_close also after an error. Errors:
 * SPMV_ERROR_UNSUPPORTED (no libarchive), SPMV_ERROR_OPEN (no such member), SPMV_ERROR_FORMAT
 * (damaged), SPMV_ERROR_MEMORY and those of the input. */
spmv_status packed_open(spmv_context *ctx, const char *name, const char *member, const struct packed_input *input,
                        const struct packed_limits *limits, struct packed **packed);
void packed_close(struct packed *packed);

/* Reads up to bytes > 0 bytes of text; *got is 0 at the end. Errors: SPMV_ERROR_FORMAT (damaged),
 * SPMV_ERROR_LIMIT, those of the input. */
spmv_status packed_read(struct packed *packed, char *to, int64_t bytes, int64_t *got);

/* The number of packed bytes read so far. */
int64_t packed_taken(const struct packed *packed);

/* The form of an open text: "gz", "tar.gz" ... */
const char *packed_form_of(const struct packed *packed);

/* Compresses the text, as a portion that other portions may follow. Release *to with host_free. The
 * same text gives the same bytes. Any thread may call. False: no libarchive, or out of memory. */
bool packed_pack(enum compression compression, const char *text, int64_t bytes, char **to, int64_t *to_bytes);

/* SPMV_OK if this machine's libarchive has the compression; otherwise an error with a message. */
spmv_status packed_can_pack(spmv_context *ctx, const char *name, enum compression compression);

/* SPMV_OK if this build and this machine can unpack and pack; otherwise an error with a message. */
spmv_status packed_available(spmv_context *ctx, const char *name);

#endif
