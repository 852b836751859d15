/* The solvers of ranks: the solver of a matrix (solvers/solver.c) with a plan of one rank's rows, and what
 * it needs of all ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <stdio.h>
#include <string.h>

#include "core/choice.h"
#include "core/clock.h"
#include "core/reals.h"
#include "distributed/group_internal.h"
#include "formats/matrix_internal.h"
#include "solvers/exchange/rank_tools.h"
#include "solvers/krylov/krylov_columns.h"
#include "solvers/solver_ranks.h"

static const char *const what = "a solver of a group";

struct spmv_group_solver {
    spmv_group_matrix *m;
    bool owns;                        /* m */
    spmv_group_matrix *negative;      /* -A; NULL: not made yet */
    struct spmv_group_solver *scaled; /* of R A C, whose solver another one owns; NULL: not made yet */
    int vectors;                      /* right-hand sides of a solve */
    bool zero_start;
    spmv_cg_fn on_iteration; /* of the caller */
    void *user;
    struct group_callback callback; /* of the present solve */
    spmv_plan *several;             /* for several right-hand sides at once; NULL: not made yet */
    int columns;                    /* of it */
    int64_t version;                /* of the values of m, of which everything is made */
    struct solver_ranks ranks;
    spmv_solver *solver;
};

/* ------------------------------------------------------------- the rows with columns of the whole matrix */

void group_own_rows_release(struct group_own_rows *r)
{
    host_free_all(r->col, r->wide_col, r->val);
}

static spmv_status take_columns(const spmv_group_matrix *m, struct group_own_rows *r)
{
    spmv_status st = SPMV_OK;
    const int64_t nnz = m->own.nnz, n = max_i64(1, nnz);
    if (m->wide)
        TRY(host_alloc(m->ctx, n * (int64_t)sizeof *r->wide_col, what, (void **)&r->wide_col));
    else
        TRY(host_alloc(m->ctx, n * (int64_t)sizeof *r->col, what, (void **)&r->col));
    for (int64_t k = 0; k < nnz && m->wide; k++)
        r->wide_col[k] = group_number_of(m, m->col[k]);
    for (int64_t k = 0; k < nnz && !m->wide; k++)
        r->col[k] = (int32_t)group_number_of(m, m->col[k]);
done:
    return st;
}

spmv_status group_take_rows(spmv_group_matrix *m, bool negative, struct group_own_rows *r)
{
    spmv_status st = SPMV_OK;
    TRY(group_rows_to_host(m));
    const spmv_type type = m->own.type, part = type_part(type);
    const int64_t nnz = m->own.nnz, numbers = nnz * type_parts(type);
    const bool valued = !m->pattern && nnz > 0;
    TRY(take_columns(m, r));
    if (valued) {
        TRY(host_alloc(m->ctx, nnz * (int64_t)spmv_type_size(type), what, &r->val));
        memcpy(r->val, m->val, (size_t)nnz * spmv_type_size(type));
    }
    for (int64_t k = 0; k < numbers && valued && negative; k++)
        real_set(part, r->val, k, -real_at(part, r->val, k));
    r->view = csr_of(m->own.rows, m->cols, nnz, m->row_ptr, r->col, r->val, type, SPMV_MEMORY_HOST);
done:
    return st;
}

spmv_status group_matrix_like(spmv_group_matrix *m, const spmv_csr *own, const int64_t *wide_col,
                              spmv_group_matrix **made)
{
    const struct group_given given = {.call = "spmv_group_matrix_create",
                                      .own = own,
                                      .has_wide = wide_col != NULL,
                                      .stays_wide = wide_col != NULL,
                                      .wide_col = wide_col};
    spmv_group_matrix_options o;
    spmv_group_matrix_options_init(&o, sizeof o);
    o.type = m->type;
    o.block = m->ranks.rows == m->cols ? m->ranks.block : 0;
    o.exchange = m->exchange.kind != NULL ? m->exchange.kind->name : NULL;
    return group_matrix_make(m->group, &given, &o, made);
}

/* ------------------------------------------------------------- what a solver needs of all ranks */

static spmv_status agree(void *self, spmv_status status)
{
    const struct spmv_group_solver *const g = self;
    return spmv_group_agree(g->m->group, status);
}

static bool can_make(void *self, enum precond_for purpose, const char *name)
{
    const struct spmv_group_solver *const g = self;
    return (precond_is_of_ranks(name) && !(g->m->wide && strcmp(name, "amg") == 0)) ||
           group_makes_whole(g->m, purpose, name);
}

static spmv_status make_precond(void *self, enum precond_for purpose, const char *name, bool negative, bool chosen,
                                const spmv_preconditioner_options *options, spmv_preconditioner **made)
{
    const struct spmv_group_solver *const g = self;
    spmv_group_matrix *const m = negative ? g->negative : g->m;
    const bool whole =
        chosen && options->near_nulls == 0 && options->dimensions == 0 && group_makes_whole(m, purpose, name);
    m->group->settled = false;
    const spmv_status st = whole ? group_precond_whole(m, purpose, name, options, made)
                                 : group_precond_make(m, purpose, name, options, made);
    if (st != SPMV_OK) { /* that of another rank */
        char why[1024];
        snprintf(why, sizeof why, "%s", spmv_last_error(m->ctx));
        spmv_preconditioner_destroy(*made);
        *made = NULL;
        (void)context_fail(m->ctx, st, "%s", why);
    }
    return st;
}

/* Of this rank's diagonal; a rank without rows has none. */
static spmv_status own_extreme(spmv_group_matrix *m, spmv_op op, double *extreme)
{
    spmv_status st = SPMV_OK;
    struct group_square b = {.row_ptr = NULL};
    void *diagonal = NULL, *one = NULL;
    union real host;
    const spmv_type type = m->pattern ? SPMV_F64 : m->own.type;
    const int64_t rows = m->own.rows, size = (int64_t)spmv_type_size(type);
    if (rows == 0)
        return SPMV_OK;
    TRY(group_square_make(m, true, &b));
    if (b.view.memory == SPMV_MEMORY_HOST && !context_on_device(m->ctx))
        b.view.memory = SPMV_MEMORY_CONTEXT;
    TRY(context_lend(m->ctx, rows * size, &diagonal));
    TRY(context_lend(m->ctx, rows * size, &one));
    TRY(spmv_matrix_diagonal(m->ctx, &b.view, diagonal));
    TRY(spmv_reduce(m->ctx, op, type, diagonal, one, rows));
    TRY(spmv_download(m->ctx, one, &host, size));
    *extreme = real_at(type, &host, 0);
done:
    context_take_back(m->ctx, diagonal);
    context_take_back(m->ctx, one);
    group_square_release(m->ctx, &b);
    return st;
}

spmv_status group_find_extreme(spmv_group_matrix *m, spmv_op op, double *extreme)
{
    spmv_status st = SPMV_OK;
    const double sign = op == SPMV_MIN ? -1 : 1;
    double own = -sign * INFINITY;
    TRY(spmv_group_agree(m->group, own_extreme(m, op, &own)));
    own *= sign;
    TRY(group_largest(m, &own));
    *extreme = sign * own;
done:
    return st;
}

static spmv_status find_extreme(void *self, spmv_op op, double *extreme)
{
    return group_find_extreme(((const struct spmv_group_solver *)self)->m, op, extreme);
}

static spmv_status make_dense(void *self, struct direct **direct)
{
    const struct spmv_group_solver *const g = self;
    return group_direct_dense(g->m, direct);
}

static spmv_status make_negative(void *self, spmv_plan **plan)
{
    spmv_status st = SPMV_OK;
    struct spmv_group_solver *const g = self;
    struct group_own_rows rows = {.col = NULL};
    if (g->negative == NULL) {
        TRY(spmv_group_agree(g->m->group, group_take_rows(g->m, true, &rows)));
        TRY(group_matrix_like(g->m, &rows.view, rows.wide_col, &g->negative));
    }
    *plan = g->negative->plan;
done:
    group_own_rows_release(&rows);
    return st;
}

static struct solver_ranks functions_of(struct spmv_group_solver *g);

static spmv_status make_scaled(void *self, int *row, int *col, struct scaled_part *part)
{
    spmv_status st = SPMV_OK;
    struct spmv_group_solver *const g = self;
    spmv_group_solver_destroy(g->scaled); /* of corrections that could not be made */
    g->scaled = NULL;
    st = host_alloc(g->m->ctx, sizeof *g->scaled, what, (void **)&g->scaled);
    if (st == SPMV_OK)
        *g->scaled = (struct spmv_group_solver){.m = NULL};
    TRY(spmv_group_agree(g->m->group, st));
    TRY(group_matrix_scale(g->m, row, col, &g->scaled->m));
    g->scaled->ranks = functions_of(g->scaled);
    g->scaled->owns = true;
    *part = (struct scaled_part){g->scaled->m->plan, &g->scaled->ranks, g->scaled->m->x};
done:
    return st;
}

static struct solver_ranks functions_of(struct spmv_group_solver *g)
{
    return (struct solver_ranks){.self = g,
                                 .agree = agree,
                                 .has = can_make,
                                 .precond = make_precond,
                                 .dense = make_dense,
                                 .extreme = find_extreme,
                                 .negative = make_negative,
                                 .scaled = make_scaled};
}

/* ------------------------------------------------------------- the functions */

/* The options that must be the same on all ranks. */
static uint64_t numbers_of(const spmv_solver_options *o)
{
    const double numbers[] = {o->rtol,    o->atol,    (double)o->max_iterations, o->zero_start, o->symmetry_check,
                              o->restart, o->vectors, o->null_vectors,           o->null_block, o->estimate_error,
                              o->accuracy};
    const char *const texts[] = {o->solver, o->precond, o->rung};
    uint64_t mixed = group_mix(0, numbers, sizeof numbers);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *const text = texts[i] != NULL ? texts[i] : "auto";
        mixed = group_mix(mixed, text, strlen(text) + 1);
    }
    return mixed;
}

static int tell(int64_t iteration, double residual, void *user)
{
    struct spmv_group_solver *const g = user;
    return g->callback.tell != NULL ? g->callback.tell(iteration, residual, &g->callback) : 0;
}

static spmv_status create(spmv_group_matrix *m, const spmv_solver_options *options, spmv_group_solver **solver)
{
    spmv_status st = SPMV_OK;
    struct spmv_group_solver *g = NULL;
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    spmv_status ready = options_take(m->ctx, "solver", &o, sizeof o, options);
    if (ready == SPMV_OK && m->ranks.rows != m->cols)
        ready = context_fail(m->ctx, SPMV_ERROR_NOT_SQUARE,
                             "spmv_group_solver_create: the matrix has %lld rows and %lld "
                             "columns",
                             (long long)m->ranks.rows, (long long)m->cols);
    if (ready == SPMV_OK && m->wide && (o.null_vectors > 0 || o.null_block > 0))
        ready = context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                             "spmv_group_solver_create: %s: not of matrices with more than %d rows",
                             o.null_vectors > 0 ? "null_space" : "null_block", INT32_MAX);
    if (ready == SPMV_OK)
        ready = group_check_rung(m, "spmv_group_solver_create", o.rung != NULL ? o.rung : "auto");
    if (ready == SPMV_OK)
        ready = host_alloc(m->ctx, sizeof *g, what, (void **)&g);
    if (g != NULL)
        *g = (struct spmv_group_solver){.m = m,
                                        .vectors = o.vectors,
                                        .zero_start = o.zero_start != 0,
                                        .on_iteration = o.on_iteration,
                                        .user = o.user,
                                        .version = m->version};
    TRY(group_agree_on(m->group, ready, "other options of a solver", numbers_of(&o)));
    g->ranks = functions_of(g);
    o.on_iteration = tell;
    o.user = g;
    TRY(solver_create_for_rank(m->plan, &g->ranks, &o, &g->solver));
    *solver = g;
    g = NULL;
done:
    if (g != NULL) {
        char why[1024];
        snprintf(why, sizeof why, "%s", spmv_last_error(m->ctx));
        spmv_group_solver_destroy(g);
        (void)context_fail(m->ctx, st, "%s", why);
    }
    return st;
}

spmv_status spmv_group_solver_create(spmv_group_matrix *m, const spmv_solver_options *options,
                                     spmv_group_solver **solver)
{
    if (m == NULL || solver == NULL)
        return context_need(m != NULL ? m->ctx : NULL, "spmv_group_solver_create", "solver", solver);
    *solver = NULL;
    group_begin(m->group);
    return group_end(m->group, create(m, options, solver));
}

void spmv_group_solver_destroy(spmv_group_solver *g)
{
    if (g == NULL)
        return;
    spmv_solver_destroy(g->solver);
    spmv_plan_destroy(g->several);
    spmv_group_solver_destroy(g->scaled);
    spmv_group_matrix_destroy(g->negative);
    if (g->owns)
        spmv_group_matrix_destroy(g->m);
    host_free(g);
}

static spmv_status check_vectors(const spmv_group_matrix *m, const void *b, const void *x)
{
    if (m->own.rows > 0 && (b == NULL || x == NULL || b == x))
        return context_fail(m->ctx, SPMV_ERROR_ARGUMENT, "spmv_group_solver_solve: %s",
                            b == NULL   ? "b is NULL"
                            : x == NULL ? "x is NULL"
                                        : "b and x are the same array");
    return SPMV_OK;
}

/* Makes everything again of new values. */
static spmv_status renew(spmv_group_solver *g)
{
    spmv_group_matrix *const negative = g->negative;
    spmv_group_solver *const scaled = g->scaled;
    if (g->version == g->m->version)
        return SPMV_OK;
    g->negative = NULL;
    g->scaled = NULL;
    g->version = g->m->version;
    spmv_plan_destroy(g->several);
    g->several = NULL;
    const spmv_status st = solver_renew_for_rank(g->solver, g->m->plan);
    spmv_group_solver_destroy(scaled); /* they were in use */
    spmv_group_matrix_destroy(negative);
    return st;
}

/* ahead: what its first run finds, as number v of several; NULL: not known yet. */
static spmv_status solve(spmv_group_solver *g, const void *b, void *x, const struct solver_ahead *ahead, int v,
                         spmv_solver_result *result, size_t size)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *const m = g->m;
    struct group_callback callback = {.stops = NULL};
    TRY(spmv_group_agree(m->group, check_vectors(m, b, x)));
    TRY(renew(g));
    TRY(group_solve_begin(m, x, g->zero_start, g->on_iteration, g->user, &callback));
    g->callback = callback;
    g->callback.stopped = ahead != NULL && ahead->known[v] && ahead->result[v].status == SPMV_CANCELLED;
    solver_take_ahead(g->solver, ahead, v);
    /* a rank without rows has vectors all the same */
    st = spmv_solver_solve(g->solver, b != NULL ? b : m->x_at, m->x, result, size);
    solver_take_ahead(g->solver, NULL, 0);
    st = group_solve_end(m, x, &g->callback, st);
done:
    host_free(callback.stops);
    return st;
}

/* ------------------------------------------------------------- several right-hand sides */

/* Copies one of the vectors that are stored by rows to consecutive memory, or back. */
static spmv_status copy_column(const spmv_group_solver *g, int v, const void *rows, void *column, bool back)
{
    const spmv_group_matrix *const m = g->m;
    const int parts = type_parts(m->type);
    char *const one = (char *)(uintptr_t)rows + (size_t)v * spmv_type_size(m->type);
    struct columns_transfer copy = {.type = type_part(m->type),
                                    .n = m->own.rows,
                                    .from_stride = (int64_t)g->vectors * parts,
                                    .to_stride = parts,
                                    .columns = parts,
                                    .width = parts,
                                    .from = one,
                                    .to = column};
    if (back) {
        copy.from_stride = copy.to_stride;
        copy.to_stride = (int64_t)g->vectors * parts;
        copy.from = column;
        copy.to = one;
    }
    return m->own.rows > 0 ? columns_copy(m->ctx, &copy) : SPMV_OK;
}

/* Whether other right-hand sides can be solved after one that ended with this status on all ranks. */
static bool others_follow(spmv_status st)
{
    return st == SPMV_OK || st == SPMV_CANCELLED || st == SPMV_ERROR_NOT_POSITIVE || spmv_status_class(st) == 7;
}

/* Right-hand sides that conjugate gradients solve for at once. More of them are solved in parts of about the same size,
 * which bounds the memory. More than FEW are solved as a multiple of WHOLE, of which the last ones are 0: all passes are
 * faster then. */
enum { MOST_AT_ONCE = 64, FEW = 4, WHOLE = 8 };

/* A run for right-hand sides first to first + width - 1, as so many columns. */
struct batch {
    int first, width, columns;
    bool told;          /* the callback is told iterations, so there is none */
    bool fails;         /* there is no memory for one */
    void *b, *x_at, *x; /* x_at: with room for elements of other ranks */
    struct solver_ahead ahead;
};

static void release_batch(const spmv_group_solver *g, struct batch *t)
{
    context_take_back(g->m->ctx, t->x_at);
    context_take_back(g->m->ctx, t->b);
    solver_close_ahead(&t->ahead);
    *t = (struct batch){.told = t->told, .fails = t->fails};
}

/* The plan and the vectors. */
static spmv_status open_batch(spmv_group_solver *g, const void *b, const void *x, struct batch *t)
{
    spmv_status st = SPMV_OK;
    const spmv_group_matrix *const m = g->m;
    const int64_t row = t->columns * (int64_t)spmv_type_size(m->type);
    const size_t at = (size_t)t->first * spmv_type_size(m->type);
    struct columns_transfer copy = {.type = m->type,
                                    .n = m->own.rows,
                                    .from_stride = g->vectors,
                                    .to_stride = t->columns,
                                    .columns = t->width,
                                    .width = t->columns,
                                    .from = (const char *)b + at};
    if (g->columns != t->columns) {
        spmv_plan_destroy(g->several);
        g->several = NULL;
    }
    g->columns = t->columns;
    if (g->several == NULL)
        TRY(group_matrix_columns(g->m, t->columns, &g->several));
    TRY(solver_open_ahead(g->solver, t->columns, &t->ahead));
    TRY(context_lend(m->ctx, (m->own.rows + 1) * row, &t->b));
    TRY(context_lend(m->ctx, (m->own.cols + 1) * row, &t->x_at));
    t->x = (char *)t->x_at + m->halo.room * row;
    if (m->own.rows == 0)
        return SPMV_OK;
    copy.to = t->b;
    TRY(columns_copy(m->ctx, &copy));
    copy.from = (const char *)x + at;
    copy.to = t->x;
    if (!g->zero_start)
        TRY(columns_copy(m->ctx, &copy));
done:
    return st;
}

/* Makes the run that begins with right-hand side v, if conjugate gradients can make one. */
static spmv_status run_batch(spmv_group_solver *g, int v, const void *b, const void *x, struct batch *t)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *const m = g->m;
    const int left = g->vectors - v, width = (int)ceil_divide(left, ceil_divide(left, MOST_AT_ONCE));
    bool runs = false;
    struct group_callback callback = {.stops = NULL};
    release_batch(g, t);
    TRY(renew(g));
    if (t->fails)
        return SPMV_OK;
    TRY(solver_runs_ahead(g->solver, width, &runs));
    if (!runs)
        return SPMV_OK;
    t->first = v;
    t->width = width;
    t->columns = width > FEW ? (int)ceil_divide(width, WHOLE) * WHOLE : width;
    if (spmv_group_agree(m->group, open_batch(g, b, x, t)) != SPMV_OK) {
        t->fails = true;
        m->group->settled = false;
        release_batch(g, t);
        return SPMV_OK;
    }
    TRY(group_callback_open(m, NULL, NULL, &callback));
    g->callback = callback;
    m->ctx->cancel = NULL;
    st = solver_run_ahead(g->solver, g->several, t->b, t->x, &t->ahead);
    m->ctx->cancel = callback.cancel;
    st = g->callback.failed != SPMV_OK                       ? g->callback.failed
         : others_follow(st) || st == SPMV_ERROR_UNSUPPORTED ? SPMV_OK /* then each makes its own run */
                                                             : st;
done:
    host_free(callback.stops);
    return st;
}

/* Whether the callback of rank 0 is told the iterations: those of one right-hand side after the other. Together. */
static spmv_status is_told(const spmv_group_solver *g, bool *told)
{
    double own = g->m->group->transport.rank == 0 && g->on_iteration != NULL;
    const spmv_status st = group_largest(g->m, &own);
    *told = own > 0;
    return st;
}

/* Solves for right-hand side v. b, x: memory for one. */
static spmv_status solve_column(spmv_group_solver *g, int v, const void *all_b, void *all_x, void *b, void *x,
                                struct batch *t, spmv_solver_result *result)
{
    spmv_group *const group = g->m->group;
    spmv_status st = SPMV_OK;
    if (!t->told && v >= t->first + t->width)
        st = run_batch(g, v, all_b, all_x, t);
    if (st != SPMV_OK)
        return st;
    st = copy_column(g, v, all_b, b, false);
    if (st == SPMV_OK && !g->zero_start)
        st = copy_column(g, v, all_x, x, false);
    st = spmv_group_agree(group, st);
    if (st == SPMV_OK)
        st = solve(g, b, x, t->width > 0 ? &t->ahead : NULL, v - t->first, result, sizeof *result);
    if (st != SPMV_OK && !group->settled)
        return st;
    const bool settled = group->settled;
    char why[1024];
    snprintf(why, sizeof why, "%s", spmv_last_error(g->m->ctx));
    const spmv_status copied = spmv_group_agree(group, copy_column(g, v, all_x, x, true));
    if (copied != SPMV_OK)
        return copied;
    group->settled = settled;
    return st != SPMV_OK ? context_fail(g->m->ctx, st, "%s", why) : SPMV_OK;
}

/* One after the other, with one set-up, but for the runs that are made for several at once. Returns the first failure. */
static spmv_status solve_each(spmv_group_solver *g, const void *b, void *x, void *one_b, void *one_x, struct batch *t,
                              spmv_solver_result *each)
{
    spmv_status first = SPMV_OK;
    bool goes_on = true;
    char sentence[1024] = "";
    spmv_group_matrix *const m = g->m;
    for (int v = 0; v < g->vectors; v++) {
        (void)spmv_solver_solve(NULL, NULL, NULL, &each[v], sizeof each[v]); /* the initial value of a result */
        const spmv_status st = goes_on ? solve_column(g, v, b, x, one_b, one_x, t, &each[v]) : first;
        if (st == SPMV_OK)
            continue;
        if (each[v].status == SPMV_ERROR_ARGUMENT) /* it has not begun */
            each[v].status = st;
        if (!goes_on)
            continue;
        goes_on = m->group->settled && others_follow(st);
        if (first != SPMV_OK && goes_on)
            continue;
        first = st;
        if (goes_on)
            snprintf(sentence, sizeof sentence, "right-hand side %d of %d: %.900s", v + 1, g->vectors,
                     spmv_last_error(m->ctx));
        else
            snprintf(sentence, sizeof sentence, "%s", spmv_last_error(m->ctx));
    }
    if (first == SPMV_OK)
        return SPMV_OK;
    m->group->settled = m->group->settled || goes_on;
    return context_fail(m->ctx, first, "%s", sentence);
}

static spmv_status solve_several(spmv_group_solver *g, const void *b, void *x, spmv_solver_result *result, size_t size)
{
    spmv_group_matrix *const m = g->m;
    const int64_t bytes = (m->own.rows + 1) * (int64_t)spmv_type_size(m->type);
    const double begin = monotonic_seconds();
    spmv_solver_result *each = NULL;
    void *one_b = NULL, *one_x = NULL;
    struct batch batch = {.width = 0};
    spmv_status st = check_vectors(m, b, x);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, g->vectors * (int64_t)sizeof *each, "results of a solve", (void **)&each);
    if (st == SPMV_OK)
        st = context_lend(m->ctx, bytes, &one_b);
    if (st == SPMV_OK)
        st = context_lend(m->ctx, bytes, &one_x);
    TRY(spmv_group_agree(m->group, st));
    TRY(is_told(g, &batch.told));
    st = solve_each(g, b, x, one_b, one_x, &batch, each);
    for (int v = 0; v < g->vectors && result != NULL; v++) {
        each[v].solve_seconds = monotonic_seconds() - begin;
        result_write((char *)result + (size_t)v * size, size, &each[v], sizeof each[v]);
    }
done:
    release_batch(g, &batch);
    context_take_back(m->ctx, one_x);
    context_take_back(m->ctx, one_b);
    host_free(each);
    return st;
}

spmv_status spmv_group_solver_solve(spmv_group_solver *g, const void *b, void *x, spmv_solver_result *result,
                                    size_t size)
{
    if (g == NULL)
        return SPMV_ERROR_ARGUMENT;
    group_begin(g->m->group);
    return group_end(g->m->group,
                     g->vectors > 1 ? solve_several(g, b, x, result, size) : solve(g, b, x, NULL, 0, result, size));
}

spmv_status spmv_group_solver_update_values(spmv_group_solver *g, const void *values)
{
    if (g == NULL)
        return SPMV_ERROR_ARGUMENT;
    group_begin(g->m->group);
    spmv_status st = group_matrix_renew(g->m, values);
    if (st == SPMV_OK)
        st = renew(g);
    return group_end(g->m->group, st);
}

spmv_status spmv_group_solver_describe(const spmv_group_solver *g, spmv_solver_info *info, size_t size)
{
    spmv_solver_info full;
    spmv_status st = spmv_solver_describe(g != NULL ? g->solver : NULL, info, size);
    if (st == SPMV_OK)
        st = spmv_solver_describe(g->solver, &full, sizeof full);
    if (st != SPMV_OK)
        return st;
    full.plan = g->m->plan; /* new values may have replaced it */
    result_write(info, size, &full, sizeof full);
    return SPMV_OK;
}

/* ------------------------------------------------------------- the transpose */

static spmv_status transpose(spmv_group_matrix *m, spmv_group_matrix **made)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = m->ctx;
    struct group_own_rows rows = {.col = NULL};
    struct csr_copies there = {0}, here = {0};
    struct rank_arrays to = {.nnz = 0};
    spmv_csr own, turned;
    if (m->wide || m->ranks.rows > INT32_MAX) { /* on all ranks alike */
        m->group->settled = true;
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_group_matrix_transpose: a matrix of more than %d rows or columns has no transpose",
                            INT32_MAX);
    }
    st = group_take_rows(m, false, &rows);
    if (st == SPMV_OK)
        st = csr_to_context(ctx, &rows.view, false, &own, &there);
    TRY(spmv_group_agree(m->group, st));
    TRY(m->ranks.tools->transpose(m, m->row_of_rank, m->col_of_rank, &own, &to));
    turned = csr_of(to.rows, m->ranks.rows, to.nnz, to.row_ptr, to.col, to.val, m->own.type, SPMV_MEMORY_CONTEXT);
    TRY(spmv_group_agree(m->group, csr_to_host(ctx, &turned, false, &turned, &here)));
    turned.memory = SPMV_MEMORY_HOST;
    TRY(group_matrix_like(m, &turned, NULL, made));
done:
    group_own_rows_release(&rows);
    csr_free_context(ctx, &there);
    csr_free_host(&here);
    context_free_all(ctx, to.row_ptr, to.col, to.val);
    return st;
}

spmv_status spmv_group_matrix_transpose(spmv_group_matrix *m, spmv_group_matrix **made)
{
    if (m == NULL || made == NULL)
        return context_need(m != NULL ? m->ctx : NULL, "spmv_group_matrix_transpose", "made", made);
    *made = NULL;
    group_begin(m->group);
    return group_end(m->group, transpose(m, made));
}
