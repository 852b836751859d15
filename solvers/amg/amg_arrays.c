/* The arrays of algebraic multigrid: memory, numbers that the host reads, and new matrices.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/amg/amg_internal.h"

/* ------------------------------------------------------------------- memory */

spmv_status amg_alloc(struct amg_pool *pool, int64_t bytes, void **memory)
{
    *memory = NULL;
    if (pool->blocks == AMG_BLOCKS)
        return context_fail(pool->ctx, SPMV_ERROR_LIMIT, "preconditioner amg: more than %d arrays", AMG_BLOCKS);
    const spmv_status st = context_alloc(pool->ctx, max_i64(bytes, 1), memory);
    if (st == SPMV_OK) {
        pool->block[pool->blocks++] = *memory;
        pool->bytes += bytes;
    }
    return st;
}

void amg_release_last(struct amg_pool *pool, int64_t bytes)
{
    context_free(pool->ctx, pool->block[--pool->blocks]);
    pool->bytes -= bytes;
}

void amg_release(struct amg_pool *pool)
{
    for (int i = 0; i < pool->blocks; i++)
        context_free(pool->ctx, pool->block[i]);
    pool->blocks = 0;
    pool->bytes = 0;
}

int64_t amg_type_size(const struct amg *amg)
{
    return (int64_t)spmv_type_size(amg->type);
}

bool amg_is_narrower(const struct amg *amg)
{
    return real_bytes(amg->type) < real_bytes(amg->m->type);
}

spmv_status amg_alloc_vector(const struct amg *amg, struct amg_pool *pool, int64_t n, void **memory)
{
    return amg_alloc(pool, n * amg_type_size(amg), memory);
}

/* ------------------------------------------------------------------ numbers */

spmv_status amg_read(const struct amg *amg, const void *from, int64_t bytes, void *host)
{
    return spmv_download(amg->ctx, from, host, bytes);
}

spmv_status amg_reduce(const struct amg *amg, struct amg_pool *work, spmv_op op, spmv_type type, const void *in,
                       int64_t n, void *host)
{
    spmv_status st = SPMV_OK;
    void *result = NULL;
    TRY(amg_alloc(work, 8, &result));
    TRY(spmv_reduce(amg->ctx, op, type, in, result, n));
    TRY(amg_read(amg, result, (int64_t)spmv_type_size(type), host));
done:
    return st;
}

spmv_status amg_find_largest(const struct amg *amg, spmv_type type, const void *values, int64_t n, void *host)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    void *result = NULL;
    TRY(amg_alloc(&work, 8, &result));
    TRY(spmv_map_reduce(amg->ctx, SPMV_MAP_ABS, SPMV_MAX, type, values, result, n));
    TRY(amg_read(amg, result, (int64_t)spmv_type_size(type), host));
done:
    amg_release(&work);
    return st;
}

/* ----------------------------------------------------------------- matrices */

struct amg_csr amg_rows_of(const spmv_csr *a)
{
    const struct amg_csr view = {a->row_ptr, a->row_ptr_bits, (int32_t *)a->col, (void *)a->val};
    return view;
}

int amg_entry_bits(const spmv_csr *a)
{
    return a->nnz <= INT32_MAX ? 32 : 64;
}

spmv_csr amg_new_view(const struct amg *amg, int64_t rows, int64_t cols, int64_t nnz)
{
    const spmv_csr view = {
        .rows = rows, .cols = cols, .nnz = nnz, .row_ptr_bits = 64, .type = amg->type, .memory = SPMV_MEMORY_CONTEXT};
    return view;
}

spmv_status amg_new_r(const struct amg *amg, struct amg_level *l, int64_t coarse, int64_t nnz, void **offsets)
{
    spmv_status st = SPMV_OK;
    void *col = NULL;
    TRY(amg_alloc(&l->pool, (coarse + 1) * 8, offsets));
    TRY(amg_alloc(&l->pool, nnz * 4, &col));
    TRY(amg_alloc_vector(amg, &l->pool, nnz, &l->r_values));
    l->r = amg_new_view(amg, coarse, l->rows, nnz);
    l->r.row_ptr = *offsets;
    l->r.col = col;
    l->r.val = l->r_values;
done:
    return st;
}

spmv_csr amg_with_values(const struct amg *amg, spmv_csr view, const void *values)
{
    view.val = values;
    view.type = amg->type;
    view.memory = SPMV_MEMORY_CONTEXT;
    return view;
}

spmv_status amg_sum_counts(const struct amg *amg, const int64_t *counts, int64_t n, int64_t *offsets, int64_t *total)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_expand_offsets(amg->ctx, counts, 64, offsets, n));
    TRY(amg_read(amg, offsets + n, 8, total));
done:
    return st;
}

spmv_status amg_new_entries(struct amg *amg, struct amg_pool *pool, int64_t rows, void *offsets, int64_t total,
                            int64_t cols, int64_t most, spmv_csr *m, void **values)
{
    spmv_status st = SPMV_OK;
    void *col = NULL;
    *m = amg_new_view(amg, rows, cols, total);
    if (total > most) {
        amg_release_last(pool, (rows + 1) * 8);
        goto done;
    }
    TRY(amg_alloc(pool, total * 4, &col));
    TRY(amg_alloc_vector(amg, pool, total, values));
    m->row_ptr = offsets;
    m->col = col;
    m->val = *values;
done:
    return st;
}

spmv_status amg_new_rows(struct amg *amg, struct amg_pool *pool, int64_t rows, const int64_t *counts, int64_t cols,
                         int64_t most, spmv_csr *m, void **values)
{
    spmv_status st = SPMV_OK;
    int64_t total = 0;
    void *offsets = NULL;
    TRY(amg_alloc(pool, (rows + 1) * 8, &offsets));
    TRY(amg_sum_counts(amg, counts, rows, offsets, &total));
    TRY(amg_new_entries(amg, pool, rows, offsets, total, cols, most, m, values));
done:
    return st;
}
