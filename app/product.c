/* One product for the program: plan, run, time, and check against another backend.
 *
 * Times are reported in parts: upload, plan, first call, and the median of repeats within a small
 * time limit, so that timing never delays the answer much. The plan's time begins with CSR in the
 * context's memory; on the host backends that is the memory where the matrix was read.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/output.h"
#include "app/product.h"
#include "bench/faults.h"
#include "core/reals.h"

/* Repeats end after this many seconds or after MAX_REPEATS samples. Comparing bits needs at least
 * BITWISE_REPEATS. */
static const double repeat_budget = 0.05;
enum { MAX_REPEATS = 64, BITWISE_REPEATS = 2 };

/* Room for a scalar of any type of sums. */
union scalar {
    spmv_c128 c128;
    union real real;
};

static const void *scalar_set(union scalar *scalar, spmv_type type, double value)
{
    *scalar = (union scalar){.c128 = {0, 0}};
    real_set(type_part(type_of_sums(type)), scalar, 0, value);
    return scalar;
}

static spmv_status fail(const struct product *p, spmv_status st)
{
    return report(st, spmv_last_error(p->ctx));
}

/* Bytes of all vectors with n rows. */
static int64_t vector_bytes(const struct product *p, int64_t n)
{
    return n * p->vectors * (int64_t)spmv_type_size(p->type);
}

spmv_status send_array(spmv_context *ctx, const void *host_from, int64_t bytes, void **to)
{
    const spmv_status st = spmv_alloc(ctx, bytes, to);
    return st == SPMV_OK ? spmv_upload(ctx, host_from, *to, bytes) : st;
}

/* Sets p->view, the matrix in the context's memory: the same arrays if its memory is host memory, else copies. */
static spmv_status view_in_context(struct product *p)
{
    const spmv_csr *a = p->a;
    spmv_csr *const view = &p->view;
    const spmv_backend backend = spmv_context_backend(p->ctx);
    *view = *a;
    view->memory = SPMV_MEMORY_CONTEXT;
    if (backend == SPMV_BACKEND_OMP || backend == SPMV_BACKEND_REF)
        return SPMV_OK;
    const double began = monotonic_seconds();
    spmv_status st = send_array(p->ctx, a->row_ptr, (a->rows + 1) * (a->row_ptr_bits / 8), &p->copies[0]);
    if (st == SPMV_OK)
        st = send_array(p->ctx, a->col, a->nnz * (int64_t)sizeof *a->col, &p->copies[1]);
    if (st == SPMV_OK && a->val != NULL)
        st = send_array(p->ctx, a->val, a->nnz * (int64_t)spmv_type_size(a->type), &p->copies[2]);
    if (st == SPMV_OK)
        st = spmv_synchronize(p->ctx);
    view->row_ptr = p->copies[0];
    view->col = p->copies[1];
    view->val = p->copies[2];
    p->upload_seconds += monotonic_seconds() - began;
    return st;
}

bool product_on_ranks(const struct product *p)
{
    return p->place != NULL && place_on_ranks(p->place);
}

static spmv_status make_plan(spmv_context *ctx, struct product *p)
{
    spmv_plan_options options;
    spmv_plan_options_init(&options, sizeof options);
    options.operation = p->operation;
    options.method = p->method;
    options.type = p->type;
    options.compression = p->compression;
    options.vectors = p->vectors;
    spmv_status st = view_in_context(p);
    if (st == SPMV_OK)
        st = spmv_plan_create(ctx, &p->view, &options, &p->plan);
    if (st == SPMV_OK)
        st = spmv_plan_describe(p->plan, &p->info, sizeof p->info);
    return st == SPMV_OK ? st : fail(p, st);
}

spmv_status product_plan(spmv_context *ctx, struct product *p)
{
    spmv_status st = SPMV_OK;
    p->ctx = ctx;
    p->vectors = p->vectors > 0 ? p->vectors : 1;
    if (product_on_ranks(p))
        product_plan_on_ranks(p);
    else
        st = make_plan(ctx, p);
    if (st != SPMV_OK)
        return st;
    const double v = p->vectors * (double)spmv_type_size(p->type), rows = (double)p->info.rows,
                 cols = (double)p->info.cols;
    const double stored = (double)spmv_type_size(p->info.value_type);
    p->model_bytes = (double)p->info.nnz * (4 + stored) + 4 * (rows + 1) + v * (rows + cols);
    return SPMV_OK;
}

/* For tests of the check: makes y wrong if a fault is set (bench/faults.h); of several vectors the
 * last one. */
static void plant_error(const struct product *p)
{
    const char *text = fault_text(FAULT_ERROR);
    if (text == NULL)
        return;
    const bool bit = strncmp(text, "bit:", 4) == 0;
    long long row = strtoll(bit ? text + 4 : text, NULL, 10);
    if (row < 0 || row >= p->info.rows)
        return;
    row = row * p->vectors + p->vectors - 1;
    if (bit) {
        ((unsigned char *)p->y)[row * (int64_t)spmv_type_size(p->type)] ^= 1;
    } else {
        /* the last part: the imaginary part of a complex number */
        const int parts = type_parts(p->type);
        const int64_t last = row * parts + parts - 1;
        real_set(type_part(p->type), p->y, last, 2 * real_at(type_part(p->type), p->y, row * parts) + 1);
    }
}

/* The data of a product in the context's memory. */
struct work {
    void *x, *y;
    union scalar alpha, beta;
    const void *host_beta;
    const void *host_start; /* y before the product: y0, or NaN, which the product must overwrite */
    void *poison;           /* owns the NaN */
    void *again;            /* host memory: y of a repeat, to compare bits */
};

static spmv_status prepare(struct product *p, struct work *w)
{
    if (p->info.rows > INT64_MAX / 16 / p->vectors) {
        complain("%d vectors y of %lld numbers do not fit in any memory", p->vectors, (long long)p->info.rows);
        return SPMV_ERROR_MEMORY;
    }
    const int64_t rows = p->info.rows * p->vectors, x_bytes = vector_bytes(p, p->info.cols);
    const int64_t y_bytes = vector_bytes(p, p->info.rows);
    spmv_status st = allocate("the vector y", rows, spmv_type_size(p->type), &p->y);
    if (st == SPMV_OK && p->y0 == NULL) {
        st = allocate("y before the product", rows, spmv_type_size(p->type), &w->poison);
        if (st == SPMV_OK)
            /* NaN, so that an unwritten row is detected */
            memset(w->poison, 0xff, (size_t)y_bytes);
    }
    if (st == SPMV_OK && p->bitwise)
        st = allocate("y of a repeat", rows, spmv_type_size(p->type), &w->again);
    if (st != SPMV_OK)
        return st;
    scalar_set(&w->alpha, p->type, p->alpha);
    w->host_beta = p->y0 != NULL ? scalar_set(&w->beta, p->type, p->beta) : NULL;
    w->host_start = p->y0 != NULL ? p->y0 : w->poison;
    const double began = monotonic_seconds();
    st = send_array(p->ctx, p->x, x_bytes, &w->x);
    if (st == SPMV_OK)
        st = send_array(p->ctx, w->host_start, y_bytes, &w->y);
    if (st == SPMV_OK)
        st = spmv_synchronize(p->ctx);
    p->upload_seconds += monotonic_seconds() - began;
    return st == SPMV_OK ? st : fail(p, st);
}

static spmv_status multiply(struct product *p, const struct work *w, double *seconds)
{
    const double began = monotonic_seconds();
    spmv_status st = spmv_apply(p->plan, &w->alpha, w->x, w->host_beta, w->y);
    if (st == SPMV_OK)
        st = spmv_synchronize(p->ctx);
    *seconds = monotonic_seconds() - began;
    return st == SPMV_OK ? st : fail(p, st);
}

static spmv_status compare_bits(struct product *p, const struct work *w)
{
    const int64_t bytes = vector_bytes(p, p->info.rows);
    const spmv_status st = spmv_download(p->ctx, w->y, w->again, bytes);
    if (st != SPMV_OK)
        return fail(p, st);
    p->bitwise_repeats++;
    p->bitwise_different += memcmp(p->y, w->again, (size_t)bytes) != 0;
    return SPMV_OK;
}

/* If the first call used up the time limit, it is the only sample. */
static spmv_status repeat(struct product *p, const struct work *w)
{
    double samples[MAX_REPEATS];
    int n = 0;
    const double began = monotonic_seconds();
    const bool hurried = p->first_call_seconds > repeat_budget;
    while (n < MAX_REPEATS) {
        const bool due = p->timed && !hurried && monotonic_seconds() - began < repeat_budget;
        if (!due && !(p->bitwise && n < BITWISE_REPEATS))
            break;
        spmv_status st = SPMV_OK;
        if (p->bitwise || p->y0 != NULL)
            st = spmv_upload(p->ctx, w->host_start, w->y, vector_bytes(p, p->info.rows));
        if (st == SPMV_OK)
            st = spmv_synchronize(p->ctx);
        if (st != SPMV_OK)
            return fail(p, st);
        st = multiply(p, w, &samples[n++]);
        if (st == SPMV_OK && p->bitwise)
            st = compare_bits(p, w);
        if (st != SPMV_OK)
            return st;
    }
    if (n == 0)
        samples[n++] = p->first_call_seconds;
    p->seconds = timing_summary(samples, n);
    return SPMV_OK;
}

spmv_status product_run(struct product *p)
{
    struct work w = {0};
    if (product_on_ranks(p))
        return product_run_on_ranks(p);
    spmv_status st = prepare(p, &w);
    if (st == SPMV_OK)
        st = multiply(p, &w, &p->first_call_seconds);
    if (st == SPMV_OK) {
        st = spmv_download(p->ctx, w.y, p->y, vector_bytes(p, p->info.rows));
        if (st != SPMV_OK)
            fail(p, st);
    }
    if (st == SPMV_OK) {
        plant_error(p);
        st = repeat(p, &w);
    }
    spmv_free(p->ctx, w.x);
    spmv_free(p->ctx, w.y);
    free(w.poison);
    free(w.again);
    return st;
}

/* Copies vector v of the vectors with n rows. */
static void take_vector(const struct product *p, const void *all, int64_t n, int v, void *one)
{
    const size_t size = spmv_type_size(p->type);
    for (int64_t i = 0; all != NULL && i < n; i++)
        memcpy((char *)one + (size_t)i * size, (const char *)all + (size_t)(i * p->vectors + v) * size, size);
}

void product_keep_check(struct product *p, int v, const spmv_verify_result *check)
{
    const int64_t failed = v > 0 ? p->check.failed_rows : 0;
    if (p->checks != NULL)
        p->checks[v] = *check;
    if (v == 0 || check->worst_ratio > p->check.worst_ratio) {
        p->check = *check;
        p->worst_vector = v;
    }
    p->check.failed_rows = failed + check->failed_rows;
}

/* Checks the vectors one by one. */
static spmv_status check_vectors(spmv_context *checker, struct product *p, const void *alpha, const void *beta)
{
    const int64_t rows = p->info.rows, cols = p->info.cols;
    const size_t size = spmv_type_size(p->type);
    void *x = NULL, *y0 = NULL, *y = NULL;
    spmv_status st = allocate("a vector x", cols, size, &x), verdict = SPMV_OK;
    if (st == SPMV_OK)
        st = allocate("a vector y", rows, size, &y);
    if (st == SPMV_OK && p->y0 != NULL)
        st = allocate("a vector y0", rows, size, &y0);
    for (int v = 0; v < p->vectors && st == SPMV_OK; v++) {
        spmv_verify_result check;
        take_vector(p, p->x, cols, v, x);
        take_vector(p, p->y0, rows, v, y0);
        take_vector(p, p->y, rows, v, y);
        st = spmv_verify(checker, p->a, p->operation, alpha, x, beta, y0, y, p->type, &check, sizeof check);
        if (st == SPMV_ERROR_CHECK) {
            verdict = st;
            st = SPMV_OK;
        } else if (st != SPMV_OK) {
            report(st, spmv_last_error(checker));
            break;
        }
        product_keep_check(p, v, &check);
    }
    free(x);
    free(y0);
    free(y);
    return st == SPMV_OK ? verdict : st;
}

spmv_backend product_checker(spmv_backend backend)
{
    return backend == SPMV_BACKEND_OMP ? SPMV_BACKEND_REF : SPMV_BACKEND_OMP;
}

spmv_status product_check(const struct options *o, struct product *p)
{
    const spmv_backend other = product_checker(spmv_context_backend(p->ctx));
    spmv_context *checker = NULL;
    if (product_on_ranks(p))
        return product_check_on_ranks(p);
    union scalar alpha, beta;
    spmv_status st = open_context(o, other, &checker);
    if (st != SPMV_OK)
        return st;
    p->reference = spmv_backend_name(other);
    scalar_set(&alpha, p->type, p->alpha);
    const void *const host_beta = p->y0 != NULL ? scalar_set(&beta, p->type, p->beta) : NULL;
    if (p->vectors > 1) {
        st = check_vectors(checker, p, &alpha, host_beta);
    } else {
        st = spmv_verify(checker, p->a, p->operation, &alpha, p->x, host_beta, p->y0, p->y, p->type, &p->check,
                         sizeof p->check);
        if (st != SPMV_OK && st != SPMV_ERROR_CHECK)
            report(st, spmv_last_error(checker));
        if (p->checks != NULL)
            *p->checks = p->check;
    }
    spmv_context_destroy(checker);
    return st;
}

void product_free(struct product *p)
{
    spmv_plan_destroy(p->plan);
    for (int i = 0; i < 3 && p->ctx != NULL; i++)
        spmv_free(p->ctx, p->copies[i]);
    if (product_on_ranks(p))
        place_free(p->place, p->y);
    else
        free(p->y);
}

/* "omp, 2 threads (auto: no usable CUDA device)": the description of a context, with the first part
 * of the reason. */
static void describe_briefly(const spmv_context *ctx, char *text, size_t size)
{
    static const char begin[] = "(auto: ";
    snprintf(text, size, "%s", spmv_context_describe(ctx));
    char *const reason = strstr(text, begin);
    char *const rest = reason != NULL ? strstr(reason + sizeof begin - 1, ": ") : NULL;
    if (rest != NULL) {
        rest[0] = ')';
        rest[1] = '\0';
    }
}

void remark_plan(const char *matrix, const struct product *p)
{
    char place[512];
    const bool mixed = p->info.value_type != p->info.type;
    remark(LEVEL_NORMAL, "%s: %lld x %lld, %lld nonzero%s, %s%s%s", matrix, (long long)p->a->rows,
           (long long)p->a->cols, (long long)p->a->nnz, p->a->nnz == 1 ? "" : "s", spmv_type_name(p->info.value_type),
           mixed ? " with vectors and sums in " : "",
           mixed                                       ? spmv_type_name(p->info.type)
           : p->a->val == NULL && !product_on_ranks(p) ? ", a pattern"
                                                       : "");
    if (product_on_ranks(p)) {
        place_remark(p->place);
        return;
    }
    if (p->place != NULL && p->place->estimated) {
        const char *const text = spmv_context_describe(p->ctx), *const reason = strstr(text, " (auto");
        snprintf(place, sizeof place, "%.*s (auto: %s)", reason != NULL ? (int)(reason - text) : (int)strlen(text),
                 text, p->place->why);
    } else if (messages_level() > LEVEL_NORMAL) {
        snprintf(place, sizeof place, "%s", spmv_context_describe(p->ctx));
    } else {
        describe_briefly(p->ctx, place, sizeof place);
    }
    remark(LEVEL_NORMAL, "on %s", place);
    remark(LEVEL_NORMAL, "method %s", p->info.method);
    remark(LEVEL_VERBOSE, "reason for the method: %s", p->info.why);
    if (p->info.layout[0] != '\0')
        remark(LEVEL_VERBOSE, "the plan: %s", p->info.layout);
}

/* Rows and vectors count from 1 here, as lines of the vector file do. In the JSON they count from
 * 0. */
void tell_check(const struct product *p, const char *what)
{
    const spmv_verify_result *c = &p->check;
    char im[2][40] = {"", ""}, of[48] = "";
    if (type_is_complex(p->type)) {
        snprintf(im[0], sizeof im[0], "%+.17gi", c->worst_value_im);
        snprintf(im[1], sizeof im[1], "%+.17gi", c->worst_reference_im);
    }
    if (p->vectors > 1)
        snprintf(of, sizeof of, " of vector %d", p->worst_vector + 1);
    if (c->failed_rows > 0) {
        complain("CHECK FAILED against %s: %lld of %lld rows of %s exceed the bound", p->reference,
                 (long long)c->failed_rows, (long long)p->info.rows * p->vectors, what);
        complain("worst row %lld%s: %.17g%s, expected %.17g%s, %.3g times the bound", (long long)c->worst_row + 1, of,
                 c->worst_value, im[0], c->worst_reference, im[1], c->worst_ratio);
    } else if (c->worst_row >= 0) {
        remark(LEVEL_NORMAL, "%s checked against %s: passed; worst row %lld%s, %.3g of the bound", what, p->reference,
               (long long)c->worst_row + 1, of, c->worst_ratio);
    } else {
        remark(LEVEL_NORMAL, "%s checked against %s: passed; no rows", what, p->reference);
    }
}

double product_flops(const struct product *p)
{
    return (type_is_complex(p->type) ? 8.0 : 2.0) * (double)p->info.nnz * p->vectors;
}

json_t *json_check(const struct product *p)
{
    json_t *check = json_pack("{s:s, s:o, s:I}", "reference", p->reference, "worst_error_over_bound",
                              json_number(p->check.worst_ratio), "worst_row", (json_int_t)p->check.worst_row);
    if (p->vectors > 1)
        json_put(check, "worst_vector", json_integer(p->worst_vector));
    return check;
}

json_t *json_plan(const struct product *p, const char *op)
{
    json_t *plan = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:I}", "op", op, "backend",
                             spmv_backend_name(spmv_context_backend(p->ctx)), "method", p->info.method, "why",
                             p->info.why, "layout", p->info.layout, "type", spmv_type_name(p->type), "plan_seconds",
                             p->info.seconds, "plan_bytes", (json_int_t)p->info.bytes);
    if (p->vectors > 1)
        json_put(plan, "vectors", json_integer(p->vectors));
    if (p->info.value_type != p->info.type)
        json_put(plan, "value_type", json_string(spmv_type_name(p->info.value_type)));
    if (product_on_ranks(p))
        json_put(plan, "ranks", place_json(p->place));
    return plan;
}
