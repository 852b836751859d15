/* A solve: calls a solver (cg.c, krylov_loop.c), and under "auto" those that follow it
 * (solver_choose.c), for each right-hand side. Each goes on from the x reached. A solver returns no
 * x with a larger true residual than that of its start (most_growth in krylov.h), so the last x is
 * the best one. An exception is the x of cg that minres goes on from; there the better one is 0.
 *
 * If A is known to be singular (null_space.h), the part of b along its null vectors is split off.
 * The solvers solve for the rest, so that no solver sees what it cannot reduce. The tolerance is
 * that of the whole b.
 *
 * In the end the rows of b - A x are checked, and x is corrected if need be: solver_accuracy.c. Where the caller wants
 * that, the error of x is estimated, and x corrected until it is small enough: solver_forward_error.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <stdio.h>

#include "core/choice.h"
#include "core/threads.h"
#include "solvers/krylov/krylov_columns.h"
#include "solvers/krylov/not_finite.h"
#include "solvers/solver_internal.h"

static const spmv_cg_result not_begun = {
    .status = SPMV_ERROR_MEMORY, .rung = "", .precond = "none", .error_estimate = -1};

int64_t solver_most_iterations(const spmv_solver *s)
{
    return s->options.max_iterations > 0 ? s->options.max_iterations : max_i64(100, 10 * solver_rows(s));
}

static void name_precond(spmv_cg_result *result, const spmv_preconditioner *m)
{
    if (m != NULL)
        krylov_name_precond(result, m);
}

/* ------------------------------------------------------------- one solver */

/* The caller's own limit of iterations may end a solver that reduces the error and not yet the
 * residual, so that a next call can go on from x. */
static double most_growth(const spmv_solver *s, int64_t most)
{
    return s->options.max_iterations > 0 && most >= s->options.max_iterations ? CG_MOST_GROWTH : 1;
}

/* Whether a solve begins with a run of cg from b as it is, and from the caller's start. */
static bool begins_with_cg(const spmv_solver *s)
{
    return s->solver == &krylov_cg && !s->negates && s->null_space == NULL && s->space == NULL && s->failed == SPMV_OK;
}

/* Refinement with exact factors gains digits, unless A is singular up to their rounding. */
static spmv_status judge_direct(const spmv_solver *s, const spmv_cg_result *r, spmv_status st)
{
    const double roundoff = real_limits_of(SPMV_F64).roundoff, rcond = direct_rcond(s->direct);
    if (st != SPMV_ERROR_STAGNATION || rcond < 0 || !(rcond <= 16 * roundoff) ||
        r->true_residual <= sqrt(roundoff) * r->norm_b)
        return st;
    return context_fail(s->ctx, SPMV_ERROR_INCONSISTENT,
                        "spmv_solver_solve: direct: A is singular to rounding: the estimated reciprocal of its "
                        "condition number is %.2g; the residual is %.3g, the tolerance is %.3g",
                        rcond, r->true_residual, r->tolerance);
}

/* Whether a judge would have let a run with these residuals end. Judges as if it had been told them. */
static bool lets_end(struct judge *judge, const struct krylov_note *note)
{
    struct judge trial = *judge;
    trial.on_iteration = NULL;
    if (note->count != judge->result->iterations + 1 || note->count > note->most || trial.allows != NULL)
        return false;
    for (int64_t i = 0; i < note->count; i++)
        if (judge_tell(i, note->residual[i], &trial) != 0)
            return false;
    trial.on_iteration = judge->on_iteration;
    *judge = trial;
    return true;
}

/* Takes what was found ahead in place of the first run of a solve, if that would find the same. */
static bool takes_run_ahead(const struct chain *c, int64_t most, spmv_cg_result *result)
{
    spmv_solver *const s = c->s;
    const struct solver_ahead *const ahead = s->ahead;
    const int v = s->ahead_of;
    s->ahead = NULL;
    if (ahead == NULL || s->used != &krylov_cg || s->used_precond != ahead->precond ||
        most != solver_most_iterations(s))
        return false;
    const spmv_cg_result before = *result;
    *result = ahead->result[v]; /* a judge reads it */
    if (c->judge == NULL || lets_end(c->judge, &ahead->note[v]))
        return true;
    *result = before;
    return false;
}

/* The x that it has found, and its status. */
static spmv_status take_x_ahead(const struct chain *c, const struct solver_ahead *ahead, int v)
{
    const spmv_solver *const s = c->s;
    const spmv_type type = s->plan->type;
    const spmv_status st = columns_copy(
        s->ctx, &(const struct columns_transfer){.type = type,
                                                 .n = s->a.rows,
                                                 .from_stride = ahead->columns,
                                                 .to_stride = 1,
                                                 .columns = 1,
                                                 .width = 1,
                                                 .from = (const char *)ahead->x + (size_t)v * spmv_type_size(type),
                                                 .to = c->x});
    return st != SPMV_OK || ahead->result[v].status == SPMV_OK
               ? st
               : context_fail(s->ctx, ahead->result[v].status, "%s", ahead->note[v].sentence);
}

/* Runs s->used with s->used_precond, for all right-hand sides of the plan. */
static spmv_status run_used(const spmv_solver *s, spmv_plan *plan, const struct chain *c, int64_t most,
                            int64_t iterations_before, spmv_cg_result *results)
{
    const spmv_solver_options *const o = &s->options;
    /* minres goes on from the last x of cg; run_all knows a better one */
    const bool cg_is_first = s->used == &krylov_cg && s->free && c->zero_start;
    struct krylov asked = {.call = "spmv_solver_solve",
                           .solver = s->used,
                           .ctx = s->ctx,
                           .plan = plan,
                           .precond = s->used_precond,
                           .b = c->b,
                           .x = c->x,
                           .rtol = c->rtol,
                           .atol = c->atol,
                           .max_iterations = most,
                           .iterations_before = iterations_before,
                           .zero_start = c->zero_start,
                           .most_growth = most_growth(s, most),
                           .indefinite_growth = cg_is_first ? CG_MOST_GROWTH : 1,
                           .on_iteration = c->judge != NULL ? judge_tell
                                           : c->silent      ? NULL
                                                            : o->on_iteration,
                           .on_iterate = c->corrects || o->on_iterate == NULL ? NULL
                                         : c->judge != NULL                   ? judge_show
                                                                              : o->on_iterate,
                           .user = c->judge != NULL ? (void *)c->judge : o->user,
                           .recurrence = c->recurrence,
                           .symmetry_check = o->symmetry_check,
                           .rung = o->rung,
                           .inner = s->inner,
                           .restart = s->used == &krylov_gmres ? o->restart : 0,
                           .direct = s->direct,
                           .ahead = c->ahead,
                           .result = results,
                           .note = c->note};
    const struct solver_ahead *const ahead = s->ahead;
    if (takes_run_ahead(c, most, results))
        return take_x_ahead(c, ahead, s->ahead_of);
    spmv_status st = spmv_plan_describe(plan, &asked.info, sizeof asked.info);
    if (c->judge != NULL)
        c->judge->on_iterate = o->on_iterate;
    if (st == SPMV_OK)
        st = s->used->solve(&asked);
    return s->used == &krylov_direct ? judge_direct(s, results, st) : st;
}

static void begin_results(const struct chain *c, const spmv_preconditioner *precond)
{
    for (int v = 0; v < c->columns; v++) {
        c->result[v] = not_begun;
        name_precond(&c->result[v], precond);
    }
}

spmv_status solver_run(struct chain *c, const struct krylov_solver *solver, const spmv_preconditioner *precond,
                       int64_t most)
{
    spmv_solver *const s = c->s;
    const int64_t bytes = c->columns * (int64_t)sizeof *c->result;
    spmv_cg_result one, *before = &one;
    s->used = solver;
    s->used_precond = precond;
    if (c->columns > 1) {
        const spmv_status st = host_alloc(s->ctx, bytes, "results of a solve", (void **)&before);
        if (st != SPMV_OK)
            return st;
    }
    const int64_t iterations_before = solver_iterations(c);
    memcpy(before, c->result, (size_t)bytes);
    begin_results(c, precond);
    const spmv_status st = run_used(s, c->plan, c, most, iterations_before, c->result);
    c->ahead = NULL;
    for (int v = 0; v < c->columns; v++) {
        c->result[v].iterations += before[v].iterations;
        c->result[v].restarts += before[v].restarts;
    }
    c->zero_start = false;
    if (before != &one)
        host_free(before);
    return solver_is_close(c, st) ? solver_add_digits(c, st) : st;
}

/* ------------------------------------------------------------- one right-hand side */

/* x = 0 after a failure with a larger residual than that of 0, if the solvers began there. */
static spmv_status return_to_zero(const struct chain *c, spmv_status st)
{
    spmv_cg_result *const r = c->result;
    spmv_plan_info info;
    const bool own_limit = st == SPMV_ERROR_ITERATIONS && c->s->options.max_iterations > 0;
    if (!c->from_zero || own_limit || st == SPMV_OK || st == SPMV_CANCELLED ||
        (spmv_status_class(st) != 7 && st != SPMV_ERROR_NOT_POSITIVE) || r->true_residual <= r->norm_b ||
        !isfinite(r->norm_b) || spmv_plan_describe(c->plan, &info, sizeof info) != SPMV_OK)
        return st;
    /* all bits 0, also as floats */
    const spmv_status cleared = spmv_map_index(c->s->ctx, type_part(info.type), &(const double){0}, NULL, c->x,
                                               info.rows * type_parts(info.type));
    r->true_residual = r->norm_b;
    r->error_estimate = -1;
    return cleared != SPMV_OK ? cleared : st;
}

static spmv_status run_all(struct chain *c)
{
    spmv_solver *const s = c->s;
    snprintf(s->why_used, sizeof s->why_used, "%s", s->why);
    const spmv_status st = solver_run_or_race(c, s->solver, s->precond);
    return return_to_zero(c, solver_follow(c, st));
}

/* ------------------------------------------------------------- a singular matrix */

spmv_status solver_measure(const spmv_solver *s, spmv_plan *plan, const void *b, void *x, double *norm_b,
                           double *residual)
{
    spmv_status st = SPMV_OK;
    spmv_cg_result none = not_begun;
    struct krylov k = {.call = "spmv_solver_solve", .ctx = s->ctx, .plan = plan, .b = b, .x = x, .result = &none};
    TRY(spmv_plan_describe(plan, &k.info, sizeof k.info));
    TRY(krylov_open(&k));
    TRY(krylov_norms(&k, b, norm_b));
    TRY(krylov_residual(&k, k.q));
    TRY(krylov_norms(&k, k.q, residual));
done:
    krylov_close(&k);
    return st;
}

static spmv_status fail_inconsistent(const struct chain *c, double part)
{
    return context_fail(c->s->ctx, SPMV_ERROR_INCONSISTENT,
                        "spmv_solver_solve: A is singular (%s) and b has a part that no x reaches: %s; "
                        "the residual is %.3g, the smallest possible is %.3g, the tolerance is %.3g",
                        null_space_words(c->s->null_space), null_space_remedy(c->s->null_space),
                        c->result->true_residual, part, c->result->tolerance);
}

/* The verdict on the whole b, after its part in the range of A has ended with st. */
static spmv_status judge_whole(const struct chain *c, const void *b, double part, double tolerance, spmv_status st)
{
    spmv_cg_result *const r = c->result;
    if (st != SPMV_OK && (spmv_status_class(st) < 7 || st == SPMV_ERROR_NOT_SYMMETRIC)) /* x is the start */
        return st;
    const spmv_status measured = solver_measure(c->s, c->plan, b, c->x, &r->norm_b, &r->true_residual);
    if (measured != SPMV_OK)
        return measured;
    r->tolerance = tolerance;
    if (st == SPMV_CANCELLED)
        return st;
    if (r->true_residual <= tolerance)
        return SPMV_OK;
    if (part > tolerance)
        return fail_inconsistent(c, part);
    return st != SPMV_OK ? st
                         : context_fail(c->s->ctx, SPMV_ERROR_STAGNATION,
                                        "spmv_solver_solve: the true residual stays at %.3g; the tolerance is %.3g",
                                        r->true_residual, tolerance);
}

/* Arguments that a solver accepts (krylov_check); it names others. Without rows, as on a rank, any vectors are sound. */
static bool is_sound(const struct chain *c)
{
    const bool vectors = c->s->a.rows == 0 || (c->b != NULL && c->x != NULL && c->b != c->x);
    return vectors && c->rtol >= 0 && c->atol >= 0;
}

/* A vector of the plan; on ranks each has its own, or none has. */
static spmv_status lend_vector(const spmv_solver *s, const spmv_plan_info *info, void **vector)
{
    const spmv_status st = context_lend(s->ctx, info->rows * (int64_t)spmv_type_size(info->type), vector);
    return s->ranks != NULL ? s->ranks->agree(s->ranks->self, st) : st;
}

/* x = x less its part along the null vectors, if it has more of that than rounding. *removed: it had. */
static spmv_status remove_part(const struct chain *c, bool *removed)
{
    spmv_status st = SPMV_OK;
    const spmv_solver *const s = c->s;
    spmv_plan_info info;
    struct null_space_norms norms;
    void *shorter = NULL;
    *removed = false;
    TRY(spmv_plan_describe(c->plan, &info, sizeof info));
    TRY(lend_vector(s, &info, &shorter));
    TRY(null_space_split(s->null_space, c->x, shorter, &norms));
    if (!isfinite(norms.all) || norms.part <= 4 * real_limits_of(type_part(info.type)).roundoff * norms.all)
        goto done;
    TRY(spmv_map(s->ctx, SPMV_MAP_COPY, type_part(info.type), shorter, c->x, info.rows * type_parts(info.type)));
    *removed = true;
done:
    context_take_back(s->ctx, shorter);
    return st;
}

/* The same after a solver that ended with st. If the rounding makes its residual too large, the solver goes on from
 * there. */
static spmv_status shorten(struct chain *c, spmv_status ended)
{
    spmv_status st = SPMV_OK;
    spmv_solver *const s = c->s;
    spmv_cg_result *const r = c->result;
    double norm_b = 0, residual = 0;
    bool removed = false;
    if (ended != SPMV_OK && (spmv_status_class(ended) != 7 || ended == SPMV_ERROR_NOT_FINITE))
        return ended;
    TRY(remove_part(c, &removed));
    if (!removed)
        goto done;
    TRY(solver_measure(s, c->plan, c->b, c->x, &norm_b, &residual));
    const bool grown = residual > fmax(r->tolerance, r->true_residual);
    r->true_residual = residual;
    if (ended == SPMV_OK && grown && s->used != NULL)
        ended = solver_run(c, s->used, s->used_precond, max_i64(1, c->most - r->iterations));
done:
    return st != SPMV_OK ? st : ended;
}

/* Solves with the part of b along the known null vectors split off, and for x without such a part, which the start loses
 * too: a solver that has failed may have let it grow until no digit of the rest is left. only_if_split: does nothing if the
 * part of b is not more than rounding errors; *split: it is. */
static spmv_status run_singular(struct chain *c, bool only_if_split, bool *split)
{
    spmv_status st = SPMV_OK;
    spmv_solver *const s = c->s;
    const void *const b = c->b;
    const double rtol = c->rtol, atol = c->atol;
    spmv_plan_info info;
    struct null_space_norms norms;
    void *rest = NULL;
    bool removed = false;
    TRY(spmv_plan_describe(c->plan, &info, sizeof info));
    TRY(lend_vector(s, &info, &rest));
    TRY(null_space_split(s->null_space, b, rest, &norms));
    s->null_parts[c->result - s->results] = norms.part;
    *split = null_space_splits(s->null_space) && isfinite(norms.all) &&
             norms.part > 4 * real_limits_of(type_part(info.type)).roundoff * norms.all;
    if (!c->zero_start && (*split || !only_if_split))
        TRY(remove_part(c, &removed));
    if (*split) {
        const double tolerance = fmax(rtol * norms.all, atol);
        c->b = rest;
        c->rtol = 0;
        /* the square of the residual is the sum of those of both parts */
        c->atol = norms.part < tolerance ? sqrt((tolerance - norms.part) * (tolerance + norms.part)) : tolerance;
        st = shorten(c, run_all(c));
        st = judge_whole(c, b, norms.part, tolerance, st);
    } else if (!only_if_split) {
        st = shorten(c, run_all(c));
    }
done:
    c->b = b;
    c->rtol = rtol;
    c->atol = atol;
    context_take_back(s->ctx, rest);
    return st;
}

static spmv_status run_from_start(struct chain *c)
{
    bool split = false;
    return c->s->null_space != NULL && is_sound(c) ? run_singular(c, false, &split) : run_all(c);
}

/* After a failure of a symmetric matrix: looks for null vectors of its connected components. If b has a
 * part along one, solves again without it. */
static spmv_status try_components(struct chain *c, spmv_status st)
{
    spmv_solver *const s = c->s;
    bool split = false;
    char sentence[512];
    const bool own_limit = st == SPMV_ERROR_ITERATIONS && s->options.max_iterations > 0;
    const bool failed = spmv_status_class(st) == 7 || st == SPMV_ERROR_NOT_POSITIVE;
    if (!failed || own_limit || s->components_known || !is_sound(c))
        return st;
    snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
    spmv_status found = solver_find_null_space(s, NULL_SPACE_COMPONENTS);
    s->components_known = found == SPMV_OK;
    if (found == SPMV_OK && s->null_space != NULL) {
        c->most += c->result->iterations;
        found = run_singular(c, true, &split);
    }
    return split || found != SPMV_OK ? found : context_fail(s->ctx, st, "%s", sentence);
}

/* ------------------------------------------------------------- the solve */

/* From the start that the solutions before give, if that is wanted. */
static spmv_status run_recycled(struct chain *c)
{
    spmv_status st = SPMV_OK;
    spmv_solver *const s = c->s;
    struct recycle_told *const told = &s->told[c->result - s->results];
    if (s->space == NULL || s->solver == &krylov_direct || !is_sound(c))
        return try_components(c, run_from_start(c));
    TRY(recycle_start(s->space, c->plan, s->solver == &krylov_cg, c->zero_start, c->b, c->x, told));
    c->zero_start = c->zero_start && told->vectors == 0;
    const spmv_status ended = try_components(c, run_from_start(c));
    st = recycle_add(s->space, c->plan, c->x, ended == SPMV_OK);
    st = st != SPMV_OK ? st : ended;
done:
    return st;
}

/* One right-hand side, with the solvers that follow. begun: cg has ended with the status of the
 * result. ahead: as in struct chain. */
static spmv_status solve_single(spmv_solver *s, const void *b, void *x, bool begun, const void *ahead,
                                spmv_cg_result *result)
{
    struct chain c = {.s = s,
                      .b = b,
                      .x = x,
                      .rtol = s->options.rtol,
                      .atol = s->options.atol,
                      .zero_start = s->options.zero_start != 0,
                      .from_zero = s->options.zero_start != 0,
                      .most = solver_most_iterations(s),
                      .columns = 1,
                      .result = result,
                      .ahead = ahead};
    spmv_status st = solver_single_plan(s, &c.plan);
    if (begun)
        c.zero_start = false;
    if (st == SPMV_OK && begun && s->solver == &krylov_cg) { /* else a race of another one has found a better solver */
        s->used = &krylov_cg;
        s->used_precond = s->precond;
        st = try_components(&c, solver_follow(&c, result->status));
    } else if (st == SPMV_OK) {
        result->iterations = result->restarts = 0;
        st = run_recycled(&c);
    }
    result->status = st;
    if (st == SPMV_OK && result->norm_b == 0 && solver_rows(s) > 0 && !c.from_zero && s->options.vectors == 1 &&
        !s->corrects)
        snprintf(s->why_used, sizeof s->why_used,
                 "b is 0, so x is 0 whatever the start; any other x with A x = 0 is an eigenvector for the "
                 "eigenvalue 0");
    return st;
}

/* Whether solve_single can do more about a right-hand side that cg has not solved. */
static bool may_go_on(const spmv_solver *s, spmv_status st)
{
    return solver_may_follow(s, st) || (st == SPMV_ERROR_NOT_POSITIVE && s->free && s->options.inner == 0);
}

/* ------------------------------------------------------------- several right-hand sides */

/* Right-hand sides are stored by rows, and a solve needs one in consecutive memory. On a host so many are
 * copied at once, which share a cache line: one at a time would read the whole array for each. */
enum { COLUMNS_AT_ONCE = 8 };

/* By direct, so many are solved at once, for which the factors are read once. */
enum { COLUMNS_OF_DIRECT = 32 };

struct columns {
    spmv_context *ctx;
    spmv_type type;
    int64_t n, k;        /* rows, and columns of the array by rows */
    int64_t most;        /* columns that are copied at once */
    int64_t stride;      /* elements from one column to the next in the copy */
    void *index;         /* on a device, of real numbers: k times the number of the row */
    char *copy, *copy_x; /* `most` columns each */
    char *ahead;         /* the same: solutions by direct; NULL: none */
};

static void close_columns(struct columns *c)
{
    context_take_back(c->ctx, c->index);
    context_take_back(c->ctx, c->copy);
    context_take_back(c->ctx, c->ahead);
}

/* Whether the first run of a solve takes its solution from those that direct finds for several right-hand sides at
 * once. They are for b itself. */
static bool takes_ahead(const spmv_solver *s)
{
    return s->solver == &krylov_direct && s->direct != NULL && s->null_space == NULL;
}

static spmv_status open_columns(struct columns *c, bool direct)
{
    spmv_status st = SPMV_OK;
    const int64_t size = (int64_t)spmv_type_size(c->type);
    const bool device = context_on_device(c->ctx);
    c->most = min_i64(c->k, direct ? COLUMNS_OF_DIRECT : device ? 1 : COLUMNS_AT_ONCE);
    /* whole cache lines, and not a multiple of a page, where columns would share places of the cache */
    c->stride = ceil_divide(c->n, 16) * 16 + 16;
    void *memory = NULL;
    if (direct && context_lend(c->ctx, 2 * c->most * c->stride * size, &memory) != SPMV_OK)
        c->most = 1;
    if (memory == NULL)
        TRY(context_lend(c->ctx, 2 * c->most * c->stride * size, &memory));
    c->copy = memory;
    c->copy_x = c->copy + c->most * c->stride * size;
    if (device && !type_is_complex(c->type)) {
        TRY(context_lend(c->ctx, c->n * (int64_t)sizeof c->k, &c->index));
        TRY(spmv_map_index(c->ctx, SPMV_I64, &(const int64_t){0}, &c->k, c->index, c->n));
    }
done:
    return st;
}

/* A part of row i; size is a constant where it is called. */
static inline void copy_row(const struct columns *c, int64_t i, char *rows, int64_t width, char *copy, bool back,
                            const size_t size)
{
    for (int64_t v = 0; v < width; v++) {
        char *const one = rows + (size_t)(i * c->k + v) * size;
        char *const other = copy + (size_t)(v * c->stride + i) * size;
        memcpy(back ? one : other, back ? other : one, size);
    }
}

/* Column v of complex numbers on a device, as two columns of real ones. */
static spmv_status copy_complex(const struct columns *c, char *rows, int64_t v, char *copy, bool back)
{
    const size_t size = spmv_type_size(c->type);
    char *const one = rows + (size_t)v * size, *const other = copy + (size_t)(v * c->stride) * size;
    return columns_copy(c->ctx, &(const struct columns_transfer){.type = type_part(c->type),
                                                                 .n = c->n,
                                                                 .from_stride = back ? 2 : 2 * c->k,
                                                                 .to_stride = back ? 2 * c->k : 2,
                                                                 .columns = 2,
                                                                 .width = 2,
                                                                 .from = back ? other : one,
                                                                 .to = back ? one : other});
}

/* Copies columns first ... first + width - 1 of an array by rows, or writes them back. */
static spmv_status copy_columns(const struct columns *c, void *array, int64_t first, int64_t width, char *copy,
                                bool back)
{
    const size_t size = spmv_type_size(c->type);
    char *const rows = (char *)array + (size_t)first * size;
    const int64_t count = c->n * c->k - first;
    const bool device = context_on_device(c->ctx);
    for (int64_t v = 0; v < width && device && c->index == NULL; v++) {
        const spmv_status st = copy_complex(c, rows, v, copy, back);
        if (st != SPMV_OK || v == width - 1)
            return st;
    }
    for (int64_t v = 0; v < width && c->index != NULL; v++) {
        char *const one = copy + (size_t)(v * c->stride) * size, *const from = rows + (size_t)v * size;
        const spmv_status st = back ? spmv_scatter(c->ctx, c->type, one, c->index, 64, from, count - v, c->n)
                                    : spmv_gather(c->ctx, c->type, from, count - v, c->index, 64, one, c->n);
        if (st != SPMV_OK || v == width - 1)
            return st;
    }
#pragma omp parallel for num_threads(host_team(c->ctx, c->n *width)) schedule(static)
    for (int64_t i = 0; i < c->n; i++)
        if (size == 4)
            copy_row(c, i, rows, width, copy, back, 4);
        else if (size == 8)
            copy_row(c, i, rows, width, copy, back, 8);
        else
            copy_row(c, i, rows, width, copy, back, 16);
    return SPMV_OK;
}

/* c->ahead = the solutions by direct for the copied columns from `at` on. Where that fails, they are solved for one by
 * one, which tells why. */
static bool solve_ahead(const spmv_solver *s, struct columns *c, int64_t at, int64_t width)
{
    const int64_t size = (int64_t)spmv_type_size(c->type), begin = at * c->stride * size;
    if (c->ahead == NULL && context_lend(c->ctx, c->most * c->stride * size, (void **)&c->ahead) != SPMV_OK)
        c->ahead = NULL;
    const bool done = c->ahead != NULL && direct_solve_columns(s->direct, c->type, width - at, c->stride,
                                                               c->copy + begin, c->ahead + begin) == SPMV_OK;
    c->ctx->error[0] = '\0';
    return done;
}

/* The right-hand sides first ... first + width - 1, one after the other. Sets *worst to the first failure, and
 * its message. */
static spmv_status solve_some(spmv_solver *s, struct columns *c, int64_t first, int64_t width, const void *b, void *x,
                              bool begun, spmv_status *worst, char sentence[512])
{
    spmv_status st = SPMV_OK;
    const size_t column = (size_t)c->stride * spmv_type_size(c->type);
    bool any = !begun, tried = begun || width == 1, ahead = false;
    for (int64_t v = first; v < first + width; v++)
        any = any || may_go_on(s, s->results[v].status);
    if (any) {
        TRY(copy_columns(c, (void *)b, first, width, c->copy, false));
        TRY(copy_columns(c, x, first, width, c->copy_x, false));
    }
    for (int64_t v = first; v < first + width; v++) {
        spmv_cg_result *const result = &s->results[v];
        const size_t at = (size_t)(v - first) * column;
        if (begun && !may_go_on(s, result->status)) {
            if (result->status != SPMV_OK && *worst == SPMV_OK)
                *worst = result->status;
            continue;
        }
        if (begun)
            context_fail(c->ctx, result->status, "spmv_solver_solve: %s", spmv_status_text(result->status));
        if (!tried && takes_ahead(s)) {
            tried = true;
            ahead = solve_ahead(s, c, v - first, width);
        }
        const spmv_status of =
            solve_single(s, c->copy + at, c->copy_x + at, begun, ahead ? c->ahead + at : NULL, result);
        if (of != SPMV_OK && *worst == SPMV_OK) {
            *worst = of;
            snprintf(sentence, 512, "right-hand side %lld of %lld: %.460s", (long long)v + 1, (long long)c->k,
                     spmv_last_error(c->ctx));
        }
    }
    if (any)
        TRY(copy_columns(c, x, first, width, c->copy_x, true));
done:
    return st;
}

/* Several right-hand sides, one after the other. Returns the first failure. begun: cg has ended for
 * all, and those that are solved stay as they are. */
static spmv_status solve_columns(spmv_solver *s, const void *b, void *x, bool begun)
{
    spmv_status st = SPMV_OK, worst = SPMV_OK;
    spmv_plan_info info;
    char sentence[512] = "";
    struct columns c = {.ctx = s->ctx, .n = s->a.rows, .k = s->options.vectors};
    if (begun)
        snprintf(sentence, sizeof sentence, "%s", spmv_last_error(c.ctx));
    TRY(spmv_plan_describe(s->plan, &info, sizeof info));
    TRY(krylov_check(&(const struct krylov){
        .call = "spmv_solver_solve", .ctx = c.ctx, .plan = s->plan, .info = info, .b = b, .x = x}));
    c.type = info.type;
    TRY(open_columns(&c, !begun && takes_ahead(s)));
    for (int64_t v = 0; v < c.k; v += c.most)
        TRY(solve_some(s, &c, v, min_i64(c.most, c.k - v), b, x, begun, &worst, sentence));
    if (worst != SPMV_OK)
        st = context_fail(c.ctx, worst, "%s", sentence);
done:
    close_columns(&c);
    return st;
}

/* All right-hand sides of the plan together, by conjugate gradients. */
static spmv_status solve_together(spmv_solver *s, const void *b, void *x, spmv_cg_result *results)
{
    struct chain c = {.s = s,
                      .plan = solver_plan(s),
                      .b = b,
                      .x = x,
                      .rtol = s->options.rtol,
                      .atol = s->options.atol,
                      .zero_start = s->options.zero_start != 0,
                      .most = solver_most_iterations(s),
                      .columns = solver_plan(s)->vectors,
                      .result = results};
    return solver_run_or_race(&c, &krylov_cg, s->precond);
}

/* Whether other right-hand sides can be solved after some ended with this status. */
static bool others_follow(spmv_status st)
{
    return st == SPMV_OK || st == SPMV_ERROR_NOT_POSITIVE || spmv_status_class(st) == 7;
}

/* The right-hand sides in batches of the plan's vectors; the last one is filled up with zeros. Returns the first
 * failure. */
static spmv_status solve_batches(spmv_solver *s, const void *b, void *x)
{
    spmv_status st = SPMV_OK, worst = SPMV_OK;
    spmv_plan *const plan = solver_plan(s);
    const int all = s->options.vectors, width = plan->vectors;
    const spmv_type type = plan->type;
    const int64_t n = s->a.rows, size = (int64_t)spmv_type_size(type), bytes = n * width * size;
    spmv_cg_result *results = NULL;
    spmv_plan_info info;
    char sentence[512] = "";
    void *some_b = NULL, *some_x = NULL;
    TRY(spmv_plan_describe(plan, &info, sizeof info));
    TRY(krylov_check(&(const struct krylov){
        .call = "spmv_solver_solve", .ctx = s->ctx, .plan = plan, .info = info, .b = b, .x = x}));
    TRY(host_alloc(s->ctx, width * (int64_t)sizeof *results, "results of a solve", (void **)&results));
    TRY(context_lend(s->ctx, bytes, &some_b));
    TRY(context_lend(s->ctx, bytes, &some_x));
    for (int first = 0; first < all; first += width) {
        const int columns = all - first < width ? all - first : width;
        struct columns_transfer copy = {.type = type,
                                        .n = n,
                                        .from_stride = all,
                                        .to_stride = width,
                                        .columns = columns,
                                        .width = width,
                                        .from = (const char *)b + first * size,
                                        .to = some_b};
        TRY(columns_copy(s->ctx, &copy));
        copy.from = (const char *)x + first * size;
        copy.to = some_x;
        TRY(columns_copy(s->ctx, &copy));
        for (int v = 0; v < width; v++)
            results[v] = not_begun;
        const spmv_status ended = solve_together(s, some_b, some_x, results);
        memcpy(s->results + first, results, (size_t)columns * sizeof *results);
        if (ended != SPMV_OK && worst == SPMV_OK) {
            worst = ended;
            if (columns < all)
                snprintf(sentence, sizeof sentence, "right-hand sides %d to %d of %d: %.440s", first + 1,
                         first + columns, all, spmv_last_error(s->ctx));
            else
                snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
        }
        copy = (struct columns_transfer){.type = type,
                                         .n = n,
                                         .from_stride = width,
                                         .to_stride = all,
                                         .columns = columns,
                                         .width = columns,
                                         .from = some_x,
                                         .to = (char *)x + first * size};
        TRY(columns_copy(s->ctx, &copy));
        if (!others_follow(ended)) {
            for (int v = first + columns; v < all; v++)
                s->results[v].status = ended;
            break;
        }
    }
    if (worst != SPMV_OK)
        st = context_fail(s->ctx, worst, "%s", sentence);
done:
    context_take_back(s->ctx, some_x);
    context_take_back(s->ctx, some_b);
    host_free(results);
    return st;
}

/* Several right-hand sides: together by conjugate gradients where that is possible. */
static spmv_status solve_several(spmv_solver *s, const void *b, void *x)
{
    bool more = false;
    if (s->solver->columns && s->options.on_iterate != NULL) { /* as spmv_cg, also where it solves one by one */
        for (int v = 0; v < s->options.vectors; v++)
            s->results[v].status = SPMV_ERROR_UNSUPPORTED;
        return context_fail(s->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_solver_solve: on_iterate supports only one right-hand side");
    }
    if (solver_vectors_at_once(s) == 1 || solver_plan(s)->vectors == 1 || s->null_space != NULL)
        return solve_columns(s, b, x, false);
    snprintf(s->why_used, sizeof s->why_used, "%s", s->why);
    const spmv_status st =
        solver_plan(s)->vectors != s->options.vectors ? solve_batches(s, b, x) : solve_together(s, b, x, s->results);
    for (int v = 0; v < s->options.vectors; v++)
        more = more || may_go_on(s, s->results[v].status);
    return more && st != SPMV_OK && (spmv_status_class(st) == 7 || st == SPMV_ERROR_NOT_POSITIVE)
               ? solve_columns(s, b, x, true)
               : st;
}

/* Solves for b, or for -b with -A. ahead: as in struct chain, of one b. */
static spmv_status solve_signed(spmv_solver *s, const void *b, void *x, const void *ahead)
{
    spmv_status st = SPMV_OK;
    spmv_plan_info info;
    void *negative = NULL;
    const int vectors = s->options.vectors;
    if (!s->negates || (s->a.rows > 0 && (b == NULL || b == x)))
        return vectors == 1 ? solve_single(s, b, x, false, ahead, s->results) : solve_several(s, b, x);
    TRY(spmv_plan_describe(s->plan, &info, sizeof info));
    const int64_t count = info.rows * vectors;
    TRY(context_lend(s->ctx, max_i64(1, count) * (int64_t)spmv_type_size(info.type), &negative));
    if (count > 0)
        TRY(spmv_map(s->ctx, SPMV_MAP_NEG, info.type, b, negative, count));
    st = vectors == 1 ? solve_single(s, negative, x, false, NULL, s->results) : solve_several(s, negative, x);
done:
    context_take_back(s->ctx, negative);
    return st;
}

static void forget_results(spmv_solver *s)
{
    for (int v = 0; v < s->options.vectors; v++) { /* if there is no memory for a solve */
        s->results[v] = not_begun;
        s->errors[v] = (struct backward_error){0, -1, 0};
        s->forward_errors[v] = s->null_parts[v] = -1;
        s->told[v] = (struct recycle_told){0, -1, -1};
        name_precond(&s->results[v], s->precond);
    }
}

/* With the checks that follow. */
static spmv_status solve_and_check(spmv_solver *s, const void *b, void *x, const void *ahead)
{
    const spmv_status st = solve_signed(s, b, x, ahead);
    return solver_check_error(s, b, x, s->no_entries ? st : solver_check_rows(s, b, x, st));
}

/* The results begin with those of right-hand side number `by` from here. */
static void shift_results(spmv_solver *s, int by)
{
    s->results += by;
    s->errors += by;
    s->forward_errors += by;
    s->null_parts += by;
    s->told += by;
}

/* Several complex right-hand sides. Each is a solve of its own, with its checks; by direct, their first solutions come
 * together. Returns the first failure; after some, as a cancelled solve, the others are not solved. */
static spmv_status solve_each(spmv_solver *s, const void *b, void *x)
{
    spmv_status st = SPMV_OK, worst = SPMV_OK;
    const int all = s->options.vectors;
    spmv_plan_info info;
    char sentence[512] = "";
    bool goes_on = true;
    struct columns c = {.ctx = s->ctx, .n = s->a.rows, .k = all};
    TRY(spmv_plan_describe(s->plan, &info, sizeof info));
    TRY(krylov_check(&(const struct krylov){
        .call = "spmv_solver_solve", .ctx = c.ctx, .plan = s->plan, .info = info, .b = b, .x = x}));
    c.type = info.type;
    const int64_t column = (int64_t)spmv_type_size(c.type);
    TRY(open_columns(&c, takes_ahead(s)));
    for (int64_t first = 0; first < all && goes_on; first += c.most) {
        const int64_t width = min_i64(c.most, all - first);
        TRY(copy_columns(&c, (void *)b, first, width, c.copy, false));
        TRY(copy_columns(&c, x, first, width, c.copy_x, false));
        const bool ahead = width > 1 && takes_ahead(s) && solve_ahead(s, &c, 0, width);
        for (int64_t v = 0; v < width && goes_on; v++) {
            const int64_t at = v * c.stride * column;
            shift_results(s, (int)(first + v));
            s->options.vectors = 1;
            const spmv_status of = solve_and_check(s, c.copy + at, c.copy_x + at, ahead ? c.ahead + at : NULL);
            s->results->status = of;
            s->options.vectors = all;
            shift_results(s, (int)-(first + v));
            if (of != SPMV_OK && worst == SPMV_OK) {
                worst = of;
                snprintf(sentence, sizeof sentence, "right-hand side %lld of %d: %.440s", (long long)(first + v) + 1,
                         all, spmv_last_error(c.ctx));
            }
            goes_on = others_follow(of);
            for (int64_t after = first + v + 1; after < all && !goes_on; after++)
                s->results[after].status = of;
        }
        TRY(copy_columns(&c, x, first, width, c.copy_x, true));
    }
    if (worst != SPMV_OK)
        st = context_fail(c.ctx, worst, "%s", sentence);
done:
    close_columns(&c);
    return st;
}

spmv_status solver_solve_held(spmv_solver *s, const void *b, void *x)
{
    forget_results(s);
    return s->options.vectors > 1 && type_is_complex(s->plan->type) ? solve_each(s, b, x)
                                                                    : solve_and_check(s, b, x, NULL);
}

/* ------------------------------------------------------------- several right-hand sides of ranks */

/* Whether several vectors in one step take less time than one after the other: with so many vectors, if a row has so
 * many entries, or the preconditioner more of them, each of which is read once for all; or where exchanges take most of a
 * step, since there is one for all. Else what counts are the vectors of a step, which caches hold better if they are
 * those of one solve. */
enum { ENTRIES_OF_A_ROW = 8, VECTORS_FROM = 4, ELEMENTS_OF_A_RANK = 1 << 17 };

static bool pays_ahead(const spmv_solver *s, int solves)
{
    const struct plan_ranks *const ranks = s->plan->ranks;
    if (s->precond != NULL && precond_takes_columns(s->precond))
        return solves >= VECTORS_FROM;
    return (solves >= VECTORS_FROM && ranks->nnz >= ENTRIES_OF_A_ROW * ranks->rows) ||
           (solves > 1 && ranks->rows / ranks->count <= ELEMENTS_OF_A_RANK / solves);
}

/* Whether cg and the preconditioner take several vectors at once. */
static bool takes_columns(const spmv_solver *s)
{
    return (s->precond == NULL || precond_is_identity(s->precond) || precond_inverse_diagonal(s->precond) != NULL ||
            precond_takes_columns(s->precond)) &&
           !type_is_complex(s->plan->type) && s->ctx->backend->id == SPMV_BACKEND_OMP &&
           choice_is_auto(s->options.rung);
}

/* The iterations that the last solve took, if that was its first choice alone; else 0. */
static int64_t last_iterations(const spmv_solver *s)
{
    const bool first = s->used == s->solver && s->used_precond == s->precond && s->results->status == SPMV_OK;
    return first ? s->results->iterations : 0;
}

spmv_status solver_runs_ahead(spmv_solver *s, int solves, bool *runs)
{
    spmv_status st = SPMV_OK;
    struct krylov look = {.call = "spmv_solver_solve", .ctx = s->ctx, .plan = s->plan};
    /* while there may be a race, after a solve in which there was none */
    *runs = begins_with_cg(s) && takes_columns(s) && pays_ahead(s, solves) &&
            (!solver_races(s, s->solver, s->precond) || last_iterations(s) > 0);
    TRY(spmv_plan_describe(s->plan, &look.info, sizeof look.info));
    if (*runs && s->options.symmetry_check == SPMV_SYMMETRY_SAMPLED)
        st = krylov_check_symmetry(&look, false);
    *runs = *runs && st == SPMV_OK;
done:
    return st == SPMV_ERROR_NOT_SYMMETRIC ? SPMV_OK : st; /* each solve says so */
}

/* Residuals that are noted of a right-hand side, if a judge may ask. What takes many more iterations than the last solve
 * is solved for alone. */
static int64_t most_residuals(const spmv_solver *s)
{
    enum { TIMES = 2, MORE = 16 };
    return solver_races(s, s->solver, s->precond)
               ? min_i64(solver_most_iterations(s), TIMES * last_iterations(s) + MORE) + 1
               : 0;
}

spmv_status solver_open_ahead(const spmv_solver *s, int solves, struct solver_ahead *ahead)
{
    spmv_status st = SPMV_OK;
    static const char *const what = "results of a solve";
    struct precond_columns columns = {.m = NULL};
    const int64_t most = most_residuals(s);
    *ahead = (struct solver_ahead){.columns = solves};
    TRY(host_alloc(s->ctx, solves * (int64_t)sizeof *ahead->known, what, (void **)&ahead->known));
    TRY(host_alloc(s->ctx, solves * (int64_t)sizeof *ahead->result, what, (void **)&ahead->result));
    TRY(host_alloc(s->ctx, solves * (int64_t)sizeof *ahead->note, what, (void **)&ahead->note));
    TRY(host_alloc(s->ctx, max_i64(1, solves * most) * 8, what, (void **)&ahead->residuals));
    for (int v = 0; v < solves; v++) {
        ahead->known[v] = false;
        ahead->note[v] = (struct krylov_note){.residual = ahead->residuals + v * most, .most = most};
    }
    if (s->precond != NULL && precond_takes_columns(s->precond))
        TRY(precond_columns_open(s->precond, solves, &columns));
done:
    precond_columns_close(&columns);
    return st;
}

void solver_close_ahead(struct solver_ahead *ahead)
{
    host_free_all(ahead->known, ahead->result, ahead->note, ahead->residuals);
    *ahead = (struct solver_ahead){.columns = 0};
}

/* On a context that this thread holds. */
static spmv_status run_ahead(spmv_solver *s, spmv_plan *plan, const void *b, void *x, struct solver_ahead *ahead)
{
    const int check = s->options.symmetry_check;
    const int64_t all = solver_most_iterations(s), noted = ahead->note->most;
    struct chain c = {.s = s,
                      .plan = plan,
                      .b = b,
                      .x = x,
                      .rtol = s->options.rtol,
                      .atol = s->options.atol,
                      .zero_start = s->options.zero_start != 0,
                      .most = noted > 0 ? min_i64(all, noted - 1) : all,
                      .columns = ahead->columns,
                      .result = ahead->result,
                      .note = ahead->note};
    ahead->x = x;
    ahead->precond = s->precond;
    begin_results(&c, s->precond);
    s->used = s->solver;
    s->used_precond = s->precond;
    s->options.symmetry_check = SPMV_SYMMETRY_TRUST; /* checked with the plan for one */
    const spmv_status st = run_used(s, plan, &c, c.most, 0, c.result);
    s->options.symmetry_check = check;
    for (int v = 0; v < ahead->columns; v++) {
        const spmv_cg_result *const r = &c.result[v];
        const bool ended = r->status == SPMV_OK || r->status == SPMV_CANCELLED ||
                           (c.most == all && others_follow(r->status) && r->status != SPMV_ERROR_NOT_FINITE);
        /* the others are solved for with another scale, or begin anew to tell why they fail */
        ahead->known[v] = ended && !krylov_may_scale(plan->type, r->norm_b, r->tolerance);
    }
    return st;
}

spmv_status solver_run_ahead(spmv_solver *s, spmv_plan *plan, const void *b, void *x, struct solver_ahead *ahead)
{
    bool outer = false;
    const spmv_status st = context_hold(s->ctx, &outer);
    return st != SPMV_OK ? st : context_release(s->ctx, outer, run_ahead(s, plan, b, x, ahead));
}

void solver_take_ahead(spmv_solver *s, const struct solver_ahead *ahead, int v)
{
    s->ahead = ahead != NULL && ahead->known[v] ? ahead : NULL;
    s->ahead_of = v;
}
