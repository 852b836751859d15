/* The rung of compact that is built from the primitives of any backend.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPACT_RUNGS_H
#define COMPACT_RUNGS_H

#include "core/backend.h"

#define COMPACT_MAP_SCAN_SCATTER "map-scan-scatter"

/* As spmv_compact, n > 0. */
spmv_status compact_map_scan_scatter(spmv_context *ctx, const struct filter *filter, spmv_type type, const void *in,
                                     void *out, int64_t *count, int64_t n);

#endif
