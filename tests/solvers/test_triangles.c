/* The solve of a triangle on a GPU (precond_triangles_cuda.cu) against the loop of the host, bit
 * for bit: groups of 1 to 32 lanes, chains, wide levels and long rows, tiles of many levels and
 * of parts of one, and numbers that look like an unknown one. Then whole preconditioners against
 * those of ref.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "solvers/precond/precond_loops.h"
#include "tests/support/support_precond.h"
#include "tests/support/support_slow.h"
#ifdef HOST_CUDA
#include "tests/emulated_gpu/cuda_runtime_api.h"
#endif

/* A triangle on the host, and its tiles. far: the columns of entries in the tile of their row are
 * stored as places in it. */
struct built {
    spmv_type type;
    int64_t n, entries, tiles;
    int64_t *ptr;
    int32_t *col, *far, *row;
    void *val, *inverse;
    struct precond_tile *tile;
    int inside;
};

/* Where the entries of a row are. */
enum shape { CHAIN, WIDE, LONG, EMPTY, SHAPES };

static int64_t entries_of(enum shape shape, int64_t position, uint64_t *seed)
{
    static const int64_t most[SHAPES] = {4, 7, 200, 1};
    const int64_t entries = (int64_t)(support_random(seed) % (uint64_t)most[shape]);
    return shape == CHAIN ? min_i64(position, 1 + entries) : min_i64(position, entries);
}

/* The position that entry k of a row at this position needs. */
static int64_t needs(enum shape shape, int64_t position, int64_t k, uint64_t *seed)
{
    if (shape == CHAIN && k == 0)
        return position - 1;
    if (shape == WIDE && position > 60) /* levels of about 60 rows */
        return position / 60 * 60 - 1 - (int64_t)(support_random(seed) % 60);
    return (int64_t)(support_random(seed) % (uint64_t)position);
}

/* Cuts random tiles. In one that is not `inside`, no row needs another one of it. */
static void cut(struct built *b, const int64_t *place, int64_t longest, uint64_t *seed)
{
    for (int64_t begin = 0; begin < b->n;) {
        const int64_t end = min_i64(b->n, begin + 1 + (int64_t)(support_random(seed) % (uint64_t)longest));
        int inside = (int)(support_random(seed) % 2);
        for (int64_t k = b->ptr[begin]; k < b->ptr[end]; k++)
            if (place[b->col[k]] >= begin)
                inside = 1;
        for (int64_t k = b->ptr[begin]; k < b->ptr[end]; k++)
            b->far[k] = (int32_t)(place[b->col[k]] >= begin ? -1 - (place[b->col[k]] - begin) : b->col[k]);
        const int64_t gate = begin > 0 ? (int64_t)(support_random(seed) % (uint64_t)begin) : -1;
        b->tile[b->tiles++] = (struct precond_tile){
            .begin = (int32_t)begin, .end = (int32_t)end, .gate = gate < 0 ? -1 : b->row[gate], .inside = inside};
        if (inside)
            b->inside = (int)max_i64(b->inside, end - begin);
        begin = end;
    }
}

static struct built build(spmv_type type, int64_t n, enum shape shape, int64_t longest, uint64_t *seed)
{
    struct built b = {.type = type, .n = n};
    const size_t size = spmv_type_size(type);
    int64_t *const place = support_zeros(n, sizeof *place);
    b.ptr = support_zeros(n + 1, sizeof *b.ptr);
    b.row = support_zeros(n, sizeof *b.row);
    b.tile = support_zeros(n, sizeof *b.tile);
    b.inverse = support_zeros(n, size);
    for (int64_t p = 0; p < n; p++) {
        const int64_t other = (int64_t)(support_random(seed) % (uint64_t)(p + 1));
        b.row[p] = b.row[other];
        b.row[other] = (int32_t)p;
        b.ptr[p + 1] = b.ptr[p] + entries_of(shape, p, seed);
        real_set(type, b.inverse, p, 1 + 0.25 * support_uniform(seed));
    }
    for (int64_t p = 0; p < n; p++)
        place[b.row[p]] = p;
    b.entries = b.ptr[n];
    b.col = support_zeros(b.entries, sizeof *b.col);
    b.far = support_zeros(b.entries, sizeof *b.far);
    b.val = support_zeros(b.entries, size);
    for (int64_t p = 0; p < n; p++)
        for (int64_t k = b.ptr[p]; k < b.ptr[p + 1]; k++) {
            b.col[k] = b.row[needs(shape, p, k - b.ptr[p], seed)];
            real_set(type, b.val, k, support_uniform(seed) / (double)(b.ptr[p + 1] - b.ptr[p]));
        }
    cut(&b, place, longest, seed);
    free(place);
    return b;
}

static void tear_down(struct built *b)
{
    support_free(b->ptr, b->col, b->far, b->row, b->val, b->inverse, b->tile);
}

/* The same bits, or NaN in both. */
static void assert_same(const struct built *b, int lanes, const void *out, const void *expected)
{
    const size_t size = spmv_type_size(b->type);
    for (int64_t i = 0; i < b->n; i++) {
        const double x = real_at(b->type, out, i), y = real_at(b->type, expected, i);
        if (memcmp((const char *)out + (size_t)i * size, (const char *)expected + (size_t)i * size, size) != 0 &&
            !(isnan(x) && isnan(y)))
            fail_msg("%s, n = %lld, %d lanes: row %lld is %.17g instead of %.17g", spmv_type_name(b->type),
                     (long long)b->n, lanes, (long long)i, x, y);
    }
}

/* Solves twice with in and blank in different arrays, and once in the same. */
static void check(spmv_context *ctx, const struct built *b, int lanes, bool numbers, uint64_t *seed)
{
    const int64_t n = b->n, size = (int64_t)spmv_type_size(b->type);
    const struct precond_triangle host = {
        .rows = n, .ptr = b->ptr, .col = b->col, .row = b->row, .val = b->val, .inverse = b->inverse};
    void *const in = support_zeros(n, (size_t)size), *const expected = support_zeros(n, (size_t)size),
                *const ones = support_zeros(n, (size_t)size), *const got = support_zeros(n, (size_t)size);
    memset(ones, 0xff, (size_t)(n * size));
    for (int64_t i = 0; i < n; i++)
        real_set(b->type, in, i, support_uniform(seed));
    if (!numbers && n > 0) /* a NaN with all bits set */
        memset((char *)in + n / 2 * size, 0xff, (size_t)size);
    precond_triangle_loop(b->type, &host, in, expected, 0, n);

    const int zeros[2] = {0, 0};
    int *const drawn = support_upload(ctx, zeros, sizeof zeros);
    void *const ptr = support_upload(ctx, b->ptr, (n + 1) * 8), *const row = support_upload(ctx, b->row, n * 4),
                *const col = support_upload(ctx, b->far, b->entries * 4),
                *const val = support_upload(ctx, b->val, b->entries * size),
                *const inverse = support_upload(ctx, b->inverse, n * size),
                *const tile = support_upload(ctx, b->tile, b->tiles * (int64_t)sizeof *b->tile),
                *const from = support_upload(ctx, in, n * size), *const blank = support_upload(ctx, in, n * size),
                *const out = support_upload(ctx, ones, n * size);
    struct precond_triangle there = {
        .rows = n, .ptr = ptr, .col = col, .row = row, .val = val, .inverse = inverse, .tiles = {.count = b->tiles}};
    there.tiles.tile = tile;
    there.tiles.lanes = lanes;
    there.tiles.inside = b->inside;
    for (int repeat = 0; repeat < 3; repeat++) {
        /* as if the other triangle had been solved in between */
        there.tiles.drawn = drawn + repeat % 2;
        there.tiles.drawn_next = drawn + 1 - repeat % 2;
        void *const cleared = repeat == 2 ? from : blank;
        assert_ok(ctx, precond_triangle_cuda(ctx, b->type, &there, from, out, cleared));
        assert_ok(ctx, spmv_download(ctx, out, got, n * size));
        assert_same(b, lanes, got, expected);
        assert_holds(ctx, cleared, ones, (size_t)(n * size));
        int counts[2];
        assert_ok(ctx, spmv_download(ctx, drawn, counts, sizeof counts));
        assert_int_equal(counts[1 - repeat % 2], 0);
        assert_ok(ctx, spmv_upload(ctx, ones, out, n * size));
    }
    support_free(in, expected, ones, got);
    support_free_in(ctx, drawn, ptr, row, col, val, inverse, tile, from, blank, out);
}

static void as_on_the_host(void **state)
{
    spmv_context *ctx = *state;
    static const int64_t sizes[] = {0, 1, 2, 31, 32, 33, 130, SLOW ? 300 : 5000, SLOW ? 500 : 60000};
    static const int64_t longest[] = {1, 40, 300, 4096};
    uint64_t seed = 5;
    int turn = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int shape = 0; shape < SHAPES; shape++)
            for (int lanes = 1; lanes <= 32; lanes *= 2, turn++) {
                if (SLOW && sizes[s] > 200 && turn % 5 != 0)
                    continue;
                struct built b = build(turn % 2 == 0 ? SPMV_F64 : SPMV_F32, sizes[s], (enum shape)shape,
                                       longest[turn / 2 % 4], &seed);
                check(ctx, &b, lanes, turn % 5 != 0, &seed);
                tear_down(&b);
            }
}

static void one_small_triangle(void **state)
{
    uint64_t seed = 6;
    for (int lanes = 1; lanes <= 32; lanes *= 2) {
        struct built b = build(SPMV_F64, SLOW ? 100 : 500, lanes % 3 == 1 ? WIDE : LONG, 120, &seed);
        check(*state, &b, lanes, true, &seed);
        tear_down(&b);
    }
}

/* ------------------------------------------------------------ preconditioners */

/* Two launches an application, and the bits of ref, which have those of every backend. The grids
 * have large levels between small ones; those of the last matrix are all small. */
static void as_on_ref(void **state)
{
    spmv_context *ctx = *state, *ref = support_context_on(SPMV_BACKEND_REF, 0);
    static const char *const systems[] = {SLOW ? "convdiff2d:20,0.7" : "convdiff2d:300,0.7",
                                          SLOW ? "convdiff3d:8,0.7" : "convdiff3d:50,0.7",
                                          SLOW ? "banded:150,3" : "banded:5000,3"};
    for (int kind = 0; kind < 2; kind++)
        for (size_t s = 0; s < sizeof systems / sizeof systems[0]; s++) {
            double *z[2] = {NULL, NULL};
            int64_t n = 0;
            for (int there = 0; there < 2; there++) {
                spmv_context *const in = there ? ctx : ref;
                spmv_matrix *matrix = NULL;
                spmv_csr a;
                spmv_preconditioner *m = NULL;
                assert_ok(in, spmv_matrix_generate(in, systems[s], (kind + s) % 2 == 0 ? SPMV_F64 : SPMV_F32, &matrix));
                spmv_matrix_view(matrix, &a);
                assert_ok(in, spmv_preconditioner_create(in, kind == 0 ? "ilu0" : "ilut", &a, NULL, &m));
                n = a.rows;
                double *const r = support_zeros(n, sizeof *r);
                z[there] = support_zeros(n, sizeof **z);
                for (int repeat = 0; repeat < 2; repeat++) { /* the second one for another r */
                    for (int64_t i = 0; i < n; i++)
                        r[i] = (double)((i + repeat) % 97) - 48;
#ifdef HOST_CUDA
                    const int64_t launches = host_cuda.launches;
                    apply(in, m, r, z[there]);
                    /* ilut: columns were exchanged */
                    assert_in_range(host_cuda.launches - launches, there ? 2 : 0, there ? 2 + kind : 0);
#else
                    apply(in, m, r, z[there]);
#endif
                }
                free(r);
                spmv_preconditioner_destroy(m);
                spmv_matrix_destroy(matrix);
            }
            assert_memory_equal(z[0], z[1], (size_t)n * sizeof **z);
            support_free(z[0], z[1]);
        }
    spmv_context_destroy(ref);
}

/* ------------------------------------------------------------- beside other work */

static bool repeat_often;

/* Applications in two contexts at a time, whose blocks share the multiprocessors and wait for
 * blocks of their own launch. Each time the same bits. */
static void beside_each_other(void **state)
{
    enum { CONTEXTS = 2 };
    (void)state;
    static const char *const systems[CONTEXTS] = {SLOW ? "convdiff2d:12,0.7" : "convdiff2d:150,0.7",
                                                  SLOW ? "convdiff3d:5,0.7" : "convdiff3d:40,0.7"};
    const int repeats = repeat_often ? 200 : SLOW ? 2 : 20;
    for (int kind = 0; kind < 2; kind++) {
        spmv_context *ctx[CONTEXTS];
        spmv_preconditioner *m[CONTEXTS] = {NULL, NULL};
        void *r[CONTEXTS], *z[CONTEXTS], *first[CONTEXTS], *again[CONTEXTS];
        int64_t bytes[CONTEXTS];
        for (int c = 0; c < CONTEXTS; c++) {
            ctx[c] = support_context();
            spmv_matrix *matrix = NULL;
            spmv_csr a;
            assert_ok(ctx[c], spmv_matrix_generate(ctx[c], systems[c], SPMV_F64, &matrix));
            spmv_matrix_view(matrix, &a);
            assert_ok(ctx[c], spmv_preconditioner_create(ctx[c], kind == 0 ? "ilu0" : "ilut", &a, NULL, &m[c]));
            bytes[c] = a.rows * 8;
            first[c] = support_zeros(a.rows, sizeof(double));
            again[c] = support_zeros(a.rows, sizeof(double));
            for (int64_t i = 0; i < a.rows; i++)
                ((double *)first[c])[i] = (double)(i % 97) - 48;
            r[c] = support_upload(ctx[c], first[c], bytes[c]);
            z[c] = support_upload(ctx[c], first[c], bytes[c]);
            assert_ok(ctx[c], spmv_preconditioner_apply(m[c], r[c], z[c]));
            assert_ok(ctx[c], spmv_download(ctx[c], z[c], first[c], bytes[c]));
            spmv_matrix_destroy(matrix);
        }
        for (int repeat = 0; repeat < repeats; repeat++) {
            for (int times = 0; times < 3; times++) /* queued */
                for (int c = 0; c < CONTEXTS; c++)
                    assert_ok(ctx[c], spmv_preconditioner_apply(m[c], r[c], z[c]));
            for (int c = 0; c < CONTEXTS; c++) {
                assert_ok(ctx[c], spmv_download(ctx[c], z[c], again[c], bytes[c]));
                assert_memory_equal(again[c], first[c], (size_t)bytes[c]);
            }
        }
        for (int c = 0; c < CONTEXTS; c++) {
            support_free_in(ctx[c], r[c], z[c]);
            support_free(first[c], again[c]);
            spmv_preconditioner_destroy(m[c]);
            spmv_context_destroy(ctx[c]);
        }
    }
}

/* "brief": the kernels once, for the checkers of the toolkit; "repeat": many applications in two
 * contexts only. */
int main(int argc, char **argv)
{
    support_begin(argc, argv);
    repeat_often = support_mode(argc, argv, "repeat");
    const struct CMUnitTest some[] = {with_context(one_small_triangle)};
    const struct CMUnitTest repeats[] = {cmocka_unit_test(beside_each_other)};
    const struct CMUnitTest tests[] = {with_context(as_on_the_host), with_context(one_small_triangle),
                                       with_context(as_on_ref), cmocka_unit_test(beside_each_other)};
    return support_brief(argc, argv) ? cmocka_run_group_tests(some, NULL, NULL)
           : repeat_often            ? cmocka_run_group_tests(repeats, NULL, NULL)
                                     : cmocka_run_group_tests(tests, NULL, NULL);
}
