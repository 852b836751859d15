/* What the kernels of one rank need to exchange data with kernels of other ranks. distributed/
 * fills it; kernels there and in solvers/ use it (exchange_view.cuh). Arrays are in device memory.
 *
 * Exchanges have numbers, which all ranks count alike: a sum that of the sums before it, a fetch of
 * elements that of the sums and fetches before it. Data are in one of two buffers, for even and for odd
 * numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXCHANGE_VIEW_H
#define EXCHANGE_VIEW_H

#include <stdint.h>

/* What the other ranks write to a rank's board. A flag has the number of the last exchange whose
 * elements have arrived from a rank. */
struct exchange_flag {
    unsigned number;
    unsigned unused[7]; /* a sector of memory for each flag */
};

struct exchange_counters {
    unsigned sums;                    /* finished */
    unsigned begun;                   /* the same after the present step of a solve */
    unsigned fetches;                 /* of elements, except those that a step of a solve has sent */
    unsigned put_blocks, take_blocks; /* finished blocks of a launch; 0 between launches */
};

/* A place where the elements for one rank go. */
struct exchange_target {
    int64_t first; /* its first element in the list of those that are sent */
    char *to[2];   /* in that rank's memory, for exchanges with an even and an odd number */
    struct exchange_flag *flag;
};

/* Elements of one chunk for one target: a range of the list of those that are sent. */
struct exchange_range {
    int64_t first, count;
    int32_t target;
};

/* Where the memory of one rank is that others write. */
struct exchange_board {
    struct exchange_flag *put; /* ranks flags */
    uint64_t *parts[2];        /* see exchange_view.cuh, "Parts" */
};

struct exchange_view {
    int rank, ranks;
    struct exchange_counters *counters;
    const struct exchange_board *boards; /* ranks; NULL: parts of chunks are stored in own_parts */
    void *own_parts;
    int64_t own_stride; /* of own_parts: between sums */
    struct exchange_flag *put;
    const uint64_t *parts[2];
    const struct exchange_target *targets;
    int target_count;
    const int32_t *sent; /* the own elements that are sent */
    int64_t sent_count;
    /* the chunks, those with elements for other ranks first; how many these are; their ranges: chunk
     * order[k] has range_of[k] ... range_of[k + 1] - 1 */
    const int32_t *order;
    int sending;
    const int32_t *range_of;
    const struct exchange_range *ranges;
    const int32_t *sources; /* ranks whose elements arrive */
    int source_count;
    const void *arrived[2];
    int64_t before, after, own; /* ghosts in front of and behind own elements of x; own elements */
    const int64_t *chunk;       /* chunks + 1 rows */
    int64_t chunks, first_chunk, all_chunks;
    /* page-locked host memory: not 0: no kernel waits any more. A kernel whose wait takes too long
     * sets it to EXCHANGE_LOST. */
    int *stop;
};
enum { EXCHANGE_STOPPED = 1, EXCHANGE_LOST = 2, EXCHANGE_MOST_SECONDS = 300 };

#endif
