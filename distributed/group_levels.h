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
    spmv_group_matrix *first; /* whose list has it */
    bool has_matrix;          /* of the columns of `first` */
    bool opened;              /* the exchange of vectors */
    /* on cuda: the ranks of m with all chunks of its rows, for tiles; m has only one chunk there */
    struct plan_ranks packed;
    int64_t *chunk, *chunk_entry;
    struct transport_parcel *send, *receive; /* of set-ups */
    int64_t *offset;                         /* ranks: the same between GPUs that are near (near.h) */
    struct near_parcel *near;                /* ranks */
    /* in the context's memory, once needed: places of rows whose offsets the host reads (struct near_counts) */
    int32_t *bounds;
};

static inline struct level *group_level_of(const struct rank_halo *halo)
{
    return (struct level *)(uintptr_t)halo;
}

/* Sends packed elements of `size` bytes, in host memory. arrived: those of other ranks, in order. sent,
 * received: NULL, or the elements of each parcel. */
spmv_status group_level_swap(struct level *l, const void *packed, const int64_t *sent, void *arrived,
                             const int64_t *received, int64_t size);

/* The same with elements in memory of near_lend. front, behind: where those of lower and of higher ranks go, in the
 * context's memory. *moved: see near_swap. The way back, likewise. */
spmv_status group_level_swap_near(struct level *l, const int64_t *sent, void *front, void *behind,
                                  const int64_t *received, int64_t size, bool *moved);
spmv_status group_level_swap_back_near(struct level *l, void *arrived, int64_t size, bool *moved);

/* Copies n elements within the context's memory. */
spmv_status group_level_copy(spmv_context *ctx, const void *from, int64_t size, int64_t n, void *to);

/* The way back, from those who need elements to those who own them: others has before + after elements,
 * arrived one for each that this rank sends. */
spmv_status group_level_swap_back(struct level *l, const void *others, void *arrived, int64_t size);

/* See struct rank_tools. */
spmv_status group_fetch_rows(const struct rank_halo *halo, const spmv_csr *own, struct rank_arrays *all);
spmv_status group_fetch_others(const struct rank_halo *halo, const spmv_csr *own, const int32_t *needed, int64_t needs,
                               struct rank_arrays *others);
spmv_status group_fetch_places(const struct rank_halo *halo, const struct rank_places *rows, bool *fits);
spmv_status group_fetch_columns(void *matrix, const int64_t *row_of_rank, const int64_t *col_of_rank,
                                const spmv_csr *own, int64_t *left, struct rank_entries *others);
spmv_status group_transpose(void *matrix, const int64_t *row_of_rank, const int64_t *col_of_rank, const spmv_csr *own,
                            struct rank_arrays *to);

/* ------------------------------------------------------------- kernels (group_levels_cuda.cu)
 *
 * Arrays are in the context's memory. Words have 4 bytes. */

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

/* length_i = entries of row index_i, or with index NULL of row i; bits: of an offset. The entries of these rows, of an
 * array, one row after the other: those of row index_i at places begin_i to begin_(i + 1) - 1, or none of them. */
spmv_status group_row_lengths_cuda(spmv_context *ctx, const struct group_elements *e, const void *row_ptr, int bits,
                                   int64_t *length) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_take_rows_cuda(spmv_context *ctx, const struct group_elements *e, const void *row_ptr, int bits,
                                 const int64_t *begin, const void *array, void *packed) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* The same of rows with places: length_i, and *missing = 1 if one is not there; their entries. Then the places of
 * ghosts, whose entries begin at begin_g, counted from `first` on. */
spmv_status group_place_lengths_cuda(spmv_context *ctx, const struct group_elements *e, const uint64_t *place,
                                     int64_t *length, int64_t *missing) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_take_places_cuda(spmv_context *ctx, const struct group_elements *e, const uint64_t *place,
                                   const int64_t *begin, const void *array, void *packed)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_put_places_cuda(spmv_context *ctx, const struct rank_halo *halo, const int64_t *begin, int64_t first,
                                  uint64_t *place) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* wanted_g = 1 for the ghosts g among `count` places, others are left; length_i = 0 where asked_i is 0. */
spmv_status group_want_rows_cuda(spmv_context *ctx, const struct rank_halo *halo, const int32_t *place, int64_t count,
                                 int32_t *wanted) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_drop_rows_cuda(spmv_context *ctx, const int32_t *asked, int64_t count, int64_t *length)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Columns as places become numbers in the whole vector; all->col become places, and values of columns that have none
 * become 0. ghost: halo->there. */
spmv_status group_find_numbers_cuda(spmv_context *ctx, const struct rank_halo *halo, const int32_t *ghost, int32_t *col,
                                    int64_t count) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_find_places_cuda(spmv_context *ctx, const struct rank_halo *halo, const int32_t *ghost,
                                   const struct rank_arrays *all, spmv_type type) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

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

/* The second kind alone, in any order. *count: in the GPU's memory; how many are added to it. */
spmv_status group_count_left_cuda(spmv_context *ctx, const struct group_split *s, int64_t *count)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_list_left_cuda(spmv_context *ctx, const struct group_split *s, int64_t *count)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* owner_k = the rank that has col_k, where rank r has columns first_r to first_(r + 1) - 1; begin_r = how many of
 * these sorted owners are below r, 0 <= r <= ranks. */
spmv_status group_find_owners_cuda(spmv_context *ctx, const int64_t *first, int ranks, const int32_t *col,
                                   int64_t count, int32_t *owner) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status group_count_owners_cuda(spmv_context *ctx, const int32_t *owner, int64_t count, int ranks, int64_t *begin)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
