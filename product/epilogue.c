/* The epilogue of methods without one of their own: after the product, the primitives' dot and
 * axpby run on y, with scratch memory that the plan owns. Primitives have no complex types, so
 * complex vectors use the kernels of epilogue_cuda.cu. On the host, the methods with complex
 * products have their own epilogues.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "product/plan_internal.h"

spmv_status epilogue_prepare(spmv_plan *plan)
{
    const spmv_context *ctx = plan->ctx;
    int64_t bytes = 0;
    if ((plan->method->can & METHOD_EPILOGUE) != 0 || plan->a.rows == 0 || type_is_half(plan->type))
        return SPMV_OK;
    bytes = type_is_complex(plan->type) ? epilogue_scratch_cuda(plan)
                                        : ctx->backend->dot_scratch(ctx, plan->type, plan->a.rows);
    return plan_alloc(plan, bytes, &plan->epilogue);
}

spmv_status epilogue_behind(const spmv_plan *plan, const void *y, const spmv_epilogue *epilogue)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = plan->ctx;
    if (type_is_complex(plan->type))
        return epilogue_cuda(plan, y, epilogue, plan->epilogue);
    if (epilogue->z != NULL)
        TRY(ctx->backend->map_axpby(ctx, plan->type, epilogue->gamma, y, NULL, epilogue->z, plan->a.rows));
    if (epilogue->w != NULL)
        TRY(ctx->backend->dot(ctx, plan->type, epilogue->w, y, epilogue->dot, plan->a.rows, plan->epilogue));
done:
    return st;
}
