/* Conjugate gradients, rung 1: the textbook method, one library call for each line of it, on every
 * backend, with every preconditioner, for any number of right-hand sides.
 *
 * Idea:       minimise the energy norm of the error along mutually conjugate directions.
 * Work:       a step: one product with A, two dot products, three vector updates.
 * Launches:   9 a step on CUDA, without a preconditioner.
 * Bytes:      vector passes read or written a step, besides the product with its p'q: 3 (x) + 3 (r)
 *             + 1 (r'r) + 3 (p) = 10. A preconditioner adds its own, and 2 (r'z). The next rungs
 *             save passes, launches and the wait.
 * Wins when:  no other rung supports the solve.
 * Source:     Hestenes and Stiefel 1952; Y. Saad, "Iterative Methods for Sparse Linear Systems",
 *             2nd ed., algorithms 6.18 and 9.1.
 *
 * Several right-hand sides are independent recurrences with one product for all. Each vector is
 * stored column after column. Only p and q = A p have the layout of the plan. Scattering and
 * gathering them adds 2 x 2 passes and those of an index for each column, and p'q a dot product of
 * 2. A column that has stopped is not changed. One call divides the scalars of all columns; those
 * of stopped columns have no meaning.
 *
 * Complex vectors (one right-hand side) are treated as real ones of twice the length: with a
 * Hermitian A, p'A p and r'r are real, so alpha and beta are.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>

#include "solvers/cg/cg_internal.h"

/* The scalars of the recurrence, in the context's memory, one for each column. RR, PQ and RZ are
 * contiguous and read together. */
enum scalar { RR, PQ, RZ, ALPHA, MINUS_ALPHA, BETA, RHO_NEW, SCALARS };

struct textbook {
    void *x, *r, *p, *q, *z; /* column after column, a stride apart; z = M^-1 r, NULL without M */
    int64_t stride;
    void *scalars;
    void *memory;   /* of the vectors that are its own */
    double *values; /* host memory: RR, PQ, RZ */
};

/* Real numbers in a column. */
static int64_t length(const struct krylov *s)
{
    return s->count / s->columns;
}

static spmv_status prepare(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    enum { APART = 32 }; /* alignment of each column, as that of separate memory */
    const int64_t size = (int64_t)spmv_type_size(s->part), k = s->columns;
    const bool several = k > 1;
    struct textbook *own = NULL;
    TRY(host_alloc(s->ctx, sizeof *own, "conjugate gradients", &cg->state));
    own = cg->state;
    *own = (struct textbook){.x = s->x, .r = s->r, .p = cg->p, .q = s->q, .stride = length(s)};
    if (several)
        own->stride = ceil_divide(own->stride, APART) * APART;
    TRY(host_alloc(s->ctx, 3 * k * (int64_t)sizeof *own->values, "conjugate gradients", (void **)&own->values));
    TRY(context_lend(s->ctx, SCALARS * k * size, &own->scalars));
    void **const vectors[] = {&own->z, &own->x, &own->r, &own->p, &own->q};
    const int begin = s->precond != NULL ? 0 : 1, end = several ? 5 : 1;
    if (begin < end)
        TRY(context_lend(s->ctx, max_i64(1, (end - begin) * k * own->stride) * size, &own->memory));
    for (int i = begin; i < end; i++)
        *vectors[i] = (char *)own->memory + (i - begin) * k * own->stride * size;
    if (several) { /* also for columns that never run; all bits 0, also as floats */
        TRY(spmv_map_index(s->ctx, s->part, &(const double){0}, NULL, own->scalars, SCALARS * k));
        TRY(spmv_map_index(s->ctx, s->part, &(const double){0}, NULL, cg->p, s->count));
    }
done:
    return st;
}

static void release(struct cg *cg)
{
    const struct textbook *own = cg->state;
    context_take_back(cg->s.ctx, own->memory);
    context_take_back(cg->s.ctx, own->scalars);
    host_free(own->values);
}

static void *column_of(const struct cg *cg, void *vectors, int v)
{
    const struct textbook *own = cg->state;
    return (char *)vectors + (size_t)(v * own->stride) * spmv_type_size(cg->s.part);
}

static void *scalar_of(const struct cg *cg, enum scalar scalar, int v)
{
    const struct textbook *own = cg->state;
    return (char *)own->scalars + (size_t)((int)scalar * cg->s.columns + v) * spmv_type_size(cg->s.part);
}

static bool runs(const struct cg *cg, int v)
{
    return cg->s.column[v].stop == COLUMN_RUNS;
}

static bool any_runs(const struct cg *cg)
{
    bool any = false;
    for (int v = 0; v < cg->s.columns; v++)
        any = any || runs(cg, v);
    return any;
}

/* The numerator of alpha and beta: r'z, which is r'r without a preconditioner. */
static enum scalar rho_of(const struct cg *cg)
{
    return cg->s.precond != NULL ? RZ : RR;
}

/* rho = r'z; with a preconditioner also rr = r'r and z = M^-1 r. */
static spmv_status squares(const struct cg *cg, enum scalar rho)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    const struct textbook *own = cg->state;
    for (int v = 0; v < s->columns; v++) {
        const void *r = column_of(cg, own->r, v);
        if (!runs(cg, v))
            continue;
        TRY(krylov_dot(s, r, r, scalar_of(cg, own->z != NULL ? RR : rho, v)));
        if (own->z == NULL)
            continue;
        TRY(cg_precondition(cg, r, column_of(cg, own->z, v)));
        TRY(krylov_dot(s, r, column_of(cg, own->z, v), scalar_of(cg, rho, v)));
    }
done:
    return st;
}

/* p = z, rho = r'z: the start of the recurrence, and of each restart. */
static spmv_status start(const struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    const struct textbook *own = cg->state;
    for (int v = 0; v < s->columns && s->columns > 1; v++)
        if (runs(cg, v)) {
            TRY(krylov_take(s, s->x, v, column_of(cg, own->x, v)));
            TRY(krylov_take(s, s->r, v, column_of(cg, own->r, v)));
        }
    TRY(squares(cg, rho_of(cg)));
    for (int v = 0; v < s->columns && !cg->continues; v++)
        if (runs(cg, v))
            TRY(spmv_map(s->ctx, SPMV_MAP_COPY, s->part, column_of(cg, own->z != NULL ? own->z : own->r, v),
                         column_of(cg, own->p, v), length(s)));
done:
    return st;
}

/* q = A p, pq = p'q */
static spmv_status multiply(const struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    const struct textbook *own = cg->state;
    if (type_is_complex(s->type)) { /* Re p'q, and p'A p is real */
        TRY(spmv_apply(s->plan, NULL, own->p, NULL, own->q));
        return spmv_dot(s->ctx, s->part, own->p, own->q, scalar_of(cg, PQ, 0), length(s));
    }
    if (s->columns == 1)
        return cg_multiply(cg, own->p, own->q, scalar_of(cg, PQ, 0));
    for (int v = 0; v < s->columns; v++)
        if (runs(cg, v))
            TRY(krylov_give(s, column_of(cg, own->p, v), v, cg->p));
    TRY(spmv_apply(s->plan, NULL, cg->p, NULL, s->q));
    for (int v = 0; v < s->columns; v++)
        if (runs(cg, v)) {
            TRY(krylov_take(s, s->q, v, column_of(cg, own->q, v)));
            TRY(spmv_dot(s->ctx, s->part, column_of(cg, own->p, v), column_of(cg, own->q, v), scalar_of(cg, PQ, v),
                         length(s)));
        }
done:
    return st;
}

/* q = A p, pq = p'q, and reads all sums. One wait a step suffices, at the cost of one product after
 * the last step. stepped: after a step, not at the start. */
static spmv_status look(const struct cg *cg, bool stepped)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    const struct textbook *own = cg->state;
    const double *values = own->values;
    const int k = s->columns;
    TRY(multiply(cg));
    TRY(krylov_read(s, own->scalars, (own->z != NULL ? 3 : 2) * k, own->values));
    for (int v = 0; v < k; v++)
        if (runs(cg, v)) {
            struct cg_column *c = &cg->column[v];
            const double rz = values[(own->z != NULL ? RZ : RR) * k + v];
            if (stepped)
                cg_error_step(&c->error, c->rz, c->pq, rz);
            c->rr = values[RR * k + v];
            c->pq = values[PQ * k + v];
            c->rz = rz;
            s->column[v].residual = sqrt(c->rr);
        }
done:
    return st;
}

/* One step of the running columns; q = A p and pq = p'q are given. */
static spmv_status step(const struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    const struct textbook *own = cg->state;
    spmv_context *ctx = s->ctx;
    const int k = s->columns;
    void *z = own->z != NULL ? own->z : own->r, *rho = scalar_of(cg, rho_of(cg), 0);
    /* alpha = rho / pq */
    TRY(spmv_map_divide(ctx, s->part, rho, scalar_of(cg, PQ, 0), scalar_of(cg, ALPHA, 0), k));
    TRY(spmv_map(ctx, SPMV_MAP_NEG, s->part, scalar_of(cg, ALPHA, 0), scalar_of(cg, MINUS_ALPHA, 0), k));
    for (int v = 0; v < k; v++)
        if (runs(cg, v)) {
            /* x = x + alpha p */
            TRY(spmv_map_axpby(ctx, s->part, scalar_of(cg, ALPHA, v), column_of(cg, own->p, v), NULL,
                               column_of(cg, own->x, v), length(s)));
            /* r = r - alpha q */
            TRY(spmv_map_axpby(ctx, s->part, scalar_of(cg, MINUS_ALPHA, v), column_of(cg, own->q, v), NULL,
                               column_of(cg, own->r, v), length(s)));
            s->column[v].iterations++;
        }
    /* z = M^-1 r, rho_new = r'z */
    TRY(squares(cg, RHO_NEW));
    /* beta = rho_new / rho */
    TRY(spmv_map_divide(ctx, s->part, scalar_of(cg, RHO_NEW, 0), rho, scalar_of(cg, BETA, 0), k));
    for (int v = 0; v < k; v++)
        if (runs(cg, v)) /* p = z + beta p */
            TRY(spmv_map_axpby(ctx, s->part, NULL, column_of(cg, z, v), scalar_of(cg, BETA, v),
                               column_of(cg, own->p, v), length(s)));
    /* rho = rho_new */
    TRY(spmv_map(ctx, SPMV_MAP_COPY, s->part, scalar_of(cg, RHO_NEW, 0), rho, k));
done:
    return st;
}

/* Stops the columns that make no further step. */
static void stop_columns(const struct cg *cg)
{
    for (int v = 0; v < cg->s.columns; v++) {
        struct krylov_column *c = &cg->s.column[v];
        if (!runs(cg, v))
            continue;
        if (isfinite(c->residual) && c->residual <= c->enough)
            c->stop = COLUMN_DONE;
        else if (cg_is_broken(&cg->column[v]) || cg_has_diverged(c))
            c->stop = COLUMN_BROKEN;
        else if (c->iterations >= c->limit)
            c->stop = COLUMN_LIMIT;
    }
}

static spmv_status run(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    struct krylov *s = &cg->s;
    const struct textbook *own = cg->state;
    TRY(start(cg));
    TRY(look(cg, false));
    for (int v = 0; v < s->columns; v++)
        if (runs(cg, v)) {
            cg_error_begin(&cg->column[v].error);
            s->column[v].start_residual = s->column[v].residual;
            s->column[v].enough = krylov_enough(s->type, &s->column[v]);
        }
    if (s->iterations == 0) /* a continued run has been reported already */
        krylov_tell_running(s);
    while (s->told == SPMV_OK) {
        stop_columns(cg);
        if (!any_runs(cg))
            break;
        TRY(step(cg));
        s->iterations++;
        TRY(look(cg, true));
        krylov_tell_running(s);
    }
done:
    for (int v = 0; v < s->columns && s->columns > 1 && (st == SPMV_OK || spmv_status_class(st) >= 7); v++)
        if (krylov_is_open(s, v)) {
            const spmv_status given = krylov_give(s, column_of(cg, own->x, v), v, s->x);
            st = given != SPMV_OK ? given : st;
        }
    return st;
}

const struct cg_rung cg_textbook = {.name = "textbook",
                                    .why = "runs on every backend, with every plan and preconditioner",
                                    .backends = ~0u,
                                    .least_columns = 1,
                                    .most_columns = CG_ANY_COLUMNS,
                                    .prepare = prepare,
                                    .run = run,
                                    .release = release,
                                    .shows_x = true,
                                    .for_ranks = true};
