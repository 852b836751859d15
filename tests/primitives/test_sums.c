/* Vectorized sums: their bits are those of the association that loops_sums.c describes, computed
 * here element by element, at every length and position near the seams of vectors, pairs and 16
 * heads; on every processor, for any alignment, with and without non-temporal stores. Folds may
 * read up to their limit beyond the end, but must not use what they read there.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/loops_sums.h"
#include "tests/support/support_pairs.h"

enum { MOST = 2 * 64 + 7 };

enum heads { NO_HEADS, NO_HEAD_SET, ALL_HEADS, SOME_HEADS };

static void fill_heads(uint8_t *heads, enum heads how, uint64_t *seed)
{
    for (int i = 0; i < MOST; i++)
        heads[i] =
            how == ALL_HEADS || (how == SOME_HEADS && support_random(seed) % 5 == 0) ? 1 + (uint8_t)(i % 255) : 0;
}

enum { type_of_add_i32 = SPMV_I32, type_of_add_i64 = SPMV_I64, type_of_add_f32 = SPMV_F32, type_of_add_f64 = SPMV_F64 };

#define TEMPLATE "tests/primitives/test_sums_typed.h"
#include "core/each/each_sum.h"

#define TESTS(pair)                                                                                                    \
    cmocka_unit_test(scans_##pair), cmocka_unit_test(zeros_##pair), cmocka_unit_test(folds_##pair),                    \
        cmocka_unit_test(sides_##pair),

SUPPORT_MAIN(TESTS(add_i32) TESTS(add_i64) TESTS(add_f32) TESTS(add_f64))
