/* Conversion between flags as bytes and flags as bits on CUDA: to bits, one word per thread; to
 * bytes, one pack per thread (map, rung 1).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/map/map_1_packs.cuh"
#include "primitives/segscan/segscan_5_lookback.cuh"

enum { FLAGS_TILE = 32 * block_threads }; /* flags of a block */

static __global__ void __launch_bounds__(block_threads) flags_pack(const uint8_t *flags, uint32_t *bits, int64_t n)
{
    const int64_t stride = (int64_t)gridDim.x * FLAGS_TILE;
    for (int64_t begin = (int64_t)blockIdx.x * FLAGS_TILE; begin < n; begin += stride) {
        const int valid = tile_valid(begin, n, FLAGS_TILE);
        const unsigned word = load_flags(flags, begin, valid);
        if (32 * (int)threadIdx.x < valid)
            bits[begin / 32 + threadIdx.x] = word;
    }
}

struct map_of_bits {
    using type = uint8_t;
    const uint32_t *bits;

    bool aligned() const
    {
        return true;
    }
    template <int V> __device__ pack<type, V> get(int64_t p, int64_t) const
    {
        const uint32_t some = bits[p * V / 32] >> (p * V % 32);
        pack<type, V> x;
#pragma unroll
        for (int j = 0; j < V; j++)
            x.at[j] = (type)(some >> j & 1u);
        return x;
    }
};

extern "C" spmv_status flags_pack_cuda(spmv_context *ctx, const uint8_t *flags, uint32_t *bits, int64_t n)
{
    return on_device(ctx, [=] {
        return launch(ctx, "flags_pack", grid_for(n, FLAGS_TILE), block_threads, flags_pack, flags, bits, n);
    });
}

extern "C" spmv_status flags_unpack_cuda(spmv_context *ctx, const uint32_t *bits, uint8_t *flags, int64_t n)
{
    return on_device(ctx, [=] { return map_1_launch(ctx, "map_packs (flags_unpack)", map_of_bits{bits}, flags, n); });
}
