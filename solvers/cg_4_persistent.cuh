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
    const int lane = (int)threadIdx.x % warp_lanes;
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
    const int lane = (int)threadIdx.x % warp_lanes;
    T sum = T();
#pragma unroll
    for (int w = 0; w < WARPS_; w += STRIDE)
        if (w + lane % STRIDE < WARPS_)
            sum += of_warps[w + lane % STRIDE][lane / STRIDE];
    return {sum_lanes(sum, STRIDE / 2),
            COUNT > FOUR ? sum_lanes(lane < WARPS_ ? of_warps[lane][RR] : T(), warp_lanes / 2) : T()};
}

/* It hands them in, and waits for those of all blocks; all: what the counter says when they are there. */
template <typename T, int COUNT> __device__ void hand_in(pair<T> sums, T *parts, unsigned *arrived, unsigned all)
{
    const int lane = (int)threadIdx.x % warp_lanes;
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
    const int lane = (int)threadIdx.x % warp_lanes;
    T mine[FOUR] = {}, rest = T();
#pragma unroll
    for (int b = 0; b < MOST; b += warp_lanes)
        if (b + lane < (int)gridDim.x) {
            const T *const its = parts + (b + lane) * STRIDE;
            const pair<T> early = load_others((const pair<T> *)its), late = load_others((const pair<T> *)its + 1);
            mine[NU] += early.z;
            mine[MU] += early.t;
            mine[DELTA] += late.z;
            mine[GAMMA] += late.t;
            rest += COUNT > FOUR ? load_others(its + RR) : T();
        }
    return {sum_four(mine), COUNT > FOUR ? sum_lanes(rest, warp_lanes / 2) : T()};
}

/* In a cluster each warp hands in its own sums, to every block: parts[which sum][which warp of the cluster]. */
template <typename T, int COUNT, int ALL_WARPS>
__device__ void hand_in_cluster(pair<T> sums, T (*parts)[ALL_WARPS], int its)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    store_in_cluster(&parts[lane / STRIDE][its], lane % STRIDE, sums.z);
    if (COUNT > FOUR && lane < CLUSTER)
        store_in_cluster(&parts[COUNT - 1][its], lane, sums.t);
}

template <typename T, int COUNT, int ALL_WARPS> __device__ pair<T> add_up_cluster(const T (*parts)[ALL_WARPS])
{
    T mine[COUNT] = {};
    const int lane = (int)threadIdx.x % warp_lanes;
#pragma unroll
    for (int k = 0; k < COUNT; k++)
#pragma unroll
        for (int w = 0; w < ALL_WARPS; w += warp_lanes)
            mine[k] += parts[k][w + lane];
    return {sum_four(mine), COUNT > FOUR ? sum_lanes(mine[COUNT - 1], warp_lanes / 2) : T()};
}

/* A round serves one purpose. START_X: exchange x, for the first residual. START_R: exchange z, for the first
 * direction; add up b'b. STEP: a step. END_X: exchange x, for the true residual. END: add up its square. */
enum turn { START_X, START_R, STEP, END_X, END };

/* The shared memory of a block beside its pairs and its part of the matrix. The arrays are variables of their own, so
 * that those without a use take no memory. */
template <typename T, int WARPS_, int COUNT> struct block_memory {
    int *widths;                              /* cells of each slice */
    T (*of_warps)[STRIDE], *totals;           /* the sums of each warp; of all blocks */
    T (*in_cluster)[COUNT][CLUSTER * WARPS_]; /* the sums of each warp of the cluster: two sets in turn */
};

/* The rows of a thread. They are a variable of their own, since the compiler keeps what is indexed in memory until it
 * has unrolled the loops. */
template <typename T, int ROWS> struct own_rows {
    int begin[ROWS], length[ROWS]; /* of the rows' cells; the clerk has no rows */
    T x[ROWS], r[ROWS], p[ROWS], s[ROWS], scale[ROWS];
};

/* What one thread does and keeps in registers. BLOCK threads and the clerk, ROWS rows a thread. SCALED: with a
 * diagonal M. TOGETHER: a cluster. The kernel below calls the phases in order. */
template <typename T, typename Stored, int BLOCK, int ROWS, bool SCALED, bool TOGETHER> struct worker {
    static constexpr bool IN_CLUSTER = TOGETHER && HAVE_CLUSTERS;
    static constexpr int WARPS_ = BLOCK / warp_lanes, COUNT = SCALED ? RR + 1 : FOUR;
    static constexpr int UNROLL = 8 / ROWS; /* registers */
    using memory = block_memory<T, WARPS_, COUNT>;

    const system<T, Stored> &a;
    memory shared;
    pair<T> *own; /* the block's pairs, behind them its cells of the matrix */
    Stored *val;
    int32_t *col;
    int thread, lane, warp, first, behind;
    bool is_clerk, tells, in_grid;
    own_rows<T, ROWS> &rows;
    turn now;
    double enough, enough_squared, norm_b, tolerance, start;
    long long iterations;
    T rr, nu, mu, true_square; /* the last sums */
    int step, stop;
    unsigned barriers;

    __device__ worker(const system<T, Stored> &all, const memory &others, unsigned char *dynamic_shared,
                      own_rows<T, ROWS> &its_rows)
        : a(all), shared(others), own((pair<T> *)dynamic_shared),
          val((Stored *)(own + (TOGETHER ? 2 : 1) * a.rows_each)), col((int32_t *)(val + a.cells)),
          thread((int)threadIdx.x), lane(thread % warp_lanes), warp(thread / warp_lanes),
          first((int)blockIdx.x * a.rows_each), behind(first + a.rows_each < a.rows ? first + a.rows_each : a.rows),
          is_clerk(warp == WARPS_), tells(blockIdx.x == 0 && thread == 0), in_grid(!IN_CLUSTER && gridDim.x > 1),
          rows(its_rows), now(!a.begins     ? STEP
                              : a.from_zero ? START_R
                                            : START_X),
          enough(a.enough), enough_squared(fmax(1.01 * enough * enough, 1e-280)), norm_b(0), tolerance(0), start(0),
          iterations(a.iterations), rr(), nu(), mu(), true_square(), step(0), stop(GOES_ON), barriers(0)
    {
    }

    __device__ int row_of(int k) const
    {
        return is_clerk ? behind : first + k * BLOCK + thread;
    }

    /* A cell's column says where to gather from: in the cluster an address; elsewhere a row of the block, or of all. */
    __device__ int32_t column_of(int32_t c) const
    {
        if (IN_CLUSTER)
            return (int32_t)cluster_address(own + c % a.rows_each, c / a.rows_each);
        return c >= first && c < behind ? c - first : ~c;
    }

    /* Copies the block's rows into shared memory. */
    __device__ void load_matrix()
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int row = row_of(k);
            rows.begin[k] = row < behind ? a.row_ptr[row] : 0;
            rows.length[k] = row < behind ? a.row_ptr[row + 1] - rows.begin[k] : 0;
            int width = rows.length[k];
            for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
                const int other = __shfl_xor_sync(0xffffffffu, width, distance);
                width = other > width ? other : width;
            }
            if (lane == 0 && !is_clerk)
                shared.widths[k * WARPS_ + warp] = width * warp_lanes;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            int before = 0;
            for (int i = lane; i < k * WARPS_ + warp; i += warp_lanes)
                before += shared.widths[i];
            const int at = sum_lanes(before, warp_lanes / 2) + lane;
#pragma unroll 4
            for (int j = 0; j < rows.length[k]; j++) {
                const int32_t c = a.col[rows.begin[k] + j];
                val[at + j * warp_lanes] = a.val != nullptr ? a.val[rows.begin[k] + j] : Stored(1);
                col[at + j * warp_lanes] = column_of(c);
            }
            rows.begin[k] = at;
        }
    }

    /* The first launch starts from x and b, a later one from where the launch before stopped. */
    __device__ void load_vectors()
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int row = row_of(k);
            const bool there = row < behind;
            rows.x[k] = there && !a.from_zero ? a.x[row] : T();
            rows.r[k] = there ? (a.begins ? a.b : a.r)[row] : T();
            rows.p[k] = there && !a.begins ? a.p[row] : T();
            rows.s[k] = there && !a.begins ? a.s[row] : T();
            rows.scale[k] = SCALED && there ? a.scale[row] : T(1);
            if (there && a.begins)
                a.start_x[row] = rows.x[k];
        }
    }

    /* The pairs that the block's own rows gather in this round, and those that rows of other blocks do. */
    __device__ pair<T> *own_pairs(int set) const
    {
        return own + (TOGETHER ? set * a.rows_each : 0);
    }

    __device__ pair<T> *all_pairs(int set) const
    {
        return a.pairs + (int64_t)set * a.rows;
    }

    /* Stores what is gathered of the thread's rows. Returns the warp's sums, in the lanes of sum_four. */
    __device__ pair<T> store_pairs(int set) const
    {
        T part[COUNT] = {};
        pair<T> *const pairs = all_pairs(set), *const mine = own_pairs(set);
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int row = row_of(k);
            pair<T> its = {rows.x[k], T()};
            if (now == START_R || now == STEP)
                its = {SCALED ? rows.scale[k] * rows.r[k] : rows.r[k], SCALED ? rows.scale[k] * rows.s[k] : rows.s[k]};
            if (now != END && row < behind) {
                mine[row - first] = its;
                if (in_grid)
                    pairs[row] = its;
            }
            if (now == STEP) {
                part[NU] += its.z * rows.r[k];
                part[MU] += rows.p[k] * rows.s[k];
                part[DELTA] += its.z * rows.s[k];
                part[GAMMA] += its.t * rows.s[k];
                if (SCALED)
                    part[COUNT - 1] += rows.r[k] * rows.r[k];
            } else if (now == START_R) {
                const T b = row < behind ? a.b[row] : T();
                part[NU] += b * b;
            } else if (now == END) {
                part[NU] += rows.r[k] * rows.r[k];
            }
        }
        pair<T> sums = {};
        if (!is_clerk)
            sums = {sum_four(part), SCALED ? sum_lanes(part[COUNT - 1], warp_lanes / 2) : T()};
        return sums;
    }

    /* Hands in the warp's sums, and passes the round's barrier: all pairs are then stored. The clerk adds up the sums
     * of all blocks, while the others go on. */
    __device__ void exchange(int set, pair<T> sums)
    {
        if (!is_clerk && IN_CLUSTER) {
            hand_in_cluster<T, COUNT>(sums, shared.in_cluster[set], (int)blockIdx.x * WARPS_ + warp);
        } else if (!is_clerk) {
            if (lane % STRIDE == 0)
                shared.of_warps[warp][lane / STRIDE] = sums.z;
            if (SCALED && lane == 0)
                shared.of_warps[warp][RR] = sums.t;
        }
        if (IN_CLUSTER)
            meet_cluster();
        else
            __syncthreads();
        T *const parts = a.parts + (int64_t)set * gridDim.x * STRIDE;
        if (is_clerk && !IN_CLUSTER) {
            sums = sum_block<T, WARPS_, COUNT>(shared.of_warps);
            if (in_grid)
                hand_in<T, COUNT>(sums, parts, a.arrived, barriers += gridDim.x);
        }
        if (in_grid)
            __syncthreads();
        if (is_clerk) {
            if (IN_CLUSTER)
                sums = add_up_cluster<T, COUNT>(shared.in_cluster[set]);
            else if (in_grid)
                sums = add_up<T, COUNT, most_blocks<ROWS>>(parts);
            if (lane % STRIDE == 0)
                shared.totals[lane / STRIDE] = sums.z;
            if (SCALED && lane == 0)
                shared.totals[RR] = sums.t;
        }
    }

    /* w = A z and u = A t (or w = A x) for the thread's rows. The gathers of all rows are on their way together. */
    __device__ void multiply(int set, T (&w)[ROWS], T (&u)[ROWS]) const
    {
        const uint32_t its_set = (uint32_t)(set * a.rows_each * (int)sizeof(pair<T>));
        const pair<T> *const pairs = all_pairs(set), *const mine = own_pairs(set);
        int longest = 0;
#pragma unroll
        for (int k = 0; k < ROWS; k++)
            longest = now != END && rows.length[k] > longest ? rows.length[k] : longest;
        for (int j = 0; j < longest; j += UNROLL) {
            pair<T> gathered[ROWS][UNROLL] = {};
#pragma unroll
            for (int k = 0; k < ROWS; k++)
#pragma unroll
                for (int i = 0; i < UNROLL; i++)
                    if (j + i < rows.length[k]) {
                        const int32_t c = col[rows.begin[k] + (j + i) * warp_lanes];
                        if (IN_CLUSTER)
                            gathered[k][i] = load_from_cluster((uint32_t)c + its_set, pair<T>());
                        else
                            gathered[k][i] = c >= 0 ? mine[c] : load_others(pairs + ~c);
                    }
#pragma unroll
            for (int k = 0; k < ROWS; k++)
#pragma unroll
                for (int i = 0; i < UNROLL; i++)
                    if (j + i < rows.length[k]) {
                        const T v = T(val[rows.begin[k] + (j + i) * warp_lanes]);
                        w[k] += v * gathered[k][i].z;
                        u[k] += v * gathered[k][i].t;
                    }
        }
    }

    /* r -= A x */
    __device__ void subtract(const T (&w)[ROWS])
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++)
            rows.r[k] -= w[k];
    }

    /* The tolerance, and the first direction. False where b is 0. */
    __device__ bool start_direction(const T (&w)[ROWS])
    {
        norm_b = sqrt((double)shared.totals[NU]);
        tolerance = fmax(isfinite(norm_b) ? a.rtol * norm_b : 0, a.atol);
        if (norm_b == 0) {
            stop = ZERO;
            return false;
        }
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            rows.p[k] = SCALED ? rows.scale[k] * rows.r[k] : rows.r[k];
            rows.s[k] = w[k];
        }
        return true;
    }

    /* The sums of the step; stop, when no step follows. */
    __device__ void look()
    {
        nu = shared.totals[NU];
        mu = shared.totals[MU];
        rr = SCALED ? shared.totals[RR] : nu;
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
    }

    /* r = b, from which the true residual is made. */
    __device__ void load_b()
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int row = row_of(k);
            rows.r[k] = row < behind ? a.b[row] : T();
        }
    }

    /* One step of the recurrence, as at the top of this file. */
    __device__ void take_step(T delta, T gamma, const T (&w)[ROWS], const T (&u)[ROWS])
    {
        const T alpha = nu / mu, per_nu = T(1) / nu;
        const T ahead = nu + alpha * (alpha * gamma - (delta + delta)), square = ahead > 0 ? ahead : T();
        const T beta = isfinite(per_nu) ? square * per_nu : square / nu;
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            rows.x[k] += alpha * rows.p[k];
            rows.r[k] -= alpha * rows.s[k];
            rows.p[k] = (SCALED ? rows.scale[k] * rows.r[k] : rows.r[k]) + beta * rows.p[k];
            rows.s[k] = (w[k] - alpha * u[k]) + beta * rows.s[k];
        }
        iterations++;
        step++;
    }

    /* For the next launch, and for the host. */
    __device__ void store_vectors() const
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int row = row_of(k);
            if (row < behind && stop != ZERO) {
                a.x[row] = rows.x[k];
                if (stop == GOES_ON) {
                    a.r[row] = rows.r[k];
                    a.p[row] = rows.p[k];
                    a.s[row] = rows.s[k];
                }
            }
        }
    }

    __device__ void tell() const
    {
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
};

template <typename T, typename Stored, int BLOCK, int ROWS, bool SCALED, bool TOGETHER>
__global__ void __launch_bounds__(BLOCK + warp_lanes) kernel(system<T, Stored> a)
{
    using its_worker = worker<T, Stored, BLOCK, ROWS, SCALED, TOGETHER>;
#ifdef HOST_CUDA
    alignas(16) static unsigned char dynamic_shared[HOST_SHARED];
#else
    extern __shared__ __align__(16) unsigned char dynamic_shared[];
#endif
    constexpr int WARPS_ = its_worker::WARPS_, COUNT = its_worker::COUNT;
    __shared__ int widths[WARPS_ * ROWS];
    __shared__ T of_warps[WARPS_][STRIDE], totals[STRIDE];
    __shared__ T in_cluster[2][COUNT][CLUSTER * WARPS_];
    own_rows<T, ROWS> rows;
    its_worker me(a, {widths, of_warps, totals, in_cluster}, dynamic_shared, rows);
    me.load_matrix();
    if (its_worker::IN_CLUSTER)
        meet_cluster(); /* no block writes into the memory of one that has not started */
    me.load_vectors();
    for (int round = 0;; round++) {
        const int set = round % 2;
        T w[ROWS] = {}, u[ROWS] = {};
        me.exchange(set, me.store_pairs(set));
        me.multiply(set, w, u);
        __syncthreads();
        if (me.now == START_X) {
            me.subtract(w);
            me.now = START_R;
        } else if (me.now == START_R) {
            if (!me.start_direction(w))
                break;
            me.now = STEP;
        } else if (me.now == STEP) {
            const T delta = totals[DELTA], gamma = totals[GAMMA];
            me.look();
            if (me.stop != GOES_ON) {
                me.load_b();
                me.now = END_X;
                continue;
            }
            if (me.step == a.steps)
                break;
            me.take_step(delta, gamma, w, u);
        } else if (me.now == END_X) {
            me.subtract(w);
            me.now = END;
        } else {
            me.true_square = totals[NU];
            break;
        }
    }
    if (its_worker::IN_CLUSTER)
        meet_cluster(); /* no block ends while others read its memory */
    me.store_vectors();
    if (me.tells)
        me.tell();
}

} // namespace cg_persistent

#endif
