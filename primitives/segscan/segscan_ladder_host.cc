/* The teaching rungs of segmented scan on the backend ref (scan_ladder_host.cuh).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/scan/scan_ladder_host.cuh"
#include "primitives/segscan/segscan_ladder.cuh"

static const struct scan_rung rungs[] = {
    {"serial", 0, false, 0, scratch_with_segments<segscan_scratch_ref>, run_with_segments<segscan_ref>},
    SCAN_LADDER_ROWS_ON_HOST(segscan_ladder)};

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
    return ladder_trace<segscan_ladder>(ctx, index == 1 ? (int)LADDER_SEQUENTIAL : index - 2, request, tell, user);
}
