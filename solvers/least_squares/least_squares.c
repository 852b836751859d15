/* The solver of min ||A x - b||: its plans, and what is around a solve.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>

#include "core/choice.h"
#include "core/clock.h"
#include "product/plan_internal.h"
#include "solvers/least_squares/least_squares_internal.h"

static const struct krylov_solver *const solvers[] = {&least_squares_lsmr, &least_squares_lsqr, &least_squares_cgls};
enum { SOLVERS = sizeof solvers / sizeof *solvers };

const char *spmv_least_squares_name(int index)
{
    return index >= 0 && index < SOLVERS ? solvers[index]->name : NULL;
}

void spmv_least_squares_options_init(spmv_least_squares_options *options, size_t size)
{
    const spmv_least_squares_options defaults = {
        .size = sizeof defaults, .vectors = 1, .atol = 1e-8, .btol = 1e-8, .conlim = 1e8};
    result_write(options, size, &defaults, sizeof defaults);
}

/* ------------------------------------------------------------- making and destroying */

static spmv_status find_solver(spmv_context *ctx, const char *name, const struct krylov_solver **solver)
{
    struct names names = {.count = 0};
    const void *row = NULL;
    names_add_row(&names, "auto", solvers[0]);
    for (int i = 0; i < SOLVERS; i++)
        names_add_row(&names, solvers[i]->name, solvers[i]);
    const spmv_status st =
        choice_take(ctx, SPMV_ERROR_METHOD, "spmv_least_squares_create", "solver", &names, name, &row);
    *solver = row;
    return st;
}

static spmv_status check(spmv_context *ctx, const spmv_csr *a, const spmv_least_squares_options *o)
{
    const char *const call = "spmv_least_squares_create";
    spmv_status st = plan_check_view(ctx, call, a, false);
    if (st == SPMV_OK)
        st = OPTIONS_CHECK(
            ctx, call, {"vectors", o->vectors, 1, INFINITY}, {"damp", o->damp, 0, INFINITY},
            {"atol", o->atol, 0, INFINITY}, {"btol", o->btol, 0, INFINITY}, {"conlim", o->conlim, 0, INFINITY},
            {"max_iterations", (double)o->max_iterations, 0, INFINITY}, {"zero_start", o->zero_start, 0, 1},
            {"scaling", o->scaling, SPMV_SCALING_AUTO, SPMV_SCALING_COLUMNS});
    if (st != SPMV_OK)
        return st;
    if (o->scaling == SPMV_SCALING_COLUMNS && o->damp > 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "%s: with damp, columns cannot be scaled: that would be another problem", call);
    if (o->type != SPMV_TYPE_DEFAULT && !type_is_floating(o->type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: no solvers in this type (%d, %s), only in f64, f32, c128, c64",
                            call, (int)o->type, spmv_type_name(o->type));
    return SPMV_OK;
}

/* Right-hand sides that are solved together: where rows are long, so that products take most of the time. With few
 * entries a row a product of several vectors reads as much (product/by_columns.c), and vectors of one system stay in
 * a cache. Long solves are cut into batches of about the same size, which bounds the memory. */
static int choose_together(const spmv_least_squares *s)
{
    enum { MOST = 32, LEAST_ENTRIES = 8, LEAST_ENTRIES_CUDA = 16 };
    const int64_t longer = max_i64(s->a.rows, s->a.cols), vectors = s->options.vectors;
    const int64_t least = context_on_device(s->ctx) ? LEAST_ENTRIES_CUDA : LEAST_ENTRIES;
    if (type_is_complex(s->type) || longer == 0 || s->a.nnz / longer < least || s->ctx->backend->id == SPMV_BACKEND_REF)
        return 1;
    return (int)ceil_divide(vectors, ceil_divide(vectors, MOST));
}

static spmv_status make_plan(const spmv_least_squares *s, spmv_operation operation, spmv_plan **plan)
{
    spmv_plan_options o;
    spmv_plan_options_init(&o, sizeof o);
    o.type = s->options.type;
    o.operation = operation;
    if (s->together > 1) {
        o.vectors = s->together;
        o.x_layout = o.y_layout = SPMV_LAYOUT_COLUMNS;
        o.x_stride = least_squares_stride(operation == SPMV_OPERATION_N ? s->a.cols : s->a.rows);
        o.y_stride = least_squares_stride(operation == SPMV_OPERATION_N ? s->a.rows : s->a.cols);
    }
    if (context_on_device(s->ctx)) /* no digit depends on this */
        o.compression = SPMV_COMPRESSION_VALUES;
    return spmv_plan_create(s->ctx, &s->a, &o, plan);
}

/* Plans for s->a, in place of those before. */
static spmv_status make_plans(spmv_least_squares *s)
{
    spmv_status st = SPMV_OK;
    spmv_plan_destroy(s->plan);
    spmv_plan_destroy(s->transposed);
    s->plan = s->transposed = NULL;
    TRY(make_plan(s, SPMV_OPERATION_N, &s->plan));
    TRY(make_plan(s, SPMV_OPERATION_H, &s->transposed));
done:
    return st;
}

static spmv_status create(spmv_context *ctx, const spmv_csr *a, const spmv_least_squares_options *options,
                          spmv_least_squares **solver)
{
    const double begin = monotonic_seconds();
    spmv_status st = SPMV_OK;
    spmv_least_squares *s = NULL;
    const struct krylov_solver *chosen = NULL;
    spmv_least_squares_options o;
    spmv_least_squares_options_init(&o, sizeof o);
    TRY(options_take(ctx, "least_squares", &o, sizeof o, options));
    TRY(find_solver(ctx, o.solver, &chosen));
    TRY(check(ctx, a, &o));
    TRY(host_alloc(ctx, sizeof *s, "a solver", (void **)&s));
    memset(s, 0, sizeof *s);
    s->ctx = ctx;
    s->solver = chosen;
    s->options = o;
    s->options.solver = NULL;
    s->damp = o.damp;
    s->type = o.type != SPMV_TYPE_DEFAULT ? o.type : a->val != NULL ? a->type : SPMV_F64;
    TRY(csr_to_context(ctx, a, true, &s->a, &s->copies));
    TRY(least_squares_scale(s, a));
    const int together = choose_together(s);
    s->together = s->doubts ? 1 : together;
    TRY(make_plans(s));
    if (s->doubts) {
        bool keeps = false;
        TRY(least_squares_settle_doubts(s, &keeps));
        s->together = together;
        if (!keeps || together > 1)
            TRY(make_plans(s));
    }
    s->seconds = monotonic_seconds() - begin;
done:
    if (st != SPMV_OK) {
        spmv_least_squares_destroy(s);
        s = NULL;
    }
    *solver = s;
    return st;
}

spmv_status spmv_least_squares_create(spmv_context *ctx, const spmv_csr *a, const spmv_least_squares_options *options,
                                      spmv_least_squares **solver)
{
    spmv_status st = SPMV_OK;
    if (solver != NULL)
        *solver = NULL;
    st = context_need(ctx, "spmv_least_squares_create", "the matrix", a);
    if (st == SPMV_OK)
        st = context_need(ctx, "spmv_least_squares_create", "solver", solver);
    return st != SPMV_OK ? st : create(ctx, a, options, solver);
}

void spmv_least_squares_destroy(spmv_least_squares *s)
{
    if (s == NULL || object_destroyed_later(&s->use))
        return;
    spmv_plan_destroy(s->transposed);
    spmv_plan_destroy(s->plan);
    spmv_free(s->ctx, s->values);
    spmv_free(s->ctx, s->scale);
    csr_free_context(s->ctx, &s->copies);
    host_free(s);
}

/* ------------------------------------------------------------- solving */

static void give_result(spmv_least_squares_result *result, size_t size, int v, const spmv_least_squares_result *full)
{
    if (result != NULL)
        result_write((char *)result + (size_t)v * size, size, full, sizeof *full);
}

static spmv_status give_failures(const spmv_least_squares *s, spmv_status st, spmv_least_squares_result *result,
                                 size_t size)
{
    const spmv_least_squares_result full = {.status = st, .stop = SPMV_STOP_FAILED, .solver = ""};
    for (int v = 0; v < (s != NULL ? s->options.vectors : 1); v++)
        give_result(result, size, v, &full);
    return st;
}

static spmv_status solve(spmv_least_squares *s, const void *b, void *x, spmv_least_squares_result *result, size_t size)
{
    const char *const call = "spmv_least_squares_solve";
    const double begin = monotonic_seconds();
    spmv_least_squares_result *all = NULL;
    spmv_status st = object_free_of_calls(s->ctx, &s->use, call, "solver");
    if (st == SPMV_OK && ((s->a.rows > 0 && b == NULL) || (s->a.cols > 0 && x == NULL) || (b != NULL && b == x)))
        st = context_fail(s->ctx, SPMV_ERROR_ARGUMENT, "%s: %s", call,
                          b == NULL   ? "b is NULL"
                          : x == NULL ? "x is NULL"
                                      : "b and x are the same array");
    if (st == SPMV_OK)
        st = host_alloc(s->ctx, s->options.vectors * (int64_t)sizeof *all, "results of a solver", (void **)&all);
    if (st != SPMV_OK)
        return give_failures(s, st, result, size);
    s->use.calls++;
    plan_begin_use(s->plan);
    plan_begin_use(s->transposed);
    st = least_squares_solve_all(s, b, x, all);
    for (int v = 0; v < s->options.vectors; v++) {
        all[v].setup_seconds = s->seconds;
        all[v].solve_seconds = monotonic_seconds() - begin;
        all[v].solver = s->solver->name;
        all[v].scaled = s->scales_columns;
        memcpy(all[v].why_scaling, s->why_scaling, sizeof all[v].why_scaling);
        give_result(result, size, v, &all[v]);
    }
    host_free(all);
    plan_end_use(s->transposed);
    plan_end_use(s->plan);
    if (object_end_use(&s->use))
        spmv_least_squares_destroy(s);
    return st;
}

spmv_status spmv_least_squares_solve(spmv_least_squares *s, const void *b, void *x, spmv_least_squares_result *result,
                                     size_t size)
{
    bool outer = false;
    if (s == NULL)
        return give_failures(s, SPMV_ERROR_ARGUMENT, result, size);
    spmv_context *const ctx = s->ctx;
    const spmv_status st = context_hold(ctx, &outer);
    return st != SPMV_OK ? give_failures(s, st, result, size)
                         : context_release(ctx, outer, solve(s, b, x, result, size));
}
