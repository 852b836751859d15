/* The functions of NCCL that the exchange nccl calls, for ranks that are threads on emulated GPUs: a
 * library libnccl.so.2 for test_group.host_cuda. Device memory is host memory, and calls return when
 * the data have arrived. A message of another size than the receiver expects ends the program. The
 * rank that the variable HOST_NCCL_FAILS names cannot make a communicator; the others then wait.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum { MOST_RANKS = 16, UNHANDLED = 1, INVALID = 4, FLOAT32 = 7, IN_PROGRESS = 7 };

struct transfer {
    const void *from;
    void *to;
    size_t bytes;
    int rank, taken;
};

/* What a rank sends, receives and gathers now. */
struct shown {
    struct transfer send[MOST_RANKS], receive[MOST_RANKS];
    int sends, queued, receives; /* queued: until the group ends */
    const void *gathered;
};

struct world {
    struct world *before; /* worlds stay reachable until the program ends */
    pthread_barrier_t all;
    int ranks, opened;
    struct shown shown[MOST_RANKS];
};

struct ncclComm {
    struct world *world;
    int rank;
};

typedef struct {
    char internal[128];
} ncclUniqueId;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct world *newest;
static _Thread_local struct ncclComm *of_thread; /* ncclGroupEnd has no communicator */

static void give_up(const char *what)
{
    fprintf(stderr, "host_nccl: %s\n", what);
    abort();
}

static size_t bytes_of(size_t count, int type)
{
    return count * (type == FLOAT32 ? 4 : 8);
}

API int ncclGetUniqueId(ncclUniqueId *id)
{
    struct world *world = calloc(1, sizeof *world);
    memset(id, 0, sizeof *id);
    memcpy(id, &world, sizeof world);
    if (world == NULL)
        return UNHANDLED;
    pthread_mutex_lock(&lock);
    world->before = newest;
    newest = world;
    pthread_mutex_unlock(&lock);
    return 0;
}

/* A rank opens its communicator; returns before the others have. */
static int open_rank(struct ncclComm **comm, int ranks, ncclUniqueId id, int rank)
{
    const char *fails = getenv("HOST_NCCL_FAILS");
    struct world *world;
    memcpy(&world, &id, sizeof world);
    if (ranks > MOST_RANKS)
        give_up("too many ranks");
    if (fails != NULL && atoi(fails) == rank)
        return UNHANDLED;
    pthread_mutex_lock(&lock);
    if (world->ranks == 0)
        pthread_barrier_init(&world->all, NULL, (unsigned)ranks);
    world->ranks = ranks;
    world->opened++;
    pthread_mutex_unlock(&lock);
    *comm = of_thread = malloc(sizeof **comm);
    **comm = (struct ncclComm){world, rank};
    return 0;
}

/* The older call, which blocks. */
API int ncclCommInitRank(struct ncclComm **comm, int ranks, ncclUniqueId id, int rank)
{
    const int result = open_rank(comm, ranks, id, rank);
    if (result == 0)
        pthread_barrier_wait(&(*comm)->world->all);
    return result;
}

struct config {
    size_t size;
    unsigned magic, version;
    int blocking;
};

API int ncclCommInitRankConfig(struct ncclComm **comm, int ranks, ncclUniqueId id, int rank, struct config *config)
{
    if (config->size < sizeof *config || config->magic != 0xcafebeef || config->version < 21400 || config->blocking)
        return INVALID;
    const int result = open_rank(comm, ranks, id, rank);
    return result == 0 ? IN_PROGRESS : result;
}

API int ncclCommDestroy(struct ncclComm *comm)
{
    free(comm);
    return 0;
}

API int ncclCommAbort(struct ncclComm *comm)
{
    return ncclCommDestroy(comm);
}

API int ncclCommGetAsyncError(struct ncclComm *comm, int *error)
{
    pthread_mutex_lock(&lock);
    *error = comm->world->opened < comm->world->ranks ? IN_PROGRESS : 0;
    pthread_mutex_unlock(&lock);
    return 0;
}

API const char *ncclGetErrorString(int error)
{
    return error == 0 ? "no error" : "an error";
}

API int ncclGroupStart(void)
{
    return 0;
}

API int ncclSend(const void *from, size_t count, int type, int to, struct ncclComm *comm, void *stream)
{
    struct shown *mine = &comm->world->shown[comm->rank];
    (void)stream;
    mine->send[mine->queued++] = (struct transfer){.from = from, .bytes = bytes_of(count, type), .rank = to};
    return 0;
}

API int ncclRecv(void *to, size_t count, int type, int from, struct ncclComm *comm, void *stream)
{
    struct shown *mine = &comm->world->shown[comm->rank];
    (void)stream;
    mine->receive[mine->receives++] = (struct transfer){.to = to, .bytes = bytes_of(count, type), .rank = from};
    return 0;
}

/* Waits for the message and copies it. */
static void take(const struct ncclComm *comm, const struct transfer *wanted)
{
    struct shown *from = &comm->world->shown[wanted->rank];
    for (;;) {
        for (int i = 0; i < from->sends; i++) {
            struct transfer *its = &from->send[i];
            if (its->rank != comm->rank || its->taken)
                continue;
            if (its->bytes != wanted->bytes)
                give_up("a message has another size than was expected");
            memcpy(wanted->to, its->from, wanted->bytes);
            its->taken = 1;
            pthread_cond_broadcast(&changed);
            return;
        }
        pthread_cond_wait(&changed, &lock);
    }
}

API int ncclGroupEnd(void)
{
    struct shown *mine = &of_thread->world->shown[of_thread->rank];
    pthread_mutex_lock(&lock);
    mine->sends = mine->queued;
    pthread_cond_broadcast(&changed);
    for (int i = 0; i < mine->receives; i++)
        take(of_thread, &mine->receive[i]);
    for (int i = 0; i < mine->sends; i++)
        while (!mine->send[i].taken)
            pthread_cond_wait(&changed, &lock);
    mine->sends = mine->queued = mine->receives = 0;
    pthread_mutex_unlock(&lock);
    return 0;
}

API int ncclAllGather(const void *from, void *to, size_t count, int type, struct ncclComm *comm, void *stream)
{
    struct world *world = comm->world;
    const size_t bytes = bytes_of(count, type);
    (void)stream;
    world->shown[comm->rank].gathered = from;
    pthread_barrier_wait(&world->all);
    for (int r = 0; r < world->ranks; r++)
        memcpy((char *)to + (size_t)r * bytes, world->shown[r].gathered, bytes);
    pthread_barrier_wait(&world->all);
    return 0;
}
