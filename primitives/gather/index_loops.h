/* The loop of the index check over a range of the index, shared by the host backends.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef INDEX_LOOPS_H
#define INDEX_LOOPS_H

#include <stdint.h>

static inline int64_t index_at(const void *index, int index_bits, int64_t i)
{
    return index_bits == 32 ? (int64_t)((const int32_t *)index)[i] : ((const int64_t *)index)[i];
}

/* The first i in [begin, end) with index[i] not in [lowest, limit), else end. */
static inline int64_t first_outside(const void *index, int index_bits, int64_t lowest, int64_t limit, int64_t begin,
                                    int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = index_at(index, index_bits, i);
        if (at < lowest || at >= limit)
            return i;
    }
    return end;
}

#endif
