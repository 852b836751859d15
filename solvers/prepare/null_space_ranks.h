/* The null space of a matrix whose rows several ranks have: the connected components, and sums over them
 * (null_space.c). All functions are called together.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef NULL_SPACE_RANKS_H
#define NULL_SPACE_RANKS_H

#include "core/runtime.h"
#include "product/plan_internal.h"

/* The sums of a vector over a component: real and imaginary parts. */
struct null_sum {
    long double of[2];
};

/* The own rows of each component in each chunk are a part of it. Sums over parts are added in the order of all
 * chunks, so that they have the same bits for any number of ranks. */
struct null_parts {
    const struct plan_ranks *ranks;
    int64_t *begin;        /* chunks + 1: the first part of each own chunk */
    int32_t *component;    /* of the parts of all ranks */
    int64_t *part, *chunk; /* ranks + 1: the first part, and the first chunk, of each rank */
    struct null_sum *own, *all;
    long double *own_squares, *all_squares; /* of each chunk */
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

/* Whether something holds on any rank. */
spmv_status null_ranks_any(const struct plan_ranks *ranks, bool own, bool *any);

#endif
