/* The operators as C functions, one for every pair that exists: op_add_f64(a, b),
 * identity_add_f64(); the map functions: function_neg_f64(a); and tables of functions by operator
 * and type. Generated from the lists of spmv/operators.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef OPS_H
#define OPS_H

#include <math.h>
#include <spmv/operators.h>

/* The same values as in operators.h without ||. On a CPU it is a branch that is mispredicted for half of
 * all random numbers: a reduction takes 8 times as long. */
#undef SPMV_FN_MIN_REAL
#define SPMV_FN_MIN_REAL(T, a, b) ((a) != (a) ? (a) : (a) < (b) ? (a) : (b))
#undef SPMV_FN_MAX_REAL
#define SPMV_FN_MAX_REAL(T, a, b) ((a) != (a) ? (a) : (a) > (b) ? (a) : (b))

#define OPS_DEFINE_(OP, op, TYPE, type, T, CLASS)                                                                      \
    static inline T op_##op##_##type(T a, T b)                                                                         \
    {                                                                                                                  \
        return SPMV_FN_##OP##_##CLASS(T, a, b);                                                                        \
    }                                                                                                                  \
    static inline T identity_##op##_##type(void)                                                                       \
    {                                                                                                                  \
        return SPMV_ID_##OP##_##CLASS(T);                                                                              \
    }
SPMV_OPERATOR_PAIRS(OPS_DEFINE_)
#undef OPS_DEFINE_

#define OPS_DEFINE_(FN, fn, TYPE, type, T, CLASS)                                                                      \
    static inline T function_##fn##_##type(T a)                                                                        \
    {                                                                                                                  \
        return SPMV_MAP_##FN##_##CLASS(T, a);                                                                          \
    }
SPMV_FUNCTION_PAIRS(OPS_DEFINE_)
#undef OPS_DEFINE_

/* Tables by operator (or map function, or predicate) and type. Each entry that exists is
 * ENTRY(add_f64) or the like, which the user defines; the others are 0. So a table has a function for
 * every pair of the lists. */
#define PAIR_TABLE                                                                                                     \
    {                                                                                                                  \
        SPMV_OPERATOR_PAIRS(PAIR_ROW_)                                                                                 \
    }
#define PAIR_ROW_(OP, op, TYPE, type, T, CLASS) [SPMV_##OP][SPMV_##TYPE] = ENTRY(op##_##type),
#define FUNCTION_TABLE                                                                                                 \
    {                                                                                                                  \
        SPMV_FUNCTION_PAIRS(FUNCTION_ROW_)                                                                             \
    }
#define FUNCTION_ROW_(FN, fn, TYPE, type, T, CLASS) [SPMV_MAP_##FN][SPMV_##TYPE] = ENTRY(fn##_##type),
#define PREDICATE_TABLE                                                                                                \
    {                                                                                                                  \
        SPMV_PREDICATE_PAIRS(PREDICATE_ROW_)                                                                           \
    }
#define PREDICATE_ROW_(NAME, name, TYPE, type, T, CLASS) [SPMV_IS_##NAME][SPMV_##TYPE] = ENTRY(name##_##type),

/* Tables by type, with the entries name_f64 and so on: all types of primitives, the types of matrix
 * values, the real types. */
#define TYPE_TABLE(name)                                                                                               \
    {                                                                                                                  \
        SPMV_TYPES(TYPE_ROW_, name)                                                                                    \
    }
#define TYPE_ROW_(TYPE, type, value, T, CLASS, NAME) [SPMV_##TYPE] = NAME##_##type,
#define VALUE_TABLE(name)                                                                                              \
    {                                                                                                                  \
        SPMV_NUMBER_TYPES(TYPE_ROW_, name) SPMV_COMPLEX_TYPES(TYPE_ROW_, name)                                         \
    }
#define REAL_TABLE(name)                                                                                               \
    {                                                                                                                  \
        SPMV_TYPES(REAL_ROW_, name)                                                                                    \
    }
#define REAL_ROW_(TYPE, type, value, T, CLASS, NAME) REAL_ROW_##CLASS##_(TYPE, type, NAME)
#define REAL_ROW_REAL_(TYPE, type, NAME) [SPMV_##TYPE] = NAME##_##type,
#define REAL_ROW_INTEGER_(TYPE, type, NAME)
#define REAL_ROW_TUPLE_(TYPE, type, NAME)

#endif
