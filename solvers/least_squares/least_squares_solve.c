/* A solve of min ||A x - b||: the scaled system, runs of the recurrence, restarts, and what is computed
 * from x in the end.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>
#include <string.h>

#include "core/backend.h"
#include "core/plural.h"
#include "product/plan_internal.h"
#include "solvers/krylov/not_finite.h"
#include "solvers/least_squares/least_squares_internal.h"

/* The true residual may exceed a tolerance by this factor; or it is below so many unit roundoffs of the
 * terms of b - A x, whose sums round. */
static const double SLACK = 2, ROUNDINGS = 8;

/* ------------------------------------------------------------- vectors */

static spmv_status copy(const struct least_squares_run *r, const void *from, void *to, int64_t count)
{
    return spmv_map(r->g.s.ctx, SPMV_MAP_COPY, r->g.s.part, from, to, count);
}

static spmv_status clear(const struct least_squares_run *r, void *v, int64_t count)
{
    /* all bits 0, also as floats */
    return spmv_map_index(r->g.s.ctx, r->g.s.part, &(const double){0}, NULL, v, count);
}

/* to = factor from */
static spmv_status scale(const struct least_squares_run *r, double factor, const void *from, void *to, int64_t count)
{
    const union real scalar = real_scalar(r->g.s.part, factor);
    return spmv_map_scalar(r->g.s.ctx, SPMV_MUL, r->g.s.part, &scalar, from, to, count);
}

/* to += factor from */
static spmv_status add(const struct least_squares_run *r, double factor, const void *from, void *to, int64_t count)
{
    spmv_status st = SPMV_OK;
    TRY(krylov_set_cell(&r->g.s, factor));
    TRY(spmv_map_axpby(r->g.s.ctx, r->g.s.part, r->g.s.cells, from, NULL, to, count));
done:
    return st;
}

static spmv_status dot_root(const struct least_squares_run *r, const void *v, int64_t count, double *norm)
{
    spmv_status st = SPMV_OK;
    const struct krylov *const s = &r->g.s;
    TRY(spmv_dot(s->ctx, s->part, v, v, s->cells, count));
    TRY(krylov_read(s, s->cells, 1, norm));
    *norm = sqrt(*norm);
done:
    return st;
}

/* The range of norms whose squares keep their digits. */
static bool is_safe(spmv_type part, double norm)
{
    const double most = part == SPMV_F32 ? 0x1p40 : 0x1p340;
    return norm <= most && norm >= 1 / most;
}

/* The norm of any vector; scratch: of its size. */
static spmv_status norm_of(const struct least_squares_run *r, const void *v, int64_t count, void *scratch, double *norm)
{
    spmv_status st = SPMV_OK;
    const struct krylov *const s = &r->g.s;
    double largest = 0;
    int exponent = 0;
    TRY(dot_root(r, v, count, norm));
    if (is_safe(s->part, *norm))
        return SPMV_OK;
    TRY(spmv_map(s->ctx, SPMV_MAP_ABS, s->part, v, scratch, count));
    TRY(spmv_reduce(s->ctx, SPMV_MAX, s->part, scratch, s->cells, count));
    TRY(krylov_read(s, s->cells, 1, &largest));
    if (!(largest > 0 && isfinite(largest))) {
        *norm = isnan(*norm) ? *norm : largest;
        return SPMV_OK;
    }
    frexp(largest, &exponent);
    exponent = exponent > 126 && s->part == SPMV_F32 ? 126 : exponent; /* the factor is a normal number */
    exponent = exponent > 1022 ? 1022 : exponent;
    const int up = exponent < -100 ? exponent / 2 : exponent; /* in two steps */
    TRY(scale(r, ldexp(1, -up), v, scratch, count));
    TRY(scale(r, ldexp(1, up - exponent), scratch, scratch, count));
    TRY(dot_root(r, scratch, count, norm));
    *norm = ldexp(*norm, exponent);
done:
    return st;
}

/* ------------------------------------------------------------- the workspace */

enum { ALIGNED = 256, LINE = 32 /* elements, so that each vector is aligned like memory of its own */ };

static int64_t padded(int64_t bytes)
{
    return ceil_divide(bytes, ALIGNED) * ALIGNED;
}

static int on_iteration(int64_t iteration, double residual, void *user)
{
    const struct least_squares_run *const r = user;
    const spmv_least_squares_options *const o = &r->solver->options;
    return o->on_iteration != NULL && o->on_iteration(iteration, residual, r->gradient, o->user);
}

static spmv_status open(struct least_squares_run *r, spmv_least_squares *s)
{
    spmv_status st = SPMV_OK;
    struct krylov *const k = &r->g.s;
    const int parts = type_parts(s->type);
    *r = (struct least_squares_run){.solver = s};
    *k = (struct krylov){.call = "spmv_least_squares_solve",
                         .ctx = s->ctx,
                         .plan = s->plan,
                         .solver = s->solver,
                         .type = s->type,
                         .part = type_part(s->type),
                         .columns = 1,
                         .n = s->a.cols,
                         .count = s->a.cols * parts,
                         .on_iteration = on_iteration,
                         .user = r};
    TRY(spmv_plan_describe(s->plan, &k->info, sizeof k->info));
    const int64_t size = (int64_t)spmv_type_size(s->type);
    TRY(context_lend(s->ctx, 3 * size, &k->cells));
    TRY(host_alloc(s->ctx, 3 * size, k->call, &k->values));
    if (s->a.rows == 0 || s->a.cols == 0)
        return SPMV_OK;
    const int64_t state = padded((int64_t)sizeof *r->g.v.state), scalars = padded((int64_t)sizeof *r->scalars);
    const int64_t parts_x = padded(krylov_parts_bytes(s->ctx, s->a.cols, 0, NULL));
    const int64_t parts_b = padded(krylov_parts_bytes(s->ctx, s->a.rows, 0, NULL));
    const int64_t all = state + scalars + parts_x + parts_b;
    const int64_t of_x = ceil_divide(s->a.cols, LINE) * LINE, of_b = ceil_divide(s->a.rows, LINE) * LINE;
    const int vectors = s->solver->vectors(&r->g);
    TRY(context_lend(s->ctx, all, &r->g.small));
    TRY(context_lend(s->ctx, (LS_V * of_b + (vectors - LS_V) * of_x) * size, &r->g.vectors));
    TRY(spmv_map_index(s->ctx, SPMV_F64, &(const double){0}, NULL, r->g.small, all / 8));
    char *const base = r->g.small;
    r->scalars = (void *)(base + state);
    r->g.v = (struct krylov_vectors){
        .ctx = s->ctx, .type = s->type, .n = s->a.cols, .state = r->g.small, .parts = base + state + scalars};
    r->rows = r->g.v;
    r->rows.n = s->a.rows;
    r->rows.parts = base + state + scalars + parts_x;
    for (int v = 0; v < vectors; v++)
        r->vector[v] = (char *)r->g.vectors + (v < LS_V ? v * of_b : LS_V * of_b + (v - LS_V) * of_x) * size;
    if (context_on_device(s->ctx))
        TRY(least_squares_persistent_open(r));
    if (context_on_device(s->ctx) && r->g.many_steps == NULL)
        TRY(krylov_queue_open(&r->g, &r->g.queue));
done:
    return st;
}

static void close(struct least_squares_run *r)
{
    spmv_context *const ctx = r->g.s.ctx;
    if (context_on_device(ctx)) {
        krylov_queue_close(r->g.queue);
        least_squares_persistent_close(r);
    }
    void *const lent[] = {r->g.s.cells, r->g.small, r->g.vectors};
    for (size_t i = 0; i < sizeof lent / sizeof *lent; i++)
        context_take_back(ctx, lent[i]);
    host_free(r->g.s.values);
}

/* ------------------------------------------------------------- one right-hand side */

/* In the scaled system: min over y of ||B y - b||^2 + damp^2 ||y - start||^2. Vectors may be NULL: see
 * begin. */
struct problem {
    struct least_squares_run *r;
    spmv_least_squares_result *result;
    const void *b; /* factor times the caller's */
    double factor; /* a power of two */
    double norm_b; /* of b here */
    void *y;
    void *start;               /* with a start */
    void *step;                /* with damp and a start: y - start */
    void *scaled_b, *own_y;    /* memory of b and y where they are not the caller's */
    void *best;                /* with a restart: y before it */
    double residual, gradient; /* in the scaled system, of the present y */
};

static int64_t rows_of(const struct problem *p)
{
    return p->r->solver->a.rows * type_parts(p->r->solver->type);
}

static int64_t columns_of(const struct problem *p)
{
    return p->r->g.s.count;
}

static spmv_status lend(const struct problem *p, int64_t count, void **vector)
{
    return context_lend(p->r->g.s.ctx, count * (int64_t)spmv_type_size(p->r->g.s.part), vector);
}

/* The norm of b, and its scale. */
static spmv_status take_b(struct problem *p, const void *b)
{
    spmv_status st = SPMV_OK;
    struct least_squares_run *const r = p->r;
    const spmv_type part = r->g.s.part;
    const int most = part == SPMV_F32 ? 126 : 1022;
    int exponent = 0;
    p->b = b;
    p->factor = 1;
    TRY(norm_of(r, b, rows_of(p), r->vector[LS_Q], &p->norm_b));
    p->result->norm_b = p->norm_b;
    if (!is_safe(part, p->norm_b) && p->norm_b > 0 && isfinite(p->norm_b)) {
        frexp(p->norm_b, &exponent);
        p->factor = ldexp(1, exponent > most ? -most : exponent < -most ? most : -exponent);
        p->norm_b *= p->factor;
        TRY(lend(p, rows_of(p), &p->scaled_b));
        TRY(scale(r, p->factor, b, p->scaled_b, rows_of(p)));
        p->b = p->scaled_b;
    }
    r->g.s.scale = p->factor != 1 ? p->factor : 0;
done:
    return st;
}

/* to = factor * (D or 1/D) * from, where only the whole may be in the range of the type: half of the factor is
 * applied before D, half after it. */
static spmv_status scale_columns(const struct problem *p, double factor, bool divide, const void *from, void *to)
{
    spmv_status st = SPMV_OK;
    const struct least_squares_run *const r = p->r;
    const spmv_least_squares *const s = r->solver;
    const int64_t count = columns_of(p);
    int exponent = 0;
    (void)frexp(factor, &exponent);
    const double half = ldexp(1, (exponent - 1) / 2);
    if (factor != 1)
        TRY(scale(r, half, from, to, count));
    else if (s->scale == NULL && from != to)
        TRY(copy(r, from, to, count));
    if (s->scale != NULL && divide)
        TRY(spmv_map_divide(s->ctx, r->g.s.part, factor != 1 ? to : from, s->scale, to, count));
    else if (s->scale != NULL)
        TRY(spmv_map_binary(s->ctx, SPMV_MUL, r->g.s.part, factor != 1 ? to : from, s->scale, to, count));
    if (factor != 1)
        TRY(scale(r, factor / half, to, to, count));
done:
    return st;
}

/* y = D^-1 x times the factor, or 0. */
static spmv_status take_x(struct problem *p, void *x)
{
    spmv_status st = SPMV_OK;
    const struct least_squares_run *const r = p->r;
    const spmv_least_squares *const s = r->solver;
    const int64_t count = columns_of(p);
    if (s->scale != NULL || p->factor != 1)
        TRY(lend(p, count, &p->own_y));
    p->y = p->own_y != NULL ? p->own_y : x;
    if (s->options.zero_start) {
        TRY(clear(r, p->y, count));
        return SPMV_OK;
    }
    TRY(lend(p, count, &p->start));
    TRY(scale_columns(p, p->factor, true, x, p->y));
    TRY(copy(r, p->y, p->start, count));
    if (s->damp > 0)
        TRY(lend(p, count, &p->step));
done:
    return st;
}

/* x = D y / factor, and its norm. */
static spmv_status give_x(struct problem *p, void *x)
{
    spmv_status st = SPMV_OK;
    TRY(scale_columns(p, 1 / p->factor, false, p->y, x));
    TRY(norm_of(p->r, x, columns_of(p), p->r->vector[LS_W], &p->result->norm_x));
done:
    return st;
}

/* to = b - B y */
static spmv_status find_residual(const struct problem *p, void *to)
{
    spmv_status st = SPMV_OK;
    const spmv_type part = p->r->g.s.part;
    spmv_c128 minus = {0}, one = {0}; /* scalars of the type, real or complex */
    real_set(part, &minus, 0, -1);
    real_set(part, &one, 0, 1);
    TRY(copy(p->r, p->b, to, rows_of(p)));
    TRY(spmv_apply(p->r->solver->plan, &minus, p->y, &one, to));
done:
    return st;
}

/* r = b - B y, B'r - damp^2 (y - start) and their norms, from y. */
static spmv_status measure(struct problem *p)
{
    spmv_status st = SPMV_OK;
    const struct least_squares_run *const r = p->r;
    const spmv_least_squares *const s = r->solver;
    spmv_least_squares_result *const result = p->result;
    void *const q = r->vector[LS_Q], *const u = r->vector[LS_U], *const w = r->vector[LS_W], *const v = r->vector[LS_V];
    const void *const step = p->step != NULL ? p->step : p->y;
    double damped = 0;
    TRY(find_residual(p, q));
    TRY(norm_of(r, q, rows_of(p), u, &result->true_residual));
    TRY(spmv_apply(s->transposed, NULL, q, NULL, w));
    if (s->damp > 0) {
        TRY(add(r, -s->damp * s->damp, step, w, columns_of(p)));
        TRY(norm_of(r, step, columns_of(p), v, &damped));
    }
    p->residual = hypot(result->true_residual, s->damp * damped);
    TRY(norm_of(r, w, columns_of(p), v, &p->gradient));
    result->true_gradient = p->gradient;
    if (s->scale != NULL) { /* A'r = D^-1 B'r */
        TRY(spmv_map_divide(s->ctx, r->g.s.part, w, s->scale, w, columns_of(p)));
        TRY(norm_of(r, w, columns_of(p), v, &result->true_gradient));
    }
    result->true_residual /= p->factor;
    result->true_gradient /= p->factor;
    result->damped_residual = p->residual / p->factor;
done:
    return st;
}

/* A run from the present y, whose residual is in vector LS_U; before: iterations of other runs. */
static spmv_status run(struct problem *p, int64_t most, int64_t before)
{
    spmv_status st = SPMV_OK;
    struct least_squares_run *const r = p->r;
    const spmv_least_squares *const s = r->solver;
    struct krylov_state *const state = &r->g.host;
    int64_t next = before > 0; /* a restart has reported its first residual already */
    r->y = p->step != NULL ? p->step : p->y;
    if (p->step != NULL)
        TRY(clear(r, p->step, columns_of(p)));
    memset(state, 0, sizeof *state);
    state->roundoff = real_limits_of(r->g.s.part).roundoff;
    state->limit = most - before;
    state->enough = 1;
    state->c[C_ONE] = scalar_of(1);
    state->least_squares = r->scalars;
    r->host = (struct krylov_least_squares){.damp = s->damp,
                                            .atol = s->options.atol,
                                            .btol = s->options.btol,
                                            .conlim = s->options.conlim > 0 ? s->options.conlim : INFINITY,
                                            .norm_b = p->norm_b};
    TRY(spmv_upload(s->ctx, state, r->g.v.state, (int64_t)sizeof *state));
    TRY(spmv_upload(s->ctx, &r->host, r->scalars, (int64_t)sizeof r->host));
    TRY(s->solver->begin(&r->g));
    TRY(krylov_loop_steps(&r->g, before, &next));
    TRY(spmv_download(s->ctx, r->scalars, &r->host, (int64_t)sizeof r->host));
    if (p->step != NULL) {
        TRY(copy(r, p->start, p->y, columns_of(p)));
        TRY(add(r, 1, p->step, p->y, columns_of(p)));
    }
done:
    return st;
}

/* Whether the residuals computed from y meet a tolerance, or are at the rounding errors of computing
 * them. */
static bool is_reached(const struct problem *p)
{
    const struct krylov_least_squares *const l = &p->r->host;
    const double unit = p->r->g.host.roundoff, terms = p->norm_b + l->norm_a * l->norm_x;
    return p->residual <= SLACK * (l->btol * p->norm_b + l->atol * l->norm_a * l->norm_x) ||
           p->gradient <= SLACK * l->atol * l->norm_a * p->residual || p->residual <= ROUNDINGS * unit * terms ||
           p->gradient <= ROUNDINGS * unit * l->norm_a * terms;
}

/* ------------------------------------------------------------- statuses and their messages */

static spmv_status fail_not_finite(const struct problem *p, const void *b)
{
    struct krylov asked = p->r->g.s;
    (void)context_fail(asked.ctx, SPMV_ERROR_NOT_FINITE, "%s: %s: a sum is not finite at iteration %lld", asked.call,
                       asked.solver->name, (long long)p->result->iterations);
    asked.info.vectors = 1;
    if (!krylov_find_not_finite(&asked, b, true) && p->start != NULL) {
        double norm = 0;
        if (norm_of(p->r, p->start, columns_of(p), p->r->vector[LS_W], &norm) == SPMV_OK && !isfinite(norm))
            (void)context_fail(asked.ctx, SPMV_ERROR_NOT_FINITE, "%s: the start x has a number that is not finite",
                               asked.call);
    }
    return SPMV_ERROR_NOT_FINITE;
}

static void say(struct problem *p, const char *why)
{
    snprintf(p->result->why_stop, sizeof p->result->why_stop, "%s", why);
}

/* The status of the last run, with its message and the sentence of the result. */
static spmv_status verdict(struct problem *p)
{
    const struct least_squares_run *const r = p->r;
    const struct krylov *const s = &r->g.s;
    const struct krylov_least_squares *const l = &r->host;
    spmv_least_squares_result *const result = p->result;
    const char *const name = s->solver->name;
    const long long k = result->iterations;
    if (s->told != SPMV_OK) { /* steps that were queued may have ended the run meanwhile */
        result->stop = SPMV_STOP_FAILED;
        say(p, "cancelled");
        return context_fail(s->ctx, SPMV_CANCELLED, "%s: cancelled by its callback at iteration %lld", s->call,
                            (long long)s->told_at);
    }
    switch (result->stop) {
    case SPMV_STOP_START:
        say(p, p->residual == 0 ? "the start solves A x = b" : "the start is a solution: A'r = 0");
        break;
    case SPMV_STOP_CONSISTENT:
        say(p, "||b - A x|| is within the tolerance: A x = b has a solution");
        break;
    case SPMV_STOP_LEAST_SQUARES:
        say(p, r->solver->damp > 0
                   ? "||A'r|| is within the tolerance: x is a damped least-squares solution"
                   : "||A'r|| is within the tolerance: x is a least-squares solution, and A x = b has none");
        break;
    case SPMV_STOP_CONSISTENT_ROUNDOFF:
    case SPMV_STOP_LEAST_SQUARES_ROUNDOFF:
        snprintf(result->why_stop, sizeof result->why_stop, "%s is as small as the precision of %s permits",
                 result->stop == SPMV_STOP_CONSISTENT_ROUNDOFF ? "||b - A x||" : "||A'r||", spmv_type_name(s->type));
        break;
    case SPMV_STOP_CONDITION:
    case SPMV_STOP_CONDITION_ROUNDOFF:
        snprintf(result->why_stop, sizeof result->why_stop,
                 "the estimated condition number %.2g of A exceeds %s: A has nearly lost rank", l->condition,
                 result->stop == SPMV_STOP_CONDITION ? "conlim" : "the precision of the type");
        return context_fail(s->ctx, SPMV_ERROR_CONDITION,
                            "%s: %s: the estimated condition number of A is %.2g at iteration %lld, and %s %.2g: A has "
                            "nearly lost rank. Take damp > 0 for a regularised solution, or a larger conlim",
                            s->call, name, l->condition, k,
                            result->stop == SPMV_STOP_CONDITION ? "conlim is" : "the roundoff of the type allows",
                            result->stop == SPMV_STOP_CONDITION ? l->conlim : 1 / r->g.host.roundoff);
    case SPMV_STOP_ITERATIONS:
        snprintf(result->why_stop, sizeof result->why_stop, "the limit of iterations");
        return context_fail(s->ctx, SPMV_ERROR_ITERATIONS,
                            "%s: %s: ||b - A x|| is %.3g and ||A'r|| is %.3g after %lld iteration%s, the limit",
                            s->call, name, result->damped_residual, result->true_gradient, k, k == 1 ? "" : "s");
    default:
        break;
    }
    return SPMV_OK;
}

static spmv_status fail_breakdown(struct problem *p)
{
    const struct krylov *const s = &p->r->g.s;
    say(p, "A p vanishes");
    return context_fail(s->ctx, SPMV_ERROR_BREAKDOWN, "%s: cgls: A p vanishes at iteration %lld; try lsmr", s->call,
                        (long long)p->result->iterations);
}

static spmv_status fail_stagnation(struct problem *p)
{
    const struct krylov *const s = &p->r->g.s;
    const spmv_least_squares_result *const result = p->result;
    say(p, "the residual computed from x does not follow that of the recurrence");
    return context_fail(
        s->ctx, SPMV_ERROR_STAGNATION,
        "%s: %s: after %lld iterations and %lld restart%s ||b - A x|| is %.3g and ||A'r|| is %.3g; in the "
        "recurrence they are %.3g and %.3g",
        s->call, s->solver->name, (long long)result->iterations, (long long)result->restarts, plural(result->restarts),
        result->damped_residual, result->true_gradient, result->recurrence_residual, result->recurrence_gradient);
}

/* ------------------------------------------------------------- runs and restarts */

/* Adds the run to the result. */
static void collect(struct problem *p, int64_t before)
{
    const struct least_squares_run *const r = p->r;
    spmv_least_squares_result *const result = p->result;
    result->iterations = before + r->g.host.iterations;
    result->stop = r->g.host.stop == KRYLOV_RUNS || r->g.host.stop == KRYLOV_BROKEN ? SPMV_STOP_FAILED : r->host.reason;
    result->recurrence_residual = r->host.residual / p->factor;
    result->recurrence_gradient = r->host.gradient / p->factor;
    result->norm_a = r->host.norm_a;
    result->condition = r->host.condition;
}

/* Goes back to the y before the last run, which has the smaller residual. */
static spmv_status go_back(struct problem *p)
{
    spmv_status st = SPMV_OK;
    TRY(copy(p->r, p->best, p->y, columns_of(p)));
    TRY(measure(p));
done:
    return st;
}

/* y becomes a number again: the start. */
static spmv_status reset(const struct problem *p)
{
    spmv_status st = SPMV_OK;
    if (p->step != NULL)
        TRY(clear(p->r, p->step, columns_of(p)));
    TRY(p->start != NULL ? copy(p->r, p->start, p->y, columns_of(p)) : clear(p->r, p->y, columns_of(p)));
done:
    return st;
}

static spmv_status solve_scaled(struct problem *p, const void *b)
{
    spmv_status st = SPMV_OK;
    struct least_squares_run *const r = p->r;
    const spmv_least_squares *const s = r->solver;
    spmv_least_squares_result *const result = p->result;
    const int64_t asked = s->options.max_iterations;
    const int64_t most = asked > 0 ? asked : max_i64(100, 10 * min_i64(s->a.rows, s->a.cols));
    for (;;) {
        const int64_t before = result->iterations;
        const double residual = p->residual, gradient = p->gradient;
        if (p->start == NULL && before == 0)
            TRY(copy(r, p->b, r->vector[LS_U], rows_of(p)));
        else
            TRY(find_residual(p, r->vector[LS_U]));
        TRY(run(p, most, before));
        collect(p, before);
        if (r->g.host.stop == KRYLOV_BROKEN && r->g.host.broken == BROKEN_NOT_FINITE) {
            TRY(reset(p));
            TRY(measure(p));
            say(p, "a number is not finite");
            return fail_not_finite(p, b);
        }
        TRY(measure(p));
        if (r->g.host.stop == KRYLOV_BROKEN)
            return is_reached(p) ? SPMV_OK : fail_breakdown(p);
        st = verdict(p);
        if (st != SPMV_OK || result->stop == SPMV_STOP_START || is_reached(p))
            return st;
        const bool helps = before == 0 || p->residual <= 0.5 * residual || p->gradient <= 0.5 * gradient;
        if (s->damp > 0 || !helps || result->iterations >= most) {
            if (p->best != NULL && p->residual > residual && p->gradient > gradient)
                TRY(go_back(p));
            return fail_stagnation(p);
        }
        if (p->best == NULL)
            TRY(lend(p, columns_of(p), &p->best));
        TRY(copy(r, p->y, p->best, columns_of(p)));
        result->restarts++;
    }
done:
    return st;
}

/* No rows, or no columns: nothing to iterate. */
static spmv_status solve_empty(struct least_squares_run *r, const void *b, void *x, spmv_least_squares_result *result)
{
    spmv_status st = SPMV_OK;
    const spmv_least_squares *const s = r->solver;
    const int64_t rows = s->a.rows * type_parts(s->type), columns = r->g.s.count;
    void *scratch = NULL;
    TRY(context_lend(s->ctx, max_i64(1, max_i64(rows, columns)) * (int64_t)spmv_type_size(r->g.s.part), &scratch));
    if (s->options.zero_start && columns > 0)
        TRY(clear(r, x, columns));
    if (rows > 0)
        TRY(norm_of(r, b, rows, scratch, &result->norm_b));
    if (columns > 0)
        TRY(norm_of(r, x, columns, scratch, &result->norm_x));
    result->true_residual = result->damped_residual = result->recurrence_residual = result->norm_b;
    result->stop = SPMV_STOP_START;
    snprintf(result->why_stop, sizeof result->why_stop, "A has no %s", rows == 0 ? "rows" : "columns");
    if (!isfinite(result->norm_b) || !isfinite(result->norm_x)) {
        result->stop = SPMV_STOP_FAILED;
        st = context_fail(s->ctx, SPMV_ERROR_NOT_FINITE, "%s: %s has a number that is not finite", r->g.s.call,
                          rows > 0 ? "b" : "the start x");
    } else if (krylov_tell(&r->g.s, 0, result->norm_b) != SPMV_OK)
        st = context_fail(s->ctx, SPMV_CANCELLED, "%s: cancelled by its callback at iteration 0", r->g.s.call);
done:
    context_take_back(s->ctx, scratch);
    return st;
}

static void release(const struct problem *p)
{
    void *const lent[] = {p->scaled_b, p->own_y, p->start, p->step, p->best};
    for (size_t i = 0; i < sizeof lent / sizeof *lent; i++)
        context_take_back(p->r->g.s.ctx, lent[i]);
}

/* Solves for one b. Sets the result but its status. */
static spmv_status solve_one(struct least_squares_run *r, const void *b, void *x, spmv_least_squares_result *result)
{
    spmv_status st = SPMV_OK;
    struct problem p = {.r = r, .result = result};
    if (r->solver->a.rows == 0 || r->solver->a.cols == 0)
        return solve_empty(r, b, x, result);
    TRY(take_b(&p, b));
    TRY(take_x(&p, x));
    const spmv_status stop = solve_scaled(&p, b);
    TRY(stop != SPMV_OK && spmv_status_class(stop) < 7 ? stop : SPMV_OK);
    TRY(give_x(&p, x));
    st = stop;
    if (!isfinite(result->norm_x) && st != SPMV_ERROR_NOT_FINITE) {
        TRY(reset(&p));
        TRY(measure(&p));
        TRY(give_x(&p, x));
        result->stop = SPMV_STOP_FAILED;
        say(&p, p.start != NULL ? "the solution exceeds the range of the type; x is the start"
                                : "the solution exceeds the range of the type; x is set to 0");
        st = context_fail(r->g.s.ctx, SPMV_ERROR_NOT_FINITE, "%s: the solution exceeds the range of %s; x is %s",
                          r->g.s.call, spmv_type_name(r->g.s.type), p.start != NULL ? "the start" : "set to 0");
    }
done:
    release(&p);
    return st;
}

/* ------------------------------------------------------------- several right-hand sides */

/* Positions of the real numbers of one of k vectors that are stored by rows. */
static spmv_status make_index(const struct least_squares_run *r, int64_t elements, int64_t **index)
{
    spmv_status st = SPMV_OK;
    const int parts = type_parts(r->solver->type), k = r->solver->options.vectors;
    const int64_t count = elements * parts, bytes = count * (int64_t)sizeof **index;
    int64_t *host = NULL;
    TRY(host_alloc(r->g.s.ctx, bytes, r->g.s.call, (void **)&host));
    for (int64_t i = 0; i < count; i++)
        host[i] = i / parts * k * parts + i % parts;
    TRY(context_lend(r->g.s.ctx, bytes, (void **)index));
    if (count > 0)
        TRY(spmv_upload(r->g.s.ctx, host, *index, bytes));
    TRY(spmv_synchronize(r->g.s.ctx));
done:
    host_free(host);
    return st;
}

static spmv_status solve_column(struct least_squares_run *r, int v, const void *b, void *x, const int64_t *rows,
                                const int64_t *columns, void *one_b, void *one_x, spmv_least_squares_result *result,
                                spmv_status *stop)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = r->g.s.ctx;
    const spmv_least_squares *const s = r->solver;
    const spmv_type part = r->g.s.part;
    const int64_t parts = type_parts(s->type), k = s->options.vectors, shift = v * parts;
    const int64_t m = s->a.rows * parts, n = s->a.cols * parts, from = shift * (int64_t)spmv_type_size(part);
    if (m > 0)
        TRY(spmv_gather(ctx, part, (const char *)b + from, m * k - shift, rows, 64, one_b, m));
    if (n > 0)
        TRY(spmv_gather(ctx, part, (const char *)x + from, n * k - shift, columns, 64, one_x, n));
    *stop = solve_one(r, one_b, one_x, result);
    TRY(*stop != SPMV_OK && spmv_status_class(*stop) < 7 ? *stop : SPMV_OK);
    if (n > 0)
        TRY(spmv_scatter(ctx, part, one_x, columns, 64, (char *)x + from, n * k - shift, n));
done:
    return st;
}

static spmv_status solve_columns(struct least_squares_run *r, const void *b, void *x,
                                 spmv_least_squares_result *results)
{
    spmv_status st = SPMV_OK, first = SPMV_OK;
    spmv_context *const ctx = r->g.s.ctx;
    const spmv_least_squares *const s = r->solver;
    const int64_t size = (int64_t)spmv_type_size(s->type);
    int64_t *rows = NULL, *columns = NULL;
    void *one_b = NULL, *one_x = NULL;
    char sentence[1024] = "";
    TRY(make_index(r, s->a.rows, &rows));
    TRY(make_index(r, s->a.cols, &columns));
    TRY(context_lend(ctx, max_i64(1, s->a.rows) * size, &one_b));
    TRY(context_lend(ctx, max_i64(1, s->a.cols) * size, &one_x));
    for (int v = 0; v < s->options.vectors && r->g.s.told == SPMV_OK; v++) {
        spmv_status stop = SPMV_OK;
        TRY(solve_column(r, v, b, x, rows, columns, one_b, one_x, &results[v], &stop));
        results[v].status = stop;
        if (stop == SPMV_OK || first != SPMV_OK)
            continue;
        first = stop;
        snprintf(sentence, sizeof sentence, "right-hand side %d of %d: %.900s", v + 1, s->options.vectors,
                 spmv_last_error(ctx));
    }
    for (int v = 0; v < s->options.vectors && r->g.s.told != SPMV_OK; v++)
        if (results[v].status == SPMV_ERROR_ARGUMENT)
            results[v].status = SPMV_CANCELLED;
    if (first != SPMV_OK)
        st = context_fail(ctx, first, "%s", sentence);
done:
    context_take_back(ctx, rows);
    context_take_back(ctx, columns);
    context_take_back(ctx, one_b);
    context_take_back(ctx, one_x);
    return st;
}

spmv_status least_squares_solve_all(spmv_least_squares *s, const void *b, void *x, spmv_least_squares_result *results)
{
    struct least_squares_run r;
    for (int v = 0; v < s->options.vectors; v++)
        results[v] = (spmv_least_squares_result){
            .size = sizeof *results, .status = SPMV_ERROR_ARGUMENT, .stop = SPMV_STOP_FAILED};
    spmv_status st = open(&r, s);
    if (st == SPMV_OK)
        st = s->options.vectors > 1 ? solve_columns(&r, b, x, results) : solve_one(&r, b, x, results);
    close(&r);
    if (s->options.vectors == 1 || (st != SPMV_OK && spmv_status_class(st) < 7))
        for (int v = 0; v < s->options.vectors; v++)
            results[v].status = results[v].status == SPMV_ERROR_ARGUMENT ? st : results[v].status;
    return st;
}
