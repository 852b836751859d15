/* Preconditioners that are products of two sparse triangles: the triangles on the host, and their
 * solves.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRECOND_TRIANGLES_H
#define PRECOND_TRIANGLES_H

#include "solvers/precond/precond_internal.h"

/* A square matrix or a triangle in CSR, in host memory, in f64. Columns ascend, and every row has
 * its diagonal entry. */
struct host_rows {
    int64_t rows;
    int64_t *ptr; /* rows + 1 */
    int32_t *col;
    double *val;
};

/* Allocates rows with this many entries, and sets ptr[0]. */
spmv_status host_rows_alloc(spmv_context *ctx, int64_t rows, int64_t entries, struct host_rows *t);
void host_rows_release(struct host_rows *t);

/* The lower triangle of source->host, or all of it. Repeated entries are added. A missing diagonal
 * entry becomes 0. */
enum take { TAKE_LOWER, TAKE_ALL };
spmv_status host_rows_take(spmv_context *ctx, const struct precond_source *source, enum take part, struct host_rows *t);

/* For a row whose entries are sought in another row: whether it is so much shorter that searching
 * for each of its columns takes less time than visiting the other row. Without that, a factorisation
 * with a few full rows and columns takes time in proportion to the square of the rows. */
enum { SEARCH_WORK = 32 };

static inline bool is_shorter(int64_t entries, int64_t than)
{
    return entries < than / SEARCH_WORK;
}

/* The first place from begin to end - 1 with a column of at least col; end if there is none. */
static inline int64_t place_of_column(const int32_t *column, int64_t begin, int64_t end, int32_t col)
{
    while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;
        if (column[middle] < col)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Lets m apply z = Q U^-1 L^-1 r: sets self, apply, destroy and levels, and adds the levels to
 * layout. Both triangles are copied and then released, one after the other; their columns may be in
 * any order.
 *
 *   order   rows in the order of elimination: row order[p] of lower has no entry in the columns
 *           order[p + 1], order[p + 2], ..., and row order[p] of upper none in order[p - 1], ...;
 *           NULL: 0, 1, 2, ...
 *   column  z[column[j]] = (U^-1 L^-1 r)[j], a permutation; NULL: Q is the identity
 *
 * Errors: SPMV_ERROR_NOT_FINITE if an entry, or the reciprocal of a diagonal entry, is not finite
 * in m's type. */
spmv_status triangles_make(spmv_preconditioner *m, struct host_rows *lower, struct host_rows *upper,
                           const int32_t *order, const int32_t *column);

#endif
