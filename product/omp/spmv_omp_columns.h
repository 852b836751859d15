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

/* Rows of a tile for the columns of `packs` packs of so many bytes, from `first` on. */
static ALWAYS_INLINE void TYPED(some)(int64_t t, const struct TYPED(source) * source, struct rows rows, int first,
                                      int bytes, int packs)
{
    switch (bytes / (int)sizeof(PART)) {
#if !IS_COMPLEX
    case 1:
        TYPED(columns_1)(t, source, rows, first, packs);
        break;
#endif
    case 2:
        TYPED(columns_2)(t, source, rows, first, packs);
        break;
    case 4:
        TYPED(columns_4)(t, source, rows, first, packs);
        break;
    case 8:
        TYPED(columns_8)(t, source, rows, first, packs);
        break;
    case 16:
        TYPED(columns_16)(t, source, rows, first, packs);
        break;
    }
}

/* With SPMV_QUICK_LOOPS, for tests without a GPU, steps with the same vectors of the processor share a function that
 * takes their number as an argument: less than half of the time to compile. */
#ifdef SPMV_QUICK_LOOPS
#define SHARED_FUNCTION(target, bytes)                                                                                 \
    static NOINLINE target void TYPED(shared_##bytes)(int64_t t, const struct TYPED(source) * source,                  \
                                                      struct rows rows, int first, int packs)                          \
    {                                                                                                                  \
        TYPED(some)(t, source, rows, first, bytes, packs);                                                             \
    }
WITH_AVX2(SHARED_FUNCTION(AVX512, 64) SHARED_FUNCTION(AVX2, 32))
SHARED_FUNCTION(BASELINE, 16)
SHARED_FUNCTION(BASELINE, 8)
SHARED_FUNCTION(BASELINE, 4)
#undef SHARED_FUNCTION
#define ROWS_OF_STEP(bytes, packs) TYPED(shared_##bytes)(t, source, rows, first, packs)
#else
#define ROWS_OF_STEP(bytes, packs) TYPED(some)(t, source, rows, first, bytes, packs)
#endif

#define STEP_FUNCTION(target, bytes, packs)                                                                            \
    static NOINLINE target void TYPED(columns_##bytes##_##packs)(int64_t t, const void *source, struct rows rows,      \
                                                                 int first)                                            \
    {                                                                                                                  \
        ROWS_OF_STEP(bytes, packs);                                                                                    \
    }
COLUMNS_STEPS(STEP_FUNCTION)

/* The end of the rows from begin on whose elements of x take about FEW_ROWS_BYTES. */
static int64_t TYPED(few_rows_end)(const struct TYPED(source) * s, int64_t begin, int64_t end)
{
    const int64_t first = offset_at(s->a->row_ptr, s->a->row_ptr_bits, begin);
    const int64_t entries = FEW_ROWS_BYTES / (s->vectors * (int64_t)sizeof(ELEMENT));
    int64_t row = begin + 1;
    while (row < end - 1 && offset_at(s->a->row_ptr, s->a->row_ptr_bits, row + 1) - first <= entries)
        row++;
    return end - row > 1 ? row : end;
}

/* All columns, in steps from the left, then the epilogue of the tile's own rows. Several steps go through a few rows
 * at a time, so that they read whole rows of x, and the entries from the first-level cache. */
static void TYPED(tile)(const struct omp_tiles *tiles, int64_t t, const void *source)
{
#define STEP(target, bytes, packs) {bytes * packs / (int)sizeof(T), TYPED(columns_##bytes##_##packs)},
    static const struct {
        int columns;
        void (*some)(int64_t t, const void *source, struct rows rows, int first);
    } steps[] = {COLUMNS_STEPS(STEP)};
#undef STEP
    const struct TYPED(source) *s = source;
    const struct tile *const tile = &tiles->tile[t];
    const bool several = steps[tiles->first_step].columns < s->vectors;
    struct rows few = {tile->begin.row, 0};
    for (const int64_t end = tile[1].begin.row + 1; few.begin < end; few.begin = few.end) {
        int step = tiles->first_step;
        few.end = several ? TYPED(few_rows_end)(s, few.begin, end) : end;
        for (int first = 0; first < s->vectors; first += steps[step].columns) {
            while (steps[step].columns > s->vectors - first)
                step++;
            steps[step].some(t, source, few, first);
        }
    }
    if (s->epilogue != NULL) {
        const struct own_rows rows = own_rows_of(&tiles->tile[t]);
        ((T *)tiles->dots)[t] = TYPED(epilogue)(s->epilogue, s->y, (const T *)s->y + rows.first, rows.first, rows.last);
    }
}
#undef STEP_FUNCTION
#undef ROWS_OF_STEP
