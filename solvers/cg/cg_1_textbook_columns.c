/* Conjugate gradients, rung 1, for several right-hand sides: independent recurrences, each that of
 * cg_1_textbook.c, with one product for all.
 *
 * Each vector is stored column after column. Only p and q = A p have the layout of the plan.
 * Scattering and gathering them adds 2 x 2 passes and those of an index for each column, and p'q a
 * dot product of 2. A column that has stopped is not changed. One call divides the scalars of all
 * columns; those of stopped columns have no meaning.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>

#include "solvers/cg/cg_internal.h"

/* The scalars of the recurrence, in the context's memory, one for each column. RR, PQ and RZ are
 * contiguous and read together. */
enum scalar { RR, PQ, RZ, ALPHA, MINUS_ALPHA, BETA, RHO_NEW, SCALARS };

struct columns {
    void *x, *r, *p, *q, *z; /* column after column, a stride apart; z = M^-1 r, or r without M */
    int64_t stride;
    enum scalar rho; /* the place of r'z: without M that of r'r */
    void *scalars;
    void *memory;   /* of the vectors */
    double *values; /* host memory: RR, PQ, RZ */
};

static spmv_status prepare(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    enum { APART = 32 }; /* alignment of each column, as that of separate memory */
    const int64_t size = (int64_t)spmv_type_size(s->type), k = s->columns;
    const bool plain = s->precond == NULL;
    struct columns *own = NULL;
    TRY(host_alloc(s->ctx, sizeof *own, "conjugate gradients", &cg->state));
    own = cg->state;
    *own = (struct columns){.stride = ceil_divide(s->n, APART) * APART, .rho = plain ? RR : RZ};
    TRY(host_alloc(s->ctx, 3 * k * (int64_t)sizeof *own->values, "conjugate gradients", (void **)&own->values));
    TRY(context_lend(s->ctx, SCALARS * k * size, &own->scalars));
    void **const vectors[] = {&own->x, &own->r, &own->p, &own->q, &own->z};
    const int count = plain ? 4 : 5;
    TRY(context_lend(s->ctx, max_i64(1, count * k * own->stride) * size, &own->memory));
    for (int i = 0; i < count; i++)
        *vectors[i] = (char *)own->memory + i * k * own->stride * size;
    if (plain)
        own->z = own->r;
    /* also for columns that never run; all bits 0, also as floats */
    TRY(spmv_map_index(s->ctx, s->type, &(const double){0}, NULL, own->scalars, SCALARS * k));
    TRY(spmv_map_index(s->ctx, s->type, &(const double){0}, NULL, cg->p, s->count));
done:
    return st;
}

static void release(struct cg *cg)
{
    const struct columns *own = cg->state;
    context_take_back(cg->s.ctx, own->memory);
    context_take_back(cg->s.ctx, own->scalars);
    host_free(own->values);
}

static void *column_of(const struct cg *cg, void *vectors, int v)
{
    const struct columns *own = cg->state;
    return (char *)vectors + (size_t)(v * own->stride) * spmv_type_size(cg->s.type);
}

static void *scalar_of(const struct cg *cg, enum scalar scalar, int v)
{
    const struct columns *own = cg->state;
    return (char *)own->scalars + (size_t)((int)scalar * cg->s.columns + v) * spmv_type_size(cg->s.type);
}

/* z = M^-1 r, rho = r'z; with M also rr = r'r. */
static spmv_status squares(const struct cg *cg, enum scalar rho)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    const struct columns *own = cg->state;
    for (int v = 0; v < s->columns; v++) {
        const void *r = column_of(cg, own->r, v);
        void *z = column_of(cg, own->z, v);
        if (!cg_runs(cg, v))
            continue;
        if (z != r) {
            TRY(krylov_dot(s, r, r, scalar_of(cg, RR, v)));
            TRY(cg_precondition(cg, r, z));
        }
        TRY(krylov_dot(s, r, z, scalar_of(cg, rho, v)));
    }
done:
    return st;
}

/* p = z, rho = r'z: the start of the recurrence, and of each restart. */
static spmv_status start(const struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    const struct columns *own = cg->state;
    for (int v = 0; v < s->columns; v++)
        if (cg_runs(cg, v)) {
            TRY(krylov_take(s, s->x, v, column_of(cg, own->x, v)));
            TRY(krylov_take(s, s->r, v, column_of(cg, own->r, v)));
        }
    TRY(squares(cg, own->rho));
    for (int v = 0; v < s->columns && !cg->continues; v++)
        if (cg_runs(cg, v))
            TRY(spmv_map(s->ctx, SPMV_MAP_COPY, s->type, column_of(cg, own->z, v), column_of(cg, own->p, v), s->n));
done:
    return st;
}

/* q = A p, pq = p'q */
static spmv_status multiply(const struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    const struct columns *own = cg->state;
    for (int v = 0; v < s->columns; v++)
        if (cg_runs(cg, v))
            TRY(krylov_give(s, column_of(cg, own->p, v), v, cg->p));
    TRY(spmv_apply(s->plan, NULL, cg->p, NULL, s->q));
    for (int v = 0; v < s->columns; v++)
        if (cg_runs(cg, v)) {
            void *p = column_of(cg, own->p, v), *q = column_of(cg, own->q, v);
            TRY(krylov_take(s, s->q, v, q));
            TRY(krylov_dot(s, p, q, scalar_of(cg, PQ, v)));
        }
done:
    return st;
}

/* q = A p, pq = p'q, and reads all sums. */
static spmv_status look(const struct cg *cg, bool stepped)
{
    spmv_status st = SPMV_OK;
    const struct columns *own = cg->state;
    const double *values = own->values;
    const int k = cg->s.columns;
    TRY(multiply(cg));
    TRY(krylov_read(&cg->s, own->scalars, (own->rho == RZ ? 3 : 2) * k, own->values));
    for (int v = 0; v < k; v++)
        if (cg_runs(cg, v))
            cg_take_sums(cg, v, values[RR * k + v], values[PQ * k + v], values[(int)own->rho * k + v], stepped);
done:
    return st;
}

/* One step of the running columns; q = A p and pq = p'q are given. */
static spmv_status step(const struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    const struct columns *own = cg->state;
    spmv_context *ctx = s->ctx;
    const int k = s->columns;
    void *rho = scalar_of(cg, own->rho, 0);
    /* alpha = rho / pq */
    TRY(spmv_map_divide(ctx, s->type, rho, scalar_of(cg, PQ, 0), scalar_of(cg, ALPHA, 0), k));
    TRY(spmv_map(ctx, SPMV_MAP_NEG, s->type, scalar_of(cg, ALPHA, 0), scalar_of(cg, MINUS_ALPHA, 0), k));
    for (int v = 0; v < k; v++)
        if (cg_runs(cg, v)) {
            void *p = column_of(cg, own->p, v), *x = column_of(cg, own->x, v);
            void *q = column_of(cg, own->q, v), *r = column_of(cg, own->r, v);
            TRY(spmv_map_axpby(ctx, s->type, scalar_of(cg, ALPHA, v), p, NULL, x, s->n));       /* x = x + alpha p */
            TRY(spmv_map_axpby(ctx, s->type, scalar_of(cg, MINUS_ALPHA, v), q, NULL, r, s->n)); /* r = r - alpha q */
            s->column[v].iterations++;
        }
    /* z = M^-1 r, rho_new = r'z, beta = rho_new / rho */
    TRY(squares(cg, RHO_NEW));
    TRY(spmv_map_divide(ctx, s->type, scalar_of(cg, RHO_NEW, 0), rho, scalar_of(cg, BETA, 0), k));
    for (int v = 0; v < k; v++)
        if (cg_runs(cg, v)) {
            void *z = column_of(cg, own->z, v), *p = column_of(cg, own->p, v);
            TRY(spmv_map_axpby(ctx, s->type, NULL, z, scalar_of(cg, BETA, v), p, s->n)); /* p = z + beta p */
        }
    /* rho = rho_new */
    TRY(spmv_map(ctx, SPMV_MAP_COPY, s->type, scalar_of(cg, RHO_NEW, 0), rho, k));
done:
    return st;
}

static spmv_status run(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    struct krylov *s = &cg->s;
    const struct columns *own = cg->state;
    TRY(start(cg));
    TRY(look(cg, false));
    if (s->iterations == 0) /* a continued run has been reported already */
        krylov_tell_running(s);
    while (s->told == SPMV_OK && cg_any_goes_on(cg)) {
        TRY(step(cg));
        s->iterations++;
        TRY(look(cg, true));
        krylov_tell_running(s);
    }
done:
    for (int v = 0; v < s->columns && (st == SPMV_OK || spmv_status_class(st) >= 7); v++)
        if (krylov_is_open(s, v)) {
            const spmv_status given = krylov_give(s, column_of(cg, own->x, v), v, s->x);
            st = given != SPMV_OK ? given : st;
        }
    return st;
}

const struct cg_rung cg_textbook_columns = {.name = "textbook",
                                            .why = "runs on every backend, with every plan and preconditioner",
                                            .backends = ~0u,
                                            .least_columns = 2,
                                            .most_columns = CG_ANY_COLUMNS,
                                            .prepare = prepare,
                                            .run = run,
                                            .release = release,
                                            .shows_x = true};
