/* The method "padded" of the backend cuda: rows around the ends of pairs, batches and slices,
 * ragged last slices, empty rows and slices; columns at both ends of ranges, as many ranges as a
 * slice can have and one more, ranges that are too far apart; an infinite x beside empty places;
 * the order of the sums, bit by bit; the plan's choice; new values; an epilogue; memory that runs
 * out. Runs on a GPU, and on a host that runs the kernels.
 *
 * Values are small integers where results are compared with expected ones, so that every order of
 * summation gives the same result.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/plural.h"
#include "tests/support/support_planned.h"

#ifdef HOST_CUDA
enum { LARGE = 4000 }; /* SPMV_TILES_LARGE of this build */
#else
enum { LARGE = 1 << 20 };
#endif
/* Constants of the kernels: rows of a slice, and of those that share ranges; lanes of a row, entries of a
 * row in a pair and in a batch, ranges of a slice, columns of a range; the means of
 * a plan that chooses the method. */
enum { SLICE = 8, SHARED = 16, LANES = 4, PAIR = 8, BATCH = 32, RANGES = 31, RANGE = 2048, MEAN = 16, MOST_MEAN = 192 };

static const struct setting settings[] = {
    {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1},
    {.stored = SPMV_F32, .sums = SPMV_F32, .compression = -1, .scaled = true},
    {.stored = SPMV_F32, .sums = SPMV_F64, .compression = 2},
    {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1, .wide = true, .scaled = true},
};

/* Runs every setting with the method named; checks the plan's description too. */
static void check_matrix(const char *name, const struct matrix *m, const char *says)
{
    for (size_t k = 0; k < (brief ? 2 : sizeof settings / sizeof settings[0]); k++) {
        struct planned p = make_named_plan(m, "padded", settings[k]);
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

/* Numbers of rows around multiples of a slice and of a block of slices; rows around pairs and
 * batches. */
static void seams(void **state)
{
    (void)state;
    enum { MOST = 8 * SLICE + 2 };
    static const int64_t slices[] = {1, 2, 4, 8};
    static const int64_t around[] = {PAIR, BATCH, 3 * BATCH};
    int64_t lengths[MOST];
    for (size_t s = 0; s < sizeof slices / sizeof slices[0]; s++)
        for (int64_t rows = slices[s] * SLICE - 1; rows <= slices[s] * SLICE + 1; rows++) {
            for (int64_t i = 0; i < rows; i++)
                lengths[i] = around[(size_t)i / SLICE % 3] + i % 3 - 1;
            const int64_t all = (rows - 1) / SLICE + 1;
            char says[64];
            snprintf(says, sizeof says, "in %lld slice%s of 8 rows", (long long)all, plural(all));
            check_lengths("around a seam", lengths, rows, 3000, says);
        }
    for (int64_t longest = 1; longest <= 2 * BATCH + 1; longest++) { /* all lanes but one are empty */
        for (int64_t i = 0; i < SLICE; i++)
            lengths[i] = i == longest % SLICE ? longest : 0;
        check_lengths("one row", lengths, SLICE, 200, "in 1 slice of 8 rows");
    }
    const int64_t one[] = {1};
    check_lengths("one entry", one, 1, 1, "1 at most, in 1 slice of 8 rows, each filled up to its longest row; 3.12 %");
}

/* Empty rows, empty slices, no entries at the start and at the end. */
static void empty_rows(void **state)
{
    (void)state;
    enum { ROWS = 9 * SHARED + 3 };
    int64_t lengths[ROWS];
    for (int kind = 0; kind < 3; kind++) {
        for (int64_t i = 0; i < ROWS; i++) {
            const bool empty = kind == 0 ? i % 5 != 0 : kind == 1 ? i / SLICE % 2 == 0 : i < 70 || i > 100;
            lengths[i] = empty ? 0 : 1 + 7 * i % 23;
        }
        check_lengths("empty rows", lengths, ROWS, 500, "slices of 8 rows");
    }
}

/* A matrix with `lists` equal lists of ranges. The columns of a row are in `ranges` ranges, at both ends of each
 * in turn. The ranges begin at multiples of RANGE and are `apart` ranges from each other. */
static struct matrix make_ranges(int lists, int ranges, int64_t apart)
{
    const int64_t rows = (int64_t)lists * SHARED;
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = ranges;
    struct matrix m = make_matrix(lengths, rows, ((ranges - 1) * apart + 3) * RANGE, true, false);
    for (int64_t i = 0; i < rows; i++)
        for (int j = 0; j < ranges; j++) {
            const int64_t end = (i + j) % 2 == 0 ? 0 : RANGE - 1;
            m.col[m.row_ptr[i] + (j * 7 + i) % ranges] = (int32_t)((j * apart + 1) * RANGE + end);
        }
    free(lengths);
    return m;
}

/* As many ranges as a slice can name, and one more: its slices are plain. */
static void ranges(void **state)
{
    (void)state;
    static const int64_t apart[] = {1, 2, 5};
    for (int more = -1; more <= 1; more++)
        for (size_t a = 0; a < sizeof apart / sizeof apart[0]; a++) {
            struct matrix m = make_ranges(3, RANGES + more, apart[a]);
            check_matrix("ranges", &m, more <= 0 ? "16-bit columns in 100 % of" : "16-bit columns in 0 % of");
            free_matrix(&m);
        }
    struct matrix m = make_ranges(4, RANGES, 1); /* one plain slice among others */
    m.cols += 5 * RANGE;
    m.col[m.row_ptr[2 * SHARED + 3]] = (int32_t)m.cols - 1;
    check_matrix("a plain slice", &m, "16-bit columns in 75 % of");
    free_matrix(&m);
}

/* Ranges that are further apart than the list of a slice's ranges can say. Only the plan is made: x
 * would be large. */
static void far_ranges(void **state)
{
    (void)state;
    enum { MOST = 0xffff }; /* ranges between two of a slice, and one more */
    for (int more = 0; more < 2; more++) {
        struct matrix m = make_ranges(2, 2, MOST - 1 + more);
        struct planned p = make_named_plan(&m, "padded", settings[0]);
        check_layout("far ranges", &p, more == 0 ? "16-bit columns in 100 % of" : "16-bit columns in 0 % of");
        free_plan(&p);
        free_matrix(&m);
    }
}

/* ------------------------------------------------------------------ sums */

/* Bits of a product do not depend on the slices, nor on whether they are plain. Empty places do not
 * read x: it is infinite where other rows of the slice have entries. */
static void bits(void **state)
{
    (void)state;
    enum { ROWS = 7 * SHARED + 5, COLS = 40 * RANGE };
    int64_t lengths[ROWS];
    for (int64_t i = 0; i < ROWS; i++)
        lengths[i] = i == 40 ? 300 : 7919 * i % 50;
    for (int plain = 0; plain < 2; plain++) {
        struct matrix m = make_matrix(lengths, ROWS, COLS, false, false);
        double *const x = make_vector(COLS, 3, false);
        for (int64_t k = 0; k < m.nnz; k++)
            m.col[k] = plain ? m.col[k] : m.col[k] % 50000;
        for (int64_t k = m.row_ptr[40]; k < m.row_ptr[41]; k++)
            x[m.col[k]] = k % 2 == 0 ? INFINITY : x[m.col[k]];
        m.col[m.row_ptr[40]] = 0; /* the first column of ranges */
        x[0] = INFINITY;
        for (size_t s = 0; s < 4; s += 3) {
            struct planned p = make_named_plan(&m, "padded", settings[s]);
            check_layout("bits", &p, plain ? "16-bit columns in 0 % of" : "16-bit columns in 100 % of");
            p.s.scaled = false;
            double *const y = product_of(&p, x, NULL);
            for (int64_t i = 0; i < ROWS; i++) {
                double sum[LANES] = {0};
                for (int64_t k = m.row_ptr[i]; k < m.row_ptr[i + 1]; k++)
                    sum[(k - m.row_ptr[i]) % LANES] += m.val[k] * x[m.col[k]];
                const double expected = (sum[0] + sum[2]) + (sum[1] + sum[3]);
                if (memcmp(&y[i], &expected, sizeof expected) != 0 && !(isnan(expected) && isnan(y[i])))
                    fail_msg("row %lld: %.17g, not %.17g", (long long)i, y[i], expected);
            }
            free(y);
            free_plan(&p);
        }
        free(x);
        free_matrix(&m);
    }
}

/* ------------------------------------------------------------------ the plan's choice */

static void check_choice(const struct matrix *m, struct setting s, const char *method, const char *says)
{
    struct planned p = make_plan(m, s);
    const char *const text = s.method != NULL ? p.plan->why : p.plan->layout;
    if (strcmp(p.plan->method->name, method) != 0 || strstr(text, says) == NULL)
        fail_msg("method %s (%s; %s), not %s (%s)", p.plan->method->name, p.plan->why, p.plan->layout, method, says);
    check_product("the plan's choice", m, &p, m->val);
    free_plan(&p);
}

/* A matrix whose rows have `length` entries, those with a number that `every` divides `more`. */
static struct matrix make_even(int64_t nnz, int64_t length, int64_t every, int64_t more, bool whole)
{
    const int64_t rows = nnz / length;
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = length + (i % every == 0 ? more : 0);
    struct matrix m = make_matrix(lengths, rows, 9 * RANGE, whole, false);
    free(lengths);
    return m;
}

static void choice(void **state)
{
    (void)state;
    if (brief) /* large matrices, see sanitize.sh, and no kernel of its own */
        skip();
    struct setting automatic = {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1}, named = automatic;
    named.method = "padded";
    struct matrix m = make_even(LARGE + 2 * MEAN, MEAN, 1, 0, true);
    check_choice(&m, automatic, "padded", "16-bit columns in 100 % of");
    automatic.compression = named.compression = 2; /* a table of the nine values */
    check_choice(&m, automatic, "tiles", "a table of 9 values");
    check_choice(&m, named, "padded", "requested by name");
    automatic.compression = named.compression = 0;
    check_choice(&m, automatic, "tiles", "tiles of at most");
    check_choice(&m, named, "tiles", "tiles instead of padded: compression is off");
    automatic.compression = named.compression = -1;
    automatic.pattern = named.pattern = true;
    check_choice(&m, automatic, "tiles", "tiles of at most");
    check_choice(&m, named, "tiles", "no values");
    automatic.pattern = named.pattern = false;
    for (int64_t k = 0; k < m.nnz; k++) /* values that are too many for a table */
        m.val[k] = (double)(k % 300);
    automatic.compression = 2;
    check_choice(&m, automatic, "padded", "no table of values");
    automatic.compression = -1;
    free_matrix(&m);

    m = make_even(LARGE - MEAN, MEAN, 1, 0, true); /* small */
    check_choice(&m, automatic, "tiles", "tiles of at most");
    check_choice(&m, named, "padded", "requested by name");
    free_matrix(&m);
    static const int64_t means[] = {MEAN - 1, MOST_MEAN, MOST_MEAN - 1};
    for (size_t i = 0; i < 3; i++) {
        m = make_even((i < 2 ? 2 : 4) * LARGE, means[i], 1, 0, true);
        check_choice(&m, automatic, i < 2 ? "tiles" : "padded", "");
        free_matrix(&m);
    }
    for (int64_t more = 0; more <= 16; more += 4) { /* one longer row in a slice */
        m = make_even(LARGE + LARGE / 2, 40, SLICE, more, true);
        check_choice(&m, automatic, more <= 4 ? "padded" : "tiles", "");
        check_choice(&m, named, "padded", "requested by name");
        free_matrix(&m);
    }
    m = make_even(2 * LARGE, 20, 1 << 20, 20 * LARGE, true); /* one row has most of the nonzeros */
    check_choice(&m, automatic, "tiles", "");
    check_choice(&m, named, "padded", "requested by name");
    free_matrix(&m);
    m = make_ranges(LARGE / SHARED / RANGES + 1, RANGES + 1, 1); /* all slices are plain */
    check_choice(&m, automatic, "tiles", "tiles of at most");
    free_matrix(&m);
}

/* Matrices that are larger than the last-level cache: the speed of the memory counts. It is asked once
 * for each device. */
static void memory_speed(void **state)
{
    (void)state;
#ifdef HOST_CUDA
    const struct setting automatic = {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1};
    spmv_context *const usual = ctx;
    const struct host_cuda before = host_cuda;
    const int khz[] = {before.memory_khz, before.memory_khz * 7 / 10, 0}; /* the last one is unknown */
    host_cuda.devices = 4;
    for (int device = 1; device <= 3; device++) {
        host_cuda.memory_khz = khz[device - 1];
        ctx = support_context_of(device, NULL);
        for (int64_t more = 0; more <= 8; more += 8) {
            struct matrix m = make_even(112000, 56, SLICE, more, true);
            check_choice(&m, automatic, device == 1 && more == 0 ? "padded" : "tiles", "");
            free_matrix(&m);
        }
        spmv_context_destroy(ctx);
        host_cuda.memory_khz = khz[0];
    }
    host_cuda.devices = before.devices;
    ctx = usual;
#endif
}

/* ------------------------------------------------------------------ values, epilogue, memory */

static struct matrix make_usual(bool has_plain)
{
    enum { ROWS = 5 * SHARED + 7 };
    int64_t lengths[ROWS];
    for (int i = 0; i < ROWS; i++)
        lengths[i] = i % 7 == 3 ? 0 : 20 + 7919 * i % 30;
    struct matrix m = make_matrix(lengths, ROWS, 50 * RANGE, true, false);
    for (int64_t k = 0; k < m.row_ptr[has_plain ? 2 * SHARED : ROWS]; k++)
        m.col[k] %= 9 * RANGE;
    return m;
}

static void new_values(void **state)
{
    (void)state;
    struct matrix m = make_usual(false), spread = make_usual(true);
    double *const values = support_zeros(m.nnz, 8);
    for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++) {
        struct planned p = make_named_plan(&m, "padded", updating(settings[s], "padded"));
        for (int turn = 0; turn < 2; turn++) {
            for (int64_t k = 0; k < m.nnz; k++)
                values[k] = (double)((k + turn) % 17) - 7;
            check_update(&m, &p, values);
        }
        free_plan(&p);
    }
    check_choice(&spread, updating(settings[0], "padded"), "tiles", "new values would be borrowed");
    free(values);
    free_matrix(&m);
    free_matrix(&spread);
}

#ifdef HOST_CUDA
static void count_methods(const struct planned *p, void *counts)
{
    ((int *)counts)[strcmp(p->plan->method->name, "padded") == 0]++;
}
#endif

/* The plan is made with more and more memory: first not at all, then as tiles. */
static void memory_runs_out(void **state)
{
    (void)state;
#ifdef HOST_CUDA
    struct matrix m = make_even(LARGE + 2 * MEAN, MEAN, 1, 0, true);
    const struct setting s = {.stored = SPMV_F64, .sums = SPMV_F64, .compression = -1};
    int methods[2] = {0, 0};
    const int refused = plans_with_little_memory(&m, s, 1 << 8, 1 << 19, 8, count_methods, methods);
    assert_true(methods[0] > 3 && methods[1] > 3 && refused > 3);
    free_matrix(&m);
#endif
}

ONE_CONTEXT_MAIN(cmocka_unit_test(seams), cmocka_unit_test(empty_rows), cmocka_unit_test(ranges),
                 cmocka_unit_test(far_ranges), cmocka_unit_test(bits), cmocka_unit_test(choice),
                 cmocka_unit_test(memory_speed), cmocka_unit_test(new_values), cmocka_unit_test(memory_runs_out))
