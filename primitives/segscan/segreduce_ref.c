/* segmented reduce, the definition: a reduction of each segment; the identity if it is empty.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/host_tiles.h"
#include "primitives/segscan/segments_host.h"

int64_t segreduce_scratch_ref(const spmv_context *ctx, spmv_type type, const spmv_segments *segments, int64_t n)
{
    (void)ctx;
    (void)type;
    (void)segments;
    (void)n;
    return 0;
}

spmv_status segreduce_ref(spmv_context *ctx, spmv_op op, spmv_type type, const spmv_segments *segments, const void *in,
                          void *out, int64_t n, void *scratch)
{
    const size_t size = spmv_type_size(type);
    for (int64_t s = 0; s < segments->count; s++) {
        const int64_t begin = segment_begin(segments, s, n), end = segment_begin(segments, s + 1, n);
        if (begin < end)
            reduce_ref(ctx, op, type, element(in, size, begin), element_out(out, size, s), end - begin, scratch);
        else
            spmv_op_identity(op, type, element_out(out, size, s));
    }
    return SPMV_OK;
}
