/* A sample of a matrix: solves with a few of its rows tell which preconditioner suits it (solver_sample.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVER_SAMPLE_H
#define SOLVER_SAMPLE_H

#include "solvers/solver_internal.h"

struct sample;

/* Takes the sample of a matrix in host memory, which is real.
 *
 *   options  of the preconditioners; those that belong to a row are left out
 *   type     of vectors
 *   rtol     of the solves; 0: the default */
spmv_status solver_sample_open(spmv_context *ctx, const spmv_csr *a, const spmv_preconditioner_options *options,
                               spmv_type type, double rtol, struct sample **sample);
void solver_sample_close(struct sample *sample);

/* What the whole is estimated to take. */
struct sample_estimate {
    double steps; /* iterations; INFINITY if `most` do not suffice, or the preconditioner cannot be made */
    double work;  /* units of context_pace of making it, for each entry and row; 0 of those that count none */
};

/* Solves with the sample by cg or gmres, in no more iterations than `most`. SPMV_CANCELLED: by the caller; no other
 * status is an error of A. */
spmv_status solver_sample_try(struct sample *sample, const struct krylov_solver *solver, const char *name, int64_t most,
                              struct sample_estimate *estimate);

/* The rows of the sample. */
int64_t solver_sample_rows(const struct sample *sample);

#endif
