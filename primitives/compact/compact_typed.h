/* The typed part of compact_loops.c, included once per type (each_type.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* Writes every element and advances only if it is kept, which avoids an unpredictable branch. The
 * elements go to a buffer first, because the last write may be after the kept elements. */
static int64_t TYPED(write)(const void *in, const uint8_t *flags, int64_t begin, int64_t end, void *out)
{
    const T *const x = (const T *)in + begin;
    T room[HOST_TILE];
    int64_t kept = 0;
    for (int64_t i = 0; i < end - begin; i++) {
        room[kept] = x[i];
        kept += flags[i] != 0;
    }
    memcpy(out, room, (size_t)kept * sizeof(T));
    return kept;
}
