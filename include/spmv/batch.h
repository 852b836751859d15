/* Batches: many small systems A_k x_k = b_k whose matrices have one sparsity pattern and different
 * values. All of them are solved by one call, on a GPU by one kernel.
 *
 *     spmv_batch *batch;
 *     spmv_batch_create(ctx, &pattern, NULL, &batch);
 *     spmv_batch_solve(batch, values, b, x, count, results, sizeof *results);
 *     spmv_batch_destroy(batch);
 *
 * docs/library.md has a whole function.
 *
 * Layout. One system after the other, without gaps, all in the context's memory:
 *
 *     values  count x nnz    value e of matrix k is values[k * nnz + e], e counts the entries of the
 *                            pattern in the order of its column array
 *     b, y    count x rows   element i of system k is b[k * rows + i]
 *     x       count x cols
 *
 * Determinism. A system has the same bits in every run, whatever the other systems of the batch and
 * their number are, and the same bits on ref, omp and cuda, for any number of threads and on any GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_BATCH_H
#define SPMV_BATCH_H

#include <spmv/matrix.h>

SPMV_BEGIN_DECLS

/* A sparsity pattern prepared for a batch of matrices. */
typedef struct spmv_batch spmv_batch;

typedef struct spmv_batch_options {
    size_t size; /* sizeof(spmv_batch_options), set by spmv_batch_options_init */

    /* A name of spmv_batch_solver_name. Default NULL or "auto": bicgstab. */
    const char *solver;

    /* "none" or "jacobi". Default NULL or "auto": for each system jacobi, unless one of its diagonal
     * entries is 0 or its reciprocal is not finite; then none. */
    const char *precond;

    /* f32, f64, c64 or c128, of values, b, x and y. Default: that of the pattern, f64 if it has no
     * values. */
    spmv_type type;

    double rtol;            /* tolerance relative to ||b_k||, at least 0; default 1e-8 */
    double atol;            /* absolute tolerance, at least 0; default 0 */
    int64_t max_iterations; /* of a system; default 0: 10 times the rows, at least 100 */
    int zero_start;         /* 1: start at x = 0, x is not read; default 0: start at the given x */
    int restart;            /* gmres: iterations between restarts, 1 to 200; default 0: 50 */
} spmv_batch_options;

/* Fills options with the defaults. size: sizeof(spmv_batch_options). */
SPMV_API void spmv_batch_options_init(spmv_batch_options *options, size_t size);

/* The names of the solvers of a batch; NULL after the last. Static storage.
 *
 *   cg        A Hermitian positive definite   sources: as in solvers.h
 *   bicgstab  any A; right preconditioning
 *   gmres     any A; restarted, right preconditioning, Gram-Schmidt in two passes */
SPMV_API const char *spmv_batch_solver_name(int index);

/* Prepares a pattern. May wait.
 *
 *   pattern  rows, cols, offsets and columns; values are ignored, also NULL. In either memory; copied.
 *            Columns of a row in any order; an entry may occur twice, its values are added.
 *   options  NULL means defaults; strings need not outlive the call
 *   *batch   NULL after an error
 *
 * Memory: 4 bytes for each entry of the pattern and each row, on a GPU up to 14 and 12. A square pattern also
 * takes workspace for the systems that are solved at the same time (one for each thread, on a GPU for each
 * resident block, in at most 1/16 of its memory): 8 vectors of rows elements each, gmres 5 + restart, as far
 * as the shared memory of the GPU does not hold them.
 *
 * Errors: SPMV_ERROR_METHOD (no such solver or preconditioner; the message lists the names),
 * SPMV_ERROR_ARGUMENT (an option out of its range), SPMV_ERROR_TYPE, SPMV_ERROR_SIZE (wrong offsets or
 * columns), SPMV_ERROR_LIMIT (2^31 entries or rows or more), SPMV_ERROR_MEMORY. */
SPMV_API spmv_status spmv_batch_create(spmv_context *ctx, const spmv_csr *pattern, const spmv_batch_options *options,
                                       spmv_batch **batch);

/* Destroys it after the work queued on the context's stream is done. NULL is allowed. */
SPMV_API void spmv_batch_destroy(spmv_batch *batch);

/* The bytes of the context's memory that it owns; 0 for NULL. */
SPMV_API int64_t spmv_batch_bytes(const spmv_batch *batch);

/* y_k = A_k x_k for k = 0 ... count - 1. Queued; allocates nothing, does not wait, can be captured.
 *
 *   values, x  count matrices and vectors (see Layout)
 *   y          count x rows elements
 *   count      0 to 2^31 - 1
 *
 * Sums: the products of a row are added one after the other, in the order of the pattern, each rounded.
 * Aliasing: y overlaps neither values nor x.
 * Errors: SPMV_ERROR_ARGUMENT (NULL, count), SPMV_ERROR_DEVICE. */
SPMV_API spmv_status spmv_batch_apply(spmv_batch *batch, const void *values, const void *x, void *y, int64_t count);

/* The result of one system. */
typedef struct spmv_batch_result {
    size_t size;                /* of this struct in bytes */
    spmv_status status;         /* of this system, see spmv_batch_solve */
    int64_t iterations;         /* steps of the solver; one of bicgstab has two products with A */
    int64_t restarts;           /* runs of the solver after the first; cycles of gmres count too */
    double norm_b;              /* ||b_k|| */
    double tolerance;           /* max(rtol ||b_k||, atol) */
    double recurrence_residual; /* ||r|| of the recurrence when the last run ended */
    double true_residual;       /* ||b_k - A_k x_k|| for the x_k returned */
} spmv_batch_result;

/* Solves A_k x_k = b_k for k = 0 ... count - 1, each until ||b_k - A_k x_k|| <= max(rtol ||b_k||, atol).
 * Waits; cannot be captured.
 *
 *   values, b  count matrices and right-hand sides (see Layout)
 *   x          count x rows elements: start and solution
 *   count      0 to 2^31 - 1
 *   results    NULL, or count structs in host memory that are size bytes apart
 *   size       sizeof(spmv_batch_result)
 *
 * A system neither waits for its neighbours nor changes their bits. b_k and x_k are scaled by a power of
 * two that brings ||b_k|| near 1, so squares of the right-hand side neither overflow nor vanish. After
 * each run of the recurrence b_k - A_k x_k is computed from x_k, in f64 for all real and c128 for all
 * complex types. If it is above the tolerance and at most half as large as before, another run
 * starts from it. x_k never gets a larger residual than that of the start.
 *
 * The status of a system:
 *   SPMV_OK                  true_residual is within the tolerance. b_k = 0 gives x_k = 0, if A_k is finite.
 *   SPMV_ERROR_ITERATIONS    the limit of iterations
 *   SPMV_ERROR_STAGNATION    another run did not halve the residual, or a cycle of gmres did not reduce it
 *   SPMV_ERROR_BREAKDOWN     bicgstab, gmres: the recurrence cannot continue; mostly a singular A_k, for
 *                            bicgstab also one with (r, A r) = 0
 *   SPMV_ERROR_NOT_POSITIVE  cg: p'Ap <= 0 or r'M^-1 r <= 0
 *   SPMV_ERROR_SINGULAR      jacobi by name: a diagonal entry is 0, or missing; x_k is the start
 *   SPMV_ERROR_NOT_FINITE    NaN or infinity in A_k, b_k or the start, or a sum that overflows; residuals
 *                            that could not be computed are NaN
 *
 * cg does not check that A_k is Hermitian. With another matrix it does not converge, or to a solution.
 *
 * Returns SPMV_OK if all systems are, else the status of the first one that is not; the message names
 * it and counts them. Aliasing: x overlaps neither values nor b.
 * Errors before any work, with x unchanged: SPMV_ERROR_ARGUMENT (NULL, count), SPMV_ERROR_NOT_SQUARE,
 * SPMV_ERROR_CAPTURE, SPMV_ERROR_MEMORY (56 bytes for each system). */
SPMV_API spmv_status spmv_batch_solve(spmv_batch *batch, const void *values, const void *b, void *x, int64_t count,
                                      spmv_batch_result *results, size_t size);

SPMV_END_DECLS

#endif
