/* The transport module for an MPI library: data movement only, no reductions, so that MPI never
 * determines the order of a sum.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "distributed/modules/transport_module.h"

/* MPI counts are of type int: larger parcels are sent in several messages. */
enum { MOST_BYTES = 1 << 30 };

static MPI_Comm all_ranks = MPI_COMM_NULL;
static bool own_mpi; /* initialized here */
static int ranks_of_all, own_rank;
static int *counts; /* 2 ranks_of_all: bytes and offsets of a gather */

/* The messages under way, and room for their statuses. */
static MPI_Request *request;
static MPI_Status *status;
static int requests, room;

static int fail(char *why, const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    snprintf(why, TRANSPORT_MODULE_WHY, "%s: %.400s", call, text);
    return 1;
}

#define CALL(call, what)                                                                                               \
    do {                                                                                                               \
        const int code_ = (call);                                                                                      \
        if (code_ != MPI_SUCCESS)                                                                                      \
            return fail(why, what, code_);                                                                             \
    } while (0)

static int open_mpi(int *rank, int *ranks, char *why)
{
    int is_there = 0, has_ended = 0, level = 0;
    CALL(MPI_Initialized(&is_there), "MPI_Initialized");
    CALL(MPI_Finalized(&has_ended), "MPI_Finalized");
    if (has_ended) {
        snprintf(why, TRANSPORT_MODULE_WHY, "MPI has been finalized in this process and cannot start again");
        return 1;
    }
    if (is_there)
        CALL(MPI_Query_thread(&level), "MPI_Query_thread");
    else
        CALL(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
    own_mpi = !is_there;
    if (level < MPI_THREAD_SERIALIZED) {
        snprintf(why, TRANSPORT_MODULE_WHY, "MPI supports calls of one thread only (MPI_THREAD_SERIALIZED is needed)");
        return 1;
    }
    CALL(MPI_Comm_dup(MPI_COMM_WORLD, &all_ranks), "MPI_Comm_dup");
    CALL(MPI_Comm_rank(all_ranks, &own_rank), "MPI_Comm_rank");
    CALL(MPI_Comm_size(all_ranks, &ranks_of_all), "MPI_Comm_size");
    counts = malloc(2 * (size_t)ranks_of_all * sizeof *counts);
    if (counts == NULL) {
        snprintf(why, TRANSPORT_MODULE_WHY, "no memory for the sizes of %d ranks", ranks_of_all);
        return 1;
    }
    *rank = own_rank;
    *ranks = ranks_of_all;
    return 0;
}

/* Waits for all requests. The waits of MPI libraries occupy a core. This one sleeps between polls
 * after a while: other ranks then get the core, and the system resumes a process that slept before
 * those that computed, so that ranks make progress also on a busy machine. */
static int wait_all(int count, MPI_Request *requests_of, MPI_Status *statuses, const char *call, char *why)
{
    enum { POLLS = 2000 };
    static const struct timespec pause = {.tv_nsec = 20000};
    int done = 0;
    for (int64_t i = 0;; i++) {
        CALL(MPI_Testall(count, requests_of, &done, statuses), call);
        if (done)
            return 0;
        if (i >= POLLS)
            nanosleep(&pause, NULL);
    }
}

/* Large contributions, rank by rank. */
static int gather_large(const void *own, void *all, const int64_t *offset, char *why)
{
    char *to = all;
    memcpy(to + offset[own_rank], own, (size_t)(offset[own_rank + 1] - offset[own_rank]));
    for (int r = 0; r < ranks_of_all; r++)
        for (int64_t at = offset[r]; at < offset[r + 1]; at += MOST_BYTES) {
            const int64_t left = offset[r + 1] - at;
            CALL(MPI_Bcast(to + at, (int)(left < MOST_BYTES ? left : MOST_BYTES), MPI_BYTE, r, all_ranks), "MPI_Bcast");
        }
    return 0;
}

static int gather(const void *own, void *all, const int64_t *offset, char *why)
{
    MPI_Request one;
    MPI_Status its;
    if (offset[ranks_of_all] > MOST_BYTES)
        return gather_large(own, all, offset, why);
    for (int r = 0; r < ranks_of_all; r++) {
        counts[r] = (int)(offset[r + 1] - offset[r]);
        counts[ranks_of_all + r] = (int)offset[r];
    }
    CALL(
        MPI_Iallgatherv(own, counts[own_rank], MPI_BYTE, all, counts, counts + ranks_of_all, MPI_BYTE, all_ranks, &one),
        "MPI_Iallgatherv");
    return wait_all(1, &one, &its, "MPI_Iallgatherv", why);
}

/* Room for one more request. */
static MPI_Request *next_request(char *why)
{
    if (requests == room) {
        const int more = room > 0 ? 2 * room : 16;
        MPI_Request *larger = realloc(request, (size_t)more * sizeof *larger);
        request = larger != NULL ? larger : request;
        MPI_Status *statuses = realloc(status, (size_t)more * sizeof *statuses);
        status = statuses != NULL ? statuses : status;
        if (larger == NULL || statuses == NULL) {
            snprintf(why, TRANSPORT_MODULE_WHY, "no memory for %d messages", more);
            return NULL;
        }
        room = more;
    }
    return &request[requests++];
}

static int start_parcel(const struct transport_parcel *parcel, bool receive, char *why)
{
    for (int64_t at = 0; at < parcel->bytes; at += MOST_BYTES) {
        const int64_t left = parcel->bytes - at;
        const int bytes = (int)(left < MOST_BYTES ? left : MOST_BYTES);
        MPI_Request *one = next_request(why);
        if (one == NULL)
            return 1;
        if (receive)
            CALL(MPI_Irecv((char *)parcel->memory + at, bytes, MPI_BYTE, parcel->rank, 0, all_ranks, one), "MPI_Irecv");
        else
            CALL(MPI_Isend((const char *)parcel->memory + at, bytes, MPI_BYTE, parcel->rank, 0, all_ranks, one),
                 "MPI_Isend");
    }
    return 0;
}

static int start(const struct transport_parcel *send, int sends, const struct transport_parcel *receive, int receives,
                 char *why)
{
    int failed = 0;
    for (int i = 0; i < receives && !failed; i++)
        failed = start_parcel(&receive[i], true, why);
    for (int i = 0; i < sends && !failed; i++)
        failed = start_parcel(&send[i], false, why);
    return failed;
}

static int finish(char *why)
{
    const int count = requests;
    requests = 0;
    return count == 0 ? 0 : wait_all(count, request, status, "MPI_Isend, MPI_Irecv", why);
}

/* A look for a message that nobody sends. */
static void progress(void)
{
    int is_there = 0;
    (void)MPI_Iprobe(MPI_ANY_SOURCE, 1, all_ranks, &is_there, MPI_STATUS_IGNORE);
}

static void abort_all(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

static void close_mpi(void)
{
    if (all_ranks != MPI_COMM_NULL)
        MPI_Comm_free(&all_ranks);
    free(request);
    free(status);
    free(counts);
    counts = NULL;
    request = NULL;
    status = NULL;
    requests = room = 0;
    if (own_mpi)
        MPI_Finalize();
    own_mpi = false;
}

const struct transport_module *spmv_transport_module(void)
{
    static const struct transport_module module = {.abi = TRANSPORT_MODULE_ABI,
                                                   .open = open_mpi,
                                                   .gather = gather,
                                                   .start = start,
                                                   .finish = finish,
                                                   .progress = progress,
                                                   .abort = abort_all,
                                                   .close = close_mpi};
    return &module;
}
