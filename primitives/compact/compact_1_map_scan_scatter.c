/* compact, rung 1: map, exclusive scan, scatter; on every backend.
 *
 * idea      map each element to 1 (kept) or 0; the exclusive scan of these numbers is the number of
 *           kept elements before each element, which is its destination; scatter the kept elements
 *           there
 * work      4 n
 * depth     that of a scan
 * launches  map 1, scan 3, scatter 1, copy 1
 * bytes     numbers written, scanned (3 times) and read, 5 x 8 n; flags twice; and the elements
 * wins      never; it is the definition by three primitives
 * source    G. E. Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990, section 1.3
 *
 * An additional 0 after the last number makes the scan return the count too, as the destination of
 * element n. (Without it the count is the last destination plus the last number.)
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/compact/compact_rungs.h"

spmv_status compact_map_scan_scatter(spmv_context *ctx, const struct filter *filter, spmv_type type, const void *in,
                                     void *out, int64_t *count, int64_t n)
{
    int64_t bytes = 0;
    if (!multiply_fits(n, (int64_t)sizeof(int64_t), &bytes) || bytes > INT64_MAX / 2)
        return context_fail_memory(ctx, "the places of compact's elements", INT64_MAX);
    const int64_t numbers_bytes = ceil_divide(bytes + (int64_t)sizeof(int64_t), 256) * 256;
    const int64_t scan_bytes = ctx->backend->scan_scratch(ctx, SPMV_I64, n + 1);
    void *scratch = NULL;
    spmv_status st = context_scratch(ctx, numbers_bytes + scan_bytes, &scratch);
    int64_t *const place = scratch;
    if (st == SPMV_OK) /* place[i] = 1 or 0 */
        st = ctx->backend->filter_map(ctx, filter, type, in, place, n);
    if (st == SPMV_OK) /* place[i] = place[0] + ... + place[i-1] */
        st = ctx->backend->scan(ctx, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_I64, place, place, n + 1,
                                (char *)scratch + numbers_bytes);
    if (st == SPMV_OK) /* out[place[i]] = in[i] */
        st = ctx->backend->scatter(ctx, &(struct move){filter, type, in, place, 64, out, n, n});
    if (st == SPMV_OK)
        st = ctx->backend->map(ctx, SPMV_MAP_COPY, SPMV_I64, place + n, count, 1);
    return st;
}
