/* Generalised compact, rung 1: each element writes its outputs.
 *
 * idea      one thread per element, which loops over the element's outputs
 * work      n + total
 * depth     the largest number of outputs of an element
 * launches  1
 * bytes     8 n (offsets) + v n + total (v + 2 w), if neighbours make the same number of outputs
 *           (v: the size of an element, w: of an index)
 * wins      if all elements make about the same, small number of outputs. Otherwise a warp waits
 *           for its longest element, and its threads write to distant addresses.
 * source    the lectures' generalised compact, scatter form
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_EXPAND_1_SCATTER_CUH
#define SPMV_EXPAND_1_SCATTER_CUH

#include "device/block.cuh"
#include "device/launch.cuh"

/* Writes output j, which is output k of element i. */
template <typename Element, typename Index> struct expand_to {
    const Element *in;
    Element *out;
    Index *source, *rank;
    __device__ void operator()(int64_t j, int64_t i, int64_t k) const
    {
        if (out != NULL)
            out[j] = in[i];
        if (source != NULL)
            source[j] = (Index)i;
        if (rank != NULL)
            rank[j] = (Index)k;
    }
};

template <typename Put>
__global__ void __launch_bounds__(block_threads)
    expand_scatter(Put put, const int64_t *offsets, int64_t n, int64_t total)
{
    const int64_t stride = (int64_t)gridDim.x * block_threads;
    for (int64_t i = (int64_t)blockIdx.x * block_threads + threadIdx.x; i < n; i += stride) {
        const int64_t first = offsets[i], behind = offsets[i + 1];
        for (int64_t j = first; j < behind && j < total; j++)
            put(j, i, j - first);
    }
}

template <typename Put>
spmv_status expand_1_launch(spmv_context *ctx, Put put, const int64_t *offsets, int64_t n, int64_t total)
{
    return launch(ctx, "expand_scatter", grid_for(n, block_threads), block_threads, expand_scatter<Put>, put, offsets,
                  n, total);
}

#endif
