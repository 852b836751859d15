/* Includes TEMPLATE once for each number type of the primitives, with these macros:
 *   T                  the C type
 *   TYPED(name)        a function name for this type: NAMED(name, type), which the includer defines
 *   IS_REAL, IS_TUPLE  0 or 1
 *
 * The preprocessor cannot include a file for each element of a list, so the types of SPMV_TYPES
 * are repeated in each_integer.h, each_real.h, each_type.h and each_pair.h. A missing type is a
 * compile error: the table generated from the list (ops.h) then names a function that does not
 * exist.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define IS_TUPLE 0

#include "core/each/each_integer.h"
#include "core/each/each_real.h"

#undef IS_TUPLE
