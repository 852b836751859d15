/* Parses tiles of coordinate files with AVX2, if the processor has it. All functions except the
 * last are compiled for AVX2.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/text/tile_entries.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#include <string.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2")
#endif

#include "formats/io/text/decimal_avx2.h"
#define USUAL_REAL decimal_avx2_line
#include "formats/io/text/tile_entries_parse.h"

static void parse(const struct tile_kind *kind, const struct text_tile *tile, struct tile_target target,
                  struct findings *found)
{
    parse_tile(kind, tile, target, found);
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

/* Compiled for every processor. */
tile_entries_way *tile_entries_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") ? parse
                                                                                                             : NULL;
}

#else

tile_entries_way *tile_entries_avx2(void)
{
    return NULL;
}
#endif
