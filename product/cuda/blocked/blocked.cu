/* Method "blocked" of the backend cuda: the plan sorts the matrix on the device, and a product is
 * two launches (blocked.cuh). It declines where choose.c says so, and if there is no memory for a sorted
 * copy of the matrix.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <new>
#include <stdio.h>
#include <vector>

#include "product/cuda/blocked/blocked_plan.cuh"
#include "product/cuda/spmv_types.cuh"

extern "C" {
#include "core/plural.h"
#include "formats/matrix_internal.h"
#include "primitives/sort/sort_request.h"
}

namespace
{

enum {
    /* the least bytes of an interval for the usual shape, if columns are evenly distributed */
    ENOUGH = 128,
    SHARE = 1 << 16,      /* the most nonzeros of a share, where the device is full */
    LEAST_SHARE = 1 << 13 /* the least nonzeros of a share, where it is not */
};

/* The state of a plan; arrays are in the context's memory. */
struct blocked_state {
    tiles::statistics about;
    bool large;
    int columns; /* of a block */
    int64_t blocks, shares, sections, intervals;
    int64_t few; /* nonzeros gathered from memory */
    void *table, *long_rows, *sums, *counts;
    void *section_table, *first, *block_begins;
    void *column, *val, *place, *before, *shift, *products;
    void *from; /* where values may be replaced: the nonzero of each place */
};

/* Temporary memory of the preparation, in the context's memory. */
struct making {
    void *memory; /* of the packing */
    /* of the sorts: indices[0] is from, indices[1] is order */
    void *keys[2], *indices[3], *its_tile;
};

int64_t index_bytes(const spmv_plan *plan)
{
    return plan->a.row_ptr_bits / 8; /* 8 bytes from 2^31 nonzeros on */
}

template <typename T> spmv_status keep(spmv_plan *plan, const std::vector<T> &table, void **memory)
{
    const int64_t bytes = (int64_t)(table.size() * sizeof(T));
    const spmv_status st = plan_alloc(plan, bytes, memory);
    return st != SPMV_OK || bytes == 0 ? st : spmv_upload(plan->ctx, table.data(), *memory, bytes);
}

/* The largest shared memory of a block on this device. */
spmv_status shared_limit(spmv_context *ctx, int *bytes)
{
    return cuda_check(
        ctx,
        cudaDeviceGetAttribute(bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, ((cuda_state *)ctx->device)->device),
        "cudaDeviceGetAttribute");
}

/* ------------------------------------------------------------- tiles of rows */

/* Allocates memory for the largest possible number of tiles, and for the packing. */
template <typename Packing> spmv_status make_table(spmv_plan *plan, const Packing &p, making *m, blocked_state *s)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t most = p.most_tiles(), table = tiles::aligned((most + 1) * (int64_t)sizeof(tiles::tile));
    if (most > INT32_MAX)
        return context_fail(ctx, SPMV_ERROR_LIMIT,
                            "spmv_plan_create: up to %lld tiles exceed the number of blocks of a launch",
                            (long long)most);
    spmv_status st = plan_alloc(plan, table + p.most_long_rows() * (int64_t)sizeof(tiles::long_row), &s->table);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, tiles::packing_bytes(p.chunks), &m->memory);
    if (st != SPMV_OK)
        return st;
    s->long_rows = (char *)s->table + table;
    return tiles::cleared(ctx, m->memory, tiles::packing_bytes(p.chunks));
}

template <typename Shape, typename Offset> spmv_status make_tiles(spmv_plan *plan, making *m, blocked_state *s)
{
    using packing = tiles::packing<Shape, Offset>;
    spmv_context *const ctx = plan->ctx;
    const spmv_csr &a = plan->a;
    const packing p = {(const Offset *)a.row_ptr, a.rows, a.nnz, packing::chunks_for(a.rows, a.nnz), nullptr};
    spmv_status st = make_table(plan, p, m, s);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return tiles::pack(ctx, "spmv blocked pack", p, (tiles::tile *)s->table, (tiles::long_row *)s->long_rows,
                               (tiles::statistics *)m->memory);
        });
    if (st == SPMV_OK)
        st = spmv_download(ctx, m->memory, &s->about, (int64_t)sizeof s->about);
    return st != SPMV_OK ? st : tiles::make_sums(plan, s->about.packed, &s->sums, &s->counts);
}

/* ----------------------------------------------------------- blocks of columns */

/* Allocates the arrays of the sorts. The input of a sort lies in one of its two output arrays
 * (backend.h). */
spmv_status make_sort_room(spmv_plan *plan, making *m, blocked_state *s)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t nnz = plan->a.nnz;
    spmv_status st = SPMV_OK;
    if (plan->updates) {
        st = plan_alloc(plan, nnz * index_bytes(plan), &s->from);
        m->indices[0] = s->from;
    } else {
        st = spmv_alloc(ctx, nnz * index_bytes(plan), &m->indices[0]);
    }
    for (int i = 1; i < 3 && st == SPMV_OK; i++)
        st = spmv_alloc(ctx, nnz * index_bytes(plan), &m->indices[i]);
    for (int i = 0; i < 2 && st == SPMV_OK; i++)
        st = spmv_alloc(ctx, nnz * 4, &m->keys[i]);
    return st != SPMV_OK ? st : spmv_alloc(ctx, nnz * 4, &m->its_tile);
}

void free_making(const spmv_plan *plan, making *m, const blocked_state *s)
{
    spmv_free(plan->ctx, m->memory);
    if (m->indices[0] != s->from)
        spmv_free(plan->ctx, m->indices[0]);
    spmv_free(plan->ctx, m->indices[1]);
    spmv_free(plan->ctx, m->indices[2]);
    spmv_free(plan->ctx, m->keys[0]);
    spmv_free(plan->ctx, m->keys[1]);
    spmv_free(plan->ctx, m->its_tile);
}

/* Sorts indices by keys in 0 ... keys - 1, stably. make(keys, indices) queues the kernels that
 * write the unsorted ones to these addresses. The sorted ones are in m->keys[0] and out. */
template <typename Make>
spmv_status sort_by(spmv_plan *plan, making *m, int64_t keys, void *out, void *spare, const Make &make)
{
    spmv_context *const ctx = plan->ctx;
    int bits = 0;
    while ((keys - 1) >> bits != 0)
        bits++;
    if (bits == 0)
        return make(m->keys[0], out);
    const struct sort_rung *rung = ctx->backend->sort_rungs;
    while (rung[1].name != nullptr)
        rung++;
    sort_request r = {};
    r.key_bytes = 4;
    r.value_bytes = (int)index_bytes(plan);
    r.end_bit = bits;
    r.out_keys = m->keys[0];
    r.spare_keys = m->keys[1];
    r.out_values = out;
    r.spare_values = spare;
    r.n = plan->a.nnz;
    const bool even = sort_passes(&r, rung->digit_bits) % 2 == 0;
    void *const in_keys = even ? r.out_keys : r.spare_keys, *const in_values = even ? out : spare;
    r.in_keys = in_keys;
    r.in_values = in_values;
    void *scratch = nullptr;
    spmv_status st = spmv_alloc(ctx, rung->scratch(&r), &scratch);
    if (st == SPMV_OK)
        st = make(in_keys, in_values);
    if (st == SPMV_OK)
        st = rung->run(ctx, &r, scratch);
    spmv_free(ctx, scratch);
    return st;
}

/* Cuts a share, from begin to end, into sections: one for each block of columns with enough
 * nonzeros, and one for the blocks between. */
void cut_share(const std::vector<int64_t> &begins, int64_t begin, int64_t end, int64_t few, int32_t *block,
               std::vector<blocked::section> *sections, int64_t *gathered)
{
    const size_t first = sections->size();
    while (begin < end) {
        while (begins[(size_t)*block + 1] <= begin)
            ++*block;
        const int64_t until = std::min(end, begins[(size_t)*block + 1]);
        if (until - begin >= few) {
            sections->push_back({begin, until, *block, -1});
        } else {
            *gathered += until - begin;
            if (sections->size() > first && sections->back().last >= 0) {
                sections->back().end = until;
                sections->back().last = *block;
            } else {
                sections->push_back({begin, until, *block, *block});
            }
        }
        begin = until;
    }
}

/* The number of equal shares of the sorted nonzeros: at most SHARE nonzeros a share, and a whole
 * number of shares for each block that the device holds at once. If there is less work, one share
 * for each block or less. */
int64_t shares_for(int64_t nnz, int64_t at_once)
{
    if (SPMV_BLOCKED_SMALL)
        return std::max<int64_t>(nnz / 200, 1);
    return nnz > at_once * SHARE ? ceil_divide(nnz, at_once * SHARE) * at_once
                                 : std::min(at_once, ceil_divide(nnz, (int64_t)LEAST_SHARE));
}

spmv_status cut_shares(spmv_plan *plan, blocked_state *s, int resident)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t nnz = plan->a.nnz, size = (int64_t)spmv_type_size(plan->type);
    const int64_t few = ceil_divide((int64_t)s->columns * size, (int64_t)SECTOR_BYTES);
    std::vector<int64_t> begins((size_t)s->blocks + 1);
    spmv_status st = spmv_download(ctx, s->block_begins, begins.data(), (int64_t)(begins.size() * sizeof begins[0]));
    if (st != SPMV_OK)
        return st;
    s->shares = shares_for(nnz, (int64_t)((const cuda_state *)ctx->device)->multiprocessors * resident);
    std::vector<blocked::section> sections;
    std::vector<int32_t> first(1, 0);
    int32_t block = 0;
    for (int64_t p = 0; p < s->shares; p++) {
        const int64_t each = nnz / s->shares, more = nnz % s->shares;
        const int64_t begin = p * each + std::min(p, more);
        cut_share(begins, begin, begin + each + (p < more), few, &block, &sections, &s->few);
        first.push_back((int32_t)sections.size());
    }
    s->sections = (int64_t)sections.size();
    st = keep(plan, sections, &s->section_table);
    return st != SPMV_OK ? st : keep(plan, first, &s->first);
}

/* Allocates columns, values and products in the order of the blocks, padded to whole packs. */
spmv_status make_sorted(spmv_plan *plan, blocked_state *s)
{
    const int64_t padded = tiles::aligned(plan->a.nnz), size = (int64_t)spmv_type_size(plan->type);
    const int64_t stored = (int64_t)spmv_type_size(plan->a.type), tail = padded - plan->a.nnz;
    spmv_status st = plan_alloc(plan, padded * 2, &s->column);
    if (st == SPMV_OK)
        st = tiles::cleared(plan->ctx, (char *)s->column + plan->a.nnz * 2, tail * 2);
    if (st == SPMV_OK && plan->a.val != nullptr)
        st = plan_alloc(plan, padded * stored, &s->val);
    if (st == SPMV_OK && plan->a.val != nullptr)
        st = tiles::cleared(plan->ctx, (char *)s->val + plan->a.nnz * stored, tail * stored);
    return st != SPMV_OK ? st : plan_alloc(plan, padded * size, &s->products);
}

spmv_status take_values(const spmv_plan *plan, const blocked_state *s, const void *from)
{
    return plan->a.val == nullptr || plan->a.nnz == 0
               ? SPMV_OK
               : take_values_cuda(plan->ctx, plan->a.type, false, plan->a.val, from, plan->a.row_ptr_bits, s->val,
                                  plan->a.nnz);
}

template <typename Index> spmv_status sort_columns(spmv_plan *plan, making *m, blocked_state *s, int resident)
{
    spmv_context *const ctx = plan->ctx;
    const spmv_csr &a = plan->a;
    const int grid = grid_for(a.nnz, blocked::PLAN_THREADS);
    spmv_status st = plan_alloc(plan, (s->blocks + 1) * 8, &s->block_begins);
    if (st == SPMV_OK)
        st = sort_by(plan, m, s->blocks, m->indices[0], m->indices[1], [&](void *keys, void *indices) {
            return on_device(ctx, [&] {
                return launch(ctx, "spmv blocked number", grid, blocked::PLAN_THREADS, blocked::number<Index>, a.col,
                              s->columns, a.nnz, (int32_t *)keys, (Index *)indices);
            });
        });
    if (st == SPMV_OK)
        st = make_sorted(plan, s);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            const spmv_status step = launch(ctx, "spmv blocked begins", grid_for(s->blocks + 1, blocked::PLAN_THREADS),
                                            blocked::PLAN_THREADS, find_begins<int64_t>, (const int32_t *)m->keys[0],
                                            a.nnz, (int64_t *)s->block_begins, s->blocks);
            return step != SPMV_OK ? step
                                   : launch(ctx, "spmv blocked local", grid, blocked::PLAN_THREADS,
                                            blocked::local<Index>, a.col, (const int32_t *)m->keys[0],
                                            (const Index *)m->indices[0], s->columns, a.nnz, (uint16_t *)s->column);
        });
    if (st == SPMV_OK)
        st = take_values(plan, s, m->indices[0]);
    return st != SPMV_OK ? st : cut_shares(plan, s, resident);
}

/* Computes the arrays that locate the products of the tiles. */
template <typename Index> spmv_status find_intervals(spmv_plan *plan, making *m, blocked_state *s, int line)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t nnz = plan->a.nnz, lines = ceil_divide(nnz, (int64_t)warp_lanes);
    const int grid = grid_for(nnz, blocked::PLAN_THREADS);
    const spmv_type type = sizeof(Index) == 8 ? SPMV_I64 : SPMV_I32;
    const tiles::tile *const table = (const tiles::tile *)s->table;
    int32_t *const its_tile = (int32_t *)m->its_tile;
    const Index *const from = (const Index *)m->indices[0], *const order = (const Index *)m->indices[1];
    void *scratch = nullptr;
    Index count = 0;
    spmv_status st = on_device(ctx, [&] {
        return launch(ctx, "spmv blocked tile of", (int)s->about.packed.tiles, blocked::PLAN_THREADS, blocked::tile_of,
                      table, its_tile);
    });
    if (st == SPMV_OK)
        st = sort_by(
            plan, m, (int64_t)s->about.packed.tiles, m->indices[1], m->indices[2], [&](void *keys, void *indices) {
                return on_device(ctx, [&] {
                    return launch(ctx, "spmv blocked tile keys", grid, blocked::PLAN_THREADS, blocked::tile_keys<Index>,
                                  (const int32_t *)its_tile, from, nnz, (int32_t *)keys, (Index *)indices);
                });
            });
    if (st == SPMV_OK)
        st = plan_alloc(plan, nnz * 2, &s->place);
    if (st == SPMV_OK)
        st = plan_alloc(plan, (lines + 1) * (int64_t)sizeof(Index), &s->before);
    Index *const before = (Index *)s->before;
    if (st == SPMV_OK)
        st = tiles::cleared(ctx, before + lines, (int64_t)sizeof(Index));
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv blocked mark", grid, blocked::PLAN_THREADS, blocked::mark<Index>, table,
                          (const int32_t *)its_tile, from, order, nnz, line, (uint16_t *)s->place, before);
        });
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, ctx->backend->scan_scratch(ctx, type, lines + 1), &scratch);
    if (st == SPMV_OK)
        st = ctx->backend->scan(ctx, SPMV_EXCLUSIVE, SPMV_ADD, type, before, before, lines + 1, scratch);
    if (st == SPMV_OK)
        st = spmv_download(ctx, before + lines, &count, (int64_t)sizeof count);
    spmv_free(ctx, scratch);
    s->intervals = (int64_t)count;
    if (st == SPMV_OK)
        st = plan_alloc(plan, s->intervals * (int64_t)sizeof(Index), &s->shift);
    return st != SPMV_OK ? st : on_device(ctx, [&] {
        return launch(ctx, "spmv blocked shifts", grid, blocked::PLAN_THREADS, blocked::shifts<Index>, order,
                      (const Index *)before, nnz, (Index *)s->shift);
    });
}

template <typename Shape, typename T, typename Index> spmv_status make(spmv_plan *plan, blocked_state *s)
{
    making m = {};
    s->columns = blocked::columns_of<typename Shape::x, T>();
    s->blocks = ceil_divide(plan->a.cols, (int64_t)s->columns);
    spmv_status st = make_tiles<typename Shape::tile, Index>(plan, &m, s);
    if (st == SPMV_OK && plan->a.nnz > 0) {
        st = make_sort_room(plan, &m, s);
        if (st == SPMV_OK)
            st = sort_columns<Index>(plan, &m, s, Shape::x::RESIDENT);
        if (st == SPMV_OK)
            st = find_intervals<Index>(plan, &m, s, Shape::tile::LINE);
    }
    free_making(plan, &m, s);
    return st;
}

/* Whether intervals of the usual shape are long enough if columns are evenly distributed. */
template <typename T> bool usual_will_do(int64_t cols)
{
    using usual = typename blocked::shapes<T>::usual;
    const int64_t blocks = ceil_divide(cols, (int64_t)blocked::columns_of<typename usual::x, T>());
    return (int64_t)usual::tile::CAPACITY * (int64_t)sizeof(T) >= ENOUGH * blocks;
}

template <typename T> spmv_status choose_shape(spmv_plan *plan, blocked_state *s)
{
    using large = typename blocked::shapes<T>::large;
    int limit = 0;
    const spmv_status st = shared_limit(plan->ctx, &limit);
    s->large = !usual_will_do<T>(plan->a.cols) && (int)large::x::BYTES <= limit &&
               blocked::tile_bytes<typename large::tile, T>() + 1024 <= limit;
    return st;
}

/* ------------------------------------------------------------------- the choice */

/* Counts the bytes of x for each nonzero of a sample (blocked::sample). Waits. */
spmv_status count_x_bytes(spmv_plan *plan)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t nnz = plan->a.nnz, cache = ((const cuda_state *)ctx->device)->cache_bytes;
    blocked::sample s = {nnz, (int32_t)min_i64(nnz, cache / blocked::LINE), 0, 0};
    while (spmv_type_size(plan->type) << s.shift < blocked::LINE)
        s.shift++;
    s.words = (plan->a.cols >> s.shift) / 32 + 1;
    const int64_t head = tiles::aligned((int64_t)sizeof(unsigned long long)),
                  bytes = head + blocked::WINDOWS * s.words * 4;
    unsigned long long found = 0;
    void *memory = nullptr;
    spmv_status st = context_alloc(ctx, bytes, &memory);
    if (st == SPMV_OK)
        st = tiles::cleared(ctx, memory, bytes);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv blocked lines", grid_for(s.size(), blocked::PLAN_THREADS), blocked::PLAN_THREADS,
                          blocked::mark_lines, s, plan->a.col, (uint32_t *)((char *)memory + head),
                          (unsigned long long *)memory);
        });
    if (st == SPMV_OK)
        st = spmv_download(ctx, memory, &found, (int64_t)sizeof found);
    spmv_free(ctx, memory);
    plan->facts.x_bytes = blocked::LINE * ((double)found / (double)s.size());
    return st;
}

/* Describes the plan for users. */
void describe(spmv_plan *plan, const blocked_state *s)
{
    const int64_t nnz = plan->a.nnz;
    const double mean = s->intervals > 0 ? (double)nnz / (double)s->intervals : 0;
    const double size = (double)spmv_type_size(plan->type), index = (double)index_bytes(plan);
    const double stored = plan->a.val != nullptr ? (double)spmv_type_size(plan->a.type) : 0;
    int used = snprintf(plan->layout, sizeof plan->layout, "%lld block%s of %d column%s", (long long)s->blocks,
                        plural(s->blocks), s->columns, plural(s->columns));
    if (nnz > 0)
        used +=
            snprintf(plan->layout + used, sizeof plan->layout - (size_t)used,
                     ", in %lld part%s and %lld section%s (%.3g %% of the entries gathered from memory); %d tile%s, "
                     "in intervals of %.4g products on average; %.3g bytes per entry in both launches",
                     (long long)s->shares, plural(s->shares), (long long)s->sections, plural(s->sections),
                     100.0 * (double)s->few / (double)nnz, s->about.packed.tiles, plural(s->about.packed.tiles), mean,
                     stored + 2 * size + 4 + index / warp_lanes + index / mean);
    snprintf(plan->layout + used, sizeof plan->layout - (size_t)used, "; %d row%s longer than a tile",
             s->about.packed.long_rows, plural(s->about.packed.long_rows));
}

/* ----------------------------------------------------------------- the product */

/* Launches a kernel that uses all of an SM's combined memory as shared memory. */
template <auto Kernel, typename... Arguments>
spmv_status launch_sharing(spmv_context *ctx, const char *name, launch_shape shape, Arguments... arguments)
{
    static uint64_t told;
    const spmv_status st =
        once_a_device(ctx, name, &told, (const void *)Kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100);
    return st != SPMV_OK ? st : launch_with_shared<Kernel>(ctx, name, shape, arguments...);
}

template <typename X, typename T, typename Stored>
spmv_status run_multiply(const spmv_plan *plan, const blocked_state *s, const T *x)
{
    const blocked::sorted_matrix<T, Stored> m = {(const blocked::section *)s->section_table,
                                                 (const int32_t *)s->first,
                                                 (const int64_t *)s->block_begins,
                                                 plan->a.cols,
                                                 (const uint16_t *)s->column,
                                                 (const Stored *)s->val,
                                                 (T *)s->products};
    return launch_sharing<blocked::multiply<X, T, Stored>>(plan->ctx, "spmv blocked multiply",
                                                           {(int)s->shares, X::BLOCK, (int)X::BYTES, true}, m, x);
}

template <typename Tile, typename T, typename Index>
spmv_status run_add(const spmv_plan *plan, const blocked_state *s, tiles::store_scaled<T> store)
{
    const int64_t nodes = (int64_t)s->about.packed.nodes;
    tiles::matrix<T, T> m = {};
    m.table = (const tiles::tile *)s->table;
    m.tiles = (int64_t)s->about.packed.tiles;
    m.nnz = plan->a.nnz;
    m.row_ptr = (const uint32_t *)plan->a.row_ptr;
    m.words = plan->a.row_ptr_bits / 32;
    m.long_rows = (const tiles::long_row *)s->long_rows;
    m.fragment_sums = (T *)s->sums;
    m.node_sums = s->sums != nullptr ? m.fragment_sums + nodes * tiles::FAN_IN : nullptr;
    m.node_counts = (unsigned *)s->counts;
    m.row_counts = s->counts != nullptr ? m.node_counts + nodes : nullptr;
    const blocked::intervals<T, Index> r = {(const uint16_t *)s->place, (const Index *)s->before,
                                            (const Index *)s->shift, (const T *)s->products};
    return launch_with_shared<blocked::add<Tile, T, Index, tiles::store_scaled<T>>>(
        plan->ctx, "spmv blocked add", {(int)m.tiles, Tile::BLOCK, blocked::tile_bytes<Tile, T>(), true}, m, r, store);
}

template <typename Shape, typename T, typename Stored>
spmv_status run(const spmv_plan *plan, const blocked_state *s, const T *x, tiles::store_scaled<T> store)
{
    const spmv_status st = plan->a.nnz > 0 ? run_multiply<typename Shape::x, T, Stored>(plan, s, x) : SPMV_OK;
    if (st != SPMV_OK)
        return st;
    return plan->a.row_ptr_bits == 64 ? run_add<typename Shape::tile, T, int64_t>(plan, s, store)
                                      : run_add<typename Shape::tile, T, int32_t>(plan, s, store);
}

/* Makes the plan, or declines. */
template <typename Shape, typename T> spmv_status make_if_it_pays(spmv_plan *plan, blocked_state *s)
{
    spmv_status st = plan->named ? SPMV_OK : count_x_bytes(plan);
    plan->facts.block_columns = blocked::columns_of<typename Shape::x, T>();
    plan->facts.tile_entries = Shape::tile::CAPACITY;
    plan->declined = plan->method->pays(&plan->facts);
    if (st != SPMV_OK || plan->declined != nullptr)
        return st;
    try {
        st = plan->a.row_ptr_bits == 64 ? make<Shape, T, int64_t>(plan, s) : make<Shape, T, int32_t>(plan, s);
    } catch (const std::bad_alloc &) {
        st = context_fail(plan->ctx, SPMV_ERROR_MEMORY, "spmv_plan_create: no memory for the parts of a matrix");
    }
    return st;
}

} // namespace

extern "C" spmv_status blocked_cuda_prepare(spmv_plan *plan)
{
    spmv_status st = plan_new_state(plan, (int64_t)sizeof(blocked_state));
    if (st != SPMV_OK)
        return st;
    blocked_state *const s = (blocked_state *)plan->state;
    if (plan->a.rows == 0)
        return SPMV_OK;
    st = with_types(plan, [&](auto sums, auto) {
        using T = decltype(sums);
        using shapes = blocked::shapes<T>;
        const spmv_status chosen = choose_shape<T>(plan, s);
        return chosen != SPMV_OK ? chosen
               : s->large        ? make_if_it_pays<typename shapes::large, T>(plan, s)
                                 : make_if_it_pays<typename shapes::usual, T>(plan, s);
    });
    if (st == SPMV_ERROR_MEMORY && !plan->named) {
        plan->declined = "there is no memory for a sorted copy of the matrix";
        plan->ctx->error[0] = '\0';
        st = SPMV_OK;
    }
    if (st == SPMV_OK && plan->declined == nullptr)
        describe(plan, s);
    return st;
}

extern "C" spmv_status blocked_cuda_update(spmv_plan *plan)
{
    const blocked_state *const s = (const blocked_state *)plan->state;
    return take_values(plan, s, s->from);
}

extern "C" spmv_status blocked_cuda_apply(const spmv_plan *plan, const struct plan_product *p)
{
    const blocked_state *const s = (const blocked_state *)plan->state;
    return on_device(plan->ctx, [&] {
        return with_types(plan, [&](auto sums, auto stored) {
            using T = decltype(sums);
            using Stored = decltype(stored);
            using shapes = blocked::shapes<T>;
            const tiles::store_scaled<T> store = {{*(const T *)p->alpha, *(const T *)p->beta, p->beta_zero}, (T *)p->y};
            return s->large ? run<typename shapes::large, T, Stored>(plan, s, (const T *)p->x, store)
                            : run<typename shapes::usual, T, Stored>(plan, s, (const T *)p->x, store);
        });
    });
}

extern "C" void blocked_cuda_release(spmv_plan *plan)
{
    const blocked_state *const s = (const blocked_state *)plan->state;
    void *const memory[] = {s->table, s->sums,  s->section_table, s->first, s->block_begins, s->column,
                            s->val,   s->place, s->before,        s->shift, s->products,     s->from};
    for (void *m : memory)
        spmv_free(plan->ctx, m);
}
