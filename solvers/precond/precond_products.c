/* Preconditioners that are products with sparse factors: each factor and its triangle have a plan. There is no
 * triangular solve, so all rows are computed at once.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/plural.h"
#include "core/threads.h"
#include "product/plan_internal.h"
#include "solvers/precond/precond_products.h"

/* A factor and the triangle of which it is an approximate inverse; the latter is NULL without steps. */
struct stage {
    spmv_plan *inverse, *triangle;
};

struct products {
    spmv_preconditioner *m;
    struct products_factors factors;
    struct stage first, second;
    struct stage turned[2]; /* of M^-T: the transposes of second, then of first; NULL: not made yet */
    struct precond_pair pair;
    void *y, *rest; /* after the first stage; r - T y */
};

/* y = F r, refined. With y = F r, the first step y + F (r - T y) is 2 y - F (T y), which needs no copy of r. */
static spmv_status apply_stage(const struct products *f, const struct stage *s, const void *r, void *y)
{
    spmv_status st = SPMV_OK;
    const spmv_preconditioner *const m = f->m;
    const union real minus = real_scalar(m->type, -1), one = real_scalar(m->type, 1), two = real_scalar(m->type, 2);
    TRY(spmv_apply(s->inverse, NULL, r, NULL, y));
    if (f->factors.steps > 0) {
        TRY(spmv_apply(s->triangle, NULL, y, NULL, f->rest));
        TRY(spmv_apply(s->inverse, &minus, f->rest, &two, y));
    }
    for (int step = 1; step < f->factors.steps; step++) {
        TRY(m->ctx->backend->map(m->ctx, SPMV_MAP_COPY, m->type, r, f->rest, m->rows));
        TRY(spmv_apply(s->triangle, &minus, y, &one, f->rest));
        TRY(spmv_apply(s->inverse, &one, f->rest, &one, y));
    }
done:
    return st;
}

static spmv_status apply(void *self, const void *r, void *z)
{
    const struct products *const f = self;
    const spmv_status st = apply_stage(f, &f->first, r, f->y);
    return st != SPMV_OK ? st : apply_stage(f, &f->second, f->y, z);
}

/* z = F' (S' r). F' is an approximate inverse of T', and the steps with both are the transpose of those with F and T:
 * (sum of (I - F T)^k) F = F (sum of (I - T F)^k). */
static spmv_status apply_transposed(void *self, const void *r, void *z)
{
    const struct products *const f = self;
    const spmv_status st = apply_stage(f, &f->turned[0], r, f->y);
    return st != SPMV_OK ? st : apply_stage(f, &f->turned[1], f->y, z);
}

void products_release(struct products_factors *f)
{
    spmv_matrix_destroy(f->first);
    spmv_matrix_destroy(f->second);
    spmv_matrix_destroy(f->of_first);
    spmv_matrix_destroy(f->of_second);
    *f = (struct products_factors){.steps = 0};
}

static void destroy(void *self)
{
    struct products *f = self;
    spmv_plan_destroy(f->first.inverse);
    spmv_plan_destroy(f->first.triangle);
    spmv_plan_destroy(f->second.inverse);
    spmv_plan_destroy(f->second.triangle);
    for (int k = 0; k < 2; k++) {
        spmv_plan_destroy(f->turned[k].inverse);
        spmv_plan_destroy(f->turned[k].triangle);
    }
    products_release(&f->factors);
    spmv_free(f->m->ctx, f->y);
    spmv_free(f->m->ctx, f->rest);
    host_free_all(f->pair.g_cells, f->pair.transposed_cells, f);
}

/* A plan for products with a factor or its transpose; none if factor is NULL. */
static spmv_status plan_for(spmv_preconditioner *m, const spmv_matrix *factor, spmv_operation operation,
                            spmv_plan **plan)
{
    spmv_status st = SPMV_OK;
    spmv_csr a;
    spmv_plan_options o;
    spmv_plan_info info;
    if (factor == NULL)
        return SPMV_OK;
    spmv_matrix_view(factor, &a);
    if (operation == SPMV_OPERATION_N)
        m->bytes += (a.rows + 1) * (a.row_ptr_bits / 8) + a.nnz * (4 + (int64_t)spmv_type_size(a.type));
    spmv_plan_options_init(&o, sizeof o);
    o.type = m->type;
    o.operation = operation;
    TRY(spmv_plan_create(m->ctx, &a, &o, plan));
    TRY(spmv_plan_describe(*plan, &info, sizeof info));
    m->bytes += info.bytes;
done:
    return st;
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

spmv_status products_take(const spmv_preconditioner *m, int64_t rows, const int64_t *ptr, const int32_t *col,
                          const double *val, bool narrow, spmv_matrix **factor)
{
    spmv_status st = SPMV_OK;
    const int64_t entries = ptr[rows];
    float *rounded = NULL;
    spmv_csr a = {.rows = rows,
                  .cols = rows,
                  .nnz = entries,
                  .row_ptr = ptr,
                  .row_ptr_bits = 64,
                  .col = col,
                  .val = val,
                  .type = SPMV_F64,
                  .memory = SPMV_MEMORY_HOST};
    if (m->type == SPMV_F32 || narrow) {
        TRY(host_alloc(m->ctx, max_i64(1, entries) * (int64_t)sizeof *rounded, "a factor", (void **)&rounded));
#pragma omp parallel for schedule(static) num_threads(host_team(m->ctx, entries))
        for (int64_t k = 0; k < entries; k++)
            rounded[k] = (float)val[k];
        a.val = rounded;
        a.type = SPMV_F32;
    }
    TRY(spmv_matrix_copy(m->ctx, &a, SPMV_MEMORY_CONTEXT, factor));
done:
    host_free(rounded);
    return st;
}

/* The plans of the second stage, of matrices of their own, or of the transposes of the first ones. */
static spmv_status plan_second(struct products *f)
{
    spmv_status st = SPMV_OK;
    spmv_preconditioner *const m = f->m;
    const struct products_factors *const have = &f->factors;
    const bool own = have->second != NULL;
    const spmv_operation operation = own ? SPMV_OPERATION_N : SPMV_OPERATION_T;
    TRY(plan_for(m, own ? have->second : have->first, operation, &f->second.inverse));
    TRY(plan_for(m, own ? have->of_second : have->of_first, operation, &f->second.triangle));
    if (own || have->steps > 0)
        return SPMV_OK;
    f->pair.g = f->first.inverse;
    f->pair.transposed = f->second.inverse;
    if (context_on_device(m->ctx) && m->rows <= PRECOND_SLICED_ROWS) {
        TRY(count_cells(m->ctx, f->pair.g, &f->pair.g_cells));
        TRY(count_cells(m->ctx, f->pair.transposed, &f->pair.transposed_cells));
    }
    m->factors = &f->pair;
done:
    return st;
}

/* Plans for the transposes of both factors and of their triangles. */
static spmv_status transpose(void *self)
{
    spmv_status st = SPMV_OK;
    struct products *const f = self;
    const spmv_matrix *const factors[] = {f->factors.second, f->factors.first};
    const spmv_matrix *const triangles[] = {f->factors.of_second, f->factors.of_first};
    for (int k = 0; k < 2; k++) {
        if (f->turned[k].inverse == NULL)
            TRY(plan_for(f->m, factors[k], SPMV_OPERATION_T, &f->turned[k].inverse));
        if (f->turned[k].triangle == NULL)
            TRY(plan_for(f->m, triangles[k], SPMV_OPERATION_T, &f->turned[k].triangle));
    }
    f->m->apply_transposed = apply_transposed;
done:
    return st;
}

static void describe(spmv_preconditioner *m, const struct products_factors *f, const char *what, int64_t nnz)
{
    spmv_csr first, second = {.nnz = 0};
    spmv_matrix_view(f->first, &first);
    if (f->second != NULL)
        spmv_matrix_view(f->second, &second);
    const int64_t entries = first.nnz + second.nnz;
    const size_t n = strlen(m->layout);
    const int end = snprintf(m->layout + n, sizeof m->layout - n, "%s%s %lld entr%s in %s (%.2f times those of A)",
                             n > 0 ? "; " : "", what, (long long)entries, entries == 1 ? "y" : "ies",
                             spmv_type_name(first.type), (double)entries / (double)max_i64(1, nnz));
    const size_t used = min_i64((int64_t)sizeof m->layout - 1, (int64_t)n + end);
    if (f->steps > 0)
        snprintf(m->layout + used, sizeof m->layout - used, ", and %d step%s of refinement", f->steps,
                 plural(f->steps));
}

spmv_status products_make(spmv_preconditioner *m, const struct products_factors *factors, const char *what, int64_t nnz)
{
    spmv_status st = SPMV_OK;
    struct products *f = NULL;
    struct products_factors taken = *factors;
    const int64_t bytes = max_i64(1, m->rows) * (int64_t)spmv_type_size(m->type);
    TRY(host_alloc(m->ctx, sizeof *f, "a preconditioner", (void **)&f));
    *f = (struct products){.m = m, .factors = taken};
    taken = (struct products_factors){.steps = 0};
    TRY(plan_for(m, f->factors.first, SPMV_OPERATION_N, &f->first.inverse));
    TRY(plan_for(m, f->factors.of_first, SPMV_OPERATION_N, &f->first.triangle));
    TRY(plan_second(f));
    TRY(precond_alloc(m, bytes, &f->y));
    if (f->factors.steps > 0)
        TRY(precond_alloc(m, bytes, &f->rest));
    describe(m, &f->factors, what, nnz);
    m->self = f;
    m->apply = apply;
    m->transpose = f->factors.second != NULL ? transpose : NULL; /* else M is symmetric */
    m->destroy = destroy;
done:
    products_release(&taken);
    if (st != SPMV_OK && f != NULL) {
        m->factors = NULL;
        destroy(f);
    }
    return st;
}
