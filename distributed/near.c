/* Copies between the GPUs of ranks that are threads of one process, or processes of one host (near.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "core/runtime_cuda.h"
#include "distributed/group_internal.h"

static const char *const what = "an exchange of ranks";

/* The events of a rank's stream, one for each turn: memory is packed, and copies are made. */
enum { TURNS = 2, PACKED = 0, COPIED = TURNS, EVENTS = 2 * TURNS };
enum { LEAST_BYTES = 1 << 20, TRIED = 8 /* bytes that are copied to find out whether GPUs are near */ };

struct handles {
    int device;
    cudaEvent_t event[EVENTS];
    cudaIpcEventHandle_t shown[EVENTS]; /* to other processes */
};

struct near {
    struct handles *own; /* others may use them until the last rank has left the group */
    struct handles *of;  /* of all ranks */
    struct board *lent[TURNS];
    struct board_name name[TURNS]; /* of these */
    bool refused;                  /* GPUs did not copy from each other: what ranks exchange goes through host memory */
    unsigned number;               /* of the exchange */
    char *shown, *all;             /* of this rank and of all: the name of a board, and ranks offsets in it */
};

bool near_is_possible(const spmv_group *group)
{
    return context_on_device(group->ctx) && (group->transport.common || group->near_possible) &&
           (group->near == NULL || !group->near->refused);
}

static cudaStream_t stream_of(const spmv_group *group)
{
    return group->ctx->stream;
}

static void destroy_events(cudaEvent_t *event)
{
    for (int e = 0; e < EVENTS; e++)
        if (event[e] != NULL)
            (void)cudaEventDestroy(event[e]);
}

static void free_own(void *memory)
{
    struct handles *const own = memory;
    int device = 0;
    if (cudaGetDevice(&device) == cudaSuccess && cudaSetDevice(own->device) == cudaSuccess) {
        destroy_events(own->event);
        (void)cudaSetDevice(device);
    }
    (void)cudaGetLastError();
    host_free(own);
}

/* The events of other processes, which were opened here. */
static void close_events(spmv_group *group, struct handles *of)
{
    if (group->transport.common || of == NULL || cuda_enter(group->ctx) != SPMV_OK)
        return;
    for (int r = 0; r < group->transport.ranks; r++)
        if (r != group->transport.rank)
            destroy_events(of[r].event);
    (void)cudaGetLastError();
    (void)cuda_leave(group->ctx, SPMV_OK);
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
    close_events(group, n->of);
    if (n->own != NULL)
        t->retain(t, free_own, n->own);
    for (int turn = 0; turn < TURNS; turn++)
        board_give(n->lent[turn]);
    host_free_all(n->of, n->shown, n->all, n);
    group->near = NULL;
}

static spmv_status make_events(const spmv_group *group, struct handles *own)
{
    const bool shown = !group->transport.common;
    cudaError_t error = cudaSuccess;
    spmv_status st = cuda_enter(group->ctx);
    if (st != SPMV_OK)
        return st;
    for (int e = 0; e < EVENTS && error == cudaSuccess; e++) {
        error = cudaEventCreateWithFlags(&own->event[e], cudaEventDisableTiming | (shown ? cudaEventInterprocess : 0));
        if (error == cudaSuccess && shown)
            error = cudaIpcGetEventHandle(&own->shown[e], own->event[e]);
    }
    return cuda_leave(group->ctx, cuda_check(group->ctx, error, what));
}

/* Makes room in memory that nobody uses after what is queued. */
static spmv_status grow(spmv_group *group, int turn, int64_t bytes)
{
    spmv_status st = SPMV_OK;
    struct near *const n = group->near;
    int64_t room = LEAST_BYTES;
    while (room < bytes)
        room *= 2;
    TRY(spmv_synchronize(group->ctx));
    board_give(n->lent[turn]);
    n->lent[turn] = NULL;
    TRY(board_take(group, room, what, &n->lent[turn]));
    TRY(spmv_upload(group->ctx, &(const int64_t){0}, n->lent[turn]->memory, TRIED)); /* a rank may pack nothing */
    TRY(board_tell(group, n->lent[turn], &n->name[turn]));
done:
    return st;
}

/* Bytes that a rank shows the others. */
static int64_t shown_bytes(const spmv_group *group)
{
    return (int64_t)sizeof(struct board_name) + group->transport.ranks * 8;
}

static spmv_status open(spmv_group *group)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = group->ctx;
    const int64_t ranks = group->transport.ranks;
    struct near *n = NULL;
    TRY(host_zeros(ctx, sizeof *n, what, (void **)&n));
    group->near = n;
    TRY(host_zeros(ctx, sizeof *n->own, what, (void **)&n->own));
    n->own->device = ((const struct cuda_state *)ctx->device)->device;
    TRY(host_zeros(ctx, ranks * (int64_t)sizeof *n->of, what, (void **)&n->of));
    TRY(host_alloc(ctx, shown_bytes(group), what, (void **)&n->shown));
    TRY(host_alloc(ctx, ranks * shown_bytes(group), what, (void **)&n->all));
    TRY(make_events(group, n->own));
    for (int t = 0; t < TURNS; t++)
        TRY(grow(group, t, 1));
done:
    return st;
}

/* Together: the events of other threads; those of processes are opened in the first exchange. */
static spmv_status learn_events(spmv_group *group)
{
    struct near *const n = group->near;
    const spmv_status st = group_gather_equal(group, n->own, n->of, sizeof *n->own);
    for (int r = 0; r < group->transport.ranks && !group->transport.common; r++) {
        n->of[r].device = n->own->device; /* opened memory is as that of the own one */
        for (int e = 0; e < EVENTS; e++)
            n->of[r].event[e] = r == group->transport.rank ? n->own->event[e] : NULL;
    }
    return st;
}

static spmv_status open_events(spmv_group *group)
{
    struct near *const n = group->near;
    cudaError_t error = cudaSuccess;
    spmv_status st = group->transport.common ? SPMV_OK : cuda_enter(group->ctx);
    if (st != SPMV_OK || group->transport.common)
        return st;
    for (int r = 0; r < group->transport.ranks && error == cudaSuccess; r++)
        for (int e = 0; e < EVENTS && r != group->transport.rank && error == cudaSuccess; e++)
            error = cudaIpcOpenEventHandle(&n->of[r].event[e], n->of[r].shown[e]);
    if (error != cudaSuccess) {
        cudaGetLastError();
        st = context_fail(group->ctx, SPMV_ERROR_UNSUPPORTED, "processes cannot wait for each other's GPUs: %s",
                          cudaGetErrorString(error));
    }
    return cuda_leave(group->ctx, st);
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
            st = learn_events(group);
        if (st != SPMV_OK) {
            near_close(group); /* no rank has opened the others' memory */
            return st;
        }
    }
    const int turn = (int)(n->number % TURNS);
    for (int r = 0; r < ranks && n->number >= TURNS; r++)
        if (r != group->transport.rank)
            TRY(wait_for(group, n->of[r].event[COPIED + turn]));
    if (n->lent[turn] == NULL || max_i64(1, bytes) > n->lent[turn]->bytes)
        TRY(grow(group, turn, bytes));
    *packed = n->lent[turn]->memory;
done:
    return st;
}

/* Copies what rank `from` has packed from byte `first` of its board on. */
static spmv_status copy(spmv_group *group, const struct near_parcel *p, int64_t first)
{
    const struct near *const n = group->near;
    struct board_name name;
    char *from = NULL;
    memcpy(&name, n->all + p->rank * shown_bytes(group), sizeof name);
    spmv_status st = board_find(group, p->rank, &name, &from);
    if (st == SPMV_OK)
        st = cuda_enter(group->ctx);
    if (st != SPMV_OK)
        return st;
    if (cudaMemcpyPeerAsync(p->to, n->own->device, from + first, n->of[p->rank].device, (size_t)p->bytes,
                            stream_of(group)) != cudaSuccess) {
        cudaGetLastError();
        st = context_fail(group->ctx, SPMV_ERROR_UNSUPPORTED, "GPU %d cannot copy from the GPU of rank %d",
                          n->own->device, p->rank);
    }
    return cuda_leave(group->ctx, st);
}

/* Together, in the first exchange: whether all ranks can copy from all others, for a try into memory that the next
 * exchange uses. */
static spmv_status try_copies(spmv_group *group, bool *moved)
{
    spmv_status st = SPMV_OK, copied = open_events(group);
    struct near *const n = group->near;
    const int64_t ranks = group->transport.ranks;
    bool *refused = NULL, own = false;
    TRY(host_alloc(group->ctx, ranks * (int64_t)sizeof own, what, (void **)&refused));
    for (int r = 0; r < ranks && copied == SPMV_OK; r++) {
        const struct near_parcel some = {r, n->lent[1]->memory, TRIED};
        if (r != group->transport.rank)
            copied = copy(group, &some, 0);
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
    TRY(record(group, n->own->event[PACKED + turn]));
    memcpy(n->shown, &n->name[turn], sizeof n->name[turn]);
    memcpy(n->shown + sizeof n->name[turn], offset, (size_t)ranks * 8);
    TRY(group_gather_equal(group, n->shown, n->all, shown_bytes(group)));
    if (n->number == 0)
        TRY(try_copies(group, moved));
    for (int i = 0; i < receives && *moved; i++) {
        const int from = receive[i].rank;
        int64_t first = 0;
        if (receive[i].bytes == 0)
            continue;
        memcpy(&first, n->all + from * shown_bytes(group) + sizeof(struct board_name) + rank * 8, sizeof first);
        if (from != rank)
            TRY(wait_for(group, n->of[from].event[PACKED + turn]));
        TRY(copy(group, &receive[i], first));
    }
    TRY(record(group, n->own->event[COPIED + turn]));
    n->number++;
done:
    return st;
}
