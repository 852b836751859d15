/* The epilogue of rung 4's product (spmv_apply_with), implemented as another storer.
 *
 * Idea: the thread that holds an element of y multiplies it by w's and adds it to z's. At the end
 * of a tile, a fixed tree adds the threads' products. The sums of the tiles are the leaves of a
 * tree with FAN_IN children a node. A block stores its leaf and increments the node's counter. The
 * last block to arrive at a node adds the node's sums in their order and continues with the parent;
 * the last one at the root has the dot product. Timing decides which block adds, but not the order
 * of the operands. No block waits, and counters at different addresses do not serialize. Launches:
 * none besides the product's. Bytes: w and z; y is not read again.
 *
 * Long rows: the leaf of a row's first fragment is the contribution of the row, and the leaves of
 * its other fragments are 0, whichever fragment arrives last and stores the row. Each fragment but
 * the first adds its own leaf; the fragment that stores the row adds the leaf of the first.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_4_TILES_EPILOGUE_CUH
#define SPMV_4_TILES_EPILOGUE_CUH

#include "product/cuda/spmv_types.cuh"
#include "product/cuda/tiles/spmv_4_tiles.cuh"

namespace tiles
{

/* The levels of the tree one after the other, leaves first; *out receives the root. Where out is
 * NULL, only the leaves are written, and the caller adds them. */
template <typename T> struct sum_tree {
    int64_t leaves;
    T *sums, *out;
    unsigned *counts; /* one for each inner node; 0 between launches */
};

/* The numbers of sums and of counters of a tree. */
struct tree_size {
    int64_t sums, counts;

    explicit tree_size(int64_t leaves) : sums(0), counts(0)
    {
        for (int64_t n = leaves; n > 1; n = (n - 1) / FAN_IN + 1) {
            sums += n;
            counts += (n - 1) / FAN_IN + 1;
        }
        sums = sums > 0 ? sums : 1;
    }
};

/* Adds a leaf, whose sum is in lane 0 of the calling warp. */
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
        const int64_t node = place / FAN_IN;
        nodes = (n - 1) / FAN_IN + 1;
        const int members = node < nodes - 1 ? (int)FAN_IN : (int)(n - node * FAN_IN);
        if (lane == 0)
            level[place] = sum;
        if (!arrives_last(counts + node, members))
            return;
        sum = warp_sum(lane < members ? load_shared_sum(level + node * FAN_IN + lane) : T(), warp_lanes);
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
    const int *stop;         /* plan_product.stop */
    T *squares;              /* the parts of plan_product.squares; NULL: none */
    const T *weight, *scale; /* weight NULL: 1 */
    T part, square;          /* the thread's parts of the dot product and of the squares */

    __device__ bool stopped() const
    {
        return stop != nullptr && *stop != 0;
    }

    /* The element of w, loaded early so that the end of a tile does not wait for it. */
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
        if (squares != nullptr) {
            const T scaled = load_gathered(scale) * value;
            square += (weight != nullptr ? weight[row] * scaled : scaled) * scaled;
        }
        if (z != nullptr)
            z[row] = load_whole(z + row) + scaled_by(gamma, value);
    }

    /* parity: 0 and 1 by turns where a team has several tiles, so that one barrier a tile suffices. */
    template <typename Shape> __device__ void end_tile(int64_t t, int parity = 0)
    {
        using team = typename Shape::team;
        constexpr int BLOCK_WARPS = Shape::BLOCK / warp_lanes, HALF = warp_lanes / 2;
        static_assert(BLOCK_WARPS <= HALF, "half a warp adds the sums of all warps");
        __shared__ T parts_of_turns[team::COUNT][2][2][BLOCK_WARPS];
        T(*const warp_parts)[BLOCK_WARPS] = parts_of_turns[team::number()][parity];
        const int thread = team::thread(), sum_of = thread % warp_lanes / HALF, place = thread % HALF;
        if (w == nullptr)
            return;
        const T sum = warp_sum_two(part, square);
        part = square = T();
        if (place == 0)
            warp_parts[sum_of][thread / warp_lanes] = sum;
        team::sync();
        if (thread < warp_lanes)
            leave(t, warp_sum(place < BLOCK_WARPS ? warp_parts[sum_of][place] : T(), BLOCK_WARPS));
    }

    /* For one warp. Lane 0 has the part of the dot product, lane 16 that of the squares. */
    __device__ void leave(int64_t leaf, T sum) const
    {
        if (squares != nullptr && threadIdx.x % warp_lanes == warp_lanes / 2)
            squares[leaf] = sum;
        climb(tree, leaf, sum);
    }

    __device__ void end_fragment(int64_t t, int64_t first_tile, bool stored)
    {
        if (w == nullptr)
            return;
        if (t != first_tile)
            leave(t, T());
        if (stored)
            leave(first_tile, warp_sum_two(part, square));
    }
};

/* multiply(store) with the product's storer: with an epilogue, its tree has `leaves` leaves. sums,
 * counts: the plan's memory for the tree. Element: of x and y. */
template <typename T, typename Element = T, typename Multiply>
spmv_status with_store(const plan_product *p, int64_t leaves, void *sums, unsigned *counts, Multiply multiply)
{
    const scaling<T> s = {*(const T *)p->alpha, *(const T *)p->beta, p->beta_zero};
    if constexpr (std::is_same<T, Element>::value) { /* 16-bit vectors have no epilogue */
        const spmv_epilogue *const e = p->epilogue;
        if (e != nullptr) {
            const sum_tree<T> tree = {leaves, (T *)sums, p->leaves_parts ? nullptr : (T *)e->dot, counts};
            return multiply(store_with_epilogue<T>{s, (T *)p->y, (const T *)e->w, (const T *)e->gamma, (T *)e->z, tree,
                                                   p->stop, (T *)p->squares.parts, (const T *)p->squares.weight,
                                                   (const T *)p->squares.scale, T(), T()});
        }
    }
    return multiply(store_scaled<T, Element>{s, (Element *)p->y});
}

} // namespace tiles

#endif
