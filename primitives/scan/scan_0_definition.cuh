/* scan, rung 0: the definition, and the sequential loop.
 *
 * "definition"
 * idea      out[i] = in[0] op ... op in[i], computed by one thread for each i, from left to right
 * work      n (n - 1) / 2 operations
 * depth     n - 1
 * launches  1 (in place 2, because a thread reads what another overwrites)
 * bytes     n^2 v / 2, most of them from caches
 * wins      simple: the reference for the other rungs. Slower than they are beyond a few dozen
 *           elements.
 *
 * "sequential"
 * idea      one thread, from left to right, each result from the one before
 * work      n - 1 operations
 * depth     n - 1
 * launches  1
 * bytes     2 n v
 * changed   the result for i - 1 is used for i, so the work is not parallel
 * wins      on one processor; no other rung does less work
 *
 * Both keep the order of the operands and give the same bits.
 * Source: G. E. Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990, section 1.1.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_0_DEFINITION_CUH
#define SPMV_SCAN_0_DEFINITION_CUH

#include <stdio.h>

#include "device/ops.cuh"
#include "device/steps.cuh"

enum { DEFINITION_THREADS = 256 };

template <typename Op, typename Load, typename Store> struct scan_definition {
    using T = typename Op::type;
    Load load;
    Store store;
    int64_t n;
    bool exclusive;

    struct shared {
        T cell[DEFINITION_THREADS];
    };
    struct registers {
    };

    __host__ __device__ int steps() const
    {
        return 2;
    }

    __host__ __device__ void step(int s, int64_t block, int thread, int threads, shared &mem, registers &) const
    {
        const int64_t i = block * threads + thread;
        if (s == 0) {
            if (i < n)
                mem.cell[thread] = fold(i);
        } else if (i < n) {
            store(i, mem.cell[thread]);
        }
    }

    __host__ __device__ T fold(int64_t i) const
    {
        const Op op{};
        T all = exclusive ? Op::identity() : load(0);
        for (int64_t j = exclusive ? 0 : 1; j < (exclusive ? i : i + 1); j++)
            all = op(all, load(j));
        return all;
    }

    void label(int s, char *text, size_t size) const
    {
        snprintf(text, size, "%s", s == 0 ? "each thread combines the elements up to its own" : "store");
    }

    const T *cells(int, int64_t block, const shared &mem, int *count) const
    {
        const int64_t rest = n - block * DEFINITION_THREADS;
        *count = rest < DEFINITION_THREADS ? (int)rest : (int)DEFINITION_THREADS;
        return mem.cell;
    }
};

/* to[i] = load(i) */
template <typename T, typename Load> struct copy_element {
    Load load;
    T *to;

    __host__ __device__ T operator()(int64_t i) const
    {
        return to[i] = load(i);
    }

    const char *label() const
    {
        return "copy";
    }
};

/* copy: space for n elements; NULL unless load reads what store writes. */
template <typename Op, typename Place, typename Load, typename Store>
spmv_status scan_0_launch(Place &place, Load load, Store store, int64_t n, bool exclusive, typename Op::type *copy)
{
    using T = typename Op::type;
    const int64_t blocks = (n + DEFINITION_THREADS - 1) / DEFINITION_THREADS;
    if (copy == NULL)
        return place.run("scan_definition", scan_definition<Op, Load, Store>{load, store, n, exclusive}, blocks,
                         DEFINITION_THREADS);
    const spmv_status st = run_each<T>(place, "copy_elements", copy_element<T, Load>{load, copy}, n);
    return st != SPMV_OK
               ? st
               : place.run("scan_definition", scan_definition<Op, load_array<T>, Store>{{copy}, store, n, exclusive},
                           blocks, DEFINITION_THREADS);
}

/* The sequential loop: one block of one thread. */
template <typename Op, typename Load, typename Store> struct scan_sequential {
    using T = typename Op::type;
    Load load;
    Store store;
    int64_t n;
    bool exclusive;

    struct shared {
        T all;
    };
    struct registers {
    };

    __host__ __device__ int steps() const
    {
        return 1;
    }

    __host__ __device__ void step(int, int64_t, int, int, shared &mem, registers &) const
    {
        const Op op{};
        mem.all = exclusive ? Op::identity() : load(0);
        if (!exclusive)
            store(0, mem.all);
        for (int64_t i = exclusive ? 0 : 1; i < n; i++) {
            const T before = mem.all, x = load(i);
            /* exclusive: the last sum is not used */
            if (!exclusive || i + 1 < n)
                mem.all = op(before, x);
            store(i, exclusive ? before : mem.all);
        }
    }

    void label(int, char *text, size_t size) const
    {
        snprintf(text, size, "from left to right; the last result");
    }

    const T *cells(int, int64_t, const shared &mem, int *count) const
    {
        *count = 1;
        return &mem.all;
    }
};

#endif
