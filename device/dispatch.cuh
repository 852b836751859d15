/* From enum values to types: calls a generic lambda with the functor of an operator and a type, of
 * a map function and a type, or with the traits of a type. All switches over these lists in C++ and
 * CUDA are here.
 *
 * The cases come from the lists of spmv/operators.h and spmv/types.h; the lambda is instantiated
 * for each. So an operator or type without code in the lambda is a compile error, and a new one
 * needs no change here. A pair that does not exist gives SPMV_ERROR_TYPE, with a message that
 * begins with the caller's name.
 *
 *     return with_op(ctx, "scan", op, type,
 *                    [=](auto by) { return launch<decltype(by)>(ctx, in, out, n); });
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef DISPATCH_CUH
#define DISPATCH_CUH

#include "device/ops.cuh"

extern "C" {
#include "core/runtime.h"
}

enum class type_class { INTEGER, REAL, TUPLE };

/* Whether a type has kernels. The few types are a small integer, a large real type, and tuples. */
constexpr bool has_kernels(spmv_type type, type_class of)
{
    return !few_types || type == SPMV_I32 || type == SPMV_F64 || of == type_class::TUPLE;
}

/* The same for a pair with an operator or function: of few types, the first one, and all for tuples. */
constexpr bool has_kernels(bool first, spmv_type type, type_class of)
{
    return has_kernels(type, of) && (!few_types || first || of == type_class::TUPLE);
}

/* Calls body(op_add_f64()) or the like: the functor of a pair of operator and type. */
template <typename Body>
spmv_status with_op(spmv_context *ctx, const char *caller, spmv_op op, spmv_type type, const Body &body)
{
    switch ((int)op * SPMV_TYPE_LIMIT + (int)type) {
#define CASE(OP, op, TYPE, type_, T, CLASS)                                                                            \
    case SPMV_##OP *SPMV_TYPE_LIMIT + SPMV_##TYPE:                                                                     \
        if constexpr (has_kernels(SPMV_##OP == SPMV_ADD, SPMV_##TYPE, type_class::CLASS))                              \
            return body(op_##op##_##type_());                                                                          \
        break;
        SPMV_OPERATOR_PAIRS(CASE)
#undef CASE
    }
    return context_fail(ctx, SPMV_ERROR_TYPE, "%s: no kernel for operator %s and type %s", caller, spmv_op_name(op),
                        spmv_type_name(type));
}

/* Calls body(function_neg_f64()) or the like: the functor of a pair of map function and type. */
template <typename Body>
spmv_status with_function(spmv_context *ctx, const char *caller, spmv_function function, spmv_type type,
                          const Body &body)
{
    switch ((int)function * SPMV_TYPE_LIMIT + (int)type) {
#define CASE(FN, fn, TYPE, type_, T, CLASS)                                                                            \
    case SPMV_MAP_##FN *SPMV_TYPE_LIMIT + SPMV_##TYPE:                                                                 \
        if constexpr (has_kernels(SPMV_MAP_##FN == SPMV_MAP_COPY, SPMV_##TYPE, type_class::CLASS))                     \
            return body(function_##fn##_##type_());                                                                    \
        break;
        SPMV_FUNCTION_PAIRS(CASE)
#undef CASE
    }
    return context_fail(ctx, SPMV_ERROR_TYPE, "%s: no kernel for function %s and type %s", caller,
                        spmv_function_name(function), spmv_type_name(type));
}

/* The traits of a type: its class, and its operators if it is a number. */
#define TRAITS_INTEGER(type_) TRAITS_REAL(type_)
#define TRAITS_REAL(type_)                                                                                             \
    using add = op_add_##type_;                                                                                        \
    using mul = op_mul_##type_;
#define TRAITS_TUPLE(type_)
#define TRAITS(TYPE, type_, value, T, CLASS, ARG)                                                                      \
    struct traits_##type_ {                                                                                            \
        using type = T;                                                                                                \
        static constexpr type_class kind = type_class::CLASS;                                                          \
        TRAITS_##CLASS(type_)                                                                                          \
    };
SPMV_TYPES(TRAITS, )
#undef TRAITS
#undef TRAITS_INTEGER
#undef TRAITS_REAL
#undef TRAITS_TUPLE

inline spmv_status dispatch_refuse(spmv_context *ctx, const char *caller, spmv_type type)
{
    return context_fail(ctx, SPMV_ERROR_TYPE, "%s: no kernel for type %s", caller, spmv_type_name(type));
}

/* Calls body(traits_f64()) or the like, for any type of the primitives. */
template <typename Body> spmv_status with_type(spmv_context *ctx, const char *caller, spmv_type type, const Body &body)
{
    switch ((int)type) {
#define CASE(TYPE, type_, value, T, CLASS, ARG)                                                                        \
    case SPMV_##TYPE:                                                                                                  \
        if constexpr (has_kernels(SPMV_##TYPE, type_class::CLASS))                                                     \
            return body(traits_##type_());                                                                             \
        break;
        SPMV_TYPES(CASE, )
#undef CASE
    }
    return dispatch_refuse(ctx, caller, type);
}

/* The same for number types, and for real types. */
template <typename Body>
spmv_status with_number(spmv_context *ctx, const char *caller, spmv_type type, const Body &body)
{
    return with_type(ctx, caller, type, [&](auto of) -> spmv_status {
        if constexpr (of.kind != type_class::TUPLE)
            return body(of);
        else
            return dispatch_refuse(ctx, caller, type);
    });
}

template <typename Body> spmv_status with_real(spmv_context *ctx, const char *caller, spmv_type type, const Body &body)
{
    return with_type(ctx, caller, type, [&](auto of) -> spmv_status {
        if constexpr (of.kind == type_class::REAL)
            return body(of);
        else
            return dispatch_refuse(ctx, caller, type);
    });
}

/* Calls body(0.0) or the like: a zero of a real type. */
template <typename Body> spmv_status with_zero(spmv_context *ctx, const char *caller, spmv_type type, const Body &body)
{
    return with_real(ctx, caller, type, [&](auto of) { return body(typename decltype(of)::type()); });
}

#endif
