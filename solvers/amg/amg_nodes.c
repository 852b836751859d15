/* Nodes of several rows, and several near-null-space vectors, as in elasticity. Aggregates are of
 * nodes, by the largest absolute value of each block of A. Within an aggregate the vectors are made
 * orthonormal: B = Q U. The columns of P0 are those of Q, and U has the vectors of the next level.
 * P is smoothed with all couplings (F = A): sums of weak couplings say nothing about several vectors.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/matrix_internal.h"
#include "solvers/amg/amg_internal.h"

/* *alike: nodes of so many rows each have rows with entries in the same nodes. */
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

spmv_status amg_find_block(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    bool alike = false;
    amg->block = 1;
    for (int block = AMG_NULLS; block > 1 && !alike; block--)
        if (amg->given.rows % block == 0) {
            TRY(try_block(amg, block, &alike));
            if (alike)
                amg->block = block;
        }
done:
    return st;
}

spmv_status amg_find_nodes(struct amg *amg, const struct amg_level *l, int64_t *counts, struct amg_level *nodes)
{
    spmv_status st = SPMV_OK;
    struct amg_nodes s = {.a = amg_rows_of(&l->a), .block = l->block, .count = counts};
    nodes->rows = l->rows / l->block;
    if (l->block == 1) {
        nodes->a = l->a;
        nodes->diagonal = l->diagonal;
        nodes->root = l->root;
        return SPMV_OK;
    }
    TRY(run_node_count(amg, &s, nodes->rows));
    TRY(amg_new_rows(amg, &nodes->pool, nodes->rows, counts, nodes->rows, l->a.nnz, &nodes->a, &nodes->values));
    s.c = amg_rows_of(&nodes->a);
    TRY(run_node_fill(amg, &s, nodes->rows));
    struct amg_diagonal d = {.a = s.c, .nnz = nodes->a.nnz};
    TRY(amg_alloc_vector(amg, &nodes->pool, nodes->rows, &nodes->diagonal));
    TRY(amg_alloc_vector(amg, &nodes->pool, nodes->rows, &nodes->root));
    TRY(amg_alloc_vector(amg, &nodes->work, nodes->rows, &d.weight));
    TRY(amg_alloc_vector(amg, &nodes->work, nodes->rows, &d.inverse));
    d.diagonal = nodes->diagonal;
    d.root = nodes->root;
    TRY(run_diagonal(amg, &d, nodes->rows));
done:
    return st;
}

/* P0 and the basis of the next level, from the aggregates of the nodes. */
static spmv_status find_basis(struct amg *amg, struct amg_level *l, int64_t *counts, struct amg_level *nodes,
                              int64_t aggregates)
{
    spmv_status st = SPMV_OK;
    struct amg_level *next = l + 1;
    struct amg_basis s = {
        .block = l->block, .nulls = l->nulls, .basis = l->basis, .aggregate = nodes->aggregate, .count = counts};
    const int bits = amg_entry_bits(&nodes->p0);
    void *entry = NULL;
    TRY(amg_alloc(&nodes->work, nodes->p0.nnz * bits / 8, &entry));
    TRY(matrix_transpose_pattern(amg->ctx, &nodes->p0, &nodes->transpose, (struct entry_numbers){entry, bits}));
    spmv_matrix_view(nodes->transpose, &nodes->r);
    next->block = next->nulls = l->nulls;
    TRY(amg_alloc(&next->work, aggregates * l->nulls * l->nulls * 8, (void **)&next->basis));
    s.r = amg_rows_of(&nodes->r);
    s.coarse_basis = next->basis;
    TRY(run_orthonormal(amg, &s, aggregates));
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
    TRY(amg_find_strong_values(amg, l));
    TRY(amg_find_tentative(amg, nodes, counts, aggregates));
    TRY(find_basis(amg, l, counts, nodes, aggregates));
    TRY(amg_smooth_tentative(amg, l));
done:
    return st;
}
