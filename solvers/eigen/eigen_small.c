/* Small dense matrices: products, and eigenvalues by Householder's reduction and the implicit QL method.
 *
 * Source: G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th ed., 2013, section 8.3; the shifts: J. H. Wilkinson,
 * C. Reinsch, "Handbook for Automatic Computation", vol. 2, 1971, contribution II/4.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/eigen/eigen_small.h"

#include <complex.h>
#include <float.h>
#include <stdlib.h>

#include "core/hypot.h"

/* double _Complex and pairs of doubles have the same layout (C11 6.2.5). */
typedef double _Complex number;

#define NUMBER double
#define CONJ(x) (x)
#define REAL(x) (x)
#define SQUARE(x) ((x) * (x))
#define MODULUS(x) fabs(x)
#define TYPED(name) name##_real
#include "solvers/eigen/eigen_small_typed.h"
#undef NUMBER
#undef CONJ
#undef REAL
#undef SQUARE
#undef MODULUS
#undef TYPED
#define NUMBER number
#define CONJ(x) conj(x)
#define REAL(x) creal(x)
#define SQUARE(x) (creal(x) * creal(x) + cimag(x) * cimag(x))
#define MODULUS(x) real_hypot(creal(x), cimag(x))
#define TYPED(name) name##_complex
#include "solvers/eigen/eigen_small_typed.h"

void small_multiply(struct small a, bool a_adjoint, struct small b, int sign, struct small c)
{
    (a.parts == 1 ? multiply_real : multiply_complex)(a, a_adjoint, b, sign, c);
}

void small_copy(struct small from, struct small to)
{
    for (int i = 0; i < from.rows; i++)
        memcpy(small_at(to, i, 0), small_at(from, i, 0), (size_t)(from.columns * from.parts) * sizeof(double));
}

void small_clear(struct small m)
{
    for (int i = 0; i < m.rows; i++)
        memset(small_at(m, i, 0), 0, (size_t)(m.columns * m.parts) * sizeof(double));
}

void small_scale_columns(struct small m, const double *by)
{
    for (int i = 0; i < m.rows; i++)
        for (int j = 0; j < m.columns; j++)
            for (int c = 0; c < m.parts; c++)
                small_at(m, i, j)[c] *= by[j];
}

void small_scale_rows(struct small m, const double *by)
{
    for (int i = 0; i < m.rows; i++)
        for (int j = 0; j < m.columns * m.parts; j++)
            small_at(m, i, 0)[j] *= by[i];
}

void small_make_hermitian(struct small m)
{
    for (int i = 0; i < m.rows; i++) {
        if (m.parts == 2)
            small_at(m, i, i)[1] = 0;
        for (int j = 0; j < i; j++)
            for (int c = 0; c < m.parts; c++) {
                double *const low = small_at(m, i, j) + c, *const high = small_at(m, j, i) + c;
                const double mean = 0.5 * (*low + (c == 0 ? *high : -*high));
                *low = mean;
                *high = c == 0 ? mean : -mean;
            }
    }
}

/* ------------------------------------------------------------- eigenvalues */

/* Rotates rows i and i + 1 of z, for i = last - 1, ..., first, by c[i] and s[i]: of `width` columns, whose numbers of
 * row i stay in registers for the next rotation. */
static inline void rotate_columns(double *z, int n, int width, int first, int last, const double *c, const double *s)
{
    double f[8];
    for (int k = 0; k < width; k++)
        f[k] = z[(int64_t)last * n + k];
    for (int i = last - 1; i >= first; i--) {
        double *const restrict low = z + (int64_t)i * n, *const restrict high = low + n;
        const double cosine = c[i], sine = s[i];
        for (int k = 0; k < width; k++) {
            const double of_low = low[k];
            high[k] = sine * of_low + cosine * f[k];
            f[k] = cosine * of_low - sine * f[k];
        }
    }
    for (int k = 0; k < width; k++)
        z[(int64_t)first * n + k] = f[k];
}

static void rotate(double *z, int n, int first, int last, const double *c, const double *s)
{
    int k = 0;
    for (; k + 8 <= n; k += 8)
        rotate_columns(z + k, n, 8, first, last, c, s);
    for (; k < n; k++)
        rotate_columns(z + k, n, 1, first, last, c, s);
}

/* Eigenvalues d of the tridiagonal matrix d, e; row j of z becomes eigenvector j. turns: 2 n numbers. False: not found. */
static bool implicit_ql(int n, double *d, double *e, double *z, double *turns)
{
    double *const cosines = turns, *const sines = turns + n;
    enum { MOST = 60 };
    int exponent = 0;
    memset(z, 0, (size_t)n * (size_t)n * sizeof *z);
    for (int i = 0; i < n; i++)
        z[(int64_t)i * n + i] = 1;
    double norm = 0;
    e[n - 1] = 0;
    for (int i = 0; i < n; i++)
        norm = fmax(norm, fabs(d[i]) + fabs(e[i]));
    /* so that no square leaves the range; those that vanish are far below the roundoff */
    (void)frexp(norm, &exponent);
    exponent = exponent < -1000 ? -1000 : exponent;
    for (int i = 0; i < n; i++) {
        d[i] = ldexp(d[i], -exponent);
        e[i] = ldexp(e[i], -exponent);
    }
    norm = ldexp(norm, -exponent);
    for (int l = 0; l < n; l++)
        for (int step = 0;; step++) {
            int m = l;
            while (m < n - 1 && fabs(e[m]) > DBL_EPSILON * fmax(fabs(d[m]) + fabs(d[m + 1]), norm / 4))
                m++;
            if (m == l)
                break;
            if (step == MOST)
                return false;
            double g = (d[l + 1] - d[l]) / (2 * e[l]), r = real_hypot(g, 1), s = 1, c = 1, p = 0;
            int i = m - 1;
            g = d[m] - d[l] + e[l] / (g + copysign(r, g));
            for (; i >= l; i--) {
                const double f = s * e[i], b = c * e[i];
                e[i + 1] = r = sqrt(f * f + g * g);
                if (r == 0) {
                    d[i + 1] -= p;
                    e[m] = 0;
                    break;
                }
                s = f / r;
                c = g / r;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                cosines[i] = c;
                sines[i] = s;
            }
            rotate(z, n, i + 1, m, cosines, sines);
            if (r == 0 && i >= l)
                continue;
            d[l] -= p;
            e[l] = g;
            e[m] = 0;
        }
    for (int i = 0; i < n; i++)
        d[i] = ldexp(d[i], exponent);
    return true;
}

struct place {
    double value;
    int at;
};
static int by_value(const void *a, const void *b)
{
    const struct place *const x = a, *const y = b;
    return x->value != y->value ? (x->value < y->value ? -1 : 1) : x->at - y->at;
}

static bool is_finite(struct small m)
{
    for (int i = 0; i < m.rows; i++)
        for (int j = 0; j < m.columns * m.parts; j++)
            if (!isfinite(small_at(m, i, 0)[j]))
                return false;
    return true;
}

spmv_status small_eigen(spmv_context *ctx, struct small a, double *values, int first, struct small vectors)
{
    spmv_status st = SPMV_OK;
    const int n = a.rows, parts = a.parts;
    double *d = NULL, *z = NULL;
    struct place *order = NULL;
    if (n == 0)
        return st;
    TRY(host_alloc(ctx, (int64_t)n * (5 + 3 * parts) * 8, "a dense matrix", (void **)&d));
    TRY(host_alloc(ctx, (int64_t)n * n * 8, "a dense matrix", (void **)&z));
    TRY(host_alloc(ctx, (int64_t)n * (int64_t)sizeof *order, "a dense matrix", (void **)&order));
    double *const e = d + n, *const tau = e + n, *const turns = tau + n, *const phase = turns + 2 * n,
                  *const w = phase + n * parts, *const y = w + n * parts;
    bool found = is_finite(a);
    if (found) {
        if (parts == 1)
            reduce_real(a, d, e, tau, phase, w);
        else
            reduce_complex(a, d, e, tau, (number *)phase, (number *)w);
        found = implicit_ql(n, d, e, z, turns);
    }
    if (!found) {
        st =
            context_fail(ctx, SPMV_ERROR_NOT_FINITE, "eigenvalues: a projected matrix has numbers that are not finite");
        goto done;
    }
    for (int i = 0; i < n; i++)
        order[i] = (struct place){d[i], i};
    qsort(order, (size_t)n, sizeof *order, by_value);
    for (int i = 0; i < n; i++)
        values[i] = order[i].value;
    for (int j = 0; j < vectors.columns; j++) {
        const double *const of = z + (int64_t)order[first + j].at * n;
        if (parts == 1)
            transform_back_real(a, tau, phase, of, y, vectors, j);
        else
            transform_back_complex(a, tau, (const number *)phase, of, (number *)y, vectors, j);
    }
done:
    host_free_all(d, z, order);
    return st;
}

spmv_status small_orthonormalise(spmv_context *ctx, struct small g, double drop, struct small *to, int *rank,
                                 double *least)
{
    spmv_status st = SPMV_OK;
    const int n = g.rows;
    double *numbers = NULL, *vectors = NULL;
    *rank = 0;
    *least = 1;
    if (n == 0)
        return st;
    TRY(host_alloc(ctx, 2 * (int64_t)n * 8, "a Gram matrix", (void **)&numbers));
    TRY(host_alloc(ctx, (int64_t)n * n * g.parts * 8, "a Gram matrix", (void **)&vectors));
    double *const scale = numbers, *const values = numbers + n;
    for (int i = 0; i < n; i++) {
        const double square = small_at(g, i, i)[0];
        scale[i] = square > 0 && isfinite(square) ? 1 / sqrt(square) : 0;
    }
    small_scale_rows(g, scale);
    small_scale_columns(g, scale);
    for (int i = 0; i < n; i++)
        if (scale[i] == 0)
            small_at(g, i, i)[0] = 0;
    const struct small u = small_of(g.parts, n, n, vectors);
    TRY(small_eigen(ctx, g, values, 0, u));
    int from = 0;
    while (from < n && values[from] <= drop)
        from++;
    *rank = n - from;
    if (*rank > 0)
        *least = values[from];
    to->rows = n;
    to->columns = to->stride = *rank;
    small_copy(small_part(u, 0, from, n, *rank), *to);
    for (int j = 0; j < *rank; j++)
        values[j] = 1 / sqrt(values[from + j]);
    small_scale_columns(*to, values);
    small_scale_rows(*to, scale);
done:
    host_free_all(numbers, vectors);
    return st;
}
