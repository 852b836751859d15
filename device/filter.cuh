/* Filters on the device: a mask of bytes, or a predicate of the list. The predicate is a run-time
 * argument: all threads take the same branch of the switch, and one kernel per predicate would
 * multiply the code size.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_FILTER_CUH
#define SPMV_FILTER_CUH

#include <cuda_runtime.h>
#include <string.h>

#ifndef SPMV_DEVICE_CUH /* users pass predicates of their own */
#include "core/loops/filter.h"
#endif

/* For pairs that do not exist; never called. */
template <int predicate, typename Type> struct predicate_of {
    static __host__ __device__ bool is(Type, Type)
    {
        return false;
    }
};
#define SPMV_FILTER_DEFINE_(NAME, name, TYPE, type, T, CLASS)                                                          \
    template <> struct predicate_of<SPMV_IS_##NAME, T> {                                                               \
        static __host__ __device__ bool is(T a, T s)                                                                   \
        {                                                                                                              \
            return SPMV_TEST_##NAME##_##CLASS(a, s);                                                                   \
        }                                                                                                              \
    };
SPMV_PREDICATE_PAIRS(SPMV_FILTER_DEFINE_)
#undef SPMV_FILTER_DEFINE_

template <typename Type> struct by_predicate {
    int predicate;
    bool when;
    Type scalar;

    __host__ __device__ bool operator()(Type a) const
    {
        return test(a) == when;
    }
    __host__ __device__ bool test(Type a) const
    {
        switch (predicate) {
#define SPMV_CASE_(NAME, name, value, ARG)                                                                             \
    case SPMV_IS_##NAME:                                                                                               \
        return predicate_of<SPMV_IS_##NAME, Type>::is(a, scalar);
            SPMV_PREDICATES(SPMV_CASE_, )
#undef SPMV_CASE_
        default:
            return false;
        }
    }
};

#ifndef SPMV_DEVICE_CUH
template <typename Type> by_predicate<Type> predicate_by(const struct filter *filter)
{
    by_predicate<Type> by = {(int)filter->predicate, filter->when, Type()};
    memcpy(&by.scalar, &filter->scalar, sizeof(Type));
    return by;
}
#endif

/* The filters of gather and scatter. wants tests the position before the element is read; takes
 * tests the element. */
template <typename Type> struct take_all {
    using type = Type;
    __device__ bool wants(int64_t) const
    {
        return true;
    }
    __device__ bool takes(Type) const
    {
        return true;
    }
};

template <typename Type> struct take_masked {
    using type = Type;
    const uint8_t *mask;
    __device__ bool wants(int64_t i) const
    {
        return mask[i] != 0;
    }
    __device__ bool takes(Type) const
    {
        return true;
    }
};

template <typename Type> struct take_if {
    using type = Type;
    by_predicate<Type> test;
    __device__ bool wants(int64_t) const
    {
        return true;
    }
    __device__ bool takes(Type element) const
    {
        return test(element);
    }
};

#endif
