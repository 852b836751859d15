/* Complex numbers on the device: sums, products, loads of a whole number at once, and functions
 * that let a rung treat real and complex numbers alike; dispatch over the types of values.
 *
 * A product is (a + bi) (c + di) = (ac - bd) + (ad + bc) i, as on the CPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_COMPLEX_CUH
#define SPMV_COMPLEX_CUH

#include <spmv/types.h>
#include <type_traits>

#include "device/halves.cuh"
#include "device/host_device.cuh"

#define COMPLEX_DEFINE(NAME, name, value, T, CLASS, ARG)                                                               \
    __host__ __device__ inline T operator+(T a, T b)                                                                   \
    {                                                                                                                  \
        return {a.re + b.re, a.im + b.im};                                                                             \
    }                                                                                                                  \
    __host__ __device__ inline T operator*(T a, T b)                                                                   \
    {                                                                                                                  \
        return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};                                                 \
    }                                                                                                                  \
    __host__ __device__ inline T &operator+=(T &a, T b)                                                                \
    {                                                                                                                  \
        return a = a + b;                                                                                              \
    }                                                                                                                  \
    __host__ __device__ inline T &operator*=(T &a, T b)                                                                \
    {                                                                                                                  \
        return a = a * b;                                                                                              \
    }                                                                                                                  \
    __host__ __device__ inline T conjugated(T a)                                                                       \
    {                                                                                                                  \
        return {a.re, -a.im};                                                                                          \
    }
SPMV_COMPLEX_TYPES(COMPLEX_DEFINE, )
#undef COMPLEX_DEFINE

__host__ __device__ inline float conjugated(float a)
{
    return a;
}

__host__ __device__ inline double conjugated(double a)
{
    return a;
}

/* A real number as a value of the type. */
template <typename T> __host__ __device__ inline T real_value(double x)
{
    if constexpr (std::is_arithmetic<T>::value) {
        return (T)x;
    } else if constexpr (is_half<T>::value) {
        return T((float)x);
    } else {
        T z = {};
        z.re = (decltype(z.re))x;
        return z;
    }
}

/* An element aligned to its size, so that it is loaded at once. */
template <typename T> struct alignas(sizeof(T)) whole {
    T element;
};

template <typename T> __device__ T load_whole(const T *from)
{
    return ((const whole<T> *)from)->element;
}

/* Calls body with an object of this type of matrix values. Few types: those of 64-bit numbers. */
template <typename Body> spmv_status with_value(spmv_type type, const Body &body)
{
    switch ((int)type) {
#define CASE(NAME, name, value, T, CLASS, ARG)                                                                         \
    case SPMV_##NAME:                                                                                                  \
        if constexpr (!few_types || (sizeof(T) > 4 && SPMV_##NAME != SPMV_C64))                                        \
            return body(T());                                                                                          \
        break;
        SPMV_NUMBER_TYPES(CASE, )
        SPMV_COMPLEX_TYPES(CASE, )
#undef CASE
    }
    return SPMV_ERROR_TYPE;
}

/* The same for the types that are not Refused. */
template <template <typename> class Refused, typename Body> spmv_status with_value_but(spmv_type type, const Body &body)
{
    return with_value(type, [&](auto of) -> spmv_status {
        if constexpr (Refused<decltype(of)>::value)
            return SPMV_ERROR_TYPE;
        else
            return body(of);
    });
}

/* The same for a real or complex type. */
template <typename Body> spmv_status with_floating(spmv_type type, const Body &body)
{
    return with_value_but<std::is_integral>(type, body);
}

/* The same for a complex type. */
template <typename Body> spmv_status with_complex(spmv_type type, const Body &body)
{
    return with_value_but<std::is_arithmetic>(type, body);
}

#endif
