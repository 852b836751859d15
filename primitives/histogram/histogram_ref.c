/* histogram, the definition: element by element.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "primitives/histogram/histogram_request.h"

static int64_t scratch_of(const struct histogram_request *r)
{
    (void)r;
    return 0;
}

/* Counts wrap like all integer sums. */
static void add_one(void *counts, int bits, int64_t bin)
{
    if (bits == 32)
        ((uint32_t *)counts)[bin]++;
    else
        ((uint64_t *)counts)[bin]++;
}

static spmv_status run(spmv_context *ctx, const struct histogram_request *r, void *scratch)
{
    (void)ctx;
    (void)scratch;
    for (int64_t i = 0; i < r->n; i++) {
        if (r->index[i] >= 0 && r->index[i] < r->bins)
            add_one(r->counts, r->count_bits, r->index[i]);
        else if (r->left_out != NULL)
            add_one(r->left_out, r->count_bits, 0);
    }
    return SPMV_OK;
}

const struct histogram_rung histogram_rungs_ref[] = {{"definition", scratch_of, run}, {NULL, NULL, NULL}};
