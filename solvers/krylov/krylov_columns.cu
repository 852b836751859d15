/* Passes over several vectors by rows on CUDA (krylov_columns.h).
 *
 * Idea:     a block has a piece of the rows and a panel of at most PANEL columns. SLOTS rows are done side by side, a
 *           thread has one column, and its numbers of that column are in registers. Each slot adds its rows in order,
 *           then slots are added in order, and a second kernel adds the pieces.
 * Launches: 1 for each panel, and 1 for the sums, whose result the host waits for.
 * Bits:     pieces follow from the number of rows alone, slots are constants.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/dispatch.cuh"
#include "device/launch.cuh"

extern "C" {
#include "solvers/krylov/krylov_columns.h"
}

namespace
{

/* EACH: rows of a slot that are loaded together. */
enum { PANEL = 32, SLOTS = 16, THREADS = PANEL * SLOTS, EACH = 4 };

/* The numbers of a panel's columns. */
struct numbers {
    double alpha[PANEL], beta[PANEL], size[PANEL];
    uint32_t runs;
};

template <typename T, typename U> struct arrays {
    int64_t n, piece_rows;
    int columns, first, width; /* the panel: columns first to first + width - 1 */
    int64_t stride;
    double factor;
    T *x, *p, *r;
    const T *q;
    U *in;
    const U *out;
    double *parts; /* pieces x columns */
};

/* The work of a thread. */
struct place {
    int of_panel, column, slot;
    int64_t row, end;

    template <typename T, typename U> __device__ explicit place(const arrays<T, U> &a)
    {
        of_panel = (int)threadIdx.x % a.width;
        slot = (int)threadIdx.x / a.width;
        column = a.first + of_panel;
        row = (int64_t)blockIdx.x * a.piece_rows + slot;
        end = ((int64_t)blockIdx.x + 1) * a.piece_rows;
        end = end < a.n ? end : a.n;
    }
};

template <columns_pass PASS>
constexpr bool sums = PASS == COLUMNS_DOT || PASS == COLUMNS_RESIDUAL || PASS == COLUMNS_PRODUCT;

/* The sum of each column over the slots, for slot 0. Called by all threads. */
template <typename T> __device__ T over_slots(int width, T value)
{
    __shared__ T cells[THREADS];
    cells[threadIdx.x] = value;
    __syncthreads();
    T sum = value;
    if ((int)threadIdx.x < width)
        for (int slot = 1; slot < SLOTS; slot++)
            sum += cells[(int)threadIdx.x + slot * width];
    return sum;
}

template <columns_pass PASS, typename T, typename U>
__global__ void __launch_bounds__(THREADS, 2) pass(const arrays<T, U> a, const __grid_constant__ numbers of)
{
    place at(a);
    const bool runs = (of.runs >> at.of_panel & 1) != 0;
    const T alpha = (T)of.alpha[at.of_panel], beta = (T)of.beta[at.of_panel];
    const double inverse = 1 / of.size[at.of_panel], factor = a.factor * of.size[at.of_panel];
    const int k = a.columns;
    T sum = T();
    const auto z_of = [=](U out) { return (T)((double)out * factor); };
    if (runs || PASS == COLUMNS_NARROW || PASS == COLUMNS_FIRST)
        for (int64_t row = at.row; row < at.end; row += EACH * SLOTS) {
            T u[EACH], v[EACH];
            U w[EACH];
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                const int64_t i = row + e * SLOTS;
                u[e] = v[e] = T();
                w[e] = U();
                if (i >= at.end)
                    continue;
                const int64_t here = i * k + at.column, there = i * a.stride + at.column;
                if (PASS == COLUMNS_DOT || PASS == COLUMNS_RESIDUAL || PASS == COLUMNS_NARROW ||
                    PASS == COLUMNS_PRODUCT)
                    u[e] = a.r[here];
                if (PASS == COLUMNS_DOT || PASS == COLUMNS_RESIDUAL)
                    v[e] = a.q[here];
                if (PASS == COLUMNS_DIRECTION || PASS == COLUMNS_SOLUTION) {
                    u[e] = a.p[here];
                    v[e] = a.x[here];
                }
                if (PASS == COLUMNS_PRODUCT || PASS == COLUMNS_DIRECTION || PASS == COLUMNS_FIRST)
                    w[e] = a.out[there];
            }
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                const int64_t i = row + e * SLOTS, here = i * k + at.column, there = i * a.stride + at.column;
                if (i >= at.end)
                    break;
                if (PASS == COLUMNS_DOT) {
                    sum += u[e] * v[e];
                } else if (PASS == COLUMNS_RESIDUAL) {
                    const T value = u[e] - alpha * v[e];
                    a.r[here] = value;
                    a.in[there] = (U)((double)value * inverse);
                    sum += value * value;
                } else if (PASS == COLUMNS_NARROW) {
                    a.in[there] = runs ? (U)((double)u[e] * inverse) : U();
                } else if (PASS == COLUMNS_PRODUCT) {
                    sum += u[e] * z_of(w[e]);
                } else if (PASS == COLUMNS_FIRST) {
                    a.p[here] = runs ? z_of(w[e]) : T();
                } else {
                    a.x[here] = v[e] + alpha * u[e];
                    if (PASS == COLUMNS_DIRECTION)
                        a.p[here] = z_of(w[e]) + beta * u[e];
                }
            }
        }
    if constexpr (sums<PASS>) {
        const T all = over_slots(a.width, sum);
        if (at.slot == 0)
            a.parts[(int64_t)blockIdx.x * k + at.column] = (double)all;
    }
}

/* The elements of `in` beyond the last column are 0. */
template <typename U> __global__ void __launch_bounds__(block_threads) clear_beyond(U *in, int64_t n, int columns, int64_t stride)
{
    for (int64_t i = (int64_t)blockIdx.x * block_threads + threadIdx.x; i < n; i += (int64_t)gridDim.x * block_threads)
        for (int64_t v = columns; v < stride; v++)
            in[i * stride + v] = U();
}

/* The sum over the pieces; a warp has a column. */
__global__ void __launch_bounds__(block_threads) add_pieces(const double *parts, int64_t pieces, int columns, double *to)
{
    const int column = (int)blockIdx.x * block_warps + (int)threadIdx.x / warp_lanes;
    double sum = 0;
    if (column >= columns)
        return;
#pragma unroll 4
    for (int64_t piece = threadIdx.x % warp_lanes; piece < pieces; piece += warp_lanes)
        sum += parts[piece * columns + column];
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2)
        sum += shuffle_down(sum, distance);
    if (threadIdx.x % warp_lanes == 0)
        to[column] = sum;
}

/* Vectors first to first + PANEL - 1 of those in the mask. A warp has a row. */
template <typename T>
__global__ void __launch_bounds__(block_threads) copy(const struct columns_copy c, int first, uint32_t mask)
{
    static_assert(PANEL == warp_lanes, "a lane has a vector");
    const int lane = (int)threadIdx.x % warp_lanes, v = first + lane;
    if ((mask >> lane & 1) == 0)
        return;
    for (int64_t i = (int64_t)blockIdx.x * block_warps + threadIdx.x / warp_lanes; i < c.n;
         i += (int64_t)gridDim.x * block_warps)
        ((T *)c.to)[i * c.to_stride + v] =
            c.from != nullptr && v < c.columns ? ((const T *)c.from)[i * c.from_stride + v] : T();
}

template <typename T> spmv_status copy_panels(spmv_context *ctx, const struct columns_copy *c)
{
    spmv_status st = SPMV_OK;
    for (int first = 0; first < c->width && st == SPMV_OK; first += PANEL) {
        uint32_t mask = 0;
        for (int lane = 0; lane < PANEL && first + lane < c->width; lane++)
            mask |= (uint32_t)(c->which == nullptr || c->which[first + lane]) << lane;
        if (mask != 0)
            st = launch(ctx, "columns copy", grid_for(c->n, block_warps), block_threads, copy<T>, *c, first, mask);
    }
    return st;
}

template <columns_pass PASS, typename T, typename U> spmv_status run(spmv_context *ctx, const columns_job *j)
{
    spmv_status st = SPMV_OK;
    const int64_t pieces = columns_pieces(j->n);
    double *const parts = (double *)j->scratch;
    arrays<T, U> a = {j->n,      columns_piece_rows(j->n), j->columns,       0,           0,
                      j->stride, j->factor,                (T *)j->x,        (T *)j->p,   (T *)j->r,
                      (const T *)j->q, (U *)j->in,         (const U *)j->out, parts};
    const auto number = [](const double *from, int v) { return from != nullptr ? from[v] : 1.0; };
    for (; a.first < a.columns && st == SPMV_OK && pieces > 0; a.first += a.width) {
        numbers of = {};
        a.width = (int)min_i64(a.columns - a.first, PANEL);
        for (int c = 0; c < a.width; c++) {
            const int v = a.first + c;
            of.alpha[c] = number(j->alpha, v);
            of.beta[c] = number(j->beta, v);
            of.size[c] = number(j->size, v);
            of.runs |= (uint32_t)(j->runs == nullptr || j->runs[v]) << c;
        }
        st = launch(ctx, "columns", (int)pieces, a.width * SLOTS, pass<PASS, T, U>, a, of);
    }
    if (PASS == COLUMNS_NARROW && st == SPMV_OK && j->stride > j->columns)
        st = launch(ctx, "columns clear", grid_for(j->n, block_threads), block_threads, clear_beyond<U>, a.in, j->n,
                    j->columns, j->stride);
    if (sums<PASS> && st == SPMV_OK)
        st = launch(ctx, "columns add", (int)ceil_divide(j->columns, (int)block_warps), block_threads, add_pieces,
                    (const double *)parts, pieces, j->columns, parts + pieces * j->columns);
    return st;
}

template <typename T, typename U> spmv_status run_pass(spmv_context *ctx, columns_pass which, const columns_job *j)
{
    switch (which) {
    case COLUMNS_DOT:
        return run<COLUMNS_DOT, T, T>(ctx, j);
    case COLUMNS_RESIDUAL:
        return run<COLUMNS_RESIDUAL, T, U>(ctx, j);
    case COLUMNS_NARROW:
        return run<COLUMNS_NARROW, T, U>(ctx, j);
    case COLUMNS_PRODUCT:
        return run<COLUMNS_PRODUCT, T, U>(ctx, j);
    case COLUMNS_FIRST:
        return run<COLUMNS_FIRST, T, U>(ctx, j);
    case COLUMNS_DIRECTION:
        return run<COLUMNS_DIRECTION, T, U>(ctx, j);
    case COLUMNS_SOLUTION:
        return run<COLUMNS_SOLUTION, T, T>(ctx, j);
    }
    return SPMV_ERROR_ARGUMENT;
}

} // namespace

extern "C" spmv_status columns_copy_cuda(spmv_context *ctx, const struct columns_copy *c)
{
    return on_device(ctx, [=] {
        return c->type == SPMV_F64 ? copy_panels<double>(ctx, c) : copy_panels<float>(ctx, c);
    });
}

extern "C" spmv_status columns_run_cuda(spmv_context *ctx, enum columns_pass which, const struct columns_job *j)
{
    const bool wide = j->type == SPMV_F64, other_wide = j->other == SPMV_F64;
    spmv_status st = on_device(ctx, [=] {
        return wide ? (other_wide ? run_pass<double, double>(ctx, which, j) : run_pass<double, float>(ctx, which, j))
                    : (other_wide ? run_pass<float, double>(ctx, which, j) : run_pass<float, float>(ctx, which, j));
    });
    if (st == SPMV_OK && (which == COLUMNS_DOT || which == COLUMNS_RESIDUAL || which == COLUMNS_PRODUCT))
        st = spmv_download(ctx, (const double *)j->scratch + columns_pieces(j->n) * j->columns, j->sums,
                           j->columns * (int64_t)sizeof(double));
    return st;
}
