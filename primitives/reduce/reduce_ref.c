/* reduce, the definition: folds from left to right.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/loops/host_tiles.h"
#include "core/loops/loops.h"
#include "core/loops/ops.h"
#include "primitives/map/map_loops.h"
#include "primitives/reduce/reduce_ladder.h"

int64_t reduce_scratch_ref(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    (void)type;
    (void)n;
    return 0;
}

#define TEMPLATE "primitives/reduce/reduce_ref_typed.h"
#include "core/each/each_pair.h"

spmv_status reduce_ref(spmv_context *ctx, spmv_op op, spmv_type type, const void *in, void *out, int64_t n,
                       void *scratch)
{
    (void)ctx;
    (void)scratch;
#define ENTRY(pair) reduce_##pair
    static void (*const run[SPMV_OP_LIMIT][SPMV_TYPE_LIMIT])(const void *, void *, int64_t) = PAIR_TABLE;
#undef ENTRY
    run[op][type](in, out, n);
    return SPMV_OK;
}

/* Applies the function to each element, then the operator. */
spmv_status map_reduce_ref(spmv_context *ctx, spmv_function function, spmv_op op, spmv_type type, const void *in,
                           void *out, int64_t n, void *scratch)
{
    (void)ctx;
    (void)scratch;
    const struct op_loops *const loops = op_loops(op, type);
    map_loop *const map = map_loop_function(function, type);
    union any_element mapped;
    map(in, out, 0, 1);
    for (int64_t i = 1; i < n; i++) {
        map(element(in, loops->size, i), &mapped, 0, 1);
        loops->combine(out, &mapped, out);
    }
    return SPMV_OK;
}
