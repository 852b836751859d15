/* Incomplete Cholesky without fill-in: the factor, row by row.
 *
 * Row i of L needs the rows k < i of its pattern: l_ik = (a_ik - sum_{j < k} l_ij l_kj) / l_kk, j
 * in both patterns, and l_ii = sqrt(a_ii - sum l_ik^2). The current row is kept in an array of all
 * columns that is zero elsewhere, so a sum runs over the entries of row k only, or over those of row
 * i if they are far fewer. Work: the entries of row k for each entry (i, k). Meijerink and van der Vorst 1977; Saad 2003, section 10.3.2.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "formats/matrix_internal.h"
#include "solvers/precond/precond_ic0.h"

/* a_ik - sum_{j < k} l_ij l_kj. row: row i by column, whose entries before that of k are begin ... at - 1.
 * Adds the work. */
static double remainder_of(const struct host_rows *a, const double *factor, const double *row, int64_t begin,
                           int64_t at, int64_t *work)
{
    const int64_t other = a->col[at], first = a->ptr[other], diagonal = a->ptr[other + 1] - 1;
    double sum = row[other];
    if (is_shorter(at - begin, diagonal - first)) {
        for (int64_t k = begin; k < at; k++) {
            const int64_t e = place_of_column(a->col, first, diagonal, a->col[k]);
            if (e < diagonal && a->col[e] == a->col[k])
                sum -= factor[e] * factor[k];
        }
        *work += (at - begin) * SEARCH_WORK;
        return sum;
    }
    for (int64_t e = first; e < diagonal; e++)
        sum -= factor[e] * row[a->col[e]];
    *work += diagonal - first;
    return sum;
}

spmv_status lower_factor(spmv_context *ctx, const struct host_rows *a, double shift, double least, double *factor,
                         int64_t *failed, double *pivot)
{
    double *row = NULL; /* the current row, by column */
    spmv_status st = host_alloc(ctx, a->rows * 8, "a row of a factor", (void **)&row);
    if (st != SPMV_OK)
        return st;
    for (int64_t i = 0; i < a->rows; i++)
        row[i] = 0;
    *failed = a->rows;
    for (int64_t i = 0; i < a->rows && *failed == a->rows && st == SPMV_OK; i++) {
        const int64_t begin = a->ptr[i], last = a->ptr[i + 1] - 1; /* the diagonal */
        int64_t work = last - begin + 1;
        for (int64_t k = begin; k < last; k++)
            row[a->col[k]] = a->val[k];
        double rest = a->val[last] + shift * a->val[last];
        for (int64_t k = begin; k < last; k++) {
            const int64_t other = a->col[k], diagonal = a->ptr[other + 1] - 1;
            factor[k] = row[other] = remainder_of(a, factor, row, begin, k, &work) / factor[diagonal];
            rest -= factor[k] * factor[k];
        }
        for (int64_t k = begin; k < last; k++)
            row[a->col[k]] = 0;
        if (!(rest > least * a->val[last] && isfinite(rest))) {
            *failed = i;
            *pivot = rest;
        }
        factor[last] = sqrt(rest);
        st = context_poll(ctx, "preconditioner ic0", work);
    }
    host_free(row);
    return st;
}

spmv_status lower_transpose(spmv_context *ctx, const struct host_rows *lower, struct host_rows *upper)
{
    spmv_status st = SPMV_OK;
    const int64_t n = lower->rows, entries = lower->ptr[n];
    TRY(host_rows_alloc(ctx, n, entries, upper));
    memset(upper->ptr, 0, (size_t)(n + 1) * sizeof *upper->ptr);
    for (int64_t k = 0; k < entries; k++)
        upper->ptr[lower->col[k] + 1]++;
    for (int64_t i = 0; i < n; i++)
        upper->ptr[i + 1] += upper->ptr[i];
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = lower->ptr[i]; k < lower->ptr[i + 1]; k++) {
            const int64_t to = upper->ptr[lower->col[k]]++;
            upper->col[to] = (int32_t)i;
            upper->val[to] = lower->val[k];
        }
    for (int64_t i = n; i > 0; i--)
        upper->ptr[i] = upper->ptr[i - 1];
    upper->ptr[0] = 0;
done:
    return st;
}
