/* Allocations of host memory that fail: for programs that are linked with --wrap=host_alloc.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_FAILS_H
#define SUPPORT_FAILS_H

#include "core/runtime.h"

/* The allocation of this thread that fails, counted down; 0: none. */
static _Thread_local int fails_at;

static inline bool fails_now(void)
{
    return fails_at > 0 && --fails_at == 0;
}

spmv_status __real_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory);
spmv_status __wrap_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory);
spmv_status __wrap_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory)
{
    *memory = NULL;
    return fails_now() ? context_fail(ctx, SPMV_ERROR_MEMORY, "%s: no memory", what)
                       : __real_host_alloc(ctx, bytes, what, memory);
}

#endif
