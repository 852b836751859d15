/* The product of cusparse_product.h.
 *
 * Source: the cuSPARSE documentation, "Generic APIs".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/peers/cusparse_product.h"

enum { TRIALS = 10 }; /* products */

static const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;

bool product_begin(struct product *p, const struct peer_problem *problem, cusparseSpMVAlg_t algorithm, char *why,
                   size_t why_size)
{
    p->problem = *problem;
    p->stream = problem->stream;
    p->type = sparse_type(problem);
    p->algorithm = algorithm;
    return sparse_handle(p->stream, &p->handle, why, why_size) &&
           !bad_sparse(cusparseCreateConstDnVec(&p->x, problem->cols, problem->x, p->type), "cusparseCreateConstDnVec",
                       why, why_size) &&
           !bad_sparse(cusparseCreateDnVec(&p->y, problem->rows, problem->y, p->type), "cusparseCreateDnVec", why,
                       why_size);
}

bool product_make_csr(struct product *p, char *why, size_t why_size)
{
    return sparse_csr(&p->problem, &p->matrix, why, why_size) && product_make_buffer(p, why, why_size);
}

bool product_make_buffer(struct product *p, char *why, size_t why_size)
{
    size_t bytes = 0;
    return !bad_sparse(cusparseSpMV_bufferSize(p->handle, plain, sparse_scalar(p->type, 1), p->matrix, p->x,
                                               sparse_scalar(p->type, 0), p->y, sparse_sums(p->type), p->algorithm,
                                               &bytes),
                       "cusparseSpMV_bufferSize", why, why_size) &&
           !bad_cuda(device_alloc(bytes, &p->buffer), "cudaMalloc", why, why_size);
}

bool product_preprocess(struct product *p, char *why, size_t why_size)
{
    return !bad_sparse(cusparseSpMV_preprocess(p->handle, plain, sparse_scalar(p->type, 1), p->matrix, p->x,
                                               sparse_scalar(p->type, 0), p->y, sparse_sums(p->type), p->algorithm,
                                               p->buffer),
                       "cusparseSpMV_preprocess", why, why_size);
}

int product_run(const struct product *p)
{
    const cusparseStatus_t status =
        cusparseSpMV(p->handle, plain, sparse_scalar(p->type, 1), p->matrix, p->x, sparse_scalar(p->type, 0), p->y,
                     sparse_sums(p->type), p->algorithm, p->buffer);
    return status == CUSPARSE_STATUS_SUCCESS ? 0 : -1;
}

/* The trial, between two events. */
static bool time_between(const struct product *p, cudaEvent_t begins, cudaEvent_t ends, float *milliseconds, char *why,
                         size_t why_size)
{
    int failed = product_run(p);
    if (bad_cuda(cudaEventRecord(begins, p->stream), "cudaEventRecord", why, why_size))
        return false;
    for (int t = 0; t < TRIALS && failed == 0; t++)
        failed = product_run(p);
    if (failed != 0) {
        snprintf(why, why_size, "cusparseSpMV failed in a trial");
        cudaStreamSynchronize(p->stream);
        return false;
    }
    return !bad_cuda(cudaEventRecord(ends, p->stream), "cudaEventRecord", why, why_size) &&
           !bad_cuda(cudaEventSynchronize(ends), "cudaEventSynchronize", why, why_size) &&
           !bad_cuda(cudaEventElapsedTime(milliseconds, begins, ends), "cudaEventElapsedTime", why, why_size);
}

bool product_time(const struct product *p, float *milliseconds, char *why, size_t why_size)
{
    cudaEvent_t begins = NULL, ends = NULL;
    const bool fine = !bad_cuda(cudaEventCreate(&begins), "cudaEventCreate", why, why_size) &&
                      !bad_cuda(cudaEventCreate(&ends), "cudaEventCreate", why, why_size) &&
                      time_between(p, begins, ends, milliseconds, why, why_size);
    if (begins != NULL)
        cudaEventDestroy(begins);
    if (ends != NULL)
        cudaEventDestroy(ends);
    return fine;
}

void product_drop_matrix(struct product *p)
{
    destroy_made(cusparseDestroySpMat, p->matrix);
    void *const memory[] = {p->buffer, p->offsets, p->index, p->values};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        cudaFree(memory[i]);
    p->matrix = NULL;
    p->buffer = p->offsets = p->index = p->values = NULL;
}

void product_end(struct product *p)
{
    product_drop_matrix(p);
    destroy_made(cusparseDestroyDnVec, p->x);
    destroy_made(cusparseDestroyDnVec, p->y);
    destroy_made(cusparseDestroy, p->handle);
}
