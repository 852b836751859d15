/* Sparse products by the method "rows" of the backend cuda, compared bit by bit with a serial
 * definition: rows of all classes and at their limits, empty rows and matrices, dense rows and
 * columns, several windows and fragments, rows that all blocks share, all types and patterns, both
 * widths of row offsets; memory that runs out; a numeric phase under capture. Runs on a GPU, and on
 * a host that runs the kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "spgemm/spgemm_internal.h"
#include "tests/support/support_lengths.h"
#include "tests/support/support_slow.h"

#ifdef HOST_CUDA
#include <cuda_runtime_api.h>
/* SPMV_SPGEMM_SLOTS, SPMV_SPGEMM_WORDS and SPMV_SPGEMM_HUGE of this build */
enum { SLOTS = 8, WORDS = 32, LONGEST = 300 };
#else
enum { SLOTS = 16, WORDS = 16384, LONGEST = 16384 };
#endif
/* the most columns of a row in the smallest class, and of a fragment */
enum { LEAST_CLASS = SLOTS / 4 * 3 * 4, FRAGMENT = 8 * LEAST_CLASS };

static spmv_context *ctx;

/* The reference. Complex numbers have two parts. */
struct product {
    int64_t nnz;
    int64_t *row_ptr;
    int32_t *col;
    void *val;
};

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

#define DEFINE_VALUES(T)                                                                                               \
    /* sums[2 j ...] of row i; first: the product starts the sum */                                                    \
    static void add_##T(T *sum, const T *a, const T *b, int parts, bool first)                                         \
    {                                                                                                                  \
        T re, im = 0;                                                                                                  \
        if (parts == 1) {                                                                                              \
            re = a[0] * b[0];                                                                                          \
        } else {                                                                                                       \
            const T x = a[0] * b[0], y = a[1] * b[1], z = a[0] * b[1], w = a[1] * b[0];                                \
            re = x - y;                                                                                                \
            im = z + w;                                                                                                \
        }                                                                                                              \
        sum[0] = first ? re : sum[0] + re;                                                                             \
        if (parts == 2)                                                                                                \
            sum[1] = first ? im : sum[1] + im;                                                                         \
    }                                                                                                                  \
    static void fill_##T(T *to, const double *from, int64_t n, int parts)                                              \
    {                                                                                                                  \
        for (int64_t k = 0; k < n; k++) {                                                                              \
            to[k * parts] = (T)from[k];                                                                                \
            if (parts == 2)                                                                                            \
                to[k * 2 + 1] = (T)from[(k * 7 + 3) % n];                                                              \
        }                                                                                                              \
    }
DEFINE_VALUES(double)
DEFINE_VALUES(float)

static void add_to(spmv_type type, void *sum, const void *a, const void *b, bool first)
{
    const int parts = type_is_complex(type) ? 2 : 1;
    if (type_part(type) == SPMV_F32)
        add_float(sum, a, b, parts, first);
    else
        add_double(sum, a, b, parts, first);
}

/* The values of m as elements of the type; ones for a pattern. */
static void *values_as(spmv_type type, const struct matrix *m, bool pattern)
{
    const int parts = type_is_complex(type) ? 2 : 1;
    void *const values = support_zeros(m->nnz, 16);
    double *const real = support_zeros(m->nnz, sizeof *real);
    for (int64_t k = 0; k < m->nnz; k++)
        real[k] = pattern ? 1 : m->val[k];
    if (type_part(type) == SPMV_F32)
        fill_float(values, real, m->nnz, parts);
    else
        fill_double(values, real, m->nnz, parts);
    for (int64_t k = 0; pattern && parts == 2 && k < m->nnz; k++)
        if (type == SPMV_C64)
            ((float *)values)[2 * k + 1] = 0;
        else
            ((double *)values)[2 * k + 1] = 0;
    free(real);
    return values;
}

static struct product multiply(const struct matrix *a, const struct matrix *b, spmv_type type, const char *a_val,
                               const char *b_val)
{
    const int64_t size = (int64_t)spmv_type_size(type);
    struct product c = {.row_ptr = support_zeros(a->rows + 1, 8)};
    int64_t *const seen = support_zeros(b->cols, 8); /* row + 1 */
    char *const sums = support_zeros(b->cols, 16);
    int64_t room = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t begin = c.nnz;
        for (int64_t k = a->row_ptr[i]; k < a->row_ptr[i + 1]; k++) {
            for (int64_t p = b->row_ptr[a->col[k]]; p < b->row_ptr[a->col[k] + 1]; p++) {
                const int32_t j = b->col[p];
                const bool first = seen[j] != i + 1;
                if (first) {
                    seen[j] = i + 1;
                    if (c.nnz == room) {
                        room = 2 * room + 100;
                        c.col = realloc(c.col, (size_t)room * 4);
                        c.val = realloc(c.val, (size_t)room * 16);
                        assert_true(c.col != NULL && c.val != NULL);
                    }
                    c.col[c.nnz++] = j;
                }
                add_to(type, sums + size * j, a_val + size * k, b_val + size * p, first);
            }
        }
        if (c.nnz > begin)
            qsort(c.col + begin, (size_t)(c.nnz - begin), sizeof *c.col, ascending);
        for (int64_t k = begin; k < c.nnz; k++)
            memcpy((char *)c.val + size * k, sums + size * c.col[k], (size_t)size);
        c.row_ptr[i + 1] = c.nnz;
    }
    support_free(seen, sums);
    return c;
}

/* A matrix in the context's memory. */
struct uploaded {
    spmv_csr view;
    void *row_ptr, *col, *val;
};

static struct uploaded upload(const struct matrix *m, int bits, spmv_type type, const void *values)
{
    struct uploaded u = {.col = support_upload(ctx, m->col, m->nnz * 4)};
    if (bits == 64) {
        u.row_ptr = support_upload(ctx, m->row_ptr, (m->rows + 1) * 8);
    } else {
        int32_t *const narrow = support_zeros(m->rows + 1, 4);
        for (int64_t i = 0; i <= m->rows; i++)
            narrow[i] = (int32_t)m->row_ptr[i];
        u.row_ptr = support_upload(ctx, narrow, (m->rows + 1) * 4);
        free(narrow);
    }
    u.val = values == NULL ? NULL : support_upload(ctx, values, m->nnz * (int64_t)spmv_type_size(type));
    u.view = support_csr_there(m->rows, m->cols, m->nnz, u.row_ptr, bits, u.col, u.val, type);
    return u;
}

static void release(struct uploaded *u)
{
    support_free_in(ctx, u->row_ptr, u->col, u->val);
}

static int64_t products_of(const struct matrix *a, const struct matrix *b)
{
    int64_t products = 0;
    for (int64_t k = 0; k < a->nnz; k++)
        products += b->row_ptr[a->col[k] + 1] - b->row_ptr[a->col[k]];
    return products;
}

static void release_plan(struct spmv_spgemm_plan *plan)
{
    spgemm_rows_destroy_cuda(plan);
    support_free_in(ctx, plan->row_ptr, plan->col);
}

/* The first position where two arrays differ; n: none. */
static int64_t first_difference(const void *x, const void *y, int64_t n, int64_t size)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp((const char *)x + i * size, (const char *)y + i * size, (size_t)size) != 0)
            return i;
    return n;
}

/* The products of each row, and of all, that the survey has counted for a plan. */
static void check_survey(const struct spmv_spgemm_plan *plan, const struct matrix *a, const struct matrix *b)
{
    int64_t *const counted = support_zeros(a->rows, 8);
    if (a->rows > 0)
        assert_ok(ctx, spmv_download(ctx, plan->row_ptr, counted, a->rows * 8));
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t products = 0;
        for (int64_t k = a->row_ptr[i]; k < a->row_ptr[i + 1]; k++)
            products += b->row_ptr[a->col[k] + 1] - b->row_ptr[a->col[k]];
        assert_int_equal(counted[i], products);
    }
    assert_int_equal(plan->products, products_of(a, b));
    free(counted);
}

/* Compares C = A B of one type with the definition. */
static void check_as(const struct matrix *a, const struct matrix *b, spmv_type type, bool a_pattern, bool b_pattern,
                     int a_bits, int b_bits, const char *what)
{
    const int64_t size = (int64_t)spmv_type_size(type);
    void *const a_values = values_as(type, a, a_pattern), *const b_values = values_as(type, b, b_pattern);
    struct product c = multiply(a, b, type, a_values, b_values);
    struct uploaded ua = upload(a, a_bits, type, a_pattern ? NULL : a_values);
    struct uploaded ub = upload(b, b_bits, type, b_pattern ? NULL : b_values);
    struct spmv_spgemm_plan plan = {.ctx = ctx, .a = ua.view, .b = ub.view, .type = type};
    bool valid = false;
    assert_ok(ctx, spgemm_survey_cuda(&plan, &valid));
    assert_int_equal(valid, a->rows > 0 && b->rows > 0);
    check_survey(&plan, a, b);
    /* the sample that the classes follow from: any is right; here unknown, all different, 20 equal */
    plan.sampled_products = type == SPMV_F64 ? 0 : 20;
    plan.sampled_columns = type == SPMV_C64 ? 20 : 1;
    assert_ok(ctx, spgemm_rows_symbolic_cuda(&plan));
    if (plan.nnz != c.nnz)
        fail_msg("%s: %lld entries instead of %lld", what, (long long)plan.nnz, (long long)c.nnz);
    int64_t *const row_ptr = support_zeros(a->rows + 1, 8);
    int32_t *const col = support_zeros(c.nnz, 4);
    char *const val = support_zeros(c.nnz, 16);
    assert_ok(ctx, spmv_download(ctx, plan.row_ptr, row_ptr, (a->rows + 1) * 8));
    assert_int_equal(first_difference(row_ptr, c.row_ptr, a->rows + 1, 8), a->rows + 1);
    if (c.nnz > 0) {
        assert_ok(ctx, spmv_download(ctx, plan.col, col, c.nnz * 4));
        const int64_t wrong = first_difference(col, c.col, c.nnz, 4);
        if (wrong < c.nnz)
            fail_msg("%s: entry %lld has column %d instead of %d", what, (long long)wrong, col[wrong], c.col[wrong]);
        for (int round = 0; round < 2; round++) {      /* the second time: new values for the same plan */
            memset(val, 0xff, (size_t)(c.nnz * size)); /* NaN */
            void *const values = support_upload(ctx, val, c.nnz * size);
            assert_ok(ctx, spgemm_rows_numeric_cuda(&plan, ua.val, ub.val, values));
            assert_ok(ctx, spmv_download(ctx, values, val, c.nnz * size));
            spmv_free(ctx, values);
            const int64_t differs = first_difference(val, c.val, c.nnz, size);
            if (differs < c.nnz)
                fail_msg("%s, %s: value %lld (column %d) differs: %a instead of %a", what, spmv_type_name(type),
                         (long long)differs, col[differs], *(double *)(val + size * differs),
                         *(double *)((char *)c.val + size * differs));
        }
    }
    release_plan(&plan);
    release(&ua);
    release(&ub);
    support_free(a_values, b_values, c.row_ptr, c.col, c.val, row_ptr, col, val);
}

static void check(const struct matrix *a, const struct matrix *b, const char *what)
{
    static const struct {
        spmv_type type;
        bool a_pattern, b_pattern;
        int a_bits, b_bits;
    } forms[] = {{SPMV_F64, false, false, 32, 64}, {SPMV_C128, false, false, 64, 32}, {SPMV_F32, false, true, 64, 64},
                 {SPMV_C64, true, false, 32, 32},  {SPMV_F32, false, false, 32, 32},  {SPMV_F64, true, true, 32, 32}};
    static int turn;
    turn++;
    for (int f = 0; f < 6; f++)
        if (!SLOW || (turn + f) % 2 == 0) /* an emulated GPU: half of them, in turns */
            check_as(a, b, forms[f].type, forms[f].a_pattern, forms[f].b_pattern, forms[f].a_bits, forms[f].b_bits,
                     what);
}

/* Rows of about these lengths, with ascending columns in [first, first + span) of each row. Some
 * values are 0 or -0. */
static struct matrix make_rows(const int64_t *lengths, int64_t rows, int64_t cols, int64_t first, int64_t span,
                               uint64_t seed)
{
    int64_t nnz = 0, at = 0;
    for (int64_t i = 0; i < rows; i++)
        nnz += lengths[i];
    struct matrix m = {.rows = rows,
                       .cols = cols,
                       .row_ptr = support_zeros(rows + 1, sizeof *m.row_ptr),
                       .col = support_zeros(nnz, sizeof *m.col),
                       .val = support_zeros(nnz, sizeof *m.val)};
    for (int64_t i = 0; i < rows; i++) {
        int64_t left = lengths[i];
        const int64_t begin = at;
        if (left * 16 < span) { /* random columns, inserted in order */
            while (left > 0) {
                const int32_t c = (int32_t)(first + (int64_t)(support_random(&seed) % (uint64_t)span));
                int64_t to = at;
                while (to > begin && m.col[to - 1] >= c)
                    to--;
                if (to < at && m.col[to] == c)
                    continue;
                memmove(m.col + to + 1, m.col + to, (size_t)(at - to) * sizeof *m.col);
                m.col[to] = c;
                at++;
                left--;
            }
        } else { /* each column with the probability that gives the number left */
            for (int64_t c = first; c < first + span && left > 0; c++)
                if ((int64_t)(support_random(&seed) % (uint64_t)(first + span - c)) < left) {
                    m.col[at++] = (int32_t)c;
                    left--;
                }
        }
        for (int64_t k = begin; k < at; k++) {
            const uint64_t kind = support_random(&seed) % 16;
            m.val[k] = kind == 0 ? 0 : kind == 1 ? -0.0 : support_uniform(&seed);
        }
        m.row_ptr[i + 1] = at;
    }
    m.nnz = at;
    return m;
}

/* Rows with random lengths in [low, high]. */
static struct matrix make_random(int64_t rows, int64_t cols, int64_t low, int64_t high, uint64_t seed)
{
    int64_t *const lengths = support_zeros(rows, 8);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = min_i64(cols, low + (int64_t)(support_random(&seed) % (uint64_t)(high - low + 1)));
    struct matrix m = make_rows(lengths, rows, cols, 0, cols, seed);
    free(lengths);
    return m;
}

static void check_random(int64_t rows, int64_t inner, int64_t cols, int64_t a_low, int64_t a_high, int64_t b_low,
                         int64_t b_high)
{
    char what[120];
    snprintf(what, sizeof what, "%lld x %lld x %lld, rows of %lld..%lld times %lld..%lld", (long long)rows,
             (long long)inner, (long long)cols, (long long)a_low, (long long)a_high, (long long)b_low,
             (long long)b_high);
    struct matrix a = make_random(rows, inner, a_low, a_high, (uint64_t)(rows + 3 * inner + a_high));
    struct matrix b = make_random(inner, cols, b_low, b_high, (uint64_t)(cols + 5 * inner + b_high));
    check(&a, &b, what);
    free_matrix(&a);
    free_matrix(&b);
}

static void test_random(void **state)
{
    (void)state;
    check_random(1, 1, 1, 1, 1, 1, 1);
    check_random(70, 50, 60, 0, 3, 0, 3);
    check_random(33, 200, 300, 0, 8, 0, 8);
    check_random(40, 300, 5000, 0, 20, 0, 30);
    check_random(60, 40, 3000, 5, 12, 30, 70);
    check_random(200, 300, 400, 3, 9, 1, 4);
    check_random(25, 100, 150, 60, 100, 2, 6);                       /* many products for each entry of C */
    check_random(12, 80, 40, 0, 80, 0, 40);                          /* nearly dense */
    check_random(9, 60, 8 * FRAGMENT, 1, 8, FRAGMENT / 3, FRAGMENT); /* long rows */
}

static void test_empty(void **state)
{
    (void)state;
    check_random(5, 4, 3, 0, 0, 0, 2);
    check_random(5, 4, 3, 1, 4, 0, 0);
    check_random(1000, 3, 7, 0, 1, 0, 1);
    check_random(5, 0, 3, 0, 0, 0, 0);
    check_random(5, 3, 0, 0, 2, 0, 0);
    check_random(3, 800, 9, 600, 700, 0, 0);
    check_random(2, LONGEST + 100, 9, LONGEST + 50, LONGEST + 90, 0, 0);
}

/* Rows of C with numbers of columns around the limits of all classes, from one row of B and from
 * several. */
static void test_limits(void **state)
{
    (void)state;
    enum { AROUND = 3, CLASSES = 6 };
    int64_t lengths[CLASSES * AROUND];
    int n = 0;
    for (int64_t limit = LEAST_CLASS; limit < LEAST_CLASS << CLASSES; limit *= 2)
        for (int64_t around = -1; around <= 1; around++)
            lengths[n++] = limit + around;
    const int64_t cols = LEAST_CLASS << CLASSES;
    struct matrix b = make_rows(lengths, n, cols, 0, cols, 11);
    int64_t ones[CLASSES * AROUND];
    for (int i = 0; i < n; i++)
        ones[i] = 1;
    struct matrix a = make_rows(ones, n, n, 0, n, 5);
    for (int i = 0; i < n; i++)
        a.col[i] = (int32_t)(n - 1 - i);
    check(&a, &b, "one row of B");
    free_matrix(&a);

    /* A is a lower triangle, so the rows of C grow */
    for (int i = 0; i < n; i++)
        ones[i] = i + 1;
    a = make_rows(ones, n, n, 0, n, 6);
    for (int i = 0; i < n; i++)
        for (int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; k++)
            a.col[k] = (int32_t)(k - a.row_ptr[i]);
    check(&a, &b, "a triangle");
    free_matrix(&a);
    free_matrix(&b);
}

/* The columns of C extend over several bitmaps. */
static void test_windows(void **state)
{
    (void)state;
    const int64_t window = 32 * WORDS;
    for (int64_t extra = -1; extra <= 1; extra++) {
        const int64_t cols = 3 * window + extra;
        int64_t lengths[] = {FRAGMENT + 5, 2 * FRAGMENT, 3, 40};
        struct matrix b = make_rows(lengths, 4, cols, 31, cols - 31, 8);
        int64_t two[] = {2, 4, 3, 2};
        struct matrix a = make_rows(two, 4, 4, 0, 4, 9);
        check(&a, &b, "several windows");
        free_matrix(&a);
        free_matrix(&b);
    }
}

/* A dense row of A, a dense column of A, a dense row of B. */
static void test_dense(void **state)
{
    (void)state;
    const int64_t n = 2 * LONGEST + 77;
    int64_t *const lengths = support_zeros(n, 8);
    for (int64_t i = 0; i < n; i++)
        lengths[i] = i == 7 ? n : i % 4;
    struct matrix a = make_rows(lengths, n, n, 0, n, 21);
    for (int64_t i = 0; i < n; i++)
        lengths[i] = 1 + i % 5;
    struct matrix b = make_rows(lengths, n, n, 0, n, 22);
    check(&a, &b, "a dense row of A");
    free_matrix(&b);

    /* few columns: each sum has many products */
    for (int64_t i = 0; i < n; i++)
        lengths[i] = 1 + i % 2;
    b = make_rows(lengths, n, 9, 0, 9, 23);
    check(&a, &b, "a dense row of A, few columns");
    free_matrix(&b);
    free_matrix(&a);

    /* a short row of A times very long rows of B: many products; then a dense column */
    const int64_t cols = 40 * LONGEST;
    int64_t b_lengths[] = {cols, 5, 0, cols / 2, 1};
    b = make_rows(b_lengths, 5, cols, 0, cols, 24);
    int64_t a_lengths[] = {2, 5, 1, 0, 3};
    a = make_rows(a_lengths, 5, 5, 0, 5, 25);
    check_as(&a, &b, SPMV_F64, false, false, 32, 64, "dense rows of B");
    check_as(&a, &b, SPMV_C64, false, true, 64, 32, "dense rows of B");
    free_matrix(&a);
    free_matrix(&b);

    /* filters of several windows of 32 words */
    const int64_t wide = 2 * 32 * 32 * 32 + 100;
    int64_t *const ones = support_zeros(wide, 8);
    for (int64_t i = 0; i < wide; i++)
        ones[i] = i % 7 == 0;
    a = make_rows(&wide, 1, wide, 0, wide, 28);
    b = make_rows(ones, wide, 9 * FRAGMENT, 0, 9 * FRAGMENT, 29);
    check_as(&a, &b, SPMV_F64, false, false, 32, 32, "a very long row of A");
    free_matrix(&a);
    free_matrix(&b);
    free(ones);

    for (int64_t i = 0; i < n; i++)
        lengths[i] = 1;
    a = make_rows(lengths, n, 3, 0, 1, 26);
    int64_t some[] = {FRAGMENT / 2, 3, 4};
    b = make_rows(some, 3, 4 * FRAGMENT, 0, 4 * FRAGMENT, 27);
    check_as(&a, &b, SPMV_F64, false, false, 64, 64, "a dense column of A");
    free_matrix(&a);
    free_matrix(&b);
    free(lengths);
}

/* A band, as from finite elements: all rows of C overlap. */
static void test_band(void **state)
{
    (void)state;
    enum { ROWS = 150, HALF = 20 };
    struct matrix m = {.rows = ROWS,
                       .cols = ROWS,
                       .row_ptr = support_zeros(ROWS + 1, sizeof *m.row_ptr),
                       .col = support_zeros(ROWS * (2 * HALF + 1), sizeof *m.col),
                       .val = support_zeros(ROWS * (2 * HALF + 1), sizeof *m.val)};
    uint64_t random = 3;
    for (int64_t i = 0; i < ROWS; i++) {
        for (int64_t c = max_i64(0, i - HALF); c <= min_i64(ROWS - 1, i + HALF); c++) {
            m.col[m.nnz] = (int32_t)c;
            m.val[m.nnz++] = support_uniform(&random);
        }
        m.row_ptr[i + 1] = m.nnz;
    }
    check(&m, &m, "a band");
    free_matrix(&m);
}

static void test_brief(void **state)
{
    test_limits(state);
    test_band(state);
    test_empty(state);
}

/* The products of rows that begin and end anywhere in a block's part of the entries: a row of several
 * blocks, many short ones, and more empty ones than a block has threads. */
static void test_survey(void **state)
{
    (void)state;
    enum { ROWS = 11000, INNER = 10000, LONG_ROW = 1500 };
    int64_t *const lengths = support_zeros(ROWS, 8);
    uint64_t seed = 7;
    for (int i = LONG_ROW; i < 9000; i++)
        lengths[i] = i == LONG_ROW ? 9000 : (int64_t)(support_random(&seed) % (i < 4500 ? 4 : i < 8800 ? 1 : 800));
    struct matrix a = make_rows(lengths, ROWS, INNER, 0, INNER, 3), b = make_random(INNER, 50, 0, 4, 4);
    for (int bits = 32; bits <= 64; bits += 32) {
        struct uploaded ua = upload(&a, bits, SPMV_F64, NULL), ub = upload(&b, 96 - bits, SPMV_F64, NULL);
        struct spmv_spgemm_plan plan = {.ctx = ctx, .a = ua.view, .b = ub.view, .type = SPMV_F64};
        bool valid = false;
        assert_ok(ctx, spgemm_survey_cuda(&plan, &valid));
        assert_true(valid);
        check_survey(&plan, &a, &b);
        spmv_free(ctx, plan.row_ptr);
        release(&ua);
        release(&ub);
    }
    free(lengths);
    free_matrix(&a);
    free_matrix(&b);
}

#ifdef HOST_CUDA
/* Each allocation fails in turn; nothing leaks. */
static void test_memory(void **state)
{
    (void)state;
    struct matrix a = make_random(30, 3 * LONGEST, 0, 3 * LONGEST, 1);
    struct matrix b = make_random(3 * LONGEST, 900, 0, 4, 2);
    struct uploaded ua = upload(&a, 64, SPMV_F64, a.val), ub = upload(&b, 64, SPMV_F64, b.val);
    struct spmv_spgemm_plan plan = {.ctx = ctx, .a = ua.view, .b = ub.view, .type = SPMV_F64};
    const size_t most = host_cuda.most_bytes;
    bool valid = false;
    assert_ok(ctx, spgemm_survey_cuda(&plan, &valid)); /* the context keeps its working memory */
    const int64_t before = host_cuda.allocations - 1;  /* without row_ptr */
    plan.max_bytes = 100;
    assert_fails(ctx, spgemm_rows_symbolic_cuda(&plan), SPMV_ERROR_MEMORY, "bytes");
    assert_int_equal(host_cuda.allocations, before);
    plan.max_bytes = 0;
    int failures = 0;
    for (size_t bytes = 64;; bytes += bytes / 3) {
        host_cuda.most_bytes = bytes;
        spmv_status st = spgemm_survey_cuda(&plan, &valid);
        if (st == SPMV_OK)
            st = spgemm_rows_symbolic_cuda(&plan);
        host_cuda.most_bytes = most;
        if (st == SPMV_OK)
            break;
        assert_int_equal(st, SPMV_ERROR_MEMORY);
        assert_int_equal(host_cuda.allocations, before);
        assert_null(plan.state);
        assert_null(plan.row_ptr);
        failures++;
    }
    assert_true(failures > 3);

    /* the numeric phase only queues work */
    const int64_t held = host_cuda.allocations;
    void *values = NULL;
    assert_ok(ctx, spmv_alloc(ctx, plan.nnz * 8, &values));
    host_cuda.capturing = 1;
    const spmv_status st = spgemm_rows_numeric_cuda(&plan, ua.val, ub.val, values);
    host_cuda.capturing = 0;
    assert_int_equal(st, SPMV_OK);
    assert_int_equal(host_cuda.capture_broken, 0);
    spmv_free(ctx, values);
    assert_int_equal(host_cuda.allocations, held);
    release_plan(&plan);
    assert_int_equal(host_cuda.allocations, before);
    release(&ua);
    release(&ub);
    free_matrix(&a);
    free_matrix(&b);
}
#else
static void test_memory(void **state)
{
    (void)state;
    skip(); /* the host counts allocations */
}
#endif

static int open_context(void **state)
{
    (void)state;
    ctx = support_context();
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    spmv_context_destroy(ctx);
    return 0;
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    const struct CMUnitTest brief[] = {cmocka_unit_test(test_brief)};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_empty),
                                       cmocka_unit_test(test_limits), cmocka_unit_test(test_windows),
                                       cmocka_unit_test(test_dense),  cmocka_unit_test(test_band),
                                       cmocka_unit_test(test_survey), cmocka_unit_test(test_memory)};
    return support_brief(argc, argv) ? cmocka_run_group_tests(brief, open_context, close_context)
                                     : cmocka_run_group_tests(tests, open_context, close_context);
}
