/* Generalised compact on CUDA: the rungs for every element size and index width; offsets by a scan
 * that widens the numbers as it loads them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/dispatch_words.cuh"
#include "primitives/compact/expand_2_gather.cuh"
#include "primitives/scan/scan_3_chunks.cuh"

/* The number at i, or 0 if it is negative. Returns 0 for i = n, where the scan then writes the sum
 * of all. */
template <typename Count> struct load_counts {
    const Count *counts;
    int64_t n;
    __device__ int64_t operator()(int64_t i) const
    {
        return i < n && counts[i] > 0 ? (int64_t)counts[i] : 0;
    }
};

extern "C" int64_t expand_scratch_cuda(const spmv_context *ctx, int64_t n)
{
    (void)ctx;
    (void)n;
    return SCAN_3_SCRATCH_ELEMENTS * (int64_t)sizeof(int64_t);
}

extern "C" spmv_status expand_offsets_cuda(spmv_context *ctx, const void *counts, int count_bits, int64_t *offsets,
                                           int64_t n, void *scratch)
{
    return on_device(ctx, [=] {
        const store_array<int64_t> to = {offsets};
        return count_bits == 32 ? scan_3_launch<op_add_i64>(ctx, load_counts<int32_t>{(const int32_t *)counts, n}, to,
                                                            n + 1, true, scratch)
                                : scan_3_launch<op_add_i64>(ctx, load_counts<int64_t>{(const int64_t *)counts, n}, to,
                                                            n + 1, true, scratch);
    });
}

template <typename Element, typename Index>
static spmv_status dispatch_form(spmv_context *ctx, spmv_expand_form form, const struct expansion *e)
{
    const expand_to<Element, Index> put = {(const Element *)e->in, (Element *)e->out, (Index *)e->source,
                                           (Index *)e->rank};
    return form == SPMV_EXPAND_SCATTER ? expand_1_launch(ctx, put, e->offsets, e->n, e->total)
                                       : expand_2_launch(ctx, put, e->offsets, e->n, e->total);
}

template <typename Element>
static spmv_status dispatch_index(spmv_context *ctx, spmv_expand_form form, const struct expansion *e)
{
    return e->index_bits == 32 ? dispatch_form<Element, int32_t>(ctx, form, e)
                               : dispatch_form<Element, int64_t>(ctx, form, e);
}

extern "C" spmv_status expand_cuda(spmv_context *ctx, spmv_expand_form form, const struct expansion *e)
{
    return on_device(ctx, [=] {
        return with_words(ctx, "expand", e->type,
                          [=](auto element) { return dispatch_index<decltype(element)>(ctx, form, e); });
    });
}
