/* The method "fused" of the backend cuda, on matrices that test the cut into equal tiles of
 * nonzeros:
 *
 *   - rows that end with a tile, just before its end and just after
 *   - rows over so many tiles that threads, warps and blocks add their parts
 *   - empty rows at the borders of tiles, and long sequences of them; minimal matrices
 *
 * Runs on a GPU and, with smaller tiles, on the host emulation of CUDA. The plan reports the size
 * of its tiles.
 *
 * Where results are compared with expected ones, values are small integers, so every order of
 * summation gives the same. Where results are compared with each other, values are not integers.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "product/plan_internal.h"
#include "tests/support/support_one_context.h"

/* Constants of the kernel that adds carries: FEW parts are added by one thread; ADD threads per
 * block. */
enum { FEW = 4, WARP = 32 };
#ifdef HOST_CUDA
enum { ADD = 64 };
#else
enum { ADD = 1024 };
#endif

/* Vectors and values are given as pairs of real and imaginary part. */
struct types {
    spmv_type vectors, values;
};
static const struct types all_types[] = {
    {SPMV_F64, SPMV_F64}, {SPMV_F32, SPMV_F32}, {SPMV_F64, SPMV_F32}, {SPMV_C64, SPMV_C64}, {SPMV_C128, SPMV_C128}};
enum { TYPES = sizeof all_types / sizeof all_types[0] };

static bool is_single(spmv_type type)
{
    return type == SPMV_F32 || type == SPMV_C64;
}

static int parts_of(spmv_type type)
{
    return type == SPMV_C64 || type == SPMV_C128 ? 2 : 1;
}

/* n pairs as elements of the type, which the caller frees. */
static void *in_type(spmv_type type, const double *pairs, int64_t n)
{
    const int parts = parts_of(type);
    void *const copy = support_zeros(2 * n, sizeof *pairs);
    for (int64_t i = 0; i < n; i++)
        for (int p = 0; p < parts; p++)
            if (is_single(type))
                ((float *)copy)[i * parts + p] = (float)pairs[2 * i + p];
            else
                ((double *)copy)[i * parts + p] = pairs[2 * i + p];
    return copy;
}

static double part_at(spmv_type type, const void *elements, int64_t at)
{
    return is_single(type) ? (double)((const float *)elements)[at] : ((const double *)elements)[at];
}

/* n pairs of integers from -4 to 4, or of reals uniform in [-1, 1). */
static double *draw(int64_t n, uint64_t seed, bool whole)
{
    double *const pairs = support_zeros(2 * n, sizeof *pairs);
    for (int64_t i = 0; i < 2 * n; i++)
        pairs[i] = whole ? (double)((int)(support_random(&seed) >> 40) % 9 - 4) : support_uniform(&seed);
    return pairs;
}

struct matrix {
    int64_t rows, cols, nnz;
    int64_t *row_ptr;
    int32_t *col;
    double *val; /* pairs; NULL: a pattern */
};

static struct matrix make_matrix(const int64_t *lengths, int64_t rows, bool pattern, bool whole)
{
    uint64_t random = (uint64_t)rows;
    struct matrix m = {.rows = rows, .cols = 300, .row_ptr = support_zeros(rows + 1, sizeof *m.row_ptr)};
    for (int64_t i = 0; i < rows; i++)
        m.row_ptr[i + 1] = m.row_ptr[i] + lengths[i];
    m.nnz = m.row_ptr[rows];
    m.col = support_zeros(m.nnz, sizeof *m.col);
    for (int64_t k = 0; k < m.nnz; k++)
        m.col[k] = (int32_t)(support_random(&random) % (uint64_t)m.cols);
    m.val = pattern ? NULL : draw(m.nnz, 77, whole);
    return m;
}

static void free_matrix(struct matrix *m)
{
    support_free(m->row_ptr, m->col, m->val);
}

static spmv_plan *make_plan(const struct matrix *m, struct types types)
{
    void *const val = m->val != NULL ? in_type(types.values, m->val, m->nnz) : NULL;
    const spmv_csr a = support_view(m->rows, m->cols, m->nnz, m->row_ptr, m->col, val, types.values);
    spmv_plan_options options = support_plan_options();
    options.method = "fused";
    options.type = types.vectors;
    spmv_plan *plan = NULL;
    assert_ok(ctx, spmv_plan_create(ctx, &a, &options, &plan));
    free(val);
    return plan;
}

/* Gives the plan 64-bit offsets, which plans normally have only for 2^31 nonzeros and more. Free
 * the result after the plan. */
static void *widen(const struct matrix *m, spmv_plan *plan)
{
    void *const wide = support_upload(ctx, m->row_ptr, (m->rows + 1) * 8);
    plan_release_state(plan);
    plan->a.row_ptr = wide;
    plan->a.row_ptr_bits = 64;
    assert_ok(ctx, method_prepare(plan));
    return wide;
}

static const double alpha[] = {2, -1}, beta[] = {-3, 1};

/* Adds (a + bi) (c + di) to the sum; real types use the real parts only. */
static void add_product(int parts, const double *a, const double *b, double *sum)
{
    sum[0] += a[0] * b[0] - (parts == 2 ? a[1] * b[1] : 0);
    sum[1] += parts == 2 ? a[0] * b[1] + a[1] * b[0] : 0;
}

/* The product by definition, exact for integers. */
static double *expected_of(const struct matrix *m, spmv_type type, bool scaled, const double *x, const double *y0)
{
    static const double one[] = {1, 0};
    const int parts = parts_of(type);
    double *const y = support_zeros(2 * m->rows, sizeof *y);
    for (int64_t i = 0; i < m->rows; i++) {
        double sum[2] = {0, 0};
        for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
            add_product(parts, m->val != NULL ? m->val + 2 * k : one, x + 2 * (int64_t)m->col[k], sum);
        add_product(parts, scaled ? alpha : one, sum, y + 2 * i);
        if (scaled)
            add_product(parts, beta, y0 + 2 * i, y + 2 * i);
    }
    return y;
}

/* A copy of y as stored after `times` products, which the caller frees. */
static void *multiply(spmv_plan *plan, const struct matrix *m, struct types types, bool scaled, const double *x,
                      const double *y0, int times)
{
    const int64_t size = (int64_t)spmv_type_size(types.vectors);
    void *const host_x = in_type(types.vectors, x, m->cols), *const host_y = in_type(types.vectors, y0, m->rows);
    void *const by = in_type(types.vectors, alpha, 1), *const plus = in_type(types.vectors, beta, 1);
    void *const device_x = support_upload(ctx, host_x, m->cols * size);
    void *const device_y = support_upload(ctx, host_y, m->rows * size);
    for (int i = 0; i < times; i++)
        assert_ok(ctx, spmv_apply(plan, scaled ? by : NULL, device_x, scaled ? plus : NULL, device_y));
    assert_ok(ctx, spmv_download(ctx, device_y, host_y, m->rows * size));
    support_free_in(ctx, device_x, device_y);
    support_free(host_x, by, plus);
    return host_y;
}

static void check_matrix(const char *name, const struct matrix *m, struct types types, bool scaled, bool wide)
{
    const int parts = parts_of(types.vectors);
    double *const x = draw(m->cols, 3, true), *const y0 = draw(m->rows, 4, true);
    double *const expected = expected_of(m, types.vectors, scaled, x, y0);
    for (int64_t i = 0; !scaled && i < 2 * m->rows; i++)
        y0[i] = NAN;
    spmv_plan *const plan = make_plan(m, types);
    void *const offsets = wide ? widen(m, plan) : NULL;
    void *const y = multiply(plan, m, types, scaled, x, y0, 1);
    for (int64_t i = 0; i < m->rows; i++)
        for (int p = 0; p < parts; p++)
            if (part_at(types.vectors, y, i * parts + p) != expected[2 * i + p])
                fail_msg("%s, %s%s%s%s: row %lld of %lld (%lld entries) is %g, not %g (part %d)", name,
                         spmv_type_name(types.vectors), m->val == NULL ? ", pattern" : "", scaled ? ", scaled" : "",
                         wide ? ", wide" : "", (long long)i, (long long)m->rows,
                         (long long)(m->row_ptr[i + 1] - m->row_ptr[i]), part_at(types.vectors, y, i * parts + p),
                         expected[2 * i + p], p);
    spmv_plan_destroy(plan);
    spmv_free(ctx, offsets);
    support_free(y, expected, x, y0);
}

/* With and without values, scaled and not, with both widths of offsets. */
static void check_lengths(const char *name, const int64_t *lengths, int64_t rows, struct types types)
{
    for (int pattern = 0; pattern < 2; pattern++) {
        struct matrix m = make_matrix(lengths, rows, pattern, true);
        check_matrix(name, &m, types, false, pattern);
        check_matrix(name, &m, types, true, !pattern);
        free_matrix(&m);
    }
}

static void read_layout(const spmv_plan *plan, long long *tiles, long long *capacity, long long *spanning,
                        long long *empty)
{
    spmv_plan_info info;
    assert_ok(ctx, spmv_plan_describe(plan, &info, sizeof info));
    const char *const in = strstr(info.layout, " in ");
    assert_non_null(in);
    if (sscanf(in, " in %lld equal tile%*[s ]of %lld nonzeros; %lld row%*[s ]in more than one tile, %lld empty", tiles,
               capacity, spanning, empty) != 4)
        fail_msg("%s", info.layout);
}

static int64_t capacity_of(struct types types)
{
    const int64_t length = 1;
    long long tiles, capacity, spanning, empty;
    struct matrix m = make_matrix(&length, 1, false, true);
    spmv_plan *const plan = make_plan(&m, types);
    read_layout(plan, &tiles, &capacity, &spanning, &empty);
    assert_true(tiles == 1 && spanning == 0 && empty == 0 && capacity >= WARP);
    spmv_plan_destroy(plan);
    free_matrix(&m);
    return capacity;
}

/* A test for one type; capacity: nonzeros of a tile. */
typedef void family_fn(struct types types, int64_t capacity);

static void for_all_types(void **state)
{
    family_fn *const family = *(family_fn **)*state;
    for (int t = 0; t < TYPES; t++)
        family(all_types[t], capacity_of(all_types[t]));
}
#define with_all_types(family)                                                                                         \
    {                                                                                                                  \
#family, for_all_types, NULL, NULL, &(family_fn *)                                                             \
        {                                                                                                              \
            family                                                                                                     \
        }                                                                                                              \
    }

/* ------------------------------------------------------------------- families */

static void rows_around_tiles(struct types types, int64_t c)
{
    const int64_t whole[] = {c, c, 2 * c, 1, c - 1, c, 3 * c};
    check_lengths("rows end with tiles", whole, 7, types);
    const int64_t beside[] = {c - 1, 1, 1, c + 1, c - 2, c + 1, 2 * c - 1, 2, c, c, 2 * c + 1, 5, c / 2};
    check_lengths("rows end beside tiles' ends", beside, 13, types);
    const int64_t behind[] = {c + 1, c - 1, c - 1, 2, c - 1, 3 * c, 1};
    check_lengths("rows begin beside tiles' ends", behind, 7, types);
}

static void empty_rows_at_borders(struct types types, int64_t c)
{
    const int64_t lengths[] = {0, 0, c, 0, 0,     0, c / 2, c / 2, 0,         c - 1, 0,     1, 0,
                               0, c, 0, c, 2 * c, 0, 3,     0,     2 * c - 3, 0,     c + 1, 0, 0};
    enum { ROWS = sizeof lengths / sizeof lengths[0] };
    check_lengths("empty rows at borders", lengths, ROWS, types);
    check_lengths("empty rows at borders, none first", lengths + 2, ROWS - 4, types);
}

/* Rows over so many tiles that they leave n open parts, for each way to add parts, at all places in
 * a block. */
static void rows_over_many_tiles(struct types types, int64_t c)
{
    static const int64_t parts[] = {1,       2,       FEW - 1, FEW,     FEW + 1, WARP - 1, WARP,       WARP + 1,
                                    ADD / 2, ADD - 1, ADD,     ADD + 1, ADD - 1, ADD,      2 * ADD + 3};
    enum { COUNT = sizeof parts / sizeof parts[0] };
    int64_t lengths[2 * COUNT];
    for (int r = 0; r < COUNT; r++) {
        lengths[2 * r] = 1 + r % 2;
        lengths[2 * r + 1] = parts[r] * c;
    }
    check_lengths("rows over many tiles", lengths, brief ? 22 : 2 * COUNT, types);
}

/* More tiles than the kernel of carries has threads in a block; a row crosses each border. */
static void rows_over_every_border(struct types types, int64_t c)
{
    const int64_t rows = ADD + 70;
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = c;
    lengths[0] = c / 2;
    check_lengths("rows over every border", lengths, rows, types);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = c * (FEW + 1 + i % 3) / (FEW - 1) - i % 2;
    check_lengths("rows over most borders", lengths, rows / 3, types);
    free(lengths);
}

static void one_row(struct types types, int64_t c)
{
    const int64_t alone[] = {1, 2, c - 1, c, c + 1, 2 * c, (ADD + 5) * c + 7};
    for (size_t k = 0; k < sizeof alone / sizeof alone[0]; k++)
        check_lengths("one row", &alone[k], 1, types);
    const int64_t rows = 9 * c;
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int place = 0; place < 3; place++) { /* first, within, last */
        const int64_t row = place == 0 ? 0 : place == 1 ? rows / 2 : rows - 1;
        lengths[row] = 1;
        check_lengths("one nonzero", lengths, rows, types);
        lengths[row] = FEW * c + 2;
        check_lengths("one row among empty ones", lengths, rows, types);
        lengths[row] = 0;
    }
    check_lengths("no nonzero", lengths, rows, types);
    check_lengths("one empty row", lengths, 1, types);
    free(lengths);
}

/* Empty rows: around the number that a block searches at once, and many times that. */
static void many_empty_rows(struct types types, int64_t c)
{
    const int64_t some = 3 * c / 2, most = (brief ? 1 : 30) * c;
    const int64_t tails[] = {1, 4 * c - some - 1, 4 * c - some, 4 * c - some + 1, most};
    int64_t *const lengths = support_zeros(some + most, sizeof *lengths);
    for (int64_t i = 0; i < some; i++)
        lengths[i] = i % 3;
    for (size_t k = 0; k < sizeof tails / sizeof tails[0]; k++)
        if (tails[k] <= most)
            check_lengths("empty tail", lengths, some + tails[k], types);
    memset(lengths, 0, (size_t)some * sizeof *lengths);
    for (int64_t i = 0; i < some; i++)
        lengths[most + i] = i % 5;
    check_lengths("empty head", lengths, some + most, types);
    for (int64_t i = 0; i < some + most; i++)
        lengths[i] = i % 20 == 7 ? 1 + i % 9 : 0;
    check_lengths("95 % empty", lengths, some + most, types);
    free(lengths);
}

static void short_rows(struct types types, int64_t c)
{
    const int64_t rows = 3 * c + 1;
    int64_t *const lengths = support_zeros(rows, sizeof *lengths);
    for (int form = 0; form < 4; form++) {
        for (int64_t i = 0; i < rows; i++)
            lengths[i] = form == 0 ? 1 : form == 1 ? i % 2 : form == 2 ? 1 + i % 13 : i % 7 == 6 ? 40 + i % 90 : 3;
        check_lengths("short rows", lengths, rows, types);
    }
    free(lengths);
}

/* --------------------------------------------------------- bits, and the layout */

/* The same bits from consecutive products, with 64-bit offsets, and with empty rows inserted. */
static void bits(struct types types, int64_t c)
{
    const int64_t rows = 90, size = (int64_t)spmv_type_size(types.vectors);
    int64_t *const lengths = support_zeros(3 * rows, sizeof *lengths), *const sparse =
                                                                           support_zeros(3 * rows, sizeof *sparse);
    for (int64_t i = 0; i < rows; i++)
        lengths[i] = sparse[3 * i + 1] = 1 + i * 37 % (c / 4);
    lengths[rows / 3] = sparse[rows + 1] = (ADD + 3) * c + 5;
    lengths[rows / 2] = sparse[3 * (rows / 2) + 1] = (WARP + 3) * c - 5;
    struct matrix m = make_matrix(lengths, rows, false, false),
                  with_empty = make_matrix(sparse, 3 * rows, false, false);
    memcpy(with_empty.col, m.col, (size_t)m.nnz * sizeof *m.col);
    double *const x = draw(m.cols, 3, false), *const y0 = draw(3 * rows, 4, false);
    spmv_plan *const plan = make_plan(&m, types);
    char *const first = multiply(plan, &m, types, false, x, y0, 1);
    char *const again = multiply(plan, &m, types, false, x, y0, 10);
    assert_memory_equal(first, again, (size_t)(rows * size));
    for (int64_t i = 0; i < rows * parts_of(types.vectors); i++)
        assert_true(isfinite(part_at(types.vectors, first, i)) && part_at(types.vectors, first, i) != 0);
    void *const wide = widen(&m, plan);
    char *const from_wide = multiply(plan, &m, types, false, x, y0, 1);
    assert_memory_equal(first, from_wide, (size_t)(rows * size));
    spmv_plan *const sparse_plan = make_plan(&with_empty, types);
    char *const between = multiply(sparse_plan, &with_empty, types, false, x, y0, 1);
    for (int64_t i = 0; i < rows; i++)
        assert_memory_equal(first + i * size, between + (3 * i + 1) * size, (size_t)size);
    spmv_plan_destroy(plan);
    spmv_plan_destroy(sparse_plan);
    spmv_free(ctx, wide);
    support_free(first, again, from_wide, between, x, y0);
    free_matrix(&m);
    free_matrix(&with_empty);
    support_free(lengths, sparse);
}

/* The plan reports the expected numbers of tiles, rows in several tiles, and empty rows. */
static void layout(struct types types, int64_t c)
{
    const int64_t lengths[] = {0, 3, c - 3, c, 0, 1, c, 4 * c, 2, 0, 0, c - 3, 5, c - 5, c + 6};
    enum { ROWS = sizeof lengths / sizeof lengths[0] };
    struct matrix m = make_matrix(lengths, ROWS, false, true);
    spmv_plan *const plan = make_plan(&m, types);
    long long tiles, capacity, spanning, empty;
    int64_t expected = 0;
    for (int64_t i = 0; i < ROWS; i++)
        expected += lengths[i] > 0 && m.row_ptr[i] / c != (m.row_ptr[i + 1] - 1) / c;
    read_layout(plan, &tiles, &capacity, &spanning, &empty);
    assert_int_equal(expected, 3);
    assert_int_equal(tiles, (m.nnz + c - 1) / c);
    assert_int_equal(capacity, c);
    assert_int_equal(spanning, expected);
    assert_int_equal(empty, 4);
    spmv_plan_destroy(plan);
    free_matrix(&m);
}

ONE_CONTEXT_MAIN(with_all_types(rows_around_tiles), with_all_types(empty_rows_at_borders),
                 with_all_types(rows_over_many_tiles), with_all_types(rows_over_every_border), with_all_types(one_row),
                 with_all_types(many_empty_rows), with_all_types(short_rows), with_all_types(bits),
                 with_all_types(layout))
