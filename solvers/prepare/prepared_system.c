/* The preparation of a square system: scaling, matching, order (prepared_system.h).
 *
 * All steps run on the host in f64, the scaling and the order serially, so the new system is the
 * same on every backend and for any number of threads. The vectors are transformed by a product
 * with the scale factors and a gather or scatter.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/prepare/prepared_system.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/threads.h"
#include "formats/matrix_internal.h"

/* A scaled diagonal entry below this asks for a matching. */
static const double TINY = 1e-3;

enum { SENTENCE = 512, RUIZ_STEPS = 20 };

struct prepared_system {
    spmv_context *ctx;
    spmv_type type;   /* of vectors */
    spmv_type values; /* of A and C */
    bool pattern;
    spmv_memory memory;     /* of the arrays of A */
    int64_t rows, nnz;      /* of A */
    int64_t *a_ptr;         /* row offsets of A */
    int32_t *a_col;         /* columns of A */
    int64_t entries;        /* of C */
    int64_t *row_ptr;       /* of C */
    int32_t *col;           /* of C */
    void *val;              /* of C */
    int64_t *entry, *first; /* entry k of C is the sum of entries entry[first[k]], ... of A */
    int32_t *row_at;        /* row k of C is row row_at[k] of A */
    int32_t *col_at;        /* column k of C is column col_at[k] of A */
    int *row_exponent;      /* R, by rows of A: powers of two */
    int *col_exponent;      /* S, by columns of A */
    /* In the context's memory: the permutations (NULL: none), the factors of vectors in the order of
     * the results; NULL: all are 1. */
    void *rows_from, *cols_from;
    void *of_rhs, *of_solution;
    char sentence[SENTENCE];
};

/* host_alloc of a large array, in large pages if there are any. */
static spmv_status alloc_large(const struct prepared_system *s, int64_t bytes, const char *what, void **memory)
{
    const spmv_status st = host_alloc(s->ctx, bytes, what, memory);
    if (st == SPMV_OK)
        pages_ask_large(*memory, bytes);
    return st;
}

/* ------------------------------------------------------------------- scaling */

/* The largest scaled logarithm of each row and column; -INFINITY without an entry. */
static void largest_of_lines(const struct magnitudes *a, int64_t cols, const double *row, const double *col,
                             double *in_row, double *in_col)
{
    for (int64_t i = 0; i < a->rows; i++)
        in_row[i] = -INFINITY;
    for (int64_t j = 0; j < cols; j++)
        in_col[j] = -INFINITY;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = a->ptr[i]; k < a->ptr[i + 1]; k++) {
            const double scaled = a->log2[k] + row[i] + col[a->col[k]];
            in_row[i] = scaled > in_row[i] ? scaled : in_row[i];
            in_col[a->col[k]] = scaled > in_col[a->col[k]] ? scaled : in_col[a->col[k]];
        }
}

/* Lines with entries get half of what is missing. Returns the most that was. */
static double scale_lines(int64_t n, const double *in_line, double *line)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(in_line[i])) {
            line[i] -= in_line[i] / 2;
            worst = fmax(worst, fabs(in_line[i]));
        }
    return worst;
}

spmv_status prepare_equilibrate(spmv_context *ctx, const struct magnitudes *a, const struct magnitudes_ranks *ranks,
                                double *row, double *col)
{
    spmv_status st = SPMV_OK;
    const int64_t n = a->rows, cols = ranks != NULL ? ranks->cols : n;
    double *in_row = NULL, *in_col = NULL;
    TRY(host_alloc(ctx, max_i64(1, n) * 8, "scale factors", (void **)&in_row));
    TRY(host_alloc(ctx, max_i64(1, cols) * 8, "scale factors", (void **)&in_col));
    for (int64_t i = 0; i < n; i++)
        row[i] = 0;
    for (int64_t j = 0; j < cols; j++)
        col[j] = 0;
    for (int step = 0; step < RUIZ_STEPS; step++) {
        largest_of_lines(a, cols, row, col, in_row, in_col);
        if (ranks != NULL)
            TRY(ranks->join(ranks->self, in_col));
        const double in_rows = scale_lines(n, in_row, row), in_cols = scale_lines(cols, in_col, col);
        double worst = fmax(in_rows, in_cols);
        if (ranks != NULL)
            TRY(ranks->largest(ranks->self, &worst));
        if (worst < 0.1)
            break;
    }
done:
    host_free(in_row);
    host_free(in_col);
    return st;
}

/* ------------------------------------------------------------------- reading */

/* Copies A and checks it. *values: NULL for a pattern. */
static spmv_status take_matrix(struct prepared_system *s, const spmv_csr *a, void **values)
{
    spmv_status st = SPMV_OK;
    struct csr_copies copies = {0};
    spmv_csr host;
    TRY(csr_to_host(s->ctx, a, true, &host, &copies));
    TRY(csr_check(s->ctx, "prepared_system_create", &host, CSR_ANY_ORDER));
    TRY(host_alloc(s->ctx, (a->rows + 1) * 8, "row offsets", (void **)&s->a_ptr));
    for (int64_t i = 0; i <= a->rows; i++)
        s->a_ptr[i] = row_first(&host, i);
    for (int64_t i = 0; i < a->rows; i++)
        if (s->a_ptr[i + 1] - s->a_ptr[i] > UINT32_MAX) { /* sort_entries */
            st = context_fail(s->ctx, SPMV_ERROR_LIMIT, "row %lld%s has %lld entries: at most %lld",
                              context_number(s->ctx, i), context_counted(s->ctx),
                              (long long)(s->a_ptr[i + 1] - s->a_ptr[i]), (long long)UINT32_MAX);
            goto done;
        }
    s->a_col = copies.col;
    *values = copies.val;
    copies.col = NULL;
    copies.val = NULL;
done:
    csr_free_host(&copies);
    return st;
}

static double value_of(const struct prepared_system *s, const void *values, int64_t k)
{
    return s->pattern ? 1 : real_at(s->values, values, k);
}

static spmv_status check_finite(const struct prepared_system *s, const void *values)
{
    for (int64_t i = 0; i < s->rows; i++)
        for (int64_t k = s->a_ptr[i]; k < s->a_ptr[i + 1]; k++)
            if (!isfinite(value_of(s, values, k)))
                return context_fail(s->ctx, SPMV_ERROR_NOT_FINITE, "the entry in row %lld, column %lld%s is %g",
                                    context_number(s->ctx, i), context_number(s->ctx, s->a_col[k]),
                                    context_counted(s->ctx), value_of(s, values, k));
    return SPMV_OK;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Short rows, and those that are nearly in order, by insertion. */
static void sort_numbers(int64_t *number, int64_t n)
{
    enum { MOVES = 16 };
    int64_t moves = 0;
    for (int64_t i = 1; i < n; i++) {
        const int64_t inserted = number[i];
        int64_t j = i;
        for (; j > 0 && number[j - 1] > inserted; j--)
            number[j] = number[j - 1];
        number[j] = inserted;
        moves += i - j;
        if (moves > MOVES * n) {
            qsort(number, (size_t)n, sizeof *number, by_number);
            break;
        }
    }
}

/* entry: the entries of A by row of C, then by column of C, repeated ones in the order of A.
 * begin: rows + 1, where rows of C begin in entry. row_at: the row of A for each row of C; place:
 * the column of C for each column of A; NULL: they are the same. distinct[i + 1]: the columns of
 * row i. */
static void sort_entries(const struct prepared_system *s, const int32_t *row_at, const int32_t *place, int64_t *begin,
                         int64_t *entry, int64_t *distinct)
{
    begin[0] = distinct[0] = 0;
    for (int64_t i = 0; i < s->rows; i++) {
        const int64_t row = row_at != NULL ? row_at[i] : i;
        begin[i + 1] = begin[i] + s->a_ptr[row + 1] - s->a_ptr[row];
    }
#pragma omp parallel for num_threads(host_team(s->ctx, s->nnz)) schedule(dynamic, 256)
    for (int64_t i = 0; i < s->rows; i++) {
        const int64_t from = s->a_ptr[row_at != NULL ? row_at[i] : i], n = begin[i + 1] - begin[i];
        int64_t *const number = entry + begin[i], count = 0, before = -1;
        for (int64_t k = 0; k < n; k++) {
            const int32_t col = s->a_col[from + k];
            number[k] = (int64_t)(place != NULL ? place[col] : col) << 32 | k;
        }
        sort_numbers(number, n);
        for (int64_t k = 0; k < n; k++) {
            count += number[k] >> 32 != before;
            before = number[k] >> 32;
            number[k] = from + (number[k] & UINT32_MAX);
        }
        distinct[i + 1] = count;
    }
}

static void magnitudes_release(struct magnitudes *m)
{
    host_free_all(m->ptr, m->col, m->log2);
}

/* The sum of entries entry[*k], entry[*k + 1], ... of the same column, before end. Moves *k behind
 * them. */
static double sum_of_same(const struct prepared_system *s, const void *values, const int64_t *entry, int64_t *k,
                          int64_t end)
{
    const int32_t col = s->a_col[entry[*k]];
    double sum = 0;
    for (; *k < end && s->a_col[entry[*k]] == col; ++*k)
        sum += value_of(s, values, entry[*k]);
    return sum;
}

/* The logarithms of A, with repeated entries added. */
static spmv_status take_magnitudes(const struct prepared_system *s, const void *values, struct magnitudes *m)
{
    spmv_status st = SPMV_OK;
    const int64_t n = s->rows;
    int64_t *entry = NULL, *begin = NULL;
    m->rows = n;
    TRY(host_alloc(s->ctx, (n + 1) * 8, "row offsets", (void **)&m->ptr));
    TRY(host_alloc(s->ctx, (n + 1) * 8, "row offsets", (void **)&begin));
    TRY(alloc_large(s, s->nnz * 4, "columns", (void **)&m->col));
    TRY(alloc_large(s, s->nnz * 8, "logarithms of values", (void **)&m->log2));
    TRY(alloc_large(s, s->nnz * 8, "entries", (void **)&entry));
    sort_entries(s, NULL, NULL, begin, entry, m->ptr);
#pragma omp parallel for num_threads(host_team(s->ctx, s->nnz)) schedule(dynamic, 256)
    for (int64_t i = 0; i < n; i++) {
        int64_t kept = 0;
        for (int64_t k = begin[i]; k < begin[i + 1];)
            kept += sum_of_same(s, values, entry, &k, begin[i + 1]) != 0;
        m->ptr[i + 1] = kept;
    }
    for (int64_t i = 0; i < n; i++)
        m->ptr[i + 1] += m->ptr[i];
#pragma omp parallel for num_threads(host_team(s->ctx, s->nnz)) schedule(dynamic, 256)
    for (int64_t i = 0; i < n; i++) {
        int64_t end = m->ptr[i];
        for (int64_t k = begin[i]; k < begin[i + 1];) {
            const int32_t col = s->a_col[entry[k]];
            const double sum = sum_of_same(s, values, entry, &k, begin[i + 1]);
            if (sum != 0) {
                m->col[end] = col;
                m->log2[end++] = log2(fabs(sum));
            }
        }
    }
done:
    host_free(entry);
    host_free(begin);
    return st;
}

/* -------------------------------------------------------------------- deciding */

/* What the steps found: logarithms of scale factors by rows and columns of A, the row matched to
 * each column, and the order of the matched rows. */
struct findings {
    double *row, *col;
    int32_t *row_of, *order;
    int64_t small; /* scaled diagonal entries that are missing or tiny */
    bool matched;
};

static void findings_release(struct findings *f)
{
    host_free_all(f->row, f->col, f->row_of, f->order);
}

static int64_t count_small(const struct magnitudes *m, const double *row, const double *col)
{
    const double least = log2(TINY);
    int64_t small = m->rows;
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t k = m->ptr[i]; k < m->ptr[i + 1]; k++)
            small -= m->col[k] == i && m->log2[k] + row[i] + col[i] >= least;
    return small;
}

static spmv_status decide(struct prepared_system *s, const struct prepared_system_options *options,
                          const struct magnitudes *m, struct findings *f)
{
    spmv_status st = SPMV_OK;
    const int64_t n = s->rows;
    int64_t rank = n;
    TRY(host_alloc(s->ctx, n * 8, "scale factors", (void **)&f->row));
    TRY(host_alloc(s->ctx, n * 8, "scale factors", (void **)&f->col));
    TRY(host_alloc(s->ctx, n * 4, "a matching", (void **)&f->row_of));
    TRY(host_alloc(s->ctx, n * 4, "an order", (void **)&f->order));
    TRY(prepare_equilibrate(s->ctx, m, NULL, f->row, f->col));
    f->small = count_small(m, f->row, f->col);
    f->matched = options->matching == MATCHING_ON || (options->matching == MATCHING_AUTO && f->small > 0);
    for (int64_t i = 0; i < n; i++)
        f->row_of[i] = f->order[i] = (int32_t)i;
    if (f->matched)
        TRY(prepare_match(s->ctx, m, f->row_of, &rank, f->row, f->col));
    if (rank < n) {
        st = context_fail(s->ctx, SPMV_ERROR_SINGULAR,
                          "the matrix of %lld rows is singular: at most %lld of its rows are independent, whatever the "
                          "values of its nonzeros",
                          (long long)n, (long long)rank);
        goto done;
    }
    if (!options->no_order)
        TRY(prepare_order(s->ctx, m, f->row_of, f->order));
done:
    return st;
}

/* -------------------------------------------------------------------- making C */

/* Multiplies all row factors by one number and divides all column factors by it, so that both are
 * about as far from 1. */
static void balance(struct findings *f, int64_t n)
{
    double row_least = INFINITY, row_most = -INFINITY, col_least = INFINITY, col_most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        row_least = fmin(row_least, f->row[i]);
        row_most = fmax(row_most, f->row[i]);
        col_least = fmin(col_least, f->col[i]);
        col_most = fmax(col_most, f->col[i]);
    }
    const double shift = (col_least + col_most - row_least - row_most) / 4;
    for (int64_t i = 0; i < n; i++) {
        f->row[i] += shift;
        f->col[i] -= shift;
    }
}

/* Sets the permutations and scale factors. */
static spmv_status take_findings(struct prepared_system *s, const struct prepared_system_options *options,
                                 const struct findings *f)
{
    spmv_status st = SPMV_OK;
    const int64_t n = s->rows;
    /* the factor, its reciprocal and their squares are in the range of the type of vectors */
    const double most = ilogb(real_limits_of(s->type).greatest) / 2;
    TRY(host_alloc(s->ctx, n * 4, "a permutation", (void **)&s->row_at));
    TRY(host_alloc(s->ctx, n * 4, "a permutation", (void **)&s->col_at));
    TRY(host_alloc(s->ctx, n * (int64_t)sizeof(int), "scale factors", (void **)&s->row_exponent));
    TRY(host_alloc(s->ctx, n * (int64_t)sizeof(int), "scale factors", (void **)&s->col_exponent));
    for (int64_t i = 0; i < n; i++) {
        s->col_at[i] = f->order[i];
        s->row_at[i] = f->row_of[f->order[i]];
        s->row_exponent[i] = options->no_equilibration ? 0 : (int)fmax(-most, fmin(most, nearbyint(f->row[i])));
        s->col_exponent[i] = options->no_equilibration ? 0 : (int)fmax(-most, fmin(most, nearbyint(f->col[i])));
    }
done:
    return st;
}

/* Makes the pattern of C. */
static spmv_status make_pattern(struct prepared_system *s)
{
    spmv_status st = SPMV_OK;
    const int64_t n = s->rows;
    int32_t *place = NULL;
    int64_t *begin = NULL;
    TRY(host_alloc(s->ctx, n * 4, "a permutation", (void **)&place));
    TRY(host_alloc(s->ctx, (n + 1) * 8, "row offsets", (void **)&begin));
    TRY(alloc_large(s, s->nnz * 8, "entries", (void **)&s->entry));
    TRY(host_alloc(s->ctx, (n + 1) * 8, "row offsets", (void **)&s->row_ptr));
    for (int64_t j = 0; j < n; j++)
        place[s->col_at[j]] = (int32_t)j;
    sort_entries(s, s->row_at, place, begin, s->entry, s->row_ptr);
    for (int64_t i = 0; i < n; i++)
        s->row_ptr[i + 1] += s->row_ptr[i];
    s->entries = s->row_ptr[n];
    TRY(alloc_large(s, (s->entries + 1) * 8, "entries", (void **)&s->first));
    TRY(alloc_large(s, s->entries * 4, "columns", (void **)&s->col));
    TRY(alloc_large(s, s->entries * (int64_t)spmv_type_size(s->values), "values", &s->val));
#pragma omp parallel for num_threads(host_team(s->ctx, s->nnz)) schedule(dynamic, 256)
    for (int64_t i = 0; i < n; i++) {
        int64_t end = s->row_ptr[i];
        for (int64_t k = begin[i]; k < begin[i + 1]; k++) {
            const int32_t col = place[s->a_col[s->entry[k]]];
            if (k > begin[i] && s->col[end - 1] == col)
                continue;
            s->col[end] = col;
            s->first[end++] = k;
        }
    }
    s->first[s->entries] = s->nnz;
done:
    host_free(place);
    host_free(begin);
    return st;
}

static void set_values(struct prepared_system *s, const void *values)
{
#pragma omp parallel for num_threads(host_team(s->ctx, s->nnz)) schedule(dynamic, 256)
    for (int64_t i = 0; i < s->rows; i++)
        for (int64_t k = s->row_ptr[i]; k < s->row_ptr[i + 1]; k++) {
            double sum = 0;
            for (int64_t e = s->first[k]; e < s->first[k + 1]; e++)
                sum += value_of(s, values, s->entry[e]);
            real_set(s->values, s->val, k,
                     ldexp(sum, s->row_exponent[s->row_at[i]] + s->col_exponent[s->col_at[s->col[k]]]));
        }
}

/* -------------------------------------------------------------------- vectors */

/* Copies 2^exponent[i] for each i, or for i = order[0], order[1], ..., to the context's memory;
 * NULL if all are 1. */
static spmv_status send_factors(const struct prepared_system *s, const int *exponent, const int32_t *order,
                                void **there)
{
    spmv_status st = SPMV_OK;
    const int64_t bytes = s->rows * (int64_t)spmv_type_size(s->type);
    bool ones = true;
    void *host = NULL;
    TRY(host_alloc(s->ctx, bytes, "scale factors", &host));
    for (int64_t i = 0; i < s->rows; i++) {
        const int power = exponent[order != NULL ? order[i] : i];
        ones = ones && power == 0;
        real_set(s->type, host, i, ldexp(1, power));
    }
    if (!ones) {
        TRY(spmv_alloc(s->ctx, bytes, there));
        TRY(spmv_upload(s->ctx, host, *there, bytes));
    }
done:
    host_free(host);
    return st;
}

/* Copies a permutation to the context's memory; NULL for the identity. */
static spmv_status send_permutation(const struct prepared_system *s, const int32_t *from, void **there)
{
    spmv_status st = SPMV_OK;
    int64_t moved = 0;
    for (int64_t i = 0; i < s->rows; i++)
        moved += from[i] != i;
    if (moved > 0) {
        TRY(spmv_alloc(s->ctx, s->rows * 4, there));
        TRY(spmv_upload(s->ctx, from, *there, s->rows * 4));
    }
done:
    return st;
}

static spmv_status send_vectors(struct prepared_system *s)
{
    spmv_status st = SPMV_OK;
    TRY(send_permutation(s, s->row_at, &s->rows_from));
    TRY(send_permutation(s, s->col_at, &s->cols_from));
    TRY(send_factors(s, s->row_exponent, s->row_at, &s->of_rhs));
    TRY(send_factors(s, s->col_exponent, NULL, &s->of_solution));
    TRY(spmv_synchronize(s->ctx));
done:
    return st;
}

/* out = factors * moved in: gathered by the permutation, or scattered. */
static spmv_status transform(const struct prepared_system *s, const char *name, bool scatter, const void *permutation,
                             const void *factors, const void *in, void *out)
{
    spmv_status st = SPMV_OK;
    if (s->rows == 0)
        return SPMV_OK;
    if (in == NULL || out == NULL || in == out)
        return context_fail(s->ctx, SPMV_ERROR_ARGUMENT, "%s: a vector is NULL, or both are the same", name);
    if (permutation == NULL && factors == NULL)
        return spmv_map(s->ctx, SPMV_MAP_COPY, s->type, in, out, s->rows);
    if (permutation != NULL) {
        TRY(scatter ? spmv_scatter(s->ctx, s->type, in, permutation, 32, out, s->rows, s->rows)
                    : spmv_gather(s->ctx, s->type, in, s->rows, permutation, 32, out, s->rows));
        in = out;
    }
    if (factors != NULL)
        TRY(spmv_map_binary(s->ctx, SPMV_MUL, s->type, in, factors, out, s->rows));
done:
    return st;
}

spmv_status prepared_system_rhs(const struct prepared_system *s, const void *b, void *c)
{
    return transform(s, "prepared_system_rhs", false, s->rows_from, s->of_rhs, b, c);
}

spmv_status prepared_system_solution(const struct prepared_system *s, const void *y, void *x)
{
    return transform(s, "prepared_system_solution", true, s->cols_from, s->of_solution, y, x);
}

/* out = the numbers of factors * in, moved: gathered by the permutation, or scattered. */
static spmv_status transform_transposed(const struct prepared_system *s, bool scatter, const void *permutation,
                                        const void *factors, const void *in, void *work, void *out)
{
    spmv_status st = SPMV_OK;
    if (s->rows == 0)
        return SPMV_OK;
    if (factors != NULL) {
        TRY(spmv_map_binary(s->ctx, SPMV_MUL, s->type, in, factors, permutation != NULL ? work : out, s->rows));
        in = work;
    }
    if (permutation != NULL)
        return scatter ? spmv_scatter(s->ctx, s->type, in, permutation, 32, out, s->rows, s->rows)
                       : spmv_gather(s->ctx, s->type, in, s->rows, permutation, 32, out, s->rows);
    if (factors == NULL)
        st = spmv_map(s->ctx, SPMV_MAP_COPY, s->type, in, out, s->rows);
done:
    return st;
}

spmv_status prepared_system_rhs_transposed(const struct prepared_system *s, const void *b, void *work, void *c)
{
    return transform_transposed(s, false, s->cols_from, s->of_solution, b, work, c);
}

spmv_status prepared_system_solution_transposed(const struct prepared_system *s, const void *y, void *work, void *x)
{
    return transform_transposed(s, true, s->rows_from, s->of_rhs, y, work, x);
}

/* --------------------------------------------------------------------- system */

/* Adds which steps were done. */
static void describe(struct prepared_system *s, const struct prepared_system_options *options, const struct findings *f)
{
    int least = 0, most = 0;
    for (int64_t i = 0; i < s->rows; i++) {
        least = s->row_exponent[i] < least ? s->row_exponent[i] : least;
        least = s->col_exponent[i] < least ? s->col_exponent[i] : least;
        most = s->row_exponent[i] > most ? s->row_exponent[i] : most;
        most = s->col_exponent[i] > most ? s->col_exponent[i] : most;
    }
    char scaled[80], matched[120];
    snprintf(scaled, sizeof scaled, least == 0 && most == 0 ? "not scaled" : "scaled by 2^%d to 2^%d", least, most);
    snprintf(matched, sizeof matched,
             f->matched     ? "rows matched to columns (diagonal entries missing or tiny: %lld)"
             : f->small > 0 ? "rows not matched to columns, though diagonal entries are missing or tiny: %lld"
                            : "rows not matched to columns, since no diagonal entry is missing or tiny",
             (long long)f->small);
    snprintf(s->sentence, sizeof s->sentence, "%s; %s; %s", scaled, matched,
             options->no_order ? "not reordered" : "reverse Cuthill-McKee order");
}

static spmv_status check_arguments(spmv_context *ctx, const spmv_csr *a, spmv_type *type)
{
    const spmv_status st = csr_check_shape(ctx, "prepared_system_create", a);
    if (st != SPMV_OK)
        return st;
    const spmv_type of = a->val != NULL ? a->type : SPMV_F64;
    if (a->rows != a->cols)
        return context_fail(ctx, SPMV_ERROR_NOT_SQUARE, "the matrix has %lld rows and %lld columns", (long long)a->rows,
                            (long long)a->cols);
    if (*type == SPMV_TYPE_DEFAULT)
        *type = of;
    if (!type_is_real(*type) || (of != *type && !(of == SPMV_F32 && *type == SPMV_F64)))
        return context_fail(ctx, SPMV_ERROR_TYPE,
                            "a matrix of type %s with vectors of type %s: f64 and f32 are supported, and an f32 matrix "
                            "with f64 vectors",
                            spmv_type_name(of), spmv_type_name(*type));
    return SPMV_OK;
}

spmv_status prepared_system_create(spmv_context *ctx, const spmv_csr *a, const struct prepared_system_options *options,
                                   struct prepared_system **system)
{
    spmv_status st = SPMV_OK;
    const struct prepared_system_options defaults = {.type = SPMV_TYPE_DEFAULT};
    const struct prepared_system_options o = options != NULL ? *options : defaults;
    struct prepared_system *s = NULL;
    struct magnitudes m = {0};
    struct findings f = {0};
    void *values = NULL;
    spmv_type type = o.type;
    *system = NULL;
    TRY(check_arguments(ctx, a, &type));
    TRY(host_alloc(ctx, sizeof *s, "a system", (void **)&s));
    *s = (struct prepared_system){.ctx = ctx,
                                  .type = type,
                                  .values = a->val != NULL ? a->type : SPMV_F64,
                                  .pattern = a->val == NULL,
                                  .memory = a->memory,
                                  .rows = a->rows,
                                  .nnz = a->nnz};
    TRY(take_matrix(s, a, &values));
    TRY(check_finite(s, values));
    TRY(take_magnitudes(s, values, &m));
    TRY(decide(s, &o, &m, &f));
    balance(&f, s->rows);
    TRY(take_findings(s, &o, &f));
    TRY(make_pattern(s));
    set_values(s, values);
    TRY(send_vectors(s));
    describe(s, &o, &f);
    *system = s;
done:
    host_free(values);
    magnitudes_release(&m);
    findings_release(&f);
    if (st != SPMV_OK)
        prepared_system_destroy(s);
    return st;
}

void prepared_system_destroy(struct prepared_system *s)
{
    if (s == NULL)
        return;
    host_free_all(s->a_ptr, s->a_col, s->row_ptr, s->col, s->val, s->entry, s->first, s->row_at, s->col_at,
                  s->row_exponent, s->col_exponent);
    context_free_all(s->ctx, s->rows_from, s->cols_from, s->of_rhs, s->of_solution);
    host_free(s);
}

spmv_csr prepared_system_matrix(const struct prepared_system *s)
{
    return csr_of(s->rows, s->rows, s->entries, s->row_ptr, s->col, s->val, s->values, SPMV_MEMORY_HOST);
}

const char *prepared_system_describe(const struct prepared_system *s)
{
    return s->sentence;
}
