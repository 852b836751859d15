/* Copies between the GPUs of ranks that are threads of one process (near.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "core/runtime_cuda.h"
#include "distributed/group_internal.h"

static const char *const what = "an exchange of ranks";

enum { TURNS = 2, LEAST_BYTES = 1 << 20 };

/* Of a rank: its device, and events of its stream: memory is packed, and copies are made. */
struct handles {
    int device;
    cudaEvent_t packed[TURNS], copied[TURNS];
};

struct near_memory {
    struct handles own;
    void *memory[TURNS];
    int64_t bytes[TURNS];
};

struct near {
    struct near_memory *lent; /* others may use it until the last rank has left the group */
    struct handles *of;       /* of all ranks */
    bool refused;             /* GPUs did not copy from each other: what ranks exchange goes through host memory */
    unsigned number;          /* of the exchange */
    int64_t *shown, *all;     /* of this rank and of all: where its memory is; ranks offsets */
};

bool near_is_possible(const spmv_group *group)
{
    return context_on_device(group->ctx) && group->transport.retain != NULL &&
           (group->near == NULL || !group->near->refused);
}

static cudaStream_t stream_of(const spmv_group *group)
{
    return group->ctx->stream;
}

static void free_lent(void *memory)
{
    struct near_memory *const lent = memory;
    int device = 0;
    if (cudaGetDevice(&device) == cudaSuccess && cudaSetDevice(lent->own.device) == cudaSuccess) {
        for (int t = 0; t < TURNS; t++) {
            (void)cudaFree(lent->memory[t]);
            if (lent->own.packed[t] != NULL)
                (void)cudaEventDestroy(lent->own.packed[t]);
            if (lent->own.copied[t] != NULL)
                (void)cudaEventDestroy(lent->own.copied[t]);
        }
        (void)cudaSetDevice(device);
    }
    (void)cudaGetLastError();
    host_free(lent);
}

void near_close(spmv_group *group)
{
    struct near *const n = group->near;
    struct transport *const t = &group->transport;
    if (n == NULL)
        return;
    if (spmv_synchronize(group->ctx) != SPMV_OK) /* the copies from others, so theirs of this rank are done when all
                                                    have left */
        cudaGetLastError();
    if (n->lent != NULL)
        t->retain(t, free_lent, n->lent);
    host_free_all(n->of, n->shown, n->all, n);
    group->near = NULL;
}

static spmv_status make_events(const spmv_group *group, struct handles *own)
{
    cudaError_t error = cudaSuccess;
    spmv_status st = cuda_enter(group->ctx);
    if (st != SPMV_OK)
        return st;
    for (int t = 0; t < TURNS && error == cudaSuccess; t++) {
        error = cudaEventCreateWithFlags(&own->packed[t], cudaEventDisableTiming);
        if (error == cudaSuccess)
            error = cudaEventCreateWithFlags(&own->copied[t], cudaEventDisableTiming);
    }
    return cuda_leave(group->ctx, cuda_check(group->ctx, error, what));
}

/* Makes room in memory that nobody uses after what is queued. */
static spmv_status grow(const spmv_group *group, struct near_memory *lent, int turn, int64_t bytes)
{
    spmv_status st = SPMV_OK;
    int64_t room = max_i64(LEAST_BYTES, lent->bytes[turn]);
    while (room < bytes)
        room *= 2;
    TRY(spmv_synchronize(group->ctx));
    TRY(cuda_enter(group->ctx));
    (void)cudaFree(lent->memory[turn]);
    lent->memory[turn] = NULL;
    lent->bytes[turn] = 0;
    if (cudaMalloc(&lent->memory[turn], (size_t)room) != cudaSuccess) {
        cudaGetLastError();
        lent->memory[turn] = NULL;
        st =
            context_fail(group->ctx, SPMV_ERROR_MEMORY, "no memory of a GPU for %s: %lld bytes", what, (long long)room);
    } else {
        lent->bytes[turn] = room;
    }
    st = cuda_leave(group->ctx, st);
done:
    return st;
}

static spmv_status open(spmv_group *group)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = group->ctx;
    const int64_t ranks = group->transport.ranks;
    struct near *n = NULL;
    TRY(host_zeros(ctx, sizeof *n, what, (void **)&n));
    group->near = n;
    TRY(host_zeros(ctx, sizeof *n->lent, what, (void **)&n->lent));
    n->lent->own.device = ((const struct cuda_state *)ctx->device)->device;
    TRY(host_alloc(ctx, ranks * (int64_t)sizeof *n->of, what, (void **)&n->of));
    TRY(host_alloc(ctx, (ranks + 1) * 8, what, (void **)&n->shown));
    TRY(host_alloc(ctx, ranks * (ranks + 1) * 8, what, (void **)&n->all));
    TRY(make_events(group, &n->lent->own));
    for (int t = 0; t < TURNS; t++)
        TRY(grow(group, n->lent, t, 1));
done:
    return st;
}

/* The context's stream goes on after the event. */
static spmv_status wait_for(const spmv_group *group, cudaEvent_t event)
{
    spmv_status st = cuda_enter(group->ctx);
    if (st != SPMV_OK)
        return st;
    st = cuda_check(group->ctx, cudaStreamWaitEvent(stream_of(group), event, 0), what);
    cuda_next_in_order(group->ctx); /* the next kernel waits for more than the kernel before it */
    return cuda_leave(group->ctx, st);
}

static spmv_status record(const spmv_group *group, cudaEvent_t event)
{
    const spmv_status st = cuda_enter(group->ctx);
    return st != SPMV_OK
               ? st
               : cuda_leave(group->ctx, cuda_check(group->ctx, cudaEventRecord(event, stream_of(group)), what));
}

spmv_status near_lend(spmv_group *group, int64_t bytes, void **packed)
{
    spmv_status st = SPMV_OK;
    struct near *n = group->near;
    const int ranks = group->transport.ranks;
    if (n == NULL) {
        st = spmv_group_agree(group, open(group));
        n = group->near;
        if (st == SPMV_OK)
            st = group_gather_equal(group, &n->lent->own, n->of, sizeof n->lent->own);
        if (st != SPMV_OK) {
            near_close(group); /* no rank has the others' memory */
            return st;
        }
    }
    const int turn = (int)(n->number % TURNS);
    for (int r = 0; r < ranks && n->number >= TURNS; r++)
        if (r != group->transport.rank)
            TRY(wait_for(group, n->of[r].copied[turn]));
    if (max_i64(1, bytes) > n->lent->bytes[turn])
        TRY(grow(group, n->lent, turn, bytes));
    *packed = n->lent->memory[turn];
done:
    return st;
}

static spmv_status copy(const spmv_group *group, const struct near_parcel *p, const char *from)
{
    const struct near *const n = group->near;
    spmv_status st = cuda_enter(group->ctx);
    if (st != SPMV_OK)
        return st;
    if (cudaMemcpyPeerAsync(p->to, n->lent->own.device, from, n->of[p->rank].device, (size_t)p->bytes,
                            stream_of(group)) != cudaSuccess) {
        cudaGetLastError();
        st = context_fail(group->ctx, SPMV_ERROR_UNSUPPORTED, "GPU %d cannot copy from GPU %d", n->lent->own.device,
                          n->of[p->rank].device);
    }
    return cuda_leave(group->ctx, st);
}

/* Together, in the first exchange: whether all ranks can copy from all others, for a try into memory that the next
 * exchange uses. */
static spmv_status try_copies(spmv_group *group, bool *moved)
{
    spmv_status st = SPMV_OK, copied = SPMV_OK;
    struct near *const n = group->near;
    const int64_t ranks = group->transport.ranks;
    bool *refused = NULL, own = false;
    TRY(host_alloc(group->ctx, ranks * (int64_t)sizeof own, what, (void **)&refused));
    for (int r = 0; r < ranks && copied == SPMV_OK; r++) {
        const struct near_parcel some = {r, n->lent->memory[1], 8};
        if (r != group->transport.rank)
            copied = copy(group, &some, (const char *)(intptr_t)n->all[r * (ranks + 1)]);
    }
    if (copied == SPMV_OK)
        TRY(spmv_synchronize(group->ctx));
    else
        group->ctx->error[0] = '\0'; /* no failure: what ranks exchange goes through the memory of hosts */
    own = copied != SPMV_OK;
    TRY(group_gather_equal(group, &own, refused, sizeof own));
    for (int r = 0; r < ranks; r++)
        *moved = *moved && !refused[r];
    n->refused = !*moved;
done:
    host_free(refused);
    return st;
}

spmv_status near_swap(spmv_group *group, const int64_t *offset, const struct near_parcel *receive, int receives,
                      bool *moved)
{
    spmv_status st = SPMV_OK;
    struct near *const n = group->near;
    const int ranks = group->transport.ranks, rank = group->transport.rank;
    const int turn = (int)(n->number % TURNS);
    *moved = true;
    TRY(record(group, n->lent->own.packed[turn]));
    n->shown[0] = (int64_t)(intptr_t)n->lent->memory[turn];
    memcpy(n->shown + 1, offset, (size_t)ranks * 8);
    TRY(group_gather_equal(group, n->shown, n->all, (ranks + 1) * 8));
    if (n->number == 0)
        TRY(try_copies(group, moved));
    for (int i = 0; i < receives && *moved; i++) {
        const int64_t *const its = n->all + (int64_t)receive[i].rank * (ranks + 1);
        if (receive[i].bytes == 0)
            continue;
        if (receive[i].rank != rank)
            TRY(wait_for(group, n->of[receive[i].rank].packed[turn]));
        TRY(copy(group, &receive[i], (const char *)(intptr_t)its[0] + its[1 + rank]));
    }
    TRY(record(group, n->lent->own.copied[turn]));
    n->number++;
done:
    return st;
}
