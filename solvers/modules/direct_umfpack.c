/* The direct solver UMFPACK of SuiteSparse: LU factors of a general matrix by the multifrontal method, whose dense
 * parts are those of BLAS.
 *
 * T. A. Davis, "Algorithm 832: UMFPACK V4.3, an unsymmetric-pattern multifrontal method", ACM TOMS 30(2), 2004. Its
 * own refinement is off: the solver refines (krylov_direct.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <umfpack.h>

#include "solvers/modules/suitesparse.h"

struct umfpack {
    struct direct_problem problem;
    double control[UMFPACK_CONTROL], info[UMFPACK_INFO];
    void *symbolic, *numeric;
    double most;             /* bytes of the factorisation, by the analysis; 0: not known */
    const double *val;       /* of the factors */
    SuiteSparse_long *place; /* n integers, and */
    double *work, *solution; /* 5 n numbers and n numbers, for solves */
};

static void drop_factors(struct umfpack *u)
{
    if (u->problem.complex)
        umfpack_zl_free_numeric(&u->numeric);
    else
        umfpack_dl_free_numeric(&u->numeric);
}

static void close_umfpack(void *state)
{
    struct umfpack *const u = state;
    if (u == NULL)
        return;
    begin_call(&u->problem);
    drop_factors(u);
    if (u->problem.complex)
        umfpack_zl_free_symbolic(&u->symbolic);
    else
        umfpack_dl_free_symbolic(&u->symbolic);
    end_call(&u->problem);
    free(u->place);
    free(u->work);
    free(u);
}

static spmv_status failed(const struct umfpack *u, SuiteSparse_long status, const char *what, char *why)
{
    switch (status) {
    case UMFPACK_ERROR_out_of_memory:
        if (u->most > 0)
            snprintf(why, DIRECT_WHY, "out of memory in %s (at most %.4g MB expected)", what, u->most * 1e-6);
        else
            snprintf(why, DIRECT_WHY, "out of memory in %s", what);
        return SPMV_ERROR_MEMORY;
    case UMFPACK_WARNING_singular_matrix:
        snprintf(why, DIRECT_WHY, "the matrix is singular: %.0f of its %lld pivots are not 0",
                 u->info[UMFPACK_UDIAG_NZ], (long long)u->problem.n);
        return SPMV_ERROR_SINGULAR;
    default:
        snprintf(why, DIRECT_WHY, "%s failed with UMFPACK's status %lld", what, (long long)status);
        return SPMV_ERROR_UNSUPPORTED;
    }
}

static spmv_status open_umfpack(const struct direct_problem *problem, void **state, struct direct_figures *figures,
                                char *why)
{
    *state = NULL;
    const size_t n = (size_t)problem->n, parts = problem->complex ? 2 : 1;
    struct umfpack *const u = calloc(1, sizeof *u);
    if (u != NULL) {
        u->problem = *problem;
        u->place = malloc(n * sizeof *u->place);
        u->work = malloc(6 * n * parts * sizeof *u->work);
    }
    if (u == NULL || u->place == NULL || u->work == NULL) {
        snprintf(why, DIRECT_WHY, "out of memory: %zu bytes needed", n * (8 + 48 * parts));
        close_umfpack(u);
        return SPMV_ERROR_MEMORY;
    }
    u->solution = u->work + 5 * n * parts;
    SuiteSparse_long *const col_ptr = integers(problem->col_ptr), *const row = integers(problem->row);
    begin_call(problem);
    umfpack_dl_defaults(u->control); /* of complex matrices the same */
    u->control[UMFPACK_PRL] = 0;
    u->control[UMFPACK_IRSTEP] = 0;
    const SuiteSparse_long done = problem->complex
                                      ? umfpack_zl_symbolic(problem->n, problem->n, col_ptr, row, problem->val, NULL,
                                                            &u->symbolic, u->control, u->info)
                                      : umfpack_dl_symbolic(problem->n, problem->n, col_ptr, row, problem->val,
                                                            &u->symbolic, u->control, u->info);
    end_call(problem);
    if (done != UMFPACK_OK) {
        const spmv_status st = failed(u, done, "the analysis", why);
        close_umfpack(u);
        return st;
    }
    u->most = u->info[UMFPACK_PEAK_MEMORY_ESTIMATE] * u->info[UMFPACK_SIZE_OF_UNIT];
    /* With the strategy for symmetric patterns, the estimates for a pivot on the diagonal in each step are close. The
     * others are bounds for any pivoting, often ten times too large, and do not limit the memory. */
    const bool symmetric = u->info[UMFPACK_STRATEGY_USED] == UMFPACK_STRATEGY_SYMMETRIC;
    const double nonzeros = symmetric ? u->info[UMFPACK_SYMMETRIC_LUNZ]
                                      : u->info[UMFPACK_LNZ_ESTIMATE] + u->info[UMFPACK_UNZ_ESTIMATE],
                 operations = symmetric ? u->info[UMFPACK_SYMMETRIC_FLOPS] : u->info[UMFPACK_FLOPS_ESTIMATE];
    *figures =
        (struct direct_figures){.ordering = symmetric ? "AMD" : "COLAMD",
                                .expected = !symmetric        ? 0
                                            : nonzeros < 1e18 ? (int64_t)fmax(nonzeros, 0)
                                                              : INT64_MAX,
                                .entry_bytes = 8 * (problem->complex ? 2 : 1),
                                .operations = operations,
                                .nanoseconds = dense_time(operations, nonzeros),
                                .bytes = (int64_t)(u->info[UMFPACK_SYMBOLIC_SIZE] * u->info[UMFPACK_SIZE_OF_UNIT])};
    *state = u;
    return SPMV_OK;
}

static void tell_determinant(const struct umfpack *u, struct direct_figures *figures)
{
    const bool complex = u->problem.complex;
    double mantissa[2] = {0, 0}, tens = 0;
    struct direct_product product = direct_product_of_none();
    const SuiteSparse_long done = complex ? umfpack_zl_get_determinant(mantissa, mantissa + 1, &tens, u->numeric, NULL)
                                          : umfpack_dl_get_determinant(mantissa, &tens, u->numeric, NULL);
    direct_product_add(&product, mantissa, complex);
    product.log += tens * log(10);
    direct_product_tell(&product, figures);
    figures->has_determinant = done == UMFPACK_OK;
}

static spmv_status factor_umfpack(void *state, const double *val, struct direct_figures *figures, char *why)
{
    struct umfpack *const u = state;
    const struct direct_problem *const p = &u->problem;
    SuiteSparse_long *const col_ptr = integers(p->col_ptr), *const row = integers(p->row);
    begin_call(p);
    drop_factors(u);
    const SuiteSparse_long done =
        p->complex ? umfpack_zl_numeric(col_ptr, row, val, NULL, u->symbolic, &u->numeric, u->control, u->info)
                   : umfpack_dl_numeric(col_ptr, row, val, u->symbolic, &u->numeric, u->control, u->info);
    if (done == UMFPACK_OK)
        tell_determinant(u, figures);
    else
        drop_factors(u);
    end_call(p);
    if (done != UMFPACK_OK)
        return failed(u, done, "the factorisation", why);
    u->val = val;
    figures->nonzeros = (int64_t)(u->info[UMFPACK_LNZ] + u->info[UMFPACK_UNZ]) - p->n;
    figures->bytes =
        (int64_t)((u->info[UMFPACK_NUMERIC_SIZE] + u->info[UMFPACK_SYMBOLIC_SIZE]) * u->info[UMFPACK_SIZE_OF_UNIT]);
    figures->rcond = u->info[UMFPACK_RCOND];
    figures->negative = -1;
    return SPMV_OK;
}

/* One column. */
static SuiteSparse_long solve_column(const struct umfpack *u, SuiteSparse_long system, const double *b)
{
    const struct direct_problem *const p = &u->problem;
    SuiteSparse_long *const col_ptr = integers(p->col_ptr), *const row = integers(p->row);
    double info[UMFPACK_INFO];
    return p->complex ? umfpack_zl_wsolve(system, col_ptr, row, u->val, NULL, u->solution, NULL, b, NULL, u->numeric,
                                          u->control, info, u->place, u->work)
                      : umfpack_dl_wsolve(system, col_ptr, row, u->val, u->solution, b, u->numeric, u->control, info,
                                          u->place, u->work);
}

static spmv_status solve_system(struct umfpack *u, SuiteSparse_long system, double *x, int64_t columns, char *why)
{
    const struct direct_problem *const p = &u->problem;
    const int64_t count = p->n * (p->complex ? 2 : 1);
    SuiteSparse_long done = UMFPACK_OK;
    begin_call(p);
    for (int64_t v = 0; v < columns && done >= UMFPACK_OK; v++) {
        done = solve_column(u, system, x + v * count);
        memcpy(x + v * count, u->solution, (size_t)count * sizeof *x);
    }
    end_call(p);
    return done == UMFPACK_OK || done == UMFPACK_WARNING_singular_matrix ? SPMV_OK
                                                                         : failed(u, done, "the solution", why);
}

static spmv_status solve_umfpack(void *state, double *x, int64_t columns, char *why)
{
    return solve_system(state, UMFPACK_A, x, columns, why);
}

static spmv_status solve_adjoint_umfpack(void *state, double *x, int64_t columns, char *why)
{
    return solve_system(state, UMFPACK_At, x, columns, why);
}

const struct direct_module *spmv_direct_module(void)
{
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
    static const struct direct_module module = {
        DIRECT_MODULE_ABI,
        "UMFPACK " TEXT(UMFPACK_MAIN_VERSION) "." TEXT(UMFPACK_SUB_VERSION) "." TEXT(UMFPACK_SUBSUB_VERSION),
        open_umfpack,
        factor_umfpack,
        solve_umfpack,
        solve_adjoint_umfpack,
        close_umfpack};
    return &module;
}
