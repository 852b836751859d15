/* Passes over blocks of vectors for eigenvalue problems on CUDA (eigen_passes.h).
 *
 * Products of small matrices are instructions of a warp, in f64 (multiply). Rows come to shared memory some stages ahead of
 * their use: by the copy engine if there is one and all columns lie at multiples of 16 bytes, else by the threads.
 *
 * gram:     a block has a stripe of the rows and a panel of the sums of X'Y and X'Z. Another kernel adds the stripes, in
 *           a fixed order. Columns of Y that are columns of X too are read once. Blocks of a stripe run side by side.
 * combine:  C is in shared memory. A warp has 16 rows at a time, which it reads as a whole before it writes, so the result
 *           may replace them.
 * combine_large: the same for a C that does not fit. A block has some rows. C passes through shared memory, DEEP rows and
 *           WIDE columns at a time.
 * others:   a warp has a row, a lane every 32nd column.
 * Sums:     in f64 with fma, whose products are not rounded.
 * Bits:     stripes follow from the number of rows alone, and shapes of panels from the numbers of columns. The device does
 *           not count.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/copy_engine.cuh"
#include "device/launch.cuh"

extern "C" {
#include "solvers/eigen/eigen_passes.h"
}

namespace
{

/* ------------------------------------------------------------- products of a warp */

/* c (16 x 8) += a (16 x 8) b (8 x 8). With g = lane / 4 and t = lane % 4, a lane has a[2 h + r] = a(g + 8 r, t + 4 h),
 * b[h] = b(t + 4 h, g) and c[2 r + j] = c(g + 8 r, 2 t + j).
 * Source: PTX ISA, "mma.sync.aligned.m16n8k8". */
__device__ inline void multiply(const double (&a)[4], const double (&b)[2], double (&c)[4])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int r = 0; r < 2; r++)
            asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                         : "+d"(c[2 * r]), "+d"(c[2 * r + 1])
                         : "d"(a[2 * h + r]), "d"(b[h]));
#else
    const int g = (int)threadIdx.x % warp_lanes / 4, t = (int)threadIdx.x % 4;
    for (int k = 0; k < 8; k++) {
        double of_a[2];
        for (int r = 0; r < 2; r++)
            of_a[r] = __shfl_sync(0xffffffffu, a[k / 4 * 2 + r], g * 4 + k % 4);
        for (int j = 0; j < 2; j++) {
            const double of_b = __shfl_sync(0xffffffffu, b[k / 4], (2 * t + j) * 4 + k % 4);
            for (int r = 0; r < 2; r++)
                c[2 * r + j] = fma(of_a[r], of_b, c[2 * r + j]);
        }
    }
#endif
}

/* Whether the copy engine can copy these columns of every row. */
inline bool engine_fits(const void *block, int64_t stride, int columns, int bytes)
{
    return ((uintptr_t)block | (uintptr_t)(stride * bytes) | (uintptr_t)(columns * bytes)) % 16 == 0;
}

/* ------------------------------------------------------------- X'Y */

/* A panel has 16 TALL DOWN columns of X and 8 ACROSS of those of Y and Z side by side. Of DOWN x DEEP warps, one has 16 TALL
 * columns of X and every DEEP-th 8 rows. ROWS rows are a stage. */
template <int DOWN, int DEEP, int TALL, int ACROSS, int ROWS, int STAGES> struct gram_shape {
    static constexpr int down = DOWN, deep = DEEP, tall = TALL, across = ACROSS, rows = ROWS, stages = STAGES;
    static constexpr int p = 16 * TALL * DOWN, q = 8 * ACROSS, warps = DOWN * DEEP, threads = warp_lanes * warps;
    static_assert(ROWS % (8 * DEEP) == 0 && ROWS <= warp_lanes, "a lane starts the copies of a row");
    /* Four rows of an operand lie in different banks: an odd multiple of 4 f64 or of 8 f32. */
    template <typename T>
    static constexpr int pitch = sizeof(T) == 8         ? p + q + 4
                                 : (p + q) / 8 % 2 != 0 ? p + q
                                                        : p + q + 8;
    /* The stages; later the sums of the warps with the same rows. */
    static constexpr int sums = DEEP > 1 ? TALL *ACROSS * 4 * DOWN *warp_lanes *(int)sizeof(double) : 0;
    template <typename T> static constexpr int in_stages = STAGES *ROWS *pitch<T> *(int)sizeof(T);
    template <typename T> static constexpr int shared_bytes = in_stages<T> > sums ? in_stages<T> : sums;
};

/* Shapes, two blocks to a multiprocessor. By the columns of Y and Z: up to 16, up to 32, more; and for an X of up to 32
 * columns. wide: 56 columns are W and AW of lobpcg for some 20 pairs, where a basis of up to 96 vectors is one panel. */
using gram_narrow = gram_shape<3, 2, 2, 2, 16, 6>;
using gram_medium = gram_shape<3, 2, 2, 4, 16, 5>;
using gram_wide = gram_shape<3, 2, 2, 7, 16, 5>;
using gram_small = gram_shape<1, 4, 2, 4, 32, 4>;

template <typename T, typename S> __global__ void __launch_bounds__(S::threads, 2) gram(const eigen_pass e, bool engine)
{
    constexpr int PITCH = S::template pitch<T>, STAGE = S::rows * PITCH;
    SPMV_DYNAMIC_SHARED(memory);
    __shared__ arrival arrivals[S::stages];
    static_assert(S::template shared_bytes<T> + sizeof arrivals <= 99 * 1024,
                  "what every architecture from 8.0 on has");
    T *const stages = (T *)memory;
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes, g = lane / 4, t = lane % 4;
    const int down = warp % S::down, deep = warp / S::down;
    const int all = e.z != nullptr ? 2 * e.q : e.q, panels_across = (all + S::q - 1) / S::q;
    const int panels_down = (e.p + S::p - 1) / S::p,
              panel = (int)(blockIdx.x % (unsigned)(panels_across * panels_down));
    const int a = panel / panels_across * S::p, b = panel % panels_across * S::q; /* its first columns */
    const int64_t stripe = blockIdx.x / (unsigned)(panels_across * panels_down), begin = stripe * e.stripe_rows;
    const int64_t end = begin + e.stripe_rows < e.n ? begin + e.stripe_rows : e.n;
    const T *const x = (const T *)e.x, *const y = (const T *)e.y, *const z = (const T *)e.z;
    const int width = e.p - a < S::p ? e.p - a : S::p, others = all - b < S::q ? all - b : S::q;
    const int of_y = b >= e.q ? 0 : e.q - b < others ? e.q - b : others; /* of the others, columns of Y */
    const int64_t apart = y - x;
    const bool inside = panels_down == 1 && e.x_stride == e.y_stride && apart >= 0 && apart + e.q <= e.p;
    const int skipped = inside ? of_y : 0; /* which are columns of X, too */
    int place[S::across];                  /* of a lane's columns of Y and Z in a stage */
#pragma unroll
    for (int j = 0; j < S::across; j++) {
        const int c = 8 * j + g;
        place[j] = t * PITCH + (c < skipped ? (int)apart + b + c : S::p + c);
    }
    if (warp == 0 && engine) {
        engine_prepare(arrivals, S::stages);
        engine_prepared();
    }
    __syncthreads();
    /* Copies the rows from `first` on to a stage. */
    const auto fill = [&](int64_t first, int stage) {
        T *const to = stages + stage * STAGE;
        const int rows = end - first < S::rows ? (int)(end - first) : (int)S::rows;
        if (!engine) {
#pragma unroll 1
            for (int r = warp; r < rows; r += S::warps) {
                const int64_t row = first + r;
#pragma unroll 1
                for (int c = lane; c < width; c += warp_lanes)
                    to[r * PITCH + c] = x[row * e.x_stride + a + c];
#pragma unroll 1
                for (int c = skipped + lane; c < others; c += warp_lanes)
                    to[r * PITCH + S::p + c] =
                        c < of_y ? y[row * e.y_stride + b + c] : z[row * e.z_stride + b + c - e.q];
            }
        } else if (warp == 0) {
            constexpr int SIZE = (int)sizeof(T);
            const int64_t row = first + lane;
            if (lane == 0)
                engine_expect(arrivals + stage, (unsigned)(rows * (width + others - skipped) * SIZE));
            __syncwarp();
            if (lane < rows) {
                T *const at = to + lane * PITCH;
                engine_load(at, x + row * e.x_stride + a, (unsigned)(width * SIZE), arrivals + stage);
                if (of_y > skipped)
                    engine_load(at + S::p, y + row * e.y_stride + b, (unsigned)(of_y * SIZE), arrivals + stage);
                if (others > of_y)
                    engine_load(at + S::p + of_y, z + row * e.z_stride + b + of_y - e.q,
                                (unsigned)((others - of_y) * SIZE), arrivals + stage);
            }
        }
    };
#pragma unroll 1
    for (int s = 0; s < S::stages - 1; s++)
        if (begin + s * S::rows < end)
            fill(begin + s * S::rows, s);
    double sum[S::tall][S::across][4] = {};
    int stage = 0, before = S::stages - 1;
    unsigned phase = 0;
    for (int64_t first = begin; first < end; first += S::rows) {
        if (engine)
            engine_await(arrivals + stage, phase);
        for (int64_t k = (end - first) * PITCH + (int)threadIdx.x; k < STAGE; k += S::threads) /* after the last row */
            stages[stage * STAGE + k] = T();
        __syncthreads(); /* the rows are there, and all threads have read those before them */
        if (first + (S::stages - 1) * S::rows < end)
            fill(first + (S::stages - 1) * S::rows, before);
        const T *const at = stages + stage * STAGE + 8 * deep * PITCH, *const of_x =
                                                                           at + t * PITCH + 16 * S::tall * down + g;
#pragma unroll
        for (int k = 0; k < S::rows; k += 8 * S::deep) {
            double l[S::tall][4], r[S::across][2];
#pragma unroll
            for (int i = 0; i < S::tall; i++)
#pragma unroll
                for (int h = 0; h < 4; h++)
                    l[i][h] = (double)of_x[(k + h / 2 * 4) * PITCH + 16 * i + h % 2 * 8];
#pragma unroll
            for (int j = 0; j < S::across; j++)
#pragma unroll
                for (int h = 0; h < 2; h++)
                    r[j][h] = (double)at[(k + h * 4) * PITCH + place[j]];
#pragma unroll
            for (int j = 0; j < S::across; j++)
#pragma unroll
                for (int i = 0; i < S::tall; i++)
                    multiply(l[i], r[j], sum[i][j]);
        }
        before = stage;
        stage = stage + 1 == S::stages ? 0 : stage + 1;
        phase += stage == 0;
    }
    /* the warps with the other rows hand over their sums, one after the other */
    double *const cells = (double *)memory + (int)threadIdx.x % (warp_lanes * S::down);
#pragma unroll
    for (int w = 1; w < S::deep; w++)
#pragma unroll
        for (int turn = 0; turn < 2; turn++) {
            __syncthreads();
#pragma unroll
            for (int i = 0; i < S::tall; i++)
#pragma unroll
                for (int j = 0; j < S::across; j++)
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        double *const cell = cells + ((i * S::across + j) * 4 + k) * warp_lanes * S::down;
                        if (turn == 0 && deep == w)
                            *cell = sum[i][j][k];
                        if (turn == 1 && deep == 0)
                            sum[i][j][k] += *cell;
                    }
        }
    if (deep > 0)
        return;
    double *const to = e.parts + stripe * e.p * all, *const to_z = to + (int64_t)e.p * e.q - e.q;
#pragma unroll
    for (int i = 0; i < S::tall; i++)
#pragma unroll
        for (int j = 0; j < S::across; j++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const int64_t row = a + 16 * (S::tall * down + i) + g + k / 2 * 8;
                const int column = b + 8 * j + 2 * t + k % 2;
                if (row < e.p && column < all)
                    (column < e.q ? to : to_z)[row * e.q + column] = sum[i][j][k];
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

template <typename T, typename S> spmv_status run_gram_of(spmv_context *ctx, const eigen_pass *e)
{
    constexpr int bytes = sizeof(T);
    const int64_t both = e->z != nullptr ? 2 : 1, panels = ceil_divide(e->q * both, S::q) * ceil_divide(e->p, S::p);
    const bool engine = engine_there(ctx) && engine_fits(e->x, e->x_stride, e->p, bytes) &&
                        engine_fits(e->y, e->y_stride, e->q, bytes) && engine_fits(e->z, e->z_stride, e->q, bytes);
    const spmv_status st = launch_with_shared<gram<T, S>>(
        ctx, "eigen gram", {(int)(eigen_stripes(e) * panels), S::threads, S::template shared_bytes<T>, false}, *e,
        engine);
    return st != SPMV_OK ? st : add(ctx, e, (int64_t)e->p * e->q * both);
}

template <typename T> spmv_status run_gram(spmv_context *ctx, const eigen_pass *e)
{
    const int others = e->z != nullptr ? 2 * e->q : e->q;
    return others <= 16   ? run_gram_of<T, gram_narrow>(ctx, e)
           : e->p <= 32   ? run_gram_of<T, gram_small>(ctx, e)
           : others <= 32 ? run_gram_of<T, gram_medium>(ctx, e)
                          : run_gram_of<T, gram_wide>(ctx, e);
}

/* ------------------------------------------------------------- X C */

/* The most warps of a block, each with its own stages of ROWS rows; fewer where C leaves no room, but not below LEAST. */
enum { COMBINE_MOST = 8, COMBINE_LEAST = 4, COMBINE_STAGES = 2, COMBINE_ROWS = 16 };

HOST_DEVICE_FN int combine_round(int columns, int to)
{
    return (columns + to - 1) / to * to;
}

/* Numbers of a row in a stage: an odd multiple of 4, so that the rows of an operand lie in different banks. */
HOST_DEVICE_FN int combine_pitch(int p)
{
    return combine_round(p, 8) + 4;
}

/* One load. */
struct alignas(16) pair {
    double at[2];
};

/* ACROSS: parts of 8 columns that a warp has at a time. */
template <typename T, int ACROSS>
__global__ void __launch_bounds__(COMBINE_MOST *warp_lanes) combine(const eigen_pass e, bool engine)
{
    SPMV_DYNAMIC_SHARED(memory);
    __shared__ arrival arrivals[COMBINE_MOST * COMBINE_STAGES];
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes, g = lane / 4, t = lane % 4;
    const int warps = (int)blockDim.x / warp_lanes, pitch = combine_pitch(e.p), stage = COMBINE_ROWS * pitch;
    const int deep = combine_round(e.p, 8), parts = combine_round(e.q, 8 * ACROSS) / 8, size = deep * parts * 8;
    double *const c = (double *)memory;
    T *const stages = (T *)(c + size) + warp * COMBINE_STAGES * stage;
    arrival *const own = arrivals + warp * COMBINE_STAGES;
    /* C lies in operands of 8 x 8, the two numbers of a lane side by side. Column 4 j + i of a part is column 2 i + j of
     * its operand: then the lanes of a row have neighbours of the result. */
    for (int k = (int)threadIdx.x; k < size; k += (int)blockDim.x) {
        const int of_lane = k / 2 % warp_lanes, within = of_lane / 4,
                  row = k / 64 / parts * 8 + k % 2 * 4 + of_lane % 4;
        const int column = k / 64 % parts * 8 + within % 2 * 4 + within / 2;
        c[k] = row < e.p && column < e.q ? e.c[(int64_t)row * e.q + column] : 0.0;
    }
    for (int r = lane; r < COMBINE_STAGES * COMBINE_ROWS; r += warp_lanes) /* what meets the zeros of C is finite */
        for (int column = e.p; column < deep; column++)
            stages[r * pitch + column] = T();
    if (warp == 0 && engine) {
        engine_prepare(arrivals, COMBINE_MOST * COMBINE_STAGES);
        engine_prepared();
    }
    __syncthreads();
    const auto fill = [&](int64_t first, int into) {
        const T *const from = (const T *)e.x + first * e.x_stride;
        T *const to = stages + into * stage;
        const int rows = e.n - first < COMBINE_ROWS ? (int)(e.n - first) : (int)COMBINE_ROWS;
        if (!engine) {
            for (int r = 0; r < rows; r++)
                for (int column = lane; column < e.p; column += warp_lanes)
                    to[r * pitch + column] = from[r * e.x_stride + column];
            return;
        }
        const unsigned bytes = (unsigned)(e.p * (int)sizeof(T));
        if (lane == 0)
            engine_expect(own + into, (unsigned)rows * bytes);
        __syncwarp();
        if (lane < rows)
            engine_load(to + lane * pitch, from + lane * e.x_stride, bytes, own + into);
    };
    const int64_t step = (int64_t)gridDim.x * warps * COMBINE_ROWS;
    int64_t first = ((int64_t)warp * gridDim.x + blockIdx.x) * COMBINE_ROWS;
    for (int s = 0; s < COMBINE_STAGES - 1; s++)
        if (first + s * step < e.n)
            fill(first + s * step, s);
    int now = 0, before = COMBINE_STAGES - 1;
    unsigned phase = 0;
    for (; first < e.n; first += step) {
        if (engine)
            engine_await(own + now, phase);
        __syncwarp(); /* the rows are there, and all lanes have read those before them */
        if (first + (COMBINE_STAGES - 1) * step < e.n)
            fill(first + (COMBINE_STAGES - 1) * step, before);
        const T *const of_x = stages + now * stage + g * pitch + t;
        for (int part = 0; part < parts; part += ACROSS) {
            const pair *of_c = (const pair *)c + part * 32 + lane;
            double sum[ACROSS][4] = {};
#pragma unroll 2
            for (int k = 0; k < deep; k += 8, of_c += parts * warp_lanes) {
                double l[4], r[ACROSS][2];
#pragma unroll
                for (int h = 0; h < 4; h++)
                    l[h] = (double)of_x[h % 2 * 8 * pitch + k + h / 2 * 4];
#pragma unroll
                for (int j = 0; j < ACROSS; j++)
#pragma unroll
                    for (int h = 0; h < 2; h++)
                        r[j][h] = of_c[j * warp_lanes].at[h];
#pragma unroll
                for (int j = 0; j < ACROSS; j++)
                    multiply(l, r[j], sum[j]);
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
        before = now;
        now = now + 1 == COMBINE_STAGES ? 0 : now + 1;
        phase += now == 0;
    }
}

/* A block has ROWS rows; 16 x 16 threads have ROWS / 16 rows and WIDE / 16 columns each. */
enum { DEEP = 16, MANY_ROWS = 64, FEW_ROWS = 16 };

template <typename T, int ROWS, int WIDE>
__global__ void __launch_bounds__(block_threads) combine_large(const eigen_pass e)
{
    constexpr int OWN = ROWS / 16, SIDE = WIDE / 16;
    SPMV_DYNAMIC_SHARED(memory);
    double *const c = (double *)memory, *const x = c + DEEP * WIDE; /* x: ROWS rows of p + 1 numbers */
    const int tx = (int)threadIdx.x % 16, ty = (int)threadIdx.x / 16, pitch = e.p + 1;
    for (int64_t first = (int64_t)blockIdx.x * ROWS; first < e.n; first += (int64_t)gridDim.x * ROWS) {
        __syncthreads();
        for (int k = (int)threadIdx.x; k < ROWS * e.p; k += block_threads) {
            const int r = k / e.p, a = k % e.p;
            x[r * pitch + a] = first + r < e.n ? (double)((const T *)e.x)[(first + r) * e.x_stride + a] : 0.0;
        }
        for (int b = 0; b < e.q; b += WIDE) {
            double sum[OWN][SIDE] = {};
            for (int from = 0; from < e.p; from += DEEP) {
                __syncthreads();
                for (int k = (int)threadIdx.x; k < DEEP * WIDE; k += block_threads) {
                    const int a = from + k / WIDE, column = b + k % WIDE;
                    c[k] = a < e.p && column < e.q ? e.c[(int64_t)a * e.q + column] : 0.0;
                }
                __syncthreads();
                const int many = e.p - from < DEEP ? e.p - from : (int)DEEP;
#pragma unroll 4
                for (int a = 0; a < many; a++) {
                    double of_x[OWN], of_c[SIDE];
#pragma unroll
                    for (int i = 0; i < OWN; i++)
                        of_x[i] = x[(ty + 16 * i) * pitch + from + a];
#pragma unroll
                    for (int j = 0; j < SIDE; j++)
                        of_c[j] = c[a * WIDE + tx + 16 * j];
#pragma unroll
                    for (int i = 0; i < OWN; i++)
#pragma unroll
                        for (int j = 0; j < SIDE; j++)
                            sum[i][j] = fma(of_x[i], of_c[j], sum[i][j]);
                }
            }
#pragma unroll
            for (int i = 0; i < OWN; i++)
#pragma unroll
                for (int j = 0; j < SIDE; j++) {
                    const int64_t row = first + ty + 16 * i;
                    const int column = b + tx + 16 * j;
                    if (row < e.n && column < e.q)
                        ((T *)e.to)[row * e.to_stride + column] = (T)sum[i][j];
                }
        }
    }
}

/* Shared memory of so many rows of X and a part of C. */
template <int WIDE> int64_t large_bytes(const eigen_pass *e, int rows)
{
    return (DEEP * WIDE + (int64_t)rows * (e->p + 1)) * (int64_t)sizeof(double);
}

/* most: what a block may have; the driver is told that once, since sizes vary. */
template <typename T, int ROWS, int WIDE> spmv_status run_large_of(spmv_context *ctx, const eigen_pass *e, int most)
{
    static const char name[] = "eigen combine";
    static uint64_t told;
    const int64_t bytes = large_bytes<WIDE>(e, ROWS);
    if (bytes > most)
        return context_fail(ctx, SPMV_ERROR_LIMIT,
                            "%s: a basis of %d vectors takes %lld bytes of shared memory: at most %d", name, (int)e->p,
                            (long long)bytes, most);
    const spmv_status st = once_a_device(ctx, name, &told, (const void *)combine_large<T, ROWS, WIDE>,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, most);
    return st != SPMV_OK ? st
                         : launch_shaped(ctx, name, {grid_for(e->n, ROWS), block_threads, (int)bytes, false},
                                         combine_large<T, ROWS, WIDE>, *e);
}

template <typename T, int WIDE> spmv_status run_large(spmv_context *ctx, const eigen_pass *e, int most)
{
    return large_bytes<WIDE>(e, MANY_ROWS) <= most / 10 * 7 ? run_large_of<T, MANY_ROWS, WIDE>(ctx, e, most)
                                                            : run_large_of<T, FEW_ROWS, WIDE>(ctx, e, most);
}

/* *ran: false if C leaves too little room. */
template <typename T, int ACROSS>
spmv_status run_combine_of(spmv_context *ctx, const eigen_pass *e, int most, bool *ran)
{
    static const char name[] = "eigen combine";
    static uint64_t told;
    const cuda_state *const device = (const cuda_state *)ctx->device;
    const int64_t c = (int64_t)combine_round(e->p, 8) * combine_round(e->q, 8 * ACROSS) * (int64_t)sizeof(double);
    const int64_t of_warp = (int64_t)COMBINE_STAGES * COMBINE_ROWS * combine_pitch(e->p) * (int64_t)sizeof(T);
    const int64_t fit = (most - 1024 - c) / of_warp; /* less what arrivals take */
    const int warps = fit < COMBINE_MOST ? (int)fit : (int)COMBINE_MOST;
    *ran = warps >= COMBINE_LEAST;
    if (!*ran)
        return SPMV_OK;
    const int bytes = (int)(c + warps * of_warp), blocks = 2 * bytes <= device->shared_bytes - 4096 ? 2 : 1;
    const int64_t tiles = ceil_divide(e->n, warps * COMBINE_ROWS);
    const bool engine = engine_there(ctx) && engine_fits(e->x, e->x_stride, e->p, (int)sizeof(T));
    const spmv_status st = once_a_device(ctx, name, &told, (const void *)combine<T, ACROSS>,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, most - 1024);
    return st != SPMV_OK ? st
                         : launch_shaped(ctx, name,
                                         {(int)min_i64(tiles, blocks * device->multiprocessors), warps * warp_lanes,
                                          bytes, false},
                                         combine<T, ACROSS>, *e, engine);
}

template <typename T> spmv_status run_combine(spmv_context *ctx, const eigen_pass *e)
{
    int most = 0;
    bool ran = false;
    const int device = ((cuda_state *)ctx->device)->device;
    spmv_status st = cuda_check(ctx, cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                                "eigen combine");
    if (st == SPMV_OK) /* parts of columns of which few are empty; 7: X and P of lobpcg for some 20 pairs */
        st = e->q <= 16   ? run_combine_of<T, 2>(ctx, e, most, &ran)
             : e->q <= 32 ? run_combine_of<T, 4>(ctx, e, most, &ran)
                          : run_combine_of<T, 7>(ctx, e, most, &ran);
    if (st != SPMV_OK || ran)
        return st;
    return e->q <= 16 ? run_large<T, 16>(ctx, e, most) : run_large<T, 64>(ctx, e, most);
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
