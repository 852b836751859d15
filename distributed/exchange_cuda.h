/* The kernels of the exchanges (exchange_cuda.cu). Arrays are in device memory unless stated
 * otherwise. Functions queue work on the context's stream.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXCHANGE_CUDA_H
#define EXCHANGE_CUDA_H

#include "distributed/exchange.h"
#include "solvers/exchange/exchange_view.h"

/* The parts of all ranks, in the memory of one: part c of sum v is number place[c] + v * stride. */
struct exchange_gathered {
    void *parts;
    const int32_t *place; /* NULL: place[c] is c */
    int64_t count, stride;
};

spmv_status exchange_put_cuda(spmv_context *ctx, spmv_type type, const struct exchange_view *view, const void *x);

/* Stores what arrived. finishes: what exchange_put_cuda sent; else what a step of a solve sent. */
spmv_status exchange_take_cuda(spmv_context *ctx, spmv_type type, const struct exchange_view *view, bool finishes,
                               void *x);

/* packed[i] = x[index[i]], 0 <= i < count. */
spmv_status exchange_pack_cuda(spmv_context *ctx, spmv_type type, const int32_t *index, int64_t count, const void *x,
                               void *packed);

/* The phases PUBLISH and COLLECT of struct exchange_kind. COLLECT needs boards. The sums of a step
 * without boards, and with own_stride 0: those of each chunk, one after the other, go to `sums`. */
spmv_status exchange_sum_cuda(spmv_context *ctx, spmv_type type, const struct exchange_view *view,
                              const struct exchange_parts *parts, void *sums, int phases);

/* sums[v] = the sum of all parts, for 0 <= v < count. */
spmv_status exchange_fold_cuda(spmv_context *ctx, spmv_type type, const struct exchange_gathered *from, int count,
                               void *sums);

#endif
