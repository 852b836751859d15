/* Null vectors of a matrix that the caller gives, or that are constant on each unknown of a node.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef NULL_VECTORS_H
#define NULL_VECTORS_H

#include <spmv/matrix.h>
#include <stdbool.h>

#include "core/runtime.h"

enum { NULL_VECTORS_MOST = 64 };

/* What the caller gives, in one of two ways; neither: none. */
struct null_given {
    const void *vectors; /* element i of vector j is vectors[i * count + j], in the context's memory */
    int count;           /* at most NULL_VECTORS_MOST, as block */
    int block;           /* vector j is 1 in the rows i with i % block == j, and 0 elsewhere */
};

struct null_chunks;
struct plan_ranks;

/* An orthonormal basis: element i of vector j is at[i * count + j], a complex number if parts is 2. With ranks each has
 * its own rows. */
struct null_vectors {
    int64_t rows;
    int64_t first, all_rows;        /* the number of row 0; rows of all ranks */
    const struct plan_ranks *ranks; /* NULL: none */
    struct null_chunks *chunks;
    int count, parts;
    bool splits;  /* they are null vectors of the adjoint too: no A x has a part along them */
    double least; /* what is left of a vector of length 1, if it depends on others */
    double *at;
    long double *sum; /* scratch */
};

/* Takes the vectors, scaled to length 1, and checks that A v = 0 up to rounding. type: of the vectors. symmetric: A
 * is; else the adjoint is tried too, for `splits`. May wait. ranks: those of the plan that has the rows of a, or NULL.
 * With ranks this and the functions below are called together, and the bits do not depend on the number of ranks.
 *
 * Errors, the same on all ranks: SPMV_ERROR_ARGUMENT (A v is not 0, or v is), SPMV_ERROR_SIZE (rows that block does not
 * divide), SPMV_ERROR_NOT_FINITE. The message names the vector. */
spmv_status null_vectors_take(spmv_context *ctx, const spmv_csr *a, const struct plan_ranks *ranks, spmv_type type,
                              const struct null_given *given, bool symmetric, struct null_vectors **taken);

/* Makes them orthonormal. Those that depend on others, or that are no longer of length 1 but nearly 0, are left out:
 * count may become 0. */
spmv_status null_vectors_orthonormalise(struct null_vectors *n);
void null_vectors_destroy(struct null_vectors *n);

/* to = to less its part along the vectors, in host memory. *along, *squares: the squares of the norms of that part, and
 * of `to` before. */
spmv_status null_vectors_split(const struct null_vectors *n, spmv_type type, void *to, long double *along,
                               long double *squares);

int64_t null_vectors_bytes(const struct null_vectors *n);

#endif
