/* The accuracy of solutions row by row: the backward error by hand and against a plain loop, the solves
 * with scaled rows and columns that follow where it is too large, the dense factor of small systems, true
 * residuals of f32, and numbers near the ends of the range.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "core/reals.h"
#include "core/runtime.h"
#include "solvers/accuracy/backward_error.h"
#include "solvers/direct/direct.h"
#include "tests/support/support.h"
#include "tests/support/support_slow.h"

/* host_alloc fails at this call, counted from 0; -1: never */
static int64_t fail_at = -1, allocations;

spmv_status __real_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory);
spmv_status __wrap_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory);

spmv_status __wrap_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory)
{
    *memory = NULL;
    return allocations++ == fail_at ? context_fail_memory(ctx, what, bytes)
                                    : __real_host_alloc(ctx, bytes, what, memory);
}

/* ------------------------------------------------------------------ matrices */

/* A matrix by rows; numbers are pairs of doubles, converted to the type of the view. */
struct entries {
    int64_t n, nnz;
    int32_t *row_ptr, *col;
    double *val;
    void *typed;
    spmv_csr view;
};

static struct entries new_entries(int64_t n, int64_t most)
{
    return (struct entries){
        .n = n, .row_ptr = support_zeros(n + 1, 4), .col = support_zeros(most, 4), .val = support_zeros(2 * most, 8)};
}

/* Entries are added by ascending rows. */
static void add(struct entries *a, int64_t row, int64_t col, double re, double im)
{
    a->col[a->nnz] = (int32_t)col;
    a->val[2 * a->nnz] = re;
    a->val[2 * a->nnz + 1] = im;
    a->row_ptr[row + 1] = (int32_t)++a->nnz;
}

/* n numbers of the type in host memory, from pairs. */
static void *typed_of(spmv_type type, const double *pairs, int64_t n)
{
    const int parts = type_parts(type);
    double *const chosen = support_zeros(2 * n + 1, 8);
    for (int64_t i = 0; i < n * parts; i++)
        chosen[i] = pairs[parts == 2 ? i : 2 * i];
    void *const numbers = support_as(type_part(type), chosen, n * parts, 0);
    free(chosen);
    return numbers;
}

static void finish(struct entries *a, spmv_type type)
{
    for (int64_t i = 0; i < a->n; i++) /* rows without entries */
        a->row_ptr[i + 1] = a->row_ptr[i + 1] > a->row_ptr[i] ? a->row_ptr[i + 1] : a->row_ptr[i];
    free(a->typed);
    a->typed = typed_of(type, a->val, a->nnz);
    a->view = support_csr_with(a->n, a->n, a->nnz, a->row_ptr, 32, a->col, a->typed, type);
}

static void release(struct entries *a)
{
    free(a->row_ptr);
    free(a->col);
    free(a->val);
    free(a->typed);
}

/* Pairs in the context's memory. */
static void *upload(spmv_context *ctx, spmv_type type, const double *pairs, int64_t n)
{
    void *const host = typed_of(type, pairs, n);
    void *const there = support_upload(ctx, host, n * (int64_t)spmv_type_size(type));
    free(host);
    return there;
}

static void download(spmv_context *ctx, spmv_type type, const void *there, int64_t n, double *pairs)
{
    double *const numbers = support_download_as(ctx, type_part(type), there, n * type_parts(type));
    for (int64_t i = 0; i < n; i++)
        for (int p = 0; p < 2; p++)
            pairs[2 * i + p] = p < type_parts(type) ? numbers[i * type_parts(type) + p] : 0;
    free(numbers);
}

/* The matrix in the context's memory; release with view_free. */
static spmv_csr view_there(spmv_context *ctx, const spmv_csr *a)
{
    spmv_csr there = *a;
    there.row_ptr = support_upload(ctx, a->row_ptr, (a->rows + 1) * (a->row_ptr_bits / 8));
    there.col = support_upload(ctx, a->col, a->nnz * 4);
    there.val = a->val != NULL ? support_upload(ctx, a->val, a->nnz * (int64_t)spmv_type_size(a->type)) : NULL;
    there.memory = SPMV_MEMORY_CONTEXT;
    return there;
}

static void view_free(spmv_context *ctx, const spmv_csr *there)
{
    support_free_in(ctx, (void *)(uintptr_t)there->row_ptr, (void *)(uintptr_t)there->col,
                    (void *)(uintptr_t)there->val);
}

/* bound: NULL: the exact pass */
static struct backward_error find_within(spmv_context *ctx, const spmv_csr *a, spmv_type type, const double *b,
                                         const double *x, const double *bound)
{
    struct backward_error error = {NAN, -7, NAN};
    const spmv_csr there = view_there(ctx, a);
    void *const b_there = upload(ctx, type, b, a->rows), *const x_there = upload(ctx, type, x, a->rows);
    assert_ok(ctx, backward_error_find(ctx, &there, type, 1, b_there, x_there, bound, &error));
    support_free_in(ctx, b_there, x_there);
    view_free(ctx, &there);
    return error;
}

static struct backward_error find(spmv_context *ctx, const spmv_csr *a, spmv_type type, const double *b,
                                  const double *x)
{
    return find_within(ctx, a, type, b, x, NULL);
}

static void assert_near(double value, double expected, double relative)
{
    if (!(fabs(value - expected) <= relative * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

/* ------------------------------------------------------------------ the backward error */

/* A = (2 -1 0; -1 2 -1; 0 -1 1e6) and two vectors, by hand. */
static void by_hand(void **state)
{
    spmv_context *ctx = *state;
    struct entries a = new_entries(3, 7);
    const double val[3][3] = {{2, -1, 0}, {-1, 2, -1}, {0, -1, 1e6}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            if (val[i][j] != 0)
                add(&a, i, j, val[i][j], 0);
    finish(&a, SPMV_F64);
    /* r = (0, 1/2, 1); row 1: 1/2 over |A||x| + |b| = 4 + 1/2 */
    const double ones[] = {1, 0, 1, 0, 1, 0}, b[] = {1, 0, 0.5, 0, 1e6, 0};
    struct backward_error e = find(ctx, &a.view, SPMV_F64, b, ones);
    assert_near(e.omega, 0.5 / 4.5, 1e-14);
    assert_int_equal(e.row, 1);
    assert_near(e.norm, sqrt(1.25), 1e-14);
    /* the terms of row 0 are 3/4096 + 2/4096, below 0.01 ||A_0||_1 ||x||_inf = 0.03: r_0 = 1/4096 over
     * 3/4096 + 3 */
    const double t = 0x1p-12, small[] = {t, 0, t, 0, 1, 0}, c[] = {2 * t, 0, t - 1, 0, 1e6 - t, 0};
    e = find(ctx, &a.view, SPMV_F64, c, small);
    assert_near(e.omega, t / (3 * t + 3), 1e-14);
    assert_int_equal(e.row, 0);
    assert_near(e.norm, t, 1e-14);
    /* the quick pass: t / (3 t + 2 t) is within 0.25, and more than 0.01, so that the exact pass decides */
    const double wide = 0.25, narrow = 0.01, any = INFINITY;
    e = find_within(ctx, &a.view, SPMV_F64, c, small, &wide);
    assert_near(e.omega, 0.2, 1e-14);
    assert_int_equal(e.row, 0);
    assert_near(e.norm, t, 1e-14);
    e = find_within(ctx, &a.view, SPMV_F64, c, small, &narrow);
    assert_near(e.omega, t / (3 * t + 3), 1e-14);
    assert_int_equal(e.row, 0);
    /* the same in units far from 1, where products and squares leave the range */
    static const double units[] = {0x1p-1000, 0x1p-600, 0x1p-450, 0x1p-380, 0x1p370, 0x1p500, 0x1p1000};
    for (int u = 0; u < 7; u++) {
        double scaled[6], x[6];
        for (int i = 0; i < 6; i++) {
            scaled[i] = b[i] * units[u];
            x[i] = ones[i] * units[u];
        }
        for (int k = 0; k < 2; k++) {
            e = find_within(ctx, &a.view, SPMV_F64, scaled, x, k == 0 ? NULL : &any);
            assert_near(e.omega, 0.5 / 4.5, 1e-14);
            assert_near(e.norm, sqrt(1.25) * units[u], 1e-14);
        }
        struct entries big = new_entries(3, 7);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                if (val[i][j] != 0)
                    add(&big, i, j, val[i][j] * units[u], 0);
        finish(&big, SPMV_F64);
        for (int k = 0; k < 2; k++) {
            e = find_within(ctx, &big.view, SPMV_F64, scaled, ones, k == 0 ? NULL : &any);
            assert_near(e.omega, 0.5 / 4.5, 1e-14);
            assert_int_equal(e.row, 1);
        }
        release(&big);
    }
    release(&a);
}

/* A row without entries, b = 0, no rows, numbers that are not finite. */
static void special_rows(void **state)
{
    spmv_context *ctx = *state;
    struct entries a = new_entries(3, 2);
    add(&a, 0, 0, 2, 0);
    add(&a, 2, 2, 1, 0);
    finish(&a, SPMV_F64);
    const double x[] = {1, 0, 5, 0, 1, 0}, b[] = {2, 0, 7, 0, 1, 0}, zeros[6] = {0};
    const double bad[] = {1, 0, 5, 0, NAN, 0}, infinite[] = {2, 0, 7, 0, INFINITY, 0}, bounds[] = {1e-4, INFINITY};
    struct backward_error e;
    for (int k = 0; k < 3; k++) { /* the exact pass; the quick pass */
        const double *const within = k == 0 ? NULL : &bounds[k - 1];
        e = find_within(ctx, &a.view, SPMV_F64, b, x, within);
        assert_true(e.omega == 0 && e.row == 0 && e.norm == 7);
        e = find_within(ctx, &a.view, SPMV_F64, zeros, zeros, within);
        assert_true(e.omega == 0 && e.row == 0 && e.norm == 0);
        e = find_within(ctx, &a.view, SPMV_F64, b, bad, within);
        assert_true(isinf(e.omega) && e.row == 2);
        e = find_within(ctx, &a.view, SPMV_F64, infinite, x, within);
        assert_true(isinf(e.omega) && e.row == 2);
    }
    const int32_t none[] = {0};
    const spmv_csr empty = support_csr(0, 0, none, NULL, NULL);
    assert_ok(ctx, backward_error_find(ctx, &empty, SPMV_F64, 1, NULL, NULL, bounds, &e));
    assert_true(e.omega == 0 && e.row == -1 && e.norm == 0);
    release(&a);
}

struct expected {
    long double omega, square, quick; /* quick: the largest with the first denominator */
};

/* The definition, in long double. */
static struct expected defined(const struct entries *a, spmv_type type, bool pattern, const double *b, const double *x,
                               int columns, int v)
{
    struct expected e = {0, 0, 0};
    long double largest = 0;
    for (int64_t i = 0; i < a->n; i++)
        for (int p = 0; p < type_parts(type); p++)
            largest = fmaxl(largest, fabsl((long double)x[2 * (i * columns + v) + p]));
    for (int64_t i = 0; i < a->n; i++) {
        const double *const right = b + 2 * (i * columns + v);
        long double re = right[0], im = right[1], terms = 0, norm = 0;
        for (int64_t k = a->row_ptr[i]; k < a->row_ptr[i + 1]; k++) {
            const long double are = pattern ? 1 : (long double)a->val[2 * k];
            const long double aim = pattern ? 0 : (long double)a->val[2 * k + 1];
            const double *const of = x + 2 * ((int64_t)a->col[k] * columns + v);
            re -= are * of[0] - aim * of[1];
            im -= are * of[1] + aim * of[0];
            terms += hypotl(are, aim) * hypotl(of[0], of[1]);
            norm += hypotl(are, aim);
        }
        const long double r = hypotl(re, im), size = hypotl(right[0], right[1]);
        e.square += r * r;
        if (norm > 0)
            e.omega = fmaxl(e.omega, terms + size > BACKWARD_TINY * norm * largest ? r / (terms + size)
                                                                                   : r / (terms + norm * largest));
        if (norm > 0 && r > 0)
            e.quick = fmaxl(e.quick, r / (terms + size));
    }
    return e;
}

/* The quick pass: wherever every bound is kept, the largest quotients, which are upper bounds of the exact
 * results; otherwise the bits of those, in all columns. */
static void check_quick(spmv_context *ctx, const spmv_csr *a, spmv_type type, int columns, const void *b, const void *x,
                        const struct backward_error *exact, const double *quotients)
{
    const int64_t bytes = columns * (int64_t)sizeof *exact;
    double *const bounds = support_zeros(columns, 8);
    struct backward_error *const found = support_zeros(columns, sizeof *found);
    struct backward_error *const again = support_zeros(columns, sizeof *again);
    for (int v = 0; v < columns; v++)
        bounds[v] = quotients[v] * (1 + 1e-12);
    assert_ok(ctx, backward_error_find(ctx, a, type, columns, b, x, bounds, found));
    assert_ok(ctx, backward_error_find(ctx, a, type, columns, b, x, bounds, again));
    assert_memory_equal(found, again, (size_t)bytes);
    for (int v = 0; v < columns; v++) {
        assert_near(found[v].omega, quotients[v], 1e-12);
        assert_true(found[v].omega >= exact[v].omega * (1 - 1e-12) && found[v].row >= 0);
        assert_near(found[v].norm, exact[v].norm, 1e-12);
    }
    const int one = columns / 2;
    if (quotients[one] > 0) {
        bounds[one] = quotients[one] * (1 - 1e-12);
        assert_ok(ctx, backward_error_find(ctx, a, type, columns, b, x, bounds, found));
        assert_memory_equal(found, exact, (size_t)bytes);
    }
    free(bounds);
    free(found);
    free(again);
}

/* Random matrices with short, long and empty rows, several columns, and all types. */
static void against_the_definition(void **state)
{
    spmv_context *ctx = *state;
    enum { COLUMNS = 11 };
    static const spmv_type types[] = {SPMV_F64, SPMV_F32, SPMV_C128, SPMV_C64};
    static const int64_t sizes[] = {1, 33, 511, 512, 513, SLOW ? 700 : 3000};
    for (int s = 0; s < 6; s++)
        for (int t = 0; t < 4; t++) {
            const int64_t n = sizes[s];
            const spmv_type type = types[t];
            const bool complex = type_is_complex(type);
            const int columns = complex || s % 2 == 0 ? 1 : COLUMNS;
            uint64_t random = (uint64_t)(10 * s + t);
            const uint64_t most = s == 4 ? 90 : 12;
            struct entries a = new_entries(n, (int64_t)most * n + n);
            for (int64_t i = 0; i < n; i++) {
                const int64_t entries = i == n / 2 ? n : (int64_t)(support_random(&random) % most);
                for (int64_t k = 0; k < entries; k++)
                    add(&a, i, i == n / 2 ? k : (int64_t)(support_random(&random) % (uint64_t)n),
                        (float)support_uniform(&random), complex ? (float)support_uniform(&random) : 0);
            }
            finish(&a, type);
            double *const b = support_zeros(2 * n * columns, 8), *const x = support_zeros(2 * n * columns, 8);
            for (int64_t i = 0; i < n * columns; i++)
                for (int p = 0; p < 1 + complex; p++) {
                    x[2 * i + p] = (float)ldexp(support_uniform(&random), -(int)(i % 7) * 3);
                    b[2 * i + p] = (float)support_uniform(&random);
                }
            const bool pattern = !complex && s == 1;
            spmv_csr host = a.view;
            if (pattern)
                host.val = NULL;
            const spmv_csr there = view_there(ctx, &host);
            void *const b_there = upload(ctx, type, b, n * columns), *const x_there = upload(ctx, type, x, n * columns);
            struct backward_error found[COLUMNS], again[COLUMNS];
            assert_ok(ctx, backward_error_find(ctx, &there, type, columns, b_there, x_there, NULL, found));
            assert_ok(ctx, backward_error_find(ctx, &there, type, columns, b_there, x_there, NULL, again));
            assert_memory_equal(found, again, (size_t)columns * sizeof *found);
            double quotients[COLUMNS];
            for (int v = 0; v < columns; v++) {
                const struct expected e = defined(&a, type, pattern, b, x, columns, v);
                quotients[v] = (double)e.quick;
                assert_near(found[v].omega, (double)e.omega, 1e-12);
                assert_near(found[v].norm, (double)sqrtl(e.square), 1e-12);
            }
            check_quick(ctx, &there, type, columns, b_there, x_there, found, quotients);
            if (type == SPMV_F32 && columns == 1 && !pattern) { /* f32 with vectors in f64 */
                const struct backward_error mixed = find(ctx, &a.view, SPMV_F64, b, x);
                assert_near(mixed.omega, found->omega, 1e-12);
            }
            support_free_in(ctx, b_there, x_there);
            view_free(ctx, &there);
            free(b);
            free(x);
            release(&a);
        }
}

/* Rows that the quick pass must leave to the exact one: products of numbers other than 0 that underflow,
 * squares of r that do, and rows whose terms only seem to be 0. */
static void underflow(void **state)
{
    spmv_context *ctx = *state;
    const double bound = 1e-4;
    static const struct {
        spmv_type type;
        double x, large;
    } cases[] = {{SPMV_F64, 0x1p-560, 0x1p400}, {SPMV_C128, 0x1p-480, 0x1p300}};
    for (int t = 0; t < 2; t++) {
        struct entries a = new_entries(3, 3);
        add(&a, 0, 0, cases[t].large, 0);
        add(&a, 1, 1, 0x1p-520, 0);
        add(&a, 2, 2, 3, 0);
        finish(&a, cases[t].type);
        /* r = (0, -2^-1080, 0) in f64, whose row has no other terms */
        const double x[] = {cases[t].x, 0, cases[t].x, 0, 0, 0}, b[] = {cases[t].x * cases[t].large, 0, 0, 0, 0, 0};
        struct backward_error e = find_within(ctx, &a.view, cases[t].type, b, x, &bound);
        assert_true(e.omega == 1 && e.row == 1);
        release(&a);
    }
    /* r_0 = -2^-540 beside terms of 2^-398, in the range: its square underflows */
    struct entries a = new_entries(3, 5);
    add(&a, 0, 0, 1, 0);
    add(&a, 0, 1, -1, 0);
    add(&a, 0, 2, 1, 0);
    add(&a, 1, 1, 1, 0);
    add(&a, 2, 2, 0x1p200, 0);
    finish(&a, SPMV_F64);
    const double x[] = {0x1p-399, 0, 0x1p-399, 0, 0x1p-540, 0}, b[] = {0, 0, 0x1p-399, 0, 0x1p-340, 0};
    const struct backward_error e = find_within(ctx, &a.view, SPMV_F64, b, x, &bound);
    assert_true(e.omega == 0x1p-142 && e.norm == 0x1p-540);
    release(&a);
}

/* Errors of several columns of a matrix of which row i has entry j where `has`: those of each step-th column by itself,
 * up to this part; the same bits on hosts if exact. */
static void check_columns(spmv_context *ctx, int n, bool (*has)(int n, int i, int j), int columns, int step,
                          double part, bool exact)
{
    const double any = INFINITY;
    double *b = calloc(2 * (size_t)(n * columns), sizeof *b), *x = calloc(2 * (size_t)(n * columns), sizeof *x);
    double *one_b = calloc(2 * (size_t)n, sizeof *b), *one_x = calloc(2 * (size_t)n, sizeof *x);
    double *bounds = calloc((size_t)columns, sizeof *bounds);
    struct backward_error *found = calloc((size_t)columns, sizeof *found);
    uint64_t random = 5;
    struct entries a = new_entries(n, n * n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (has(n, i, j))
                add(&a, i, j, support_uniform(&random), 0);
    finish(&a, SPMV_F64);
    for (int i = 0; i < n * columns; i++) {
        b[2 * i] = support_uniform(&random);
        x[2 * i] = support_uniform(&random);
        bounds[i % columns] = any;
    }
    const spmv_csr there = view_there(ctx, &a.view);
    void *const b_there = upload(ctx, SPMV_F64, b, n * columns), *const x_there = upload(ctx, SPMV_F64, x, n * columns);
    assert_ok(ctx, backward_error_find(ctx, &there, SPMV_F64, columns, b_there, x_there, bounds, found));
    for (int v = 0; v < columns; v += step) {
        for (int i = 0; i < n; i++) {
            one_b[2 * i] = b[2 * (i * columns + v)];
            one_x[2 * i] = x[2 * (i * columns + v)];
        }
        const struct backward_error e = find_within(ctx, &a.view, SPMV_F64, one_b, one_x, &any);
        if (exact && support_backend != SPMV_BACKEND_CUDA)
            assert_memory_equal(&e, &found[v], sizeof e);
        /* a lane of a GPU adds a row from its first entry on, several lanes otherwise */
        assert_true(e.row == found[v].row && fabs(e.omega - found[v].omega) <= part * e.omega &&
                    fabs(e.norm - found[v].norm) <= part * e.norm);
    }
    support_free(b, x, one_b, one_x, bounds, found);
    support_free_in(ctx, b_there, x_there);
    view_free(ctx, &there);
    release(&a);
}

static bool in_middle_row(int n, int i, int j)
{
    return i == n / 2 || i == j;
}

static bool everywhere(int n, int i, int j)
{
    (void)n, (void)i, (void)j;
    return true;
}

/* A row that several lanes of a GPU share, of several columns. */
static void long_row_of_columns(void **state)
{
    check_columns(*state, 600, in_middle_row, 5, 1, 1e-11, false);
}

/* More columns than a panel of a GPU and a small download have room for: each as one by itself. */
static void many_columns(void **state)
{
    check_columns(*state, 6, everywhere, 200, 13, 1e-12, true);
}

/* The bits do not depend on the number of threads. */
static void same_bits(void **state)
{
    (void)state;
    const int64_t n = 40000;
    struct entries a = new_entries(n, 3 * n);
    double *const b = support_zeros(2 * n, 8), *const x = support_zeros(2 * n, 8);
    uint64_t random = 1;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i - 1; j <= i + 1; j++)
            if (j >= 0 && j < n)
                add(&a, i, j, support_uniform(&random), 0);
        b[2 * i] = support_uniform(&random);
        x[2 * i] = support_uniform(&random);
    }
    finish(&a, SPMV_F64);
    const double any = INFINITY;
    struct backward_error e[2][2];
    for (int k = 0; k < 2; k++) {
        spmv_context *ctx = support_context_on(support_backend, k == 0 ? 1 : 4);
        e[k][0] = find(ctx, &a.view, SPMV_F64, b, x);
        e[k][1] = find_within(ctx, &a.view, SPMV_F64, b, x, &any);
        spmv_context_destroy(ctx);
    }
    assert_memory_equal(e[0], e[1], sizeof e[0]);
    free(b);
    free(x);
    release(&a);
}

/* ------------------------------------------------------------------ penalties */

/* The Laplacian on side x side points. All points of the boundary get the value of `linear` by a
 * penalty; the solution is that function everywhere. */
static double linear(int64_t side, int64_t i)
{
    return (double)(i % side) / (double)(side - 1);
}

static struct entries penalty(int64_t side, double p, spmv_type type, double *b, double *x)
{
    const int64_t n = side * side;
    struct entries a = new_entries(n, 5 * n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = i / side, column = i % side, near[] = {i - side, i - 1, i, i + 1, i + side};
        const bool there[] = {row > 0, column > 0, true, column < side - 1, row < side - 1};
        const bool edge = !there[0] || !there[1] || !there[3] || !there[4];
        const int count = there[0] + there[1] + there[3] + there[4];
        for (int k = 0; k < 5; k++)
            if (there[k])
                add(&a, i, near[k], k == 2 ? count + (edge ? p : 0) : -1, 0);
        x[2 * i] = linear(side, i);
        b[2 * i] = edge ? p * x[2 * i] : 0;
    }
    finish(&a, type);
    return a;
}

enum { SIDE = 15 /* more points than a dense factor has rows */, POINTS = SIDE * SIDE };

static spmv_solver_options options_of(const char *method, const char *precond)
{
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    o.solver = method;
    o.precond = precond;
    o.zero_start = 1;
    return o;
}

static double largest_error(const double *x, const double *solution, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < 2 * n; i++)
        most = fabs(x[i] - solution[i]) <= most ? most : fabs(x[i] - solution[i]);
    return most;
}

/* Solves from x = 0. */
static spmv_status solve(spmv_context *ctx, const spmv_csr *a, const spmv_solver_options *o, const double *b, double *x,
                         spmv_solver_result *result)
{
    const spmv_type type = a->type;
    void *const b_there = upload(ctx, type, b, a->rows), *const x_there = upload(ctx, type, b, a->rows);
    spmv_csr view = *a;
    view.memory = SPMV_MEMORY_HOST;
    spmv_solver *solver = NULL;
    spmv_status st = spmv_solver_create(ctx, &view, o, &solver);
    if (st == SPMV_OK)
        st = spmv_solver_solve(solver, b_there, x_there, result, sizeof *result);
    if (st == SPMV_OK || spmv_status_class(st) == 7)
        download(ctx, type, x_there, a->rows, x);
    spmv_solver_destroy(solver);
    support_free_in(ctx, b_there, x_there);
    return st;
}

/* Every penalty, method and preconditioner ends with an x that is right in every row. */
static void penalties(void **state)
{
    spmv_context *ctx = *state;
    static const struct {
        const char *method, *precond;
    } ways[] = {{"auto", "auto"},  {"cg", "none"},     {"cg", "jacobi"},     {"cg", "amg"},      {"cg", "ic0"},
                {"gmres", "ilut"}, {"minres", "none"}, {"bicgstab", "ilu0"}, {"cg", "chebyshev"}};
    static const double sizes[] = {1e6, 1e8, 1e12, 1e20, 1e37, 1e100, 1e300};
    double b[2 * POINTS] = {0}, x[2 * POINTS], solution[2 * POINTS] = {0};
    for (int t = 0; t < 2; t++)
        for (int p = 0; p < 7; p++) {
            const spmv_type type = t == 0 ? SPMV_F64 : SPMV_F32;
            if (type == SPMV_F32 && sizes[p] > 1e38)
                continue;
            struct entries a = penalty(SIDE, sizes[p], type, b, solution);
            for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
                spmv_solver_options o = options_of(ways[w].method, ways[w].precond);
                spmv_solver_result result;
                const bool factor = strcmp(ways[w].precond, "ic0") == 0 || strcmp(ways[w].precond, "ilut") == 0 ||
                                    strcmp(ways[w].precond, "ilu0") == 0;
                /* an emulated GPU: every other size, with a third of the ways in turn */
                if (SLOW && (p % 2 == 0 || (p / 2 + (int)w + t) % 3 != 0))
                    continue;
                if (factor && support_backend == SPMV_BACKEND_CUDA) /* not available there */
                    continue;
                if (strcmp(ways[w].precond, "amg") == 0 && sizes[p] > 1e150)
                    continue;
                o.rtol = type == SPMV_F64 ? 1e-8 : 1e-5;
                const spmv_status st = solve(ctx, &a.view, &o, b, x, &result);
                /* p'Ap and r'r of numbers near the end of the range may overflow; that is no success */
                if (st == SPMV_ERROR_NOT_FINITE && ((type == SPMV_F32 && sizes[p] > 1e30) || sizes[p] > 1e250))
                    continue;
                if (st != SPMV_OK)
                    fail_msg("%s with %s, p = %g, %s: %s", ways[w].method, ways[w].precond, sizes[p],
                             spmv_type_name(type), spmv_last_error(ctx));
                const double bound = backward_error_bound(type, result.tolerance, result.norm_b);
                assert_true(result.backward_error <= bound && result.backward_row >= 0);
                assert_true(result.true_residual <= (type == SPMV_F64 ? 1 : 2) * result.tolerance);
                const double error = largest_error(x, solution, POINTS);
                if (!(error <= 100 * bound))
                    fail_msg("%s with %s, p = %g, %s: error %g", ways[w].method, ways[w].precond, sizes[p],
                             spmv_type_name(type), error);
            }
            release(&a);
        }
}

/* The 2 x 2 system (p, -1; -1, 2), b = (p, 0), whose solution is (1, 1/2), by cg and by "auto". */
static void two_rows(void **state)
{
    spmv_context *ctx = *state;
    static const double sizes[] = {1e8, 1e16, 1e39, 1e300};
    for (int p = 0; p < 4; p++)
        for (int w = 0; w < 2; w++) {
            struct entries a = new_entries(2, 4);
            const double b[] = {sizes[p], 0, 0, 0};
            double x[4];
            spmv_solver_result result;
            spmv_solver_options o = options_of(w == 0 ? "cg" : "auto", "auto");
            add(&a, 0, 0, sizes[p], 0);
            add(&a, 0, 1, -1, 0);
            add(&a, 1, 0, -1, 0);
            add(&a, 1, 1, 2, 0);
            finish(&a, SPMV_F64);
            assert_ok(ctx, solve(ctx, &a.view, &o, b, x, &result));
            assert_near(x[0], 1, 1e-7);
            assert_near(x[2], 0.5, 1e-7);
            assert_string_equal(result.solver, w == 0 ? "cg" : "direct");
            if (w == 0)
                assert_non_null(strstr(result.why_solver, "scaled rows and columns"));
            release(&a);
        }
}

/* Too few iterations for the scaled system: a failure that names the row, and the best x. */
static void not_met(void **state)
{
    spmv_context *ctx = *state;
    double b[2 * POINTS] = {0}, x[2 * POINTS], solution[2 * POINTS] = {0};
    struct entries a = penalty(SIDE, 1e12, SPMV_F64, b, solution);
    spmv_solver_options o = options_of("cg", "jacobi");
    spmv_solver_result result;
    o.max_iterations = 4;
    assert_fails(ctx, solve(ctx, &a.view, &o, b, x, &result), SPMV_ERROR_STAGNATION, "(counted from 0)");
    char row[32];
    snprintf(row, sizeof row, "in row %lld ", (long long)result.backward_row);
    assert_non_null(strstr(spmv_last_error(ctx), row));
    assert_true(result.status == SPMV_ERROR_STAGNATION && result.true_residual <= result.tolerance);
    assert_true(result.backward_error > 1e-4);
    /* b - A x of that row, from the x written */
    const int64_t i = result.backward_row;
    double r = b[2 * i], terms = fabs(r);
    for (int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; k++) {
        r -= a.val[2 * k] * x[2 * a.col[k]];
        terms += fabs(a.val[2 * k] * x[2 * a.col[k]]);
    }
    assert_near(fabs(r) / terms, result.backward_error, 1e-6);
    release(&a);
}

/* A point source in a medium that absorbs: x decays by more than 1e-12, and the solve needs no other. */
static void point_source(void **state)
{
    spmv_context *ctx = *state;
    double b[2 * POINTS] = {0}, x[2 * POINTS];
    struct entries a = new_entries(POINTS, 5 * (int64_t)POINTS);
    for (int64_t i = 0; i < POINTS; i++) {
        if (i >= SIDE)
            add(&a, i, i - SIDE, -1, 0);
        if (i % SIDE > 0)
            add(&a, i, i - 1, -1, 0);
        add(&a, i, i, 14, 0);
        if (i % SIDE < SIDE - 1)
            add(&a, i, i + 1, -1, 0);
        if (i < POINTS - SIDE)
            add(&a, i, i + SIDE, -1, 0);
    }
    finish(&a, SPMV_F64);
    b[0] = 1;
    spmv_solver_options o = options_of("cg", "none");
    spmv_solver_result result;
    assert_ok(ctx, solve(ctx, &a.view, &o, b, x, &result));
    assert_null(strstr(result.why_solver, "scaled"));
    assert_true(fabs(x[2 * (POINTS - 1)]) < 1e-12);
    release(&a);
}

/* Of several right-hand sides, those that need it are corrected; the others keep their bits. */
static void several_columns(void **state)
{
    spmv_context *ctx = *state;
    enum { K = 3 };
    double b[2 * POINTS] = {0}, solution[2 * POINTS] = {0};
    double *const all = support_zeros(2 * K * (int64_t)POINTS, 8), *const x = support_zeros(2 * K * (int64_t)POINTS, 8);
    struct entries a = penalty(SIDE, 1e12, SPMV_F64, b, solution);
    for (int64_t i = 0; i < POINTS; i++) {
        all[2 * (i * K)] = b[2 * i];
        all[2 * (i * K + 1)] = 0; /* solution 0 */
        all[2 * (i * K + 2)] = 2 * b[2 * i];
    }
    spmv_solver_options o = options_of("cg", "jacobi");
    o.vectors = K;
    spmv_solver *solver = NULL;
    spmv_solver_result results[K];
    void *const b_there = upload(ctx, SPMV_F64, all, K * (int64_t)POINTS);
    void *const x_there = upload(ctx, SPMV_F64, all, K * (int64_t)POINTS);
    assert_ok(ctx, spmv_solver_create(ctx, &a.view, &o, &solver));
    assert_ok(ctx, spmv_solver_solve(solver, b_there, x_there, results, sizeof *results));
    download(ctx, SPMV_F64, x_there, K * (int64_t)POINTS, x);
    for (int64_t i = 0; i < POINTS; i++) {
        assert_true(fabs(x[2 * (i * K)] - solution[2 * i]) < 1e-5);
        assert_true(x[2 * (i * K + 1)] == 0);
        assert_true(fabs(x[2 * (i * K + 2)] - 2 * solution[2 * i]) < 1e-5);
    }
    for (int v = 0; v < K; v++)
        assert_true(results[v].status == SPMV_OK && results[v].backward_error <= 1e-4);
    spmv_solver_destroy(solver);
    /* with too few iterations the message names the column */
    o.max_iterations = 4;
    assert_ok(ctx, spmv_solver_create(ctx, &a.view, &o, &solver));
    assert_fails(ctx, spmv_solver_solve(solver, b_there, x_there, results, sizeof *results), SPMV_ERROR_STAGNATION,
                 "right-hand side 1 of 3");
    assert_true(results[1].status == SPMV_OK);
    spmv_solver_destroy(solver);
    support_free_in(ctx, b_there, x_there);
    free(all);
    free(x);
    release(&a);
}

struct told {
    int64_t last, calls;
    bool ascends;
    int64_t stop_at;
};

static int on_iteration(int64_t iteration, double residual, void *user)
{
    struct told *const t = user;
    t->ascends = t->ascends && (t->calls == 0 ? iteration == 0 : iteration == t->last + 1) && residual >= 0;
    t->last = iteration;
    t->calls++;
    return t->stop_at > 0 && iteration >= t->stop_at;
}

/* Callbacks count on through the corrections, and can cancel there. */
static void callbacks(void **state)
{
    spmv_context *ctx = *state;
    double b[2 * POINTS] = {0}, x[2 * POINTS], solution[2 * POINTS] = {0};
    struct entries a = penalty(SIDE, 1e12, SPMV_F64, b, solution);
    spmv_solver_options o = options_of("cg", "none");
    spmv_solver_result result;
    struct told told = {.ascends = true};
    o.on_iteration = on_iteration;
    o.user = &told;
    o.rung = "textbook";
    assert_ok(ctx, solve(ctx, &a.view, &o, b, x, &result));
    assert_true(told.ascends && told.last == result.iterations && told.last > 20);
    const int64_t all = told.last;
    told = (struct told){.ascends = true, .stop_at = all - 5};
    assert_int_equal(solve(ctx, &a.view, &o, b, x, &result), SPMV_CANCELLED);
    assert_true(told.last == all - 5);
    release(&a);
}

/* The same solver gives the same bits again, and follows new values. Its memory has the scaled system from
 * the first correction to new values. */
static void repeated(void **state)
{
    spmv_context *ctx = *state;
    double b[2 * POINTS] = {0}, solution[2 * POINTS] = {0}, x[3][2 * POINTS];
    struct entries a = penalty(SIDE, 1e12, SPMV_F64, b, solution);
    spmv_solver_options o = options_of("cg", "jacobi");
    spmv_solver *solver = NULL;
    spmv_solver_result result;
    spmv_solver_info info;
    void *const b_there = upload(ctx, SPMV_F64, b, POINTS), *const x_there = upload(ctx, SPMV_F64, b, POINTS);
    assert_ok(ctx, spmv_solver_create(ctx, &a.view, &o, &solver));
    assert_ok(ctx, spmv_solver_describe(solver, &info, sizeof info));
    const int64_t before = info.bytes;
    for (int k = 0; k < 3; k++) {
        if (k == 2) {
            void *const values = support_upload(ctx, a.typed, a.nnz * 8);
            assert_ok(ctx, spmv_solver_update_values(solver, values));
            spmv_free(ctx, values);
            assert_ok(ctx, spmv_solver_describe(solver, &info, sizeof info));
            assert_true(info.bytes < before + a.nnz * 8);
        }
        assert_ok(ctx, spmv_solver_solve(solver, b_there, x_there, &result, sizeof result));
        download(ctx, SPMV_F64, x_there, POINTS, x[k]);
        assert_memory_equal(x[0], x[k], sizeof x[0]);
        /* its values, five vectors, exponents, and what its solver has */
        assert_ok(ctx, spmv_solver_describe(solver, &info, sizeof info));
        assert_true(info.bytes > before + a.nnz * 8 + POINTS * (5 * 8 + 2 * 4));
    }
    spmv_solver_destroy(solver);
    support_free_in(ctx, b_there, x_there);
    release(&a);
}

/* Each allocation fails in turn. */
static void memory(void **state)
{
    spmv_context *ctx = *state;
    double b[2 * POINTS] = {0}, x[2 * POINTS], solution[2 * POINTS] = {0};
    struct entries a = penalty(8, 1e12, SPMV_F64, b, solution);
    spmv_solver_options o = options_of("cg", "jacobi");
    spmv_solver_result result;
    spmv_status st = SPMV_ERROR_MEMORY;
    int64_t failed = 0;
    for (; st != SPMV_OK; failed++) {
        allocations = 0;
        fail_at = failed;
        st = solve(ctx, &a.view, &o, b, x, &result);
        if (st != SPMV_OK)
            assert_int_equal(st, SPMV_ERROR_MEMORY);
    }
    fail_at = -1;
    assert_true(failed > 30);
    assert_true(largest_error(x, solution, 64) < 1e-5);
    release(&a);
}

/* ------------------------------------------------------------------ f32 */

/* A tolerance below the precision of f32: the residual that f32 cannot see is reported. */
static void residual_of_f32(void **state)
{
    spmv_context *ctx = *state;
    struct entries a = new_entries(2, 2);
    const double b[] = {1, 0, 1, 0};
    double x[4];
    spmv_solver_result result;
    spmv_solver_options o = options_of("cg", "none");
    add(&a, 0, 0, 3, 0);
    add(&a, 1, 1, 3, 0);
    finish(&a, SPMV_F32);
    o.rtol = 1e-12;
    /* 3 x in f32 is 1 for x = float(1/3), whose distance from 1/3 is 1e-8 */
    assert_fails(ctx, solve(ctx, &a.view, &o, b, x, &result), SPMV_ERROR_STAGNATION, "the tolerance is 1.41e-12");
    const double each = 1 - 3 * (double)(1.0F / 3.0F);
    assert_near(result.true_residual, sqrt(2) * fabs(each), 1e-12);
    assert_true(x[0] == (double)(1.0F / 3.0F));
    o.rtol = 1e-6;
    assert_ok(ctx, solve(ctx, &a.view, &o, b, x, &result));
    assert_near(result.true_residual, sqrt(2) * fabs(each), 1e-12);
    release(&a);
}

/* ------------------------------------------------------------------ the dense factor */

/* Random systems with known solutions, in all types, with rows and columns of very different sizes and
 * zeros on the diagonal. */
static void dense_systems(void **state)
{
    spmv_context *ctx = *state;
    static const spmv_type types[] = {SPMV_F64, SPMV_F32, SPMV_C128, SPMV_C64};
    static const int64_t sizes[] = {1, 2, 3, 32, 33, SLOW ? 50 : 200};
    for (int s = 0; s < 6; s++)
        for (int t = 0; t < 4; t++) {
            const int64_t n = sizes[s];
            const spmv_type type = types[t];
            const bool complex = type_is_complex(type), wide = type_part(type) == SPMV_F64;
            uint64_t random = (uint64_t)(31 * s + t + 1);
            struct entries a = new_entries(n, 4 * n);
            double *const b = support_zeros(2 * n, 8), *const x = support_zeros(2 * n, 8);
            double *const found = support_zeros(2 * n, 8);
            for (int64_t i = 0; i < n; i++) {
                x[2 * i] = (float)support_uniform(&random);
                x[2 * i + 1] = complex ? (float)support_uniform(&random) : 0;
            }
            for (int64_t i = 0; i < n; i++) {
                const double size = ldexp(1, (int)(support_random(&random) % 40) - 20);
                /* a cyclic shift dominates: no entry on the diagonal for n > 1 */
                const int64_t cols[] = {(i + 1) % n, (i + 2) % n, (i + 5) % n};
                for (int k = 0; k < 3; k++) {
                    const bool repeated = (k > 0 && cols[k] == cols[0]) || (k > 1 && cols[k] == cols[1]);
                    if (repeated || (n > 1 && cols[k] == i))
                        continue;
                    const double re = (float)((k == 0 ? 2 : 0.5 * support_uniform(&random)) * size);
                    const double im = complex ? (float)(0.5 * support_uniform(&random) * size) : 0;
                    add(&a, i, cols[k], re, im);
                    b[2 * i] += re * x[2 * cols[k]] - im * x[2 * cols[k] + 1];
                    b[2 * i + 1] += re * x[2 * cols[k] + 1] + im * x[2 * cols[k]];
                }
            }
            finish(&a, type);
            spmv_solver_options o = options_of("auto", "auto");
            spmv_solver_result result;
            o.rtol = wide ? 1e-8 : 1e-4;
            assert_ok(ctx, solve(ctx, &a.view, &o, b, found, &result));
            assert_string_equal(result.solver, "direct");
            assert_non_null(strstr(result.why_solver, "dense"));
            assert_int_equal(result.iterations, 1);
            assert_true(largest_error(found, x, n) < (wide ? 1e-13 : 1e-5));
            assert_true(result.backward_error < (wide ? 1e-14 : 1e-6));
            free(b);
            free(x);
            free(found);
            release(&a);
        }
}

/* Where the dense factor is not taken: larger systems, a named method or preconditioner, singular ones. */
static void not_dense(void **state)
{
    spmv_context *ctx = *state;
    static const char *const ways[][2] = {{"auto", "auto"}, {"cg", "auto"}, {"auto", "jacobi"}, {"auto", "auto"}};
    for (int w = 0; w < 4; w++) {
        const int64_t n = w == 3 ? 201 : 60;
        struct entries a = new_entries(n, 3 * n);
        double *const b = support_zeros(2 * n, 8), *const x = support_zeros(2 * n, 8);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = i - 1; j <= i + 1; j++)
                if (j >= 0 && j < n)
                    add(&a, i, j, j == i ? 2 : -1, 0);
            b[2 * i] = 1;
        }
        finish(&a, SPMV_F64);
        spmv_solver_options o = options_of(ways[w][0], ways[w][1]);
        spmv_solver_result result;
        assert_ok(ctx, solve(ctx, &a.view, &o, b, x, &result));
        assert_string_equal(result.solver, w == 0 ? "direct" : "cg");
        /* Neumann: rows sum to 0; a consistent b is solved by an iterative method */
        a.val[0] = a.val[2 * (a.nnz - 1)] = 1;
        finish(&a, SPMV_F64);
        for (int64_t i = 0; i < n; i++)
            b[2 * i] = i == 0 ? 1 : i == n - 1 ? -1 : 0;
        assert_ok(ctx, solve(ctx, &a.view, &o, b, x, &result));
        assert_string_not_equal(result.solver, "direct");
        free(b);
        free(x);
        release(&a);
    }
}

/* Factors, their refusals, and every allocation failing. */
static void dense_factors(void **state)
{
    spmv_context *ctx = *state;
    struct direct *d = NULL;
    struct entries a = new_entries(3, 6);
    add(&a, 0, 0, 1, 0);
    add(&a, 0, 1, 2, 0);
    add(&a, 1, 0, 2, 0);
    add(&a, 1, 1, 4, 0);
    add(&a, 2, 2, 1, 0);
    finish(&a, SPMV_F64);
    assert_fails(ctx, direct_create_dense(ctx, &a.view, &d), SPMV_ERROR_SINGULAR, "column 2");
    assert_null(d);
    a.val[6] = 4 + 1e-15;
    finish(&a, SPMV_F64);
    assert_fails(ctx, direct_create_dense(ctx, &a.view, &d), SPMV_ERROR_SINGULAR, "singular to rounding");
    a.val[6] = NAN;
    finish(&a, SPMV_F64);
    assert_fails(ctx, direct_create_dense(ctx, &a.view, &d), SPMV_ERROR_NOT_FINITE,
                 "row 1, column 1 (counted from 0) is nan");
    /* rows and columns of any size are not singular: the same condition */
    a.val[6] = 5;
    finish(&a, SPMV_F64);
    assert_ok(ctx, direct_create_dense(ctx, &a.view, &d));
    const double condition = direct_rcond(d);
    assert_true(condition > 0.01);
    direct_destroy(d);
    for (int64_t k = 0; k < 5; k++)
        a.val[2 * k] *= ldexp(1, (k < 2 ? -900 : 100) + (k == 1 || k == 3 ? 300 : 0));
    finish(&a, SPMV_F64);
    assert_ok(ctx, direct_create_dense(ctx, &a.view, &d));
    assert_true(direct_rcond(d) > 0.01);
    assert_non_null(strstr(direct_describe(d), "dense LU"));
    direct_destroy(d);
    spmv_status st = SPMV_ERROR_MEMORY;
    int64_t failed = 0;
    for (; st != SPMV_OK; failed++) {
        allocations = 0;
        fail_at = failed;
        st = direct_create_dense(ctx, &a.view, &d);
        if (st != SPMV_OK)
            assert_int_equal(st, SPMV_ERROR_MEMORY);
    }
    fail_at = -1;
    assert_true(failed > 10);
    direct_destroy(d);
    release(&a);
}

/* The estimate of the condition is never below the true one, and mostly near it. */
static void condition(void **state)
{
    spmv_context *ctx = *state;
    /* the Hilbert matrix of 5 rows, whose 1-norm condition number is 943656; scaling changes it little */
    struct entries a = new_entries(5, 25);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++)
            add(&a, i, j, 1.0 / (i + j + 1), 0);
    for (int t = 0; t < 2; t++) {
        struct direct *d = NULL;
        finish(&a, t == 0 ? SPMV_F64 : SPMV_C128);
        assert_ok(ctx, direct_create_dense(ctx, &a.view, &d));
        assert_true(direct_rcond(d) > 1.0 / 943656 / 4 && direct_rcond(d) < 4.0 * 40 / 943656);
        direct_destroy(d);
    }
    release(&a);
}

SUPPORT_MAIN(with_context(by_hand), with_context(special_rows), with_context(against_the_definition),
             with_context(underflow), with_context(many_columns), with_context(long_row_of_columns),
             cmocka_unit_test(same_bits), with_context(penalties), with_context(two_rows), with_context(not_met),
             with_context(point_source), with_context(several_columns), with_context(callbacks), with_context(repeated),
             with_context(memory), with_context(residual_of_f32), with_context(dense_systems), with_context(not_dense),
             with_context(dense_factors), with_context(condition))
