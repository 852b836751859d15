/* diffusion2d, diffusion3d, convdiff2d and convdiff3d: against matrices assembled face by face, by
 * hand, and by their properties: symmetry, signs, row sums, the distribution of the coefficients.
 * test_generate.c tests the Laplacians; test_families.c what is common to all generators.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>

#include "formats/generate/random.h"
#include "tests/support/support_generate.h"

/* ---------------------------------------------------------------- cells by their coordinates */

static int64_t points_of(int64_t n, int axes)
{
    return axes == 2 ? n * n : n * n * n;
}

static int64_t stride_of(int64_t n, int axis)
{
    return axis == 0 ? 1 : axis == 1 ? n : n * n;
}

static int64_t coordinate(int64_t point, int64_t n, int axis)
{
    return point / stride_of(n, axis) % n;
}

/* The number of neighbours of a point outside the grid along one axis. */
static int outside(int64_t point, int64_t n, int axis)
{
    return (coordinate(point, n, axis) == 0) + (coordinate(point, n, axis) == n - 1);
}

static double magnitude_sum(const spmv_csr *a, int64_t row)
{
    double sum = 0;
    for (int64_t k = row_first(a, row); k < row_first(a, row + 1); k++)
        sum += fabs(support_value(a, k));
    return sum;
}

/* ---------------------------------------------------------------------------------- diffusion */

struct problem {
    int axes;
    int64_t n;
    double contrast, aniso;
    uint64_t seed;
};

static const struct problem problems[] = {
    {2, 1, 100, 1, 1},   {2, 2, 10, 3, 7}, {2, 7, 1, 1, 1},        {2, 9, 1000000, 0.001, 1},
    {2, 12, 2.5, 40, 3}, {3, 1, 50, 4, 1}, {3, 4, 123.5, 0.25, 2}, {3, 5, 10000, 1, 1},
};
enum { PROBLEMS = sizeof problems / sizeof problems[0] };

static void spec_of(const struct problem *p, char *spec, size_t size)
{
    snprintf(spec, size, "diffusion%dd:%lld,%.15g,%.15g,seed=%d", p->axes, (long long)p->n, p->contrast, p->aniso,
             (int)p->seed);
}

static double cell(const struct problem *p, int64_t i)
{
    return pow(p->contrast, random_uniform(random_bits(p->seed, 0x646966, (uint64_t)i)));
}

/* The dense matrix: each face adds its coefficient to the two diagonals and subtracts it from the
 * two entries beside them. The flux through a face is the difference of u over the resistances of
 * the two half cells, 1 / (2 k) each; on the boundary there is one half cell. */
static double *assemble(const struct problem *p)
{
    const int64_t points = points_of(p->n, p->axes);
    double *const a = support_array(points * points, sizeof *a);
    for (int64_t i = 0; i < points; i++) {
        for (int axis = 0; axis < p->axes; axis++) {
            const double s = axis == 0 ? p->aniso : 1, half = 1 / (2 * cell(p, i));
            a[i * points + i] += outside(i, p->n, axis) * s / half;
            if (coordinate(i, p->n, axis) == p->n - 1)
                continue;
            const int64_t j = i + stride_of(p->n, axis);
            const double face = s / (half + 1 / (2 * cell(p, j)));
            a[i * points + i] += face;
            a[j * points + j] += face;
            a[i * points + j] -= face;
            a[j * points + i] -= face;
        }
    }
    return a;
}

static void check_assembled(spmv_context *ctx, const struct problem *p)
{
    char spec[128];
    spmv_csr a;
    spec_of(p, spec, sizeof spec);
    spmv_matrix *const m = generated(ctx, spec, SPMV_F64, &a);
    const int64_t points = points_of(p->n, p->axes);
    double *const expected = assemble(p);
    int64_t entries = 0;
    assert_true(a.rows == points && a.cols == points);
    for (int64_t i = 0; i < points; i++) {
        for (int64_t j = 0; j < points; j++) {
            const double e = expected[i * points + j];
            entries += e != 0;
            if (!(fabs(entry(&a, i, j) - e) <= 50 * DBL_EPSILON * fabs(e)))
                fail_msg("%s: entry (%lld, %lld) is %.17g instead of %.17g", spec, (long long)i, (long long)j,
                         entry(&a, i, j), e);
        }
    }
    assert_int_equal(a.nnz, entries);
    free(expected);
    spmv_matrix_destroy(m);
}

static void diffusion_assembled(void **state)
{
    spmv_context *ctx = *state;
    for (int i = 0; i < PROBLEMS; i++)
        check_assembled(ctx, &problems[i]);
}

static void assert_dense(spmv_context *ctx, const char *spec, int64_t rows, const double *expected)
{
    spmv_csr a;
    spmv_matrix *const m = generated(ctx, spec, SPMV_F64, &a);
    assert_int_equal(a.rows, rows);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < rows; j++)
            if (entry(&a, i, j) != expected[i * rows + j])
                fail_msg("%s: entry (%d, %d) is %g instead of %g", spec, (int)i, (int)j, entry(&a, i, j),
                         expected[i * rows + j]);
    spmv_matrix_destroy(m);
}

/* Without contrast all coefficients are 1. A cell of a 2 x 2 grid has two faces on the boundary, of
 * 2 each. ANISO acts on the faces in x direction only, those on the boundary included. */
static void by_hand(void **state)
{
    spmv_context *ctx = *state;
    assert_dense(ctx, "diffusion2d:1,1", 1, (const double[]){8});
    assert_dense(ctx, "diffusion3d:1,1", 1, (const double[]){12});
    assert_dense(ctx, "diffusion3d:1,1,10", 1, (const double[]){48});
    assert_dense(ctx, "diffusion2d:2,1", 4, (const double[]){6, -1, -1, 0, -1, 6, 0, -1, -1, 0, 6, -1, 0, -1, -1, 6});
    assert_dense(ctx, "diffusion2d:2,1,10", 4,
                 (const double[]){33, -10, -1, 0, -10, 33, 0, -1, -1, 0, 33, -10, 0, -1, -10, 33});
    assert_dense(ctx, "convdiff2d:1,3", 1, (const double[]){8.5});
    assert_dense(ctx, "convdiff3d:1,4", 1, (const double[]){13});
    assert_dense(ctx, "convdiff2d:2,2", 4, (const double[]){7, -1, -1, 0, -3, 7, 0, -1, -2, 0, 7, -1, 0, -2, -3, 7});
}

/* Symmetric to the bit, in f64 and f32; diagonal positive, other entries negative; the sum of a row
 * is that of its faces on the boundary, up to rounding. So the matrix is positive definite. */
static void check_definite(spmv_context *ctx, const struct problem *p, spmv_type type)
{
    char spec[128];
    spmv_csr a;
    spec_of(p, spec, sizeof spec);
    spmv_matrix *const m = generated(ctx, spec, type, &a);
    const double eps = type == SPMV_F64 ? DBL_EPSILON : FLT_EPSILON;
    assert_int_equal(a.nnz, (1 + 2 * p->axes) * a.rows - 2 * p->axes * (a.rows / p->n));
    for (int64_t i = 0; i < a.rows; i++) {
        double sum = 0, boundary = 0;
        for (int64_t k = row_first(&a, i); k < row_first(&a, i + 1); k++) {
            const double v = support_value(&a, k);
            assert_true(a.col[k] == i ? v > 0 : v < 0);
            assert_true(v == entry(&a, a.col[k], i));
            sum += v;
        }
        for (int axis = 0; axis < p->axes; axis++)
            boundary += outside(i, p->n, axis) * (axis == 0 ? p->aniso : 1) * 2 * cell(p, i);
        assert_true(fabs(sum - boundary) <= 20 * eps * magnitude_sum(&a, i));
    }
    spmv_matrix_destroy(m);
}

static void diffusion_definite(void **state)
{
    static const struct problem larger[] = {{2, 33, 10000, 1, 1}, {2, 33, 100, 0.01, 5}, {3, 11, 100000000, 7, 1}};
    spmv_context *ctx = *state;
    for (int i = 0; i < 3; i++) {
        check_definite(ctx, &larger[i], SPMV_F64);
        check_definite(ctx, &larger[i], SPMV_F32);
    }
}

/* The logarithms of the coefficients are uniform: a cell alone in its grid has 8 k on the diagonal.
 * 4000 seeds: mean and variance within 5 standard deviations. */
static void diffusion_coefficients(void **state)
{
    enum { SEEDS = 4000 };
    const double contrast = 10000;
    spmv_context *ctx = *state;
    double sum = 0, squares = 0, least = 1, most = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        char spec[64];
        spmv_csr a;
        snprintf(spec, sizeof spec, "diffusion2d:1,10000,seed=%d", seed);
        spmv_matrix *const m = generated(ctx, spec, SPMV_F64, &a);
        const double u = log(support_value(&a, 0) / 8) / log(contrast);
        sum += u;
        squares += (u - 0.5) * (u - 0.5);
        least = fmin(least, u);
        most = fmax(most, u);
        spmv_matrix_destroy(m);
    }
    /* variances of u and of (u - 1/2)^2: 1 / 12 and 1 / 180 */
    assert_true(fabs(sum / SEEDS - 0.5) < 5 / sqrt(12.0 * SEEDS));
    assert_true(fabs(squares / SEEDS - 1.0 / 12) < 5 / sqrt(180.0 * SEEDS));
    assert_true(least >= -DBL_EPSILON && least < 0.01 && most <= 1 + DBL_EPSILON && most > 0.99);
}

/* The seed changes coefficients; ANISO = 1 is the default. */
static void diffusion_options(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a, b;
    spmv_matrix *const m = generated(ctx, "diffusion2d:20,100", SPMV_F64, &a);
    spmv_matrix *n = generated(ctx, "diffusion2d:20,100,1,seed=1,values=own", SPMV_F64, &b);
    assert_same_matrix(m, n);
    spmv_matrix_destroy(n);
    n = generated(ctx, "diffusion2d:20,100,seed=2", SPMV_F64, &b);
    int64_t differ = 0;
    for (int64_t k = 0; k < a.nnz; k++)
        differ += support_value(&a, k) != support_value(&b, k);
    assert_int_equal(differ, a.nnz);
    spmv_matrix_destroy(n);
    spmv_matrix_destroy(m);
}

/* ----------------------------------------------------------------- convection and diffusion */

/* Entries by coordinates; row sums are 0 inside, and positive where a neighbour is outside the
 * grid: 1 + P if it is the one below, 1 if it is the one above. */
static void check_convdiff(spmv_context *ctx, int axes, int64_t n, double peclet, spmv_type type)
{
    char spec[64];
    spmv_csr a;
    snprintf(spec, sizeof spec, "convdiff%dd:%lld,%.15g", axes, (long long)n, peclet);
    spmv_matrix *const m = generated(ctx, spec, type, &a);
    const double eps = type == SPMV_F64 ? DBL_EPSILON : FLT_EPSILON;
    assert_true(a.rows == points_of(n, axes) && a.cols == a.rows);
    assert_int_equal(a.nnz, (1 + 2 * axes) * a.rows - 2 * axes * (a.rows / n));
    for (int64_t i = 0; i < a.rows; i++) {
        double diagonal = 0, sum = 0, lost = 0;
        for (int axis = 0; axis < axes; axis++) {
            const double p = ldexp(peclet, -axis), below = support_round(type, -(1 + p));
            const int64_t stride = stride_of(n, axis);
            const bool first = coordinate(i, n, axis) == 0, last = coordinate(i, n, axis) == n - 1;
            diagonal += 2 + p;
            lost += first * (1 + p) + last;
            if (!first)
                assert_true(entry(&a, i, i - stride) == below);
            if (!last)
                assert_true(entry(&a, i, i + stride) == -1);
        }
        for (int64_t k = row_first(&a, i); k < row_first(&a, i + 1); k++)
            sum += support_value(&a, k);
        assert_true(fabs(entry(&a, i, i) - diagonal) <= eps * diagonal);
        assert_true(fabs(sum - lost) <= 10 * eps * magnitude_sum(&a, i));
    }
    spmv_matrix_destroy(m);
}

static void convdiff_entries(void **state)
{
    static const double peclets[] = {0, 0.5, 0.1, 2, 1234.5, 1e9};
    spmv_context *ctx = *state;
    for (size_t p = 0; p < sizeof peclets / sizeof peclets[0]; p++) {
        for (spmv_type type = SPMV_F64;; type = SPMV_F32) {
            check_convdiff(ctx, 2, 1, peclets[p], type);
            check_convdiff(ctx, 2, 2, peclets[p], type);
            check_convdiff(ctx, 2, 13, peclets[p], type);
            check_convdiff(ctx, 3, 1, peclets[p], type);
            check_convdiff(ctx, 3, 6, peclets[p], type);
            if (type == SPMV_F32)
                break;
        }
    }
}

/* Row sums are not negative if PECLET has few digits, so that nothing is rounded. Not symmetric,
 * with the pattern symmetric; without wind it is the Laplacian. */
static void convdiff_properties(void **state)
{
    spmv_context *ctx = *state;
    static const char *const with[] = {"convdiff2d:30,6.5", "convdiff3d:9,6.5"};
    static const char *const without[] = {"convdiff2d:30,0", "convdiff3d:9,0"};
    static const char *const laplacians[] = {"poisson2d:30", "poisson3d:9"};
    for (int d = 0; d < 2; d++) {
        spmv_csr a, b;
        spmv_statistics s;
        spmv_matrix *m = generated(ctx, with[d], SPMV_F64, &a);
        int64_t unequal = 0;
        for (int64_t i = 0; i < a.rows; i++) {
            double sum = 0;
            for (int64_t k = row_first(&a, i); k < row_first(&a, i + 1); k++) {
                sum += support_value(&a, k);
                unequal += support_value(&a, k) != entry(&a, a.col[k], i);
            }
            assert_true(sum >= 0 && entry(&a, i, i) > 0);
        }
        assert_int_equal(unequal, a.nnz - a.rows); /* all but the diagonal */
        assert_ok(ctx, spmv_matrix_statistics(ctx, &a, &s, sizeof s));
        assert_int_equal(s.pattern_symmetric, 1);
        spmv_matrix_destroy(m);
        m = generated(ctx, without[d], SPMV_F64, &a);
        spmv_matrix *const n = generated(ctx, laplacians[d], SPMV_F64, &b);
        assert_same_matrix(m, n);
        spmv_matrix_destroy(n);
        spmv_matrix_destroy(m);
    }
}

/* A matrix above the memory limit is refused before it is generated. */
static void refused_for_memory(void **state)
{
    static const char *const specs[] = {"diffusion2d:1000,10", "diffusion3d:100,10", "convdiff2d:1000,1",
                                        "convdiff3d:100,1"};
    spmv_context *ctx = *state;
    spmv_generate_options options = support_generate_options();
    options.max_bytes = 1000000;
    for (int s = 0; s < 4; s++) {
        spmv_matrix *m = NULL;
        assert_fails(ctx, spmv_matrix_generate_within(ctx, specs[s], &options, &m), SPMV_ERROR_MEMORY, specs[s]);
        assert_null(m);
    }
}

SUPPORT_MAIN(with_context(diffusion_assembled), with_context(by_hand), with_context(diffusion_definite),
             with_context(diffusion_coefficients), with_context(diffusion_options), with_context(convdiff_entries),
             with_context(convdiff_properties), with_context(refused_for_memory))
