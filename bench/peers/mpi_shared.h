/* The protocol between a module with ranks (mpi_ranks.h) and its workers.
 *
 * A worker is one rank of NAME_worker FOLDER. FOLDER has two files that both sides map: "problem"
 * (the header below, then row_ptr, x, val, col, each at a multiple of 64 bytes), which both unmap
 * when the workers have their matrix, and "result" (y). It also has a socket to which each rank
 * connects. A rank sends one reply when it is ready, then one after each command. Each side learns
 * from a closed connection that the other has ended.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPI_SHARED_H
#define MPI_SHARED_H

#include <stdint.h>

enum { RANKS_MAGIC = 0x53505633, RANKS_TEXT = 200, RANKS_ALIGN = 64 };

struct ranks_problem {
    int64_t rows, cols, nnz;
    int64_t row_ptr, x, val, col; /* offsets in the file */
    int64_t bytes;                /* of the file */
    int64_t max_iterations;       /* of a solve; then b is stored as x */
    double rtol;
    int32_t op; /* enum peer_op */
    int32_t pad;
};

enum ranks_command_op {
    RANKS_RUN = 1,   /* runs repeats times, timed */
    RANKS_FETCH = 2, /* writes y to "result" */
    RANKS_QUIT = 3   /* no reply */
};

struct ranks_command {
    int32_t op, repeats;
};

struct ranks_reply {
    int32_t magic, rank;
    int32_t failed;
    int32_t pad;
    double seconds;     /* time of this rank for the repeats */
    int64_t iterations; /* of the last solve, as in peer_solved */
    double residual, setup_seconds;
    char text[RANKS_TEXT]; /* message after a failure */
};

static inline int64_t ranks_aligned(int64_t bytes)
{
    return (bytes + RANKS_ALIGN - 1) / RANKS_ALIGN * RANKS_ALIGN;
}

#endif
