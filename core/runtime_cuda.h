/* Shared by the files of the backend cuda: its state in a context, entering and leaving the
 * context's device, and the conversion of CUDA errors to statuses.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUNTIME_CUDA_H
#define RUNTIME_CUDA_H

#include <cuda_runtime_api.h>

#include "core/backend.h"

/* Scratch that every context allocates when it opens: enough for the primitives on more than 2^31
 * numbers, so that they need not allocate, also while a graph is captured. */
enum { CUDA_SCRATCH = 8 * 1024 * 1024 };

/* Freed blocks in a context's pool keep at most 1 / CUDA_POOL_KEEPS of the device's memory. */
enum { CUDA_POOL_KEEPS = 8 };

struct cuda_unfreed {
    struct cuda_unfreed *next;
    void *memory;
};

enum { MAILBOX_BYTES = 4096 };

struct cuda_state {
    int device;
    int callers_device; /* saved by cuda_enter for cuda_leave */
    cudaStream_t own;   /* the context's own stream; NULL: none */
    cudaEvent_t turn;   /* orders the next stream after the last one; NULL: not yet needed */
    bool dead;
    /* the next kernel starts after all before it have finished, even if it could start early */
    bool in_order;
    size_t memory_bytes; /* of the device */
    int multiprocessors; /* of the device */
    int shared_bytes;    /* of a multiprocessor's shared memory */
    int64_t cache_bytes; /* of the device's last-level cache */
    /* 10 major + minor of the architecture that the running code was compiled for */
    int code_version;
    const char *last_kernel; /* the last kernel queued */
    /* on the device: counts the finished blocks of a launch; 0 between launches */
    unsigned *ticket;
    void *chain;        /* on the device: chain.cuh */
    cudaMemPool_t pool; /* for context_alloc; NULL: the device has no pools */
    /* page-locked host memory of MAILBOX_BYTES for small downloads, which kernels may write too; NULL: not
     * available */
    void *mailbox;
    void *staging; /* page-locked host memory for copies that overlap with work; only grows */
    int64_t staging_bytes;
    void *sending;                /* page-locked host memory for large uploads; NULL: not yet needed */
    struct cuda_unfreed *unfreed; /* freed by the application while its stream was captured */
    char death[512];              /* message of the first error */
};

/* Every call into the backend is between these two. enter makes the context's device current; it
 * fails if the context ended with an error. leave restores the caller's device and returns
 * status. */
spmv_status cuda_enter(spmv_context *ctx);
spmv_status cuda_leave(spmv_context *ctx, spmv_status status);

/* Whether the context's stream is being captured into a CUDA graph. */
bool cuda_is_capturing(const spmv_context *ctx);

/* Returns SPMV_OK for cudaSuccess. Any other error ends the context, because errors of queued work
 * appear at any later call and cannot be repaired. Errors of a capture only fail the call. what:
 * the call or the kernel. */
spmv_status cuda_check(spmv_context *ctx, cudaError_t error, const char *what);

/* The next kernel of the context starts after all before it have finished, even if it could start
 * early. For kernels that read data before they wait for the kernel before. */
static inline void cuda_next_in_order(spmv_context *ctx)
{
    ((struct cuda_state *)ctx->device)->in_order = true;
}

/* Queues an empty kernel to test whether the device runs this build's code, and returns the code's
 * version (runtime_cuda.cu). */
cudaError_t cuda_probe(cudaStream_t stream, int *code_version);

/* Grows cuda_state.staging to at least bytes; the context's device is current. Its contents are
 * lost. */
spmv_status cuda_grow_staging(spmv_context *ctx, int64_t bytes);

/* Whether cuda_upload_staged is faster than one copy: many bytes of memory that is not page-locked. The
 * context's device is current. */
bool cuda_upload_is_large(const void *host_from, int64_t bytes);

/* Copies in pieces through page-locked memory, which the context's threads fill. Waits. The context's
 * device is current. SPMV_ERROR_MEMORY: there is no such memory. */
spmv_status cuda_upload_staged(spmv_context *ctx, const void *host_from, void *to, int64_t bytes);

/* Bytes of cuda_state.chain, initially 0. */
int64_t cuda_chain_bytes(void);

#endif
