/* The teaching rungs of scan on the backend ref: blocks one after the other, the threads of each step in a shuffled
 * order; and the same with a trace.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "scan_ladder.cuh"

/* Any; results do not depend on it. */
static const uint64_t order = 0x7363616e;

template <int number> static int64_t scratch_of(const spmv_context *, const scan_request *r)
{
    return scan_ladder_scratch(number, r);
}

template <int number> static spmv_status run(spmv_context *ctx, const scan_request *r)
{
    steps_on_host<> host{order, {}};
    return scan_ladder_dispatch<as_it_is>(ctx, number, host, r);
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

/* Hands each step to the caller's function. */
struct tell_caller {
    spmv_trace_fn tell;
    void *user;
    spmv_type type;

    template <typename Program>
    void operator()(const char *launch, const Program &program, int64_t block, int step,
                    const typename Program::shared &shared) const
    {
        char label[128];
        int count = 0;
        program.label(step, label, sizeof label);
        spmv_trace told = {};
        told.launch = launch;
        told.label = label;
        told.block = block;
        told.step = step;
        told.host_cells = program.cells(step, block, shared, &count);
        told.n = count;
        told.type = type;
        told.operations = steps_count::applied();
        tell(&told, user);
    }
};

extern "C" spmv_status scan_trace_host(spmv_context *ctx, const struct scan_rung *rung,
                                       const struct scan_request *request, spmv_trace_fn tell, void *user)
{
    steps_on_host<tell_caller> host{order, {tell, user, request->type}};
    const int number = rung == rungs ? (int)LADDER_SEQUENTIAL : (int)(rung - rungs) - 1;
    steps_count::applied() = 0;
    return scan_ladder_dispatch<counted>(ctx, number, host, request);
}
