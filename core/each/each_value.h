/* Includes TEMPLATE once for each type of matrix values: the number types (each_number.h) with
 * IS_COMPLEX 0, and the complex types (each_complex.h). TYPED(name) is name_f64 or the like.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define NAMED(name, type) name##_##type
#define IS_COMPLEX 0
#include "core/each/each_number.h"
#undef IS_COMPLEX
#include "core/each/each_complex.h"
#undef NAMED
