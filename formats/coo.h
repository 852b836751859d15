/* Coordinate entries into CSR, for files of formats/ and formats/io/.
 *
 * The entries come in chunks (one a parser thread, say), which together are one list in the order of the chunks: "the
 * order given" below. A chunk's arrays are only read.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef COO_H
#define COO_H

#include "matrix_internal.h"

struct coo_chunk {
    int64_t n;
    const void *row;    /* n rows of row_bits bits, signed */
    const int32_t *col; /* n columns */
    const void *val;    /* n values of the type; not read for a pattern */
};

/* What else an entry (i, j) off the diagonal stores at (j, i): nothing, its value, its value negated, or its conjugate.
 */
enum coo_mirror { COO_MIRROR_NONE = 0, COO_MIRROR_SAME = 1, COO_MIRROR_NEGATED = 2, COO_MIRROR_CONJUGATE = 3 };

struct coo {
    int64_t rows, cols; /* equal when there is a mirror */
    spmv_type type;
    bool pattern;
    int row_bits; /* 32 or 64 */
    enum coo_mirror mirror;
    int64_t chunks;
    const struct coo_chunk *chunk;
};

/* The matrix of the entries: columns sorted in each row, entries at the same place added from the first to the last in
 * the order given (a pattern's become one), explicit zeros kept. An entry and its mirror are entries of two places;
 * there is no second copy of them. Every index must be inside (0 <= row < rows, 0 <= col < cols): that is for the
 * caller to check. *duplicates (may be NULL): how many of the entries were added into another; an entry and its mirror
 * count once. The result does not depend on the number of threads nor on how the list is cut into chunks. Beside the
 * entries it needs at most about twice the memory of the result. Errors: SPMV_ERROR_MEMORY, SPMV_ERROR_LIMIT (as
 * matrix_allocate); *matrix is then NULL. */
spmv_status coo_to_matrix(spmv_context *ctx, const struct coo *coo, spmv_matrix **matrix, int64_t *duplicates);

#endif
