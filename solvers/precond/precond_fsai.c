/* Preconditioner fsai: M^-1 = G' G, a factorised sparse approximate inverse of A with an adaptive pattern
 * (precond_fsai_factor.c).
 *
 * An application is two products, y = G r and z = G' y (precond_products.c).
 *
 * G is computed in f64, with the same operations on every backend: on the host, or on a GPU if the matrix is in its
 * memory (precond_fsai_cuda.cu). Where its diagonal is well
 * in the range of f32, it is kept in f32 also for vectors of f64, which reads a third less: M is symmetric
 * positive definite whatever the rounding of G, because both products have the same entries.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "core/threads.h"
#include "solvers/precond/precond_fsai_rows.h"
#include "solvers/precond/precond_products.h"

/* The search for the pattern of a row. The tolerance ends most searches: after two or three steps on grids and
 * meshes, later in ill-conditioned matrices. A smaller one takes fewer iterations, but more time to make and to
 * apply: docs/notebook/preconditioners.md. */
enum { STEPS_MOST = 8, STEP_SIZE = 4 };
static const double TOLERANCE = 0.05;

static struct fsai_search search_for(const spmv_preconditioner *m, const struct precond_source *source)
{
    const int degree = source->options->degree;
    const spmv_type given = source->host.val != NULL ? source->host.type : m->type;
    return (struct fsai_search){
        .steps = degree < 0 ? STEPS_MOST : (int)min_i64(degree, STEPS_MOST),
        .size = STEP_SIZE,
        .tolerance = TOLERANCE,
        .least = fmax(real_limits_of(m->type).pivot, real_limits_of(given).pivot),
    };
}

static bool fits_f32(spmv_context *ctx, const struct fsai_factor *g)
{
    bool fits = true;
#pragma omp parallel for schedule(static) num_threads(host_team(ctx, g->rows)) reduction(&& : fits)
    for (int64_t i = 0; i < g->rows; i++)
        fits = fits && fsai_fits_f32(g->val[g->ptr[i + 1] - 1]);
    return fits;
}

/* Makes G: on the device if the matrix is there, else on the host. *first: the first row with an entry left out. */
static spmv_status make_factor(spmv_preconditioner *m, struct precond_source *source, spmv_matrix **made,
                               int64_t *first)
{
    spmv_status st = SPMV_OK;
    struct fsai_factor g = {.rows = 0};
    const struct fsai_search search = search_for(m, source);
    if (source->device_diagonal != NULL && m->rows <= FSAI_DEVICE_ROWS)
        TRY(fsai_make_factor_cuda(m, source, &search, made, &m->fallen, first));
    if (*made != NULL)
        return SPMV_OK;
    TRY(precond_source_read(m->ctx, m->name, source));
    TRY(fsai_make_factor(m, source, &search, &g));
    TRY(products_take(m, g.rows, g.ptr, g.col, g.val, fits_f32(m->ctx, &g), made));
    m->fallen = g.left_out;
    *first = g.first;
done:
    fsai_release(&g);
    return st;
}

spmv_status precond_make_fsai(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *g = NULL;
    int64_t first = 0;
    TRY(make_factor(m, source, &g, &first));
    const struct products_factors factors = {.first = g};
    TRY(products_make(m, &factors, "a factor of", source->a->nnz));
    if (m->fallen > 0) {
        const size_t n = strlen(m->layout);
        snprintf(m->layout + n, sizeof m->layout - n,
                 "; left out because a pivot is nearly 0: %lld entr%s (the first in row %lld%s)", (long long)m->fallen,
                 m->fallen == 1 ? "y" : "ies", context_number(m->ctx, first), context_counted(m->ctx));
    }
done:
    return st;
}
