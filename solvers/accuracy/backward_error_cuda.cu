/* The component-wise backward error on CUDA (backward_error.h).
 *
 * Idea:     a group of lanes, a power of two near the mean length of a row, takes a row; the block keeps
 *           the largest omega and the sum of |r|^2 of its rows, and the host combines the blocks.
 * Launches: two, and one wait.
 * Bits:     the number of blocks and of lanes follows from the matrix alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/complex.cuh"
#include "device/launch.cuh"

extern "C" {
#include <spmv/primitives.h>

#include "formats/matrix_internal.h"
#include "solvers/accuracy/backward_error.h"
}

namespace
{

/* BLOCKS: as many as fit on the multiprocessors of an H100 at once. */
enum { BLOCKS = 1056 };
constexpr unsigned all_lanes = 0xffffffffu;

__device__ double part_of(float a, int)
{
    return fabs((double)a);
}
__device__ double part_of(double a, int)
{
    return fabs(a);
}
template <typename Complex> __device__ double part_of(Complex a, int)
{
    const double re = fabs((double)a.re), im = fabs((double)a.im);
    return re > im ? re : im;
}

/* Numbers >= 0 are ordered as their bits are. Blocks of a column: those whose number has that remainder. */
template <typename T>
__global__ void __launch_bounds__(block_threads)
    find_largest(const T *x, int64_t rows, int columns, unsigned long long *largest)
{
    const int v = (int)blockIdx.x % columns, block = (int)blockIdx.x / columns, blocks = (int)gridDim.x / columns;
    double most = 0;
    for (int64_t i = (int64_t)block * block_threads + threadIdx.x; i < rows; i += (int64_t)blocks * block_threads) {
        const double size = part_of(load_whole(x + i * columns + v), 0);
        most = size > most ? size : most;
    }
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
        const double other = __shfl_down_sync(all_lanes, most, distance);
        most = other > most ? other : most;
    }
    if (threadIdx.x % warp_lanes == 0) {
        unsigned long long bits = 0;
        memcpy(&bits, &most, sizeof bits);
        atomicMax(&largest[v], bits);
    }
}

template <typename Offset> struct rows_of {
    const Offset *row_ptr;
    const int32_t *col;
    int64_t rows;
    int columns, lanes;
    const double *largest; /* of each column, not scaled */
    struct backward_part *parts;
};

template <typename V> __device__ void add(error_row *row, double factor, V a, double scale, double x)
{
    error_row_add(row, factor * (double)a, scale * x);
}
template <typename V> __device__ void add(error_row *row, double factor, V a, double scale, float x)
{
    error_row_add(row, factor * (double)a, scale * (double)x);
}
template <typename Complex>
__device__ auto add(error_row *row, double factor, Complex a, double scale, Complex x) -> decltype((void)x.re)
{
    error_row_add_complex(row, factor * (double)a.re, factor * (double)a.im, scale * (double)x.re,
                          scale * (double)x.im);
}

/* The sums of a row, in all lanes of its group. Called by all lanes of a warp; rows beyond the end are
 * empty. */
template <typename T, typename V, typename Offset>
__device__ error_row sums_of(const rows_of<Offset> &of, const V *val, const T *x, int64_t i, int v, double factor,
                             double scale)
{
    error_row row = {0, 0, 0, 0};
    const int lane = (int)threadIdx.x % of.lanes;
    if (i < of.rows)
        for (int64_t k = (int64_t)of.row_ptr[i] + lane; k < (int64_t)of.row_ptr[i + 1]; k += of.lanes)
            add(&row, factor, val != nullptr ? load_whole(val + k) : real_value<V>(1), scale,
                load_whole(x + (int64_t)of.col[k] * of.columns + v));
    for (int distance = of.lanes / 2; distance > 0; distance /= 2) {
        row.re += __shfl_xor_sync(all_lanes, row.re, distance);
        row.im += __shfl_xor_sync(all_lanes, row.im, distance);
        row.terms += __shfl_xor_sync(all_lanes, row.terms, distance);
        row.norm += __shfl_xor_sync(all_lanes, row.norm, distance);
    }
    return row;
}

struct error_numbers {
    double re, im;
};
__device__ error_numbers numbers_of(float b)
{
    return {(double)b, 0};
}
__device__ error_numbers numbers_of(double b)
{
    return {b, 0};
}
template <typename Complex> __device__ error_numbers numbers_of(Complex b)
{
    return {(double)b.re, (double)b.im};
}

/* Keeps the larger omega, on a tie the lower row. */
__device__ void keep(backward_part *part, double omega, int64_t row)
{
    if (row >= 0 && (part->row < 0 || omega > part->omega || (omega == part->omega && row < part->row))) {
        part->omega = omega;
        part->row = row;
    }
}

template <typename T, typename V, typename Offset>
__global__ void __launch_bounds__(block_threads)
    find_parts(const rows_of<Offset> of, const V *val, const T *b, const T *x)
{
    __shared__ backward_part of_warps[block_warps];
    const int v = (int)blockIdx.x % of.columns, block = (int)blockIdx.x / of.columns;
    const int blocks = (int)gridDim.x / of.columns, groups = block_threads / of.lanes;
    const double scale = error_scale(of.largest[v]), largest = of.largest[v] * scale;
    backward_part part = {0, -1, {0, 0, 0}};
    for (int64_t first = (int64_t)block * groups; first < of.rows; first += (int64_t)blocks * groups) {
        const int64_t i = first + threadIdx.x / of.lanes;
        error_numbers right = {0, 0};
        if (i < of.rows)
            right = numbers_of(load_whole(b + i * of.columns + v));
        double factor = 1, omega = 0, size = 0;
        for (int again = 0; again < 2; again++) {
            const error_row row = sums_of(of, val, x, i, v, factor, scale);
            const double re = factor * right.re * scale, im = factor * right.im * scale;
            const bool real = im == 0 && row.im == 0; /* squares of real numbers may leave the range */
            const double modulus = im == 0 ? fabs(re) : error_modulus(re, im);
            const double r = real ? fabs(re + row.re) : error_modulus(re + row.re, im + row.im);
            omega = error_row_omega(row, modulus, r, largest, BACKWARD_TINY);
            size = r / factor;
            const double next = error_row_factor(row, modulus, largest);
            const bool redo = again == 0 && i < of.rows && next != 1;
            if (__ballot_sync(all_lanes, redo) == 0)
                break;
            factor = redo ? next : 1;
        }
        if (i < of.rows && threadIdx.x % of.lanes == 0) {
            error_norm_add(&part.norm, size);
            keep(&part, omega, i);
        }
    }
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
        const double omega = __shfl_down_sync(all_lanes, part.omega, distance);
        const long long row = __shfl_down_sync(all_lanes, (long long)part.row, distance);
        error_norm_add_all(&part.norm, {__shfl_down_sync(all_lanes, part.norm.small, distance),
                                        __shfl_down_sync(all_lanes, part.norm.middle, distance),
                                        __shfl_down_sync(all_lanes, part.norm.large, distance)});
        keep(&part, omega, row);
    }
    if (threadIdx.x % warp_lanes == 0)
        of_warps[threadIdx.x / warp_lanes] = part;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (int w = 1; w < block_warps; w++) {
        error_norm_add_all(&part.norm, of_warps[w].norm);
        keep(&part, of_warps[w].omega, of_warps[w].row);
    }
    of.parts[blockIdx.x] = part;
}

/* A power of two of at most a warp. */
int lanes_for(const spmv_csr *a)
{
    int lanes = 1;
    while (lanes < warp_lanes && 2 * lanes * a->rows <= a->nnz)
        lanes *= 2;
    return lanes;
}

int blocks_for(const spmv_csr *a, int each)
{
    const int grid = grid_for(a->rows, each);
    return grid < BLOCKS ? grid : (int)BLOCKS;
}

struct pass {
    int lanes, blocks;
    const double *largest; /* on the device */
    backward_part *parts;
};

template <typename T, typename V, typename Offset>
spmv_status run(spmv_context *ctx, const backward_job *job, const pass &p)
{
    const rows_of<Offset> of = {
        (const Offset *)job->a->row_ptr, job->a->col, job->a->rows, job->columns, p.lanes, p.largest, p.parts};
    return launch(ctx, "backward error", p.blocks * job->columns, block_threads, find_parts<T, V, Offset>, of,
                  (const V *)job->a->val, (const T *)job->b, (const T *)job->x);
}

template <typename T, typename V> spmv_status run_values(spmv_context *ctx, const backward_job *job, const pass &p)
{
    return job->a->row_ptr_bits == 32 ? run<T, V, int32_t>(ctx, job, p) : run<T, V, int64_t>(ctx, job, p);
}

spmv_status run_types(spmv_context *ctx, const backward_job *job, const pass &p)
{
    return on_device(ctx, [&] {
        return with_floating(job->type, [&](auto vector) {
            using T = decltype(vector);
            if constexpr (std::is_same<T, double>::value)
                if (job->a->val != nullptr && job->a->type == SPMV_F32)
                    return run_values<T, float>(ctx, job, p);
            return run_values<T, T>(ctx, job, p);
        });
    });
}

} // namespace

extern "C" spmv_status backward_parts_cuda(spmv_context *ctx, const backward_job *job, double *largest,
                                           backward_part **parts, int64_t *chunks)
{
    spmv_status st = SPMV_OK;
    const int lanes = lanes_for(job->a), blocks = blocks_for(job->a, block_threads / lanes);
    const int64_t bytes = (int64_t)blocks * job->columns * (int64_t)sizeof(backward_part);
    const int64_t largest_bytes = job->columns * (int64_t)sizeof(double);
    void *memory = NULL, *cells = NULL;
    char *host = NULL;
    TRY(host_alloc(ctx, bytes + largest_bytes, "a backward error", (void **)&host));
    TRY(context_lend(ctx, bytes + largest_bytes, &memory));
    cells = (char *)memory + bytes;
    TRY(on_device(ctx, [&] {
        return cuda_check(ctx, cudaMemsetAsync(cells, 0, (size_t)largest_bytes, (cudaStream_t)ctx->stream),
                          "clearing the largest elements");
    }));
    TRY(on_device(ctx, [&] {
        return with_floating(job->type, [&](auto vector) {
            using T = decltype(vector);
            return launch(ctx, "largest element", blocks_for(job->a, block_threads) * job->columns, block_threads,
                          find_largest<T>, (const T *)job->x, job->a->rows, job->columns, (unsigned long long *)cells);
        });
    }));
    TRY(run_types(ctx, job, {lanes, blocks, (const double *)cells, (backward_part *)memory}));
    TRY(spmv_download(ctx, memory, host, bytes + largest_bytes));
    memcpy(largest, host + bytes, (size_t)largest_bytes);
    *parts = (backward_part *)(void *)host;
    host = NULL;
    *chunks = blocks;
done:
    context_take_back(ctx, memory);
    host_free(host);
    return st;
}
