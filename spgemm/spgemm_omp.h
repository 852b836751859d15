/* Shared by the files of the method "rows" on the backend omp: tasks of rows, and the columns of a
 * row in ascending order.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPGEMM_OMP_H
#define SPGEMM_OMP_H

#include "formats/columns.h"
#include "spgemm/spgemm_internal.h"

/* ------------------------------------------------------------------------------ tasks */

/* The rows of A in tasks of about equal numbers of products. */
struct row_tasks {
    int64_t n;
    int64_t *first_row; /* n + 1: task c has the rows first_row[c] <= i < first_row[c + 1] */
};

/* Cuts the rows of a plan into tasks. Release first_row with host_free. */
spmv_status spgemm_cut_rows(const struct spmv_spgemm_plan *plan, struct row_tasks *tasks);

/* An upper bound of the entries of C in a task. */
int64_t spgemm_task_most(const struct spmv_spgemm_plan *plan, const struct row_tasks *tasks, int64_t c);

/* The largest of these bounds, at least 1. */
int64_t spgemm_tasks_most(const struct spmv_spgemm_plan *plan, const struct row_tasks *tasks);

/* ----------------------------------------------------------------------- sets of columns */

/* The columns of a row of C, as bits. */
struct marks {
    uint64_t *column;  /* a bit for each column */
    uint64_t *word;    /* a bit for each word of column */
    uint64_t *summary; /* a bit for each word of word */
    int64_t low, high; /* the words of summary that may have bits: low <= g <= high */
};

static int64_t words_of(int64_t bits)
{
    return ceil_divide(bits, 64);
}

/* Words of the three levels. */
static int64_t marks_words(int64_t cols)
{
    const int64_t words = words_of(cols), summaries = words_of(words);
    return words + summaries + words_of(summaries);
}

static struct marks marks_in(uint64_t *memory, int64_t cols)
{
    const int64_t words = words_of(cols), summaries = words_of(words);
    return (struct marks){memory, memory + words, memory + words + summaries, INT64_MAX, -1};
}

static inline void mark(struct marks *m, int32_t j)
{
    const int64_t w = j >> 6, g = w >> 6, t = g >> 6;
    const uint64_t old = m->column[w];
    m->column[w] = old | (uint64_t)1 << (j & 63);
    if (old != 0)
        return;
    m->word[g] |= (uint64_t)1 << (w & 63);
    m->summary[t] |= (uint64_t)1 << (g & 63);
    m->low = min_i64(m->low, t);
    m->high = max_i64(m->high, t);
}

/* The index of the lowest bit; clears it. */
static inline int64_t take_bit(uint64_t *bits)
{
    const int64_t lowest = __builtin_ctzll(*bits);
    *bits &= *bits - 1;
    return lowest;
}

/* Writes the marked columns in ascending order, returns their number, and clears the marks. */
static inline __attribute__((always_inline)) int64_t take_marks(struct marks *m, int32_t *col)
{
    int64_t n = 0;
    for (int64_t t = m->low; t <= m->high; t++)
        while (m->summary[t] != 0) {
            const int64_t g = 64 * t + take_bit(&m->summary[t]);
            while (m->word[g] != 0) {
                const int64_t w = 64 * g + take_bit(&m->word[g]);
                uint64_t bits = m->column[w];
                m->column[w] = 0;
                while (bits != 0)
                    col[n++] = (int32_t)(64 * w + take_bit(&bits));
            }
        }
    m->low = INT64_MAX;
    m->high = -1;
    return n;
}

/* Up to so many columns are sorted by insertion, and by their ranks. */
enum { INSERTION_MOST = 8, RANKED_MOST = 64 };

/* Sorts up to RANKED_MOST columns that differ. The place of a column is the number of smaller ones,
 * which vectors count without a branch. */
static inline void sort_by_ranks(int32_t *col, int64_t n)
{
    enum { LANES = 4, VECTORS = 4, AT_ONCE = LANES * VECTORS };
    typedef int32_t lanes __attribute__((vector_size(LANES * sizeof(int32_t))));
    int32_t copy[RANKED_MOST], rank[RANKED_MOST];
    const int64_t whole = ceil_divide(n, AT_ONCE) * AT_ONCE;
    memcpy(copy, col, (size_t)n * sizeof *col);
    for (int64_t e = n; e < whole; e++)
        copy[e] = INT32_MAX;
    for (int64_t e = 0; e < whole; e += AT_ONCE) {
        lanes mine[VECTORS], smaller[VECTORS] = {{0}};
        memcpy(mine, &copy[e], sizeof mine);
        for (int64_t f = 0; f < n; f++)
            for (int v = 0; v < VECTORS; v++)
                smaller[v] -= copy[f] < mine[v]; /* a comparison of vectors is -1 where it holds */
        memcpy(&rank[e], smaller, sizeof smaller);
    }
    for (int64_t e = 0; e < n; e++)
        col[rank[e]] = copy[e];
}

/* Sorts columns that differ. memory: of marks for this many columns of B, without any. This is not
 * inlined, so that marks of the caller stay in registers. */
static __attribute__((noinline)) void sort_columns(int32_t *col, int64_t n, uint64_t *memory, int64_t cols)
{
    if (n <= INSERTION_MOST) {
        sort_by_insertion(col, n);
    } else if (n <= RANKED_MOST) {
        sort_by_ranks(col, n);
    } else {
        struct marks m = marks_in(memory, cols);
        for (int64_t e = 0; e < n; e++)
            mark(&m, col[e]);
        take_marks(&m, col);
    }
}

#endif
