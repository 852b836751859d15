/* Hubs of the method "tiles" of the backend cuda: columns with many entries, whose elements of x are
 * in shared memory. The bits must be those of the plain columns. Runs on a GPU and, with fewer hubs
 * and smaller sizes, on the host that emulates one.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_cache.h"
#include "tests/support/support_planned.h"

/* SPMV_TILES_MOST_HUBS of this build, nonzeros of a tile, fragments whose sums are folded at once,
 * and rows of a tile without nonzeros. */
enum { MOST = 40, CAPACITY = 2048, FAN_IN = 32, EMPTY_ROWS = 4096 };

static const char taken[] = "columns in shared memory have";

static int64_t scaled_down(int64_t on_a_gpu, int64_t on_the_host)
{
    return on_real_gpu() ? on_a_gpu : on_the_host;
}

/* The columns that are to be hubs, and the distance between two of them. */
static int64_t hub_columns(void)
{
    return scaled_down(8000, MOST);
}

static int64_t apart(void)
{
    return scaled_down(401, 7001);
}

/* In a matrix with distant columns, percent of the entries get the columns of hubs. */
static struct matrix make_hubs(const int64_t *lengths, int64_t rows, int percent, bool whole, bool pattern)
{
    struct matrix m = make_matrix(lengths, rows, hub_columns() * apart(), whole, pattern);
    uint64_t random = 5;
    for (int64_t k = 0; k < m.nnz; k++) {
        const uint64_t drawn = support_random(&random) >> 20;
        if ((int)(drawn % 100) < percent)
            m.col[k] = (int32_t)((int64_t)(drawn / 100) % hub_columns() * apart() + 5);
    }
    return m;
}

static struct setting hubs_in(struct setting s, spmv_type stored, spmv_type sums)
{
    s = in_type(s, "tiles", sums);
    s.stored = stored;
    return s;
}

/* A plan where the last-level cache is so many times as large as x: from 2 on, hubs are possible; if
 * it is much larger, part of the matrix is retained in it. */
static struct planned plan_beside(const struct matrix *m, struct setting s, double times)
{
    const int64_t before = change_cache((int64_t)(times * (double)m->cols * (double)spmv_type_size(s.sums)));
    const struct planned p = make_plan(m, s);
    change_cache(before);
    return p;
}

/* The bits of a product with compression -1 and with 0. x has numbers that are not finite at some
 * columns, so that an element that is not multiplied must not count. */
static void check_bits(const char *name, const struct matrix *m, struct setting s, bool finite)
{
    static unsigned turn;
    const double times = turn++ % 2 ? 2 : 20;
    double *const x = make_vector(m->cols, 3, false), *const y0 = make_vector(m->rows, 4, false);
    void *y[2];
    for (int64_t c = 0; c < m->cols && !finite; c += 3 * apart()) {
        x[c] = NAN;
        x[c + 5] = INFINITY;
    }
    for (int plain = 0; plain < 2; plain++) {
        s.compression = plain - 1;
        struct planned p = plan_beside(m, s, times);
        if ((strstr(p.plan->layout, taken) != NULL) == (plain == 1))
            fail_msg("%s, compression %d: %s", name, s.compression, p.plan->layout);
        y[plain] = product_of(&p, x, y0);
        free_plan(&p);
    }
    if (memcmp(y[0], y[1], (size_t)m->rows * spmv_type_size(s.sums)) != 0)
        fail_msg("%s, %s, %s%s%s: other bits with hubs", name, spmv_type_name(s.stored), spmv_type_name(s.sums),
                 s.scaled ? ", scaled" : "", s.wide ? ", wide" : "");
    support_free(y[0], y[1], x, y0);
}

static void check_lengths(const char *name, const int64_t *lengths, int64_t rows)
{
    static const struct {
        spmv_type stored, sums;
        struct setting s;
        bool pattern, finite;
    } cases[] = {{SPMV_F64, SPMV_F64, {.scaled = false}, false, true},
                 {SPMV_F32, SPMV_F32, {.scaled = true}, false, false},
                 {SPMV_F32, SPMV_F64, {.scaled = true, .skew = 1}, false, true},
                 {SPMV_F32, SPMV_F32, {.wide = true, .skew = 3}, true, true},
                 {SPMV_F64, SPMV_F64, {.wide = true, .scaled = true}, true, false}};
    static size_t turn;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        if (!on_real_gpu() && (turn++ % 2 != 0)) /* half of them for each matrix */
            continue;
        struct matrix m = make_hubs(lengths, rows, 60, false, cases[k].pattern);
        check_bits(name, &m, hubs_in(cases[k].s, cases[k].stored, cases[k].sums), cases[k].finite);
        free_matrix(&m);
    }
}

/* ------------------------------------------------------------------- families */

static void short_and_empty_rows(void **state)
{
    (void)state;
    const int64_t rows = scaled_down(600000, 3 * EMPTY_ROWS);
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = i > rows / 2 && i < rows / 2 + EMPTY_ROWS + 9 ? 0 : i % 20;
    check_lengths("short rows", lengths, rows);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = i < EMPTY_ROWS || i % 9 > 0 ? 0 : scaled_down(120, 30);
    check_lengths("mostly empty", lengths, rows);
    free(lengths);
}

/* Fragments of one row are handed on by several teams and blocks. */
static void rows_longer_than_a_tile(void **state)
{
    (void)state;
    const int64_t rows = scaled_down(300000, 400);
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = 10 + i % 23;
    lengths[0] = CAPACITY + 1;
    lengths[rows / 2] = (FAN_IN + 2) * CAPACITY + 5;
    lengths[rows / 2 + 1] = 0;
    lengths[rows - 1] = 3 * CAPACITY;
    check_lengths("some long rows", lengths, rows);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = i % (rows / 4) == 3 ? scaled_down(1200000, 3 * CAPACITY) : 0;
    check_lengths("long rows only", lengths, rows);
    free(lengths);
}

/* Integers, for which each order of a sum gives the same, and new values. */
static void exact_and_updated(void **state)
{
    (void)state;
    const int64_t rows = scaled_down(300000, 900);
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = i % 40;
    struct matrix m = make_hubs(lengths, rows, 60, true, false);
    double *const others = make_vector(m.nnz, 8, true);
    for (int f32 = 0; f32 < 2; f32++) {
        const spmv_type type = f32 ? SPMV_F32 : SPMV_F64;
        struct planned p = plan_beside(
            &m, hubs_in((struct setting){.compression = -1, .updates = true, .scaled = f32}, type, type), 2);
        check_layout("exact", &p, taken);
        check_product("exact", &m, &p, m.val);
        check_update(&m, &p, others);
        free_plan(&p);
    }
    support_free(lengths, others);
    free_matrix(&m);
}

/* ------------------------------------------------------------------- the choice */

enum { ROWS = 800, EACH = 16 }; /* of the matrices below */

static struct matrix even_matrix(int percent)
{
    const int64_t rows = scaled_down(300000, ROWS);
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = EACH;
    struct matrix m = make_hubs(lengths, rows, percent, true, false);
    free(lengths);
    return m;
}

static void check_form(const char *name, const struct matrix *m, int compression, double times, bool wanted)
{
    struct planned p = plan_beside(m, hubs_in((struct setting){.compression = compression}, SPMV_F64, SPMV_F64), times);
    if ((strstr(p.plan->layout, taken) != NULL) != wanted)
        fail_msg("%s: %s", name, p.plan->layout);
    free_plan(&p);
}

static void where_they_pay(void **state)
{
    (void)state;
    struct matrix m = even_matrix(60);
    check_form("60 %", &m, -1, 2, true);
    check_form("a large x", &m, -1, 1.9, false);
    check_form("compression off", &m, 0, 2, false);
    /* nine values */
    check_form("a table of values", &m, 2, 2, false);
    /* neighbouring entries in a few sectors */
    for (int64_t k = 0; k < m.nnz; k++)
        m.col[k] = (int32_t)(k / EACH % hub_columns() * apart() + k % EACH);
    check_form("neighbours", &m, -1, 2, false);
    for (int64_t k = 0; k < m.nnz; k++)
        m.col[k] %= 60000;
    check_form("16-bit columns", &m, -1, 2, false);
    free_matrix(&m);
    m = even_matrix(10);
    check_form("10 %", &m, -1, 2, false);
    /* Two columns have nearly all entries: the first-level cache has them. */
    for (int64_t k = 0; k < m.nnz; k++)
        m.col[k] = k % 8 == 0 ? (int32_t)(k * 1009 % m.cols) : (int32_t)(k % 2 * 30000);
    check_form("two columns", &m, -1, 2, false);
    free_matrix(&m);
}

/* 60 columns have equally many entries, others one. The sample is the whole matrix. The first 40 of
 * the 60 are hubs, or those before which others have more. */
static void ties_at_the_threshold(void **state)
{
    (void)state;
    if (on_real_gpu())
        skip(); /* there are more hubs */
    enum { EQUAL = 60, OFTEN = ROWS * EACH / 2 / EQUAL };
    struct matrix m = even_matrix(0);
    for (int form = 0; form < 2; form++) {
        int64_t at = 0, of_hubs = 0;
        for (int64_t k = 0; k < m.nnz; k++)
            m.col[k] = (int32_t)(EQUAL * apart() + k * 7919 % m.nnz * 300);
        for (int c = 0; c < EQUAL; c++) {
            const int often = OFTEN + (form == 1 && c >= EQUAL - 5);
            for (int i = 0; i < often; i++, at += 2)
                m.col[at % m.nnz] = c * apart();
            of_hubs += c < (form == 0 ? MOST : MOST - 5) || often > OFTEN ? often : 0;
        }
        m.cols = EQUAL * apart() + 300 * m.nnz;
        char says[100];
        snprintf(says, sizeof says, "; %d %s %.3g %% of the nonzeros", MOST, taken,
                 100.0 * (double)of_hubs / (double)m.nnz);
        struct planned p = plan_beside(&m, hubs_in((struct setting){.compression = -1}, SPMV_F32, SPMV_F32), 2);
        check_layout("ties", &p, says);
        check_product("ties", &m, &p, m.val);
        free_plan(&p);
    }
    free_matrix(&m);
}

#ifdef HOST_CUDA
static void note(const struct planned *p, void *seen)
{
    ((int *)seen)[strstr(p->plan->layout, taken) != NULL                                      ? 0
                  : strstr(p->plan->layout, "no memory for columns in shared memory") != NULL ? 1
                                                                                              : 2]++;
}

static void too_little_memory(void **state)
{
    (void)state;
    struct matrix m = even_matrix(60);
    int seen[3] = {0};
    const int64_t before = change_cache(2 * m.cols * 8);
    const int refused = plans_with_little_memory(&m, hubs_in((struct setting){.compression = -1}, SPMV_F64, SPMV_F64),
                                                 1000, 20000000, 3, note, seen);
    change_cache(before);
    assert_true(refused > 0 && seen[0] > 0 && seen[1] > 0);
    free_matrix(&m);
}
#else
static void too_little_memory(void **state)
{
    (void)state;
    skip(); /* a GPU's memory cannot be limited */
}
#endif

ONE_CONTEXT_MAIN(cmocka_unit_test(short_and_empty_rows), cmocka_unit_test(rows_longer_than_a_tile),
                 cmocka_unit_test(exact_and_updated), cmocka_unit_test(where_they_pay),
                 cmocka_unit_test(ties_at_the_threshold), cmocka_unit_test(too_little_memory))
