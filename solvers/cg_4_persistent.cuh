/* Conjugate gradients, rung 4: the whole solve in one kernel.
 *
 * Idea: a small system fits into the multiprocessors: the matrix into their shared memory, x, r, p and s = A p into
 * registers, a thread a row or some. The blocks stay, and all that goes through memory in a step is one vector, which
 * the others gather, and the blocks' parts of the sums. Between these lie barriers of all blocks. The method is that of
 * Chronopoulos and Gear, which has both sums at one point, with w = A z and s by a recurrence of its own:
 *
 *     w = A z;  gamma = r'z, delta = w'z                                  (sum: one barrier)
 *     beta = gamma / gamma before, alpha = gamma / (delta - beta gamma / alpha before)
 *     p = z + beta p, s = w + beta s, x += alpha p, r -= alpha s, z = M^-1 r       (z is there: one barrier)
 *
 * so p'Ap is delta - beta gamma / alpha before. Launches: 1 for MOST_STEPS steps. Bytes a step: 8 n, in caches. Changed
 * since rung 3: no launch, no pass through memory. Wins: wherever the system fits, some 200,000 rows.
 *
 * The matrix: 32 rows a slice, the k-th entries of a slice's rows side by side (SELL), as wide as the slice's longest
 * row: each thread walks its row, and neighbours read neighbouring cells.
 *
 * Progress: the launch is cooperative, so all blocks run at once. A barrier is one counter: each block adds 1 when it
 * has written what others read, and waits until all have. What blocks wrote before is seen after it (release, acquire),
 * but for caches of the own multiprocessor, which loads of others' data pass by.
 * A block alone does the same with its own barrier, z in its shared memory.
 *
 * Bits: the number of blocks, of rows a block and a thread, and the order of all sums follow from n and the longest
 * row.
 * A. T. Chronopoulos, C. W. Gear, "s-step iterative methods for symmetric linear systems", J. Comput. Appl. Math.
 * 25(2), 1989, algorithm 2.2.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_4_PERSISTENT_CUH
#define CG_4_PERSISTENT_CUH

#include "block.cuh"
#include "launch.cuh"

namespace cg_persistent
{

enum { GOES_ON, ENDED, BROKEN, LIMIT };
enum { MOST_STEPS = 2048, MOST_BLOCKS = 128 };
enum {
    STATIC_BYTES = 4096,
    HOST_SHARED = 128 * 1024
}; /* of shared memory: at most, beside the dynamic part; on hosts
      that play a GPU, the dynamic part */

/* Of a thread, a block, all blocks. */
template <typename T> struct alignas(4 * sizeof(T)) sums {
    T rr, gamma, delta, unused;
};

/* What lasts from one launch to the next. */
template <typename T> struct state {
    T rr, gamma, pq;              /* of the last step looked at */
    T gamma_before, alpha_before; /* of the step before it */
    double start, enough;
    long long iterations;
    int stop;
    T history[MOST_STEPS + 1]; /* r'r after iteration `first of the launch` + i */
};

template <typename T, typename Stored> struct system {
    const int32_t *row_ptr, *col;
    const Stored *val; /* NULL: a pattern */
    int rows, rows_each, cells;
    T *x, *r, *p, *s, *z; /* z: what is gathered */
    const T *scale;       /* M^-1, a diagonal; NULL: none */
    state<T> *about;
    sums<T> *parts;    /* 2 * blocks */
    unsigned *arrived; /* 0 before the launch */
    double tolerance, roundoff;
    long long iterations, most; /* those done before the first launch; the limit */
    int steps;                  /* of this launch, at most MOST_STEPS */
    bool begins;                /* the first launch */
};

__device__ inline void arrive([[maybe_unused]] unsigned *count)
{
#ifdef __CUDA_ARCH__
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
#endif
}

__device__ inline void await_all([[maybe_unused]] const unsigned *count, [[maybe_unused]] unsigned all)
{
#ifdef __CUDA_ARCH__
    unsigned now;
    do
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(count) : "memory");
    while ((int)(now - all) < 0);
#endif
}

/* The sum of the lanes', the same for all. gamma only if there is one. */
template <bool SCALED, typename T> __device__ sums<T> sum_warp(sums<T> v)
{
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        v.rr += __shfl_xor_sync(0xffffffffu, v.rr, distance);
        v.delta += __shfl_xor_sync(0xffffffffu, v.delta, distance);
        if (SCALED)
            v.gamma += __shfl_xor_sync(0xffffffffu, v.gamma, distance);
    }
    return v;
}

/* What others wrote in this launch. */
template <typename T> __device__ T load_others(const T *from)
{
#ifdef __CUDA_ARCH__
    return __ldcg(from);
#else
    return *from;
#endif
}

template <typename T> __device__ sums<T> load_others(const sums<T> *from)
{
    if constexpr (sizeof(T) == sizeof(float)) {
#ifdef __CUDA_ARCH__
        const float4 all = __ldcg((const float4 *)from);
        return {all.x, all.y, all.z, T()};
#endif
    }
    return {load_others(&from->rr), load_others(&from->gamma), load_others(&from->delta), T()};
}

/* ROWS rows a thread. SCALED: with a diagonal M. ALONE: one block. */
template <typename T, typename Stored, int THREADS_, int ROWS, bool SCALED, bool ALONE>
__global__ void __launch_bounds__(THREADS_) kernel(system<T, Stored> a)
{
    constexpr int WARPS_ = THREADS_ / WARP, SLICES = WARPS_ * ROWS;
    constexpr int UNROLL = ROWS > 2 || (ROWS > 1 && THREADS_ > 512) ? 4 : 8; /* registers */
#ifdef HOST_CUDA
    static unsigned char dynamic_shared[HOST_SHARED];
#else
    extern __shared__ __align__(16) unsigned char dynamic_shared[]; /* cells of the matrix; alone: z before them */
#endif
    __shared__ int slice_at[SLICES + 1];
    __shared__ sums<T> of_warps[2][WARPS_], of_all;
    T *const own_z = (T *)dynamic_shared;
    Stored *const val = (Stored *)(own_z + (ALONE ? ROWS * THREADS_ : 0));
    int32_t *const col = (int32_t *)(val + a.cells);
    const int thread = (int)threadIdx.x, lane = thread % WARP, warp = thread / WARP;
    const int first = (int)blockIdx.x * a.rows_each;
    const int behind = first + a.rows_each < a.rows ? first + a.rows_each : a.rows;
    state<T> *const about = a.about;
    unsigned barriers = 0;

    /* the matrix */
    int begin[ROWS], length[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int row = first + k * THREADS_ + thread;
        begin[k] = row < behind ? a.row_ptr[row] : 0;
        length[k] = row < behind ? a.row_ptr[row + 1] - begin[k] : 0;
        int width = length[k];
        for (int distance = WARP / 2; distance > 0; distance /= 2) {
            const int other = __shfl_xor_sync(0xffffffffu, width, distance);
            width = other > width ? other : width;
        }
        if (lane == 0)
            slice_at[k * WARPS_ + warp + 1] = width * WARP;
    }
    __syncthreads();
    if (thread == 0) {
        slice_at[0] = 0;
        for (int i = 0; i < SLICES; i++)
            slice_at[i + 1] += slice_at[i];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int at = slice_at[k * WARPS_ + warp] + lane;
#pragma unroll 4
        for (int j = 0; j < length[k]; j++) {
            val[at + j * WARP] = a.val != nullptr ? a.val[begin[k] + j] : Stored(1);
            col[at + j * WARP] = a.col[begin[k] + j];
        }
        begin[k] = at;
    }

    /* the vectors */
    T x[ROWS], r[ROWS], p[ROWS], s[ROWS], z[ROWS], scale[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int row = first + k * THREADS_ + thread;
        const bool there = row < behind;
        x[k] = there ? a.x[row] : T();
        r[k] = there ? a.r[row] : T();
        p[k] = there && !a.begins ? a.p[row] : T();
        s[k] = there && !a.begins ? a.s[row] : T();
        scale[k] = SCALED && there ? a.scale[row] : T(1);
    }
    T gamma_before = a.begins ? T() : about->gamma_before, alpha_before = a.begins ? T(1) : about->alpha_before;
    double enough = a.begins ? 0 : about->enough;
    long long iterations = a.begins ? a.iterations : about->iterations;
    T rr = T(), gamma = T(), pq = T();
    int stop = GOES_ON;

    /* what is known before the sums: 1 / gamma before, 1 / alpha before, and below which r'r a root is
     * worth taking */
    T per_gamma = T(), per_alpha = T();
    double enough_squared = 0;
    const auto get_ready = [&] {
        per_gamma = T(1) / gamma_before;
        per_alpha = T(1) / alpha_before;
        enough_squared = fmax(1.01 * enough * enough, 1e-280);
    };
    get_ready();

    const auto publish = [&] {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int row = k * THREADS_ + thread;
            z[k] = SCALED ? scale[k] * r[k] : r[k];
            if (first + row < behind) {
                if (ALONE)
                    own_z[row] = z[k];
                else
                    a.z[first + row] = z[k];
            }
        }
        __syncthreads();
        if (!ALONE) {
            barriers += gridDim.x;
            if (thread == 0) {
                arrive(a.arrived);
                await_all(a.arrived, barriers);
            }
            __syncthreads();
        }
    };

    publish();
    for (int step = 0;; step++) {
        /* w = A z; the gathers of all rows are on their way together */
        T w[ROWS] = {};
        sums<T> part = {};
        int longest = 0;
#pragma unroll
        for (int k = 0; k < ROWS; k++)
            longest = length[k] > longest ? length[k] : longest;
        for (int j = 0; j < longest; j += UNROLL) {
            T gathered[ROWS][UNROLL] = {};
#pragma unroll
            for (int k = 0; k < ROWS; k++)
#pragma unroll
                for (int u = 0; u < UNROLL; u++)
                    if (j + u < length[k]) {
                        const int32_t c = col[begin[k] + (j + u) * WARP];
                        gathered[k][u] = ALONE ? own_z[c] : load_others(a.z + c);
                    }
#pragma unroll
            for (int k = 0; k < ROWS; k++)
#pragma unroll
                for (int u = 0; u < UNROLL; u++)
                    if (j + u < length[k])
                        w[k] += T(val[begin[k] + (j + u) * WARP]) * gathered[k][u];
        }
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            part.rr += r[k] * r[k];
            part.gamma += SCALED ? r[k] * z[k] : T();
            part.delta += w[k] * z[k];
        }

        /* the sums, the same for all threads */
        sums<T> *const its = of_warps[step % 2];
        part = sum_warp<SCALED>(part);
        if (lane == 0)
            its[warp] = part;
        __syncthreads();
        if (ALONE) {
            part = sum_warp<SCALED>(lane < WARPS_ ? its[lane] : sums<T>());
        } else {
            barriers += gridDim.x;
            if (warp == 0) {
                sums<T> *const parts = a.parts + step % 2 * (int)gridDim.x;
                part = sum_warp<SCALED>(lane < WARPS_ ? its[lane] : sums<T>());
                if (lane == 0) {
                    parts[blockIdx.x] = part;
                    arrive(a.arrived);
                    await_all(a.arrived, barriers);
                }
                __syncwarp();
                part = {};
#pragma unroll
                for (int b = 0; b < MOST_BLOCKS; b += WARP)
                    if (b + lane < (int)gridDim.x) {
                        const sums<T> other = load_others(parts + b + lane);
                        part = {part.rr + other.rr, part.gamma + other.gamma, part.delta + other.delta, T()};
                    }
                part = sum_warp<SCALED>(part);
                if (lane == 0)
                    of_all = part;
            }
            __syncthreads();
            part = of_all;
        }
        rr = part.rr;
        gamma = SCALED ? part.gamma : part.rr;

        /* what they say */
        const bool fresh = a.begins && step == 0;
        if (fresh) {
            const double norm = sqrt((double)rr);
            enough = fmax(a.tolerance, a.roundoff * norm);
            get_ready();
            if (blockIdx.x == 0 && thread == 0) {
                about->start = norm;
                about->enough = enough;
            }
        }
        if (blockIdx.x == 0 && thread == 0)
            about->history[step] = rr;
        const T beta = fresh ? T() : isfinite(per_gamma) ? gamma * per_gamma : gamma / gamma_before;
        pq = fresh ? part.delta : part.delta - beta * (gamma * per_alpha);
        if (isfinite(rr) && (double)rr <= enough_squared && sqrt((double)rr) <= enough)
            stop = ENDED;
        else if (!isfinite(rr) || !isfinite(gamma) || !isfinite(pq) || gamma <= 0 || pq <= 0)
            stop = BROKEN;
        else if (iterations == a.most)
            stop = LIMIT;
        if (stop != GOES_ON || step == a.steps)
            break;

        const T alpha = gamma / pq;
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            p[k] = z[k] + beta * p[k];
            s[k] = w[k] + beta * s[k];
            x[k] += alpha * p[k];
            r[k] -= alpha * s[k];
        }
        gamma_before = gamma;
        alpha_before = alpha;
        iterations++;
        publish();
        get_ready();
    }

    /* for the next launch, and for the host */
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int row = first + k * THREADS_ + thread;
        if (row < behind) {
            a.x[row] = x[k];
            a.r[row] = r[k];
            a.p[row] = p[k];
            a.s[row] = s[k];
        }
    }
    if (blockIdx.x == 0 && thread == 0) {
        about->rr = rr;
        about->gamma = gamma;
        about->pq = pq;
        about->gamma_before = gamma_before;
        about->alpha_before = alpha_before;
        about->iterations = iterations;
        about->stop = stop;
    }
}

} // namespace cg_persistent

#endif
