/* What all steps of algebraic multigrid share, for C and CUDA C++: a matrix, the keys of an
 * independent set, and the reading of values as given.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_COMMON_H
#define AMG_COMMON_H

#include <math.h>
#include <spmv/types.h>
#include <stdint.h>

#include "core/host_device_fn.h"
#include "core/reals.h"
#include "core/splitmix.h"
#include "formats/columns.h"

#define AMG_ROW HOST_DEVICE_FN

/* The most near-null-space vectors, and the most rows of a node. */
#define AMG_NULLS 8

/* A sparse matrix: as struct spmv_csr, with arrays that a step may write. */
struct amg_csr {
    const void *row_ptr;
    int row_ptr_bits;
    int32_t *col;
    void *val;
};

AMG_ROW int64_t amg_number(const void *numbers, int bits, int64_t k)
{
    return bits == 32 ? (int64_t)((const int32_t *)numbers)[k] : ((const int64_t *)numbers)[k];
}

AMG_ROW int64_t amg_offset(const struct amg_csr *a, int64_t row)
{
    return amg_number(a->row_ptr, a->row_ptr_bits, row);
}

/* Keys of the independent set. The state is above the priority, which is a hash of the row's number
 * (splitmix64), and that is above the number, so keys are distinct. */
#define AMG_STATE_SHIFT 62
#define AMG_EXCLUDED UINT64_C(0)
#define AMG_UNDECIDED UINT64_C(1)
#define AMG_ROOT_STATE UINT64_C(2)

AMG_ROW uint64_t amg_state(uint64_t key)
{
    return key >> AMG_STATE_SHIFT;
}

AMG_ROW uint64_t amg_key(uint64_t state, int64_t row)
{
    const uint64_t priority = splitmix_mix((uint64_t)row + SPLITMIX_GAMMA) >> 34;
    return state << AMG_STATE_SHIFT | priority << 32 | (uint64_t)row;
}

AMG_ROW uint64_t amg_with_state(uint64_t key, uint64_t state)
{
    return (key & ~(UINT64_C(3) << AMG_STATE_SHIFT)) | state << AMG_STATE_SHIFT;
}

/* The rows of a level of which several ranks have parts: see struct rank_halo. ghost: in the context's memory;
 * NULL: one rank has all rows. */
struct amg_numbers {
    const int32_t *ghost;
    int64_t room, before, own, after;
    int64_t first; /* number of the first own row */
};

/* The place of the row of this number; 0 if it is neither an own row nor one in `ghost`. */
AMG_ROW int64_t amg_place(const struct amg_numbers *s, int64_t row)
{
    if (s->ghost == (const int32_t *)0)
        return row;
    if (row >= s->first && row < s->first + s->own)
        return s->room + row - s->first;
    const int64_t at = first_column_from(s->ghost, 0, s->before + s->after, row);
    if (at == s->before + s->after || s->ghost[at] != row)
        return 0;
    return at < s->before ? s->room - s->before + at : s->room + s->own + at - s->before;
}

/* The number of the row at a place. */
AMG_ROW int64_t amg_number_at(const struct amg_numbers *s, int64_t place)
{
    const int64_t own = place - s->room;
    if (s->ghost == (const int32_t *)0)
        return place;
    return own < 0 ? s->ghost[own + s->before] : own < s->own ? s->first + own : s->ghost[s->before + own - s->own];
}

/* The power of two that is not larger than x, at least 2^-1022; 1 for 0 and for numbers that are not
 * finite. */
AMG_ROW double amg_power_of_two(double x)
{
    int exponent = 0;
    if (!(x > 0 && x <= 0x1.fffffffffffffp1023))
        return 1;
    (void)frexp(x, &exponent);
    return exponent < -1021 ? 0x1p-1022 : ldexp(1.0, exponent - 1);
}

static_assert(REAL_TYPES == 2, "amg_source handles each real type");

/* Element k of an array of f64 or f32; NULL: 1. */
AMG_ROW double amg_source(spmv_type type, const void *values, int64_t k)
{
    return values == (const void *)0 ? 1 : type == SPMV_F64 ? ((const double *)values)[k] : ((const float *)values)[k];
}

AMG_ROW float amg_abs_f32(float x)
{
    return x < 0 ? -x : x;
}

AMG_ROW double amg_abs_f64(double x)
{
    return x < 0 ? -x : x;
}

#endif
