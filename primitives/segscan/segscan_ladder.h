/* The rungs of segmented scan by name: tables of rungs as those of scan (scan_ladder.h), whose requests have flags.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEGSCAN_LADDER_H
#define SEGSCAN_LADDER_H

#include "scan_ladder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The segments of a request. */
static inline spmv_segments segments_of_request(const struct scan_request *r)
{
    const spmv_segments segments = {SPMV_SEGMENT_FLAGS, r->flags, 8, 0};
    return segments;
}

/* A teaching rung on the host, traced. rung: of segscan_rungs_ref(); memory of the request: the host's. */
spmv_status segscan_trace_host(spmv_context *ctx, const struct scan_rung *rung, const struct scan_request *request,
                               spmv_trace_fn trace, void *user);

#ifdef __cplusplus
}
#endif

#endif
