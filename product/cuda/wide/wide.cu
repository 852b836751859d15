/* Method "wide" of the backend cuda: plans and products of many vectors (wide.cuh).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <stdio.h>

#include "core/plural.h"
#include "product/cuda/spmv_types.cuh"
#include "product/cuda/wide/wide.cuh"

namespace
{

enum {
    SHARE = 32,              /* items of a share, or up to twice as many: whole rows of the mean length */
    LEAST_SHARE = 8,         /* of a small matrix */
    MOST_SHARE = 96,         /* of a matrix with long rows */
    SHARES = 1 << 13,        /* that keep all multiprocessors busy */
    SHARED_BYTES = 48 * 1024 /* bytes of a block */
};

/* The bytes of scratch memory that the sums of tiles may take, unless a block of columns needs more. Tests
 * build with less. */
#ifndef SPMV_WIDE_SCRATCH
#define SPMV_WIDE_SCRATCH (64 << 20)
#endif

struct wide_state {
    wide::shares shares;
    int64_t tiles;
    int columns_at_once;
    bool split; /* a row has several shares */
    void *begins, *heads, *tails;
};

/* The length of a share: as many rows of the mean length as SHARE items need. */
int share_length(const spmv_csr &a)
{
    const int64_t items = a.rows + a.nnz, each = ceil_divide(items, a.rows);
    int64_t least = SHARE;
    while (least > LEAST_SHARE && items / least < SHARES)
        least /= 2;
    return (int)min_i64(ceil_divide(least, each) * each, MOST_SHARE);
}

/* Multiplies j.columns columns, PACK at a time. */
template <int PACK, typename T, typename Stored, typename Element>
spmv_status run_with(const spmv_plan *plan, const wide_state *s, wide::job<T, Stored, Element> j)
{
    spmv_context *const ctx = plan->ctx;
    j.lanes_log = std::max(lanes_log_for(j.columns, PACK), (int)wide::LEAST_LANES_LOG);
    int subwarps = wide::MOST_THREADS >> j.lanes_log;
    const auto shared = [&] {
        return wide::staged<Stored, wide::together<T, PACK>>::bytes((subwarps + 1) * s->shares.length) +
               (s->split ? wide::sums_bytes<T, PACK>(subwarps << j.lanes_log) : 0);
    };
    while (shared() > SHARED_BYTES && subwarps > wide::TILE)
        subwarps /= 2;
    const int64_t columns = (int64_t)PACK << j.lanes_log, blocks = ceil_divide((int64_t)j.columns, columns);
    const int threads = subwarps << j.lanes_log;
    j.groups = (unsigned)ceil_divide(s->shares.count, (int64_t)subwarps);
    spmv_status st = launch_shaped(ctx, "spmv wide", {(int)(j.groups * blocks), threads, shared(), false},
                                   wide::multiply<PACK, T, Stored, Element>, j);
    j.groups = (unsigned)ceil_divide(s->tiles, (int64_t)subwarps);
    if (st == SPMV_OK && s->split && s->tiles > 1)
        st = launch(ctx, "spmv wide join", (int)(j.groups * blocks), threads, wide::join<PACK, T, Stored, Element>, j);
    return st;
}

template <typename T, typename Stored, typename Element>
spmv_status apply(const spmv_plan *plan, const struct plan_product *p)
{
    const wide_state *const s = (const wide_state *)plan->state;
    const wide::job<T, Stored, Element> j = {s->shares,
                                             plan->a.col,
                                             (const Stored *)plan->a.val,
                                             (const Element *)p->x,
                                             (Element *)p->y,
                                             (uint32_t)(plan->x_stride * (int64_t)sizeof(Element)),
                                             plan->y_stride,
                                             0,
                                             0,
                                             0,
                                             s->split,
                                             (T *)s->heads,
                                             (T *)s->tails,
                                             {*(const T *)p->alpha, *(const T *)p->beta, p->beta_zero}};
    return in_packs<Element>(plan, p, [&](auto pack, int first, int columns) {
        constexpr int PACK = decltype(pack)::value;
        return in_blocks(j, first, columns, PACK * warp_lanes, s->columns_at_once,
                         [&](const auto &now) { return run_with<PACK>(plan, s, now); });
    });
}

/* Finds the shares, and the longest row if it has several. */
spmv_status make_shares(spmv_plan *plan, wide_state *s)
{
    const spmv_csr &a = plan->a;
    spmv_context *const ctx = plan->ctx;
    const int length = share_length(a);
    s->shares = {a.rows, a.nnz, a.row_ptr, a.row_ptr_bits == 64, length, ceil_divide(a.rows + a.nnz, (int64_t)length),
                 nullptr};
    s->tiles = ceil_divide(s->shares.count, (int64_t)wide::TILE);
    void *memory = nullptr;
    unsigned long long longest = 0;
    spmv_status st = plan_alloc(plan, (s->shares.count + 1) * (int64_t)sizeof(wide::place_in_matrix), &s->begins);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (int64_t)sizeof longest, &memory);
    if (st == SPMV_OK)
        st = spmv_upload(ctx, &longest, memory, (int64_t)sizeof longest);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv wide shares", grid_for(s->shares.count + 1, wide::MOST_THREADS),
                          wide::MOST_THREADS, wide::find_shares, s->shares, (wide::place_in_matrix *)s->begins,
                          (unsigned long long *)memory);
        });
    if (st == SPMV_OK)
        st = spmv_download(ctx, memory, &longest, (int64_t)sizeof longest);
    spmv_free(ctx, memory);
    s->shares.begin = (const wide::place_in_matrix *)s->begins;
    s->split = longest != 0;
    return st;
}

/* Memory for the sums of rows that cross tiles. */
spmv_status make_scratch(spmv_plan *plan, wide_state *s)
{
    const int64_t size = (int64_t)spmv_type_size(plan->sums);
    const int64_t block = 16 * warp_lanes / min_i64((int64_t)spmv_type_size(plan->type), 16);
    const int64_t at_once = max_i64(SPMV_WIDE_SCRATCH / (2 * s->tiles * size) / block * block, block);
    s->columns_at_once = s->split ? (int)min_i64(at_once, INT32_MAX / 2) : INT32_MAX / 2;
    const int64_t each = s->split ? s->tiles * min_i64(plan->vectors, s->columns_at_once) * size : 0;
    const spmv_status st = plan_alloc(plan, each, &s->heads);
    return st != SPMV_OK ? st : plan_alloc(plan, each, &s->tails);
}

} // namespace

extern "C" spmv_status wide_cuda_prepare(spmv_plan *plan)
{
    spmv_status st = plan_new_state(plan, (int64_t)sizeof(wide_state));
    if (st != SPMV_OK || plan->a.rows == 0)
        return st;
    wide_state *const s = (wide_state *)plan->state;
    st = make_shares(plan, s);
    return st != SPMV_OK ? st : make_scratch(plan, s);
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
    const wide_state *const s = (const wide_state *)plan->state;
    spmv_free(plan->ctx, s->begins);
    spmv_free(plan->ctx, s->heads);
    spmv_free(plan->ctx, s->tails);
}
