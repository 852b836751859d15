/* The parallel algorithms of the C++ standard library: std::inclusive_scan, std::reduce and
 * std::sort with std::execution::par_unseq, which libstdc++ runs on oneTBB.
 *
 * Its scan of floating-point numbers is the "strict" one, which does not reassociate within a
 * piece. A state runs in an arena of its own with the requested number of threads, the caller's
 * included.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <cstdio>
#include <exception>
#include <execution>
#include <new>
#include <numeric>
#include <tbb/task_arena.h>
#include <tbb/version.h>

#include "bench/peers/peer.h"

namespace
{

struct state {
    explicit state(const peer_problem &p) : problem(p), arena(p.threads)
    {
    }
    const peer_problem problem;
    tbb::task_arena arena;
};

template <typename T> void scan(const peer_problem &p)
{
    const T *const in = static_cast<const T *>(p.in);
    std::inclusive_scan(std::execution::par_unseq, in, in + p.n, static_cast<T *>(p.out));
}

template <typename T> void reduce(const peer_problem &p)
{
    const T *const in = static_cast<const T *>(p.in);
    *static_cast<T *>(p.out) = std::reduce(std::execution::par_unseq, in, in + p.n);
}

/* std::sort works in place, so a copy is sorted. */
template <typename T> void sort(const peer_problem &p)
{
    const T *const in = static_cast<const T *>(p.in);
    T *const out = static_cast<T *>(p.out);
    std::copy(std::execution::par_unseq, in, in + p.n, out);
    std::sort(std::execution::par_unseq, out, out + p.n);
}

int open_tbb(const peer_problem *problem, void **opaque, char *why, size_t why_size)
{
    try {
        *opaque = new state(*problem);
        return 0;
    } catch (const std::exception &e) {
        snprintf(why, why_size, "%s", e.what());
        return -1;
    }
}

template <void F32(const peer_problem &), void F64(const peer_problem &)> int run_tbb(void *opaque)
{
    state *const s = static_cast<state *>(opaque);
    try {
        s->arena.execute([s] { (s->problem.type == SPMV_F32 ? F32 : F64)(s->problem); });
        return 0;
    } catch (const std::exception &) { /* no memory for the sums of the pieces */
        return -1;
    }
}

void close_tbb(void *opaque)
{
    delete static_cast<state *>(opaque);
}

const peer peers[] = {
    {"tbb-scan", PEER_SCAN, "std::inclusive_scan(par_unseq), libstdc++ on oneTBB; " PEER_FLAGS, 0, open_tbb,
     run_tbb<scan<float>, scan<double>>, nullptr, nullptr, close_tbb},
    {"tbb-reduce", PEER_REDUCE, "std::reduce(par_unseq), libstdc++ on oneTBB; " PEER_FLAGS, 0, open_tbb,
     run_tbb<reduce<float>, reduce<double>>, nullptr, nullptr, close_tbb},
    {"tbb-sort", PEER_SORT, "a copy and std::sort(par_unseq), libstdc++ on oneTBB; " PEER_FLAGS, 0, open_tbb,
     run_tbb<sort<float>, sort<double>>, nullptr, nullptr, close_tbb},
};

} // namespace

const peer_module *spmv_peer_module(void)
{
    static char library[32];
    static const peer_module module = {PEER_ABI, library, peers, sizeof peers / sizeof peers[0]};
    snprintf(library, sizeof library, "oneTBB %d.%d", TBB_VERSION_MAJOR, TBB_VERSION_MINOR);
    return &module;
}
