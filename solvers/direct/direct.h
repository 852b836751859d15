/* A sparse direct solver: LU factors of a square matrix, by a module
 * (solvers/modules/direct_klu.c).
 *
 * It computes on the CPU in f64 or c128, whatever the context's backend and the matrix's type are.
 * The same matrix and right-hand side give the same bits. The solution is not refined here.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef DIRECT_H
#define DIRECT_H

#include <spmv/plan.h>

struct direct;

/* Orders and factorises A.
 *
 *   a        square, f64, f32, c64, c128 or a pattern, in either memory; columns in any order.
 *            Entries at the same place are added. Not needed after the call.
 *   *direct  the solver; NULL after an error
 *
 * Waits if A is on a GPU.
 * Errors: SPMV_ERROR_UNSUPPORTED (no module; the message says what to install), SPMV_ERROR_SINGULAR
 * (the message names a row or column), SPMV_ERROR_NOT_FINITE (an entry; the message names it),
 * SPMV_ERROR_NOT_SQUARE, SPMV_ERROR_TYPE, SPMV_ERROR_MEMORY (also: the expected factors exceed the
 * machine's memory), those of spmv_matrix_check, SPMV_ERROR_DEVICE. */
spmv_status direct_create(spmv_context *ctx, const spmv_csr *a, struct direct **direct);
void direct_destroy(struct direct *direct);

/* The same with factors of the whole square (direct_dense.c), for small systems. No module is needed. A
 * matrix that is singular to rounding is SPMV_ERROR_SINGULAR. */
spmv_status direct_create_dense(spmv_context *ctx, const spmv_csr *a, struct direct **direct);

/* *direct: the same factors, not those of ranks, for A^H x = b. It must be destroyed before `of`. */
spmv_status direct_create_adjoint(const struct direct *of, struct direct **direct);

/* The plan has the rows of one of several ranks, and each rank has factors of the whole matrix: b and x of
 * direct_solve, which ranks then call together, are those of own rows. Together. Errors: SPMV_ERROR_MEMORY. */
spmv_status direct_share(struct direct *direct, const spmv_plan *plan);

/* Solves A x = b with the factors.
 *
 *   type  of b and x: real for a real matrix or a pattern, complex for a complex one
 *   b, x  n elements in the context's memory; may be the same array
 *
 * Waits. Allocates nothing. x is undefined after an error.
 * Errors: SPMV_ERROR_TYPE, SPMV_ERROR_NOT_FINITE (an element of b or x), SPMV_ERROR_DEVICE. */
spmv_status direct_solve(struct direct *direct, spmv_type type, const void *b, void *x);

/* One sentence: the package and its version, the ordering, the nonzeros of the factors, the memory
 * and the condition. */
const char *direct_describe(const struct direct *direct);

/* The estimated reciprocal of the condition number in the 1-norm. */
double direct_rcond(const struct direct *direct);

/* Bytes of the solver, with those of the module. */
int64_t direct_bytes(const struct direct *direct);

#endif
