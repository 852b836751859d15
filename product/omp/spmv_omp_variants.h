/* The functions that compute a tile: which ones there are, and what they have in common.
 *
 * | product | template | types | made from |
 * |---|---|---|---|
 * | of one vector of reals | spmv_omp_vector.h | f32, f64, mixed | VECTOR_VARIANTS |
 * | of several vectors, of complex types | spmv_omp_columns.h | all | COLUMNS_VARIANTS |
 *
 * A template is included once for each pair of types (product/each_plan_type.h). Its code is in
 * functions that are always inlined and take constants in place of a variant's properties. At the
 * end of the template, a macro makes the variants from the list below: thin functions with a
 * target, which pass their constants on. So a new variant is one row here.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_OMP_VARIANTS_H
#define SPMV_OMP_VARIANTS_H

#include "product/omp/spmv_omp.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* The instruction sets. The compiler's baseline has vectors of 16 bytes on x86, AVX2 of 32. */
#define BASELINE
#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))
#define WITH_AVX2(row) row
#else
#define WITH_AVX2(row)
#endif

/* X(name, instruction set, whether it is AVX2, pattern, stream). pattern: there are no values, all
 * are 1. stream: y is written with streaming stores. Each variant has functions for tiles with
 * 16-bit columns (narrow), for those where x is prefetched (far), and for others (near), and in
 * these for each kind of stretch. */
#define VECTOR_VARIANTS(X)                                                                                             \
    X(tile_plain, BASELINE, false, false, false)                                                                       \
    X(tile_pattern_plain, BASELINE, false, true, false)                                                                \
    X(tile_stream_plain, BASELINE, false, false, true)                                                                 \
    WITH_AVX2(X(tile_avx2, AVX2, true, false, false))                                                                  \
    WITH_AVX2(X(tile_pattern_avx2, AVX2, true, true, false))                                                           \
    WITH_AVX2(X(tile_stream_avx2, AVX2, true, false, true))

/* X(name, instruction set, whether it is AVX2, pattern) */
#define COLUMNS_VARIANTS(X)                                                                                            \
    X(columns_plain, BASELINE, false, false)                                                                           \
    X(columns_pattern_plain, BASELINE, false, true)                                                                    \
    WITH_AVX2(X(columns_avx2, AVX2, true, false))                                                                      \
    WITH_AVX2(X(columns_pattern_avx2, AVX2, true, true))

/* The function of a tile. Its source is the struct source of the types. */
tile_function *vector_function(enum plan_types types, bool avx2, bool pattern, bool stream);
tile_function *columns_function(enum plan_types types, bool avx2, bool pattern);

/* Rows of up to SERIAL entries are summed one entry after the other. In longer rows, LANES
 * independent sums hide the latency of the additions and fill a vector: entry k goes to sum k %
 * LANES in all complete groups of LANES entries. The sums are added as a tree, then the sum of the
 * remaining entries. The assignment of entries to sums depends on the length alone, so every
 * variant gives the same bits. */
enum { SERIAL = 32, LANES = 8 };

#endif
