/* The check of a matrix on the device: one pass over the row offsets and the columns, which counts
 * what is wrong.
 *
 * Columns ascend in each row if no entry is at most the one before it, except at the starts of rows.
 * So these entries are counted twice: among all entries, and among the starts of rows. The numbers
 * are equal if and only if the columns ascend, and no entry needs to know its row.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "block.cuh"
#include "launch.cuh"

extern "C" {
#include "matrix_internal.h"
}

namespace
{

template <typename Offset>
__global__ void __launch_bounds__(block_threads)
    count_faults(const Offset *row_ptr, const int32_t *col, int64_t rows, int64_t cols, int64_t nnz, csr_faults *faults)
{
    const int64_t stride = (int64_t)gridDim.x * block_threads;
    const int64_t begin = (int64_t)blockIdx.x * block_threads + threadIdx.x;
    csr_faults mine = {0, 0, 0, 0};
    for (int64_t i = begin; i < rows; i += stride) {
        const int64_t first = (int64_t)row_ptr[i], end = (int64_t)row_ptr[i + 1];
        if (first < 0 || end < first || end > nnz || (i == 0 && first != 0) || (i == rows - 1 && end != nnz))
            mine.rows++;
        else if (first > 0 && first < end)
            mine.descents_at_starts += col[first] <= col[first - 1];
    }
    for (int64_t k = begin; k < nnz; k += stride) {
        const int32_t column = col[k];
        mine.columns += column < 0 || column >= cols;
        mine.descents += k > 0 && column <= col[k - 1];
    }
    atomic_add_of_warp(mine.rows, &faults->rows);
    atomic_add_of_warp(mine.columns, &faults->columns);
    atomic_add_of_warp(mine.descents, &faults->descents);
    atomic_add_of_warp(mine.descents_at_starts, &faults->descents_at_starts);
}

template <typename Offset> spmv_status run(spmv_context *ctx, const spmv_csr *a, csr_faults *faults)
{
    return launch(ctx, "matrix check", grid_for(max_i64(a->rows, a->nnz), block_threads), block_threads,
                  count_faults<Offset>, (const Offset *)a->row_ptr, a->col, a->rows, a->cols, a->nnz, faults);
}

} // namespace

extern "C" spmv_status csr_faults_queue_cuda(spmv_context *ctx, const spmv_csr *a, struct csr_faults *there)
{
    return on_device(ctx,
                     [=] { return a->row_ptr_bits == 64 ? run<int64_t>(ctx, a, there) : run<int32_t>(ctx, a, there); });
}

extern "C" spmv_status csr_faults_cuda(spmv_context *ctx, const spmv_csr *a, struct csr_faults *faults)
{
    void *there = nullptr;
    *faults = {0, 0, 0, 0};
    spmv_status st = context_scratch(ctx, (int64_t)sizeof *faults, &there);
    if (st == SPMV_OK)
        st = on_device(ctx, [=] {
            return cuda_check(ctx, cudaMemsetAsync(there, 0, sizeof *faults, (cudaStream_t)ctx->stream),
                              "cudaMemsetAsync");
        });
    if (st == SPMV_OK)
        st = csr_faults_queue_cuda(ctx, a, (struct csr_faults *)there);
    return st != SPMV_OK ? st : ctx->backend->download(ctx, there, faults, (int64_t)sizeof *faults);
}
