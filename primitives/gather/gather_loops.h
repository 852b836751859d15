/* gather's loop over a piece of the index, for every type and both widths: what both host backends run.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GATHER_LOOPS_H
#define GATHER_LOOPS_H

#include <spmv/primitives.h>

/* out[i] = in[index[i]], from <= i < to */
typedef void gather_loop(const void *in, int64_t in_n, const void *index, void *out, int64_t from, int64_t to);

gather_loop *gather_loop_for(spmv_type type, int index_bits);

#endif
