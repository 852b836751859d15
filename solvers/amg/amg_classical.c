/* Classical interpolation, where aggregates are bad: where coefficients jump. A row beside one with
 * much larger coefficients depends on it, but not the other way round. If more than one of
 * AMG_FAR_WEIGHT dependences of the first level is one-way by far, all levels have:
 *
 *   depends  row i on row j if -a_ij > strength m_i, m_i = max_k -a_ik
 *   coarse   rows: an independent set in the graph of dependences (PMIS), those first which others use most.
 *            The next level has a row for each coarse row.
 *   P        e_j for a coarse row j. Another row i depends on coarse rows C_i and on others F_i; b_k is the sum
 *            of -a_kj over C_k. F_i without b_k > 0 are taken as weak. ("extended+i")
 *              p_ij = (-a_ij + sum_k a_ik a_kj / (b_k - a_ik)) / d_i, k in F_i, the terms for j in C_i and C_k
 *              d_i  = a_ii + sum of weak a_ij - sum_k a_ik^2 / (b_k - a_ik)
 *            The AMG_INTERPOLATE_MOST largest p_ij are kept, and multiplied so that the row keeps its sum.
 *
 * Sources: H. De Sterck, R. D. Falgout, J. W. Nolting, U. M. Yang, "Distance-two interpolation for
 * parallel algebraic multigrid", Numer. Linear Algebra Appl. 15, 2008; H. De Sterck, U. M. Yang, J. J.
 * Heys, "Reducing complexity in parallel algebraic multigrid preconditioners", SIAM J. Matrix Anal.
 * Appl. 27(4), 2006.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/amg/amg_internal.h"

/* On a GPU so many rounds of the independent set go by before the host looks whether it is complete. */
enum { ROUNDS = 4 };

static struct amg_dependence graph_of(const struct amg *amg, const struct amg_level *l)
{
    const struct amg_dependence graph = {
        .a = amg_rows_of(&l->a), .diagonal = l->diagonal, .threshold = amg->strength, .largest = l->strongest};
    return graph;
}

/* From a sample of the rows of the first level. */
spmv_status amg_choose_interpolation(struct amg *amg, const struct amg_level *l)
{
    enum { SAMPLE = 1 << 14 };
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_sample s = {.graph = graph_of(amg, l), .stride = ceil_divide(l->rows, SAMPLE)};
    int64_t balance = 0;
    amg->classical = false;
    if (l->nulls > 0 || l->near_null != NULL || l->rows <= AMG_COARSEST)
        return SPMV_OK;
    const int64_t sample = ceil_divide(l->rows, s.stride);
    TRY(amg_alloc(&work, sample * 8, (void **)&s.count));
    TRY(run_one_way(amg, &s, sample));
    TRY(amg_reduce(amg, &work, SPMV_ADD, SPMV_I64, s.count, sample, &balance));
    amg->classical = balance < 0;
done:
    amg_release(&work);
    return st;
}

/* m, in l->strongest */
static spmv_status find_dependence(const struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    if (l->strongest == NULL)
        TRY(amg_alloc_vector(amg, &l->work, l->rows, &l->strongest));
    const struct amg_dependence graph = graph_of(amg, l);
    TRY(run_dependence(amg, &graph, l->rows));
done:
    return st;
}

spmv_status amg_find_coarse_rows(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t *coarse)
{
    spmv_status st = SPMV_OK;
    const int rounds = context_on_device(amg->ctx) ? ROUNDS : 1;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_split s = {0};
    int32_t undecided = 1;
    void *offsets = NULL;
    TRY(find_dependence(amg, l));
    s.graph = graph_of(amg, l);
    TRY(amg_alloc(&l->pool, l->rows * 4, (void **)&l->aggregate));
    TRY(amg_alloc(&work, l->rows * 8, (void **)&s.key));
    TRY(amg_alloc(&work, l->rows * 8, (void **)&s.near_key));
    TRY(amg_alloc(&work, l->rows * 4, (void **)&s.undecided));
    TRY(amg_alloc(&work, (l->rows + 1) * 8, &offsets));
    TRY(run_split_begin(amg, &s, l->rows));
    while (undecided != 0) { /* the undecided row with the largest key becomes coarse, so this ends */
        for (int round = 0; round < rounds; round++) {
            TRY(run_split_decide(amg, &s, l->rows));
            TRY(run_split_exclude(amg, &s, l->rows));
        }
        TRY(amg_reduce(amg, &work, SPMV_MAX, SPMV_I32, s.undecided, l->rows, &undecided));
    }
    struct amg_roots roots = {.key = s.key, .near_key = s.near_key, .count = counts, .aggregate = l->aggregate};
    TRY(amg_number_roots(amg, l, &roots, offsets, coarse));
done:
    amg_release(&work);
    return st;
}

/* *s: the arguments, with the coarse rows on which each row depends. */
static spmv_status find_coarse_near(const struct amg *amg, struct amg_level *l, struct amg_interpolation *s)
{
    spmv_status st = SPMV_OK;
    *s = (struct amg_interpolation){.graph = graph_of(amg, l), .aggregate = l->aggregate, .p = amg_rows_of(&l->p)};
    TRY(amg_alloc_vector(amg, &l->work, l->rows, &s->to_coarse));
    TRY(amg_alloc(&l->work, l->rows * 4, (void **)&s->near_count));
    TRY(amg_alloc(&l->work, l->a.nnz * 4, (void **)&s->near.col));
    TRY(amg_alloc_vector(amg, &l->work, l->a.nnz, &s->near.val));
    TRY(run_coarse_near(amg, s, l->rows));
done:
    return st;
}

spmv_status amg_interpolate(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t coarse)
{
    spmv_status st = SPMV_OK;
    const int64_t room = AMG_INTERPOLATE_MOST * l->rows;
    struct amg_interpolation s;
    TRY(find_coarse_near(amg, l, &s));
    s.count = counts;
    TRY(amg_alloc(&l->work, room * 4, (void **)&s.room.col));
    TRY(amg_alloc_vector(amg, &l->work, room, &s.room.val));
    TRY(run_interpolate(amg, &s, l->rows));
    TRY(amg_new_rows(amg, l, l->rows, counts, coarse, room, &l->p, &l->p_values));
    s.p = amg_rows_of(&l->p);
    TRY(run_interpolate_place(amg, &s, l->rows));
done:
    return st;
}

spmv_status amg_interpolate_values(const struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    struct amg_interpolation s;
    TRY(find_dependence(amg, l));
    TRY(find_coarse_near(amg, l, &s));
    TRY(run_interpolate_values(amg, &s, l->rows));
done:
    return st;
}
