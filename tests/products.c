/* Every method of a backend on matrix files, in one process: a product each in f64, in f32 and transposed, checked row
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
#include <stdio.h>
#include <stdlib.h>

struct variant {
    const char *name;
    spmv_type type;
    spmv_operation operation;
};
static const struct variant variants[] = {{"f64", SPMV_F64, SPMV_OPERATION_N},
                                          {"f32", SPMV_F32, SPMV_OPERATION_N},
                                          {"transposed", SPMV_F64, SPMV_OPERATION_T}};
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

/* x_j in [0.5, 1.5), full mantissas, the same in every run; y poisoned with NaN. */
static void fill(spmv_type type, void *x, int64_t x_n, void *y, int64_t y_n)
{
    uint64_t state = 88172645463325252u;
    for (int64_t i = 0; i < x_n; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        const double value = 0.5 + (double)(state >> 11) * 0x1p-53;
        if (type == SPMV_F32)
            ((float *)x)[i] = (float)value;
        else
            ((double *)x)[i] = value;
    }
    for (int64_t i = 0; i < y_n; i++) {
        if (type == SPMV_F32)
            ((float *)y)[i] = 0.0f / 0.0f;
        else
            ((double *)y)[i] = 0.0 / 0.0;
    }
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

/* All methods on one matrix in one variant; the number of products that failed. */
static int try_variant(spmv_context *ctx, spmv_context *checker, const char *path, const spmv_csr *a,
                       const struct variant *v)
{
    const int64_t size = (int64_t)spmv_type_size(v->type), x_n = v->operation == SPMV_OPERATION_N ? a->cols : a->rows;
    const int64_t y_n = v->operation == SPMV_OPERATION_N ? a->rows : a->cols;
    void *x = malloc((size_t)(x_n * size + 1)), *y = malloc((size_t)(y_n * size + 1));
    int failed = 0;
    const char *method;
    for (int m = 0; x != NULL && y != NULL && (method = spmv_method_name(spmv_context_backend(ctx), m)) != NULL; m++) {
        spmv_verify_result result;
        fill(v->type, x, x_n, y, y_n);
        spmv_status st = multiply(ctx, a, method, v, x, x_n * size, y, y_n * size);
        const char *sentence = spmv_last_error(ctx);
        if (st == SPMV_OK) {
            st = spmv_verify(checker, a, v->operation, NULL, x, NULL, NULL, y, v->type, &result, sizeof result);
            sentence = spmv_last_error(checker);
        }
        if (st != SPMV_OK)
            printf("%s %s %s failed %s: %s\n", path, method, v->name, spmv_status_name(st), sentence);
        else
            printf("%s %s %s %lld %lld %lld %.6g\n", path, method, v->name, (long long)a->rows, (long long)a->cols,
                   (long long)a->nnz, result.worst_ratio);
        failed += st != SPMV_OK;
    }
    failed += x == NULL || y == NULL;
    free(x);
    free(y);
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
            options.type = variants[v].type;
            spmv_matrix *matrix = NULL;
            spmv_csr a;
            if (spmv_matrix_read(ctx, argv[f], &options, &matrix, NULL, 0) != SPMV_OK) {
                printf("%s - %s failed %s\n", argv[f], variants[v].name, spmv_last_error(ctx));
                failed++;
                continue;
            }
            spmv_matrix_view(matrix, &a);
            failed += try_variant(ctx, checker, argv[f], &a, &variants[v]);
            spmv_matrix_destroy(matrix);
        }
    }
    spmv_context_destroy(checker);
    spmv_context_destroy(ctx);
    return failed > 0;
}
