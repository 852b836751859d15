/* What ranks that are threads of one process, or processes of one host, copy from each other's GPUs while a hierarchy is
 * set up (near.c).
 *
 * In an exchange each rank packs what it gives into memory of its own, then the ranks meet and copy. Streams wait for
 * each other by events, so hosts meet but do not wait for GPUs. Two blocks of memory take turns: a rank that packs for
 * exchange k + 2 has met the others in exchange k + 1, so they have queued the copies of exchange k. Memory and events
 * belong to the group: they live until its last rank has left, so no copy finds them freed, whatever a rank destroys
 * meanwhile.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef NEAR_H
#define NEAR_H

#include "core/runtime.h"

typedef struct spmv_group spmv_group;

/* What comes from a rank. */
struct near_parcel {
    int rank;
    void *to; /* in the context's memory */
    int64_t bytes;
};

/* Whether ranks may copy from each other's GPUs; the same on all. */
bool near_is_possible(const spmv_group *group) CUDA_ONLY(false);

/* Together. *packed: memory for what this rank gives in the next exchange, in the order of its stream; at least one
 * byte. */
spmv_status near_lend(spmv_group *group, int64_t bytes, void **packed) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Together: what this rank has queued to be packed for rank r begins at byte offset[r]. Queues the copies of what this
 * rank gets. *moved: false: a GPU refused to copy in the first exchange, so nothing has come, and GPUs are not near. */
spmv_status near_swap(spmv_group *group, const int64_t *offset, const struct near_parcel *receive, int receives,
                      bool *moved) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* When a rank leaves the group. */
void near_close(spmv_group *group) CUDA_ONLY();

#endif
