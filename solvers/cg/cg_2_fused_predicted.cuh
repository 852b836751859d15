/* Conjugate gradients, rung 2 on CUDA, for one right-hand side: a step in two kernels.
 *
 * Idea:       r - alpha q is orthogonal to r, and r'q = p'q. So its square is alpha^2 q'q - r'r, and
 *             beta is known before r is updated, if the product adds up q'q beside p'q. One kernel
 *             does the rest of a step: r = r - alpha q, p = r + beta p, and x. It also adds up r'r:
 *             alpha and the test whether the solve has ended use the true sum, so errors of the
 *             prediction do not accumulate.
 * Bytes:      vector passes a step, besides the product: r: 2, q: 1, p: 2, x: 2 = 7, with two
 *             directions 6.5; 1 more with Jacobi's preconditioner, and 1 in the product.
 * Changed:    since cg_2_fused.cuh: one pass less, one launch less, one chain of sums less.
 * Wins when:  the product leaves sums of squares (plan_product.squares), and the preconditioner is
 *             none or jacobi. With ranks it also saves an exchange of sums, from 524,288 rows on
 *             (SPMV_CG_PREDICT_FROM). Not for inner iterations in f32: they continue with another
 *             residual, so r'q is not p'q.
 * Bits:       the elements of a block, and so the parts, depend on n alone; with ranks a part has the
 *             rows of a chunk.
 * Source:     Meurant 1987, "Multitasking the conjugate gradient method on the CRAY X-MP/48"; Chen
 *             and Carson 2020, "Predict-and-recompute conjugate gradient variants".
 *
 * Jacobi's preconditioner D^-1: r'D^-1 r and q'D^-1 q take the place of r'r and q'q.
 *
 * Lost conjugacy: rounding makes (p before)'q differ from 0. Let E = alpha beta (p before)'q. Then
 * the next r'z is alpha^2 q'q - r'z + 2 E, and with beta = (alpha^2 q'q - r'z + E) / r'z the next
 * direction is conjugate to p. E follows from the error of the last prediction: it is
 * (alpha / alpha before) beta (predicted r'z - r'z).
 *
 * Cancellation: the prediction has an error of some roundoffs times r'r. So beta has an absolute
 * error of some roundoffs, also where the residual falls by orders of magnitude: then p is r but for
 * a part of the old direction as small as roundoff. The sums of the next step are true again. A
 * negative beta becomes 0.
 *
 * Range: q'q would overflow or vanish where elements of A are far from 1. So the product scales q by
 * alpha of the step before. The first step has none. If its sum is out of range, beta is 0 and the
 * second step is a first one. If only a part of it vanished, the lost conjugacy is known as above.
 *
 * A step reads parts of sums and a struct turn, and writes others for the next step: blocks that
 * begin late still read. The two sets alternate.
 *
 * Ranks: all four sums of a step are exchanged together, between the product and this kernel.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_2_FUSED_PREDICTED_CUH
#define CG_2_FUSED_PREDICTED_CUH

#include "solvers/cg/cg_2_fused.cuh"

namespace cg_predicted
{

using cg_fused::BLOCK;
using cg_fused::parts_of;
using cg_fused::parts_of_x;
using cg_fused::two;

/* BYTES: of each vector that a thread has at a time; so many elements are the `each` of a type. */
enum { BYTES = 16 };
template <typename T> constexpr int each = BYTES / (int)sizeof(T);

/* What a step hands on to the next one. Before the first: no steps, alpha 1, the others 0. */
template <typename T> struct turn {
    long long iterations; /* steps made */
    bool ended;
    T alpha, beta, expected; /* beta made the present direction; expected: r'z as predicted */
};

template <typename T> struct system : cg_fused::system<T> {
    parts_of<T> qq;    /* of (alpha q)'(alpha q) with the alpha of `now`; as many as of p'q */
    two<T> *next_left; /* the parts of the squares of the next residual */
    turn<T> *now, *then;
};

template <typename T> using sums = part_sums::step_sums<T>;

/* The same with ranks. The sums of all ranks are one number each, or with one rank the parts of its chunks. */
template <typename T> struct system_of_chunks : system<T> {
    const sums<T> *all;
    int count;
};

template <typename T> __device__ sums<T> sum_all(const system_of_chunks<T> &a)
{
    return part_sums::sum_numbers<sums<T>>(a.count, [&](int i) { return a.all[i]; });
}

template <typename T> __device__ sums<T> sum_all(const system<T> &a)
{
    const int count = a.squares.count < a.pq.count ? a.pq.count : a.squares.count;
    return part_sums::sum_numbers<sums<T>>(count, [&](int i) {
        return sums<T>{i < a.squares.count ? a.squares.at[i] : two<T>(),
                       i < a.pq.count ? two<T>{a.pq.at[i], a.qq.at[i]} : two<T>()};
    });
}

/* One block, before the first step. */
template <typename T> __global__ void __launch_bounds__(BLOCK) begin_turn(system<T> a)
{
    let_next_begin();
    await_kernel_before();
    if (threadIdx.x == 0)
        *a.now = turn<T>{0, a.s->ending != 0, T(1), T(), T()};
}

/* The step after `now`. rho: r'z; squares: the sum of a.qq. */
template <typename T> __device__ turn<T> predict(const turn<T> &now, T rho, T pq, T squares)
{
    turn<T> then = {now.iterations + 1, false, rho / pq, T(), T()};
    const T ratio = then.alpha / now.alpha, lost = ratio * now.beta * (now.expected - rho);
    const T beta = (ratio * ratio * squares - rho + lost) / rho;
    if (isfinite(beta) && beta > 0) {
        then.beta = beta;
        then.expected = beta * rho + lost;
    }
    return then;
}

/* COLUMN_RUNS, or why no step follows. All blocks decide alike. */
template <typename T> __device__ int stop_of(const cg_fused::state<T> &s, const turn<T> &now, const sums<T> &sum)
{
    const T rr = sum.squares.re, rho = sum.squares.im, pq = sum.products.re;
    const double norm = sqrt((double)rr);
    if (isfinite(norm) && norm <= s.enough)
        return COLUMN_DONE;
    if (!isfinite(rr) || !isfinite(rho) || !isfinite(pq) || rho <= 0 || pq <= 0)
        return COLUMN_BROKEN;
    return now.iterations == s.most ? COLUMN_LIMIT : COLUMN_RUNS;
}

/* Writes the state of the solve: the residual before this step, and the step unless the solve ends. For one
 * thread. */
template <typename T>
__device__ void tell(const system<T> &a, const turn<T> &now, const turn<T> &then, const sums<T> &sum, int stop)
{
    cg_fused::state<T> *const s = a.s;
    s->rr = sum.squares.re;
    s->rho = sum.squares.im;
    s->pq = sum.products.re;
    s->iterations = now.iterations;
    s->history[now.iterations % cg_blocks::RING] = sum.squares.re;
    s->stop = stop;
    *a.then = then;
    if (stop != COLUMN_RUNS) {
        s->ending = 1;
        a.then->ended = true;
        return;
    }
    s->alpha = then.alpha;
    s->iterations_then = then.iterations;
}

/* The first elements of a thread, and the next ones: as next of own_elements. Without ranks blocks take tiles
 * of elements in turns, and each leaves one part; with ranks they take chunks (own_elements). */
template <typename T> __device__ auto first_elements(const system<T> &a)
{
    return cg_fused::own_elements<each<T>>(blockIdx.x * (int64_t)(each<T> * BLOCK) + threadIdx.x, a.n);
}

template <typename T> __device__ auto first_elements(const system_of_chunks<T> &a)
{
    return cg_fused::own_elements<each<T>>(a);
}

template <typename T, typename Elements> __device__ bool next_elements(const system<T> &a, Elements &own, bool *ended)
{
    own.i += (int64_t)gridDim.x * (each<T> * BLOCK);
    *ended = own.i - (int)threadIdx.x >= a.n;
    return !*ended;
}

template <typename T, typename Elements>
__device__ bool next_elements(const system_of_chunks<T> &a, Elements &own, bool *ended)
{
    return own.next(a, ended);
}

/* Hands on the part of the squares that has ended. */
template <typename T, typename Elements> __device__ void end_part(const system<T> &a, const Elements &, two<T> part)
{
    part = part_sums::sum_block(part);
    if (threadIdx.x == 0)
        a.next_left[blockIdx.x] = part;
}

template <typename T, typename Elements>
__device__ void end_part(const system_of_chunks<T> &a, const Elements &own, two<T> part)
{
    part = part_sums::sum_block(part);
    if (threadIdx.x == 0)
        a.next_left[own.turn_before()] = part;
}

/* The vector kernel of a step. */
template <typename T, parts_of_x PARTS, typename System> __global__ void __launch_bounds__(BLOCK, 2) step(System a)
{
    constexpr bool ADDS = PARTS != parts_of_x::NONE, TWO = PARTS == parts_of_x::TWO;
    constexpr bool CHUNKS = !std::is_same<System, system<T>>::value; /* a block may have several parts */
    constexpr int EACH = each<T>;
    const bool first = blockIdx.x == 0 && threadIdx.x == 0;
    let_next_begin();
    await_kernel_before();
    const turn<T> now = *a.now;
    if (now.ended) {
        if (first)
            *a.then = now;
        return;
    }
    auto own = first_elements(a);
    T r[EACH], q[EACH], p[EACH], x[EACH], before[EACH];
    const auto load = [&] {
        own.load(a.r, r);
        own.load(a.q, q);
        own.load(a.p, p);
        if constexpr (ADDS)
            own.load(a.x, x);
        if constexpr (TWO)
            own.load(a.next, before);
    };
    load();
    const sums<T> sum = sum_all(a);
    const int stop = stop_of(*a.s, now, sum);
    const turn<T> then = predict(now, sum.squares.im, sum.products.re, sum.products.im);
    if (first)
        tell(a, now, then, sum, stop);
    if (stop != COLUMN_RUNS)
        return;
    two<T> part = {};
    for (;;) {
        own.each([&](int k, int64_t i) {
            r[k] -= then.alpha * q[k];
            const T z = a.z_of(i, r[k]);
            a.r[i] = r[k];
            part += two<T>{r[k] * r[k], r[k] * z};
            if constexpr (TWO)
                x[k] += now.alpha * before[k];
            if constexpr (ADDS)
                a.x[i] = x[k] + then.alpha * p[k];
            a.next[i] = z + then.beta * p[k];
        });
        bool ended;
        const bool more = next_elements(a, own, &ended);
        if (CHUNKS && ended) {
            end_part(a, own, part);
            part = {};
        }
        if (!more)
            break;
        load();
    }
    if (!CHUNKS)
        end_part(a, own, part);
}

} // namespace cg_predicted

#endif
