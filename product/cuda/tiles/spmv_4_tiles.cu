/* Method "tiles" of the backend cuda: the plan is made on the device, and a product is one launch
 * (spmv_4_tiles.cuh).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/plural.h"
#include "product/cuda/spmv_types.cuh"
#include "product/cuda/tiles/spmv_4_tiles_epilogue.cuh"
#include "product/cuda/tiles/spmv_4_tiles_hubs_form.cuh"
#include "product/cuda/tiles/spmv_4_tiles_plan.cuh"
#include "product/cuda/tiles/spmv_4_tiles_values.cuh"

namespace
{

enum way { LITTLE, USUAL };

/* The state of a plan; arrays are in the context's memory. */
struct tiles_state {
    tiles::statistics about;
    void *table, *narrow;
    /* ranges: starts of column ranges, after the table, or NULL; then long_rows */
    void *ranges, *long_rows;
    /* of fragments, then of nodes; of nodes, then of rows; NULL: no long rows */
    void *sums, *counts;
    /* sums of an epilogue's dot product, after the long rows, then its counters */
    void *tree;
    unsigned *tree_counts;
    int capacity;
    way how;
    float retained; /* the share of the matrix that the last-level cache retains */
    tiles::coded_values coded;
    tiles::plan_hubs hubs;
};

/* Allocates one memory block for the largest possible number of tiles: their table, column ranges,
 * long rows, the sums of an epilogue's dot product, and what is cleared here: its counters, the
 * statistics and the look-back states of the packing. */
template <typename Packing>
spmv_status make_block(spmv_plan *plan, const Packing &p, tiles::statistics **about, tiles_state *s)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t most = p.most_tiles();
    if (most > INT32_MAX)
        return context_fail(ctx, SPMV_ERROR_LIMIT,
                            "spmv_plan_create: up to %lld tiles exceed the number of blocks of a launch",
                            (long long)most);
    const bool may_use_ranges = plan->compression != SPMV_COMPRESSION_NONE && Packing::shape::MAY_USE_RANGES;
    const tiles::tree_size tree(most);
    const int64_t bytes[] = {tiles::aligned((most + 1) * (int64_t)sizeof(tiles::tile)),
                             may_use_ranges ? tiles::aligned(most * tiles::RANGES * (int64_t)sizeof(int32_t)) : 0,
                             tiles::aligned(p.most_long_rows() * (int64_t)sizeof(tiles::long_row)),
                             tiles::aligned(tree.sums * (int64_t)spmv_type_size(plan->sums)),
                             tiles::aligned(tree.counts * (int64_t)sizeof(unsigned)),
                             tiles::packing_bytes(p.chunks)};
    int64_t all = 0;
    for (int64_t b : bytes)
        all += b;
    const spmv_status st = plan_alloc(plan, all, &s->table);
    if (st != SPMV_OK)
        return st;
    char *at = (char *)s->table + bytes[0];
    s->ranges = may_use_ranges ? at : nullptr;
    s->long_rows = at += bytes[1];
    s->tree = at += bytes[2];
    s->tree_counts = (unsigned *)(at += bytes[3]);
    *about = (tiles::statistics *)(at + bytes[4]);
    return tiles::cleared(ctx, at, bytes[4] + bytes[5]);
}

/* Makes 16-bit columns, unless there is no memory for them. */
template <typename Packing>
spmv_status narrow(spmv_plan *plan, const Packing &p, tiles::statistics *about, tiles_state *s)
{
    enum { RESIDENT = 16 }; /* blocks of an SM */
    spmv_context *const ctx = plan->ctx;
    if (plan->compression == SPMV_COMPRESSION_NONE || plan->a.nnz == 0)
        return SPMV_OK;
    const spmv_status st = plan_alloc_if_room(plan, plan->a.nnz * 2, &s->narrow);
    const int64_t at_once = (int64_t)RESIDENT * ((const cuda_state *)ctx->device)->multiprocessors;
    return st != SPMV_OK || s->narrow == nullptr ? st : on_device(ctx, [&] {
        return launch_early(ctx, "spmv tiles narrow", (int)min_i64(p.most_tiles(), at_once), tiles::PLAN_THREADS,
                            tiles::narrow<Packing::CAPACITY / tiles::PLAN_THREADS>, (tiles::tile *)s->table,
                            plan->a.col, (int32_t *)s->ranges, (uint16_t *)s->narrow, about);
    });
}

/* Waits for the statistics. Keeps 16-bit columns if at least half of the tiles have them; for
 * fewer, the array does not pay off. */
spmv_status learn(spmv_plan *plan, const tiles::statistics *about, tiles_state *s)
{
    const spmv_status st = spmv_download(plan->ctx, about, &s->about, (int64_t)sizeof s->about);
    if (st == SPMV_OK && (s->about.narrow == 0 || 2 * s->about.narrow < s->about.filled)) {
        plan_free(plan, plan->a.nnz * 2, s->narrow);
        s->narrow = nullptr;
    }
    return st;
}

/* The parts of the chunks of a rank; NULL: only counts them. */
template <typename Packing> int64_t find_parts(const struct plan_ranks *ranks, tiles::rank_part *parts)
{
    int64_t all = 0;
    for (int64_t c = 0; c < ranks->chunks; c++) {
        const int64_t first = ranks->chunk[c], end = ranks->chunk[c + 1], entry = ranks->chunk_entry[c];
        const int64_t work = ranks->chunk_entry[c + 1] - entry + (end - first) * Packing::WEIGHT;
        const int64_t count = (work + Packing::CHUNK - 1) / Packing::CHUNK;
        for (int64_t k = 0; k < count; k++, all++)
            if (parts != nullptr)
                parts[all] = {first, end, entry + first * Packing::WEIGHT + k * work / count, k == 0};
    }
    return all;
}

/* Sets chunks and parts of a rank's packing. *memory: of the parts. */
template <typename Packing> spmv_status cut_for_ranks(spmv_plan *plan, Packing *p, void **memory)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t count = find_parts<Packing>(plan->ranks, nullptr);
    const int64_t bytes = count * (int64_t)sizeof(tiles::rank_part);
    tiles::rank_part *parts = nullptr;
    spmv_status st = host_alloc(ctx, bytes, "the tiles of a rank", (void **)&parts);
    if (st == SPMV_OK)
        st = context_alloc(ctx, bytes, memory);
    if (st == SPMV_OK) {
        (void)find_parts<Packing>(plan->ranks, parts);
        st = spmv_upload(ctx, parts, *memory, bytes);
    }
    host_free(parts);
    p->chunks = count;
    p->parts = (const tiles::rank_part *)*memory;
    return st;
}

/* Makes the tiles for a shape. */
template <typename Shape, typename Offset> spmv_status make_tiles(spmv_plan *plan, tiles_state *s)
{
    using packing = tiles::packing<Shape, Offset>;
    spmv_context *const ctx = plan->ctx;
    const spmv_csr &a = plan->a;
    packing p = {(const Offset *)a.row_ptr, a.rows, a.nnz, packing::chunks_for(a.rows, a.nnz), nullptr};
    tiles::statistics *about = nullptr;
    void *parts = nullptr;
    s->capacity = packing::CAPACITY;
    spmv_status st = plan->ranks != nullptr ? cut_for_ranks(plan, &p, &parts) : SPMV_OK;
    if (st == SPMV_OK)
        st = make_block(plan, p, &about, s);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return tiles::pack(ctx, "spmv tiles pack", p, (tiles::tile *)s->table, (tiles::long_row *)s->long_rows,
                               about);
        });
    if (st == SPMV_OK)
        st = narrow(plan, p, about, s);
    if (st == SPMV_OK)
        st = learn(plan, about, s);
    context_free(ctx, parts);
    return st != SPMV_OK ? st : tiles::make_sums(plan, s->about.packed, &s->sums, &s->counts);
}

/* The size of the matrix determines the shape. */
template <typename T, typename Offset> spmv_status make(spmv_plan *plan, tiles_state *s)
{
    using shapes = tiles::shapes<T>;
    s->how = (plan->ranks != nullptr ? plan->ranks->nnz : plan->a.nnz) < SPMV_TILES_LARGE ? LITTLE : USUAL;
    return s->how == LITTLE ? make_tiles<typename shapes::little, Offset>(plan, s)
                            : make_tiles<typename shapes::usual, Offset>(plan, s);
}

/* ------------------------------------------------------------ table of values */

/* Makes a table of the present values if there are few, and the codes. */
template <typename T, typename Stored> spmv_status code_values(spmv_plan *plan, tiles_state *s)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t nnz = plan->a.nnz;
    spmv_status st = tiles::make_table<T, Stored>(plan, nnz, &s->coded);
    if (st == SPMV_OK && s->coded.in_use)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv tiles encode values", grid_for(nnz, tiles::VALUE_THREADS), tiles::VALUE_THREADS,
                          tiles::encode_values<T, Stored>, (const Stored *)plan->a.val, nnz, s->coded.table<T>(),
                          s->coded.codes());
        });
    s->coded.in_use = s->coded.in_use && st == SPMV_OK;
    cuda_next_in_order(ctx); /* the next product reads codes before its wait */
    return st;
}

/* Why this matrix can have no table, whatever its values; NULL: it can. */
const char *without_table(const spmv_plan *plan, const tiles_state *s)
{
    return plan->a.val == nullptr || plan->a.nnz == 0 ? "no values"
           : type_is_complex(plan->type)              ? "complex values"
           : type_is_half(plan->type)                 ? "16-bit values"
           : s->how == LITTLE                         ? "a small matrix"
                                                      : nullptr;
}

spmv_status make_codes(spmv_plan *plan, tiles_state *s)
{
    return with_types(plan, [&](auto sums, auto stored) {
        using T = decltype(sums);
        if constexpr (std::is_arithmetic<T>::value)
            return code_values<T, decltype(stored)>(plan, s);
        else
            return SPMV_OK;
    });
}

/* ------------------------------------------------------------------------- hubs */

/* Whether hubs are possible: epilogues and tables of values have no kernels for them, and their tiles are not cut for
 * ranks. A product with hubs has fewer gathers under way, so x must fit in half of the last-level cache. */
bool may_have_hubs(const spmv_plan *plan, const tiles_state *s)
{
    const int64_t x = plan->a.cols * (int64_t)spmv_type_size(plan->type);
    return plan->ranks == nullptr && s->how == USUAL && s->narrow == nullptr && s->coded.memory == nullptr &&
           plan->compression != SPMV_COMPRESSION_NONE && !type_is_complex(plan->type) && !type_is_half(plan->type) &&
           plan->a.nnz >= SPMV_TILES_HUBS_FROM && 2 * x <= ((const cuda_state *)plan->ctx->device)->cache_bytes;
}

/* ----------------------------------------------------------- the plan as a whole */

float share_retained(const spmv_plan *plan, const tiles_state *s)
{
    if (s->how == LITTLE || plan->a.val == nullptr || type_is_complex(plan->type))
        return 0.0f; /* no kernel for it */
    const double a_value = s->coded.in_use ? 1.0 : (double)spmv_type_size(plan->a.type);
    const double a_nonzero = a_value + (s->narrow != nullptr ? 2.0 : 4.0), rows = (double)plan->a.rows;
    return tiles::retained_share(plan, (double)plan->a.nnz * a_nonzero + rows * plan->a.row_ptr_bits / 8);
}

/* Describes the plan for users. */
void describe(spmv_plan *plan, const tiles_state *s)
{
    char *const text = plan->layout;
    const int size = (int)sizeof plan->layout;
    const tiles::statistics &about = s->about;
    const unsigned long long whole = about.by_shift[0] + about.by_shift[1] + about.by_shift[2] + about.by_shift[3] +
                                     about.by_shift[4] + about.by_shift[5];
    int used = snprintf(text, (size_t)size, "rows of %.3g entries on average, %llu at most, in %d tile%s of at most %d",
                        (double)plan->a.nnz / (double)max_i64(plan->a.rows, 1), about.longest, about.packed.tiles,
                        plural(about.packed.tiles), s->capacity);
    const char *between = "; lanes per row:";
    for (int k = 0; k < tiles::SHIFTS && used < size; k++)
        if (about.by_shift[k] > 0) {
            used += snprintf(text + used, (size_t)(size - used), "%s %d (%.3g %% of these tiles)", between, 1 << k,
                             100.0 * (double)about.by_shift[k] / (double)whole);
            between = ",";
        }
    if (used < size && about.filled > 0)
        used += snprintf(text + used, (size_t)(size - used), "; 16-bit columns in %.3g %% of the tiles",
                         s->narrow != nullptr ? 100.0 * (double)about.narrow / (double)about.filled : 0.0);
    if (used < size && s->narrow != nullptr && about.ranged > 0)
        used += snprintf(text + used, (size_t)(size - used), " (%.3g %% by ranges)",
                         100.0 * (double)about.ranged / (double)about.filled);
    if (used < size && s->hubs.memory != nullptr)
        used +=
            snprintf(text + used, (size_t)(size - used), "; %d column%s in shared memory %s %.3g %% of the nonzeros",
                     s->hubs.count, plural(s->hubs.count), s->hubs.count == 1 ? "has" : "have", 100.0 * s->hubs.share);
    if (used < size && s->hubs.refused)
        used += snprintf(text + used, (size_t)(size - used), "; no memory for columns in shared memory");
    used += s->coded.describe(text, used, size, "nonzero");
    if (used < size && s->retained > 0)
        used += snprintf(text + used, (size_t)(size - used), "; %.3g %% retained in the last-level cache",
                         100.0 * (double)s->retained);
    if (used < size)
        snprintf(text + used, (size_t)(size - used), "; %d row%s longer than a tile, %llu empty",
                 about.packed.long_rows, plural(about.packed.long_rows), about.empty_rows);
}

template <typename T, typename Stored> tiles::matrix<T, Stored> matrix_of(const spmv_plan *plan)
{
    const tiles_state *const s = (const tiles_state *)plan->state;
    const int64_t nodes = (int64_t)s->about.packed.nodes;
    T *const sums = (T *)s->sums;
    unsigned *const counts = (unsigned *)s->counts;
    return {(const tiles::tile *)s->table,
            (int64_t)s->about.packed.tiles,
            plan->a.nnz,
            (const uint32_t *)plan->a.row_ptr,
            plan->a.row_ptr_bits / 32,
            (int32_t)plan->a.cols,
            plan->a.col,
            (const uint16_t *)s->narrow,
            (const int32_t *)(s->narrow != nullptr && s->about.ranged > 0 ? s->ranges : nullptr),
            (const Stored *)plan->a.val,
            (const tiles::long_row *)s->long_rows,
            sums,
            s->sums != nullptr ? sums + nodes * tiles::FAN_IN : nullptr,
            counts,
            s->counts != nullptr ? counts + nodes : nullptr,
            s->retained,
            plan->ranks != nullptr};
}

template <typename T> tiles::coded_matrix<T> coded_matrix_of(const spmv_plan *plan)
{
    const tiles_state *const s = (const tiles_state *)plan->state;
    tiles::coded_matrix<T> m;
    (tiles::matrix<T, T> &)m = matrix_of<T, T>(plan);
    m.value_table = s->coded.table<T>()->number;
    m.code = s->coded.codes();
    return m;
}

template <typename T, typename Stored, typename Element, typename Store>
spmv_status multiply(const spmv_plan *plan, const Element *x, Store store)
{
    using shapes = tiles::shapes<T>;
    const tiles_state *const s = (const tiles_state *)plan->state;
    const way how = s->how;
    if constexpr (shapes::usual::MAY_CODE && std::is_same<T, Element>::value)
        if (s->coded.in_use)
            return on_device(plan->ctx, [&] {
                return tiles::run<typename shapes::usual>(plan->ctx, coded_matrix_of<T>(plan), x, store);
            });
    const tiles::matrix<T, Stored> m = matrix_of<T, Stored>(plan);
    if constexpr (std::is_arithmetic<T>::value && std::is_same<Store, tiles::store_scaled<T>>::value)
        if (s->hubs.memory != nullptr)
            return tiles::multiply_with_hubs(plan->ctx, m, s->hubs, x, store);
    return on_device(plan->ctx, [&] {
        return how == LITTLE ? tiles::run<typename shapes::little>(plan->ctx, m, x, store)
                             : tiles::run<typename shapes::usual>(plan->ctx, m, x, store);
    });
}

} // namespace

extern "C" spmv_status tiles_cuda_prepare(spmv_plan *plan)
{
    const bool wide = plan->a.row_ptr_bits == 64;
    spmv_status st = plan_new_state(plan, (int64_t)sizeof(tiles_state));
    if (st != SPMV_OK)
        return st;
    tiles_state *const s = (tiles_state *)plan->state;
    if (plan->a.rows > 0)
        st = with_all_types(plan, [&](auto sums, auto, auto) {
            return wide ? make<decltype(sums), int64_t>(plan, s) : make<decltype(sums), int32_t>(plan, s);
        });
    plan->longest_row = (int64_t)s->about.longest;
    if (st == SPMV_OK && plan->compression == SPMV_COMPRESSION_VALUES) {
        s->coded.none = without_table(plan, s);
        plan->update_waits = s->coded.none == nullptr;
        st = s->coded.none == nullptr ? make_codes(plan, s) : SPMV_OK;
    }
    if (st == SPMV_OK && may_have_hubs(plan, s))
        st = tiles::make_hubs(plan, &s->hubs);
    if (st == SPMV_OK) {
        s->retained = share_retained(plan, s);
        describe(plan, s);
    }
    plan->reads_values = plan->a.val != nullptr && s->coded.memory == nullptr;
    /* learn has waited */
    plan->settled = plan->a.rows > 0 && s->sums == nullptr && s->coded.memory == nullptr;
    return st;
}

/* New values may have more or fewer distinct ones. Without codes nothing depends on values. */
extern "C" spmv_status tiles_cuda_update(spmv_plan *plan)
{
    tiles_state *const s = (tiles_state *)plan->state;
    if (s->coded.memory == nullptr)
        return SPMV_OK;
    const spmv_status st = make_codes(plan, s);
    s->retained = share_retained(plan, s);
    describe(plan, s);
    return st;
}

extern "C" spmv_status tiles_cuda_apply(const spmv_plan *plan, const struct plan_product *p)
{
    const tiles_state *const state = (const tiles_state *)plan->state;
    return with_all_types(plan, [&](auto sums, auto stored, auto element) {
        using T = decltype(sums);
        using Stored = decltype(stored);
        using Element = decltype(element);
        return tiles::with_store<T, Element>(
            p, (int64_t)state->about.packed.tiles, state->tree, state->tree_counts,
            [&](auto store) { return multiply<T, Stored>(plan, (const Element *)p->x, store); });
    });
}

extern "C" const void *tiles_cuda_parts(const spmv_plan *plan, int64_t *count)
{
    const tiles_state *const state = (const tiles_state *)plan->state;
    *count = (int64_t)state->about.packed.tiles;
    return state->tree;
}

extern "C" void tiles_cuda_release(spmv_plan *plan)
{
    const tiles_state *const s = (const tiles_state *)plan->state;
    spmv_free(plan->ctx, s->table);
    spmv_free(plan->ctx, s->narrow);
    spmv_free(plan->ctx, s->sums);
    spmv_free(plan->ctx, s->coded.memory);
    spmv_free(plan->ctx, s->hubs.memory);
}
