/* Null vectors that the caller gives: see null_vectors.h.
 *
 * A v is formed on the host in f64, beside |A| |v|, whose roundoffs are the rounding of A v. A matrix from a file often
 * has fewer digits than its type. So ||A v|| may be 2^-26 of || |A| |v| ||, the square root of the unit roundoff of
 * f64, and 2^-17 where A or v are in f32. A residual counts the part of b that is split off, so an inexact vector makes
 * no status wrong.
 *
 * Orthonormalisation: modified Gram-Schmidt, each vector twice (L. Giraud, J. Langou, M. Rozloznik, Comput. Math.
 * Appl. 50, 2005). Sums are in the order of the rows, so the bits do not depend on the threads. With ranks they are in
 * the order of the rows of a chunk, and then of the chunks of all ranks, so the bits do not depend on their number.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/prepare/null_vectors.h"

#include <math.h>

#include "core/hypot.h"
#include "core/reals.h"
#include "formats/matrix_internal.h"
#include "solvers/prepare/null_space_ranks.h"

static const char what[] = "null vectors";

/* ------------------------------------------------------------- taking */

/* *value becomes the largest of all ranks. */
static spmv_status largest(const struct null_vectors *n, double *value)
{
    return n->ranks != NULL ? n->ranks->largest(n->ranks->self, value) : SPMV_OK;
}

static spmv_status check_numbers(spmv_context *ctx, const struct null_vectors *n)
{
    spmv_status st = SPMV_OK;
    const int64_t row = n->count * (int64_t)n->parts;
    double found = -INFINITY; /* less the number of the first element that is not finite */
    for (int64_t k = 0; k < n->rows * row && found < 0 && isinf(found); k++)
        if (!isfinite(n->at[k]))
            found = -(double)(n->first * n->count + k / n->parts);
    TRY(largest(n, &found));
    if (!isinf(found)) {
        const int64_t element = (int64_t)-found;
        st = context_fail(ctx, SPMV_ERROR_NOT_FINITE,
                          "spmv_solver_create: null vector %lld of %d has a number that is not finite in row %lld%s",
                          (long long)(element % n->count) + 1, n->count, context_number(ctx, element / n->count),
                          context_counted(ctx));
    }
done:
    return st;
}

static spmv_status fill(spmv_context *ctx, struct null_vectors *n, spmv_type type, const struct null_given *given)
{
    spmv_status st = SPMV_OK;
    const int64_t numbers = n->rows * n->count * n->parts;
    void *copy = NULL;
    const void *from = NULL;
    if (given->block > 0) {
        for (int64_t i = 0; i < n->rows; i++)
            n->at[(i * n->count + (n->first + i) % n->count) * n->parts] = 1;
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

/* sums, count times 3 numbers, += a_ij v_j (or conj(a_ij) v_j): its parts, and its modulus. */
static void add_product(const struct null_vectors *n, const double value[2], const double *v, double *sums)
{
    for (int j = 0; j < n->count; j++, v += n->parts, sums += 3) {
        const double re = v[0], im = n->parts == 2 ? v[1] : 0;
        sums[0] += value[0] * re - value[1] * im;
        sums[1] += value[0] * im + value[1] * re;
        sums[2] += n->parts == 1 ? fabs(value[0] * re) : real_hypot(value[0], value[1]) * real_hypot(re, im);
    }
}

/* What products with the vectors say. */
struct verdict {
    bool zero;      /* all are 0 up to rounding */
    int worst;      /* else: the first vector whose product is not */
    double norm[2]; /* of A v, and the largest that rounding may leave */
};

/* The products of A, or of its conjugate, with vectors that have a row for each column of A. */
static spmv_status look_at_products(spmv_context *ctx, const spmv_csr *a, bool conjugate, const struct null_vectors *n,
                                    const double *v, struct verdict *verdict)
{
    spmv_status st = SPMV_OK;
    const int64_t width = n->count * (int64_t)3, row = n->count * (int64_t)n->parts;
    const struct null_chunks *const chunks = n->chunks;
    double *sums = NULL;
    TRY(host_alloc(ctx, width * 8, what, (void **)&sums));
    for (int64_t c = 0; c < chunks->count; c++) {
        long double *const own = chunks->own + 2 * c * n->count;
        for (int j = 0; j < 2 * n->count; j++)
            own[j] = 0;
        for (int64_t i = chunks->chunk[c]; i < chunks->chunk[c + 1]; i++) {
            for (int64_t k = 0; k < width; k++)
                sums[k] = 0;
            for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
                double value[2];
                entry(a, k, conjugate, value);
                add_product(n, value, v + a->col[k] * row, sums);
            }
            for (int j = 0; j < n->count; j++) {
                const double *const s = sums + j * (int64_t)3;
                own[2 * j] += (long double)s[0] * s[0] + (long double)s[1] * s[1];
                own[2 * j + 1] += (long double)s[2] * s[2];
            }
        }
    }
    TRY(null_chunks_add(chunks, 2 * n->count, n->sum));
    verdict->zero = true;
    for (int j = 0; j < n->count && verdict->zero; j++) {
        verdict->worst = j;
        verdict->norm[0] = (double)sqrtl(n->sum[2 * j]);
        verdict->norm[1] = n->least * (double)sqrtl(n->sum[2 * j + 1]);
        verdict->zero = verdict->norm[0] <= verdict->norm[1];
    }
done:
    host_free(sums);
    return st;
}

/* *all: the vectors with the rows of other ranks that a halo has. */
static spmv_status fetch(spmv_context *ctx, const struct null_vectors *n, const struct rank_halo *h, double **all)
{
    spmv_status st = SPMV_OK;
    const int64_t row = n->count * (int64_t)n->parts;
    TRY(host_zeros(ctx, max_i64(1, (h->room + h->own + h->after) * row) * 8, what, (void **)all));
    if (n->rows > 0)
        memcpy(*all + h->room * row, n->at, (size_t)(n->rows * row) * 8);
    TRY(null_ranks_fetch(ctx, n->ranks->tools, h, *all, row * 8));
done:
    return st;
}

/* The products of A that ranks have. a: own rows, with columns as in struct plan_ranks, in host memory. */
static spmv_status look_over_ranks(spmv_context *ctx, const spmv_csr *a, const struct null_vectors *n,
                                   const struct rank_halo *h, struct verdict *verdict)
{
    spmv_status st = SPMV_OK;
    double *all = NULL;
    TRY(fetch(ctx, n, h, &all));
    TRY(look_at_products(ctx, a, false, n, all, verdict));
done:
    host_free(all);
    return st;
}

/* ------------------------------------------------------------- products of the adjoint */

static spmv_status look_at_adjoint(spmv_context *ctx, const spmv_csr *a, const struct null_vectors *n,
                                   struct verdict *verdict)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *transpose = NULL;
    spmv_csr t;
    TRY(csr_transpose(ctx, a, &transpose));
    spmv_matrix_view(transpose, &t);
    TRY(look_at_products(ctx, &t, true, n, n->at, verdict));
done:
    spmv_matrix_destroy(transpose);
    return st;
}

/* Own rows with the columns of the whole matrix, and with values if a is a pattern. */
struct own_rows {
    int64_t *row_ptr;
    int32_t *col;
    double *val;
    spmv_csr view;
};

static spmv_status take_rows(spmv_context *ctx, const spmv_csr *a, const struct rank_halo *h, int64_t cols,
                             struct own_rows *own)
{
    spmv_status st = SPMV_OK;
    TRY(host_alloc(ctx, (a->rows + 1) * 8, what, (void **)&own->row_ptr));
    TRY(host_alloc(ctx, max_i64(1, a->nnz) * 4, what, (void **)&own->col));
    if (a->val == NULL)
        TRY(host_alloc(ctx, max_i64(1, a->nnz) * 8, what, (void **)&own->val));
    for (int64_t i = 0; i <= a->rows; i++)
        own->row_ptr[i] = row_first(a, i);
    for (int64_t k = 0; k < a->nnz; k++) {
        const int64_t place = a->col[k] - h->room;
        own->col[k] = place < 0        ? h->ghost[place + h->before]
                      : place < h->own ? (int32_t)(h->first + place)
                                       : h->ghost[h->before + place - h->own];
        if (a->val == NULL)
            own->val[k] = 1;
    }
    own->view = csr_of(a->rows, cols, a->nnz, own->row_ptr, own->col, a->val != NULL ? a->val : own->val,
                       a->val != NULL ? a->type : SPMV_F64, SPMV_MEMORY_HOST);
done:
    return st;
}

/* The products of own rows of the transpose, in the context's memory. */
static spmv_status look_at_transposed(spmv_context *ctx, const struct rank_arrays *arrays, spmv_type type,
                                      const struct null_vectors *n, const int64_t *row_of_rank, struct verdict *verdict)
{
    spmv_status st = SPMV_OK;
    const struct plan_ranks *const ranks = n->ranks;
    const struct rank_rows rows = {.rows = arrays->rows,
                                   .nnz = arrays->nnz,
                                   .row_ptr = arrays->row_ptr,
                                   .col = arrays->col,
                                   .col_of_rank = row_of_rank,
                                   .cols = n->all_rows,
                                   .chunk = ranks->chunk,
                                   .chunks = ranks->chunks,
                                   .type = SPMV_F64};
    struct csr_copies copies = {0};
    struct rank_halo *halo = NULL;
    double *all = NULL;
    spmv_csr t;
    TRY(ranks->tools->open(ranks->self, &rows, &halo));
    t = csr_of(arrays->rows, halo->room + halo->own + halo->after, arrays->nnz, arrays->row_ptr, arrays->col,
               arrays->val, type, SPMV_MEMORY_CONTEXT);
    TRY(csr_to_host(ctx, &t, false, &t, &copies));
    TRY(fetch(ctx, n, halo, &all));
    TRY(look_at_products(ctx, &t, true, n, all, verdict));
done:
    if (halo != NULL)
        ranks->tools->close(halo);
    csr_free_host(&copies);
    host_free(all);
    return st;
}

/* a: as in look_over_ranks. */
static spmv_status look_at_adjoint_over_ranks(spmv_context *ctx, const spmv_csr *a, const struct null_vectors *n,
                                              const struct rank_first *first, struct verdict *verdict)
{
    spmv_status st = SPMV_OK;
    const struct plan_ranks *const ranks = n->ranks;
    struct csr_copies copies = {0};
    struct rank_arrays t = {.nnz = 0};
    struct own_rows own = {.row_ptr = NULL};
    spmv_csr there;
    TRY(take_rows(ctx, a, first->halo, n->all_rows, &own));
    TRY(csr_to_context(ctx, &own.view, false, &there, &copies));
    TRY(ranks->tools->transpose(ranks->self, first->row_of_rank, first->row_of_rank, &there, &t));
    TRY(look_at_transposed(ctx, &t, own.view.type, n, first->row_of_rank, verdict));
done:
    csr_free_context(ctx, &copies);
    context_free_all(ctx, t.row_ptr, t.col, t.val);
    host_free_all(own.row_ptr, own.col, own.val);
    return st;
}

/* ||A v|| must be 0 up to rounding, of the vectors as they are given. */
static spmv_status check_products(spmv_context *ctx, const spmv_csr *a, struct null_vectors *n, bool symmetric)
{
    spmv_status st = SPMV_OK;
    struct csr_copies copies = {0};
    struct rank_first first = {.halo = NULL};
    struct verdict verdict;
    spmv_csr host;
    TRY(csr_to_host(ctx, a, false, &host, &copies));
    if (n->ranks != NULL)
        TRY(n->ranks->tools->first(n->ranks->self, SPMV_F64, &first));
    TRY(n->ranks != NULL ? look_over_ranks(ctx, &host, n, first.halo, &verdict)
                         : look_at_products(ctx, &host, false, n, n->at, &verdict));
    if (!verdict.zero) {
        st = context_fail(ctx, SPMV_ERROR_ARGUMENT,
                          "spmv_solver_create: vector %d of %d is not a null vector of A: for v of length 1, ||A v|| "
                          "is %.3g, more than the %.3g that rounding may leave: correct it, or leave it out",
                          verdict.worst + 1, n->count, verdict.norm[0], verdict.norm[1]);
        goto done;
    }
    if (!symmetric)
        TRY(n->ranks != NULL ? look_at_adjoint_over_ranks(ctx, &host, n, &first, &verdict)
                             : look_at_adjoint(ctx, &host, n, &verdict));
    n->splits = verdict.zero;
done:
    if (first.halo != NULL)
        n->ranks->tools->close(first.halo);
    csr_free_host(&copies);
    return st;
}

/* ------------------------------------------------------------- lengths */

static double *number(const struct null_vectors *n, int64_t i, int j)
{
    return n->at + (i * n->count + j) * n->parts;
}

static spmv_status length(const struct null_vectors *n, int j, double *length)
{
    spmv_status st = SPMV_OK;
    const struct null_chunks *const chunks = n->chunks;
    for (int64_t c = 0; c < chunks->count; c++) {
        long double sum = 0;
        for (int64_t i = chunks->chunk[c]; i < chunks->chunk[c + 1]; i++)
            for (int p = 0; p < n->parts; p++)
                sum += (long double)number(n, i, j)[p] * number(n, i, j)[p];
        chunks->own[c] = sum;
    }
    TRY(null_chunks_add(chunks, 1, n->sum));
    *length = (double)sqrtl(n->sum[0]);
done:
    return st;
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
    spmv_status st = SPMV_OK;
    for (int j = 0; j < n->count; j++) {
        double size = 0;
        for (int64_t i = 0; i < n->rows; i++)
            for (int c = 0; c < n->parts; c++)
                size = fmax(size, fabs(number(n, i, j)[c]));
        TRY(largest(n, &size));
        if (size == 0)
            return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_solver_create: null vector %d of %d is 0", j + 1,
                                n->count);
        divide(n, j, size);
        TRY(length(n, j, &size));
        divide(n, j, size);
    }
done:
    return st;
}

/* Vector j -= its part along vector k. */
static spmv_status remove_part(struct null_vectors *n, int k, int j)
{
    spmv_status st = SPMV_OK;
    const struct null_chunks *const chunks = n->chunks;
    const long double *const sum = n->sum;
    for (int64_t c = 0; c < chunks->count; c++) {
        long double *const own = chunks->own + 2 * c;
        own[0] = own[1] = 0;
        for (int64_t i = chunks->chunk[c]; i < chunks->chunk[c + 1]; i++) {
            const double *const q = number(n, i, k), *const v = number(n, i, j);
            own[0] += (long double)q[0] * v[0] + (n->parts == 2 ? (long double)q[1] * v[1] : 0);
            own[1] += n->parts == 2 ? (long double)q[0] * v[1] - (long double)q[1] * v[0] : 0;
        }
    }
    TRY(null_chunks_add(chunks, 2, n->sum));
    for (int64_t i = 0; i < n->rows; i++) {
        const double *const q = number(n, i, k);
        double *const v = number(n, i, j);
        const double re = q[0], im = n->parts == 2 ? q[1] : 0;
        v[0] = (double)(v[0] - (sum[0] * re - sum[1] * im));
        if (n->parts == 2)
            v[1] = (double)(v[1] - (sum[0] * im + sum[1] * re));
    }
done:
    return st;
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

spmv_status null_vectors_orthonormalise(struct null_vectors *n)
{
    spmv_status st = SPMV_OK;
    bool keeps[NULL_VECTORS_MOST];
    int kept = 0;
    for (int j = 0; j < n->count; j++) {
        double left = 0;
        TRY(length(n, j, &left));
        keeps[j] = left > n->least;
        for (int pass = 0; pass < 2 && keeps[j]; pass++) {
            for (int k = 0; k < j; k++)
                if (keeps[k])
                    TRY(remove_part(n, k, j));
            TRY(length(n, j, &left));
            keeps[j] = left > n->least;
            if (keeps[j])
                divide(n, j, left);
        }
        kept += keeps[j];
    }
    if (kept < n->count)
        pack(n, keeps, kept);
done:
    return st;
}

/* ------------------------------------------------------------- making and splitting */

static double least_of(const spmv_csr *a, spmv_type type)
{
    const bool wide = type_part(type) == SPMV_F64 && (a->val == NULL || type_part(a->type) == SPMV_F64);
    return ldexp(1, wide ? -26 : -17);
}

spmv_status null_vectors_take(spmv_context *ctx, const spmv_csr *a, const struct plan_ranks *ranks, spmv_type type,
                              const struct null_given *given, bool symmetric, struct null_vectors **taken)
{
    spmv_status st = SPMV_OK;
    struct null_vectors *n = NULL;
    const int64_t rows = ranks != NULL ? ranks->rows : a->rows;
    const int count = given->block > 0 ? given->block : given->count, most = 2 * count + 1;
    *taken = NULL;
    if (given->block > 0 && rows % count != 0)
        return context_fail(ctx, SPMV_ERROR_SIZE,
                            "spmv_solver_create: %lld rows are not a multiple of the option null_block, %d",
                            (long long)rows, count);
    if (rows == 0)
        return st;
    TRY(host_zeros(ctx, sizeof *n, what, (void **)&n));
    n->rows = a->rows;
    n->all_rows = rows;
    n->first = ranks != NULL ? ranks->first_row : 0;
    n->ranks = ranks;
    n->count = count;
    n->parts = type_parts(type);
    n->least = least_of(a, type);
    TRY(null_chunks_make(ctx, ranks, a->rows, most, &n->chunks));
    TRY(host_zeros(ctx, max_i64(1, n->rows * count * n->parts) * 8, what, (void **)&n->at));
    TRY(host_alloc(ctx, most * (int64_t)sizeof *n->sum, what, (void **)&n->sum));
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
    null_chunks_destroy(n->chunks);
    host_free_all(n->at, n->sum);
    host_free(n);
}

/* sums: the products of the vectors with rows first ... end - 1 of one, and the square of the norm of these. */
static void add_rows(const struct null_vectors *n, spmv_type part, const void *v, int64_t first, int64_t end,
                     long double *sums)
{
    const int parts = n->parts, numbers = n->count * parts;
    for (int k = 0; k <= numbers; k++)
        sums[k] = 0;
    for (int64_t i = first; i < end; i++) {
        const double re = real_at(part, v, i * parts), im = parts == 2 ? real_at(part, v, i * parts + 1) : 0;
        for (int j = 0; j < n->count; j++) {
            const double *const q = number(n, i, j);
            sums[j * parts] += (long double)q[0] * re + (parts == 2 ? (long double)q[1] * im : 0);
            if (parts == 2)
                sums[2 * j + 1] += (long double)q[0] * im - (long double)q[1] * re;
        }
        sums[numbers] += (long double)re * re;
        sums[numbers] += (long double)im * im;
    }
}

spmv_status null_vectors_split(const struct null_vectors *n, spmv_type type, void *to, long double *along,
                               long double *squares)
{
    spmv_status st = SPMV_OK;
    const spmv_type part = type_part(type);
    const struct null_chunks *const chunks = n->chunks;
    const int parts = n->parts, numbers = n->count * parts;
    for (int64_t c = 0; c < chunks->count; c++)
        add_rows(n, part, to, chunks->chunk[c], chunks->chunk[c + 1], chunks->own + c * (numbers + 1));
    TRY(null_chunks_add(chunks, numbers + 1, n->sum));
    *along = 0;
    for (int k = 0; k < numbers; k++)
        *along += n->sum[k] * n->sum[k];
    *squares = n->sum[numbers];
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
done:
    return st;
}

int64_t null_vectors_bytes(const struct null_vectors *n)
{
    return n == NULL ? 0 : n->rows * n->count * n->parts * 8;
}
