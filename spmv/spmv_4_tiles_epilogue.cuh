/* The epilogue of rung 4's product (spmv_apply_with): another storer.
 *
 * Idea: a thread that has a row's element of y multiplies it by w's at once, and adds it to z's; at the end of a tile
 * the threads' sums are one, in a fixed tree. The tiles' sums are the leaves of a tree, 32 a node: a block leaves its
 * own in memory and counts itself, the last to arrive at a node folds the node's 32 in their order and arrives at the
 * next one with that, and the last of all has the dot product. Which block that is depends on the clock, the order of
 * the operands does not; nobody waits, and counters spread over memory never queue. Launches: none besides the
 * product's. Bytes: w and z; y is not read again.
 *
 * Long rows: the leaf of a row's first piece is what the row adds, the leaves of its other pieces are 0, whichever
 * piece comes last and stores the row. Every piece arrives at its own leaf at once, but for the first, for which the
 * one that stores does.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_4_TILES_EPILOGUE_CUH
#define SPMV_4_TILES_EPILOGUE_CUH

#include "spmv_4_tiles.cuh"

namespace tiles
{

/* A level after the other, the leaves first; the root is *out. Where out is NULL, only the leaves are there, and
 * whoever wants the sum adds them up. */
template <typename T> struct sum_tree {
    int64_t leaves;
    T *sums, *out;
    unsigned *counts; /* a node, but for leaves; 0 between launches */
};

/* The numbers of sums and of counts of a tree. */
struct tree_size {
    int64_t sums, counts;

    explicit tree_size(int64_t leaves) : sums(0), counts(0)
    {
        for (int64_t n = leaves; n > 1; n = (n - 1) / GROUP + 1) {
            sums += n;
            counts += (n - 1) / GROUP + 1;
        }
        sums = sums > 0 ? sums : 1;
    }
};

/* A leaf is the sum in lane 0 of the warp that calls. */
template <typename T> __device__ void climb(const sum_tree<T> &tree, int64_t leaf, T sum)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    T *level = tree.sums;
    unsigned *counts = tree.counts;
    int64_t place = leaf;
    if (tree.out == nullptr) {
        if (lane == 0)
            level[leaf] = sum;
        return;
    }
    for (int64_t n = tree.leaves, nodes; n > 1; n = nodes) {
        const int64_t node = place / GROUP;
        nodes = (n - 1) / GROUP + 1;
        const int members = node < nodes - 1 ? (int)GROUP : (int)(n - node * GROUP);
        if (lane == 0)
            level[place] = sum;
        if (!arrives_last(counts + node, members))
            return;
        sum = warp_sum(lane < members ? load_shared_sum(level + node * GROUP + lane) : T(), warp_lanes);
        level += n;
        counts += nodes;
        place = node;
    }
    if (lane == 0)
        *tree.out = sum;
}

template <typename T> struct store_with_epilogue {
    enum { HEAVY = true };
    scaling<T> s;
    T *y;
    const T *w, *gamma; /* w NULL: no dot product; gamma NULL: 1 */
    T *z;               /* NULL: no axpy */
    sum_tree<T> tree;
    const int *stop; /* of the plan */
    T part;          /* the thread's of the dot product */

    __device__ bool stopped() const
    {
        return stop != nullptr && *stop != 0;
    }

    /* The element of w, which would else be waited for at the end of a tile; by a load that stays where it stands. */
    struct ahead {
        T w;
    };

    __device__ ahead look_ahead(int64_t row) const
    {
        return {w != nullptr && w != y ? load_gathered(w + row) : T()};
    }

    __device__ void operator()(int64_t row, T sum, ahead of_row)
    {
        const T value = s.value(sum, &y[row]);
        y[row] = value;
        if (w != nullptr)
            part += conjugated(w == y ? value : of_row.w) * value;
        if (z != nullptr)
            z[row] = load_whole(z + row) + scaled_by(gamma, value);
    }

    template <typename Shape> __device__ void end_tile(int64_t t)
    {
        constexpr int BLOCK_WARPS = Shape::BLOCK / warp_lanes;
        __shared__ T warp_parts[BLOCK_WARPS];
        const int thread = (int)threadIdx.x;
        if (w == nullptr)
            return;
        const T sum = warp_sum(part, warp_lanes);
        if (thread % warp_lanes == 0)
            warp_parts[thread / warp_lanes] = sum;
        __syncthreads();
        if (thread < warp_lanes)
            climb(tree, t, warp_sum(thread < BLOCK_WARPS ? warp_parts[thread] : T(), BLOCK_WARPS));
    }

    __device__ void end_piece(int64_t t, int64_t first_tile, bool stored)
    {
        if (w == nullptr)
            return;
        if (t != first_tile)
            climb(tree, t, T());
        if (stored)
            climb(tree, first_tile, part);
    }
};

} // namespace tiles

#endif
