/* How ranks on GPUs exchange elements of x and the parts of sums: kinds that work in the order of a
 * context's stream, so that the host need not wait.
 *
 *   peer   kernels write into memory of the other ranks' GPUs; ranks are threads of one process, or
 *          processes of one host (CUDA IPC)
 *   nccl   ncclSend, ncclRecv and ncclAllGather of NVIDIA's library, which is opened at run time
 *   host   copies through host memory by the group's transport: no struct exchange_kind
 *
 * A kernel that waits for another rank's kernel needs that both run at the same time. That is
 * certain only if each rank has a device of its own, and if no kernel must be loaded meanwhile. So
 * there are two modes:
 *
 *   careful  the host waits for the stream and for all ranks before it queues a kernel that needs
 *            something of other ranks. Such a kernel never waits. Any rank may share any device.
 *   free     kernels wait for each other, with a limit; the host queues ahead. Only with
 *            `may_wait`, after each kernel ran once in careful mode, and while the host neither
 *            allocates nor frees.
 *
 * Both run the same kernels, so bits are the same.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "core/runtime.h"

typedef struct spmv_group_matrix spmv_group_matrix;
struct spmv_group;

/* The parts of sums in a kernel's output: tile u has numbers[u * sums + v], 0 <= v < sums. */
struct exchange_parts {
    const void *numbers;
    int sums; /* at most EXCHANGE_SUMS */
    /* a tile is this many rows, and chunks begin at multiples of it; 0: a tile is a chunk */
    int64_t tile_rows;
    const struct plan_step_parts *step; /* NULL, or the four sums of a step in place of numbers */
};
enum { EXCHANGE_SUMS = 4 };

enum { EXCHANGE_PUBLISH = 1, EXCHANGE_COLLECT = 2 };

/* All functions are called together, and queue their work. */
struct exchange_kind {
    const char *name;

    /* Prepares m->exchange. Returns SPMV_ERROR_UNSUPPORTED with the reason where this kind is not
     * possible; then on all ranks. close: not together; also after a failure of open. */
    spmv_status (*open)(spmv_group_matrix *m);
    void (*close)(spmv_group_matrix *m);

    /* put sends own elements of x, take stores those of other ranks in x. */
    spmv_status (*put)(spmv_group_matrix *m, const void *x);
    spmv_status (*take)(spmv_group_matrix *m, void *x);

    /* What kernels need to exchange by themselves; NULL: not possible. take_sent: as take, for elements that
     * such a kernel has sent. */
    const struct exchange_view *(*view)(const spmv_group_matrix *m);
    spmv_status (*take_sent)(spmv_group_matrix *m, void *x);

    /* PUBLISH sends this rank's parts to all ranks, COLLECT adds the parts of all: sums[v] in the
     * context's memory. Both at once only in free mode. */
    spmv_status (*sum)(spmv_group_matrix *m, spmv_type type, const struct exchange_parts *parts, void *sums,
                       int phases);

    /* Ends the kernels of this rank that wait for other ranks, after a failure of the group. */
    void (*abandon)(spmv_group_matrix *m);
};

/* The exchange of a matrix. */
struct exchange {
    const struct exchange_kind *kind; /* NULL: host */
    bool may_wait;                    /* free mode is possible */
    bool is_free;
    /* In free mode, elements of x travel on a stream of their own, while the context's stream
     * multiplies rows that need none of them. aside: something is on its way. */
    void *side, *begun, *arrived; /* cudaStream_t, cudaEvent_t */
    bool aside;
    void *state; /* private to the kind */
};

extern const struct exchange_kind exchange_peer, exchange_nccl;

/* Together: chooses the kind of this name ("auto", "peer", "nccl", "host"; NULL: auto) and opens
 * it. */
spmv_status exchange_open(spmv_group_matrix *m, const char *name) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
void exchange_close(spmv_group_matrix *m) CUDA_ONLY();

/* The functions of struct plan_ranks for kinds other than host. */
spmv_status exchange_fetch_start(spmv_group_matrix *m, void *x) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status exchange_fetch_finish(spmv_group_matrix *m, void *x) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status exchange_sum(void *matrix, spmv_type type, const void *numbers, int sums, int64_t tile_rows, void *to)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status exchange_chunk_parts(void *matrix, spmv_type type, const void *numbers, int64_t tile_rows, void *parts);
bool exchange_let_wait(void *matrix, bool free) CUDA_ONLY(false);
spmv_status exchange_publish(void *matrix, spmv_type type, const void *numbers, int64_t tile_rows);
spmv_status exchange_publish_dot(void *matrix, spmv_type type, const void *a, const void *b);
spmv_status exchange_step_sums(void *matrix, spmv_type type, const struct plan_step_parts *step, void *sums);
spmv_status exchange_take_sent(void *matrix, void *x);
spmv_status exchange_meet(void *matrix);
const struct exchange_view *exchange_view_of(const spmv_group_matrix *m);

/* Waits until the event, or with NULL all work queued on the context's stream, is done. Returns the
 * failure of the group, if there is one; then kernels no longer wait for other ranks. */
spmv_status exchange_await(void *matrix, void *event);

/* Together, after a product was queued in free mode with this status: returns to careful mode when all ranks have
 * queued theirs, so that kernels that wait for each other end whatever the hosts do then. With nccl or processes it
 * waits for the product, since a process may end. */
spmv_status exchange_queued(spmv_group_matrix *m, spmv_status st) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Together: *obstacle: why kernels of one rank must not wait for those of another; NULL: they may. *one_host: whether
 * all ranks are on one. */
spmv_status exchange_find_obstacle(spmv_group_matrix *m, const char **obstacle, bool *one_host);

/* Closes what a group keeps for the kind nccl. */
void exchange_nccl_release(struct spmv_group *group) CUDA_ONLY();

#endif
