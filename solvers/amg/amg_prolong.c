/* Interpolation from aggregates. With the near-null-space vector b (ones on all but the first level):
 *
 *   P0       tentative: column j is b in aggregate j, else 0
 *   P        smoothed: (I - OMEGA D^-1 F) P0, where D has the row sums of |f_ij|: the eigenvalues of D^-1 F
 *            are at most 1. With several near-null-space vectors, (I - omega D^-1 A) P0, where D is the
 *            diagonal of A, and omega = OMEGA / the bound of the eigenvalues of D^-1 A.
 *
 * Source: P. Vanek, J. Mandel, M. Brezina, "Algebraic multigrid by smoothed aggregation for second and
 * fourth order elliptic problems", Computing 56, 1996.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/amg/amg_internal.h"

/* 4/3 takes one iteration more on most grids. */
static const double OMEGA = 1.5;

/* On coarser levels, with one vector: 1.5 takes one iteration more on most grids and meshes. */
static const double COARSE_OMEGA = 1.7;

static struct amg_prolongation arguments_of(const struct amg_level *l, int64_t *counts)
{
    const struct amg_prolongation s = {.f = amg_rows_of(&l->f),
                                       .p0 = amg_rows_of(&l->p0),
                                       .p = amg_rows_of(&l->p),
                                       .nnz = l->a.nnz,
                                       .aggregate = l->aggregate,
                                       .near_null = l->near_null,
                                       .inverse = l->f_inverse,
                                       .omega = l->omega,
                                       .count = counts};
    return s;
}

spmv_status amg_find_tentative(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t aggregates)
{
    spmv_status st = SPMV_OK;
    struct amg_prolongation s = arguments_of(l, counts);
    TRY(run_tentative_count(amg, &s, l->rows));
    TRY(amg_new_rows(amg, &l->pool, l->rows, counts, aggregates, l->rows, &l->p0, &l->p0_values));
    s.p0 = amg_rows_of(&l->p0);
    TRY(run_tentative_fill(amg, &s, l->rows));
done:
    return st;
}

/* The values of P. step: if there is no plan for F P0. */
static spmv_status find_values(struct amg *amg, struct amg_level *l, enum amg_step step)
{
    l->omega = l->nulls > 0 ? OMEGA / l->bound : l == amg->level ? OMEGA : COARSE_OMEGA;
    const struct amg_prolongation s = arguments_of(l, NULL);
    if (l->fp0 == NULL)
        return amg_run_polled(amg, step, &s, l->rows);
    const spmv_status st = spmv_spgemm_values(l->fp0, l->f.val, l->p0.val, l->p_values);
    return st != SPMV_OK ? st : run_tentative_smooth(amg, &s, l->rows);
}

/* A GPU has a row of F in shared memory and searches there. */
spmv_status amg_prolong_values(struct amg *amg, struct amg_level *l)
{
    return find_values(amg, l, context_on_device(amg->ctx) ? AMG_PROLONG_FILL : AMG_PROLONG_VALUES);
}

spmv_status amg_smooth_tentative(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    bool made = false;
    if (l->nulls > 0 && l->a.nnz > 0 && context_on_device(amg->ctx) && !amg->updates)
        TRY(amg_block_smooth(amg, l, &made));
    if (made) {
        l->omega = OMEGA / l->bound;
        const struct amg_prolongation s = arguments_of(l, NULL);
        return run_tentative_smooth(amg, &s, l->rows);
    }
    TRY(spmv_spgemm_plan_create(amg->ctx, &l->f, &l->p0, NULL, &l->fp0));
    spmv_spgemm_pattern(l->fp0, &l->p);
    TRY(amg_alloc_vector(amg, &l->pool, l->p.nnz, &l->p_values));
    l->p = amg_with_values(amg, l->p, l->p_values);
    TRY(find_values(amg, l, AMG_PROLONG_FILL));
done:
    return st;
}

/* In one step, or by way of P0 if a row of F is too long for it. */
spmv_status amg_prolong(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t aggregates)
{
    spmv_status st = SPMV_OK;
    const struct amg_prolongation s = arguments_of(l, counts);
    TRY(run_prolong_count(amg, &s, l->rows));
    TRY(amg_new_rows(amg, &l->pool, l->rows, counts, aggregates, l->a.nnz, &l->p, &l->p_values));
    if (l->p.nnz <= l->a.nnz)
        return find_values(amg, l, AMG_PROLONG_FILL);
    TRY(amg_find_tentative(amg, l, counts, aggregates));
    TRY(amg_smooth_tentative(amg, l));
done:
    return st;
}
