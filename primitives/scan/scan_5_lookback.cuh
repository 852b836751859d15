/* scan, rung 5: one pass, tiles look back.
 *
 * idea      a block takes the next tile, reads it once, 16 bytes at a time, folds it and publishes
 *           the result. It gets the tile's prefix from the states of the tiles before it
 *           (lookback.cuh) while those still work on their own tiles. Then it writes the tile's
 *           scan.
 * work      n operations and a few per thread and tile
 * depth     that of a tile, and one operation per tile
 * launches  1 for a single tile, else 2 (states are reset), and 2 more for every 2^17 tiles of 36
 *           KiB (2^16 with 8-byte elements)
 * bytes     2 n v
 * changed   since rung 3: an element is read once, not twice; blocks wait for each other
 * wins      everywhere
 * order     keeps the order of the operands; bits depend on n alone
 * source    Merrill, Garland 2016
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_5_LOOKBACK_CUH
#define SPMV_SCAN_5_LOOKBACK_CUH

#include <type_traits>

#include "device/lookback.cuh"
#include "device/vector_tiles.cuh"

/* 36 KiB per tile, five blocks per multiprocessor: at most 180 KiB of loads in flight. */
using scan_5_shape = lookback_shape<256, 9, 5>;

/* The best of five shapes on an H100 with 2^28 elements. Elements of 4 bytes gain from a pause of
 * 50 ns between two looks, elements of 8 bytes from larger tiles. */
template <typename Type>
using scan_5_best =
    typename std::conditional<sizeof(Type) <= 4, lookback_shape<256, 9, 5, 50>, lookback_shape<256, 11, 4>>::type;

/* store(i, the scan up to i) for the tiles of one launch, which starts at tile first_tile. */
template <typename Op, typename Shape, typename Load, typename Store>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    scan_lookback(Load load, Store store, int64_t n, int64_t first_tile, lookback_states<typename Op::type> states,
                  bool exclusive)
{
    if constexpr (Shape::left_empty)
        return;
    using Type = typename Op::type;
    using tile = vector_tile<Type, Shape>;
    __shared__ typename tile::vector stage[Shape::threads * tile::vectors];
    __shared__ Type warp_sums[Shape::warps];
    __shared__ Type before_tile;
    __shared__ int number;
    const Op op{};
    const int mine = states.tiles > 1 ? block_draw_ticket<Op>(states, &number) : 0;
    const int64_t begin = (first_tile + mine) * tile::size;
    const int valid = tile_valid(begin, n, tile::size);
    {
        typename tile::vector striped[tile::vectors];
        tile_load<Shape>(load, begin, valid, Op::identity(), striped);
        tile_stage<Shape, Type>(load, valid, striped, stage);
    }
    typename tile::vector *const row = tile_row<Shape, Type>(stage);
    Type sum = Op::identity(), all;
#pragma unroll
    for (int k = 0; k < tile::vectors; k++) {
        const typename tile::vector v = row[k];
#pragma unroll
        for (int j = 0; j < tile::each; j++)
            sum = k + j == 0 ? v.at[0] : op(sum, v.at[j]);
    }
    const Type earlier = block_exclusive<Shape::warps>(op, sum, warp_sums, &all);
    Type through = op(block_look_back(op, states, mine, all, false, &before_tile, Shape::pause_ns), earlier);
#pragma unroll
    for (int k = 0; k < tile::vectors; k++) {
        typename tile::vector v = row[k];
#pragma unroll
        for (int j = 0; j < tile::each; j++) {
            const Type preceding = through;
            through = op(preceding, v.at[j]);
            v.at[j] = exclusive ? preceding : through;
        }
        row[k] = v;
    }
    tile_store<Shape, Type>(store, begin, valid, stage);
}

template <typename Type, typename Shape> int64_t scan_5_tiles(int64_t n)
{
    return n / vector_tile<Type, Shape>::size + (n % vector_tile<Type, Shape>::size != 0);
}

/* Enough for every shape with tiles of at least 20 KiB. */
inline int64_t scan_5_scratch(int64_t element_bytes, int64_t n)
{
    return lookback_scratch(element_bytes, n / (20 * 1024 / element_bytes) + 1);
}

/* store(i, load(0) op ... op load(i)); exclusive: without load(i), starting with the identity.
 * n > 0. Load and store may access the same memory. */
template <typename Op, typename Shape = scan_5_best<typename Op::type>, typename Load, typename Store>
spmv_status scan_5_launch(spmv_context *ctx, Load load, Store store, int64_t n, bool exclusive, void *scratch)
{
    using Type = typename Op::type;
    return lookback_launches<Type>(
        ctx, scan_5_tiles<Type, Shape>(n), scratch, [=](int64_t first_tile, lookback_states<Type> states) {
            return launch(ctx, "scan_lookback", states.tiles, Shape::threads, scan_lookback<Op, Shape, Load, Store>,
                          load, store, n, first_tile, states, exclusive);
        });
}

#endif
