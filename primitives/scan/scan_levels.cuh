/* scan, rungs 1 and 2 carried to any length: level by level.
 *
 * Idea: scan every block by itself, with any block algorithm; scan the sums of the blocks, the same way if they are
 * more than a block; add to each block what stands before it. With B elements a block n elements have log_B n levels.
 * Work that of the block scans, and n for adding back; depth that of a block scan, twice log_B n times;
 * launches 2 log_B n - 1; bytes moved 4 n v (1 + 1/B + ...): each element is read and written twice.
 * Since the block scan: any length. Since this, rung 3 folds first and scans last, so that n v are not written twice.
 * Wins: what a block algorithm can do is enough for every n, and blocks never wait for each other.
 * Keeps the order of the operands; bits depend on n and B alone.
 * The sums of the blocks can be read off afterwards by a launch of their own (block_sums) or be written by the thread
 * that knows them while the block is still there (scan_blocks, merged): a launch less. Sengupta, Harris, Zhang, Owens,
 * "Scan primitives for GPU computing", 2007; Harris et al., GPU Gems 3, chapter 39.2.4.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_LEVELS_CUH
#define SPMV_SCAN_LEVELS_CUH

#include <stdio.h>

#include "ops.cuh"
#include "steps.cuh"

/* The blocks of load's n elements scanned one by one into store; nothing is propagated. sums[b]: the sum of block b
 * (NULL: not wanted). What follows n within the last block counts as the identity. */
template <typename Block, typename Load, typename Store> struct scan_blocks {
    using Op = typename Block::operation;
    using T = typename Op::type;
    Block block;
    Load load;
    Store store;
    int64_t n;
    T *sums;

    struct shared {
        T cell[Block::CELLS];
    };
    using registers = typename Block::registers;

    __host__ __device__ int steps() const
    {
        return block.steps() + 2;
    }

    __host__ __device__ void step(int s, int64_t b, int thread, int threads, shared &mem, registers &mine) const
    {
        const int64_t begin = b * block.size;
        if (s == 0) {
            for (int i = thread; i < block.size; i += threads)
                block.place(i, begin + i < n ? load(begin + i) : Op::identity(), mem.cell, mine);
        } else if (s <= block.steps()) {
            block.step(s - 1, thread, mem.cell, mine);
        } else {
            const T *result = mem.cell + block.begin(block.steps());
            for (int i = thread; i < block.size; i += threads)
                if (begin + i < n)
                    store(begin + i, result[i]);
            if (sums != NULL && thread == block.knows())
                sums[b] = block.sum(mem.cell, mine);
        }
    }

    void label(int s, char *text, size_t size) const
    {
        if (s == 0 || s > block.steps())
            snprintf(text, size, "%s", s == 0 ? "load" : "store");
        else
            block.label(s - 1, text, size);
    }

    const T *cells(int s, int64_t, const shared &mem, int *count) const
    {
        *count = block.size;
        return mem.cell + block.begin(s < block.steps() ? s : block.steps());
    }
};

enum { LEVELS_THREADS = 256 };

/* sums[b] = the sum of block b, read off its scan. An exclusive scan lacks the last element: in must still be there. */
template <typename Op> struct block_sums {
    using T = typename Op::type;
    const T *in, *scanned;
    T *sums;
    int64_t n;
    int size;
    bool exclusive;

    struct shared {
        T cell[LEVELS_THREADS];
    };
    struct registers {
    };

    __host__ __device__ int steps() const
    {
        return 1;
    }

    __host__ __device__ void step(int, int64_t block, int thread, int threads, shared &mem, registers &) const
    {
        const int64_t b = block * threads + thread;
        if (b * size >= n)
            return;
        const int64_t last = (b + 1) * size < n ? (b + 1) * size - 1 : n - 1;
        mem.cell[thread] = exclusive ? Op()(scanned[last], in[last]) : scanned[last];
        sums[b] = mem.cell[thread];
    }

    void label(int, char *text, size_t size_of_text) const
    {
        snprintf(text, size_of_text, "read the sums");
    }

    const T *cells(int, int64_t block, const shared &mem, int *count) const
    {
        const int64_t rest = (n + size - 1) / size - block * LEVELS_THREADS;
        *count = rest < LEVELS_THREADS ? (int)rest : (int)LEVELS_THREADS;
        return mem.cell;
    }
};

/* out[i] = (what stands before i's block) op out[i]; before[b - 1]: the sum of all blocks before b. A block of this
 * launch is a block of the scan, the first of which has nothing to add. */
template <typename Op> struct add_before {
    using T = typename Op::type;
    const T *before;
    T *out;
    int64_t n;
    int size;

    struct shared {
        T cell[SCAN_BLOCK_MOST];
    };
    struct registers {
    };

    __host__ __device__ int steps() const
    {
        return 1;
    }

    __host__ __device__ void step(int, int64_t block, int thread, int threads, shared &mem, registers &) const
    {
        const Op op{};
        const int64_t begin = (block + 1) * size;
        for (int i = thread; i < size; i += threads) {
            if (begin + i >= n)
                return;
            mem.cell[i] = op(before[block], out[begin + i]);
            out[begin + i] = mem.cell[i];
        }
    }

    void label(int, char *text, size_t size_of_text) const
    {
        snprintf(text, size_of_text, "add the sum before the block");
    }

    const T *cells(int, int64_t block, const shared &mem, int *count) const
    {
        const int64_t rest = n - (block + 1) * size;
        *count = rest < size ? (int)rest : size;
        return mem.cell;
    }
};

/* Elements of scratch. */
inline int64_t scan_levels_scratch(int64_t n, int size)
{
    int64_t sums = 0;
    while (n > size) {
        n = (n + size - 1) / size;
        sums += n;
    }
    return sums;
}

/* out[i] = load(0) op ... op load(i), or without load(i) and starting from the identity; n > 0. load may read out.
 * sums: scan_levels_scratch elements. */
template <template <typename> class Block, typename Op, typename Place, typename Load>
spmv_status scan_levels(Place &place, Load load, typename Op::type *out, int64_t n, int size, bool exclusive,
                        typename Op::type *sums)
{
    using T = typename Op::type;
    const Block<Op> block{size, exclusive};
    const int64_t blocks = (n + size - 1) / size;
    spmv_status st =
        place.run(Block<Op>::name(),
                  scan_blocks<Block<Op>, Load, store_array<T>>{block, load, {out}, n, blocks > 1 ? sums : NULL}, blocks,
                  block.threads());
    if (st != SPMV_OK || blocks == 1)
        return st;
    st = scan_levels<Block, Op>(place, load_array<T>{sums}, sums, blocks, size, false, sums + blocks);
    if (st != SPMV_OK)
        return st;
    return place.run("add_before", add_before<Op>{sums, out, n, size}, blocks - 1,
                     size < LEVELS_THREADS ? size : (int)LEVELS_THREADS);
}

#endif
