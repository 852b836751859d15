/* Scaling for one right-hand side. Where squares of numbers between ||b|| and the tolerance would
 * overflow or lose digits, the solver works on b and x times a power of two, which changes no
 * digit.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>

#include "product/plan_internal.h"
#include "solvers/krylov/krylov.h"

struct scale_limits {
    double square; /* squares of numbers somewhat larger than this norm may overflow */
    double vanish; /* squares of smaller norms vanish */
    double small;  /* a smaller norm of b is scaled unless the solve succeeded without */
    int exponent;  /* 2 to this power and its reciprocal are normal numbers */
};
#define SCALE_LIMITS_F32 0x1p40, 0x1p-56, 0x1p-10, 126
#define SCALE_LIMITS_F64 0x1p480, 0x1p-500, 0x1p-200, 1022

static struct scale_limits scale_limits_of(spmv_type type)
{
    switch ((int)type) {
#define CASE(NAME, name, T)                                                                                            \
    case SPMV_##NAME:                                                                                                  \
        return (struct scale_limits){SCALE_LIMITS_##NAME};
        REAL_LIST(CASE)
#undef CASE
    }
    return (struct scale_limits){NAN, NAN, NAN, 0};
}

/* Whether squares of numbers somewhat larger than this norm overflow; true for NaN. */
static bool squares_overflow(spmv_type type, double norm)
{
    return !(norm <= scale_limits_of(type).square);
}

bool krylov_squares_vanish(spmv_type type, double norm_b, double tolerance)
{
    /* two unit roundoffs below norm_b */
    const double unit = real_limits_of(type).roundoff, least = fmax(tolerance, unit * unit * norm_b);
    return least < scale_limits_of(type).vanish;
}

/* *largest = max |v_i|. Writes |v| to scratch. */
static spmv_status largest_element(const struct krylov *s, const void *v, void *scratch, double *largest)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_map(s->ctx, SPMV_MAP_ABS, s->part, v, scratch, s->count));
    TRY(spmv_reduce(s->ctx, SPMV_MAX, s->part, scratch, s->cells, s->count));
    TRY(krylov_read(s, s->cells, 1, largest));
    if (s->plan->ranks != NULL)
        TRY(s->plan->ranks->largest(s->plan->ranks->self, largest));
done:
    return st;
}

bool krylov_may_scale(spmv_type type, double norm_b, double tolerance)
{
    return norm_b < scale_limits_of(type).small || squares_overflow(type, norm_b) ||
           krylov_squares_vanish(type, norm_b, tolerance);
}

spmv_status krylov_find_scale(struct krylov *s, bool ran, bool success)
{
    spmv_status st = SPMV_OK;
    const spmv_cg_result *result = s->result;
    const struct scale_limits limits = scale_limits_of(s->part);
    /* p'Ap and r'M^-1 r are smaller than r'r if A or M^-1 is small. So a small b is scaled unless
     * the solve succeeded without. */
    const bool small = !(ran && success) && result->norm_b < limits.small;
    double largest = 0;
    int exponent = 0;
    if (s->columns > 1 || s->scale != 0 ||
        (result->norm_b != 0 && !small && !squares_overflow(s->part, result->norm_b) &&
         !krylov_squares_vanish(s->part, result->norm_b, result->tolerance)))
        return SPMV_OK;
    TRY(largest_element(s, s->b, s->q, &largest));
    if (!(largest > 0 && isfinite(largest)))
        return SPMV_OK;
    frexp(largest, &exponent);
    exponent = exponent > limits.exponent ? limits.exponent : exponent < -limits.exponent ? -limits.exponent : exponent;
    if (exponent == 0)
        return SPMV_OK;
    s->wanted_scale = ldexp(1, -exponent);
    if (ran && result->norm_b != 0 && !s->zero_start)
        TRY(spmv_map(s->ctx, SPMV_MAP_COPY, s->part, s->start_x, s->x, s->count));
done:
    return st;
}

/* to = factor * from; the arrays do not overlap. */
static spmv_status scaled_copy(const struct krylov *s, double factor, const void *from, void *to)
{
    spmv_status st = SPMV_OK;
    TRY(krylov_set_cell(s, factor));
    /* all bits 0, also as a float */
    TRY(spmv_map_index(s->ctx, s->part, &(const double){0}, NULL, to, s->count));
    TRY(spmv_map_axpby(s->ctx, s->part, s->cells, from, NULL, to, s->count));
done:
    return st;
}

spmv_status krylov_unscaled_x(const struct krylov *s, const void **x)
{
    *x = s->scale != 0 ? s->seen : s->x;
    return s->scale != 0 ? scaled_copy(s, 1 / s->scale, s->x, s->seen) : SPMV_OK;
}

/* x *= factor. q receives the old x. */
static spmv_status scale_x(const struct krylov *s, double factor)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_map(s->ctx, SPMV_MAP_COPY, s->part, s->x, s->q, s->count));
    TRY(scaled_copy(s, factor, s->q, s->x));
done:
    return st;
}

/* Converts x and its norms to the caller's units. */
static spmv_status undo_scale(const struct krylov *s, double scale)
{
    spmv_cg_result *result = s->result;
    result->norm_b /= scale;
    result->tolerance /= scale;
    result->recurrence_residual /= scale;
    result->true_residual /= scale;
    if (result->error_estimate > 0)
        result->error_estimate /= scale;
    return scale_x(s, 1 / scale);
}

/* The solution, whose largest element is largest / scale, exceeds the range of the type: returns x
 * = 0 and its residual. p'Ap <= 0 is then an underflow rather than a property of A. */
static spmv_status give_up_solution(const struct krylov *s, double largest, double scale, spmv_status stop)
{
    spmv_status st = SPMV_OK;
    /* all bits 0, also as a float */
    TRY(spmv_map_index(s->ctx, s->part, &(const double){0}, NULL, s->x, s->count));
    s->result->true_residual = s->result->norm_b;
    s->result->error_estimate = -1;
    if (stop != SPMV_ERROR_NOT_FINITE && stop != SPMV_CANCELLED)
        st = context_fail(s->ctx, SPMV_ERROR_NOT_FINITE,
                          "%s: the solution exceeds the range of %s: its largest element is about 1e%+.0f; x is set to "
                          "0; scale A or b",
                          s->call, spmv_type_name(s->type), floor(log10(largest) - log10(scale) + 0.5));
    else
        st = stop;
done:
    return st;
}

/* Computes the returned x from the scaled solution, and its true residual, which includes the
 * effect of elements that became 0 or subnormal. */
static spmv_status settle_scaled(struct krylov *s, const void *b, double scale, spmv_status stop)
{
    spmv_status st = SPMV_OK;
    spmv_cg_result *result = s->result;
    const double most = real_limits_of(s->part).greatest;
    double largest = 0;
    TRY(undo_scale(s, scale));
    TRY(largest_element(s, s->q, s->r, &largest)); /* undo_scale leaves the scaled x in q */
    s->b = b;
    s->scale = 0;
    if (isfinite(largest) && largest / scale > most)
        return give_up_solution(s, largest, scale, stop);
    TRY(krylov_residual(s, s->q));
    TRY(scaled_copy(s, scale, s->q, s->r));
    TRY(krylov_norms(s, s->r, &result->true_residual));
    result->true_residual /= scale;
    st = stop;
    if (stop == SPMV_OK && !isfinite(result->true_residual))
        st = krylov_fail_overflow(s, 0);
    else if (stop == SPMV_OK && !(result->true_residual <= result->tolerance))
        st = krylov_fail_stagnation(s, 0);
done:
    return st;
}

/* Solves scale A x = scale b. A power of two changes no bits except of numbers that leave the
 * range. Starts from x = 0 if squares of the given x's residual overflow. */
spmv_status krylov_solve_scaled(struct krylov *s, spmv_status (*solve)(struct krylov *))
{
    spmv_status st = SPMV_OK;
    const void *b = s->b;
    const double scale = s->wanted_scale, atol = s->atol;
    const bool zero_start = s->zero_start;
    double start = 0;
    void *scaled = NULL;
    TRY(context_lend(s->ctx, s->count * (int64_t)spmv_type_size(s->part), &scaled));
    s->scale = scale;
    s->atol = atol * scale;
    s->b = scaled;
    TRY(scaled_copy(s, scale, b, scaled));
    if (!s->zero_start) {
        TRY(scale_x(s, scale));
        TRY(krylov_residual(s, s->r));
        TRY(krylov_norms(s, s->r, &start));
        s->zero_start = !isnan(start) && squares_overflow(s->part, start);
    }
    const spmv_status stop = solve(s);
    st = stop;
    if (st == SPMV_OK || spmv_status_class(st) >= 7)
        st = settle_scaled(s, b, scale, stop);
    else
        undo_scale(s, scale); /* best effort: the first failure is returned */
done:
    s->b = b;
    s->scale = 0;
    s->atol = atol;
    s->zero_start = zero_start;
    context_take_back(s->ctx, scaled);
    return st;
}
