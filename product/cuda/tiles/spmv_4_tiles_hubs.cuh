/* Rung 4 with hubs of x in shared memory: a form of the columns, as 16-bit columns are one.
 *
 * Idea:     the columns with the most entries are hubs. The plan stores the columns again, and of a
 *           hub's entries the complement of its number among the hubs. Each multiprocessor keeps x
 *           of the hubs in shared memory, so only the other entries load from the last-level cache.
 * Launches: 2. pack gathers x of the hubs into a contiguous array, and each block of the product
 *           copies it.
 * Blocks:   one for each multiprocessor, since hubs have most of its shared memory. It has TEAMS
 *           teams of Shape::BLOCK threads. A team processes one tile after the other. Before it sums
 *           the rows of a tile, it begins the gathers and loads the values of its next tile, and
 *           loads the columns of the one after that.
 * Bytes:    as rung 4 with 32-bit columns, and x of the hubs once for each multiprocessor.
 * Wins:     where gathers of x are the limit and a few columns have a large share of the entries.
 *
 * Bits: the cut into tiles and each sum are those of the other kernels of rung 4.
 *
 * No team waits for a tile of another one: fragments of long rows are handed on by counters.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_4_TILES_HUBS_CUH
#define SPMV_4_TILES_HUBS_CUH

#include "product/cuda/tiles/spmv_4_tiles.cuh"

/* Teams of a block; 0: as many as registers allow. The emulated GPU of the tests has no barriers for a
 * part of a block. */
#ifndef SPMV_TILES_TEAMS
#define SPMV_TILES_TEAMS 0
#endif

namespace tiles
{

/* The usual shape, TEAMS tiles a block. AHEAD: offsets of rows that a thread loads before the rows of
 * the tile before are summed; most tiles have no more. */
template <typename T> struct hub_shape : shapes<T>::usual {
    using usual = typename shapes<T>::usual;
    enum { TEAMS = SPMV_TILES_TEAMS > 0 ? SPMV_TILES_TEAMS : sizeof(T) == 8 ? 3 : 4 };
    using team = one_of_teams<TEAMS, usual::BLOCK>;
    enum {
        THREADS = TEAMS * usual::BLOCK,
        AHEAD = 2,
        ENDS = (usual::ROWS / usual::BLOCK + 1) * usual::BLOCK,
        /* products and the ends of rows */
        TEAM_BYTES = usual::CAPACITY * (int)sizeof(T) + ENDS * (int)sizeof(uint16_t),
    };
};

/* x of the hubs, and their columns, ascending. padded: count, rounded up to whole loads of 16 bytes.
 * shared_bytes: a block's dynamic shared memory. */
template <typename T> struct hubs {
    const int32_t *column;
    int32_t count, padded;
    int shared_bytes;
    T *x;
};

template <typename T> __global__ void __launch_bounds__(block_threads) pack_hubs(hubs<T> h, const T *x)
{
    const int i = (int)blockIdx.x * block_threads + (int)threadIdx.x;
    let_next_begin();
    const int32_t column = i < h.count ? h.column[i] : 0;
    await_kernel_before();
    if (i < h.padded)
        h.x[i] = i < h.count ? load_gathered(x + column) : T();
}

/* A tile and the one behind it, which has its end. */
struct tile_pair {
    tile here, behind;
};

/* The tiles that a team knows at once: of the sums, of the gathers, of the columns, and the next. */
enum { SEEN = 4 };

/* Loads a thread's columns or values of a tile. */
template <typename Shape, typename From, typename Load, typename To>
__device__ void load_items_of(const From *all, const tile_pair &t, const Load &load, To (&item)[Shape::ITEMS])
{
    const int64_t from = t.here.begin & ~(int64_t)(Shape::LINE - 1);
    load_items<Shape>(all + from + Shape::team::thread(), (int)(t.here.begin - from), (int)(t.behind.begin - from),
                      load, item);
}

/* The rows of a tile that are very long for their subwarp. */
struct late_rows {
    enum { MOST = 128 };
    int count;
    uint16_t row[MOST];
};

/* As sum_rows, with the same bits. But very long rows are divided among all warps of the team: with
 * few teams, no other work hides the time that one warp takes for them. late: without rows. */
template <typename Shape, typename T, typename Store>
__device__ void sum_rows_of_team(const T *products, const uint16_t *ends, int rows, int shift, int64_t row,
                                 Store &store, typename Store::ahead held, late_rows *late)
{
    static_assert((int)Shape::CAPACITY / SERIAL <= (int)late_rows::MOST, "each has more than SERIAL");
    const int thread = Shape::team::thread();
    sum_rows_but_late<Shape>(products, ends, rows, shift, row, store, held, [=](bool is, int r, int, int) {
        if (is)
            late->row[atomicAdd(&late->count, 1)] = (uint16_t)r;
    });
    if (1 << shift >= QUARTER)
        return;
    Shape::team::sync();
    const int count = late->count;
    for (int first = thread / warp_lanes * (warp_lanes / QUARTER); first < count; first += Shape::BLOCK / QUARTER) {
        const int i = first + thread % warp_lanes / QUARTER, r = i < count ? late->row[i] : 0;
        const int begin = i < count ? ends[r] : 0, end = i < count ? ends[r + 1] : 0;
        const T sum = subwarp_sum<QUARTER>(products, begin + thread % QUARTER, end);
        if (i < count && thread % QUARTER == 0)
            store(row + r, sum, store.look_ahead(row + r));
    }
}

/* Begins the gathers of a tile. hub: x of the hubs. */
template <typename Shape, typename T>
__device__ void gather_with_hubs(const int32_t (&column)[Shape::ITEMS], const T *hub, const T *x,
                                 T (&product)[Shape::ITEMS])
{
#pragma unroll
    for (int i = 0; i < Shape::ITEMS; i++)
        product[i] = column[i] < 0 ? hub[~column[i]] : T();
#pragma unroll
    for (int i = 0; i < Shape::ITEMS; i++)
        load_gathered_if(column[i] >= 0, x + column[i], &product[i]);
}

/* Sums and stores the rows of a tile, or the fragment that it is. */
template <typename Shape, typename Matrix, typename T, typename Store>
__device__ void sum_tile(const Matrix &m, const tile &now, const tile &behind, int64_t t, const T *products,
                         const uint16_t *ends, Store &store, typename Store::ahead held, late_rows *late)
{
    const int rows = (int)(behind.row - now.row);
    if (behind.begin == now.begin) {
        for (int row = Shape::team::thread(); row < rows; row += Shape::BLOCK)
            store(now.row + row, T(), store.look_ahead(now.row + row));
    } else if (now.long_row < 0) {
        sum_rows_of_team<Shape>(products, ends, rows, now.shift, now.row, store, held, late);
    } else {
        const int skip = (int)(now.begin % Shape::LINE), count = (int)(behind.begin - now.begin) + skip;
        sum_fragment<Shape>(m, products, skip, count, now.long_row, t, store);
    }
}

template <typename Shape, values HELD, typename Load, typename Matrix, typename T, typename Store>
__global__ void __launch_bounds__(Shape::THREADS) hub_kernel(Matrix m, hubs<T> h, const T *x, Store store)
{
    using team = typename Shape::team;
    constexpr int BLOCK = Shape::BLOCK, ITEMS = Shape::ITEMS, AHEAD = Shape::AHEAD;
    SPMV_DYNAMIC_SHARED(memory);
    __shared__ tile_pair tiles_of_teams[Shape::TEAMS][SEEN];
    __shared__ late_rows late_of_teams[Shape::TEAMS];
    T *const hub = (T *)(memory + (int)Shape::TEAMS * (int)Shape::TEAM_BYTES);
    T *const products = (T *)(memory + team::number() * (int)Shape::TEAM_BYTES);
    uint16_t *const ends = (uint16_t *)(products + Shape::CAPACITY);
    tile_pair *const seen = tiles_of_teams[team::number()];
    late_rows *const late = &late_of_teams[team::number()];
    const int thread = team::thread();
    const unsigned tiles = (unsigned)m.tiles, stride = gridDim.x * (unsigned)Shape::TEAMS;
    const unsigned first = (unsigned)team::number() * gridDim.x + blockIdx.x;
    const Load load(m.retained);
    int32_t column[ITEMS];
    typename Matrix::stored value[ITEMS];
    uint32_t offset[AHEAD];
    T product[ITEMS];

    /* Begins to copy 16 bytes of the pair of tile t. Called by WORDS threads. */
    enum { WORDS = sizeof(tile_pair) / sizeof(int4) };
    const auto copy_word = [&](tile_pair *to, unsigned t) {
        begin_copy((int4 *)to + thread, (const int4 *)(m.table + (t < tiles ? t : 0)) + thread);
    };
    const auto gather = [&] { gather_with_hubs<Shape>(column, hub, x, product); };
    const auto load_rest = [&](const tile_pair &t) {
        if constexpr (HELD == values::PLAIN)
            load_items_of<Shape>(m.val, t, load, value);
        const uint32_t *const offsets = settled(m.row_ptr + (t.here.row + thread) * m.words);
        const int rows = (int)(t.behind.row - t.here.row);
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (i * BLOCK + thread <= rows)
                offset[i] = load(offsets + i * BLOCK * m.words);
    };

    if (thread < WORDS) {
        for (int k = 0; k < SEEN - 1; k++)
            copy_word(&seen[k], first + (unsigned)k * stride);
        await_copies();
    }
    let_next_begin();
    team::sync();
    if (first < tiles) {
        load_items_of<Shape>(m.col, seen[0], load, column);
        load_rest(seen[0]);
    }
    await_kernel_before();
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < h.padded * (int)sizeof(T) / 16; i += Shape::THREADS)
        ((int4 *)hub)[i] = ((const int4 *)h.x)[i];
    __syncthreads();
    if (first < tiles) {
        gather();
        load_items_of<Shape>(m.col, seen[1], load, column);
    }

    int at = 0; /* of the tile among the seen ones */
    for (unsigned t = first; t < tiles; t += stride) {
        const tile &now = seen[at].here;
        const tile &behind = seen[at].behind;
        const bool whole_rows = now.long_row < 0;
        const int rows = (int)(behind.row - now.row), shift = now.shift;
        const uint32_t from = (uint32_t)now.begin & ~(uint32_t)(Shape::LINE - 1);
        if (thread == 0)
            late->count = 0;
        if (thread < WORDS)
            copy_word(&seen[(at + SEEN - 1) % SEEN], t + (SEEN - 1) * stride);
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (i * BLOCK + thread <= rows)
                ends[i * BLOCK + thread] = (uint16_t)(offset[i] - from);
#pragma unroll 1
        for (int i = AHEAD * BLOCK + thread; i <= rows && i < (int)Shape::ENDS; i += BLOCK)
            ends[i] = (uint16_t)(load(m.row_ptr + (now.row + i) * m.words) - from);
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            if (HELD != values::NONE)
                product[i] *= T(value[i]);
            products[i * BLOCK + thread] = product[i];
        }
        if (t + stride < tiles) {
            gather();
            load_rest(seen[(at + 1) % SEEN]);
            load_items_of<Shape>(m.col, seen[(at + 2) % SEEN], load, column);
        }
        typename Store::ahead held{};
        if (whole_rows && (thread & ((1 << shift) - 1)) == 0 && thread >> shift < rows)
            held = store.look_ahead(now.row + (thread >> shift));
        team::sync();

        sum_tile<Shape>(m, now, behind, t, products, ends, store, held, late);
        at = (at + 1) % SEEN;
        await_copies();
        team::sync(); /* before the next tile's products */
    }
}

/* One block for each multiprocessor. */
template <typename Shape, values HELD, typename Load, typename T, typename Stored, typename Store>
spmv_status run_with_hubs_as(spmv_context *ctx, const matrix<T, Stored> &m, const hubs<T> &h, const T *x, Store store)
{
    const int blocks = ((const cuda_state *)ctx->device)->multiprocessors;
    const spmv_status st =
        launch_early(ctx, "spmv tiles hubs", grid_for(h.padded, block_threads), block_threads, pack_hubs<T>, h, x);
    return st != SPMV_OK ? st
                         : launch_with_shared<hub_kernel<Shape, HELD, Load, matrix<T, Stored>, T, Store>>(
                               ctx, "spmv tiles", {blocks, Shape::THREADS, h.shared_bytes, true}, m, h, x, store);
}

template <typename T, typename Stored, typename Store>
spmv_status run_with_hubs(spmv_context *ctx, const matrix<T, Stored> &m, const hubs<T> &h, const T *x, Store store)
{
    using shape = hub_shape<T>;
    if (m.val == nullptr)
        return run_with_hubs_as<shape, values::NONE, loads<caching::ONCE>>(ctx, m, h, x, store);
    if (m.retained > 0)
        return run_with_hubs_as<shape, values::PLAIN, loads<caching::RETAINED>>(ctx, m, h, x, store);
    return run_with_hubs_as<shape, values::PLAIN, loads<caching::ONCE>>(ctx, m, h, x, store);
}

} // namespace tiles

#endif
