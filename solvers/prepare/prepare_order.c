/* The reverse Cuthill-McKee order of a pattern B + B'.
 *
 * Each component of the graph is searched breadth first, from a row of small degree that is far
 * from others; the neighbours of a row follow by degree. The reverse of this order has a small
 * profile, so fill-in of a factorisation stays near the diagonal. E. Cuthill, J. McKee, Proc. 24th
 * ACM National Conference, 1969; A. George, J. Liu, "Computer Solution of Large Sparse Positive
 * Definite Systems", 1981, section 4.3 (reversal, and the search for the first row).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/runtime.h"
#include "solvers/prepare/prepared_system.h"

/* The neighbours of each row in B + B', without the row itself; each once. */
struct graph {
    int64_t rows;
    int64_t *ptr;
    int32_t *next;
};

/* A breadth-first search: the rows reached, in order. */
struct search {
    int32_t *queue;
    int64_t reached;
    int64_t last_level; /* where the last level begins in queue */
    int64_t levels;
};

static spmv_status make_graph(spmv_context *ctx, const struct magnitudes *a, const int32_t *row_of, struct graph *g)
{
    spmv_status st = SPMV_OK;
    const int64_t n = a->rows;
    int32_t *seen = NULL;
    g->rows = n;
    TRY(host_alloc(ctx, (n + 1) * 8, "a graph", (void **)&g->ptr));
    TRY(host_alloc(ctx, 2 * a->ptr[n] * 4, "a graph", (void **)&g->next));
    TRY(host_alloc(ctx, n * 4, "a graph", (void **)&seen));
    memset(g->ptr, 0, (size_t)(n + 1) * sizeof *g->ptr);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = a->ptr[row_of[i]]; k < a->ptr[row_of[i] + 1]; k++)
            if (a->col[k] != i) {
                g->ptr[i]++;
                g->ptr[a->col[k]]++;
            }
    for (int64_t i = 1; i <= n; i++)
        g->ptr[i] += g->ptr[i - 1];
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t k = a->ptr[row_of[i]]; k < a->ptr[row_of[i] + 1]; k++)
            if (a->col[k] != i) {
                g->next[--g->ptr[i]] = a->col[k];
                g->next[--g->ptr[a->col[k]]] = (int32_t)i;
            }
    /* keep each neighbour once */
    for (int64_t i = 0; i < n; i++)
        seen[i] = -1;
    int64_t end = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = g->ptr[i], last = g->ptr[i + 1];
        g->ptr[i] = end;
        for (int64_t k = first; k < last; k++)
            if (seen[g->next[k]] != i) {
                seen[g->next[k]] = (int32_t)i;
                g->next[end++] = g->next[k];
            }
    }
    g->ptr[n] = end;
done:
    host_free(seen);
    return st;
}

static int64_t degree_of(const struct graph *g, int32_t row)
{
    return g->ptr[row + 1] - g->ptr[row];
}

/* Sorts rows by degree, then by number. Shell sort. */
static void sort_by_degree(const struct graph *g, int32_t *row, int64_t n)
{
    int64_t gap = 1;
    while (gap < n / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (int64_t i = gap; i < n; i++) {
            const int32_t r = row[i];
            int64_t j = i;
            for (; j >= gap; j -= gap) {
                const int64_t by = degree_of(g, row[j - gap]) - degree_of(g, r);
                if (by < 0 || (by == 0 && row[j - gap] < r))
                    break;
                row[j] = row[j - gap];
            }
            row[j] = r;
        }
}

/* All rows by degree, then by number. at: a number for each degree, and one more. */
static void order_by_degree(const struct graph *g, int32_t *row, int32_t *at)
{
    memset(at, 0, (size_t)(g->rows + 1) * sizeof *at);
    for (int64_t i = 0; i < g->rows; i++)
        at[degree_of(g, (int32_t)i) + 1]++;
    for (int64_t k = 0; k < g->rows; k++)
        at[k + 1] += at[k];
    for (int64_t i = 0; i < g->rows; i++)
        row[at[degree_of(g, (int32_t)i)]++] = (int32_t)i;
}

/* Searches from a row. mark[row] becomes `stamp`, a new number, for each row reached.
 * sorted: the neighbours of a row follow by degree. */
static void search_from(const struct graph *g, int32_t first, int32_t *mark, int32_t stamp, bool sorted,
                        struct search *s)
{
    int64_t begin = 0, level_end = 1;
    s->queue[0] = first;
    s->reached = 1;
    s->last_level = 0;
    s->levels = 1;
    mark[first] = stamp;
    while (begin < s->reached) {
        if (begin == level_end) {
            s->last_level = begin;
            level_end = s->reached;
            s->levels++;
        }
        const int32_t row = s->queue[begin++];
        const int64_t from = s->reached;
        for (int64_t k = g->ptr[row]; k < g->ptr[row + 1]; k++)
            if (mark[g->next[k]] != stamp) {
                mark[g->next[k]] = stamp;
                s->queue[s->reached++] = g->next[k];
            }
        if (sorted)
            sort_by_degree(g, s->queue + from, s->reached - from);
    }
}

/* A row from which the component has many levels: moves to a row of least degree in the last level
 * while that adds levels. */
static int32_t far_row(const struct graph *g, int32_t row, int32_t *mark, int32_t *stamp, struct search *s)
{
    search_from(g, row, mark, ++*stamp, false, s);
    for (;;) {
        int32_t best = s->queue[s->last_level];
        for (int64_t k = s->last_level + 1; k < s->reached; k++)
            if (degree_of(g, s->queue[k]) < degree_of(g, best))
                best = s->queue[k];
        const int64_t levels = s->levels;
        search_from(g, best, mark, ++*stamp, false, s);
        if (s->levels <= levels)
            return row;
        row = best;
    }
}

spmv_status prepare_order(spmv_context *ctx, const struct magnitudes *a, const int32_t *row_of, int32_t *order)
{
    spmv_status st = SPMV_OK;
    const int64_t n = a->rows;
    struct graph g = {0};
    int32_t *mark = NULL, *start = NULL, stamp = 0;
    bool *placed = NULL;
    TRY(make_graph(ctx, a, row_of, &g));
    TRY(host_alloc(ctx, (n + 1) * 4, "an order", (void **)&mark));
    TRY(host_alloc(ctx, n * 4, "an order", (void **)&start));
    TRY(host_alloc(ctx, n, "an order", (void **)&placed));
    order_by_degree(&g, start, mark);
    for (int64_t i = 0; i < n; i++) {
        mark[i] = 0;
        placed[i] = false;
    }
    int64_t end = 0;
    for (int64_t i = 0; i < n; i++) {
        if (placed[start[i]])
            continue;
        struct search s = {.queue = order + end};
        const int32_t first = far_row(&g, start[i], mark, &stamp, &s);
        search_from(&g, first, mark, ++stamp, true, &s);
        for (int64_t k = 0; k < s.reached; k++)
            placed[s.queue[k]] = true;
        end += s.reached;
        TRY(context_poll(ctx, "an order", s.reached));
    }
    for (int64_t k = 0; k < n / 2; k++) {
        const int32_t swap = order[k];
        order[k] = order[n - 1 - k];
        order[n - 1 - k] = swap;
    }
done:
    host_free_all(g.ptr, g.next, mark, start, placed);
    return st;
}
