/* What the calls on host arrays share: their options, the checks of arguments, the carry.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/pieces.h"

#include "core/backend.h"

void spmv_pieces_options_init(spmv_pieces_options *options, size_t size)
{
    const spmv_pieces_options defaults = {.size = sizeof defaults};
    result_write(options, size, &defaults, sizeof defaults);
}

spmv_status pieces_check(spmv_context *ctx, struct host_pass *pass, const void *host_out,
                         const spmv_pieces_options *options)
{
    const char *const what = pass->what;
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    spmv_pieces_options o;
    spmv_pieces_options_init(&o, sizeof o);
    if (options != NULL && !options_read(&o, sizeof o, options))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "%s: options have %zu bytes, this library expects %zu: initialize them with "
                            "spmv_pieces_options_init",
                            what, options->size, sizeof o);
    if (!spmv_op_takes(pass->op, pass->type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: no operator %s for type %s", what, spmv_op_name(pass->op),
                            spmv_type_name(pass->type));
    if (pass->n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: n = %lld is negative", what, (long long)pass->n);
    if (o.piece_bytes < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: pieces of %lld bytes", what, (long long)o.piece_bytes);
    if (pass->n > 0 && (pass->host_in == NULL || host_out == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL", what,
                            pass->host_in == NULL ? "host_in" : "host_out");
    pass->size = (int64_t)spmv_type_size(pass->type);
    pass->piece_bytes = o.piece_bytes;
    return SPMV_OK;
}

spmv_status pieces_run(spmv_context *ctx, const struct host_pass *pass)
{
    _Alignas(16) char identity[64];
    const spmv_status st = spmv_op_identity(pass->op, pass->type, identity);
    struct host_pass p = *pass;
    p.host_carry = identity;
    return st != SPMV_OK ? st : ctx->backend->host_pass(ctx, &p);
}
