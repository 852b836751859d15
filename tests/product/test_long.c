/* The method "long" of the backend cuda: rows that end just before, at and behind the ends of steps
 * and units, rows in many units, empty rows at the start, at the end and in between; units whose
 * columns just fit in 16 bits or just do not; x in shared and in global memory; the order of the
 * sums, bit by bit; the plan's choice; new values; an epilogue; memory that runs out. Runs on a
 * GPU, and on a host that runs the kernels.
 *
 * Values are small integers where results are compared with expected ones, so that every order of
 * summation gives the same result.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_planned.h"

#ifdef HOST_CUDA
enum { LEAST = 20000 }; /* SPMV_LONG_LEAST of this build */
#else
enum { LEAST = 3 << 20 };
#endif
/* Constants of the kernels: nonzeros of a unit and of a step, the least means of a plan that chooses
 * the method. */
enum { UNIT = 1024, STEP = 256, LANES = 32, MEAN = 192, GLOBAL = 2000 };

static const struct setting settings[] = {
    {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1},
    {.stored = SPMV_F32, .sums = SPMV_F32, .compression = -1, .scaled = true},
    {.stored = SPMV_F64, .sums = SPMV_F64, .compression = 0, .scaled = true},
    {.stored = SPMV_F32, .sums = SPMV_F64, .compression = -1},
    {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1, .pattern = true, .scaled = true},
    {.stored = SPMV_F32, .sums = SPMV_F32, .compression = 0},
    {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1, .wide = true},
    {.stored = SPMV_F32, .sums = SPMV_F64, .compression = 0, .wide = true, .scaled = true},
    {.stored = SPMV_F32, .sums = SPMV_F32, .compression = -1, .pattern = true},
};

/* Runs every setting with the method named; checks the plan's description too. */
static void check_matrix(const char *name, const struct matrix *m, const char *says)
{
    static size_t turn;
    turn++;
    for (size_t k = 0; k < (brief ? 3 : sizeof settings / sizeof settings[0]); k++) {
        if (!on_real_gpu() && k > 0 && (turn + k) % 2 != 0)
            continue; /* an emulated GPU: the first and every other one, in turns */
        struct planned p = make_named_plan(m, "long", settings[k]);
        if (settings[k].compression != 0)
            check_layout(name, &p, says);
        check_product(name, m, &p, m->val);
        free_plan(&p);
    }
}

static void check_lengths(const char *name, const int64_t *lengths, int64_t rows, int64_t cols, const char *says)
{
    struct matrix m = make_matrix(lengths, rows, cols, true, false);
    check_matrix(name, &m, says);
    free_matrix(&m);
}

/* ------------------------------------------------------------------ matrices */

/* Rows around steps and units, which begin anywhere in a unit. */
static void seams(void **state)
{
    (void)state;
    static const int64_t around[] = {1, LANES, STEP, UNIT, 2 * UNIT, 33 * UNIT};
    for (size_t a = 0; a < sizeof around / sizeof around[0]; a++)
        for (int64_t before = 0; before <= 700; before += 350) {
            const int64_t n = around[a];
            const int64_t lengths[] = {before, n - 1, n, n + 1, 5, n, 0, n, UNIT - before};
            check_lengths("around a seam", lengths, 9, 300, "units of 1024");
        }
    const int64_t exact[] = {UNIT, UNIT, STEP, STEP, 2 * STEP, UNIT}; /* every row ends with a step */
    check_lengths("whole steps", exact, 6, 50, "units of 1024");
    const int64_t one[] = {1};
    check_lengths("one entry", one, 1, 1, "rows of 1 entries on average, 1 at most, in 1 unit of 1024");
}

/* Empty rows at the start, between long rows, at a cut and at the end: fewer and more than a warp
 * looks at once. */
static void empty_rows(void **state)
{
    (void)state;
    enum { ROWS = 3000, MOST_GAP = 700, ROOM = 5 * MOST_GAP + 10 };
    static const int64_t gaps[] = {1, 31, 32, 33, 63, 64, 65, 100, MOST_GAP};
    int64_t *const lengths = support_zeros(ROOM, sizeof *lengths);
    for (size_t g = 0; g < sizeof gaps / sizeof gaps[0]; g++) {
        memset(lengths, 0, ROOM * sizeof *lengths);
        int64_t row = gaps[g];
        lengths[row] = 500;
        lengths[row += gaps[g] + 1] = UNIT - 500; /* ends with the unit */
        lengths[row += gaps[g] + 1] = 3 * UNIT + 7;
        lengths[row += gaps[g] + 1] = 20;
        check_lengths("empty rows", lengths, row + gaps[g] + 1, 200, " empty");
    }
    memset(lengths, 0, ROOM * sizeof *lengths);
    check_lengths("only empty rows", lengths, ROWS, 10, "3000 empty");
    for (int64_t i = 0; i < ROWS; i++)
        lengths[i] = i % 4;
    check_lengths("short rows", lengths, ROWS, 200, "2250 rows of less than 64 entries, 750 empty");
    check_lengths("no rows", lengths, 0, 10, "");
    free(lengths);
}

/* More units than warps, and a row in so many units that lanes add several of its sums. */
static void many_units(void **state)
{
    (void)state;
    enum { ROWS = 330 };
    int64_t lengths[ROWS];
    for (int i = 0; i < ROWS; i++)
        lengths[i] = i == 170 ? 100 * UNIT + 5 : 300 + 7919 * i % 1700;
    check_lengths("many units", lengths, ROWS, 9000, "16-bit columns in 100 % of the units");
}

/* Columns of a unit that span 2^16 - 1 and 2^16; half of the units and fewer. */
static void narrow_columns(void **state)
{
    (void)state;
    enum { ROWS = 8, COLS = 200000 };
    static const char *const says[] = {"16-bit columns in 100 % of", "16-bit columns in 87.5 % of",
                                       "16-bit columns in 50 % of", "16-bit columns in 0 % of"};
    static const int wide[] = {0, 1, 4, 5};
    int64_t lengths[ROWS];
    for (int i = 0; i < ROWS; i++)
        lengths[i] = UNIT;
    for (int test = 0; test < 4; test++) {
        struct matrix m = make_matrix(lengths, ROWS, COLS, true, false);
        for (int64_t k = 0; k < m.nnz; k++) {
            const int64_t u = k / UNIT, span = u < wide[test] ? 65537 : 65536, base = 13 * u * 1000;
            m.col[k] = (int32_t)(base + (k % UNIT == 3 ? 0 : k % UNIT == 700 ? span - 1 : m.col[k] % 65536));
        }
        check_matrix("spans", &m, says[test]);
        free_matrix(&m);
    }
}

/* ------------------------------------------------------------------ the order of sums */

static double tree(double *lane)
{
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        for (int l = 0; l < distance; l++)
            lane[l] += lane[l + distance];
    return lane[0];
}

/* The sum of a row in the order that the method promises. */
static double sum_in_order(const struct matrix *m, int64_t row, const double *x)
{
    const int64_t begin = m->row_ptr[row], end = m->row_ptr[row + 1], first = begin / UNIT;
    const int64_t units = end > begin ? (end - 1) / UNIT - first + 1 : 0;
    double folded[LANES] = {0}, sum = 0;
    for (int64_t u = 0; u < units; u++) {
        double lane[LANES] = {0};
        for (int64_t k = (first + u) * UNIT; k < (first + u + 1) * UNIT; k++)
            if (k >= begin && k < end)
                lane[k % LANES] += m->val[k] * x[m->col[k]];
        sum = tree(lane);
        folded[u % LANES] += sum;
    }
    return units > 1 ? tree(folded) : sum;
}

/* Neither the place of x nor the width of columns and offsets changes a bit. */
static void bits(void **state)
{
    (void)state;
    enum { ROWS = 120, COLS = 500, MORE_COLS = 400000 };
    int64_t lengths[ROWS];
    for (int i = 0; i < ROWS; i++)
        lengths[i] = i == 50 ? 70 * UNIT + 1 : i % 10 == 0 ? 0 : 7919 * i % 5000;
    struct matrix m = make_matrix(lengths, ROWS, COLS, false, false);
    double *const x = make_vector(MORE_COLS, 3, false), *const expected = support_zeros(ROWS, sizeof *expected);
    for (int i = 0; i < ROWS; i++)
        expected[i] = sum_in_order(&m, i, x);
    for (int v = 0; v < 8; v++) {
        m.cols = v % 2 == 0 ? COLS : MORE_COLS;
        struct planned p = make_plan(&m, (struct setting){.method = "long",
                                                          .stored = SPMV_F64,
                                                          .sums = SPMV_F64,
                                                          .compression = v / 2 % 2 == 0 ? -1 : 0,
                                                          .wide = v / 4 != 0});
        assert_non_null(strstr(p.plan->layout, m.cols == COLS ? "x in shared memory" : "x in global memory"));
        void *const y = product_of(&p, x, NULL);
        assert_memory_equal(y, expected, sizeof lengths);
        free(y);
        free_plan(&p);
    }
    support_free(expected, x);
    free_matrix(&m);
}

/* ------------------------------------------------------------------ the plan's choice */

/* With x in global memory, 2000 entries per row are needed. */
static void check_global_choice(struct setting automatic)
{
    enum { ROWS = LEAST / GLOBAL + 1 };
    int64_t lengths[ROWS];
    for (int less = 0; less < 2; less++) {
        for (int64_t i = 0; i < ROWS; i++)
            lengths[i] = GLOBAL - (i < less);
        struct matrix m = make_matrix(lengths, ROWS, 400000, true, false);
        check_choice_of(&m, automatic, "long", less == 0);
        free_matrix(&m);
    }
}

static void choice(void **state)
{
    (void)state;
    enum { ROWS = LEAST / MEAN, SHORTS = ROWS / 8, COLS = 1000 };
    struct setting automatic = {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1}, named = automatic;
    named.method = "long";
    int64_t *const lengths = support_zeros(ROWS + 1, sizeof *lengths);
    for (int64_t i = 0; i < ROWS; i++)
        lengths[i] = MEAN + (i < LEAST % MEAN ? 1 : 0);
    struct matrix m = make_matrix(lengths, ROWS, COLS, true, false);
    assert_int_equal(m.nnz, LEAST);
    check_taken(&m, automatic, "long");
    for (int compression = 0; compression <= 2; compression += 2) { /* a table of values: tiles */
        automatic.compression = compression;
        check_taken(&m, automatic, compression == 0 ? "long" : "tiles");
    }
    automatic.compression = -1;
    m.cols = 400000; /* x does not fit in shared memory */
    check_not_taken(&m, automatic, "long");
    check_taken(&m, named, "long");
    check_global_choice(automatic);
#ifdef HOST_CUDA
    /* The copies of x in four multiprocessors may have the bytes of the matrix, 10 for each
     * nonzero. */
    m.cols = LEAST * 10 / 4 / 8;
    check_taken(&m, automatic, "long");
    m.cols++;
    check_not_taken(&m, automatic, "long");
#endif
    free_matrix(&m);

    lengths[0]--; /* one entry less than the least number */
    m = make_matrix(lengths, ROWS, COLS, true, false);
    check_not_taken(&m, automatic, "long");
    check_taken(&m, named, "long");
    free_matrix(&m);
    lengths[0]++;
    lengths[ROWS] = MEAN - LEAST % MEAN - 1; /* the mean is just too small */
    m = make_matrix(lengths, ROWS + 1, COLS, true, false);
    check_not_taken(&m, automatic, "long");
    free_matrix(&m);

    for (int more = 0; more < 2; more++) { /* an eighth of the rows is short, and one more */
        for (int64_t i = 0; i < ROWS; i++)
            lengths[i] = i < SHORTS + more ? 63 : 64;
        lengths[ROWS - 1] = LEAST;
        m = make_matrix(lengths, ROWS, COLS, true, false);
        check_choice_of(&m, automatic, "long", more == 0);
        check_taken(&m, named, "long");
        free_matrix(&m);
    }
    free(lengths);
}

/* ------------------------------------------------------------------ values, epilogue, memory */

static struct matrix make_usual(void)
{
    enum { ROWS = 40 };
    int64_t lengths[ROWS];
    for (int i = 0; i < ROWS; i++)
        lengths[i] = i % 7 == 3 ? 0 : 400 + 7919 * i % 3000;
    return make_matrix(lengths, ROWS, 700, true, false);
}

static void check_new_values(const struct matrix *m, struct setting s)
{
    double *const values = support_zeros(m->nnz, 8);
    struct planned p = make_plan(m, s);
    for (int turn = 0; turn < 2; turn++) {
        for (int64_t k = 0; k < m->nnz; k++)
            values[k] = (double)((k + turn) % 17) - 7;
        check_update(m, &p, values);
    }
    free_plan(&p);
    free(values);
}

static void new_values(void **state)
{
    (void)state;
    struct matrix m = make_usual();
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (!settings[i].pattern)
            check_new_values(&m, updating(settings[i], "long"));
    free_matrix(&m);
}

static void epilogue(void **state)
{
    (void)state;
    struct matrix m = make_usual();
    check_epilogue(&m, "long");
    free_matrix(&m);
}

/* The plan is made with more and more memory: first not at all, then without 16-bit columns. */
static void memory_runs_out(void **state)
{
    (void)state;
#ifdef HOST_CUDA
    struct matrix m = make_usual();
    const struct setting s = {.method = "long", .stored = SPMV_F64, .sums = SPMV_F64, .compression = -1};
    int narrow[2] = {0, 0};
    const int refused = plans_with_little_memory(&m, s, 1 << 8, 1 << 19, 8, count_widths, narrow);
    assert_true(narrow[0] > 3 && narrow[1] > 3 && refused > 3);
    free_matrix(&m);
#endif
}

ONE_CONTEXT_MAIN(cmocka_unit_test(seams), cmocka_unit_test(empty_rows), cmocka_unit_test(many_units),
                 cmocka_unit_test(narrow_columns), cmocka_unit_test(bits), cmocka_unit_test(choice),
                 cmocka_unit_test(new_values), cmocka_unit_test(epilogue), cmocka_unit_test(memory_runs_out))
