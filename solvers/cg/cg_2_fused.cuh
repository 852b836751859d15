/* Conjugate gradients, rung 2 on CUDA: a step in three kernels.
 *
 * Idea:       each kernel does all the work that its elements allow while they are in registers:
 *             1. q = A p, with p'q in the product's epilogue
 *             2. r = r - alpha q, and r'r
 *             3. x = x + alpha p, p = z + beta p
 *             No kernel finishes its own sum. Each block stores a part, and every block of the next
 *             kernel adds all parts in the same order while its elements are loaded. (Very large
 *             systems first fold the parts to fewer.) So each block computes alpha, beta and
 *             whether the solve has ended, and the end of a kernel is the only barrier. The host
 *             reads the result later.
 * Launches:   3 a step.
 * Bytes:      vector passes a step, besides the product: r: 2 + 1 (q), x: 2, p: 2 + 1 (r) = 8; 2
 *             more with Jacobi's preconditioner; with another preconditioner its own passes and 3.
 *             With two directions (below) x: 2.5 in two steps, so 7.5.
 * Changed:    since rung 1, 3 launches instead of 9, 8 passes instead of 10, no wait.
 * Wins when:  over rung 1, always. Rung 3 runs the same kernels with fewer launches.
 * Bits:       the number of elements of a block, and so the parts, depends on n alone.
 * Source:     Hestenes and Stiefel 1952; Saad 2003, algorithm 9.1.
 *
 * Host side: cg_3_graph.cu. Several right-hand sides: cg_2_fused_columns.cuh. Without ranks, and with the
 * preconditioner none or jacobi, two of the kernels become one: cg_2_fused_predicted.cuh.
 *
 * Two directions: for large systems, where memory limits a step, p alternates between two vectors, and
 * every second step adds the parts of two steps to x, in their order: x = (x + alpha' p') + alpha p.
 * So the bits of x stay. After an odd number of steps `catch_up` adds the missing part.
 *
 * Ranks: cg_3_graph.cu. Where kernels of other ranks can be reached, the kernels take a system_of_ranks.
 *
 * Block 0 writes scalars for later kernels only: step_residual reads what step_direction wrote, and
 * the reverse.
 *
 * The end: the host queues steps before the device has decided whether they are needed. `ending`
 * states that no step follows. The kernels of later steps return at once, so x, the counts and the
 * sums are those of exactly as many steps as rung 1 makes. A kernel may load its operands before it
 * reads `ending`, to hide the latency. So a solve that has ended before its first step loads q and
 * the parts of p'q, which no product wrote: `begin` sets them to 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_2_FUSED_CUH
#define CG_2_FUSED_CUH

#include "product/cuda/tiles/spmv_4_tiles_epilogue.cuh"
#include "solvers/cg/cg_blocks.cuh"
#include "solvers/exchange/exchange_view.cuh"

/* The least number of elements for two directions: vectors that exceed the last-level cache. Tests build
 * with few. */
#ifndef SPMV_CG_TWO_FROM
#define SPMV_CG_TWO_FROM (1 << 21)
#endif

/* With ranks: the least number of rows of the whole matrix for steps with one vector kernel. */
#ifndef SPMV_CG_PREDICT_FROM
#define SPMV_CG_PREDICT_FROM (1 << 19)
#endif

#ifndef SPMV_CG_FOLDED
#define SPMV_CG_FOLDED 256
#endif

namespace cg_fused
{

/* FEW_BLOCKS: blocks of a vector kernel, two for each multiprocessor of an H100. There are few
 * because each block adds up all parts of the previous sum. MANY_BLOCKS: the same for vectors of
 * more than FEW_FOR elements, where that cost does not show. TOP: the most parts that a block adds
 * up. FOLDED: the number of parts to which a separate kernel folds more than TOP, and of the blocks
 * of step_rho. */
enum {
    BLOCK = part_sums::BLOCK,
    FEW_BLOCKS = 264,
    FEW_FOR = 1 << 21,
    MANY_BLOCKS = 4 * FEW_BLOCKS,
    TOP = 4096,
    FOLDED = SPMV_CG_FOLDED
};

using part_sums::two; /* sums: r'r and r'z */

template <typename T> using state = cg_blocks::column<T>;

/* The parts of a sum, one for each block of the kernel that made them. */
template <typename T> struct parts_of {
    const T *at;
    int count;
};

/* z_i = z[i] if there is a z, else scale[i] r_i if there is a scale, else r_i. */
template <typename T> struct system {
    state<T> *s;
    T *x, *r, *p, *q;
    T *next; /* where the next direction goes: p itself, or with two directions the other one */
    const T *scale, *z;
    int64_t n;
    parts_of<T> pq, rz;       /* of p'q; of r'z where there is a z */
    parts_of<two<T>> squares; /* of r'r and, without a z, r'z */
    two<T> *left;             /* the parts of the squares, writable */
    T *rz_parts;              /* the parts of r'z, writable */
    const int64_t *chunk;     /* with ranks: part c has rows chunk[c] ... chunk[c + 1] - 1; else NULL */
    int chunks;               /* 0 without ranks */

    __device__ T z_of(int64_t i, T residual) const
    {
        return z != nullptr ? z[i] : scale != nullptr ? scale[i] * residual : residual;
    }
};

/* The same where the kernels of a step exchange parts of sums and elements with those of other ranks
 * (exchange_view.cuh). */
template <typename T> struct system_of_ranks : system<T> {
    exchange_view view;
};

/* The sum of the parts. All threads get it. */
template <typename T> __device__ T sum_parts(const parts_of<T> &parts)
{
    return part_sums::sum_numbers<T>(parts.count, [&](int i) { return parts.at[i]; });
}

/* Stores part k of the squares. */
template <typename T> __device__ void leave(const system<T> &a, int k, two<T> part)
{
    const two<T> sum = part_sums::sum_block(part);
    if (threadIdx.x == 0)
        a.left[k] = sum;
}

/* Where a step gets sums, and where it hands on parts of sums and its direction. Without other ranks, or
 * where kernels between exchange them: memory. */
template <typename T> __device__ int chunk_at(const system<T> &, int turn)
{
    return turn;
}

template <typename T> __device__ unsigned sums_before(const system<T> &)
{
    return 0;
}

template <typename T> __device__ unsigned sums_begun(const system<T> &)
{
    return 0;
}

template <typename T> __device__ T sum_pq(const system<T> &a, unsigned)
{
    return sum_parts(a.pq);
}

template <typename T> __device__ two<T> sum_squares(const system<T> &a, unsigned)
{
    return sum_parts(a.squares);
}

template <typename T> __device__ void hand_on(const system<T> &a, int k, two<T> part, unsigned)
{
    leave(a, k, part);
}

template <typename T> __device__ void put_turn(const system<T> &, int, unsigned)
{
}

template <typename T> __device__ void set_begun(const system<T> &, unsigned)
{
}

template <typename T> __device__ void set_sums(const system<T> &, unsigned)
{
}

/* With kernels of other ranks. p'q has the number sums_before + 1, the squares have the next one. */
template <typename T> __device__ int chunk_at(const system_of_ranks<T> &a, int turn)
{
    return a.view.order[turn];
}

template <typename T> __device__ unsigned sums_before(const system_of_ranks<T> &a)
{
    return a.view.counters->sums;
}

template <typename T> __device__ unsigned sums_begun(const system_of_ranks<T> &a)
{
    return a.view.counters->begun;
}

template <typename T> __device__ T sum_pq(const system_of_ranks<T> &a, unsigned number)
{
    return exchanging::collect<T>(a.view, number);
}

template <typename T> __device__ two<T> sum_squares(const system_of_ranks<T> &a, unsigned number)
{
    return exchanging::collect<two<T>>(a.view, number);
}

template <typename T> __device__ void hand_on(const system_of_ranks<T> &a, int k, two<T> part, unsigned number)
{
    const two<T> sum = part_sums::broadcast(part_sums::sum_block(part));
    if (threadIdx.x < warp_lanes)
        exchanging::publish(a.view, k, sum, number);
}

/* Sends the elements of the direction in the block's chunk that others need. Chunks with some come first,
 * so they arrive while the kernel goes on. */
template <typename T> __device__ void put_turn(const system_of_ranks<T> &a, int turn, unsigned number)
{
    if (turn < a.view.sending)
        exchanging::put_chunk(a.view, turn, (const T *)a.next, number + a.view.counters->fetches);
}

template <typename T> __device__ void set_begun(const system_of_ranks<T> &a, unsigned number)
{
    a.view.counters->begun = number;
}

template <typename T> __device__ void set_sums(const system_of_ranks<T> &a, unsigned number)
{
    a.view.counters->sums = number;
}

/* Folds count parts to FOLDED: each block adds up a contiguous range. The same for the parts of a second sum, unless
 * squares is NULL. */
template <typename T>
__global__ void __launch_bounds__(BLOCK) fold(const T *from, const T *squares, int64_t count, T *to, T *to_squares)
{
    let_next_begin();
    await_kernel_before();
    const int64_t behind = count * (blockIdx.x + 1) / gridDim.x;
    two<T> sum = {};
    for (int64_t i = count * blockIdx.x / gridDim.x + threadIdx.x; i < behind; i += BLOCK)
        sum += two<T>{from[i], squares != nullptr ? squares[i] : T()};
    sum = part_sums::sum_block(sum);
    if (threadIdx.x == 0) {
        to[blockIdx.x] = sum.re;
        if (squares != nullptr)
            to_squares[blockIdx.x] = sum.im;
    }
}

/* The elements of a thread. Without ranks each block has about the same number, in whole warps of
 * elements, and makes one part of a sum. With ranks it has chunks b, b + gridDim.x, ... and makes the
 * part of each. A thread takes EACH elements at a time: i, i + BLOCK, ... below behind. It adds them in
 * this order, so sums do not depend on EACH. */
template <int EACH> struct own_elements {
    int64_t i, behind;
    int turn;

    /* first, first + BLOCK, ... below end */
    __device__ own_elements(int64_t first, int64_t end) : i(first), behind(end), turn(0)
    {
    }

    template <typename System> __device__ explicit own_elements(const System &a) : turn((int)blockIdx.x)
    {
        if (a.chunk != nullptr) {
            begin_chunk(a);
            return;
        }
        const int64_t n = a.n;
        const int64_t lines = (n + warp_lanes - 1) / warp_lanes,
                      end = lines * (blockIdx.x + 1) / gridDim.x * warp_lanes;
        i = lines * blockIdx.x / gridDim.x * warp_lanes + threadIdx.x;
        behind = end < n ? end : n;
    }

    template <typename System> __device__ void begin_chunk(const System &a)
    {
        const int chunk = chunk_at(a, turn);
        i = a.chunk[chunk] + threadIdx.x;
        behind = a.chunk[chunk + 1];
    }

    /* Moves on to the next elements. *ended: the part has none left; it was that of turn_before. False
     * when the block has none left. */
    template <typename System> __device__ bool next(const System &a, bool *ended)
    {
        i += BLOCK * EACH;
        *ended = i - (int)threadIdx.x >= behind;
        if (!*ended)
            return true;
        turn += (int)gridDim.x;
        if (turn >= a.chunks)
            return false;
        begin_chunk(a);
        return true;
    }

    __device__ int turn_before() const
    {
        return turn - (int)gridDim.x;
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

/* Given r (and z): p = z, unless the recurrence continues with the present p. Stores the parts of
 * the squares. Sets q and the parts of p'q, as the product leaves them, to 0: see "The end"
 * above. */
template <typename T, int EACH>
__global__ void __launch_bounds__(BLOCK) begin(system<T> a, bool continues, T *product_parts, int64_t count)
{
    two<T> part = {};
    own_elements<EACH> own(a);
    let_next_begin();
    await_kernel_before();
    for (bool more = true; more;) {
        bool ended;
        own.each([&](int, int64_t i) {
            const T r = a.r[i], z = a.z_of(i, r);
            part += two<T>{r * r, r * z};
            a.q[i] = T();
            if (!continues)
                a.p[i] = z;
        });
        more = own.next(a, &ended);
        if (ended) {
            leave(a, own.turn_before(), part);
            part = {};
        }
    }
    for (int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x; i < count; i += (int64_t)gridDim.x * BLOCK)
        product_parts[i] = T();
}

/* Ends the solve when the residual is small enough. For one thread, after a step or before the
 * first. */
template <typename T> __device__ void note(state<T> *s)
{
    s->history[s->iterations % cg_blocks::RING] = s->rr;
    const double norm = sqrt((double)s->rr);
    if (isfinite(norm) && norm <= s->enough)
        s->ending = 1;
}

/* Writes the whole state, after begin. One block. */
template <typename T>
__global__ void __launch_bounds__(BLOCK) begin_state(system<T> a, double tolerance, double roundoff, long long most)
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
    s->iterations = s->iterations_then = 0;
    s->most = most;
    s->pq = 0;
    s->stop = COLUMN_RUNS;
    s->ending = 0;
    note(s);
}

/* alpha = rho / p'q, r = r - alpha q, and parts of the squares. */
template <typename T, int EACH, typename System = system<T>>
__global__ void __launch_bounds__(BLOCK, 2) step_residual(System a)
{
    state<T> *const s = a.s;
    const bool first = blockIdx.x == 0 && threadIdx.x == 0;
    own_elements<EACH> own(a);
    T r[EACH], q[EACH];
    let_next_begin();
    await_kernel_before();
    const int ending = s->ending;
    const T rho = s->rho, rr = s->rr;
    const long long iterations = s->iterations, most = s->most;
    own.load(a.r, r);
    own.load(a.q, q);
    const unsigned sums = sums_before(a);
    const T pq = sum_pq(a, sums + 1);
    const bool broken = !isfinite(rr) || !isfinite(rho) || !isfinite(pq) || rho <= 0 || pq <= 0;
    const bool limit = iterations == most;
    /* All blocks decide alike: a block that reads `ending` late sees the 1 that block 0 set for
     * `broken` or `limit`. */
    if (ending != 0 || broken || limit) {
        if (first) {
            s->stop = ending != 0 ? (s->stop == COLUMN_RUNS ? (int)COLUMN_DONE : s->stop)
                      : broken    ? (int)COLUMN_BROKEN
                                  : (int)COLUMN_LIMIT;
            if (ending == 0)
                s->pq = pq;
            s->ending = 1;
        }
        return;
    }
    const T alpha = rho / pq;
    two<T> part = {};
    for (bool more = true; more;) {
        own.each([&](int k, int64_t i) {
            r[k] -= alpha * q[k];
            a.r[i] = r[k];
            part += two<T>{r[k] * r[k], a.z == nullptr ? r[k] * a.z_of(i, r[k]) : T()};
        });
        bool ended;
        more = own.next(a, &ended);
        if (more) {
            own.load(a.r, r);
            own.load(a.q, q);
        }
        if (ended) {
            hand_on(a, chunk_at(a, own.turn_before()), part, sums + 2);
            part = {};
        }
    }
    if (first) {
        set_begun(a, sums + 2);
        s->pq = pq;
        s->alpha_before = s->alpha;
        s->alpha = alpha;
        s->rho_before = rho;
        s->iterations_then = iterations + 1;
    }
}

/* Given z = M^-1 r: the parts of r'z. Without ranks each block has a contiguous range of elements. */
template <typename T> __global__ void __launch_bounds__(BLOCK) step_rho(system<T> a)
{
    let_next_begin();
    await_kernel_before();
    if (a.s->stop != COLUMN_RUNS)
        return;
    const bool ranks = a.chunk != nullptr;
    const int64_t tiles = (a.n - 1) / BLOCK + 1;
    for (int64_t k = blockIdx.x; k < (ranks ? a.chunks : gridDim.x); k += gridDim.x) {
        const int64_t begin = ranks ? a.chunk[k] : tiles * k / gridDim.x * BLOCK;
        const int64_t behind = ranks ? a.chunk[k + 1] : tiles * (k + 1) / gridDim.x * BLOCK;
        T part = T();
        for (int64_t i = begin + threadIdx.x; i < behind && i < a.n; i += BLOCK)
            part += a.r[i] * a.z[i];
        part = part_sums::sum_block(part);
        if (threadIdx.x == 0)
            a.rz_parts[k] = part;
    }
}

/* What a step does to x: adds alpha p; nothing; adds the part of the step before, then alpha p. */
enum class parts_of_x { ONE, NONE, TWO };

/* beta = rho / (previous rho), x as above, next = z + beta p. With two directions `next` still has
 * the direction of the step before, which this step replaces. */
template <typename T, int EACH, parts_of_x PARTS, typename System = system<T>>
__global__ void __launch_bounds__(BLOCK, 2) step_direction(System a)
{
    constexpr bool ADDS = PARTS != parts_of_x::NONE, TWO = PARTS == parts_of_x::TWO;
    state<T> *const s = a.s;
    own_elements<EACH> own(a);
    T r[EACH], p[EACH], x[EACH], before[EACH];
    const auto load = [&] {
        own.load(a.r, r);
        own.load(a.p, p);
        if constexpr (ADDS)
            own.load(a.x, x);
        if constexpr (TWO)
            own.load(a.next, before);
    };
    let_next_begin();
    await_kernel_before();
    if (s->stop != COLUMN_RUNS)
        return;
    const T alpha = s->alpha, alpha_before = s->alpha_before, rho_before = s->rho_before;
    load();
    const unsigned number = sums_begun(a);
    const two<T> squares = sum_squares(a, number);
    const T rho = a.z != nullptr ? sum_parts(a.rz) : squares.im;
    const T beta = rho / rho_before;
    for (;;) {
        own.each([&](int k, int64_t i) {
            if constexpr (TWO)
                x[k] += alpha_before * before[k];
            if constexpr (ADDS)
                a.x[i] = x[k] + alpha * p[k];
            a.next[i] = a.z_of(i, r[k]) + beta * p[k];
        });
        bool ended;
        const bool more = own.next(a, &ended);
        if (ended)
            put_turn(a, own.turn_before(), number);
        if (!more)
            break;
        load();
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        set_sums(a, number);
        s->rr = squares.re;
        s->rho = rho;
        s->iterations = s->iterations_then;
        note(s);
    }
}

/* After an odd number of steps with two directions: x = x + alpha p, the part of the last step, and p =
 * the direction of the next one, for a recurrence that continues. */
template <typename T> __global__ void __launch_bounds__(BLOCK) catch_up(system<T> a)
{
    own_elements<1> own(a);
    let_next_begin();
    await_kernel_before();
    const T alpha = a.s->alpha;
    bool ended;
    if (a.s->iterations_then % 2 == 0)
        return;
    do
        own.each([&](int, int64_t i) {
            a.x[i] += alpha * a.p[i];
            a.p[i] = a.next[i];
        });
    while (own.next(a, &ended));
}

} // namespace cg_fused

#endif
