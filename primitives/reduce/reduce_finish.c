/* Finishes a reduce on the host when few partial results are left.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/loops.h"
#include "primitives/reduce/reduce_ladder.h"

spmv_status reduce_finish_on_host(spmv_context *ctx, spmv_op op, spmv_type type, const void *sums, int64_t count,
                                  void *out)
{
    union any_element few[REDUCE_FEW], all;
    const struct op_loops *const loops = op_loops(op, type);
    const spmv_status st = ctx->backend->download(ctx, sums, few, count * (int64_t)loops->size);
    if (st != SPMV_OK)
        return st;
    loops->fold(few, 0, count, &all);
    return ctx->backend->upload(ctx, &all, out, (int64_t)loops->size);
}
