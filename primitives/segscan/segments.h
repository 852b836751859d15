/* The check of a description of segments that the fronts of segmented scan and segmented reduce share.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEGMENTS_H
#define SEGMENTS_H

#include "backend.h"

/* Form, width, count and pointer; and the positions, where the backend can look at them. name: the calling function. */
spmv_status segments_check(spmv_context *ctx, const char *name, const spmv_segments *segments, int64_t n);

#endif
