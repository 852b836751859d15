/* The operators and map functions as functors, one for every pair that exists: op_add_f64,
 * function_neg_f64. Generated from the lists of spmv/operators.h, as ops.h is for C.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_OPS_CUH
#define SPMV_OPS_CUH

#include <math.h>
#include <stdint.h>

#include <spmv/operators.h>

#include "device/host_device.cuh"

#define SPMV_OPS_DEFINE_(OP, op, TYPE, type_, T, CLASS)                                                                \
    struct op_##op##_##type_ {                                                                                         \
        using type = T;                                                                                                \
        __host__ __device__ T operator()(T earlier, T later) const                                                     \
        {                                                                                                              \
            return SPMV_FN_##OP##_##CLASS(T, earlier, later);                                                          \
        }                                                                                                              \
        static __host__ __device__ T identity()                                                                        \
        {                                                                                                              \
            return SPMV_ID_##OP##_##CLASS(T);                                                                          \
        }                                                                                                              \
    };
SPMV_OPERATOR_PAIRS(SPMV_OPS_DEFINE_)
#undef SPMV_OPS_DEFINE_

#define SPMV_OPS_DEFINE_(FN, fn, TYPE, type_, T, CLASS)                                                                \
    struct function_##fn##_##type_ {                                                                                   \
        using type = T;                                                                                                \
        __host__ __device__ T operator()(T a) const                                                                    \
        {                                                                                                              \
            return SPMV_MAP_##FN##_##CLASS(T, a);                                                                      \
        }                                                                                                              \
    };
SPMV_FUNCTION_PAIRS(SPMV_OPS_DEFINE_)
#undef SPMV_OPS_DEFINE_

/* The operand of a segmented scan: a value, and whether a segment starts in it. */
template <typename Type> struct segmented {
    Type value; /* the fold since the last start, or of everything if there is no start */
    int start;
};

/* The operator on such pairs: a start in the later operand discards the earlier one. Not
 * commutative. Source: J. T. Schwartz, "Ultracomputers", TOPLAS 2(4), 1980; Blelloch 1990. */
template <typename Op> struct combine_segments {
    using type = segmented<typename Op::type>;
    __host__ __device__ type operator()(type earlier, type later) const
    {
        return {later.start ? later.value : Op()(earlier.value, later.value), earlier.start | later.start};
    }
    static __host__ __device__ type identity()
    {
        return {Op::identity(), 0};
    }
};

#endif
