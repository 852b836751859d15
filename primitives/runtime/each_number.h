/* Includes TEMPLATE once for each number type of the primitives, with these macros:
 *   T                  the C type
 *   TYPED(name)        a function name for this type: NAMED(name, type), which the includer defines
 *   IS_REAL, IS_TUPLE  0 or 1
 *
 * The preprocessor cannot include a file for each element of a list, so the types of SPMV_TYPE_LIST
 * are repeated here, in each_type.h and in each_pair.h. A missing type is a compile error: the
 * table generated from the list (ops.h) then names a function that does not exist.
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
