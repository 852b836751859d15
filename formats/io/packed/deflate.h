/* Deflated blocks within other files: members of zip archives, variables of MATLAB files.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEFLATE_H
#define DEFLATE_H

#include "core/runtime.h"

/* Unpacks n bytes by zlib, which is opened at run time. raw: as in a zip archive, without zlib's head and checksum.
 * *to: *to_bytes bytes (host_free). what: its name in messages. Errors: SPMV_ERROR_FORMAT (damaged, truncated),
 * SPMV_ERROR_MEMORY (more than most bytes), SPMV_ERROR_UNSUPPORTED (no zlib). */
spmv_status deflate_unpack(spmv_context *ctx, const char *what, const void *from, int64_t n, bool raw, int64_t most,
                           void **to, int64_t *to_bytes);

/* The checksum of zip archives, of bytes after those with this sum (0 for none). */
uint32_t crc32_of(uint32_t sum, const void *bytes, int64_t n);

#endif
