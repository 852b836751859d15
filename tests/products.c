/* Every method of a backend on matrix files, in one process: a product each in f64, in f32, transposed, of f32 values
 * with f64 sums, of 7 vectors, and with the conjugate transpose of complex values made from the real ones; checked row
 * by row on another backend (cuda by omp, omp by ref, ref by omp). For tests/matrices.py, which knows what is in the
 * files.
 *
 *   products BACKEND FILE...
 *
 * Prints a line a product, "FILE METHOD VARIANT ROWS COLS NNZ RATIO" (RATIO: the worst row's error over its bound), or
 * "FILE METHOD VARIANT failed SENTENCE". Exit code 77 where the backend cannot be had, 1 when a product failed.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/spmv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct variant {
    const char *name;
    spmv_type read, type; /* of the matrix, as it is read; of vectors and sums */
    spmv_operation operation;
    int vectors;
};
static const struct variant variants[] = {
    {"f64", SPMV_F64, SPMV_F64, SPMV_OPERATION_N, 1},        {"f32", SPMV_F32, SPMV_F32, SPMV_OPERATION_N, 1},
    {"transposed", SPMV_F64, SPMV_F64, SPMV_OPERATION_T, 1}, {"mixed", SPMV_F32, SPMV_F64, SPMV_OPERATION_N, 1},
    {"vectors", SPMV_F64, SPMV_F64, SPMV_OPERATION_N, 7},    {"hermitian", SPMV_F64, SPMV_C128, SPMV_OPERATION_H, 1}};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static spmv_context *context_on(spmv_backend backend)
{
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = backend;
    spmv_context *ctx = NULL;
    if (spmv_context_create(&options, &ctx) != SPMV_OK)
        fprintf(stderr, "%s\n", spmv_last_error(NULL));
    return ctx;
}

/* x_j in [0.5, 1.5), full mantissas, the same in every run; y poisoned with NaN. n: numbers, of which a complex element
 * has two. */
static void fill(bool single, void *x, int64_t x_n, void *y, int64_t y_n)
{
    uint64_t state = 88172645463325252u;
    for (int64_t i = 0; i < x_n; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        const double value = 0.5 + (double)(state >> 11) * 0x1p-53;
        if (single)
            ((float *)x)[i] = (float)value;
        else
            ((double *)x)[i] = value;
    }
    for (int64_t i = 0; i < y_n; i++) {
        if (single)
            ((float *)y)[i] = 0.0f / 0.0f;
        else
            ((double *)y)[i] = 0.0 / 0.0;
    }
}

/* Complex values with the real ones as real parts; NULL where there is no memory. */
static double *make_complex(const double *real, int64_t n)
{
    double *const values = malloc((size_t)n * 16 + 1);
    for (int64_t k = 0; values != NULL && k < n; k++) {
        values[2 * k] = real[k];
        values[2 * k + 1] = (k % 3 - 1) * 0.5 * real[n - 1 - k];
    }
    return values;
}

/* One product into host_y, through the context's memory. */
static spmv_status multiply(spmv_context *ctx, const spmv_csr *a, const char *method, const struct variant *v,
                            const void *host_x, int64_t x_bytes, void *host_y, int64_t y_bytes)
{
    spmv_plan_options options;
    spmv_plan_options_init(&options, sizeof options);
    options.method = method;
    options.operation = v->operation;
    options.type = v->type;
    options.vectors = v->vectors;
    spmv_plan *plan = NULL;
    void *x = NULL, *y = NULL;
    spmv_status st = spmv_plan_create(ctx, a, &options, &plan);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, x_bytes, &x);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, y_bytes, &y);
    if (st == SPMV_OK)
        st = spmv_upload(ctx, host_x, x, x_bytes);
    if (st == SPMV_OK)
        st = spmv_upload(ctx, host_y, y, y_bytes);
    if (st == SPMV_OK)
        st = spmv_apply(plan, NULL, x, NULL, y);
    if (st == SPMV_OK)
        st = spmv_download(ctx, y, host_y, y_bytes);
    spmv_free(ctx, x);
    spmv_free(ctx, y);
    spmv_plan_destroy(plan);
    return st;
}

/* Column c of a matrix of elements of so many bytes, row by row. */
static void column(const char *from, int64_t rows, int vectors, int c, size_t size, char *to)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + (size_t)i * size, from + ((size_t)i * (size_t)vectors + (size_t)c) * size, size);
}

struct arrays {
    void *x, *y, *x_column, *y_column;
};

/* One method; the product's status, after the check of its columns, and in *worst the largest error. */
static spmv_status try_method(spmv_context *ctx, spmv_context *checker, const spmv_csr *a, const char *method,
                              const struct variant *v, const struct arrays *r, int64_t x_n, int64_t y_n, double *worst,
                              const char **sentence)
{
    const int64_t size = (int64_t)spmv_type_size(v->type), parts = v->type == SPMV_C128 ? 2 : 1;
    const int64_t x_all = x_n * v->vectors, y_all = y_n * v->vectors;
    fill(v->type == SPMV_F32, r->x, x_all * parts, r->y, y_all * parts);
    spmv_status st = multiply(ctx, a, method, v, r->x, x_all * size, r->y, y_all * size);
    *sentence = spmv_last_error(ctx);
    *worst = 0;
    for (int c = 0; c < v->vectors && st == SPMV_OK; c++) {
        spmv_verify_result result;
        column(r->x, x_n, v->vectors, c, (size_t)size, r->x_column);
        column(r->y, y_n, v->vectors, c, (size_t)size, r->y_column);
        st = spmv_verify(checker, a, v->operation, NULL, r->x_column, NULL, NULL, r->y_column, v->type, &result,
                         sizeof result);
        *worst = result.worst_ratio > *worst ? result.worst_ratio : *worst;
        *sentence = spmv_last_error(checker);
    }
    return st;
}

/* All methods that can do it on one matrix in one variant; the number of products that failed, counting one where no
 * method could. */
static int try_variant(spmv_context *ctx, spmv_context *checker, const char *path, const spmv_csr *a,
                       const struct variant *v)
{
    const size_t size = spmv_type_size(v->type);
    const int64_t x_n = v->operation == SPMV_OPERATION_N ? a->cols : a->rows;
    const int64_t y_n = v->operation == SPMV_OPERATION_N ? a->rows : a->cols;
    const size_t x_bytes = (size_t)x_n * size, y_bytes = (size_t)y_n * size, vectors = (size_t)v->vectors;
    const struct arrays r = {malloc(x_bytes * vectors + 1), malloc(y_bytes * vectors + 1), malloc(x_bytes + 1),
                             malloc(y_bytes + 1)};
    const bool have = r.x != NULL && r.y != NULL && r.x_column != NULL && r.y_column != NULL;
    int failed = !have, tried = 0;
    const char *method;
    for (int m = 0; have && (method = spmv_method_name(spmv_context_backend(ctx), m)) != NULL; m++) {
        const char *sentence = "";
        double worst = 0;
        const spmv_status st = try_method(ctx, checker, a, method, v, &r, x_n, y_n, &worst, &sentence);
        if (st == SPMV_ERROR_UNSUPPORTED)
            continue;
        tried++;
        if (st != SPMV_OK)
            printf("%s %s %s failed %s: %s\n", path, method, v->name, spmv_status_name(st), sentence);
        else
            printf("%s %s %s %lld %lld %lld %.6g\n", path, method, v->name, (long long)a->rows, (long long)a->cols,
                   (long long)a->nnz, worst);
        failed += st != SPMV_OK;
    }
    if (tried == 0)
        printf("%s - %s failed no method\n", path, v->name);
    failed += tried == 0;
    free(r.x);
    free(r.y);
    free(r.x_column);
    free(r.y_column);
    return failed;
}

int main(int argc, char **argv)
{
    spmv_backend backend = SPMV_BACKEND_AUTO;
    if (argc < 2 || spmv_backend_parse(argv[1], &backend) != SPMV_OK) {
        fprintf(stderr, "usage: products BACKEND FILE...\n");
        return 1;
    }
    spmv_context *ctx = context_on(backend);
    if (ctx == NULL)
        return 77;
    spmv_context *checker = context_on(backend == SPMV_BACKEND_OMP ? SPMV_BACKEND_REF : SPMV_BACKEND_OMP);
    int failed = checker == NULL;
    for (int f = 2; f < argc && checker != NULL; f++) {
        for (int v = 0; v < VARIANTS; v++) {
            spmv_read_options options;
            spmv_read_options_init(&options, sizeof options);
            options.type = variants[v].read;
            spmv_matrix *matrix = NULL;
            spmv_csr a;
            if (spmv_matrix_read(ctx, argv[f], &options, &matrix, NULL, 0) != SPMV_OK) {
                printf("%s - %s failed %s\n", argv[f], variants[v].name, spmv_last_error(ctx));
                failed++;
                continue;
            }
            spmv_matrix_view(matrix, &a);
            double *complex = NULL;
            if (variants[v].type == SPMV_C128 && a.val != NULL) {
                a.val = complex = make_complex(a.val, a.nnz);
                a.type = SPMV_C128;
            }
            failed += a.val == NULL && a.type == SPMV_C128 ? 1 : try_variant(ctx, checker, argv[f], &a, &variants[v]);
            free(complex);
            spmv_matrix_destroy(matrix);
        }
    }
    spmv_context_destroy(checker);
    spmv_context_destroy(ctx);
    return failed > 0;
}
