/* Pieces of a host array on a GPU: one stream uploads them, the context's stream computes, a third
 * stream downloads them.
 *
 * SLOTS pieces are in progress at once. Each has cells on the device and, unless the host array is
 * page-locked, buffers in page-locked memory, which host threads fill and empty. (From pageable
 * memory the driver copies in small steps while the caller waits, so nothing would overlap.)
 *
 *  step   before                 waits until                                      event
 *  up     overwriting cells      their earlier piece is computed and downloaded   done_of
 *  work   starting on a piece    it is uploaded                                   up
 *  down   downloading a piece    it is computed                                   worked
 *  host   filling a buffer       its earlier contents are uploaded                up
 *  host   emptying a buffer      it is downloaded                                 down
 *
 * The carry goes from piece to piece through its own cell on the context's stream, because a slot's
 * cells may be overwritten before the next piece starts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/pieces.h"
#include "core/runtime_cuda.h"

/* One being uploaded, one computed, one downloaded. */
enum { SLOTS = 3 };

/* Bytes that a thread copies at a time. */
enum { COPY_BYTES = 256 * 1024 };

struct slot {
    char *cells;                  /* on the device: the carry, the piece, a spare cell */
    char *staged_in, *staged_out; /* page-locked; NULL: the host array itself is */
    cudaEvent_t up, worked, down; /* last recorded for this slot's piece */
    int64_t begin, count;         /* the piece */
};

struct pass {
    spmv_context *ctx;
    const struct host_pass *asked;
    int64_t most; /* elements of a piece */
    struct slot slots[SLOTS];
    cudaStream_t up, work, down;
    char *carry; /* on the device: one cell */
};

static int64_t round_up(int64_t bytes)
{
    return ceil_divide(bytes, 256) * 256;
}

/* ------------------------------------------------------------------ buffers */

/* Elements of the whole grains in piece_bytes, at least one grain and at most the grains of the
 * array. */
static int64_t most_of(const struct host_pass *p, int64_t piece_bytes)
{
    const int64_t grains = max_i64(piece_bytes / p->size / PIECE_GRAIN, 1);
    return min_i64(grains, ceil_divide(p->n, PIECE_GRAIN)) * PIECE_GRAIN;
}

/* Allocates the cells of all slots and the carry in the context's workspace. If there is not enough
 * memory, halves the pieces and tries again. */
static spmv_status get_cells(struct pass *pass)
{
    const struct host_pass *const p = pass->asked;
    int64_t piece_bytes = p->piece_bytes > 0 ? p->piece_bytes : PIECE_BYTES;
    void *block = NULL;
    spmv_status st;
    int64_t slot_bytes;
    for (;; piece_bytes /= 2) {
        pass->most = most_of(p, piece_bytes);
        slot_bytes = round_up((pass->most + 2) * p->size);
        st = context_workspace(pass->ctx, SLOTS * slot_bytes + round_up(p->size), &block);
        if (st != SPMV_ERROR_MEMORY || pass->most <= PIECE_GRAIN)
            break;
    }
    for (int s = 0; st == SPMV_OK && s < SLOTS; s++)
        pass->slots[s].cells = (char *)block + s * slot_bytes;
    pass->carry = st == SPMV_OK ? (char *)block + SLOTS * slot_bytes : NULL;
    return st;
}

/* Whether the host array is page-locked, so that copies need no buffer. */
static bool is_locked(const void *host, int64_t bytes)
{
    const void *const ends[] = {host, (const char *)host + bytes - 1};
    for (int e = 0; e < 2; e++) {
        struct cudaPointerAttributes attributes;
        if (cudaPointerGetAttributes(&attributes, ends[e]) != cudaSuccess) {
            cudaGetLastError();
            return false;
        }
        if (attributes.type != cudaMemoryTypeHost)
            return false;
    }
    return true;
}

/* Allocates page-locked memory. */
static spmv_status lock_memory(spmv_context *ctx, int64_t bytes, void **memory)
{
    const cudaError_t error = cudaHostAlloc(memory, (size_t)bytes, 0);
    if (error == cudaErrorMemoryAllocation) { /* the context stays usable */
        cudaGetLastError();
        *memory = NULL;
        return context_fail_memory(ctx, "page-locked host memory", bytes);
    }
    return cuda_check(ctx, error, "cudaHostAlloc");
}

/* Keeps the memory in the context for the next call, because allocating takes longer than using it. */
spmv_status cuda_grow_staging(spmv_context *ctx, int64_t bytes)
{
    struct cuda_state *const s = ctx->device;
    if (bytes <= s->staging_bytes)
        return SPMV_OK;
    if (s->staging != NULL && cudaFreeHost(s->staging) != cudaSuccess)
        cudaGetLastError();
    s->staging = NULL;
    s->staging_bytes = 0;
    const spmv_status st = lock_memory(ctx, bytes, &s->staging);
    if (st == SPMV_OK)
        s->staging_bytes = bytes;
    return st;
}

static spmv_status get_buffers(struct pass *pass)
{
    const struct host_pass *const p = pass->asked;
    const bool in = !is_locked(p->host_in, p->n * p->size);
    const bool out = p->host_out != NULL && !is_locked(p->host_out, p->n * p->size);
    const int64_t bytes = round_up(pass->most * p->size);
    const spmv_status st = cuda_grow_staging(pass->ctx, SLOTS * (in + out) * bytes);
    char *next = ((struct cuda_state *)pass->ctx->device)->staging;
    for (int s = 0; st == SPMV_OK && s < SLOTS; s++) {
        pass->slots[s].staged_in = in ? next : NULL;
        next += in * bytes;
        pass->slots[s].staged_out = out ? next : NULL;
        next += out * bytes;
    }
    return st;
}

/* ------------------------------------------------------- streams and events */

#define CUDA(call) TRY(cuda_check(ctx, (call), #call))

static spmv_status open_pass(struct pass *pass)
{
    spmv_context *const ctx = pass->ctx;
    const struct host_pass *const p = pass->asked;
    spmv_status st = SPMV_OK;
    TRY(get_buffers(pass));
    pass->work = ctx->stream;
    CUDA(cudaStreamCreateWithFlags(&pass->up, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&pass->down, cudaStreamNonBlocking));
    for (int s = 0; s < SLOTS; s++) {
        struct slot *const slot = &pass->slots[s];
        CUDA(cudaEventCreateWithFlags(&slot->up, cudaEventDisableTiming));
        CUDA(cudaEventCreateWithFlags(&slot->worked, cudaEventDisableTiming));
        CUDA(cudaEventCreateWithFlags(&slot->down, cudaEventDisableTiming));
    }
    CUDA(cudaMemcpyAsync(pass->carry, p->host_carry, (size_t)p->size, cudaMemcpyHostToDevice, pass->work));
    /* host_carry belongs to the caller, so read it before returning */
    CUDA(cudaStreamSynchronize(pass->work));
done:
    return st;
}

/* Waits for all work in progress, so that no buffer is in use, and releases the resources. Called
 * after errors too. */
static void close_pass(struct pass *pass)
{
    const cudaStream_t own[] = {pass->up, pass->down};
    bool failed = pass->work != NULL && cudaStreamSynchronize(pass->work) != cudaSuccess;
    for (int k = 0; k < 2; k++)
        if (own[k] != NULL) {
            failed = cudaStreamSynchronize(own[k]) != cudaSuccess || failed;
            failed = cudaStreamDestroy(own[k]) != cudaSuccess || failed;
        }
    for (int s = 0; s < SLOTS; s++) {
        const cudaEvent_t events[] = {pass->slots[s].up, pass->slots[s].worked, pass->slots[s].down};
        for (int e = 0; e < 3; e++)
            failed = (events[e] != NULL && cudaEventDestroy(events[e]) != cudaSuccess) || failed;
    }
    if (failed)
        cudaGetLastError(); /* the call that failed first, or the next one, reports the error */
}

/* memcpy with the context's threads. */
static void copy(const spmv_context *ctx, void *to, const void *from, int64_t bytes)
{
    const int64_t parts = ceil_divide(bytes, COPY_BYTES);
    const int team = (int)min_i64(parts, ctx->threads);
#pragma omp parallel for schedule(static) num_threads(team) if (team > 1)
    for (int64_t k = 0; k < parts; k++) {
        const int64_t begin = k * COPY_BYTES;
        memcpy((char *)to + begin, (const char *)from + begin, (size_t)min_i64(bytes - begin, COPY_BYTES));
    }
}

/* ------------------------------------------------------------- large uploads */

/* Bytes from which an upload goes through page-locked memory. The driver copies pageable memory with one
 * thread, slower than the link. Tests have less. */
#ifndef CUDA_UPLOAD_LARGE
#define CUDA_UPLOAD_LARGE (32 << 20)
#endif

bool cuda_upload_is_large(const void *host_from, int64_t bytes)
{
    const void *const ends[] = {host_from, (const char *)host_from + bytes - 1};
    bool pageable = bytes >= CUDA_UPLOAD_LARGE;
    for (int e = 0; e < 2 && pageable; e++) {
        struct cudaPointerAttributes attributes;
        pageable = cudaPointerGetAttributes(&attributes, ends[e]) == cudaSuccess &&
                   attributes.type == cudaMemoryTypeUnregistered;
        (void)cudaGetLastError();
    }
    return pageable;
}

spmv_status cuda_upload_staged(spmv_context *ctx, const void *host_from, void *to, int64_t bytes)
{
    enum { PIECE = CUDA_UPLOAD_LARGE / 8 };
    spmv_status st = SPMV_OK;
    struct cuda_state *const s = ctx->device;
    const cudaStream_t stream = ctx->stream;
    cudaEvent_t up[SLOTS] = {NULL};
    if (s->sending == NULL)
        TRY(lock_memory(ctx, SLOTS * PIECE, &s->sending));
    for (int k = 0; k < SLOTS; k++)
        CUDA(cudaEventCreateWithFlags(&up[k], cudaEventDisableTiming));
    for (int64_t begin = 0, piece = 0; begin < bytes; begin += PIECE, piece++) {
        const int k = (int)(piece % SLOTS);
        char *const buffer = (char *)s->sending + k * (int64_t)PIECE;
        const int64_t some = min_i64(bytes - begin, PIECE);
        if (piece >= SLOTS)
            CUDA(cudaEventSynchronize(up[k]));
        copy(ctx, buffer, (const char *)host_from + begin, some);
        CUDA(cudaMemcpyAsync((char *)to + begin, buffer, (size_t)some, cudaMemcpyHostToDevice, stream));
        CUDA(cudaEventRecord(up[k], stream));
    }
    CUDA(cudaStreamSynchronize(stream));
done:
    for (int k = 0; k < SLOTS; k++)
        if (up[k] != NULL && cudaEventDestroy(up[k]) != cudaSuccess)
            (void)cudaGetLastError(); /* the call that failed first reports the error */
    return st;
}

/* ----------------------------------------------------------------- the pass */

/* The event after which the device no longer uses the slot's last piece. */
static cudaEvent_t done_of(const struct pass *pass, const struct slot *slot)
{
    return pass->asked->host_out != NULL ? slot->down : slot->worked;
}

/* Uploads a piece and copies the carry into its cell 0. used: the slot held a piece before. */
static spmv_status take_up(struct pass *pass, struct slot *slot, bool used)
{
    spmv_context *const ctx = pass->ctx;
    const struct host_pass *const p = pass->asked;
    const int64_t bytes = slot->count * p->size;
    const char *from = (const char *)p->host_in + slot->begin * p->size;
    spmv_status st = SPMV_OK;
    if (slot->staged_in != NULL) {
        if (used)
            CUDA(cudaEventSynchronize(slot->up));
        copy(ctx, slot->staged_in, from, bytes);
        from = slot->staged_in;
    }
    if (used)
        CUDA(cudaStreamWaitEvent(pass->up, done_of(pass, slot), 0));
    CUDA(cudaMemcpyAsync(slot->cells + p->size, from, (size_t)bytes, cudaMemcpyHostToDevice, pass->up));
    CUDA(cudaEventRecord(slot->up, pass->up));
    CUDA(cudaStreamWaitEvent(pass->work, slot->up, 0));
    CUDA(cudaMemcpyAsync(slot->cells, pass->carry, (size_t)p->size, cudaMemcpyDeviceToDevice, pass->work));
done:
    return st;
}

/* After the work: copies the carry out of the last cell and downloads the piece. */
static spmv_status take_down(struct pass *pass, struct slot *slot)
{
    spmv_context *const ctx = pass->ctx;
    const struct host_pass *const p = pass->asked;
    const int64_t bytes = slot->count * p->size;
    spmv_status st = SPMV_OK;
    CUDA(cudaMemcpyAsync(pass->carry, slot->cells + bytes, (size_t)p->size, cudaMemcpyDeviceToDevice, pass->work));
    CUDA(cudaEventRecord(slot->worked, pass->work));
    if (p->host_out != NULL) {
        char *const to = slot->staged_out != NULL ? slot->staged_out : (char *)p->host_out + slot->begin * p->size;
        CUDA(cudaStreamWaitEvent(pass->down, slot->worked, 0));
        CUDA(cudaMemcpyAsync(to, slot->cells + p->out_cell * p->size, (size_t)bytes, cudaMemcpyDeviceToHost,
                             pass->down));
        CUDA(cudaEventRecord(slot->down, pass->down));
    }
done:
    return st;
}

/* Waits for the slot's piece and copies it to the host array. */
static spmv_status finish(struct pass *pass, struct slot *slot)
{
    spmv_context *const ctx = pass->ctx;
    const struct host_pass *const p = pass->asked;
    spmv_status st = SPMV_OK;
    CUDA(cudaEventSynchronize(done_of(pass, slot)));
    if (slot->staged_out != NULL)
        copy(ctx, (char *)p->host_out + slot->begin * p->size, slot->staged_out, slot->count * p->size);
done:
    return st;
}

/* Runs step with the context's device current. The work on a piece enters the device itself, and a
 * callback must find the caller's device current. */
#define ON_DEVICE(step)                                                                                                \
    do {                                                                                                               \
        TRY(cuda_enter(pass->ctx));                                                                                    \
        TRY(cuda_leave(pass->ctx, (step)));                                                                            \
    } while (0)

static spmv_status run_pass(struct pass *pass)
{
    const struct host_pass *const p = pass->asked;
    const int64_t count = ceil_divide(p->n, pass->most);
    spmv_status st = SPMV_OK;
    for (int64_t k = 0; k < count + SLOTS - 1; k++) {
        if (k < count) {
            struct slot *const slot = &pass->slots[k % SLOTS];
            slot->begin = k * pass->most;
            slot->count = min_i64(pass->most, p->n - slot->begin);
            ON_DEVICE(take_up(pass, slot, k >= SLOTS));
            TRY(p->run(pass->ctx, p, slot->cells, slot->cells + (slot->count + 1) * p->size, slot->count));
            ON_DEVICE(take_down(pass, slot));
        }
        if (k >= SLOTS - 1) {
            struct slot *const oldest = &pass->slots[(k - (SLOTS - 1)) % SLOTS];
            ON_DEVICE(finish(pass, oldest));
            TRY(context_event(pass->ctx, SPMV_EVENT_PROGRESS, p->what, oldest->begin + oldest->count, p->n));
        }
    }
    if (p->host_last != NULL)
        TRY(pass->ctx->backend->download(pass->ctx, pass->carry, p->host_last, p->size));
done:
    return st;
}

spmv_status host_pass_cuda(spmv_context *ctx, const struct host_pass *asked)
{
    struct pass pass = {.ctx = ctx, .asked = asked};
    /* work queued before may use the workspace; fails while the stream is captured */
    spmv_status st = ctx->backend->synchronize(ctx);
    if (st == SPMV_OK)
        st = get_cells(&pass);
    if (st == SPMV_OK)
        st = cuda_enter(ctx);
    if (st != SPMV_OK)
        return st;
    st = cuda_leave(ctx, open_pass(&pass));
    if (st == SPMV_OK)
        st = run_pass(&pass);
    if (cuda_enter(ctx) == SPMV_OK) {
        close_pass(&pass);
        return cuda_leave(ctx, st);
    }
    close_pass(&pass); /* the context ended with an error: release what can be released */
    return st;
}
