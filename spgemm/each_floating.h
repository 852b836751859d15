/* Includes TEMPLATE once for each type of values of a sparse product, f32, f64, c64 and c128, with
 * T, TYPED(name), and the arithmetic of floating_typed.h. FLOATING_TABLE is a table by type with
 * the entries ENTRY(f64) and so on.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define FLOATING_TABLE                                                                                                 \
    {                                                                                                                  \
        [SPMV_F32] = ENTRY(f32), [SPMV_F64] = ENTRY(f64), [SPMV_C64] = ENTRY(c64), [SPMV_C128] = ENTRY(c128)           \
    }

#define IS_COMPLEX 0
#define T float
#define TYPED(name) name##_f32
#include "floating_typed.h"
#undef T
#undef TYPED
#define T double
#define TYPED(name) name##_f64
#include "floating_typed.h"
#undef T
#undef TYPED
#undef IS_COMPLEX

#define IS_COMPLEX 1
#define T spmv_c64
#define TYPED(name) name##_c64
#include "floating_typed.h"
#undef T
#undef TYPED
#define T spmv_c128
#define TYPED(name) name##_c128
#include "floating_typed.h"
#undef T
#undef TYPED
#undef IS_COMPLEX
