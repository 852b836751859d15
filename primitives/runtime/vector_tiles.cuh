/* Tiles of 16-byte vectors: what the single-pass rungs load, hold in shared memory and store.
 *
 * A block's tile comes and goes in vectors, neighbouring threads at neighbouring addresses. Between that it lies in
 * shared memory, where each thread has its own row of neighbouring elements.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef VECTOR_TILES_CUH
#define VECTOR_TILES_CUH

#include "launch.cuh"
#include "tiles.cuh"

/* One block's share: Threads threads with Vectors times 16 bytes each. An odd number of vectors keeps shared memory
 * free of bank conflicts both ways, thread by thread and row by row, without a cell of padding. Blocks: how many shall
 * fit a multiprocessor; the compiler keeps registers below that. OLDER: only for architectures without a copy engine;
 * code for the others is left empty. */
template <int Threads, int Vectors, int Blocks, int PauseNs = 0, bool Older = false> struct lookback_shape {
    static_assert(Vectors % 2 == 1 && Threads % WARP == 0, "odd, and whole warps");
    static constexpr int THREADS_ = Threads, WARPS_ = Threads / WARP, VECTORS = Vectors, BLOCKS = Blocks,
                         PAUSE_NS = PauseNs;
    static constexpr bool LEFT_EMPTY = Older && HAVE_COPY_ENGINE;
    using older = lookback_shape<Threads, Vectors, Blocks, PauseNs, true>;
};

template <typename T, typename Shape> struct vector_tile {
    /* Elements of odd sizes go one by one; their number a thread is odd. */
    static constexpr bool PACKED = 16 % sizeof(T) == 0;
    static constexpr int EACH = PACKED ? 16 / (int)sizeof(T) : 1; /* elements of a vector */
    static constexpr int VECTORS = PACKED ? Shape::VECTORS : (Shape::VECTORS * 16 / (int)sizeof(T)) | 1;
    static constexpr int ITEMS = VECTORS * EACH;
    static constexpr int SIZE = Shape::THREADS_ * ITEMS;

    struct alignas(PACKED ? 16 : alignof(T)) vector {
        T at[EACH];
    };
};

/* The array behind a loader (storer) if it is one, so that vectors can be read (written). */
template <typename T, typename Load> __device__ const T *array_of(const Load &)
{
    return NULL;
}
template <typename T> __device__ const T *array_of(const load_array<T> &load)
{
    return load.from;
}
template <typename T> __device__ T *array_of(const store_array<T> &store)
{
    return store.to;
}
/* A loader that maps elements of T from an array keeps the array's vectors: tile_load reads the array, tile_stage maps.
 */
template <typename T, typename Load> __device__ const Load &unmapped(const Load &load)
{
    return load;
}
template <typename T, typename Function>
__device__ const load_array<T> &unmapped(const load_mapped<load_array<T>, Function> &load)
{
    return load.load;
}
template <typename T, typename Load> struct is_mapped {
    static constexpr bool yes = false;
};
template <typename T, typename Function> struct is_mapped<T, load_mapped<load_array<T>, Function>> {
    static constexpr bool yes = true;
};

template <typename T> __device__ bool in_vectors(const T *array)
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
template <typename Shape, typename T, typename Load>
__device__ void tile_load(const Load &load, int64_t begin, int valid, T pad,
                          typename vector_tile<T, Shape>::vector *striped)
{
    using tile = vector_tile<T, Shape>;
    const T *const array = array_of<T>(unmapped<T>(load));
    if (valid == tile::SIZE && in_vectors(array)) {
        const auto *const from = (const typename tile::vector *)(array + begin) + threadIdx.x;
#pragma unroll
        for (int k = 0; k < tile::VECTORS; k++)
            striped[k] = load_streaming(from + k * Shape::THREADS_);
    } else {
#pragma unroll
        for (int k = 0; k < tile::VECTORS; k++)
#pragma unroll
            for (int j = 0; j < tile::EACH; j++) {
                const int i = (k * Shape::THREADS_ + (int)threadIdx.x) * tile::EACH + j;
                striped[k].at[j] = i < valid ? unmapped<T>(load)(begin + i) : pad;
            }
    }
}

/* Lays the tile out in shared memory. The thread's own ITEMS neighbouring elements are then the vectors tile_row: read
 * from there when they are needed, they occupy no registers while the block looks back. What a loader maps is mapped
 * there, in a loop that is not unrolled: a function told at run time is much code. */
template <typename Shape, typename T, typename Load>
__device__ void tile_stage(const Load &load, int valid, const typename vector_tile<T, Shape>::vector *striped,
                           typename vector_tile<T, Shape>::vector *stage)
{
    using tile = vector_tile<T, Shape>;
#pragma unroll
    for (int k = 0; k < tile::VECTORS; k++)
        stage[k * Shape::THREADS_ + (int)threadIdx.x] = striped[k];
    __syncthreads();
    if constexpr (is_mapped<T, Load>::yes) {
        const int first = (int)threadIdx.x * tile::VECTORS;
#pragma unroll 1
        for (int v = first; v < first + tile::VECTORS; v++)
#pragma unroll
            for (int j = 0; j < tile::EACH; j++)
                if (v * tile::EACH + j < valid)
                    stage[v].at[j] = load.function(stage[v].at[j]);
    }
}

template <typename Shape, typename T>
__device__ typename vector_tile<T, Shape>::vector *tile_row(typename vector_tile<T, Shape>::vector *stage)
{
    return stage + (int)threadIdx.x * vector_tile<T, Shape>::VECTORS;
}

/* The way back to memory, after each thread has changed its own row. */
template <typename Shape, typename T, typename Store>
__device__ void tile_store(const Store &store, int64_t begin, int valid,
                           const typename vector_tile<T, Shape>::vector *stage)
{
    using tile = vector_tile<T, Shape>;
    __syncthreads();
    T *const array = (T *)array_of<T>(store);
    if (valid == tile::SIZE && in_vectors(array)) {
        auto *const to = (typename tile::vector *)(array + begin) + threadIdx.x;
#pragma unroll
        for (int k = 0; k < tile::VECTORS; k++)
            store_streaming(to + k * Shape::THREADS_, stage[k * Shape::THREADS_ + (int)threadIdx.x]);
    } else {
#pragma unroll
        for (int k = 0; k < tile::VECTORS; k++)
#pragma unroll
            for (int j = 0; j < tile::EACH; j++) {
                const int v = k * Shape::THREADS_ + (int)threadIdx.x;
                if (v * tile::EACH + j < valid)
                    store(begin + v * tile::EACH + j, stage[v].at[j]);
            }
    }
}

#endif
