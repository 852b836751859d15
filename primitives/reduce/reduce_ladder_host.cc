/* The teaching rungs of reduce on the backend ref, with and without a trace. Blocks run one after
 * the other, and the threads of each step run in a shuffled order (steps.cuh). Both forms run the
 * same code; without a trace no step is reported.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/steps_trace.cuh"
#include "primitives/reduce/reduce_ladder.cuh"

/* Seed of the shuffled order; results do not depend on it. */
static const uint64_t order = 0x72656475;

using host_with_trace = steps_on_host<tell_caller>;

template <template <typename> class Rung>
static spmv_status run(spmv_context *ctx, enum reduce_finish, spmv_op op, spmv_type type, const void *in, void *out,
                       int64_t n, void *scratch)
{
    host_with_trace host = {order, {NULL, NULL, type}};
    reduce_some_left left = {};
    return reduce_on<Rung>(host, ctx, op, type, in, out, n, scratch, 1, &left);
}

static spmv_status run_serial(spmv_context *ctx, enum reduce_finish, spmv_op op, spmv_type type, const void *in,
                              void *out, int64_t n, void *scratch)
{
    return reduce_ref(ctx, op, type, in, out, n, scratch);
}

using traced = spmv_status(host_with_trace &, spmv_context *, spmv_op, spmv_type, const void *, void *, int64_t, void *,
                           int64_t, reduce_some_left *);

/* X(name, reorders) */
#define RUNGS(X)                                                                                                       \
    X(tree, false)                                                                                                     \
    X(divergent, false)                                                                                                \
    X(sequential, true)                                                                                                \
    X(chunked, true)                                                                                                   \
    X(atomic, true)

static const struct reduce_rung rungs[] = {{"serial", REDUCE_FINISH_DEVICE, false, reduce_scratch_ref, run_serial},
#define ROW(name, reorders)                                                                                            \
    {#name, REDUCE_FINISH_DEVICE, reorders, reduce_scratch_of<reduce_##name>, run<reduce_##name>},
                                           RUNGS(ROW)
#undef ROW
                                               {NULL, REDUCE_FINISH_DEVICE, false, NULL, NULL}};

static traced *const with_trace[] = {NULL, /* it has no steps */
#define ROW(name, reorders) reduce_on<reduce_##name, host_with_trace>,
                                     RUNGS(ROW)
#undef ROW
};

extern "C" const struct reduce_rung *reduce_rungs_ref(void)
{
    return rungs;
}

extern "C" spmv_status reduce_trace_host(spmv_context *ctx, const struct reduce_rung *rung, spmv_op op, spmv_type type,
                                         const void *in, void *out, int64_t n, void *scratch, spmv_trace_fn trace,
                                         void *user)
{
    traced *const run_traced = with_trace[rung - rungs];
    if (run_traced == NULL)
        return context_fail(ctx, SPMV_ERROR_METHOD, "reduce, rung %s, has no steps to show", rung->name);
    host_with_trace host = {order, {trace, user, type}};
    reduce_some_left left = {};
    steps_count::applied() = 0;
    return run_traced(host, ctx, op, type, in, out, n, scratch, 1, &left);
}
