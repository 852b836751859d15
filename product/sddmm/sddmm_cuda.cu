/* Sampled products on a GPU: Y = P o (A B') at the entries of P.
 *
 * Idea:       a subwarp takes neighbouring entries; a lane loads 16 bytes (PACK columns) of a row of B for
 *             each of them, and of a row of A only where the row changes. The lanes of a subwarp have
 *             SDDMM_SUMS columns at a time. In the tree at the end the lanes share the entries out: each
 *             halving passes half of them to the other half of the lanes.
 * Work:       nnz * k products.
 * Depth:      k / SDDMM_SUMS, and the tree.
 * Launches:   1.
 * Bytes:      12 and a value for each entry, a row of B for each entry, from caches where possible, and A.
 * Balance:    entries, not rows: each subwarp has as many.
 * Bits:       a lane's element i takes the columns that are lane * PACK + i modulo SDDMM_SUMS, in order. So
 *             the order of an entry's sum depends on k only, and is that of sddmm_typed.h.
 * Source:     T. Gale, M. Zaharia, C. Young, E. Elsen, "Sparse GPU kernels for deep learning", SC 2020.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/launch.cuh"

extern "C" {
#include "product/sddmm/sddmm_internal.h"
}

namespace
{

enum { THREADS = 128, TOGETHER = 4 /* entries of a subwarp */ };

template <typename T> struct job {
    int64_t nnz;
    const int32_t *row, *col;
    const T *val; /* NULL: a pattern */
    const T *a, *b;
    T *y;
    int64_t a_stride, b_stride;
    int k;
    bool aligned; /* rows of A and B begin at multiples of 16 bytes */
};

template <typename T> struct alignas(16) pack {
    static constexpr int COUNT = 16 / (int)sizeof(T);
    T at[COUNT];
};

/* Columns c ... of a row of k elements; 0 beyond. */
template <typename T> __device__ pack<T> load(const job<T> &j, const T *row, int c)
{
    constexpr int PACK = pack<T>::COUNT;
    if (j.aligned && c + PACK <= j.k)
        return *(const pack<T> *)(row + c);
    pack<T> some = {};
#pragma unroll
    for (int i = 0; i < PACK; i++)
        if (c + i < j.k)
            some.at[i] = row[c + i];
    return some;
}

template <typename T> __device__ T shuffle_xor(T value, int distance)
{
    return shuffle_by(value, [=](auto word) { return __shfl_xor_sync(0xffffffffu, word, distance); });
}

template <typename T> __global__ void __launch_bounds__(THREADS) sample(job<T> j)
{
    constexpr int PACK = pack<T>::COUNT, LANES = SDDMM_SUMS / PACK, OF_WARP = warp_lanes / LANES * TOGETHER;
    const int lane = (int)threadIdx.x % LANES, subwarp = (int)threadIdx.x % warp_lanes / LANES;
    const int64_t warp = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / warp_lanes;
    const int64_t warps = (int64_t)gridDim.x * THREADS / warp_lanes;
    /* first is the same for all lanes of a warp, so they leave the loop together. */
    for (int64_t first = warp * OF_WARP; first < j.nnz; first += warps * OF_WARP) {
        const int64_t mine = first + subwarp * TOGETHER;
        int32_t row[TOGETHER], col[TOGETHER];
        T sum[TOGETHER][PACK] = {};
#pragma unroll
        for (int e = 0; e < TOGETHER; e++) {
            const int64_t entry = mine + e < j.nnz ? mine + e : j.nnz - 1;
            row[e] = j.row[entry];
            col[e] = j.col[entry];
        }
        for (int c = lane * PACK; c < j.k; c += SDDMM_SUMS) {
            pack<T> other[TOGETHER], own = load(j, j.a + row[0] * j.a_stride, c);
#pragma unroll
            for (int e = 0; e < TOGETHER; e++)
                other[e] = load(j, j.b + col[e] * j.b_stride, c);
#pragma unroll
            for (int e = 0; e < TOGETHER; e++) {
                if (e > 0 && row[e] != row[e - 1])
                    own = load(j, j.a + row[e] * j.a_stride, c);
#pragma unroll
                for (int i = 0; i < PACK; i++)
                    sum[e][i] += own.at[i] * other[e].at[i];
            }
        }
        /* The tree. kept: entries that the lane still has; they become sum[0 ... kept - 1]. */
        int which = 0, kept = TOGETHER;
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2) {
            const bool upper = (lane & distance) != 0;
            if (kept > 1) {
                kept /= 2;
                which += upper ? kept : 0;
#pragma unroll
                for (int e = 0; e < TOGETHER / 2; e++)
                    if (e < kept)
#pragma unroll
                        for (int i = 0; i < PACK; i++) {
                            const T passed = shuffle_xor(upper ? sum[e][i] : sum[e + kept][i], distance);
                            sum[e][i] = (upper ? sum[e + kept][i] : sum[e][i]) + passed;
                        }
            } else {
#pragma unroll
                for (int i = 0; i < PACK; i++)
                    sum[0][i] += shuffle_xor(sum[0][i], distance);
            }
        }
#pragma unroll
        for (int half = PACK / 2; half > 0; half /= 2)
#pragma unroll
            for (int i = 0; i < half; i++)
                sum[0][i] += sum[0][i + half];
        /* Lanes that have the same entry are neighbours: the first stores it. */
        const int64_t entry = mine + which;
        if (lane % (LANES > TOGETHER ? LANES / TOGETHER : 1) == 0 && entry < j.nnz)
            j.y[entry] = (j.val != nullptr ? j.val[entry] : T(1)) * sum[0][0];
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

template <typename T>
__global__ void __launch_bounds__(THREADS)
    exponentials(const int32_t *row, const T *largest, const T *x, T *y, int64_t nnz)
{
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < nnz; e += (int64_t)gridDim.x * THREADS)
        y[e] = exp(x[e] - largest[row[e]]);
}

template <typename T>
__global__ void __launch_bounds__(THREADS) quotients(const int32_t *row, const T *sums, T *y, int64_t nnz)
{
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < nnz; e += (int64_t)gridDim.x * THREADS)
        y[e] = y[e] / sums[row[e]];
}

/* Calls body with an object of the type of s. */
template <typename Body> spmv_status with_type(const spmv_sddmm *s, const Body &body)
{
    return on_device(s->ctx, [&] { return s->type == SPMV_F32 ? body(float()) : body(double()); });
}

int blocks_for(const spmv_sddmm *s, int each_block)
{
    return grid_for(s->p.nnz, each_block);
}

} // namespace

extern "C" spmv_status sddmm_rows_cuda(spmv_sddmm *s)
{
    const spmv_csr &p = s->p;
    return on_device(s->ctx, [&] {
        return p.row_ptr_bits == 32 ? launch(s->ctx, "spmv sddmm rows", blocks_for(s, THREADS), THREADS,
                                             find_rows<int32_t>, (const int32_t *)p.row_ptr, p.rows, s->row, p.nnz)
                                    : launch(s->ctx, "spmv sddmm rows", blocks_for(s, THREADS), THREADS,
                                             find_rows<int64_t>, (const int64_t *)p.row_ptr, p.rows, s->row, p.nnz);
    });
}

extern "C" spmv_status sddmm_apply_cuda(const spmv_sddmm *s, const void *a, const void *b, void *y)
{
    return with_type(s, [&](auto of) {
        using T = decltype(of);
        constexpr int OF_BLOCK = THREADS * pack<T>::COUNT / SDDMM_SUMS * TOGETHER;
        const bool aligned = (uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0 && s->a_stride % pack<T>::COUNT == 0 &&
                             s->b_stride % pack<T>::COUNT == 0;
        const job<T> j = {s->p.nnz, s->row,      s->p.col,    (const T *)s->p.val, (const T *)a, (const T *)b,
                          (T *)y,   s->a_stride, s->b_stride, s->vectors,          aligned};
        return launch(s->ctx, "spmv sddmm", blocks_for(s, OF_BLOCK), THREADS, sample<T>, j);
    });
}

extern "C" spmv_status sddmm_exponentials_cuda(const spmv_sddmm *s, const void *x, void *y)
{
    return with_type(s, [&](auto of) {
        using T = decltype(of);
        return launch(s->ctx, "spmv sddmm exponentials", blocks_for(s, THREADS), THREADS, exponentials<T>,
                      (const int32_t *)s->row, (const T *)s->largest, (const T *)x, (T *)y, s->p.nnz);
    });
}

extern "C" spmv_status sddmm_quotients_cuda(const spmv_sddmm *s, void *y)
{
    return with_type(s, [&](auto of) {
        using T = decltype(of);
        return launch(s->ctx, "spmv sddmm quotients", blocks_for(s, THREADS), THREADS, quotients<T>,
                      (const int32_t *)s->row, (const T *)s->sums, (T *)y, s->p.nnz);
    });
}
