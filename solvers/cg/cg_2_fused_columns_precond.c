/* Conjugate gradients, rung 2 for several right-hand sides with a preconditioner that takes all of them at once
 * (precond_columns_open: amg): a step of all columns in four passes over vectors.
 *
 * Idea:       vectors are stored by rows, columns side by side, as in the product of several vectors. A step is
 *             1. q = A p for all columns;  p'q
 *             2. r = r - alpha q, r'r, and in = r / size in the type of M
 *             3. M;  r'z
 *             4. x = x + alpha p, p = z + beta p
 *             z stays in M's type and is never stored in that of the vectors. size is a power of two near the norm of
 *             r one step before, so it is known when r is computed; no digit depends on it, but for numbers that
 *             underflow. On ranks it is that of r, as for one right-hand side, and `in` takes a pass of its own.
 * Bytes:      of vectors for each element of f64, with M in f32, besides product and M: p'q: 16; r: 28; r'z: 12; x, p:
 *             36. Rung 1 takes 200, and more in index arrays.
 * Waits:      three a step, for the sums; the scalars are on the host.
 * Changed:    since rung 1, no column is copied, and M reads its matrices once for all columns.
 * Wins when:  M takes all columns at once.
 * Bits:       a column has the same bits whatever the other columns are and however many, if that is so in the product
 *             with A and in M. On ranks they are those of rung 1 for one right-hand side.
 * Source:     Hestenes and Stiefel 1952; Saad 2003, algorithm 9.1. These are k recurrences side by side.
 *
 * A column that has stopped is not written any more. It stays in the products, whose other columns do not depend on
 * it. A step whose residuals are all small enough ends the run before M is applied; on a host M follows, for the
 * estimate of the error.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "product/plan_internal.h"
#include "solvers/cg/cg_internal.h"
#include "solvers/krylov/krylov_columns.h"
#include "solvers/precond/precond_internal.h"

struct columns {
    struct precond_columns m;
    struct columns_job job;
    void *scratch;
    /* host memory, one for each column */
    double *alpha, *beta, *size, *rr, *pq, *rz;
    bool *runs;
};

static spmv_status supports(const struct cg *cg)
{
    struct precond_columns c;
    const spmv_status st = precond_columns_open(cg->s.precond, cg->s.info.vectors, &c);
    precond_columns_close(&c);
    if (st != SPMV_ERROR_UNSUPPORTED && (st != SPMV_ERROR_MEMORY || cg->s.plan->ranks != NULL))
        return st; /* ranks would have to take another rung together */
    return context_fail(cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
                        st == SPMV_ERROR_MEMORY
                            ? "spmv_cg: rung fused: no memory for the preconditioner of all right-hand sides at once"
                            : "spmv_cg: rung fused: the preconditioner is in use by another solve");
}

static spmv_status prepare(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    const int64_t k = s->columns;
    struct columns *own = NULL;
    double *numbers = NULL;
    TRY(host_alloc(s->ctx, sizeof *own, "conjugate gradients", &cg->state));
    own = cg->state;
    *own = (struct columns){.runs = NULL};
    TRY(host_alloc(s->ctx, 6 * k * (int64_t)sizeof *numbers, "conjugate gradients", (void **)&numbers));
    own->alpha = numbers;
    own->beta = numbers + k;
    own->size = numbers + 2 * k;
    own->rr = numbers + 3 * k;
    own->pq = numbers + 4 * k;
    own->rz = numbers + 5 * k;
    for (int64_t i = 0; i < 6 * k; i++)
        numbers[i] = 1;
    TRY(host_alloc(s->ctx, k * (int64_t)sizeof *own->runs, "conjugate gradients", (void **)&own->runs));
    TRY(context_lend(s->ctx, columns_scratch(s->ctx, s->plan->ranks, s->n, s->columns), &own->scratch));
    TRY(precond_columns_open(s->precond, s->columns, &own->m));
    own->job = (struct columns_job){.type = s->type,
                                    .n = s->n,
                                    .columns = s->columns,
                                    .runs = own->runs,
                                    .alpha = own->alpha,
                                    .beta = own->beta,
                                    .size = own->size,
                                    .other = own->m.type,
                                    .stride = own->m.stride,
                                    .factor = own->m.factor,
                                    .in = own->m.in,
                                    .out = own->m.out,
                                    .x = s->x,
                                    .p = cg->p,
                                    .r = s->r,
                                    .q = s->q,
                                    .scratch = own->scratch,
                                    .ranks = s->plan->ranks};
done:
    return st;
}

static void release(struct cg *cg)
{
    struct columns *own = cg->state;
    precond_columns_close(&own->m);
    context_take_back(cg->s.ctx, own->scratch);
    host_free(own->alpha);
    host_free(own->runs);
}

/* One pass of the running columns; sums: where its sums go, or NULL. */
static spmv_status pass(const struct cg *cg, enum columns_pass which, double *sums)
{
    struct columns *own = cg->state;
    own->job.sums = sums;
    for (int v = 0; v < cg->s.columns; v++)
        own->runs[v] = cg_runs(cg, v);
    return columns_run(cg->s.ctx, which, &own->job);
}

/* sums = u'v */
static spmv_status dot(const struct cg *cg, const void *u, const void *v, double *sums)
{
    struct columns *own = cg->state;
    const struct columns_job job = own->job;
    own->job.r = (void *)u;
    own->job.q = v;
    const spmv_status st = pass(cg, COLUMNS_DOT, sums);
    own->job.r = job.r;
    own->job.q = job.q;
    return st;
}

/* size = a power of two near the norm of r. */
static void find_sizes(const struct cg *cg)
{
    struct columns *own = cg->state;
    for (int v = 0; v < cg->s.columns && own->m.divides; v++)
        own->size[v] = cg_runs(cg, v) ? precond_power_of_two(sqrt(own->rr[v])) : 1;
}

/* q = A p, pq = p'q; notes the sums of the running columns. */
static spmv_status look(const struct cg *cg, bool stepped)
{
    spmv_status st = SPMV_OK;
    const struct columns *own = cg->state;
    TRY(spmv_apply(cg->s.plan, NULL, cg->p, NULL, cg->s.q));
    TRY(dot(cg, cg->p, cg->s.q, own->pq));
    for (int v = 0; v < cg->s.columns; v++)
        if (cg_runs(cg, v))
            cg_take_sums(cg, v, own->rr[v], own->pq[v], own->rz[v], stepped);
done:
    return st;
}

/* z = M^-1 r, p = z */
static spmv_status start(const struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct columns *own = cg->state;
    TRY(dot(cg, cg->s.r, cg->s.r, own->rr));
    find_sizes(cg);
    TRY(pass(cg, COLUMNS_NARROW, NULL));
    TRY(precond_columns_run(&own->m));
    TRY(pass(cg, COLUMNS_PRODUCT, own->rz));
    TRY(pass(cg, COLUMNS_FIRST, NULL));
    TRY(look(cg, false));
done:
    return st;
}

/* Whether all residuals of the running columns are small enough. */
static bool all_arrive(const struct cg *cg)
{
    const struct columns *own = cg->state;
    for (int v = 0; v < cg->s.columns; v++)
        if (cg_runs(cg, v) && !(sqrt(own->rr[v]) <= cg->s.column[v].enough))
            return false;
    return true;
}

/* The last step: x = x + alpha p. */
static spmv_status arrive(const struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const struct columns *own = cg->state;
    TRY(pass(cg, COLUMNS_SOLUTION, NULL));
    if (!context_on_device(cg->s.ctx)) {
        TRY(precond_columns_run(&own->m));
        TRY(pass(cg, COLUMNS_PRODUCT, own->rz));
    }
    for (int v = 0; v < cg->s.columns; v++)
        if (cg_runs(cg, v)) {
            struct cg_column *const c = &cg->column[v];
            cg_take_sums(cg, v, own->rr[v], c->pq, own->rz[v], true);
            if (context_on_device(cg->s.ctx))
                c->error = (struct cg_error){.w = 0};
        }
done:
    return st;
}

/* One step of the running columns; q = A p and the sums are given. *arrives: it is the last one. */
static spmv_status step(const struct cg *cg, bool *arrives)
{
    spmv_status st = SPMV_OK;
    struct columns *own = cg->state;
    const bool ranks = cg->s.plan->ranks != NULL;
    find_sizes(cg);
    for (int v = 0; v < cg->s.columns; v++)
        if (cg_runs(cg, v)) {
            own->alpha[v] = cg->column[v].rz / cg->column[v].pq;
            cg->s.column[v].iterations++;
        }
    own->job.in = ranks ? NULL : own->m.in;
    TRY(pass(cg, COLUMNS_RESIDUAL, own->rr));
    own->job.in = own->m.in;
    if (ranks) {
        find_sizes(cg);
        TRY(pass(cg, COLUMNS_NARROW, NULL));
    }
    *arrives = all_arrive(cg);
    if (*arrives)
        return arrive(cg);
    TRY(precond_columns_run(&own->m));
    TRY(pass(cg, COLUMNS_PRODUCT, own->rz));
    for (int v = 0; v < cg->s.columns; v++)
        if (cg_runs(cg, v))
            own->beta[v] = own->rz[v] / cg->column[v].rz;
    TRY(pass(cg, COLUMNS_DIRECTION, NULL));
    TRY(look(cg, true));
done:
    return st;
}

static spmv_status run(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    struct krylov *s = &cg->s;
    bool arrives = false;
    TRY(start(cg));
    if (s->iterations == 0) /* a continued run has been reported already */
        krylov_tell_running(s);
    while (s->told == SPMV_OK && cg_any_goes_on(cg)) {
        TRY(step(cg, &arrives));
        s->iterations++;
        krylov_tell_running(s);
    }
done:
    return st;
}

const struct cg_rung cg_fused_with_columns = {
    .name = "fused",
    .why = "the preconditioner takes all right-hand sides at once, and a step is four passes over vectors",
    .backends = 1u << SPMV_BACKEND_OMP | 1u << SPMV_BACKEND_CUDA,
    .least_columns = 2,
    .most_columns = CG_ANY_COLUMNS,
    .supports = supports,
    .prepare = prepare,
    .run = run,
    .release = release,
    .shows_x = true,
    .for_ranks = true};
