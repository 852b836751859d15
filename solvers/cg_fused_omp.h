/* The parallel region of cg_2_fused_omp.c as its two callers see it: one right-hand side, and several side by side.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_FUSED_OMP_H
#define CG_FUSED_OMP_H

#include "cg_internal.h"

/* Why a column's recurrence stands still. */
enum cg_stop { CG_RUNS, CG_DONE, CG_BROKEN, CG_LIMIT };

/* One right-hand side: in tolerance, limit and stop (CG_RUNS: to be solved), out the rest. */
struct cg_column {
    double tolerance, start_residual, enough;
    double rr, pq, rz, alpha, beta;
    int64_t iterations; /* of this run */
    int64_t limit;      /* of these */
    enum cg_stop stop;
};

/* One run. Row i of column v of a vector lies at i * columns + v; the plan is one of the method "tiles" for so many
 * vectors without strides. */
struct cg_region {
    spmv_context *ctx;
    const spmv_plan *plan;
    spmv_type type;
    int columns;
    const void *inverse_diagonal; /* n elements of the preconditioner "jacobi"; NULL: none */
    void *x, *r, *p, *q;          /* r = b - A x; p is the first direction with keeps_p, else made from r */
    bool keeps_p;
    int64_t iterations; /* of all runs: what the callback is told */
    const spmv_cg_options *options;
    struct cg_column *column; /* columns of them */
    spmv_status told;         /* SPMV_CANCELLED: the callback stopped all */
    void *state;              /* workspace: cg_region_open */
};

/* SPMV_ERROR_UNSUPPORTED with the sentence why not. */
spmv_status cg_region_supports(spmv_context *ctx, const spmv_plan_info *info, const spmv_preconditioner *precond);

spmv_status cg_region_open(struct cg_region *region);
void cg_region_close(struct cg_region *region);

/* Runs all columns whose stop is CG_RUNS until none does, or the callback says so. */
void cg_region_run(struct cg_region *region);

#endif
