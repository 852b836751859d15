/* cuSPARSE and cuBLAS one after the other: y = A x by cusparseSpMV, preprocessed, and w'y by cublasDdot or cublasSdot,
 * its result left on the device: what a conjugate gradients step costs with these libraries.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cublas_v2.h>
#include <stdlib.h>

#include "peer_cusparse.h"

/* name, peer, algorithm, settings */
#define VARIANT_LIST(X)                                                                                                \
    X(alg1, "cublas-dot-alg1", CUSPARSE_SPMV_CSR_ALG1, "CSR_ALG1, preprocessed")                                       \
    X(alg2, "cublas-dot-alg2", CUSPARSE_SPMV_CSR_ALG2, "CSR_ALG2, preprocessed")

struct product {
    struct peer_problem problem;
    cudaStream_t stream;
    cusparseHandle_t sparse;
    cublasHandle_t blas;
    cusparseConstSpMatDescr_t matrix;
    cusparseConstDnVecDescr_t x;
    cusparseDnVecDescr_t y;
    cudaDataType type;
    cusparseSpMVAlg_t algorithm;
    void *buffer;
};

static bool bad_blas(cublasStatus_t status, const char *call, char *why, size_t why_size)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return false;
    cudaGetLastError();
    snprintf(why, why_size, "%s: %s", call, cublasGetStatusString(status));
    return true;
}

static bool begin(struct product *p, char *why, size_t why_size)
{
    const struct peer_problem *const q = &p->problem;
    return !bad_cuda(use_device_of(p->stream), "cudaSetDevice", why, why_size) &&
           !bad_sparse(cusparseCreate(&p->sparse), "cusparseCreate", why, why_size) &&
           !bad_sparse(cusparseSetStream(p->sparse, p->stream), "cusparseSetStream", why, why_size) &&
           !bad_sparse(cusparseSetPointerMode(p->sparse, CUSPARSE_POINTER_MODE_HOST), "cusparseSetPointerMode", why,
                       why_size) &&
           !bad_blas(cublasCreate(&p->blas), "cublasCreate", why, why_size) &&
           !bad_blas(cublasSetStream(p->blas, p->stream), "cublasSetStream", why, why_size) &&
           !bad_blas(cublasSetPointerMode(p->blas, CUBLAS_POINTER_MODE_DEVICE), "cublasSetPointerMode", why,
                     why_size) &&
           !bad_sparse(cusparseCreateConstDnVec(&p->x, q->cols, q->x, p->type), "cusparseCreateConstDnVec", why,
                       why_size) &&
           !bad_sparse(cusparseCreateDnVec(&p->y, q->rows, q->y, p->type), "cusparseCreateDnVec", why, why_size) &&
           !bad_sparse(cusparseCreateConstCsr(&p->matrix, q->rows, q->cols, q->nnz, q->row_ptr, q->col, q->val,
                                              CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                              p->type),
                       "cusparseCreateConstCsr", why, why_size);
}

static bool prepare(struct product *p, char *why, size_t why_size)
{
    const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
    const void *const one = sparse_scalar(p->type, 1), *const zero = sparse_scalar(p->type, 0);
    size_t bytes = 0;
    return !bad_sparse(cusparseSpMV_bufferSize(p->sparse, plain, one, p->matrix, p->x, zero, p->y, p->type,
                                               p->algorithm, &bytes),
                       "cusparseSpMV_bufferSize", why, why_size) &&
           !bad_cuda(device_alloc(bytes, &p->buffer), "cudaMalloc", why, why_size) &&
           !bad_sparse(cusparseSpMV_preprocess(p->sparse, plain, one, p->matrix, p->x, zero, p->y, p->type,
                                               p->algorithm, p->buffer),
                       "cusparseSpMV_preprocess", why, why_size) &&
           !bad_cuda(cudaStreamSynchronize(p->stream), "cudaStreamSynchronize", why, why_size);
}

static void close_product(void *state)
{
    struct product *const p = state;
    if (p == NULL)
        return;
    if (p->matrix != NULL)
        cusparseDestroySpMat(p->matrix);
    if (p->x != NULL)
        cusparseDestroyDnVec(p->x);
    if (p->y != NULL)
        cusparseDestroyDnVec(p->y);
    if (p->sparse != NULL)
        cusparseDestroy(p->sparse);
    if (p->blas != NULL)
        cublasDestroy(p->blas);
    cudaFree(p->buffer);
    free(p);
}

static int open_product(const struct peer_problem *problem, cusparseSpMVAlg_t algorithm, void **state, char *why,
                        size_t why_size)
{
    struct product *const p = calloc(1, sizeof *p);
    if (p == NULL) {
        snprintf(why, why_size, "no memory");
        return -1;
    }
    p->problem = *problem;
    p->stream = problem->stream;
    p->type = problem->type == SPMV_F32 ? CUDA_R_32F : CUDA_R_64F;
    p->algorithm = algorithm;
    if (begin(p, why, why_size) && prepare(p, why, why_size)) {
        *state = p;
        return 0;
    }
    close_product(p);
    return -1;
}

static int run_product(void *state)
{
    const struct product *const p = state;
    const struct peer_problem *const q = &p->problem;
    const int n = (int)q->rows; /* fewer than 2^31: row_ptr has 32 bits, and rows without entries are few */
    if (cusparseSpMV(p->sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, sparse_scalar(p->type, 1), p->matrix, p->x,
                     sparse_scalar(p->type, 0), p->y, p->type, p->algorithm, p->buffer) != CUSPARSE_STATUS_SUCCESS)
        return -1;
    return (p->type == CUDA_R_32F
                ? cublasSdot(p->blas, n, q->w, 1, q->y, 1, (float *)q->y + n)
                : cublasDdot(p->blas, n, q->w, 1, q->y, 1, (double *)q->y + n)) == CUBLAS_STATUS_SUCCESS
               ? 0
               : -1;
}

#define OPEN_(name, peer, algorithm, settings)                                                                         \
    static int open_##name(const struct peer_problem *problem, void **state, char *why, size_t why_size)               \
    {                                                                                                                  \
        return open_product(problem, algorithm, state, why, why_size);                                                 \
    }
VARIANT_LIST(OPEN_)
#undef OPEN_

#define PEER_(name, peer, algorithm, settings)                                                                         \
    {peer, PEER_SPMV_DOT, "cusparseSpMV: CSR, " settings "; cublas dot", 0, open_##name, run_product, NULL,            \
     NULL, close_product},
static const struct peer peers[] = {VARIANT_LIST(PEER_)};
#undef PEER_

const struct peer_module *spmv_peer_module(void)
{
    static char library[80];
    static const struct peer_module module = {PEER_ABI, library, peers, sizeof peers / sizeof peers[0]};
    int version[2][3] = {{0}};
    cusparseGetProperty(MAJOR_VERSION, &version[0][0]);
    cusparseGetProperty(MINOR_VERSION, &version[0][1]);
    cusparseGetProperty(PATCH_LEVEL, &version[0][2]);
    cublasGetProperty(MAJOR_VERSION, &version[1][0]);
    cublasGetProperty(MINOR_VERSION, &version[1][1]);
    cublasGetProperty(PATCH_LEVEL, &version[1][2]);
    snprintf(library, sizeof library, "cuSPARSE %d.%d.%d and cuBLAS %d.%d.%d", version[0][0], version[0][1],
             version[0][2], version[1][0], version[1][1], version[1][2]);
    return &module;
}
