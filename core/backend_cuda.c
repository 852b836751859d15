/* The backend cuda: one NVIDIA GPU through the CUDA runtime. Context, memory, stream, errors.
 *
 * Device: every entry point makes the context's device current and restores the caller's device on
 * return (cuda_enter, cuda_leave). If both are the same, which is usual, this costs one
 * cudaGetDevice.
 * Stream: the context's own, which does not synchronise with the legacy default stream, or the
 * application's. The application selects the default stream by its handle cudaStreamLegacy, because
 * NULL selects the context's own stream.
 * Errors: an error of the device ends the context, because errors of queued work appear at any
 * later call and cannot be repaired. Running out of memory does not end the context. While the
 * application captures the stream into a graph, calls that would wait or allocate fail and leave
 * the capture valid.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/pieces.h"
#include "core/runtime_cuda.h"
#include "core/threads.h"

#include <stdio.h>
#include <stdlib.h>

/* The oldest architecture that the build contains code for. */
enum { OLDEST_MAJOR = 8, OLDEST_MINOR = 0 };

static struct cuda_state *state_of(const spmv_context *ctx)
{
    return ctx->device;
}

static cudaStream_t stream_of(const spmv_context *ctx)
{
    return ctx->stream;
}

/* ------------------------------------------------------------------ errors */

static bool is_capture_error(cudaError_t error)
{
    return error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread;
}

spmv_status cuda_check(spmv_context *ctx, cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return SPMV_OK;
    struct cuda_state *s = state_of(ctx);
    cudaGetLastError(); /* clear it: the application must not see an error that is reported here */
    if (is_capture_error(error))
        return context_fail(ctx, SPMV_ERROR_CAPTURE, "%s: %s", what, cudaGetErrorString(error));
    if (!s->dead) {
        s->dead = true;
        snprintf(s->death, sizeof s->death, "%s: %s (%s); the last kernel queued was %s", what,
                 cudaGetErrorString(error), cudaGetErrorName(error), s->last_kernel != NULL ? s->last_kernel : "none");
    }
    return context_fail(ctx, SPMV_ERROR_DEVICE, "%s", s->death);
}

/* --------------------------------------------------- the context's device */

static cudaError_t push_device(struct cuda_state *s)
{
    const cudaError_t error = cudaGetDevice(&s->callers_device);
    return error == cudaSuccess && s->callers_device != s->device ? cudaSetDevice(s->device) : error;
}

/* Clears an error that no caller can be told of. An error of queued work appears again at the next
 * call. */
static void forget(cudaError_t error)
{
    if (error != cudaSuccess)
        cudaGetLastError();
}

static void pop_device(struct cuda_state *s)
{
    if (s->callers_device != s->device)
        forget(cudaSetDevice(s->callers_device));
}

spmv_status cuda_enter(spmv_context *ctx)
{
    struct cuda_state *s = state_of(ctx);
    if (s->dead)
        return context_fail(ctx, SPMV_ERROR_DEVICE, "the context is unusable after an earlier device error: %s",
                            s->death);
    return cuda_check(ctx, push_device(s), "cudaSetDevice");
}

spmv_status cuda_leave(spmv_context *ctx, spmv_status status)
{
    pop_device(state_of(ctx));
    return status;
}

/* ----------------------------------------------------------------- capture */

static bool is_capturing(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const cudaError_t error = cudaStreamIsCapturing(stream, &capture);
    if (is_capture_error(error)) { /* the legacy stream while another stream is being captured */
        cudaGetLastError();
        return true;
    }
    return error == cudaSuccess && capture != cudaStreamCaptureStatusNone;
}

bool cuda_is_capturing(const spmv_context *ctx)
{
    return is_capturing(stream_of(ctx));
}

/* Enters, or fails if the stream is being captured. */
static spmv_status enter_to_wait(spmv_context *ctx, const char *what)
{
    const spmv_status st = cuda_enter(ctx);
    if (st != SPMV_OK || !cuda_is_capturing(ctx))
        return st;
    return cuda_leave(ctx, context_fail(ctx, SPMV_ERROR_CAPTURE,
                                        "%s: not possible while the stream is being captured into a CUDA graph; do it "
                                        "before the capture begins",
                                        what));
}

/* ------------------------------------------------------------------ memory */

/* Frees after the work queued so far is done. */
static void free_now(const spmv_context *ctx, void *memory)
{
    forget(cudaStreamSynchronize(stream_of(ctx)));
    forget(cudaFree(memory));
}

/* Frees the memory whose release was deferred by a capture. */
static void free_deferred(const spmv_context *ctx)
{
    struct cuda_state *s = state_of(ctx);
    while (s->unfreed != NULL) {
        struct cuda_unfreed *const first = s->unfreed;
        s->unfreed = first->next;
        free_now(ctx, first->memory);
        free(first);
    }
}

/* Allocates one block from the pool, or from the device if pool is NULL. */
static cudaError_t take_memory(const spmv_context *ctx, cudaMemPool_t pool, int64_t bytes, void **memory)
{
    if ((uint64_t)bytes > state_of(ctx)->memory_bytes)
        return cudaErrorMemoryAllocation;
    return pool != NULL ? cudaMallocFromPoolAsync(memory, (size_t)bytes, pool, stream_of(ctx))
                        : cudaMalloc(memory, (size_t)bytes);
}

static spmv_status alloc_from(spmv_context *ctx, cudaMemPool_t pool, int64_t bytes, void **memory)
{
    cudaMemPool_t own = state_of(ctx)->pool;
    *memory = NULL;
    spmv_status st = enter_to_wait(ctx, "allocating device memory");
    if (st != SPMV_OK)
        return st;
    free_deferred(ctx);
    cudaError_t error = take_memory(ctx, pool, bytes, memory);
    /* return the pool's unused memory to the device and try again */
    if (error == cudaErrorMemoryAllocation && own != NULL) {
        cudaGetLastError();
        error = cudaMemPoolTrimTo(own, 0);
        if (error == cudaSuccess)
            error = take_memory(ctx, pool, bytes, memory);
    }
    if (error == cudaErrorMemoryAllocation) { /* the context stays usable */
        cudaGetLastError();
        *memory = NULL;
        st = context_fail_memory(ctx, "device memory", bytes);
    } else {
        st = cuda_check(ctx, error, "cudaMalloc");
    }
    return cuda_leave(ctx, st);
}

static spmv_status alloc_cuda(spmv_context *ctx, int64_t bytes, void **memory)
{
    return alloc_from(ctx, NULL, bytes, memory);
}

/* Memory from the pool: cudaFree returns it to the pool after free_now has waited for the
 * stream. */
static spmv_status alloc_queued_cuda(spmv_context *ctx, int64_t bytes, void **memory)
{
    return alloc_from(ctx, state_of(ctx)->pool, bytes, memory);
}

/* Also works on a context that ended with an error: frees what can be freed. */
static void free_by(spmv_context *ctx, void *memory, void (*free_memory)(const spmv_context *, void *))
{
    struct cuda_state *s = state_of(ctx);
    if (push_device(s) != cudaSuccess) {
        cudaGetLastError();
        return;
    }
    if (cuda_is_capturing(ctx)) {
        struct cuda_unfreed *const later = malloc(sizeof *later);
        /* if malloc fails, leak the block: freeing it would invalidate the capture */
        if (later != NULL) {
            *later = (struct cuda_unfreed){.next = s->unfreed, .memory = memory};
            s->unfreed = later;
        }
    } else {
        free_deferred(ctx);
        free_memory(ctx, memory);
    }
    pop_device(s);
}

static void free_cuda(spmv_context *ctx, void *memory)
{
    free_by(ctx, memory, free_now);
}

static void free_in_order(const spmv_context *ctx, void *memory)
{
    forget(cudaFreeAsync(memory, stream_of(ctx)));
}

/* Without a pool, the memory is cudaMalloc's. */
static void free_queued_cuda(spmv_context *ctx, void *memory)
{
    free_by(ctx, memory, state_of(ctx)->pool != NULL ? free_in_order : free_now);
}

/* A pool compares its size with its threshold at a synchronisation. The last block was freed after
 * the last one, so synchronise again. */
static void freed_cuda(spmv_context *ctx)
{
    struct cuda_state *s = state_of(ctx);
    if (s->pool == NULL)
        return;
    if (push_device(s) != cudaSuccess) {
        cudaGetLastError();
        return;
    }
    if (!cuda_is_capturing(ctx))
        forget(cudaStreamSynchronize(stream_of(ctx)));
    pop_device(s);
}

static cudaError_t limit_pool(struct cuda_state *s, uint64_t kept)
{
    return cudaMemPoolSetAttribute(s->pool, cudaMemPoolAttrReleaseThreshold, &kept);
}

static void keep_freed_cuda(spmv_context *ctx, bool all)
{
    struct cuda_state *s = state_of(ctx);
    if (s->pool != NULL)
        forget(limit_pool(s, all ? UINT64_MAX : s->memory_bytes / CUDA_POOL_KEEPS));
}

/* Waits for uploads too: otherwise pinned host memory would still be read after the return. */
static spmv_status copy(spmv_context *ctx, const char *what, const void *from, void *to, int64_t bytes,
                        enum cudaMemcpyKind kind)
{
    spmv_status st = enter_to_wait(ctx, what);
    if (st != SPMV_OK)
        return st;
    st = cuda_check(ctx, cudaMemcpyAsync(to, from, (size_t)bytes, kind, stream_of(ctx)), what);
    if (st == SPMV_OK)
        st = cuda_check(ctx, cudaStreamSynchronize(stream_of(ctx)), what);
    return cuda_leave(ctx, st);
}

static spmv_status upload_cuda(spmv_context *ctx, const void *host_from, void *to, int64_t bytes)
{
    spmv_status st = enter_to_wait(ctx, "upload");
    if (st != SPMV_OK)
        return st;
    const bool large = cuda_upload_is_large(host_from, bytes);
    st = cuda_leave(ctx, large ? cuda_upload_staged(ctx, host_from, to, bytes) : SPMV_OK);
    if (large && st != SPMV_ERROR_MEMORY)
        return st;
    if (large)
        ctx->error[0] = '\0'; /* without page-locked memory the copy only takes longer */
    return copy(ctx, "upload", host_from, to, bytes, cudaMemcpyHostToDevice);
}

/* Few bytes go through page-locked memory: the copy is then faster than the driver's lookup of the
 * kind of memory that the caller passed. */
static spmv_status download_cuda(spmv_context *ctx, const void *from, void *host_to, int64_t bytes)
{
    void *const mailbox = state_of(ctx)->mailbox;
    if (mailbox == NULL || bytes > MAILBOX_BYTES)
        return copy(ctx, "download", from, host_to, bytes, cudaMemcpyDeviceToHost);
    const spmv_status st = copy(ctx, "download", from, mailbox, bytes, cudaMemcpyDeviceToHost);
    if (st == SPMV_OK)
        memcpy(host_to, mailbox, (size_t)bytes);
    return st;
}

static spmv_status synchronize_cuda(spmv_context *ctx)
{
    spmv_status st = enter_to_wait(ctx, "waiting for the stream");
    if (st != SPMV_OK)
        return st;
    st = cuda_check(ctx, cudaStreamSynchronize(stream_of(ctx)), "waiting for the stream");
    if (st == SPMV_OK)
        free_deferred(ctx);
    return cuda_leave(ctx, st);
}

/* -------------------------------------------------------- opening, closing */

/* Every reason why the GPU is unusable gives one status, except that another process may have taken
 * its memory: then there is a device, and it is SPMV_ERROR_MEMORY. For both SPMV_BACKEND_AUTO tries
 * the next backend. */
static spmv_status unusable(spmv_context *ctx, const char *what, cudaError_t error)
{
    cudaGetLastError();
    if (error == cudaErrorMemoryAllocation)
        return context_fail(ctx, SPMV_ERROR_MEMORY, "CUDA device %d is there, but its memory is full: %s: %s (%s)",
                            state_of(ctx)->device, what, cudaGetErrorString(error), cudaGetErrorName(error));
    return context_fail(ctx, SPMV_ERROR_NO_DEVICE, "no usable CUDA device: %s: %s (%s)", what,
                        cudaGetErrorString(error), cudaGetErrorName(error));
}

#define USABLE(call, what)                                                                                             \
    do {                                                                                                               \
        const cudaError_t error_ = (call);                                                                             \
        if (error_ != cudaSuccess)                                                                                     \
            return unusable(ctx, (what), error_);                                                                      \
    } while (0)

/* Without a driver, CUDA reports that the driver is too old. Its version is then 0. */
static bool has_driver(void)
{
    int version = 0;
    return cudaDriverGetVersion(&version) == cudaSuccess && version > 0;
}

static spmv_status choose_device(spmv_context *ctx, int wanted)
{
    int count = 0;
    if (wanted < -1)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "device %d: numbers start at 0", wanted);
    const cudaError_t found = cudaGetDeviceCount(&count);
    if (found == cudaErrorInsufficientDriver && !has_driver()) {
        cudaGetLastError();
        return context_fail(ctx, SPMV_ERROR_NO_DEVICE, "no usable CUDA device: no NVIDIA driver found");
    }
    USABLE(found, "looking for devices");
    if (count <= 0)
        return unusable(ctx, "looking for devices", cudaErrorNoDevice);
    if (wanted >= count)
        return context_fail(ctx, SPMV_ERROR_NO_DEVICE, "no CUDA device %d: there %s %d", wanted,
                            count == 1 ? "is" : "are", count);
    struct cuda_state *s = state_of(ctx);
    USABLE(cudaGetDevice(&s->callers_device), "the current device");
    s->device = wanted == -1 ? s->callers_device : wanted;
    return SPMV_OK;
}

/* Uses the application's stream, which must be of the context's device. That is not checked while the
 * stream is being captured, because the query would end the capture. */
static spmv_status adopt_stream(spmv_context *ctx, cudaStream_t stream)
{
#if CUDART_VERSION >= 12080
    if (stream != cudaStreamLegacy && stream != cudaStreamPerThread && !is_capturing(stream)) {
        int device = -1;
        const cudaError_t error = cudaStreamGetDevice(stream, &device);
        if (error != cudaSuccess) {
            cudaGetLastError();
            return context_fail(ctx, SPMV_ERROR_ARGUMENT, "the stream in the options cannot be used: %s",
                                cudaGetErrorString(error));
        }
        if (device != state_of(ctx)->device)
            return context_fail(ctx, SPMV_ERROR_ARGUMENT, "the stream belongs to device %d, the context to device %d",
                                device, state_of(ctx)->device);
    }
#endif
    ctx->stream = stream;
    return SPMV_OK;
}

/* Queues on the stream a wait for the work queued on old. */
static spmv_status queue_after(spmv_context *ctx, cudaStream_t old, cudaStream_t stream)
{
    spmv_status st = SPMV_OK;
    struct cuda_state *s = state_of(ctx);
    if (s->turn == NULL)
        TRY(cuda_check(ctx, cudaEventCreateWithFlags(&s->turn, cudaEventDisableTiming), "creating an event"));
    TRY(cuda_check(ctx, cudaEventRecord(s->turn, old), "recording an event"));
    TRY(cuda_check(ctx, cudaStreamWaitEvent(stream, s->turn, 0), "ordering two streams"));
done:
    return st;
}

static spmv_status set_stream_cuda(spmv_context *ctx, void *stream)
{
    struct cuda_state *s = state_of(ctx);
    cudaStream_t const old = stream_of(ctx);
    spmv_status st = enter_to_wait(ctx, "changing the stream");
    if (st != SPMV_OK)
        return st;
    if (stream == NULL && s->own == NULL)
        TRY(cuda_check(ctx, cudaStreamCreateWithFlags(&s->own, cudaStreamNonBlocking), "creating a stream"));
    TRY(adopt_stream(ctx, stream != NULL ? stream : s->own));
    /* a captured stream cannot wait for work outside of its graph */
    if (stream_of(ctx) != old && !cuda_is_capturing(ctx))
        TRY(queue_after(ctx, old, stream_of(ctx)));
done:
    if (st != SPMV_OK)
        ctx->stream = old;
    return cuda_leave(ctx, st);
}

/* Creates the pool if the device supports pools. Without one, plans allocate from the device
 * directly. */
static void open_pool(struct cuda_state *s)
{
    const struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                                .location = {.type = cudaMemLocationTypeDevice, .id = s->device}};
    int there = 0;
    cudaError_t error = cudaDeviceGetAttribute(&there, cudaDevAttrMemoryPoolsSupported, s->device);
    if (error == cudaSuccess && there)
        error = cudaMemPoolCreate(&s->pool, &properties);
    if (s->pool != NULL && error == cudaSuccess)
        error = limit_pool(s, s->memory_bytes / CUDA_POOL_KEEPS);
    forget(error);
}

/* Tests have less, because a context of the emulated GPU writes all of it. */
#ifndef SPMV_CUDA_SCRATCH
#define SPMV_CUDA_SCRATCH CUDA_SCRATCH
#endif

/* Expects the device to be current. */
static spmv_status open_device(spmv_context *ctx, const spmv_context_options *options)
{
    struct cuda_state *s = state_of(ctx);
    struct cudaDeviceProp properties;
    spmv_status st = SPMV_OK;
    USABLE(cudaGetDeviceProperties(&properties, s->device), "the device's properties");
    if (properties.major < OLDEST_MAJOR || (properties.major == OLDEST_MAJOR && properties.minor < OLDEST_MINOR))
        return context_fail(ctx, SPMV_ERROR_NO_DEVICE,
                            "CUDA device %d, %s, is sm_%d%d: this build needs sm_%d%d or newer", s->device,
                            properties.name, properties.major, properties.minor, OLDEST_MAJOR, OLDEST_MINOR);
    s->memory_bytes = properties.totalGlobalMem;
    s->multiprocessors = properties.multiProcessorCount;
    s->shared_bytes = (int)properties.sharedMemPerMultiprocessor;
    s->cache_bytes = properties.l2CacheSize;
    cudaStream_t own = NULL;
    USABLE(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), "creating a stream");
    ctx->stream = own;
    s->own = own;
    open_pool(s);
    if (cudaHostAlloc(&s->mailbox, MAILBOX_BYTES, 0) != cudaSuccess) {
        cudaGetLastError();
        s->mailbox = NULL;
    }
    USABLE(cuda_probe(own, &s->code_version), "starting a kernel");
    USABLE(cudaStreamSynchronize(own), "running a kernel");
    USABLE(cudaMalloc(&ctx->scratch, SPMV_CUDA_SCRATCH), "allocating memory");
    ctx->scratch_bytes = SPMV_CUDA_SCRATCH;
    void *ticket = NULL;
    USABLE(cudaMalloc(&ticket, sizeof *s->ticket), "allocating memory");
    s->ticket = ticket;
    USABLE(cudaMemsetAsync(ticket, 0, sizeof *s->ticket, own), "writing memory");
    USABLE(cudaMalloc(&s->chain, (size_t)cuda_chain_bytes()), "allocating memory");
    USABLE(cudaMemsetAsync(s->chain, 0, (size_t)cuda_chain_bytes(), own), "writing memory");
    USABLE(cudaStreamSynchronize(own), "writing memory");
    if (options->stream != NULL) {
        USABLE(cudaStreamDestroy(own), "destroying a stream");
        s->own = NULL;
        ctx->stream = NULL;
        st = adopt_stream(ctx, options->stream);
        if (st != SPMV_OK)
            return st;
    }
    snprintf(ctx->description, sizeof ctx->description, "cuda, %.80s, device %d, sm_%d%d, %.1f GiB", properties.name,
             s->device, properties.major, properties.minor, (double)s->memory_bytes * 0x1p-30);
    return SPMV_OK;
}

static spmv_status open_cuda(spmv_context *ctx, const spmv_context_options *options)
{
    /* threads for work on the host: reading, conversions */
    spmv_status st = context_set_threads(ctx, options->threads);
    if (st != SPMV_OK)
        return st;
    st = host_alloc(ctx, (int64_t)sizeof(struct cuda_state), "a CUDA context", &ctx->device);
    if (st != SPMV_OK)
        return st;
    struct cuda_state *s = state_of(ctx);
    *s = (struct cuda_state){.device = 0};
    st = choose_device(ctx, options->device);
    if (st != SPMV_OK)
        return st;
    if (s->device != s->callers_device)
        USABLE(cudaSetDevice(s->device), "choosing the device");
    st = open_device(ctx, options);
    /* an open context frees its scratch with spmv_free */
    if (st != SPMV_OK && ctx->scratch != NULL) {
        forget(cudaFree(ctx->scratch));
        ctx->scratch = NULL;
        ctx->scratch_bytes = 0;
    }
    pop_device(s);
    return st;
}

/* Also accepts a partly opened context: releases what exists. */
static void close_cuda(spmv_context *ctx)
{
    struct cuda_state *s = state_of(ctx);
    if (s == NULL)
        return;
    if ((ctx->stream != NULL || s->ticket != NULL) && push_device(s) == cudaSuccess) {
        free_deferred(ctx);
        forget(s->own != NULL ? cudaStreamDestroy(s->own) : cudaSuccess);
        forget(s->turn != NULL ? cudaEventDestroy(s->turn) : cudaSuccess);
        forget(s->ticket != NULL ? cudaFree(s->ticket) : cudaSuccess);
        forget(s->chain != NULL ? cudaFree(s->chain) : cudaSuccess);
        forget(s->staging != NULL ? cudaFreeHost(s->staging) : cudaSuccess);
        forget(s->sending != NULL ? cudaFreeHost(s->sending) : cudaSuccess);
        forget(s->mailbox != NULL ? cudaFreeHost(s->mailbox) : cudaSuccess);
        forget(s->pool != NULL ? cudaMemPoolDestroy(s->pool) : cudaSuccess);
        pop_device(s);
    }
    ctx->stream = NULL;
    host_free(s);
    ctx->device = NULL;
}

const struct backend_table backend_cuda = {
    .id = SPMV_BACKEND_CUDA,
    .on_device = true,
    .open = open_cuda,
    .close = close_cuda,
    .alloc = alloc_cuda,
    .alloc_queued = alloc_queued_cuda,
    .free = free_cuda,
    .free_queued = free_queued_cuda,
    .keep_freed = keep_freed_cuda,
    .freed = freed_cuda,
    .upload = upload_cuda,
    .download = download_cuda,
    .synchronize = synchronize_cuda,
    .set_stream = set_stream_cuda,
    .host_pass = host_pass_cuda,
#define FUNCTION(result, name, ...) .name = name##_cuda,
#define RUNGS(type, name) .name = name##_cuda,
#include "core/backend_slots.h"
    .compact_below = compact_count_write_cuda,
};
