/* The computations of preconditioners on CUDA: the diagonal and its reciprocals; dense blocks, a
 * Chebyshev step, a triangular solve by levels.
 *
 * Blocks: one thread a row; neighbouring threads read neighbouring elements of a column of their
 * block, and the same element of r. Step: one pass over four vectors instead of three maps.
 * Triangle: a large level is one launch, one thread a row. A run of small levels is one launch of
 * one block, with a barrier between levels, which costs a tenth of a launch. So a matrix with long
 * chains takes microseconds a level, whatever its size. M. Naumov, "Parallel solution of sparse
 * triangular linear systems in the preconditioned iterative methods on the GPU", NVIDIA
 * NVR-2011-001, 2011.
 *
 * The order of each sum is that of the host.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "launch.cuh"

extern "C" {
#include "precond_loops.h"
}

namespace
{

enum { THREADS = 128, RUN_THREADS = 1024 };

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
    step_kernel(bool first, T before, T factor, const T *inverse, const T *residual, T *d, T *z, int64_t n)
{
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += stride) {
        const T added = factor * (inverse[i] * residual[i]);
        const T next = first ? added : before * d[i] + added;
        d[i] = next;
        z[i] = first ? next : z[i] + next;
    }
}

template <typename T> struct triangle {
    const int64_t *ptr;
    const int32_t *col, *row;
    const T *val, *inverse;

    /* in and out may be the same array, and other threads write elements that are read here, so
     * loads must not use the read-only cache. */
    __device__ void solve(int64_t p, const T *in, T *out) const
    {
        T sum = in[row[p]];
        const int64_t end = ptr[p + 1];
        for (int64_t k = ptr[p]; k < end; k++)
            sum -= val[k] * out[col[k]];
        out[row[p]] = sum * inverse[p];
    }
};

template <typename T>
__global__ void __launch_bounds__(THREADS) level_kernel(triangle<T> t, const T *in, T *out, int64_t begin, int64_t end)
{
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t p = begin + (int64_t)blockIdx.x * THREADS + threadIdx.x; p < end; p += stride)
        t.solve(p, in, out);
}

/* One block: levels first to last - 1. */
template <typename T>
__global__ void __launch_bounds__(RUN_THREADS)
    run_kernel(triangle<T> t, const T *in, T *out, const int64_t *level, int64_t first, int64_t last)
{
    for (int64_t l = first; l < last; l++) {
        const int64_t end = level[l + 1];
        for (int64_t p = level[l] + threadIdx.x; p < end; p += RUN_THREADS)
            t.solve(p, in, out);
        __syncthreads();
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

template <typename T> spmv_status blocks(spmv_context *ctx, const struct precond_blocks *b, const void *r, void *z)
{
    return launch(ctx, "preconditioner blocks", grid_for(b->rows, THREADS), THREADS, blocks_kernel<T>, b->rows,
                  b->block, (const T *)b->inverse, (const T *)r, (T *)z);
}

template <typename T> spmv_status step(spmv_context *ctx, const struct precond_step *s, int64_t n)
{
    return launch(ctx, "preconditioner chebyshev step", grid_for(n, THREADS), THREADS, step_kernel<T>, s->first,
                  (T)s->before, (T)s->factor, (const T *)s->inverse, (const T *)s->residual, (T *)s->d, (T *)s->z, n);
}

template <typename T>
spmv_status solve(spmv_context *ctx, const struct precond_triangle *from, const void *in, void *out)
{
    const triangle<T> t = {from->ptr, from->col, from->row, (const T *)from->val, (const T *)from->inverse};
    spmv_status st = SPMV_OK;
    for (int64_t f = 0; f < from->phases && st == SPMV_OK; f++) {
        const int64_t begin = from->first[f], end = from->first[f + 1];
        if (from->wide[f])
            st = launch(ctx, "preconditioner level", grid_for(end - begin, THREADS), THREADS, level_kernel<T>, t,
                        (const T *)in, (T *)out, begin, end);
        else
            st = launch(ctx, "preconditioner levels", 1, RUN_THREADS, run_kernel<T>, t, (const T *)in, (T *)out,
                        from->level, from->first_level[f], from->first_level[f + 1]);
    }
    return st;
}

} // namespace

extern "C" spmv_status precond_blocks_cuda(spmv_context *ctx, spmv_type type, const struct precond_blocks *b,
                                           const void *r, void *z)
{
    return on_device(ctx,
                     [=] { return type == SPMV_F64 ? blocks<double>(ctx, b, r, z) : blocks<float>(ctx, b, r, z); });
}

extern "C" spmv_status precond_step_cuda(spmv_context *ctx, spmv_type type, const struct precond_step *s, int64_t n)
{
    return on_device(ctx, [=] { return type == SPMV_F64 ? step<double>(ctx, s, n) : step<float>(ctx, s, n); });
}

extern "C" spmv_status precond_triangle_cuda(spmv_context *ctx, spmv_type type, const struct precond_triangle *t,
                                             const void *in, void *out)
{
    return on_device(ctx,
                     [=] { return type == SPMV_F64 ? solve<double>(ctx, t, in, out) : solve<float>(ctx, t, in, out); });
}

extern "C" spmv_status precond_diagonal_cuda(spmv_context *ctx, const spmv_csr *a, double *diagonal)
{
    const bool narrow = a->val != nullptr && a->type == SPMV_F32, wide = a->row_ptr_bits == 64;
    return on_device(ctx, [=] {
        return narrow ? (wide ? diagonal_of<float, int64_t> : diagonal_of<float, int32_t>)(ctx, a, diagonal)
                      : (wide ? diagonal_of<double, int64_t> : diagonal_of<double, int32_t>)(ctx, a, diagonal);
    });
}

extern "C" spmv_status precond_reciprocals_cuda(spmv_context *ctx, spmv_type type, const double *diagonal,
                                                void *reciprocals, int64_t n)
{
    return on_device(ctx, [=] {
        return (type == SPMV_F64 ? reciprocals_of<double> : reciprocals_of<float>)(ctx, diagonal, reciprocals, n);
    });
}
