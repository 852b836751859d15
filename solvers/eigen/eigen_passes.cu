/* Passes over blocks of vectors for eigenvalue problems on CUDA (eigen_passes.h).
 *
 * gram:     a block has a stripe of the rows and P x Q of the sums, a thread 4 x SIDE of them in registers. No bit depends
 *           on these sizes. Rows pass
 *           through shared memory as f64. Another kernel adds the stripes in their order. X and Y are read from memory about
 *           once: the blocks of a stripe run side by side.
 * combine:  a block has some rows, which it reads as a whole into shared memory before it writes, so the result may replace
 *           them. C passes through shared memory, DEEP rows and WIDE columns at a time.
 * others:   a warp has a row, a lane every 32nd column.
 * Sums:     in f64 with fma, whose products are not rounded.
 * Bits:     stripes follow from the number of rows alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/launch.cuh"

extern "C" {
#include "solvers/eigen/eigen_passes.h"
}

namespace
{

/* ------------------------------------------------------------- X'Y */

enum { GRAM_ROWS = 32, GRAM_SIDE = 4 };

template <typename T, int THREADS>
__device__ void load_panel(const T *from, int64_t stride, int columns, int first, int width, int64_t row, int64_t end,
                           double *to)
{
    for (int k = (int)threadIdx.x; k < GRAM_ROWS * width; k += THREADS) {
        const int r = k / width, c = k % width;
        to[k] = row + r < end && first + c < columns ? (double)from[(row + r) * stride + first + c] : 0.0;
    }
}

template <int P, int Q, int SIDE> constexpr int gram_threads = P / GRAM_SIDE *(Q / SIDE);

/* Blocks of a multiprocessor: all of two panels for each stripe run at once on an H100. */
template <int P> constexpr int gram_resident = P == 96 ? 4 : 1;

template <typename T, int P, int Q, int SIDE>
__global__ void __launch_bounds__(gram_threads<P, Q, SIDE>, gram_resident<P>)
    gram(const eigen_pass e, int64_t stripe_rows)
{
    constexpr int THREADS = gram_threads<P, Q, SIDE>, ACROSS = Q / SIDE; /* threads with the same rows of sums */
    __shared__ double x[GRAM_ROWS * P], y[GRAM_ROWS * Q];
    const int across = (e.q + Q - 1) / Q, down = (e.p + P - 1) / P, panels = across * down;
    const int both = e.z != nullptr ? 2 : 1, panel = (int)(blockIdx.x % (unsigned)(panels * both));
    const int64_t stripe = blockIdx.x / (unsigned)(panels * both);
    const bool second = panel >= panels;
    const int a = panel % panels / across * P, b = panel % across * Q;
    const T *const right = (const T *)(second ? e.z : e.y);
    const int64_t right_stride = second ? e.z_stride : e.y_stride;
    const int tx = (int)threadIdx.x % ACROSS, ty = (int)threadIdx.x / ACROSS;
    const int64_t begin = stripe * stripe_rows, end = begin + stripe_rows < e.n ? begin + stripe_rows : e.n;
    double sum[GRAM_SIDE][SIDE] = {};
    for (int64_t row = begin; row < end; row += GRAM_ROWS) {
        __syncthreads();
        load_panel<T, THREADS>((const T *)e.x, e.x_stride, e.p, a, P, row, end, x);
        load_panel<T, THREADS>(right, right_stride, e.q, b, Q, row, end, y);
        __syncthreads();
#pragma unroll 4
        for (int r = 0; r < GRAM_ROWS; r++) {
            double of_x[GRAM_SIDE], of_y[SIDE];
#pragma unroll
            for (int i = 0; i < GRAM_SIDE; i++)
                of_x[i] = x[r * P + ty * GRAM_SIDE + i];
#pragma unroll
            for (int j = 0; j < SIDE; j++)
                of_y[j] = y[r * Q + tx + j * ACROSS];
#pragma unroll
            for (int i = 0; i < GRAM_SIDE; i++)
#pragma unroll
                for (int j = 0; j < SIDE; j++)
                    sum[i][j] = fma(of_x[i], of_y[j], sum[i][j]);
        }
    }
    double *const to = e.parts + (stripe * both + (second ? 1 : 0)) * e.p * e.q;
#pragma unroll
    for (int i = 0; i < GRAM_SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++) {
            const int row = a + ty * GRAM_SIDE + i, column = b + tx + j * ACROSS;
            if (row < e.p && column < e.q)
                to[(int64_t)row * e.q + column] = sum[i][j];
        }
}

/* The sums of all stripes, in place of those of the first. */
__global__ void __launch_bounds__(block_threads) add_stripes(double *parts, int64_t stripes, int64_t count)
{
    for (int64_t k = (int64_t)blockIdx.x * block_threads + threadIdx.x; k < count;
         k += (int64_t)gridDim.x * block_threads) {
        double sum = parts[k];
#pragma unroll 8
        for (int64_t stripe = 1; stripe < stripes; stripe++)
            sum += parts[stripe * count + k];
        parts[k] = sum;
    }
}

spmv_status add(spmv_context *ctx, const eigen_pass *e, int64_t count)
{
    return launch(ctx, "eigen add", grid_for(count, block_threads), block_threads, add_stripes, e->parts,
                  eigen_stripes(e), count);
}

template <typename T, int P, int Q, int SIDE> spmv_status run_gram_of(spmv_context *ctx, const eigen_pass *e)
{
    const int64_t panels = ceil_divide(e->q, Q) * ceil_divide(e->p, P) * (e->z != nullptr ? 2 : 1);
    const spmv_status st = launch(ctx, "eigen gram", (int)(eigen_stripes(e) * panels), gram_threads<P, Q, SIDE>,
                                  gram<T, P, Q, SIDE>, *e, e->stripe_rows);
    return st != SPMV_OK ? st : add(ctx, e, (int64_t)e->p * e->q * (e->z != nullptr ? 2 : 1));
}

/* Panels that leave few of their columns empty. 8 columns: a block of lanczos. 32: W of lobpcg for some 20 pairs, where a
 * basis of up to 96 vectors is one panel. */
template <typename T> spmv_status run_gram(spmv_context *ctx, const eigen_pass *e)
{
    return e->q <= 8    ? run_gram_of<T, 64, 8, 1>(ctx, e)
           : e->q > 32  ? run_gram_of<T, 32, 64, 4>(ctx, e)
           : e->p <= 32 ? run_gram_of<T, 32, 32, 4>(ctx, e)
           : e->p <= 64 ? run_gram_of<T, 64, 32, 4>(ctx, e)
                        : run_gram_of<T, 96, 32, 4>(ctx, e);
}

/* ------------------------------------------------------------- X C */

/* A block has ROWS rows; 16 x 16 threads have ROWS / 16 rows and WIDE / 16 columns each. */
enum { DEEP = 16, MANY_ROWS = 64, FEW_ROWS = 16 };

template <typename T, int ROWS, int WIDE> __global__ void __launch_bounds__(block_threads) combine(const eigen_pass e)
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
template <int WIDE> int64_t combine_bytes(const eigen_pass *e, int rows)
{
    return (DEEP * WIDE + (int64_t)rows * (e->p + 1)) * (int64_t)sizeof(double);
}

/* most: what a block may have; the driver is told that once, since sizes vary. */
template <typename T, int ROWS, int WIDE> spmv_status run_combine_of(spmv_context *ctx, const eigen_pass *e, int most)
{
    static const char name[] = "eigen combine";
    static uint64_t told;
    const int64_t bytes = combine_bytes<WIDE>(e, ROWS);
    if (bytes > most)
        return context_fail(ctx, SPMV_ERROR_LIMIT,
                            "%s: a basis of %d vectors takes %lld bytes of shared memory: at most %d", name, (int)e->p,
                            (long long)bytes, most);
    const spmv_status st = once_a_device(ctx, name, &told, (const void *)combine<T, ROWS, WIDE>,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, most);
    return st != SPMV_OK ? st
                         : launch_shaped(ctx, name, {grid_for(e->n, ROWS), block_threads, (int)bytes, false},
                                         combine<T, ROWS, WIDE>, *e);
}

template <typename T, int WIDE> spmv_status run_combine_wide(spmv_context *ctx, const eigen_pass *e)
{
    int most = 0;
    const spmv_status st = cuda_check(
        ctx,
        cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, ((cuda_state *)ctx->device)->device),
        "eigen combine");
    return st != SPMV_OK                                        ? st
           : combine_bytes<WIDE>(e, MANY_ROWS) <= most / 10 * 7 ? run_combine_of<T, MANY_ROWS, WIDE>(ctx, e, most)
                                                                : run_combine_of<T, FEW_ROWS, WIDE>(ctx, e, most);
}

template <typename T> spmv_status run_combine(spmv_context *ctx, const eigen_pass *e)
{
    return e->q <= 16 ? run_combine_wide<T, 16>(ctx, e) : run_combine_wide<T, 64>(ctx, e);
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
