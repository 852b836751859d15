/* Includes TEMPLATE once for each pair of predicate and type of SPMV_PREDICATE_PAIRS: see
 * each_number.h. TYPED(name) is name_less_f64 or the like.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define NAMED(name, type) name##_less_##type
#include "core/each/each_number.h"
#undef NAMED

#define NAMED(name, type) name##_less_equal_##type
#include "core/each/each_number.h"
#undef NAMED

#define NAMED(name, type) name##_greater_##type
#include "core/each/each_number.h"
#undef NAMED

#define NAMED(name, type) name##_greater_equal_##type
#include "core/each/each_number.h"
#undef NAMED

#define NAMED(name, type) name##_equal_##type
#include "core/each/each_number.h"
#undef NAMED

#define NAMED(name, type) name##_not_equal_##type
#include "core/each/each_number.h"
#undef NAMED

#define NAMED(name, type) name##_nonzero_##type
#include "core/each/each_number.h"
#undef NAMED
