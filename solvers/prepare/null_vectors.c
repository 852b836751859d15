/* Null vectors that the caller gives: see null_vectors.h.
 *
 * A v is formed on the host in f64, beside |A| |v|, whose roundoffs are the rounding of A v. A matrix from a file often
 * has fewer digits than its type. So ||A v|| may be 2^-26 of || |A| |v| ||, the square root of the unit roundoff of
 * f64, and 2^-17 where A or v are in f32. A residual counts the part of b that is split off, so an inexact vector makes
 * no status wrong.
 *
 * Orthonormalisation: modified Gram-Schmidt, each vector twice (L. Giraud, J. Langou, M. Rozloznik, Comput. Math.
 * Appl. 50, 2005). Sums are in the order of the rows, so the bits do not depend on the threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/prepare/null_vectors.h"

#include <math.h>

#include "core/reals.h"
#include "formats/matrix_internal.h"

static const char what[] = "null vectors";

/* ------------------------------------------------------------- taking */

static spmv_status check_numbers(spmv_context *ctx, const struct null_vectors *n)
{
    for (int64_t k = 0; k < n->rows * n->count * n->parts; k++)
        if (!isfinite(n->at[k])) {
            const int64_t element = k / n->parts;
            return context_fail(ctx, SPMV_ERROR_NOT_FINITE,
                                "spmv_solver_create: null vector %lld of %d has a number that is not finite in row "
                                "%lld%s",
                                (long long)(element % n->count) + 1, n->count, context_number(ctx, element / n->count),
                                context_counted(ctx));
        }
    return SPMV_OK;
}

static spmv_status fill(spmv_context *ctx, struct null_vectors *n, spmv_type type, const struct null_given *given)
{
    spmv_status st = SPMV_OK;
    const int64_t numbers = n->rows * n->count * n->parts;
    void *copy = NULL;
    const void *from = NULL;
    if (given->vectors == NULL) {
        for (int64_t i = 0; i < n->rows; i++)
            n->at[(i * n->count + i % n->count) * n->parts] = 1;
        return st;
    }
    TRY(context_read(ctx, given->vectors, numbers * real_bytes(type_part(type)), what, &copy, &from));
    for (int64_t k = 0; k < numbers; k++)
        n->at[k] = real_at(type_part(type), from, k);
    TRY(check_numbers(ctx, n));
done:
    host_free(copy);
    return st;
}

/* ------------------------------------------------------------- products */

/* Entry k of A, or of its conjugate. */
static void entry(const spmv_csr *a, int64_t k, bool conjugate, double value[2])
{
    const spmv_type part = type_part(a->type);
    const bool complex = a->val != NULL && type_is_complex(a->type);
    value[0] = a->val == NULL ? 1 : real_at(part, a->val, complex ? 2 * k : k);
    value[1] = !complex ? 0 : real_at(part, a->val, 2 * k + 1) * (conjugate ? -1 : 1);
}

/* sums, count times 3 numbers a row, += a_ij v_j (or conj(a_ij) v_j): its parts, and its modulus. */
static void add_product(const struct null_vectors *n, const double value[2], const double *v, double *sums)
{
    for (int j = 0; j < n->count; j++, v += n->parts, sums += 3) {
        const double re = v[0], im = n->parts == 2 ? v[1] : 0;
        sums[0] += value[0] * re - value[1] * im;
        sums[1] += value[0] * im + value[1] * re;
        sums[2] += n->parts == 1 ? fabs(value[0] * re) : hypot(value[0], value[1]) * hypot(re, im);
    }
}

/* Norms of A v and of |A| |v|, or with the adjoint, of each vector: *zero: all are 0 up to rounding, else *worst is
 * the first vector that is not. */
static spmv_status look_at_products(spmv_context *ctx, const spmv_csr *a, const struct null_vectors *n, bool adjoint,
                                    bool *zero, int *worst, double norms[2])
{
    spmv_status st = SPMV_OK;
    const int64_t width = n->count * (int64_t)3, row = n->count * (int64_t)n->parts;
    double *sums = NULL;
    TRY(host_zeros(ctx, max_i64(1, n->rows * width) * 8, what, (void **)&sums));
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            double value[2];
            entry(a, k, adjoint, value);
            add_product(n, value, n->at + (adjoint ? i : a->col[k]) * row, sums + (adjoint ? a->col[k] : i) * width);
        }
    *zero = true;
    for (int j = 0; j < n->count && *zero; j++) {
        long double product = 0, terms = 0;
        for (int64_t i = 0; i < n->rows; i++) {
            const double *const s = sums + i * width + j * (int64_t)3;
            product += (long double)s[0] * s[0] + (long double)s[1] * s[1];
            terms += (long double)s[2] * s[2];
        }
        norms[0] = (double)sqrtl(product);
        norms[1] = n->least * (double)sqrtl(terms);
        *zero = norms[0] <= norms[1];
        *worst = j;
    }
done:
    host_free(sums);
    return st;
}

/* ||A v|| must be 0 up to rounding, of the vectors as they are given. */
static spmv_status check_products(spmv_context *ctx, const spmv_csr *a, struct null_vectors *n, bool symmetric)
{
    spmv_status st = SPMV_OK;
    struct csr_copies copies = {0};
    spmv_csr host;
    bool zero = false;
    int worst = 0;
    double norms[2];
    TRY(csr_to_host(ctx, a, false, &host, &copies));
    TRY(look_at_products(ctx, &host, n, false, &zero, &worst, norms));
    if (!zero) {
        st = context_fail(ctx, SPMV_ERROR_ARGUMENT,
                          "spmv_solver_create: vector %d of %d is not a null vector of A: for v of length 1, ||A v|| "
                          "is %.3g, more than the %.3g that rounding may leave: correct it, or leave it out",
                          worst + 1, n->count, norms[0], norms[1]);
        goto done;
    }
    n->splits = symmetric;
    if (!symmetric)
        TRY(look_at_products(ctx, &host, n, true, &n->splits, &worst, norms));
done:
    csr_free_host(&copies);
    return st;
}

/* ------------------------------------------------------------- lengths */

static double *number(const struct null_vectors *n, int64_t i, int j)
{
    return n->at + (i * n->count + j) * n->parts;
}

static double length(const struct null_vectors *n, int j)
{
    long double sum = 0;
    for (int64_t i = 0; i < n->rows; i++)
        for (int c = 0; c < n->parts; c++)
            sum += (long double)number(n, i, j)[c] * number(n, i, j)[c];
    return (double)sqrtl(sum);
}

static void divide(struct null_vectors *n, int j, double by)
{
    for (int64_t i = 0; i < n->rows; i++)
        for (int c = 0; c < n->parts; c++)
            number(n, i, j)[c] /= by;
}

/* The largest part is 1 before, so that no square leaves the range. */
static spmv_status scale(spmv_context *ctx, struct null_vectors *n)
{
    for (int j = 0; j < n->count; j++) {
        double largest = 0;
        for (int64_t i = 0; i < n->rows; i++)
            for (int c = 0; c < n->parts; c++)
                largest = fmax(largest, fabs(number(n, i, j)[c]));
        if (largest == 0)
            return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_solver_create: null vector %d of %d is 0", j + 1,
                                n->count);
        divide(n, j, largest);
        divide(n, j, length(n, j));
    }
    return SPMV_OK;
}

/* Vector j -= its part along vector k. */
static void remove_part(struct null_vectors *n, int k, int j)
{
    long double sum[2] = {0, 0};
    for (int64_t i = 0; i < n->rows; i++) {
        const double *const q = number(n, i, k), *const v = number(n, i, j);
        sum[0] += (long double)q[0] * v[0] + (n->parts == 2 ? (long double)q[1] * v[1] : 0);
        sum[1] += n->parts == 2 ? (long double)q[0] * v[1] - (long double)q[1] * v[0] : 0;
    }
    for (int64_t i = 0; i < n->rows; i++) {
        const double *const q = number(n, i, k);
        double *const v = number(n, i, j);
        const double re = q[0], im = n->parts == 2 ? q[1] : 0;
        v[0] = (double)(v[0] - (sum[0] * re - sum[1] * im));
        if (n->parts == 2)
            v[1] = (double)(v[1] - (sum[0] * im + sum[1] * re));
    }
}

/* Vectors that are not kept leave no gap. */
static void pack(struct null_vectors *n, const bool *keeps, int kept)
{
    double *to = n->at;
    for (int64_t i = 0; i < n->rows; i++)
        for (int j = 0; j < n->count; j++)
            for (int c = 0; c < n->parts && keeps[j]; c++)
                *to++ = n->at[(i * n->count + j) * n->parts + c];
    n->count = kept;
}

void null_vectors_orthonormalise(struct null_vectors *n)
{
    bool keeps[NULL_VECTORS_MOST];
    int kept = 0;
    for (int j = 0; j < n->count; j++) {
        keeps[j] = length(n, j) > n->least;
        for (int pass = 0; pass < 2 && keeps[j]; pass++) {
            for (int k = 0; k < j; k++)
                if (keeps[k])
                    remove_part(n, k, j);
            const double left = length(n, j);
            keeps[j] = left > n->least;
            if (keeps[j])
                divide(n, j, left);
        }
        kept += keeps[j];
    }
    if (kept < n->count)
        pack(n, keeps, kept);
}

/* ------------------------------------------------------------- making and splitting */

static double least_of(const spmv_csr *a, spmv_type type)
{
    const bool wide = type_part(type) == SPMV_F64 && (a->val == NULL || type_part(a->type) == SPMV_F64);
    return ldexp(1, wide ? -26 : -17);
}

spmv_status null_vectors_take(spmv_context *ctx, const spmv_csr *a, spmv_type type, const struct null_given *given,
                              bool symmetric, struct null_vectors **taken)
{
    spmv_status st = SPMV_OK;
    struct null_vectors *n = NULL;
    const int count = given->vectors != NULL ? given->count : given->block;
    *taken = NULL;
    if (given->vectors == NULL && a->rows % count != 0)
        return context_fail(ctx, SPMV_ERROR_SIZE,
                            "spmv_solver_create: %lld rows are not a multiple of the option null_block, %d",
                            (long long)a->rows, count);
    if (a->rows == 0)
        return st;
    TRY(host_zeros(ctx, sizeof *n, what, (void **)&n));
    n->rows = a->rows;
    n->count = count;
    n->parts = type_parts(type);
    n->least = least_of(a, type);
    TRY(host_zeros(ctx, n->rows * count * n->parts * 8, what, (void **)&n->at));
    TRY(host_alloc(ctx, count * n->parts * (int64_t)sizeof *n->sum, what, (void **)&n->sum));
    TRY(fill(ctx, n, type, given));
    TRY(scale(ctx, n));
    TRY(check_products(ctx, a, n, symmetric));
    *taken = n;
    n = NULL;
done:
    null_vectors_destroy(n);
    return st;
}

void null_vectors_destroy(struct null_vectors *n)
{
    if (n == NULL)
        return;
    host_free_all(n->at, n->sum);
    host_free(n);
}

long double null_vectors_split(const struct null_vectors *n, spmv_type type, void *to)
{
    const spmv_type part = type_part(type);
    const int parts = n->parts;
    long double along = 0;
    memset(n->sum, 0, (size_t)(n->count * parts) * sizeof *n->sum);
    for (int64_t i = 0; i < n->rows; i++) {
        const double re = real_at(part, to, i * parts), im = parts == 2 ? real_at(part, to, i * parts + 1) : 0;
        for (int j = 0; j < n->count; j++) {
            const double *const q = number(n, i, j);
            n->sum[j * parts] += (long double)q[0] * re + (parts == 2 ? (long double)q[1] * im : 0);
            if (parts == 2)
                n->sum[2 * j + 1] += (long double)q[0] * im - (long double)q[1] * re;
        }
    }
    for (int k = 0; k < n->count * parts; k++)
        along += n->sum[k] * n->sum[k];
    for (int64_t i = 0; i < n->rows; i++) {
        long double re = real_at(part, to, i * parts), im = parts == 2 ? real_at(part, to, i * parts + 1) : 0;
        for (int j = 0; j < n->count; j++) {
            const double *const q = number(n, i, j);
            const long double *const s = n->sum + j * parts;
            re -= s[0] * q[0] - (parts == 2 ? s[1] * q[1] : 0);
            im -= parts == 2 ? s[0] * q[1] + s[1] * q[0] : 0;
        }
        real_set(part, to, i * parts, (double)re);
        if (parts == 2)
            real_set(part, to, i * parts + 1, (double)im);
    }
    return along;
}

int64_t null_vectors_bytes(const struct null_vectors *n)
{
    return n == NULL ? 0 : n->rows * n->count * n->parts * 8;
}
