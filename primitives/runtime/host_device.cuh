/* What code for both the device and the host starts from: the marks __host__ and __device__, and plain arrays as loader
 * and storer.
 *
 * An ordinary compiler reads the marks as nothing, so that what carries both also builds without CUDA.
 * SPMV_HAVE_KERNELS is defined where kernels are compiled: by nvcc, or where the build says that another compiler does.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_HOST_DEVICE_CUH
#define SPMV_HOST_DEVICE_CUH

#include <stdint.h>

#if defined(__CUDACC__) && !defined(SPMV_HAVE_KERNELS)
#define SPMV_HAVE_KERNELS
#endif
#ifdef SPMV_HAVE_KERNELS
#include <cuda_runtime.h>
#else
#define __host__
#define __device__
#endif

/* The plainest loader and storer. Neither may assume that the memory is read only: in and out may be the same. */
template <typename Type> struct load_array {
    const Type *from;
    __host__ __device__ Type operator()(int64_t i) const
    {
        return from[i];
    }
};

/* What another loader brings, mapped. */
template <typename Load, typename Function> struct load_mapped {
    Load load;
    Function function;
    __device__ auto operator()(int64_t i) const
    {
        return function(load(i));
    }
};

template <typename Type> struct store_array {
    Type *to;
    __host__ __device__ void operator()(int64_t i, Type value) const
    {
        to[i] = value;
    }
};

#endif
