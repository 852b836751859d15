/* Conjugate gradients, rung 1: the textbook method for one right-hand side, one library call for each
 * line of it, on every backend, with every preconditioner. Several: cg_1_textbook_columns.c.
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
 * Without a preconditioner M, z is r and rho = r'z is rr = r'r.
 *
 * Complex vectors are treated as real ones of twice the length: with a Hermitian A, p'A p and r'r are
 * real, so alpha and beta are.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>

#include "solvers/cg/cg_internal.h"

/* The scalars of the recurrence, in the context's memory. The host reads the first three, or without
 * M the first two. */
enum scalar { RR, PQ, RHO, ALPHA, MINUS_ALPHA, BETA, RHO_NEW, SCALARS };

struct textbook {
    void *z; /* M^-1 r, or r */
    void *scalars;
    void *memory; /* of z, with M */
};

static spmv_status prepare(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    const int64_t size = (int64_t)spmv_type_size(s->part);
    struct textbook *own = NULL;
    TRY(host_alloc(s->ctx, sizeof *own, "conjugate gradients", &cg->state));
    own = cg->state;
    *own = (struct textbook){.z = s->r};
    TRY(context_lend(s->ctx, SCALARS * size, &own->scalars));
    if (s->precond != NULL) {
        TRY(context_lend(s->ctx, max_i64(1, s->count) * size, &own->memory));
        own->z = own->memory;
    }
done:
    return st;
}

static void release(struct cg *cg)
{
    const struct textbook *own = cg->state;
    context_take_back(cg->s.ctx, own->memory);
    context_take_back(cg->s.ctx, own->scalars);
}

/* ------------------------------------------------------------- lines of the recurrence */

static int place_of(const struct cg *cg, enum scalar scalar)
{
    return scalar == RHO && cg->s.precond == NULL ? RR : scalar;
}

static void *at(const struct cg *cg, enum scalar scalar)
{
    const struct textbook *own = cg->state;
    return (char *)own->scalars + (size_t)place_of(cg, scalar) * spmv_type_size(cg->s.part);
}

/* to = a / b */
static spmv_status divide(const struct cg *cg, enum scalar a, enum scalar b, enum scalar to)
{
    return spmv_map_divide(cg->s.ctx, cg->s.part, at(cg, a), at(cg, b), at(cg, to), 1);
}

/* to = function(a) */
static spmv_status set(const struct cg *cg, spmv_function function, enum scalar a, enum scalar to)
{
    return spmv_map(cg->s.ctx, function, cg->s.part, at(cg, a), at(cg, to), 1);
}

/* to = u'v */
static spmv_status dot(const struct cg *cg, const void *u, const void *v, enum scalar to)
{
    return krylov_dot(&cg->s, u, v, at(cg, to));
}

/* v = v + a u */
static spmv_status axpy(const struct cg *cg, enum scalar a, const void *u, void *v)
{
    return spmv_map_axpby(cg->s.ctx, cg->s.part, at(cg, a), u, NULL, v, cg->s.count);
}

/* v = u + b v */
static spmv_status xpby(const struct cg *cg, const void *u, enum scalar b, void *v)
{
    return spmv_map_axpby(cg->s.ctx, cg->s.part, NULL, u, at(cg, b), v, cg->s.count);
}

/* z = M^-1 r, rr = r'r. Without M nothing: z is r, and rho will be rr. */
static spmv_status precondition(const struct cg *cg, const void *r, void *z)
{
    spmv_status st = SPMV_OK;
    if (cg->s.precond == NULL)
        return SPMV_OK;
    TRY(dot(cg, r, r, RR));
    TRY(cg_precondition(cg, r, z));
done:
    return st;
}

/* Reads rr, pq and rho: the only wait of a step. The price is one product after the last step. */
static spmv_status read_sums(const struct cg *cg, bool stepped)
{
    spmv_status st = SPMV_OK;
    const struct textbook *own = cg->state;
    double sums[3];
    TRY(krylov_read(&cg->s, own->scalars, cg->s.precond != NULL ? 3 : 2, sums));
    cg_take_sums(cg, 0, sums[RR], sums[PQ], sums[place_of(cg, RHO)], stepped);
done:
    return st;
}

/* ------------------------------------------------------------- the recurrence */

static spmv_status run(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    struct krylov *s = &cg->s;
    void *const x = s->x, *const r = s->r, *const p = cg->p, *const q = s->q;
    void *const z = ((const struct textbook *)cg->state)->z;
    TRY(precondition(cg, r, z)); /* z = M^-1 r */
    TRY(dot(cg, r, z, RHO));     /* rho = r'z */
    if (!cg->continues)          /* p = z */
        TRY(spmv_map(s->ctx, SPMV_MAP_COPY, s->part, z, p, s->count));
    TRY(cg_multiply(cg, p, q, at(cg, PQ))); /* q = A p, pq = p'q */
    TRY(read_sums(cg, false));
    if (s->iterations == 0) /* a continued run has been reported already */
        krylov_tell_running(s);
    while (s->told == SPMV_OK && cg_goes_on(cg, 0)) {
        TRY(divide(cg, RHO, PQ, ALPHA));                /* alpha = rho / pq */
        TRY(set(cg, SPMV_MAP_NEG, ALPHA, MINUS_ALPHA)); /* -alpha */
        TRY(axpy(cg, ALPHA, p, x));                     /* x = x + alpha p */
        TRY(axpy(cg, MINUS_ALPHA, q, r));               /* r = r - alpha q */
        s->column->iterations++;
        TRY(precondition(cg, r, z));               /* z = M^-1 r */
        TRY(dot(cg, r, z, RHO_NEW));               /* rho_new = r'z */
        TRY(divide(cg, RHO_NEW, RHO, BETA));       /* beta = rho_new / rho */
        TRY(xpby(cg, z, BETA, p));                 /* p = z + beta p */
        TRY(set(cg, SPMV_MAP_COPY, RHO_NEW, RHO)); /* rho = rho_new */
        s->iterations++;
        TRY(cg_multiply(cg, p, q, at(cg, PQ))); /* q = A p, pq = p'q */
        TRY(read_sums(cg, true));
        krylov_tell_running(s);
    }
done:
    return st;
}

const struct cg_rung cg_textbook = {.name = "textbook",
                                    .why = "runs on every backend, with every plan and preconditioner",
                                    .backends = ~0u,
                                    .least_columns = 1,
                                    .most_columns = 1,
                                    .prepare = prepare,
                                    .run = run,
                                    .release = release,
                                    .shows_x = true,
                                    .for_ranks = true};
