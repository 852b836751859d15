/* Method "fused" of the backend cuda: the plan is made on the device, and a product is two launches
 * (spmv_3_fused.cuh).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/plural.h"
#include "product/cuda/spmv_3_fused.cuh"
#include "product/cuda/spmv_types.cuh"

namespace
{

struct fused_state {
    fused::statistics about;
    int64_t tiles;
    void *filled;        /* rows with nonzeros; NULL: all rows */
    void *first, *parts; /* of the cut; its carries */
};

fused::cut cut_of(const spmv_plan *plan, const fused_state *s)
{
    const spmv_csr &a = plan->a;
    return {{a.row_ptr, a.row_ptr_bits == 64, (const int64_t *)s->filled}, (const int64_t *)s->first, s->tiles, a.nnz};
}

bool has_empty_rows(const spmv_plan *plan, const fused_state *s)
{
    return (int64_t)s->about.filled < plan->a.rows;
}

/* The number of blocks that handle empty rows. */
template <typename T> int64_t empty_blocks(const spmv_plan *plan, const fused_state *s)
{
    return has_empty_rows(plan, s) ? ceil_divide(plan->a.rows, (int64_t)fused::shape<T>::ROWS) : 0;
}

/* Temporary memory of the preparation. */
struct making {
    fused::statistics *about;
    int64_t *count, *numbers; /* of rows */
    uint8_t *flags;
};

/* Finds the longest row and sets a flag for each row with nonzeros. */
spmv_status look(spmv_plan *plan, const making &m, fused_state *s)
{
    spmv_context *const ctx = plan->ctx;
    spmv_status st = spmv_upload(ctx, &s->about, m.about, (int64_t)sizeof s->about);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv fused measure", grid_for(plan->a.rows, fused::PLAN_THREADS * 4),
                          fused::PLAN_THREADS, fused::measure, cut_of(plan, s).rows, plan->a.rows, m.flags, m.about);
        });
    return st != SPMV_OK ? st : spmv_download(ctx, m.about, &s->about, (int64_t)sizeof s->about);
}

/* Lists the rows with nonzeros, by compaction of the row numbers. */
spmv_status list_filled(spmv_plan *plan, const making &m, fused_state *s)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t zero = 0, one = 1;
    spmv_status st = plan_alloc(plan, (int64_t)s->about.filled * 8, &s->filled);
    if (st == SPMV_OK)
        st = spmv_map_index(ctx, SPMV_I64, &zero, &one, m.numbers, plan->a.rows);
    if (st == SPMV_OK)
        st = spmv_compact(ctx, SPMV_I64, m.numbers, m.flags, s->filled, m.count, plan->a.rows);
    return st;
}

template <typename T> spmv_status make(spmv_plan *plan, const making &m, fused_state *s)
{
    spmv_context *const ctx = plan->ctx;
    constexpr int CAPACITY = fused::shape<T>::CAPACITY;
    spmv_status st = look(plan, m, s);
    if (st != SPMV_OK)
        return st;
    s->tiles = ceil_divide(plan->a.nnz, (int64_t)CAPACITY);
    const int64_t blocks = s->tiles + empty_blocks<T>(plan, s);
    if (blocks > INT32_MAX)
        return context_fail(ctx, SPMV_ERROR_LIMIT,
                            "spmv_plan_create: %lld tiles exceed the number of blocks of a launch", (long long)blocks);
    if (s->tiles == 0)
        return SPMV_OK;
    if (has_empty_rows(plan, s))
        st = list_filled(plan, m, s);
    if (st == SPMV_OK)
        st = plan_alloc(plan, (s->tiles + 1) * 8, &s->first);
    if (st == SPMV_OK)
        st = plan_alloc(plan, s->tiles * 2 * (int64_t)sizeof(T), &s->parts);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv fused find rows", grid_for(s->tiles + 1, fused::PLAN_THREADS), fused::PLAN_THREADS,
                          fused::find_rows, cut_of(plan, s), (int64_t)s->about.filled, CAPACITY, (int64_t *)s->first,
                          m.about);
        });
    return st != SPMV_OK ? st : spmv_download(ctx, m.about, &s->about, (int64_t)sizeof s->about);
}

/* Describes the plan for users. */
template <typename T> void describe(spmv_plan *plan, const fused_state *s)
{
    const fused::statistics &about = s->about;
    snprintf(
        plan->layout, sizeof plan->layout,
        "rows of %.3g entries on average, %llu at most, in %lld equal tile%s of %d nonzeros; %llu row%s in more than "
        "one tile, %lld empty",
        (double)plan->a.nnz / (double)max_i64(plan->a.rows, 1), about.longest, (long long)s->tiles, plural(s->tiles),
        (int)fused::shape<T>::CAPACITY, about.spanning, plural((int64_t)about.spanning),
        (long long)(plan->a.rows - (int64_t)about.filled));
}

} // namespace

extern "C" spmv_status fused_cuda_prepare(spmv_plan *plan)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t rows = plan->a.rows;
    void *memory = nullptr;
    spmv_status st = plan_new_state(plan, (int64_t)sizeof(fused_state));
    if (st != SPMV_OK)
        return st;
    fused_state *const s = (fused_state *)plan->state;
    if (rows > 0) {
        const int64_t head = (int64_t)sizeof(fused::statistics) + 8;
        st = spmv_alloc(ctx, head + rows * 9, &memory);
        if (st == SPMV_OK) {
            int64_t *const count = (int64_t *)((fused::statistics *)memory + 1);
            const making m = {(fused::statistics *)memory, count, count + 1, (uint8_t *)(count + 1 + rows)};
            st = with_types(plan, [&](auto sums, auto) { return make<decltype(sums)>(plan, m, s); });
        }
        spmv_free(ctx, memory);
    }
    if (st == SPMV_OK)
        st = with_types(plan, [&](auto sums, auto) {
            describe<decltype(sums)>(plan, s);
            return SPMV_OK;
        });
    return st;
}

extern "C" spmv_status fused_cuda_apply(const spmv_plan *plan, const struct plan_product *p)
{
    const fused_state *const s = (const fused_state *)plan->state;
    return with_types(plan, [&](auto sums, auto stored) {
        using T = decltype(sums);
        using Stored = decltype(stored);
        T *const open = (T *)s->parts;
        const fused::carries<T> between = {open, open + s->tiles};
        const scaling<T> by = {*(const T *)p->alpha, *(const T *)p->beta, p->beta_zero};
        return on_device(plan->ctx, [&] {
            return fused::run(plan->ctx, cut_of(plan, s), plan->a.rows, empty_blocks<T>(plan, s), plan->a.col,
                              (const Stored *)plan->a.val, between, by, (const T *)p->x, (T *)p->y);
        });
    });
}

extern "C" void fused_cuda_release(spmv_plan *plan)
{
    const fused_state *const s = (const fused_state *)plan->state;
    spmv_free(plan->ctx, s->filled);
    spmv_free(plan->ctx, s->first);
    spmv_free(plan->ctx, s->parts);
}
