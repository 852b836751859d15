/* Basis of code for both device and host: the specifiers __host__ and __device__, and plain arrays
 * as loader and storer.
 *
 * Without CUDA the specifiers are empty macros, so code that has both also builds with a host
 * compiler. SPMV_HAVE_KERNELS is defined if kernels are compiled: by nvcc, or by another compiler
 * if the build defines it.
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

/* With SPMV_FEW_TYPES, in builds that compile kernels and do not run them, the dispatch leaves out types and pairs
 * that have the code of others. */
#ifdef SPMV_FEW_TYPES
constexpr bool few_types = true;
#else
constexpr bool few_types = false;
#endif

/* The basic loader and storer. Neither may assume read-only memory: in and out may be the same
 * array. */
template <typename Type> struct load_array {
    const Type *from;
    __host__ __device__ Type operator()(int64_t i) const
    {
        return from[i];
    }
};

/* Applies a function to the values of another loader. */
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
