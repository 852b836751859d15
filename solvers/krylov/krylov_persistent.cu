/* GMRES, MINRES and BiCGStab on CUDA for small systems: many steps in one kernel.
 *
 * Idea:       the blocks stay resident. Each has some rows of A and the same elements of all
 *             vectors, in shared memory as far as they fit. Only the vector that rows of other
 *             blocks gather, and the blocks' parts of the sums, travel through memory, with one
 *             barrier of the grid for each. Every block adds up the parts of all, in the same
 *             order, so all compute the same coefficients.
 *
 *             gmres, 2 barriers a step. The second pass of Gram-Schmidt is that of the vector before:
 *                 w = A M^-1 u;  the sums of V'u, V'w, u'u, u'w, w'w                    | barrier
 *                 v = u - V V'u, to length 1;  w -= (V, v) (V, v)'w;  u = w, p = M^-1 u | barrier
 *             So u is the next vector of the basis, made orthogonal once. It is multiplied with A
 *             before its second pass. What that leaves of A V in w is removed by the first pass of w
 *             and, for the Hessenberg matrix H, by A V = V H (add_column).
 *             A block without rows, the clerk, adds the new column to H and rotates it while the
 *             others go on. They learn two barriers later that the run has ended; what they computed
 *             since is not used.
 *
 *             bicgstab, 3 barriers a step. A is multiplied with vectors that are known before the
 *             coefficient, so the sum and the gathered vector need one barrier together:
 *                 v = A z + beta A t;  p = r + beta q;  (r0, v)                       | barrier
 *                 t' = A z - alpha A M^-1 v;  s = r - alpha v;  (t', s), (t', t')     | barrier
 *                 x += ...;  r = s - omega t';  q = p - omega v;  (r0, r), (r, r)     | barrier
 *             with z = M^-1 r, t = M^-1 q. Each product is a new one, so errors do not grow from
 *             step to step.
 *
 *             minres, 2 barriers a step (the names of krylov_minres.c). A is multiplied with p = M^-1 v
 *             before its length gamma is known, and that product is scaled after the barrier:
 *                 q = A p;  (p, q);  with M the residual of the step before, r'r      | barrier
 *                 v_next = q / gamma - ...;  p = M^-1 v_next;  v_next'p               | barrier
 *                 w_next, x and r, in each block alone
 * Launches:   gmres: one a cycle; bicgstab and minres: one for MOST_STEPS steps.
 * Wins when:  the time of a step is that of launches, not of bytes. `fits` has the limits.
 * Bits:       the number of blocks, the rows of a block and the order of all sums depend on n, the
 *             mean length of the rows, and on whether the solver runs here.
 * Source:     gmres: D. Bielich, J. Langou, S. Thomas, K. Swirydowicz, I. Yamazaki, E. G. Boman,
 *             "Low-synch Gram-Schmidt with delayed reorthogonalization for Krylov solvers", Parallel
 *             Computing 112, 2022. Merging a sum with the exchange for the next product: S. Cools,
 *             W. Vanroose, "The communication-hiding pipelined BiCGStab method", Parallel Computing
 *             65, 2017.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/krylov/krylov_persistent.cuh"

extern "C" {
#include "solvers/krylov/krylov_loop.h"
#include "solvers/precond/precond_internal.h"
}

namespace
{

/* Steps of a launch of bicgstab and minres; the state notes the residuals of one launch. */
enum { MOST_STEPS = 128 };
static_assert((int)KRYLOV_RING > (int)KRYLOV_MOST_BASIS && (int)KRYLOV_RING > (int)MOST_STEPS,
              "one launch fits the ring");

/* Above, kernels of one pass each are faster. */
enum { GMRES_MOST_ROWS = 1100000, MOST_ROWS = 250000 /* of bicgstab and minres */ };

/* ------------------------------------------------------------- gmres */

template <typename T, typename Stored> struct gmres_run {
    dealt_rows<T, Stored> a;
    meeting_place place;
    double *hessenberg;        /* columns, most + 1 apart */
    T *p, *basis, *directions; /* directions: M^-1 of the basis; NULL without M */
    int64_t stride;
    int most, kept; /* steps of a cycle; basis vectors in shared memory */
};

/* The products of a vector with u and with w. */
struct alignas(2 * sizeof(double)) two_sums {
    double u, w;
};

/* The dynamic shared memory. */
template <typename T> struct gmres_memory {
    two_sums *sums;          /* of the vectors of the basis, of u, and of w */
    double *first, *cosines; /* first: coefficients of w in its first pass */
    krylov_scalar *h, *sines;
    T *u, *w, *kept;
    unsigned char *matrix;

    static __host__ __device__ int bytes(int most, int rows_each, int kept)
    {
        return (most + 2) * (int)(sizeof(two_sums) + 2 * sizeof(double) + 2 * sizeof(krylov_scalar)) +
               (kept + 2) * rows_each * (int)sizeof(T);
    }
    /* The matrix lies between w and the basis. */
    __device__ gmres_memory(unsigned char *memory, int most, int rows_each, int matrix_bytes)
    {
        sums = (two_sums *)memory;
        first = (double *)(sums + most + 2);
        cosines = first + most + 2;
        h = (krylov_scalar *)(cosines + most + 2);
        sines = h + most + 2;
        u = (T *)(sines + most + 2);
        w = u + rows_each;
        matrix = (unsigned char *)(w + rows_each);
        kept = (T *)(matrix + matrix_bytes);
    }
};

/* What follows from the sums of a step. v: the new vector of the basis. */
struct step_scalars {
    double norm, by;          /* of u without its parts along the basis; 1 / norm, or 0 */
    double last;              /* v'w */
    double length, by_length; /* |w|; 1 / |w|, or 0 */
};

/* The scalars of step j. The first u is a vector of length 1. By a warp. */
__device__ void find_scalars(const two_sums *sums, int j, step_scalars *to)
{
    double squares = 0, products = 0;
    for (int i = (int)threadIdx.x % warp_lanes; i < j; i += warp_lanes) {
        squares += sums[i].u * sums[i].u;
        products += sums[i].u * sums[i].w;
    }
    squares = sum_of_warp(squares);
    products = sum_of_warp(products);
    if (threadIdx.x % warp_lanes == 0) {
        const double norm = j == 0 ? 1 : gmres_norm(sums[j].u, squares), by = norm > 0 ? 1 / norm : 0;
        const double length = sqrt(sums[j + 1].w);
        *to = {norm, by, (sums[j].w - products) * by, length, length > 0 ? 1 / length : 0};
    }
}

/* Stores the block's parts of the sums of step j. A warp has two vectors at a time. */
template <typename T, typename Stored>
__device__ void project(const gmres_run<T, Stored> &g, const gmres_memory<T> &shared, own_rows own, int j)
{
    const int vectors = j + 2, lane = (int)threadIdx.x % warp_lanes;
    two_sums *const parts = (two_sums *)(g.place.parts + blockIdx.x * g.place.width);
    const auto near = [&](int i) { return i < j ? shared.kept + i * g.a.rows_each : i == j ? shared.u : shared.w; };
    const auto any = [&](int i) -> const T * {
        return i < j && i >= g.kept ? g.basis + i * g.stride + own.first : near(i);
    };
    for (int i = 2 * ((int)threadIdx.x / warp_lanes); i < vectors; i += 2 * WARPS) {
        const int other = i + 1 < vectors ? i + 1 : i;
        double sums[4];
        if (j <= g.kept || other < g.kept)
            multiply_both(shared.u, shared.w, own.count, (const T *)near(i), (const T *)near(other), sums);
        else
            multiply_both(shared.u, shared.w, own.count, any(i), any(other), sums);
        const double sum = four_sums_of_warp(sums);
        const int vector = i + lane / 16;
        if (lane % 8 == 0 && vector < vectors)
            (lane % 16 == 0 ? parts[vector].u : parts[vector].w) = sum;
    }
}

/* Subtracts from u and w their parts along the j vectors of the basis. */
template <typename T, typename Stored>
__device__ void subtract(const gmres_run<T, Stored> &g, const gmres_memory<T> &shared, own_rows own, int j)
{
    const int near_vectors = j < g.kept ? j : g.kept;
    for (int r = (int)threadIdx.x; r < own.count; r += BLOCK) {
        T u[CHAINS] = {shared.u[r]}, w[CHAINS] = {shared.w[r]};
        const auto take = [&](int i, int chain, T v) {
            const two_sums by = shared.sums[i];
            u[chain] -= (T)by.u * v;
            w[chain] -= (T)by.w * v;
        };
        for_vectors<BATCH>(0, near_vectors, shared.kept + r, g.a.rows_each, take);
        for_vectors<BATCH>(near_vectors, j, g.basis + own.first + r, g.stride, take);
        shared.u[r] = sum_chains(u);
        shared.w[r] = sum_chains(w);
    }
}

/* M^-1 of an element of the block's row r. */
template <typename T, typename Stored>
__device__ T direction_of(const gmres_run<T, Stored> &g, own_rows own, int r, T value)
{
    return g.a.scale != nullptr ? g.a.scale[own.first + r] * value : value;
}

/* w becomes the new vector of the basis; u, and p for the others, what is left of w. */
template <typename T, typename Stored>
__device__ void extend(const gmres_run<T, Stored> &g, const gmres_memory<T> &shared, own_rows own,
                       const step_scalars &step)
{
    const T by = (T)step.by, last = (T)step.last, by_length = (T)step.by_length;
    for (int r = (int)threadIdx.x; r < own.count; r += BLOCK) {
        const T v = by * shared.u[r], next = by_length * (shared.w[r] - last * v);
        shared.w[r] = v;
        shared.u[r] = next;
        g.p[own.first + r] = direction_of(g, own, r, next);
    }
}

/* Stores vector j of the basis, which is in w. The same threads have written it. */
template <typename T, typename Stored>
__device__ void keep(const gmres_run<T, Stored> &g, const gmres_memory<T> &shared, own_rows own, int j)
{
    for (int r = (int)threadIdx.x; r < own.count; r += BLOCK) {
        const T v = shared.w[r];
        const int64_t at = j * g.stride + own.first + r;
        if (j < g.kept)
            shared.kept[j * g.a.rows_each + r] = v;
        g.basis[at] = v;
        if (g.directions != nullptr)
            g.directions[at] = direction_of(g, own, r, v);
    }
}

/* Adds column j - 1 to the Hessenberg matrix H and rotates it, and finds the coefficients of the first
 * pass of step j. size: A v_j-1 without its parts along the basis is u times this.
 *
 * A v_j-1 = V (first + size s) + size norm v_j, where s = V'u and first are the two passes.
 * A v_j = (w - A V s) / norm, and A V s = (V, v_j) H s, so (V, v_j)'A v_j = ((V, v_j)'w - H s) / norm. */
template <typename T, typename Stored>
__device__ void add_column(const gmres_run<T, Stored> &g, const gmres_memory<T> &shared, const step_scalars &step,
                           int j, double size)
{
    const int thread = (int)threadIdx.x, apart = g.most + 1;
    krylov_state *const state = g.place.state;
    if (j > 0) {
        double *const column = g.hessenberg + (j - 1) * apart;
        for (int i = thread; i <= j; i += BLOCK) {
            column[i] = i < j ? shared.first[i] + size * shared.sums[i].u : size * step.norm;
            shared.h[i] = scalar_of(column[i]);
        }
        __syncthreads();
    }
    for (int i = thread - warp_lanes; i >= 0 && i <= j; i += BLOCK - warp_lanes) {
        double sum = i < j ? shared.sums[i].w : step.last;
#pragma unroll 8
        for (int k = i > 0 ? i - 1 : 0; k < j; k++)
            sum -= g.hessenberg[k * apart + i] * shared.sums[k].u;
        shared.first[i] = step.by * sum;
    }
    if (thread == 0 && j > 0) {
        state->before = size;
        gmres_column(state, size * step.norm, shared.h, shared.cosines, shared.sines);
        shared.cosines[j - 1] = state->cosines[j - 1];
        shared.sines[j - 1] = state->sines[j - 1];
        /* others may still read that of the step before */
        g.place.ended[j % 2] = (unsigned)state->ending;
    }
}

template <typename T, typename Stored> __global__ void __launch_bounds__(BLOCK) gmres_steps(gmres_run<T, Stored> g)
{
    SPMV_DYNAMIC_SHARED(dynamic_shared);
    __shared__ step_scalars step;
    const int matrix_bytes = near_rows<Stored>::bytes(g.a.rows_each, g.a.cells);
    const gmres_memory<T> shared(dynamic_shared, g.most, g.a.rows_each, matrix_bytes);
    const near_rows<Stored> near(shared.matrix, g.a.cells);
    const bool is_clerk = blockIdx.x == gridDim.x - 1; /* a single block has rows and is the clerk */
    const own_rows own = rows_of_block(g.a);
    double size = 1; /* of u: add_column */
    unsigned passed = 0;
    if (load_others(&g.place.state->ending) != 0)
        return;
    const bool is_near = copy_rows(g.a, own, near);
    for (int r = (int)threadIdx.x; r < own.count; r += BLOCK) {
        shared.u[r] = g.basis[own.first + r];
        g.p[own.first + r] = direction_of(g, own, r, shared.u[r]);
    }
    arrive_block(g.place);
    await_blocks(g.place, &passed);
    for (int j = 0;; j++) {
        if (j < g.most) /* the last step is the second pass of u alone */
            multiply_rows(g.a, near, is_near, own, (const T *)g.p, [&](int r, pair<T> sum) { shared.w[r] = sum.z; });
        __syncthreads();
        project(g, shared, own, j);
        arrive_block(g.place);
        await_blocks(g.place, &passed);
        if (load_others(&g.place.ended[(j + 1) % 2]) != 0) /* in the step before */
            break;
        add_parts<4>(g.place, 2 * (j + 2), (double *)shared.sums);
        if (threadIdx.x / warp_lanes == WARPS - 1)
            find_scalars(shared.sums, j, &step);
        if (j < g.most)
            subtract(g, shared, own, j);
        __syncthreads();
        if (j < g.most)
            extend(g, shared, own, step);
        arrive_block(g.place);
        if (j < g.most)
            keep(g, shared, own, j);
        if (is_clerk)
            add_column(g, shared, step, j, size);
        if (j == g.most)
            break;
        size = step.length * step.by;
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

/* What blocks of bicgstab and minres have of a run: each has a state, and all are equal. */
enum { STATE_WORDS = sizeof(krylov_state) / sizeof(int) };
static_assert(sizeof(krylov_state) <= STATIC_BYTES / 2, "room for the state");

__device__ void load_state(const meeting_place &place, krylov_state *state)
{
    for (int i = (int)threadIdx.x; i < STATE_WORDS; i += BLOCK)
        ((int *)state)[i] = load_others((const int *)place.state + i);
    __syncthreads();
}

__device__ void store_state(const meeting_place &place, const krylov_state &state)
{
    if (blockIdx.x == 0)
        for (int i = (int)threadIdx.x; i < STATE_WORDS; i += BLOCK)
            ((int *)place.state)[i] = ((const int *)&state)[i];
}

/* Adds two sums up over all blocks: totals. */
__device__ void meet(const meeting_place &at, unsigned *passed, double one, double two, double *totals)
{
    meeting_place place = at;
    place.parts += *passed % 2 * gridDim.x * place.width; /* two sets, used in turn */
    store_parts({one, two}, place);
    arrive_block(place);
    await_blocks(place, passed);
    add_parts<warp_lanes>(place, KRYLOV_MOST_SUMS, totals);
}

/* Coefficients of these sums. By one thread. */
__device__ void finish_scalars(krylov_finish which, krylov_state *state, double one, double two)
{
    const krylov_scalar sums[KRYLOV_MOST_SUMS] = {scalar_of(one), scalar_of(two)};
    krylov_finish_scalars(which, state, sums);
}

template <typename T, typename Stored>
__global__ void __launch_bounds__(BLOCK) bicgstab_steps(bicgstab_run<T, Stored> g)
{
    SPMV_DYNAMIC_SHARED(dynamic_shared);
    __shared__ double totals[KRYLOV_MOST_SUMS];
    __shared__ krylov_state state;
    const int thread = (int)threadIdx.x;
    load_state(g.place, &state);
    if (state.ending != 0)
        return;
    const own_rows own = rows_of_block(g.a);
    T *const x = (T *)dynamic_shared, *const r0 = x + g.a.rows_each, *const r = r0 + g.a.rows_each;
    T *const p = r + g.a.rows_each, *const v = p + g.a.rows_each, *const t = v + g.a.rows_each;
    const near_rows<Stored> near((unsigned char *)(t + g.a.rows_each), g.a.cells);
    const bool is_near = copy_rows(g.a, own, near);
    const T *const scale = g.a.scale != nullptr ? g.a.scale + own.first : nullptr;
    unsigned passed = 0;
    const auto preconditioned = [&](int i, T value) { return scale != nullptr ? scale[i] * value : value; };
    /* Adds the sums up over all blocks, and computes coefficients. False: the run has ended. */
    const auto finish = [&](double one, double two, krylov_finish which) {
        meet(g.place, &passed, one, two, totals);
        if (thread == 0)
            finish_scalars(which, &state, totals[0], totals[1]);
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
    store_state(g.place, state);
}

/* ------------------------------------------------------------- minres */

template <typename T, typename Stored> struct minres_run {
    dealt_rows<T, Stored> a;
    meeting_place place;
    T *x, *v, *v_old, *w, *w_old, *r; /* r: not used without M */
    T *p;                             /* M^-1 v */
};

template <typename T, typename Stored> __global__ void __launch_bounds__(BLOCK) minres_steps(minres_run<T, Stored> g)
{
    SPMV_DYNAMIC_SHARED(dynamic_shared);
    __shared__ double totals[KRYLOV_MOST_SUMS];
    __shared__ krylov_state state;
    __shared__ bool broken; /* before x was changed */
    const int thread = (int)threadIdx.x;
    load_state(g.place, &state);
    if (state.ending != 0)
        return;
    const own_rows own = rows_of_block(g.a);
    const T *const scale = g.a.scale != nullptr ? g.a.scale + own.first : nullptr;
    T *const x = (T *)dynamic_shared, *const r = x + g.a.rows_each, *const q = r + g.a.rows_each;
    T *v = q + g.a.rows_each, *v_old = v + g.a.rows_each, *w = v_old + g.a.rows_each, *w_old = w + g.a.rows_each;
    const near_rows<Stored> near((unsigned char *)(w_old + g.a.rows_each), g.a.cells);
    const bool is_near = copy_rows(g.a, own, near);
    const auto preconditioned = [&](int i, T value) { return scale != nullptr ? scale[i] * value : value; };
    bool due = false; /* with M: r'r of the last step is not known yet */
    double square = 0;
    unsigned passed = 0;
    for (int i = thread; i < own.count; i += BLOCK) {
        x[i] = g.x[own.first + i];
        v[i] = g.v[own.first + i];
        v_old[i] = g.v_old[own.first + i];
        w[i] = g.w[own.first + i];
        w_old[i] = g.w_old[own.first + i];
        if (scale != nullptr)
            r[i] = g.r[own.first + i];
        g.p[own.first + i] = preconditioned(i, v[i]);
    }
    arrive_block(g.place);
    await_blocks(g.place, &passed);
    for (int step = 0;; step++) {
        multiply_rows(g.a, near, is_near, own, (const T *)g.p, [&](int i, pair<T> sum) { q[i] = sum.z; });
        __syncthreads();
        const T by = (T)state.c[C_SCALE].re; /* 1 / gamma */
        double one = 0;
        for (int i = thread; i < own.count; i += BLOCK) {
            q[i] *= by;
            one += (double)(by * preconditioned(i, v[i])) * (double)q[i];
        }
        meet(g.place, &passed, one, square, totals);
        if (thread == 0) {
            if (due)
                finish_scalars(MINRES_STEP, &state, totals[1], 0);
            if (state.ending == 0 && step < MOST_STEPS)
                finish_scalars(MINRES_DELTA, &state, totals[0], 0);
        }
        __syncthreads();
        if (state.ending != 0 || step == MOST_STEPS)
            break;
        const T of_v = (T)state.c[C_V].re, of_v_old = (T)state.c[C_V_OLD].re;
        one = square = 0;
        for (int i = thread; i < own.count; i += BLOCK) {
            const T next = q[i] + of_v * v[i] + of_v_old * v_old[i], z = preconditioned(i, next);
            v_old[i] = next;
            g.p[own.first + i] = z;
            one += (double)next * (double)z;
        }
        meet(g.place, &passed, one, 0, totals);
        if (thread == 0) {
            finish_scalars(MINRES_GAMMA, &state, totals[0], 0);
            broken = state.ending != 0;
            if (!broken && scale == nullptr)
                finish_scalars(MINRES_STEP, &state, 0, 0);
        }
        __syncthreads();
        if (broken)
            break;
        const T of_z = (T)state.c[C_W_Z].re * by, of_w = (T)state.c[C_W].re, of_w_old = (T)state.c[C_W_OLD].re;
        const T of_x = (T)state.c[C_X].re, of_r = (T)state.c[C_R].re, of_r_v = (T)state.c[C_R_V].re;
        for (int i = thread; i < own.count; i += BLOCK) {
            const T next = of_z * preconditioned(i, v[i]) + of_w_old * w_old[i] + of_w * w[i];
            w_old[i] = next;
            x[i] += of_x * next;
            if (scale != nullptr) {
                r[i] = of_r * r[i] + of_r_v * v_old[i];
                square += (double)r[i] * (double)r[i];
            }
        }
        T *const last_v = v, *const last_w = w; /* the new ones are in the places of the old ones */
        v = v_old;
        v_old = last_v;
        w = w_old;
        w_old = last_w;
        due = scale != nullptr;
        if (state.ending != 0)
            break;
    }
    for (int i = thread; i < own.count; i += BLOCK) {
        g.x[own.first + i] = x[i];
        g.v[own.first + i] = v[i];
        g.v_old[own.first + i] = v_old[i];
        g.w[own.first + i] = w[i];
        g.w_old[own.first + i] = w_old[i];
        if (scale != nullptr)
            g.r[own.first + i] = r[i];
    }
    store_state(g.place, state);
}

/* ------------------------------------------------------------- the host */

/* How a solve is distributed. cells, kept: of dealt_rows and gmres_run. */
struct shape {
    int blocks, rows_each, lanes, cells, kept, shared_bytes;
};

bool is_gmres(const struct krylov_loop *g)
{
    return g->s.solver == &krylov_gmres;
}

bool is_minres(const struct krylov_loop *g)
{
    return g->s.solver == &krylov_minres;
}

/* Whether the system fits: all vectors of bicgstab and minres, and u and w of gmres. The matrix comes next, then as
 * many basis vectors as there is room for. */
bool fits(const struct krylov_loop *g, int shared_most, int most_blocks, shape *how)
{
    enum { BICGSTAB_VECTORS = 6, MINRES_VECTORS = 7, GMRES_VECTORS = 2 };
    const spmv_csr *const a = &g->s.plan->a;
    const int64_t n = g->s.n, size = (int64_t)spmv_type_size(g->s.type), line = warp_lanes;
    const int64_t spread = (n - 1) / MOST_BLOCKS + 1;
    const int64_t each = ((spread > ROWS_LEAST ? spread : (int64_t)ROWS_LEAST) + line - 1) / line * line;
    const int64_t blocks = (n - 1) / each + 1, all = blocks > 1 && is_gmres(g) ? blocks + 1 : blocks;
    if (all > most_blocks || n > (is_gmres(g) ? GMRES_MOST_ROWS : MOST_ROWS))
        return false;
    static_assert(REAL_TYPES == 2, "matrix_bytes knows each real type");
    const auto matrix_bytes = [&](int64_t cells) {
        return (int64_t)(a->type == SPMV_F32 ? near_rows<float>::bytes((int)each, (int)cells)
                                             : near_rows<double>::bytes((int)each, (int)cells));
    };
    const int64_t least = is_gmres(g) ? gmres_memory<double>::bytes(g->s.restart, 0, 0) + GMRES_VECTORS * each * size
                                      : (is_minres(g) ? MINRES_VECTORS : BICGSTAB_VECTORS) * each * size;
    int64_t room = shared_most - STATIC_BYTES - least;
    /* a quarter more than the mean of the blocks, in less than half the room */
    const int64_t mean = a->nnz / blocks, cells = mean + mean / 4 + line;
    const bool near = cells < room / near_rows<float>::cell_bytes && 2 * matrix_bytes(cells) <= room;
    *how = {(int)all, (int)each, lanes_for(*a, g->s.plan->longest_row, each), near ? (int)cells : 0, 0, 0};
    room -= matrix_bytes(how->cells);
    if (room < 0)
        return false;
    if (is_gmres(g))
        how->kept = (int)(room / (each * size) < g->s.restart ? room / (each * size) : (int64_t)g->s.restart);
    how->shared_bytes = (int)(least + matrix_bytes(how->cells) + how->kept * each * size);
    return true;
}

/* M^-1, or NULL */
const void *scale_of(const struct krylov_loop *g)
{
    return g->s.precond != nullptr ? precond_inverse_diagonal(g->s.precond) : nullptr;
}

} // namespace

enum { HEAD = 256 /* bytes for the counter and the flags */ };

struct krylov_persistent {
    shape how;
    void *memory; /* on the device: the counter, gathered vectors or the Hessenberg matrix, parts of sums */
    int64_t parts_at;
    int width; /* sums of a block */
};

namespace
{

template <typename T, typename Stored> dealt_rows<T, Stored> deal_rows(const struct krylov_loop *g)
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

template <auto Kernel, typename Run>
spmv_status start(struct krylov_loop *g, const char *name, const Run &run, int shared)
{
    static uint64_t known;
    const shape &how = g->persistent->how;
    const launch_shape as = {how.blocks, BLOCK, how.shared_bytes, false, how.blocks > 1};
    spmv_status st = once_a_device(g->s.ctx, name, &known, (const void *)Kernel,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (st == SPMV_OK)
        st = cuda_check(g->s.ctx, cudaMemsetAsync(run.place.arrived, 0, HEAD, (cudaStream_t)g->s.ctx->stream),
                        "a counter");
    return st == SPMV_OK ? launch_shaped(g->s.ctx, name, as, Kernel, run) : st;
}

template <typename T, typename Stored> spmv_status run_typed(struct krylov_loop *g, bool begins)
{
    const krylov_persistent *const own = g->persistent;
    char *const memory = (char *)own->memory;
    const meeting_place place = {g->v.state, (double *)(memory + own->parts_at), own->width, (unsigned *)memory,
                                 (unsigned *)memory + 1};
    int shared = 0, blocks = 0;
    const spmv_status st = limits(g->s.ctx, &shared, &blocks);
    if (st != SPMV_OK)
        return st;
    struct krylov_persistent_vectors at;
    g->s.solver->persistent(g, &at);
    if (is_gmres(g)) {
        gmres_run<T, Stored> run = {};
        run.a = deal_rows<T, Stored>(g);
        run.place = place;
        run.hessenberg = (double *)(memory + HEAD);
        run.p = (T *)at.p;
        run.basis = (T *)at.basis;
        run.directions = (T *)at.directions;
        run.stride = g->stride;
        run.most = g->s.restart;
        run.kept = own->how.kept;
        return start<gmres_steps<T, Stored>>(g, "gmres persistent", run, shared - STATIC_BYTES);
    }
    if (is_minres(g)) {
        minres_run<T, Stored> run = {};
        run.a = deal_rows<T, Stored>(g);
        run.place = place;
        run.x = (T *)g->s.x;
        run.v = (T *)at.v;
        run.v_old = (T *)at.v_old;
        run.w = (T *)at.w;
        run.w_old = (T *)at.w_old;
        run.r = (T *)at.r;
        run.p = (T *)(memory + HEAD);
        return start<minres_steps<T, Stored>>(g, "minres persistent", run, shared - STATIC_BYTES);
    }
    bicgstab_run<T, Stored> run = {};
    run.a = deal_rows<T, Stored>(g);
    run.place = place;
    run.x = (T *)g->s.x;
    run.r = (T *)at.r;
    run.r0 = (const T *)at.r0;
    run.q = (T *)at.p;
    run.v = (T *)at.v;
    run.pairs = (pair<T> *)(memory + HEAD);
    run.begins = begins;
    return start<bicgstab_steps<T, Stored>>(g, "bicgstab persistent", run, shared - STATIC_BYTES);
}

} // namespace

extern "C" spmv_status krylov_persistent_open(struct krylov_loop *g, struct krylov_persistent **persistent)
{
    *persistent = nullptr;
    const spmv_plan *const plan = g->s.plan;
    const bool scaled = g->s.precond != nullptr;
    if (g->s.solver->persistent == nullptr || type_is_complex(g->s.type) || (scaled && scale_of(g) == nullptr) ||
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
    own->width = is_gmres(g) ? 2 * (g->s.restart + 2) : (int)KRYLOV_MOST_SUMS;
    const int64_t hessenberg = g->s.restart * (g->s.restart + (int64_t)1) * (int64_t)sizeof(double);
    const int64_t pairs = 2 * g->s.n * (int64_t)spmv_type_size(g->s.type), sets = is_gmres(g) ? 1 : 2;
    own->parts_at = HEAD + ceil_divide(is_gmres(g) ? hessenberg : pairs, HEAD) * HEAD;
    return context_lend(g->s.ctx, own->parts_at + sets * how.blocks * own->width * (int64_t)sizeof(double),
                        &own->memory);
}

extern "C" void krylov_persistent_close(struct krylov_loop *g, struct krylov_persistent *persistent)
{
    if (persistent != nullptr)
        context_take_back(g->s.ctx, persistent->memory);
    host_free(persistent);
}

extern "C" spmv_status krylov_persistent_steps(struct krylov_loop *g, bool begins)
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
