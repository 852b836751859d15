/* Peers of a library that uses MPI ranks: the module's side (mpi_ranks.c).
 *
 * A module only defines ranks_kind with its peers, each a RANKS_PEER. The other side is a worker
 * program beside the module (mpi_worker.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPI_RANKS_H
#define MPI_RANKS_H

#include "bench/peers/peer.h"

struct ranks_kind {
    const char *name;    /* of the library, for messages: "PETSc" */
    const char *worker;  /* the program's name: "petsc_worker" */
    const char *timeout; /* environment variable: seconds until a worker must answer */
    const struct peer *peers;
    int count;
};
extern const struct ranks_kind ranks_kind;

/* As in struct peer. Only f64. */
int ranks_open(const struct peer_problem *problem, void **state, char *why, size_t why_size);
int ranks_open_precond(const struct peer_problem *problem, void **state, char *why, size_t why_size);
int ranks_run(void *state);
int ranks_run_timed(void *state, int repeats, double *seconds);
int ranks_fetch(void *state);
void ranks_close(void *state);

/* used: how the library is used, one line */
#define RANKS_PEER(peer_name, peer_op, used)                                                                           \
    {                                                                                                                  \
        .name = (peer_name), .op = (peer_op),                                                                          \
        .settings =                                                                                                    \
            used ", one rank per thread, bound to cores if possible, rows + entries split evenly; timed by the "       \
                 "ranks, the slowest counts",                                                                          \
        .open = (peer_op) == PEER_CG_PRECOND ? ranks_open_precond : ranks_open, .run = ranks_run,                      \
        .run_timed = ranks_run_timed, .fetch = ranks_fetch, .close = ranks_close                                       \
    }

#endif
