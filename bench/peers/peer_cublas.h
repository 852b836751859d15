/* What the peers on cuBLAS share: the sentence for an error, and the version.
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

/* "cuBLAS 12.6.3", of the library that was loaded; without the numbers where it does not tell. */
static inline void blas_version(char *text, size_t size)
{
    int major = 0, minor = 0, patch = 0;
    if (cublasGetProperty(MAJOR_VERSION, &major) == CUBLAS_STATUS_SUCCESS &&
        cublasGetProperty(MINOR_VERSION, &minor) == CUBLAS_STATUS_SUCCESS &&
        cublasGetProperty(PATCH_LEVEL, &patch) == CUBLAS_STATUS_SUCCESS)
        snprintf(text, size, "cuBLAS %d.%d.%d", major, minor, patch);
    else
        snprintf(text, size, "cuBLAS");
}

#endif
