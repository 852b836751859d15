/* Classical interpolation, where aggregates are bad: where coefficients jump. A row beside one with
 * much larger coefficients depends on it, but not the other way round. If more than one of
 * AMG_FAR_WEIGHT dependences of the first level is one-way by far, all levels have:
 *
 *   depends  row i on row j if -a_ij > strength m_i, m_i = max_k -a_ik
 *   coarse   rows: an independent set in the graph of dependences (PMIS), those first which others use most.
 *            The next level has a row for each coarse row.
 *   P        e_j for a coarse row j. Another row i depends on coarse rows C_i and on others F_i; b_k is the sum
 *            of -a_kj over C_k. F_i without b_k > 0 are taken as weak. ("extended+i")
 *              p_ij = (-a_ij + sum_k a_ik a_kj / (b_k - a_ki)) / d_i, k in F_i, the terms for j in C_i and C_k
 *              d_i  = a_ii + sum of weak a_ij - sum_k a_ik a_ki / (b_k - a_ki)
 *            The AMG_INTERPOLATE_MOST largest p_ij are kept, and multiplied so that the row keeps its sum.
 *
 * All levels of a matrix that is not symmetric have P of A and Q of A', for the same coarse rows, with a row of
 * each for each row of A. In "depends" and in the sum of a_ki, only negative entries count. The sum of a row of
 * P or Q is at most 1.
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
    const struct amg_dependence graph = {.a = amg_rows_of(&l->a),
                                         .t = amg_rows_of(&l->a_t),
                                         .diagonal = l->diagonal,
                                         .threshold = amg->strength,
                                         .largest = l->strongest};
    return graph;
}

/* The same of A'. */
static struct amg_dependence transposed(struct amg_dependence graph, void *largest)
{
    const struct amg_csr a = graph.a;
    graph.a = graph.t;
    graph.t = a;
    graph.largest = largest;
    return graph;
}

/* From a sample of the rows of the first level. */
spmv_status amg_choose_interpolation(struct amg *amg, const struct amg_level *l)
{
    enum { SAMPLE = 1 << 14 };
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_sample s = {.graph = graph_of(amg, l), .stride = ceil_divide(l->all_rows, SAMPLE)};
    int64_t balance = 0;
    amg->classical = amg->general;
    if (amg->general || l->nulls > 0 || l->near_null != NULL || l->all_rows <= AMG_COARSEST)
        return SPMV_OK;
    const int64_t sample = amg_own_sample(l, s.stride, &s.begin);
    TRY(amg_alloc(&work, sample * 8, (void **)&s.count));
    if (l->halo != NULL) {
        TRY(amg_alloc_vector(amg, &work, l->rows, &s.seen));
        s.sent = l->halo->sent;
        s.own_begin = amg_room(l);
        s.own_end = s.own_begin + amg_own_rows(l);
        TRY(run_see(amg, &s, l->halo->sent_count));
        TRY(amg_fetch_vector(amg, l, s.seen));
    }
    TRY(run_one_way(amg, &s, sample));
    TRY(amg_reduce(amg, &work, SPMV_ADD, SPMV_I64, s.count, sample, &balance));
    TRY(amg_add_ranks(amg, l, &balance));
    amg->classical = balance < 0;
done:
    amg_release(&work);
    return st;
}

/* m, in l->strongest; of A' in l->strongest_t */
static spmv_status find_dependence(const struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    if (l->strongest == NULL)
        TRY(amg_alloc_vector(amg, &l->work, l->rows, &l->strongest));
    const struct amg_dependence graph = graph_of(amg, l);
    TRY(run_dependence(amg, &graph, l->rows));
    TRY(amg_fetch_vector(amg, l, l->strongest));
    if (amg->general) {
        if (l->strongest_t == NULL)
            TRY(amg_alloc_vector(amg, &l->work, l->rows, &l->strongest_t));
        const struct amg_dependence other = transposed(graph, l->strongest_t);
        TRY(run_dependence(amg, &other, l->rows)); /* only own rows look at theirs */
    }
done:
    return st;
}

spmv_status amg_find_coarse_rows(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t *coarse)
{
    spmv_status st = SPMV_OK;
    const int rounds = context_on_device(amg->ctx) ? ROUNDS : 1;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_split s = {0};
    int64_t undecided = 1;
    void *offsets = NULL;
    TRY(find_dependence(amg, l));
    s.graph = graph_of(amg, l);
    s.first = amg_first_row(l);
    TRY(amg_alloc(&l->pool, l->rows * 4, (void **)&l->aggregate));
    TRY(amg_alloc(&work, l->rows * 8, (void **)&s.key));
    TRY(amg_alloc(&work, l->rows * 8, (void **)&s.near_key));
    TRY(amg_alloc(&work, l->rows * 4, (void **)&s.undecided));
    TRY(amg_alloc(&work, (l->rows + 1) * 8, &offsets));
    TRY(run_split_begin(amg, &s, l->rows));
    TRY(amg_fetch(amg, l, s.key, 8));
    while (undecided != 0) { /* the undecided row with the largest key becomes coarse, so this ends */
        for (int round = 0; round < rounds; round++) {
            TRY(run_split_decide(amg, &s, l->rows));
            TRY(amg_fetch(amg, l, s.near_key, 8));
            TRY(run_split_exclude(amg, &s, l->rows));
            TRY(amg_fetch(amg, l, s.key, 8));
        }
        int32_t most = 0;
        TRY(amg_reduce(amg, &work, SPMV_MAX, SPMV_I32, s.undecided + amg_room(l), amg_own_rows(l), &most));
        undecided = most > 0;
        TRY(amg_add_ranks(amg, l, &undecided));
    }
    struct amg_roots roots = {.key = s.key, .near_key = s.near_key, .count = counts, .aggregate = l->aggregate};
    TRY(amg_number_roots(amg, l, &roots, offsets, coarse));
done:
    amg_release(&work);
    return st;
}

/* *s: the arguments, with the coarse rows on which each row depends. */
static spmv_status find_coarse_near(const struct amg *amg, const struct amg_level *l, struct amg_pool *work,
                                    struct amg_dependence graph, struct amg_interpolation *s)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *const a = graph.a.col == l->a.col ? &l->a : &l->a_t;
    *s = (struct amg_interpolation){.graph = graph, .aggregate = l->aggregate, .near = graph.a};
    TRY(amg_alloc_vector(amg, work, l->rows, &s->to_coarse));
    TRY(amg_alloc(work, l->rows * 4, (void **)&s->near_count));
    TRY(amg_alloc(work, a->nnz * 4, (void **)&s->near.col));
    TRY(amg_alloc_vector(amg, work, a->nnz, &s->near.val));
    TRY(run_coarse_near(amg, s, l->rows));
    TRY(amg_fetch(amg, l, s->near_count, 4));
    TRY(amg_fetch_vector(amg, l, s->to_coarse));
    TRY(amg_fetch_near(amg, l, a, work, &s->near));
done:
    return st;
}

/* *p = the interpolation of the graph's matrix, in the pool. */
static spmv_status interpolate(struct amg *amg, struct amg_level *l, struct amg_pool *pool, struct amg_dependence graph,
                               int64_t *counts, int64_t coarse, spmv_csr *p, void **values)
{
    spmv_status st = SPMV_OK;
    const int64_t room = AMG_INTERPOLATE_MOST * l->rows;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_interpolation s;
    TRY(find_coarse_near(amg, l, &work, graph, &s));
    s.count = counts;
    TRY(amg_alloc(&work, room * 4, (void **)&s.room.col));
    TRY(amg_alloc_vector(amg, &work, room, &s.room.val));
    TRY(run_interpolate(amg, &s, l->rows));
    TRY(amg_clear_others(amg, l, counts));
    TRY(amg_new_rows(amg, pool, l->rows, counts, coarse, room, p, values));
    s.p = amg_rows_of(p);
    TRY(run_interpolate_place(amg, &s, l->rows));
done:
    amg_release(&work);
    return st;
}

/* New values of *p. */
static spmv_status interpolate_values(const struct amg *amg, const struct amg_level *l, struct amg_dependence graph,
                                      const spmv_csr *p)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_interpolation s;
    TRY(find_coarse_near(amg, l, &work, graph, &s));
    s.p = amg_rows_of(p);
    TRY(run_interpolate_values(amg, &s, l->rows));
done:
    amg_release(&work);
    return st;
}

spmv_status amg_interpolate(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t coarse)
{
    spmv_status st = SPMV_OK;
    const struct amg_dependence graph = graph_of(amg, l);
    TRY(interpolate(amg, l, &l->pool, graph, counts, coarse, &l->p, &l->p_values));
    if (amg->general)
        TRY(interpolate(amg, l, amg->updates ? &l->pool : &l->work, transposed(graph, l->strongest_t), counts, coarse,
                        &l->q, &l->q_values));
done:
    return st;
}

spmv_status amg_interpolate_values(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    if (amg->general)
        TRY(amg_transpose_values(amg, l));
    TRY(find_dependence(amg, l));
    const struct amg_dependence graph = graph_of(amg, l);
    TRY(interpolate_values(amg, l, graph, &l->p));
    if (amg->general)
        TRY(interpolate_values(amg, l, transposed(graph, l->strongest_t), &l->q));
done:
    return st;
}
