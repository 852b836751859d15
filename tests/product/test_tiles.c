/* The method "tiles" of the backend cuda, on matrices that are critical for the cut into tiles:
 * rows as long as a tile, slightly shorter and longer, and many times as long; blocks of empty
 * rows; tiles whose columns just fit in 16 bits or just do not; the smallest matrices. Runs on a
 * GPU and, with smaller sizes, on the host that emulates one.
 *
 * Values are small whole numbers where results are compared with expected ones, so that every
 * summation order gives the same. Where bits are compared with bits, they are not whole.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_planned.h"

/* Constants of the kernels: nonzeros of a tile (half as many in small matrices), fragments whose
 * sums are folded at once, rows of a tile of a small matrix with and without nonzeros. */
enum { CAPACITY = 2048, FAN_IN = 32, ROWS = 512, EMPTY_ROWS = 2048 };

/* A setting of this method. compression: -1 or, without, 0. */
static struct setting tiles_in(struct setting s, spmv_type type)
{
    return in_type(s, "tiles", type);
}

/* Both types; scaled and not; compressed and not; with 64-bit offsets; arrays that are not
 * aligned. */
static void check_matrix(const char *name, const struct matrix *m)
{
    static const struct setting settings[] = {{.compression = -1},
                                              {.compression = -1, .scaled = true},
                                              {.compression = 0},
                                              {.compression = -1, .wide = true, .scaled = true},
                                              {.compression = -1, .skew = 1},
                                              {.compression = -1, .skew = 3}};
    /* On an emulated GPU each setting takes one type, for the next matrix the other one. */
    static size_t turn;
    turn++;
    for (size_t k = 0; k < (brief ? 2 : sizeof settings / sizeof settings[0]); k++)
        for (size_t f32 = 0; f32 < 2; f32++)
            if (on_real_gpu() || (turn + k + f32) % 2 == 0)
                check_setting(name, m, tiles_in(settings[k], f32 ? SPMV_F32 : SPMV_F64));
}

/* With values, as a pattern, and with distant columns. */
static void check_lengths(const char *name, const int64_t *lengths, int64_t rows, int64_t cols)
{
    for (int form = 0; form < 3; form++) {
        struct matrix m = make_matrix(lengths, rows, form < 2 ? cols : 300000, true, form == 1);
        check_matrix(name, &m);
        free_matrix(&m);
    }
}

/* ------------------------------------------------------------------- families */

static int64_t scaled_down(int64_t on_a_gpu, int64_t on_the_host)
{
    return on_real_gpu() && !brief ? on_a_gpu : on_the_host;
}

static void one_long_row_among_short_ones(void **state)
{
    (void)state;
    const int64_t rows = scaled_down(2000000, 9000), longest = scaled_down(3000000, 70 * CAPACITY + 11);
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int place = 0; place < 3; place++) { /* first, within, last */
        for (int64_t i = 0; i < rows; i++)
            lengths[i] = i % 5;
        lengths[place == 0 ? 0 : place == 1 ? rows / 3 : rows - 1] = longest;
        struct matrix m = make_matrix(lengths, rows, 5000, true, place == 2);
        for (int number = 0; number < 4; number++)
            check_setting(
                "a long row", &m,
                tiles_in((struct setting){.compression = -1, .scaled = number / 2}, number % 2 ? SPMV_F32 : SPMV_F64));
        free_matrix(&m);
    }
    free(lengths);
}

/* Large, with columns close together and far apart. */
static void even_rows(void **state)
{
    (void)state;
    /* The emulated GPU counts smaller matrices as large. */
    const bool as_large_as_it_says = !(on_real_gpu() && brief);
    const int64_t rows = scaled_down(1600000, 2500);
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = 4 + i % 5 % 3;
    check_lengths("even rows", lengths, rows, 3000);
    struct matrix m = make_matrix(lengths, rows, 3000, true, false);
    for (int number = 0; number < 4; number++) {
        const spmv_type type = number % 2 ? SPMV_F32 : SPMV_F64;
        struct planned p = make_plan(&m, tiles_in((struct setting){.compression = number / 2 - 1}, type));
        spmv_plan_info info;
        assert_ok(ctx, spmv_plan_describe(p.plan, &info, sizeof info));
        if (as_large_as_it_says && strstr(info.layout, "of at most 2048") == NULL)
            fail_msg("%s: %s", spmv_type_name(type), info.layout);
        free_plan(&p);
    }
    /* Now the columns are far apart. */
    for (int64_t k = 0; k < m.nnz; k++)
        m.col[k] += (int32_t)(k % 60 * 4000);
    m.cols = 60 * 4000;
    for (int f32 = 0; f32 < 2; f32++) {
        struct planned p = make_plan(&m, tiles_in((struct setting){.compression = -1}, f32 ? SPMV_F32 : SPMV_F64));
        spmv_plan_info info;
        assert_ok(ctx, spmv_plan_describe(p.plan, &info, sizeof info));
        if (as_large_as_it_says && strstr(info.layout, "of at most 2048") == NULL)
            fail_msg("%s", info.layout);
        assert_non_null(strstr(info.layout, "16-bit columns in 0 %"));
        free_plan(&p);
    }
    free(lengths);
    free_matrix(&m);
}

/* Part of the matrix is retained in the last-level cache if the vectors leave room for it. */
static void retained_beside_the_vectors(void **state)
{
    (void)state;
    if (on_real_gpu() && brief)
        skip(); /* too small to have a part retained */
    const int64_t rows = scaled_down(60000, 2500), wide = scaled_down(6000000, 120000);
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = 20;
    for (int is_wide = 0; is_wide < 2; is_wide++) {
        struct matrix m = make_matrix(lengths, rows, is_wide ? wide : 3000, true, false);
        for (int f32 = 0; f32 < 2; f32++) {
            const struct setting s = tiles_in((struct setting){.compression = -1}, f32 ? SPMV_F32 : SPMV_F64);
            struct planned p = make_plan(&m, s);
            spmv_plan_info info;
            assert_ok(ctx, spmv_plan_describe(p.plan, &info, sizeof info));
            if ((strstr(info.layout, "retained in the last-level cache") == NULL) != is_wide)
                fail_msg("%lld columns: %s", (long long)m.cols, info.layout);
            free_plan(&p);
            check_setting("a share retained", &m, s);
        }
        free_matrix(&m);
    }
    free(lengths);
}

/* As even_rows, with a few rows longer than such a tile. */
static void even_rows_and_some_longer(void **state)
{
    (void)state;
    const int64_t rows = scaled_down(50000, 300);
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = i % 90 == 50 ? 500 + i % 40 : 200 + i % 7;
    lengths[rows - 1] = 5 * CAPACITY;
    check_lengths("even rows and some longer", lengths, rows, 3000);
    free(lengths);
}

static void huge_rows(void **state)
{
    (void)state;
    int64_t lengths[64];
    const int64_t length = scaled_down(50001, 4 * CAPACITY + 17);
    for (int i = 0; i < 64; i++)
        lengths[i] = length + i;
    check_lengths("64 huge rows", lengths, scaled_down(64, 12), 3000);
}

static void mostly_empty(void **state)
{
    (void)state;
    const int64_t rows = scaled_down(1000000, 12000);
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = i % 20 == 7 ? 1 + i % 9 : 0;
    check_lengths("95 % empty", lengths, rows, 1000);
    free(lengths);
}

static void empty_blocks(void **state)
{
    (void)state;
    const int64_t block = scaled_down(1000000, 3 * EMPTY_ROWS + 5), rows = 50 + block + 100 + 2 * block;
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < 50; i++)
        lengths[i] = 4;
    for (int64_t i = 0; i < 100; i++)
        lengths[50 + block + i] = i;
    check_lengths("empty blocks", lengths, rows, 77);
    free(lengths);
}

static void least_matrices(void **state)
{
    (void)state;
    int64_t *const lengths = support_zeros(5000, sizeof *lengths);
    check_lengths("no nonzero", lengths, 3000, 10);
    check_lengths("one empty row", lengths, 1, 1);
    lengths[4321] = 1;
    check_lengths("one nonzero", lengths, 5000, 70000);
    lengths[4321] = 0;
    lengths[0] = 1;
    check_lengths("one by one", lengths, 1, 1);
    for (int i = 0; i < 3000; i++)
        lengths[i] = 1;
    check_lengths("one column", lengths, 3000, 1);
    lengths[0] = 100 * CAPACITY - 3; /* four nodes */
    check_lengths("one row", lengths, 1, 4000);
    free(lengths);
}

/* Without columns x may be NULL, without rows y. */
static void without_columns_or_rows(void **state)
{
    (void)state;
    double *const y0 = make_vector(700, 4, true);
    const int64_t *const zeros = support_zeros(701, 8);
    for (int number = 0; number < 4; number++) {
        struct matrix m = {.rows = number < 2 ? 700 : 0, .cols = number < 2 ? 0 : 5};
        m.row_ptr = (int64_t *)zeros;
        const struct setting s = {.compression = -1, .scaled = true};
        struct planned p = make_plan(&m, tiles_in(s, number % 2 ? SPMV_F32 : SPMV_F64));
        const struct placed dx = place(&p, y0, m.cols), dy = place(&p, y0, m.rows);
        apply(&p, dx, dy);
        void *const got = bytes_of(&p, dy);
        for (int64_t i = 0; i < m.rows; i++)
            assert_true((number % 2 ? (double)((float *)got)[i] : ((double *)got)[i]) == beta * y0[i]);
        free(got);
        support_free_in(ctx, dx.block, dy.block);
        free_plan(&p);
    }
    support_free((void *)zeros, y0);
}

/* -------------------------------------------------------------------- borders */

/* Lengths around the capacity of a tile, also after a few entries that misalign the row; around
 * whole nodes. */
static void rows_as_long_as_a_tile(void **state)
{
    (void)state;
    static const int64_t room[] = {CAPACITY, CAPACITY / 2, 2 * CAPACITY, FAN_IN * CAPACITY, CAPACITY - 32};
    int64_t lengths[60], rows = 0;
    for (size_t r = 0; r < sizeof room / sizeof room[0]; r++)
        for (int more = -1; more <= 1; more++) {
            lengths[rows++] = room[r] + more;
            if (r % 2)
                lengths[rows++] = 3;
        }
    check_lengths("rows like tiles", lengths, rows, 600);
    for (int i = 0; i < 40; i++)
        lengths[i] = CAPACITY - i % 3;
    check_lengths("rows of exactly a tile", lengths, 40, 600);
    /* Three tiles for every two rows, one of which just does not fit: the largest possible number
     * of tiles. */
    for (int i = 0; i < 60; i++)
        lengths[i] = i % 2 ? CAPACITY : 1;
    check_lengths("rows of a tile and of one nonzero", lengths, 60, 600);
    lengths[0] = (FAN_IN + 1) * CAPACITY;
    lengths[1] = 0;
    lengths[2] = FAN_IN * FAN_IN * (on_real_gpu() ? CAPACITY : 64) + 1;
    check_lengths("rows of many nodes", lengths, 3, 600);
}

/* Numbers of rows around the maximum of a tile, with one nonzero each, without, and alternating. */
static void as_many_rows_as_a_tile(void **state)
{
    (void)state;
    static const int64_t counts[] = {ROWS / 4, ROWS / 4 + 1,   ROWS - 1,   ROWS,
                                     ROWS + 1, EMPTY_ROWS - 1, EMPTY_ROWS, EMPTY_ROWS + 1};
    int64_t *const lengths = support_zeros(2 * EMPTY_ROWS + 2, sizeof *lengths);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c += brief ? 3 : 1) {
        for (int form = 0; form < 3; form++) {
            for (int64_t i = 0; i <= counts[c]; i++)
                lengths[i] = form == 0 ? 1 : form == 1 ? i == counts[c] : (i == 0) * 3;
            check_lengths("rows of a tile", lengths, counts[c] + 1, 50);
        }
    }
    free(lengths);
}

/* Every mean length at which the number of lanes that sum a row changes, with one row that is long
 * for them. */
static void every_subwarp(void **state)
{
    (void)state;
    static const int means[] = {1, 8, 9, 17, 18, 35, 36, 95, 96, 191, 192, 400};
    enum { LINES = 300 };
    int64_t *const lengths = support_zeros(LINES, sizeof *lengths);
    for (size_t k = 0; k < sizeof means / sizeof means[0]; k += brief ? 3 : 1) {
        const int64_t rows = means[k] < 40 ? LINES : 24;
        for (int64_t i = 0; i < rows; i++)
            lengths[i] = i % 7 == 3 ? 0 : means[k] + i % 3;
        /* Six of them in one warp: more than are summed at a time. */
        for (int64_t i = 4; i < rows; i += 5)
            lengths[i] = 17 * (means[k] < 9 ? 1 : 4) + i % 3;
        check_lengths("subwarps", lengths, rows, 333);
    }
    free(lengths);
}

/* Number of rows of this length that fills whole tiles, in two halves, and suffices for tiles of
 * ordinary size. */
static int64_t ranged_rows(int length)
{
    return scaled_down(1 << 21, 1 << 14) / length;
}

/* Checks the product in every variant, and the plan's description of its columns. */
static void check_columns(const struct matrix *m, const char *says)
{
    check_matrix("16 bits", m);
    if (on_real_gpu() && brief) /* too small for ranges */
        return;
    for (int plain = 0; plain < 2; plain++) {
        struct planned p = make_plan(m, tiles_in((struct setting){.compression = plain - 1}, SPMV_F64));
        const char *const wanted = plain ? "16-bit columns in 0 % of the tiles;" : says;
        spmv_plan_info info;
        assert_ok(ctx, spmv_plan_describe(p.plan, &info, sizeof info));
        if (strstr(info.layout, wanted) == NULL)
            fail_msg("\"%s\" does not contain \"%s\"", info.layout, wanted);
        free_plan(&p);
    }
}

/* Tiles whose columns span 65535 have 16-bit columns from one base, those that span 65536 from two
 * ranges. */
static void columns_at_the_border_of_16_bits(void **state)
{
    (void)state;
    const int64_t rows = ranged_rows(2), half = rows / 2;
    static const struct {
        int first, second;
        const char *says;
    } cases[] = {{65535, 65535, "16-bit columns in 100 % of the tiles;"},
                 {65536, 65536, "16-bit columns in 100 % of the tiles (100 % by ranges);"},
                 {65535, 65536, "16-bit columns in 100 % of the tiles (50 % by ranges);"},
                 {0, 0, "16-bit columns in 100 % of the tiles;"}};
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = 2;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct matrix m = make_matrix(lengths, rows, 80000, true, false);
        for (int64_t i = 0; i < rows; i++) {
            m.col[2 * i] = 5; /* every tile has this span */
            m.col[2 * i + 1] = 5 + (i < half ? cases[c].first : cases[c].second);
        }
        check_columns(&m, cases[c].says);
        free_matrix(&m);
    }
    free(lengths);
}

/* 32 ranges of 2048 columns are allowed; 33, or one range that is one column wider, are not.
 * Half of the tiles suffice, three eighths do not. Ranges begin at multiples of 64 columns after
 * the smallest column of the tile, of 128 if the tile spans more than two million columns. The
 * columns of a tile are unordered. */
static void columns_in_ranges(void **state)
{
    (void)state;
    enum { NEAR = 110 * 64, FAR = 550 * 128, ALL = 1000 };
    const int64_t rows = ranged_rows(4);
    static const struct {
        int apart;   /* distance between neighbouring ranges */
        int eighths; /* of the rows, that belong to the first part */
        /* Ranges of the tiles of each part; plus ALL: one of them is a column wider. */
        int first, second;
        const char *says;
    } cases[] = {{NEAR, 4, 32, 32, "16-bit columns in 100 % of the tiles (100 % by ranges);"},
                 {NEAR, 4, 33, 33, "16-bit columns in 0 % of the tiles;"},
                 {NEAR, 4, ALL + 32, ALL + 32, "16-bit columns in 0 % of the tiles;"},
                 {NEAR, 4, ALL + 31, 17, "16-bit columns in 100 % of the tiles (100 % by ranges);"},
                 {NEAR, 4, 32, 33, "16-bit columns in 50 % of the tiles (50 % by ranges);"},
                 {NEAR, 3, 32, 33, "16-bit columns in 0 % of the tiles;"},
                 {NEAR, 4, 11, 2, "16-bit columns in 100 % of the tiles (50 % by ranges);"},
                 {NEAR + 1, 4, 15, 32, "16-bit columns in 50 % of the tiles (50 % by ranges);"},
                 {FAR, 4, 32, ALL + 32, "16-bit columns in 50 % of the tiles (50 % by ranges);"}};
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = 4;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const int apart = cases[c].apart;
        struct matrix m = make_matrix(lengths, rows, 50 + 33 * (int64_t)apart + 2048, true, false);
        for (int64_t k = 0; k < 4 * rows; k++) {
            const int asked = k < 4 * (rows * cases[c].eighths / 8) ? cases[c].first : cases[c].second,
                      ranges = asked % ALL;
            /* Within a tile every range gets each of its four positions. */
            const int64_t turn = k * 29 % 512;
            const int range = (int)(turn % ranges);
            static const int places[] = {0, 2047, 1024, 333};
            const int place = places[turn / ranges % 4] + (asked >= ALL && range == 3 && turn / ranges % 4 == 1);
            m.col[k] = 50 + range * apart + place;
        }
        check_columns(&m, cases[c].says);
        free_matrix(&m);
    }
    free(lengths);
}

/* ------------------------------------------------------------- repeated bits and packing */

/* The same bits from many consecutive launches, with and without 16-bit columns, with 64-bit
 * offsets, and from arrays that are not aligned. */
static void bits_repeat(void **state)
{
    (void)state;
    enum { REPEATS = 20 };
    const int64_t rows = scaled_down(60000, 500);
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = i % 97 == 5 ? 300 : i % 13;
    lengths[rows / 2] = 40 * CAPACITY + 5; /* two nodes */
    lengths[rows / 2 + 3] = 3 * CAPACITY;
    struct matrix m = make_matrix(lengths, rows, 3000, false, false);
    double *const x = make_vector(m.cols, 3, false), *const y0 = make_vector(rows, 4, false);
    static const struct setting settings[] = {
        {.compression = -1}, {.compression = 0}, {.compression = -1, .wide = true}, {.compression = -1, .skew = 1}};
    for (int f32 = 0; f32 < 2; f32++) {
        const size_t bytes = (size_t)rows * (f32 ? 4 : 8);
        void *first = NULL;
        for (size_t k = 0; k < sizeof settings / sizeof settings[0]; k++) {
            struct planned p = make_plan(&m, tiles_in(settings[k], f32 ? SPMV_F32 : SPMV_F64));
            const struct placed dx = place(&p, x, m.cols), dy = place(&p, y0, rows);
            /* Queued without waiting; all launches share the sums, and the last result is
             * compared. */
            for (int repeat = 0; repeat < REPEATS; repeat++)
                apply(&p, dx, dy);
            void *const y = bytes_of(&p, dy);
            if (first == NULL)
                first = y;
            else
                assert_memory_equal(first, y, bytes);
            /* So that a row that is not written is detected. */
            for (int64_t i = 0; i < rows; i++)
                y0[i] = NAN;
            const struct placed unread = place(&p, y0, rows);
            apply(&p, dx, unread);
            void *const again = bytes_of(&p, unread);
            assert_memory_equal(first, again, bytes);
            free(again);
            if (y != first)
                free(y);
            support_free_in(ctx, dx.block, dy.block, unread.block);
            free_plan(&p);
        }
        for (int64_t i = 0; i < rows; i++)
            assert_true(isfinite(f32 ? (double)((float *)first)[i] : ((double *)first)[i]));
        free(first);
    }
    support_free(x, y0, lengths);
    free_matrix(&m);
}

/* Tiles are full: at most a tenth more than the nonzeros or rows need, plus one for each
 * chunk. */
static void tiles_are_packed(void **state)
{
    (void)state;
    static const struct {
        int64_t length, rows;
    } cases[] = {{5, 40000}, {27, 9000}, {1, 40960}, {1000, 300}, {0, 40960}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        int64_t *const lengths = support_zeros(cases[c].rows, sizeof *lengths);
        for (int64_t i = 0; i < cases[c].rows; i++)
            lengths[i] = cases[c].length;
        struct matrix m = make_matrix(lengths, cases[c].rows, 100, true, false);
        struct planned p = make_plan(&m, tiles_in((struct setting){.compression = -1}, SPMV_F64));
        spmv_plan_info info;
        assert_ok(ctx, spmv_plan_describe(p.plan, &info, sizeof info));
        const char *const in = strstr(info.layout, " in ");
        assert_non_null(in);
        long long tiles, room;
        assert_int_equal(sscanf(in, " in %lld tiles of at most %lld", &tiles, &room), 2);
        const long long fit = cases[c].length > 2 ? room / cases[c].length : cases[c].length > 0 ? room / 2 : 2 * room;
        const long long needed = cases[c].rows / fit;
        if (tiles < needed || (double)tiles > 1.1 * (double)needed + 1)
            fail_msg("%lld tiles where %lld are needed: %s", tiles, needed, info.layout);
        free_plan(&p);
        free(lengths);
        free_matrix(&m);
    }
}

ONE_CONTEXT_MAIN(cmocka_unit_test(one_long_row_among_short_ones), cmocka_unit_test(even_rows),
                 cmocka_unit_test(retained_beside_the_vectors), cmocka_unit_test(even_rows_and_some_longer),
                 cmocka_unit_test(huge_rows), cmocka_unit_test(mostly_empty), cmocka_unit_test(empty_blocks),
                 cmocka_unit_test(least_matrices), cmocka_unit_test(without_columns_or_rows),
                 cmocka_unit_test(rows_as_long_as_a_tile), cmocka_unit_test(as_many_rows_as_a_tile),
                 cmocka_unit_test(every_subwarp), cmocka_unit_test(columns_at_the_border_of_16_bits),
                 cmocka_unit_test(columns_in_ranges), cmocka_unit_test(bits_repeat), cmocka_unit_test(tiles_are_packed))
