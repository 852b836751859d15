/* Conjugate gradients, rung 4, with M^-1 = G' G (the preconditioner fsai): all steps in one kernel, with
 * three barriers a step.
 *
 * Idea:       as in cg_4_persistent.cuh, with G and G' in shared memory too. A step is
 *
 *             gather  y = G r, v = G s                                        | barrier
 *             gather  z = G' y, t = G' v   meanwhile  nu = y'y, mu = p's, delta = y'v, gamma = v'v
 *                                                                             | barrier
 *             gather  w = A z, u = A t                                        | barrier
 *             alpha = nu / mu;  x += alpha p;  r -= alpha s
 *             nu ahead = nu - 2 alpha delta + alpha^2 gamma;  beta = (nu ahead) / nu
 *             p = (z - alpha t) + beta p;  s = (w - alpha u) + beta s
 *
 * Launches:   1 for MOST_STEPS steps.
 * Bytes:      48 n a step, in caches.
 * Changed:    since rung 3, no launch; there, a step has six kernels.
 * Wins when:  the system and the factors fit.
 * Source:     that of cg_4_persistent.cuh.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_4_PERSISTENT_FACTOR_CUH
#define CG_4_PERSISTENT_FACTOR_CUH

#include "solvers/cg/cg_4_persistent.cuh"

namespace cg_persistent
{

/* G and G' are limited to so many rows of a thread, by registers. */
enum { FACTOR_ROWS_MOST = 2 };

template <typename T, typename Stored, int BLOCK, int ROWS, bool TOGETHER>
struct factor_worker : worker<T, Stored, BLOCK, ROWS, true, TOGETHER> {
    using base = worker<T, Stored, BLOCK, ROWS, true, TOGETHER>;
    using base::a, base::behind, base::first, base::in_grid, base::is_clerk, base::now, base::rows;

    float *g_val, *gt_val;
    int32_t *g_col, *gt_col;
    own_cells<ROWS> &g, &gt;

    __device__ factor_worker(const system<T, Stored> &all, const typename base::memory &others,
                             unsigned char *dynamic_shared, own_rows<T, ROWS> &its_rows, own_cells<ROWS> &its_g,
                             own_cells<ROWS> &its_gt)
        : base(all, others, dynamic_shared, its_rows), g_val((float *)(base::col + all.cells)),
          gt_val(g_val + all.g.cells), g_col((int32_t *)(gt_val + all.gt.cells)), gt_col(g_col + all.g.cells), g(its_g),
          gt(its_gt)
    {
    }

    /* They use the same memory one after the other. */
    __device__ void load_matrices()
    {
        this->load_matrix();
        __syncthreads();
        this->load_cells(a.g.row_ptr, a.g.col, a.g.val, g_col, g_val, g);
        __syncthreads();
        this->load_cells(a.gt.row_ptr, a.gt.col, a.gt.val, gt_col, gt_val, gt);
    }

    /* Stores the pairs of the thread's rows. */
    __device__ void store(int set, const T (&z)[ROWS], const T (&t)[ROWS]) const
    {
        pair<T> *const pairs = this->all_pairs(set), *const mine = this->own_pairs(set);
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int row = this->row_of(k);
            const pair<T> its = {z[k], t[k]};
            if (row < behind) {
                mine[row - first] = its;
                if (in_grid)
                    pairs[row] = its;
            }
        }
    }

    /* The warp's sums, in the lanes of sum_four: those of a step, or b'b. */
    __device__ pair<T> sums(const T (&y)[ROWS], const T (&v)[ROWS]) const
    {
        T part[base::COUNT] = {};
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            if (now == STEP) {
                part[NU] += y[k] * y[k];
                part[MU] += rows.p[k] * rows.s[k];
                part[DELTA] += y[k] * v[k];
                part[GAMMA] += v[k] * v[k];
                part[RR] += rows.r[k] * rows.r[k];
            } else {
                const T b = this->row_of(k) < behind ? a.b[this->row_of(k)] : T();
                part[NU] += b * b;
            }
        }
        pair<T> all = {};
        if (!is_clerk)
            all = {sum_four(part), sum_lanes(part[RR], warp_lanes / 2)};
        return all;
    }

    /* z = M^-1 r, t = M^-1 s, w = A z, u = A t, and the sums, in three rounds. */
    __device__ void apply(int &round, T (&z)[ROWS], T (&t)[ROWS], T (&w)[ROWS], T (&u)[ROWS])
    {
        T y[ROWS] = {}, v[ROWS] = {};
        int set = round++ % 2;
        store(set, rows.r, rows.s);
        this->meet();
        this->multiply_cells(set, g_col, g_val, g, y, v);
        __syncthreads();
        set = round++ % 2;
        store(set, y, v);
        this->exchange(set, sums(y, v));
        this->multiply_cells(set, gt_col, gt_val, gt, z, t);
        __syncthreads();
        set = round++ % 2;
        store(set, z, t);
        this->meet();
        this->multiply(set, w, u);
        __syncthreads();
    }

    /* Sets the tolerance and the first direction. Returns false if b is 0. */
    __device__ bool start_direction(const T (&z)[ROWS], const T (&w)[ROWS])
    {
        const bool goes_on = base::start_direction(w);
#pragma unroll
        for (int k = 0; k < ROWS; k++)
            rows.p[k] = z[k];
        return goes_on;
    }

    /* One step of the recurrence at the top of this file. */
    __device__ void take_step(T delta, T gamma, const T (&z)[ROWS], const T (&t)[ROWS], const T (&w)[ROWS],
                              const T (&u)[ROWS])
    {
        const T alpha = this->nu / this->mu, beta = this->beta_of(alpha, delta, gamma);
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            rows.x[k] += alpha * rows.p[k];
            rows.r[k] -= alpha * rows.s[k];
            rows.p[k] = (z[k] - alpha * t[k]) + beta * rows.p[k];
            rows.s[k] = (w[k] - alpha * u[k]) + beta * rows.s[k];
        }
        this->iterations++;
        this->step++;
    }
};

template <typename T, typename Stored, int BLOCK, int ROWS, bool TOGETHER>
__global__ void __launch_bounds__(BLOCK + warp_lanes) kernel_of_factor(system<T, Stored> a)
{
    using its_worker = factor_worker<T, Stored, BLOCK, ROWS, TOGETHER>;
    SPMV_DYNAMIC_SHARED(dynamic_shared);
    constexpr int WARPS_ = its_worker::WARPS_, COUNT = its_worker::COUNT;
    __shared__ int widths[WARPS_ * ROWS];
    __shared__ T of_warps[WARPS_][STRIDE], totals[STRIDE];
    __shared__ T in_cluster[2][COUNT][CLUSTER * WARPS_];
    own_rows<T, ROWS> rows;
    own_cells<ROWS> g, gt;
    its_worker me(a, {widths, of_warps, totals, in_cluster}, dynamic_shared, rows, g, gt);
    me.load_matrices();
    if (its_worker::IN_CLUSTER)
        meet_cluster(); /* no block may write into the memory of one that has not started */
    me.load_vectors();
    for (int round = 0;;) {
        T z[ROWS] = {}, t[ROWS] = {}, w[ROWS] = {}, u[ROWS] = {};
        if (me.now == START_R || me.now == STEP) {
            me.apply(round, z, t, w, u);
        } else {
            const int set = round++ % 2;
            me.exchange(set, me.store_pairs(set));
            me.multiply(set, w, u);
            __syncthreads();
        }
        if (me.now == START_X) {
            me.subtract(w);
            me.now = START_R;
        } else if (me.now == START_R) {
            if (!me.start_direction(z, w))
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
            me.take_step(delta, gamma, z, t, w, u);
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
