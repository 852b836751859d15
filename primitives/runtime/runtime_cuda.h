/* What the files of the backend cuda share: its state in a context, entering and leaving the context's device, and the
 * one place where a CUDA error becomes a status.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUNTIME_CUDA_H
#define RUNTIME_CUDA_H

#include <cuda_runtime_api.h>

#include "backend.h"

/* Scratch that every context has from the start: enough for the primitives on 2^31 numbers and more, so that they do
 * not wait for more, also while a graph is captured. */
enum { CUDA_SCRATCH = 8 * 1024 * 1024 };

/* Of the device's memory, what freed blocks may keep in a context's pool: one part of so many. */
enum { CUDA_POOL_KEEPS = 128 };

struct cuda_unfreed {
    struct cuda_unfreed *next;
    void *memory;
};

enum { MAILBOX_BYTES = 4096 };

struct cuda_state {
    int device;
    int callers_device; /* between cuda_enter and cuda_leave */
    bool own_stream;
    bool dead;
    bool in_order;       /* the next kernel begins when all before it have ended, whether it may begin early or not */
    size_t memory_bytes; /* of the device */
    int multiprocessors; /* likewise */
    int shared_bytes;    /* of a multiprocessor's shared memory */
    int64_t cache_bytes; /* of its last-level cache */
    int code_version;    /* 10 major + minor of the architecture that the code it runs was made for */
    const char *last_kernel; /* the last one queued */
    unsigned *ticket;        /* on the device: counts a launch's blocks that are done; 0 between launches */
    void *chain;             /* on the device: chain.cuh */
    cudaMemPool_t pool;      /* for context_alloc; NULL: the device has none */
    void *mailbox;           /* page-locked host memory, of MAILBOX_BYTES, for small downloads; NULL: there was none */
    void *staging;           /* page-locked host memory, for copies that overlap with work; only grows */
    int64_t staging_bytes;
    struct cuda_unfreed *unfreed; /* freed by the application while its stream was being captured */
    char death[512];              /* the first failure */
};

/* Every call into the backend lies between these two. enter makes the context's device the current one; leave gives the
 * caller's back and hands status through. enter refuses a dead context. */
spmv_status cuda_enter(spmv_context *ctx);
spmv_status cuda_leave(spmv_context *ctx, spmv_status status);

/* Whether the context's stream is being captured into a CUDA graph. */
bool cuda_is_capturing(const spmv_context *ctx);

/* SPMV_OK for cudaSuccess. Anything else ends the context: errors of queued work show at any later call and cannot be
 * repaired. Errors of a capture only fail the call. what: the call or the kernel. */
spmv_status cuda_check(spmv_context *ctx, cudaError_t error, const char *what);

/* The next kernel that the context queues begins when all before it have ended, even if it may begin early: for what
 * kernels read before they wait for the one before. */
static inline void cuda_next_in_order(spmv_context *ctx)
{
    ((struct cuda_state *)ctx->device)->in_order = true;
}

/* Queues a kernel that does nothing: does this device run this build's code, and which? (runtime_cuda.cu) */
cudaError_t cuda_probe(cudaStream_t stream, int *code_version);

/* At least so many bytes of cuda_state.staging, on the context's device. What is in use of it is gone. */
spmv_status cuda_grow_staging(spmv_context *ctx, int64_t bytes);

/* Bytes of cuda_state.chain, all 0 at first. */
int64_t cuda_chain_bytes(void);

#endif
