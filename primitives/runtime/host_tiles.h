/* How the host backends cut work: tiles fixed by the problem, never by the team.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_TILES_H
#define HOST_TILES_H

#include <stddef.h>
#include <stdint.h>

/* Elements (and segments) of a tile: 64 KB of f64, which stays in a core's own cache between two passes over it, and is
 * long against what a tile costs. */
enum { HOST_TILE = 8192 };

/* From so many elements on a team is worth its start (some 5 us against 0.2 to 1 ns an element). */
enum { HOST_PARALLEL = 1 << 15 };

static inline const void *element(const void *base, size_t size, int64_t i)
{
    return (const char *)base + (size_t)i * size;
}

static inline void *element_out(void *base, size_t size, int64_t i)
{
    return (char *)base + (size_t)i * size;
}

#endif
