/* The loops of compact over a tile, for every type, shared by the host backends.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPACT_LOOPS_H
#define COMPACT_LOOPS_H

#include "core/loops/filter.h"

/* The number of elements begin <= i < end that the filter takes; end - begin <= HOST_TILE. */
int64_t compact_count_range(const struct filter *filter, spmv_type type, const void *in, int64_t begin, int64_t end);

/* Writes those elements to out, in order. Returns their number. */
int64_t compact_write_range(const struct filter *filter, spmv_type type, const void *in, int64_t begin, int64_t end,
                            void *out);

/* numbers[i] = 1 if the filter takes element i, else 0. */
void compact_map_range(const struct filter *filter, spmv_type type, const void *in, int64_t begin, int64_t end,
                       int64_t *numbers);

#endif
