/* reduce of a host array that may exceed the context's memory: in pieces, from left to right.
 *
 * A grain of a piece is reduced together with the cell before it, which holds the carry. The result
 * is stored in the grain's last cell, which is no longer needed and is the carry of the next grain.
 * See scan_pieces.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/pieces.h"

static spmv_status run(spmv_context *ctx, const struct host_pass *p, void *cells, void *spare, int64_t n)
{
    spmv_status st = SPMV_OK;
    for (int64_t begin = 0; begin < n && st == SPMV_OK; begin += PIECE_GRAIN) {
        const int64_t count = min_i64(n - begin, PIECE_GRAIN);
        char *const grain = (char *)cells + begin * p->size;
        /* the result must not overlap the input; a scan of one element copies it, for every type */
        st = spmv_reduce(ctx, p->op, p->type, grain, spare, count + 1);
        if (st == SPMV_OK)
            st = spmv_scan(ctx, SPMV_INCLUSIVE, p->op, p->type, spare, grain + count * p->size, 1);
    }
    return st;
}

spmv_status spmv_reduce_host(spmv_context *ctx, spmv_op op, spmv_type type, const void *host_in, void *host_out,
                             int64_t n, const spmv_pieces_options *options)
{
    struct host_pass p = {.what = "spmv_reduce_host", .op = op, .type = type, .host_in = host_in, .n = n, .run = run};
    p.host_last = host_out;
    const spmv_status st = pieces_check(ctx, &p, host_out, options);
    if (st == SPMV_OK && n == 0)
        return host_out != NULL ? spmv_op_identity(op, type, host_out) : context_need(ctx, p.what, "host_out", NULL);
    if (st != SPMV_OK)
        return st;
    if (ctx->backend->host_pass == NULL) /* the context's memory is host memory */
        return spmv_reduce(ctx, op, type, host_in, host_out, n);
    return pieces_run(ctx, &p);
}
