/* Preconditioner cholesky: M = A, by a complete factor L L' inside an envelope.
 *
 * Row i of L is stored from the first column in which A has an entry up to the diagonal. All fill-in
 * lies in there. The rows are in reverse Cuthill-McKee order or in the matrix's own, whichever takes
 * fewer multiplications. So a band, a strip or a small mesh costs little more than an incomplete
 * factor, and conjugate gradients end after one or two iterations.
 *
 * The factorization and the solves are serial, in f64 for each type, so the bits do not depend on
 * the number of threads. A pivot that vanishes is replaced by the diagonal entry of A: M is A plus a
 * diagonal matrix that is nonzero in these rows only, which adds about one iteration for each.
 *
 * A. George, J. Liu, "Computer Solution of Large Sparse Positive Definite Systems", 1981, chapter 4.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "formats/matrix_internal.h"
#include "solvers/precond/precond_triangles.h"
#include "solvers/prepare/prepared_system.h"

/* Partial sums of a dot product, so that additions need not wait for each other. */
enum { LANES = 8 };

/* Another order gains nothing if the envelope has at most so many times the entries of the lower
 * triangle. */
static const double NARROW = 1.5;

/* L by rows: row p has the elements first[p] to first[p + 1] - 1 of val, of adjacent columns. The last
 * one is the reciprocal of the diagonal entry. */
struct factor {
    const spmv_preconditioner *m;
    int32_t *order; /* order[p]: the row of A at place p */
    int64_t *first; /* rows + 1 */
    double *val;
    double *work; /* rows: the vector of a solve */
};

/* ----------------------------------------------------------------- the envelope */

/* Sets width, entries and products for A with row i at place[i]. */
static void measure(const spmv_csr *a, const int32_t *place, struct envelope *e)
{
    e->entries = (double)a->rows;
    e->products = 0;
    for (int64_t p = 0; p < a->rows; p++)
        e->width[p] = 0;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            const int32_t p = place[i], q = place[a->col[k]];
            const int32_t low = p < q ? p : q, high = p < q ? q : p;
            e->width[high] = high - low > e->width[high] ? high - low : e->width[high];
        }
    for (int64_t p = 0; p < a->rows; p++) {
        e->entries += e->width[p];
        e->products += 0.5 * e->width[p] * e->width[p];
    }
}

void envelope_release(struct envelope *e)
{
    host_free_all(e->order, e->width);
    *e = (struct envelope){0};
}

static spmv_status envelope_alloc(spmv_context *ctx, int64_t rows, struct envelope *e)
{
    spmv_status st = SPMV_OK;
    TRY(host_alloc(ctx, rows * 4, "an order", (void **)&e->order));
    TRY(host_alloc(ctx, rows * 4, "an envelope", (void **)&e->width));
done:
    if (st != SPMV_OK)
        envelope_release(e);
    return st;
}

/* The envelope in reverse Cuthill-McKee order. */
static spmv_status reorder(spmv_context *ctx, const struct precond_source *source, struct envelope *e)
{
    spmv_status st = SPMV_OK;
    const int64_t n = source->a->rows;
    struct host_rows lower = {0};
    int32_t *place = NULL;
    e->reordered = true;
    TRY(envelope_alloc(ctx, n, e));
    TRY(host_rows_take(ctx, source, TAKE_LOWER, &lower));
    TRY(host_alloc(ctx, n * 4, "an order", (void **)&place));
    for (int64_t i = 0; i < n; i++)
        place[i] = (int32_t)i;
    const struct magnitudes pattern = {.rows = n, .ptr = lower.ptr, .col = lower.col};
    TRY(prepare_order(ctx, &pattern, place, e->order));
    for (int64_t p = 0; p < n; p++)
        place[e->order[p]] = (int32_t)p;
    measure(&source->host, place, e);
done:
    host_rows_release(&lower);
    host_free(place);
    return st;
}

spmv_status envelope_find(spmv_context *ctx, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    const int64_t n = source->a->rows;
    struct envelope *const e = &source->envelope, other = {0};
    if (e->order != NULL)
        return SPMV_OK;
    TRY(envelope_alloc(ctx, n, e));
    for (int64_t i = 0; i < n; i++)
        e->order[i] = (int32_t)i;
    measure(&source->host, e->order, e);
    if (e->entries > NARROW * 0.5 * (double)(source->a->nnz + n)) {
        TRY(reorder(ctx, source, &other));
        if (other.products < e->products) {
            const struct envelope own = *e;
            *e = other;
            other = own;
        }
    }
done:
    envelope_release(&other);
    return st;
}

/* ------------------------------------------------------------------- the factor */

static double dot(const double *a, const double *b, int64_t n)
{
    double sum[LANES] = {0}, rest = 0;
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++)
            sum[l] += a[k + l] * b[k + l];
    for (; k < n; k++)
        rest += a[k] * b[k];
    for (int l = 0; l < LANES; l++)
        rest += sum[l];
    return rest;
}

/* Row p of A becomes row p of L, one column after the other: l_pj = (a_pj - sum_{k < j} l_pk l_jk) /
 * l_jj. The sum begins where both rows have begun. */
static double eliminate(const struct factor *f, int64_t p)
{
    double *const row = f->val + f->first[p];
    const int64_t width = f->first[p + 1] - f->first[p] - 1;
    double squares = 0;
    for (int64_t j = 0; j < width; j++) {
        const int64_t q = p - width + j;
        const double *const other = f->val + f->first[q];
        const int64_t other_width = f->first[q + 1] - f->first[q] - 1;
        const int64_t both = j < other_width ? j : other_width;
        row[j] = (row[j] - dot(row + j - both, other + other_width - both, both)) * other[other_width];
        squares += row[j] * row[j];
    }
    return row[width] - squares;
}

/* Factorises A, whose lower triangle val holds. */
static spmv_status factorise(spmv_preconditioner *m, const struct factor *f)
{
    const double least = real_limits_of(SPMV_F64).pivot;
    for (int64_t p = 0; p < m->rows; p++) {
        double *const last = f->val + f->first[p + 1] - 1;
        const double diagonal = *last;
        double pivot = eliminate(f, p);
        if (!(fabs(pivot) <= DBL_MAX))
            return context_fail(m->ctx, SPMV_ERROR_NOT_FINITE, "preconditioner %s: the pivot of row %lld%s is %g",
                                m->name, context_number(m->ctx, f->order[p]), context_counted(m->ctx), pivot);
        if (pivot <= least * diagonal) {
            pivot = diagonal;
            m->fallen++;
        }
        *last = 1 / sqrt(pivot);
        const int64_t width = f->first[p + 1] - f->first[p];
        const spmv_status st = context_poll(m->ctx, "preconditioner cholesky", width * width / 2 + width);
        if (st != SPMV_OK)
            return st;
    }
    return SPMV_OK;
}

/* z = L'^-1 L^-1 r */
static spmv_status apply(void *self, const void *r, void *z)
{
    const struct factor *f = self;
    const spmv_type type = f->m->type;
    const int64_t n = f->m->rows;
    double *const y = f->work;
    for (int64_t p = 0; p < n; p++) {
        const int64_t width = f->first[p + 1] - f->first[p] - 1;
        const double *const row = f->val + f->first[p];
        y[p] = (real_at(type, r, f->order[p]) - dot(row, y + p - width, width)) * row[width];
    }
    for (int64_t p = n - 1; p >= 0; p--) {
        const int64_t width = f->first[p + 1] - f->first[p] - 1;
        const double *const row = f->val + f->first[p];
        double *const before = y + p - width;
        y[p] *= row[width];
        for (int64_t k = 0; k < width; k++)
            before[k] -= y[p] * row[k];
        real_set(type, z, f->order[p], y[p]);
    }
    return SPMV_OK;
}

static void destroy(void *self)
{
    struct factor *f = self;
    host_free_all(f->order, f->first, f->val, f->work);
    host_free(f);
}

/* ----------------------------------------------------------------------- making */

/* Allocates the envelope, and takes the order from e. */
static spmv_status make_room(spmv_preconditioner *m, struct envelope *e, struct factor *f)
{
    spmv_status st = SPMV_OK;
    const int64_t n = m->rows;
    TRY(host_alloc(m->ctx, (n + 1) * 8, "a factor", (void **)&f->first));
    f->first[0] = 0;
    for (int64_t p = 0; p < n; p++)
        f->first[p + 1] = f->first[p] + e->width[p] + 1;
    TRY(host_alloc(m->ctx, f->first[n] * 8, "a factor", (void **)&f->val));
    TRY(host_alloc(m->ctx, n * 8, "a vector of a factor", (void **)&f->work));
    for (int64_t k = 0; k < f->first[n]; k++)
        f->val[k] = 0;
    f->order = e->order;
    e->order = NULL;
    m->bytes = 8 * f->first[n] + 20 * n;
done:
    return st;
}

/* Adds the entries of A's lower triangle to their places. */
static spmv_status scatter(const spmv_preconditioner *m, const struct precond_source *source, const struct factor *f)
{
    const spmv_csr *a = &source->host;
    int32_t *place = NULL;
    const spmv_status st = host_alloc(m->ctx, m->rows * 4, "an order", (void **)&place);
    if (st != SPMV_OK)
        return st;
    for (int64_t p = 0; p < m->rows; p++)
        place[f->order[p]] = (int32_t)p;
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            if (a->col[k] <= i) {
                const int32_t p = place[i], q = place[a->col[k]];
                const int32_t low = p < q ? p : q, high = p < q ? q : p;
                f->val[f->first[high + 1] - 1 - (high - low)] += precond_value(a, k);
            }
    host_free(place);
    return SPMV_OK;
}

spmv_status precond_make_cholesky(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    struct factor *f = NULL;
    struct envelope *const e = &source->envelope;
    TRY(envelope_find(m->ctx, source));
    if (e->entries > source->options->fill * (double)(source->a->nnz + m->rows))
        TRY(context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                         "preconditioner %s: the factor would have %.3g entries, more than %g times those of the "
                         "matrix (option fill)",
                         m->name, e->entries, source->options->fill));
    if (!context_allows(m->ctx, (int64_t)fmin(e->products, 0x1p62), 1, 1))
        TRY(context_fail(m->ctx, SPMV_ERROR_LIMIT,
                         "preconditioner %s: the factor takes %.3g multiplications, longer than what is left", m->name,
                         e->products));
    for (int64_t i = 0; i < m->rows; i++)
        TRY(precond_check_reciprocal(m, i, source->diagonal[i]));
    TRY(host_alloc(m->ctx, sizeof *f, "a preconditioner", (void **)&f));
    memset(f, 0, sizeof *f);
    f->m = m;
    const bool reordered = e->reordered;
    TRY(make_room(m, e, f));
    TRY(scatter(m, source, f));
    TRY(factorise(m, f));
    const int n = snprintf(m->layout, sizeof m->layout, "a complete factor with an envelope of %lld entr%s, in %s",
                           (long long)f->first[m->rows], f->first[m->rows] == 1 ? "y" : "ies",
                           reordered ? "reverse Cuthill-McKee order" : "the order of the matrix");
    if (m->fallen > 0)
        snprintf(m->layout + n, sizeof m->layout - (size_t)n, "; %lld pivot%s replaced by the diagonal entry",
                 (long long)m->fallen, m->fallen == 1 ? "" : "s");
    m->self = f;
    m->apply = apply;
    m->destroy = destroy;
done:
    envelope_release(e);
    if (st != SPMV_OK && f != NULL)
        destroy(f);
    return st;
}
