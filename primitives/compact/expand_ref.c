/* Generalised compact, the definition: element by element.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/compact/expand_loops.h"

int64_t expand_scratch_ref(const spmv_context *ctx, int64_t n)
{
    (void)ctx;
    (void)n;
    return 0;
}

spmv_status expand_offsets_ref(spmv_context *ctx, const void *counts, int count_bits, int64_t *offsets, int64_t n,
                               void *scratch)
{
    (void)ctx;
    (void)scratch;
    int64_t before = 0;
    for (int64_t i = 0; i < n; i++) {
        /* offsets and counts may be the same array */
        const int64_t count = expand_count(counts, count_bits, i);
        offsets[i] = before;
        before += count;
    }
    offsets[n] = before;
    return SPMV_OK;
}

spmv_status expand_ref(spmv_context *ctx, spmv_expand_form form, const struct expansion *e)
{
    (void)ctx;
    if (form == SPMV_EXPAND_SCATTER)
        expand_elements(e, 0, e->n);
    else
        expand_outputs(e, 0, e->offsets[e->n] < e->total ? e->offsets[e->n] : e->total);
    return SPMV_OK;
}
