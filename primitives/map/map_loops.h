/* The loops of map over a range of elements, for every type and operator, shared by ref and omp.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MAP_LOOPS_H
#define MAP_LOOPS_H

#include <spmv/operators.h>

/* Each computes the elements begin <= i < end of the result that spmv/primitives.h defines. */
typedef void map_loop(const void *in, void *out, int64_t begin, int64_t end);
typedef void map_pair_loop(const void *a, const void *b, void *out, int64_t begin, int64_t end);

/* The loop of a pair, which must exist. scalar: a is one element. index: a is the first value, b
 * the step or NULL. */
map_loop *map_loop_function(spmv_function function, spmv_type type);
map_pair_loop *map_loop_binary(spmv_op op, spmv_type type);
map_pair_loop *map_loop_scalar(spmv_op op, spmv_type type);
map_pair_loop *map_loop_index(spmv_type type);

#endif
