/* Method "panels" of the backend cuda: plans and products of many vectors (panels.cuh).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <stdio.h>

#include "core/plural.h"
#include "product/cuda/panels/panels.cuh"
#include "product/cuda/spmv_types.cuh"

namespace
{

enum { SAMPLED = 4096 /* panels that are looked at before all are counted */ };

const char no_room[] = "there is no memory for a second copy of the matrix";

struct panels_state {
    int64_t panels, steps;
    void *memory; /* all arrays */
    int32_t *begin;
    void *col, *rows, *val;
};

panels_state *state_of(const spmv_plan *plan)
{
    return (panels_state *)plan->state;
}

/* The size of a part of an allocation, so that the next part is aligned. */
int64_t aligned(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

panels::csr csr_of(const spmv_plan *plan)
{
    const spmv_csr &a = plan->a;
    return {a.row_ptr, a.row_ptr_bits == 64, a.col, a.rows};
}

/* Counts each panel `apart` from the one before, and sets the facts. found: on the device. Waits. */
spmv_status count(spmv_plan *plan, int64_t apart, int32_t *steps, panels::findings *on_device_found)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t panels = state_of(plan)->panels;
    panels::findings found = {};
    spmv_status st = spmv_upload(ctx, &found, on_device_found, (int64_t)sizeof found);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return launch(ctx, "spmv panels count",
                          (int)ceil_divide(ceil_divide(panels, apart), (int64_t)panels::PLAN_THREADS),
                          panels::PLAN_THREADS, panels::count, csr_of(plan), panels, apart, steps, on_device_found);
        });
    if (st == SPMV_OK)
        st = spmv_download(ctx, on_device_found, &found, (int64_t)sizeof found);
    plan->facts.panel_columns = (double)found.columns / (double)max_i64((int64_t)found.entries, 1);
    plan->facts.longest_panel = (int64_t)found.longest * panels::STEP;
    return st;
}

/* Counts the columns of all panels, in steps. The plan may decline, also after a look at some of them. */
spmv_status count_all(spmv_plan *plan, int32_t *steps, panels::findings *on_device_found)
{
    const int64_t apart = max_i64(state_of(plan)->panels / SAMPLED, 1);
    spmv_status st = SPMV_OK;
    if (apart > 1) {
        st = count(plan, apart, nullptr, on_device_found);
        plan->declined = plan->method->pays(&plan->facts);
    }
    if (st != SPMV_OK || plan->declined != nullptr)
        return st;
    st = count(plan, 1, steps, on_device_found);
    plan->declined = plan->method->pays(&plan->facts);
    return st;
}

/* Finds the step where each panel begins. steps: panels + 1. */
spmv_status find_begins(spmv_plan *plan, int32_t *steps, void *scratch)
{
    spmv_context *const ctx = plan->ctx;
    panels_state *const s = state_of(plan);
    const int64_t n = s->panels;
    int32_t number = 0;
    spmv_status st = plan_alloc_if_room(plan, (n + 1) * 4, (void **)&s->begin);
    if (s->begin == nullptr)
        plan->declined = no_room;
    if (st != SPMV_OK || plan->declined != nullptr)
        return st;
    st = spmv_upload(ctx, &number, steps + n, (int64_t)sizeof number);
    if (st == SPMV_OK)
        st = ctx->backend->scan(ctx, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_I32, steps, s->begin, n + 1, scratch);
    if (st == SPMV_OK)
        st = spmv_download(ctx, s->begin + n, &number, (int64_t)sizeof number);
    s->steps = number;
    return st;
}

spmv_status measure(spmv_plan *plan)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t n = state_of(plan)->panels, own = aligned((int64_t)sizeof(panels::findings)),
                  lengths = aligned((n + 1) * 4);
    void *memory = nullptr;
    spmv_status st = spmv_alloc(ctx, own + lengths + ctx->backend->scan_scratch(ctx, SPMV_I32, n + 1), &memory);
    int32_t *const steps = (int32_t *)((char *)memory + own);
    if (st == SPMV_OK)
        st = count_all(plan, steps, (panels::findings *)memory);
    if (st == SPMV_OK && plan->declined == nullptr)
        st = find_begins(plan, steps, (char *)memory + own + lengths);
    spmv_free(ctx, memory);
    return st;
}

/* The arrays of a product. */
template <typename Stored> panels::arrays<Stored> arrays_of(const panels_state *s)
{
    return {s->begin, (few<int32_t, panels::STEP> *)s->col, (panels::step_masks *)s->rows,
            (few<Stored, panels::ROWS> *)s->val};
}

spmv_status fill(const spmv_plan *plan)
{
    spmv_context *const ctx = plan->ctx;
    const panels_state *const s = state_of(plan);
    return with_all_types(plan, [&](auto, auto stored, auto) {
        using Stored = decltype(stored);
        return on_device(ctx, [&] {
            return launch(ctx, "spmv panels fill", (int)ceil_divide(s->panels, (int64_t)panels::PLAN_THREADS),
                          panels::PLAN_THREADS, panels::fill<Stored>, csr_of(plan), s->panels,
                          (const Stored *)plan->a.val, arrays_of<Stored>(s));
        });
    });
}

spmv_status make(spmv_plan *plan)
{
    panels_state *const s = state_of(plan);
    spmv_status st = measure(plan);
    if (st != SPMV_OK || plan->declined != nullptr)
        return st;
    const int64_t columns = s->steps * panels::STEP, value = (int64_t)spmv_type_size(plan->a.type);
    const int64_t sizes[] = {aligned(columns * 4), aligned(columns), aligned(columns * panels::ROWS * value)};
    st = plan_alloc_if_room(plan, sizes[0] + sizes[1] + sizes[2], &s->memory);
    if (s->memory == nullptr)
        plan->declined = no_room;
    if (st != SPMV_OK || plan->declined != nullptr)
        return st;
    s->col = s->memory;
    s->rows = (char *)s->col + sizes[0];
    s->val = (char *)s->rows + sizes[1];
    return fill(plan);
}

/* Multiplies j.columns columns, PACK at a time. */
template <int PACK, typename T, typename Stored, typename Element>
spmv_status run_with(const spmv_plan *plan, panels::job<T, Stored, Element> j)
{
    j.lanes_log = lanes_log_for(j.columns, PACK);
    j.groups = (unsigned)ceil_divide(j.panels, (int64_t)panels::THREADS >> j.lanes_log);
    return launch(plan->ctx, "spmv panels", (int)(j.groups * ceil_divide(j.columns, PACK << j.lanes_log)),
                  panels::THREADS, panels::multiply<PACK, T, Stored, Element>, j);
}

template <typename T, typename Stored, typename Element>
spmv_status apply(const spmv_plan *plan, const struct plan_product *p)
{
    const panels_state *const s = state_of(plan);
    const panels::job<T, Stored, Element> j = {plan->a.rows,
                                               s->panels,
                                               arrays_of<Stored>(s),
                                               (const Element *)p->x,
                                               (Element *)p->y,
                                               (uint32_t)(plan->x_stride * (int64_t)sizeof(Element)),
                                               plan->y_stride,
                                               0,
                                               0,
                                               0,
                                               {*(const T *)p->alpha, *(const T *)p->beta, p->beta_zero}};
    return in_packs<Element>(plan, p, [&](auto pack, int first, int columns) {
        constexpr int PACK = decltype(pack)::value;
        return in_blocks(j, first, columns, PACK * warp_lanes, INT32_MAX / 2,
                         [&](const auto &now) { return run_with<PACK>(plan, now); });
    });
}

} // namespace

extern "C" spmv_status panels_cuda_prepare(spmv_plan *plan)
{
    spmv_status st = plan_new_state(plan, (int64_t)sizeof(panels_state));
    if (st != SPMV_OK || plan->a.rows == 0)
        return st;
    panels_state *const s = state_of(plan);
    s->panels = ceil_divide(plan->a.rows, (int64_t)panels::ROWS);
    st = make(plan);
    if (st == SPMV_OK && plan->declined == nullptr)
        snprintf(plan->layout, sizeof plan->layout, "%lld panel%s of %d rows, with %.3g columns for each nonzero",
                 (long long)s->panels, plural(s->panels), (int)panels::ROWS, plan->facts.panel_columns);
    return st;
}

extern "C" spmv_status panels_cuda_update(spmv_plan *plan)
{
    return fill(plan);
}

extern "C" spmv_status panels_cuda_apply(const spmv_plan *plan, const struct plan_product *product)
{
    return on_device(plan->ctx, [&] {
        return with_all_types(plan, [&](auto sums, auto stored, auto element) {
            return apply<decltype(sums), decltype(stored), decltype(element)>(plan, product);
        });
    });
}

extern "C" void panels_cuda_release(spmv_plan *plan)
{
    const panels_state *const s = state_of(plan);
    spmv_free(plan->ctx, s->begin);
    spmv_free(plan->ctx, s->memory);
}
