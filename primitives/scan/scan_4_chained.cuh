/* scan, rung 4: one pass; each block waits for its left neighbour (adjacent synchronisation).
 *
 * idea      each block scans its elements, waits until its left neighbour has published the sum up
 *           to its own end, adds its own sum to it and publishes the result, and adds the
 *           neighbour's sum to its elements while they are still in shared memory
 * work      that of the block scans, and n for adding
 * depth     a block scan and one operation per block
 * launches  2 (the first one clears the flags)
 * bytes     2 n v: each element is read once and written once
 * changed   half the reads; sums are passed on by a flag, not by the end of a launch
 * wins      over rung 3 when memory is the limit. The sums go from neighbour to neighbour, about a
 *           microsecond per block, which limits short blocks; rung 5 looks back further than one
 *           block.
 * order     keeps the order of the operands. The prefix of a block is the left fold of the sums
 *           before it, whatever the timing, so bits depend on n and the block size alone. Blocks
 *           draw tickets; adjacent.cuh explains why they all finish.
 * source    S. Yan, G. Long, Y. Zhang, "StreamScan: fast scan algorithms for GPUs without global
 *           barrier synchronization", PPoPP 2013; D. Merrill, M. Garland, "Single-pass parallel
 *           prefix scan with decoupled look-back", NVR-2016-002, 2016
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_4_CHAINED_CUH
#define SPMV_SCAN_4_CHAINED_CUH

#include "device/adjacent.cuh"
#include "primitives/scan/scan_2_blelloch.cuh"

/* A ticket per launch, and a flag per block. */
struct chain_links {
    unsigned long long *ticket;
    unsigned *flag;
};

enum { CHAIN_THREADS = 256 };

struct clear_links {
    chain_links links;
    int64_t blocks;

    struct shared {
        char unused;
    };
    struct registers {
    };

    __host__ __device__ int steps() const
    {
        return 1;
    }

    __host__ __device__ void step(int, int64_t block, int thread, int threads, shared &, registers &) const
    {
        const int64_t i = block * threads + thread;
        if (i == 0)
            *links.ticket = 0;
        if (i < blocks)
            links.flag[i] = 0;
    }

    void label(int, char *text, size_t size) const
    {
        snprintf(text, size, "clear the flags");
    }

    const char *cells(int, int64_t, const shared &, int *count) const
    {
        *count = 0;
        return NULL;
    }
};

template <typename Block, typename Load, typename Store> struct scan_chained {
    using Op = typename Block::operation;
    using T = typename Op::type;
    Block block;
    Load load;
    Store store;
    int64_t n;
    chain_links links;
    T *through; /* of each block: the sum of all elements up to its end */

    struct shared {
        T cell[Block::CELLS];
        T before;
        int64_t number;
    };
    using registers = typename Block::registers;

    __host__ __device__ int steps() const
    {
        return block.steps() + 4;
    }

    __host__ __device__ void step(int s, int64_t, int thread, int threads, shared &mem, registers &mine) const
    {
        const Op op{};
        if (s == 0) {
            if (thread == 0)
                mem.number = take_ticket(links.ticket);
            return;
        }
        const int64_t begin = mem.number * block.size;
        if (s == 1) {
            for (int i = thread; i < block.size; i += threads)
                block.place(i, begin + i < n ? load(begin + i) : Op::identity(), mem.cell, mine);
        } else if (s <= block.steps() + 1) {
            block.step(s - 2, thread, mem.cell, mine);
        } else if (s == block.steps() + 2) {
            if (thread == block.knows())
                pass_on(mem, block.sum(mem.cell, mine));
        } else {
            const T *result = mem.cell + block.begin(block.steps());
            for (int i = thread; i < block.size; i += threads)
                if (begin + i < n)
                    store(begin + i, mem.number > 0 ? op(mem.before, result[i]) : result[i]);
        }
    }

    __host__ __device__ void pass_on(shared &mem, T sum) const
    {
        const int64_t number = mem.number;
        if (number > 0) {
            while (!flag_is_up(&links.flag[number - 1])) {
            }
            mem.before = through[number - 1];
            sum = Op()(mem.before, sum);
        }
        through[number] = sum;
        raise_flag(&links.flag[number]);
    }

    void label(int s, char *text, size_t size) const
    {
        if (s < 2)
            snprintf(text, size, "%s", s == 0 ? "take a ticket" : "load");
        else if (s <= block.steps() + 1)
            block.label(s - 2, text, size);
        else
            snprintf(text, size, "%s",
                     s == block.steps() + 2 ? "read the sum before, publish the sum up to here"
                                            : "add the sum before, store");
    }

    const T *cells(int s, int64_t, const shared &mem, int *count) const
    {
        const int done = s < 1 ? 0 : s - 1;
        *count = s == 0 ? 0 : block.size;
        return mem.cell + block.begin(done < block.steps() ? done : block.steps());
    }
};

/* Bytes of scratch: the ticket, padded for the alignment of the sums; the sums; the flags. */
enum { CHAIN_TICKET_BYTES = 16 };

inline int64_t scan_4_scratch(int64_t n, int size, int64_t element_bytes)
{
    const int64_t blocks = (n + size - 1) / size;
    return CHAIN_TICKET_BYTES + blocks * element_bytes + blocks * (int64_t)sizeof(unsigned);
}

/* store(i, the scan up to i). Load and store may access the same memory. */
template <template <typename> class Block, typename Op, typename Place, typename Load, typename Store>
spmv_status scan_4_launch(Place &place, Load load, Store store, int64_t n, int size, bool exclusive, void *scratch)
{
    using T = typename Op::type;
    const Block<Op> block{size, exclusive};
    const int64_t blocks = (n + size - 1) / size;
    T *through = (T *)((char *)scratch + CHAIN_TICKET_BYTES);
    const chain_links links = {(unsigned long long *)scratch, (unsigned *)(through + blocks)};
    const spmv_status st = place.run("clear_links", clear_links{links, blocks},
                                     (blocks + CHAIN_THREADS - 1) / CHAIN_THREADS, CHAIN_THREADS);
    return st != SPMV_OK
               ? st
               : place.run("scan_chained", scan_chained<Block<Op>, Load, Store>{block, load, store, n, links, through},
                           blocks, block.threads());
}

#endif
