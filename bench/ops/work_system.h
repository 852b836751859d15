/* The system that the solvers are measured on: A x = b, b = A times ones, from x = 0.
 *
 * A run is a whole solve. Everything that the interface allows is allocated before. The reported
 * time is that of a run divided by its iterations. With a preconditioner, a run makes it, solves
 * and releases it, and the time of the whole run is reported, because iterations with different
 * preconditioners are not comparable. Peers solve without a preconditioner or, in comparisons of
 * whole solutions, with one of their own, made in each run. All stop by the same rule,
 * ||r|| <= rtol ||b|| with r by the recurrence, or at the same limit. The true residual of each x
 * is computed here, in f64 and with the same code for all.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_WORK_SYSTEM_H
#define BENCH_WORK_SYSTEM_H

#include "bench/measure.h"
#include "bench/ops/work_matrix.h"

struct work_system {
    /* set by the caller */
    const char *label; /* the solver, for messages */
    bool symmetric;    /* A must be symmetric */
    double factor;     /* largest true residual over that of the recurrence or, if larger, rtol */
    /* set by work_system_make */
    struct work_matrix matrix;
    void *b;                   /* host memory */
    struct peer_solved solved; /* of the last run; problem.solved points to it */
};

/* Makes the matrix, b, the result x, and the members of the problem for solvers. Refuses an
 * unsuitable matrix, with a message. */
spmv_status work_system_make(struct work *work, struct work_system *system);

/* Bytes of the matrix as CSR. */
double work_system_matrix_bytes(const struct work *work);

/* The end of a run: stores what the solve reached. Returns 0, or -1 if it failed. A solve that reaches
 * the limit of iterations is not a failure: its time is still comparable. */
int work_system_solved(struct method *method, spmv_status status, int64_t iterations, double residual, double norm_b);

/* For struct operation; work->state is a struct work_system, or begins with one. */
spmv_status work_system_check(struct work *work, const void *host_result, struct check *check);
void work_system_adapt(struct measure_options *options);

#endif
