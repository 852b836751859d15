/* The backend ref: serial, the definition of every operation.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/backend.h"

static spmv_status open_ref(spmv_context *ctx, const spmv_context_options *options)
{
    (void)options;
    ctx->threads = 1;
    snprintf(ctx->description, sizeof ctx->description, "ref, 1 thread");
    return SPMV_OK;
}

const struct backend_table backend_ref = {
    .id = SPMV_BACKEND_REF,
    .open = open_ref,
#include "core/backend_host_slots.h"
#define FUNCTION(result, name, ...) .name = name##_ref,
#define RUNGS(type, name) .name = name##_ref,
#include "core/backend_slots.h"
};
