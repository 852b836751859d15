/* map, the definition: one loop a form, generated for every type and operator that exist.
 *
 * An iteration touches element i alone, so in place is fine, and the loops are marked as free of dependences: without
 * the mark a compiler's overlap check would send the in-place case to a scalar loop.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "map_loops.h"

#include "ops.h"

#define FOR_RANGE(statement)                                                                                           \
    _Pragma("omp simd") for (int64_t i = begin; i < end; i++)                                                          \
    {                                                                                                                  \
        statement;                                                                                                     \
    }

#define DEFINE(FN, fn, TYPE, type, T, D, CLASS)                                                                        \
    static void map_##fn##_##type(const void *in, void *out, int64_t begin, int64_t end)                               \
    {                                                                                                                  \
        const T *x = in;                                                                                               \
        T *y = out;                                                                                                    \
        FOR_RANGE(y[i] = function_##fn##_##type(x[i]))                                                                 \
    }
SPMV_FUNCTION_PAIR_LIST(DEFINE)
#undef DEFINE

#define DEFINE(OP, op, TYPE, type, T, D, CLASS)                                                                        \
    static void binary_##op##_##type(const void *a, const void *b, void *out, int64_t begin, int64_t end)              \
    {                                                                                                                  \
        const T *x = a, *y = b;                                                                                        \
        T *z = out;                                                                                                    \
        FOR_RANGE(z[i] = op_##op##_##type(x[i], y[i]))                                                                 \
    }
SPMV_PAIR_LIST(DEFINE)
#undef DEFINE

#define DEFINE(OP, op, TYPE, type, T, D, CLASS)                                                                        \
    static void scalar_##op##_##type(const void *scalar, const void *in, void *out, int64_t begin, int64_t end)        \
    {                                                                                                                  \
        const T s = *(const T *)scalar, *x = in;                                                                       \
        T *y = out;                                                                                                    \
        FOR_RANGE(y[i] = op_##op##_##type(s, x[i]))                                                                    \
    }
SPMV_PAIR_LIST(DEFINE)
#undef DEFINE

/* An index as a number of a class. Tuples have no steps: they are only filled with. */
#define FROM_INDEX_INTEGER(T, i) ((T)(i))
#define FROM_INDEX_REAL(T, i) ((T)(i))

#define DEFINE(NAME, name, value, T, D, CLASS, ARG) DEFINE_##CLASS(name, T, CLASS)
#define DEFINE_INTEGER DEFINE_NUMBER
#define DEFINE_REAL DEFINE_NUMBER
#define DEFINE_TUPLE(name, T, CLASS)                                                                                   \
    static void index_##name(const void *first, const void *step, void *out, int64_t begin, int64_t end)               \
    {                                                                                                                  \
        (void)step;                                                                                                    \
        const T a = *(const T *)first;                                                                                 \
        T *y = out;                                                                                                    \
        FOR_RANGE(y[i] = a)                                                                                            \
    }
#define DEFINE_NUMBER(name, T, CLASS)                                                                                  \
    static void index_##name(const void *first, const void *step, void *out, int64_t begin, int64_t end)               \
    {                                                                                                                  \
        const T a = *(const T *)first, b = step != NULL ? *(const T *)step : identity_add_##name();                    \
        T *y = out;                                                                                                    \
        FOR_RANGE(y[i] = op_add_##name(a, op_mul_##name(FROM_INDEX_##CLASS(T, i), b)))                                 \
    }
SPMV_TYPE_LIST(DEFINE, )
#undef DEFINE

map_loop *map_loop_function(spmv_function function, spmv_type type)
{
#define ROW(FN, fn, TYPE, type_, T, D, CLASS) [SPMV_MAP_##FN][SPMV_##TYPE] = map_##fn##_##type_,
    static map_loop *const loops[SPMV_FUNCTION_LIMIT][SPMV_TYPE_LIMIT] = {SPMV_FUNCTION_PAIR_LIST(ROW)};
#undef ROW
    return loops[function][type];
}

map_pair_loop *map_loop_binary(spmv_op op, spmv_type type)
{
#define ROW(OP, op_, TYPE, type_, T, D, CLASS) [SPMV_##OP][SPMV_##TYPE] = binary_##op_##_##type_,
    static map_pair_loop *const loops[SPMV_OP_LIMIT][SPMV_TYPE_LIMIT] = {SPMV_PAIR_LIST(ROW)};
#undef ROW
    return loops[op][type];
}

map_pair_loop *map_loop_scalar(spmv_op op, spmv_type type)
{
#define ROW(OP, op_, TYPE, type_, T, D, CLASS) [SPMV_##OP][SPMV_##TYPE] = scalar_##op_##_##type_,
    static map_pair_loop *const loops[SPMV_OP_LIMIT][SPMV_TYPE_LIMIT] = {SPMV_PAIR_LIST(ROW)};
#undef ROW
    return loops[op][type];
}

map_pair_loop *map_loop_index(spmv_type type)
{
#define ROW(NAME, name, value, T, D, CLASS, ARG) [value] = index_##name,
    static map_pair_loop *const loops[SPMV_TYPE_LIMIT] = {SPMV_TYPE_LIST(ROW, )};
#undef ROW
    return loops[type];
}
