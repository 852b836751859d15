/* Method "padded" of the backend cuda: the plan re-encodes the matrix on the device, the product is
 * one launch (padded.cuh).
 *
 * It declines where choose.c says so, and if there is no memory for a second copy of the values.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/plural.h"
#include "product/cuda/padded/padded_plan.cuh"
#include "product/cuda/spmv_types.cuh"
#include "product/cuda/tiles/spmv_4_tiles_epilogue.cuh"
#include "product/cuda/tiles/spmv_4_tiles_values.cuh"

namespace
{

using padded::making;

static_assert((int)padded::ROWS == (int)PADDED_ROWS, "the rows that choose.c counts");
static_assert((int)padded::WARPS * (int)padded::ROWS == (int)PADDED_BLOCK_ROWS &&
                  (int)PLAN_TILE_ROWS % (int)PADDED_BLOCK_ROWS == 0 &&
                  (int)PLAN_TILE_ROWS % (int)padded::SHARED_ROWS == 0,
              "the rows of ranks begin where blocks begin");

/* The state of a plan; arrays are in the context's memory. */
struct padded_state {
    padded::findings found;
    int64_t slices, layers;
    void *table; /* of padded::making, with the scratch memory of the scan */
    making of;
    void *scratch;
    void *places; /* values, codes, a zero, sums of an epilogue's dot product, and counts */
    void *code, *zero, *tree;
    unsigned *tree_counts;
    float retained;
};

padded_state *state_of(const spmv_plan *plan)
{
    return (padded_state *)plan->state;
}

/* The number of lists of ranges. */
int64_t range_lists(const padded_state *s)
{
    return (s->slices - 1) / padded::SHARING + 1;
}

/* The bytes of the matrix that a product reads; for an entry of a plain slice, those that it could read in
 * the same time. */
double bytes_padded(const spmv_plan *plan, const padded_state *s)
{
    const double places =
        (double)s->layers * warp_lanes + (double)padded::PLAIN_PLACES * (double)s->found.plain_entries;
    return places * ((double)spmv_type_size(plan->a.type) + 2) + (double)s->slices * sizeof(padded::head) +
           2.0 * (double)(padded::RANGES * range_lists(s));
}

/* The bytes that memory delivers to a multiprocessor in a clock of it; 0: unknown. The driver takes a
 * millisecond to tell the clocks, so the speed of each device is kept for the process. */
double memory_speed(const spmv_plan *plan)
{
    enum { DEVICES = 64, PARTS = 1000 };
    static int known[DEVICES]; /* in parts of a byte, and 1 more; 0: not yet asked */
    const cuda_state *const device = (const cuda_state *)plan->ctx->device;
    int *const kept = device->device < DEVICES ? &known[device->device] : nullptr;
    int parts = kept != nullptr ? __atomic_load_n(kept, __ATOMIC_RELAXED) : 0;
    if (parts > 0)
        return (double)(parts - 1) / PARTS;
    int memory_khz = 0, bits = 0, khz = 0;
    const bool told = cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, device->device) == cudaSuccess &&
                      cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, device->device) == cudaSuccess &&
                      cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, device->device) == cudaSuccess;
    if (!told)
        (void)cudaGetLastError(); /* so that no later call reports it */
    const double speed = told && khz > 0 ? 2.0 * memory_khz * bits / 8 / ((double)khz * device->multiprocessors) : 0;
    parts = (int)(speed * PARTS) + 1;
    if (kept != nullptr)
        __atomic_store_n(kept, parts, __ATOMIC_RELAXED);
    return speed;
}

/* Allocates the arrays of the measurement (s->table; NULL if there is no memory), and clears the
 * findings. */
spmv_status make_room(spmv_plan *plan, padded_state *s)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t n = s->slices;
    const int64_t bytes[] = {tiles::aligned((int64_t)sizeof(padded::findings)),
                             tiles::aligned((n + 1) * 4),
                             tiles::aligned((n + 1) * 4),
                             tiles::aligned((n + 1) * (int64_t)sizeof(padded::head)),
                             tiles::aligned(range_lists(s) * padded::RANGES * 2),
                             ctx->backend->scan_scratch(ctx, SPMV_I32, n + 1)};
    int64_t all = 0;
    for (int64_t b : bytes)
        all += b;
    const spmv_status st = plan_alloc_if_room(plan, all, &s->table);
    if (s->table == nullptr)
        return st;
    char *at = (char *)s->table;
    s->of.found = (padded::findings *)at;
    s->of.layers = (int32_t *)(at += bytes[0]);
    s->of.begins = (int32_t *)(at += bytes[1]);
    s->of.heads = (padded::head *)(at += bytes[2]);
    s->of.ranges = (uint16_t *)(at += bytes[3]);
    s->scratch = at + bytes[4];
    return tiles::cleared(ctx, s->of.found, bytes[0]);
}

/* The number of blocks for kernels in which warps loop over the slices: as many as run at once. */
int plan_blocks(const spmv_plan *plan, int64_t slices)
{
    const int64_t at_once = (int64_t)padded::PLAN_RESIDENT * ((const cuda_state *)plan->ctx->device)->multiprocessors;
    return (int)min_i64((slices - 1) / padded::PLAN_WARPS + 1, at_once);
}

template <typename Offset> padded::csr<Offset> csr_of(const spmv_plan *plan)
{
    const spmv_csr &a = plan->a;
    return {(const Offset *)a.row_ptr, a.col, a.rows, state_of(plan)->slices};
}

/* Measures the slices, sets the facts that follow, and finds where each slice begins. Waits. */
template <typename Offset> spmv_status measure(spmv_plan *plan, padded_state *s)
{
    spmv_context *const ctx = plan->ctx;
    facts &f = plan->facts;
    const int64_t n = s->slices;
    int32_t layers = 0;
    /* the whole matrix of ranks decides, so each of them measures all its rows */
    const int most = f.ranks ? (int)padded::ANY_PLACES : (int)(padded_most_bytes(&f) * padded::NONZEROS);
    spmv_status st = on_device(ctx, [&] {
        return launch(ctx, "spmv padded measure", plan_blocks(plan, n), padded::PLAN_BLOCK, padded::measure<Offset>,
                      csr_of<Offset>(plan), most, plan->named ? 1 : (int)padded::PLAIN_PLACES, s->of);
    });
    if (st == SPMV_OK)
        st = spmv_download(ctx, s->of.found, &s->found, (int64_t)sizeof s->found);
    f.uneven = s->found.unsuited != 0;
    f.plain_slices = s->found.plain > 0;
    if (st != SPMV_OK || f.uneven)
        return st;
    st = ctx->backend->scan(ctx, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_I32, s->of.layers, s->of.begins, n + 1, s->scratch);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv padded heads", grid_for(n + 1, padded::PLAN_BLOCK), padded::PLAN_BLOCK,
                          padded::write_heads, n, s->of);
        });
    if (st == SPMV_OK)
        st = spmv_download(ctx, s->of.begins + n, &layers, (int64_t)sizeof layers);
    s->layers = layers;
    f.longest = (int64_t)s->found.longest;
    f.padded_bytes = bytes_padded(plan, s);
    return st;
}

/* Allocates what products need. *lacks_room: there is no memory for it. */
spmv_status make_kept(spmv_plan *plan, padded_state *s, bool *lacks_room)
{
    const tiles::tree_size tree(padded::blocks_for(s->slices));
    const int64_t size = (int64_t)spmv_type_size(plan->sums), places = s->layers * warp_lanes;
    const int64_t values = tiles::aligned(places * (int64_t)spmv_type_size(plan->a.type));
    const int64_t codes = tiles::aligned(places * 2), sums = tiles::aligned((tree.sums + 1) * size);
    const int64_t counts = tiles::aligned(tree.counts * (int64_t)sizeof(unsigned));
    const spmv_status st = plan_alloc_if_room(plan, values + codes + sums + counts, &s->places);
    *lacks_room = s->places == nullptr;
    if (st != SPMV_OK || *lacks_room)
        return st;
    s->code = (char *)s->places + values;
    s->zero = (char *)s->code + codes;
    s->tree = (char *)s->zero + size;
    s->tree_counts = (unsigned *)((char *)s->zero + sums);
    return tiles::cleared(plan->ctx, s->zero, sums + counts);
}

/* Writes values, and codes on request. */
template <typename Offset> spmv_status fill(const spmv_plan *plan, const padded_state *s, bool with_codes)
{
    spmv_context *const ctx = plan->ctx;
    return with_all_types(plan, [&](auto sums, auto stored, auto) {
        using Stored = decltype(stored);
        if constexpr (!std::is_arithmetic<decltype(sums)>::value)
            return SPMV_ERROR_TYPE; /* the method has no complex types */
        else
            return on_device(ctx, [&] {
                return launch(ctx, "spmv padded fill", plan_blocks(plan, s->slices), padded::PLAN_BLOCK,
                              padded::fill<Offset, Stored>, csr_of<Offset>(plan), (const Stored *)plan->a.val,
                              (const padded::head *)s->of.heads, (const uint16_t *)s->of.ranges,
                              with_codes ? (uint16_t *)s->code : nullptr, (Stored *)s->places);
            });
    });
}

/* Makes the slices, or declines. */
template <typename Offset> spmv_status make(spmv_plan *plan, padded_state *s)
{
    bool lacks_room = false;
    plan->facts.memory_speed = plan->named ? 0 : memory_speed(plan);
    plan->declined = plan->method->pays(&plan->facts);
    spmv_status st = plan->declined == nullptr ? tiles::count_values(plan) : SPMV_OK;
    plan->declined = plan->method->pays(&plan->facts);
    if (st != SPMV_OK || plan->declined != nullptr)
        return st;
    s->slices = (plan->a.rows - 1) / padded::ROWS + 1;
    st = make_room(plan, s);
    lacks_room = s->table == nullptr;
    if (st == SPMV_OK && !lacks_room)
        st = measure<Offset>(plan, s);
    if (st == SPMV_OK && !lacks_room)
        plan->declined = plan->method->pays(&plan->facts);
    if (st == SPMV_OK && !lacks_room && plan->declined == nullptr)
        st = make_kept(plan, s, &lacks_room);
    if (lacks_room)
        plan->declined = "there is no memory for a second copy of the values";
    return st != SPMV_OK || plan->declined != nullptr ? st : fill<Offset>(plan, s, true);
}

void describe(spmv_plan *plan, const padded_state *s)
{
    const int64_t places = s->layers * warp_lanes, filled = plan->a.nnz - (int64_t)s->found.plain_entries;
    char *const text = plan->layout;
    const int size = (int)sizeof plan->layout;
    const int used =
        snprintf(text, (size_t)size,
                 "rows of %.3g entries on average, %llu at most, in %lld slice%s of %d rows, each filled up to "
                 "its longest row; %.3g %% of the places filled; 16-bit columns in %.3g %% of the slices",
                 (double)plan->a.nnz / (double)plan->a.rows, s->found.longest, (long long)s->slices, plural(s->slices),
                 (int)padded::ROWS, 100.0 * (double)filled / (double)max_i64(places, 1),
                 100.0 * (1.0 - (double)s->found.plain / (double)range_lists(s)));
    if (used < size && s->retained > 0)
        snprintf(text + used, (size_t)(size - used), "; %.3g %% retained in the last-level cache",
                 100.0 * (double)s->retained);
}

template <typename T, typename Stored, typename Element>
padded::matrix<T, Stored, Element> matrix_of(const spmv_plan *plan)
{
    const padded_state *const s = state_of(plan);
    const spmv_csr &a = plan->a;
    return {a.rows,
            s->slices,
            s->of.heads,
            s->of.ranges,
            (const uint16_t *)s->code,
            (const Stored *)s->places,
            (const Element *)s->zero,
            a.row_ptr,
            a.row_ptr_bits == 64,
            a.col,
            (const Stored *)a.val,
            s->retained};
}

} // namespace

extern "C" spmv_status padded_cuda_prepare(spmv_plan *plan)
{
    spmv_status st = plan_new_state(plan, (int64_t)sizeof(padded_state));
    if (st != SPMV_OK)
        return st;
    padded_state *const s = state_of(plan);
    st = plan->a.row_ptr_bits == 64 ? make<int64_t>(plan, s) : make<int32_t>(plan, s);
    if (st != SPMV_OK || plan->declined != nullptr)
        return st;
    plan->longest_row = (int64_t)s->found.longest;
    s->retained = tiles::retained_share(plan, bytes_padded(plan, s));
    describe(plan, s);
    return SPMV_OK;
}

extern "C" spmv_status padded_cuda_count(spmv_context *ctx, const spmv_csr *a, struct facts *facts)
{
    padded_state s = {};
    spmv_plan plan = {}; /* only what the measurement needs */
    plan.ctx = ctx;
    plan.a = *a;
    plan.facts = *facts;
    plan.state = &s;
    plan.facts.memory_speed = memory_speed(&plan);
    s.slices = (a->rows - 1) / padded::ROWS + 1;
    spmv_status st = a->rows > 0 ? make_room(&plan, &s) : SPMV_OK;
    if (st == SPMV_OK && a->rows > 0 && s.table == nullptr)
        st = context_fail(ctx, SPMV_ERROR_MEMORY, "no memory to measure the slices of padded");
    if (st == SPMV_OK && a->rows > 0)
        st = a->row_ptr_bits == 64 ? measure<int64_t>(&plan, &s) : measure<int32_t>(&plan, &s);
    spmv_free(ctx, s.table);
    *facts = plan.facts;
    return st;
}

extern "C" spmv_status padded_cuda_update(spmv_plan *plan)
{
    const padded_state *const s = state_of(plan);
    const spmv_status st = plan->a.row_ptr_bits == 64 ? fill<int64_t>(plan, s, false) : fill<int32_t>(plan, s, false);
    cuda_next_in_order(plan->ctx); /* because a product loads values before it waits */
    return st;
}

extern "C" spmv_status padded_cuda_apply(const spmv_plan *plan, const struct plan_product *p)
{
    const padded_state *const s = state_of(plan);
    return with_all_types(plan, [&](auto sums, auto stored, auto element) {
        using T = decltype(sums);
        using Stored = decltype(stored);
        using Element = decltype(element);
        if constexpr (!std::is_arithmetic<T>::value)
            return SPMV_ERROR_TYPE;
        else
            return tiles::with_store<T, Element>(
                p, padded::blocks_for(s->slices), s->tree, s->tree_counts, [&](auto store) {
                    return on_device(plan->ctx, [&] {
                        return padded::run(plan->ctx, matrix_of<T, Stored, Element>(plan), (const Element *)p->x,
                                           store);
                    });
                });
    });
}

extern "C" const void *padded_cuda_parts(const spmv_plan *plan, int64_t *count)
{
    *count = padded::blocks_for(state_of(plan)->slices);
    return state_of(plan)->tree;
}

extern "C" void padded_cuda_release(spmv_plan *plan)
{
    spmv_free(plan->ctx, state_of(plan)->table);
    spmv_free(plan->ctx, state_of(plan)->places);
}
