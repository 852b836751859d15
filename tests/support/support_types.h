/* Shared by tests of the product in every type: the list of types, and elements of any type as long
 * double.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_TYPES_H
#define SUPPORT_TYPES_H

#include <spmv/types.h>

#include "core/runtime.h"
#include "tests/support/support.h"

struct wide {
    long double re, im;
};

/* Types of values, and of vectors and sums. */
struct types {
    const char *name;
    spmv_type values, sums;
};
static const struct types all_types[] = {{"f64", SPMV_F64, SPMV_F64},
                                         {"f32", SPMV_F32, SPMV_F32},
                                         {"mixed", SPMV_F32, SPMV_F64},
                                         {"c64", SPMV_C64, SPMV_C64},
                                         {"c128", SPMV_C128, SPMV_C128}};
enum { TYPES = sizeof all_types / sizeof all_types[0] };

static inline bool is_single(spmv_type type)
{
    return type == SPMV_F32 || type == SPMV_C64;
}

static inline struct wide element(spmv_type type, const void *values, int64_t i)
{
    const int parts = type_is_complex(type) ? 2 : 1;
    const float *f32 = (const float *)values + i * parts;
    const double *f64 = (const double *)values + i * parts;
    return is_single(type) ? (struct wide){(long double)f32[0], parts == 2 ? (long double)f32[1] : 0}
                           : (struct wide){(long double)f64[0], parts == 2 ? (long double)f64[1] : 0};
}

static inline void put(spmv_type type, void *values, int64_t i, double re, double im)
{
    const double part[2] = {re, im};
    const int parts = type_is_complex(type) ? 2 : 1;
    for (int p = 0; p < parts; p++)
        if (is_single(type))
            ((float *)values)[i * parts + p] = (float)part[p];
        else
            ((double *)values)[i * parts + p] = part[p];
}

/* n random elements; release with free. */
static inline void *random_elements(spmv_type type, int64_t n, uint64_t seed)
{
    void *values = support_zeros(n, 16);
    for (int64_t i = 0; i < n; i++) {
        const double re = support_uniform(&seed);
        put(type, values, i, re, support_uniform(&seed));
    }
    return values;
}

static inline struct wide times(struct wide a, struct wide b)
{
    return (struct wide){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

#endif
