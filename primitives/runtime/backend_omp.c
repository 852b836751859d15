/* The backend omp: OpenMP threads of this machine.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "backend.h"
#include "threads.h"

static spmv_status open_omp(spmv_context *ctx, const spmv_context_options *options)
{
    const spmv_status st = context_set_threads(ctx, options->threads);
    if (st != SPMV_OK)
        return st;
    snprintf(ctx->description, sizeof ctx->description, "omp, %d thread%s", ctx->threads, ctx->threads == 1 ? "" : "s");
    return SPMV_OK;
}

static void close_omp(spmv_context *ctx)
{
    (void)ctx;
}

#define BACKEND(name) name##_omp
#define SEGMENTS_CHECK segments_check_host
const struct backend_table backend_omp = {
    .id = SPMV_BACKEND_OMP,
    .open = open_omp,
    .close = close_omp,
    .alloc = host_memory_alloc,
    .free = host_memory_free,
    .upload = host_memory_upload,
    .download = host_memory_download,
    .synchronize = host_memory_synchronize,
#include "backend_slots.h"
};
