/* Peers of a library that works in MPI ranks: the module's side (mpi_ranks.c).
 *
 * A module defines ranks_kind, and takes these functions for its peers. The other side is a worker program beside the
 * module (mpi_worker.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPI_RANKS_H
#define MPI_RANKS_H

#include "peer.h"

struct ranks_kind {
    const char *name;    /* of the library, in sentences: "PETSc" */
    const char *worker;  /* the program's name: "petsc_worker" */
    const char *timeout; /* the environment's variable for the seconds that a worker may take to answer */
};
extern const struct ranks_kind ranks_kind;

/* "PETSc 3.18.5, Open MPI v4.1.4" as the worker says; NULL: it does not run. */
const char *ranks_library(void);

/* As in struct peer. f64 alone. */
int ranks_open(const struct peer_problem *problem, void **state, char *why, size_t why_size);
int ranks_run(void *state);
int ranks_run_timed(void *state, int repeats, double *seconds);
int ranks_fetch(void *state);
void ranks_close(void *state);

#endif
