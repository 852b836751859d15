/* Numbers of a real type that is known at run time: elements of arrays in double precision, scalars
 * by address, and limits of the type.
 *
 * The cases come from SPMV_TYPES. A new real type needs its limits here and no other edit; a
 * new class of types does not compile. Elements and limits exist for the 16-bit types too.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef REALS_H
#define REALS_H

#include <assert.h>
#include <float.h>
#include <math.h>
#include <spmv/types.h>
#include <stdbool.h>

#include "core/halves.h"

static inline bool type_is_complex(spmv_type type)
{
    return type == SPMV_C64 || type == SPMV_C128;
}

/* Real numbers per element: 2 of a complex type, else 1. */
static inline int type_parts(spmv_type type)
{
    return type_is_complex(type) ? 2 : 1;
}

/* The type of the real and imaginary parts of a complex type; any other type itself. */
static inline spmv_type type_part(spmv_type type)
{
    return type == SPMV_C64 ? SPMV_F32 : type == SPMV_C128 ? SPMV_F64 : type;
}

static inline bool type_is_real(spmv_type type)
{
    return type == SPMV_F64 || type == SPMV_F32;
}

/* Whether files, vectors of solvers and generated matrices have such values: real or complex. */
static inline bool type_is_floating(spmv_type type)
{
    return type_is_real(type_part(type));
}

/* X(NAME, name, T) for each real type. */
#define REAL_LIST(X) SPMV_TYPES(REAL_LIST_OF_, X)
#define REAL_LIST_OF_(NAME, name, value, T, CLASS, X) REAL_LIST_##CLASS##_(NAME, name, T, X)
#define REAL_LIST_INTEGER_(NAME, name, T, X)
#define REAL_LIST_REAL_(NAME, name, T, X) X(NAME, name, T)
#define REAL_LIST_TUPLE_(NAME, name, T, X)

/* The number of real types. Code that chooses between two of them asserts REAL_TYPES == 2. */
#define REAL_LIST_COUNT_(NAME, name, T) +1
enum { REAL_TYPES = 0 REAL_LIST(REAL_LIST_COUNT_) };

/* Bytes of an element of this real type; 0 for any other type. */
static inline int64_t real_bytes(spmv_type type)
{
    switch ((int)type) {
#define CASE(NAME, name, T)                                                                                            \
    case SPMV_##NAME:                                                                                                  \
        return (int64_t)sizeof(T);
        REAL_LIST(CASE)
#undef CASE
    case SPMV_BF16:
    case SPMV_F16:
        return 2;
    default:
        return 0;
    }
}

/* Element i of an array of this real type; NaN for any other type. */
static inline double real_at(spmv_type type, const void *values, int64_t i)
{
    switch ((int)type) {
#define CASE(NAME, name, T)                                                                                            \
    case SPMV_##NAME:                                                                                                  \
        return (double)((const T *)values)[i];
        REAL_LIST(CASE)
#undef CASE
    case SPMV_BF16:
        return (double)float_of_bf16(((const spmv_bf16 *)values)[i]);
    case SPMV_F16:
        return (double)float_of_f16(((const spmv_f16 *)values)[i]);
    default:
        return NAN;
    }
}

/* Element i = value, rounded to the type. */
static inline void real_set(spmv_type type, void *values, int64_t i, double value)
{
    switch ((int)type) {
#define CASE(NAME, name, T)                                                                                            \
    case SPMV_##NAME:                                                                                                  \
        ((T *)values)[i] = (T)value;                                                                                   \
        break;
        REAL_LIST(CASE)
#undef CASE
    case SPMV_BF16:
        ((spmv_bf16 *)values)[i] = bf16_of_float(float_to_odd(value));
        break;
    case SPMV_F16:
        ((spmv_f16 *)values)[i] = f16_of_float(float_to_odd(value));
        break;
    }
}

/* A scalar of a real type. Its address serves functions that read or write one by type. */
union real {
#define MEMBER(NAME, name, T) T name;
    REAL_LIST(MEMBER)
#undef MEMBER
};

/* The value, rounded to the type. */
static inline union real real_scalar(spmv_type type, double value)
{
    union real scalar = {0};
    real_set(type, &scalar, 0, value);
    return scalar;
}

static inline double real_rounded(spmv_type type, double value)
{
    const union real scalar = real_scalar(type, value);
    return real_at(type, &scalar, 0);
}

struct real_limits {
    double roundoff;  /* unit roundoff */
    double greatest;  /* largest finite number */
    double normal;    /* smallest positive number with all its digits */
    double subnormal; /* smallest positive number */
    int digits;       /* integers of this many decimal digits are exact */
    double tolerance; /* relative tolerance of a solve, if none is given */
    double pivot;     /* smallest usable pivot of a factorisation, relative to its row */
};
#define REAL_LIMITS_F32 0x1p-24, FLT_MAX, FLT_MIN, 0x1p-149, 7, 1e-4, 0x1p-20
#define REAL_LIMITS_F64 0x1p-53, DBL_MAX, DBL_MIN, 0x1p-1074, 15, 1e-8, 0x1p-40
#define REAL_LIMITS_BF16 0x1p-8, 0x1.fep127, FLT_MIN, 0x1p-133, 2, NAN, NAN /* no solves */
#define REAL_LIMITS_F16 0x1p-11, 65504, 0x1p-14, 0x1p-24, 3, NAN, NAN

/* The limits of this real type. */
static inline struct real_limits real_limits_of(spmv_type type)
{
    switch ((int)type) {
#define HALF_CASE(NAME, name, value, T, CLASS, ARG) CASE(NAME, name, T)
#define CASE(NAME, name, T)                                                                                            \
    case SPMV_##NAME: {                                                                                                \
        const struct real_limits limits = {REAL_LIMITS_##NAME};                                                        \
        return limits;                                                                                                 \
    }
        REAL_LIST(CASE)
        SPMV_HALF_TYPES(HALF_CASE, )
#undef CASE
#undef HALF_CASE
    }
    const struct real_limits none = {NAN, NAN, NAN, NAN, 0, NAN, NAN};
    return none;
}

#endif
