/* One run of recurrences side by side, and the ways to run it besides the textbook: the parallel region of
 * cg_2_fused_omp.c, which also runs one alone, and the kernels of cg_several_cuda.cuh.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_REGION_H
#define CG_REGION_H

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

/* One run. Row i of column v of a vector lies at i * columns + v; the plan is for so many vectors without strides. */
struct cg_region {
    spmv_context *ctx;
    spmv_plan *plan;
    spmv_type type;
    int columns;
    const void *inverse_diagonal; /* n elements of the preconditioner "jacobi"; NULL: none */
    void *x, *r, *p, *q;          /* r = b - A x; p is the first direction with keeps_p, else made from r */
    bool keeps_p;
    int64_t iterations; /* of all runs: what the callback is told */
    const spmv_cg_options *options;
    struct cg_column *column; /* columns of them */
    spmv_status told;         /* SPMV_CANCELLED: the callback stopped all */
    void *state;              /* workspace: open */
};

/* A way to run it, a row in the table in cg_several.c. */
struct cg_side_by_side {
    const char *name; /* of the rung */
    const char *why;  /* one sentence: when auto takes it */
    spmv_backend backend;

    /* SPMV_OK, or SPMV_ERROR_UNSUPPORTED with the sentence why not. */
    spmv_status (*supports)(spmv_context *ctx, const spmv_plan_info *info, const spmv_preconditioner *precond);

    /* Allocates the workspace of all runs; what is half built is released by close, which also takes NULL. */
    spmv_status (*open)(struct cg_region *region);
    void (*close)(struct cg_region *region);

    /* Runs all columns whose stop is CG_RUNS until none does, or the callback says so. */
    spmv_status (*run)(struct cg_region *region);
};

extern const struct cg_side_by_side cg_several_graph, cg_several_fused; /* on cuda */

/* On omp, where the plan must be one of the method "tiles". */
spmv_status cg_region_supports(spmv_context *ctx, const spmv_plan_info *info, const spmv_preconditioner *precond);

spmv_status cg_region_open(struct cg_region *region);
void cg_region_close(struct cg_region *region);
void cg_region_run(struct cg_region *region);

#endif
