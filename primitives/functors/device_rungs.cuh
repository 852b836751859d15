/* Connects a user's functors to the rungs in spmv/device.cuh: sources, expressions, shapes.
 *
 * Everything is included inside a namespace, so that names of rungs cannot clash with the user's.
 * The system headers of the rungs must be included before.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_DEVICE_RUNGS_CUH
#define SPMV_DEVICE_RUNGS_CUH

#include "primitives/functors/device_context.cuh"

#include "primitives/compact/compact_2_count_write.cuh"
#include "primitives/map/map_1_packs.cuh"
#include "primitives/reduce/reduce_6_packs.cuh"
#include "primitives/scan/scan_5_lookback.cuh"
#include "primitives/segscan/segreduce_1_walk.cuh"
#include "primitives/segscan/segscan_5_lookback.cuh"

template <typename To> struct convert_to {
    template <typename From> __device__ To operator()(From x) const
    {
        return (To)x;
    }
};

/* A device pointer as a loader of elements of Type; a loader is returned unchanged. */
template <typename Type, typename In> auto as_loader(In in)
{
    if constexpr (!std::is_pointer<In>::value) {
        return in;
    } else {
        using From = typename std::remove_const<typename std::remove_pointer<In>::type>::type;
        if constexpr (std::is_same<From, Type>::value)
            return load_array<Type>{in};
        else
            return load_mapped<load_array<From>, convert_to<Type>>{{in}, {}};
    }
}

template <typename Out> auto as_storer(Out out)
{
    if constexpr (std::is_pointer<Out>::value)
        return store_array<typename std::remove_pointer<Out>::type>{out};
    else
        return out;
}

template <typename Pointer> bool is_null(Pointer p)
{
    if constexpr (std::is_pointer<Pointer>::value)
        return p == NULL;
    else
        return false;
}

/* ---------------------------------------------------------------- operators */

/* Marks an operator as commutative if it has static constexpr bool commutes = true. */
template <typename Op> struct as_commuting : Op {
};
template <typename Op> struct commutes<as_commuting<Op>> {
    static constexpr bool yes = true;
};
template <typename Op, typename = void> struct says_it_commutes {
    static constexpr bool yes = false;
};
template <typename Op> struct says_it_commutes<Op, typename std::enable_if<Op::commutes>::type> {
    static constexpr bool yes = true;
};
template <typename Op>
using operator_of = typename std::conditional<says_it_commutes<Op>::yes, as_commuting<Op>, Op>::type;

/* Checks the types of elements that are moved, and of those that operators combine. */
template <typename Type> constexpr void check_element()
{
    static_assert(std::is_trivially_copyable<Type>::value && std::is_trivially_default_constructible<Type>::value,
                  "an element is a plain struct or number: trivially copyable, without a constructor");
    static_assert(sizeof(Type) <= 32 && alignof(Type) <= 16, "an element has at most 32 bytes, aligned to 16 at most");
}
template <typename Op> constexpr void check_operator()
{
    check_element<typename Op::type>();
    static_assert(sizeof(typename Op::type) % 4 == 0, "elements of an operator have a multiple of 4 bytes");
    static_assert(std::is_empty<Op>::value, "an operator holds no data: kernels make it anew");
}

/* The rung's shape, or a smaller one if the element size does not divide 16 and a tile would exceed
 * shared memory. */
enum { shared_bytes_most = 47 * 1024 };
template <typename Type>
using scan_shape =
    typename std::conditional<vector_tile<Type, scan_5_best<Type>>::size * sizeof(Type) <= shared_bytes_most,
                              scan_5_best<Type>, lookback_shape<256, 7, 4>>::type;

/* ------------------------------------------------------------------ sources */

/* Packs of a loader's values, for reduce. */
template <typename Type, typename Load> struct source_loaded {
    using type = Type;
    static constexpr int length = pack_length<type>();
    using raw = pack<type, length>;
    Load load;

    bool aligned() const
    {
        return true;
    }
    __device__ raw fetch(int64_t p) const
    {
        raw x;
#pragma unroll
        for (int j = 0; j < length; j++)
            x.at[j] = load(p * length + j);
        return x;
    }
    /* Missing elements are replaced by the last one, because a functor must not be called for
     * positions that do not exist. */
    __device__ raw fetch_some(int64_t p, int64_t n) const
    {
        raw x;
#pragma unroll
        for (int j = 0; j < length; j++)
            x.at[j] = load(p * length + j < n ? p * length + j : n - 1);
        return x;
    }
    __device__ raw values(raw x) const
    {
        return x;
    }
};

__host__ __device__ constexpr bool is_power(size_t bytes)
{
    return (bytes & (bytes - 1)) == 0;
}

/* Elements of In in a pack of 16 bytes; fewer if their results of type Type would not fit in a
 * pack. */
template <typename In, typename Type> constexpr int mapped_length()
{
    int v = pack_length<In>();
    while (v > 1 && (v * sizeof(Type) > 32 || !is_power(v * sizeof(Type))))
        v /= 2;
    return v;
}

/* Packs of function(in[i]). */
template <typename Type, typename In, typename Function> struct source_function {
    using type = Type;
    static constexpr int length = mapped_length<In, type>();
    using raw = pack<In, length>;
    const In *in;
    Function function;

    bool aligned() const
    {
        return (uintptr_t)in % alignof(raw) == 0;
    }
    __device__ raw fetch(int64_t p) const
    {
        return ((const raw *)in)[p];
    }
    __device__ raw fetch_some(int64_t p, int64_t n) const
    {
        raw x;
#pragma unroll
        for (int j = 0; j < length; j++)
            x.at[j] = in[p * length + j < n ? p * length + j : n - 1];
        return x;
    }
    __device__ pack<type, length> values(raw x) const
    {
        pack<type, length> y;
#pragma unroll
        for (int j = 0; j < length; j++)
            y.at[j] = function(x.at[j]);
        return y;
    }
};

/* function(in[i]); in is a device pointer, for which a Pointer is made, or a loader, for which a
 * Loader is made. */
template <template <typename, typename, typename> class Pointer, template <typename, typename> class Loader,
          typename Type, typename Function, typename In>
auto reader_of(Function function, In in)
{
    if constexpr (std::is_pointer<In>::value) {
        using From = typename std::remove_const<typename std::remove_pointer<In>::type>::type;
        return Pointer<Type, From, Function>{in, function};
    } else {
        const load_mapped<In, Function> load = {in, function};
        return Loader<Type, load_mapped<In, Function>>{load};
    }
}

/* The source of function(in[i]). */
template <typename Type, typename Function, typename In> auto source_of(Function function, In in)
{
    return reader_of<source_function, source_loaded, Type>(function, in);
}

/* -------------------------------------------------------------- expressions */

/* Packs of a loader's values, for map. */
template <typename Out, typename Load> struct map_loaded {
    using type = Out;
    Load load;

    bool aligned() const
    {
        return true;
    }
    template <int Length> __device__ pack<type, Length> get(int64_t p, int64_t n) const
    {
        pack<type, Length> x;
#pragma unroll
        for (int j = 0; j < Length; j++)
            x.at[j] = p * Length + j < n ? (type)load(p * Length + j) : type();
        return x;
    }
};

/* function(in[i]), in packs if Length elements of In form one. */
template <typename Out, typename In, typename Function> struct map_function {
    using type = Out;
    const In *in;
    Function function;

    bool aligned() const
    {
        return (uintptr_t)in % 16 == 0;
    }
    template <int Length> __device__ pack<type, Length> get(int64_t p, int64_t n) const
    {
        pack<type, Length> y;
        if constexpr (Length > 1 && Length * sizeof(In) <= 16 && is_power(Length * sizeof(In))) {
            const pack<In, Length> x = read_pack<Length>(in, p, n);
#pragma unroll
            for (int j = 0; j < Length; j++)
                y.at[j] = p * Length + j < n ? (type)function(x.at[j]) : type();
        } else {
#pragma unroll
            for (int j = 0; j < Length; j++)
                y.at[j] = p * Length + j < n ? (type)function(in[p * Length + j]) : type();
        }
        return y;
    }
};

template <typename Out, typename Function, typename In> auto expression_of(Function function, In in)
{
    return reader_of<map_function, map_loaded, Out>(function, in);
}

template <typename Type, typename Function, typename In> auto mapped_loader_of(Function function, In in)
{
    if constexpr (std::is_pointer<In>::value) {
        using From = typename std::remove_const<typename std::remove_pointer<In>::type>::type;
        return load_mapped<load_array<From>, Function>{{in}, function};
    } else {
        return load_mapped<In, Function>{in, function};
    }
}

/* ------------------------------------------------------------------- reduce */

/* In the scratch: the ticket, then one cell per block. */
enum { reduce_header = 64 };

/* Launches reduce. The ticket must be 0 before a launch, so it is reset in the caller's scratch
 * first; the launch leaves it 0. */
template <typename Op, typename Source>
spmv_status reduce_from(spmv_context *ctx, Source source, int64_t n, typename Op::type *out, void *scratch)
{
    ctx->device->ticket = (unsigned *)scratch;
    spmv_status st = SPMV_OK;
    if (cut_into_chunks(n, block_threads * packs_each * Source::length).count > 1)
        st = launch(ctx, "lookback_reset", 1, block_threads, lookback_reset, (uint64_t *)NULL, (int64_t)0,
                    (int *)scratch);
    return st != SPMV_OK ? st
                         : reduce_6_launch<Op>(ctx, "reduce_packs", source, n, out, (char *)scratch + reduce_header);
}

#endif
