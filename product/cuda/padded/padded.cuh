/* Method "padded": sliced ELLPACK with 16-bit columns.
 *
 * Idea:       A slice is ROWS neighbouring rows, computed by a warp, LANES lanes for each row. Lane t
 *             of a row has its entries t, t + LANES, ... The plan stores columns and values in the
 *             order in which the lanes need them, and fills each row up to the longest of its slice.
 *             So a warp loads whole lines, two entries of each lane at a time, and adds in registers:
 *             no product goes through shared memory, and there is no barrier. A column is a 16-bit
 *             code: the number of one of the slice's column ranges, and the place in it. The lanes of
 *             the warp hold where the ranges begin; a shuffle selects one.
 * Work:       nnz products, and as many additions of 0 as places are empty.
 * Depth:      the longest row of a slice / LANES.
 * Launches:   1.
 * Bytes:      a value and 2 bytes for each place, 8 bytes for each slice, 64 bytes for the ranges of
 *             SHARING slices, x, y.
 * Changed:    since tiles, entries in the order of the lanes, sums in registers, and some 12
 *             instructions of a warp for 32 entries instead of 53.
 * Wins when:  neighbouring rows have nearly the same length and their columns are near to each
 *             other, as with finite elements, and memory is so fast that instructions limit tiles.
 * Loses when: many places are empty, or the columns of neighbouring rows are spread over x.
 * Source:     A. Monakov, A. Lokhmotov, A. Avetisyan, "Automatically tuning sparse matrix-vector
 *             multiplication for GPU architectures", HiPEAC 2010 (slices).
 *
 * Empty places: their code names a range that no slice uses, and their value is 0. Such a lane loads a
 * 0 of the plan in place of an element of x, which may be infinite. The address is selected, the load
 * is not skipped: a thread has seven predicates, and with more loads the compiler would wait for the
 * first one before it issues the last.
 *
 * Plain slices: where columns need more ranges than a warp can name, the slice has no places. Its
 * rows are read from the CSR arrays, by the same lanes in the same order.
 *
 * Order of the sum: a lane adds its entries in the order of the row, and the lanes of a row combine in
 * a fixed tree. The bits depend on the row alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_PADDED_CUH
#define PRODUCT_PADDED_CUH

#include "product/cuda/tiles/spmv_4_tiles.cuh"

namespace padded
{

struct shape {
    using team = tiles::whole_block;
    enum { BLOCK = 128 };
};

/* LANES: of a row. A layer is an entry of each lane, a pair is two layers. SHARING slices have
 * their ranges in common, so these take few bytes. */
enum {
    LANES = 4,
    ROWS = warp_lanes / LANES,
    WARPS = shape::BLOCK / warp_lanes,
    PAIR = 2,
    SHARED_ROWS = 16,
    SHARING = SHARED_ROWS / ROWS,
    AT_ONCE = 4 /* pairs that are loaded together */
};

/* The upper bits of a column's code select one of the slice's RANGES ranges, the lower RANGE_BITS are
 * the place in it. Ranges begin at multiples of RANGE columns. The last range is never used: empty
 * places have the code ABSENT. */
enum { RANGES = warp_lanes, RANGE_BITS = tiles::RANGE_BITS, RANGE = 1 << RANGE_BITS, ABSENT = 0xffff };
static_assert(RANGES << RANGE_BITS == ABSENT + 1, "16 bits");

/* A range that a slice does not have, in the list of its ranges. */
enum { NO_RANGE = 0xffff };

/* The values of a lane in a pair. */
template <typename Stored> struct alignas(2 * sizeof(Stored)) pair {
    Stored first, second;
};

/* A slice. Its layers are begin ... begin of the next one - 1. If their number is odd, the first
 * one stands alone, and pairs follow. base: the column where its first range begins; PLAIN: the
 * slice has no layers. */
enum { PLAIN = -1 };
struct alignas(8) head {
    int32_t begin, base;
};

/* T: of sums; Stored: of values; Element: of vectors. */
template <typename T, typename Stored, typename Element> struct matrix {
    int64_t rows, slices;
    const head *heads;      /* slices + 1 */
    const uint16_t *ranges; /* RANGES for SHARING slices: (begin - base) / RANGE, ascending, or NO_RANGE */
    /* warp_lanes a layer: a layer alone has one place for each lane, a pair two neighbouring ones */
    const uint16_t *code;
    const Stored *val;
    const Element *zero; /* a 0 */
    /* the CSR arrays, for plain slices */
    const void *row_ptr;
    bool wide; /* offsets have 64 bits */
    const int32_t *col;
    const Stored *csr_val;
    float retained; /* the share that is loaded to stay in the last-level cache */

    __device__ int64_t offset(int64_t row) const
    {
        return wide ? ((const int64_t *)row_ptr)[row] : ((const int32_t *)row_ptr)[row];
    }
};

/* The codes and values of AT_ONCE pairs. */
template <typename Stored> struct batch {
    uint32_t code[AT_ONCE];
    pair<Stored> value[AT_ONCE];
};

/* Loads the first min(count, AT_ONCE) pairs of a lane; the places of the others are empty. */
template <typename Load, typename Stored>
__device__ void load_batch(const Load &load, const uint32_t *code, const pair<Stored> *val, int count, batch<Stored> *b)
{
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
        b->code[i] = ~0u;
        if (i < count)
            b->code[i] = load(code + i * warp_lanes);
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
        b->value[i] = {};
        if (i < count)
            b->value[i] = load(val + i * warp_lanes);
    }
}

/* The element of x for the code in the low 16 bits of `code`; 0 for an empty place. range: the same
 * without the bits of the place; its higher bits do not matter. begins: of the lane's range, counted
 * from x_from; negative if there is none. */
template <typename Element>
__device__ Element gathered(const Element *x_from, const Element *zero, int32_t begins, uint32_t range, uint32_t code)
{
    const int32_t column = __shfl_sync(0xffffffffu, begins, (int)range) | (int32_t)(code & (RANGE - 1));
    return load_gathered(column >= 0 ? x_from + column : zero);
}

/* A lane's part of the sum of a row of a plain slice. */
template <typename T, typename Stored, typename Element>
__device__ T plain_sum(const matrix<T, Stored, Element> &m, int64_t row, int lane, const Element *x)
{
    const int64_t end = row < m.rows ? m.offset(row + 1) : 0;
    T sum = T();
#pragma unroll 4
    for (int64_t k = row < m.rows ? m.offset(row) + lane : 0; k < end; k += LANES)
        sum = multiply_add<Element>(T(m.csr_val[k]), T(load_gathered(x + m.col[k])), sum);
    return sum;
}

/* The smallest number of blocks for a multiprocessor: as many as leave registers for all loads that are
 * issued together. */
template <typename T, typename Store> constexpr int resident()
{
    return sizeof(T) == 4 && !Store::HEAVY ? 10 : 8;
}

template <typename Load, typename T, typename Stored, typename Element, typename Store>
__global__ void __launch_bounds__(shape::BLOCK, resident<T, Store>())
    kernel(matrix<T, Stored, Element> m, const Element *x, Store store)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const int64_t slice = (int64_t)blockIdx.x * WARPS + (int)threadIdx.x / warp_lanes;
    const int64_t row = slice * ROWS + lane / LANES;
    const bool stores = lane % LANES == 0 && row < m.rows;
    const Load load(m.retained);
    head mine = {};
    int layers = 0, range = NO_RANGE;
    let_next_begin();
    if (slice < m.slices) {
        mine = m.heads[slice];
        range = m.ranges[slice / SHARING * RANGES + lane];
        layers = m.heads[slice + 1].begin - mine.begin;
    }
    const uint16_t *const codes = m.code + (int64_t)mine.begin * warp_lanes;
    const Stored *const values = m.val + (int64_t)mine.begin * warp_lanes;
    const int alone = layers % PAIR;
    uint32_t first_code = ABSENT;
    Stored first_value = Stored();
    if (alone != 0) {
        first_code = (uint32_t)load(codes + lane);
        first_value = load(values + lane);
    }
    int count = layers / PAIR;
    const uint32_t *code = settled((const uint32_t *)(codes + alone * warp_lanes) + lane);
    const pair<Stored> *val = settled((const pair<Stored> *)(values + alone * warp_lanes) + lane);
    batch<Stored> b;
    load_batch(load, code, val, count, &b);
    const int32_t begins = range == NO_RANGE ? INT32_MIN : range * RANGE;
    const Element *const x_from = settled(x + (mine.base != PLAIN ? mine.base : 0));
    T sum = T();

    await_kernel_before();
    const bool stopped = store.stopped();
    typename Store::ahead held{};
    if (stores)
        held = store.look_ahead(row);
    const Element first_element = gathered(x_from, m.zero, begins, first_code >> RANGE_BITS, first_code);
    for (bool first = true;; first = false) {
        Element element[AT_ONCE][PAIR];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            element[i][0] = gathered(x_from, m.zero, begins, b.code[i] >> RANGE_BITS, b.code[i]);
            element[i][1] = gathered(x_from, m.zero, begins, b.code[i] >> (16 + RANGE_BITS), b.code[i] >> 16);
        }
        if (stopped) /* checked after the gathers are issued */
            return;
        if (first)
            sum = multiply_add<Element>(T(first_value), T(first_element), sum);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            sum = multiply_add<Element>(T(b.value[i].first), T(element[i][0]), sum);
            sum = multiply_add<Element>(T(b.value[i].second), T(element[i][1]), sum);
        }
        count -= AT_ONCE;
        if (count <= 0)
            break;
        code = settled(code + AT_ONCE * warp_lanes);
        val = settled(val + AT_ONCE * warp_lanes);
        load_batch(load, code, val, count, &b);
    }
    if (mine.base == PLAIN)
        sum = plain_sum(m, row, lane % LANES, x);
    sum = warp_sum(sum, LANES);
    if (stores)
        store(row, sum, held);
    store.template end_tile<shape>(blockIdx.x);
}

inline int64_t blocks_for(int64_t slices)
{
    return (slices - 1) / WARPS + 1;
}

template <typename T, typename Stored, typename Element, typename Store>
spmv_status run(spmv_context *ctx, const matrix<T, Stored, Element> &m, const Element *x, Store store)
{
    enum { SHARED_PERCENT = 5 }; /* the rest of an SM's memory caches x */
    const int blocks = (int)blocks_for(m.slices);
    return m.retained > 0 ? launch_cached<kernel<loads<caching::RETAINED>, T, Stored, Element, Store>>(
                                ctx, "spmv padded", blocks, shape::BLOCK, SHARED_PERCENT, m, x, store)
                          : launch_cached<kernel<loads<caching::ONCE>, T, Stored, Element, Store>>(
                                ctx, "spmv padded", blocks, shape::BLOCK, SHARED_PERCENT, m, x, store);
}

} // namespace padded

#endif
