/* The steps of algebraic multigrid on CUDA: one kernel for each step, one thread a row. The inverse
 * of the last level: one cooperative kernel with one barrier for each unknown; a block has every
 * gridDim-th row.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "grid_barrier.cuh"

extern "C" {
#include "amg_internal.h"
}

#define TEMPLATE "amg_rows_typed.h"
#include "each_real.h"

namespace
{

enum { THREADS = 128 };

typedef void row_fn(const struct amg_rows *, int64_t);

template <row_fn *Row> __global__ void __launch_bounds__(THREADS) rows_kernel(amg_rows rows, int64_t n)
{
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += stride)
        Row(&rows, i);
}

template <row_fn *F32, row_fn *F64>
spmv_status run(spmv_context *ctx, const char *name, spmv_type type, const struct amg_rows *rows, int64_t n)
{
    return launch(ctx, name, grid_for(n, THREADS), THREADS, type == SPMV_F64 ? rows_kernel<F64> : rows_kernel<F32>,
                  *rows, n);
}

spmv_status run_step(spmv_context *ctx, enum amg_step step, spmv_type type, const struct amg_rows *rows, int64_t n)
{
    switch (step) {
#define CASE(NAME, name)                                                                                               \
    case AMG_##NAME:                                                                                                   \
        return run<amg_##name##_f32, amg_##name##_f64>(ctx, "amg " #name, type, rows, n);
        AMG_STEP_LIST(CASE)
#undef CASE
    default:
        return SPMV_ERROR_ARGUMENT;
    }
}

enum { SWEEP_THREADS = 256 };

/* Element (i, j) after the step for unknown k; ci, cj: elements of column k before. The same
 * operations as in amg_loops.c. */
__device__ double swept(const amg_sweep &s, double w, int64_t i, int64_t j, int64_t k, double ci, double cj)
{
    if (i != k && j != k)
        return s.used ? w - (ci * s.factor) * (cj * s.factor) : w;
    if (i == j)
        return s.used ? -(s.factor * s.factor) : 0;
    return ((i == k ? cj : ci) * s.factor) * s.factor;
}

__global__ void __launch_bounds__(SWEEP_THREADS) invert_kernel(amg_dense d)
{
    const int64_t n = d.n;
    for (int64_t k = 0; k < n; k++) {
        const double *const c = d.column[k % 2];
        double *const next = d.column[(k + 1) % 2];
        const amg_sweep s = amg_sweep_of(grid_barrier::load_others(c + k), d.own[k], d.tolerance);
        for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
            const double ci = grid_barrier::load_others(c + i);
            if (i == k && threadIdx.x == 0)
                d.pivot[k] = s.ratio;
            for (int64_t j = threadIdx.x; j <= i; j += SWEEP_THREADS) {
                const double w = swept(s, d.element[i * n + j], i, j, k, ci, grid_barrier::load_others(c + j));
                d.element[i * n + j] = w;
                if (j == k + 1)
                    next[i] = w;
                else if (i == k + 1)
                    next[j] = w;
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            grid_barrier::arrive(d.arrived);
            grid_barrier::await_all(d.arrived, (unsigned)(k + 1) * gridDim.x);
        }
        __syncthreads();
    }
}

spmv_status invert(spmv_context *ctx, const amg_dense *d)
{
    int shared_bytes = 0, most_blocks = 1;
    const spmv_status st = grid_barrier::limits(ctx, &shared_bytes, &most_blocks);
    if (st != SPMV_OK || d->n == 0)
        return st;
    const int blocks = (int)min_i64(d->n, most_blocks);
    return launch_shaped(ctx, "amg invert", {blocks, SWEEP_THREADS, 0, false, most_blocks > 1}, invert_kernel, *d);
}

} // namespace

extern "C" spmv_status amg_invert_cuda(spmv_context *ctx, const struct amg_dense *dense)
{
    return on_device(ctx, [=] { return invert(ctx, dense); });
}

extern "C" spmv_status amg_run_cuda(spmv_context *ctx, enum amg_step step, spmv_type type, const struct amg_rows *rows,
                                    int64_t n)
{
    return on_device(ctx, [=] { return run_step(ctx, step, type, rows, n); });
}
