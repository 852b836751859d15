/* A sample of a matrix: solves with a few of its rows tell which preconditioner suits it (solver_sample.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVER_SAMPLE_H
#define SOLVER_SAMPLE_H

#include "solvers/precond/precond_costs.h"
#include "solvers/solver_internal.h"

/* What a sample is taken of: a real matrix in host memory. */
struct sample_source {
    const spmv_csr *a;
    const spmv_preconditioner_options *options; /* of the preconditioners; those that belong to a row are left out */
    spmv_type type;                             /* of vectors */
    double rtol;                                /* of the solves; 0: the default */
};

/* Solves with a sample with each candidate, as long as it can still be the best one. Of those that can, it sets the
 * steps, and the set-up where its work is counted; the steps of others become INFINITY. A complete factor is not
 * tried: what it takes is known.
 *
 *   solver  what begins; factors of general matrices are for gmres
 *   words   what was found, "a sample of ... rows predicts about ... iterations with ..., ..."
 *
 * SPMV_CANCELLED: by the caller; another status: there is no memory for a sample. */
spmv_status solver_sample_try(spmv_context *ctx, const struct sample_source *source, const struct krylov_solver *solver,
                              struct precond_estimate *candidates, int count, char *words, size_t size);

#endif
