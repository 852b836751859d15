/* A sample of a matrix: conjugate gradients on a few of its rows tell which preconditioner suits it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVER_SAMPLE_H
#define SOLVER_SAMPLE_H

#include "solvers/solver_internal.h"

struct sample;

/* Takes the sample of the solver's matrix, which is real, on a host. */
spmv_status solver_sample_open(spmv_solver *s, struct sample **sample);
void solver_sample_close(struct sample *sample);

/* Solves with the sample, and estimates the iterations with the whole matrix.
 *
 *   most   no more iterations than these with the sample
 *   steps  the estimate; INFINITY if they do not suffice, or the preconditioner cannot be made
 *   taken  the iterations with the sample
 *
 * SPMV_CANCELLED: by the caller; no other status is an error of A. */
spmv_status solver_sample_try(struct sample *sample, const char *name, int64_t most, double *steps, int64_t *taken);

/* The rows of the sample. */
int64_t solver_sample_rows(const struct sample *sample);

#endif
