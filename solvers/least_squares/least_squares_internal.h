/* The solver of min ||A x - b||: what its files share.
 *
 * The solver works on B y, with B = A D and x = D y. D is diagonal, of powers of two, so the
 * entries of B have the digits of those of A.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef LEAST_SQUARES_INTERNAL_H
#define LEAST_SQUARES_INTERNAL_H

#include <spmv/least_squares.h>

#include "core/runtime.h"
#include "formats/matrix_internal.h"
#include "solvers/krylov/krylov_loop.h"

struct least_squares_persistent;

struct spmv_least_squares {
    spmv_context *ctx;
    const struct krylov_solver *solver;
    spmv_least_squares_options options;
    spmv_csr a; /* B, in the context's memory */
    struct csr_copies copies;
    void *values;        /* of B, in the context's memory; NULL: those of A */
    void *scale;         /* the diagonal of D, one real number for each real number of x; NULL: D = I */
    double damp;         /* of the scaled system */
    bool scales_columns; /* D is not a multiple of I */
    bool doubts;         /* columns are scaled, although A may have lost rank */
    double ratio;        /* of the norms of columns */
    const void *given;   /* the values of A in the context's memory */
    spmv_type given_type;
    char why_scaling[160];
    spmv_type type;
    int together;                 /* right-hand sides that are solved together */
    spmv_plan *plan, *transposed; /* for products with B and its conjugate transpose, of as many vectors by columns */
    struct object_use use;
    double seconds;
};

/* ------------------------------------------------------------- least_squares_scaling.c */

/* Chooses D, and replaces s->a, the matrix A, by B. host: A in host memory, or with values that are not
 * read. s->doubts: the rank of A is not known. */
spmv_status least_squares_scale(spmv_least_squares *s, const spmv_csr *host);

/* With doubts, once there are plans for B: whether B has full column rank, by its singular values. If not,
 * s->a becomes A again. */
spmv_status least_squares_settle_doubts(spmv_least_squares *s, bool *keeps);

/* ------------------------------------------------------------- least_squares_rank.c */

/* Whether A, in host memory, certainly has full column rank, but for columns without entries. scale: one
 * number for each column, with which the columns have norms of about 1. SPMV_ERROR_MEMORY, SPMV_CANCELLED. */
enum column_rank { RANK_FULL, RANK_LOST, RANK_UNKNOWN };
spmv_status least_squares_rank(spmv_context *ctx, const spmv_csr *a, const double *scale, enum column_rank *rank);

/* ------------------------------------------------------------- singular_values.c */

/* spmv_estimate_singular_values with plans for A and its conjugate transpose. */
spmv_status singular_values_of_plans(spmv_plan *plan, spmv_plan *transposed, double rtol, int64_t most,
                                     spmv_singular_values *to);

/* ------------------------------------------------------------- least_squares_recurrences.c */

/* Vectors of a run; those from V on have the elements of x. */
enum { LS_U, LS_Q, LS_V, LS_W, LS_H, LS_HBAR, LS_VECTORS };

/* Elements of a vector of this length, so that the next one is aligned like memory of its own. */
static inline int64_t least_squares_stride(int64_t length)
{
    enum { LINE = 32 };
    return ceil_divide(length, LINE) * LINE;
}

/* One right-hand side of a solve, from an array of as many as are solved together. Only the first one has the callback,
 * the queue and the kernels of many steps. */
struct least_squares_run {
    struct krylov_loop g; /* must be first; s.n, s.count and g.v: of x */
    spmv_least_squares *solver;
    struct krylov_vectors rows;           /* passes over vectors of the size of b */
    struct krylov_least_squares *scalars; /* in the context's memory */
    struct krylov_least_squares host;     /* their last copy */
    void *vector[LS_VECTORS];
    void *y;          /* the iterate of the run: x - s or x, in the scaled system */
    int columns;      /* the length of the array */
    const int *ended; /* in the context's memory: not 0 once no column runs; NULL: unknown */
    double gradient;  /* of the iteration that is reported */
    struct least_squares_persistent *persistent;
};

/* ------------------------------------------------------------- least_squares_persistent.cu */

/* Many steps in one kernel. Sets r->persistent and r->g.many_steps, if the system is suited. */
spmv_status least_squares_persistent_open(struct least_squares_run *r) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
void least_squares_persistent_close(struct least_squares_run *r) CUDA_ONLY();
spmv_status least_squares_persistent_steps(struct krylov_loop *g, bool begins) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* ------------------------------------------------------------- least_squares_solve.c */

/* Solves for all right-hand sides, and sets their results but what the solver knows: its times, its name
 * and the scaling. The status of the first one that failed. */
spmv_status least_squares_solve_all(spmv_least_squares *s, const void *b, void *x, spmv_least_squares_result *results);

extern const struct krylov_solver least_squares_lsmr, least_squares_lsqr, least_squares_cgls;

#endif
