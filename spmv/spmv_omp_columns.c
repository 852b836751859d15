/* Method "tiles" of the backend omp for several vectors at once, and for complex types: the tiles of spmv_omp.c, in
 * which each entry of the matrix meets all columns of x, side by side in vectors of the processor, before the next one.
 *
 * A column's sums are formed in the order of spmv_omp_typed.h, so it has the bits of a product by itself. Columns are
 * taken 16, 8, 4, 2 and 1 at a time, which are constants to the compiler; what a row has of the matrix is in the first
 * cache when the next of them reads it again.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "spmv_omp.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

enum { MOST_COLUMNS = 16 };

/* ------------------------------------------------------------------ reals */

#define ZERO 0
#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define SCALE(a, b) ((a) * (b))

#define VALUE double
#define STORED double
#define TYPED(name) columns_##name##_f64
#include "spmv_omp_columns.h"
#undef STORED
#undef TYPED

#define STORED float
#define TYPED(name) columns_##name##_mixed
#include "spmv_omp_columns.h"
#undef VALUE
#undef TYPED

#define VALUE float
#define TYPED(name) columns_##name##_f32
#include "spmv_omp_columns.h"
#undef VALUE
#undef STORED
#undef TYPED

#undef ZERO
#undef PLUS
#undef TIMES
#undef SCALE

/* --------------------------------------------------------------- complex numbers */

#define COMPLEX(T)                                                                                                     \
    static ALWAYS_INLINE T plus_##T(T a, T b)                                                                          \
    {                                                                                                                  \
        return (T){a.re + b.re, a.im + b.im};                                                                          \
    }                                                                                                                  \
    static ALWAYS_INLINE T times_##T(T a, T b)                                                                         \
    {                                                                                                                  \
        return (T){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};                                              \
    }
COMPLEX(spmv_c64)
COMPLEX(spmv_c128)
#undef COMPLEX

#define ZERO                                                                                                           \
    {                                                                                                                  \
        0, 0                                                                                                           \
    }

#define VALUE spmv_c64
#define STORED spmv_c64
#define PLUS(a, b) plus_spmv_c64(a, b)
#define TIMES(a, b) times_spmv_c64(a, b)
#define SCALE(a, b) times_spmv_c64(a, b)
#define TYPED(name) columns_##name##_c64
#include "spmv_omp_columns.h"
#undef VALUE
#undef STORED
#undef PLUS
#undef TIMES
#undef SCALE
#undef TYPED

#define VALUE spmv_c128
#define STORED spmv_c128
#define PLUS(a, b) plus_spmv_c128(a, b)
#define TIMES(a, b) times_spmv_c128(a, b)
#define SCALE(a, b) times_spmv_c128(a, b)
#define TYPED(name) columns_##name##_c128
#include "spmv_omp_columns.h"

void columns_omp_product(const spmv_plan *plan, const void *alpha, const void *x, const void *beta, bool beta_zero,
                         void *y)
{
    switch (plan->type) {
    case SPMV_F32:
        columns_product_f32(plan, alpha, x, beta, beta_zero, y);
        break;
    case SPMV_C64:
        columns_product_c64(plan, alpha, x, beta, beta_zero, y);
        break;
    case SPMV_C128:
        columns_product_c128(plan, alpha, x, beta, beta_zero, y);
        break;
    default:
        if (plan->a.type == SPMV_F32)
            columns_product_mixed(plan, alpha, x, beta, beta_zero, y);
        else
            columns_product_f64(plan, alpha, x, beta, beta_zero, y);
    }
}
