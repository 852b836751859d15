/* Code common to GPU modules: messages for CUDA errors, and the device of a stream.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PEER_CUDA_H
#define PEER_CUDA_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>

/* True if the call failed, with a message in why. */
static inline bool bad_cuda(cudaError_t error, const char *call, char *why, size_t why_size)
{
    if (error == cudaSuccess)
        return false;
    cudaGetLastError();
    snprintf(why, why_size, "%s: %s (%s)", call, cudaGetErrorString(error), cudaGetErrorName(error));
    return true;
}

/* Makes the stream's device the current one, because a module has its own CUDA runtime. */
static inline cudaError_t use_device_of(cudaStream_t stream)
{
#if CUDART_VERSION >= 12080
    int device = 0;
    cudaError_t error = cudaFree(NULL); /* initialises the runtime */
    if (error == cudaSuccess)
        error = cudaStreamGetDevice(stream, &device);
    return error == cudaSuccess ? cudaSetDevice(device) : error;
#else
    (void)stream; /* the caller has set the current device */
    return cudaSuccess;
#endif
}

/* Allocates at least one byte. *memory is NULL after a failure. */
static inline cudaError_t device_alloc(size_t bytes, void **memory)
{
    const cudaError_t error = cudaMalloc(memory, bytes > 0 ? bytes : 1);
    if (error != cudaSuccess)
        *memory = NULL;
    return error;
}

#endif
