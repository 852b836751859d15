/* Vectors stored by columns, and with strides: a product has the bits of the same product with vectors
 * stored by rows, on every backend, in every type and for every method of several vectors; what lies
 * between the columns is neither read nor written.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "tests/support/support.h"
#include "tests/support/support_slow.h"
#include "tests/support/support_types.h"

struct variant {
    const struct types *types;
    const char *method;
    spmv_operation operation;
    int vectors, gap; /* gap: elements between two columns, or two rows */
    bool x_columns, y_columns, scaled;
};

/* x or y: n elements in each of k vectors. */
struct vectors {
    spmv_type type;
    int64_t n, stride;
    int k;
    bool by_columns;
};

static int64_t place_of(const struct vectors *a, int64_t i, int v)
{
    return a->by_columns ? v * a->stride + i : i * a->stride + v;
}

static int64_t size_of(const struct vectors *a)
{
    return (a->by_columns ? a->k : a->n) * a->stride;
}

/* The elements of dense rows in the places of `a`, and NaN in the others. */
static void *arranged(const struct vectors *a, const void *rows)
{
    const size_t size = spmv_type_size(a->type);
    char *const to = support_zeros(size_of(a) + 1, 16);
    for (int64_t i = 0; i < size_of(a); i++)
        put(a->type, to, i, NAN, NAN);
    for (int64_t i = 0; i < a->n; i++)
        for (int v = 0; v < a->k; v++)
            memcpy(to + (size_t)place_of(a, i, v) * size, (const char *)rows + (size_t)(i * a->k + v) * size, size);
    return to;
}

/* y of a product of this plan. host_y: y before, and after. */
static void multiply(spmv_context *ctx, spmv_plan *plan, const struct variant *v, const struct vectors *x,
                     const void *host_x, const struct vectors *y, void *host_y)
{
    const int64_t size = (int64_t)spmv_type_size(x->type);
    double scalars[4];
    put(x->type, scalars, 0, 0.5, -0.75);
    put(x->type, scalars + 2, 0, -3, 0.25);
    void *device_x = support_upload(ctx, host_x, size_of(x) * size);
    void *device_y = support_upload(ctx, host_y, size_of(y) * size);
    for (int i = 0; i < (v->scaled ? 1 : 2); i++) /* the second finds its work space in use */
        assert_ok(ctx,
                  spmv_apply(plan, v->scaled ? scalars : NULL, device_x, v->scaled ? scalars + 2 : NULL, device_y));
    assert_ok(ctx, spmv_download(ctx, device_y, host_y, size_of(y) * size));
    support_free_in(ctx, device_x, device_y);
}

static void check(spmv_context *ctx, const spmv_csr *a, const struct variant *v)
{
    const spmv_type type = v->types->sums;
    const bool turned = v->operation != SPMV_OPERATION_N;
    const int64_t x_n = turned ? a->rows : a->cols, y_n = turned ? a->cols : a->rows;
    const struct vectors x_rows = {type, x_n, v->vectors, v->vectors, false},
                         y_rows = {type, y_n, v->vectors, v->vectors, false};
    const struct vectors x = {type, x_n, (v->x_columns ? x_n : v->vectors) + v->gap, v->vectors, v->x_columns},
                         y = {type, y_n, (v->y_columns ? y_n : v->vectors) + v->gap, v->vectors, v->y_columns};
    void *const x0 = random_elements(type, x_n * v->vectors, 2), *const expected =
                                                                     random_elements(type, y_n * v->vectors, 3);
    void *const my_x = arranged(&x, x0), *const my_y = arranged(&y, expected);
    spmv_plan_options o = support_plan_options();
    spmv_plan *plan = NULL;
    spmv_plan_info info;
    o.type = type;
    o.method = v->method;
    o.operation = v->operation;
    o.vectors = v->vectors;
    assert_ok(ctx, spmv_plan_create(ctx, a, &o, &plan));
    multiply(ctx, plan, v, &x_rows, x0, &y_rows, expected);
    spmv_plan_destroy(plan);
    o.x_layout = v->x_columns ? SPMV_LAYOUT_COLUMNS : SPMV_LAYOUT_ROWS;
    o.y_layout = v->y_columns ? SPMV_LAYOUT_COLUMNS : SPMV_LAYOUT_ROWS;
    o.x_stride = v->gap > 0 ? x.stride : 0;
    o.y_stride = v->gap > 0 ? y.stride : 0;
    assert_ok(ctx, spmv_plan_create(ctx, a, &o, &plan));
    assert_ok(ctx, spmv_plan_describe(plan, &info, sizeof info));
    assert_true(info.vectors == v->vectors && info.x_layout == o.x_layout && info.y_layout == o.y_layout);
    assert_true(info.x_stride == x.stride && info.y_stride == y.stride);
    multiply(ctx, plan, v, &x, my_x, &y, my_y);
    spmv_plan_destroy(plan);
    void *const all = arranged(&y, expected);
    if (memcmp(all, my_y, (size_t)size_of(&y) * spmv_type_size(type)) != 0)
        fail_msg("%s, %s, operation %d, %d vectors%s%s, gap %d: other bits than by rows", v->types->name,
                 v->method != NULL ? v->method : "auto", (int)v->operation, v->vectors,
                 v->x_columns ? ", x by columns" : "", v->y_columns ? ", y by columns" : "", v->gap);
    support_free(x0, expected, my_x, my_y, all);
}

/* Matrices with few entries per row, which omp multiplies column by column, with many, and with a long row;
 * numbers of vectors of less than a tile of columns, of several, and of several passes. */
static void same_bits_as_rows(void **state)
{
    spmv_context *const ctx = *state;
    static const char *const specs[] = {"uniform:1300,900,3", "uniform:90,120,30", "longrows:1,300,290"};
    static const int counts[] = {1, 2, 5, 8, 33, 130};
    static const char *const methods[] = {NULL, "columns", "wide", "panels", "octets", "abreast"};
    const bool host = support_backend != SPMV_BACKEND_CUDA;
    for (int s = 0; s < 3; s++) {
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        assert_ok(ctx, spmv_matrix_generate(ctx, specs[s], SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        for (int k = 0; k < 6; k++)
            for (int t = 0; t < TYPES; t++) {
                const int kind = s + k + t;
                const struct variant v = {.types = &all_types[t],
                                          .method = host || counts[k] == 1 ? NULL : methods[(kind + t) % 6],
                                          .operation = (spmv_operation)(kind / 2 % 3),
                                          .vectors = counts[k],
                                          .gap = kind % 2 * 3,
                                          .x_columns = counts[k] == 1 || kind % 4 != 1,
                                          .y_columns = counts[k] == 1 || kind % 4 != 2,
                                          .scaled = kind % 3 != 0};
                void *const val = random_elements(v.types->values, a.nnz, 1);
                spmv_csr typed = a;
                typed.val = val;
                typed.type = v.types->values;
                /* On an emulated GPU each type takes every third number. */
                if (!SLOW || (s * 2 + k + t) % 3 == 0)
                    check(ctx, &typed, &v);
                free(val);
            }
        spmv_matrix_destroy(matrix);
    }
}

static void empty_sizes(void **state)
{
    spmv_context *const ctx = *state;
    static const int64_t sizes[][2] = {{0, 0}, {0, 5}, {5, 0}};
    for (int s = 0; s < 3; s++) {
        const int64_t row_ptr[6] = {0};
        const spmv_csr a = support_view(sizes[s][0], sizes[s][1], 0, row_ptr, NULL, NULL, SPMV_F64);
        check(ctx, &a,
              &(const struct variant){.types = &all_types[0], .vectors = 9, .x_columns = true, .y_columns = true});
    }
}

static void refusals(void **state)
{
    spmv_context *const ctx = *state;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    spmv_plan *plan = NULL;
    spmv_plan_options o = support_plan_options();
    spmv_cg_result result[4];
    spmv_epilogue epilogue;
    double x, y;
    assert_ok(ctx, spmv_matrix_generate(ctx, "uniform:7,9,2", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    o.vectors = 4;
    o.x_layout = SPMV_LAYOUT_COLUMNS;
    o.x_stride = 8;
    assert_fails(ctx, spmv_plan_create(ctx, &a, &o, &plan), SPMV_ERROR_ARGUMENT,
                 "x_stride is 8, less than the 9 elements of a vector");
    o.operation = SPMV_OPERATION_T;
    o.y_layout = SPMV_LAYOUT_COLUMNS;
    o.y_stride = 8;
    assert_fails(ctx, spmv_plan_create(ctx, &a, &o, &plan), SPMV_ERROR_ARGUMENT,
                 "y_stride is 8, less than the 9 elements of a vector");
    o.y_stride = 9;
    assert_ok(ctx, spmv_plan_create(ctx, &a, &o, &plan));
    spmv_epilogue_init(&epilogue, sizeof epilogue);
    epilogue.z = result;
    assert_fails(ctx, spmv_apply_with(plan, NULL, &x, NULL, &y, &epilogue), SPMV_ERROR_UNSUPPORTED,
                 "the plan is for 4 vectors with strides 8 and 9");
    spmv_plan_destroy(plan);
    spmv_matrix_destroy(matrix);
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:2", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    o = support_plan_options();
    o.vectors = 4; /* as many as rows: the strides alone do not tell */
    o.x_layout = o.y_layout = SPMV_LAYOUT_COLUMNS;
    assert_ok(ctx, spmv_plan_create(ctx, &a, &o, &plan));
    assert_fails(ctx, spmv_cg(plan, &x, &y, NULL, result, sizeof result[0]), SPMV_ERROR_UNSUPPORTED,
                 "4 vectors stored by columns");
    spmv_plan_destroy(plan);
    spmv_matrix_destroy(matrix);
}

SUPPORT_MAIN(with_context(same_bits_as_rows), with_context(empty_sizes), with_context(refusals))
