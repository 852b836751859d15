/* What several ranks do together to make and apply a hierarchy of matrices. distributed/ has the
 * functions, solvers/amg calls them. All are called by all ranks in the same order.
 *
 * A level's rows are numbered through all ranks, each of which has a range of them. Its own rows
 * are a matrix with the columns of the whole level, which a halo renumbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef RANK_TOOLS_H
#define RANK_TOOLS_H

#include <spmv/plan.h>

/* The layout of a vector of a level, for rows that need elements of other ranks: `room` elements
 * in front of the own ones, of which the last `before` are those of lower ranks, and behind them
 * `after` elements of higher ranks. All ascend by their numbers in the whole level, and so do
 * renumbered columns. */
struct rank_halo {
    int64_t room, before, own, after;
    int64_t first;        /* number of the first own element */
    const int32_t *ghost; /* before + after: the numbers of the elements of other ranks; in host memory */
    const int32_t *there; /* the same in the context's memory */
    const int32_t *sent;  /* own elements that other ranks have among theirs; in the context's memory */
    int64_t sent_count;
};

/* Arrays of a matrix in the context's memory, of context_alloc. */
struct rank_arrays {
    int64_t rows, nnz;
    int64_t *row_ptr;
    int32_t *col;
    void *val; /* NULL: a pattern */
};

/* Entries in the context's memory, with their numbers in the whole matrix. */
struct rank_entries {
    int64_t count;
    int32_t *row, *col;
    void *val;
};

/* Rows in any order in an array of entries, in a GPU's memory. The place of a row: its first entry times 2^16, plus
 * the number of its entries; UINT64_MAX: it is not there. */
struct rank_places {
    uint64_t *place; /* in the layout of a halo */
    void *entry;
    int64_t size, room; /* bytes of an entry, a multiple of 4; entries of the array */
    const void *taken;  /* a uint64_t, in the GPU's memory: the entries in use; more than room: some did not fit */
};

/* Own rows, whose columns are those of a vector over ranks. */
struct rank_rows {
    int64_t rows, nnz;
    int64_t others;         /* entries of these that the matrix in products does not have */
    const int64_t *row_ptr; /* in the context's memory, as col; NULL: the halo has all elements of other ranks */
    int32_t *col;
    const int64_t *col_of_rank; /* ranks + 1: the owners of the columns; NULL: each rank has the whole vector */
    int64_t cols;
    const int64_t *chunk; /* chunks + 1: where the chunks of these rows begin */
    int64_t chunks;
    spmv_type type; /* of vectors in products and in spread */
};

/* The first level. All arrays but the halo's belong to the matrix. */
struct rank_first {
    struct rank_halo *halo;     /* to be closed */
    const int64_t *row_of_rank; /* ranks + 1: the first row of each rank */
    const int64_t *chunk;       /* of its rows: as in struct plan_ranks */
};

struct rank_tools {
    int rank, ranks;

    /* The matrix of the plan, with a halo for vectors of this type. */
    spmv_status (*first)(void *self, spmv_type type, struct rank_first *first);

    /* Makes the halo of own rows, and renumbers their columns, which are below rows->cols. */
    spmv_status (*open)(void *self, const struct rank_rows *rows, struct rank_halo **halo);
    void (*close)(struct rank_halo *halo);

    /* As MPI_Allgatherv, in host memory: rank r gives offset[r + 1] - offset[r] bytes. */
    spmv_status (*gather)(void *self, const void *own, void *all, const int64_t *offset);
    /* The same in the context's memory. Sizes are multiples of 4 bytes. */
    spmv_status (*gather_there)(void *self, const void *own, void *all, const int64_t *offset);

    /* Elements of other ranks, of `size` bytes. array: room + own + after elements in the
     * context's memory. */
    spmv_status (*fetch)(const struct rank_halo *halo, void *array, int64_t size);

    /* The way back: own elements become what the ranks that have them among those of others made
     * of them. Of an element that several have, any of theirs. */
    spmv_status (*give_back)(const struct rank_halo *halo, void *array, int64_t size);

    /* As fetch, for so many vectors by rows in applications, of the type of the halo; on a GPU for one. x points to
     * the own elements. */
    spmv_status (*spread)(const struct rank_halo *halo, void *x, int vectors);

    /* *all: own rows with those of other ranks, room + own + after rows. */
    spmv_status (*fetch_rows)(const struct rank_halo *halo, const spmv_csr *own, struct rank_arrays *all);

    /* *others: rows of other ranks alone, room + own + after rows, of which the own ones are empty. own: with
     * columns in the layout of the halo, which those of *others have too. Of a column that is not in it the value
     * is 0, and the place is that of the last one before it, or -1. needed: NULL, or `needs` places in the
     * context's memory, or -1: then other rows of *others are empty. */
    spmv_status (*fetch_others)(const struct rank_halo *halo, const spmv_csr *own, const int32_t *needed, int64_t needs,
                                struct rank_arrays *others);

    /* On GPUs: rows of other ranks are appended to the array. *fits: whether all rows that move are there and fit, on
     * all ranks. */
    spmv_status (*fetch_places)(const struct rank_halo *halo, const struct rank_places *rows, bool *fits);

    /* On GPUs: the entries in columns of this rank that other ranks have, in any order. *left: how many of `own` are
     * in columns of others. */
    spmv_status (*fetch_columns)(void *self, const int64_t *row_of_rank, const int64_t *col_of_rank,
                                 const spmv_csr *own, int64_t *left, struct rank_entries *others);

    /* *to: the rows of the transpose that this rank owns, with the numbers of the rows of `own`
     * in the whole matrix as columns. */
    spmv_status (*transpose)(void *self, const int64_t *row_of_rank, const int64_t *col_of_rank, const spmv_csr *own,
                             struct rank_arrays *to);

    /* A plan for own rows with renumbered columns. Its products fetch what they need of x. It
     * must be destroyed before the halo. */
    spmv_status (*plan)(const struct rank_halo *halo, const spmv_csr *own, const spmv_plan_options *options,
                        spmv_plan **plan);
};

#endif
