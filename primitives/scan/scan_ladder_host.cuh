/* The teaching rungs of scan and segmented scan on the host, with and without a trace. Blocks run one
 * after the other, and the threads of each step run in a shuffled order (steps.cuh). Both forms run
 * the same code; without a trace no step is reported.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_LADDER_HOST_CUH
#define SPMV_SCAN_LADDER_HOST_CUH

#include "device/steps_trace.cuh"
#include "primitives/scan/scan_ladder.cuh"

/* Runs a rung and calls tell, if it is not NULL, after each step. */
template <typename Ladder>
spmv_status ladder_trace(spmv_context *ctx, int number, const scan_request *r, spmv_trace_fn tell, void *user)
{
    static const uint64_t order = 0x7363616e; /* seed of the shuffled order; results do not depend on it */
    steps_on_host<tell_caller> host{order, {tell, user, r->type}};
    steps_count::applied() = 0;
    return Ladder::run(ctx, number, host, r);
}

template <typename Ladder, int number> spmv_status ladder_on_host(spmv_context *ctx, const scan_request *r)
{
    return ladder_trace<Ladder>(ctx, number, r, NULL, NULL);
}

/* The last rows of a table of rungs: the sequential rung, the others of the ladder, and the end. */
#define SCAN_LADDER_ROWS_ON_HOST(LADDER)                                                                               \
    {"sequential", 0, false, 0, ladder_scratch<LADDER, LADDER_SEQUENTIAL>, ladder_on_host<LADDER, LADDER_SEQUENTIAL>}, \
        SCAN_LADDER_ROWS(LADDER, ladder_on_host)                                                                       \
    {                                                                                                                  \
        NULL, 0, false, 0, NULL, NULL                                                                                  \
    }

#endif
