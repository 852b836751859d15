/* Decoupled look-back: how the tiles of one launch pass on what stands to their left, with repeatable bits.
 *
 * Each tile has a state: EMPTY; AGGREGATE, the fold of the tile alone; or PREFIX, the fold of everything up to the
 * tile's end. A tile publishes its aggregate as soon as it knows it, looks back over its predecessors to the nearest
 * prefix, folds the aggregates behind that one onto it, and publishes its own prefix. So a tile waits for the loads of
 * its predecessors, not for their look-back.
 *
 * Bits: the prefix before tile k is defined as P = ((carry op A_0) op A_1) ... op A_{k-1}. Whichever prefix a look-back
 * finds was folded in that very order, and what follows is folded on top from left to right; so where it stopped,
 * which depends on the clock, does not show.
 *
 * Progress: a tile's number is drawn from a counter when its block starts, so all smaller numbers belong to blocks that
 * run or have ended. A tile waits for smaller numbers only, the smallest one unfinished for nobody; its block therefore
 * ends, and by induction all do, in whatever order the device starts and delays blocks.
 *
 * Memory order: a state is as many 64-bit words as the element has 32-bit pieces, each a piece beside the status. A
 * word is read and written in one access, and a reader takes an element only when all its words have one status. So no
 * word tells of data elsewhere, and relaxed accesses suffice: there is nothing for an acquire to fetch. (A tile writes
 * its AGGREGATE words, then its PREFIX words, one value each: equal statuses mean pieces of one value.)
 *
 * Sizes: a launch has at most lookback_tiles states, so that scratch is a constant; longer arrays take several launches
 * and hand the prefix on in memory.
 * D. Merrill, M. Garland, "Single-pass parallel prefix scan with decoupled look-back", NVR-2016-002, 2016.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOOKBACK_CUH
#define LOOKBACK_CUH

#include "launch.cuh"
#include "tiles.cuh"

/* Bytes of states: 2^28 elements of 4 or of 8 bytes are one launch. Tests build with fewer, to have several launches
 * at small n. */
#ifndef SPMV_LOOKBACK_BYTES
#define SPMV_LOOKBACK_BYTES (1 << 20)
#endif
enum { LOOKBACK_BYTES = SPMV_LOOKBACK_BYTES, LOOKBACK_HEADER = 256 };

/* The one place where tests step in, for operators of their own (tests/lookback_delays.cuh): otherwise there is nothing
 * but `usual`. */
#ifndef SPMV_SEAM
#define SPMV_SEAM(Op, usual, delayed) (usual)
#endif

enum lookback_status { LOOKBACK_EMPTY = 0, LOOKBACK_AGGREGATE = 1, LOOKBACK_PREFIX = 2 };

__device__ inline uint64_t load_relaxed(const uint64_t *word)
{
#ifdef __CUDA_ARCH__
    uint64_t value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
#else
    return *(const volatile uint64_t *)word;
#endif
}

__device__ inline void store_relaxed(uint64_t *word, uint64_t value)
{
#ifdef __CUDA_ARCH__
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
#else
    *(volatile uint64_t *)word = value;
#endif
}

/* An element as 32-bit pieces: what words carry and shuffles move. */
template <typename T> struct pieces {
    static constexpr int COUNT = (int)(sizeof(T) / sizeof(uint32_t));
    static_assert(sizeof(T) % sizeof(uint32_t) == 0, "whole pieces");
    uint32_t at[COUNT];

    static __device__ pieces of(T value)
    {
        pieces p;
        memcpy(p.at, &value, sizeof value);
        return p;
    }
    __device__ T value() const
    {
        T v;
        memcpy(&v, at, sizeof v);
        return v;
    }
    /* The lane's value, for all lanes of the warp. */
    __device__ T from_lane(int lane) const
    {
        pieces p;
#pragma unroll
        for (int w = 0; w < COUNT; w++)
            p.at[w] = __shfl_sync(0xffffffffu, at[w], lane);
        return p.value();
    }
};

/* The tiles of one launch. */
template <typename T> struct lookback_states {
    static constexpr int MOST_TILES = LOOKBACK_BYTES / (int)sizeof(uint64_t) / pieces<T>::COUNT;

    uint64_t *words;   /* words[piece * tiles + tile] */
    int *ticket;       /* the next number to draw */
    const T *carry_in; /* the prefix before tile 0; NULL: the identity */
    T *carry_out;      /* the prefix behind the last tile */
    int tiles;

    __device__ void publish(int tile, lookback_status status, T value) const
    {
        const pieces<T> p = pieces<T>::of(value);
#pragma unroll
        for (int w = 0; w < pieces<T>::COUNT; w++)
            store_relaxed(words + (int64_t)w * tiles + tile, (uint64_t)status << 32 | p.at[w]);
    }

    /* The status of a tile, and its value unless EMPTY. */
    __device__ lookback_status look(int tile, pieces<T> *value) const
    {
        uint64_t word[pieces<T>::COUNT];
#pragma unroll
        for (int w = 0; w < pieces<T>::COUNT; w++)
            word[w] = load_relaxed(words + (int64_t)w * tiles + tile);
        bool whole = true;
#pragma unroll
        for (int w = 0; w < pieces<T>::COUNT; w++) {
            value->at[w] = (uint32_t)word[w];
            whole = whole && word[w] >> 32 == word[0] >> 32;
        }
        return whole ? (lookback_status)(word[0] >> 32) : LOOKBACK_EMPTY;
    }
};

/* How many predecessors a look-back sees at once: WINDOWS for each lane. A tile that finds no prefix among them waits
 * for one, which comes (see Progress). At full speed the nearest prefix is some 60 tiles away: the tiles that the
 * device finishes in the microsecond that a state takes from one multiprocessor to another. */
enum { LOOKBACK_WINDOWS = 4, LOOKBACK_DEPTH = LOOKBACK_WINDOWS * WARP };

/* The prefix before tile > 0, the same for all lanes; called by one whole warp. */
template <typename Op>
__device__ typename Op::type warp_look_back(Op op, const lookback_states<typename Op::type> &states, int tile,
                                            int pause_ns)
{
    using T = typename Op::type;
    const int lane = (int)threadIdx.x % WARP;
    pieces<T> seen[LOOKBACK_WINDOWS]; /* of tile - LOOKBACK_DEPTH + WARP w + lane */
    int nearest = -1;                 /* prefix, counted likewise */
    for (int attempt = 0; nearest < 0; attempt++) {
        if (attempt > 0 && pause_ns > 0) {
#ifdef __CUDA_ARCH__
            __nanosleep((unsigned)pause_ns);
#endif
        }
        lookback_status status[LOOKBACK_WINDOWS];
#pragma unroll
        for (int w = 0; w < LOOKBACK_WINDOWS; w++) {
            const int other = tile - LOOKBACK_DEPTH + WARP * w + lane;
            seen[w] = pieces<T>::of(Op::identity());
            status[w] = other >= 0 ? states.look(other, &seen[w]) : LOOKBACK_EMPTY;
            if (!SPMV_SEAM(Op, true, sees(other, attempt)))
                status[w] = LOOKBACK_EMPTY;
        }
        bool complete = true; /* all states nearer than this window are there, without a prefix among them */
#pragma unroll
        for (int w = LOOKBACK_WINDOWS - 1; w >= 0; w--) {
            const unsigned prefixes = __ballot_sync(0xffffffffu, status[w] == LOOKBACK_PREFIX);
            const unsigned missing = __ballot_sync(0xffffffffu, status[w] == LOOKBACK_EMPTY);
            if (complete && prefixes > missing) /* the highest bit is a prefix's, or there are neither */
                nearest = WARP * w + WARP - 1 - __clz((int)prefixes);
            complete = complete && prefixes == 0 && missing == 0;
        }
    }
    T sum = Op::identity();
#pragma unroll
    for (int w = 0; w < LOOKBACK_WINDOWS; w++) {
        if (WARP * (w + 1) <= nearest)
            continue;
#pragma unroll 8
        for (int l = 0; l < WARP; l++) {
            const T next = seen[w].from_lane(l);
            if (WARP * w + l == nearest)
                sum = next;
            else if (WARP * w + l > nearest)
                sum = op(sum, next);
        }
    }
    return sum;
}

/* For all threads of the block: what stands to the left of the block's tile. aggregate: the fold of the tile; fresh: it
 * owes nothing to what stands to the left (a segment starts in it), so that it is the prefix already. cell: one element
 * of shared memory. */
template <typename Op>
__device__ typename Op::type block_look_back(Op op, const lookback_states<typename Op::type> &states, int tile,
                                             typename Op::type aggregate, bool fresh, typename Op::type *cell,
                                             int pause_ns)
{
    using T = typename Op::type;
    if (threadIdx.x < WARP) {
        const bool first = threadIdx.x == 0;
        if (first && (tile > 0 || fresh)) {
            SPMV_SEAM(Op, (void)0, before_publishing(tile));
            states.publish(tile, fresh ? LOOKBACK_PREFIX : LOOKBACK_AGGREGATE, aggregate);
        }
        T before = Op::identity();
        if (tile > 0)
            before = warp_look_back(op, states, tile, pause_ns);
        else if (states.carry_in != NULL)
            before = *states.carry_in;
        if (first) {
            const T through = fresh ? aggregate : op(before, aggregate);
            if (!fresh && (tile == 0 || SPMV_SEAM(Op, true, publishes_prefix(tile)))) {
                SPMV_SEAM(Op, (void)0, before_publishing(tile));
                states.publish(tile, LOOKBACK_PREFIX, through);
            }
            if (tile == states.tiles - 1)
                *states.carry_out = through;
            *cell = before;
        }
    }
    __syncthreads();
    return *cell;
}

/* The number of the block's tile. cell: shared memory. */
template <typename Op> __device__ int block_draw_ticket(const lookback_states<typename Op::type> &states, int *cell)
{
    if (threadIdx.x == 0) {
        const int drawn = atomicAdd(states.ticket, 1);
        *cell = SPMV_SEAM(Op, drawn, tile_of(drawn, states.tiles));
    }
    __syncthreads();
    return *cell;
}

/* All states EMPTY, the counter at 0. */
[[maybe_unused]] static __global__ void __launch_bounds__(THREADS)
    lookback_reset(uint64_t *words, int64_t count, int *ticket)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *ticket = 0;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += (int64_t)gridDim.x * THREADS)
        words[i] = 0;
}

/* Scratch for tiles tiles of elements of element_bytes: a header with the counter and two carries, and the states. */
inline int64_t lookback_scratch(int64_t element_bytes, int64_t tiles)
{
    const int64_t words = tiles * (element_bytes / (int64_t)sizeof(uint32_t)) * (int64_t)sizeof(uint64_t);
    return LOOKBACK_HEADER + (words < LOOKBACK_BYTES ? words : (int64_t)LOOKBACK_BYTES);
}

/* Calls body(first tile, states) once for every launch that tiles tiles take, its states reset before it. A single
 * tile needs none. */
template <typename T, typename Body>
spmv_status lookback_launches(spmv_context *ctx, int64_t tiles, void *scratch, const Body &body)
{
    static_assert(64 + 2 * sizeof(T) <= LOOKBACK_HEADER, "the header has room for the carries");
    T *const carry = (T *)((char *)scratch + 64);
    lookback_states<T> states = {(uint64_t *)((char *)scratch + LOOKBACK_HEADER), (int *)scratch, NULL, carry,
                                 (int)tiles};
    spmv_status st = SPMV_OK;
    int launches = 0;
    for (int64_t first = 0; first < tiles && st == SPMV_OK; first += states.tiles, launches++) {
        states.tiles = tiles - first < states.MOST_TILES ? (int)(tiles - first) : (int)states.MOST_TILES;
        states.carry_in = launches > 0 ? carry + (launches - 1) % 2 : NULL;
        states.carry_out = carry + launches % 2;
        const int64_t words = (int64_t)states.tiles * pieces<T>::COUNT;
        if (tiles > 1)
            st = launch(ctx, "lookback_reset", grid_for(words, 4 * THREADS), THREADS, lookback_reset, states.words,
                        words, states.ticket);
        if (st == SPMV_OK)
            st = body(first, states);
    }
    return st;
}

/* --------------------------------------------------- tiles of 16-byte vectors */

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
