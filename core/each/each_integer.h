/* Includes TEMPLATE once for each integer type: see each_number.h, which does the same for all
 * numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
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
