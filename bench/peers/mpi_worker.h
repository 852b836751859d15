/* One rank of a peer that uses MPI ranks, controlled over a socket (mpi_shared.h): the worker
 * program's side.
 *
 *   NAME_worker FOLDER       under mpiexec: works until the quit command or until the socket closes
 *   NAME_worker --version    prints the versions of the library and of MPI, one per line;
 *                            without mpiexec
 *
 * A program defines worker_open, worker_run and worker_fetch. While it waits for a command it
 * sleeps, because waiting in MPI would spin and take cores from other measurements.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPI_WORKER_H
#define MPI_WORKER_H

#include <mpi.h>
#include <stdint.h>

#include "bench/peers/mpi_shared.h"
#include "bench/peers/peer.h"

struct worker {
    int rank, ranks;
    int socket;
    int64_t row_begin, row_end, col_begin, col_end; /* this rank's part of A, y and x */
    double *result;                                 /* whole y, shared */
    int64_t iterations;                             /* of the last solve, as in peer_solved */
    double residual, setup_seconds;
};

/* This rank's rows. row_ptr begins with the offset of its first row, col and val with its first
 * entry, x (b of a solver) with its first column. */
struct share {
    const int32_t *row_ptr, *col;
    const double *val, *x;
};

/* Copies what it needs, prepares and computes at least once, so that the set-up by the first run is
 * not timed. All three functions return NULL, or an error message. */
const char *worker_open(struct worker *worker, const struct ranks_problem *problem, const struct share *share);

/* Computes once, on all ranks together. */
const char *worker_run(struct worker *worker);

/* Writes this rank's rows of the result. */
const char *worker_fetch(struct worker *worker, double *rows);

/* For a solver with settings that are tried (PEER_CG_PRECOND): runs with each, chosen by *setting = 0 ...
 * count - 1, and sets the one that reaches the tolerance fastest; all ranks the same. */
const char *worker_choose(struct worker *worker, double rtol, size_t *setting, size_t count);

/* Call between MPI_Init and MPI_Finalize. Returns the exit code; if it is not 0, other ranks may be
 * waiting for this one. */
int worker_serve(struct worker *worker, const char *folder);

/* Prints the versions; returns the exit code. */
int worker_versions(const char *library);

#endif
