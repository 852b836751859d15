/* The columns of a twin: chains of rows with similar columns, where each row consists of intervals of
 * adjacent columns.
 *
 * A chain is a sequence of rows, none shorter than the one before. Its rows have the same number of
 * intervals and the same span of columns. Each interval begins where it did in the row above, or one column
 * further if the diagonal moves, and is at least as long. So every column of a row has one within 1
 * in the row below, except in the last row of a chain, where matches are random. This makes the
 * three figures nearly independent of each other:
 *
 *   neighbours  the number of intervals = entries - pairs of neighbours, as a share of the row's length
 *   bandwidth   the span: the first interval begins with it, the last ends with it, the others lie
 *               at random places between
 *   similarity  the number of chains; random matches are measured on a sample of chain ends
 *
 * Share, span and number of chains are found by false position over all chains. A chain depends
 * only on its first row, so threads fill chains in any order.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "formats/generate/random.h"
#include "formats/generate/twin.h"
#include "formats/locality.h"

enum {
    STREAM_BREAKS = 0x62726b73,
    STREAM_SHAPES = 0x73687073,
    STREAM_PLACES = 0x706c6373,
    STREAM_INTERVALS = 0x72756e73
};

enum {
    /* chain ends in the sample: the standard error of the mean share is at most 1/2 / sqrt(8192) <
     * 0.006 */
    SAMPLES = 8192,
    /* rounds of measuring random matches and adapting the number of chains, on which they hardly
     * depend */
    ROUNDS = 3,
    STEPS = 60 /* of false position, at most */
};

struct plan {
    const struct twin *twin;
    uint64_t seed;
    const spmv_matrix *m;
    int threads;
    int64_t *first; /* chain c is the rows first[c] <= i < first[c + 1] */
    int64_t chains;
    int64_t filled; /* number of non-empty rows */
    double interval_share, span;
};

/* One chain. */
struct shape {
    int64_t first, rows;
    int64_t shortest, longest; /* lengths of its first and its last row */
    int64_t intervals, span;
    /* interval number j stride mod intervals is the j-th to get one entry more; coprime to intervals */
    int64_t stride;
    int64_t place; /* the first column of the first row */
};

static inline int64_t length_of(const spmv_matrix *m, int64_t row)
{
    return m->row_ptr[row + 1] - m->row_ptr[row];
}

/* Number of binary digits. */
static inline int digits(int64_t n)
{
    int count = 0;
    for (; n > 0; n >>= 1)
        count++;
    return count;
}

/* Whether a row begins a chain: it is shorter than the row before, or its length has more binary
 * digits. So the rows of a chain are less than twice as long as its first, which determines the
 * number of intervals. */
static inline bool begins_chain(const spmv_matrix *m, int64_t row)
{
    const int64_t length = length_of(m, row), above = row > 0 ? length_of(m, row - 1) : 0;
    return row == 0 || length < above || (length > above && digits(length) != digits(above));
}

static int64_t count_begun(const struct plan *p)
{
    int64_t begun = 0;
#pragma omp parallel for num_threads(p->threads) schedule(static) reduction(+ : begun)
    for (int64_t row = 0; row < p->m->rows; row++)
        begun += length_of(p->m, row) > 0 && begins_chain(p->m, row);
    return begun;
}

/* Begins chains at the rows that must, and at others with this probability. */
static void cut_chains(struct plan *p, double probability)
{
    p->chains = 0;
    for (int64_t row = 0; row < p->m->rows; row++)
        if (begins_chain(p->m, row) || random_uniform(random_bits(p->seed, STREAM_BREAKS, (uint64_t)row)) < probability)
            p->first[p->chains++] = row;
    p->first[p->chains] = p->m->rows;
}

/* Sets intervals and span; the other members are set by place_chain. */
static inline struct shape shape_of(const struct plan *p, int64_t chain)
{
    const int64_t cols = p->m->cols;
    struct shape s = {.first = p->first[chain], .rows = p->first[chain + 1] - p->first[chain]};
    s.shortest = length_of(p->m, s.first);
    s.longest = length_of(p->m, s.first + s.rows - 1);
    if (s.longest == 0)
        return s;
    const uint64_t bits = random_bits(p->seed, STREAM_SHAPES, (uint64_t)s.first);
    const double rounding = (double)(bits >> 32) * 0x1p-32, width = 0.5 + (double)(uint32_t)bits * 0x1p-32;
    s.intervals = (int64_t)(p->interval_share * (double)s.shortest + rounding);
    s.intervals = max_i64(1, min_i64(s.intervals, min_i64(s.shortest, cols - s.longest + 1)));
    s.span = s.longest;
    if (s.intervals > 1) {
        const double wanted = p->span * width;
        s.span = wanted >= (double)cols ? cols : max_i64((int64_t)(wanted + 0.5), s.longest + s.intervals - 1);
    }
    return s;
}

/* The sum of a number of each chain. */
static double total(const struct plan *p, int64_t (*number)(const struct plan *, const struct shape *))
{
    int64_t all = 0;
#pragma omp parallel for num_threads(p->threads) schedule(static) reduction(+ : all)
    for (int64_t c = 0; c < p->chains; c++) {
        const struct shape s = shape_of(p, c);
        all += number(p, &s);
    }
    return (double)all;
}

static int64_t intervals_of(const struct plan *p, const struct shape *s)
{
    (void)p;
    return s->intervals * s->rows;
}

static int64_t span_of(const struct plan *p, const struct shape *s)
{
    return s->intervals > 1 ? s->span * s->rows : p->m->row_ptr[s->first + s->rows] - p->m->row_ptr[s->first];
}

static double total_intervals(struct plan *p, double interval_share)
{
    p->interval_share = interval_share;
    return total(p, intervals_of);
}

static double total_span(struct plan *p, double span)
{
    p->span = span;
    return total(p, span_of);
}

/* Finds the argument, low <= x <= high, at which a non-decreasing function reaches the target, or
 * an end if it does not. The function leaves its argument in the plan. Returns the value reached.
 * False position with the "Illinois" rule, which halves the weight of an end that stays (M. Dowell,
 * P. Jarratt, BIT 11, 1971). */
static double solve(double (*function)(struct plan *, double), struct plan *p, double low, double high, double target)
{
    double below = function(p, low) - target, above, at = 0;
    if (below >= 0)
        return below + target;
    above = function(p, high) - target;
    if (above <= 0)
        return above + target;
    for (int i = 0, side = 0; i < STEPS; i++) {
        const double x = low + (high - low) * (below / (below - above));
        at = function(p, x) - target;
        if (fabs(at) <= 1e-4 * target)
            break;
        if (at < 0) {
            low = x;
            below = at;
            above = side < 0 ? above / 2 : above;
            side = -1;
        } else {
            high = x;
            above = at;
            below = side > 0 ? below / 2 : below;
            side = 1;
        }
    }
    return at + target;
}

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* Reflects x into [0, range] at both ends. */
static int64_t reflect(double x, int64_t range)
{
    const double period = 2 * (double)range;
    if (range == 0)
        return 0;
    x = fmod(fabs(x), period);
    return min_i64(range, (int64_t)(x > (double)range ? period - x : x));
}

/* The shape with its place: near the diagonal, as far off as rows extend on average. */
static struct shape place_chain(const struct plan *p, int64_t chain)
{
    struct shape s = shape_of(p, chain);
    if (s.intervals == 0)
        return s;
    const double u = random_uniform(random_bits(p->seed, STREAM_PLACES, (uint64_t)s.first));
    const double cols = (double)p->m->cols, middle = (double)s.first + (double)s.rows / 2;
    s.place = reflect(middle * cols / (double)p->m->rows - (double)s.span / 2 + (u - 0.5) * p->twin->bw_frac * cols,
                      p->m->cols - s.span);
    /* the golden ratio spreads them evenly */
    s.stride = (int64_t)((double)s.intervals * 0.61803398874989485);
    while (s.intervals > 1 && greatest_common_divisor(s.intervals, s.stride) != 1)
        s.stride++;
    return s;
}

/* The first column of a row of the chain. */
static inline int64_t row_place(const struct plan *p, const struct shape *s, int64_t row)
{
    const double slope = (double)p->m->cols / (double)p->m->rows, moved = (double)(row - s->first);
    return min_i64(s->place + (int64_t)(slope < 1 ? moved * slope : moved), p->m->cols - s->span);
}

/* Each row leaves room for the intervals of the longest row and a column between intervals, so that the rows
 * of a chain match. The other columns of the span are distributed over the gaps. */
static void fill_row(const struct plan *p, const struct shape *s, int64_t row, int32_t *col)
{
    const int64_t length = length_of(p->m, row), each = length / s->intervals, more = length % s->intervals;
    const int64_t room_each = s->longest / s->intervals, room_more = s->longest % s->intervals;
    const int64_t spare = s->span - s->longest - (s->intervals - 1);
    const double spare_a_gap = s->intervals > 1 ? (double)spare / (double)(s->intervals - 1) : 0;
    int64_t at = row_place(p, s, row), number = 0;
    for (int64_t j = 0; j < s->intervals; j++) {
        int64_t gap = j == 0 ? 0 : spare;
        if (j > 0 && j < s->intervals - 1) {
            const uint64_t bits = random_bits(p->seed ^ STREAM_INTERVALS, (uint64_t)s->first, (uint64_t)j);
            gap = (int64_t)(spare_a_gap * ((double)j - 0.5 + random_uniform(bits)));
        }
        const int64_t entries = each + (number < more);
        for (int64_t k = 0; k < entries; k++)
            *col++ = (int32_t)(at + gap + k);
        at += room_each + (number < room_more) + 1;
        number += s->stride;
        number -= number >= s->intervals ? s->intervals : 0;
    }
}

static void fill_chain(const struct plan *p, int64_t chain, int32_t *all)
{
    const struct shape s = place_chain(p, chain);
    for (int64_t row = s.first; s.intervals > 0 && row < s.first + s.rows; row++) {
        const int64_t length = length_of(p->m, row);
        int32_t *const col = all + p->m->row_ptr[row];
        if (row == s.first || length != length_of(p->m, row - 1)) {
            fill_row(p, &s, row, col);
            continue;
        }
        const int32_t moved = (int32_t)(row_place(p, &s, row) - row_place(p, &s, row - 1));
        for (int64_t k = 0; k < length; k++)
            col[k] = col[k - length] + moved;
    }
}

/* The mean share of a chain's last row that the next chain's first row matches, over a sample.
 * room: memory for two rows. */
static double chance_share(const struct plan *p, int32_t *room)
{
    const int64_t stride = max_i64(1, p->chains / SAMPLES);
    int32_t *const next_room = room + p->twin->max;
    int64_t samples = 0;
    double sum = 0;
    for (int64_t c = 0; c + 1 < p->chains; c += stride) {
        const struct shape s = place_chain(p, c), t = place_chain(p, c + 1);
        if (s.intervals == 0 || t.intervals == 0)
            continue;
        fill_row(p, &s, s.first + s.rows - 1, room);
        fill_row(p, &t, t.first, next_room);
        sum += (double)locality_matches(room, s.longest, next_room, t.shortest) / (double)s.longest;
        samples++;
    }
    return samples > 0 ? sum / (double)samples : 0;
}

static int64_t count_filled_chains(const struct plan *p)
{
    int64_t filled = 0;
    for (int64_t c = 0; c < p->chains; c++)
        filled += length_of(p->m, p->first[c]) > 0;
    return filled;
}

/* Finds the number of chains, intervals and span for the requested figures. got: the figures reached. */
static void calibrate(struct plan *p, int32_t *room, struct twin *got)
{
    const struct twin *const twin = p->twin;
    const int64_t begun = count_begun(p);
    const double nnz = (double)twin->nnz, cells = (double)twin->rows * (double)twin->cols;
    double chance = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const double ends = (double)p->filled * fmin(1, (1 - twin->cross_row_similarity) / fmax(1 - chance, 1e-3));
        cut_chains(p, p->filled > begun ? (ends - (double)begun) / (double)(p->filled - begun) : 0);
        const double intervals = solve(total_intervals, p, 0, 1, nnz * (1 - twin->avg_neighbours / 2));
        const double span = solve(total_span, p, 0, 2 * (double)twin->cols, twin->bw_frac * cells);
        chance = chance_share(p, room);
        got->avg_neighbours = 2 * (1 - intervals / nnz);
        got->bw_frac = span / cells;
        got->cross_row_similarity = 1 - (double)count_filled_chains(p) / (double)p->filled * (1 - chance);
        if (round > 0 &&
            fabs(got->cross_row_similarity - twin->cross_row_similarity) <= 0.01 * twin->cross_row_similarity)
            break;
    }
}

spmv_status twin_columns(spmv_context *ctx, const struct twin *twin, uint64_t seed, spmv_matrix *m, struct twin *got)
{
    spmv_status st = SPMV_OK;
    struct plan p = {.twin = twin, .seed = seed, .m = m, .threads = host_team(ctx, m->rows), .filled = 0};
    int32_t *room = NULL;
    *got = *twin;
    for (int64_t row = 0; row < m->rows; row++)
        p.filled += length_of(m, row) > 0;
    TRY(host_alloc(ctx, (m->rows + 1) * (int64_t)sizeof *p.first, "chains of a twin's rows", (void **)&p.first));
    TRY(host_alloc(ctx, 2 * twin->max * (int64_t)sizeof *room, "two rows of a twin", (void **)&room));
    calibrate(&p, room, got);
#pragma omp parallel for num_threads(host_team(ctx, m->nnz)) schedule(dynamic, 64)
    for (int64_t c = 0; c < p.chains; c++)
        fill_chain(&p, c, m->col);
done:
    host_free(p.first);
    host_free(room);
    return st;
}
