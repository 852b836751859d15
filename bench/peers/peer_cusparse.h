/* What the peers on cuSPARSE share: the sentence for an error, scalars, and products of several vectors
 * (peer_cusparse_spmm.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PEER_CUSPARSE_H
#define PEER_CUSPARSE_H

#include <cusparse.h>

#include "peer.h"
#include "peer_cuda.h"

/* True when the call failed, with the sentence in why. */
static inline bool bad_sparse(cusparseStatus_t status, const char *call, char *why, size_t why_size)
{
    if (status == CUSPARSE_STATUS_SUCCESS)
        return false;
    cudaGetLastError();
    snprintf(why, why_size, "%s: %s (%s)", call, cusparseGetErrorString(status), cusparseGetErrorName(status));
    return true;
}

/* 1 and 0 in the type. */
static inline const void *sparse_scalar(cudaDataType type, int value)
{
    static const float f32[] = {0, 1};
    static const double f64[] = {0, 1};
    return type == CUDA_R_32F ? (const void *)&f32[value] : (const void *)&f64[value];
}

/* Y = A X by cusparseSpMM. by_columns: X and Y are brought into columns, and Y back when it is fetched. */
int spmm_open(const struct peer_problem *problem, cusparseSpMMAlg_t algorithm, bool by_columns, void **state, char *why,
              size_t why_size);
int spmm_run(void *state);
int spmm_fetch(void *state);
void spmm_close(void *state);

#endif
