/* The backend ref: serial, the definition of every operation.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "backend.h"

static spmv_status open_ref(spmv_context *ctx, const spmv_context_options *options)
{
    (void)options;
    ctx->threads = 1;
    snprintf(ctx->description, sizeof ctx->description, "ref, 1 thread");
    return SPMV_OK;
}

static void close_ref(spmv_context *ctx)
{
    (void)ctx;
}

#define BACKEND(name) name##_ref
#define SEGMENTS_CHECK segments_check_host
const struct backend_table backend_ref = {
    .id = SPMV_BACKEND_REF,
    .open = open_ref,
    .close = close_ref,
    .alloc = host_memory_alloc,
    .free = host_memory_free,
    .upload = host_memory_upload,
    .download = host_memory_download,
    .synchronize = host_memory_synchronize,
#include "backend_slots.h"
};
