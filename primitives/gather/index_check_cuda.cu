/* The index check on CUDA: a map fused into a reduction, the minimum of the positions of invalid
 * entries.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/ops.cuh"
#include "primitives/reduce/reduce_5_shuffles.cuh"

/* i if index[i] is invalid, else a value larger than any position. */
template <typename Index> struct load_outside {
    const Index *index;
    int64_t lowest, limit;
    __device__ int64_t operator()(int64_t i) const
    {
        const int64_t at = index[i];
        return at < lowest || at >= limit ? i : INT64_MAX;
    }
};

/* The result is stored after the scratch of the reduction. */
extern "C" int64_t index_check_scratch_cuda(const spmv_context *ctx, int64_t n)
{
    (void)ctx;
    (void)n;
    return (REDUCE_5_SCRATCH_ELEMENTS + 1) * (int64_t)sizeof(int64_t);
}

extern "C" spmv_status index_check_cuda(spmv_context *ctx, const void *index, int index_bits, int64_t lowest,
                                        int64_t limit, int64_t n, int64_t *host_first, int64_t *host_value,
                                        void *scratch)
{
    int64_t *const first = (int64_t *)scratch + REDUCE_5_SCRATCH_ELEMENTS;
    spmv_status st = on_device(ctx, [=] {
        return index_bits == 32
                   ? reduce_5_launch<op_min_i64>(ctx, load_outside<int32_t>{(const int32_t *)index, lowest, limit}, n,
                                                 first, scratch)
                   : reduce_5_launch<op_min_i64>(ctx, load_outside<int64_t>{(const int64_t *)index, lowest, limit}, n,
                                                 first, scratch);
    });
    int64_t found = INT64_MAX;
    if (st == SPMV_OK)
        st = ctx->backend->download(ctx, first, &found, sizeof found);
    *host_first = found < n ? found : n;
    if (st != SPMV_OK || found >= n)
        return st;
    int32_t narrow = 0;
    const int bytes = index_bits / 8;
    st = ctx->backend->download(ctx, (const char *)index + found * bytes,
                                index_bits == 32 ? (void *)&narrow : (void *)host_value, bytes);
    if (index_bits == 32)
        *host_value = narrow;
    return st;
}
