/* The teaching rungs of segmented scan on the backend ref, with and without a trace. Blocks run one
 * after the other, and the threads of each step run in a shuffled order (steps.cuh). Both forms run
 * the same code; without a trace no step is reported.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "segscan_ladder.cuh"
#include "steps_trace.cuh"

/* Seed of the shuffled order; results do not depend on it. */
static const uint64_t order = 0x73656773;

template <int number> static int64_t scratch_of(const spmv_context *, const scan_request *r)
{
    return segscan_ladder_scratch(number, r);
}

template <int number> static spmv_status run(spmv_context *ctx, const scan_request *r)
{
    steps_on_host<tell_caller> host{order, {NULL, NULL, r->type}};
    return segscan_ladder_dispatch(ctx, number, host, r);
}

static int64_t serial_scratch(const spmv_context *ctx, const scan_request *r)
{
    const spmv_segments segments = segments_of_request(r);
    return segscan_scratch_ref(ctx, r->type, &segments, r->n);
}

static spmv_status run_serial(spmv_context *ctx, const scan_request *r)
{
    const spmv_segments segments = segments_of_request(r);
    return segscan_ref(ctx, r->kind, r->op, r->type, &segments, r->in, r->out, r->n, r->scratch);
}

static const struct scan_rung rungs[] = {
    {"serial", 0, false, 0, serial_scratch, run_serial},
    {"sequential", 0, false, 0, scratch_of<LADDER_SEQUENTIAL>, run<LADDER_SEQUENTIAL>},
#define ROW(number, name, block, by_block, most) {name, block, by_block, most, scratch_of<number>, run<number>},
    SCAN_LADDER(ROW)
#undef ROW
        {NULL, 0, false, 0, NULL, NULL},
};

extern "C" const struct scan_rung *segscan_rungs_ref(void)
{
    return rungs;
}

extern "C" spmv_status segscan_trace_host(spmv_context *ctx, const struct scan_rung *rung,
                                          const struct scan_request *request, spmv_trace_fn tell, void *user)
{
    const int index = (int)(rung - rungs);
    if (index == 0)
        return context_fail(ctx, SPMV_ERROR_METHOD, "segmented scan, rung %s, has no steps to show", rung->name);
    steps_on_host<tell_caller> host{order, {tell, user, request->type}};
    steps_count::applied() = 0;
    return segscan_ladder_dispatch(ctx, index == 1 ? (int)LADDER_SEQUENTIAL : index - 2, host, request);
}
