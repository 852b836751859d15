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
#include "solvers/precond/precond_fsai_rows.h"

/* Rows between two questions whether to go on, and those that a thread takes at once. */
enum { BLOCK_ROWS = 1 << 12, ROWS_AT_ONCE = 1 << 5 };

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

/* Appends the rows of a block to the factor. */
static spmv_status append(const spmv_preconditioner *m, const struct fsai_given *s, const struct fsai_block *b,
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
        const double rows = (double)f->rows / (double)b->end;
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
static int64_t make_rows(const struct fsai_given *s, struct fsai_work **work, int team, const struct fsai_block *b)
{
    int64_t sum = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(team) reduction(+ : sum)
    for (int64_t from = b->begin; from < b->end; from += ROWS_AT_ONCE) {
        struct fsai_work *const w = work[team > 1 ? omp_get_thread_num() : 0];
        w->work = 0;
        for (int64_t i = from; i < min_i64(b->end, from + ROWS_AT_ONCE); i++)
            fsai_make_row(s, w, i, b);
        sum += w->work;
    }
    return sum;
}

spmv_status fsai_make_factor(const spmv_preconditioner *m, const struct precond_source *source,
                             const struct fsai_search *search, struct fsai_factor *factor)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *const a = &source->host;
    const int64_t most_joining = fsai_longest_joining(a);
    struct fsai_given s = {.row_ptr = a->row_ptr,
                           .row_ptr_bits = a->row_ptr_bits,
                           .col = a->col,
                           .search = *search,
                           .most = search->steps * search->size};
    struct fsai_block b = {.col = NULL};
    const int team = heavy_team(m->ctx, a->nnz * s.most);
    struct fsai_work **work = NULL;
    double *val = NULL, *root = NULL;
    int64_t longest = 0, room = 0;
    *factor = (struct fsai_factor){.rows = a->rows};
    TRY(host_alloc(m->ctx, (a->rows + 1) * 8, "row offsets of a factor", (void **)&factor->ptr));
    factor->ptr[0] = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t n = row_first(a, i + 1) - row_first(a, i);
        longest = max_i64(longest, n);
        if (n <= most_joining)
            s.longest = max_i64(s.longest, n);
    }
    TRY(host_alloc(m->ctx, max_i64(1, a->nnz) * 8, "a scaled matrix", (void **)&val));
    TRY(host_alloc(m->ctx, max_i64(1, a->rows) * 8, "a scaled matrix", (void **)&root));
    TRY(scale(m, source, root, val));
    s.root = root;
    s.val = val;
    TRY(host_zeros(m->ctx, team * (int64_t)sizeof *work, "rows of a factor", (void **)&work));
    const struct fsai_sizes sizes = fsai_sizes_for(&s, longest);
    for (int t = 0; t < team; t++) {
        void *memory = NULL;
        TRY(host_alloc(m->ctx, sizes.bytes, "a row of a factor", &memory));
        work[t] = fsai_work_in(memory, sizes);
    }
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
        host_free(work[t]);
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
