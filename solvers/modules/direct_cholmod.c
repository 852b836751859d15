/* The direct solver CHOLMOD of SuiteSparse: A = L L' of a symmetric or Hermitian positive definite matrix, with
 * supernodes where they pay.
 *
 * It orders by AMD and, where that leaves much fill-in and METIS takes less time than the factors, by nested dissection
 * of METIS. Which of the two gives fewer nonzeros is kept. Y. Chen, T. A. Davis, W. W. Hager, S. Rajamanickam,
 * "Algorithm 887: CHOLMOD, supernodal sparse Cholesky factorization and update/downdate", ACM TOMS 35(3), 2008.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cholmod.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solvers/modules/suitesparse.h"

struct cholmod {
    struct direct_problem problem;
    cholmod_common common;
    cholmod_factor *factor;
    cholmod_dense *x, *y, *e; /* of solves: they are kept */
};

static cholmod_sparse view_of(const struct direct_problem *p, const double *val)
{
    return (cholmod_sparse){.nrow = (size_t)p->n,
                            .ncol = (size_t)p->n,
                            .nzmax = (size_t)p->col_ptr[p->n],
                            .p = integers(p->col_ptr),
                            .i = integers(p->row),
                            .x = (void *)val,
                            .stype = -1, /* the lower triangle */
                            .itype = CHOLMOD_LONG,
                            .xtype = val == NULL  ? CHOLMOD_PATTERN
                                     : p->complex ? CHOLMOD_COMPLEX
                                                  : CHOLMOD_REAL,
                            .dtype = CHOLMOD_DOUBLE,
                            .sorted = 1,
                            .packed = 1};
}

static spmv_status failed(const struct cholmod *c, const char *what, char *why)
{
    switch (c->common.status) {
    case CHOLMOD_OUT_OF_MEMORY:
    case CHOLMOD_TOO_LARGE:
        snprintf(why, DIRECT_WHY, "out of memory in %s, which had allocated %zu bytes", what, c->common.memory_inuse);
        return SPMV_ERROR_MEMORY;
    default:
        snprintf(why, DIRECT_WHY, "%s failed with CHOLMOD's status %d", what, c->common.status);
        return SPMV_ERROR_UNSUPPORTED;
    }
}

static void close_cholmod(void *state)
{
    struct cholmod *const c = state;
    if (c == NULL)
        return;
    begin_call(&c->problem);
    cholmod_l_free_factor(&c->factor, &c->common);
    cholmod_l_free_dense(&c->x, &c->common);
    cholmod_l_free_dense(&c->y, &c->common);
    cholmod_l_free_dense(&c->e, &c->common);
    cholmod_l_finish(&c->common);
    end_call(&c->problem);
    free(c);
}

static const char *ordering_of(const cholmod_common *common)
{
    switch (common->method[common->selected].ordering) {
    case CHOLMOD_AMD:
        return "AMD";
    case CHOLMOD_METIS:
        return "METIS";
    case CHOLMOD_NESDIS:
        return "NESDIS";
    default:
        return "natural";
    }
}

static cholmod_factor *analyse(struct cholmod *c, int ordering)
{
    cholmod_sparse a = view_of(&c->problem, NULL);
    c->common.nmethods = 1;
    c->common.method[0].ordering = ordering;
    return cholmod_l_analyze(&a, &c->common);
}

static double time_of(const struct cholmod *c)
{
    const double nonzeros = c->common.lnz, operations = c->common.fl;
    return c->factor->is_super ? dense_time(operations, nonzeros)
                               : sparse_time(operations, nonzeros + (double)c->problem.col_ptr[c->problem.n]);
}

/* Whether METIS may save more than it takes. Much fill-in: as CHOLMOD judges that of AMD. */
static bool may_dissect(const struct cholmod *c)
{
    static const double MUCH = 500, FILL = 5, ENTRY = 1000 /* nanoseconds of METIS */;
    const double entries = (double)c->problem.col_ptr[c->problem.n];
    return c->common.fl >= MUCH * c->common.lnz && c->common.lnz >= FILL * c->common.anz &&
           ENTRY * entries < fmin(c->problem.most, time_of(c));
}

/* By METIS, if that has fewer nonzeros. Without it, the order of AMD stays. */
static void dissect(struct cholmod *c)
{
    cholmod_common *const common = &c->common;
    cholmod_factor *const by_degree = c->factor;
    const double nonzeros = common->lnz, operations = common->fl;
    cholmod_factor *other = analyse(c, CHOLMOD_METIS);
    if (other != NULL && common->lnz < nonzeros) {
        c->factor = other;
        other = by_degree;
    } else {
        common->lnz = nonzeros;
        common->fl = operations;
        common->method[0].ordering = CHOLMOD_AMD;
        common->status = CHOLMOD_OK;
    }
    cholmod_l_free_factor(&other, common);
}

static spmv_status open_cholmod(const struct direct_problem *problem, void **state, struct direct_figures *figures,
                                char *why)
{
    *state = NULL;
    struct cholmod *const c = calloc(1, sizeof *c);
    if (c == NULL) {
        snprintf(why, DIRECT_WHY, "out of memory: %zu bytes needed", sizeof *c);
        return SPMV_ERROR_MEMORY;
    }
    c->problem = *problem;
    begin_call(problem);
    cholmod_l_start(&c->common);
    c->common.print = 0;
    c->common.final_ll = 1; /* so that a pivot of 0 or below is an error without supernodes too */
    c->factor = analyse(c, CHOLMOD_AMD);
    if (c->factor != NULL && may_dissect(c))
        dissect(c);
    const spmv_status st = c->factor != NULL ? SPMV_OK : failed(c, "the analysis", why);
    end_call(problem);
    if (st != SPMV_OK) {
        close_cholmod(c);
        return st;
    }
    *figures = (struct direct_figures){.ordering = ordering_of(&c->common),
                                       .expected = (int64_t)c->common.lnz,
                                       .entry_bytes = 8 * (problem->complex ? 2 : 1),
                                       .operations = c->common.fl,
                                       .nanoseconds = time_of(c),
                                       .bytes = (int64_t)c->common.memory_inuse};
    *state = c;
    return SPMV_OK;
}

/* The square of the product of L's diagonal. */
static void tell_determinant(const struct cholmod *c, struct direct_figures *figures)
{
    const cholmod_factor *const f = c->factor;
    const size_t parts = c->problem.complex ? 2 : 1;
    const double *const x = f->x;
    const SuiteSparse_long *const super = f->super, *const first = f->pi, *const at = f->px, *const column = f->p;
    struct direct_product product = direct_product_of_none();
    for (size_t s = 0; f->is_super && s < f->nsuper; s++) {
        const SuiteSparse_long rows = first[s + 1] - first[s];
        for (SuiteSparse_long j = 0; j < super[s + 1] - super[s]; j++)
            direct_product_add(&product, x + (size_t)(at[s] + j * rows + j) * parts,
                               false); /* its imaginary part is 0 */
    }
    for (size_t j = 0; !f->is_super && j < f->n; j++)
        direct_product_add(&product, x + (size_t)column[j] * parts, false);
    product.log *= 2;
    direct_product_tell(&product, figures);
}

static spmv_status factor_cholmod(void *state, const double *val, struct direct_figures *figures, char *why)
{
    struct cholmod *const c = state;
    spmv_status st = SPMV_OK;
    cholmod_sparse a = view_of(&c->problem, val);
    begin_call(&c->problem);
    const bool done = cholmod_l_factorize(&a, c->factor, &c->common) && c->common.status >= CHOLMOD_OK;
    if (done && c->common.status != CHOLMOD_NOT_POSDEF && c->factor->minor == c->factor->n) {
        figures->nonzeros = (int64_t)c->common.lnz;
        figures->rcond = cholmod_l_rcond(c->factor, &c->common);
        figures->negative = figures->zero = 0;
        tell_determinant(c, figures);
    } else if (done) {
        snprintf(why, DIRECT_WHY, "the matrix is not positive definite: the pivot of row %lld%s is not above 0",
                 (long long)c->factor->minor < c->problem.n
                     ? (long long)((SuiteSparse_long *)c->factor->Perm)[c->factor->minor] + c->problem.first_index
                     : -1,
                 counted(&c->problem));
        st = SPMV_ERROR_NOT_POSITIVE;
    } else {
        st = failed(c, "the factorisation", why);
    }
    figures->bytes = (int64_t)c->common.memory_inuse;
    end_call(&c->problem);
    return st;
}

/* Of A and A^H, which are the same. */
static spmv_status solve_cholmod(void *state, double *x, int64_t columns, char *why)
{
    struct cholmod *const c = state;
    const struct direct_problem *const p = &c->problem;
    const size_t n = (size_t)p->n, count = n * (size_t)columns, parts = p->complex ? 2 : 1;
    cholmod_dense b = {.nrow = n,
                       .ncol = (size_t)columns,
                       .nzmax = count,
                       .d = n,
                       .x = x,
                       .xtype = p->complex ? CHOLMOD_COMPLEX : CHOLMOD_REAL,
                       .dtype = CHOLMOD_DOUBLE};
    begin_call(p);
    const bool done =
        cholmod_l_solve2(CHOLMOD_A, c->factor, &b, NULL, &c->x, NULL, &c->y, &c->e, &c->common) && c->x != NULL;
    const spmv_status st = done ? SPMV_OK : failed(c, "the solution", why);
    end_call(p);
    if (done)
        memcpy(x, c->x->x, count * parts * sizeof *x);
    return st;
}

const struct direct_module *spmv_direct_module(void)
{
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
    static const struct direct_module module = {
        DIRECT_MODULE_ABI,
        "CHOLMOD " TEXT(CHOLMOD_MAIN_VERSION) "." TEXT(CHOLMOD_SUB_VERSION) "." TEXT(CHOLMOD_SUBSUB_VERSION),
        open_cholmod,
        factor_cholmod,
        solve_cholmod,
        solve_cholmod,
        close_cholmod};
    return &module;
}
