/* Computes products of matrix files with every method of a backend, in one process, for
 * tests/matrices/matrices.py.
 *
 *   real files     f64, f32, f32 values with f64 sums, pattern, transposed, 2, 4, 7, 8 and 16
 *                  vectors, with an epilogue, plain CSR and compressed; with complex values made
 *                  from the real ones: the conjugate transpose
 *   complex files  the same in c128 and c64, and the conjugate transpose
 *
 * On the CPU a real file meets one of the five numbers of vectors in f64, in turns, and one in five
 * real files meets the conjugate transpose: these took a third of the time, and test_spmv_types has
 * all of them.
 *
 * Each row is checked on another backend (cuda by omp, omp by ref, ref by omp). Column c of several
 * vectors is 2^c times column 0. After division by 2^c, all results of a row have the same bound, so
 * for real numbers only the least and the largest of a row are checked.
 *
 * usage: products BACKEND FILE...
 *
 * Prints a line for each product: "FILE METHOD VARIANT ROWS COLS NNZ RATIO", where RATIO is the
 * largest error of a row over its bound, or "FILE METHOD VARIANT failed SENTENCE". Exit code 77
 * without the backend, 1 if a product failed.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <spmv/spmv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct variant {
    const char *name;
    bool complex;    /* for complex files */
    bool single;     /* read the values in single precision */
    bool as_complex; /* make real values complex */
    bool pattern;    /* leave the values out */
    spmv_type type;  /* of vectors and sums */
    spmv_operation operation;
    int vectors, compression;
    bool epilogue;
};
#define COMMON .vectors = 1, .compression = -1
static const struct variant variants[] = {
    {.name = "f64", .type = SPMV_F64, COMMON},
    {.name = "plain", .type = SPMV_F64, .vectors = 1, .compression = 0},
    {.name = "packed", .type = SPMV_F64, .vectors = 1, .compression = 1},
    {.name = "values", .type = SPMV_F64, .vectors = 1, .compression = 2},
    {.name = "pattern", .type = SPMV_F64, .pattern = true, COMMON},
    {.name = "transposed", .type = SPMV_F64, .operation = SPMV_OPERATION_T, COMMON},
    {.name = "hermitian", .type = SPMV_C128, .as_complex = true, .operation = SPMV_OPERATION_H, COMMON},
    {.name = "epilogue", .type = SPMV_F64, .epilogue = true, COMMON},
    {.name = "vectors2", .type = SPMV_F64, .vectors = 2, .compression = -1},
    {.name = "vectors4", .type = SPMV_F64, .vectors = 4, .compression = -1},
    {.name = "vectors7", .type = SPMV_F64, .vectors = 7, .compression = -1},
    {.name = "vectors8", .type = SPMV_F64, .vectors = 8, .compression = -1},
    {.name = "vectors16", .type = SPMV_F64, .vectors = 16, .compression = -1},
    {.name = "f32", .type = SPMV_F32, .single = true, COMMON},
    {.name = "f32packed", .type = SPMV_F32, .single = true, .vectors = 1, .compression = 1},
    {.name = "f32vectors8", .type = SPMV_F32, .single = true, .vectors = 8, .compression = -1},
    {.name = "mixed", .type = SPMV_F64, .single = true, COMMON},
    {.name = "c128", .complex = true, .type = SPMV_C128, COMMON},
    {.name = "packed", .complex = true, .type = SPMV_C128, .vectors = 1, .compression = 1},
    {.name = "transposed", .complex = true, .type = SPMV_C128, .operation = SPMV_OPERATION_T, COMMON},
    {.name = "hermitian", .complex = true, .type = SPMV_C128, .operation = SPMV_OPERATION_H, COMMON},
    {.name = "vectors4", .complex = true, .type = SPMV_C128, .vectors = 4, .compression = -1},
    {.name = "c64", .complex = true, .single = true, .type = SPMV_C64, COMMON},
    {.name = "c64hermitian", .complex = true, .single = true, .type = SPMV_C64, .operation = SPMV_OPERATION_H, COMMON}};
#undef COMMON
enum { VARIANTS = sizeof variants / sizeof variants[0] };
enum { COUNTS = 5 }; /* variants in f64 with several vectors, one after the other */

static spmv_status context_on(spmv_backend backend, spmv_context **ctx)
{
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = backend;
    const spmv_status st = spmv_context_create(&options, ctx);
    if (st != SPMV_OK)
        fprintf(stderr, "%s\n", spmv_last_error(NULL));
    return st;
}

/* Real number i of an array; a complex element has two. */
static double number(bool single, const void *values, int64_t i)
{
    return single ? ((const float *)values)[i] : ((const double *)values)[i];
}

static void set_number(bool single, void *values, int64_t i, double value)
{
    if (single)
        ((float *)values)[i] = (float)value;
    else
        ((double *)values)[i] = value;
}

/* Fills n reals with random mantissas in [0.5, 1.5), the same in every run. */
static void fill(bool single, void *values, int64_t n)
{
    uint64_t state = 88172645463325252u;
    for (int64_t i = 0; i < n; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        set_number(single, values, i, 0.5 + (double)(state >> 11) * 0x1p-53);
    }
}

/* Column c of x (rows x vectors, of `parts` reals each) = 2^c * column. */
static void spread(bool single, const void *column, int64_t rows, int vectors, int parts, void *x)
{
    for (int64_t i = 0; i < rows; i++)
        for (int c = 0; c < vectors; c++)
            for (int p = 0; p < parts; p++)
                set_number(single, x, (i * vectors + c) * parts + p,
                           number(single, column, i * parts + p) * (double)(1 << c));
}

/* Complex values from real parts; NULL if out of memory. */
static double *make_complex(const double *real, int64_t n)
{
    double *const values = malloc((size_t)n * 16 + 1);
    for (int64_t k = 0; values != NULL && k < n; k++) {
        values[2 * k] = real[k];
        values[2 * k + 1] = (k % 3 - 1) * 0.5 * real[n - 1 - k];
    }
    return values;
}

/* Results of the epilogue of a product in f64: dot = w'y and z = 1 + y / 2, rounded once, so its
 * bits are known. */
struct riders {
    double *w, *z; /* rows elements each, in host memory */
    double dot;
};

/* Whether they agree with y. If not, sentence says why. */
static bool riders_agree(const struct riders *r, const double *y, int64_t n, char *sentence, size_t size)
{
    long double exact = 0, all = 0;
    for (int64_t i = 0; i < n; i++) {
        const double half = 0.5 * y[i], z = 1 + half;
        exact += (long double)r->w[i] * (long double)y[i];
        all += fabsl((long double)r->w[i] * (long double)y[i]);
        if (isfinite(z) && r->z[i] != z) {
            snprintf(sentence, size, "z of row %lld is %g, not %g", (long long)i, r->z[i], z);
            return false;
        }
    }
    const long double bound = 1.001L * (long double)(n + 2) * 0x1p-53L * all + DBL_MIN;
    if (isfinite(exact) && !(fabsl((long double)r->dot - exact) <= bound)) {
        snprintf(sentence, size, "the dot product is %.17g, not %.17Lg", r->dot, exact);
        return false;
    }
    return true;
}

/* The product with an epilogue. */
static spmv_status apply_with(spmv_context *ctx, spmv_plan *plan, const void *x, void *y, int64_t y_bytes,
                              struct riders *r)
{
    const double half = 0.5;
    spmv_epilogue e;
    spmv_epilogue_init(&e, sizeof e);
    void *w = NULL, *z = NULL, *dot = NULL, *gamma = NULL;
    spmv_status st = spmv_alloc(ctx, y_bytes, &w);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, y_bytes, &z);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, 8, &dot);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, 8, &gamma);
    if (st == SPMV_OK)
        st = spmv_upload(ctx, r->w, w, y_bytes);
    if (st == SPMV_OK)
        st = spmv_upload(ctx, r->z, z, y_bytes);
    if (st == SPMV_OK)
        st = spmv_upload(ctx, &half, gamma, 8);
    e.w = w;
    e.z = z;
    e.dot = dot;
    e.gamma = gamma;
    if (st == SPMV_OK)
        st = spmv_apply_with(plan, NULL, x, NULL, y, &e);
    if (st == SPMV_OK)
        st = spmv_download(ctx, z, r->z, y_bytes);
    if (st == SPMV_OK)
        st = spmv_download(ctx, dot, &r->dot, 8);
    spmv_free(ctx, w);
    spmv_free(ctx, z);
    spmv_free(ctx, dot);
    spmv_free(ctx, gamma);
    return st;
}

/* One product into host_y, through context memory. riders NULL: no epilogue. */
static spmv_status multiply(spmv_context *ctx, const spmv_csr *a, const char *method, const struct variant *v,
                            const void *host_x, int64_t x_bytes, void *host_y, int64_t y_bytes, struct riders *riders)
{
    spmv_plan_options options;
    spmv_plan_options_init(&options, sizeof options);
    options.method = method;
    options.operation = v->operation;
    options.type = v->type;
    options.vectors = v->vectors;
    options.compression = v->compression;
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
        st = riders != NULL ? apply_with(ctx, plan, x, y, y_bytes, riders) : spmv_apply(plan, NULL, x, NULL, y);
    if (st == SPMV_OK)
        st = spmv_download(ctx, y, host_y, y_bytes);
    spmv_free(ctx, x);
    spmv_free(ctx, y);
    spmv_plan_destroy(plan);
    return st;
}

/* to = column c of y (rows x vectors, of `parts` reals each) / 2^c. */
static void column(bool single, const void *y, int64_t rows, int vectors, int parts, int c, void *to)
{
    for (int64_t i = 0; i < rows; i++)
        for (int p = 0; p < parts; p++)
            set_number(single, to, i * parts + p, number(single, y, (i * vectors + c) * parts + p) / (double)(1 << c));
}

/* The least and the largest number of each row of y (rows x vectors) after division of column c by
 * 2^c. If only some numbers of a row are finite, then least is NaN and largest is finite, so that one
 * of them differs from any result. */
static void extremes(bool single, const void *y, int64_t rows, int vectors, void *least, void *largest)
{
    for (int64_t i = 0; i < rows; i++) {
        double low = INFINITY, high = -INFINITY;
        bool finite = true;
        for (int c = 0; c < vectors; c++) {
            const double value = number(single, y, i * vectors + c) / (double)(1 << c);
            if (isfinite(value)) {
                low = fmin(low, value);
                high = fmax(high, value);
            } else {
                finite = false;
            }
        }
        set_number(single, least, i, finite ? low : NAN);
        set_number(single, largest, i, high);
    }
}

struct arrays {
    void *x, *y;                 /* of all vectors */
    void *x_column, *checked[2]; /* of one */
};

/* One method: returns the product's status after the check of its results; *worst is the largest
 * error over its bound. */
static spmv_status try_method(spmv_context *ctx, spmv_context *checker, const spmv_csr *a, const char *method,
                              const struct variant *v, const struct arrays *r, int64_t x_n, int64_t y_n, double *worst,
                              const char **sentence)
{
    static char disagreement[128];
    const bool single = v->type == SPMV_F32 || v->type == SPMV_C64;
    const int64_t size = (int64_t)spmv_type_size(v->type);
    const int parts = (int)size / (single ? 4 : 8), vectors = v->vectors;
    for (int64_t i = 0; i < y_n * vectors * parts; i++)
        set_number(single, r->y, i, NAN);
    struct riders riders = {.w = r->checked[0], .z = r->checked[1]};
    for (int64_t i = 0; v->epilogue && i < y_n; i++) {
        riders.w[i] = 0.25 + (double)(i % 7);
        riders.z[i] = 1;
    }
    spmv_status st = multiply(ctx, a, method, v, r->x, x_n * vectors * size, r->y, y_n * vectors * size,
                              v->epilogue ? &riders : NULL);
    *sentence = spmv_last_error(ctx);
    if (st == SPMV_OK && v->epilogue && !riders_agree(&riders, r->y, y_n, disagreement, sizeof disagreement)) {
        *sentence = disagreement;
        return SPMV_ERROR_CHECK;
    }
    const bool two = parts == 1 && vectors > 1;
    if (st == SPMV_OK && two)
        extremes(single, r->y, y_n, vectors, r->checked[0], r->checked[1]);
    *worst = 0;
    for (int k = 0; k < (two ? 2 : vectors) && st == SPMV_OK; k++) {
        spmv_verify_result result;
        if (!two)
            column(single, r->y, y_n, vectors, parts, k, r->checked[0]);
        st = spmv_verify(checker, a, v->operation, NULL, r->x_column, NULL, NULL, r->checked[two ? k : 0], v->type,
                         &result, sizeof result);
        *worst = result.worst_ratio > *worst ? result.worst_ratio : *worst;
        *sentence = spmv_last_error(checker);
    }
    return st;
}

/* Runs all methods that support the variant on one matrix. Returns the number of failures; no
 * supporting method counts as one. */
static int try_variant(spmv_context *ctx, spmv_context *checker, const char *path, const spmv_csr *a,
                       const struct variant *v)
{
    const size_t size = spmv_type_size(v->type);
    const int64_t x_n = v->operation == SPMV_OPERATION_N ? a->cols : a->rows;
    const int64_t y_n = v->operation == SPMV_OPERATION_N ? a->rows : a->cols;
    const size_t x_bytes = (size_t)x_n * size, y_bytes = (size_t)y_n * size, vectors = (size_t)v->vectors;
    const struct arrays r = {malloc(x_bytes * vectors + 1),
                             malloc(y_bytes * vectors + 1),
                             malloc(x_bytes + 1),
                             {malloc(y_bytes + 1), malloc(y_bytes + 1)}};
    const bool have = r.x != NULL && r.y != NULL && r.x_column != NULL && r.checked[0] != NULL && r.checked[1] != NULL;
    int failed = !have, tried = 0;
    if (have) {
        const bool single = v->type == SPMV_F32 || v->type == SPMV_C64;
        const int parts = (int)size / (single ? 4 : 8);
        fill(single, r.x_column, x_n * parts);
        spread(single, r.x_column, x_n, v->vectors, parts, r.x);
    }
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
    free(r.checked[0]);
    free(r.checked[1]);
    return failed;
}

/* Runs every variant that reads the file in this precision. Returns the number of failures.
 * index: of the file. *is_complex: set with double precision, which comes first. */
static int try_file(spmv_context *ctx, spmv_context *checker, const char *path, int index, bool single,
                    bool *is_complex)
{
    spmv_read_options options;
    spmv_read_options_init(&options, sizeof options);
    spmv_read_info info;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    if (single)
        options.type = *is_complex ? SPMV_C64 : SPMV_F32;
    const spmv_status st = spmv_matrix_read(ctx, path, &options, &matrix, &info, sizeof info);
    const bool complex = *is_complex = st == SPMV_OK && info.field == SPMV_FIELD_COMPLEX;
    if (st != SPMV_OK) {
        printf("%s - read failed %s\n", path, spmv_last_error(ctx));
        return 1;
    }
    int failed = 0;
    for (int v = 0; v < VARIANTS; v++) {
        const struct variant *const variant = &variants[v];
        if (variant->complex != complex || variant->single != single ||
            (variant->compression == 1 && spmv_context_backend(ctx) != SPMV_BACKEND_OMP))
            continue;
        const bool in_turns = (variant->vectors > 1 && !complex && !single) || variant->as_complex;
        if (in_turns && spmv_context_backend(ctx) != SPMV_BACKEND_CUDA && v % COUNTS != index % COUNTS)
            continue;
        spmv_matrix_view(matrix, &a);
        /* without values, these repeat the variant f64 */
        if (a.val == NULL && (variant->pattern || (single && variant->type == SPMV_F64)))
            continue;
        double *made = NULL;
        if (variant->as_complex && a.val != NULL) {
            a.val = made = make_complex(a.val, a.nnz);
            a.type = SPMV_C128;
        }
        if (variant->pattern)
            a.val = NULL;
        failed += a.val == NULL && a.type == SPMV_C128 ? 1 : try_variant(ctx, checker, path, &a, variant);
        free(made);
    }
    spmv_matrix_destroy(matrix);
    return failed;
}

int main(int argc, char **argv)
{
    spmv_backend backend = SPMV_BACKEND_AUTO;
    if (argc < 2 || spmv_backend_parse(argv[1], &backend) != SPMV_OK) {
        fprintf(stderr, "usage: products BACKEND FILE...\n");
        return 1;
    }
    spmv_context *ctx = NULL, *checker = NULL;
    const spmv_status st = context_on(backend, &ctx);
    if (st != SPMV_OK)
        return st == SPMV_ERROR_NO_DEVICE ? 77 : 1;
    int failed = context_on(backend == SPMV_BACKEND_OMP ? SPMV_BACKEND_REF : SPMV_BACKEND_OMP, &checker) != SPMV_OK;
    for (int f = 2; f < argc && checker != NULL; f++) {
        bool is_complex = false;
        for (int single = 0; single < 2; single++)
            failed += try_file(ctx, checker, argv[f], f, single, &is_complex);
    }
    spmv_context_destroy(checker);
    spmv_context_destroy(ctx);
    return failed > 0;
}
