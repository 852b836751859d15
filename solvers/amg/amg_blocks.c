/* Products of a level with several near-null-space vectors on a GPU (amg_blocks_cuda.cu). The columns of P, A P and
 * the next A are those of aggregates, so the products are of blocks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/amg/amg_internal.h"

spmv_status amg_block_multiply(struct amg *amg, struct amg_pool *work, struct amg_block_product *s, int64_t room,
                               const struct amg_slots *slots)
{
    spmv_status st = SPMV_OK;
    s->to.room = amg_block_room_cuda(amg->ctx, room);
    TRY(amg_alloc(work, s->rows * 8, (void **)&s->to.places));
    TRY(amg_alloc(work, s->to.room * 4, (void **)&s->to.col));
    TRY(amg_alloc_vector(amg, work, s->to.room * s->width, &s->to.val));
    for (int k = 0; k < 2; k++)
        TRY(amg_alloc(work, s->rows * 4, (void **)&s->lists[k]));
    TRY(amg_alloc(work, AMG_GALERKIN_COUNTERS, &s->counters));
    TRY(amg_alloc(work, amg_block_tables_cuda(amg->type, s->columns, s->width), &s->tables));
    TRY(slots != NULL ? amg_node_rows_cuda(amg->ctx, amg->type, s, slots)
                      : amg_block_product_cuda(amg->ctx, amg->type, s));
done:
    return st;
}

spmv_status amg_block_result(struct amg *amg, struct amg_pool *pool, const struct amg_block_product *s, int64_t cols,
                             spmv_csr *m, void **values, bool *made)
{
    spmv_status st = SPMV_OK;
    const int64_t most = s->to.room * s->width;
    TRY(amg_new_rows(amg, pool, s->rows, s->lengths, cols, most, m, values));
    *made = m->nnz <= most;
    if (*made)
        TRY(amg_block_place_cuda(amg->ctx, amg->type, s->rows, m->nnz, s->width, &s->to, amg_rows_of(m)));
done:
    return st;
}

/* A product with A: of its rows, and of blocks for each of their entries. */
static struct amg_block_product with_a(const struct amg_level *l, const char *name)
{
    const struct amg_block_product s = {.name = name,
                                        .rows = l->rows,
                                        .tall = l->alike ? l->block : 1,
                                        .alike = l->alike,
                                        .width = l->nulls,
                                        .expected = (double)l->a.nnz / (double)l->rows / l->nulls,
                                        .left = amg_rows_of(&l->a),
                                        .columns = l->p0.cols / l->nulls};
    return s;
}

/* Ends an attempt: on success with *made, otherwise without the pool's blocks after the first so many. */
static spmv_status end(struct amg_pool *pool, int blocks, int64_t bytes, spmv_status st, bool made)
{
    if (made)
        return st;
    while (pool->blocks > blocks)
        amg_release_last(pool, 0);
    pool->bytes = bytes;
    return st == SPMV_ERROR_MEMORY ? SPMV_OK : st;
}

static spmv_status smooth(struct amg *amg, struct amg_level *l, struct amg_pool *work, bool *made)
{
    spmv_status st = SPMV_OK;
    struct amg_block_product s = with_a(l, "amg A P0");
    s.right = amg_rows_of(&l->p0);
    s.team = AMG_ONE_WARP; /* a row of P0 has one block */
    TRY(amg_alloc(work, (l->rows + 1) * 8, (void **)&s.lengths));
    TRY(amg_block_multiply(amg, work, &s, l->a.nnz / l->nulls, NULL));
    TRY(amg_block_result(amg, &l->pool, &s, l->p0.cols, &l->p, &l->p_values, made));
done:
    return st;
}

spmv_status amg_block_smooth(struct amg *amg, struct amg_level *l, bool *made)
{
    struct amg_pool work = {.ctx = amg->ctx};
    const int blocks = l->pool.blocks;
    const int64_t bytes = l->pool.bytes;
    *made = false;
    const spmv_status st = smooth(amg, l, &work, made);
    amg_release(&work);
    return end(&l->pool, blocks, bytes, st, *made);
}

static spmv_status transpose(struct amg *amg, struct amg_level *l, struct amg_pool *work)
{
    spmv_status st = SPMV_OK;
    const int64_t coarse = l->p.cols, nnz = l->p.nnz;
    struct amg_block_transpose t = {
        .p = amg_rows_of(&l->p), .fine = l->rows, .aggregates = coarse / l->nulls, .nnz = nnz, .width = l->nulls};
    void *offsets = NULL; /* the kernels write them */
    TRY(amg_alloc(work, t.aggregates * 4, (void **)&t.counts));
    TRY(amg_alloc(work, (t.aggregates + 1) * 8, (void **)&t.offsets));
    TRY(amg_alloc(work, nnz / l->nulls * 8, &t.entries));
    TRY(amg_new_r(amg, l, coarse, nnz, &offsets));
    t.r = amg_rows_of(&l->r);
    TRY(amg_count_blocks_cuda(amg->ctx, &t));
    TRY(spmv_expand_offsets(amg->ctx, t.counts, 32, t.offsets, t.aggregates));
    TRY(amg_block_transpose_cuda(amg->ctx, amg->type, &t));
done:
    return st;
}

/* Nodes beside a node, from which on rows of P'AP are taken to be long. Grids of two dimensions have 9. */
static const double MANY_NODES = 12;

static spmv_status galerkin(struct amg *amg, struct amg_level *l, struct amg_level *next, struct amg_pool *work,
                            double *mass, bool *made)
{
    spmv_status st = SPMV_OK;
    struct amg_block_product ap = with_a(l, "amg A P"), rap;
    const int64_t blocks = l->a.nnz / l->nulls;
    const double nodes = (double)l->a.nnz / (double)l->rows / l->block; /* beside a node */
    ap.right = amg_rows_of(&l->p);
    ap.team = AMG_USUAL_TEAM;
    TRY(transpose(amg, l, work));
    TRY(amg_block_multiply(amg, work, &ap, 2 * blocks, NULL));
    rap = ap;
    rap.name = "amg R (A P)";
    rap.rows = l->r.rows;
    rap.tall = l->nulls;
    rap.alike = false;
    rap.expected = nodes <= MANY_NODES ? 16 : 2 * nodes;
    rap.team = nodes <= MANY_NODES ? AMG_USUAL_TEAM : AMG_SEVERAL_WARPS;
    rap.left = amg_rows_of(&l->r);
    rap.sorted_rows = true;
    rap.finished = &ap.to;
    rap.diagonal = l->diagonal;
    rap.mass = mass;
    TRY(amg_alloc(work, (rap.rows + 1) * 8, (void **)&rap.lengths));
    TRY(amg_block_multiply(amg, work, &rap, blocks, NULL));
    TRY(amg_block_result(amg, &next->pool, &rap, rap.rows, &next->a, &next->values, made));
done:
    return st;
}

spmv_status amg_block_galerkin(struct amg *amg, struct amg_level *l, struct amg_level *next, double *mass, bool *made)
{
    struct amg_pool work = {.ctx = amg->ctx};
    const int blocks = l->pool.blocks;
    const int64_t bytes = l->pool.bytes;
    *made = false;
    if (l->p.nnz / l->nulls > UINT32_MAX)
        return SPMV_OK;
    const spmv_status st = galerkin(amg, l, next, &work, mass, made);
    amg_release(&work);
    return end(&l->pool, blocks, bytes, st, *made);
}
