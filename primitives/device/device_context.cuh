/* What stands for a context where rungs run in a user's program: a stream, and what a launch leaves behind.
 *
 * Takes the place of runtime_cuda.h; the names are the rungs'. Included by spmv/device.cuh, inside a namespace.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_DEVICE_CONTEXT_CUH
#define SPMV_DEVICE_CONTEXT_CUH

struct cuda_state {
    const char *last_kernel;
    unsigned *ticket;  /* of reduce, in the caller's scratch */
    cudaError_t error; /* the first */
};

struct spmv_context {
    cudaStream_t stream;
    cuda_state *device;
};

/* The error stays where CUDA keeps it, for cudaGetLastError. */
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
