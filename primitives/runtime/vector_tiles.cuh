/* Tiles of 16-byte vectors: what the single-pass rungs load, hold in shared memory and store.
 *
 * A block's tile comes and goes in vectors, neighbouring threads at neighbouring addresses. Between that it lies in
 * shared memory, where each thread has its own row of neighbouring elements.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_VECTOR_TILES_CUH
#define SPMV_VECTOR_TILES_CUH

#include "launch.cuh"
#include "tiles.cuh"

/* One block's share: Threads threads with Vectors times 16 bytes each. An odd number of vectors keeps shared memory
 * free of bank conflicts both ways, thread by thread and row by row, without a cell of padding. Blocks: how many shall
 * fit a multiprocessor; the compiler keeps registers below that. OLDER: only for architectures without a copy engine;
 * code for the others is left empty. */
template <int Threads, int Vectors, int Blocks, int PauseNs = 0, bool Older = false> struct lookback_shape {
    static_assert(Vectors % 2 == 1 && Threads % warp_lanes == 0, "odd, and whole warps");
    static constexpr int threads = Threads, warps = Threads / warp_lanes, vectors = Vectors, blocks = Blocks,
                         pause_ns = PauseNs;
    static constexpr bool left_empty = Older && SPMV_HAVE_COPY_ENGINE;
    using older = lookback_shape<Threads, Vectors, Blocks, PauseNs, true>;
};

template <typename Type, typename Shape> struct vector_tile {
    /* Elements of odd sizes go one by one; their number a thread is odd. */
    static constexpr bool packed = 16 % sizeof(Type) == 0;
    static constexpr int each = packed ? 16 / (int)sizeof(Type) : 1; /* elements of a vector */
    static constexpr int vectors = packed ? Shape::vectors : (Shape::vectors * 16 / (int)sizeof(Type)) | 1;
    static constexpr int items = vectors * each;
    static constexpr int size = Shape::threads * items;

    struct alignas(packed ? 16 : alignof(Type)) vector {
        Type at[each];
    };
};

/* The array behind a loader (storer) if it is one, so that vectors can be read (written). */
template <typename Type, typename Load> __device__ const Type *array_of(const Load &)
{
    return NULL;
}
template <typename Type> __device__ const Type *array_of(const load_array<Type> &load)
{
    return load.from;
}
template <typename Type> __device__ Type *array_of(const store_array<Type> &store)
{
    return store.to;
}
/* A loader that maps elements of Type from an array keeps the array's vectors: tile_load reads the array, tile_stage maps.
 */
template <typename Type, typename Load> __device__ const Load &unmapped(const Load &load)
{
    return load;
}
template <typename Type, typename Function>
__device__ const load_array<Type> &unmapped(const load_mapped<load_array<Type>, Function> &load)
{
    return load.load;
}
template <typename Type, typename Load> struct is_mapped {
    static constexpr bool yes = false;
};
template <typename Type, typename Function> struct is_mapped<Type, load_mapped<load_array<Type>, Function>> {
    static constexpr bool yes = true;
};

template <typename Type> __device__ bool in_vectors(const Type *array)
{
    return array != NULL && (uintptr_t)array % 16 == 0;
}

/* Streaming accesses: the data is touched once. The load may be of memory that is written later. */
template <typename Vector> __device__ Vector load_streaming(const Vector *from)
{
#ifdef __CUDA_ARCH__
    if constexpr (sizeof(Vector) == 16) {
        const uint4 raw = __ldcs((const uint4 *)from);
        Vector v;
        memcpy(&v, &raw, sizeof v);
        return v;
    } else
#endif
        return *from;
}

template <typename Vector> __device__ void store_streaming(Vector *to, Vector v)
{
#ifdef __CUDA_ARCH__
    if constexpr (sizeof(Vector) == 16) {
        uint4 raw;
        memcpy(&raw, &v, sizeof v);
        __stcs((uint4 *)to, raw);
    } else
#endif
        *to = v;
}

/* Vector k of the thread: neighbouring threads at neighbouring addresses. All loads are under way before the first is
 * waited for. begin is a multiple of the tile's size. */
template <typename Shape, typename Type, typename Load>
__device__ void tile_load(const Load &load, int64_t begin, int valid, Type pad,
                          typename vector_tile<Type, Shape>::vector *striped)
{
    using tile = vector_tile<Type, Shape>;
    const Type *const array = array_of<Type>(unmapped<Type>(load));
    if (valid == tile::size && in_vectors(array)) {
        const auto *const from = (const typename tile::vector *)(array + begin) + threadIdx.x;
#pragma unroll
        for (int k = 0; k < tile::vectors; k++)
            striped[k] = load_streaming(from + k * Shape::threads);
    } else {
#pragma unroll
        for (int k = 0; k < tile::vectors; k++)
#pragma unroll
            for (int j = 0; j < tile::each; j++) {
                const int i = (k * Shape::threads + (int)threadIdx.x) * tile::each + j;
                striped[k].at[j] = i < valid ? unmapped<Type>(load)(begin + i) : pad;
            }
    }
}

/* Lays the tile out in shared memory. The thread's own items neighbouring elements are then the vectors tile_row: read
 * from there when they are needed, they occupy no registers while the block looks back. What a loader maps is mapped
 * there, in a loop that is not unrolled: a function told at run time is much code. */
template <typename Shape, typename Type, typename Load>
__device__ void tile_stage(const Load &load, int valid, const typename vector_tile<Type, Shape>::vector *striped,
                           typename vector_tile<Type, Shape>::vector *stage)
{
    using tile = vector_tile<Type, Shape>;
#pragma unroll
    for (int k = 0; k < tile::vectors; k++)
        stage[k * Shape::threads + (int)threadIdx.x] = striped[k];
    __syncthreads();
    if constexpr (is_mapped<Type, Load>::yes) {
        const int first = (int)threadIdx.x * tile::vectors;
#pragma unroll 1
        for (int v = first; v < first + tile::vectors; v++)
#pragma unroll
            for (int j = 0; j < tile::each; j++)
                if (v * tile::each + j < valid)
                    stage[v].at[j] = load.function(stage[v].at[j]);
    }
}

template <typename Shape, typename Type>
__device__ typename vector_tile<Type, Shape>::vector *tile_row(typename vector_tile<Type, Shape>::vector *stage)
{
    return stage + (int)threadIdx.x * vector_tile<Type, Shape>::vectors;
}

/* The way back to memory, after each thread has changed its own row. */
template <typename Shape, typename Type, typename Store>
__device__ void tile_store(const Store &store, int64_t begin, int valid,
                           const typename vector_tile<Type, Shape>::vector *stage)
{
    using tile = vector_tile<Type, Shape>;
    __syncthreads();
    Type *const array = (Type *)array_of<Type>(store);
    if (valid == tile::size && in_vectors(array)) {
        auto *const to = (typename tile::vector *)(array + begin) + threadIdx.x;
#pragma unroll
        for (int k = 0; k < tile::vectors; k++)
            store_streaming(to + k * Shape::threads, stage[k * Shape::threads + (int)threadIdx.x]);
    } else {
#pragma unroll
        for (int k = 0; k < tile::vectors; k++)
#pragma unroll
            for (int j = 0; j < tile::each; j++) {
                const int v = k * Shape::threads + (int)threadIdx.x;
                if (v * tile::each + j < valid)
                    store(begin + v * tile::each + j, stage[v].at[j]);
            }
    }
}

#endif
