/* The direct solver KLU of SuiteSparse: block triangular form, an ordering of each block against
 * fill-in, and LU factors with partial pivoting of the scaled rows.
 *
 * KLU reports every failure by a status. It does not print or exit, and it uses no BLAS, so the bits
 * of the solution repeat. T. A. Davis, E. Palamadai Natarajan, "Algorithm 907: KLU, a direct sparse
 * solver for circuit simulation problems", ACM TOMS 37(3), 2010.
 *
 * The version with 64-bit integers (klu_l, klu_zl) has no limit below that of memory.
 *
 * Memory: SuiteSparse calls the functions of SuiteSparse_config. They are replaced once, if they are
 * those of the C library, by functions that count the memory of this module's calls against the limit
 * of the process. In other calls and threads they do what the C library does, and all blocks are
 * blocks of the C library.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/modules/direct_module.h"

#include <klu.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

_Static_assert(sizeof(SuiteSparse_long) == sizeof(int64_t), "arrays are passed to KLU without a copy");

/* A pivot on the diagonal is taken if it is at least this fraction of the largest entry in its
 * column. KLU's default, 0.001, lets the entries grow more: with it, two of 181 real matrices
 * needed a step of refinement that do not need one with 0.1. */
static const double pivot_tolerance = 0.1;

/* AMD orders the pattern of A + A', COLAMD that of A'A. AMD leaves fewer nonzeros if at least this
 * fraction of the entries off the diagonal has a mirror image, measured in the largest block. */
static const double symmetry_for_amd = 0.5;

enum { AMD = 0, COLAMD = 1, LARGEST = 2 /* scale each row by its largest entry */ };

/* ------------------------------------------------------------------- memory */

/* The problem of the call that this thread is in; NULL: none. */
static _Thread_local const struct direct_problem *current;

static bool take(int64_t bytes)
{
    return current == NULL || current->take(current->user, bytes);
}

/* The new size of a block takes the place of `before` bytes, of which `taken` more were taken. */
static void *settled(void *block, int64_t before, int64_t taken)
{
    take(block != NULL ? -(taken + before - (int64_t)malloc_usable_size(block)) : -taken);
    return block;
}

static void *counted_malloc(size_t bytes)
{
    return take((int64_t)bytes) ? settled(malloc(bytes), 0, (int64_t)bytes) : NULL;
}

static void *counted_calloc(size_t count, size_t size)
{
    int64_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return take(bytes) ? settled(calloc(count, size), 0, bytes) : NULL;
}

static void *counted_realloc(void *block, size_t bytes)
{
    const int64_t before = (int64_t)malloc_usable_size(block), more = (int64_t)bytes - before;
    const int64_t taken = more > 0 ? more : 0;
    return take(taken) ? settled(realloc(block, bytes), before, taken) : NULL;
}

static void counted_free(void *block)
{
    take(-(int64_t)malloc_usable_size(block));
    free(block);
}

static void count_memory(void)
{
#if SUITESPARSE_MAIN_VERSION >= 7
    if (SuiteSparse_config_malloc_func_get() != malloc || SuiteSparse_config_calloc_func_get() != calloc ||
        SuiteSparse_config_realloc_func_get() != realloc || SuiteSparse_config_free_func_get() != free)
        return;
    SuiteSparse_config_malloc_func_set(counted_malloc);
    SuiteSparse_config_calloc_func_set(counted_calloc);
    SuiteSparse_config_realloc_func_set(counted_realloc);
    SuiteSparse_config_free_func_set(counted_free);
#else
    struct SuiteSparse_config_struct *const c = &SuiteSparse_config;
    if (c->malloc_func != malloc || c->calloc_func != calloc || c->realloc_func != realloc || c->free_func != free)
        return;
    c->malloc_func = counted_malloc;
    c->calloc_func = counted_calloc;
    c->realloc_func = counted_realloc;
    c->free_func = counted_free;
#endif
}

/* ------------------------------------------------------------------- KLU */

struct klu {
    struct direct_problem problem;
    klu_l_common common;
    klu_l_symbolic *symbolic;
    klu_l_numeric *numeric;
};

/* KLU takes arrays that it does not modify without const. */
static SuiteSparse_long *integers(const int64_t *array)
{
    return (SuiteSparse_long *)array;
}

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
    current = &klu->problem;
    drop_factors(klu);
    klu_l_free_symbolic(&klu->symbolic, &klu->common);
    current = NULL;
    free(klu);
}

/* The words behind the number of a row or column in a message. */
static const char *counted(const struct klu *klu)
{
    return klu->problem.first_index != 0 ? "" : " (counted from 0)";
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
                 (long long)klu->common.singular_col + klu->problem.first_index, counted(klu));
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
                 (long long)column + p->first_index, counted(klu));
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
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, count_memory);
    struct klu *klu = calloc(1, sizeof *klu);
    if (klu == NULL) {
        snprintf(why, DIRECT_WHY, "out of memory: %zu bytes needed", sizeof *klu);
        return SPMV_ERROR_MEMORY;
    }
    klu->problem = *problem;
    klu_l_defaults(&klu->common);
    klu->common.tol = pivot_tolerance;
    klu->common.scale = LARGEST;
    current = &klu->problem;
    spmv_status st = analyse(klu, AMD, why);
    /* symmetry is negative if all blocks are so small that they need no ordering */
    if (st == SPMV_OK && klu->symbolic->symmetry >= 0 && klu->symbolic->symmetry < symmetry_for_amd)
        st = analyse(klu, COLAMD, why);
    current = NULL;
    if (st != SPMV_OK) {
        close_klu(klu);
        return st;
    }
    const bool amd = klu->common.ordering == AMD;
    const double expected = klu->symbolic->lnz + klu->symbolic->unz; /* negative after COLAMD */
    *figures = (struct direct_figures){.ordering = amd ? "AMD" : "COLAMD",
                                       .blocks = klu->symbolic->nblocks,
                                       .expected = expected < 0      ? 0
                                                   : expected < 1e18 ? (int64_t)expected
                                                                     : INT64_MAX,
                                       .bytes = (int64_t)klu->common.memusage};
    *state = klu;
    return SPMV_OK;
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
    return SPMV_OK;
}

static spmv_status factor_klu(void *state, const double *val, struct direct_figures *figures, char *why)
{
    struct klu *klu = state;
    current = &klu->problem;
    const spmv_status st = factor(klu, val, figures, why);
    current = NULL;
    return st;
}

static spmv_status solve_klu(void *state, double *x, char *why)
{
    struct klu *klu = state;
    const SuiteSparse_long n = klu->problem.n;
    const bool done = klu->problem.complex ? klu_zl_solve(klu->symbolic, klu->numeric, n, 1, x, &klu->common)
                                           : klu_l_solve(klu->symbolic, klu->numeric, n, 1, x, &klu->common);
    return done ? SPMV_OK : failed(klu, "the solution", why);
}

static spmv_status solve_klu_adjoint(void *state, double *x, char *why)
{
    struct klu *klu = state;
    const SuiteSparse_long n = klu->problem.n;
    const bool done = klu->problem.complex ? klu_zl_tsolve(klu->symbolic, klu->numeric, n, 1, x, 1, &klu->common)
                                           : klu_l_tsolve(klu->symbolic, klu->numeric, n, 1, x, &klu->common);
    return done ? SPMV_OK : failed(klu, "the solution", why);
}

const struct direct_module *spmv_direct_module(void)
{
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
    static const struct direct_module module = {
        DIRECT_MODULE_ABI, "KLU " TEXT(KLU_MAIN_VERSION) "." TEXT(KLU_SUB_VERSION) "." TEXT(KLU_SUBSUB_VERSION),
        open_klu,          factor_klu,
        solve_klu,         solve_klu_adjoint,
        close_klu};
    return &module;
}
