/* Batches on a GPU: the methods of batch_methods.h, a block for each system.
 *
 * Idea:       a block takes the next system that is left, until none is. Its threads are the lanes of
 *             batch_internal.h, so a block has 32 to 256. There are three kernels:
 *             solve_short, for cg and bicgstab with real systems of up to BATCH_OWN SHORT_LANES rows of up to
 *             SHORT_ENTRIES entries: only the vector that a product gathers from is in shared memory. Values, columns
 *             and all other vectors are in registers. Shared memory is what limits a product: its bandwidth is 128
 *             bytes a cycle, and a value in it costs as much as the element of the vector.
 *             solve_staged, for other real systems of up to BATCH_SMALL rows whose values fit: values, columns and the
 *             vector that a product gathers from are in shared memory, all other vectors in registers. A value is read
 *             from memory once a solve, not once a product. Values lie by the ranks of entries in their rows
 *             (batch_slots).
 *             solve_any, for all others: vectors are in shared memory as far as they fit, then in a workspace of the
 *             block; values are read where they are.
 *             The basis of gmres is in the workspace: in shared memory it would leave room for few blocks.
 * Launches:   1.
 * Bytes:      values, b, x and 56 for each system; if they are not staged, values and columns once more a product.
 * Barriers:   batch_methods.h.
 * Balance:    systems, taken from a counter.
 * Bits:       the order of batch_internal.h, in all kernels.
 * Source:     a block a system, shared memory by priority: A. Kashi, P. Nayak, D. Kulkarni, A. Scheinberg, P. Lin,
 *             H. Anzt, "Batched sparse iterative solvers on GPU for the collision operator for fusion plasma
 *             simulations", IPDPS 2022.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <type_traits>

#include "device/block.cuh"
#include "device/complex.cuh"
#include "device/launch.cuh"

extern "C" {
#include "solvers/batch/batch_internal.h"
}

namespace
{

static_assert((int)BATCH_WARP == (int)warp_lanes, "a group of lanes is a warp");

/* MOST_SUMS: at once. OF_WARPS: two sets of the sums of all warps. */
enum { MOST_WARPS = BATCH_MOST_LANES / BATCH_WARP, MOST_SUMS = 8, OF_WARPS = 2 * MOST_WARPS * MOST_SUMS };
enum { APPLY_THREADS = 256 };

/* Short rows: at most SHORT_ENTRIES entries, in systems of at most SHORT_LANES lanes. SHORT_THREADS of a multiprocessor
 * leave 128 registers to each. PLANE, SPACE: the entries beyond those of a chain, and of a grid in the plane, which a
 * product omits if no row has them. */
enum { PLANE = 3, SPACE = 5, SHORT_ENTRIES = 8, SHORT_LANES = 256, SHORT_THREADS = 512 };

/* ------------------------------------------------------------- numbers of the type */

template <typename T> struct part_of {
    using type = T;
};
template <> struct part_of<spmv_c64> {
    using type = float;
};
template <> struct part_of<spmv_c128> {
    using type = double;
};

/* The functions that batch_methods.h wants. */
template <typename T> struct numbers {
    static constexpr bool IS_COMPLEX = !std::is_arithmetic<T>::value;
    using PART = typename part_of<T>::type;

    static __device__ T times(T a, T b)
    {
        return a * b;
    }
    static __device__ T plus(T a, T b)
    {
        return a + b;
    }
    static __device__ T minus(T a, T b)
    {
        if constexpr (IS_COMPLEX)
            return {a.re - b.re, a.im - b.im};
        else
            return a - b;
    }
    static __device__ T scaled(PART by, T a)
    {
        if constexpr (IS_COMPLEX)
            return {by * a.re, by * a.im};
        else
            return by * a;
    }
    static __device__ T conjugate(T a)
    {
        return conjugated(a);
    }
    static __device__ T number(PART re)
    {
        if constexpr (IS_COMPLEX)
            return {re, 0};
        else
            return re;
    }
    static __device__ double modulus(T a)
    {
        if constexpr (IS_COMPLEX)
            return real_hypot((double)a.re, (double)a.im);
        else
            return fabs((double)a);
    }
    static __device__ __attribute__((noinline)) T complex_quotient(T a, T b)
    {
        const double size = modulus(b), re = (double)b.re / size, im = (double)b.im / size;
        return {(PART)(((double)a.re * re + (double)a.im * im) / size),
                (PART)(((double)a.im * re - (double)a.re * im) / size)};
    }
    static __device__ T quotient(T a, T b)
    {
        if constexpr (IS_COMPLEX)
            return complex_quotient(a, b);
        else
            return a / b;
    }
    static __device__ bool is_finite(T a)
    {
        if constexpr (IS_COMPLEX)
            return a.re - a.re == 0 && a.im - a.im == 0;
        else
            return a - a == 0;
    }
    static __device__ PART real_dot(T a, T b)
    {
        if constexpr (IS_COMPLEX)
            return a.re * b.re + a.im * b.im;
        else
            return a * b;
    }
    static __device__ spmv_c128 widened(T a)
    {
        if constexpr (IS_COMPLEX)
            return {(double)a.re, (double)a.im};
        else
            return {(double)a, 0};
    }
    static __device__ T rounded(spmv_c128 a, double factor)
    {
        if constexpr (IS_COMPLEX)
            return {(PART)(a.re * factor), (PART)(a.im * factor)};
        else
            return (T)(a.re * factor);
    }
};

/* ------------------------------------------------------------------ lanes of a system */

/* OWN: rows of a lane whose elements are in registers; 0: vectors are in memory. */
template <typename T, int OWN> struct own_vector {
    T element[OWN];
    __device__ T &at(int k, int)
    {
        return element[k];
    }
    __device__ void open(T *)
    {
    }
};

template <typename T> struct own_vector<T, 0> {
    T *memory;
    __device__ T &at(int, int i)
    {
        return memory[i];
    }
    __device__ void open(T *where)
    {
        memory = where;
    }
};

/* ENTRIES: entries of a row at most, with values and columns in registers; 0: they are in memory. Shorter rows are
 * filled with the value -0 and a column where the input is 1: adding -0 changes no bit of a sum. */
template <typename Type, int OWN_ROWS, int ENTRIES = 0> struct system_solver : numbers<Type> {
    using T = Type;
    using base = numbers<Type>;
    using base::conjugate;
    using base::IS_COMPLEX;
    using base::is_finite;
    using base::minus;
    using base::modulus;
    using base::number;
    using base::plus;
    using base::quotient;
    using base::real_dot;
    using base::rounded;
    using base::scaled;
    using base::times;
    using base::widened;
    using typename base::PART;
    using vector_of = own_vector<T, OWN_ROWS>;
    static constexpr int DOT_SUMS = IS_COMPLEX ? 2 : 1, UNROLLED = OWN_ROWS > 0 ? OWN_ROWS : 1;

    /* The memory of a system. Staged, with vectors in registers: val in shared memory, in the order of
     * batch_slots, which also has the rows of the lane in numbers. */
    struct group {
        int lane, step;
        const T *val;
        T *input, *vector[BATCH_VECTORS], *basis, *scalars;
        double *word, *of_warps;
        int parity; /* of of_warps, so that a sum needs one barrier */
        const uint16_t *slot_col, *step_start;
        int shape[UNROLLED], step_first[UNROLLED];
        int most; /* entries of a row of the lane */
        /* With ENTRIES: values, and two columns in a number, times the size of an element. */
        T own_val[UNROLLED][ENTRIES > 0 ? ENTRIES : 1];
        uint32_t own_col[UNROLLED][ENTRIES > 0 ? (ENTRIES + 1) / 2 : 1];
    };

    static __device__ __forceinline__ void barrier(const group *g)
    {
        if (g->step == warp_lanes)
            __syncwarp();
        else
            __syncthreads();
    }

    /* A lane that has sum j of `left` ones in sum_up. */
    static constexpr __device__ int lane_with(int j, int left)
    {
        int lane = 0;
        for (int distance = 1; left > 1; distance *= 2) {
            const int half = (left + 1) / 2;
            if (j >= half) {
                lane += distance;
                j -= half;
            }
            left = half;
        }
        return lane;
    }

    /* Sums of all lanes, in every lane. Where a lane has two sums, it sends one and goes on with the other, and its
     * neighbour the other way round. That takes fewer shuffles than to add them one by one, in the same order. */
    template <typename S, int N> static __device__ __forceinline__ void sum_up(group *g, S (&s)[N])
    {
        static_assert(N <= MOST_SUMS, "place for the sums");
        int left = N; /* sums in each lane */
#pragma unroll
        for (int distance = 1; distance < warp_lanes; distance *= 2) {
            const bool upper = (g->lane & distance) != 0;
            const int half = (left + 1) / 2;
#pragma unroll
            for (int j = 0; j < half; j++)
                if (j + half < left) {
                    const S sent = upper ? s[j] : s[j + half];
                    s[j] = (upper ? s[j + half] : s[j]) + __shfl_xor_sync(0xffffffffu, sent, distance);
                } else {
                    s[j] += __shfl_xor_sync(0xffffffffu, s[j], distance);
                }
            left = half;
        }
        if constexpr (N > 1) {
            const S mine = s[0];
#pragma unroll
            for (int j = 0; j < N; j++)
                s[j] = __shfl_sync(0xffffffffu, mine, lane_with(j, N));
        }
        if (g->step == warp_lanes) {
            __syncwarp();
            return;
        }
        S *const cell = (S *)(g->of_warps + g->parity * MOST_WARPS * MOST_SUMS);
        g->parity ^= 1;
        if (g->lane % warp_lanes == 0)
#pragma unroll
            for (int j = 0; j < N; j++)
                cell[g->lane / warp_lanes * N + j] = s[j];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < N; j++)
            s[j] = cell[j];
#pragma unroll 1
        for (int warp = 1; warp < g->step / warp_lanes; warp++)
#pragma unroll
            for (int j = 0; j < N; j++)
                s[j] += cell[warp * N + j];
    }

    /* For the rows of the lane: end(k, i, sum), where add(i, sum, value, column) was called for the entries of row
     * i one after the other. Staged rows are walked through side by side. */
    template <typename S, typename Add, typename End>
    static __device__ __forceinline__ void each_row_sum(const group *g, const batch_job *job, const Add &add,
                                                        const End &end)
    {
        const int n = job->rows;
        if constexpr (ENTRIES > 0) { /* all loads before a test are in flight at once */
            S sum[OWN_ROWS] = {};
#pragma unroll
            for (int e = 0; e < ENTRIES; e++) {
                if ((e == PLANE || e == SPACE) && e >= g->most)
                    break;
#pragma unroll
                for (int k = 0; k < OWN_ROWS; k++) {
                    uint32_t pair = g->own_col[k][e / 2];
                    asm volatile("" : "+r"(pair)); /* else both halves would be in registers */
                    const uint32_t place = pair >> (e % 2 * 16) & 0xffff;
                    add(g->lane + k * g->step, sum[k], g->own_val[k][e], (int)(place / sizeof(T)));
                }
            }
#pragma unroll
            for (int k = 0; k < OWN_ROWS; k++)
                if (g->lane + k * g->step < n)
                    end(k, g->lane + k * g->step, sum[k]);
        } else if constexpr (OWN_ROWS == 0) {
#pragma unroll 1
            for (int i = g->lane; i < n; i += g->step) {
                const int last = job->row_ptr[i + 1];
                S sum = {};
#pragma unroll 1
                for (int e = job->row_ptr[i]; e < last; e++)
                    add(i, sum, g->val[e], job->col[e]);
                end(0, i, sum);
            }
        } else {
            S sum[OWN_ROWS] = {};
#pragma unroll 1
            for (int e = 0; e < g->most; e++)
#pragma unroll
                for (int k = 0; k < OWN_ROWS; k++)
                    if (e < g->shape[k] / BATCH_WARP) {
                        const int at = g->step_start[g->step_first[k] + e] + g->shape[k] % BATCH_WARP;
                        add(g->lane + k * g->step, sum[k], g->val[at], (int)g->slot_col[at]);
                    }
#pragma unroll
            for (int k = 0; k < OWN_ROWS; k++)
                if (g->lane + k * g->step < n)
                    end(k, g->lane + k * g->step, sum[k]);
        }
    }

    static __device__ __forceinline__ void multiply(const group *g, const batch_job *job, vector_of &q)
    {
        const T *const x = g->input;
        each_row_sum<T>(
            g, job, [&](int, T &sum, T value, int column) { sum = plus(sum, times(value, x[column])); },
            [&](int k, int i, T sum) { q.at(k, i) = sum; });
    }

    static __device__ __forceinline__ void residual(const group *g, const batch_job *job, double *s, const T *b,
                                                    double factor, vector_of &r)
    {
        using wide = typename std::conditional<IS_COMPLEX, spmv_c128, double>::type;
        const T *const x = g->input;
        each_row_sum<wide>(
            g, job,
            [&](int, wide &sum, T value, int column) {
                if constexpr (IS_COMPLEX)
                    sum += widened(value) * widened(x[column]);
                else
                    sum += (double)value * (double)x[column];
            },
            [&](int k, int i, wide sum) {
                spmv_c128 left = widened(b[i]);
                if constexpr (IS_COMPLEX)
                    left = {left.re * factor - sum.re, left.im * factor - sum.im};
                else
                    left.re = left.re * factor - sum;
                r.at(k, i) = rounded(left, 1);
                s[0] += left.re * left.re + left.im * left.im;
            });
    }

    static __device__ __forceinline__ void diagonal(const group *g, const batch_job *job, vector_of &w)
    {
        each_row_sum<T>(
            g, job,
            [&](int i, T &sum, T value, int column) {
                if (column == i)
                    sum = plus(sum, value);
            },
            [&](int k, int i, T sum) { w.at(k, i) = sum; });
    }

#define FUNCTION static __device__ __forceinline__
#define TYPED(name) name
#define VECTOR_OF vector_of &
#define VECTOR(v, which)                                                                                               \
    vector_of v;                                                                                                       \
    v.open(g->vector[which])
#define INPUT_VECTOR(v)                                                                                                \
    vector_of v;                                                                                                       \
    v.open(g->input)
#define PUBLISH(v)                                                                                                     \
    if constexpr (OWN_ROWS > 0)                                                                                        \
    g->input[i] = v.at(k_, i)
#define AT(v) v.at(k_, i)
#define EACH_ROW(i)                                                                                                    \
    _Pragma("unroll UNROLLED") for (int k_ = 0, i = g->lane; OWN_ROWS > 0 ? k_ < OWN_ROWS : i < n;                     \
                                    k_++, i += g->step) if (i < n)
#define SUMS(S, s, n) S s[n] = {}
#define ADD(s, j, value) s[j] += value
#define ADD_DOT(s, j, a, b) add_dot(&s[j], a, b)
#define SUM_UP(S, s, n) sum_up<S, n>(g, s)
#define TOTAL(s, j) s[j]
#define TOTAL_DOT(s, j) total_dot(&s[j])
#define BARRIER barrier(g)
#define FIRST_LANE (g->lane == 0)
#define MULTIPLY(q) multiply(g, job, q)
#define RESIDUAL(S, s, b, factor, r) residual(g, job, s, b, factor, r)
#define DIAGONAL(w) diagonal(g, job, w)

    static __device__ __forceinline__ void add_dot(PART *s, T a, T b)
    {
        if constexpr (IS_COMPLEX) {
            s[0] += a.re * b.re + a.im * b.im;
            s[1] += a.re * b.im - a.im * b.re;
        } else {
            s[0] += a * b;
        }
    }

    static __device__ __forceinline__ T total_dot(const PART *s)
    {
        if constexpr (IS_COMPLEX)
            return {s[0], s[1]};
        else
            return s[0];
    }

#include "solvers/batch/batch_methods.h"
};

/* -------------------------------------------------------------------------------- kernels */

template <typename T> __device__ T *placed(unsigned char *shared, char *work, int64_t at)
{
    return (T *)(at >= 0 ? (char *)shared + at : work + (-1 - at));
}

/* Calls solve(system) for one system after the other. */
template <typename Solve> __device__ __forceinline__ void take_systems(const batch_job &job, const Solve &solve)
{
    __shared__ unsigned taken;
    for (;;) {
        if (threadIdx.x == 0)
            taken = atomicAdd(job.next, 1u);
        __syncthreads(); /* also: the system before has left shared memory */
        const int64_t system = taken;
        if (system >= job.count)
            break;
        solve(system);
    }
    if (block_is_last(job.ticket) && threadIdx.x == 0)
        *job.next = 0;
}

template <typename Solver> __device__ typename Solver::group begin_block(double *of_warps)
{
    typename Solver::group g;
    g.lane = (int)threadIdx.x;
    g.step = (int)blockDim.x;
    g.of_warps = of_warps;
    g.word = of_warps + OF_WARPS;
    g.parity = 0;
    return g;
}

/* The blocks of a multiprocessor with the most lanes, whose registers suffice. */
template <typename T, batch_method METHOD> constexpr int resident()
{
    return (METHOD == BATCH_CG ? 3 : 2) + (sizeof(T) == 4 ? 1 : 0);
}

/* Staged systems: values and the input of products in shared memory, vectors in registers. */
template <typename T, batch_method METHOD>
__global__ void __launch_bounds__(BATCH_MOST_LANES, resident<T, METHOD>())
    solve_staged(const __grid_constant__ batch_job job)
{
    using solver = system_solver<T, BATCH_OWN>;
    SPMV_DYNAMIC_SHARED(shared);
    __shared__ double of_warps[OF_WARPS + 1];
    T *const val = (T *)(shared + job.layout.val);
    auto g = begin_block<solver>(of_warps);
    char *const work = job.work + blockIdx.x * job.layout.work_bytes;
    uint16_t *const slot_col = (uint16_t *)(shared + job.layout.slot_col);
    uint16_t *const step_start = (uint16_t *)(shared + job.layout.step_start);
    for (int e = g.lane; e < job.nnz; e += g.step)
        slot_col[e] = job.slots.col[e];
    for (int e = g.lane; e < job.slots.steps; e += g.step)
        step_start[e] = job.slots.step_start[e];
    g.val = val;
    g.slot_col = slot_col;
    g.step_start = step_start;
    g.input = (T *)shared;
    g.basis = placed<T>(shared, work, job.layout.basis);
    g.scalars = placed<T>(shared, work, job.layout.scalars);
    g.most = 0;
#pragma unroll
    for (int k = 0; k < BATCH_OWN; k++) {
        const int i = g.lane + k * g.step;
        g.vector[k] = nullptr;
        g.shape[k] = i < job.rows ? job.slots.shape[i] : 0;
        g.step_first[k] = i < job.rows ? job.slots.step_first[i / BATCH_WARP] : 0;
        g.most = g.shape[k] / BATCH_WARP > g.most ? g.shape[k] / BATCH_WARP : g.most;
    }
    take_systems(job, [&](int64_t system) {
        const T *const from = (const T *)job.val + system * job.nnz;
#pragma unroll 4
        for (int e = g.lane; e < job.nnz; e += g.step)
            val[job.slots.slot[e]] = from[e];
        __syncthreads();
        solver::solve(&g, &job, METHOD, system);
    });
}

/* Systems with short rows: the input of products in shared memory, all else in registers. */
template <typename T, batch_method METHOD, int MOST_LANES>
__global__ void __launch_bounds__(MOST_LANES, SHORT_THREADS / MOST_LANES)
    solve_short(const __grid_constant__ batch_job job)
{
    using solver = system_solver<T, BATCH_OWN, SHORT_ENTRIES>;
    SPMV_DYNAMIC_SHARED(shared);
    __shared__ double of_warps[OF_WARPS + 1];
    auto g = begin_block<solver>(of_warps);
    if constexpr (MOST_LANES == warp_lanes)
        g.step = warp_lanes; /* known to the compiler */
    g.input = (T *)shared;
    g.most = job.longest;
#pragma unroll
    for (int k = 0; k < BATCH_OWN; k++) {
        const int i = g.lane + k * g.step, first = i < job.rows ? job.row_ptr[i] : 0;
        const int length = i < job.rows ? job.row_ptr[i + 1] - first : 0;
#pragma unroll
        for (int e = 0; e < SHORT_ENTRIES; e++) {
            const int column = e < length ? job.col[first + e] : job.rows;
            const uint32_t place = (uint32_t)(column * (int)sizeof(T)) << e % 2 * 16;
            g.own_col[k][e / 2] = e % 2 == 0 ? place : g.own_col[k][e / 2] | place;
        }
    }
    if (g.lane == 0)
        g.input[job.rows] = 1;
    take_systems(job, [&](int64_t system) {
        const T *const from = (const T *)job.val + system * job.nnz;
#pragma unroll
        for (int k = 0; k < BATCH_OWN; k++) {
            const int i = g.lane + k * g.step, first = i < job.rows ? job.row_ptr[i] : 0;
            const int length = i < job.rows ? job.row_ptr[i + 1] - first : 0;
#pragma unroll
            for (int e = 0; e < SHORT_ENTRIES; e++)
                g.own_val[k][e] = e < length ? from[first + e] : (T)-0.0;
        }
        solver::solve(&g, &job, METHOD, system);
    });
}

/* Systems of any size, with values where they are. */
template <typename T>
__global__ void __launch_bounds__(BATCH_MOST_LANES) solve_any(const __grid_constant__ batch_job job)
{
    using solver = system_solver<T, 0>;
    SPMV_DYNAMIC_SHARED(shared);
    __shared__ double of_warps[OF_WARPS + 1];
    auto g = begin_block<solver>(of_warps);
    char *const work = job.work + blockIdx.x * job.layout.work_bytes;
    g.input = placed<T>(shared, work, job.layout.input);
    g.basis = placed<T>(shared, work, job.layout.basis);
    g.scalars = placed<T>(shared, work, job.layout.scalars);
    for (int v = 0; v < BATCH_VECTORS; v++)
        g.vector[v] = placed<T>(shared, work, job.layout.vector[v]);
    take_systems(job, [&](int64_t system) {
        g.val = (const T *)job.val + system * job.nnz;
        solver::solve(&g, &job, job.method, system);
    });
}

template <typename T>
__global__ void __launch_bounds__(APPLY_THREADS)
    multiply_all(const int32_t *row_ptr, const int32_t *col, const T *val, const T *x, T *y, int64_t rows, int64_t cols,
                 int64_t nnz, int64_t all)
{
    for (int64_t at = (int64_t)blockIdx.x * APPLY_THREADS + threadIdx.x; at < all;
         at += (int64_t)gridDim.x * APPLY_THREADS) {
        const int64_t system = at / rows, i = at - system * rows;
        const T *const its_val = val + system * nnz, *const its_x = x + system * cols;
        T sum = {};
#pragma unroll 4
        for (int e = row_ptr[i]; e < row_ptr[i + 1]; e++)
            sum = sum + its_val[e] * its_x[col[e]];
        y[at] = sum;
    }
}

/* -------------------------------------------------------------------------------- launches */

template <auto Kernel> struct kernel_of {
    static constexpr auto *kernel = Kernel;
};

/* Calls body with the kernel_of a staged batch, of real type. */
template <typename T, typename Body> spmv_status with_staged(const spmv_batch *batch, const Body &body)
{
    return batch->job.method == BATCH_CG         ? body(kernel_of<solve_staged<T, BATCH_CG>>())
           : batch->job.method == BATCH_BICGSTAB ? body(kernel_of<solve_staged<T, BATCH_BICGSTAB>>())
                                                 : body(kernel_of<solve_staged<T, BATCH_GMRES>>());
}

/* Calls body with the most lanes of the instance of solve_short for this number. */
template <typename Body> spmv_status with_lanes(int lanes, const Body &body)
{
    if (lanes == warp_lanes)
        return body(std::integral_constant<int, warp_lanes>());
    return body(std::integral_constant<int, SHORT_LANES>());
}

/* The same for short rows. */
template <typename T, int MOST_LANES, typename Body> spmv_status with_short(const spmv_batch *batch, const Body &body)
{
    return batch->job.method == BATCH_CG ? body(kernel_of<solve_short<T, BATCH_CG, MOST_LANES>>())
                                         : body(kernel_of<solve_short<T, BATCH_BICGSTAB, MOST_LANES>>());
}

/* Calls body with the kernel_of the batch. */
template <typename Body> spmv_status with_kernel(const spmv_batch *batch, const Body &body)
{
    if (batch->job.layout.short_rows)
        return with_lanes(batch->job.lanes, [&](auto most) {
            return batch->type == SPMV_F64 ? with_short<double, most.value>(batch, body)
                                           : with_short<float, most.value>(batch, body);
        });
    if (batch->job.layout.staged)
        return batch->type == SPMV_F64 ? with_staged<double>(batch, body) : with_staged<float>(batch, body);
    return with_floating(batch->type, [&](auto of) { return body(kernel_of<solve_any<decltype(of)>>()); });
}

/* Takes shared memory, as long as there is any, for one array after the other. */
struct places {
    int64_t left, shared, work;

    int64_t take(int64_t bytes)
    {
        const int64_t rounded = (bytes + 15) / 16 * 16;
        if (rounded <= left) {
            left -= rounded;
            shared += rounded;
            return shared - rounded;
        }
        work += rounded;
        return -1 - (work - rounded);
    }
};

/* Shared memory of a block: a staged system may take all of a multiprocessor's, because that is still faster than
 * reading values from memory in each product. Else a block leaves room for SHARE - 1 others. STATIC: bytes of the kernel's own, and what the system keeps of each block's. */
enum { SHARE = 2, STATIC = 3072 };

/* Workspaces take at most this part of the device's memory: with large systems fewer are solved at once. */
enum { WORK_SHARE = 16 };

void lay_out(spmv_batch *batch, int most_shared, int share)
{
    const int64_t size = (int64_t)spmv_type_size(batch->type), vector = batch->rows * size;
    batch_layout *const l = &batch->job.layout;
    places p = {most_shared, 0, 0};
    l->input = p.take(vector + size);
    const bool small = type_is_real(batch->type) && batch->rows <= BATCH_SMALL && l->input >= 0;
    l->short_rows = small && batch->job.method != BATCH_GMRES && batch->job.lanes <= SHORT_LANES &&
                    batch->job.longest <= SHORT_ENTRIES;
    l->staged = small && !l->short_rows && batch->nnz <= UINT16_MAX;
    if (l->staged) {
        l->val = p.take(batch->nnz * size);
        l->slot_col = p.take(batch->nnz * (int64_t)sizeof *batch->job.slots.col);
        l->step_start = p.take(batch->job.slots.steps * (int64_t)sizeof *batch->job.slots.step_start);
        l->staged = l->val >= 0 && l->slot_col >= 0 && l->step_start >= 0;
    }
    const bool in_memory = !l->staged && !l->short_rows;
    if (in_memory) {
        p = {share, 0, 0};
        l->input = p.take(vector);
    }
    for (int v = 0; v < batch_vectors(batch->job.method) && in_memory; v++)
        l->vector[v] = p.take(vector);
    if (batch->job.method == BATCH_GMRES) {
        p.left = 0;
        l->scalars = p.take(batch_scalars(batch->job.restart) * size);
        l->basis = p.take(batch->job.restart * vector);
    }
    l->shared_bytes = (int)p.shared;
    l->work_bytes = p.work;
}

} // namespace

extern "C" spmv_status batch_prepare_cuda(spmv_batch *batch)
{
    spmv_context *const ctx = batch->ctx;
    const cuda_state *const device = (const cuda_state *)ctx->device;
    return on_device(ctx, [&] {
        const char *const name = "batch";
        int most = 0;
        const spmv_status st = cuda_check(
            ctx, cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device->device), name);
        if (st != SPMV_OK)
            return st;
        const int share = device->shared_bytes / SHARE - STATIC;
        lay_out(batch, most - STATIC, share < most - STATIC ? share : most - STATIC);
        return with_kernel(batch, [&](auto of) {
            static uint64_t told;
            int resident = 0;
            const void *const kernel = (const void *)of.kernel;
            spmv_status made =
                once_a_device(ctx, name, &told, kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most - STATIC);
            if (made == SPMV_OK)
                made = cuda_check(ctx,
                                  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, batch->job.lanes,
                                                                                (size_t)batch->job.layout.shared_bytes),
                                  name);
            const int64_t work = batch->job.layout.work_bytes;
            const int64_t blocks = (int64_t)device->multiprocessors * (resident > 0 ? resident : 1);
            const int64_t most_blocks = work > 0 ? (int64_t)device->memory_bytes / WORK_SHARE / work : blocks;
            batch->groups = (int)(blocks < most_blocks ? blocks : most_blocks > 0 ? most_blocks : 1);
            return made;
        });
    });
}

extern "C" spmv_status batch_solve_cuda(const spmv_batch *batch, batch_job *job)
{
    const int blocks = job->count < batch->groups ? (int)job->count : batch->groups;
    cuda_state *const device = (cuda_state *)batch->ctx->device;
    job->ticket = device->ticket;
    return on_device(batch->ctx, [&] {
        /* outcomes arrive while other systems are solved */
        const spmv_status st = cuda_grow_staging(batch->ctx, job->count * (int64_t)sizeof *job->outcome);
        job->outcome = (batch_outcome *)device->staging;
        return st != SPMV_OK ? st : with_kernel(batch, [&](auto of) {
            return launch_shaped(batch->ctx, "spmv batch", {blocks, job->lanes, job->layout.shared_bytes, false},
                                 of.kernel, *job);
        });
    });
}

extern "C" spmv_status batch_apply_cuda(const spmv_batch *batch, const void *val, const void *x, void *y, int64_t count)
{
    return on_device(batch->ctx, [&] {
        return with_floating(batch->type, [&](auto of) {
            using T = decltype(of);
            const int64_t all = count * batch->rows;
            return launch(batch->ctx, "spmv batch product", grid_for(all, APPLY_THREADS), APPLY_THREADS,
                          multiply_all<T>, (const int32_t *)batch->job.row_ptr, (const int32_t *)batch->job.col,
                          (const T *)val, (const T *)x, (T *)y, batch->rows, batch->cols, batch->nnz, all);
        });
    });
}
