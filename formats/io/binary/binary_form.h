/* The binary form of a matrix: its CSR arrays as in memory, after a head of 128 bytes.
 * docs/binary-form.md describes it byte by byte.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BINARY_FORM_H
#define BINARY_FORM_H

#include <spmv/io.h>

#include "core/runtime.h"

/* Whether the file opened as fd begins with the magic number of the binary form. */
bool binary_form_begins(int fd);

/* Maps the file and uses its arrays in place. If another type of values is requested, all arrays
 * are copied, into at most max_bytes of memory (the map does not count). type SPMV_TYPE_DEFAULT:
 * c128 for complex values, else f64. Checks everything: checksums, row offsets, columns. Errors:
 * SPMV_ERROR_FORMAT, SPMV_ERROR_UNSUPPORTED (a later version, a big-endian machine),
 * SPMV_ERROR_READ, SPMV_ERROR_LIMIT, SPMV_ERROR_MEMORY, SPMV_ERROR_TYPE (complex values as real
 * ones). */
spmv_status binary_form_read(spmv_context *ctx, const char *name, int fd, spmv_type type, int64_t max_bytes,
                             spmv_matrix **matrix, int64_t *bytes);

/* The checksums of the tiles (checksum.h) that begin in the rows of one rank: of row offsets,
 * columns and values. want: those of the whole arrays. */
struct binary_sums {
    uint64_t want[3], *sum[3];
    int64_t tiles[3];
};

/* Copies the rows of rank number rank of ranks, which have about equal shares of rows and entries.
 * Reads those parts of the file only. The checksums are right if checksum_join of the sums of all
 * ranks gives sums->want for each array. Call binary_sums_free in any case. Errors: as
 * binary_form_read. */
spmv_status binary_form_read_rows(spmv_context *ctx, const char *name, int fd, spmv_type type, int rank, int ranks,
                                  struct binary_sums *sums, spmv_matrix **matrix);
void binary_sums_free(struct binary_sums *sums);

/* As binary_form_read, for bytes in memory that stay valid (aligned to 64). */
spmv_status binary_form_read_memory(spmv_context *ctx, const char *name, const void *memory, int64_t bytes,
                                    spmv_type type, spmv_matrix **matrix);

/* As spmv_matrix_write. a has been checked: f32, f64, complex or a pattern. more: bytes to append
 * at the file's end, which readers of the form ignore. SPMV_ERROR_UNSUPPORTED if columns do not
 * ascend in each row. */
spmv_status binary_form_write_with(spmv_context *ctx, const spmv_csr *a, const char *path, const void *more,
                                   int64_t more_bytes);

/* ---------------------------------------------------------------- shared with the binary form of
 * vectors */

/* Whether this machine is little-endian. */
bool binary_form_possible(void);

/* SPMV_ERROR_TYPE if complex numbers are to be read as real ones. */
spmv_status binary_type_check(spmv_context *ctx, const char *name, spmv_type from_type, spmv_type type);

/* Converts n numbers to another type. Each part is rounded once; missing imaginary parts become 0.
 * SPMV_ERROR_LIMIT if a finite number would become infinite. */
spmv_status binary_values(spmv_context *ctx, const char *name, spmv_type from_type, const void *from, int64_t n,
                          spmv_type type, void *to);

#endif
