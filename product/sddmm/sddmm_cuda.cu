/* Sampled products on a GPU: Y = P o (A B') at the entries of P.
 *
 * Idea:       a subwarp of as many lanes as a row of B has packs of 16 bytes (4 to 32) takes a run of neighbouring
 *             entries, TOGETHER at a time. A lane loads a pack of each of their rows of B. The pack of a row of A
 *             stays in registers as long as the run is in this row; where a batch begins and where it ends in
 *             another row, both are loaded with those of B. A lane has one sum for each entry. In the tree at the
 *             end the lanes share the entries out: each halving passes half of them to the other lane of a pair.
 * Work:       nnz * k products.
 * Depth:      k / columns of 512 bytes, and the tree.
 * Launches:   1.
 * Bytes:      8 and a value for each entry, a row of B for each entry, from caches where possible, and A.
 * Balance:    entries, not rows: each subwarp has as many.
 * Bits:       the order of sddmm_internal.h, which depends on k only.
 * Source:     T. Gale, M. Zaharia, C. Young, E. Elsen, "Sparse GPU kernels for deep learning", SC 2020.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/halves.cuh"
#include "device/launch.cuh"
#include "device/loads.cuh"

extern "C" {
#include "product/plan_internal.h"
#include "product/sddmm/sddmm_internal.h"
}

namespace
{

/* TOGETHER: entries of a batch. MOST_RUN: entries of a subwarp, fewer in small matrices. RESIDENT: blocks of a
 * multiprocessor, at most. */
enum { THREADS = 128, TOGETHER = 8, LEAST_LANES_LOG = 2, MOST_RUN = 64, RESIDENT = 6 };

/* The blocks that a multiprocessor has at once, so that no registers are spilled. */
template <bool WHOLE, typename Element> constexpr int resident()
{
    return !WHOLE ? 3 : sizeof(Element) == 4 ? (int)RESIDENT : 5;
}

static_assert(SDDMM_BYTES == warp_lanes * SDDMM_PACK, "a pack for each lane");

/* T: of sums; Element: of all arrays. */
template <typename T, typename Element> struct job {
    int64_t nnz;
    const int32_t *row, *col;
    const Element *val; /* NULL: a pattern */
    const Element *a, *b;
    Element *y;
    int64_t a_stride, b_stride;
    uint32_t b_row_bytes; /* of sample_rows */
    int k, run, lanes_log;
};

template <typename T, typename Element> using pack = row_pack<T, Element, SDDMM_PACK / (int)sizeof(Element)>;

/* Columns c ... of a row of k elements; 0 beyond. WHOLE: rows begin at multiples of 16 bytes, k is a multiple of a
 * pack. */
template <bool WHOLE, typename T, typename Element>
__device__ pack<T, Element> load(const job<T, Element> &j, const Element *row, int c)
{
    constexpr int PACK = SDDMM_PACK / (int)sizeof(Element);
    if constexpr (WHOLE)
        return *(const pack<T, Element> *)(row + c);
    pack<T, Element> some = {};
#pragma unroll
    for (int i = 0; i < PACK; i++)
        if (c + i < j.k)
            some.element[i] = row[c + i];
    return some;
}

/* The products of two packs, added in a tree. */
template <typename T, typename Element> __device__ T dot(const pack<T, Element> &a, const pack<T, Element> &b)
{
    constexpr int PACK = SDDMM_PACK / (int)sizeof(Element);
    T sum[PACK / 2];
#pragma unroll
    for (int i = 0; i < PACK / 2; i++)
        sum[i] = multiply_add<Element>(a[2 * i + 1], b[2 * i + 1], a[2 * i] * b[2 * i]);
#pragma unroll
    for (int of = PACK / 2; of > 1; of /= 2)
#pragma unroll
        for (int i = 0; i < of / 2; i++)
            sum[i] = sum[2 * i] + sum[2 * i + 1];
    return sum[0];
}

template <typename T> __device__ T shuffle_xor(T value, int distance)
{
    return shuffle_by(value, [=](auto word) { return __shfl_xor_sync(0xffffffffu, word, distance); });
}

/* Rows and columns of the entries of a batch; of entries beyond the last one those of the last. */
template <typename T, typename Element>
__device__ void load_places(const job<T, Element> &j, int64_t first, int32_t (&row)[TOGETHER], int32_t (&col)[TOGETHER])
{
#pragma unroll
    for (int e = 0; e < TOGETHER; e++) {
        const int64_t entry = first + e < j.nnz ? first + e : j.nnz - 1;
        row[e] = j.row[entry];
        col[e] = j.col[entry];
    }
}

/* Adds the sums of the lanes of a subwarp for each entry of a batch in a tree, and stores those of entries before `end`. */
template <typename T, typename Element>
__device__ void store_sums(const job<T, Element> &j, T (&sum)[TOGETHER], int lane, int lanes, int64_t first,
                           int64_t end)
{
    /* kept: entries that the lane still has, from `which` on; they become sum[0 ... kept - 1]. */
    int which = 0, kept = TOGETHER;
#pragma unroll
    for (int distance = 1; distance < warp_lanes; distance *= 2) {
        if (distance >= lanes)
            break;
        const bool upper = (lane & distance) != 0;
        if (kept > 1) {
            kept /= 2;
            which += upper ? kept : 0;
#pragma unroll
            for (int e = 0; e < TOGETHER / 2; e++)
                if (e < kept) {
                    const T passed = shuffle_xor(upper ? sum[e] : sum[e + kept], distance);
                    sum[e] = (upper ? sum[e + kept] : sum[e]) + passed;
                }
        } else {
            sum[0] += shuffle_xor(sum[0], distance);
        }
    }
    /* With more lanes than entries, several lanes have the same. */
    if (lane < TOGETHER) {
        const int count = lanes < TOGETHER ? TOGETHER / lanes : 1;
#pragma unroll
        for (int e = 0; e < TOGETHER >> LEAST_LANES_LOG; e++) {
            const int64_t entry = first + which + e;
            if (e < count && entry < end)
                j.y[entry] = Element((j.val != nullptr ? T(j.val[entry]) : T(1)) * sum[e]);
        }
    }
}

template <bool WHOLE, typename T, typename Element>
__global__ void __launch_bounds__(THREADS, resident<WHOLE, Element>()) sample(job<T, Element> j)
{
    constexpr int PACK = SDDMM_PACK / (int)sizeof(Element);
    const int lanes = 1 << j.lanes_log, lane = (int)threadIdx.x & (lanes - 1);
    const int64_t begin = (((int64_t)blockIdx.x * THREADS + threadIdx.x) >> j.lanes_log) * j.run;
    const bool blocks = lanes * PACK < j.k; /* several blocks of columns */
    pack<T, Element> own = {};
    int32_t own_row = -1;
    /* The number of batches is the same for all lanes of a warp, which exchange sums. */
    for (int64_t first = begin; first < begin + j.run; first += TOGETHER) {
        int32_t row[TOGETHER], col[TOGETHER];
        T sum[TOGETHER] = {};
        load_places(j, first, row, col);
        for (int c = lane * PACK; c < j.k; c += warp_lanes * PACK) {
            pack<T, Element> other[TOGETHER], last = {};
#pragma unroll
            for (int e = 0; e < TOGETHER; e++)
                other[e] = load<WHOLE>(j, j.b + col[e] * j.b_stride, c);
            if (blocks || row[0] != own_row)
                own = load<WHOLE>(j, j.a + row[0] * j.a_stride, c);
            if (row[TOGETHER - 1] != row[0])
                last = load<WHOLE>(j, j.a + row[TOGETHER - 1] * j.a_stride, c);
#pragma unroll
            for (int e = 0; e < TOGETHER; e++) {
                if (e > 0 && row[e] != row[e - 1])
                    own = row[e] == row[TOGETHER - 1] ? last : load<WHOLE>(j, j.a + row[e] * j.a_stride, c);
                sum[e] += dot<T, Element>(own, other[e]);
            }
        }
        own_row = row[TOGETHER - 1];
        store_sums(j, sum, lane, lanes, first, j.nnz);
    }
}

/* The same where rows are about equally long: a subwarp has a row. Nothing asks for each entry whether the row changes,
 * and the columns of the next entries are loaded ahead: a quarter of the instructions. ONE: there is one block of
 * columns, whose part of the row of A stays in registers. */
template <int LANES, bool ONE, typename T, typename Element>
__global__ void __launch_bounds__(THREADS, resident<true, Element>())
    sample_rows(job<T, Element> j, const int32_t *row_ptr, int64_t rows)
{
    constexpr int PACK = SDDMM_PACK / (int)sizeof(Element), BLOCK = LANES * PACK;
    const int lane = (int)threadIdx.x % LANES;
    const int64_t row = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES;
    int64_t first = row < rows ? (int64_t)row_ptr[row] : 0;
    const int64_t end = row < rows ? (int64_t)row_ptr[row + 1] : 0;
    const Element *const a = j.a + (row < rows ? row : 0) * j.a_stride;
    /* Lanes beyond the last column have those of the first one, and add nothing. */
    const auto own_column = [&](int block) {
        const int c = block + lane * PACK;
        return c < j.k ? c : 0;
    };
    /* Column of entry lane % TOGETHER of the batch; beyond the row's end column 0. */
    const auto load_col = [&](int64_t from) {
        int32_t col = 0;
        load_once_if(from + lane % TOGETHER < end, j.col + from + lane % TOGETHER, &col);
        return col;
    };
    pack<T, Element> own = *(const pack<T, Element> *)(a + own_column(0));
    int32_t ahead = load_col(first);
    while (__ballot_sync(0xffffffffu, first < end) != 0) { /* the lanes of a warp go on together */
        const int32_t col = ahead;
        T sum[TOGETHER] = {};
        for (int block = 0; block < (ONE ? 1 : j.k); block += BLOCK) {
            const Element *const b = settled(j.b + own_column(block));
            pack<T, Element> other[TOGETHER];
            if (!ONE)
                own = *(const pack<T, Element> *)(a + own_column(block));
#pragma unroll
            for (int e = 0; e < TOGETHER; e++) {
                const uint32_t of = (uint32_t)__shfl_sync(0xffffffffu, col, e, LANES);
                other[e] = *(const pack<T, Element> *)in_global((const char *)b + (uint64_t)of * j.b_row_bytes);
            }
            __syncwarp(); /* else the compiler loads one after the other, to save registers */
            if (ONE)
                ahead = load_col(first + TOGETHER);
            const bool mine = block + lane * PACK < j.k;
#pragma unroll
            for (int e = 0; e < TOGETHER; e++)
                sum[e] += mine ? dot<T, Element>(own, other[e]) : T();
        }
        if (!ONE)
            ahead = load_col(first + TOGETHER);
        store_sums(j, sum, lane, LANES, first, end);
        first += TOGETHER;
    }
}

template <typename Offset>
__global__ void __launch_bounds__(THREADS) find_rows(const Offset *row_ptr, int64_t rows, int32_t *row, int64_t nnz)
{
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < nnz; e += (int64_t)gridDim.x * THREADS) {
        int64_t low = 0, high = rows - 1;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if ((int64_t)row_ptr[middle + 1] <= e)
                low = middle + 1;
            else
                high = middle;
        }
        row[e] = (int32_t)low;
    }
}

template <typename Element> __global__ void __launch_bounds__(THREADS) widen(const Element *x, float *to, int64_t nnz)
{
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < nnz; e += (int64_t)gridDim.x * THREADS)
        to[e] = float(x[e]);
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    exponentials(const int32_t *row, const T *largest, const T *x, T *y, int64_t nnz)
{
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < nnz; e += (int64_t)gridDim.x * THREADS)
        y[e] = exp(x[e] - largest[row[e]]);
}

template <typename T, typename Element>
__global__ void __launch_bounds__(THREADS)
    quotients(const int32_t *row, const T *sums, const T *x, Element *y, int64_t nnz)
{
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < nnz; e += (int64_t)gridDim.x * THREADS)
        y[e] = Element(x[e] / sums[row[e]]);
}

/* Calls body with an object of the type of sums of s, and one of the type of its arrays. */
template <typename Body> spmv_status with_type(const spmv_sddmm *s, const Body &body)
{
    return on_device(s->ctx, [&] {
        return s->type == SPMV_F32    ? body(float(), float())
               : s->type == SPMV_BF16 ? body(float(), bf16())
               : s->type == SPMV_F16  ? body(float(), f16())
                                      : body(double(), double());
    });
}

int blocks_for(const spmv_sddmm *s, int each_block)
{
    return grid_for(s->p.nnz, each_block);
}

/* A multiprocessor has so many turns of all its subwarps, unless runs are the shortest. Tests build with none: runs are
 * long in small matrices too. */
#ifndef SPMV_SDDMM_TURNS
#define SPMV_SDDMM_TURNS 4
#endif

/* Entries of a subwarp: MOST_RUN, or as few as keep all multiprocessors busy. */
int run_for(const spmv_sddmm *s, int lanes_log)
{
    const int64_t subwarps =
        (int64_t)((const cuda_state *)s->ctx->device)->multiprocessors * RESIDENT * THREADS >> lanes_log;
    int run = MOST_RUN;
    while (run > TOGETHER && s->p.nnz / run < SPMV_SDDMM_TURNS * subwarps)
        run /= 2;
    return run;
}

/* log2 of the lanes of a subwarp. */
int lanes_log_of(const spmv_sddmm *s)
{
    int log = LEAST_LANES_LOG;
    while (1 << log < warp_lanes && (int64_t)SDDMM_PACK << log < s->vectors * (int64_t)spmv_type_size(s->type))
        log++;
    return log;
}

/* Whether a subwarp may have a row. */
spmv_status look_at_rows(spmv_sddmm *s)
{
    const spmv_csr &p = s->p;
    const int size = (int)spmv_type_size(s->type), lanes_log = lanes_log_of(s);
    struct facts f = {};
    struct row_counts found;
    f.rows = p.rows;
    f.nnz = p.nnz;
    f.value_bytes = p.val != nullptr ? size : 0;
    f.vector_bytes = size;
    f.offset_bytes = p.row_ptr_bits / 8;
    f.vectors = s->vectors;
    if (p.row_ptr_bits != 32 || lanes_log == LEAST_LANES_LOG || s->b_stride > UINT32_MAX / (int64_t)size)
        return SPMV_OK;
    const spmv_status st = count_rows_cuda(s->ctx, &p, warp_lanes >> lanes_log, &found);
    facts_of_rows(&f, &found);
    s->by_rows = st == SPMV_OK && rows_unfit(&f, SDDMM_BYTES) == nullptr;
    return st;
}

} // namespace

extern "C" spmv_status sddmm_rows_cuda(spmv_sddmm *s)
{
    const spmv_csr &p = s->p;
    const spmv_status st = look_at_rows(s);
    return st != SPMV_OK ? st : on_device(s->ctx, [&] {
        return p.row_ptr_bits == 32 ? launch(s->ctx, "spmv sddmm rows", blocks_for(s, THREADS), THREADS,
                                             find_rows<int32_t>, (const int32_t *)p.row_ptr, p.rows, s->row, p.nnz)
                                    : launch(s->ctx, "spmv sddmm rows", blocks_for(s, THREADS), THREADS,
                                             find_rows<int64_t>, (const int64_t *)p.row_ptr, p.rows, s->row, p.nnz);
    });
}

extern "C" spmv_status sddmm_apply_cuda(const spmv_sddmm *s, const void *a, const void *b, void *y)
{
    return with_type(s, [&](auto sums, auto element) {
        using T = decltype(sums);
        using Element = decltype(element);
        constexpr int PACK = SDDMM_PACK / (int)sizeof(Element);
        const bool aligned = (uintptr_t)a % SDDMM_PACK == 0 && (uintptr_t)b % SDDMM_PACK == 0 &&
                             s->a_stride % PACK == 0 && s->b_stride % PACK == 0;
        const int lanes_log = lanes_log_of(s), run = run_for(s, lanes_log);
        const bool whole = aligned && s->vectors % PACK == 0;
        const job<T, Element> j = {s->p.nnz,           s->row,
                                   s->p.col,           (const Element *)s->p.val,
                                   (const Element *)a, (const Element *)b,
                                   (Element *)y,       s->a_stride,
                                   s->b_stride,        (uint32_t)(s->b_stride * (int64_t)sizeof(Element)),
                                   s->vectors,         run,
                                   lanes_log};
        const auto blocks_of = [&](int64_t subwarps) {
            return (int)ceil_divide(subwarps << lanes_log, (int64_t)THREADS);
        };
        const auto by_rows = [&](auto lanes, auto one) {
            return launch(s->ctx, "spmv sddmm", blocks_of(s->p.rows), THREADS,
                          sample_rows<decltype(lanes)::value, decltype(one)::value, T, Element>, j,
                          (const int32_t *)s->p.row_ptr, s->p.rows);
        };
        if (s->by_rows && whole)
            return lanes_log == 3                    ? by_rows(std::integral_constant<int, 8>(), std::true_type())
                   : lanes_log == 4                  ? by_rows(std::integral_constant<int, 16>(), std::true_type())
                   : PACK * warp_lanes >= s->vectors ? by_rows(std::integral_constant<int, 32>(), std::true_type())
                                                     : by_rows(std::integral_constant<int, 32>(), std::false_type());
        const int blocks = blocks_of(ceil_divide(s->p.nnz, (int64_t)run));
        return whole ? launch(s->ctx, "spmv sddmm", blocks, THREADS, sample<true, T, Element>, j)
                     : launch(s->ctx, "spmv sddmm", blocks, THREADS, sample<false, T, Element>, j);
    });
}

extern "C" spmv_status sddmm_widen_cuda(const spmv_sddmm *s, const void *x, void *to)
{
    return with_type(s, [&](auto, auto element) {
        using Element = decltype(element);
        return launch(s->ctx, "spmv sddmm widen", blocks_for(s, THREADS), THREADS, widen<Element>, (const Element *)x,
                      (float *)to, s->p.nnz);
    });
}

extern "C" spmv_status sddmm_exponentials_cuda(const spmv_sddmm *s, const void *x, void *y)
{
    return with_type(s, [&](auto sums, auto) {
        using T = decltype(sums);
        return launch(s->ctx, "spmv sddmm exponentials", blocks_for(s, THREADS), THREADS, exponentials<T>,
                      (const int32_t *)s->row, (const T *)s->largest, (const T *)x, (T *)y, s->p.nnz);
    });
}

extern "C" spmv_status sddmm_quotients_cuda(const spmv_sddmm *s, const void *x, void *y)
{
    return with_type(s, [&](auto sums, auto element) {
        using T = decltype(sums);
        using Element = decltype(element);
        return launch(s->ctx, "spmv sddmm quotients", blocks_for(s, THREADS), THREADS, quotients<T, Element>,
                      (const int32_t *)s->row, (const T *)s->sums, (const T *)x, (Element *)y, s->p.nnz);
    });
}
