/* The choice of a solver's method: a dense factor for small systems, else from symmetry, the signs of the diagonal, and the memory that
 * the basis of gmres would take. It does not depend on times or on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "solvers/solver_internal.h"

/* The largest basis of gmres, in bytes; above it bicgstab is chosen. */
static const int64_t LARGEST_BASIS = (int64_t)2 << 30;

/* Systems of at most so many rows are solved by a dense factor. It has 2/3 n^3 = 5.3 million operations
 * for n = 200, which run along rows in the second-level cache (320 KB), in about 2 ms. An iterative method
 * has up to n iterations of some 2 nnz + 10 n = 20 n operations, fewer in all, but each iteration also has
 * five passes whose fixed cost is 1 to 2 us (on a GPU 10 us): n iterations take 1 to 2 ms as well. Beyond
 * that the factor grows as n^3, and the iterations, whose number a preconditioner bounds, as n or n^2. */
enum { DENSE_ROWS = 200 };

/* Sets *chosen if the matrix is small and has a dense factor, which is then made. */
static spmv_status choose_dense(spmv_solver *s, bool *chosen)
{
    *chosen = false;
    /* with near-null vectors the caller wants amg */
    if (s->a.rows > DENSE_ROWS || !solver_is_auto(s->options.precond) || s->options.own_precond != NULL ||
        s->precond_options.near_null != NULL)
        return SPMV_OK;
    const spmv_status st = direct_create_dense(s->ctx, &s->a, &s->direct);
    *chosen = st == SPMV_OK;
    if (st == SPMV_OK) {
        s->method = &general_direct;
        snprintf(s->why, sizeof s->why, "%lld row%s: a dense factor costs no more than iterations",
                 (long long)s->a.rows, s->a.rows == 1 ? "" : "s");
    } else if (st == SPMV_ERROR_SINGULAR || st == SPMV_ERROR_NOT_FINITE) {
        s->ctx->error[0] = '\0'; /* no failure: the iterative methods judge */
        return SPMV_OK;
    }
    return st;
}

/* The smallest or the largest (SPMV_MIN, SPMV_MAX) diagonal entry of a real matrix. */
static spmv_status extreme_diagonal(const spmv_solver *s, spmv_op which, double *extreme)
{
    spmv_status st = SPMV_OK;
    const spmv_type type = s->a.val != NULL ? s->a.type : SPMV_F64;
    void *diagonal = NULL;
    union real host;
    TRY(context_lend(s->ctx, (s->a.rows + 1) * (int64_t)spmv_type_size(type), &diagonal));
    char *const one = (char *)diagonal + s->a.rows * (int64_t)spmv_type_size(type);
    TRY(spmv_matrix_diagonal(s->ctx, &s->a, diagonal));
    TRY(spmv_reduce(s->ctx, which, type, diagonal, one, s->a.rows));
    TRY(spmv_download(s->ctx, one, &host, (int64_t)spmv_type_size(type)));
    *extreme = real_at(type, &host, 0);
done:
    context_take_back(s->ctx, diagonal);
    return st;
}

spmv_status solver_look_at_signs(spmv_solver *s)
{
    spmv_status st = SPMV_OK;
    double largest = 0;
    s->negates = false;
    if (s->a.val == NULL || s->a.rows == 0 || type_is_complex(s->a.type) || type_is_complex(s->options.type) ||
        s->options.inner != 0 || s->options.own_precond != NULL)
        return SPMV_OK;
    TRY(extreme_diagonal(s, SPMV_MAX, &largest));
    s->negates = largest < 0;
done:
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
    const char *const what = type_is_complex(type) ? "Hermitian" : "symmetric";
    int64_t limit = 0, most = LARGEST_BASIS;
    if (s->ctx->backend->id != SPMV_BACKEND_CUDA)
        most = min_i64(most, memory_limit_left(&limit) / 4);
    s->method = basis <= most ? &general_gmres : &general_bicgstab;
    if (s->method == &general_gmres)
        snprintf(s->why, sizeof s->why, "the matrix is not %s", what);
    else if (most == LARGEST_BASIS)
        snprintf(s->why, sizeof s->why, "the matrix is not %s, and the vectors of gmres would take %.1f GiB", what,
                 (double)basis / ((int64_t)1 << 30));
    else
        snprintf(s->why, sizeof s->why,
                 "the matrix is not %s, and the vectors of gmres would take %.4g MB of the %.4g MB that the limit of "
                 "the memory leaves",
                 what, (double)basis * 1e-6, (double)(4 * most) * 1e-6);
}

spmv_status solver_choose_method(spmv_solver *s)
{
    spmv_status st = SPMV_OK;
    double smallest = 1;
    bool dense = false;
    spmv_plan_info info;
    s->method = NULL;
    s->negates = false;
    if (s->options.inner != 0 || !solver_is_auto(s->options.rung) || s->a.rows == 0) {
        snprintf(s->why, sizeof s->why,
                 s->a.rows == 0 ? "the matrix has no rows" : "the options inner and rung are for conjugate gradients");
        return SPMV_OK;
    }
    TRY(choose_dense(s, &dense));
    if (dense)
        return SPMV_OK;
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
        TRY(extreme_diagonal(s, SPMV_MIN, &smallest));
    if (smallest < 0)
        TRY(solver_look_at_signs(s));
    if (s->negates) {
        snprintf(s->why, sizeof s->why,
                 "the matrix is symmetric, and every diagonal entry is negative: -A x = -b is solved");
    } else if (smallest > 0) {
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
