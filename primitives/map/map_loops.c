/* map, the definition: one loop per form, generated for every type and operator that exist.
 *
 * Iteration i accesses only element i, so in-place use is safe, and the loops are marked as free of
 * dependences. Without the mark, a compiler's overlap check would select a scalar loop for the
 * in-place case.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/map/map_loops.h"

#include "core/loops/ops.h"

#define TEMPLATE "primitives/map/map_pairs_typed.h"
#include "core/each/each_pair.h"
#undef TEMPLATE

#define TEMPLATE "primitives/map/map_index_typed.h"
#include "core/each/each_type.h"
#undef TEMPLATE

#define DEFINE(FN, fn, TYPE, type, T, CLASS)                                                                           \
    static void map_##fn##_##type(const void *in, void *out, int64_t begin, int64_t end)                               \
    {                                                                                                                  \
        const T *x = in;                                                                                               \
        T *y = out;                                                                                                    \
        _Pragma("omp simd") for (int64_t i = begin; i < end; i++) y[i] = function_##fn##_##type(x[i]);                 \
    }
SPMV_FUNCTION_PAIRS(DEFINE)
#undef DEFINE

map_loop *map_loop_function(spmv_function function, spmv_type type)
{
#define ENTRY(pair) map_##pair
    static map_loop *const loops[SPMV_FUNCTION_LIMIT][SPMV_TYPE_LIMIT] = FUNCTION_TABLE;
#undef ENTRY
    return loops[function][type];
}

map_pair_loop *map_loop_binary(spmv_op op, spmv_type type)
{
#define ENTRY(pair) binary_##pair
    static map_pair_loop *const loops[SPMV_OP_LIMIT][SPMV_TYPE_LIMIT] = PAIR_TABLE;
#undef ENTRY
    return loops[op][type];
}

map_pair_loop *map_loop_scalar(spmv_op op, spmv_type type)
{
#define ENTRY(pair) scalar_##pair
    static map_pair_loop *const loops[SPMV_OP_LIMIT][SPMV_TYPE_LIMIT] = PAIR_TABLE;
#undef ENTRY
    return loops[op][type];
}

map_pair_loop *map_loop_index(spmv_type type)
{
    static map_pair_loop *const loops[SPMV_TYPE_LIMIT] = TYPE_TABLE(index);
    return loops[type];
}
