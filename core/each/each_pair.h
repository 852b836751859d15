/* Includes TEMPLATE once for each pair of operator and type of SPMV_OPERATOR_PAIRS: see each_number.h.
 * TYPED(name) is name_add_f64 or the like. IS_SUM: 1 if the operator is add, else 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define IS_SUM 1
#define NAMED(name, type) name##_add_##type
#include "core/each/each_number.h"
#undef NAMED
#undef IS_SUM

#define IS_SUM 0
#define NAMED(name, type) name##_mul_##type
#include "core/each/each_number.h"
#undef NAMED

#define NAMED(name, type) name##_min_##type
#include "core/each/each_number.h"
#undef NAMED

#define NAMED(name, type) name##_max_##type
#include "core/each/each_number.h"
#undef NAMED

#define NAMED(name, type) name##_last_##type
#include "core/each/each_number.h"
#undef NAMED

#define IS_REAL 0
#define IS_TUPLE 1
#define T spmv_affine_f64
#define TYPED(name) name##_compose_affine_f64
#include TEMPLATE
#undef T
#undef TYPED

#define T spmv_segsum_f64
#define TYPED(name) name##_maxsum_segsum_f64
#include TEMPLATE
#undef T
#undef TYPED
#undef IS_REAL
#undef IS_TUPLE
#undef IS_SUM
