/* dot on CUDA: reduce, rung 5, with a loader that multiplies: a map fused into a reduce.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "reduce_5_shuffles.cuh"

template <typename T> struct load_products {
    const T *x, *y;
    __device__ T operator()(int64_t i) const
    {
        return x[i] * y[i];
    }
};

extern "C" int64_t dot_scratch_cuda(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    (void)n;
    return REDUCE_5_SCRATCH_ELEMENTS * (int64_t)spmv_type_size(type);
}

extern "C" spmv_status dot_cuda(spmv_context *ctx, spmv_type of, const void *x, const void *y, void *out, int64_t n,
                                void *scratch)
{
    return on_device(ctx, [=] {
        switch (of) {
#define CASE_REAL(TYPE, type, D)                                                                                       \
    case SPMV_##TYPE:                                                                                                  \
        return reduce_5_launch<op_add_##type>(ctx, load_products<D>{(const D *)x, (const D *)y}, n, (D *)out, scratch);
#define CASE_INTEGER(TYPE, type, D)
#define CASE_COMPLEX(TYPE, type, D)
#define CASE_TUPLE(TYPE, type, D)
#define CASE(TYPE, type, value, T, D, CLASS, ARG) CASE_##CLASS(TYPE, type, D)
            SPMV_TYPE_LIST(CASE, )
        default:
            return context_fail(ctx, SPMV_ERROR_TYPE, "dot: no kernel for type %s", spmv_type_name(of));
        }
    });
}
