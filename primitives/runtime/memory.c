/* Host memory, the memory functions of the host backends, and structs of other header versions.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend.h"
#include "system_limits.h"

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

int64_t spmv_memory_available(int64_t *used, const char **limit)
{
    if (used != NULL)
        *used = machine_memory_used("");
    return machine_memory_available("", limit);
}

spmv_status host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory)
{
    *memory = NULL;
    if (bytes <= 0)
        return SPMV_OK;
    /* aligned_alloc needs a multiple of the alignment */
    if (bytes <= INT64_MAX - ALIGNMENT && (uint64_t)bytes <= SIZE_MAX - ALIGNMENT)
        *memory = aligned_alloc(ALIGNMENT, (size_t)ceil_divide(bytes, ALIGNMENT) * ALIGNMENT);
    return *memory != NULL ? SPMV_OK : context_fail_memory(ctx, what, bytes);
}

void host_free(void *memory)
{
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
