/* The index check, the definition: from left to right.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "primitives/gather/index_loops.h"

int64_t index_check_scratch_ref(const spmv_context *ctx, int64_t n)
{
    (void)ctx;
    (void)n;
    return 0;
}

spmv_status index_check_ref(spmv_context *ctx, const void *index, int index_bits, int64_t lowest, int64_t limit,
                            int64_t n, int64_t *host_first, int64_t *host_value, void *scratch)
{
    (void)ctx;
    (void)scratch;
    *host_first = first_outside(index, index_bits, lowest, limit, 0, n);
    if (*host_first < n)
        *host_value = index_at(index, index_bits, *host_first);
    return SPMV_OK;
}
