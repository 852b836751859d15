/* Method "octets" of the backend cuda: plans and products of several vectors (octets.cuh).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>

#include "product/cuda/octets/octets.cuh"
#include "product/cuda/spmv_types.cuh"

namespace
{

/* The bytes of scratch memory that the sums of tiles may take, unless a block of columns needs more. Tests
 * build with less. */
#ifndef SPMV_OCTETS_SCRATCH
#define SPMV_OCTETS_SCRATCH (64 << 20)
#endif

struct octets_state {
    octets::structure structure;
    int columns_at_once;
    void *memory, *empty, *far, *heads, *tails;
};

octets_state *state_of(const spmv_plan *plan)
{
    return (octets_state *)plan->state;
}

/* The size of a part of an allocation, so that the next part is aligned. */
int64_t aligned(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Multiplies j.columns columns, PACK at a time. */
template <int PACK, typename T, typename Stored, typename Element>
spmv_status run_with(const spmv_plan *plan, octets::job<T, Stored, Element> j)
{
    spmv_context *const ctx = plan->ctx;
    j.lanes_log = std::min(lanes_log_for(j.columns, PACK), (int)octets::MOST_LANES_LOG);
    const int subwarps = octets::THREADS >> j.lanes_log;
    const int64_t in_columns = ceil_divide((int64_t)j.columns, (int64_t)PACK << j.lanes_log);
    j.tile_blocks = (unsigned)ceil_divide(j.p.tiles * octets::QUADS * octets::QUAD, (int64_t)subwarps);
    j.blocks = j.tile_blocks + (unsigned)ceil_divide(j.p.empties, (int64_t)subwarps * octets::EMPTY_ROWS);
    const spmv_status st = launch(ctx, "spmv octets", (int)(j.blocks * in_columns), octets::THREADS,
                                  octets::multiply<PACK, T, Stored, Element>, j);
    if (st != SPMV_OK || j.p.tiles <= 1)
        return st;
    j.blocks = (unsigned)(j.p.fars + ceil_divide(j.p.tiles, (int64_t)subwarps));
    return launch_early(ctx, "spmv octets join", (int)(j.blocks * in_columns), octets::THREADS,
                        octets::join<PACK, T, Stored, Element>, j);
}

template <typename T, typename Stored, typename Element>
spmv_status apply(const spmv_plan *plan, const struct plan_product *p)
{
    const octets_state *const s = state_of(plan);
    const spmv_csr &a = plan->a;
    const octets::job<T, Stored, Element> j = {s->structure,
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
                                               (T *)s->heads,
                                               (T *)s->tails,
                                               {*(const T *)p->alpha, *(const T *)p->beta, p->beta_zero}};
    return in_packs<Element>(plan, p, [&](auto pack, int first, int columns) {
        constexpr int PACK = decltype(pack)::value;
        return in_blocks(j, first, columns, PACK << octets::MOST_LANES_LOG, s->columns_at_once,
                         [&](const auto &now) { return run_with<PACK>(plan, now); });
    });
}

int blocks_for(int64_t n)
{
    return (int)ceil_divide(n, (int64_t)octets::THREADS);
}

spmv_status cleared(spmv_context *ctx, void *memory, int64_t bytes)
{
    return on_device(ctx, [&] {
        return cuda_check(ctx, cudaMemsetAsync(memory, 0, (size_t)bytes, (cudaStream_t)ctx->stream), "cudaMemsetAsync");
    });
}

/* Marks the ends of rows, ranks the rows, and lists those without entries, if there are any. Waits. */
spmv_status rank_rows(spmv_plan *plan, octets_state *s, int64_t quads)
{
    spmv_context *const ctx = plan->ctx;
    octets::structure &p = s->structure;
    const int64_t counts = aligned((quads + 1) * 4);
    void *memory = nullptr;
    int32_t with_entries = 0;
    spmv_status st = spmv_alloc(ctx, counts + ctx->backend->scan_scratch(ctx, SPMV_I32, quads + 1), &memory);
    if (st == SPMV_OK)
        st = cleared(ctx, p.ends, counts);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv octets ends", blocks_for(p.rows), octets::THREADS, octets::mark_ends, p);
        });
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv octets counts", blocks_for(quads + 1), octets::THREADS, octets::count_ends,
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
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv octets rows", blocks_for(p.rows), octets::THREADS, octets::list_rows, p);
        });
    return st;
}

/* Finds where the rows begin that cross tiles, and lists those of many tiles. Waits. */
spmv_status find_origins(spmv_plan *plan, octets_state *s)
{
    spmv_context *const ctx = plan->ctx;
    octets::structure &p = s->structure;
    unsigned fars = 0;
    if (p.tiles == 0)
        return SPMV_OK;
    /* A cell for their number, then the list. */
    spmv_status st = plan_alloc(plan, (1 + p.tiles / octets::GROUP) * 4, &s->far);
    p.far = (int32_t *)s->far + 1;
    if (st == SPMV_OK)
        st = cleared(ctx, s->far, 4);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv octets origins", blocks_for(p.tiles), octets::THREADS, octets::find_origins, p,
                          (unsigned *)s->far);
        });
    if (st == SPMV_OK)
        st = spmv_download(ctx, s->far, &fars, (int64_t)sizeof fars);
    p.fars = fars;
    return st;
}

/* Memory for the sums of rows that cross tiles. */
spmv_status make_sums(spmv_plan *plan, octets_state *s)
{
    const int64_t size = (int64_t)spmv_type_size(plan->sums), tiles = max_i64(s->structure.tiles, 1);
    const int64_t pack = 16 / min_i64((int64_t)spmv_type_size(plan->type), 16), block = pack << octets::MOST_LANES_LOG;
    const int64_t at_once = max_i64(SPMV_OCTETS_SCRATCH / (2 * tiles * size) / block * block, block);
    s->columns_at_once = (int)min_i64(at_once, INT32_MAX / 2);
    const int64_t each = tiles * min_i64(plan->vectors, s->columns_at_once) * size;
    const spmv_status st = plan_alloc(plan, each, &s->heads);
    return st != SPMV_OK ? st : plan_alloc(plan, each, &s->tails);
}

} // namespace

extern "C" spmv_status octets_cuda_prepare(spmv_plan *plan)
{
    spmv_status st = plan_new_state(plan, (int64_t)sizeof(octets_state));
    if (st != SPMV_OK || plan->a.rows == 0)
        return st;
    octets_state *const s = state_of(plan);
    const spmv_csr &a = plan->a;
    const int64_t tiles = ceil_divide(a.nnz, (int64_t)octets::TILE), quads = tiles * octets::QUADS;
    const int64_t each = aligned((quads + 1) * 4);
    if (!plan->facts.named) {
        st = plan_count_rows_cuda(plan);
        plan->declined = plan->method->pays(&plan->facts);
    }
    if (st != SPMV_OK || plan->declined != nullptr)
        return st;
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
                    0,
                    nullptr,
                    0};
    if (st == SPMV_OK)
        st = rank_rows(plan, s, quads);
    if (st == SPMV_OK)
        st = find_origins(plan, s);
    return st != SPMV_OK ? st : make_sums(plan, s);
}

extern "C" spmv_status octets_cuda_apply(const spmv_plan *plan, const struct plan_product *product)
{
    return on_device(plan->ctx, [&] {
        return with_all_types(plan, [&](auto sums, auto stored, auto element) {
            return apply<decltype(sums), decltype(stored), decltype(element)>(plan, product);
        });
    });
}

extern "C" void octets_cuda_release(spmv_plan *plan)
{
    const octets_state *const s = state_of(plan);
    spmv_free(plan->ctx, s->memory);
    spmv_free(plan->ctx, s->empty);
    spmv_free(plan->ctx, s->far);
    spmv_free(plan->ctx, s->heads);
    spmv_free(plan->ctx, s->tails);
}
