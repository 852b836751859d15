/* The steps of algebraic multigrid on CUDA: one kernel for each step, one thread a row.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "launch.cuh"

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

} // namespace

extern "C" spmv_status amg_run_cuda(spmv_context *ctx, enum amg_step step, spmv_type type, const struct amg_rows *rows,
                                    int64_t n)
{
    return on_device(ctx, [=] { return run_step(ctx, step, type, rows, n); });
}
