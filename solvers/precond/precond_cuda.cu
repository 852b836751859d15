/* The computations of preconditioners on CUDA: the diagonal and its reciprocals; dense blocks, a
 * Chebyshev step. Triangular solves: precond_triangles_cuda.cu.
 *
 * Blocks: one thread a row; neighbouring threads read neighbouring elements of a column of their
 * block, and the same element of r. Step: one pass over four vectors instead of three maps.
 *
 * The order of each sum is that of the host.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/dispatch.cuh"
#include "device/launch.cuh"

extern "C" {
#include "solvers/precond/precond_loops.h"
}

namespace
{

enum { THREADS = 128 };

/* Offsets are int32_t or int64_t. val may be NULL: each entry is 1. */
template <typename T, typename Offset>
__global__ void __launch_bounds__(THREADS)
    diagonal_kernel(const Offset *row_ptr, const int32_t *col, const T *val, double *diagonal, int64_t rows)
{
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x; row < rows; row += stride) {
        const int64_t end = row_ptr[row + 1];
        double sum = 0;
        for (int64_t k = row_ptr[row]; k < end; k++)
            if (col[k] == row)
                sum += val != nullptr ? (double)val[k] : 1;
        diagonal[row] = sum;
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS) reciprocals_kernel(const double *diagonal, T *reciprocals, int64_t n)
{
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += stride)
        reciprocals[i] = (T)(1 / diagonal[i]);
}

/* struct precond_look in numbers whose maximum or sum does not depend on the order. Doubles of one
 * sign compare as their bits do. All 0 at first. */
struct look_cells {
    unsigned long long heaviest, flipped_smallest, largest;
    int64_t beside, positive, mixed, balanced, weights;
};

__device__ unsigned long long bits_of(double x)
{
    unsigned long long bits = 0;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

__device__ void atomic_max_of_warp(unsigned long long number, unsigned long long *to)
{
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
        const unsigned long long other = __shfl_down_sync(0xffffffffu, number, distance);
        number = other > number ? other : number;
    }
    if (threadIdx.x % warp_lanes == 0)
        atomicMax(to, number);
}

/* So many lanes have a row: the entries of most rows are loaded at once. */
enum { ROW_LANES = 8, WARP_ROWS = warp_lanes / ROW_LANES };

__device__ double sum_of_row(double value)
{
    for (int distance = ROW_LANES / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

template <typename T, typename Offset>
__global__ void __launch_bounds__(THREADS)
    look_kernel(const Offset *row_ptr, const int32_t *col, const T *val, const double *diagonal, int64_t first,
                int64_t rows, look_cells *cells)
{
    const int lane = (int)threadIdx.x % ROW_LANES;
    const int64_t warps = (int64_t)gridDim.x * (THREADS / warp_lanes);
    look_cells mine = {};
    for (int64_t warp = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / warp_lanes; warp * WARP_ROWS < rows;
         warp += warps) {
        const int64_t row = warp * WARP_ROWS + (int)threadIdx.x % warp_lanes / ROW_LANES;
        const int64_t end = row < rows ? (int64_t)row_ptr[row + 1] : 0;
        const double own_entry = row < rows ? diagonal[row] : 1, magnitude = fabs(own_entry);
        double sum = 0, above = 0;
        for (int64_t k = row < rows ? (int64_t)row_ptr[row] + lane : 0; k < end; k += ROW_LANES) {
            const double entry = val != nullptr ? (double)val[k] : 1, value = own_entry < 0 ? -entry : entry;
            if (col[k] != first + row && value != 0) {
                sum += fabs(value);
                above += value > 0 ? value : 0;
                mine.beside++;
                mine.positive += value > 0;
            }
        }
        sum = sum_of_row(sum);
        above = sum_of_row(above);
        if (lane != 0 || row >= rows)
            continue;
        mine.mixed += above > PRECOND_POSITIVE * magnitude;
        mine.balanced += fabs(magnitude - sum + 2 * above) <= PRECOND_BALANCE * magnitude;
        mine.weights += precond_weight(sum / magnitude);
        const unsigned long long ratio = bits_of(sum / magnitude), own = bits_of(magnitude);
        mine.heaviest = ratio > mine.heaviest ? ratio : mine.heaviest;
        mine.flipped_smallest = ~own > mine.flipped_smallest ? ~own : mine.flipped_smallest;
        mine.largest = own > mine.largest ? own : mine.largest;
    }
    __syncwarp();
    atomic_max_of_warp(mine.heaviest, &cells->heaviest);
    atomic_max_of_warp(mine.flipped_smallest, &cells->flipped_smallest);
    atomic_max_of_warp(mine.largest, &cells->largest);
    atomic_add_of_warp(mine.beside, &cells->beside);
    atomic_add_of_warp(mine.positive, &cells->positive);
    atomic_add_of_warp(mine.mixed, &cells->mixed);
    atomic_add_of_warp(mine.balanced, &cells->balanced);
    atomic_add_of_warp(mine.weights, &cells->weights);
}

enum { BALL_THREADS = 1024 };

/* One block. marks: a bit for each row, 0. A step in which the queue becomes full does not count. The order of
 * the queue depends on the clock, the numbers do not. */
template <typename Offset>
__global__ void __launch_bounds__(BALL_THREADS)
    ball_kernel(const Offset *row_ptr, const int32_t *col, int64_t rows, unsigned *marks, precond_ball *ball)
{
    __shared__ int32_t queue[PRECOND_BALL];
    __shared__ int end, reached[PRECOND_BALL_STEPS + 1];
    const int lane = (int)threadIdx.x % ROW_LANES;
    int begin = 0, steps = 0, here = 1;
    if (threadIdx.x == 0) {
        marks[0] = 1;
        queue[0] = 0;
        reached[0] = end = 1;
    }
    __syncthreads();
    while (begin < here && here <= PRECOND_BALL && steps < PRECOND_BALL_STEPS) {
        for (int at = begin + (int)threadIdx.x / ROW_LANES; at < here; at += BALL_THREADS / ROW_LANES) {
            const int64_t row = queue[at], last = row_ptr[row + 1];
            for (int64_t k = row_ptr[row] + lane; k < last; k += ROW_LANES) {
                const unsigned next = (unsigned)col[k], bit = 1u << next % 32;
                if (next >= rows || (atomicOr(marks + next / 32, bit) & bit) != 0)
                    continue;
                const int place = atomicAdd(&end, 1);
                if (place < PRECOND_BALL)
                    queue[place] = (int32_t)next;
            }
        }
        __syncthreads();
        begin = here;
        here = end;
        if (here > begin && here <= PRECOND_BALL) {
            steps++;
            if (threadIdx.x == 0)
                reached[steps] = here;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *ball = {steps, reached[steps], reached[steps / 2], begin == here};
}

template <typename T>
__global__ void __launch_bounds__(THREADS) blocks_kernel(int64_t rows, int block, const T *inverse, const T *r, T *z)
{
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x; row < rows; row += stride) {
        const int64_t first = row / block * block;
        const int n = (int)(rows - first < block ? rows - first : block);
        const T *column = inverse + first * block + (row - first);
        T sum = 0;
        for (int j = 0; j < n; j++)
            sum += column[j * block] * r[first + j];
        z[row] = sum;
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    step_kernel(bool first, T before, T factor, const T *inverse, const T *residual, T *d, T *z, int64_t n, int columns)
{
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += stride) {
        const int64_t row = columns == 1      ? i
                            : n <= UINT32_MAX ? (int64_t)((uint32_t)i / (uint32_t)columns)
                                              : i / columns;
        const T added = factor * (inverse[row] * residual[i]);
        const T next = first ? added : before * d[i] + added;
        d[i] = next;
        z[i] = first ? next : z[i] + next;
    }
}

template <typename T, typename Offset> spmv_status diagonal_of(spmv_context *ctx, const spmv_csr *a, double *diagonal)
{
    return launch(ctx, "preconditioner diagonal", grid_for(a->rows, THREADS), THREADS, diagonal_kernel<T, Offset>,
                  (const Offset *)a->row_ptr, a->col, (const T *)a->val, diagonal, a->rows);
}

template <typename T>
spmv_status reciprocals_of(spmv_context *ctx, const double *diagonal, void *reciprocals, int64_t n)
{
    return launch(ctx, "preconditioner reciprocals", grid_for(n, THREADS), THREADS, reciprocals_kernel<T>, diagonal,
                  (T *)reciprocals, n);
}

template <typename T, typename Offset>
spmv_status look(spmv_context *ctx, const spmv_csr *a, int64_t first, const double *diagonal, look_cells *cells)
{
    enum { LOOK_BLOCKS = 1024 };
    return launch(ctx, "preconditioner look", (int)min_i64(grid_for(a->rows, THREADS / ROW_LANES), LOOK_BLOCKS),
                  THREADS, look_kernel<T, Offset>, (const Offset *)a->row_ptr, a->col, (const T *)a->val, diagonal,
                  first, a->rows, cells);
}

template <typename Offset>
spmv_status grow_ball(spmv_context *ctx, const spmv_csr *a, unsigned *marks, precond_ball *ball)
{
    return launch(ctx, "preconditioner ball", 1, BALL_THREADS, ball_kernel<Offset>, (const Offset *)a->row_ptr, a->col,
                  a->rows, marks, ball);
}

/* Memory of the context, all bits 0. */
spmv_status cleared(spmv_context *ctx, int64_t bytes, void **memory)
{
    const spmv_status st = context_alloc(ctx, bytes, memory);
    return st != SPMV_OK ? st : on_device(ctx, [=] {
        return cuda_check(ctx, cudaMemsetAsync(*memory, 0, (size_t)bytes, (cudaStream_t)ctx->stream),
                          "clearing memory");
    });
}

template <typename T> spmv_status blocks(spmv_context *ctx, const struct precond_blocks *b, const void *r, void *z)
{
    return launch(ctx, "preconditioner blocks", grid_for(b->rows, THREADS), THREADS, blocks_kernel<T>, b->rows,
                  b->block, (const T *)b->inverse, (const T *)r, (T *)z);
}

template <typename T> spmv_status step(spmv_context *ctx, const struct precond_step *s, int64_t n)
{
    const int columns = s->columns > 1 ? s->columns : 1;
    n *= columns;
    return launch(ctx, "preconditioner chebyshev step", grid_for(n, THREADS), THREADS, step_kernel<T>, s->first,
                  (T)s->before, (T)s->factor, (const T *)s->inverse, (const T *)s->residual, (T *)s->d, (T *)s->z, n,
                  columns);
}

/* On the device: body(zero), with a 0 of this real type. */
template <typename Body> spmv_status with_scalar_type(spmv_context *ctx, spmv_type type, Body body)
{
    return on_device(ctx, [=] { return with_zero(ctx, "preconditioner", type, body); });
}

/* The same for the values of a matrix (f64 of a pattern), and an offset of its type. */
template <typename Body> spmv_status with_matrix_type(spmv_context *ctx, const spmv_csr *a, Body body)
{
    return with_scalar_type(ctx, a->val != nullptr ? a->type : SPMV_F64, [=](auto zero) {
        return a->row_ptr_bits == 64 ? body(zero, int64_t()) : body(zero, int32_t());
    });
}

} // namespace

extern "C" spmv_status precond_blocks_cuda(spmv_context *ctx, spmv_type type, const struct precond_blocks *b,
                                           const void *r, void *z)
{
    return with_scalar_type(ctx, type, [=](auto zero) { return blocks<decltype(zero)>(ctx, b, r, z); });
}

extern "C" spmv_status precond_step_cuda(spmv_context *ctx, spmv_type type, const struct precond_step *s, int64_t n)
{
    return with_scalar_type(ctx, type, [=](auto zero) { return step<decltype(zero)>(ctx, s, n); });
}

extern "C" spmv_status precond_diagonal_cuda(spmv_context *ctx, const spmv_csr *a, double *diagonal)
{
    return with_matrix_type(ctx, a, [=](auto zero, auto offset) {
        return diagonal_of<decltype(zero), decltype(offset)>(ctx, a, diagonal);
    });
}

extern "C" spmv_status precond_reciprocals_cuda(spmv_context *ctx, spmv_type type, const double *diagonal,
                                                void *reciprocals, int64_t n)
{
    return with_scalar_type(ctx, type,
                            [=](auto zero) { return reciprocals_of<decltype(zero)>(ctx, diagonal, reciprocals, n); });
}

extern "C" spmv_status precond_look_cuda(spmv_context *ctx, const spmv_csr *a, int64_t first, const double *diagonal,
                                         struct precond_look *numbers)
{
    void *there = nullptr;
    look_cells cells = {};
    spmv_status st = cleared(ctx, (int64_t)sizeof cells, &there);
    if (st == SPMV_OK)
        st = with_matrix_type(ctx, a, [=](auto zero, auto offset) {
            return look<decltype(zero), decltype(offset)>(ctx, a, first, diagonal, (look_cells *)there);
        });
    if (st == SPMV_OK)
        st = spmv_download(ctx, there, &cells, (int64_t)sizeof cells);
    context_free(ctx, there);
    const unsigned long long smallest = ~cells.flipped_smallest;
    numbers->beside = cells.beside;
    numbers->positive = cells.positive;
    numbers->mixed = cells.mixed;
    numbers->balanced = cells.balanced;
    numbers->weights = cells.weights;
    memcpy(&numbers->heaviest, &cells.heaviest, sizeof numbers->heaviest);
    memcpy(&numbers->smallest, &smallest, sizeof numbers->smallest);
    memcpy(&numbers->largest, &cells.largest, sizeof numbers->largest);
    return st;
}

extern "C" spmv_status precond_ball_cuda(spmv_context *ctx, const spmv_csr *a, struct precond_ball *ball)
{
    void *there = nullptr, *marks = nullptr;
    spmv_status st = cleared(ctx, ceil_divide(a->rows, (int64_t)32) * 4, &marks);
    if (st == SPMV_OK)
        st = context_alloc(ctx, (int64_t)sizeof *ball, &there);
    if (st == SPMV_OK)
        st = on_device(ctx, [=] {
            return (a->row_ptr_bits == 64 ? grow_ball<int64_t> : grow_ball<int32_t>)(ctx, a, (unsigned *)marks,
                                                                                     (precond_ball *)there);
        });
    if (st == SPMV_OK)
        st = spmv_download(ctx, there, ball, (int64_t)sizeof *ball);
    context_free(ctx, there);
    context_free(ctx, marks);
    return st;
}
