/* The exchange "nccl": NVIDIA's library for communication between GPUs, also of several hosts. It is
 * opened at run time, so libspmv needs neither the library nor its header. The functions are those of
 * version 2.7; their declarations are those of its documentation.
 *
 * A call of NCCL may wait for other ranks: when a communicator is made, and when two ranks connect at
 * their first exchange. If one of them fails there, for instance for want of memory, the others must
 * not wait for ever. So the communicator is one that does not block (version 2.14): the host polls,
 * and ends it when the group breaks. With an older version a rank then waits in NCCL.
 *
 * ncclAllGather moves the parts of sums, not their sum: each rank adds all parts in the order of the
 * chunks, so the bits do not depend on NCCL's algorithms.
 *
 * Source: NCCL documentation, "NCCL API", "Fault Tolerance", "Using NCCL with CUDA Graphs".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <spmv/primitives.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/runtime_cuda.h"
#include "distributed/exchange_cuda.h"
#include "distributed/group_internal.h"

static const char *const what = "the exchange nccl";

/* ------------------------------------------------------------- the library */

typedef struct ncclComm *nccl_comm;
typedef struct {
    char internal[128];
} nccl_id;
enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7, NCCL_FLOAT32 = 7, NCCL_FLOAT64 = 8 };

/* The first members of NCCL's configuration, all that version 2.14 had. NCCL takes `size` bytes and
 * gives members that `version` did not have their defaults. */
struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking;
};
enum { NCCL_MAGIC = (int)0xcafebeef, NCCL_VERSION = 21400 };

static struct {
    int (*get_id)(nccl_id *);
    int (*init_rank)(nccl_comm *, int ranks, nccl_id, int rank);
    int (*init_rank_config)(nccl_comm *, int ranks, nccl_id, int rank, struct nccl_config *); /* or NULL */
    int (*destroy)(nccl_comm);
    int (*abort)(nccl_comm);
    int (*async_error)(nccl_comm, int *);
    const char *(*error_string)(int);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*send)(const void *, size_t count, int type, int rank, nccl_comm, cudaStream_t);
    int (*receive)(void *, size_t count, int type, int rank, nccl_comm, cudaStream_t);
    int (*all_gather)(const void *, void *, size_t count, int type, nccl_comm, cudaStream_t);
} nccl;

static const struct {
    const char *name;
    void *function;
} names[] = {{"ncclGetUniqueId", &nccl.get_id},
             {"ncclCommInitRank", &nccl.init_rank},
             {"ncclCommDestroy", &nccl.destroy},
             {"ncclCommAbort", &nccl.abort},
             {"ncclCommGetAsyncError", &nccl.async_error},
             {"ncclGetErrorString", &nccl.error_string},
             {"ncclGroupStart", &nccl.group_start},
             {"ncclGroupEnd", &nccl.group_end},
             {"ncclSend", &nccl.send},
             {"ncclRecv", &nccl.receive},
             {"ncclAllGather", &nccl.all_gather},
             {"ncclCommInitRankConfig", &nccl.init_rank_config}};
enum { NAMES = sizeof names / sizeof *names, REQUIRED = NAMES - 1 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char missing[300] = "";

/* Opens the library. NVLink multicast stays off, unless the user has set NCCL_NVLS_ENABLE: only
 * all-reductions gain by it, and it fails where a container forbids it. */
static void open_library(void)
{
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        const char *error = dlerror();
        snprintf(missing, sizeof missing, "libnccl.so.2 cannot be opened (%.200s)", error != NULL ? error : "");
        return;
    }
    for (int i = 0; i < NAMES; i++) {
        void *symbol = dlsym(library, names[i].name);
        if (symbol == NULL && i < REQUIRED)
            snprintf(missing, sizeof missing, "libnccl.so.2 has no function %s: version 2.7 or newer is needed",
                     names[i].name);
        /* POSIX allows a function pointer to be read from dlsym's result; C has no cast for that. */
        memcpy(names[i].function, &symbol, sizeof symbol);
    }
    (void)setenv("NCCL_NVLS_ENABLE", "0", 0);
}

static bool is_fine(int result)
{
    return result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS;
}

/* The status of a call of NCCL. */
static spmv_status check(spmv_context *ctx, int result, const char *call)
{
    return is_fine(result)
               ? SPMV_OK
               : context_fail(ctx, SPMV_ERROR_DEVICE, "exchange nccl: %s: %s", call, nccl.error_string(result));
}

/* ------------------------------------------------------------- the communicator of a group */

/* Ends the communicator, and with it what waits for other ranks. */
static void abandon(spmv_group_matrix *m)
{
    if (m->group->nccl != NULL)
        (void)nccl.abort(m->group->nccl);
    m->group->nccl = NULL;
}

/* Waits until a call has done its work, unless the group breaks meanwhile. */
static spmv_status settle(spmv_group_matrix *m, int result, const char *call)
{
    while (result == NCCL_IN_PROGRESS) {
        const spmv_status failure = group_failure(m->group);
        if (failure != SPMV_OK) {
            abandon(m);
            return failure;
        }
        sched_yield();
        const int asked = nccl.async_error(m->group->nccl, &result);
        result = asked == NCCL_SUCCESS ? result : asked;
    }
    return check(m->ctx, result, call);
}

static int init_rank(spmv_group *group, nccl_id id)
{
    struct nccl_config config = {sizeof config, (unsigned)NCCL_MAGIC, NCCL_VERSION, 0};
    const int ranks = group->transport.ranks, rank = group->transport.rank;
    nccl_comm made = NULL;
    const int result = nccl.init_rank_config != NULL ? nccl.init_rank_config(&made, ranks, id, rank, &config)
                                                     : nccl.init_rank(&made, ranks, id, rank);
    group->nccl = made;
    return result;
}

/* Together: makes the communicator. A rank that fails breaks the group, since others may wait for it
 * within NCCL. */
static spmv_status connect_ranks(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    spmv_group *group = m->group;
    nccl_id own = {{0}}, *all = NULL;
    st = host_alloc(m->ctx, group->transport.ranks * (int64_t)sizeof *all, what, (void **)&all);
    if (st == SPMV_OK && group->transport.rank == 0)
        st = check(m->ctx, nccl.get_id(&own), "ncclGetUniqueId");
    TRY(spmv_group_agree(group, st));
    TRY(group_gather_equal(group, &own, all, sizeof own));
    TRY(cuda_enter(m->ctx));
    TRY(cuda_leave(m->ctx, settle(m, init_rank(group, all[0]), "ncclCommInitRank")));
    TRY(spmv_group_agree(group, SPMV_OK));
done:
    host_free(all);
    return st;
}

void exchange_nccl_release(struct spmv_group *group)
{
    if (cuda_enter(group->ctx) == SPMV_OK) {
        struct transport *t = &group->transport;
        (void)(t->failure(t) != SPMV_OK ? nccl.abort(group->nccl) : nccl.destroy(group->nccl));
        (void)cuda_leave(group->ctx, SPMV_OK);
    }
    group->nccl = NULL;
}

/* ------------------------------------------------------------- the kind */

struct by_nccl {
    struct exchange_view view; /* for the parts of own chunks */
    int64_t most;              /* the largest number of chunks of a rank */
    /* own parts, padded to EXCHANGE_SUMS * most; those of all ranks; the place of each chunk's part */
    void *parts, *gathered, *place;
};

static struct by_nccl *state_of(const spmv_group_matrix *m)
{
    return m->exchange.state;
}

static cudaStream_t stream_of(const spmv_group_matrix *m)
{
    return (cudaStream_t)m->ctx->stream;
}

/* Makes the arrays of this rank. */
static spmv_status make_arrays(spmv_group_matrix *m, struct by_nccl *s)
{
    spmv_status st = SPMV_OK;
    const int ranks = m->group->transport.ranks;
    int32_t *place = NULL;
    s->most = 1;
    for (int r = 0; r < ranks; r++)
        s->most = max_i64(s->most, m->chunk_of_rank[r + 1] - m->chunk_of_rank[r]);
    const int64_t each = EXCHANGE_SUMS * s->most;
    TRY(host_alloc(m->ctx, max_i64(1, m->all_chunks) * (int64_t)sizeof *place, what, (void **)&place));
    for (int r = 0; r < ranks; r++)
        for (int64_t c = m->chunk_of_rank[r]; c < m->chunk_of_rank[r + 1]; c++)
            place[c] = (int32_t)(r * each + c - m->chunk_of_rank[r]);
    TRY(spmv_alloc(m->ctx, each * 8, &s->parts));
    TRY(spmv_alloc(m->ctx, ranks * each * 8, &s->gathered));
    TRY(spmv_alloc(m->ctx, max_i64(1, m->all_chunks) * (int64_t)sizeof *place, &s->place));
    TRY(spmv_upload(m->ctx, place, s->place, m->all_chunks * (int64_t)sizeof *place));
    TRY(spmv_map_index(m->ctx, SPMV_F64, &(const double){0}, NULL, s->parts, each));
    s->view = (struct exchange_view){
        .chunk = m->context_chunk, .chunks = m->ranks.chunks, .own_parts = s->parts, .own_stride = s->most};
done:
    host_free(place);
    return st;
}

static spmv_status open_nccl(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    struct by_nccl *s = NULL;
    const char *obstacle = NULL;
    bool one_host = false;
    pthread_once(&once, open_library);
    if (missing[0] != '\0')
        st = context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                          "exchange nccl: %s: install NCCL, or add its folder to LD_LIBRARY_PATH", missing);
    TRY(spmv_group_agree(m->group, st));
    TRY(exchange_find_obstacle(m, &obstacle, &one_host));
    if (obstacle != NULL) {
        m->group->settled = true; /* all ranks see the same devices */
        return context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                            "exchange nccl: %s, but NCCL needs a GPU for each rank: use as many ranks as GPUs, or "
                            "another exchange",
                            obstacle);
    }
    st = host_alloc(m->ctx, sizeof *s, what, (void **)&s);
    if (st == SPMV_OK) {
        *s = (struct by_nccl){.most = 0};
        m->exchange.state = s;
        st = make_arrays(m, s);
    }
    TRY(spmv_group_agree(m->group, st));
    if (m->group->nccl == NULL)
        TRY(connect_ranks(m));
    m->exchange.may_wait = true;
done:
    return st;
}

static void close_nccl(spmv_group_matrix *m)
{
    struct by_nccl *s = state_of(m);
    if (s == NULL)
        return;
    spmv_free(m->ctx, s->parts);
    spmv_free(m->ctx, s->gathered);
    spmv_free(m->ctx, s->place);
    host_free(s);
}

/* The real type of the parts of elements; *size: its bytes. */
static int nccl_type(spmv_type type, int64_t *size)
{
    static const int types[SPMV_TYPE_LIMIT] = {[SPMV_F32] = NCCL_FLOAT32, [SPMV_F64] = NCCL_FLOAT64};
    static_assert(REAL_TYPES == 2, "one row for each real type");
    *size = (int64_t)spmv_type_size(type_part(type));
    return types[type_part(type)];
}

/* After a call of NCCL: the next kernel does not start early, because NCCL may end with work that is
 * no kernel. */
static spmv_status after_call(spmv_group_matrix *m, int result, const char *call)
{
    cuda_next_in_order(m->ctx);
    return settle(m, result, call);
}

static spmv_status put(spmv_group_matrix *m, const void *x)
{
    const struct halo *h = &m->halo;
    return h->count == 0 ? SPMV_OK
                         : exchange_pack_cuda(m->ctx, m->type, h->context_index, h->count, x, h->context_packed);
}

static int queue_parcels(const spmv_group_matrix *m, void *x)
{
    const struct halo *h = &m->halo;
    const nccl_comm comm = m->group->nccl;
    int64_t size = 0;
    const int type = nccl_type(m->type, &size);
    const char *from = h->context_packed;
    int result = NCCL_SUCCESS;
    for (int i = 0; i < h->sends && is_fine(result); i++) {
        result = nccl.send(from, (size_t)(h->send[i].bytes / size), type, h->send[i].rank, comm, stream_of(m));
        from += h->send[i].bytes;
    }
    for (int i = 0; i < h->receives && is_fine(result); i++)
        result = nccl.receive((char *)x + h->receive_at[i] * (int64_t)spmv_type_size(m->type),
                              (size_t)(h->receive[i].bytes / size), type, h->receive[i].rank, comm, stream_of(m));
    return result;
}

static spmv_status take(spmv_group_matrix *m, void *x)
{
    spmv_status st = SPMV_OK;
    if (m->halo.sends == 0 && m->halo.receives == 0)
        return SPMV_OK;
    if (m->group->nccl == NULL)
        return context_fail(m->ctx, SPMV_ERROR_DEVICE, "exchange nccl: the communicator was ended by a failure");
    TRY(cuda_enter(m->ctx));
    int result = nccl.group_start();
    if (is_fine(result))
        result = queue_parcels(m, x);
    const int ended = nccl.group_end();
    result = is_fine(result) ? ended : result;
    st = cuda_leave(m->ctx, after_call(m, result, "ncclSend and ncclRecv"));
done:
    return st;
}

static spmv_status collect(spmv_group_matrix *m, spmv_type type, int count, void *sums)
{
    spmv_status st = SPMV_OK;
    const struct by_nccl *s = state_of(m);
    const struct exchange_gathered all = {s->gathered, s->place, m->all_chunks, s->most};
    int64_t size = 0;
    const int of = nccl_type(type, &size);
    if (m->group->nccl == NULL)
        return context_fail(m->ctx, SPMV_ERROR_DEVICE, "exchange nccl: the communicator was ended by a failure");
    TRY(cuda_enter(m->ctx));
    TRY(cuda_leave(m->ctx, after_call(m,
                                      nccl.all_gather(s->parts, s->gathered, (size_t)(EXCHANGE_SUMS * s->most), of,
                                                      m->group->nccl, stream_of(m)),
                                      "ncclAllGather")));
    TRY(exchange_fold_cuda(m->ctx, type, &all, count, sums));
done:
    return st;
}

static spmv_status sum(spmv_group_matrix *m, spmv_type type, const struct exchange_parts *parts, void *sums, int phases)
{
    spmv_status st = SPMV_OK;
    if ((phases & EXCHANGE_PUBLISH) != 0)
        st = exchange_sum_cuda(m->ctx, type, &state_of(m)->view, parts, sums, EXCHANGE_PUBLISH);
    return st == SPMV_OK && (phases & EXCHANGE_COLLECT) != 0 ? collect(m, type, parts->sums, sums) : st;
}

const struct exchange_kind exchange_nccl = {
    .name = "nccl", .open = open_nccl, .close = close_nccl, .put = put, .take = take, .sum = sum, .abandon = abandon};
