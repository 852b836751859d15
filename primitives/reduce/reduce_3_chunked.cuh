/* reduce, rung 3: a fixed grid; each thread first folds a part.
 *
 * idea      only as many threads as keep the device busy, p in all. Each folds every p-th element
 *           in a register, so that neighbouring threads read neighbouring elements; then its block
 *           continues as in rung 2, "sequential". A second launch of one block folds the blocks'
 *           results.
 * work      n - 1 operations
 * depth     n / p + log2 p, by Brent's theorem for a tree of n - 1 operations and depth log2 n
 * launches  2 (1 if one block is enough)
 * bytes     n v
 * changed   one tree and its barriers per block, not per 256 elements. The strides reorder the
 *           operands, so the operator must commute.
 * wins      the basis of all fast rungs, which differ in how an element gets to its thread
 * source    R. P. Brent, "The parallel evaluation of general arithmetic expressions", J. ACM 21(2),
 *           1974; Harris 2007, kernel 7
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_REDUCE_3_CHUNKED_CUH
#define SPMV_REDUCE_3_CHUNKED_CUH

#include "primitives/reduce/reduce_2_block.cuh"

/* Blocks of the grid: eight on each of 128 multiprocessors. A constant, not a property of the
 * device, because the bits depend on it. Tests build with fewer, for parts of several elements at
 * small n. */
#ifndef SPMV_REDUCE_GRID
#define SPMV_REDUCE_GRID 1024
#endif
enum { REDUCE_GRID = SPMV_REDUCE_GRID };

inline int64_t reduce_grid(int64_t n)
{
    const int64_t blocks = reduce_ceil(n, REDUCE_THREADS);
    return blocks < REDUCE_GRID ? blocks : (int64_t)REDUCE_GRID;
}

template <typename Op> struct reduce_chunked : reduce_sequential<Op> {
    using block_tree = reduce_sequential<Op>;
    using T = typename Op::type;
    using typename block_tree::registers;
    using typename block_tree::shared;
    int64_t blocks;

    __host__ __device__ void step(int s, int64_t block, int thread, int threads, shared &cell, registers &) const
    {
        if (s == 0)
            fold_part(block, thread, threads, cell);
        else if (s <= REDUCE_HALVINGS)
            this->halve(s, thread, threads, cell);
        else if (thread == 0)
            this->to[block] = cell.x[0];
    }
    __host__ __device__ void fold_part(int64_t block, int thread, int threads, shared &cell) const
    {
        T sum = Op::identity();
        for (int64_t i = block * threads + thread; i < this->count; i += blocks * threads)
            sum = Op()(sum, this->from[i]);
        cell.x[thread] = sum;
    }
    void label(int s, char *text, size_t size) const
    {
        if (s == 0)
            snprintf(text, size, "one part per thread");
        else
            block_tree::label(s, text, size);
    }

    static int64_t scratch_elements(int64_t n)
    {
        return reduce_grid(n);
    }
    template <typename Place>
    static spmv_status run(Place &place, const T *in, T *out, int64_t n, T *scratch, int64_t few, reduce_left<T> *left)
    {
        const int64_t blocks = reduce_grid(n);
        T *const sums = few == 1 && blocks == 1 ? out : scratch;
        const spmv_status st =
            place.run("reduce_chunked", reduce_chunked{{in, sums, n}, blocks}, blocks, REDUCE_THREADS);
        *left = {sums, blocks};
        if (st != SPMV_OK || blocks <= few)
            return st;
        *left = {out, 1};
        return place.run("reduce_chunked (of blocks)", reduce_chunked{{sums, out, blocks}, 1}, 1, REDUCE_THREADS);
    }
};

#endif
