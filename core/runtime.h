/* Shared by all library files: the context struct, error messages, host memory, scratch, events.
 *
 * Internal functions have no spmv_ prefix; the prefix marks exported functions.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <limits.h>
#include <math.h>
#include <spmv/context.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/reals.h"

struct backend_table;

/* Ends the declaration of a function of a CUDA source that other sources call:
 *
 *     spmv_status scale_cuda(spmv_context *ctx, void *x) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
 *
 * A build without CUDA makes a function that returns this value (distributed/no_cuda.c). It is not
 * called, because no context has such memory: context_on_device. */
#ifndef CUDA_ONLY
#define CUDA_ONLY(value)
#endif

/* A block that context_lend keeps. */
struct lent_block {
    void *memory; /* NULL: no block */
    int64_t bytes;
    bool lent;
};

enum { CONTEXT_BLOCKS = 12 };

/* A number that threads read and write at the same time; C++ sources never touch it. */
#ifdef __cplusplus
typedef uintptr_t atomic_holder;
#else
typedef _Atomic(uintptr_t) atomic_holder;
#endif

struct spmv_context {
    const struct backend_table *backend;
    int threads;  /* size of OpenMP teams */
    void *stream; /* cuda only */
    void *device; /* the state of the backend cuda */
    spmv_event_fn on_event;
    void *user;
    spmv_cancel_fn cancel; /* NULL: none */
    void *cancel_user;
    int64_t work;        /* since the last call of cancel */
    int64_t budget;      /* units of work that are left, of context_budget; 0: no limit */
    int64_t pace, paced; /* units of context_pace; 0: none. Those counted since */
    int first_index;     /* of spmv_context_options */
    void *scratch;       /* in the context's memory; only grows */
    int64_t scratch_bytes;
    void *workspace; /* like scratch, for memory proportional to n */
    int64_t workspace_bytes;
    struct lent_block blocks[CONTEXT_BLOCKS];
    atomic_holder holder; /* the thread within context_hold and context_release; 0: none */
    char error[1024];
    char description[512];
};

/* For functions that release in one place:
 *
 *     spmv_status st = SPMV_OK;
 *     TRY(call());
 *     done:
 *         release;
 *         return st; */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if ((st = (call)) != SPMV_OK)                                                                                  \
            goto done;                                                                                                 \
    } while (0)

/* Stores the message in the context (if ctx is not NULL) and returns status:
 *
 *     return context_fail(ctx, SPMV_ERROR_SIZE, "...", n); */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
spmv_status
context_fail(spmv_context *ctx, spmv_status status, const char *format, ...);

/* The number of a row, column, entry or element in messages, which counts from the context's
 * first_index; and the words behind it, " (counted from 0)" or "":
 *
 *     context_fail(ctx, st, "row %lld%s is empty", context_number(ctx, row), context_counted(ctx));
 *
 * ctx NULL: from 0. */
long long context_number(const spmv_context *ctx, int64_t index);
const char *context_counted(const spmv_context *ctx);

/* Marks the context as used by this thread until context_release, so that a second thread gets
 * SPMV_ERROR_BUSY instead of mixing its work with this one's. *outer: whether this call set the
 * mark; a call within another one of the same thread does not. Without success, the context must
 * not be touched, not even its message. */
spmv_status context_hold(spmv_context *ctx, bool *outer);

/* Ends what context_hold began. Returns status. */
spmv_status context_release(spmv_context *ctx, bool outer, spmv_status status);

/* SPMV_ERROR_BUSY if another thread holds the context. */
spmv_status context_free_of_others(const spmv_context *ctx);

/* The calls that use an object: solves that run, applications of a preconditioner. Their callbacks
 * may call the library, so an object can be named by a call while another one uses it. The counts
 * change only in the thread that has the context. */
struct object_use {
    int calls;
    bool destroyed; /* ..._destroy was called meanwhile: the last call to end destroys the object */
};

/* SPMV_ERROR_BUSY if a call uses the object. call: the public function; what: the kind of object. */
spmv_status object_free_of_calls(spmv_context *ctx, const struct object_use *use, const char *call, const char *what);

/* For ..._destroy: whether it must leave the object to the call that uses it. */
static inline bool object_destroyed_later(struct object_use *use)
{
    use->destroyed = use->calls > 0;
    return use->destroyed;
}

/* Ends a use. Returns whether the object must be destroyed now. */
static inline bool object_end_use(struct object_use *use)
{
    return --use->calls == 0 && use->destroyed;
}

/* A member of an option struct with the range of its values. most INFINITY: no upper limit, but the
 * value must be finite. */
struct option_range {
    const char *name;
    double value, least, most;
};

/* Checks options; a NaN is outside of every range. SPMV_ERROR_ARGUMENT: "call: option NAME
 * VALUE: must be LEAST to MOST". */
spmv_status options_check_ranges(spmv_context *ctx, const char *call, const struct option_range *options, size_t count);

/* The same for a list of options in braces. */
#define OPTIONS_CHECK(ctx, call, ...)                                                                                  \
    options_check_ranges(ctx, call, (const struct option_range[]){__VA_ARGS__},                                        \
                         sizeof((const struct option_range[]){__VA_ARGS__}) / sizeof(struct option_range))

/* Checks two arguments of a public function: the context, and a pointer that must not be NULL.
 * Returns SPMV_OK, or SPMV_ERROR_ARGUMENT with "call: name is NULL" (without a message if the
 * context is NULL). */
spmv_status context_need(spmv_context *ctx, const char *call, const char *name, const void *pointer);

/* Checks the arguments of a public function that takes an array of n integers: the context, the bits
 * of an integer (32 or 64; name: of this argument), and n. SPMV_ERROR_ARGUMENT. */
spmv_status context_need_integers(spmv_context *ctx, const char *call, const char *name, int bits, int64_t n);

/* Returns SPMV_ERROR_MEMORY with "what: N bytes (X GB) of memory are not available", and what a limit
 * leaves. */
spmv_status context_fail_memory(spmv_context *ctx, const char *what, int64_t bytes);

/* Returns at least bytes of scratch in the context's memory, valid until the next call of a public
 * function. If bytes is 0, *scratch is NULL. */
spmv_status context_scratch(spmv_context *ctx, int64_t bytes, void **scratch);

/* The same from a second block: memory that grows with n must not move the scratch, which captured
 * graphs may refer to. */
spmv_status context_workspace(spmv_context *ctx, int64_t bytes, void **workspace);

/* Allocates memory that only work on the context's stream uses; free it with context_free, or with
 * spmv_free, which waits. On a GPU it comes from the context's pool, which keeps some freed blocks: hundreds of microseconds faster
 * than allocating from the device. */
spmv_status context_alloc(spmv_context *ctx, int64_t bytes, void **memory);

/* Frees memory of context_alloc after the work queued so far, without a wait. NULL is allowed. */
void context_free(spmv_context *ctx, void *memory);

/* Whether the context's memory is that of a device, which the host cannot read. */
bool context_on_device(const spmv_context *ctx);

/* *array: an array of the context's memory, readable on the host: itself, or *copy, a copy of it in
 * host memory, which the caller frees with host_free. what: its name in a message. */
spmv_status context_read(spmv_context *ctx, const void *from, int64_t bytes, const char *what, void **copy,
                         const void **array);

/* Whether the pool keeps all freed memory, whatever its limit, for work that often allocates and
 * frees. */
void context_keep_freed(spmv_context *ctx, bool all);

/* Call after the last spmv_free of several: the pool returns memory above its limit to the
 * device. */
void context_freed(spmv_context *ctx);

/* Memory as from spmv_alloc and spmv_free, but the context keeps the last blocks, for callers that
 * need the same size again: on a GPU, allocating may take longer than the work. Kept blocks are
 * released when a block of another size is requested, when spmv_alloc runs out of memory, and with
 * the context. */
spmv_status context_lend(spmv_context *ctx, int64_t bytes, void **memory);
void context_take_back(spmv_context *ctx, void *memory);

/* Releases the kept blocks that are not lent; returns whether there were any. */
bool context_release_blocks(spmv_context *ctx);

/* Calls the event callback, if there is one. Returns SPMV_CANCELLED if the callback cancels. */
spmv_status context_event(spmv_context *ctx, spmv_event_kind kind, const char *text, int64_t done, int64_t total);

/* For long work on the host: adds units of work (entries read, multiplications), and asks the
 * caller's function of spmv_context_set_cancel after each POLL_WORK units. SPMV_CANCELLED if it
 * cancels; what: the work, for the message. Only in the thread that called the library. */
spmv_status context_poll(spmv_context *ctx, const char *what, int64_t work);

/* Limits the work that context_poll counts from now on: above it, context_poll returns
 * SPMV_ERROR_LIMIT. The same work is counted in each run, so what is refused does not depend on the
 * machine. 0: no limit. */
void context_budget(spmv_context *ctx, int64_t work);

/* The same for a set-up that goes on evenly, and can tell early that it will take more work than this: with
 * so much of it done, context_keep_pace returns SPMV_ERROR_LIMIT if the work so far is above this share of
 * it. 0: no pace. */
void context_pace(spmv_context *ctx, int64_t work);
spmv_status context_keep_pace(spmv_context *ctx, const char *what, int64_t done, int64_t all);

/* For work of several threads, which is counted by context_poll afterwards. allows: whether so
 * much more work, with so much done, would be within the budget and the pace; any thread may ask.
 * asks: adds to the work that leads to a question of context_poll; true if it cancels. Only in the
 * thread that called the library. */
bool context_allows(const spmv_context *ctx, int64_t work, int64_t done, int64_t all);
bool context_asks(spmv_context *ctx, int64_t work);

/* Whether that function cancels; asked at once. */
bool context_cancelled(spmv_context *ctx);

/* SPMV_CANCELLED with "what: cancelled". */
spmv_status context_fail_cancelled(spmv_context *ctx, const char *what);

/* A warning event with a formatted text. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
spmv_status
context_warn(spmv_context *ctx, const char *format, ...);

/* Bytes of this machine's memory; INT64_MAX if unknown. */
int64_t host_memory_bytes(void);

/* Allocates 64-byte aligned, uninitialised host memory; NULL if bytes <= 0. what: its name in the
 * error message. */
spmv_status host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory);
void host_free(void *memory);

/* The same, filled with 0, which costs nothing for pages that are not touched; aligned to 16 bytes. */
spmv_status host_zeros(spmv_context *ctx, int64_t bytes, const char *what, void **memory);

/* Makes a block of host_alloc (or NULL) larger or smaller, and keeps its contents; aligned to 16 bytes.
 * After an error, and with bytes <= 0, *memory stays. */
spmv_status host_resize(spmv_context *ctx, int64_t bytes, const char *what, void **memory);

/* Every allocation above takes its bytes from the limit of spmv_memory_limit before it is made, and
 * host_free gives them back. Code that allocates otherwise, or that must know beforehand, calls these.
 * memory_take: false, and nothing is taken, if the limit leaves fewer bytes. */
bool memory_take(int64_t bytes);
void memory_give(int64_t bytes);

/* The bytes that the limit leaves; INT64_MAX without a limit, *limit is then 0. */
int64_t memory_limit_left(int64_t *limit);

/* Releases each of these arrays; NULL is skipped. */
#define host_free_all(...) host_free_each(MEMORY_LIST(__VA_ARGS__))
/* The same of arrays in the context's memory. */
#define context_free_all(ctx, ...) context_free_each(ctx, MEMORY_LIST(__VA_ARGS__))
#define MEMORY_LIST(...) (void *const[]){__VA_ARGS__}, sizeof((void *const[]){__VA_ARGS__}) / sizeof(void *)
void host_free_each(void *const *memory, size_t count);
void context_free_each(spmv_context *ctx, void *const *memory, size_t count);

/* Reads an option struct of another header version: copies the bytes that both versions have from
 * the caller's struct over the defaults in to. Returns false if from->size is too small, or if
 * bytes unknown to this version are not zero. */
bool options_read(void *to, size_t to_size, const void *from);

/* Reads options with options_read, or keeps the defaults if from is NULL. kind: "plan" for options
 * that spmv_plan_options_init fills. SPMV_ERROR_ARGUMENT. */
spmv_status options_take(spmv_context *ctx, const char *kind, void *to, size_t to_size, const void *from);

/* Writes a result struct of another header version: copies at most size bytes of from to the
 * caller's struct, whose first member becomes size. */
void result_write(void *to, size_t size, const void *from, size_t from_size);

/* The start of a public function that describes an object: all members of the caller's struct but
 * size become 0. SPMV_ERROR_ARGUMENT if there is no object (ctx is NULL) or no struct. */
spmv_status result_begin(spmv_context *ctx, const char *call, void *info, size_t size);

/* Whether the primitives take elements of the type: the types of SPMV_TYPES. */
bool type_in_primitives(spmv_type type);

/* *product = a * b for a, b >= 0; returns false if it does not fit in 64 bits. */
static inline bool multiply_fits(int64_t a, int64_t b, int64_t *product)
{
    if (a < 0 || b < 0 || (b != 0 && a > INT64_MAX / b))
        return false;
    *product = a * b;
    return true;
}

/* Entry i of an array of 32- or 64-bit signed integers. */
static inline int64_t offset_at(const void *offsets, int bits, int64_t i)
{
    return bits == 32 ? (int64_t)((const int32_t *)offsets)[i] : ((const int64_t *)offsets)[i];
}

static inline int64_t ceil_divide(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
