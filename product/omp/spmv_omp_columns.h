/* The product of a tile for several vectors or complex numbers, included once for each pair of types
 * (each_plan_type.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* The value of entry k is val[k & mask]: mask is 0 for a pattern of reals, whose values are all 1. */
struct TYPED(values) {
    const STORED *val;
    int64_t mask;
};

static ALWAYS_INLINE struct TYPED(values) TYPED(values_of)(const struct TYPED(source) * source)
{
    static const STORED one = ONE;
    return source->val != NULL ? (struct TYPED(values)){source->val, -1} : (struct TYPED(values)){&one, 0};
}

#define PACKED(name) PACKED_NAME(name, PACK_PARTS)
#define PACKED_NAME(name, parts) PACKED_NAME_(name, parts)
#define PACKED_NAME_(name, parts) TYPED(name##_##parts)
#if !IS_COMPLEX
#define PACK_PARTS 1
#include "product/omp/spmv_omp_packs.h"
#undef PACK_PARTS
#endif
#define PACK_PARTS 2
#include "product/omp/spmv_omp_packs.h"
#undef PACK_PARTS
#define PACK_PARTS 4
#include "product/omp/spmv_omp_packs.h"
#undef PACK_PARTS
#define PACK_PARTS 8
#include "product/omp/spmv_omp_packs.h"
#undef PACK_PARTS
#define PACK_PARTS 16
#include "product/omp/spmv_omp_packs.h"
#undef PACK_PARTS
#undef PACKED
#undef PACKED_NAME
#undef PACKED_NAME_

/* One tile for the columns of `packs` packs of so many bytes, from `first` on. */
static ALWAYS_INLINE void TYPED(some)(int64_t t, const struct TYPED(source) * source, int first, int bytes, int packs)
{
    switch (bytes / (int)sizeof(PART)) {
#if !IS_COMPLEX
    case 1:
        TYPED(columns_1)(t, source, first, packs);
        break;
#endif
    case 2:
        TYPED(columns_2)(t, source, first, packs);
        break;
    case 4:
        TYPED(columns_4)(t, source, first, packs);
        break;
    case 8:
        TYPED(columns_8)(t, source, first, packs);
        break;
    case 16:
        TYPED(columns_16)(t, source, first, packs);
        break;
    }
}

#define STEP_FUNCTION(target, bytes, packs)                                                                            \
    static NOINLINE target void TYPED(columns_##bytes##_##packs)(int64_t t, const void *source, int first)             \
    {                                                                                                                  \
        TYPED(some)(t, source, first, bytes, packs);                                                                   \
    }
COLUMNS_STEPS(STEP_FUNCTION)

/* All columns, in steps from the left, then the epilogue of the tile's own rows. The second step and those after it
 * read the tile's entries from the second-level cache. */
static void TYPED(tile)(const struct omp_tiles *tiles, int64_t t, const void *source)
{
#define STEP(target, bytes, packs) {bytes * packs / (int)sizeof(T), TYPED(columns_##bytes##_##packs)},
    static const struct {
        int columns;
        void (*some)(int64_t t, const void *source, int first);
    } steps[] = {COLUMNS_STEPS(STEP)};
#undef STEP
    const struct TYPED(source) *s = source;
    int step = tiles->first_step;
    for (int first = 0; first < s->vectors; first += steps[step].columns) {
        while (steps[step].columns > s->vectors - first)
            step++;
        steps[step].some(t, source, first);
    }
    if (s->epilogue != NULL) {
        const struct own_rows rows = own_rows_of(&tiles->tile[t]);
        ((T *)tiles->dots)[t] = TYPED(epilogue)(s->epilogue, s->y, (const T *)s->y + rows.first, rows.first, rows.last);
    }
}
#undef STEP_FUNCTION
