/* The choice of an exchange, and its two modes (exchange.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/choice.h"
#include "core/clock.h"
#include "core/runtime_cuda.h"
#include "distributed/exchange_cuda.h"
#include "distributed/group_internal.h"

static const struct exchange_kind *const kinds[] = {&exchange_peer, &exchange_nccl};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ------------------------------------------------------------- devices */

/* Identifies a device among those of all hosts. concurrent: it runs several kernels at a time. */
struct device_id {
    char host[128], bus[32];
    int concurrent;
};

/* The host's name, and the number that its system has drawn when it began: two hosts may have one name. */
static void identify_host(char *host, size_t size)
{
    (void)gethostname(host, size / 2);
    host[size / 2] = '\0';
    const size_t length = strlen(host);
    FILE *const file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file == NULL)
        return;
    const size_t got = fread(host + length, 1, size - length - 1, file);
    host[length + got] = '\0';
    (void)fclose(file);
}

static spmv_status identify(spmv_context *ctx, struct device_id *id)
{
    const int device = ((struct cuda_state *)ctx->device)->device;
    identify_host(id->host, sizeof id->host);
    spmv_status st = cuda_enter(ctx);
    if (st != SPMV_OK)
        return st;
    st = cuda_check(ctx, cudaDeviceGetPCIBusId(id->bus, (int)sizeof id->bus, device), "cudaDeviceGetPCIBusId");
    if (st == SPMV_OK)
        st = cuda_check(ctx, cudaDeviceGetAttribute(&id->concurrent, cudaDevAttrConcurrentKernels, device),
                        "cudaDeviceGetAttribute");
    return cuda_leave(ctx, st);
}

spmv_status exchange_find_obstacle(spmv_group_matrix *m, const char **obstacle, bool *one_host)
{
    spmv_status st = SPMV_OK;
    const int ranks = m->group->transport.ranks;
    struct device_id own = {"", "", 0}, *all = NULL;
    *obstacle = NULL;
    *one_host = true;
    TRY(spmv_group_agree(m->group, identify(m->ctx, &own)));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *all, "a group", (void **)&all));
    TRY(group_gather_equal(m->group, &own, all, sizeof own));
    for (int r = 0; r < ranks; r++) {
        if (!all[r].concurrent)
            *obstacle = "a GPU does not run several kernels at a time";
        *one_host = *one_host && strcmp(all[r].host, all[0].host) == 0;
        for (int other = 0; other < r; other++)
            if (strcmp(all[r].host, all[other].host) == 0 && strcmp(all[r].bus, all[other].bus) == 0)
                *obstacle = "two ranks have the same GPU";
    }
done:
    host_free(all);
    return st;
}

/* ------------------------------------------------------------- the choice */

/* Makes the side stream, whose kernels come first where both streams have some. */
static spmv_status open_side(spmv_group_matrix *m)
{
    struct exchange *e = &m->exchange;
    int least = 0, greatest = 0;
    if (e->may_wait && m->first != NULL && m->first->exchange.side != NULL) { /* one product at a time */
        e->side = m->first->exchange.side;
        e->begun = m->first->exchange.begun;
        e->arrived = m->first->exchange.arrived;
        return SPMV_OK;
    }
    spmv_status st = e->may_wait ? cuda_enter(m->ctx) : SPMV_OK;
    if (st != SPMV_OK || !e->may_wait)
        return st;
    cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithPriority((cudaStream_t *)&e->side, cudaStreamNonBlocking, greatest);
    if (error == cudaSuccess)
        error = cudaEventCreateWithFlags((cudaEvent_t *)&e->begun, cudaEventDisableTiming);
    if (error == cudaSuccess)
        error = cudaEventCreateWithFlags((cudaEvent_t *)&e->arrived, cudaEventDisableTiming);
    return cuda_leave(m->ctx, cuda_check(m->ctx, error, "a stream for an exchange"));
}

static void close_side(spmv_group_matrix *m)
{
    const struct exchange *e = &m->exchange;
    if (m->first != NULL && e->side == m->first->exchange.side)
        return;
    if (cuda_enter(m->ctx) != SPMV_OK)
        return;
    if (e->begun != NULL)
        (void)cudaEventDestroy(e->begun);
    if (e->arrived != NULL)
        (void)cudaEventDestroy(e->arrived);
    if (e->side != NULL)
        (void)cudaStreamDestroy(e->side);
    (void)cudaGetLastError();
    (void)cuda_leave(m->ctx, SPMV_OK);
}

static spmv_status try_kind(spmv_group_matrix *m, const struct exchange_kind *kind)
{
    m->exchange.kind = kind;
    spmv_status st = kind->open(m);
    if (st == SPMV_OK)
        st = spmv_group_agree(m->group, open_side(m));
    if (st != SPMV_OK) {
        char why[1024];
        snprintf(why, sizeof why, "%s", spmv_last_error(m->ctx));
        exchange_close(m);
        (void)context_fail(m->ctx, st, "%s", why);
    }
    return st;
}

static spmv_status choose_kind(spmv_group_matrix *m, const char *name)
{
    struct names names = {.count = 0};
    const void *kind = NULL;
    names_add(&names, "auto");
    for (int k = 0; k < KINDS; k++)
        names_add_row(&names, kinds[k]->name, kinds[k]);
    names_add(&names, "host");
    spmv_status st =
        choice_take(m->ctx, SPMV_ERROR_ARGUMENT, "spmv_group_matrix_create", "exchange", &names, name, &kind);
    if (st != SPMV_OK) {
        m->group->settled = true; /* the same on all ranks */
        return st;
    }
    if (!choice_is_auto(name))
        return kind != NULL ? try_kind(m, kind) : SPMV_OK;
    for (int k = 0; k < KINDS; k++) {
        st = try_kind(m, kinds[k]);
        if (st != SPMV_ERROR_UNSUPPORTED || !m->group->settled) /* others may wait for this rank */
            return st;
        m->group->settled = false; /* the next kind is tried */
    }
    m->ctx->error[0] = '\0'; /* a kind that is not possible is no failure */
    return SPMV_OK;
}

spmv_status exchange_open(spmv_group_matrix *m, const char *name)
{
    const spmv_status st = choose_kind(m, name);
    if (st != SPMV_OK)
        return st;
    m->ranks.queue_sum = m->exchange.kind != NULL ? exchange_sum : NULL;
    m->ranks.queue_parts = m->exchange.kind != NULL && m->group->transport.ranks == 1 ? exchange_chunk_parts : NULL;
    m->ranks.queue_step_sums = m->exchange.kind != NULL ? exchange_step_sums : NULL;
    m->ranks.let_wait = exchange_let_wait;
    m->ranks.await = exchange_await;
    m->ranks.view = exchange_view_of(m);
    m->ranks.publish = exchange_publish;
    m->ranks.publish_dot = exchange_publish_dot;
    m->ranks.take = exchange_take_sent;
    m->ranks.meet = exchange_meet;
    return SPMV_OK;
}

void exchange_close(spmv_group_matrix *m)
{
    if (m->exchange.kind != NULL) {
        m->exchange.kind->close(m);
        close_side(m);
    }
    m->exchange = (struct exchange){.kind = NULL};
}

/* ------------------------------------------------------------- waits */

static cudaError_t progress(const spmv_group_matrix *m, void *event)
{
    return event != NULL ? cudaEventQuery((cudaEvent_t)event) : cudaStreamQuery((cudaStream_t)m->ctx->stream);
}

/* Ends the waits of this rank's kernels, and waits for them. */
static spmv_status abandon(spmv_group_matrix *m)
{
    m->exchange.kind->abandon(m);
    if (m->exchange.side != NULL)
        (void)cuda_check(m->ctx, cudaStreamSynchronize(m->exchange.side), "the end of a group");
    (void)cuda_check(m->ctx, cudaStreamSynchronize((cudaStream_t)m->ctx->stream), "the end of a group");
    return group_failure(m->group);
}

spmv_status exchange_await(void *matrix, void *event)
{
    spmv_group_matrix *m = matrix;
    spmv_status st = cuda_enter(m->ctx);
    if (st != SPMV_OK)
        return st;
    cudaError_t error = cudaErrorNotReady;
    while (st == SPMV_OK && (error = progress(m, event)) == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* not an error */
        if (group_failure(m->group) != SPMV_OK)
            st = abandon(m);
        else
            sched_yield();
    }
    if (st == SPMV_OK)
        st = cuda_check(m->ctx, error, "an exchange of ranks");
    if (st == SPMV_OK)
        st = group_failure(m->group);
    return cuda_leave(m->ctx, st);
}

/* Together: returns after all ranks have called it. */
static spmv_status gather_one(spmv_group_matrix *m)
{
    const char here = 1;
    return group_gather_equal(m->group, &here, m->met, sizeof here);
}

/* In careful mode: all ranks have finished what they queued. */
static spmv_status meet(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    if (m->exchange.is_free)
        return SPMV_OK;
    TRY(exchange_await(m, NULL));
    TRY(gather_one(m));
done:
    return st;
}

/* ------------------------------------------------------------- the functions of a plan */

/* Lets the second stream wait for what is queued on the first one. */
static spmv_status order_streams(spmv_context *ctx, void *event, void *before, void *behind)
{
    spmv_status st = cuda_enter(ctx);
    if (st != SPMV_OK)
        return st;
    st = cuda_check(ctx, cudaEventRecord(event, (cudaStream_t)before), "recording an event");
    if (st == SPMV_OK && behind != NULL)
        st = cuda_check(ctx, cudaStreamWaitEvent((cudaStream_t)behind, event, 0), "ordering two streams");
    cuda_next_in_order(ctx); /* the next kernel waits for more than the kernel before it */
    return cuda_leave(ctx, st);
}

/* In free mode: queues put and take on the side stream. */
static spmv_status fetch_aside(spmv_group_matrix *m, void *x)
{
    spmv_status st = SPMV_OK;
    struct exchange *e = &m->exchange;
    void *const stream = m->ctx->stream;
    TRY(order_streams(m->ctx, e->begun, stream, e->side));
    m->ctx->stream = e->side;
    st = e->kind->put(m, x);
    if (st == SPMV_OK)
        st = e->kind->take(m, x);
    if (st == SPMV_OK)
        st = order_streams(m->ctx, e->arrived, e->side, NULL);
    m->ctx->stream = stream;
    e->aside = st == SPMV_OK;
done:
    return st;
}

spmv_status exchange_fetch_start(spmv_group_matrix *m, void *x)
{
    if (m->all_ghosts == 0)
        return SPMV_OK;
    return m->exchange.is_free ? fetch_aside(m, x) : m->exchange.kind->put(m, x);
}

/* Lets the context's stream wait for the elements of other ranks. */
static spmv_status await_side(spmv_group_matrix *m)
{
    spmv_status st = cuda_enter(m->ctx);
    if (st != SPMV_OK)
        return st;
    st = cuda_check(m->ctx, cudaStreamWaitEvent((cudaStream_t)m->ctx->stream, m->exchange.arrived, 0),
                    "ordering two streams");
    cuda_next_in_order(m->ctx);
    return cuda_leave(m->ctx, st);
}

spmv_status exchange_fetch_finish(spmv_group_matrix *m, void *x)
{
    spmv_status st = SPMV_OK;
    struct exchange *e = &m->exchange;
    if (m->all_ghosts == 0)
        return SPMV_OK;
    if (e->is_free) {
        if (e->aside)
            TRY(await_side(m));
        e->aside = false;
        return SPMV_OK;
    }
    TRY(meet(m));
    TRY(e->kind->take(m, x));
    TRY(exchange_await(m, NULL));
done:
    return st;
}

/* Adds the parts of each own chunk's tiles: that of sum v for chunk c is own[v * chunks + c]. */
static spmv_status chunk_parts(spmv_group_matrix *m, spmv_type type, const struct exchange_parts *parts, void *own)
{
    const struct exchange_view view = {
        .chunk = m->context_chunk, .chunks = m->ranks.chunks, .own_parts = own, .own_stride = m->ranks.chunks};
    return exchange_sum_cuda(m->ctx, type, &view, parts, NULL, EXCHANGE_PUBLISH);
}

spmv_status exchange_chunk_parts(void *matrix, spmv_type type, const void *numbers, int64_t tile_rows, void *parts)
{
    return chunk_parts(matrix, type, &(const struct exchange_parts){numbers, 1, tile_rows, NULL}, parts);
}

/* With one rank: the parts of its chunks are all parts. */
static spmv_status sum_alone(spmv_group_matrix *m, spmv_type type, const struct exchange_parts *parts, void *to)
{
    spmv_status st = SPMV_OK;
    void *const own = m->context_parts;
    if (parts->numbers != own)
        TRY(chunk_parts(m, type, parts, own));
    TRY(exchange_fold_cuda(m->ctx, type, &(const struct exchange_gathered){own, NULL, m->ranks.chunks, m->ranks.chunks},
                           parts->sums, to));
done:
    return st;
}

/* With several ranks. */
static spmv_status sum_all(spmv_group_matrix *m, spmv_type type, const struct exchange_parts *parts, void *to)
{
    spmv_status st = SPMV_OK;
    const struct exchange *e = &m->exchange;
    if (e->is_free)
        return e->kind->sum(m, type, parts, to, EXCHANGE_PUBLISH | EXCHANGE_COLLECT);
    const double begin = monotonic_seconds();
    TRY(e->kind->sum(m, type, parts, to, EXCHANGE_PUBLISH));
    TRY(meet(m));
    TRY(e->kind->sum(m, type, parts, to, EXCHANGE_COLLECT));
    TRY(exchange_await(m, NULL));
done:
    m->seconds += monotonic_seconds() - begin;
    return st;
}

spmv_status exchange_sum(void *matrix, spmv_type type, const void *numbers, int sums, int64_t tile_rows, void *to)
{
    spmv_group_matrix *m = matrix;
    const struct exchange_parts parts = {numbers, sums, tile_rows, NULL};
    return m->group->transport.ranks == 1 ? sum_alone(m, type, &parts, to) : sum_all(m, type, &parts, to);
}

spmv_status exchange_step_sums(void *matrix, spmv_type type, const struct plan_step_parts *step, void *sums)
{
    spmv_group_matrix *m = matrix;
    const struct exchange_parts parts = {NULL, EXCHANGE_SUMS, step->tile_rows, step};
    const struct exchange_view own = {.chunk = m->context_chunk, .chunks = m->ranks.chunks};
    if (m->group->transport.ranks == 1)
        return exchange_sum_cuda(m->ctx, type, &own, &parts, sums, EXCHANGE_PUBLISH);
    return sum_all(m, type, &parts, sums);
}

/* ------------------------------------------------------------- kernels that exchange by themselves */

const struct exchange_view *exchange_view_of(const spmv_group_matrix *m)
{
    const struct exchange_kind *kind = m->exchange.kind;
    return kind != NULL && kind->view != NULL && m->group->transport.ranks > 1 ? kind->view(m) : NULL;
}

spmv_status exchange_publish(void *matrix, spmv_type type, const void *numbers, int64_t tile_rows)
{
    spmv_group_matrix *m = matrix;
    return m->exchange.kind->sum(m, type, &(const struct exchange_parts){numbers, 1, tile_rows, NULL}, NULL,
                                 EXCHANGE_PUBLISH);
}

spmv_status exchange_publish_dot(void *matrix, spmv_type type, const void *a, const void *b)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = matrix;
    TRY(group_chunk_dots_cuda(m->ctx, type, m->context_chunk, m->ranks.chunks, 1, a, b, m->context_parts));
    TRY(exchange_publish(m, type, m->context_parts, 0));
done:
    return st;
}

spmv_status exchange_meet(void *matrix)
{
    spmv_group_matrix *m = matrix;
    const double begin = monotonic_seconds();
    const spmv_status st = meet(m);
    m->seconds += monotonic_seconds() - begin;
    return st;
}

spmv_status exchange_take_sent(void *matrix, void *x)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = matrix;
    if (m->all_ghosts == 0)
        return SPMV_OK;
    TRY(exchange_meet(m));
    TRY(m->exchange.kind->take_sent(m, x));
done:
    return st;
}

bool exchange_let_wait(void *matrix, bool free)
{
    spmv_group_matrix *m = matrix;
    bool may = free && m->exchange.may_wait;
    for (const spmv_group_matrix *l = m->levels; l != NULL; l = l->next_level)
        may = may && (l->exchange.kind == NULL || l->exchange.may_wait);
    m->exchange.is_free = may;
    for (spmv_group_matrix *l = m->levels; l != NULL; l = l->next_level)
        l->exchange.is_free = may;
    return may;
}

spmv_status exchange_queued(spmv_group_matrix *m, spmv_status st)
{
    m->exchange.is_free = false;
    if (st == SPMV_OK)
        st = gather_one(m);
    if (st != SPMV_OK)
        (void)abandon(m);
    else if (m->exchange.kind != &exchange_peer || !m->group->transport.common)
        st = exchange_await(m, NULL);
    return st;
}
