/* Code common to GPU modules: messages for failed calls and versions of libraries, memory, and the
 * device of a stream.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PEER_CUDA_H
#define PEER_CUDA_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __cplusplus
#include <new>
#endif

/* True if the call failed, with a message in why: what the error means, and its name. */
static inline bool bad_call(bool well, const char *call, const char *meaning, const char *name, char *why,
                            size_t why_size)
{
    if (well)
        return false;
    cudaGetLastError();
    snprintf(why, why_size, "%s: %s (%s)", call, meaning, name);
    return true;
}

static inline bool bad_cuda(cudaError_t error, const char *call, char *why, size_t why_size)
{
    return bad_call(error == cudaSuccess, call, cudaGetErrorString(error), cudaGetErrorName(error), why, why_size);
}

/* Destroys an object of a library unless it is NULL, not yet made. */
#define destroy_made(destroy, object)                                                                                  \
    do {                                                                                                               \
        if ((object) != NULL)                                                                                          \
            destroy(object);                                                                                           \
    } while (0)

/* Reads major, minor and patch by a library's function, whose status is 0 for success. */
#define get_version(get, version)                                                                                      \
    (get(MAJOR_VERSION, &(version)[0]) == 0 && get(MINOR_VERSION, &(version)[1]) == 0 &&                               \
     get(PATCH_LEVEL, &(version)[2]) == 0)

/* "cuBLAS 12.6.3"; only the library's name if the version is unknown. */
static inline void library_version(const char *library, bool known, const int *version, char *text, size_t size)
{
    if (known)
        snprintf(text, size, "%s %d.%d.%d", library, version[0], version[1], version[2]);
    else
        snprintf(text, size, "%s", library);
}

/* Memory of zeros for a state; NULL with a message in why. Release with free. */
static inline void *new_state(size_t bytes, char *why, size_t why_size)
{
    void *const state = calloc(1, bytes);
    if (state == NULL)
        snprintf(why, why_size, "no memory");
    return state;
}

#ifdef __cplusplus
/* A new object of a type; NULL with a message in why. Release with delete. */
template <typename T> T *new_object(char *why, size_t why_size)
{
    T *const object = new (std::nothrow) T();
    if (object == nullptr)
        snprintf(why, why_size, "no memory");
    return object;
}
#endif

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
