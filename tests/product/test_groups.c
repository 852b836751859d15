/* The method "groups" of the backend cuda: groups of 1 to 20 rows with equal columns, also cut at the
 * ends of tiles; rows of all lengths around the lanes and the steps; empty rows; groups whose
 * columns just fit in 16 bits or just do not; the order of the sums, bit by bit; the plan's choice;
 * new values; infinite values; an epilogue; memory that runs out. Runs on a GPU, and on a host that
 * runs the kernels.
 *
 * Values are small integers where results are compared with expected ones, so that every order of
 * summation gives the same result.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_planned.h"

#ifdef HOST_CUDA
enum { LEAST = 4000 }; /* SPMV_TILES_LARGE of this build */
#else
enum { LEAST = 1 << 20 };
#endif
/* Constants of the kernels: rows of a group, rows that are searched for groups together. Of a plan that
 * chooses its method: entries of a group, the longest row in mean lengths. */
enum { MOST_ROWS = 8, TILE = 420, ENTRIES = 64, MOST_TIMES = 16 };

static const struct setting settings[] = {
    {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1},
    {.stored = SPMV_F32, .sums = SPMV_F32, .compression = -1, .scaled = true},
    {.stored = SPMV_F64, .sums = SPMV_F64, .compression = 0, .scaled = true},
    {.stored = SPMV_F32, .sums = SPMV_F64, .compression = -1},
    {.stored = SPMV_F32, .sums = SPMV_F32, .compression = 0, .skew = 1},
    {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1, .wide = true},
    {.stored = SPMV_F32, .sums = SPMV_F64, .compression = 0, .wide = true, .scaled = true},
};

/* A matrix whose rows of group g are sizes[g] rows of lengths[g] entries with equal columns. */
static struct matrix make_grouped(const int64_t *sizes, const int64_t *lengths, int64_t groups, int64_t cols,
                                  bool whole)
{
    int64_t rows = 0;
    for (int64_t g = 0; g < groups; g++)
        rows += sizes[g];
    int64_t *const of_rows = support_zeros(rows, sizeof *of_rows);
    for (int64_t g = 0, row = 0; g < groups; g++)
        for (int64_t i = 0; i < sizes[g]; i++)
            of_rows[row++] = lengths[g];
    struct matrix m = make_matrix(of_rows, rows, cols, whole, false);
    for (int64_t g = 0, row = 0; g < groups; row += sizes[g++])
        for (int64_t i = 1; i < sizes[g]; i++)
            memcpy(m.col + m.row_ptr[row + i], m.col + m.row_ptr[row], (size_t)lengths[g] * sizeof *m.col);
    free(of_rows);
    return m;
}

/* Runs every setting with the method named; checks the plan's description too. */
static void check_matrix(const char *name, const struct matrix *m, const char *says)
{
    static size_t turn;
    turn++;
    for (size_t k = 0; k < (brief ? 3 : sizeof settings / sizeof settings[0]); k++) {
        if (!on_real_gpu() && k > 0 && (turn + k) % 3 != 0)
            continue; /* an emulated GPU: the first and every third one, in turns */
        struct planned p = make_named_plan(m, "groups", settings[k]);
        if (settings[k].compression != 0)
            check_layout(name, &p, says);
        check_product(name, m, &p, m->val);
        free_plan(&p);
    }
}

static void check_groups(const char *name, const int64_t *sizes, const int64_t *lengths, int64_t groups, int64_t cols,
                         const char *says)
{
    struct matrix m = make_grouped(sizes, lengths, groups, cols, true);
    check_matrix(name, &m, says);
    free_matrix(&m);
}

/* ------------------------------------------------------------------ matrices */

/* Groups of 1 to 9 and of 20 rows, which the plan cuts after 8; neighbouring groups have the same
 * length, so only the columns tell where one ends. */
static void sizes_of_groups(void **state)
{
    (void)state;
    const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 20, 1};
    for (int64_t length = 5; length <= 115; length += 110) { /* 8, 16 and 32 lanes */
        int64_t lengths[12];
        for (int g = 0; g < 12; g++)
            lengths[g] = length;
        check_groups("sizes", sizes, lengths, 12, 1000, "in 15 groups of 4.47 rows with equal columns");
    }
    const int64_t all[] = {3 * TILE + 1}, four[] = {4};
    check_groups("all rows are equal", all, four, 1, 50, "in 160 groups of");
}

/* Rows around the lanes of a group and the columns that a lane loads at once, of one and of several
 * rows; groups of unequal length side by side. */
static void lengths_of_rows(void **state)
{
    (void)state;
    enum { AROUND = 8 };
    static const int64_t around[AROUND] = {1, 8, 16, 32, 64, 96, 128, 256};
    int64_t sizes[3 * AROUND], lengths[3 * AROUND];
    for (int64_t size = 1; size <= MOST_ROWS; size++) {
        for (int i = 0; i < 3 * AROUND; i++) {
            sizes[i] = i % 5 == 0 ? 1 + (size + i) % MOST_ROWS : size;
            lengths[i] = around[(i * 5 + (int)size) % AROUND] + i % 3 - 1;
        }
        check_groups("lengths", sizes, lengths, 3 * AROUND, 2000, "16 lanes per group");
        for (int i = 0; i < 3 * AROUND; i++)
            lengths[i] = i == 7 ? 100 : 7 + (i + size) % 3;
        check_groups("short rows", sizes, lengths, 3 * AROUND, 2000, "8 lanes per group");
        for (int i = 0; i < 3 * AROUND; i++)
            lengths[i] = i == 7 ? 3 : 127 + (i + size) % 3;
        check_groups("long rows", sizes, lengths, 3 * AROUND, 2000, "16 lanes per group");
    }
}

/* Groups across the ends of tiles, and a last tile of one row. */
static void tiles(void **state)
{
    (void)state;
    enum { GROUPS = 420 };
    int64_t sizes[GROUPS], lengths[GROUPS];
    for (int64_t size = 2; size <= MOST_ROWS; size += 3) {
        for (int g = 0; g < GROUPS; g++) {
            sizes[g] = g == 0 ? 1 : size;
            lengths[g] = g % 4;
        }
        check_groups("tiles", sizes, lengths, GROUPS, 300, "rows with equal columns");
    }
    for (int g = 0; g < GROUPS; g++)
        sizes[g] = lengths[g] = 1;
    check_groups("one tile", sizes, lengths, GROUPS, 300, "rows with equal columns");
    sizes[5] = 2; /* one row more than a tile */
    check_groups("a row more", sizes, lengths, GROUPS, 300, "rows with equal columns");
}

static void empty_rows(void **state)
{
    (void)state;
    const int64_t sizes[] = {3, 2, 100, 2, 7, 1, 33}, lengths[] = {0, 6, 0, 6, 0, 40, 0};
    check_groups("empty rows", sizes, lengths, 7, 300, "143 empty rows");
    const int64_t one[] = {1};
    check_groups("one entry", one, one, 1, 1, "in 1 group of 1 rows with equal columns, 1 at most");
}

/* Columns of groups that span 2^16 - 1 and 2^16: all, some and none of the groups. */
static void narrow_columns(void **state)
{
    (void)state;
    enum { GROUPS = 8, LENGTH = 20, COLS = 200000 };
    static const char *const says[] = {"16-bit columns in 100 % of", "16-bit columns in 75 % of",
                                       "16-bit columns in 12.5 % of", "16-bit columns in 0 % of"};
    static const int wide[] = {0, 2, 7, 8};
    int64_t sizes[GROUPS], lengths[GROUPS];
    for (int g = 0; g < GROUPS; g++) {
        sizes[g] = 1 + g % 3;
        lengths[g] = LENGTH;
    }
    for (int test = 0; test < 4; test++) {
        struct matrix m = make_grouped(sizes, lengths, GROUPS, COLS, true);
        for (int64_t g = 0, k = 0; g < GROUPS; g++) {
            const int64_t span = g < wide[test] ? 65537 : 65536, base = 13 * g * 1000;
            for (int64_t i = 0; i < sizes[g] * LENGTH; i++, k++)
                m.col[k] = (int32_t)(base + (i % LENGTH == 3    ? 0
                                             : i % LENGTH == 11 ? span - 1
                                                                : 5000 * (i % LENGTH) % 65536));
        }
        check_matrix("spans", &m, says[test]);
        free_matrix(&m);
    }
}

/* ------------------------------------------------------------------ the order of sums */

/* The sum of a row in the order that the method promises. */
static double sum_in_order(const struct matrix *m, int64_t row, int lanes, const double *x)
{
    double lane[16] = {0};
    for (int64_t k = m->row_ptr[row]; k < m->row_ptr[row + 1]; k++)
        lane[(k - m->row_ptr[row]) % lanes] += m->val[k] * x[m->col[k]];
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        for (int l = 0; l < distance; l++)
            lane[l] += lane[l + distance];
    return lane[0];
}

/* The sizes of groups and the width of columns and offsets do not change a bit. */
static void bits(void **state)
{
    (void)state;
    enum { GROUPS = 60, COLS = 3000, MOST = GROUPS * MOST_ROWS };
    static const int lanes_of[] = {8, 16, 16}, most[] = {50, 90, 400};
    int64_t sizes[GROUPS], lengths[GROUPS];
    for (int which = 0; which < 3; which++) {
        for (int g = 0; g < GROUPS; g++) {
            sizes[g] = 1 + g % MOST_ROWS;
            lengths[g] = 7919 * g % most[which];
        }
        struct matrix m = make_grouped(sizes, lengths, GROUPS, COLS, false);
        double *const x = make_vector(COLS, 3, false), expected[MOST];
        for (int64_t i = 0; i < m.rows; i++)
            expected[i] = sum_in_order(&m, i, lanes_of[which], x);
        for (int v = 0; v < 4; v++) {
            struct planned p = make_plan(&m, (struct setting){.method = "groups",
                                                              .stored = SPMV_F64,
                                                              .sums = SPMV_F64,
                                                              .compression = v % 2 == 0 ? -1 : 0,
                                                              .wide = v / 2 != 0});
            void *const y = product_of(&p, x, NULL);
            assert_memory_equal(y, expected, (size_t)m.rows * sizeof *expected);
            free(y);
            free_plan(&p);
        }
        free(x);
        free_matrix(&m);
    }
}

/* ------------------------------------------------------------------ the plan's choice */

/* A matrix with groups of `size` rows of `length` entries. */
static struct matrix make_even(int64_t size, int64_t length, int64_t groups)
{
    int64_t *const sizes = support_zeros(groups, sizeof *sizes), *const lengths =
                                                                     support_zeros(groups, sizeof *lengths);
    for (int64_t g = 0; g < groups; g++) {
        sizes[g] = size;
        lengths[g] = length;
    }
    const struct matrix m = make_grouped(sizes, lengths, groups, 2000, true);
    support_free(sizes, lengths);
    return m;
}

/* Leaves out what is behind the first nnz nonzeros. */
static void cut(struct matrix *m, int64_t nnz)
{
    while (m->row_ptr[m->rows - 1] >= nnz)
        m->rows--;
    m->row_ptr[m->rows] = m->nnz = nnz;
}

/* The least number of nonzeros, the option compression, and patterns. */
static void check_options(void)
{
    struct setting automatic = {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1}, named = automatic;
    named.method = "groups";
    struct matrix m = make_even(2, ENTRIES / 2 + 1, LEAST / ENTRIES + 1);
    cut(&m, LEAST);
    check_taken(&m, automatic, "groups");
    check_taken(&m, in_type(automatic, NULL, SPMV_F32), "groups");
    automatic.compression = 0;
    check_taken(&m, automatic, "groups");
    automatic.compression = 2; /* a table of the nine values: tiles */
    check_taken(&m, automatic, "tiles");
    for (int64_t k = 0; k < m.nnz; k++)
        m.val[k] = (double)(k % 1000);
    check_taken(&m, automatic, "groups");
    automatic.compression = -1;
    automatic.pattern = named.pattern = true;
    check_not_taken(&m, automatic, "groups");
    check_taken(&m, named, "tiles");
    automatic.pattern = named.pattern = false;
    cut(&m, LEAST - 1);
    check_not_taken(&m, automatic, "groups");
    check_taken(&m, named, "groups");
    free_matrix(&m);
}

static void choice(void **state)
{
    (void)state;
    enum { LENGTH = ENTRIES / 2, GROUPS = LEAST / ENTRIES + 1 };
    const struct setting automatic = {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1};
    check_options();
    struct matrix m = make_even(1, 2 * LENGTH, GROUPS); /* no equal rows */
    check_not_taken(&m, automatic, "groups");
    free_matrix(&m);
    m = make_even(2, LENGTH - 1, 2 * GROUPS); /* groups have two entries less */
    check_not_taken(&m, automatic, "groups");
    free_matrix(&m);
    int64_t *const sizes = support_zeros(GROUPS + 1, sizeof *sizes);
    int64_t *const lengths = support_zeros(GROUPS + 1, sizeof *lengths);
    for (int64_t more = 0; more < 2; more++) { /* a row of 16 times the mean length, and of 32 times */
        for (int64_t g = 0; g < GROUPS; g++) {
            sizes[g] = 2;
            lengths[g] = LENGTH + 1;
        }
        sizes[GROUPS] = 1;
        lengths[GROUPS] = (1 + more) * MOST_TIMES * (LENGTH + 1);
        m = make_grouped(sizes, lengths, GROUPS + 1, 2000, true);
        check_choice_of(&m, automatic, "groups", more == 0);
        free_matrix(&m);
    }
    support_free(sizes, lengths);
}

/* ------------------------------------------------------------------ values, epilogue, memory */

static struct matrix make_usual(void)
{
    enum { GROUPS = 90 };
    int64_t sizes[GROUPS], lengths[GROUPS];
    for (int g = 0; g < GROUPS; g++) {
        sizes[g] = 1 + 31 * g % 10;
        lengths[g] = g % 7 == 3 ? 0 : 10 + 7919 * g % 70;
    }
    return make_grouped(sizes, lengths, GROUPS, 900, true);
}

static void new_values(void **state)
{
    (void)state;
    struct matrix m = make_usual();
    double *const values = support_zeros(m.nnz, 8);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        struct planned p = make_plan(&m, updating(settings[i], "groups"));
        for (int turn = 0; turn < 2; turn++) {
            for (int64_t k = 0; k < m.nnz; k++)
                values[k] = (double)((k + turn) % 17) - 7;
            check_update(&m, &p, values);
        }
        free_plan(&p);
    }
    free(values);
    free_matrix(&m);
}

/* An infinite element of x, and one that is no number, reach the rows that have their columns and no
 * other; the same for a value. */
static void infinite_values(void **state)
{
    (void)state;
    struct matrix m = make_usual();
    double *const x = make_vector(m.cols, 3, true);
    x[m.col[m.row_ptr[20]]] = INFINITY;
    x[m.col[m.row_ptr[31]]] = NAN;
    x[0] = INFINITY; /* places without an entry must not gather it */
    m.val[m.row_ptr[40]] = NAN;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (settings[i].sums != SPMV_F64 || settings[i].scaled)
            continue;
        struct planned p = make_named_plan(&m, "groups", settings[i]);
        double *const y = product_of(&p, x, NULL);
        for (int64_t row = 0; row < m.rows; row++) {
            bool finite = true;
            for (int64_t k = m.row_ptr[row]; k < m.row_ptr[row + 1]; k++)
                finite = finite && isfinite(x[m.col[k]]) && isfinite(m.val[k]);
            assert_int_equal((bool)isfinite(y[row]), finite);
        }
        free(y);
        free_plan(&p);
    }
    free(x);
    free_matrix(&m);
}

static void epilogue(void **state)
{
    (void)state;
    struct matrix m = make_usual();
    check_epilogue(&m, "groups");
    free_matrix(&m);
}

/* The plan is made with more and more memory: first not at all, then without 16-bit columns. */
static void memory_runs_out(void **state)
{
    (void)state;
#ifdef HOST_CUDA
    struct matrix m = make_usual();
    const struct setting s = {.method = "groups", .stored = SPMV_F64, .sums = SPMV_F64, .compression = -1};
    int narrow[2] = {0, 0};
    const int refused = plans_with_little_memory(&m, s, 1 << 8, 1 << 19, 8, count_widths, narrow);
    assert_true(narrow[0] > 1 && narrow[1] > 3 && refused > 3);
    free_matrix(&m);
#endif
}

ONE_CONTEXT_MAIN(cmocka_unit_test(sizes_of_groups), cmocka_unit_test(lengths_of_rows), cmocka_unit_test(tiles),
                 cmocka_unit_test(empty_rows), cmocka_unit_test(narrow_columns), cmocka_unit_test(bits),
                 cmocka_unit_test(choice), cmocka_unit_test(new_values), cmocka_unit_test(infinite_values),
                 cmocka_unit_test(epilogue), cmocka_unit_test(memory_runs_out))
