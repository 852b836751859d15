/* Includes TEMPLATE once for each number type whose sums use vectors of 16 bytes (loops_sums.c),
 * with these macros:
 *   T            the C type
 *   LANE, MASK   the types of a lane and of its mask; integer lanes are unsigned because sums wrap
 *   LANES        lanes of a vector
 *   IS_REAL      0 or 1
 *   TYPED(name)  name_add_f64 or the like
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define IS_REAL 0
#define T int32_t
#define LANE uint32_t
#define MASK int32_t
#define LANES 4
#define TYPED(name) name##_add_i32
#include "core/each/each_sum_one.h"

#define T int64_t
#define LANE uint64_t
#define MASK int64_t
#define LANES 2
#define TYPED(name) name##_add_i64
#include "core/each/each_sum_one.h"
#undef IS_REAL

#define IS_REAL 1
#define T float
#define LANE float
#define MASK int32_t
#define LANES 4
#define TYPED(name) name##_add_f32
#include "core/each/each_sum_one.h"

#define T double
#define LANE double
#define MASK int64_t
#define LANES 2
#define TYPED(name) name##_add_f64
#include "core/each/each_sum_one.h"
#undef IS_REAL
