/* y = A x by cusparseSpMV: the code common to peers with such a product. Each peer has its own
 * handle, matrix descriptor and buffer, because preprocessing stores its results in them.
 *
 * Functions that return bool return false after a failed call, with a message in why.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CUSPARSE_PRODUCT_H
#define CUSPARSE_PRODUCT_H

#include "bench/peers/peer_cusparse.h"

#ifdef __cplusplus
extern "C" {
#endif

struct product {
    struct peer_problem problem;
    cudaStream_t stream;
    cusparseHandle_t handle;
    cusparseConstSpMatDescr_t matrix;
    cusparseConstDnVecDescr_t x;
    cusparseDnVecDescr_t y;
    cudaDataType type;
    cusparseSpMVAlg_t algorithm;
    void *buffer;
    void *offsets, *index, *values; /* arrays of formats other than CSR; NULL: not needed */
};

/* Makes the handle and the vectors; *p must be all 0. Call product_end in any case. */
bool product_begin(struct product *p, const struct peer_problem *problem, cusparseSpMVAlg_t algorithm, char *why,
                   size_t why_size);

/* Makes the matrix as CSR of the problem's arrays, and its buffer. */
bool product_make_csr(struct product *p, char *why, size_t why_size);

/* Makes the buffer for the matrix that p->matrix describes. */
bool product_make_buffer(struct product *p, char *why, size_t why_size);

bool product_preprocess(struct product *p, char *why, size_t why_size);

/* Queues the product once. Returns 0, or -1 after a failure. */
int product_run(const struct product *p);

/* *milliseconds of a trial of products, after a warm-up. Waits. */
bool product_time(const struct product *p, float *milliseconds, char *why, size_t why_size);

/* Releases the matrix and its arrays. */
void product_drop_matrix(struct product *p);

/* Releases everything except *p itself. */
void product_end(struct product *p);

#ifdef __cplusplus
}
#endif

#endif
