/* Compares every template of spmv/device.cuh, with a user's functors and element types, with loops
 * on the host.
 *
 * Elements have 4 to 32 bytes, also sizes that do not divide 16. The operator does not commute. The
 * numbers are integers that wrap around, so every result is exact. Built for the host emulation of
 * CUDA (test_functors_host) and, by test_functors_gpu.cu, with nvcc. Exit code 0 if all tests pass,
 * 77 without a GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>
#include <utility>
#include <vector>

/* Names that a program may define must not clash with the header. */
#define THREADS this is no number
#define WARP 3
#define N 1024
#define T cannot be used
#define SIZE
#define BLOCK_CUH
#define LAUNCH_CUH
#include <spmv/device.cuh>
static_assert(WARP == 3 && N == 1024, "still the program's");
#ifndef LAUNCH_CUH
#error "the program's guard is gone"
#endif
#ifdef TILES_CUH
#error "a guard of the rungs is left behind"
#endif
#undef THREADS
#undef WARP
#undef N
#undef T
#undef SIZE

namespace device = spmv::device;

static int failures;

static void expect(bool good, const char *what, int64_t a = 0, int64_t b = 0)
{
    if (!good && failures++ < 10)
        std::printf("wrong: %s (%lld, %lld)\n", what, (long long)a, (long long)b);
}

static uint64_t seed = 1;
static uint64_t next_random()
{
    uint64_t z = seed += 0x9e3779b97f4a7c15u; /* splitmix64: G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ----------------------------------------------------- elements, operators */

/* The map t -> w[0] t + (w[1], w[2], ...), modulo 2^32. */
template <int Words> struct affine {
    uint32_t w[Words];
};

/* First the earlier map, then the later one. */
template <int Words> struct compose {
    using type = affine<Words>;
    __host__ __device__ type operator()(type earlier, type later) const
    {
        type both;
        both.w[0] = earlier.w[0] * later.w[0];
        for (int k = 1; k < Words; k++)
            both.w[k] = earlier.w[k] * later.w[0] + later.w[k];
        return both;
    }
    static __host__ __device__ type identity()
    {
        type one = {};
        one.w[0] = 1;
        return one;
    }
};

/* The last of two words that is not 0. */
template <> struct compose<1> {
    using type = affine<1>;
    __host__ __device__ type operator()(type earlier, type later) const
    {
        return later.w[0] != 0 ? later : earlier;
    }
    static __host__ __device__ type identity()
    {
        return {{0}};
    }
};

/* A commutative operator, declared as such. */
struct add_says {
    using type = uint64_t;
    static constexpr bool commutes = true;
    __host__ __device__ uint64_t operator()(uint64_t a, uint64_t b) const
    {
        return a + b;
    }
    static __host__ __device__ uint64_t identity()
    {
        return 0;
    }
};

struct smallest {
    float value;
    int32_t index;
};

struct arg_min {
    using type = smallest;
    __host__ __device__ smallest operator()(smallest a, smallest b) const
    {
        return b.value < a.value || (b.value == a.value && b.index < a.index) ? b : a;
    }
    static __host__ __device__ smallest identity()
    {
        return {INFINITY, INT32_MAX};
    }
};

/* ----------------------------------------------------------------- functors */

/* Makes an element from a number and a constant of the functor. */
template <int Words> struct make {
    uint32_t factor;
    __host__ __device__ affine<Words> operator()(uint16_t x) const
    {
        affine<Words> made;
        for (int k = 0; k < Words; k++)
            made.w[k] = x * factor + (uint32_t)k;
        return made;
    }
};

template <int Words> struct change {
    uint32_t plus;
    __host__ __device__ affine<Words> operator()(affine<Words> x) const
    {
        for (int k = 0; k < Words; k++)
            x.w[k] += plus;
        return x;
    }
};

template <int Words> struct below {
    uint32_t limit;
    __host__ __device__ bool operator()(affine<Words> x) const
    {
        return x.w[Words - 1] % 100 < limit;
    }
};

/* Loads every other element, from the last one backwards. */
template <int Words> struct load_backwards {
    const affine<Words> *from;
    int64_t last;
    __device__ affine<Words> operator()(int64_t i) const
    {
        return from[last - i];
    }
};

template <int Words> struct store_backwards {
    affine<Words> *to;
    int64_t last;
    __device__ void operator()(int64_t i, affine<Words> x) const
    {
        to[last - i] = x;
    }
};

struct load_with_index {
    const float *from;
    __device__ smallest operator()(int64_t i) const
    {
        return {from[i], (int32_t)i};
    }
};

/* ------------------------------------------------------------ device memory */

static cudaStream_t stream;

enum { GUARD = 64 };

/* n elements on the device, followed by a guard; arbitrary contents, or a copy. */
template <typename Element> struct array {
    Element *at = NULL;
    int64_t n;

    explicit array(int64_t count) : n(count)
    {
        const std::vector<char> garbage((size_t)n * sizeof(Element) + GUARD, (char)0xa5);
        expect(cudaMalloc((void **)&at, garbage.size()) == cudaSuccess, "cudaMalloc");
        copy(garbage.data(), at, garbage.size(), cudaMemcpyHostToDevice);
    }
    explicit array(const std::vector<Element> &host) : array((int64_t)host.size())
    {
        if (n > 0)
            copy(host.data(), at, (size_t)n * sizeof(Element), cudaMemcpyHostToDevice);
    }
    array(const array &) = delete;
    array &operator=(const array &) = delete;
    ~array()
    {
        cudaFree(at);
    }
    static void copy(const void *from, void *to, size_t bytes, cudaMemcpyKind kind)
    {
        expect(cudaMemcpyAsync(to, from, bytes, kind, stream) == cudaSuccess, "a copy");
        expect(cudaStreamSynchronize(stream) == cudaSuccess, "waiting");
    }
    /* Copies all elements to the host and checks the guard. */
    std::vector<Element> host() const
    {
        std::vector<char> all((size_t)n * sizeof(Element) + GUARD);
        copy(at, all.data(), all.size(), cudaMemcpyDeviceToHost);
        for (int k = 0; k < GUARD; k++)
            expect(all[(size_t)n * sizeof(Element) + (size_t)k] == (char)0xa5, "a guard", n, k);
        std::vector<Element> some((size_t)n);
        if (n > 0)
            std::memcpy(some.data(), all.data(), (size_t)n * sizeof(Element));
        return some;
    }
};

template <typename Element>
static void same(const std::vector<Element> &got, const std::vector<Element> &want, const char *what, int64_t n)
{
    for (size_t i = 0; i < want.size(); i++) {
        if (std::memcmp(&got[i], &want[i], sizeof(Element)) != 0) {
            expect(false, what, n, (int64_t)i);
            return;
        }
    }
}

/* Calls body(queue) with scratch memory of exactly this size and with a context, alternately. */
static spmv_context *context;
template <typename Body> static void in_turn(int64_t scratch_bytes, const char *what, const Body &body)
{
    static int turn = 0;
    if (turn++ % 3 == 2) {
        const spmv_status st = body(device::queue(context));
        expect(st == SPMV_OK, spmv_last_error(context), st);
        expect(spmv_synchronize(context) == SPMV_OK, what);
        return;
    }
    array<char> scratch(scratch_bytes);
    const spmv_status st = body(device::queue(stream, scratch_bytes > 0 ? scratch.at : NULL, scratch_bytes));
    expect(st == SPMV_OK, what, st);
    scratch.host(); /* checks the guard */
}

/* ------------------------------------------------------------------- checks */

template <int Words> static std::vector<affine<Words>> some_elements(int64_t n)
{
    std::vector<affine<Words>> x((size_t)n);
    for (affine<Words> &e : x)
        for (uint32_t &w : e.w)
            w = (uint32_t)(next_random() >> 32) | (Words > 1 ? 1u : 0u);
    if (Words == 1)
        for (affine<Words> &e : x)
            e.w[0] = next_random() % 4 == 0 ? e.w[0] : 0;
    return x;
}

template <int Words> static void check_map(int64_t n)
{
    std::vector<uint16_t> x((size_t)n);
    for (uint16_t &e : x)
        e = (uint16_t)next_random();
    const make<Words> f = {77};
    std::vector<affine<Words>> want((size_t)n);
    for (int64_t i = 0; i < n; i++)
        want[(size_t)i] = f(x[(size_t)i]);
    array<uint16_t> in(x);
    array<affine<Words>> out(n);
    in_turn(0, "map", [&](const device::queue &q) { return device::map(q, f, in.at, out.at, n); });
    same(out.host(), want, "map", n);
    const change<Words> g = {5};
    for (affine<Words> &e : want)
        e = g(e);
    in_turn(0, "map in place", [&](const device::queue &q) { return device::map(q, g, out.at, out.at, n); });
    same(out.host(), want, "map in place", n);
    array<affine<Words>> back(n);
    for (int64_t i = 0; i < n / 2; i++)
        std::swap(want[(size_t)i], want[(size_t)(n - 1 - i)]);
    for (affine<Words> &e : want)
        e = g(e);
    in_turn(0, "map of a loader", [&](const device::queue &q) {
        return device::map(q, g, load_backwards<Words>{out.at, n - 1}, back.at, n);
    });
    same(back.host(), want, "map of a loader", n);
}

template <int Words> static void check_reduce(int64_t n)
{
    using element = affine<Words>;
    using op = compose<Words>;
    const int64_t bytes = device::reduce_scratch_bytes<element>(n);
    const change<Words> g = {2};
    const std::vector<element> x = some_elements<Words>(n);
    element all = op::identity(), mapped = all, backwards = all;
    for (int64_t i = 0; i < n; i++) {
        all = op()(all, x[(size_t)i]);
        mapped = op()(mapped, g(x[(size_t)i]));
        backwards = op()(backwards, x[(size_t)(n - 1 - i)]);
    }
    array<element> in(x), out(1);
    in_turn(bytes, "reduce", [&](const device::queue &q) { return device::reduce<op>(q, in.at, out.at, n); });
    same(out.host(), {all}, "reduce", n);
    in_turn(bytes, "map_reduce",
            [&](const device::queue &q) { return device::map_reduce<op>(q, g, in.at, out.at, n); });
    same(out.host(), {mapped}, "map_reduce", n);
    in_turn(bytes, "reduce of a loader", [&](const device::queue &q) {
        return device::reduce<op>(q, load_backwards<Words>{in.at, n - 1}, out.at, n);
    });
    same(out.host(), {backwards}, "reduce of a loader", n);
}

template <int Words> static void check_scan(int64_t n)
{
    using element = affine<Words>;
    using op = compose<Words>;
    const int64_t bytes = device::scan_scratch_bytes<element>(n);
    const std::vector<element> x = some_elements<Words>(n);
    std::vector<uint16_t> small((size_t)n);
    for (uint16_t &e : small)
        e = (uint16_t)(next_random() | 1);
    const change<Words> g = {2};
    const make<Words> f = {3};
    for (int kind = SPMV_INCLUSIVE; kind <= SPMV_EXCLUSIVE; kind++) {
        const spmv_scan_kind k = (spmv_scan_kind)kind;
        std::vector<element> want((size_t)n), mapped(want), made(want);
        element all = op::identity(), all_mapped = all, all_made = all;
        for (size_t i = 0; i < (size_t)n; i++) {
            const element before = all, before_mapped = all_mapped, before_made = all_made;
            all = op()(all, x[i]);
            all_mapped = op()(all_mapped, g(x[i]));
            all_made = op()(all_made, f(small[i]));
            want[i] = kind == SPMV_INCLUSIVE ? all : before;
            mapped[i] = kind == SPMV_INCLUSIVE ? all_mapped : before_mapped;
            made[i] = kind == SPMV_INCLUSIVE ? all_made : before_made;
        }
        array<element> in(x), out(n), other(x);
        array<uint16_t> numbers(small);
        in_turn(bytes, "scan", [&](const device::queue &q) { return device::scan<op>(q, k, in.at, out.at, n); });
        same(out.host(), want, "scan", n);
        in_turn(bytes, "map_scan in place",
                [&](const device::queue &q) { return device::map_scan<op>(q, g, k, other.at, other.at, n); });
        same(other.host(), mapped, "map_scan in place", n);
        in_turn(bytes, "map_scan of another type",
                [&](const device::queue &q) { return device::map_scan<op>(q, f, k, numbers.at, out.at, n); });
        same(out.host(), made, "map_scan of another type", n);
        in_turn(bytes, "scan in place", [&](const device::queue &q) {
            return device::scan<op>(q, k, in.at, store_backwards<Words>{out.at, n - 1}, n);
        });
        std::vector<element> backwards = out.host();
        for (int64_t i = 0; i < n / 2; i++)
            std::swap(backwards[(size_t)i], backwards[(size_t)(n - 1 - i)]);
        same(backwards, want, "scan into a storer", n);
    }
}

/* Segments of 0 to 40 elements, some long ones, and sequences of empty ones at the start, inside
 * and at the end. */
static std::vector<int64_t> some_starts(int64_t n)
{
    std::vector<int64_t> starts;
    for (int k = 0; k < 300; k++)
        starts.push_back(0);
    for (int64_t at = 0; at < n;) {
        starts.push_back(at);
        const uint64_t r = next_random() >> 32;
        for (uint64_t k = 0; r % 97 == 1 && k < 600; k++)
            starts.push_back(at);
        at += r % 5 == 0 ? 0 : r % 89 == 2 ? 5000 : (int64_t)(r / 100 % 41);
    }
    for (int k = 0; k < 300; k++)
        starts.push_back(n);
    return starts;
}

template <int Words> static void check_segmented(int64_t n)
{
    using element = affine<Words>;
    using op = compose<Words>;
    const std::vector<element> x = some_elements<Words>(n);
    std::vector<int64_t> starts = some_starts(n);
    const int64_t count = (int64_t)starts.size();
    starts.push_back(n);
    std::vector<int32_t> narrow(starts.begin(), starts.end());
    std::vector<uint8_t> flags((size_t)n);
    for (int64_t s : starts)
        if (s < n)
            flags[(size_t)s] = 200;
    std::vector<uint32_t> bits((size_t)(n + 31) / 32, 0xffffffffu); /* bits beyond n: 1, without effect */
    for (int64_t i = 0; i < n; i++)
        if (flags[(size_t)i] == 0)
            bits[(size_t)i / 32] &= ~(1u << i % 32);
    array<int64_t> wide_heads(starts);
    array<int32_t> heads(narrow);
    array<uint8_t> flag_heads(flags);
    array<uint32_t> bit_heads(bits);
    array<element> in(x), out(n), sums(count);
    const spmv_segments forms[] = {{SPMV_SEGMENT_STARTS, heads.at, 32, count},
                                   {SPMV_SEGMENT_OFFSETS, wide_heads.at, 64, count},
                                   {SPMV_SEGMENT_FLAGS, flag_heads.at, 8, 0},
                                   {SPMV_SEGMENT_FLAGS, bit_heads.at, 1, 0}};
    for (int f = 0; f < 4; f++) {
        const spmv_scan_kind kind = (spmv_scan_kind)((n + f) % 2);
        std::vector<element> want((size_t)n);
        element open = op::identity();
        for (size_t i = 0; i < (size_t)n; i++) {
            const element before = flags[i] != 0 ? op::identity() : open;
            open = op()(before, x[i]);
            want[i] = kind == SPMV_INCLUSIVE ? open : before;
        }
        in_turn(device::segscan_scratch_bytes<element>(n), "segscan",
                [&](const device::queue &q) { return device::segscan<op>(q, kind, forms[f], in.at, out.at, n); });
        same(out.host(), want, "segscan", n);
    }
    std::vector<element> want;
    for (int64_t s = 0; s < count; s++) {
        element sum = op::identity();
        for (int64_t i = starts[(size_t)s]; i < starts[(size_t)s + 1]; i++)
            sum = op()(sum, x[(size_t)i]);
        want.push_back(sum);
    }
    for (int f = 0; f < 2; f++) {
        in_turn(device::segreduce_scratch_bytes<element>(n, count), "segreduce",
                [&](const device::queue &q) { return device::segreduce<op>(q, forms[f], in.at, sums.at, n); });
        same(sums.host(), want, "segreduce", n);
    }
}

template <int Words> static void check_compact(int64_t n)
{
    using element = affine<Words>;
    const int64_t bytes = device::compact_scratch_bytes(n);
    const std::vector<element> x = some_elements<Words>(n);
    const below<Words> small = {37};
    std::vector<uint8_t> flags((size_t)n);
    std::vector<uint32_t> bits((size_t)(n + 31) / 32, 0xffffffffu);
    std::vector<element> kept, flagged;
    for (size_t i = 0; i < (size_t)n; i++) {
        flags[i] = next_random() % 3 == 0 ? (uint8_t)(1 + i % 255) : 0;
        if (small(x[i]))
            kept.push_back(x[i]);
        if (flags[i] != 0)
            flagged.push_back(x[i]);
        else
            bits[i / 32] &= ~(1u << i % 32);
    }
    array<element> in(x), out((int64_t)kept.size()), out_flagged((int64_t)flagged.size());
    array<uint8_t> byte_flags(flags);
    array<uint32_t> bit_flags(bits);
    array<int64_t> number(1);
    in_turn(bytes, "compact",
            [&](const device::queue &q) { return device::compact(q, small, in.at, out.at, number.at, n); });
    same(number.host(), {(int64_t)kept.size()}, "elements kept", n);
    same(out.host(), kept, "compact", n);
    in_turn(bytes, "compact_flagged", [&](const device::queue &q) {
        return device::compact_flagged(q, byte_flags.at, in.at, out_flagged.at, number.at, n);
    });
    same(number.host(), {(int64_t)flagged.size()}, "elements flagged", n);
    same(out_flagged.host(), flagged, "compact_flagged", n);
    in_turn(bytes, "compact_bits", [&](const device::queue &q) {
        return device::compact_bits(q, bit_flags.at, in.at, out_flagged.at, number.at, n);
    });
    same(number.host(), {(int64_t)flagged.size()}, "elements flagged by bits", n);
    same(out_flagged.host(), flagged, "compact_bits", n);
}

template <int Words> static void check_elements()
{
    const int64_t tile = device::rungs::vector_tile<affine<Words>, device::rungs::scan_shape<affine<Words>>>::size;
#ifdef HOST_CUDA
    const int64_t large = 20003; /* several launches of few states, several tiles a chunk */
#else
    const int64_t large = 100003;
#endif
    const int64_t sizes[] = {0, 1, 2, 31, 32, 33, tile - 1, tile, tile + 1, large};
    for (int64_t n : sizes) {
        check_map<Words>(n);
        check_reduce<Words>(n);
        check_scan<Words>(n);
        check_segmented<Words>(n);
        check_compact<Words>(n);
    }
}

/* Numbers: commutative sums, misaligned arrays, the position of the minimum. */
static void check_numbers()
{
    const int64_t n = 70001;
    std::vector<uint64_t> x((size_t)n + 1);
    std::vector<float> y((size_t)n);
    smallest least = arg_min::identity();
    uint64_t sum = 0;
    for (int64_t i = 0; i <= n; i++)
        x[(size_t)i] = next_random();
    for (int64_t i = 0; i < n; i++) {
        y[(size_t)i] = (float)(next_random() % 20000);
        sum += x[(size_t)i + 1];
        least = arg_min()(least, {y[(size_t)i], (int32_t)i});
    }
    array<uint64_t> in(x), out(1);
    array<float> numbers(y);
    array<smallest> found(1);
    in_turn(device::reduce_scratch_bytes<uint64_t>(n), "a sum off alignment",
            [&](const device::queue &q) { return device::reduce<add_says>(q, in.at + 1, out.at, n); });
    same(out.host(), {sum}, "a sum off alignment", n);
    for (int again = 0; again < 2; again++) { /* the ticket is reset after each call */
        in_turn(device::reduce_scratch_bytes<smallest>(n), "arg-min", [&](const device::queue &q) {
            return device::reduce<arg_min>(q, load_with_index{numbers.at}, found.at, n);
        });
        same(found.host(), {least}, "arg-min", n);
    }
}

static void check_refusals()
{
    using op = compose<2>;
    array<affine<2>> a(8);
    array<int64_t> count(1);
    array<char> scratch(device::scan_scratch_bytes<affine<2>>(8));
    const device::queue good(stream, scratch.at, scratch.n), small(stream, scratch.at, scratch.n - 1);
    const device::queue none(stream, NULL, scratch.n), askew(stream, scratch.at + 8, scratch.n);
    const affine<2> *nothing = NULL;
    affine<2> *nowhere = NULL;
    expect(device::scan<op>(good, SPMV_INCLUSIVE, a.at, a.at, 8) == SPMV_OK, "good scratch");
    expect(device::scan<op>(small, SPMV_INCLUSIVE, a.at, a.at, 8) == SPMV_ERROR_SIZE, "too little scratch");
    expect(device::scan<op>(none, SPMV_INCLUSIVE, a.at, a.at, 8) == SPMV_ERROR_SIZE, "no scratch");
    expect(device::scan<op>(askew, SPMV_INCLUSIVE, a.at, a.at, 8) == SPMV_ERROR_SIZE, "scratch off alignment");
    expect(device::scan<op>(good, SPMV_INCLUSIVE, nothing, a.at, 8) == SPMV_ERROR_ARGUMENT, "in is NULL");
    expect(device::scan<op>(good, SPMV_INCLUSIVE, a.at, nowhere, 8) == SPMV_ERROR_ARGUMENT, "out is NULL");
    expect(device::scan<op>(good, SPMV_INCLUSIVE, a.at, a.at, -1) == SPMV_ERROR_ARGUMENT, "n = -1");
    expect(device::scan<op>(none, SPMV_INCLUSIVE, nothing, nowhere, 0) == SPMV_OK, "nothing to do");
    expect(device::reduce<op>(good, a.at, nowhere, 8) == SPMV_ERROR_ARGUMENT, "reduce: out is NULL");
    int64_t *const no_count = NULL;
    expect(device::compact(context, below<2>{5}, a.at, a.at, no_count, 8) == SPMV_ERROR_ARGUMENT, "count is NULL");
    expect(std::strstr(spmv_last_error(context), "count is NULL") != NULL, "the sentence about count");
    const spmv_segments wide = {SPMV_SEGMENT_FLAGS, a.at, 32, 0}, flags = {SPMV_SEGMENT_FLAGS, a.at, 8, 0};
    const spmv_segments empty = {SPMV_SEGMENT_STARTS, a.at, 32, 0}, unknown = {(spmv_segment_form)0, a.at, 32, 1};
    for (const spmv_segments &bad : {wide, empty, unknown})
        expect(device::segscan<op>(context, SPMV_INCLUSIVE, bad, a.at, a.at, 8) == SPMV_ERROR_ARGUMENT, "segments");
    expect(device::segreduce<op>(context, flags, a.at, a.at, 8) == SPMV_ERROR_ARGUMENT, "flags do not give");
    expect(std::strstr(spmv_last_error(context), "number of results") != NULL, "the sentence about flags");

    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = SPMV_BACKEND_REF;
    spmv_context *ref = NULL;
    expect(spmv_context_create(&options, &ref) == SPMV_OK, "a context of ref");
    expect(device::scan<op>(ref, SPMV_INCLUSIVE, a.at, a.at, 8) == SPMV_ERROR_UNSUPPORTED, "a context of ref");
    expect(std::strstr(spmv_last_error(ref), "backend cuda") != NULL, "the sentence about backends");
    void *memory = ref;
    expect(spmv_context_scratch(ref, -1, &memory) == SPMV_ERROR_ARGUMENT && memory == NULL, "scratch of -1 bytes");
    expect(spmv_context_scratch(ref, 100, &memory) == SPMV_OK && memory != NULL, "scratch of 100 bytes");
    expect(spmv_context_report(ref, SPMV_ERROR_SPEC, "a sentence, 100 %") == SPMV_ERROR_SPEC, "report");
    expect(std::strcmp(spmv_last_error(ref), "a sentence, 100 %") == 0, "the sentence reported");
    spmv_context_destroy(ref);
#ifdef HOST_CUDA
    host_cuda.launch_error = cudaErrorInvalidValue;
    expect(device::scan<op>(good, SPMV_INCLUSIVE, a.at, a.at, 8) == SPMV_ERROR_DEVICE, "a launch that fails");
    expect(device::scan<op>(context, SPMV_INCLUSIVE, a.at, a.at, 8) == SPMV_ERROR_DEVICE, "a launch that fails");
    expect(std::strstr(spmv_last_error(context), "scan_lookback") != NULL, "the kernel's name");
    host_cuda.launch_error = cudaErrorStreamCaptureUnsupported;
    expect(device::scan<op>(good, SPMV_INCLUSIVE, a.at, a.at, 8) == SPMV_ERROR_CAPTURE, "a capture that fails");
    host_cuda.launch_error = cudaSuccess;
#endif
    cudaGetLastError();
}

int main()
{
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = SPMV_BACKEND_CUDA;
    const spmv_status st = spmv_context_create(&options, &context);
    if (st != SPMV_OK) {
        std::printf("%s%s\n", st == SPMV_ERROR_NO_DEVICE ? "skipped: " : "", spmv_last_error(NULL));
        return st == SPMV_ERROR_NO_DEVICE ? 77 : 1;
    }
    stream = (cudaStream_t)spmv_context_stream(context);
    check_elements<1>();
    check_elements<7>();
#ifndef SPMV_FEW_TYPES /* where it is only compiled */
    check_elements<2>();
    check_elements<3>();
    check_elements<4>();
    check_elements<8>();
#endif
    check_numbers();
    check_refusals();
    spmv_context_destroy(context);
    std::printf(failures == 0 ? "all as the loops say\n" : "%d wrong\n", failures);
    return failures != 0;
}
