/* The last step of the method "expand": sums of sorted products.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPGEMM_EXPAND_H
#define SPGEMM_EXPAND_H

#include "spgemm/spgemm_internal.h"

/* Entry e of C is the sum of the products at the places start[e] <= p < start[e + 1] (the last one:
 * p < products), from the first to the last. The product at place p has the entries a[q] of A and
 * b[q] of B with q = order[p]. All arrays are in the context's memory. */
struct spgemm_sums {
    spmv_type type;
    const void *a_values, *b_values; /* NULL: a pattern, whose factor is left out */
    const int64_t *a, *b, *order;    /* products elements each */
    const int64_t *start;            /* entries elements */
    int64_t products, entries;
    void *c_values; /* entries elements */
};

spmv_status spgemm_expand_sums(spmv_context *ctx, const struct spgemm_sums *sums);
spmv_status spgemm_expand_sums_cuda(spmv_context *ctx, const struct spgemm_sums *sums) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
