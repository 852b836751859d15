/* reduce, the definition: from left to right.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "host_tiles.h"
#include "loops.h"

int64_t reduce_scratch_ref(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    (void)type;
    (void)n;
    return 0;
}

spmv_status reduce_ref(spmv_context *ctx, spmv_op op, spmv_type type, const void *in, void *out, int64_t n,
                       void *scratch)
{
    (void)ctx;
    (void)scratch;
    const struct op_loops *loops = op_loops(op, type);
    memcpy(out, in, loops->size);
    for (int64_t i = 1; i < n; i++)
        loops->combine(out, element(in, loops->size, i), out);
    return SPMV_OK;
}
