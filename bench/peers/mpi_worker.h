/* One rank of a peer that works in MPI ranks, commanded over a socket (mpi_shared.h): the worker program's side.
 *
 *   NAME_worker FOLDER       under mpiexec: works until it is told to quit, or until the socket's other end is gone
 *   NAME_worker --version    the version of the library, and that of MPI, one a line; without mpiexec
 *
 * A program defines worker_open, worker_run and worker_fetch. While it waits for a command it sleeps: MPI's own waiting
 * would spin, and take the cores from whoever is measured in the meantime.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPI_WORKER_H
#define MPI_WORKER_H

#include <mpi.h>
#include <stdint.h>

#include "mpi_shared.h"
#include "peer.h"

struct worker {
    int rank, ranks;
    int socket;
    int64_t row_begin, row_end, col_begin, col_end; /* of this rank's share of A, y and x */
    double *result;                                 /* all of y, shared */
    int64_t iterations;                             /* of the last solve */
    double residual;
};

/* This rank's rows: row_ptr begins with that of the first of them, col and val with its first entry, x (a solver's b)
 * with its first column. */
struct share {
    const int32_t *row_ptr, *col;
    const double *val, *x;
};

/* Copies what it needs, makes all ready and computes once or more: what the first run sets up is no part of the second.
 * All three return NULL, or what went wrong. */
const char *worker_open(struct worker *worker, const struct ranks_problem *problem, const struct share *share);

/* Computes once, on all ranks together. */
const char *worker_run(struct worker *worker);

/* Writes this rank's rows of the result. */
const char *worker_fetch(struct worker *worker, double *rows);

/* Between MPI_Init and MPI_Finalize: the exit code; not 0: the others may wait for this rank. */
int worker_serve(struct worker *worker, const char *folder);

/* Prints them; the exit code. */
int worker_versions(const char *library);

#endif
