/* The forward error of x, and the digits of it that a caller wants (options estimate_error and accuracy).
 *
 * The error of x is the solution d of A d = b - A x. A rough solve gives its size: after a
 * solve, b - A x has about the same part along all that A contains, so d needs a few iterations where x needed many.
 * Where x is nearly exact, b - A x is summed in twice the precision (accuracy/wide_residual.h): plain sums would be
 * rounding errors.
 *
 * accuracy: x + d replaces x, and so on until the next d is small enough: iterative refinement with residuals in twice
 * the precision. It fails to reduce d where d is not accurate itself. Then the table `strengths` says what follows.
 *
 * Where rows and columns had to be scaled (solver_accuracy.c), A d = r is solved so too. Null vectors: r and d have no
 * part along them.
 *
 * Several right-hand sides: for the estimate, the sum of all b - A x, each divided by the norm of its x and with a
 * pseudo-random sign, is one right-hand side; its d has about the norm of the errors of all, so it is about an upper
 * bound for each. For accuracy, one after the other.
 *
 * Source: N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., 2002, chapter 12.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>

#include "core/splitmix.h"
#include "solvers/accuracy/wide_residual.h"
#include "solvers/krylov/krylov_columns.h"
#include "solvers/solver_internal.h"

/* The part of b - A x that is left: for an estimate, and at most for a correction. Without symmetry, at most FEW
 * iterations for x may mean that b hardly has a part along a tiny singular value; there FINE costs few iterations. */
static const double ROUGH = 0.1, FINE = 1e-3;
enum { FEW = 20 };

/* An estimate is as good where the iterations end before that, at this part. */
static const double ENOUGH = 0.5;

/* Backward errors above this are so far from rounding errors that sums of the type have digits of b - A x. */
static const double PLAIN = 0x1p-40;

/* Of c, almost a null vector: an A c of at most so many roundoffs is that of a null vector, of which x may have any part;
 * and the largest e, relative to c. Where e is larger, c is no such vector, or a rough solve finds the part along it. */
static const double NULL_VECTOR = 64, MOST_CHANGE = 0.5;

enum { MOST_CORRECTIONS = 40 };

/* The most iterations of an estimate, as a multiple of those for x, and at least so many. */
enum { TO_ESTIMATE = 2, LEAST_ITERATIONS = 20 };

/* One right-hand side, or the sum of several. */
struct error_solve {
    spmv_solver *s;
    spmv_plan *plan;
    struct rest rest; /* its sums are those of b and x */
    spmv_cg_result of_d;
    int64_t most; /* iterations of a solve */
    double rtol;
    void *split; /* NULL: there are no null vectors */
};

/* The part for an estimate, after so many iterations for x. */
static double estimate_part(const spmv_solver *s, int64_t iterations)
{
    return iterations > FEW || s->used->symmetric ? ROUGH : FINE;
}

static spmv_status open(spmv_solver *s, spmv_plan *plan, struct error_solve *e)
{
    spmv_status st = SPMV_OK;
    e->s = s;
    e->plan = plan;
    TRY(solver_open_rest(s, plan, &e->rest));
    if (s->null_space != NULL) {
        st = context_lend(s->ctx, max_i64(1, e->rest.numbers) * (int64_t)spmv_type_size(e->rest.k.part), &e->split);
        st = s->ranks != NULL ? s->ranks->agree(s->ranks->self, st) : st;
    }
done:
    return st;
}

static void close(struct error_solve *e)
{
    context_take_back(e->s->ctx, e->split);
    solver_close_rest(e->s, &e->rest);
}

/* e->rest.r = b - A x. plain: as the plan sums it. */
static spmv_status residual(struct error_solve *e, const void *b, void *x, bool plain)
{
    spmv_status st = SPMV_OK;
    const spmv_solver *const s = e->s;
    const struct plan_ranks *const ranks = s->plan->ranks;
    if (s->no_entries || plain) {
        e->rest.k.b = b;
        e->rest.k.x = x;
        return krylov_residual(&e->rest.k, e->rest.r);
    }
    if (ranks != NULL) {
        TRY(ranks->fetch_start(ranks->self, x, 1));
        TRY(ranks->fetch_finish(ranks->self, x, 1));
    }
    st = wide_residual(s->ctx, &s->a, e->rest.k.type, b, ranks != NULL ? plan_x_of(s->plan, x) : x, e->rest.r);
done:
    return st;
}

/* Whether plain sums do for right-hand side v. The plan of one right-hand side may be that of -A. */
static bool is_plain(const struct error_solve *e, int v)
{
    const spmv_solver *const s = e->s;
    return s->options.accuracy == 0 && !s->negates && s->errors[v].row >= 0 && s->errors[v].omega > PLAIN;
}

/* A vector less its part along the null vectors. */
static spmv_status remove_null(const struct error_solve *e, void *vector)
{
    spmv_status st = SPMV_OK;
    struct null_space_norms norms;
    TRY(null_space_split(e->s->null_space, vector, e->split, &norms));
    TRY(spmv_map(e->s->ctx, SPMV_MAP_COPY, e->rest.k.part, e->split, vector, e->rest.numbers));
done:
    return st;
}

/* What solves for d. */
enum means { AS_X, FACTORS, OTHERS };

/* e->rest.d = d by factors, else (OTHERS) by the solvers that follow one that failed; what succeeds becomes what x is of,
 * and otherwise nothing changes. */
static spmv_status solve_by_others(struct error_solve *e, struct chain *c, enum means means, spmv_status *ended)
{
    spmv_status st = SPMV_OK;
    spmv_solver *const s = e->s;
    const struct krylov_solver *const used = s->used;
    const spmv_preconditioner *const precond = s->used_precond;
    *ended = SPMV_ERROR_STAGNATION;
    for (int k = 0; k < (means == OTHERS ? 2 : 1) && *ended != SPMV_OK && *ended != SPMV_CANCELLED; k++) {
        s->used = used;
        s->used_precond = precond;
        TRY(spmv_map_index(s->ctx, e->rest.k.part, &(const double){0}, NULL, e->rest.d, e->rest.numbers));
        *ended = k == 0 ? solver_run_direct(c, SPMV_ERROR_STAGNATION) : solver_follow(c, SPMV_ERROR_STAGNATION);
    }
    if (*ended == SPMV_OK) {
        snprintf(s->why_used, sizeof s->why_used,
                 means == FACTORS ? "corrections of x by %s with %.31s would take longer"
                                  : "%s with %.31s left an error of x that was too large",
                 used->name, precond_name(precond));
    } else {
        s->used = used;
        s->used_precond = precond;
    }
done:
    return st;
}

static struct chain chain_of(struct error_solve *e)
{
    return (struct chain){.s = e->s,
                          .plan = e->plan,
                          .b = e->rest.r,
                          .x = e->rest.d,
                          .rtol = e->rtol,
                          .zero_start = true,
                          .from_zero = true,
                          .most = e->most,
                          .columns = 1,
                          .result = &e->of_d,
                          .corrects = true,
                          .silent = true};
}

/* e->rest.d = d. *ended: how that solve ended. */
static spmv_status solve_for_error(struct error_solve *e, enum means means, spmv_status *ended)
{
    spmv_status st = SPMV_OK;
    spmv_solver *const s = e->s;
    struct chain c = chain_of(e);
    e->of_d = (spmv_cg_result){.status = SPMV_ERROR_MEMORY, .rung = "", .precond = "none", .error_estimate = -1};
    if (s->null_space != NULL && null_space_splits(s->null_space))
        TRY(remove_null(e, e->rest.r));
    if (s->scaled != NULL && means == AS_X) {
        *ended = solver_solve_scaled(s, e->rest.r, e->rest.d, e->rtol, &e->of_d);
    } else {
        if (s->negates)
            TRY(spmv_map(s->ctx, SPMV_MAP_NEG, e->rest.k.part, e->rest.r, e->rest.r, e->rest.numbers));
        if (means != AS_X)
            TRY(solve_by_others(e, &c, means, ended));
        else
            *ended = solver_run(&c, s->used, s->used_precond, e->most);
    }
    if (spmv_status_class(*ended) < 7 && *ended != SPMV_OK)
        TRY(*ended);
    if (s->null_space != NULL)
        TRY(remove_null(e, e->rest.d));
done:
    return st;
}

/* Whether d is the error of x. */
static bool is_known(const struct error_solve *e, spmv_status ended)
{
    return ended == SPMV_OK || (ended == SPMV_ERROR_ITERATIONS && e->s->options.accuracy == 0 && e->s->scaled == NULL &&
                                e->of_d.true_residual <= ENOUGH * e->of_d.norm_b);
}

/* *error = ||d|| / ||x||; negative: not known. */
static spmv_status compare(struct error_solve *e, const void *x, spmv_status ended, double *error)
{
    spmv_status st = SPMV_OK;
    double of_d = 0, of_x = 0;
    *error = -1;
    if (!is_known(e, ended))
        return SPMV_OK;
    TRY(krylov_norms(&e->rest.k, e->rest.d, &of_d));
    TRY(krylov_norms(&e->rest.k, x, &of_x));
    if (isfinite(of_d) && isfinite(of_x) && of_x > 0)
        *error = of_d / of_x;
done:
    return st;
}

/* ------------------------------------------------------------- a constant that b - A x hardly shows
 *
 * In an enclosed flow whose pressure is fixed at one point, the vector c that is 1 in rows of the pressure and 0 in others
 * is almost a null vector: A has a tiny eigenvalue, and both x and a rough d lack the part of the solution along its
 * eigenvector. Pressures, and other multipliers, have no positive diagonal entry. u = c - e, where A e = A c is solved
 * roughly, is near that eigenvector, and the part is (u'r / u'A u) u, where r is what d leaves of its residual
 * (Rayleigh, Ritz). A bound of that part, by two products, leaves out most other matrices at once. */

static spmv_status dot(const struct error_solve *e, const void *a, const void *b, double *sum)
{
    spmv_status st = SPMV_OK;
    TRY(krylov_dot(&e->rest.k, a, b, e->rest.k.cells));
    TRY(krylov_read(&e->rest.k, e->rest.k.cells, 1, sum));
done:
    return st;
}

static spmv_status copy(const struct error_solve *e, const void *from, void *to)
{
    return spmv_map(e->s->ctx, SPMV_MAP_COPY, e->rest.k.part, from, to, e->rest.numbers);
}

/* c = 1 in rows whose diagonal entry is not positive, and 0 in others. */
static spmv_status constant_where_not_positive(const struct error_solve *e, void *c)
{
    spmv_status st = SPMV_OK;
    const spmv_solver *const s = e->s;
    const spmv_type type = s->a.val != NULL ? s->a.type : SPMV_F64, part = e->rest.k.part;
    const int64_t n = s->a.rows, bytes = n * (int64_t)spmv_type_size(type);
    void *there = NULL, *diagonal = NULL, *constant = NULL;
    TRY(host_alloc(s->ctx, bytes, "a diagonal", &diagonal));
    TRY(host_alloc(s->ctx, n * (int64_t)spmv_type_size(part), "a diagonal", &constant));
    TRY(context_lend(s->ctx, bytes, &there));
    TRY(spmv_matrix_diagonal(s->ctx, &s->a, there));
    TRY(spmv_download(s->ctx, there, diagonal, bytes));
    for (int64_t i = 0; i < n; i++)
        real_set(part, constant, i, real_at(type, diagonal, i) <= 0);
    st = spmv_upload(s->ctx, constant, c, n * (int64_t)spmv_type_size(part));
done:
    context_take_back(s->ctx, there);
    host_free(constant);
    host_free(diagonal);
    return st;
}

/* *least: about the least that |u'A u| may be; infinite: c is a null vector. w = A c. Where A is symmetric, and positive
 * definite on vectors that are 0 where c is not, it is |c'w| + w'A^-1 w with that part of A, so at least |c'w| + |w|^4 /
 * w'A w (Cauchy, Schwarz). t: room. */
static spmv_status least_along(const struct error_solve *e, const void *c, double cc, void *w, void *t, double *least)
{
    spmv_status st = SPMV_OK;
    double cw = 0, ww = 0, wt = 0;
    TRY(spmv_apply(e->plan, NULL, c, NULL, w));
    TRY(spmv_apply(e->plan, NULL, w, NULL, t));
    TRY(dot(e, c, w, &cw));
    TRY(dot(e, w, w, &ww));
    TRY(dot(e, w, t, &wt));
    const double size_of_a = fabs(wt) / ww, zero = NULL_VECTOR * real_limits_of(e->rest.k.part).roundoff * size_of_a;
    *least = ww > zero * zero * cc ? fabs(cw) + ww / size_of_a : INFINITY;
done:
    return st;
}

/* Adds the part to e->rest.d. vector: room for four. */
static spmv_status add_constant_in(struct error_solve *e, void *const vector[4])
{
    spmv_status st = SPMV_OK, ended = SPMV_OK;
    void *const d = vector[0], *const r = vector[1], *const u = vector[2], *const w = vector[3];
    const spmv_type part = e->rest.k.part;
    double cc = 0, dd = 0, ee = 0, ur = 0, uw = 0, least = 0;
    TRY(constant_where_not_positive(e, u));
    TRY(dot(e, u, u, &cc));
    TRY(least_along(e, u, cc, w, r, &least));
    TRY(dot(e, e->rest.d, e->rest.d, &dd));
    if (!(e->of_d.true_residual * cc > sqrt(dd) * least)) /* the part is less than d */
        return SPMV_OK;
    e->rest.k.b = e->rest.r;
    e->rest.k.x = e->rest.d;
    TRY(krylov_residual(&e->rest.k, r));
    TRY(dot(e, u, r, &ur));
    if (!(fabs(ur) * sqrt(cc) > sqrt(dd) * least))
        return SPMV_OK;
    TRY(copy(e, e->rest.d, d));
    TRY(copy(e, w, e->rest.r));
    e->rtol = ROUGH;
    TRY(solve_for_error(e, AS_X, &ended));
    TRY(dot(e, e->rest.d, e->rest.d, &ee));
    if (ended == SPMV_OK && ee <= MOST_CHANGE * MOST_CHANGE * cc) {
        TRY(spmv_map(e->s->ctx, SPMV_MAP_NEG, part, e->rest.d, e->rest.d, e->rest.numbers));
        TRY(spmv_map_axpby(e->s->ctx, part, NULL, e->rest.d, NULL, u, e->rest.numbers));
        TRY(spmv_apply(e->plan, NULL, u, NULL, w));
        TRY(dot(e, u, w, &uw));
        TRY(dot(e, u, r, &ur));
        TRY(krylov_set_cell(&e->rest.k, uw != 0 ? ur / uw : 0));
        TRY(spmv_map_axpby(e->s->ctx, part, e->rest.k.cells, u, NULL, d, e->rest.numbers));
    }
    TRY(copy(e, d, e->rest.d));
done:
    return st;
}

static spmv_status add_constant(struct error_solve *e)
{
    spmv_status st = SPMV_OK;
    const spmv_solver *const s = e->s;
    const spmv_cg_result of_d = e->of_d;
    void *vector[4] = {NULL, NULL, NULL, NULL};
    double smallest = 0;
    /* cg: A has a positive diagonal. direct: its d is accurate */
    if (s->used == &krylov_cg || s->used == &krylov_direct || s->negates || s->no_entries || s->ranks != NULL ||
        s->scaled != NULL || s->null_space != NULL || type_is_complex(e->rest.k.type) || type_is_complex(s->a.type))
        return SPMV_OK;
    TRY(solver_extreme_diagonal(s, SPMV_MIN, &smallest));
    if (smallest > 0)
        return SPMV_OK;
    for (int i = 0; i < 4; i++)
        TRY(context_lend(s->ctx, e->rest.numbers * (int64_t)spmv_type_size(e->rest.k.part), &vector[i]));
    st = add_constant_in(e, vector);
    e->of_d = of_d;
done:
    for (int i = 0; i < 4; i++)
        context_take_back(s->ctx, vector[i]);
    return st;
}

/* ------------------------------------------------------------- the digits wanted */

/* What a correction is computed by, the next one where one does not help. As accurate as x itself at first: what x misses
 * in b, a rougher d would miss in b - A x again, and both would seem to be right. */
static const struct strength {
    int power;   /* of the relative tolerance of x, which d is solved to */
    bool others; /* by factors and what follows a solver that failed, if the solver may choose others */
} strengths[] = {
    {1, false},
    {2, false},
    {1, true},
};
enum { STRENGTHS = sizeof strengths / sizeof *strengths };

static double tolerance_of(const struct error_solve *e, const spmv_cg_result *x, const struct strength *strength)
{
    const double rtol = fmin(FINE, x->tolerance / x->norm_b);
    return fmax(pow(rtol, strength->power), 64 * real_limits_of(e->rest.k.part).roundoff);
}

/* The next one that this solver may take; STRENGTHS: none. */
static int next_strength(const spmv_solver *s, int strength)
{
    do
        strength++;
    while (strength < STRENGTHS && strengths[strength].others &&
           (s->used == &krylov_direct || !solver_may_follow(s, SPMV_ERROR_STAGNATION)));
    return strength;
}

static spmv_status add(struct error_solve *e, void *x)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_map_axpby(e->s->ctx, e->rest.k.part, NULL, x, NULL, e->rest.d, e->rest.numbers));
    TRY(spmv_map(e->s->ctx, SPMV_MAP_COPY, e->rest.k.part, e->rest.d, x, e->rest.numbers));
done:
    return st;
}

static spmv_status fail_digits(const spmv_solver *s, double error)
{
    static const char said[] = "spmv_solver_solve: b - A x is within the tolerance, but";
    const int digits = s->options.accuracy;
    return error < 0
               ? context_fail(s->ctx, SPMV_ERROR_ACCURACY,
                              "%s the error of x could not be estimated; %d digit%s asked for", said, digits,
                              digits == 1 ? " was" : "s were")
               : context_fail(s->ctx, SPMV_ERROR_ACCURACY,
                              "%s the relative error of x is about %.1g; %d digit%s asked for, which %s%s%.31s cannot "
                              "give",
                              said, error, digits, digits == 1 ? " was" : "s were", s->used->name,
                              precond_is_identity(s->used_precond) ? "" : " with ",
                              precond_is_identity(s->used_precond) ? "" : precond_name(s->used_precond));
}

/* Whether factors of A, which there are not yet, take less than the corrections by the solver that x is of. */
static bool factors_take_less(struct error_solve *e, int64_t iterations)
{
    const struct chain c = chain_of(e);
    spmv_solver *const s = e->s;
    return s->scaled == NULL && s->used != &krylov_direct && isfinite(solver_worth_direct(s)) &&
           solver_direct_corrects(s, solver_iterations_take(&c, iterations));
}

/* Where the error before the last correction says that x now has the digits, b - A x is rounding errors, with a part
 * along all that A contains. Then a rougher d confirms it, by an estimate that is small enough. */
static const double CONFIRMED = 0.1;

/* Corrects x until it has the digits. Sets *error and the result. */
static spmv_status refine(struct error_solve *e, const void *b, void *x, spmv_cg_result *result, double *error)
{
    spmv_status st = SPMV_OK, ended = SPMV_OK;
    spmv_solver *const s = e->s;
    const double wanted = pow(10, -s->options.accuracy);
    double before = INFINITY, best = -1;
    int strength = 0;
    bool factors = factors_take_less(e, result->iterations);
    double enough = wanted;
    *error = -1;
    for (int k = 0; k < MOST_CORRECTIONS; k++) {
        const bool confirms = before * before <= wanted;
        enough = confirms ? CONFIRMED * wanted : wanted;
        e->rtol = confirms ? FINE : tolerance_of(e, result, &strengths[strength]);
        const enum means means = s->used == &krylov_direct    ? AS_X
                                 : factors                    ? FACTORS
                                 : strengths[strength].others ? OTHERS
                                                              : AS_X;
        TRY(residual(e, b, x, false));
        TRY(solve_for_error(e, means, &ended));
        TRY(compare(e, x, ended, error));
        result->iterations += e->of_d.iterations;
        if (means != AS_X && ended == SPMV_OK)
            krylov_name_precond(result, s->used_precond);
        if (ended == SPMV_CANCELLED)
            return ended;
        if (factors && s->used != &krylov_direct) { /* there are none */
            factors = false;
            continue;
        }
        best = *error >= 0 ? *error : best;
        if (*error >= 0 && *error <= enough)
            break;
        if (*error >= 0 && *error <= 0.5 * before) {
            before = *error;
            TRY(add(e, x));
            result->restarts++;
            factors = means == AS_X && factors_take_less(e, e->of_d.iterations); /* d may take longer than x */
            continue;
        }
        strength = next_strength(s, strength);
        before = INFINITY;
        if (strength == STRENGTHS)
            break;
    }
    const bool met = *error >= 0 && *error <= enough;
    *error = best;
    if (!met)
        st = fail_digits(s, best);
done:
    return st;
}

/* ------------------------------------------------------------- one right-hand side, and several */

/* x has other digits now: its residual and its backward error. */
static spmv_status measure_again(const struct error_solve *e, const void *b, void *x, int v)
{
    spmv_status st = SPMV_OK;
    spmv_solver *const s = e->s;
    spmv_cg_result *const result = &s->results[v];
    double norm_b = 0;
    if (s->no_entries) {
        TRY(solver_measure(s, e->plan, b, x, &norm_b, &result->true_residual));
    } else {
        TRY(solver_find_error(s, e->rest.k.type, b, x,
                              backward_error_bound(e->rest.k.type, result->tolerance, result->norm_b), &s->errors[v]));
        result->true_residual = s->errors[v].norm;
    }
    result->error_estimate = -1;
done:
    return st;
}

/* One right-hand side, or column v in memory of its own. */
static spmv_status check_one(struct error_solve *e, const void *b, void *x, int v)
{
    spmv_status st = SPMV_OK, ended = SPMV_OK;
    spmv_solver *const s = e->s;
    spmv_cg_result *const result = &s->results[v];
    e->most = s->options.accuracy > 0 ? solver_most_iterations(s)
                                      : max_i64(LEAST_ITERATIONS, TO_ESTIMATE * result->iterations);
    if (result->norm_b == 0 || solver_rows(s) == 0) { /* x is 0 */
        s->forward_errors[v] = 0;
        return SPMV_OK;
    }
    if (s->options.accuracy > 0) {
        st = refine(e, b, x, result, &s->forward_errors[v]);
        result->status = st;
        if (result->restarts > 0 || st == SPMV_OK) {
            const spmv_status measured = measure_again(e, b, x, v);
            st = measured != SPMV_OK ? measured : st;
        }
        return st;
    }
    e->rtol = estimate_part(s, result->iterations);
    TRY(residual(e, b, x, is_plain(e, v)));
    TRY(solve_for_error(e, AS_X, &ended));
    if (is_known(e, ended))
        TRY(add_constant(e));
    TRY(compare(e, x, ended, &s->forward_errors[v]));
    if (ended == SPMV_CANCELLED) /* x is what it was */
        s->forward_errors[v] = -1;
done:
    return st;
}

struct columns_of {
    void *b, *x;
};

static struct columns_transfer column_of(const struct error_solve *e, int v, const void *from, void *to, bool back)
{
    const int k = e->s->options.vectors;
    const int64_t at = v * (int64_t)spmv_type_size(e->rest.k.type);
    return (struct columns_transfer){.type = e->rest.k.type,
                                     .n = e->rest.k.n,
                                     .from_stride = back ? 1 : k,
                                     .to_stride = back ? k : 1,
                                     .columns = 1,
                                     .width = 1,
                                     .from = (const char *)from + (back ? 0 : at),
                                     .to = (char *)to + (back ? at : 0)};
}

/* The digits wanted, of each right-hand side. Returns the first failure. */
static spmv_status refine_columns(struct error_solve *e, const struct columns_of *of, const void *b, void *x)
{
    spmv_status st = SPMV_OK, worst = SPMV_OK;
    spmv_context *const ctx = e->s->ctx;
    const int k = e->s->options.vectors;
    char sentence[512] = "";
    for (int v = 0; v < k; v++) {
        struct columns_transfer copy = column_of(e, v, b, of->b, false);
        TRY(columns_copy(ctx, &copy));
        copy = column_of(e, v, x, of->x, false);
        TRY(columns_copy(ctx, &copy));
        const spmv_status checked = check_one(e, of->b, of->x, v);
        if (spmv_status_class(checked) < 7)
            TRY(checked);
        copy = column_of(e, v, of->x, x, true);
        TRY(columns_copy(ctx, &copy));
        if (checked != SPMV_OK && worst == SPMV_OK) {
            worst = checked;
            snprintf(sentence, sizeof sentence, "right-hand side %d of %d: %.460s", v + 1, k, spmv_last_error(ctx));
        }
    }
    if (worst != SPMV_OK)
        st = context_fail(ctx, worst, "%s", sentence);
done:
    return st;
}

/* The estimate for all. sum: memory for a vector. */
static spmv_status estimate_columns(struct error_solve *e, const struct columns_of *of, void *sum, const void *b,
                                    void *x)
{
    spmv_status st = SPMV_OK, ended = SPMV_OK;
    spmv_solver *const s = e->s;
    const int k = s->options.vectors;
    double error = -1;
    e->most = LEAST_ITERATIONS;
    TRY(spmv_map_index(s->ctx, e->rest.k.part, &(const double){0}, NULL, sum, e->rest.numbers));
    for (int v = 0; v < k; v++) {
        double norm = 0;
        struct columns_transfer copy = column_of(e, v, b, of->b, false);
        TRY(columns_copy(s->ctx, &copy));
        copy = column_of(e, v, x, of->x, false);
        TRY(columns_copy(s->ctx, &copy));
        TRY(residual(e, of->b, of->x, is_plain(e, v)));
        TRY(krylov_norms(&e->rest.k, of->x, &norm));
        e->most = max_i64(e->most, TO_ESTIMATE * s->results[v].iterations);
        if (norm == 0)
            continue;
        const union real factor = real_scalar(e->rest.k.part, (splitmix_at(1, v) & 1 ? 1 : -1) / norm);
        TRY(spmv_map_scalar(s->ctx, SPMV_MUL, e->rest.k.part, &factor, e->rest.r, e->rest.r, e->rest.numbers));
        TRY(spmv_map_axpby(s->ctx, e->rest.k.part, NULL, e->rest.r, NULL, sum, e->rest.numbers));
    }
    e->rtol = estimate_part(s, e->most / TO_ESTIMATE);
    TRY(spmv_map(s->ctx, SPMV_MAP_COPY, e->rest.k.part, sum, e->rest.r, e->rest.numbers));
    TRY(solve_for_error(e, AS_X, &ended));
    if (is_known(e, ended)) {
        TRY(add_constant(e));
        TRY(krylov_norms(&e->rest.k, e->rest.d, &error));
    }
    for (int v = 0; v < k; v++)
        s->forward_errors[v] = isfinite(error) ? error : -1;
done:
    return st;
}

static spmv_status check_columns(struct error_solve *e, const void *b, void *x)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = e->s->ctx;
    const int64_t bytes = max_i64(1, e->rest.numbers) * (int64_t)spmv_type_size(e->rest.k.part);
    struct columns_of of = {NULL, NULL};
    void *sum = NULL;
    TRY(context_lend(ctx, bytes, &of.b));
    TRY(context_lend(ctx, bytes, &of.x));
    TRY(context_lend(ctx, bytes, &sum));
    st = e->s->options.accuracy > 0 ? refine_columns(e, &of, b, x) : estimate_columns(e, &of, sum, b, x);
done:
    context_take_back(ctx, sum);
    context_take_back(ctx, of.x);
    context_take_back(ctx, of.b);
    return st;
}

spmv_status solver_check_error(spmv_solver *s, const void *b, void *x, spmv_status ended)
{
    spmv_status st = SPMV_OK;
    spmv_plan *plan = NULL;
    struct error_solve e = {.s = s};
    if (ended != SPMV_OK || s->corrects || (s->options.estimate_error == 0 && s->options.accuracy == 0))
        return ended;
    TRY(solver_single_plan(s, &plan));
    st = open(s, plan, &e);
    if (st == SPMV_OK)
        st = s->options.vectors == 1 ? check_one(&e, b, x, 0) : check_columns(&e, b, x);
    close(&e);
done:
    if (st == SPMV_ERROR_MEMORY && s->options.accuracy == 0) { /* x is right without an estimate */
        s->ctx->error[0] = '\0';
        return ended;
    }
    return st;
}
