/* Counts of rows, from which follows whether subwarps may take whole rows (rows_unfit).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/launch.cuh"

extern "C" {
#include "product/plan_internal.h"
}

namespace
{

/* Adds to *to, which is 0 before. neighbours: a power of 2, at most a warp's lanes. */
template <typename Offset>
__global__ void __launch_bounds__(block_threads)
    count(const Offset *row_ptr, int64_t rows, const int32_t *col, int neighbours, row_counts *to)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    row_counts own = {};
    for (int64_t first = (int64_t)blockIdx.x * block_threads; first < rows;
         first += (int64_t)gridDim.x * block_threads) {
        const int64_t row = first + threadIdx.x, begin = row < rows ? (int64_t)row_ptr[row] : 0;
        const int64_t entries = row < rows ? (int64_t)row_ptr[row + 1] - begin : 0;
        unsigned long long most = (unsigned long long)entries;
        own.longest = most > own.longest ? most : own.longest;
        for (int distance = 1; distance < neighbours; distance *= 2) {
            const unsigned long long other = __shfl_xor_sync(0xffffffffu, most, distance);
            most = other > most ? other : most;
        }
        own.places += most; /* of each row */
        if (entries > 0) {
            const int64_t span = (int64_t)col[begin + entries - 1] - col[begin];
            own.spans += (unsigned long long)(span < 0 ? -span : span);
        }
    }
    for (int distance = 1; distance < warp_lanes; distance *= 2) {
        const unsigned long long other = __shfl_xor_sync(0xffffffffu, own.longest, distance);
        own.longest = other > own.longest ? other : own.longest;
        own.places += __shfl_xor_sync(0xffffffffu, own.places, distance);
        own.spans += __shfl_xor_sync(0xffffffffu, own.spans, distance);
    }
    if (lane == 0) {
        atomicMax(&to->longest, own.longest);
        atomicAdd(&to->places, own.places);
        atomicAdd(&to->spans, own.spans);
    }
}

template <typename Offset> spmv_status count_rows(spmv_context *ctx, const spmv_csr *a, int neighbours, row_counts *to)
{
    return launch(ctx, "spmv rows counted", grid_for(a->rows, block_threads), block_threads, count<Offset>,
                  (const Offset *)a->row_ptr, a->rows, a->col, neighbours, to);
}

} // namespace

extern "C" spmv_status count_rows_cuda(spmv_context *ctx, const spmv_csr *a, int neighbours, struct row_counts *found)
{
    void *memory = nullptr;
    *found = {};
    spmv_status st = spmv_alloc(ctx, (int64_t)sizeof *found, &memory);
    if (st == SPMV_OK)
        st = spmv_upload(ctx, found, memory, (int64_t)sizeof *found);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return a->row_ptr_bits == 64 ? count_rows<int64_t>(ctx, a, neighbours, (row_counts *)memory)
                                         : count_rows<int32_t>(ctx, a, neighbours, (row_counts *)memory);
        });
    if (st == SPMV_OK)
        st = spmv_download(ctx, memory, found, (int64_t)sizeof *found);
    spmv_free(ctx, memory);
    return st;
}

extern "C" spmv_status plan_count_rows_cuda(spmv_plan *plan)
{
    struct facts *const f = &plan->facts;
    struct row_counts found;
    if (f->longest > 0)
        return SPMV_OK;
    const spmv_status st = count_rows_cuda(plan->ctx, &plan->a, warp_lanes >> abreast_lanes_log(f), &found);
    facts_of_rows(f, &found);
    return st;
}
