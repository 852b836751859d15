/* Preconditioner fsai: M^-1 = G' G, a factorised sparse approximate inverse of A with an adaptive pattern
 * (precond_fsai_factor.c).
 *
 * An application is two products, y = G r and z = G' y, each with a plan of its own. There is no triangular
 * solve, so all rows are computed at once.
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
#include "product/plan_internal.h"
#include "solvers/precond/precond_fsai_rows.h"

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

static bool fits_f32(spmv_context *ctx, const struct fsai_factor *g)
{
    bool fits = true;
#pragma omp parallel for schedule(static) num_threads(host_team(ctx, g->rows)) reduction(&& : fits)
    for (int64_t i = 0; i < g->rows; i++)
        fits = fits && fsai_fits_f32(g->val[g->ptr[i + 1] - 1]);
    return fits;
}

/* cells of struct precond_pair, of the matrix of a plan. */
static spmv_status count_cells(spmv_context *ctx, const spmv_plan *plan, int64_t **cells)
{
    spmv_status st = SPMV_OK;
    spmv_csr a = plan->a;
    const int64_t slices = ceil_divide(a.rows, PRECOND_SLICE);
    void *copy = NULL;
    TRY(host_alloc(ctx, (slices + 1) * 8, "the widths of slices", (void **)cells));
    TRY(context_read(ctx, a.row_ptr, (a.rows + 1) * (a.row_ptr_bits / 8), "row offsets of a factor", &copy,
                     &a.row_ptr));
    (*cells)[0] = 0;
    for (int64_t s = 0; s < slices; s++) {
        int64_t widest = 0;
        for (int64_t i = s * PRECOND_SLICE; i < min_i64(a.rows, (s + 1) * PRECOND_SLICE); i++)
            widest = max_i64(widest, row_first(&a, i + 1) - row_first(&a, i));
        (*cells)[s + 1] = (*cells)[s] + PRECOND_SLICE * widest;
    }
done:
    host_free(copy);
    return st;
}

/* Makes f->g of G in host memory. */
static spmv_status take_factor(struct fsai *f, const struct fsai_factor *g)
{
    spmv_status st = SPMV_OK;
    spmv_preconditioner *const m = f->m;
    const int64_t entries = g->ptr[g->rows];
    float *narrow = NULL;
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
        TRY(host_alloc(m->ctx, max_i64(1, entries) * (int64_t)sizeof *narrow, "a factor", (void **)&narrow));
#pragma omp parallel for schedule(static) num_threads(host_team(m->ctx, entries))
        for (int64_t k = 0; k < entries; k++)
            narrow[k] = (float)g->val[k];
        a.val = narrow;
        a.type = SPMV_F32;
    }
    TRY(spmv_matrix_copy(m->ctx, &a, SPMV_MEMORY_CONTEXT, &f->g));
done:
    host_free(narrow);
    return st;
}

/* Makes f->g: on the device if the matrix is there, else on the host. */
static spmv_status make_factor(struct fsai *f, struct precond_source *source, int64_t *first)
{
    spmv_status st = SPMV_OK;
    spmv_preconditioner *const m = f->m;
    struct fsai_factor g = {.rows = 0};
    const struct fsai_search search = search_for(m, source);
    if (source->device_diagonal != NULL && m->rows <= FSAI_DEVICE_ROWS)
        TRY(fsai_make_factor_cuda(m, source, &search, &f->g, &m->fallen, first));
    if (f->g != NULL)
        return SPMV_OK;
    TRY(precond_source_read(m->ctx, m->name, source));
    TRY(fsai_make_factor(m, source, &search, &g));
    TRY(take_factor(f, &g));
    m->fallen = g.left_out;
    *first = g.first;
done:
    fsai_release(&g);
    return st;
}

/* Plans for both products. nnz: of A. */
static spmv_status make_plans(struct fsai *f, int64_t nnz)
{
    spmv_status st = SPMV_OK;
    spmv_preconditioner *const m = f->m;
    spmv_csr a;
    spmv_matrix_view(f->g, &a);
    m->bytes += (a.rows + 1) * (a.row_ptr_bits / 8) + a.nnz * (4 + (int64_t)spmv_type_size(a.type));
    TRY(plan_for(m, &a, SPMV_OPERATION_N, &f->plan));
    TRY(plan_for(m, &a, SPMV_OPERATION_T, &f->transposed));
    f->factors.g = f->plan;
    f->factors.transposed = f->transposed;
    if (context_on_device(m->ctx) && m->rows <= PRECOND_SLICED_ROWS) {
        TRY(count_cells(m->ctx, f->plan, &f->factors.g_cells));
        TRY(count_cells(m->ctx, f->transposed, &f->factors.transposed_cells));
    }
    snprintf(m->layout, sizeof m->layout, "a factor of %lld entr%s in %s (%.2f times those of A)", (long long)a.nnz,
             a.nnz == 1 ? "y" : "ies", spmv_type_name(a.type), (double)a.nnz / (double)max_i64(1, nnz));
done:
    return st;
}

spmv_status precond_make_fsai(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    struct fsai *f = NULL;
    int64_t first = 0;
    TRY(host_alloc(m->ctx, sizeof *f, "a preconditioner", (void **)&f));
    memset(f, 0, sizeof *f);
    f->m = m;
    TRY(make_factor(f, source, &first));
    TRY(make_plans(f, source->a->nnz));
    TRY(precond_alloc(m, max_i64(1, m->rows) * (int64_t)spmv_type_size(m->type), &f->y));
    if (m->fallen > 0) {
        const size_t n = strlen(m->layout);
        snprintf(m->layout + n, sizeof m->layout - n,
                 "; left out because a pivot is nearly 0: %lld entr%s (the first in row %lld%s)", (long long)m->fallen,
                 m->fallen == 1 ? "y" : "ies", context_number(m->ctx, first), context_counted(m->ctx));
    }
    m->factors = &f->factors;
    m->self = f;
    m->apply = apply;
    m->destroy = destroy;
done:
    if (st != SPMV_OK && f != NULL)
        destroy(f);
    return st;
}
