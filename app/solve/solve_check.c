/* spmv solve: the check of the residual b - A x, row by row against another backend, and of its
 * norm against the one that the solver reports.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "app/input.h"
#include "app/options.h"
#include "app/product.h"
#include "app/solve/solve_job.h"
#include "core/reals.h"

static double modulus_of_entry(const spmv_csr *a, int64_t k)
{
    if (a->val == NULL)
        return 1;
    return type_is_complex(a->type)
               ? hypot(real_at(type_part(a->type), a->val, 2 * k), real_at(type_part(a->type), a->val, 2 * k + 1))
               : fabs(real_at(a->type, a->val, k));
}

/* The largest norm of the difference of two residuals of x that were summed in different orders,
 * from the bound of spmv_verify in each row. Rungs on a GPU, and the solver's check of rows, have
 * orders of their own. */
static double residuals_apart(const struct job *job, const void *x, int v, double eps)
{
    const spmv_csr *const a = &job->in.view;
    double square = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t begin = row_begin(a, i), end = row_begin(a, i + 1);
        double sum = job_modulus(job, job->b, i * job->columns + v);
        for (int64_t k = begin; k < end; k++)
            sum += modulus_of_entry(a, k) * job_modulus(job, x, (int64_t)a->col[k] * job->columns + v);
        const double most = 2 * (double)(end - begin + 4) * eps * sum;
        square += most * most;
    }
    return sqrt(square);
}

/* ||b - A x|| of right-hand side v with sums in f64: the solver reports that if vectors are narrower. */
static double wide_norm(const struct job *job, const void *x, int v)
{
    const spmv_csr *const a = &job->in.view;
    const spmv_type part = type_part(job->type), from = type_part(a->type);
    const int parts = type_parts(job->type);
    long double square = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        double r[2] = {0, 0};
        for (int p = 0; p < parts; p++)
            r[p] = real_at(part, job->b, (i * job->columns + v) * parts + p);
        for (int64_t k = row_begin(a, i); k < row_begin(a, i + 1); k++) {
            const int64_t j = ((int64_t)a->col[k] * job->columns + v) * parts;
            const double re = a->val == NULL ? 1 : real_at(from, a->val, k * parts);
            r[0] -= re * real_at(part, x, j);
            if (parts == 2) {
                const double im = a->val == NULL ? 0 : real_at(from, a->val, 2 * k + 1);
                r[0] += im * real_at(part, x, j + 1);
                r[1] -= re * real_at(part, x, j + 1) + im * real_at(part, x, j);
            }
        }
        square += (long double)r[0] * r[0] + (long double)r[1] * r[1];
    }
    return (double)sqrtl(square);
}

/* Whether the solver sums true residuals in a wider type than that of the vectors. */
static bool is_wide(const struct job *job)
{
    return type_part(job->type) != SPMV_F64;
}

/* n products and n - 1 additions of numbers >= 0, in any order, change the sum by at most a factor
 * of (1 + eps)^n, and its root by half of that exponent. The first term includes the rounding of
 * the root. Each square may also lose up to the smallest normal number. The solver's sum may be
 * infinite if squares exceed the type's range. */
static bool norms_agree(const struct job *job, const void *x, int v, double reported, double checked)
{
    const bool here = !place_on_ranks(job->place);
    /* of the sums; on ranks both are those of a dot product there */
    const struct real_limits limits = real_limits_of(here ? SPMV_F64 : type_part(job->type));
    const double n = (double)(job->in.view.rows * type_parts(job->type)), eps = limits.roundoff;
    const double bound = (n + 3) * eps * checked + sqrt(n * limits.normal), most = sqrt(limits.greatest);
    if (!isfinite(reported) || !isfinite(checked))
        return !isfinite(reported) && !(checked <= most);
    const double apart = fabs(reported - checked);
    return apart <= bound || (here && apart <= bound + residuals_apart(job, x, v, eps));
}

/* The first right-hand side whose residual differs from the reported one; job->columns if there is
 * none. */
static int first_difference(const struct job *job, const struct attempt *a)
{
    int v = 0;
    while (v < job->columns && norms_agree(job, a->x, v, a->each[v].true_residual, a->checked[v]))
        v++;
    return v;
}

/* Whether a residual overflows, which depends on the order of its sum, or all are not finite. A NaN
 * in b is one in every sum: the other right-hand sides are checked. */
static bool has_nothing_to_check(const struct job *job, const struct attempt *a)
{
    bool overflows = false, all = true;
    for (int v = 0; v < job->columns; v++) {
        const bool finite = a->each[v].status != SPMV_ERROR_NOT_FINITE || isfinite(a->each[v].true_residual);
        overflows = overflows || (!finite && !isnan(a->each[v].norm_b));
        all = all && !finite;
    }
    return overflows || all;
}

spmv_status job_check(struct job *job, struct attempt *a)
{
    struct product *p = &job->p;
    if (job->o->verify == VERIFY_OFF || !a->ran || a->stop == SPMV_ERROR_UNSUPPORTED)
        return SPMV_OK;
    a->overflows = has_nothing_to_check(job, a);
    if (a->overflows)
        return SPMV_OK;
    const double began = monotonic_seconds();
    place_free(job->place, p->y);
    p->y = NULL;
    p->x = a->x;
    p->y0 = job->b;
    p->alpha = -1;
    p->beta = 1;
    spmv_status st = product_run(p);
    if (st == SPMV_OK)
        st = product_check(job->o, p);
    if (st != SPMV_OK && st != SPMV_ERROR_CHECK)
        return st;
    const bool here = !place_on_ranks(job->place);
    for (int v = 0; v < job->columns && here; v++)
        a->checked[v] = is_wide(job) ? wide_norm(job, a->x, v) : job_norm(job, p->y, v);
    /* on ranks the product has no wider sums to compare with those of the solver: its rows alone are checked */
    const bool compared = here || !is_wide(job);
    const spmv_status summed = here ? SPMV_OK : job_norm_on_ranks(job, p->y, a->checked);
    if (summed != SPMV_OK)
        return summed;
    a->differs = compared ? first_difference(job, a) : job->columns;
    a->verdict = a->differs < job->columns || a->other_bits ? SPMV_ERROR_CHECK : st;
    a->check_seconds = monotonic_seconds() - began;
    return SPMV_OK;
}
