/* Nodes on CUDA: whether rows belong together, and the vectors of an aggregate. A warp has a node or an aggregate;
 * amg_nodes_rows.h has the same for one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/dispatch.cuh"
#include "device/launch.cuh"

extern "C" {
#include "solvers/amg/amg_internal.h"
}

#define TEMPLATE "solvers/amg/amg_rows.h"
#include "core/each/each_real.h"

namespace
{

enum { THREADS = 128, WARPS = THREADS / warp_lanes };

constexpr unsigned all_lanes = 0xffffffffu;

/* Elements of the basis of an aggregate in shared memory, and rows. Larger ones are read where they are. Tests build
 * with fewer. */
#ifndef SPMV_AMG_STAGED
#define SPMV_AMG_STAGED 1024
#endif
enum { STAGED = SPMV_AMG_STAGED, STAGED_ROWS = STAGED / 2 };

/* Whether the rows of node i have entries in the same nodes, as in amg_node_like. If rows have the same lengths, their
 * entries are usually in the same order of nodes, and lanes compare them; otherwise one lane merges them. */
__device__ bool node_alike(const amg_likeness &s, int64_t i)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const int64_t first = i * s.block, begin = amg_offset(&s.a, first), length = amg_offset(&s.a, first + 1) - begin;
    bool differs = false;
    for (int row = 1; row < s.block; row++)
        differs = differs || amg_offset(&s.a, first + row) - begin != row * length;
    differs = differs || amg_offset(&s.a, first + s.block) - begin != s.block * length;
    for (int64_t k = lane; k < length && !differs; k += warp_lanes) {
        const int32_t node = s.a.col[begin + k] / s.block;
        for (int row = 1; row < s.block; row++)
            differs = differs || s.a.col[begin + row * length + k] / s.block != node;
    }
    if (__ballot_sync(all_lanes, differs) == 0)
        return true;
    int64_t other = INT64_MAX;
    if (lane == 0)
        amg_node_like_f64(&s, i); /* sets other[i] */
    if (lane == 0)
        other = s.other[i];
    return __ballot_sync(all_lanes, lane == 0 && other != INT64_MAX) == 0;
}

/* differ: becomes 1 if a node's rows differ. Then the others need not be looked at. */
__global__ void __launch_bounds__(THREADS) alike_kernel(amg_likeness s, int64_t nodes, int *differ)
{
    for (int64_t i = (int64_t)blockIdx.x * WARPS + (int)threadIdx.x / warp_lanes; i < nodes;
         i += (int64_t)gridDim.x * WARPS) {
        const bool known = __ballot_sync(all_lanes, *(volatile int *)differ != 0) != 0;
        if (known)
            break;
        if (!node_alike(s, i) && threadIdx.x % warp_lanes == 0)
            *(volatile int *)differ = 1;
    }
}

/* The rows of an aggregate, in shared memory or in the basis. */
struct basis_rows {
    const amg_basis *s;
    double *staged; /* NULL: not staged */
    int64_t begin;

    __device__ double *row(int64_t t) const
    {
        return staged != nullptr ? staged + t * s->nulls : amg_basis_row_f64(s, begin, t);
    }
};

/* As amg_orthonormal: lane e has column e in sums over rows, and lanes have rows in updates. */
__device__ void orthonormal(const amg_basis &s, int64_t j, const basis_rows &b, int64_t rows)
{
    const int k = s.nulls, lane = (int)threadIdx.x % warp_lanes;
    double *const upper = s.coarse_basis + j * k * k;
    double size = 0;
    for (int64_t t = 0; t < rows; t++) {
        const double *const row = b.row(t);
        if (row != nullptr && lane < k)
            size += row[lane] * row[lane];
    }
    for (int c = 0; c < k; c++) {
        double product = 0;
#pragma unroll 4
        for (int64_t t = 0; t < rows; t++) {
            const double *const row = b.row(t);
            if (row != nullptr && lane >= c && lane < k)
                product += row[c] * row[lane];
        }
        const double of_c = __shfl_sync(all_lanes, product, c), size_c = __shfl_sync(all_lanes, size, c);
        const double norm = of_c > AMG_DEPENDENT * size_c ? sqrt(of_c) : 0, scale = norm > 0 ? 1 / norm : 0;
        const double factor = lane < c ? 0 : lane == c ? norm : product * scale;
        if (lane < k)
            upper[c * k + lane] = factor;
        for (int64_t first = 0; first < rows; first += warp_lanes) {
            const int64_t t = first + lane;
            double *const row = t < rows ? b.row(t) : nullptr;
            const double own = row == nullptr ? 0 : norm > 0 ? row[c] * scale : 0;
            if (row != nullptr)
                row[c] = own;
            for (int e = c + 1; e < k; e++) {
                const double of_e = __shfl_sync(all_lanes, factor, e);
                if (row != nullptr)
                    row[e] -= own * of_e;
            }
        }
        __syncwarp();
    }
}

__global__ void __launch_bounds__(THREADS) orthonormal_kernel(const __grid_constant__ amg_basis s, int64_t aggregates)
{
    __shared__ double memory[WARPS][STAGED];
    __shared__ int32_t numbers[WARPS][STAGED_ROWS];
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes, k = s.nulls;
    double *const staged = memory[warp];
    int32_t *const number = numbers[warp]; /* of the rows */
    for (int64_t j = (int64_t)blockIdx.x * WARPS + warp; j < aggregates; j += (int64_t)gridDim.x * WARPS) {
        const int64_t begin = amg_offset(&s.r, j), all = (amg_offset(&s.r, j + 1) - begin) * s.slots.block;
        if (all > STAGED_ROWS || all * k > STAGED) {
            const basis_rows b = {&s, nullptr, begin};
            orthonormal(s, j, b, all);
            continue;
        }
        int rows = 0; /* that exist */
        for (int64_t first = 0; first < all; first += warp_lanes) {
            const double *const row = first + lane < all ? amg_basis_row_f64(&s, begin, first + lane) : nullptr;
            const unsigned there = __ballot_sync(all_lanes, row != nullptr);
            if (row != nullptr)
                number[rows + __popc(there & ((1u << lane) - 1))] = (int32_t)((row - s.basis) / k);
            rows += __popc(there);
        }
        __syncwarp();
        for (int at = lane; at < rows * k; at += warp_lanes)
            staged[at] = s.basis[(int64_t)number[at / k] * k + at % k];
        __syncwarp();
        const basis_rows b = {&s, staged, begin};
        orthonormal(s, j, b, rows);
        for (int at = lane; at < rows * k; at += warp_lanes)
            s.basis[(int64_t)number[at / k] * k + at % k] = staged[at];
        __syncwarp();
    }
}

} // namespace

extern "C" spmv_status amg_alike_cuda(spmv_context *ctx, const struct amg_likeness *s, int64_t nodes, int *differ)
{
    return on_device(ctx, [=] {
        return launch(ctx, "amg alike", grid_for(nodes, WARPS), THREADS, alike_kernel, *s, nodes, differ);
    });
}

extern "C" spmv_status amg_orthonormal_cuda(spmv_context *ctx, const struct amg_basis *s, int64_t aggregates)
{
    return on_device(ctx, [=] {
        return launch(ctx, "amg orthonormal", grid_for(aggregates, WARPS), THREADS, orthonormal_kernel, *s, aggregates);
    });
}
