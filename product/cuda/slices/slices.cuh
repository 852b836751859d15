/* Method "slices": sliced ELLPACK with shared patterns of offsets.
 *
 * Idea: a slice is ROWS neighbouring rows. Its slots are the distinct offsets (column - row) of its
 *   rows, in ascending order. A slot has one offset, a bit for each row that has an entry at this
 *   offset, and ROWS places for values, side by side. The place of a row without an entry holds 0.
 *   The list of a slice's offsets and bits is its pattern. Slices with equal patterns share one, so
 *   a large grid has few patterns. They stay in the first-level cache, and columns need no memory
 *   bandwidth. A warp computes a slice, lane l its rows l and l + 32. The warp loads the values of
 *   a slot in whole lines and gathers x at row + offset: neighbouring lanes read neighbouring
 *   elements.
 * Strips: rows with few slots need x nearly as often as values, and most of x comes from the last-level
 *   cache, whose link between its halves is then the limit. So each multiprocessor has one block. It computes
 *   neighbouring rows and those above and below in the grid (`order`), so that each element of x comes from
 *   the last-level cache about once. While a warp gathers x for some slots, the values of its next slots are
 *   on their way (strip_kernel).
 * Work: nnz products.
 * Depth: the largest number of slots of a slice.
 * Launches: 1.
 * Bytes: ROWS values per slot, 8 bytes per slice, x, y. With one value for each slot of each pattern,
 *   as on grids with constant coefficients, no values: the pattern has them.
 * Changed since tiles: values in the order of slots, columns from a pattern, no shared memory.
 * Wins when: neighbouring rows have nearly the same offsets: grids and bands (finite differences,
 *   finite volumes).
 * Order of the sum: a row's entries in ascending columns. The bits depend on the row alone.
 *
 * Source: A. Monakov, A. Lokhmotov, A. Avetisyan, "Automatically tuning sparse matrix-vector
 * multiplication for GPU architectures", HiPEAC 2010 (slices); N. Bell, M. Garland, SC09 (offsets
 * of diagonals).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_SLICES_CUH
#define PRODUCT_SLICES_CUH

#include "product/cuda/tiles/spmv_4_tiles.cuh"

namespace slices
{

struct shape {
    using team = tiles::whole_block;
    enum { BLOCK = 128 };
};

enum { ROWS = 2 * warp_lanes, WARPS = shape::BLOCK / warp_lanes };

/* The smallest number of blocks of kernels that make a plan for a multiprocessor. */
enum { RESIDENT = 6 };

/* The number of slots that are loaded at once. takes_many returns whether `many` at once need fewer
 * rounds than `few` for a slice with the usual number of slots; few need fewer registers. */
enum { FEW_AT_ONCE = 4, MANY_AT_ONCE = 5 };
inline bool takes_many(int64_t slots, int64_t few, int64_t many)
{
    return (slots - 1) / many < (slots - 1) / few;
}

/* The same for constant_kernel, which needs no registers for codes, and for strip_kernel: five points and
 * seven points in one round. */
enum { ROUND_FEW = 5, ROUND_MANY = 7 };

/* A block of constant_kernel takes several tiles if there are as many turns for each resident block. */
enum { CONSTANT_TURNS = 8 };

/* The smallest number of blocks of a product for a multiprocessor. Without this bound the compiler saves
 * registers: it waits for each load before it issues the next. Codes need few registers. */
constexpr int resident(int at_once, tiles::values held)
{
    return held == tiles::values::CODED && at_once == FEW_AT_ONCE ? 8 : (int)RESIDENT;
}

/* Resident blocks of constant_kernel. One more would need registers for f64: loads ahead would be
 * spilled, and waited for. */
constexpr int constant_resident(int at_once)
{
    return at_once == ROUND_FEW ? 8 : 7;
}

/* strip_kernel is for slices with at most STRIP_SLOTS slots on average, and for matrices that are large enough
 * for STRIP_TURNS turns of each team. */
enum { STRIP_SLOTS = 16, STRIP_TURNS = 4 };

/* Teams of a block of strip_kernel: as many as registers allow, without spilling them: what is spilled is waited
 * for. Tests build with one: the emulated GPU has no barriers for a part of a block. */
#ifdef SPMV_SLICES_TEAMS
constexpr int strip_teams(int, bool)
{
    return SPMV_SLICES_TEAMS;
}
#else
constexpr int strip_teams(int element_bytes, bool many)
{
    return element_bytes == 8 ? 4 : many ? 6 : 7;
}
#endif

/* A block of strip_kernel: teams of WARPS warps. Each computes tiles of WARPS neighbouring slices. */
template <int TEAMS> struct teams_shape {
    enum { BLOCK = shape::BLOCK, THREADS = TEAMS * BLOCK };
    using team = tiles::one_of_teams<TEAMS, BLOCK>;
};

/* Bytes of x in a strip of a line, see `order`. Tests build with few. Three lines, and the ends of the strips
 * beside, are in the first-level cache at once. */
#ifndef SPMV_SLICES_STRIP_BYTES
#define SPMV_SLICES_STRIP_BYTES (24 * 1024)
#endif

/* One offset of a pattern. Bit l of low is set if row l of the slice has an entry at this offset, bit
 * l of high if row l + 32 has one. code: of the value of the first of these entries in the table of
 * values; 0 if there is no table. */
struct alignas(16) slot {
    int32_t offset;
    uint32_t low, high;
    int32_t code;
};

/* The slots of slice s have their values at heads[s].begin ... heads[s + 1].begin - 1. Their
 * offsets and bits are as many elements of patterns, from heads[s].pattern on. */
struct alignas(8) head {
    int32_t begin, pattern;
};

/* The values of a lane's two rows. */
template <typename Stored> struct alignas(2 * sizeof(Stored)) two {
    Stored low, high;
};

/* The order in which tiles of slices are computed. The tiles are written in lines of `line` tiles:
 * rows that are far apart in a pattern, as in neighbouring planes of a grid, are below each other. Lines
 * are cut into strips of `width` tiles. The order goes down strip after strip. Each block has a part of it, so
 * x of the lines above and below is in the first-level cache. Of `tiles` tiles; the last line may have
 * fewer. */
struct order {
    int32_t tiles, line, lines, width;

    __host__ __device__ int32_t positions() const
    {
        return line * lines;
    }

    enum { NONE = -1, END = -2 };

    /* The tile at a position; NONE where the last line has fewer. */
    __device__ int32_t tile(int32_t position) const
    {
        if (lines == 1)
            return position;
        const int32_t strip = position / (width * lines), first = strip * width;
        const int32_t within = position - first * lines, broad = width < line - first ? width : line - first;
        const int32_t row = within / broad, g = row * line + first + within - row * broad;
        return g < tiles ? g : (int32_t)NONE;
    }
};

/* T: of sums; Stored: of values. */
template <typename T, typename Stored> struct matrix {
    using stored = Stored;
    using sum = T;
    int64_t rows, slices;
    const head *heads; /* slices + 1 */
    const slot *patterns;
    const two<Stored> *val;          /* warp_lanes per slot; NULL: a pattern matrix */
    float retained;                  /* the share that is loaded to stay in the last-level cache */
    bool many_at_once, many_a_round; /* in constant_kernel and strip_kernel */
    bool strips;                     /* take strip_kernel */
    /* The launch has the tiles of the matrix without `skipped` ones from skip_from on. */
    order tiles;
    int64_t skip_from, skipped;

    /* The number in the matrix of a tile of the launch. */
    template <typename Int> __device__ Int tile(Int g) const
    {
        return g < (Int)skip_from ? g : g + (Int)skipped;
    }
};

/* A matrix with a table of its distinct values, in the type of the sums, and one code per place. */
template <typename T> struct coded_matrix : matrix<T, T> {
    const T *value_table;
    const two<uint8_t> *code;
};

/* A matrix whose entries all have the value with their slot's code. value_table NULL: a pattern
 * matrix. */
template <typename T> struct constant_matrix : matrix<T, T> {
    const T *value_table;
    int64_t parts; /* the launch has so many blocks, each leaves one part of the dot product for all its turns; 0: no */
};

/* The offsets, bits and values of AT_ONCE slots. */
template <int AT_ONCE, typename Held> struct batch {
    slot at[AT_ONCE];
    Held value[AT_ONCE];
};

/* Loads the first min(count, AT_ONCE) slots of a batch. from: the lane's values. The bits of all
 * other slots are 0. */
template <int AT_ONCE, typename Load, typename Stored, typename Held>
__device__ void load_batch(const Load &load, const slot *at, const Stored *from, int count, batch<AT_ONCE, Held> *c)
{
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
        c->at[i] = slot();
        c->value[i] = Held();
        if (i < count) {
            c->value[i] = load(from + i * warp_lanes);
            c->at[i] = at[i];
        }
    }
}

/* The array that a kernel reads in the order of slots. The two codes of a lane are one number, which is
 * taken apart where it is used: otherwise the compiler takes it apart, and waits for it, before it
 * issues the next load. */
template <tiles::values HELD, typename Matrix> __device__ auto held_values(const Matrix &m)
{
    if constexpr (HELD == tiles::values::PLAIN)
        return m.val;
    else
        return (const uint16_t *)m.code;
}

/* The values of the lane's two rows. */
template <typename Stored> __device__ Stored low_of(const two<Stored> &held)
{
    return held.low;
}

template <typename Stored> __device__ Stored high_of(const two<Stored> &held)
{
    return held.high;
}

__device__ inline int low_of(int codes)
{
    return codes & 255;
}

__device__ inline int high_of(int codes)
{
    return codes >> 8;
}

/* The product of x and an entry's stored value; 0 if the row has no entry (has is false, x is 0).
 * Adding this 0 changes no bit, because a sum that begins with +0 is never -0. So additions need no
 * condition. */
template <tiles::values HELD, typename Matrix, typename Element, typename Value>
__device__ auto product_of(const Matrix &m, bool has, Value value, Element x)
{
    using T = typename Matrix::sum;
    if constexpr (HELD == tiles::values::CODED)
        return (has ? load_gathered(m.value_table + value) : T()) * T(x);
    else
        return T(value) * T(x); /* the value is 0 if the row has no entry */
}

/* Loads what the storer needs of a lane's two rows, row and row + warp_lanes. */
template <typename Store>
__device__ void look_ahead(const Store &store, int64_t row, int64_t rows, typename Store::ahead (&held)[2])
{
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (row + half * warp_lanes < rows)
            held[half] = store.look_ahead(row + half * warp_lanes);
}

/* Stores the sums of a lane's two rows. */
template <typename T, typename Store>
__device__ void store_rows(Store &store, int64_t row, int64_t rows, T low, T high,
                           const typename Store::ahead (&held)[2])
{
    if (row < rows)
        store(row, low, held[0]);
    if (row + warp_lanes < rows)
        store(row + warp_lanes, high, held[1]);
}

template <int AT_ONCE, tiles::values HELD, typename Load, typename Matrix, typename Element, typename Store>
__global__ void __launch_bounds__(shape::BLOCK, resident(AT_ONCE, HELD)) kernel(Matrix m, const Element *x, Store store)
{
    using T = typename Matrix::sum;
    const int lane = (int)threadIdx.x % warp_lanes;
    const int64_t tile = m.tile((int64_t)blockIdx.x), slice = tile * WARPS + (int)threadIdx.x / warp_lanes,
                  first = slice * ROWS;
    const Load load(m.retained);
    head mine = {};
    int count = 0;
    let_next_begin();
    if (slice < m.slices) {
        mine = m.heads[slice];
        count = m.heads[slice + 1].begin - mine.begin;
    }
    /* rounds of nearly equal size: seven slots are loaded as four and three, not as five and two */
    const int step = count > 0 ? (count - 1) / ((count - 1) / AT_ONCE + 1) + 1 : 0;
    const Element *const x_from = settled(x + first + lane);
    const slot *const at = m.patterns + mine.pattern;
    const auto *const from = settled(held_values<HELD>(m) + (int64_t)mine.begin * warp_lanes + lane);
    typename Store::ahead held[2] = {};
    T low = T(), high = T();
    batch<AT_ONCE, std::decay_t<decltype(load(from))>> c;
    load_batch(load, at, from, step, &c);

    await_kernel_before();
    const bool stopped = store.stopped();
    /* before the gathers if there are registers for it: spilled, it would be waited for at once */
    if constexpr (AT_ONCE == FEW_AT_ONCE)
        look_ahead(store, first + lane, m.rows, held);
    for (int k = 0; k < count; k += step) {
        Element x_low[AT_ONCE], x_high[AT_ONCE];
        if (k > 0)
            load_batch(load, at + k, from + k * warp_lanes, count - k < step ? count - k : step, &c);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const Element *const x_at = x_from + c.at[i].offset;
            x_low[i] = x_high[i] = Element();
            if ((c.at[i].low >> lane & 1u) != 0)
                x_low[i] = load_gathered(x_at);
            if ((c.at[i].high >> lane & 1u) != 0)
                x_high[i] = load_gathered(x_at + warp_lanes);
        }
        if (stopped) /* tested after the gathers are issued, so that they do not wait for it */
            return;
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            low += product_of<HELD>(m, (c.at[i].low >> lane & 1u) != 0, low_of(c.value[i]), x_low[i]);
            high += product_of<HELD>(m, (c.at[i].high >> lane & 1u) != 0, high_of(c.value[i]), x_high[i]);
        }
    }
    if (stopped)
        return;
    if constexpr (AT_ONCE != FEW_AT_ONCE)
        look_ahead(store, first + lane, m.rows, held);
    store_rows(store, first + lane, m.rows, low, high, held);
    store.template end_tile<shape>(tile);
}

/* The slots of a batch, and the elements of x for the lane's two rows; 0 where a row has no entry. */
template <int AT_ONCE, typename Element> struct gathered {
    slot of[AT_ONCE];
    Element low[AT_ONCE], high[AT_ONCE];

    /* The first `count` slots from `at` on. x: from the lane's first row on. bit: the lane's. */
    __device__ void load(const slot *at, int count, const Element *x, uint32_t bit)
    {
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            of[i] = slot();
            if (i < count)
                of[i] = at[i];
            const Element *const from = x + of[i].offset;
            low[i] = high[i] = Element();
            if ((of[i].low & bit) != 0)
                low[i] = load_gathered(from);
            if ((of[i].high & bit) != 0)
                high[i] = load_gathered(from + warp_lanes);
        }
    }
};

/* A warp's slice: its tile (or order::NONE, order::END), its pattern, and the numbers of its slots: none behind
 * the last slice. The members are used a turn after they are loaded, so nothing may be computed from them
 * before. */
struct place {
    int32_t tile, pattern, begin, end;
};

/* The warp's slice at a position of the order, before `end`. */
template <typename Matrix> __device__ place place_of(const Matrix &m, int32_t position, int32_t end)
{
    const int32_t in_launch = position < end ? m.tiles.tile(position) : (int32_t)order::END;
    if (in_launch < 0)
        return {in_launch, 0, 0, 0};
    const int32_t tile = m.tile(in_launch);
    const int64_t slice = (int64_t)tile * WARPS + (int)threadIdx.x % shape::BLOCK / warp_lanes;
    if (slice >= m.slices)
        return {tile, 0, 0, 0};
    return {tile, m.heads[slice].pattern, m.heads[slice].begin, m.heads[slice + 1].begin};
}

/* A warp of strip_kernel. It computes its slices, a batch of AT_ONCE slots after the other. While it gathers x
 * for a batch, the values of the next one are on their way, and the place of the next slice. */
template <typename Shape, int AT_ONCE, typename Load, typename T, typename Stored, typename Element, typename Store>
struct worker {
    const matrix<T, Stored> &m;
    const Element *const x;
    Store &store;
    const Load load;
    const int lane;
    int32_t position, end; /* in the order, behind `next` */
    place now, next;
    int done, parity; /* slots of `now` that are done; of the number of tiles */
    T low, high;
    bool stopped;

    __device__ worker(const matrix<T, Stored> &of, const Element *from, Store &to)
        : m(of), x(from), store(to), load(of.retained), lane((int)threadIdx.x % warp_lanes), done(0), parity(0), low(),
          high(), stopped(false)
    {
        const int64_t positions = m.tiles.positions();
        position = (int32_t)(positions * blockIdx.x / gridDim.x) + Shape::team::number();
        end = (int32_t)(positions * (blockIdx.x + 1) / gridDim.x);
        now = take();
        next = take();
    }

    __device__ place take()
    {
        const place p = place_of(m, position, end);
        position += (int32_t)Shape::team::COUNT;
        return p;
    }

    __device__ bool ends() const
    {
        return now.tile == order::END;
    }

    /* Loads the values of the next batch of `now`. */
    __device__ void load_values(two<Stored> (&value)[AT_ONCE]) const
    {
        const two<Stored> *const from = settled(m.val + (int64_t)(now.begin + done) * warp_lanes + lane);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            value[i] = two<Stored>();
            if (i < now.end - now.begin - done)
                value[i] = load(from + i * warp_lanes);
        }
    }

    /* Computes a batch, whose values are there. Returns whether there is another, whose values are in `behind`. */
    __device__ __forceinline__ bool turn(const two<Stored> (&value)[AT_ONCE], two<Stored> (&behind)[AT_ONCE])
    {
        const uint32_t row = (uint32_t)now.tile * (WARPS * ROWS) +
                             threadIdx.x % shape::BLOCK / warp_lanes * (uint32_t)ROWS + (uint32_t)lane;
        const int32_t tile = now.tile;
        const slot *const at = m.patterns + now.pattern + done;
        const int count = now.end - now.begin - done;
        const bool last = count <= AT_ONCE;
        const uint32_t bit = 1u << lane;
        done += AT_ONCE;
        if (last) {
            now = next;
            done = 0;
            next = take();
        }
        load_values(behind);
        gathered<AT_ONCE, Element> of_x;
        of_x.load(at, count, settled(x + row), bit);
        typename Store::ahead ahead[2] = {};
        if (last && tile >= 0)
            look_ahead(store, row, m.rows, ahead);
        if (stopped) /* tested after the gathers are issued, so that they do not wait for it */
            return false;
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            low += T(value[i].low) * T(of_x.low[i]); /* + 0 where the row has no entry */
            high += T(value[i].high) * T(of_x.high[i]);
        }
        if (last && tile >= 0) {
            store_rows(store, row, m.rows, low, high, ahead);
            store.template end_tile<Shape>(tile, parity);
            parity ^= 1;
        }
        if (last)
            low = high = T();
        return !ends();
    }
};

/* The product where the matrix has values in the order of slots, large and with few slots a slice. */
template <typename Shape, int AT_ONCE, typename Load, typename T, typename Stored, typename Element, typename Store>
__global__ void __launch_bounds__(Shape::THREADS, 1) strip_kernel(matrix<T, Stored> m, const Element *x, Store store)
{
    let_next_begin();
    worker<Shape, AT_ONCE, Load, T, Stored, Element, Store> w(m, x, store);
    two<Stored> even[AT_ONCE], odd[AT_ONCE];
    w.load_values(even);
    await_kernel_before();
    w.stopped = store.stopped();
    for (bool more = !w.ends(); more;)
        more = w.turn(even, odd) && w.turn(odd, even);
}

/* The product where slots have no values of their own. A block computes several tiles of slices, one
 * after the other, and loads where a pattern is one tile ahead. */
template <int AT_ONCE, bool VALUES, typename T, typename Element, typename Store>
__global__ void __launch_bounds__(shape::BLOCK, constant_resident(AT_ONCE))
    constant_kernel(constant_matrix<T> m, const Element *x, Store store)
{
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    const uint32_t bit = 1u << lane;
    const int32_t turns = m.tiles.tiles;
    int32_t turn = (int32_t)blockIdx.x;
    let_next_begin();
    place next = place_of(m, turn, turns);

    await_kernel_before();
    const bool stopped = store.stopped();
    for (int parity = 0; next.tile != order::END; parity ^= 1) {
        const place now = next;
        const int64_t first = ((int64_t)now.tile * WARPS + warp) * ROWS;
        turn += (int32_t)gridDim.x;
        next = place_of(m, turn, turns);
        const Element *const x_from = settled(x + first + lane);
        const slot *const at = m.patterns + now.pattern;
        const int count = now.end - now.begin;
        typename Store::ahead held[2] = {};
        T low = T(), high = T();
        for (int k = 0; k < count; k += AT_ONCE) {
            gathered<AT_ONCE, Element> of_x;
            of_x.load(at + k, count - k, x_from, bit);
            if (stopped) /* tested after the gathers are issued, so that they do not wait for it */
                return;
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const T value = VALUES ? load_gathered(m.value_table + of_x.of[i].code) : T(1);
                if ((of_x.of[i].low & bit) != 0)
                    low += value * T(of_x.low[i]);
                if ((of_x.of[i].high & bit) != 0)
                    high += value * T(of_x.high[i]);
            }
        }
        if (stopped)
            return;
        look_ahead(store, first + lane, m.rows, held);
        store_rows(store, first + lane, m.rows, low, high, held);
        if (m.parts == 0)
            store.template end_tile<shape>(now.tile, parity);
    }
    if (m.parts != 0)
        store.template end_tile<shape>(blockIdx.x);
}

inline int64_t tiles_for(int64_t slices)
{
    return (slices - 1) / WARPS + 1;
}

/* The order of `tiles` tiles, if entries are up to `reach` columns from the diagonal. */
inline order order_of(int64_t tiles, int64_t reach, int element_bytes)
{
    const int64_t rows = (int64_t)WARPS * ROWS, line = (reach + rows / 2) / rows;
    const int64_t most = SPMV_SLICES_STRIP_BYTES / (rows * element_bytes), strips = (line + most / 2) / most;
    if (strips <= 1 || line >= tiles) /* one line */
        return {(int32_t)tiles, (int32_t)tiles, 1, (int32_t)tiles};
    return {(int32_t)tiles, (int32_t)line, (int32_t)((tiles - 1) / line + 1), (int32_t)((line - 1) / strips + 1)};
}

/* The multiprocessors of an H100, in tests fewer. */
#ifndef SPMV_SLICES_MULTIPROCESSORS
#define SPMV_SLICES_MULTIPROCESSORS 132
#endif

/* The blocks of a launch of constant_kernel that leave one part of a dot product each: all begin at once on an
 * H100, and have equal turns. Their number does not depend on the device, so bits do not. */
inline int64_t parts_of_launch(int64_t tiles, bool many)
{
    const int64_t at_once = (int64_t)SPMV_SLICES_MULTIPROCESSORS * constant_resident(many ? ROUND_MANY : ROUND_FEW);
    const int64_t turns = (tiles - 1) / at_once + 1;
    return (tiles - 1) / turns + 1;
}

enum { SHARED_PERCENT = 5 }; /* the rest of an SM's memory caches x and patterns */

template <tiles::values HELD, typename Load, typename Matrix, typename Element, typename Store>
spmv_status run_as(spmv_context *ctx, const Matrix &m, const Element *x, Store store)
{
    const int blocks = m.tiles.tiles;
    return m.many_at_once ? launch_cached<kernel<MANY_AT_ONCE, HELD, Load, Matrix, Element, Store>>(
                                ctx, "spmv slices", blocks, shape::BLOCK, SHARED_PERCENT, m, x, store)
                          : launch_cached<kernel<FEW_AT_ONCE, HELD, Load, Matrix, Element, Store>>(
                                ctx, "spmv slices", blocks, shape::BLOCK, SHARED_PERCENT, m, x, store);
}

template <tiles::values HELD, typename Matrix, typename Element, typename Store>
spmv_status run_with_values(spmv_context *ctx, const Matrix &m, const Element *x, Store store)
{
    return m.retained > 0 ? run_as<HELD, loads<caching::RETAINED>>(ctx, m, x, store)
                          : run_as<HELD, loads<caching::ONCE>>(ctx, m, x, store);
}

template <int AT_ONCE, typename Load, typename T, typename Stored, typename Element, typename Store>
spmv_status run_strips(spmv_context *ctx, const matrix<T, Stored> &m, const Element *x, Store store)
{
    using form = teams_shape<strip_teams(sizeof(T), AT_ONCE == ROUND_MANY)>;
    return launch_cached<strip_kernel<form, AT_ONCE, Load, T, Stored, Element, Store>>(
        ctx, "spmv slices", ((const cuda_state *)ctx->device)->multiprocessors, form::THREADS, SHARED_PERCENT, m, x,
        store);
}

template <typename Load, typename T, typename Stored, typename Element, typename Store>
spmv_status run_strips(spmv_context *ctx, const matrix<T, Stored> &m, const Element *x, Store store)
{
    return m.many_a_round ? run_strips<ROUND_MANY, Load>(ctx, m, x, store)
                          : run_strips<ROUND_FEW, Load>(ctx, m, x, store);
}

template <typename T, typename Stored, typename Element, typename Store>
spmv_status run(spmv_context *ctx, const matrix<T, Stored> &m, const Element *x, Store store)
{
    return !m.strips        ? run_with_values<tiles::values::PLAIN>(ctx, m, x, store)
           : m.retained > 0 ? run_strips<loads<caching::RETAINED>>(ctx, m, x, store)
                            : run_strips<loads<caching::ONCE>>(ctx, m, x, store);
}

template <typename T, typename Store>
spmv_status run(spmv_context *ctx, const coded_matrix<T> &m, const T *x, Store store)
{
    return run_with_values<tiles::values::CODED>(ctx, m, x, store);
}

template <int AT_ONCE, typename T, typename Element, typename Store>
spmv_status run_constant(spmv_context *ctx, const constant_matrix<T> &m, const Element *x, Store store)
{
    /* Many turns a block: loads ahead pay. Few: the multiprocessors would not end together. */
    const int64_t at_once = (int64_t)constant_resident(AT_ONCE) * ((const cuda_state *)ctx->device)->multiprocessors;
    const int64_t tiles = m.tiles.tiles;
    const int blocks = (int)(m.parts != 0 ? m.parts : tiles < CONSTANT_TURNS * at_once ? tiles : at_once);
    if constexpr (std::is_same<T, Element>::value) /* 16-bit values have no table */
        if (m.value_table != nullptr)
            return launch_cached<constant_kernel<AT_ONCE, true, T, Element, Store>>(
                ctx, "spmv slices", blocks, shape::BLOCK, SHARED_PERCENT, m, x, store);
    return launch_cached<constant_kernel<AT_ONCE, false, T, Element, Store>>(ctx, "spmv slices", blocks, shape::BLOCK,
                                                                             SHARED_PERCENT, m, x, store);
}

template <typename T, typename Element, typename Store>
spmv_status run(spmv_context *ctx, const constant_matrix<T> &m, const Element *x, Store store)
{
    return m.many_a_round ? run_constant<ROUND_MANY>(ctx, m, x, store) : run_constant<ROUND_FEW>(ctx, m, x, store);
}

} // namespace slices

#endif
