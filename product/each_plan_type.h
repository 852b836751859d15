/* Includes TEMPLATE once for each pair of types of a product (PLAN_TYPES_LIST), with
 *   T                of sums and scalars
 *   ELEMENT          of vectors: T, or a 16-bit type
 *   STORED           of the matrix's values
 *   PART             of a number's parts (T for reals)
 *   IS_COMPLEX       0 or 1
 *   WIDENED(x)       a value or an element as a T
 *   ROUNDED(x)       a T as an element
 *   ONE              a stored 1
 *   TYPED(name)      name_f64 or the like
 * With REAL_ONLY, only for pairs of f32 and f64, where ELEMENT is T.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define IS_COMPLEX 0
#define WIDENED(x) ((T)(x))
#define ROUNDED(x) (x)
#define ONE 1
#define T double
#define ELEMENT double
#define PART double
#define STORED double
#define TYPED(name) name##_f64
#include TEMPLATE
#undef STORED
#undef TYPED

#define STORED float
#define TYPED(name) name##_mixed
#include TEMPLATE
#undef T
#undef ELEMENT
#undef PART
#undef TYPED

#define T float
#define ELEMENT float
#define PART float
#define TYPED(name) name##_f32
#include TEMPLATE
#undef TYPED
#undef ELEMENT
#undef STORED
#undef ONE
#undef ROUNDED
#undef WIDENED

#ifndef REAL_ONLY
#define STORED spmv_bf16
#define ELEMENT spmv_bf16
#define WIDENED(x) float_of_bf16(x)
#define ROUNDED(x) bf16_of_float(x)
#define ONE                                                                                                            \
    {                                                                                                                  \
        0x3f80                                                                                                         \
    }
#define TYPED(name) name##_bf16
#include TEMPLATE
#undef STORED
#undef ELEMENT
#undef WIDENED
#undef ROUNDED
#undef ONE
#undef TYPED

#define STORED spmv_f16
#define ELEMENT spmv_f16
#define WIDENED(x) float_of_f16(x)
#define ROUNDED(x) f16_of_float(x)
#define ONE                                                                                                            \
    {                                                                                                                  \
        0x3c00                                                                                                         \
    }
#define TYPED(name) name##_f16
#include TEMPLATE
#undef STORED
#undef ELEMENT
#undef WIDENED
#undef ROUNDED
#undef ONE
#undef TYPED
#endif
#undef T
#undef PART
#undef IS_COMPLEX

#ifndef REAL_ONLY
#define STORED T
#define ELEMENT T
#define WIDENED(x) (x)
#define ROUNDED(x) (x)
#define ONE                                                                                                            \
    {                                                                                                                  \
        1, 0                                                                                                           \
    }
#include "core/each/each_complex.h"
#undef STORED
#undef ELEMENT
#undef WIDENED
#undef ROUNDED
#undef ONE
#endif
