/* Conjugate gradients, rung 1: the textbook, one library call a line, on every backend.
 *
 * Idea: minimise the energy norm of the error along directions that are conjugate to one another.
 * Work a step: one product with A, two dots, three vector updates; vector passes read or written a step, beside the
 * product, in which p'q rides along: 3 (x) + 3 (r) + 1 (r'r) + 3 (p) = 10. What the next rungs save: passes, launches,
 * and the wait.
 * Hestenes & Stiefel 1952; Y. Saad, "Iterative Methods for Sparse Linear Systems", 2nd ed., algorithm 6.18.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>
#include <spmv/solvers.h>

#include "runtime.h"

/* The scalars of the recurrence lie together in the context's memory: rr and pq side by side, to be read in one go. */
enum scalar { RR, PQ, ALPHA, MINUS_ALPHA, BETA, RR_NEW, SCALARS };

struct cg {
    spmv_context *ctx;
    spmv_plan *plan;
    spmv_type type;
    int64_t n;
    const void *b;
    void *x, *r, *p, *q;
    void *start_x; /* x where the recurrence (re)started, and the norm of its true residual */
    double start_residual;
    char *scalars;
    const spmv_cg_options *options;
    spmv_cg_result *result;
    double rr, pq; /* as last read */
};

static void *scalar(const struct cg *cg, enum scalar s)
{
    return cg->scalars + (size_t)s * spmv_type_size(cg->type);
}

void spmv_cg_options_init(spmv_cg_options *options, size_t size)
{
    const spmv_cg_options defaults = {.size = sizeof defaults, .rtol = 1e-8};
    result_write(options, size, &defaults, sizeof defaults);
}

/* Reads count scalars from the first on; the one wait of a step. */
static spmv_status read_scalars(const struct cg *cg, enum scalar first, int count, double *values)
{
    float f32[SCALARS];
    double f64[SCALARS];
    const bool narrow = cg->type == SPMV_F32;
    const spmv_status st = spmv_download(cg->ctx, scalar(cg, first), narrow ? (void *)f32 : (void *)f64,
                                         count * (int64_t)spmv_type_size(cg->type));
    for (int i = 0; i < count && st == SPMV_OK; i++)
        values[i] = narrow ? (double)f32[i] : f64[i];
    return st;
}

/* *norm = ||v||. Through RR_NEW, which holds nothing between steps. */
static spmv_status norm_of(const struct cg *cg, const void *v, double *norm)
{
    spmv_status st = SPMV_OK;
    double square = 0;
    TRY(spmv_dot(cg->ctx, cg->type, v, v, scalar(cg, RR_NEW), cg->n));
    TRY(read_scalars(cg, RR_NEW, 1, &square));
    *norm = sqrt(square);
done:
    return st;
}

/* to = b - A x */
static spmv_status residual_of(const struct cg *cg, void *to)
{
    spmv_status st = SPMV_OK;
    const double minus64 = -1, one64 = 1;
    const float minus32 = -1, one32 = 1;
    const bool narrow = cg->type == SPMV_F32;
    TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, cg->b, to, cg->n));
    TRY(spmv_apply(cg->plan, narrow ? (const void *)&minus32 : (const void *)&minus64, cg->x,
                   narrow ? (const void *)&one32 : (const void *)&one64, to));
done:
    return st;
}

static spmv_status tell(const struct cg *cg, double residual)
{
    const spmv_cg_options *o = cg->options;
    if (o->on_iteration == NULL || o->on_iteration(cg->result->iterations, residual, o->user) == 0)
        return SPMV_OK;
    return context_fail(cg->ctx, SPMV_CANCELLED, "spmv_cg: cancelled by its callback at iteration %lld",
                        (long long)cg->result->iterations);
}

/* r = b - A x, p = r, rr = r'r: the recurrence starts here, and again after each restart. */
static spmv_status start(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, cg->x, cg->start_x, cg->n));
    TRY(residual_of(cg, cg->r));
    TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, cg->r, cg->p, cg->n));
    TRY(spmv_dot(cg->ctx, cg->type, cg->r, cg->r, scalar(cg, RR), cg->n));
done:
    return st;
}

/* q = A p, pq = p'q, and what both say: a product beyond the last step is the price of a single wait. */
static spmv_status look(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    double values[2] = {0, 0};
    spmv_epilogue dot;
    spmv_epilogue_init(&dot, sizeof dot);
    dot.w = cg->p;
    dot.dot = scalar(cg, PQ);
    /* q = A p, pq = p'q */
    TRY(spmv_apply_with(cg->plan, NULL, cg->p, NULL, cg->q, &dot));
    TRY(read_scalars(cg, RR, 2, values));
    cg->rr = values[0];
    cg->pq = values[1];
    cg->result->recurrence_residual = sqrt(cg->rr);
done:
    return st;
}

/* One step of the recurrence, given q = A p and pq = p'q. */
static spmv_status step(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = cg->ctx;
    const spmv_type type = cg->type;
    const int64_t n = cg->n;
    void *rr = scalar(cg, RR), *pq = scalar(cg, PQ), *alpha = scalar(cg, ALPHA), *minus_alpha = scalar(cg, MINUS_ALPHA);
    void *beta = scalar(cg, BETA), *rr_new = scalar(cg, RR_NEW);
    /* alpha = rr / pq */
    TRY(spmv_map_divide(ctx, type, rr, pq, alpha, 1));
    TRY(spmv_map(ctx, SPMV_MAP_NEG, type, alpha, minus_alpha, 1));
    /* x = x + alpha p */
    TRY(spmv_map_axpby(ctx, type, alpha, cg->p, NULL, cg->x, n));
    /* r = r - alpha q */
    TRY(spmv_map_axpby(ctx, type, minus_alpha, cg->q, NULL, cg->r, n));
    /* rr_new = r'r */
    TRY(spmv_dot(ctx, type, cg->r, cg->r, rr_new, n));
    /* beta = rr_new / rr */
    TRY(spmv_map_divide(ctx, type, rr_new, rr, beta, 1));
    /* p = r + beta p */
    TRY(spmv_map_axpby(ctx, type, NULL, cg->r, beta, cg->p, n));
    /* rr = rr_new */
    TRY(spmv_map(ctx, SPMV_MAP_COPY, type, rr_new, rr, 1));
done:
    return st;
}

/* What forbids another step. */
static spmv_status look_for_breakdown(const struct cg *cg)
{
    const long long k = (long long)cg->result->iterations;
    if (!isfinite(cg->rr) || !isfinite(cg->pq))
        return context_fail(cg->ctx, SPMV_ERROR_NOT_FINITE, "spmv_cg: r'r = %g, p'Ap = %g at iteration %lld", cg->rr,
                            cg->pq, k);
    if (cg->pq <= 0)
        return context_fail(cg->ctx, SPMV_ERROR_NOT_POSITIVE,
                            "spmv_cg: p'Ap = %g <= 0 (r'r = %g) at iteration %lld: the matrix is not positive definite",
                            cg->pq, cg->rr, k);
    return SPMV_OK;
}

/* Steps until the recurrence claims the tolerance. It also stops where its residual has shrunk by the unit roundoff:
 * the true one, of an x that is rounded to that many digits, cannot have followed, and only a restart may gain more.
 * So a tolerance out of reach ends in a restart, not in numbers that shrink until they underflow. */
static spmv_status iterate(struct cg *cg, int64_t max_iterations)
{
    spmv_status st = SPMV_OK;
    spmv_cg_result *result = cg->result;
    TRY(look(cg));
    if (result->iterations == 0)
        TRY(tell(cg, result->recurrence_residual));
    cg->start_residual = result->recurrence_residual;
    const double roundoff = cg->type == SPMV_F32 ? 0x1p-24 : 0x1p-53;
    const double enough = fmax(result->tolerance, roundoff * cg->start_residual);
    while (!(isfinite(cg->rr) && result->recurrence_residual <= enough)) {
        TRY(look_for_breakdown(cg));
        if (result->iterations == max_iterations) {
            st = context_fail(cg->ctx, SPMV_ERROR_ITERATIONS,
                              "spmv_cg: the residual is %.3g after %lld iterations, %.3g was asked for",
                              result->recurrence_residual, (long long)result->iterations, result->tolerance);
            goto done;
        }
        TRY(step(cg));
        result->iterations++;
        TRY(look(cg));
        TRY(tell(cg, result->recurrence_residual));
    }
done:
    return st;
}

/* The true residual, after the recurrence stopped with this status. Steps that made matters worse (numbers that
 * overflowed, a restart beyond what the type holds) are taken back. At the limit, or where A proves indefinite, a
 * larger residual is no reason: the method makes the energy norm of the error smaller at each step, not the residual.
 */
static spmv_status settle(struct cg *cg, spmv_status stop)
{
    spmv_status st = SPMV_OK;
    double *residual = &cg->result->true_residual;
    TRY(residual_of(cg, cg->q));
    TRY(norm_of(cg, cg->q, residual));
    const bool shrinks = stop == SPMV_OK || stop == SPMV_ERROR_NOT_FINITE;
    if (!isfinite(*residual) || (shrinks && cg->start_residual < *residual)) {
        TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, cg->start_x, cg->x, cg->n));
        *residual = cg->start_residual;
    }
done:
    return st;
}

/* b'b == 0: x = 0, unless b only is so small that its squares vanish. */
static spmv_status solve_zero(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    double largest = 0;
    TRY(spmv_map(cg->ctx, SPMV_MAP_ABS, cg->type, cg->b, cg->q, cg->n));
    TRY(spmv_reduce(cg->ctx, SPMV_MAX, cg->type, cg->q, scalar(cg, RR_NEW), cg->n));
    TRY(read_scalars(cg, RR_NEW, 1, &largest));
    TRY(spmv_map_index(cg->ctx, cg->type, &(const double){0}, NULL, cg->x, cg->n)); /* all bits 0, also as a float */
    TRY(tell(cg, 0));
    if (largest > 0)
        st = context_fail(cg->ctx, SPMV_ERROR_STAGNATION,
                          "spmv_cg: the largest element of b is %.3g, and its square is 0 in %s: scale b", largest,
                          spmv_type_name(cg->type));
done:
    return st;
}

/* Runs the recurrence, and again from the true residual as long as that helps. */
static spmv_status solve(struct cg *cg, int64_t max_iterations)
{
    spmv_status st = SPMV_OK;
    spmv_cg_result *result = cg->result;
    TRY(norm_of(cg, cg->b, &result->norm_b));
    if (result->norm_b == 0)
        return solve_zero(cg);
    /* where b'b overflows, rtol would allow anything */
    result->tolerance = fmax(isfinite(result->norm_b) ? cg->options->rtol * result->norm_b : 0, cg->options->atol);
    for (;;) {
        TRY(start(cg));
        const spmv_status stop = iterate(cg, max_iterations);
        st = stop;
        if (st != SPMV_OK && spmv_status_class(st) < 7)
            goto done;
        TRY(settle(cg, stop));
        st = stop;
        if (st != SPMV_OK || result->true_residual <= result->tolerance)
            goto done;
        if (!(result->true_residual <= 0.5 * cg->start_residual)) {
            st = context_fail(
                cg->ctx, SPMV_ERROR_STAGNATION,
                "spmv_cg: the true residual stays at %.3g after %lld iterations and %lld restarts, %.3g was "
                "asked for",
                result->true_residual, (long long)result->iterations, (long long)result->restarts, result->tolerance);
            goto done;
        }
        result->restarts++;
    }
done:
    return st;
}

static spmv_status check(spmv_context *ctx, const spmv_plan_info *info, const void *b, const void *x,
                         const spmv_cg_options *o)
{
    if (info->rows != info->cols)
        return context_fail(ctx, SPMV_ERROR_NOT_SQUARE, "spmv_cg: the matrix has %lld rows and %lld columns",
                            (long long)info->rows, (long long)info->cols);
    if (type_is_complex(info->type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_cg: not in complex types, and the plan is one in %s",
                            spmv_type_name(info->type));
    if (info->vectors != 1 || info->x_stride != 1 || info->y_stride != 1)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: the plan is for %d vectors with strides %lld and %lld, not for one vector",
                            info->vectors, (long long)info->x_stride, (long long)info->y_stride);
    if (info->rows > 0 && (b == NULL || x == NULL || b == x))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_cg: %s",
                            b == NULL   ? "b is NULL"
                            : x == NULL ? "x is NULL"
                                        : "b and x are the same array");
    if (!(o->rtol >= 0) || !(o->atol >= 0) || o->max_iterations < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_cg: rtol %g, atol %g, max_iterations %lld: none may be negative", o->rtol, o->atol,
                            (long long)o->max_iterations);
    return SPMV_OK;
}

spmv_status spmv_cg(spmv_plan *plan, const void *b, void *x, const spmv_cg_options *options, spmv_cg_result *result,
                    size_t size)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = spmv_plan_context(plan);
    spmv_cg_options o;
    spmv_cg_result full = {.size = sizeof full};
    spmv_plan_info info;
    struct cg cg = {.ctx = ctx, .plan = plan, .b = b, .x = x, .options = &o, .result = &full};
    void *scalars = NULL;
    result_write(result, size, &full, sizeof full);
    spmv_cg_options_init(&o, sizeof o);
    if (options != NULL && !options_read(&o, sizeof o, options))
        return context_fail(
            ctx, SPMV_ERROR_ARGUMENT,
            "cg options of %zu bytes do not fit this library's %zu: fill them with spmv_cg_options_init", options->size,
            sizeof o);
    TRY(spmv_plan_describe(plan, &info, sizeof info));
    TRY(check(ctx, &info, b, x, &o));
    cg.n = info.rows;
    cg.type = info.type;
    if (cg.n == 0) {
        TRY(tell(&cg, 0));
        goto done;
    }
    const int64_t bytes = cg.n * (int64_t)spmv_type_size(cg.type);
    TRY(spmv_alloc(ctx, bytes, &cg.r));
    TRY(spmv_alloc(ctx, bytes, &cg.p));
    TRY(spmv_alloc(ctx, bytes, &cg.q));
    TRY(spmv_alloc(ctx, bytes, &cg.start_x));
    TRY(spmv_alloc(ctx, SCALARS * (int64_t)spmv_type_size(cg.type), &scalars));
    cg.scalars = scalars;
    if (o.zero_start) {
        const double zero = 0; /* all bits 0, also as a float */
        TRY(spmv_map_index(ctx, cg.type, &zero, NULL, x, cg.n));
    }
    st = solve(&cg, o.max_iterations > 0 ? o.max_iterations : max_i64(100, 10 * cg.n));
    result_write(result, size, &full, sizeof full);
done:
    spmv_free(ctx, cg.r);
    spmv_free(ctx, cg.p);
    spmv_free(ctx, cg.q);
    spmv_free(ctx, cg.start_x);
    spmv_free(ctx, scalars);
    return st;
}
