/* Includes TEMPLATE once for each real type, with IS_COMPLEX 0 (each_real.h), and for each complex
 * type (each_complex.h). FLOATING_TABLE(name) is a table by type with the entries name_f64 and so on.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define FLOATING_TABLE(name)                                                                                           \
    {                                                                                                                  \
        [SPMV_F32] = name##_f32, [SPMV_F64] = name##_f64, [SPMV_C64] = name##_c64, [SPMV_C128] = name##_c128           \
    }

#define IS_COMPLEX 0
#include "core/each/each_real.h"
#undef IS_COMPLEX
#include "core/each/each_complex.h"
