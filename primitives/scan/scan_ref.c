/* scan, the definition: from left to right.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/loops/ops.h"
#include "primitives/map/map_loops.h"

int64_t scan_scratch_ref(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    (void)type;
    (void)n;
    return 0;
}

#define TEMPLATE "primitives/scan/scan_ref_typed.h"
#include "core/each/each_pair.h"

spmv_status scan_ref(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *in, void *out,
                     int64_t n, void *scratch)
{
    (void)ctx;
    (void)scratch;
#define ENTRY(pair) scan_##pair
    static void (*const run[SPMV_OP_LIMIT][SPMV_TYPE_LIMIT])(spmv_scan_kind, const void *, void *, int64_t) =
        PAIR_TABLE;
#undef ENTRY
    run[op][type](kind, in, out, n);
    return SPMV_OK;
}

spmv_status map_scan_ref(spmv_context *ctx, spmv_function function, spmv_scan_kind kind, spmv_op op, spmv_type type,
                         const void *in, void *out, int64_t n, void *scratch)
{
    map_loop_function(function, type)(in, out, 0, n);
    return scan_ref(ctx, kind, op, type, out, out, n, scratch);
}
