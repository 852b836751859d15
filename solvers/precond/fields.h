/* The two fields of a system [A B'; B -C], such as velocity and pressure: which rows belong to which, and
 * the four blocks of the matrix.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef FIELDS_H
#define FIELDS_H

#include "core/backend.h"
#include "formats/matrix_internal.h"

struct fields {
    int64_t rows[2];      /* of each field */
    int32_t *row[2];      /* their numbers, ascending */
    uint8_t *of;          /* the field of each row: 0 or 1 */
    int32_t *place;       /* its place in that field */
    double sign;          /* of the diagonal entries of the first field: 1 or -1 */
    bool found;           /* by the diagonal; else given */
    int64_t zeros;        /* rows of the second field whose diagonal entry is 0 or absent */
    spmv_csr a;           /* the matrix in host memory, columns ascending */
    spmv_matrix *ordered; /* its arrays; NULL: they are the caller's */
};

/* Tells the fields apart. name: the preconditioner, for messages.
 *
 *   a         square, in host memory, checked; must outlive f
 *   diagonal  the sum of the diagonal entries of each row
 *   given     the field of each row: two different numbers of 0, 1 and 2, of which the smaller one is
 *             the first field. NULL: the first field are the rows with a positive diagonal entry, or
 *             if there are none, a negative one; the second field are the others. A row of it whose
 *             entry is 0 has no other entries in the columns of the second field.
 *
 * Errors: SPMV_ERROR_UNSUPPORTED (no fields are found), SPMV_ERROR_ARGUMENT (given),
 * SPMV_ERROR_NOT_POSITIVE (diagonal entries of the first field have different signs, or one is 0),
 * SPMV_ERROR_NOT_FINITE, SPMV_ERROR_MEMORY. fields_release after an error too. */
spmv_status fields_tell(spmv_context *ctx, const char *name, const spmv_csr *a, const double *diagonal,
                        const int32_t *given, struct fields *f);
void fields_release(struct fields *f);

/* Whether each row of the second field has an entry other than 0 in the columns of the first. */
bool fields_are_coupled(const struct fields *f);

/* *block: the entries other than 0 in the rows of field i and the columns of field j (-1: of both, in the columns of
 * the matrix), times factor. In the memory of the context; columns ascend; the type of the matrix, f64 for a pattern. */
spmv_status fields_block(spmv_context *ctx, const struct fields *f, int i, int j, double factor, spmv_matrix **block);

/* diagonal[p] = the diagonal entry of row p of G = K_21 D^-1 K_12 - K_22, where K_ij are the blocks and D is the
 * diagonal of K_11. of_rows: the diagonal of K. *symmetric: whether K has the bits of its transpose. */
spmv_status fields_schur_diagonal(spmv_context *ctx, const struct fields *f, const double *of_rows, double *diagonal,
                                  bool *symmetric);

/* *schur = factor G, in the memory of the context. */
spmv_status fields_schur(spmv_context *ctx, const struct fields *f, const double *of_rows, double factor,
                         spmv_matrix **schur);

/* Whether K_22 has entries other than 0. */
bool fields_have_second_block(const struct fields *f);

/* The largest sum of absolute values beside the diagonal of a row of K_11, over its diagonal entry. */
double fields_heaviest(const struct fields *f, const double *of_rows);

/* The number of unknowns of a node that do not occur in each other's rows of the first field (rows k b + c, columns
 * l b + c), such as the components of a vector Laplacian; 1: none. */
int fields_components(const struct fields *f);

#endif
