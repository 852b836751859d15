/* Includes TEMPLATE once for each real type: see each_number.h, which does the same for all
 * numbers. Without NAMED, TYPED(name) is name_f64 or the like.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMED
#define NAMED(name, type) name##_##type
#define NAMED_HERE
#endif

#define IS_REAL 1
#define T float
#define TYPED(name) NAMED(name, f32)
#include TEMPLATE
#undef T
#undef TYPED

#define T double
#define TYPED(name) NAMED(name, f64)
#include TEMPLATE
#undef T
#undef TYPED
#undef IS_REAL

#ifdef NAMED_HERE
#undef NAMED
#undef NAMED_HERE
#endif
