/* map's loops: see map_loops.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "map_loops.h"

#include "ops.h"

#define DEFINE(FN, fn, TYPE, type, T, D, CLASS)                                                                        \
    static void map_##fn##_##type(const void *in, void *out, int64_t n)                                                \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            ((T *)out)[i] = function_##fn##_##type(((const T *)in)[i]);                                                \
    }
SPMV_FUNCTION_PAIR_LIST(DEFINE)
#undef DEFINE

#define DEFINE(OP, op, TYPE, type, T, D, CLASS)                                                                        \
    static void binary_##op##_##type(const void *a, const void *b, void *out, int64_t n)                               \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            ((T *)out)[i] = op_##op##_##type(((const T *)a)[i], ((const T *)b)[i]);                                    \
    }                                                                                                                  \
    static void scalar_##op##_##type(const void *scalar, const void *in, void *out, int64_t n)                         \
    {                                                                                                                  \
        const T s = *(const T *)scalar;                                                                                \
        for (int64_t i = 0; i < n; i++)                                                                                \
            ((T *)out)[i] = op_##op##_##type(s, ((const T *)in)[i]);                                                   \
    }
SPMV_PAIR_LIST(DEFINE)
#undef DEFINE

void map_loop(spmv_function function, spmv_type type, const void *in, void *out, int64_t n)
{
#define ROW(FN, fn, TYPE, type_, T, D, CLASS) [SPMV_MAP_##FN][SPMV_##TYPE] = map_##fn##_##type_,
    static void (*const run[SPMV_FUNCTION_LIMIT][SPMV_TYPE_LIMIT])(const void *, void *,
                                                                   int64_t) = {SPMV_FUNCTION_PAIR_LIST(ROW)};
#undef ROW
    run[function][type](in, out, n);
}

void map_binary_loop(spmv_op op, spmv_type type, const void *a, const void *b, void *out, int64_t n)
{
#define ROW(OP, op_, TYPE, type_, T, D, CLASS) [SPMV_##OP][SPMV_##TYPE] = binary_##op_##_##type_,
    static void (*const run[SPMV_OP_LIMIT][SPMV_TYPE_LIMIT])(const void *, const void *, void *,
                                                             int64_t) = {SPMV_PAIR_LIST(ROW)};
#undef ROW
    run[op][type](a, b, out, n);
}

void map_scalar_loop(spmv_op op, spmv_type type, const void *host_scalar, const void *in, void *out, int64_t n)
{
#define ROW(OP, op_, TYPE, type_, T, D, CLASS) [SPMV_##OP][SPMV_##TYPE] = scalar_##op_##_##type_,
    static void (*const run[SPMV_OP_LIMIT][SPMV_TYPE_LIMIT])(const void *, const void *, void *,
                                                             int64_t) = {SPMV_PAIR_LIST(ROW)};
#undef ROW
    run[op][type](host_scalar, in, out, n);
}

/* out[i] = first + (from + i) * step */
#define DEFINE(NAME, name, value, T, D, CLASS, ARG)                                                                    \
    static void index_##name(const void *first, const void *step, void *out, int64_t from, int64_t n)                  \
    {                                                                                                                  \
        const T a = *(const T *)first, b = step != NULL ? *(const T *)step : identity_add_##name();                    \
        for (int64_t i = 0; i < n; i++)                                                                                \
            ((T *)out)[i] = op_add_##name(a, op_mul_##name((T)(from + i), b));                                         \
    }
SPMV_TYPE_LIST(DEFINE, )
#undef DEFINE

void map_index_loop(spmv_type type, const void *host_first, const void *host_step, void *out, int64_t from, int64_t n)
{
#define ROW(NAME, name, value, T, D, CLASS, ARG) [value] = index_##name,
    static void (*const run[SPMV_TYPE_LIMIT])(const void *, const void *, void *, int64_t,
                                              int64_t) = {SPMV_TYPE_LIST(ROW, )};
#undef ROW
    run[type](host_first, host_step, out, from, n);
}
