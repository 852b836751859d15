/* A row of the factor of fsai (precond_fsai_factor.c), for C and CUDA C++: both do the same operations in the
 * same order, so the factor has the same bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRECOND_FSAI_ROWS_H
#define PRECOND_FSAI_ROWS_H

#include <math.h>

#include "core/host_device_fn.h"
#include "solvers/precond/precond_fsai.h"

/* What all rows read. */
struct fsai_given {
    const void *row_ptr; /* of A */
    int row_ptr_bits;
    const int32_t *col;
    const double *root; /* the reciprocals of the square roots of the diagonal */
    const double *val;  /* of B */
    int64_t longest;    /* entries of a row that may join */
    struct fsai_search search;
    int most; /* steps * size */
};

/* Memory of a thread, for one row after the other. */
struct fsai_work {
    int32_t *slot; /* a hash table: the number of a candidate, or FSAI_NONE */
    int64_t mask;
    int shift;
    /* The candidates, columns that the row may get: col; own: B[i, col]; slope: r; place: in P, or FSAI_NONE, or
     * FSAI_OUT; at: in the hash table. */
    int32_t candidates, *col, *place, *at;
    double *own, *slope;
    /* the rows P of B at columns below i: those of place p are first[p] to first[p + 1] - 1 */
    int32_t *entry; /* candidates */
    double *value;
    int64_t first[FSAI_MOST + 1];
    /* P: the candidate at each place, L by rows and by columns with reciprocals on the diagonal, y, g */
    int places;
    int32_t member[FSAI_MOST];
    double row[FSAI_MOST][FSAI_MOST], column[FSAI_MOST][FSAI_MOST], y[FSAI_MOST], g[FSAI_MOST];
    int64_t work;
};
enum { FSAI_NONE = -1, FSAI_OUT = -2 };

/* A row of a block of rows: `most` + 1 places for each. */
struct fsai_block {
    int64_t begin, end;
    int32_t *col;
    double *val;
    int32_t *count;    /* entries of a row; 0: it failed, and val[0] is the pivot */
    int32_t *left_out; /* entries left out */
};

/* ------------------------------------------------------------------ candidates */

HOST_DEVICE_FN int64_t fsai_offset(const struct fsai_given *s, int64_t row)
{
    return s->row_ptr_bits == 32 ? (int64_t)((const int32_t *)s->row_ptr)[row] : ((const int64_t *)s->row_ptr)[row];
}

/* The number of a column, or FSAI_NONE; *at: its place in the hash table. */
HOST_DEVICE_FN int32_t fsai_find(const struct fsai_work *w, int32_t col, int64_t *at)
{
    *at = (int64_t)(((uint32_t)col * UINT32_C(2654435769)) >> w->shift);
    while (w->slot[*at] != FSAI_NONE && w->col[w->slot[*at]] != col)
        *at = (*at + 1) & w->mask;
    return w->slot[*at];
}

HOST_DEVICE_FN int32_t fsai_candidate_of(const struct fsai_given *s, struct fsai_work *w, int32_t col)
{
    int64_t at = 0;
    const int32_t found = fsai_find(w, col, &at);
    if (found != FSAI_NONE)
        return found;
    const int32_t c = w->candidates++;
    w->slot[at] = c;
    w->at[c] = (int32_t)at;
    w->col[c] = col;
    w->own[c] = 0;
    w->place[c] = fsai_offset(s, col + 1) - fsai_offset(s, col) <= s->longest ? FSAI_NONE : FSAI_OUT;
    return c;
}

/* Bits of a number in a hash table for so many candidates. */
HOST_DEVICE_FN int fsai_bits_for(int64_t candidates)
{
    int bits = 3;
    while (bits < 31 && (INT64_C(1) << bits) < 2 * candidates)
        bits++;
    return bits;
}

/* Begins with the candidates of the row itself. */
HOST_DEVICE_FN void fsai_begin_row(const struct fsai_given *s, struct fsai_work *w, int64_t row)
{
    const int64_t begin = fsai_offset(s, row), end = fsai_offset(s, row + 1);
    for (int32_t c = 0; c < w->candidates; c++)
        w->slot[w->at[c]] = FSAI_NONE;
    w->candidates = 0;
    w->places = 0;
    w->first[0] = 0;
    const int bits = fsai_bits_for(end - begin + s->most * s->longest);
    w->mask = (INT64_C(1) << bits) - 1;
    w->shift = 32 - bits;
    for (int64_t k = begin; k < end; k++)
        if (s->col[k] < row)
            w->own[fsai_candidate_of(s, w, s->col[k])] += s->val[k];
    w->work += end - begin;
}

/* ----------------------------------------------------------------- the pattern */

/* Computes r, and sets best[0 ...] to the candidates of the largest |r|, at most `size` of them; returns how
 * many. Of equal ones the first found comes first. */
HOST_DEVICE_FN int fsai_find_best(const struct fsai_given *s, struct fsai_work *w, int32_t *best)
{
    const int size = s->search.size;
    int n = 0;
    double least = 0; /* of those that are in best */
    for (int32_t c = 0; c < w->candidates; c++)
        w->slope[c] = w->own[c];
    for (int p = 0; p < w->places; p++)
        for (int64_t e = w->first[p]; e < w->first[p + 1]; e++)
            w->slope[w->entry[e]] += w->g[p] * w->value[e];
    for (int32_t c = 0; c < w->candidates; c++) {
        const double slope = fabs(w->slope[c]);
        if (!(slope > least) || w->place[c] != FSAI_NONE)
            continue;
        int at = n < size ? n++ : n - 1;
        for (; at > 0 && fabs(w->slope[best[at - 1]]) < slope; at--)
            best[at] = best[at - 1];
        best[at] = c;
        least = n < size ? 0 : fabs(w->slope[best[n - 1]]);
    }
    w->work += w->candidates + w->first[w->places];
    return n;
}

/* line: row `col` of B at P. */
HOST_DEVICE_FN void fsai_read_pattern(const struct fsai_given *s, struct fsai_work *w, int64_t row, int32_t col,
                                      double *line)
{
    const int64_t begin = fsai_offset(s, col), end = fsai_offset(s, col + 1);
    int64_t at = 0;
    for (int64_t k = begin; k < end; k++) {
        const int32_t c = s->col[k] < row ? fsai_find(w, s->col[k], &at) : FSAI_NONE;
        if (c != FSAI_NONE && w->place[c] >= 0)
            line[w->place[c]] += s->val[k];
    }
    w->first[w->places + 1] = w->first[w->places];
    w->work += end - begin;
}

/* The same, and its columns become candidates. */
HOST_DEVICE_FN void fsai_read_row(const struct fsai_given *s, struct fsai_work *w, int64_t row, int32_t col,
                                  double *line)
{
    const int64_t begin = fsai_offset(s, col), end = fsai_offset(s, col + 1);
    int64_t e = w->first[w->places];
    for (int64_t k = begin; k < end; k++) {
        const int32_t other = s->col[k];
        if (other >= row || other == col)
            continue;
        const int32_t c = fsai_candidate_of(s, w, other);
        if (w->place[c] >= 0)
            line[w->place[c]] += s->val[k];
        w->entry[e] = c;
        w->value[e++] = s->val[k];
    }
    w->first[w->places + 1] = e;
    w->work += 2 * (end - begin);
}

/* Lets a candidate join, if its pivot and what it leaves of psi are large enough. Returns the smaller of the
 * two. last: no other step follows. */
HOST_DEVICE_FN double fsai_join(const struct fsai_given *s, struct fsai_work *w, int64_t row, int32_t c, bool last,
                                double *psi)
{
    const int n = w->places;
    double *const line = w->row[n];
    for (int p = 0; p < n; p++)
        line[p] = 0;
    if (last)
        fsai_read_pattern(s, w, row, w->col[c], line);
    else
        fsai_read_row(s, w, row, w->col[c], line);
    double pivot = 1, right = -w->own[c];
    for (int p = 0; p < n; p++) {
        const double *const column = w->column[p];
        const double x = line[p] *= column[p];
        for (int q = p + 1; q < n; q++)
            line[q] -= x * column[q];
        pivot -= x * x;
        right -= x * w->y[p];
    }
    w->work += n * (n + 1) / 2;
    w->place[c] = FSAI_OUT;
    const double rest = *psi - right * right / pivot;
    if (!(pivot > s->search.least && rest > s->search.least))
        return pivot > s->search.least ? rest : pivot;
    line[n] = 1 / sqrt(pivot);
    for (int p = 0; p <= n; p++)
        w->column[p][n] = line[p];
    w->y[n] = right * line[n];
    w->member[n] = c;
    w->place[c] = n;
    w->places = n + 1;
    *psi = rest;
    return pivot < rest ? pivot : rest;
}

/* L' g = y */
HOST_DEVICE_FN void fsai_solve(struct fsai_work *w)
{
    for (int p = 0; p < w->places; p++)
        w->g[p] = w->y[p];
    for (int p = w->places - 1; p >= 0; p--) {
        const double *const line = w->row[p];
        const double g = w->g[p] *= line[p];
        for (int q = 0; q < p; q++)
            w->g[q] -= line[q] * g;
    }
    w->work += w->places * (w->places + 1) / 2;
}

/* Writes the entries of the row, in ascending order of their columns; returns how many. */
HOST_DEVICE_FN int fsai_write_row(const struct fsai_given *s, const struct fsai_work *w, int64_t row, double psi,
                                  int32_t *col, double *val)
{
    const double factor = 1 / sqrt(psi);
    int n = 0;
    for (int p = 0; p < w->places; p++) {
        const int32_t c = w->col[w->member[p]];
        int at = n++;
        for (; at > 0 && col[at - 1] > c; at--) {
            col[at] = col[at - 1];
            val[at] = val[at - 1];
        }
        col[at] = c;
        val[at] = w->g[p] * factor * s->root[c];
    }
    col[n] = (int32_t)row;
    val[n] = factor * s->root[row];
    return n + 1;
}

HOST_DEVICE_FN void fsai_make_row(const struct fsai_given *s, struct fsai_work *w, int64_t row,
                                  const struct fsai_block *b)
{
    int32_t *const col = b->col + (row - b->begin) * (s->most + 1);
    double *const val = b->val + (row - b->begin) * (s->most + 1);
    double psi = 1;
    int32_t best[FSAI_MOST];
    int left_out = 0;
    fsai_begin_row(s, w, row);
    for (int step = 1; step <= s->search.steps; step++) {
        const double before = psi;
        const int n = fsai_find_best(s, w, best);
        for (int k = 0; k < n; k++) {
            const double pivot = fsai_join(s, w, row, best[k], step == s->search.steps, &psi);
            if (!(pivot >= -s->search.least)) {
                b->count[row - b->begin] = 0;
                val[0] = pivot;
                return;
            }
            left_out += !(pivot > s->search.least);
        }
        fsai_solve(w);
        if (!(before - psi >= s->search.tolerance * before))
            break;
    }
    b->count[row - b->begin] = fsai_write_row(s, w, row, psi, col, val);
    b->left_out[row - b->begin] = left_out;
}

/* Whether a row with this entry on the diagonal can be in f32. With all of them in this range, no entry g_ij = g g_jj
 * overflows, as |g| is at most 1 over the least pivot; one that becomes 0 is below 2^-26 g_jj. */
HOST_DEVICE_FN int fsai_fits_f32(double diagonal)
{
    return diagonal >= 0x1p-80 && diagonal <= 0x1p80;
}

/* --------------------------------------------------------------- memory of a thread */

/* Sizes for rows of at most `longest` entries. */
struct fsai_sizes {
    int64_t candidates, entries, slots, bytes;
};

HOST_DEVICE_FN struct fsai_sizes fsai_sizes_for(const struct fsai_given *s, int64_t longest)
{
    struct fsai_sizes sizes;
    sizes.entries = s->most * s->longest;
    sizes.candidates = longest + sizes.entries;
    sizes.slots = INT64_C(1) << fsai_bits_for(sizes.candidates);
    sizes.bytes = (int64_t)sizeof(struct fsai_work) + 28 * sizes.candidates + 12 * sizes.entries + 4 * sizes.slots;
    sizes.bytes += 64 - sizes.bytes % 64;
    return sizes;
}

/* Divides memory of sizes.bytes bytes. */
HOST_DEVICE_FN struct fsai_work *fsai_work_in(void *memory, struct fsai_sizes sizes)
{
    struct fsai_work *const w = (struct fsai_work *)memory;
    w->own = (double *)(w + 1);
    w->slope = w->own + sizes.candidates;
    w->value = w->slope + sizes.candidates;
    w->col = (int32_t *)(w->value + sizes.entries);
    w->place = w->col + sizes.candidates;
    w->at = w->place + sizes.candidates;
    w->entry = w->at + sizes.candidates;
    w->slot = w->entry + sizes.entries;
    for (int64_t k = 0; k < sizes.slots; k++)
        w->slot[k] = FSAI_NONE;
    w->candidates = 0;
    w->work = 0;
    return w;
}

#endif
