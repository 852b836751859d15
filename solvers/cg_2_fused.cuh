/* Conjugate gradients, rung 2 on CUDA: a step in three kernels.
 *
 * Idea: whatever can be done while an element is at hand is done then. The product brings p'q with it (its epilogue);
 * the second kernel updates r and has the squares of the new r; the third updates x and p. Each sum is finished by the
 * block that is the last to bring its part, which also works out alpha, beta, and whether that was the last step; the
 * host learns of it later. Launches: 3; vector passes a step, beside the product: r: 2 + 1 (q), x: 2, p: 2 + 1 (r) = 8;
 * with Jacobi's preconditioner 2 more, with another its own and 3. Changed since rung 1: launches (from 9), passes
 * (from 10), and no wait. Next: the launches are replayed as a graph, by the dozen.
 *
 * The end: steps are queued before it is known whether they are needed. `ending` says that the step is the last: its
 * third kernel still runs, and the kernels of later steps return at once, so that x, the counts and the sums are those
 * of exactly as many steps as rung 1 makes.
 *
 * Bits: sums are folded in trees (spmv_4_tiles_epilogue.cuh) whose shapes follow from n alone.
 * Hestenes & Stiefel 1952; Saad 2003, algorithm 9.1.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_2_FUSED_CUH
#define CG_2_FUSED_CUH

#include "spmv_4_tiles_epilogue.cuh"

namespace cg_fused
{

enum { EACH = 8, TILE = THREADS * EACH, RING = 32 };

/* How it stopped. */
enum { GOES_ON, ENDED, BROKEN, LIMIT };

/* Two sums at once: r'r and r'z. */
template <typename T> struct two_of {
    using type = spmv_c128;
};
template <> struct two_of<float> {
    using type = spmv_c64;
};
template <typename T> using two = typename two_of<T>::type;

/* On the device; the host gets copies. */
template <typename T> struct state {
    two<T> sums;
    T rr, rho, pq, alpha, beta; /* rho: r'z, which is r'r without a preconditioner */
    double start, enough;       /* norms: of the first residual, of the last one wanted */
    long long iterations, most;
    int ending, stop;
    T history[RING]; /* r'r after iteration i, at i % RING */
};

/* z_i = z[i] if there is a z, else scale[i] r_i if there is a scale, else r_i. */
template <typename T> struct system {
    state<T> *s;
    T *x, *r, *p;
    const T *q, *scale, *z;
    int64_t n;
    tiles::sum_tree<two<T>> tree;

    __device__ T z_of(int64_t i, T residual) const
    {
        return z != nullptr ? z[i] : scale != nullptr ? scale[i] * residual : residual;
    }
};

/* The first thread of the block that was the last to bring its part gets true, and the sum lies in s->sums. */
template <typename T> __device__ bool bring(const system<T> &a, two<T> part)
{
    __shared__ two<T> warp_parts[WARPS];
    const int thread = (int)threadIdx.x;
    const two<T> sum = tiles::warp_sum(part, WARP);
    if (thread % WARP == 0)
        warp_parts[thread / WARP] = sum;
    __syncthreads();
    return thread < WARP &&
           tiles::climb(a.tree, blockIdx.x, tiles::warp_sum(thread < WARPS ? warp_parts[thread] : two<T>(), WARPS)) &&
           thread == 0;
}

/* body(i) for the elements of the block. */
template <typename Body> __device__ void each(int64_t n, const Body &body)
{
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int64_t i = (int64_t)blockIdx.x * TILE + k * THREADS + threadIdx.x;
        if (i < n)
            body(i);
    }
}

/* After the step that ended with s->rr: is the residual small enough? */
template <typename T> __device__ void note(state<T> *s)
{
    s->history[s->iterations % RING] = s->rr;
    const double norm = sqrt((double)s->rr);
    if (isfinite(norm) && norm <= s->enough)
        s->ending = 1;
}

/* Given r (and z): p = z, unless the recurrence continues with the p that there is; all of the state. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    begin(system<T> a, bool continues, double tolerance, double roundoff, long long iterations, long long most)
{
    two<T> part = {};
    let_next_begin();
    await_kernel_before();
    each(a.n, [&](int64_t i) {
        const T r = a.r[i], z = a.z_of(i, r);
        part += two<T>{r * r, r * z};
        if (!continues)
            a.p[i] = z;
    });
    if (!bring(a, part))
        return;
    state<T> *const s = a.s;
    s->rr = s->sums.re;
    s->rho = s->sums.im;
    s->pq = 0;
    s->start = sqrt((double)s->rr);
    s->enough = fmax(tolerance, roundoff * s->start);
    s->iterations = iterations;
    s->most = most;
    s->ending = 0;
    s->stop = GOES_ON;
    note(s);
}

/* Given p'q: alpha = rho / p'q, r = r - alpha q, r'r; and, unless z is yet to come, rho and beta. */
template <typename T> __global__ void __launch_bounds__(THREADS) step_residual(system<T> a)
{
    state<T> *const s = a.s;
    const bool first = blockIdx.x == 0 && threadIdx.x == 0;
    let_next_begin();
    await_kernel_before();
    if (s->ending != 0) {
        if (first && s->stop == GOES_ON)
            s->stop = ENDED;
        return;
    }
    const T rho = s->rho, pq = s->pq;
    const bool broken = !isfinite(s->rr) || !isfinite(rho) || !isfinite(pq) || rho <= 0 || pq <= 0;
    if (broken || s->iterations == s->most) { /* the same for all blocks */
        if (first) {
            s->stop = broken ? BROKEN : LIMIT;
            s->ending = 1;
        }
        return;
    }
    const T alpha = rho / pq;
    two<T> part = {};
    each(a.n, [&](int64_t i) {
        const T r = a.r[i] - alpha * a.q[i];
        a.r[i] = r;
        part += two<T>{r * r, a.z == nullptr ? r * a.z_of(i, r) : T()};
    });
    if (!bring(a, part))
        return;
    s->rr = s->sums.re;
    s->alpha = alpha;
    s->iterations++;
    if (a.z == nullptr) {
        s->rho = s->sums.im;
        s->beta = s->rho / rho;
    }
    note(s);
}

/* Given z = M^-1 r: rho = r'z, beta. */
template <typename T> __global__ void __launch_bounds__(THREADS) step_rho(system<T> a)
{
    state<T> *const s = a.s;
    two<T> part = {};
    let_next_begin();
    await_kernel_before();
    if (s->stop != GOES_ON)
        return;
    each(a.n, [&](int64_t i) { part += two<T>{a.r[i] * a.z[i], T()}; });
    if (!bring(a, part))
        return;
    s->beta = s->sums.re / s->rho;
    s->rho = s->sums.re;
}

/* x = x + alpha p, p = z + beta p */
template <typename T> __global__ void __launch_bounds__(THREADS) step_direction(system<T> a)
{
    let_next_begin();
    await_kernel_before();
    if (a.s->stop != GOES_ON)
        return;
    const T alpha = a.s->alpha, beta = a.s->beta;
    each(a.n, [&](int64_t i) {
        const T p = a.p[i];
        a.x[i] += alpha * p;
        a.p[i] = a.z_of(i, a.r[i]) + beta * p;
    });
}

} // namespace cg_fused

#endif
