/* The rungs of reduce on CUDA, for every operator and type: the list.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "reduce_5_shuffles.cuh"
#include "reduce_ladder.cuh"

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

static spmv_status dispatch_shuffles(spmv_context *ctx, spmv_op by, spmv_type of, const void *in, void *out, int64_t n,
                                     void *scratch)
{
    switch ((int)by * SPMV_TYPE_LIMIT + (int)of) {
#define CASE(OP, op, TYPE, type, T, D, CLASS)                                                                          \
    case SPMV_##OP *SPMV_TYPE_LIMIT + SPMV_##TYPE:                                                                     \
        return reduce_5_launch<op_##op##_##type>(ctx, load_array<D>{(const D *)in}, n, (D *)out, scratch);
        SPMV_PAIR_LIST(CASE)
#undef CASE
    default:
        return context_fail(ctx, SPMV_ERROR_TYPE, "reduce: no kernel for operator %d and type %d", (int)by, (int)of);
    }
}

static spmv_status run_shuffles(spmv_context *ctx, enum reduce_finish, spmv_op by, spmv_type of, const void *in,
                                void *out, int64_t n, void *scratch)
{
    return on_device(ctx, [=] { return dispatch_shuffles(ctx, by, of, in, out, n, scratch); });
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
#define RUNG(name, reorders)                                                                                           \
    {#name, REDUCE_FINISH_DEVICE, reorders, reduce_scratch_of<reduce_##name>, run<reduce_##name>},                     \
    {                                                                                                                  \
#name ":host", REDUCE_FINISH_HOST, reorders, reduce_scratch_of < reduce_##name>, run < reduce_##name>          \
    }
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
