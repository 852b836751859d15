/* Preconditioner ilut: M = L U Q', an incomplete LU factorisation with two dropping rules and column
 * pivoting.
 *
 * Row i starts as row i of A and is eliminated with the rows before it, also at places of fill-in.
 * Entries below `drop` times the mean absolute value of the row of A are dropped. Of the others,
 * the largest of each of the two parts are kept, so that the factors have at most about `fill`
 * times the entries of A. Rows share them: a row may use what the rows before it left. The pivot is
 * the entry on the diagonal, or the largest of the row if that is more than 1 / PIVOT_SHARE times
 * as large; the two columns are exchanged. Q is this permutation. The factorisation is serial, on
 * the host, in f64, on every backend, so the factors are the same everywhere. Y. Saad, "ILUT: a
 * dual threshold incomplete LU factorization", Numer. Linear Algebra Appl. 1, 1994; ILUTP: Saad
 * 2003, section 10.4.4.
 *
 * An application solves L y = r and U Q' z = y (precond_triangles.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/plural.h"
#include "solvers/precond/precond_ilu.h"

static const double PIVOT_SHARE = 0.1;

/* Rows of a factor in progress. Room for more is made as needed. */
struct growing {
    struct host_rows rows;
    int64_t room;
};

/* The current row. value[c]: of column c; 0 where the row has no entry. */
struct work {
    const struct host_rows *a;
    double drop;
    double most;         /* entries of the factors beside their diagonals, a row on average */
    int64_t keep;        /* the most entries of one part of this row */
    double *value;       /* rows */
    bool *used;          /* rows: whether column c has an entry */
    int32_t *place, *at; /* column c is eliminated in step place[c]; at[step] is that column */
    int32_t *left;       /* a heap: steps whose columns are to be eliminated, the smallest first */
    int32_t *right;      /* columns of the U part */
    int32_t *done;       /* steps of the L part */
    int64_t lefts, rights, dones;
    int64_t work;                /* of this row: entries visited */
    double *pivot;               /* of each step */
    struct growing lower, upper; /* of upper: columns, not steps; the diagonal entry is the first */
    struct pivots pivots;
};

static spmv_status make_room(spmv_context *ctx, struct growing *g, int64_t more)
{
    spmv_status st = SPMV_OK;
    const int64_t wanted = g->room + g->room / 2 + more;
    TRY(host_resize(ctx, wanted * 4, "columns of a factor", (void **)&g->rows.col));
    TRY(host_resize(ctx, wanted * 8, "values of a factor", (void **)&g->rows.val));
    g->room = wanted;
done:
    return st;
}

/* Adds a number to the heap. */
static void heap_push(int32_t *heap, int64_t *n, int32_t number)
{
    int64_t i = (*n)++;
    for (; i > 0 && heap[(i - 1) / 2] > number; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = number;
}

/* Removes the smallest number. */
static int32_t heap_pop(int32_t *heap, int64_t *n)
{
    const int32_t smallest = heap[0], last = heap[--*n];
    int64_t i = 0;
    for (int64_t child = 1; child < *n; child = 2 * i + 1) {
        child += child + 1 < *n && heap[child + 1] < heap[child];
        if (heap[child] >= last)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return smallest;
}

/* Adds to the entry of a column, which is made if it is missing. */
static void add_entry(struct work *w, int64_t row, int32_t col, double value)
{
    w->value[col] += value;
    if (w->used[col])
        return;
    w->used[col] = true;
    if (w->place[col] < row)
        heap_push(w->left, &w->lefts, w->place[col]);
    else
        w->right[w->rights++] = col;
}

static void clear_entry(struct work *w, int32_t col)
{
    w->value[col] = 0;
    w->used[col] = false;
}

/* Eliminates the columns of the steps before. Leaves the L part in done, and the U part in
 * right. */
static void eliminate(struct work *w, int64_t row, double limit)
{
    const struct host_rows *u = &w->upper.rows;
    w->dones = 0;
    while (w->lefts > 0) {
        const int32_t step = heap_pop(w->left, &w->lefts), col = w->at[step];
        const double l = w->value[col] / w->pivot[step];
        if (!(fabs(w->value[col]) > limit) && !(fabs(l) > limit)) {
            clear_entry(w, col);
            continue;
        }
        w->value[col] = l;
        w->done[w->dones++] = step;
        w->work += u->ptr[step + 1] - u->ptr[step];
        for (int64_t e = u->ptr[step] + 1; e < u->ptr[step + 1]; e++)
            add_entry(w, row, u->col[e], -l * u->val[e]);
    }
}

/* Whether column a comes before column b among those that are kept: by size, then by number. */
static bool is_larger(const double *value, int32_t a, int32_t b)
{
    const double x = fabs(value[a]), y = fabs(value[b]);
    return x > y || (x == y && a < b);
}

/* Reorders columns so that the first `keep` of them have the largest values. Quickselect. */
static void select_largest(const double *value, int32_t *col, int64_t n, int64_t keep)
{
    int64_t begin = 0, end = n;
    while (keep < n && end - begin > 1) {
        const int32_t middle = col[begin + (end - begin) / 2];
        int64_t i = begin, j = end - 1;
        while (i <= j) {
            while (is_larger(value, col[i], middle))
                i++;
            while (is_larger(value, middle, col[j]))
                j--;
            if (i <= j) {
                const int32_t swap = col[i];
                col[i++] = col[j];
                col[j--] = swap;
            }
        }
        if (keep <= j)
            end = j + 1;
        else if (keep >= i)
            begin = i;
        else
            break;
    }
}

/* Removes the entries of at most limit, then all but the largest; returns how many are left. */
static int64_t drop_small(struct work *w, int32_t *col, int64_t n, double limit)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < n; k++)
        if (fabs(w->value[col[k]]) > limit)
            col[kept++] = col[k];
        else
            clear_entry(w, col[k]);
    select_largest(w->value, col, kept, w->keep);
    for (int64_t k = w->keep; k < kept; k++)
        clear_entry(w, col[k]);
    return min_i64(kept, w->keep);
}

/* Moves the pivot of the row to step `row`: exchanges the column there with the largest, if it is
 * much larger. Removes it from right. */
static double take_pivot(struct work *w, int64_t row)
{
    int64_t largest = -1;
    for (int64_t k = 0; k < w->rights; k++)
        if (largest < 0 || is_larger(w->value, w->right[k], w->right[largest]))
            largest = k;
    int32_t diagonal = w->at[row];
    if (largest >= 0 && fabs(w->value[diagonal]) < PIVOT_SHARE * fabs(w->value[w->right[largest]])) {
        const int32_t col = w->right[largest];
        w->at[w->place[col]] = diagonal;
        w->place[diagonal] = w->place[col];
        w->at[row] = col;
        w->place[col] = (int32_t)row;
        diagonal = col;
    }
    const double pivot = w->value[diagonal];
    int64_t kept = 0;
    for (int64_t k = 0; k < w->rights; k++)
        if (w->right[k] != diagonal)
            w->right[kept++] = w->right[k];
    w->rights = kept;
    clear_entry(w, diagonal);
    return pivot;
}

static void append(struct growing *g, int32_t col, double value)
{
    const int64_t k = g->rows.ptr[g->rows.rows]++;
    g->rows.col[k] = col;
    g->rows.val[k] = value;
}

static spmv_status begin_row(spmv_context *ctx, struct growing *g, int64_t row, int64_t entries)
{
    g->rows.rows = row + 1;
    g->rows.ptr[row + 1] = g->rows.ptr[row];
    return g->rows.ptr[row] + entries > g->room ? make_room(ctx, g, entries) : SPMV_OK;
}

/* Computes row `row` of both factors. */
static spmv_status factor_row(spmv_context *ctx, struct work *w, int64_t row)
{
    spmv_status st = SPMV_OK;
    const struct host_rows *a = w->a;
    double sum = 0, largest = 0;
    w->rights = 0;
    w->work = a->ptr[row + 1] - a->ptr[row];
    for (int64_t k = a->ptr[row]; k < a->ptr[row + 1]; k++) {
        if (a->val[k] != 0)
            add_entry(w, row, a->col[k], a->val[k]);
        sum += fabs(a->val[k]);
        largest = fmax(largest, fabs(a->val[k]));
    }
    const double limit = w->drop * sum / (double)(a->ptr[row + 1] - a->ptr[row]);
    eliminate(w, row, limit);
    const double pivot = pivot_or_replacement(&w->pivots, row, take_pivot(w, row), largest);
    w->pivot[row] = pivot;
    for (int64_t k = 0; k < w->dones; k++)
        w->done[k] = w->at[w->done[k]];
    const double used = (double)(w->lower.rows.ptr[row] + w->upper.rows.ptr[row] - 2 * row);
    w->keep = (int64_t)fmin(ceil((w->most * (double)(row + 1) - used) / 2), (double)a->rows);
    w->dones = drop_small(w, w->done, w->dones, 0);
    w->rights = drop_small(w, w->right, w->rights, limit);
    TRY(begin_row(ctx, &w->lower, row, w->dones + 1));
    TRY(begin_row(ctx, &w->upper, row, w->rights + 1));
    for (int64_t k = 0; k < w->dones; k++) {
        append(&w->lower, w->place[w->done[k]], w->value[w->done[k]]);
        clear_entry(w, w->done[k]);
    }
    append(&w->lower, (int32_t)row, 1);
    append(&w->upper, w->at[row], pivot);
    for (int64_t k = 0; k < w->rights; k++) {
        append(&w->upper, w->right[k], w->value[w->right[k]]);
        clear_entry(w, w->right[k]);
    }
    TRY(context_poll(ctx, "preconditioner ilut", w->work));
done:
    return st;
}

static spmv_status open_work(spmv_context *ctx, struct work *w)
{
    spmv_status st = SPMV_OK;
    const int64_t n = w->a->rows;
    TRY(host_alloc(ctx, n * 8, "a row of a factor", (void **)&w->value));
    TRY(host_alloc(ctx, n, "a row of a factor", (void **)&w->used));
    TRY(host_alloc(ctx, n * 4, "columns of a row of a factor", (void **)&w->place));
    TRY(host_alloc(ctx, n * 4, "columns of a row of a factor", (void **)&w->at));
    TRY(host_alloc(ctx, n * 4, "columns of a row of a factor", (void **)&w->left));
    TRY(host_alloc(ctx, n * 4, "columns of a row of a factor", (void **)&w->right));
    TRY(host_alloc(ctx, n * 4, "columns of a row of a factor", (void **)&w->done));
    TRY(host_alloc(ctx, n * 8, "pivots of a factor", (void **)&w->pivot));
    TRY(host_alloc(ctx, (n + 1) * 8, "row offsets of a factor", (void **)&w->lower.rows.ptr));
    TRY(host_alloc(ctx, (n + 1) * 8, "row offsets of a factor", (void **)&w->upper.rows.ptr));
    w->lower.rows.ptr[0] = w->upper.rows.ptr[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        w->value[i] = 0;
        w->used[i] = false;
        w->place[i] = w->at[i] = (int32_t)i;
    }
done:
    return st;
}

static void close_work(struct work *w)
{
    host_free_all(w->value, w->used, w->place, w->at, w->left, w->right, w->done, w->pivot);
    host_rows_release(&w->lower.rows);
    host_rows_release(&w->upper.rows);
}

spmv_status precond_make_ilut(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    const spmv_preconditioner_options *o = source->options;
    struct host_rows a = {0};
    struct work w = {.a = &a, .drop = o->drop, .pivots = pivots_of(m->type)};
    int64_t moved = 0;
    TRY(host_rows_take(m->ctx, source, TAKE_ALL, &a));
    TRY(ilu_check_finite(m, &a));
    TRY(open_work(m->ctx, &w));
    w.most = o->fill * (double)a.ptr[a.rows] / fmax((double)a.rows, 1);
    for (int64_t i = 0; i < a.rows; i++) {
        TRY(factor_row(m->ctx, &w, i));
        TRY(context_keep_pace(m->ctx, "preconditioner ilut", a.ptr[i + 1], a.ptr[a.rows]));
    }
    for (int64_t i = 0; i < a.rows; i++)
        moved += w.at[i] != i;
    const int64_t entries = w.upper.rows.ptr[a.rows] + w.lower.rows.ptr[a.rows];
    for (int64_t k = 0; k < w.upper.rows.ptr[a.rows]; k++)
        w.upper.rows.col[k] = w.place[w.upper.rows.col[k]];
    snprintf(m->layout, sizeof m->layout, "factors of %lld entr%s (%.2f times those of A), %lld column%s exchanged",
             (long long)entries, entries == 1 ? "y" : "ies", (double)entries / (double)max_i64(1, source->a->nnz),
             (long long)moved, plural(moved));
    pivots_report(m, &w.pivots);
    TRY(triangles_make(m, &w.lower.rows, &w.upper.rows, moved > 0 ? w.at : NULL));
done:
    close_work(&w);
    host_rows_release(&a);
    return st;
}
