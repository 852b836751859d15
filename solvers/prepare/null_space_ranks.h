/* The null space of a matrix whose rows several ranks have: the connected components, and sums over them
 * (null_space.c). All functions are called together.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef NULL_SPACE_RANKS_H
#define NULL_SPACE_RANKS_H

#include "core/runtime.h"
#include "product/plan_internal.h"
#include "solvers/exchange/rank_tools.h"

/* The sums of a vector over a component: real and imaginary parts. */
struct null_sum {
    long double of[2];
};

/* Sums over the chunks of all ranks, added in the order of the chunks, so that they have the same bits for any number
 * of ranks. Without ranks there is one chunk. */
struct null_chunks {
    const struct plan_ranks *ranks; /* NULL: none */
    int64_t count;                  /* of own chunks */
    const int64_t *chunk;           /* count + 1: where they begin, in own rows */
    long double *own;               /* the numbers of each own chunk, one chunk after the other */
    int64_t one[2];
    int64_t *begin; /* ranks + 1: the first chunk of each rank */
    long double *all;
};

/* most: numbers of a chunk. ranks NULL: none. */
spmv_status null_chunks_make(spmv_context *ctx, const struct plan_ranks *ranks, int64_t rows, int64_t most,
                             struct null_chunks **made);
void null_chunks_destroy(struct null_chunks *c);

/* sums: `width` numbers, which c->own has of each chunk. */
spmv_status null_chunks_add(const struct null_chunks *c, int64_t width, long double *sums);

/* The own rows of each component in each chunk are a part of it. Sums over parts are added in the order of all
 * chunks, so that they have the same bits for any number of ranks. */
struct null_parts {
    const struct plan_ranks *ranks;
    int64_t *begin;     /* chunks + 1: the first part of each own chunk */
    int32_t *component; /* of the parts of all ranks */
    int64_t *part;      /* ranks + 1: the first part of each rank */
    struct null_sum *own, *all;
    struct null_chunks *squares; /* one number of each chunk */
};

/* The components of the whole matrix that have good rows only, numbered by their first rows. a: own rows, with columns
 * as in struct plan_ranks, in host memory. good: of own rows; NULL: all rows of all ranks are. component: rows numbers,
 * -1 for a row of none. size: for host_free. */
spmv_status null_ranks_components(spmv_context *ctx, const spmv_plan *plan, const spmv_csr *a, const char *good,
                                  int32_t *component, int64_t *components, int64_t **size);

/* component: NULL: all rows are of component 0. */
spmv_status null_parts_make(spmv_context *ctx, const spmv_plan *plan, const int32_t *component, int64_t components,
                            struct null_parts **made);
void null_parts_destroy(struct null_parts *p);

/* Adds own sums and squares over all ranks. sum: one for each component. */
spmv_status null_parts_add(const struct null_parts *p, int64_t components, struct null_sum *sum, long double *squares);

/* Elements of other ranks, of `size` bytes. array: room + own + after elements in host memory. */
spmv_status null_ranks_fetch(spmv_context *ctx, const struct rank_tools *tools, const struct rank_halo *h, void *array,
                             int64_t size);

/* Whether something holds on any rank. */
spmv_status null_ranks_any(const struct plan_ranks *ranks, bool own, bool *any);

#endif
