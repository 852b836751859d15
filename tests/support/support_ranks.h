/* The rows that a rank gives, and matrices of a group whose columns have 64 bits until they are renumbered, whatever
 * their number is.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_RANKS_H
#define SUPPORT_RANKS_H

#include <spmv/group.h>
#include <stdlib.h>

#include "distributed/group_internal.h"

/* Rows begin ... end - 1 of a matrix in host memory; offsets: end - begin + 1 numbers. */
static inline spmv_csr support_rows_of(const spmv_csr *a, int64_t begin, int64_t end, int64_t *offsets)
{
    const int64_t *const row_ptr = a->row_ptr;
    spmv_csr own = *a;
    for (int64_t i = begin; i <= end; i++)
        offsets[i - begin] = row_ptr[i] - row_ptr[begin];
    own.rows = end - begin;
    own.nnz = row_ptr[end] - row_ptr[begin];
    own.row_ptr = offsets;
    own.col = a->col != NULL ? a->col + row_ptr[begin] : NULL;
    own.val = a->val != NULL ? (const char *)a->val + (size_t)row_ptr[begin] * spmv_type_size(a->type) : NULL;
    return own;
}

/* Together: as spmv_group_matrix_create; wide: the same on all ranks. */
static inline spmv_status support_group_matrix(spmv_group *group, bool wide, const spmv_csr *own,
                                               const spmv_group_matrix_options *options, spmv_group_matrix **m)
{
    if (!wide)
        return spmv_group_matrix_create(group, own, options, m);
    int64_t *col = malloc(((size_t)own->nnz + 1) * sizeof *col);
    const struct group_given given = {
        .call = "spmv_group_matrix_create_wide", .own = own, .has_wide = true, .stays_wide = true, .wide_col = col};
    for (int64_t k = 0; k < own->nnz; k++)
        col[k] = own->col[k];
    group_begin(group);
    const spmv_status st = group_end(group, group_matrix_make(group, &given, options, m));
    if (st == SPMV_OK)
        (*m)->takes_values = true;
    free(col);
    return st;
}

#endif
