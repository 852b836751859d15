/* scatter's loop over a piece of the index, for every type and both widths: what both host backends run.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCATTER_LOOPS_H
#define SCATTER_LOOPS_H

#include <spmv/primitives.h>

#include "filter.h"

/* out[index[i]] = in[i], from <= i < to */
typedef void scatter_loop(const void *in, const void *index, void *out, int64_t out_n, int64_t from, int64_t to);

/* The same where the filter takes element i; to - from <= HOST_TILE. */
void scatter_filtered_part(const struct filter *filter, spmv_type type, const void *in, const void *index,
                           int index_bits, void *out, int64_t out_n, int64_t from, int64_t to);

scatter_loop *scatter_loop_for(spmv_type type, int index_bits);

#endif
