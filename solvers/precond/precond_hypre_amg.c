/* Preconditioner hypre-amg: a V-cycle of algebraic multigrid by hypre's BoomerAMG, which a module
 * provides (solvers/modules/precond_hypre.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "formats/matrix_internal.h"
#include "solvers/modules/precond_module.h"
#include "solvers/precond/precond_internal.h"
#include "solvers/solver_module.h"

static const struct precond_module *open_module(spmv_context *ctx)
{
    static const struct solver_module module = {
        "preconditioner hypre-amg", "spmv_precond_hypre.so", "spmv_precond_module",
        MODULE_NEEDS("preconditioner hypre-amg", "hypre", "hypre", "libhypre-dev", "amg"), PRECOND_MODULE_ABI};
    return solver_module_open(ctx, &module);
}

struct amg {
    spmv_preconditioner *m;
    const struct precond_module *module;
    void *state;
};

static spmv_status apply(void *self, const void *r, void *z)
{
    const struct amg *amg = self;
    char why[PRECOND_WHY] = "";
    if (amg->module->apply(amg->state, r, z, why) != 0)
        return context_fail(amg->m->ctx, SPMV_ERROR_NOT_FINITE, "preconditioner hypre-amg: %s", why);
    return SPMV_OK;
}

static void destroy(void *self)
{
    struct amg *amg = self;
    if (amg->state != NULL)
        amg->module->close(amg->state);
    host_free(amg);
}

static spmv_status supports(spmv_context *ctx, spmv_type type, int64_t nnz)
{
    if (type != SPMV_F64)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "preconditioner hypre-amg supports only f64, not vectors of type %s", spmv_type_name(type));
    if (nnz > INT32_MAX)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "preconditioner hypre-amg: %lld nonzeros exceed hypre's 32-bit integers", (long long)nnz);
    return open_module(ctx) != NULL ? SPMV_OK : SPMV_ERROR_UNSUPPORTED;
}

/* Copies A as the module requires it: ascending columns without duplicates, 64-bit offsets, values
 * in f64. */
static spmv_status take_matrix(spmv_context *ctx, const spmv_csr *a, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    int64_t *row = NULL;
    double *val = NULL;
    TRY(host_alloc(ctx, a->nnz * 8, "rows of a matrix", (void **)&row));
    TRY(host_alloc(ctx, a->nnz * 8, "values of a matrix", (void **)&val));
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            row[k] = i;
            val[k] = precond_value(a, k);
        }
    TRY(spmv_matrix_from_coo(ctx, a->rows, a->cols, a->nnz, row, a->col, val, SPMV_F64, matrix, NULL));
done:
    host_free(row);
    host_free(val);
    return st;
}

spmv_status precond_make_hypre_amg(spmv_preconditioner *m, struct precond_source *source)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = m->ctx;
    struct amg *amg = NULL;
    spmv_matrix *matrix = NULL;
    char why[PRECOND_WHY] = "";
    const double strength = source->options->strength == 0 ? 0.25 : source->options->strength;
    TRY(supports(ctx, m->type, source->host.nnz));
    TRY(host_alloc(ctx, sizeof *amg, "a preconditioner", (void **)&amg));
    *amg = (struct amg){.m = m, .module = open_module(ctx)};
    if (m->rows > 0) {
        TRY(take_matrix(ctx, &source->host, &matrix));
        const struct precond_problem problem = {.rows = matrix->rows,
                                                .nnz = matrix->nnz,
                                                .row_ptr = matrix->row_ptr,
                                                .col = matrix->col,
                                                .val = matrix->val,
                                                .strength = strength};
        if (amg->module->open(&problem, &amg->state, why) != 0) {
            st = context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "preconditioner hypre-amg: %s", why);
            goto done;
        }
    }
    m->self = amg;
    m->apply = apply;
    m->destroy = destroy;
    snprintf(m->layout, sizeof m->layout,
             "BoomerAMG, %s: a V-cycle, HMIS, extended+i, l1 Gauss-Seidel forward and backward, strength %g",
             amg->module->version, strength);
done:
    spmv_matrix_destroy(matrix);
    if (st != SPMV_OK && amg != NULL)
        destroy(amg);
    return st;
}
