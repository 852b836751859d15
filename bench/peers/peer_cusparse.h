/* Code common to peers with cuSPARSE: error messages, scalars, handles, the matrix as CSR, and
 * products of several vectors (peer_cusparse_spmm.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PEER_CUSPARSE_H
#define PEER_CUSPARSE_H

#include <cusparse.h>

#include "bench/peers/peer.h"
#include "bench/peers/peer_cuda.h"

/* True if the call failed, with a message in why. */
static inline bool bad_sparse(cusparseStatus_t status, const char *call, char *why, size_t why_size)
{
    return bad_call(status == CUSPARSE_STATUS_SUCCESS, call, cusparseGetErrorString(status),
                    cusparseGetErrorName(status), why, why_size);
}

/* "cuSPARSE 12.6.3", the version of the loaded library; without numbers if it is unknown.
 * cusparseGetVersion would need a GPU. */
static inline void sparse_version(char *text, size_t size)
{
    int version[3] = {0, 0, 0};
    library_version("cuSPARSE", get_version(cusparseGetProperty, version), version, text, size);
}

/* The type of sums and scalars of a type of values and vectors. */
static inline cudaDataType sparse_sums(cudaDataType type)
{
    return type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F;
}

/* The constant -1, 0 or 1 in the type of the sums. */
static inline const void *sparse_scalar(cudaDataType type, int value)
{
    static const float f32[] = {-1, 0, 1};
    static const double f64[] = {-1, 0, 1};
    return type == CUDA_R_64F ? (const void *)&f64[value + 1] : (const void *)&f32[value + 1];
}

static inline cudaDataType sparse_type(const struct peer_problem *problem)
{
    return problem->type == SPMV_BF16  ? CUDA_R_16BF
           : problem->type == SPMV_F16 ? CUDA_R_16F
           : problem->type == SPMV_F32 ? CUDA_R_32F
                                       : CUDA_R_64F;
}

static inline size_t sparse_size(cudaDataType type)
{
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

/* Makes a handle on the stream, whose device becomes the current one. Scalars are in host
 * memory. */
static inline bool sparse_handle(cudaStream_t stream, cusparseHandle_t *handle, char *why, size_t why_size)
{
    return !bad_cuda(use_device_of(stream), "cudaSetDevice", why, why_size) &&
           !bad_sparse(cusparseCreate(handle), "cusparseCreate", why, why_size) &&
           !bad_sparse(cusparseSetStream(*handle, stream), "cusparseSetStream", why, why_size) &&
           !bad_sparse(cusparseSetPointerMode(*handle, CUSPARSE_POINTER_MODE_HOST), "cusparseSetPointerMode", why,
                       why_size);
}

/* Describes a matrix as CSR without copying it. */
static inline bool sparse_csr_of(cudaDataType type, int64_t rows, int64_t cols, int64_t nnz, const int32_t *row_ptr,
                                 const int32_t *col, const void *val, cusparseConstSpMatDescr_t *matrix, char *why,
                                 size_t why_size)
{
    return !bad_sparse(cusparseCreateConstCsr(matrix, rows, cols, nnz, row_ptr, col, val, CUSPARSE_INDEX_32I,
                                              CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type),
                       "cusparseCreateConstCsr", why, why_size);
}

/* The same for the problem's matrix. */
static inline bool sparse_csr(const struct peer_problem *q, cusparseConstSpMatDescr_t *matrix, char *why,
                              size_t why_size)
{
    return sparse_csr_of(sparse_type(q), q->rows, q->cols, q->nnz, q->row_ptr, q->col, q->val, matrix, why, why_size);
}

/* Y = A X by cusparseSpMM. by_columns: X and Y are converted to column order, and Y back when it is
 * fetched. */
int spmm_open(const struct peer_problem *problem, cusparseSpMMAlg_t algorithm, bool by_columns, void **state, char *why,
              size_t why_size);
int spmm_run(void *state);
int spmm_fetch(void *state);
void spmm_close(void *state);

/* Y = A B' at the entries of a pattern by cusparseSDDMM. */
int sddmm_open(const struct peer_problem *problem, void **state, char *why, size_t why_size);
int sddmm_run(void *state);
void sddmm_close(void *state);

#endif
