/* Contexts: choice of the backend, memory through its table, scratch, events, the message of the
 * last error.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* The backends, in the order that SPMV_BACKEND_AUTO tries them. AUTO never selects
 * ref, because omp either opens or ends the search with its error. */
static const struct backend_table *const backends[] = {&backend_cuda, &backend_omp, &backend_ref};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

/* The message of the last spmv_context_create that failed, when there is no context to hold it. */
static _Thread_local char create_error[sizeof((struct spmv_context *)0)->error];

static const char *const backend_names[] = {
    [SPMV_BACKEND_AUTO] = "auto",
    [SPMV_BACKEND_REF] = "ref",
    [SPMV_BACKEND_OMP] = "omp",
    [SPMV_BACKEND_CUDA] = "cuda",
};
enum { BACKEND_NAMES = sizeof backend_names / sizeof backend_names[0] };

const char *spmv_backend_name(spmv_backend backend)
{
    return (unsigned)backend < BACKEND_NAMES ? backend_names[backend] : "?";
}

spmv_status spmv_backend_parse(const char *name, spmv_backend *backend)
{
    if (backend == NULL)
        return SPMV_ERROR_ARGUMENT;
    *backend = SPMV_BACKEND_AUTO;
    for (int b = 0; name != NULL && b < BACKEND_NAMES; b++) {
        if (strcmp(name, backend_names[b]) == 0) {
            *backend = (spmv_backend)b;
            return SPMV_OK;
        }
    }
    return SPMV_ERROR_ARGUMENT;
}

const struct backend_table *backend_find(spmv_backend id)
{
    for (int b = 0; b < BACKENDS; b++)
        if (backends[b]->id == id && backends[b]->open != NULL)
            return backends[b];
    return NULL;
}

int spmv_backend_built(spmv_backend backend)
{
    return backend == SPMV_BACKEND_AUTO || backend_find(backend) != NULL;
}

void spmv_context_options_init(spmv_context_options *options, size_t size)
{
    const spmv_context_options defaults = {.size = sizeof defaults, .backend = SPMV_BACKEND_AUTO, .device = -1};
    result_write(options, size, &defaults, sizeof defaults);
}

static spmv_status try_backend(spmv_context *ctx, const struct backend_table *backend,
                               const spmv_context_options *options)
{
    ctx->backend = backend;
    spmv_status st = backend->open(ctx, options);
    if (st != SPMV_OK)
        backend->close(ctx);
    return st;
}

/* Opens the first backend of the list that works, and keeps the reasons of the failed ones for the
 * description. */
static spmv_status open_best(spmv_context *ctx, const spmv_context_options *options)
{
    char why[sizeof ctx->error] = "";
    for (int b = 0; b < BACKENDS; b++) {
        if (backends[b]->open == NULL) {
            snprintf(why, sizeof why, "this build has no CUDA");
            continue;
        }
        const spmv_status st = try_backend(ctx, backends[b], options);
        if (st == SPMV_OK) {
            char chosen[sizeof ctx->description];
            memcpy(chosen, ctx->description, sizeof chosen);
            snprintf(ctx->description, sizeof ctx->description, "%.160s (auto%s%.320s)", chosen, why[0] ? ": " : "",
                     why);
            ctx->error[0] = '\0';
            return SPMV_OK;
        }
        if (st != SPMV_ERROR_NO_DEVICE && st != SPMV_ERROR_DEVICE && st != SPMV_ERROR_MEMORY)
            return st;
        snprintf(why, sizeof why, "%s", ctx->error);
    }
    return SPMV_ERROR_NO_DEVICE;
}

spmv_status spmv_context_create(const spmv_context_options *options, spmv_context **ctx_out)
{
    spmv_status st = SPMV_OK;
    spmv_context_options o;
    spmv_context_options_init(&o, sizeof o);
    spmv_context *ctx = NULL;
    create_error[0] = '\0';
    if (ctx_out == NULL) {
        snprintf(create_error, sizeof create_error, "spmv_context_create: ctx is NULL");
        return SPMV_ERROR_ARGUMENT;
    }
    *ctx_out = NULL;
    ctx = calloc(1, sizeof *ctx);
    if (ctx == NULL) {
        snprintf(create_error, sizeof create_error, "a context needs %zu bytes of memory", sizeof *ctx);
        return SPMV_ERROR_MEMORY;
    }
    TRY(options_take(ctx, "context", &o, sizeof o, options));
    if (o.threads < 0 || o.threads > SPMV_MAX_THREADS) {
        st = context_fail(ctx, SPMV_ERROR_ARGUMENT, "%d threads: must be from 1 to %d, or 0 for the default", o.threads,
                          SPMV_MAX_THREADS);
        goto done;
    }
    TRY(OPTIONS_CHECK(ctx, "spmv_context_create", {"device", o.device, -1, INFINITY}));
    if ((unsigned)o.backend >= BACKEND_NAMES) {
        st = context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_context_create: unknown backend %d", (int)o.backend);
        goto done;
    }
    if (o.first_index != 0 && o.first_index != 1) {
        st = context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_context_create: first_index is %d, must be 0 or 1",
                          o.first_index);
        goto done;
    }
    ctx->first_index = o.first_index;
    ctx->on_event = o.on_event;
    ctx->user = o.user;
    if (o.backend == SPMV_BACKEND_AUTO) {
        st = open_best(ctx, &o);
    } else {
        const struct backend_table *backend = backend_find(o.backend);
        st = backend != NULL ? try_backend(ctx, backend, &o)
                             : context_fail(ctx, SPMV_ERROR_NO_DEVICE, "this build has no backend %s",
                                            spmv_backend_name(o.backend));
    }
done:
    if (st == SPMV_OK) {
        *ctx_out = ctx;
    } else {
        memcpy(create_error, ctx->error, sizeof create_error);
        free(ctx);
    }
    return st;
}

bool context_release_blocks(spmv_context *ctx)
{
    bool some = false;
    for (int b = 0; b < CONTEXT_BLOCKS; b++)
        if (ctx->blocks[b].memory != NULL && !ctx->blocks[b].lent) {
            ctx->backend->free(ctx, ctx->blocks[b].memory);
            ctx->blocks[b].memory = NULL;
            some = true;
        }
    return some;
}

spmv_status context_lend(spmv_context *ctx, int64_t bytes, void **memory)
{
    struct lent_block *room = NULL;
    for (int b = 0; b < CONTEXT_BLOCKS; b++) {
        struct lent_block *const block = &ctx->blocks[b];
        if (block->memory != NULL && !block->lent && block->bytes == bytes) {
            block->lent = true;
            *memory = block->memory;
            return SPMV_OK;
        }
    }
    context_release_blocks(ctx);
    for (int b = 0; b < CONTEXT_BLOCKS && room == NULL; b++)
        if (ctx->blocks[b].memory == NULL)
            room = &ctx->blocks[b];
    const spmv_status st = spmv_alloc(ctx, bytes, memory);
    if (st == SPMV_OK && room != NULL)
        *room = (struct lent_block){*memory, bytes, true};
    return st;
}

void context_take_back(spmv_context *ctx, void *memory)
{
    for (int b = 0; b < CONTEXT_BLOCKS && memory != NULL; b++)
        if (ctx->blocks[b].memory == memory) {
            ctx->blocks[b].lent = false;
            return;
        }
    spmv_free(ctx, memory);
}

void spmv_context_destroy(spmv_context *ctx)
{
    if (ctx == NULL)
        return;
    if (atomic_load_explicit(&ctx->holder, memory_order_relaxed) != 0) {
        if (context_free_of_others(ctx) == SPMV_OK)
            context_fail(ctx, SPMV_ERROR_BUSY, "spmv_context_destroy: a call on the context has not ended");
        return;
    }
    ctx->backend->synchronize(ctx);
    spmv_free(ctx, ctx->scratch);
    spmv_free(ctx, ctx->workspace);
    context_release_blocks(ctx);
    ctx->backend->close(ctx);
    free(ctx);
}

spmv_backend spmv_context_backend(const spmv_context *ctx)
{
    return ctx != NULL ? ctx->backend->id : SPMV_BACKEND_AUTO;
}

const char *spmv_context_describe(const spmv_context *ctx)
{
    return ctx != NULL ? ctx->description : "";
}

int spmv_context_threads(const spmv_context *ctx)
{
    return ctx != NULL ? ctx->threads : 0;
}

void *spmv_context_stream(const spmv_context *ctx)
{
    return ctx != NULL ? ctx->stream : NULL;
}

spmv_status spmv_context_set_stream(spmv_context *ctx, void *stream)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (context_free_of_others(ctx) != SPMV_OK)
        return SPMV_ERROR_BUSY;
    if (ctx->backend->set_stream == NULL)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "spmv_context_set_stream: the backend %s has no streams",
                            spmv_backend_name(ctx->backend->id));
    return stream != NULL && stream == ctx->stream ? SPMV_OK : ctx->backend->set_stream(ctx, stream);
}

const char *spmv_last_error(const spmv_context *ctx)
{
    return ctx != NULL ? ctx->error : create_error;
}

/* ------------------------------------------------------ two threads on one context */

/* A number that differs between the threads that exist. */
static uintptr_t this_thread(void)
{
    static _Thread_local char own;
    return (uintptr_t)&own;
}

spmv_status context_hold(spmv_context *ctx, bool *outer)
{
    uintptr_t holder = atomic_load_explicit(&ctx->holder, memory_order_relaxed);
    *outer = holder == 0;
    if (holder == 0)
        return atomic_compare_exchange_strong_explicit(&ctx->holder, &holder, this_thread(), memory_order_acquire,
                                                       memory_order_relaxed)
                   ? SPMV_OK
                   : SPMV_ERROR_BUSY;
    return holder == this_thread() ? SPMV_OK : SPMV_ERROR_BUSY;
}

spmv_status context_release(spmv_context *ctx, bool outer, spmv_status status)
{
    if (outer)
        atomic_store_explicit(&ctx->holder, 0, memory_order_release);
    return status;
}

spmv_status context_free_of_others(const spmv_context *ctx)
{
    const uintptr_t holder = atomic_load_explicit(&ctx->holder, memory_order_relaxed);
    return holder == 0 || holder == this_thread() ? SPMV_OK : SPMV_ERROR_BUSY;
}

spmv_status context_fail(spmv_context *ctx, spmv_status status, const char *format, ...)
{
    if (ctx != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(ctx->error, sizeof ctx->error, format, arguments);
        va_end(arguments);
    }
    return status;
}

spmv_status object_free_of_calls(spmv_context *ctx, const struct object_use *use, const char *call, const char *what)
{
    return use->calls == 0 ? SPMV_OK
                           : context_fail(ctx, SPMV_ERROR_BUSY,
                                          "%s: a call that has not ended uses the %s: this call is inside its callback",
                                          call, what);
}

spmv_status context_need(spmv_context *ctx, const char *call, const char *name, const void *pointer)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    return pointer != NULL ? SPMV_OK : context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL", call, name);
}

long long context_number(const spmv_context *ctx, int64_t index)
{
    return (long long)index + (ctx != NULL ? ctx->first_index : 0);
}

const char *context_counted(const spmv_context *ctx)
{
    return ctx != NULL && ctx->first_index != 0 ? "" : " (counted from 0)";
}

spmv_status context_need_integers(spmv_context *ctx, const char *call, const char *name, int bits, int64_t n)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (bits != 32 && bits != 64)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %s is %d, must be 32 or 64", call, name, bits);
    return n >= 0 ? SPMV_OK : context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: n = %lld is negative", call, (long long)n);
}

spmv_status context_fail_memory(spmv_context *ctx, const char *what, int64_t bytes)
{
    int64_t limit = 0;
    const int64_t left = memory_limit_left(&limit);
    if (left < bytes)
        return context_fail(ctx, SPMV_ERROR_MEMORY,
                            "%s: %lld bytes (%.3g GB) of memory are not available: the limit of %.4g MB leaves %.4g MB",
                            what, (long long)bytes, (double)bytes * 1e-9, (double)limit * 1e-6, (double)left * 1e-6);
    return context_fail(ctx, SPMV_ERROR_MEMORY, "%s: %lld bytes (%.3g GB) of memory are not available", what,
                        (long long)bytes, (double)bytes * 1e-9);
}

/* Allocates; if there is not enough memory, releases the context's unused blocks and tries again. A
 * second attempt that succeeds leaves no message of the first. */
static spmv_status alloc_by(spmv_context *ctx, spmv_status (*alloc)(spmv_context *, int64_t, void **), int64_t bytes,
                            void **memory)
{
    spmv_status st = alloc(ctx, bytes, memory);
    if (st != SPMV_ERROR_MEMORY || !context_release_blocks(ctx))
        return st;
    st = alloc(ctx, bytes, memory);
    if (st == SPMV_OK)
        ctx->error[0] = '\0';
    return st;
}

/* Grows *have, a block of *have_bytes, to at least bytes. *memory: the block, or NULL if bytes is
 * 0. */
static spmv_status grow(spmv_context *ctx, int64_t bytes, void **have, int64_t *have_bytes, void **memory)
{
    *memory = NULL;
    if (context_free_of_others(ctx) != SPMV_OK)
        return SPMV_ERROR_BUSY;
    if (bytes > *have_bytes) {
        void *larger = NULL;
        const spmv_status st = alloc_by(ctx, ctx->backend->alloc, bytes, &larger);
        if (st != SPMV_OK)
            return st;
        spmv_free(ctx, *have);
        *have = larger;
        *have_bytes = bytes;
    }
    if (bytes > 0)
        *memory = *have;
    return SPMV_OK;
}

spmv_status context_scratch(spmv_context *ctx, int64_t bytes, void **scratch)
{
    return grow(ctx, bytes, &ctx->scratch, &ctx->scratch_bytes, scratch);
}

spmv_status context_workspace(spmv_context *ctx, int64_t bytes, void **workspace)
{
    return grow(ctx, bytes, &ctx->workspace, &ctx->workspace_bytes, workspace);
}

/* Checks the arguments of a public function that gives memory, and sets *memory to NULL. */
static spmv_status check_memory(spmv_context *ctx, const char *call, const char *name, int64_t bytes, void **memory)
{
    const spmv_status st = context_need(ctx, call, name, memory);
    if (st != SPMV_OK)
        return st;
    *memory = NULL;
    return bytes >= 0 ? SPMV_OK : context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %lld bytes", call, (long long)bytes);
}

spmv_status spmv_context_scratch(spmv_context *ctx, int64_t bytes, void **scratch)
{
    const spmv_status st = check_memory(ctx, "spmv_context_scratch", "scratch", bytes, scratch);
    return st != SPMV_OK ? st : context_scratch(ctx, bytes, scratch);
}

spmv_status spmv_context_report(spmv_context *ctx, spmv_status status, const char *text)
{
    const spmv_status st = context_need(ctx, "spmv_context_report", "text", text);
    return st != SPMV_OK ? st : context_fail(ctx, status, "%s", text);
}

spmv_status context_event(spmv_context *ctx, spmv_event_kind kind, const char *text, int64_t done, int64_t total)
{
    if (ctx->on_event == NULL)
        return SPMV_OK;
    const spmv_event event = {.size = sizeof event, .kind = kind, .text = text, .done = done, .total = total};
    if (ctx->on_event(&event, ctx->user) == 0)
        return SPMV_OK;
    return context_fail(ctx, SPMV_CANCELLED, "cancelled by the event callback during: %s", text);
}

spmv_status spmv_context_set_cancel(spmv_context *ctx, spmv_cancel_fn cancel, void *user)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    ctx->cancel = cancel;
    ctx->cancel_user = user;
    ctx->work = 0;
    return SPMV_OK;
}

bool context_cancelled(spmv_context *ctx)
{
    return ctx->cancel != NULL && ctx->cancel(ctx->cancel_user) != 0;
}

spmv_status context_fail_cancelled(spmv_context *ctx, const char *what)
{
    return context_fail(ctx, SPMV_CANCELLED, "%s: cancelled", what);
}

/* Units of work between two calls of the caller's function: less than a millisecond. */
enum { POLL_WORK = 1 << 16 };

void context_budget(spmv_context *ctx, int64_t work)
{
    ctx->budget = work;
}

void context_pace(spmv_context *ctx, int64_t work)
{
    ctx->pace = work;
    ctx->paced = 0;
}

static double share_of(int64_t done, int64_t all)
{
    return (double)done / (double)max_i64(1, all);
}

static bool keeps_pace(const spmv_context *ctx, int64_t work, int64_t done, int64_t all)
{
    static const double SLACK = 0.05; /* of all: the first part may be uneven */
    return ctx->pace == 0 || (double)(ctx->paced + work) <= (share_of(done, all) + SLACK) * (double)ctx->pace;
}

spmv_status context_keep_pace(spmv_context *ctx, const char *what, int64_t done, int64_t all)
{
    if (keeps_pace(ctx, 0, done, all))
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_LIMIT, "%s: after %.0f %% of the rows its work is above that of another one",
                        what, 100 * share_of(done, all));
}

bool context_allows(const spmv_context *ctx, int64_t work, int64_t done, int64_t all)
{
    return keeps_pace(ctx, work, done, all) && (ctx->budget == 0 || ctx->budget - work > 1);
}

bool context_asks(spmv_context *ctx, int64_t work)
{
    ctx->work += work;
    if (ctx->work < POLL_WORK)
        return false;
    ctx->work = 0;
    return context_cancelled(ctx);
}

spmv_status context_poll(spmv_context *ctx, const char *what, int64_t work)
{
    ctx->paced += work;
    if (ctx->budget > 0) {
        ctx->budget = max_i64(1, ctx->budget - work);
        if (ctx->budget == 1)
            return context_fail(ctx, SPMV_ERROR_LIMIT,
                                "%s: the set-up takes more work than is allowed for one that \"auto\" chooses", what);
    }
    return context_asks(ctx, work) ? context_fail_cancelled(ctx, what) : SPMV_OK;
}

spmv_status context_warn(spmv_context *ctx, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return context_event(ctx, SPMV_EVENT_WARNING, text, 0, 0);
}

spmv_status spmv_alloc(spmv_context *ctx, int64_t bytes, void **memory)
{
    const spmv_status st = check_memory(ctx, "spmv_alloc", "memory", bytes, memory);
    if (st != SPMV_OK || bytes == 0)
        return st;
    return alloc_by(ctx, ctx->backend->alloc, bytes, memory);
}

spmv_status context_alloc(spmv_context *ctx, int64_t bytes, void **memory)
{
    const struct backend_table *const backend = ctx->backend;
    *memory = NULL;
    return bytes == 0
               ? SPMV_OK
               : alloc_by(ctx, backend->alloc_queued != NULL ? backend->alloc_queued : backend->alloc, bytes, memory);
}

void context_free(spmv_context *ctx, void *memory)
{
    const struct backend_table *const backend = ctx->backend;
    if (memory != NULL)
        (backend->free_queued != NULL ? backend->free_queued : backend->free)(ctx, memory);
}

bool context_on_device(const spmv_context *ctx)
{
    return ctx != NULL && ctx->backend->on_device;
}

spmv_status context_read(spmv_context *ctx, const void *from, int64_t bytes, const char *what, void **copy,
                         const void **array)
{
    *copy = NULL;
    *array = from;
    if (!context_on_device(ctx) || from == NULL || bytes == 0)
        return SPMV_OK;
    spmv_status st = host_alloc(ctx, bytes, what, copy);
    if (st == SPMV_OK)
        st = spmv_download(ctx, from, *copy, bytes);
    *array = *copy;
    return st;
}

void context_keep_freed(spmv_context *ctx, bool all)
{
    if (ctx->backend->keep_freed != NULL)
        ctx->backend->keep_freed(ctx, all);
}

void context_freed(spmv_context *ctx)
{
    if (ctx->backend->freed != NULL)
        ctx->backend->freed(ctx);
}

void spmv_free(spmv_context *ctx, void *memory)
{
    if (ctx != NULL && memory != NULL)
        ctx->backend->free(ctx, memory);
}

/* Checks and makes a copy; copy: upload or download of the backend. */
static spmv_status hold_and_copy(spmv_context *ctx, const char *name, const void *from, void *to, int64_t bytes,
                                 spmv_status (*copy)(spmv_context *, const void *, void *, int64_t))
{
    bool outer = false;
    if (bytes < 0 || (bytes > 0 && (from == NULL || to == NULL)))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %lld bytes from %s to %s", name, (long long)bytes,
                            from ? "an array" : "NULL", to ? "an array" : "NULL");
    if (bytes == 0)
        return SPMV_OK;
    const spmv_status st = context_hold(ctx, &outer);
    return st != SPMV_OK ? st : context_release(ctx, outer, copy(ctx, from, to, bytes));
}

spmv_status spmv_upload(spmv_context *ctx, const void *host_from, void *to, int64_t bytes)
{
    return ctx == NULL ? SPMV_ERROR_ARGUMENT
                       : hold_and_copy(ctx, "spmv_upload", host_from, to, bytes, ctx->backend->upload);
}

spmv_status spmv_download(spmv_context *ctx, const void *from, void *host_to, int64_t bytes)
{
    return ctx == NULL ? SPMV_ERROR_ARGUMENT
                       : hold_and_copy(ctx, "spmv_download", from, host_to, bytes, ctx->backend->download);
}

spmv_status spmv_synchronize(spmv_context *ctx)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    const spmv_status st = context_free_of_others(ctx);
    return st != SPMV_OK ? st : ctx->backend->synchronize(ctx);
}
