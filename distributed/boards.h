/* Boards: memory of a rank's GPU that kernels and copies of other ranks use (exchange_peer.c, near.c).
 *
 * Ranks that are threads have one address space. A process opens the memory of another one of its host by CUDA IPC
 * (CUDA C++ Programming Guide, "Interprocess Communication"); then a pointer to it works as one to memory of another
 * GPU. Memory must not be freed while others may still use it, or have it open. So boards belong to the group: one that
 * is given back is taken again by the next who needs no more, and all are freed when the last rank has left the group.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BOARDS_H
#define BOARDS_H

#include "core/runtime.h"

typedef struct spmv_group spmv_group;

struct board {
    struct board *next;
    int device;
    int64_t number; /* of this rank's boards */
    bool taken;
    char *memory;
    int64_t bytes;
};

/* What a rank tells the others of a board. */
struct board_name {
    int64_t number;
    char *memory;    /* as the rank sees it */
    char handle[64]; /* between processes: cudaIpcMemHandle_t */
};

/* A board of at least so many bytes. what: for the message. */
spmv_status board_take(spmv_group *group, int64_t bytes, const char *what, struct board **board);

/* Gives a board back, which may be NULL: if the group has not failed, others no longer use it. */
void board_give(struct board *board);

/* SPMV_ERROR_UNSUPPORTED: the system does not show memory to other processes. */
spmv_status board_tell(spmv_group *group, const struct board *board, struct board_name *name);

/* *memory: the board of this rank or of another one, for this rank's GPU. SPMV_ERROR_UNSUPPORTED: it cannot be
 * opened. */
spmv_status board_find(spmv_group *group, int rank, const struct board_name *name, char **memory);

/* When a rank leaves the group. */
void boards_close(spmv_group *group) CUDA_ONLY();

#endif
