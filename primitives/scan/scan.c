/* scan: the public front; the rungs by name.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "core/backend.h"
#include "core/choice.h"
#include "primitives/scan/scan_ladder.h"

/* Argument checks shared by all calls. what: the call's name. */
spmv_status scan_check(spmv_context *ctx, const char *what, spmv_scan_kind kind, spmv_op op, spmv_type type, int64_t n)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (!spmv_op_takes(op, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: no operator %s for type %s", what, spmv_op_name(op),
                            spmv_type_name(type));
    if (kind != SPMV_INCLUSIVE && kind != SPMV_EXCLUSIVE)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %d is not a kind of scan", what, (int)kind);
    if (n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: n = %lld is negative", what, (long long)n);
    return SPMV_OK;
}

/* Checks the arguments and gets the scratch. */
static spmv_status prepare(spmv_context *ctx, const char *what, spmv_scan_kind kind, spmv_op op, spmv_type type,
                           const void *in, const void *out, int64_t n, void **scratch)
{
    const spmv_status st = scan_check(ctx, what, kind, op, type, n);
    if (st != SPMV_OK || n == 0)
        return st;
    if (in == NULL || out == NULL)
        return context_need(ctx, what, in == NULL ? "in" : "out", NULL);
    return context_scratch(ctx, ctx->backend->scan_scratch(ctx, type, n), scratch);
}

spmv_status spmv_scan(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *in, void *out,
                      int64_t n)
{
    void *scratch = NULL;
    const spmv_status st = prepare(ctx, "spmv_scan", kind, op, type, in, out, n, &scratch);
    return st != SPMV_OK || n == 0 ? st : ctx->backend->scan(ctx, kind, op, type, in, out, n, scratch);
}

spmv_status spmv_map_scan(spmv_context *ctx, spmv_function function, spmv_scan_kind kind, spmv_op op, spmv_type type,
                          const void *in, void *out, int64_t n)
{
    void *scratch = NULL;
    if (!spmv_function_takes(function, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_map_scan: no function %s for type %s",
                            spmv_function_name(function), spmv_type_name(type));
    const spmv_status st = prepare(ctx, "spmv_map_scan", kind, op, type, in, out, n, &scratch);
    return st != SPMV_OK || n == 0 ? st : ctx->backend->map_scan(ctx, function, kind, op, type, in, out, n, scratch);
}

/* ---------------------------------------------------------------- by name */

const char *spmv_scan_rung_name(spmv_backend backend, int index)
{
    const struct backend_table *const table = backend_find(backend);
    const struct scan_rung *const rungs = table != NULL ? table->scan_rungs() : NULL;
    return names_at(rungs, sizeof *rungs, index);
}

static bool is_block(int64_t block)
{
    return block >= SCAN_BLOCK_LEAST && block <= SCAN_BLOCK_MOST && (block & (block - 1)) == 0;
}

spmv_status scan_rung_find(spmv_context *ctx, const char *what, const struct scan_rung *rungs, const char *name,
                           const struct scan_rung **found, int *block)
{
    char own[64]; /* without the block size; a longer name is unknown */
    const size_t length = strcspn(name, ":");
    const void *place = NULL;
    snprintf(own, sizeof own, "%.*s", (int)(length < sizeof own ? length : sizeof own), name);
    const spmv_status st = choice_take_rung(ctx, what, rungs, sizeof *rungs, own, &place);
    if (st != SPMV_OK)
        return st;
    const struct scan_rung *const rung = place;
    *found = rung;
    *block = rung->block;
    if (name[length] == '\0')
        return SPMV_OK;
    char *end = NULL;
    const long told = strtol(name + length + 1, &end, 10);
    if (rung->block == 0)
        return context_fail(ctx, SPMV_ERROR_METHOD, "%s: rung %s has no block size, but \"%s\" gives one", what,
                            rung->name, name);
    if (*end != '\0' || !is_block(told))
        return context_fail(ctx, SPMV_ERROR_METHOD, "%s: \"%s\": the block size must be a power of two from %d to %d",
                            what, name, SCAN_BLOCK_LEAST, SCAN_BLOCK_MOST);
    *block = (int)told;
    return SPMV_OK;
}

int scan_block_for(int64_t n, int block)
{
    while (block / 2 >= SCAN_BLOCK_LEAST && block / 2 >= n)
        block /= 2;
    return block;
}

spmv_status scan_rung_check_most(spmv_context *ctx, const char *what, const struct scan_rung *rung, int64_t n)
{
    if (rung->most == 0 || n <= rung->most)
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_SIZE,
                        "%s: rung %s takes at most %lld elements, not %lld: it does n^2 / 2 operations", what,
                        rung->name, (long long)rung->most, (long long)n);
}

spmv_status spmv_scan_rung(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op, spmv_type type,
                           const void *in, void *out, int64_t n)
{
    static const char what[] = "spmv_scan_rung";
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (choice_is_auto(rung))
        return spmv_scan(ctx, kind, op, type, in, out, n);
    const struct scan_rung *found = NULL;
    struct scan_request request = {
        .form = SCAN_ALL, .kind = kind, .op = op, .type = type, .in = in, .out = out, .n = n};
    spmv_status st = scan_rung_find(ctx, what, ctx->backend->scan_rungs(), rung, &found, &request.block);
    if (st == SPMV_OK)
        st = scan_check(ctx, what, kind, op, type, n);
    if (st == SPMV_OK)
        st = scan_rung_check_most(ctx, what, found, n);
    if (st != SPMV_OK || n == 0)
        return st;
    if (in == NULL || out == NULL)
        return context_need(ctx, what, in == NULL ? "in" : "out", NULL);
    request.block = scan_block_for(n, request.block);
    st = context_scratch(ctx, found->scratch(ctx, &request), &request.scratch);
    return st != SPMV_OK ? st : found->run(ctx, &request);
}

/* Finds the rung of that name, which must scan blocks; auto: the last one in the table that
 * does. */
static spmv_status find_by_block(spmv_context *ctx, const char *what, const char *name, const struct scan_rung **found)
{
    const struct scan_rung *const rungs = ctx->backend->scan_rungs();
    int block;
    if (choice_is_auto(name)) {
        for (const struct scan_rung *r = rungs; r->name != NULL; r++)
            if (r->by_block)
                *found = r;
        return SPMV_OK;
    }
    const spmv_status st = scan_rung_find(ctx, what, rungs, name, found, &block);
    if (st == SPMV_OK && !(*found)->by_block)
        return context_fail(ctx, SPMV_ERROR_METHOD, "%s: rung %s has no block scan", what, (*found)->name);
    if (st == SPMV_OK && strchr(name, ':') != NULL)
        return context_fail(ctx, SPMV_ERROR_METHOD, "%s: rung \"%s\": pass the block size as an argument", what, name);
    return st;
}

static spmv_status check_block(spmv_context *ctx, const char *what, int64_t block)
{
    if (is_block(block))
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: block size %lld: must be a power of two from %d to %d", what,
                        (long long)block, SCAN_BLOCK_LEAST, SCAN_BLOCK_MOST);
}

/* Checks a request of blocks and runs it with a rung. */
static spmv_status run_blocks(spmv_context *ctx, const char *what, const char *rung, int64_t block,
                              struct scan_request *r)
{
    const struct scan_rung *found = NULL;
    spmv_status st = scan_check(ctx, what, r->kind, r->op, r->type, r->n);
    if (st == SPMV_OK)
        st = check_block(ctx, what, block);
    if (st == SPMV_OK)
        st = find_by_block(ctx, what, rung, &found);
    if (st != SPMV_OK || r->n == 0)
        return st;
    const bool sums = r->form == SCAN_SUMS;
    if (!sums && (r->in == NULL || r->out == NULL))
        return context_need(ctx, what, r->in == NULL ? "in" : "out", NULL);
    if (sums && (r->scanned == NULL || r->sums == NULL))
        return context_need(ctx, what, r->scanned == NULL ? "scanned" : "sums", NULL);
    if (sums && r->kind == SPMV_EXCLUSIVE && (r->in == NULL || r->in == r->scanned))
        return context_fail(
            ctx, SPMV_ERROR_ARGUMENT,
            "%s: an exclusive scan does not contain each block's last element: pass in, not overwritten", what);
    r->block = (int)block;
    return found->run(ctx, r);
}

spmv_status spmv_block_scan(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op, spmv_type type,
                            const void *in, void *out, void *sums, int64_t block, int64_t n)
{
    struct scan_request request = {
        .form = SCAN_BLOCKS, .kind = kind, .op = op, .type = type, .in = in, .out = out, .sums = sums, .n = n};
    return run_blocks(ctx, "spmv_block_scan", rung, block, &request);
}

spmv_status spmv_block_sums(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *in,
                            const void *scanned, void *sums, int64_t block, int64_t n)
{
    struct scan_request request = {
        .form = SCAN_SUMS, .kind = kind, .op = op, .type = type, .in = in, .scanned = scanned, .sums = sums, .n = n};
    return run_blocks(ctx, "spmv_block_sums", "auto", block, &request);
}

spmv_status spmv_scan_trace(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op, spmv_type type,
                            const void *host_in, void *host_out, int64_t n, spmv_trace_fn trace, void *user)
{
    static const char what[] = "spmv_scan_trace";
    const struct scan_rung *found = NULL;
    struct scan_request request = {
        .form = SCAN_ALL, .kind = kind, .op = op, .type = type, .in = host_in, .out = host_out, .n = n};
    spmv_status st =
        scan_rung_find(ctx, what, scan_rungs_ref(), choice_is_auto(rung) ? "blelloch" : rung, &found, &request.block);
    if (st == SPMV_OK)
        st = scan_check(ctx, what, kind, op, type, n);
    if (st == SPMV_OK)
        st = scan_rung_check_most(ctx, what, found, n);
    if (st == SPMV_OK && trace == NULL)
        st = context_need(ctx, what, "trace", NULL);
    if (st != SPMV_OK || n == 0)
        return st;
    if (host_in == NULL || host_out == NULL)
        return context_need(ctx, what, host_in == NULL ? "host_in" : "host_out", NULL);
    request.block = scan_block_for(n, request.block);
    st = host_alloc(ctx, found->scratch(ctx, &request), "the sums between levels", &request.scratch);
    if (st == SPMV_OK)
        st = scan_trace_host(ctx, found, &request, trace, user);
    host_free(request.scratch);
    return st;
}
