/* Estimates of the extreme singular values of A.
 *
 * The bidiagonalization of Golub and Kahan from a vector v_1 of length 1:
 *     u_k = (A v_k - beta_(k-1) u_(k-1)) / alpha_k,   v_(k+1) = (A'u_k - alpha_k v_k) / beta_k
 * After k steps A V = U B and A'U = V B' + beta_k v_(k+1) e_k', where B has the diagonal alpha and the
 * numbers beta above it. Its singular values theta lie between those of A. With B p = theta q, |p| = |q|
 * = 1, the residual of (theta, U q, V p) is beta_k |q_k|: a singular value of A is as near as that.
 *
 * theta and -theta are the eigenvalues of the symmetric tridiagonal matrix T of order 2 k with a diagonal of
 * zeros and alpha_1, beta_1, alpha_2, ... beside it; its eigenvectors are p and q in turn. Bisection finds
 * them to full relative accuracy, inverse iteration the last component.
 *
 * A wide matrix is replaced by its transpose, so that the smallest of min(rows, cols) singular values is
 * found.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <spmv/primitives.h>

#include "core/splitmix.h"
#include "product/plan_internal.h"
#include "solvers/least_squares/least_squares_internal.h"

enum { MOST_ITERATIONS = 1000, FIRST_LOOK = 8 };

/* A run. beside: the numbers beside the diagonal of T, 2 for each step. */
struct run {
    spmv_context *ctx;
    spmv_plan *plan, *transposed;
    spmv_type type, part;
    int64_t rows, cols; /* of the matrix that is bidiagonalized; rows >= cols */
    void *u, *v, *cell;
    double *beside, *work; /* work: 5 numbers for each row of T */
    double factor;         /* a power of two: the steps are those of factor A, whose squares are in range */
};

/* ------------------------------------------------------------- the tridiagonal matrix */

/* The eigenvalues of T below x: negative pivots of the elimination of T - x I. */
static int64_t count_below(const double *beside, int64_t n, double x)
{
    int64_t below = 0;
    double pivot = -x;
    for (int64_t i = 0; i < n; i++) {
        if (i > 0)
            pivot = -x - beside[i - 1] * beside[i - 1] / pivot;
        if (pivot == 0)
            pivot = -DBL_MIN;
        below += pivot < 0;
    }
    return below;
}

/* The eigenvalue with `index` others below it, between low and high. */
static double bisect(const double *beside, int64_t n, int64_t index, double low, double high)
{
    for (int step = 0; step < 200 && high - low > 2 * DBL_EPSILON * high; step++) {
        const double middle = low + (high - low) / 2;
        if (count_below(beside, n, middle) > index)
            high = middle;
        else
            low = middle;
    }
    return low + (high - low) / 2;
}

/* |last component| of the eigenvector of length 1 for the eigenvalue x: two steps of inverse iteration by
 * elimination with row exchanges. */
static double last_component(const struct run *r, int64_t n, double x)
{
    double *const diagonal = r->work, *const above = diagonal + n, *const second = above + n, *const w = second + n,
                  *const factor = w + n;
    const double *const beside = r->beside;
    for (int64_t i = 0; i < n; i++)
        w[i] = 1;
    for (int round = 0; round < 3; round++) {
        double square = 0;
        diagonal[0] = -x;
        above[0] = n > 1 ? beside[0] : 0;
        for (int64_t i = 0; i + 1 < n; i++) {
            double below = beside[i], next = -x, right = i + 2 < n ? beside[i + 1] : 0;
            second[i] = 0;
            if (fabs(below) > fabs(diagonal[i])) { /* exchange rows i and i + 1 */
                const double pivot = diagonal[i], beside_pivot = above[i], of_w = w[i];
                diagonal[i] = below;
                above[i] = next;
                second[i] = right;
                below = pivot;
                next = beside_pivot;
                right = 0;
                w[i] = w[i + 1];
                w[i + 1] = of_w;
            }
            factor[i] = diagonal[i] != 0 ? below / diagonal[i] : 0;
            diagonal[i + 1] = next - factor[i] * above[i];
            above[i + 1] = right - factor[i] * second[i];
            w[i + 1] -= factor[i] * w[i];
        }
        for (int64_t i = n - 1; i >= 0; i--) {
            const double rest = w[i] - (i + 1 < n ? above[i] * w[i + 1] : 0) - (i + 2 < n ? second[i] * w[i + 2] : 0);
            const double pivot = fabs(diagonal[i]) > DBL_EPSILON * x ? diagonal[i] : DBL_EPSILON * x;
            w[i] = rest / pivot;
        }
        double largest = 0;
        for (int64_t i = 0; i < n; i++)
            largest = fmax(largest, fabs(w[i]));
        for (int64_t i = 0; i < n; i++) {
            w[i] /= largest;
            square += w[i] * w[i];
        }
        for (int64_t i = 0; i < n; i++)
            w[i] /= sqrt(square);
    }
    return fabs(w[n - 1]);
}

/* The same for the smallest theta, where theta and -theta are too near to each other for T: |q_k| by inverse
 * iteration with B and B'. q stays in r->work. 0 if a number leaves the range: theta is 0 then. */
static double last_of_smallest(const struct run *r, int64_t k)
{
    double *const w = r->work;
    const double *const alpha = r->beside, *const beta = r->beside + 1; /* every second number */
    double last = 0;
    for (int64_t i = 0; i < k; i++)
        w[i] = 1;
    for (int round = 0; round < 16; round++)
        for (int transposed = 1; transposed >= 0; transposed--) {
            double square = 0;
            for (int64_t step = 0; step < k; step++) {
                const int64_t i = transposed ? step : k - 1 - step;
                const double of = !transposed ? (i + 1 < k ? beta[2 * i] * w[i + 1] : 0)
                                  : i > 0     ? beta[2 * i - 2] * w[i - 1]
                                              : 0;
                w[i] = (w[i] - of) / alpha[2 * i];
                square += w[i] * w[i];
            }
            if (!(square > 0 && isfinite(square)))
                return 0;
            for (int64_t i = 0; i < k; i++)
                w[i] /= sqrt(square);
            if (transposed)
                last = fabs(w[k - 1]);
        }
    return last;
}

/* Sets the values and distances after k steps. */
static void look(const struct run *r, int64_t k, double rtol, spmv_singular_values *to)
{
    const int64_t n = 2 * k;
    const double beta = r->beside[n - 1], unit = real_limits_of(r->part).roundoff;
    double most = 0;
    for (int64_t i = 0; i < n - 1; i++)
        most = fmax(most, r->beside[i] + (i > 0 ? r->beside[i - 1] : 0));
    to->iterations = k;
    to->largest = bisect(r->beside, n, n - 1, 0, most * (1 + 4 * DBL_EPSILON));
    to->smallest = bisect(r->beside, n, k, 0, most * (1 + 4 * DBL_EPSILON));
    to->largest_error = beta * sqrt(2) * last_component(r, n, to->largest);
    to->smallest_error = beta == 0 ? 0
                         : to->smallest <= sqrt(DBL_EPSILON) * most
                             ? beta * last_of_smallest(r, k)
                             : beta * sqrt(2) * last_component(r, n, to->smallest);
    const double rounding = 8 * unit * to->largest;
    to->converged = to->largest_error <= fmax(rtol * to->largest, rounding) &&
                    to->smallest_error <= fmax(rtol * to->smallest, rounding);
    to->singular = to->smallest <= (double)(r->rows + r->cols) * unit * to->largest;
}

/* ------------------------------------------------------------- the steps */

/* Sets the factor, from the largest number of A v / norm_v. Uses u. */
static spmv_status find_factor(struct run *r, double norm_v)
{
    spmv_status st = SPMV_OK;
    const int most = r->part == SPMV_F32 ? 100 : 1000, safe = r->part == SPMV_F32 ? 30 : 300;
    const int64_t count = r->rows * type_parts(r->type);
    spmv_c128 alpha = {0}, beta = {0}; /* scalars of the type, real or complex */
    union real largest;
    int exponent = 0;
    real_set(r->part, &alpha, 0, 1 / norm_v);
    TRY(spmv_apply(r->plan, &alpha, r->v, &beta, r->u));
    TRY(spmv_map(r->ctx, SPMV_MAP_ABS, r->part, r->u, r->u, count));
    TRY(spmv_reduce(r->ctx, SPMV_MAX, r->part, r->u, r->cell, count));
    TRY(spmv_download(r->ctx, r->cell, &largest, (int64_t)spmv_type_size(r->part)));
    const double size = real_at(r->part, &largest, 0);
    r->factor = 1;
    if (size > 0 && isfinite(size))
        (void)frexp(size, &exponent);
    if (exponent > safe || exponent < -safe)
        r->factor = ldexp(1, exponent > most ? -most : exponent < -most ? most : -exponent);
done:
    return st;
}

/* to = by factor op(A) from + keep to, and its norm. keep 0: to is not read. */
static spmv_status multiply(const struct run *r, spmv_plan *plan, double by, const void *from, double keep, void *to,
                            int64_t n, double *norm)
{
    spmv_status st = SPMV_OK;
    spmv_c128 alpha = {0}, beta = {0}; /* scalars of the type, real or complex */
    union real square;
    real_set(r->part, &alpha, 0, by * r->factor);
    real_set(r->part, &beta, 0, keep);
    TRY(spmv_apply(plan, &alpha, from, &beta, to));
    TRY(spmv_dot(r->ctx, r->part, to, to, r->cell, n * type_parts(r->type)));
    TRY(spmv_download(r->ctx, r->cell, &square, (int64_t)spmv_type_size(r->part)));
    *norm = sqrt(real_at(r->part, &square, 0));
    if (!isfinite(*norm))
        st = context_fail(
            r->ctx, SPMV_ERROR_NOT_FINITE,
            "spmv_estimate_singular_values: a norm is %g: A has numbers that are not finite, or too large", *norm);
done:
    return st;
}

static spmv_status iterate(struct run *r, double rtol, int64_t most, double norm_v, spmv_singular_values *to)
{
    spmv_status st = SPMV_OK;
    double alpha = 0, beta = norm_v; /* the norms of u and v */
    int64_t next = FIRST_LOOK;
    for (int64_t k = 1;; k++) {
        const double keep = k > 1 ? -beta / alpha : 0;
        TRY(multiply(r, r->plan, 1 / beta, r->v, keep, r->u, r->rows, &alpha));
        r->beside[2 * k - 2] = alpha;
        r->beside[2 * k - 1] = 0;
        if (alpha > 0) {
            TRY(multiply(r, r->transposed, 1 / alpha, r->u, -alpha / beta, r->v, r->cols, &beta));
            r->beside[2 * k - 1] = beta;
        }
        const bool ends = alpha == 0 || beta == 0 || k == most;
        if (ends || k == next) {
            look(r, k, rtol, to);
            next = k + max_i64(FIRST_LOOK, k / 8);
        }
        if (ends || (k >= 2 && to->iterations == k && to->converged))
            break;
        TRY(context_poll(r->ctx, "singular values", r->plan->a.nnz));
    }
    to->largest /= r->factor;
    to->smallest /= r->factor;
    to->largest_error /= r->factor;
    to->smallest_error /= r->factor;
done:
    return st;
}

/* v = fixed pseudo-random numbers in [-1, 1). */
static spmv_status start(const struct run *r, double *norm)
{
    spmv_status st = SPMV_OK;
    const int64_t n = r->cols * type_parts(r->type), size = (int64_t)spmv_type_size(r->part);
    void *host = NULL;
    double square = 0;
    TRY(host_alloc(r->ctx, n * size, "a start vector", &host));
    for (int64_t i = 0; i < n; i++) {
        real_set(r->part, host, i, (double)(int64_t)splitmix_at(1, i) * 0x1p-63);
        square += real_at(r->part, host, i) * real_at(r->part, host, i);
    }
    *norm = sqrt(square);
    TRY(spmv_upload(r->ctx, host, r->v, n * size));
    TRY(spmv_synchronize(r->ctx));
done:
    host_free(host);
    return st;
}

static spmv_status open(struct run *r, int64_t most)
{
    spmv_status st = SPMV_OK;
    const int64_t size = (int64_t)spmv_type_size(r->type);
    TRY(context_lend(r->ctx, r->rows * size, &r->u));
    TRY(context_lend(r->ctx, r->cols * size, &r->v));
    TRY(context_lend(r->ctx, (int64_t)sizeof(union real), &r->cell));
    TRY(host_alloc(r->ctx, 2 * most * (int64_t)sizeof(double), "a bidiagonal matrix", (void **)&r->beside));
    TRY(host_alloc(r->ctx, 10 * most * (int64_t)sizeof(double), "a bidiagonal matrix", (void **)&r->work));
done:
    return st;
}

static void close(struct run *r)
{
    void *const lent[] = {r->u, r->v, r->cell};
    for (size_t i = 0; i < sizeof lent / sizeof *lent; i++)
        context_take_back(r->ctx, lent[i]);
    host_free(r->beside);
    host_free(r->work);
}

spmv_status singular_values_of_plans(spmv_plan *plan, spmv_plan *transposed, double rtol, int64_t most,
                                     spmv_singular_values *to)
{
    spmv_status st = SPMV_OK;
    spmv_plan_info info;
    struct run r = {.ctx = plan->ctx};
    double norm = 0;
    TRY(spmv_plan_describe(plan, &info, sizeof info));
    const bool wide = info.rows < info.cols;
    r.plan = wide ? transposed : plan;
    r.transposed = wide ? plan : transposed;
    r.type = info.type;
    r.part = type_part(info.type);
    r.rows = max_i64(info.rows, info.cols);
    r.cols = min_i64(info.rows, info.cols);
    TRY(open(&r, most));
    TRY(start(&r, &norm));
    TRY(find_factor(&r, norm));
    TRY(iterate(&r, rtol, most, norm, to));
done:
    close(&r);
    return st;
}

static spmv_status estimate(spmv_context *ctx, const spmv_csr *a, double rtol, int64_t max_iterations,
                            spmv_singular_values *to)
{
    spmv_status st = plan_check_view(ctx, "spmv_estimate_singular_values", a, false);
    spmv_plan *plan = NULL, *transposed = NULL;
    spmv_plan_options o;
    spmv_plan_options_init(&o, sizeof o);
    if (st == SPMV_OK)
        st = OPTIONS_CHECK(ctx, "spmv_estimate_singular_values", {"rtol", rtol, DBL_MIN, INFINITY},
                           {"max_iterations", (double)max_iterations, 0, 1000000});
    if (st != SPMV_OK || a->nnz == 0)
        return st;
    TRY(spmv_plan_create(ctx, a, &o, &plan));
    o.operation = SPMV_OPERATION_H;
    TRY(spmv_plan_create(ctx, a, &o, &transposed));
    TRY(singular_values_of_plans(plan, transposed, rtol, max_iterations > 0 ? max_iterations : MOST_ITERATIONS, to));
done:
    spmv_plan_destroy(plan);
    spmv_plan_destroy(transposed);
    return st;
}

spmv_status spmv_estimate_singular_values(spmv_context *ctx, const spmv_csr *a, double rtol, int64_t max_iterations,
                                          spmv_singular_values *result, size_t size)
{
    spmv_singular_values full = {.size = sizeof full};
    spmv_status st = result_begin(ctx, "spmv_estimate_singular_values", result, size);
    if (st == SPMV_OK)
        st = context_need(ctx, "spmv_estimate_singular_values", "the matrix", a);
    if (st == SPMV_OK)
        st = estimate(ctx, a, rtol, max_iterations, &full);
    if (st == SPMV_OK)
        result_write(result, size, &full, sizeof full);
    return st;
}
