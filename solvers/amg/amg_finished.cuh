/* Rows of a product on CUDA that are finished in any order: each is written to the next free place of a common
 * array, of which a warp reserves a part at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_FINISHED_CUH
#define AMG_FINISHED_CUH

#include "device/block.cuh"
#include "device/launch.cuh"

extern "C" {
#include "solvers/amg/amg_internal.h"
}

namespace
{

enum { FREE = -1 };

/* A warp reserves so many entries of the common array at a time. */
enum { AT_ONCE = 256 };

constexpr unsigned all_lanes = 0xffffffffu;

/* The high bits of a product (D. E. Knuth, "The Art of Computer Programming" 3, section 6.4). */
__device__ inline uint32_t hash(int32_t column)
{
    return (uint32_t)column * 2654435769u;
}

/* Where a finished row is: its first entry times 2^16, plus the number of entries. NOWHERE: it did not
 * fit. */
typedef uint64_t row_place;
constexpr row_place NOWHERE = UINT64_MAX;

/* Numbers that kernels count; all are 0 before. */
struct counters {
    unsigned long long taken;  /* entries of the common array */
    unsigned long long listed; /* rows that are left for larger tables */
};

struct row_list {
    int32_t *rows; /* NULL: all rows, or no list */
    unsigned long long *count;
};

/* Entries of the common array that a warp has reserved. Used by one of its lanes. */
struct reservation {
    unsigned long long begin;
    int left;

    /* The first of n entries, or NOWHERE. at_once: reserved at a time. */
    __device__ unsigned long long take(unsigned long long *taken, int64_t room, int n, int at_once = AT_ONCE)
    {
        if (n > left) {
            const int more = n > at_once ? n : at_once;
            begin = atomicAdd(taken, (unsigned long long)more);
            left = begin + (unsigned long long)more <= (unsigned long long)room ? more : 0;
        }
        if (n > left)
            return NOWHERE;
        begin += (unsigned)n;
        left -= n;
        return begin - (unsigned)n;
    }
};

/* Adds `step` to the count of each lane's column, once for all lanes with the same one. Returns what the
 * count would have been before the lane's own addition, in the order of the lanes. Called by all lanes of a
 * warp. */
__device__ inline unsigned add_for_warp(unsigned *counts, bool there, int32_t column, unsigned step)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const unsigned same = __match_any_sync(all_lanes, there ? (unsigned)column : ~0u);
    const int leader = __ffs((int)same) - 1;
    unsigned before = 0;
    if (there && lane == leader)
        before = atomicAdd(&counts[column], step * (unsigned)__popc(same));
    return __shfl_sync(all_lanes, before, leader) + step * (unsigned)__popc(same & ((1u << lane) - 1));
}

} // namespace

#endif
