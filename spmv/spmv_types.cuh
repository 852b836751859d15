/* From the types that a plan names to those of templates.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_TYPES_CUH
#define SPMV_TYPES_CUH

extern "C" {
#include "plan_internal.h"
}

/* body(sums, stored) with an object of the type of vectors and sums, and one of the values' type. */
template <typename Body> spmv_status with_types(const spmv_plan *plan, const Body &body)
{
    switch (plan->type) {
    case SPMV_F32:
        return body(float(), float());
    case SPMV_C64:
        return body(spmv_c64(), spmv_c64());
    case SPMV_C128:
        return body(spmv_c128(), spmv_c128());
    default:
        return plan->a.type == SPMV_F32 ? body(double(), float()) : body(double(), double());
    }
}

#endif
