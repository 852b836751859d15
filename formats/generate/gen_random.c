/* Random columns, all sets of a given size equally likely: rows around a mean, rows of one length,
 * mostly empty rows.
 *
 * The uniform matrix is the random graph of E. N. Gilbert, "Random graphs", Annals of Mathematical
 * Statistics 30, 1959: every cell holds an entry with the same probability, independently. So a
 * row's length is binomial, and every set of that many columns is equally likely.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/generate/gen_rows.h"

enum { STREAM_LENGTHS = 0x6c656e, STREAM_COLUMNS = 0x636f6c, STREAM_ORDER = 0x6f7264 };

struct random_rows {
    uint64_t seed;
    int64_t cols;
    int64_t empty; /* number of empty rows: the first ones, before the random reordering */
    int64_t least; /* length = least + a number drawn from the law */
    struct binomial law;
};

static int64_t random_length(const void *rule, int64_t row)
{
    const struct random_rows *r = rule;
    if (row < r->empty)
        return 0;
    return r->least + binomial_draw(&r->law, random_bits(r->seed, STREAM_LENGTHS, (uint64_t)row));
}

static void random_fill(const void *rule, int64_t row, int64_t length, int32_t *col)
{
    const struct random_rows *r = rule;
    sample_columns(r->seed, STREAM_COLUMNS, row, length, r->cols, NULL, col);
}

spmv_status generate_uniform(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    struct generator_argument a[3];
    struct random_rows rule = {.seed = request->seed};
    TRY(generator_arguments(ctx, request, "nnd", "with integers from 1 and a decimal MEAN such as 2.5", a, NULL));
    TRY(generator_columns(ctx, request, a[1].n));
    if (a[2].real > a[1].real) {
        st = generator_fail(ctx, request, "with a MEAN up to COLS");
        goto done;
    }
    TRY(generator_fits(ctx, request, a[0].n, a[1].n, a[0].real * a[2].real, 0));
    rule.cols = a[1].n;
    TRY(binomial_make(ctx, rule.cols, a[2].real, &rule.law));
    const struct generator_rows rows = {.rows = a[0].n,
                                        .cols = rule.cols,
                                        .entries = a[0].real * a[2].real,
                                        .rule = &rule,
                                        .length = random_length,
                                        .fill = random_fill};
    TRY(generator_build(ctx, request, &rows, matrix));
done:
    binomial_free(&rule.law);
    return st;
}

/* Default mean length of a row that is not empty. */
static const double EMPTY_MEAN = 8;

spmv_status generate_empty(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    struct generator_argument a[3] = {{0}};
    struct random_rows rule = {.seed = request->seed, .least = 1};
    int given = 0;
    TRY(generator_arguments(ctx, request, "nd?d", "with a number of ROWS from 1 and decimals such as 0.95", a, &given));
    TRY(generator_columns(ctx, request, a[0].n));
    const double share = a[1].real;
    const double mean = given > 2 ? a[2].real : a[0].real < EMPTY_MEAN ? a[0].real : EMPTY_MEAN;
    if (share > 1 || mean < 1 || mean > a[0].real) {
        st = generator_fail(ctx, request, "with a SHARE from 0 to 1 and a MEAN from 1 to ROWS");
        goto done;
    }
    const double entries = a[0].real * (1 - share) * mean;
    TRY(generator_fits(ctx, request, a[0].n, a[0].n, entries, 0));
    rule.cols = a[0].n;
    rule.empty = (int64_t)(share * a[0].real + 0.5);
    /* A row that is not empty has one entry, and a random number of further ones. */
    TRY(binomial_make(ctx, rule.cols - 1, mean - 1, &rule.law));
    const struct permutation order = permutation_make(request->seed, STREAM_ORDER, a[0].n);
    const struct generator_rows rows = {.rows = a[0].n,
                                        .cols = a[0].n,
                                        .entries = entries,
                                        .rule = &rule,
                                        .length = random_length,
                                        .fill = random_fill,
                                        .order = &order};
    TRY(generator_build(ctx, request, &rows, matrix));
done:
    binomial_free(&rule.law);
    return st;
}

static int64_t same_length(const void *rule, int64_t row)
{
    (void)row;
    return ((const struct random_rows *)rule)->least;
}

spmv_status generate_longrows(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    int64_t n[3];
    const spmv_status st = generator_integers(ctx, request, 3, n);
    if (st != SPMV_OK)
        return st;
    if (n[2] > n[1])
        return generator_fail(ctx, request, "with a LEN up to COLS");
    const struct random_rows rule = {.seed = request->seed, .cols = n[1], .least = n[2]};
    const struct generator_rows rows = {.rows = n[0],
                                        .cols = n[1],
                                        .entries = (double)n[0] * (double)n[2],
                                        .rule = &rule,
                                        .length = same_length,
                                        .fill = random_fill};
    return generator_build(ctx, request, &rows, matrix);
}
