/* Includes TEMPLATE once for each type of numbers whose sums run on vectors of 16 bytes (loops_sums.c), with T, the C
 * type; LANE and MASK, the types of a lane and of its mask; LANES, how many a vector has; IS_REAL, 0 or 1; and
 * TYPED(name), which is name_add_f64. Integers wrap, so their lanes have no sign.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define IS_REAL 0
#define T int32_t
#define LANE uint32_t
#define MASK int32_t
#define LANES 4
#define TYPED(name) name##_add_i32
#include TEMPLATE
#undef T
#undef LANE
#undef MASK
#undef LANES
#undef TYPED

#define T int64_t
#define LANE uint64_t
#define MASK int64_t
#define LANES 2
#define TYPED(name) name##_add_i64
#include TEMPLATE
#undef T
#undef LANE
#undef MASK
#undef LANES
#undef TYPED
#undef IS_REAL

#define IS_REAL 1
#define T float
#define LANE float
#define MASK int32_t
#define LANES 4
#define TYPED(name) name##_add_f32
#include TEMPLATE
#undef T
#undef LANE
#undef MASK
#undef LANES
#undef TYPED

#define T double
#define LANE double
#define MASK int64_t
#define LANES 2
#define TYPED(name) name##_add_f64
#include TEMPLATE
#undef T
#undef LANE
#undef MASK
#undef LANES
#undef TYPED
#undef IS_REAL
