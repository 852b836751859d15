/* Statistics of a matrix: by hand, against a naive computation, and refused input.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "tests/support/support_coo.h"

static spmv_statistics statistics_of(spmv_context *ctx, const spmv_csr *a)
{
    spmv_statistics s;
    memset(&s, 0x55, sizeof s);
    assert_ok(ctx, spmv_matrix_statistics(ctx, a, &s, sizeof s));
    assert_int_equal(s.size, sizeof s);
    return s;
}

/*  1  2  .  .  inf
 *  .  .  .  .  .
 *  .  0  .  .  .
 *  .  .  .  nan .     row lengths 3, 0, 1, 1; column 2 is empty */
static void small_by_hand(void **state)
{
    static const int32_t row_ptr[] = {0, 3, 3, 4, 5}, col[] = {0, 1, 4, 1, 3};
    static const double val[] = {1, 2, INFINITY, -0.0, NAN};
    spmv_context *ctx = *state;
    spmv_csr a = {4, 5, 5, row_ptr, 32, col, val, SPMV_F64, SPMV_MEMORY_HOST};
    spmv_statistics s = statistics_of(ctx, &a);
    assert_true(s.rows == 4 && s.cols == 5 && s.nnz == 5);
    assert_true(s.row_min == 0 && s.row_max == 3 && s.max_row == 0);
    assert_true(s.row_mean == 1.25);
    assert_true(fabs(s.row_std - sqrt(1.1875)) < 1e-15); /* (9 + 0 + 1 + 1) / 4 - 1.25^2 */
    assert_true(s.empty_rows == 1 && s.empty_cols == 1);
    assert_true(s.bandwidth == 4 && s.diagonal == 2);
    assert_true(fabs(s.row_extent - 7.0 / 3) < 1e-15); /* 5, 1, 1 */
    assert_true(s.explicit_zeros == 1 && s.not_finite == 2);
    for (int b = 0; b < SPMV_HISTOGRAM_BINS; b++)
        assert_int_equal(s.histogram[b], b == 0 ? 1 : b == 1 ? 2 : b == 2 ? 1 : 0);
    assert_true(!s.square && !s.pattern_symmetric && !s.symmetric && !s.skew_symmetric);
    a.val = NULL;
    a.type = SPMV_TYPE_DEFAULT;
    s = statistics_of(ctx, &a);
    assert_true(s.nnz == 5 && s.explicit_zeros == 0 && s.not_finite == 0 && s.row_max == 3);
}

/* ---------------------------------------------------------------------------------- symmetry */

/* A 3 x 3 matrix; `stored` marks the stored cells, zeros included. Checks the flags. */
static void check_flags(spmv_context *ctx, const double cell[9], const char *stored, spmv_type type, int pattern,
                        int symmetric, int skew)
{
    int64_t row[9];
    int32_t col[9];
    double val[9];
    int64_t n = 0;
    spmv_matrix *m = NULL;
    spmv_csr a;
    for (int c = 0; c < 9; c++) {
        if (stored[c] == '.')
            continue;
        row[n] = c / 3;
        col[n] = c % 3;
        val[n++] = cell[c];
    }
    void *typed = type == SPMV_TYPE_DEFAULT ? NULL : support_typed(type, val, n);
    assert_ok(ctx, spmv_matrix_from_coo(ctx, 3, 3, n, row, col, typed, type, &m, NULL));
    spmv_matrix_view(m, &a);
    const spmv_statistics s = statistics_of(ctx, &a);
    assert_int_equal(s.square, 1);
    assert_int_equal(s.pattern_symmetric, pattern);
    assert_int_equal(s.symmetric, symmetric);
    assert_int_equal(s.skew_symmetric, skew);
    spmv_matrix_destroy(m);
    free(typed);
}

static void symmetry_by_hand(void **state)
{
    static const spmv_type types[] = {SPMV_F64, SPMV_F32, SPMV_I32, SPMV_I64};
    spmv_context *ctx = *state;
    static const double symmetric[9] = {1, 2, 0, 2, 5, 3, 0, 3, 0}, skew[9] = {0, 2, 0, -2, 0, -3, 0, 3, 0};
    static const double neither[9] = {1, 2, 0, 3, 0, 4, 0, 4, 0}, zero[9] = {0}, hole[9] = {1, 2, 0, 0, 1, 0, 0, 0, 1};
    static const double skew_but_diagonal[9] = {0, 2, 0, -2, 7, 0, 0, 0, 0}, nan_pair[9] = {1, NAN, 0, NAN, 1};
    for (int t = 0; t < 4; t++) {
        check_flags(ctx, symmetric, "xx.xxx.x.", types[t], 1, 1, 0);
        check_flags(ctx, skew, ".x.x.x.x.", types[t], 1, 0, 1);
        check_flags(ctx, skew, "xx.x.x.x.", types[t], 1, 0, 1); /* a stored zero on the diagonal */
        check_flags(ctx, skew_but_diagonal, ".x.xx....", types[t], 1, 0, 0);
        check_flags(ctx, neither, "xx.x.x.x.", types[t], 1, 0, 0);
        check_flags(ctx, hole, "xx..x...x", types[t], 0, 0, 0);
        check_flags(ctx, hole, "xx.xx...x", types[t], 1, 0, 0);
        /* a_13 = 0 is stored, a_31 = 0 is not: equal */
        check_flags(ctx, zero, "..x......", types[t], 0, 1, 1);
        check_flags(ctx, zero, ".........", types[t], 1, 1, 1);
        check_flags(ctx, symmetric, "xxxxxx.x.", types[t], 0, 1, 0);
    }
    check_flags(ctx, nan_pair, "xx.xx....", SPMV_F64, 1, 0, 0);
    /* In a pattern every entry is 1. */
    check_flags(ctx, zero, "xx.xx....", SPMV_TYPE_DEFAULT, 1, 1, 0);
    check_flags(ctx, zero, "xx..x....", SPMV_TYPE_DEFAULT, 0, 0, 0);
    check_flags(ctx, zero, ".........", SPMV_TYPE_DEFAULT, 1, 1, 1);
}

/* A large symmetric matrix, and the same with one cell changed: one row in thousands decides. */
static void one_cell_breaks_symmetry(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *m = NULL;
    spmv_csr a;
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:70", SPMV_F64, &m));
    spmv_matrix_view(m, &a);
    spmv_statistics s = statistics_of(ctx, &a);
    assert_true(s.square && s.pattern_symmetric && s.symmetric && !s.skew_symmetric);
    assert_true(s.bandwidth == 70 && s.diagonal == 4900 && s.row_min == 3 && s.row_max == 5);
    ((double *)m->val)[m->row_ptr[3000]] = -1.5;
    s = statistics_of(ctx, &a);
    assert_true(s.pattern_symmetric && !s.symmetric && !s.skew_symmetric);
    m->col[m->row_ptr[3000]]++; /* still ascending: the next entry is 69 columns further */
    s = statistics_of(ctx, &a);
    assert_true(!s.pattern_symmetric && !s.symmetric);
    spmv_matrix_destroy(m);
}

/* ------------------------------------------------------------------------ naive computation */

static int naive_bin(int64_t length)
{
    int bin = 0;
    int64_t power = 1;
    while (length >= power && bin < SPMV_HISTOGRAM_BINS - 1) {
        power *= 2;
        bin++;
    }
    return bin;
}

static double naive_std(const spmv_csr *a)
{
    const long double mean = (long double)a->nnz / (long double)a->rows;
    long double sum = 0;
    for (int64_t row = 0; row < a->rows; row++) {
        const long double d = (long double)(row_first(a, row + 1) - row_first(a, row)) - mean;
        sum += d * d;
    }
    return (double)sqrtl(sum / (long double)a->rows);
}

/* The value at (row, col), by a search along the row; *there: whether it is stored. */
static double naive_cell(const spmv_csr *a, int64_t row, int64_t col, bool *there)
{
    *there = false;
    for (int64_t k = row_first(a, row); k < row_first(a, row + 1); k++) {
        if (a->col[k] == col) {
            *there = true;
            return support_value(a, k);
        }
    }
    return 0;
}

static void naive_symmetry(const spmv_csr *a, spmv_statistics *s)
{
    s->square = a->rows == a->cols;
    s->pattern_symmetric = s->symmetric = s->skew_symmetric = s->square;
    for (int64_t row = 0; row < a->rows && s->square; row++) {
        for (int64_t k = row_first(a, row); k < row_first(a, row + 1); k++) {
            bool there;
            const double v = support_value(a, k), other = naive_cell(a, a->col[k], row, &there);
            s->pattern_symmetric = s->pattern_symmetric && there;
            s->symmetric = s->symmetric && v == other;
            s->skew_symmetric = s->skew_symmetric && v == -other;
        }
    }
}

static spmv_statistics naive(const spmv_csr *a)
{
    spmv_statistics s = {.size = sizeof s, .rows = a->rows, .cols = a->cols, .nnz = a->nnz, .max_row = -1};
    bool *used = support_array(a->cols, sizeof *used);
    double extent = 0;
    s.row_min = INT64_MAX;
    for (int64_t row = 0; row < a->rows; row++) {
        const int64_t first = row_first(a, row), end = row_first(a, row + 1), length = end - first;
        if (length > s.row_max || row == 0) {
            s.row_max = length;
            s.max_row = row;
        }
        s.row_min = min_i64(s.row_min, length);
        s.empty_rows += length == 0;
        s.histogram[naive_bin(length)]++;
        for (int64_t k = first; k < end; k++) {
            used[a->col[k]] = true;
            s.bandwidth = max_i64(s.bandwidth, row > a->col[k] ? row - a->col[k] : a->col[k] - row);
            s.diagonal += a->col[k] == row;
            s.explicit_zeros += a->val != NULL && support_value(a, k) == 0;
        }
        if (length > 0)
            extent += a->col[end - 1] - a->col[first] + 1;
    }
    for (int64_t c = 0; c < a->cols; c++)
        s.empty_cols += !used[c];
    s.row_mean = (double)a->nnz / (double)a->rows;
    s.row_std = naive_std(a);
    s.row_extent = s.empty_rows < a->rows ? extent / (double)(a->rows - s.empty_rows) : 0;
    naive_symmetry(a, &s);
    free(used);
    return s;
}

static void assert_same_statistics(const spmv_statistics *a, const spmv_statistics *b)
{
    assert_true(a->rows == b->rows && a->cols == b->cols && a->nnz == b->nnz);
    assert_true(a->row_min == b->row_min && a->row_max == b->row_max && a->max_row == b->max_row);
    assert_true(a->row_mean == b->row_mean && a->row_extent == b->row_extent);
    assert_true(fabs(a->row_std - b->row_std) <= 1e-14 * b->row_std);
    assert_true(a->empty_rows == b->empty_rows && a->empty_cols == b->empty_cols);
    assert_true(a->bandwidth == b->bandwidth && a->diagonal == b->diagonal);
    assert_true(a->explicit_zeros == b->explicit_zeros && a->not_finite == b->not_finite);
    assert_memory_equal(a->histogram, b->histogram, sizeof a->histogram);
    assert_int_equal(a->square, b->square);
    assert_int_equal(a->pattern_symmetric, b->pattern_symmetric);
    assert_int_equal(a->symmetric, b->symmetric);
    assert_int_equal(a->skew_symmetric, b->skew_symmetric);
}

/* Also checks that any number of threads gives the same bytes. */
static void random_against_naive(void **state)
{
    static const int64_t shapes[][3] = {{1, 1, 1},      {1, 3000, 2000},    {3000, 1, 2000},  {500, 500, 60},
                                        {90, 90, 8000}, {2000, 700, 30000}, {40, 9000, 9000}, {7, 7, 200}};
    spmv_context *ctx = *state;
    uint64_t seed = 424242;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct entries e = support_entries(shapes[i][0], shapes[i][1], shapes[i][2], true, &seed);
        spmv_matrix *m = NULL;
        spmv_csr a;
        assert_ok(ctx, spmv_matrix_from_coo(ctx, e.rows, e.cols, e.n, e.row, e.col, e.val, SPMV_F64, &m, NULL));
        spmv_matrix_view(m, &a);
        const spmv_statistics s = statistics_of(ctx, &a), expected = naive(&a);
        assert_same_statistics(&s, &expected);
        for (int t = 0; t < SUPPORT_TEAMS; t++) {
            spmv_context *team = support_context_on(SPMV_BACKEND_OMP, support_teams[t]);
            const spmv_statistics again = statistics_of(team, &a);
            assert_memory_equal(&again, &s, sizeof s);
            spmv_context_destroy(team);
        }
        spmv_matrix_destroy(m);
        support_entries_free(&e);
    }
}

/* Row lengths 2^b - 1 and 2^b: the limits of the histogram's bins. */
static void histogram_seams(void **state)
{
    static const int64_t lengths[] = {0, 1, 2, 3, 4, 7, 8, 15, 16, 1023, 1024, 65535, 65536};
    enum { ROWS = sizeof lengths / sizeof lengths[0] };
    int64_t row_ptr[ROWS + 1] = {0};
    spmv_context *ctx = *state;
    for (int row = 0; row < ROWS; row++)
        row_ptr[row + 1] = row_ptr[row] + lengths[row];
    int32_t *col = support_array(row_ptr[ROWS], sizeof *col);
    for (int row = 0; row < ROWS; row++)
        for (int64_t k = 0; k < lengths[row]; k++)
            col[row_ptr[row] + k] = (int32_t)k;
    const spmv_csr a = {ROWS, 65536, row_ptr[ROWS], row_ptr, 64, col, NULL, SPMV_F64, SPMV_MEMORY_HOST};
    const spmv_statistics s = statistics_of(ctx, &a);
    for (int b = 0; b < SPMV_HISTOGRAM_BINS; b++) {
        int64_t expected = 0;
        for (int row = 0; row < ROWS; row++)
            expected +=
                b == 0 ? lengths[row] == 0 : lengths[row] >= (int64_t)1 << (b - 1) && lengths[row] < (int64_t)1 << b;
        assert_int_equal(s.histogram[b], expected);
    }
    assert_true(s.max_row == ROWS - 1 && s.row_max == 65536);
    free(col);
}

static void nothing_at_all(void **state)
{
    static const int32_t row_ptr[4] = {0};
    spmv_context *ctx = *state;
    spmv_csr a = {0, 0, 0, row_ptr, 32, NULL, NULL, SPMV_F64, SPMV_MEMORY_HOST};
    spmv_statistics s = statistics_of(ctx, &a);
    assert_true(s.rows == 0 && s.row_min == 0 && s.row_max == 0 && s.max_row == -1);
    assert_true(s.row_mean == 0 && s.row_std == 0 && s.row_extent == 0 && s.empty_rows == 0 && s.empty_cols == 0);
    assert_true(s.square && s.pattern_symmetric && s.symmetric && s.skew_symmetric);
    a.rows = 3;
    a.cols = 5;
    s = statistics_of(ctx, &a);
    assert_true(s.empty_rows == 3 && s.empty_cols == 5 && s.max_row == 0 && s.row_extent == 0 && s.histogram[0] == 3);
    assert_true(s.row_mean == 0 && s.row_std == 0 && !s.square && !s.symmetric);
}

/* Structures of other header versions; invalid matrices give an error and an empty structure. */
static void sizes_and_refusals(void **state)
{
    static const int32_t row_ptr[] = {0, 2}, unsorted[] = {3, 1}, outside[] = {1, 4};
    spmv_context *ctx = *state;
    spmv_csr a = {1, 4, 2, row_ptr, 32, unsorted, NULL, SPMV_F64, SPMV_MEMORY_HOST};
    spmv_statistics s;
    memset(&s, 0x55, sizeof s);
    assert_fails(ctx, spmv_matrix_statistics(ctx, &a, &s, sizeof s), SPMV_ERROR_SIZE,
                 "spmv_matrix_statistics: row 0, entry 1: column 1 follows column 3");
    assert_true(s.size == sizeof s && s.rows == 0 && s.nnz == 0 && s.histogram[33] == 0);
    a.col = outside;
    assert_fails(ctx, spmv_matrix_statistics(ctx, &a, &s, sizeof s), SPMV_ERROR_SIZE, "column 4 is outside");
    assert_fails(ctx, spmv_matrix_statistics(ctx, &a, NULL, sizeof s), SPMV_ERROR_ARGUMENT, "the struct is NULL");
    assert_fails(ctx, spmv_matrix_statistics(ctx, &a, &s, 2), SPMV_ERROR_ARGUMENT, "2 bytes");
    a.cols = 5;
    memset(&s, 0x55, sizeof s);
    assert_ok(ctx, spmv_matrix_statistics(ctx, &a, &s, offsetof(spmv_statistics, row_min)));
    assert_true(s.size == offsetof(spmv_statistics, row_min) && s.cols == 5 && s.nnz == 2);
    assert_true(s.row_min == 0x5555555555555555); /* beyond the caller's structure */
    struct {
        spmv_statistics known;
        char unknown[16];
    } newer;
    memset(&newer, 0x55, sizeof newer);
    assert_ok(ctx, spmv_matrix_statistics(ctx, &a, &newer.known, sizeof newer));
    assert_true(newer.known.row_max == 2 && newer.unknown[0] == 0 && newer.unknown[15] == 0);
}

SUPPORT_MAIN(with_context(small_by_hand), with_context(symmetry_by_hand), with_context(one_cell_breaks_symmetry),
             with_context(random_against_naive), with_context(histogram_seams), with_context(nothing_at_all),
             with_context(sizes_and_refusals))
