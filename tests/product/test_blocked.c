/* The method "blocked" of the backend cuda, on matrices at the limits of its blocks of columns,
 * parts, sections and intervals:
 *
 *   - columns at the borders of blocks; blocks that are full, nearly empty and empty
 *   - tiles with one interval and with many; rows in fragments, and fragments in nodes; minimal
 *     matrices
 *   - what a plan reports of its blocks and intervals; new values; out of memory; which matrices a plan
 *     takes the method for
 *
 * Runs on a GPU, and on the host emulation of CUDA with blocks and tiles of a few nonzeros.
 *
 * Where results are compared with expected ones, values are small integers, so every order of
 * summation gives the same. Where results are compared with each other, values are not integers.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/plural.h"
#include "tests/support/support_cache.h"
#include "tests/support/support_planned.h"

#ifdef HOST_CUDA
/* Constants of the kernels: bytes of x for the columns of a block, in the usual and in the large
 * shape; products of a tile; maximum number of columns for the usual shape; maximum number of
 * nonzeros of a block that is gathered from memory. */
enum { X_BYTES = 256, LARGE_X_BYTES = 1024, CAPACITY = 256, USUAL_COLS = 512, FEW = 7 };
#else
enum { X_BYTES = 96 * 1024, LARGE_X_BYTES = 224 * 1024, CAPACITY = 6144, USUAL_COLS = 4718592, FEW = 3071 };
#endif
enum { FAN_IN = 32 };

/* A matrix with rows of equal length. */
static struct matrix make_even(int64_t length, int64_t rows, int64_t cols, bool whole)
{
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = length;
    struct matrix m = make_matrix(lengths, rows, cols, whole, false);
    free(lengths);
    return m;
}

/* A setting of this method; a plan that is made takes new values. */
static struct setting blocked_in(struct setting s, spmv_type type)
{
    s.compression = -1;
    s.updates = !s.pattern;
    return in_type(s, "blocked", type);
}

static void check_matrix(const char *name, const struct matrix *m)
{
    static const struct setting settings[] = {
        {.scaled = true}, {.pattern = true}, {.wide = true, .scaled = true}, {.skew = 1}};
    for (size_t k = 0; k < (brief ? 2 : sizeof settings / sizeof settings[0]); k++) {
        check_setting(name, m, blocked_in(settings[k], SPMV_F64));
        check_setting(name, m, blocked_in(settings[k], SPMV_F32));
    }
}

/* The plan's description of its layout. */
static void layout_of(const struct matrix *m, spmv_type type, char *text, size_t size)
{
    struct planned p = make_plan(m, blocked_in((struct setting){.scaled = false}, type));
    snprintf(text, size, "%s", p.plan->layout);
    free_plan(&p);
}

/* ------------------------------------------------------------- blocks, parts, intervals */

/* As many columns as some blocks have, one less, one more; the last block has few columns or
 * all. */
static void borders_of_blocks(void **state)
{
    (void)state;
    const int64_t columns = X_BYTES / 8; /* in f64; half of the columns in f32 */
    const int64_t cols[] = {columns - 1, columns, columns + 1, 2 * columns, 2 * columns + 1, 4 * columns + 3};
    for (size_t c = 0; c < (brief ? 3 : sizeof cols / sizeof cols[0]); c++) {
        struct matrix m = make_even(7, 3 * CAPACITY / 7, cols[c], true);
        for (int64_t k = 0; k < m.nnz; k += 5) /* columns exactly at the borders */
            m.col[k] = (int32_t)(k % 2 != 0 ? cols[c] - 1 : (k / 5 % 4 * columns + k % 3 + cols[c] - 1) % cols[c]);
        check_matrix("borders", &m);
        char text[512], wanted[64];
        layout_of(&m, SPMV_F64, text, sizeof text);
        const int64_t blocks = (cols[c] + columns - 1) / columns;
        snprintf(wanted, sizeof wanted, "%lld block%s of %lld columns, ", (long long)blocks, plural(blocks),
                 (long long)columns);
        if (strstr(text, wanted) != text)
            fail_msg("\"%s\" does not begin with \"%s\"", text, wanted);
        free_matrix(&m);
    }
}

/* More columns than the maximum of the usual shape: blocks have more columns and tiles are
 * larger. */
static void large_shape(void **state)
{
    (void)state;
    const int64_t cols[] = {USUAL_COLS, USUAL_COLS + 1, 2 * USUAL_COLS};
    const char *const device = spmv_context_describe(ctx);
    const bool has_room = strstr(device, "H100") || strstr(device, "H200") || strstr(device, "host playing");
    for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++) {
        struct matrix m = make_even(9, 20 * CAPACITY / 9, cols[c], true);
        /* so that some blocks are not gathered from memory */
        for (int64_t k = 0; k < m.nnz; k += 2)
            m.col[k] = (int32_t)(cols[c] - 1 - m.col[k] % (LARGE_X_BYTES / 4));
        for (int f32 = 0; f32 < 2; f32++) {
            char text[512];
            long long blocks, columns;
            layout_of(&m, f32 ? SPMV_F32 : SPMV_F64, text, sizeof text);
            assert_int_equal(sscanf(text, "%lld block%*[s ]of %lld columns", &blocks, &columns), 2);
            const long long usual = X_BYTES / (f32 ? 4 : 8), large = LARGE_X_BYTES / (f32 ? 4 : 8);
            if (columns != (c == 0 ? usual : large)) {
                if (c == 0 || columns != usual || has_room)
                    fail_msg("%lld columns: %s", (long long)cols[c], text);
                print_message("the device has no room for the large shape\n");
            }
            assert_int_equal(blocks, (cols[c] + columns - 1) / columns);
        }
        check_matrix("large shape", &m);
        free_matrix(&m);
    }
    struct matrix m = make_even(3 * CAPACITY, 5, 2 * USUAL_COLS, true); /* rows split into fragments */
    check_matrix("large shape, long rows", &m);
    free_matrix(&m);
}

/* Blocks with many nonzeros, with the maximum to be gathered from memory, one more, one and none.
 * Checks the share of gathered nonzeros that the plan reports. */
static void blocks_with_few_nonzeros(void **state)
{
    (void)state;
    enum { BLOCKS = 12 };
    const int64_t columns = X_BYTES / 8;
    const int64_t counts[BLOCKS] = {0, 1, 5 * CAPACITY, FEW, FEW, FEW + 1, 0, 1, 1, 3 * CAPACITY, 2, 0};
    int64_t nnz = 0, few = 0;
    for (int b = 0; b < BLOCKS; b++) {
        nnz += counts[b];
        few += counts[b] <= FEW ? counts[b] : 0;
    }
    struct matrix m = make_even(1, nnz, BLOCKS * columns, true);
    int64_t left[BLOCKS];
    memcpy(left, counts, sizeof left);
    for (int64_t k = 0; k < nnz; k++) {
        int b = (int)(k * 7 % BLOCKS);
        while (left[b] == 0)
            b = (b + 1) % BLOCKS;
        left[b]--;
        m.col[k] = (int32_t)(b * columns + m.col[k] % columns);
    }
    check_matrix("few nonzeros", &m);
    char text[512];
    layout_of(&m, SPMV_F64, text, sizeof text);
    long long blocks, parts, sections;
    double share;
    if (sscanf(text, "%lld block%*[s ]of %*d columns, in %lld part%*[s ]and %lld section%*[s ](%lf %%", &blocks, &parts,
               &sections, &share) != 4)
        fail_msg("%s", text);
    const double gathered = share / 100 * (double)nnz; /* parts may end within blocks */
    if (gathered < (double)few * 0.99 || gathered > (double)(few + 2 * parts * FEW) * 1.01)
        fail_msg("%g gathered, %lld in blocks with few: %s", gathered, (long long)few, text);
    assert_true(sections >= parts && sections <= parts + BLOCKS);
#ifdef HOST_CUDA
    assert_int_equal(parts, nnz / 200);
    assert_true(gathered < 0.2 * (double)nnz); /* so that both kinds of blocks occur */
#endif
    for (int64_t k = 0; k < nnz; k++) /* all in the last block; then all in one column */
        m.col[k] = (int32_t)(BLOCKS * columns - 1 - k % columns);
    check_matrix("one block", &m);
    for (int64_t k = 0; k < nnz; k++)
        m.col[k] = (int32_t)(3 * columns);
    check_matrix("one column", &m);
    free_matrix(&m);
}

/* With one part the layout is known exactly: a block with one nonzero more than FEW, one with FEW,
 * one with 1. */
static void few_is_few(void **state)
{
    (void)state;
    const int64_t columns = X_BYTES / 8, nnz = 2 * FEW + 2;
    struct matrix m = make_even(2, nnz / 2, 3 * columns, true);
    for (int64_t k = 0; k < nnz; k++)
        m.col[k] = (int32_t)((k < FEW + 1 ? 0 : k < 2 * FEW + 1 ? columns : 2 * columns) + k % columns);
    check_matrix("few is few", &m);
    char text[512];
    layout_of(&m, SPMV_F64, text, sizeof text);
    if (strstr(text, "in 1 part and 2 sections (50 % of the entries") == NULL)
        fail_msg("%s", text);
    free_matrix(&m);
}

/* The number of intervals: one for each tile and block, but one in all if there is only one block or
 * only one tile. */
static void intervals(void **state)
{
    (void)state;
    const int64_t columns = X_BYTES / 8;
    static const struct {
        int64_t rows;
        int blocks;
    } cases[] = {{CAPACITY, 8}, {CAPACITY / 3, 5}, {CAPACITY, 1}, {CAPACITY / 20, 9}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const int blocks = cases[c].blocks;
        /* one nonzero per row and block */
        struct matrix m = make_even(blocks, cases[c].rows, blocks * columns, true);
        for (int64_t k = 0; k < m.nnz; k++)
            m.col[k] = (int32_t)(k % blocks * columns + m.col[k] % columns);
        check_matrix("intervals", &m);
        char text[512];
        layout_of(&m, SPMV_F64, text, sizeof text);
        const char *const from = strstr(text, "from memory); ");
        assert_non_null(from);
        long long tiles;
        double mean;
        if (sscanf(from, "from memory); %lld tile%*[s,] in intervals of %lf products", &tiles, &mean) != 2)
            fail_msg("%s", text);
        const double expected = (double)m.nnz / (double)(tiles > 1 && blocks > 1 ? tiles * blocks : 1);
        if (fabs(mean - expected) > 1e-3 * expected)
            fail_msg("intervals of %g products, not of %g: %s", mean, expected, text);
        assert_true(c < 3 ? tiles >= m.nnz / CAPACITY : tiles == 1);
        free_matrix(&m);
    }
}

/* ---------------------------------------------------------------------- rows */

static void check_lengths(const char *name, const int64_t *lengths, int64_t rows, int64_t cols)
{
    struct matrix m = make_matrix(lengths, rows, cols, true, false);
    check_matrix(name, &m);
    free_matrix(&m);
}

/* Rows as long as a tile, slightly shorter and longer; rows of many fragments in one node and
 * more; short rows. */
static void long_rows(void **state)
{
    (void)state;
    int64_t lengths[60], rows = 0;
    for (int times = 1; times <= 3; times++)
        for (int more = -33; more <= 33; more += 33) {
            lengths[rows++] = times * CAPACITY + more;
            lengths[rows++] = times;
        }
    check_lengths("rows like tiles", lengths, rows, 5 * X_BYTES / 8);
    lengths[0] = (FAN_IN + 1) * CAPACITY;
    lengths[1] = 0;
    lengths[2] = FAN_IN * CAPACITY - 1;
    lengths[3] = 4;
    lengths[4] = (2 * FAN_IN + 3) * CAPACITY + 5;
    check_lengths("rows of nodes", lengths, 5, 5 * X_BYTES / 8);
}

/* Sequences of empty rows at the beginning, within and at the end; one nonempty row. */
static void empty_rows(void **state)
{
    (void)state;
    const int64_t gap = 9 * CAPACITY, rows = 3 * gap + 200;
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < 100; i++) {
        lengths[gap + i] = i % 9;
        lengths[2 * gap + 100 + i] = i;
    }
    check_lengths("gaps of empty rows", lengths, rows, 3 * X_BYTES / 8);
    memset(lengths, 0, (size_t)rows * sizeof *lengths);
    check_lengths("no nonzero", lengths, rows, 3 * X_BYTES / 8);
    lengths[rows - 1] = 1;
    check_lengths("one nonzero", lengths, rows, 3 * X_BYTES / 8);
    free(lengths);
}

/* One row or one column, 1 x 1 with a nonzero and without; no columns, no rows. */
static void least_matrices(void **state)
{
    (void)state;
    int64_t lengths[2] = {1, 1};
    check_lengths("1 x 1", lengths, 1, 1);
    check_lengths("2 x 1", lengths, 2, 1);
    lengths[0] = 0;
    check_lengths("1 x 1, empty", lengths, 1, 1);
    lengths[0] = 7 * CAPACITY;
    check_lengths("one row", lengths, 1, 20 * X_BYTES / 8);
    struct matrix m = make_even(1, 5 * CAPACITY + 3, 1, true);
    check_matrix("one column", &m);
    free_matrix(&m);
    for (int number = 0; number < 4; number++) {
        struct matrix none = {.rows = number < 2 ? 70 : 0, .cols = number < 2 ? 0 : 5};
        none.row_ptr = support_zeros(none.rows + 1, 8);
        none.col = support_zeros(1, 4);
        none.val = support_zeros(1, 8);
        check_setting("no rows or columns", &none,
                      blocked_in((struct setting){.scaled = true}, number % 2 ? SPMV_F32 : SPMV_F64));
        free_matrix(&none);
    }
}

/* --------------------------------------------------------------- bits and values */

/* The same bits from consecutive launches, with any previous y, with 64-bit indices, with an
 * unaligned x; and after new values followed by the old ones. */
static void bits_repeat(void **state)
{
    (void)state;
    enum { REPEATS = 5 };
    const int64_t rows = 3 * CAPACITY / 2;
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = i % 97 == 5 ? 100 : i % 13;
    lengths[rows / 2] = 40 * CAPACITY + 5; /* two nodes of fragments */
    struct matrix m = make_matrix(lengths, rows, 11 * X_BYTES / 8, false, false);
    double *const x = make_vector(m.cols, 3, false), *const y0 = support_zeros(rows, sizeof *y0);
    double *const others = make_vector(m.nnz, 77, false);
    static const struct setting settings[] = {{.wide = false}, {.wide = true}, {.skew = 1}};
    for (int f32 = 0; f32 < 2; f32++) {
        const spmv_type type = f32 ? SPMV_F32 : SPMV_F64;
        const size_t bytes = (size_t)rows * (f32 ? 4 : 8);
        void *first = NULL;
        for (size_t k = 0; k < sizeof settings / sizeof settings[0]; k++) {
            struct planned p = make_plan(&m, blocked_in(settings[k], type));
            for (int64_t i = 0; i < rows; i++) /* NaN, so that an unwritten row shows */
                y0[i] = NAN;
            const struct placed dx = place(&p, x, m.cols), dy = place(&p, y0, rows);
            for (int repeat = 0; repeat < REPEATS; repeat++) { /* queued without waiting */
                apply(&p, dx, dy);
                if (repeat % 2 == 0)
                    continue;
                void *const y = bytes_of(&p, dy);
                if (first == NULL)
                    first = support_zeros(rows, 8), memcpy(first, y, bytes);
                assert_memory_equal(first, y, bytes);
                free(y);
            }
            void *const fresh = support_upload_as(ctx, type, others, m.nnz, 0);
            assert_ok(ctx, spmv_plan_update_values(p.plan, fresh));
            apply(&p, dx, dy);
            void *const y = bytes_of(&p, dy);
            assert_true(memcmp(first, y, bytes) != 0);
            assert_ok(ctx, spmv_plan_update_values(p.plan, p.val.at));
            apply(&p, dx, dy);
            void *const again = bytes_of(&p, dy);
            assert_memory_equal(first, again, bytes);
            support_free(y, again);
            support_free_in(ctx, dx.block, dy.block, fresh);
            free_plan(&p);
        }
        for (int64_t i = 0; i < rows; i++)
            assert_true(isfinite(f32 ? (double)((float *)first)[i] : ((double *)first)[i]));
        free(first);
    }
    support_free(x, y0, others, lengths);
    free_matrix(&m);
}

#ifdef HOST_CUDA
static void count_made(const struct planned *p, void *made)
{
    (void)p;
    ++*(int *)made;
}
#endif

/* A device with more and more memory, then one that refuses one allocation: the plan is refused or
 * made, and no memory leaks. An update and a product allocate no memory. */
static void memory_runs_out(void **state)
{
    (void)state;
#ifdef HOST_CUDA
    struct matrix m = make_even(11, 1000, 9 * X_BYTES / 8, true);
    const struct setting s = blocked_in((struct setting){.scaled = false}, SPMV_F64);
    double *const x = make_vector(m.cols, 3, true), *const y = make_vector(m.rows, 4, true);
    struct planned p = make_plan(&m, s);
    const struct placed dx = place(&p, x, m.cols), dy = place(&p, y, m.rows);
    const int64_t with_plan = host_cuda.allocations;
    assert_ok(ctx, spmv_plan_update_values(p.plan, p.val.at));
    apply(&p, dx, dy);
    assert_int_equal(host_cuda.allocations, with_plan);
    support_free_in(ctx, dx.block, dy.block);
    free_plan(&p);
    int made = 0;
    const int refused = plans_with_little_memory(&m, s, 32, 1 << 21, 8, count_made, &made);
    assert_true(refused > 20 && made > 5);
    support_free(x, y);
    free_matrix(&m);
#endif
}

/* ------------------------------------------------------------- the plan's choice */

static void check_choice(const struct matrix *m, struct setting s, const char *method, const char *why)
{
    struct planned p = make_plan(m, s);
    if (strcmp(p.plan->method->name, method) != 0 || strstr(p.plan->why, why) == NULL)
        fail_msg("method %s (%s; %s), not %s", p.plan->method->name, p.plan->why, p.plan->layout, method);
    check_product("the plan's choice", m, &p, m->val);
    free_plan(&p);
}

#ifdef HOST_CUDA
static void count_methods(const struct planned *p, void *made)
{
    ((int *)made)[strcmp(p->plan->method->name, "blocked") == 0]++;
}
#endif

/* A plan takes the method if x is larger than the cache and few gathers share a line of x. */
static void choice(void **state)
{
    (void)state;
    const int64_t cols = 16 * X_BYTES / 8, rows = 8 * cols, cache = X_BYTES;
    struct matrix far = make_even(2, rows, cols, true), near = make_even(2, rows, cols, true);
    for (int64_t k = 0; k < near.nnz; k++)
        near.col[k] = (int32_t)(k * cols / near.nnz);
    const int64_t before = change_cache(cache);
    struct setting s = {.compression = -1, .updates = true};
    for (int f32 = 0; f32 < 2; f32++) {
        s = in_type(s, NULL, f32 ? SPMV_F32 : SPMV_F64);
        check_choice(&far, s, "blocked", "larger than the last-level cache");
        check_choice(&near, s, "tiles", "whatever the row lengths");
    }
    s.stored = SPMV_F32, s.sums = SPMV_F64;
    check_choice(&far, s, "blocked", "larger than the last-level cache");
    s = in_type(s, NULL, SPMV_F64);
    s.compression = 0;
    check_choice(&far, s, "tiles", "whatever the row lengths");
    s.compression = 2;
    check_choice(&far, s, "tiles", "whatever the row lengths");
    s.compression = -1;
    change_cache(cols * 8);
    check_choice(&far, s, "tiles", "whatever the row lengths");
    change_cache(cache);
#ifdef HOST_CUDA
    int made[2] = {0, 0}; /* with tiles, with blocked */
    plans_with_little_memory(&far, s, 32, 1 << 21, 8, count_methods, made);
    assert_true(made[0] > 5 && made[1] > 5);
    for (int granted = 0, refused = 0; refused == 0; granted++) {
        struct planned p;
        host_cuda.granted = granted + 3; /* after the arrays of the matrix */
        host_cuda.refused = 2;           /* the second attempt comes after the pool is trimmed */
        ctx->error[0] = '\0';
        const spmv_status st = try_plan(&far, s, &p);
        refused = host_cuda.refused;
        host_cuda.granted = host_cuda.refused = 0;
        assert_true(st == SPMV_OK || st == SPMV_ERROR_MEMORY);
        assert_true((st == SPMV_OK) == (spmv_last_error(ctx)[0] == '\0'));
        if (st == SPMV_OK)
            check_product("one allocation refused", &far, &p, far.val);
        free_plan(&p);
    }
#endif
    change_cache(before);
    free_matrix(&far);
    free_matrix(&near);
}

/* Not for a minimal matrix, and not for several vectors. */
static void not_for_all(void **state)
{
    (void)state;
    const int32_t row_ptr[] = {0, 1}, col[] = {0};
    const double val[] = {5};
    const spmv_csr a = support_csr(1, 1, row_ptr, col, val);
    spmv_plan_options options = support_plan_options();
    spmv_plan *plan = NULL;
    assert_ok(ctx, spmv_plan_create(ctx, &a, &options, &plan));
    spmv_plan_info info;
    assert_ok(ctx, spmv_plan_describe(plan, &info, sizeof info));
    assert_string_not_equal(info.method, "blocked");
    spmv_plan_destroy(plan);
    options.method = "blocked";
    options.vectors = 2;
    assert_fails(ctx, spmv_plan_create(ctx, &a, &options, &plan), SPMV_ERROR_UNSUPPORTED, "of several vectors");
}

ONE_CONTEXT_MAIN(cmocka_unit_test(borders_of_blocks), cmocka_unit_test(large_shape),
                 cmocka_unit_test(blocks_with_few_nonzeros), cmocka_unit_test(few_is_few), cmocka_unit_test(intervals),
                 cmocka_unit_test(long_rows), cmocka_unit_test(empty_rows), cmocka_unit_test(least_matrices),
                 cmocka_unit_test(bits_repeat), cmocka_unit_test(memory_runs_out), cmocka_unit_test(choice),
                 cmocka_unit_test(not_for_all))
