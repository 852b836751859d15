/* A direct solver for small systems: LU factors of the whole square, with partial pivoting, whatever
 * the pattern is. It has the interface of a module (direct_module.h) and is part of the library.
 *
 *     R A C = A',  P A' = L U,  x = C U^-1 L^-1 P R b,  then one step of refinement
 *
 * and of the conjugate transpose x = R P' L^-H U^-H C b, with one step too.
 *
 * R and C are powers of two that make the largest entry of each row and column about 1
 * (prepare_equilibrate): the pivots and the estimate of the condition then do not depend on the
 * units of rows and columns. A matrix is singular to rounding if the estimated reciprocal condition
 * number of A' is below n units of roundoff.
 *
 * Everything is in f64 or c128, on the host, by one thread, so all backends have the same bits.
 *
 * Work: 2/3 n^3 operations for the factors (4 times as many if complex), 2 n^2 for a solution, less where rows of L
 * begin and rows of U end with zeros. Loops run along rows.
 *
 * Source: G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th ed., 2013, chapter 3; N. J. Higham,
 * "Accuracy and Stability of Numerical Algorithms", 2nd ed., 2002, chapter 12 (one step of refinement makes
 * the backward error of each row small) and 15 (the estimate of ||A^-1||_1: algorithm 15.4, also ACM
 * Trans. Math. Softw. 14, 1988).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/hypot.h"
#include "core/reals.h"
#include "core/runtime.h"
#include "solvers/direct/direct.h"
#include "solvers/modules/direct_module.h"
#include "solvers/prepare/prepared_system.h"

struct dense {
    struct direct_problem problem;
    int64_t n;
    int parts;         /* doubles per number */
    const double *val; /* of the problem, since the last factorisation */
    double *lu;        /* n x n numbers by rows: A', then its factors */
    int32_t *row_at;   /* row k of P A' is row row_at[k] of A' */
    int32_t *first;    /* row i of L has zeros before this column; */
    int32_t *last;     /* row i of U after this one: of few entries, most do */
    double *row, *col; /* exponents of R and C */
    double *work;      /* 3 n numbers */
};

static double modulus(const double *number, int parts)
{
    return parts == 1 ? fabs(number[0]) : real_hypot(number[0], number[1]);
}

/* to -= factor from, n numbers */
static void subtract_row(double *restrict to, const double *restrict from, const double *factor, int64_t n, int parts)
{
    if (parts == 1)
        for (int64_t j = 0; j < n; j++)
            to[j] -= factor[0] * from[j];
    else
        for (int64_t j = 0; j < n; j++) {
            to[2 * j] -= factor[0] * from[2 * j] - factor[1] * from[2 * j + 1];
            to[2 * j + 1] -= factor[0] * from[2 * j + 1] + factor[1] * from[2 * j];
        }
}

/* a /= b, without overflow of the squares (R. L. Smith, Commun. ACM 5, 1962) */
static void divide(double *a, const double *b, int parts)
{
    if (parts == 1) {
        a[0] /= b[0];
        return;
    }
    const bool first = fabs(b[0]) >= fabs(b[1]);
    const double ratio = first ? b[1] / b[0] : b[0] / b[1], below = first ? b[0] + b[1] * ratio : b[0] * ratio + b[1];
    const double re = first ? a[0] + a[1] * ratio : a[0] * ratio + a[1];
    const double im = first ? a[1] - a[0] * ratio : a[1] * ratio - a[0];
    a[0] = re / below;
    a[1] = im / below;
}

/* ------------------------------------------------------------- factors */

/* Sets the exponents of R and C. */
static spmv_status equilibrate(const struct dense *d)
{
    spmv_status st = SPMV_OK;
    const struct direct_problem *const p = &d->problem;
    struct magnitudes m = {.rows = d->n}; /* of the transpose: its rows are the columns of A */
    TRY(host_alloc(NULL, (d->n + 1) * 8, "offsets", (void **)&m.ptr));
    TRY(host_alloc(NULL, p->col_ptr[d->n] * 4, "rows", (void **)&m.col));
    TRY(host_alloc(NULL, p->col_ptr[d->n] * 8, "logarithms of values", (void **)&m.log2));
    int64_t at = 0;
    for (int64_t j = 0; j < d->n; j++) {
        m.ptr[j] = at;
        for (int64_t k = p->col_ptr[j]; k < p->col_ptr[j + 1]; k++) {
            const double size = modulus(d->val + k * d->parts, d->parts);
            if (size > 0) {
                m.col[at] = (int32_t)p->row[k];
                m.log2[at++] = log2(size);
            }
        }
    }
    m.ptr[d->n] = at;
    TRY(prepare_equilibrate(NULL, &m, NULL, d->col, d->row));
    for (int64_t i = 0; i < d->n; i++) {
        d->row[i] = rint(d->row[i]);
        d->col[i] = rint(d->col[i]);
    }
done:
    host_free_all(m.ptr, m.col, m.log2);
    return st;
}

/* A' = R A C. Returns its 1-norm. */
static double fill(const struct dense *d)
{
    const struct direct_problem *const p = &d->problem;
    double norm = 0;
    memset(d->lu, 0, (size_t)(d->n * d->n * d->parts) * sizeof *d->lu);
    for (int64_t j = 0; j < d->n; j++) {
        double sum = 0;
        for (int64_t k = p->col_ptr[j]; k < p->col_ptr[j + 1]; k++) {
            double *const to = d->lu + (p->row[k] * d->n + j) * d->parts;
            for (int q = 0; q < d->parts; q++)
                to[q] = ldexp(d->val[k * d->parts + q], (int)(d->row[p->row[k]] + d->col[j]));
            sum += modulus(to, d->parts);
        }
        norm = fmax(norm, sum);
    }
    return norm;
}

static void swap_rows(const struct dense *d, int64_t i, int64_t k)
{
    for (int64_t j = 0; j < d->n * d->parts; j++) {
        const double kept = d->lu[i * d->n * d->parts + j];
        d->lu[i * d->n * d->parts + j] = d->lu[k * d->n * d->parts + j];
        d->lu[k * d->n * d->parts + j] = kept;
    }
    const int32_t kept = d->row_at[i];
    d->row_at[i] = d->row_at[k];
    d->row_at[k] = kept;
}

/* The column of the first number other than 0 in row i of L, and of the last one in row i of U. */
static int32_t first_of(const struct dense *d, int64_t i)
{
    const double *const row = d->lu + i * d->n * d->parts;
    int64_t at = 0;
    while (at < i * d->parts && row[at] == 0)
        at++;
    return (int32_t)(at / d->parts);
}

static int32_t last_of(const struct dense *d, int64_t i)
{
    const double *const row = d->lu + i * d->n * d->parts;
    int64_t at = d->n * d->parts - 1;
    while (at > i * d->parts && row[at] == 0)
        at--;
    return (int32_t)(at / d->parts);
}

/* P A' = L U in place. Returns the column without a pivot; -1 if there is none. */
static int64_t eliminate(const struct dense *d)
{
    const int64_t n = d->n, width = n * d->parts;
    for (int64_t i = 0; i < n; i++)
        d->row_at[i] = (int32_t)i;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (modulus(d->lu + i * width + k * d->parts, d->parts) >
                modulus(d->lu + pivot * width + k * d->parts, d->parts))
                pivot = i;
        double *const from = d->lu + pivot * width + k * d->parts;
        if (modulus(from, d->parts) == 0)
            return k;
        if (pivot != k)
            swap_rows(d, pivot, k);
        const double *const row = d->lu + k * width + k * d->parts;
        d->last[k] = last_of(d, k);
        for (int64_t i = k + 1; i < n; i++) {
            double *const of = d->lu + i * width + k * d->parts;
            if (modulus(of, d->parts) == 0)
                continue;
            divide(of, row, d->parts);
            subtract_row(of + d->parts, row + d->parts, of, d->last[k] - k, d->parts);
        }
    }
    for (int64_t i = 0; i < n; i++)
        d->first[i] = first_of(d, i);
    return -1;
}

/* ------------------------------------------------------------- solutions */

/* sum -= a b */
static void subtract(double *sum, const double *a, const double *b, int parts)
{
    if (parts == 1) {
        sum[0] -= a[0] * b[0];
        return;
    }
    sum[0] -= a[0] * b[0] - a[1] * b[1];
    sum[1] -= a[0] * b[1] + a[1] * b[0];
}

/* y = A'^-1 y; work: n numbers */
static void solve_scaled(const struct dense *d, double *y, double *work)
{
    const int64_t n = d->n;
    const int parts = d->parts;
    for (int64_t i = 0; i < n; i++) {
        memcpy(work + i * parts, y + d->row_at[i] * parts, (size_t)parts * sizeof *y);
        for (int64_t j = d->first[i]; j < i; j++)
            subtract(work + i * parts, d->lu + (i * n + j) * parts, work + j * parts, parts);
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t j = i + 1; j <= d->last[i]; j++)
            subtract(work + i * parts, d->lu + (i * n + j) * parts, work + j * parts, parts);
        divide(work + i * parts, d->lu + (i * n + i) * parts, parts);
    }
    memcpy(y, work, (size_t)(n * parts) * sizeof *y);
}

/* y = A'^-H y, with the conjugate transpose; work: n numbers */
static void solve_transposed(const struct dense *d, double *y, double *work)
{
    const int64_t n = d->n;
    const int parts = d->parts;
    /* A'^H = (P' L U)^H = U^H L^H P: conjugated numbers solve the transposed system */
    for (int64_t i = 0; i < n && parts == 2; i++)
        y[2 * i + 1] = -y[2 * i + 1];
    memcpy(work, y, (size_t)(n * parts) * sizeof *y);
    for (int64_t i = 0; i < n; i++) {
        divide(work + i * parts, d->lu + (i * n + i) * parts, parts);
        subtract_row(work + (i + 1) * parts, d->lu + (i * n + i + 1) * parts, work + i * parts, d->last[i] - i, parts);
    }
    for (int64_t i = n - 1; i >= 0; i--)
        subtract_row(work + d->first[i] * parts, d->lu + (i * n + d->first[i]) * parts, work + i * parts,
                     i - d->first[i], parts);
    for (int64_t i = 0; i < n; i++)
        memcpy(y + d->row_at[i] * parts, work + i * parts, (size_t)parts * sizeof *y);
    for (int64_t i = 0; i < n && parts == 2; i++)
        y[2 * i + 1] = -y[2 * i + 1];
}

/* An estimate of ||A'^-1||_1, which is at most that. */
static double estimate_inverse(const struct dense *d)
{
    enum { STEPS = 5 };
    const int64_t n = d->n;
    const int parts = d->parts;
    double *const x = d->work, *const work = d->work + n * parts;
    double estimate = 0;
    for (int64_t i = 0; i < n * parts; i++)
        x[i] = i % parts == 0 ? 1 / (double)n : 0;
    for (int step = 0; step < STEPS; step++) {
        double norm = 0, largest = 0;
        int64_t at = 0;
        solve_scaled(d, x, work);
        for (int64_t i = 0; i < n; i++)
            norm += modulus(x + i * parts, parts);
        if (!(norm > estimate))
            break;
        estimate = norm;
        for (int64_t i = 0; i < n; i++) { /* signs */
            const double size = modulus(x + i * parts, parts);
            for (int q = 0; q < parts; q++)
                x[i * parts + q] = size > 0 ? x[i * parts + q] / size : q == 0;
        }
        solve_transposed(d, x, work);
        for (int64_t i = 0; i < n; i++)
            if (modulus(x + i * parts, parts) > largest) {
                largest = modulus(x + i * parts, parts);
                at = i;
            }
        memset(x, 0, (size_t)(n * parts) * sizeof *x);
        x[at * parts] = 1;
    }
    /* a vector for which the steps above may stop too early */
    for (int64_t i = 0; i < n * parts; i++)
        x[i] =
            i % parts != 0 ? 0 : (i / parts % 2 == 0 ? 1 : -1) * (1 + (double)(i / parts) / (double)max_i64(1, n - 1));
    solve_scaled(d, x, work);
    double norm = 0;
    for (int64_t i = 0; i < n; i++)
        norm += modulus(x + i * parts, parts);
    return fmax(estimate, 2 * norm / (3 * (double)n));
}

/* ------------------------------------------------------------- the interface */

static void dense_close(void *state)
{
    struct dense *const d = state;
    host_free_all(d->lu, d->row_at, d->first, d->last, d->row, d->col, d->work);
    host_free(d);
}

static spmv_status dense_open(const struct direct_problem *problem, void **state, struct direct_figures *figures,
                              char *why)
{
    spmv_status st = SPMV_OK;
    struct dense *d = NULL;
    const int64_t n = problem->n;
    const int parts = problem->complex ? 2 : 1;
    const int64_t sizes[] = {n * n * parts * 8, n * 4, n * 4, n * 4, n * 8, n * 8, 3 * n * parts * 8};
    *state = NULL;
    TRY(host_alloc(NULL, sizeof *d, "a dense factor", (void **)&d));
    *d = (struct dense){.problem = *problem, .n = n, .parts = parts};
    void **const arrays[] = {(void **)&d->lu,  (void **)&d->row_at, (void **)&d->first, (void **)&d->last,
                             (void **)&d->row, (void **)&d->col,    (void **)&d->work};
    figures->bytes = sizeof *d;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        TRY(host_alloc(NULL, sizes[i], "a dense factor", arrays[i]));
        figures->bytes += sizes[i];
    }
    figures->ordering = "none";
    figures->blocks = 1;
    figures->expected = 0;
    *state = d;
done:
    if (st != SPMV_OK && d != NULL)
        dense_close(d);
    if (st != SPMV_OK)
        snprintf(why, DIRECT_WHY, "no memory for a dense factor of %lld rows", (long long)n);
    return st;
}

/* P R A C = L U */
static void tell_determinant(const struct dense *d, struct direct_figures *figures)
{
    struct direct_product product = direct_product_of_none();
    double exponents = 0;
    bool odd = false;
    for (int64_t i = 0; i < d->n; i++) {
        direct_product_add(&product, d->lu + i * (d->n + 1) * d->parts, d->parts == 2);
        exponents += d->row[i] + d->col[i];
        for (int64_t k = 0; k < i; k++)
            odd ^= d->row_at[k] > d->row_at[i];
    }
    if (odd)
        direct_product_add(&product, &(const double){-1}, false);
    product.log -= exponents * log(2);
    direct_product_tell(&product, figures);
}

static spmv_status dense_factor(void *state, const double *val, struct direct_figures *figures, char *why)
{
    struct dense *const d = state;
    d->val = val;
    if (equilibrate(d) != SPMV_OK) {
        snprintf(why, DIRECT_WHY, "no memory for scale factors");
        return SPMV_ERROR_MEMORY;
    }
    const double norm = fill(d);
    const int64_t without = eliminate(d);
    figures->nonzeros = d->n * d->n;
    figures->rcond = 0;
    if (without >= 0) {
        snprintf(why, DIRECT_WHY, "the matrix is singular: no pivot other than 0 is left for column %lld",
                 (long long)without + 1);
        return SPMV_ERROR_SINGULAR;
    }
    figures->rcond = 1 / (norm * estimate_inverse(d));
    if (!(figures->rcond >= (double)d->n * real_limits_of(SPMV_F64).roundoff)) {
        snprintf(why, DIRECT_WHY,
                 "the matrix is singular to rounding: its estimated reciprocal condition number is %.1e",
                 figures->rcond);
        return SPMV_ERROR_SINGULAR;
    }
    tell_determinant(d, figures);
    return SPMV_OK;
}

/* y = C A'^-1 R y; of the adjoint y = R A'^-H C y */
static void apply_inverse(const struct dense *d, bool adjoint, double *y, double *work)
{
    const double *const first = adjoint ? d->col : d->row, *const last = adjoint ? d->row : d->col;
    for (int64_t i = 0; i < d->n * d->parts; i++)
        y[i] = ldexp(y[i], (int)first[i / d->parts]);
    if (adjoint)
        solve_transposed(d, y, work);
    else
        solve_scaled(d, y, work);
    for (int64_t i = 0; i < d->n * d->parts; i++)
        y[i] = ldexp(y[i], (int)last[i / d->parts]);
}

/* r = r - A x, or r - A^H x */
static void subtract_product(const struct dense *d, bool adjoint, const double *x, double *r)
{
    const struct direct_problem *const p = &d->problem;
    for (int64_t j = 0; j < d->n; j++)
        for (int64_t k = p->col_ptr[j]; k < p->col_ptr[j + 1]; k++) {
            const int64_t to = adjoint ? j : p->row[k], from = adjoint ? p->row[k] : j;
            double value[2] = {d->val[k * d->parts], 0};
            if (d->parts == 2)
                value[1] = adjoint ? -d->val[2 * k + 1] : d->val[2 * k + 1];
            subtract(r + to * d->parts, value, x + from * d->parts, d->parts);
        }
}

static void solve_refined(const struct dense *d, bool adjoint, double *x)
{
    const int64_t count = d->n * d->parts;
    double *const r = d->work, *const work = r + count;
    memcpy(r, x, (size_t)count * sizeof *x); /* b */
    apply_inverse(d, adjoint, x, work);
    subtract_product(d, adjoint, x, r);
    apply_inverse(d, adjoint, r, work);
    for (int64_t i = 0; i < count; i++)
        if (isfinite(r[i]))
            x[i] += r[i];
}

static spmv_status solve_columns(const struct dense *d, bool adjoint, double *x, int64_t columns)
{
    for (int64_t v = 0; v < columns; v++)
        solve_refined(d, adjoint, x + v * d->n * d->parts);
    return SPMV_OK;
}

static spmv_status dense_solve(void *state, double *x, int64_t columns, char *why)
{
    (void)why;
    return solve_columns(state, false, x, columns);
}

static spmv_status dense_solve_adjoint(void *state, double *x, int64_t columns, char *why)
{
    (void)why;
    return solve_columns(state, true, x, columns);
}

const struct direct_module direct_dense = {.abi = DIRECT_MODULE_ABI,
                                           .version = "dense LU",
                                           .open = dense_open,
                                           .factor = dense_factor,
                                           .solve = dense_solve,
                                           .solve_adjoint = dense_solve_adjoint,
                                           .close = dense_close};
