/* The rungs of segmented scan by name: tables of rungs like those of scan (scan_ladder.h); their
 * requests have flags.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEGSCAN_LADDER_H
#define SEGSCAN_LADDER_H

#include "primitives/scan/scan_ladder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The segments of a request. */
static inline spmv_segments segments_of_request(const struct scan_request *r)
{
    const spmv_segments segments = {SPMV_SEGMENT_FLAGS, r->flags, 8, 0};
    return segments;
}

/* Runs a teaching rung on the host with a trace. rung: from segscan_rungs_ref(). All memory is host
 * memory. */
spmv_status segscan_trace_host(spmv_context *ctx, const struct scan_rung *rung, const struct scan_request *request,
                               spmv_trace_fn trace, void *user);

#ifdef __cplusplus
}
#endif

#endif
