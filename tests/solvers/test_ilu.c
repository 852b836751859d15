/* Incomplete LU factorisations ilu0 and ilut of general matrices: exact where nothing is dropped,
 * equal to their definition otherwise, with replaced pivots, and the same bits for any number of
 * threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "tests/support/support_precond.h"
#include "tests/support/support_slow.h"

/* ----------------------------------------------------------------- helpers */

static spmv_preconditioner *make(spmv_context *ctx, const char *name, const spmv_csr *a, double drop, double fill)
{
    spmv_preconditioner_options options;
    spmv_preconditioner *m = NULL;
    spmv_preconditioner_options_init(&options, sizeof options);
    options.drop = drop;
    options.fill = fill;
    assert_ok(ctx, spmv_preconditioner_create(ctx, name, a, &options, &m));
    return m;
}

static spmv_preconditioner_info describe(spmv_context *ctx, const spmv_preconditioner *m)
{
    spmv_preconditioner_info info;
    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
    return info;
}

/* The largest |r - M z| for z = M^-1 r, relative to the largest term of |M| |z|, for a random r.
 * m_dense: M, row by row. */
static double backward_error(spmv_context *ctx, const spmv_preconditioner *m, const double *m_dense)
{
    const int64_t n = precond_rows(m);
    double *r = support_zeros(n, sizeof *r), *z = support_zeros(n, sizeof *z), worst = 0, size = 0;
    uint64_t seed = 3;
    for (int64_t i = 0; i < n; i++)
        r[i] = (float)support_uniform(&seed);
    apply(ctx, m, r, z);
    for (int64_t i = 0; i < n; i++) {
        long double sum = -r[i];
        for (int64_t j = 0; j < n; j++) {
            sum += (long double)m_dense[i * n + j] * z[j];
            size = fmax(size, fabs(m_dense[i * n + j] * z[j]));
        }
        worst = fmax(worst, fabs((double)sum));
    }
    assert_true(isfinite(worst));
    support_free(r, z);
    return worst / size;
}

/* Nonzeros in about `share` of the cells, none on the diagonal; a cyclic shift by one column keeps
 * the matrix regular. */
static double *random_hollow(int64_t n, double share, uint64_t seed)
{
    double *const dense = support_zeros(n * n, sizeof *dense);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            if (i != j && fabs(support_uniform(&seed)) < share)
                dense[i * n + j] = (float)support_uniform(&seed);
    for (int64_t i = 0; i < n; i++)
        dense[i * n + (i + 1) % n] += 3;
    return dense;
}

/* -------------------------------------------------------------------- exact */

/* ILU(0) of a tridiagonal matrix drops nothing. */
static void tridiagonal(void **state)
{
    spmv_context *ctx = *state;
    const int sizes[] = {1, 2, 3, 33, 100};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const int n = sizes[s];
        double *const dense = support_zeros(n * n, sizeof *dense);
        uint64_t seed = 7;
        for (int i = 0; i < n; i++) {
            dense[i * n + i] = i % 3 == 0 ? -3 : 4;
            if (i > 0)
                dense[i * n + i - 1] = support_uniform(&seed);
            if (i + 1 < n)
                dense[i * n + i + 1] = 2 * support_uniform(&seed);
        }
        struct sparse a = from_dense(n, dense);
        for (int kind = 0; kind < 2; kind++) {
            spmv_preconditioner *const m = make(ctx, kind == 0 ? "ilu0" : "ilut", &a.view, kind == 0 ? -1 : 0, 0);
            assert_true(backward_error(ctx, m, dense) <= 64 * DBL_EPSILON);
            const spmv_preconditioner_info info = describe(ctx, m);
            assert_true(info.fallen == 0 && info.levels == n);
            assert_null(strstr(info.layout, "replaced"));
            spmv_preconditioner_destroy(m);
        }
        release(&a);
        free(dense);
    }
}

/* ILUT that drops nothing solves exactly, without a single diagonal entry too. */
static void complete(void **state)
{
    spmv_context *ctx = *state;
    const int sizes[] = {2, 3, 20, SLOW ? 30 : 90};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const int n = sizes[s];
        double *const dense = random_hollow(n, 0.15, 20 + s);
        struct sparse a = from_dense(n, dense);
        spmv_preconditioner *const m = make(ctx, "ilut", &a.view, 0, 1e6);
        if (!(backward_error(ctx, m, dense) <= 1e4 * DBL_EPSILON))
            fail_msg("n = %d: backward error %g", n, backward_error(ctx, m, dense));
        const spmv_preconditioner_info info = describe(ctx, m);
        assert_true(info.fallen == 0);
        assert_non_null(strstr(info.layout, "columns exchanged"));
        assert_null(strstr(info.layout, " 0 columns exchanged"));
        spmv_preconditioner_destroy(m);
        release(&a);
        free(dense);
    }
}

/* The product L U of the ILU(0) factors by definition: elimination that leaves cells outside the
 * pattern alone. */
static double *incomplete_product(const double *a, int64_t n)
{
    long double *const f = support_zeros(n * n, sizeof *f);
    double *const product = support_zeros(n * n, sizeof *product);
    for (int64_t k = 0; k < n * n; k++)
        f[k] = a[k];
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = 0; k < i; k++) {
            if (a[i * n + k] == 0)
                continue;
            f[i * n + k] /= f[k * n + k];
            for (int64_t j = k + 1; j < n; j++)
                if (a[i * n + j] != 0)
                    f[i * n + j] -= f[i * n + k] * f[k * n + j];
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            long double sum = 0;
            for (int64_t k = 0; k <= (i < j ? i : j); k++)
                sum += (k == i ? 1 : f[i * n + k]) * f[k * n + j];
            product[i * n + j] = (double)sum;
        }
    free(f);
    return product;
}

static double *random_dominant(int64_t n, double share, uint64_t seed)
{
    double *const dense = support_zeros(n * n, sizeof *dense);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0.5;
        for (int64_t j = 0; j < n; j++)
            if (i != j && fabs(support_uniform(&seed)) < share) {
                dense[i * n + j] = (float)support_uniform(&seed);
                sum += fabs(dense[i * n + j]);
            }
        dense[i * n + i] = (float)(i % 4 == 0 ? -sum : sum);
    }
    return dense;
}

/* M is L U by definition and agrees with A on the pattern, in both types; entries in any order,
 * repeated ones, arrays in the context's memory, and an f32 matrix under f64 vectors give the same
 * bits. */
static void ilu0_as_defined(void **state)
{
    spmv_context *ctx = *state;
    enum { N = SLOW ? 24 : 60 };
    double *const dense = random_dominant(N, 0.15, 5), *const product = incomplete_product(dense, N);
    for (int k = 0; k < N * N; k++)
        assert_true(dense[k] == 0 || fabs(dense[k] - product[k]) <= 1e-12);
    struct sparse a = from_dense(N, dense);
    const int64_t nnz = a.view.nnz;
    double r[N], z[N], z_other[N];
    for (int i = 0; i < N; i++)
        r[i] = i % 5 - 1.5;
    spmv_preconditioner *m = make(ctx, "ilu0", &a.view, -1, 0);
    assert_true(backward_error(ctx, m, product) <= 64 * DBL_EPSILON);
    apply(ctx, m, r, z);
    spmv_preconditioner_destroy(m);

    float *const narrow = support_zeros(nnz, sizeof *narrow);
    for (int64_t k = 0; k < nnz; k++)
        narrow[k] = (float)a.val[k];
    spmv_csr other = a.view;
    other.val = narrow;
    other.type = SPMV_F32;
    m = make(ctx, "ilu0", &other, -1, 0);
    assert_true(precond_type(m) == SPMV_F32);
    assert_true(backward_error(ctx, m, product) <= 64 * FLT_EPSILON);
    spmv_preconditioner_destroy(m);
    spmv_preconditioner_options options = support_preconditioner_options();
    options.type = SPMV_F64;
    assert_ok(ctx, spmv_preconditioner_create(ctx, "ilu0", &other, &options, &m));
    apply(ctx, m, r, z_other);
    assert_memory_equal(z, z_other, sizeof z);
    spmv_preconditioner_destroy(m);

    /* each row backwards, every entry as two halves, 64-bit offsets, in the context's memory */
    int64_t *const ptr = support_zeros(N + 1, sizeof *ptr);
    int32_t *const col = support_zeros(2 * nnz, sizeof *col);
    double *const val = support_zeros(2 * nnz, sizeof *val);
    for (int i = 0; i < N; i++) {
        ptr[i + 1] = 2 * a.row_ptr[i + 1];
        for (int64_t k = 0; k < a.row_ptr[i + 1] - a.row_ptr[i]; k++)
            for (int half = 0; half < 2; half++) {
                col[ptr[i + 1] - 1 - 2 * k - half] = a.col[a.row_ptr[i] + k];
                val[ptr[i + 1] - 1 - 2 * k - half] = a.val[a.row_ptr[i] + k] / 2;
            }
    }
    void *there[] = {support_upload(ctx, ptr, (N + 1) * 8), support_upload(ctx, col, 2 * nnz * 4),
                     support_upload(ctx, val, 2 * nnz * 8)};
    other = support_view(N, N, 2 * nnz, there[0], there[1], there[2], SPMV_F64);
    other.memory = SPMV_MEMORY_CONTEXT;
    m = make(ctx, "ilu0", &other, -1, 0);
    apply(ctx, m, r, z_other);
    assert_memory_equal(z, z_other, sizeof z);
    spmv_preconditioner_destroy(m);
    for (int i = 0; i < 3; i++)
        spmv_free(ctx, there[i]);
    support_free(ptr, col, val, narrow);
    release(&a);
    support_free(dense, product);
}

/* The factors stay within the fill asked for, and the residual r - A M^-1 r shrinks with smaller
 * thresholds. */
static void ilut_dropping(void **state)
{
    spmv_context *ctx = *state;
    enum { N = SLOW ? 40 : 120 };
    double *const dense = random_dominant(N, 0.1, 9);
    struct sparse a = from_dense(N, dense);
    static const struct {
        double drop, fill, most;
    } cases[] = {{0.3, 1e6, 0.5}, {1e-2, 1e6, 1e-1}, {1e-4, 1e6, 1e-3}, {0, 1e6, 1e-13}, {0, 1, 0.5}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        spmv_preconditioner *const m = make(ctx, "ilut", &a.view, cases[c].drop, cases[c].fill);
        const double error = backward_error(ctx, m, dense);
        if (!(error <= cases[c].most))
            fail_msg("drop %g, fill %g: error %g", cases[c].drop, cases[c].fill, error);
        long long entries = 0;
        assert_int_equal(sscanf(describe(ctx, m).layout, "factors of %lld entries", &entries), 1);
        /* ceil(fill nnz / (2 rows)) entries of each part of a row, and both diagonals */
        assert_true((double)entries <= cases[c].fill * (double)a.view.nnz + 4 * N);
        spmv_preconditioner_destroy(m);
    }
    release(&a);
    free(dense);
}

/* ------------------------------------------------------------------- pivots */

static void check_values(spmv_context *ctx, const spmv_preconditioner *m, const double *r, const double *expected)
{
    double z[4];
    apply(ctx, m, r, z);
    for (int64_t i = 0; i < precond_rows(m); i++)
        if (!(fabs(z[i] - expected[i]) <= 1e-12 * fabs(expected[i])))
            fail_msg("element %lld is %.17g, %.17g expected", (long long)i, z[i], expected[i]);
}

/* Pivots that vanish are replaced by 0.001 times the largest entry of their row, and reported. */
static void replaced_pivots(void **state)
{
    spmv_context *ctx = *state;
    const double exchange[] = {0, 2, 2, 0}, r[] = {1, 1, 1, 1};
    struct sparse a = from_dense(2, exchange);
    /* U = (0.002 2; 0 -2000), l = 1000: y = (1, -999), z_2 = 0.4995, z_1 = (1 - 2 z_2) / 0.002 */
    spmv_preconditioner *m = make(ctx, "ilu0", &a.view, -1, 0);
    assert_true(describe(ctx, m).fallen == 1);
    assert_non_null(
        strstr(describe(ctx, m).layout, "replaced pivots: 1 (the first, of row 0 (counted from 0), was 0)"));
    check_values(ctx, m, r, (const double[]){(1 - 2 * 0.4995) / 0.002, 0.4995});
    spmv_preconditioner_destroy(m);
    /* pivoting needs no replacement */
    m = make(ctx, "ilut", &a.view, -1, 0);
    assert_true(describe(ctx, m).fallen == 0);
    check_values(ctx, m, r, (const double[]){0.5, 0.5});
    spmv_preconditioner_destroy(m);
    release(&a);
    /* row 2 is empty, row 3 equals row 1: both factors have a pivot 0.001 and one of 0.004 */
    const double singular[] = {4, 0, 1, 0, 0, 0, 4, 0, 1};
    const double repeated[] = {4, 0, 4, 0, 0, 0, 4, 0, 4};
    a = from_dense(3, repeated);
    for (int kind = 0; kind < 2; kind++) {
        m = make(ctx, kind == 0 ? "ilu0" : "ilut", &a.view, -1, 0);
        assert_true(describe(ctx, m).fallen == 2);
        assert_non_null(
            strstr(describe(ctx, m).layout, "replaced pivots: 2 (the first, of row 1 (counted from 0), was 0)"));
        check_values(ctx, m, (const double[]){1, 1, 2, 1}, (const double[]){(1 - 1000) / 4.0, 1000, 250});
        spmv_preconditioner_destroy(m);
    }
    release(&a);
    a = from_dense(3, singular); /* row 3 equals row 1: 0.001 times the largest entry, which is 4 */
    m = make(ctx, "ilu0", &a.view, -1, 0);
    check_values(ctx, m, (const double[]){1, 1, 2, 1}, (const double[]){(1 - 250) / 4.0, 1000, 250});
    spmv_preconditioner_destroy(m);
    release(&a);
}

/* --------------------------------------------------------------------- bits */

/* A row of U subtracts the elements that are solved first, those of the last rows: (2^60 - 2^60)
 * - 1, where (2^60 - 1) - 2^60 would be rounded to 0. */
static void order_of_sums(void **state)
{
    spmv_context *ctx = *state;
    const double upper[] = {1, 1, 1, 0, 1, 0, 0, 0, 1}, r[] = {0x1p60, 1, 0x1p60};
    struct sparse a = from_dense(3, upper);
    for (int kind = 0; kind < 2; kind++) {
        spmv_preconditioner *const m = make(ctx, kind == 0 ? "ilu0" : "ilut", &a.view, -1, 0);
        check_values(ctx, m, r, (const double[]){-1, 1, 0x1p60});
        spmv_preconditioner_destroy(m);
    }
    release(&a);
}

/* Both kinds with 1, 2 and 5 threads, on a grid whose levels threads share, and on a large
 * matrix, for ilut without a diagonal: ilu0 of such a matrix is refused. */
static void same_bits(void **state)
{
    (void)state;
    enum { LARGE = SLOW ? 300 : 20000, EACH = 5, CASES = 3 };
    static const int threads[] = {1, 2, 5};
    int64_t *const ptr = support_zeros(LARGE + 1, sizeof *ptr);
    int32_t *const col = support_zeros(LARGE * EACH, sizeof *col);
    double *const val = support_zeros(LARGE * EACH, sizeof *val);
    for (int kind = 0; kind < 2; kind++)
        for (int c = 0; c < CASES; c++) {
            uint64_t seed = 2;
            for (int64_t i = 0; i < LARGE; i++) {
                ptr[i + 1] = EACH * (i + 1);
                for (int64_t k = EACH * i; k < ptr[i + 1]; k++) {
                    const int64_t away = k == EACH * i ? kind : 2 + (int64_t)(support_random(&seed) % 50);
                    col[k] = (int32_t)((i + away) % LARGE);
                    val[k] = (k == EACH * i ? (kind == 0 ? EACH : 2) : 0) + support_uniform(&seed);
                }
            }
            double *first = NULL;
            /* the other backends have no threads */
            for (size_t t = 0; t < (support_backend == SPMV_BACKEND_OMP ? sizeof threads / sizeof threads[0] : 1);
                 t++) {
                spmv_context *ctx = support_context_on(support_backend, threads[t]);
                spmv_matrix *matrix = NULL;
                spmv_csr a = support_view(LARGE, LARGE, ptr[LARGE], ptr, col, val, SPMV_F64);
                if (c > 0) {
                    assert_ok(ctx, spmv_matrix_generate(ctx, SLOW ? "convdiff2d:9,0.7" : "convdiff3d:60,0.7",
                                                        c == 1 ? SPMV_F64 : SPMV_F32, &matrix));
                    spmv_matrix_view(matrix, &a);
                }
                spmv_preconditioner *const m = make(ctx, kind == 0 ? "ilu0" : "ilut", &a, 1e-2, 3);
                if (!SLOW && c > 0 && kind == 0 && support_backend == SPMV_BACKEND_OMP)
                    assert_true((strstr(describe(ctx, m).layout, "shared by threads") != NULL) == (threads[t] == 5));
                double *const r = support_zeros(a.rows, sizeof *r), *const z = support_zeros(a.rows, sizeof *z);
                for (int64_t i = 0; i < a.rows; i++)
                    r[i] = (double)(i % 97) - 48;
                for (int repeat = 0; repeat < 2; repeat++) {
                    apply(ctx, m, r, z);
                    if (first == NULL) {
                        first = support_zeros(a.rows, sizeof *first);
                        memcpy(first, z, (size_t)a.rows * sizeof *z);
                    }
                    assert_memory_equal(z, first, (size_t)a.rows * sizeof *z);
                }
                support_free(r, z);
                spmv_preconditioner_destroy(m);
                spmv_matrix_destroy(matrix);
                spmv_context_destroy(ctx);
            }
            free(first);
        }
    support_free(ptr, col, val);
}

/* ------------------------------------------------------------------- both ends */

/* A band of two entries on either side, large enough to be eliminated from both ends. Some rows
 * next to the cut have nothing large but an entry in a column that connects the halves: they are
 * late, and a pivot of 1e-9 in their own half would cost nine digits. Nothing is dropped, so M =
 * A; half the levels show that the matrix was cut. With any number of threads, the bits are the
 * same, and too much work is refused with the same words. */
static void both_ends(void **state)
{
    (void)state;
    enum { N = SLOW ? 13200 : 20000, WIDTH = 2, LATE = 2, BEFORE = 6 };
    static const int threads[] = {1, 2, 3, 7};
    int64_t *const ptr = support_zeros(N + 1, sizeof *ptr), end = 0;
    int32_t *const col = support_zeros(N * (2 * WIDTH + 2), sizeof *col);
    double *const val = support_zeros(N * (2 * WIDTH + 2), sizeof *val);
    double *const r = support_zeros(N, sizeof *r), *const z = support_zeros(N, sizeof *z),
                  *const first = support_zeros(N, sizeof *first);
    char words[400] = "";
    uint64_t seed = 4;
    for (int64_t i = 0; i < N; i++) {
        const bool late = i >= N / 2 - BEFORE && i < N / 2 - BEFORE + LATE;
        for (int64_t j = max_i64(0, i - WIDTH); j <= min_i64(N - 1, i + WIDTH); j++) {
            col[end] = (int32_t)j;
            val[end++] = late ? 1e-9 : (j == i ? 4 : 0) + support_uniform(&seed);
        }
        if (late) {
            col[end] = N / 2 - 2 + (int32_t)(i % 2);
            val[end++] = 3;
        }
        ptr[i + 1] = end;
        r[i] = support_uniform(&seed);
    }
    const spmv_csr a = support_view(N, N, end, ptr, col, val, SPMV_F64);
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        spmv_context *const ctx = support_context_on(support_backend, threads[t]);
        spmv_preconditioner *m = make(ctx, "ilut", &a, 0, 1e6);
        const spmv_preconditioner_info info = describe(ctx, m);
        assert_true(info.fallen == 0 && info.levels < N / 2 + 100);
        apply(ctx, m, r, z);
        for (int64_t i = 0; i < N; i++) {
            double sum = -r[i];
            for (int64_t k = ptr[i]; k < ptr[i + 1]; k++)
                sum += val[k] * z[col[k]];
            assert_true(fabs(sum) <= 1e-11);
        }
        if (t == 0)
            memcpy(first, z, N * sizeof *z);
        assert_memory_equal(z, first, N * sizeof *z);
        spmv_preconditioner_destroy(m);
        for (int limit = 0; limit < 2; limit++) {
            context_budget(ctx, limit == 0 ? 2 * end : 0);
            context_pace(ctx, limit == 1 ? 2 * end : 0);
            assert_fails(ctx, spmv_preconditioner_create(ctx, "ilut", &a, NULL, &m), SPMV_ERROR_LIMIT, "work");
            if (limit == 1 && t == 0)
                snprintf(words, sizeof words, "%s", spmv_last_error(ctx));
        }
        assert_string_equal(spmv_last_error(ctx), words);
        context_pace(ctx, 0);
        spmv_context_destroy(ctx);
    }
    support_free(ptr, col, val, r, z, first);
}

/* ----------------------------------------------------------------- refusals */

static void refusals(void **state)
{
    spmv_context *ctx = *state;
    const int32_t row_ptr[] = {0, 2, 4}, col[] = {0, 1, 0, 1};
    const double nan[] = {1, -1, NAN, 2}, infinite[] = {1, INFINITY, -1, 2}, fine[] = {1, 1, 1, -1};
    const double large[] = {1e-300, 1e300, 1e300, 1};
    const float tiny[] = {1e-39F, 0, 0, 1};
    for (int kind = 0; kind < 2; kind++) {
        const char *const name = kind == 0 ? "ilu0" : "ilut";
        spmv_preconditioner *m = (void *)ctx;
        spmv_csr a = support_csr(2, 2, row_ptr, col, nan);
        assert_fails(ctx, spmv_preconditioner_create(ctx, name, &a, NULL, &m), SPMV_ERROR_NOT_FINITE,
                     "row 1, column 0 (counted from 0) is nan");
        assert_null(m);
        a.val = infinite;
        assert_fails(ctx, spmv_preconditioner_create(ctx, name, &a, NULL, &m), SPMV_ERROR_NOT_FINITE,
                     "row 0, column 1 (counted from 0) is inf");
        a.val = tiny;
        a.type = SPMV_F32;
        assert_fails(ctx, spmv_preconditioner_create(ctx, name, &a, NULL, &m), SPMV_ERROR_NOT_FINITE,
                     "row 0 (counted from 0) of the factor is out of the range of f32");
        a.val = large; /* the multiplier of row 2 is 1000, and its product with 1e300 is in range */
        a.type = SPMV_F64;
        assert_ok(ctx, spmv_preconditioner_create(ctx, name, &a, NULL, &m));
        spmv_preconditioner_destroy(m);
        a.cols = 3;
        assert_fails(ctx, spmv_preconditioner_create(ctx, name, &a, NULL, &m), SPMV_ERROR_NOT_SQUARE, "3 columns");
        a = support_csr(2, 2, row_ptr, col, fine);
        static const struct {
            double drop, fill;
            int general;
            const char *words;
        } wrong[] = {{1, 0, 0, "drop 1 (0 to less than 1, or -1)"},
                     {-0.5, 0, 0, "drop -0.5 (0 to less than 1, or -1)"},
                     {NAN, 0, 0, "drop nan (0 to less than 1, or -1)"},
                     {0, 0.5, 0, "fill 0.5 (1 to 1e6, or 0)"},
                     {0, -1, 0, "fill -1 (1 to 1e6, or 0)"},
                     {0, NAN, 0, "fill nan (1 to 1e6, or 0)"},
                     {0, INFINITY, 0, "fill inf (1 to 1e6, or 0)"},
                     {0, 0, 2, "option general 2: must be 0 or 1"},
                     {0, 0, -1, "option general -1: must be 0 or 1"}};
        for (size_t w = 0; w < sizeof wrong / sizeof wrong[0]; w++) {
            spmv_preconditioner_options options = support_preconditioner_options();
            options.drop = wrong[w].drop;
            options.fill = wrong[w].fill;
            options.general = wrong[w].general;
            assert_fails(ctx, spmv_preconditioner_create(ctx, name, &a, &options, &m), SPMV_ERROR_ARGUMENT,
                         wrong[w].words);
            assert_null(m);
        }
        /* a pattern, and no rows */
        a.val = NULL;
        m = make(ctx, name, &a, -1, 0);
        assert_true(describe(ctx, m).fallen == 1); /* all ones: singular */
        spmv_preconditioner_destroy(m);
        a = support_csr(0, 0, row_ptr, NULL, NULL);
        m = make(ctx, name, &a, -1, 0);
        assert_ok(ctx, spmv_preconditioner_apply(m, NULL, NULL));
        spmv_preconditioner_destroy(m);
    }
}

SUPPORT_MAIN(with_context(tridiagonal), with_context(complete), with_context(ilu0_as_defined),
             with_context(ilut_dropping), with_context(replaced_pivots), with_context(order_of_sums),
             cmocka_unit_test(same_bits), cmocka_unit_test(both_ends), with_context(refusals))
