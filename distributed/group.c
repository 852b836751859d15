/* Groups of ranks: creation, agreement on failures, and ranks as threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "distributed/group_internal.h"

/* What a rank says in an agreement. */
struct group_word {
    uint64_t what; /* a hash of the words for the message: different in different functions */
    uint64_t numbers;
    int32_t status;
    char text[500];
};

/* ------------------------------------------------------------- handles */

static void release(spmv_group *group)
{
    if (group == NULL)
        return;
    if (group->near != NULL)
        near_close(group);
    if (group->boards != NULL)
        boards_close(group);
    group->transport.close(&group->transport);
    host_free_all(group->offset, group->word, group);
}

/* Makes the handle of one rank, which then owns the transport; without memory, closes it. report: the
 * context that gets the message of a failure. */
static spmv_status make_group(spmv_context *report, spmv_context *ctx, struct transport *transport, spmv_group **group)
{
    const int64_t ranks = transport->ranks;
    spmv_status st = host_alloc(report, sizeof **group, "a group", (void **)group);
    if (st != SPMV_OK) {
        transport->close(transport);
        return st;
    }
    **group = (spmv_group){.ctx = ctx, .transport = *transport};
    st = host_alloc(report, (ranks + 1) * (int64_t)sizeof *(*group)->offset, "a group", (void **)&(*group)->offset);
    if (st == SPMV_OK)
        st = host_alloc(report, ranks * (int64_t)sizeof *(*group)->word, "a group", (void **)&(*group)->word);
    if (st != SPMV_OK) {
        release(*group);
        *group = NULL;
    }
    return st;
}

spmv_status spmv_group_create_threads(spmv_context *const *ctx, int ranks, spmv_group **group)
{
    spmv_status st = SPMV_OK;
    struct transport transport[SPMV_GROUP_MAX_THREADS];
    if (ctx == NULL || group == NULL || ranks < 1 || ctx[0] == NULL)
        return SPMV_ERROR_ARGUMENT;
    for (int r = 0; r < ranks && ranks <= SPMV_GROUP_MAX_THREADS; r++)
        group[r] = NULL;
    if (ranks > SPMV_GROUP_MAX_THREADS)
        return context_fail(ctx[0], SPMV_ERROR_ARGUMENT, "spmv_group_create_threads: %d ranks, at most %d are possible",
                            ranks, SPMV_GROUP_MAX_THREADS);
    for (int r = 0; r < ranks; r++)
        if (ctx[r] == NULL || spmv_context_backend(ctx[r]) != spmv_context_backend(ctx[0]))
            return context_fail(ctx[0], SPMV_ERROR_ARGUMENT, "spmv_group_create_threads: the context of rank %d %s", r,
                                ctx[r] == NULL ? "is NULL" : "has another backend than that of rank 0");
    TRY(transport_threads_open(ctx[0], ranks, transport));
    int made = 0;
    for (; made < ranks && st == SPMV_OK; made++)
        st = make_group(ctx[0], ctx[made], &transport[made], &group[made]);
    for (int r = 0; r < ranks && st != SPMV_OK; r++) {
        if (r >= made)
            transport[r].close(&transport[r]);
        release(group[r]);
        group[r] = NULL;
    }
done:
    return st;
}

spmv_status spmv_group_create_mpi(spmv_context *ctx, spmv_group **group)
{
    spmv_status st = SPMV_OK;
    struct transport transport;
    if (ctx == NULL || group == NULL)
        return context_need(ctx, "spmv_group_create_mpi", "group", group);
    *group = NULL;
    TRY(transport_mpi_open(ctx, &transport));
    TRY(make_group(ctx, ctx, &transport, group));
done:
    return st;
}

void spmv_group_destroy(spmv_group *group)
{
    if (group == NULL)
        return;
    if (group->nccl != NULL)
        exchange_nccl_release(group);
    release(group);
}

int spmv_group_rank(const spmv_group *group)
{
    return group != NULL ? group->transport.rank : 0;
}

int spmv_group_ranks(const spmv_group *group)
{
    return group != NULL ? group->transport.ranks : 0;
}

spmv_context *spmv_group_context(const spmv_group *group)
{
    return group != NULL ? group->ctx : NULL;
}

const char *spmv_group_transport(const spmv_group *group)
{
    return group != NULL ? group->transport.name : "";
}

/* ------------------------------------------------------------- the transport */

static spmv_status transport_result(spmv_group *group, spmv_status st)
{
    return st == SPMV_OK ? SPMV_OK : context_fail(group->ctx, st, "%s", group->transport.why);
}

spmv_status group_gather(spmv_group *group, const void *own, void *all, const int64_t *offset)
{
    return transport_result(group, group->transport.gather(&group->transport, own, all, offset));
}

spmv_status group_start(spmv_group *group, const struct transport_parcel *send, int sends,
                        const struct transport_parcel *receive, int receives)
{
    return transport_result(group, group->transport.start(&group->transport, send, sends, receive, receives));
}

spmv_status group_finish(spmv_group *group)
{
    return transport_result(group, group->transport.finish(&group->transport));
}

spmv_status group_failure(spmv_group *group)
{
    return transport_result(group, group->transport.failure(&group->transport));
}

spmv_status group_gather_equal(spmv_group *group, const void *own, void *all, int64_t bytes)
{
    for (int r = 0; r <= group->transport.ranks; r++)
        group->offset[r] = r * bytes;
    return group_gather(group, own, all, group->offset);
}

spmv_status group_broadcast(spmv_group *group, int from, const void *own, void *all, int64_t bytes)
{
    for (int r = 0; r <= group->transport.ranks; r++)
        group->offset[r] = r <= from ? 0 : bytes;
    return group_gather(group, own, all, group->offset);
}

/* ------------------------------------------------------------- agreement */

uint64_t group_mix(uint64_t numbers, const void *bytes, size_t size)
{
    /* FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo) */
    const unsigned char *byte = bytes;
    if (numbers == 0)
        numbers = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; i++)
        numbers = (numbers ^ byte[i]) * UINT64_C(1099511628211);
    return numbers;
}

spmv_status group_agree_on(spmv_group *group, spmv_status status, const char *what, uint64_t numbers)
{
    spmv_status st = SPMV_OK;
    struct group_word own = {.what = group_mix(0, what, strlen(what)), .numbers = numbers, .status = (int32_t)status};
    const struct group_word *const all = group->word;
    const int ranks = group->transport.ranks;
    char kept[1024];
    snprintf(kept, sizeof kept, "%s", spmv_last_error(group->ctx));
    if (status != SPMV_OK)
        snprintf(own.text, sizeof own.text, "%.499s", kept[0] != '\0' ? kept : spmv_status_text(status));
    TRY(group_gather_equal(group, &own, group->word, sizeof own));
    for (int r = 0; r < ranks; r++)
        group->settled = group->settled || all[r].status != SPMV_OK || all[r].numbers != all[0].numbers ||
                         all[r].what != all[0].what;
    if (status != SPMV_OK) {
        st = context_fail(group->ctx, status, "%s", own.text);
        goto done;
    }
    for (int r = 0; r < ranks && st == SPMV_OK; r++)
        if (all[r].status != SPMV_OK)
            st = context_fail(group->ctx, (spmv_status)all[r].status, "rank %d: %s", r, all[r].text);
    for (int r = 1; r < ranks && st == SPMV_OK; r++)
        if (all[r].what != all[0].what)
            st = context_fail(group->ctx, SPMV_ERROR_ARGUMENT,
                              "rank %d is in another function than rank 0: all ranks must call the same functions in "
                              "the same order",
                              r);
        else if (all[r].numbers != all[0].numbers)
            st = context_fail(group->ctx, SPMV_ERROR_ARGUMENT, "rank %d has %s than rank 0", r, what);
done:
    return st;
}

bool group_all_succeeded(const spmv_group *group)
{
    for (int r = 0; r < group->transport.ranks; r++)
        if (group->word[r].status != SPMV_OK)
            return false;
    return true;
}

spmv_status spmv_group_agree(spmv_group *group, spmv_status status)
{
    return group != NULL ? group_agree_on(group, status, "", 0) : SPMV_ERROR_ARGUMENT;
}

spmv_status spmv_group_agree_on(spmv_group *group, spmv_status status, const char *what, const char *text)
{
    if (group == NULL || what == NULL)
        return context_need(group != NULL ? group->ctx : NULL, "spmv_group_agree_on", "what", what);
    text = text != NULL ? text : "";
    return group_agree_on(group, status, what, group_mix(0, text, strlen(text)));
}

static spmv_status broadcast(spmv_group *group, void *data, int64_t bytes)
{
    spmv_status st = bytes >= 0 ? SPMV_OK
                                : context_fail(group->ctx, SPMV_ERROR_ARGUMENT, "spmv_group_broadcast: bytes is %lld",
                                               (long long)bytes);
    void *all = NULL;
    if (st == SPMV_OK && bytes > 0 && data == NULL)
        st = context_need(group->ctx, "spmv_group_broadcast", "data", data);
    if (st == SPMV_OK)
        st = host_alloc(group->ctx, bytes > 0 ? bytes : 1, "data of rank 0", &all);
    TRY(group_agree_on(group, st, "another number of bytes for spmv_group_broadcast", (uint64_t)bytes));
    TRY(group_broadcast(group, 0, data, all, bytes));
    if (bytes > 0)
        memcpy(data, all, (size_t)bytes);
done:
    host_free(all);
    return st;
}

spmv_status spmv_group_broadcast(spmv_group *group, void *data, int64_t bytes)
{
    if (group == NULL)
        return SPMV_ERROR_ARGUMENT;
    group_begin(group);
    return group_end(group, broadcast(group, data, bytes));
}

void spmv_group_break(spmv_group *group, spmv_status status, const char *message)
{
    char text[TRANSPORT_WHY];
    if (group == NULL || status == SPMV_OK)
        return;
    if (message == NULL || *message == '\0')
        message = spmv_status_text(status);
    if (strncmp(message, "rank ", 5) == 0) /* that of another rank */
        snprintf(text, sizeof text, "%.700s", message);
    else
        snprintf(text, sizeof text, "rank %d: %.700s", group->transport.rank, message);
    if (strcmp(group->transport.name, "mpi") == 0)
        (void)context_event(group->ctx, SPMV_EVENT_WARNING, text, 0, 0);
    group->transport.fail(&group->transport, status, text);
}

void group_begin(spmv_group *group)
{
    group->settled = false;
}

spmv_status group_end(spmv_group *group, spmv_status st)
{
    if (st != SPMV_OK && !group->settled) {
        char why[TRANSPORT_WHY];
        snprintf(why, sizeof why, "%s", spmv_last_error(group->ctx));
        spmv_group_break(group, st, why);
    }
    return st;
}

/* ------------------------------------------------------------- ranks as threads */

struct runner {
    pthread_t thread;
    bool started;
    spmv_context *ctx;
    spmv_group *group;
    spmv_group_fn run;
    void *user;
    spmv_status status;
    char message[1024];
};

static void *run_rank(void *argument)
{
    struct runner *r = argument;
    r->status = r->run(r->group, r->user);
    if (r->status != SPMV_OK) {
        snprintf(r->message, sizeof r->message, "%s", spmv_last_error(r->ctx));
        spmv_group_break(r->group, r->status, r->message);
    }
    return NULL;
}

/* Threads of each rank: the ranks share those that one context would have. */
static spmv_status share_threads(spmv_context_options *o, int ranks)
{
    spmv_context *ctx = NULL;
    const spmv_status st = ranks > 1 ? spmv_context_create(o, &ctx) : SPMV_OK;
    if (ctx != NULL)
        o->threads = spmv_context_threads(ctx) / ranks > 1 ? spmv_context_threads(ctx) / ranks : 1;
    spmv_context_destroy(ctx);
    return st;
}

/* Makes the contexts and the group. message: of a failure. */
static spmv_status open_ranks(struct runner *runner, int ranks, const spmv_group_run_options *run, char *message,
                              size_t size)
{
    spmv_status st = SPMV_OK;
    const spmv_context_options *options = run->context;
    spmv_context_options o;
    spmv_context *ctx[SPMV_GROUP_MAX_THREADS];
    spmv_group *group[SPMV_GROUP_MAX_THREADS];
    spmv_context_options_init(&o, sizeof o);
    if ((options != NULL && !options_read(&o, sizeof o, options)) || o.stream != NULL) {
        snprintf(message, size, "spmv_group_run: options that are not initialized, or with a stream");
        return SPMV_ERROR_ARGUMENT;
    }
    const int first = o.device < 0 ? 0 : o.device;
    if (run->gpus > 0)
        o.device = first + run->gpus - 1; /* the last one exists: all do */
    st = share_threads(&o, ranks);
    for (int r = 0; r < ranks && st == SPMV_OK; r++) {
        if (r > 0)
            o.on_event = NULL;
        if (run->gpus > 0)
            o.device = first + r % run->gpus;
        st = spmv_context_create(&o, &runner[r].ctx);
        ctx[r] = runner[r].ctx;
    }
    if (st != SPMV_OK) {
        snprintf(message, size, "%s", spmv_last_error(NULL));
        return st;
    }
    st = spmv_group_create_threads(ctx, ranks, group);
    for (int r = 0; r < ranks && st == SPMV_OK; r++)
        runner[r].group = group[r];
    snprintf(message, size, "%s", st != SPMV_OK ? spmv_last_error(ctx[0]) : "");
    return st;
}

/* Runs all ranks but the first on threads of their own. */
static spmv_status run_ranks(struct runner *runner, int ranks, char *message, size_t size)
{
    spmv_status st = SPMV_OK;
    for (int r = 1; r < ranks; r++) {
        runner[r].started = pthread_create(&runner[r].thread, NULL, run_rank, &runner[r]) == 0;
        if (!runner[r].started) {
            runner[r].status = SPMV_ERROR_MEMORY;
            snprintf(runner[r].message, sizeof runner[r].message, "rank %d: the system cannot start a thread for it",
                     r);
            spmv_group_break(runner[r].group, runner[r].status, runner[r].message);
        }
    }
    run_rank(&runner[0]);
    for (int r = 0; r < ranks; r++) {
        if (runner[r].started)
            pthread_join(runner[r].thread, NULL);
        if (st == SPMV_OK && runner[r].status != SPMV_OK) {
            st = runner[r].status;
            snprintf(message, size, "%s", runner[r].message);
        }
    }
    return st;
}

void spmv_group_run_options_init(spmv_group_run_options *options, size_t size)
{
    const spmv_group_run_options defaults = {.size = sizeof defaults};
    result_write(options, size, &defaults, sizeof defaults);
}

spmv_status spmv_group_run(int ranks, const spmv_context_options *options, spmv_group_fn run, void *user, char *message,
                           size_t size)
{
    spmv_group_run_options o;
    spmv_group_run_options_init(&o, sizeof o);
    o.context = options;
    return spmv_group_run_with(ranks, &o, run, user, message, size);
}

spmv_status spmv_group_run_with(int ranks, const spmv_group_run_options *options, spmv_group_fn run, void *user,
                                char *message, size_t size)
{
    spmv_status st = SPMV_OK;
    spmv_group_run_options o;
    char unwanted[1];
    struct runner *runner = NULL;
    if (message == NULL || size == 0) {
        message = unwanted;
        size = sizeof unwanted;
    }
    message[0] = '\0';
    if (ranks < 1 || ranks > SPMV_GROUP_MAX_THREADS || run == NULL) {
        snprintf(message, size, "spmv_group_run: %d ranks: from 1 to %d are possible", ranks, SPMV_GROUP_MAX_THREADS);
        return SPMV_ERROR_ARGUMENT;
    }
    spmv_group_run_options_init(&o, sizeof o);
    if ((options != NULL && !options_read(&o, sizeof o, options)) || o.gpus < 0 || o.gpus > ranks) {
        snprintf(message, size, "spmv_group_run_with: options that are not initialized, or %d GPUs for %d ranks",
                 o.gpus, ranks);
        return SPMV_ERROR_ARGUMENT;
    }
    TRY(host_alloc(NULL, ranks * (int64_t)sizeof *runner, "a group", (void **)&runner));
    memset(runner, 0, (size_t)ranks * sizeof *runner);
    for (int r = 0; r < ranks; r++) {
        runner[r].run = run;
        runner[r].user = user;
    }
    TRY(open_ranks(runner, ranks, &o, message, size));
    TRY(run_ranks(runner, ranks, message, size));
done:
    for (int r = 0; r < ranks && runner != NULL; r++) {
        spmv_group_destroy(runner[r].group);
        spmv_context_destroy(runner[r].ctx);
    }
    host_free(runner);
    return st;
}
