/* Preconditioner fsai: M^-1 = G' G, a factorised sparse approximate inverse of A with an adaptive pattern
 * (precond_fsai_factor.c).
 *
 * An application is two products, y = G r and z = G' y, each with a plan of its own. There is no triangular
 * solve, so all rows are computed at once.
 *
 * G is computed on the host in f64, on every backend, so it is the same everywhere. Where its diagonal is well
 * in the range of f32, it is kept in f32 also for vectors of f64, which reads a third less: M is symmetric
 * positive definite whatever the rounding of G, because both products have the same entries.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "core/plural.h"
#include "core/threads.h"
#include "solvers/precond/precond_fsai.h"

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

struct fsai {
    spmv_preconditioner *m;
    spmv_matrix *g;
    spmv_plan *plan, *transposed; /* for products with G and with G' */
    struct precond_pair factors;
    void *y;
};

static spmv_status apply(void *self, const void *r, void *z)
{
    spmv_status st = SPMV_OK;
    const struct fsai *const f = self;
    TRY(spmv_apply(f->plan, NULL, r, NULL, f->y));
    TRY(spmv_apply(f->transposed, NULL, f->y, NULL, z));
done:
    return st;
}

static void destroy(void *self)
{
    struct fsai *f = self;
    spmv_plan_destroy(f->plan);
    spmv_plan_destroy(f->transposed);
    spmv_matrix_destroy(f->g);
    spmv_free(f->m->ctx, f->y);
    host_free_all(f->factors.g_cells, f->factors.transposed_cells, f);
}

/* A plan for products with G or its transpose. */
static spmv_status plan_for(spmv_preconditioner *m, const spmv_csr *g, spmv_operation operation, spmv_plan **plan)
{
    spmv_status st = SPMV_OK;
    spmv_plan_options o;
    spmv_plan_info info;
    spmv_plan_options_init(&o, sizeof o);
    o.type = m->type;
    o.operation = operation;
    TRY(spmv_plan_create(m->ctx, g, &o, plan));
    TRY(spmv_plan_describe(*plan, &info, sizeof info));
    m->bytes += info.bytes;
done:
    return st;
}

/* Whether G can be in f32. With diagonal entries in this range, no entry g_ij = g g_jj overflows, as |g| is at
 * most 1 over the least pivot; one that becomes 0 is below 2^-26 g_jj. */
static bool fits_f32(spmv_context *ctx, const struct fsai_factor *g)
{
    bool fits = true;
#pragma omp parallel for schedule(static) num_threads(host_team(ctx, g->rows)) reduction(&& : fits)
    for (int64_t i = 0; i < g->rows; i++) {
        const double diagonal = g->val[g->ptr[i + 1] - 1];
        fits = fits && diagonal >= 0x1p-80 && diagonal <= 0x1p80;
    }
    return fits;
}

/* cells of struct precond_pair. length: entries of each row. */
static spmv_status count_cells(spmv_context *ctx, const int32_t *length, int64_t rows, int64_t **cells)
{
    const int64_t slices = (rows + PRECOND_SLICE - 1) / PRECOND_SLICE;
    const spmv_status st = host_alloc(ctx, (slices + 1) * 8, "the widths of slices", (void **)cells);
    if (st != SPMV_OK)
        return st;
    (*cells)[0] = 0;
    for (int64_t s = 0; s < slices; s++) {
        int32_t widest = 0;
        for (int64_t i = s * PRECOND_SLICE; i < min_i64(rows, (s + 1) * PRECOND_SLICE); i++)
            widest = length[i] > widest ? length[i] : widest;
        (*cells)[s + 1] = (*cells)[s] + PRECOND_SLICE * (int64_t)widest;
    }
    return SPMV_OK;
}

/* Fills f->factors. */
static spmv_status tell_factors(struct fsai *f, const struct fsai_factor *g)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = f->m->ctx;
    int32_t *length = NULL;
    f->factors.g = f->plan;
    f->factors.transposed = f->transposed;
    if (!context_on_device(ctx) || g->rows > PRECOND_SLICED_ROWS)
        return SPMV_OK;
    TRY(host_alloc(ctx, max_i64(1, g->rows) * 4, "the widths of slices", (void **)&length));
    for (int64_t i = 0; i < g->rows; i++)
        length[i] = (int32_t)(g->ptr[i + 1] - g->ptr[i]);
    TRY(count_cells(ctx, length, g->rows, &f->factors.g_cells));
    for (int64_t i = 0; i < g->rows; i++)
        length[i] = 0;
    for (int64_t k = 0; k < g->ptr[g->rows]; k++)
        length[g->col[k]]++;
    TRY(count_cells(ctx, length, g->rows, &f->factors.transposed_cells));
done:
    host_free(length);
    return st;
}

/* Plans for both products. nnz: of A; narrow: room for the values in f32. */
static spmv_status make_plans(struct fsai *f, const struct fsai_factor *g, int64_t nnz, float *narrow)
{
    spmv_status st = SPMV_OK;
    spmv_preconditioner *const m = f->m;
    const int64_t entries = g->ptr[g->rows];
    spmv_csr a = {.rows = g->rows,
                  .cols = g->rows,
                  .nnz = entries,
                  .row_ptr = g->ptr,
                  .row_ptr_bits = 64,
                  .col = g->col,
                  .val = g->val,
                  .type = SPMV_F64,
                  .memory = SPMV_MEMORY_HOST};
    if (m->type == SPMV_F32 || fits_f32(m->ctx, g)) {
#pragma omp parallel for schedule(static) num_threads(host_team(m->ctx, entries))
        for (int64_t k = 0; k < entries; k++)
            narrow[k] = (float)g->val[k];
        a.val = narrow;
        a.type = SPMV_F32;
    }
    TRY(spmv_matrix_copy(m->ctx, &a, SPMV_MEMORY_CONTEXT, &f->g));
    spmv_matrix_view(f->g, &a);
    m->bytes += (a.rows + 1) * (a.row_ptr_bits / 8) + entries * (4 + (int64_t)spmv_type_size(a.type));
    TRY(plan_for(m, &a, SPMV_OPERATION_N, &f->plan));
    TRY(plan_for(m, &a, SPMV_OPERATION_T, &f->transposed));
    snprintf(m->layout, sizeof m->layout, "a factor of %lld entr%s in %s (%.2f times those of A)", (long long)entries,
             entries == 1 ? "y" : "ies", spmv_type_name(a.type), (double)entries / (double)max_i64(1, nnz));
done:
    return st;
}

spmv_status precond_make_fsai(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    struct fsai_factor g = {.rows = 0};
    struct fsai *f = NULL;
    float *narrow = NULL;
    const struct fsai_search search = search_for(m, source);
    TRY(host_alloc(m->ctx, sizeof *f, "a preconditioner", (void **)&f));
    memset(f, 0, sizeof *f);
    f->m = m;
    TRY(fsai_make_factor(m, source, &search, &g));
    TRY(host_alloc(m->ctx, max_i64(1, g.ptr[g.rows]) * (int64_t)sizeof *narrow, "a factor", (void **)&narrow));
    TRY(make_plans(f, &g, source->a->nnz, narrow));
    TRY(tell_factors(f, &g));
    TRY(precond_alloc(m, max_i64(1, m->rows) * (int64_t)spmv_type_size(m->type), &f->y));
    m->fallen = g.left_out;
    if (g.left_out > 0) {
        const size_t n = strlen(m->layout);
        snprintf(m->layout + n, sizeof m->layout - n,
                 "; left out because a pivot is nearly 0: %lld entr%s (the first in row %lld%s)", (long long)g.left_out,
                 g.left_out == 1 ? "y" : "ies", context_number(m->ctx, g.first), context_counted(m->ctx));
    }
    m->factors = &f->factors;
    m->self = f;
    m->apply = apply;
    m->destroy = destroy;
done:
    if (st != SPMV_OK && f != NULL)
        destroy(f);
    fsai_release(&g);
    host_free(narrow);
    return st;
}
