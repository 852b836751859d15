/* Conjugate gradients, rung 4: the whole solve in one kernel, one barrier a step.
 *
 * Idea: a small system fits into the multiprocessors: the matrix into their shared memory, the vectors into registers,
 * a thread a row or some. The blocks stay, and all that goes through memory in a step is what other blocks' rows gather
 * and the blocks' parts of the sums. The method is the pipelined one that predicts and recomputes (Chen & Carson): the
 * sums of a step are of vectors that are known before its product, so both need but one exchange. With z = M^-1 r,
 * t = M^-1 s:
 *
 *     gather  w = A z, u = A t     meanwhile  nu = z'r, mu = p's, delta = z's, gamma = t's
 *     alpha = nu / mu;  x += alpha p;  r -= alpha s;  z, t anew after
 *     nu ahead = nu - 2 alpha delta + alpha^2 gamma;  beta = (nu ahead) / nu
 *     p = z + beta p;  s = (w - alpha u) + beta s
 *
 * s is A p up to the rounding of one step, since w is a product anew each time, and mu is p'Ap itself: what older
 * pipelined forms lose in accuracy, by sums of sums, is not lost. The price is a second product with the same matrix,
 * whose gathers are the first one's: pairs (z, t). What is done once a solve is here, too: the norm of b, the first
 * residual, the true residual at the end. Launches: 1 for MOST_STEPS steps. Bytes a step: 16 n, in caches. Changed
 * since rung 3: no launch, no pass through memory. Wins: wherever the system fits, some 245,000 rows.
 *
 * The matrix: 32 rows a slice, the k-th entries of a slice's rows side by side (SELL), as wide as the slice's longest
 * row: each thread walks its row, and neighbours read neighbouring cells. Rows of the block itself are gathered from
 * shared memory.
 *
 * A block has a warp more, the clerk: it adds up the warps' sums, meets the other blocks, and adds up theirs, while the
 * others gather.
 *
 * Progress: the launch is cooperative, so all blocks run at once. A barrier is one counter: each block adds 1 when it
 * has written what others read, and waits until all have. What blocks wrote before is seen after it (release, acquire),
 * but for caches of the own multiprocessor, which loads of others' data pass by. There are two sets of what is
 * exchanged, in turn: who writes one knows that all have come to the barrier behind the last use of it. A block alone
 * has no others to wait for. Few blocks are a cluster, where the device has such: its barrier, and the others' shared
 * memory in place of the caches.
 *
 * Bits: the number of blocks, of rows a block and a thread, and the order of all sums follow from n, the longest row,
 * and whether the device has clusters and the multiprocessors for all blocks.
 * T. Chen, E. Carson, "Predict-and-recompute conjugate gradient variants", SIAM J. Sci. Comput. 42(5), 2020, the
 * pipelined variant; P. Ghysels, W. Vanroose, "Hiding global synchronization latency in the preconditioned conjugate
 * gradient algorithm", Parallel Computing 40(7), 2014.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_4_PERSISTENT_CUH
#define CG_4_PERSISTENT_CUH

#include "block.cuh"
#include "launch.cuh"

namespace cg_persistent
{

enum { GOES_ON, ENDED, BROKEN, LIMIT, ZERO }; /* ZERO: b is */
enum { MOST_STEPS = 2048, CLUSTER = 8 };

/* With so many rows a thread: the multiprocessors of an H100, or four for each lane of the clerk, which has registers
 * for no more. */
template <int ROWS> constexpr int most_blocks = ROWS < 4 ? 132 : 128;

/* Of shared memory: at most, beside the dynamic part; on hosts that play a GPU, the dynamic part. */
enum { STATIC_BYTES = 8192, HOST_SHARED = 128 * 1024 };

/* The sums. RR = r'r, where it is not NU. */
enum { NU, MU, DELTA, GAMMA, FOUR, RR = FOUR, STRIDE = 8 };

/* What a launch says, in host memory. */
struct report {
    double norm_b, tolerance; /* of the first launch */
    double start, enough;     /* norms: of the first residual, of the last one wanted */
    double rr, nu, mu;        /* of the last step looked at */
    double residual;          /* the true one's norm, where it stopped */
    long long iterations;     /* in all */
    int stop;
};

/* What is gathered of a row. */
template <typename T> struct alignas(2 * sizeof(T)) pair {
    T z, t;
};

template <typename T, typename Stored> struct system {
    const int32_t *row_ptr, *col;
    const Stored *val; /* NULL: a pattern */
    int rows, rows_each, cells;
    const T *b;
    T *x, *start_x;
    T *r, *p, *s;      /* between launches */
    pair<T> *pairs;    /* 2 * rows */
    const T *scale;    /* M^-1, a diagonal; NULL: none */
    T *parts;          /* 2 * blocks * STRIDE */
    T *history;        /* r'r after iteration `first of the launch` + i; NULL: nobody asks */
    unsigned *arrived; /* 0 before the launch */
    report *told;
    double rtol, atol, roundoff, enough; /* enough: but for the first launch */
    long long iterations, most;          /* those done before the launch; the limit */
    int steps;                           /* of this launch, at most */
    bool begins, from_zero;              /* the first launch; x is 0 */
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

/* What others wrote in this launch. */
template <typename T> __device__ T load_others(const T *from)
{
#ifdef __CUDA_ARCH__
    return __ldcg(from);
#else
    return *from;
#endif
}

template <typename T> __device__ pair<T> load_others(const pair<T> *from)
{
#ifdef __CUDA_ARCH__
    if constexpr (sizeof(T) == sizeof(float)) {
        const float2 both = __ldcg((const float2 *)from);
        return {both.x, both.y};
    } else {
        const double2 both = __ldcg((const double2 *)from);
        return {both.x, both.y};
    }
#else
    return *from;
#endif
}

/* The sum over 2 * from lanes, for each of them. */
template <typename T> __device__ T sum_lanes(T v, int from)
{
#pragma unroll
    for (int distance = from; distance > 0; distance /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, distance);
    return v;
}

/* Four sums over the warp: lane 8 k gets that of v[k]. A lane hands on what it will not add up. */
template <typename T> __device__ T sum_four(const T *v)
{
    const int lane = (int)threadIdx.x % WARP;
    const bool late = (lane & 16) != 0, odd = (lane & 8) != 0;
    const T first = (late ? v[2] : v[0]) + __shfl_xor_sync(0xffffffffu, late ? v[0] : v[2], 16);
    const T second = (late ? v[3] : v[1]) + __shfl_xor_sync(0xffffffffu, late ? v[1] : v[3], 16);
    return sum_lanes((odd ? second : first) + __shfl_xor_sync(0xffffffffu, odd ? first : second, 8), 4);
}

/* Clusters: everything that only they have. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
enum { HAVE_CLUSTERS = 1 };

__device__ inline uint32_t cluster_address(const void *own, int rank)
{
    uint32_t address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"((uint32_t)__cvta_generic_to_shared(own)), "r"(rank));
    return address;
}

/* All threads of all blocks. */
__device__ inline void meet_cluster()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ inline void store_in_cluster(double *own, int rank, double value)
{
    asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(cluster_address(own, rank)), "d"(value) : "memory");
}

__device__ inline void store_in_cluster(float *own, int rank, float value)
{
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(cluster_address(own, rank)), "f"(value) : "memory");
}

/* From an address in the cluster. */
__device__ inline pair<double> load_from_cluster(uint32_t address, pair<double>)
{
    pair<double> value;
    asm volatile("ld.shared::cluster.v2.f64 {%0, %1}, [%2];" : "=d"(value.z), "=d"(value.t) : "r"(address));
    return value;
}

__device__ inline pair<float> load_from_cluster(uint32_t address, pair<float>)
{
    pair<float> value;
    asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];" : "=f"(value.z), "=f"(value.t) : "r"(address));
    return value;
}
#else
enum { HAVE_CLUSTERS = 0 };

__device__ inline uint32_t cluster_address(const void *, int)
{
    return 0;
}

__device__ inline void meet_cluster()
{
}

template <typename T> __device__ void store_in_cluster(T *, int, T)
{
}

template <typename T> __device__ pair<T> load_from_cluster(uint32_t, pair<T> none)
{
    return none;
}
#endif

/* The clerk's work: the block's sums from the warps'. Lane l has sum l / 8, and all have the rest, which is RR. */
template <typename T, int WARPS_, int COUNT> __device__ pair<T> sum_block(const T (*of_warps)[STRIDE])
{
    const int lane = (int)threadIdx.x % WARP;
    T sum = T();
#pragma unroll
    for (int w = 0; w < WARPS_; w += STRIDE)
        if (w + lane % STRIDE < WARPS_)
            sum += of_warps[w + lane % STRIDE][lane / STRIDE];
    return {sum_lanes(sum, STRIDE / 2),
            COUNT > FOUR ? sum_lanes(lane < WARPS_ ? of_warps[lane][RR] : T(), WARP / 2) : T()};
}

/* It hands them in, and waits for those of all blocks; all: what the counter says when they are there. */
template <typename T, int COUNT> __device__ void hand_in(pair<T> sums, T *parts, unsigned *arrived, unsigned all)
{
    const int lane = (int)threadIdx.x % WARP;
    if (lane % STRIDE == 0)
        parts[blockIdx.x * STRIDE + lane / STRIDE] = sums.z;
    if (COUNT > FOUR && lane == 0)
        parts[blockIdx.x * STRIDE + RR] = sums.t;
    __syncwarp();
    if (lane == 0) {
        arrive(arrived);
        await_all(arrived, all);
    }
    __syncwarp();
}

/* The sums of all blocks, of which there are MOST at most, in the same lanes. */
template <typename T, int COUNT, int MOST> __device__ pair<T> add_up(const T *parts)
{
    const int lane = (int)threadIdx.x % WARP;
    T mine[FOUR] = {}, rest = T();
#pragma unroll
    for (int b = 0; b < MOST; b += WARP)
        if (b + lane < (int)gridDim.x) {
            const T *const its = parts + (b + lane) * STRIDE;
            const pair<T> early = load_others((const pair<T> *)its), late = load_others((const pair<T> *)its + 1);
            mine[NU] += early.z;
            mine[MU] += early.t;
            mine[DELTA] += late.z;
            mine[GAMMA] += late.t;
            rest += COUNT > FOUR ? load_others(its + RR) : T();
        }
    return {sum_four(mine), COUNT > FOUR ? sum_lanes(rest, WARP / 2) : T()};
}

/* In a cluster each warp hands in its own sums, to every block: parts[which sum][which warp of the cluster]. */
template <typename T, int COUNT, int ALL_WARPS>
__device__ void hand_in_cluster(pair<T> sums, T (*parts)[ALL_WARPS], int its)
{
    const int lane = (int)threadIdx.x % WARP;
    store_in_cluster(&parts[lane / STRIDE][its], lane % STRIDE, sums.z);
    if (COUNT > FOUR && lane < CLUSTER)
        store_in_cluster(&parts[COUNT - 1][its], lane, sums.t);
}

template <typename T, int COUNT, int ALL_WARPS> __device__ pair<T> add_up_cluster(const T (*parts)[ALL_WARPS])
{
    T mine[COUNT] = {};
    const int lane = (int)threadIdx.x % WARP;
#pragma unroll
    for (int k = 0; k < COUNT; k++)
#pragma unroll
        for (int w = 0; w < ALL_WARPS; w += WARP)
            mine[k] += parts[k][w + lane];
    return {sum_four(mine), COUNT > FOUR ? sum_lanes(mine[COUNT - 1], WARP / 2) : T()};
}

/* BLOCK threads and the clerk, ROWS rows a thread. SCALED: with a diagonal M. TOGETHER: a cluster. */
template <typename T, typename Stored, int BLOCK, int ROWS, bool SCALED, bool TOGETHER>
__global__ void __launch_bounds__(BLOCK + WARP) kernel(system<T, Stored> a)
{
    constexpr bool IN_CLUSTER = TOGETHER && HAVE_CLUSTERS;
    constexpr int WARPS_ = BLOCK / WARP, COUNT = SCALED ? RR + 1 : FOUR;
    constexpr int UNROLL = 8 / ROWS; /* registers */
#ifdef HOST_CUDA
    alignas(16) static unsigned char dynamic_shared[HOST_SHARED];
#else
    extern __shared__ __align__(16) unsigned char dynamic_shared[]; /* the block's own pairs, cells of the matrix */
#endif
    __shared__ int widths[WARPS_ * ROWS];
    __shared__ T of_warps[WARPS_][STRIDE], totals[STRIDE];
    __shared__ T in_cluster[2][COUNT][CLUSTER * WARPS_];
    pair<T> *const own = (pair<T> *)dynamic_shared;
    Stored *const val = (Stored *)(own + (TOGETHER ? 2 : 1) * a.rows_each);
    int32_t *const col = (int32_t *)(val + a.cells);
    const int thread = (int)threadIdx.x, lane = thread % WARP, warp = thread / WARP;
    const int first = (int)blockIdx.x * a.rows_each;
    const int behind = first + a.rows_each < a.rows ? first + a.rows_each : a.rows;
    const bool is_clerk = warp == WARPS_, tells = blockIdx.x == 0 && thread == 0;
    const bool in_grid = !IN_CLUSTER && gridDim.x > 1;

    const auto row_of = [&](int k) { return is_clerk ? behind : first + k * BLOCK + thread; };

    /* A cell's column says where to gather from: in the cluster an address; elsewhere a row of the block, or of all. */
    const auto column_of = [&](int32_t c) {
        if (IN_CLUSTER)
            return (int32_t)cluster_address(own + c % a.rows_each, c / a.rows_each);
        return c >= first && c < behind ? c - first : ~c;
    };

    /* the matrix */
    int begin[ROWS], length[ROWS]; /* the clerk has no rows */
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int row = row_of(k);
        begin[k] = row < behind ? a.row_ptr[row] : 0;
        length[k] = row < behind ? a.row_ptr[row + 1] - begin[k] : 0;
        int width = length[k];
        for (int distance = WARP / 2; distance > 0; distance /= 2) {
            const int other = __shfl_xor_sync(0xffffffffu, width, distance);
            width = other > width ? other : width;
        }
        if (lane == 0 && !is_clerk)
            widths[k * WARPS_ + warp] = width * WARP;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        int before = 0;
        for (int i = lane; i < k * WARPS_ + warp; i += WARP)
            before += widths[i];
        const int at = sum_lanes(before, WARP / 2) + lane;
#pragma unroll 4
        for (int j = 0; j < length[k]; j++) {
            const int32_t c = a.col[begin[k] + j];
            val[at + j * WARP] = a.val != nullptr ? a.val[begin[k] + j] : Stored(1);
            col[at + j * WARP] = column_of(c);
        }
        begin[k] = at;
    }

    if (IN_CLUSTER)
        meet_cluster(); /* nobody writes into the memory of a block that is not there yet */

    /* the vectors */
    T x[ROWS], r[ROWS], p[ROWS], s[ROWS], scale[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int row = row_of(k);
        const bool there = row < behind;
        x[k] = there && !a.from_zero ? a.x[row] : T();
        r[k] = there ? (a.begins ? a.b : a.r)[row] : T();
        p[k] = there && !a.begins ? a.p[row] : T();
        s[k] = there && !a.begins ? a.s[row] : T();
        scale[k] = SCALED && there ? a.scale[row] : T(1);
        if (there && a.begins)
            a.start_x[row] = x[k];
    }

    /* Each turn exchanges, for a purpose: START_X x, for the first residual; START_R z, for the first direction, and
     * b'b; STEP; END_X x, for the true residual; END its square. */
    enum { START_X, START_R, STEP, END_X, END } turn = !a.begins ? STEP : a.from_zero ? START_R : START_X;
    double enough = a.enough, enough_squared = fmax(1.01 * enough * enough, 1e-280), norm_b = 0, tolerance = 0,
           start = 0;
    long long iterations = a.iterations;
    T rr = T(), nu = T(), mu = T(), true_square = T();
    int step = 0, stop = GOES_ON;
    unsigned barriers = 0;
    for (int round = 0;; round++) {
        T w[ROWS] = {}, u[ROWS] = {}, part[COUNT] = {};
        const int set = round % 2;
        const uint32_t its_set = (uint32_t)(set * a.rows_each * (int)sizeof(pair<T>));
        pair<T> *const pairs = a.pairs + (int64_t)set * a.rows, *const mine = own + (TOGETHER ? set * a.rows_each : 0);
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int row = row_of(k);
            pair<T> its = {x[k], T()};
            if (turn == START_R || turn == STEP)
                its = {SCALED ? scale[k] * r[k] : r[k], SCALED ? scale[k] * s[k] : s[k]};
            if (turn != END && row < behind) {
                mine[row - first] = its;
                if (in_grid)
                    pairs[row] = its;
            }
            if (turn == STEP) {
                part[NU] += its.z * r[k];
                part[MU] += p[k] * s[k];
                part[DELTA] += its.z * s[k];
                part[GAMMA] += its.t * s[k];
                if (SCALED)
                    part[COUNT - 1] += r[k] * r[k];
            } else if (turn == START_R) {
                const T b = row < behind ? a.b[row] : T();
                part[NU] += b * b;
            } else if (turn == END) {
                part[NU] += r[k] * r[k];
            }
        }
        pair<T> sums = {};
        if (!is_clerk)
            sums = {sum_four(part), SCALED ? sum_lanes(part[COUNT - 1], WARP / 2) : T()};
        if (!is_clerk && IN_CLUSTER) {
            hand_in_cluster<T, COUNT>(sums, in_cluster[set], (int)blockIdx.x * WARPS_ + warp);
        } else if (!is_clerk) {
            if (lane % STRIDE == 0)
                of_warps[warp][lane / STRIDE] = sums.z;
            if (SCALED && lane == 0)
                of_warps[warp][RR] = sums.t;
        }
        if (IN_CLUSTER)
            meet_cluster();
        else
            __syncthreads();
        T *const parts = a.parts + (int64_t)set * gridDim.x * STRIDE;
        if (is_clerk && !IN_CLUSTER) {
            sums = sum_block<T, WARPS_, COUNT>(of_warps);
            if (in_grid)
                hand_in<T, COUNT>(sums, parts, a.arrived, barriers += gridDim.x);
        }
        if (in_grid)
            __syncthreads();
        if (is_clerk) {
            if (IN_CLUSTER)
                sums = add_up_cluster<T, COUNT>(in_cluster[set]);
            else if (in_grid)
                sums = add_up<T, COUNT, most_blocks<ROWS>>(parts);
            if (lane % STRIDE == 0)
                totals[lane / STRIDE] = sums.z;
            if (SCALED && lane == 0)
                totals[RR] = sums.t;
        }

        /* the products; the gathers of all rows are on their way together */
        int longest = 0;
#pragma unroll
        for (int k = 0; k < ROWS; k++)
            longest = turn != END && length[k] > longest ? length[k] : longest;
        for (int j = 0; j < longest; j += UNROLL) {
            pair<T> gathered[ROWS][UNROLL] = {};
#pragma unroll
            for (int k = 0; k < ROWS; k++)
#pragma unroll
                for (int i = 0; i < UNROLL; i++)
                    if (j + i < length[k]) {
                        const int32_t c = col[begin[k] + (j + i) * WARP];
                        if (IN_CLUSTER)
                            gathered[k][i] = load_from_cluster((uint32_t)c + its_set, pair<T>());
                        else
                            gathered[k][i] = c >= 0 ? mine[c] : load_others(pairs + ~c);
                    }
#pragma unroll
            for (int k = 0; k < ROWS; k++)
#pragma unroll
                for (int i = 0; i < UNROLL; i++)
                    if (j + i < length[k]) {
                        const T v = T(val[begin[k] + (j + i) * WARP]);
                        w[k] += v * gathered[k][i].z;
                        u[k] += v * gathered[k][i].t;
                    }
        }
        __syncthreads();

        if (turn == START_X) {
#pragma unroll
            for (int k = 0; k < ROWS; k++)
                r[k] -= w[k];
            turn = START_R;
        } else if (turn == START_R) {
            norm_b = sqrt((double)totals[NU]);
            tolerance = fmax(isfinite(norm_b) ? a.rtol * norm_b : 0, a.atol);
            if (norm_b == 0) {
                stop = ZERO;
                break;
            }
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                p[k] = SCALED ? scale[k] * r[k] : r[k];
                s[k] = w[k];
            }
            turn = STEP;
        } else if (turn == STEP) {
            nu = totals[NU];
            mu = totals[MU];
            rr = SCALED ? totals[RR] : nu;
            const T delta = totals[DELTA], gamma = totals[GAMMA];
            if (a.begins && step == 0) {
                start = sqrt((double)rr);
                enough = fmax(tolerance, a.roundoff * start);
                enough_squared = fmax(1.01 * enough * enough, 1e-280); /* below which a root is worth taking */
            }
            if (tells && a.history != nullptr)
                a.history[step] = rr;
            if (isfinite(rr) && (double)rr <= enough_squared && sqrt((double)rr) <= enough)
                stop = ENDED;
            else if (!isfinite(rr) || !isfinite(nu) || !isfinite(mu) || nu <= 0 || mu <= 0)
                stop = BROKEN;
            else if (iterations == a.most)
                stop = LIMIT;
            if (stop != GOES_ON) {
#pragma unroll
                for (int k = 0; k < ROWS; k++) {
                    const int row = row_of(k);
                    r[k] = row < behind ? a.b[row] : T();
                }
                turn = END_X;
                continue;
            }
            if (step == a.steps)
                break;
            const T alpha = nu / mu, per_nu = T(1) / nu;
            const T ahead = nu + alpha * (alpha * gamma - (delta + delta)), square = ahead > 0 ? ahead : T();
            const T beta = isfinite(per_nu) ? square * per_nu : square / nu;
#pragma unroll
            for (int k = 0; k < ROWS; k++) {
                x[k] += alpha * p[k];
                r[k] -= alpha * s[k];
                p[k] = (SCALED ? scale[k] * r[k] : r[k]) + beta * p[k];
                s[k] = (w[k] - alpha * u[k]) + beta * s[k];
            }
            iterations++;
            step++;
        } else if (turn == END_X) {
#pragma unroll
            for (int k = 0; k < ROWS; k++)
                r[k] -= w[k];
            turn = END;
        } else {
            true_square = totals[NU];
            break;
        }
    }

    if (IN_CLUSTER)
        meet_cluster(); /* nobody leaves while his memory is read */

        /* for the next launch, and for the host */
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int row = row_of(k);
        if (row < behind && stop != ZERO) {
            a.x[row] = x[k];
            if (stop == GOES_ON) {
                a.r[row] = r[k];
                a.p[row] = p[k];
                a.s[row] = s[k];
            }
        }
    }
    if (tells) {
        report *const told = a.told;
        if (a.begins) {
            told->norm_b = norm_b;
            told->tolerance = tolerance;
            told->start = start;
        }
        told->enough = enough;
        told->rr = (double)rr;
        told->nu = (double)nu;
        told->mu = (double)mu;
        told->residual = sqrt((double)true_square);
        told->iterations = iterations;
        told->stop = stop;
    }
}

} // namespace cg_persistent

#endif
