/* Preconditioner ilu0: M = L U, an incomplete LU factorisation of A with the pattern of A.
 *
 * Row i of the factors needs the rows k < i of its pattern: a_ij -= l_ik u_kj at the places j of
 * the pattern of row i. The factorisation is serial, on the host, in f64, on every backend, so the
 * factors are the same everywhere. A pivot that vanishes relative to its row is replaced by a
 * fraction of the largest entry of the row (pivot_or_replacement). Meijerink and van der Vorst
 * 1977; Saad 2003, section 10.3.2.
 *
 * An application solves L y = r and U z = y (precond_triangles.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "solvers/precond/precond_ilu.h"

/* The entries of the current row from k on, at the places of row `other` of U: a_ij -= l u_kj. The
 * shorter of the two rows is visited. */
static int64_t eliminate(const struct host_rows *a, const int64_t *diagonal, const int64_t *at, int32_t other, double l,
                         int64_t k, int64_t end)
{
    const int64_t first = diagonal[other] + 1, last = a->ptr[other + 1];
    if (is_shorter(end - k, last - first)) {
        for (int64_t j = k; j < end; j++) {
            const int64_t e = place_of_column(a->col, first, last, a->col[j]);
            if (e < last && a->col[e] == a->col[j])
                a->val[j] -= l * a->val[e];
        }
        return (end - k) * SEARCH_WORK;
    }
    for (int64_t e = first; e < last; e++)
        if (at[a->col[e]] >= 0)
            a->val[at[a->col[e]]] -= l * a->val[e];
    return last - first;
}

/* Replaces the values of a, row by row, by those of L (without its diagonal of ones) and U. */
static spmv_status factor_rows(spmv_context *ctx, const struct host_rows *a, int64_t *diagonal, int64_t *at,
                               struct pivots *pivots)
{
    for (int64_t i = 0; i < a->rows; i++)
        at[i] = -1;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t begin = a->ptr[i], end = a->ptr[i + 1];
        const double largest = largest_of(a->val + begin, end - begin);
        for (int64_t k = begin; k < end; k++)
            at[a->col[k]] = k;
        int64_t k = begin, work = end - begin;
        for (; a->col[k] < i; k++) {
            const int32_t other = a->col[k];
            const double l = a->val[k] / a->val[diagonal[other]];
            a->val[k] = l;
            work += eliminate(a, diagonal, at, other, l, k + 1, end);
        }
        diagonal[i] = k;
        a->val[k] = pivot_or_replacement(pivots, i, a->val[k], largest);
        for (k = begin; k < end; k++)
            at[a->col[k]] = -1;
        const spmv_status st = context_poll(ctx, "preconditioner ilu0", work);
        if (st != SPMV_OK)
            return st;
    }
    return SPMV_OK;
}

/* Copies the factors to triangles of their own. */
static spmv_status split(spmv_context *ctx, const struct host_rows *a, const int64_t *diagonal, struct host_rows *lower,
                         struct host_rows *upper)
{
    spmv_status st = SPMV_OK;
    int64_t below = 0;
    for (int64_t i = 0; i < a->rows; i++)
        below += diagonal[i] - a->ptr[i];
    TRY(host_rows_alloc(ctx, a->rows, below + a->rows, lower));
    TRY(host_rows_alloc(ctx, a->rows, a->ptr[a->rows] - below, upper));
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t l = lower->ptr[i], u = upper->ptr[i];
        for (int64_t k = a->ptr[i]; k < diagonal[i]; k++) {
            lower->col[l] = a->col[k];
            lower->val[l++] = a->val[k];
        }
        lower->col[l] = (int32_t)i;
        lower->val[l++] = 1;
        for (int64_t k = diagonal[i]; k < a->ptr[i + 1]; k++) {
            upper->col[u] = a->col[k];
            upper->val[u++] = a->val[k];
        }
        lower->ptr[i + 1] = l;
        upper->ptr[i + 1] = u;
    }
done:
    return st;
}

spmv_status ilu0_factor(spmv_preconditioner *m, const struct precond_source *source, struct host_rows *lower,
                        struct host_rows *upper)
{
    spmv_status st = SPMV_OK;
    struct host_rows a = {0};
    struct pivots pivots = pivots_of(m->type);
    int64_t *diagonal = NULL, *at = NULL;
    TRY(ilu_check_finite(m, &source->host));
    TRY(host_rows_take(m->ctx, source, TAKE_ALL, &a));
    TRY(host_alloc(m->ctx, a.rows * 8, "pivots of a factor", (void **)&diagonal));
    TRY(host_alloc(m->ctx, a.rows * 8, "a row of a factor", (void **)&at));
    TRY(factor_rows(m->ctx, &a, diagonal, at, &pivots));
    TRY(split(m->ctx, &a, diagonal, lower, upper));
    snprintf(m->layout, sizeof m->layout, "factors of %lld entr%s", (long long)(a.ptr[a.rows] + a.rows),
             a.ptr[a.rows] + a.rows == 1 ? "y" : "ies");
    pivots_report(m, &pivots);
done:
    host_rows_release(&a);
    host_free(diagonal);
    host_free(at);
    return st;
}

spmv_status precond_make_ilu0(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    struct host_rows lower = {0}, upper = {0};
    TRY(ilu0_factor(m, source, &lower, &upper));
    TRY(triangles_make(m, &lower, &upper, NULL, NULL));
done:
    host_rows_release(&lower);
    host_rows_release(&upper);
    return st;
}
