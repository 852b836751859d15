/* The teaching rungs of scan on the backend ref, with and without a trace. Blocks run one after the
 * other, and the threads of each step run in a shuffled order (steps.cuh). Both forms run the same
 * code; without a trace no step is reported.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "scan_ladder.cuh"
#include "steps_trace.cuh"

/* Seed of the shuffled order; results do not depend on it. */
static const uint64_t order = 0x7363616e;

template <int number> static int64_t scratch_of(const spmv_context *, const scan_request *r)
{
    return scan_ladder_scratch(number, r);
}

template <int number> static spmv_status run(spmv_context *ctx, const scan_request *r)
{
    steps_on_host<tell_caller> host{order, {NULL, NULL, r->type}};
    return scan_ladder_dispatch(ctx, number, host, r);
}

static const struct scan_rung rungs[] = {
    {"sequential", 0, false, 0, scratch_of<LADDER_SEQUENTIAL>, run<LADDER_SEQUENTIAL>},
#define ROW(number, name, block, by_block, most) {name, block, by_block, most, scratch_of<number>, run<number>},
    SCAN_LADDER(ROW)
#undef ROW
        {NULL, 0, false, 0, NULL, NULL},
};

extern "C" const struct scan_rung *scan_rungs_ref(void)
{
    return rungs;
}

extern "C" spmv_status scan_trace_host(spmv_context *ctx, const struct scan_rung *rung,
                                       const struct scan_request *request, spmv_trace_fn tell, void *user)
{
    steps_on_host<tell_caller> host{order, {tell, user, request->type}};
    const int number = rung == rungs ? (int)LADDER_SEQUENTIAL : (int)(rung - rungs) - 1;
    steps_count::applied() = 0;
    return scan_ladder_dispatch(ctx, number, host, request);
}
