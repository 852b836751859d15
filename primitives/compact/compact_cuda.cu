/* compact on CUDA: the rungs by flags for every size of element, by predicate for every type; and the map of rung 1.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "compact_2_count_write.cuh"
#include "compact_3_pipeline.cuh"

static spmv_status no_kernel(spmv_context *ctx, spmv_type of)
{
    return context_fail(ctx, SPMV_ERROR_TYPE, "compact: no kernel for type %s", spmv_type_name(of));
}

extern "C" int64_t compact_scratch_cuda(const spmv_context *ctx, spmv_type of, int64_t n)
{
    (void)ctx;
    (void)of;
    (void)n;
    return compact_2_scratch_elements * (int64_t)sizeof(int64_t);
}

/* Rung 3 where it can run, else rung 2. */
template <typename Keep>
static spmv_status in_fewest_passes(spmv_context *ctx, Keep keep, const void *in, void *out, int64_t *count, int64_t n,
                                    void *scratch)
{
    return engine_there(ctx) ? compact_3_launch(ctx, keep, in, out, count, n)
                             : compact_2_launch(ctx, keep, in, out, count, n, scratch);
}

/* run(keep): of elements of as many bytes */
template <typename Run>
static spmv_status dispatch_flagged(spmv_context *ctx, const uint8_t *flags, spmv_type of, const Run &run)
{
    switch (spmv_type_size(of)) {
    case 4:
        return run(keep_flagged<uint32_t>{flags});
    case 8:
        return run(keep_flagged<uint64_t>{flags});
    case 16:
        return run(keep_flagged<words<2>>{flags});
    case 32:
        return run(keep_flagged<words<4>>{flags});
    default:
        return no_kernel(ctx, of);
    }
}

static spmv_status dispatch_bits(spmv_context *ctx, const uint32_t *flags, spmv_type of, const void *in, void *out,
                                 int64_t *count, int64_t n, void *scratch)
{
    switch (spmv_type_size(of)) {
    case 4:
        return in_fewest_passes(ctx, keep_bits<uint32_t>{flags}, in, out, count, n, scratch);
    case 8:
        return in_fewest_passes(ctx, keep_bits<uint64_t>{flags}, in, out, count, n, scratch);
    case 16:
        return in_fewest_passes(ctx, keep_bits<words<2>>{flags}, in, out, count, n, scratch);
    case 32:
        return in_fewest_passes(ctx, keep_bits<words<4>>{flags}, in, out, count, n, scratch);
    default:
        return no_kernel(ctx, of);
    }
}

static spmv_status dispatch_if(spmv_context *ctx, const struct filter *filter, spmv_type of, const void *in, void *out,
                               int64_t *count, int64_t n, void *scratch)
{
    switch (of) {
#define CASE(TYPE, type, value, T, D, CLASS, ARG)                                                                      \
    case SPMV_##TYPE:                                                                                                  \
        return in_fewest_passes(ctx, keep_if<D>{predicate_by<D>(filter), (const D *)in}, in, out, count, n, scratch);
        SPMV_NUMBER_LIST(CASE, )
#undef CASE
    default:
        return no_kernel(ctx, of);
    }
}

extern "C" spmv_status compact_cuda(spmv_context *ctx, const struct filter *filter, spmv_type of, const void *in,
                                    void *out, int64_t *count, int64_t n, void *scratch)
{
    return on_device(ctx, [=] {
        if (filter->mask != NULL)
            return dispatch_flagged(ctx, filter->mask, of,
                                    [=](auto keep) { return in_fewest_passes(ctx, keep, in, out, count, n, scratch); });
        return filter->bits != NULL ? dispatch_bits(ctx, filter->bits, of, in, out, count, n, scratch)
                                    : dispatch_if(ctx, filter, of, in, out, count, n, scratch);
    });
}

extern "C" spmv_status compact_count_write_cuda(spmv_context *ctx, const struct filter *filter, spmv_type of,
                                                const void *in, void *out, int64_t *count, int64_t n, void *scratch)
{
    return on_device(ctx, [=] {
        return dispatch_flagged(ctx, filter->mask, of,
                                [=](auto keep) { return compact_2_launch(ctx, keep, in, out, count, n, scratch); });
    });
}

/* numbers[i] = 1 where element i is kept, else 0; numbers[n] = 0 */
template <typename Keep>
__global__ void __launch_bounds__(block_threads) compact_map(Keep keep, int64_t *numbers, int64_t n)
{
    const int64_t stride = (int64_t)gridDim.x * block_threads;
    for (int64_t i = (int64_t)blockIdx.x * block_threads + threadIdx.x; i <= n; i += stride)
        numbers[i] = i < n ? keep.template bits<1>(i, n) : 0;
}

template <typename Keep> static spmv_status map_launch(spmv_context *ctx, Keep keep, int64_t *numbers, int64_t n)
{
    return launch(ctx, "compact_map", grid_for(n + 1, block_threads), block_threads, compact_map<Keep>, keep, numbers,
                  n);
}

static spmv_status dispatch_map(spmv_context *ctx, const struct filter *filter, spmv_type of, const void *in,
                                int64_t *numbers, int64_t n)
{
    if (filter->mask != NULL)
        return map_launch(ctx, keep_flagged<uint32_t>{filter->mask}, numbers, n);
    switch (of) {
#define CASE(TYPE, type, value, T, D, CLASS, ARG)                                                                      \
    case SPMV_##TYPE:                                                                                                  \
        return map_launch(ctx, keep_if<D>{predicate_by<D>(filter), (const D *)in}, numbers, n);
        SPMV_NUMBER_LIST(CASE, )
#undef CASE
    default:
        return no_kernel(ctx, of);
    }
}

extern "C" spmv_status filter_map_cuda(spmv_context *ctx, const struct filter *filter, spmv_type of, const void *in,
                                       int64_t *numbers, int64_t n)
{
    return on_device(ctx, [=] { return dispatch_map(ctx, filter, of, in, numbers, n); });
}
