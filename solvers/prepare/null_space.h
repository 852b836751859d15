/* The null space of a singular symmetric (Hermitian) matrix, as far as it is known: orthonormal
 * vectors v with A v = 0. No A x has a part along them, so the part of b along them is the smallest
 * possible residual, and what is left of b is in the range of A (if no other null vectors exist).
 *
 * Found here: if the entries of each row sum to 0 up to rounding, the vector that is constant on a
 * connected component of the matrix and 0 elsewhere is a null vector (a Laplacian with Neumann
 * boundaries, the Laplacian of a graph). Others are given by the caller (null_vectors.h); they are made orthogonal to
 * those found.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef NULL_SPACE_H
#define NULL_SPACE_H

#include <spmv/plan.h>

#include "core/runtime.h"
#include "solvers/prepare/null_vectors.h"

struct null_space;

/* Whose rows must sum to 0. */
enum null_space_rows {
    NULL_SPACE_ALL_ROWS,  /* all: one pass over the matrix finds that some do not */
    NULL_SPACE_COMPONENTS /* all of some component: the components are found in any case */
};

/* Finds null vectors of a symmetric matrix in the context's memory. *found: NULL if there are none.
 * type: of the vectors that null_space_split gets. May wait. */
spmv_status null_space_find(spmv_context *ctx, const spmv_csr *a, spmv_type type, enum null_space_rows rows,
                            struct null_space **found);

/* Whether all rows sum to 0 up to rounding, so that there is at least one null vector. On a GPU rows of zeros are none. May
 * wait. */
spmv_status null_space_has_ones(spmv_context *ctx, const spmv_csr *a, bool *has);

/* null_space_find of a plan for the rows of one of several ranks. Together; all ranks find the same. */
spmv_status null_space_find_of_ranks(const spmv_plan *plan, enum null_space_rows rows, struct null_space **found);

/* Adds given vectors to *n, which may be NULL. symmetric: A is, else *n is NULL. ranks: those of the plan that has a,
 * or NULL; together. Errors: null_vectors_take. */
spmv_status null_space_add(spmv_context *ctx, const spmv_csr *a, const struct plan_ranks *ranks, spmv_type type,
                           const struct null_given *given, bool symmetric, struct null_space **n);
void null_space_destroy(struct null_space *n);

/* Whether no A x has a part along the vectors, as for a symmetric A. If not, only x is split. */
bool null_space_splits(const struct null_space *n);

/* The number of vectors. */
int64_t null_space_count(const struct null_space *n);

/* Norms of a vector and of its part along the null vectors. */
struct null_space_norms {
    double all, part;
};

/* to = v less its part along the null vectors. v and to have a number for each row, with ranks for each own one, in
 * the context's memory; to may be v. Waits. With ranks: together. Sums are formed in a fixed order, so the bits do not depend on
 * the threads, nor on the number of ranks. */
spmv_status null_space_split(const struct null_space *n, const void *v, void *to, struct null_space_norms *norms);

/* Which vectors these are, as in "A is singular (...)"; and what makes b consistent. */
const char *null_space_words(struct null_space *n);
const char *null_space_remedy(const struct null_space *n);

int64_t null_space_bytes(const struct null_space *n);

#endif
