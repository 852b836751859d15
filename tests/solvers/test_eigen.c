/* Eigenvalues and singular values against closed forms: grids, paths, circulants, hypercubes, with multiplicities and
 * clusters; mass matrices; singular Laplacians; complex matrices; every failure.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/eigen.h>
#include <spmv/solvers.h>
#include <stdlib.h>

#include "tests/support/support.h"
#include "tests/support/support_slow.h"

static const double pi = 3.14159265358979323846;

/* ------------------------------------------------------------- matrices */

/* A matrix that is filled entry by entry, row by row. */
struct built {
    int64_t *row_ptr;
    int32_t *col;
    double *val; /* pairs for complex ones */
    void *typed;
    int64_t rows, cols, nnz;
    spmv_type type;
    spmv_csr view;
};

static struct built build(int64_t rows, int64_t cols, int64_t room, spmv_type type)
{
    return (struct built){.row_ptr = support_zeros(rows + 1, 8),
                          .col = support_zeros(room, 4),
                          .val = support_zeros(2 * room, 8),
                          .rows = rows,
                          .cols = cols,
                          .type = type};
}

static void put(struct built *b, int64_t col, double re, double im)
{
    b->col[b->nnz] = (int32_t)col;
    b->val[2 * b->nnz] = re;
    b->val[2 * b->nnz++ + 1] = im;
}

static const spmv_csr *built_view(struct built *b)
{
    const int parts = type_parts(b->type);
    b->typed = support_zeros(b->nnz > 0 ? b->nnz : 1, 16);
    for (int64_t k = 0; k < b->nnz; k++)
        for (int c = 0; c < parts; c++)
            real_set(type_part(b->type), b->typed, k * parts + c, b->val[2 * k + c]);
    b->view = support_view(b->rows, b->cols, b->nnz, b->row_ptr, b->col, b->typed, b->type);
    return &b->view;
}

static void built_free(struct built *b)
{
    support_free(b->row_ptr, b->col, b->val);
    free(b->typed);
}

/* The Laplacian of a path or cycle of n vertices; Dirichlet: diagonal 2. */
enum ends { DIRICHLET, NEUMANN, PERIODIC };
static struct built line(int n, enum ends ends, spmv_type type)
{
    struct built b = build(n, n, 3 * (int64_t)n, type);
    for (int i = 0; i < n; i++) {
        const bool first = i == 0, last = i == n - 1;
        if (ends == PERIODIC && last)
            put(&b, 0, -1, 0);
        if (!first)
            put(&b, i - 1, -1, 0);
        put(&b, i, ends == NEUMANN ? 2 - first - last : 2, 0);
        if (!last)
            put(&b, i + 1, -1, 0);
        if (ends == PERIODIC && first)
            put(&b, n - 1, -1, 0);
        b.row_ptr[i + 1] = b.nnz;
    }
    return b;
}

static double line_value(int n, enum ends ends, int j)
{
    const double half = ends == DIRICHLET ? (j + 1) * pi / (2 * (n + 1))
                        : ends == NEUMANN ? j * pi / (2 * n)
                                          : j * pi / n;
    return 4 * sin(half) * sin(half);
}

/* The Kronecker sum of three lines: a grid with ends of its own in each direction. */
static struct built grid(const int n[3], enum ends ends, spmv_type type)
{
    const int64_t rows = (int64_t)n[0] * n[1] * n[2];
    struct built b = build(rows, rows, 7 * rows, type);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t stride[3] = {1, n[0], (int64_t)n[0] * n[1]};
        double diagonal = 0;
        for (int d = 2; d >= 0; d--) /* columns need not ascend */
            for (int side = -1; side <= 1; side += 2) {
                const int64_t at = i / stride[d] % n[d] + side;
                const bool inside = at >= 0 && at < n[d];
                diagonal += n[d] > 1 && (inside || ends == DIRICHLET);
                if (inside)
                    put(&b, i + side * stride[d], -1, 0);
            }
        put(&b, i, diagonal, 0);
        b.row_ptr[i + 1] = b.nnz;
    }
    return b;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All its eigenvalues, ascending. */
static double *grid_values(const int n[3], enum ends ends)
{
    double *const values = support_zeros((int64_t)n[0] * n[1] * n[2], 8);
    int64_t count = 0;
    for (int i = 0; i < n[0]; i++)
        for (int j = 0; j < n[1]; j++)
            for (int k = 0; k < n[2]; k++)
                values[count++] = (n[0] > 1 ? line_value(n[0], ends, i) : 0) +
                                  (n[1] > 1 ? line_value(n[1], ends, j) : 0) +
                                  (n[2] > 1 ? line_value(n[2], ends, k) : 0);
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values;
}

/* ------------------------------------------------------------- the checks */

static spmv_eigen_options options_for(int pairs, spmv_eigen_which which, const char *solver)
{
    spmv_eigen_options o;
    spmv_eigen_options_init(&o, sizeof o);
    o.pairs = pairs;
    o.which = which;
    o.solver = solver;
    return o;
}

/* Solves, and compares with known values in the order of the result: errors are within the bounds told. */
static spmv_eigen_result solved(spmv_context *ctx, const spmv_csr *a, const spmv_eigen_options *o, const double *known)
{
    spmv_eigen_result r[64];
    double values[64];
    assert_true(o->pairs <= 64);
    assert_ok(ctx, spmv_eigs(ctx, a, o, values, NULL, r, sizeof *r));
    for (int j = 0; j < o->pairs; j++) {
        const double floor = 1e-13 * (fabs(known[0]) + fabs(known[o->pairs - 1]));
        const double error = fabs(r[j].value - known[j]);
        if (!(error <= r[j].error_bound + floor && error <= r[j].separated_bound + floor))
            print_error("pair %d: %.17g, known %.17g, error %.3g, bounds %.3g %.3g\n", j, r[j].value, known[j], error,
                        r[j].error_bound, r[j].separated_bound);
        assert_true(values[j] == r[j].value && r[j].status == SPMV_OK && r[j].residual <= r[j].tolerance);
        assert_true(error <= r[j].error_bound + floor && error <= r[j].separated_bound + floor);
        assert_true(r[j].separated_bound <= r[j].error_bound);
    }
    return r[0];
}

static void with_values(void **state, struct built *b, double *known, int pairs, spmv_eigen_which which,
                        const char *solver)
{
    spmv_eigen_options o = options_for(pairs, which, solver);
    const spmv_eigen_result r = solved(*state, built_view(b), &o, known);
    assert_string_equal(r.solver, solver);
    built_free(b);
    free(known);
}

static void reverse(double *values, int64_t n)
{
    for (int64_t i = 0; i < n / 2; i++) {
        const double value = values[i];
        values[i] = values[n - 1 - i];
        values[n - 1 - i] = value;
    }
}

/* Values of multiplicity 3 and 6. */
static void cubes(void **state)
{
    static const int n[3] = {SLOW ? 4 : 11, SLOW ? 4 : 11, SLOW ? 4 : 11};
    struct built b = grid(n, DIRICHLET, SPMV_F64);
    with_values(state, &b, grid_values(n, DIRICHLET), SLOW ? 4 : 17, SPMV_EIGEN_SMALLEST, "lobpcg");
    b = grid(n, DIRICHLET, SPMV_F64);
    double *const known = grid_values(n, DIRICHLET);
    reverse(known, (int64_t)n[0] * n[1] * n[2]);
    with_values(state, &b, known, SLOW ? 4 : 11, SPMV_EIGEN_LARGEST, "lanczos");
}

/* A hypercube: value 2 j has the multiplicity of a binomial coefficient, more than a block of lanczos. */
static void hypercube(void **state)
{
    enum { D = SLOW ? 6 : 9, N = 1 << D };
    double *const known = support_zeros(N, 8);
    struct built b = build(N, N, (int64_t)N * (D + 1), SPMV_F64);
    for (int i = 0; i < N; i++) {
        put(&b, i, D, 0);
        int ones = 0;
        for (int d = 0; d < D; d++) {
            put(&b, i ^ 1 << d, -1, 0);
            ones += i >> d & 1;
        }
        known[i] = 2 * ones;
        b.row_ptr[i + 1] = b.nnz;
    }
    qsort(known, N, sizeof *known, ascending);
    reverse(known, N);
    with_values(state, &b, known, SLOW ? 4 : 12, SPMV_EIGEN_LARGEST, "lanczos");
}

/* Singular: the smallest value is 0; of two components, twice. */
static void laplacians(void **state)
{
    static const int n[3] = {SLOW ? 8 : 40, SLOW ? 9 : 23, 1};
    struct built b = grid(n, NEUMANN, SPMV_F64);
    double *known = grid_values(n, NEUMANN);
    spmv_eigen_options o = options_for(6, SPMV_EIGEN_SMALLEST, SLOW ? "lobpcg" : NULL);
    spmv_eigen_result r = solved(*state, built_view(&b), &o, known);
    assert_string_equal(r.solver, "lobpcg");
    assert_string_equal(r.precond, SLOW ? "jacobi" : "amg"); /* of one level, amg is not definite */
    built_free(&b);
    free(known);
    /* two cycles, which are not connected */
    enum { N = SLOW ? 25 : 240 };
    struct built two = build(2 * N, 2 * N, 6 * (int64_t)N, SPMV_F64);
    known = support_zeros(2 * N, 8);
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < N; i++) {
            put(&two, c * N + (i + N - 1) % N, -1, 0);
            put(&two, c * N + i, 2, 0);
            put(&two, c * N + (i + 1) % N, -1, 0);
            known[c * N + i] = line_value(N, PERIODIC, i);
            two.row_ptr[c * N + i + 1] = two.nnz;
        }
    qsort(known, 2 * N, sizeof *known, ascending);
    o.pairs = SLOW ? 6 : 10;
    (void)solved(*state, built_view(&two), &o, known);
    built_free(&two);
    free(known);
}

/* Hermitian circulants: c_0 = 2, c_1 = -w, c_-1 = -conj(w), |w| = 1: 2 - 2 cos(2 pi j / n + arg w). */
static void circulants(void **state)
{
    enum { N = SLOW ? 64 : 400 };
    static const spmv_type types[] = {SPMV_C128, SPMV_C64};
    const double turn = 0.3;
    for (size_t t = 0; t < (SLOW ? 1 : sizeof types / sizeof *types); t++)
        for (int which = 0; which < 2; which++) {
            struct built b = build(N, N, 3 * (int64_t)N, types[t]);
            double *const known = support_zeros(N, 8);
            for (int i = 0; i < N; i++) {
                put(&b, (i + N - 1) % N, -cos(turn), sin(turn));
                put(&b, i, 2.5, 0);
                put(&b, (i + 1) % N, -cos(turn), -sin(turn));
                known[i] = 2.5 - 2 * cos(2 * pi * i / N + turn);
                b.row_ptr[i + 1] = b.nnz;
            }
            qsort(known, N, sizeof *known, ascending);
            if (which == SPMV_EIGEN_LARGEST)
                reverse(known, N);
            spmv_eigen_options o =
                options_for(SLOW ? 1 : 4, (spmv_eigen_which)which, which == SPMV_EIGEN_LARGEST ? "lanczos" : "lobpcg");
            if (types[t] == SPMV_C64) {
                spmv_eigen_result r[4];
                o.rtol = 1e-3;
                assert_ok(*state, spmv_eigs(*state, built_view(&b), &o, NULL, NULL, r, sizeof *r));
                for (int j = 0; j < 4; j++)
                    assert_true(fabs(r[j].value - known[j]) <= 1e-5 + r[j].error_bound);
            } else {
                (void)solved(*state, built_view(&b), &o, known);
            }
            built_free(&b);
            free(known);
        }
}

/* Linear elements on a line: (2 - 2 cos t) / ((4 + 2 cos t) / 6), t = j pi / (n + 1). */
static void mass(void **state)
{
    enum { N = SLOW ? 52 : 400 };
    struct built a = line(N, DIRICHLET, SPMV_F64), m = build(N, N, 3 * (int64_t)N, SPMV_F64);
    double *const known = support_zeros(N, 8);
    for (int i = 0; i < N; i++) {
        const double t = (i + 1) * pi / (N + 1);
        if (i > 0)
            put(&m, i - 1, 1.0 / 6, 0);
        put(&m, i, 4.0 / 6, 0);
        if (i < N - 1)
            put(&m, i + 1, 1.0 / 6, 0);
        m.row_ptr[i + 1] = m.nnz;
        known[i] = (2 - 2 * cos(t)) / ((4 + 2 * cos(t)) / 6);
    }
    const spmv_csr *const view = built_view(&a);
    spmv_eigen_options o = options_for(5, SPMV_EIGEN_SMALLEST, "lobpcg");
    o.mass = built_view(&m);
    (void)solved(*state, view, &o, known);
    if (SLOW)
        o.pairs = 1;
    o.which = SPMV_EIGEN_NEAR;
    o.solver = "lanczos";
    o.shift = (known[3] + known[4]) / 2 + 1e-6;
    const double near[] = {known[4], known[3], known[2], known[5], known[1]};
    (void)solved(*state, view, &o, near);
    o.which = SPMV_EIGEN_LARGEST;
    o.pairs = SLOW ? 1 : 3;
    reverse(known, N);
    (void)solved(*state, view, &o, known);
    o.solver = "dense";
    (void)solved(*state, view, &o, known);
    built_free(&a);
    built_free(&m);
    free(known);
}

/* Vectors are orthonormal, A x = lambda x, and the bits are the same every time. */
/* M = L L' and A = L diag(1, ..., N) L' in exact numbers, where L has ones, and twos below them in groups of GROUP rows: M
 * has a condition number of some 10^5. The bounds hold without any more. */
static void ill_conditioned_mass(void **state)
{
    enum { N = 64, GROUP = 8 };
    if (SLOW)
        return;
    struct built b[2] = {build(N, N, 3 * (int64_t)N, SPMV_F64), build(N, N, 3 * (int64_t)N, SPMV_F64)};
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < N; i++) {
            const double value = which == 0 ? i + 1 : 1, before = which == 0 ? i : 1;
            if (i % GROUP > 0)
                put(&b[which], i - 1, 2 * before, 0);
            put(&b[which], i, value + (i % GROUP > 0 ? 4 * before : 0), 0);
            if (i % GROUP < GROUP - 1)
                put(&b[which], i + 1, 2 * value, 0);
            b[which].row_ptr[i + 1] = b[which].nnz;
        }
    const spmv_csr *const a = built_view(&b[0]), *const m = built_view(&b[1]);
    static const char *const solvers[] = {"dense", "lobpcg", "dense"};
    for (int k = 0; k < 3; k++) {
        spmv_eigen_options o = options_for(3, k < 2 ? SPMV_EIGEN_SMALLEST : SPMV_EIGEN_LARGEST, solvers[k]);
        spmv_eigen_result r[3];
        double values[3];
        o.mass = m;
        assert_ok(*state, spmv_eigs(*state, a, &o, values, NULL, r, sizeof *r));
        for (int j = 0; j < 3; j++) {
            const double error = fabs(values[j] - (k < 2 ? j + 1 : N - j));
            assert_true(error <= r[j].separated_bound && r[j].separated_bound <= r[j].error_bound);
            assert_true(r[j].error_bound <= 1e-6 * N);
        }
    }
    built_free(&b[0]);
    built_free(&b[1]);
}

static void vectors(void **state)
{
    enum { SIDE = SLOW ? 9 : 20, N = SIDE * (SIDE - 1), K = SLOW ? 2 : 6 };
    static const int n[3] = {SIDE, SIDE - 1, 1};
    static const char *const solvers[] = {"lobpcg", "lanczos", "dense"};
    struct built b = grid(n, DIRICHLET, SPMV_F64);
    const spmv_csr *const a = built_view(&b);
    double *const x = support_zeros(N * K, 8), *const y = support_zeros(N * K, 8);
    for (int s = 0; s < 3; s++) {
        spmv_eigen_options o = options_for(K, s == 1 ? SPMV_EIGEN_LARGEST : SPMV_EIGEN_SMALLEST, solvers[s]);
        double values[K];
        void *there = support_upload(*state, x, N * K * 8);
        for (int run = 0; run < 2; run++) {
            assert_ok(*state, spmv_eigs(*state, a, &o, values, there, NULL, 0));
            assert_ok(*state, spmv_download(*state, there, run == 0 ? x : y, N * K * 8));
        }
        assert_memory_equal(x, y, N * K * 8);
        for (int p = 0; p < K; p++)
            for (int q = 0; q < K; q++) {
                double sum = 0;
                for (int i = 0; i < N; i++)
                    sum += x[i * K + p] * x[i * K + q];
                assert_true(fabs(sum - (p == q)) < 1e-8);
            }
        for (int p = 0; p < K; p++)
            for (int i = 0; i < N; i++) {
                double sum = 0;
                for (int64_t k = b.row_ptr[i]; k < b.row_ptr[i + 1]; k++)
                    sum += b.val[2 * k] * x[b.col[k] * K + p];
                assert_true(fabs(sum - values[p] * x[i * K + p]) < 1e-7);
            }
        spmv_free(*state, there);
    }
    support_free(x, y);
    built_free(&b);
}

/* An indefinite matrix: lanczos stands in for the smallest; the largest modulus; a shift inside. */
static void indefinite(void **state)
{
    enum { N = 400, LAST = N - 2 };
    if (SLOW) /* the passes are those of the other tests */
        return;
    struct built b = build(N, N, N, SPMV_F64);
    double smallest[4], modulus[4], near[4];
    for (int i = 0; i < N; i++) {
        put(&b, i, i % 2 ? 1 + 0.01 * i : -2 - 0.02 * i, 0);
        b.row_ptr[i + 1] = b.nnz;
    }
    for (int j = 0; j < 4; j++) {
        smallest[j] = modulus[j] = -2 - 0.02 * (LAST - 2 * j);
        near[j] = 1 + 0.01 * (2 * j + 1);
    }
    const spmv_csr *const a = built_view(&b);
    spmv_eigen_options o = options_for(4, SPMV_EIGEN_SMALLEST, NULL);
    const spmv_eigen_result r = solved(*state, a, &o, smallest);
    assert_string_equal(r.solver, "lanczos");
    o.which = SPMV_EIGEN_MAGNITUDE;
    (void)solved(*state, a, &o, modulus);
    o.which = SPMV_EIGEN_NEAR;
    o.shift = 0.5;
    (void)solved(*state, a, &o, near);
    built_free(&b);
}

/* Singular values of differences along a path: 2 sin(j pi / 2n). */
static void singular_values(void **state)
{
    static const int sizes[] = {40, SLOW ? 70 : 400};
    for (int s = 0; s < 2; s++)
        for (int tall = 0; tall < 2; tall++) {
            const int n = sizes[s], rows = tall ? n : n - 1, cols = tall ? n - 1 : n;
            struct built b = build(rows, cols, 2 * (int64_t)n, SPMV_F64);
            spmv_eigen_result r[5];
            double values[5];
            for (int i = 0; i < rows; i++) {
                if (!tall || i > 0)
                    put(&b, tall ? i - 1 : i, -1, 0);
                if (!tall || i < n - 1)
                    put(&b, tall ? i : i + 1, 1, 0);
                b.row_ptr[i + 1] = b.nnz;
            }
            spmv_eigen_options o = options_for(SLOW ? 2 : 5, SPMV_EIGEN_LARGEST, NULL);
            o.solver = s == 1 ? "lanczos" : NULL;
            assert_ok(*state, spmv_svds(*state, built_view(&b), &o, values, NULL, NULL, r, sizeof *r));
            assert_string_equal(r[0].solver, s == 0 ? "dense" : "lanczos");
            for (int j = 0; j < o.pairs; j++) {
                const double known = 2 * sin((n - 1 - j) * pi / (2 * n));
                assert_true(fabs(values[j] - known) <= r[j].separated_bound + 1e-13);
                assert_true(r[j].residual <= r[j].tolerance);
            }
            built_free(&b);
        }
}

/* Ten equal paths: each value has ten copies, of which as many as are wanted must come. */
static void copies(void **state)
{
    enum { PATHS = 10, EACH = SLOW ? 12 : 40, ROWS = PATHS * EACH, WANTED = 6 };
    static const double tolerances[] = {1e-8, 1e-4};
    struct built b = build(ROWS, ROWS, 3 * (int64_t)ROWS, SPMV_F64);
    double known[WANTED];
    for (int i = 0; i < ROWS; i++) {
        if (i % EACH > 0)
            put(&b, i - 1, -1, 0);
        put(&b, i, 2, 0);
        if (i % EACH < EACH - 1)
            put(&b, i + 1, -1, 0);
        b.row_ptr[i + 1] = b.nnz;
    }
    for (int j = 0; j < WANTED; j++)
        known[j] = 2 + 2 * cos(pi / (EACH + 1));
    const spmv_csr *const a = built_view(&b);
    for (int t = 0; t < 2; t++) {
        spmv_eigen_options o = options_for(WANTED, SPMV_EIGEN_LARGEST, "lanczos");
        o.rtol = tolerances[t];
        (void)solved(*state, a, &o, known);
    }
    built_free(&b);
}

/* ------------------------------------------------------------- failures */

static int stop_at_3(int64_t iteration, int pairs, const double *values, const double *residuals, void *user)
{
    (void)pairs;
    (void)values;
    (void)residuals;
    (void)user;
    return iteration == 3;
}

static void refuse(void **state, spmv_status expected, const spmv_csr *a, const spmv_eigen_options *o,
                   const char *words)
{
    spmv_eigen_result r[SPMV_EIGEN_MOST_PAIRS + 1];
    double values[SPMV_EIGEN_MOST_PAIRS + 1];
    assert_int_equal(spmv_eigs(*state, a, o, values, NULL, r, sizeof *r), expected);
    if (strstr(spmv_last_error(*state), words) == NULL)
        print_error("%s\n", spmv_last_error(*state));
    assert_non_null(strstr(spmv_last_error(*state), words));
}

static void failures(void **state)
{
    static const int n[3] = {22, 21, 1};
    struct built b = grid(n, DIRICHLET, SPMV_F64), flat = build(4, 5, 8, SPMV_F64),
                 turned = line(400, DIRICHLET, SPMV_F64), bad = line(22 * 21, DIRICHLET, SPMV_F64),
                 hidden = line(22 * 21, DIRICHLET, SPMV_F64);
    const spmv_csr *const a = built_view(&b);
    spmv_eigen_options o = options_for(4, SPMV_EIGEN_SMALLEST, "lobpcg");
    o.max_iterations = 2;
    refuse(state, SPMV_ERROR_ITERATIONS, a, &o, "limit of 2 iterations");
    o.solver = "lanczos";
    o.which = SPMV_EIGEN_LARGEST;
    o.max_iterations = 1;
    refuse(state, SPMV_ERROR_ITERATIONS, a, &o, "limit of 1 restarts");
    o = options_for(4, SPMV_EIGEN_SMALLEST, "lobpcg");
    o.on_iteration = stop_at_3;
    refuse(state, SPMV_CANCELLED, a, &o, "cancelled");
    o.on_iteration = NULL;
    o.rtol = 1e-17; /* 64 roundoffs of ||A|| are allowed all the same */
    double *const known = grid_values(n, DIRICHLET);
    (void)solved(*state, a, &o, known);
    free(known);
    o = options_for(4, SPMV_EIGEN_SMALLEST, "none such");
    refuse(state, SPMV_ERROR_METHOD, a, &o, "lanczos");
    o.solver = "lobpcg";
    o.which = SPMV_EIGEN_LARGEST;
    refuse(state, SPMV_ERROR_UNSUPPORTED, a, &o, "take lanczos");
    o = options_for(200, SPMV_EIGEN_SMALLEST, "lobpcg");
    refuse(state, SPMV_ERROR_UNSUPPORTED, a, &o, "take dense");
    o = options_for(5, SPMV_EIGEN_SMALLEST, NULL);
    refuse(state, SPMV_ERROR_NOT_SQUARE, built_view(&flat), &o, "spmv_svds");
    o.pairs = 257;
    refuse(state, SPMV_ERROR_ARGUMENT, a, &o, "pairs");
    o.pairs = -1;
    refuse(state, SPMV_ERROR_ARGUMENT, a, &o, "pairs");
    o = options_for(4, SPMV_EIGEN_SMALLEST, NULL);
    o.precond = "ilu0";
    refuse(state, SPMV_ERROR_UNSUPPORTED, a, &o, "not symmetric");
    o.precond = NULL;
    turned.val[2] = 7;
    refuse(state, SPMV_ERROR_NOT_SYMMETRIC, built_view(&turned), &o, "not symmetric");
    /* mass matrices: of another size, with a negative diagonal entry, indefinite with a positive diagonal */
    o.mass = &turned.view;
    refuse(state, SPMV_ERROR_SIZE, a, &o, "mass matrix");
    bad.val[0] = -2;
    o.mass = built_view(&bad);
    refuse(state, SPMV_ERROR_NOT_POSITIVE, a, &o, "row 0");
    for (int64_t k = 0; k < hidden.nnz; k++)
        hidden.val[2 * k] *= hidden.val[2 * k] < 0 ? 3 : 1;
    o.mass = built_view(&hidden);
    refuse(state, SPMV_ERROR_NOT_POSITIVE, a, &o, "not positive definite");
    /* a shift that is an eigenvalue, exactly: solves are with one beside it */
    struct built d = build(400, 400, 400, SPMV_F64);
    for (int i = 0; i < 400; i++) {
        put(&d, i, i + 1, 0);
        d.row_ptr[i + 1] = d.nnz;
    }
    o = options_for(3, SPMV_EIGEN_NEAR, "lanczos");
    o.shift = 7;
    o.pairs = 1;
    (void)solved(*state, built_view(&d), &o, &o.shift);
    /* numbers whose squares leave the range */
    for (int i = 0; i < 400; i++)
        d.val[2 * i] *= 1e-200;
    free(d.typed);
    d.typed = NULL;
    o.solver = NULL;
    o.which = SPMV_EIGEN_SMALLEST;
    refuse(state, SPMV_ERROR_NOT_FINITE, built_view(&d), &o, "scale the matrix");
    d.val[0] = NAN;
    free(d.typed);
    refuse(state, SPMV_ERROR_NOT_FINITE, built_view(&d), &o, "finite");
    struct built *const all[] = {&b, &flat, &turned, &bad, &hidden, &d};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        built_free(all[i]);
}

SUPPORT_MAIN(with_context(cubes), with_context(hypercube), with_context(laplacians), with_context(circulants),
             with_context(mass), with_context(ill_conditioned_mass), with_context(vectors), with_context(indefinite),
             with_context(singular_values), with_context(copies), with_context(failures))
