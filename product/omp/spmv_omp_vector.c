/* Method "tiles" of the backend omp for one vector of reals: the product of a tile.
 *
 * Products of large matrices are limited by memory bandwidth, so the plan (spmv_omp_look.c) reduces
 * the bytes read, without loss. In a stretch of rows whose columns follow from those of its first
 * row, only the columns of the first row are read. Elsewhere, 16-bit columns relative to a base
 * replace 32-bit columns where they fit and where the matrix exceeds the caches. Where columns are
 * scattered over a long x, entries ahead are prefetched.
 *
 * Products in a cache are limited by the loop. With AVX2, each lane of a vector sums one row
 * (spmv_omp_transpose.h): rows of a stretch, whose elements of x are contiguous, and rows of the same
 * length. Where the plan holds the values in the order of lanes, spmv_omp_lanes.h has the product.
 *
 * Products of short rows are limited by mispredicted row ends. Where the lengths are unpredictable,
 * the terms of a tile are computed first, and then summed in the order of the rows' lengths.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "product/omp/spmv_omp_variants.h"

/* The prefetch distance of x in entries: about 100 ns at 1.5 ns an entry. */
enum { AHEAD = 64 };

/* The prefetch distance of values in bytes; columns use half of it. The hardware prefetcher stops
 * at the end of a page. */
enum { VALUES_AHEAD = 2048 };

/* The terms of short rows for each branch. */
enum { AT_ONCE = 4 };

/* The terms of long rows that are computed at once. */
enum { PACK_BYTES = 32 };

/* A vector of the processor; GCC and Clang support them on every machine. */
typedef int32_t pack_i32 __attribute__((vector_size(4 * SPOTS)));

/* How a tile is read and written; constants after inlining. */
struct reading {
    bool pattern; /* no values: all are 1 */
    bool narrow;  /* 16-bit columns */
    bool far;     /* x is prefetched */
    bool stream;  /* y is written with streaming stores */
    bool wide;    /* the processor has vectors of 32 bytes */
};

/* X(length) for the lengths 1 to 4, 6 or 9. */
#define LENGTHS_4(X) X(1) X(2) X(3) X(4)
#define LENGTHS_6(X) LENGTHS_4(X) X(5) X(6)
#define LENGTHS_9(X) LENGTHS_6(X) X(7) X(8) X(9)

/* Prefetches the address at this many bytes after from, which may lie beyond the end of the
 * array. */
static ALWAYS_INLINE void prefetch(const void *from, int64_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)bytes));
}

static ALWAYS_INLINE int64_t column_at(const void *col, bool narrow, int64_t k)
{
    return narrow ? (int64_t)((const uint16_t *)col)[k] : (int64_t)((const int32_t *)col)[k];
}

#define READING(pattern, narrow, far, stream, wide) ((struct reading){pattern, narrow, far, stream, wide})

#include "product/omp/spmv_omp_transpose.h"

#define REAL_ONLY
#define TEMPLATE "product/omp/spmv_omp_typed.h"
#include "product/each_plan_type.h"
#undef TEMPLATE
#define TEMPLATE "product/omp/spmv_omp_vector.h"
#include "product/each_plan_type.h"

tile_function *vector_function(enum plan_types types, bool avx2, bool pattern, bool stream)
{
    switch (types) {
    case PLAN_f32:
        return variants_f32[avx2][pattern][stream];
    case PLAN_f64:
        return variants_f64[avx2][pattern][stream];
    case PLAN_mixed:
        return variants_mixed[avx2][pattern][stream];
    case PLAN_c64:
    case PLAN_c128:
    case PLAN_bf16:
    case PLAN_f16: /* these use columns_function */
    case PLAN_TYPES:
        break;
    }
    return NULL;
}
