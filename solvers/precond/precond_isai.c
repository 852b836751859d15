/* Preconditioner isai: M^-1 = U~ L~, incomplete sparse approximate inverses of the factors L U of ilu0; of a
 * symmetric positive definite matrix M^-1 = L~' L~ with the factor L of ic0. An application is products
 * (precond_products.c), so no row waits for another one.
 *
 * The inverse X of a lower triangle L has the pattern P_i of L in each row i, and (X L)_ij = (I)_ij for j in P_i:
 *
 *     x_ii = 1 / l_ii,    x_ij = - (sum of x_ik l_kj, k in P_i, k > j) / l_jj,
 *
 * row by row, from the last column to the first. U~ is the transpose of the inverse of U', so M is symmetric if A
 * is. X = L^-1 where that has no other entries, as for factors that are block diagonal with full blocks. H. Anzt,
 * T. Huckle, J. Braeckle, J. Dongarra, Parallel Computing 71, 2018.
 *
 * Elsewhere E = I - X L is not small, and M may need far more iterations than ilu0. But E is strictly lower
 * triangular, and each step of refinement, y + X (r - L y), multiplies the error of y = X r by E. So a few steps are
 * nearly as good as a triangular solve. A pattern of powers of L, which has the same effect, has more entries and takes
 * longer to make for the same iterations: docs/notebook/preconditioners.md.
 *
 * Each row is computed by one thread, in f64, on the host on every backend: the bits do not depend on threads. Work
 * of a row: the entries of the rows of L in its pattern; of two rows of which one is far longer only a search for the
 * entries of the shorter one, as in ilu0. So full rows and columns cost no more than their entries.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/threads.h"
#include "solvers/precond/precond_ic0.h"
#include "solvers/precond/precond_ilu.h"
#include "solvers/precond/precond_products.h"

/* Steps of refinement. With cg the second one saves fewer iterations than it costs. */
enum { STEPS_GENERAL = 2, STEPS_SYMMETRIC = 1, STEPS_MOST = 8 };

/* Rows between two questions whether to go on, and those that a thread takes at once. */
enum { BLOCK_ROWS = 1 << 12, ROWS_AT_ONCE = 1 << 5 };

/* Factors are kept in f32 also for vectors of f64, which reads a third less, if no entry is larger than this, and none on
 * the diagonal below its reciprocal. */
static const double F32_MOST = 0x1p80;

/* x[q] -= factor l_kj for the columns j of row k < i that are col[q], q < count. Returns the work. */
static int64_t subtract(const struct host_rows *l, int32_t row, double factor, const int32_t *col, int64_t count,
                        double *x)
{
    const int64_t begin = l->ptr[row], end = l->ptr[row + 1] - 1, n = end - begin;
    if (is_shorter(count, n)) {
        for (int64_t q = 0; q < count; q++) {
            const int64_t k = place_of_column(l->col, begin, end, col[q]);
            if (k < end && l->col[k] == col[q])
                x[q] -= factor * l->val[k];
        }
        return count * SEARCH_WORK;
    }
    if (is_shorter(n, count)) {
        for (int64_t k = begin; k < end; k++) {
            const int64_t q = place_of_column(col, 0, count, l->col[k]);
            if (q < count && col[q] == l->col[k])
                x[q] -= factor * l->val[k];
        }
        return n * SEARCH_WORK;
    }
    int64_t q = 0;
    for (int64_t k = begin; k < end; k++) {
        while (q < count && col[q] < l->col[k])
            q++;
        if (q == count)
            break;
        if (col[q] == l->col[k])
            x[q] -= factor * l->val[k];
    }
    return n + count;
}

/* The row of the inverse with these columns, the last one that of the diagonal. Returns the work. */
static int64_t invert_row(const struct host_rows *l, const int32_t *col, int64_t count, double *x)
{
    int64_t work = count;
    for (int64_t q = 0; q < count; q++)
        x[q] = q == count - 1;
    for (int64_t q = count - 1; q >= 0; q--) {
        x[q] /= l->val[l->ptr[col[q] + 1] - 1];
        if (x[q] != 0)
            work += subtract(l, col[q], x[q], col, q, x);
    }
    return work;
}

/* Whether entries begin to end - 1, the last one on the diagonal, can be in f32. */
static bool fits_f32(const double *val, int64_t begin, int64_t end)
{
    bool fits = fabs(val[end - 1]) >= 1 / F32_MOST;
    for (int64_t k = begin; k < end; k++)
        fits = fits && fabs(val[k]) <= F32_MOST;
    return fits;
}

/* x: the approximate inverse of a lower triangle l, whose columns ascend. *narrow becomes false if one of them needs
 * f64. */
static spmv_status invert(const spmv_preconditioner *m, const struct host_rows *l, struct host_rows *x, bool *narrow)
{
    spmv_status st = SPMV_OK;
    const double greatest = real_limits_of(m->type).greatest;
    const int64_t entries = l->ptr[l->rows];
    int64_t bad = l->rows;
    bool fits = *narrow;
    TRY(host_rows_alloc(m->ctx, l->rows, entries, x));
    memcpy(x->ptr, l->ptr, (size_t)(l->rows + 1) * sizeof *x->ptr);
    if (entries > 0)
        memcpy(x->col, l->col, (size_t)entries * sizeof *x->col);
    for (int64_t begin = 0; begin < l->rows; begin += BLOCK_ROWS) {
        const int64_t end = min_i64(l->rows, begin + BLOCK_ROWS);
        const int team = heavy_team(m->ctx, entries);
        int64_t work = 0;
#pragma omp parallel for schedule(dynamic, ROWS_AT_ONCE) num_threads(team) reduction(+ : work) reduction(min : bad)    \
    reduction(&& : fits)
        for (int64_t i = begin; i < end; i++) {
            const int64_t first = l->ptr[i], last = l->ptr[i + 1];
            work += invert_row(l, x->col + first, last - first, x->val + first);
            for (int64_t k = first; k < last; k++)
                if (!(fabs(x->val[k]) <= greatest && fabs(l->val[k]) <= greatest))
                    bad = min_i64(bad, i);
            fits = fits && fits_f32(x->val, first, last) && fits_f32(l->val, first, last);
        }
        TRY(context_poll(m->ctx, "preconditioner isai", work));
    }
    *narrow = fits;
    if (bad < l->rows)
        st = context_fail(m->ctx, SPMV_ERROR_NOT_FINITE,
                          "preconditioner %s: row %lld%s of a factor or of its inverse is out of the range of %s",
                          m->name, context_number(m->ctx, bad), context_counted(m->ctx), spmv_type_name(m->type));
done:
    return st;
}

/* Moves a factor to the context's memory. */
static spmv_status take(const spmv_preconditioner *m, bool narrow, struct host_rows *from, spmv_matrix **to)
{
    const spmv_status st = products_take(m, from->rows, from->ptr, from->col, from->val, narrow, to);
    host_rows_release(from);
    return st;
}

static spmv_status make_symmetric(spmv_preconditioner *m, struct precond_source *source, struct products_factors *f)
{
    spmv_status st = SPMV_OK;
    bool narrow = true;
    struct host_rows lower = {0}, inverse = {0};
    TRY(ic0_factor(m, source, &lower));
    TRY(invert(m, &lower, &inverse, &narrow));
    TRY(take(m, narrow, &inverse, &f->first));
    if (f->steps > 0)
        TRY(take(m, narrow, &lower, &f->of_first));
done:
    host_rows_release(&lower);
    host_rows_release(&inverse);
    return st;
}

static spmv_status make_general(spmv_preconditioner *m, struct precond_source *source, struct products_factors *f)
{
    spmv_status st = SPMV_OK;
    bool narrow = true;
    struct host_rows lower = {0}, upper = {0}, flipped = {0}, inverse = {0}, other = {0};
    TRY(ilu0_factor(m, source, &lower, &upper));
    TRY(lower_transpose(m->ctx, &upper, &flipped));
    TRY(invert(m, &flipped, &other, &narrow));
    host_rows_release(&flipped);
    TRY(lower_transpose(m->ctx, &other, &flipped));
    host_rows_release(&other);
    TRY(invert(m, &lower, &inverse, &narrow));
    TRY(take(m, narrow, &inverse, &f->first));
    TRY(take(m, narrow, &flipped, &f->second));
    if (f->steps > 0) {
        TRY(take(m, narrow, &lower, &f->of_first));
        TRY(take(m, narrow, &upper, &f->of_second));
    }
done:
    host_rows_release(&lower);
    host_rows_release(&upper);
    host_rows_release(&flipped);
    host_rows_release(&inverse);
    host_rows_release(&other);
    return st;
}

spmv_status precond_make_isai(spmv_preconditioner *m, struct precond_source *source)
{
    const int degree = source->options->degree;
    const bool general = source->options->general;
    const int usual = general ? STEPS_GENERAL : STEPS_SYMMETRIC;
    struct products_factors f = {.steps = degree < 0 ? usual : (int)min_i64(degree, STEPS_MOST)};
    const spmv_status st = general ? make_general(m, source, &f) : make_symmetric(m, source, &f);
    if (st != SPMV_OK) {
        products_release(&f);
        return st;
    }
    return products_make(m, &f, general ? "approximate inverses of" : "an approximate inverse of", source->host.nnz);
}
