/* Code common to peers with cuBLAS: error messages and the version.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PEER_CUBLAS_H
#define PEER_CUBLAS_H

#include <cublas_v2.h>

#include "peer_cuda.h"

/* True if the call failed, with a message in why. */
static inline bool bad_blas(cublasStatus_t status, const char *call, char *why, size_t why_size)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return false;
    cudaGetLastError();
    snprintf(why, why_size, "%s: %s (%s)", call, cublasGetStatusString(status), cublasGetStatusName(status));
    return true;
}

/* "cuBLAS 12.6.3", the version of the loaded library; without numbers if it is unknown. */
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
