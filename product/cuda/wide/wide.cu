/* Method "wide" of the backend cuda: plans and products of many vectors (wide.cuh).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>

#include "product/cuda/spmv_types.cuh"
#include "product/cuda/wide/wide.cuh"

namespace
{

/* The bytes of scratch memory that the sums of tiles may take, unless a block of columns needs more. Tests
 * build with less. */
#ifndef SPMV_WIDE_SCRATCH
#define SPMV_WIDE_SCRATCH (64 << 20)
#endif

struct wide_state {
    wide::structure structure;
    int columns_at_once;
    void *memory, *empty, *parts;
};

wide_state *state_of(const spmv_plan *plan)
{
    return (wide_state *)plan->state;
}

/* The size of a part of an allocation, so that the next part is aligned. */
int64_t aligned(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Multiplies j.columns columns, PACK at a time. */
template <int PACK, typename T, typename Stored, typename Element>
spmv_status run_with(const spmv_plan *plan, wide::job<T, Stored, Element> j)
{
    j.lanes_log = lanes_log_for(j.columns, PACK);
    const int subwarps = wide::THREADS >> j.lanes_log;
    const bool several = warp_lanes >> j.lanes_log >= wide::QUAD;
    const int64_t tiles = several ? subwarps / (wide::QUAD * wide::QUADS) : 1; /* of a block */
    const int64_t in_columns = ceil_divide((int64_t)j.columns, (int64_t)PACK << j.lanes_log);
    j.tile_blocks = (unsigned)ceil_divide(j.p.tiles, tiles);
    j.blocks = j.tile_blocks + (unsigned)ceil_divide(j.p.empties, (int64_t)subwarps * wide::EMPTY_ROWS);
    return launch(
        plan->ctx, "spmv wide", (int)(j.blocks * in_columns), wide::THREADS,
        several ? wide::multiply<PACK, true, T, Stored, Element> : wide::multiply<PACK, false, T, Stored, Element>, j);
}

/* Multiplies `columns` columns from column `first` on. Those beyond whole blocks of 512 bytes have a
 * launch of their own, with fewer lanes for each. */
template <int PACK, typename T, typename Stored, typename Element>
spmv_status run(const spmv_plan *plan, wide::job<T, Stored, Element> j, int first, int columns)
{
    constexpr int BLOCK = PACK * warp_lanes;
    spmv_status st = SPMV_OK;
    for (const int end = first + columns; first < end && st == SPMV_OK; first += j.columns) {
        const int left = std::min(end - first, state_of(plan)->columns_at_once);
        j.columns = left > BLOCK ? left / BLOCK * BLOCK : left;
        wide::job<T, Stored, Element> now = j;
        now.x = j.x + first;
        now.y = j.y + first;
        st = run_with<PACK>(plan, now);
    }
    return st;
}

template <typename T, typename Stored, typename Element>
spmv_status apply(const spmv_plan *plan, const struct plan_product *p)
{
    const wide_state *const s = state_of(plan);
    const spmv_csr &a = plan->a;
    const wide::job<T, Stored, Element> j = {s->structure,
                                             a.col,
                                             (const Stored *)a.val,
                                             (uintptr_t)a.col % 16 == 0 && (uintptr_t)a.val % 16 == 0,
                                             (const Element *)p->x,
                                             (Element *)p->y,
                                             (uint32_t)(plan->x_stride * (int64_t)sizeof(Element)),
                                             plan->y_stride,
                                             0,
                                             0,
                                             0,
                                             0,
                                             (uint64_t *)s->parts,
                                             {*(const T *)p->alpha, *(const T *)p->beta, p->beta_zero}};
    return in_packs<Element>(plan, p, [&](auto pack, int first, int columns) {
        return run<decltype(pack)::value>(plan, j, first, columns);
    });
}

int blocks_for(int64_t n)
{
    return (int)ceil_divide(n, (int64_t)wide::THREADS);
}

spmv_status cleared(spmv_context *ctx, void *memory, int64_t bytes)
{
    return on_device(ctx, [&] {
        return cuda_check(ctx, cudaMemsetAsync(memory, 0, (size_t)bytes, (cudaStream_t)ctx->stream), "cudaMemsetAsync");
    });
}

/* Marks the ends of rows, ranks the rows, and lists those without entries, if there are any. Waits. */
spmv_status rank_rows(spmv_plan *plan, wide_state *s, int64_t quads)
{
    spmv_context *const ctx = plan->ctx;
    wide::structure &p = s->structure;
    const int64_t counts = aligned((quads + 1) * 4);
    void *memory = nullptr;
    int32_t with_entries = 0;
    spmv_status st = spmv_alloc(ctx, counts + ctx->backend->scan_scratch(ctx, SPMV_I32, quads + 1), &memory);
    if (st == SPMV_OK)
        st = cleared(ctx, p.ends, counts);
    if (st == SPMV_OK)
        st = on_device(
            ctx, [&] { return launch(ctx, "spmv wide ends", blocks_for(p.rows), wide::THREADS, wide::mark_ends, p); });
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv wide counts", blocks_for(quads + 1), wide::THREADS, wide::count_ends,
                          (const uint32_t *)p.ends, (int32_t *)memory, quads + 1);
        });
    if (st == SPMV_OK)
        st = ctx->backend->scan(ctx, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_I32, memory, p.rank, quads + 1,
                                (char *)memory + counts);
    if (st == SPMV_OK)
        st = spmv_download(ctx, p.rank + quads, &with_entries, (int64_t)sizeof with_entries);
    spmv_free(ctx, memory);
    p.empties = p.rows - with_entries;
    if (st == SPMV_OK && p.empties > 0) {
        st = plan_alloc(plan, p.rows * 4, &s->empty);
        p.empty = (int32_t *)s->empty;
        p.row = p.empty + p.empties;
    }
    if (st == SPMV_OK && p.empties > 0)
        st = on_device(
            ctx, [&] { return launch(ctx, "spmv wide rows", blocks_for(p.rows), wide::THREADS, wide::list_rows, p); });
    if (st == SPMV_OK && p.tiles > 0)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv wide origins", blocks_for(p.tiles), wide::THREADS, wide::find_origins, p);
        });
    return st;
}

/* Memory for the parts of rows that cross blocks. */
spmv_status make_parts(spmv_plan *plan, wide_state *s)
{
    const int64_t size = 2 * (int64_t)spmv_type_size(plan->sums), tiles = max_i64(s->structure.tiles, 1);
    const int64_t block = 16 * warp_lanes / min_i64((int64_t)spmv_type_size(plan->type), 16);
    const int64_t at_once = max_i64(SPMV_WIDE_SCRATCH / (tiles * size) / block * block, block);
    s->columns_at_once = (int)min_i64(at_once, INT32_MAX / 2);
    const int64_t bytes = tiles * min_i64(plan->vectors, s->columns_at_once) * size;
    const spmv_status st = plan_alloc(plan, bytes, &s->parts);
    return st != SPMV_OK ? st : cleared(plan->ctx, s->parts, bytes);
}

} // namespace

extern "C" spmv_status wide_cuda_prepare(spmv_plan *plan)
{
    spmv_status st = plan_new_state(plan, (int64_t)sizeof(wide_state));
    if (st != SPMV_OK || plan->a.rows == 0)
        return st;
    wide_state *const s = state_of(plan);
    const spmv_csr &a = plan->a;
    const int64_t tiles = ceil_divide(a.nnz, (int64_t)wide::TILE), quads = tiles * wide::QUADS;
    const int64_t each = aligned((quads + 1) * 4);
    st = plan_alloc(plan, 2 * each + tiles * 4, &s->memory);
    char *const memory = (char *)s->memory;
    s->structure = {a.rows,
                    a.nnz,
                    tiles,
                    a.row_ptr,
                    a.row_ptr_bits == 64,
                    (uint32_t *)memory,
                    (int32_t *)(memory + each),
                    (int32_t *)(memory + 2 * each),
                    nullptr,
                    nullptr,
                    0};
    if (st == SPMV_OK)
        st = rank_rows(plan, s, quads);
    return st != SPMV_OK ? st : make_parts(plan, s);
}

extern "C" spmv_status wide_cuda_apply(const spmv_plan *plan, const struct plan_product *product)
{
    return on_device(plan->ctx, [&] {
        return with_all_types(plan, [&](auto sums, auto stored, auto element) {
            return apply<decltype(sums), decltype(stored), decltype(element)>(plan, product);
        });
    });
}

extern "C" void wide_cuda_release(spmv_plan *plan)
{
    const wide_state *const s = state_of(plan);
    spmv_free(plan->ctx, s->memory);
    spmv_free(plan->ctx, s->empty);
    spmv_free(plan->ctx, s->parts);
}
