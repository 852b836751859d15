/* The list of the rungs of reduce on CUDA, for every operator and type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/reduce/reduce_5_shuffles.cuh"
#include "primitives/reduce/reduce_ladder.cuh"

template <template <typename> class Rung>
static spmv_status run(spmv_context *ctx, enum reduce_finish finish, spmv_op by, spmv_type of, const void *in,
                       void *out, int64_t n, void *scratch)
{
    const int64_t few = finish == REDUCE_FINISH_HOST ? REDUCE_FEW : 1;
    steps_on_gpu gpu = {ctx};
    reduce_some_left left = {};
    const spmv_status st =
        on_device(ctx, [&] { return reduce_on<Rung>(gpu, ctx, by, of, in, out, n, scratch, few, &left); });
    return st != SPMV_OK || finish == REDUCE_FINISH_DEVICE
               ? st
               : reduce_finish_on_host(ctx, by, of, left.sums, left.count, out);
}

static spmv_status run_shuffles(spmv_context *ctx, enum reduce_finish, spmv_op by, spmv_type of, const void *in,
                                void *out, int64_t n, void *scratch)
{
    return on_device(ctx, [=] {
        return with_op(ctx, "reduce", by, of, [=](auto op) {
            using T = typename decltype(op)::type;
            return reduce_5_launch<decltype(op)>(ctx, load_array<T>{(const T *)in}, n, (T *)out, scratch);
        });
    });
}

static int64_t scratch_shuffles(const spmv_context *, spmv_type type, int64_t)
{
    return REDUCE_5_SCRATCH_ELEMENTS * (int64_t)spmv_type_size(type);
}

static spmv_status run_packs(spmv_context *ctx, enum reduce_finish, spmv_op by, spmv_type of, const void *in, void *out,
                             int64_t n, void *scratch)
{
    return reduce_cuda(ctx, by, of, in, out, n, scratch);
}

static_assert((int)REDUCE_GRID <= (int)REDUCE_FEW, "the results of the chunked rung are few");

/* A rung with its two ways to finish. */
// clang-format off
#define RUNG(name, reorders)                                                                                           \
    {#name, REDUCE_FINISH_DEVICE, reorders, reduce_scratch_of<reduce_##name>, run<reduce_##name>},                     \
    {#name ":host", REDUCE_FINISH_HOST, reorders, reduce_scratch_of<reduce_##name>, run<reduce_##name>}
// clang-format on

static const struct reduce_rung rungs[] = {
    RUNG(tree, false),
    RUNG(divergent, false),
    RUNG(sequential, true),
    RUNG(chunked, true),
    {"atomic", REDUCE_FINISH_DEVICE, true, reduce_scratch_of<reduce_atomic>, run<reduce_atomic>},
    {"shuffles", REDUCE_FINISH_DEVICE, false, scratch_shuffles, run_shuffles},
    {"packs", REDUCE_FINISH_DEVICE, false, reduce_scratch_cuda, run_packs},
    {NULL, REDUCE_FINISH_DEVICE, false, NULL, NULL}};

extern "C" const struct reduce_rung *reduce_rungs_cuda(void)
{
    return rungs;
}
