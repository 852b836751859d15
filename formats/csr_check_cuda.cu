/* The check of a matrix on the device: one pass over the row offsets and the columns, which counts
 * what is wrong.
 *
 * Columns ascend in each row if no entry is at most the one before it, except at the starts of rows.
 * So these entries are counted twice: among all entries, and among the starts of rows. The numbers
 * are equal if and only if the columns ascend, and no entry needs to know its row.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/launch.cuh"

extern "C" {
#include "formats/matrix_internal.h"
}

namespace
{

/* A turn takes EACH entries for each thread, and the same share of the rows. Then the columns at the
 * starts of rows are still in the cache when all columns are read. */
enum { EACH = 8, BLOCKS = 8 /* for each multiprocessor */ };

template <typename Offset>
__global__ void __launch_bounds__(block_threads)
    count_faults(const Offset *row_ptr, const int32_t *col, int64_t rows, int64_t cols, int64_t nnz, csr_faults *faults)
{
    __shared__ csr_faults of_block;
    if (threadIdx.x == 0)
        of_block = {0, 0, 0, 0};
    __syncthreads();
    const int64_t threads = (int64_t)gridDim.x * block_threads;
    const int64_t me = (int64_t)blockIdx.x * block_threads + threadIdx.x;
    const int64_t turns = nnz / (EACH * threads) + 1, rows_each = rows / turns + 1;
    csr_faults mine = {0, 0, 0, 0};
    for (int64_t turn = 0; turn < turns; turn++) {
        const int64_t stop = (turn + 1) * rows_each < rows ? (turn + 1) * rows_each : rows;
        for (int64_t i = turn * rows_each + me; i < stop; i += threads) {
            const int64_t first = (int64_t)row_ptr[i], end = (int64_t)row_ptr[i + 1];
            if (first < 0 || end < first || end > nnz || (i == 0 && first != 0) || (i == rows - 1 && end != nnz))
                mine.rows++;
            else if (first > 0 && first < end)
                mine.descents_at_starts += col[first] <= col[first - 1];
        }
        const int64_t from = turn * EACH * threads + me;
        int32_t column[EACH], before[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int64_t k = from + e * threads;
            column[e] = k < nnz ? col[k] : 0;
            before[e] = k < nnz && k > 0 ? col[k - 1] : -1;
        }
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const bool there = from + e * threads < nnz;
            mine.columns += there && (column[e] < 0 || column[e] >= cols);
            mine.descents += there && from + e * threads > 0 && column[e] <= before[e];
        }
    }
    atomic_add_of_warp(mine.rows, &of_block.rows);
    atomic_add_of_warp(mine.columns, &of_block.columns);
    atomic_add_of_warp(mine.descents, &of_block.descents);
    atomic_add_of_warp(mine.descents_at_starts, &of_block.descents_at_starts);
    __syncthreads();
    if (threadIdx.x < warp_lanes) {
        const bool first = threadIdx.x == 0;
        atomic_add_of_warp(first ? of_block.rows : 0, &faults->rows);
        atomic_add_of_warp(first ? of_block.columns : 0, &faults->columns);
        atomic_add_of_warp(first ? of_block.descents : 0, &faults->descents);
        atomic_add_of_warp(first ? of_block.descents_at_starts : 0, &faults->descents_at_starts);
    }
}

template <typename Offset> spmv_status run(spmv_context *ctx, const spmv_csr *a, csr_faults *faults)
{
    const int64_t most = (int64_t)BLOCKS * ((const cuda_state *)ctx->device)->multiprocessors;
    const int64_t blocks = min_i64(most, grid_for(max_i64(a->rows, a->nnz / EACH), block_threads));
    return launch(ctx, "matrix check", (int)max_i64(blocks, 1), block_threads, count_faults<Offset>,
                  (const Offset *)a->row_ptr, a->col, a->rows, a->cols, a->nnz, faults);
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
