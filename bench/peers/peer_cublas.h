/* Code common to peers with cuBLAS: error messages and the version.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PEER_CUBLAS_H
#define PEER_CUBLAS_H

#include <cublas_v2.h>

#include "bench/peers/peer_cuda.h"

/* True if the call failed, with a message in why. */
static inline bool bad_blas(cublasStatus_t status, const char *call, char *why, size_t why_size)
{
    return bad_call(status == CUBLAS_STATUS_SUCCESS, call, cublasGetStatusString(status), cublasGetStatusName(status),
                    why, why_size);
}

/* "cuBLAS 12.6.3", the version of the loaded library; without numbers if it is unknown. */
static inline void blas_version(char *text, size_t size)
{
    int version[3] = {0, 0, 0};
    library_version("cuBLAS", get_version(cublasGetProperty, version), version, text, size);
}

#endif
