/* The random numbers of splitmix64, the same on every machine. Source: G. L. Steele, D. Lea, C. H.
 * Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 (constants: D. Stafford's
 * variant 13).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPLITMIX_H
#define SPLITMIX_H

#include <stdint.h>

#include "core/host_device_fn.h"

#define SPLITMIX_GAMMA UINT64_C(0x9e3779b97f4a7c15)

/* 64 bits that depend on all bits of z. */
HOST_DEVICE_FN uint64_t splitmix_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The next 64 random bits. */
HOST_DEVICE_FN uint64_t splitmix_next(uint64_t *state)
{
    return splitmix_mix(*state += SPLITMIX_GAMMA);
}

/* Random number i, i = 0, 1, 2, ..., of those that a state gives. */
HOST_DEVICE_FN uint64_t splitmix_at(uint64_t state, int64_t i)
{
    return splitmix_mix(state + ((uint64_t)i + 1) * SPLITMIX_GAMMA);
}

#endif
