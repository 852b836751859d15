/* segmented scan, the definition: a scan of each segment.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/host_tiles.h"
#include "primitives/segscan/segments_host.h"

int64_t segscan_scratch_ref(const spmv_context *ctx, spmv_type type, const spmv_segments *segments, int64_t n)
{
    (void)ctx;
    (void)type;
    (void)segments;
    (void)n;
    return 0;
}

/* The end of the segment that starts at begin. */
static int64_t flagged_end(const spmv_segments *segments, int64_t begin, int64_t n)
{
    int64_t end = begin + 1;
    while (end < n && !segment_flag(segments, end))
        end++;
    return end;
}

spmv_status segscan_ref(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type,
                        const spmv_segments *segments, const void *in, void *out, int64_t n, void *scratch)
{
    const size_t size = spmv_type_size(type);
    const bool flags = segments->form == SPMV_SEGMENT_FLAGS;
    for (int64_t begin = 0, end, s = 0; begin < n; begin = end, s++) {
        end = flags ? flagged_end(segments, begin, n) : segment_begin(segments, s + 1, n);
        if (begin < end)
            scan_ref(ctx, kind, op, type, element(in, size, begin), element_out(out, size, begin), end - begin,
                     scratch);
    }
    return SPMV_OK;
}
