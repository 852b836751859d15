/* Method "tiles" of the backend omp for several vectors, and for complex types. It uses the tiles
 * of spmv_omp.c. Each entry of the matrix is multiplied by all columns of x, in vectors of the
 * processor, before the next entry is read.
 *
 * The sums of a column are formed in the order of spmv_omp_typed.h, so a column has the bits of a
 * product of one vector. Columns are processed in groups of 16, 8, 4, 2 and 1, which are constants
 * for the compiler. Each group after the first reads the tile's entries from a cache.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "product/omp/spmv_omp.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* SERIAL and LANES as in spmv_omp_typed.h. */
enum { MOST_COLUMNS = 16, SERIAL = 32, LANES = 8 };

/* The distance in entries of the prefetch of x, where a row of x is longer than one pack. */
enum { AHEAD = 16 };

static ALWAYS_INLINE void prefetch_row(const void *from, size_t bytes)
{
    for (size_t b = 0; b < bytes; b += 64)
        __builtin_prefetch((const char *)from + b);
}

/* Vectors of the processor; GCC and Clang support them on every machine. */
typedef double pack_f64 __attribute__((vector_size(32)));
typedef double half_pack_f64 __attribute__((vector_size(16)));
typedef float pack_f32 __attribute__((vector_size(16)));
typedef float half_pack_f32 __attribute__((vector_size(8)));

/* ------------------------------------------------------------------ reals */

#define LOOP
#define ZERO 0
#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define SCALE(a, b) ((a) * (b))
#define CONJUGATE(a) (a)

#define PACK_TERM(type, sum, pattern, value, row)                                                                      \
    do {                                                                                                               \
        type row_;                                                                                                     \
        memcpy(&row_, row, sizeof row_);                                                                               \
        *(sum) += (pattern) ? row_ : (VALUE) * (value)*row_;                                                           \
    } while (0)

#define VALUE double
#define PACK pack_f64
#define HALF_PACK half_pack_f64
#define COLUMNS 4
#define STORED double
#define TYPED(name) columns_##name##_f64
#include "product/omp/spmv_omp_columns.h"
#undef STORED
#undef TYPED

#define STORED float
#define TYPED(name) columns_##name##_mixed
#include "product/omp/spmv_omp_columns.h"
#undef VALUE
#undef PACK
#undef HALF_PACK
#undef TYPED

#define VALUE float
#define PACK pack_f32
#define HALF_PACK half_pack_f32
#define TYPED(name) columns_##name##_f32
#include "product/omp/spmv_omp_columns.h"
#undef VALUE
#undef STORED
#undef TYPED

#undef LOOP
#undef ZERO
#undef PLUS
#undef TIMES
#undef SCALE
#undef CONJUGATE
#undef PACK
#undef HALF_PACK
#undef PACK_TERM
#undef COLUMNS

/* --------------------------------------------------------------- complex numbers */

#define COMPLEX spmv_c64
#define PACK pack_f32
#define NAMED(name) name##_spmv_c64
#include "product/omp/spmv_omp_complex.h"
#undef COMPLEX
#undef PACK
#undef NAMED
#define COMPLEX spmv_c128
#define PACK pack_f64
#define NAMED(name) name##_spmv_c128
#include "product/omp/spmv_omp_complex.h"
#undef PACK

#define COLUMNS 2
#define ZERO                                                                                                           \
    {                                                                                                                  \
        0, 0                                                                                                           \
    }

#define PACK pack_f32
#define PACK_TERM(type, sum, pattern, value, row) add_spmv_c64(sum, pattern, value, row)
#define VALUE spmv_c64
#define STORED spmv_c64
#define PLUS(a, b) plus_spmv_c64(a, b)
#define TIMES(a, b) times_spmv_c64(a, b)
#define SCALE(a, b) times_spmv_c64(a, b)
#define CONJUGATE(a) conjugate_spmv_c64(a)
#define TYPED(name) columns_##name##_c64
#include "product/omp/spmv_omp_columns.h"
#undef VALUE
#undef STORED
#undef PLUS
#undef TIMES
#undef SCALE
#undef CONJUGATE
#undef TYPED

#undef PACK
#undef PACK_TERM
#define PACK pack_f64
#define PACK_TERM(type, sum, pattern, value, row) add_spmv_c128(sum, pattern, value, row)
#define VALUE spmv_c128
#define STORED spmv_c128
#define PLUS(a, b) plus_spmv_c128(a, b)
#define TIMES(a, b) times_spmv_c128(a, b)
#define SCALE(a, b) times_spmv_c128(a, b)
#define CONJUGATE(a) conjugate_spmv_c128(a)
#define TYPED(name) columns_##name##_c128
#include "product/omp/spmv_omp_columns.h"

void columns_omp_product(const spmv_plan *plan, const struct plan_product *product)
{
#define ROW(name, STORED, SUMS) [PLAN_##name] = columns_product_##name,
    static void (*const multiply[])(const spmv_plan *, const struct plan_product *) = {PLAN_TYPES_LIST(ROW)};
#undef ROW
    multiply[plan->types](plan, product);
}

void columns_omp_loop(const spmv_plan *plan, const void *x, void *y, struct tile_loop *loop)
{
    switch (plan->types) {
    case PLAN_f32:
        columns_loop_f32(plan, x, y, loop);
        return;
    case PLAN_f64:
        columns_loop_f64(plan, x, y, loop);
        return;
    case PLAN_mixed:
        columns_loop_mixed(plan, x, y, loop);
        return;
    case PLAN_c64:
    case PLAN_c128:
    case PLAN_TYPES: /* the solvers have no loops in these types */
        return;
    }
}
