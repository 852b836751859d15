/* The generated families: each against a naive definition or its documented properties at small
 * sizes; random ones within a few standard deviations for fixed seeds; properties common to all.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "tests/support/support_generate.h"

static int64_t length_of(const spmv_csr *a, int64_t row)
{
    return row_first(a, row + 1) - row_first(a, row);
}

static int64_t *column_lengths(const spmv_csr *a)
{
    int64_t *count = support_array(a->cols, sizeof *count);
    for (int64_t k = 0; k < a->nnz; k++)
        count[a->col[k]]++;
    return count;
}

/* ------------------------------------------------------------------ deterministic patterns */

typedef double (*cell_fn)(int64_t i, int64_t j, int64_t parameter);

static double cell_stencil27(int64_t i, int64_t j, int64_t n)
{
    int64_t far = 0;
    for (int axis = 0; axis < 3; axis++, i /= n, j /= n)
        far = llabs(i % n - j % n) > far ? llabs(i % n - j % n) : far;
    return far == 0 ? 26 : far == 1 ? -1 : 0;
}

static double cell_band(int64_t i, int64_t j, int64_t half)
{
    return llabs(i - j) <= half;
}

/* The fixed entries of an arrow: row 0, column 0, the diagonal. */
static double cell_arrow(int64_t i, int64_t j, int64_t unused)
{
    (void)unused;
    return i == 0 || j == 0 || i == j;
}

static void check_cells(spmv_context *ctx, const char *spec, int64_t rows, int64_t cols, cell_fn cell,
                        int64_t parameter)
{
    for (spmv_type type = SPMV_F64;; type = SPMV_F32) {
        struct dense d = support_dense(rows, cols);
        spmv_csr a;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++)
                if (cell(i, j, parameter) != 0)
                    support_dense_add(&d, i, j, type, cell(i, j, parameter));
        spmv_matrix *m = generated(ctx, spec, type, &a);
        assert_matrix_is_dense(&a, &d);
        spmv_matrix_destroy(m);
        support_dense_free(&d);
        if (type == SPMV_F32)
            break;
    }
}

/* P = P0 - 1/9 A P0, with A of poisson3d:N and P0 from its definition; n = 100 N + K. */
static double cell_interpolation3d(int64_t i, int64_t j, int64_t n)
{
    const int64_t side = n / 100, k = n % 100, across = (side + k - 1) / k;
    const int64_t at[3] = {i % side, i / side % side, i / side / side};
    double coupled = 0; /* of A P0 */
    bool own = false;
    for (int step = -3; step <= 3; step++) {
        int64_t to[3] = {at[0], at[1], at[2]};
        if (step != 0)
            to[abs(step) - 1] += step < 0 ? -1 : 1;
        if (step != 0 && (to[abs(step) - 1] < 0 || to[abs(step) - 1] >= side))
            continue;
        const bool here = to[0] / k + across * (to[1] / k + across * (to[2] / k)) == j;
        coupled += here ? step == 0 ? 6 : -1 : 0;
        own = own || (step == 0 && here);
    }
    return own - coupled / 9;
}

/* The strain energy of a displacement u of elasticity2d:N or elasticity3d:N is half of u'Au: for a
 * quadratic u = (x^2, 0[, 0]), which is 0 where the grid is clamped, by sums over elements of exact
 * integrals; a rigid body mode has none where its rows do not see the clamped side. */
static void elasticity_energy(void **state)
{
    spmv_context *ctx = *state;
    static const struct {
        const char *matrix, *modes;
        int axes, n;
    } cases[] = {{"elasticity2d:6,0.25", "rigid2d:6", 2, 6}, {"elasticity3d:5,0.25", "rigid3d:5", 3, 5}};
    for (int c = 0; c < 2; c++) {
        spmv_csr a, r;
        spmv_matrix *const matrix = generated(ctx, cases[c].matrix, SPMV_F64, &a);
        spmv_matrix *const modes = generated(ctx, cases[c].modes, SPMV_F64, &r);
        const int n = cases[c].n, axes = cases[c].axes;
        double energy = 0, expected = 0;
        for (int64_t i = 0; i < a.rows; i++) {
            double of_mode[6] = {0};
            for (int64_t k = offset_at(a.row_ptr, a.row_ptr_bits, i); k < offset_at(a.row_ptr, a.row_ptr_bits, i + 1);
                 k++) {
                const double x = (double)(i / axes % n + 1), other = (double)(a.col[k] / axes % n + 1);
                if (i % axes == 0 && a.col[k] % axes == 0)
                    energy += x * x * support_value(&a, k) * other * other;
                for (int64_t e = offset_at(r.row_ptr, r.row_ptr_bits, a.col[k]);
                     e < offset_at(r.row_ptr, r.row_ptr_bits, a.col[k] + 1); e++)
                    of_mode[r.col[e]] += support_value(&a, k) * support_value(&r, e);
            }
            for (int mode = 0; mode < (axes == 2 ? 3 : 6) && i / axes % n > 0; mode++)
                assert_true(fabs(of_mode[mode]) < 1e-12);
        }
        /* in an element from x to x + 1 the interpolated u has the slope 2 x + 1; NU = 1/4: l = m = 2/5 */
        for (int x = 0; x < n; x++)
            expected += 3 * 0.4 * (2 * x + 1) * (2 * x + 1) * pow(n - 1, axes - 1);
        assert_true(fabs(energy - expected) < 1e-12 * expected);
        spmv_matrix_destroy(matrix);
        spmv_matrix_destroy(modes);
    }
}

static void against_cells(void **state)
{
    spmv_context *ctx = *state;
    check_cells(ctx, "stencil27:1", 1, 1, cell_stencil27, 1);
    check_cells(ctx, "stencil27:2", 8, 8, cell_stencil27, 2);
    check_cells(ctx, "stencil27:3", 27, 27, cell_stencil27, 3);
    check_cells(ctx, "stencil27:6", 216, 216, cell_stencil27, 6);
    check_cells(ctx, "interpolation3d:1,1", 1, 1, cell_interpolation3d, 101);
    check_cells(ctx, "interpolation3d:3,1", 27, 27, cell_interpolation3d, 301);
    check_cells(ctx, "interpolation3d:4,2", 64, 8, cell_interpolation3d, 402);
    check_cells(ctx, "interpolation3d:5,3", 125, 8, cell_interpolation3d, 503);
    check_cells(ctx, "diagonal:1,values=constant", 1, 1, cell_band, 0);
    check_cells(ctx, "diagonal:7,values=constant", 7, 7, cell_band, 0);
    check_cells(ctx, "banded:7,0,values=constant", 7, 7, cell_band, 0);
    check_cells(ctx, "banded:9,1,values=constant", 9, 9, cell_band, 1);
    check_cells(ctx, "banded:9,5,values=constant", 9, 9, cell_band, 5);
    check_cells(ctx, "banded:9,8,values=constant", 9, 9, cell_band, 8);
    check_cells(ctx, "banded:9,9223372036854775807,values=constant", 9, 9, cell_band, 100);
    check_cells(ctx, "dense:1,1,values=constant", 1, 1, cell_band, 100);
    check_cells(ctx, "dense:5,3,values=constant", 5, 3, cell_band, 100);
    check_cells(ctx, "dense:3,50,values=constant", 3, 50, cell_band, 100);
    check_cells(ctx, "arrow:1,values=constant", 1, 1, cell_arrow, 0);
    check_cells(ctx, "arrow:2,values=constant", 2, 2, cell_arrow, 0);
    check_cells(ctx, "arrow:12,values=constant", 12, 12, cell_arrow, 0);
    check_cells(ctx, "fem:7,1,1,values=constant", 7, 7, cell_band, 0);
}

/* A row of LEN entries, a column of LEN at the same indices, and OTHERS entries in the other rows,
 * consecutive around the diagonal except column 0. */
static void check_arrow(spmv_context *ctx, int64_t rows, int64_t len, int64_t others)
{
    char spec[64];
    spmv_csr a;
    snprintf(spec, sizeof spec, "arrow:%lld,%lld,%lld", (long long)rows, (long long)len, (long long)others);
    spmv_matrix *m = generated(ctx, spec, SPMV_F64, &a);
    assert_true(a.rows == rows && a.cols == rows && a.nnz == len + (rows - 1) * others);
    assert_int_equal(length_of(&a, 0), len);
    assert_int_equal(a.col[0], 0);
    for (int64_t row = 1; row < rows; row++) {
        const int64_t first = row_first(&a, row), in_column = a.col[first] == 0;
        assert_int_equal(length_of(&a, row), others);
        assert_int_equal(in_column, entry(&a, 0, row) != 0);
        assert_true(entry(&a, row, row) != 0);
        assert_int_equal(a.col[first + others - 1] - a.col[first + in_column], others - 1 - in_column);
        const int64_t before = row - a.col[first + in_column], after = a.col[first + others - 1] - row;
        assert_true(llabs(before - after) <= 1 || a.col[first + in_column] == 1 ||
                    a.col[first + others - 1] == rows - 1);
    }
    spmv_matrix_destroy(m);
}

static void arrows(void **state)
{
    spmv_context *ctx = *state;
    check_arrow(ctx, 1, 1, 1);
    check_arrow(ctx, 3, 1, 2);
    check_arrow(ctx, 3, 2, 2);
    check_arrow(ctx, 3, 3, 3);
    check_arrow(ctx, 100, 1, 2);
    check_arrow(ctx, 100, 75, 4);
    check_arrow(ctx, 100, 5, 7);
    check_arrow(ctx, 100, 99, 99);
    check_arrow(ctx, 100, 100, 100);
    check_arrow(ctx, 1000, 750, 5);
}

/* ------------------------------------------------------------------ random patterns */

/* Row and column lengths are binomial; the sum is within four standard deviations. */
static void uniform_rows(void **state)
{
    enum { ROWS = 20000, COLS = 1000 };
    const double mean = 2.5, variance = mean * (1 - mean / COLS);
    spmv_context *ctx = *state;
    spmv_csr a;
    spmv_matrix *m = generated(ctx, "uniform:20000,1000,2.5", SPMV_F64, &a);
    int64_t *column = column_lengths(&a), empty = 0;
    double squares = 0, column_squares = 0;
    assert_true(a.rows == ROWS && a.cols == COLS);
    assert_true(fabs((double)a.nnz - ROWS * mean) < 4 * sqrt(ROWS * variance));
    for (int64_t row = 0; row < ROWS; row++) {
        const double n = (double)length_of(&a, row);
        squares += (n - mean) * (n - mean);
        empty += n == 0;
    }
    assert_true(fabs(squares / ROWS - variance) < 5 * sqrt((2 * variance * variance + variance) / ROWS));
    const double share = pow(1 - mean / COLS, COLS);
    assert_true(fabs((double)empty - ROWS * share) < 4 * sqrt(ROWS * share));
    /* about 50 in each column, nearly normal: 1000 normalized squares add up to 1000 +-
     * sqrt(2000) */
    for (int col = 0; col < COLS; col++)
        column_squares += ((double)column[col] - 50) * ((double)column[col] - 50) / (50 * (1 - 0.0025));
    assert_true(fabs(column_squares - COLS) < 5 * sqrt(2.0 * COLS));
    free(column);
    spmv_matrix_destroy(m);
    m = generated(ctx, "uniform:9,7,7", SPMV_F64, &a); /* every cell */
    assert_int_equal(a.nnz, 63);
    spmv_matrix_destroy(m);
    m = generated(ctx, "uniform:9,7,0", SPMV_F64, &a);
    assert_true(a.rows == 9 && a.nnz == 0);
    spmv_matrix_destroy(m);
}

static void long_rows(void **state)
{
    static const int64_t cases[][3] = {{1, 1, 1},    {7, 100, 6},   {7, 100, 7},
                                       {3, 100, 99}, {3, 100, 100}, {5, 50000, 2000}};
    spmv_context *ctx = *state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char spec[64];
        spmv_csr a;
        snprintf(spec, sizeof spec, "longrows:%d,%d,%d", (int)cases[c][0], (int)cases[c][1], (int)cases[c][2]);
        spmv_matrix *m = generated(ctx, spec, SPMV_F64, &a);
        assert_true(a.rows == cases[c][0] && a.cols == cases[c][1]);
        for (int64_t row = 0; row < a.rows; row++)
            assert_int_equal(length_of(&a, row), cases[c][2]);
        spmv_matrix_destroy(m);
    }
}

static void check_empty(spmv_context *ctx, const char *spec, int64_t rows, int64_t expected_empty, double mean)
{
    spmv_csr a;
    spmv_matrix *m = generated(ctx, spec, SPMV_F64, &a);
    const double full = (double)(rows - expected_empty);
    int64_t empty = 0, early = 0;
    assert_true(a.rows == rows && a.cols == rows);
    for (int64_t row = 0; row < rows; row++) {
        empty += length_of(&a, row) == 0;
        early += length_of(&a, row) == 0 && row < rows / 2;
    }
    assert_int_equal(empty, expected_empty);
    assert_true(fabs((double)a.nnz - full * mean) <= 4 * sqrt(full * (mean - 1)));
    /* any set of rows: the number in the first half is hypergeometric with a smaller variance */
    assert_true(fabs((double)early - (double)empty / 2) <= 4 * sqrt((double)empty * full / (double)rows) / 2 + 1);
    spmv_matrix_destroy(m);
}

static void empty_rows(void **state)
{
    spmv_context *ctx = *state;
    check_empty(ctx, "empty:10000,0.95", 10000, 9500, 8);
    check_empty(ctx, "empty:10000,0.95,20.5", 10000, 9500, 20.5);
    check_empty(ctx, "empty:10000,0.5,1", 10000, 5000, 1);
    check_empty(ctx, "empty:5000,0,1.25", 5000, 0, 1.25);
    check_empty(ctx, "empty:5000,1", 5000, 5000, 8);
    check_empty(ctx, "empty:1,0", 1, 0, 1);
    check_empty(ctx, "empty:3,0,3", 3, 0, 3);
}

/* Checks the longest row, the sum, the exponent of the tail, and the hubs. */
static void check_powerlaw(spmv_context *ctx, int64_t rows, double mean, double alpha, int64_t max)
{
    char spec[96];
    spmv_csr a;
    snprintf(spec, sizeof spec, "powerlaw:%lld,%g,%g,%lld", (long long)rows, mean, alpha, (long long)max);
    spmv_matrix *m = generated(ctx, spec, SPMV_F64, &a);
    int64_t *column = column_lengths(&a), longest = 0, from_20 = 0, from_40 = 0, widest = 0;
    assert_true(a.rows == rows && a.cols == rows);
    for (int64_t row = 0; row < rows; row++) {
        const int64_t n = length_of(&a, row);
        longest = n > longest ? n : longest;
        widest = column[row] > column[widest] ? row : widest;
        from_20 += n >= 20;
        from_40 += n >= 40;
    }
    assert_int_equal(longest, max);
    assert_true(fabs((double)a.nnz / (double)rows - mean) < 0.02 * mean);
    /* the number of rows of length >= x follows the integral of t^-alpha from x to max */
    const double a1 = 1 - alpha, end = pow((double)max, a1);
    const double expected =
        alpha == 1 ? log((double)max / 39.5) / log((double)max / 19.5) : (pow(39.5, a1) - end) / (pow(19.5, a1) - end);
    assert_true(fabs((double)from_40 / (double)from_20 - expected) < 5 * sqrt(expected / (double)from_20));
    assert_int_equal(length_of(&a, widest), max);
    free(column);
    spmv_matrix_destroy(m);
}

static void powerlaw_rows(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a;
    check_powerlaw(ctx, 50000, 8, 2, 5000);
    check_powerlaw(ctx, 50000, 8, 2.5, 5000);
    check_powerlaw(ctx, 50000, 10.3, 3, 1000);
    check_powerlaw(ctx, 50000, 40, 1, 1000);
    check_powerlaw(ctx, 20000, 105, 0.5, 300);
    /* most rows are empty */
    spmv_matrix *m = generated(ctx, "powerlaw:50000,0.5,2.1,5000", SPMV_F64, &a);
    /* only one or two rows near the longest are random */
    assert_true(fabs((double)a.nnz - 25000) < 2500);
    spmv_matrix_destroy(m);
    m = generated(ctx, "powerlaw:2,2,2,2", SPMV_F64, &a); /* all rows as long as the longest */
    assert_int_equal(a.nnz, 4);
    spmv_matrix_destroy(m);
    m = generated(ctx, "powerlaw:300,100,2,100", SPMV_F64, &a);
    assert_int_equal(a.nnz, 30000);
    spmv_matrix_destroy(m);
}

/* A cell with i levels in the first quarter, k in the last and the rest in the others has
 * probability .57^i .19^(scale-i-k) .05^k, so the expected numbers of empty cells and rows are
 * known exactly. */
static void check_rmat(spmv_context *ctx, int scale, int edges, uint64_t seed)
{
    char spec[64];
    spmv_csr a;
    snprintf(spec, sizeof spec, "rmat:%d,%d,seed=%d", scale, edges, (int)seed);
    spmv_matrix *m = generated(ctx, spec, SPMV_F64, &a);
    const double vertices = ldexp(1, scale), draws = vertices * edges;
    double cells = 0, rows = 0, cells_variance = 0, rows_variance = 0;
    for (int i = 0; i <= scale; i++) {
        for (int k = 0; i + k <= scale; k++) {
            const int j = scale - i - k;
            const double many = exp(lgamma(scale + 1) - lgamma(i + 1) - lgamma(j + 1) - lgamma(k + 1)) * ldexp(1, j);
            const double taken = -expm1(draws * log1p(-pow(.57, i) * pow(.19, j) * pow(.05, k)));
            cells += many * taken;
            cells_variance += many * taken * (1 - taken);
        }
        const double many = exp(lgamma(scale + 1) - lgamma(i + 1) - lgamma(scale - i + 1));
        const double taken = -expm1(draws * log1p(-pow(.76, i) * pow(.24, scale - i)));
        rows += many * taken;
        rows_variance += many * taken * (1 - taken);
    }
    int64_t *column = column_lengths(&a);
    double with_row = 0, with_column = 0, early = 0;
    for (int64_t row = 0; row < a.rows; row++) {
        with_row += length_of(&a, row) > 0;
        with_column += column[row] > 0;
        early += row < a.rows / 2 ? (double)length_of(&a, row) : 0;
    }
    assert_true((double)a.rows == vertices && a.cols == a.rows);
    /* occupied cells are negatively correlated, so the variance is below that of independent
     * ones */
    assert_true(fabs((double)a.nnz - cells) < 4 * sqrt(cells_variance));
    assert_true(fabs(with_row - rows) < 4 * sqrt(rows_variance));
    assert_true(fabs(with_column - rows) < 4 * sqrt(rows_variance));
    /* in vertex order it would be about .76 */
    assert_true(fabs(early / (double)a.nnz - 0.5) < 0.1);
    free(column);
    spmv_matrix_destroy(m);
}

static void rmat_graphs(void **state)
{
    spmv_context *ctx = *state;
    check_rmat(ctx, 12, 16, 1);
    check_rmat(ctx, 13, 4, 2);
    check_rmat(ctx, 11, 1, 3);
    check_rmat(ctx, 15, 16, 4);
    spmv_csr a;
    spmv_matrix *m = generated(ctx, "rmat:1,1000", SPMV_F64, &a);
    assert_true(a.rows == 2 && a.nnz == 4);
    spmv_matrix_destroy(m);
}

/* Dense blocks, a symmetric pattern, the diagonal, the number of neighbours, and only near
 * neighbours. */
static void check_fem(spmv_context *ctx, int64_t nodes, int64_t block, double neighbours)
{
    char spec[64];
    spmv_csr a;
    snprintf(spec, sizeof spec, "fem:%lld,%lld,%g", (long long)nodes, (long long)block, neighbours);
    spmv_matrix *m = generated(ctx, spec, SPMV_F64, &a);
    assert_true(a.rows == nodes * block && a.cols == a.rows);
    for (int64_t row = 0; row < a.rows; row++) {
        const int64_t first = row_first(&a, row), n = length_of(&a, row), head = row_first(&a, row - row % block);
        assert_int_equal(n % block, 0);
        assert_int_equal(n, length_of(&a, row - row % block));
        for (int64_t k = 0; k < n; k++) {
            assert_int_equal(a.col[first + k] % block, k % block);
            assert_int_equal(a.col[first + k], a.col[head + k]);
        }
        assert_true(entry(&a, row, row) != 0);
    }
    spmv_statistics s;
    assert_ok(ctx, spmv_matrix_statistics(ctx, &a, &s, sizeof s));
    assert_int_equal(s.pattern_symmetric, 1);
    /* some of the pairs at the largest distance are random, and each counts twice */
    const double expected = (double)nodes * neighbours;
    assert_true(fabs((double)(a.nnz / (block * block)) - expected) <= 2 * 4 * sqrt(expected / 8));
    spmv_matrix_destroy(m);
}

static void fem_blocks(void **state)
{
    static const double some[] = {1, 4.5, 7, 19, 22.8, 27, 60.25};
    spmv_context *ctx = *state;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        check_fem(ctx, 1000, 1, some[i]);
        check_fem(ctx, 777, 3, some[i]);
    }
    check_fem(ctx, 1, 4, 1);
    /* finally all nodes are neighbours, with any part of the grid: every pair counts once */
    for (int64_t nodes = 1; nodes <= 40; nodes++) {
        char spec[64];
        spmv_csr a;
        snprintf(spec, sizeof spec, "fem:%d,2,%d", (int)nodes, (int)nodes);
        spmv_matrix *m = generated(ctx, spec, SPMV_F64, &a);
        assert_int_equal(a.nnz, 4 * nodes * nodes);
        spmv_matrix_destroy(m);
    }
}

/* ------------------------------------------------------------------ common to all */

/* Each has enough rows or entries for a team (host_team); random and deterministic ones. */
static const char *const specs[] = {
    "stencil27:24",
    "diffusion2d:240,10000,0.1",
    "diffusion3d:35,25",
    "convdiff2d:240,3.5",
    "convdiff3d:35,0.3",
    "diagonal:270000",
    "banded:60000,3",
    "dense:600,500",
    "arrow:140000,70000,4",
    "uniform:300000,90000,2.5",
    "longrows:9,400000,40000",
    "empty:300000,0.5,3",
    "powerlaw:270000,3,2.1,50000",
    "rmat:14,20",
    "fem:20000,2,13.5",
};
enum { SPECS = sizeof specs / sizeof specs[0], FIRST_RANDOM = 8 };

static void same_bits_for_any_team(void **state)
{
    spmv_context *ctx = *state;
    for (int s = 0; s < SPECS; s++) {
        spmv_csr a;
        spmv_matrix *m = generated(ctx, specs[s], SPMV_F64, &a);
        assert_true(a.nnz >= 1 << 18); /* enough for a team */
        spmv_matrix_destroy(m);
        assert_same_for_any_team(specs[s], SPMV_F64);
    }
}

/* f32 values are rounded f64 values; constant and random values; another seed changes random values
 * and random patterns. */
static void options_of_all(void **state)
{
    spmv_context *ctx = *state;
    if (support_backend == SPMV_BACKEND_OMP)
        skip(); /* same_bits_for_any_team compares it with ref */
    for (int s = 0; s < SPECS; s++) {
        char spec[128];
        spmv_csr a, b;
        int64_t differ = 0;
        spmv_matrix *m = generated(ctx, specs[s], SPMV_F64, &a), *n = generated(ctx, specs[s], SPMV_F32, &b);
        assert_int_equal(a.nnz, b.nnz);
        assert_memory_equal(a.col, b.col, (size_t)a.nnz * sizeof *a.col);
        for (int64_t k = 0; k < a.nnz; k++)
            assert_true((float)support_value(&a, k) == ((const float *)b.val)[k]);
        spmv_matrix_destroy(n);

        snprintf(spec, sizeof spec, "%s,values=constant,seed=1", specs[s]);
        n = generated(ctx, spec, SPMV_F64, &b);
        assert_int_equal(a.nnz, b.nnz);
        assert_memory_equal(a.col, b.col, (size_t)a.nnz * sizeof *a.col);
        for (int64_t k = 0; k < b.nnz; k++)
            assert_true(support_value(&b, k) == 1);
        spmv_matrix_destroy(n);

        snprintf(spec, sizeof spec, "%s,seed=2,values=random", specs[s]);
        n = generated(ctx, spec, SPMV_F64, &b);
        for (int64_t k = 0; k < b.nnz; k++) {
            const double v = fabs(support_value(&b, k));
            assert_true(v >= 0.5 && v < 1);
        }
        if (s < FIRST_RANDOM) {
            assert_true(a.nnz == b.nnz && memcmp(a.col, b.col, (size_t)a.nnz * sizeof *a.col) == 0);
        } else {
            assert_true(a.nnz != b.nnz || memcmp(a.col, b.col, (size_t)a.nnz * sizeof *a.col) != 0);
        }
        for (int64_t k = 0; k < 1000; k++)
            differ += support_value(&a, k) != support_value(&b, k);
        assert_true(differ > 990);
        spmv_matrix_destroy(n);
        spmv_matrix_destroy(m);
    }
}

/* Every form starts with a known name, and a malformed SPEC of that name is answered with its
 * form. */
static void forms_are_listed(void **state)
{
    spmv_context *ctx = *state;
    const char *form, *about;
    int count = 0;
    for (; (form = spmv_spec_form(count, &about)) != NULL; count++) {
        spmv_matrix *m = NULL;
        assert_int_equal(spmv_spec_known(form), 1);
        assert_true(about != NULL && strlen(about) > 5);
        assert_ptr_equal(spmv_spec_form(count, NULL), form);
        assert_fails(ctx, spmv_matrix_generate(ctx, form, SPMV_F64, &m), SPMV_ERROR_SPEC, form);
        assert_fails(ctx, spmv_matrix_generate(ctx, "nothing:1", SPMV_F64, &m), SPMV_ERROR_SPEC, form);
    }
    assert_true(count >= 18);
    assert_null(about);
    assert_null(spmv_spec_form(-1, &about));
    assert_null(spmv_spec_form(INT_MAX, NULL));
}

SUPPORT_MAIN(with_context(against_cells), with_context(elasticity_energy), with_context(arrows),
             with_context(uniform_rows), with_context(long_rows), with_context(empty_rows), with_context(powerlaw_rows),
             with_context(rmat_graphs), with_context(fem_blocks), with_context(same_bits_for_any_team),
             with_context(options_of_all), with_context(forms_are_listed))
