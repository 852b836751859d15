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

/* Vectors of a solve: of all methods, and the largest number of minres and bicgstab. */
enum { COMMON_VECTORS = 5, MOST_VECTORS = 9 };

/* With a preconditioner, gmres has v and M^-1 v of each step. */
static int64_t basis_of(const spmv_solver *s)
{
    return 2 * (int64_t)s->options.restart;
}

int64_t solver_room(const spmv_solver *s, const struct general_method *method)
{
    spmv_plan_info info;
    if (s->ctx->backend->id == SPMV_BACKEND_CUDA || spmv_plan_describe(s->plan, &info, sizeof info) != SPMV_OK)
        return 0;
    const int64_t vectors = COMMON_VECTORS + (method == &general_gmres ? basis_of(s) : 0) + MOST_VECTORS;
    return vectors * s->a.rows * (int64_t)spmv_type_size(info.type);
}

/* The basis of gmres may take a quarter of what a limit of the memory leaves. */
static void choose_for_general(spmv_solver *s, spmv_type type)
{
    const int64_t basis = basis_of(s) * s->a.rows * (int64_t)spmv_type_size(type);
    int64_t limit = 0, most = LARGEST_BASIS;
    if (s->ctx->backend->id != SPMV_BACKEND_CUDA)
        most = min_i64(most, memory_limit_left(&limit) / 4);
    s->method = basis <= most ? &general_gmres : &general_bicgstab;
    if (s->method == &general_gmres)
        snprintf(s->why, sizeof s->why, "the matrix is not symmetric");
    else if (most == LARGEST_BASIS)
        snprintf(s->why, sizeof s->why, "the matrix is not symmetric, and the vectors of gmres would take %.1f GiB",
                 (double)basis / ((int64_t)1 << 30));
    else
        snprintf(s->why, sizeof s->why,
                 "the matrix is not symmetric, and the vectors of gmres would take %.4g MB of the %.4g MB that the "
                 "limit of the memory leaves",
                 (double)basis * 1e-6, (double)(4 * most) * 1e-6);
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
