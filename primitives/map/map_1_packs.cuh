/* map, rung 1: packs of 16 bytes.
 *
 * idea      a thread reads a pack of neighbouring elements with one 16-byte access, computes, and
 *           writes a pack. Blocks loop if there are more packs than the grid allows. If an array is
 *           not aligned to 16 bytes, packs are single elements.
 * work      n
 * depth     1
 * launches  1
 * bytes     n v for each array
 * wins      everywhere
 * order     out may equal an input: the same thread reads a pack before it writes it
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_MAP_1_PACKS_CUH
#define SPMV_MAP_1_PACKS_CUH

#include "device/block.cuh"
#include "device/launch.cuh"

/* A single element needs only its own alignment. */
template <typename Type, int Length> struct alignas(Length > 1 ? Length * sizeof(Type) : alignof(Type)) pack {
    Type at[Length];
};

/* Elements in 16 bytes; 1 if their size does not divide 16. */
template <typename Type> constexpr int pack_length()
{
    return sizeof(Type) < 16 && 16 % sizeof(Type) == 0 ? 16 / (int)sizeof(Type) : 1;
}

/* Pack p of an array of n elements: elements p Length ... p Length + Length - 1; the last pack may
 * be short. */
template <int Length, typename Type> __device__ pack<Type, Length> read_pack(const Type *from, int64_t p, int64_t n)
{
    pack<Type, Length> x;
    if (p * Length + Length <= n) {
        x = ((const pack<Type, Length> *)from)[p];
    } else {
#pragma unroll
        for (int j = 0; j < Length; j++)
            x.at[j] = p * Length + j < n ? from[p * Length + j] : Type();
    }
    return x;
}

template <int Length, typename Type> __device__ void write_pack(Type *to, int64_t p, int64_t n, pack<Type, Length> x)
{
    if (p * Length + Length <= n) {
        ((pack<Type, Length> *)to)[p] = x;
    } else {
#pragma unroll
        for (int j = 0; j < Length; j++)
            if (p * Length + j < n)
                to[p * Length + j] = x.at[j];
    }
}

/* The expressions: get returns pack p of the result. */
template <typename Function> struct map_unary {
    using type = typename Function::type;
    const type *in;
    Function function;
    bool aligned() const
    {
        return (uintptr_t)in % 16 == 0;
    }
    template <int Length> __device__ pack<type, Length> get(int64_t p, int64_t n) const
    {
        pack<type, Length> x = read_pack<Length>(in, p, n);
#pragma unroll
        for (int j = 0; j < Length; j++)
            x.at[j] = function(x.at[j]);
        return x;
    }
};

template <typename Op> struct map_pairs {
    using type = typename Op::type;
    const type *a, *b;
    bool aligned() const
    {
        return (uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0;
    }
    template <int Length> __device__ pack<type, Length> get(int64_t p, int64_t n) const
    {
        pack<type, Length> x = read_pack<Length>(a, p, n);
        const pack<type, Length> y = read_pack<Length>(b, p, n);
#pragma unroll
        for (int j = 0; j < Length; j++)
            x.at[j] = Op()(x.at[j], y.at[j]);
        return x;
    }
};

/* x -> scalar op x */
template <typename Op> struct with_scalar {
    using type = typename Op::type;
    type scalar;
    __device__ type operator()(type x) const
    {
        return Op()(scalar, x);
    }
};

template <typename Add, typename Mul> struct map_of_index {
    using type = typename Add::type;
    type first, step;
    bool aligned() const
    {
        return true;
    }
    template <int Length> __device__ pack<type, Length> get(int64_t p, int64_t) const
    {
        pack<type, Length> x;
#pragma unroll
        for (int j = 0; j < Length; j++)
            x.at[j] = Add()(first, Mul()((type)(p * Length + j), step));
        return x;
    }
};

/* The same value everywhere: for types without sums. */
template <typename Tuple> struct map_of_value {
    using type = Tuple;
    type value;
    bool aligned() const
    {
        return true;
    }
    template <int Length> __device__ pack<type, Length> get(int64_t, int64_t) const
    {
        pack<type, Length> x;
#pragma unroll
        for (int j = 0; j < Length; j++)
            x.at[j] = value;
        return x;
    }
};

template <typename Real> struct divide {
    using type = Real;
    __host__ __device__ Real operator()(Real a, Real b) const
    {
        return a / b;
    }
};

/* alpha x[i] + beta y[i]. The scalars are in device memory; NULL means 1. */
template <typename Real> struct map_axpby {
    using type = Real;
    const type *alpha, *x, *beta, *y;
    bool aligned() const
    {
        return (uintptr_t)x % 16 == 0 && (uintptr_t)y % 16 == 0;
    }
    template <int Length> __device__ pack<type, Length> get(int64_t p, int64_t n) const
    {
        const type a = alpha != NULL ? *alpha : type(1), b = beta != NULL ? *beta : type(1);
        const pack<type, Length> u = read_pack<Length>(x, p, n);
        pack<type, Length> v = read_pack<Length>(y, p, n);
#pragma unroll
        for (int j = 0; j < Length; j++)
            v.at[j] = a * u.at[j] + b * v.at[j];
        return v;
    }
};

template <int Length, typename Expression>
__global__ void __launch_bounds__(block_threads)
    map_packs(Expression expression, typename Expression::type *out, int64_t n)
{
    const int64_t packs = n / Length + (n % Length != 0), stride = (int64_t)gridDim.x * block_threads;
    for (int64_t p = (int64_t)blockIdx.x * block_threads + threadIdx.x; p < packs; p += stride)
        write_pack<Length>(out, p, n, expression.template get<Length>(p, n));
}

/* out[i] = the expression at i, n > 0 */
template <typename Expression>
spmv_status map_1_launch(spmv_context *ctx, const char *name, Expression expression, void *out, int64_t n)
{
    using Type = typename Expression::type;
    constexpr int Length = pack_length<Type>();
    if (expression.aligned() && (uintptr_t)out % 16 == 0)
        return launch(ctx, name, grid_for(n, Length * block_threads), block_threads, map_packs<Length, Expression>,
                      expression, (Type *)out, n);
    return launch(ctx, name, grid_for(n, block_threads), block_threads, map_packs<1, Expression>, expression,
                  (Type *)out, n);
}

#endif
