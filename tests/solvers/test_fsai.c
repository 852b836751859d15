/* Preconditioner fsai: rows of the factor equal their definition on the pattern that the search finds in
 * dense arithmetic; matrices that are not positive definite, singular ones, full rows; the same bits for any
 * number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "solvers/precond/precond_fsai.h"
#include "tests/support/support_precond.h"
#include "tests/support/support_slow.h"

/* ----------------------------------------------------------------- helpers */

/* A factor and what it is made of. */
struct made {
    spmv_preconditioner m;
    struct precond_source source;
    struct fsai_factor g;
    spmv_status status;
};

static struct made make_factor(spmv_context *ctx, const spmv_csr *a, int steps, int size, double tolerance)
{
    struct made made = {.m = {.ctx = ctx, .type = SPMV_F64, .rows = a->rows, .name = "fsai"},
                        .source = {.a = a, .host = *a, .bad = a->rows}};
    const struct fsai_search search = {.steps = steps, .size = size, .tolerance = tolerance, .least = 0x1p-40};
    made.source.diagonal = support_zeros(a->rows, sizeof(double));
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            if (a->col[k] == i)
                made.source.diagonal[i] += precond_value(a, k);
    made.status = fsai_make_factor(&made.m, &made.source, &search, &made.g);
    free(made.source.diagonal);
    return made;
}

static spmv_preconditioner *make(spmv_context *ctx, const spmv_csr *a, int degree)
{
    spmv_preconditioner_options options;
    spmv_preconditioner *m = NULL;
    spmv_preconditioner_options_init(&options, sizeof options);
    options.degree = degree;
    assert_ok(ctx, spmv_preconditioner_create(ctx, "fsai", a, &options, &m));
    return m;
}

static spmv_preconditioner_info describe(spmv_context *ctx, const spmv_preconditioner *m)
{
    spmv_preconditioner_info info;
    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
    return info;
}

/* Symmetric positive definite, with nonzeros in about `share` of the cells and a diagonal of widely varying
 * scale. dominance: the diagonal over the sum of the absolute values beside it. */
static double *random_spd(int64_t n, double share, double dominance, uint64_t seed)
{
    double *const dense = support_zeros(n * n, sizeof *dense);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            if (fabs(support_uniform(&seed)) < share)
                dense[i * n + j] = dense[j * n + i] = support_uniform(&seed);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0.1;
        for (int64_t j = 0; j < n; j++)
            sum += fabs(dense[i * n + j]);
        dense[i * n + i] = dominance * sum;
    }
    for (int64_t i = 0; i < n; i++) {
        const double scale = exp2((double)(support_random(&seed) % 21) - 10);
        for (int64_t j = 0; j < n; j++) {
            dense[i * n + j] *= scale;
            dense[j * n + i] *= scale;
        }
    }
    return dense;
}

/* Solves the dense system of k rows by Gaussian elimination in place; the solution replaces b. */
static void dense_solve(long double *a, long double *b, int k)
{
    for (int p = 0; p < k; p++)
        for (int i = p + 1; i < k; i++) {
            const long double factor = a[i * k + p] / a[p * k + p];
            for (int j = p; j < k; j++)
                a[i * k + j] -= factor * a[p * k + j];
            b[i] -= factor * b[p];
        }
    for (int p = k - 1; p >= 0; p--) {
        for (int j = p + 1; j < k; j++)
            b[p] -= a[p * k + j] * b[j];
        b[p] /= a[p * k + p];
    }
}

/* The row of G that the method finds, from its definition: row[j], 0 <= j <= i. */
static void dense_row(const double *a, int64_t n, int64_t i, int steps, int size, double tolerance, double *row)
{
    int64_t pattern[64];
    long double g[64] = {0}, psi = 1;
    int k = 0;
    for (int step = 0; step < steps; step++) {
        const long double before = psi;
        long double *const slope = support_zeros(n, sizeof *slope), *const block =
                                                                        support_zeros(64 * 64, sizeof *block);
        for (int64_t j = 0; j < i; j++) {
            const long double root = sqrtl((long double)a[j * n + j] * a[i * n + i]);
            slope[j] = a[j * n + i] / root;
            for (int p = 0; p < k; p++)
                slope[j] +=
                    a[j * n + pattern[p]] / sqrtl((long double)a[j * n + j] * a[pattern[p] * n + pattern[p]]) * g[p];
        }
        for (int p = 0; p < k; p++)
            slope[pattern[p]] = 0;
        for (int more = 0; more < size; more++) {
            int64_t best = 0;
            for (int64_t j = 1; j < i; j++)
                best = fabsl(slope[j]) > fabsl(slope[best]) ? j : best;
            if (i == 0 || fabsl(slope[best]) == 0)
                break;
            slope[best] = 0;
            pattern[k++] = best;
        }
        psi = 1;
        for (int p = 0; p < k; p++) {
            for (int q = 0; q < k; q++)
                block[p * k + q] = a[pattern[p] * n + pattern[q]] /
                                   sqrtl((long double)a[pattern[p] * n + pattern[p]] * a[pattern[q] * n + pattern[q]]);
            g[p] = -a[pattern[p] * n + i] / sqrtl((long double)a[pattern[p] * n + pattern[p]] * a[i * n + i]);
        }
        dense_solve(block, g, k);
        for (int p = 0; p < k; p++)
            psi += g[p] * a[pattern[p] * n + i] / sqrtl((long double)a[pattern[p] * n + pattern[p]] * a[i * n + i]);
        support_free(slope, block);
        if (!(before - psi >= tolerance * before))
            break;
    }
    for (int64_t j = 0; j < i; j++)
        row[j] = 0;
    for (int p = 0; p < k; p++)
        row[pattern[p]] = (double)(g[p] / sqrtl(psi * a[pattern[p] * n + pattern[p]]));
    row[i] = (double)(1 / sqrtl(psi * a[i * n + i]));
}

/* ------------------------------------------------------------------- tests */

/* Every row has the pattern and the numbers of the dense search, and fulfils the equations of G. */
static void rows_as_defined(void **state)
{
    spmv_context *ctx = *state;
    static const struct {
        int n, steps, size;
        double share, dominance, tolerance;
    } cases[] = {{1, 3, 4, 1, 1, 0},          {2, 3, 4, 1, 0.9, 0},       {30, 1, 4, 0.2, 0.8, 0},
                 {40, 5, 3, 0.15, 0.7, 1e-3}, {40, 3, 4, 0.3, 0.6, 0.03}, {50, 8, 4, 0.1, 0.9, 0},
                 {25, 0, 4, 0.2, 1, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int n = cases[c].n;
        double *const dense = random_spd(n, cases[c].share, cases[c].dominance, 17 + c);
        double *const row = support_zeros(n, sizeof *row), *const got = support_zeros(n, sizeof *got);
        struct sparse s = from_dense(n, dense);
        struct made made = make_factor(ctx, &s.view, cases[c].steps, cases[c].size, cases[c].tolerance);
        assert_ok(ctx, made.status);
        assert_true(made.g.rows == n && made.g.left_out == 0 && made.g.ptr[0] == 0);
        for (int64_t i = 0; i < n; i++) {
            const int64_t begin = made.g.ptr[i], end = made.g.ptr[i + 1];
            assert_true(end > begin && end - begin <= cases[c].steps * cases[c].size + 1 && made.g.col[end - 1] == i);
            for (int64_t j = 0; j < n; j++)
                got[j] = 0;
            for (int64_t k = begin; k < end; k++) {
                assert_true(k == begin || made.g.col[k] > made.g.col[k - 1]);
                got[made.g.col[k]] = made.g.val[k];
            }
            dense_row(dense, n, i, cases[c].steps, cases[c].size, cases[c].tolerance, row);
            for (int64_t j = 0; j <= i; j++)
                if (!((got[j] == 0) == (row[j] == 0) && fabs(got[j] - row[j]) <= 1e-12 * fabs(row[j]) + 1e-300))
                    if (!(fabs(got[j] - row[j]) <= 1e-11 * sqrt(1 / dense[j * n + j])))
                        fail_msg("case %zu: G has %.17g at (%lld, %lld), %.17g expected", c, got[j], (long long)i,
                                 (long long)j, row[j]);
            /* G A vanishes at the pattern, and (G A G')_ii = 1 */
            double square = 0;
            for (int64_t j = 0; j <= i; j++) {
                double sum = 0;
                for (int64_t k = 0; k <= i; k++)
                    sum += got[k] * dense[k * n + j];
                square += sum * got[j];
                if (j < i && got[j] != 0)
                    assert_true(fabs(sum) <= 1e-12 * sqrt(dense[j * n + j]));
            }
            assert_true(fabs(square - 1) <= 1e-12);
        }
        fsai_release(&made.g);
        release(&s);
        support_free(dense, row, got);
    }
}

/* M^-1 r = G'(G r), in both types of vectors, and with a matrix of f32 under vectors of f64. */
static void product_of_the_factor(void **state)
{
    spmv_context *ctx = *state;
    const int n = SLOW ? 24 : 70;
    double *const dense = random_spd(n, 0.2, 0.8, 5);
    for (int k = 0; k < n * n; k++)
        dense[k] = (float)dense[k];
    struct sparse s = from_dense(n, dense);
    float *const narrow = support_zeros(s.view.nnz, sizeof *narrow);
    for (int64_t k = 0; k < s.view.nnz; k++)
        narrow[k] = (float)s.val[k];
    struct made made = make_factor(ctx, &s.view, 8, 4, 0.05); /* as fsai does */
    assert_ok(ctx, made.status);
    double *const r = support_zeros(n, sizeof *r), *const z = support_zeros(n, sizeof *z),
                  *const y = support_zeros(n, sizeof *y), *const want = support_zeros(n, sizeof *want),
                  *const size = support_zeros(n, sizeof *size);
    uint64_t seed = 3;
    for (int i = 0; i < n; i++)
        r[i] = (float)(support_uniform(&seed) * sqrt(dense[i * n + i]));
    for (int i = 0; i < n; i++)
        for (int64_t k = made.g.ptr[i]; k < made.g.ptr[i + 1]; k++)
            y[i] += made.g.val[k] * r[made.g.col[k]];
    for (int i = 0; i < n; i++)
        for (int64_t k = made.g.ptr[i]; k < made.g.ptr[i + 1]; k++) {
            want[made.g.col[k]] += made.g.val[k] * y[i];
            size[made.g.col[k]] += fabs(made.g.val[k] * y[i]);
        }
    for (int way = 0; way < 3; way++) { /* f64, f32, and an f32 matrix with f64 vectors */
        spmv_csr a = s.view;
        spmv_preconditioner_options o;
        spmv_preconditioner *m = NULL;
        spmv_preconditioner_options_init(&o, sizeof o);
        o.type = way == 1 ? SPMV_F32 : SPMV_F64;
        if (way > 0) {
            a.val = narrow;
            a.type = SPMV_F32;
        }
        assert_ok(ctx, spmv_preconditioner_create(ctx, "fsai", &a, &o, &m));
        assert_non_null(strstr(describe(ctx, m).layout, "in f32"));
        apply(ctx, m, r, z);
        for (int i = 0; i < n; i++)
            if (!(fabs(z[i] - want[i]) <= 64 * FLT_EPSILON * size[i]))
                fail_msg("way %d: %.9g in row %d, %.9g expected", way, z[i], i, want[i]);
        spmv_preconditioner_destroy(m);
    }
    fsai_release(&made.g);
    release(&s);
    support_free(dense, narrow, r, z, y, want, size);
}

/* With a pattern of all columns, G A G' is the identity. */
static void complete_pattern(void **state)
{
    spmv_context *ctx = *state;
    enum { N = 20 };
    double *const dense = random_spd(N, 2, 0.8, 8);
    struct sparse s = from_dense(N, dense);
    struct made made = make_factor(ctx, &s.view, 8, 4, 0);
    assert_ok(ctx, made.status);
    assert_true(made.g.ptr[N] == N * (N + 1) / 2);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int64_t k = made.g.ptr[i]; k < made.g.ptr[i + 1]; k++)
                for (int64_t l = made.g.ptr[j]; l < made.g.ptr[j + 1]; l++)
                    sum += made.g.val[k] * dense[made.g.col[k] * N + made.g.col[l]] * made.g.val[l];
            assert_true(fabs(sum - (i == j)) < 1e-11);
        }
    fsai_release(&made.g);
    release(&s);
    free(dense);
}

/* Where numbers are outside of the range of f32, the factor is in f64. */
static void range_of_f32(void **state)
{
    spmv_context *ctx = *state;
    enum { N = 20 };
    double *const dense = random_spd(N, 0.3, 0.8, 9), r[N], z[2][N];
    dense[N] = dense[1] = 1e-60; /* an entry that f32 does not have is no reason */
    for (int i = 0; i < N; i++)
        r[i] = dense[i * N + i];
    for (int scaled = 0; scaled < 2; scaled++) {
        for (int k = 0; k < N * N; k++)
            dense[k] *= scaled ? 0x1p300 : 1;
        struct sparse s = from_dense(N, dense);
        spmv_preconditioner *const m = make(ctx, &s.view, -1);
        assert_non_null(strstr(describe(ctx, m).layout, scaled ? "in f64" : "in f32"));
        apply(ctx, m, r, z[scaled]);
        spmv_preconditioner_destroy(m);
        release(&s);
    }
    for (int i = 0; i < N; i++)
        assert_true(fabs(z[1][i] * 0x1p300 - z[0][i]) <= 1e-5 * fabs(z[0][i]));
    free(dense);
}

/* Repeated entries are added, columns may be in any order. */
static void any_order(void **state)
{
    spmv_context *ctx = *state;
    const int32_t ptr[] = {0, 3, 7, 11}, col[] = {1, 0, 0, 2, 1, 0, 1, 2, 1, 2, 1};
    const double val[] = {-1, 1.5, 2.5, -2, 3, -1, 2, 4, -0.5, 1, -1.5};
    const double dense[] = {4, -1, 0, -1, 5, -2, 0, -2, 5};
    const spmv_csr a = support_csr(3, 3, ptr, col, val);
    struct sparse s = from_dense(3, dense);
    struct made x = make_factor(ctx, &a, 2, 4, 0), y = make_factor(ctx, &s.view, 2, 4, 0);
    assert_ok(ctx, x.status);
    assert_ok(ctx, y.status);
    assert_true(x.g.ptr[3] == y.g.ptr[3] && y.g.ptr[3] == 6);
    for (int64_t k = 0; k < 6; k++)
        assert_true(x.g.col[k] == y.g.col[k] && fabs(x.g.val[k] - y.g.val[k]) < 1e-15);
    fsai_release(&x.g);
    fsai_release(&y.g);
    release(&s);
}

/* A pivot that is negative is an error that names the row and the number; a pivot that is nearly 0, as of a
 * singular matrix, leaves its entry out. */
static void pivots(void **state)
{
    spmv_context *ctx = *state;
    spmv_preconditioner *m = (void *)ctx;
    struct sparse s = from_dense(2, (const double[]){1, 2, 2, 1});
    assert_fails(ctx, spmv_preconditioner_create(ctx, "fsai", &s.view, NULL, &m), SPMV_ERROR_NOT_POSITIVE,
                 "a pivot of row 1 (counted from 0) is -3");
    assert_null(m);
    release(&s);
    /* negative among the columns of row 2, whose own psi would be 1 - 0.5 */
    s = from_dense(3, (const double[]){1, 1.25, 0.5, 1.25, 1, 0.5, 0.5, 0.5, 1});
    assert_fails(ctx, spmv_preconditioner_create(ctx, "fsai", &s.view, NULL, &m), SPMV_ERROR_NOT_POSITIVE, "row 1");
    release(&s);
    s = from_dense(3, (const double[]){1, NAN, 0, NAN, 1, 0, 0, 0, 1});
    assert_fails(ctx, spmv_preconditioner_create(ctx, "fsai", &s.view, NULL, &m), SPMV_ERROR_NOT_FINITE,
                 "row 0, column 1 (counted from 0) is nan");
    release(&s);
    s = from_dense(3, (const double[]){1, -1, 0, -1, 2, -1, 0, -1, 1}); /* a Laplacian: its rows add up to 0 */
    m = make(ctx, &s.view, -1);
    const spmv_preconditioner_info info = describe(ctx, m);
    assert_int_equal(info.fallen, 1);
    assert_non_null(strstr(info.layout, "left out because a pivot is nearly 0: 1 entry (the first in row 2 (counted "));
    double z[3];
    apply(ctx, m, (const double[]){1, 2, -1}, z);
    assert_true(isfinite(z[0]) && isfinite(z[1]) && isfinite(z[2]));
    spmv_preconditioner_destroy(m);
    release(&s);
}

/* A row with very many entries joins no pattern, so work grows with the entries: the budget is the same for
 * each of them. Without that, each row would read the full one. A smaller budget ends the set-up. */
static void full_row(void **state)
{
    spmv_context *ctx = *state;
    enum { N = SLOW ? 2000 : 30000, WORK = 60 };
    const int64_t nnz = 3 * (N - 1) + 1;
    int32_t *const ptr = support_zeros(N + 1, sizeof *ptr), *const col = support_zeros(nnz, sizeof *col), end = 0;
    double *const val = support_zeros(nnz, sizeof *val);
    for (int32_t i = 0; i < N; i++) {
        for (int32_t j = i == 0 ? 0 : i; j < (i == 0 ? N : i + 1); j++) {
            if (i > 0) {
                col[end] = 0;
                val[end++] = 1;
            }
            col[end] = j;
            val[end++] = i != j ? 1 : i == 0 ? N : 2;
        }
        ptr[i + 1] = end;
    }
    const spmv_csr a = support_csr(N, N, ptr, col, val);
    struct made made;
    context_budget(ctx, WORK * nnz);
    made = make_factor(ctx, &a, 8, 4, 0);
    assert_ok(ctx, made.status);
    assert_true(made.g.ptr[N] == N); /* only the full row couples them */
    fsai_release(&made.g);
    context_budget(ctx, N / 2);
    made = make_factor(ctx, &a, 8, 4, 0);
    context_budget(ctx, 0);
    assert_fails(ctx, made.status, SPMV_ERROR_LIMIT, "fsai");
    support_free(ptr, col, val);
}

/* The factor has the same bits for each number of threads, with several blocks of rows. */
static void same_bits(void **state)
{
    (void)state;
    struct made first = {.status = SPMV_OK};
    for (int threads = 1; threads <= (support_backend == SPMV_BACKEND_OMP ? 4 : 1); threads++) {
        spmv_context *const ctx = support_context_on(support_backend, threads);
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        assert_ok(ctx,
                  spmv_matrix_generate(ctx, SLOW ? "diffusion2d:30,100" : "diffusion2d:110,100", SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        struct made made = make_factor(ctx, &a, 3, 4, 0.03);
        assert_ok(ctx, made.status);
        if (threads > 1) {
            const size_t entries = (size_t)first.g.ptr[a.rows];
            assert_memory_equal(made.g.ptr, first.g.ptr, (size_t)(a.rows + 1) * 8);
            assert_memory_equal(made.g.col, first.g.col, entries * 4);
            assert_memory_equal(made.g.val, first.g.val, entries * 8);
            fsai_release(&made.g);
        } else {
            first = made;
        }
        spmv_matrix_destroy(matrix);
        spmv_context_destroy(ctx);
    }
    fsai_release(&first.g);
}

/* More steps take fewer iterations; without any, M is the diagonal. */
static void degrees(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    spmv_plan *plan = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, SLOW ? "diffusion2d:12,100" : "diffusion2d:60,100", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    assert_ok(ctx, spmv_plan_create(ctx, &a, NULL, &plan));
    double *const ones = support_zeros(a.rows, sizeof *ones);
    for (int64_t i = 0; i < a.rows; i++)
        ones[i] = 1 + (double)(i % 7);
    void *const b = support_upload(ctx, ones, a.rows * 8), *const x = support_upload(ctx, ones, a.rows * 8);
    const int degree[] = {0, 1, 3, 8};
    int64_t iterations[6] = {0};
    for (int k = 0; k < 6; k++) {
        spmv_preconditioner *m = NULL;
        if (k == 4)
            assert_ok(ctx, spmv_preconditioner_create(ctx, "jacobi", &a, NULL, &m));
        else
            m = make(ctx, &a, k == 5 ? 100 : degree[k]);
        spmv_cg_options options;
        spmv_cg_result result;
        spmv_cg_options_init(&options, sizeof options);
        options.zero_start = 1;
        options.precond = m;
        assert_ok(ctx, spmv_cg(plan, b, x, &options, &result, sizeof result));
        iterations[k] = result.iterations;
        spmv_preconditioner_destroy(m);
    }
    if (!(iterations[3] < iterations[2] && iterations[2] < iterations[1] && iterations[1] < iterations[0] &&
          llabs(iterations[0] - iterations[4]) <= 2 && iterations[5] == iterations[3] &&
          3 * iterations[2] < 2 * iterations[0]))
        fail_msg("iterations %lld %lld %lld %lld, jacobi %lld, degree 100 %lld", (long long)iterations[0],
                 (long long)iterations[1], (long long)iterations[2], (long long)iterations[3], (long long)iterations[4],
                 (long long)iterations[5]);
    spmv_plan_destroy(plan);
    spmv_matrix_destroy(matrix);
    support_free_in(ctx, b, x);
    free(ones);
}

/* ------------------------------------------------- a matrix in the context's memory */

/* Makes fsai of a in host memory and in the context's memory: both give the same bits and descriptions, or the
 * same error. */
static void check_both(spmv_context *ctx, const spmv_csr *a, const spmv_preconditioner_options *o)
{
    char message[512], layout[512] = "";
    spmv_matrix *there = NULL;
    spmv_csr view;
    spmv_preconditioner *m[2] = {NULL, NULL};
    spmv_status st[2];
    double *z[2];
    double *const r = support_zeros(a->rows, sizeof *r);
    uint64_t seed = 4;
    for (int64_t i = 0; i < a->rows; i++)
        r[i] = (float)support_uniform(&seed);
    assert_ok(ctx, spmv_matrix_copy(ctx, a, SPMV_MEMORY_CONTEXT, &there));
    spmv_matrix_view(there, &view);
    for (int k = 0; k < 2; k++) {
        z[k] = support_zeros(a->rows, sizeof *z[k]);
        st[k] = spmv_preconditioner_create(ctx, "fsai", k == 0 ? a : &view, o, &m[k]);
        if (st[k] != SPMV_OK && k == 0)
            snprintf(message, sizeof message, "%s", spmv_last_error(ctx));
        if (st[k] != SPMV_OK)
            continue;
        apply(ctx, m[k], r, z[k]);
        if (k == 0)
            snprintf(layout, sizeof layout, "%s", describe(ctx, m[k]).layout);
    }
    assert_int_equal(st[0], st[1]);
    if (st[0] == SPMV_OK) {
        assert_string_equal(describe(ctx, m[1]).layout, layout);
        assert_true(describe(ctx, m[0]).fallen == describe(ctx, m[1]).fallen);
        assert_memory_equal(z[0], z[1], (size_t)a->rows * sizeof *z[0]);
    } else {
        assert_string_equal(message, spmv_last_error(ctx));
    }
    spmv_preconditioner_destroy(m[0]);
    spmv_preconditioner_destroy(m[1]);
    spmv_matrix_destroy(there);
    support_free(r, z[0], z[1]);
}

static void same_in_both_memories(void **state)
{
    spmv_context *ctx = *state;
    spmv_preconditioner_options o;
    spmv_preconditioner_options_init(&o, sizeof o);
    for (int k = 0; k < 5; k++) { /* 3: entries beyond the range of f32; 4: not positive definite */
        const int n = k == 0 ? 1 : SLOW ? 30 : 300;
        double *const dense = random_spd(n, k == 1 ? 0.05 : 0.3, k == 4 ? 0.05 : 0.9, 40 + k);
        for (int i = 0; i < n * n; i++)
            dense[i] *= k == 3 ? 0x1p300 : 1;
        struct sparse s = from_dense(n, dense);
        o.degree = k == 2 ? 2 : -1;
        check_both(ctx, &s.view, &o);
        s.view.type = SPMV_F32;
        s.view.val = NULL; /* a pattern */
        check_both(ctx, &s.view, &o);
        release(&s);
        free(dense);
    }
    struct sparse s = from_dense(3, (const double[]){1, -1, 0, -1, 2, -1, 0, -1, 1}); /* singular */
    check_both(ctx, &s.view, &o);
    s.val[1] = s.val[2] = NAN;
    check_both(ctx, &s.view, &o);
    release(&s);
    static const char *const specs[] = {"diffusion2d:9,100", "elasticity2d:8", "diffusion2d:140,1000",
                                        "elasticity3d:12"};
    for (int k = 0; k < (SLOW ? 2 : 4); k++)
        for (int way = 0; way < 3; way++) { /* f64, f32, and an f32 matrix with f64 vectors */
            spmv_matrix *matrix = NULL;
            spmv_csr a;
            assert_ok(ctx, spmv_matrix_generate(ctx, specs[k], way == 0 ? SPMV_F64 : SPMV_F32, &matrix));
            spmv_matrix_view(matrix, &a);
            o.type = way == 1 ? SPMV_F32 : SPMV_F64;
            check_both(ctx, &a, &o);
            spmv_matrix_destroy(matrix);
        }
}

/* --------------------------------------------------------------- rungs on a GPU */

static int count_iteration(int64_t iteration, double residual, void *user)
{
    int64_t *const next = user;
    assert_true(iteration == *next && residual > 0);
    ++*next;
    return 0;
}

/* Solves A x = b for an x with few different elements, by a rung; returns the iterations. */
static int64_t solve_by(spmv_context *ctx, const spmv_csr *a, spmv_type type, const char *rung, bool listens)
{
    const int64_t n = a->rows;
    const double rtol = type == SPMV_F64 ? 1e-10 : 1e-4;
    spmv_plan *plan = NULL;
    spmv_plan_options plan_options = support_plan_options();
    spmv_preconditioner *m = NULL;
    spmv_preconditioner_options o;
    spmv_cg_options options;
    spmv_cg_result result;
    int64_t next = 0;
    double *const ones = support_zeros(n, sizeof *ones), *const x = support_zeros(n, sizeof *x);
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1 + (double)(i % 3);
    plan_options.type = type;
    assert_ok(ctx, spmv_plan_create(ctx, a, &plan_options, &plan));
    spmv_preconditioner_options_init(&o, sizeof o);
    o.type = type;
    o.degree = listens ? 1 : -1;
    assert_ok(ctx, spmv_preconditioner_create(ctx, "fsai", a, &o, &m));
    void *const b = support_upload_as(ctx, type, ones, n, 0), *const to = support_upload_as(ctx, type, ones, n, 0);
    assert_ok(ctx, spmv_apply(plan, NULL, to, NULL, b));
    spmv_cg_options_init(&options, sizeof options);
    options.precond = m;
    options.rung = rung;
    options.rtol = rtol;
    options.zero_start = 1;
    options.max_iterations = 5000;
    options.on_iteration = listens ? count_iteration : NULL;
    options.user = &next;
    assert_ok(ctx, spmv_cg(plan, b, to, &options, &result, sizeof result));
    if (strcmp(result.rung, rung != NULL ? rung : "persistent") != 0)
        fail_msg("rung %s for %lld rows (%s)", result.rung, (long long)n, result.why);
    assert_true(result.true_residual <= result.tolerance);
    assert_true(!listens || next == result.iterations + 1);
    support_fetch_as(ctx, type, to, n, x);
    for (int64_t i = 0; i < n; i++)
        assert_true(fabs(x[i] - ones[i]) < (listens ? 1e-2 : 20 * (double)n * rtol));
    support_free_in(ctx, b, to);
    support_free(ones, x);
    spmv_preconditioner_destroy(m);
    spmv_plan_destroy(plan);
    return result.iterations;
}

/* The kernel for all steps takes as many iterations as the graph, in each type, with one block and with
 * several, and over several launches. */
static void in_one_kernel(void **state)
{
    spmv_context *ctx = *state;
    /* on a GPU also clusters of blocks, and the grid, with one and two rows a thread */
    static const char *const specs[] = {"poisson2d:1",        "poisson2d:7",        "diffusion2d:13,100",
                                        "diffusion2d:40,100", "diffusion2d:60,100", "diffusion2d:100,100",
                                        "poisson2d:270"};
    enum { SPECS = SLOW ? 3 : (int)(sizeof specs / sizeof *specs) };
    if (support_backend != SPMV_BACKEND_CUDA)
        skip();
    for (int k = 0; k < SPECS; k++)
        for (int way = 0; way < 3; way++) { /* f64, f32, and an f32 matrix with f64 vectors */
            spmv_matrix *matrix = NULL;
            spmv_csr a;
            const spmv_type type = way == 1 ? SPMV_F32 : SPMV_F64;
            assert_ok(ctx, spmv_matrix_generate(ctx, specs[k], way == 0 ? SPMV_F64 : SPMV_F32, &matrix));
            spmv_matrix_view(matrix, &a);
            const int64_t one = solve_by(ctx, &a, type, NULL, false), graph = solve_by(ctx, &a, type, "graph", false);
            if (llabs(one - graph) > 1 + graph / 20)
                fail_msg("%s, way %d: %lld iterations, graph %lld", specs[k], way, (long long)one, (long long)graph);
            spmv_matrix_destroy(matrix);
        }
    enum { LINE = 560 }; /* two rows a thread */
    int32_t ptr[LINE + 1] = {0}, col[3 * LINE], end = 0;
    double val[3 * LINE];
    for (int32_t i = 0; i < LINE; i++) {
        for (int32_t j = i > 0 ? i - 1 : 0; j <= i + 1 && j < LINE; j++) {
            col[end] = j;
            val[end++] = i == j ? 2 : -1;
        }
        ptr[i + 1] = end;
    }
    const spmv_csr line = support_csr(LINE, LINE, ptr, col, val);
    assert_true(solve_by(ctx, &line, SPMV_F64, NULL, true) > 256); /* a launch with a callback has 256 steps */
}

SUPPORT_MAIN(with_context(rows_as_defined), with_context(product_of_the_factor), with_context(complete_pattern),
             with_context(range_of_f32), with_context(any_order), with_context(pivots), with_context(full_row),
             cmocka_unit_test(same_bits), with_context(degrees), with_context(in_one_kernel),
             with_context(same_in_both_memories))
