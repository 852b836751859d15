/* Row lengths of a twin: a body of rows and, if the standard deviation requires it, a tail of long
 * ones.
 *
 * The body is logistic if the longest row is near the mean, else log-logistic, cut off at both
 * ends. These have quantiles in closed form, and location and scale give any mean and deviation in
 * range. Both parameters are found by bisection over the ranks, most of them in strata. The tail is
 * a power law, max (k + 1)^-a for k = 0 to K - 1; its exponent supplies the squares that the body
 * lacks. Rank r of all rows gets the length of quantile (r + 1/2) / rows, so the lengths follow the
 * distribution without sampling noise. The sum is then corrected to nnz one by one.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "formats/generate/random.h"
#include "formats/generate/twin.h"

enum { STREAM_CLUSTERS = 0x67727073 }; /* of random.h: order of the clusters */

enum {
    /* ranks at either end that are evaluated one by one, because they have most of the squares */
    SINGLES = 512,
    STRATA = 2048,      /* strata of the other ranks */
    BISECTIONS = 44,    /* to 2^-44 of the interval */
    TAIL_MOST = 4096,   /* rows of the tail, at most */
    CLUSTER_MOST = 4096 /* rows of similar length in a cluster, at most */
};
static const double BODY_CV =
    1.0; /* limit of the body's standard deviation over its mean, if a tail can supply the rest */

struct body {
    bool logarithmic;
    double location, scale;
    int64_t low, high;
};

static inline int64_t body_length(const struct body *b, double logit)
{
    double x = b->location + b->scale * logit;
    if (b->logarithmic)
        x = exp(x);
    return x <= (double)b->low ? b->low : x >= (double)b->high ? b->high : (int64_t)(x + 0.5);
}

static inline double logit_of_rank(int64_t rank, int64_t ranks)
{
    return log(((double)rank + 0.5) / ((double)(ranks - rank) - 0.5));
}

/* The ranks in strata. */
struct strata {
    int count;
    double logit[2 * SINGLES + STRATA], weight[2 * SINGLES + STRATA];
};

static void add_stratum(struct strata *s, double logit, double weight)
{
    s->logit[s->count] = logit;
    s->weight[s->count++] = weight;
}

static void make_strata(int64_t ranks, struct strata *s)
{
    const int64_t singles = min_i64(ranks / 2, SINGLES), rest = ranks - 2 * singles, strata = min_i64(rest, STRATA);
    s->count = 0;
    for (int64_t rank = 0; rank < singles; rank++)
        add_stratum(s, logit_of_rank(rank, ranks), 1);
    for (int64_t k = 0; k < strata; k++) {
        const double width = (double)rest / (double)strata, middle = (double)singles + ((double)k + 0.5) * width;
        add_stratum(s, log(middle / ((double)ranks - middle)), width);
    }
    for (int64_t rank = ranks - singles; rank < ranks; rank++)
        add_stratum(s, logit_of_rank(rank, ranks), 1);
}

static void body_sums(const struct body *b, const struct strata *s, double about, double *sum, double *squares)
{
    *sum = *squares = 0;
    for (int i = 0; i < s->count; i++) {
        const double length = (double)body_length(b, s->logit[i]);
        *sum += s->weight[i] * length;
        *squares += s->weight[i] * (length - about) * (length - about);
    }
}

/* Finds the location for which the body's lengths add up to sum. */
static void body_locate(struct body *b, const struct strata *s, double sum)
{
    const double reach = b->scale * 50 + 1; /* logits of 2^63 ranks stay below 45 */
    double low = (b->logarithmic ? -1 : (double)b->low) - reach;
    double high = (b->logarithmic ? log((double)b->high) : (double)b->high) + reach;
    for (int i = 0; i < BISECTIONS; i++) {
        double got, squares;
        b->location = low + (high - low) / 2;
        body_sums(b, s, 0, &got, &squares);
        *(got < sum ? &low : &high) = b->location;
    }
}

/* Finds the body of this many ranks whose lengths add up to sum, and whose squares about the mean
 * add up to squares. */
static void body_fit(struct body *b, int64_t ranks, double sum, double squares)
{
    struct strata strata;
    const double mean = sum / (double)ranks;
    double low = 0, high = b->logarithmic ? 16 : 16 * ((double)(b->high - b->low) + 1);
    make_strata(ranks, &strata);
    for (int i = 0; i < BISECTIONS; i++) {
        double got_sum, got;
        b->scale = low + (high - low) / 2;
        body_locate(b, &strata, sum);
        body_sums(b, &strata, mean, &got_sum, &got);
        *(got < squares ? &low : &high) = b->scale;
    }
}

/* K long rows; the first is max. */
struct tail {
    int64_t rows, low, max;
    double exponent;
};

static inline int64_t tail_length(const struct tail *t, int64_t k)
{
    return t->low + (int64_t)((double)(t->max - t->low) * pow((double)(k + 1), -t->exponent) + 0.5);
}

/* What remains for the body: number of rows, sum of lengths, sum of squares about their own
 * mean. */
struct left {
    double rows, sum, squares;
};

static struct left left_for_body(const struct twin *twin, const struct tail *t)
{
    const double mean = (double)twin->nnz / (double)twin->rows;
    struct left left = {(double)(twin->rows - t->rows), (double)twin->nnz, twin->std * twin->std * (double)twin->rows};
    for (int64_t k = 0; k < t->rows; k++) {
        const double length = (double)tail_length(t, k);
        left.sum -= length;
        left.squares -= (length - mean) * (length - mean);
    }
    if (left.rows > 0)
        left.squares -= (left.sum / left.rows - mean) * (left.sum / left.rows - mean) * left.rows;
    return left;
}

/* Whole lengths deviate by part (1 - part) even if all are next to the mean; this matters for means
 * near 1 or below. */
static bool too_wide(const struct left *left)
{
    const double mean = left->sum / left->rows, part = mean - floor(mean);
    return left->rows > 0 && left->squares > left->rows * (BODY_CV * BODY_CV * mean * mean + part * (1 - part));
}

/* One row of max if the body can supply the other squares. Otherwise a tail: the longest that
 * leaves most entries to the body. */
static struct tail make_tail(const struct twin *twin, int64_t low)
{
    struct tail t = {1, low, twin->max, 0};
    struct left left = left_for_body(twin, &t);
    if (!too_wide(&left))
        return t;
    for (t.rows = max_i64(1, min_i64(twin->rows / 64, TAIL_MOST)); t.rows > 1; t.rows = t.rows * 3 / 4) {
        double flat = 0, steep = 32;
        for (int i = 0; i < BISECTIONS; i++) {
            t.exponent = flat + (steep - flat) / 2;
            left = left_for_body(twin, &t);
            *(too_wide(&left) ? &steep : &flat) = t.exponent;
        }
        if (left.sum >= 0.6 * (double)twin->nnz && left.sum >= (double)low * left.rows)
            break;
    }
    return t;
}

/* Sets the lengths by rank. */
static void fill_ranks(spmv_context *ctx, const struct twin *twin, int32_t *by_rank)
{
    const double mean = (double)twin->nnz / (double)twin->rows;
    /* No empty rows unless they are needed. */
    const bool all_filled = twin->std * twin->std <= (mean - 1) * ((double)twin->max - mean);
    const int64_t low = mean >= 1 && all_filled ? 1 : 0;
    const struct tail t = make_tail(twin, low);
    const struct left left = left_for_body(twin, &t);
    const int64_t ranks = twin->rows - t.rows;
    struct body b = {.low = low, .high = twin->max};
    b.logarithmic = (double)twin->max - mean >= 3 * twin->std;
    if (ranks > 0)
        body_fit(&b, ranks, left.sum, left.squares);
#pragma omp parallel for num_threads(host_team(ctx, ranks)) schedule(static)
    for (int64_t rank = 0; rank < ranks; rank++)
        by_rank[rank] = (int32_t)body_length(&b, logit_of_rank(rank, ranks));
    for (int64_t k = 0; k < t.rows; k++)
        by_rank[twin->rows - 1 - k] = (int32_t)tail_length(&t, k);
}

/* Lengthens or shortens rows by one until their sum is nnz, from the first quarter of the ranks
 * upward, so that nearly all stay in order. The last rank keeps max. Some row can always change,
 * because nnz lies between max and rows max. */
static void correct_sum(const struct twin *twin, int32_t *by_rank)
{
    int64_t missing = twin->nnz;
    for (int64_t rank = 0; rank < twin->rows; rank++)
        missing -= by_rank[rank];
    /* First within [1, max], then with empty rows if necessary. */
    for (int64_t low = 1; low >= 0 && missing != 0; low--) {
        for (bool moved = true; moved && missing != 0;) {
            moved = false;
            for (int64_t k = 0; k < twin->rows - 1 && missing != 0; k++) {
                int32_t *const length = &by_rank[(twin->rows / 4 + k) % (twin->rows - 1)];
                const int step = missing > 0 ? 1 : -1;
                if (*length + step > twin->max || *length + step < low)
                    continue;
                *length += step;
                missing -= step;
                moved = true;
            }
        }
    }
}

/* Size of a cluster of rows of similar length: about four times the number of consecutive rows with
 * the same columns. */
static int64_t cluster_rows(const struct twin *twin)
{
    const double s = twin->cross_row_similarity, wanted = s < 1 ? 4 * s / (1 - s) : CLUSTER_MOST;
    return max_i64(1, wanted < CLUSTER_MOST ? (int64_t)ceil(wanted) : CLUSTER_MOST);
}

spmv_status twin_lengths(spmv_context *ctx, const struct twin *twin, uint64_t seed, int64_t *length)
{
    spmv_status st = SPMV_OK;
    const int64_t size = cluster_rows(twin), clusters = ceil_divide(twin->rows, size);
    int32_t *by_rank = NULL;
    int64_t *order = NULL, row = 0;
    TRY(host_alloc(ctx, twin->rows * (int64_t)sizeof *by_rank, "row lengths of a twin", (void **)&by_rank));
    TRY(host_alloc(ctx, clusters * (int64_t)sizeof *order, "order of a twin's rows", (void **)&order));
    fill_ranks(ctx, twin, by_rank);
    correct_sum(twin, by_rank);
    /* Knuth, "The Art of Computer Programming" vol. 2, 3.4.2, algorithm P */
    for (int64_t g = 0; g < clusters; g++) {
        const int64_t other = (int64_t)random_below(random_bits(seed, STREAM_CLUSTERS, (uint64_t)g), (uint64_t)g + 1);
        if (other < g)
            order[g] = order[other];
        order[other] = g;
    }
    for (int64_t g = 0; g < clusters; g++)
        for (int64_t rank = order[g] * size; rank < min_i64((order[g] + 1) * size, twin->rows); rank++)
            length[row++] = by_rank[rank];
done:
    host_free(by_rank);
    host_free(order);
    return st;
}

void twin_std_range(const struct twin *twin, double *least, double *most)
{
    const double rows = (double)twin->rows, mean = (double)twin->nnz / rows, max = (double)twin->max;
    *most = sqrt(mean * (max - mean));
    *least = 0;
    if (twin->rows > 1) {
        const double others = ((double)twin->nnz - max) / (rows - 1), part = others - floor(others);
        *least = sqrt(((max - mean) * (max - mean) + (rows - 1) * (others - mean) * (others - mean) +
                       (rows - 1) * part * (1 - part)) /
                      rows);
    }
}
