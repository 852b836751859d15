/* The direct solver KLU of SuiteSparse: block triangular form, an ordering of each block against
 * fill-in, and LU factors with partial pivoting of the scaled rows.
 *
 * KLU reports every failure by a status. It does not print or exit, and it uses no BLAS, so the bits
 * of the solution repeat. T. A. Davis, E. Palamadai Natarajan, "Algorithm 907: KLU, a direct sparse
 * solver for circuit simulation problems", ACM TOMS 37(3), 2010.
 *
 * The version with 64-bit integers (klu_l, klu_zl) has no limit below that of memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <klu.h>
#include <math.h>
#include <stdio.h>

#include "solvers/modules/suitesparse.h"

/* A pivot on the diagonal is taken if it is at least this fraction of the largest entry in its
 * column. KLU's default, 0.001, lets the entries grow more: with it, two of 181 real matrices
 * needed a step of refinement that do not need one with 0.1. */
static const double pivot_tolerance = 0.1;

/* AMD orders the pattern of A + A', COLAMD that of A'A. AMD leaves fewer nonzeros if at least this
 * fraction of the entries off the diagonal has a mirror image, measured in the largest block. */
static const double symmetry_for_amd = 0.5;

enum { AMD = 0, COLAMD = 1, LARGEST = 2 /* scale each row by its largest entry */ };

/* ------------------------------------------------------------------- KLU */

struct klu {
    struct direct_problem problem;
    klu_l_common common;
    klu_l_symbolic *symbolic;
    klu_l_numeric *numeric;
};

static void drop_factors(struct klu *klu)
{
    if (klu->problem.complex)
        klu_zl_free_numeric(&klu->numeric, &klu->common);
    else
        klu_l_free_numeric(&klu->numeric, &klu->common);
}

static void close_klu(void *state)
{
    struct klu *klu = state;
    if (klu == NULL)
        return;
    begin_call(&klu->problem);
    drop_factors(klu);
    klu_l_free_symbolic(&klu->symbolic, &klu->common);
    end_call(&klu->problem);
    free(klu);
}

/* The status of a failed call, with a message. */
static spmv_status failed(const struct klu *klu, const char *what, char *why)
{
    switch (klu->common.status) {
    case KLU_OUT_OF_MEMORY:
    case KLU_TOO_LARGE:
        snprintf(why, DIRECT_WHY, "out of memory in %s, which had allocated %llu bytes", what,
                 (unsigned long long)klu->common.memusage);
        return SPMV_ERROR_MEMORY;
    case KLU_SINGULAR:
        snprintf(why, DIRECT_WHY, "the matrix is singular: no pivot other than 0 is left for column %lld%s",
                 (long long)klu->common.singular_col + klu->problem.first_index, counted(&klu->problem));
        return SPMV_ERROR_SINGULAR;
    default:
        snprintf(why, DIRECT_WHY, "%s failed with KLU's status %lld", what, (long long)klu->common.status);
        return SPMV_ERROR_UNSUPPORTED;
    }
}

/* The message for a pattern that is singular whatever its values are: a row and a column that a
 * maximum matching leaves out. */
static spmv_status no_matching(const struct klu *klu, char *why)
{
    const struct direct_problem *p = &klu->problem;
    SuiteSparse_long *match = malloc((size_t)p->n * sizeof *match);
    SuiteSparse_long *work = malloc((size_t)p->n * 5 * sizeof *work);
    int64_t row = 0, column = 0;
    if (match != NULL && work != NULL) {
        double done = 0;
        btf_l_maxtrans(p->n, p->n, integers(p->col_ptr), integers(p->row), 0, &done, match, work);
        for (int64_t i = 0; i < p->n; i++)
            work[i] = 0;
        for (int64_t i = 0; i < p->n; i++)
            if (match[i] >= 0)
                work[match[i]] = 1;
        while (row < p->n && match[row] >= 0)
            row++;
        while (column < p->n && work[column] != 0)
            column++;
        snprintf(why, DIRECT_WHY,
                 "the matrix is singular whatever its values are: at most %lld of its %lld rows can have a pivot in a "
                 "column of their own, and row %lld and column %lld%s are left out",
                 (long long)klu->symbolic->structural_rank, (long long)p->n, (long long)row + p->first_index,
                 (long long)column + p->first_index, counted(&klu->problem));
    } else {
        snprintf(why, DIRECT_WHY, "the matrix is singular whatever its values are: its structural rank is %lld of %lld",
                 (long long)klu->symbolic->structural_rank, (long long)p->n);
    }
    free(match);
    free(work);
    return SPMV_ERROR_SINGULAR;
}

static spmv_status analyse(struct klu *klu, int ordering, char *why)
{
    const struct direct_problem *p = &klu->problem;
    klu_l_free_symbolic(&klu->symbolic, &klu->common);
    klu->common.ordering = ordering;
    klu->symbolic = klu_l_analyze(p->n, integers(p->col_ptr), integers(p->row), &klu->common);
    if (klu->symbolic == NULL)
        return failed(klu, "the analysis", why);
    return klu->symbolic->structural_rank < p->n ? no_matching(klu, why) : SPMV_OK;
}

static spmv_status open_klu(const struct direct_problem *problem, void **state, struct direct_figures *figures,
                            char *why)
{
    *state = NULL;
    struct klu *klu = calloc(1, sizeof *klu);
    if (klu == NULL) {
        snprintf(why, DIRECT_WHY, "out of memory: %zu bytes needed", sizeof *klu);
        return SPMV_ERROR_MEMORY;
    }
    klu->problem = *problem;
    klu_l_defaults(&klu->common);
    klu->common.tol = pivot_tolerance;
    klu->common.scale = LARGEST;
    begin_call(problem);
    spmv_status st = analyse(klu, AMD, why);
    /* symmetry is negative if all blocks are so small that they need no ordering */
    if (st == SPMV_OK && klu->symbolic->symmetry >= 0 && klu->symbolic->symmetry < symmetry_for_amd)
        st = analyse(klu, COLAMD, why);
    end_call(problem);
    if (st != SPMV_OK) {
        close_klu(klu);
        return st;
    }
    const bool amd = klu->common.ordering == AMD;
    const double expected = klu->symbolic->lnz + klu->symbolic->unz; /* negative after COLAMD */
    const double operations = fmax(klu->symbolic->est_flops, 0);     /* as well */
    const double entries = (double)problem->col_ptr[problem->n];
    *figures = (struct direct_figures){.ordering = amd ? "AMD" : "COLAMD",
                                       .blocks = klu->symbolic->nblocks,
                                       .expected = expected < 0      ? 0
                                                   : expected < 1e18 ? (int64_t)expected
                                                                     : INT64_MAX,
                                       .entry_bytes = 8 + 8 * (problem->complex ? 2 : 1),
                                       .operations = operations,
                                       .nanoseconds = sparse_time(operations, fmax(expected, 0) + entries),
                                       .dense = dense_time_of(operations, fmax(expected, 0), true),
                                       .bytes = (int64_t)klu->common.memusage};
    *state = klu;
    return SPMV_OK;
}

/* Whether a permutation of n numbers is odd. false too without memory: *known is then false. */
static bool is_odd(const SuiteSparse_long *order, int64_t n, bool *known)
{
    bool odd = false;
    unsigned char *const seen = calloc((size_t)n, 1);
    *known = *known && seen != NULL;
    for (int64_t i = 0; seen != NULL && i < n; i++)
        for (int64_t k = i; !seen[k]; k = order[k]) {
            seen[k] = 1;
            odd ^= !seen[order[k]];
        }
    free(seen);
    return odd;
}

/* P R^-1 A Q has the pivots on the diagonals of its blocks, and below them nothing. */
static void tell_determinant(const struct klu *klu, struct direct_figures *figures)
{
    const int64_t n = klu->problem.n;
    const size_t parts = klu->problem.complex ? 2 : 1;
    const double *const pivots = klu->numeric->Udiag, *const scale = klu->numeric->Rs;
    struct direct_product product = direct_product_of_none();
    bool known = true;
    const bool odd = is_odd(klu->numeric->Pnum, n, &known) != is_odd(klu->symbolic->Q, n, &known);
    for (int64_t i = 0; i < n; i++) {
        direct_product_add(&product, pivots + (size_t)i * parts, klu->problem.complex);
        if (scale != NULL)
            direct_product_add(&product, scale + i, false);
    }
    if (odd)
        direct_product_add(&product, &(const double){-1}, false);
    direct_product_tell(&product, figures);
    figures->has_determinant = known;
}

static spmv_status factor(struct klu *klu, const double *val, struct direct_figures *figures, char *why)
{
    SuiteSparse_long *const col_ptr = integers(klu->problem.col_ptr), *const row = integers(klu->problem.row);
    double *const values = (double *)val;
    drop_factors(klu);
    klu->numeric = klu->problem.complex ? klu_zl_factor(col_ptr, row, values, klu->symbolic, &klu->common)
                                        : klu_l_factor(col_ptr, row, values, klu->symbolic, &klu->common);
    figures->bytes = (int64_t)klu->common.memusage;
    if (klu->numeric == NULL)
        return failed(klu, "the factorisation", why);
    figures->nonzeros = (int64_t)klu->numeric->lnz + klu->numeric->unz - klu->problem.n + klu->numeric->nzoff;
    if (klu->problem.complex)
        klu_zl_condest(col_ptr, values, klu->symbolic, klu->numeric, &klu->common);
    else
        klu_l_condest(col_ptr, values, klu->symbolic, klu->numeric, &klu->common);
    figures->rcond = klu->common.condest > 0 ? 1 / klu->common.condest : 0;
    figures->negative = -1;
    tell_determinant(klu, figures);
    return SPMV_OK;
}

static spmv_status factor_klu(void *state, const double *val, struct direct_figures *figures, char *why)
{
    struct klu *klu = state;
    begin_call(&klu->problem);
    const spmv_status st = factor(klu, val, figures, why);
    end_call(&klu->problem);
    return st;
}

static spmv_status solve_klu(void *state, double *x, int64_t columns, char *why)
{
    struct klu *klu = state;
    const SuiteSparse_long n = klu->problem.n;
    const bool done = klu->problem.complex ? klu_zl_solve(klu->symbolic, klu->numeric, n, columns, x, &klu->common)
                                           : klu_l_solve(klu->symbolic, klu->numeric, n, columns, x, &klu->common);
    return done ? SPMV_OK : failed(klu, "the solution", why);
}

static spmv_status solve_adjoint_klu(void *state, double *x, int64_t columns, char *why)
{
    struct klu *klu = state;
    const SuiteSparse_long n = klu->problem.n;
    const bool done = klu->problem.complex ? klu_zl_tsolve(klu->symbolic, klu->numeric, n, columns, x, 1, &klu->common)
                                           : klu_l_tsolve(klu->symbolic, klu->numeric, n, columns, x, &klu->common);
    return done ? SPMV_OK : failed(klu, "the solution", why);
}

const struct direct_module *spmv_direct_module(void)
{
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
    static const struct direct_module module = {
        DIRECT_MODULE_ABI, "KLU " TEXT(KLU_MAIN_VERSION) "." TEXT(KLU_SUB_VERSION) "." TEXT(KLU_SUBSUB_VERSION),
        open_klu,          factor_klu,
        solve_klu,         solve_adjoint_klu,
        close_klu};
    return &module;
}
