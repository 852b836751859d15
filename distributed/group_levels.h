/* Levels of a hierarchy over ranks (group_levels.c, group_level_rows.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GROUP_LEVELS_H
#define GROUP_LEVELS_H

#include "distributed/group_internal.h"
#include "solvers/exchange/rank_tools.h"

/* A halo, with a matrix of the group that has no rows of its own: only what an exchange needs. */
struct level {
    struct rank_halo halo; /* the first member */
    spmv_group_matrix m;
    spmv_group_matrix *first;                /* whose list has it */
    bool has_matrix;                         /* of the columns of `first` */
    bool opened;                             /* the exchange of vectors */
    struct transport_parcel *send, *receive; /* of set-ups */
};

static inline struct level *group_level_of(const struct rank_halo *halo)
{
    return (struct level *)(uintptr_t)halo;
}

/* Sends packed elements of `size` bytes, in host memory. arrived: those of other ranks, in order. sent,
 * received: NULL, or the elements of each parcel. */
spmv_status group_level_swap(struct level *l, const void *packed, const int64_t *sent, void *arrived,
                             const int64_t *received, int64_t size);

/* Whether ranks may copy from each other's GPUs; the same on all. */
bool group_level_is_near(const struct level *l);

/* The same from and to memory of GPUs, if they are near: front, behind: where elements of lower and of higher ranks go.
 * *moved: false: a GPU refused, so nothing has arrived, and GPUs are no longer near. */
spmv_status group_level_swap_near(struct level *l, const void *packed, const int64_t *sent, void *front, void *behind,
                                  const int64_t *received, int64_t size, bool *moved);

/* The way back, from those who need elements to those who own them: others has before + after elements,
 * arrived one for each that this rank sends. */
spmv_status group_level_swap_back(struct level *l, const void *others, void *arrived, int64_t size);

/* See struct rank_tools. */
spmv_status group_fetch_rows(const struct rank_halo *halo, const spmv_csr *own, struct rank_arrays *all);
spmv_status group_fetch_others(const struct rank_halo *halo, const spmv_csr *own, const uint8_t *wanted,
                               struct rank_arrays *others);
spmv_status group_transpose(void *matrix, const int64_t *row_of_rank, const int64_t *col_of_rank, const spmv_csr *own,
                            struct rank_arrays *to);

/* ------------------------------------------------------------- kernels (group_levels_cuda.cu)
 *
 * Arrays are in the context's memory. Words have 4 bytes. */

/* Copies from the memory of another GPU of this process, or of the same one; the context's number of its GPU. A GPU
 * that refuses leaves the context usable. */
spmv_status group_copy_near_cuda(spmv_context *ctx, const void *from, int device, void *to, int64_t bytes)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
int group_device_cuda(const spmv_context *ctx) CUDA_ONLY(0);

/* Some elements of an array, or rows of a matrix. */
struct group_elements {
    const int32_t *index;
    int64_t count;
    int words; /* of an element */
};

/* packed_i = element index_i; the way back. */
spmv_status group_take_elements_cuda(spmv_context *ctx, const struct group_elements *e, const void *array, void *packed)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_put_elements_cuda(spmv_context *ctx, const struct group_elements *e, const void *packed, void *array)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* length_i = entries of row index_i; bits: of an offset. The entries of these rows, of an array, one row after the
 * other: those of row index_i at places begin_i to begin_(i + 1) - 1, or none of them. */
spmv_status group_row_lengths_cuda(spmv_context *ctx, const struct group_elements *e, const void *row_ptr, int bits,
                                   int64_t *length) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_take_rows_cuda(spmv_context *ctx, const struct group_elements *e, const void *row_ptr, int bits,
                                 const int64_t *begin, const void *array, void *packed) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Entries of own rows: those whose columns `first` to `end` - 1 this rank owns, and the others. */
struct group_split {
    spmv_csr own;
    int64_t first, end;
    int64_t first_row;          /* the number of row 0 in the whole matrix */
    int64_t *kept, *left;       /* rows + 1: entries of each row; then where they begin */
    int32_t *col;               /* kept, counted from `first` */
    void *val;                  /* kept */
    int32_t *row_out, *col_out; /* left, with numbers in the whole matrix */
    void *val_out;
};

spmv_status group_split_count_cuda(spmv_context *ctx, const struct group_split *s) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_split_fill_cuda(spmv_context *ctx, const struct group_split *s) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
