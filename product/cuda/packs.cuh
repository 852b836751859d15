/* Products of many vectors: neighbouring columns of x and of y in registers, and the place of a thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_PACKS_CUH
#define PRODUCT_PACKS_CUH

#include "device/block.cuh"
#include "device/loads.cuh"
#include "product/cuda/spmv_cuda.cuh"
#include "product/cuda/spmv_types.cuh"

/* Several items, at a multiple of 16 bytes, or of their size. */
template <typename Item, int COUNT> struct alignas(sizeof(Item) * COUNT < 16 ? sizeof(Item) * COUNT : 16) few {
    Item at[COUNT];
};

/* Loads items that are read once. */
template <typename Item, int COUNT> __device__ few<Item, COUNT> load_few_once(const few<Item, COUNT> *from)
{
    constexpr int BYTES = (int)sizeof(few<Item, COUNT>), WORD = BYTES < 16 ? BYTES : 16;
    few<Item, COUNT> items;
    if constexpr (WORD == 16) {
#pragma unroll
        for (int i = 0; i < BYTES / 16; i++) {
            const words<2> word = load_once((const words<2> *)from + i);
            memcpy((char *)&items + 16 * i, &word, 16);
        }
    } else {
        items = load_once(from);
    }
    return items;
}

/* sum + value element, each product and sum rounded once. */
inline __device__ float fused(float value, float element, float sum)
{
    return fmaf(value, element, sum);
}
inline __device__ double fused(double value, double element, double sum)
{
    return fma(value, element, sum);
}
template <typename Complex> __device__ Complex fused(Complex value, Complex element, Complex sum)
{
    return {fused(-value.im, element.im, fused(value.re, element.re, sum.re)),
            fused(value.im, element.re, fused(value.re, element.im, sum.im))};
}

/* Where `wanted`: *sum = fused(value, element, *sum). No branch, and no copy of the sum, which a condition in C++ needs. */
inline __device__ void fuse_if(bool wanted, float value, float element, float *sum)
{
#ifdef __CUDA_ARCH__
    asm("{ .reg .pred p; setp.ne.s32 p, %3, 0; @p fma.rn.f32 %0, %1, %2, %0; }"
        : "+f"(*sum)
        : "f"(value), "f"(element), "r"((int)wanted));
#else
    *sum = wanted ? fused(value, element, *sum) : *sum;
#endif
}
inline __device__ void fuse_if(bool wanted, double value, double element, double *sum)
{
#ifdef __CUDA_ARCH__
    asm("{ .reg .pred p; setp.ne.s32 p, %3, 0; @p fma.rn.f64 %0, %1, %2, %0; }"
        : "+d"(*sum)
        : "d"(value), "d"(element), "r"((int)wanted));
#else
    *sum = wanted ? fused(value, element, *sum) : *sum;
#endif
}
template <typename Complex> __device__ void fuse_if(bool wanted, Complex value, Complex element, Complex *sum)
{
    fuse_if(wanted, value.re, element.re, &sum->re);
    fuse_if(wanted, -value.im, element.im, &sum->re);
    fuse_if(wanted, value.im, element.re, &sum->im);
    fuse_if(wanted, value.re, element.im, &sum->im);
}

/* The sums of neighbouring columns. */
template <typename T, int PACK> struct alignas(sizeof(T) * PACK < 16 ? sizeof(T) * PACK : 16) pack {
    T at[PACK];

    __device__ void add(const pack &other)
    {
#pragma unroll
        for (int i = 0; i < PACK; i++)
            at[i] += other.at[i];
    }

    template <typename Element> __device__ void add(T value, const row_pack<T, Element, PACK> &row)
    {
#pragma unroll
        for (int i = 0; i < PACK; i++)
            at[i] = fused(value, row[i], at[i]);
    }

    template <typename Element> __device__ void add_if(bool wanted, T value, const row_pack<T, Element, PACK> &row)
    {
#pragma unroll
        for (int i = 0; i < PACK; i++)
            fuse_if(wanted, value, row[i], &at[i]);
    }
};

/* Stores a row of y: y = alpha sum + beta y. */
template <typename T, typename Element, int PACK>
__device__ void store_row(const scaling<T> &s, const pack<T, PACK> &sum, Element *y)
{
    row_pack<T, Element, PACK> *const to = (row_pack<T, Element, PACK> *)y;
    pack<T, PACK> out;
#pragma unroll
    for (int i = 0; i < PACK; i++)
        out.at[i] = s.alpha * sum.at[i];
    if (!s.beta_zero) {
        const row_pack<T, Element, PACK> before = *to;
#pragma unroll
        for (int i = 0; i < PACK; i++)
            out.at[i] += s.beta * before[i];
    }
    row_pack<T, Element, PACK> stored;
    stored.set(out.at);
    *to = stored;
}

/* The columns that a lane loads at once: 16 bytes where strides and addresses allow it and there are enough for two
 * lanes, otherwise one. */
template <typename Element> int pack_for(const spmv_plan *plan, const struct plan_product *p)
{
    constexpr int PACK = sizeof(Element) < 16 ? 16 / (int)sizeof(Element) : 1;
    const bool whole = plan->x_stride % PACK == 0 && plan->y_stride % PACK == 0 && (uintptr_t)p->x % 16 == 0 &&
                       (uintptr_t)p->y % 16 == 0;
    return whole && plan->vectors >= 2 * PACK ? PACK : 1;
}

/* Calls run(constant PACK, first column, columns): the columns in whole packs, then the others one by one. */
template <typename Element, typename Run>
spmv_status in_packs(const spmv_plan *plan, const struct plan_product *p, const Run &run)
{
    int packed = 0;
    if constexpr (sizeof(Element) < 16) {
        constexpr int PACK = 16 / (int)sizeof(Element);
        if (pack_for<Element>(plan, p) == PACK) {
            packed = plan->vectors / PACK * PACK;
            const spmv_status st = run(std::integral_constant<int, PACK>(), 0, packed);
            if (st != SPMV_OK)
                return st;
        }
    }
    return packed == plan->vectors ? SPMV_OK : run(std::integral_constant<int, 1>(), packed, plan->vectors - packed);
}

/* Multiplies `columns` columns of a job from column `first` on, at most at_once (some blocks) in a launch: calls run(job).
 * Those beyond whole blocks have a launch of their own, with fewer lanes for each. */
template <typename Job, typename Run>
spmv_status in_blocks(Job j, int first, int columns, int block, int64_t at_once, const Run &run)
{
    spmv_status st = SPMV_OK;
    for (const int end = first + columns; first < end && st == SPMV_OK; first += j.columns) {
        const int left = (int)min_i64(end - first, at_once);
        j.columns = left > block ? left / block * block : left;
        Job now = j;
        now.x = j.x + first;
        now.y = j.y + first;
        st = run(now);
    }
    return st;
}

/* log2 of the lanes, at most a warp, whose packs cover the columns. */
inline int lanes_log_for(int columns, int pack)
{
    int log = 0;
    while (log < 5 && (int64_t)pack << log < columns)
        log++;
    return log;
}

#endif
