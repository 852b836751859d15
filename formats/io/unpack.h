/* What is compressed, undone: gzip by zlib, xz, zstd and bzip2 by libarchive, any number of times. Every checksum is
 * compared, of gzip those of each piece.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNPACK_H
#define UNPACK_H

#include "packed.h"

struct unpack;

/* Opens the bytes of the input. name: in sentences. The structs that are pointed to must live as long. unpack_close in
 * any case. Errors: SPMV_ERROR_FORMAT (damaged), SPMV_ERROR_LIMIT, SPMV_ERROR_MEMORY, SPMV_ERROR_UNSUPPORTED and those
 * of the input. */
spmv_status unpack_open(spmv_context *ctx, const char *name, const struct packed_input *input,
                        const struct packed_limits *limits, struct unpack **unpack);
void unpack_close(struct unpack *unpack);

/* Up to bytes > 0 bytes; *got 0: their end. The limit of the ratio holds for them. */
spmv_status unpack_read(struct unpack *unpack, char *to, int64_t bytes, int64_t *got);

/* The first of them, at most PACKED_HEAD, whether read or not. */
const char *unpack_head(const struct unpack *unpack, int64_t *bytes);

/* Packed bytes taken from the input. */
int64_t unpack_taken(const struct unpack *unpack);

/* "gz", "xz" ..., the outermost; "": not compressed. */
const char *unpack_form(const struct unpack *unpack);

#endif
