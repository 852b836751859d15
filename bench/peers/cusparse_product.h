/* y = A x by cusparseSpMV: what peers share that have such a product. Each has a handle, a matrix
 * descriptor and a buffer of its own: preprocessing leaves its findings in them.
 *
 * Functions that return bool: false when a call failed, with the sentence in why.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CUSPARSE_PRODUCT_H
#define CUSPARSE_PRODUCT_H

#include "peer_cusparse.h"

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
    void *offsets, *index, *values; /* what a format needs besides CSR; NULL: nothing */
};

/* The handle and the vectors; *p was all 0. product_end in any case. */
bool product_begin(struct product *p, const struct peer_problem *problem, cusparseSpMVAlg_t algorithm, char *why,
                   size_t why_size);

/* The matrix as CSR where it lies, and its buffer. */
bool product_make_csr(struct product *p, char *why, size_t why_size);

/* The buffer of the matrix that p->matrix describes. */
bool product_make_buffer(struct product *p, char *why, size_t why_size);

bool product_preprocess(struct product *p, char *why, size_t why_size);

/* Queues it once: 0, or -1 when it failed. */
int product_run(const struct product *p);

/* Releases the matrix and what was made for it. */
void product_drop_matrix(struct product *p);

/* Releases all but *p itself. */
void product_end(struct product *p);

#endif
