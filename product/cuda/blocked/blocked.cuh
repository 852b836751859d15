/* Method "blocked": columns in blocks, so that each gather finds x in shared memory.
 *
 * Idea:       Where columns are scattered, an element of x costs a sector of 32 bytes from the
 *             second-level cache, and that limits the product, not the matrix. The plan keeps a
 *             copy of the matrix sorted by (block of columns, row, column). A product has two
 *             launches. The first, "multiply", loads a block's part of x into shared memory and
 *             streams values and 16-bit columns; it writes the products to memory in the order of
 *             the values. The second, "add", takes a tile of whole rows. The tile's products lie in
 *             intervals, one in each block of columns. It puts them in shared memory in the order of the
 *             rows and sums them as tiles does.
 * Work:       nnz products, nnz additions.
 * Depth:      as tiles, twice through memory.
 * Launches:   2.
 * Bytes:      a nonzero: value + 2 + product in the first launch, product + 2 in the second (f32
 *             16, f64 28), all in whole lines except at the ends of intervals, and no gather outside the
 *             multiprocessor.
 * Changed:    since tiles, the order of the matrix, and products travel through memory.
 * Wins when:  columns are scattered over an x too large for the first-level cache, and tiles moves
 *             more than 32 bytes a nonzero. It loses everywhere else.
 * Source:     R. Nishtala, R. W. Vuduc, J. W. Demmel, K. A. Yelick, "When cache blocking of sparse
 *             matrix vector multiply works and why", AAECC 18 (2007); S. Beamer, K. Asanovic, D.
 *             Patterson, "Reducing Pagerank communication via propagation blocking", IPDPS 2017
 *             (products through memory, so that accesses on both sides are local).
 *
 * Multiply: the sorted nonzeros are cut into equal shares, one for each thread block, as many as
 * fill the device a whole number of times. A share is cut into sections where blocks of columns
 * begin. A section with so few nonzeros that loading x's part costs more than its gathers gathers
 * from memory; neighbouring sections of this kind are merged. The shares depend on the device, the
 * products do not.
 *
 * Add: two arrays in the order (tile, block of columns, row, column) locate the products of a tile.
 * A 16-bit number is the place of a product among those of its tile; its upper bit marks the begin
 * of an interval. The interval of a product is the number of set bits up to it: the plan keeps the count
 * before each 32 of them, and a warp's ballot counts the rest. All of this is read before the wait
 * for the first launch. So nothing is searched, and the memory of a tile grows with its intervals, not
 * with the number of blocks.
 *
 * Early start: both launches, as tiles. The first writes products only after its wait, when the
 * product before has read its own.
 *
 * Bits: those of tiles with this method's tiles. They depend on the rows' lengths, the number of
 * columns, the type, and the shape, which depends on the device's shared memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_BLOCKED_CUH
#define PRODUCT_BLOCKED_CUH

#include "product/cuda/tiles/spmv_4_tiles.cuh"

/* Tests set this to get many blocks and tiles in small matrices. */
#ifndef SPMV_BLOCKED_SMALL
#define SPMV_BLOCKED_SMALL 0
#endif

namespace blocked
{

/* The shape of the first launch: BYTES of x in shared memory, RESIDENT blocks of BLOCK threads an
 * SM. */
template <int BLOCK_, int RESIDENT_, int BYTES_> struct x_shape {
    enum { BLOCK = BLOCK_, RESIDENT = RESIDENT_, BYTES = BYTES_ };
};

/* The shape of the second launch: tiles of BLOCK * ITEMS products, RESIDENT tiles an SM. Rung 4's
 * packing and sums use the other members. */
template <int BLOCK_, int ITEMS_, int RESIDENT_, int CHUNK_TILES_> struct tile_shape {
    using team = tiles::whole_block;
    enum {
        BLOCK = BLOCK_,
        ITEMS = ITEMS_,
        RESIDENT = RESIDENT_,
        CHUNK_TILES = CHUNK_TILES_,
        LINE = 32,
        CAPACITY = BLOCK * ITEMS,
        ROWS = CAPACITY / 2,
        EMPTY_ROWS = 4 * ROWS,
        ENDS = ROWS + 8, /* the start of a tile's rows and their ends */
    };
    static_assert(CAPACITY <= 1 << 15, "places of 15 bits");
};

/* usual: two blocks per multiprocessor, so that one loads x while the other multiplies, and three
 * tiles, since each waits for memory three times in sequence. large: for matrices in which that
 * many blocks of columns would leave short intervals; more than twice the columns per block, and twice
 * the products per tile. 16-byte elements: half as many products. */
template <typename T> struct shapes {
#if SPMV_BLOCKED_SMALL
    struct usual {
        using x = x_shape<64, 2, 256>;
        using tile = tile_shape<64, 4, 3, 8>;
    };
    struct large {
        using x = x_shape<128, 1, 1024>;
        using tile = tile_shape<64, 8, 2, 8>;
    };
#else
    enum { HALF = sizeof(T) > 8 ? 2 : 1 };
    struct usual {
        using x = x_shape<512, 2, 96 * 1024>;
        using tile = tile_shape<512, 12 / HALF, 3, 32>;
    };
    struct large {
        using x = x_shape<1024, 1, 224 * 1024>;
        using tile = tile_shape<512, 24 / HALF, 2, 32>;
    };
#endif
};

/* Columns of a block. */
template <typename X, typename T> __host__ __device__ constexpr int columns_of()
{
    static_assert(X::BYTES / sizeof(T) <= 65536, "columns of 16 bits");
    return (int)(X::BYTES / sizeof(T));
}

/* Shared memory of a tile: products and the ends of rows. */
template <typename Tile, typename T> __host__ __device__ constexpr int tile_bytes()
{
    return (int)(Tile::CAPACITY * sizeof(T) + Tile::ENDS * sizeof(uint16_t));
}

/* N neighbouring elements, loaded and stored at once. */
template <typename T, int N> struct alignas(sizeof(T) * N) pack {
    T at[N];
};

template <typename T> struct width_of {
    enum { PACK = sizeof(T) < 16 ? 16 / sizeof(T) : 1 };
};

/* Sorted nonzeros begin ... end - 1. last < 0: all in one block of columns, whose part of x is
 * loaded into shared memory. Otherwise in the blocks up to last, gathered from memory. */
struct section {
    int64_t begin, end;
    int32_t block, last;
};

/* The sorted matrix. */
template <typename T, typename Stored> struct sorted_matrix {
    const section *sections;
    const int32_t *first;        /* the first section of each share; shares + 1 */
    const int64_t *block_begins; /* blocks + 1 */
    int64_t cols;
    const uint16_t *column; /* within its block; like val padded to whole packs */
    const Stored *val;      /* NULL: a pattern */
    T *products;
};

/* The arrays that locate the products of a tile. */
template <typename T, typename Index> struct intervals {
    const uint16_t *place; /* 15 bits; the 16th marks the start of an interval */
    const Index *before;   /* the number of intervals that begin before each 32 places */
    /* of an interval: the distance from a place in tile order to the place in the sorted matrix */
    const Index *shift;
    const T *products;
};

enum { HEAD = 1 << 15 };

/* Copies elements 0 ... count - 1 into shared memory. Called after the wait for the kernel
 * before. */
template <int BLOCK, typename T> __device__ void stage(const T *from, int count, T *to)
{
    constexpr int PACK = width_of<T>::PACK, AT_ONCE = 4;
    using wide = pack<T, PACK>;
    const int thread = (int)threadIdx.x;
    const int whole = (uintptr_t)from % 16 == 0 ? count / PACK : 0;
    for (int first = thread; first < whole; first += AT_ONCE * BLOCK) {
        wide held[AT_ONCE] = {};
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (first + i * BLOCK < whole)
                held[i] = ((const wide *)from)[first + i * BLOCK];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (first + i * BLOCK < whole)
                ((wide *)to)[first + i * BLOCK] = held[i];
    }
    for (int first = whole * PACK + thread; first < count; first += AT_ONCE * BLOCK) {
        T held[AT_ONCE] = {};
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (first + i * BLOCK < count)
                held[i] = load_whole(from + first + i * BLOCK);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (first + i * BLOCK < count)
                to[first + i * BLOCK] = held[i];
    }
}

/* The part of the matrix that a thread loads at a time: packs of neighbouring elements. */
template <int BLOCK, typename T, typename Stored> struct batch {
    enum { PACK = width_of<T>::PACK, PACKS = 4, STEP = BLOCK * PACK * PACKS };
    pack<Stored, PACK> value[PACKS];
    pack<uint16_t, PACK> column[PACKS];

    static __device__ int64_t place(int64_t from, int i)
    {
        return from + ((int64_t)i * BLOCK + threadIdx.x) * PACK;
    }

    __device__ void load(const sorted_matrix<T, Stored> &m, int64_t from, int64_t end)
    {
#pragma unroll
        for (int i = 0; i < PACKS; i++) {
            const int64_t k = place(from, i);
            value[i] = {};
            column[i] = {};
            if (k >= end)
                continue;
            if (m.val != nullptr)
                value[i] = load_once((const pack<Stored, PACK> *)(m.val + k));
            column[i] = load_once((const pack<uint16_t, PACK> *)(m.column + k));
        }
    }

    __device__ void multiply(const sorted_matrix<T, Stored> &m, const T *x, int64_t from, int64_t begin,
                             int64_t end) const
    {
#pragma unroll
        for (int i = 0; i < PACKS; i++) {
            const int64_t k = place(from, i);
            if (k >= begin && k + PACK <= end) {
                pack<T, PACK> product;
#pragma unroll
                for (int e = 0; e < PACK; e++) {
                    product.at[e] = x[column[i].at[e]];
                    if (m.val != nullptr)
                        product.at[e] *= T(value[i].at[e]);
                }
                *(pack<T, PACK> *)(m.products + k) = product;
            } else { /* a pack on the section's border, which may have elements of other sections */
#pragma unroll
                for (int e = 0; e < PACK; e++) {
                    if (k + e < begin || k + e >= end)
                        continue;
                    T product = x[column[i].at[e]];
                    if (m.val != nullptr)
                        product *= T(value[i].at[e]);
                    m.products[k + e] = product;
                }
            }
        }
    }
};

/* Multiplies a section of blocks with few nonzeros. */
template <typename T, typename Stored>
__device__ void multiply_few(const sorted_matrix<T, Stored> &m, section g, int columns, const T *x, int threads)
{
    for (int64_t k = g.begin + threadIdx.x; k < g.end; k += threads) {
        int32_t low = g.block, high = g.last; /* the last block that begins at or before k */
        while (low < high) {
            const int32_t middle = low + (high - low + 1) / 2;
            if (m.block_begins[middle] <= k)
                low = middle;
            else
                high = middle - 1;
        }
        T product = load_gathered(x + (int64_t)low * columns + m.column[k]);
        if (m.val != nullptr)
            product *= T(load_whole(m.val + k));
        m.products[k] = product;
    }
}

template <typename X, typename T, typename Stored>
__global__ void __launch_bounds__(X::BLOCK, X::RESIDENT) multiply(sorted_matrix<T, Stored> m, const T *x)
{
    using held = batch<X::BLOCK, T, Stored>;
    constexpr int COLUMNS = columns_of<X, T>();
    SPMV_DYNAMIC_SHARED(dynamic_shared);
    T *const block_x = (T *)dynamic_shared;
    const int first = m.first[blockIdx.x], behind = m.first[blockIdx.x + 1];
    let_next_begin();
    for (int s = first; s < behind; s++) {
        const section g = m.sections[s];
        int64_t from = g.begin & ~(int64_t)(held::PACK - 1);
        held now;
        if (g.last < 0)
            now.load(m, from, g.end);
        if (s == first)
            await_kernel_before();
        if (g.last >= 0) {
            multiply_few(m, g, COLUMNS, x, (int)X::BLOCK);
            continue;
        }
        const int64_t left = m.cols - (int64_t)g.block * COLUMNS;
        if (s > first)
            __syncthreads(); /* before x's part of the last section is overwritten */
        stage<X::BLOCK>(x + (int64_t)g.block * COLUMNS, left < COLUMNS ? (int)left : COLUMNS, block_x);
        __syncthreads();
        while (true) {
            now.multiply(m, block_x, from, g.begin, g.end);
            from += held::STEP;
            if (from >= g.end)
                break;
            now.load(m, from, g.end);
        }
    }
}

/* Loads a thread's places of a tile; 0 after its end. */
template <typename Tile> __device__ void load_words(const uint16_t *from, int count, int (&word)[Tile::ITEMS])
{
#pragma unroll
    for (int i = 0; i < Tile::ITEMS; i++)
        word[i] = i * Tile::BLOCK + (int)threadIdx.x < count ? load_once(from + i * Tile::BLOCK) : 0;
}

/* The places of a thread, two 16-bit places a register. */
template <int ITEMS> struct places {
    uint32_t two[ITEMS / 2];

    __device__ void set(int i, int place)
    {
        two[i / 2] = i % 2 == 0 ? (uint32_t)place : two[i / 2] | (uint32_t)place << 16;
    }
    __device__ int get(int i) const
    {
        return (int)(two[i / 2] >> (i % 2 * 16) & (HEAD - 1));
    }
};

template <typename Tile, typename T, typename Index, typename Store>
__global__ void __launch_bounds__(Tile::BLOCK, Tile::RESIDENT)
    add(tiles::matrix<T, T> m, intervals<T, Index> r, Store store)
{
    constexpr int BLOCK = Tile::BLOCK, ITEMS = Tile::ITEMS;
    constexpr int AT_ONCE = sizeof(T) > 4 ? 4 : 8; /* limited by registers */
    SPMV_DYNAMIC_SHARED(dynamic_shared);
    T *const products = (T *)dynamic_shared;
    uint16_t *const ends = (uint16_t *)(products + Tile::CAPACITY);
    const int thread = (int)threadIdx.x;
    const int64_t t = blockIdx.x;
    const tiles::tile mine = m.table[t];
    const int64_t end = m.table[t + 1].begin, row_end = m.table[t + 1].row;
    let_next_begin();
    if (end == mine.begin) { /* empty rows */
        await_kernel_before();
        for (int64_t row = mine.row + thread; row < row_end; row += BLOCK)
            store(row, T(), store.look_ahead(row));
        return;
    }

    const int64_t from = mine.begin & ~(int64_t)(Tile::LINE - 1);
    const int skip = (int)(mine.begin - from), count = (int)(end - from), rows = (int)(row_end - mine.row);
    const bool whole_rows = mine.long_row < 0;
    const unsigned up_to_here = 0xffffffffu >> (warp_lanes - 1 - thread % warp_lanes);
    /* whether element i * BLOCK + thread is the tile's; the first elements of the line may be
     * another tile's */
    const auto is_mine = [=](int i) { return i * BLOCK + thread < count && (i > 0 || thread >= skip); };
    int word[ITEMS];
    load_words<Tile>(settled(r.place + from + thread), count, word);
    places<ITEMS> place;
    Index source[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const unsigned heads = __ballot_sync(0xffffffffu, word[i] >= HEAD);
        source[i] = 0;
        if (is_mine(i)) {
            const Index interval =
                r.before[from / warp_lanes + (i * BLOCK + thread) / warp_lanes] + (Index)__popc(heads & up_to_here) - 1;
            source[i] = (Index)(from + i * BLOCK + thread) + r.shift[interval];
        }
        place.set(i, word[i]);
    }
    if (whole_rows) {
        const uint32_t *const offsets = m.row_ptr + mine.row * m.words;
#pragma unroll 4
        for (int row = thread; row <= rows; row += BLOCK)
            ends[row] = (uint16_t)(load_once(offsets + (int64_t)row * m.words) - (uint32_t)from);
    }

    await_kernel_before();
#pragma unroll
    for (int first = 0; first < ITEMS; first += AT_ONCE) {
        T product[AT_ONCE] = {};
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (first + i < ITEMS && is_mine(first + i))
                product[i] = load_gathered(r.products + source[first + i]);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (first + i < ITEMS && is_mine(first + i))
                products[place.get(first + i)] = product[i];
    }
    __syncthreads();

    typename Store::ahead held{};
    if (whole_rows && (thread & ((1 << mine.shift) - 1)) == 0 && thread >> mine.shift < rows)
        held = store.look_ahead(mine.row + (thread >> mine.shift));
    if (whole_rows)
        tiles::sum_rows<Tile>(products, ends, rows, mine.shift, mine.row, store, held);
    else
        tiles::sum_fragment<Tile>(m, products, skip, count, mine.long_row, t, store);
}

} // namespace blocked

#endif
