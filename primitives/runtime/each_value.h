/* Includes TEMPLATE once for each type of matrix values: the number types (each_number.h) with
 * IS_COMPLEX 0, and the complex types with IS_COMPLEX 1. TYPED(name) is name_f64 or the like.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define NAMED(name, type) name##_##type
#define IS_COMPLEX 0
#include "each_number.h"
#undef IS_COMPLEX
#define IS_COMPLEX 1
#define T spmv_c64
#define TYPED(name) NAMED(name, c64)
#include TEMPLATE
#undef T
#undef TYPED
#define T spmv_c128
#define TYPED(name) NAMED(name, c128)
#include TEMPLATE
#undef T
#undef TYPED
#undef IS_COMPLEX
#undef NAMED
