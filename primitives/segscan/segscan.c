/* segmented scan: the public front; the rungs by name.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/choice.h"
#include "primitives/segscan/segments.h"
#include "primitives/segscan/segscan_ladder.h"

/* Argument checks shared by all calls. what: the call's name. */
static spmv_status check(spmv_context *ctx, const char *what, spmv_scan_kind kind, spmv_op op, spmv_type type,
                         const void *in, const void *out, int64_t n)
{
    const spmv_status st = scan_check(ctx, what, kind, op, type, n);
    if (st != SPMV_OK)
        return st;
    if (n > 0 && (in == NULL || out == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL though n = %lld", what, in == NULL ? "in" : "out",
                            (long long)n);
    return SPMV_OK;
}

spmv_status spmv_segscan(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type,
                         const spmv_segments *segments, const void *in, void *out, int64_t n)
{
    spmv_status st = SPMV_OK;
    void *scratch = NULL;
    TRY(check(ctx, "spmv_segscan", kind, op, type, in, out, n));
    TRY(segments_check(ctx, "spmv_segscan", segments, n));
    if (n == 0)
        goto done;
    TRY(context_scratch(ctx, ctx->backend->segscan_scratch(ctx, type, segments, n), &scratch));
    TRY(ctx->backend->segscan(ctx, kind, op, type, segments, in, out, n, scratch));
done:
    return st;
}

/* ---------------------------------------------------------------- by name */

const char *spmv_segscan_rung_name(spmv_backend backend, int index)
{
    const struct backend_table *const table = backend_find(backend);
    const struct scan_rung *const rungs = table != NULL ? table->segscan_rungs() : NULL;
    return names_at(rungs, sizeof *rungs, index);
}

/* Finds the rung in a table, checks all arguments and sets the block of the request. */
static spmv_status choose(spmv_context *ctx, const char *what, const struct scan_rung *rungs, const char *name,
                          struct scan_request *r, const struct scan_rung **found)
{
    spmv_status st = scan_rung_find(ctx, what, rungs, name, found, &r->block);
    if (st == SPMV_OK)
        st = check(ctx, what, r->kind, r->op, r->type, r->in, r->out, r->n);
    if (st == SPMV_OK)
        st = scan_rung_check_most(ctx, what, *found, r->n);
    if (st == SPMV_OK && r->n > 0 && r->flags == NULL)
        st = context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: flags is NULL though n = %lld", what, (long long)r->n);
    r->block = scan_block_for(r->n, r->block);
    return st;
}

spmv_status spmv_segscan_rung(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op, spmv_type type,
                              const uint8_t *flags, const void *in, void *out, int64_t n)
{
    const struct scan_rung *found = NULL;
    struct scan_request request = {
        .form = SCAN_ALL, .kind = kind, .op = op, .type = type, .in = in, .flags = flags, .out = out, .n = n};
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (choice_is_auto(rung)) {
        const spmv_segments segments = segments_of_request(&request);
        return spmv_segscan(ctx, kind, op, type, &segments, in, out, n);
    }
    spmv_status st = SPMV_OK;
    TRY(choose(ctx, "spmv_segscan_rung", ctx->backend->segscan_rungs(), rung, &request, &found));
    if (n == 0)
        goto done;
    TRY(context_scratch(ctx, found->scratch(ctx, &request), &request.scratch));
    TRY(found->run(ctx, &request));
done:
    return st;
}

spmv_status spmv_segscan_trace(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op, spmv_type type,
                               const uint8_t *host_flags, const void *host_in, void *host_out, int64_t n,
                               spmv_trace_fn trace, void *user)
{
    static const char what[] = "spmv_segscan_trace";
    const struct scan_rung *found = NULL;
    struct scan_request request = {.form = SCAN_ALL,
                                   .kind = kind,
                                   .op = op,
                                   .type = type,
                                   .in = host_in,
                                   .flags = host_flags,
                                   .out = host_out,
                                   .n = n};
    spmv_status st = SPMV_OK;
    TRY(choose(ctx, what, segscan_rungs_ref(), choice_is_auto(rung) ? "blelloch" : rung, &request, &found));
    if (trace == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: trace is NULL", what);
    if (n == 0)
        goto done;
    TRY(host_alloc(ctx, found->scratch(ctx, &request), "the pairs of a segmented scan", &request.scratch));
    TRY(segscan_trace_host(ctx, found, &request, trace, user));
done:
    host_free(request.scratch);
    return st;
}
