/* map on CUDA: the rungs for every function, operator and type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "map_1_packs.cuh"

static spmv_status no_kernel(spmv_context *ctx, const char *form, int by, spmv_type of)
{
    return context_fail(ctx, SPMV_ERROR_TYPE, "%s: no kernel for operation %d and type %d", form, by, (int)of);
}

static spmv_status dispatch_unary(spmv_context *ctx, spmv_function by, spmv_type of, const void *in, void *out,
                                  int64_t n)
{
    switch ((int)by * SPMV_TYPE_LIMIT + (int)of) {
#define CASE(FN, fn, TYPE, type, T, D, CLASS)                                                                          \
    case SPMV_MAP_##FN *SPMV_TYPE_LIMIT + SPMV_##TYPE:                                                                 \
        return map_1_launch(ctx, "map_packs (map)", map_unary<function_##fn##_##type>{(const D *)in}, out, n);
        SPMV_FUNCTION_PAIR_LIST(CASE)
#undef CASE
    default:
        return no_kernel(ctx, "map", (int)by, of);
    }
}

static spmv_status dispatch_binary(spmv_context *ctx, spmv_op by, spmv_type of, const void *a, const void *b, void *out,
                                   int64_t n)
{
    switch ((int)by * SPMV_TYPE_LIMIT + (int)of) {
#define CASE(OP, op, TYPE, type, T, D, CLASS)                                                                          \
    case SPMV_##OP *SPMV_TYPE_LIMIT + SPMV_##TYPE:                                                                     \
        return map_1_launch(ctx, "map_packs (map_binary)", map_pairs<op_##op##_##type>{(const D *)a, (const D *)b},    \
                            out, n);
        SPMV_PAIR_LIST(CASE)
#undef CASE
    default:
        return no_kernel(ctx, "map_binary", (int)by, of);
    }
}

static spmv_status dispatch_scalar(spmv_context *ctx, spmv_op by, spmv_type of, const void *host_scalar, const void *in,
                                   void *out, int64_t n)
{
    switch ((int)by * SPMV_TYPE_LIMIT + (int)of) {
#define CASE(OP, op, TYPE, type, T, D, CLASS)                                                                          \
    case SPMV_##OP *SPMV_TYPE_LIMIT + SPMV_##TYPE:                                                                     \
        return map_1_launch(ctx, "map_packs (map_scalar)",                                                             \
                            map_with_scalar<op_##op##_##type>{*(const D *)host_scalar, (const D *)in}, out, n);
        SPMV_PAIR_LIST(CASE)
#undef CASE
    default:
        return no_kernel(ctx, "map_scalar", (int)by, of);
    }
}

static spmv_status dispatch_index(spmv_context *ctx, spmv_type of, const void *host_first, const void *host_step,
                                  void *out, int64_t n)
{
    switch (of) {
#define CASE(TYPE, type, value, T, D, CLASS, ARG) CASE_##CLASS(TYPE, type, D)
#define CASE_TUPLE(TYPE, type, D)                                                                                      \
    case SPMV_##TYPE:                                                                                                  \
        return map_1_launch(ctx, "map_packs (map_index)", map_of_value<D>{*(const D *)host_first}, out, n);
#define CASE_INTEGER CASE_NUMBER
#define CASE_REAL CASE_NUMBER
#define CASE_NUMBER(TYPE, type, D)                                                                                     \
    case SPMV_##TYPE: {                                                                                                \
        const D step = host_step != NULL ? *(const D *)host_step : op_add_##type::identity();                          \
        return map_1_launch(ctx, "map_packs (map_index)",                                                              \
                            map_of_index<op_add_##type, op_mul_##type>{*(const D *)host_first, step}, out, n);         \
    }
        SPMV_TYPE_LIST(CASE, )
#undef CASE
    default:
        return no_kernel(ctx, "map_index", 0, of);
    }
}

/* X(TYPE, device type) for the reals */
#define EACH_REAL(X) SPMV_TYPE_LIST(EACH_REAL_, X)
#define EACH_REAL_(TYPE, type, value, T, D, CLASS, X) EACH_REAL_##CLASS(TYPE, D, X)
#define EACH_REAL_REAL(TYPE, D, X) X(TYPE, D)
#define EACH_REAL_INTEGER(TYPE, D, X)
#define EACH_REAL_COMPLEX(TYPE, D, X)
#define EACH_REAL_TUPLE(TYPE, D, X)

static spmv_status dispatch_divide(spmv_context *ctx, spmv_type of, const void *a, const void *b, void *out, int64_t n)
{
    switch (of) {
#define CASE(TYPE, D)                                                                                                  \
    case SPMV_##TYPE:                                                                                                  \
        return map_1_launch(ctx, "map_packs (map_divide)", map_pairs<divide<D>>{(const D *)a, (const D *)b}, out, n);
        EACH_REAL(CASE)
#undef CASE
    default:
        return no_kernel(ctx, "map_divide", 0, of);
    }
}

static spmv_status dispatch_axpby(spmv_context *ctx, spmv_type of, const void *alpha, const void *x, const void *beta,
                                  void *y, int64_t n)
{
    switch (of) {
#define CASE(TYPE, D)                                                                                                  \
    case SPMV_##TYPE:                                                                                                  \
        return map_1_launch(ctx, "map_packs (map_axpby)",                                                              \
                            map_axpby<D>{(const D *)alpha, (const D *)x, (const D *)beta, (const D *)y}, y, n);
        EACH_REAL(CASE)
#undef CASE
    default:
        return no_kernel(ctx, "map_axpby", 0, of);
    }
}

extern "C" spmv_status map_cuda(spmv_context *ctx, spmv_function by, spmv_type of, const void *in, void *out, int64_t n)
{
    return on_device(ctx, [=] { return dispatch_unary(ctx, by, of, in, out, n); });
}

extern "C" spmv_status map_binary_cuda(spmv_context *ctx, spmv_op by, spmv_type of, const void *a, const void *b,
                                       void *out, int64_t n)
{
    return on_device(ctx, [=] { return dispatch_binary(ctx, by, of, a, b, out, n); });
}

extern "C" spmv_status map_scalar_cuda(spmv_context *ctx, spmv_op by, spmv_type of, const void *host_scalar,
                                       const void *in, void *out, int64_t n)
{
    return on_device(ctx, [=] { return dispatch_scalar(ctx, by, of, host_scalar, in, out, n); });
}

extern "C" spmv_status map_index_cuda(spmv_context *ctx, spmv_type of, const void *host_first, const void *host_step,
                                      void *out, int64_t n)
{
    return on_device(ctx, [=] { return dispatch_index(ctx, of, host_first, host_step, out, n); });
}

extern "C" spmv_status map_divide_cuda(spmv_context *ctx, spmv_type of, const void *a, const void *b, void *out,
                                       int64_t n)
{
    return on_device(ctx, [=] { return dispatch_divide(ctx, of, a, b, out, n); });
}

extern "C" spmv_status map_axpby_cuda(spmv_context *ctx, spmv_type of, const void *alpha, const void *x,
                                      const void *beta, void *y, int64_t n)
{
    return on_device(ctx, [=] { return dispatch_axpby(ctx, of, alpha, x, beta, y, n); });
}
