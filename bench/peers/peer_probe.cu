/* Only the gather of a product: reads col[k] and x[col[k]] for all nonzeros, but neither values nor
 * row offsets, and writes nothing. A kernel that reads x once per nonzero can be faster only by
 * what it saves on its streams.
 *
 * A thread takes two times four columns per round, with 16-byte loads, and has eight gathers in
 * flight. The columns bypass the cache (evict first), which is left to x. The grid has as many
 * blocks as the device runs at once. The sum is compared with a number that it never equals, which
 * keeps the loads and moves no data.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cuda_runtime.h>
#include <stdint.h>

#include "bench/peers/peer.h"
#include "bench/peers/peer_cuda.h"

namespace
{

enum { THREADS = 256 };

struct gather {
    peer_problem problem;
    /* columns before the first aligned 16 bytes; groups of four columns from there on */
    int64_t head, quads;
    int blocks;
    void *sink; /* target of a write that never happens */
};

template <typename T> __device__ T gather_four(const T *__restrict__ x, int4 col)
{
    return (__ldg(x + col.x) + __ldg(x + col.y)) + (__ldg(x + col.z) + __ldg(x + col.w));
}

template <typename T>
__global__ void __launch_bounds__(THREADS) gather_kernel(const int32_t *__restrict__ col, int64_t head, int64_t quads,
                                                         int64_t nnz, const T *__restrict__ x, T never, T *sink)
{
    const int4 *const four = reinterpret_cast<const int4 *>(col + head);
    const int64_t stride = (int64_t)gridDim.x * THREADS, first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    T sum = 0;
    int64_t i = first;
    for (; i + stride < quads; i += 2 * stride) {
        const int4 a = __ldcs(four + i), b = __ldcs(four + i + stride);
        sum += gather_four(x, a) + gather_four(x, b);
    }
    if (i < quads)
        sum += gather_four(x, __ldcs(four + i));
    if (first < nnz - 4 * quads) /* at most three before and three after */
        sum += x[col[first < head ? first : 4 * quads + first]];
    if (sum == never)
        *sink = sum;
}

template <typename T> cudaError_t queue(const gather *g, T never)
{
    const peer_problem *const p = &g->problem;
    gather_kernel<T><<<g->blocks, THREADS, 0, static_cast<cudaStream_t>(p->stream)>>>(
        p->col, g->head, g->quads, p->nnz, static_cast<const T *>(p->x), never, static_cast<T *>(g->sink));
    return cudaGetLastError();
}

template <typename T> cudaError_t blocks_at_once(int *blocks)
{
    int device = 0, processors = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, gather_kernel<T>, THREADS, 0);
    *blocks *= processors;
    return error;
}

void close_gather(void *state)
{
    gather *const g = static_cast<gather *>(state);
    if (g != nullptr)
        cudaFree(g->sink);
    delete g;
}

int open_gather(const peer_problem *problem, void **state, char *why, size_t why_size)
{
    gather *const g = new_object<gather>(why, why_size);
    if (g == nullptr)
        return -1;
    g->problem = *problem;
    const int64_t misplaced = (int64_t)(reinterpret_cast<uintptr_t>(problem->col) % 16 / sizeof(int32_t));
    g->head = misplaced == 0 ? 0 : 4 - misplaced;
    g->head = g->head < problem->nnz ? g->head : problem->nnz;
    g->quads = (problem->nnz - g->head) / 4;
    const bool single = problem->type == SPMV_F32;
    if (bad_cuda(use_device_of(static_cast<cudaStream_t>(problem->stream)), "cudaSetDevice", why, why_size) ||
        bad_cuda(single ? blocks_at_once<float>(&g->blocks) : blocks_at_once<double>(&g->blocks),
                 "cudaOccupancyMaxActiveBlocksPerMultiprocessor", why, why_size) ||
        bad_cuda(device_alloc(sizeof(double), &g->sink), "cudaMalloc", why, why_size)) {
        close_gather(g);
        return -1;
    }
    *state = g;
    return 0;
}

int run_gather(void *state)
{
    const gather *const g = static_cast<const gather *>(state);
    const cudaError_t error = g->problem.type == SPMV_F32 ? queue<float>(g, -3.25e38f) : queue<double>(g, -1.75e308);
    return error == cudaSuccess ? 0 : -1;
}

const peer peers[] = {{"probe-gather", PEER_SPMV,
                       "reads only the columns and x at them: 256 threads, 8 gathers in flight per thread, all "
                       "blocks resident",
                       1, open_gather, run_gather, nullptr, nullptr, close_gather}};
const peer_module module = {PEER_ABI, "our own kernel", peers, sizeof peers / sizeof peers[0]};

} // namespace

const peer_module *spmv_peer_module(void)
{
    return &module;
}
