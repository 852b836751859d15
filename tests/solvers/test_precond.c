/* Preconditioners: the operator that each applies, column by column, is symmetric and positive and
 * equals a dense form computed here from its definition. Wrong arguments are refused. Results have
 * the same bits in every run.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <unistd.h>

#include "formats/matrix_internal.h"
#include "solvers/precond/precond_loops.h"
#include "tests/support/support_precond.h"
#include "tests/support/support_slow.h"

/* ----------------------------------------------------------------- matrices */

static double *dense_of(const spmv_csr *a)
{
    double *dense = calloc((size_t)(a->rows * a->rows) + 1, sizeof *dense);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = offset_at(a->row_ptr, a->row_ptr_bits, i); k < offset_at(a->row_ptr, a->row_ptr_bits, i + 1);
             k++)
            dense[i * a->rows + a->col[k]] += precond_value(a, k);
    return dense;
}

/* Symmetric, with a positive dominant diagonal of widely varying scale; `share` of the cells are
 * nonzero. */
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
    support_free(scale, dense);
    return s;
}

/* ---------------------------------------------------------------- application */

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

/* Checks z against the expected values, element by element, relative to the largest of the row. */
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

/* Every kind, in both types, on small matrices: symmetric, positive, and the information that
 * describe returns. */
static void every_kind(void **state)
{
    spmv_context *ctx = *state;
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
                if (st == SPMV_ERROR_UNSUPPORTED) { /* the message says why; m is NULL */
                    assert_true((is_on_cpu_only(name) && support_backend == SPMV_BACKEND_CUDA) ||
                                strcmp(name, "schur") == 0);
                    assert_null(m);
                    assert_true(strlen(spmv_last_error(ctx)) > 20);
                } else {
                    assert_ok(ctx, st);
                    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
                    assert_string_equal(info.name, name);
                    assert_true(info.rows == n && info.type == a.type && info.seconds >= 0 && info.bytes >= 0);
                    assert_true(strlen(info.why) > 0);
                    double *z = inverse_of(ctx, m, n);
                    if (strcmp(name, "ilut") != 0) /* its dropping rules are not symmetric */
                        check_symmetric_positive(name, z, n, real_limits_of(a.type).roundoff);
                    double *expected = inverse_diagonal_of(&a);
                    if (strcmp(name, "jacobi") == 0)
                        check_equal(name, z, expected, n, 4 * real_limits_of(a.type).roundoff);
                    support_free(expected, z);
                }
                spmv_preconditioner_destroy(m);
                free(values);
            }
    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++)
        release(&matrices[i]);
}

/* none and jacobi against values by hand; repeated diagonal entries are added; arrays in the
 * context's memory; 64-bit offsets. */
static void none_and_jacobi(void **state)
{
    spmv_context *ctx = *state;
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
}

/* ------------------------------------------------------- dense definitions */

/* The inverse of a symmetric positive definite matrix, by Gauss-Jordan elimination in long
 * double. */
static double *dense_inverse(const double *a, int64_t n)
{
    long double *w = calloc((size_t)(2 * n * n) + 1, sizeof *w);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++)
            w[i * 2 * n + j] = a[i * n + j];
        w[i * 2 * n + n + i] = 1;
    }
    for (int64_t k = 0; k < n; k++) {
        const long double pivot = w[k * 2 * n + k];
        assert_true(pivot > 0);
        for (int64_t j = 0; j < 2 * n; j++)
            w[k * 2 * n + j] /= pivot;
        for (int64_t i = 0; i < n; i++) {
            const long double factor = w[i * 2 * n + k];
            for (int64_t j = 0; j < 2 * n && i != k; j++)
                w[i * 2 * n + j] -= factor * w[k * 2 * n + j];
        }
    }
    double *inverse = malloc((size_t)(n * n) * sizeof *inverse + 1);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            inverse[i * n + j] = (double)w[i * 2 * n + n + j];
    free(w);
    return inverse;
}

/* L L' of IC(0) of A + shift D: column by column elimination of the dense matrix that drops all
 * fill-in. Returns false if a pivot is not positive. */
static bool incomplete_product(const double *a, int64_t n, double shift, double *product)
{
    long double *l = calloc((size_t)(n * n) + 1, sizeof *l);
    bool positive = true;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            l[i * n + j] = a[i * n + j] * (i == j ? 1 + (long double)shift : 1);
    for (int64_t k = 0; k < n && positive; k++) {
        positive = l[k * n + k] > 1e-9L * a[k * n + k];
        l[k * n + k] = sqrtl(l[k * n + k]);
        for (int64_t i = k + 1; i < n; i++)
            l[i * n + k] /= l[k * n + k];
        for (int64_t j = k + 1; j < n; j++)
            for (int64_t i = j; i < n; i++)
                if (a[i * n + j] != 0 || i == j)
                    l[i * n + j] -= l[i * n + k] * l[j * n + k];
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            long double sum = 0;
            for (int64_t k = 0; k <= (i < j ? i : j); k++)
                sum += l[i * n + k] * l[j * n + k];
            product[i * n + j] = (double)sum;
        }
    free(l);
    return positive;
}

static void check_ic0(spmv_context *ctx, const char *what, const struct sparse *s, const double *dense, double asked)
{
    const int64_t n = s->n;
    spmv_preconditioner_options options = support_preconditioner_options();
    options.shift = asked;
    spmv_preconditioner *m = make(ctx, "ic0", &s->view, &options);
    spmv_preconditioner_info info;
    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
    double *product = malloc((size_t)(n * n) * sizeof *product + 1);
    assert_true(incomplete_product(dense, n, info.shift, product));
    double *expected = dense_inverse(product, n), *z = inverse_of(ctx, m, n);
    check_equal(what, z, expected, n, 1e-10);
    check_symmetric_positive(what, z, n, 0x1p-53);
    /* The shift is the smallest tried one that works: the smaller ones fail. */
    if (info.fallen == 0) {
        assert_true(info.shift == asked && strstr(info.layout, "fail") == NULL);
    } else {
        assert_false(incomplete_product(dense, n, asked, product));
        assert_true(info.shift > asked && strstr(info.layout, "failed") != NULL && strstr(info.layout, "row") != NULL);
        if (info.fallen > 1)
            assert_false(incomplete_product(dense, n, info.shift / 2, product));
    }
    assert_true(info.levels > 0 && info.levels <= n);
    support_free(product, expected, z);
    spmv_preconditioner_destroy(m);
}

/* On a GPU there is no ic0 and no cholesky, and the message says what to take. */
static bool has(spmv_context *ctx, const char *name, const spmv_csr *a)
{
    spmv_preconditioner *m = NULL;
    if (support_backend != SPMV_BACKEND_CUDA)
        return true;
    assert_fails(ctx, spmv_preconditioner_create(ctx, name, a, NULL, &m), SPMV_ERROR_UNSUPPORTED, "jacobi or amg");
    assert_null(m);
    return false;
}

/* IC(0) equals its definition; a dense pattern gives A^-1 itself; a given shift is used. */
static void ic0_as_defined(void **state)
{
    spmv_context *ctx = *state;
    for (int i = 0; i < 6; i++) {
        struct sparse s = random_spd(i < 5 ? 20 + 3 * i : (SLOW ? 45 : 120), i == 0 ? 2 : i == 5 ? 0.05 : 0.25, 30 + i);
        double *dense = dense_of(&s.view);
        const bool exists = has(ctx, "ic0", &s.view);
        if (exists)
            check_ic0(ctx, "ic0", &s, dense, i == 2 ? 0.5 : 0);
        if (exists && i == 0) { /* no fill-in is dropped */
            spmv_preconditioner *m = make(ctx, "ic0", &s.view, NULL);
            double *exact = dense_inverse(dense, s.n), *z = inverse_of(ctx, m, s.n);
            check_equal("ic0, dense", z, exact, s.n, 1e-11);
            support_free(exact, z);
            spmv_preconditioner_destroy(m);
        }
        free(dense);
        release(&s);
    }
}

/* D. S. Kershaw's matrix (J. Comp. Phys. 26, 1978): positive definite, but its IC(0) has a negative
 * pivot. */
static void ic0_failing_pivot(void **state)
{
    spmv_context *ctx = *state;
    const double kershaw[] = {3, -2, 0, 2, -2, 3, -2, 0, 0, -2, 3, -2, 2, 0, -2, 3};
    struct sparse s = from_dense(4, kershaw);
    assert_true(is_positive(kershaw, 4));
    if (has(ctx, "ic0", &s.view)) {
        check_ic0(ctx, "Kershaw", &s, kershaw, 0);
        spmv_preconditioner *m = make(ctx, "ic0", &s.view, NULL);
        spmv_preconditioner_info info;
        assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
        assert_true(info.fallen > 0 && info.shift > 0);
        assert_non_null(strstr(info.layout, "pivot of row 3"));
        spmv_preconditioner_destroy(m);
    }
    release(&s);
}

/* The inverses of the diagonal blocks, by definition; a block that is not positive definite becomes
 * its diagonal. */
static void block_jacobi_as_defined(void **state)
{
    spmv_context *ctx = *state;
    enum { N = 53 };
    const int sizes[] = {1, 2, 5, 16, 53, 64};
    struct sparse s = random_spd(N, 0.4, 77);
    double *dense = dense_of(&s.view);
    spmv_preconditioner_options options = support_preconditioner_options();
    for (size_t b = 0; b < sizeof sizes / sizeof sizes[0]; b++) {
        double *blocks = calloc(N * N, sizeof *blocks);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                blocks[i * N + j] = i / sizes[b] == j / sizes[b] ? dense[i * N + j] : 0;
        options.block = sizes[b];
        spmv_preconditioner *m = make(ctx, "block-jacobi", &s.view, &options);
        double *expected = dense_inverse(blocks, N), *z = inverse_of(ctx, m, N);
        check_equal("block-jacobi", z, expected, N, 1e-11);
        check_symmetric_positive("block-jacobi", z, N, 0x1p-53);
        support_free(blocks, expected, z);
        spmv_preconditioner_destroy(m);
    }
    free(dense);
    release(&s);
    const double odd[] = {2, 1, 0, 0, 1, 2, 0, 0, 0, 0, 4, 9, 0, 0, 9, 5};
    s = from_dense(4, odd);
    options.block = 2;
    spmv_preconditioner *m = make(ctx, "block-jacobi", &s.view, &options);
    spmv_preconditioner_info info;
    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
    assert_true(info.fallen == 1);
    assert_non_null(strstr(
        info.layout, "not positive definite, replaced by their diagonal: 1 (the first at row 2 (counted from 0))"));
    double *z = inverse_of(ctx, m, 4);
    const double expected[] = {2 / 3.0, -1 / 3.0, 0, 0, -1 / 3.0, 2 / 3.0, 0, 0, 0, 0, 0.25, 0, 0, 0, 0, 0.2};
    check_equal("block-jacobi, fallen", z, expected, 4, 1e-15);
    free(z);
    spmv_preconditioner_destroy(m);
    release(&s);
}

/* The residual polynomial I - M^-1 A is T_k((b + a - 2 X) / (b - a)) / T_k((b + a) / (b - a)) at X
 * = D^-1 A, k = degree + 1, by the three-term recurrence of the Chebyshev polynomials on dense
 * matrices. */
static void chebyshev_as_defined(void **state)
{
    spmv_context *ctx = *state;
    enum { N = 24 };
    struct sparse s = random_spd(N, 0.3, 5);
    double *dense = dense_of(&s.view);
    const double low = 0.3, high = 1.9, middle = (high + low) / (high - low);
    spmv_plan *plan = NULL;
    assert_ok(ctx, spmv_plan_create(ctx, &s.view, NULL, &plan));
    for (int degree = 0; degree <= 7; degree++) {
        spmv_preconditioner_options options = support_preconditioner_options();
        options.degree = degree;
        options.lowest = low;
        options.highest = high;
        options.plan = degree % 2 == 1 ? plan : NULL;
        spmv_preconditioner *m = make(ctx, "chebyshev", &s.view, &options);
        spmv_preconditioner_info info;
        assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
        assert_true(info.lowest == low && info.highest == high);
        double *z = inverse_of(ctx, m, N);
        static long double x[N * N], t[3][N * N];
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                const long double entry = (long double)dense[i * N + j] / dense[i * N + i];
                x[i * N + j] = ((i == j ? high + low : 0) - 2 * entry) / (high - low);
                t[0][i * N + j] = i == j;
                t[1][i * N + j] = x[i * N + j];
            }
        long double scale[3] = {1, middle, 0};
        for (int k = 2; k <= degree + 1; k++) {
            for (int i = 0; i < N; i++)
                for (int j = 0; j < N; j++) {
                    long double sum = -t[k % 3 == 0 ? 1 : k % 3 == 1 ? 2 : 0][i * N + j];
                    for (int e = 0; e < N; e++)
                        sum += 2 * x[i * N + e] * t[(k - 1) % 3][e * N + j];
                    t[k % 3][i * N + j] = sum;
                }
            scale[k % 3] = 2 * middle * scale[(k - 1) % 3] - scale[(k - 2) % 3];
        }
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) { /* z is M^-1, and symmetric */
                long double residual = i == j, size = 1;
                for (int e = 0; e < N; e++) {
                    residual -= (long double)z[e * N + i] * dense[e * N + j];
                    size += fabsl((long double)z[e * N + i] * dense[e * N + j]);
                }
                const long double expected = t[(degree + 1) % 3][i * N + j] / scale[(degree + 1) % 3];
                if (!(fabsl(residual - expected) <= 1e-12L * size * 32))
                    fail_msg("degree %d: I - M^-1 A has %Lg at (%d, %d), %Lg expected", degree, residual, i, j,
                             expected);
            }
        free(z);
        spmv_preconditioner_destroy(m);
    }
    spmv_plan_destroy(plan);
    free(dense);
    release(&s);
}

/* The interval estimated for poisson2d:N, where D^-1 A has the eigenvalues 1 - (cos + cos) / 2. The
 * upper end is at least the largest eigenvalue and at most 1.1 times it or Gershgorin's 2. The
 * lower end is at least the smallest eigenvalue. */
static void chebyshev_interval(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    enum { N = SLOW ? 12 : 60 };
    char spec[32];
    snprintf(spec, sizeof spec, "poisson2d:%d", N);
    for (int narrow = 0; narrow < 2; narrow++) {
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        assert_ok(ctx, spmv_matrix_generate(ctx, spec, narrow ? SPMV_F32 : SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        spmv_preconditioner *m = make(ctx, "chebyshev", &a, NULL);
        spmv_preconditioner_info info;
        assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
        const double most = 1 + cos(3.14159265358979323846 / (N + 1)), least = 2 - most;
        assert_true(info.highest >= most && info.highest <= fmin(2, 1.1 * most) * (1 + 1e-6));
        assert_true(info.lowest >= least * 0.999 && info.lowest < 0.2);
        spmv_preconditioner_destroy(m);
        spmv_matrix_destroy(matrix);
    }
    /* Not positive definite (eigenvalues -1 and 3), which the estimate detects. */
    const double indefinite[] = {1, 2, 2, 1};
    struct sparse s = from_dense(2, indefinite);
    spmv_preconditioner *m = NULL;
    assert_fails(ctx, spmv_preconditioner_create(ctx, "chebyshev", &s.view, NULL, &m), SPMV_ERROR_NOT_POSITIVE,
                 "p'Ap = -");
    assert_null(m);
    release(&s);
    /* A plan of another size. */
    spmv_plan *plan = NULL;
    s = random_spd(5, 1, 1);
    assert_ok(ctx, spmv_plan_create(ctx, &s.view, NULL, &plan));
    release(&s);
    s = random_spd(6, 1, 1);
    spmv_preconditioner_options options = support_preconditioner_options();
    options.plan = plan;
    assert_fails(ctx, spmv_preconditioner_create(ctx, "chebyshev", &s.view, &options, &m), SPMV_ERROR_SIZE, "5 x 5");
    spmv_context *other = support_context();
    assert_fails(other, spmv_preconditioner_create(other, "chebyshev", &s.view, &options, &m), SPMV_ERROR_ARGUMENT,
                 "another context");
    spmv_context_destroy(other);
    release(&s);
    spmv_plan_destroy(plan);
    spmv_context_destroy(ctx);
}

/* ---------------------------------------------------------------- types and repetition */

/* An f32 matrix with f64 vectors gives the bits of the same numbers in f64. */
static void mixed_types(void **state)
{
    spmv_context *ctx = *state;
    struct sparse s = random_spd(30, 0.3, 8);
    float *values = malloc((size_t)s.view.nnz * sizeof *values);
    for (int64_t k = 0; k < s.view.nnz; k++)
        s.val[k] = values[k] = (float)s.val[k];
    spmv_csr narrow = s.view;
    narrow.val = values;
    narrow.type = SPMV_F32;
    spmv_preconditioner_options options = support_preconditioner_options();
    options.type = SPMV_F64;
    const char *name = NULL;
    for (int k = 0; (name = spmv_preconditioner_name(k)) != NULL; k++) {
        spmv_preconditioner *m = NULL;
        const spmv_status st = spmv_preconditioner_create(ctx, name, &narrow, &options, &m);
        if (st == SPMV_ERROR_UNSUPPORTED)
            continue;
        assert_ok(ctx, st);
        spmv_preconditioner *wide = make(ctx, name, &s.view, NULL);
        assert_true(precond_type(m) == SPMV_F64);
        double *z = inverse_of(ctx, m, s.n), *expected = inverse_of(ctx, wide, s.n);
        if (memcmp(z, expected, (size_t)(s.n * s.n) * sizeof *z) != 0)
            fail_msg("%s: an f32 matrix gives other bits than its numbers in f64", name);
        support_free(z, expected);
        spmv_preconditioner_destroy(m);
        spmv_preconditioner_destroy(wide);
    }
    free(values);
    release(&s);
}

/* The bits of `repeats` results M^-1 r for a pseudo-random r, as a checksum (FNV-1a). */
static uint64_t bits_of(spmv_context *ctx, const spmv_preconditioner *m, int64_t n, int repeats)
{
    double *r = malloc((size_t)n * sizeof *r), *z = malloc((size_t)n * sizeof *z);
    uint64_t seed = 11, first = 0;
    for (int64_t i = 0; i < n; i++)
        r[i] = support_uniform(&seed);
    for (int repeat = 0; repeat < repeats; repeat++) {
        uint64_t sum = 0xcbf29ce484222325u;
        apply(ctx, m, r, z);
        for (int64_t i = 0; i < n; i++) {
            uint64_t bits = 0;
            memcpy(&bits, &z[i], sizeof bits);
            sum = (sum ^ bits) * 0x100000001b3u;
        }
        if (repeat == 0)
            first = sum;
        if (sum != first)
            fail_msg("other bits in application %d", repeat);
    }
    support_free(r, z);
    return first;
}

/* Each kind is created again and applied 50 times to vectors of several tiles; on omp with teams of 1
 * to 5. The levels of poisson3d:60 are large enough that threads share ic0's solves; those of ilu0 and
 * ilut are in test_ilu. */
static void same_bits(void **state)
{
    (void)state;
    static const char *const specs[] = {SLOW ? "poisson2d:9" : "poisson2d:140", "poisson3d:60"};
    for (int s = 0; s < (SLOW ? 1 : 2); s++) {
        const char *name = NULL;
        for (int k = 0; (name = spmv_preconditioner_name(k)) != NULL; k++) {
            if (s == 1 && (strcmp(name, "ic0") != 0 || support_backend != SPMV_BACKEND_OMP))
                continue;
            uint64_t first = 0;
            const int most = support_backend == SPMV_BACKEND_OMP ? 5 : 2;
            for (int threads = 1; threads <= most; threads += threads < 3 ? 1 : 2) { /* 1, 2, 3, 5 */
                spmv_context *ctx = support_context_on(support_backend, threads);
                spmv_matrix *matrix = NULL;
                spmv_csr a;
                assert_ok(ctx, spmv_matrix_generate(ctx, specs[s], SPMV_F64, &matrix));
                spmv_matrix_view(matrix, &a);
                spmv_preconditioner *m = NULL;
                const spmv_status st = spmv_preconditioner_create(ctx, name, &a, NULL, &m);
                if (st != SPMV_ERROR_UNSUPPORTED) {
                    assert_ok(ctx, st);
                    spmv_preconditioner_info info;
                    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
                    if (strcmp(name, "ic0") == 0)
                        assert_true((strstr(info.layout, "shared by threads") != NULL) ==
                                    (s == 1 && threads >= 4 && support_backend == SPMV_BACKEND_OMP));
                    const uint64_t bits = bits_of(ctx, m, a.rows, s == 1 ? 5 : 50);
                    if (threads > 1 && bits != first)
                        fail_msg("%s on %s: other bits with %d threads", name, specs[s], threads);
                    first = bits;
                }
                spmv_preconditioner_destroy(m);
                spmv_matrix_destroy(matrix);
                spmv_context_destroy(ctx);
            }
        }
    }
}

/* ------------------------------------------------------------------ cholesky */

/* The tridiagonal Laplacian of n rows with this diagonal. */
static spmv_matrix *line(spmv_context *ctx, int64_t n, double diagonal)
{
    int64_t *row = malloc((size_t)(3 * n) * sizeof *row), nnz = 0;
    int32_t *col = malloc((size_t)(3 * n) * sizeof *col);
    double *val = malloc((size_t)(3 * n) * sizeof *val);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i > 0 ? i - 1 : 0; j <= i + 1 && j < n; j++) {
            row[nnz] = i;
            col[nnz] = (int32_t)j;
            val[nnz++] = i == j ? diagonal : -1;
        }
    spmv_matrix *matrix = NULL;
    assert_ok(ctx, spmv_matrix_from_coo(ctx, n, n, nnz, row, col, val, SPMV_F64, &matrix, NULL));
    support_free(row, col, val);
    return matrix;
}

/* M of cholesky equals A. layout: what describe must say. */
static void check_cholesky(spmv_context *ctx, const spmv_csr *a, const double *expected, int64_t fallen,
                           const char *layout)
{
    spmv_preconditioner *m = make(ctx, "cholesky", a, NULL);
    spmv_preconditioner_info info;
    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
    if (strstr(info.layout, layout) == NULL || info.fallen != fallen)
        fail_msg("cholesky: %s, %lld pivots replaced; \"%s\" expected", info.layout, (long long)info.fallen, layout);
    double *inverse = dense_inverse(expected, a->rows), *z = inverse_of(ctx, m, a->rows);
    check_equal("cholesky", z, inverse, a->rows, 1e-9);
    check_symmetric_positive("cholesky", z, a->rows, 0x1p-53);
    support_free(inverse, z);
    spmv_preconditioner_destroy(m);
}

/* Row r of a matrix in COO form becomes row (r factor) mod n. */
static spmv_matrix *renumbered(spmv_context *ctx, const spmv_csr *a, int64_t factor)
{
    const int64_t n = a->rows;
    int64_t *row = malloc((size_t)a->nnz * sizeof *row);
    int32_t *col = malloc((size_t)a->nnz * sizeof *col);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            row[k] = i * factor % n;
            col[k] = (int32_t)(a->col[k] * factor % n);
        }
    spmv_matrix *matrix = NULL;
    assert_ok(ctx, spmv_matrix_from_coo(ctx, n, n, a->nnz, row, col, a->val, SPMV_F64, &matrix, NULL));
    support_free(row, col);
    return matrix;
}

/* A band in its own order and in another one, of which the envelope is found again; sparse and dense
 * matrices; rows without neighbours; repeated entries. */
static void cholesky_as_defined(void **state)
{
    spmv_context *ctx = *state;
    enum { N = SLOW ? 20 : 61 };
    char layout[100];
    spmv_matrix *own = line(ctx, N, 2.5);
    spmv_csr a;
    spmv_matrix_view(own, &a);
    if (has(ctx, "cholesky", &a)) {
        snprintf(layout, sizeof layout, "an envelope of %d entries, in the order of the matrix", 2 * N - 1);
        double *dense = dense_of(&a);
        check_cholesky(ctx, &a, dense, 0, layout);
        free(dense);
        spmv_matrix *other = renumbered(ctx, &a, 7);
        spmv_matrix_view(other, &a);
        snprintf(layout, sizeof layout, "an envelope of %d entries, in reverse Cuthill-McKee order", 2 * N - 1);
        dense = dense_of(&a);
        check_cholesky(ctx, &a, dense, 0, layout);
        free(dense);
        spmv_matrix_destroy(other);
        static const double share[] = {0, 0.05, 0.3, 1};
        for (size_t i = 0; i < sizeof share / sizeof share[0]; i++) {
            struct sparse s = random_spd(N, share[i], 20 + i);
            dense = dense_of(&s.view);
            check_cholesky(ctx, &s.view, dense, 0, share[i] == 1 ? "in the order of the matrix" : "a complete factor");
            release(&s);
            free(dense);
        }
        const spmv_csr twice = support_csr(2, 2, (const int32_t[]){0, 4, 6}, (const int32_t[]){1, 0, 1, 0, 0, 1},
                                           (const double[]){-1, 3, 0.5, 1, -0.5, 2});
        check_cholesky(ctx, &twice, (const double[]){4, -0.5, -0.5, 2}, 0, "an envelope of 3 entries");
    }
    spmv_matrix_destroy(own);
}

/* Vanishing and negative pivots become the diagonal entry of A. An envelope that is too large, and
 * numbers that overflow, are refused. */
static void cholesky_at_its_limits(void **state)
{
    spmv_context *ctx = *state;
    spmv_preconditioner *m = NULL;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    double singular[] = {1, -1, 0, 0, -1, 2, -1, 0, 0, -1, 2, -1, 0, 0, -1, 1};
    const double indefinite[] = {1, 2, 2, 1}, wild[] = {1e-200, 1e200, 1e200, 1e-200};
    struct sparse s = from_dense(4, singular);
    if (!has(ctx, "cholesky", &s.view)) {
        release(&s);
        return;
    }
    singular[15] = 2; /* 1 for the entry, 1 for the pivot */
    check_cholesky(ctx, &s.view, singular, 1, "1 pivot replaced");
    release(&s);
    s = from_dense(2, indefinite);
    check_cholesky(ctx, &s.view, (const double[]){1, 2, 2, 5}, 1, "1 pivot replaced");
    release(&s);
    s = from_dense(2, wild);
    assert_fails(ctx, spmv_preconditioner_create(ctx, "cholesky", &s.view, NULL, &m), SPMV_ERROR_NOT_FINITE,
                 "the pivot of row 1");
    release(&s);
    spmv_preconditioner_options options = support_preconditioner_options();
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:30", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    options.fill = 2;
    assert_fails(ctx, spmv_preconditioner_create(ctx, "cholesky", &a, &options, &m), SPMV_ERROR_UNSUPPORTED,
                 "more than 2 times those of the matrix");
    assert_null(m);
    options.fill = 4;
    assert_ok(ctx, spmv_preconditioner_create(ctx, "cholesky", &a, &options, &m));
    spmv_preconditioner_destroy(m);
    spmv_matrix_destroy(matrix);
}

/* ------------------------------------------------------------------- solving */

/* CG with M on poisson2d:N: reaches the solution within the expected number of iterations. */
static void fewer_iterations(void **state)
{
    spmv_context *ctx = *state;
    enum { N = SLOW ? 10 : 64 };
    char spec[32];
    snprintf(spec, sizeof spec, "poisson2d:%d", N);
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    spmv_plan *plan = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    assert_ok(ctx, spmv_plan_create(ctx, &a, NULL, &plan));
    double *ones = malloc((size_t)a.rows * sizeof *ones), *solution = malloc((size_t)a.rows * sizeof *solution);
    for (int64_t i = 0; i < a.rows; i++)
        ones[i] = 1 + (double)(i * 7919 % 1009) / 1009;
    void *x = support_upload(ctx, ones, a.rows * 8), *b = support_upload(ctx, ones, a.rows * 8);
    assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, b));
    int64_t plain = 0;
    const char *name = NULL;
    for (int k = 0; (name = spmv_preconditioner_name(k)) != NULL; k++) {
        spmv_preconditioner *m = NULL;
        const spmv_status st = spmv_preconditioner_create(ctx, name, &a, NULL, &m);
        if (st == SPMV_ERROR_UNSUPPORTED)
            continue;
        assert_ok(ctx, st);
        spmv_cg_options options;
        spmv_cg_result result;
        spmv_cg_options_init(&options, sizeof options);
        options.zero_start = 1;
        options.precond = m;
        assert_ok(ctx, spmv_cg(plan, b, x, &options, &result, sizeof result));
        assert_string_equal(result.precond, name);
        assert_ok(ctx, spmv_download(ctx, x, solution, a.rows * 8));
        for (int64_t i = 0; i < a.rows; i++)
            assert_true(fabs(solution[i] - ones[i]) < 1e-4);
        if (k == 0)
            plain = result.iterations;
        /* Allowed share of the iterations without a preconditioner: 1 where M has no effect
         * (constant diagonal), else some 25 % above the measured share. */
        const double share = strcmp(name, "none") == 0 || strcmp(name, "jacobi") == 0 ? 1
                             : strcmp(name, "block-jacobi") == 0                      ? 0.95
                             : strstr(name, "amg") != NULL                            ? (SLOW ? 0.5 : 0.12)
                                                                                      : 0.55;
        if ((double)result.iterations > share * (double)plain + 1)
            fail_msg("%s: %lld iterations, %lld without", name, (long long)result.iterations, (long long)plain);
        spmv_preconditioner_destroy(m);
    }
    support_free(ones, solution);
    support_free_in(ctx, x, b);
    spmv_plan_destroy(plan);
    spmv_matrix_destroy(matrix);
}

/* ---------------------------------------------------------------------- auto */

static void check_auto(spmv_context *ctx, const spmv_csr *a, const char *name, const char *because)
{
    spmv_preconditioner *m = make(ctx, NULL, a, NULL);
    spmv_preconditioner_info info;
    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
    if (strcmp(info.name, name) != 0 || strstr(info.why, because) == NULL)
        fail_msg("auto: %s (%s), %s (%s) expected", info.name, info.why, name, because);
    spmv_preconditioner_destroy(m);
    m = make(ctx, "auto", a, NULL);
    assert_string_equal(precond_name(m), name);
    spmv_preconditioner_destroy(m);
}

static void auto_decides(void **state)
{
    spmv_context *ctx = *state;
    const bool device = support_backend == SPMV_BACKEND_CUDA;
    const double negative[] = {1, 0, 0, -2}, diagonal[] = {3, 0, 0, 1e6}, strong[] = {10, 1, 1, 90};
    const double uneven[] = {2, -1.5, 0, -1.5, 9, 6, 0, 6, 20}, even[] = {2, 1.5, 1.5, 2};
    const double both[] = {10, 1, 1, 10}, rest[] = {2, -3, -3, 3};
    const double mass[] = {2, 1.5, 0, 1.5, 9, 6, 0, 6, 20};
    const struct {
        int64_t n;
        const double *dense;
        const char *name, *because;
    } small[] = {{2, negative, "none", "row 1 (counted from 0) is -2"},
                 {2, diagonal, "jacobi", "the matrix is diagonal"},
                 {2, strong, "jacobi", "at least 10"},
                 {3, uneven, device ? "jacobi" : "ic0", device ? "from 2 to 20, and jacobi" : "from 2 to 20"},
                 {3, mass, "jacobi", device ? "from 2 to 20, and jacobi" : "as those of mass matrices"},
                 {2, both, "none", "from 10 to 10, so scaling"},
                 {2, even, "none", "from 2 to 2, so scaling"},
                 /* an even diagonal that is less than the rest of its row */
                 {2, rest, device ? "none" : "ic0", device ? "scaling" : "up to 1.5 times"}};
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        struct sparse s = from_dense(small[i].n, small[i].dense);
        check_auto(ctx, &s.view, small[i].name, small[i].because);
        release(&s);
    }
    const spmv_csr empty = support_csr(0, 0, (const int32_t[]){0}, NULL, NULL);
    check_auto(ctx, &empty, "none", "no rows");
    /* A graph with large distances. */
    spmv_matrix *matrix = line(ctx, 1500, 2);
    spmv_csr a;
    spmv_matrix_view(matrix, &a);
    check_auto(ctx, &a, device ? "none" : "cholesky", device ? "scaling" : "an envelope of 3e+03 entries");
    spmv_matrix_destroy(matrix);
    /* With smaller distances; and the same for an uneven diagonal, which counts twice. */
    static const struct {
        const char *spec, *name, *gpu, *because;
    } grids[] = {{"poisson2d:60", "none", "none", "scaling"},
                 {"diffusion2d:60,1000", "cholesky", "jacobi", "an envelope of"},
                 {"diffusion2d:101,100", "jacobi", "jacobi", "a factor does not pay"},
                 {"diffusion3d:22,100000", "jacobi", "jacobi", "10648 rows"},
                 {"diffusion2d:125,100", "amg", "jacobi", "a Laplacian of 15625 rows"},
                 {"diffusion2d:3,100000,10000", "ic0", "jacobi", "account of both"},
                 /* short distances, but a diagonal that varies much */
                 {"diffusion3d:47,100000", "amg", "jacobi", "103823 rows"}};
    for (size_t i = 0; i < sizeof grids / sizeof grids[0] && !(device && i > 1); i++) {
        assert_ok(ctx, spmv_matrix_generate(ctx, grids[i].spec, SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        check_auto(ctx, &a, device ? grids[i].gpu : grids[i].name,
                   !device                             ? grids[i].because
                   : strcmp(grids[i].gpu, "none") == 0 ? "scaling"
                                                       : "microseconds");
        spmv_matrix_destroy(matrix);
    }
}

/* B B for a tridiagonal B: few entries, but far more iterations than the
 * distances suggest. The rows are renumbered, and row 0 has nothing beside the diagonal. */
static spmv_matrix *stiff(spmv_context *ctx, int64_t n)
{
    int64_t *row = malloc((size_t)(5 * n) * sizeof *row), nnz = 1;
    int32_t *col = malloc((size_t)(5 * n) * sizeof *col);
    double *val = malloc((size_t)(5 * n) * sizeof *val);
    row[0] = col[0] = 0;
    val[0] = 6;
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = i - 2; j <= i + 2; j++)
            if (j >= 1 && j < n) {
                row[nnz] = i * 7 % n;
                col[nnz] = (int32_t)(j * 7 % n);
                val[nnz++] = j == i ? 6 - (i == 1 || i == n - 1) : j == i - 1 || j == i + 1 ? -4 : 1;
            }
    spmv_matrix *matrix = NULL;
    assert_ok(ctx, spmv_matrix_from_coo(ctx, n, n, nnz, row, col, val, SPMV_F64, &matrix, NULL));
    support_free(row, col, val);
    return matrix;
}

/* On a CPU: a complete factor where it is small, which ends ill-conditioned systems in a step or two;
 * no hierarchy where the diagonal bounds the iterations. */
static void auto_on_cpu(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    spmv_plan *plan = NULL;
    if (support_backend == SPMV_BACKEND_CUDA)
        skip();
    matrix = stiff(ctx, 1000);
    spmv_matrix_view(matrix, &a);
    check_auto(ctx, &a, "cholesky", "0.6 times those of the matrix");
    assert_ok(ctx, spmv_plan_create(ctx, &a, NULL, &plan));
    double *const b = malloc((size_t)a.rows * sizeof *b);
    uint64_t seed = 5;
    for (int64_t i = 0; i < a.rows; i++)
        b[i] = support_uniform(&seed);
    void *const db = support_upload(ctx, b, a.rows * 8), *const x = support_upload(ctx, b, a.rows * 8);
    assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, db)); /* so the solution is x */
    spmv_cg_options options;
    spmv_cg_result result;
    spmv_cg_options_init(&options, sizeof options);
    options.zero_start = 1;
    options.max_iterations = 1000;
    options.precond = make(ctx, "jacobi", &a, NULL);
    assert_int_equal(spmv_cg(plan, db, x, &options, &result, sizeof result), SPMV_ERROR_ITERATIONS);
    spmv_preconditioner_destroy((spmv_preconditioner *)options.precond);
    options.precond = make(ctx, "auto", &a, NULL);
    assert_ok(ctx, spmv_cg(plan, db, x, &options, &result, sizeof result));
    assert_true(result.iterations <= 3 && result.true_residual <= 1.01e-8 * result.norm_b);
    spmv_preconditioner_destroy((spmv_preconditioner *)options.precond);
    spmv_plan_destroy(plan);
    spmv_matrix_destroy(matrix);
    support_free_in(ctx, db, x);
    free(b);
    /* 5 % more on the diagonal of a large grid: about a hundred iterations */
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:220", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    double *const val = malloc((size_t)a.nnz * sizeof *val);
    for (int64_t k = 0; k < a.nnz; k++)
        val[k] = ((const double *)a.val)[k] * (((const double *)a.val)[k] > 0 ? 1.05 : 1);
    a.val = val;
    check_auto(ctx, &a, "none", "scaling");
    free(val);
    spmv_matrix_destroy(matrix);
}

/* Small positive entries do not hide a Laplacian, and elasticity is smooth too, though a third of its entries
 * beside the diagonal are positive. */
static void auto_sees_smoothness(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    if (support_backend == SPMV_BACKEND_CUDA || SLOW)
        skip(); /* where other sizes are needed */
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:220", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    double *const val = malloc((size_t)a.nnz * sizeof *val);
    for (int64_t k = 0; k < a.nnz; k++)
        val[k] = real_at(a.type, a.val, k);
    for (int64_t row = 0; row < 2; row++) /* the pair of rows 0 and 1 */
        for (int64_t k = row_first(&a, row); k < row_first(&a, row + 1); k++)
            if (a.col[k] == 1 - row)
                val[k] = 1e-9;
    a.val = val;
    check_auto(ctx, &a, "amg", "a Laplacian of 48400 rows");
    free(val);
    spmv_matrix_destroy(matrix);
    assert_ok(ctx, spmv_matrix_generate(ctx, "elasticity2d:80", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    check_auto(ctx, &a, "amg", "rows that mostly have the sum 0");
    spmv_matrix_destroy(matrix);
}

/* "auto" reads a matrix on a GPU there, and finds the same as on the host. */
static void auto_looks(void **state)
{
    (void)state;
#ifdef SPMV_HAVE_CUDA
    spmv_context *ctx = *state;
    enum { GRID = 70 };
    const char *const specs[] = {"poisson2d:70", "diffusion2d:20,1000", "poisson2d:1", "elasticity2d:9"};
    if (support_backend != SPMV_BACKEND_CUDA)
        skip();
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        spmv_matrix *host = NULL, *there = NULL;
        spmv_csr a, device;
        struct precond_look look, expected = {.smallest = INFINITY};
        struct precond_ball ball;
        double *diagonal = NULL;
        assert_ok(ctx, spmv_matrix_generate(ctx, specs[i], SPMV_F64, &host));
        spmv_matrix_view(host, &a);
        assert_ok(ctx, spmv_matrix_copy(ctx, &a, SPMV_MEMORY_CONTEXT, &there));
        spmv_matrix_view(there, &device);
        assert_ok(ctx, spmv_alloc(ctx, a.rows * 8, (void **)&diagonal));
        assert_ok(ctx, precond_diagonal_cuda(ctx, &device, diagonal));
        assert_ok(ctx, precond_look_cuda(ctx, &device, 0, diagonal, &look));
        for (int64_t row = 0; row < a.rows; row++) {
            double sum = 0, own = 0, above = 0;
            for (int64_t k = row_first(&a, row); k < row_first(&a, row + 1); k++) {
                const double value = precond_value(&a, k);
                own = a.col[k] == row ? value : own;
                sum += a.col[k] == row ? 0 : fabs(value);
                expected.beside += a.col[k] != row && value != 0; /* elasticity stores zeros */
                expected.positive += a.col[k] != row && value > 0;
                above += a.col[k] != row && value > 0 ? value : 0;
            }
            expected.mixed += above > PRECOND_POSITIVE * own;
            expected.balanced += fabs(own - sum + 2 * above) <= PRECOND_BALANCE * own;
            expected.heaviest = fmax(expected.heaviest, sum / own);
            expected.weights += precond_weight(sum / own);
            expected.smallest = fmin(expected.smallest, own);
            expected.largest = fmax(expected.largest, own);
        }
        /* several lanes add a row */
        assert_true(fabs(look.heaviest - expected.heaviest) <= 1e-14 * expected.heaviest);
        assert_true(look.smallest == expected.smallest && look.largest == expected.largest);
        assert_int_equal(look.beside, expected.beside);
        assert_int_equal(look.positive, expected.positive);
        assert_int_equal(look.mixed, expected.mixed);
        assert_int_equal(look.balanced, expected.balanced);
        assert_true(llabs(look.weights - expected.weights) <= a.rows); /* a part may round differently */
        assert_ok(ctx, precond_ball_cuda(ctx, &device, &ball));
        if (i == 0) { /* step s from the corner of a grid reaches a diagonal */
            int32_t reached[2 * GRID] = {1};
            int steps = 0;
            for (int next = 3; next <= PRECOND_BALL; next += steps < GRID - 1 ? steps + 2 : 2 * GRID - 2 - steps)
                reached[++steps] = next;
            assert_true(ball.ended == 0 && ball.steps == steps && ball.rows == reached[steps] &&
                        ball.inside == reached[steps / 2]);
        } else if (i < 3) {
            const int side = i == 1 ? 20 : 1;
            assert_true(ball.ended == 1 && ball.steps == 2 * (side - 1) && ball.rows == side * side);
        }
        spmv_free(ctx, diagonal);
        spmv_matrix_destroy(there);
        spmv_matrix_destroy(host);
    }
#else
    skip();
#endif
}

static void refusals(void **state)
{
    spmv_context *ctx = *state;
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
    spmv_preconditioner_options options = support_preconditioner_options();
    options.type = SPMV_F32;
    assert_fails(ctx, spmv_preconditioner_create(ctx, "jacobi", &a, &options, &m), SPMV_ERROR_TYPE, "f32");
    const char *name = NULL;
    for (int k = 1; (name = spmv_preconditioner_name(k)) != NULL; k++) {
        if (strncmp(name, "ilu", 3) == 0 /* test_ilu */ || strcmp(name, "schur") == 0 /* test_schur */ ||
            (is_on_cpu_only(name) && support_backend == SPMV_BACKEND_CUDA))
            continue;
        b = support_csr(2, 2, row_ptr, col, zero);
        assert_fails(ctx, spmv_preconditioner_create(ctx, name, &b, NULL, &m), SPMV_ERROR_NOT_POSITIVE,
                     "row 1 (counted from 0) is 0");
        b = support_csr(2, 2, row_ptr, col, negative);
        assert_fails(ctx, spmv_preconditioner_create(ctx, name, &b, NULL, &m), SPMV_ERROR_NOT_POSITIVE,
                     "row 1 (counted from 0) is -3");
        b = support_csr(2, 2, row_ptr, col, nan);
        assert_fails(ctx, spmv_preconditioner_create(ctx, name, &b, NULL, &m), SPMV_ERROR_NOT_FINITE,
                     "row 0 (counted from 0) is nan");
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
    /* A matrix without rows. */
    b = support_csr(0, 0, (const int32_t[]){0}, NULL, NULL);
    for (int k = 0; (name = spmv_preconditioner_name(k)) != NULL; k++) {
        const spmv_status st = spmv_preconditioner_create(ctx, name, &b, NULL, &m);
        if (st != SPMV_ERROR_UNSUPPORTED) {
            assert_ok(ctx, st);
            assert_ok(ctx, spmv_preconditioner_apply(m, NULL, NULL));
            spmv_preconditioner_destroy(m);
        }
    }
}

/* "none" reads no array, so it takes no time: these pointers cannot be read. */
static void none_reads_nothing(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a = {.rows = 1000, .cols = 1000, .nnz = 5000, .row_ptr_bits = 64, .type = SPMV_F64};
    a.row_ptr = a.col = (const void *)(uintptr_t)64;
    a.val = a.col;
    for (int memory = 0; memory < 2; memory++) {
        a.memory = memory == 0 ? SPMV_MEMORY_HOST : SPMV_MEMORY_CONTEXT;
        spmv_preconditioner *const m = make(ctx, "none", &a, NULL);
        spmv_preconditioner_info info;
        assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
        assert_true(info.rows == 1000 && info.type == SPMV_F64 && precond_is_identity(m));
        spmv_preconditioner_destroy(m);
    }
}

/* A matrix in the context's memory, of which jacobi and auto read the diagonal there: the bits and
 * the messages of one in host memory. Rows have entries in any order and repeated ones. */
static void diagonal_in_place(void **state)
{
    enum { ROWS = 300 };
    spmv_context *ctx = *state;
    const spmv_type types[][2] = {{SPMV_F64, SPMV_F64}, {SPMV_F32, SPMV_F32}, {SPMV_F32, SPMV_F64}, {0, SPMV_F32}};
    const struct {
        double value;
        const char *name, *text;
        spmv_status status;
    } bad[] = {{1, "jacobi", "", SPMV_OK},
               {0, "jacobi", "row 256 (counted from 0) is 0", SPMV_ERROR_NOT_POSITIVE},
               {-2, "jacobi", "row 256 (counted from 0) is -2", SPMV_ERROR_NOT_POSITIVE},
               {-0.0, "jacobi", "row 256 (counted from 0) is 0", SPMV_ERROR_NOT_POSITIVE},
               {INFINITY, "jacobi", "row 256 (counted from 0) is inf", SPMV_ERROR_NOT_FINITE},
               {NAN, "jacobi", "row 256 (counted from 0) is", SPMV_ERROR_NOT_FINITE},
               {1e-40, "jacobi", "reciprocal overflows", SPMV_ERROR_NOT_FINITE},
               {-3, "auto", "row 256 (counted from 0) is -3", SPMV_OK}};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t w = 0; w < (t == 3 ? 1 : sizeof bad / sizeof bad[0]); w++)
            for (int bits = 32; bits <= 64; bits += 32) {
                int32_t narrow[ROWS + 1], col[3 * ROWS];
                int64_t wide[ROWS + 1];
                double values[3 * ROWS];
                uint64_t random = 5;
                for (int i = 0; i <= ROWS; i++)
                    wide[i] = narrow[i] = 3 * i;
                for (int i = 0; i < ROWS; i++) {
                    col[3 * i] = col[3 * i + 2] = i;
                    col[3 * i + 1] = (i + 7) % ROWS;
                    for (int e = 0; e < 3; e++)
                        values[3 * i + e] = e == 1 ? -1 : 2 + support_uniform(&random);
                }
                if (w > 0) {
                    values[3 * 256] = bad[w].value;
                    values[3 * 256 + 2] = bad[w].value == 0 ? bad[w].value : 0;
                }
                spmv_csr host = {.rows = ROWS, .cols = ROWS, .nnz = 3 * ROWS, .row_ptr_bits = bits, .col = col};
                host.memory = SPMV_MEMORY_HOST;
                host.row_ptr = bits == 32 ? (void *)narrow : (void *)wide;
                host.type = types[t][0];
                void *const val = t == 3 ? NULL : support_as(host.type, values, 3 * ROWS, 0);
                host.val = val;
                spmv_csr there = host;
                void *const arrays[] = {
                    support_upload(ctx, host.row_ptr, (ROWS + 1) * bits / 8), support_upload(ctx, col, sizeof col),
                    val == NULL ? NULL : support_upload(ctx, val, 3 * ROWS * (int64_t)spmv_type_size(host.type))};
                there.memory = SPMV_MEMORY_CONTEXT;
                there.row_ptr = arrays[0];
                there.col = arrays[1];
                there.val = arrays[2];
                spmv_preconditioner_options options = support_preconditioner_options();
                options.type = types[t][1];
                spmv_preconditioner *expected = NULL, *m = NULL;
                char message[512];
                const spmv_status st = spmv_preconditioner_create(ctx, bad[w].name, &host, &options, &expected);
                snprintf(message, sizeof message, "%s", st == SPMV_OK ? "" : spmv_last_error(ctx));
                /* 1e-40 has a reciprocal in f64 */
                const bool fits = bad[w].value == 1e-40 && types[t][1] == SPMV_F64;
                assert_int_equal(st, fits ? SPMV_OK : bad[w].status);
                assert_int_equal(spmv_preconditioner_create(ctx, bad[w].name, &there, &options, &m), st);
                if (st == SPMV_OK) {
                    double r[ROWS], z[ROWS], z_expected[ROWS];
                    for (int i = 0; i < ROWS; i++)
                        r[i] = 1;
                    apply(ctx, expected, r, z_expected);
                    apply(ctx, m, r, z);
                    assert_memory_equal(z, z_expected, sizeof z);
                    spmv_preconditioner_info info;
                    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
                    assert_string_equal(info.name, strcmp(bad[w].name, "auto") == 0 ? "none" : "jacobi");
                    assert_true(strcmp(bad[w].name, "auto") != 0 || strstr(info.why, bad[w].text) != NULL);
                } else {
                    assert_string_equal(spmv_last_error(ctx), message);
                    assert_true(strstr(message, bad[w].text) != NULL);
                }
                spmv_preconditioner_destroy(expected);
                spmv_preconditioner_destroy(m);
                for (int i = 0; i < 3; i++)
                    spmv_free(ctx, arrays[i]);
                free(val);
            }
}

/* A user-defined preconditioner: M = 2 I. */
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
    spmv_context *ctx = *state;
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
    assert_string_equal(info.why, "implemented by the caller");
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
}

/* "brief": small systems only; test_cg_rungs launches the kernels of every preconditioner. */
SUPPORT_MAIN_OR_BRIEF((with_context(ic0_failing_pivot), with_context(refusals), with_context(own_class)),
                      with_context(every_kind), with_context(none_and_jacobi), with_context(ic0_as_defined),
                      with_context(ic0_failing_pivot), with_context(block_jacobi_as_defined),
                      with_context(chebyshev_as_defined), cmocka_unit_test(chebyshev_interval),
                      with_context(mixed_types), cmocka_unit_test(same_bits), with_context(fewer_iterations),
                      with_context(cholesky_as_defined), with_context(cholesky_at_its_limits),
                      with_context(auto_decides), with_context(auto_on_cpu), with_context(auto_sees_smoothness),
                      with_context(auto_looks), with_context(refusals), with_context(none_reads_nothing),
                      with_context(diagonal_in_place), with_context(own_class))
