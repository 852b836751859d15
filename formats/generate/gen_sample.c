/* Random columns, random row lengths, random orders.
 *
 * Columns of a sparse row: draw, sort, remove repeats, draw as many again. The sort works in place
 * from the highest digit: P. McIlroy, K. Bostic, M. D. McIlroy, "Engineering radix sort", Computing
 * Systems 6(1), 1993 (American flag sort). Columns of a dense row: one decision per column, D. E.
 * Knuth, "The Art of Computer Programming" vol. 2, section 3.4.2, algorithm S.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/generate/gen_sample.h"

#include "formats/columns.h"

struct permutation permutation_make(uint64_t seed, uint64_t stream, int64_t size)
{
    int bits = 0;
    while (bits < 63 && (int64_t)1 << bits < size)
        bits++;
    struct permutation p = {
        .size = (uint64_t)size, .mask = ((uint64_t)1 << bits) - 1, .shift = bits > 2 ? bits / 2 : 1};
    for (int r = 0; r < PERMUTATION_ROUNDS; r++) {
        p.factor[r] = random_bits(seed, stream, (uint64_t)(2 * r)) | 1;
        p.term[r] = random_bits(seed, stream, (uint64_t)(2 * r + 1));
    }
    return p;
}

/* Up to SHORT_ROW columns, insertion sort is as fast as a pass over the buckets. */
enum { SHORT_ROW = 48, DIGIT_BITS = 8, BUCKETS = 1 << DIGIT_BITS };

/* Sorts columns whose bits from shift + DIGIT_BITS on agree. */
static void flag_sort(int32_t *col, int64_t n, int shift)
{
    int64_t next[BUCKETS] = {0}, end[BUCKETS];
    if (n <= SHORT_ROW) {
        sort_by_insertion(col, n);
        return;
    }
    for (int64_t k = 0; k < n; k++)
        next[(col[k] >> shift) & (BUCKETS - 1)]++;
    int64_t sum = 0;
    for (int b = 0; b < BUCKETS; b++) {
        const int64_t count = next[b];
        next[b] = sum;
        sum += count;
        end[b] = sum;
    }
    for (int b = 0; b < BUCKETS; b++) {
        while (next[b] < end[b]) {
            const int64_t from = next[b];
            const int32_t c = col[from];
            const int64_t to = next[(c >> shift) & (BUCKETS - 1)]++;
            col[from] = col[to];
            col[to] = c;
        }
    }
    for (int b = 0; b < BUCKETS && shift > 0; b++) {
        const int64_t first = b == 0 ? 0 : end[b - 1];
        flag_sort(col + first, end[b] - first, shift > DIGIT_BITS ? shift - DIGIT_BITS : 0);
    }
}

void sort_columns(int32_t *col, int64_t n, int64_t cols)
{
    int shift = 0;
    while ((cols - 1) >> shift >= BUCKETS)
        shift++;
    flag_sort(col, n, shift);
}

/* Removes repeats from sorted columns; returns how many remain. */
static int64_t drop_repeated(int32_t *col, int64_t n)
{
    int64_t kept = 1;
    for (int64_t k = 1; k < n; k++) {
        const int32_t c = col[k];
        if (c != col[kept - 1])
            col[kept++] = c;
    }
    return kept;
}

static void sample_dense(uint64_t key, int64_t n, int64_t cols, int32_t *col)
{
    int64_t taken = 0;
    for (int64_t c = 0; taken < n; c++) {
        const uint64_t left = (uint64_t)(cols - c);
        col[taken] = (int32_t)c; /* overwritten unless the column is selected */
        taken += random_below(random_bits(key, 0, (uint64_t)c), left) < (uint64_t)(n - taken);
    }
}

/* Uses 53 bits: 32 would favour some columns if there are many. With hubs: the rank cols u^3 has
 * the distribution function (rank / cols)^(1/3). */
static inline int32_t draw_column(int64_t cols, const struct permutation *hubs, uint64_t bits)
{
    const double u = random_uniform(bits);
    if (hubs == NULL)
        return (int32_t)((double)cols * u);
    return (int32_t)permutation_at(hubs, (int64_t)((double)cols * (u * u * u)));
}

void sample_columns(uint64_t seed, uint64_t stream, int64_t row, int64_t n, int64_t cols,
                    const struct permutation *hubs, int32_t *col)
{
    const uint64_t key = random_bits(seed, stream, (uint64_t)row);
    if (n > cols / SAMPLE_DENSE) {
        sample_dense(key, n, cols, col);
        return;
    }
    /* On average at least 60 of 100 draws are new: the n most likely columns have a share of (n /
     * cols)^(1/3). */
    uint64_t draw = 0;
    for (int64_t have = 0; have < n;) {
        for (int64_t k = have; k < n; k++)
            col[k] = draw_column(cols, hubs, random_bits(key, 0, draw++));
        sort_columns(col, n, cols);
        have = drop_repeated(col, n);
    }
}

/* Weights are relative to the weight of the mode; the table ends where they fall below this. */
static const double NEGLIGIBLE = 0x1p-70;

/* weight(k + 1) / weight(k) */
static double ratio_up(int64_t trials, double odds, int64_t k)
{
    return (double)(trials - k) / (double)(k + 1) * odds;
}

spmv_status binomial_make(spmv_context *ctx, int64_t trials, double mean, struct binomial *law)
{
    const double p = trials > 0 ? mean / (double)trials : 0;
    const int64_t mode = p >= 1 ? trials : min_i64(trials, (int64_t)((double)(trials + 1) * p));
    const double odds = p >= 1 ? 0 : p / (1 - p); /* with p = 1 only the mode is possible */
    int64_t low = mode, high = mode;
    double w = 1;
    while (high < trials && (w *= ratio_up(trials, odds, high)) > NEGLIGIBLE)
        high++;
    w = 1;
    while (low > 0 && p < 1 && (w /= ratio_up(trials, odds, low - 1)) > NEGLIGIBLE)
        low--;
    void *table = NULL;
    *law = (struct binomial){.least = low, .count = high - low + 1};
    const spmv_status st = host_alloc(ctx, law->count * (int64_t)sizeof(double), "the law of the row lengths", &table);
    if (st != SPMV_OK)
        return st;
    law->upto = table;
    law->upto[mode - low] = 1;
    for (int64_t k = mode; k < high; k++)
        law->upto[k + 1 - low] = law->upto[k - low] * ratio_up(trials, odds, k);
    for (int64_t k = mode; k > low; k--)
        law->upto[k - 1 - low] = law->upto[k - low] / ratio_up(trials, odds, k - 1);
    double sum = 0;
    for (int64_t i = 0; i < law->count; i++)
        law->upto[i] = sum += law->upto[i];
    for (int64_t i = 0; i < law->count; i++)
        law->upto[i] /= sum;
    return SPMV_OK;
}

void binomial_free(struct binomial *law)
{
    host_free(law->upto);
    law->upto = NULL;
}

/* The first outcome whose upto exceeds the random number. */
int64_t binomial_draw(const struct binomial *law, uint64_t bits)
{
    const double u = random_uniform(bits);
    int64_t low = 0, high = law->count - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (law->upto[middle] > u)
            high = middle;
        else
            low = middle + 1;
    }
    return law->least + low;
}
