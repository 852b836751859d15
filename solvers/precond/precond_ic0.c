/* Preconditioner ic0: M = L L', L an incomplete Cholesky factor of A with the pattern of A's lower
 * triangle.
 *
 * The factorization is serial, on the host, in f64, on every backend (precond_ic0_factor.c), so L
 * is the same everywhere. If a pivot fails, the diagonal is increased by a shift of 1/1000, which
 * doubles until all pivots are positive (Manteuffel 1980). This ends because a strictly dominant
 * matrix has a factor.
 *
 * An application solves L y = r and L' z = y (precond_triangles.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "solvers/precond/precond_ic0.h"

/* Factors a with the smallest shift tried that succeeds. Sets m->shift, m->fallen, m->layout. */
static spmv_status factor_shifted(spmv_preconditioner *m, const struct precond_source *source,
                                  const struct host_rows *a, double *factor)
{
    const double least = real_limits_of(m->type).pivot;
    int64_t failed = 0, first = -1;
    double pivot = 0, first_pivot = 0;
    for (double shift = source->options->shift;; shift = shift == 0 ? 1e-3 : 2 * shift) {
        const spmv_status st = lower_factor(m->ctx, a, shift, least, factor, &failed, &pivot);
        if (st != SPMV_OK)
            return st;
        if (failed == a->rows) {
            m->shift = shift;
            break;
        }
        if (shift > 1e15)
            return context_fail(m->ctx, SPMV_ERROR_NOT_FINITE,
                                "preconditioner %s: the pivot of row %lld%s is %g with every shift", m->name,
                                context_number(m->ctx, failed), context_counted(m->ctx), pivot);
        if (m->fallen++ == 0) {
            first = failed;
            first_pivot = pivot;
        }
    }
    const int n = snprintf(m->layout, sizeof m->layout, "a factor of %lld entr%s", (long long)a->ptr[a->rows],
                           a->ptr[a->rows] == 1 ? "y" : "ies");
    if (m->fallen > 0)
        snprintf(m->layout + n, sizeof m->layout - (size_t)n,
                 " of A + %.3g D: %s the pivot of row %lld%s is %.3g, and %lld factorisation%s failed", m->shift,
                 source->options->shift > 0 ? "with the requested shift" : "without a shift",
                 context_number(m->ctx, first), context_counted(m->ctx), first_pivot, (long long)m->fallen,
                 m->fallen == 1 ? "" : "s");
    else if (m->shift > 0)
        snprintf(m->layout + n, sizeof m->layout - (size_t)n, " of A + %.3g D, as requested", m->shift);
    return SPMV_OK;
}

spmv_status ic0_factor(spmv_preconditioner *m, const struct precond_source *source, struct host_rows *lower)
{
    spmv_status st = SPMV_OK;
    double *factor = NULL;
    TRY(host_rows_take(m->ctx, source, TAKE_LOWER, lower));
    TRY(host_alloc(m->ctx, lower->ptr[lower->rows] * 8, "a factor", (void **)&factor));
    TRY(factor_shifted(m, source, lower, factor));
    host_free(lower->val);
    lower->val = factor;
    factor = NULL;
done:
    host_free(factor);
    return st;
}

spmv_status precond_make_ic0(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    struct host_rows lower = {0}, upper = {0};
    TRY(ic0_factor(m, source, &lower));
    TRY(lower_transpose(m->ctx, &lower, &upper));
    TRY(triangles_make(m, &lower, &upper, NULL, NULL));
    m->transpose = NULL; /* M is symmetric */
done:
    host_rows_release(&lower);
    host_rows_release(&upper);
    return st;
}
