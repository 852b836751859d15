/* Reads matrices and vectors from text in memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MTX_READ_H
#define MTX_READ_H

#include <spmv/io.h>

#include "runtime.h"

/* As spmv_matrix_read, spmv_vector_read and spmv_vectors_read, for size bytes at text (not NULL)
 * instead of a file. name: for messages. max_bytes: as in spmv_read_options. */
spmv_status matrix_read_memory(spmv_context *ctx, const char *name, const char *text, int64_t size,
                               const spmv_read_options *options, spmv_matrix **matrix, spmv_read_info *info,
                               size_t info_size);
spmv_status vector_read_memory(spmv_context *ctx, const char *name, const char *text, int64_t size, spmv_type type,
                               int64_t max_bytes, void **host_values, int64_t *n);
spmv_status vectors_read_memory(spmv_context *ctx, const char *name, const char *text, int64_t size, spmv_type type,
                                int64_t max_bytes, void **host_values, int64_t *n, int64_t *k);

#endif
