/* Matrices in memory: coordinate entries to CSR, the transpose, the check of a matrix view.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/coo/coo.h"
#include "tests/support/support_coo.h"

static const spmv_type value_types[] = {SPMV_F64, SPMV_F32, SPMV_I32, SPMV_I64};
enum { VALUE_TYPES = sizeof value_types / sizeof value_types[0] };

/* ------------------------------------------------------------------- from coordinate entries */

/*  . 7 . . -2      Row 1 is empty. Row 2 stores an explicit zero. (0, 4) appears three times,
     *  . . . . .       (3, 0) twice. The entries of row 3 are given from right to left.
     *  0 . 5 . .
     *  9 1 . 4 .  */
enum { HAND_N = 11, HAND_NNZ = 7 };
static const int64_t hand_row[HAND_N] = {3, 0, 2, 3, 0, 3, 0, 2, 3, 0, 3};
static const int32_t hand_col[HAND_N] = {3, 4, 2, 1, 1, 0, 4, 0, 0, 4, 3};
static const double hand_val[HAND_N] = {4, 1, 5, 1, 7, 8, -5, 0, 1, 2, 0};
static const int64_t hand_row_ptr[5] = {0, 2, 2, 4, 7};
static const int32_t hand_csr_col[HAND_NNZ] = {1, 4, 0, 2, 0, 1, 3};
static const double hand_csr_val[HAND_NNZ] = {7, -2, 0, 5, 9, 1, 4};

static void assert_hand_matrix(const spmv_matrix *m, bool pattern)
{
    spmv_csr a;
    spmv_matrix_view(m, &a);
    assert_true(a.rows == 4 && a.cols == 5 && a.nnz == HAND_NNZ);
    assert_int_equal(a.memory, SPMV_MEMORY_HOST);
    assert_int_equal(a.row_ptr_bits, 64);
    assert_memory_equal(a.row_ptr, hand_row_ptr, sizeof hand_row_ptr);
    assert_memory_equal(a.col, hand_csr_col, sizeof hand_csr_col);
    assert_int_equal(a.val == NULL, pattern);
    for (int k = 0; k < HAND_NNZ && !pattern; k++)
        assert_true(support_value(&a, k) == hand_csr_val[k]);
}

static void small_by_hand(void **state)
{
    spmv_context *ctx = *state;
    for (int t = 0; t <= VALUE_TYPES; t++) {
        const bool pattern = t == VALUE_TYPES;
        void *val = pattern ? NULL : support_typed(value_types[t], hand_val, HAND_N);
        int64_t duplicates = -1;
        spmv_matrix *m = NULL;
        assert_ok(ctx, spmv_matrix_from_coo(ctx, 4, 5, HAND_N, hand_row, hand_col, val,
                                            pattern ? SPMV_TYPE_DEFAULT : value_types[t], &m, &duplicates));
        assert_hand_matrix(m, pattern);
        assert_int_equal(duplicates, HAND_N - HAND_NNZ);
        spmv_matrix_destroy(m);
        assert_ok(ctx, spmv_matrix_from_coo(ctx, 4, 5, HAND_N, hand_row, hand_col, val,
                                            pattern ? SPMV_TYPE_DEFAULT : value_types[t], &m, NULL));
        spmv_matrix_destroy(m);
        free(val);
    }
    spmv_matrix_destroy(NULL);
}

/* The floating-point sums reveal the order: (big + 1) - big is 0, (big - big) + 1 is 1. */
static void duplicates_in_the_order_given(void **state)
{
    spmv_context *ctx = *state;
    const int64_t row[6] = {1, 1, 1, 0, 0, 0};
    const int32_t col[6] = {2, 2, 2, 0, 0, 0};
    const double val[6] = {1e16, 1, -1e16, 1e16, -1e16, 1};
    const float val32[6] = {1e8F, 1, -1e8F, 1e8F, -1e8F, 1};
    spmv_matrix *m = NULL;
    spmv_csr a;
    assert_ok(ctx, spmv_matrix_from_coo(ctx, 2, 3, 6, row, col, val, SPMV_F64, &m, NULL));
    spmv_matrix_view(m, &a);
    assert_int_equal(a.nnz, 2);
    assert_true(support_value(&a, 0) == 1 && support_value(&a, 1) == 0);
    spmv_matrix_destroy(m);
    assert_ok(ctx, spmv_matrix_from_coo(ctx, 2, 3, 6, row, col, val32, SPMV_F32, &m, NULL));
    spmv_matrix_view(m, &a);
    assert_int_equal(a.type, SPMV_F32);
    assert_true(support_value(&a, 0) == 1 && support_value(&a, 1) == 0);
    spmv_matrix_destroy(m);
}

/* Compares with the dense oracle. */
static void check_entries(spmv_context *ctx, const struct entries *e, spmv_type type, bool pattern)
{
    struct dense d = support_dense(e->rows, e->cols);
    int64_t expected = 0, duplicates = -1;
    spmv_matrix *m = NULL;
    spmv_csr a;
    void *val = pattern ? NULL : support_typed(type, e->val, e->n);
    for (int64_t k = 0; k < e->n; k++)
        expected += support_dense_add(&d, e->row[k], e->col[k], type, support_round(type, e->val[k]));
    assert_ok(ctx, spmv_matrix_from_coo(ctx, e->rows, e->cols, e->n, e->row, e->col, val, type, &m, &duplicates));
    spmv_matrix_view(m, &a);
    assert_matrix_is_dense(&a, &d);
    assert_int_equal(duplicates, expected);
    assert_ok(ctx, spmv_matrix_check(ctx, &a));
    spmv_matrix_destroy(m);
    support_dense_free(&d);
    free(val);
}

static void random_against_dense(void **state)
{
    static const int64_t shapes[][3] = {{1, 1, 1},       {1, 1, 9},        {1, 300, 500},  {300, 1, 500},
                                        {5, 7, 0},       {5, 7, 20},       {40, 30, 700},  {1000, 3, 2000},
                                        {3, 1000, 4500}, {9, 70000, 5000}, {64, 64, 4096}, {200, 90, 30000}};
    spmv_context *ctx = *state;
    uint64_t seed = 20240611;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int t = 0; t < VALUE_TYPES; t++) {
            struct entries e = support_entries(shapes[s][0], shapes[s][1], shapes[s][2], t >= 2, &seed);
            check_entries(ctx, &e, value_types[t], false);
            check_entries(ctx, &e, value_types[t], true);
            support_entries_free(&e);
        }
    }
}

static void nothing_at_all(void **state)
{
    static const int64_t shapes[][2] = {{0, 0}, {0, 5}, {5, 0}, {3, 4}};
    spmv_context *ctx = *state;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const int64_t rows = shapes[s][0], cols = shapes[s][1];
        const double none = 0;
        spmv_matrix *m = NULL, *t = NULL;
        spmv_csr a;
        int64_t duplicates = -1;
        assert_ok(ctx, spmv_matrix_from_coo(ctx, rows, cols, 0, NULL, NULL, &none, SPMV_F32, &m, &duplicates));
        spmv_matrix_view(m, &a);
        assert_true(a.rows == rows && a.cols == cols && a.nnz == 0 && duplicates == 0);
        assert_non_null(a.val); /* no entries, but values of a type: not a pattern */
        assert_int_equal(a.type, SPMV_F32);
        assert_ok(ctx, spmv_matrix_check(ctx, &a));
        assert_ok(ctx, spmv_matrix_transpose(ctx, &a, &t));
        spmv_matrix_view(t, &a);
        assert_true(a.rows == cols && a.cols == rows && a.nnz == 0 && a.val != NULL);
        for (int64_t row = 0; row <= cols; row++)
            assert_int_equal(row_first(&a, row), 0);
        spmv_matrix_destroy(m);
        spmv_matrix_destroy(t);
        assert_ok(ctx, spmv_matrix_from_coo(ctx, rows, cols, 0, NULL, NULL, NULL, SPMV_F64, &m, NULL));
        spmv_matrix_view(m, &a);
        assert_null(a.val);
        spmv_matrix_destroy(m);
    }
}

/* One row of 200,000 entries, unsorted and with repeated columns, between a sorted and an empty
 * row. */
static void one_full_row(void **state)
{
    enum { COLS = 70000, FULL = 200000, SORTED = 500 };
    spmv_context *ctx = *state;
    uint64_t seed = 7;
    struct entries e = support_entries(3, COLS, FULL + SORTED, false, &seed);
    for (int64_t k = 0; k < e.n; k++) {
        e.row[k] = k % 400 == 1 ? 0 : 1;
        if (e.row[k] == 0)
            e.col[k] = (int32_t)(k / 400);
    }
    for (int t = 0; t < 2; t++)
        check_entries(ctx, &e, value_types[t], false);
    check_entries(ctx, &e, SPMV_F64, true);
    support_entries_free(&e);
}

/* Columns differ in one digit only; row lengths lie around the switch between sorting methods. */
static void rows_of_every_length(void **state)
{
    enum { ROWS = 140, COLS = 1 << 17 };
    spmv_context *ctx = *state;
    uint64_t seed = 11;
    for (int shift = 0; shift < 17; shift += 8) {
        struct entries e = support_entries(1, COLS, ROWS * (ROWS - 1) / 2, false, &seed);
        int64_t k = 0;
        e.rows = ROWS;
        for (int64_t row = 0; row < ROWS; row++) {
            for (int64_t i = 0; i < row; i++, k++) {
                e.row[k] = row;
                e.col[k] = (int32_t)(((support_random(&seed) & 255) << shift) % COLS);
            }
        }
        check_entries(ctx, &e, SPMV_F64, false);
        support_entries_free(&e);
    }
}

static void same_bits_for_any_team(void **state)
{
    spmv_context *ctx = *state;
    uint64_t seed = 3;
    struct entries e = support_entries(3000, 900, 60000, false, &seed);
    spmv_matrix *expected = NULL, *expected_t = NULL;
    spmv_csr a;
    int64_t duplicates = 0;
    e.col[4321] = 17; /* more entries at one position */
    for (int64_t k = 0; k < e.n; k += 1000) {
        e.row[k] = 1234;
        e.col[k] = 17;
    }
    assert_ok(ctx,
              spmv_matrix_from_coo(ctx, e.rows, e.cols, e.n, e.row, e.col, e.val, SPMV_F64, &expected, &duplicates));
    assert_true(duplicates >= 59);
    spmv_matrix_view(expected, &a);
    assert_ok(ctx, spmv_matrix_transpose(ctx, &a, &expected_t));
    for (int i = 0; i < SUPPORT_TEAMS; i++) {
        spmv_context *team = support_context_on(SPMV_BACKEND_OMP, support_teams[i]);
        spmv_matrix *m = NULL, *t = NULL;
        int64_t again = 0;
        assert_ok(team, spmv_matrix_from_coo(team, e.rows, e.cols, e.n, e.row, e.col, e.val, SPMV_F64, &m, &again));
        assert_int_equal(again, duplicates);
        assert_same_matrix(m, expected);
        assert_ok(team, spmv_matrix_transpose(team, &a, &t));
        assert_same_matrix(t, expected_t);
        spmv_matrix_destroy(m);
        spmv_matrix_destroy(t);
        spmv_context_destroy(team);
    }
    spmv_matrix_destroy(expected);
    spmv_matrix_destroy(expected_t);
    support_entries_free(&e);
}

/* Wrong sizes or indices: the message names the entry and the value, and the outputs are empty. */
static void bad_entries(void **state)
{
    static const struct {
        int64_t row;
        int32_t col;
        const char *sentence;
    } bad[] = {{4, 0, "entry 8000: row 4 is outside the 4 rows"},
               {-1, 0, "entry 8000: row -1 is outside the 4 rows"},
               {INT64_MAX, 0, "entry 8000: row 9223372036854775807 is outside the 4 rows"},
               {0, 5, "entry 8000: column 5 is outside the 5 columns"},
               {3, INT32_MIN, "entry 8000: column -2147483648 is outside the 5 columns"}};
    spmv_context *ctx = *state;
    uint64_t seed = 5;
    struct entries e = support_entries(4, 5, 9000, false, &seed);
    for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
        spmv_matrix *m = (spmv_matrix *)ctx;
        int64_t duplicates = -1;
        e.row[8000] = bad[b].row;
        e.col[8000] = bad[b].col;
        e.row[8999] = 77; /* a second error: the message must name the first */
        assert_fails(ctx, spmv_matrix_from_coo(ctx, 4, 5, e.n, e.row, e.col, e.val, SPMV_F64, &m, &duplicates),
                     SPMV_ERROR_SIZE, bad[b].sentence);
        assert_null(m);
        assert_int_equal(duplicates, 0);
    }
    support_entries_free(&e);
}

static void bad_arguments(void **state)
{
    spmv_context *ctx = *state;
    const int64_t row = 0;
    const int32_t col = 0;
    const double val = 1;
    spmv_matrix *m = NULL;
    assert_fails(ctx, spmv_matrix_from_coo(ctx, -1, 5, 0, NULL, NULL, &val, SPMV_F64, &m, NULL), SPMV_ERROR_ARGUMENT,
                 "-1 x 5");
    assert_fails(ctx, spmv_matrix_from_coo(ctx, 1, 1, -3, &row, &col, &val, SPMV_F64, &m, NULL), SPMV_ERROR_ARGUMENT,
                 "-3 entries");
    assert_fails(ctx, spmv_matrix_from_coo(ctx, 1, 1, 1, NULL, &col, &val, SPMV_F64, &m, NULL), SPMV_ERROR_ARGUMENT,
                 "host_row is NULL");
    assert_fails(ctx, spmv_matrix_from_coo(ctx, 1, 1, 1, &row, NULL, &val, SPMV_F64, &m, NULL), SPMV_ERROR_ARGUMENT,
                 "host_col is NULL");
    assert_fails(ctx, spmv_matrix_from_coo(ctx, 1, 1, 1, &row, &col, &val, (spmv_type)29, &m, NULL), SPMV_ERROR_TYPE,
                 "type ?");
    assert_fails(ctx, spmv_matrix_from_coo(ctx, 1, (int64_t)INT32_MAX + 1, 1, &row, &col, &val, SPMV_F64, &m, NULL),
                 SPMV_ERROR_LIMIT, "2147483648");
    assert_fails(ctx, spmv_matrix_from_coo(ctx, INT64_MAX, 1, 1, &row, &col, &val, SPMV_F64, &m, NULL),
                 SPMV_ERROR_LIMIT, "overflow");
    /* 2^56 row counts, as many row offsets, and one entry */
    assert_fails(ctx, spmv_matrix_from_coo(ctx, (int64_t)1 << 56, 1, 1, &row, &col, &val, SPMV_F64, &m, NULL),
                 SPMV_ERROR_MEMORY, "1152921504606846988 bytes");
    assert_null(m);
}

static void allocation_limits(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *m = NULL;
    assert_fails(ctx, matrix_allocate(ctx, INT64_MAX, 1, 1, SPMV_F64, false, &m), SPMV_ERROR_LIMIT,
                 "size in bytes exceeds 64 bits");
    assert_fails(ctx, matrix_allocate(ctx, 1, 1, INT64_MAX / 8, SPMV_F64, false, &m), SPMV_ERROR_LIMIT,
                 "size in bytes exceeds 64 bits");
    assert_fails(ctx, matrix_allocate(ctx, 1, 1, -1, SPMV_F64, false, &m), SPMV_ERROR_LIMIT, "-1 entries");
    assert_fails(ctx, matrix_allocate(ctx, 1, (int64_t)INT32_MAX + 1, 1, SPMV_F64, false, &m), SPMV_ERROR_LIMIT,
                 "2147483648");
    /* 8 (rows + 1) + (4 + 8) entries bytes exceed any machine, so nothing is requested from the
     * system. */
    assert_fails(ctx, matrix_allocate(ctx, 9, 1, (int64_t)1 << 58, SPMV_F64, false, &m), SPMV_ERROR_MEMORY,
                 "a matrix of 9 x 1 with 288230376151711744 entries: 3458764513820541008 bytes");
    assert_null(m);
    assert_ok(ctx, matrix_allocate(ctx, 2, INT32_MAX, 3, SPMV_F32, false, &m));
    assert_true(m->cols == INT32_MAX && m->nnz == 3 && m->val != NULL && !m->pattern);
    spmv_matrix_destroy(m);
}

/* ------------------------------------------------------------------------ portions and mirrors */

/* Cuts the list into portions of the given lengths (the last takes the rest), rows in 32 or 64
 * bits. */
static void cut_into_portions(const struct entries *e, int row_bits, const int32_t *row32, const int64_t *lengths,
                              int64_t portions, struct coo_portion *portion)
{
    int64_t first = 0;
    for (int64_t c = 0; c < portions; c++) {
        const int64_t n = c + 1 < portions ? lengths[c] : e->n - first;
        portion[c] =
            (struct coo_portion){.n = n,
                                 .row = row_bits == 32 ? (const void *)(row32 + first) : (const void *)(e->row + first),
                                 .col = e->col + first,
                                 .val = e->val + first};
        first += n;
    }
}

static void check_mirror(spmv_context *ctx, const struct entries *e, enum coo_mirror mirror, int row_bits, bool pattern)
{
    static const int64_t lengths[] = {0, 1, 700, 0, 2500};
    enum { PORTIONS = 6 };
    struct coo_portion portion[PORTIONS];
    struct dense d = support_dense(e->rows, e->cols);
    int32_t *row32 = support_array(e->n, sizeof *row32);
    int64_t expected = 0, duplicates = -1;
    spmv_matrix *m = NULL;
    spmv_csr a;
    for (int64_t k = 0; k < e->n; k++) {
        row32[k] = (int32_t)e->row[k];
        expected += support_dense_add(&d, e->row[k], e->col[k], SPMV_F64, e->val[k]);
        if (mirror != COO_MIRROR_NONE && e->row[k] != e->col[k])
            support_dense_add(&d, e->col[k], e->row[k], SPMV_F64, mirror == COO_MIRROR_SAME ? e->val[k] : -e->val[k]);
    }
    cut_into_portions(e, row_bits, row32, lengths, PORTIONS, portion);
    const struct coo coo = {e->rows, e->cols, SPMV_F64, pattern, row_bits, mirror, PORTIONS, portion};
    assert_ok(ctx, coo_to_matrix(ctx, &coo, &m, &duplicates));
    spmv_matrix_view(m, &a);
    assert_matrix_is_dense(&a, &d);
    assert_int_equal(duplicates, expected);
    spmv_matrix_destroy(m);
    support_dense_free(&d);
    free(row32);
}

/* Entries of both triangles, so that an entry coincides with the mirror image of another; the
 * oracle adds them in file order. */
static void portions_and_mirrors(void **state)
{
    spmv_context *ctx = *state;
    uint64_t seed = 99;
    struct entries e = support_entries(150, 150, 9000, false, &seed);
    for (int mirror = COO_MIRROR_NONE; mirror <= COO_MIRROR_NEGATED; mirror++) {
        for (int row_bits = 32; row_bits <= 64; row_bits += 32) {
            check_mirror(ctx, &e, (enum coo_mirror)mirror, row_bits, false);
            check_mirror(ctx, &e, (enum coo_mirror)mirror, row_bits, true);
        }
    }
    support_entries_free(&e);
}

static void check_converted(spmv_context *ctx, const struct coo *coo, int64_t nnz, const int32_t *col,
                            const double *val)
{
    spmv_matrix *m = NULL;
    spmv_csr a;
    int64_t duplicates = -1;
    assert_ok(ctx, coo_to_matrix(ctx, coo, &m, &duplicates));
    spmv_matrix_view(m, &a);
    assert_true(a.nnz == nnz && duplicates == 0);
    assert_memory_equal(a.col, col, (size_t)nnz * sizeof *col);
    assert_memory_equal(a.val, val, (size_t)nnz * sizeof *val);
    spmv_matrix_destroy(m);
}

/* The lower triangle of  4 1 .    and of    . -1 .
 *                        1 . 6              1  . -6
 *                        . 6 9              .  6 . */
static void mirrors_by_hand(void **state)
{
    static const int32_t row[] = {0, 1, 2, 2}, col[] = {0, 0, 1, 2};
    static const double val[] = {4, 1, 6, 9};
    static const int32_t col_same[] = {0, 1, 0, 2, 1, 2}, col_skew[] = {1, 0, 2, 1};
    static const double val_same[] = {4, 1, 1, 6, 6, 9}, val_skew[] = {-1, 1, -6, 6};
    spmv_context *ctx = *state;
    const struct coo_portion all = {4, row, col, val}, middle = {2, row + 1, col + 1, val + 1};
    const struct coo same = {3, 3, SPMV_F64, false, 32, COO_MIRROR_SAME, 1, &all};
    const struct coo skew = {3, 3, SPMV_F64, false, 32, COO_MIRROR_NEGATED, 1, &middle};
    check_converted(ctx, &same, 6, col_same, val_same);
    check_converted(ctx, &skew, 4, col_skew, val_skew);
}

/* ------------------------------------------------------------------------------ the transpose */

static void transpose_by_hand(void **state)
{
    static const int64_t row_ptr[] = {0, 2, 4, 5, 6, 7};
    static const int32_t col[] = {2, 3, 0, 3, 2, 3, 0};
    static const double val[] = {0, 9, 7, 1, 5, 4, -2};
    const int32_t narrow[] = {0, 2, 2, 4, 7};
    spmv_context *ctx = *state;
    const spmv_csr wide = {4, 5, HAND_NNZ, hand_row_ptr, 64, hand_csr_col, hand_csr_val, SPMV_F64, SPMV_MEMORY_HOST};
    spmv_csr a = wide, b;
    for (int form = 0; form < 3; form++) {
        spmv_matrix *m = NULL;
        a.row_ptr = form == 0 ? (const void *)hand_row_ptr : narrow;
        a.row_ptr_bits = form == 0 ? 64 : 32;
        a.val = form == 2 ? NULL : hand_csr_val;
        a.memory = form == 1 ? SPMV_MEMORY_CONTEXT : SPMV_MEMORY_HOST;
        assert_ok(ctx, spmv_matrix_transpose(ctx, &a, &m));
        spmv_matrix_view(m, &b);
        assert_true(b.rows == 5 && b.cols == 4 && b.nnz == HAND_NNZ);
        assert_memory_equal(b.row_ptr, row_ptr, sizeof row_ptr);
        assert_memory_equal(b.col, col, sizeof col);
        if (form == 2)
            assert_null(b.val);
        else
            assert_memory_equal(b.val, val, sizeof val);
        spmv_matrix_destroy(m);
    }
}

static void transpose_random(void **state)
{
    static const int64_t shapes[][3] = {
        {1, 1, 1}, {1, 4000, 9000}, {4000, 1, 9000}, {300, 200, 20000}, {7, 50000, 8000}};
    spmv_context *ctx = *state;
    uint64_t seed = 13;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int t = 0; t <= VALUE_TYPES; t++) {
            const spmv_type type = value_types[t % VALUE_TYPES];
            struct entries e = support_entries(shapes[s][0], shapes[s][1], shapes[s][2], true, &seed);
            struct dense d = support_dense(e.cols, e.rows);
            void *val = t == VALUE_TYPES ? NULL : support_typed(type, e.val, e.n);
            spmv_matrix *m = NULL, *transposed = NULL, *back = NULL;
            spmv_csr a, b;
            for (int64_t k = 0; k < e.n; k++)
                support_dense_add(&d, e.col[k], e.row[k], type, e.val[k]);
            assert_ok(ctx, spmv_matrix_from_coo(ctx, e.rows, e.cols, e.n, e.row, e.col, val, type, &m, NULL));
            spmv_matrix_view(m, &a);
            assert_ok(ctx, spmv_matrix_transpose(ctx, &a, &transposed));
            spmv_matrix_view(transposed, &b);
            assert_matrix_is_dense(&b, &d);
            assert_ok(ctx, spmv_matrix_transpose(ctx, &b, &back));
            assert_same_matrix(back, m);
            spmv_matrix_destroy(m);
            spmv_matrix_destroy(transposed);
            spmv_matrix_destroy(back);
            support_dense_free(&d);
            support_entries_free(&e);
            free(val);
        }
    }
}

/* Repeated and unsorted columns are valid: the transpose keeps all of them, in their order. */
static void transpose_keeps_what_repeats(void **state)
{
    static const int32_t row_ptr[] = {0, 4, 4, 7}, col[] = {2, 0, 2, 1, 2, 0, 2};
    static const float val[] = {1, 2, 3, 4, 5, 6, 7};
    static const int64_t t_row_ptr[] = {0, 2, 3, 7};
    static const int32_t t_col[] = {0, 2, 0, 0, 0, 2, 2};
    static const float t_val[] = {2, 6, 4, 1, 3, 5, 7};
    spmv_context *ctx = *state;
    const spmv_csr a = {3, 3, 7, row_ptr, 32, col, val, SPMV_F32, SPMV_MEMORY_HOST};
    spmv_matrix *m = NULL;
    spmv_csr b;
    assert_ok(ctx, spmv_matrix_transpose(ctx, &a, &m));
    spmv_matrix_view(m, &b);
    assert_memory_equal(b.row_ptr, t_row_ptr, sizeof t_row_ptr);
    assert_memory_equal(b.col, t_col, sizeof t_col);
    assert_memory_equal(b.val, t_val, sizeof t_val);
    spmv_matrix_destroy(m);
}

static void transpose_refuses(void **state)
{
    static const int32_t row_ptr[] = {0, 1}, col[] = {3};
    spmv_context *ctx = *state;
    spmv_csr a = {1, 3, 1, row_ptr, 32, col, NULL, SPMV_F64, SPMV_MEMORY_HOST};
    spmv_matrix *m = (spmv_matrix *)ctx;
    assert_fails(ctx, spmv_matrix_transpose(ctx, &a, &m), SPMV_ERROR_SIZE,
                 "spmv_matrix_transpose: row 0, entry 0: column 3 is outside the 3 columns");
    assert_null(m);
    a.rows = (int64_t)INT32_MAX + 1; /* would become columns */
    assert_fails(ctx, csr_transpose(ctx, &a, &m), SPMV_ERROR_LIMIT, "2147483648");
    assert_null(m);
}

/* --------------------------------------------------------------------------------- the check */

/* A valid matrix of 6000 rows with 3 entries each; a test plants one error in it. */
enum { CHECK_ROWS = 6000, CHECK_NNZ = 3 * CHECK_ROWS };
struct planted {
    int64_t row_ptr[CHECK_ROWS + 1];
    int32_t row_ptr32[CHECK_ROWS + 1];
    int32_t col[CHECK_NNZ];
    double val[CHECK_NNZ];
    spmv_csr a;
};

static void make_good(struct planted *p, int bits)
{
    for (int64_t row = 0; row <= CHECK_ROWS; row++) {
        p->row_ptr[row] = 3 * row;
        p->row_ptr32[row] = (int32_t)(3 * row);
    }
    for (int64_t k = 0; k < CHECK_NNZ; k++) {
        p->col[k] = (int32_t)(k % 3 * 4); /* 0, 4, 8 */
        p->val[k] = 1;
    }
    p->a = support_csr_with(CHECK_ROWS, 9, CHECK_NNZ, bits == 64 ? (const void *)p->row_ptr : p->row_ptr32, bits,
                            p->col, p->val, SPMV_F64);
}

static void set_offset(struct planted *p, int64_t row, int64_t offset)
{
    p->row_ptr[row] = offset;
    p->row_ptr32[row] = (int32_t)offset;
}

static void planted_structure_errors(void **state)
{
    static struct planted p;
    spmv_context *ctx = *state;
    for (int bits = 32; bits <= 64; bits += 32) {
        make_good(&p, bits);
        assert_ok(ctx, spmv_matrix_check(ctx, &p.a));
        p.col[300] = 8; /* any order and repeated columns are valid */
        p.col[301] = 0;
        p.col[302] = 8;
        assert_ok(ctx, spmv_matrix_check(ctx, &p.a));
        assert_fails(ctx, csr_check(ctx, "f", &p.a, CSR_SORTED), SPMV_ERROR_SIZE,
                     "f: row 100, entry 301: column 0 follows column 8");
        make_good(&p, bits);
        p.col[5999] = p.col[5998];
        assert_fails(ctx, csr_check(ctx, "f", &p.a, CSR_SORTED), SPMV_ERROR_SIZE,
                     "f: row 1999, entry 5999: column 4 follows column 4");
        make_good(&p, bits);
        set_offset(&p, 0, 1);
        assert_fails(ctx, spmv_matrix_check(ctx, &p.a), SPMV_ERROR_SIZE, "row_ptr[0] is 1, not 0");
        make_good(&p, bits);
        set_offset(&p, 4000, 20000);
        set_offset(&p, 5000, 20000);
        assert_fails(ctx, spmv_matrix_check(ctx, &p.a), SPMV_ERROR_SIZE,
                     "row 4000 ends before it starts: row_ptr[4000] is 20000, then 12003");
        make_good(&p, bits);
        set_offset(&p, 17, -1);
        assert_fails(ctx, spmv_matrix_check(ctx, &p.a), SPMV_ERROR_SIZE, "row 16 ends before it starts");
        make_good(&p, bits);
        set_offset(&p, CHECK_ROWS, CHECK_NNZ + 1);
        assert_fails(ctx, spmv_matrix_check(ctx, &p.a), SPMV_ERROR_SIZE,
                     "after row 5999: row_ptr[6000] is 18001, not the 18000 entries");
        make_good(&p, bits);
        p.col[12000] = 9;
        p.col[15000] = -7;
        assert_fails(ctx, spmv_matrix_check(ctx, &p.a), SPMV_ERROR_SIZE,
                     "row 4000, entry 12000: column 9 is outside the 9 columns");
        p.col[12000] = 0;
        assert_fails(ctx, spmv_matrix_check(ctx, &p.a), SPMV_ERROR_SIZE, "row 5000, entry 15000: column -7 is outside");
    }
}

static void planted_argument_errors(void **state)
{
    static struct planted p;
    spmv_context *ctx = *state;
    make_good(&p, 64);
    const spmv_csr good = p.a;
#define PLANT(change, status, sentence)                                                                                \
    do {                                                                                                               \
        p.a = good;                                                                                                    \
        p.a.change;                                                                                                    \
        assert_fails(ctx, spmv_matrix_check(ctx, &p.a), status, sentence);                                             \
    } while (0)
    PLANT(rows = -1, SPMV_ERROR_ARGUMENT, "-1 x 9");
    PLANT(cols = -2, SPMV_ERROR_ARGUMENT, "6000 x -2");
    PLANT(nnz = -3, SPMV_ERROR_ARGUMENT, "-3 entries");
    PLANT(cols = (int64_t)1 << 31, SPMV_ERROR_LIMIT, "2147483648 columns");
    PLANT(row_ptr = NULL, SPMV_ERROR_ARGUMENT, "row_ptr is NULL");
    PLANT(col = NULL, SPMV_ERROR_ARGUMENT, "col is NULL");
    PLANT(row_ptr_bits = 16, SPMV_ERROR_ARGUMENT, "row_ptr_bits is 16");
    PLANT(type = (spmv_type)30, SPMV_ERROR_TYPE, "type 30 is not");
    PLANT(memory = (spmv_memory)2, SPMV_ERROR_ARGUMENT, "memory is 2");
#undef PLANT
    assert_fails(ctx, spmv_matrix_check(ctx, NULL), SPMV_ERROR_ARGUMENT, "NULL");
    p.a = good;
    p.a.val = NULL;
    p.a.type = (spmv_type)30; /* without values the type is not read */
    assert_ok(ctx, spmv_matrix_check(ctx, &p.a));
}

SUPPORT_MAIN(with_context(small_by_hand), with_context(duplicates_in_the_order_given),
             with_context(random_against_dense), with_context(nothing_at_all), with_context(one_full_row),
             with_context(rows_of_every_length), with_context(same_bits_for_any_team), with_context(bad_entries),
             with_context(bad_arguments), with_context(allocation_limits), with_context(portions_and_mirrors),
             with_context(mirrors_by_hand), with_context(transpose_by_hand), with_context(transpose_random),
             with_context(transpose_keeps_what_repeats), with_context(transpose_refuses),
             with_context(planted_structure_errors), with_context(planted_argument_errors))
