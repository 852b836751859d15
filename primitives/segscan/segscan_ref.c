/* segmented scan and segmented reduce, the definitions: each segment from left to right.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "host_tiles.h"
#include "loops.h"
#include "segments_host.h"

int64_t segscan_scratch_ref(const spmv_context *ctx, spmv_type type, const spmv_segments *segments, int64_t n)
{
    (void)ctx;
    (void)type;
    (void)segments;
    (void)n;
    return 0;
}

int64_t segreduce_scratch_ref(const spmv_context *ctx, spmv_type type, const spmv_segments *segments, int64_t n)
{
    return segscan_scratch_ref(ctx, type, segments, n);
}

spmv_status segscan_ref(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type,
                        const spmv_segments *segments, const void *in, void *out, int64_t n, void *scratch)
{
    (void)ctx;
    (void)scratch;
    const struct op_loops *loops = op_loops(op, type);
    if (segments->form == SPMV_SEGMENT_FLAGS) {
        loops->segscan_flags(kind, NULL, segments->heads, in, out, n);
        return SPMV_OK;
    }
    for (int64_t s = 0; s < segments->count; s++) {
        const int64_t begin = segment_begin(segments, s, n), end = segment_begin(segments, s + 1, n);
        if (end > begin)
            loops->scan(kind, NULL, element(in, loops->size, begin), element_out(out, loops->size, begin), end - begin);
    }
    return SPMV_OK;
}

spmv_status segreduce_ref(spmv_context *ctx, spmv_op op, spmv_type type, const spmv_segments *segments, const void *in,
                          void *out, int64_t n, void *scratch)
{
    (void)ctx;
    (void)scratch;
    const struct op_loops *loops = op_loops(op, type);
    for (int64_t s = 0; s < segments->count; s++) {
        const int64_t begin = segment_begin(segments, s, n), end = segment_begin(segments, s + 1, n);
        void *result = element_out(out, loops->size, s);
        if (begin == end)
            loops->identity(result);
        else
            memcpy(result, element(in, loops->size, begin), loops->size);
        for (int64_t i = begin + 1; i < end; i++)
            loops->combine(result, element(in, loops->size, i), result);
    }
    return SPMV_OK;
}
