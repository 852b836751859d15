/* Checks of the memory that a product takes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/backend.h"
#include "spgemm/spgemm_internal.h"

/* ------------------------------------------------------------------------------- memory */

spmv_status spgemm_working_bytes(struct spmv_spgemm_plan *plan, int64_t bytes)
{
    plan->working_bytes = max_i64(plan->working_bytes, bytes);
    if (plan->max_bytes == 0 || bytes <= plan->max_bytes)
        return SPMV_OK;
    return context_fail(plan->ctx, SPMV_ERROR_MEMORY,
                        "spmv_spgemm: the method %s needs %lld bytes (%.3g GB) of working memory, %lld are allowed",
                        plan->method->name, (long long)bytes, (double)bytes * 1e-9, (long long)plan->max_bytes);
}

bool spgemm_host_has(int64_t bytes)
{
    enum { SMALL = 1 << 24 }; /* asking the system takes longer than a small product */
    return bytes <= SMALL || bytes <= spmv_memory_available(NULL, NULL);
}

spmv_status spgemm_room_for_columns(struct spmv_spgemm_plan *plan, int64_t nnz)
{
    int64_t bytes = 0;
    if (!multiply_fits(nnz, sizeof *plan->col, &bytes))
        bytes = INT64_MAX;
    if (spgemm_host_has(bytes))
        return SPMV_OK;
    char what[128];
    snprintf(what, sizeof what, "spmv_spgemm: the columns of at least %lld entries of C", (long long)nnz);
    return context_fail_memory(plan->ctx, what, bytes);
}
