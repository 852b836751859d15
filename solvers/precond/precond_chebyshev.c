/* Preconditioner chebyshev: M^-1 = p(D^-1 A) D^-1 with a polynomial p of degree `degree`.
 *
 * Idea: the steps of the Chebyshev iteration for A z = r from z = 0 are a fixed polynomial in D^-1
 * A, whose residual polynomial 1 - t p(t) is smallest on the interval [lowest, highest]. An
 * application is `degree` products with A and as many vector updates. There is no dot product, so
 * nothing waits, and all rows are computed at once.
 *
 * Positive definite: below lowest, 0 < 1 - t p(t) < 1; on the interval, |1 - t p(t)| < 1. Above it,
 * 1 - t p(t) leaves these bounds: for an even degree it is negative, and p stays positive; for an
 * odd degree p is positive up to lowest + highest. So an estimate that is too small does little
 * harm.
 *
 * Interval: conjugate gradients with D take a few steps from a fixed start. Their alpha and beta
 * are the entries of Lanczos' tridiagonal matrix of D^-1/2 A D^-1/2, whose extreme eigenvalues are
 * found by bisection (Sturm). The largest is increased by a tenth, but at most to the largest row
 * sum of |D^-1 A|, which bounds all eigenvalues (Gershgorin).
 *
 * Traffic an application: `degree` products and 2 + 6 degree vectors. Y. Saad, "Iterative Methods
 * for Sparse Linear Systems", 2nd ed., algorithm 12.1 and sections 12.3.2, 6.7.3; bisection: J. W.
 * Givens 1954, in Golub and Van Loan, 4th ed., section 8.4.1.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "core/splitmix.h"
#include "formats/matrix_internal.h"
#include "product/plan_internal.h"
#include "solvers/precond/precond_loops.h"

struct chebyshev {
    spmv_preconditioner *m;
    spmv_plan *plan, *own_plan; /* own_plan: NULL if the caller's plan is used */
    void *inverse;              /* of the diagonal */
    void *residual, *d;
    void *d_memory; /* of d: the caller's plan may be gone when it is freed */
    int degree;
    struct precond_coefficients step[PRECOND_DEGREE + 1];
};

/* A rank without rows takes part in products only. */
static spmv_status apply(void *self, const void *r, void *z)
{
    spmv_status st = SPMV_OK;
    const struct chebyshev *c = self;
    const spmv_preconditioner *m = c->m;
    const union real minus = real_scalar(m->type, -1), one = real_scalar(m->type, 1);
    struct precond_step step = {.first = true, .inverse = c->inverse, .residual = r, .d = c->d, .z = z};
    for (int k = 0; k <= c->degree; k++) {
        if (k == 1) {
            if (m->rows > 0)
                TRY(m->ctx->backend->map(m->ctx, SPMV_MAP_COPY, m->type, r, c->residual, m->rows));
            step.first = false;
            step.residual = c->residual;
        }
        if (k > 0) /* residual = r - A z */
            TRY(spmv_apply(c->plan, &minus, c->d, &one, c->residual));
        step.before = c->step[k].before;
        step.factor = c->step[k].factor;
        if (m->rows > 0)
            TRY(precond_smooth_step(m->ctx, m->type, &step, m->rows));
    }
done:
    return st;
}

/* ----------------------------------------------------------------- ranks */

/* The ranks that share the rows, if the plan is that of one of several; else NULL. All of them then
 * call each function in the same order. Sums are those of the group, and the start vector depends
 * on the number of the row, so that the interval has the same bits for any number of ranks. */
static const struct plan_ranks *ranks_of(const struct chebyshev *c)
{
    return c->plan->ranks;
}

/* Bytes of elements of other ranks in front of a vector that is multiplied, and with those
 * behind. */
static int64_t bytes_of_others(const struct chebyshev *c, bool behind)
{
    const struct plan_ranks *ranks = c->plan != NULL ? ranks_of(c) : NULL;
    return ranks == NULL ? 0 : (ranks->before + (behind ? ranks->after : 0)) * (int64_t)spmv_type_size(c->m->type);
}

/* Memory of a vector that is multiplied. */
static spmv_status alloc_multiplied(const struct chebyshev *c, void **vector)
{
    const int64_t size = (int64_t)spmv_type_size(c->m->type);
    const spmv_status st = precond_alloc(c->m, max_i64(1, c->m->rows) * size + bytes_of_others(c, true), vector);
    if (st == SPMV_OK)
        *vector = (char *)*vector + bytes_of_others(c, false);
    return st;
}

static void free_multiplied(const struct chebyshev *c, void *vector)
{
    spmv_free(c->m->ctx, vector != NULL ? (char *)vector - bytes_of_others(c, false) : NULL);
}

static void destroy(void *self)
{
    struct chebyshev *c = self;
    spmv_free(c->m->ctx, c->d_memory);
    spmv_free(c->m->ctx, c->inverse);
    spmv_free(c->m->ctx, c->residual);
    spmv_plan_destroy(c->own_plan);
    host_free(c);
}

void precond_chebyshev_steps(double lowest, double highest, int degree, struct precond_coefficients *step)
{
    const double center = (highest + lowest) / 2, radius = (highest - lowest) / 2, sigma = center / radius;
    double rho = 1 / sigma;
    step[0] = (struct precond_coefficients){0, 1 / center};
    for (int k = 1; k <= degree; k++) {
        const double next = 1 / (2 * sigma - rho);
        step[k] = (struct precond_coefficients){next * rho, 2 * next / radius};
        rho = next;
    }
}

/* ----------------------------------------------------------------- interval */

/* The largest row sum of |D^-1 A|. The plan of a rank has whole rows. */
static spmv_status row_sum_bound(const struct chebyshev *c, const struct precond_source *source, double *largest)
{
    spmv_status st = SPMV_OK;
    const struct plan_ranks *ranks = ranks_of(c);
    spmv_csr a = ranks != NULL ? c->plan->a : source->host;
    struct csr_copies copies = {0};
    double bound = 0;
    if (ranks != NULL) {
        a.col = NULL; /* not needed */
        TRY(csr_to_host(c->m->ctx, &a, false, &a, &copies));
    }
    for (int64_t i = 0; i < a.rows; i++) {
        double sum = 0;
        for (int64_t k = row_first(&a, i); k < row_first(&a, i + 1); k++)
            sum += fabs(precond_value(&a, k));
        bound = fmax(bound, sum / source->diagonal[i]);
    }
    *largest = bound;
    if (ranks != NULL)
        TRY(ranks->largest(ranks->self, largest));
done:
    csr_free_host(&copies);
    return st;
}

/* The number of eigenvalues of the tridiagonal matrix below x: the number of negative pivots of T -
 * x I. */
static int count_below(const double *diagonal, const double *beside, int n, double x)
{
    int count = 0;
    double pivot = 1;
    for (int i = 0; i < n; i++) {
        pivot = diagonal[i] - x - (i > 0 ? beside[i - 1] * beside[i - 1] / pivot : 0);
        if (pivot == 0)
            pivot = -DBL_MIN;
        count += pivot < 0;
    }
    return count;
}

double precond_eigenvalue(const double *diagonal, const double *beside, int n, int index)
{
    double low = 0, high = 0;
    for (int i = 0; i < n; i++)
        high = fmax(high, fabs(diagonal[i]) + (i > 0 ? fabs(beside[i - 1]) : 0) + (i + 1 < n ? fabs(beside[i]) : 0));
    low = -high;
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        if (count_below(diagonal, beside, n, middle) > index)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* The vectors of a Lanczos step, and a scalar. */
struct lanczos {
    const struct chebyshev *c;
    void *r, *p, *q, *z, *scalar;
};

static spmv_status dot(const struct lanczos *l, const void *x, const void *y, double *value)
{
    const spmv_preconditioner *m = l->c->m;
    const struct plan_ranks *ranks = ranks_of(l->c);
    union real got = {0};
    spmv_status st = ranks != NULL ? ranks->dot(ranks->self, m->type, x, y, l->scalar)
                                   : spmv_dot(m->ctx, m->type, x, y, l->scalar, m->rows);
    if (st == SPMV_OK)
        st = spmv_download(m->ctx, l->scalar, &got, (int64_t)spmv_type_size(m->type));
    *value = real_at(m->type, &got, 0);
    return st;
}

/* y = a x + b y with scalars in host memory */
static spmv_status axpby(const struct lanczos *l, double a, const void *x, double b, void *y)
{
    spmv_status st = SPMV_OK;
    const spmv_preconditioner *m = l->c->m;
    union real scalars[2];
    const int64_t size = (int64_t)spmv_type_size(m->type);
    real_set(m->type, scalars, 0, a);
    real_set(m->type, scalars, 1, b);
    TRY(spmv_upload(m->ctx, scalars, l->scalar, 2 * size));
    TRY(spmv_map_axpby(m->ctx, m->type, l->scalar, x, (char *)l->scalar + size, y, m->rows));
done:
    return st;
}

/* Fills the start vector with numbers in [-1, 1), the same for every matrix (splitmix64, Steele,
 * Lea and Flood, OOPSLA 2014). */
static spmv_status fill_start(const struct chebyshev *c, void *to)
{
    spmv_status st = SPMV_OK;
    const spmv_preconditioner *m = c->m;
    void *host = NULL;
    uint64_t state = ranks_of(c) != NULL ? (uint64_t)ranks_of(c)->first_row * SPLITMIX_GAMMA : 0;
    TRY(host_alloc(m->ctx, m->rows * 8, "a start", &host));
    for (int64_t i = 0; i < m->rows; i++)
        real_set(m->type, host, i, (double)(int64_t)splitmix_next(&state) * 0x1p-63);
    TRY(spmv_upload(m->ctx, host, to, m->rows * (int64_t)spmv_type_size(m->type)));
done:
    host_free(host);
    return st;
}

/* Extreme Ritz values after at most `steps` steps. */
static spmv_status run_lanczos(const struct lanczos *l, int steps, double *diagonal, double *beside, double *lowest,
                               double *highest)
{
    spmv_status st = SPMV_OK;
    const struct chebyshev *c = l->c;
    const spmv_preconditioner *m = c->m;
    double rz = 0, first = 0, pq = 0, next = 0, alpha_before = 1, beta_before = 0;
    int k = 0;
    TRY(fill_start(c, l->r));
    TRY(spmv_map_binary(m->ctx, SPMV_MUL, m->type, l->r, c->inverse, l->p, m->rows));
    TRY(dot(l, l->r, l->p, &rz));
    first = rz;
    const double u = real_limits_of(m->type).roundoff;
    while (k < steps && rz > u * u * first) {
        TRY(spmv_apply(c->plan, NULL, l->p, NULL, l->q));
        TRY(dot(l, l->p, l->q, &pq));
        if (!isfinite(pq) || !isfinite(rz) || !(pq > 0)) {
            st = context_fail(m->ctx, isfinite(pq) && isfinite(rz) ? SPMV_ERROR_NOT_POSITIVE : SPMV_ERROR_NOT_FINITE,
                              "preconditioner %s: p'Ap = %g in step %d of the estimate of the eigenvalues%s", m->name,
                              pq, k + 1, isfinite(pq) ? ": the matrix is not positive definite" : "");
            goto done;
        }
        const double alpha = rz / pq;
        TRY(axpby(l, -alpha, l->q, 1, l->r));
        TRY(spmv_map_binary(m->ctx, SPMV_MUL, m->type, l->r, c->inverse, l->z, m->rows));
        TRY(dot(l, l->r, l->z, &next));
        const double beta = next / rz;
        diagonal[k] = 1 / alpha + beta_before / alpha_before;
        beside[k++] = sqrt(beta) / alpha;
        TRY(axpby(l, 1, l->z, beta, l->p));
        rz = next;
        alpha_before = alpha;
        beta_before = beta;
    }
    if (k == 0) {
        st = context_fail(m->ctx, SPMV_ERROR_NOT_FINITE,
                          "preconditioner %s: r'D^-1 r = %g at the start of the estimate of the eigenvalues", m->name,
                          rz);
        goto done;
    }
    *lowest = precond_eigenvalue(diagonal, beside, k, 0);
    *highest = precond_eigenvalue(diagonal, beside, k, k - 1);
done:
    return st;
}

static spmv_status estimate(const struct chebyshev *c, int steps, double *lowest, double *highest)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = c->m->ctx;
    const int64_t size = (int64_t)spmv_type_size(c->m->type), bytes = max_i64(1, c->m->rows) * size;
    struct lanczos l = {.c = c};
    double *numbers = NULL;
    TRY(host_alloc(ctx, 2 * steps * 8, "an estimate of eigenvalues", (void **)&numbers));
    TRY(spmv_alloc(ctx, bytes, &l.r));
    TRY(alloc_multiplied(c, &l.p));
    TRY(spmv_alloc(ctx, bytes, &l.q));
    TRY(spmv_alloc(ctx, bytes, &l.z));
    TRY(spmv_alloc(ctx, 2 * size, &l.scalar));
    TRY(run_lanczos(&l, steps, numbers, numbers + steps, lowest, highest));
done:
    free_multiplied(c, l.p);
    context_free_all(ctx, l.r, l.q, l.z, l.scalar);
    host_free(numbers);
    return st;
}

/* Sets m->lowest and m->highest: given, or estimated. */
static spmv_status find_interval(struct chebyshev *c, const struct precond_source *source)
{
    spmv_preconditioner *m = c->m;
    const spmv_preconditioner_options *o = source->options;
    m->lowest = o->lowest;
    m->highest = o->highest;
    if (m->highest > 0)
        return SPMV_OK;
    double lowest = 0, highest = 0;
    spmv_status st = estimate(c, o->steps, &lowest, &highest);
    if (st != SPMV_OK)
        return st;
    double bound = 0;
    st = row_sum_bound(c, source, &bound);
    if (st != SPMV_OK)
        return st;
    m->highest = fmin(1.1 * highest, bound);
    /* so that the interval is not empty if all eigenvalues are equal */
    m->lowest = fmin(lowest, m->highest / 2);
    return st;
}

static spmv_status check_plan(const spmv_preconditioner *m, const spmv_plan *plan)
{
    spmv_plan_info info;
    const spmv_status st = spmv_plan_describe(plan, &info, sizeof info);
    if (st != SPMV_OK)
        return st;
    if (spmv_plan_context(plan) != m->ctx)
        return context_fail(m->ctx, SPMV_ERROR_ARGUMENT, "preconditioner %s: the plan was made on another context",
                            m->name);
    if (info.rows != m->rows || (info.cols != m->rows && plan->ranks == NULL) || info.type != m->type ||
        info.vectors != 1 || info.x_stride != 1 || info.y_stride != 1)
        return context_fail(m->ctx, SPMV_ERROR_SIZE,
                            "preconditioner %s: the plan is for %lld x %lld in %s and %d vectors, the matrix has %lld "
                            "rows in %s",
                            m->name, (long long)info.rows, (long long)info.cols, spmv_type_name(info.type),
                            info.vectors, (long long)m->rows, spmv_type_name(m->type));
    return SPMV_OK;
}

static spmv_status take_plan(struct chebyshev *c, const struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    spmv_preconditioner *m = c->m;
    spmv_plan_info info;
    c->plan = m->plan = source->options->plan;
    if (c->plan != NULL)
        return check_plan(m, c->plan);
    spmv_plan_options o;
    spmv_plan_options_init(&o, sizeof o);
    o.type = m->type;
    TRY(spmv_plan_create(m->ctx, source->a, &o, &c->own_plan));
    c->plan = c->own_plan;
    TRY(spmv_plan_describe(c->plan, &info, sizeof info));
    m->bytes += info.bytes;
done:
    return st;
}

spmv_status precond_make_chebyshev(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    struct chebyshev *c = NULL;
    const int64_t bytes = max_i64(1, m->rows) * (int64_t)spmv_type_size(m->type);
    TRY(host_alloc(m->ctx, sizeof *c, "a preconditioner", (void **)&c));
    memset(c, 0, sizeof *c);
    c->m = m;
    c->degree = source->options->degree < 0 ? 4 : source->options->degree;
    TRY(take_plan(c, source));
    TRY(precond_upload_reciprocals(m, source, &c->inverse));
    TRY(precond_alloc(m, bytes, &c->residual));
    TRY(alloc_multiplied(c, &c->d));
    c->d_memory = (char *)c->d - bytes_of_others(c, false);
    m->together = ranks_of(c) != NULL;
    if (m->rows > 0 || m->together) {
        TRY(find_interval(c, source));
        precond_chebyshev_steps(m->lowest, m->highest, c->degree, c->step);
    }
    m->self = c;
    m->apply = apply;
    m->destroy = destroy;
    snprintf(m->layout, sizeof m->layout, "degree %d on [%.3g, %.3g], %s; products by %s plan", c->degree, m->lowest,
             m->highest, source->options->highest > 0 ? "as given" : "estimated",
             c->own_plan != NULL ? "its own" : "the caller's");
done:
    if (st != SPMV_OK && c != NULL)
        destroy(c);
    return st;
}
