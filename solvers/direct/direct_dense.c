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
 * Work: 2/3 n^3 operations for the factors (4 times as many if complex), 2 n^2 for a solution, less where factors have
 * zeros: of each row there is the set of columns whose number may be other than 0. Loops run along rows. PANEL columns
 * are eliminated before the columns behind them change, which are then read once for all; each number still changes by
 * one product after the other, in the order of the columns.
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

/* Compiled for AVX2 too, which is taken where the processor has it: the same operations in the same order. The choice is
 * made when the program is loaded, before the thread sanitizer is ready. */
#if defined __x86_64__ && !defined __SANITIZE_THREAD__
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

/* Columns that are eliminated together. */
enum { PANEL = 4 };
_Static_assert(PANEL == 4, "subtract_panel and solve_rows have four rows; those of a panel are in one word of a set");

/* Columns of a row outside of which its numbers are 0. */
struct span {
    int32_t begin, end;
    const int32_t *column; /* NULL: from begin to end; else, of few ones, column[begin] to column[end - 1] */
};

/* A row has few numbers if they are fewer than one in so many of the columns that they are spread over. */
enum { SPARSE = 8 };

struct dense {
    struct direct_problem problem;
    int64_t n;
    int parts;             /* doubles per number */
    const double *val;     /* of the problem, since the last factorisation */
    double *lu;            /* n x n numbers by rows: A', then its factors */
    int32_t *row_at;       /* row k of P A' is row row_at[k] of A' */
    bool odd;              /* P is of an odd number of exchanges */
    int32_t *near, *below; /* rows */
    int64_t words;         /* of a set of columns: j is in it if bit j % 64 of word j / 64 is set */
    uint64_t *in_row;      /* of each row: the columns whose number may be other than 0 */
    struct span *l, *u;    /* the rows of L and U */
    int32_t *columns;      /* of these spans */
    double *row, *col;     /* exponents of R and C */
    double *work;          /* 3 n numbers */
};

static double modulus(const double *number, int parts)
{
    return parts == 1 ? fabs(number[0]) : real_hypot(number[0], number[1]);
}

static bool is_member(const uint64_t *set, int64_t j)
{
    return (set[j / 64] >> j % 64 & 1) != 0;
}

/* The members of word w of a set, from `begin` on, before `end`. */
static uint64_t members_in(const uint64_t *set, int64_t w, int64_t begin, int64_t end)
{
    uint64_t word = set[w];
    if (w == begin / 64)
        word = word >> begin % 64 << begin % 64;
    if (end - w * 64 < 64)
        word &= ((uint64_t)1 << (end - w * 64)) - 1;
    return word;
}

/* The span of the members of a set from `begin` on, before `end`. room: for (end - begin) / SPARSE + 1 columns. */
static struct span span_of(const uint64_t *set, int64_t begin, int64_t end, int32_t *room)
{
    int64_t count = 0, first = end, last = begin;
    for (int64_t w = begin / 64; w * 64 < end; w++) {
        const uint64_t word = members_in(set, w, begin, end);
        if (word == 0)
            continue;
        count += __builtin_popcountll(word);
        first = min_i64(first, w * 64 + __builtin_ctzll(word));
        last = w * 64 + 64 - __builtin_clzll(word);
    }
    if (SPARSE * count >= last - first)
        return (struct span){(int32_t)first, (int32_t)max_i64(first, last), NULL};
    int32_t listed = 0;
    for (int64_t w = begin / 64; w * 64 < end; w++)
        for (uint64_t word = members_in(set, w, begin, end); word != 0; word &= word - 1)
            room[listed++] = (int32_t)(w * 64 + __builtin_ctzll(word));
    return (struct span){0, listed, room};
}

/* Columns that fit into the room of a row. */
static int64_t room_of(int64_t n)
{
    return n / SPARSE + 2;
}

/* The columns of row i. */
static uint64_t *in_row(const struct dense *d, int64_t i)
{
    return d->in_row + i * d->words;
}

static double *number_at(const struct dense *d, int64_t i, int64_t j)
{
    return d->lu + (i * d->n + j) * d->parts;
}

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

/* ldexp(x, exponent), by a product where the power of two is a normal number */
static double scaled(double x, double exponent)
{
    enum { MOST = 1022, BIAS = 1023, FRACTION = 52 };
    if (!(fabs(exponent) <= MOST))
        return ldexp(x, (int)exponent);
    const uint64_t bits = (uint64_t)((int64_t)exponent + BIAS) << FRACTION;
    double power = 0;
    memcpy(&power, &bits, sizeof power);
    return x * power;
}

/* to -= factor from, n numbers */
WIDE static void subtract_row(double *restrict to, const double *restrict from, const double *factor, int64_t n,
                              int parts)
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

/* to -= factor[p] row[p], one p after the other */
WIDE static void subtract_panel(double *restrict to, const double *const row[PANEL], const double *factor, int64_t n)
{
    const double *restrict const a = row[0], *restrict const b = row[1];
    const double *restrict const c = row[2], *restrict const d = row[3];
    const double of_a = factor[0], of_b = factor[1], of_c = factor[2], of_d = factor[3];
    for (int64_t j = 0; j < n; j++)
        to[j] = to[j] - of_a * a[j] - of_b * b[j] - of_c * c[j] - of_d * d[j];
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
    memset(d->in_row, 0, (size_t)(d->n * d->words) * sizeof *d->in_row);
    for (int64_t j = 0; j < d->n; j++) {
        double sum = 0;
        for (int64_t k = p->col_ptr[j]; k < p->col_ptr[j + 1]; k++) {
            double *const to = d->lu + (p->row[k] * d->n + j) * d->parts;
            in_row(d, p->row[k])[j / 64] |= (uint64_t)1 << j % 64;
            for (int q = 0; q < d->parts; q++)
                to[q] = scaled(d->val[k * d->parts + q], d->row[p->row[k]] + d->col[j]);
            sum += modulus(to, d->parts);
        }
        norm = fmax(norm, sum);
    }
    return norm;
}

static void swap_rows(struct dense *d, int64_t i, int64_t k)
{
    double *const of_i = number_at(d, i, 0), *const of_k = number_at(d, k, 0);
    for (int64_t j = 0; j < d->n * d->parts; j++) {
        const double kept = of_i[j];
        of_i[j] = of_k[j];
        of_k[j] = kept;
    }
    for (int64_t w = 0; w < d->words; w++) {
        const uint64_t kept = in_row(d, i)[w];
        in_row(d, i)[w] = in_row(d, k)[w];
        in_row(d, k)[w] = kept;
    }
    const int32_t kept = d->row_at[i];
    d->row_at[i] = d->row_at[k];
    d->row_at[k] = kept;
    d->odd = !d->odd;
}

/* to -= factor from, in these columns of two rows */
static void subtract_span(double *to, const double *from, const double *factor, struct span s, int parts)
{
    if (s.column == NULL)
        subtract_row(to + s.begin * parts, from + s.begin * parts, factor, s.end - s.begin, parts);
    else
        for (int32_t p = s.begin; p < s.end; p++)
            subtract(to + s.column[p] * parts, from + s.column[p] * parts, factor, parts);
}

/* Whether a row has columns of the panel that begins there: these are in one word. */
static bool meets_panel(const uint64_t *set, int64_t panel)
{
    return (set[panel / 64] >> panel % 64 & (((uint64_t)1 << PANEL) - 1)) != 0;
}

/* d->near: the rows from that of the panel on which have columns of it. None is added while the panel is eliminated: rows
 * change only by others that share a column, and exchanges are of one of them with the next row of the panel. Returns how
 * many. */
static int64_t find_near(const struct dense *d, int64_t panel)
{
    int64_t count = 0;
    for (int64_t i = panel; i < d->n; i++) {
        d->near[count] = (int32_t)i;
        count += meets_panel(in_row(d, i), panel);
    }
    return count;
}

/* d->below: those of them behind k that may have a number in column k. Returns how many. */
static int64_t find_below(const struct dense *d, int64_t k, int64_t near)
{
    int64_t count = 0;
    for (int64_t p = 0; p < near; p++) {
        d->below[count] = d->near[p];
        count += d->near[p] > k && is_member(in_row(d, d->near[p]), k);
    }
    return count;
}

/* The row of the largest number in column k. */
static int64_t find_pivot(const struct dense *d, int64_t k, int64_t below)
{
    int64_t pivot = k;
    double most = modulus(number_at(d, k, k), d->parts);
    for (int64_t p = 0; p < below; p++) {
        const double size = modulus(number_at(d, d->below[p], k), d->parts);
        if (size > most) {
            most = size;
            pivot = d->below[p];
        }
    }
    return pivot;
}

/* Eliminates column k, of the panel from `panel` to `end`: exchanges rows, and changes row k, and in the rows below the
 * columns of the panel. Returns whether there is a pivot. */
static bool eliminate_column(struct dense *d, int64_t k, int64_t panel, int64_t end, int64_t near)
{
    const int parts = d->parts;
    const int64_t below = find_below(d, k, near), pivot = find_pivot(d, k, below);
    const bool stays = is_member(in_row(d, k), k); /* row k, among those below, if another one takes its place */
    if (modulus(number_at(d, pivot, k), parts) == 0)
        return false;
    if (pivot != k)
        swap_rows(d, pivot, k);
    for (int64_t p = panel; p < k; p++)
        if (modulus(number_at(d, k, p), parts) != 0)
            subtract_row(number_at(d, k, end), number_at(d, p, end), number_at(d, k, p), d->n - end, parts);
    for (int64_t p = 0; p < below; p++) {
        const int64_t i = d->below[p];
        double *const of = number_at(d, i, k);
        if (i == pivot && !stays)
            continue;
        for (int64_t w = k / 64; w < d->words; w++)
            in_row(d, i)[w] |= w > k / 64 ? in_row(d, k)[w] : in_row(d, k)[w] & ~(uint64_t)1 << k % 64;
        if (modulus(of, parts) == 0)
            continue;
        divide(of, number_at(d, k, k), parts);
        for (int64_t j = k + 1; j < end; j++)
            subtract(number_at(d, i, j), number_at(d, k, j), of, parts);
    }
    return true;
}

/* Changes the columns behind the panel, in the rows below it. */
static void eliminate_behind(const struct dense *d, int64_t panel, int64_t end, int64_t near)
{
    const double *row[PANEL];
    struct span span[PANEL];
    int64_t last = end;
    for (int64_t p = 0; p < end - panel; p++) {
        row[p] = number_at(d, panel + p, end);
        span[p] = span_of(in_row(d, panel + p), end, d->n, d->columns + p * room_of(d->n));
        last = span[p].column == NULL ? max_i64(last, span[p].end) : last;
    }
    for (int64_t at = 0; at < near; at++) {
        const int64_t i = d->near[at];
        const double *const factor = number_at(d, i, panel);
        int full = 0;
        if (i < end)
            continue;
        for (int64_t p = 0; p < end - panel; p++)
            full += modulus(factor + p * d->parts, d->parts) != 0 && span[p].column == NULL;
        if (full == PANEL && d->parts == 1)
            subtract_panel(number_at(d, i, end), row, factor, last - end);
        else
            for (int64_t p = 0; p < end - panel; p++)
                if (modulus(factor + p * d->parts, d->parts) != 0)
                    subtract_span(number_at(d, i, 0), number_at(d, panel + p, 0), factor + p * d->parts, span[p],
                                  d->parts);
    }
}

static void find_spans(const struct dense *d)
{
    int32_t *room = d->columns;
    for (int64_t i = 0; i < d->n; i++) {
        d->l[i] = span_of(in_row(d, i), 0, i, room);
        room += d->l[i].column != NULL ? d->l[i].end : 0;
        d->u[i] = span_of(in_row(d, i), i + 1, d->n, room);
        room += d->u[i].column != NULL ? d->u[i].end : 0;
    }
}

/* P A' = L U in place. Returns the column without a pivot; -1 if there is none. */
static int64_t eliminate(struct dense *d)
{
    d->odd = false;
    for (int64_t i = 0; i < d->n; i++)
        d->row_at[i] = (int32_t)i;
    for (int64_t panel = 0; panel < d->n; panel += PANEL) {
        const int64_t end = min_i64(panel + PANEL, d->n), near = find_near(d, panel);
        for (int64_t k = panel; k < end; k++)
            if (!eliminate_column(d, k, panel, end, near))
                return k;
        eliminate_behind(d, panel, end, near);
    }
    find_spans(d);
    return -1;
}

/* ------------------------------------------------------------- solutions */

/* sum -= row x, in these columns */
static void subtract_dot(double *sum, const double *row, struct span s, const double *x, int parts)
{
    double own[2] = {sum[0], parts == 2 ? sum[1] : 0};
    if (s.column != NULL)
        for (int32_t p = s.begin; p < s.end; p++)
            subtract(own, row + s.column[p] * parts, x + s.column[p] * parts, parts);
    else if (parts == 1)
        for (int32_t j = s.begin; j < s.end; j++)
            own[0] -= row[j] * x[j];
    else
        for (int32_t j = s.begin; j < s.end; j++)
            subtract(own, row + 2 * j, x + 2 * j, 2);
    memcpy(sum, own, (size_t)parts * sizeof *sum);
}

/* x = L^-1 x for real rows i ... i + PANEL - 1, where x is known before: four sums at a time, which do not wait for each
 * other. Each is as subtract_dot has it. */
static void solve_rows(const struct dense *d, int64_t i, double *x)
{
    const double *const a = number_at(d, i, 0), *const b = a + d->n, *const c = b + d->n, *const e = c + d->n;
    int64_t first = i;
    for (int r = 0; r < PANEL; r++)
        first = min_i64(first, d->l[i + r].begin);
    double of_a = x[i], of_b = x[i + 1], of_c = x[i + 2], of_e = x[i + 3];
    for (int64_t j = first; j < i; j++) {
        of_a -= a[j] * x[j];
        of_b -= b[j] * x[j];
        of_c -= c[j] * x[j];
        of_e -= e[j] * x[j];
    }
    of_b -= b[i] * of_a;
    of_c = of_c - c[i] * of_a - c[i + 1] * of_b;
    of_e = of_e - e[i] * of_a - e[i + 1] * of_b - e[i + 2] * of_c;
    x[i] = of_a;
    x[i + 1] = of_b;
    x[i + 2] = of_c;
    x[i + 3] = of_e;
}

/* Whether solve_rows pays. */
static bool are_together(const struct dense *d, int64_t i)
{
    for (int r = 0; r < PANEL; r++)
        if (d->parts == 2 || i + r == d->n || d->l[i + r].column != NULL)
            return false;
    return true;
}

/* y = A'^-1 y; work: n numbers */
static void solve_scaled(const struct dense *d, double *y, double *work)
{
    const int64_t n = d->n;
    const int parts = d->parts;
    for (int64_t i = 0; i < n; i++)
        memcpy(work + i * parts, y + d->row_at[i] * parts, (size_t)parts * sizeof *y);
    for (int64_t i = 0; i < n; i++)
        if (are_together(d, i)) {
            solve_rows(d, i, work);
            i += PANEL - 1;
        } else {
            subtract_dot(work + i * parts, number_at(d, i, 0), d->l[i], work, parts);
        }
    for (int64_t i = n - 1; i >= 0; i--) {
        subtract_dot(work + i * parts, number_at(d, i, 0), d->u[i], work, parts);
        divide(work + i * parts, number_at(d, i, i), parts);
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
        divide(work + i * parts, number_at(d, i, i), parts);
        subtract_span(work, number_at(d, i, 0), work + i * parts, d->u[i], parts);
    }
    for (int64_t i = n - 1; i >= 0; i--)
        subtract_span(work, number_at(d, i, 0), work + i * parts, d->l[i], parts);
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
    host_free_all(d->lu, d->row_at, d->near, d->below, d->in_row, d->l, d->u, d->columns, d->row, d->col, d->work);
    host_free(d);
}

static spmv_status dense_open(const struct direct_problem *problem, void **state, struct direct_figures *figures,
                              char *why)
{
    spmv_status st = SPMV_OK;
    struct dense *d = NULL;
    const int64_t n = problem->n;
    const int parts = problem->complex ? 2 : 1;
    const int64_t words = ceil_divide(n, 64);
    const int64_t spans = n * (int64_t)sizeof *d->l, columns = max_i64(n, PANEL) * room_of(n) * 4;
    const int64_t sizes[] = {n * n * parts * 8, n * 4, n * 4, n * 4, n * words * 8, spans, spans, columns, n * 8, n * 8,
                             3 * n * parts * 8};
    *state = NULL;
    TRY(host_alloc(NULL, sizeof *d, "a dense factor", (void **)&d));
    *d = (struct dense){.problem = *problem, .n = n, .parts = parts, .words = words};
    void **const arrays[] = {(void **)&d->lu,     (void **)&d->row_at, (void **)&d->near, (void **)&d->below,
                             (void **)&d->in_row, (void **)&d->l,      (void **)&d->u,    (void **)&d->columns,
                             (void **)&d->row,    (void **)&d->col,    (void **)&d->work};
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
    for (int64_t i = 0; i < d->n; i++) {
        direct_product_add(&product, d->lu + i * (d->n + 1) * d->parts, d->parts == 2);
        exponents += d->row[i] + d->col[i];
    }
    if (d->odd)
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
        y[i] = scaled(y[i], first[i / d->parts]);
    if (adjoint)
        solve_transposed(d, y, work);
    else
        solve_scaled(d, y, work);
    for (int64_t i = 0; i < d->n * d->parts; i++)
        y[i] = scaled(y[i], last[i / d->parts]);
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
