/* reduce, rung 3: a fixed grid; each thread folds a part first.
 *
 * Idea: as many threads as keep the device busy and no more. Each folds every (threads of the grid)-th element in a
 * register, neighbours next to neighbours, then its block goes on as in rung 2b. A second launch of one block folds the
 * blocks' results.
 * Work n - 1 operations; depth n / p + log2 p with p threads: Brent's theorem says that a tree of n - 1 operations and
 * depth log2 n needs no more on p processors; launches 2 (1 when one block is enough); bytes moved n v.
 * Changed: the tree is paid once a block instead of once in 256 elements, the barriers with it. The strides reorder the
 * operands, so the operator must commute.
 * Wins: it is what all fast rungs do; they differ in how an element gets to its thread.
 * R. P. Brent, "The parallel evaluation of general arithmetic expressions", J. ACM 21(2), 1974; Harris 2007, kernel 7.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_REDUCE_3_CHUNKED_CUH
#define SPMV_REDUCE_3_CHUNKED_CUH

#include "reduce_levels.cuh"

/* Blocks of the grid: eight on each of 128 multiprocessors. Not asked of the device, because the bits follow it. Tests
 * build with fewer, for parts of several elements at small n. */
#ifndef SPMV_REDUCE_GRID
#define SPMV_REDUCE_GRID 1024
#endif
enum { REDUCE_GRID = SPMV_REDUCE_GRID };

inline int64_t reduce_grid(int64_t n)
{
    const int64_t blocks = reduce_ceil(n, REDUCE_THREADS);
    return blocks < REDUCE_GRID ? blocks : (int64_t)REDUCE_GRID;
}

template <typename Op> struct reduce_chunked {
    using T = typename Op::type;
    using shared = reduce_cells<T>;
    using registers = reduce_nothing;
    const T *from;
    T *to;
    int64_t count, blocks;

    __host__ __device__ int steps() const
    {
        return 1 + REDUCE_HALVINGS + 1;
    }
    __host__ __device__ void step(int s, int64_t block, int thread, int threads, shared &cell, registers &) const
    {
        if (s == 0) {
            T sum = Op::identity();
            for (int64_t i = block * threads + thread; i < count; i += blocks * threads)
                sum = Op()(sum, from[i]);
            cell.x[thread] = sum;
        } else if (s <= REDUCE_HALVINGS) {
            const int apart = threads >> s;
            if (thread < apart)
                cell.x[thread] = Op()(cell.x[thread], cell.x[thread + apart]);
        } else if (thread == 0) {
            to[block] = cell.x[0];
        }
    }
    void label(int s, char *text, size_t size) const
    {
        if (s == 0)
            snprintf(text, size, "a part a thread");
        else if (s <= REDUCE_HALVINGS)
            snprintf(text, size, "the first %d cells: and the ones %d on", REDUCE_THREADS >> s, REDUCE_THREADS >> s);
        else
            snprintf(text, size, "the block's result");
    }
    const T *cells(int, int64_t block, const shared &cell, int *length) const
    {
        *length = reduce_room(count - block * REDUCE_THREADS);
        return cell.x;
    }
    bool idle(int s, int64_t block) const
    {
        return reduce_idle(s, REDUCE_THREADS >> s, count - block * REDUCE_THREADS);
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
        const spmv_status st = place.run("reduce_chunked", reduce_chunked{in, sums, n, blocks}, blocks, REDUCE_THREADS);
        *left = {sums, blocks};
        if (st != SPMV_OK || blocks <= few)
            return st;
        *left = {out, 1};
        return place.run("reduce_chunked (of blocks)", reduce_chunked{sums, out, blocks, 1}, 1, REDUCE_THREADS);
    }
};

#endif
