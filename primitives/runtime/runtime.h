/* What every library file shares: the context's inside, failing with a sentence, host memory, scratch, events.
 *
 * Internal functions carry no spmv_ prefix: the prefix marks what is exported.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <limits.h>
#include <spmv/context.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct backend_table;

/* A block that context_lend has lent, or would. */
struct lent_block {
    void *memory; /* NULL: none */
    int64_t bytes;
    bool lent;
};

enum { CONTEXT_BLOCKS = 12 };

struct spmv_context {
    const struct backend_table *backend;
    int threads;  /* OpenMP regions ask for so many */
    void *stream; /* cuda */
    void *device; /* cuda: the backend's own state */
    spmv_event_fn on_event;
    void *user;
    void *scratch; /* in the context's memory; only grows */
    int64_t scratch_bytes;
    void *workspace; /* as scratch, for what needs room in proportion to n */
    int64_t workspace_bytes;
    struct lent_block blocks[CONTEXT_BLOCKS];
    char error[1024];
    char description[512];
};

/* For functions that release in one place:  spmv_status st = SPMV_OK; TRY(call()); done: release; return st; */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if ((st = (call)) != SPMV_OK)                                                                                  \
            goto done;                                                                                                 \
    } while (0)

/* Keeps the sentence in the context (ctx NULL: nowhere) and returns status:  return context_fail(ctx, SPMV_ERROR_SIZE,
 * "...", n); */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
spmv_status
context_fail(spmv_context *ctx, spmv_status status, const char *format, ...);

/* Checks two arguments of a public function: the context and a pointer that must not be NULL. Returns SPMV_OK, or
 * SPMV_ERROR_ARGUMENT with "call: name is NULL" (without a sentence where the context is what is missing). */
spmv_status context_need(spmv_context *ctx, const char *call, const char *name, const void *pointer);

/* SPMV_ERROR_MEMORY with "what: N bytes (X GB) needed". */
spmv_status context_fail_memory(spmv_context *ctx, const char *what, int64_t bytes);

/* At least bytes of scratch in the context's memory, valid until the next call of a public function; bytes 0: *scratch
 * NULL. */
spmv_status context_scratch(spmv_context *ctx, int64_t bytes, void **scratch);

/* The same from a second block: room that grows with n must not move the scratch, which captured graphs may hold. */
spmv_status context_workspace(spmv_context *ctx, int64_t bytes, void **workspace);

/* Memory for work that is queued on the context's stream and no other; spmv_free takes it back. On a GPU it comes from
 * a pool of the context, which keeps some of what is freed: hundreds of microseconds less than from the device. */
spmv_status context_alloc(spmv_context *ctx, int64_t bytes, void **memory);

/* Behind the last spmv_free of several: a pool that has more than it is to keep gives the rest back to the device. */
void context_freed(spmv_context *ctx);

/* Memory as spmv_alloc gives it, and as spmv_free takes it back; but the context keeps the last such blocks, for a
 * caller that will ask for as many bytes again: on a GPU allocating may take longer than the work. What is kept is
 * released when a block of another size is asked for, when spmv_alloc finds no memory, and with the context. */
spmv_status context_lend(spmv_context *ctx, int64_t bytes, void **memory);
void context_take_back(spmv_context *ctx, void *memory);

/* Releases what is kept and not lent; true: there was something. */
bool context_release_blocks(spmv_context *ctx);

/* Tells the callback, if there is one; SPMV_CANCELLED when it asks to stop. */
spmv_status context_event(spmv_context *ctx, spmv_event_kind kind, const char *text, int64_t done, int64_t total);

/* As context_event for a warning, formatted. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
spmv_status
context_warn(spmv_context *ctx, const char *format, ...);

/* Bytes of this machine's memory; INT64_MAX when it does not tell. */
int64_t host_memory_bytes(void);

/* 64-byte aligned host memory, contents undefined; bytes <= 0 give NULL. what names the thing in the sentence. */
spmv_status host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory);
void host_free(void *memory);

/* Option structs of another header version: copies the size bytes that both know from the caller's struct onto defaults
 * that are already in to; false when from->size is too small to be one or bytes unknown here are not zero. */
bool options_read(void *to, size_t to_size, const void *from);

/* Reads options with options_read, or keeps the defaults if from is NULL. kind: "plan" for options
 * that spmv_plan_options_init fills. SPMV_ERROR_ARGUMENT. */
spmv_status options_take(spmv_context *ctx, const char *kind, void *to, size_t to_size, const void *from);

/* Result structs likewise: writes at most size bytes of from (whose first member is its size) to the caller's struct.
 */
void result_write(void *to, size_t size, const void *from, size_t from_size);

static inline bool type_is_complex(spmv_type type)
{
    return type == SPMV_C64 || type == SPMV_C128;
}

/* The type of the two parts of a complex type; any other type is its own. */
static inline spmv_type type_part(spmv_type type)
{
    return type == SPMV_C64 ? SPMV_F32 : type == SPMV_C128 ? SPMV_F64 : type;
}

/* Whether primitives have elements of the type: those of SPMV_TYPE_LIST. */
bool type_in_primitives(spmv_type type);

/* *product = a * b for a, b >= 0; false when it does not fit in 64 bits. */
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
