/* What every CUDA rung of the product shares: the matrix's arrays by value, and how a sum becomes an element of y.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_CUDA_CUH
#define SPMV_CUDA_CUH

#include "launch.cuh"

/* A plan's matrix with its types; val NULL: a pattern. */
template <typename T, typename Offset> struct csr_arrays {
    int64_t rows;
    const Offset *row_ptr;
    const int32_t *col;
    const T *val;

    __device__ T value(int64_t k) const
    {
        return val != nullptr ? val[k] : T(1);
    }
};

/* y_i = alpha sum + beta y_i; y is not read when beta is 0. */
template <typename T> struct scaling {
    T alpha, beta;
    bool beta_zero;

    __device__ void store(T sum, T *y) const
    {
        *y = beta_zero ? alpha * sum : alpha * sum + beta * *y;
    }
};

#endif
