/* Rung 4, "tiles": one block for each tile of whole rows.
 *
 * Idea:       The plan packs whole rows into tiles of at most BLOCK * ITEMS nonzeros
 *             (spmv_4_tiles_plan.cuh). A block loads its tile's values and columns coalesced, forms
 *             the products in shared memory, and then sums the rows with subwarps of as many lanes
 *             as let all rows be summed at once. Rows are whole, so a tile depends on no other
 *             tile.
 * Work:       nnz products, rows * lanes partial sums.
 * Depth:      ITEMS + the longest of a tile's rows / lanes.
 * Launches:   1; with hubs 2 (spmv_4_tiles_hubs.cuh).
 * Bytes:      the matrix once, in whole lines. Columns have 16 bits where a tile's columns lie in
 *             one range (base + number) or in a few ranges (number of the range, place in it); the
 *             plan keeps these beside the matrix's own columns. With the table of values, a value
 *             is a one-byte code.
 * Changed:    since rung 3, only y leaves the multiprocessor, and there is one launch.
 * Wins when:  always, except on equal rows of two or three entries, where scalar is as fast.
 * Source:     N. Bell, M. Garland, SC09; J. L. Greathouse, M. Daga, "Efficient sparse matrix-vector
 *             multiplication on GPUs using the CSR storage format", SC14 (whole rows in shared
 *             memory).
 *
 * Long rows: a row longer than a tile is cut into fragments, each a tile of its own. A fragment
 * stores its sum and increments the counter of a node, which FAN_IN neighbouring fragments share.
 * The last of these to arrive adds their sums in order; the last node of the row adds the nodes'
 * sums. Timing decides which block adds, but not the order of the operands. No block waits, so
 * blocks may run in any order. The block that adds resets the counter for the next launch.
 *
 * Early start (programmatic dependent launch, sm_90): a launch may begin while the kernel before it
 * in the stream still runs. It loads tiles, columns and values, then waits for the end of that
 * kernel before it reads x, y and the sums of fragments. So the kernel just before may write x and
 * y, but not columns and values; spmv_plan_create's contract states this.
 *
 * Bits: lane l of a subwarp takes elements l, l + lanes, ... of its row, and lanes combine in a
 * fixed tree; a fragment is summed likewise. All depends on the cut into tiles and the shape: on
 * the rows' lengths and the type, not on how columns and values are stored.
 *
 * Last-level cache: successive products read the same matrix from start to end. With
 * least-recently-used replacement, a matrix somewhat larger than the cache never hits. So for
 * matrices of that size, a fixed share of the matrix is loaded with a policy that retains it, as
 * large as the cache has room for beside the vectors, and the rest with a policy that evicts it
 * first. Larger matrices do not use this. For measurements see docs/benchmarking.md.
 *
 * Table of values: the table is read through the first-level cache, not from shared memory. Most
 * tables have a few values, which fit in one line; a copy in shared memory would cost each block 2
 * KiB and a barrier. Codes are loaded first, so values are looked up while columns are loaded. The
 * numbers and the order of the sums are the same, and so are the bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_4_TILES_CUH
#define SPMV_4_TILES_CUH

#include "device/block.cuh"
#include "device/loads.cuh"
#include "product/cuda/spmv_cuda.cuh"

namespace tiles
{

/* The threads that work on a tile: a whole block. COUNT: of teams in a block. */
struct whole_block {
    enum { COUNT = 1 };
    static __device__ int number()
    {
        return 0;
    }
    static __device__ int thread()
    {
        return (int)threadIdx.x;
    }
    static __device__ void sync()
    {
        __syncthreads();
    }
};

/* One of COUNT teams of THREADS threads. */
template <int COUNT_, int THREADS> struct one_of_teams {
    enum { COUNT = COUNT_ };
    static __device__ int number()
    {
        return (int)threadIdx.x / THREADS;
    }
    static __device__ int thread()
    {
        return (int)threadIdx.x % THREADS;
    }
    static __device__ void sync()
    {
#ifdef __CUDA_ARCH__
        asm volatile("barrier.sync %0, %1;" ::"r"(1 + number()), "n"(THREADS) : "memory");
#else
        static_assert(COUNT == 1, "a barrier of the whole block");
        __syncthreads();
#endif
    }
};

/* The shape of a tile: BLOCK threads with ITEMS elements each, neighbouring threads neighbouring
 * ones, from a multiple of LINE elements on.
 * - CHUNK_TILES: for the packing (spmv_4_tiles_plan.cuh).
 * - SHARED: shared memory in percent of an SM's combined cache and shared memory. It is just large
 *   enough to keep the SM busy, because the remaining cache holds x.
 * - MAY_USE_RANGES: 16-bit columns also in several ranges. Small matrices stay in the caches.
 * - MAY_RETAIN: the last-level cache may retain a share of the matrix.
 * - MAY_CODE: the values may be in a table; for the same shapes as MAY_RETAIN. */
template <int BLOCK_, int ITEMS_, int CHUNK_TILES_, int SHARED_, bool MAY_USE_RANGES_, bool MAY_RETAIN_> struct shape {
    using team = whole_block;
    enum {
        BLOCK = BLOCK_,
        ITEMS = ITEMS_,
        CHUNK_TILES = CHUNK_TILES_,
        SHARED = SHARED_,
        MAY_USE_RANGES = MAY_USE_RANGES_,
        MAY_RETAIN = MAY_RETAIN_,
        MAY_CODE = MAY_RETAIN_,
        LINE = 32,
        CAPACITY = BLOCK * ITEMS,
        ROWS = CAPACITY / 2,   /* at most, of a tile with nonzeros */
        EMPTY_ROWS = 4 * ROWS, /* at most, of a tile without nonzeros */
    };
    static_assert(CAPACITY < 65536, "offsets of 16 bits");
};

/* Large tiles fill better and cost less for each element; small matrices have too few elements for
 * them. Each load of a thread has one element, so that gathers of neighbouring columns coalesce. */
template <typename T> struct shapes {
    enum { ITEMS = sizeof(T) > 8 ? 4 : 8 };
    using little = shape<256, ITEMS / 2, 16, 30, false, false>;
    using usual = shape<256, ITEMS, 32, 30, true, sizeof(T) <= 8 && std::is_arithmetic<T>::value>;
};

/* Children of a node in a tree of sums. */
enum { FAN_IN = warp_lanes };

/* A 16-bit column in ranges: the upper bits select one of RANGES column ranges, the lower
 * RANGE_BITS are the place in it. One lane holds the start of each range. */
enum { RANGES = warp_lanes, RANGE_BITS = 11, RANGE = 1 << RANGE_BITS };
static_assert(RANGES << RANGE_BITS == 65536, "16 bits");

/* Values of tile.base without a base: no 16-bit columns, and 16-bit columns in ranges. */
enum { NO_BASE = -1, IN_RANGES = -2 };

/* A tile; it ends where the next one begins. */
struct alignas(16) tile {
    int64_t begin, row;
    int32_t base;     /* of 16-bit columns; or NO_BASE, IN_RANGES */
    int32_t long_row; /* the long row of which the tile is a fragment; -1: whole rows */
    int32_t shift;    /* 1 << shift lanes sum a row */
    int32_t unused;
};

struct long_row {
    int64_t row, first_tile;
    int32_t fragments, first_node;
};

/* A plan's matrix. T: of sums; Stored: of its values. Vectors have elements of type T, or of a 16-bit type
 * Element. */
template <typename T, typename Stored> struct matrix {
    using stored = Stored;
    using sum = T;
    const tile *table; /* tiles + 1 */
    int64_t tiles, nnz;
    /* The low 32 bits of offset i are row_ptr[i * words]. They suffice for distances within a
     * tile. */
    const uint32_t *row_ptr;
    int words; /* 32-bit words of an offset */
    int32_t cols;
    const int32_t *col;
    const uint16_t *narrow; /* NULL: no tile has 16-bit columns */
    const int32_t *ranges;  /* starts of the column ranges, RANGES a tile */
    const Stored *val;      /* NULL: a pattern */
    const long_row *long_rows;
    T *fragment_sums, *node_sums;       /* FAN_IN a node; 1 a node */
    unsigned *node_counts, *row_counts; /* 0 between launches */
    /* the share that the last-level cache retains between products */
    float retained;
    bool anywhere; /* bits do not depend on where a fragment begins in its line */
};

/* A matrix with a table of values, which has the type of the sums. It is a type of its own so that
 * the other kernels keep their registers. */
template <typename T> struct coded_matrix : matrix<T, T> {
    const T *value_table;
    const uint8_t *code; /* the index in the table for each nonzero */
};

/* none (a pattern); one for each nonzero; a code for each nonzero. */
enum class values { NONE, PLAIN, CODED };

/* A storer: what happens to the sum of a row; here y = alpha sum + beta y. The kernel calls
 * - stopped: whether the product is not needed;
 * - look_ahead: loads early what the storer needs of a row besides the sum;
 * - operator(): stores a row;
 * - end_tile: after the rows of a tile;
 * - end_fragment: after a fragment of a long row, by the block's first warp, with the row's first
 *   tile and whether this fragment stored the row.
 * spmv_4_tiles_epilogue.cuh has another storer. */
template <typename T, typename Element = T> struct store_scaled {
    enum { HEAVY = false }; /* needs many registers */
    struct ahead {
        Element y;
    };
    scaling<T> s;
    Element *y;
    __device__ ahead look_ahead(int64_t row) const
    {
        return {s.beta_zero ? Element() : load_whole(y + row)};
    }
    __device__ void operator()(int64_t row, T sum, ahead before) const
    {
        y[row] = Element(s.value(sum, &before.y));
    }
    __device__ bool stopped() const
    {
        return false;
    }
    template <typename Shape> __device__ void end_tile(int64_t, int = 0) const
    {
    }
    __device__ void end_fragment(int64_t, int64_t, bool) const
    {
    }
};

/* Loads what another block wrote in this launch. */
template <typename T> __device__ T load_shared_sum(const T *from)
{
    if constexpr (std::is_arithmetic<T>::value)
        return *(const volatile T *)from;
    else
        return {load_shared_sum(&from->re), load_shared_sum(&from->im)};
}

/* Adds to a counter and returns its old value. Earlier writes of this thread are visible to threads
 * that add later. */
__device__ inline unsigned count_up(unsigned *count, unsigned by)
{
#ifdef __CUDA_ARCH__
    unsigned before;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(before) : "l"(count), "r"(by) : "memory");
    return before;
#else
    return atomicAdd(count, by);
#endif
}

/* Loads a thread's elements among skip ... count - 1 of a tile, skip < LINE. from: of the
 * thread's first element. Other positions become 0. Columns may have 16 bits, codes have 8. */
template <typename Shape, typename From, typename Load, typename To>
__device__ void load_items(const From *from, int skip, int count, const Load &load, To (&item)[Shape::ITEMS])
{
    from = settled(from);
#pragma unroll
    for (int i = 0; i < Shape::ITEMS; i++) {
        const int at = i * Shape::BLOCK + Shape::team::thread();
        item[i] = To();
        if (at < count && (i > 0 || at >= skip))
            item[i] = load(from + i * Shape::BLOCK);
    }
}

/* Widens 16-bit columns of a tile that may have several ranges. A tile with one base is treated as
 * consecutive ranges, and 32-bit columns are kept, so nothing waits at a branch. begins: of the
 * lane's range. */
template <typename Shape> __device__ void widen(int32_t begins, bool is_narrow, int32_t (&column)[Shape::ITEMS])
{
#pragma unroll
    for (int i = 0; i < Shape::ITEMS; i++) {
        const int32_t its_begin = __shfl_sync(0xffffffffu, begins, column[i] >> RANGE_BITS);
        column[i] = is_narrow ? its_begin + (column[i] & (RANGE - 1)) : column[i];
    }
}

/* The sum of a subwarp of LANES lanes; each adds products[k], products[k + LANES], ... up to
 * end. */
template <int LANES, typename T> __device__ T subwarp_sum(const T *products, int k, int end)
{
    T sum = T();
#pragma unroll 4
    for (; k < end; k += LANES)
        sum += products[k];
    return warp_sum(sum, LANES);
}

/* The same with 1 << shift lanes. Called by a warp. In each case the number of lanes is a constant,
 * which saves instructions. */
template <typename T> __device__ T strided_sum(const T *products, int k, int end, int shift)
{
    switch (shift) {
    case 0:
        return subwarp_sum<1>(products, k, end);
    case 1:
        return subwarp_sum<2>(products, k, end);
    case 2:
        return subwarp_sum<4>(products, k, end);
    case 3:
        return subwarp_sum<8>(products, k, end);
    case 4:
        return subwarp_sum<16>(products, k, end);
    default:
        return subwarp_sum<warp_lanes>(products, k, end);
    }
}

/* Rows longer than SERIAL entries for each lane of a subwarp of less than QUARTER lanes are summed
 * by QUARTER lanes each. */
enum { SERIAL = 16, QUARTER = 8 };

/* Sums the rows of a tile from the products, with subwarps of 1 << shift lanes; called by every
 * warp. held: look_ahead of the subwarp's first row, in its first lane. Rows that are very long for
 * their subwarp are left to late(is, r, begin, end), which a warp calls each time its subwarps have
 * summed a row. is: whether r is such a row, in the first lane of its subwarp. */
template <typename Shape, typename T, typename Store, typename Late>
__device__ void sum_rows_but_late(const T *products, const uint16_t *ends, int rows, int shift, int64_t row,
                                  Store &store, typename Store::ahead held, const Late &late)
{
    const int thread = Shape::team::thread();
    const int lanes = 1 << shift, in_subwarp = thread & (lanes - 1), subwarps = Shape::BLOCK >> shift;
    for (int first = 0; first < rows; first += subwarps) {
        const int r = first + (thread >> shift);
        const int begin = r < rows ? ends[r] : 0, end = r < rows ? ends[r + 1] : 0;
        const bool left = lanes < QUARTER && end - begin > SERIAL << shift;
        typename Store::ahead next{};
        if (in_subwarp == 0 && r + subwarps < rows)
            next = store.look_ahead(row + r + subwarps);
        const T sum = strided_sum(products, left ? end : begin + in_subwarp, end, shift);
        if (r < rows && in_subwarp == 0 && !left)
            store(row + r, sum, held);
        held = next;
        late(left && in_subwarp == 0, r, begin, end);
    }
}

/* The same, all rows; very long ones four at a time. */
template <typename Shape, typename T, typename Store>
__device__ void sum_rows(const T *products, const uint16_t *ends, int rows, int shift, int64_t row, Store &store,
                         typename Store::ahead held)
{
    const int in_warp = Shape::team::thread() % warp_lanes;
    sum_rows_but_late<Shape>(products, ends, rows, shift, row, store, held, [&](bool is, int r, int begin, int end) {
        unsigned waiting = __ballot_sync(0xffffffffu, is);
        while (waiting != 0) { /* the same for all lanes */
            int whose = -1;
#pragma unroll
            for (int quarter = 0; quarter < warp_lanes / QUARTER; quarter++) {
                if (in_warp / QUARTER == quarter)
                    whose = __ffs((int)waiting) - 1;
                waiting &= waiting - 1u;
            }
            const int lane = whose >= 0 ? whose : 0;
            const int from = __shfl_sync(0xffffffffu, begin, lane), to = __shfl_sync(0xffffffffu, end, lane);
            const int its_row = __shfl_sync(0xffffffffu, r, lane);
            T long_sum = T();
            if (whose >= 0) {
#pragma unroll 4
                for (int k = from + in_warp % QUARTER; k < to; k += QUARTER)
                    long_sum += products[k];
            }
            long_sum = warp_sum(long_sum, QUARTER);
            if (whose >= 0 && in_warp % QUARTER == 0)
                store(row + its_row, long_sum, store.look_ahead(row + its_row));
        }
    });
}

/* Called by one warp: increments the counter. Returns true for the last of `of` warps, which then
 * sees what lane 0 of the others wrote before, and resets the counter. */
__device__ inline bool arrives_last(unsigned *count, int of)
{
    const bool counts = threadIdx.x % warp_lanes == 0;
    const unsigned before = counts ? count_up(count, 1) : 0;
    if (__shfl_sync(0xffffffffu, before, 0) != (unsigned)(of - 1))
        return false;
    __syncwarp();
    if (counts)
        *count = 0;
    return true;
}

/* Called by one warp with the sum of a fragment in lane 0. Adds the sums of the node and of the
 * row if they are complete. Returns whether this stored the row. */
template <typename T, typename Stored, typename Store>
__device__ bool hand_on(const matrix<T, Stored> &m, int which, int64_t t, T sum, Store &store)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const long_row whole = m.long_rows[which];
    const int fragment = (int)(t - whole.first_tile), node = fragment / FAN_IN,
              nodes = (whole.fragments - 1) / FAN_IN + 1;
    const int members = node < nodes - 1 ? (int)FAN_IN : whole.fragments - node * FAN_IN;
    T *const sums = m.fragment_sums + ((int64_t)whole.first_node + node) * FAN_IN;
    if (lane == 0)
        sums[fragment % FAN_IN] = sum;
    if (!arrives_last(m.node_counts + whole.first_node + node, members))
        return false;
    sum = warp_sum(lane < members ? load_shared_sum(sums + lane) : T(), warp_lanes);
    if (nodes > 1) {
        T *const of_nodes = m.node_sums + whole.first_node;
        if (lane == 0)
            of_nodes[node] = sum;
        if (!arrives_last(m.row_counts + which, nodes))
            return false;
        sum = T();
#pragma unroll 8
        for (int n = lane; n < nodes; n += warp_lanes)
            sum += load_shared_sum(of_nodes + n);
        sum = warp_sum(sum, warp_lanes);
    }
    if (lane == 0)
        store(whole.row, sum, store.look_ahead(whole.row));
    return true;
}

/* Sums a fragment: each thread in the order of the elements, then a tree; the first warp calls
 * hand_on. Returns whether that stored the row. */
template <typename Shape, typename T, typename Stored, typename Store>
__device__ bool sum_fragment(const matrix<T, Stored> &m, const T *products, int skip, int count, int which, int64_t t,
                             Store &store)
{
    constexpr int BLOCK_WARPS = Shape::BLOCK / warp_lanes;
    __shared__ T sums_of_teams[Shape::team::COUNT][BLOCK_WARPS];
    T *const warp_sums = sums_of_teams[Shape::team::number()];
    const int thread = Shape::team::thread();
    T sum = T();
#pragma unroll
    for (int i = 0; i < Shape::ITEMS; i++) {
        const int at = (m.anywhere ? skip : 0) + i * Shape::BLOCK + thread;
        if (at >= skip && at < count)
            sum += products[at];
    }
    sum = warp_sum(sum, warp_lanes);
    if (thread % warp_lanes == 0)
        warp_sums[thread / warp_lanes] = sum;
    Shape::team::sync();
    if (thread >= warp_lanes)
        return false;
    sum = warp_sum(thread < BLOCK_WARPS ? warp_sums[thread] : T(), BLOCK_WARPS);
    return hand_on(m, which, t, sum, store);
}

/* The number of blocks that an SM holds at once with the plain storer. It limits the registers of
 * heavy storers. 0: no limit. */
template <typename Shape, typename T, typename Store> constexpr int resident()
{
    return !Store::HEAVY || sizeof(T) > 8 ? 0 : sizeof(T) == 8 && Shape::ITEMS > 4 ? 5 : 6;
}

template <typename Shape, values HELD, bool BY_RANGES, typename Load, typename Matrix, typename Element, typename Store>
__global__ void __launch_bounds__(Shape::BLOCK, resident<Shape, typename Matrix::sum, Store>())
    kernel(Matrix m, const Element *x, Store store)
{
    using T = typename Matrix::sum;
    constexpr int BLOCK = Shape::BLOCK, ITEMS = Shape::ITEMS, TURNS = Shape::ROWS / BLOCK + 1;
    /* Gathers wait for the columns only if these are loaded first. f32 from the last-level cache: if
     * values come first, 32 registers suffice, and all warps are resident. */
    constexpr bool VALUES_FIRST = sizeof(T) == 4 && std::is_same<Load, loads<caching::RETAINED>>::value;
    __shared__ T products[Shape::CAPACITY];
    __shared__ uint16_t ends[TURNS * BLOCK];
    const int thread = (int)threadIdx.x;
    const int64_t t = blockIdx.x;
    const tile mine = m.table[t];
    const Load load(m.retained);
    const int64_t end = m.table[t + 1].begin, row_end = m.table[t + 1].row;

    let_next_begin();
    if (end == mine.begin) { /* empty rows */
        await_kernel_before();
        if (store.stopped())
            return;
        for (int64_t row = mine.row + thread; row < row_end; row += BLOCK)
            store(row, T(), store.look_ahead(row));
        store.template end_tile<Shape>(t);
        return;
    }

    const int64_t from = mine.begin & ~(int64_t)(Shape::LINE - 1);
    const int skip = (int)(mine.begin - from), count = (int)(end - from), rows = (int)(row_end - mine.row);
    const bool whole_rows = mine.long_row < 0, is_narrow = m.narrow != nullptr && mine.base != NO_BASE;
    typename Matrix::stored value[ITEMS];
    int32_t code[ITEMS], column[ITEMS];
    if constexpr (HELD == values::PLAIN && VALUES_FIRST)
        load_items<Shape>(m.val + from + thread, skip, count, load, value);
    else if constexpr (HELD == values::CODED)
        load_items<Shape>(m.code + from + thread, skip, count, load, code);
    uint32_t offset[TURNS] = {};
    if (whole_rows) {
        const uint32_t *const offsets = settled(m.row_ptr + (mine.row + thread) * m.words);
#pragma unroll
        for (int i = 0; i < TURNS; i++)
            if (i * BLOCK + thread <= rows)
                offset[i] = load(offsets + i * BLOCK * m.words);
    }
    int32_t begins = 0;
    if (BY_RANGES)
        begins = is_narrow && mine.base == IN_RANGES ? m.ranges[t * RANGES + thread % warp_lanes]
                                                     : mine.base + thread % warp_lanes * RANGE;
    if (is_narrow)
        load_items<Shape>(m.narrow + from + thread, skip, count, load, column);
    else
        load_items<Shape>(m.col + from + thread, skip, count, load, column);
    if constexpr (HELD == values::PLAIN && !VALUES_FIRST)
        load_items<Shape>(m.val + from + thread, skip, count, load, value);
#pragma unroll
    for (int i = 0; i < TURNS; i++)
        ends[i * BLOCK + thread] = (uint16_t)(offset[i] - (uint32_t)from);
    if constexpr (HELD == values::CODED) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            value[i] = load_gathered(m.value_table + code[i]);
    }

    await_kernel_before();
    const bool stopped = store.stopped();
    typename Store::ahead held{};
    if (whole_rows && (thread & ((1 << mine.shift) - 1)) == 0 && thread >> mine.shift < rows)
        held = store.look_ahead(mine.row + (thread >> mine.shift));
    const Element *const x_from = is_narrow && !BY_RANGES ? x + mine.base : x;
    if (BY_RANGES)
        widen<Shape>(begins, is_narrow, column);
    Element element[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        element[i] = load_gathered(x_from + column[i]);
    if (stopped) /* checked after the gathers are issued */
        return;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        T product = T(element[i]);
        if (HELD != values::NONE)
            product *= T(value[i]);
        products[i * BLOCK + thread] = product;
    }
    __syncthreads();

    if (whole_rows) {
        sum_rows<Shape>(products, ends, rows, mine.shift, mine.row, store, held);
        store.template end_tile<Shape>(t);
    } else {
        const bool stored = sum_fragment<Shape>(m, products, skip, count, mine.long_row, t, store);
        if (thread < warp_lanes)
            store.end_fragment(t, m.long_rows[mine.long_row].first_tile, stored);
    }
}

template <typename Shape, values HELD, bool BY_RANGES, typename Load, typename Matrix, typename Element, typename Store>
spmv_status run_as(spmv_context *ctx, const Matrix &m, const Element *x, Store store)
{
    return launch_cached<kernel<Shape, HELD, BY_RANGES, Load, Matrix, Element, Store>>(
        ctx, "spmv tiles", (int)m.tiles, Shape::BLOCK, Shape::SHARED, m, x, store);
}

template <typename Shape, values HELD, bool BY_RANGES, typename Matrix, typename Element, typename Store>
spmv_status run_with_values(spmv_context *ctx, const Matrix &m, const Element *x, Store store)
{
    if constexpr (Shape::MAY_RETAIN)
        if (m.retained > 0)
            return run_as<Shape, HELD, BY_RANGES, loads<caching::RETAINED>>(ctx, m, x, store);
    return run_as<Shape, HELD, BY_RANGES, loads<caching::ONCE>>(ctx, m, x, store);
}

template <typename Shape, bool BY_RANGES, typename T, typename Stored, typename Element, typename Store>
spmv_status run_on_columns(spmv_context *ctx, const matrix<T, Stored> &m, const Element *x, Store store)
{
    if (m.val == nullptr)
        return run_as<Shape, values::NONE, BY_RANGES, loads<caching::ONCE>>(ctx, m, x, store);
    return run_with_values<Shape, values::PLAIN, BY_RANGES>(ctx, m, x, store);
}

template <typename Shape, typename T, typename Stored, typename Element, typename Store>
spmv_status run(spmv_context *ctx, const matrix<T, Stored> &m, const Element *x, Store store)
{
    if constexpr (Shape::MAY_USE_RANGES)
        if (m.ranges != nullptr)
            return run_on_columns<Shape, true>(ctx, m, x, store);
    return run_on_columns<Shape, false>(ctx, m, x, store);
}

template <typename Shape, typename T, typename Store>
spmv_status run(spmv_context *ctx, const coded_matrix<T> &m, const T *x, Store store)
{
    static_assert(Shape::MAY_CODE, "a kernel for each is too many");
    return m.ranges != nullptr ? run_with_values<Shape, values::CODED, true>(ctx, m, x, store)
                               : run_with_values<Shape, values::CODED, false>(ctx, m, x, store);
}

} // namespace tiles

#endif
