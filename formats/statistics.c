/* Statistics of a matrix: one pass over the rows, one over the values, and the comparison with the
 * transpose.
 *
 * All counts are integers, so the results do not depend on the distribution of rows to threads;
 * means and the standard deviation are computed from them at the end. The standard deviation uses
 * the sum of (length - m)^2, where m is the mean rounded down: exact in two words and without
 * cancellation (T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for computing the sample
 * variance", The American Statistician 37(3), 1983: shifted data).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/loops/ops.h"
#include "formats/locality.h"
#include "formats/matrix_internal.h"

/* A row of A or of its transpose. */
struct row {
    const int32_t *col;
    const void *val; /* NULL: every entry is 1 */
    int64_t n;
};

static struct row row_of(const spmv_csr *a, int64_t row)
{
    const int64_t first = row_first(a, row), n = row_first(a, row + 1) - first;
    if (n == 0)
        return (struct row){.n = 0};
    return (struct row){.col = a->col + first, .val = value_at(a->val, first, spmv_type_size(a->type)), .n = n};
}

/* The counts of one thread. */
struct tally {
    int64_t row_min, row_max, max_row;
    int64_t empty_rows, bandwidth, extent, diagonal;
    uint64_t squares_low, squares_high; /* the sum of (length - m)^2 */
    int64_t histogram[SPMV_HISTOGRAM_BINS];
};

static const struct tally tally_nothing = {.row_min = INT64_MAX, .row_max = -1, .max_row = -1};

static void add_squares(struct tally *t, uint64_t low, uint64_t high)
{
    t->squares_low += low;
    t->squares_high += high + (t->squares_low < low);
}

/* 0 for an empty row, else the number of binary digits of its length. */
static int histogram_bin(int64_t length)
{
    int bin = 0;
    for (; length > 0 && bin < SPMV_HISTOGRAM_BINS - 1; length >>= 1)
        bin++;
    return bin;
}

static void tally_length(struct tally *t, int64_t row, int64_t length, int64_t mean)
{
    const uint64_t deviation = (uint64_t)(length > mean ? length - mean : mean - length);
    t->row_min = min_i64(t->row_min, length);
    if (length > t->row_max || (length == t->row_max && row < t->max_row)) {
        t->row_max = length;
        t->max_row = row;
    }
    t->empty_rows += length == 0;
    t->histogram[histogram_bin(length)]++;
    add_squares(t, deviation * deviation, 0);
}

static void tally_columns(struct tally *t, int64_t row, struct row r)
{
    if (r.n == 0)
        return;
    /* Columns ascend, so the first and the last are the farthest from the diagonal. */
    const int64_t first = r.col[0], last = r.col[r.n - 1];
    t->bandwidth = max_i64(t->bandwidth, max_i64(row - first, last - row));
    t->extent += last - first + 1;
    for (int64_t k = 0; k < r.n; k++)
        t->diagonal += r.col[k] == row;
}

static void tally_merge(struct tally *to, const struct tally *from)
{
    to->row_min = min_i64(to->row_min, from->row_min);
    if (from->row_max > to->row_max || (from->row_max == to->row_max && from->max_row < to->max_row)) {
        to->row_max = from->row_max;
        to->max_row = from->max_row;
    }
    to->empty_rows += from->empty_rows;
    to->bandwidth = max_i64(to->bandwidth, from->bandwidth);
    to->extent += from->extent;
    to->diagonal += from->diagonal;
    add_squares(to, from->squares_low, from->squares_high);
    for (int b = 0; b < SPMV_HISTOGRAM_BINS; b++)
        to->histogram[b] += from->histogram[b];
}

static void tally_rows(spmv_context *ctx, const spmv_csr *a, struct tally *all)
{
    const int64_t mean = a->rows > 0 ? a->nnz / a->rows : 0;
    *all = tally_nothing;
#pragma omp parallel num_threads(host_team(ctx, a->rows + a->nnz))
    {
        struct tally mine = tally_nothing;
#pragma omp for schedule(dynamic, 512)
        for (int64_t row = 0; row < a->rows; row++) {
            const struct row r = row_of(a, row);
            tally_length(&mine, row, r.n, mean);
            tally_columns(&mine, row, r);
        }
#pragma omp critical(tally_rows)
        tally_merge(all, &mine);
    }
}

/* Population standard deviation: sqrt(mean of d^2 - (mean of d)^2), d = length - m, where 0 <= mean
 * of d < 1. */
static double deviation_of_rows(const spmv_csr *a, const struct tally *t)
{
    const double rows = (double)a->rows;
    const double square_mean = (ldexp((double)t->squares_high, 64) + (double)t->squares_low) / rows;
    const double mean = (double)(a->nnz % a->rows) / rows;
    return sqrt(fmax(0, square_mean - mean * mean));
}

enum { PATTERN_SYMMETRIC = 1, SYMMETRIC = 2, SKEW_SYMMETRIC = 4, HERMITIAN = 8, ALL_FLAGS = 15 };

#define TEMPLATE "formats/statistics_typed.h"
#include "core/each/each_value.h"

static void count_values(spmv_context *ctx, const spmv_csr *a, int64_t *zero_count, int64_t *odd_count)
{
    static void (*const run[SPMV_TYPE_LIMIT])(const void *, int64_t, int64_t *, int64_t *) = VALUE_TABLE(count_values);
    enum { TILE = 1 << 14 };
    const int64_t tiles = a->val == NULL ? 0 : ceil_divide(a->nnz, TILE);
    int64_t zeros = 0, odd = 0;
#pragma omp parallel for num_threads(host_team(ctx, a->nnz)) schedule(static) reduction(+ : zeros, odd)
    for (int64_t t = 0; t < tiles; t++)
        run[a->type](value_at(a->val, t * TILE, spmv_type_size(a->type)), min_i64(TILE, a->nnz - t * TILE), &zeros,
                     &odd);
    *zero_count = zeros;
    *odd_count = odd;
}

/* Counts columns without an entry. The first thread to find an entry in a column marks the column
 * in a byte. */
static spmv_status count_empty_columns(spmv_context *ctx, const spmv_csr *a, int64_t *empty)
{
    void *memory = NULL;
    int64_t used = 0;
    const spmv_status st = host_alloc(ctx, a->cols, "marking columns", &memory);
    if (st != SPMV_OK)
        return st;
    unsigned char *const seen = memory;
    if (a->cols > 0)
        memset(seen, 0, (size_t)a->cols);
#pragma omp parallel for num_threads(host_team(ctx, a->nnz)) schedule(static) reduction(+ : used)
    for (int64_t k = 0; k < a->nnz; k++) {
        unsigned char before;
        /* Read first: most columns are marked already, and a write takes the cache line from other
         * cores. */
#pragma omp atomic read
        before = seen[a->col[k]];
        if (before)
            continue;
#pragma omp atomic capture
        {
            before = seen[a->col[k]];
            seen[a->col[k]] = 1;
        }
        used += !before;
    }
    host_free(memory);
    *empty = a->cols - used;
    return SPMV_OK;
}

static spmv_status compare_with_transpose(spmv_context *ctx, const spmv_csr *a, int *flags_out)
{
    static int (*const run[SPMV_TYPE_LIMIT])(struct row, struct row) = VALUE_TABLE(compare);
    int (*const compare)(struct row, struct row) = run[a->val == NULL ? SPMV_I32 : a->type];
    spmv_matrix *transposed = NULL;
    spmv_csr b;
    int flags = ALL_FLAGS;
    const spmv_status st = csr_transpose(ctx, a, &transposed);
    if (st != SPMV_OK)
        return st;
    spmv_matrix_view(transposed, &b);
#pragma omp parallel for num_threads(heavy_team(ctx, a->rows + a->nnz)) schedule(dynamic, 512) reduction(& : flags)
    for (int64_t row = 0; row < a->rows; row++)
        if (flags != 0)
            flags &= compare(row_of(a, row), row_of(&b, row));
    spmv_matrix_destroy(transposed);
    *flags_out = flags;
    return SPMV_OK;
}

static void fill_rows(const spmv_csr *a, const struct tally *t, spmv_statistics *s)
{
    s->empty_rows = t->empty_rows;
    s->bandwidth = t->bandwidth;
    s->diagonal = t->diagonal;
    memcpy(s->histogram, t->histogram, sizeof s->histogram);
    s->max_row = t->max_row;
    if (a->rows == 0)
        return;
    s->row_min = t->row_min;
    s->row_max = t->row_max;
    s->row_mean = (double)a->nnz / (double)a->rows;
    s->row_std = deviation_of_rows(a, t);
    if (t->empty_rows < a->rows)
        s->row_extent = (double)t->extent / (double)(a->rows - t->empty_rows);
}

spmv_status spmv_matrix_statistics(spmv_context *ctx, const spmv_csr *a, spmv_statistics *statistics, size_t size)
{
    spmv_status st = SPMV_OK;
    spmv_statistics s = {.size = sizeof s};
    struct tally tally;
    struct matrix_locality locality;
    int flags = 0;
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (statistics == NULL || size < sizeof s.size)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_matrix_statistics: the struct is NULL or has the wrong size (%zu bytes)", size);
    result_write(statistics, size, &s, sizeof s);
    TRY(csr_check(ctx, "spmv_matrix_statistics", a, CSR_SORTED));
    s.rows = a->rows;
    s.cols = a->cols;
    s.nnz = a->nnz;
    tally_rows(ctx, a, &tally);
    fill_rows(a, &tally, &s);
    matrix_locality(ctx, a, &locality);
    s.bw_frac = locality.bw_frac;
    s.avg_neighbours = locality.avg_neighbours;
    s.cross_row_similarity = locality.cross_row_similarity;
    count_values(ctx, a, &s.explicit_zeros, &s.not_finite);
    TRY(count_empty_columns(ctx, a, &s.empty_cols));
    s.square = a->rows == a->cols;
    if (s.square)
        TRY(compare_with_transpose(ctx, a, &flags));
    s.pattern_symmetric = (flags & PATTERN_SYMMETRIC) != 0;
    s.symmetric = (flags & SYMMETRIC) != 0;
    s.skew_symmetric = (flags & SKEW_SYMMETRIC) != 0;
    s.hermitian = (flags & HERMITIAN) != 0;
    result_write(statistics, size, &s, sizeof s);
done:
    return st;
}
