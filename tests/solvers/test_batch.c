/* Batches of systems with one pattern: solutions and residuals beside long double, each status, the same bits alone
 * and in a batch and on every backend, products.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/reals.h"
#include "tests/support/support.h"
#include "tests/support/support_slow.h"

/* A batch in host memory. Columns of a row do not ascend, and the diagonal entry is there twice. */
struct systems {
    spmv_type type;
    int64_t n, nnz, count;
    int64_t *row_ptr;
    int32_t *col;
    void *val, *b, *x;
};

static spmv_batch_options batch_options(void)
{
    spmv_batch_options o;
    spmv_batch_options_init(&o, sizeof o);
    return o;
}

static long double part_at(spmv_type type, const void *values, int64_t i, int part)
{
    return part >= type_parts(type) ? 0 : (long double)real_at(type_part(type), values, i * type_parts(type) + part);
}

static void set_number(spmv_type type, void *values, int64_t i, double re, double im)
{
    real_set(type_part(type), values, i * type_parts(type), re);
    if (type_is_complex(type))
        real_set(type_part(type), values, i * 2 + 1, im);
}

static void *numbers_of(spmv_type type, int64_t n)
{
    return support_zeros(n, (size_t)spmv_type_size(type));
}

static double entry(uint64_t seed, int64_t i, int64_t j)
{
    uint64_t state = seed * 1000003 + (uint64_t)i * 131071 + (uint64_t)j;
    support_random(&state);
    return support_uniform(&state);
}

/* Row i of system k: neighbours i +- 1, and i +- 7 except in a chain; in an arrow row and column 0 have an entry for
 * each fifth unknown. Entries have a modulus below 1.5, the diagonal exceeds their sum. */
enum shape { ARROW, GRID, CHAIN, SHAPES };

static bool is_neighbour(enum shape shape, int64_t i, int64_t j)
{
    const int64_t distance = i > j ? i - j : j - i;
    return distance == 1 || (distance == 7 && shape != CHAIN) ||
           (distance > 0 && (i == 0 || j == 0) && distance % 5 == 0 && shape == ARROW);
}

static struct systems make_shape(enum shape shape, spmv_type type, int64_t n, int64_t count, bool hermitian)
{
    struct systems s = {.type = type, .n = n, .count = count};
    s.row_ptr = support_zeros(n + 1, sizeof *s.row_ptr);
    for (int pass = 0; pass < 2; pass++) {
        s.nnz = 0;
        for (int64_t i = 0; i < n; i++) {
            s.row_ptr[i] = s.nnz;
            for (int64_t j = n - 1; j >= 0; j--)
                for (int copy = 0; copy < (i == j ? 2 : is_neighbour(shape, i, j)); copy++, s.nnz++)
                    if (pass == 1)
                        s.col[s.nnz] = (int32_t)j;
        }
        s.row_ptr[n] = s.nnz;
        if (pass == 0)
            s.col = support_zeros(s.nnz, sizeof *s.col);
    }
    s.val = numbers_of(type, s.nnz * count);
    s.b = numbers_of(type, n * count);
    s.x = numbers_of(type, n * count);
    for (int64_t k = 0; k < count; k++)
        for (int64_t i = 0; i < n; i++) {
            set_number(type, s.b, k * n + i, entry((uint64_t)k + 71, i, n), entry((uint64_t)k + 72, i, n));
            for (int64_t e = s.row_ptr[i]; e < s.row_ptr[i + 1]; e++) {
                const int64_t j = s.col[e], low = hermitian && j < i ? j : i, high = hermitian && j < i ? i : j;
                const double re = entry((uint64_t)k + 1, low, high), im = entry((uint64_t)k + 2, low, high);
                if (i == j)
                    set_number(type, s.val, k * s.nnz + e, 0.75 * (double)(s.row_ptr[i + 1] - s.row_ptr[i]), 0);
                else
                    set_number(type, s.val, k * s.nnz + e, re, hermitian && j < i ? -im : im);
            }
        }
    return s;
}

static struct systems make_systems(spmv_type type, int64_t n, int64_t count, bool hermitian)
{
    return make_shape(ARROW, type, n, count, hermitian);
}

static void free_systems(struct systems *s)
{
    support_free(s->row_ptr, s->col, s->val, s->b, s->x);
}

static spmv_csr pattern_of(const struct systems *s)
{
    return support_view(s->n, s->n, s->nnz, s->row_ptr, s->col, NULL, s->type);
}

/* ||b - A x|| of system k */
static long double residual_of(const struct systems *s, int64_t k)
{
    long double squares = 0;
    for (int64_t i = 0; i < s->n; i++) {
        long double re = part_at(s->type, s->b, k * s->n + i, 0), im = part_at(s->type, s->b, k * s->n + i, 1);
        for (int64_t e = s->row_ptr[i]; e < s->row_ptr[i + 1]; e++) {
            const int64_t at = k * s->nnz + e, of_x = k * s->n + s->col[e];
            const long double a = part_at(s->type, s->val, at, 0), c = part_at(s->type, s->val, at, 1);
            const long double u = part_at(s->type, s->x, of_x, 0), v = part_at(s->type, s->x, of_x, 1);
            re -= a * u - c * v;
            im -= a * v + c * u;
        }
        squares += re * re + im * im;
    }
    return sqrtl(squares);
}

/* Solves on a context, the x of s becoming the solution. */
static spmv_status solve_on(spmv_context *ctx, struct systems *s, const spmv_batch_options *options,
                            spmv_batch_result *results)
{
    spmv_batch *batch = NULL;
    spmv_batch_options o = *options;
    const spmv_csr pattern = pattern_of(s);
    const int64_t size = (int64_t)spmv_type_size(s->type), all = s->count * s->n * size;
    void *const val = support_upload(ctx, s->val, s->count * s->nnz * size), *const b = support_upload(ctx, s->b, all),
                *const x = support_upload(ctx, s->x, all);
    o.type = s->type;
    assert_ok(ctx, spmv_batch_create(ctx, &pattern, &o, &batch));
    assert_true(spmv_batch_bytes(batch) > 0);
    const spmv_status st = spmv_batch_solve(batch, val, b, x, s->count, results, sizeof *results);
    assert_ok(ctx, spmv_download(ctx, x, s->x, all));
    spmv_batch_destroy(batch);
    support_free_in(ctx, val, b, x);
    return st;
}

/* ------------------------------------------------------------------------------ solutions */

static const spmv_type types[] = {SPMV_F32, SPMV_F64, SPMV_C64, SPMV_C128};
enum { TYPES = 4 };

static void check_solved(spmv_context *ctx, struct systems *s, const spmv_batch_options *o)
{
    spmv_batch_result results[8] = {{0}};
    assert_true(s->count <= 8);
    assert_ok(ctx, solve_on(ctx, s, o, results));
    for (int64_t k = 0; k < s->count; k++) {
        const spmv_batch_result *const r = &results[k];
        long double norm = 0;
        for (int64_t i = 0; i < s->n * type_parts(s->type); i++)
            norm = hypotl(norm, (long double)real_at(type_part(s->type), s->b, k * s->n * type_parts(s->type) + i));
        assert_int_equal(r->status, SPMV_OK);
        assert_true(r->size == sizeof *r && r->iterations > 0 && r->iterations < 60);
        assert_true(fabsl((long double)r->norm_b - norm) <= 1e-14L * norm);
        assert_true(fabs(r->tolerance - o->rtol * r->norm_b) <= 1e-15 * r->norm_b);
        assert_true(r->true_residual <= r->tolerance);
        /* it is computed in f64, whose errors are far below a tolerance of f32 */
        const long double error = fabsl((long double)r->true_residual - residual_of(s, k));
        assert_true(error <= 1e-14L * norm * 50 && error <= 0.01L * (long double)r->tolerance);
    }
}

/* The bits of ref, where one thread solves system after system, and of each system alone. */
static void check_bits(struct systems *s, const spmv_batch_options *o, const void *start)
{
    const int64_t size = (int64_t)spmv_type_size(s->type), each = s->n * size;
    spmv_context *const ref = support_context_on(SPMV_BACKEND_REF, 1);
    struct systems alone = *s;
    alone.count = 1;
    for (int64_t k = 0; k < s->count; k++) {
        spmv_batch_result result;
        alone.val = (char *)s->val + k * s->nnz * size;
        alone.b = (char *)s->b + k * each;
        alone.x = malloc((size_t)each);
        assert_non_null(alone.x);
        memcpy(alone.x, (const char *)start + k * each, (size_t)each);
        assert_ok(ref, solve_on(ref, &alone, o, &result));
        assert_memory_equal(alone.x, (const char *)s->x + k * each, (size_t)each);
        free(alone.x);
    }
    spmv_context_destroy(ref);
}

/* Rows at and beside the ends of warps, of blocks, and of what a block keeps in registers. */
static void solutions(void **state)
{
    static const int64_t sizes[] = {1, 2, 31, 33, 128, 129, 300, 512, 513, 700, 1024, 1030};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    spmv_context *const ctx = *state;
    for (int i = 0; i < SIZES * SHAPES; i++)
        for (int t = 0; t < TYPES; t++)
            for (int solver = 0; spmv_batch_solver_name(solver) != NULL; solver++) {
                const int64_t n = sizes[i % SIZES];
                const enum shape shape = (enum shape)(i / SIZES);
                if ((n > 300 && (i + t + solver) % 2 == 0) || (shape != ARROW && type_is_complex(types[t])))
                    continue;
                spmv_batch_options o = batch_options();
                o.solver = spmv_batch_solver_name(solver);
                o.precond = (i + t) % 3 == 0 ? "none" : (i + t) % 3 == 1 ? "jacobi" : NULL;
                o.rtol = type_part(types[t]) == SPMV_F32 ? 1e-5 : 1e-10;
                o.restart = 11;
                struct systems s = make_shape(shape, types[t], n, n > 300 ? 2 : 5, solver == 0);
                for (int64_t k = 0; k < s.count * s.n; k++) /* the start */
                    set_number(s.type, s.x, k, entry(5, k, 0), entry(6, k, 0));
                void *const start = numbers_of(s.type, s.count * s.n);
                memcpy(start, s.x, (size_t)(s.count * s.n) * spmv_type_size(s.type));
                check_solved(ctx, &s, &o);
                check_bits(&s, &o, start);
                free(start);
                free_systems(&s);
            }
}

/* Threads take systems in any order. */
static void threads(void **state)
{
    (void)state;
    struct systems s = make_systems(SPMV_F64, 90, 60, false), again = s;
    spmv_batch_options o = batch_options();
    again.x = numbers_of(s.type, s.count * s.n);
    o.zero_start = 1;
    for (int teams = 1; teams <= 4; teams += 3) {
        spmv_context *const omp = support_context_on(SPMV_BACKEND_OMP, teams);
        assert_ok(omp, solve_on(omp, teams == 1 ? &s : &again, &o, NULL));
        spmv_context_destroy(omp);
    }
    assert_memory_equal(s.x, again.x, (size_t)(s.count * s.n) * sizeof(double));
    free(again.x);
    free_systems(&s);
}

/* ------------------------------------------------------------------------------ statuses */

enum { N = 40, MIDDLE = 1 };

/* Two good systems with one between them that `spoil` changes; its status, and those of the others with their bits. */
static spmv_batch_result spoiled(spmv_context *ctx, const spmv_batch_options *o, void (*spoil)(struct systems *s),
                                 spmv_status expected)
{
    struct systems s = make_systems(SPMV_F64, N, 3, true), good = make_systems(SPMV_F64, N, 3, true);
    spmv_batch_result results[3], of_good[3];
    assert_ok(ctx, solve_on(ctx, &good, o, of_good));
    spoil(&s);
    const spmv_status st = solve_on(ctx, &s, o, results);
    if (results[MIDDLE].status != expected || st != expected)
        fail_msg("%s instead of %s", spmv_status_name(results[MIDDLE].status), spmv_status_name(expected));
    if (expected != SPMV_OK && strstr(spmv_last_error(ctx), "1 of 3 systems failed") == NULL)
        fail_msg("message \"%s\"", spmv_last_error(ctx));
    for (int k = 0; k < 3; k += 2) {
        assert_int_equal(results[k].status, SPMV_OK);
        assert_memory_equal(&results[k], &of_good[k], sizeof results[k]);
        assert_memory_equal((double *)s.x + (ptrdiff_t)k * N, (double *)good.x + (ptrdiff_t)k * N, N * sizeof(double));
    }
    /* what is reported is true */
    const long double left = residual_of(&s, MIDDLE);
    const double told = results[MIDDLE].true_residual;
    double largest = results[MIDDLE].norm_b; /* rounding errors come from numbers of this size */
    for (int i = 0; i < N; i++)
        largest = fmax(largest, 30 * fabs(((double *)s.x)[MIDDLE * N + i]));
    if (isfinite(told))
        assert_true(fabsl(left - (long double)told) <= 1e-14L * (long double)largest);
    else
        assert_false(isfinite((double)left) && expected == SPMV_OK);
    for (int i = 0; i < N && expected != SPMV_ERROR_NOT_FINITE; i++)
        assert_true(isfinite(((double *)s.x)[MIDDLE * N + i]));
    free_systems(&s);
    free_systems(&good);
    return results[MIDDLE];
}

static double *middle_values(struct systems *s)
{
    return (double *)s->val + MIDDLE * s->nnz;
}

/* Element (i, j) of the middle matrix; both copies of a diagonal entry. */
static void set_entry(struct systems *s, int64_t i, int64_t j, double value)
{
    for (int64_t e = s->row_ptr[i]; e < s->row_ptr[i + 1]; e++)
        if (s->col[e] == j)
            middle_values(s)[e] = i == j ? value / 2 : value;
}

static void clear_row(struct systems *s, int64_t i)
{
    for (int64_t e = s->row_ptr[i]; e < s->row_ptr[i + 1]; e++)
        middle_values(s)[e] = 0;
}

static void no_change(struct systems *s)
{
    (void)s;
}
static void zero_matrix(struct systems *s)
{
    memset(middle_values(s), 0, (size_t)s->nnz * sizeof(double));
}
static void negative_matrix(struct systems *s)
{
    for (int64_t e = 0; e < s->nnz; e++)
        middle_values(s)[e] *= -1;
}
static void zero_row(struct systems *s)
{
    clear_row(s, 11);
}
static void zero_diagonal(struct systems *s)
{
    set_entry(s, 11, 11, 0);
}
static void nan_value(struct systems *s)
{
    set_entry(s, 11, 12, NAN);
}
static void infinite_value(struct systems *s)
{
    set_entry(s, 11, 11, INFINITY);
}
static void nan_in_b(struct systems *s)
{
    ((double *)s->b)[MIDDLE * N + 39] = NAN;
}
static void infinity_in_b(struct systems *s)
{
    ((double *)s->b)[MIDDLE * N] = -INFINITY;
}
static void nan_in_start(struct systems *s)
{
    ((double *)s->x)[MIDDLE * N + 3] = NAN;
}
static void zero_b(struct systems *s)
{
    memset((double *)s->b + MIDDLE * N, 0, N * sizeof(double));
    ((double *)s->x)[MIDDLE * N + 3] = 1;
}
static void zero_b_nan_matrix(struct systems *s)
{
    zero_b(s);
    nan_value(s);
}
static void huge_b(struct systems *s)
{
    for (int i = 0; i < N; i++)
        ((double *)s->b)[MIDDLE * N + i] *= 1e300;
}
static void tiny_b(struct systems *s)
{
    for (int i = 0; i < N; i++)
        ((double *)s->b)[MIDDLE * N + i] *= 1e-290;
}
/* x -> (x_2, -x_1, x_4, -x_3, ...): (r, A r) = 0 for every r */
static void rotation(struct systems *s)
{
    zero_matrix(s);
    for (int i = 0; i < N; i += 2) {
        set_entry(s, i, i + 1, 1);
        set_entry(s, i + 1, i, -1);
    }
}
static void huge_values(struct systems *s)
{
    for (int64_t e = 0; e < s->nnz; e++)
        middle_values(s)[e] *= 1e250;
}

static void statuses(void **state)
{
    spmv_context *const ctx = *state;
    for (int solver = 0; spmv_batch_solver_name(solver) != NULL; solver++) {
        spmv_batch_options o = batch_options();
        const bool cg = solver == 0, bicgstab = solver == 1;
        o.solver = spmv_batch_solver_name(solver);
        spoiled(ctx, &o, no_change, SPMV_OK);
        spoiled(ctx, &o, nan_value, SPMV_ERROR_NOT_FINITE);
        spoiled(ctx, &o, infinite_value, SPMV_ERROR_NOT_FINITE);
        assert_true(isnan(spoiled(ctx, &o, nan_in_b, SPMV_ERROR_NOT_FINITE).true_residual));
        spoiled(ctx, &o, infinity_in_b, SPMV_ERROR_NOT_FINITE);
        spoiled(ctx, &o, nan_in_start, SPMV_ERROR_NOT_FINITE);
        spoiled(ctx, &o, zero_b_nan_matrix, SPMV_ERROR_NOT_FINITE);
        const spmv_batch_result trivial = spoiled(ctx, &o, zero_b, SPMV_OK);
        assert_true(trivial.iterations == 0 && trivial.true_residual == 0 && trivial.norm_b == 0);
        spoiled(ctx, &o, zero_matrix, cg ? SPMV_ERROR_NOT_POSITIVE : SPMV_ERROR_BREAKDOWN);
        spoiled(ctx, &o, negative_matrix, cg ? SPMV_ERROR_NOT_POSITIVE : SPMV_OK);
        spoiled(ctx, &o, rotation, cg ? SPMV_ERROR_NOT_POSITIVE : bicgstab ? SPMV_ERROR_BREAKDOWN : SPMV_OK);
        const spmv_batch_result singular = spoiled(ctx, &o, zero_row,
                                                   cg         ? SPMV_ERROR_NOT_POSITIVE
                                                   : bicgstab ? SPMV_ERROR_ITERATIONS
                                                              : SPMV_ERROR_STAGNATION);
        assert_true(singular.true_residual > 0.01 * singular.norm_b);
        assert_true(singular.true_residual <= singular.norm_b * (1 + 1e-14));
        o.precond = "jacobi";
        spoiled(ctx, &o, no_change, SPMV_OK);
        spoiled(ctx, &o, zero_diagonal, SPMV_ERROR_SINGULAR);
        spoiled(ctx, &o, infinite_value, SPMV_ERROR_NOT_FINITE);
        o.precond = NULL;
        if (!cg)
            spoiled(ctx, &o, zero_diagonal, SPMV_OK); /* without jacobi */
        const double largest = spoiled(ctx, &o, huge_b, SPMV_OK).norm_b,
                     least = spoiled(ctx, &o, tiny_b, SPMV_OK).norm_b;
        assert_true(largest > 1e300 && largest < 1e302 && least < 1e-288 && least > 1e-291);
        o.precond = "none";
        /* squares of A p overflow; cg needs none */
        spoiled(ctx, &o, huge_values, cg ? SPMV_OK : SPMV_ERROR_NOT_FINITE);
    }
}

static void limits(void **state)
{
    spmv_context *const ctx = *state;
    for (int solver = 0; spmv_batch_solver_name(solver) != NULL; solver++) {
        struct systems s = make_systems(SPMV_F64, N, 3, true);
        spmv_batch_result results[3];
        spmv_batch_options o = batch_options();
        o.solver = spmv_batch_solver_name(solver);
        o.max_iterations = 2;
        o.zero_start = 1;
        ((double *)s.x)[0] = NAN; /* is not read */
        assert_fails(ctx, solve_on(ctx, &s, &o, results), SPMV_ERROR_ITERATIONS,
                     "3 of 3 systems failed; first system 0");
        for (int k = 0; k < 3; k++) {
            assert_true(results[k].iterations == 2 && results[k].restarts == 0);
            assert_true(results[k].true_residual < results[k].norm_b &&
                        results[k].true_residual > results[k].tolerance);
            assert_true(fabsl((long double)results[k].true_residual - residual_of(&s, k)) < 1e-14L);
        }
        /* rounding does not allow this: restarts, then stagnation at its limit */
        o.max_iterations = 0;
        o.rtol = 1e-20;
        assert_int_equal(solve_on(ctx, &s, &o, results), SPMV_ERROR_STAGNATION);
        assert_true(results[0].true_residual < 1e-14 && results[0].restarts > 0);
        o.atol = 10; /* any start will do */
        assert_ok(ctx, solve_on(ctx, &s, &o, results));
        assert_true(results[0].iterations == 0 && results[0].tolerance == 10);
        free_systems(&s);
    }
}

/* ------------------------------------------------------------------------------ products */

static void products(void **state)
{
    spmv_context *const ctx = *state;
    const int32_t row_ptr[] = {0, 2, 2, 5}, col[] = {1, 0, 3, 0, 3};
    const spmv_csr pattern = support_csr_with(3, 4, 5, row_ptr, 32, col, NULL, SPMV_F64);
    const double val[] = {1, 2, 3, 4, 5, 10, 20, 30, 40, 50}, x[] = {1, 2, 3, 4, -1, -2, -3, -4};
    const double expected[] = {4, 0, 36, -40, 0, -360};
    double y[6] = {9, 9, 9, 9, 9, 9};
    spmv_batch *batch = NULL;
    spmv_batch_result results[2];
    assert_ok(ctx, spmv_batch_create(ctx, &pattern, NULL, &batch));
    double *const there = support_upload(ctx, val, sizeof val), *const at_x = support_upload(ctx, x, sizeof x),
                  *const at_y = support_upload(ctx, y, sizeof y);
    assert_ok(ctx, spmv_batch_apply(batch, there, at_x, at_y, 2));
    assert_holds(ctx, at_y, expected, sizeof expected);
    assert_ok(ctx, spmv_batch_apply(batch, there, at_x, at_y, 0));
    assert_fails(ctx, spmv_batch_solve(batch, there, at_x, at_y, 1, results, sizeof *results), SPMV_ERROR_NOT_SQUARE,
                 "3 rows and 4 columns");
    spmv_batch_destroy(batch);
    support_free_in(ctx, there, at_x, at_y);
    /* all types, beside a product in long double: the residual for b = 0 */
    for (int t = 0; t < TYPES; t++) {
        struct systems s = make_systems(types[t], 300, 4, false);
        const int64_t size = (int64_t)spmv_type_size(s.type), all = s.count * s.n;
        const spmv_csr square = pattern_of(&s);
        spmv_batch_options o = batch_options();
        o.type = s.type;
        assert_ok(ctx, spmv_batch_create(ctx, &square, &o, &batch));
        void *const values = support_upload(ctx, s.val, s.count * s.nnz * size), *const from = support_upload(
                                                                                     ctx, s.b, all * size);
        void *const to = support_upload(ctx, s.x, all * size);
        assert_ok(ctx, spmv_batch_apply(batch, values, from, to, s.count));
        memcpy(s.x, s.b, (size_t)(all * size));
        assert_ok(ctx, spmv_download(ctx, to, s.b, all * size));
        for (int64_t k = 0; k < s.count; k++)
            assert_true(residual_of(&s, k) < 50 * (long double)real_limits_of(type_part(s.type)).roundoff * 100);
        spmv_batch_destroy(batch);
        support_free_in(ctx, values, from, to);
        free_systems(&s);
    }
}

static void refusals(void **state)
{
    spmv_context *const ctx = *state;
    const int64_t row_ptr[] = {0, 1, 2};
    const int32_t col[] = {0, 1}, wrong[] = {0, 2};
    double numbers[4] = {1, 1, 1, 1};
    spmv_csr p = support_view(2, 2, 2, row_ptr, col, NULL, SPMV_F64);
    spmv_batch_options o = batch_options();
    spmv_batch *batch = NULL;
    spmv_batch_result results[2];
    o.solver = "bicg";
    assert_fails(ctx, spmv_batch_create(ctx, &p, &o, &batch), SPMV_ERROR_METHOD, "auto, cg, bicgstab, gmres");
    o = batch_options();
    o.precond = "ilu0";
    assert_fails(ctx, spmv_batch_create(ctx, &p, &o, &batch), SPMV_ERROR_METHOD, "auto, none, jacobi");
    o = batch_options();
    o.restart = 201;
    assert_fails(ctx, spmv_batch_create(ctx, &p, &o, &batch), SPMV_ERROR_ARGUMENT, "restart");
    o.restart = 0;
    o.rtol = -1;
    assert_fails(ctx, spmv_batch_create(ctx, &p, &o, &batch), SPMV_ERROR_ARGUMENT, "rtol");
    o.rtol = 0;
    o.type = SPMV_BF16;
    assert_fails(ctx, spmv_batch_create(ctx, &p, &o, &batch), SPMV_ERROR_TYPE, "bf16");
    p.col = wrong;
    assert_fails(ctx, spmv_batch_create(ctx, &p, NULL, &batch), SPMV_ERROR_SIZE, "column");
    assert_null(batch);
    p.col = col;
    assert_ok(ctx, spmv_batch_create(ctx, &p, NULL, &batch));
    assert_fails(ctx, spmv_batch_apply(batch, numbers, numbers, numbers, -1), SPMV_ERROR_ARGUMENT, "count");
    assert_fails(ctx, spmv_batch_solve(batch, numbers, numbers, numbers, 1, results, sizeof *results),
                 SPMV_ERROR_ARGUMENT, "the same array");
    assert_fails(ctx, spmv_batch_solve(batch, NULL, numbers, numbers, 1, results, sizeof *results), SPMV_ERROR_ARGUMENT,
                 "values is NULL");
    assert_ok(ctx, spmv_batch_solve(batch, NULL, NULL, NULL, 0, NULL, 0));
    spmv_batch_destroy(batch);
    /* no rows */
    p = support_view(0, 0, 0, (const int64_t[]){0}, NULL, NULL, SPMV_F64);
    assert_ok(ctx, spmv_batch_create(ctx, &p, NULL, &batch));
    assert_ok(ctx, spmv_batch_apply(batch, NULL, NULL, NULL, 2));
    assert_ok(ctx, spmv_batch_solve(batch, NULL, NULL, NULL, 2, results, sizeof *results));
    assert_true(results[1].status == SPMV_OK && results[1].size == sizeof results[1]);
    spmv_batch_destroy(batch);
    assert_null(spmv_batch_solver_name(3));
    assert_null(spmv_batch_solver_name(-1));
}

SUPPORT_MAIN(with_context(solutions), cmocka_unit_test(threads), with_context(statuses), with_context(limits),
             with_context(products), with_context(refusals))
