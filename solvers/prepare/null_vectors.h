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

static inline bool null_is_given(const struct null_given *given)
{
    return given->vectors != NULL || given->block > 0;
}

/* An orthonormal basis: element i of vector j is at[i * count + j], a complex number if parts is 2. */
struct null_vectors {
    int64_t rows;
    int count, parts;
    bool splits;  /* they are null vectors of the adjoint too: no A x has a part along them */
    double least; /* what is left of a vector of length 1, if it depends on others */
    double *at;
    long double *sum; /* scratch: count numbers */
};

/* Takes the vectors, scaled to length 1, and checks that A v = 0 up to rounding. type: of the vectors. symmetric: A
 * is; else the adjoint is tried too, for `splits`. May wait.
 *
 * Errors: SPMV_ERROR_ARGUMENT (A v is not 0, or v is), SPMV_ERROR_SIZE (rows that block does not divide),
 * SPMV_ERROR_NOT_FINITE. The message names the vector. */
spmv_status null_vectors_take(spmv_context *ctx, const spmv_csr *a, spmv_type type, const struct null_given *given,
                              bool symmetric, struct null_vectors **taken);

/* Makes them orthonormal. Those that depend on others, or that are no longer of length 1 but nearly 0, are left out:
 * count may become 0. */
void null_vectors_orthonormalise(struct null_vectors *n);
void null_vectors_destroy(struct null_vectors *n);

/* to = to less its part along the vectors, in host memory. Returns the square of the norm of that part. */
long double null_vectors_split(const struct null_vectors *n, spmv_type type, void *to);

int64_t null_vectors_bytes(const struct null_vectors *n);

#endif
