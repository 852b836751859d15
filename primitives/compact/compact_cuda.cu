/* compact on CUDA: the rungs with flags for every element size and with predicates for every type;
 * and the map of rung 1.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/dispatch_words.cuh"
#include "primitives/compact/compact_2_count_write.cuh"
#include "primitives/compact/compact_3_pipeline.cuh"

extern "C" int64_t compact_scratch_cuda(const spmv_context *ctx, spmv_type of, int64_t n)
{
    (void)ctx;
    (void)of;
    (void)n;
    return compact_2_scratch_elements * (int64_t)sizeof(int64_t);
}

/* Rung 3 if the device can run it, else rung 2. */
template <typename Keep>
static spmv_status in_fewest_passes(spmv_context *ctx, Keep keep, const void *in, void *out, int64_t *count, int64_t n,
                                    void *scratch)
{
    return engine_there(ctx) ? compact_3_launch(ctx, keep, in, out, count, n)
                             : compact_2_launch(ctx, keep, in, out, count, n, scratch);
}

extern "C" spmv_status compact_cuda(spmv_context *ctx, const struct filter *filter, spmv_type of, const void *in,
                                    void *out, int64_t *count, int64_t n, void *scratch)
{
    return on_device(ctx, [=] {
        const auto run = [=](auto keep) { return in_fewest_passes(ctx, keep, in, out, count, n, scratch); };
        if (filter->mask != NULL)
            return with_words(ctx, "compact", of,
                              [=](auto element) { return run(keep_flagged<decltype(element)>{filter->mask}); });
        if (filter->bits != NULL)
            return with_words(ctx, "compact", of,
                              [=](auto element) { return run(keep_bits<decltype(element)>{filter->bits}); });
        return with_number(ctx, "compact", of, [=](auto number) {
            using T = typename decltype(number)::type;
            return run(keep_if<T>{predicate_by<T>(filter), (const T *)in});
        });
    });
}

extern "C" spmv_status compact_count_write_cuda(spmv_context *ctx, const struct filter *filter, spmv_type of,
                                                const void *in, void *out, int64_t *count, int64_t n, void *scratch)
{
    return on_device(ctx, [=] {
        return with_words(ctx, "compact", of, [=](auto element) {
            return compact_2_launch(ctx, keep_flagged<decltype(element)>{filter->mask}, in, out, count, n, scratch);
        });
    });
}

/* numbers[i] = 1 if element i is kept, else 0; numbers[n] = 0 */
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

extern "C" spmv_status filter_map_cuda(spmv_context *ctx, const struct filter *filter, spmv_type of, const void *in,
                                       int64_t *numbers, int64_t n)
{
    return on_device(ctx, [=] {
        if (filter->mask != NULL)
            return map_launch(ctx, keep_flagged<uint32_t>{filter->mask}, numbers, n);
        return with_number(ctx, "compact", of, [=](auto number) {
            using T = typename decltype(number)::type;
            return map_launch(ctx, keep_if<T>{predicate_by<T>(filter), (const T *)in}, numbers, n);
        });
    });
}
