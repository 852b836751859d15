/* Segments given by positions, as the host backends look at them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEGMENTS_HOST_H
#define SEGMENTS_HOST_H

#include "backend.h"

/* Where segment s begins; segment count begins at n. */
static inline int64_t segment_begin(const spmv_segments *segments, int64_t s, int64_t n)
{
    return s < segments->count ? offset_at(segments->heads, segments->bits, s) : n;
}

/* The last segment that begins at or before element i: the one i belongs to, empty segments aside. count >= 1. */
int64_t segment_of(const spmv_segments *segments, int64_t i);

#endif
