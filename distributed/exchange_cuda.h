/* The kernels of the exchanges (exchange_cuda.cu). Arrays are in device memory unless stated
 * otherwise. Functions queue work on the context's stream.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXCHANGE_CUDA_H
#define EXCHANGE_CUDA_H

#include "exchange.h"

/* What the other ranks write to a rank's board, and its own counters. A flag has the number of the
 * last exchange whose data have arrived from a rank. */
struct exchange_flag {
    unsigned number;
    unsigned unused[7]; /* a sector of memory for each flag */
};

struct exchange_counters {
    unsigned puts, takes, sums;                   /* finished */
    unsigned put_blocks, take_blocks, sum_blocks; /* finished blocks of a launch; 0 between launches */
};

/* A place where the elements for one rank go. */
struct exchange_target {
    int64_t first; /* its first element in the list of those that are sent */
    char *to[2];   /* in that rank's memory, for exchanges with an even and an odd number */
    struct exchange_flag *flag;
};

/* The parts of all ranks, in the memory of one: part c of sum v is number place[c] + v * stride. */
struct exchange_gathered {
    void *parts;
    const int32_t *place; /* NULL: place[c] is c */
    int64_t count, stride;
};

/* Where the memory of one rank is that others write. */
struct exchange_board {
    struct exchange_flag *put, *sum; /* ranks flags each */
    void *parts[2];                  /* for sums with an even and an odd number */
};

/* All that the kernels of one rank need. The arrays of boards and targets are in device memory. */
struct exchange_view {
    int rank, ranks;
    struct exchange_counters *counters;
    const struct exchange_board *boards; /* ranks; NULL: PUBLISH stores the parts of chunks in own_parts */
    void *own_parts;
    int64_t own_stride;              /* of own_parts: between sums */
    struct exchange_flag *put, *sum; /* the own flags */
    void *parts[2];
    const struct exchange_target *targets;
    int target_count;
    const int32_t *sent; /* the own elements that are sent */
    int64_t sent_count;
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

spmv_status exchange_put_cuda(spmv_context *ctx, spmv_type type, const struct exchange_view *view, const void *x);
spmv_status exchange_take_cuda(spmv_context *ctx, spmv_type type, const struct exchange_view *view, void *x);

/* packed[i] = x[index[i]], 0 <= i < count. */
spmv_status exchange_pack_cuda(spmv_context *ctx, spmv_type type, const int32_t *index, int64_t count, const void *x,
                               void *packed);

/* The phases PUBLISH and COLLECT of struct exchange_kind. COLLECT needs boards. */
spmv_status exchange_sum_cuda(spmv_context *ctx, spmv_type type, const struct exchange_view *view,
                              const struct exchange_parts *parts, void *sums, int phases);

/* sums[v] = the sum of all parts, for 0 <= v < count. */
spmv_status exchange_fold_cuda(spmv_context *ctx, spmv_type type, const struct exchange_gathered *from, int count,
                               void *sums);

#endif
