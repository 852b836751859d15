/* Host memory and its limit, the memory functions of the host backends, and structs of other header
 * versions.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/backend.h"
#include "core/system_limits.h"

/* A cache line; also the widest vector load. */
enum { ALIGNMENT = 64 };

int64_t host_memory_bytes(void)
{
    int64_t bytes = INT64_MAX;
#ifdef _SC_PHYS_PAGES
    if (!multiply_fits(sysconf(_SC_PHYS_PAGES), sysconf(_SC_PAGESIZE), &bytes) || bytes == 0)
        bytes = INT64_MAX;
#endif
    return bytes;
}

/* ------------------------------------------------------------------- the limit */

/* Memory that was taken is counted at all times, since a limit may be set later. The count holds what
 * is allocated and not yet touched. The resident set holds what the count lacks: memory that other
 * code of the process allocates. The larger of the two is compared with the limit. */
static struct {
    atomic_llong limit;   /* 0: none */
    atomic_llong taken;   /* by memory_take */
    atomic_llong others;  /* in use when the limit was set, without what was taken */
    atomic_llong of_file; /* resident pages of files (program text) at that time, which are in others */
} process;

/* From so many bytes on, the resident set is read: that takes a few microseconds. */
enum { READ_RESIDENT = 1 << 20 };

void spmv_memory_limit(int64_t bytes)
{
    int64_t files = 0;
    const int64_t anonymous = machine_memory_anonymous("", &files);
    atomic_store(&process.others, max_i64(files, files + anonymous - atomic_load(&process.taken)));
    atomic_store(&process.of_file, files);
    atomic_store(&process.limit, bytes > 0 ? bytes : 0);
}

/* Bytes in use. counted: by the count. */
static int64_t in_use(int64_t counted, bool resident)
{
    const int64_t used = atomic_load(&process.others) + counted;
    return resident ? max_i64(used, machine_memory_anonymous("", NULL) + atomic_load(&process.of_file)) : used;
}

bool memory_take(int64_t bytes)
{
    const int64_t before = atomic_fetch_add(&process.taken, bytes), limit = atomic_load(&process.limit);
    bool fits = limit == 0 || bytes <= limit - in_use(before, bytes >= READ_RESIDENT);
#ifdef __GLIBC__
    /* blocks that were freed may be resident: they go back to the system here */
    if (!fits && bytes <= limit - in_use(before, false)) {
        malloc_trim(0);
        fits = bytes <= limit - in_use(before, true);
    }
#endif
    if (!fits)
        memory_give(bytes);
    return fits;
}

void memory_give(int64_t bytes)
{
    atomic_fetch_sub(&process.taken, bytes);
}

int64_t memory_limit_left(int64_t *limit)
{
    *limit = atomic_load(&process.limit);
    return *limit > 0 ? max_i64(0, *limit - in_use(atomic_load(&process.taken), true)) : INT64_MAX;
}

int64_t spmv_memory_available(int64_t *used, const char **limit)
{
    int64_t most = 0;
    if (used != NULL)
        *used = machine_memory_used("");
    const int64_t free_bytes = machine_memory_available("", limit), left = memory_limit_left(&most);
    if (left >= free_bytes)
        return free_bytes;
    if (limit != NULL)
        *limit = "the limit set by spmv_memory_limit";
    return left;
}

/* ------------------------------------------------------------------- allocation */

/* Takes the bytes, then allocates with one of the functions of the C library. old: the block to
 * resize. The count holds the sizes of the blocks, which may be a little larger. */
enum kind { ALIGNED, ZEROS, RESIZED };

static void *take_block(enum kind kind, int64_t bytes, void *old)
{
    void *block = NULL;
    const int64_t before = old != NULL ? (int64_t)malloc_usable_size(old) : 0;
    if (bytes > INT64_MAX - ALIGNMENT || (uint64_t)bytes > SIZE_MAX - ALIGNMENT)
        return NULL;
    const int64_t size = ceil_divide(bytes, ALIGNMENT) * ALIGNMENT, more = max_i64(0, size - before);
    if (!memory_take(more))
        return NULL;
    if (kind == ALIGNED)
        block = aligned_alloc(ALIGNMENT, (size_t)size); /* it needs a multiple of the alignment */
    else
        block = kind == ZEROS ? calloc(1, (size_t)size) : realloc(old, (size_t)size);
    atomic_fetch_add(&process.taken, (block != NULL ? (int64_t)malloc_usable_size(block) - before : 0) - more);
    return block;
}

static spmv_status allocate(spmv_context *ctx, enum kind kind, int64_t bytes, const char *what, void **memory)
{
    if (bytes <= 0)
        return SPMV_OK;
    void *block = take_block(kind, bytes, *memory);
    /* what a host context keeps for later calls is host memory */
    if (block == NULL && ctx != NULL && !context_on_device(ctx) && context_release_blocks(ctx))
        block = take_block(kind, bytes, *memory);
    if (block == NULL)
        return context_fail_memory(ctx, what, bytes);
    *memory = block;
    return SPMV_OK;
}

spmv_status host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory)
{
    *memory = NULL;
    return allocate(ctx, ALIGNED, bytes, what, memory);
}

spmv_status host_zeros(spmv_context *ctx, int64_t bytes, const char *what, void **memory)
{
    *memory = NULL;
    return allocate(ctx, ZEROS, bytes, what, memory);
}

spmv_status host_resize(spmv_context *ctx, int64_t bytes, const char *what, void **memory)
{
    return allocate(ctx, RESIZED, bytes, what, memory);
}

void host_free(void *memory)
{
    if (memory != NULL)
        memory_give((int64_t)malloc_usable_size(memory));
    free(memory);
}

void host_free_each(void *const *memory, size_t count)
{
    for (size_t i = 0; i < count; i++)
        host_free(memory[i]);
}

void context_free_each(spmv_context *ctx, void *const *memory, size_t count)
{
    for (size_t i = 0; i < count; i++)
        spmv_free(ctx, memory[i]);
}

spmv_status host_memory_alloc(spmv_context *ctx, int64_t bytes, void **memory)
{
    return host_alloc(ctx, bytes, "the context's memory", memory);
}

void host_memory_close(spmv_context *ctx)
{
    (void)ctx;
}

void host_memory_free(spmv_context *ctx, void *memory)
{
    (void)ctx;
    host_free(memory);
}

spmv_status host_memory_upload(spmv_context *ctx, const void *host_from, void *to, int64_t bytes)
{
    (void)ctx;
    memcpy(to, host_from, (size_t)bytes);
    return SPMV_OK;
}

spmv_status host_memory_download(spmv_context *ctx, const void *from, void *host_to, int64_t bytes)
{
    return host_memory_upload(ctx, from, host_to, bytes);
}

spmv_status host_memory_synchronize(spmv_context *ctx)
{
    (void)ctx;
    return SPMV_OK;
}

bool options_read(void *to, size_t to_size, const void *from)
{
    size_t from_size = 0;
    memcpy(&from_size, from, sizeof from_size);
    if (from_size < sizeof from_size)
        return false;
    /* a caller newer than this library may set only members that exist here */
    for (size_t b = to_size; b < from_size; b++)
        if (((const unsigned char *)from)[b] != 0)
            return false;
    memcpy(to, from, from_size < to_size ? from_size : to_size);
    memcpy(to, &to_size, sizeof to_size);
    return true;
}

spmv_status options_take(spmv_context *ctx, const char *kind, void *to, size_t to_size, const void *from)
{
    size_t from_size = 0;
    if (from == NULL || options_read(to, to_size, from))
        return SPMV_OK;
    memcpy(&from_size, from, sizeof from_size);
    return context_fail(
        ctx, SPMV_ERROR_ARGUMENT,
        "%s options have %zu bytes, this library expects %zu: initialize them with spmv_%s_options_init", kind,
        from_size, to_size, kind);
}

spmv_status options_check_ranges(spmv_context *ctx, const char *call, const struct option_range *options, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct option_range *const o = &options[i];
        char range[64];
        if (o->value >= o->least && o->value <= o->most && isfinite(o->value))
            continue;
        if (isinf(o->most))
            snprintf(range, sizeof range, "at least %.10g", o->least);
        else
            snprintf(range, sizeof range, "%.10g %s %.10g", o->least, o->most == o->least + 1 ? "or" : "to", o->most);
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: option %s %.10g: must be %s", call, o->name, o->value,
                            range);
    }
    return SPMV_OK;
}

void result_write(void *to, size_t size, const void *from, size_t from_size)
{
    if (to == NULL || size < sizeof size)
        return;
    memset(to, 0, size);
    memcpy(to, from, size < from_size ? size : from_size);
    memcpy(to, &size, sizeof size);
}

spmv_status result_begin(spmv_context *ctx, const char *call, void *info, size_t size)
{
    result_write(info, size, &size, sizeof size);
    return context_need(ctx, call, "info", info);
}
