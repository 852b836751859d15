/* Unpacks compressed bytes: gzip by zlib, others by libarchive; any number of times.
 * Every checksum is verified, for gzip that of each member.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNPACK_H
#define UNPACK_H

#include "formats/io/packed/packed.h"

struct unpack;

/* Opens the input. name: for messages. The structs passed must outlive the result. Call
 * unpack_close also after an error. Errors: SPMV_ERROR_FORMAT (damaged), SPMV_ERROR_LIMIT,
 * SPMV_ERROR_MEMORY, SPMV_ERROR_UNSUPPORTED and those of the input. */
spmv_status unpack_open(spmv_context *ctx, const char *name, const struct packed_input *input,
                        const struct packed_limits *limits, struct unpack **unpack);
void unpack_close(struct unpack *unpack);

/* Reads up to bytes > 0 unpacked bytes; *got is 0 at the end. Enforces the limit of the ratio. */
spmv_status unpack_read(struct unpack *unpack, char *to, int64_t bytes, int64_t *got);

/* The first unpacked bytes, at most PACKED_HEAD, whether read or not. */
const char *unpack_head(const struct unpack *unpack, int64_t *bytes);

/* The number of packed bytes taken from the input. */
int64_t unpack_taken(const struct unpack *unpack);

/* The outermost compression: "gz", "xz" ...; "": not compressed. */
const char *unpack_form(const struct unpack *unpack);

#endif
