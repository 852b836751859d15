/* Plans for operators: a matrix of which only products are known, which the caller computes. Such a plan is one with a
 * method of its own and without entries, so all that needs products alone takes it as any other.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <stdio.h>

#include "core/clock.h"
#include "core/reals.h"
#include "product/plan_internal.h"

enum { NAME = 64 };

struct operator_state {
    spmv_operator_class class;
    char name[NAME];
    void *self;
    void *product; /* op(A) x where y is not overwritten */
    void *scalars; /* alpha and beta, real numbers in the context's memory */
};

/* y = op(A) x by the caller. A failure without a message gets one. */
static spmv_status multiply(const spmv_plan *plan, const void *x, void *y)
{
    const struct operator_state *const o = plan->state;
    spmv_context *const ctx = plan->ctx;
    const char first = ctx->error[0];
    ctx->error[0] = '\0';
    const spmv_status st = o->class.apply(o->self, plan->operation, x, y);
    if (st == SPMV_OK)
        ctx->error[0] = first;
    else if (ctx->error[0] == '\0')
        context_fail(ctx, st, "operator %s: its product failed (%s)", o->name, spmv_status_name(st));
    return st;
}

/* Whether a scalar, complex or not, is this real number. */
static bool is_number(const spmv_plan *plan, const void *scalar, double number)
{
    const spmv_type part = type_part(plan->type);
    return real_at(part, scalar, 0) == number && (!type_is_complex(plan->type) || real_at(part, scalar, 1) == 0);
}

static spmv_status operator_apply(const spmv_plan *plan, const struct plan_product *p)
{
    spmv_status st = SPMV_OK;
    const struct operator_state *const o = plan->state;
    const spmv_type part = type_part(plan->type);
    const int64_t size = (int64_t)spmv_type_size(part);
    if (p->stop != NULL && !context_on_device(plan->ctx) && *p->stop != 0)
        return SPMV_OK;
    if (p->beta_zero && is_number(plan, p->alpha, 1))
        return multiply(plan, p->x, p->y);
    if (type_is_complex(plan->type) && (real_at(part, p->alpha, 1) != 0 || real_at(part, p->beta, 1) != 0))
        return context_fail(plan->ctx, SPMV_ERROR_UNSUPPORTED, "operator %s: alpha and beta must be real numbers",
                            o->name);
    if (p->beta_zero) /* y may have numbers that are not finite */
        TRY(spmv_map_index(plan->ctx, part, &(const double){0}, NULL, p->y, plan->a.rows * type_parts(plan->type)));
    TRY(multiply(plan, p->x, o->product));
    TRY(spmv_upload(plan->ctx, p->alpha, o->scalars, size));
    TRY(spmv_upload(plan->ctx, p->beta, (char *)o->scalars + size, size));
    TRY(spmv_map_axpby(plan->ctx, part, o->scalars, o->product, (const char *)o->scalars + size, p->y,
                       plan->a.rows * type_parts(plan->type)));
done:
    return st;
}

static void operator_release(spmv_plan *plan)
{
    const struct operator_state *const o = plan->state;
    spmv_free(plan->ctx, o->product);
    spmv_free(plan->ctx, o->scalars);
    if (o->class.destroy != NULL)
        o->class.destroy(o->self);
}

static const struct spmv_method operator_method = {
    .name = "operator", .can = METHOD_COMPLEX, .apply = operator_apply, .release = operator_release};

bool plan_is_operator(const spmv_plan *plan)
{
    return plan->method == &operator_method;
}

static spmv_status check(spmv_context *ctx, spmv_type type, int64_t rows, int64_t cols, spmv_operation operation,
                         const spmv_operator_class *functions, spmv_operator_class *c)
{
    if (functions == NULL || !options_read(c, sizeof *c, functions) || c->name == NULL || c->apply == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_plan_wrap: a class needs its size, a name and apply");
    if (!type_is_floating(type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_plan_wrap: vectors of type %s, not f64, f32, c128 or c64",
                            spmv_type_name(type));
    if (rows < 0 || cols < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_plan_wrap: %lld rows, %lld columns", (long long)rows,
                            (long long)cols);
    return OPTIONS_CHECK(ctx, "spmv_plan_wrap", {"operation", operation, SPMV_OPERATION_N, SPMV_OPERATION_H});
}

static spmv_status wrap(spmv_context *ctx, spmv_type type, int64_t rows, int64_t cols, spmv_operation operation,
                        const spmv_operator_class *functions, void *self, spmv_plan **made)
{
    spmv_status st = SPMV_OK;
    const double begin = monotonic_seconds();
    spmv_operator_class c = {.size = sizeof c};
    struct operator_state *o = NULL;
    spmv_plan *plan = NULL;
    TRY(check(ctx, type, rows, cols, operation, functions, &c));
    TRY(host_alloc(ctx, sizeof *plan, "a plan", (void **)&plan));
    memset(plan, 0, sizeof *plan);
    const bool turned = operation != SPMV_OPERATION_N;
    plan->ctx = ctx;
    plan->method = &operator_method;
    plan->longest_row = -1;
    plan->operation = operation;
    plan->type = plan->sums = plan->a.type = type;
    plan->types = plan_types_of(type, type);
    plan->a.rows = turned ? cols : rows;
    plan->a.cols = turned ? rows : cols;
    plan->a.memory = SPMV_MEMORY_CONTEXT;
    plan->vectors = 1;
    plan->x_stride = plan->y_stride = 1;
    plan->by_columns.x_stride = plan->by_columns.y_stride = 1;
    plan->bytes = (int64_t)sizeof *plan;
    TRY(plan_new_state(plan, (int64_t)sizeof *o));
    o = plan->state;
    TRY(plan_alloc(plan, max_i64(1, plan->a.rows) * (int64_t)spmv_type_size(type), &o->product));
    TRY(plan_alloc(plan, 2 * (int64_t)spmv_type_size(type_part(type)), &o->scalars));
    TRY(epilogue_prepare(plan));
    o->class = c; /* from now on self belongs to the plan */
    o->self = self;
    snprintf(o->name, sizeof o->name, "%s", c.name);
    snprintf(plan->why, sizeof plan->why, "the caller's product");
    snprintf(plan->layout, sizeof plan->layout, "operator %s: no entries are known", o->name);
    plan->seconds = monotonic_seconds() - begin;
done:
    if (st != SPMV_OK) {
        spmv_plan_destroy(plan);
        plan = NULL;
    }
    *made = plan;
    return st;
}

spmv_status spmv_plan_wrap(spmv_context *ctx, spmv_type type, int64_t rows, int64_t cols, spmv_operation operation,
                           const spmv_operator_class *functions, void *self, spmv_plan **plan)
{
    bool outer = false;
    if (ctx == NULL || plan == NULL)
        return context_need(ctx, "spmv_plan_wrap", "plan", plan);
    *plan = NULL;
    const spmv_status st = context_hold(ctx, &outer);
    return st != SPMV_OK ? st
                         : context_release(ctx, outer, wrap(ctx, type, rows, cols, operation, functions, self, plan));
}
