/* A solve of min ||A x - b||: the scaled system, runs of the recurrence, restarts, and what is computed
 * from x in the end.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>
#include <string.h>

#include "core/backend.h"
#include "core/hypot.h"
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

enum { ALIGNED = 256 };

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

/* In the scaled system: min over y of ||B y - b||^2 + damp^2 ||y - start||^2. Vectors may be NULL: see
 * begin. */
struct problem {
    struct least_squares_run *r;
    spmv_least_squares_result *result;
    const void *given_b;                     /* the caller's */
    void *place;                             /* of y, with several right-hand sides; NULL: anywhere */
    int number;                              /* of the right-hand side */
    bool open;                               /* takes part in what is done for the columns together */
    bool again, back;                        /* after a run: another one follows; y returns to the one before the run */
    int64_t before;                          /* iterations before this run */
    double residual_before, gradient_before; /* of the y before this run */
    const void *b;                           /* factor times the caller's */
    double factor;                           /* a power of two */
    double norm_b;                           /* of b here */
    void *y;
    void *start;               /* with a start */
    void *step;                /* with damp and a start: y - start */
    void *scaled_b, *own_y;    /* memory of b and y where they are not the caller's */
    void *best;                /* with a restart: y before it */
    double residual, gradient; /* in the scaled system, of the present y */
};

/* The right-hand sides that are solved together, and what they share. */
struct batch {
    struct least_squares_run *r; /* one for each */
    struct problem *p;           /* one for each */
    int columns;
    int64_t of_x, of_b; /* elements from one column to the next */
    void *scalars;      /* with several columns, in host memory: their scalars */
    int *running;       /* with several columns, in the context's memory: krylov_least_squares.columns */
    /* with several right-hand sides: places of the numbers of one of them; b of all columns, x of one; y of all */
    int64_t *row_places, *column_places;
    void *b, *x, *y;
    void *step; /* with damp and a start. It stays, as y does: graphs of steps write there */
    /* of all right-hand sides: the first one that failed, -1: none, its status and message */
    int first;
    spmv_status status;
    char sentence[1024];
};

static void set_column(struct batch *b, int v, char *states, char *scalars, char *parts, int64_t parts_x,
                       int64_t parts_b)
{
    struct least_squares_run *const r = &b->r[v], *const first = b->r;
    const spmv_least_squares *const s = first->solver;
    const int64_t size = (int64_t)spmv_type_size(s->type);
    const int vectors = s->solver->vectors(&first->g);
    char *const own = parts + v * (parts_x + parts_b);
    if (v > 0)
        *r = *first;
    r->scalars = (struct krylov_least_squares *)(void *)scalars + v;
    r->g.v = (struct krylov_vectors){.ctx = s->ctx,
                                     .type = s->type,
                                     .n = s->a.cols,
                                     .state = (struct krylov_state *)(void *)states + v,
                                     .parts = own};
    r->rows = r->g.v;
    r->rows.n = s->a.rows;
    r->rows.parts = own + parts_x;
    for (int i = 0; i < vectors; i++) {
        const int64_t before = i < LS_V ? i * b->of_b : LS_V * b->of_b + (i - LS_V) * b->of_x;
        r->vector[i] = (char *)first->g.vectors + (b->columns * before + v * (i < LS_V ? b->of_b : b->of_x)) * size;
    }
}

static spmv_status open(struct batch *batch, spmv_least_squares *s)
{
    spmv_status st = SPMV_OK;
    const int parts = type_parts(s->type), columns = s->together;
    *batch = (struct batch){.columns = columns,
                            .first = -1,
                            .of_x = least_squares_stride(s->a.cols),
                            .of_b = least_squares_stride(s->a.rows)};
    TRY(host_alloc(s->ctx, columns * (int64_t)sizeof *batch->r, "a solve", (void **)&batch->r));
    TRY(host_alloc(s->ctx, columns * (int64_t)sizeof *batch->p, "a solve", (void **)&batch->p));
    struct least_squares_run *const r = batch->r;
    struct krylov *const k = &r->g.s;
    *r = (struct least_squares_run){.solver = s, .columns = columns};
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
    const int64_t states = padded(columns * (int64_t)sizeof *r->g.v.state);
    const int64_t scalars = padded(columns * (int64_t)sizeof *r->scalars);
    const int64_t parts_x = padded(krylov_parts_bytes(s->ctx, s->a.cols, 0, NULL));
    const int64_t parts_b = padded(krylov_parts_bytes(s->ctx, s->a.rows, 0, NULL));
    const int64_t all = states + scalars + columns * (parts_x + parts_b) + ALIGNED;
    const int vectors = s->solver->vectors(&r->g);
    const int64_t elements = columns * (LS_V * batch->of_b + (vectors - LS_V) * batch->of_x);
    TRY(context_lend(s->ctx, all, &r->g.small));
    TRY(context_lend(s->ctx, elements * size, &r->g.vectors));
    TRY(spmv_map_index(s->ctx, SPMV_F64, &(const double){0}, NULL, r->g.small, all / 8));
    char *const base = r->g.small, *const of_parts = base + states + scalars;
    if (columns > 1) {
        batch->running = (int *)(void *)(of_parts + columns * (parts_x + parts_b));
        TRY(host_alloc(s->ctx, columns * (int64_t)sizeof *r->g.states, k->call, (void **)&r->g.states));
        TRY(host_alloc(s->ctx, columns * (int64_t)sizeof *r->scalars, k->call, &batch->scalars));
        r->g.columns = columns;
        TRY(clear(r, r->g.vectors, elements * parts)); /* columns that are not used */
    }
    for (int v = 0; v < columns; v++)
        set_column(batch, v, base, base + states, of_parts, parts_x, parts_b);
    for (int v = 0; v < columns; v++)
        r[v].ended = columns > 1 ? batch->running + 1 : &r->g.v.state->ending;
    if (context_on_device(s->ctx) && columns == 1)
        TRY(least_squares_persistent_open(r));
    if (context_on_device(s->ctx) && r->g.many_steps == NULL)
        TRY(krylov_queue_open(&r->g, &r->g.queue));
done:
    return st;
}

static void close(spmv_context *ctx, const struct batch *batch)
{
    struct least_squares_run *const r = batch->r;
    if (r == NULL || batch->p == NULL) {
        host_free(r);
        return;
    }
    if (context_on_device(ctx)) {
        krylov_queue_close(r->g.queue);
        least_squares_persistent_close(r);
    }
    void *const lent[] = {r->g.s.cells, r->g.small, r->g.vectors, batch->row_places, batch->column_places,
                          batch->b,     batch->x,   batch->y,     batch->step};
    for (size_t i = 0; i < sizeof lent / sizeof *lent; i++)
        context_take_back(ctx, lent[i]);
    host_free(r->g.s.values);
    host_free(r->g.states);
    host_free(batch->scalars);
    host_free(batch->p);
    host_free(r);
}

/* ------------------------------------------------------------- one right-hand side */

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
    p->b = p->given_b = b;
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
    if (p->place == NULL && (s->scale != NULL || p->factor != 1))
        TRY(lend(p, count, &p->own_y));
    p->y = p->place != NULL ? p->place : p->own_y != NULL ? p->own_y : x;
    if (s->options.zero_start) {
        TRY(clear(r, p->y, count));
        return SPMV_OK;
    }
    TRY(lend(p, count, &p->start));
    TRY(scale_columns(p, p->factor, true, x, p->y));
    TRY(copy(r, p->y, p->start, count));
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

/* vector `to` of the run = b - B y, for the columns that are open; others get numbers without meaning. */
static spmv_status find_residuals(const struct problem *p, int to)
{
    spmv_status st = SPMV_OK;
    const struct least_squares_run *const r = p->r;
    spmv_c128 minus = {0}, one = {0}; /* scalars of the type, real or complex */
    real_set(r->g.s.part, &minus, 0, -1);
    real_set(r->g.s.part, &one, 0, 1);
    for (int v = 0; v < r->columns; v++)
        if (p[v].open)
            TRY(copy(&r[v], p[v].b, r[v].vector[to], rows_of(p)));
    TRY(spmv_apply(r->solver->plan, &minus, p->place != NULL ? p->place : p->y, &one, r->vector[to]));
done:
    return st;
}

/* The norms of r = b - B y in LS_Q. */
static spmv_status measure_residual(struct problem *p)
{
    const struct least_squares_run *const r = p->r;
    return norm_of(r, r->vector[LS_Q], rows_of(p), r->vector[LS_U], &p->result->true_residual);
}

/* From B'r in LS_W: B'r - damp^2 (y - start), and all norms. */
static spmv_status measure_gradient(struct problem *p)
{
    spmv_status st = SPMV_OK;
    const struct least_squares_run *const r = p->r;
    const spmv_least_squares *const s = r->solver;
    spmv_least_squares_result *const result = p->result;
    void *const w = r->vector[LS_W], *const v = r->vector[LS_V];
    const void *const step = p->step != NULL ? p->step : p->y;
    double damped = 0;
    if (s->damp > 0) {
        TRY(add(r, -s->damp * s->damp, step, w, columns_of(p)));
        TRY(norm_of(r, step, columns_of(p), v, &damped));
    }
    p->residual = real_hypot(result->true_residual, s->damp * damped);
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

/* f(column), for the columns that are open. */
static spmv_status each_open(struct problem *p, spmv_status (*f)(struct problem *))
{
    spmv_status st = SPMV_OK;
    for (int v = 0; v < p->r->columns; v++)
        if (p[v].open)
            TRY(f(&p[v]));
done:
    return st;
}

/* r = b - B y, B'r - damp^2 (y - start) and their norms, from y, of the columns that are open. */
static spmv_status measure(struct problem *p)
{
    spmv_status st = SPMV_OK;
    const struct least_squares_run *const r = p->r;
    TRY(find_residuals(p, LS_Q));
    TRY(each_open(p, measure_residual));
    TRY(spmv_apply(r->solver->transposed, NULL, r->vector[LS_Q], NULL, r->vector[LS_W]));
    TRY(each_open(p, measure_gradient));
done:
    return st;
}

/* What the host writes before a run from the present y, whose residual is in vector LS_U. */
static spmv_status prepare_run(struct problem *p, int64_t most)
{
    spmv_status st = SPMV_OK;
    struct least_squares_run *const r = p->r;
    const spmv_least_squares *const s = r->solver;
    struct krylov_state *const state = &r->g.host;
    r->y = p->step != NULL ? p->step : p->y;
    if (p->open && p->step != NULL)
        TRY(clear(r, p->step, columns_of(p)));
    memset(state, 0, sizeof *state);
    state->roundoff = real_limits_of(r->g.s.part).roundoff;
    state->limit = most - p->before;
    state->enough = 1;
    state->c[C_ONE] = scalar_of(1);
    state->least_squares = r->scalars;
    state->ending = !p->open;
    state->iterations = p->open ? 0 : -1;
    r->host = (struct krylov_least_squares){.damp = s->damp,
                                            .atol = s->options.atol,
                                            .btol = s->options.btol,
                                            .conlim = s->options.conlim > 0 ? s->options.conlim : INFINITY,
                                            .norm_b = p->norm_b};
done:
    return st;
}

/* Writes the states and scalars of all columns, or reads them. */
static spmv_status write_states(const struct batch *batch)
{
    spmv_status st = SPMV_OK;
    const struct problem *const p = batch->p;
    struct least_squares_run *const r = batch->r;
    spmv_context *const ctx = r->g.s.ctx;
    struct krylov_least_squares *const scalars = batch->columns > 1 ? batch->scalars : &r->host;
    struct krylov_state *const states = batch->columns > 1 ? r->g.states : &r->g.host;
    int running[2] = {0, 0};
    for (int v = 0; v < batch->columns && batch->columns > 1; v++) {
        running[0] += p[v].open;
        states[v] = r[v].g.host;
        scalars[v] = r[v].host;
        scalars[v].columns = batch->running;
    }
    TRY(spmv_upload(ctx, states, r->g.v.state, batch->columns * (int64_t)sizeof *states));
    TRY(spmv_upload(ctx, scalars, r->scalars, batch->columns * (int64_t)sizeof *scalars));
    if (batch->columns > 1)
        TRY(spmv_upload(ctx, running, batch->running, (int64_t)sizeof running));
done:
    return st;
}

static spmv_status read_states(const struct batch *batch)
{
    spmv_status st = SPMV_OK;
    struct least_squares_run *const r = batch->r;
    struct krylov_least_squares *const scalars = batch->columns > 1 ? batch->scalars : &r->host;
    TRY(spmv_download(r->g.s.ctx, r->scalars, scalars, batch->columns * (int64_t)sizeof *scalars));
    for (int v = 0; v < batch->columns && batch->columns > 1; v++) {
        r[v].g.host = r->g.states[v];
        r[v].host = scalars[v];
    }
done:
    return st;
}

static spmv_status end_run(struct problem *p)
{
    spmv_status st = SPMV_OK;
    if (p->step == NULL)
        return SPMV_OK;
    TRY(copy(p->r, p->start, p->y, columns_of(p)));
    TRY(add(p->r, 1, p->step, p->y, columns_of(p)));
done:
    return st;
}

/* A run of the columns that are open, from their present y. */
static spmv_status run(const struct batch *batch, int64_t most)
{
    spmv_status st = SPMV_OK;
    struct problem *const p = batch->p;
    struct least_squares_run *const r = batch->r;
    int64_t base = 0;
    for (int v = 0; v < batch->columns; v++) {
        TRY(prepare_run(&p[v], most));
        base = max_i64(base, p[v].before);
    }
    int64_t next = base > 0; /* a restart has reported its first residual already */
    TRY(write_states(batch));
    TRY(r->g.s.solver->begin(&r->g));
    TRY(krylov_loop_steps(&r->g, base, &next));
    TRY(read_states(batch));
    for (int v = 1; v < batch->columns; v++)
        if (r[v].g.host.stop == KRYLOV_RUNS || base + r[v].g.host.iterations >= r->g.s.told_at) {
            r[v].g.s.told = r->g.s.told;
            r[v].g.s.told_at = r->g.s.told_at;
        }
    TRY(each_open(p, end_run));
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

static spmv_status fail_not_finite(const struct problem *p)
{
    struct krylov asked = p->r->g.s;
    (void)context_fail(asked.ctx, SPMV_ERROR_NOT_FINITE, "%s: %s: a sum is not finite at iteration %lld", asked.call,
                       asked.solver->name, (long long)p->result->iterations);
    asked.info.vectors = 1;
    if (!krylov_find_not_finite(&asked, p->given_b, true) && p->start != NULL) {
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
static void collect(struct problem *p)
{
    const struct least_squares_run *const r = p->r;
    spmv_least_squares_result *const result = p->result;
    result->iterations = p->before + r->g.host.iterations;
    result->stop = r->g.host.stop == KRYLOV_RUNS || r->g.host.stop == KRYLOV_BROKEN ? SPMV_STOP_FAILED : r->host.reason;
    result->recurrence_residual = r->host.residual / p->factor;
    result->recurrence_gradient = r->host.gradient / p->factor;
    result->norm_a = r->host.norm_a;
    result->condition = r->host.condition;
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

/* After a run and measure, of a column that was open: its status, unless `again` or `back` is set. */
static spmv_status judge(struct problem *p, int64_t most, const struct krylov *first)
{
    spmv_status st = SPMV_OK;
    struct least_squares_run *const r = p->r;
    const spmv_least_squares_result *const result = p->result;
    const bool broken = r->g.host.stop == KRYLOV_BROKEN;
    if (broken && r->g.host.broken == BROKEN_NOT_FINITE) {
        say(p, "a number is not finite");
        return fail_not_finite(p);
    }
    if (broken)
        return is_reached(p) ? SPMV_OK : fail_breakdown(p);
    st = verdict(p);
    if (st != SPMV_OK || result->stop == SPMV_STOP_START || is_reached(p))
        return st;
    if (first->told != SPMV_OK) { /* another column has seen the end */
        r->g.s.told = first->told;
        r->g.s.told_at = first->told_at;
        return verdict(p);
    }
    const bool helps =
        p->before == 0 || p->residual <= 0.5 * p->residual_before || p->gradient <= 0.5 * p->gradient_before;
    p->again = r->solver->damp == 0 && helps && result->iterations < most;
    p->back = !p->again && p->best != NULL && p->residual > p->residual_before && p->gradient > p->gradient_before;
    return p->again || p->back ? SPMV_OK : fail_stagnation(p);
}

/* Sets the status of a column, and notes the first one that failed. */
static void end_column(struct batch *batch, const struct problem *p, spmv_status st)
{
    p->result->status = st;
    if (st == SPMV_OK || (batch->first >= 0 && batch->first < p->number))
        return;
    batch->first = p->number;
    batch->status = st;
    snprintf(batch->sentence, sizeof batch->sentence, "%s", spmv_last_error(p->r->g.s.ctx));
}

/* A status that ends the whole solve: of memory or a device. */
static spmv_status severe(spmv_status st)
{
    return st != SPMV_OK && spmv_status_class(st) < 7 ? st : SPMV_OK;
}

/* Before another run of this column. */
static spmv_status prepare_again(struct problem *p)
{
    spmv_status st = SPMV_OK;
    if (p->best == NULL)
        TRY(lend(p, columns_of(p), &p->best));
    TRY(copy(p->r, p->y, p->best, columns_of(p)));
    p->result->restarts++;
done:
    return st;
}

/* Opens the columns that return to the y before the run, which has the smaller residual, or those that go on. */
static spmv_status open_some(struct batch *batch, bool back, bool *any)
{
    spmv_status st = SPMV_OK;
    *any = false;
    for (int v = 0; v < batch->columns; v++) {
        struct problem *const p = &batch->p[v];
        p->open = back ? p->back : p->again;
        if (p->open)
            TRY(back ? copy(p->r, p->best, p->y, columns_of(p)) : prepare_again(p));
        *any = *any || p->open;
    }
done:
    return st;
}

/* The residuals of all open columns in LS_U, a run, and its verdicts. *again: some columns are open again. */
static spmv_status run_and_judge(struct batch *batch, int64_t most, bool *again)
{
    spmv_status st = SPMV_OK;
    struct problem *const p = batch->p;
    const struct krylov *const first = &batch->r->g.s;
    bool from_b = true, back = false;
    for (int v = 0; v < batch->columns; v++) {
        p[v].again = p[v].back = false;
        p[v].before = p[v].open ? p[v].result->iterations : 0;
        p[v].residual_before = p[v].residual;
        p[v].gradient_before = p[v].gradient;
        from_b = from_b && (!p[v].open || (p[v].start == NULL && p[v].before == 0));
    }
    for (int v = 0; v < batch->columns && from_b; v++)
        if (p[v].open)
            TRY(copy(p[v].r, p[v].b, p[v].r->vector[LS_U], rows_of(p)));
    if (!from_b)
        TRY(find_residuals(p, LS_U));
    TRY(run(batch, most));
    for (int v = 0; v < batch->columns; v++)
        if (p[v].open) {
            collect(&p[v]);
            if (p[v].r->g.host.stop == KRYLOV_BROKEN && p[v].r->g.host.broken == BROKEN_NOT_FINITE)
                TRY(reset(&p[v]));
        }
    TRY(measure(p));
    for (int v = 0; v < batch->columns; v++)
        if (p[v].open) {
            const spmv_status stop = judge(&p[v], most, first);
            TRY(severe(stop));
            end_column(batch, &p[v], stop);
        }
    TRY(open_some(batch, true, &back));
    if (back)
        TRY(measure(p));
    for (int v = 0; v < batch->columns; v++)
        if (p[v].open)
            end_column(batch, &p[v], fail_stagnation(&p[v]));
    TRY(open_some(batch, false, again));
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
    void *const lent[] = {p->scaled_b, p->own_y, p->start, p->best};
    for (size_t i = 0; i < sizeof lent / sizeof *lent; i++)
        context_take_back(p->r->g.s.ctx, lent[i]);
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

/* What several right-hand sides need besides. */
static spmv_status open_columns(struct batch *batch)
{
    spmv_status st = SPMV_OK;
    struct least_squares_run *const r = batch->r;
    spmv_context *const ctx = r->g.s.ctx;
    const int64_t size = (int64_t)spmv_type_size(r->solver->type);
    TRY(make_index(r, r->solver->a.rows, &batch->row_places));
    TRY(make_index(r, r->solver->a.cols, &batch->column_places));
    TRY(context_lend(ctx, max_i64(1, batch->columns * batch->of_b) * size, &batch->b));
    TRY(context_lend(ctx, max_i64(1, batch->of_x) * size, &batch->x));
    TRY(context_lend(ctx, max_i64(1, batch->columns * batch->of_x) * size, &batch->y));
    TRY(clear(r, batch->y, batch->columns * batch->of_x * type_parts(r->solver->type))); /* columns that are not used */
done:
    return st;
}

/* One of several vectors that are stored by rows: copied to `one`, or from it. */
static spmv_status copy_column(const struct batch *batch, const struct problem *p, bool of_b, bool back, void *vectors,
                               void *one)
{
    const struct krylov *const k = &batch->r->g.s;
    const spmv_least_squares *const s = batch->r->solver;
    const int64_t parts = type_parts(s->type), shift = p->number * parts;
    const int64_t count = (of_b ? s->a.rows : s->a.cols) * parts, all = count * s->options.vectors - shift;
    const int64_t *const places = of_b ? batch->row_places : batch->column_places;
    char *const first = (char *)vectors + (size_t)shift * spmv_type_size(k->part);
    return count == 0 ? SPMV_OK
           : back     ? spmv_scatter(k->ctx, k->part, one, places, 64, first, all, count)
                      : spmv_gather(k->ctx, k->part, first, all, places, 64, one, count);
}

/* b and x of a column, and the start of its solve. Without rows or columns: the whole. */
static spmv_status begin_column(struct batch *batch, struct problem *p, int v, const void *b, void *x)
{
    spmv_status st = SPMV_OK;
    const spmv_least_squares *const s = p->r->solver;
    const size_t size = spmv_type_size(s->type);
    const bool several = batch->row_places != NULL;
    void *const own_b = several ? (char *)batch->b + (size_t)(v * batch->of_b) * size : (void *)b;
    void *const own_x = several ? batch->x : x;
    if (several)
        TRY(copy_column(batch, p, true, false, (void *)b, own_b));
    if (several)
        TRY(copy_column(batch, p, false, false, x, own_x));
    if (s->a.rows == 0 || s->a.cols == 0) {
        const spmv_status stop = solve_empty(p->r, own_b, own_x, p->result);
        TRY(severe(stop));
        end_column(batch, p, stop);
        if (several)
            TRY(copy_column(batch, p, false, true, x, own_x));
        return SPMV_OK;
    }
    p->place = batch->y != NULL ? (char *)batch->y + (size_t)(v * batch->of_x) * size : NULL;
    p->step = batch->step != NULL ? (char *)batch->step + (size_t)(v * batch->of_x) * size : NULL;
    TRY(take_b(p, own_b));
    TRY(take_x(p, own_x));
    p->open = true;
done:
    return st;
}

/* x of a column. If it is not finite, that of the start. */
static spmv_status end_of_column(struct batch *batch, struct problem *p, void *x)
{
    spmv_status st = SPMV_OK;
    const bool several = batch->row_places != NULL;
    void *const own_x = several ? batch->x : x;
    TRY(give_x(p, own_x));
    if (!isfinite(p->result->norm_x) && p->result->status != SPMV_ERROR_NOT_FINITE) {
        TRY(reset(p));
        p->open = true; /* alone */
        TRY(measure(batch->p));
        p->open = false;
        TRY(give_x(p, own_x));
        p->result->stop = SPMV_STOP_FAILED;
        say(p, p->start != NULL ? "the solution exceeds the range of the type; x is the start"
                                : "the solution exceeds the range of the type; x is set to 0");
        end_column(batch, p,
                   context_fail(p->r->g.s.ctx, SPMV_ERROR_NOT_FINITE,
                                "%s: the solution exceeds the range of %s; x is %s", p->r->g.s.call,
                                spmv_type_name(p->r->g.s.type), p->start != NULL ? "the start" : "set to 0"));
    }
    if (several)
        TRY(copy_column(batch, p, false, true, x, own_x));
done:
    return st;
}

/* Solves for the right-hand sides from number `from` on, as many as are solved together. */
static spmv_status solve_batch(struct batch *batch, int from, const void *b, void *x,
                               spmv_least_squares_result *results)
{
    spmv_status st = SPMV_OK;
    const spmv_least_squares *const s = batch->r->solver;
    const int64_t asked = s->options.max_iterations;
    const int64_t most = asked > 0 ? asked : max_i64(100, 10 * min_i64(s->a.rows, s->a.cols));
    const int count = (int)min_i64(batch->columns, s->options.vectors - from);
    bool any = s->a.rows > 0 && s->a.cols > 0;
    for (int v = 0; v < batch->columns; v++)
        batch->p[v] = (struct problem){.r = &batch->r[v], .number = from + v, .result = &results[from + v]};
    batch->p->place = batch->y;
    for (int v = 0; v < count; v++)
        TRY(begin_column(batch, &batch->p[v], v, b, x));
    while (any)
        TRY(run_and_judge(batch, most, &any));
    for (int v = 0; v < count && s->a.rows > 0 && s->a.cols > 0; v++)
        TRY(end_of_column(batch, &batch->p[v], x));
done:
    for (int v = 0; v < batch->columns; v++)
        release(&batch->p[v]);
    return st;
}

spmv_status least_squares_solve_all(spmv_least_squares *s, const void *b, void *x, spmv_least_squares_result *results)
{
    struct batch batch;
    const int vectors = s->options.vectors;
    for (int v = 0; v < vectors; v++)
        results[v] = (spmv_least_squares_result){
            .size = sizeof *results, .status = SPMV_ERROR_ARGUMENT, .stop = SPMV_STOP_FAILED};
    spmv_status st = open(&batch, s);
    if (st == SPMV_OK && vectors > 1)
        st = open_columns(&batch);
    if (st == SPMV_OK && s->damp > 0 && !s->options.zero_start)
        st = context_lend(s->ctx, max_i64(1, batch.columns * batch.of_x) * (int64_t)spmv_type_size(s->type),
                          &batch.step);
    for (int v = 0; v < vectors && st == SPMV_OK && batch.r->g.s.told == SPMV_OK; v += batch.columns)
        st = solve_batch(&batch, v, b, x, results);
    for (int v = 0; v < vectors; v++)
        if (results[v].status == SPMV_ERROR_ARGUMENT)
            results[v].status = st != SPMV_OK ? st : SPMV_CANCELLED;
    close(s->ctx, &batch);
    if (st != SPMV_OK || batch.first < 0)
        return st;
    if (vectors == 1)
        return context_fail(s->ctx, batch.status, "%s", batch.sentence);
    return context_fail(s->ctx, batch.status, "right-hand side %d of %d: %.900s", batch.first + 1, vectors,
                        batch.sentence);
}
