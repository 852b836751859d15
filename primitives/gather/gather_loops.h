/* gather's loop over a piece of the index, for every type and both widths: what both host backends run.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GATHER_LOOPS_H
#define GATHER_LOOPS_H

#include <spmv/primitives.h>

#include "filter.h"

/* out[i] = in[index[i]], from <= i < to */
typedef void gather_loop(const void *in, int64_t in_n, const void *index, void *out, int64_t from, int64_t to);

/* The same where mask[i] != 0, and where a predicate on the element and the scalar says `when`. */
typedef void gather_masked_loop(const void *in, int64_t in_n, const void *index, const uint8_t *mask, void *out,
                                int64_t from, int64_t to);
typedef void gather_if_loop(const void *in, int64_t in_n, const void *index, const void *scalar, bool when, void *out,
                            int64_t from, int64_t to);

/* Runs the loop that fits the filter. */
void gather_filtered_part(const struct filter *filter, spmv_type type, const void *in, int64_t in_n, const void *index,
                          int index_bits, void *out, int64_t from, int64_t to);

gather_loop *gather_loop_for(spmv_type type, int index_bits);

#endif
