/* Sums of some rows at a time: a vector of 32 bytes holds the sums of one row in each lane, so every row is added in
 * its own order. Values and terms lie row after row. So 16 bytes of each row are loaded, and transposed: then a vector
 * has one entry of each row.
 *
 * For each pair of types (each_plan_type.h), HALF sums or VALUES values have 16 bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_OMP_TRANSPOSE_H
#define SPMV_OMP_TRANSPOSE_H

#include "product/omp/spmv_omp_variants.h"

typedef float floats_4 __attribute__((vector_size(16)));
typedef float floats_8 __attribute__((vector_size(32)));
typedef double doubles_2 __attribute__((vector_size(16)));
typedef double doubles_4 __attribute__((vector_size(32)));

typedef floats_4 half_f32, values_f32, values_mixed;
typedef doubles_2 half_f64, values_f64, half_mixed;
enum { HALF_f32 = 4, HALF_f64 = 2, HALF_mixed = 2, VALUES_f32 = 4, VALUES_f64 = 2, VALUES_mixed = 4 };

/* x of the columns of HALF entries, from k on. */
#define PICK(k) x[column_at(col, narrow, k)]
static ALWAYS_INLINE void pick_f32(half_f32 *to, const float *x, const void *col, bool narrow, int64_t k)
{
    *to = (half_f32){PICK(k), PICK(k + 1), PICK(k + 2), PICK(k + 3)};
}

static ALWAYS_INLINE void pick_f64(half_f64 *to, const double *x, const void *col, bool narrow, int64_t k)
{
    *to = (half_f64){PICK(k), PICK(k + 1)};
}
#undef PICK
#define pick_mixed pick_f64

/* Lane i of column[j] is row[i][j]. */
#if defined(__clang__) || __GNUC__ >= 12
static ALWAYS_INLINE void transpose_f64(const doubles_2 row[4], doubles_4 column[2])
{
    const doubles_4 a = __builtin_shufflevector(row[0], row[2], 0, 1, 2, 3);
    const doubles_4 b = __builtin_shufflevector(row[1], row[3], 0, 1, 2, 3);
    column[0] = __builtin_shufflevector(a, b, 0, 4, 2, 6);
    column[1] = __builtin_shufflevector(a, b, 1, 5, 3, 7);
}

static ALWAYS_INLINE void transpose_f32(const floats_4 row[8], floats_8 column[4])
{
    floats_8 r[4];
    for (int i = 0; i < 4; i++)
        r[i] = __builtin_shufflevector(row[i], row[i + 4], 0, 1, 2, 3, 4, 5, 6, 7);
    const floats_8 a = __builtin_shufflevector(r[0], r[1], 0, 8, 1, 9, 4, 12, 5, 13);
    const floats_8 b = __builtin_shufflevector(r[0], r[1], 2, 10, 3, 11, 6, 14, 7, 15);
    const floats_8 c = __builtin_shufflevector(r[2], r[3], 0, 8, 1, 9, 4, 12, 5, 13);
    const floats_8 d = __builtin_shufflevector(r[2], r[3], 2, 10, 3, 11, 6, 14, 7, 15);
    column[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
    column[1] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
    column[2] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
    column[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
}

static ALWAYS_INLINE void transpose_mixed(const floats_4 row[4], doubles_4 column[4])
{
    const floats_4 a = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
    const floats_4 b = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
    const floats_4 c = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
    const floats_4 d = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
    column[0] = __builtin_convertvector(__builtin_shufflevector(a, c, 0, 1, 4, 5), doubles_4);
    column[1] = __builtin_convertvector(__builtin_shufflevector(a, c, 2, 3, 6, 7), doubles_4);
    column[2] = __builtin_convertvector(__builtin_shufflevector(b, d, 0, 1, 4, 5), doubles_4);
    column[3] = __builtin_convertvector(__builtin_shufflevector(b, d, 2, 3, 6, 7), doubles_4);
}
#else
#define TRANSPOSE(name, whole, half, rows, columns)                                                                    \
    static ALWAYS_INLINE void name(const half row[rows], whole column[columns])                                        \
    {                                                                                                                  \
        for (int j = 0; j < columns; j++)                                                                              \
            for (int i = 0; i < rows; i++)                                                                             \
                column[j][i] = row[i][j];                                                                              \
    }
TRANSPOSE(transpose_f64, doubles_4, doubles_2, 4, 2)
TRANSPOSE(transpose_f32, floats_8, floats_4, 8, 4)
TRANSPOSE(transpose_mixed, doubles_4, floats_4, 4, 4)
#undef TRANSPOSE
#endif

/* The same of sums. */
#define transpose_sums_f32 transpose_f32
#define transpose_sums_f64 transpose_f64
#define transpose_sums_mixed transpose_f64

#endif
