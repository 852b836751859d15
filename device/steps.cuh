/* Block algorithms in steps, which a kernel and the host run alike. The teaching rungs are written
 * in this form.
 *
 * A program describes the work of the blocks of one launch: what one thread of one block does in
 * one step. There is a barrier between two steps and nowhere else. In a kernel the threads run the
 * steps. The host runs a step for one thread after the other, in an order that is shuffled again
 * for each step. So a step in which one thread needs what another writes gives wrong results on the
 * host too, and the host can count operations. After each step a trace receives the shared memory.
 *
 *     struct program {
 *         struct shared { ... };     one per block; undefined until a step writes it
 *         struct registers { ... };  one per thread, kept from step to step of a block
 *         __host__ __device__ int steps() const;
 *         __host__ __device__ void step(int s, int64_t block, int thread, int threads, shared &,
 *                                       registers &) const;
 *
 *         for a trace, on the host:
 *         void label(int s, char *text, size_t size) const;  describes step s
 *         const T *cells(int s, int64_t block, const shared &, int *count) const;
 *                                                            the array after step s
 *         bool idle(int s, int64_t block) const;             optional: step s processes no element
 *     };
 *
 * A launch is the same line for both:
 *
 *     st = place.run("name", program, blocks, threads);
 *
 * place: steps_on_gpu or steps_on_host. Pointers in a program point to memory of the place.
 * Source: W. D. Hillis, G. L. Steele, "Data parallel algorithms", CACM 29(12), 1986 (steps that all
 * processors execute together).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_STEPS_CUH
#define SPMV_STEPS_CUH

#include <spmv/types.h>
#include <stdio.h>
#include <string.h>
#include <type_traits>

#include "core/splitmix.h"
#include "device/host_device.cuh"

/* The most threads of a block. */
enum { STEPS_THREADS = 1024 };

/* log2 of a power of two. */
__host__ __device__ inline int steps_log2(int n)
{
    int k = 0;
    while (n >> (k + 1) != 0)
        k++;
    return k;
}

/* A program of one step, in which each thread computes one element. element(i) stores element i and
 * returns it for the trace; element.label() describes the step. */
enum { EACH_THREADS = 256 };

template <typename T, typename Element> struct each_element {
    Element element;
    int64_t n;

    struct shared {
        T cell[EACH_THREADS];
    };
    struct registers {
    };

    __host__ __device__ int steps() const
    {
        return 1;
    }

    __host__ __device__ void step(int, int64_t block, int thread, int threads, shared &mem, registers &) const
    {
        const int64_t i = block * threads + thread;
        if (i < n)
            mem.cell[thread] = element(i);
    }

    void label(int, char *text, size_t size) const
    {
        snprintf(text, size, "%s", element.label());
    }

    const T *cells(int, int64_t block, const shared &mem, int *count) const
    {
        const int64_t rest = n - block * EACH_THREADS;
        *count = rest < EACH_THREADS ? (int)rest : (int)EACH_THREADS;
        return mem.cell;
    }
};

template <typename T, typename Place, typename Element>
spmv_status run_each(Place &place, const char *name, Element element, int64_t n)
{
    return place.run(name, each_element<T, Element>{element, n}, (n + EACH_THREADS - 1) / EACH_THREADS, EACH_THREADS);
}

/* ---------------------------------------------------------------- on a GPU */
#ifdef SPMV_HAVE_KERNELS

#include "device/launch.cuh"

/* If the grid is capped, a block continues with the block one grid further. */
template <typename Program> __global__ void __launch_bounds__(STEPS_THREADS) run_steps(Program program, int64_t blocks)
{
    __shared__ typename Program::shared shared;
    for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
        /* compilers cannot prove that a step writes before another reads */
        typename Program::registers mine = {};
        for (int s = 0; s < program.steps(); s++) {
            program.step(s, block, (int)threadIdx.x, (int)blockDim.x, shared, mine);
            __syncthreads();
        }
    }
}

struct steps_on_gpu {
    static constexpr bool PARALLEL = true;
    template <typename Op> using applied = Op; /* the operator type that a rung is compiled with */
    template <typename Op> static void choose()
    {
    }
    spmv_context *ctx;

    template <typename Program> spmv_status run(const char *name, const Program &program, int64_t blocks, int threads)
    {
        return launch(ctx, name, grid_for(blocks, 1), threads, run_steps<Program>, program, blocks);
    }
};

#endif
/* -------------------------------------------------------------- on the host */
#ifndef __CUDACC__

/* How many times an operator was applied in this thread. */
struct steps_count {
    static int64_t &applied()
    {
        static thread_local int64_t count = 0;
        return count;
    }
};

/* An operator of type T, chosen at run time per thread, that counts its calls. So a rung is
 * compiled once per type and not once per operator and type; on the host it need not be fast. */
template <typename T> struct chosen_operator {
    using type = T;

    struct choice {
        T (*apply)(T earlier, T later);
        T identity;
    };

    static choice &current()
    {
        static thread_local choice of_thread = {};
        return of_thread;
    }

    template <typename Op> static T apply(T earlier, T later)
    {
        return Op()(earlier, later);
    }

    template <typename Op> static void choose()
    {
        current() = {apply<Op>, Op::identity()};
    }

    T operator()(T earlier, T later) const
    {
        steps_count::applied()++;
        return current().apply(earlier, later);
    }

    static T identity()
    {
        return current().identity;
    }
};

/* Calls trace(name of the launch, program, block, step, shared) after each step. order: seed of the
 * shuffles. */
template <typename Trace> struct steps_on_host {
    static constexpr bool PARALLEL = false;
    template <typename Op> using applied = chosen_operator<typename Op::type>;
    uint64_t order;
    Trace trace;

    /* Call before a rung runs with applied<Op>. */
    template <typename Op> static void choose()
    {
        applied<Op>::template choose<Op>();
    }

    void shuffle(int16_t *turn, int threads)
    {
        for (int t = threads - 1; t > 0; t--) {
            const int other = (int)((splitmix_next(&order) >> 32) * (uint64_t)(t + 1) >> 32);
            const int16_t mine = turn[t];
            turn[t] = turn[other];
            turn[other] = mine;
        }
    }

    template <typename Program> spmv_status run(const char *name, const Program &program, int64_t blocks, int threads)
    {
        static_assert(std::is_trivially_copyable<typename Program::shared>::value, "shared memory is plain");
        typename Program::shared shared;
        typename Program::registers mine[STEPS_THREADS];
        int16_t turn[STEPS_THREADS];
        memset((void *)&shared, 0xa5, sizeof shared); /* undefined, as on a device */
        memset((void *)mine, 0xa5, sizeof mine);
        for (int t = 0; t < threads; t++)
            turn[t] = (int16_t)t;
        for (int64_t block = 0; block < blocks; block++) {
            for (int s = 0; s < program.steps(); s++) {
                shuffle(turn, threads);
                for (int t = 0; t < threads; t++)
                    program.step(s, block, turn[t], threads, shared, mine[turn[t]]);
                trace(name, program, block, s, shared);
            }
        }
        return SPMV_OK;
    }
};

#endif

#endif
