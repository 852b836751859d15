/* Preconditioners: what each applies, column by column, is symmetric and positive and equals a dense form written here
 * by its definition; wrong arguments are refused; the same bits every time.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "precond_internal.h"
#include "support.h"

/* Where the host plays the GPU, thread by thread, only what is small is run. */
#ifdef HOST_CUDA
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif

/* ----------------------------------------------------------------- matrices */

/* A symmetric matrix in host arrays, columns ascending. */
struct sparse {
    int64_t n;
    int32_t *row_ptr, *col;
    double *val;
    spmv_csr view;
};

static struct sparse from_dense(int64_t n, const double *dense)
{
    struct sparse s = {.n = n};
    s.row_ptr = calloc((size_t)n + 1, sizeof *s.row_ptr);
    s.col = calloc((size_t)(n * n) + 1, sizeof *s.col);
    s.val = calloc((size_t)(n * n) + 1, sizeof *s.val);
    for (int64_t i = 0; i < n; i++) {
        s.row_ptr[i + 1] = s.row_ptr[i];
        for (int64_t j = 0; j < n; j++)
            if (dense[i * n + j] != 0) {
                s.col[s.row_ptr[i + 1]] = (int32_t)j;
                s.val[s.row_ptr[i + 1]++] = dense[i * n + j];
            }
    }
    s.view = support_csr(n, n, s.row_ptr, s.col, s.val);
    return s;
}

static void release(struct sparse *s)
{
    free(s->row_ptr);
    free(s->col);
    free(s->val);
}

static double *dense_of(const spmv_csr *a)
{
    double *dense = calloc((size_t)(a->rows * a->rows) + 1, sizeof *dense);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = offset_at(a->row_ptr, a->row_ptr_bits, i); k < offset_at(a->row_ptr, a->row_ptr_bits, i + 1);
             k++)
            dense[i * a->rows + a->col[k]] += precond_value(a, k);
    return dense;
}

/* Symmetric with a positive, dominant diagonal of widely differing scale; a share of the cells is not zero. */
static struct sparse random_spd(int64_t n, double share, uint64_t seed)
{
    double *dense = calloc((size_t)(n * n) + 1, sizeof *dense);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            if (fabs(support_uniform(&seed)) < share)
                dense[i * n + j] = dense[j * n + i] = support_uniform(&seed);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0.25 + fabs(support_uniform(&seed));
        for (int64_t j = 0; j < n; j++)
            sum += fabs(dense[i * n + j]);
        dense[i * n + i] = sum;
    }
    double *scale = malloc((size_t)n * sizeof *scale);
    for (int64_t i = 0; i < n; i++)
        scale[i] = exp2((double)(support_random(&seed) % 9) - 4);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            dense[i * n + j] *= scale[i] * scale[j];
    struct sparse s = from_dense(n, dense);
    free(scale);
    free(dense);
    return s;
}

/* ---------------------------------------------------------------- application */

/* z = M^-1 r with arrays of doubles on the host, whatever the type of M. */
static void apply(spmv_context *ctx, const spmv_preconditioner *m, const double *r, double *z)
{
    spmv_preconditioner_info info;
    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
    const int64_t n = info.rows, bytes = n * (int64_t)spmv_type_size(info.type);
    float *narrow = malloc((size_t)n * sizeof *narrow + 1);
    for (int64_t i = 0; i < n; i++)
        narrow[i] = (float)r[i];
    const bool is_narrow = info.type == SPMV_F32;
    void *dr = support_upload(ctx, is_narrow ? (const void *)narrow : (const void *)r, bytes);
    void *dz = support_upload(ctx, is_narrow ? (const void *)narrow : (const void *)r, bytes);
    assert_ok(ctx, spmv_preconditioner_apply(m, dr, dz));
    assert_ok(ctx, spmv_download(ctx, dz, is_narrow ? (void *)narrow : (void *)z, bytes));
    for (int64_t i = 0; i < n && is_narrow; i++)
        z[i] = narrow[i];
    spmv_free(ctx, dr);
    spmv_free(ctx, dz);
    free(narrow);
}

/* M^-1 as a dense matrix: row j is M^-1 e_j. */
static double *inverse_of(spmv_context *ctx, const spmv_preconditioner *m, int64_t n)
{
    double *z = malloc((size_t)(n * n) * sizeof *z + 1), *r = calloc((size_t)n + 1, sizeof *r);
    for (int64_t j = 0; j < n; j++) {
        r[j] = 1;
        apply(ctx, m, r, z + j * n);
        r[j] = 0;
    }
    free(r);
    return z;
}

static double roundoff(spmv_type type)
{
    return type == SPMV_F32 ? 0x1p-24 : 0x1p-53;
}

/* Cholesky in long double: true when every pivot is positive. */
static bool is_positive(const double *dense, int64_t n)
{
    long double *l = malloc((size_t)(n * n) * sizeof *l + 1);
    bool positive = true;
    for (int64_t j = 0; j < n && positive; j++)
        for (int64_t i = j; i < n && positive; i++) {
            long double sum = ((long double)dense[i * n + j] + dense[j * n + i]) / 2;
            for (int64_t k = 0; k < j; k++)
                sum -= l[i * n + k] * l[j * n + k];
            positive = i != j || sum > 0;
            l[i * n + j] = i == j ? sqrtl(sum) : sum / l[j * n + j];
        }
    free(l);
    return positive;
}

/* Symmetric within the rounding of n-term sums, and positive definite. */
static void check_symmetric_positive(const char *name, const double *z, int64_t n, double u)
{
    double *scaled = malloc((size_t)(n * n) * sizeof *scaled + 1);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const double bound = 64 * (double)(n + 8) * u * sqrt(fabs(z[i * n + i] * z[j * n + j]));
            if (!(fabs(z[i * n + j] - z[j * n + i]) <= bound))
                fail_msg("%s: M^-1 has %.17g at (%lld, %lld) and %.17g across", name, z[i * n + j], (long long)i,
                         (long long)j, z[j * n + i]);
            scaled[i * n + j] = z[i * n + j] / sqrt(fabs(z[i * n + i] * z[j * n + j]));
        }
    if (!is_positive(scaled, n))
        fail_msg("%s: M^-1 is not positive definite", name);
    free(scaled);
}

/* z against what it should be, element by element, relative to the largest of its row. */
static void check_equal(const char *name, const double *z, const double *expected, int64_t n, double relative)
{
    for (int64_t i = 0; i < n; i++) {
        double largest = 0;
        for (int64_t j = 0; j < n; j++)
            largest = fmax(largest, fabs(expected[i * n + j]));
        for (int64_t j = 0; j < n; j++)
            if (!(fabs(z[i * n + j] - expected[i * n + j]) <= relative * largest))
                fail_msg("%s: M^-1 has %.17g at (%lld, %lld), %.17g expected", name, z[i * n + j], (long long)i,
                         (long long)j, expected[i * n + j]);
    }
}

static spmv_preconditioner *make(spmv_context *ctx, const char *name, const spmv_csr *a,
                                 const spmv_preconditioner_options *options)
{
    spmv_preconditioner *m = NULL;
    assert_ok(ctx, spmv_preconditioner_create(ctx, name, a, options, &m));
    return m;
}

/* -------------------------------------------------------------------- tests */

/* M^-1 of jacobi. */
static double *inverse_diagonal_of(const spmv_csr *a)
{
    double *dense = dense_of(a);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->rows; j++)
            dense[i * a->rows + j] = i == j ? 1 / dense[i * a->rows + i] : 0;
    return dense;
}

/* Every kind, in both types, on small matrices: symmetric, positive, the facts that describe tells. */
static void every_kind(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    struct sparse matrices[] = {random_spd(1, 1, 1), random_spd(7, 0.5, 2), random_spd(33, 0.2, 3),
                                random_spd(SLOW ? 40 : 90, 0.1, 4)};
    const char *name = NULL;
    for (int k = 0; (name = spmv_preconditioner_name(k)) != NULL; k++)
        for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++)
            for (int narrow = 0; narrow < 2; narrow++) {
                const int64_t n = matrices[i].n;
                spmv_csr a = matrices[i].view;
                float *values = malloc((size_t)a.nnz * sizeof *values);
                for (int64_t e = 0; e < a.nnz; e++)
                    values[e] = (float)matrices[i].val[e];
                if (narrow) {
                    a.val = values;
                    a.type = SPMV_F32;
                }
                spmv_preconditioner *m = NULL;
                spmv_preconditioner_info info;
                const spmv_status st = spmv_preconditioner_create(ctx, name, &a, NULL, &m);
                if (st == SPMV_ERROR_UNSUPPORTED) { /* the sentence says why; m is empty */
                    assert_null(m);
                    assert_true(strlen(spmv_last_error(ctx)) > 20);
                } else {
                    assert_ok(ctx, st);
                    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
                    assert_string_equal(info.name, name);
                    assert_true(info.rows == n && info.type == a.type && info.seconds >= 0 && info.bytes >= 0);
                    assert_true(strlen(info.why) > 0);
                    double *z = inverse_of(ctx, m, n);
                    check_symmetric_positive(name, z, n, roundoff(a.type));
                    double *expected = inverse_diagonal_of(&a);
                    if (strcmp(name, "jacobi") == 0)
                        check_equal(name, z, expected, n, 4 * roundoff(a.type));
                    free(expected);
                    free(z);
                }
                spmv_preconditioner_destroy(m);
                free(values);
            }
    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++)
        release(&matrices[i]);
    spmv_context_destroy(ctx);
}

/* none and jacobi by hand; the diagonal's parts are added; arrays in the context's memory; 64-bit offsets. */
static void none_and_jacobi(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    const int64_t row_ptr[] = {0, 3, 5, 6};
    const int32_t col[] = {1, 0, 0, 1, 0, 2};
    const double val[] = {1, 1.5, 0.5, 4, 1, 0.125}, r[] = {3, -8, 5};
    double z[3];
    void *there[] = {support_upload(ctx, row_ptr, sizeof row_ptr), support_upload(ctx, col, sizeof col),
                     support_upload(ctx, val, sizeof val)};
    spmv_csr a = {.rows = 3, .cols = 3, .nnz = 6, .row_ptr = row_ptr, .row_ptr_bits = 64, .col = col, .val = val};
    a.type = SPMV_F64;
    for (int memory = 0; memory < 2; memory++) {
        a.memory = memory == 0 ? SPMV_MEMORY_HOST : SPMV_MEMORY_CONTEXT;
        if (memory == 1) {
            a.row_ptr = there[0];
            a.col = there[1];
            a.val = there[2];
        }
        spmv_preconditioner *none = make(ctx, "none", &a, NULL), *jacobi = make(ctx, "jacobi", &a, NULL);
        apply(ctx, none, r, z);
        assert_true(z[0] == 3 && z[1] == -8 && z[2] == 5);
        apply(ctx, jacobi, r, z);
        assert_true(z[0] == 1.5 && z[1] == -2 && z[2] == 40);
        assert_null(precond_inverse_diagonal(none));
        double inverse[3];
        assert_ok(ctx, spmv_download(ctx, precond_inverse_diagonal(jacobi), inverse, sizeof inverse));
        assert_true(inverse[0] == 0.5 && inverse[1] == 0.25 && inverse[2] == 8);
        assert_true(precond_context(jacobi) == ctx && precond_type(jacobi) == SPMV_F64 && precond_rows(jacobi) == 3);
        assert_string_equal(precond_name(jacobi), "jacobi");
        spmv_preconditioner_destroy(none);
        spmv_preconditioner_destroy(jacobi);
    }
    for (int i = 0; i < 3; i++)
        spmv_free(ctx, there[i]);
    spmv_context_destroy(ctx);
}

static void refusals(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    const int32_t row_ptr[] = {0, 2, 4}, col[] = {0, 1, 0, 1};
    const double val[] = {2, -1, -1, 2}, zero[] = {2, -1, -1, 0}, negative[] = {2, -1, -1, -3};
    const double nan[] = {NAN, -1, -1, 2}, tiny[] = {1, 0, 0, 1e-320}, complex_val[8] = {1};
    spmv_preconditioner *m = (void *)ctx;
    const spmv_csr a = support_csr(2, 2, row_ptr, col, val);
    spmv_csr b = a;
    assert_fails(ctx, spmv_preconditioner_create(ctx, "jacobl", &a, NULL, &m), SPMV_ERROR_METHOD, "jacobi");
    assert_null(m);
    assert_fails(ctx, spmv_preconditioner_create(ctx, "jacobi", NULL, NULL, &m), SPMV_ERROR_ARGUMENT, "NULL");
    b.cols = 3;
    assert_fails(ctx, spmv_preconditioner_create(ctx, "jacobi", &b, NULL, &m), SPMV_ERROR_NOT_SQUARE, "3 columns");
    b = support_csr(2, 2, row_ptr, col, complex_val);
    b.type = SPMV_C128;
    assert_fails(ctx, spmv_preconditioner_create(ctx, "jacobi", &b, NULL, &m), SPMV_ERROR_TYPE, "c128");
    b = support_csr(2, 2, row_ptr, (const int32_t[]){0, 2, 0, 1}, val);
    assert_fails(ctx, spmv_preconditioner_create(ctx, "jacobi", &b, NULL, &m), SPMV_ERROR_SIZE, "column 2");
    spmv_preconditioner_options options;
    spmv_preconditioner_options_init(&options, sizeof options);
    options.type = SPMV_F32;
    assert_fails(ctx, spmv_preconditioner_create(ctx, "jacobi", &a, &options, &m), SPMV_ERROR_TYPE, "f32");
    const char *name = NULL;
    for (int k = 1; (name = spmv_preconditioner_name(k)) != NULL; k++) {
        b = support_csr(2, 2, row_ptr, col, zero);
        assert_fails(ctx, spmv_preconditioner_create(ctx, name, &b, NULL, &m), SPMV_ERROR_NOT_POSITIVE, "row 1 is 0");
        b = support_csr(2, 2, row_ptr, col, negative);
        assert_fails(ctx, spmv_preconditioner_create(ctx, name, &b, NULL, &m), SPMV_ERROR_NOT_POSITIVE, "row 1 is -3");
        b = support_csr(2, 2, row_ptr, col, nan);
        assert_fails(ctx, spmv_preconditioner_create(ctx, name, &b, NULL, &m), SPMV_ERROR_NOT_FINITE, "row 0 is nan");
        assert_null(m);
    }
    b = support_csr(2, 2, row_ptr, col, tiny);
    assert_fails(ctx, spmv_preconditioner_create(ctx, "jacobi", &b, NULL, &m), SPMV_ERROR_NOT_FINITE, "overflows");
    static const struct {
        int block, degree, steps;
        double lowest, highest, shift, strength;
    } wrong[] = {{.block = -1},
                 {.block = 65},
                 {.degree = 101},
                 {.steps = -1},
                 {.lowest = 1},
                 {.shift = -1},
                 {.lowest = 2, .highest = 1},
                 {.strength = 2}};
    for (size_t w = 0; w < sizeof wrong / sizeof wrong[0]; w++) {
        spmv_preconditioner_options_init(&options, sizeof options);
        options.block = wrong[w].block;
        options.degree = wrong[w].degree;
        options.steps = wrong[w].steps;
        options.lowest = wrong[w].lowest;
        options.highest = wrong[w].highest;
        options.shift = wrong[w].shift;
        options.strength = wrong[w].strength;
        assert_fails(ctx, spmv_preconditioner_create(ctx, "none", &a, &options, &m), SPMV_ERROR_ARGUMENT, "create");
        assert_null(m);
    }
    options.size = 3;
    assert_fails(ctx, spmv_preconditioner_create(ctx, "none", &a, &options, &m), SPMV_ERROR_ARGUMENT, "_init");
    m = make(ctx, "jacobi", &a, NULL);
    void *r = support_upload(ctx, val, 16);
    assert_fails(ctx, spmv_preconditioner_apply(m, r, r), SPMV_ERROR_ARGUMENT, "same array");
    assert_fails(ctx, spmv_preconditioner_apply(m, NULL, r), SPMV_ERROR_ARGUMENT, "r is NULL");
    assert_fails(ctx, spmv_preconditioner_apply(m, r, NULL), SPMV_ERROR_ARGUMENT, "z is NULL");
    spmv_free(ctx, r);
    spmv_preconditioner_destroy(m);
    spmv_preconditioner_destroy(NULL);
    /* no rows: nothing to do */
    b = support_csr(0, 0, (const int32_t[]){0}, NULL, NULL);
    for (int k = 0; (name = spmv_preconditioner_name(k)) != NULL; k++) {
        const spmv_status st = spmv_preconditioner_create(ctx, name, &b, NULL, &m);
        if (st != SPMV_ERROR_UNSUPPORTED) {
            assert_ok(ctx, st);
            assert_ok(ctx, spmv_preconditioner_apply(m, NULL, NULL));
            spmv_preconditioner_destroy(m);
        }
    }
    spmv_context_destroy(ctx);
}

/* A class of a user's own: M = 2 I. */
struct half {
    spmv_context *ctx;
    int64_t n;
    int applied, destroyed;
};

static spmv_status half_apply(void *self, const void *r, void *z)
{
    struct half *h = self;
    const double half = 0.5;
    h->applied++;
    return spmv_map_scalar(h->ctx, SPMV_MUL, SPMV_F64, &half, r, z, h->n);
}

static void half_destroy(void *self)
{
    ((struct half *)self)->destroyed++;
}

static void own_class(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    struct half half = {.ctx = ctx, .n = 3};
    spmv_preconditioner_class own = {.size = sizeof own, .name = "half", .apply = half_apply, .destroy = half_destroy};
    spmv_preconditioner *m = NULL;
    assert_ok(ctx, spmv_preconditioner_wrap(ctx, SPMV_F64, 3, &own, &half, &m));
    const double r[] = {1, 2, -6};
    double z[3];
    apply(ctx, m, r, z);
    assert_true(z[0] == 0.5 && z[1] == 1 && z[2] == -3 && half.applied == 1 && half.destroyed == 0);
    spmv_preconditioner_info info;
    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
    assert_string_equal(info.name, "half");
    assert_string_equal(info.why, "the caller's own");
    assert_true(info.rows == 3 && info.type == SPMV_F64);
    spmv_preconditioner_destroy(m);
    assert_true(half.destroyed == 1);
    assert_fails(ctx, spmv_preconditioner_wrap(ctx, SPMV_I32, 3, &own, &half, &m), SPMV_ERROR_TYPE, "i32");
    assert_null(m);
    assert_fails(ctx, spmv_preconditioner_wrap(ctx, SPMV_F64, -1, &own, &half, &m), SPMV_ERROR_ARGUMENT, "-1");
    own.apply = NULL;
    assert_fails(ctx, spmv_preconditioner_wrap(ctx, SPMV_F64, 3, &own, &half, &m), SPMV_ERROR_ARGUMENT, "apply");
    assert_fails(ctx, spmv_preconditioner_wrap(ctx, SPMV_F64, 3, NULL, &half, &m), SPMV_ERROR_ARGUMENT, "class");
    assert_true(half.destroyed == 1);
    spmv_context_destroy(ctx);
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind), cmocka_unit_test(none_and_jacobi),
                                       cmocka_unit_test(refusals), cmocka_unit_test(own_class)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
