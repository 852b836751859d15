/* Includes TEMPLATE once for each type of numbers that primitives take, with T, the C type; TYPED(name), a name for the
 * functions of this type, which the includer gives as NAMED(name, type); and IS_REAL and IS_TUPLE, 0 or 1.
 *
 * The preprocessor cannot include from a list, so the types of SPMV_TYPE_LIST stand here, in each_type.h and in
 * each_pair.h as well. One that is missing is an error of the compiler: the table that the list makes (ops.h) then names
 * a function that does not exist.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define IS_TUPLE 0

#define IS_REAL 0
#define T int32_t
#define TYPED(name) NAMED(name, i32)
#include TEMPLATE
#undef T
#undef TYPED

#define T int64_t
#define TYPED(name) NAMED(name, i64)
#include TEMPLATE
#undef T
#undef TYPED
#undef IS_REAL

#include "each_real.h"

#undef IS_TUPLE
