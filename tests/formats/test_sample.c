/* Random columns, orders and lengths: their exact guarantees, and their distributions within a few
 * standard deviations, for fixed seeds.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "formats/generate/gen_sample.h"
#include "tests/support/support_coo.h"

static int compare_columns(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void sorting_against_qsort(void **state)
{
    (void)state;
    static const int64_t lengths[] = {0, 1, 2, 47, 48, 49, 50, 1000, 30000};
    static const int64_t ranges[] = {1, 2, 256, 257, 70000, 1 << 24, INT32_MAX};
    uint64_t random = 5;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
            const int64_t n = lengths[l];
            int32_t *col = support_array(n, sizeof *col), *expected = support_array(n, sizeof *expected);
            for (int64_t k = 0; k < n; k++)
                col[k] = expected[k] = (int32_t)(support_random(&random) % (uint64_t)ranges[r]);
            qsort(expected, (size_t)n, sizeof *expected, compare_columns);
            sort_columns(col, n, ranges[r]);
            assert_memory_equal(col, expected, (size_t)n * sizeof *col);
            support_free(col, expected);
        }
    }
}

static void check_order(uint64_t seed, int64_t size)
{
    const struct permutation p = permutation_make(seed, 3, size);
    bool *seen = support_array(size, sizeof *seen);
    for (int64_t i = 0; i < size; i++) {
        const int64_t to = permutation_at(&p, i);
        assert_true(to >= 0 && to < size && !seen[to]);
        seen[to] = true;
    }
    free(seen);
}

static void orders_are_permutations(void **state)
{
    (void)state;
    for (int64_t size = 1; size <= 300; size++)
        check_order((uint64_t)size, size);
    check_order(1, 65536);
    check_order(2, 65537);
    /* Another seed gives another order; about one number is expected to stay in place. */
    const struct permutation a = permutation_make(1, 3, 100000), b = permutation_make(2, 3, 100000);
    int64_t same = 0, stay = 0;
    for (int64_t i = 0; i < 100000; i++) {
        same += permutation_at(&a, i) == permutation_at(&b, i);
        stay += permutation_at(&a, i) == i;
    }
    assert_true(same < 10 && stay < 10);
}

/* Columns are distinct, ascending and in range; repeatable; another row has other columns. */
static void check_sample(int64_t n, int64_t cols, const struct permutation *hubs)
{
    int32_t *a = support_array(n, sizeof *a), *b = support_array(n, sizeof *b);
    sample_columns(1, 2, 3, n, cols, hubs, a);
    for (int64_t k = 0; k < n; k++)
        assert_true(a[k] >= 0 && a[k] < cols && (k == 0 || a[k - 1] < a[k]));
    sample_columns(1, 2, 3, n, cols, hubs, b);
    assert_memory_equal(a, b, (size_t)n * sizeof *a);
    if (n > 20 && n < cols - 20) {
        sample_columns(1, 2, 4, n, cols, hubs, b);
        assert_memory_not_equal(a, b, (size_t)n * sizeof *a);
    }
    support_free(a, b);
}

static void samples_are_distinct(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 15, 16, 17, 33, 1000, 4096};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const struct permutation hubs = permutation_make(9, 9, sizes[s]);
        const int64_t step = sizes[s] > 100 ? 37 : 1;
        for (int64_t n = 0; n <= sizes[s]; n += step) {
            check_sample(n, sizes[s], NULL);
            check_sample(n, sizes[s], &hubs);
        }
        check_sample(sizes[s], sizes[s], NULL);
    }
    const struct permutation hubs = permutation_make(9, 9, 1600000);
    /* The last sparse row and the first dense one. */
    for (int64_t n = 99999; n <= 100001; n++) {
        check_sample(n, 1600000, NULL);
        check_sample(n, 1600000, &hubs);
    }
    check_sample(100000, INT32_MAX, NULL);
}

/* Counts how often each column occurs in many rows, and how often two neighbours do. The latter
 * detects samples that are too regular or too clustered. */
static void check_uniform(int64_t n, int64_t cols)
{
    enum { ROWS = 40000, MOST = 64 };
    int32_t col[MOST];
    double count[MOST] = {0}, neighbours = 0, sum = 0;
    for (int64_t row = 0; row < ROWS; row++) {
        sample_columns(11, 12, row, n, cols, NULL, col);
        for (int64_t k = 0; k < n; k++) {
            count[col[k]]++;
            neighbours += k > 0 && col[k] == col[k - 1] + 1;
        }
    }
    /* The count of a column is binomial. The sum of squared deviations in units of the variance has
     * the mean cols and cols - 1 degrees of freedom. */
    const double p = (double)n / (double)cols;
    for (int64_t c = 0; c < cols; c++)
        sum += (count[c] - ROWS * p) * (count[c] - ROWS * p) / (ROWS * p * (1 - p));
    assert_true(fabs(sum - (double)cols) < 5 * sqrt(2.0 * (double)cols));
    const double expected = ROWS * (double)(cols - 1) * p * (double)(n - 1) / (double)(cols - 1);
    assert_true(fabs(neighbours - expected) < 5 * sqrt(expected));
}

static void samples_are_uniform(void **state)
{
    (void)state;
    check_uniform(2, 64); /* drawn and sorted */
    check_uniform(4, 64);
    check_uniform(5, 64); /* each column is tested in turn */
    check_uniform(40, 64);
    /* The largest number of columns: lower half, odd columns. */
    static int32_t col[100000];
    int64_t low = 0, odd = 0;
    sample_columns(1, 2, 3, 100000, INT32_MAX, NULL, col);
    for (int k = 0; k < 100000; k++) {
        low += col[k] < INT32_MAX / 2;
        odd += col[k] & 1;
    }
    /* 159: sqrt(n / 4) */
    assert_true(labs((long)low - 50000) < 5 * 159 && labs((long)odd - 50000) < 5 * 159);
}

/* One column for each row: rank r has probability ((r + 1)^(1/3) - r^(1/3)) / cols^(1/3). */
static void hubs_as_promised(void **state)
{
    (void)state;
    enum { COLS = 1000, ROWS = 100000 };
    const struct permutation hubs = permutation_make(7, 8, COLS);
    static double count[COLS];
    for (int64_t row = 0; row < ROWS; row++) {
        int32_t col;
        sample_columns(5, 6, row, 1, COLS, &hubs, &col);
        count[col]++;
    }
    for (int rank = 0; rank < COLS; rank++) {
        const double p = (cbrt(rank + 1) - cbrt(rank)) / cbrt(COLS);
        assert_true(fabs(count[permutation_at(&hubs, rank)] - ROWS * p) < 5 * sqrt(ROWS * p));
    }
}

static void check_binomial(spmv_context *ctx, int64_t trials, double mean)
{
    enum { DRAWS = 20000 };
    struct binomial law;
    double sum = 0, squares = 0;
    assert_ok(ctx, binomial_make(ctx, trials, mean, &law));
    assert_true(law.least >= 0 && law.least + law.count - 1 <= trials && law.upto[law.count - 1] == 1);
    for (int64_t i = 0; i < DRAWS; i++) {
        const double n = (double)binomial_draw(&law, random_bits(1, 2, (uint64_t)i));
        sum += n;
        squares += (n - mean) * (n - mean);
    }
    const double variance = trials > 0 ? mean * (1 - mean / (double)trials) : 0;
    assert_true(fabs(sum / DRAWS - mean) <= 4 * sqrt(variance / DRAWS));
    /* The variance of a squared deviation is at most 2 variance^2 + variance. */
    assert_true(fabs(squares / DRAWS - variance) <= 5 * sqrt((2 * variance * variance + variance) / DRAWS));
    binomial_free(&law);
}

static void binomial_laws(void **state)
{
    spmv_context *ctx = *state;
    struct binomial law;
    static const double halves[] = {0.125, 0.5, 0.875, 1}; /* three trials with p = 1/2 */
    check_binomial(ctx, 0, 0);
    check_binomial(ctx, 1, 0);
    check_binomial(ctx, 1, 1);
    check_binomial(ctx, 1, 0.25);
    check_binomial(ctx, 10, 10);
    check_binomial(ctx, 10, 9.5);
    check_binomial(ctx, 1000000, 2);
    check_binomial(ctx, 1000000, 0.001);
    check_binomial(ctx, 1000, 700);
    check_binomial(ctx, INT32_MAX, 1e9);
    assert_ok(ctx, binomial_make(ctx, 3, 1.5, &law));
    assert_true(law.least == 0 && law.count == 4);
    for (int k = 0; k < 4; k++)
        assert_true(fabs(law.upto[k] - halves[k]) < 1e-15);
    binomial_free(&law);
}

SUPPORT_MAIN(cmocka_unit_test(sorting_against_qsort), cmocka_unit_test(orders_are_permutations),
             cmocka_unit_test(samples_are_distinct), cmocka_unit_test(samples_are_uniform),
             cmocka_unit_test(hubs_as_promised), with_context(binomial_laws))
