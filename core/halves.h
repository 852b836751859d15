/* 16-bit floating-point numbers: to f32, which is exact, and from f32, f64 and long double, rounded to
 * nearest, ties to even. Integer operations and selections only, so compilers vectorise the loops over
 * them, and every processor gives the same bits. NaN becomes a quiet NaN of the same sign.
 *
 * C, C++ and, on the host, CUDA; kernels have instructions for it (device/halves.cuh).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALVES_H
#define HALVES_H

#include <math.h>
#include <spmv/types.h>
#include <stdbool.h>
#include <string.h>

static inline bool type_is_half(spmv_type type)
{
    return type == SPMV_BF16 || type == SPMV_F16;
}

/* The type of the sums and scalars of products with vectors of a type. */
static inline spmv_type type_of_sums(spmv_type type)
{
    return type_is_half(type) ? SPMV_F32 : type;
}

static inline uint32_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float float_of_bf16(spmv_bf16 x)
{
    return float_of_bits((uint32_t)x.bits << 16);
}

static inline spmv_bf16 bf16_of_float(float x)
{
    const uint32_t bits = bits_of_float(x), rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    const uint32_t quiet = bits >> 16 | 0x40u;
    const spmv_bf16 result = {(uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded)};
    return result;
}

/* The exponent of f16 is biased by 15, that of f32 by 127. A number of f16 whose bits are taken as those of an f32,
 * 13 places further up, is 2^112 times too small, also a subnormal one. */
static inline float float_of_f16(spmv_f16 x)
{
    const uint32_t sign = (uint32_t)(x.bits & 0x8000u) << 16, rest = (uint32_t)(x.bits & 0x7fffu) << 13;
    const uint32_t finite = bits_of_float(float_of_bits(rest) * 0x1p112f);
    return float_of_bits(sign | (rest >= 0x0f800000u ? rest | 0x7f800000u : finite));
}

static inline spmv_f16 f16_of_float(float x)
{
    const uint32_t bits = bits_of_float(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    /* normal: the exponent changes, and 13 bits are rounded off */
    const uint32_t normal = (rest - (112u << 23) + 0xfffu + (rest >> 13 & 1u)) >> 13;
    /* less than 2^-14: the sum with 1/2 has its last place at 2^-24, the least f16 */
    const uint32_t small = bits_of_float(float_of_bits(rest) + 0.5f) - 0x3f000000u;
    const uint32_t quiet = 0x7e00u | (rest >> 13 & 0x3ffu);
    const uint32_t magnitude = rest > 0x7f800000u    ? quiet
                               : rest >= 0x477ff000u ? 0x7c00u /* 65520, half-way to 2^16, and above */
                               : rest < 0x38800000u  ? small
                                                     : normal;
    const spmv_f16 result = {(uint16_t)(sign | magnitude)};
    return result;
}

/* x rounded to f32 towards the neighbour whose last bit is odd, unless x is an f32. A number so rounded and then
 * rounded to at most 22 bits has the bits of one rounding (S. Boldo, G. Melquiond, "Emulation of FMA and
 * correctly rounded sums: proved algorithms using rounding to odd", IEEE Trans. Computers 57, 2008). */
static inline float float_to_odd(long double x)
{
    const float nearest = (float)x;
    uint32_t bits = bits_of_float(nearest);
    if ((long double)nearest == x || x != x || (bits & 1u) != 0)
        return nearest;
    bits += fabsl((long double)nearest) > fabsl(x) ? -1u : 1u;
    return float_of_bits(bits);
}

#endif
