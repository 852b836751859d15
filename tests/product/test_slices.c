/* The method "slices" of the backend cuda: grids and bands whose size is no multiple of a slice, grids
 * with long lines, rows that lack entries, empty rows, more columns than rows and fewer; patterns that
 * are shared, too many to be shared, and different ones with the same hash; new values, with and
 * without a table; which matrices get tiles instead; memory that runs out. Runs on a GPU, and on a
 * host that runs the kernels.
 *
 * Values are small integers where results are compared with expected ones, so that every order of
 * summation gives the same result.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/plural.h"
#include "tests/support/support_planned.h"

#ifdef HOST_CUDA
/* SPMV_TILES_LARGE, SPMV_SLICES_PATTERNS and SPMV_SLICES_STRIP_BYTES of this build */
enum { LARGE = 4000, PATTERNS = 40, STRIP_BYTES = 6 * 1024 };
#else
enum { LARGE = 1 << 20, PATTERNS = 512, STRIP_BYTES = 24 * 1024 };
#endif
enum { SLICE = 64, TILE = 4 * SLICE };

/* Row i has the columns i + offsets[j] that exist. One in `lacks` entries is left out at random (0:
 * none). offsets ascend. */
static struct matrix make_band(int64_t rows, int64_t cols, const int32_t *offsets, int count, int lacks, bool whole)
{
    uint64_t random = (uint64_t)(rows + 31 * count + lacks);
    struct matrix m = {.rows = rows,
                       .cols = cols,
                       .row_ptr = support_zeros(rows + 1, sizeof *m.row_ptr),
                       .col = support_zeros(rows * count, sizeof *m.col),
                       .val = support_zeros(rows * count, sizeof *m.val)};
    for (int64_t i = 0; i < rows; i++) {
        for (int j = 0; j < count; j++) {
            const int64_t col = i + offsets[j];
            if (col < 0 || col >= cols || (lacks > 0 && support_random(&random) % (uint64_t)lacks == 0))
                continue;
            m.col[m.nnz] = (int32_t)col;
            m.val[m.nnz++] = draw(whole, &random);
        }
        m.row_ptr[i + 1] = m.nnz;
    }
    return m;
}

/* A 5-point grid with the given number of points per line. */
static struct matrix make_grid(int64_t lines, int64_t line, bool whole)
{
    const int32_t offsets[] = {-(int32_t)line, -1, 0, 1, (int32_t)line};
    struct matrix m = make_band(lines * line, lines * line, offsets, 5, 0, whole);
    int64_t kept = 0;
    for (int64_t i = 0; i < m.rows; i++) { /* no neighbours across the ends of lines */
        const int64_t begin = m.row_ptr[i], end = m.row_ptr[i + 1];
        m.row_ptr[i] = kept;
        for (int64_t k = begin; k < end; k++) {
            const int64_t step = m.col[k] - i;
            if ((step == 1 || step == -1) && i / line != m.col[k] / line)
                continue;
            m.col[kept] = m.col[k];
            m.val[kept++] = m.val[k];
        }
    }
    m.nnz = m.row_ptr[m.rows] = kept;
    return m;
}

static const struct setting settings[] = {
    {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1},
    {.stored = SPMV_F32, .sums = SPMV_F32, .compression = -1, .scaled = true},
    {.stored = SPMV_F64, .sums = SPMV_F64, .compression = 2, .scaled = true},
    {.stored = SPMV_F32, .sums = SPMV_F64, .compression = -1},
    {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1, .pattern = true},
    {.stored = SPMV_F32, .sums = SPMV_F32, .compression = 2},
    {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1, .wide = true},
    {.stored = SPMV_F32, .sums = SPMV_F64, .compression = 2, .wide = true},
};

/* Runs every setting with the method named; checks the plan's description too. */
static void check_matrix(const char *name, const struct matrix *m, const char *says)
{
    for (size_t k = 0; k < (brief ? 3 : sizeof settings / sizeof settings[0]); k++) {
        struct planned p = make_named_plan(m, "slices", settings[k]);
        check_layout(name, &p, says);
        assert_int_equal(strstr(p.plan->layout, "a table of") != NULL, settings[k].compression == 2);
        check_product(name, m, &p, m->val);
        free_plan(&p);
    }
}

/* ------------------------------------------------------------------ matrices */

static void grids(void **state)
{
    (void)state;
    static const int64_t lines[][2] = {{30, 64}, {64, 32}, {40, 50}, {7, 300}, {20, 100}, {1, 700}};
    for (size_t g = 0; g < (brief ? 2 : sizeof lines / sizeof lines[0]); g++) {
        struct matrix m = make_grid(lines[g][0], lines[g][1], true);
        check_matrix("a grid", &m, "of offsets");
        free_matrix(&m);
    }
}

/* Matrices that are large enough for strip_kernel: a block for each multiprocessor, with several turns for each
 * of its teams. */
#ifdef HOST_CUDA
enum { LINES = 4 };
#else
enum { LINES = 160 };
#endif
enum { STRIP = STRIP_BYTES / 8 / TILE * TILE }; /* rows, in f64 */

/* Plans of so many slices scan in several tiles, see sanitize.sh. */
static bool is_under_initcheck(void)
{
    const char *const checker = getenv("SPMV_TEST_CHECKER");
    return checker != NULL && strcmp(checker, "initcheck") == 0;
}

/* Grids with lines so long that they are cut into strips. The last strip is narrow, or the last line short, or
 * the lines do not end where tiles end. */
static void strips(void **state)
{
    (void)state;
    if (is_under_initcheck())
        skip();
    static const int64_t lines[] = {2 * STRIP, 3 * STRIP - 30, (5 * STRIP + TILE) / 2 + 7};
    for (int i = 0; i < (brief ? 1 : 3); i++) {
        struct matrix m = make_grid(LINES, lines[i], true);
        struct planned p = make_named_plan(&m, "slices", settings[0]);
        check_layout("strips", &p, "; in strips of");
        free_plan(&p);
        check_matrix("strips", &m, "of offsets");
        if (i == 0)
            check_epilogue(&m, "slices");
        free_matrix(&m);
    }
}

/* The same kernel with short lines, empty slices, and a pattern for each slice; matrices it is not for. */
static void beside_strips(void **state)
{
    (void)state;
    if (is_under_initcheck())
        skip();
    enum { ROWS = LINES * 2 * STRIP };
    static const int32_t near[] = {-70, -1, 0, 1, 5, 6, 70}, far[] = {-2 * STRIP, -1, 0, 1, 2 * STRIP};
    struct matrix m = make_band(ROWS, ROWS - 4 * SLICE - 9, near, 7, 9, true);
    check_matrix("empty slices at the end", &m, "a pattern of offsets for each slice");
    free_matrix(&m);
    for (int unlike = 0; unlike < 2; unlike++) { /* the last third of the slices is empty */
        m = make_band(ROWS, ROWS - unlike * (ROWS / 3 + 2 * STRIP), far, 5, 0, true);
        struct planned p = make_named_plan(&m, "slices", settings[0]);
        assert_int_equal(strstr(p.plan->layout, "; in strips of") == NULL, unlike);
        check_product("slices with fewer entries", &m, &p, m.val);
        free_plan(&p);
        free_matrix(&m);
    }
    m = make_grid(LINES, STRIP, true); /* a strip for itself */
    struct planned p = make_named_plan(&m, "slices", settings[0]);
    assert_null(strstr(p.plan->layout, "; in strips of"));
    free_plan(&p);
    free_matrix(&m);
}

/* Numbers of rows around multiples of a slice; more columns than rows and fewer. */
static void sizes(void **state)
{
    (void)state;
    static const int32_t offsets[] = {-3, 0, 1, 2, 9};
    for (int64_t slices = 1; slices <= 5; slices += 2)
        for (int64_t rows = slices * SLICE - 1; rows <= slices * SLICE + 1; rows++) {
            const int64_t all = (rows - 1) / SLICE + 1;
            char says[64];
            snprintf(says, sizeof says, "in %lld slice%s of 64 rows", (long long)all, plural(all));
            for (int64_t more = -20; more <= 20; more += 20) {
                struct matrix m = make_band(rows, rows + more, offsets, 5, 0, true);
                check_matrix("a band", &m, says);
                free_matrix(&m);
            }
        }
    const int32_t far[] = {0};
    struct matrix one = make_band(1, 1, far, 1, 0, true);
    check_matrix("one entry", &one, "in 1 slice of 64 rows; 1.56 % of the places filled; 1 pattern of offsets");
    free_matrix(&one);
}

/* Rows that lack entries at random: each slice has a pattern of its own, and there may be too many
 * to share. Empty slices. */
static void lacking_entries(void **state)
{
    (void)state;
    static const int32_t offsets[] = {-70, -1, 0, 1, 5, 6, 70};
    struct matrix m = make_band(20 * SLICE, 20 * SLICE, offsets, 7, 3, true);
    check_matrix("lacks a third", &m, "; 20 patterns of offsets");
    free_matrix(&m);
    m = make_band((PATTERNS + 3) * SLICE, (PATTERNS + 3) * SLICE, offsets, 7, 9, true);
    check_matrix("too many patterns", &m, "; a pattern of offsets for each slice");
    free_matrix(&m);
    m = make_band(30 * SLICE, 15 * SLICE, offsets, 7, 0, true); /* the last rows have no columns */
    check_matrix("empty slices", &m, "patterns of offsets");
    free_matrix(&m);
}

#ifdef HOST_CUDA
/* Different patterns with the same hash, which has 12 bits in this build. They are few enough to be
 * shared. */
static void equal_hashes(void **state)
{
    (void)state;
    int collided = 0;
    for (int distance = 1; distance <= 60; distance++) {
        int32_t offsets[2] = {0, distance};
        struct matrix m = make_band(PATTERNS * SLICE, PATTERNS * SLICE + 100, offsets, 2, 2 + distance % 2, true);
        struct planned p = make_plan(
            &m, (struct setting){.method = "slices", .stored = SPMV_F64, .sums = SPMV_F64, .compression = -1});
        check_product("patterns with one hash", &m, &p, m.val);
        collided += strstr(p.plan->layout, "a pattern of offsets for each slice") != NULL;
        free_plan(&p);
        free_matrix(&m);
    }
    assert_true(collided > 3 && collided < 57);
}
#endif

/* ------------------------------------------------------------------ the plan's choice */

static struct planned check_choice(const struct matrix *m, struct setting s, const char *method, const char *why)
{
    struct planned p = make_plan(m, s);
    const char *const text = s.method != NULL ? p.plan->why : p.plan->layout;
    if (strcmp(p.plan->method->name, method) != 0 || strstr(text, why) == NULL)
        fail_msg("method %s (%s; %s), not %s (%s)", p.plan->method->name, p.plan->why, p.plan->layout, method, why);
    check_product("the plan's choice", m, &p, m->val);
    return p;
}

static void choice(void **state)
{
    (void)state;
    struct setting automatic = {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1}, named = automatic;
    named.method = "slices";
    const int64_t line = LARGE / 5 / 16 + 7;
    struct matrix grid = make_grid(17, line, true), small = make_grid(3, 30, true);
    struct planned p = check_choice(&grid, automatic, "slices", "slices of 64 rows");
    free_plan(&p);
    p = check_choice(&small, automatic, "tiles", " of at most ");
    free_plan(&p);
    p = check_choice(&small, named, "slices", "requested by name");
    free_plan(&p);
    automatic.compression = named.compression = 0;
    p = check_choice(&grid, automatic, "tiles", "tiles of at most");
    free_plan(&p);
    p = check_choice(&grid, named, "tiles", "tiles instead of slices: compression is off");
    free_plan(&p);
    automatic.compression = named.compression = -1;

    const int32_t last = grid.col[grid.nnz - 1]; /* a row that does not ascend */
    grid.col[grid.nnz - 1] = grid.col[grid.nnz - 2];
    grid.col[grid.nnz - 2] = last;
    p = check_choice(&grid, automatic, "tiles", "tiles of at most");
    free_plan(&p);
    p = check_choice(&grid, named, "tiles", "the columns of a row do not ascend");
    free_plan(&p);
    grid.col[grid.nnz - 2] = last; /* twice the same column */
    grid.col[grid.nnz - 1] = last;
    p = check_choice(&grid, named, "tiles", "the columns of a row do not ascend");
    free_plan(&p);
    free_matrix(&small);
    free_matrix(&grid);

    int64_t *const lengths = support_zeros(LARGE / 4, sizeof *lengths); /* random columns */
    for (int64_t i = 0; i < LARGE / 4; i++)
        lengths[i] = 9;
    struct matrix drawn = make_matrix(lengths, LARGE / 4, LARGE, true, false);
    for (int64_t i = 0; i < drawn.rows; i++)
        for (int64_t k = drawn.row_ptr[i]; k < drawn.row_ptr[i + 1]; k++) /* ascending */
            drawn.col[k] = (int32_t)((k - drawn.row_ptr[i]) * (LARGE / 9) + drawn.col[k] % (LARGE / 9));
    p = check_choice(&drawn, automatic, "tiles", "tiles of at most");
    free_plan(&p);
    p = check_choice(&drawn, named, "tiles", "neighbouring rows have different offsets");
    free_plan(&p);
    for (int64_t i = 0; i < drawn.rows; i++) /* five kinds of rows: a fifth of the places is filled */
        for (int64_t k = drawn.row_ptr[i]; k < drawn.row_ptr[i + 1]; k++)
            drawn.col[k] = (int32_t)(i + 20 * (k - drawn.row_ptr[i]) + 3 * (i % 5));
    p = check_choice(&drawn, automatic, "tiles", "tiles of at most");
    free_plan(&p);
    p = check_choice(&drawn, named, "slices", "requested by name");
    free_plan(&p);
    free(lengths);
    free_matrix(&drawn);

    struct matrix none = make_band(100, 100, NULL, 0, 0, true);
    p = check_choice(&none, named, "tiles", "no nonzeros");
    free_plan(&p);
    free_matrix(&none);
}

/* ------------------------------------------------------------------ values */

/* A band with one value for each offset; the patterns then name the values. */
static void constant_values(void **state)
{
    (void)state;
    static const int32_t offsets[] = {-70, -9, -1, 0, 1, 2, 9, 80};
    static const double values[] = {-1, 0.5, -1, 6, INFINITY, 1e-300, -0.0, NAN};
    const int64_t rows = 9 * SLICE + 5;
    for (int count = 1; count <= 8; count++) {
        struct matrix m = make_band(rows, rows, offsets, count, 0, true);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = m.row_ptr[i]; k < m.row_ptr[i + 1]; k++)
                for (int at = 0; at < count; at++)
                    if (m.col[k] - i == offsets[at])
                        m.val[k] = values[at];
        double *const x = make_vector(rows, 3, false);
        struct setting s = {.method = "slices", .stored = SPMV_F64, .sums = SPMV_F64, .compression = -1};
        struct planned plain = make_plan(&m, s);
        s.compression = 2;
        struct planned constant = make_plan(&m, s);
        void *const y = product_of(&plain, x, NULL), *const named = product_of(&constant, x, NULL);
        assert_non_null(strstr(constant.plan->layout, "named by the patterns"));
        assert_null(strstr(plain.plan->layout, "a table of"));
        assert_memory_equal(y, named, (size_t)rows * 8);
        assert_true(constant.plan->bytes < plain.plan->bytes);
        free_plan(&constant);

        m.val[m.nnz / 2] = 7; /* one value differs: a code for each place */
        struct planned other = make_plan(&m, s);
        free_plan(&plain);
        s.compression = -1;
        plain = make_plan(&m, s);
        void *const expected = product_of(&plain, x, NULL), *const coded = product_of(&other, x, NULL);
        assert_non_null(strstr(other.plan->layout, "1 byte per place"));
        assert_memory_equal(expected, coded, (size_t)rows * 8);
        support_free(y, named, expected, coded);
        free_plan(&plain);
        free_plan(&other);
        free(x);
        free_matrix(&m);
    }
}

/* A row's bits depend on the row alone, not on its position or on how the values are stored. */
static void bits(void **state)
{
    (void)state;
    enum { ROWS = 40 * SLICE };
    static const int32_t offsets[] = {-9, -1, 0, 1, 2, 3, 9};
    struct matrix m = make_band(ROWS, ROWS + 40, offsets, 7, 0, false);
    for (int64_t k = 0; k < m.nnz; k++)
        m.val[k] = 1.0 / (double)(1 + k % 200); /* few enough for a table */
    double *const x = make_vector(m.cols, 3, false);
    struct setting s = {.method = "slices", .stored = SPMV_F64, .sums = SPMV_F64, .compression = -1};
    struct planned plain = make_plan(&m, s);
    s.compression = 2;
    struct planned coded = make_plan(&m, s);
    void *const y = product_of(&plain, x, NULL), *const again = product_of(&plain, x, NULL);
    void *const by_table = product_of(&coded, x, NULL);
    assert_memory_equal(y, again, ROWS * 8);
    assert_memory_equal(y, by_table, ROWS * 8);
    support_free(again, by_table);
    free_plan(&coded);

    enum { MOVED = 13 }; /* the same rows 13 places further up, with the same x */
    struct matrix rest = {.rows = ROWS - MOVED, .cols = m.cols, .nnz = m.nnz - m.row_ptr[MOVED]};
    rest.row_ptr = support_zeros(rest.rows + 1, 8);
    for (int64_t i = 0; i <= rest.rows; i++)
        rest.row_ptr[i] = m.row_ptr[i + MOVED] - m.row_ptr[MOVED];
    rest.col = m.col + m.row_ptr[MOVED];
    rest.val = m.val + m.row_ptr[MOVED];
    s.compression = -1;
    struct planned moved = make_plan(&rest, s);
    void *const y_moved = product_of(&moved, x, NULL);
    assert_memory_equal((double *)y + MOVED, y_moved, (size_t)rest.rows * 8);
    support_free(y, y_moved, rest.row_ptr);
    free_plan(&moved);
    free_plan(&plain);
    free_matrix(&m);
    free(x);
}

/* Few values, many, and few again. */
static void check_new_values(const struct matrix *m, struct setting s, const double *few, const double *many)
{
    struct planned p = make_plan(m, s);
    for (int turn = 0; turn < 3; turn++) {
        check_update(m, &p, turn == 1 ? many : few);
        assert_int_equal(strstr(p.plan->layout, "a table of 5 values") != NULL, s.compression == 2 && turn != 1);
        assert_int_equal(strstr(p.plan->layout, "no table of values: more than 256") != NULL,
                         s.compression == 2 && turn == 1);
    }
    free_plan(&p);
}

static void new_values(void **state)
{
    (void)state;
    static const int64_t grids_of[][2] = {{25, 33}, {4, 2 * STRIP}};
    for (size_t g = 0; g < (brief ? 1 : 2); g++) {
        struct matrix m = make_grid(grids_of[g][0], grids_of[g][1], true);
        double *const few = support_zeros(m.nnz, 8), *const many = support_zeros(m.nnz, 8);
        for (int64_t k = 0; k < m.nnz; k++) {
            few[k] = (double)(k % 5) - 7;
            many[k] = (double)(k % 1000);
        }
        for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
            if (!settings[i].pattern)
                check_new_values(&m, updating(settings[i], "slices"), few, many);
        support_free(few, many);
        free_matrix(&m);
    }
}

#ifdef HOST_CUDA
struct choices {
    int64_t slices_bytes;
    int slices, tiles;
};

static void count_choices(const struct planned *p, void *user)
{
    struct choices *const found = user;
    assert_string_equal(spmv_last_error(ctx), "");
    if (strcmp(p->plan->method->name, "slices") == 0) {
        found->slices++;
        assert_int_equal(p->plan->bytes, found->slices_bytes);
    } else {
        found->tiles++;
        assert_string_equal(p->plan->why,
                            "tiles instead of slices: there is no memory for a second copy of the values");
    }
}
#endif

/* The plan is made with more and more memory. It fails, then it takes tiles with a reason, then
 * slices. */
static void memory_runs_out(void **state)
{
    (void)state;
#ifdef HOST_CUDA
    struct matrix m = make_grid(40, 50, true);
    const struct setting s = {.method = "slices", .stored = SPMV_F64, .sums = SPMV_F64, .compression = -1};
    struct planned in_slices = make_plan(&m, s);
    struct choices found = {.slices_bytes = in_slices.plan->bytes};
    const int refused = plans_with_little_memory(&m, s, 1 << 10, 1 << 18, 16, count_choices, &found);
    assert_true(found.slices > 3 && found.tiles > 3 && refused > 3);
    free_plan(&in_slices);
    free_matrix(&m);
#endif
}

#ifdef HOST_CUDA
#define HOST_TESTS cmocka_unit_test(equal_hashes),
#else
#define HOST_TESTS
#endif

ONE_CONTEXT_MAIN(HOST_TESTS cmocka_unit_test(grids), cmocka_unit_test(strips), cmocka_unit_test(beside_strips),
                 cmocka_unit_test(sizes), cmocka_unit_test(lacking_entries), cmocka_unit_test(choice),
                 cmocka_unit_test(constant_values), cmocka_unit_test(bits), cmocka_unit_test(new_values),
                 cmocka_unit_test(memory_runs_out))
