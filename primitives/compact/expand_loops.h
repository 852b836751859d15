/* The loops of generalised compact over a range of the elements or of the outputs, shared by the
 * host backends.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPAND_LOOPS_H
#define EXPAND_LOOPS_H

#include "core/backend.h"

/* The number at i, or 0 if it is negative. */
static inline int64_t expand_count(const void *counts, int count_bits, int64_t i)
{
    const int64_t count = offset_at(counts, count_bits, i);
    return count > 0 ? count : 0;
}

/* Scatter: elements begin <= i < end write their outputs. */
void expand_elements(const struct expansion *e, int64_t begin, int64_t end);

/* Gather: outputs begin <= j < end find their elements; end <= e->offsets[n]. */
void expand_outputs(const struct expansion *e, int64_t begin, int64_t end);

#endif
