/* Eigenvalue problems: products with A and M of blocks of vectors, and preconditioners of several vectors.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <stdio.h>

#include "core/choice.h"
#include "core/hypot.h"
#include "product/plan_internal.h"
#include "solvers/eigen/eigen_internal.h"
#include "solvers/solver_ranks.h"

/* ------------------------------------------------------------- products */

/* The largest row sum of moduli, each times its weight (NULL: 1), on the host. */
static spmv_status find_norm_on_host(spmv_context *ctx, const spmv_csr *a, const double *weight, double *norm)
{
    spmv_status st = SPMV_OK;
    struct csr_copies copies = {0};
    spmv_csr host;
    const bool complex = a->val != NULL && type_is_complex(a->type);
    const spmv_type part = type_part(a->type);
    *norm = 0;
    TRY(csr_to_host(ctx, a, false, &host, &copies));
    for (int64_t i = 0; i < a->rows; i++) {
        double sum = 0;
        for (int64_t k = row_first(&host, i); k < row_first(&host, i + 1); k++)
            sum += host.val == NULL ? 1
                   : complex        ? real_hypot(real_at(part, host.val, 2 * k), real_at(part, host.val, 2 * k + 1))
                                    : fabs(real_at(part, host.val, k));
        sum *= weight != NULL ? weight[i] : 1;
        if (!(sum <= *norm))
            *norm = sum;
    }
done:
    csr_free_host(&copies);
    return st;
}

/* The same of a real matrix in the context's memory without weights: the largest number of |A| times ones. */
static spmv_status find_norm(spmv_context *ctx, const spmv_csr *a, double *norm)
{
    spmv_status st = SPMV_OK;
    spmv_csr moduli = *a;
    spmv_plan *plan = NULL;
    void *values = NULL, *ones = NULL, *sums = NULL, *cell = NULL;
    *norm = 0;
    if (a->nnz == 0 || a->rows == 0)
        return st;
    const spmv_type type = a->val == NULL ? SPMV_F64 : a->type;
    const int64_t size = real_bytes(type);
    const union real one = real_scalar(type, 1);
    union real largest;
    TRY(context_alloc(ctx, a->cols * size, &ones));
    TRY(context_alloc(ctx, a->rows * size, &sums));
    TRY(context_alloc(ctx, (int64_t)sizeof largest, &cell));
    TRY(spmv_map_index(ctx, type, &one, NULL, ones, a->cols));
    if (a->val != NULL) {
        TRY(context_alloc(ctx, a->nnz * size, &values));
        TRY(spmv_map(ctx, SPMV_MAP_ABS, type, a->val, values, a->nnz));
        moduli.val = values;
    }
    TRY(spmv_plan_create(ctx, &moduli, NULL, &plan));
    TRY(spmv_apply(plan, NULL, ones, NULL, sums));
    TRY(spmv_reduce(ctx, SPMV_MAX, type, sums, cell, a->rows));
    TRY(spmv_download(ctx, cell, &largest, (int64_t)sizeof largest));
    *norm = real_at(type, &largest, 0);
done:
    spmv_plan_destroy(plan);
    context_free_all(ctx, values, ones, sums, cell);
    return st;
}

spmv_status eigen_matrix_take(struct eigen_problem *p, const spmv_csr *a, spmv_operation operation,
                              const double *weight, struct eigen_matrix *to)
{
    spmv_status st = SPMV_OK;
    to->operation = operation;
    TRY(csr_to_context(p->ctx, a, true, &to->a, &to->copies));
    if (weight != NULL || (a->val != NULL && type_is_complex(a->type)))
        TRY(find_norm_on_host(p->ctx, a, weight, &to->norm));
    else
        TRY(find_norm(p->ctx, &to->a, &to->norm));
    if (!isfinite(to->norm))
        st = context_fail(p->ctx, SPMV_ERROR_NOT_FINITE, "%s: the matrix has a number that is not finite", p->call);
done:
    return st;
}

void eigen_matrix_drop(spmv_context *ctx, struct eigen_matrix *m)
{
    for (int i = 0; i < m->count; i++)
        spmv_plan_destroy(m->plans[i].plan);
    csr_free_context(ctx, &m->copies);
    *m = (struct eigen_matrix){.count = 0};
}

/* The plan for these columns, or one that is there for at least half of them, the first ones; otherwise a new one. */
static spmv_status plan_for(const struct eigen_problem *p, struct eigen_matrix *m, struct eigen_block from,
                            struct eigen_block to, struct eigen_plan *chosen)
{
    spmv_status st = SPMV_OK;
    spmv_plan_options o;
    spmv_plan *plan = NULL;
    chosen->columns = 0;
    for (int i = 0; i < m->count; i++) {
        const struct eigen_plan *const e = &m->plans[i];
        if (e->columns <= from.columns && 2 * e->columns >= from.columns && e->columns > chosen->columns &&
            e->x_stride == from.stride && e->y_stride == to.stride)
            *chosen = *e;
    }
    if (chosen->columns > 0)
        return st;
    if (m->count == EIGEN_PLANS)
        spmv_plan_destroy(m->plans[--m->count].plan);
    spmv_plan_options_init(&o, sizeof o);
    o.type = p->type;
    o.operation = m->operation;
    o.vectors = from.columns;
    o.x_stride = from.stride;
    o.y_stride = to.stride;
    TRY(spmv_plan_create(p->ctx, &m->a, &o, &plan));
    *chosen = m->plans[m->count++] = (struct eigen_plan){plan, from.columns, from.stride, to.stride};
done:
    return st;
}

spmv_status eigen_multiply(struct eigen_problem *p, struct eigen_matrix *m, struct eigen_block from,
                           struct eigen_block to)
{
    spmv_status st = SPMV_OK;
    struct eigen_plan e = {.columns = 0};
    if (m == &p->a)
        p->products += from.columns;
    for (int first = 0; first < from.columns; first += e.columns) {
        const int left = from.columns - first;
        const struct eigen_block x = block_part(from, p->type, first, left), y = block_part(to, p->type, first, left);
        TRY(plan_for(p, m, x, y, &e));
        TRY(spmv_apply(e.plan, NULL, x.at, NULL, y.at));
    }
done:
    return st;
}

/* ------------------------------------------------------------- preconditioners */

static spmv_status make(struct eigen_problem *p, const char *name, const spmv_csr *a)
{
    spmv_preconditioner_options o;
    spmv_preconditioner_options_init(&o, sizeof o);
    spmv_status st = options_take(p->ctx, "preconditioner", &o, sizeof o, p->options.precond_options);
    o.type = type_part(p->type);
    o.plan = NULL;
    if (o.near_null_type == SPMV_TYPE_DEFAULT)
        o.near_null_type = o.type;
    if (st == SPMV_OK && p->parts == 2 && (o.near_nulls > 0 || o.coordinates != NULL))
        st = context_fail(p->ctx, SPMV_ERROR_UNSUPPORTED, "%s: near-null-space vectors are for real matrices", p->call);
    return st != SPMV_OK ? st : spmv_preconditioner_create(p->ctx, name, a, &o, &p->made);
}

/* What cg would take, if that is amg or a complete factor; else amg, which takes all vectors at once, if it can be made. A
 * diagonal entry that is not positive: SPMV_ERROR_NOT_POSITIVE if lanczos can stand in, else none. */
static spmv_status make_auto(struct eigen_problem *p, const spmv_csr *a)
{
    spmv_status st = make(p, "auto", a);
    spmv_preconditioner *const first = p->made;
    if (st != SPMV_OK || strcmp(precond_name(first), "amg") == 0 || strcmp(precond_name(first), "cholesky") == 0)
        return st;
    p->made = NULL;
    st = make(p, "amg", a);
    if (st == SPMV_OK || st == SPMV_CANCELLED) {
        spmv_preconditioner_destroy(first);
        return st;
    }
    if (st != SPMV_ERROR_NOT_POSITIVE) {
        p->ctx->error[0] = '\0';
        p->made = first;
        return SPMV_OK;
    }
    spmv_preconditioner_destroy(first);
    return choice_is_auto(p->options.solver) ? st : make(p, "none", a);
}

spmv_status eigen_make_precond(struct eigen_problem *p)
{
    spmv_status st = SPMV_OK;
    struct equivalent e = {.row_ptr = NULL};
    const spmv_csr *a = &p->a.a;
    spmv_preconditioner_info info;
    const char *const name = p->options.precond;
    if (p->options.own_precond != NULL) {
        p->precond = p->options.own_precond;
        if (precond_rows(p->precond) != p->n * p->parts || precond_type(p->precond) != type_part(p->type))
            return context_fail(p->ctx, SPMV_ERROR_SIZE,
                                "%s: the preconditioner has %lld rows of type %s, the matrix %lld of %s", p->call,
                                (long long)precond_rows(p->precond), spmv_type_name(precond_type(p->precond)),
                                (long long)(p->n * p->parts), spmv_type_name(type_part(p->type)));
        snprintf(p->why_precond, sizeof p->why_precond, "given by the caller");
        return st;
    }
    if (type_is_complex(p->type) && a->val != NULL && type_is_complex(a->type)) {
        TRY(equivalent_make(p->ctx, a, &e));
        a = &e.a;
    }
    if (choice_is_auto(name)) {
        st = make_auto(p, a);
    } else if (precond_is_unsymmetric(name)) {
        st = context_fail(p->ctx, SPMV_ERROR_UNSUPPORTED,
                          "%s: preconditioner %s is not symmetric: take amg, ic0, fsai or jacobi", p->call, name);
    } else {
        st = make(p, name, a);
    }
    if (st != SPMV_OK)
        goto done;
    TRY(spmv_preconditioner_describe(p->made, &info, sizeof info));
    if (strcmp(info.name, "amg") == 0 && info.levels == 1 && info.fallen > 0) {
        /* of one level, amg is an inverse that is 0 in a row: no vector would ever change there */
        spmv_preconditioner_destroy(p->made);
        p->made = NULL;
        TRY(make(p, "jacobi", a));
        p->precond = p->made;
        snprintf(p->why_precond, sizeof p->why_precond, "amg of so small a singular matrix is not definite");
        goto done;
    }
    p->precond = p->made;
    snprintf(p->why_precond, sizeof p->why_precond, "%s",
             choice_is_auto(name) && strcmp(info.name, "amg") == 0 ? "the smallest eigenvectors are smooth" : info.why);
done:
    equivalent_free(&e);
    return st;
}

static spmv_status open_for(struct eigen_problem *p, struct eigen_preconditioning *t, int columns)
{
    spmv_status st = SPMV_OK;
    if (precond_takes_columns(p->precond) && columns > 1) {
        if (t->opened == columns)
            return st;
        precond_columns_close(&t->columns);
        t->opened = 0;
        st = precond_columns_open(p->precond, columns, &t->columns);
        if (st == SPMV_OK)
            t->opened = columns;
        if (st != SPMV_ERROR_UNSUPPORTED && st != SPMV_ERROR_MEMORY)
            return st;
        p->ctx->error[0] = '\0';
        st = SPMV_OK;
    }
    if (t->in == NULL) {
        t->bytes = p->n * p->parts * real_bytes(type_part(p->type));
        TRY(context_lend(p->ctx, t->bytes, &t->in));
        TRY(context_lend(p->ctx, t->bytes, &t->out));
    }
done:
    return st;
}

/* One vector after the other. */
static spmv_status one_by_one(struct eigen_problem *p, const struct eigen_vectors *v, struct eigen_preconditioning *t,
                              const struct block_residuals *r, const double *sizes, struct eigen_block w)
{
    spmv_status st = SPMV_OK;
    const spmv_type part = type_part(p->type);
    const bool identity = precond_is_identity(p->precond);
    for (int c = 0; c < w.columns; c++) {
        struct block_residuals one = *r;
        const int which = r->which != NULL ? r->which[c] : c;
        one.which = &which;
        one.count = 1;
        TRY(block_send(v, &one, &sizes[c], part, t->in, 1));
        if (!identity)
            TRY(spmv_preconditioner_apply(p->precond, t->in, t->out));
        TRY(block_receive(v, part, identity ? t->in : t->out, 1, &sizes[c], block_part(w, p->type, c, 1)));
    }
done:
    return st;
}

spmv_status eigen_precondition(struct eigen_problem *p, const struct eigen_vectors *v, struct eigen_preconditioning *t,
                               const struct block_residuals *r, const double *sizes, struct eigen_block w)
{
    spmv_status st = SPMV_OK;
    double *back = NULL;
    TRY(open_for(p, t, w.columns));
    if (t->opened == 0)
        return one_by_one(p, v, t, r, sizes, w);
    TRY(host_alloc(p->ctx, w.columns * (int64_t)sizeof *back, "sizes", (void **)&back));
    for (int c = 0; c < w.columns; c++)
        back[c] = sizes[c] * t->columns.factor;
    TRY(block_send(v, r, sizes, t->columns.type, t->columns.in, t->columns.stride));
    TRY(precond_columns_run(&t->columns));
    TRY(block_receive(v, t->columns.type, t->columns.out, t->columns.stride, back, w));
done:
    host_free(back);
    return st;
}

void eigen_preconditioning_close(struct eigen_problem *p, struct eigen_preconditioning *t)
{
    precond_columns_close(&t->columns);
    context_take_back(p->ctx, t->in);
    context_take_back(p->ctx, t->out);
    *t = (struct eigen_preconditioning){.opened = 0};
}

/* ------------------------------------------------------------- tolerances and bases */

double eigen_tolerance(const struct eigen_problem *p, double value)
{
    return fmax(p->rtol * fabs(value), 64 * p->unit * p->a.norm);
}

spmv_status eigen_report(struct eigen_problem *p, int64_t iteration)
{
    if (p->options.on_iteration != NULL &&
        p->options.on_iteration(iteration, p->pairs, p->values, p->residuals, p->options.user) != 0)
        return context_fail(p->ctx, SPMV_CANCELLED, "%s: cancelled by the callback after %lld iterations", p->call,
                            (long long)iteration);
    return context_poll(p->ctx, "eigenvalues", p->a.a.nnz * p->block);
}

spmv_status eigen_orthonormalise(struct eigen_problem *p, const struct eigen_vectors *v, struct eigen_block x,
                                 struct eigen_block mx)
{
    enum { ROUNDS = 6 };
    spmv_status st = SPMV_OK;
    const int k = x.columns, parts = p->parts;
    double *gram = NULL, *to = NULL, least = 0;
    TRY(host_alloc(p->ctx, (int64_t)k * k * parts * 8, "a Gram matrix", (void **)&gram));
    TRY(host_alloc(p->ctx, (int64_t)k * k * parts * 8, "a Gram matrix", (void **)&to));
    for (int round = 0;; round++) {
        struct small c = small_of(parts, k, k, to);
        int rank = 0;
        if (p->has_mass)
            TRY(eigen_multiply(p, &p->mass, x, mx));
        TRY(block_gram(v, x, p->has_mass ? mx : x, NULL, gram, NULL));
        for (int j = 0; j < k && p->has_mass; j++)
            if (gram[((int64_t)j * k + j) * parts] < 0) {
                st = context_fail(p->ctx, SPMV_ERROR_NOT_POSITIVE,
                                  "%s: the mass matrix is not positive definite: x'M x = %.3g for a vector x", p->call,
                                  gram[((int64_t)j * k + j) * parts]);
                goto done;
            }
        TRY(small_orthonormalise(p->ctx, small_of(parts, k, k, gram), 4 * k * p->unit, &c, &rank, &least));
        TRY(block_combine(v, x, to, block_part(x, p->type, 0, rank)));
        if (rank < k) {
            if (round == ROUNDS) {
                st = context_fail(p->ctx, SPMV_ERROR_STAGNATION, "%s: vectors stay dependent", p->call);
                goto done;
            }
            TRY(block_random(v, block_part(x, p->type, rank, k - rank), (uint64_t)round + 77));
        } else if (least > 0.5 || (round >= 1 && least > sqrt(p->unit)) || round == ROUNDS) {
            break;
        }
    }
    if (p->has_mass)
        TRY(eigen_multiply(p, &p->mass, x, mx));
done:
    host_free_all(gram, to);
    return st;
}

/* ------------------------------------------------------------- the order of values */

double eigen_rank(const struct eigen_problem *p, double value)
{
    switch (p->options.which) {
    case SPMV_EIGEN_LARGEST:
        return -value;
    case SPMV_EIGEN_MAGNITUDE:
        return -fabs(value);
    case SPMV_EIGEN_NEAR:
        return fabs(value - p->options.shift);
    default:
        return value;
    }
}

int eigen_by_rank(const void *a, const void *b)
{
    const struct eigen_ranked *const x = a, *const y = b;
    return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : x->at - y->at;
}
