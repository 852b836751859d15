/* Preconditioner ilut: M = L U Q', an incomplete LU factorisation with two dropping rules and
 * column pivoting.
 *
 * Row i starts as row i of A and is eliminated with the rows before it, also at places of fill-in.
 * Entries below `drop` times the mean absolute value of the row of A are dropped. Of the others,
 * the largest of each of the two parts are kept, so that the factors have at most about `fill`
 * times the entries of A. Rows share them: a row may use what the rows before it left. The pivot
 * is the entry on the diagonal, or the largest of the row if that is more than 1 / PIVOT_SHARE
 * times as large; the two columns are exchanged. Q is this permutation. Y. Saad, "ILUT: a dual
 * threshold incomplete LU factorization", Numer. Linear Algebra Appl. 1, 1994; ILUTP: Saad 2003,
 * section 10.4.4.
 *
 * Two threads begin at both ends: one eliminates the rows of the first half forwards,
 * the other those of the second half backwards. Rows of one half that are connected with the other
 * one are left to the end. So no row of one half meets a row of the other before, and a cut in a
 * banded matrix adds no fill-in. H. A. van der Vorst, "Large tridiagonal and block tridiagonal
 * linear systems on vector and parallel computers", Parallel Computing 5, 1987. The halves depend
 * on the matrix only, so factors have the same bits for any number of threads. A pivot is in a
 * column of the row's own half. Where another column has all large entries, the row is late: it is
 * left to the end as well, with a column that has no pivot yet. A matrix whose halves have too
 * many connections is not cut, nor one with small diagonal entries. Rows that are full, in A or in
 * A', come last. The factorisation runs on the host, in f64, on every backend, so the factors are
 * the same everywhere.
 *
 * An application solves L y = r and U Q' z = y (precond_triangles.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifdef _OPENMP
#include <omp.h>
#endif
#include <stdatomic.h>
#include <time.h>

#include "core/plural.h"
#include "core/threads.h"
#include "solvers/precond/precond_ilu.h"

static const double PIVOT_SHARE = 0.1;

/* ------------------------------------------------------------------- memory of factors */

/* n entries of a row of a factor: n values and behind them n columns; NULL without entries. */
static int32_t *columns_of(double *values, int64_t n)
{
    return n > 0 ? (int32_t *)(values + n) : NULL;
}

/* Memory that only grows, in blocks that stay where they are. */
struct store {
    struct block *last;
    int64_t words; /* of all blocks */
};

struct block {
    struct block *before;
    int64_t used, words;
    double word[];
};

/* Room for n entries; NULL without memory. */
static double *store_take(struct store *s, int64_t n)
{
    enum { LEAST = 1 << 9, MOST = 1 << 21, SHARE = 8 };
    const int64_t wanted = n + (n + 1) / 2;
    if (s->last == NULL || s->last->words - s->last->used < wanted) {
        struct block *block = NULL;
        const int64_t words = max_i64(wanted, max_i64(LEAST, min_i64(MOST, s->words / SHARE)));
        if (host_alloc(NULL, (int64_t)sizeof *block + words * 8, "", (void **)&block) != SPMV_OK)
            return NULL;
        pages_ask_large(block, words * 8);
        *block = (struct block){.before = s->last, .words = words};
        s->last = block;
        s->words += words;
    }
    double *const taken = s->last->word + s->last->used;
    s->last->used += wanted;
    return taken;
}

/* Releases the last blocks, up to the one that holds these values; NULL: all. */
static void store_release(struct store *s, const double *values)
{
    while (s->last != NULL && (values == NULL || values < s->last->word || values >= s->last->word + s->last->used)) {
        struct block *const before = s->last->before;
        host_free(s->last);
        s->last = before;
    }
}

/* ------------------------------------------------------------------- a set of steps */

/* A tree of words of 64 bits: bit i of a level is set if word i of the level below is not 0. */
enum { SET_LEVELS = 6 /* 36 bits */ };
struct set {
    int levels;
    uint64_t *word[SET_LEVELS], *memory;
};

static spmv_status set_open(struct set *s, int64_t numbers)
{
    int64_t words = 0, begin[SET_LEVELS] = {0};
    s->levels = 0;
    do {
        numbers = max_i64(1, ceil_divide(numbers, 64));
        begin[s->levels++] = words;
        words += numbers;
    } while (numbers > 1);
    const spmv_status st = host_zeros(NULL, words * 8, "", (void **)&s->memory);
    for (int l = 0; st == SPMV_OK && l < s->levels; l++)
        s->word[l] = s->memory + begin[l];
    return st;
}

static void set_add(struct set *s, int64_t number)
{
    for (int l = 0; l < s->levels; l++) {
        uint64_t *const word = &s->word[l][number >> 6];
        const uint64_t before = *word;
        *word |= (uint64_t)1 << (number & 63);
        if (before != 0)
            break;
        number >>= 6;
    }
}

/* Removes the smallest number; -1 if there is none. *at: the word of the number taken before, if
 * smaller ones were not added since; else -1. */
static int64_t set_take(struct set *s, int64_t *at)
{
    if (*at < 0 || s->word[0][*at] == 0) {
        if (s->word[s->levels - 1][0] == 0)
            return -1;
        *at = 0;
        for (int l = s->levels - 1; l > 0; l--)
            *at = *at << 6 | __builtin_ctzll(s->word[l][*at]);
    }
    const int64_t smallest = *at << 6 | __builtin_ctzll(s->word[0][*at]);
    int64_t number = smallest;
    for (int l = 0; l < s->levels; l++) {
        uint64_t *const word = &s->word[l][number >> 6];
        *word &= *word - 1; /* its lowest bit */
        if (*word != 0)
            break;
        number >>= 6;
    }
    return smallest;
}

/* ------------------------------------------------------------------- the factors in progress */

/* An eliminated row. Its entries beside the pivot, by columns. */
struct step {
    double *lower, *upper;
    int32_t lowers, uppers;
    int32_t row, col;
    double pivot;
};

/* The parts of the matrix, in the order of their steps. A matrix that is not cut is all END. FULL:
 * rows that come last in END. */
enum { FORWARD, BACKWARD, END, PARTS, FULL = PARTS };

struct part {
    int64_t first, last; /* its rows: from row[first] to row[last - 1] */
    int64_t begin, steps;
    int64_t rows, used; /* steps so far that share their entries, and these entries beside pivots */
    int64_t work;       /* entries visited */
    int64_t done;       /* entries of A in the rows eliminated; for END in all */
    int32_t late;       /* the first late row; -1: none */
    struct store lower, upper;
    struct pivots pivots;
    spmv_status st;
};

struct factor {
    spmv_context *ctx;
    const spmv_csr *a;
    double drop;
    double most;      /* entries of the factors beside their diagonals, a row on average */
    uint8_t *part_of; /* of a row, and of its column */
    int32_t *row;     /* rows by part */
    struct part part[PARTS];
    struct step *step;  /* rows */
    int32_t *step_of;   /* of a column; -1: it has no pivot yet */
    int32_t *col_of;    /* the column that a row has, or would have, as its pivot */
    int32_t *row_of;    /* the inverse */
    int32_t *next_late; /* rows */
    atomic_int taken;   /* parts that threads have taken, and those that they have ended */
    atomic_int ended;
    atomic_bool stop; /* the result is known */
    atomic_bool cancelled;
};

/* An entry of the current row. */
struct entry {
    double value;
    int32_t col, step; /* -1: of U */
};

/* What a thread needs for a row. */
struct worker {
    struct factor *f;
    bool asks; /* it is the thread that called the library */
    struct set left;
    int32_t *slot; /* of each column: its entry + 1, or 0 */
    struct entry *entry;
    int32_t *done; /* the entries of L, by step */
    int64_t entries, dones, room;
};

/* ------------------------------------------------------------------- one row */

static spmv_status worker_room(struct worker *w, int64_t more)
{
    spmv_status st = SPMV_OK;
    if (w->entries + more <= w->room)
        return SPMV_OK;
    const int64_t room = 2 * (w->entries + more);
    TRY(host_resize(NULL, room * (int64_t)sizeof *w->entry, "", (void **)&w->entry));
    TRY(host_resize(NULL, room * (int64_t)sizeof *w->done, "", (void **)&w->done));
    w->room = room;
done:
    return st;
}

static void make_entry(struct worker *w, int32_t col, double value)
{
    const int32_t step = w->f->step_of[col];
    w->entry[w->entries] = (struct entry){value, col, step};
    w->slot[col] = (int32_t)++w->entries;
    if (step >= 0)
        set_add(&w->left, step);
}

/* Adds factor * values to the entries of these columns, which are made where they are missing.
 * There is room for them. */
static void add_entries(struct worker *w, const int32_t *col, const double *values, int64_t n, double factor)
{
    const int32_t *const slot = w->slot;
    struct entry *const entry = w->entry;
    for (int64_t k = 0; k < n; k++) {
        const int32_t at = slot[col[k]];
        if (at > 0)
            entry[at - 1].value += factor * values[k];
        else
            make_entry(w, col[k], factor * values[k]);
    }
}

static spmv_status load_row(struct worker *w, int64_t row)
{
    const spmv_csr *a = w->f->a;
    const int64_t begin = row_first(a, row), end = row_first(a, row + 1);
    const spmv_status st = worker_room(w, end - begin);
    for (int64_t k = begin; st == SPMV_OK && k < end; k++) {
        const double value = precond_value(a, k);
        add_entries(w, &a->col[k], &value, 1, 1);
    }
    return st;
}

/* Eliminates the columns of the steps before. An entry that is dropped becomes 0. */
static spmv_status eliminate(struct worker *w, double limit, int64_t *work)
{
    int64_t number = 0, at = -1;
    w->dones = 0;
    while ((number = set_take(&w->left, &at)) >= 0) {
        const struct step *const s = &w->f->step[number];
        const int32_t e = w->slot[s->col] - 1;
        const double value = w->entry[e].value;
        if (!(fabs(value) > limit) && !(fabs(value) > limit * fabs(s->pivot))) {
            w->entry[e].value = 0;
            continue;
        }
        const double l = value / s->pivot;
        w->entry[e].value = l;
        w->done[w->dones++] = e;
        *work += s->uppers + 1;
        const spmv_status st = worker_room(w, s->uppers);
        if (st != SPMV_OK)
            return st;
        add_entries(w, columns_of(s->upper, s->uppers), s->upper, s->uppers, -l);
    }
    return SPMV_OK;
}

static void forget_row(struct worker *w)
{
    for (int64_t k = 0; k < w->entries; k++)
        w->slot[w->entry[k].col] = 0;
    w->entries = 0;
}

/* Whether entry a comes before entry b among those that are kept: by size, then by column. */
static bool is_larger(struct entry a, struct entry b)
{
    const double x = fabs(a.value), y = fabs(b.value);
    return x > y || (x == y && a.col < b.col);
}

/* Reorders entries so that the first `keep` of them are the largest. Quickselect. */
static void select_largest(struct entry *entry, int64_t n, int64_t keep)
{
    int64_t begin = 0, end = n;
    while (keep < n && end - begin > 1) {
        const struct entry middle = entry[begin + (end - begin) / 2];
        int64_t i = begin, j = end - 1;
        while (i <= j) {
            while (is_larger(entry[i], middle))
                i++;
            while (is_larger(middle, entry[j]))
                j--;
            if (i <= j) {
                const struct entry swap = entry[i];
                entry[i++] = entry[j];
                entry[j--] = swap;
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

/* Appends entries to a store. */
static spmv_status put(struct store *store, const struct entry *entry, int64_t n, double **values, int32_t *count)
{
    *values = NULL;
    *count = (int32_t)n;
    if (n == 0)
        return SPMV_OK;
    *values = store_take(store, n);
    if (*values == NULL)
        return SPMV_ERROR_MEMORY;
    int32_t *const col = columns_of(*values, n);
    for (int64_t k = 0; k < n; k++) {
        (*values)[k] = entry[k].value;
        col[k] = entry[k].col;
    }
    return SPMV_OK;
}

/* The column of the largest entry of U in this part, if it is at least so large; -1: there is
 * none. */
static int32_t largest_inside(const struct worker *w, int part, double least)
{
    struct entry largest = {0, -1, -1};
    for (int64_t k = 0; k < w->entries; k++)
        if (w->entry[k].step < 0 && w->f->part_of[w->entry[k].col] == part &&
            (largest.col < 0 || is_larger(w->entry[k], largest)))
            largest = w->entry[k];
    return fabs(largest.value) < least ? -1 : largest.col;
}

/* The column of the pivot of a row: the one it has, unless another entry is much larger. -1: all
 * such entries are in columns of another part. */
static int32_t find_pivot(const struct worker *w, int part, int32_t row)
{
    const int32_t diagonal = w->f->col_of[row], slot = w->slot[diagonal];
    double largest = 0;
    for (int64_t k = 0; k < w->entries; k++) {
        const double size = w->entry[k].step < 0 ? fabs(w->entry[k].value) : 0;
        largest = size > largest ? size : largest;
    }
    const double least = PIVOT_SHARE * largest;
    if (!(fabs(slot > 0 ? w->entry[slot - 1].value : 0) < least))
        return diagonal;
    return largest_inside(w, part, least);
}

static void exchange_columns(struct factor *f, int32_t row, int32_t col)
{
    const int32_t other = f->row_of[col], had = f->col_of[row];
    f->col_of[other] = had;
    f->row_of[had] = other;
    f->col_of[row] = col;
    f->row_of[col] = row;
}

/* Makes the next step of a part out of the current row. */
static spmv_status end_row(struct worker *w, struct part *p, int32_t row, double limit, double largest)
{
    spmv_status st = SPMV_OK;
    struct factor *const f = w->f;
    struct step *const s = &f->step[p->begin + p->steps];
    const int32_t col = f->col_of[row], slot = w->slot[col];
    const double pivot = slot > 0 ? w->entry[slot - 1].value : 0;
    *s = (struct step){.row = row, .col = col, .pivot = pivot_or_replacement(&p->pivots, row, pivot, largest)};
    /* the L part goes behind all entries, then the U part to the front */
    struct entry *const lower = w->entry + w->entries;
    int64_t lowers = 0, uppers = 0;
    for (int64_t k = 0; k < w->dones; k++)
        if (fabs(w->entry[w->done[k]].value) > 0)
            lower[lowers++] = w->entry[w->done[k]];
    for (int64_t k = 0; k < w->entries; k++) {
        const struct entry e = w->entry[k];
        w->slot[e.col] = 0;
        if (e.step < 0 && e.col != col && fabs(e.value) > limit)
            w->entry[uppers++] = e;
    }
    w->entries = 0;
    const double left = f->most * (double)(p->rows + 1) - (double)p->used;
    const int64_t keep = (int64_t)fmax(0, fmin(ceil(left / 2), (double)f->a->rows));
    select_largest(lower, lowers, keep);
    select_largest(w->entry, uppers, keep);
    TRY(put(&p->lower, lower, min_i64(lowers, keep), &s->lower, &s->lowers));
    TRY(put(&p->upper, w->entry, min_i64(uppers, keep), &s->upper, &s->uppers));
    f->step_of[col] = (int32_t)(p->begin + p->steps);
    p->used += s->lowers + s->uppers;
    p->rows++;
    p->steps++;
done:
    return st;
}

/* Eliminates a row of a part. *late: it has no pivot there. */
static spmv_status factor_row(struct worker *w, int part, int32_t row, bool *late)
{
    spmv_status st = SPMV_OK;
    struct factor *const f = w->f;
    struct part *const p = &f->part[part];
    double sum = 0, largest = 0;
    *late = false;
    TRY(load_row(w, row));
    for (int64_t k = 0; k < w->entries; k++) {
        sum += fabs(w->entry[k].value);
        largest = fmax(largest, fabs(w->entry[k].value));
    }
    /* the diagonal entry counts also if it is missing */
    const int64_t count = w->entries + (w->slot[row] == 0);
    const double limit = f->drop * sum / (double)count;
    p->work += count;
    TRY(eliminate(w, limit, &p->work));
    const int32_t col = find_pivot(w, part, row);
    if (col < 0) {
        *late = true;
        forget_row(w);
        return SPMV_OK;
    }
    if (col != f->col_of[row])
        exchange_columns(f, row, col);
    TRY(worker_room(w, w->dones));
    TRY(end_row(w, p, row, limit, largest));
done:
    return st;
}

/* ------------------------------------------------------------------- parts */

/* Sets full rows, and rows whose columns are full, to FULL, and others to END. count: rows. */
static void find_full(struct factor *f, int32_t *count)
{
    static const double MOST = 10; /* entries, in square roots of the number of rows */
    const spmv_csr *const a = f->a;
    const double most = MOST * sqrt((double)a->rows);
    for (int64_t i = 0; i < a->rows; i++)
        count[i] = 0;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            count[a->col[k]] += count[a->col[k]] < INT32_MAX;
    for (int64_t i = 0; i < a->rows; i++)
        f->part_of[i] = count[i] > most || (double)(row_first(a, i + 1) - row_first(a, i)) > most ? FULL : END;
}

/* For a cut in front of a row: the rows before it with an entry that connects them to a row behind
 * it get the mark 1, those behind it 2; full rows connect none. Returns the mark that fewer rows
 * have, and how many. mark: rows. */
static int32_t mark_connected(const struct factor *f, int64_t cut, int32_t *mark, int64_t *marked)
{
    const spmv_csr *const a = f->a;
    int64_t count[3] = {0};
    for (int64_t i = 0; i < a->rows; i++)
        mark[i] = 0;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); f->part_of[i] != FULL && k < row_first(a, i + 1); k++)
            if ((i < cut) != (a->col[k] < cut) && f->part_of[a->col[k]] != FULL) {
                mark[i] = i < cut ? 1 : 2;
                mark[a->col[k]] = i < cut ? 2 : 1;
            }
    for (int64_t i = 0; i < a->rows; i++)
        count[mark[i]]++;
    *marked = min_i64(count[1], count[2]);
    return count[1] <= count[2] ? 1 : 2;
}

/* Rows whose diagonal entry is small beside the others. Where there are many, elimination may be
 * stable in one order and not in another. */
static int64_t count_weak(const spmv_csr *a)
{
    static const double WEAK = 3;
    int64_t weak = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        double diagonal = 0, others = 0;
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            *(a->col[k] == i ? &diagonal : &others) += fabs(precond_value(a, k));
        weak += others > WEAK * diagonal;
    }
    return weak;
}

/* Cuts the matrix if that is of use. LEAST_ENTRIES: with fewer, threads gain little. MOST_MARKED:
 * one of so many rows may be left to the end, where rows have more fill-in and one thread.
 * MOST_WEAK: one of so many rows may be weak. mark: rows. */
static void cut(struct factor *f, int32_t *mark)
{
    enum { LEAST_ENTRIES = 1 << 16, MOST_MARKED = 16, MOST_WEAK = 32 };
    const spmv_csr *const a = f->a;
    int64_t middle = 0, marked = 0;
    if (row_first(a, a->rows) < LEAST_ENTRIES || count_weak(a) > a->rows / MOST_WEAK)
        return;
    while (row_first(a, middle) < row_first(a, a->rows) / 2)
        middle++;
    const int32_t fewer = mark_connected(f, middle, mark, &marked);
    for (int64_t i = 0; marked <= a->rows / MOST_MARKED && i < a->rows; i++)
        if (f->part_of[i] == END && mark[i] != fewer)
            f->part_of[i] = i < middle ? FORWARD : BACKWARD;
}

/* Sorts rows by part: those of BACKWARD descend, and full ones are the last of END. */
static void sort_by_part(struct factor *f)
{
    int64_t begin[FULL + 2] = {0}, at[FULL + 1];
    for (int64_t i = 0; i < f->a->rows; i++)
        begin[f->part_of[i] + 1]++;
    for (int p = 0; p <= FULL; p++)
        begin[p + 1] += begin[p];
    for (int p = 0; p <= FULL; p++)
        at[p] = begin[p == BACKWARD ? p + 1 : p];
    for (int64_t i = 0; i < f->a->rows; i++) {
        const int p = f->part_of[i];
        f->row[p == BACKWARD ? --at[p] : at[p]++] = (int32_t)i;
        f->part_of[i] = (uint8_t)(p == FULL ? END : p);
    }
    for (int p = 0; p < PARTS; p++)
        f->part[p] = (struct part){.first = begin[p], .last = begin[p == END ? FULL + 1 : p + 1], .late = -1};
}

/* Ends a row of a part: late, or done. Work of a part is compared with the limits as if the part
 * were the first one, so that the answer does not depend on the other one. */
static spmv_status add_row(struct worker *w, int part, int32_t row)
{
    struct factor *const f = w->f;
    struct part *const p = &f->part[part];
    const int64_t before = p->work;
    bool late = false;
    const spmv_status st = factor_row(w, part, row, &late);
    if (st != SPMV_OK)
        return st;
    if (late) {
        f->next_late[row] = p->late;
        p->late = row;
    } else {
        p->done += row_first(f->a, row + 1) - row_first(f->a, row);
    }
    if (w->asks && context_asks(f->ctx, p->work - before)) {
        atomic_store(&f->cancelled, true);
        return SPMV_CANCELLED;
    }
    return context_allows(f->ctx, p->work, p->done, row_first(f->a, f->a->rows)) ? SPMV_OK : SPMV_ERROR_LIMIT;
}

static void factor_part(struct worker *w, int part)
{
    struct factor *const f = w->f;
    struct part *const p = &f->part[part];
    for (int64_t k = p->first; p->st == SPMV_OK && k < p->last; k++) {
        if (atomic_load_explicit(&f->stop, memory_order_relaxed))
            return;
        p->st = add_row(w, part, f->row[k]);
    }
    /* after a failure of the first part, the second one is not needed */
    if (atomic_load(&f->cancelled) || (part == FORWARD && p->st != SPMV_OK))
        atomic_store(&f->stop, true);
}

/* While the other thread works: the caller may still cancel. */
static void wait_for_halves(struct factor *f)
{
    const struct timespec pause = {.tv_nsec = 200000};
    while (atomic_load(&f->ended) < END) {
        if (!atomic_load(&f->cancelled) && context_cancelled(f->ctx)) {
            atomic_store(&f->cancelled, true);
            atomic_store(&f->stop, true);
        }
        nanosleep(&pause, NULL);
    }
}

static void factor_halves(struct factor *f, struct worker *worker, int workers)
{
#pragma omp parallel num_threads(workers > 1 ? f->ctx->threads : 1)
    {
#ifdef _OPENMP
        const int thread = omp_get_thread_num();
#else
        const int thread = 0;
#endif
        int part = END;
        while (thread < workers && (part = atomic_fetch_add(&f->taken, 1)) < END) {
            factor_part(&worker[thread], part);
            atomic_fetch_add(&f->ended, 1);
        }
        if (thread == 0)
            wait_for_halves(f);
    }
}

/* After a part: counts its work, and returns its failure. before: p->done of the other half. */
static spmv_status check_part(const struct factor *f, const struct part *p, int64_t before)
{
    static const char what[] = "preconditioner ilut";
    spmv_status st = SPMV_OK;
    if (atomic_load(&f->cancelled))
        return context_fail_cancelled(f->ctx, what);
    if (p->st == SPMV_ERROR_MEMORY)
        return context_fail_memory(f->ctx, "entries of a factor", 8 * (p->lower.words + p->upper.words));
    TRY(context_poll(f->ctx, what, p->work));
    TRY(context_keep_pace(f->ctx, what, p->done + (p->st == SPMV_OK ? before : 0), row_first(f->a, f->a->rows)));
    st = p->st;
done:
    return st;
}

/* Moves the steps of a part to others in front of them. */
static void move_steps(struct factor *f, struct part *p, int64_t begin)
{
    for (int64_t k = 0; begin < p->begin && k < p->steps; k++) {
        f->step[begin + k] = f->step[p->begin + k];
        f->step_of[f->step[begin + k].col] = (int32_t)(begin + k);
    }
    p->begin = begin;
}

static spmv_status factor_all(struct factor *f, struct worker *worker, int workers)
{
    spmv_status st = SPMV_OK;
    struct part *const forward = &f->part[FORWARD], *const backward = &f->part[BACKWARD], *const end = &f->part[END];
    backward->begin = forward->last;
    if (forward->last > 0)
        factor_halves(f, worker, workers);
    TRY(check_part(f, forward, 0));
    TRY(check_part(f, backward, forward->done));
    move_steps(f, backward, forward->steps);
    end->begin = forward->steps + backward->steps;
    end->rows = forward->rows + backward->rows;
    end->used = forward->used + backward->used;
    end->done = forward->done + backward->done;
    for (int half = FORWARD; half < END; half++)
        for (int32_t row = f->part[half].late; row >= 0; row = f->next_late[row])
            f->part_of[f->col_of[row]] = END;
    factor_part(worker, END);
    for (int half = FORWARD; half < END; half++)
        for (int32_t row = f->part[half].late; end->st == SPMV_OK && row >= 0; row = f->next_late[row])
            end->st = add_row(worker, END, row);
    TRY(check_part(f, end, 0));
done:
    return st;
}

/* ------------------------------------------------------------------- the triangles */

/* Moves one factor of a part to its place, in numbers of rows: the column of a pivot gets that of
 * its row. Entries are nearly in the order in which a solve needs them, so that they are sorted
 * quickly. */
static void move_part(const struct factor *f, struct part *p, bool upper, const struct host_rows *to)
{
    struct store *const store = upper ? &p->upper : &p->lower;
    for (int64_t k = p->begin + p->steps - 1; k >= p->begin; k--) {
        const struct step *const s = &f->step[k];
        double *const values = upper ? s->upper : s->lower;
        const int32_t n = upper ? s->uppers : s->lowers;
        const int32_t *const col = columns_of(values, n);
        int64_t at = to->ptr[s->row];
        if (n > 0)
            store_release(store, values);
        for (int32_t i = 0; i < n; i++, at++) {
            const int32_t e = upper ? n - 1 - i : i;
            to->col[at] = f->row_of[col[e]];
            to->val[at] = values[e];
        }
        to->col[at] = s->row;
        to->val[at] = upper ? s->pivot : 1;
    }
    store_release(store, NULL);
}

/* Moves one of the factors to a triangle. */
static spmv_status take_triangle(struct factor *f, bool upper, struct host_rows *to)
{
    spmv_status st = SPMV_OK;
    const int64_t n = f->a->rows;
    int64_t entries = n;
    for (int64_t k = 0; k < n; k++)
        entries += upper ? f->step[k].uppers : f->step[k].lowers;
    TRY(host_rows_alloc(f->ctx, n, entries, to));
    for (int64_t k = 0; k < n; k++)
        to->ptr[f->step[k].row + 1] = 1 + (upper ? f->step[k].uppers : f->step[k].lowers);
    for (int64_t i = 0; i < n; i++)
        to->ptr[i + 1] += to->ptr[i];
#pragma omp parallel for schedule(dynamic, 1) num_threads(host_team(f->ctx, entries))
    for (int part = 0; part < PARTS; part++)
        move_part(f, &f->part[part], upper, to);
done:
    return st;
}

/* ------------------------------------------------------------------- making */

static void close_workers(struct worker *worker)
{
    for (int t = 0; t < END; t++) {
        host_free_all(worker[t].left.memory, worker[t].slot, worker[t].entry, worker[t].done);
        worker[t] = (struct worker){.f = NULL};
    }
}

/* One for each half, or a single one if there is one thread or memory is short. */
static spmv_status open_workers(struct factor *f, struct worker *worker, int *workers)
{
    spmv_status st = SPMV_OK;
    const int64_t n = f->a->rows;
    const int most = f->ctx->threads > 1 && f->part[FORWARD].last > 0 ? END : 1;
    for (*workers = 0; *workers < most; ++*workers) {
        struct worker *const w = &worker[*workers];
        w->f = f;
        w->asks = *workers == 0;
        if ((st = host_zeros(NULL, n * 4, "", (void **)&w->slot)) != SPMV_OK ||
            (st = set_open(&w->left, n)) != SPMV_OK || (st = worker_room(w, 256)) != SPMV_OK)
            return *workers > 0 ? SPMV_OK : context_fail_memory(f->ctx, "a row of a factor", n * 4);
    }
    return st;
}

static spmv_status open_factor(struct factor *f)
{
    spmv_status st = SPMV_OK;
    const int64_t n = f->a->rows;
    TRY(host_alloc(f->ctx, n, "parts of a factor", (void **)&f->part_of));
    TRY(host_alloc(f->ctx, n * 4, "parts of a factor", (void **)&f->row));
    TRY(host_alloc(f->ctx, n * (int64_t)sizeof *f->step, "rows of a factor", (void **)&f->step));
    pages_ask_large(f->step, n * (int64_t)sizeof *f->step);
    TRY(host_alloc(f->ctx, n * 4, "columns of a factor", (void **)&f->step_of));
    TRY(host_alloc(f->ctx, n * 4, "columns of a factor", (void **)&f->col_of));
    TRY(host_alloc(f->ctx, n * 4, "columns of a factor", (void **)&f->row_of));
    TRY(host_alloc(f->ctx, n * 4, "columns of a factor", (void **)&f->next_late));
    for (int64_t i = 0; i < n; i++) {
        f->step_of[i] = -1;
        f->col_of[i] = f->row_of[i] = (int32_t)i;
    }
    find_full(f, f->row);
    cut(f, f->next_late);
    sort_by_part(f);
done:
    return st;
}

/* Releases all but col_of. */
static void close_factor(struct factor *f)
{
    for (int part = 0; part < PARTS; part++) {
        store_release(&f->part[part].lower, NULL);
        store_release(&f->part[part].upper, NULL);
    }
    host_free_all(f->part_of, f->row, f->step, f->step_of, f->row_of, f->next_late);
    f->part_of = NULL;
    f->row = f->step_of = f->row_of = f->next_late = NULL;
    f->step = NULL;
}

/* The pivots that the parts replaced; the first one by number of its row. */
static struct pivots all_pivots(const struct factor *f)
{
    struct pivots sum = f->part[0].pivots;
    for (int part = 1; part < PARTS; part++) {
        const struct pivots *p = &f->part[part].pivots;
        if (p->replaced > 0 && (sum.replaced == 0 || p->first < sum.first)) {
            sum.first = p->first;
            sum.first_pivot = p->first_pivot;
        }
        sum.replaced += p->replaced;
    }
    return sum;
}

spmv_status precond_make_ilut(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    const spmv_preconditioner_options *o = source->options;
    const spmv_csr *a = &source->host;
    struct factor f = {.ctx = m->ctx, .a = a, .drop = o->drop};
    struct host_rows lower = {0}, upper = {0};
    struct worker worker[END] = {{.f = NULL}};
    int32_t *order = NULL;
    int64_t moved = 0;
    int workers = 0;
    TRY(ilu_check_finite(m, a));
    TRY(open_factor(&f));
    f.most = o->fill * (double)row_first(a, a->rows) / fmax((double)a->rows, 1);
    for (int part = 0; part < PARTS; part++)
        f.part[part].pivots = pivots_of(m->type);
    TRY(open_workers(&f, worker, &workers));
    TRY(factor_all(&f, worker, workers));
    close_workers(worker);
    TRY(host_alloc(m->ctx, a->rows * 4, "the order of a factor", (void **)&order));
    for (int64_t k = 0; k < a->rows; k++)
        order[k] = f.step[k].row;
    for (int64_t i = 0; i < a->rows; i++)
        moved += f.col_of[i] != i;
    TRY(take_triangle(&f, false, &lower));
    TRY(take_triangle(&f, true, &upper));
    const int64_t entries = upper.ptr[a->rows] + lower.ptr[a->rows];
    snprintf(m->layout, sizeof m->layout, "factors of %lld entr%s (%.2f times those of A), %lld column%s exchanged",
             (long long)entries, entries == 1 ? "y" : "ies", (double)entries / (double)max_i64(1, source->a->nnz),
             (long long)moved, plural(moved));
    const struct pivots pivots = all_pivots(&f);
    pivots_report(m, &pivots);
    close_factor(&f); /* before the triangles are copied */
    TRY(triangles_make(m, &lower, &upper, order, moved > 0 ? f.col_of : NULL));
done:
    close_workers(worker);
    close_factor(&f);
    host_rows_release(&lower);
    host_rows_release(&upper);
    host_free(f.col_of);
    host_free(order);
    return st;
}
