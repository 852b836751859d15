/* gather, rung 1: reads an index, then the element at that index.
 *
 * idea      neighbouring threads take neighbouring indices; each thread starts four loads before it
 *           needs the first, to hide the latency of the dependent reads. Elements are moved as
 *           bits, so only their size matters, unless a predicate reads them. A mask is tested
 *           before the index is read, a predicate before the element is written.
 * work      n
 * depth     1
 * launches  1
 * bytes     n (index + 2 v) if the elements read are contiguous; otherwise up to 32 bytes per
 *           element read
 * wins      everywhere; the speed depends on the order of the indices
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_GATHER_1_DIRECT_CUH
#define SPMV_GATHER_1_DIRECT_CUH

#include "device/block.cuh"
#include "device/filter.cuh"
#include "device/launch.cuh"

enum { GATHER_ITEMS = 4 };

/* out[i] = in[index[i]] if 0 <= index[i] < in_n and the filter takes it */
template <typename Filter, typename Index>
__global__ void __launch_bounds__(block_threads)
    gather_direct(Filter filter, const typename Filter::type *in, int64_t in_n, const Index *index,
                  typename Filter::type *out, int64_t n)
{
    using Element = typename Filter::type;
    const int64_t stride = (int64_t)gridDim.x * GATHER_ITEMS * block_threads;
    for (int64_t i = (int64_t)blockIdx.x * GATHER_ITEMS * block_threads + threadIdx.x; i < n; i += stride) {
        int64_t from[GATHER_ITEMS];
        Element element[GATHER_ITEMS];
#pragma unroll
        for (int k = 0; k < GATHER_ITEMS; k++)
            from[k] = i + k * block_threads < n && filter.wants(i + k * block_threads)
                          ? (int64_t)index[i + k * block_threads]
                          : -1;
#pragma unroll
        for (int k = 0; k < GATHER_ITEMS; k++)
            element[k] = from[k] >= 0 && from[k] < in_n ? in[from[k]] : Element();
#pragma unroll
        for (int k = 0; k < GATHER_ITEMS; k++)
            if (from[k] >= 0 && from[k] < in_n && filter.takes(element[k]))
                out[i + k * block_threads] = element[k];
    }
}

template <typename Filter>
spmv_status gather_1_launch(spmv_context *ctx, Filter filter, const void *in, int64_t in_n, const void *index,
                            int index_bits, void *out, int64_t n)
{
    using Element = typename Filter::type;
    const int grid = grid_for(n, GATHER_ITEMS * block_threads);
    if (index_bits == 32)
        return launch(ctx, "gather_direct", grid, block_threads, gather_direct<Filter, int32_t>, filter,
                      (const Element *)in, in_n, (const int32_t *)index, (Element *)out, n);
    return launch(ctx, "gather_direct", grid, block_threads, gather_direct<Filter, int64_t>, filter,
                  (const Element *)in, in_n, (const int64_t *)index, (Element *)out, n);
}

#endif
