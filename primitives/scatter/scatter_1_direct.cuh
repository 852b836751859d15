/* scatter, rung 1: reads an index and an element, then writes the element to that cell.
 *
 * idea      neighbouring threads take neighbouring indices and elements; each thread starts four
 *           loads of both before it writes the first element. Elements are moved as bits, so only
 *           their size matters, unless a predicate reads them. A mask is tested before the index
 *           and the element are read, a predicate before the element is written.
 * work      n
 * depth     1
 * launches  1
 * bytes     n (index + 2 v) if the written cells are contiguous; otherwise up to 64 bytes per cell
 *           (a sector read and written)
 * wins      everywhere; the speed depends on the order of the indices
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCATTER_1_DIRECT_CUH
#define SPMV_SCATTER_1_DIRECT_CUH

#include "device/block.cuh"
#include "device/filter.cuh"
#include "device/launch.cuh"

enum { SCATTER_ITEMS = 4 };

/* out[index[i]] = in[i] if 0 <= index[i] < out_n and the filter takes it */
template <typename Filter, typename Index>
__global__ void __launch_bounds__(block_threads)
    scatter_direct(Filter filter, const typename Filter::type *in, const Index *index, typename Filter::type *out,
                   int64_t out_n, int64_t n)
{
    using Element = typename Filter::type;
    const int64_t stride = (int64_t)gridDim.x * SCATTER_ITEMS * block_threads;
    for (int64_t i = (int64_t)blockIdx.x * SCATTER_ITEMS * block_threads + threadIdx.x; i < n; i += stride) {
        int64_t to[SCATTER_ITEMS];
        Element element[SCATTER_ITEMS];
#pragma unroll
        for (int k = 0; k < SCATTER_ITEMS; k++) {
            const bool there = i + k * block_threads < n && filter.wants(i + k * block_threads);
            to[k] = there ? (int64_t)index[i + k * block_threads] : -1;
            element[k] = there ? in[i + k * block_threads] : Element();
        }
#pragma unroll
        for (int k = 0; k < SCATTER_ITEMS; k++)
            if (to[k] >= 0 && to[k] < out_n && filter.takes(element[k]))
                out[to[k]] = element[k];
    }
}

template <typename Filter>
spmv_status scatter_1_launch(spmv_context *ctx, Filter filter, const void *in, const void *index, int index_bits,
                             void *out, int64_t out_n, int64_t n)
{
    using Element = typename Filter::type;
    const int grid = grid_for(n, SCATTER_ITEMS * block_threads);
    if (index_bits == 32)
        return launch(ctx, "scatter_direct", grid, block_threads, scatter_direct<Filter, int32_t>, filter,
                      (const Element *)in, (const int32_t *)index, (Element *)out, out_n, n);
    return launch(ctx, "scatter_direct", grid, block_threads, scatter_direct<Filter, int64_t>, filter,
                  (const Element *)in, (const int64_t *)index, (Element *)out, out_n, n);
}

#endif
