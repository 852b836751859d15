/* Filters on the device: by a mask of bytes, or by a predicate of the list, which the kernel is told at run time: all
 * threads take the same way through the switch, and a kernel a predicate would be many times the code.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILTER_CUH
#define FILTER_CUH

#include <cuda_runtime.h>
#include <string.h>

#ifndef SPMV_DEVICE_CUH /* users bring predicates of their own */
#include "filter.h"
#endif

/* A pair that does not exist is never asked for. */
template <int predicate, typename T> struct predicate_of {
    static __host__ __device__ bool is(T, T)
    {
        return false;
    }
};
#define FILTER_DEFINE_(NAME, name, TYPE, type, T, D, CLASS)                                                            \
    template <> struct predicate_of<SPMV_IS_##NAME, D> {                                                               \
        static __host__ __device__ bool is(D a, D s)                                                                   \
        {                                                                                                              \
            return SPMV_TEST_##NAME##_##CLASS(a, s);                                                                   \
        }                                                                                                              \
    };
SPMV_PREDICATE_PAIR_LIST(FILTER_DEFINE_)
#undef FILTER_DEFINE_

template <typename T> struct by_predicate {
    int predicate;
    bool when;
    T scalar;

    __host__ __device__ bool operator()(T a) const
    {
        return test(a) == when;
    }
    __host__ __device__ bool test(T a) const
    {
        switch (predicate) {
#define CASE(NAME, name, value, INTEGER, REAL, COMPLEX, TUPLE, ARG)                                                    \
    case SPMV_IS_##NAME:                                                                                               \
        return predicate_of<SPMV_IS_##NAME, T>::is(a, scalar);
            SPMV_PREDICATE_LIST(CASE, )
#undef CASE
        default:
            return false;
        }
    }
};

#ifndef SPMV_DEVICE_CUH
template <typename T> by_predicate<T> predicate_by(const struct filter *filter)
{
    by_predicate<T> by = {(int)filter->predicate, filter->when, T()};
    memcpy(&by.scalar, &filter->scalar, sizeof(T));
    return by;
}
#endif

/* The filters of gather and scatter: before the element is looked at (wants), and when it is there (takes). */
template <typename T> struct take_all {
    using type = T;
    __device__ bool wants(int64_t) const
    {
        return true;
    }
    __device__ bool takes(T) const
    {
        return true;
    }
};

template <typename T> struct take_masked {
    using type = T;
    const uint8_t *mask;
    __device__ bool wants(int64_t i) const
    {
        return mask[i] != 0;
    }
    __device__ bool takes(T) const
    {
        return true;
    }
};

template <typename T> struct take_if {
    using type = T;
    by_predicate<T> test;
    __device__ bool wants(int64_t) const
    {
        return true;
    }
    __device__ bool takes(T element) const
    {
        return test(element);
    }
};

#endif
