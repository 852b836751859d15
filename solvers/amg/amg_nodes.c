/* Nodes of several rows, and several near-null-space vectors, as in elasticity. Aggregates are of
 * nodes, by the largest absolute value of each block of A. Within an aggregate the vectors are made
 * orthonormal: B = Q U. The columns of P0 are those of Q, and U has the vectors of the next level.
 * P is smoothed with all couplings (F = A): sums of weak couplings say nothing about several vectors.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/matrix_internal.h"
#include "product/plan_internal.h"
#include "solvers/amg/amg_internal.h"

/* *alike: nodes of so many rows each have rows with entries in the same nodes, but for few. */
static spmv_status try_block(struct amg *amg, int block, bool *alike)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_likeness s = {.a = amg_rows_of(&amg->given), .block = block};
    const int64_t nodes = amg->given.rows / block;
    int64_t first = 0;
    TRY(amg_alloc(&work, nodes * 8, (void **)&s.other));
    TRY(amg_run(amg->ctx, AMG_NODE_LIKE, amg->m->type, &s, nodes));
    TRY(amg_reduce(amg, &work, SPMV_MIN, SPMV_I64, s.other, nodes, &first));
    *alike = first == INT64_MAX;
done:
    amg_release(&work);
    return st;
}

/* Nodes of at least so many rows of all must be full. */
static const double FULL = 0.75;

/* Rows that follow each other and have the same columns are a node, on ranks as far as they are of one chunk. Sets
 * the number of own nodes, and of all: *all: nodes; *largest: rows of one; *full: rows in such ones. all_rows: of all
 * ranks. */
static spmv_status group_rows(struct amg *amg, struct amg_pool *work, struct amg_places *s, int64_t all_rows,
                              int64_t *own, int64_t *all, int64_t *full)
{
    spmv_status st = SPMV_OK;
    int64_t *before = NULL, largest = 0;
    *own = *full = 0;
    TRY(amg_alloc(work, s->rows * 8, (void **)&s->begins));
    TRY(amg_alloc(work, (s->rows + 1) * 8, (void **)&before));
    TRY(amg_run(amg->ctx, AMG_NODE_BEGIN, amg->m->type, s, s->rows));
    TRY(amg_cut_nodes(amg, s->begins, s->rows));
    TRY(amg_sum_counts(amg, s->begins, s->rows, before, own));
    *all = *own;
    TRY(amg_add_all_ranks(amg, all));
    if ((double)*all > (1 - FULL / 2) * (double)all_rows) /* most nodes are rows */
        goto done;
    s->before = before;
    TRY(amg_alloc(work, (*own + 1) * 8, (void **)&s->first));
    TRY(amg_alloc(work, *own * 8, (void **)&s->size));
    TRY(amg_run(amg->ctx, AMG_NODE_FIRST, amg->m->type, s, s->rows));
    TRY(amg_run(amg->ctx, AMG_NODE_SIZE, amg->m->type, s, *own));
    if (*own > 0)
        TRY(amg_reduce(amg, work, SPMV_MAX, SPMV_I64, s->size, *own, &largest));
    double most = (double)largest;
    TRY(amg_largest_of_ranks(amg, &most, 1));
    if (most > AMG_NULLS)
        goto done;
    s->block = (int)most;
    TRY(amg_run(amg->ctx, AMG_NODE_SIZE, amg->m->type, s, *own));
    if (*own > 0)
        TRY(amg_reduce(amg, work, SPMV_ADD, SPMV_I64, s->size, *own, full));
    TRY(amg_add_all_ranks(amg, full));
done:
    return st;
}

/* Nodes of different sizes: where some components of some nodes are given, as those of a body on rollers. */
spmv_status amg_find_slots(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_level l = {.rows = amg->given.rows};
    const spmv_type type = amg->given.val != NULL ? amg->given.type : amg->m->type;
    const int64_t all_rows = amg->ranks != NULL ? amg->ranks->rows : amg->given.rows;
    int64_t own = 0, all = 0, full = 0;
    TRY(amg_open_first(amg, &l));
    const spmv_csr rows = amg_own_matrix(&l, amg->given);
    struct amg_places s = {.a = amg_rows_of(&rows), .rows = rows.rows, .room = amg_room(&l)};
    TRY(group_rows(amg, &work, &s, all_rows, &own, &all, &full));
    if (s.block < 2 || (double)full < FULL * (double)all_rows || all > INT32_MAX / s.block)
        goto done;
    TRY(amg_alloc(&work, l.rows * 4, (void **)&s.component));
    TRY(amg_run(amg->ctx, AMG_NODE_COMPONENT, amg->m->type, &s, s.rows));
    TRY(amg_fetch(amg, &l, s.component, 4));
    TRY(amg_alloc(&amg->lasting, s.rows * 4, (void **)&s.slot));
    TRY(amg_alloc(&amg->lasting, own * s.block * 4, (void **)&s.row));
    TRY(amg_run(amg->ctx, AMG_NODE_PLACE, type, &s, own));
    TRY(amg_count_nodes(amg, s.before, s.rows, own));
    amg->block = s.block;
    amg->nodes = own;
    amg->slot = s.slot;
    amg->row = s.row;
done:
    if (l.halo != NULL)
        amg->tools->close(l.halo);
    amg_release(&work);
    return st;
}

/* The same as try_block for all sizes on a GPU: *alike, and the largest of them as amg->block. */
static spmv_status try_blocks_at_once(struct amg *amg, bool *alike)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_likeness s = {.a = amg_rows_of(&amg->given)};
    int differ[AMG_NULLS + 1] = {0}, *found = NULL;
    TRY(amg_alloc(&work, (amg->given.rows / 2 + 1) * 8, (void **)&s.other));
    TRY(amg_alloc(&work, sizeof differ, (void **)&found));
    TRY(spmv_upload(amg->ctx, differ, found, sizeof differ));
    for (s.block = AMG_NULLS; s.block > 1; s.block--)
        if (amg->given.rows % s.block == 0)
            TRY(amg_alike_cuda(amg->ctx, &s, amg->given.rows / s.block, found + s.block));
    TRY(amg_read(amg, found, sizeof differ, differ));
    for (int block = AMG_NULLS; block > 1 && !*alike; block--)
        if (amg->given.rows % block == 0 && differ[block] == 0) {
            *alike = true;
            amg->block = block;
        }
done:
    amg_release(&work);
    return st;
}

spmv_status amg_find_block(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    bool alike = false;
    amg->block = 1;
    if (context_on_device(amg->ctx))
        TRY(try_blocks_at_once(amg, &alike));
    for (int block = AMG_NULLS; block > 1 && !alike && !context_on_device(amg->ctx); block--)
        if (amg->given.rows % block == 0) {
            TRY(try_block(amg, block, &alike));
            if (alike)
                amg->block = block;
        }
    if (!alike)
        TRY(amg_find_slots(amg));
done:
    return st;
}

struct amg_slots amg_slots_of(const struct amg *amg, const struct amg_level *l)
{
    const bool first = l == amg->level && l->block > 1;
    if (!first)
        return (struct amg_slots){l->block, NULL, NULL};
    return amg->whole_slot != NULL ? (struct amg_slots){l->block, amg->whole_slot, amg->whole_row}
                                   : (struct amg_slots){l->block, amg->slot, amg->row};
}

/* The matrix of nodes by one pass on a GPU. *made: false if that takes too much memory. */
static spmv_status merge_at_once(struct amg *amg, const struct amg_level *l, int64_t *counts, struct amg_level *nodes,
                                 const struct amg_slots *slots, bool *made)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    const int blocks = nodes->pool.blocks;
    struct amg_block_product s = {.name = "amg nodes",
                                  .rows = nodes->rows,
                                  .tall = 1,
                                  .width = 1,
                                  .expected = (double)l->a.nnz / (double)l->rows / l->block,
                                  .left = amg_rows_of(&l->a),
                                  .lengths = counts,
                                  .columns = nodes->rows};
    TRY(amg_block_multiply(amg, &work, &s, l->a.nnz / l->block, slots));
    TRY(amg_block_result(amg, &nodes->pool, &s, nodes->rows, &nodes->a, &nodes->values, made));
done:
    amg_release(&work);
    while (!*made && nodes->pool.blocks > blocks)
        amg_release_last(&nodes->pool, 0);
    return st == SPMV_ERROR_MEMORY && !*made ? SPMV_OK : st;
}

spmv_status amg_find_nodes(struct amg *amg, struct amg_level *l, int64_t *counts, struct amg_level *nodes)
{
    spmv_status st = SPMV_OK;
    bool made = false;
    struct amg_nodes s = {.a = amg_rows_of(&l->a), .slots = amg_slots_of(amg, l), .count = counts};
    nodes->rows = s.slots.slot == NULL ? l->rows / l->block : amg->whole_slot != NULL ? amg->whole_nodes : amg->nodes;
    if (l->block == 1) {
        nodes->a = l->a;
        nodes->diagonal = l->diagonal;
        nodes->root = l->root;
        nodes->halo = l->halo;
        nodes->ghost = l->ghost;
        nodes->row_of_rank = l->row_of_rank;
        nodes->chunk = l->chunk;
        nodes->all_rows = l->all_rows;
        return SPMV_OK;
    }
    if (l->halo != NULL)
        TRY(amg_find_nodes_of_rank(amg, l, counts, nodes));
    else if (context_on_device(amg->ctx))
        TRY(merge_at_once(amg, l, counts, nodes, &s.slots, &made));
    if (l->halo == NULL)
        TRY(amg_take_node_chunks(amg, l, nodes));
    if (l->halo == NULL && !made) {
        TRY(run_node_count(amg, &s, nodes->rows));
        TRY(amg_new_rows(amg, &nodes->pool, nodes->rows, counts, nodes->rows, l->a.nnz, &nodes->a, &nodes->values));
        s.c = amg_rows_of(&nodes->a);
        TRY(run_node_fill(amg, &s, nodes->rows));
    }
    l->alike = l->halo == NULL && s.slots.slot == NULL && nodes->a.nnz * l->block * l->block == l->a.nnz;
    struct amg_diagonal d = {.a = amg_rows_of(&nodes->a), .nnz = nodes->a.nnz};
    TRY(amg_alloc_vector(amg, &nodes->pool, nodes->rows, &nodes->diagonal));
    TRY(amg_alloc_vector(amg, &nodes->pool, nodes->rows, &nodes->root));
    TRY(amg_alloc_vector(amg, &nodes->work, nodes->rows, &d.weight));
    TRY(amg_alloc_vector(amg, &nodes->work, nodes->rows, &d.inverse));
    d.diagonal = nodes->diagonal;
    d.root = nodes->root;
    TRY(run_diagonal(amg, &d, nodes->rows));
    TRY(amg_fetch_vector(amg, nodes, nodes->diagonal));
    TRY(amg_fetch_vector(amg, nodes, nodes->root));
done:
    return st;
}

/* P0 and the basis of the next level, from the aggregates of the nodes. */
static spmv_status find_basis(struct amg *amg, struct amg_level *l, int64_t *counts, struct amg_level *nodes,
                              int64_t aggregates)
{
    spmv_status st = SPMV_OK;
    struct amg_level *next = l + 1;
    struct amg_basis s = {.slots = amg_slots_of(amg, l),
                          .nulls = l->nulls,
                          .basis = l->basis,
                          .aggregate = nodes->aggregate,
                          .count = counts};
    const int bits = amg_entry_bits(&nodes->p0);
    void *entry = NULL;
    TRY(amg_alloc(&nodes->work, nodes->p0.nnz * bits / 8, &entry));
    TRY(matrix_transpose_pattern(amg->ctx, &nodes->p0, &nodes->transpose, (struct entry_numbers){entry, bits}));
    spmv_matrix_view(nodes->transpose, &nodes->r);
    next->block = next->nulls = l->nulls;
    TRY(amg_alloc(&next->work, aggregates * l->nulls * l->nulls * 8, (void **)&next->basis));
    s.r = amg_rows_of(&nodes->r);
    s.coarse_basis = next->basis;
    TRY(context_on_device(amg->ctx) ? amg_orthonormal_cuda(amg->ctx, &s, aggregates)
                                    : run_orthonormal(amg, &s, aggregates));
    TRY(run_basis_count(amg, &s, l->rows));
    TRY(amg_new_rows(amg, &l->pool, l->rows, counts, aggregates * l->nulls, INT64_MAX, &l->p0, &l->p0_values));
    s.p0 = amg_rows_of(&l->p0);
    TRY(run_basis_fill(amg, &s, l->rows));
done:
    return st;
}

spmv_status amg_prolong_basis(struct amg *amg, struct amg_level *l, int64_t *counts, struct amg_level *nodes,
                              int64_t aggregates)
{
    spmv_status st = SPMV_OK;
    l->f = l->a;
    if (amg->l1) /* l->inverse is another one */
        TRY(amg_find_strong_values(amg, l));
    else
        l->f_inverse = l->inverse;
    if (l->halo != NULL) {
        TRY(amg_find_basis_of_rank(amg, l, counts, nodes, aggregates));
    } else {
        TRY(amg_find_tentative(amg, nodes, counts, aggregates));
        TRY(find_basis(amg, l, counts, nodes, aggregates));
    }
    TRY(amg_smooth_tentative(amg, l));
done:
    return st;
}
