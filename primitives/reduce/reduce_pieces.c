/* reduce of a host array that may exceed the context's memory: in pieces, from left to right.
 *
 * A unit of a piece is reduced together with the cell before it, which holds the carry. The result
 * is stored in the unit's last cell, which is no longer needed and is the carry of the next unit.
 * See scan_pieces.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "pieces.h"

static spmv_status run(spmv_context *ctx, const struct host_pass *p, void *cells, void *spare, int64_t n)
{
    spmv_status st = SPMV_OK;
    for (int64_t begin = 0; begin < n && st == SPMV_OK; begin += PIECE_UNIT) {
        const int64_t count = min_i64(n - begin, PIECE_UNIT);
        char *const unit = (char *)cells + begin * p->size;
        /* the result must not overlap the input; a scan of one element copies it, for every type */
        st = spmv_reduce(ctx, p->op, p->type, unit, spare, count + 1);
        if (st == SPMV_OK)
            st = spmv_scan(ctx, SPMV_INCLUSIVE, p->op, p->type, spare, unit + count * p->size, 1);
    }
    return st;
}

spmv_status spmv_reduce_host(spmv_context *ctx, spmv_op op, spmv_type type, const void *host_in, void *host_out,
                             int64_t n, const spmv_pieces_options *options)
{
    static const char what[] = "spmv_reduce_host";
    struct host_pass p = {.what = what,
                          .op = op,
                          .type = type,
                          .size = (int64_t)spmv_type_size(type),
                          .host_in = host_in,
                          .host_last = host_out,
                          .n = n,
                          .run = run};
    _Alignas(16) char identity[64];
    spmv_status st = pieces_check(ctx, what, op, type, host_in, host_out, n, options, &p.piece_bytes);
    if (st == SPMV_OK && host_out == NULL)
        st = context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: host_out is NULL", what);
    if (st != SPMV_OK)
        return st;
    if (n == 0)
        return spmv_op_identity(op, type, host_out);
    if (ctx->backend->host_pass == NULL) /* the context's memory is host memory */
        return spmv_reduce(ctx, op, type, host_in, host_out, n);
    st = spmv_op_identity(op, type, identity);
    p.host_carry = identity;
    return st != SPMV_OK ? st : ctx->backend->host_pass(ctx, &p);
}
