/* compact, the definition: element by element from the left.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/loops/host_tiles.h"
#include "primitives/compact/compact_loops.h"

int64_t compact_scratch_ref(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    (void)type;
    (void)n;
    return 0;
}

spmv_status compact_ref(spmv_context *ctx, const struct filter *filter, spmv_type type, const void *in, void *out,
                        int64_t *count, int64_t n, void *scratch)
{
    (void)ctx;
    (void)scratch;
    const size_t size = spmv_type_size(type);
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        uint8_t room = 0;
        if (*filter_flags(filter, type, in, i, i + 1, &room) == 0)
            continue;
        memcpy(element_out(out, size, kept), element(in, size, i), size);
        kept++;
    }
    *count = kept;
    return SPMV_OK;
}

spmv_status filter_map_ref(spmv_context *ctx, const struct filter *filter, spmv_type type, const void *in,
                           int64_t *numbers, int64_t n)
{
    (void)ctx;
    for (int64_t t = 0; t < tiles_of(n); t++) {
        const struct range r = tile_range(t, n);
        compact_map_range(filter, type, in, r.begin, r.end, numbers);
    }
    numbers[n] = 0;
    return SPMV_OK;
}
