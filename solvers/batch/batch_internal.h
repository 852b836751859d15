/* Batches: what the front (batch.c), the loops on a CPU (batch_host.c) and the kernels (batch_cuda.cu)
 * share.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BATCH_INTERNAL_H
#define BATCH_INTERNAL_H

#include <spmv/batch.h>

#include "core/backend.h"
#include "core/hypot.h"

enum batch_method { BATCH_CG, BATCH_BICGSTAB, BATCH_GMRES, BATCH_METHODS };
enum batch_precond { BATCH_NONE, BATCH_JACOBI, BATCH_JACOBI_OR_NONE };

/* The lanes of a system: element i of a vector is added to sum i mod lanes. These sums are added in a tree in
 * each group of 32, neighbours first, and those of the groups one after the other. On a GPU a lane is a
 * thread. The number depends on the rows alone, so the bits of a sum do too.
 *
 * With BATCH_OWN rows for each lane, BATCH_SMALL rows at most, a thread can keep its elements of vectors
 * in registers. */
enum { BATCH_WARP = 32, BATCH_MOST_LANES = 256, BATCH_OWN = 4, BATCH_SMALL = BATCH_OWN * BATCH_MOST_LANES };

static inline int batch_lanes(int64_t rows)
{
    int lanes = BATCH_WARP;
    while (lanes < BATCH_MOST_LANES && (int64_t)BATCH_OWN * lanes < rows)
        lanes *= 2;
    return lanes;
}

/* Vectors of a system: those that only the lane of a row reads, and the input of products. Those of the methods
 * begin at BATCH_METHOD; gmres has a basis besides. */
enum { BATCH_R, BATCH_D, BATCH_W, BATCH_METHOD, BATCH_VECTORS = BATCH_METHOD + 4 };

/* Vectors that a method uses. */
static inline int batch_vectors(enum batch_method method)
{
    return method == BATCH_BICGSTAB ? BATCH_METHOD + 4 : BATCH_METHOD + 1;
}

/* How a run of a recurrence ended. */
enum batch_stop {
    BATCH_CONVERGED,
    BATCH_CYCLE, /* of gmres */
    BATCH_LIMIT,
    BATCH_BROKEN,
    BATCH_NOT_POSITIVE,
    BATCH_NOT_FINITE
};

/* The run of a recurrence. */
struct batch_run {
    double enough;  /* it ends at this norm of the residual */
    double squares; /* the square of the last norm */
    int64_t iterations, limit;
};

struct batch_outcome {
    double norm_b, tolerance, recurrence_residual, true_residual;
    int64_t iterations, restarts;
    int64_t status;
};

/* Where the arrays of a system are, in bytes from the start of the workspace of its group. On a GPU from the start
 * of shared memory if at >= 0; else -1 - at is in the workspace. */
struct batch_layout {
    int64_t input, vector[BATCH_VECTORS], basis, scalars;
    int64_t val, slot_col, step_start; /* of a staged system */
    int64_t work_bytes;
    int shared_bytes;
    bool staged, short_rows; /* on a GPU: the kernel, see batch_cuda.cu */
};

/* On a GPU, for systems whose values are in shared memory (batch_layout.staged). In each group of 32 rows the first
 * entries of its rows, then the second ones, and so on, each time in the order of decreasing lengths of the rows. So
 * the lanes of a warp read neighbours, and no place is wasted. */
struct batch_slots {
    int32_t *slot;        /* of each entry of the pattern */
    uint16_t *col;        /* the columns in the order of the slots */
    int32_t *shape;       /* of each row: 32 length + its rank by length in its group */
    int32_t *step_first;  /* of each group: its first number in step_start */
    uint16_t *step_start; /* the slot of the longest row's entry e: entry e of the row with rank r is r further */
    int steps;            /* numbers in step_start */
};

struct batch_job {
    int rows, nnz, lanes, longest; /* longest: entries of a row at most */
    enum batch_method method;
    enum batch_precond precond;
    int restart, zero_start;
    int64_t max_iterations;
    double rtol, atol, roundoff;
    int exponent; /* of the largest factor that scales a system */
    int32_t *row_ptr, *col;
    const void *val, *b;
    void *x;
    int64_t count;
    struct batch_outcome *outcome;
    char *work; /* a workspace for each group of lanes */
    struct batch_layout layout;
    struct batch_slots slots;
    unsigned *next, *ticket; /* counters, 0 before and after: of systems, of blocks */
};

struct spmv_batch {
    spmv_context *ctx;
    int64_t rows, cols, nnz;
    spmv_type type;
    struct batch_job job;          /* the pattern, the options and the workspaces; no arrays of values and vectors */
    struct batch_outcome *outcome; /* for `outcomes` systems, on a CPU */
    int64_t outcomes, outcome_bytes;
    int groups; /* workspaces: groups of lanes that work at the same time */
    int64_t bytes;
};

/* Scalars of gmres: a column, the rotations, the right-hand side, the triangle. */
static inline int64_t batch_scalars(int64_t restart)
{
    return restart * (restart + 1) / 2 + 4 * restart + 2;
}

/* Of `count` systems; count > 0, rows > 0. */
void batch_solve_host(const spmv_batch *batch, const struct batch_job *job);
void batch_apply_host(const spmv_batch *batch, const void *val, const void *x, void *y, int64_t count);

/* Lays out shared memory and workspaces, and sets batch->groups. */
spmv_status batch_prepare_cuda(spmv_batch *batch) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
/* Queued. Sets job->outcome, in page-locked memory of the context. */
spmv_status batch_solve_cuda(const spmv_batch *batch, struct batch_job *job) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status batch_apply_cuda(const spmv_batch *batch, const void *val, const void *x, void *y, int64_t count)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
