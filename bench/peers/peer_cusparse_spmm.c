/* cuSPARSE: Y = A X for several vectors by cusparseSpMM on CSR.
 *
 * X and Y are used as the problem stores them. If they are stored row by row, an algorithm for which the
 * library recommends columns is measured both ways. The buffer is preprocessed once.
 *
 * Source: the cuSPARSE documentation, "cusparseSpMM".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "bench/peers/peer_cusparse.h"
#include "bench/peers/turn.h"

struct spmm {
    struct peer_problem problem;
    cudaStream_t stream;
    cusparseHandle_t handle;
    cusparseConstSpMatDescr_t matrix;
    cusparseConstDnMatDescr_t x;
    cusparseDnMatDescr_t y;
    cudaDataType type;
    cusparseSpMMAlg_t algorithm;
    bool by_columns; /* x_columns and y_columns are used in place of the problem's arrays by rows */
    void *buffer, *x_columns, *y_columns;
};

static bool make_columns(struct spmm *p, char *why, size_t why_size)
{
    const struct peer_problem *const q = &p->problem;
    const size_t each = sparse_size(p->type) * (size_t)q->vectors;
    return !bad_cuda(device_alloc((size_t)q->cols * each, &p->x_columns), "cudaMalloc", why, why_size) &&
           !bad_cuda(device_alloc((size_t)q->rows * each, &p->y_columns), "cudaMalloc", why, why_size) &&
           !bad_cuda(turn_rows(p->stream, q->cols, q->vectors, (int)sparse_size(p->type), q->x, p->x_columns),
                     "a kernel that turns x", why, why_size);
}

static bool describe(struct spmm *p, char *why, size_t why_size)
{
    const struct peer_problem *const q = &p->problem;
    const bool columns = p->by_columns || q->by_columns;
    const cusparseOrder_t order = columns ? CUSPARSE_ORDER_COL : CUSPARSE_ORDER_ROW;
    const int64_t x_lead = columns ? q->cols : q->vectors, y_lead = columns ? q->rows : q->vectors;
    return sparse_csr(q, &p->matrix, why, why_size) &&
           !bad_sparse(cusparseCreateConstDnMat(&p->x, q->cols, q->vectors, x_lead, p->by_columns ? p->x_columns : q->x,
                                                p->type, order),
                       "cusparseCreateConstDnMat", why, why_size) &&
           !bad_sparse(cusparseCreateDnMat(&p->y, q->rows, q->vectors, y_lead, p->by_columns ? p->y_columns : q->y,
                                           p->type, order),
                       "cusparseCreateDnMat", why, why_size);
}

/* Makes the buffer and preprocesses the matrix. */
static bool prepare(struct spmm *p, char *why, size_t why_size)
{
    const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
    const void *const one = sparse_scalar(p->type, 1), *const zero = sparse_scalar(p->type, 0);
    size_t bytes = 0;
    return !bad_sparse(cusparseSpMM_bufferSize(p->handle, plain, plain, one, p->matrix, p->x, zero, p->y,
                                               sparse_sums(p->type), p->algorithm, &bytes),
                       "cusparseSpMM_bufferSize", why, why_size) &&
           !bad_cuda(device_alloc(bytes, &p->buffer), "cudaMalloc", why, why_size) &&
           !bad_sparse(cusparseSpMM_preprocess(p->handle, plain, plain, one, p->matrix, p->x, zero, p->y,
                                               sparse_sums(p->type), p->algorithm, p->buffer),
                       "cusparseSpMM_preprocess", why, why_size) &&
           !bad_cuda(cudaStreamSynchronize(p->stream), "cudaStreamSynchronize", why, why_size);
}

void spmm_close(void *state)
{
    struct spmm *const p = state;
    if (p == NULL)
        return;
    destroy_made(cusparseDestroySpMat, p->matrix);
    destroy_made(cusparseDestroyDnMat, p->x);
    destroy_made(cusparseDestroyDnMat, p->y);
    destroy_made(cusparseDestroy, p->handle);
    cudaFree(p->buffer);
    cudaFree(p->x_columns);
    cudaFree(p->y_columns);
    free(p);
}

int spmm_open(const struct peer_problem *problem, cusparseSpMMAlg_t algorithm, bool by_columns, void **state, char *why,
              size_t why_size)
{
    struct spmm *const p = new_state(sizeof *p, why, why_size);
    if (p == NULL)
        return -1;
    if (by_columns && problem->by_columns) {
        snprintf(why, why_size, "all algorithms have columns here");
        free(p);
        return -1;
    }
    p->problem = *problem;
    p->stream = problem->stream;
    p->type = sparse_type(problem);
    p->algorithm = algorithm;
    p->by_columns = by_columns;
    if (sparse_handle(p->stream, &p->handle, why, why_size) && (!by_columns || make_columns(p, why, why_size)) &&
        describe(p, why, why_size) && prepare(p, why, why_size)) {
        *state = p;
        return 0;
    }
    spmm_close(p);
    return -1;
}

int spmm_run(void *state)
{
    const struct spmm *const p = state;
    return cusparseSpMM(p->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE,
                        sparse_scalar(p->type, 1), p->matrix, p->x, sparse_scalar(p->type, 0), p->y,
                        sparse_sums(p->type), p->algorithm, p->buffer) == CUSPARSE_STATUS_SUCCESS
               ? 0
               : -1;
}

int spmm_fetch(void *state)
{
    const struct spmm *const p = state;
    const struct peer_problem *const q = &p->problem;
    return !p->by_columns || turn_rows(p->stream, q->vectors, q->rows, (int)sparse_size(p->type), p->y_columns, q->y) ==
                                 cudaSuccess
               ? 0
               : -1;
}
