/* For code that moves elements without reading them: calls a generic lambda with an unsigned type
 * of the size of a type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef DISPATCH_WORDS_CUH
#define DISPATCH_WORDS_CUH

#include "device/block.cuh"
#include "device/dispatch.cuh"

/* An element of the given number of bytes; an unsupported size is a compile error. */
template <size_t bytes> struct element_of;
template <> struct element_of<4> {
    using type = uint32_t;
};
template <> struct element_of<8> {
    using type = uint64_t;
};
template <> struct element_of<16> {
    using type = words<2>;
};
template <> struct element_of<32> {
    using type = words<4>;
};

/* Calls body(uint32_t()) or the like. */
template <typename Body> spmv_status with_words(spmv_context *ctx, const char *caller, spmv_type type, const Body &body)
{
    return with_type(ctx, caller, type,
                     [&](auto of) { return body(typename element_of<sizeof(typename decltype(of)::type)>::type()); });
}

#endif
