/* map: the public front. Checks the arguments once, then calls the backend.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"

static spmv_status check(spmv_context *ctx, const char *name, int64_t n, bool arrays)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: n = %lld is negative", name, (long long)n);
    if (n > 0 && !arrays)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: an array is NULL though n = %lld", name, (long long)n);
    return SPMV_OK;
}

spmv_status spmv_map(spmv_context *ctx, spmv_function function, spmv_type type, const void *in, void *out, int64_t n)
{
    if (!spmv_function_takes(function, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_map: no function %s for type %s", spmv_function_name(function),
                            spmv_type_name(type));
    const spmv_status st = check(ctx, "spmv_map", n, in != NULL && out != NULL);
    return st != SPMV_OK || n == 0 ? st : ctx->backend->map(ctx, function, type, in, out, n);
}

spmv_status spmv_map_binary(spmv_context *ctx, spmv_op op, spmv_type type, const void *a, const void *b, void *out,
                            int64_t n)
{
    if (!spmv_op_takes(op, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_map_binary: no operator %s for type %s", spmv_op_name(op),
                            spmv_type_name(type));
    const spmv_status st = check(ctx, "spmv_map_binary", n, a != NULL && b != NULL && out != NULL);
    return st != SPMV_OK || n == 0 ? st : ctx->backend->map_binary(ctx, op, type, a, b, out, n);
}

spmv_status spmv_map_scalar(spmv_context *ctx, spmv_op op, spmv_type type, const void *host_scalar, const void *in,
                            void *out, int64_t n)
{
    if (!spmv_op_takes(op, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_map_scalar: no operator %s for type %s", spmv_op_name(op),
                            spmv_type_name(type));
    const spmv_status st = check(ctx, "spmv_map_scalar", n, host_scalar != NULL && in != NULL && out != NULL);
    return st != SPMV_OK || n == 0 ? st : ctx->backend->map_scalar(ctx, op, type, host_scalar, in, out, n);
}

spmv_status spmv_map_index(spmv_context *ctx, spmv_type type, const void *host_first, const void *host_step, void *out,
                           int64_t n)
{
    if (!spmv_op_takes(SPMV_ADD, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_map_index: no sums for type %s", spmv_type_name(type));
    const spmv_status st = check(ctx, "spmv_map_index", n, host_first != NULL && out != NULL);
    return st != SPMV_OK || n == 0 ? st : ctx->backend->map_index(ctx, type, host_first, host_step, out, n);
}
