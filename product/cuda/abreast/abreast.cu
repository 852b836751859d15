/* Method "abreast" of the backend cuda: plans and products of many vectors (abreast.cuh).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>

#include "product/cuda/abreast/abreast.cuh"
#include "product/cuda/spmv_types.cuh"

namespace
{

/* A block goes through so many rows for each of its subwarps: MANY_TURNS if a launch has one block of columns. Then a
 * block has all threads of a multiprocessor, so that they share rows of x; else FEW_THREADS. */
enum { MANY_TURNS = 16, TURNS = 8, FEW_THREADS = 128 };

struct abreast_state {
    int most_lanes_log; /* of a subwarp */
    int threads, blocks;
    void *first;
};

/* Multiplies j.columns columns, PACK at a time, with as many lanes for a row, at most s->most_lanes_log, as they need. */
template <int PACK, typename T, typename Stored, typename Element>
spmv_status run_with(const spmv_plan *plan, const abreast::job<T, Stored, Element> &j)
{
    const abreast_state *const s = (const abreast_state *)plan->state;
    static const char name[] = "spmv abreast";
    const auto with = [&](auto lanes) {
        constexpr int LANES = decltype(lanes)::value;
        const int blocks = (int)ceil_divide((int64_t)j.columns, (int64_t)PACK * LANES) * s->blocks;
        const auto kernel = abreast::multiply<PACK, LANES, T, Stored, Element>;
        static uint64_t told;
        const spmv_status st = once_a_device(plan->ctx, name, &told, (const void *)kernel,
                                             cudaFuncAttributePreferredSharedMemoryCarveout, 0);
        return st != SPMV_OK ? st : launch_early(plan->ctx, name, blocks, s->threads, kernel, j);
    };
    if constexpr (PACK * sizeof(Element) < 16)
        return with(std::integral_constant<int, warp_lanes>());
    else
        switch (std::min(lanes_log_for(j.columns, PACK), s->most_lanes_log)) {
        case 0:
        case 1:
            return with(std::integral_constant<int, 2>());
        case 2:
            return with(std::integral_constant<int, 4>());
        case 3:
            return with(std::integral_constant<int, 8>());
        default:
            return with(std::integral_constant<int, 16>());
        }
}

template <typename T, typename Stored, typename Element>
spmv_status apply(const spmv_plan *plan, const struct plan_product *p)
{
    const abreast_state *const s = (const abreast_state *)plan->state;
    const abreast::job<T, Stored, Element> j = {(const int32_t *)plan->a.row_ptr,
                                                (const int32_t *)s->first,
                                                plan->a.col,
                                                (const Stored *)plan->a.val,
                                                (const Element *)p->x,
                                                (Element *)p->y,
                                                (uint32_t)(plan->x_stride * (int64_t)sizeof(Element)),
                                                plan->y_stride,
                                                0,
                                                (unsigned)s->blocks,
                                                {*(const T *)p->alpha, *(const T *)p->beta, p->beta_zero}};
    return in_packs<Element>(plan, p, [&](auto pack, int first, int columns) {
        constexpr int PACK = decltype(pack)::value;
        const int block = PACK << s->most_lanes_log;
        const int64_t at_once = (int64_t)(INT32_MAX / s->blocks) * block; /* so that the grid is not too large */
        return in_blocks(j, first, columns, block, at_once, [&](const auto &now) { return run_with<PACK>(plan, now); });
    });
}

} // namespace

extern "C" spmv_status abreast_cuda_prepare(spmv_plan *plan)
{
    spmv_status st = plan_new_state(plan, (int64_t)sizeof(abreast_state));
    const spmv_csr &a = plan->a;
    if (st != SPMV_OK || a.rows == 0)
        return st;
    abreast_state *const s = (abreast_state *)plan->state;
    st = plan_count_rows_cuda(plan);
    plan->declined = plan->method->pays(&plan->facts);
    if (st != SPMV_OK || plan->declined != nullptr)
        return st;
    const int64_t multiprocessors = ((const cuda_state *)plan->ctx->device)->multiprocessors;
    const bool many = abreast_in_blocks(&plan->facts);
    s->most_lanes_log = abreast_lanes_log(&plan->facts);
    s->threads = many ? (int)FEW_THREADS : (int)abreast::MOST_THREADS;
    const int64_t at_once = multiprocessors * (abreast::MOST_THREADS / s->threads);
    const int64_t each = (int64_t)(s->threads >> s->most_lanes_log) * (many ? TURNS : MANY_TURNS);
    s->blocks = (int)max_i64(at_once, ceil_divide(a.rows, each));
    st = plan_alloc(plan, (s->blocks + 1) * (int64_t)sizeof(int32_t), &s->first);
    if (st == SPMV_OK)
        st = on_device(plan->ctx, [&] {
            return launch(plan->ctx, "spmv abreast blocks", grid_for(s->blocks + 1, block_threads), block_threads,
                          abreast::find_first, (const int32_t *)a.row_ptr, a.rows, a.nnz, s->blocks,
                          (int32_t *)s->first);
        });
    cuda_next_in_order(plan->ctx); /* because a product reads the first rows before it waits */
    return st;
}

extern "C" spmv_status abreast_cuda_apply(const spmv_plan *plan, const struct plan_product *product)
{
    return on_device(plan->ctx, [&] {
        return with_all_types(plan, [&](auto sums, auto stored, auto element) {
            return apply<decltype(sums), decltype(stored), decltype(element)>(plan, product);
        });
    });
}

extern "C" void abreast_cuda_release(spmv_plan *plan)
{
    const abreast_state *const s = (const abreast_state *)plan->state;
    spmv_free(plan->ctx, s->first);
}
