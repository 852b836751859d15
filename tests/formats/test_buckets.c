/* Entries collected in buckets become CSR: in small blocks and in large pages, from tiles of
 * several threads. The result equals that of spmv_matrix_from_coo.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/coo/coo_buckets.h"
#include "formats/coo/rows.h"
#include "tests/support/support_coo.h"

/* TILE: entries of a tile. LARGE: an expected number of entries for which large pages are used. */
enum { TILE = 9000, LARGE = 7000000 };

static const int teams[] = {1, 2, 5};

struct shape {
    int64_t rows, cols, n, expected;
    bool crowded; /* most are in a few neighbouring rows */
    bool large;
};

/* Appends the entries in tiles. Rounds of seven tiles are assigned to random threads; each thread
 * appends its tiles in ascending order. */
static void append_all(struct coo_buckets *buckets, const struct entries *e, int threads, uint64_t *seed)
{
    enum { ROUND = 7 };
    const struct coo_shape shape = buckets->shape;
    const int64_t tiles = ceil_divide(e->n, TILE);
    for (int64_t first = 0; first < tiles; first += ROUND) {
        const int n = (int)min_i64(ROUND, tiles - first);
        int owner[ROUND];
        assert_ok(buckets->ctx, coo_tiles_begin(buckets, n));
        for (int t = 0; t < n; t++)
            owner[t] = (int)(support_random(seed) % (uint64_t)threads);
        /* one thread after another, so that tiles are not appended in order */
        for (int thread = threads - 1; thread >= 0; thread--)
            for (int t = 0; t < n; t++) {
                if (owner[t] != thread)
                    continue;
                for (int64_t k = (first + t) * TILE; k < min_i64(e->n, (first + t + 1) * TILE); k++)
                    assert_true(coo_append(buckets, &shape, &buckets->writer[thread], e->row[k], e->col[k], &e->val[k],
                                           sizeof e->val[k]));
                coo_tile_done(buckets, thread, t);
            }
    }
}

static void same_arrays(const struct shape *s, int threads, const spmv_matrix *want, const spmv_matrix *got)
{
    if (want->nnz == 0 && got->nnz == 0) /* there are no arrays to compare */
        return;
    if (want->nnz != got->nnz ||
        memcmp(want->row_ptr, got->row_ptr, (size_t)(want->rows + 1) * sizeof *want->row_ptr) != 0 ||
        memcmp(want->col, got->col, (size_t)want->nnz * sizeof *want->col) != 0 ||
        memcmp(want->val, got->val, (size_t)want->nnz * sizeof(double)) != 0)
        fail_msg("%lld x %lld, %lld of %lld entries, %d threads: other arrays", (long long)s->rows, (long long)s->cols,
                 (long long)s->n, (long long)s->expected, threads);
}

static void as_from_coo(void **state)
{
    (void)state;
    static const struct shape shapes[] = {{1000, 1000, 100000, 100000, false, false},
                                          {100000, 100000, 1500000, LARGE, false, true},
                                          {300, 2000000, 700000, LARGE, false, true},
                                          {2, 3000000, 600000, LARGE, false, true},
                                          {1, 1, 40000, LARGE, false, true},
                                          {100000, 100000, 900000, LARGE, true, true},
                                          {5000000, 5000000, 400000, LARGE, false, true},
                                          {6000000, 2147483647, 300000, 300000, false, false},
                                          {2000000, 2000000, 900000, LARGE, false, true},
                                          {50000, 50000, 0, LARGE, false, true}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        uint64_t seed = 20 + s;
        struct entries e = support_entries(shapes[s].rows, shapes[s].cols, shapes[s].n, false, &seed);
        for (int64_t k = 0; k < e.n && shapes[s].crowded; k++)
            e.row[k] = k % 8 > 0 ? 70000 + e.row[k] % 9 : e.row[k];
        spmv_context *one = support_context_on(SPMV_BACKEND_OMP, 1);
        spmv_matrix *want = NULL;
        int64_t duplicates = 0;
        assert_ok(one,
                  spmv_matrix_from_coo(one, e.rows, e.cols, e.n, e.row, e.col, e.val, SPMV_F64, &want, &duplicates));
        for (size_t t = 0; t < sizeof teams / sizeof teams[0]; t++) {
            spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, teams[t]);
            struct coo_buckets buckets = {.ctx = NULL};
            struct repeats repeats = {0, 0};
            spmv_matrix *got = NULL;
            assert_ok(ctx,
                      coo_buckets_begin(ctx, e.rows, e.cols, SPMV_F64, false, shapes[s].expected, teams[t], &buckets));
            assert_int_equal(buckets.large_pages, shapes[s].large);
            append_all(&buckets, &e, teams[t], &seed);
            assert_ok(ctx, coo_buckets_matrix(&buckets, INT64_MAX, &got, &repeats));
            same_arrays(&shapes[s], teams[t], want, got);
            assert_int_equal(repeats.all, duplicates);
            coo_buckets_free(&buckets);
            spmv_matrix_destroy(got);
            spmv_context_destroy(ctx);
        }
        spmv_matrix_destroy(want);
        spmv_context_destroy(one);
        support_entries_free(&e);
    }
}

/* A matrix with crowded entries needs more memory than estimated. This is known only when all
 * entries are there. */
static void crowds_are_counted(void **state)
{
    uint64_t seed = 5;
    struct entries e = support_entries(100000, 100000, 1500000, false, &seed);
    for (int64_t k = 0; k < e.n; k++)
        e.row[k] = e.row[k] % 1000;
    spmv_context *ctx = *state;
    const int64_t said = coo_buckets_bytes(e.rows, e.cols, SPMV_F64, false, e.n, 2);
    for (int more = 0; more < 2; more++) {
        struct coo_buckets buckets = {.ctx = NULL};
        struct repeats repeats = {0, 0};
        spmv_matrix *got = NULL;
        assert_ok(ctx, coo_buckets_begin(ctx, e.rows, e.cols, SPMV_F64, false, LARGE, 2, &buckets));
        append_all(&buckets, &e, 2, &seed);
        if (more == 0)
            assert_fails(ctx, coo_buckets_matrix(&buckets, said, &got, &repeats), SPMV_ERROR_MEMORY, "crowded");
        else
            assert_ok(ctx, coo_buckets_matrix(&buckets, said + e.n * 12, &got, &repeats));
        assert_true((got != NULL) == (more == 1));
        spmv_matrix_destroy(got);
        coo_buckets_free(&buckets);
    }
    support_entries_free(&e);
}

/* Rows of every length up to the one from which another sort is used, with repeated columns: the
 * order is stable. */
static void short_rows_in_order(void **state)
{
    (void)state;
    enum { ROWS = 700, LONGEST = 70 };
    uint64_t seed = 11;
    int64_t first[ROWS + 1];
    int32_t col[ROWS * LONGEST];
    double val[ROWS * LONGEST];
    int64_t n = 0, twice = 0, below = 0;
    for (int row = 0; row < ROWS; row++) {
        first[row] = n;
        for (int k = 0; k < row % (LONGEST - 5); k++, n++) {
            col[n] = (int32_t)(support_random(&seed) % 300);
            if (row == ROWS - 1 && k == 1)
                col[n] = INT32_MAX; /* also the value that pads a vector */
            val[n] = (double)n;
        }
    }
    first[ROWS] = n;
    spmv_matrix m = {
        .rows = ROWS, .cols = INT32_MAX, .nnz = n, .row_ptr = first, .col = col, .val = val, .type = SPMV_F64};
    struct repeats repeats = {0, 0};
    assert_true(rows_sort_short(&m, 0, ROWS, n, &repeats));
    for (int row = 0; row < ROWS; row++)
        for (int64_t k = first[row] + 1; k < first[row + 1]; k++) {
            assert_true(col[k] > col[k - 1] || (col[k] == col[k - 1] && val[k] > val[k - 1]));
            twice += col[k] == col[k - 1];
            below += col[k] == col[k - 1] && col[k] <= row;
        }
    assert_true(twice > 0);
    assert_int_equal(repeats.all, twice);
    assert_int_equal(repeats.lower, below);
    /* a longer unsorted row stays as it is */
    first[0] = 0;
    first[1] = LONGEST;
    for (int k = 0; k < LONGEST; k++)
        col[k] = LONGEST - k;
    m.rows = 1;
    assert_false(rows_sort_short(&m, 0, 1, LONGEST, &repeats));
    assert_int_equal(col[0], LONGEST);
}

SUPPORT_MAIN(cmocka_unit_test(as_from_coo), with_omp(crowds_are_counted, 2), cmocka_unit_test(short_rows_in_order))
