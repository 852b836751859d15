/* map, rung 1: packs of 16 bytes.
 *
 * Idea: a thread takes a pack of neighbouring elements with one 16-byte access, computes, and writes a pack; blocks
 * loop where there are more packs than the grid is allowed to have. Where an array does not begin at a multiple of 16
 * bytes, packs are single elements.
 * Work n; depth 1; launches 1; bytes moved n v for each array.
 * Wins: everywhere. Out may equal an input: a pack is read before it is written, by the same thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MAP_1_PACKS_CUH
#define MAP_1_PACKS_CUH

#include "block.cuh"
#include "launch.cuh"

/* One element alone asks for no more than its own alignment. */
template <typename T, int V> struct alignas(V > 1 ? V * sizeof(T) : alignof(T)) pack {
    T at[V];
};

/* Elements of 16 bytes, or one where they do not fit evenly. */
template <typename T> constexpr int pack_length()
{
    return sizeof(T) < 16 && 16 % sizeof(T) == 0 ? 16 / (int)sizeof(T) : 1;
}

/* Pack p of an array of n elements: elements p V ... p V + V - 1, the last pack may be short. */
template <int V, typename T> __device__ pack<T, V> read_pack(const T *from, int64_t p, int64_t n)
{
    pack<T, V> x;
    if (p * V + V <= n) {
        x = ((const pack<T, V> *)from)[p];
    } else {
#pragma unroll
        for (int j = 0; j < V; j++)
            x.at[j] = p * V + j < n ? from[p * V + j] : T();
    }
    return x;
}

template <int V, typename T> __device__ void write_pack(T *to, int64_t p, int64_t n, pack<T, V> x)
{
    if (p * V + V <= n) {
        ((pack<T, V> *)to)[p] = x;
    } else {
#pragma unroll
        for (int j = 0; j < V; j++)
            if (p * V + j < n)
                to[p * V + j] = x.at[j];
    }
}

/* The expressions: what pack p of the result is. */
template <typename Function> struct map_unary {
    using T = typename Function::type;
    const T *in;
    bool aligned() const
    {
        return (uintptr_t)in % 16 == 0;
    }
    template <int V> __device__ pack<T, V> get(int64_t p, int64_t n) const
    {
        pack<T, V> x = read_pack<V>(in, p, n);
#pragma unroll
        for (int j = 0; j < V; j++)
            x.at[j] = Function()(x.at[j]);
        return x;
    }
};

template <typename Op> struct map_pairs {
    using T = typename Op::type;
    const T *a, *b;
    bool aligned() const
    {
        return (uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0;
    }
    template <int V> __device__ pack<T, V> get(int64_t p, int64_t n) const
    {
        pack<T, V> x = read_pack<V>(a, p, n);
        const pack<T, V> y = read_pack<V>(b, p, n);
#pragma unroll
        for (int j = 0; j < V; j++)
            x.at[j] = Op()(x.at[j], y.at[j]);
        return x;
    }
};

template <typename Op> struct map_with_scalar {
    using T = typename Op::type;
    T scalar;
    const T *in;
    bool aligned() const
    {
        return (uintptr_t)in % 16 == 0;
    }
    template <int V> __device__ pack<T, V> get(int64_t p, int64_t n) const
    {
        pack<T, V> x = read_pack<V>(in, p, n);
#pragma unroll
        for (int j = 0; j < V; j++)
            x.at[j] = Op()(scalar, x.at[j]);
        return x;
    }
};

template <typename Add, typename Mul> struct map_of_index {
    using T = typename Add::type;
    T first, step;
    bool aligned() const
    {
        return true;
    }
    template <int V> __device__ pack<T, V> get(int64_t p, int64_t) const
    {
        pack<T, V> x;
#pragma unroll
        for (int j = 0; j < V; j++)
            x.at[j] = Add()(first, Mul()((T)(p * V + j), step));
        return x;
    }
};

/* The same everywhere: for types without sums. */
template <typename Tuple> struct map_of_value {
    using T = Tuple;
    T value;
    bool aligned() const
    {
        return true;
    }
    template <int V> __device__ pack<T, V> get(int64_t, int64_t) const
    {
        pack<T, V> x;
#pragma unroll
        for (int j = 0; j < V; j++)
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

/* alpha x[i] + beta y[i]; the scalars lie in device memory, NULL stands for 1. */
template <typename Real> struct map_axpby {
    using T = Real;
    const T *alpha, *x, *beta, *y;
    bool aligned() const
    {
        return (uintptr_t)x % 16 == 0 && (uintptr_t)y % 16 == 0;
    }
    template <int V> __device__ pack<T, V> get(int64_t p, int64_t n) const
    {
        const T a = alpha != NULL ? *alpha : T(1), b = beta != NULL ? *beta : T(1);
        const pack<T, V> u = read_pack<V>(x, p, n);
        pack<T, V> v = read_pack<V>(y, p, n);
#pragma unroll
        for (int j = 0; j < V; j++)
            v.at[j] = a * u.at[j] + b * v.at[j];
        return v;
    }
};

template <int V, typename Expression>
__global__ void __launch_bounds__(THREADS) map_packs(Expression expression, typename Expression::T *out, int64_t n)
{
    const int64_t packs = n / V + (n % V != 0), stride = (int64_t)gridDim.x * THREADS;
    for (int64_t p = (int64_t)blockIdx.x * THREADS + threadIdx.x; p < packs; p += stride)
        write_pack<V>(out, p, n, expression.template get<V>(p, n));
}

/* out[i] = expression at i, n > 0 */
template <typename Expression>
spmv_status map_1_launch(spmv_context *ctx, const char *name, Expression expression, void *out, int64_t n)
{
    using T = typename Expression::T;
    constexpr int V = pack_length<T>();
    if (expression.aligned() && (uintptr_t)out % 16 == 0)
        return launch(ctx, name, grid_for(n, V * THREADS), THREADS, map_packs<V, Expression>, expression, (T *)out, n);
    return launch(ctx, name, grid_for(n, THREADS), THREADS, map_packs<1, Expression>, expression, (T *)out, n);
}

#endif
