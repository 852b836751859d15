/* Method "tiles" of the backend omp for several vectors, and for complex and 16-bit types: the product of a tile.
 * Each entry of the matrix is multiplied by many columns of x, whose sums are in vectors of the processor, before the
 * next entry is read.
 *
 * A column is summed in the order of SERIAL and LANES (spmv_omp_variants.h), so it has the bits of a product of one
 * vector, whatever the number of columns, the instruction set and the columns beside it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "product/omp/spmv_omp_variants.h"

enum { MOST_PACKS = 8 };

/* The distance in entries of the prefetch of x: AHEAD_BYTES, where a step takes so many bytes of a row of x, within
 * limits. A multiple of LANES, so that a sum of every LANES-th entry prefetches its own. */
enum { AHEAD_BYTES = 4096, LEAST_AHEAD = 16, MOST_AHEAD = 64 };

/* Rows of a tile: begin ... end - 1. */
struct rows {
    int64_t begin, end;
};

/* The bytes of x that all steps of a few rows read: a part of a first-level cache. With more, the processor no longer
 * sees that rows of x are read from their beginning to their end. */
enum { FEW_ROWS_BYTES = 8192 };

static ALWAYS_INLINE int64_t entries_ahead(size_t bytes)
{
    return max_i64(LEAST_AHEAD, min_i64(MOST_AHEAD, AHEAD_BYTES / (int64_t)bytes));
}

static ALWAYS_INLINE void prefetch_row(const void *from, size_t bytes)
{
    for (size_t b = 0; b < bytes; b += 64)
        __builtin_prefetch((const char *)from + b);
}

#define TEMPLATE "product/omp/spmv_omp_typed.h"
#include "product/each_plan_type.h"
#undef TEMPLATE
#define TEMPLATE "product/omp/spmv_omp_columns.h"
#include "product/each_plan_type.h"

tile_function *columns_function(enum plan_types types)
{
#define ROW(name, STORED, VECTORS) [PLAN_##name] = tile_##name,
    static tile_function *const tile[] = {PLAN_TYPES_LIST(ROW)};
#undef ROW
    return tile[types];
}

int columns_first_step(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return 0;
    if (__builtin_cpu_supports("avx2"))
        return STEPS_OF_SET;
#endif
    return BASELINE_STEP;
}
