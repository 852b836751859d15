/* scan, the definition: from left to right.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "loops.h"

int64_t scan_scratch_ref(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    (void)type;
    (void)n;
    return 0;
}

spmv_status scan_ref(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *in, void *out,
                     int64_t n, void *scratch)
{
    (void)ctx;
    (void)scratch;
    op_loops(op, type)->scan(kind, NULL, in, out, n);
    return SPMV_OK;
}
