/* Conjugate gradients for several right-hand sides on CUDA: a step of all of them in four kernels and no wait.
 *
 * Idea: cg_2_fused.cuh for vectors that lie row by row, as the product of several has them: k columns side by side, so
 * nothing changes its form. q = A p for all columns at once, with the plan's product, which has p'q as it goes, or p'q
 * in a kernel of its own; then r and the squares of the new r; then x and p. A thread has one column, so its alpha and
 * beta are registers. Columns come in panels of at most MOST: a block has some rows of one panel, leaves a part of each
 * column's sum, and each block of the next kernel adds up the parts of its panel, in one order. Launches: 4, and the
 * product's others where it has more. Passes over n k numbers a step, beside the product: p'q: 2, r: 2 + 1 (q), x: 2,
 * p: 2 + 1 (r) = 10; with Jacobi's preconditioner one of n numbers more in each of the last two.
 *
 * A column that is done, or broken, stands still: nothing of it is written any more, so its x and its count are those
 * of exactly as many steps as it made. `ending` says that of a column, `ended` counts them; when all have ended, steps
 * that were queued in vain do next to nothing.
 *
 * What the first block of a panel writes down for later kernels, no block of its own kernel reads: step_residual reads
 * what step_direction wrote and the other way round. The exception is ending, which step_residual sets for columns that
 * broke or are at their limit: they stand still whether a block sees it or finds the same out for itself.
 *
 * Bits: how the rows are cut follows from n and k alone, and so do the parts and their order; where p'q rides along
 * with the product, they follow from the plan. Hestenes & Stiefel 1952; Saad 2003, algorithm 9.1; side by side, not
 * O'Leary's block method (1980): k recurrences.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_SEVERAL_CUDA_CUH
#define CG_SEVERAL_CUDA_CUH

#include "block.cuh"
#include "launch.cuh"

extern "C" {
#include "cg_region.h"
}

namespace cg_several
{

/* MOST: columns of a panel. EACH: elements of a vector that a thread loads at once. FEW_BLOCKS: two for each
 * multiprocessor of an H100; MANY_BLOCKS: for more than FEW_FOR elements, where it does not show that each block adds
 * up all parts of its panel. A block adds up at most FEW_PARTS or MANY_PARTS of them. KEPT: partial sums of a column
 * that the threads of a block make their sums fewer to. */
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
    KEPT = 16,
    RING = 32
};

/* The recurrence of a column, on the device; the host gets copies. */
template <typename T> struct column {
    /* of the host */
    double tolerance;
    long long most; /* steps */
    /* of begin_state and step_direction */
    T rr, rho;            /* rho: r'z, which is r'r without a preconditioner */
    double start, enough; /* norms: of the first residual, of the last one wanted */
    long long iterations;
    T history[RING]; /* r'r after iteration i, at i % RING */
    /* of step_residual, but for ending */
    T pq, alpha, rho_before;
    long long iterations_then;
    int stop, ending; /* stop: an enum cg_stop */
};

template <typename T> struct system {
    column<T> *columns;
    int *ended; /* how many columns have; behind it: have all? */
    T *x, *r, *p;
    const T *q, *scale; /* scale: the inverse diagonal of Jacobi's preconditioner */
    int64_t n;
    int k, width, row_blocks; /* width: columns of a panel, of the last one what is left; row_blocks of each */
    T *pq, *rr, *rz;          /* parts: one a row block and column, row by row */
    const T *products;        /* likewise of p'q, but so many: the product's own, or pq */
    int product_parts;
};

/* What a thread has: a column, and of the rows of its block slot, slot + slots, ...; the few threads that make no whole
 * row have none. */
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
        const int64_t lines = (a.n + WARP - 1) / WARP, end = lines * (block + 1) / a.row_blocks * WARP;
        row = lines * block / a.row_blocks * WARP + slot;
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

    /* Does it write down what is known of its column? One thread a column. */
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

    /* body(number of the element among those at hand, its row, its place) */
    template <typename T, typename Body> __device__ void each(const system<T> &a, const Body &body) const
    {
#pragma unroll
        for (int e = 0; e < EACH; e++)
            if (row + e * slots < behind)
                body(e, row + e * slots, (row + e * slots) * a.k + column);
    }

    /* The next rows; are there any? */
    __device__ bool next()
    {
        row += (int64_t)EACH * slots;
        return row < behind;
    }
};

/* What a thread adds up of the parts of its column. */
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

/* The sums of a column's values in the block, for all of its threads, in an order that the panel's width fixes. */
template <int N, typename T> __device__ void sum_columns(const place &at, T (&value)[N])
{
    __shared__ T cells[N][BLOCK];
    const int thread = (int)threadIdx.x;
    __syncthreads(); /* all have read what was there */
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

/* Leaves the block's part of each column's sums: of r'r and, with Jacobi's preconditioner, r'z. */
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

/* r'r and, with Jacobi's preconditioner, r'z, of each column from the parts. */
template <typename T, int N> __device__ void own_squares(const system<T> &a, const place &at, T (&sum)[N])
{
    sum[0] = own_parts(a, at, a.rr, a.row_blocks);
    if constexpr (N > 1)
        sum[1] = own_parts(a, at, a.rz, a.row_blocks);
}

/* Adds to the squares of r those of one of its elements; z = M^-1 r. */
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

/* Given r: p = z of the columns that run, 0 of the others. N: 2 with Jacobi's preconditioner, else 1. */
template <typename T, int N> __global__ void __launch_bounds__(BLOCK) begin(system<T> a)
{
    place at(a);
    T r[EACH], part[N] = {};
    let_next_begin();
    await_kernel_before();
    const bool runs = a.columns[at.column].stop == CG_RUNS;
    do {
        at.load(a, a.r, r);
        at.each(a, [&](int e, int64_t row, int64_t i) {
            const T z = add_square(a, row, r[e], part);
            a.p[i] = runs ? z : T();
        });
    } while (at.next());
    leave_squares(a, at, part);
}

/* No step of the column is to follow. One thread a column. */
template <typename T> __device__ void end(const system<T> &a, column<T> *c)
{
    c->ending = 1;
    if (atomicAdd(a.ended, 1) + 1 == a.k)
        a.ended[1] = 1;
}

/* After a step, or before the first: is the residual small enough? Likewise. */
template <typename T> __device__ void note(const system<T> &a, column<T> *c)
{
    c->history[c->iterations % RING] = c->rr;
    const double norm = sqrt((double)c->rr);
    if (isfinite(norm) && norm <= c->enough)
        end(a, c);
}

/* The state of the columns that run, after begin. One block a panel. */
template <typename T, int N> __global__ void __launch_bounds__(BLOCK) begin_state(system<T> a, double roundoff)
{
    const place at(a, (int)blockIdx.x, 0);
    T sum[N];
    let_next_begin();
    await_kernel_before();
    own_squares(a, at, sum);
    sum_columns(at, sum);
    column<T> *const c = a.columns + at.column;
    if (at.slot != 0 || c->stop != CG_RUNS)
        return;
    c->rr = sum[0];
    c->rho = sum[N - 1];
    c->start = sqrt((double)c->rr);
    c->enough = fmax(c->tolerance, roundoff * c->start);
    note(a, c);
}

/* Parts of p'q. */
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
        at.load(a, a.q, q);
        at.each(a, [&](int e, int64_t, int64_t) { part[0] += p[e] * q[e]; });
    } while (at.next());
    sum_columns(at, part);
    if (at.slot == 0)
        a.pq[(int64_t)((int)blockIdx.x % a.row_blocks) * a.k + at.column] = part[0];
}

/* Fewer parts of p'q from the product's many: each block adds up some of them as if they were rows. */
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
    at.load(a, a.q, q);
    T pq[1] = {own_parts(a, at, a.products, a.product_parts)};
    if (first && ending && c->stop == CG_RUNS)
        c->stop = CG_DONE;
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
            c->stop = broken ? CG_BROKEN : CG_LIMIT;
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
        at.load(a, a.q, q);
    }
    leave_squares(a, at, part);
}

/* beta = rho / (rho before), x = x + alpha p, p = z + beta p */
template <typename T, int N> __global__ void __launch_bounds__(BLOCK, 2) step_direction(system<T> a)
{
    place at(a);
    column<T> *const c = a.columns + at.column;
    T r[EACH], p[EACH], x[EACH], sum[N];
    let_next_begin();
    await_kernel_before();
    const bool steps = c->stop == CG_RUNS;
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

} // namespace cg_several

#endif
