/* The three figures of locality: hand-computed cases, and against their definitions on matrices of
 * random rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_locality.h"

/*  x x . x . .    extent 4; neighbours 1 1 0; all of 0 1 3 match the next nonempty row, 1 2 5
 *  . . . . . .
 *  . x x . . x    extent 5; neighbours 1 1 0; of 1 2 5 only 1 and 2 are within 1 of 0 or 3
 *  x . . x . .    extent 4; neighbours 0 0; no nonempty row follows
 *  . . . . . . */
static void locality_by_hand(void **state)
{
    static const int32_t row_ptr[] = {0, 3, 3, 6, 8, 8}, col[] = {0, 1, 3, 1, 2, 5, 0, 3};
    static const double val[] = {1, 1, 1, 1, 1, 1, 1, 1};
    spmv_context *ctx = *state;
    const spmv_csr a = support_csr(5, 6, row_ptr, col, val);
    struct matrix_locality l;
    spmv_statistics s;
    matrix_locality(ctx, &a, &l);
    assert_near(l.bw_frac, (4 + 5 + 4) / 30.0);
    assert_near(l.avg_neighbours, 4 / 8.0);
    assert_near(l.cross_row_similarity, (1 + 2 / 3.0 + 0) / 3);
    assert_ok(ctx, spmv_matrix_statistics(ctx, &a, &s, sizeof s));
    assert_true(s.bw_frac == l.bw_frac && s.avg_neighbours == l.avg_neighbours &&
                s.cross_row_similarity == l.cross_row_similarity);
    const spmv_csr one = support_csr(1, 6, row_ptr, col, val);
    matrix_locality(ctx, &one, &l);
    assert_near(l.bw_frac, 4 / 6.0);
    assert_near(l.avg_neighbours, 2 / 3.0);
    assert_near(l.cross_row_similarity, 0);
    static const int32_t empty_ptr[] = {0, 0, 0};
    const spmv_csr empty = support_csr(2, 6, empty_ptr, col, val), none = support_csr(0, 0, empty_ptr, col, val);
    matrix_locality(ctx, &empty, &l);
    assert_true(l.bw_frac == 0 && l.avg_neighbours == 0 && l.cross_row_similarity == 0);
    matrix_locality(ctx, &none, &l);
    assert_true(l.bw_frac == 0 && l.avg_neighbours == 0 && l.cross_row_similarity == 0);
}

/* The largest column in use, together with column 0: c + 1 does not fit in 32 bits. */
static void locality_at_the_last_column(void **state)
{
    static const int32_t row_ptr[] = {0, 2, 4}, col[] = {0, INT32_MAX - 1, 0, INT32_MAX - 2};
    static const double val[] = {1, 1, 1, 1};
    spmv_context *ctx = *state;
    const spmv_csr a = support_csr(2, INT32_MAX, row_ptr, col, val);
    struct matrix_locality l;
    matrix_locality(ctx, &a, &l);
    assert_near(l.bw_frac, (2147483647.0 + 2147483646.0) / 2 / 2147483647.0);
    assert_true(l.avg_neighbours == 0 && l.cross_row_similarity == 0.5);
}

/* Rows of random lengths, a third of them empty, dense enough for neighbours and matches; the same
 * bits for any number of threads. */
static void against_definitions(void **state)
{
    (void)state;
    enum { ROWS = 40011, COLS = 40 };
    uint64_t random = 7;
    int32_t *const row_ptr = calloc(ROWS + 1, sizeof *row_ptr), *const col = malloc(ROWS * COLS * sizeof *col);
    double *const val = calloc(ROWS * COLS, sizeof *val);
    assert_true(row_ptr != NULL && col != NULL && val != NULL);
    for (int row = 0; row < ROWS; row++) {
        const uint64_t keep = support_random(&random) % 3; /* of 4 */
        row_ptr[row + 1] = row_ptr[row];
        for (int c = 0; c < COLS; c++)
            if (support_random(&random) % 4 < keep)
                col[row_ptr[row + 1]++] = c;
    }
    const spmv_csr a = support_csr(ROWS, COLS, row_ptr, col, val);
    const struct matrix_locality expected = support_locality(&a);
    struct matrix_locality first = {0, 0, 0};
    for (int threads = 1; threads <= 7; threads += 2) {
        struct matrix_locality l;
        spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, threads);
        matrix_locality(ctx, &a, &l);
        assert_near(l.bw_frac, expected.bw_frac);
        assert_near(l.avg_neighbours, expected.avg_neighbours);
        assert_near(l.cross_row_similarity, expected.cross_row_similarity);
        if (threads == 1)
            first = l;
        assert_memory_equal(&l, &first, sizeof l);
        spmv_context_destroy(ctx);
    }
    support_free(row_ptr, col, val);
}

SUPPORT_MAIN(with_context(locality_by_hand), with_context(locality_at_the_last_column),
             cmocka_unit_test(against_definitions))
