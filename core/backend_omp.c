/* The backend omp: OpenMP threads of this machine.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/backend.h"
#include "core/threads.h"

static spmv_status open_omp(spmv_context *ctx, const spmv_context_options *options)
{
    const spmv_status st = context_set_threads(ctx, options->threads);
    if (st != SPMV_OK)
        return st;
    snprintf(ctx->description, sizeof ctx->description, "omp, %d thread%s", ctx->threads, ctx->threads == 1 ? "" : "s");
    return SPMV_OK;
}

const struct backend_table backend_omp = {
    .id = SPMV_BACKEND_OMP,
    .open = open_omp,
#include "core/backend_host_slots.h"
#define FUNCTION(result, name, ...) .name = name##_omp,
#define RUNGS(type, name) .name = name##_omp,
#include "core/backend_slots.h"
};
