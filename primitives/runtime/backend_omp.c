/* The backend omp: OpenMP threads of this machine.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <omp.h>
#include <stdio.h>

#include "backend.h"

static spmv_status open_omp(spmv_context *ctx, const spmv_context_options *options)
{
    ctx->threads = options->threads > 0 ? options->threads : omp_get_max_threads();
    snprintf(ctx->description, sizeof ctx->description, "omp, %d thread%s", ctx->threads, ctx->threads == 1 ? "" : "s");
    return SPMV_OK;
}

static void close_omp(spmv_context *ctx)
{
    (void)ctx;
}

const struct backend_table backend_omp = {
    .id = SPMV_BACKEND_OMP,
    .open = open_omp,
    .close = close_omp,
    .alloc = host_memory_alloc,
    .free = host_memory_free,
    .upload = host_memory_upload,
    .download = host_memory_download,
    .synchronize = host_memory_synchronize,
    BACKEND_PRIMITIVES(omp, segments_check_host),
};
