/* Passes over blocks of vectors for eigenvalue problems on CUDA (eigen_passes.h).
 *
 * Products of small matrices are instructions of a warp, in f64 (multiply). Rows are copied to shared memory ahead of their
 * use, 16 bytes at a time if all rows lie at multiples of 16.
 *
 * gram:     a block has a stripe of the rows and a panel of the sums of X'Y and X'Z. Another kernel adds the stripes, in
 *           a fixed order. Columns of Y that are columns of X too are read once. Blocks of a stripe run side by side.
 * combine:  C is in shared memory, or passes through it some rows at a time if it does not fit. A warp has 16 rows, which
 *           it reads as a whole before it writes, so the result may replace them.
 * others:   a warp has a row, a lane every 32nd column.
 * Sums:     in f64 with fma, whose products are not rounded.
 * Bits:     stripes follow from the number of rows alone, and products of a stripe or of a row are added in their order,
 *           whatever the panels. The device does not count.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/launch.cuh"
#include "device/loads.cuh"

extern "C" {
#include "solvers/eigen/eigen_passes.h"
}

namespace
{

/* ------------------------------------------------------------- products of a warp */

/* Numbers k and k + 4 of a row or column. */
struct alignas(16) pair {
    double at[2];
};

/* sum (16 x 8 N) += A (16 x 8) B (8 x 8 N), with fma in the order of the columns of A. a(r, k) is the pair in row r of A, and
 * b(k, j, c) that in column 8 j + c of B, for k and c below 4 and 8. Lane 4 g + t has number (g + 8 h, 8 j + 2 t + i) in
 * sum[j][2 h + i].
 * Source: PTX ISA, "mma.sync.aligned.m16n8k8". */
template <int N, typename A, typename B> __device__ void multiply(const A &a, const B &b, double (&sum)[N][4])
{
    const int g = (int)threadIdx.x % warp_lanes / 4, t = (int)threadIdx.x % 4;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const pair l[2] = {a(g, t), a(g + 8, t)};
    pair r[N];
#pragma unroll
    for (int j = 0; j < N; j++)
        r[j] = b(t, j, g);
#pragma unroll
    for (int j = 0; j < N; j++) {
        double(&c)[4] = sum[j];
#if __CUDA_ARCH__ >= 900
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                     : "d"(l[0].at[0]), "d"(l[1].at[0]), "d"(l[0].at[1]), "d"(l[1].at[1]), "d"(r[j].at[0]),
                       "d"(r[j].at[1]));
#else
#pragma unroll
        for (int k = 0; k < 4; k++)
            asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                         : "+d"(c[k % 2 * 2]), "+d"(c[k % 2 * 2 + 1])
                         : "d"(l[k % 2].at[k / 2]), "d"(r[j].at[k / 2]));
#endif
    }
#else
    for (int j = 0; j < N; j++)
        for (int c = 0; c < 4; c++)
            for (int k = 0; k < 8; k++)
                sum[j][c] = fma(a(g + c / 2 * 8, k % 4).at[k / 4], b(k % 4, j, 2 * t + c % 2).at[k / 4], sum[j][c]);
#endif
}

/* Parts of 8 columns that a warp has at a time: few, many. 7: W and AW, and X and P, of lobpcg for some 20 pairs. */
enum { FEW = 4, MANY = 7 };

/* Whether the rows of a block of so many columns are whole words of 16 bytes. */
inline bool in_words(const void *block, int64_t stride, int columns, int bytes)
{
    return ((uintptr_t)block | (uintptr_t)((stride | columns) * bytes)) % 16 == 0;
}

/* ------------------------------------------------------------- X'Y */

/* A panel has 96 columns of X, 16 for each warp, and 8 ACROSS of those of Y and Z side by side. */
enum { GRAM_WARPS = 6, GRAM_P = 16 * GRAM_WARPS, GRAM_ROWS = 16, GRAM_STAGES = 5 };

/* Numbers of a row in a stage. Four rows of an operand lie in different banks: an odd multiple of 32 bytes. */
template <typename T, int ACROSS>
constexpr int gram_pitch = ((GRAM_P + 8 * ACROSS) * (int)sizeof(T) / 32 | 1) * 32 / (int)sizeof(T);

template <typename T, int BYTES, int ACROSS>
__global__ void __launch_bounds__(GRAM_WARPS *warp_lanes, 2) gram(const eigen_pass e)
{
    constexpr int Q = 8 * ACROSS, PITCH = gram_pitch<T, ACROSS>, STAGE = GRAM_ROWS * PITCH;
    SPMV_DYNAMIC_SHARED(memory);
    T *const stages = (T *)memory;
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    const int all = e.z != nullptr ? 2 * e.q : e.q, panels_across = (all + Q - 1) / Q;
    const int panels = panels_across * ((e.p + GRAM_P - 1) / GRAM_P), panel = (int)(blockIdx.x % (unsigned)panels);
    const int a = panel / panels_across * GRAM_P, b = panel % panels_across * Q; /* its first columns */
    const int64_t stripe = blockIdx.x / (unsigned)panels, begin = stripe * e.stripe_rows;
    const int64_t end = begin + e.stripe_rows < e.n ? begin + e.stripe_rows : e.n;
    const T *const x = (const T *)e.x, *const y = (const T *)e.y, *const z = (const T *)e.z;
    const int width = e.p - a < GRAM_P ? e.p - a : (int)GRAM_P, others = all - b < Q ? all - b : Q;
    /* the first `shared` of the others are columns of X, too */
    const int64_t apart = y - x;
    const bool inside = e.p <= GRAM_P && e.x_stride == e.y_stride && apart >= 0 && apart + e.q <= e.p;
    const int shared = !inside || b >= e.q ? 0 : e.q - b < others ? e.q - b : others, place = (int)apart + b;
    /* what a lane copies of a row of Y and Z */
    constexpr int V = BYTES / (int)sizeof(T), STEP = warp_lanes * V, STEPS = (Q + STEP - 1) / STEP;
    const T *other[STEPS];
    int64_t other_stride[STEPS];
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        const int column = b + shared + k * STEP + lane * V;
        other[k] = column < e.q ? y + column : z + (column - e.q);
        other_stride[k] = column < e.q ? e.y_stride : e.z_stride;
    }
    /* Begins to copy the rows from `first` on, zeros after the last. */
    const auto fill = [&](int64_t first, int stage) {
#pragma unroll
        for (int i = 0; i < GRAM_ROWS; i += GRAM_WARPS) {
            const int64_t row = first + i + warp;
            T *const to = stages + stage * STAGE + (i + warp) * PITCH + lane * V;
            if (i + warp >= GRAM_ROWS)
                break;
#pragma unroll
            for (int k = 0; k < GRAM_P; k += STEP)
                if (k + lane * V < width)
                    begin_copy_if<BYTES>(row < end, to + k, x + row * e.x_stride + a + k + lane * V);
#pragma unroll
            for (int k = 0; k < STEPS; k++)
                if (shared + k * STEP + lane * V < others)
                    begin_copy_if<BYTES>(row < end, to + GRAM_P + shared + k * STEP, other[k] + row * other_stride[k]);
        }
    };
#pragma unroll
    for (int s = 0; s < GRAM_STAGES - 1; s++) {
        if (begin + s * GRAM_ROWS < end)
            fill(begin + s * GRAM_ROWS, s);
        end_copies();
    }
    double sum[ACROSS][4] = {};
    int stage = 0, before = GRAM_STAGES - 1;
    for (int64_t first = begin; first < end; first += GRAM_ROWS) {
        await_copies_but<GRAM_STAGES - 2>();
        __syncthreads(); /* the rows are there, and all threads have read those before them */
        if (first + (GRAM_STAGES - 1) * GRAM_ROWS < end)
            fill(first + (GRAM_STAGES - 1) * GRAM_ROWS, before);
        end_copies();
        const T *at = stages + stage * STAGE;
        if (16 * warp < width)
#pragma unroll
            for (int k = 0; k < GRAM_ROWS; k += 8, at += 8 * PITCH)
                multiply<ACROSS>(
                    [&](int r, int t) {
                        const T *const of_x = at + t * PITCH + 16 * warp + r;
                        return pair{{(double)of_x[0], (double)of_x[4 * PITCH]}};
                    },
                    [&](int t, int j, int c) {
                        const int column = 8 * j + c;
                        const T *const of_y = at + t * PITCH + column + (column < shared ? place : (int)GRAM_P);
                        return pair{{(double)of_y[0], (double)of_y[4 * PITCH]}};
                    },
                    sum);
        before = stage;
        stage = stage + 1 == GRAM_STAGES ? 0 : stage + 1;
    }
    double *const to = e.parts + stripe * e.p * all, *const to_z = to + (int64_t)e.p * e.q - e.q;
#pragma unroll
    for (int j = 0; j < ACROSS; j++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int64_t row = a + 16 * warp + lane / 4 + k / 2 * 8;
            const int column = b + 8 * j + lane % 4 * 2 + k % 2;
            if (row < e.p && column < all)
                (column < e.q ? to : to_z)[row * e.q + column] = sum[j][k];
        }
}

/* The sums of all stripes, in place of those of the first. A lane has a number, and a warp every block_warps-th stripe. */
__global__ void __launch_bounds__(block_threads) add_stripes(double *parts, int64_t stripes, int64_t count)
{
    __shared__ double cells[block_threads];
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    const int64_t k = (int64_t)blockIdx.x * warp_lanes + lane;
    double sum = 0;
    if (k < count)
#pragma unroll 8
        for (int64_t stripe = warp; stripe < stripes; stripe += block_warps)
            sum += parts[stripe * count + k];
    cells[threadIdx.x] = sum;
    __syncthreads();
    if (warp == 0 && k < count) {
        for (int w = 1; w < block_warps; w++)
            sum += cells[w * warp_lanes + lane];
        parts[k] = sum;
    }
}

spmv_status add(spmv_context *ctx, const eigen_pass *e, int64_t count)
{
    return launch(ctx, "eigen add", (int)ceil_divide(count, warp_lanes), block_threads, add_stripes, e->parts,
                  eigen_stripes(e), count);
}

template <typename T, int BYTES, int ACROSS> spmv_status run_gram_of(spmv_context *ctx, const eigen_pass *e)
{
    const int64_t all = e->q * (e->z != nullptr ? 2 : 1);
    const int64_t blocks = eigen_stripes(e) * ceil_divide(all, 8 * ACROSS) * ceil_divide(e->p, GRAM_P);
    constexpr int bytes = GRAM_STAGES * GRAM_ROWS * gram_pitch<T, ACROSS> * (int)sizeof(T);
    static_assert(bytes <= 99 * 1024, "what every architecture from 8.0 on has");
    const spmv_status st = launch_with_shared<gram<T, BYTES, ACROSS>>(
        ctx, "eigen gram", {(int)blocks, GRAM_WARPS * warp_lanes, bytes, false}, *e);
    return st != SPMV_OK ? st : add(ctx, e, e->p * all);
}

template <typename T> spmv_status run_gram(spmv_context *ctx, const eigen_pass *e)
{
    constexpr int size = (int)sizeof(T);
    const bool few = e->q * (e->z != nullptr ? 2 : 1) <= 8 * FEW;
    if (in_words(e->x, e->x_stride, e->p, size) && in_words(e->y, e->y_stride, e->q, size) &&
        in_words(e->z, e->z_stride, e->q, size))
        return few ? run_gram_of<T, 16, FEW>(ctx, e) : run_gram_of<T, 16, MANY>(ctx, e);
    return few ? run_gram_of<T, size, FEW>(ctx, e) : run_gram_of<T, size, MANY>(ctx, e);
}

/* ------------------------------------------------------------- X C */

/* A block has at most so many warps, each with its own rows in two stages. If C leaves no room for LEAST warps, it passes
 * through shared memory, at least DEEP of its rows at a time, and a warp has one stage. */
enum { COMBINE_WARPS = 8, COMBINE_LEAST = 4, COMBINE_ROWS = 16, COMBINE_DEEP = 16 };

#ifndef SPMV_COMBINE_SHARED /* the most bytes that a block takes; fewer in tests, so that C does not fit */
#define SPMV_COMBINE_SHARED INT_MAX
#endif

HOST_DEVICE_FN int round_up(int columns, int to)
{
    return (columns + to - 1) / to * to;
}

/* Numbers of a row in a stage: an odd multiple of 4, so that the rows of an operand lie in different banks. */
HOST_DEVICE_FN int combine_pitch(int p)
{
    return round_up(p, 8) + 4;
}

/* whole: C is in shared memory; else `depth` rows of a part at a time. */
template <typename T, int BYTES, int ACROSS>
__global__ void __launch_bounds__(COMBINE_WARPS *warp_lanes) combine(const eigen_pass e, bool whole, int depth)
{
    constexpr int V = BYTES / (int)sizeof(T);
    SPMV_DYNAMIC_SHARED(memory);
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes, g = lane / 4, t = lane % 4;
    const int warps = (int)blockDim.x / warp_lanes, pitch = combine_pitch(e.p), stage = COMBINE_ROWS * pitch;
    const int deep = round_up(e.p, 8), parts = round_up(e.q, 8 * ACROSS) / 8, wide = whole ? parts : ACROSS;
    double *const c = (double *)memory;
    T *const stages = (T *)(c + depth * wide * 8) + warp * (whole ? 2 : 1) * stage;
    /* C lies in operands of 8 x 8, the two numbers of a lane side by side. Column 4 j + i of a part is column 2 i + j of
     * its operand: then the lanes of a row have neighbours of the result. */
    const auto load = [&](int from, int part) {
        for (int k = (int)threadIdx.x; k < depth * wide * 8; k += (int)blockDim.x) {
            const int of_lane = k / 2 % warp_lanes, within = of_lane / 4;
            const int row = from + k / 64 / wide * 8 + k % 2 * 4 + of_lane % 4;
            const int column = (part + k / 64 % wide) * 8 + within % 2 * 4 + within / 2;
            c[k] = row < e.p && column < e.q ? e.c[(int64_t)row * e.q + column] : 0.0;
        }
    };
    /* Begins to copy 16 rows; zeros after the last row, and after the last column: what meets the zeros of C is finite. */
    const auto fill = [&](int64_t first, T *to) {
        for (int a = lane * V; a < deep; a += warp_lanes * V) {
            const T *const from = (const T *)e.x + first * e.x_stride + a;
#pragma unroll
            for (int r = 0; r < COMBINE_ROWS; r++)
                begin_copy_if<BYTES>(first + r < e.n && a < e.p, to + r * pitch + a, from + r * e.x_stride);
        }
    };
    const int64_t step = (int64_t)gridDim.x * warps * COMBINE_ROWS, lag = (int64_t)warp * gridDim.x * COMBINE_ROWS;
    int64_t first = lag + (int64_t)blockIdx.x * COMBINE_ROWS;
    if (whole) {
        if (first < e.n)
            fill(first, stages);
        load(0, 0);
        __syncthreads();
    }
    /* if C passes through, the warps of a block go in step */
    for (int now = 0; (whole ? first : first - lag) < e.n; first += step) {
        if (!whole) {
            __syncwarp();
            fill(first, stages);
        }
        await_copies();
        __syncwarp(); /* the rows are there, and all lanes have read those before them */
        if (whole && first + step < e.n)
            fill(first + step, stages + (1 - now) * stage);
        const T *const rows = stages + now * stage;
        for (int part = 0; part < parts; part += ACROSS) {
            double sum[ACROSS][4] = {};
            for (int from = 0; from < deep; from += depth) {
                if (!whole) {
                    __syncthreads();
                    load(from, part);
                    __syncthreads();
                }
                const pair *of_c = (const pair *)c + (whole ? part * warp_lanes : 0);
                const int end = from + depth < deep ? from + depth : deep;
#pragma unroll 2
                for (int k = from; k < end; k += 8, of_c += wide * warp_lanes)
                    multiply<ACROSS>(
                        [&](int r, int i) {
                            const T *const of_x = rows + r * pitch + k + i;
                            return pair{{(double)of_x[0], (double)of_x[4]}};
                        },
                        [&](int i, int j, int column) { return of_c[j * warp_lanes + 4 * column + i]; }, sum);
            }
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const int64_t row = first + g + k / 2 * 8;
#pragma unroll
                for (int j = 0; j < ACROSS; j++) {
                    const int column = 8 * (part + j) + k % 2 * 4 + t;
                    if (row < e.n && column < e.q)
                        ((T *)e.to)[row * e.to_stride + column] = (T)sum[j][k];
                }
            }
        }
        now = whole ? 1 - now : 0;
    }
}

template <typename T, int BYTES, int ACROSS> spmv_status run_combine_of(spmv_context *ctx, const eigen_pass *e)
{
    static const char name[] = "eigen combine";
    static uint64_t told;
    const cuda_state *const device = (const cuda_state *)ctx->device;
    int most = 0;
    spmv_status st =
        cuda_check(ctx, cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device->device), name);
    if (st == SPMV_OK) /* once, since sizes vary */
        st = once_a_device(ctx, name, &told, (const void *)combine<T, BYTES, ACROSS>,
                           cudaFuncAttributeMaxDynamicSharedMemorySize, most);
    if (st != SPMV_OK)
        return st;
    most = most < SPMV_COMBINE_SHARED ? most : SPMV_COMBINE_SHARED;
    constexpr int64_t row = 8 * ACROSS * sizeof(double); /* of a part of C */
    const int64_t deep = round_up(e->p, 8), c = deep * row * ceil_divide(e->q, 8 * ACROSS);
    const int64_t stage = (int64_t)COMBINE_ROWS * combine_pitch(e->p) * (int64_t)sizeof(T);
    const bool whole = c + COMBINE_LEAST * 2 * stage <= most;
    const int64_t of_warp = whole ? 2 * stage : stage, least = whole ? c : COMBINE_DEEP * row;
    if (least + of_warp > most)
        return context_fail(ctx, SPMV_ERROR_LIMIT,
                            "%s: a basis of %d vectors takes %lld bytes of shared memory: at most %d", name, (int)e->p,
                            (long long)(least + of_warp), most);
    const int64_t warps = min_i64(COMBINE_WARPS, (most - least) / of_warp);
    const int64_t depth = whole ? deep : min_i64(deep, (most - warps * of_warp) / row / 8 * 8);
    const int bytes = (int)((whole ? c : depth * row) + warps * of_warp);
    const int64_t most_blocks = (2 * bytes <= device->shared_bytes - 4096 ? 2 : 1) * device->multiprocessors;
    const int64_t blocks = min_i64(most_blocks, ceil_divide(e->n, warps * COMBINE_ROWS));
    return launch_shaped(ctx, name, {(int)blocks, (int)warps * warp_lanes, bytes, false}, combine<T, BYTES, ACROSS>, *e,
                         whole, (int)depth);
}

template <typename T> spmv_status run_combine(spmv_context *ctx, const eigen_pass *e)
{
    constexpr int size = (int)sizeof(T);
    const bool few = round_up(e->q, 8 * FEW) < round_up(e->q, 8 * MANY);
    if (in_words(e->x, e->x_stride, e->p, size))
        return few ? run_combine_of<T, 16, FEW>(ctx, e) : run_combine_of<T, 16, MANY>(ctx, e);
    return few ? run_combine_of<T, size, FEW>(ctx, e) : run_combine_of<T, size, MANY>(ctx, e);
}

/* ------------------------------------------------------------- residuals */

template <typename T> __device__ double residual(const eigen_pass &e, int64_t row, int c, int part)
{
    const int v = e.which[c];
    const int64_t at = (int64_t)v * e.parts_of_number + part;
    const double a = (double)((const T *)e.x)[row * e.x_stride + at];
    return e.values == nullptr ? a : a - e.values[v] * (double)((const T *)e.y)[row * e.y_stride + at];
}

/* A block has a stripe, a warp every block_warps-th row of it, and a lane a column of the panel. */
template <typename T> __global__ void __launch_bounds__(block_threads) squares(const eigen_pass e, int64_t stripe_rows)
{
    __shared__ double cells[block_threads];
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    const int64_t begin = (int64_t)blockIdx.x * stripe_rows,
                  end = begin + stripe_rows < e.n ? begin + stripe_rows : e.n;
    for (int first = 0; first < e.count; first += warp_lanes) {
        const int c = first + lane;
        double sum = 0;
#pragma unroll 4
        for (int64_t row = begin + warp; row < end; row += block_warps) {
            const double weight = e.weight != nullptr ? (double)((const T *)e.weight)[row] : 1.0;
            for (int part = 0; part < e.parts_of_number && c < e.count; part++) {
                const double r = residual<T>(e, row, c, part);
                sum = fma(weight * r, r, sum);
            }
        }
        __syncthreads();
        cells[threadIdx.x] = sum;
        __syncthreads();
        if (warp == 0 && c < e.count) {
            for (int w = 1; w < block_warps; w++)
                sum += cells[w * warp_lanes + lane];
            e.parts[(int64_t)blockIdx.x * e.count + c] = sum;
        }
    }
}

template <typename T, typename U> __global__ void __launch_bounds__(block_threads) send(const eigen_pass e)
{
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    for (int64_t row = (int64_t)blockIdx.x * block_warps + warp; row < e.n; row += (int64_t)gridDim.x * block_warps)
        for (int part = 0; part < e.parts_of_number; part++)
            for (int64_t c = lane; c < e.to_stride; c += warp_lanes)
                ((U *)e.to)[(row * e.parts_of_number + part) * e.to_stride + c] =
                    c < e.count ? (U)(residual<T>(e, row, (int)c, part) / e.size[c]) : U();
}

template <typename T, typename U> __global__ void __launch_bounds__(block_threads) receive(const eigen_pass e)
{
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    for (int64_t row = (int64_t)blockIdx.x * block_warps + warp; row < e.n; row += (int64_t)gridDim.x * block_warps)
        for (int part = 0; part < e.parts_of_number; part++)
            for (int c = lane; c < e.count; c += warp_lanes)
                ((T *)e.to)[row * e.to_stride + (int64_t)c * e.parts_of_number + part] =
                    (T)(e.size[c] * (double)((const U *)e.x)[(row * e.parts_of_number + part) * e.x_stride + c]);
}

template <typename T> __global__ void __launch_bounds__(block_threads) fill(const eigen_pass e)
{
    for (int64_t k = (int64_t)blockIdx.x * block_threads + threadIdx.x; k < e.n * e.q;
         k += (int64_t)gridDim.x * block_threads)
        ((T *)e.to)[k / e.q * e.to_stride + k % e.q] = (T)eigen_random(e.seed, k);
}

template <typename T> spmv_status run_random(spmv_context *ctx, const eigen_pass *e)
{
    return launch(ctx, "eigen random", grid_for(e->n * e->q, block_threads), block_threads, fill<T>, *e);
}

template <typename T> spmv_status run_squares(spmv_context *ctx, const eigen_pass *e)
{
    const spmv_status st =
        launch(ctx, "eigen squares", (int)eigen_stripes(e), block_threads, squares<T>, *e, e->stripe_rows);
    return st != SPMV_OK ? st : add(ctx, e, e->count);
}

template <typename T> spmv_status run_send(spmv_context *ctx, const eigen_pass *e)
{
    const int blocks = grid_for(e->n, block_warps);
    return e->other == SPMV_F64 ? launch(ctx, "eigen send", blocks, block_threads, send<T, double>, *e)
                                : launch(ctx, "eigen send", blocks, block_threads, send<T, float>, *e);
}

template <typename T> spmv_status run_receive(spmv_context *ctx, const eigen_pass *e)
{
    const int blocks = grid_for(e->n, block_warps);
    return e->other == SPMV_F64 ? launch(ctx, "eigen receive", blocks, block_threads, receive<T, double>, *e)
                                : launch(ctx, "eigen receive", blocks, block_threads, receive<T, float>, *e);
}

} // namespace

#define RUN(name)                                                                                                      \
    extern "C" spmv_status eigen_##name##_cuda(spmv_context *ctx, const struct eigen_pass *e)                          \
    {                                                                                                                  \
        return on_device(                                                                                              \
            ctx, [=] { return e->type == SPMV_F64 ? run_##name<double>(ctx, e) : run_##name<float>(ctx, e); });        \
    }
RUN(gram)
RUN(combine)
RUN(squares)
RUN(send)
RUN(receive)
RUN(random)
