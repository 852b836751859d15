/* Converts coordinate entries to CSR, for files of formats/ and formats/io/.
 *
 * The entries come in portions, for example one per parser thread. The portions in order form one
 * list; "list order" below means the order in it. The arrays of a portion are only read.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef COO_H
#define COO_H

#include "formats/matrix_internal.h"

struct coo_portion {
    int64_t n;
    const void *row;    /* n rows of row_bits bits, signed */
    const int32_t *col; /* n columns */
    const void *val;    /* n values of the type; not read for a pattern */
};

/* What an entry (i, j) off the diagonal also stores at (j, i): nothing, its value, its value
 * negated, or its conjugate. */
enum coo_mirror { COO_MIRROR_NONE = 0, COO_MIRROR_SAME = 1, COO_MIRROR_NEGATED = 2, COO_MIRROR_CONJUGATE = 3 };

struct coo {
    int64_t rows, cols; /* equal if there is a mirror */
    spmv_type type;
    bool pattern;
    int row_bits; /* 32 or 64 */
    enum coo_mirror mirror;
    int64_t portions;
    const struct coo_portion *portion;
};

/* Makes the matrix of the entries. Columns are sorted in each row. Entries at the same position are
 * added in list order; in a pattern they become one. Explicit zeros are kept. An entry and its
 * mirror are stored at two positions and are not added.
 *
 * Every index must be valid (0 <= row < rows, 0 <= col < cols); the caller checks this. *duplicates
 * (may be NULL): the number of entries that were added to another one; an entry and its mirror
 * count once. The result does not depend on the number of threads or on how the list is cut into
 * portions. Besides the entries, the function needs at most about twice the memory of the result.
 * Errors: SPMV_ERROR_MEMORY, SPMV_ERROR_LIMIT (as matrix_allocate); *matrix is then NULL. */
spmv_status coo_to_matrix(spmv_context *ctx, const struct coo *coo, spmv_matrix **matrix, int64_t *duplicates);

#endif
