/* The operators as C functions, one for every pair that exists: op_add_f64(a, b), identity_add_f64(); and the map
 * functions: function_neg_f64(a). Generated from the lists of spmv/operators.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef OPS_H
#define OPS_H

#include <math.h>
#include <spmv/operators.h>

#define OPS_DEFINE_(OP, op, TYPE, type, T, D, CLASS)                                                                   \
    static inline T op_##op##_##type(T a, T b)                                                                         \
    {                                                                                                                  \
        return SPMV_FN_##OP##_##CLASS(T, a, b);                                                                        \
    }                                                                                                                  \
    static inline T identity_##op##_##type(void)                                                                       \
    {                                                                                                                  \
        return SPMV_ID_##OP##_##CLASS(T);                                                                              \
    }
SPMV_PAIR_LIST(OPS_DEFINE_)
#undef OPS_DEFINE_

#define OPS_DEFINE_(FN, fn, TYPE, type, T, D, CLASS)                                                                   \
    static inline T function_##fn##_##type(T a)                                                                        \
    {                                                                                                                  \
        return SPMV_MAP_##FN##_##CLASS(T, a);                                                                          \
    }
SPMV_FUNCTION_PAIR_LIST(OPS_DEFINE_)
#undef OPS_DEFINE_

#endif
