/* The choice of D in B = A D, and the values of B. The entries are read on the host, once; on a GPU only
 * where columns may have to be scaled, because their norms are found by a product there.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>

#include "solvers/least_squares/least_squares_internal.h"

/* Columns whose norms differ less are not scaled: that saves few iterations. */
static const double LEAST_RATIO = 4;

/* Norms of columns in this range need no scaling for the sake of their squares; f32 and c64, and
 * f64 and c128. */
static const double LARGEST[] = {0x1p40, 0x1p340};

struct columns {
    double *norm, *scale;     /* of each column */
    double largest, smallest; /* norms that are not 0 */
};

/* Adds the squares of the entries of each column; parts: real numbers of an entry. */
#define ADD_SQUARES(NAME, name, T)                                                                                     \
    static void add_squares_##name(const spmv_csr *a, int parts, double *square)                                       \
    {                                                                                                                  \
        const T *const value = a->val;                                                                                 \
        for (int64_t k = 0; k < a->nnz; k++)                                                                           \
            for (int p = 0; p < parts; p++)                                                                            \
                square[a->col[k]] += (double)value[k * parts + p] * (double)value[k * parts + p];                      \
    }
REAL_LIST(ADD_SQUARES)
#undef ADD_SQUARES

static void add_squares(const spmv_csr *a, double *square)
{
    const spmv_type part = type_part(a->type);
    const int parts = type_parts(a->type);
    if (a->val == NULL)
        for (int64_t k = 0; k < a->nnz; k++)
            square[a->col[k]]++;
#define CASE(NAME, name, T) else if (part == SPMV_##NAME) add_squares_##name(a, parts, square);
    REAL_LIST(CASE)
#undef CASE
}

/* Whether squares are in the range of f64, or there are none. */
static bool are_in_range(const double *square, int64_t n)
{
    bool all = true;
    for (int64_t j = 0; j < n; j++)
        all = all && square[j] > 0x1p-900 && square[j] < 0x1p900;
    return all;
}

/* The same for numbers of any size: each norm is the largest modulus times the root of a sum of squares of
 * at most 1. */
static spmv_status find_norms_carefully(const spmv_least_squares *s, const spmv_csr *a, double *norm, double *square)
{
    const int parts = a->val != NULL ? type_parts(a->type) : 1;
    const spmv_type part = type_part(a->type);
    for (int64_t j = 0; j < a->cols; j++)
        norm[j] = square[j] = 0;
    for (int64_t k = 0; k < a->nnz; k++)
        for (int p = 0; p < parts; p++) {
            const double value = a->val != NULL ? real_at(part, a->val, k * parts + p) : 1;
            if (!isfinite(value))
                return context_fail(s->ctx, SPMV_ERROR_NOT_FINITE,
                                    "spmv_least_squares_create: A has %g in row %lld, column %lld%s", value,
                                    context_number(s->ctx, row_of_entry(a, k)), context_number(s->ctx, a->col[k]),
                                    context_counted(s->ctx));
            norm[a->col[k]] = fmax(norm[a->col[k]], fabs(value));
        }
    for (int64_t k = 0; k < a->nnz; k++)
        for (int p = 0; p < parts; p++) {
            const double value = a->val != NULL ? real_at(part, a->val, k * parts + p) : 1;
            const double of_largest = norm[a->col[k]] > 0 ? value / norm[a->col[k]] : 0;
            square[a->col[k]] += of_largest * of_largest;
        }
    for (int64_t j = 0; j < a->cols; j++)
        norm[j] = fmin(norm[j] * sqrt(square[j]), DBL_MAX);
    return SPMV_OK;
}

/* The same on a GPU, for real values: (A o A)' times ones. *found: the squares are in the range of the type. */
static spmv_status find_norms_on_device(const spmv_least_squares *s, double *norm, bool *found)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = s->ctx;
    spmv_csr squares = s->a;
    const bool pattern = squares.val == NULL;
    const spmv_type type = pattern ? SPMV_F64 : squares.type;
    const double least = type == SPMV_F32 ? 0x1p-100 : 0x1p-900;
    const int64_t size = (int64_t)spmv_type_size(type), n = squares.cols;
    const union real one = real_scalar(type, 1);
    spmv_plan_options options;
    spmv_plan *plan = NULL;
    void *values = NULL, *ones = NULL, *sums = NULL, *host = NULL;
    *found = false;
    if (!type_is_real(type) || squares.rows == 0 || n == 0)
        return SPMV_OK;
    spmv_plan_options_init(&options, sizeof options);
    options.operation = SPMV_OPERATION_T;
    options.type = type;
    if (!pattern) {
        TRY(context_lend(ctx, squares.nnz * size, &values));
        TRY(spmv_map(ctx, SPMV_MAP_SQUARE, type, squares.val, values, squares.nnz));
        squares.val = values;
    }
    TRY(spmv_plan_create(ctx, &squares, &options, &plan));
    TRY(context_lend(ctx, squares.rows * size, &ones));
    TRY(context_lend(ctx, n * size, &sums));
    TRY(host_alloc(ctx, n * size, "norms of columns", &host));
    TRY(spmv_map_index(ctx, type, &one, NULL, ones, squares.rows));
    TRY(spmv_apply(plan, NULL, ones, NULL, sums));
    TRY(spmv_download(ctx, sums, host, n * size));
    *found = true;
    for (int64_t j = 0; j < n; j++) {
        norm[j] = sqrt(real_at(type, host, j));
        *found = *found && norm[j] * norm[j] > least && norm[j] * norm[j] < 1 / least;
    }
done:
    spmv_plan_destroy(plan);
    context_take_back(ctx, values);
    context_take_back(ctx, ones);
    context_take_back(ctx, sums);
    host_free(host);
    return st;
}

static spmv_status find_norms_on_host(const spmv_least_squares *s, const spmv_csr *a, struct columns *c)
{
    for (int64_t j = 0; j < a->cols; j++)
        c->norm[j] = 0;
    add_squares(a, c->norm);
    if (!are_in_range(c->norm, a->cols))
        return find_norms_carefully(s, a, c->norm, c->scale);
    for (int64_t j = 0; j < a->cols; j++)
        c->norm[j] = sqrt(c->norm[j]);
    return context_poll(s->ctx, "norms of columns", a->nnz);
}

/* The power of two that brings this norm to 1 to 2; 1 for 0. It and its reciprocal are normal numbers. */
static double scale_of(spmv_type part, double norm)
{
    const int most = part == SPMV_F32 ? 126 : 1022;
    int exponent = 0;
    if (!(norm > 0 && isfinite(norm)))
        return 1;
    frexp(norm, &exponent);
    exponent = 1 - exponent;
    return ldexp(1, exponent > most ? most : exponent < -most ? -most : exponent);
}

static void say(spmv_least_squares *s, const char *why)
{
    snprintf(s->why_scaling, sizeof s->why_scaling, "%s", why);
}

/* The matrix in host memory, copied there when it is first needed. */
struct host_matrix {
    const spmv_csr *given;
    spmv_csr a;
    struct csr_copies copies;
    bool there;
};

static spmv_status fetch(const spmv_least_squares *s, struct host_matrix *h)
{
    const spmv_status st = h->there ? SPMV_OK : csr_to_host(s->ctx, h->given, false, &h->a, &h->copies);
    h->there = st == SPMV_OK;
    return st;
}

static spmv_status find_norms(const spmv_least_squares *s, struct host_matrix *h, struct columns *c)
{
    spmv_status st = SPMV_OK;
    bool found = false;
    if (context_on_device(s->ctx))
        TRY(find_norms_on_device(s, c->norm, &found));
    if (!found) {
        TRY(fetch(s, h));
        TRY(find_norms_on_host(s, &h->a, c));
    }
    c->largest = 0;
    c->smallest = INFINITY;
    for (int64_t j = 0; j < h->given->cols; j++) {
        c->largest = fmax(c->largest, c->norm[j]);
        c->smallest = c->norm[j] > 0 ? fmin(c->smallest, c->norm[j]) : c->smallest;
    }
done:
    return st;
}

/* Sets c->scale and s->scales_columns. *needed: D is not I. */
static spmv_status choose(spmv_least_squares *s, struct host_matrix *h, struct columns *c, bool *needed)
{
    const spmv_csr *const a = h->given;
    const spmv_type part = type_part(s->type);
    const double limit = LARGEST[part == SPMV_F64];
    const double damp = c->largest > 0 ? s->options.damp : 0; /* squares of A and of damp are needed */
    const double size = damp > c->largest ? sqrt(c->largest) * sqrt(damp) : c->largest;
    const double all = size > limit || size < 1 / limit || damp > limit ? scale_of(part, size) : 1;
    const double ratio = c->largest > 0 ? c->largest / c->smallest : 1;
    const bool forced = s->options.scaling == SPMV_SCALING_COLUMNS;
    enum column_rank rank = RANK_LOST;
    for (int64_t j = 0; j < a->cols; j++)
        c->scale[j] = scale_of(part, c->norm[j]);
    spmv_status st = SPMV_OK;
    if (forced)
        say(s, "requested by name");
    else if (s->options.scaling == SPMV_SCALING_NONE)
        say(s, "scaling was declined");
    else if (s->options.damp > 0)
        say(s, "with damp, scaled columns would be another problem");
    else if (a->rows < a->cols)
        say(s, "A has more columns than rows: x of smallest norm needs columns as they are");
    else if (!(ratio > LEAST_RATIO))
        say(s, "the norms of the columns differ by a factor of 4 at most");
    else {
        st = fetch(s, h);
        if (st == SPMV_OK)
            st = least_squares_rank(s->ctx, &h->a, c->scale, &rank);
        if (rank == RANK_UNKNOWN && all != 1) /* A itself cannot be multiplied */
            rank = RANK_LOST;
        s->ratio = ratio;
        s->doubts = rank == RANK_UNKNOWN;
        snprintf(s->why_scaling, sizeof s->why_scaling, "the norms of the columns differ by a factor of %.2g, %s",
                 ratio, rank == RANK_FULL ? "and A has full column rank" : "but A has lost rank, or almost");
    }
    s->scales_columns = forced || rank != RANK_LOST;
    if (!s->scales_columns)
        for (int64_t j = 0; j < a->cols; j++)
            c->scale[j] = all;
    *needed = s->scales_columns || all != 1;
    if (!s->scales_columns)
        s->damp *= all;
    return st;
}

/* Makes the values of B, and D as a vector of the type of x. */
static spmv_status make(spmv_least_squares *s, const spmv_csr *a, const struct columns *c)
{
    spmv_status st = SPMV_OK;
    const spmv_type type = a->val != NULL ? a->type : s->type, part = type_part(type);
    const int parts = type_parts(type), of_x = type_parts(s->type);
    const int64_t bytes = a->nnz * (int64_t)spmv_type_size(type);
    const int64_t scale_bytes = a->cols * of_x * (int64_t)spmv_type_size(type_part(s->type));
    void *values = NULL, *scale = NULL;
    TRY(host_alloc(s->ctx, bytes, "scaled values", &values));
    TRY(host_alloc(s->ctx, scale_bytes, "scales of columns", &scale));
    for (int64_t k = 0; k < a->nnz; k++)
        for (int p = 0; p < parts; p++)
            real_set(part, values, k * parts + p,
                     (a->val != NULL ? real_at(part, a->val, k * parts + p) : p == 0) * c->scale[a->col[k]]);
    for (int64_t j = 0; j < a->cols * of_x; j++)
        real_set(type_part(s->type), scale, j, c->scale[j / of_x]);
    TRY(spmv_alloc(s->ctx, bytes, &s->values));
    TRY(spmv_alloc(s->ctx, scale_bytes, &s->scale));
    TRY(spmv_upload(s->ctx, values, s->values, bytes));
    TRY(spmv_upload(s->ctx, scale, s->scale, scale_bytes));
    TRY(spmv_synchronize(s->ctx));
    s->given = s->a.val;
    s->given_type = s->a.type;
    s->a.val = s->values;
    s->a.type = type;
done:
    host_free(values);
    host_free(scale);
    return st;
}

spmv_status least_squares_scale(spmv_least_squares *s, const spmv_csr *a)
{
    spmv_status st = SPMV_OK;
    struct columns c = {0};
    struct host_matrix h = {.given = a};
    bool needed = false;
    TRY(host_alloc(s->ctx, a->cols * (int64_t)sizeof *c.norm, "norms of columns", (void **)&c.norm));
    TRY(host_alloc(s->ctx, a->cols * (int64_t)sizeof *c.scale, "norms of columns", (void **)&c.scale));
    TRY(find_norms(s, &h, &c));
    TRY(choose(s, &h, &c, &needed));
    if (needed && a->nnz > 0) {
        TRY(fetch(s, &h));
        TRY(make(s, &h.a, &c));
    }
done:
    host_free(c.norm);
    host_free(c.scale);
    csr_free_host(&h.copies);
    return st;
}

/* Steps, and the smallest singular value of B over the largest, from which on B has full rank. Its start is a
 * fixed pseudo-random vector, which has a part along every null vector. */
enum { RANK_STEPS = 300 };
static const double FULL_RANK = 1e-5;

spmv_status least_squares_settle_doubts(spmv_least_squares *s, bool *keeps)
{
    spmv_status st = SPMV_OK;
    spmv_singular_values v = {0};
    TRY(singular_values_of_plans(s->plan, s->transposed, 0.1, RANK_STEPS, &v));
    *keeps = v.converged && v.smallest > FULL_RANK * v.largest;
    s->doubts = false;
    s->scales_columns = *keeps;
    snprintf(s->why_scaling, sizeof s->why_scaling, "the norms of the columns differ by a factor of %.2g, %s", s->ratio,
             *keeps        ? "and A has full column rank, as far as its singular values tell"
             : v.converged ? "but A has lost rank, or almost"
                           : "but full column rank is not certain");
    if (*keeps)
        goto done;
    s->a.val = s->given;
    s->a.type = s->given_type;
    spmv_free(s->ctx, s->values);
    spmv_free(s->ctx, s->scale);
    s->values = s->scale = NULL;
done:
    return st;
}
