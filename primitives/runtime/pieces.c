/* Argument checks shared by the calls on host arrays, and their options.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pieces.h"

void spmv_pieces_options_init(spmv_pieces_options *options, size_t size)
{
    const spmv_pieces_options defaults = {.size = sizeof defaults};
    result_write(options, size, &defaults, sizeof defaults);
}

spmv_status pieces_check(spmv_context *ctx, const char *what, spmv_op op, spmv_type type, const void *host_in,
                         const void *host_out, int64_t n, const spmv_pieces_options *options, int64_t *piece_bytes)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    spmv_pieces_options o;
    spmv_pieces_options_init(&o, sizeof o);
    if (options != NULL && !options_read(&o, sizeof o, options))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "%s: options have %zu bytes, this library expects %zu: initialize them with "
                            "spmv_pieces_options_init",
                            what, options->size, sizeof o);
    if (!spmv_op_takes(op, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: no operator %s for type %s", what, spmv_op_name(op),
                            spmv_type_name(type));
    if (n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: n = %lld is negative", what, (long long)n);
    if (o.piece_bytes < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: pieces of %lld bytes", what, (long long)o.piece_bytes);
    if (n > 0 && (host_in == NULL || host_out == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL", what, host_in == NULL ? "host_in" : "host_out");
    *piece_bytes = o.piece_bytes;
    return SPMV_OK;
}
