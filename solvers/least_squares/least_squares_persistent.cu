/* LSMR, LSQR and CGLS on CUDA for small systems: many steps in one kernel.
 *
 * Idea:       the blocks stay resident. Each has some rows of B with the same elements of vectors of
 *             rows, and some rows of B' with those of vectors of columns, in shared memory as far as
 *             they fit. Only the vector that rows of other blocks gather, and the blocks' parts of
 *             sums, travel through memory, with one barrier of the grid for each product. Every block
 *             adds up the parts of all in the same order, so all compute the same coefficients.
 *
 *             lsmr and lsqr, 2 barriers a step. x'x of a step is added up with u'u of the next one:
 *                 h, x;  u = B v - ... u;  (x, x), (u, u)      | barrier
 *                 v = B'u - ... v;  (v, v)                     | barrier
 *             cgls, 4 barriers a step:
 *                 q = B p;  (q, q)                             | barrier
 *                 r -= alpha q;  (r, r)                        | barrier
 *                 x += alpha p;  s = B'r - ... x;  (s, s), (x, x)  | barrier
 *                 p = s + beta p;  (p, p)                      | barrier
 * Launches:   one for MOST_STEPS steps.
 * Wins when:  the time of a step is that of launches, not of bytes. `fits` has the limits.
 * Bits:       those of the recurrence with kernels of one pass each differ, because products and sums
 *             add in another order. The number of blocks, their rows and the order of all sums depend
 *             on the sizes of the system and the numbers of its entries.
 * Source:     the recurrences: least_squares_recurrences.c; blocks and barriers: krylov_persistent.cu.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/krylov/krylov_persistent.cuh"

extern "C" {
#include "solvers/least_squares/least_squares_internal.h"
}

namespace
{

/* A step notes two numbers in the ring; the first launch also notes those of the start. */
enum { MOST_STEPS = 120 };
static_assert(2 * (MOST_STEPS + 1) < (int)KRYLOV_RING, "one launch fits the ring");

/* Sums of a barrier: of two sets, used in turn. */
enum { SUMS = 3 };

/* Above, kernels of one pass each, with the plan's products, have more of the device to work with. */
enum { MOST_ROWS = 100000, MOST_NONZEROS = 1000000 };

template <typename T, typename Stored> struct least_squares_steps {
    dealt_rows<T, Stored> b, bt; /* B and B' */
    meeting_place place;
    krylov_least_squares *scalars;
    T *u, *v, *h, *hbar, *y; /* cgls: r, s, p, none, y; hbar NULL: lsqr */
};

/* The scalars. Each block has them; all are equal. */
struct shared_scalars {
    krylov_state state;
    krylov_least_squares of;
};
static_assert(sizeof(shared_scalars) <= STATIC_BYTES - 1024, "room for the sums of warps");

template <typename Type> __device__ void copy_words(const Type *from, Type *to)
{
    static_assert(sizeof(Type) % sizeof(int) == 0, "whole words");
    for (int i = (int)threadIdx.x; i < (int)(sizeof(Type) / sizeof(int)); i += BLOCK)
        ((int *)to)[i] = load_others((const int *)from + i);
}

/* What a block of either kernel has. */
template <typename T, typename Stored> struct worker {
    const least_squares_steps<T, Stored> &g;
    shared_scalars &scalars;
    double *totals; /* SUMS numbers in shared memory */
    own_rows rows, columns;
    near_rows<Stored> near, near_t;
    bool is_near, is_near_t;
    meeting_place place;
    unsigned passed;

    __device__ worker(const least_squares_steps<T, Stored> &all, shared_scalars &its, double *sums,
                      unsigned char *matrices)
        : g(all), scalars(its), totals(sums), rows(rows_of_block(g.b)), columns(rows_of_block(g.bt)),
          near(matrices, g.b.cells), near_t(matrices + near_rows<Stored>::bytes(g.b.rows_each, g.b.cells), g.bt.cells),
          is_near(copy_rows(g.b, rows, near)), is_near_t(copy_rows(g.bt, columns, near_t)), place(g.place), passed(0)
    {
    }

    /* Adds N sums up over all blocks: totals. For all threads. */
    template <int N> __device__ void add_up(const double (&sums)[N])
    {
        place.parts = g.place.parts + passed % 2 * gridDim.x * g.place.width;
        store_parts(sums, place);
        arrive_block(place);
        await_blocks(place, &passed);
        add_parts<warp_lanes>(place, N, totals);
    }

    /* Coefficients from totals[first] and the next one. By one thread. */
    __device__ void find(krylov_finish which, int first = 0)
    {
        const krylov_scalar sums[KRYLOV_MOST_SUMS] = {scalar_of(totals[first]),
                                                      scalar_of(first + 1 < SUMS ? totals[first + 1] : 0)};
        least_squares_finish_scalars(which, &scalars.state, sums);
    }

    /* The same, and all threads wait for it. False: the run has ended. */
    __device__ bool finish(krylov_finish which)
    {
        if (threadIdx.x == 0)
            find(which);
        __syncthreads();
        return scalars.state.ending == 0;
    }

    __device__ T by(int coefficient) const
    {
        return (T)scalars.state.c[coefficient].re;
    }

    template <typename Take> __device__ void multiply(const T *v, const Take &take) const
    {
        multiply_rows(g.b, near, is_near, rows, v, [&](int i, pair<T> sum) { take(i, sum.z); });
        __syncthreads();
    }
    template <typename Take> __device__ void multiply_transposed(const T *u, const Take &take) const
    {
        multiply_rows(g.bt, near_t, is_near_t, columns, u, [&](int i, pair<T> sum) { take(i, sum.z); });
        __syncthreads();
    }
};

/* Between a block's elements of a vector and shared memory. */
template <typename T> __device__ void take_own(own_rows own, const T *from, T *to)
{
    for (int i = (int)threadIdx.x; i < own.count; i += BLOCK)
        to[i] = from[own.first + i];
}
template <typename T> __device__ void give_own(own_rows own, const T *from, T *to)
{
    for (int i = (int)threadIdx.x; i < own.count; i += BLOCK)
        to[own.first + i] = from[i];
}

/* The scalars at the beginning of a launch. False: the run has ended. For all threads. */
template <typename T, typename Stored>
__device__ bool load_scalars(const least_squares_steps<T, Stored> &g, shared_scalars &scalars)
{
    copy_words(g.place.state, &scalars.state);
    copy_words(g.scalars, &scalars.of);
    __syncthreads();
    if (threadIdx.x == 0)
        scalars.state.least_squares = &scalars.of;
    __syncthreads();
    return scalars.state.ending == 0;
}

/* Returns them, by one block, as they were found. */
template <typename T, typename Stored>
__device__ void store_scalars(const least_squares_steps<T, Stored> &g, shared_scalars &scalars)
{
    __syncthreads();
    if (blockIdx.x != 0)
        return;
    if (threadIdx.x == 0)
        scalars.state.least_squares = g.scalars;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < (int)(sizeof scalars.state / sizeof(int)); i += BLOCK)
        ((int *)g.place.state)[i] = ((const int *)&scalars.state)[i];
    for (int i = (int)threadIdx.x; i < (int)(sizeof scalars.of / sizeof(int)); i += BLOCK)
        ((int *)g.scalars)[i] = ((const int *)&scalars.of)[i];
}

template <typename T, typename Stored>
__global__ void __launch_bounds__(BLOCK) bidiagonal_steps(least_squares_steps<T, Stored> g)
{
    SPMV_DYNAMIC_SHARED(dynamic_shared);
    __shared__ shared_scalars scalars;
    __shared__ double totals[SUMS];
    if (!load_scalars(g, scalars))
        return;
    T *const u = (T *)dynamic_shared, *const v = u + g.b.rows_each, *const h = v + g.bt.rows_each;
    T *const hbar = h + g.bt.rows_each, *const y = hbar + g.bt.rows_each;
    worker<T, Stored> w(g, scalars, totals, (unsigned char *)(y + g.bt.rows_each));
    const int thread = (int)threadIdx.x;
    const bool is_lsmr = g.hbar != nullptr;
    take_own(w.rows, g.u, u);
    take_own(w.columns, g.v, v);
    take_own(w.columns, g.h, h);
    take_own(w.columns, g.y, y);
    if (is_lsmr)
        take_own(w.columns, g.hbar, hbar);
    __syncthreads();
    for (int step = 0; step <= MOST_STEPS; step++) {
        double sums[SUMS] = {}; /* u'u; y'y, h'h of the step before */
        if (step > 0) {
            (void)w.finish(is_lsmr ? LSMR_ALPHA : LSQR_ALPHA);
            const T of_h = w.by(C_X_H), of_hbar = w.by(C_X_HBAR), keep_hbar = w.by(C_HBAR), keep = w.by(C_H),
                    of_v = w.by(C_H_V);
            for (int i = thread; i < w.columns.count; i += BLOCK) {
                const T old = h[i];
                if (is_lsmr) {
                    y[i] = y[i] + of_h * old + of_hbar * hbar[i];
                    hbar[i] = old + keep_hbar * hbar[i];
                } else {
                    y[i] = y[i] + of_h * old;
                }
                h[i] = keep * old + of_v * v[i];
                sums[1] += (double)y[i] * (double)y[i];
                sums[2] += (double)h[i] * (double)h[i];
            }
        }
        if (step < MOST_STEPS) {
            const T of_product = w.by(C_AV), keep = w.by(C_KEEP_U);
            w.multiply(g.v, [&](int i, T product) {
                u[i] = of_product * product + keep * u[i];
                g.u[w.rows.first + i] = u[i];
                sums[0] += (double)u[i] * (double)u[i];
            });
        }
        w.add_up(sums);
        if (thread == 0) {
            if (step > 0)
                w.find(is_lsmr ? LSMR_STEP : LSQR_STEP, 1);
            if (scalars.state.ending == 0 && step < MOST_STEPS)
                w.find(BIDIAGONAL_BETA);
        }
        __syncthreads();
        if (scalars.state.ending != 0 || step == MOST_STEPS)
            break;
        const T of_product = w.by(C_ATU), keep = w.by(C_KEEP_V);
        double square[1] = {0};
        w.multiply_transposed(g.u, [&](int i, T product) {
            v[i] = of_product * product + keep * v[i];
            g.v[w.columns.first + i] = v[i];
            square[0] += (double)v[i] * (double)v[i];
        });
        w.add_up(square);
    }
    give_own(w.columns, h, g.h);
    give_own(w.columns, y, g.y);
    if (is_lsmr)
        give_own(w.columns, hbar, g.hbar);
    store_scalars(g, scalars);
}

template <typename T, typename Stored>
__global__ void __launch_bounds__(BLOCK) cgls_steps(least_squares_steps<T, Stored> g)
{
    SPMV_DYNAMIC_SHARED(dynamic_shared);
    __shared__ shared_scalars scalars;
    __shared__ double totals[SUMS];
    if (!load_scalars(g, scalars))
        return;
    T *const r = (T *)dynamic_shared, *const q = r + g.b.rows_each, *const s = q + g.b.rows_each;
    T *const p = s + g.bt.rows_each, *const y = p + g.bt.rows_each;
    worker<T, Stored> w(g, scalars, totals, (unsigned char *)(y + g.bt.rows_each));
    const int thread = (int)threadIdx.x;
    const bool damped = scalars.of.damp > 0;
    take_own(w.rows, g.u, r);
    take_own(w.columns, g.h, p);
    take_own(w.columns, g.y, y);
    __syncthreads();
    for (int step = 0; step < MOST_STEPS; step++) {
        double square[1] = {0};
        w.multiply(g.h, [&](int i, T product) {
            q[i] = product;
            square[0] += (double)product * (double)product;
        });
        w.add_up(square);
        if (!w.finish(CGLS_DELTA))
            break;
        const T minus_step = w.by(C_MINUS_STEP), by = w.by(C_STEP), damp = w.by(C_DAMP), damp_step = w.by(C_DAMP_STEP);
        square[0] = 0;
        for (int i = thread; i < w.rows.count; i += BLOCK) {
            r[i] = r[i] + minus_step * q[i];
            g.u[w.rows.first + i] = r[i];
            square[0] += (double)r[i] * (double)r[i];
        }
        w.add_up(square);
        if (!w.finish(CGLS_RESIDUAL))
            break;
        double sums[2] = {0, 0};
        w.multiply_transposed(g.u, [&](int i, T product) {
            const T old = y[i], next = damped ? product + damp * old + damp_step * p[i] : product;
            y[i] = old + by * p[i];
            s[i] = next;
            sums[0] += (double)next * (double)next;
            sums[1] += (double)y[i] * (double)y[i];
        });
        w.add_up(sums);
        if (!w.finish(CGLS_STEP))
            break;
        const T conjugate = w.by(C_CONJUGATE);
        square[0] = 0;
        for (int i = thread; i < w.columns.count; i += BLOCK) {
            p[i] = s[i] + conjugate * p[i];
            g.h[w.columns.first + i] = p[i];
            square[0] += (double)p[i] * (double)p[i];
        }
        w.add_up(square);
        if (!w.finish(CGLS_DIRECTION))
            break;
    }
    give_own(w.columns, y, g.y);
    store_scalars(g, scalars);
}

/* ------------------------------------------------------------- the host */

/* How a solve is distributed; cells: of dealt_rows. */
struct shape {
    int blocks, rows_each, columns_each, cells, cells_t, shared_bytes;
};

bool is_cgls(const least_squares_run *r)
{
    return r->g.s.solver == &least_squares_cgls;
}

int64_t in_lines(int64_t count)
{
    return (count + warp_lanes - 1) / warp_lanes * warp_lanes;
}

/* Whether the vectors fit. Both matrices come next, or none. */
bool fits(const least_squares_run *r, int shared_most, int most_blocks, shape *how)
{
    const spmv_csr *const a = &r->solver->plan->a;
    const int64_t m = a->rows, n = a->cols, size = (int64_t)spmv_type_size(r->g.s.type), larger = m > n ? m : n;
    const int64_t spread = (larger - 1) / MOST_BLOCKS + 1;
    const int64_t each = in_lines(spread > ROWS_LEAST ? spread : (int64_t)ROWS_LEAST), blocks = (larger - 1) / each + 1;
    if (blocks > most_blocks || m + n > MOST_ROWS || a->nnz > MOST_NONZEROS)
        return false;
    const int64_t rows = in_lines((m - 1) / blocks + 1), columns = in_lines((n - 1) / blocks + 1);
    static_assert(REAL_TYPES == 2, "bytes knows each real type");
    const auto bytes = [&](int64_t rows_each, int64_t cells) {
        return (int64_t)(a->type == SPMV_F32 ? near_rows<float>::bytes((int)rows_each, (int)cells)
                                             : near_rows<double>::bytes((int)rows_each, (int)cells));
    };
    const int64_t vectors = (is_cgls(r) ? 2 * rows + 3 * columns : rows + 4 * columns) * size;
    const int64_t room = shared_most - STATIC_BYTES - vectors;
    /* a quarter more than the mean of the blocks */
    const int64_t mean = a->nnz / blocks, cells = mean + mean / 4 + warp_lanes;
    const bool near = bytes(rows, cells) + bytes(columns, cells) <= room;
    const int64_t all = near ? bytes(rows, cells) + bytes(columns, cells) : bytes(rows, 0) + bytes(columns, 0);
    *how = {(int)blocks, (int)rows, (int)columns, near ? (int)cells : 0, near ? (int)cells : 0, (int)(vectors + all)};
    return all <= room;
}

bool can_read(const spmv_plan *plan)
{
    return plan->longest_row >= 0 && plan->longest_row <= LONGEST_ROW && plan->a.row_ptr_bits == 32;
}

enum { HEAD = 256 /* bytes for the counter */ };

} // namespace

struct least_squares_persistent {
    shape how;
    void *memory; /* on the device: the counter, parts of sums */
};

namespace
{

template <typename T, typename Stored> dealt_rows<T, Stored> deal_rows(const spmv_plan *plan, int each, int cells)
{
    const spmv_csr *const a = &plan->a;
    return {(const int32_t *)a->row_ptr,
            a->col,
            (const Stored *)a->val,
            nullptr,
            (int)a->rows,
            each,
            lanes_for(*a, plan->longest_row, each),
            cells};
}

template <auto Kernel, typename Steps>
spmv_status start(const least_squares_run *r, const char *name, const Steps &steps, int shared)
{
    static uint64_t known;
    spmv_context *const ctx = r->g.s.ctx;
    const shape &how = r->persistent->how;
    const launch_shape as = {how.blocks, BLOCK, how.shared_bytes, false, how.blocks > 1};
    spmv_status st =
        once_a_device(ctx, name, &known, (const void *)Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (st == SPMV_OK)
        st = cuda_check(ctx, cudaMemsetAsync(steps.place.arrived, 0, HEAD, (cudaStream_t)ctx->stream), "a counter");
    return st == SPMV_OK ? launch_shaped(ctx, name, as, Kernel, steps) : st;
}

template <typename T, typename Stored> spmv_status run_typed(const least_squares_run *r)
{
    const least_squares_persistent *const own = r->persistent;
    char *const memory = (char *)own->memory;
    int shared = 0, blocks = 0;
    const spmv_status st = limits(r->g.s.ctx, &shared, &blocks);
    if (st != SPMV_OK)
        return st;
    least_squares_steps<T, Stored> steps = {};
    steps.b = deal_rows<T, Stored>(r->solver->plan, own->how.rows_each, own->how.cells);
    steps.bt = deal_rows<T, Stored>(r->solver->transposed, own->how.columns_each, own->how.cells_t);
    steps.place = {r->g.v.state, (double *)(memory + HEAD), SUMS, (unsigned *)memory, nullptr};
    steps.scalars = r->scalars;
    steps.u = (T *)r->vector[LS_U];
    steps.v = (T *)r->vector[LS_V];
    steps.h = (T *)r->vector[LS_H];
    steps.hbar = (T *)r->vector[LS_HBAR];
    steps.y = (T *)r->y;
    return is_cgls(r) ? start<cgls_steps<T, Stored>>(r, "cgls persistent", steps, shared - STATIC_BYTES)
                      : start<bidiagonal_steps<T, Stored>>(r, "lsmr persistent", steps, shared - STATIC_BYTES);
}

} // namespace

extern "C" spmv_status least_squares_persistent_open(struct least_squares_run *r)
{
    const spmv_plan *const plan = r->solver->plan, *const transposed = r->solver->transposed;
    spmv_context *const ctx = r->g.s.ctx;
    if (type_is_complex(r->g.s.type) || !can_read(plan) || !can_read(transposed))
        return SPMV_OK;
    shape how = {};
    int shared = 0, blocks = 0;
    spmv_status st = on_device(ctx, [&] { return limits(ctx, &shared, &blocks); });
    if (st != SPMV_OK || !fits(r, shared, blocks, &how))
        return st;
    least_squares_persistent *own = nullptr;
    st = host_alloc(ctx, (int64_t)sizeof *own, "a solve", (void **)&own);
    if (st != SPMV_OK)
        return st;
    *own = {how, nullptr};
    r->persistent = own;
    r->g.many_steps = least_squares_persistent_steps;
    return context_lend(ctx, HEAD + 2 * how.blocks * (int64_t)SUMS * (int64_t)sizeof(double), &own->memory);
}

extern "C" void least_squares_persistent_close(struct least_squares_run *r)
{
    if (r->persistent != nullptr)
        context_take_back(r->g.s.ctx, r->persistent->memory);
    host_free(r->persistent);
    r->persistent = nullptr;
}

extern "C" spmv_status least_squares_persistent_steps(struct krylov_loop *g, bool begins)
{
    const least_squares_run *const r = (const least_squares_run *)g;
    (void)begins;
    return on_device(g->s.ctx, [&] {
        return with_types(r->solver->plan, [&](auto sum, auto value) -> spmv_status {
            if constexpr (std::is_floating_point_v<decltype(sum)>)
                return run_typed<decltype(sum), decltype(value)>(r);
            else
                return SPMV_ERROR_TYPE; /* least_squares_persistent_open refuses complex plans */
        });
    });
}
