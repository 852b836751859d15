/* The check of a description of segments, shared by the fronts of segmented scan and segmented
 * reduce.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEGMENTS_H
#define SEGMENTS_H

#include "core/backend.h"

/* Checks form, width, count and pointer, and the positions if the backend can read them. name: the
 * calling function. */
spmv_status segments_check(spmv_context *ctx, const char *name, const spmv_segments *segments, int64_t n);

#endif
