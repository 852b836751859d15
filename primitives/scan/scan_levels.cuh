/* scan, rungs 1 and 2 extended to any length, level by level.
 *
 * idea      scan every block independently with any block algorithm; scan the blocks' sums, in the
 *           same way if there is more than one block of them; add its prefix to each block. With B
 *           elements per block, n elements have log_B n levels.
 * work      that of the block scans, and n for adding
 * depth     that of a block scan, 2 log_B n times
 * launches  2 log_B n - 1
 * bytes     4 n v (1 + 1/B + ...): each element is read and written twice
 * changed   since the block scan: any length
 * wins      works for every n with any block algorithm, and blocks never wait for each other; rung
 *           3 folds first and scans last, so it writes n v once
 * order     keeps the order of the operands; bits depend on n and B alone
 * source    Sengupta, Harris, Zhang, Owens, "Scan primitives for GPU computing", 2007; Harris et
 *           al., GPU Gems 3, chapter 39.2.4
 *
 * The sums of the blocks are computed either afterwards by a separate launch (block_sum), or by
 * the thread that has the sum during the block scan (scan_blocks), which saves a launch.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_LEVELS_CUH
#define SPMV_SCAN_LEVELS_CUH

#include <stdio.h>

#include "device/ops.cuh"
#include "device/steps.cuh"

/* Scans each block of load's n elements independently into store. sums[b]: the sum of block b
 * (NULL: not computed). Missing elements of the last block are the identity. */
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

/* sums[b] = the sum of block b, computed from its scan. An exclusive scan lacks the last element,
 * so in must still exist. */
template <typename Op> struct block_sum {
    using T = typename Op::type;
    const T *in, *scanned;
    T *sums;
    int64_t n;
    int size;
    bool exclusive;

    __host__ __device__ T operator()(int64_t b) const
    {
        const int64_t last = (b + 1) * size < n ? (b + 1) * size - 1 : n - 1;
        return sums[b] = exclusive ? Op()(scanned[last], in[last]) : scanned[last];
    }

    const char *label() const
    {
        return "read the sums";
    }
};

/* out[i] = (the prefix of i's block) op out[i]; before[b - 1]: the sum of all blocks before b.
 * Block b of the launch processes block b + 1 of the scan, because the first block has nothing to
 * add. */
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

/* out[i] = load(0) op ... op load(i); exclusive: without load(i), starting with the identity.
 * n > 0. load may read out. sums: scan_levels_scratch elements. */
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
                     size < EACH_THREADS ? size : (int)EACH_THREADS);
}

#endif
