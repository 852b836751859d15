/* spmv solve: the check of the residual b - A x, row by row against another backend, and of its
 * norm against the one that the solver reports.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "app/input.h"
#include "app/options.h"
#include "app/output.h"
#include "app/product.h"
#include "app/solve/solve_job.h"
#include "core/reals.h"

/* Whether the solver sums true residuals in a wider type than that of the vectors. */
static bool is_wide(const struct job *job)
{
    return type_part(job->type) != SPMV_F64;
}

/* n products and n - 1 additions of numbers >= 0, in any order, change the sum by at most a factor
 * of (1 + eps)^n, and its root by half of that exponent. The first term includes the rounding of
 * the root. Each square may also lose up to the smallest normal number. The residuals of the rows
 * may be summed in other orders too (norm_error). The solver's sum may be infinite if squares exceed
 * the type's range. */
static bool norms_agree(const struct job *job, double reported, double checked, double error)
{
    const struct real_limits limits = real_limits_of(SPMV_F64);
    const double n = (double)(job->in.view.rows * type_parts(job->type)), eps = limits.roundoff;
    const double bound = (n + 3) * eps * checked + sqrt(n * limits.normal), most = sqrt(limits.greatest);
    if (!isfinite(reported) || !isfinite(checked))
        return !isfinite(reported) && !(checked <= most);
    return fabs(reported - checked) <= bound + error;
}

/* The first right-hand side whose residual differs from the reported one; job->columns if there is
 * none. */
static int first_difference(const struct job *job, const struct attempt *a)
{
    int v = 0;
    while (v < job->columns && norms_agree(job, a->each[v].true_residual, a->checked[v], job->p.checks[v].norm_error))
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

/* The norms of b - A x. Where the solver sums in a wider type, so does the check. */
static spmv_status find_norms(const struct job *job, const struct attempt *a)
{
    if (!is_wide(job) && place_on_ranks(job->place))
        return job_norms_on_ranks(job, job->p.y, a->checked);
    for (int v = 0; v < job->columns; v++)
        a->checked[v] = is_wide(job) ? job->p.checks[v].norm : job_norm(job, job->p.y, v);
    return SPMV_OK;
}

/* Multiplies, compares rows and norms. */
static spmv_status compare(struct job *job, struct attempt *a)
{
    struct product *p = &job->p;
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
    const spmv_status summed = find_norms(job, a);
    if (summed != SPMV_OK)
        return summed;
    a->differs = first_difference(job, a);
    a->verdict = a->differs < job->columns || a->other_bits ? SPMV_ERROR_CHECK : st;
    return SPMV_OK;
}

spmv_status job_check(struct job *job, struct attempt *a)
{
    if (job->o->verify == VERIFY_OFF || !a->ran || a->stop == SPMV_ERROR_UNSUPPORTED)
        return SPMV_OK;
    a->overflows = has_nothing_to_check(job, a);
    if (a->overflows)
        return SPMV_OK;
    const double began = monotonic_seconds();
    spmv_status st = allocate("the check", job->columns, sizeof *job->p.checks, (void **)&job->p.checks);
    if (st == SPMV_OK)
        st = compare(job, a);
    free(job->p.checks);
    job->p.checks = NULL;
    if (st == SPMV_OK)
        a->check_seconds = monotonic_seconds() - began;
    return st;
}
