/* A sparse direct solver: factors of a square matrix, by a library that a module opens (solvers/modules). On a GPU
 * cuDSS makes them where libraries on the host would take longer than its analysis, and computes there. Else: a symmetric
 * or Hermitian matrix with a positive diagonal is tried by CHOLMOD; other symmetric ones by MUMPS; others, and those
 * that CHOLMOD finds not to be positive definite, are factorised by KLU or, if the factors take many operations for each
 * nonzero, by UMFPACK.
 *
 * It computes in f64 or c128, whatever the matrix's type is, and but for cuDSS on the CPU, whatever the backend is. With
 * cuDSS the matrix, b and x stay in the device's memory; with the others they are copied to the host.
 * The same matrix and right-hand side give the same bits. The solution is not refined here.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef DIRECT_H
#define DIRECT_H

#include <spmv/plan.h>
#include <stdbool.h>

struct direct;

/* Orders and factorises A.
 *
 *   name     direct_library_of; NULL: the first one that is there and can take A
 *   a        square, f64, f32, c64, c128 or a pattern, in either memory; columns in any order.
 *            Entries at the same place are added. Not needed after the call.
 *   *direct  the solver; NULL after an error
 *
 * Waits if A is on a GPU.
 * Errors: SPMV_ERROR_UNSUPPORTED (no module; the message says what to install), SPMV_ERROR_SINGULAR
 * (the message names a row or column, of UMFPACK the number of pivots), SPMV_ERROR_NOT_POSITIVE (of the library that is named), SPMV_ERROR_NOT_FINITE (an entry; the message names it),
 * SPMV_ERROR_NOT_SQUARE, SPMV_ERROR_TYPE, SPMV_ERROR_MEMORY (also: the expected factors exceed the
 * machine's memory), those of spmv_matrix_check, SPMV_ERROR_DEVICE. */
spmv_status direct_create(spmv_context *ctx, const spmv_csr *a, const char *name, struct direct **direct);
void direct_destroy(struct direct *direct);

/* The same in two steps: the order and what it leads to; the factors, which a solve needs. Both get the same a, which
 * another library may need in the second. most: nanoseconds; a library whose analysis alone takes that is not tried. */
spmv_status direct_analyse(spmv_context *ctx, const spmv_csr *a, double most, struct direct **direct);
spmv_status direct_factor(struct direct *direct, const spmv_csr *a);
bool direct_is_factored(const struct direct *direct);

/* Nanoseconds that making the factors is expected to take, by the operations that the analysis counts; infinite: not
 * known. */
double direct_expected(const struct direct *direct);

/* The solver direct with library 0, 1, ...: "direct:cholmod"; NULL after the last. */
const char *direct_named(int index);

/* The same string, with static storage, if this is such a name; NULL: not. */
const char *direct_library_of(const char *solver);

/* Factors of other values of the same pattern, which the caller does not change: the analysis stays, unless another
 * library must take them. The bits are those of a new solver. After an error there are no factors. Of direct_create_adjoint
 * nothing is done. */
spmv_status direct_update(struct direct *direct, const spmv_csr *a);

/* The same with factors of the whole square (direct_dense.c), for small systems. No module is needed. A
 * matrix that is singular to rounding is SPMV_ERROR_SINGULAR. */
spmv_status direct_create_dense(spmv_context *ctx, const spmv_csr *a, struct direct **direct);

/* Whether that can be: of every library but cuDSS before 1.0, if A is not Hermitian. */
bool direct_has_adjoint(const struct direct *direct);

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

/* The same for several right-hand sides at once, not on ranks: `columns` of n elements, `stride` elements apart. It
 * allocates memory for all. The bits may depend on how many they are. Errors: also SPMV_ERROR_MEMORY. */
spmv_status direct_solve_columns(struct direct *direct, spmv_type type, int64_t columns, int64_t stride, const void *b,
                                 void *x);

/* log |det A|, det A / |det A| and the numbers of eigenvalues of a symmetric or Hermitian A (-1: not known), of the
 * factors. SPMV_ERROR_UNSUPPORTED: there are none, or the library does not tell. */
struct direct_determinant {
    double log, phase[2];
    int64_t positive, negative, zero;
};
spmv_status direct_determinant(const struct direct *direct, struct direct_determinant *det);

/* One sentence: the package and its version, the ordering, the nonzeros of the factors, the memory
 * and the condition. */
const char *direct_describe(const struct direct *direct);

/* A part of it: "KLU 1.3.9, since the factors take few operations for each nonzero; 1.23e+06 nonzeros in the factors" */
const char *direct_brief(const struct direct *direct);

/* The estimated reciprocal of the condition number in the 1-norm, or by the pivots; below 0: unknown. */
double direct_rcond(const struct direct *direct);

/* Bytes of the solver, with those of the module. */
int64_t direct_bytes(const struct direct *direct);

#endif
