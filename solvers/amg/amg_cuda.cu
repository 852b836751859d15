/* The steps of algebraic multigrid on CUDA: one kernel for each step, one thread a row. The inverse
 * of the last level: one block if that is enough, else a cooperative kernel with one barrier for each
 * unknown; a block has every gridDim-th row.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/grid_barrier.cuh"
#include "device/host_device.cuh"

extern "C" {
#include "solvers/amg/amg_internal.h"
}

#define TEMPLATE "solvers/amg/amg_rows.h"
#include "core/each/each_real.h"

namespace
{

/* Threads of a block; it has as many rows at a time, or fewer if these are long. */
enum { THREADS = 128, FEWEST = 4 };

template <typename Arguments> using row_fn = void(const Arguments *, int64_t);

/* The matrix whose entries a step reads in the order of each row. A block first copies those of its
 * rows to shared memory: neighbouring threads would read them far apart, and rows of some dozen
 * entries would fall out of the first-level cache between two reads. */
enum staged { NOTHING, COLUMNS_OF_F, ALL_OF_A, ALL_OF_F, ALL_OF_R, AGGREGATES_OF_F, TERMS_OF_F };

__host__ __device__ constexpr staged staged_by(amg_step step)
{
    return step == AMG_MIS_SPREAD || step == AMG_MIS_DECIDE ? COLUMNS_OF_F
           : step == AMG_DIAGONAL || step == AMG_BOUND || step == AMG_POWER || step == AMG_SMOOTHER ||
                   step == AMG_STRONGEST || step == AMG_STRONG_COUNT || step == AMG_STRONG_FILL ||
                   step == AMG_STRONG_VALUES
               ? ALL_OF_A
           : step == AMG_JOIN_NEAR     ? ALL_OF_F
           : step == AMG_COARSE_MASS   ? ALL_OF_R
           : step == AMG_PROLONG_COUNT ? AGGREGATES_OF_F
           : step == AMG_PROLONG_FILL  ? TERMS_OF_F
                                       : NOTHING;
}

/* Whether aggregates and terms are copied in place of columns and values (amg_prolong_fill). */
__host__ __device__ constexpr bool gathers(staged matrix)
{
    return matrix == AGGREGATES_OF_F || matrix == TERMS_OF_F;
}

/* Whether values are copied too. */
__host__ __device__ constexpr bool has_values(staged matrix)
{
    return matrix != COLUMNS_OF_F && matrix != AGGREGATES_OF_F;
}

/* Whether the step makes a value for each entry of A. They replace those in shared memory, and then the
 * block writes them at once. */
__host__ __device__ constexpr bool replaces(amg_step step)
{
    return step == AMG_SMOOTHER;
}

/* Whether the step makes some entries of F for each row of A, not more than the row has. They take the place
 * of the row's entries in shared memory, and then a warp writes one row after the other. */
__host__ __device__ constexpr bool compacts(amg_step step)
{
    return step == AMG_STRONG_FILL;
}

/* Whether the step makes the entries of P. A block collects those of its rows in shared memory, behind the
 * staged entries, and then writes them at once. */
__host__ __device__ constexpr bool emits(amg_step step)
{
    return step == AMG_PROLONG_FILL;
}

/* The most entries that a block collects, beside a capacity of staged ones. */
template <amg_step STEP> __host__ __device__ int collected(int capacity)
{
    return !emits(STEP) ? 0 : capacity / 2 < 1024 ? capacity / 2 : 1024;
}

template <staged STAGED, typename Arguments> __device__ amg_csr *staged_matrix(Arguments *s)
{
    if constexpr (STAGED == ALL_OF_A)
        return &s->a;
    else if constexpr (STAGED == ALL_OF_R)
        return &s->r;
    else
        return &s->f;
}

/* Whether the step reads the entries of row i. After some rounds of the independent set, few rows are
 * undecided, and it would take longer to copy those of all rows. */
template <amg_step STEP, typename Arguments> __device__ bool reads_entries(const Arguments &s, int64_t i)
{
    if constexpr (STEP == AMG_MIS_SPREAD)
        return !amg_spread_is_final(s.near_key[i]);
    else if constexpr (STEP == AMG_MIS_DECIDE)
        return amg_state(s.key[i]) == AMG_UNDECIDED;
    else if constexpr (STEP == AMG_JOIN_NEAR)
        return s.joined[i] < 0;
    else
        return true;
}

/* Copies entries begin to end - 1 of m to shared memory. With values, a thread copies several at once; without
 * them that takes longer. */
template <staged STAGED, typename T, typename Arguments>
__device__ void stage(const Arguments &rows, const amg_csr &m, int64_t begin, int64_t end, int32_t *col, T *val)
{
    enum { AT_ONCE = has_values(STAGED) ? 4 : 1 };
    const int count = (int)(end - begin);
    for (int first = (int)threadIdx.x; first < count; first += AT_ONCE * THREADS) {
        int32_t c[AT_ONCE], column[AT_ONCE];
        T value[AT_ONCE], factor[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int64_t k = begin + first + i * THREADS;
            c[i] = k < end ? m.col[k] : 0;
            value[i] = has_values(STAGED) && k < end ? ((const T *)m.val)[k] : 0;
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            column[i] = c[i];
            factor[i] = 1;
            if constexpr (gathers(STAGED))
                column[i] = rows.aggregate[c[i]];
            if constexpr (STAGED == TERMS_OF_F)
                factor[i] = rows.near_null != nullptr ? ((const T *)rows.near_null)[c[i]] : 1;
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (first + i * THREADS < count) {
                col[first + i * THREADS] = column[i];
                if (has_values(STAGED))
                    val[first + i * THREADS] = STAGED == TERMS_OF_F ? value[i] * factor[i] : value[i];
            }
    }
}

/* Writes the entries that rows first to last - 1 of F have in shared memory, where those of A were. */
template <typename T>
__device__ void write_compacted(const amg_strength &rows, int64_t first, int64_t last, const int32_t *col, const T *val)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t begin = amg_offset(&rows.a, first);
    for (int64_t i = first + (int)threadIdx.x / 32; i < last; i += THREADS / 32) {
        const int64_t from = amg_offset(&rows.a, i) - begin, to = amg_offset(&rows.f, i);
        const int count = (int)(amg_offset(&rows.f, i + 1) - to);
        for (int k = lane; k < count; k += 32) {
            rows.f.col[to + k] = col[from + k];
            ((T *)rows.f.val)[to + k] = val[from + k];
        }
    }
}

/* capacity: entries that the shared memory holds. Rows with more are read directly. at_once: rows of a block at a
 * time, so few that their entries fit. rows: __grid_constant__, so that its members are read where they are used and
 * take no registers before. */
template <typename Arguments, row_fn<Arguments> *Row, typename T, amg_step STEP>
__global__ void __launch_bounds__(THREADS)
    rows_kernel(const __grid_constant__ Arguments rows, int64_t n, int capacity, int at_once)
{
    constexpr staged STAGED = staged_by(STEP);
    const int64_t stride = (int64_t)gridDim.x * at_once;
    for (int64_t first = (int64_t)blockIdx.x * at_once; first < n; first += stride) {
        const int64_t i = first + threadIdx.x, last = first + at_once < n ? first + at_once : n;
        Arguments s = rows;
        if constexpr (STAGED != NOTHING) {
            SPMV_DYNAMIC_SHARED(memory);
            amg_csr *const m = staged_matrix<STAGED>(&s);
            T *const val = (T *)memory;
            int32_t *const col = (int32_t *)(val + (has_values(STAGED) ? capacity : 0));
            const int64_t begin = amg_offset(m, first), end = amg_offset(m, last);
            /* the rows before are done */
            const int readers = __syncthreads_count(i < last && reads_entries<STEP>(s, i));
            if (readers > at_once / 8 && end - begin <= capacity) {
                stage<STAGED, T>(rows, *m, begin, end, col, val);
                m->col = col - begin;
                if (has_values(STAGED))
                    m->val = val - begin;
                if constexpr (gathers(STAGED))
                    s.gathered = 1;
                if constexpr (replaces(STEP))
                    s.to = val - begin;
                if constexpr (compacts(STEP))
                    if (i < last) {
                        const int64_t moved = amg_offset(m, i) - begin - amg_offset(&rows.f, i);
                        s.f.col = col + moved;
                        s.f.val = val + moved;
                    }
            }
            __syncthreads();
            if constexpr (replaces(STEP)) {
                if (i < last)
                    Row(&s, i);
                __syncthreads();
                for (int64_t k = threadIdx.x; k < end - begin && s.to != rows.to; k += THREADS)
                    ((T *)rows.to)[begin + k] = val[k];
                continue;
            }
            if constexpr (emits(STEP)) {
                const int64_t to = amg_offset(&s.p, first);
                const int count = (int)(amg_offset(&s.p, last) - to), most = collected<STEP>(capacity);
                T *const out_val = (T *)(col + capacity);
                int32_t *const out_col = (int32_t *)(out_val + most);
                if (count <= most) {
                    s.p.col = out_col - to;
                    s.p.val = out_val - to;
                }
                if (i < last)
                    Row(&s, i);
                __syncthreads();
                for (int k = (int)threadIdx.x; k < count && count <= most; k += THREADS) {
                    rows.p.col[to + k] = out_col[k];
                    ((T *)rows.p.val)[to + k] = out_val[k];
                }
                continue;
            }
            if constexpr (compacts(STEP)) {
                if (i < last)
                    Row(&s, i);
                __syncthreads();
                if (m->col != rows.a.col)
                    write_compacted(rows, first, last, col, val);
                continue;
            }
        }
        if (i < last)
            Row(&s, i);
    }
}

/* The steps narrow and widen: a thread has several elements, and computes the factor once. */
template <typename From, typename To, amg_step STEP>
__global__ void __launch_bounds__(THREADS) scale_kernel(amg_scaling rows, int64_t n)
{
    enum { AT_ONCE = 4 };
    const From *const from = (const From *)rows.from;
    To *const to = (To *)rows.to;
    const double scale = STEP == AMG_NARROW ? amg_narrowing(&rows) : amg_widening(&rows);
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x; first < n; first += AT_ONCE * stride) {
        From value[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            value[i] = first + i * stride < n ? from[first + i * stride] : From();
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (first + i * stride < n)
                to[first + i * stride] = (To)((double)value[i] * scale);
    }
}

template <typename From, typename To, amg_step STEP>
spmv_status run_scale(spmv_context *ctx, const char *name, const amg_scaling *rows, int64_t n)
{
    const int64_t at_once = (int64_t)((const cuda_state *)ctx->device)->multiprocessors * 16;
    return launch(ctx, name, (int)min_i64(ceil_divide(n, (int64_t)THREADS), at_once), THREADS,
                  scale_kernel<From, To, STEP>, *rows, n);
}

template <typename Arguments, row_fn<Arguments> *Row, typename T, amg_step STEP>
spmv_status run_rows(spmv_context *ctx, const char *name, const Arguments *rows, int64_t n)
{
    constexpr staged STAGED = staged_by(STEP);
    constexpr int bytes = 4 + (has_values(STAGED) ? (int)sizeof(T) : 0), most = 48 * 1024 / bytes / 32 * 32;
    int capacity = 0, at_once = THREADS;
    if constexpr (STAGED != NOTHING) {
        double usual = THREADS * 32; /* of R, whose entries are not known here */
        if constexpr (STAGED != ALL_OF_R) {
            const double row = 1.25 * (double)rows->nnz / (double)n; /* a quarter more than the average */
            const double share = 0.9;                                /* of that must fit */
            const int64_t multiprocessors = ((const cuda_state *)ctx->device)->multiprocessors;
            while (at_once > FEWEST &&
                   (share * at_once * row > most || (at_once > 32 && n < at_once * multiprocessors)))
                at_once /= 2;
            at_once = share * at_once * row > most ? (int)THREADS : at_once;
            usual = at_once * row;
        }
        capacity = usual < most ? (int)usual / 32 * 32 + 32 : most;
        if (capacity + collected<STEP>(capacity) > most)
            capacity = most - collected<STEP>(most);
    }
    const int shared_bytes = (capacity + collected<STEP>(capacity)) * bytes;
    return launch_shaped(ctx, name, {grid_for(n, at_once), THREADS, shared_bytes, false},
                         rows_kernel<Arguments, Row, T, STEP>, *rows, n, capacity, at_once);
}

template <typename Arguments, row_fn<Arguments> *Row, typename T, amg_step STEP>
spmv_status run_as(spmv_context *ctx, const char *name, const Arguments *rows, int64_t n)
{
    using other = std::conditional_t<std::is_same<T, float>::value, double, float>; /* of the vectors */
    if constexpr (STEP == AMG_NARROW)
        return run_scale<other, T, STEP>(ctx, name, rows, n);
    else if constexpr (STEP == AMG_WIDEN)
        return run_scale<T, other, STEP>(ctx, name, rows, n);
    else
        return run_rows<Arguments, Row, T, STEP>(ctx, name, rows, n);
}

static_assert(REAL_TYPES == 2, "run has a function for each real type");

template <typename Arguments, amg_step STEP, row_fn<Arguments> *F32, row_fn<Arguments> *F64>
spmv_status run(spmv_context *ctx, const char *name, spmv_type type, const void *arguments, int64_t n)
{
    const Arguments *const rows = (const Arguments *)arguments;
    if (type == SPMV_F64)
        return run_as<Arguments, F64, double, STEP>(ctx, name, rows, n);
    if constexpr (few_types)
        return SPMV_ERROR_TYPE;
    else
        return run_as<Arguments, F32, float, STEP>(ctx, name, rows, n);
}

spmv_status run_step(spmv_context *ctx, enum amg_step step, spmv_type type, const void *arguments, int64_t n)
{
    switch (step) {
#define CASE(NAME, name, arguments_of)                                                                                 \
    case AMG_##NAME:                                                                                                   \
        return run<struct amg_##arguments_of, AMG_##NAME, amg_##name##_f32, amg_##name##_f64>(ctx, "amg " #name, type, \
                                                                                              arguments, n);
        AMG_STEP_LIST(CASE)
#undef CASE
    default:
        return SPMV_ERROR_ARGUMENT;
    }
}

enum { SWEEP_THREADS = 256 };

/* Element (i, j) after the step for unknown k; ci, cj: elements of column k before. The same
 * operations as in amg_loops.c. */
__device__ double swept(const amg_sweep &s, double w, int64_t i, int64_t j, int64_t k, double ci, double cj)
{
    if (i != k && j != k)
        return s.used ? w - (ci * s.factor) * (cj * s.factor) : w;
    if (i == j)
        return s.used ? -(s.factor * s.factor) : 0;
    return ((i == k ? cj : ci) * s.factor) * s.factor;
}

__global__ void __launch_bounds__(SWEEP_THREADS) invert_kernel(amg_dense d)
{
    const int64_t n = d.n;
    for (int64_t k = 0; k < n; k++) {
        const double *const c = d.column[k % 2], *const r = d.general ? d.row[k % 2] : c;
        double *const next = d.column[(k + 1) % 2], *const next_row = d.general ? d.row[(k + 1) % 2] : next;
        const amg_sweep s = amg_sweep_of(&d, grid_barrier::load_others(c + k), d.own[k]);
        for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
            const double ci = grid_barrier::load_others(c + i);
            if (i == k && threadIdx.x == 0)
                d.pivot[k] = s.ratio;
            for (int64_t j = threadIdx.x; j < (d.general ? n : i + 1); j += SWEEP_THREADS) {
                const double old = d.element[i * n + j], other = grid_barrier::load_others(r + j);
                const double w =
                    d.general ? amg_exchanged(&s, old, i, j, k, ci, other) : swept(s, old, i, j, k, ci, other);
                d.element[i * n + j] = w;
                if (j == k + 1)
                    next[i] = w;
                if (i == k + 1)
                    next_row[j] = w;
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            grid_barrier::arrive(d.arrived);
            grid_barrier::await_all(d.arrived, (unsigned)(k + 1) * gridDim.x);
        }
        __syncthreads();
    }
}

/* The most unknowns of a matrix that one block inverts, with its lower triangle in shared memory. Its barriers
 * take less time than those of all blocks. On an H100, one block took 50 us for 41 unknowns, and all blocks 75;
 * for 115 unknowns 302 and 213. */
enum { ALONE_MOST = 64, ALONE_THREADS = 1024, ALONE_BYTES = (ALONE_MOST * (ALONE_MOST + 1) / 2 + 2 * ALONE_MOST) * 8 };

__global__ void __launch_bounds__(ALONE_THREADS) invert_alone_kernel(amg_dense d)
{
    enum { WARP = 32, WARPS = ALONE_THREADS / WARP };
    SPMV_DYNAMIC_SHARED(memory);
    const int n = (int)d.n, lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    double *const column[] = {(double *)memory, (double *)memory + n}, *const element = (double *)memory + 2 * n;
    for (int i = warp; i < n; i += WARPS)
        for (int j = lane; j <= i; j += WARP)
            element[i * (i + 1) / 2 + j] = d.element[(int64_t)i * n + j];
    for (int i = (int)threadIdx.x; i < n; i += ALONE_THREADS)
        column[0][i] = d.column[0][i];
    __syncthreads();
    for (int k = 0; k < n; k++) {
        const double *const c = column[k % 2];
        double *const next = column[(k + 1) % 2];
        const amg_sweep s = amg_sweep_of(&d, c[k], d.own[k]);
        if (threadIdx.x == 0)
            d.pivot[k] = s.ratio;
        for (int i = warp; i < n; i += WARPS) {
            const double ci = c[i];
            for (int j = lane; j <= i; j += WARP) {
                const double w = swept(s, element[i * (i + 1) / 2 + j], i, j, k, ci, c[j]);
                element[i * (i + 1) / 2 + j] = w;
                if (j == k + 1)
                    next[i] = w;
                else if (i == k + 1)
                    next[j] = w;
            }
        }
        __syncthreads();
    }
    for (int i = warp; i < n; i += WARPS)
        for (int j = lane; j <= i; j += WARP)
            d.element[(int64_t)i * n + j] = element[i * (i + 1) / 2 + j];
}

spmv_status invert(spmv_context *ctx, const amg_dense *d)
{
    int shared_bytes = 0, most_blocks = 1;
    const spmv_status st = grid_barrier::limits(ctx, &shared_bytes, &most_blocks);
    if (st != SPMV_OK || d->n == 0)
        return st;
    if (!d->general && d->n <= ALONE_MOST && ALONE_BYTES <= shared_bytes)
        return launch_with_shared<invert_alone_kernel>(ctx, "amg invert", {1, ALONE_THREADS, ALONE_BYTES, false}, *d);
    const int blocks = (int)min_i64(d->n, most_blocks);
    return launch_shaped(ctx, "amg invert", {blocks, SWEEP_THREADS, 0, false, most_blocks > 1}, invert_kernel, *d);
}

} // namespace

extern "C" spmv_status amg_invert_cuda(spmv_context *ctx, const struct amg_dense *dense)
{
    return on_device(ctx, [=] { return invert(ctx, dense); });
}

extern "C" spmv_status amg_run_cuda(spmv_context *ctx, enum amg_step step, spmv_type type, const void *arguments,
                                    int64_t n)
{
    return on_device(ctx, [=] { return run_step(ctx, step, type, arguments, n); });
}
