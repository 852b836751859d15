/* Conjugate gradients, rung 2 on CUDA: a step in three kernels.
 *
 * Idea: whatever can be done while an element is at hand is done then. The product has p'q as it goes (its epilogue);
 * the second kernel updates r and has the squares of the new r; the third updates x and p. No kernel finishes its sum:
 * each block leaves a part, and each block of the next kernel adds the parts up for itself, in the same order, while
 * its elements are on their way (of very large systems the parts are first made fewer); the end of a kernel is all the
 * waiting there is. So each block knows alpha and beta, and whether that was the last step; the host learns of it
 * later. Launches: 3; vector passes a step, beside the product: r: 2 + 1 (q), x: 2, p: 2 + 1 (r) = 8; with Jacobi's
 * preconditioner 2 more, with another its own and 3. Changed since rung 1: launches (from 9), passes (from 10), and no
 * wait. The host's side: cg_3_graph.cu.
 *
 * What block 0 writes down for later kernels no block of its own kernel reads: step_residual reads what step_direction
 * wrote and the other way round.
 *
 * The end: steps are queued before it is known whether they are needed. `ending` says that no step is to follow: the
 * kernels of later ones return at once, so that x, the counts and the sums are those of exactly as many steps as rung 1
 * makes.
 *
 * Bits: how many elements a block has, and so the parts, follows from n alone.
 * Hestenes & Stiefel 1952; Saad 2003, algorithm 9.1.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_2_FUSED_CUH
#define CG_2_FUSED_CUH

#include "spmv_4_tiles_epilogue.cuh"

namespace cg_fused
{

/* FEW_BLOCKS: of a kernel over vectors, two for each multiprocessor of an H100, since each of them adds up all the
 * parts of the sum before; MANY_BLOCKS: for vectors of more than FEW_FOR elements, where that does not show. TOP: a
 * block adds up no more parts than that; FOLDED: where there are more, a kernel of its own makes so many of them. */
enum {
    BLOCK = 512,
    FEW_BLOCKS = 264,
    FEW_FOR = 1 << 21,
    MANY_BLOCKS = 4 * FEW_BLOCKS,
    RING = 32,
    TOP = 4096,
    FOLDED = 256
};

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
    /* of begin and step_direction */
    T rr, rho;            /* rho: r'z, which is r'r without a preconditioner */
    double start, enough; /* norms: of the first residual, of the last one wanted */
    long long iterations, most;
    T history[RING]; /* r'r after iteration i, at i % RING */
    /* of step_residual, but for ending */
    T pq, alpha, rho_before;
    long long iterations_then;
    int stop, ending;
};

/* Parts of a sum. */
template <typename T> struct parts_of {
    const T *at;
    int count;
};

/* z_i = z[i] if there is a z, else scale[i] r_i if there is a scale, else r_i. */
template <typename T> struct system {
    state<T> *s;
    T *x, *r, *p;
    const T *q, *scale, *z;
    int64_t n;
    parts_of<T> pq, rz;       /* of p'q; of r'z where there is a z */
    parts_of<two<T>> squares; /* of r'r and, without a z, r'z */
    two<T> *left;             /* parts of them, one a block */
    T *rz_parts;

    __device__ T z_of(int64_t i, T residual) const
    {
        return z != nullptr ? z[i] : scale != nullptr ? scale[i] * residual : residual;
    }
};

/* The sum of a block's values, for its first warp. */
template <typename T> __device__ T sum_block(T value)
{
    constexpr int BLOCK_WARPS = BLOCK / WARP;
    __shared__ T of_warps[BLOCK_WARPS];
    const int thread = (int)threadIdx.x;
    const T sum = tiles::warp_sum(value, WARP);
    __syncthreads(); /* all have read what was there */
    if (thread % WARP == 0)
        of_warps[thread / WARP] = sum;
    __syncthreads();
    return tiles::warp_sum(thread % WARP < BLOCK_WARPS ? of_warps[thread % WARP] : T(), BLOCK_WARPS);
}

/* The sum of the parts, for all threads, in an order that their number fixes. */
template <typename T> __device__ T sum_parts(const parts_of<T> &parts)
{
    T sum = T();
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < parts.count; i += BLOCK)
        sum += parts.at[i];
    return shuffle_by(sum_block(sum), [](auto word) { return __shfl_sync(0xffffffffu, word, 0); });
}

/* Leaves the block's part of the squares. */
template <typename T> __device__ void leave(const system<T> &a, two<T> part)
{
    const two<T> sum = sum_block(part);
    if (threadIdx.x == 0)
        a.left[blockIdx.x] = sum;
}

/* FOLDED parts from many: one a block, each of a run of them. */
template <typename T> __global__ void __launch_bounds__(BLOCK) fold(const T *from, int64_t count, T *to)
{
    let_next_begin();
    await_kernel_before();
    const int64_t behind = count * (blockIdx.x + 1) / gridDim.x;
    T sum = T();
    for (int64_t i = count * blockIdx.x / gridDim.x + threadIdx.x; i < behind; i += BLOCK)
        sum += from[i];
    sum = sum_block(sum);
    if (threadIdx.x == 0)
        to[blockIdx.x] = sum;
}

/* The elements of a thread: its block has about as many as any other, whole lines; of those at most EACH at a time, at
 * i, i + BLOCK, ... before behind. */
template <int EACH> struct own_elements {
    int64_t i, behind;

    __device__ explicit own_elements(int64_t n)
    {
        const int64_t lines = (n + WARP - 1) / WARP, end = lines * (blockIdx.x + 1) / gridDim.x * WARP;
        i = lines * blockIdx.x / gridDim.x * WARP + threadIdx.x;
        behind = end < n ? end : n;
    }

    /* The next ones; are there any for the block? */
    __device__ bool next()
    {
        i += BLOCK * EACH;
        return i - (int)threadIdx.x < behind;
    }

    template <typename T> __device__ void load(const T *from, T (&to)[EACH]) const
    {
#pragma unroll
        for (int k = 0; k < EACH; k++)
            to[k] = i + k * BLOCK < behind ? from[i + k * BLOCK] : T();
    }

    /* body(number of the element among the thread's, its place) */
    template <typename Body> __device__ void each(const Body &body) const
    {
#pragma unroll
        for (int k = 0; k < EACH; k++)
            if (i + k * BLOCK < behind)
                body(k, i + k * BLOCK);
    }
};

/* Given r (and z): p = z, unless the recurrence continues with the p that there is. */
template <typename T, int EACH> __global__ void __launch_bounds__(BLOCK) begin(system<T> a, bool continues)
{
    two<T> part = {};
    own_elements<EACH> own(a.n);
    let_next_begin();
    await_kernel_before();
    do
        own.each([&](int, int64_t i) {
            const T r = a.r[i], z = a.z_of(i, r);
            part += two<T>{r * r, r * z};
            if (!continues)
                a.p[i] = z;
        });
    while (own.next());
    leave(a, part);
}

/* After a step, or before the first: is the residual small enough? One thread. */
template <typename T> __device__ void note(state<T> *s)
{
    s->history[s->iterations % RING] = s->rr;
    const double norm = sqrt((double)s->rr);
    if (isfinite(norm) && norm <= s->enough)
        s->ending = 1;
}

/* All of the state, after begin. One block. */
template <typename T>
__global__ void __launch_bounds__(BLOCK)
    begin_state(system<T> a, double tolerance, double roundoff, long long iterations, long long most)
{
    let_next_begin();
    await_kernel_before();
    const two<T> sums = sum_parts(a.squares);
    state<T> *const s = a.s;
    if (threadIdx.x != 0)
        return;
    s->rr = sums.re;
    s->rho = sums.im;
    s->start = sqrt((double)s->rr);
    s->enough = fmax(tolerance, roundoff * s->start);
    s->iterations = iterations;
    s->most = most;
    s->pq = 0;
    s->stop = GOES_ON;
    s->ending = 0;
    note(s);
}

/* alpha = rho / p'q, r = r - alpha q, and parts of the squares. */
template <typename T, int EACH> __global__ void __launch_bounds__(BLOCK, 2) step_residual(system<T> a)
{
    state<T> *const s = a.s;
    const bool first = blockIdx.x == 0 && threadIdx.x == 0;
    own_elements<EACH> own(a.n);
    T r[EACH], q[EACH];
    let_next_begin();
    await_kernel_before();
    const int ending = s->ending;
    const T rho = s->rho, rr = s->rr;
    const long long iterations = s->iterations, most = s->most;
    own.load(a.r, r);
    own.load(a.q, q);
    const T pq = sum_parts(a.pq);
    const bool broken = !isfinite(rr) || !isfinite(rho) || !isfinite(pq) || rho <= 0 || pq <= 0;
    const bool limit = iterations == most;
    /* the same for all blocks, but those that come late to read `ending`, which then stands for broken or limit */
    if (ending != 0 || broken || limit) {
        if (first) {
            s->stop = ending != 0 ? (s->stop == GOES_ON ? (int)ENDED : s->stop) : broken ? (int)BROKEN : (int)LIMIT;
            if (ending == 0)
                s->pq = pq;
            s->ending = 1;
        }
        return;
    }
    const T alpha = rho / pq;
    two<T> part = {};
    for (;;) {
        own.each([&](int k, int64_t i) {
            r[k] -= alpha * q[k];
            a.r[i] = r[k];
            part += two<T>{r[k] * r[k], a.z == nullptr ? r[k] * a.z_of(i, r[k]) : T()};
        });
        if (!own.next())
            break;
        own.load(a.r, r);
        own.load(a.q, q);
    }
    leave(a, part);
    if (first) {
        s->pq = pq;
        s->alpha = alpha;
        s->rho_before = rho;
        s->iterations_then = iterations + 1;
    }
}

/* Given z = M^-1 r: parts of r'z, one a block, each of a run of elements. */
template <typename T> __global__ void __launch_bounds__(BLOCK) step_rho(system<T> a)
{
    let_next_begin();
    await_kernel_before();
    if (a.s->stop != GOES_ON)
        return;
    T part = T();
    const int64_t tiles = (a.n - 1) / BLOCK + 1;
    for (int64_t t = tiles * blockIdx.x / gridDim.x; t < tiles * (blockIdx.x + 1) / gridDim.x; t++) {
        const int64_t i = t * BLOCK + threadIdx.x;
        if (i < a.n)
            part += a.r[i] * a.z[i];
    }
    part = sum_block(part);
    if (threadIdx.x == 0)
        a.rz_parts[blockIdx.x] = part;
}

/* beta = rho / (rho before), x = x + alpha p, p = z + beta p */
template <typename T, int EACH> __global__ void __launch_bounds__(BLOCK, 2) step_direction(system<T> a)
{
    state<T> *const s = a.s;
    own_elements<EACH> own(a.n);
    T r[EACH], p[EACH], x[EACH];
    let_next_begin();
    await_kernel_before();
    if (s->stop != GOES_ON)
        return;
    const T alpha = s->alpha, rho_before = s->rho_before;
    own.load(a.r, r);
    own.load(a.p, p);
    own.load(a.x, x);
    const two<T> squares = sum_parts(a.squares);
    const T rho = a.z != nullptr ? sum_parts(a.rz) : squares.im;
    const T beta = rho / rho_before;
    for (;;) {
        own.each([&](int k, int64_t i) {
            a.x[i] = x[k] + alpha * p[k];
            a.p[i] = a.z_of(i, r[k]) + beta * p[k];
        });
        if (!own.next())
            break;
        own.load(a.r, r);
        own.load(a.p, p);
        own.load(a.x, x);
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        s->rr = squares.re;
        s->rho = rho;
        s->iterations = s->iterations_then;
        note(s);
    }
}

} // namespace cg_fused

#endif
