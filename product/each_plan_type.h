/* Includes TEMPLATE once for each pair of types of a product (PLAN_TYPES_LIST), with T, of vectors
 * and sums; STORED, of the matrix's values; PART, of a number's parts (T for reals); and
 * IS_COMPLEX. With REAL_ONLY, only for pairs of reals. TYPED(name) is name_f64 or the like.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define IS_COMPLEX 0
#define T double
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
#undef PART
#undef TYPED

#define T float
#define PART float
#define TYPED(name) name##_f32
#include TEMPLATE
#undef T
#undef PART
#undef STORED
#undef TYPED
#undef IS_COMPLEX

#ifndef REAL_ONLY
#define STORED T
#include "core/each/each_complex.h"
#undef STORED
#endif
