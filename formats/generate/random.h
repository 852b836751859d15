/* Random numbers that do not depend on the order of calls: number i of stream s under a seed is a
 * hash of the three. So threads fill arrays in any order and get the same bits.
 *
 * The hash is the last gamma of splitmix64.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef RANDOM_H
#define RANDOM_H

#include "core/splitmix.h"

/* 64 random bits: number index of the stream. A generator uses one stream per purpose. */
static inline uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t index)
{
    const uint64_t gamma = SPLITMIX_GAMMA;
    return splitmix_mix(splitmix_mix(splitmix_mix(seed + gamma) + stream + gamma) + gamma * (index + 1));
}

/* 0 <= result < bound, bound >= 1. Bounds below 2^32 take a multiplication, whose deviation from
 * uniform is less than bound / 2^32. */
static inline uint64_t random_below(uint64_t bits, uint64_t bound)
{
    return bound >> 32 == 0 ? (bits >> 32) * bound >> 32 : bits % bound;
}

/* 0 <= result < 1, a multiple of 2^-53. */
static inline double random_uniform(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

/* A value with a random sign and a full random mantissa, 0.5 <= |value| < 1. */
static inline double random_value(uint64_t bits)
{
    const double magnitude = 0.5 + (double)(bits >> 12) * 0x1p-53;
    return (bits & 1) != 0 ? -magnitude : magnitude;
}

#endif
