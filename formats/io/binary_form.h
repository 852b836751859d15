/* The binary form of a matrix: its CSR arrays as they lie in memory, behind a head of 128 bytes.
 * docs/binary-form.md describes it byte by byte.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BINARY_FORM_H
#define BINARY_FORM_H

#include <spmv/io.h>

#include "runtime.h"

/* Whether the file opened as fd begins as one. */
bool binary_form_begins(int fd);

/* Maps it and uses its arrays where they are; with another type of values than the one wanted all is copied, into
 * max_bytes of memory at most (what is mapped does not count). type SPMV_TYPE_DEFAULT: c128 for complex values, else
 * f64. Everything is checked: sums, row offsets, columns. Errors: SPMV_ERROR_FORMAT, SPMV_ERROR_UNSUPPORTED (a later
 * version, a big-endian machine), SPMV_ERROR_READ, SPMV_ERROR_LIMIT, SPMV_ERROR_MEMORY, SPMV_ERROR_TYPE (complex values
 * as real ones). */
spmv_status binary_form_read(spmv_context *ctx, const char *name, int fd, spmv_type type, int64_t max_bytes,
                             spmv_matrix **matrix, int64_t *bytes);

/* The same over bytes that are in memory and stay there (aligned to 64). */
spmv_status binary_form_read_memory(spmv_context *ctx, const char *name, const void *memory, int64_t bytes,
                                    spmv_type type, spmv_matrix **matrix);

/* As spmv_matrix_write; a has been checked: f32, f64, complex or a pattern. more: so many bytes
 * for the file's end, which no reader of the form looks at. SPMV_ERROR_UNSUPPORTED where columns
 * do not ascend in each row. */
spmv_status binary_form_write_with(spmv_context *ctx, const spmv_csr *a, const char *path, const void *more,
                                   int64_t more_bytes);

/* ---------------------------------------------------------------- shared with the binary form of vectors */

/* Whether this machine is little-endian. */
bool binary_form_possible(void);

/* SPMV_ERROR_TYPE for complex numbers that are to become real ones. */
spmv_status binary_type_check(spmv_context *ctx, const char *name, spmv_type from_type, spmv_type type);

/* n numbers of one type as numbers of another, each part rounded once, imaginary parts that are not there 0.
 * SPMV_ERROR_LIMIT for one that would become infinite. */
spmv_status binary_values(spmv_context *ctx, const char *name, spmv_type from_type, const void *from, int64_t n,
                          spmv_type type, void *to);

#endif
