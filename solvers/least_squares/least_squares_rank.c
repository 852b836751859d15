/* Whether a matrix certainly has full column rank, by its pattern and a small dense factorization.
 *
 * If a row has one entry in the columns that are left, then A z = 0 implies that z is 0 in that column.
 * The column is removed, and the rows are counted again. The columns that remain have no entries in
 * the rows used, so A has full column rank if and only if they have. Of few columns that remain, the
 * Gram matrix of the scaled columns is factorized: Cholesky, with pivots far above rounding errors.
 *
 * Work: proportional to the entries, at most MOST_CORE times.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "solvers/least_squares/least_squares_internal.h"

/* MOST_CORE: of columns that remain. A pivot is the square of the distance of a column of norm 1 to 2
 * from those before it; the rounding errors of a Gram matrix are far smaller than LEAST_PIVOT. */
enum { MOST_CORE = 64 };
static const double LEAST_PIVOT = 1e-8;

struct peel {
    const spmv_csr *a;
    int64_t *begin;   /* of each column in entry_row; cols + 1 */
    int64_t *rows;    /* of the entries, column by column */
    int64_t *left;    /* entries of each row in columns that are left */
    int64_t *of_left; /* the exclusive or of those columns: the column, where one is left */
    int64_t *queue;   /* rows that had one entry left */
    bool *removed;    /* columns */
};

/* Entry k is stored, and not 0. */
static bool is_entry(const spmv_csr *a, int64_t k)
{
    if (a->val == NULL)
        return true;
    const int parts = type_parts(a->type);
    const spmv_type part = type_part(a->type);
    return real_at(part, a->val, k * parts) != 0 || (parts > 1 && real_at(part, a->val, k * parts + 1) != 0);
}

static spmv_status open(struct peel *p, spmv_context *ctx, const spmv_csr *a)
{
    spmv_status st = SPMV_OK;
    const char *const what = "the rank of a matrix";
    const int64_t size = (int64_t)sizeof *p->begin;
    p->a = a;
    TRY(host_alloc(ctx, (a->cols + 2) * size, what, (void **)&p->begin));
    TRY(host_alloc(ctx, a->nnz * size, what, (void **)&p->rows));
    TRY(host_alloc(ctx, a->rows * size, what, (void **)&p->left));
    TRY(host_alloc(ctx, a->rows * size, what, (void **)&p->of_left));
    TRY(host_alloc(ctx, a->rows * size, what, (void **)&p->queue));
    TRY(host_alloc(ctx, a->cols, what, (void **)&p->removed));
done:
    return st;
}

static void close(struct peel *p)
{
    void *const own[] = {p->begin, p->rows, p->left, p->of_left, p->queue, p->removed};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        host_free(own[i]);
}

/* Sorts the entries by columns, and counts those of each row. */
static void count_entries(struct peel *p)
{
    const spmv_csr *const a = p->a;
    int64_t *const next = p->begin + 1; /* shifted by one while the columns are filled */
    memset(p->begin, 0, (size_t)(a->cols + 2) * sizeof *p->begin);
    for (int64_t i = 0; i < a->rows; i++) {
        p->left[i] = p->of_left[i] = 0;
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            if (!is_entry(a, k))
                continue;
            p->begin[a->col[k] + 2]++;
            p->left[i]++;
            p->of_left[i] ^= a->col[k];
        }
    }
    for (int64_t j = 0; j < a->cols; j++)
        next[j + 1] += next[j];
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            if (is_entry(a, k))
                p->rows[next[a->col[k]]++] = i;
}

/* Removes columns; returns how many remain. Columns without entries do not count. */
static int64_t remove_columns(struct peel *p)
{
    const spmv_csr *const a = p->a;
    int64_t remain = 0, end = 0;
    for (int64_t j = 0; j < a->cols; j++) {
        p->removed[j] = p->begin[j] == p->begin[j + 1];
        remain += !p->removed[j];
    }
    for (int64_t i = 0; i < a->rows; i++)
        if (p->left[i] == 1)
            p->queue[end++] = i;
    for (int64_t q = 0; q < end; q++) {
        if (p->left[p->queue[q]] != 1) /* its column was removed meanwhile */
            continue;
        const int64_t j = p->of_left[p->queue[q]];
        p->removed[j] = true;
        remain--;
        for (int64_t k = p->begin[j]; k < p->begin[j + 1]; k++) {
            const int64_t i = p->rows[k];
            p->of_left[i] ^= j;
            if (--p->left[i] == 1)
                p->queue[end++] = i;
        }
    }
    return remain;
}

/* The Gram matrix of the columns that remain, of scaled values: the lower triangle, real and imaginary
 * parts. number: of each column among them. false: a row has repeated entries, and too many. */
static bool add_gram(const struct peel *p, const double *scale, const int64_t *number, double (*gram)[MOST_CORE][2])
{
    const spmv_csr *const a = p->a;
    const int parts = a->val != NULL ? type_parts(a->type) : 1;
    const spmv_type part = type_part(a->type);
    for (int64_t i = 0; i < a->rows; i++) {
        double value[MOST_CORE][2];
        int64_t column[MOST_CORE];
        int count = 0;
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1) && p->left[i] > 0; k++) {
            const int64_t j = a->col[k];
            if (p->removed[j])
                continue;
            if (count == MOST_CORE)
                return false;
            value[count][0] = (a->val != NULL ? real_at(part, a->val, k * parts) : 1) * scale[j];
            value[count][1] = parts > 1 ? real_at(part, a->val, k * parts + 1) * scale[j] : 0;
            column[count++] = number[j];
        }
        for (int r = 0; r < count; r++)
            for (int c = 0; c < count; c++) {
                double *const to = gram[column[r]][column[c]];
                to[0] += value[r][0] * value[c][0] + value[r][1] * value[c][1];
                to[1] += value[r][1] * value[c][0] - value[r][0] * value[c][1];
            }
    }
    return true;
}

/* Cholesky factorization in place; false: a pivot is too small. */
static bool is_positive(double (*g)[MOST_CORE][2], int n)
{
    for (int j = 0; j < n; j++) {
        const double pivot = g[j][j][0];
        if (!(pivot > LEAST_PIVOT))
            return false;
        for (int i = j + 1; i < n; i++) {
            const double re = g[i][j][0] / pivot, im = g[i][j][1] / pivot;
            for (int k = j + 1; k <= i; k++) { /* g_ik -= g_ij conj(g_kj) / pivot */
                g[i][k][0] -= re * g[k][j][0] + im * g[k][j][1];
                g[i][k][1] -= im * g[k][j][0] - re * g[k][j][1];
            }
        }
    }
    return true;
}

/* Whether the columns that remain are independent. */
static spmv_status judge_core(spmv_context *ctx, const struct peel *p, const double *scale, int64_t remain,
                              enum column_rank *rank)
{
    spmv_status st = SPMV_OK;
    double(*gram)[MOST_CORE][2] = NULL;
    int64_t *number = NULL, next = 0;
    TRY(host_alloc(ctx, MOST_CORE * (int64_t)sizeof *gram, "the rank of a matrix", (void **)&gram));
    TRY(host_alloc(ctx, p->a->cols * (int64_t)sizeof *number, "the rank of a matrix", (void **)&number));
    memset(gram, 0, MOST_CORE * sizeof *gram);
    for (int64_t j = 0; j < p->a->cols; j++)
        number[j] = p->removed[j] ? -1 : next++;
    *rank = !add_gram(p, scale, number, gram) ? RANK_UNKNOWN : is_positive(gram, (int)remain) ? RANK_FULL : RANK_LOST;
done:
    host_free(gram);
    host_free(number);
    return st;
}

spmv_status least_squares_rank(spmv_context *ctx, const spmv_csr *a, const double *scale, enum column_rank *rank)
{
    spmv_status st = SPMV_OK;
    struct peel p = {0};
    *rank = RANK_LOST;
    if (a->rows < a->cols)
        return SPMV_OK;
    TRY(open(&p, ctx, a));
    count_entries(&p);
    TRY(context_poll(ctx, "the rank of a matrix", a->nnz));
    const int64_t remain = remove_columns(&p);
    *rank = remain == 0 ? RANK_FULL : RANK_UNKNOWN;
    if (remain > 0 && remain <= MOST_CORE)
        TRY(judge_core(ctx, &p, scale, remain, rank));
done:
    close(&p);
    return st;
}
