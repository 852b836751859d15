/* What the peers on cuBLAS share: the sentence for an error.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PEER_CUBLAS_H
#define PEER_CUBLAS_H

#include <cublas_v2.h>

#include "peer_cuda.h"

/* True when the call failed, with the sentence in why. */
static inline bool bad_blas(cublasStatus_t status, const char *call, char *why, size_t why_size)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return false;
    cudaGetLastError();
    snprintf(why, why_size, "%s: %s (%s)", call, cublasGetStatusString(status), cublasGetStatusName(status));
    return true;
}

#endif
