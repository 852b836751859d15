/* The transport "threads": ranks are threads of one process, which copy from each other's memory.
 *
 * Each rank has counters that only it increases. A rank that needs something of another one waits
 * until the counter of that rank has reached a number. A waiting thread polls for some microseconds
 * and then sleeps.
 *
 * After a failure a rank returns to its caller, which frees what the rank has offered, although others
 * may still want it. So a reader registers, and a rank that returns because of a failure first
 * withdraws its offer and waits for its readers. From then on it shows nothing: its later calls fail
 * at once. Otherwise a rank that is slower could take what this one shows in a later call for that of
 * the call in which the slower one still is.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "distributed/transport.h"

/* Contributions of up to SMALL bytes a rank are copied into the board, so that a gather needs one
 * wait instead of two: 1024 parts of two sums fit. */
enum { SMALL = 16384 };

/* The number of polls before a thread sleeps: about 10 us. */
enum { POLLS = 500 };

/* What one rank shows the others. */
struct place {
    _Alignas(64) atomic_llong gathered; /* twice the number of gathers: odd: own is valid */
    atomic_llong sent;                  /* the number of exchanges that have begun */
    atomic_llong taken;                 /* the number of exchanges whose parcels were copied */
    atomic_int readers;                 /* ranks that read what own and send point to */
    atomic_bool withdrawn;              /* these must not be read any more, and no counter increases */
    const void *own;                    /* of a gather of large contributions */
    const struct transport_parcel *send;
    int sends;
    char copy[2][SMALL]; /* of gathers with an even and an odd number */
};

struct board {
    int ranks;
    atomic_int users;
    atomic_int failed; /* an spmv_status */
    char why[TRANSPORT_WHY];
    atomic_int sleepers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct place *place;
    struct transport_kept *kept; /* until the last rank has closed */
};

/* The state of one rank. */
struct thread_rank {
    struct board *board;
    long long gathers, exchanges;
    const struct transport_parcel *receive;
    int receives;
};

static void wake(struct board *board)
{
    if (atomic_load(&board->sleepers) > 0) {
        pthread_mutex_lock(&board->lock); /* after this, no thread is between its check and its sleep */
        pthread_mutex_unlock(&board->lock);
        pthread_cond_broadcast(&board->changed);
    }
}

static void post(struct board *board, atomic_llong *counter, long long value)
{
    atomic_store(counter, value);
    wake(board);
}

static bool is_reached(struct board *board, atomic_llong *counter, long long value)
{
    return atomic_load(counter) >= value || atomic_load(&board->failed) != SPMV_OK;
}

/* The status and the message of the failure that broke the group. */
static spmv_status failure_of(struct transport *t)
{
    struct board *board = ((struct thread_rank *)t->self)->board;
    pthread_mutex_lock(&board->lock);
    snprintf(t->why, sizeof t->why, "%s", board->why);
    pthread_mutex_unlock(&board->lock);
    return (spmv_status)atomic_load(&board->failed);
}

/* Waits until the counter reaches the value. What was reached before a failure still counts. */
static spmv_status wait_for(struct transport *t, atomic_llong *counter, long long value)
{
    struct board *board = ((struct thread_rank *)t->self)->board;
    for (int i = 0; i < POLLS && !is_reached(board, counter, value); i++) {
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
    }
    if (!is_reached(board, counter, value)) {
        pthread_mutex_lock(&board->lock);
        atomic_fetch_add(&board->sleepers, 1);
        while (!is_reached(board, counter, value))
            pthread_cond_wait(&board->changed, &board->lock);
        atomic_fetch_sub(&board->sleepers, 1);
        pthread_mutex_unlock(&board->lock);
    }
    return atomic_load(counter) >= value ? SPMV_OK : failure_of(t);
}

/* Registers as a reader of what a rank offers. False: it is withdrawn. The operations have one order
 * for all threads (sequential consistency), so either the reader sees `withdrawn` or the owner sees
 * the reader. */
static bool begin_to_read(struct place *from)
{
    atomic_fetch_add(&from->readers, 1);
    if (!atomic_load(&from->withdrawn))
        return true;
    atomic_fetch_sub(&from->readers, 1);
    return false;
}

static void end_reading(struct place *from)
{
    atomic_fetch_sub(&from->readers, 1);
}

/* Before this rank returns because of a failure. */
static void withdraw(struct transport *t)
{
    struct place *mine = &((struct thread_rank *)t->self)->board->place[t->rank];
    atomic_store(&mine->withdrawn, true);
    while (atomic_load(&mine->readers) > 0)
        sched_yield();
}

/* After a failure of this rank's calls, that failure. */
static spmv_status check_takes_part(struct transport *t)
{
    const struct place *mine = &((struct thread_rank *)t->self)->board->place[t->rank];
    return atomic_load(&mine->withdrawn) ? failure_of(t) : SPMV_OK;
}

static spmv_status wait_for_gather(struct transport *t, long long value)
{
    spmv_status st = SPMV_OK;
    struct board *board = ((struct thread_rank *)t->self)->board;
    for (int r = 0; r < t->ranks && st == SPMV_OK; r++)
        st = wait_for(t, &board->place[r].gathered, value);
    return st;
}

static spmv_status gather(struct transport *t, const void *own, void *all, const int64_t *offset)
{
    spmv_status st = SPMV_OK;
    struct thread_rank *self = t->self;
    struct board *board = self->board;
    struct place *mine = &board->place[t->rank];
    bool small = true;
    TRY(check_takes_part(t));
    const long long number = ++self->gathers;
    for (int r = 0; r < t->ranks; r++)
        small = small && offset[r + 1] - offset[r] <= SMALL;
    mine->own = own;
    const size_t bytes = (size_t)(offset[t->rank + 1] - offset[t->rank]);
    if (small && bytes > 0)
        memcpy(mine->copy[number % 2], own, bytes);
    /* A rank that is here again with the same copy has seen all ranks in the gather between, so
     * they have read it. */
    post(board, &mine->gathered, small ? 2 * number : 2 * number - 1);
    TRY(wait_for_gather(t, small ? 2 * number : 2 * number - 1));
    for (int r = 0; r < t->ranks; r++) {
        const size_t its = (size_t)(offset[r + 1] - offset[r]);
        struct place *from = &board->place[r];
        if (its == 0)
            continue;
        if (small) {
            memcpy((char *)all + offset[r], from->copy[number % 2], its);
            continue;
        }
        TRY(begin_to_read(from) ? SPMV_OK : failure_of(t));
        memcpy((char *)all + offset[r], from->own, its);
        end_reading(from);
    }
    if (!small) {
        post(board, &mine->gathered, 2 * number);
        TRY(wait_for_gather(t, 2 * number));
    }
done:
    if (st != SPMV_OK)
        withdraw(t);
    return st;
}

static spmv_status start(struct transport *t, const struct transport_parcel *send, int sends,
                         const struct transport_parcel *receive, int receives)
{
    struct thread_rank *self = t->self;
    struct place *mine = &self->board->place[t->rank];
    const spmv_status st = check_takes_part(t);
    if (st != SPMV_OK)
        return st;
    self->receive = receive;
    self->receives = receives;
    mine->send = send;
    mine->sends = sends;
    post(self->board, &mine->sent, ++self->exchanges);
    return SPMV_OK;
}

/* Copies the parcel that this rank gets from another one. */
static void take(const struct transport *t, const struct place *from, const struct transport_parcel *receive)
{
    for (int i = 0; i < from->sends; i++)
        if (from->send[i].rank == t->rank && receive->bytes > 0)
            memcpy(receive->memory, from->send[i].memory, (size_t)receive->bytes);
}

static spmv_status finish(struct transport *t)
{
    spmv_status st = SPMV_OK;
    struct thread_rank *self = t->self;
    struct board *board = self->board;
    struct place *mine = &board->place[t->rank];
    TRY(check_takes_part(t));
    for (int i = 0; i < self->receives; i++) {
        struct place *from = &board->place[self->receive[i].rank];
        TRY(wait_for(t, &from->sent, self->exchanges));
        TRY(begin_to_read(from) ? SPMV_OK : failure_of(t));
        take(t, from, &self->receive[i]);
        end_reading(from);
    }
    post(board, &mine->taken, self->exchanges);
    for (int i = 0; i < mine->sends; i++)
        TRY(wait_for(t, &board->place[mine->send[i].rank].taken, self->exchanges));
done:
    if (st != SPMV_OK)
        withdraw(t);
    return st;
}

static void fail(struct transport *t, spmv_status status, const char *why)
{
    struct board *board = ((struct thread_rank *)t->self)->board;
    pthread_mutex_lock(&board->lock);
    if (atomic_load(&board->failed) == SPMV_OK) { /* the first failure is the cause */
        snprintf(board->why, sizeof board->why, "%s", why);
        atomic_store(&board->failed, (int)status);
    }
    pthread_mutex_unlock(&board->lock);
    pthread_cond_broadcast(&board->changed);
    withdraw(t);
}

static spmv_status failure(struct transport *t)
{
    struct board *board = ((struct thread_rank *)t->self)->board;
    return atomic_load(&board->failed) != SPMV_OK ? failure_of(t) : SPMV_OK;
}

static void retain(struct transport *t, void (*release)(void *memory), void *memory)
{
    struct board *board = ((struct thread_rank *)t->self)->board;
    pthread_mutex_lock(&board->lock);
    transport_keep(&board->kept, release, memory);
    pthread_mutex_unlock(&board->lock);
}

static void close_board(struct board *board)
{
    transport_release_kept(board->kept);
    pthread_mutex_destroy(&board->lock);
    pthread_cond_destroy(&board->changed);
    host_free(board->place);
    host_free(board);
}

static void close_rank(struct transport *t)
{
    struct thread_rank *self = t->self;
    if (self == NULL)
        return;
    if (atomic_fetch_sub(&self->board->users, 1) == 1)
        close_board(self->board);
    host_free(self);
    t->self = NULL;
}

spmv_status transport_threads_open(spmv_context *ctx, int ranks, struct transport *transport)
{
    spmv_status st = SPMV_OK;
    struct board *board = NULL;
    int opened = 0;
    TRY(host_alloc(ctx, sizeof *board, "a group", (void **)&board));
    *board = (struct board){.ranks = ranks, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    TRY(host_alloc(ctx, ranks * (int64_t)sizeof *board->place, "a group", (void **)&board->place));
    memset(board->place, 0, (size_t)ranks * sizeof *board->place);
    atomic_store(&board->users, ranks);
    for (; opened < ranks; opened++) {
        struct thread_rank *self = NULL;
        TRY(host_alloc(ctx, sizeof *self, "a group", (void **)&self));
        *self = (struct thread_rank){.board = board};
        transport[opened] = (struct transport){.name = "threads",
                                               .rank = opened,
                                               .ranks = ranks,
                                               .common = true,
                                               .self = self,
                                               .gather = gather,
                                               .start = start,
                                               .finish = finish,
                                               .fail = fail,
                                               .failure = failure,
                                               .retain = retain,
                                               .close = close_rank};
    }
done:
    if (st != SPMV_OK) {
        for (int r = 0; r < opened; r++)
            host_free(transport[r].self);
        if (board != NULL)
            close_board(board);
    }
    return st;
}
