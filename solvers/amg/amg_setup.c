/* The set-up of algebraic multigrid: the hierarchy of matrices. From a level with matrix A to the next:
 *
 *   smoothed aggregation                       classical, where coefficients jump
 *   strength of couplings   amg_strength.c     dependences            amg_classical.c
 *   aggregates              amg_aggregate.c    independent set        amg_classical.c
 *   interpolation P         amg_prolong.c      interpolation P        amg_classical.c
 *   next A = P'AP           amg_galerkin.c     next A = P'AP          amg_galerkin.c
 *
 * If A is not symmetric, interpolation is classical, and R is the transpose of that of A' (amg_classical.c).
 *
 * The levels end when at most AMG_COARSEST rows are left, and their matrix is inverted with little work, or no
 * level can follow (amg_coarsest.c). If fewer than a fifth of
 * the rows vanish from one level to the next, or there are AMG_LEVELS levels, a larger last level is
 * smoothed instead.
 *
 * Every step is a function of one row (amg_rows.h). What combines rows does not depend on an order:
 * maxima, and sums of integers. So the hierarchy has the same bits on every backend and for any
 * number of threads.
 *
 * Singular matrices: where p'Ap is 0 up to rounding, or a pivot of the last level is, the unknown
 * is left out: its row of D^-1, or of the inverse, is 0. For a consistent system that is the
 * solution with this unknown 0. If one is negative beyond rounding, the matrix is not positive
 * definite. In f32 under vectors of f64 a small p'Ap already means that f32 is too narrow, and so does a small pivot,
 * unless the rows of A sum to 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/amg/amg_internal.h"

/* A level with a larger share of the rows of the level before is not made. */
static const double LARGEST_SHARE = 0.8;

static bool few_enough(int64_t coarse, int64_t rows)
{
    return coarse > 0 && (double)coarse <= LARGEST_SHARE * (double)rows;
}

/* P by smoothed aggregation. *coarser: false if there is none, because too few rows would vanish. With several
 * near-null-space vectors, aggregates are of nodes. */
static spmv_status aggregate(struct amg *amg, struct amg_level *l, bool *coarser)
{
    spmv_status st = SPMV_OK;
    struct amg_level of_nodes = {.pool.ctx = amg->ctx, .work.ctx = amg->ctx};
    struct amg_level *const graph = l->nulls > 0 ? &of_nodes : l;
    void *counts = NULL;
    int64_t aggregates = 0;
    TRY(amg_alloc(&l->work, (l->rows + 1) * 8, &counts));
    if (l->nulls > 0)
        TRY(amg_find_nodes(amg, l, counts, graph));
    TRY(amg_find_strong(amg, l, graph, counts));
    TRY(amg_find_aggregates(amg, graph, counts, &aggregates));
    *coarser = few_enough(aggregates * max_i64(l->nulls, 1), l->all_rows);
    if (*coarser)
        TRY(l->nulls > 0 ? amg_prolong_basis(amg, l, counts, graph, aggregates)
                         : amg_prolong(amg, l, counts, aggregates));
done:
    spmv_matrix_destroy(of_nodes.transpose);
    if (of_nodes.halo == l->halo) /* nodes are rows */
        of_nodes.halo = NULL;
    if (of_nodes.chunk == l->chunk)
        of_nodes.row_of_rank = of_nodes.chunk = NULL;
    amg_close_ranks(amg, &of_nodes);
    amg_release(&of_nodes.pool);
    amg_release(&of_nodes.work);
    return st;
}

/* P by classical interpolation. */
static spmv_status interpolate(struct amg *amg, struct amg_level *l, bool *coarser)
{
    spmv_status st = SPMV_OK;
    void *counts = NULL;
    int64_t coarse = 0;
    TRY(amg_alloc(&l->work, (l->rows + 1) * 8, &counts));
    TRY(amg_judge(amg, l));
    if (amg->general)
        TRY(amg_transpose_matrix(amg, l));
    TRY(amg_find_coarse_rows(amg, l, counts, &coarse));
    *coarser = few_enough(coarse, l->all_rows);
    if (*coarser)
        TRY(amg_interpolate(amg, l, counts, coarse));
done:
    return st;
}

static void drop_work(const struct amg *amg, struct amg_level *l)
{
    amg_release(&l->work);
    if (!amg->updates) {
        spmv_matrix_destroy(l->a_transpose);
        l->a_transpose = NULL;
        l->a_t = (spmv_csr){0};
    }
    l->strongest = l->strongest_t = NULL;
}

/* An inverse takes n^3 multiplications, which should not exceed the rest of the set-up: so many for each
 * entry of the matrix. Those of 100 rows take less than a millisecond. */
static bool invert_is_cheap(const struct amg *amg, const struct amg_level *l)
{
    const double rows = (double)l->rows;
    return rows <= AMG_INVERSE_ROWS || rows * rows * rows <= AMG_INVERSE_WORK * (double)amg->level[0].all_nnz;
}

/* The hierarchy, without plans: level by level, until one is small, or the next would not be. */
static spmv_status build_levels(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    for (struct amg_level *l = amg->level;; l++) {
        TRY(amg_make_whole(amg, l));
        const bool can_invert = l->chunk == NULL && l->rows <= (amg->general ? AMG_COARSEST_GENERAL : AMG_COARSEST),
                   small = can_invert && invert_is_cheap(amg, l), full = amg->levels == AMG_LEVELS;
        bool coarser = false;
        TRY(amg_find_smoother(amg, l, !small && !full && l->nulls == 0 && !amg->classical));
        if (amg->levels == 1)
            TRY(amg_choose_interpolation(amg, l));
        if (amg->levels == 1 && !amg->classical)
            TRY(amg_choose_strength(amg, l));
        if (small)
            return amg_invert_coarsest(amg);
        if (full)
            return can_invert ? amg_invert_coarsest(amg) : SPMV_OK;
        TRY(amg->classical ? interpolate(amg, l, &coarser) : aggregate(amg, l, &coarser));
        if (coarser)
            TRY(amg_multiply(amg, l));
        drop_work(amg, l);
        if (!coarser)
            return can_invert ? amg_invert_coarsest(amg) : SPMV_OK;
        amg->levels++;
    }
done:
    return st;
}

/* The bounds of the eigenvalues, and what needs them. */
static spmv_status complete(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    TRY(amg_judge(amg, &amg->level[amg->levels - 1]));
    TRY(amg_read_bounds(amg));
    TRY(amg_plan_cycle(amg));
done:
    return st;
}

spmv_status amg_build(struct amg *amg, spmv_type type)
{
    spmv_status st = SPMV_OK;
    amg->type = type;
    amg->pool.ctx = amg->ctx;
    for (int k = 0; k < AMG_LEVELS; k++)
        amg->level[k].pool.ctx = amg->level[k].work.ctx = amg->ctx;
    amg->levels = 1;
    amg->level[0].rows = amg->level[0].all_rows = amg->m->rows;
    amg->level[0].all_nnz = amg->given.nnz;
    amg->level[0].block = amg->block;
    amg->level[0].nulls = amg->nulls;
    amg->imprecise = amg->unchecked = amg->classical = amg->moves = false;
    amg->whole_slot = amg->whole_row = NULL;
    TRY(amg_alloc(&amg->pool, sizeof *amg->cells, (void **)&amg->cells));
    /* read whole, set in parts */
    TRY(spmv_upload(amg->ctx, &(const struct amg_cells){0}, amg->cells, sizeof *amg->cells));
    TRY(amg_alloc(&amg->pool, AMG_LEVELS * amg_type_size(amg), &amg->bounds));
    if (amg->ranks != NULL)
        TRY(amg_begin_ranks(amg));
    TRY(amg_take_values(amg));
    TRY(amg_find_symmetry(amg));
    TRY(amg_take_near_null(amg));
    TRY(build_levels(amg));
    TRY(complete(amg));
done:
    if (st != SPMV_OK)
        amg_clear(amg);
    return st;
}

/* New values of P, and of the next level's matrix. */
static spmv_status renew_next(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    if (amg->classical) {
        TRY(amg_interpolate_values(amg, l));
    } else {
        TRY(amg_find_strong_values(amg, l));
        TRY(amg_prolong_values(amg, l));
    }
    TRY(amg_multiply_values(amg, l));
    TRY(amg_judge(amg, l + 1));
done:
    return st;
}

spmv_status amg_renew(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    const bool general = amg->general;
    amg->imprecise = false;
    TRY(amg_take_values(amg));
    TRY(amg_find_symmetry(amg));
    if (amg->general && !general) { /* the values before were symmetric */
        amg_clear(amg);
        return amg_build(amg, amg->type);
    }
    amg->general = general;
    for (struct amg_level *l = amg->level;; l++) {
        TRY(amg_find_smoother(amg, l, false));
        if (l + 1 == amg->level + amg->levels)
            break;
        st = renew_next(amg, l);
        drop_work(amg, l);
        TRY(st);
    }
    if (amg->coarsest_values != NULL)
        TRY(amg_invert_coarsest(amg));
    TRY(complete(amg));
done:
    return st;
}

void amg_clear(struct amg *amg)
{
    amg_drop_columns(amg);
    amg_drop_transposed(amg);
    for (int k = 0; k < AMG_LEVELS; k++) {
        struct amg_level *l = &amg->level[k];
        spmv_plan_destroy(l->plan_smoother); /* it may use the other one */
        spmv_plan_destroy(l->plan_after);
        spmv_plan_destroy(l->plan);
        spmv_plan_destroy(l->plan_p);
        spmv_plan_destroy(l->plan_r);
        spmv_spgemm_plan_destroy(l->rap);
        spmv_spgemm_plan_destroy(l->ap);
        spmv_spgemm_plan_destroy(l->fp0);
        spmv_matrix_destroy(l->transpose);
        spmv_matrix_destroy(l->a_transpose);
        amg_close_ranks(amg, l);
        amg_release(&l->pool);
        amg_release(&l->work);
        *l = (struct amg_level){0};
    }
    spmv_plan_destroy(amg->plan_coarsest);
    amg->plan_coarsest = NULL;
    amg->coarsest_values = NULL;
    amg->largest = amg->scratch = NULL;
    host_free_all(amg->coarse.row_of_rank, amg->coarse.chunk);
    amg->coarse = (struct amg_coarse_rows){0};
    amg_release(&amg->pool);
    amg->levels = 0;
}
