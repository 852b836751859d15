/* The product of a tile (spmv_omp_typed.h), included once for each variant: TARGET, the instruction
 * set; PATTERN, whether there are no values; STREAM, whether y is written with streaming stores;
 * TILE(name), the function's name followed by name. All but TARGET are undefined at the end.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static __attribute__((noinline)) TARGET void TILE(_formed)(const struct TYPED(source) * s, const struct spots *spot,
                                                           const uint8_t *code, int64_t n, int64_t rows, int64_t k,
                                                           VALUE *y)
{
    TYPED(formed_rows)(s, PATTERN, STREAM, spot, code, n, rows, k, y);
}

#define NARROW true
#define FAR false
#define ROWS(name) TILE(name##_narrow)
#include "product/omp/spmv_omp_rows.h"
#define NARROW false
#define FAR true
#define ROWS(name) TILE(name##_far)
#include "product/omp/spmv_omp_rows.h"
#define NARROW false
#define FAR false
#define ROWS(name) TILE(name##_near)
#include "product/omp/spmv_omp_rows.h"

static TARGET void TILE()(const struct omp_tiles *tiles, int64_t t, const void *source)
{
    const struct TYPED(ways) ways = {TILE(_narrow), TILE(_far), TILE(_near)};
    TYPED(any_tile)(tiles, t, source, ways, STREAM);
}

#undef PATTERN
#undef STREAM
#undef TILE
