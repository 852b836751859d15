/* Includes TEMPLATE once for each type of SPMV_TYPES: see each_number.h. TYPED(name) is
 * name_f64 or the like.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define NAMED(name, type) name##_##type
#include "core/each/each_number.h"

#define IS_REAL 0
#define IS_TUPLE 1
#define T spmv_affine_f64
#define TYPED(name) NAMED(name, affine_f64)
#include TEMPLATE
#undef T
#undef TYPED

#define T spmv_segsum_f64
#define TYPED(name) NAMED(name, segsum_f64)
#include TEMPLATE
#undef T
#undef TYPED
#undef IS_REAL
#undef IS_TUPLE
#undef NAMED
