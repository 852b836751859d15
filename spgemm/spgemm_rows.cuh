/* Method "rows" of the backend cuda: C = A B row by row (Gustavson), with tables in shared memory.
 *
 *     c_ij = sum over ascending k of a_ik b_kj
 *
 * Symbolic phase, all on the device:
 *   survey     counts the products of each row of C, and for parts of some rows also the columns: how
 *              many products one column has
 *   analyse    assigns classes by the expected number of columns, and finds the mean length of a row's
 *              rows of B
 *   partition  lists the rows by class
 *   count      counts the columns of each row of C; a scan makes row_ptr. If a row has too many
 *              columns for its class, a later kernel counts them in another one. Columns of rows in
 *              tables are stored as far as there is room.
 *   classify   assigns classes by these exact counts; partition lists the rows again
 *   fill       copies the stored columns, finds the others again, and writes them sorted
 * Numeric phase: spgemm_rows_numeric.cuh.
 *
 * Classes: a subwarp of 4, 8, 16 or 32 lanes has a row of C, and a hash table with SLOTS places for
 * each lane. So the tables of a warp have the same size in each class. Class LONG has the rows with
 * too many columns for a table, HUGE_ROW those with very many products. Their columns are found in
 * bitmaps (spgemm_rows_symbolic.cuh) or sorted (spgemm_rows_sorted.cuh), and their sums are formed
 * in fragments of consecutive columns of C that fit a table. A row of the class TINY is in the
 * registers of one thread. These rows are not listed. For count there is the class FEW: the
 * products of such a row are sorted.
 *
 * The lanes of a subwarp take neighbouring products, whatever the lengths of the rows of B are. Rows of
 * the other classes are shared by teams: a team of `width` lanes takes a row of B, each lane an entry
 * of it. The width is near the mean length of these rows, so few lanes are idle.
 *
 * The order of the rows in a list depends on timing. Results do not depend on it.
 *
 * Sources: F. G. Gustavson, ACM TOMS 4(3), 1978. Y. Nagasaka, A. Nukada, S. Matsuoka,
 * "High-performance and memory-saving sparse general matrix-matrix multiplication for NVIDIA Pascal
 * GPU", ICPP 2017 (classes of rows, hash tables in shared memory).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPGEMM_ROWS_CUH
#define SPGEMM_ROWS_CUH

#include "device/block.cuh"
#include "device/launch.cuh"

/* Places of a table for each lane of its subwarp, a power of 2, at least 8. Tests build with few, so
 * that small matrices have rows of all classes. */
#ifndef SPMV_SPGEMM_SLOTS
#define SPMV_SPGEMM_SLOTS 16
#endif

/* The most words of a bitmap in shared memory. Tests build with few. */
#ifndef SPMV_SPGEMM_WORDS
#define SPMV_SPGEMM_WORDS 16384
#endif

/* A row of C is a HUGE_ROW if its row of A has more entries than this, or if it has more than 64
 * times as many products. Tests build with few. */
#ifndef SPMV_SPGEMM_HUGE
#define SPMV_SPGEMM_HUGE 16384
#endif

namespace spgemm
{

enum {
    SLOTS = SPMV_SPGEMM_SLOTS,
    TABLE = warp_lanes * SLOTS, /* places of the tables of a warp */
    LEVELS = 4,                 /* a subwarp of level l has 4 << l lanes */
    LEAST_LOG = 2,              /* log2 of the lanes of level 0 */
    LONG = LEVELS,              /* the class of rows too long for a table */
    HUGE_ROW = LEVELS + 1,      /* of rows that all blocks share */
    EMPTY_ROW = LEVELS + 2,     /* of rows without products */
    TINY = LEVELS + 3,          /* of rows with few columns and products, one for a thread */
    FEW = LEVELS + 4,           /* for count: of rows with few products, which are sorted */
    CLASSES = LEVELS + 5,
    BLOCK = 128, /* threads of a block with tables */
    BLOCK_WARPS = BLOCK / warp_lanes,
    COUNT_RESIDENT = 10, /* such blocks that a multiprocessor holds when rows are counted */
    FREE = -1            /* a place without a column */
};
static_assert(SLOTS >= 8 && (SLOTS & (SLOTS - 1)) == 0, "a power of 2, at least 8");

/* The most columns of a TINY row, and the most products; the most products of a FEW row. */
enum { TINY_COLUMNS = 12, TINY_PRODUCTS = 64, FEW_PRODUCTS = 64 };

/* A row gets so many lanes that none has more products, up to a warp. */
enum { PRODUCTS_OF_LANE = 256 };

constexpr unsigned all_lanes = 0xffffffffu;

/* The most columns in a table of the level: three quarters of its places. Each lane may insert one
 * more before it notices that there are too many; one place stays free, so each search ends. */
__host__ __device__ constexpr int capacity(int level)
{
    return (SLOTS / 4 * 3) << (level + LEAST_LOG);
}

/* The pattern of a matrix. */
struct pattern {
    const void *row_ptr;
    const int32_t *col;
    bool wide; /* row_ptr has 64 bits */

    __device__ int64_t offset(int64_t row) const
    {
        return wide ? ((const int64_t *)row_ptr)[row] : (int64_t)((const int32_t *)row_ptr)[row];
    }
};

struct operands {
    int64_t rows; /* of A */
    pattern a, b;
};

/* A row of C in a list, with the width of its teams, at most a warp, in the two low bits. */
using item = int64_t;

__device__ inline item make_item(int64_t row, int width_log)
{
    return row << 2 | ((width_log < 5 ? width_log : 5) - LEAST_LOG);
}

__device__ inline int64_t row_of(item i)
{
    return i >> 2;
}

__device__ inline int width_log_of(item i)
{
    return (int)(i & 3) + LEAST_LOG;
}

/* Consecutive entries of a long row of C. */
struct fragment {
    item row;
    int64_t begin; /* of its first entry, in C */
    /* Bit i is set if any of the entries 32 i ... 32 i + 31 of the row of A has products in this
     * fragment; NULL: not known. */
    const unsigned *filter;
};

/* Numbers that kernels count. All are 0 before. */
struct counters {
    unsigned long long rows[CLASSES];   /* of each class */
    unsigned long long listed[CLASSES]; /* rows that partition has written so far */
    unsigned long long fragments, listed_fragments;
    /* rows whose columns exceeded their first table; only [LEVELS - 1] is used */
    unsigned long long again[LEVELS];
    unsigned long long huge;        /* rows of the class HUGE_ROW */
    unsigned long long unsorted[2]; /* LONG rows that each launch of count_sorted leaves */
    unsigned long long unstored;    /* LONG rows of which count has not stored the columns */
    unsigned long long stored;      /* columns for which count asked for a place (stored_columns) */
    int64_t nnz;                    /* of C */
};

/* Sorted columns that count found for rows of the levels, as far as there is room. Fill copies them
 * instead of finding them again. */
struct stored_columns {
    int32_t *columns;
    int64_t room;     /* less than NOT_STORED */
    int at_once;      /* columns for which a warp reserves room at a time */
    uint32_t *places; /* of each row's first column, or NOT_STORED */
};

constexpr uint32_t NOT_STORED = UINT32_MAX;

/* Lists of rows, one for each level, one after the other, the highest level first. */
struct row_lists {
    const item *items;
    const unsigned long long *counts; /* LEVELS */
};

/* The place of a level's list among its lists; level -1: after all of them. */
__device__ inline int64_t list_begin(const unsigned long long *counts, int level)
{
    int64_t begin = 0;
    for (int l = LEVELS - 1; l > level; l--)
        begin += (int64_t)counts[l];
    return begin;
}

/* What a lane of a warp works on. */
struct assignment {
    int log;     /* log2 of the lanes of a subwarp */
    int lane;    /* in the subwarp */
    int subwarp; /* of the warp */
    bool mine;   /* false: the subwarp has nothing to do */
    item row;

    __device__ int size() const
    {
        return 1 << log;
    }
};

__device__ inline int64_t warps_for(unsigned long long rows, int level)
{
    const int log = 5 - LEAST_LOG - level; /* of the subwarps of a warp */
    return ((int64_t)rows + (1 << log) - 1) >> log;
}

__device__ inline int64_t warps_for_lists(const unsigned long long *counts)
{
    int64_t warps = 0;
    for (int level = 0; level < LEVELS; level++)
        warps += warps_for(counts[level], level);
    return warps;
}

/* The work of warp `task`. The highest level comes first, because its rows take longest. */
__device__ inline assignment assign(const row_lists &lists, int64_t task)
{
    assignment to = {};
    int level = LEVELS - 1;
    int64_t begin = 0;
    for (; level > 0; level--) {
        const int64_t warps = warps_for(lists.counts[level], level);
        if (task < warps)
            break;
        task -= warps;
        begin += (int64_t)lists.counts[level];
    }
    const int lane = (int)threadIdx.x % warp_lanes;
    to.log = level + LEAST_LOG;
    to.lane = lane & ((1 << to.log) - 1);
    to.subwarp = lane >> to.log;
    const int64_t i = (task << (5 - to.log)) + to.subwarp;
    to.mine = i < (int64_t)lists.counts[level];
    to.row = to.mine ? lists.items[begin + i] : 0;
    return to;
}

/* ----------------------------------------------------------------- tables */

/* The first place to search for a column in a table of 2^log places: the high bits of a product
 * with 2^32 divided by the golden ratio, which spreads consecutive columns evenly (D. E. Knuth,
 * "The Art of Computer Programming" 3, section 6.4). */
__device__ inline int first_place(int32_t col, int log)
{
    return (int)(((uint32_t)col * 2654435769u) >> (32 - log));
}

__host__ __device__ constexpr int slots_log(int slots = SLOTS)
{
    return slots == 1 ? 0 : 1 + slots_log(slots / 2);
}

/* Empties the tables of a warp. */
__device__ inline void clear_tables(int *keys)
{
    for (int i = (int)threadIdx.x % warp_lanes; i < TABLE / 4; i += warp_lanes)
        ((int4 *)keys)[i] = {FREE, FREE, FREE, FREE};
    __syncwarp();
}

/* The largest value of a warp. */
__device__ inline int warp_most(int value)
{
    return -__reduce_min_sync(all_lanes, -value);
}

/* -------------------------------------------------------- classes of rows */

/* Rows of A with more entries are LONG. */
enum { IN_TABLE = 512 };

/* How many columns of C rows are expected to have. */
struct expectation {
    int columns; /* of 256 products, 1 to 256 */

    __host__ __device__ int64_t of(int64_t products) const
    {
        return (products * columns + 255) / 256;
    }
};

/* A row of the class HUGE_ROW. */
struct huge_row {
    int64_t row;
    int64_t entries; /* of A */
    int64_t n;       /* entries of C */
    int width_log;   /* of teams for whole rows of B, up to a block */
};

/* log2 of the lanes for a row of B if there are `products` in `count` rows: up to a block. */
__device__ inline int width_for(int64_t products, int64_t count)
{
    int log = LEAST_LOG;
    while (1 << log < block_threads && products > count << log)
        log++;
    return log;
}

/* The least level for a row with this number of products. */
__device__ inline int level_for(int64_t products)
{
    int level = 0;
    while (level < LEVELS - 1 && (int64_t)PRODUCTS_OF_LANE << (level + LEAST_LOG) < products)
        level++;
    return level;
}

/* log2 of the width of a row's teams, and its least level, in one byte. */
__device__ inline uint8_t make_shape(int width_log, int least_level)
{
    return (uint8_t)(width_log | least_level << 4);
}

__device__ inline int width_of_shape(uint8_t shape)
{
    return shape & 15;
}

__device__ inline int level_of_shape(uint8_t shape)
{
    return shape >> 4;
}

/* The class of a row for count. A table has room for half as many columns again as expected. */
__device__ inline int class_for(int64_t entries, int64_t products, expectation expected)
{
    if (entries > SPMV_SPGEMM_HUGE || products > (int64_t)64 * SPMV_SPGEMM_HUGE)
        return HUGE_ROW;
    if (products == 0)
        return EMPTY_ROW;
    const int64_t columns = expected.of(products);
    if (entries > IN_TABLE || 4 * columns > 5 * capacity(LEVELS - 1))
        return LONG;
    if (products <= TINY_COLUMNS || (products <= TINY_PRODUCTS && columns <= TINY_COLUMNS))
        return TINY;
    if (products <= FEW_PRODUCTS)
        return FEW;
    int level = level_for(products);
    while (level < LEVELS - 1 && 2 * capacity(level) < 3 * columns)
        level++;
    return level;
}

/* classes[i]: the class of row i for count. shapes[i]: log2 of the width of its teams, up to a
 * block, and its least level. Lists the huge rows, in any order. lengths: rows + 1 numbers; the last
 * one and those of rows without products become 0, those of huge rows 1, until their columns are
 * counted. products: of each row. */
__global__ void __launch_bounds__(block_threads)
    analyse(operands m, expectation expected, const int64_t *products, uint8_t *classes, uint8_t *shapes,
            int64_t *lengths, uint32_t *places, huge_row *huge, counters *found)
{
    __shared__ unsigned counts[CLASSES];
    if (threadIdx.x < CLASSES)
        counts[threadIdx.x] = 0;
    if (threadIdx.x == 0 && blockIdx.x == 0)
        lengths[m.rows] = 0;
    __syncthreads();
    for (int64_t row = (int64_t)blockIdx.x * block_threads + threadIdx.x; row < m.rows;
         row += (int64_t)gridDim.x * block_threads) {
        const int64_t entries = m.a.offset(row + 1) - m.a.offset(row), count = products[row];
        const int width_log = width_for(count, entries), level = class_for(entries, count, expected);
        if (level == HUGE_ROW)
            huge[atomicAdd(&found->huge, 1ull)] = {row, entries, 0, width_log};
        if (level == EMPTY_ROW || level == HUGE_ROW)
            lengths[row] = level == HUGE_ROW;
        if (level == LONG) /* fill may find it in another class */
            places[row] = NOT_STORED;
        classes[row] = (uint8_t)level;
        shapes[row] = make_shape(width_log, level_for(count));
        atomicAdd(&counts[level], 1u);
    }
    __syncthreads();
    if (threadIdx.x < CLASSES && counts[threadIdx.x] != 0)
        atomicAdd(&found->rows[threadIdx.x], (unsigned long long)counts[threadIdx.x]);
}

__device__ inline int64_t fragments_of(int64_t n)
{
    return (n - 1) / capacity(LEVELS - 1) + 1;
}

/* log2 of the width of teams for a row with this number of fragments: the parts of rows of B in a
 * fragment are short. */
__device__ inline int width_in_fragment(int width_log, int64_t fragments)
{
    int log = LEAST_LOG;
    while (log < 5 && fragments << log < (int64_t)1 << width_log)
        log++;
    return log;
}

/* classes[i]: the class of row i of C for fill and the numeric phase. HUGE_ROW
 * and TINY remain. */
__global__ void __launch_bounds__(block_threads) classify(const int64_t *row_ptr, int64_t rows, const uint8_t *shapes,
                                                          const uint32_t *places, uint8_t *classes, counters *found)
{
    __shared__ unsigned counts[CLASSES], fragments, unstored;
    if (threadIdx.x < CLASSES)
        counts[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        fragments = unstored = 0;
    if (threadIdx.x == 0 && blockIdx.x == 0)
        found->nnz = row_ptr[rows];
    __syncthreads();
    for (int64_t row = (int64_t)blockIdx.x * block_threads + threadIdx.x; row < rows;
         row += (int64_t)gridDim.x * block_threads) {
        const int64_t n = row_ptr[row + 1] - row_ptr[row];
        int level = level_of_shape(shapes[row]);
        while (level < LEVELS && capacity(level) < n)
            level++;
        if (n == 0)
            level = EMPTY_ROW;
        else if (classes[row] == HUGE_ROW || classes[row] == TINY)
            level = classes[row];
        if (level == LONG) {
            atomicAdd(&fragments, (unsigned)fragments_of(n));
            if (places[row] == NOT_STORED)
                atomicAdd(&unstored, 1u);
        }
        classes[row] = (uint8_t)level;
        atomicAdd(&counts[level], 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0 && fragments != 0)
        atomicAdd(&found->fragments, (unsigned long long)fragments);
    if (threadIdx.x == 0 && unstored != 0)
        atomicAdd(&found->unstored, (unsigned long long)unstored);
    if (threadIdx.x < CLASSES && counts[threadIdx.x] != 0)
        atomicAdd(&found->rows[threadIdx.x], (unsigned long long)counts[threadIdx.x]);
}

/* Writes the lists of rows by class. Neighbouring rows stay near each other, since they share rows
 * of B.
 *
 *   items      the lists of the levels (row_lists), then the FEW rows; NULL: not wanted
 *   longs      the rows of the class LONG; NULL: not wanted
 *   fragments  their fragments; NULL: not wanted
 *   row_ptr    of C, for fragments
 *   kept, kept_counts  get the classes, and the lengths of the levels' lists; NULL: not wanted */
__global__ void __launch_bounds__(block_threads)
    partition(const uint8_t *classes, const uint8_t *shapes, int64_t rows, counters *found, item *items, item *longs,
              fragment *fragments, const int64_t *row_ptr, uint8_t *kept, unsigned long long *kept_counts)
{
    __shared__ unsigned counts[CLASSES], fragment_count;
    __shared__ int64_t begins[CLASSES], fragments_begin;
    const int lane = (int)threadIdx.x % warp_lanes;
    if (kept_counts != nullptr && blockIdx.x == 0 && threadIdx.x < LEVELS)
        kept_counts[threadIdx.x] = found->rows[threadIdx.x];
    for (int64_t first = (int64_t)blockIdx.x * block_threads; first < rows;
         first += (int64_t)gridDim.x * block_threads) {
        const int64_t row = first + threadIdx.x;
        const int level = row < rows ? classes[row] : (int)EMPTY_ROW;
        if (kept != nullptr && row < rows)
            kept[row] = (uint8_t)level;
        if (threadIdx.x < CLASSES)
            counts[threadIdx.x] = 0;
        if (threadIdx.x == 0)
            fragment_count = 0;
        __syncthreads();
        /* the warp's rows of a class in their order */
        const unsigned same = __match_any_sync(all_lanes, (unsigned)level);
        const int leader = __ffs((int)same) - 1;
        unsigned at = 0;
        if (lane == leader)
            at = atomicAdd(&counts[level], (unsigned)__popc(same));
        at = __shfl_sync(all_lanes, at, leader) + (unsigned)__popc(same & ((1u << lane) - 1));
        const bool has_fragments = level == LONG && fragments != nullptr;
        const int64_t begin = has_fragments ? row_ptr[row] : 0;
        const int64_t count = has_fragments ? fragments_of(row_ptr[row + 1] - begin) : 0;
        const unsigned fragment_at = has_fragments ? atomicAdd(&fragment_count, (unsigned)count) : 0;
        __syncthreads();
        const int mine = (int)threadIdx.x; /* a class */
        if (mine == 0 && fragment_count != 0)
            fragments_begin = (int64_t)atomicAdd(&found->listed_fragments, (unsigned long long)fragment_count);
        if ((mine <= LONG || mine == FEW) && counts[mine] != 0 && (mine != LONG ? items : longs) != nullptr) {
            begins[mine] = (int64_t)atomicAdd(&found->listed[mine], (unsigned long long)counts[mine]) +
                           (mine != LONG ? list_begin(found->rows, mine < LEVELS ? mine : -1) : 0);
        }
        __syncthreads();
        if ((level < LEVELS || level == FEW) && items != nullptr)
            items[begins[level] + at] = make_item(row, width_of_shape(shapes[row]));
        if (level == LONG && longs != nullptr)
            longs[begins[level] + at] = make_item(row, width_of_shape(shapes[row]));
        for (int64_t s = 0; s < count; s++)
            fragments[fragments_begin + fragment_at + s] = {
                make_item(row, width_in_fragment(width_of_shape(shapes[row]), count)), begin + s * capacity(LEVELS - 1),
                nullptr};
        __syncthreads();
    }
}

} // namespace spgemm

#endif
