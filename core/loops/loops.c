/* Serial loops, generated from the lists: see loops.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/loops.h"

#include "core/loops/host_tiles.h"
#include "core/loops/loops_sums.h"
#include "core/loops/ops.h"

/* SUMS_AT_ONCE neighbouring segments of at most SHORT elements each are reduced side by side: first
 * elements, then second ones, and so on. A finished segment gets the identity, which changes
 * nothing. So there is one branch to predict for all of them, not one per segment. */
enum { SHORT = 8 };

/* Returns yes or no without a branch, which would be unpredictable. */
static inline const void *either(bool take, const void *yes, const void *no)
{
    return (const void *)(((uintptr_t)yes & -(uintptr_t)take) | ((uintptr_t)no & ((uintptr_t)take - 1)));
}

#define TEMPLATE "core/loops/loops_typed.h"
#include "core/each/each_pair.h"
#undef TEMPLATE

#define ENTRY(pair)                                                                                                    \
    {                                                                                                                  \
        .size = sizeof identity_##pair(), .identity = identity_of_##pair, .combine = combine_##pair,                   \
        .fold = fold_##pair, .scan = {inclusive_##pair, exclusive_##pair},                                             \
        .segscan = {seg_inclusive_##pair, seg_exclusive_##pair}, .segments = segments_##pair                           \
    }
static const struct op_loops table[SPMV_OP_LIMIT][SPMV_TYPE_LIMIT] = PAIR_TABLE;
#undef ENTRY

const struct op_loops *op_loops(spmv_op op, spmv_type type)
{
    return &table[op][type];
}

void tiles_fold(void *state, int64_t tile)
{
    const struct tile_folds *f = state;
    const struct range r = tile_range(tile, f->n);
    f->loops->fold(f->in, r.begin, r.end, element_out(f->part, f->loops->size, tile));
}

void carry_restart(const struct op_loops *loops, spmv_scan_kind kind, struct carry *carry)
{
    carry->some = kind == SPMV_EXCLUSIVE;
    if (carry->some)
        loops->identity(&carry->value);
}

void carry_join(const struct op_loops *loops, struct carry *carry, const void *part)
{
    if (carry->some)
        loops->combine(&carry->value, part, &carry->value);
    else
        memcpy(&carry->value, part, loops->size);
    carry->some = true;
}

void scan_from(const struct op_loops *loops, spmv_scan_kind kind, const struct carry *carry, const uint8_t *heads,
               const void *in, void *out, int64_t begin, int64_t end, bool stream)
{
    union any_element before = carry->value;
    if (!carry->some && begin < end) {
        /* no carry: the first result is the first element */
        memcpy(&before, element(in, loops->size, begin), loops->size);
        memcpy(element_out(out, loops->size, begin), &before, loops->size);
        begin++;
        heads = heads != NULL ? heads + 1 : NULL;
    }
    if (heads != NULL)
        loops->segscan[kind](&before, heads, in, out, begin, end, stream);
    else
        loops->scan[kind](&before, in, out, begin, end, stream);
}

/* Results of at least this size do not fit in the last-level caches of most machines, or would
 * evict other data. */
static const int64_t STREAM_BYTES = (int64_t)32 << 20;

bool scan_streams(const struct op_loops *loops, const void *in, const void *out, int64_t n)
{
    return in != out && n >= STREAM_BYTES / (int64_t)loops->size;
}
