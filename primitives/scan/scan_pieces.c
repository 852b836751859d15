/* scan of a host array that may exceed the context's memory: in pieces, from left to right.
 *
 * Both kinds are the inclusive scan of the cells carry, x_0, x_1, ..., x_{m-1}: the inclusive
 * results start after the carry, the exclusive ones one cell earlier, and the last cell is the next
 * carry. A piece of several grains is scanned grain by grain, each starting with the last cell of the
 * one before. So carries need no extra pass: n operations, and 2 n v bytes moved on the device
 * besides the copies. The transfers take most of the time.
 * Source: G. E. Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990, section 1.2
 * (the part of one processor).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/pieces.h"

static spmv_status run(spmv_context *ctx, const struct host_pass *p, void *cells, void *spare, int64_t n)
{
    (void)spare;
    spmv_status st = SPMV_OK;
    for (int64_t begin = 0; begin < n && st == SPMV_OK; begin += PIECE_GRAIN) {
        char *const grain = (char *)cells + begin * p->size;
        st = spmv_scan(ctx, SPMV_INCLUSIVE, p->op, p->type, grain, grain, min_i64(n - begin, PIECE_GRAIN) + 1);
    }
    return st;
}

spmv_status spmv_scan_host(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *host_in,
                           void *host_out, int64_t n, const spmv_pieces_options *options)
{
    struct host_pass p = {.what = "spmv_scan_host", .op = op, .type = type, .host_in = host_in, .n = n, .run = run};
    p.host_out = host_out;
    p.out_cell = kind == SPMV_INCLUSIVE;
    spmv_status st = pieces_check(ctx, &p, host_out, options);
    if (st == SPMV_OK && kind != SPMV_INCLUSIVE && kind != SPMV_EXCLUSIVE)
        st = context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %d is not a kind of scan", p.what, (int)kind);
    if (st != SPMV_OK || n == 0)
        return st;
    if (ctx->backend->host_pass == NULL) /* the context's memory is host memory */
        return spmv_scan(ctx, kind, op, type, host_in, host_out, n);
    return pieces_run(ctx, &p);
}
