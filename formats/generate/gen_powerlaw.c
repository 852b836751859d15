/* A square matrix with row lengths of a power law and with hub columns.
 *
 * Lengths: the longest row has MAX entries. The others are samples of the density x^-ALPHA between
 * x0 and MAX (a Pareto law cut off at MAX), one from each of ROWS - 1 equal parts of its
 * distribution, so that their sum hardly depends on chance. x0 is chosen for the mean MEAN. A
 * fractional length is rounded up or down at random with the right mean; rows may be empty if x0 is
 * below 1.
 *
 * Columns: the random order of the rows in which lengths are assigned also ranks the columns, so
 * that row i and column i are both long or both short. The column of rank r is drawn with
 * probability ((r + 1)^(1/3) - r^(1/3)) / ROWS^(1/3), which falls as r^(-2/3). Column lengths then
 * have a tail of exponent 2.5, as the degrees of many networks have (A. Clauset, C. R. Shalizi, M.
 * E. J. Newman, "Power-law distributions in empirical data", SIAM Review 51, 2009: 2 to 3). Columns
 * drawn twice for a row are drawn again. Rows longer than ROWS / 16 have uniform columns.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "formats/generate/gen_rows.h"

enum { STREAM_LENGTHS = 0x706c6c, STREAM_ROUNDING = 0x706c72, STREAM_COLUMNS = 0x706c63, STREAM_ORDER = 0x706c6f };

/* A larger exponent gives one entry in nearly every row, and its integrals would overflow. */
static const double ALPHA_MAX = 10;

struct powerlaw {
    uint64_t seed;
    int64_t rows, max;
    double alpha, x0, span; /* span: log(max / x0) */
    struct permutation order;
};

/* The integral of e^(-a s) for 0 <= s <= length. */
static double integral(double a, double length)
{
    const double product = a * length;
    return fabs(product) < 1e-8 ? length * (1 - product / 2) : -expm1(-product) / a;
}

/* The mean of the density x^-alpha between max e^-length and max: with x = max e^-s, a quotient of
 * two such integrals. */
static double law_mean(double alpha, double max, double length)
{
    return max * integral(2 - alpha, length) / integral(1 - alpha, length);
}

/* log(max / x0) for a mean; negative if there is none. The mean decreases as the result grows. */
static double solve_length(double alpha, double max, double mean)
{
    double low = 0, high = log(max) + 30; /* x0 >= 1e-13 */
    if (!(mean <= max) || law_mean(alpha, max, high) > mean)
        return -1;
    for (int step = 0; step < 100; step++) {
        const double middle = (low + high) / 2;
        if (middle > 0 && law_mean(alpha, max, middle) > mean)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* The quantile u of the law. */
static double quantile(const struct powerlaw *p, double u)
{
    const double a = 1 - p->alpha, product = a * p->span;
    if (fabs(product) < 1e-8)
        return p->x0 * exp(u * p->span);
    return p->x0 * exp(log1p(u * expm1(product)) / a);
}

static int64_t powerlaw_length(const void *rule, int64_t rank)
{
    const struct powerlaw *p = rule;
    if (rank == 0)
        return p->max;
    const double part =
        (double)(p->rows - 1 - rank) + random_uniform(random_bits(p->seed, STREAM_LENGTHS, (uint64_t)rank));
    const double x = quantile(p, part / (double)(p->rows - 1));
    const double up = random_uniform(random_bits(p->seed, STREAM_ROUNDING, (uint64_t)rank));
    return min_i64(p->max, (int64_t)(x + up));
}

static void powerlaw_fill(const void *rule, int64_t row, int64_t length, int32_t *col)
{
    const struct powerlaw *p = rule;
    sample_columns(p->seed, STREAM_COLUMNS, row, length, p->rows, &p->order, col);
}

spmv_status generate_powerlaw(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    struct generator_argument a[4];
    spmv_status st = generator_arguments(ctx, request, "nddn",
                                         "with integers from 1 and decimals MEAN and ALPHA such as 2.5", a, NULL);
    if (st == SPMV_OK)
        st = generator_columns(ctx, request, a[0].n);
    if (st != SPMV_OK)
        return st;
    const double mean = a[1].real, alpha = a[2].real, max = a[3].real;
    if (a[0].n < 2 || a[3].n > a[0].n || alpha > ALPHA_MAX)
        return generator_fail(ctx, request, "with ROWS from 2, a MAX up to ROWS and an ALPHA up to 10");
    struct powerlaw p = {.seed = request->seed, .rows = a[0].n, .max = a[3].n, .alpha = alpha};
    p.span = solve_length(alpha, max, (a[0].real * mean - max) / (a[0].real - 1));
    if (p.span < 0) {
        char why[160];
        snprintf(why, sizeof why, "with a MEAN from %.3g to MAX, the range of this law",
                 (max + (a[0].real - 1) * law_mean(alpha, max, log(max) + 30)) / a[0].real);
        return generator_fail(ctx, request, why);
    }
    p.x0 = max * exp(-p.span);
    p.order = permutation_make(request->seed, STREAM_ORDER, p.rows);
    const struct generator_rows rows = {.rows = p.rows,
                                        .cols = p.rows,
                                        .entries = a[0].real * mean,
                                        .rule = &p,
                                        .length = powerlaw_length,
                                        .fill = powerlaw_fill,
                                        .order = &p.order};
    return generator_build(ctx, request, &rows, matrix);
}
