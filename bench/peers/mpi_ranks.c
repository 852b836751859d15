/* One MPI rank per core, for a library that uses MPI.
 *
 * The benchmark itself does not use MPI. The ranks are separate processes: a worker program beside
 * the module, started by mpiexec. The matrix and x are passed in files in memory, and y is returned
 * in the same way. Commands and replies use a socket (mpi_shared.h). The ranks measure the time:
 * run_timed returns the time of the slowest rank between two barriers.
 *
 * All waiting is bounded: a worker that dies closes its connection, a worker that hangs reaches a
 * deadline (environment variable ranks_kind.timeout, default 300 seconds), and close ends the
 * launcher and all remaining workers. Only the child of this process is waited for, by its process
 * number, so the caller may handle SIGCHLD in any way.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/peers/mpi_ranks.h"
#include "bench/peers/mpi_shared.h"
#include "bench/timing.h"

enum { FOLDER_SIZE = 80, PATH_SIZE = 4096, MOST_RANKS = 4096 };
static const double TIMEOUT = 300, QUIT_SECONDS = 10, KILL_SECONDS = 2, VERSION_SECONDS = 30;

extern char **environ;

struct rank {
    int socket; /* -1: not connected */
    pid_t pid;
    struct ranks_reply reply;
    size_t got; /* bytes received */
};

struct ranks {
    const struct peer_problem *problem;
    enum peer_op op;          /* what the ranks do: that of the problem, or PEER_CG_PRECOND for PEER_CG */
    char folder[FOLDER_SIZE]; /* "" after removal */
    int listener, log;        /* -1: none; log: output of the launcher and the workers */
    pid_t launcher;           /* 0: none, or ended */
    struct rank *all;
    double *result;
    size_t result_bytes;
    double timeout, run_seconds; /* of the last timed run */
    int broken;
};

static char worker_path[PATH_SIZE], mpi_name[128];

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

__attribute__((format(printf, 3, 4))) static int fail(char *why, size_t why_size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, why_size, format, arguments);
    va_end(arguments);
    return -1;
}

/* ------------------------------------------------------------------ processes */

/* Starts a program in its own process group, with default signals, without input, and with output
 * to a file descriptor. It gets one OpenMP thread, because each rank has one core. */
static int start(char *const *argv, int output, pid_t *pid)
{
    size_t n = 0;
    while (environ[n] != NULL)
        n++;
    char **environment = malloc((n + 2) * sizeof *environment);
    if (environment == NULL)
        return ENOMEM;
    size_t to = 0;
    for (size_t e = 0; e < n; e++)
        if (strncmp(environ[e], "OMP_", 4) != 0)
            environment[to++] = environ[e];
    static char one_thread[] = "OMP_NUM_THREADS=1";
    environment[to++] = one_thread;
    environment[to] = NULL;

    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    static const int signals[] = {SIGCHLD, SIGPIPE, SIGINT, SIGTERM, SIGHUP};
    for (size_t s = 0; s < sizeof signals / sizeof signals[0]; s++)
        sigaddset(&usual, signals[s]);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    int error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, output, 2);
    if (error == 0)
        error = posix_spawnp(pid, argv[0], &actions, &attributes, argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(environment);
    return error;
}

/* Whether the child has ended, now or earlier (if the caller ignores SIGCHLD). */
static int has_ended(pid_t pid)
{
    int status = 0;
    const pid_t got = waitpid(pid, &status, WNOHANG);
    return got == pid || (got < 0 && errno == ECHILD);
}

static int ends_within(pid_t pid, double seconds)
{
    for (const double deadline = monotonic_seconds() + seconds;;) {
        if (has_ended(pid))
            return 1;
        if (monotonic_seconds() > deadline)
            return 0;
        nap();
    }
}

/* A worker exists as long as its connection is open, so its process number cannot belong to another
 * process. */
static int is_there(const struct rank *rank)
{
    struct pollfd poll_fd = {.fd = rank->socket, .events = 0};
    return rank->socket >= 0 && rank->pid > 0 && poll(&poll_fd, 1, 0) >= 0 &&
           (poll_fd.revents & (POLLHUP | POLLERR)) == 0;
}

/* Ends all processes. Workers that received the quit command get patience seconds to end. */
static void end_processes(struct ranks *ranks, double patience)
{
    const pid_t launcher = ranks->launcher;
    int ended = launcher <= 0 || ends_within(launcher, patience);
    if (!ended) {
        kill(launcher, SIGTERM);
        ended = ends_within(launcher, KILL_SECONDS);
    }
    for (int r = 0; r < ranks->problem->threads; r++)
        if (is_there(&ranks->all[r]))
            kill(ranks->all[r].pid, SIGKILL);
    if (!ended) {
        /* its process group; the launcher was not waited for, so its number is still valid */
        kill(-launcher, SIGKILL);
        while (!has_ended(launcher))
            nap();
    }
    ranks->launcher = 0;
    ranks->broken = 1;
}

/* ---------------------------------------------------------------------- files */

static void remove_file(const struct ranks *ranks, const char *name)
{
    char path[FOLDER_SIZE + 16];
    snprintf(path, sizeof path, "%s/%s", ranks->folder, name);
    unlink(path);
}

/* Removes all names as soon as the workers have opened the files, so that nothing is left if this
 * process is killed. */
static void remove_folder(struct ranks *ranks)
{
    if (ranks->folder[0] == '\0')
        return;
    remove_file(ranks, "problem");
    remove_file(ranks, "result");
    remove_file(ranks, "socket");
    remove_file(ranks, "log");
    rmdir(ranks->folder);
    ranks->folder[0] = '\0';
}

/* Makes a folder, in memory if possible, with access only for this user. */
static int make_folder(struct ranks *ranks, char *why, size_t why_size)
{
    const char *places[] = {"/dev/shm", getenv("TMPDIR"), "/tmp"};
    for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
        if (places[p] == NULL || snprintf(ranks->folder, FOLDER_SIZE, "%s/spmv-ranks-XXXXXX", places[p]) >= FOLDER_SIZE)
            continue;
        if (mkdtemp(ranks->folder) != NULL)
            return 0;
    }
    ranks->folder[0] = '\0';
    return fail(why, why_size, "cannot make a folder in /dev/shm or /tmp: %s", strerror(errno));
}

/* Makes a file of this many bytes and allocates them, so that a full disk is an error here and not
 * a SIGBUS later. memory not NULL: maps it. */
static int make_file(const struct ranks *ranks, const char *name, size_t bytes, void **memory, char *why,
                     size_t why_size)
{
    char path[FOLDER_SIZE + 16];
    snprintf(path, sizeof path, "%s/%s", ranks->folder, name);
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail(why, why_size, "%s: cannot create: %s", path, strerror(errno));
    if (memory == NULL)
        return fd;
    const int error = posix_fallocate(fd, 0, (off_t)bytes);
    *memory = error != 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int reason = error != 0 ? error : errno;
    close(fd);
    if (*memory != MAP_FAILED)
        return 0;
    *memory = NULL;
    return fail(why, why_size, "%s: no room for %zu bytes: %s", path, bytes, strerror(reason));
}

static int share_problem(const struct ranks *ranks, char *why, size_t why_size)
{
    const struct peer_problem *p = ranks->problem;
    const void *const vector = p->solved != NULL ? p->b : p->x;
    struct ranks_problem head = {.rows = p->rows,
                                 .cols = p->cols,
                                 .nnz = p->nnz,
                                 .max_iterations = p->max_iterations,
                                 .rtol = p->rtol,
                                 .op = (int32_t)ranks->op};
    const int64_t i32 = (int64_t)sizeof(int32_t), f64 = (int64_t)sizeof(double);
    head.row_ptr = ranks_aligned((int64_t)sizeof head);
    head.x = ranks_aligned(head.row_ptr + (p->rows + 1) * i32);
    head.val = ranks_aligned(head.x + p->cols * f64);
    head.col = ranks_aligned(head.val + p->nnz * f64);
    head.bytes = ranks_aligned(head.col + p->nnz * i32);
    void *memory = NULL;
    if (make_file(ranks, "problem", (size_t)head.bytes, &memory, why, why_size) != 0)
        return -1;
    char *base = memory;
    memcpy(base, &head, sizeof head);
    memcpy(base + head.row_ptr, p->row_ptr, (size_t)((p->rows + 1) * i32));
    if (p->cols > 0)
        memcpy(base + head.x, vector, (size_t)(p->cols * f64));
    if (p->nnz > 0) {
        memcpy(base + head.val, p->val, (size_t)(p->nnz * f64));
        memcpy(base + head.col, p->col, (size_t)(p->nnz * i32));
    }
    munmap(memory, (size_t)head.bytes);
    return 0;
}

static int listen_in_folder(struct ranks *ranks, char *why, size_t why_size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", ranks->folder);
    ranks->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (ranks->listener < 0 || bind(ranks->listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(ranks->listener, ranks->problem->threads) != 0)
        return fail(why, why_size, "%s: cannot listen: %s", address.sun_path, strerror(errno));
    return 0;
}

/* The first line of output that contains a word; mpiexec puts lines of dashes around its
 * messages. */
static void first_words(int log, char *line, size_t size)
{
    char text[2048];
    const ssize_t n = pread(log, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    snprintf(line, size, "no output");
    for (char *at = strtok(text, "\n"); at != NULL; at = strtok(NULL, "\n"))
        if (at[0] != '-' && strlen(at) > 3) {
            snprintf(line, size, "%s", at);
            return;
        }
}

/* ------------------------------------------------------------------- messages */

static int send_all(struct ranks *ranks, enum ranks_command_op op, int repeats)
{
    const struct ranks_command command = {.op = op, .repeats = repeats};
    for (int r = 0; r < ranks->problem->threads; r++) {
        ranks->all[r].got = 0;
        /* a few bytes into an empty buffer are sent completely or not at all */
        if (ranks->all[r].socket < 0 ||
            send(ranks->all[r].socket, &command, sizeof command, MSG_NOSIGNAL) != (ssize_t)sizeof command)
            return -1;
    }
    return 0;
}

/* Receives one reply from each rank, in any order. *seconds: the longest time of a rank. */
static int receive_all(struct ranks *ranks, double timeout, double *seconds, char *why, size_t why_size)
{
    const int count = ranks->problem->threads;
    struct pollfd *polls = malloc((size_t)count * sizeof *polls);
    if (polls == NULL)
        return fail(why, why_size, "out of memory");
    const double deadline = monotonic_seconds() + timeout;
    int waiting = count, result = 0;
    while (waiting > 0 && result == 0) {
        for (int r = 0; r < count; r++)
            polls[r] = (struct pollfd){.fd = ranks->all[r].got < sizeof ranks->all[r].reply ? ranks->all[r].socket : -1,
                                       .events = POLLIN};
        const double left = deadline - monotonic_seconds();
        const int ready = left <= 0 ? 0 : poll(polls, (nfds_t)count, left < 1000 ? (int)(left * 1000) + 1 : 1000000);
        if (ready == 0)
            result = fail(why, why_size, "the %s workers did not answer within %g s", ranks_kind.name, timeout);
        if (ready < 0 && errno != EINTR)
            result = fail(why, why_size, "cannot wait for the %s workers: %s", ranks_kind.name, strerror(errno));
        for (int r = 0; r < count && ready > 0 && result == 0; r++) {
            struct rank *rank = &ranks->all[r];
            if (polls[r].fd < 0 || polls[r].revents == 0)
                continue;
            const ssize_t n = recv(rank->socket, (char *)&rank->reply + rank->got, sizeof rank->reply - rank->got, 0);
            if (n < 0 && (errno == EINTR || errno == EAGAIN))
                continue;
            if (n <= 0) {
                result =
                    fail(why, why_size, "a %s worker (process %d) ended unexpectedly", ranks_kind.name, (int)rank->pid);
                break;
            }
            rank->got += (size_t)n;
            waiting -= rank->got == sizeof rank->reply;
        }
    }
    free(polls);
    *seconds = 0;
    for (int r = 0; r < count && result == 0; r++) {
        const struct ranks_reply *reply = &ranks->all[r].reply;
        if (reply->magic != RANKS_MAGIC)
            result = fail(why, why_size, "the %s workers belong to another build", ranks_kind.name);
        else if (reply->failed)
            result =
                fail(why, why_size, "%s, rank %d: %.*s", ranks_kind.name, (int)reply->rank, RANKS_TEXT, reply->text);
        else if (reply->seconds > *seconds)
            *seconds = reply->seconds;
    }
    return result;
}

static int command_all(struct ranks *ranks, enum ranks_command_op op, int repeats, double *seconds)
{
    char why[256];
    /* The timeout grows with the expected length: four times the estimate from the last run. */
    const double timeout = ranks->timeout + 4 * repeats * ranks->run_seconds;
    if (ranks->broken)
        return -1;
    if (send_all(ranks, op, repeats) == 0 && receive_all(ranks, timeout, seconds, why, sizeof why) == 0)
        return 0;
    end_processes(ranks, 0);
    return -1;
}

/* --------------------------------------------------------------- opening, closing */

static void close_sockets(struct ranks *ranks)
{
    for (int r = 0; r < ranks->problem->threads; r++) {
        if (ranks->all[r].socket >= 0)
            close(ranks->all[r].socket);
        ranks->all[r].socket = -1;
    }
}

/* Starts mpiexec and waits until all ranks have connected. bound: each rank on a core of its own.
 * mpiexec refuses this if there are too few cores or binding is not permitted. */
static int launch(struct ranks *ranks, int bound, char *why, size_t why_size)
{
    char count[16], program[] = PEER_MPIEXEC;
    snprintf(count, sizeof count, "%d", ranks->problem->threads);
    static char plain[] = "mpiexec", n[] = "-n", as_root[] = "--allow-run-as-root", over[] = "--oversubscribe",
                bind_long[] = "--bind-to", bind_short[] = "-bind-to", core[] = "core", none[] = "none";
    char *argv[16];
    int a = 0;
    argv[a++] = access(program, X_OK) == 0 ? program : plain;
    argv[a++] = n;
    argv[a++] = count;
    if (strncmp(mpi_name, "Open MPI", 8) == 0) {
        if (geteuid() == 0)
            argv[a++] = as_root;
        argv[a++] = over; /* the user may request more ranks than slots */
        argv[a++] = bind_long;
        argv[a++] = bound ? core : none;
    } else if (bound) {
        argv[a++] = bind_short; /* MPICH */
        argv[a++] = core;
    }
    argv[a++] = worker_path;
    argv[a++] = ranks->folder;
    argv[a] = NULL;

    if (ftruncate(ranks->log, 0) != 0)
        return fail(why, why_size, "cannot empty the log: %s", strerror(errno));
    const int error = start(argv, ranks->log, &ranks->launcher);
    if (error != 0) {
        ranks->launcher = 0;
        return fail(why, why_size, "cannot start %s: %s", argv[0], strerror(error));
    }
    ranks->broken = 0;
    const double deadline = monotonic_seconds() + ranks->timeout;
    for (int r = 0; r < ranks->problem->threads;) {
        struct pollfd poll_fd = {.fd = ranks->listener, .events = POLLIN};
        if (poll(&poll_fd, 1, 50) > 0) {
            struct rank *rank = &ranks->all[r];
            rank->socket = accept4(ranks->listener, NULL, NULL, SOCK_CLOEXEC);
            struct ucred other = {.pid = 0};
            socklen_t size = sizeof other;
            if (rank->socket >= 0 && getsockopt(rank->socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0) {
                rank->pid = other.pid;
                rank->got = 0;
                r++;
            }
        }
        const int ended = has_ended(ranks->launcher);
        if (ended || monotonic_seconds() > deadline) {
            char words[200];
            first_words(ranks->log, words, sizeof words);
            if (ended)
                ranks->launcher = 0;
            return fail(why, why_size, "%s %s with %d of %d workers started: %s", argv[0],
                        ended ? "ended" : "still waits", r, ranks->problem->threads, words);
        }
    }
    return 0;
}

void ranks_close(void *state)
{
    struct ranks *ranks = state;
    if (ranks->launcher > 0) {
        const int told = !ranks->broken && send_all(ranks, RANKS_QUIT, 0) == 0;
        end_processes(ranks, told ? QUIT_SECONDS : 0);
    }
    if (ranks->all != NULL)
        close_sockets(ranks);
    if (ranks->listener >= 0)
        close(ranks->listener);
    if (ranks->log >= 0)
        close(ranks->log);
    remove_folder(ranks);
    if (ranks->result != NULL)
        munmap(ranks->result, ranks->result_bytes);
    free(ranks->all);
    free(ranks);
}

static int fill(struct ranks *ranks, char *why, size_t why_size)
{
    const struct peer_problem *problem = ranks->problem;
    void *result = NULL;
    ranks->result_bytes = problem->rows > 0 ? (size_t)problem->rows * sizeof(double) : 1;
    if (make_folder(ranks, why, why_size) != 0 ||
        make_file(ranks, "result", ranks->result_bytes, &result, why, why_size) != 0)
        return -1;
    ranks->result = result;
    ranks->log = make_file(ranks, "log", 0, NULL, why, why_size);
    if (ranks->log < 0 || listen_in_folder(ranks, why, why_size) != 0 || share_problem(ranks, why, why_size) != 0)
        return -1;
    /* mpiexec takes half a second to refuse more ranks than cores */
    for (int bound = problem->threads <= sysconf(_SC_NPROCESSORS_ONLN); launch(ranks, bound, why, why_size) != 0;
         bound = 0) {
        end_processes(ranks, 0);
        close_sockets(ranks);
        if (!bound)
            return -1;
    }
    double seconds = 0;
    if (receive_all(ranks, ranks->timeout, &seconds, why, why_size) != 0) {
        end_processes(ranks, 0);
        return -1;
    }
    remove_folder(ranks);
    return 0;
}

static int open_for(enum peer_op op, const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    if (problem->type != SPMV_F64)
        return fail(why, why_size, "this %s supports only f64", ranks_kind.name);
    if (problem->rows > INT32_MAX - 1 || problem->cols > INT32_MAX - 1)
        return fail(why, why_size, "%s: %lld x %lld exceeds its 32-bit indices", ranks_kind.name,
                    (long long)problem->rows, (long long)problem->cols);
    if (problem->threads > MOST_RANKS)
        return fail(why, why_size, "%s: %d ranks are more than the %d that this module starts", ranks_kind.name,
                    problem->threads, MOST_RANKS);
    struct ranks *ranks = calloc(1, sizeof *ranks);
    if (ranks == NULL)
        return fail(why, why_size, "out of memory");
    const char *timeout = getenv(ranks_kind.timeout);
    ranks->problem = problem;
    ranks->op = op;
    ranks->listener = ranks->log = -1;
    ranks->timeout = timeout != NULL && atof(timeout) > 0 ? atof(timeout) : TIMEOUT;
    ranks->all = calloc((size_t)problem->threads, sizeof *ranks->all);
    if (ranks->all == NULL) {
        ranks_close(ranks);
        return fail(why, why_size, "out of memory");
    }
    for (int r = 0; r < problem->threads; r++)
        ranks->all[r].socket = -1;
    if (fill(ranks, why, why_size) != 0) {
        ranks_close(ranks);
        return -1;
    }
    *state = ranks;
    return 0;
}

int ranks_open(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    return open_for(problem->op, problem, state, why, why_size);
}

int ranks_open_precond(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    return open_for(PEER_CG_PRECOND, problem, state, why, why_size);
}

int ranks_run_timed(void *state, int repeats, double *seconds)
{
    struct ranks *ranks = state;
    if (repeats < 1 || command_all(ranks, RANKS_RUN, repeats, seconds) != 0)
        return -1;
    ranks->run_seconds = *seconds / repeats;
    const struct ranks_reply *const reply = &ranks->all[0].reply; /* all ranks have the same values */
    if (ranks->problem->solved != NULL)
        *ranks->problem->solved = (struct peer_solved){
            .iterations = reply->iterations, .residual = reply->residual, .setup_seconds = reply->setup_seconds};
    return 0;
}

int ranks_run(void *state)
{
    double seconds = 0;
    return ranks_run_timed(state, 1, &seconds);
}

int ranks_fetch(void *state)
{
    struct ranks *ranks = state;
    double seconds = 0;
    if (command_all(ranks, RANKS_FETCH, 1, &seconds) != 0)
        return -1;
    if (ranks->problem->rows > 0)
        memcpy(ranks->problem->y, ranks->result, (size_t)ranks->problem->rows * sizeof(double));
    return 0;
}

/* ------------------------------------------------------------------ the module */

/* Gets the versions of its library and of MPI from the worker beside this module. */
static int ask_versions(char *text, size_t size)
{
    Dl_info info;
    void *here = NULL;
    const struct peer_module *(*self)(void) = spmv_peer_module;
    memcpy(&here, &self, sizeof here);
    char path[PATH_SIZE];
    if (dladdr(here, &info) == 0 || realpath(info.dli_fname, path) == NULL)
        return -1;
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return -1;
    *slash = '\0';
    if (snprintf(worker_path, sizeof worker_path, "%s/%s", path, ranks_kind.worker) >= (int)sizeof worker_path)
        return -1;
    static char version[] = "--version";
    char *argv[] = {worker_path, version, NULL};
    int ends[2];
    pid_t pid = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    const int error = start(argv, ends[1], &pid);
    close(ends[1]);
    size_t got = 0;
    for (const double deadline = monotonic_seconds() + VERSION_SECONDS;
         error == 0 && got + 1 < size && monotonic_seconds() < deadline;) {
        struct pollfd poll_fd = {.fd = ends[0], .events = POLLIN};
        if (poll(&poll_fd, 1, 100) <= 0)
            continue;
        const ssize_t n = read(ends[0], text + got, size - 1 - got);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        got += n > 0 ? (size_t)n : 0;
    }
    text[got] = '\0';
    close(ends[0]);
    if (error == 0 && !ends_within(pid, 1)) {
        kill(pid, SIGKILL);
        while (!has_ended(pid))
            nap();
    }
    return error == 0 && text[0] >= '0' && text[0] <= '9' ? 0 : -1;
}

/* NULL if the worker does not run because its library or MPI is missing. */
const struct peer_module *spmv_peer_module(void)
{
    static char library[192]; /* "PETSc 3.18.5, Open MPI v4.1.4", from the worker */
    static struct peer_module module = {.abi = PEER_ABI, .library = library};
    if (library[0] == '\0') {
        char text[512];
        if (ask_versions(text, sizeof text) != 0)
            return NULL;
        char *line = text + strcspn(text, "\n");
        if (*line == '\n')
            *line++ = '\0';
        snprintf(mpi_name, sizeof mpi_name, "%.*s", (int)strcspn(line, "\n"), line);
        snprintf(library, sizeof library, "%s %.32s, %.120s", ranks_kind.name, text, mpi_name);
    }
    module.peers = ranks_kind.peers;
    module.count = ranks_kind.count;
    return &module;
}
