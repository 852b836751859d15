/* Code common to all workers: the connection, the files, the rows of each rank, the barriers around
 * timed runs.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/peers/mpi_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Sends the whole reply. Ends this process if the connection is closed. */
static void send_reply(const struct worker *worker, const struct ranks_reply *reply)
{
    const char *at = (const char *)reply;
    for (size_t left = sizeof *reply; left > 0;) {
        const ssize_t n = send(worker->socket, at, left, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(3);
        at += n;
        left -= (size_t)n;
    }
}

static void tell(const struct worker *worker, double seconds, const char *failure)
{
    struct ranks_reply reply = {.magic = RANKS_MAGIC,
                                .rank = worker->rank,
                                .seconds = seconds,
                                .failed = failure != NULL,
                                .iterations = worker->iterations,
                                .residual = worker->residual,
                                .setup_seconds = worker->setup_seconds};
    snprintf(reply.text, sizeof reply.text, "%s", failure != NULL ? failure : "");
    send_reply(worker, &reply);
}

static int receive(int from, struct ranks_command *command)
{
    char *at = (char *)command;
    for (size_t left = sizeof *command; left > 0;) {
        const ssize_t n = recv(from, at, left, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += n;
        left -= (size_t)n;
    }
    return 0;
}

static int connect_to(const char *folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int n = snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (n < 0 || n >= (int)sizeof address.sun_path || fd < 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        return -1;
    return fd;
}

static void *map(const char *folder, const char *name, int protection, size_t *bytes)
{
    char path[256];
    struct stat status;
    void *memory = MAP_FAILED;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return NULL;
    const int fd = open(path, (protection & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &status) == 0) {
        *bytes = (size_t)status.st_size;
        memory = mmap(NULL, *bytes, protection, MAP_SHARED, fd, 0);
    }
    if (fd >= 0)
        close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

/* The first row of a rank's block. Blocks have the same number of rows + entries, because a product
 * reads both. With equal numbers of rows, a few long rows would delay all ranks. */
static int64_t first_row(const struct ranks_problem *problem, const int32_t *row_ptr, int rank, int ranks)
{
    const int64_t goal =
        (problem->rows + problem->nnz) / ranks * rank + (problem->rows + problem->nnz) % ranks * rank / ranks;
    int64_t low = 0, high = problem->rows;
    while (low < high) {
        const int64_t row = low + (high - low) / 2;
        if (row + row_ptr[row] < goal)
            low = row + 1;
        else
            high = row;
    }
    return rank == ranks ? problem->rows : low;
}

/* Runs repeats times between two barriers. */
static const char *run_timed(struct worker *worker, int repeats, double *seconds)
{
    const char *failure = NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int r = 0; r < repeats && failure == NULL; r++)
        failure = worker_run(worker);
    MPI_Barrier(MPI_COMM_WORLD);
    *seconds = MPI_Wtime() - begin;
    return failure;
}

static int serve(struct worker *worker)
{
    struct ranks_command command;
    while (receive(worker->socket, &command) == 0) {
        const char *failure = NULL;
        double seconds = 0;
        if (command.op == RANKS_RUN)
            failure = run_timed(worker, command.repeats, &seconds);
        else if (command.op == RANKS_FETCH)
            failure = worker_fetch(worker, worker->result + worker->row_begin);
        else
            return command.op == RANKS_QUIT ? 0 : 1;
        tell(worker, seconds, failure);
        if (failure != NULL)
            return 1;
    }
    return 1;
}

int worker_serve(struct worker *worker, const char *folder)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &worker->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &worker->ranks);
    worker->socket = connect_to(folder);
    if (worker->socket < 0)
        return 1;
    size_t bytes = 0, result_bytes = 0;
    struct ranks_problem *problem = map(folder, "problem", PROT_READ, &bytes);
    worker->result = map(folder, "result", PROT_READ | PROT_WRITE, &result_bytes);
    if (problem == NULL || worker->result == NULL || bytes < sizeof *problem || problem->bytes != (int64_t)bytes) {
        tell(worker, 0, "cannot map the shared problem");
        return 1;
    }
    const char *const base = (const char *)problem;
    const int32_t *const row_ptr = (const int32_t *)(base + problem->row_ptr);
    worker->row_begin = first_row(problem, row_ptr, worker->rank, worker->ranks);
    worker->row_end = first_row(problem, row_ptr, worker->rank + 1, worker->ranks);
    if (problem->rows == problem->cols) {
        /* The same partition of x keeps the diagonal in the block that needs no messages. */
        worker->col_begin = worker->row_begin;
        worker->col_end = worker->row_end;
    } else {
        worker->col_begin = problem->cols * worker->rank / worker->ranks;
        worker->col_end = problem->cols * (worker->rank + 1) / worker->ranks;
    }
    const struct share share = {.row_ptr = row_ptr + worker->row_begin,
                                .col = (const int32_t *)(base + problem->col) + row_ptr[worker->row_begin],
                                .val = (const double *)(base + problem->val) + row_ptr[worker->row_begin],
                                .x = (const double *)(base + problem->x) + worker->col_begin};
    const char *const failure = worker_open(worker, problem, &share);
    munmap(problem, bytes);
    tell(worker, 0, failure);
    return failure != NULL ? 1 : serve(worker);
}

const char *worker_choose(struct worker *worker, double rtol, size_t *setting, size_t count)
{
    const char *failure = worker_run(worker); /* the first run is slower */
    size_t best = *setting;
    double best_seconds = -1;
    for (size_t s = 0; s < count && failure == NULL; s++) {
        double seconds = 0;
        *setting = s;
        MPI_Barrier(MPI_COMM_WORLD);
        const double began = MPI_Wtime();
        failure = worker_run(worker);
        const double own = worker->residual <= rtol ? MPI_Wtime() - began : HUGE_VAL;
        MPI_Allreduce(&own, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (best_seconds < 0 || seconds < best_seconds) {
            best = s;
            best_seconds = seconds;
        }
    }
    *setting = best;
    return failure;
}

int worker_versions(const char *library)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(mpi, &length); /* may be called before MPI_Init */
    printf("%s\n%.*s\n", library, (int)strcspn(mpi, ",\n"), mpi);
    return 0;
}
