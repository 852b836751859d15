/* The binary form of vectors: their numbers, row by row, behind a head of 64 bytes.
 * docs/binary-form.md describes it byte by byte.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BINARY_VECTOR_H
#define BINARY_VECTOR_H

#include <spmv/io.h>

#include "runtime.h"

/* Whether the file opened as fd begins as one. */
bool binary_vector_begins(int fd);

/* Reads it: rows of cols numbers of the type, whatever type they have in the file (real ones as complex, too), into
 * memory for host_free. max_bytes: that they may take. Errors: SPMV_ERROR_FORMAT, SPMV_ERROR_UNSUPPORTED (a later
 * version, a big-endian machine), SPMV_ERROR_READ, SPMV_ERROR_LIMIT, SPMV_ERROR_MEMORY, SPMV_ERROR_TYPE (complex
 * numbers as real ones). */
spmv_status binary_vector_read(spmv_context *ctx, const char *name, int fd, spmv_type type, int64_t max_bytes,
                               void **values, int64_t *rows, int64_t *cols);

/* The same over bytes that are in memory. */
spmv_status binary_vector_read_memory(spmv_context *ctx, const char *name, const void *memory, int64_t bytes,
                                      spmv_type type, int64_t max_bytes, void **values, int64_t *rows, int64_t *cols);

/* As spmv_vectors_write, whose arguments have been checked. */
spmv_status binary_vector_write(spmv_context *ctx, const char *path, spmv_type type, const void *values, int64_t rows,
                                int64_t cols);

#endif
