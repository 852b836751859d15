/* The single-pass rungs in several shapes, by name: to choose a shape by measurement, and to test
 * the look-back under delays.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOOKBACK_RUNGS_H
#define LOOKBACK_RUNGS_H

#include "core/backend.h"

/* Arguments as in the table of backends. Built for add of f32 and f64 and for last of i32, which
 * does not commute; other pairs return SPMV_ERROR_TYPE. scratch: lookback_rung_scratch bytes. */
struct lookback_rung {
    const char *name;
    spmv_status (*scan)(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const void *in, void *out, int64_t n,
                        void *scratch);
    spmv_status (*segscan)(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const spmv_segments *, const void *in,
                           void *out, int64_t n, void *scratch);
    spmv_status (*segreduce)(spmv_context *, spmv_op, spmv_type, const spmv_segments *, const void *in, void *out,
                             int64_t n, void *scratch);
};

/*   chunks        reduce, then scan (scan_3_chunks.cuh)
 *   lookback      the default shapes
 *   pipeline      the pipelined rungs; pipeline-b: in another shape
 *   small...      small tiles, so that there are many
 *   delayed...    small tiles, with new random delays in every call */
extern const struct lookback_rung lookback_rungs[];
extern const int lookback_rungs_count;

/* Scratch bytes that suffice for every rung, for n elements in count segments. */
int64_t lookback_rung_scratch(spmv_type type, int64_t n, int64_t count);

#endif
