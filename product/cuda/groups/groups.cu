/* Method "groups" of the backend cuda: the plan finds groups of rows with equal columns on the device,
 * and a product is one launch (groups.cuh).
 *
 * It declines where choose.c says so.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/plural.h"
#include "product/cuda/groups/groups_plan.cuh"
#include "product/cuda/spmv_types.cuh"
#include "product/cuda/tiles/spmv_4_tiles_epilogue.cuh"

namespace
{

using grouped::making;

/* The state of a plan; arrays are in the context's memory. */
struct groups_state {
    grouped::findings found;
    int64_t tiles;
    int lanes;    /* that sum a group */
    void *making; /* the arrays of struct making */
    void *table;  /* of groups; then the sums of an epilogue's dot product, and its counters */
    void *tree;
    unsigned *tree_counts;
    void *narrow;
    float retained;
};

groups_state *state_of(const spmv_plan *plan)
{
    return (groups_state *)plan->state;
}

/* ------------------------------------------------------------ the plan, step by step */

/* Sets the tiles, allocates the arrays of *m and clears what must be 0. */
spmv_status make_room(spmv_plan *plan, groups_state *s, making *m)
{
    m->tile = plan->facts.ranks ? (int)PLAN_TILE_ROWS : (int)grouped::TILE;
    s->tiles = (plan->a.rows - 1) / m->tile + 1;
    const int64_t states = s->tiles * element_words<grouped::counts>::count * (int64_t)sizeof(uint64_t);
    const int64_t bytes[] = {tiles::aligned((int64_t)sizeof(grouped::findings)), tiles::aligned(states),
                             tiles::aligned(s->tiles * (int64_t)sizeof(grouped::counts)),
                             tiles::aligned(s->tiles * grouped::WORDS * (int64_t)sizeof(uint32_t))};
    const spmv_status st = plan_alloc(plan, bytes[0] + bytes[1] + bytes[2] + bytes[3], &s->making);
    if (st != SPMV_OK)
        return st;
    char *at = (char *)s->making;
    m->found = (grouped::findings *)at;
    m->states = {(uint64_t *)(at += bytes[0]), &m->found->ticket, nullptr, &m->found->all, (int)s->tiles};
    m->before = (grouped::counts *)(at += bytes[1]);
    m->begins = (uint32_t *)(at += bytes[2]);
    return tiles::cleared(plan->ctx, s->making, bytes[0] + bytes[1]);
}

/* Counts the groups, and sets the facts that follow. Waits. */
template <typename Offset> spmv_status count_groups(spmv_plan *plan, const making &m, groups_state *s)
{
    spmv_context *const ctx = plan->ctx;
    const spmv_csr &a = plan->a;
    facts &f = plan->facts;
    /* a sample of each rank's rows would depend on their number */
    const int samples = f.ranks ? 0 : (int)grouped::SAMPLES;
    const unsigned least = (unsigned)groups_least_same(&f, samples);
    spmv_status st = on_device(ctx, [&] {
        const spmv_status sampled =
            launch(ctx, "spmv groups sample", grouped::SAMPLES / grouped::SUBWARPS, grouped::PLAN_THREADS,
                   grouped::sample<Offset>, (const Offset *)a.row_ptr, a.col, a.rows, m.found);
        return sampled != SPMV_OK ? sampled
                                  : launch(ctx, "spmv groups count", (int)s->tiles, grouped::PLAN_THREADS,
                                           grouped::count<Offset>, (const Offset *)a.row_ptr, a.col, a.rows, least, m);
    });
    if (st == SPMV_OK)
        st = spmv_download(ctx, m.found, &s->found, (int64_t)sizeof s->found);
    f.sampled = samples;
    f.same = (int)s->found.same;
    f.groups = s->found.all.groups;
    f.longest = (int64_t)s->found.longest;
    return st;
}

/* The bytes of the matrix that a product reads. */
double bytes_read(const spmv_plan *plan, const groups_state *s)
{
    return (double)plan->a.nnz * (double)spmv_type_size(plan->a.type) +
           (double)s->found.all.columns * (s->narrow != nullptr ? 2.0 : 4.0) +
           (double)sizeof(grouped::group) * s->found.all.groups;
}

/* Lanes of a subwarp for rows of this length on average. A step takes four columns a lane: one step
 * for most rows of up to 32 entries. */
int lanes_for(double length)
{
    return length <= 32 ? 8 : 16;
}

/* Allocates what products need, and writes it. */
template <typename Offset> spmv_status make_table(spmv_plan *plan, const making &m, groups_state *s)
{
    spmv_context *const ctx = plan->ctx;
    const spmv_csr &a = plan->a;
    const int64_t groups = s->found.all.groups;
    const tiles::tree_size tree(grouped::blocks_for(groups, s->lanes));
    const int64_t bytes[] = {tiles::aligned((groups + 1) * (int64_t)sizeof(grouped::group)),
                             tiles::aligned(tree.sums * (int64_t)spmv_type_size(plan->type)),
                             tiles::aligned(tree.counts * (int64_t)sizeof(unsigned))};
    spmv_status st = plan_alloc(plan, bytes[0] + bytes[1] + bytes[2], &s->table);
    if (st != SPMV_OK)
        return st;
    s->tree = (char *)s->table + bytes[0];
    s->tree_counts = (unsigned *)((char *)s->tree + bytes[1]);
    if (plan->compression != SPMV_COMPRESSION_NONE && s->found.all.columns > 0)
        st = plan_alloc_if_room(plan, (int64_t)s->found.all.columns * 2, &s->narrow);
    if (st == SPMV_OK)
        st = tiles::cleared(ctx, s->tree_counts, bytes[2]);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv groups write", (int)s->tiles, grouped::PLAN_THREADS, grouped::write<Offset>,
                          (const Offset *)a.row_ptr, a.col, a.rows, a.nnz, m, (grouped::group *)s->table,
                          (uint16_t *)s->narrow);
        });
    if (st == SPMV_OK)
        st = spmv_download(ctx, m.found, &s->found, (int64_t)sizeof s->found);
    if (st == SPMV_OK && s->narrow != nullptr && s->found.narrow == 0) {
        plan_free(plan, (int64_t)s->found.all.columns * 2, s->narrow);
        s->narrow = nullptr;
    }
    return st;
}

/* Makes the groups, or declines. */
template <typename Offset> spmv_status make(spmv_plan *plan, groups_state *s)
{
    making m = {};
    spmv_status st = make_room(plan, s, &m);
    if (st == SPMV_OK)
        st = count_groups<Offset>(plan, m, s);
    if (st == SPMV_OK)
        plan->declined = plan->method->pays(&plan->facts);
    if (st == SPMV_OK && plan->declined == nullptr) {
        st = tiles::count_values(plan);
        plan->declined = plan->method->pays(&plan->facts);
    }
    if (st != SPMV_OK || plan->declined != nullptr)
        return st;
    s->lanes = plan->ranks != nullptr ? lanes_for((double)plan->ranks->nnz / (double)plan->ranks->rows)
                                      : lanes_for((double)plan->a.nnz / (double)plan->a.rows);
    return make_table<Offset>(plan, m, s);
}

/* Describes the plan for users. */
void describe(spmv_plan *plan, const groups_state *s)
{
    char *const text = plan->layout;
    const int size = (int)sizeof plan->layout;
    const double groups = (double)s->found.all.groups;
    int used = snprintf(
        text, (size_t)size,
        "rows of %.3g entries on average, %llu at most, in %d group%s of %.3g rows with equal columns, %u at most; "
        "%d lanes per group; 16-bit columns in %.3g %% of the groups",
        (double)plan->a.nnz / (double)plan->a.rows, s->found.longest, s->found.all.groups, plural(s->found.all.groups),
        (double)plan->a.rows / groups, s->found.largest, s->lanes,
        s->narrow != nullptr ? 100.0 * (double)s->found.narrow / groups : 0.0);
    if (used < size && s->retained > 0)
        used += snprintf(text + used, (size_t)(size - used), "; %.3g %% retained in the last-level cache",
                         100.0 * (double)s->retained);
    if (used < size)
        used += snprintf(text + used, (size_t)(size - used), "; %llu empty row%s", s->found.empty,
                         plural((int64_t)s->found.empty));
    if (used < size && plan->compression == SPMV_COMPRESSION_VALUES)
        snprintf(text + used, (size_t)(size - used), "; no table of values: %s",
                 plan->named ? "the method has none" : "more than 256 values");
}

template <typename T, typename Stored> grouped::matrix<T, Stored> matrix_of(const spmv_plan *plan)
{
    const groups_state *const s = state_of(plan);
    return {s->found.all.groups,         (const grouped::group *)s->table, plan->a.col,
            (const uint16_t *)s->narrow, (const Stored *)plan->a.val,      s->retained};
}

} // namespace

extern "C" spmv_status groups_cuda_prepare(spmv_plan *plan)
{
    spmv_status st = plan_new_state(plan, (int64_t)sizeof(groups_state));
    if (st != SPMV_OK)
        return st;
    groups_state *const s = state_of(plan);
    st = plan->a.row_ptr_bits == 64 ? make<int64_t>(plan, s) : make<int32_t>(plan, s);
    if (st != SPMV_OK || plan->declined != nullptr)
        return st;
    plan->longest_row = (int64_t)s->found.longest;
    s->retained = tiles::retained_share(plan, bytes_read(plan, s));
    describe(plan, s);
    plan->reads_values = true;
    plan->settled = true; /* make_table has waited */
    return st;
}

extern "C" spmv_status groups_cuda_count(spmv_context *ctx, const spmv_csr *a, struct facts *facts)
{
    groups_state s = {};
    making m = {};
    spmv_plan plan = {}; /* only what the count needs */
    plan.ctx = ctx;
    plan.a = *a;
    plan.facts = *facts;
    spmv_status st = a->rows > 0 ? make_room(&plan, &s, &m) : SPMV_OK;
    if (st == SPMV_OK && a->rows > 0)
        st = a->row_ptr_bits == 64 ? count_groups<int64_t>(&plan, m, &s) : count_groups<int32_t>(&plan, m, &s);
    spmv_free(ctx, s.making);
    *facts = plan.facts;
    return st;
}

extern "C" spmv_status groups_cuda_apply(const spmv_plan *plan, const struct plan_product *p)
{
    const groups_state *const s = state_of(plan);
    return with_types(plan, [&](auto sums, auto stored) {
        using T = decltype(sums);
        using Stored = decltype(stored);
        return tiles::with_store<T>(p, grouped::blocks_for(s->found.all.groups, s->lanes), s->tree, s->tree_counts,
                                    [&](auto store) {
                                        if constexpr (!std::is_arithmetic<T>::value)
                                            return SPMV_ERROR_TYPE; /* the method has no complex types */
                                        else
                                            return on_device(plan->ctx, [&] {
                                                return grouped::run(plan->ctx, matrix_of<T, Stored>(plan), s->lanes,
                                                                    (int)s->found.largest, (const T *)p->x, store);
                                            });
                                    });
    });
}

extern "C" const void *groups_cuda_parts(const spmv_plan *plan, int64_t *count)
{
    const groups_state *const s = state_of(plan);
    *count = grouped::blocks_for(s->found.all.groups, s->lanes);
    return s->tree;
}

extern "C" void groups_cuda_release(spmv_plan *plan)
{
    const groups_state *const s = state_of(plan);
    spmv_free(plan->ctx, s->making);
    spmv_free(plan->ctx, s->table);
    spmv_free(plan->ctx, s->narrow);
}
