/* Rung 4, "tiles": a block a tile of whole rows.
 *
 * Idea: the plan packs whole rows into tiles of at most BLOCK * ITEMS nonzeros (spmv_4_tiles_plan.cuh). A block of
 * threads loads its tile's values and columns in the order in which they lie, neighbouring threads neighbouring ones,
 * forms the products in shared memory, and then sums the rows, a group of lanes a row, as many lanes as give each row
 * its own at once. Rows are whole, so a tile waits for nobody and writes its part of y alone. Work: nnz products, rows
 * * lanes partial sums. Depth: ITEMS + the longest of a tile's rows / lanes. Launches: 1. Bytes: the matrix once, in
 * whole lines; columns in 16 bits where a tile's columns lie in one stretch, base + number, or in a few: the number of
 * the stretch, a place in it. The plan keeps an array of them beside the matrix's own; by option also a table of the
 * values, where there are few, and a byte a nonzero, its place in the table. Changed since rung 3: nothing but y leaves
 * the multiprocessor, and one launch does all. Wins: everywhere but on rows of two or three entries all alike, where a
 * thread a row is as fast.
 *
 * Rows longer than a tile are cut into pieces, tiles of their own. A piece leaves its sum in memory and counts itself;
 * the last to arrive of a group of GROUP pieces folds the group's sums in their order, and the last of a row's groups
 * the groups' sums. Which block that is depends on the clock, the order of the operands does not; nobody waits, so any
 * order of blocks will do. Who folds sets the counter back to 0 for the next launch.
 *
 * Early start (programmatic dependent launch, sm_90): a launch may begin while the kernel before it in the stream still
 * runs; it then loads columns, values and tiles, and waits for that kernel's end before it reads x, y and the sums of
 * pieces. So columns and values must not be written by the kernel just before, which spmv_plan_create's contract says
 * anyway; x and y may be.
 *
 * Bits: lane l of a row's group takes its elements l, l + lanes, ..., lanes combine in a fixed tree; a piece is summed
 * likewise. All depends on the cut into tiles and the shape: on the rows' lengths, the type, and where the columns lie,
 * not on how they are stored.
 *
 * Last-level cache: what a product reads of the matrix comes again with the next product, and not before everything
 * else has passed, so a cache that keeps what came last keeps nothing of a matrix larger than itself. Of middling
 * matrices a share is asked to stay, as large as the cache has room for beside the vectors (a policy of the load
 * instruction; always the same addresses), and the rest to go first. On an H100 17 of the suite's 34 matrices gain 2 to
 * 28 % by it; larger ones would lose, and have it not.
 *
 * Table of values: read through the first-level cache, not from shared memory. Most matrices that have one have a few
 * values, which are one line of that cache; a copy in shared memory would cost each block the whole table (2 KiB in
 * f64, of the 20 with which five blocks fill the part of an SM's memory that is to be shared) and one barrier more.
 * Codes are asked for first, so they are there, and the values are looked up, while columns are on their way. The
 * numbers and the order of the sums are the same, and so are the bits.
 *
 * N. Bell, M. Garland, SC09; J. L. Greathouse, M. Daga, "Efficient sparse matrix-vector multiplication on GPUs using
 * the CSR storage format", SC14 (whole rows in shared memory).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_4_TILES_CUH
#define SPMV_4_TILES_CUH

#include "block.cuh"
#include "loads.cuh"
#include "spmv_cuda.cuh"

namespace tiles
{

/* Blocks of BLOCK threads with ITEMS elements each, neighbouring threads neighbouring ones, from a place that is a
 * multiple of LINE elements. SEGMENT_TILES: of the packing (spmv_4_tiles_plan.cuh). SHARED: of an SM's memory for
 * caches and shared memory, the part in percent that is to be shared memory: enough to keep the SM busy, and no more,
 * for what is left caches x. MAY_STRETCH: 16-bit columns also where they lie in a few stretches; small matrices stay in
 * the caches whatever their columns take. MAY_RETAIN: the last-level cache may be asked to retain a part. MAY_CODE: the
 * values may be in a table; of the same shapes. */
template <int BLOCK_, int ITEMS_, int SEGMENT_TILES_, int SHARED_, bool MAY_STRETCH_, bool MAY_RETAIN_> struct shape {
    enum {
        BLOCK = BLOCK_,
        ITEMS = ITEMS_,
        SEGMENT_TILES = SEGMENT_TILES_,
        SHARED = SHARED_,
        MAY_STRETCH = MAY_STRETCH_,
        MAY_RETAIN = MAY_RETAIN_,
        MAY_CODE = MAY_RETAIN_,
        LINE = 32,
        CAPACITY = BLOCK * ITEMS,
        ROWS = CAPACITY / 2,   /* at most, of a tile with nonzeros */
        EMPTY_ROWS = 4 * ROWS, /* at most, of a tile without */
    };
    static_assert(CAPACITY < 65536, "offsets of 16 bits");
};

/* Large tiles fill better and cost less for each element; small matrices have too few elements for them. (Still larger
 * ones find more of x in their SM's cache: 2 to 4 % where gathers from all over x take the time, but elsewhere they
 * cost as much. Loads of several neighbouring elements by a thread gain little: one element a thread lets the gathers
 * of neighbouring columns meet.) */
template <typename T> struct shapes {
    enum { ITEMS = sizeof(T) > 8 ? 4 : 8 };
    using little = shape<256, ITEMS / 2, 16, 30, false, false>;
    using usual = shape<256, ITEMS, 32, 30, true, sizeof(T) <= 8 && std::is_arithmetic<T>::value>;
};

enum { GROUP = warp_lanes };

/* 16 bits: one of STRETCHES stretches of STRETCH columns each, the upper bits say which. A lane a stretch. */
enum { STRETCHES = warp_lanes, STRETCH_BITS = 11, STRETCH = 1 << STRETCH_BITS };
static_assert(STRETCHES << STRETCH_BITS == 65536, "16 bits");

/* What a tile has instead of a base. */
enum { NO_BASE = -1, STRETCHED = -2 };

/* Where a tile begins; it ends where the next one begins. */
struct alignas(16) tile {
    int64_t begin, row;
    int32_t base;     /* of 16-bit columns; NO_BASE: the tile has none; STRETCHED */
    int32_t long_row; /* whose piece the tile is; -1: whole rows */
    int32_t shift;    /* a row is summed by 1 << shift lanes */
    int32_t unused;
};

struct long_row {
    int64_t row, first_tile;
    int32_t pieces, first_group;
};

/* A plan's matrix: T of vectors and sums, Stored of its values. */
template <typename T, typename Stored> struct matrix {
    using stored = Stored;
    const tile *table; /* tiles + 1 */
    int64_t tiles, nnz;
    const uint32_t *row_ptr; /* the lower 32 bits of offset i at i * words: enough for distances within a tile */
    int words;               /* 32-bit words an offset has */
    int32_t cols;
    const int32_t *col;
    const uint16_t *narrow;   /* NULL: no tile has them */
    const int32_t *stretches; /* where they begin, STRETCHES a tile */
    const Stored *val;        /* NULL: a pattern */
    const long_row *long_rows;
    T *piece_sums, *group_sums;          /* GROUP a group; 1 a group */
    unsigned *group_counts, *row_counts; /* 0 between launches */
    float retained;                      /* the share that the last-level cache is to hold from product to product */
};

/* Another, whose values are in a table, in the type of the sums, whatever that of the values was. A type of its own, so
 * that the kernels of the others are what they were. */
template <typename T> struct coded_matrix : matrix<T, T> {
    const T *value_table;
    const uint8_t *code; /* for each nonzero, its value's place in the table */
};

/* A pattern; a value for each nonzero; a code for each. */
enum class values { NONE, PLAIN, CODED };

/* What becomes of a row's sum: y = alpha sum + beta y. A storer is also told when the block has stored the rows of a
 * tile, and, its first warp, when a piece of a long row is done: whether it stored the row, and which tile is the row's
 * first; and it is asked whether there is anything to do at all. What it will want of a row besides the sum it loads
 * ahead of that. Another one: spmv_4_tiles_epilogue.cuh. */
template <typename T> struct store_scaled {
    enum { HEAVY = false }; /* with registers */
    struct ahead {
    };
    scaling<T> s;
    T *y;
    __device__ ahead look_ahead(int64_t) const
    {
        return {};
    }
    __device__ void operator()(int64_t row, T sum, ahead) const
    {
        s.store(sum, &y[row]);
    }
    __device__ bool stopped() const
    {
        return false;
    }
    template <typename Shape> __device__ void end_tile(int64_t) const
    {
    }
    __device__ void end_piece(int64_t, int64_t, bool) const
    {
    }
};

/* Of what another block wrote in this launch. */
template <typename T> __device__ T load_shared_sum(const T *from)
{
    if constexpr (std::is_arithmetic<T>::value)
        return *(const volatile T *)from;
    else
        return {load_shared_sum(&from->re), load_shared_sum(&from->im)};
}

/* Adds 1 and gives what was there. What the thread wrote before is seen by those who count after it. */
__device__ inline unsigned count_one(unsigned *count)
{
#ifdef __CUDA_ARCH__
    unsigned before;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(count) : "memory");
    return before;
#else
    return atomicAdd(count, 1u);
#endif
}

/* A thread's part of the elements skip ... count - 1 of a tile, skip < LINE; from is where its first one lies. Places
 * without an element are 0. Columns may be in 16 bits, codes in 8. */
template <typename Shape, typename From, typename Load, typename To>
__device__ void load_part(const From *from, int skip, int count, const Load &load, To (&part)[Shape::ITEMS])
{
    from = settled(from);
#pragma unroll
    for (int i = 0; i < Shape::ITEMS; i++) {
        const int at = i * Shape::BLOCK + (int)threadIdx.x;
        part[i] = To();
        if (at < count && (i > 0 || at >= skip))
            part[i] = load(from + i * Shape::BLOCK);
    }
}

/* Columns from 16 bits, where a tile's may lie in several stretches. One base is as many stretches side by side, and
 * columns that are there already stay, so that nothing waits at a branch. begins: of the lane's stretch. */
template <typename Shape> __device__ void widen(int32_t begins, bool is_narrow, int32_t (&column)[Shape::ITEMS])
{
#pragma unroll
    for (int i = 0; i < Shape::ITEMS; i++) {
        const int32_t its_begin = __shfl_sync(0xffffffffu, begins, column[i] >> STRETCH_BITS);
        column[i] = is_narrow ? its_begin + (column[i] & (STRETCH - 1)) : column[i];
    }
}

/* The rows of a tile from the products: every warp of the block, groups of 1 << shift lanes. A row that is very long
 * for its group is left to 8 lanes, four such rows at a time. held: what the storer loaded ahead for the first lane of
 * a group's first row. */
template <typename Shape, typename T, typename Store>
__device__ void sum_rows(const T *products, const uint16_t *ends, int rows, int shift, int64_t row, Store &store,
                         typename Store::ahead held)
{
    enum { SERIAL = 16, QUARTER = 8 };
    const int thread = (int)threadIdx.x;
    const int lanes = 1 << shift, in_group = thread & (lanes - 1), groups = Shape::BLOCK >> shift;
    const int in_warp = thread % warp_lanes;
    for (int first = 0; first < rows; first += groups) {
        const int r = first + (thread >> shift);
        const int begin = r < rows ? ends[r] : 0, end = r < rows ? ends[r + 1] : 0;
        const bool left = lanes < QUARTER && end - begin > SERIAL << shift;
        typename Store::ahead next{};
        if (in_group == 0 && r + groups < rows)
            next = store.look_ahead(row + r + groups);
        T sum = T();
        if (!left) {
#pragma unroll 4
            for (int k = begin + in_group; k < end; k += lanes)
                sum += products[k];
        }
        sum = warp_sum(sum, lanes);
        if (r < rows && in_group == 0 && !left)
            store(row + r, sum, held);
        held = next;
        unsigned waiting = __ballot_sync(0xffffffffu, left && in_group == 0);
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
    }
}

/* Counts one more of `of`; true for the last, who then sees what lane 0 of the others wrote before it counted. One
 * warp. */
__device__ inline bool arrives_last(unsigned *count, int of)
{
    const bool counts = threadIdx.x % warp_lanes == 0;
    const unsigned before = counts ? count_one(count) : 0;
    if (__shfl_sync(0xffffffffu, before, 0) != (unsigned)(of - 1))
        return false;
    __syncwarp();
    if (counts)
        *count = 0;
    return true;
}

/* A piece of a long row has the sum, in lane 0 of the warp that calls: folds what is complete. Whether the row is, and
 * was stored. */
template <typename T, typename Stored, typename Store>
__device__ bool hand_on(const matrix<T, Stored> &m, int which, int64_t t, T sum, Store &store)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const long_row whole = m.long_rows[which];
    const int piece = (int)(t - whole.first_tile), group = piece / GROUP, groups = (whole.pieces - 1) / GROUP + 1;
    const int members = group < groups - 1 ? (int)GROUP : whole.pieces - group * GROUP;
    T *const sums = m.piece_sums + ((int64_t)whole.first_group + group) * GROUP;
    if (lane == 0)
        sums[piece % GROUP] = sum;
    if (!arrives_last(m.group_counts + whole.first_group + group, members))
        return false;
    sum = warp_sum(lane < members ? load_shared_sum(sums + lane) : T(), warp_lanes);
    if (groups > 1) {
        T *const of_groups = m.group_sums + whole.first_group;
        if (lane == 0)
            of_groups[group] = sum;
        if (!arrives_last(m.row_counts + which, groups))
            return false;
        sum = T();
#pragma unroll 8
        for (int g = lane; g < groups; g += warp_lanes)
            sum += load_shared_sum(of_groups + g);
        sum = warp_sum(sum, warp_lanes);
    }
    if (lane == 0)
        store(whole.row, sum, store.look_ahead(whole.row));
    return true;
}

/* A piece's sum: the threads' own in the order of the elements, then a tree; its first warp hands it on. Whether that
 * stored the row. */
template <typename Shape, typename T, typename Stored, typename Store>
__device__ bool sum_piece(const matrix<T, Stored> &m, const T *products, int skip, int count, int which, int64_t t,
                          Store &store)
{
    constexpr int BLOCK_WARPS = Shape::BLOCK / warp_lanes;
    __shared__ T warp_sums[BLOCK_WARPS];
    const int thread = (int)threadIdx.x;
    T sum = T();
#pragma unroll
    for (int i = 0; i < Shape::ITEMS; i++) {
        const int at = i * Shape::BLOCK + thread;
        if (at >= skip && at < count)
            sum += products[at];
    }
    sum = warp_sum(sum, warp_lanes);
    if (thread % warp_lanes == 0)
        warp_sums[thread / warp_lanes] = sum;
    __syncthreads();
    if (thread >= warp_lanes)
        return false;
    sum = warp_sum(thread < BLOCK_WARPS ? warp_sums[thread] : T(), BLOCK_WARPS);
    return hand_on(m, which, t, sum, store);
}

/* Blocks that an SM is to hold at once, as many as it holds with the plain storer: another one is not to have more
 * registers for that. 0: as the compiler likes. */
template <typename Shape, typename T, typename Store> constexpr int resident()
{
    return !Store::HEAVY || sizeof(T) > 8 ? 0 : sizeof(T) == 8 && Shape::ITEMS > 4 ? 5 : 6;
}

template <typename Shape, values HELD, bool BY_STRETCHES, typename Load, typename Matrix, typename T, typename Store>
__global__ void __launch_bounds__(Shape::BLOCK, resident<Shape, T, Store>()) kernel(Matrix m, const T *x, Store store)
{
    constexpr int BLOCK = Shape::BLOCK, ITEMS = Shape::ITEMS, TURNS = Shape::ROWS / BLOCK + 1;
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
    if constexpr (HELD == values::PLAIN)
        load_part<Shape>(m.val + from + thread, skip, count, load, value);
    else if constexpr (HELD == values::CODED)
        load_part<Shape>(m.code + from + thread, skip, count, load, code);
    uint32_t offset[TURNS] = {};
    if (whole_rows) {
        const uint32_t *const offsets = settled(m.row_ptr + (mine.row + thread) * m.words);
#pragma unroll
        for (int i = 0; i < TURNS; i++)
            if (i * BLOCK + thread <= rows)
                offset[i] = load(offsets + i * BLOCK * m.words);
    }
    int32_t begins = 0;
    if (BY_STRETCHES)
        begins = is_narrow && mine.base == STRETCHED ? m.stretches[t * STRETCHES + thread % warp_lanes]
                                                     : mine.base + thread % warp_lanes * STRETCH;
    if (is_narrow)
        load_part<Shape>(m.narrow + from + thread, skip, count, load, column);
    else
        load_part<Shape>(m.col + from + thread, skip, count, load, column);
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
    const T *const x_from = is_narrow && !BY_STRETCHES ? x + mine.base : x;
    if (BY_STRETCHES)
        widen<Shape>(begins, is_narrow, column);
    T product[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        product[i] = load_gathered(x_from + column[i]);
    if (stopped) /* looked at when the gathers are on their way */
        return;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        if (HELD != values::NONE)
            product[i] *= T(value[i]);
        products[i * BLOCK + thread] = product[i];
    }
    __syncthreads();

    if (whole_rows) {
        sum_rows<Shape>(products, ends, rows, mine.shift, mine.row, store, held);
        store.template end_tile<Shape>(t);
    } else {
        const bool stored = sum_piece<Shape>(m, products, skip, count, mine.long_row, t, store);
        if (thread < warp_lanes)
            store.end_piece(t, m.long_rows[mine.long_row].first_tile, stored);
    }
}

template <typename Shape, values HELD, bool BY_STRETCHES, typename Load, typename Matrix, typename T, typename Store>
spmv_status run_as(spmv_context *ctx, const Matrix &m, const T *x, Store store)
{
    return launch_cached<kernel<Shape, HELD, BY_STRETCHES, Load, Matrix, T, Store>>(
        ctx, "spmv tiles", (int)m.tiles, Shape::BLOCK, Shape::SHARED, m, x, store);
}

template <typename Shape, values HELD, bool BY_STRETCHES, typename Matrix, typename T, typename Store>
spmv_status run_with_values(spmv_context *ctx, const Matrix &m, const T *x, Store store)
{
    if constexpr (Shape::MAY_RETAIN)
        if (m.retained > 0)
            return run_as<Shape, HELD, BY_STRETCHES, loads<caching::RETAINED>>(ctx, m, x, store);
    return run_as<Shape, HELD, BY_STRETCHES, loads<caching::ONCE>>(ctx, m, x, store);
}

template <typename Shape, bool BY_STRETCHES, typename T, typename Stored, typename Store>
spmv_status run_on_columns(spmv_context *ctx, const matrix<T, Stored> &m, const T *x, Store store)
{
    if (m.val == nullptr)
        return run_as<Shape, values::NONE, BY_STRETCHES, loads<caching::ONCE>>(ctx, m, x, store);
    return run_with_values<Shape, values::PLAIN, BY_STRETCHES>(ctx, m, x, store);
}

template <typename Shape, typename T, typename Stored, typename Store>
spmv_status run(spmv_context *ctx, const matrix<T, Stored> &m, const T *x, Store store)
{
    if constexpr (Shape::MAY_STRETCH)
        if (m.stretches != nullptr)
            return run_on_columns<Shape, true>(ctx, m, x, store);
    return run_on_columns<Shape, false>(ctx, m, x, store);
}

template <typename Shape, typename T, typename Store>
spmv_status run(spmv_context *ctx, const coded_matrix<T> &m, const T *x, Store store)
{
    static_assert(Shape::MAY_CODE, "a kernel for each is too many");
    return m.stretches != nullptr ? run_with_values<Shape, values::CODED, true>(ctx, m, x, store)
                                  : run_with_values<Shape, values::CODED, false>(ctx, m, x, store);
}

} // namespace tiles

#endif
