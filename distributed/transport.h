/* A transport moves bytes between the ranks of a group.
 *
 * All ranks call gather, start and finish in the same order. A failure of one of them is that of
 * the whole group: the transport is then broken, and each later call of this rank fails at once and
 * shows the others nothing. So what a rank takes in a call is what the others gave in the same call.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include "core/runtime.h"
#include "distributed/modules/transport_module.h"

enum { TRANSPORT_WHY = 768 };

struct transport {
    const char *name;
    int rank, ranks;
    bool common; /* ranks have common memory: a gather takes one step, whatever their number is */
    void *self;
    char why[TRANSPORT_WHY]; /* the message of the last failure */

    /* Copies own of each rank r to all + offset[r] on all ranks. offset: ranks + 1 offsets in
     * bytes, the same on all ranks; rank r has offset[r + 1] - offset[r] bytes. */
    spmv_status (*gather)(struct transport *t, const void *own, void *all, const int64_t *offset);

    /* Sends and receives parcels, at most one in each direction for each pair of ranks, of the same
     * size on both sides. Between start and finish, the memory of parcels must not change. The
     * arrays of parcels must live until finish returns. */
    spmv_status (*start)(struct transport *t, const struct transport_parcel *send, int sends,
                         const struct transport_parcel *receive, int receives);
    spmv_status (*finish)(struct transport *t);

    /* Breaks the transport for all ranks. mpi: does not return. */
    void (*fail)(struct transport *t, spmv_status status, const char *why);

    /* The status of the failure that broke the transport, with its message in why; SPMV_OK: none.
     * Does not wait. mpi: always SPMV_OK, since fail ends all processes; but messages that other ranks
     * still need make progress, so a rank that waits for its GPU calls it. */
    spmv_status (*failure)(struct transport *t);

    /* Keeps what other ranks may still use: release(memory) is called after the last rank has closed. */
    void (*retain)(struct transport *t, void (*release)(void *memory), void *memory);

    void (*close)(struct transport *t);
};

/* A list of what is kept. release: calls their functions, and frees the list. If there is no memory for a record, what
 * it would keep is never released. */
struct transport_kept;
void transport_keep(struct transport_kept **list, void (*release)(void *memory), void *memory);
void transport_release_kept(struct transport_kept *list);

/* The transports of ranks that are threads: fills transport[r] for each rank. ctx: for messages. */
spmv_status transport_threads_open(spmv_context *ctx, int ranks, struct transport *transport);

spmv_status transport_mpi_open(spmv_context *ctx, struct transport *transport);

#endif
