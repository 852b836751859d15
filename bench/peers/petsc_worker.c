/* One rank of the peer petsc: y = A x by PETSc's MatMult, commanded over a socket (petsc_shared.h).
 *
 *   petsc_worker FOLDER       under mpiexec: works until it is told to quit, or until the socket's other end is gone
 *   petsc_worker --version    the version of PETSc, and that of MPI, one a line; without mpiexec
 *
 * While it waits for a command it sleeps: MPI's own waiting would spin, and take the cores from whoever is measured in
 * the meantime.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <petscmat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "petsc_shared.h"

#if PETSC_VERSION_LT(3, 19, 0)
#define PETSC_SUCCESS 0
#endif

struct worker {
    int rank, ranks;
    int socket;
    int64_t row_begin, row_end, col_begin, col_end;
    Mat a;
    Vec x, y;
    double *result; /* all of y, shared */
    size_t result_bytes;
};

/* Sends all; the other end gone: ends this process. */
static void send_reply(const struct worker *worker, const struct petsc_reply *reply)
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
    struct petsc_reply reply = {
        .magic = PETSC_MAGIC, .rank = worker->rank, .seconds = seconds, .failed = failure != NULL};
    snprintf(reply.text, sizeof reply.text, "%s", failure != NULL ? failure : "");
    send_reply(worker, &reply);
}

static int receive(int from, struct petsc_command *command)
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

/* The first row of a rank's block: such that rows and entries together are shared out evenly. MatMult reads both; with
 * rows alone, a few long rows would keep one rank busy and all others waiting. */
static int64_t first_row(const struct petsc_problem *problem, const int32_t *row_ptr, int rank, int ranks)
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

/* This rank's rows as PETSc takes them: offsets from 0, in its own integers. */
static PetscErrorCode make_matrix(struct worker *worker, const struct petsc_problem *problem)
{
    const char *base = (const char *)problem;
    const int32_t *row_ptr = (const int32_t *)(base + problem->row_ptr), *col = (const int32_t *)(base + problem->col);
    const double *val = (const double *)(base + problem->val), *x = (const double *)(base + problem->x);
    worker->row_begin = first_row(problem, row_ptr, worker->rank, worker->ranks);
    worker->row_end = first_row(problem, row_ptr, worker->rank + 1, worker->ranks);
    if (problem->rows == problem->cols) {
        /* the same shares of x: the diagonal stays in the block that needs no messages */
        worker->col_begin = worker->row_begin;
        worker->col_end = worker->row_end;
    } else {
        worker->col_begin = problem->cols * worker->rank / worker->ranks;
        worker->col_end = problem->cols * (worker->rank + 1) / worker->ranks;
    }
    const int64_t rows = worker->row_end - worker->row_begin, cols = worker->col_end - worker->col_begin;
    const int32_t first = row_ptr[worker->row_begin], count = row_ptr[worker->row_end] - first;
    PetscInt *offsets = NULL, *columns = NULL;
    PetscFunctionBeginUser;
    PetscCall(PetscMalloc2((size_t)rows + 1, &offsets, (size_t)count, &columns));
    for (int64_t i = 0; i <= rows; i++)
        offsets[i] = row_ptr[worker->row_begin + i] - first;
    for (int32_t k = 0; k < count; k++)
        columns[k] = col[first + k];
    PetscCall(MatCreate(PETSC_COMM_WORLD, &worker->a));
    PetscCall(MatSetSizes(worker->a, (PetscInt)rows, (PetscInt)cols, (PetscInt)problem->rows, (PetscInt)problem->cols));
    PetscCall(MatSetType(worker->a, MATAIJ)); /* MATSEQAIJ on one rank, MATMPIAIJ on several */
    PetscCall(MatSetFromOptions(worker->a));
    PetscCall(MatSeqAIJSetPreallocationCSR(worker->a, offsets, columns,
                                           val + first)); /* that of the other type does nothing */
    PetscCall(MatMPIAIJSetPreallocationCSR(worker->a, offsets, columns, val + first));
    PetscCall(PetscFree2(offsets, columns));
    PetscCall(MatCreateVecs(worker->a, &worker->x, &worker->y));
    PetscScalar *own = NULL;
    PetscCall(VecGetArrayWrite(worker->x, &own));
    if (cols > 0)
        memcpy(own, x + worker->col_begin, (size_t)cols * sizeof *own);
    PetscCall(VecRestoreArrayWrite(worker->x, &own));
    PetscCall(MatMult(worker->a, worker->x, worker->y)); /* what the first product sets up is no part of the second */
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* From the barrier on, so many products and a barrier. */
static PetscErrorCode multiply(struct worker *worker, int repeats, double *seconds)
{
    PetscFunctionBeginUser;
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    const double begin = MPI_Wtime();
    for (int r = 0; r < repeats; r++)
        PetscCall(MatMult(worker->a, worker->x, worker->y));
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    *seconds = MPI_Wtime() - begin;
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode fetch(struct worker *worker)
{
    const PetscScalar *own = NULL;
    PetscFunctionBeginUser;
    PetscCall(VecGetArrayRead(worker->y, &own));
    if (worker->row_end > worker->row_begin)
        memcpy(worker->result + worker->row_begin, own, (size_t)(worker->row_end - worker->row_begin) * sizeof *own);
    PetscCall(VecRestoreArrayRead(worker->y, &own));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's own words on the error that it just gave up with. */
static const char *words(PetscErrorCode error)
{
    const char *text = NULL;
    PetscErrorMessage(error, &text, NULL);
    return text != NULL && *text != '\0' ? text : "an error of PETSc";
}

static int serve(struct worker *worker)
{
    struct petsc_command command;
    while (receive(worker->socket, &command) == 0) {
        PetscErrorCode error = PETSC_SUCCESS;
        double seconds = 0;
        if (command.op == PETSC_MULTIPLY)
            error = multiply(worker, command.repeats, &seconds);
        else if (command.op == PETSC_FETCH)
            error = fetch(worker);
        else
            return command.op == PETSC_QUIT ? 0 : 1;
        tell(worker, seconds, error != PETSC_SUCCESS ? words(error) : NULL);
        if (error != PETSC_SUCCESS)
            return 1;
    }
    return 1;
}

static int work(struct worker *worker, const char *folder)
{
    MPI_Comm_rank(PETSC_COMM_WORLD, &worker->rank);
    MPI_Comm_size(PETSC_COMM_WORLD, &worker->ranks);
    worker->socket = connect_to(folder);
    if (worker->socket < 0)
        return 1;
    size_t bytes = 0;
    struct petsc_problem *problem = map(folder, "problem", PROT_READ, &bytes);
    worker->result = map(folder, "result", PROT_READ | PROT_WRITE, &worker->result_bytes);
    if (problem == NULL || worker->result == NULL || bytes < sizeof *problem || problem->bytes != (int64_t)bytes) {
        tell(worker, 0, "cannot map the shared problem");
        return 1;
    }
    const PetscErrorCode error = make_matrix(worker, problem);
    munmap(problem, bytes);
    tell(worker, 0, error != PETSC_SUCCESS ? words(error) : NULL);
    return error != PETSC_SUCCESS ? 1 : serve(worker);
}

static int print_versions(void)
{
    char petsc[256] = "", mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    PetscInt major = 0, minor = 0, patch = 0;
    int length = 0;
    PetscGetVersionNumber(&major, &minor, &patch, NULL);
    snprintf(petsc, sizeof petsc, "%d.%d.%d", (int)major, (int)minor, (int)patch);
    MPI_Get_library_version(mpi, &length); /* one of the few that may be called before MPI_Init */
    printf("%s\n%.*s\n", petsc, (int)strcspn(mpi, ",\n"), mpi);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: petsc_worker FOLDER | --version\n");
        return 1;
    }
    if (strcmp(argv[1], "--version") == 0)
        return print_versions();
    struct worker worker = {.socket = -1};
    /* argv is not PETSc's: its options come from PETSC_OPTIONS alone. Errors come back as codes, without a trace. */
    if (PetscInitializeNoArguments() != PETSC_SUCCESS ||
        PetscPushErrorHandler(PetscReturnErrorHandler, NULL) != PETSC_SUCCESS)
        return 1;
    const int failed = work(&worker, argv[1]);
    if (failed)
        MPI_Abort(PETSC_COMM_WORLD, 1); /* the others may wait for this one */
    MatDestroy(&worker.a);
    VecDestroy(&worker.x);
    VecDestroy(&worker.y);
    PetscFinalize();
    return 0;
}
