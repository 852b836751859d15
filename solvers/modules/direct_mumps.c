/* The direct solver MUMPS: A = L D L' of a symmetric matrix, which need not be positive definite, with pivots of one
 * or two rows, by the multifrontal method. A complex matrix is its transpose, without conjugation.
 *
 * P. R. Amestoy, I. S. Duff, J. Koster, J.-Y. L'Excellent, "A fully asynchronous multifrontal solver using distributed
 * dynamic scheduling", SIAM J. Matrix Anal. Appl. 23, 2001. The sequential version, one call at a time: it has state of its
 * own besides that of a problem. Its own refinement is off: the solver refines (krylov_direct.c).
 *
 * Memory: MUMPS allocates by Fortran. What it expects is taken from the limit before the factorisation, then what it has.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dmumps_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmumps_c.h>

#include "solvers/modules/blas_calls.h"

enum { START = -1, END = -2, ANALYSE = 1, FACTORISE = 2, SOLVE = 3 };

/* Orders that repeat: METIS and Scotch, which MUMPS would take for large matrices, may not. Approximate minimum fill; and
 * PORD, bottom-up and nested dissection, which is better in three dimensions and takes longer. */
enum { AMF = 2, PORD = 4 };

/* INFOG(1) */
enum { SINGULAR = -10, STRUCTURALLY_SINGULAR = -6, WORKSPACE = -9, WORKSPACE_OF_INTEGERS = -8, NO_MEMORY = -13 };

/* The limit of the memory leaves less. */
enum { NO_LIMIT = -1000000 };

enum { MOST_ROWS = 2147483647, MOST_GROWTH = 6, MEGABYTE = 1000000 };

struct mumps {
    struct direct_problem problem;
    union {
        DMUMPS_STRUC_C real;
        ZMUMPS_STRUC_C complex;
    } id;
    /* of id */
    MUMPS_INT *icntl, *infog, *job;
    double *rinfog;
    MUMPS_INT *row, *col;
    double *val;
    int64_t entries; /* of the triangle */
    int64_t taken;   /* bytes of the limit */
    bool started;
};

/* One call of MUMPS in the process. */
static pthread_mutex_t one_call = PTHREAD_MUTEX_INITIALIZER;

static MUMPS_INT *icntl(struct mumps *m, int number)
{
    return &m->icntl[number - 1];
}

static MUMPS_INT infog(const struct mumps *m, int number)
{
    return m->infog[number - 1];
}

/* Large numbers are stored as negative millions. */
static double count_of(MUMPS_INT number)
{
    return number < 0 ? -1e6 * number : number;
}

static MUMPS_INT call(struct mumps *m, MUMPS_INT job)
{
    struct direct_shared *const shared = m->problem.shared;
    pthread_mutex_lock(&shared->lock);
    blas_on_one_thread(shared);
    pthread_mutex_unlock(&shared->lock);
    pthread_mutex_lock(&one_call);
    *m->job = job;
    if (m->problem.complex)
        zmumps_c(&m->id.complex);
    else
        dmumps_c(&m->id.real);
    pthread_mutex_unlock(&one_call);
    pthread_mutex_lock(&shared->lock);
    blas_on_all_threads(shared);
    pthread_mutex_unlock(&shared->lock);
    return infog(m, 1);
}

/* Sets the bytes of the limit that the problem has. */
static bool take(struct mumps *m, int64_t bytes)
{
    if (!m->problem.take(m->problem.user, bytes - m->taken))
        return false;
    m->taken = bytes;
    return true;
}

static void close_mumps(void *state)
{
    struct mumps *const m = state;
    if (m == NULL)
        return;
    if (m->started)
        call(m, END);
    take(m, 0);
    free(m->row);
    free(m->col);
    free(m->val);
    free(m);
}

static spmv_status failed(const struct mumps *m, const char *what, char *why)
{
    switch (infog(m, 1)) {
    case SINGULAR:
    case STRUCTURALLY_SINGULAR:
        snprintf(why, DIRECT_WHY, "the matrix is singular: its rank is about %lld of %lld", (long long)infog(m, 2),
                 (long long)m->problem.n);
        return SPMV_ERROR_SINGULAR;
    case NO_MEMORY:
        snprintf(why, DIRECT_WHY, "out of memory in %s: %.0f bytes needed", what, 8 * count_of(infog(m, 2)));
        return SPMV_ERROR_MEMORY;
    default:
        snprintf(why, DIRECT_WHY, "%s failed with MUMPS's status %d (%d)", what, (int)infog(m, 1), (int)infog(m, 2));
        return SPMV_ERROR_UNSUPPORTED;
    }
}

/* The entries on and below the diagonal. values: NULL: their places only. Returns their number. */
static int64_t take_triangle(struct mumps *m, const double *values)
{
    const struct direct_problem *const p = &m->problem;
    const size_t parts = p->complex ? 2 : 1;
    int64_t count = 0;
    for (int64_t j = 0; j < p->n; j++)
        for (int64_t k = p->col_ptr[j]; k < p->col_ptr[j + 1]; k++)
            if (p->row[k] >= j) {
                if (m->row != NULL) {
                    m->row[count] = (MUMPS_INT)(p->row[k] + 1);
                    m->col[count] = (MUMPS_INT)(j + 1);
                    memcpy(m->val + (size_t)count * parts, values + (size_t)k * parts, parts * sizeof *values);
                }
                count++;
            }
    return count;
}

static MUMPS_INT analyse_by(struct mumps *m, MUMPS_INT ordering)
{
    *icntl(m, 7) = ordering;
    return call(m, ANALYSE);
}

static double operations_of(const struct mumps *m)
{
    return m->rinfog[0];
}

/* Analyses by AMF; where the factorisation takes long, the better one of both. */
static MUMPS_INT order(struct mumps *m)
{
    const double LONG = 2e4; /* operations for each entry of A: some 3 microseconds, in which PORD orders it */
    const MUMPS_INT status = analyse_by(m, AMF);
    const double operations = operations_of(m);
    if (status < 0 || operations <= LONG * (double)m->entries)
        return status;
    return analyse_by(m, PORD) < 0 || operations_of(m) > operations ? analyse_by(m, AMF) : 0;
}

/* Members that have the same names and meaning in both. */
#define BEGIN(mumps, of)                                                                                               \
    do {                                                                                                               \
        (mumps)->icntl = (of)->icntl;                                                                                  \
        (mumps)->infog = (of)->infog;                                                                                  \
        (mumps)->rinfog = (of)->rinfog;                                                                                \
        (mumps)->job = &(of)->job;                                                                                     \
        (of)->par = 1;                                                                                                 \
        (of)->sym = 2;                                                                                                 \
        (of)->comm_fortran = -987654; /* the sequential version has no other */                                        \
    } while (0)
#define SET_MATRIX(mumps, of)                                                                                          \
    do {                                                                                                               \
        (of)->n = (MUMPS_INT)(mumps)->problem.n;                                                                       \
        (of)->nnz = (mumps)->entries;                                                                                  \
        (of)->irn = (mumps)->row;                                                                                      \
        (of)->jcn = (mumps)->col;                                                                                      \
        (of)->a = (void *)(mumps)->val;                                                                                \
    } while (0)
#define SET_RIGHT_SIDES(mumps, of, x, columns)                                                                         \
    do {                                                                                                               \
        (of)->rhs = (void *)(x);                                                                                       \
        (of)->nrhs = (MUMPS_INT)(columns);                                                                             \
        (of)->lrhs = (MUMPS_INT)(mumps)->problem.n;                                                                    \
    } while (0)

static spmv_status analyse(struct mumps *m, char *why)
{
    const struct direct_problem *const p = &m->problem;
    m->entries = take_triangle(m, NULL);
    const int64_t room = m->entries > 0 ? m->entries : 1;
    m->row = malloc((size_t)room * sizeof *m->row);
    m->col = malloc((size_t)room * sizeof *m->col);
    m->val = malloc((size_t)room * (p->complex ? 2 : 1) * sizeof *m->val);
    if (m->row == NULL || m->col == NULL || m->val == NULL) {
        snprintf(why, DIRECT_WHY, "out of memory: %lld bytes needed", (long long)(room * (p->complex ? 24 : 16)));
        return SPMV_ERROR_MEMORY;
    }
    take_triangle(m, p->val);
    if (p->complex)
        BEGIN(m, &m->id.complex);
    else
        BEGIN(m, &m->id.real);
    if (call(m, START) < 0)
        return failed(m, "the start", why);
    m->started = true;
    for (int i = 1; i <= 4; i++) /* no output */
        *icntl(m, i) = i < 4 ? -1 : 0;
    *icntl(m, 16) = 1; /* thread */
    *icntl(m, 33) = 1; /* with the determinant */
    if (p->complex)
        SET_MATRIX(m, &m->id.complex);
    else
        SET_MATRIX(m, &m->id.real);
    return order(m) < 0 ? failed(m, "the analysis", why) : SPMV_OK;
}

static const char *ordering_of(const struct mumps *m)
{
    static const char *const names[] = {"AMD", "given", "AMF", "Scotch", "PORD", "METIS", "QAMD"};
    const MUMPS_INT used = infog(m, 7);
    return used >= 0 && used < (MUMPS_INT)(sizeof names / sizeof *names) ? names[used] : "its own";
}

static spmv_status open_mumps(const struct direct_problem *problem, void **state, struct direct_figures *figures,
                              char *why)
{
    *state = NULL;
    if (!problem->symmetric || problem->n > MOST_ROWS) {
        snprintf(why, DIRECT_WHY, "MUMPS takes a symmetric matrix");
        return SPMV_ERROR_UNSUPPORTED;
    }
    struct mumps *const m = calloc(1, sizeof *m);
    if (m == NULL) {
        snprintf(why, DIRECT_WHY, "out of memory: %zu bytes needed", sizeof *m);
        return SPMV_ERROR_MEMORY;
    }
    m->problem = *problem;
    const spmv_status st = analyse(m, why);
    if (st != SPMV_OK) {
        close_mumps(m);
        return st;
    }
    const int parts = problem->complex ? 2 : 1;
    const double row = 800; /* nanoseconds: calls for each front */
    const double operations = operations_of(m), nonzeros = count_of(infog(m, 20));
    *figures = (struct direct_figures){.ordering = ordering_of(m),
                                       .expected = (int64_t)nonzeros,
                                       .entry_bytes = 8 * parts,
                                       .operations = operations,
                                       .nanoseconds = dense_time(operations * parts, 0) + row * (double)problem->n,
                                       .bytes = m->taken};
    *state = m;
    return SPMV_OK;
}

/* null_pivots: 1: pivots that are 0 up to rounding are counted, and left out. Returns the status of MUMPS, or NO_LIMIT. */
static MUMPS_INT factorise(struct mumps *m, MUMPS_INT null_pivots, char *why)
{
    const MUMPS_INT relaxed = *icntl(m, 14);
    MUMPS_INT status = WORKSPACE;
    *icntl(m, 24) = null_pivots;
    /* pivots that wait need more than the analysis expects */
    for (int growth = 1; growth <= MOST_GROWTH && (status == WORKSPACE || status == WORKSPACE_OF_INTEGERS); growth++) {
        const int64_t bytes = (int64_t)infog(m, 16) * MEGABYTE * growth;
        *icntl(m, 14) = relaxed + 100 * (growth - 1);
        if (take(m, bytes)) {
            status = call(m, FACTORISE);
        } else {
            snprintf(why, DIRECT_WHY, "out of memory in the factorisation: %lld bytes expected", (long long)bytes);
            status = NO_LIMIT;
        }
    }
    *icntl(m, 14) = relaxed;
    return status;
}

static void tell_determinant(const struct mumps *m, struct direct_figures *figures)
{
    struct direct_product product = direct_product_of_none();
    direct_product_add(&product, m->rinfog + 11, m->problem.complex);
    product.log += infog(m, 34) * log(2);
    direct_product_tell(&product, figures);
}

static spmv_status factor_mumps(void *state, const double *val, struct direct_figures *figures, char *why)
{
    struct mumps *const m = state;
    take_triangle(m, val);
    MUMPS_INT status = factorise(m, 1, why);
    const int64_t zero = status >= 0 ? infog(m, 28) : 0, negative = infog(m, 12);
    const bool singular = zero > 0; /* up to rounding: then pivots of exactly 0 are an error */
    if (singular)
        status = factorise(m, 0, why);
    if (status == NO_LIMIT)
        return SPMV_ERROR_MEMORY;
    if (status < 0) {
        take(m, 0);
        return failed(m, "the factorisation", why);
    }
    take(m, (int64_t)infog(m, 18) * MEGABYTE);
    figures->nonzeros = (int64_t)count_of(infog(m, 29));
    figures->bytes = m->taken;
    figures->rcond = singular ? 0 : -1;
    figures->negative = m->problem.complex ? -1 : negative;
    figures->zero = zero;
    tell_determinant(m, figures);
    return SPMV_OK;
}

static spmv_status solve_mumps(void *state, double *x, int64_t columns, char *why)
{
    struct mumps *const m = state;
    if (m->problem.complex)
        SET_RIGHT_SIDES(m, &m->id.complex, x, columns);
    else
        SET_RIGHT_SIDES(m, &m->id.real, x, columns);
    const MUMPS_INT status = call(m, SOLVE);
    return status < 0 ? failed(m, "the solution", why) : SPMV_OK;
}

static void conjugate(const struct mumps *m, double *x, int64_t columns)
{
    for (int64_t i = 0; m->problem.complex && i < m->problem.n * columns; i++)
        x[2 * i + 1] = -x[2 * i + 1];
}

/* A = A', so A^H is its conjugate. */
static spmv_status solve_adjoint_mumps(void *state, double *x, int64_t columns, char *why)
{
    conjugate(state, x, columns);
    const spmv_status st = solve_mumps(state, x, columns, why);
    conjugate(state, x, columns);
    return st;
}

const struct direct_module *spmv_direct_module(void)
{
    static const struct direct_module module = {DIRECT_MODULE_ABI, "MUMPS " MUMPS_VERSION, open_mumps, factor_mumps,
                                                solve_mumps,       solve_adjoint_mumps,    close_mumps};
    return &module;
}
