/* A right solution of the exercise spmv in CUDA: one thread for each row.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>

static __global__ void multiply_row(int64_t rows, const int64_t *row_ptr, const int32_t *col, const double *val,
                                    const double *x, double *y)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0;
    if (i >= rows)
        return;
    for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
        sum += val[k] * x[col[k]];
    y[i] = sum;
}

/* A copy of n elements on the GPU. */
template <typename Type> static Type *upload(const Type *host, int64_t n)
{
    Type *device = NULL;
    cudaMalloc(&device, (size_t)(n + 1) * sizeof *device);
    cudaMemcpy(device, host, (size_t)n * sizeof *device, cudaMemcpyHostToDevice);
    return device;
}

extern "C" void spmv(int64_t rows, const int64_t *row_ptr, const int32_t *col, const double *val, const double *x,
                     double *y)
{
    const int64_t nnz = row_ptr[rows];
    int64_t cols = 0;
    for (int64_t k = 0; k < nnz; k++)
        cols = col[k] >= cols ? col[k] + 1 : cols;
    int64_t *const r = upload(row_ptr, rows + 1);
    int32_t *const c = upload(col, nnz);
    double *const v = upload(val, nnz), *const p = upload(x, cols), *q = NULL;
    cudaMalloc(&q, (size_t)(rows + 1) * sizeof *q);
    if (rows > 0)
        multiply_row<<<(unsigned)((rows + 255) / 256), 256>>>(rows, r, c, v, p, q);
    cudaMemcpy(y, q, (size_t)rows * sizeof *y, cudaMemcpyDeviceToHost);
    cudaFree(r);
    cudaFree(c);
    cudaFree(v);
    cudaFree(p);
    cudaFree(q);
}
