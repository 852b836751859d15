/* The factor G of preconditioner fsai: G A G' is near I.
 *
 * Row i, with the columns P < i: let B be A scaled to a diagonal of ones, and
 *
 *     B[P, P] g = -B[P, i],    psi = B[i, i] + B[i, P] g,
 *
 * then row i of G is (g, 1) / sqrt(psi), scaled back. So (G A G')_ii = 1, and G A vanishes in row i at P.
 * Among all rows with this pattern, it has the smallest psi: the Kaporin number of G A G' is the product of
 * all psi, to the power 1 / n. (L. Yu. Kolotilina, A. Yu. Yeremin, SIAM J. Matrix Anal. Appl. 14, 1993.)
 *
 * The pattern is found row by row, from P empty: half of the gradient of psi at column j is r_j = B[j, i] +
 * B[j, P] g. A step adds the columns of the largest |r_j|. (C. Janna, M. Ferronato, "Adaptive pattern
 * research for block FSAI preconditioning", SIAM J. Sci. Comput. 33, 2011.)
 *
 * B[P, P] = L L' grows by a row for each column added, and psi by - y^2 with L y = -B[P, i], so nothing is
 * factored twice. Entries of the rows P are read once, when they join: their columns are then numbers of
 * candidates, and r is a product with a small matrix.
 *
 * Work of a row: with k columns, the entries of their rows times the steps, and k^3 / 6. A row with far more
 * entries than usual joins no pattern, so no work grows with its square. Each row is computed by one thread
 * from A alone: the bits do not depend on threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <omp.h>

#include "core/threads.h"
#include "formats/matrix_internal.h"
#include "solvers/precond/precond_fsai.h"

/* Rows with more entries than LONG_ROW, and than LONG_TIMES those of the mean row, join no pattern. */
enum { LONG_ROW = 128, LONG_TIMES = 8 };

/* Rows between two questions whether to go on, and those that a thread takes at once. */
enum { BLOCK_ROWS = 1 << 12, CHUNK_ROWS = 1 << 5 };

/* What all rows read. */
struct shared {
    const spmv_csr *a;  /* its columns and offsets */
    const double *root; /* the reciprocals of the square roots of the diagonal */
    const double *val;  /* of B */
    int64_t longest;    /* entries of a row that may join */
    const struct fsai_search *search;
    int most; /* steps * size */
};

/* Memory of a thread, for one row after the other. */
struct row_work {
    int32_t *slot; /* a hash table: the number of a candidate, or NONE */
    int64_t mask;
    int shift;
    /* The candidates, columns that the row may get: col; own: B[i, col]; slope: r; place: in P, or NONE, or
     * OUT; at: in the hash table. */
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
enum { NONE = -1, OUT = -2 };

/* A row of a block of rows: `most` + 1 places for each. */
struct block {
    int64_t begin, end;
    int32_t *col;
    double *val;
    int32_t *count;    /* entries of a row; 0: it failed, and val[0] is the pivot */
    int32_t *left_out; /* entries left out */
};

/* ------------------------------------------------------------------ candidates */

/* The number of a column, or NONE; *at: its place in the hash table. */
static int32_t find(const struct row_work *w, int32_t col, int64_t *at)
{
    *at = (int64_t)(((uint32_t)col * UINT32_C(2654435769)) >> w->shift);
    while (w->slot[*at] != NONE && w->col[w->slot[*at]] != col)
        *at = (*at + 1) & w->mask;
    return w->slot[*at];
}

static int32_t candidate_of(const struct shared *s, struct row_work *w, int32_t col)
{
    int64_t at = 0;
    const int32_t found = find(w, col, &at);
    if (found != NONE)
        return found;
    const int32_t c = w->candidates++;
    w->slot[at] = c;
    w->at[c] = (int32_t)at;
    w->col[c] = col;
    w->own[c] = 0;
    w->place[c] = row_first(s->a, col + 1) - row_first(s->a, col) <= s->longest ? NONE : OUT;
    return c;
}

/* Bits of a number in a hash table for so many candidates. */
static int bits_for(int64_t candidates)
{
    int bits = 3;
    while (bits < 31 && (INT64_C(1) << bits) < 2 * candidates)
        bits++;
    return bits;
}

/* Begins with the candidates of the row itself. */
static void begin_row(const struct shared *s, struct row_work *w, int64_t row)
{
    const int64_t begin = row_first(s->a, row), end = row_first(s->a, row + 1);
    for (int32_t c = 0; c < w->candidates; c++)
        w->slot[w->at[c]] = NONE;
    w->candidates = 0;
    w->places = 0;
    w->first[0] = 0;
    const int bits = bits_for(end - begin + s->most * s->longest);
    w->mask = (INT64_C(1) << bits) - 1;
    w->shift = 32 - bits;
    for (int64_t k = begin; k < end; k++)
        if (s->a->col[k] < row)
            w->own[candidate_of(s, w, s->a->col[k])] += s->val[k];
    w->work += end - begin;
}

/* ----------------------------------------------------------------- the pattern */

/* Computes r, and sets best[0 ...] to the candidates of the largest |r|, at most `size` of them; returns how
 * many. Of equal ones the first found comes first. */
static int find_best(const struct shared *s, struct row_work *w, int32_t *best)
{
    const int size = s->search->size;
    int n = 0;
    double least = 0; /* of those that are in best */
    for (int32_t c = 0; c < w->candidates; c++)
        w->slope[c] = w->own[c];
    for (int p = 0; p < w->places; p++)
        for (int64_t e = w->first[p]; e < w->first[p + 1]; e++)
            w->slope[w->entry[e]] += w->g[p] * w->value[e];
    for (int32_t c = 0; c < w->candidates; c++) {
        const double slope = fabs(w->slope[c]);
        if (!(slope > least) || w->place[c] != NONE)
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
static void read_pattern(const struct shared *s, struct row_work *w, int64_t row, int32_t col, double *line)
{
    const int64_t begin = row_first(s->a, col), end = row_first(s->a, col + 1);
    int64_t at = 0;
    for (int64_t k = begin; k < end; k++) {
        const int32_t c = s->a->col[k] < row ? find(w, s->a->col[k], &at) : NONE;
        if (c != NONE && w->place[c] >= 0)
            line[w->place[c]] += s->val[k];
    }
    w->first[w->places + 1] = w->first[w->places];
    w->work += end - begin;
}

/* The same, and its columns become candidates. */
static void read_row(const struct shared *s, struct row_work *w, int64_t row, int32_t col, double *line)
{
    const int64_t begin = row_first(s->a, col), end = row_first(s->a, col + 1);
    int64_t e = w->first[w->places];
    for (int64_t k = begin; k < end; k++) {
        const int32_t other = s->a->col[k];
        if (other >= row || other == col)
            continue;
        const int32_t c = candidate_of(s, w, other);
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
static double join(const struct shared *s, struct row_work *w, int64_t row, int32_t c, bool last, double *psi)
{
    const int n = w->places;
    double *const line = w->row[n];
    for (int p = 0; p < n; p++)
        line[p] = 0;
    (last ? read_pattern : read_row)(s, w, row, w->col[c], line);
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
    w->place[c] = OUT;
    const double rest = *psi - right * right / pivot;
    if (!(pivot > s->search->least && rest > s->search->least))
        return pivot > s->search->least ? rest : pivot;
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
static void solve(struct row_work *w)
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
static int write_row(const struct shared *s, const struct row_work *w, int64_t row, double psi, int32_t *col,
                     double *val)
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

static void make_row(const struct shared *s, struct row_work *w, int64_t row, const struct block *b)
{
    const struct fsai_search *const search = s->search;
    int32_t *const col = b->col + (row - b->begin) * (s->most + 1);
    double *const val = b->val + (row - b->begin) * (s->most + 1);
    double psi = 1;
    int32_t best[FSAI_MOST];
    int left_out = 0;
    begin_row(s, w, row);
    for (int step = 1; step <= search->steps; step++) {
        const double before = psi;
        const int n = find_best(s, w, best);
        for (int k = 0; k < n; k++) {
            const double pivot = join(s, w, row, best[k], step == search->steps, &psi);
            if (!(pivot >= -search->least)) {
                b->count[row - b->begin] = 0;
                val[0] = pivot;
                return;
            }
            left_out += !(pivot > search->least);
        }
        solve(w);
        if (!(before - psi >= search->tolerance * before))
            break;
    }
    b->count[row - b->begin] = write_row(s, w, row, psi, col, val);
    b->left_out[row - b->begin] = left_out;
}

/* ------------------------------------------------------------------- all rows */

/* root_i = 1 / sqrt(a_ii), and the values of B, root_i a_ij root_j. */
static spmv_status scale(const spmv_preconditioner *m, const struct precond_source *source, double *root, double *val)
{
    const spmv_csr *const a = &source->host;
    int64_t bad = a->nnz;
    const int team = host_team(m->ctx, a->nnz);
#pragma omp parallel for schedule(static) num_threads(team)
    for (int64_t i = 0; i < a->rows; i++)
        root[i] = 1 / sqrt(source->diagonal[i]);
#pragma omp parallel for schedule(static) num_threads(team) reduction(min : bad)
    for (int64_t i = 0; i < a->rows; i++) {
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            const double value = precond_value(a, k);
            val[k] = value * root[i] * root[a->col[k]];
            if (!isfinite(value))
                bad = min_i64(bad, k);
        }
    }
    if (bad == a->nnz)
        return SPMV_OK;
    int64_t row = 0;
    while (row_first(a, row + 1) <= bad)
        row++;
    return context_fail(m->ctx, SPMV_ERROR_NOT_FINITE, "preconditioner %s: the entry in row %lld, column %lld%s is %g",
                        m->name, context_number(m->ctx, row), context_number(m->ctx, a->col[bad]),
                        context_counted(m->ctx), precond_value(a, bad));
}

static spmv_status open_work(const spmv_preconditioner *m, const struct shared *s, int64_t longest, struct row_work *w)
{
    spmv_status st = SPMV_OK;
    const int64_t entries = s->most * s->longest, candidates = longest + entries;
    const int64_t slots = INT64_C(1) << bits_for(candidates);
    TRY(host_alloc(m->ctx, slots * 4, "candidates of a row", (void **)&w->slot));
    TRY(host_alloc(m->ctx, candidates * 4, "candidates of a row", (void **)&w->col));
    TRY(host_alloc(m->ctx, candidates * 4, "candidates of a row", (void **)&w->place));
    TRY(host_alloc(m->ctx, candidates * 4, "candidates of a row", (void **)&w->at));
    TRY(host_alloc(m->ctx, candidates * 8, "candidates of a row", (void **)&w->own));
    TRY(host_alloc(m->ctx, candidates * 8, "candidates of a row", (void **)&w->slope));
    TRY(host_alloc(m->ctx, max_i64(1, entries) * 4, "rows of a pattern", (void **)&w->entry));
    TRY(host_alloc(m->ctx, max_i64(1, entries) * 8, "rows of a pattern", (void **)&w->value));
    for (int64_t k = 0; k < slots; k++)
        w->slot[k] = NONE;
    w->candidates = 0;
done:
    return st;
}

static void close_work(struct row_work *w)
{
    host_free_all(w->slot, w->col, w->place, w->at, w->own, w->slope, w->entry, w->value);
}

/* Appends the rows of a block to the factor. */
static spmv_status append(const spmv_preconditioner *m, const struct shared *s, const struct block *b,
                          struct fsai_factor *f, int64_t *room)
{
    spmv_status st = SPMV_OK;
    for (int64_t i = b->begin; i < b->end; i++) {
        const int64_t n = b->count[i - b->begin];
        if (n == 0) {
            const double pivot = b->val[(i - b->begin) * (s->most + 1)];
            return context_fail(m->ctx, isfinite(pivot) ? SPMV_ERROR_NOT_POSITIVE : SPMV_ERROR_NOT_FINITE,
                                "preconditioner %s: a pivot of row %lld%s is %.3g: the matrix is not positive definite",
                                m->name, context_number(m->ctx, i), context_counted(m->ctx), pivot);
        }
        f->ptr[i + 1] = f->ptr[i] + n;
        if (b->left_out[i - b->begin] > 0 && f->left_out == 0)
            f->first = i;
        f->left_out += b->left_out[i - b->begin];
    }
    if (f->ptr[b->end] > *room) {
        const double rows = (double)s->a->rows / (double)b->end;
        *room = max_i64(f->ptr[b->end], (int64_t)(1.05 * rows * (double)f->ptr[b->end]));
        TRY(host_resize(m->ctx, *room * 4, "columns of a factor", (void **)&f->col));
        TRY(host_resize(m->ctx, *room * 8, "values of a factor", (void **)&f->val));
    }
#pragma omp parallel for schedule(static) num_threads(host_team(m->ctx, f->ptr[b->end] - f->ptr[b->begin]))
    for (int64_t i = b->begin; i < b->end; i++) {
        const int64_t from = (i - b->begin) * (s->most + 1), n = f->ptr[i + 1] - f->ptr[i];
        memcpy(f->col + f->ptr[i], b->col + from, (size_t)n * sizeof *f->col);
        memcpy(f->val + f->ptr[i], b->val + from, (size_t)n * sizeof *f->val);
    }
done:
    return st;
}

/* Computes the rows of a block; returns the work. */
static int64_t make_rows(const struct shared *s, struct row_work *work, int team, const struct block *b)
{
    int64_t sum = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(team) reduction(+ : sum)
    for (int64_t from = b->begin; from < b->end; from += CHUNK_ROWS) {
        struct row_work *const w = &work[team > 1 ? omp_get_thread_num() : 0];
        w->work = 0;
        for (int64_t i = from; i < min_i64(b->end, from + CHUNK_ROWS); i++)
            make_row(s, w, i, b);
        sum += w->work;
    }
    return sum;
}

spmv_status fsai_make_factor(const spmv_preconditioner *m, const struct precond_source *source,
                             const struct fsai_search *search, struct fsai_factor *factor)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *const a = &source->host;
    const int64_t usual = LONG_TIMES * a->nnz / max_i64(1, a->rows);
    struct shared s = {.a = a, .search = search, .most = search->steps * search->size};
    struct block b = {.col = NULL};
    const int team = host_team(m->ctx, a->nnz * s.most);
    struct row_work *work = NULL;
    double *val = NULL, *root = NULL;
    int64_t longest = 0, room = 0;
    *factor = (struct fsai_factor){.rows = a->rows};
    TRY(host_alloc(m->ctx, (a->rows + 1) * 8, "row offsets of a factor", (void **)&factor->ptr));
    factor->ptr[0] = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t n = row_first(a, i + 1) - row_first(a, i);
        longest = max_i64(longest, n);
        if (n <= max_i64(LONG_ROW, usual))
            s.longest = max_i64(s.longest, n);
    }
    TRY(host_alloc(m->ctx, max_i64(1, a->nnz) * 8, "a scaled matrix", (void **)&val));
    TRY(host_alloc(m->ctx, max_i64(1, a->rows) * 8, "a scaled matrix", (void **)&root));
    TRY(scale(m, source, root, val));
    s.root = root;
    s.val = val;
    TRY(host_zeros(m->ctx, team * (int64_t)sizeof *work, "rows of a factor", (void **)&work));
    for (int t = 0; t < team; t++)
        TRY(open_work(m, &s, longest, &work[t]));
    const int64_t rows = min_i64(BLOCK_ROWS, max_i64(1, a->rows));
    TRY(host_alloc(m->ctx, rows * (s.most + 1) * 4, "rows of a factor", (void **)&b.col));
    TRY(host_alloc(m->ctx, rows * (s.most + 1) * 8, "rows of a factor", (void **)&b.val));
    TRY(host_alloc(m->ctx, rows * 4, "rows of a factor", (void **)&b.count));
    TRY(host_alloc(m->ctx, rows * 4, "rows of a factor", (void **)&b.left_out));
    for (b.begin = 0; b.begin < a->rows; b.begin = b.end) {
        b.end = min_i64(a->rows, b.begin + BLOCK_ROWS);
        TRY(context_poll(m->ctx, "preconditioner fsai", make_rows(&s, work, team, &b)));
        TRY(context_keep_pace(m->ctx, "preconditioner fsai", b.end, a->rows));
        TRY(append(m, &s, &b, factor, &room));
    }
done:
    for (int t = 0; t < team && work != NULL; t++)
        close_work(&work[t]);
    host_free_all(work, val, root, b.col, b.val, b.count, b.left_out);
    if (st != SPMV_OK)
        fsai_release(factor);
    return st;
}

void fsai_release(struct fsai_factor *factor)
{
    host_free_all(factor->ptr, factor->col, factor->val);
    *factor = (struct fsai_factor){.rows = 0};
}
