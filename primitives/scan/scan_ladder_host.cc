/* The teaching rungs of scan on the backend ref (scan_ladder_host.cuh).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/scan/scan_ladder_host.cuh"

static const struct scan_rung rungs[] = {SCAN_LADDER_ROWS_ON_HOST(scan_ladder)};

extern "C" const struct scan_rung *scan_rungs_ref(void)
{
    return rungs;
}

extern "C" spmv_status scan_trace_host(spmv_context *ctx, const struct scan_rung *rung,
                                       const struct scan_request *request, spmv_trace_fn tell, void *user)
{
    const int number = rung == rungs ? (int)LADDER_SEQUENTIAL : (int)(rung - rungs) - 1;
    return ladder_trace<scan_ladder>(ctx, number, request, tell, user);
}
