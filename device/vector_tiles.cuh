/* Tiles of 16-byte vectors: loaded, kept in shared memory and stored by the single-pass rungs.
 *
 * A block loads and stores its tile in vectors, neighbouring threads at neighbouring addresses. In
 * between, the tile is in shared memory, where each thread has its own row of neighbouring
 * elements.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_VECTOR_TILES_CUH
#define SPMV_VECTOR_TILES_CUH

#include "device/launch.cuh"
#include "device/tiles.cuh"

/* The shape of a block: Threads threads with Vectors times 16 bytes each. An odd number of vectors
 * avoids bank conflicts in shared memory, both by thread and by row, without padding.
 * Blocks: how many are to fit on a multiprocessor; the compiler limits registers accordingly.
 * Older: only for architectures without a copy engine; the code for the others is empty. */
template <int Threads, int Vectors, int Blocks, int PauseNs = 0, bool Older = false> struct lookback_shape {
    static_assert(Vectors % 2 == 1 && Threads % warp_lanes == 0, "odd, and whole warps");
    static constexpr int threads = Threads, warps = Threads / warp_lanes, vectors = Vectors, blocks = Blocks,
                         pause_ns = PauseNs;
    static constexpr bool left_empty = Older && SPMV_HAVE_COPY_ENGINE;
    using older = lookback_shape<Threads, Vectors, Blocks, PauseNs, true>;
};

template <typename Type, typename Shape> struct vector_tile {
    /* Elements whose size does not divide 16 are moved one by one; a thread has an odd number of
     * them. */
    static constexpr bool packed = 16 % sizeof(Type) == 0;
    static constexpr int each = packed ? 16 / (int)sizeof(Type) : 1; /* elements of a vector */
    static constexpr int vectors = packed ? Shape::vectors : (Shape::vectors * 16 / (int)sizeof(Type)) | 1;
    static constexpr int items = vectors * each;
    static constexpr int size = Shape::threads * items;

    struct alignas(packed ? 16 : alignof(Type)) vector {
        Type at[each];
    };
};

/* The array of a loader (storer), if it is one, so that vectors can be read (written); else
 * NULL. */
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
/* A loader that maps elements of Type from an array still reads vectors: tile_load reads the array,
 * tile_stage maps. */
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

/* Streaming accesses for data that is used once. The load is also valid for memory that is written
 * later. */
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

/* Loads vector k of the thread: neighbouring threads at neighbouring addresses. All loads start
 * before the first is waited for. begin is a multiple of the tile's size. */
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

/* Copies the tile to shared memory. The thread's own items neighbouring elements are then the
 * vectors tile_row: read when needed, so they occupy no registers during the look-back. The
 * loader's function is applied here, in a loop that is not unrolled because a function chosen at
 * run time is much code. */
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

/* Stores the tile after each thread has changed its own row. */
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
