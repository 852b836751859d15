/* Maps the types of a plan to template parameters.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_TYPES_CUH
#define SPMV_TYPES_CUH

#include "device/complex.cuh"

extern "C" {
#include "product/plan_internal.h"
}

/* Calls body(sums, stored) with an object of the type of vectors and sums and one of the values'
 * type; not for 16-bit types. Few types: f64 and c128. */
template <typename Body> spmv_status with_types(const spmv_plan *plan, const Body &body)
{
    switch (plan->types) {
    case PLAN_f32:
        if constexpr (!few_types)
            return body(float(), float());
        break;
    case PLAN_f64:
        return body(double(), double());
    case PLAN_mixed:
        if constexpr (!few_types)
            return body(double(), float());
        break;
    case PLAN_c64:
        if constexpr (!few_types)
            return body(spmv_c64(), spmv_c64());
        break;
    case PLAN_c128:
        return body(spmv_c128(), spmv_c128());
    case PLAN_bf16: /* with_all_types */
    case PLAN_f16:
    case PLAN_TYPES:
        break;
    }
    return SPMV_ERROR_TYPE;
}

/* The same for methods with METHOD_HALF: calls body(sums, stored, element) with an object of the type of sums,
 * one of the values' and one of the vectors' type. Few types: of the 16-bit types bf16. */
template <typename Body> spmv_status with_all_types(const spmv_plan *plan, const Body &body)
{
    switch ((int)plan->types) {
    case PLAN_bf16:
        return body(float(), bf16(), bf16());
    case PLAN_f16:
        if constexpr (few_types)
            return SPMV_ERROR_TYPE;
        else
            return body(float(), f16(), f16());
    default:
        return with_types(plan, [&](auto sums, auto stored) { return body(sums, stored, sums); });
    }
}

#endif
