/* The matching of rows and columns with the largest product of absolute values.
 *
 * An entry costs c_ij = log2(max_j |a_ij|) - log2 |a_ij| >= 0. A matching of the least total cost
 * is built row by row: a shortest augmenting path from the row to a column without a match, by
 * Dijkstra's algorithm on the reduced costs c_ij - u_i - v_j >= 0, which are 0 on matched entries.
 * u and v are then the logarithms of scale factors. I. S. Duff, J. Koster, "On algorithms for
 * permuting large entries to the diagonal of a sparse matrix", SIAM J. Matrix Anal. Appl. 22(4),
 * 2001 (MC64).
 *
 * Before that, as many rows as possible are matched over entries of reduced cost 0 (J. E. Hopcroft,
 * R. M. Karp, SIAM J. Comput. 2(4), 1973), which leaves few rows in most matrices. The same over
 * all entries gives the rank.
 *
 * Each search may visit all entries, so the work is bounded: after MOST_WORK visits for each entry
 * and row on average, the rest of the rows is matched over any entries. The product is then not the
 * largest, u and v still scale all entries to at most 1, and the count repeats in each run.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/runtime.h"
#include "solvers/prepare/prepared_system.h"

enum { MOST_WORK = 500 };

/* A path may reach the column at this distance. Outdated nodes stay in the heap. */
struct node {
    double distance;
    int32_t col;
};

struct matching {
    const struct magnitudes *a;
    double *base;     /* the largest logarithm of each row */
    double *u, *v;    /* of rows and columns */
    int32_t *row_of;  /* the row matched to a column, or -1 */
    int32_t *col_of;  /* the column matched to a row, or -1 */
    double *distance; /* of columns, from the row where the path begins */
    int32_t *from;    /* the row before the column on its shortest path */
    int32_t *reached; /* columns with a distance */
    int32_t *settled; /* columns whose distance is final, in this order */
    int32_t *near;    /* columns to settle at the current distance, before those in the heap */
    bool *final;      /* whether it is */
    int64_t reaches, settles;
    int64_t work; /* entries visited by searches for shortest paths */
    struct node *heap;
    int64_t nodes, room;
};

static double reduced(const struct matching *m, int64_t row, int64_t k)
{
    const double cost = m->base[row] - m->a->log2[k] - m->v[m->a->col[k]] - m->u[row];
    return cost > 0 ? cost : 0; /* rounding */
}

static bool is_before(struct node a, struct node b)
{
    return a.distance < b.distance || (a.distance == b.distance && a.col < b.col);
}

static spmv_status push(spmv_context *ctx, struct matching *m, struct node node)
{
    if (m->nodes == m->room) {
        struct node *wider = NULL;
        const spmv_status st = host_alloc(ctx, 2 * m->room * (int64_t)sizeof *wider, "a matching", (void **)&wider);
        if (st != SPMV_OK)
            return st;
        memcpy(wider, m->heap, (size_t)m->nodes * sizeof *wider);
        host_free(m->heap);
        m->heap = wider;
        m->room *= 2;
    }
    int64_t i = m->nodes++;
    for (; i > 0 && is_before(node, m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = node;
    return SPMV_OK;
}

static struct node pop(struct matching *m)
{
    const struct node first = m->heap[0], last = m->heap[--m->nodes];
    int64_t i = 0;
    for (int64_t child = 1; child < m->nodes; child = 2 * i + 1) {
        child += child + 1 < m->nodes && is_before(m->heap[child + 1], m->heap[child]);
        if (!is_before(m->heap[child], last))
            break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = last;
    return first;
}

/* Finds the nearest column without a match, from row `start`, and its distance. There is one if all
 * rows can be matched. */
static spmv_status search(spmv_context *ctx, struct matching *m, int64_t start, int32_t *end, double *shortest)
{
    const struct magnitudes *a = m->a;
    int64_t row = start, nears = 0;
    double way = 0;
    *end = -1;
    *shortest = INFINITY;
    m->nodes = m->reaches = m->settles = 0;
    for (;;) {
        m->work += a->ptr[row + 1] - a->ptr[row];
        for (int64_t k = a->ptr[row]; k < a->ptr[row + 1]; k++) {
            const int32_t col = a->col[k];
            const double distance = way + reduced(m, row, k);
            if (m->final[col] || !(distance < *shortest) || !(distance < m->distance[col]))
                continue;
            if (isinf(m->distance[col]))
                m->reached[m->reaches++] = col;
            m->distance[col] = distance;
            m->from[col] = (int32_t)row;
            if (m->row_of[col] < 0) {
                *end = col;
                *shortest = distance;
            } else if (distance == way) {
                m->near[nears++] = col;
            } else {
                const spmv_status st = push(ctx, m, (struct node){distance, col});
                if (st != SPMV_OK)
                    return st;
            }
        }
        struct node next = {INFINITY, -1};
        if (way >= *shortest)
            return SPMV_OK;
        if (nears > 0) { /* the last first: depth-first, which finds a column sooner if many costs are equal */
            next = (struct node){way, m->near[--nears]};
        } else {
            do
                next = m->nodes > 0 ? pop(m) : (struct node){INFINITY, -1};
            while (next.col >= 0 && m->final[next.col]);
        }
        if (next.col < 0 || next.distance >= *shortest)
            return SPMV_OK;
        m->final[next.col] = true;
        m->settled[m->settles++] = next.col;
        way = next.distance;
        row = m->row_of[next.col];
    }
}

/* Matches row `start`, and keeps the reduced costs of matched entries 0. */
static spmv_status augment(spmv_context *ctx, struct matching *m, int64_t start)
{
    int32_t end = -1;
    double shortest = 0;
    const spmv_status st = search(ctx, m, start, &end, &shortest);
    if (st != SPMV_OK)
        return st;
    m->u[start] += shortest;
    for (int64_t k = 0; k < m->settles; k++) {
        const int32_t col = m->settled[k];
        m->u[m->row_of[col]] += shortest - m->distance[col];
        m->v[col] -= shortest - m->distance[col];
        m->final[col] = false;
    }
    for (int32_t col = end; col >= 0;) {
        const int32_t row = m->from[col], before = m->col_of[row];
        m->row_of[col] = row;
        m->col_of[row] = col;
        col = before;
    }
    for (int64_t k = 0; k < m->reaches; k++)
        m->distance[m->reached[k]] = INFINITY;
    return st;
}

/* The first u and v. No row is matched. */
static void begin(struct matching *m)
{
    const struct magnitudes *a = m->a;
    for (int64_t i = 0; i < a->rows; i++) {
        m->base[i] = -INFINITY;
        for (int64_t k = a->ptr[i]; k < a->ptr[i + 1]; k++)
            m->base[i] = a->log2[k] > m->base[i] ? a->log2[k] : m->base[i];
        m->u[i] = m->v[i] = m->distance[i] = INFINITY;
        m->row_of[i] = m->col_of[i] = -1;
        m->final[i] = false;
    }
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = a->ptr[i]; k < a->ptr[i + 1]; k++)
            m->v[a->col[k]] = fmin(m->v[a->col[k]], m->base[i] - a->log2[k]);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = a->ptr[i]; k < a->ptr[i + 1]; k++)
            m->u[i] = fmin(m->u[i], m->base[i] - a->log2[k] - m->v[a->col[k]]);
}

/* For matchings of the most rows over entries that count: those of reduced cost 0, or all. */
struct most {
    bool all;
    int64_t *ahead; /* by rows: the first entry that may have a column without a match */
    int64_t *next;  /* by rows: the first entry not yet followed in this pass */
    int32_t *level; /* by rows: steps from a row without a match; -1: not reached */
    int32_t *rows;  /* a queue; then the path of a search */
};

static bool counts(const struct matching *m, const struct most *p, int64_t row, int64_t k)
{
    return p->all || !(reduced(m, row, k) > 0);
}

/* Sets the levels of rows, breadth first, up to the first level with an entry in a column without a
 * match. Returns false if there is none. */
static bool set_levels(const struct matching *m, struct most *p)
{
    const struct magnitudes *a = m->a;
    int64_t begin = 0, end = 0, last = -1;
    for (int64_t i = 0; i < a->rows; i++) {
        p->level[i] = m->col_of[i] < 0 ? 0 : -1;
        if (m->col_of[i] < 0)
            p->rows[end++] = (int32_t)i;
    }
    while (begin < end) {
        const int32_t row = p->rows[begin++];
        if (last >= 0 && p->level[row] > last)
            break;
        for (int64_t k = a->ptr[row]; k < a->ptr[row + 1]; k++) {
            if (!counts(m, p, row, k))
                continue;
            const int32_t through = m->row_of[a->col[k]];
            if (through < 0) {
                last = p->level[row];
            } else if (p->level[through] < 0) {
                p->level[through] = p->level[row] + 1;
                p->rows[end++] = through;
            }
        }
    }
    return last >= 0;
}

/* Searches for a path from the row to a column without a match, each row of which is on the next
 * level and which passes no column of another search of this pass (final). Matches along it. */
static bool augment_by_levels(struct matching *m, struct most *p, int64_t start)
{
    const struct magnitudes *a = m->a;
    int32_t *const path = p->rows;
    int64_t depth = 1;
    path[0] = (int32_t)start;
    while (depth > 0) {
        int32_t row = path[depth - 1];
        for (; p->ahead[row] < a->ptr[row + 1]; p->ahead[row]++) {
            int32_t col = a->col[p->ahead[row]];
            if (m->row_of[col] >= 0 || !counts(m, p, row, p->ahead[row]))
                continue;
            for (; depth > 0; depth--) {
                row = path[depth - 1];
                const int32_t before = m->col_of[row];
                m->row_of[col] = row;
                m->col_of[row] = col;
                col = before;
            }
            return true;
        }
        int64_t k = p->next[row];
        for (; k < a->ptr[row + 1]; k++)
            if (!m->final[a->col[k]] && counts(m, p, row, k) && p->level[m->row_of[a->col[k]]] == p->level[row] + 1)
                break;
        p->next[row] = k + 1;
        if (k < a->ptr[row + 1]) {
            m->final[a->col[k]] = true;
            path[depth++] = m->row_of[a->col[k]];
        } else {
            depth--;
        }
    }
    return false;
}

/* Adds matches over the entries that count until no more rows can be matched. */
static spmv_status match_most(spmv_context *ctx, struct matching *m, bool all)
{
    spmv_status st = SPMV_OK;
    const int64_t n = m->a->rows;
    struct most p = {.all = all, .level = m->from, .rows = m->reached};
    TRY(host_alloc(ctx, n * 8, "a matching", (void **)&p.ahead));
    TRY(host_alloc(ctx, n * 8, "a matching", (void **)&p.next));
    for (int64_t i = 0; i < n; i++)
        p.ahead[i] = m->a->ptr[i];
    while (set_levels(m, &p)) {
        for (int64_t i = 0; i < n; i++) {
            m->final[i] = false;
            p.next[i] = m->a->ptr[i];
        }
        for (int64_t i = 0; i < n; i++)
            if (m->col_of[i] < 0)
                augment_by_levels(m, &p, i);
    }
    for (int64_t i = 0; i < n; i++)
        m->final[i] = false;
done:
    host_free(p.ahead);
    host_free(p.next);
    return st;
}

static int64_t matched_rows(const struct matching *m)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < m->a->rows; i++)
        rows += m->col_of[i] >= 0;
    return rows;
}

/* Sets the rank. If it is complete, the matching stays as it is, else more rows are matched. */
static spmv_status find_rank(spmv_context *ctx, struct matching *m, int64_t *rank)
{
    spmv_status st = SPMV_OK;
    const int64_t n = m->a->rows;
    int32_t *col_of = NULL;
    *rank = matched_rows(m);
    if (*rank == n)
        return SPMV_OK;
    TRY(host_alloc(ctx, n * 4, "a matching", (void **)&col_of));
    memcpy(col_of, m->col_of, (size_t)n * sizeof *col_of);
    TRY(match_most(ctx, m, true));
    *rank = matched_rows(m);
    if (*rank == n) {
        memcpy(m->col_of, col_of, (size_t)n * sizeof *col_of);
        for (int64_t j = 0; j < n; j++)
            m->row_of[j] = -1;
        for (int64_t i = 0; i < n; i++)
            if (col_of[i] >= 0)
                m->row_of[col_of[i]] = (int32_t)i;
    }
done:
    host_free(col_of);
    return st;
}

spmv_status prepare_match(spmv_context *ctx, const struct magnitudes *a, int32_t *row_of, int64_t *rank, double *row,
                          double *col)
{
    spmv_status st = SPMV_OK;
    const int64_t n = a->rows;
    struct matching m = {.a = a, .u = row, .v = col, .row_of = row_of, .room = 1024};
    *rank = 0;
    TRY(host_alloc(ctx, n * 8, "a matching", (void **)&m.base));
    TRY(host_alloc(ctx, n * 4, "a matching", (void **)&m.col_of));
    TRY(host_alloc(ctx, n * 8, "a matching", (void **)&m.distance));
    TRY(host_alloc(ctx, n * 4, "a matching", (void **)&m.from));
    TRY(host_alloc(ctx, n * 4, "a matching", (void **)&m.reached));
    TRY(host_alloc(ctx, n * 4, "a matching", (void **)&m.settled));
    TRY(host_alloc(ctx, n * 4, "a matching", (void **)&m.near));
    TRY(host_alloc(ctx, n, "a matching", (void **)&m.final));
    TRY(host_alloc(ctx, m.room * (int64_t)sizeof *m.heap, "a matching", (void **)&m.heap));
    begin(&m);
    TRY(match_most(ctx, &m, false));
    TRY(find_rank(ctx, &m, rank));
    if (*rank < n)
        goto done;
    for (int64_t i = 0; i < n && m.work <= MOST_WORK * (a->ptr[n] + n); i++) {
        const int64_t before = m.work;
        if (m.col_of[i] < 0)
            TRY(augment(ctx, &m, i));
        TRY(context_poll(ctx, "a matching", m.work - before + 1));
    }
    TRY(match_most(ctx, &m, true)); /* nothing, unless the work was too much */
    for (int64_t i = 0; i < n; i++)
        row[i] -= m.base[i];
done:
    host_free_all(m.base, m.col_of, m.distance, m.from, m.reached, m.settled, m.near, m.final, m.heap);
    return st;
}
