/* What the modules on a GPU share: the one place where a CUDA error becomes a sentence, and the device of a stream.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PEER_CUDA_H
#define PEER_CUDA_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>

/* True when the call failed, with the sentence in why. */
static inline bool bad_cuda(cudaError_t error, const char *call, char *why, size_t why_size)
{
    if (error == cudaSuccess)
        return false;
    cudaGetLastError();
    snprintf(why, why_size, "%s: %s (%s)", call, cudaGetErrorString(error), cudaGetErrorName(error));
    return true;
}

/* A module has a CUDA runtime of its own: it, too, has to be told which device the stream belongs to. */
static inline cudaError_t use_device_of(cudaStream_t stream)
{
#if CUDART_VERSION >= 12080
    int device = 0;
    cudaError_t error = cudaFree(NULL); /* starts the runtime */
    if (error == cudaSuccess)
        error = cudaStreamGetDevice(stream, &device);
    return error == cudaSuccess ? cudaSetDevice(device) : error;
#else
    (void)stream; /* the device that the caller made current */
    return cudaSuccess;
#endif
}

/* *memory of so many bytes, at least one. On failure NULL. */
static inline cudaError_t device_alloc(size_t bytes, void **memory)
{
    const cudaError_t error = cudaMalloc(memory, bytes > 0 ? bytes : 1);
    if (error != cudaSuccess)
        *memory = NULL;
    return error;
}

#endif
