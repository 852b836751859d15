/* The context for rungs in a user's program: a stream, and the state of the launches.
 *
 * Replaces runtime_cuda.h with the same names. Included by spmv/device.cuh inside a namespace.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_DEVICE_CONTEXT_CUH
#define SPMV_DEVICE_CONTEXT_CUH

struct cuda_state {
    const char *last_kernel;
    unsigned *ticket;  /* for reduce, in the caller's scratch */
    cudaError_t error; /* the first error */
};

struct spmv_context {
    cudaStream_t stream;
    cuda_state *device;
};

/* Does not clear the error, so that cudaGetLastError still returns it. */
inline spmv_status cuda_check(spmv_context *ctx, cudaError_t error, const char *)
{
    if (error == cudaSuccess)
        return SPMV_OK;
    if (ctx->device->error == cudaSuccess)
        ctx->device->error = error;
    return error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread ? SPMV_ERROR_CAPTURE
                                                                                                    : SPMV_ERROR_DEVICE;
}

#endif
