/* Method "tiles" of the backend omp for several vectors, and for complex types: the product of a
 * tile. Each entry of the matrix is multiplied by all columns of x, in vectors of the processor,
 * before the next entry is read.
 *
 * A column is summed in the order of SERIAL and LANES (spmv_omp_variants.h), so it has the bits of
 * a product of one vector. Columns are processed 16, 8, 4, 2 and 1 at a time, which are constants
 * for the compiler. Each time after the first reads the tile's entries from a cache.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "product/omp/spmv_omp_variants.h"

enum { MOST_COLUMNS = 16 };

/* The distance in entries of the prefetch of x, where a row of x is longer than one pack. */
enum { AHEAD = 16 };

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

tile_function *columns_function(enum plan_types types, bool avx2, bool pattern)
{
#define ROW(name, STORED, SUMS) [PLAN_##name] = variants_##name,
    static tile_function *const(*const variants[])[2] = {PLAN_TYPES_LIST(ROW)};
#undef ROW
    return variants[types][avx2][pattern];
}
