/* The matrix of an operation on a matrix: its values in the type, a copy in the context's memory,
 * and plans.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_WORK_MATRIX_H
#define BENCH_WORK_MATRIX_H

#include "work.h"

struct work_matrix {
    spmv_csr host; /* the operand's, with values of the type */
    spmv_csr sent; /* the same in the context's memory */
};

/* Makes both, and the problem's arrays. work_close releases the memory. */
spmv_status work_send_matrix(struct work *work, struct work_matrix *matrix);

/* The plan of a product with that many vectors by a method of ours ("auto": the default). */
spmv_status work_make_plan(struct work *work, const struct work_matrix *matrix, int vectors, const char *method,
                           spmv_plan **plan, spmv_plan_info *info);

#endif
