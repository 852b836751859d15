/* Method "slices" of the backend cuda: the plan re-encodes the matrix on the device, the product is
 * one launch (slices.cuh).
 *
 * It declines where choose.c says so, and if there is no memory for a second copy of the values.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/plural.h"
#include "product/cuda/slices/slices_plan.cuh"
#include "product/cuda/spmv_types.cuh"
#include "product/cuda/tiles/spmv_4_tiles_epilogue.cuh"
#include "product/cuda/tiles/spmv_4_tiles_values.cuh"

namespace
{

using slices::making;

static_assert((int)slices::WARPS * (int)slices::ROWS == (int)PLAN_TILE_ROWS, "the rows of a part of a rank's sum");
static_assert((int)slices::ROWS == (int)SLICE_ROWS && sizeof(slices::head) == 8 && sizeof(slices::slot) == 16,
              "the bytes that choose.c counts");

/* The state of a plan. All pointers are to the context's memory. */
struct slices_state {
    slices::findings found;
    int64_t slices, pattern_slots;
    void *heads, *patterns;
    void *val; /* in slot order; NULL: a pattern matrix, or codes are used instead */
    tiles::coded_values coded;
    bool shares;   /* slices share patterns */
    bool constant; /* the patterns have the codes of all values; there are no other codes */
    bool alike;    /* equal parts of the slices have nearly as many slots */
    void *tree;    /* sums of an epilogue's dot product, followed by tree_counts and unread */
    unsigned *tree_counts;
    slices::findings *unread; /* of updates: not read, since the plan was checked */
    float retained;
    int64_t inner_begin, inner_end; /* blocks whose rows need no elements of other ranks */
};

slices_state *state_of(const spmv_plan *plan)
{
    return (slices_state *)plan->state;
}

int64_t padded(int64_t bytes)
{
    return tiles::aligned(bytes);
}

/* ------------------------------------------------------------ the plan, step by step */

/* Allocates the arrays of *m in one block (plan->prepared; NULL if there is no memory), and clears
 * the findings and the dictionary. */
spmv_status make_room(spmv_plan *plan, int64_t count, making *m)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t bytes[] = {padded((int64_t)sizeof(slices::findings)),
                             padded(slices::ENTRIES * 8),
                             padded(slices::ENTRIES * 4),
                             padded(count * 8),
                             padded((count + 1) * 4),
                             padded((count + 1) * 4),
                             padded((count + 1) * 4),
                             padded((count + 1) * 4),
                             padded(count * 4),
                             ctx->backend->scan_scratch(ctx, SPMV_I32, count + 1)};
    int64_t all = 0, cleared = bytes[0] + bytes[1] + bytes[2];
    for (int64_t b : bytes)
        all += b;
    plan_free(plan, plan->prepared_bytes, plan->prepared); /* of an earlier preparation of this plan; normally NULL */
    plan->prepared = nullptr;
    plan->prepared_bytes = 0;
    const spmv_status st = plan_alloc_if_room(plan, all, &plan->prepared);
    if (plan->prepared == nullptr)
        return st;
    plan->prepared_bytes = all;
    char *at = (char *)plan->prepared;
    m->found = (slices::findings *)at;
    m->known.hashes = (unsigned long long *)(at += bytes[0]);
    m->known.last = (unsigned *)(at += bytes[1]);
    m->hashes = (unsigned long long *)(at += bytes[2]);
    m->slots = (int32_t *)(at += bytes[3]);
    m->own_slots = (int32_t *)(at += bytes[4]);
    m->begins = (int32_t *)(at += bytes[5]);
    m->own_begins = (int32_t *)(at += bytes[6]);
    m->chosen = (int32_t *)(at += bytes[7]);
    m->scratch = at + bytes[8];
    return tiles::cleared(ctx, m->found, cleared);
}

/* The usual number of slots of a slice. */
int64_t usual_slots(const slices_state *s)
{
    return (int64_t)((s->found.slots + (uint64_t)s->slices / 2) / (uint64_t)s->slices);
}

/* Whether constant_kernel and strip_kernel take many slots a round. */
bool many_a_round(const slices_state *s)
{
    return slices::takes_many(usual_slots(s), slices::ROUND_FEW, slices::ROUND_MANY);
}

/* Whether products of so many tiles of slices take strip_kernel. */
bool takes_strips(const spmv_plan *plan, const slices_state *s, int64_t tiles)
{
    const bool many = many_a_round(s);
    const int64_t teams = slices::strip_teams((int)spmv_type_size(plan->type), many);
    const int64_t multiprocessors = ((const cuda_state *)plan->ctx->device)->multiprocessors;
    return plan->a.val != nullptr && !s->coded.in_use && s->alike && usual_slots(s) <= slices::STRIP_SLOTS &&
           tiles >= slices::STRIP_TURNS * teams * multiprocessors;
}

/* The order of that kernel. */
slices::order order_of(const spmv_plan *plan, const slices_state *s, int64_t tiles)
{
    return slices::order_of(tiles, takes_strips(plan, s, tiles) ? s->found.reach : 0, (int)spmv_type_size(plan->type));
}

/* The number of blocks for kernels in which warps loop over the slices: as many as run at once. */
int blocks_of(const spmv_plan *plan, int64_t count)
{
    const int64_t at_once = (int64_t)slices::RESIDENT * ((const cuda_state *)plan->ctx->device)->multiprocessors;
    return (int)min_i64((count - 1) / slices::WARPS + 1, at_once);
}

/* Counts the slots, and sets the facts that follow. Waits. */
template <typename Offset> spmv_status count_slots(spmv_plan *plan, const making &m, slices_state *s)
{
    spmv_context *const ctx = plan->ctx;
    facts &f = plan->facts;
    const spmv_csr &a = plan->a;
    spmv_status st = on_device(ctx, [&] {
        return launch(ctx, "spmv slices count", blocks_of(plan, s->slices), slices::shape::BLOCK, slices::count<Offset>,
                      (const Offset *)a.row_ptr, a.col, a.rows, s->slices, slices_most_places(&f), m);
    });
    if (st == SPMV_OK)
        st = spmv_download(ctx, m.found, &s->found, (int64_t)sizeof s->found);
    f.unsorted = s->found.unsorted != 0;
    f.many_slots = s->found.unsuited != 0;
    f.slices = s->slices;
    f.slots = (int64_t)s->found.slots;
    f.many_patterns = s->found.many != 0;
    return st;
}

/* The bytes of the matrix that a product reads. */
double bytes_in_slices(const spmv_plan *plan, const slices_state *s)
{
    const double value = plan->a.val == nullptr || s->constant ? 0
                         : s->coded.in_use                     ? 1
                                                               : (double)spmv_type_size(plan->a.type);
    return slices_bytes(&plan->facts, value);
}

spmv_status scan_counts(const spmv_plan *plan, const making &m, const int32_t *counts, int32_t *begins, int64_t n)
{
    spmv_context *const ctx = plan->ctx;
    return ctx->backend->scan(ctx, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_I32, counts, begins, n, m.scratch);
}

/* act(the codes of the values in the table) */
template <typename Act> spmv_status with_codes(const spmv_plan *plan, const slices_state *s, Act act)
{
    return with_types(plan, [&](auto sums, auto stored) {
        using T = decltype(sums);
        using Stored = decltype(stored);
        if constexpr (!std::is_arithmetic<T>::value)
            return SPMV_ERROR_TYPE; /* the method has no complex types */
        else
            return act(slices::as_codes<T, Stored>{(const Stored *)plan->a.val, s->coded.template table<T>()});
    });
}

/* Writes the patterns of the chosen slices, with codes if there is a table of values. */
template <typename Offset, typename Source>
spmv_status write_patterns(const spmv_plan *plan, const making &m, const slices_state *s, Source codes)
{
    spmv_context *const ctx = plan->ctx;
    const spmv_csr &a = plan->a;
    return on_device(ctx, [&] {
        return launch(ctx, "spmv slices write", blocks_of(plan, s->slices), slices::shape::BLOCK,
                      slices::write<Offset, Source>, (const Offset *)a.row_ptr, a.col, a.rows, s->slices,
                      s->pattern_slots, m, codes, (slices::slot *)s->patterns);
    });
}

/* Makes heads and patterns. */
template <typename Offset> spmv_status make_patterns(spmv_plan *plan, bool shares, const making &m, slices_state *s)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t n = s->slices;
    const int grid = grid_for(n + 1, slices::shape::BLOCK);
    s->pattern_slots = (int64_t)(shares ? s->found.pattern_slots : s->found.slots);
    spmv_status st = plan_alloc(plan, max_i64(s->pattern_slots, 1) * (int64_t)sizeof(slices::slot), &s->patterns);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv slices choose", grid, slices::shape::BLOCK, slices::choose, n, shares, m);
        });
    if (st == SPMV_OK)
        st = scan_counts(plan, m, m.slots, m.begins, n + 1);
    if (st == SPMV_OK)
        st = scan_counts(plan, m, m.own_slots, m.own_begins, n + 1);
    if (st == SPMV_OK && !s->coded.in_use)
        st = write_patterns<Offset>(plan, m, s, slices::no_values());
    if (st == SPMV_OK && s->coded.in_use)
        st = with_codes(plan, s, [&](auto codes) { return write_patterns<Offset>(plan, m, s, codes); });
    return st != SPMV_OK ? st : on_device(ctx, [&] {
        return launch(ctx, "spmv slices heads", grid, slices::shape::BLOCK, slices::write_heads, n, slices::parts_of(n),
                      m, (slices::head *)s->heads);
    });
}

template <typename Offset, typename Value, typename Source>
spmv_status fill_with(const spmv_plan *plan, const slices_state *s, Source source, void *to, slices::findings *found)
{
    spmv_context *const ctx = plan->ctx;
    const spmv_csr &a = plan->a;
    return on_device(ctx, [&] {
        return launch(ctx, "spmv slices fill", blocks_of(plan, s->slices), slices::shape::BLOCK,
                      slices::fill<Offset, Value, Source>, (const Offset *)a.row_ptr, a.col, a.rows, s->slices,
                      (const slices::head *)s->heads, (const slices::slot *)s->patterns, s->pattern_slots, source,
                      (slices::two<Value> *)to, found);
    });
}

/* Writes the current values, or their codes. */
template <typename Offset>
spmv_status fill_values(const spmv_plan *plan, const slices_state *s, slices::findings *found)
{
    if (plan->a.val == nullptr)
        return fill_with<Offset, uint8_t>(plan, s, slices::no_values(), nullptr, found);
    if (s->coded.in_use)
        return with_codes(
            plan, s, [&](auto codes) { return fill_with<Offset, uint8_t>(plan, s, codes, s->coded.codes(), found); });
    return with_all_types(plan, [&](auto sums, auto stored, auto) {
        using Stored = decltype(stored);
        if constexpr (!std::is_arithmetic<decltype(sums)>::value)
            return SPMV_ERROR_TYPE; /* the method has no complex types */
        else
            return fill_with<Offset, Stored>(plan, s, slices::as_is<Stored>{(const Stored *)plan->a.val}, s->val,
                                             found);
    });
}

/* Checks slices and values against the patterns, which have codes. */
template <typename Offset>
spmv_status check_values(const spmv_plan *plan, const slices_state *s, slices::findings *found)
{
    spmv_context *const ctx = plan->ctx;
    const spmv_csr &a = plan->a;
    return with_codes(plan, s, [&](auto codes) {
        return on_device(ctx, [&] {
            return launch(ctx, "spmv slices check", blocks_of(plan, s->slices), slices::shape::BLOCK,
                          slices::check<Offset, decltype(codes)>, (const Offset *)a.row_ptr, a.col, a.rows, s->slices,
                          (const slices::head *)s->heads, (const slices::slot *)s->patterns, s->pattern_slots, codes,
                          found);
        });
    });
}

/* Makes a table of the current values if one is requested and they are few enough. */
spmv_status make_table(spmv_plan *plan, slices_state *s)
{
    const int64_t codes = (int64_t)s->found.slots * slices::ROWS;
    if (plan->compression != SPMV_COMPRESSION_VALUES)
        return SPMV_OK;
    s->coded.none = plan->a.val == nullptr ? "no values" : type_is_half(plan->type) ? "16-bit values" : nullptr;
    if (s->coded.none != nullptr)
        return SPMV_OK;
    return with_types(plan, [&](auto sums, auto stored) {
        using T = decltype(sums);
        if constexpr (std::is_arithmetic<T>::value)
            return tiles::make_table<T, decltype(stored)>(plan, codes, &s->coded);
        else
            return SPMV_ERROR_TYPE;
    });
}

/* Keeps the table of values and frees the codes of all places, if there is room for a copy of the
 * table. */
spmv_status drop_codes(spmv_plan *plan, slices_state *s)
{
    const int64_t codes = (int64_t)s->found.slots * slices::ROWS;
    void *table = nullptr;
    spmv_status st = plan_alloc_if_room(plan, s->coded.codes_at, &table);
    if (st == SPMV_OK && table != nullptr)
        st = on_device(plan->ctx, [&] {
            return cuda_check(plan->ctx,
                              cudaMemcpyAsync(table, s->coded.memory, (size_t)s->coded.codes_at,
                                              cudaMemcpyDeviceToDevice, (cudaStream_t)plan->ctx->stream),
                              "a table of values");
        });
    if (st != SPMV_OK || table == nullptr)
        return st;
    plan_free(plan, s->coded.codes_at + codes, s->coded.memory);
    s->coded.memory = table;
    return SPMV_OK;
}

/* Makes patterns, heads and values. Slices with the same hash share a pattern. If one of them
 * differs from it, everything is made again with a pattern for each slice. */
template <typename Offset> spmv_status encode(spmv_plan *plan, const making &m, slices_state *s)
{
    spmv_context *const ctx = plan->ctx;
    slices::findings now = {};
    spmv_status st = SPMV_OK;
    bool shares = s->found.many == 0;
    do {
        plan_free(plan, s->pattern_slots * (int64_t)sizeof(slices::slot), s->patterns);
        s->patterns = nullptr;
        shares = shares && now.differs == 0;
        st = tiles::cleared(ctx, &m.found->differs, 2 * (int64_t)sizeof(int)); /* and varied */
        if (st == SPMV_OK)
            st = make_patterns<Offset>(plan, shares, m, s);
        /* later values may differ within a slot, and patterns are not made again */
        s->constant = s->coded.in_use && shares && !plan->updates;
        if (st == SPMV_OK && s->constant)
            st = check_values<Offset>(plan, s, m.found);
        if (st == SPMV_OK && !s->constant)
            st = fill_values<Offset>(plan, s, m.found);
        if (st == SPMV_OK)
            st = spmv_download(ctx, m.found, &now, (int64_t)sizeof now);
    } while (st == SPMV_OK && now.differs != 0 && shares);
    s->shares = shares;
    s->alike = 4.0 * (double)now.part_slots * (double)slices::parts_of(s->slices) <= 5.0 * (double)s->found.slots;
    if (st == SPMV_OK && s->constant && now.varied != 0) {
        s->constant = false;
        st = fill_values<Offset>(plan, s, m.found);
        if (st == SPMV_OK)
            st = spmv_download(ctx, m.found, &now, (int64_t)sizeof now);
    }
    return st == SPMV_OK && s->constant ? drop_codes(plan, s) : st;
}

/* Allocates what products need. *lacks_room: there is no memory for the values. */
spmv_status make_kept(spmv_plan *plan, slices_state *s, bool *lacks_room)
{
    const tiles::tree_size tree(slices::tiles_for(s->slices));
    const int64_t sums = padded(tree.sums * (int64_t)spmv_type_size(plan->sums));
    const int64_t counts = padded(tree.counts * (int64_t)sizeof(unsigned));
    const int64_t values = (int64_t)s->found.slots * slices::ROWS * (int64_t)spmv_type_size(plan->a.type);
    spmv_status st = plan_alloc(plan, (s->slices + 1) * (int64_t)sizeof(slices::head), &s->heads);
    if (st == SPMV_OK)
        st = plan_alloc(plan, sums + counts + padded((int64_t)sizeof(slices::findings)), &s->tree);
    if (st != SPMV_OK)
        return st;
    s->tree_counts = (unsigned *)((char *)s->tree + sums);
    s->unread = (slices::findings *)((char *)s->tree_counts + counts);
    st = tiles::cleared(plan->ctx, s->tree_counts, counts);
    if (st == SPMV_OK)
        st = make_table(plan, s);
    if (st != SPMV_OK || plan->a.val == nullptr || (s->coded.in_use && !plan->updates))
        return st;
    st = plan_alloc_if_room(plan, values, &s->val);
    *lacks_room = s->val == nullptr;
    return st;
}

float share_retained(const spmv_plan *plan, const slices_state *s)
{
    return plan->a.val == nullptr || s->constant ? 0.0f : tiles::retained_share(plan, bytes_in_slices(plan, s));
}

void describe(spmv_plan *plan, const slices_state *s)
{
    const int64_t places = (int64_t)s->found.slots * slices::ROWS;
    char *const text = plan->layout;
    const int size = (int)sizeof plan->layout;
    int used = snprintf(text, (size_t)size,
                        "rows of %.3g entries on average, %llu at most, in %lld slice%s of %d rows; %.3g %% of the "
                        "places filled",
                        (double)plan->a.nnz / (double)plan->a.rows, s->found.longest, (long long)s->slices,
                        plural(s->slices), (int)slices::ROWS, 100.0 * (double)plan->a.nnz / (double)max_i64(places, 1));
    if (used < size && s->shares)
        used += snprintf(text + used, (size_t)(size - used), "; %u pattern%s of offsets", s->found.patterns,
                         s->found.patterns == 1 ? "" : "s");
    if (used < size && !s->shares)
        used += snprintf(text + used, (size_t)(size - used), "; a pattern of offsets for each slice");
    const slices::order order = order_of(plan, s, slices::tiles_for(s->slices));
    if (used < size && order.lines > 1)
        used += snprintf(text + used, (size_t)(size - used), "; in strips of %lld rows",
                         (long long)order.width * slices::WARPS * slices::ROWS);
    if (used < size && s->constant)
        used += snprintf(text + used, (size_t)(size - used), "; a table of %d value%s, named by the patterns",
                         s->coded.values, s->coded.values == 1 ? "" : "s");
    else
        used += s->coded.describe(text, used, size, "place");
    if (used < size && s->retained > 0)
        snprintf(text + used, (size_t)(size - used), "; %.3g %% retained in the last-level cache",
                 100.0 * (double)s->retained);
}

/* Makes the slices, or declines. */
template <typename Offset> spmv_status make(spmv_plan *plan, slices_state *s)
{
    making m = {};
    bool lacks_room = false;
    s->slices = (plan->a.rows - 1) / slices::ROWS + 1;
    spmv_status st = make_room(plan, s->slices, &m);
    lacks_room = plan->prepared == nullptr;
    if (st == SPMV_OK && !lacks_room)
        st = count_slots<Offset>(plan, m, s);
    if (st == SPMV_OK && !lacks_room)
        plan->declined = plan->method->pays(&plan->facts);
    if (st == SPMV_OK && !lacks_room && plan->declined == nullptr)
        st = make_kept(plan, s, &lacks_room);
    if (lacks_room)
        plan->declined = "there is no memory for a second copy of the values";
    return st != SPMV_OK || plan->declined != nullptr ? st : encode<Offset>(plan, m, s);
}

/* Finds the longest range of chunks without elements of other ranks. */
void find_inner(const spmv_plan *plan, slices_state *s)
{
    const struct plan_ranks *const ranks = plan->ranks;
    for (int64_t begin = 0, end; ranks != nullptr && begin < ranks->chunks; begin = end + 1) {
        for (end = begin; end < ranks->chunks && !ranks->edge[end]; end++)
            continue;
        /* only the end of the rows may lie within a block */
        const int64_t from = (ranks->chunk[begin] + PLAN_TILE_ROWS - 1) / PLAN_TILE_ROWS;
        const int64_t to = (ranks->chunk[end] + PLAN_TILE_ROWS - 1) / PLAN_TILE_ROWS;
        if (to - from > s->inner_end - s->inner_begin) {
            s->inner_begin = from;
            s->inner_end = to;
        }
    }
}

template <typename T, typename Stored>
slices::matrix<T, Stored> matrix_of(const spmv_plan *plan, enum plan_subset subset)
{
    const slices_state *const s = state_of(plan);
    const int64_t all = slices::tiles_for(s->slices), inner = s->inner_end - s->inner_begin;
    const int64_t tiles = subset == PLAN_ALL ? all : subset == PLAN_INNER ? inner : all - inner;
    return {plan->a.rows,
            s->slices,
            (const slices::head *)s->heads,
            (const slices::slot *)s->patterns,
            (const slices::two<Stored> *)s->val,
            s->retained,
            slices::takes_many(usual_slots(s), slices::FEW_AT_ONCE, slices::MANY_AT_ONCE),
            many_a_round(s),
            takes_strips(plan, s, tiles),
            order_of(plan, s, tiles),
            subset == PLAN_EDGE ? s->inner_begin : 0,
            subset == PLAN_ALL     ? 0
            : subset == PLAN_INNER ? s->inner_begin
                                   : inner};
}

/* Whether a product with leaves_parts leaves one part for each block of the launch. With ranks, there is one for
 * each PLAN_TILE_ROWS rows. */
bool has_few_parts(const spmv_plan *plan)
{
    return plan->ranks == nullptr && (state_of(plan)->constant || plan->a.val == nullptr);
}

template <typename T> slices::constant_matrix<T> constant_matrix_of(const spmv_plan *plan, const struct plan_product *p)
{
    const slices_state *const s = state_of(plan);
    slices::constant_matrix<T> m;
    (slices::matrix<T, T> &)m = matrix_of<T, T>(plan, p->subset);
    m.value_table = s->constant ? s->coded.table<T>()->number : nullptr;
    m.parts = p->leaves_parts && has_few_parts(plan) ? slices::parts_of_launch(m.tiles.tiles, m.many_a_round) : 0;
    return m;
}

template <typename T> slices::coded_matrix<T> coded_matrix_of(const spmv_plan *plan, enum plan_subset subset)
{
    const tiles::coded_values &coded = state_of(plan)->coded;
    slices::coded_matrix<T> m;
    (slices::matrix<T, T> &)m = matrix_of<T, T>(plan, subset);
    m.value_table = coded.table<T>()->number;
    m.code = (const slices::two<uint8_t> *)coded.codes();
    return m;
}

template <typename T, typename Stored, typename Element, typename Store>
spmv_status multiply(const spmv_plan *plan, const struct plan_product *p, Store store)
{
    const Element *const x = (const Element *)p->x;
    if (state_of(plan)->constant || plan->a.val == nullptr)
        return on_device(plan->ctx, [&] { return slices::run(plan->ctx, constant_matrix_of<T>(plan, p), x, store); });
    if constexpr (std::is_same<T, Element>::value)
        if (state_of(plan)->coded.in_use)
            return on_device(plan->ctx,
                             [&] { return slices::run(plan->ctx, coded_matrix_of<T>(plan, p->subset), x, store); });
    return on_device(plan->ctx,
                     [&] { return slices::run(plan->ctx, matrix_of<T, Stored>(plan, p->subset), x, store); });
}

} // namespace

extern "C" spmv_status slices_cuda_prepare(spmv_plan *plan)
{
    spmv_status st = plan_new_state(plan, (int64_t)sizeof(slices_state));
    if (st != SPMV_OK)
        return st;
    slices_state *const s = state_of(plan);
    st = plan->a.row_ptr_bits == 64 ? make<int64_t>(plan, s) : make<int32_t>(plan, s);
    if (st != SPMV_OK || plan->declined != nullptr)
        return st;
    plan->longest_row = (int64_t)s->found.longest;
    s->retained = share_retained(plan, s);
    find_inner(plan, s);
    describe(plan, s);
    plan->update_waits =
        plan->compression == SPMV_COMPRESSION_VALUES && plan->a.val != nullptr && !type_is_half(plan->type);
    plan->settled = true; /* encode has waited for the queued work */
    return st;
}

extern "C" spmv_status slices_cuda_count(spmv_context *ctx, const spmv_csr *a, struct facts *facts)
{
    slices_state s = {};
    making m = {};
    spmv_plan plan = {}; /* only what the count needs */
    plan.ctx = ctx;
    plan.a = *a;
    plan.facts = *facts;
    s.slices = (a->rows - 1) / slices::ROWS + 1;
    spmv_status st = make_room(&plan, s.slices, &m);
    if (st == SPMV_OK && plan.prepared == nullptr)
        st = context_fail(ctx, SPMV_ERROR_MEMORY, "no memory to count the slots of slices");
    if (st == SPMV_OK)
        st = a->row_ptr_bits == 64 ? count_slots<int64_t>(&plan, m, &s) : count_slots<int32_t>(&plan, m, &s);
    spmv_free(ctx, plan.prepared);
    *facts = plan.facts;
    return st;
}

extern "C" spmv_status slices_cuda_update(spmv_plan *plan)
{
    slices_state *const s = state_of(plan);
    spmv_status st = make_table(plan, s);
    if (st == SPMV_OK)
        st = plan->a.row_ptr_bits == 64 ? fill_values<int64_t>(plan, s, s->unread)
                                        : fill_values<int32_t>(plan, s, s->unread);
    if (plan->compression == SPMV_COMPRESSION_VALUES) {
        s->retained = share_retained(plan, s);
        describe(plan, s);
    }
    cuda_next_in_order(plan->ctx); /* because a product loads values before it waits */
    return st;
}

extern "C" spmv_status slices_cuda_apply(const spmv_plan *plan, const struct plan_product *p)
{
    const slices_state *const state = state_of(plan);
    const int64_t inner = state->inner_end - state->inner_begin;
    if ((p->subset == PLAN_INNER && inner == 0) ||
        (p->subset == PLAN_EDGE && inner == slices::tiles_for(state->slices)))
        return SPMV_OK;
    return with_all_types(plan, [&](auto sums, auto stored, auto element) {
        using T = decltype(sums);
        using Stored = decltype(stored);
        using Element = decltype(element);
        if constexpr (!std::is_arithmetic<T>::value)
            return SPMV_ERROR_TYPE; /* the method has no complex types */
        else
            return tiles::with_store<T, Element>(
                p, slices::tiles_for(state->slices), state->tree, state->tree_counts,
                [&](auto store) { return multiply<T, Stored, Element>(plan, p, store); });
    });
}

extern "C" const void *slices_cuda_parts(const spmv_plan *plan, int64_t *count)
{
    const slices_state *const s = state_of(plan);
    const int64_t tiles = slices::tiles_for(s->slices);
    *count = has_few_parts(plan) ? slices::parts_of_launch(tiles, many_a_round(s)) : tiles;
    return s->tree;
}

extern "C" void slices_cuda_release(spmv_plan *plan)
{
    slices_state *const s = state_of(plan);
    spmv_free(plan->ctx, s->heads);
    spmv_free(plan->ctx, s->patterns);
    spmv_free(plan->ctx, s->val);
    spmv_free(plan->ctx, s->coded.memory);
    spmv_free(plan->ctx, s->tree);
}
