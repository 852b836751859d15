/* The matrix of an operation: its values in the type, a copy in the context's memory, and plans.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_WORK_MATRIX_H
#define BENCH_WORK_MATRIX_H

#include "bench/ops/work.h"

struct work_matrix {
    spmv_csr host; /* the operand with values of the type */
    spmv_csr sent; /* its copy in the context's memory */
};

/* Makes both of a matrix like the operand's, and the problem's arrays of A or of B. work_close
 * releases the memory. */
spmv_status work_send_matrix(struct work *work, const spmv_csr *from, struct work_matrix *matrix);
spmv_status work_send_right(struct work *work, const spmv_csr *from, struct work_matrix *matrix);

/* Makes the plan for products with this many vectors by one of spmv's methods ("auto": the
 * default). */
spmv_status work_make_plan(struct work *work, const struct work_matrix *matrix, int vectors, const char *method,
                           spmv_plan **plan, spmv_plan_info *info);

#endif
