/* GMRES and BiCGStab on CUDA for small systems: many steps in one kernel.
 *
 * Idea:       the blocks stay resident. Each has some rows of A and the same elements of all
 *             vectors, in shared memory as far as they fit. Only the vector that rows of other
 *             blocks gather, and the blocks' parts of the sums, travel through memory, with one
 *             barrier of the grid for each. Every block adds up the parts of all, in the same
 *             order, so all compute the same coefficients.
 *
 *             gmres, 3 barriers a step:
 *                 w = A p;  the sums of V'w, w'w             | barrier
 *                 w -= V V'w;  the sums of V'w, w'w          | barrier
 *                 w -= V V'w;  v = w / |w|;  p = M^-1 v      | barrier
 *             A block without rows, the clerk, rotates the new column of the Hessenberg matrix
 *             while the others go on. They learn two barriers later that the run has ended; what
 *             they computed since is not used.
 *
 *             bicgstab, 3 barriers a step. A is multiplied with vectors that are known before the
 *             coefficient, so the sum and the gathered vector need one barrier together:
 *                 v = A z + beta A t;  p = r + beta q;  (r0, v)                       | barrier
 *                 t' = A z - alpha A M^-1 v;  s = r - alpha v;  (t', s), (t', t')     | barrier
 *                 x += ...;  r = s - omega t';  q = p - omega v;  (r0, r), (r, r)     | barrier
 *             with z = M^-1 r, t = M^-1 q. Each product is a new one, so errors do not grow from
 *             step to step.
 * Launches:   gmres: one a cycle; bicgstab: one for MOST_STEPS steps.
 * Wins when:  the time of a step is that of launches, not of bytes. `fits` has the limits.
 * Bits:       the number of blocks, the rows of a block and the order of all sums depend on n, the
 *             mean length of the rows, and on whether the method runs here.
 * Source:     of merging a sum with the exchange for the next product: S. Cools, W. Vanroose, "The
 *             communication-hiding pipelined BiCGStab method", Parallel Computing 65, 2017.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <type_traits>

#include "block.cuh"
#include "grid_barrier.cuh"
#include "krylov_basis.cuh"
#include "spmv_types.cuh"

extern "C" {
#include "krylov_general.h"
#include "precond_internal.h"
}

namespace
{

using namespace grid_barrier;
using namespace krylov_basis;

/* ROWS_LEAST: fewer rows a block would need more blocks, which slow the barriers down. MOST_BLOCKS:
 * with rows; the clerk is one more, all multiprocessors of an H100. */
enum { BLOCK = 512, WARPS = BLOCK / warp_lanes, TILE = BLOCK, BATCH = 16, ROWS_LEAST = 256, MOST_BLOCKS = 131 };

/* Steps of a launch of bicgstab; the state notes the residuals of one launch. */
enum { MOST_STEPS = 128 };
static_assert((int)KRYLOV_RING > (int)KRYLOV_MOST_BASIS && (int)KRYLOV_RING > (int)MOST_STEPS,
              "one launch fits the ring");

/* Static shared memory, and what the system keeps of each block's. */
enum { STATIC_BYTES = 6144 };

/* Above, kernels of one pass each are faster. */
enum { GMRES_MOST_ROWS = 1100000, BICGSTAB_MOST_ROWS = 250000 };

/* Longer rows would be the work of one warp for too long. */
enum { LONGEST_ROW = 2048 };

/* The matrix, and how rows are dealt: rows_each a block, `lanes` lanes a row, a power of two. cells:
 * entries for which a block has shared memory. */
template <typename T, typename Stored> struct dealt_rows {
    const int32_t *row_ptr, *col;
    const Stored *val; /* NULL: a pattern */
    const T *scale;    /* M^-1, a diagonal; NULL: none */
    int rows, rows_each, lanes, cells;
};

/* The block's rows of A in shared memory. */
template <typename Stored> struct near_rows {
    Stored *val;
    int32_t *begin, *col; /* begin: rows_each + 1 */

    static constexpr int cell_bytes = (int)(sizeof(Stored) + sizeof(int32_t));
    static __host__ __device__ int bytes(int rows_each, int cells)
    {
        return (cells * cell_bytes + (rows_each + 1) * (int)sizeof(int32_t) + 15) / 16 * 16;
    }
    __device__ near_rows(unsigned char *memory, int cells)
        : val((Stored *)memory), begin((int32_t *)(val + cells) + cells), col((int32_t *)(val + cells))
    {
    }
};

struct meeting_place {
    krylov_state *state;
    double *parts;     /* two sets, used in turn: sum d of block b at d * blocks + b */
    int64_t set;       /* elements */
    unsigned *arrived; /* 0 before the launch */
};

/* The block's own rows. The clerk has none. */
struct own_rows {
    int first, count;
};
template <typename T, typename Stored> __device__ own_rows rows_of_block(const dealt_rows<T, Stored> &a)
{
    const int first = (int)blockIdx.x * a.rows_each, left = a.rows - first;
    return {first, left < 0 ? 0 : left < a.rows_each ? left : a.rows_each};
}

/* The barrier, in two halves. For all threads of all blocks; *passed counts. */
__device__ void arrive_block(const meeting_place &place)
{
    __syncthreads();
    if (gridDim.x > 1 && threadIdx.x == 0)
        arrive(place.arrived);
}
__device__ void await_blocks(const meeting_place &place, unsigned *passed)
{
    *passed += 1;
    if (gridDim.x > 1 && threadIdx.x == 0)
        await_all(place.arrived, *passed * gridDim.x);
    __syncthreads();
}

/* Copies the block's rows to shared memory. False: there is too little. For all threads. */
template <typename T, typename Stored>
__device__ bool copy_rows(const dealt_rows<T, Stored> &a, own_rows own, const near_rows<Stored> &near)
{
    const int begin = own.count > 0 ? a.row_ptr[own.first] : 0;
    const int count = own.count > 0 ? a.row_ptr[own.first + own.count] - begin : 0;
    if (count > a.cells)
        return false;
    for (int r = (int)threadIdx.x; r <= own.count; r += BLOCK)
        near.begin[r] = own.count > 0 ? a.row_ptr[own.first + r] - begin : 0;
    for (int k = (int)threadIdx.x; k < count; k += BLOCK) {
        near.col[k] = a.col[begin + k];
        near.val[k] = a.val != nullptr ? a.val[begin + k] : Stored(1);
    }
    __syncthreads();
    return true;
}

/* Calls take(row of the block, sum) with sum = that row of A times the vector `from`, of elements or
 * pairs. */
template <typename T, typename Stored, typename E, typename Take>
__device__ void multiply_with(const int32_t *begin, const int32_t *col, const Stored *val, int lanes, int count,
                              const E *from, const Take &take)
{
    const int lane = (int)threadIdx.x % lanes, together = BLOCK / lanes;
    for (int base = 0; base < count; base += together) {
        const int r = base + (int)threadIdx.x / lanes;
        pair<T> sum = {};
        if (r < count) {
            const int end = begin[r + 1];
#pragma unroll 8
            for (int k = begin[r] + lane; k < end; k += lanes) {
                const E element = load_others(from + col[k]);
                const T value = val != nullptr ? T(val[k]) : T(1);
                if constexpr (std::is_same_v<E, T>) {
                    sum.z += value * element;
                } else {
                    sum.z += value * element.z;
                    sum.t += value * element.t;
                }
            }
        }
        for (int mask = lanes / 2; mask > 0; mask /= 2) {
            sum.z += __shfl_xor_sync(0xffffffffu, sum.z, mask);
            if constexpr (!std::is_same_v<E, T>)
                sum.t += __shfl_xor_sync(0xffffffffu, sum.t, mask);
        }
        if (r < count && lane == 0)
            take(r, sum);
    }
}

template <typename T, typename Stored, typename E, typename Take>
__device__ void multiply_rows(const dealt_rows<T, Stored> &a, const near_rows<Stored> &near, bool is_near, own_rows own,
                              const E *from, const Take &take)
{
    if (is_near)
        multiply_with<T>(near.begin, near.col, (const Stored *)near.val, a.lanes, own.count, from, take);
    else
        multiply_with<T>(a.row_ptr + own.first, a.col, a.val, a.lanes, own.count, from, take);
}

/* Adds the parts of all blocks: totals[d], d < sums, in shared memory. All loads of a warp are in
 * flight together. */
__device__ void add_parts(const double *parts, int sums, double *totals)
{
    enum { AT_ONCE = 4, CHUNKS = (MOST_BLOCKS + 1 + warp_lanes - 1) / warp_lanes };
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes, blocks = (int)gridDim.x;
    for (int first = warp; first < sums; first += WARPS * AT_ONCE) {
        double part[AT_ONCE][CHUNKS] = {};
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (first + k * WARPS < sums) {
                const double *const its = parts + (first + k * WARPS) * blocks + lane;
#pragma unroll
                for (int c = 0; c < CHUNKS; c++)
                    if (c * warp_lanes + lane < blocks)
                        part[k][c] = load_others(its + c * warp_lanes);
            }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (first + k * WARPS < sums) {
                double sum = part[k][0];
#pragma unroll
                for (int c = 1; c < CHUNKS; c++)
                    sum += part[k][c];
                sum = sum_of_warp(sum);
                if (lane == 0)
                    totals[first + k * WARPS] = sum;
            }
    }
    __syncthreads();
}

/* ------------------------------------------------------------- gmres */

template <typename T, typename Stored> struct gmres_run {
    dealt_rows<T, Stored> a;
    meeting_place place;
    T *p, *basis, *directions; /* directions: M^-1 of the basis; NULL without M */
    int64_t stride;
    int most, kept; /* steps of a cycle; basis vectors in shared memory */
};

/* The dynamic shared memory. */
template <typename T> struct gmres_memory {
    double *first, *second, *sums; /* the sums of the two passes; the block's part of the present ones */
    krylov_scalar *h, *sines;
    double *cosines;
    T *w, *kept;
    unsigned char *matrix;

    static __host__ __device__ int bytes(int most, int rows_each, int kept)
    {
        return (most + 2) * (int)(4 * sizeof(double) + 2 * sizeof(krylov_scalar)) +
               (kept + 1) * rows_each * (int)sizeof(T);
    }
    /* The matrix lies between w and the basis. */
    __device__ gmres_memory(unsigned char *memory, int most, int rows_each, int matrix_bytes)
    {
        first = (double *)memory;
        second = first + most + 2;
        sums = second + most + 2;
        h = (krylov_scalar *)(sums + most + 2);
        sines = h + most + 2;
        cosines = (double *)(sines + most + 2);
        w = (T *)(cosines + most + 2);
        matrix = (unsigned char *)(w + rows_each);
        kept = (T *)(matrix + matrix_bytes);
    }
};

template <typename T, typename Stored> __global__ void __launch_bounds__(BLOCK) gmres_steps(gmres_run<T, Stored> g)
{
    SPMV_DYNAMIC_SHARED(dynamic_shared);
    __shared__ double norm;
    const int thread = (int)threadIdx.x;
    const int matrix_bytes = near_rows<Stored>::bytes(g.a.rows_each, g.a.cells);
    const gmres_memory<T> shared(dynamic_shared, g.most, g.a.rows_each, matrix_bytes);
    const near_rows<Stored> near(shared.matrix, g.a.cells);
    krylov_state *const state = g.place.state;
    const bool is_clerk = blockIdx.x == gridDim.x - 1; /* a single block has rows and is the clerk */
    const own_rows own = rows_of_block(g.a);
    unsigned passed = 0;
    if (load_others(&state->ending) != 0)
        return;
    const bool is_near = copy_rows(g.a, own, near);
    /* Adds v_i'w, i < vectors, and w'w over the rows from `begin` on, less than `end`, to the sums. A
     * warp has two at a time. */
    const auto project = [&](int vectors, int begin, int end) {
        const int warp = thread / warp_lanes;
        for (int i = warp; i <= vectors; i += 2 * WARPS) {
            const int other = i + WARPS;
            const auto kept = [&](int k) { return (k < vectors ? shared.kept + k * g.a.rows_each : shared.w) + begin; };
            const auto any = [&](int k) -> const T * {
                return k < vectors && k >= g.kept ? g.basis + k * g.stride + own.first + begin : kept(k);
            };
            double sum[2];
            if (vectors <= g.kept || other < g.kept)
                multiply_two(shared.w + begin, end - begin, kept(i), kept(other), sum);
            else
                multiply_two(shared.w + begin, end - begin, any(i), any(other), sum);
            if (thread % warp_lanes == 0) {
                shared.sums[i] = (begin == 0 ? 0 : shared.sums[i]) + sum[0];
                if (other <= vectors)
                    shared.sums[other] = (begin == 0 ? 0 : shared.sums[other]) + sum[1];
            }
        }
    };
    /* Stores the block's part of each sum. */
    const auto hand_in = [&](int sums, double *parts) {
        __syncthreads();
        for (int d = thread; d < sums; d += BLOCK)
            parts[d * gridDim.x + blockIdx.x] = own.count > 0 ? shared.sums[d] : 0;
    };
    /* w - the sum over i < vectors of by[i] v_i, for a row of the block */
    const auto rest = [&](int r, int vectors, const double *by) {
        T sum[CHAINS] = {shared.w[r]};
        const int near_vectors = vectors < g.kept ? vectors : g.kept;
        const auto nothing = [](int, T) {};
        subtract_vectors<BATCH>(sum, 0, near_vectors, by, shared.kept + r, g.a.rows_each, nothing);
        subtract_vectors<BATCH>(sum, near_vectors, vectors, by, g.basis + own.first + r, g.stride, nothing);
        return sum_chains(sum);
    };
    /* A new basis vector's element. */
    const auto keep = [&](int i, int r, T value) {
        const int row = own.first + r;
        const T direction = g.a.scale != nullptr ? g.a.scale[row] * value : value;
        if (i < g.kept)
            shared.kept[(int64_t)i * g.a.rows_each + r] = value;
        g.basis[i * g.stride + row] = value;
        if (g.directions != nullptr)
            g.directions[i * g.stride + row] = direction;
        g.p[row] = direction;
    };

    for (int r = thread; r < own.count; r += BLOCK)
        keep(0, r, g.basis[own.first + r]);
    arrive_block(g.place);
    await_blocks(g.place, &passed);
    /* The clerk's: the new column of step j. */
    const auto rotate = [&](int j) {
        for (int i = thread; i <= j; i += BLOCK)
            shared.h[i] = scalar_of(shared.first[i] + shared.second[i]);
        __syncthreads();
        if (thread == 0) {
            state->before = sqrt(shared.first[j + 1]);
            gmres_column(state, norm, shared.h, shared.cosines, shared.sines);
            shared.cosines[j] = state->cosines[j];
            shared.sines[j] = state->sines[j];
        }
    };
    for (int j = 0;; j++) {
        multiply_rows(g.a, near, is_near, own, (const T *)g.p, [&](int r, pair<T> sum) { shared.w[r] = sum.z; });
        __syncthreads();
        project(j + 1, 0, own.count);
        hand_in(j + 2, g.place.parts);
        arrive_block(g.place);
        if (is_clerk && j > 0)
            rotate(j - 1);
        await_blocks(g.place, &passed);
        add_parts(g.place.parts, j + 2, shared.first);
        for (int begin = 0; begin < own.count; begin += TILE) { /* its part of the basis stays in the caches */
            const int end = begin + TILE < own.count ? begin + TILE : own.count;
            for (int r = begin + thread; r < end; r += BLOCK)
                shared.w[r] = rest(r, j + 1, shared.first);
            __syncthreads();
            project(j + 1, begin, end);
        }
        hand_in(j + 2, g.place.parts + g.place.set);
        arrive_block(g.place);
        await_blocks(g.place, &passed);
        if (load_others(&state->ending) != 0) /* since the step before */
            break;
        add_parts(g.place.parts + g.place.set, j + 2, shared.second);
        if (thread < warp_lanes) {
            double projected = 0;
            for (int i = thread; i <= j; i += warp_lanes)
                projected += shared.second[i] * shared.second[i];
            projected = sum_of_warp(projected);
            if (thread == 0)
                norm = gmres_norm(shared.second[j + 1], projected);
        }
        __syncthreads();
        if (j + 1 == g.most) {
            if (is_clerk)
                rotate(j);
            break;
        }
        const double by = norm > 0 ? 1 / norm : 0;
        for (int r = thread; r < own.count; r += BLOCK)
            keep(j + 1, r, (T)by * rest(r, j + 1, shared.second));
        arrive_block(g.place);
        await_blocks(g.place, &passed);
    }
}

/* ------------------------------------------------------------- bicgstab */

template <typename T, typename Stored> struct bicgstab_run {
    dealt_rows<T, Stored> a;
    meeting_place place;
    T *x, *r, *q; /* q: p - omega v */
    const T *r0;
    pair<T> *pairs; /* z, t */
    T *v;           /* M^-1 v */
    bool begins;    /* the first launch of the run: q is not set */
};

/* Two sums over the block, in parts. */
__device__ void store_parts(double one, double two, double *parts)
{
    __shared__ double of_warps[2][WARPS];
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    one = sum_of_warp(one);
    two = sum_of_warp(two);
    if (lane == 0) {
        of_warps[0][warp] = one;
        of_warps[1][warp] = two;
    }
    __syncthreads();
    if (warp == 0) {
        one = sum_of_warp(lane < WARPS ? of_warps[0][lane] : 0);
        two = sum_of_warp(lane < WARPS ? of_warps[1][lane] : 0);
        if (lane == 0) {
            parts[blockIdx.x] = one;
            parts[gridDim.x + blockIdx.x] = two;
        }
    }
}

template <typename T, typename Stored>
__global__ void __launch_bounds__(BLOCK) bicgstab_steps(bicgstab_run<T, Stored> g)
{
    SPMV_DYNAMIC_SHARED(dynamic_shared);
    __shared__ double totals[2];
    /* Each block has a state; all are equal. */
    __shared__ krylov_state state;
    enum { WORDS = sizeof(krylov_state) / sizeof(int) };
    static_assert(sizeof(krylov_state) <= STATIC_BYTES / 2, "room for the state");
    const int thread = (int)threadIdx.x;
    for (int i = thread; i < WORDS; i += BLOCK)
        ((int *)&state)[i] = load_others((const int *)g.place.state + i);
    __syncthreads();
    if (state.ending != 0)
        return;
    const own_rows own = rows_of_block(g.a);
    T *const x = (T *)dynamic_shared, *const r0 = x + g.a.rows_each, *const r = r0 + g.a.rows_each;
    T *const p = r + g.a.rows_each, *const v = p + g.a.rows_each, *const t = v + g.a.rows_each;
    const near_rows<Stored> near((unsigned char *)(t + g.a.rows_each), g.a.cells);
    const bool is_near = copy_rows(g.a, own, near);
    const T *const scale = g.a.scale != nullptr ? g.a.scale + own.first : nullptr;
    unsigned passed = 0;
    int sets = 0;
    const auto preconditioned = [&](int i, T value) { return scale != nullptr ? scale[i] * value : value; };
    /* Adds the sums up over all blocks, and computes coefficients. False: the run has ended. */
    const auto finish = [&](double one, double two, krylov_finish which) {
        double *const parts = g.place.parts + (sets++ % 2) * g.place.set;
        store_parts(one, two, parts);
        arrive_block(g.place);
        await_blocks(g.place, &passed);
        add_parts(parts, 2, totals);
        if (thread == 0) {
            const krylov_scalar sums[KRYLOV_MOST_SUMS] = {scalar_of(totals[0]), scalar_of(totals[1])};
            krylov_finish_scalars(which, &state, sums);
        }
        __syncthreads();
        return state.ending == 0;
    };
    const auto store_pair = [&](int i) { g.pairs[own.first + i] = {preconditioned(i, r[i]), preconditioned(i, p[i])}; };

    for (int i = thread; i < own.count; i += BLOCK) {
        x[i] = g.x[own.first + i];
        r0[i] = g.r0[own.first + i];
        r[i] = g.r[own.first + i];
        p[i] = g.begins ? T() : g.q[own.first + i];
        store_pair(i);
    }
    arrive_block(g.place);
    await_blocks(g.place, &passed);
    for (int step = 0; step < MOST_STEPS; step++) {
        const T beta = (T)state.c[C_BETA].re; /* 0 in the first step */
        multiply_rows(g.a, near, is_near, own, (const pair<T> *)g.pairs, [&](int i, pair<T> sum) {
            t[i] = sum.z;
            v[i] = sum.z + beta * sum.t;
        });
        __syncthreads();
        double one = 0, two = 0;
        for (int i = thread; i < own.count; i += BLOCK) {
            p[i] = r[i] + beta * p[i];
            g.v[own.first + i] = preconditioned(i, v[i]);
            one += (double)r0[i] * (double)v[i];
        }
        if (!finish(one, 0, BICGSTAB_ALPHA))
            break;
        const T alpha = (T)state.alpha.re;
        multiply_rows(g.a, near, is_near, own, (const T *)g.v, [&](int i, pair<T> sum) { t[i] -= alpha * sum.z; });
        __syncthreads();
        one = 0;
        for (int i = thread; i < own.count; i += BLOCK) {
            const T s = r[i] - alpha * v[i];
            r[i] = s;
            one += (double)t[i] * (double)s;
            two += (double)t[i] * (double)t[i];
        }
        if (!finish(one, two, BICGSTAB_OMEGA))
            break;
        const T omega = (T)state.omega.re;
        one = two = 0;
        for (int i = thread; i < own.count; i += BLOCK) {
            x[i] += preconditioned(i, alpha * p[i] + omega * r[i]);
            r[i] -= omega * t[i];
            p[i] -= omega * v[i];
            store_pair(i);
            one += (double)r0[i] * (double)r[i];
            two += (double)r[i] * (double)r[i];
        }
        if (!finish(one, two, BICGSTAB_STEP))
            break;
    }
    for (int i = thread; i < own.count; i += BLOCK) {
        g.x[own.first + i] = x[i];
        g.r[own.first + i] = r[i];
        g.q[own.first + i] = p[i];
    }
    if (blockIdx.x == 0)
        for (int i = thread; i < WORDS; i += BLOCK)
            ((int *)g.place.state)[i] = ((const int *)&state)[i];
}

/* ------------------------------------------------------------- the host */

/* How a solve is distributed. cells, kept: of dealt_rows and gmres_run. */
struct shape {
    int blocks, rows_each, lanes, cells, kept, shared_bytes;
};

/* Lanes a row: about as many as the mean row has entries, so that a row is one or two loads of each. */
int lanes_for(int64_t rows, int64_t nnz)
{
    int lanes = 1;
    while (lanes < warp_lanes && 8 * lanes * rows < nnz)
        lanes *= 2;
    return lanes;
}

bool is_gmres(const struct general *g)
{
    return g->method == &general_gmres;
}

/* Whether the system fits: all vectors of bicgstab, and w of gmres. The matrix comes next, then as
 * many basis vectors as there is room for. */
bool fits(const struct general *g, int shared_most, int most_blocks, shape *how)
{
    enum { BICGSTAB_VECTORS = 6 };
    const spmv_csr *const a = &g->s.plan->a;
    const int64_t n = g->s.n, size = (int64_t)spmv_type_size(g->s.type), line = warp_lanes;
    const int64_t spread = (n - 1) / MOST_BLOCKS + 1;
    const int64_t each = ((spread > ROWS_LEAST ? spread : (int64_t)ROWS_LEAST) + line - 1) / line * line;
    const int64_t blocks = (n - 1) / each + 1, all = blocks > 1 && is_gmres(g) ? blocks + 1 : blocks;
    if (all > most_blocks || n > (is_gmres(g) ? GMRES_MOST_ROWS : BICGSTAB_MOST_ROWS))
        return false;
    const auto matrix_bytes = [&](int64_t cells) {
        return (int64_t)(a->type == SPMV_F32 ? near_rows<float>::bytes((int)each, (int)cells)
                                             : near_rows<double>::bytes((int)each, (int)cells));
    };
    const int64_t least = is_gmres(g) ? gmres_memory<double>::bytes(g->restart, 0, 0) + each * size
                                      : (int64_t)BICGSTAB_VECTORS * each * size;
    int64_t room = shared_most - STATIC_BYTES - least;
    /* a quarter more than the mean of the blocks, in less than half the room */
    const int64_t mean = a->nnz / blocks, cells = mean + mean / 4 + line;
    const bool near = cells < room / near_rows<float>::cell_bytes && 2 * matrix_bytes(cells) <= room;
    *how = {(int)all, (int)each, lanes_for(n, a->nnz), near ? (int)cells : 0, 0, 0};
    room -= matrix_bytes(how->cells);
    if (room < 0)
        return false;
    if (is_gmres(g))
        how->kept = (int)(room / (each * size) < g->restart ? room / (each * size) : (int64_t)g->restart);
    how->shared_bytes = (int)(least + matrix_bytes(how->cells) + how->kept * each * size);
    return true;
}

/* M^-1, or NULL */
const void *scale_of(const struct general *g)
{
    return g->s.precond != nullptr ? precond_inverse_diagonal(g->s.precond) : nullptr;
}

} // namespace

struct krylov_persistent {
    shape how;
    void *memory; /* on the device: the counter, the pairs of bicgstab, the parts of sums */
    int64_t pairs_at, parts_at, set;
};

namespace
{

template <typename T, typename Stored> dealt_rows<T, Stored> deal_rows(const struct general *g)
{
    const spmv_csr *const a = &g->s.plan->a;
    const shape &how = g->persistent->how;
    return {(const int32_t *)a->row_ptr,
            a->col,
            (const Stored *)a->val,
            (const T *)scale_of(g),
            (int)g->s.n,
            how.rows_each,
            how.lanes,
            how.cells};
}

template <auto Kernel, typename Run> spmv_status start(struct general *g, const char *name, const Run &run, int shared)
{
    static uint64_t known;
    const shape &how = g->persistent->how;
    const launch_shape as = {how.blocks, BLOCK, how.shared_bytes, false, how.blocks > 1};
    spmv_status st = once_a_device(g->s.ctx, name, &known, (const void *)Kernel,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (st == SPMV_OK && how.blocks > 1)
        st = cuda_check(
            g->s.ctx, cudaMemsetAsync(run.place.arrived, 0, sizeof *run.place.arrived, (cudaStream_t)g->s.ctx->stream),
            "a counter");
    return st == SPMV_OK ? launch_shaped(g->s.ctx, name, as, Kernel, run) : st;
}

template <typename T, typename Stored> spmv_status run_typed(struct general *g, bool begins)
{
    const krylov_persistent *const own = g->persistent;
    char *const memory = (char *)own->memory;
    const meeting_place place = {g->v.state, (double *)(memory + own->parts_at), own->set, (unsigned *)memory};
    int shared = 0, blocks = 0;
    const spmv_status st = limits(g->s.ctx, &shared, &blocks);
    if (st != SPMV_OK)
        return st;
    struct krylov_persistent_vectors at;
    g->method->persistent(g, &at);
    if (is_gmres(g)) {
        gmres_run<T, Stored> run = {};
        run.a = deal_rows<T, Stored>(g);
        run.place = place;
        run.p = (T *)at.p;
        run.basis = (T *)at.basis;
        run.directions = (T *)at.directions;
        run.stride = g->stride;
        run.most = g->restart;
        run.kept = own->how.kept;
        return start<gmres_steps<T, Stored>>(g, "gmres persistent", run, shared - STATIC_BYTES);
    }
    bicgstab_run<T, Stored> run = {};
    run.a = deal_rows<T, Stored>(g);
    run.place = place;
    run.x = (T *)g->s.x;
    run.r = (T *)at.r;
    run.r0 = (const T *)at.r0;
    run.q = (T *)at.p;
    run.v = (T *)at.v;
    run.pairs = (pair<T> *)(memory + own->pairs_at);
    run.begins = begins;
    return start<bicgstab_steps<T, Stored>>(g, "bicgstab persistent", run, shared - STATIC_BYTES);
}

} // namespace

extern "C" spmv_status krylov_persistent_open(struct general *g, struct krylov_persistent **persistent)
{
    enum { HEAD = 256, ALIGNED = 256 };
    *persistent = nullptr;
    const spmv_plan *const plan = g->s.plan;
    const bool scaled = g->s.precond != nullptr;
    if (g->method->persistent == nullptr || type_is_complex(g->s.type) || (scaled && scale_of(g) == nullptr) ||
        g->s.on_iterate != nullptr || plan->longest_row < 0 || plan->longest_row > LONGEST_ROW ||
        plan->a.row_ptr_bits != 32)
        return SPMV_OK;
    shape how = {};
    int shared = 0, blocks = 0;
    spmv_status st = on_device(g->s.ctx, [&] { return limits(g->s.ctx, &shared, &blocks); });
    if (st != SPMV_OK || !fits(g, shared, blocks, &how))
        return st;
    krylov_persistent *own = nullptr;
    st = host_alloc(g->s.ctx, (int64_t)sizeof *own, "a solve", (void **)&own);
    if (st != SPMV_OK)
        return st;
    *own = {};
    *persistent = own;
    own->how = how;
    own->pairs_at = HEAD;
    const int64_t pairs = is_gmres(g) ? 0 : 2 * g->s.n * (int64_t)spmv_type_size(g->s.type);
    own->parts_at = HEAD + (pairs + ALIGNED - 1) / ALIGNED * ALIGNED;
    own->set = (int64_t)how.blocks * (is_gmres(g) ? g->restart + 1 : (int)KRYLOV_MOST_SUMS);
    return context_lend(g->s.ctx, own->parts_at + 2 * own->set * (int64_t)sizeof(double), &own->memory);
}

extern "C" void krylov_persistent_close(struct general *g, struct krylov_persistent *persistent)
{
    if (persistent != nullptr)
        context_take_back(g->s.ctx, persistent->memory);
    host_free(persistent);
}

extern "C" spmv_status krylov_persistent_steps(struct general *g, bool begins)
{
    return on_device(g->s.ctx, [&] {
        return with_types(g->s.plan, [&](auto sum, auto value) -> spmv_status {
            if constexpr (std::is_floating_point_v<decltype(sum)>)
                return run_typed<decltype(sum), decltype(value)>(g, begins);
            else
                return SPMV_ERROR_TYPE; /* krylov_persistent_open refuses complex plans */
        });
    });
}
