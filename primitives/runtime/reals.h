/* Arrays of a real type that is known at run time: element by element, in double precision.
 *
 * The cases come from SPMV_TYPE_LIST, so a new real type needs no edit here, and a new class of
 * types does not compile.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef REALS_H
#define REALS_H

#include <math.h>
#include <spmv/types.h>

/* X(NAME, name, T) for each real type. */
#define REAL_LIST(X) SPMV_TYPE_LIST(REAL_LIST_OF_, X)
#define REAL_LIST_OF_(NAME, name, value, T, D, CLASS, X) REAL_LIST_##CLASS##_(NAME, name, T, X)
#define REAL_LIST_INTEGER_(NAME, name, T, X)
#define REAL_LIST_REAL_(NAME, name, T, X) X(NAME, name, T)
#define REAL_LIST_TUPLE_(NAME, name, T, X)

/* Element i of an array of this real type; NaN for any other type. */
static inline double real_at(spmv_type type, const void *values, int64_t i)
{
    switch ((int)type) {
#define CASE(NAME, name, T)                                                                                            \
    case SPMV_##NAME:                                                                                                  \
        return (double)((const T *)values)[i];
        REAL_LIST(CASE)
#undef CASE
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
    }
}

#endif
