/* cuSPARSE: Y = A B' at the entries of a pattern by cusparseSDDMM on CSR.
 *
 * A and B are stored row by row, and B is transposed by the operation. The buffer is preprocessed once.
 *
 * Source: the cuSPARSE documentation, "cusparseSDDMM".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "bench/peers/peer_cusparse.h"

struct sddmm {
    cudaStream_t stream;
    cusparseHandle_t handle;
    cusparseConstDnMatDescr_t a, b;
    cusparseSpMatDescr_t y;
    cudaDataType type;
    void *buffer;
};

static bool describe(struct sddmm *p, const struct peer_problem *q, char *why, size_t why_size)
{
    return !bad_sparse(
               cusparseCreateConstDnMat(&p->a, q->rows, q->vectors, q->vectors, q->w, p->type, CUSPARSE_ORDER_ROW),
               "cusparseCreateConstDnMat", why, why_size) &&
           !bad_sparse(
               cusparseCreateConstDnMat(&p->b, q->cols, q->vectors, q->vectors, q->x, p->type, CUSPARSE_ORDER_ROW),
               "cusparseCreateConstDnMat", why, why_size) &&
           !bad_sparse(cusparseCreateCsr(&p->y, q->rows, q->cols, q->nnz, (void *)(uintptr_t)q->row_ptr,
                                         (void *)(uintptr_t)q->col, q->y, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                         CUSPARSE_INDEX_BASE_ZERO, p->type),
                       "cusparseCreateCsr", why, why_size);
}

static bool prepare(struct sddmm *p, char *why, size_t why_size)
{
    const void *const one = sparse_scalar(p->type, 1), *const zero = sparse_scalar(p->type, 0);
    size_t bytes = 0;
    return !bad_sparse(cusparseSDDMM_bufferSize(p->handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                                CUSPARSE_OPERATION_TRANSPOSE, one, p->a, p->b, zero, p->y,
                                                sparse_sums(p->type), CUSPARSE_SDDMM_ALG_DEFAULT, &bytes),
                       "cusparseSDDMM_bufferSize", why, why_size) &&
           !bad_cuda(device_alloc(bytes, &p->buffer), "cudaMalloc", why, why_size) &&
           !bad_sparse(cusparseSDDMM_preprocess(p->handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                                CUSPARSE_OPERATION_TRANSPOSE, one, p->a, p->b, zero, p->y,
                                                sparse_sums(p->type), CUSPARSE_SDDMM_ALG_DEFAULT, p->buffer),
                       "cusparseSDDMM_preprocess", why, why_size) &&
           !bad_cuda(cudaStreamSynchronize(p->stream), "cudaStreamSynchronize", why, why_size);
}

void sddmm_close(void *state)
{
    struct sddmm *const p = state;
    if (p == NULL)
        return;
    destroy_made(cusparseDestroySpMat, p->y);
    destroy_made(cusparseDestroyDnMat, p->a);
    destroy_made(cusparseDestroyDnMat, p->b);
    destroy_made(cusparseDestroy, p->handle);
    cudaFree(p->buffer);
    free(p);
}

int sddmm_open(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    struct sddmm *const p = new_state(sizeof *p, why, why_size);
    if (p == NULL)
        return -1;
    p->stream = problem->stream;
    p->type = sparse_type(problem);
    if (sparse_handle(p->stream, &p->handle, why, why_size) && describe(p, problem, why, why_size) &&
        prepare(p, why, why_size)) {
        *state = p;
        return 0;
    }
    sddmm_close(p);
    return -1;
}

int sddmm_run(void *state)
{
    const struct sddmm *const p = state;
    return cusparseSDDMM(p->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_TRANSPOSE,
                         sparse_scalar(p->type, 1), p->a, p->b, sparse_scalar(p->type, 0), p->y, sparse_sums(p->type),
                         CUSPARSE_SDDMM_ALG_DEFAULT, p->buffer) == CUSPARSE_STATUS_SUCCESS
               ? 0
               : -1;
}
