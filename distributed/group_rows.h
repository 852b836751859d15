/* The rows of a rank where they are used: on a GPU, in its memory (group_rows.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GROUP_ROWS_H
#define GROUP_ROWS_H

#include <spmv/matrix.h>

#include "core/host_device_fn.h"
#include "core/runtime.h"

typedef struct spmv_group_matrix spmv_group_matrix;

/* The columns [begin, end) that a rank owns. */
struct group_columns {
    int64_t begin, end;
};

/* The block of a rank's own columns, which are numbers first to first + rows - 1 in a vector with room; or
 * only its diagonal. */
struct group_block {
    int64_t first, rows;
    bool diagonal;
};

/* A matrix in the context's memory. */
struct group_arrays {
    void *row_ptr;
    int32_t *col;
    void *val; /* NULL: a pattern */
};

/* Allocates the arrays of own rows, m->there. */
spmv_status group_rows_allocate(spmv_group_matrix *m, int64_t rows, int64_t nnz, spmv_type type, bool pattern);

/* Stores the offsets of own rows from number `first` on, n of them, which are `shift` less in `from`. */
spmv_status group_rows_put_offsets(spmv_group_matrix *m, const void *from, int from_bits, int64_t shift, int64_t first,
                                   int64_t n);

/* Counts the entries of each chunk whose columns other ranks own, sets m->edge, and lists the columns:
 * *ghosts ascends strictly, in host memory, for host_free. */
spmv_status group_rows_ghosts(spmv_group_matrix *m, struct group_columns own, int32_t **ghosts, int64_t *count);

/* Replaces the columns of the whole matrix by places in a vector with room. */
spmv_status group_rows_renumber(spmv_group_matrix *m, struct group_columns own);

/* Copies the rows to m->own, if they are not there yet: for what reads them on the host. */
spmv_status group_rows_to_host(spmv_group_matrix *m);

/* Releases that copy. */
void group_rows_leave_host(spmv_group_matrix *m);

/* Moves renumbered rows in host memory to m->there. */
spmv_status group_rows_to_context(spmv_group_matrix *m);

/* *block: own columns of own rows, or their diagonal entries, in the context's memory. */
spmv_status group_rows_block(spmv_group_matrix *m, bool diagonal, struct group_arrays *arrays, spmv_csr *block);

void group_arrays_release(spmv_context *ctx, struct group_arrays *arrays);

/* `count` spans of entries: span i has bound[i] to bound[i + 1] - 1; bound NULL: equal parts of so many entries. */
struct group_spans {
    int64_t *bound; /* in the context's memory */
    int64_t entries, count;
};

/* Where the i-th of so many nearly equal parts of entries first to end - 1 begins. */
HOST_DEVICE_FN int64_t group_span_begin(int64_t first, int64_t end, int64_t count, int64_t i)
{
    const int64_t entries = end - first, rest = entries % count;
    return first + entries / count * i + (i < rest ? i : rest);
}

/* The kernels (group_rows_cuda.cu). Arrays are in the context's memory.
 *   shift      to[i] = from[i] + shift, 0 <= i < n
 *   count      counts[i] = the entries of span i whose columns others own
 *   list       these columns; those of span i from begins[i] on, in any order
 *   flag       flags[i] = whether sorted[i] differs from the number before
 *   renumber   columns become places; ghosts: count columns of others, the first `before` of lower ranks
 *   count_block, fill_block   the entries of a block in each row; the block */
spmv_status group_shift_offsets_cuda(spmv_context *ctx, const void *from, int from_bits, int64_t shift, void *to,
                                     int to_bits, int64_t n) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_count_ghosts_cuda(spmv_context *ctx, const int32_t *col, const struct group_spans *spans,
                                    struct group_columns own, int64_t *counts) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_list_ghosts_cuda(spmv_context *ctx, const int32_t *col, const struct group_spans *spans,
                                   struct group_columns own, const int64_t *begins, int32_t *list)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_flag_first_cuda(spmv_context *ctx, const int32_t *sorted, uint8_t *flags, int64_t n)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_renumber_cuda(spmv_context *ctx, int32_t *col, int64_t nnz, struct group_columns own,
                                const int32_t *ghosts, int64_t before, int64_t count, int64_t room)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_count_block_cuda(spmv_context *ctx, const spmv_csr *a, struct group_block b, int32_t *counts)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_fill_block_cuda(spmv_context *ctx, const spmv_csr *a, struct group_block b, const int64_t *offsets,
                                  int32_t *col, void *val) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
