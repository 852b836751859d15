/* Copies between vectors stored by columns and by rows on the device (product/by_columns.c).
 *
 * A block has tiles of 32 rows and up to 32 columns, which pass through shared memory: there
 * neighbouring threads go along the rows of one array and along the columns of the other, so both
 * are read or written in whole lines. With fewer columns a tile has more rows. A column of the tile
 * is one element longer than its rows, so that neighbouring threads are in different banks in both
 * directions.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/launch.cuh"
#include "product/cuda/spmv_types.cuh"

namespace
{

enum { TILE_LOG = 10, TILE = 1 << TILE_LOG, COLUMNS_LOG = 5, COLUMNS = 1 << COLUMNS_LOG, THREADS = 256 };

/* down: tiles below each other; tiles: all. */
template <typename Element>
__global__ void __launch_bounds__(THREADS) turn_tiles(plan_turn t, int columns_log, int64_t down, int64_t tiles)
{
    __shared__ Element tile[TILE + COLUMNS];
    const int rows_log = TILE_LOG - columns_log, rows = 1 << rows_log;
    for (int64_t number = blockIdx.x; number < tiles; number += gridDim.x) {
        const int64_t row = number % down << rows_log;
        const int column = (int)(number / down) * COLUMNS;
        Element *const by_rows = (Element *)t.rows + row * t.row_stride + column;
        Element *const by_columns = (Element *)t.columns + column * t.column_stride + row;
        /* Element (i, v) of the tile is in both arrays. */
        const auto in_both = [&](int i, int v) { return row + i < t.n && column + v < t.k; };
        const auto along_rows = [&](auto visit) {
#pragma unroll
            for (int e = (int)threadIdx.x; e < TILE; e += THREADS) {
                const int i = e >> columns_log, v = e & ((1 << columns_log) - 1);
                if (in_both(i, v))
                    visit(by_rows[i * t.row_stride + v], tile[v * (rows + 1) + i]);
            }
        };
        const auto along_columns = [&](auto visit) {
#pragma unroll
            for (int e = (int)threadIdx.x; e < TILE; e += THREADS) {
                const int i = e & (rows - 1), v = e >> rows_log;
                if (in_both(i, v))
                    visit(by_columns[v * t.column_stride + i], tile[v * (rows + 1) + i]);
            }
        };
        const auto load = [](const Element &from, Element &to) { to = from; };
        const auto store = [](Element &to, const Element &from) { to = from; };
        __syncthreads();
        if (t.to_rows)
            along_columns(load);
        else
            along_rows(load);
        __syncthreads();
        if (t.to_rows)
            along_rows(store);
        else
            along_columns(store);
    }
}

template <typename Element> spmv_status run(spmv_context *ctx, const plan_turn *t)
{
    int columns_log = 0;
    while (columns_log < COLUMNS_LOG && 1 << columns_log < t->k)
        columns_log++;
    const int64_t down = ceil_divide(t->n, (int64_t)TILE >> columns_log);
    const int64_t tiles = down * ceil_divide(t->k, COLUMNS);
    return on_device(ctx, [&] {
        return launch(ctx, "spmv turn", grid_for(tiles, 1), THREADS, turn_tiles<Element>, *t, columns_log, down, tiles);
    });
}

} // namespace

extern "C" spmv_status turn_cuda(spmv_context *ctx, const plan_turn *t)
{
    return t->size == 2   ? run<uint16_t>(ctx, t)
           : t->size == 4 ? run<uint32_t>(ctx, t)
           : t->size == 8 ? run<uint64_t>(ctx, t)
                          : run<spmv_c128>(ctx, t);
}
