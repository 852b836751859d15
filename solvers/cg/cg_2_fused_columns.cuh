/* Conjugate gradients, rung 2 on CUDA for several right-hand sides: a step of all columns in four
 * kernels, without a wait.
 *
 * Idea:       cg_2_fused.cuh for vectors stored row by row, k columns side by side, as in the
 *             product of several vectors. A step is
 *             1. q = A p for all columns, by the plan's product; p'q in the same kernel if the
 *                product supports it, otherwise
 *             2. p'q in a kernel of its own
 *             3. r = r - alpha q, and r'r
 *             4. x = x + alpha p, p = z + beta p
 *             A thread has one column, so its alpha and beta are registers. Columns are cut into
 *             panels of at most MOST. A block has some rows of one panel and stores a part of each
 *             column's sum. Each block of the next kernel adds the parts of its panel, always in
 *             the same order.
 * Launches:   4 a step, and more if the product has more.
 * Bytes:      passes over n k numbers a step, besides the product: p'q: 2, r: 2 + 1 (q), x: 2, p: 2
 *             + 1 (r) = 10; with Jacobi's preconditioner one more of n numbers in kernels 3 and 4.
 * Changed:    since rung 1, four launches for all columns instead of several for each, and no wait.
 * Wins when:  there are several right-hand sides and the preconditioner is none or jacobi.
 * Bits:       the cut of the rows, the parts and their order depend on n and k alone; if the
 *             product forms p'q, the parts depend on the plan.
 * Source:     Hestenes and Stiefel 1952; Saad 2003, algorithm 9.1. These are k recurrences side by
 *             side, not the block method of O'Leary (1980).
 *
 * A column that has converged or broken down is frozen: no kernel writes it any more, so its x and
 * its count are those of exactly the steps it made. `ending` marks such a column, `ended` counts
 * them. When all columns have ended, the steps that are still queued return at once.
 *
 * The first block of a panel writes scalars for later kernels only: step_residual reads what
 * step_direction wrote, and the reverse. The exception is `ending`, which step_residual sets for
 * columns that broke down or reached their limit: a block either reads it or reaches the same
 * result from the same numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_2_FUSED_COLUMNS_CUH
#define CG_2_FUSED_COLUMNS_CUH

#include "device/block.cuh"
#include "solvers/cg/cg_blocks.cuh"

namespace cg_columns
{

/* MOST: columns of a panel. EACH: elements of a vector that a thread loads at a time. FEW_BLOCKS:
 * two for each multiprocessor of an H100. MANY_BLOCKS: for more than FEW_FOR elements, where the
 * cost of adding up all parts of a panel in each block does not show. FEW_PARTS, MANY_PARTS: the
 * most parts that a block adds up. KEPT: the partial sums a column to which the threads of a block
 * first reduce. */
enum {
    BLOCK = 512,
    MOST = 16,
    EACH = 4,
    FEW_BLOCKS = 264,
    FEW_PARTS = 2112,
    FEW_FOR = 1 << 21,
    MANY_BLOCKS = 4 * FEW_BLOCKS,
    MANY_PARTS = 2 * FEW_PARTS,
    LEAST_BLOCKS = 16,
    KEPT = 16
};

template <typename T> using column = cg_blocks::column<T>;

template <typename T> struct system {
    column<T> *columns;
    int *ended; /* [0]: the number of columns that have ended; [1]: 1 when all have */
    T *x, *r, *p, *q;
    const T *scale; /* the inverse diagonal of Jacobi's preconditioner */
    int64_t n;
    /* width: columns of a panel (the last may have fewer); row_blocks: blocks a panel */
    int k, width, row_blocks;
    T *pq, *rr, *rz; /* parts: row_blocks x k, row by row */
    /* the parts of p'q that step_residual adds up: the product's own, or pq */
    T *products;
    int product_parts; /* parts a column in products */
};

/* The work of a thread: a column, and of the rows of its block: slot, slot + slots, ... The threads
 * beyond the last whole row of lanes have no rows. */
struct place {
    int column, slot, slots, lanes; /* lanes: columns of the panel */
    int64_t row, behind;

    template <typename T> __device__ place(const system<T> &a, int panel, int block)
    {
        const int base = panel * a.width, thread = (int)threadIdx.x;
        lanes = a.width < a.k - base ? a.width : a.k - base;
        slots = BLOCK / lanes;
        slot = thread / lanes;
        column = base + thread % lanes;
        const int64_t lines = (a.n + warp_lanes - 1) / warp_lanes,
                      end = lines * (block + 1) / a.row_blocks * warp_lanes;
        row = lines * block / a.row_blocks * warp_lanes + slot;
        behind = end < a.n ? end : a.n;
        if (!has_rows())
            behind = 0;
    }

    template <typename T>
    __device__ explicit place(const system<T> &a)
        : place(a, (int)blockIdx.x / a.row_blocks, (int)blockIdx.x % a.row_blocks)
    {
    }

    __device__ bool has_rows() const
    {
        return slot < slots;
    }

    /* Whether the thread writes the scalars of its column. One thread a column does. */
    template <typename T> __device__ bool keeps_column(const system<T> &a) const
    {
        return (int)blockIdx.x % a.row_blocks == 0 && slot == 0;
    }

    template <typename T> __device__ void load(const system<T> &a, const T *from, T (&to)[EACH]) const
    {
#pragma unroll
        for (int e = 0; e < EACH; e++)
            to[e] = row + e * slots < behind ? from[(row + e * slots) * a.k + column] : T();
    }

    /* body(number of the element among the EACH, its row, its index) */
    template <typename T, typename Body> __device__ void each(const system<T> &a, const Body &body) const
    {
#pragma unroll
        for (int e = 0; e < EACH; e++)
            if (row + e * slots < behind)
                body(e, row + e * slots, (row + e * slots) * a.k + column);
    }

    /* Moves on to the next rows. False when there are none. */
    __device__ bool next()
    {
        row += (int64_t)EACH * slots;
        return row < behind;
    }
};

/* The sum of the thread's share of the parts of its column. */
template <typename T> __device__ T own_parts(const system<T> &a, const place &at, const T *parts, int count)
{
    T sum = T();
    if (at.has_rows()) {
#pragma unroll 4
        for (int block = at.slot; block < count; block += at.slots)
            sum += parts[(int64_t)block * a.k + at.column];
    }
    return sum;
}

/* The sum of each column's values in the block. All threads get that of their column. The order
 * follows from the panel's width. */
template <int N, typename T> __device__ void sum_columns(const place &at, T (&value)[N])
{
    __shared__ T cells[N][BLOCK];
    const int thread = (int)threadIdx.x;
    __syncthreads(); /* every thread has read the previous sums */
#pragma unroll
    for (int i = 0; i < N; i++)
        cells[i][thread] = value[i];
    __syncthreads();
    if (at.slot < KEPT) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            T sum = value[i];
            for (int slot = at.slot + KEPT; slot < at.slots; slot += KEPT)
                sum += cells[i][thread + (slot - at.slot) * at.lanes];
            cells[i][thread] = sum;
        }
    }
    __syncthreads();
    static_assert(BLOCK / MOST >= KEPT, "each column has so many");
    const int first = thread - at.slot * at.lanes;
#pragma unroll
    for (int i = 0; i < N; i++) {
        value[i] = cells[i][first];
        for (int slot = 1; slot < KEPT; slot++)
            value[i] += cells[i][first + slot * at.lanes];
    }
}

/* Stores the block's part of each column's sums: of r'r and, with Jacobi's preconditioner, r'z. */
template <typename T, int N> __device__ void leave_squares(const system<T> &a, const place &at, T (&part)[N])
{
    sum_columns(at, part);
    const int64_t to = (int64_t)((int)blockIdx.x % a.row_blocks) * a.k + at.column;
    if (at.slot == 0) {
        a.rr[to] = part[0];
        if constexpr (N > 1)
            a.rz[to] = part[1];
    }
}

/* The thread's share of r'r and, with Jacobi's preconditioner, r'z of its column, from the
 * parts. */
template <typename T, int N> __device__ void own_squares(const system<T> &a, const place &at, T (&sum)[N])
{
    sum[0] = own_parts(a, at, a.rr, a.row_blocks);
    if constexpr (N > 1)
        sum[1] = own_parts(a, at, a.rz, a.row_blocks);
}

/* Adds the squares of one element of r to part. Returns z = M^-1 r. */
template <typename T, int N> __device__ T add_square(const system<T> &a, int64_t row, T r, T (&part)[N])
{
    part[0] += r * r;
    if constexpr (N > 1) {
        const T z = a.scale[row] * r;
        part[1] += r * z;
        return z;
    }
    return r;
}

/* Given r: p = z for the columns that run, 0 for the others, and the parts of the squares. N: 2
 * with Jacobi's preconditioner, otherwise 1. Sets q and the parts of p'q to 0: if all columns end
 * before their first step, no product writes them, but step_residual loads them before it reads the
 * state. */
template <typename T, int N> __global__ void __launch_bounds__(BLOCK) begin(system<T> a)
{
    place at(a);
    T r[EACH], part[N] = {};
    let_next_begin();
    await_kernel_before();
    const bool runs = a.columns[at.column].stop == COLUMN_RUNS;
    do {
        at.load(a, a.r, r);
        at.each(a, [&](int e, int64_t row, int64_t i) {
            const T z = add_square(a, row, r[e], part);
            a.p[i] = runs ? z : T();
            a.q[i] = T();
        });
    } while (at.next());
    const int64_t parts = (int64_t)a.product_parts * a.k;
    for (int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x; i < parts; i += (int64_t)gridDim.x * BLOCK)
        a.products[i] = T();
    leave_squares(a, at, part);
}

/* Ends the column: no step of it follows. For one thread a column. */
template <typename T> __device__ void end(const system<T> &a, column<T> *c)
{
    c->ending = 1;
    if (atomicAdd(a.ended, 1) + 1 == a.k)
        a.ended[1] = 1;
}

/* Ends the column when its residual is small enough. For one thread a column, after a step or
 * before the first. */
template <typename T> __device__ void note(const system<T> &a, column<T> *c)
{
    c->history[c->iterations % cg_blocks::RING] = c->rr;
    const double norm = sqrt((double)c->rr);
    if (isfinite(norm) && norm <= c->enough)
        end(a, c);
}

/* Writes the state of the columns that run, after begin. One block a panel. */
template <typename T, int N> __global__ void __launch_bounds__(BLOCK) begin_state(system<T> a, double roundoff)
{
    const place at(a, (int)blockIdx.x, 0);
    T sum[N];
    let_next_begin();
    await_kernel_before();
    own_squares(a, at, sum);
    sum_columns(at, sum);
    column<T> *const c = a.columns + at.column;
    if (at.slot != 0 || c->stop != COLUMN_RUNS)
        return;
    c->rr = sum[0];
    c->rho = sum[N - 1];
    c->start = sqrt((double)c->rr);
    c->enough = fmax(c->tolerance, roundoff * c->start);
    note(a, c);
}

/* The parts of p'q. */
template <typename T> __global__ void __launch_bounds__(BLOCK, 2) multiply_directions(system<T> a)
{
    place at(a);
    T p[EACH], q[EACH], part[1] = {};
    let_next_begin();
    await_kernel_before();
    if (a.ended[1] != 0)
        return;
    do {
        at.load(a, (const T *)a.p, p);
        at.load(a, (const T *)a.q, q);
        at.each(a, [&](int e, int64_t, int64_t) { part[0] += p[e] * q[e]; });
    } while (at.next());
    sum_columns(at, part);
    if (at.slot == 0)
        a.pq[(int64_t)((int)blockIdx.x % a.row_blocks) * a.k + at.column] = part[0];
}

/* Folds the product's parts of p'q to row_blocks: each block adds up some of them as if they were
 * rows. */
template <typename T> __global__ void __launch_bounds__(BLOCK) fold(system<T> a, const T *from, int64_t count)
{
    system<T> many = a;
    many.n = count;
    place at(many);
    T loaded[EACH], part[1] = {};
    let_next_begin();
    await_kernel_before();
    if (a.ended[1] != 0)
        return;
    do {
        at.load(many, from, loaded);
        at.each(many, [&](int e, int64_t, int64_t) { part[0] += loaded[e]; });
    } while (at.next());
    sum_columns(at, part);
    if (at.slot == 0)
        a.pq[(int64_t)((int)blockIdx.x % a.row_blocks) * a.k + at.column] = part[0];
}

/* alpha = rho / p'q, r = r - alpha q, and parts of the squares. */
template <typename T, int N> __global__ void __launch_bounds__(BLOCK, 2) step_residual(system<T> a)
{
    place at(a);
    column<T> *const c = a.columns + at.column;
    const bool first = at.keeps_column(a);
    T r[EACH], q[EACH], part[N] = {};
    let_next_begin();
    await_kernel_before();
    const bool ending = c->ending != 0;
    const T rho = c->rho, rr = c->rr;
    const long long iterations = c->iterations, most = c->most;
    at.load(a, (const T *)a.r, r);
    at.load(a, (const T *)a.q, q);
    T pq[1] = {own_parts(a, at, (const T *)a.products, a.product_parts)};
    if (first && ending && c->stop == COLUMN_RUNS)
        c->stop = COLUMN_DONE;
    if (__syncthreads_count(at.has_rows() && !ending) == 0)
        return;
    sum_columns(at, pq);
    const bool broken = !isfinite(rr) || !isfinite(rho) || !isfinite(pq[0]) || rho <= 0 || pq[0] <= 0;
    const bool steps = !ending && !broken && iterations != most;
    const T alpha = rho / pq[0];
    if (first && !ending) {
        c->pq = pq[0];
        c->alpha = alpha;
        c->rho_before = rho;
        c->iterations_then = iterations + 1;
        if (!steps) {
            c->stop = broken ? COLUMN_BROKEN : COLUMN_LIMIT;
            end(a, c);
        }
    }
    while (steps) {
        at.each(a, [&](int e, int64_t row, int64_t i) {
            r[e] -= alpha * q[e];
            a.r[i] = r[e];
            add_square(a, row, r[e], part);
        });
        if (!at.next())
            break;
        at.load(a, (const T *)a.r, r);
        at.load(a, (const T *)a.q, q);
    }
    leave_squares(a, at, part);
}

/* beta = rho / (previous rho), x = x + alpha p, p = z + beta p */
template <typename T, int N> __global__ void __launch_bounds__(BLOCK, 2) step_direction(system<T> a)
{
    place at(a);
    column<T> *const c = a.columns + at.column;
    T r[EACH], p[EACH], x[EACH], sum[N];
    let_next_begin();
    await_kernel_before();
    const bool steps = c->stop == COLUMN_RUNS;
    const T alpha = c->alpha, rho_before = c->rho_before;
    at.load(a, (const T *)a.r, r);
    at.load(a, (const T *)a.p, p);
    at.load(a, (const T *)a.x, x);
    own_squares(a, at, sum);
    if (__syncthreads_count(at.has_rows() && steps) == 0)
        return;
    sum_columns(at, sum);
    const T rho = sum[N - 1], beta = rho / rho_before;
    while (steps) {
        at.each(a, [&](int e, int64_t row, int64_t i) {
            a.x[i] = x[e] + alpha * p[e];
            a.p[i] = (N > 1 ? a.scale[row] * r[e] : r[e]) + beta * p[e];
        });
        if (!at.next())
            break;
        at.load(a, (const T *)a.r, r);
        at.load(a, (const T *)a.p, p);
        at.load(a, (const T *)a.x, x);
    }
    if (at.keeps_column(a) && steps) {
        c->rr = sum[0];
        c->rho = rho;
        c->iterations = c->iterations_then;
        note(a, c);
    }
}

} // namespace cg_columns

#endif
