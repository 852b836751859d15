/* CUB, the CUDA toolkit's templates for primitives: its device-wide functions with their own
 * tuning.
 *
 * Lengths have 64 bits; segment numbers and offsets 32, as in peer.h. Annotations for profilers are
 * disabled (CCCL_DISABLE_NVTX), so that a run consists only of launches.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define CCCL_DISABLE_NVTX
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <cub/version.cuh>

#include "bench/peers/peer.h"
#include "bench/peers/peer_cuda.h"

namespace
{

/* temp NULL: only sets bytes to the size needed. */
typedef cudaError_t call_fn(const peer_problem &p, void *temp, size_t &bytes);

struct state {
    peer_problem problem;
    call_fn *call;
    void *temp;
    size_t bytes;
};

cudaStream_t stream_of(const peer_problem &p)
{
    return static_cast<cudaStream_t>(p.stream);
}

template <typename T> const T *in_of(const peer_problem &p)
{
    return static_cast<const T *>(p.in);
}

template <typename T> T *out_of(const peer_problem &p)
{
    return static_cast<T *>(p.out);
}

template <typename T> cudaError_t scan(const peer_problem &p, void *temp, size_t &bytes)
{
    return cub::DeviceScan::InclusiveSum(temp, bytes, in_of<T>(p), out_of<T>(p), p.n, stream_of(p));
}

template <typename T> cudaError_t scan_by_key(const peer_problem &p, void *temp, size_t &bytes)
{
    return cub::DeviceScan::InclusiveSumByKey(temp, bytes, p.segment, in_of<T>(p), out_of<T>(p), p.n,
                                              ::cuda::std::equal_to<>(), stream_of(p));
}

template <typename T> cudaError_t reduce(const peer_problem &p, void *temp, size_t &bytes)
{
    return cub::DeviceReduce::Sum(temp, bytes, in_of<T>(p), out_of<T>(p), p.n, stream_of(p));
}

template <typename T> cudaError_t segmented_reduce(const peer_problem &p, void *temp, size_t &bytes)
{
    return cub::DeviceSegmentedReduce::Sum(temp, bytes, in_of<T>(p), out_of<T>(p), p.segments, p.offsets, p.offsets + 1,
                                           stream_of(p));
}

template <typename T> cudaError_t select(const peer_problem &p, void *temp, size_t &bytes)
{
    return cub::DeviceSelect::Flagged(temp, bytes, in_of<T>(p), p.flags, out_of<T>(p), p.kept, p.n, stream_of(p));
}

template <typename T> cudaError_t radix_sort(const peer_problem &p, void *temp, size_t &bytes)
{
    return cub::DeviceRadixSort::SortKeys(temp, bytes, in_of<T>(p), out_of<T>(p), p.n, 0, 8 * (int)sizeof(T),
                                          stream_of(p));
}

/* As many bins as numbers from 0 on: a bin is found by one division by 1. */
cudaError_t histogram(const peer_problem &p, void *temp, size_t &bytes)
{
    return cub::DeviceHistogram::HistogramEven(temp, bytes, p.index, out_of<int>(p), (int)p.bins + 1, 0, (int)p.bins,
                                               p.n, stream_of(p));
}

void close_cub(void *opaque)
{
    state *const s = static_cast<state *>(opaque);
    if (s != nullptr)
        cudaFree(s->temp);
    delete s;
}

template <call_fn *F32, call_fn *F64>
int open_cub(const peer_problem *problem, void **opaque, char *why, size_t why_size)
{
    state *const s = new_object<state>(why, why_size);
    if (s == nullptr)
        return -1;
    s->problem = *problem;
    s->call = problem->type == SPMV_F32 ? F32 : F64;
    if (bad_cuda(use_device_of(stream_of(*problem)), "cudaSetDevice", why, why_size) ||
        bad_cuda(s->call(s->problem, nullptr, s->bytes), "asking CUB how much memory it needs", why, why_size) ||
        bad_cuda(device_alloc(s->bytes, &s->temp), "cudaMalloc", why, why_size)) {
        close_cub(s);
        return -1;
    }
    *opaque = s;
    return 0;
}

int run_cub(void *opaque)
{
    state *const s = static_cast<state *>(opaque);
    return s->call(s->problem, s->temp, s->bytes) == cudaSuccess ? 0 : -1;
}

const peer peers[] = {
    {"cub-scan", PEER_SCAN, "DeviceScan::InclusiveSum, CUB's own tuning", 0, open_cub<scan<float>, scan<double>>,
     run_cub, nullptr, nullptr, close_cub},
    {"cub-scan-by-key", PEER_SEGSCAN, "DeviceScan::InclusiveSumByKey, the segments' numbers as keys, CUB's own tuning",
     0, open_cub<scan_by_key<float>, scan_by_key<double>>, run_cub, nullptr, nullptr, close_cub},
    {"cub-reduce", PEER_REDUCE, "DeviceReduce::Sum, CUB's own tuning", 0, open_cub<reduce<float>, reduce<double>>,
     run_cub, nullptr, nullptr, close_cub},
    {"cub-segmented-reduce", PEER_SEGREDUCE, "DeviceSegmentedReduce::Sum, CUB's own tuning", 0,
     open_cub<segmented_reduce<float>, segmented_reduce<double>>, run_cub, nullptr, nullptr, close_cub},
    {"cub-select", PEER_COMPACT, "DeviceSelect::Flagged with 1-byte flags, CUB's own tuning", 0,
     open_cub<select<float>, select<double>>, run_cub, nullptr, nullptr, close_cub},
    {"cub-radix-sort", PEER_SORT, "DeviceRadixSort::SortKeys of all bits, CUB's own tuning", 0,
     open_cub<radix_sort<float>, radix_sort<double>>, run_cub, nullptr, nullptr, close_cub},
    {"cub-histogram", PEER_HISTOGRAM, "DeviceHistogram::HistogramEven, CUB's own tuning", 0,
     open_cub<histogram, histogram>, run_cub, nullptr, nullptr, close_cub},
};

} // namespace

const peer_module *spmv_peer_module(void)
{
    static char library[32];
    static const peer_module module = {PEER_ABI, library, peers, sizeof peers / sizeof peers[0]};
    snprintf(library, sizeof library, "CUB %d.%d.%d", CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION);
    return &module;
}
