/* Incomplete Cholesky without fill-in: the factor, row by row, and the levels of its triangles.
 *
 * Row i of L needs the rows k < i of its pattern: l_ik = (a_ik - sum_{j < k} l_ij l_kj) / l_kk, j
 * in both patterns, and l_ii = sqrt(a_ii - sum l_ik^2). The current row is kept in an array of all
 * columns that is zero elsewhere, so a sum runs over the entries of row k only. Work: the entries
 * of row k for each entry (i, k). Meijerink and van der Vorst 1977; Saad 2003, section 10.3.2.
 * Levels: E. Anderson, Y. Saad, "Solving sparse triangular linear systems on parallel computers",
 * Int. J. High Speed Computing 1, 1989.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "matrix_internal.h"
#include "precond_ic0.h"

void lower_release(struct lower *lower)
{
    host_free(lower->ptr);
    host_free(lower->col);
    host_free(lower->val);
}

static spmv_status lower_alloc(spmv_context *ctx, int64_t rows, int64_t entries, struct lower *lower)
{
    spmv_status st = SPMV_OK;
    lower->rows = rows;
    TRY(host_alloc(ctx, (rows + 1) * 8, "row offsets of a triangle", (void **)&lower->ptr));
    TRY(host_alloc(ctx, entries * 4, "columns of a triangle", (void **)&lower->col));
    TRY(host_alloc(ctx, entries * 8, "values of a triangle", (void **)&lower->val));
    lower->ptr[0] = 0;
done:
    return st;
}

/* Sorts n entries by column, stably. Insertion sort, since they are nearly always in order. */
static void sort_entries(int32_t *col, double *val, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const int32_t c = col[i];
        const double v = val[i];
        int64_t j = i;
        for (; j > 0 && col[j - 1] > c; j--) {
            col[j] = col[j - 1];
            val[j] = val[j - 1];
        }
        col[j] = c;
        val[j] = v;
    }
}

spmv_status lower_take(spmv_context *ctx, const struct precond_source *source, struct lower *lower)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *a = &source->host;
    int64_t entries = 0;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            entries += a->col[k] <= i;
    TRY(lower_alloc(ctx, a->rows, entries, lower));
    int64_t end = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t begin = end;
        int64_t kept = begin;
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            if (a->col[k] <= i) {
                lower->col[end] = a->col[k];
                lower->val[end++] = precond_value(a, k);
            }
        sort_entries(lower->col + begin, lower->val + begin, end - begin);
        for (int64_t k = begin; k < end; k++)
            if (kept > begin && lower->col[kept - 1] == lower->col[k]) {
                lower->val[kept - 1] += lower->val[k];
            } else {
                lower->col[kept] = lower->col[k];
                lower->val[kept++] = lower->val[k];
            }
        end = kept;
        lower->ptr[i + 1] = end;
    }
done:
    return st;
}

spmv_status lower_factor(spmv_context *ctx, const struct lower *a, double shift, double u, double *factor,
                         int64_t *failed, double *pivot)
{
    double *row = NULL; /* the current row, by column */
    const spmv_status st = host_alloc(ctx, a->rows * 8, "a row of a factor", (void **)&row);
    if (st != SPMV_OK)
        return st;
    for (int64_t i = 0; i < a->rows; i++)
        row[i] = 0;
    *failed = a->rows;
    for (int64_t i = 0; i < a->rows && *failed == a->rows; i++) {
        const int64_t begin = a->ptr[i], last = a->ptr[i + 1] - 1; /* the diagonal */
        for (int64_t k = begin; k < last; k++)
            row[a->col[k]] = a->val[k];
        double rest = a->val[last] + shift * a->val[last];
        for (int64_t k = begin; k < last; k++) {
            const int64_t other = a->col[k], diagonal = a->ptr[other + 1] - 1;
            double sum = row[other];
            for (int64_t e = a->ptr[other]; e < diagonal; e++)
                sum -= factor[e] * row[a->col[e]];
            factor[k] = row[other] = sum / factor[diagonal];
            rest -= factor[k] * factor[k];
        }
        for (int64_t k = begin; k < last; k++)
            row[a->col[k]] = 0;
        if (!(rest > u * a->val[last] && isfinite(rest))) {
            *failed = i;
            *pivot = rest;
        }
        factor[last] = sqrt(rest);
    }
    host_free(row);
    return st;
}

spmv_status lower_transpose(spmv_context *ctx, const struct lower *lower, struct lower *upper)
{
    spmv_status st = SPMV_OK;
    const int64_t n = lower->rows, entries = lower->ptr[n];
    TRY(lower_alloc(ctx, n, entries, upper));
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

void levels_release(struct levels *levels)
{
    host_free(levels->row);
    host_free(levels->first);
}

spmv_status levels_of(spmv_context *ctx, const struct lower *triangle, bool backward, struct levels *levels)
{
    spmv_status st = SPMV_OK;
    const int64_t n = triangle->rows;
    int32_t *level = NULL;
    TRY(host_alloc(ctx, n * 4, "levels of a triangle", (void **)&level));
    TRY(host_alloc(ctx, n * 4, "the order of a triangle", (void **)&levels->row));
    levels->count = 0;
    for (int64_t p = 0; p < n; p++) {
        const int64_t i = backward ? n - 1 - p : p;
        int32_t deepest = 0;
        for (int64_t k = triangle->ptr[i]; k < triangle->ptr[i + 1]; k++)
            if (triangle->col[k] != i && level[triangle->col[k]] >= deepest)
                deepest = level[triangle->col[k]] + 1;
        level[i] = deepest;
        levels->count = max_i64(levels->count, deepest + 1);
    }
    TRY(host_alloc(ctx, (levels->count + 2) * 8, "levels of a triangle", (void **)&levels->first));
    memset(levels->first, 0, (size_t)(levels->count + 2) * sizeof *levels->first);
    for (int64_t i = 0; i < n; i++)
        levels->first[level[i] + 2]++;
    for (int64_t l = 0; l < levels->count; l++)
        levels->first[l + 2] += levels->first[l + 1];
    for (int64_t p = 0; p < n; p++) {
        const int64_t i = backward ? n - 1 - p : p;
        levels->row[levels->first[level[i] + 1]++] = (int32_t)i;
    }
done:
    host_free(level);
    return st;
}
