/* reduce: the public front.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/choice.h"
#include "primitives/map/map_fill.h"
#include "primitives/reduce/reduce_ladder.h"

static spmv_status check(spmv_context *ctx, const char *name, spmv_op op, spmv_type type, const void *in,
                         const void *out, int64_t n)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (!spmv_op_takes(op, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: no operator %s for type %s", name, spmv_op_name(op),
                            spmv_type_name(type));
    if (n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: n = %lld is negative", name, (long long)n);
    if (out == NULL || (n > 0 && in == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL though n = %lld", name,
                            out == NULL ? "out" : "in", (long long)n);
    return SPMV_OK;
}

/* Checks the arguments; then the scratch memory or, for n = 0, the result. */
static spmv_status prepare(spmv_context *ctx, const char *name, spmv_op op, spmv_type type, const void *in, void *out,
                           int64_t n, void **scratch)
{
    const spmv_status st = check(ctx, name, op, type, in, out, n);
    if (st != SPMV_OK)
        return st;
    return n == 0 ? fill_identity(ctx, op, type, out, 1)
                  : context_scratch(ctx, ctx->backend->reduce_scratch(ctx, type, n), scratch);
}

spmv_status spmv_reduce(spmv_context *ctx, spmv_op op, spmv_type type, const void *in, void *out, int64_t n)
{
    void *scratch = NULL;
    const spmv_status st = prepare(ctx, "spmv_reduce", op, type, in, out, n, &scratch);
    return st != SPMV_OK || n == 0 ? st : ctx->backend->reduce(ctx, op, type, in, out, n, scratch);
}

spmv_status spmv_map_reduce(spmv_context *ctx, spmv_function function, spmv_op op, spmv_type type, const void *in,
                            void *out, int64_t n)
{
    if (!spmv_function_takes(function, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_map_reduce: no function %s for type %s",
                            spmv_function_name(function), spmv_type_name(type));
    void *scratch = NULL;
    const spmv_status st = prepare(ctx, "spmv_map_reduce", op, type, in, out, n, &scratch);
    return st != SPMV_OK || n == 0 ? st : ctx->backend->map_reduce(ctx, function, op, type, in, out, n, scratch);
}

/* ------------------------------------------------------------------ the ladder */

const char *spmv_reduce_rung_name(spmv_backend backend, int index)
{
    const struct backend_table *const table = backend_find(backend);
    const struct reduce_rung *const rungs = table != NULL ? table->reduce_rungs() : NULL;
    return names_at(rungs, sizeof *rungs, index);
}

static spmv_status find_rung(spmv_context *ctx, const char *what, const char *name, const struct reduce_rung *rungs,
                             const struct reduce_rung **found)
{
    const void *rung = NULL;
    const spmv_status st = choice_take_rung(ctx, what, rungs, sizeof *rungs, name, &rung);
    *found = rung;
    return st;
}

static spmv_status check_order(spmv_context *ctx, const struct reduce_rung *rung, spmv_op op)
{
    if (rung->reorders && !spmv_op_commutes(op))
        return context_fail(ctx, SPMV_ERROR_COMMUTE,
                            "reduce: rung %s changes the order of the operands, but %s is not commutative", rung->name,
                            spmv_op_name(op));
    return SPMV_OK;
}

spmv_status spmv_reduce_rung(spmv_context *ctx, const char *name, spmv_op op, spmv_type type, const void *in, void *out,
                             int64_t n)
{
    if (choice_is_auto(name))
        return spmv_reduce(ctx, op, type, in, out, n);
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    const struct reduce_rung *rung = NULL;
    spmv_status st = find_rung(ctx, "spmv_reduce_rung", name, ctx->backend->reduce_rungs(), &rung);
    if (st == SPMV_OK)
        st = check(ctx, "spmv_reduce_rung", op, type, in, out, n);
    if (st == SPMV_OK)
        st = check_order(ctx, rung, op);
    if (st != SPMV_OK)
        return st;
    if (n == 0)
        return fill_identity(ctx, op, type, out, 1);
    void *scratch = NULL;
    st = context_scratch(ctx, rung->scratch(ctx, type, n), &scratch);
    return st != SPMV_OK ? st : rung->run(ctx, rung->finish, op, type, in, out, n, scratch);
}

spmv_status spmv_reduce_trace(spmv_context *ctx, const char *name, spmv_op op, spmv_type type, const void *host_in,
                              void *host_out, int64_t n, spmv_trace_fn trace, void *user)
{
    static const char what[] = "spmv_reduce_trace";
    const bool by_default = choice_is_auto(name);
    const struct reduce_rung *rung = NULL;
    void *scratch = NULL;
    spmv_status st = find_rung(ctx, what, by_default ? "divergent" : name, reduce_rungs_ref(), &rung);
    if (st == SPMV_OK)
        st = check(ctx, what, op, type, host_in, host_out, n);
    if (st == SPMV_OK)
        st = check_order(ctx, rung, op);
    if (st == SPMV_OK && trace == NULL)
        st = context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: trace is NULL", what);
    if (st != SPMV_OK)
        return st;
    if (n == 0)
        return spmv_op_identity(op, type, host_out);
    st = host_alloc(ctx, rung->scratch(ctx, type, n), "the results between levels", &scratch);
    if (st == SPMV_OK)
        st = reduce_trace_host(ctx, rung, op, type, host_in, host_out, n, scratch, trace, user);
    host_free(scratch);
    return st;
}
