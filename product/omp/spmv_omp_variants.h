/* The functions that compute a tile: which ones there are, and what they have in common.
 *
 * | product | template | types | made from |
 * |---|---|---|---|
 * | of one vector of reals | spmv_omp_vector.h | f32, f64, mixed | VECTOR_VARIANTS |
 * | of several vectors, of complex and 16-bit types | spmv_omp_columns.h | all | COLUMNS_STEPS |
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
#define NOINLINE __attribute__((noinline))

/* The instruction sets. The compiler's baseline has vectors of 16 bytes on x86, AVX2 of 32. */
#define BASELINE
#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f")))
#define WITH_AVX2(...) __VA_ARGS__
#else
#define WITH_AVX2(...)
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

/* How the columns of several vectors are divided: X(instruction set, bytes of a vector of the processor, number of
 * such vectors that a step takes), from the widest step to the narrowest. A product begins with the first step that the
 * processor has (columns_first_step), STEPS_OF_SET further for each instruction set that it lacks. A step of less than
 * one column is never taken. Bytes are those of the sums: of 16-bit vectors a step reads half as many. */
#define COLUMNS_STEPS(X)                                                                                               \
    WITH_AVX2(X(AVX512, 64, 8) X(AVX512, 64, 4) X(AVX512, 64, 2) X(AVX512, 64, 1))                                     \
    WITH_AVX2(X(AVX2, 32, 8) X(AVX2, 32, 4) X(AVX2, 32, 2) X(AVX2, 32, 1))                                             \
    X(BASELINE, 16, 8) X(BASELINE, 16, 4) X(BASELINE, 16, 2) X(BASELINE, 16, 1) X(BASELINE, 8, 1) X(BASELINE, 4, 1)
#ifdef __x86_64__
enum { STEPS_OF_SET = 4, BASELINE_STEP = 8 };
#else
enum { STEPS_OF_SET = 4, BASELINE_STEP = 0 };
#endif

/* The function of a tile. Its source is the struct source of the types. */
tile_function *vector_function(enum plan_types types, bool avx2, bool pattern, bool stream);
tile_function *columns_function(enum plan_types types);
int columns_first_step(void);

/* Rows of up to SERIAL entries are summed one entry after the other. In longer rows, LANES
 * independent sums hide the latency of the additions and fill a vector: entry k goes to sum k %
 * LANES in all complete groups of LANES entries. The sums are added as a tree, then the sum of the
 * remaining entries. The assignment of entries to sums depends on the length alone, so every
 * variant gives the same bits. */
enum { SERIAL = 32, LANES = 8 };

#endif
