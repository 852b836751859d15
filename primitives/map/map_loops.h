/* map's loops over a piece of an array, for every function or operator and type that exist: what both host backends
 * run.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MAP_LOOPS_H
#define MAP_LOOPS_H

#include <spmv/primitives.h>

void map_loop(spmv_function function, spmv_type type, const void *in, void *out, int64_t n);
void map_binary_loop(spmv_op op, spmv_type type, const void *a, const void *b, void *out, int64_t n);
void map_scalar_loop(spmv_op op, spmv_type type, const void *host_scalar, const void *in, void *out, int64_t n);

/* out[i] = first + (from + i) step */
void map_index_loop(spmv_type type, const void *host_first, const void *host_step, void *out, int64_t from, int64_t n);

#endif
