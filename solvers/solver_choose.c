/* The choice of a solver's method: from symmetry, the signs of the diagonal, and the memory that
 * the basis of gmres would take. It does not depend on times or on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "solver_internal.h"

/* The largest basis of gmres, in bytes; above it bicgstab is chosen. */
static const int64_t LARGEST_BASIS = (int64_t)2 << 30;

/* The smallest diagonal entry of a real matrix. */
static spmv_status smallest_diagonal(const spmv_solver *s, double *smallest)
{
    spmv_status st = SPMV_OK;
    const spmv_type type = s->a.val != NULL ? s->a.type : SPMV_F64;
    void *diagonal = NULL;
    union real host;
    TRY(context_lend(s->ctx, (s->a.rows + 1) * (int64_t)spmv_type_size(type), &diagonal));
    char *const least = (char *)diagonal + s->a.rows * (int64_t)spmv_type_size(type);
    TRY(spmv_matrix_diagonal(s->ctx, &s->a, diagonal));
    TRY(spmv_reduce(s->ctx, SPMV_MIN, type, diagonal, least, s->a.rows));
    TRY(spmv_download(s->ctx, least, &host, (int64_t)spmv_type_size(type)));
    *smallest = real_at(type, &host, 0);
done:
    context_take_back(s->ctx, diagonal);
    return st;
}

static spmv_status check_symmetry(const spmv_solver *s, const spmv_plan_info *info)
{
    const struct krylov look = {.call = "spmv_solver_create", .ctx = s->ctx, .plan = s->plan, .info = *info};
    return s->options.symmetry_check == SPMV_SYMMETRY_TRUST ? SPMV_OK : krylov_check_symmetry(&look);
}

static void choose_for_general(spmv_solver *s, spmv_type type)
{
    /* with a preconditioner: v and M^-1 v */
    const int64_t basis = 2 * s->options.restart * s->a.rows * (int64_t)spmv_type_size(type);
    s->method = basis <= LARGEST_BASIS ? &general_gmres : &general_bicgstab;
    const char *const what = type_is_complex(type) ? "Hermitian" : "symmetric";
    if (s->method == &general_gmres)
        snprintf(s->why, sizeof s->why, "the matrix is not %s", what);
    else
        snprintf(s->why, sizeof s->why, "the matrix is not %s, and the vectors of gmres would take %.1f GiB", what,
                 (double)basis / ((int64_t)1 << 30));
}

spmv_status solver_choose_method(spmv_solver *s)
{
    spmv_status st = SPMV_OK;
    double smallest = 1;
    spmv_plan_info info;
    s->method = NULL;
    if (s->options.inner != 0 || !solver_is_auto(s->options.rung) || s->a.rows == 0) {
        snprintf(s->why, sizeof s->why,
                 s->a.rows == 0 ? "the matrix has no rows" : "the options inner and rung are for conjugate gradients");
        return SPMV_OK;
    }
    TRY(spmv_plan_describe(s->plan, &info, sizeof info));
    if (precond_is_general(s->options.precond)) {
        choose_for_general(s, info.type);
        snprintf(s->why, sizeof s->why, "the preconditioner %s is not symmetric", s->options.precond);
        return SPMV_OK;
    }
    st = check_symmetry(s, &info);
    if (st == SPMV_ERROR_NOT_SYMMETRIC) {
        s->ctx->error[0] = '\0'; /* no failure */
        choose_for_general(s, info.type);
        return SPMV_OK;
    }
    TRY(st);
    if (!type_is_complex(info.type))
        TRY(smallest_diagonal(s, &smallest));
    if (smallest > 0) {
        snprintf(s->why, sizeof s->why,
                 type_is_complex(info.type) ? "the matrix is Hermitian"
                                            : "the matrix is symmetric, and its diagonal is positive");
    } else {
        s->method = &general_minres;
        snprintf(s->why, sizeof s->why, "the matrix is symmetric, and not positive definite: a diagonal entry is %.3g",
                 smallest);
    }
done:
    return st;
}
