/* Aggregates of rows, for smoothed aggregation:
 *
 *   roots    a maximal independent set of distance 2 in the graph of F. The priority of a row is a
 *            hash of its number.
 *   rows     join a root beside them, then their strongest neighbour's aggregate. Rows without a
 *            strong coupling stay outside: the smoother suffices for them.
 *
 * Source: N. Bell, S. Dalton, L. Olson, "Exposing fine-grained parallelism in algebraic multigrid
 * methods", SIAM J. Sci. Comput. 34(4), 2012.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/amg/amg_internal.h"

/* On a GPU so many rounds of the independent set visit all rows before the host asks whether some are undecided. Later
 * ones have lists. Rows have few couplings if there are so many on average at most. */
enum { ROUNDS = 4, FEW_COUPLINGS = 12 };

/* On ranks: lists of the rows that matter. *undecided: how many own ones are. */
static spmv_status list_own_rows(const struct amg *amg, const struct amg_level *l, const struct amg_aggregates *s,
                                 const struct amg_root_lists *lists, int64_t *undecided)
{
    spmv_status st = SPMV_OK;
    int64_t found[2] = {0};
    TRY(amg_list_roots_cuda(amg->ctx, s, lists, amg_room(l), amg_own_rows(l)));
    TRY(amg_read(amg, lists->counts, sizeof found, found));
    *undecided = found[1];
done:
    return st;
}

/* After a step mis_decide: *undecided: whether own rows are, or how many. */
static spmv_status find_undecided(const struct amg *amg, const struct amg_level *l, const struct amg_aggregates *s,
                                  int64_t *undecided)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    int32_t most = 0;
    TRY(amg_reduce(amg, &work, SPMV_MAX, SPMV_I32, s->undecided + amg_room(l), amg_own_rows(l), &most));
    *undecided = most > 0; /* without rows, most is the smallest number */
done:
    amg_release(&work);
    return st;
}

/* A round. lists: NULL: of all rows. */
static spmv_status run_round(const struct amg *amg, const struct amg_level *l, const struct amg_aggregates *s,
                             const struct amg_root_lists *lists)
{
    spmv_status st = SPMV_OK;
    const int64_t own = amg_own_rows(l);
    TRY(lists != NULL ? amg_spread_listed_cuda(amg->ctx, s, lists, own) : run_mis_spread(amg, s, l->rows));
    TRY(amg_fetch(amg, l, s->near_key, 8));
    TRY(lists != NULL ? amg_decide_listed_cuda(amg->ctx, s, lists, own) : run_mis_decide(amg, s, l->rows));
    TRY(amg_fetch(amg, l, s->key, 8));
done:
    return st;
}

/* A maximal independent set: decides which rows are roots. offsets: scratch memory. */
static spmv_status find_roots(struct amg *amg, const struct amg_level *l, const struct amg_aggregates *s, void *offsets)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    const bool device = context_on_device(amg->ctx);
    const int rounds = device ? ROUNDS : 1;
    bool begins = device, any = true;
    struct amg_root_lists roots = {.lists = {offsets, (int32_t *)offsets + l->rows},
                                   .few = l->f.nnz <= FEW_COUPLINGS * l->rows},
                          *lists = NULL;
    TRY(amg_alloc(&work, AMG_ROOTS_COUNTS * 8, (void **)&roots.counts));
    TRY(run_mis_begin(amg, s, l->rows));
    TRY(amg_fetch(amg, l, s->key, 8));
    while (any) { /* the undecided row with the largest key becomes a root, so this ends */
        int64_t undecided = 0;
        for (int round = 0; round < rounds; round++)
            TRY(run_round(amg, l, s, lists));
        if (begins && l->halo == NULL) {
            begins = false;
            TRY(amg_roots_cuda(amg->ctx, s, &roots, l->rows, &any));
            continue;
        }
        lists = begins ? &roots : NULL;
        TRY(lists != NULL ? list_own_rows(amg, l, s, lists, &undecided) : find_undecided(amg, l, s, &undecided));
        TRY(amg_add_ranks(amg, l, &undecided));
        any = undecided != 0;
    }
    TRY(lists != NULL ? amg_spread_listed_cuda(amg->ctx, s, lists, amg_own_rows(l)) : run_mis_spread(amg, s, l->rows));
done:
    amg_release(&work);
    return st;
}

spmv_status amg_number_roots(struct amg *amg, const struct amg_level *l, struct amg_roots *roots, int64_t *offsets,
                             int64_t *total)
{
    spmv_status st = SPMV_OK;
    roots->offset = offsets;
    roots->numbers = amg_numbers_of(l);
    TRY(run_root(amg, roots, l->rows));
    TRY(l->chunk != NULL ? amg_number_own(amg, l, roots->count, offsets, total)
                         : amg_sum_counts(amg, roots->count, l->rows, offsets, total));
    TRY(run_join_root(amg, roots, l->rows));
    TRY(amg_fetch(amg, l, roots->aggregate, 4));
done:
    return st;
}

spmv_status amg_find_aggregates(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t *aggregates)
{
    spmv_status st = SPMV_OK;
    struct amg_aggregates s = {
        .f = amg_rows_of(&l->f), .nnz = l->a.nnz, .diagonal = l->diagonal, .count = counts, .first = amg_first_row(l)};
    struct amg_pool work = {.ctx = amg->ctx};
    void *offsets = NULL;
    TRY(amg_alloc(&l->pool, l->rows * 4, (void **)&l->aggregate));
    TRY(amg_alloc(&work, l->rows * 8, (void **)&s.key));
    TRY(amg_alloc(&work, l->rows * 8, (void **)&s.near_key));
    TRY(amg_alloc(&work, l->rows * 4, (void **)&s.undecided));
    TRY(amg_alloc(&work, (l->rows + 1) * 8, &offsets));
    TRY(find_roots(amg, l, &s, offsets));
    struct amg_roots roots = {.key = s.key, .near_key = s.near_key, .count = counts, .aggregate = s.undecided};
    TRY(amg_number_roots(amg, l, &roots, offsets, aggregates));
    s.joined = s.undecided;
    s.aggregate = l->aggregate;
    TRY(run_join_near(amg, &s, l->rows));
    TRY(amg_fetch(amg, l, l->aggregate, 4));
done:
    amg_release(&work);
    return st;
}
