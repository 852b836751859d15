/* A solve: calls the solver's method (cg.c, krylov_general.c), and goes on with another one where
 * the method was chosen by "auto" and cannot reach the tolerance:
 *   - from cg to minres, if A turns out to be indefinite;
 *   - from any to gmres with ilut, then with ilut of more fill-in, if the residual stagnates, the
 *     method breaks down, or its share of the iterations is used up. That needs "auto" for the
 *     preconditioner too.
 * Each goes on from the x reached.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <stdio.h>

#include "solver_internal.h"

/* The most iterations of a method that another one may follow. Where minres, or gmres
 * without incomplete factors, converges at all in practical time, it takes fewer. */
enum { SHARE = 2000 };

static const spmv_cg_result not_begun = {
    .status = SPMV_ERROR_MEMORY, .method = "", .precond = "none", .error_estimate = -1};

const char *solver_method_name(const struct general_method *method)
{
    return method != NULL ? method->name : "cg";
}

static int64_t most_iterations(const spmv_solver *s)
{
    return s->options.max_iterations > 0 ? s->options.max_iterations : max_i64(100, 10 * s->a.rows);
}

/* The right-hand sides of the plan by conjugate gradients. */
static spmv_status solve_cg(const spmv_solver *s, const void *b, void *x, spmv_cg_result *results)
{
    const spmv_solver_options *const o = &s->options;
    spmv_cg_options cg;
    spmv_cg_options_init(&cg, sizeof cg);
    cg.rtol = o->rtol;
    cg.atol = o->atol;
    cg.max_iterations = o->max_iterations;
    cg.zero_start = o->zero_start;
    cg.on_iteration = o->on_iteration;
    cg.on_iterate = o->on_iterate;
    cg.user = o->user;
    cg.method = o->rung;
    cg.precond = s->precond;
    cg.symmetry_check = o->symmetry_check;
    cg.inner = s->inner;
    return spmv_cg(s->plan, b, x, &cg, results, sizeof *results);
}

/* One right-hand side with s->used and s->used_precond. result: what was reached before; the
 * numbers of iterations and restarts go on. */
static spmv_status solve_one(const spmv_solver *s, const void *b, void *x, bool zero_start, int64_t most,
                             spmv_cg_result *result)
{
    const spmv_solver_options *const o = &s->options;
    const spmv_cg_result before = *result;
    struct general g = {.s = {.call = "spmv_solver_solve",
                              .ctx = s->ctx,
                              .plan = s->plan,
                              .precond = s->used_precond,
                              .b = b,
                              .x = x,
                              .rtol = o->rtol,
                              .atol = o->atol,
                              .max_iterations = most,
                              .iterations_before = before.iterations,
                              .zero_start = zero_start,
                              .on_iteration = o->on_iteration,
                              .on_iterate = o->on_iterate,
                              .user = o->user,
                              .result = result},
                        .method = s->used,
                        .restart = s->used == &general_gmres ? o->restart : 0,
                        .direct = s->direct};
    *result = not_begun;
    if (s->used_precond != NULL)
        snprintf(result->precond, sizeof result->precond, "%.*s", (int)sizeof result->precond - 1,
                 precond_name(s->used_precond));
    spmv_status st = spmv_plan_describe(s->plan, &g.s.info, sizeof g.s.info);
    if (st == SPMV_OK && s->used == &general_minres && o->symmetry_check == SPMV_SYMMETRY_SAMPLED)
        st = krylov_check_symmetry(&g.s);
    st = st != SPMV_OK ? st : general_solve(&g);
    result->iterations += before.iterations;
    result->restarts += before.restarts;
    return st;
}

/* ilut of the last resort: its options, those of the solver first. */
static const struct {
    double drop, fill;
} resorts[SOLVER_RESORTS] = {{-1, 0}, {1e-8, 100}};

/* Whether another method may follow one that ended like this. */
static bool may_follow(const spmv_solver *s, spmv_status st)
{
    return s->free && solver_is_auto(s->options.precond) && s->options.own_precond == NULL && s->options.inner == 0 &&
           (st == SPMV_ERROR_ITERATIONS || st == SPMV_ERROR_STAGNATION || st == SPMV_ERROR_BREAKDOWN ||
            st == SPMV_ERROR_NOT_POSITIVE);
}

/* The most iterations of one method. */
static int64_t share(const spmv_solver *s, int64_t left)
{
    return may_follow(s, SPMV_ERROR_ITERATIONS) ? min_i64(left, SHARE) : left;
}

/* Goes on with minres from the x that conjugate gradients reached when they found A indefinite. */
static spmv_status go_on_with_minres(spmv_solver *s, const void *b, void *x, spmv_cg_result *result)
{
    const int64_t left = most_iterations(s) - result->iterations;
    if (left <= 0)
        return SPMV_ERROR_NOT_POSITIVE;
    s->used = &general_minres;
    snprintf(s->why_used, sizeof s->why_used,
             "conjugate gradients found at iteration %lld that the matrix is not positive definite",
             (long long)result->iterations);
    return solve_one(s, b, x, false, share(s, left), result);
}

/* Makes s->ilut[which] if it does not exist. */
static spmv_status make_resort(spmv_solver *s, int which)
{
    const spmv_preconditioner_options kept = s->precond_options;
    if (s->ilut[which] != NULL)
        return SPMV_OK;
    if (which > 0) {
        s->precond_options.drop = resorts[which].drop;
        s->precond_options.fill = resorts[which].fill;
    }
    const spmv_status st = solver_make_precond(s, &general_gmres, "ilut", &s->ilut[which]);
    s->precond_options = kept;
    if (st == SPMV_OK)
        snprintf(s->ilut[which]->why, sizeof s->ilut[which]->why, "%s with %s stopped before the tolerance%s",
                 solver_method_name(s->used), precond_name(s->used_precond),
                 which > 0 ? "; now with more fill-in" : "");
    return st;
}

/* After a method ended with st: gmres with one ilut after the other. If none can be made, the
 * method gets the rest of the iterations. The message of a failure says so if A is singular. */
static spmv_status go_on(spmv_solver *s, const void *b, void *x, spmv_cg_result *result, spmv_status st)
{
    const int64_t most = most_iterations(s);
    char sentence[512], singular[300] = "";
    bool tried = false;
    /* the first of the resorts may be what has failed */
    const int first = s->used != NULL && strcmp(precond_name(s->used_precond), "ilut") == 0;
    snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
    for (int which = first; which < SOLVER_RESORTS && may_follow(s, st) && result->iterations < most; which++) {
        const spmv_status made = make_resort(s, which);
        if (made == SPMV_ERROR_SINGULAR)
            snprintf(singular, sizeof singular, "; %.280s", spmv_last_error(s->ctx));
        if (made != SPMV_OK)
            continue;
        snprintf(s->why_used, sizeof s->why_used,
                 "%s with %s stopped at iteration %lld with a relative residual of %.2g", solver_method_name(s->used),
                 precond_name(s->used_precond), (long long)result->iterations, result->true_residual / result->norm_b);
        s->used = &general_gmres;
        s->used_precond = s->ilut[which];
        tried = true;
        st = solve_one(s, b, x, false, share(s, most - result->iterations), result);
        snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
    }
    if (!tried && st == SPMV_ERROR_ITERATIONS && s->used != NULL && result->iterations < most) {
        st = solve_one(s, b, x, false, most - result->iterations, result);
        snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
    }
    return st == SPMV_OK ? st : context_fail(s->ctx, st, "%s%s", sentence, singular);
}

/* One right-hand side, with the methods that follow. */
static spmv_status solve_single(spmv_solver *s, const void *b, void *x, spmv_cg_result *result)
{
    spmv_status st = SPMV_OK;
    const bool zero_start = s->options.zero_start != 0;
    s->used = s->method;
    s->used_precond = s->precond;
    snprintf(s->why_used, sizeof s->why_used, "%s", s->why);
    if (s->method == NULL) {
        st = solve_cg(s, b, x, result);
        if (st == SPMV_ERROR_NOT_POSITIVE && s->free && s->options.inner == 0)
            st = go_on_with_minres(s, b, x, result);
    } else {
        result->iterations = result->restarts = 0;
        st = solve_one(s, b, x, zero_start, share(s, most_iterations(s)), result);
    }
    if (st != SPMV_OK && may_follow(s, st))
        st = go_on(s, b, x, result, st);
    result->status = st;
    return st;
}

/* Several right-hand sides, one after the other. Returns the first failure. */
static spmv_status solve_columns(spmv_solver *s, const void *b, void *x)
{
    spmv_status st = SPMV_OK, worst = SPMV_OK;
    spmv_context *const ctx = s->ctx;
    const int64_t n = s->a.rows, k = s->options.vectors;
    spmv_plan_info info;
    void *index = NULL, *one = NULL;
    char sentence[512] = "";
    TRY(spmv_plan_describe(s->plan, &info, sizeof info));
    const int64_t size = (int64_t)spmv_type_size(info.type);
    TRY(context_lend(ctx, n * (int64_t)sizeof k, &index));
    TRY(context_lend(ctx, 2 * n * size, &one));
    TRY(spmv_map_index(ctx, SPMV_I64, &(const int64_t){0}, &k, index, n));
    void *const one_x = (char *)one + n * size;
    for (int64_t v = 0; v < k; v++) {
        TRY(spmv_gather(ctx, info.type, (const char *)b + v * size, n * k - v, index, 64, one, n));
        TRY(spmv_gather(ctx, info.type, (char *)x + v * size, n * k - v, index, 64, one_x, n));
        const spmv_status of = solve_single(s, one, one_x, &s->results[v]);
        if (of != SPMV_OK && worst == SPMV_OK) {
            worst = of;
            snprintf(sentence, sizeof sentence, "right-hand side %lld of %lld: %.460s", (long long)v + 1, (long long)k,
                     spmv_last_error(ctx));
        }
        TRY(spmv_scatter(ctx, info.type, one_x, index, 64, (char *)x + v * size, n * k - v, n));
    }
    if (worst != SPMV_OK)
        st = context_fail(ctx, worst, "%s", sentence);
done:
    context_take_back(ctx, index);
    context_take_back(ctx, one);
    return st;
}

spmv_status solver_solve_held(spmv_solver *s, const void *b, void *x)
{
    for (int v = 0; v < s->options.vectors; v++) { /* if there is no memory for a solve */
        s->results[v] = not_begun;
        if (s->precond != NULL)
            snprintf(s->results[v].precond, sizeof s->results[v].precond, "%.*s", (int)sizeof s->results[v].precond - 1,
                     precond_name(s->precond));
    }
    if (s->options.vectors == 1)
        return solve_single(s, b, x, s->results);
    if (s->method == NULL && s->options.on_iterate != NULL) { /* as spmv_cg, also where it solves one by one */
        for (int v = 0; v < s->options.vectors; v++)
            s->results[v].status = SPMV_ERROR_UNSUPPORTED;
        return context_fail(s->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_solver_solve: on_iterate supports only one right-hand side");
    }
    if (s->plan->vectors == 1)
        return solve_columns(s, b, x);
    s->used = NULL;
    s->used_precond = s->precond;
    snprintf(s->why_used, sizeof s->why_used, "%s", s->why);
    return solve_cg(s, b, x, s->results);
}
