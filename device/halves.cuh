/* 16-bit floating-point numbers in kernels: stored in 16 bits, computed with as float. bf16 and f16 have the
 * layout of spmv_bf16 and spmv_f16. Rounding is to nearest, ties to even, in one instruction.
 *
 * The product of two of them is exact in f32 (fractions of 8 or 11 bits), unless it is beyond the exponents of
 * f32. So a kernel may fuse this product with the addition that follows (multiply_add), which saves an
 * instruction.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_HALVES_CUH
#define SPMV_HALVES_CUH

#include <math.h>
#include <type_traits>

#include "core/halves.h"
#include "device/host_device.cuh"

struct bf16 {
    uint16_t bits;

    bf16() = default;

    __device__ explicit bf16(float x)
    {
#ifdef __CUDA_ARCH__
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#else
        bits = bf16_of_float(x).bits;
#endif
    }

    __device__ operator float() const
    {
#ifdef __CUDA_ARCH__
        return __uint_as_float((uint32_t)bits << 16);
#else
        return float_of_bf16({bits});
#endif
    }
};

struct f16 {
    uint16_t bits;

    f16() = default;

    __device__ explicit f16(float x)
    {
#ifdef __CUDA_ARCH__
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#else
        bits = f16_of_float(x).bits;
#endif
    }

    __device__ operator float() const
    {
#ifdef __CUDA_ARCH__
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
        return x;
#else
        return float_of_f16({bits});
#endif
    }
};

template <typename T> struct is_half : std::false_type {
};
template <> struct is_half<bf16> : std::true_type {
};
template <> struct is_half<f16> : std::true_type {
};

/* COUNT neighbouring numbers of a row of x or y, loaded and stored at once, read as numbers of type T. */
template <typename T, typename Element, int COUNT> struct alignas(sizeof(Element) * COUNT) row_pack {
    Element element[COUNT];

    __device__ T operator[](int i) const
    {
        return T(element[i]);
    }

    __device__ void set(const T *from)
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            element[i] = Element(from[i]);
    }
};

/* sum + value element, with the value and the element of a 16-bit type Element, or of type T. */
template <typename Element, typename T> __device__ T multiply_add(T value, T element, T sum)
{
    if constexpr (is_half<Element>::value)
        return fmaf(value, element, sum);
    else
        return sum + value * element;
}

#endif
