/* Boards of a group (boards.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "core/runtime_cuda.h"
#include "distributed/group_internal.h"

/* What cudaMalloc gives for fewer bytes may be a part of a block with other data, of which an opened handle would show
 * all. */
enum { WHOLE_BLOCK = 2 << 20 };

/* Memory of another process, opened here. */
struct opened {
    struct opened *next;
    int rank;
    int64_t number;
    void *memory;
};

struct boards {
    struct board *own;
    struct opened *opened;
    int64_t count;
};

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof((struct board_name){0}.handle), "a handle of memory");

/* ------------------------------------------------------------- own boards */

static spmv_status allocate(spmv_group *group, int64_t bytes, const char *what, char **memory)
{
    spmv_status st = cuda_enter(group->ctx);
    if (st != SPMV_OK)
        return st;
    if (cudaMalloc((void **)memory, (size_t)bytes) != cudaSuccess) {
        cudaGetLastError();
        *memory = NULL;
        st = context_fail(group->ctx, SPMV_ERROR_MEMORY, "no memory of GPU %d for %s: %lld bytes",
                          ((const struct cuda_state *)group->ctx->device)->device, what, (long long)bytes);
    }
    return cuda_leave(group->ctx, st);
}

/* The smallest board that is large enough. */
static struct board *find_free(const struct boards *all, int64_t bytes)
{
    struct board *best = NULL;
    for (struct board *b = all->own; b != NULL; b = b->next)
        if (!b->taken && b->bytes >= bytes && (best == NULL || b->bytes < best->bytes))
            best = b;
    return best;
}

spmv_status board_take(spmv_group *group, int64_t bytes, const char *what, struct board **board)
{
    spmv_status st = SPMV_OK;
    struct board *b = NULL;
    if (!group->transport.common)
        bytes = ceil_divide(bytes, WHOLE_BLOCK) * WHOLE_BLOCK;
    if (group->boards == NULL)
        TRY(host_zeros(group->ctx, sizeof *group->boards, what, (void **)&group->boards));
    *board = find_free(group->boards, bytes);
    if (*board == NULL) {
        TRY(host_alloc(group->ctx, sizeof *b, what, (void **)&b));
        *b = (struct board){.next = group->boards->own,
                            .device = ((const struct cuda_state *)group->ctx->device)->device,
                            .number = group->boards->count,
                            .bytes = bytes};
        TRY(allocate(group, bytes, what, &b->memory));
        group->boards->count++;
        group->boards->own = b;
        *board = b;
        b = NULL;
    }
    (*board)->taken = true;
done:
    host_free(b);
    return st;
}

void board_give(struct board *board)
{
    if (board != NULL)
        board->taken = false;
}

static void free_boards(void *memory)
{
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess)
        device = -1;
    for (struct board *b = memory, *next; b != NULL; b = next) {
        next = b->next;
        if (cudaSetDevice(b->device) == cudaSuccess)
            (void)cudaFree(b->memory);
        host_free(b);
    }
    if (device >= 0)
        (void)cudaSetDevice(device);
    (void)cudaGetLastError();
}

/* ------------------------------------------------------------- boards of other ranks */

/* The status of a call of CUDA IPC. */
static spmv_status between_processes(spmv_group *group, cudaError_t error, const char *call)
{
    if (error == cudaSuccess)
        return SPMV_OK;
    cudaGetLastError();
    return context_fail(group->ctx, SPMV_ERROR_UNSUPPORTED,
                        "exchange peer: processes cannot use each other's GPU memory: %s: %s", call,
                        cudaGetErrorString(error));
}

spmv_status board_tell(spmv_group *group, const struct board *board, struct board_name *name)
{
    cudaIpcMemHandle_t handle;
    *name = (struct board_name){.number = board->number, .memory = board->memory};
    if (group->transport.common)
        return SPMV_OK;
    spmv_status st = cuda_enter(group->ctx);
    if (st != SPMV_OK)
        return st;
    st = between_processes(group, cudaIpcGetMemHandle(&handle, board->memory), "cudaIpcGetMemHandle");
    if (st == SPMV_OK)
        memcpy(name->handle, &handle, sizeof handle);
    return cuda_leave(group->ctx, st);
}

/* Opens memory of another process. */
static spmv_status open(spmv_group *group, const struct board_name *name, void **memory)
{
    cudaIpcMemHandle_t handle;
    spmv_status st = cuda_enter(group->ctx);
    if (st != SPMV_OK)
        return st;
    memcpy(&handle, name->handle, sizeof handle);
    st = between_processes(group, cudaIpcOpenMemHandle(memory, handle, cudaIpcMemLazyEnablePeerAccess),
                           "cudaIpcOpenMemHandle");
    return cuda_leave(group->ctx, st);
}

spmv_status board_find(spmv_group *group, int rank, const struct board_name *name, char **memory)
{
    spmv_status st = SPMV_OK;
    struct opened *o = NULL;
    if (group->transport.common || rank == group->transport.rank) {
        *memory = name->memory;
        return SPMV_OK;
    }
    for (o = group->boards->opened; o != NULL && (o->rank != rank || o->number != name->number);)
        o = o->next;
    if (o == NULL) {
        TRY(host_alloc(group->ctx, sizeof *o, "an exchange between GPUs", (void **)&o));
        *o = (struct opened){.next = group->boards->opened, .rank = rank, .number = name->number};
        st = open(group, name, &o->memory);
        if (st != SPMV_OK)
            goto done;
        group->boards->opened = o;
    }
    *memory = o->memory;
    o = NULL;
done:
    if (st != SPMV_OK)
        host_free(o);
    return st;
}

/* After all that this rank has queued. */
static void close_opened(spmv_group *group, struct opened *first)
{
    if (spmv_synchronize(group->ctx) != SPMV_OK)
        cudaGetLastError();
    const bool entered = first != NULL && cuda_enter(group->ctx) == SPMV_OK;
    for (struct opened *o = first, *next; o != NULL; o = next) {
        next = o->next;
        (void)cudaIpcCloseMemHandle(o->memory);
        host_free(o);
    }
    if (entered) {
        cudaGetLastError();
        (void)cuda_leave(group->ctx, SPMV_OK);
    }
}

void boards_close(spmv_group *group)
{
    struct boards *const all = group->boards;
    struct transport *const t = &group->transport;
    if (all == NULL)
        return;
    close_opened(group, all->opened);
    if (all->own != NULL)
        t->retain(t, free_boards, all->own);
    host_free(all);
    group->boards = NULL;
}
