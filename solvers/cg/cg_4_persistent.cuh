/* Conjugate gradients, rung 4: the whole solve in one kernel, with one barrier a step.
 *
 * Idea:       a small system fits into the multiprocessors: the matrix into shared memory, the
 *             vectors into registers, one or several rows a thread. The blocks stay resident. Only
 *             the elements that rows of other blocks gather, and the blocks' parts of the sums,
 *             travel through memory.
 *             The method is the pipelined predict-and-recompute one (Chen and Carson): the sums of
 *             a step are of vectors known before its product, so both need one exchange. With z =
 *             M^-1 r, t = M^-1 s:
 *
 *             gather  w = A z, u = A t   meanwhile  nu = z'r, mu = p's, delta = z's, gamma = t's
 *             alpha = nu / mu;  x += alpha p;  r -= alpha s;  z, t anew after
 *             nu ahead = nu - 2 alpha delta + alpha^2 gamma;  beta = (nu ahead) / nu
 *             p = z + beta p;  s = (w - alpha u) + beta s
 *
 *             s is A p up to the rounding of one step, since w is a new product each time, and mu
 *             is p'Ap. So the accuracy that older pipelined forms lose by sums of sums is kept. The
 *             cost is a second product with the same matrix, which shares the gathers of the first:
 *             pairs (z, t). The kernel also computes the norm of b, the first residual, and the
 *             true residual at the end.
 * Launches:   1 for MOST_STEPS steps.
 * Bytes:      16 n a step, in caches.
 * Changed:    since rung 3, no launch and no pass through memory.
 * Wins when:  the system fits: up to about 245,000 rows.
 * Source:     T. Chen, E. Carson, "Predict-and-recompute conjugate gradient variants", SIAM J. Sci.
 *             Comput. 42(5), 2020, the pipelined variant; P. Ghysels, W. Vanroose, "Hiding global
 *             synchronization latency in the preconditioned conjugate gradient algorithm", Parallel
 *             Computing 40(7), 2014.
 *
 * The matrix is stored in slices of 32 rows (SELL). The k-th entries of a slice's rows are
 * adjacent, and a slice is as wide as its longest row. Each thread processes its rows, and
 * neighbouring threads read neighbouring cells. Elements of the block's own rows are gathered from
 * shared memory.
 *
 * A block has one more warp, the clerk. It adds the sums of the warps, passes the barrier, and adds
 * the sums of all blocks, while the other warps gather.
 *
 * Barriers: grid_barrier.cuh. The exchanged data have two sets, used in turn: a block that writes a
 * set has passed the barrier after the last use of that set. A single block does not wait. A few
 * blocks are a cluster where the device has clusters: they use its barrier, and its shared memory
 * instead of caches.
 *
 * Bits: the number of blocks, the rows of a block and a thread, and the order of all sums depend on
 * n, the longest row, and whether the device has clusters and enough multiprocessors for all
 * blocks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_4_PERSISTENT_CUH
#define CG_4_PERSISTENT_CUH

#include "device/block.cuh"
#include "device/grid_barrier.cuh"

namespace cg_persistent
{

using namespace grid_barrier;

enum { GOES_ON, ENDED, BROKEN, LIMIT, ZERO }; /* ZERO: b is 0 */
enum { MOST_STEPS = 2048, CLUSTER = 8 };

/* The largest number of blocks with ROWS rows per thread: the multiprocessors of an H100, or four
 * for each lane of the clerk, which has no registers for more. */
template <int ROWS> constexpr int most_blocks = ROWS < 4 ? 132 : 128;

/* The most shared memory of a block besides the dynamic part. */
enum { STATIC_BYTES = 8192 };

/* Indices of the sums. RR: r'r, where it differs from NU. */
enum { NU, MU, DELTA, GAMMA, FOUR, RR = FOUR, STRIDE = 8 };

/* The result of a launch, in host memory. */
struct report {
    double norm_b, tolerance; /* of the first launch */
    double start, enough;     /* norms: of the first residual; of a residual that ends the solve */
    double rr, nu, mu;        /* of the last step */
    double residual;          /* norm of the true residual at the end */
    long long iterations;     /* in total */
    int stop;
};

/* A factor of M^-1 (cg_4_persistent_factor.cuh). cells: in the shared memory of a block. */
struct factor {
    const int32_t *row_ptr, *col;
    const float *val;
    int cells;
};

template <typename T, typename Stored> struct system {
    const int32_t *row_ptr, *col;
    const Stored *val; /* NULL: a pattern */
    int rows, rows_each, cells;
    const T *b;
    T *x, *start_x;
    T *r, *p, *s;      /* kept between launches */
    pair<T> *pairs;    /* 2 * rows */
    const T *scale;    /* M^-1, a diagonal; NULL: none */
    factor g, gt;      /* M^-1 = G' G; unused by the kernel below */
    T *parts;          /* 2 * blocks * STRIDE */
    T *history;        /* r'r after iteration i of this launch; NULL: not requested */
    unsigned *arrived; /* 0 before the launch */
    report *told;
    double rtol, atol, roundoff, enough; /* enough: not for the first launch */
    long long iterations, most;          /* done before the launch; the limit */
    int steps;                           /* the most steps of this launch */
    bool begins, from_zero;              /* the first launch; x starts as 0 */
};

/* The sum over 2 * from lanes, in each of them. */
template <typename T> __device__ T sum_lanes(T v, int from)
{
#pragma unroll
    for (int distance = from; distance > 0; distance /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, distance);
    return v;
}

/* Four sums over the warp: lane 8 k gets the sum of v[k]. Each exchange halves the values of a
 * lane. */
template <typename T> __device__ T sum_four(const T *v)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const bool late = (lane & 16) != 0, odd = (lane & 8) != 0;
    const T first = (late ? v[2] : v[0]) + __shfl_xor_sync(0xffffffffu, late ? v[0] : v[2], 16);
    const T second = (late ? v[3] : v[1]) + __shfl_xor_sync(0xffffffffu, late ? v[1] : v[3], 16);
    return sum_lanes((odd ? second : first) + __shfl_xor_sync(0xffffffffu, odd ? first : second, 8), 4);
}

/* Clusters: all code that is specific to them. */
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

/* For all threads of all blocks. */
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

/* Loads from an address in the cluster. */
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

/* The clerk's sum over the block's warps. Lane l gets sum number l / 8, and all lanes get RR. */
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

/* The clerk stores the block's sums and waits for all blocks. all: the value of the counter when
 * all have arrived. */
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

/* The sums of all blocks, at most MOST, in the same lanes. */
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

/* In a cluster, each warp stores its own sums in every block: parts[number of the sum][warp of the
 * cluster]. */
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

/* The purpose of a round.
 * - START_X: exchange x, for the first residual.
 * - START_R: exchange z, for the first direction; add up b'b.
 * - STEP: a step.
 * - END_X: exchange x, for the true residual.
 * - END: add up its square. */
enum turn { START_X, START_R, STEP, END_X, END };

/* The shared memory of a block besides its pairs and its part of the matrix. The arrays are
 * separate variables so that unused ones take no memory. */
template <typename T, int WARPS_, int COUNT> struct block_memory {
    int *widths;                    /* cells of each slice */
    T (*of_warps)[STRIDE], *totals; /* the sums of each warp; of all blocks */
    /* the sums of each warp of the cluster: two sets used in turn */
    T (*in_cluster)[COUNT][CLUSTER * WARPS_];
};

/* The cells of a thread's rows, and the rows. They are separate variables because the compiler keeps
 * indexed arrays in memory until it has unrolled the loops. */
template <int ROWS> struct own_cells {
    int begin[ROWS], length[ROWS]; /* the clerk has no rows */
};

template <typename T, int ROWS> struct own_rows : own_cells<ROWS> {
    T x[ROWS], r[ROWS], p[ROWS], s[ROWS], scale[ROWS];
};

/* The work of one thread, with its registers. BLOCK threads and the clerk, ROWS rows a thread.
 * SCALED: with a diagonal M. TOGETHER: a cluster. The kernel below calls the phases in order. */
template <typename T, typename Stored, int BLOCK, int ROWS, bool SCALED, bool TOGETHER> struct worker {
    static constexpr bool IN_CLUSTER = TOGETHER && HAVE_CLUSTERS;
    static constexpr int WARPS_ = BLOCK / warp_lanes, COUNT = SCALED ? RR + 1 : FOUR;
    static constexpr int UNROLL = 8 / ROWS; /* limited by registers */
    using memory = block_memory<T, WARPS_, COUNT>;

    const system<T, Stored> &a;
    memory shared;
    pair<T> *own; /* the block's pairs, then its cells of the matrix */
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

    /* The address from which a cell gathers: in a cluster an address of its shared memory;
     * otherwise a row of the block, or the complement of a row of the matrix. */
    __device__ int32_t column_of(int32_t c) const
    {
        if (IN_CLUSTER)
            return (int32_t)cluster_address(own + c % a.rows_each, c / a.rows_each);
        return c >= first && c < behind ? c - first : ~c;
    }

    /* Copies the block's rows of a matrix into shared memory, to cells of these columns and values. */
    template <typename V>
    __device__ void load_cells(const int32_t *row_ptr, const int32_t *from_col, const V *from_val, int32_t *to_col,
                               V *to_val, own_cells<ROWS> &cells)
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int row = row_of(k);
            cells.begin[k] = row < behind ? row_ptr[row] : 0;
            cells.length[k] = row < behind ? row_ptr[row + 1] - cells.begin[k] : 0;
            int width = cells.length[k];
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
            for (int j = 0; j < cells.length[k]; j++) {
                const int32_t c = from_col[cells.begin[k] + j];
                to_val[at + j * warp_lanes] = from_val != nullptr ? from_val[cells.begin[k] + j] : V(1);
                to_col[at + j * warp_lanes] = column_of(c);
            }
            cells.begin[k] = at;
        }
    }

    __device__ void load_matrix()
    {
        load_cells(a.row_ptr, a.col, a.val, col, val, rows);
    }

    /* The first launch starts from x and b, a later one from the state of the launch before. */
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
            rows.scale[k] = SCALED && there && a.scale != nullptr ? a.scale[row] : T(1);
            if (there && a.begins)
                a.start_x[row] = rows.x[k];
        }
    }

    /* The pairs that the block's own rows gather in this round, and those that rows of other blocks
     * gather. */
    __device__ pair<T> *own_pairs(int set) const
    {
        return own + (TOGETHER ? set * a.rows_each : 0);
    }

    __device__ pair<T> *all_pairs(int set) const
    {
        return a.pairs + (int64_t)set * a.rows;
    }

    /* Stores the pairs of the thread's rows. Returns the warp's sums, in the lanes of sum_four. */
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

    /* Passes a barrier, after which all pairs are stored. */
    __device__ void meet()
    {
        if (IN_CLUSTER) {
            meet_cluster();
            return;
        }
        __syncthreads();
        if (!in_grid)
            return;
        if (is_clerk) {
            barriers += gridDim.x;
            if (lane == 0) {
                arrive(a.arrived);
                await_all(a.arrived, barriers);
            }
        }
        __syncthreads();
    }

    /* Stores the warp's sums and passes the round's barrier, after which all pairs are stored. The
     * clerk then adds the sums of all blocks while the other warps continue. */
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

    /* w = A z and u = A t (or w = A x) for the thread's rows. */
    __device__ void multiply(int set, T (&w)[ROWS], T (&u)[ROWS]) const
    {
        multiply_cells(set, col, val, rows, w, u);
    }

    /* The same for a matrix of these cells. The gathers of all rows are in flight together. */
    template <typename V>
    __device__ void multiply_cells(int set, const int32_t *its_col, const V *its_val, const own_cells<ROWS> &cells,
                                   T (&w)[ROWS], T (&u)[ROWS]) const
    {
        const uint32_t its_set = (uint32_t)(set * a.rows_each * (int)sizeof(pair<T>));
        const pair<T> *const pairs = all_pairs(set), *const mine = own_pairs(set);
        int longest = 0;
#pragma unroll
        for (int k = 0; k < ROWS; k++)
            longest = now != END && cells.length[k] > longest ? cells.length[k] : longest;
        for (int j = 0; j < longest; j += UNROLL) {
            pair<T> gathered[ROWS][UNROLL] = {};
#pragma unroll
            for (int k = 0; k < ROWS; k++)
#pragma unroll
                for (int i = 0; i < UNROLL; i++)
                    if (j + i < cells.length[k]) {
                        const int32_t c = its_col[cells.begin[k] + (j + i) * warp_lanes];
                        if (IN_CLUSTER)
                            gathered[k][i] = load_from_cluster((uint32_t)c + its_set, pair<T>());
                        else
                            gathered[k][i] = c >= 0 ? mine[c] : load_others(pairs + ~c);
                    }
#pragma unroll
            for (int k = 0; k < ROWS; k++)
#pragma unroll
                for (int i = 0; i < UNROLL; i++)
                    if (j + i < cells.length[k]) {
                        const T v = T(its_val[cells.begin[k] + (j + i) * warp_lanes]);
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

    /* Sets the tolerance and the first direction. Returns false if b is 0. */
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

    /* Reads the sums of the step and sets stop when no step follows. */
    __device__ void look()
    {
        nu = shared.totals[NU];
        mu = shared.totals[MU];
        rr = SCALED ? shared.totals[RR] : nu;
        if (a.begins && step == 0) {
            start = sqrt((double)rr);
            enough = fmax(tolerance, a.roundoff * start);
            /* square roots are taken below this only */
            enough_squared = fmax(1.01 * enough * enough, 1e-280);
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

    /* r = b, for the true residual. */
    __device__ void load_b()
    {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int row = row_of(k);
            rows.r[k] = row < behind ? a.b[row] : T();
        }
    }

    /* The beta of a step. */
    __device__ T beta_of(T alpha, T delta, T gamma) const
    {
        const T per_nu = T(1) / nu;
        const T ahead = nu + alpha * (alpha * gamma - (delta + delta)), square = ahead > 0 ? ahead : T();
        return isfinite(per_nu) ? square * per_nu : square / nu;
    }

    /* One step of the recurrence at the top of this file. */
    __device__ void take_step(T delta, T gamma, const T (&w)[ROWS], const T (&u)[ROWS])
    {
        const T alpha = nu / mu, beta = beta_of(alpha, delta, gamma);
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

    /* Stores the state for the next launch and for the host. */
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
    SPMV_DYNAMIC_SHARED(dynamic_shared);
    constexpr int WARPS_ = its_worker::WARPS_, COUNT = its_worker::COUNT;
    __shared__ int widths[WARPS_ * ROWS];
    __shared__ T of_warps[WARPS_][STRIDE], totals[STRIDE];
    __shared__ T in_cluster[2][COUNT][CLUSTER * WARPS_];
    own_rows<T, ROWS> rows;
    its_worker me(a, {widths, of_warps, totals, in_cluster}, dynamic_shared, rows);
    me.load_matrix();
    if (its_worker::IN_CLUSTER)
        meet_cluster(); /* no block may write into the memory of one that has not started */
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
        meet_cluster(); /* no block may end while others read its memory */
    me.store_vectors();
    if (me.tells)
        me.tell();
}

} // namespace cg_persistent

#endif
