/* Products of several vectors at once, in complex types, and with f32 values and f64 sums. Every
 * method that supports them is compared with an independent oracle, entry by entry in long double;
 * the others must refuse. Gaps between the rows of x are not read, gaps between those of y not
 * written. On ref and omp a column has the bits of a product of one vector; on cuda repeated runs
 * have the same bits. Also tests spmv_verify on these products.
 *
 *   test_spmv_types BACKEND time [SPEC...]    measures times instead: one line for each matrix,
 *                                             type, operation and number of vectors
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>

#include "core/clock.h"
#include "product/plan_internal.h"
#include "tests/support/support.h"
#include "tests/support/support_slow.h"
#include "tests/support/support_types.h"

static bool brief;

/* ------------------------------------------------------------------ matrices */

struct matrix {
    int64_t rows, cols, nnz;
    int64_t *row_ptr;
    int32_t *col;
};

/* Row lengths:
 *   0: 0 to 59 entries
 *   1: 0 to 5
 *   2: mostly empty, two rows of thousands
 *   3: no entries
 *   4: as 1, with one row so long that its fragments are folded in groups
 *   5: an arrow: one long row and rows of 4 whose columns shift from row to row, most with one
 *      fixed column: the first, the third or the last */
enum { SHAPES = 4, HUGE_ROW = 4, ARROW = 5 };

static struct matrix make_matrix(int64_t rows, int64_t cols, int shape)
{
    uint64_t random = (uint64_t)(rows * 31 + cols + shape);
    struct matrix m = {.rows = rows, .cols = cols, .row_ptr = support_zeros(rows + 1, 8)};
    for (int64_t i = 0; i < rows; i++) {
        const int64_t draw = (int64_t)(support_random(&random) % 60);
        m.row_ptr[i + 1] = m.row_ptr[i] + (shape == 0          ? draw
                                           : shape == 1        ? draw % 6
                                           : shape == 2        ? (i == rows / 2   ? 9000
                                                                  : i == rows - 2 ? 2100
                                                                  : draw < 5      ? draw
                                                                                  : 0)
                                           : shape == HUGE_ROW ? (i == 3 ? 40000 : draw % 6)
                                           : shape == ARROW    ? (i == 0 ? 5000 : 4)
                                                               : 0);
    }
    m.nnz = m.row_ptr[rows];
    m.col = support_zeros(m.nnz, 4);
    for (int64_t k = 0; k < m.nnz; k++)
        m.col[k] = (int32_t)(support_random(&random) % (uint64_t)cols);
    for (int64_t i = 1; shape == ARROW && i < rows; i++) {
        const int64_t third = 3 * i / rows, stays = third == 0 ? 0 : third + 1;
        const bool all_move = support_random(&random) % 4 == 0;
        for (int64_t j = 0; j < 4; j++)
            m.col[m.row_ptr[i] + j] = j == stays && !all_move ? 2 : (int32_t)((i + 2 * j) % cols);
    }
    return m;
}

static void free_matrix(struct matrix *m)
{
    support_free(m->row_ptr, m->col);
}

static spmv_csr view_of(const struct matrix *m, const void *val, spmv_type type)
{
    return support_view(m->rows, m->cols, m->nnz, m->row_ptr, m->col, val, type);
}

/* ------------------------------------------------------------------ products */

struct variant {
    const struct types *types;
    bool pattern, scaled;
    spmv_operation operation;
    int vectors, x_gap, y_gap; /* columns; elements between the rows */
};

/* The methods that support a variant according to the documentation. */
static bool method_takes(const char *method, const struct variant *v)
{
    const bool host = support_backend != SPMV_BACKEND_CUDA;
    const bool many = v->vectors > 1 || v->x_gap > 0 || v->y_gap > 0;
    const bool special = type_is_complex(v->types->sums) || (!v->pattern && v->types->values != v->types->sums);
    if (strcmp(method, "staged") == 0)
        return !many && !special;
    if (strcmp(method, "slices") == 0 || strcmp(method, "long") == 0 || strcmp(method, "groups") == 0 ||
        strcmp(method, "padded") == 0)
        return !many && !type_is_complex(v->types->sums);
    if (host || strcmp(method, "columns") == 0 || strcmp(method, "wide") == 0 || strcmp(method, "panels") == 0 ||
        strcmp(method, "octets") == 0 || strcmp(method, "abreast") == 0)
        return true;
    return !many;
}

static const double alpha_parts[2] = {0.5, -0.75}, beta_parts[2] = {-3, 0.25};

static long double absolute(struct wide z)
{
    return z.im == 0 ? fabsl(z.re) : hypotl(z.re, z.im);
}

/* Compares y with alpha op(A) x + beta y0, and the gaps with those of y0. */
static void oracle(const struct matrix *m, const void *val, const struct variant *v, const void *x, const void *y0,
                   const void *y, const char *method)
{
    const spmv_type type = v->types->sums;
    const bool transposed = v->operation != SPMV_OPERATION_N, single = type == SPMV_F32 || type == SPMV_C64;
    const int64_t n = transposed ? m->cols : m->rows, size = (int64_t)spmv_type_size(type);
    const int64_t x_stride = v->vectors + v->x_gap, y_stride = v->vectors + v->y_gap;
    const long double im = type_is_complex(type) ? 1 : 0;
    const struct wide one = {1, 0}, alpha = {alpha_parts[0], im * alpha_parts[1]},
                      beta = {beta_parts[0], im * beta_parts[1]};
    struct wide *sum = support_zeros(n * v->vectors, sizeof *sum);
    long double *magnitude = support_zeros(n * v->vectors, sizeof *magnitude);
    int64_t *terms = support_zeros(n, sizeof *terms);
    for (int64_t i = 0; i < m->rows; i++) {
        for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++) {
            const int64_t to = transposed ? m->col[k] : i, from = transposed ? i : m->col[k];
            struct wide a = val != NULL ? element(v->types->values, val, k) : one;
            if (v->operation == SPMV_OPERATION_H)
                a.im = -a.im;
            terms[to]++;
            for (int c = 0; c < v->vectors; c++) {
                const struct wide p = times(a, element(type, x, from * x_stride + c));
                sum[to * v->vectors + c].re += p.re;
                sum[to * v->vectors + c].im += p.im;
                magnitude[to * v->vectors + c] += absolute(p);
            }
        }
    }
    for (int64_t i = 0; i < n; i++) {
        for (int c = 0; c < v->vectors; c++) {
            const int64_t at = i * v->vectors + c;
            struct wide expected = sum[at];
            long double all = magnitude[at];
            if (v->scaled) {
                const struct wide before = element(type, y0, i * y_stride + c), b = times(beta, before);
                expected = times(alpha, expected);
                expected.re += b.re;
                expected.im += b.im;
                all = absolute(alpha) * all + absolute(b);
            }
            const struct wide got = element(type, y, i * y_stride + c);
            const long double roundoff = single ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
            const long double bound =
                (long double)(terms[i] + (type_is_complex(type) ? 6 : 4)) * roundoff * all * 1.01L + 1e-300L;
            if (!(absolute((struct wide){got.re - expected.re, got.im - expected.im}) <= bound))
                fail_msg("%s, %s%s, operation %d, %d vectors: row %lld, column %d is %.17Lg %+.17Lgi, expected %.17Lg "
                         "%+.17Lgi +- %.3Lg",
                         method, v->types->name, v->pattern ? ", pattern" : "", (int)v->operation, v->vectors,
                         (long long)i, c, got.re, got.im, expected.re, expected.im, bound);
        }
        const int64_t gap = (i * y_stride + v->vectors) * size;
        if (memcmp((const char *)y + gap, (const char *)y0 + gap, (size_t)(v->y_gap * size)) != 0)
            fail_msg("%s: what lies between rows %lld and %lld was written", method, (long long)i, (long long)i + 1);
    }
    support_free(sum, magnitude, terms);
}

static spmv_status try_plan(spmv_context *ctx, const spmv_csr *a, const char *method, const struct variant *v,
                            spmv_plan **plan)
{
    spmv_plan_options options = support_plan_options();
    options.method = method;
    options.operation = v->operation;
    options.type = v->types->sums;
    options.vectors = v->vectors;
    options.x_stride = v->x_gap > 0 ? v->vectors + v->x_gap : 0;
    options.y_stride = v->y_gap > 0 ? v->vectors + v->y_gap : 0;
    return spmv_plan_create(ctx, a, &options, plan);
}

static spmv_status apply(spmv_plan *plan, const struct variant *v, const void *x, void *y)
{
    double scalars[4];
    put(v->types->sums, scalars, 0, alpha_parts[0], alpha_parts[1]);
    put(v->types->sums, scalars + 2, 0, beta_parts[0], beta_parts[1]);
    return v->scaled ? spmv_apply(plan, scalars, x, scalars + 2, y) : spmv_apply(plan, NULL, x, NULL, y);
}

/* Column c has the same bits in a product of that column only, by a plan of the same method. */
static void same_alone(spmv_context *ctx, const spmv_csr *a, const char *method, const struct variant *v, const void *x,
                       int64_t x_n, const void *y0, const void *y, int64_t y_n, int c)
{
    const spmv_type type = v->types->sums;
    const int64_t size = (int64_t)spmv_type_size(type);
    const int64_t x_stride = v->vectors + v->x_gap, y_stride = v->vectors + v->y_gap;
    struct variant alone = *v;
    alone.vectors = 1;
    alone.x_gap = alone.y_gap = 0;
    char *my_x = support_zeros(x_n, 16), *my_y = support_zeros(y_n, 16);
    for (int64_t i = 0; i < x_n; i++)
        memcpy(my_x + i * size, (const char *)x + (i * x_stride + c) * size, (size_t)size);
    for (int64_t i = 0; i < y_n; i++)
        memcpy(my_y + i * size, (const char *)y0 + (i * y_stride + c) * size, (size_t)size);
    void *device_x = support_upload(ctx, my_x, x_n * size), *device_y = support_upload(ctx, my_y, y_n * size);
    spmv_plan *plan = NULL;
    assert_ok(ctx, try_plan(ctx, a, method, &alone, &plan));
    assert_ok(ctx, apply(plan, &alone, device_x, device_y));
    assert_ok(ctx, spmv_download(ctx, device_y, my_y, y_n * size));
    for (int64_t i = 0; i < y_n; i++)
        if (memcmp(my_y + i * size, (const char *)y + (i * y_stride + c) * size, (size_t)size) != 0)
            fail_msg("%s, %s: column %d of %d: row %lld has other bits than by itself", method, v->types->name, c,
                     v->vectors, (long long)i);
    spmv_plan_destroy(plan);
    support_free_in(ctx, device_x, device_y);
    support_free(my_x, my_y);
}

/* One product by a plan or, with `twice`, two, which have the same bits. */
static void check_applied(spmv_context *ctx, const struct matrix *m, const char *method, const struct variant *v,
                          const spmv_csr *a, spmv_plan *plan, const void *x, int64_t x_n, void *device_x, bool twice)
{
    const spmv_type type = v->types->sums;
    const int64_t size = (int64_t)spmv_type_size(type), y_n = v->operation != SPMV_OPERATION_N ? m->cols : m->rows;
    const int64_t y_stride = v->vectors + v->y_gap, y_bytes = y_n * y_stride * size;
    void *y0 = random_elements(type, y_n * y_stride, 3), *y = support_zeros(y_n * y_stride, 16),
         *again = support_zeros(y_n * y_stride, 16);
    for (int64_t i = 0; !v->scaled && i < y_n; i++)
        for (int c = 0; c < v->vectors; c++)
            put(type, y0, i * y_stride + c, NAN, NAN);
    void *device_y = support_upload(ctx, y0, y_bytes);
    assert_ok(ctx, apply(plan, v, device_x, device_y));
    assert_ok(ctx, spmv_download(ctx, device_y, y, y_bytes));
    oracle(m, a->val, v, x, y0, y, method);
    if (twice) {
        assert_ok(ctx, spmv_upload(ctx, y0, device_y, y_bytes));
        assert_ok(ctx, apply(plan, v, device_x, device_y));
        assert_ok(ctx, spmv_download(ctx, device_y, again, y_bytes));
        assert_memory_equal(y, again, (size_t)y_bytes);
    }
    const bool any_width = support_backend != SPMV_BACKEND_CUDA || strcmp(method, "wide") == 0 ||
                           strcmp(method, "panels") == 0 || strcmp(method, "octets") == 0 ||
                           strcmp(method, "abreast") == 0;
    const int step = v->vectors <= 32 ? 3 : v->vectors / 3;
    for (int c = 0; c < v->vectors && v->vectors > 1 && any_width; c += step)
        same_alone(ctx, a, method, v, x, x_n, y0, y, y_n, c);
    spmv_free(ctx, device_y);
    support_free(y0, y, again);
}

/* both: a plain and a scaled product by one plan; else as v says. */
static void check_product(spmv_context *ctx, const struct matrix *m, const char *method, const struct variant *v,
                          bool both)
{
    const bool transposed = v->operation != SPMV_OPERATION_N;
    const spmv_type type = v->types->sums;
    const int64_t size = (int64_t)spmv_type_size(type);
    const int64_t x_n = transposed ? m->rows : m->cols, x_stride = v->vectors + v->x_gap;
    void *val = v->pattern ? NULL : random_elements(v->types->values, m->nnz, 1);
    void *x = random_elements(type, x_n * x_stride, 2);
    const spmv_csr a = view_of(m, val, v->types->values);
    spmv_plan *plan = NULL;
    for (int64_t i = 0; i < x_n; i++)
        for (int g = 0; g < v->x_gap; g++)
            put(type, x, i * x_stride + v->vectors + g, NAN, NAN); /* must not be read */
    if (!method_takes(method, v)) {
        assert_fails(ctx, try_plan(ctx, &a, method, v, &plan), SPMV_ERROR_UNSUPPORTED, method);
        assert_null(plan);
    } else {
        void *device_x = support_upload(ctx, x, x_n * x_stride * size);
        struct variant other = *v;
        other.scaled = !v->scaled;
        assert_ok(ctx, try_plan(ctx, &a, method, v, &plan));
        /* On an emulated GPU, of both products one runs twice. */
        check_applied(ctx, m, method, v, &a, plan, x, x_n, device_x, !(SLOW && both && v->pattern));
        if (both)
            check_applied(ctx, m, method, &other, &a, plan, x, x_n, device_x, !(SLOW && !v->pattern));
        spmv_plan_destroy(plan);
        spmv_free(ctx, device_x);
    }
    support_free(val, x);
}

/* Every method on a variant; both: plain and scaled. */
static void check_methods(spmv_context *ctx, const struct matrix *m, const struct variant *v, bool both)
{
    const char *method;
    for (int i = 0; (method = spmv_method_name(support_backend, i)) != NULL; i++)
        check_product(ctx, m, method, v, both);
}

/* One vector, in every type and operation, with and without values and scaling. */
static void every_type(void **state)
{
    spmv_context *ctx = *state;
    for (int shape = brief ? HUGE_ROW : 0; shape <= (brief ? HUGE_ROW : ARROW); shape++) {
        struct matrix m = make_matrix(shape == 1 || shape == ARROW ? 900
                                      : shape == HUGE_ROW          ? 20
                                                                   : 150,
                                      shape == ARROW ? 1000 : 230, shape);
        for (int t = 0; t < TYPES; t++)
            for (int number = 0; number < 6; number += brief ? 5 : 1) {
                const struct variant v = {.types = &all_types[t],
                                          .pattern = number % 2,
                                          .operation = (spmv_operation)(number / 2),
                                          .vectors = 1};
                /* T and H are the same for real numbers: one runs with a pattern, the other with
                 * values. */
                const bool repeats = !type_is_complex(v.types->sums) && v.operation != SPMV_OPERATION_N &&
                                     v.pattern != (v.operation == SPMV_OPERATION_T);
                /* On an emulated GPU each type and product takes every fifth shape. */
                if (!SLOW || (!repeats && (shape + t + number + number / 2) % 5 == 0))
                    check_methods(ctx, &m, &v, true);
            }
        free_matrix(&m);
    }
}

/* Distant columns, which have kernels of their own. */
static void wide_matrices(void **state)
{
    spmv_context *ctx = *state;
    struct matrix m = make_matrix(100, 150000, 0);
    for (int t = 0; t < TYPES; t++)
        for (int pattern = 0; pattern < 2; pattern++) {
            const struct variant v = {
                .types = &all_types[t], .pattern = pattern, .operation = SPMV_OPERATION_N, .vectors = 1};
            check_methods(ctx, &m, &v, true);
        }
    free_matrix(&m);
}

/* Several vectors: numbers that fill whole packs and others, more than one launch takes; with and
 * without gaps. */
static void several_vectors(void **state)
{
    spmv_context *ctx = *state;
    const struct {
        int vectors, x_gap, y_gap;
    } counts[] = {{2, 0, 0}, {4, 0, 0}, {8, 0, 0},  {16, 0, 0}, {3, 0, 0}, {1, 1, 2},
                  {4, 4, 1}, {8, 3, 0}, {16, 0, 5}, {21, 0, 0}, {7, 2, 3}, {32, 0, 0}};
    const bool host = support_backend != SPMV_BACKEND_CUDA;
    for (int number = 0; number < (brief ? 1 : SHAPES + host); number++) {
        const int shape = number < SHAPES ? number : ARROW;
        struct matrix m = make_matrix(shape == 1 || shape == ARROW ? 700 : 90, 110, brief ? 2 : shape);
        for (size_t k = 0; k < (brief ? 5 : sizeof counts / sizeof counts[0]); k++)
            for (int t = 0; t < TYPES; t++) {
                const int kind = (int)k + t;
                const struct variant v = {.types = &all_types[t],
                                          .pattern = kind % 4 == 3,
                                          .scaled = kind % 2,
                                          .operation = (spmv_operation)(kind % 3),
                                          .vectors = counts[k].vectors,
                                          .x_gap = counts[k].x_gap,
                                          .y_gap = counts[k].y_gap};
                if (!SLOW || (number + (int)k / 2 + t / 2) % 3 == 0)
                    check_methods(ctx, &m, &v, false);
            }
        free_matrix(&m);
    }
}

/* Numbers of vectors around those that a lane, a subwarp and a launch of the method "wide" take, with
 * rows of several shares, tiles and blocks of it. */
static void many_vectors(void **state)
{
    spmv_context *ctx = *state;
    static const int counts[] = {1, 2, 3, 5, 7, 8, 16, 17, 31, 32, 33, 64, 100, 128, 130, 513}, shapes[] = {0, 1, 2};
    for (int number = 0; number < (brief ? 1 : 3); number++) {
        struct matrix m = make_matrix(number == 1 ? 300 : 60, 90, shapes[number]);
        struct matrix few = make_matrix(30, 90, shapes[number]);
        for (int k = 0; k < (int)(sizeof counts / sizeof counts[0]); k += brief ? 5 : 1)
            for (int t = 0; t < TYPES; t++) {
                const struct variant v = {.types = &all_types[t],
                                          .pattern = (k + t) % 4 == 3,
                                          .scaled = (k + t + number) % 2,
                                          .operation = (spmv_operation)((k + number) % 3),
                                          .vectors = counts[k],
                                          .x_gap = (k + t) % 3 == 1 ? 4 : 0,
                                          .y_gap = (k + t) % 3 == 2 ? 3 : 0};
                /* Without a GPU each type takes every third number; on an emulated GPU each number takes
                 * half of the types, of more than 64 vectors a third. */
                const int turns = !SLOW ? 3 : counts[k] > 64 ? 9 : 6;
                if ((support_backend == SPMV_BACKEND_CUDA && !SLOW) || (number + k + t) % turns == 0)
                    check_methods(ctx, SLOW && counts[k] > 64 ? &few : &m, &v, false);
            }
        free_matrix(&m);
        free_matrix(&few);
    }
}

/* Rows that cross tiles of the method "tiles" on omp, and sizes around a tile; no rows, no
 * columns. */
static void borders_and_empty_sizes(void **state)
{
    spmv_context *ctx = *state;
    const struct {
        int64_t rows, cols;
        int shape;
    } sizes[] = {{4095, 30, 1}, {4097, 30, 1}, {1, 5, 0}, {0, 0, 3}, {0, 4, 3}, {4, 0, 3}, {2, 7, 2}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct matrix m = make_matrix(sizes[s].rows, sizes[s].cols, sizes[s].shape);
        for (int t = 0; t < TYPES; t++) {
            const struct variant v = {.types = &all_types[t], .vectors = 4, .operation = SPMV_OPERATION_N};
            check_methods(ctx, &m, &v, false);
        }
        free_matrix(&m);
    }
}

/* Plans use 64-bit offsets only from 2^31 nonzeros on. Put into a smaller plan, they give the same
 * bits. */
static void wide_offsets(void **state)
{
    spmv_context *ctx = *state;
    struct matrix m = make_matrix(90, 110, 2);
    void *wide = support_upload(ctx, m.row_ptr, (m.rows + 1) * 8);
    for (int t = 0; t < TYPES; t++) {
        for (int vectors = 1; vectors <= 4; vectors += 3) {
            const struct variant v = {.types = &all_types[t], .vectors = vectors, .scaled = true};
            const int64_t size = (int64_t)spmv_type_size(v.types->sums), y_bytes = m.rows * vectors * size;
            void *val = random_elements(v.types->values, m.nnz, 1);
            void *x = random_elements(v.types->sums, m.cols * vectors, 2);
            void *y0 = random_elements(v.types->sums, m.rows * vectors, 3);
            void *narrow_y = support_zeros(y_bytes, 1), *wide_y = support_zeros(y_bytes, 1);
            void *device_x = support_upload(ctx, x, m.cols * vectors * size);
            void *device_y = support_upload(ctx, y0, y_bytes);
            const spmv_csr a = view_of(&m, val, v.types->values);
            const char *method;
            for (int i = 0; (method = spmv_method_name(support_backend, i)) != NULL; i++) {
                spmv_plan *plan = NULL;
                if (!method_takes(method, &v) || !support_takes_wide_offsets(method))
                    continue;
                assert_ok(ctx, try_plan(ctx, &a, method, &v, &plan));
                assert_int_equal(plan->a.row_ptr_bits, 32);
                assert_ok(ctx, spmv_upload(ctx, y0, device_y, y_bytes));
                assert_ok(ctx, apply(plan, &v, device_x, device_y));
                assert_ok(ctx, spmv_download(ctx, device_y, narrow_y, y_bytes));
                plan_release_state(plan);
                plan->a.row_ptr = wide;
                plan->a.row_ptr_bits = 64;
                assert_ok(ctx, method_prepare(plan));
                assert_ok(ctx, spmv_upload(ctx, y0, device_y, y_bytes));
                assert_ok(ctx, apply(plan, &v, device_x, device_y));
                assert_ok(ctx, spmv_download(ctx, device_y, wide_y, y_bytes));
                assert_memory_equal(narrow_y, wide_y, (size_t)y_bytes);
                spmv_plan_destroy(plan);
            }
            support_free_in(ctx, device_x, device_y);
            void *const memory[] = {val, x, y0, narrow_y, wide_y};
            for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
                free(memory[i]);
        }
    }
    spmv_free(ctx, wide);
    free_matrix(&m);
}

/* x and y one element past the alignment of packs of columns: correct values, with the bits of
 * aligned arrays. */
static void misplaced_vectors(void **state)
{
    enum { ROWS = 90, COLS = 110, MOST = 16 };
    spmv_context *ctx = *state;
    for (int vectors = 4; vectors <= MOST; vectors *= 2) {
        for (int shape = 0; shape <= 2; shape += 2) {
            struct matrix m = make_matrix(ROWS, COLS, shape);
            const int64_t x_n = COLS * vectors, y_n = ROWS * vectors;
            double *val = random_elements(SPMV_F64, m.nnz, 1), *x = random_elements(SPMV_F64, x_n, 2);
            const spmv_csr a = view_of(&m, val, SPMV_F64);
            const struct variant v = {.types = &all_types[0], .vectors = vectors};
            double *y = support_zeros(y_n, 8), *moved_y = support_zeros(y_n + 1, 8), *y0 = support_zeros(y_n, 8);
            double *device_x = support_upload(ctx, x, x_n * 8), *device_y = support_upload(ctx, y0, y_n * 8);
            double *moved_x = NULL, *device_moved_y = support_upload(ctx, moved_y, (y_n + 1) * 8);
            spmv_plan *plan = NULL;
            assert_ok(ctx, spmv_alloc(ctx, (x_n + 1) * 8, (void **)&moved_x));
            assert_ok(ctx, spmv_upload(ctx, x, moved_x + 1, x_n * 8));
            assert_ok(ctx, try_plan(ctx, &a, NULL, &v, &plan));
            assert_ok(ctx, apply(plan, &v, device_x, device_y));
            assert_ok(ctx, apply(plan, &v, moved_x + 1, device_moved_y + 1));
            assert_ok(ctx, spmv_download(ctx, device_y, y, y_n * 8));
            assert_ok(ctx, spmv_download(ctx, device_moved_y, moved_y, (y_n + 1) * 8));
            oracle(&m, val, &v, x, y0, y, "auto");
            assert_memory_equal(y, moved_y + 1, (size_t)y_n * 8);
            assert_true(moved_y[0] == 0);
            spmv_plan_info info;
            assert_ok(ctx, spmv_plan_describe(plan, &info, sizeof info));
            assert_true(info.vectors == vectors && info.type == SPMV_F64 && info.value_type == SPMV_F64);
            spmv_plan_destroy(plan);
            void *const device[] = {device_x, device_y, moved_x, device_moved_y};
            void *const host[] = {val, x, y, moved_y, y0};
            for (size_t i = 0; i < sizeof device / sizeof device[0]; i++)
                spmv_free(ctx, device[i]);
            for (size_t i = 0; i < sizeof host / sizeof host[0]; i++)
                free(host[i]);
            free_matrix(&m);
        }
    }
}

/* Complex numbers at addresses where a GPU cannot load them as a whole. */
static void misplaced_complex_numbers(void **state)
{
    spmv_context *ctx = *state;
    struct matrix m = make_matrix(40, 40, 0);
    void *val = random_elements(SPMV_C128, m.nnz, 1), *x = random_elements(SPMV_C128, 41, 2);
    const spmv_csr a = view_of(&m, val, SPMV_C128);
    const struct variant v = {.types = &all_types[4], .vectors = 1};
    char *device_x = support_upload(ctx, x, 41 * 16), *device_y = support_upload(ctx, x, 41 * 16);
    spmv_plan *plan = NULL;
    assert_ok(ctx, try_plan(ctx, &a, NULL, &v, &plan));
    if (support_backend == SPMV_BACKEND_CUDA) {
        assert_fails(ctx, apply(plan, &v, device_x + 8, device_y), SPMV_ERROR_ARGUMENT, "x is not aligned to 16");
        assert_fails(ctx, apply(plan, &v, device_x, device_y + 8), SPMV_ERROR_ARGUMENT, "y is not aligned to 16");
    } else {
        assert_ok(ctx, apply(plan, &v, device_x + 8, device_y));
    }
    spmv_plan_destroy(plan);
    support_free_in(ctx, device_x, device_y);
    support_free(val, x);
    free_matrix(&m);
}

static void refusals(void **state)
{
    spmv_context *ctx = *state;
    struct matrix m = make_matrix(10, 10, 0);
    void *val = random_elements(SPMV_C128, m.nnz, 1);
    spmv_csr a = view_of(&m, val, SPMV_F64);
    spmv_plan_options o;
    spmv_plan *plan = NULL;
#define REFUSES(status, text)                                                                                          \
    do {                                                                                                               \
        assert_fails(ctx, spmv_plan_create(ctx, &a, &o, &plan), status, text);                                         \
        assert_null(plan);                                                                                             \
    } while (0)
    spmv_plan_options_init(&o, sizeof o);
    o.vectors = 4;
    o.x_stride = 3;
    REFUSES(SPMV_ERROR_ARGUMENT, "x_stride is 3, less than the 4 vectors");
    o.x_stride = 0;
    o.y_stride = -1;
    REFUSES(SPMV_ERROR_ARGUMENT, "y_stride is -1");
    o.y_stride = 0;
    o.method = "staged";
    REFUSES(SPMV_ERROR_UNSUPPORTED, "of several vectors");
    spmv_plan_options_init(&o, sizeof o);
    o.type = SPMV_C128;
    REFUSES(SPMV_ERROR_TYPE, "f64 with vectors of type c128");
    a.type = SPMV_C64;
    REFUSES(SPMV_ERROR_TYPE, "c64 with vectors of type c128");
    a.type = SPMV_C128;
    o.type = SPMV_F64;
    REFUSES(SPMV_ERROR_TYPE, "c128 with vectors of type f64");
    o.type = SPMV_AFFINE_F64;
    REFUSES(SPMV_ERROR_TYPE, "affine_f64");
    o.type = SPMV_C128;
    o.method = "staged";
    REFUSES(SPMV_ERROR_UNSUPPORTED, "in complex types");
    a.type = SPMV_F32;
    o.type = SPMV_F64;
    REFUSES(SPMV_ERROR_UNSUPPORTED, "another type than the sums");
#undef REFUSES
    free(val);
    free_matrix(&m);
}

/* spmv_verify in complex and mixed types: accepts correct results, detects one wrong part of one
 * row, and distinguishes T from H. */
static void checks(void **state)
{
    spmv_context *ctx = *state;
    spmv_context *checker =
        support_context_on(support_backend == SPMV_BACKEND_OMP ? SPMV_BACKEND_REF : SPMV_BACKEND_OMP, 0);
    struct matrix m = make_matrix(90, 110, 0);
    for (int t = 2; t < TYPES; t++)
        for (int number = 0; number < 6; number++) {
            const struct variant v = {
                .types = &all_types[t], .scaled = number % 2, .operation = (spmv_operation)(number / 2), .vectors = 1};
            const bool transposed = v.operation != SPMV_OPERATION_N, complex = type_is_complex(v.types->sums);
            const spmv_type type = v.types->sums;
            const int64_t size = (int64_t)spmv_type_size(type), x_n = transposed ? 90 : 110,
                          y_n = transposed ? 110 : 90;
            void *val = random_elements(v.types->values, m.nnz, 1), *x = random_elements(type, x_n, 2);
            void *y0 = random_elements(type, y_n, 3), *y = support_zeros(y_n, 16);
            double scalars[4];
            put(type, scalars, 0, alpha_parts[0], alpha_parts[1]);
            put(type, scalars + 2, 0, beta_parts[0], beta_parts[1]);
            const spmv_csr a = view_of(&m, val, v.types->values);
            void *device_x = support_upload(ctx, x, x_n * size), *device_y = support_upload(ctx, y0, y_n * size);
            spmv_plan *plan = NULL;
            spmv_verify_result result;
            assert_ok(ctx, try_plan(ctx, &a, NULL, &v, &plan));
            assert_ok(ctx, apply(plan, &v, device_x, device_y));
            assert_ok(ctx, spmv_download(ctx, device_y, y, y_n * size));
            const void *alpha = v.scaled ? scalars : NULL, *beta = v.scaled ? scalars + 2 : NULL;
            assert_ok(checker,
                      spmv_verify(checker, &a, v.operation, alpha, x, beta, y0, y, type, &result, sizeof result));
            assert_true(result.failed_rows == 0 && result.worst_ratio <= 1);
            if (complex && transposed)
                assert_fails(checker,
                             spmv_verify(checker, &a,
                                         v.operation == SPMV_OPERATION_T ? SPMV_OPERATION_H : SPMV_OPERATION_T, alpha,
                                         x, beta, y0, y, type, &result, sizeof result),
                             SPMV_ERROR_CHECK, "rows exceed the bound");
            const struct wide good = element(type, y, 17);
            put(type, y, 17, (double)good.re + (complex ? 0 : 1e-4), (double)good.im + 1e-3);
            assert_fails(checker,
                         spmv_verify(checker, &a, v.operation, alpha, x, beta, y0, y, type, &result, sizeof result),
                         SPMV_ERROR_CHECK, "the worst is row 17 (counted from 0)");
            assert_true(result.failed_rows == 1 && result.worst_row == 17 && result.worst_ratio > 1);
            assert_true(!complex || fabs(result.worst_value_im - result.worst_reference_im - 1e-3) < 1e-5);
            assert_true(complex || (result.worst_value_im == 0 && result.worst_reference_im == 0));
            spmv_plan_destroy(plan);
            support_free_in(ctx, device_x, device_y);
            support_free(val, x, y0, y);
        }
    free_matrix(&m);
    spmv_context_destroy(checker);
}

/* CG accepts a mixed plan, and refuses vectors with gaps. */
static void solvers(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    spmv_plan *plan = NULL;
    spmv_cg_result result;
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:9", SPMV_F32, &matrix));
    spmv_matrix_view(matrix, &a);
    double *ones = support_zeros(a.rows, 8), *x = support_zeros(a.rows, 8);
    for (int64_t i = 0; i < a.rows; i++)
        ones[i] = 1;
    double *device_x = support_upload(ctx, ones, a.rows * 8), *device_b = support_upload(ctx, ones, a.rows * 8);
    struct variant v = {.types = &all_types[2], .vectors = 1};
    spmv_cg_options options = support_cg_options();
    options.rtol = 1e-12; /* not reachable in f32 */
    options.zero_start = 1;
    assert_ok(ctx, try_plan(ctx, &a, NULL, &v, &plan));
    assert_ok(ctx, spmv_apply(plan, NULL, device_x, NULL, device_b));
    assert_ok(ctx, spmv_cg(plan, device_b, device_x, &options, &result, sizeof result));
    assert_ok(ctx, spmv_download(ctx, device_x, x, a.rows * 8));
    for (int64_t i = 0; i < a.rows; i++)
        assert_true(fabs(x[i] - 1) < 1e-10);
    spmv_plan_destroy(plan);
    v.y_gap = 1;
    assert_ok(ctx, try_plan(ctx, &a, NULL, &v, &plan));
    assert_fails(ctx, spmv_cg(plan, device_b, device_x, NULL, &result, sizeof result), SPMV_ERROR_UNSUPPORTED,
                 "with strides 1 and 2");
    spmv_plan_destroy(plan);
    support_free_in(ctx, device_x, device_b);
    support_free(ones, x);
    spmv_matrix_destroy(matrix);
}

/* -------------------------------------------------------------------- times */

/* Seconds of a product: the smallest mean of several rounds. */
static double seconds_of(spmv_context *ctx, spmv_plan *plan, const void *x, void *y)
{
    enum { ROUNDS = 5, PRODUCTS = 10 };
    double least = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        const double began = monotonic_seconds();
        for (int i = 0; i < PRODUCTS; i++)
            assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, y));
        assert_ok(ctx, spmv_synchronize(ctx));
        least = fmin(least, (monotonic_seconds() - began) / PRODUCTS);
    }
    return least;
}

/* The matrix in the context's memory, as a caller on a device has it. */
static spmv_csr in_context(spmv_context *ctx, const spmv_csr *a)
{
    spmv_csr there = *a;
    there.row_ptr = support_upload(ctx, a->row_ptr, (a->rows + 1) * 8);
    there.col = support_upload(ctx, a->col, a->nnz * 4);
    there.val = support_upload(ctx, a->val, a->nnz * (int64_t)spmv_type_size(a->type));
    there.memory = SPMV_MEMORY_CONTEXT;
    return there;
}

static void time_variant(spmv_context *ctx, const char *spec, const spmv_csr *a, const struct variant *v)
{
    const bool transposed = v->operation != SPMV_OPERATION_N;
    const int64_t size = (int64_t)spmv_type_size(v->types->sums), stored = (int64_t)spmv_type_size(v->types->values);
    const int64_t x_n = (transposed ? a->rows : a->cols) * v->vectors;
    const int64_t y_n = (transposed ? a->cols : a->rows) * v->vectors;
    void *x = random_elements(v->types->sums, x_n, 2), *device_x = support_upload(ctx, x, x_n * size), *device_y = NULL;
    spmv_plan *plan = NULL;
    spmv_plan_info info;
    assert_ok(ctx, spmv_alloc(ctx, y_n * size, &device_y));
    for (int i = 0; i < 2; i++) { /* the second plan finds warm caches */
        spmv_plan_destroy(plan);
        assert_ok(ctx, try_plan(ctx, a, NULL, v, &plan));
    }
    assert_ok(ctx, spmv_plan_describe(plan, &info, sizeof info));
    const double seconds = seconds_of(ctx, plan, device_x, device_y);
    const double bytes = (double)(a->nnz * (4 + stored) + 4 * (info.rows + 1) + size * (x_n + y_n));
    printf("%-24s %-5s %c k=%-2d %-8s %9.1f us, %9.1f us a vector, %7.1f GB/s of the model, plan %9.1f us\n", spec,
           v->types->name, "NTH"[v->operation], v -> vectors, info.method, 1e6 * seconds, 1e6 * seconds / v->vectors,
           1e-9 * bytes / seconds, 1e6 * info.seconds);
    spmv_plan_destroy(plan);
    support_free_in(ctx, device_x, device_y);
    free(x);
}

static void time_spec(spmv_context *ctx, const char *spec)
{
    for (int t = 0; t < TYPES; t++) {
        const struct types *types = &all_types[t];
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        assert_ok(ctx,
                  spmv_matrix_generate(ctx, spec, type_is_complex(types->values) ? SPMV_F64 : types->values, &matrix));
        spmv_matrix_view(matrix, &a);
        void *complex = NULL;
        if (type_is_complex(types->values)) {
            a.val = complex = random_elements(types->values, a.nnz, 1);
            a.type = types->values;
        }
        const spmv_csr there = in_context(ctx, &a);
        for (int k = 1; k <= 16; k *= 2)
            time_variant(ctx, spec, &there, &(const struct variant){.types = types, .vectors = k});
        time_variant(ctx, spec, &there,
                     &(const struct variant){.types = types, .vectors = 1, .operation = SPMV_OPERATION_H});
        support_free_in(ctx, (void *)(uintptr_t)there.row_ptr, (void *)(uintptr_t)there.col,
                        (void *)(uintptr_t)there.val);
        free(complex);
        spmv_matrix_destroy(matrix);
    }
}

static int time_products(int count, char **specs)
{
    char *standard[] = {"poisson3d:100", "stencil27:64", "fem:100000,3,13", "uniform:1000000,1000000,16",
                        "powerlaw:1000000,8,2.2,100000"};
    spmv_context *ctx = support_context();
    for (int i = 0; i < count; i++)
        time_spec(ctx, specs[i]);
    for (size_t i = 0; count == 0 && i < sizeof standard / sizeof standard[0]; i++)
        time_spec(ctx, standard[i]);
    spmv_context_destroy(ctx);
    return 0;
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    brief = support_brief(argc, argv);
    if (support_mode(argc, argv, "time"))
        return time_products(argc - 3, argv + 3);
    const struct CMUnitTest tests[] = {
        with_context(every_type),
        with_context(several_vectors),
        with_context(many_vectors),
        with_context(misplaced_vectors),
        with_context(borders_and_empty_sizes),
        with_context(refusals),
        with_context(misplaced_complex_numbers),
        with_context(checks),
        with_context(solvers),
        with_context(wide_matrices),
        with_context(wide_offsets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
