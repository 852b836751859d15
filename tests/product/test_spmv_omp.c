/* The optimizations of the method "tiles" of the omp backend. Checks that it finds all structure of
 * a matrix, also at tile borders, and that no optimization changes a bit: stretches of rows, row
 * order, 16-bit columns, vectors, prefetches, non-temporal stores, any number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "tests/support/support.h"

#include "core/loops/host_tiles.h"
#include "product/omp/spmv_omp_variants.h"

/* Columns: each row is the one before shifted by one; equal rows in blocks; a run of neighbours in
 * each row; SHIFTED with some shorter rows; random; shifted by two, which forms no stretch. */
enum shape { SHIFTED, BLOCKS, RUNS, MIXED, RANDOM, STEPS, SHAPES };

struct matrix {
    spmv_csr a;
    int32_t *row_ptr, *col;
    double *val;
    float *val32;
};

static void release(struct matrix *m)
{
    support_free(m->row_ptr, m->col, m->val, m->val32);
}

/* A matrix with these row lengths and with values; the caller fills in the columns. */
static struct matrix empty_matrix(int64_t rows, int64_t cols, const int64_t *length)
{
    struct matrix m = {.row_ptr = support_zeros(rows + 1, sizeof *m.row_ptr)};
    uint64_t seed = 17;
    for (int64_t i = 0; i < rows; i++)
        m.row_ptr[i + 1] = m.row_ptr[i] + (int32_t)length[i];
    const int64_t nnz = m.row_ptr[rows];
    m.col = support_zeros(nnz, sizeof *m.col);
    m.val = support_zeros(nnz, sizeof *m.val);
    m.val32 = support_zeros(nnz, sizeof *m.val32);
    for (int64_t k = 0; k < nnz; k++) {
        m.val[k] = support_uniform(&seed);
        m.val32[k] = (float)m.val[k];
    }
    m.a = support_csr(rows, cols, m.row_ptr, m.col, m.val);
    m.a.memory = SPMV_MEMORY_CONTEXT;
    return m;
}

/* Rows of at most n entries; every 50th row of MIXED has one less. Columns are below cols. */
static struct matrix shaped(enum shape shape, int64_t rows, int64_t cols, int64_t n, int64_t block)
{
    int64_t *length = support_zeros(rows, sizeof *length);
    uint64_t seed = 3;
    for (int64_t i = 0; i < rows; i++)
        length[i] = shape == MIXED && i % 50 == 7 && n > 0 ? n - 1 : n;
    struct matrix m = empty_matrix(rows, cols, length);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < length[i]; j++) {
            const int64_t at = shape == BLOCKS  ? i / block * 5 + j * j % 50 + j
                               : shape == RUNS  ? i + j
                               : shape == STEPS ? 2 * i + 3 * j
                                                : i + 3 * j + (j > 2);
            m.col[m.row_ptr[i] + j] =
                (int32_t)((shape == RANDOM ? (int64_t)(support_random(&seed) % (1u << 30)) : at) % cols);
        }
    free(length);
    return m;
}

/* ------------------------------------------------------------------ one product, all variants */

struct way {
    int compression;
    int threads;
    bool plain;    /* baseline vector instructions only, AVX2 for lanes */
    int stream;    /* -1: as the plan decides */
    bool unsorted; /* rows in matrix order */
};

static const struct way ways[] = {{0, 1, true, 0, true},   {0, 4, false, 0, false}, {-1, 1, false, -1, false},
                                  {-1, 2, true, 1, false}, {1, 1, true, 0, false},  {1, 1, false, 1, false},
                                  {1, 2, false, 0, false}, {1, 3, false, 1, false}, {1, 4, true, 1, false},
                                  {1, 5, false, 0, false}, {1, 6, false, 1, false}, {1, 7, false, -1, false},
                                  {1, 8, false, 0, false}, {0, 8, false, 1, false}, {-1, 12, false, -1, false},
                                  {1, 16, true, 1, false}, {-1, 1, true, 0, false}, {-1, 3, false, 1, false}};
enum { WAYS = sizeof ways / sizeof ways[0] };

static spmv_plan *plan_of(spmv_context *ctx, const spmv_csr *a, int compression)
{
    spmv_plan_options options = support_plan_options();
    options.compression = compression;
    options.method = "tiles";
    if (a->val == NULL)
        options.type = a->type;
    spmv_plan *plan = NULL;
    assert_ok(ctx, spmv_plan_create(ctx, a, &options, &plan));
    return plan;
}

/* y = alpha A x + beta y0 in one variant; the caller frees *y. */
static void *product(const spmv_csr *a, struct way way, const void *x, const void *y0, double alpha, double beta)
{
    spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, way.threads);
    spmv_plan *plan = plan_of(ctx, a, way.compression);
    struct omp_tiles *tiles = plan->state;
    tiles->threads = way.threads; /* in small matrices too */
    if (way.plain)
        tiles->avx2 = tiles->lanes.avx512 = false;
    if (way.stream >= 0)
        tiles->stream = way.stream != 0;
    if (way.unsorted)
        for (int64_t s = 0; s < tiles->tile[tiles->count].stretch; s++)
            if (tiles->stretch[s].kind == STRETCH_SORTED)
                tiles->stretch[s].kind = STRETCH_PLAIN;
    const size_t bytes = (size_t)a->rows * spmv_type_size(a->type);
    void *y = support_zeros((int64_t)bytes, 1);
    memcpy(y, y0, bytes);
    const float alpha32 = (float)alpha, beta32 = (float)beta;
    const bool f32 = a->type == SPMV_F32;
    /* A run must leave nothing in the plan that affects the next. */
    for (int run = 0; run < 2; run++) {
        memcpy(y, y0, bytes);
        assert_ok(ctx, spmv_apply(plan, f32 ? (const void *)&alpha32 : (const void *)&alpha, x,
                                  f32 ? (const void *)&beta32 : (const void *)&beta, y));
    }
    spmv_plan_destroy(plan);
    spmv_context_destroy(ctx);
    return y;
}

/* Half of the variants, in turns, against the first, bit by bit, and the first against the
 * definition. */
static void check_ways(const spmv_csr *a, double alpha, double beta)
{
    const bool f32 = a->type == SPMV_F32;
    const size_t size = spmv_type_size(a->type);
    uint64_t seed = 29;
    void *x = support_zeros(a->cols, size), *y0 = support_zeros(a->rows, size);
    for (int64_t i = 0; i < a->cols; i++) {
        const double v = support_uniform(&seed);
        f32 ? (void)(((float *)x)[i] = (float)v) : (void)(((double *)x)[i] = v);
    }
    for (int64_t i = 0; i < a->rows; i++) {
        const double v = beta == 0 ? NAN : support_uniform(&seed); /* must not be read */
        f32 ? (void)(((float *)y0)[i] = (float)v) : (void)(((double *)y0)[i] = v);
    }
    void *first = product(a, ways[0], x, y0, alpha, beta);
    spmv_context *ref = support_context_on(SPMV_BACKEND_REF, 1);
    spmv_csr host = *a;
    host.memory = SPMV_MEMORY_HOST;
    const float alpha32 = (float)alpha, beta32 = (float)beta;
    spmv_verify_result result;
    assert_ok(ref, spmv_verify(ref, &host, SPMV_OPERATION_N, f32 ? (const void *)&alpha32 : (const void *)&alpha, x,
                               beta == 0 ? NULL
                               : f32     ? (const void *)&beta32
                                         : (const void *)&beta,
                               beta == 0 ? NULL : y0, first, a->type, &result, sizeof result));
    spmv_context_destroy(ref);
    static int turn = 1;
    turn = 3 - turn;
    for (int w = turn; w < WAYS; w += 2) {
        void *y = product(a, ways[w], x, y0, alpha, beta);
        for (int64_t i = 0; i < a->rows; i++)
            if (memcmp((char *)first + (size_t)i * size, (char *)y + (size_t)i * size, size) != 0)
                fail_msg("way %d: other bits in row %lld of %lld", w, (long long)i, (long long)a->rows);
        free(y);
    }
    support_free(first, x, y0);
}

/* In both types, with values and as a pattern, scaled and not. Releases the matrix. */
static void check_all(struct matrix *m)
{
    for (int variant = 0; variant < 4; variant++) {
        spmv_csr a = m->a;
        a.type = variant % 2 == 0 ? SPMV_F64 : SPMV_F32;
        a.val = variant >= 2 ? NULL : variant == 0 ? (const void *)m->val : (const void *)m->val32;
        check_ways(&a, variant == 0 ? 1 : -0.75, 0);
        check_ways(&a, 0.5, -3);
    }
    release(m);
}

/* ----------------------------------------------------------------------------- tests */

/* Row lengths around the vector and unrolling widths, and long rows, in every shape. */
static void lengths_and_shapes(void **state)
{
    (void)state;
    static const int64_t lengths[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 15,
                                      16, 17, 24, 31, 32, 33, 39, 40, 41, 81, 300};
    for (int shape = 0; shape < SHAPES; shape++)
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            const int64_t n = lengths[i], rows = n < 10 ? 3500 : 20000 / n;
            struct matrix m = shaped((enum shape)shape, rows, 20000, n, 2 + (int64_t)i % 5);
            spmv_csr a = m.a;
            check_ways(&a, 1, 0);
            a.val = NULL;
            a.type = SPMV_F32;
            check_ways(&a, 2, 1);
            release(&m);
        }
}

/* Counts the stretches that are not plain, and the rows in them, by kind. */
static void count_stretches(const spmv_plan *plan, int64_t *shifted, int64_t *same, int64_t *run)
{
    const struct omp_tiles *tiles = plan->state;
    /* In these shapes all rows follow from the one before, or none does. */
    *shifted = *same = *run = 0;
    assert_int_equal(tiles->tile[tiles->count].code, 0);
    for (int64_t s = 0; s < tiles->tile[tiles->count].stretch; s++) {
        const int kind = tiles->stretch[s].kind;
        *shifted += (kind & STRETCH_SHIFTED) != 0;
        *same += (kind & STRETCH_REGULAR) != 0 && (kind & STRETCH_SHIFTED) == 0;
        *run += (kind & STRETCH_CONSECUTIVE) != 0;
    }
}

/* All structure is found: one stretch for each tile in regular rows, one for each block, none among
 * random columns. A plan without compression stores none. */
static void what_is_seen(void **state)
{
    spmv_context *ctx = *state;
    for (int shape = 0; shape < STEPS; shape++)
        for (int compression = -1; compression <= 1; compression++) {
            /* x is not far; a block of 3 rows leaves 200 columns unread */
            struct matrix m = shaped((enum shape)shape, 6000, 100000, shape == BLOCKS ? 100 : 12, 3);
            if (compression < 0)
                m.a.val = NULL; /* no lanes */
            spmv_plan *plan = plan_of(ctx, &m.a, compression);
            const struct omp_tiles *tiles = plan->state;
            int64_t shifted, same, run;
            count_stretches(plan, &shifted, &same, &run);
            const int64_t columns = tiles->tile[tiles->count].col;
            spmv_plan_info info;
            assert_ok(ctx, spmv_plan_describe(plan, &info, sizeof info));
            assert_int_equal(strstr(info.why, "derived from the previous row") != NULL,
                             compression != 0 && shape != RANDOM);
            if (compression == 0 || shape == RANDOM) {
                assert_int_equal(shifted + same + run + columns, 0);
            } else if (shape == SHIFTED || shape == RUNS) {
                assert_int_equal(shifted, tiles->count - 1); /* the last one is short */
                assert_int_equal(run, shape == RUNS ? tiles->count - 1 : 0);
                /* Each tile stores one whole row and two parts of rows. */
                assert_true(columns > 0 && columns < 3 * 12 * tiles->count);
            } else if (shape == BLOCKS) {
                assert_true(same >= 2000 - 2 * tiles->count && same <= 2000);
                assert_true(columns < m.a.nnz / 2);
            } else {
                assert_true(shifted >= 6000 / 50 && shifted <= 6000 / 50 + tiles->count);
            }
            spmv_plan_destroy(plan);
            release(&m);
        }
}

/* Columns fit in 16 bits if those of the tile span at most 65536 values. Without a base and with
 * one. */
static void border_of_16_bits(void **state)
{
    spmv_context *ctx = *state;
    for (int base = 0; base < 2; base++)
        for (int wide = 0; wide < 2; wide++) {
            enum { ROWS = 900 };
            int64_t length[ROWS];
            for (int i = 0; i < ROWS; i++)
                length[i] = 3 + i % 2;
            const int64_t least = base == 0 ? 0 : 500000;
            struct matrix m = empty_matrix(ROWS, least + 70000, length);
            uint64_t seed = 5;
            for (int64_t k = 0; k < m.a.nnz; k++)
                m.col[k] = (int32_t)(least + (int64_t)(support_random(&seed) % 60000));
            m.col[10] = (int32_t)least;
            m.col[20] = (int32_t)(least + 65535 + wide);
            spmv_plan *plan = plan_of(ctx, &m.a, 1);
            const struct omp_tiles *tiles = plan->state;
            assert_int_equal(tiles->count, 1);
            assert_int_equal(tiles->tile[0].narrow, !wide);
            assert_int_equal(tiles->tile[1].col, wide ? 0 : m.a.nnz);
            if (!wide)
                assert_int_equal(tiles->tile[0].base, least);
            spmv_plan_info narrow, plain;
            assert_ok(ctx, spmv_plan_describe(plan, &narrow, sizeof narrow));
            spmv_plan_destroy(plan);
            plan = plan_of(ctx, &m.a, 0);
            assert_ok(ctx, spmv_plan_describe(plan, &plain, sizeof plain));
            /* the plan without 16-bit columns has memory for one */
            assert_int_equal(narrow.bytes - plain.bytes, wide ? 0 : 2 * (m.a.nnz - 1));
            spmv_plan_destroy(plan);
            check_all(&m);
        }
}

/* Rows that cross tiles, among empty, short and regular ones; tiles that end at, before and after
 * the end of a row. */
static void border_of_a_tile(void **state)
{
    (void)state;
    enum { MOST = 5000 };
    static int64_t length[MOST];
    for (int shape = 0; shape < 6; shape++)
        for (int64_t more = -1; more <= 1; more++) {
            const int64_t rows = shape < 2 ? 4 : shape == 2 ? TILE_WORK + more : MOST - 1 + more;
            for (int64_t i = 0; i < rows; i++)
                length[i] = shape == 0   ? TILE_WORK - 1 + more
                            : shape == 1 ? 3 * TILE_WORK + more
                            : shape == 2 ? 0
                            : shape == 3 ? (i % 1000 == 500 ? 2 * TILE_WORK + more : i % 3)
                            : shape == 4 ? (i == 0 || i == rows - 1 ? TILE_WORK / 2 + more : 7)
                                         : 1;
            struct matrix m = empty_matrix(rows, 40000, length);
            for (int64_t i = 0; i < rows; i++)
                for (int32_t k = m.row_ptr[i]; k < m.row_ptr[i + 1]; k++)
                    m.col[k] = (int32_t)((i + 2 * (k - m.row_ptr[i])) % 40000);
            check_all(&m);
        }
}

/* Distant columns in short, long and empty rows: prefetched, except in the last tile. Those of each tile span more
 * than 4 MiB of a vector of 4-byte values. */
static void far_columns(void **state)
{
    (void)state;
    enum { ROWS = 8000, COLS = 1500000 };
    static int64_t length[ROWS];
    uint64_t seed = 8;
    for (int64_t i = 0; i < ROWS; i++)
        length[i] = i % 9 == 0 ? 0 : (int64_t)(support_random(&seed) % (i < ROWS / 2 ? 5 : 40));
    struct matrix m = empty_matrix(ROWS, COLS, length);
    for (int64_t k = 0; k < m.a.nnz; k++)
        m.col[k] = (int32_t)(support_random(&seed) % COLS);
    spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, 1);
    for (int compression = -1; compression <= 1; compression++) {
        spmv_plan *plan = plan_of(ctx, &m.a, compression);
        const struct omp_tiles *tiles = plan->state;
        for (int64_t t = 0; t < tiles->count; t++)
            assert_true(tiles->tile[t].far && !tiles->tile[t].narrow);
        spmv_plan_destroy(plan);
    }
    spmv_context_destroy(ctx);
    check_all(&m);
}

/* Checks the stretches of a tile against the matrix. Returns the number of rows checked. */
typedef int64_t tile_check(const struct omp_tiles *tiles, const struct tile *tile, const spmv_csr *a);

static int64_t check_tiles(const spmv_plan *plan, const spmv_csr *a, tile_check *check)
{
    const struct omp_tiles *tiles = plan->state;
    int64_t rows = 0;
    for (int64_t t = 0; t < tiles->count; t++)
        rows += check(tiles, &tiles->tile[t], a);
    return rows;
}

/* Whether the tile has a stretch of this kind from number *i on; then *i is its number, *in its
 * rows. */
static bool find_stretch(const struct omp_tiles *tiles, const struct tile *tile, int kind, int64_t *i, struct range *in)
{
    const int64_t first = tile->begin.row + tile->begun, end = tile[1].stretch;
    while (*i < end && (int)tiles->stretch[*i].kind != kind)
        ++*i;
    if (*i == end)
        return false;
    in->begin = first + tiles->stretch[*i].begin;
    in->end = *i + 1 < end ? first + tiles->stretch[*i + 1].begin : tile[1].begin.row;
    return true;
}

/* Every sorted stretch has each of its rows once, by length and then in matrix order, with its
 * first entry. */
static int64_t check_places(const struct omp_tiles *tiles, const struct tile *tile, const spmv_csr *a)
{
    const int32_t *row_ptr = a->row_ptr;
    const int64_t first = tile->begin.row + tile->begun;
    const struct bucket *bucket = tiles->bucket + tile->bucket;
    const struct place *place = tiles->place + tile->place;
    int64_t sorted = 0;
    struct range in;
    for (int64_t i = tile->stretch; find_stretch(tiles, tile, STRETCH_SORTED, &i, &in); i++) {
        const struct stretch stretch = tiles->stretch[i];
        int64_t rows = 0, before = -1;
        for (int g = 0; g < stretch.n; g++, bucket++) {
            int64_t last = in.begin - 1;
            assert_true(bucket->rows > 0 && bucket->n > before);
            for (int r = 0; r < bucket->rows; r++, place++) {
                const int64_t row = first + place->row;
                assert_true(row > last && row < in.end);
                assert_int_equal(row_ptr[row], tile->begin.k + place->k);
                assert_int_equal(row_ptr[row + 1] - row_ptr[row], bucket->n);
                last = row;
            }
            rows += bucket->rows;
            before = bucket->n;
        }
        assert_int_equal(rows, in.end - in.begin);
        sorted += rows;
    }
    assert_ptr_equal(bucket, tiles->bucket + tile[1].bucket);
    assert_ptr_equal(place, tiles->place + tile[1].place);
    return sorted;
}

/* Rows of irregular lengths are sorted by length. Rows whose lengths follow a pattern are not, nor
 * are long rows, with a lower limit for 8-byte values. Regular, empty and very long rows are mixed
 * in. */
static void rows_by_length(void **state)
{
    enum { ROWS = 10000 };
    static int64_t length[ROWS];
    static const struct {
        const char *what;
        int least, most;           /* share of sorted rows, in percent */
        int least_of_4, most_of_4; /* the same for values of 4 bytes or a pattern */
    } cases[] = {{"0 to 4, random", 95, 100, 95, 100},
                 {"5 and 9 in turn", 0, 0, 0, 0},
                 {"all 6", 0, 0, 0, 0},
                 {"100 to 300, random", 0, 0, 0, 0},
                 {"0 to 9 and some above 32, random", 95, 100, 95, 100},
                 {"regular, then random", 30, 70, 30, 70},
                 {"mostly empty", 90, 100, 90, 100},
                 {"20 to 60, random", 0, 0, 95, 100}};
    spmv_context *ctx = *state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const int64_t rows = c == 3 ? ROWS / 10 : ROWS;
        uint64_t seed = 21;
        for (int64_t i = 0; i < rows; i++) {
            const int64_t random = (int64_t)(support_random(&seed) >> 20);
            length[i] = c == 0   ? random % 5
                        : c == 1 ? 5 + 4 * (i % 2)
                        : c == 2 ? 6
                        : c == 3 ? 100 + random % 200
                        : c == 4 ? (random % 30 == 0 ? 33 + random / 30 % 10 : random % 10)
                        : c == 5 ? (i / 700 % 2 == 0 ? 3 : 1 + random % 6)
                        : c == 6 ? (random % 20 == 0 ? random / 20 % 20 : 0)
                                 : 20 + random % 41;
        }
        struct matrix m = empty_matrix(rows, 50000, length);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < length[i]; j++)
                m.col[m.row_ptr[i] + j] =
                    (int32_t)(c == 5 && i / 700 % 2 == 0 ? i + 5 * j : (int64_t)(support_random(&seed) % 50000));
        for (int way = 0; way < 9; way++) {
            const int compression = way % 3 - 1;
            spmv_csr a = m.a;
            a.type = way / 3 == 1 ? SPMV_F32 : SPMV_F64;
            a.val = way / 3 == 0 ? (const void *)m.val : way / 3 == 1 ? (const void *)m.val32 : NULL;
            spmv_plan *plan = plan_of(ctx, &a, compression);
            spmv_plan_info info;
            assert_ok(ctx, spmv_plan_describe(plan, &info, sizeof info));
            const int64_t sorted = check_tiles(plan, &a, check_places);
            if (compression < 0 && a.val != NULL) { /* some are in lanes */
                spmv_plan_destroy(plan);
                continue;
            }
            const int least = way / 3 == 0 ? cases[c].least : cases[c].least_of_4;
            /* Without compression, regular rows are like others. */
            const int most = c == 5 && compression == 0 ? 100 : way / 3 == 0 ? cases[c].most : cases[c].most_of_4;
            if (sorted * 100 < least * rows || sorted * 100 > most * rows)
                fail_msg("%s, way %d: %lld of %lld rows are sorted", cases[c].what, way, (long long)sorted,
                         (long long)rows);
            assert_int_equal(strstr(info.why, "processed by length") != NULL, sorted > 0);
            spmv_plan_destroy(plan);
        }
        check_all(&m);
    }
}

/* Every formed stretch has, row by row, the columns of the matrix. */
static int64_t check_spots(const struct omp_tiles *tiles, const struct tile *tile, const spmv_csr *a)
{
    const int32_t *row_ptr = a->row_ptr;
    const int64_t base = tile->narrow ? tile->base : 0;
    const struct spots *spot = tiles->spot + tile->spot;
    const uint8_t *code = tiles->code + tile->code;
    int64_t formed = 0;
    struct range in;
    for (int64_t i = tile->stretch; find_stretch(tiles, tile, STRETCH_FORMED, &i, &in); i++) {
        const struct stretch stretch = tiles->stretch[i];
        assert_ptr_equal(spot, tiles->spot + tile->spot + stretch.spot);
        assert_ptr_equal(code, tiles->code + tile->code + stretch.code);
        for (int64_t row = in.begin; row < in.end; row++, code++) {
            assert_in_range(*code, 0, stretch.forms - 1);
            assert_int_equal(row_ptr[row + 1] - row_ptr[row], stretch.n);
            for (int j = 0; j < stretch.n; j++) {
                const struct spots *its = &spot[*code * spots_of(stretch.n) + j / SPOTS];
                assert_int_equal(a->col[row_ptr[row] + j],
                                 base + its->column[j % SPOTS] + ((row - in.begin) & its->moves[j % SPOTS]));
            }
        }
        spot += stretch.forms * spots_of(stretch.n);
        formed += in.end - in.begin;
    }
    assert_ptr_equal(spot, tiles->spot + tile[1].spot);
    assert_ptr_equal(code, tiles->code + tile[1].code);
    return formed;
}

/* Rows of n entries, each in one of `forms` random forms: in form f, entry j keeps its column if
 * bit j + f of `stays` is set, else it moves with the row. `stays` changes every `change` rows (0:
 * never). Every `odd`-th row has its own columns (0: none). The first row is long. wide: columns
 * too far apart for 16 bits. */
struct forms_case {
    int64_t n;
    int forms;
    unsigned stays;
    int64_t change, odd;
    bool wide;
    int least, most; /* share of rows in forms, in percent */
};

static struct matrix formed_matrix(struct forms_case c, int64_t rows)
{
    int64_t *length = support_zeros(rows, sizeof *length);
    uint64_t seed = 11;
    for (int64_t i = 0; i < rows; i++)
        length[i] = i == 0 ? 2 * TILE_WORK + 5 : c.n;
    struct matrix m = empty_matrix(rows, 300000, length);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0, form = (int64_t)(support_random(&seed) >> 30) % c.forms; j < length[i]; j++) {
            const bool own = i == 0 || (c.odd > 0 && i % c.odd == 3);
            const unsigned stays = c.change > 0 ? c.stays << i / c.change % 3 : c.stays;
            const int64_t at = (c.wide ? 100000 : 40) * (j % 2);
            m.col[m.row_ptr[i] + j] = (int32_t)(own ? (int64_t)(support_random(&seed) % 50000)
                                                : stays >> (j + form) % 32 & 1u ? 7 + at + j
                                                                                : at + i + 3 * j + form);
        }
    free(length);
    return m;
}

/* Fixed columns at the front, in the middle and at the end; alternating forms; forms that change
 * within a tile; rows without a form in between; more forms than can be stored; rows too long for
 * forms. */
static void forms(void **state)
{
    static const struct forms_case cases[] = {{1, 2, 1, 0, 0, false, 90, 100},
                                              {2, 1, 1, 0, 0, true, 90, 100},
                                              {3, 1, 1, 0, 0, false, 90, 100},
                                              {3, 1, 2, 0, 0, true, 90, 100},
                                              {3, 1, 4, 0, 0, false, 90, 100},
                                              {4, 2, 1, 0, 0, true, 90, 100},
                                              {4, 2, 2, 0, 0, false, 90, 100},
                                              {4, 3, 9, 0, 0, true, 90, 100},
                                              {4, 1, 5, 100, 0, true, 90, 100},
                                              {5, 2, 3, 333, 0, false, 90, 100},
                                              {5, 1, 16, 0, 90, true, 60, 100},
                                              {6, 4, 0x21, 0, 0, true, 90, 100},
                                              {6, 3, 0x12, 170, 200, false, 60, 100},
                                              {4, 40, 1, 0, 0, true, 0, 0},
                                              {7, 1, 1, 0, 0, true, 0, 0},
                                              {4, 1, 0, 0, 0, true, 0, 0},
                                              {4, 2, 1, 12, 0, false, 0, 100}};
    enum { ROWS = 3000 };
    spmv_context *ctx = *state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct matrix m = formed_matrix(cases[c], ROWS);
        for (int compression = -1; compression <= 1; compression++) {
            spmv_csr a = m.a;
            a.val = compression < 0 ? NULL : a.val; /* no lanes */
            spmv_plan *plan = plan_of(ctx, &a, compression);
            spmv_plan_info info;
            assert_ok(ctx, spmv_plan_describe(plan, &info, sizeof info));
            const int64_t formed = check_tiles(plan, &m.a, check_spots);
            if (compression == 0)
                assert_int_equal(formed, 0);
            else if (formed * 100 < cases[c].least * (int64_t)ROWS || formed * 100 > cases[c].most * (int64_t)ROWS)
                fail_msg("case %d: %lld rows are in forms", (int)c, (long long)formed);
            assert_int_equal(strstr(info.why, "of a few forms") != NULL, formed > 0);
            spmv_plan_destroy(plan);
        }
        check_all(&m);
    }
}

/* For any number of threads the parts cover all tiles, and each has an equal share of the bytes
 * read and written, up to one tile. */
static void equal_parts(void **state)
{
    (void)state;
    static const char *const specs[] = {"arrow:90000,70000,4", "poisson2d:300", "longrows:3,60000,40000",
                                        "empty:30000,0.9,20"};
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
        spmv_context *one = support_context_on(SPMV_BACKEND_OMP, 1);
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        assert_ok(one, spmv_matrix_generate(one, specs[s], SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        for (int threads = 2; threads <= 16; threads++)
            for (int vectors = 1; vectors <= 3; vectors += 2) {
                spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, threads);
                spmv_plan *plan = NULL;
                spmv_plan_options options;
                spmv_plan_options_init(&options, sizeof options);
                options.method = "tiles";
                options.vectors = vectors;
                assert_ok(ctx, spmv_plan_create(ctx, &a, &options, &plan));
                struct omp_tiles *tiles = plan->state;
                double *x = support_zeros(a.cols * vectors, sizeof *x), *y = support_zeros(a.rows * vectors, sizeof *y);
                tiles->threads = threads;
                assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, y));
                const struct tile *tile = tiles->tile;
                const int64_t total = tile[tiles->count].bytes;
                assert_true(total >= 8 * (a.nnz + a.rows * vectors) && total <= 16 * (a.nnz + a.rows * vectors));
                int64_t most = 0, at = 0;
                for (int64_t t = 0; t < tiles->count; t++)
                    most = max_i64(most, tile[t + 1].bytes - tile[t].bytes);
                for (int p = 0; p < threads; p++) {
                    const struct share *share = &tiles->share[p];
                    assert_int_equal(share->begin, at);
                    assert_true(tile[share->end].bytes - tile[share->begin].bytes <= total / threads + most + 1);
                    at = share->end;
                }
                assert_int_equal(at, tiles->count);
                support_free(x, y);
                spmv_plan_destroy(plan);
                spmv_context_destroy(ctx);
            }
        spmv_matrix_destroy(matrix);
        spmv_context_destroy(one);
    }
}

/* Values that are not finite stay in the rows that use them, in regular rows too. */
static void not_finite_stays(void **state)
{
    (void)state;
    enum { ROWS = 3000 };
    for (int64_t n = 1; n <= 34; n++) {
        struct matrix m = shaped(SHIFTED, ROWS, 100000, n, 1);
        double *x = support_zeros(m.a.cols, sizeof *x), *y0 = support_zeros(ROWS, sizeof *y0);
        for (int64_t i = 0; i < m.a.cols; i++)
            x[i] = i % 101 == 50 ? INFINITY : 1;
        double *y = product(&m.a, (struct way){n % 3 == 0 ? 1 : -1, 2, n % 2 == 0, 0, false}, x, y0, 1, 0);
        int64_t finite = 0;
        for (int64_t i = 0; i < ROWS; i++) {
            bool touches = false;
            for (int32_t k = m.row_ptr[i]; k < m.row_ptr[i + 1]; k++)
                touches = touches || isinf(x[m.col[k]]);
            assert_int_equal(isfinite(y[i]) != 0, !touches);
            finite += !touches;
        }
        assert_true(finite > ROWS / 2 && finite < ROWS);
        support_free(x, y, y0);
        release(&m);
    }
}

/* What the slices of all tiles hold, as a product reads it: every whole row of a tile with lanes once, in the slices whose
 * lanes are not skipped, with its entries in order; other lanes of a step hold a 0. */
static void check_slices(const spmv_plan *plan, const spmv_csr *a, int64_t of_kind[3])
{
    const struct omp_tiles *tiles = plan->state;
    const struct lanes *lanes = &tiles->lanes;
    const int rows = lanes->rows;
    const size_t size = spmv_type_size(a->type);
    const char zero[8] = {0};
    for (int64_t t = 0; t < tiles->count; t++) {
        if (!tile_has_lanes(tiles, t))
            continue;
        const struct own_rows own = own_rows_of(&tiles->tile[t]);
        const struct lane_tile *tile = &lanes->tile[t];
        const char *val = (const char *)lanes->val + (size_t)tile->value * size;
        bool *seen = support_zeros(own.last - own.first, sizeof *seen);
        for (int64_t s = tile->slice; s < tile[1].slice; s++) {
            const struct slice slice = lanes->slice[s];
            const bool diagonals = slice.kind == LANES_DIAGONALS;
            const int lanes_used = slice.kind == LANES_ROWS ? slice.n : rows;
            for (int i = 0; i < lanes_used; i++) {
                const int64_t its = slice.kind == LANES_COLUMNS ? lanes->row[tile->row + slice.row + i] : slice.row + i;
                const int64_t row = own.first + its;
                const int64_t begin = offset_at(a->row_ptr, a->row_ptr_bits, row);
                const int64_t end = offset_at(a->row_ptr, a->row_ptr_bits, row + 1);
                int64_t k = begin;
                assert_in_range(its, 0, own.last - own.first - 1);
                if (i >= slice.skip) {
                    assert_false(seen[its]);
                    seen[its] = true;
                    of_kind[slice.kind] += end - begin;
                }
                for (int j = 0; slice.kind != LANES_ROWS && j < slice.n; j++) {
                    const int64_t at = slice.at + (int64_t)j * rows + i;
                    const int64_t col = diagonals      ? row + lanes->offset[tile->offset + slice.at + j]
                                        : tile->narrow ? tiles->tile[t].base + lanes->col[tile->column + at]
                                                       : lanes->offset[tile->offset + at];
                    const void *value = val + (size_t)(j * rows + i) * size;
                    assert_in_range(col, 0, a->cols - 1);
                    if (k < end && (!diagonals || col == a->col[k])) {
                        assert_int_equal(col, a->col[k]);
                        assert_memory_equal(value, (const char *)a->val + (size_t)k * size, size);
                        k++;
                    } else {
                        assert_memory_equal(value, zero, size);
                    }
                }
                assert_int_equal(k, slice.kind == LANES_ROWS ? begin : end);
            }
            val += slice.kind == LANES_ROWS ? 0 : (size_t)(slice.n * rows) * size;
        }
        for (int64_t i = 0; i < own.last - own.first; i++)
            assert_true(seen[i]);
        free(seen);
    }
}

/* y of two products with plans of this compression, the second after the values are replaced. */
static void *with_new_values(spmv_context *ctx, const spmv_csr *a, spmv_type type, int compression, const void *values,
                             const void *x, double *y, int64_t of_kind[3])
{
    spmv_plan_options options = support_plan_options();
    spmv_plan *plan = NULL;
    options.compression = compression;
    options.type = type;
    options.update_values = 1;
    assert_ok(ctx, spmv_plan_create(ctx, a, &options, &plan));
    check_slices(plan, a, of_kind);
    assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, y));
    assert_ok(ctx, spmv_plan_update_values(plan, values));
    spmv_csr now = *a;
    now.val = values;
    check_slices(plan, &now, (int64_t[3]){0});
    assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, y + a->rows));
    spmv_plan_destroy(plan);
    return y;
}

/* The slices of all kinds, in both types and mixed, with columns of 16 and of 32 bits, and with elements of x that are not
 * finite next to those that a row reads: the bits are those of plain CSR, also after the values are replaced. */
static void slices(void **state)
{
    static const struct {
        const char *spec;
        int diagonals, columns; /* the least share of entries, in percent; the rest is in rows, or none */
    } cases[] = {{"poisson2d:70", 90, 0},    {"stencil27:12", 80, 0},        {"banded:900,40", 0, 0},
                 {"banded:3000,16", 90, 0},  {"uniform:3000,3000,7", 0, 95}, {"uniform:3000,90000,7", 0, 95},
                 {"rmat:11,3", 0, 20},       {"arrow:9000,7000,4", 0, 50},   {"empty:30000,0.9,20", 0, 0},
                 {"diagonal:20000", 0, 0},   {"fem:400,3,20", 0, 0},         {"interpolation3d:12,3", 0, 50},
                 {"convdiff2d:33,2", 90, 0}, {"dense:500,3", 0, 0},          {"uniform:30000,100,3", 0, 95}};
    spmv_context *ctx = *state;
    for (size_t c = 0; c < 3 * sizeof cases / sizeof cases[0]; c++) {
        const bool f32 = c % 3 > 0, mixed = c % 3 == 2;
        const spmv_type type = f32 && !mixed ? SPMV_F32 : SPMV_F64;
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        assert_ok(ctx, spmv_matrix_generate(ctx, cases[c / 3].spec, f32 ? SPMV_F32 : SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        a.memory = SPMV_MEMORY_CONTEXT;
        uint64_t seed = 3 + c;
        double *x = support_zeros(a.cols, sizeof *x), *y = support_zeros(4 * a.rows, sizeof *y),
               *values = support_zeros(a.nnz, 8);
        for (int64_t i = 0; i < a.cols; i++) {
            const double v = i % 97 == 50 ? INFINITY : i % 89 == 13 ? NAN : support_uniform(&seed) - 0.5;
            type == SPMV_F32 ? (void)(((float *)(void *)x)[i] = (float)v) : (void)(x[i] = v);
        }
        for (int64_t k = 0; k < a.nnz; k++) {
            const double v = k % 11 == 0 ? -0.0 : support_uniform(&seed);
            f32 ? (void)(((float *)(void *)values)[k] = (float)v) : (void)(values[k] = v);
        }
        int64_t of_kind[3] = {0}, none[3] = {0};
        with_new_values(ctx, &a, type, -1, values, x, y, of_kind);
        with_new_values(ctx, &a, type, 0, values, x, y + 2 * a.rows, none);
        for (int64_t i = 0; i < 2 * a.rows * (type == SPMV_F32 ? 2 : 1); i++) { /* two kinds of NaN may meet in a row */
            const float *of_32 = (const float *)(const void *)y;
            if (type == SPMV_F32 && !(isnan(of_32[i]) && isnan(of_32[4 * a.rows + i])))
                assert_memory_equal(of_32 + i, of_32 + 4 * a.rows + i, sizeof *of_32);
            if (type == SPMV_F64 && !(isnan(y[i]) && isnan(y[2 * a.rows + i])))
                assert_memory_equal(y + i, y + 2 * a.rows + i, sizeof *y);
        }
        assert_int_equal(none[0] + none[1] + none[2], 0);
#ifdef __x86_64__
        if (__builtin_cpu_supports("avx2") && (of_kind[LANES_DIAGONALS] * 100 < cases[c / 3].diagonals * a.nnz ||
                                               of_kind[LANES_COLUMNS] * 100 < cases[c / 3].columns * a.nnz))
            fail_msg("%s: of %lld entries, %lld are in diagonals and %lld in columns", cases[c / 3].spec,
                     (long long)a.nnz, (long long)of_kind[LANES_DIAGONALS], (long long)of_kind[LANES_COLUMNS]);
#endif
        support_free(x, y, values);
        spmv_matrix_destroy(matrix);
    }
}

/* The families of generated matrices. */
static void generated(void **state)
{
    static const char *const specs[] = {
        "poisson2d:70",          "poisson3d:18",         "stencil27:12",        "banded:900,40",
        "fem:400,3,20",          "uniform:3000,90000,7", "rmat:11,12",          "arrow:9000,7000,4",
        "arrow:70000,50000,3",   "empty:30000,0.9,20",   "diagonal:20000",      "longrows:3,60000,40000",
        "powerlaw:4000,6,2,900", "dense:90,700",         "uniform:30000,100,2", "uniform:20,90000,3000"};
    spmv_context *ctx = *state;
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        assert_ok(ctx, spmv_matrix_generate(ctx, specs[s], SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        a.memory = SPMV_MEMORY_CONTEXT;
        check_ways(&a, 1, 0);
        check_ways(&a, -2, 0.5);
        spmv_matrix_destroy(matrix);
    }
}

/* Empty, short and long rows, and one of several tiles. Every column has the bits of a product of this column alone,
 * with every instruction set of this processor and any number of threads and columns. */
static void widths_of_columns(void **state)
{
    enum { ROWS = 120, COLS = 300, MOST = 200 };
    static const struct {
        int vectors, gap;
    } counts[] = {{1, 2}, {7, 0}, {40, 3}, {MOST, 0}};
    static const int64_t lengths[] = {0, 1, 5, 32, 33, 40, 71, 0};
    int64_t length[ROWS];
    uint64_t seed = 5;
    (void)state;
    for (int i = 0; i < ROWS; i++)
        length[i] = i == ROWS / 2 ? 3 * TILE_WORK : lengths[i % 8];
    struct matrix m = empty_matrix(ROWS, COLS, length);
    for (int64_t k = 0; k < m.a.nnz; k++)
        m.col[k] = (int32_t)(support_random(&seed) % COLS);
    for (size_t n = 0; n < 2 * sizeof counts / sizeof counts[0]; n++) {
        const bool f32 = n % 2 == 1;
        const int64_t vectors = counts[n / 2].vectors, stride = vectors + counts[n / 2].gap, size = f32 ? 4 : 8;
        char *x = support_zeros(COLS * stride, size), *y = support_zeros(ROWS * stride, size);
        char *one_x = support_zeros(COLS, size), *zero = support_zeros(ROWS, size), **one_y = support_zeros(vectors, 8);
        spmv_csr a = m.a;
        a.type = f32 ? SPMV_F32 : SPMV_F64;
        a.val = f32 ? (const void *)m.val32 : (const void *)m.val;
        for (int64_t i = 0; i < COLS * stride; i++)
            if (f32)
                ((float *)(void *)x)[i] = (float)support_uniform(&seed);
            else
                ((double *)(void *)x)[i] = support_uniform(&seed);
        for (int64_t v = 0; v < vectors; v++) {
            for (int64_t i = 0; i < COLS; i++)
                memcpy(one_x + i * size, x + (i * stride + v) * size, (size_t)size);
            one_y[v] = product(&a, (struct way){1, 1, false, 0, false}, one_x, zero, 1, 0);
        }
        for (int threads = 1; threads <= 3; threads += 2) {
            spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, threads);
            spmv_plan_options options = support_plan_options();
            spmv_plan *plan = NULL;
            options.vectors = (int)vectors;
            options.x_stride = options.y_stride = stride;
            assert_ok(ctx, spmv_plan_create(ctx, &a, &options, &plan));
            struct omp_tiles *tiles = plan->state;
            tiles->threads = threads;
            for (; tiles->first_step <= BASELINE_STEP; tiles->first_step += STEPS_OF_SET) {
                memset(y, -1, (size_t)(ROWS * stride * size));
                assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, y));
                for (int64_t i = 0; i < ROWS * stride; i++)
                    if (i % stride < vectors)
                        assert_memory_equal(y + i * size, one_y[i % stride] + i / stride * size, (size_t)size);
            }
            spmv_plan_destroy(plan);
            spmv_context_destroy(ctx);
        }
        for (int64_t v = 0; v < vectors; v++)
            free(one_y[v]);
        support_free(x, y, one_x, zero, one_y);
    }
    release(&m);
}

SUPPORT_MAIN(cmocka_unit_test(lengths_and_shapes), with_omp(what_is_seen, 2), with_omp(border_of_16_bits, 2),
             cmocka_unit_test(border_of_a_tile), cmocka_unit_test(far_columns), with_omp(rows_by_length, 3),
             cmocka_unit_test(not_finite_stays), with_omp(slices, 2), with_omp(generated, 2), with_omp(forms, 3),
             cmocka_unit_test(equal_parts), cmocka_unit_test(widths_of_columns))
