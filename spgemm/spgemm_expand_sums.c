/* The sums of the method "expand" on the host, and the choice of the backend.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "spgemm/spgemm_expand.h"

#define TEMPLATE "spgemm/spgemm_expand_typed.h"
#include "core/each/each_floating.h"

spmv_status spgemm_expand_sums(spmv_context *ctx, const struct spgemm_sums *sums)
{
    static void (*const run[SPMV_TYPE_LIMIT])(spmv_context *, const struct spgemm_sums *) = FLOATING_TABLE(expand_sums);
    if (context_on_device(ctx))
        return spgemm_expand_sums_cuda(ctx, sums);
    run[sums->type](ctx, sums);
    return SPMV_OK;
}
