/* Tests the parts of the CUDA kernels that need no device: the rounds of the search by a block, the
 * cut into chunks, the bits of a thread; exhaustively for small sizes. Exit code 0 if all tests
 * pass.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cstdio>
#include <vector>

#include "device/launch.cuh"
#include "device/segments.cuh"

static int failures;

static void expect(bool good, const char *what, int64_t a, int64_t b)
{
    if (!good && failures++ < 10)
        std::printf("%s: wrong for %lld, %lld\n", what, (long long)a, (long long)b);
}

/* The search, with the answers of all threads counted here. below(s): whether entry s is less than
 * the target. */
template <typename Below> static int64_t search(int64_t lo, int64_t hi, Below below, int *rounds)
{
    for (*rounds = 0; lo < hi; ++*rounds) {
        search_round round(lo, hi);
        int count = 0;
        for (int t = 0; t < block_threads; t++)
            count += round.probe(t) < hi && below(round.probe(t));
        round.narrow(count);
        lo = round.lo;
        hi = round.hi;
    }
    return lo;
}

static void searches()
{
    int rounds = 0;
    for (int64_t n = 0; n < 1200; n++)
        for (int64_t answer = 0; answer <= n; answer++)
            expect(search(
                       7, 7 + n, [=](int64_t s) { return s < 7 + answer; }, &rounds) == 7 + answer,
                   "search", n, answer);
    const int64_t large = ((int64_t)1 << 40) + 12345;
    for (int64_t answer = 0; answer < large; answer += large / 977 + 1) {
        expect(search(
                   0, large, [=](int64_t s) { return s < answer; }, &rounds) == answer,
               "large search", large, answer);
        expect(rounds <= 6, "rounds of a search", large, rounds);
    }
}

static void chunks()
{
    for (int64_t n = 1; n < 40000; n += n < 300 ? 1 : 37) {
        const chunking cut = cut_into_chunks(n, 3);
        expect(cut.count >= 1 && cut.count <= most_chunks, "number of chunks", n, cut.count);
        expect(cut.first_tile(0) == 0 && cut.first_tile(cut.count) == (n + 2) / 3, "chunks cover all tiles", n,
               cut.count);
        for (int c = 0; c < cut.count; c++) {
            const int64_t tiles = cut.first_tile(c + 1) - cut.first_tile(c);
            expect(tiles == cut.tiles_each || tiles == cut.tiles_each + 1, "chunks are even", n, c);
            expect(tiles > 0, "no chunk is empty", n, c);
        }
    }
    const int64_t most = INT64_MAX / 16;
    const chunking cut = cut_into_chunks(most, 2048);
    expect(cut.first_tile(cut.count) == most / 2048 + 1, "chunks of the largest array", most, cut.count);
    expect(tile_valid(most / 2048 * 2048, most, 2048) == most % 2048, "the last tile", most, 0);
}

template <typename T> static void bits()
{
    for (int i = 0; i < tile_of<T>::size; i++) {
        std::vector<unsigned> words((size_t)tile_bits<T>::word_count, 0);
        words[(size_t)i / 32] |= 1u << (i % 32);
        for (int t = 0; t < block_threads; t++) {
            const bool mine = i / tile_of<T>::items == t;
            expect(tile_bits<T>::of_thread(words.data(), t) == (mine ? 1u << (i % tile_of<T>::items) : 0u), "bits", i,
                   t);
        }
        expect(tile_of<T>::cell(i) < tile_of<T>::cells, "cells", i, 0);
    }
}

/* The shared memory that a block requests so that only the intended number of blocks fits, limited
 * by the maximum of a block. */
static void fillers()
{
    expect(shared_part(228 << 10, 30) == 100 << 10, "shared part of", 228, 30);
    expect(shared_part(164 << 10, 30) == 64 << 10, "shared part of", 164, 30);
    expect(shared_part(100 << 10, 30) == 32 << 10, "shared part of", 100, 30);
    expect(shared_part(228 << 10, 100) == 228 << 10, "shared part of", 228, 100);
    expect(shared_part(228 << 10, 0) == 8 << 10, "shared part of", 228, 0);
    for (int fixed : {0, 1000, 10880, 19072, 40000})
        for (int most = 1; most < 40; most++) {
            const int shared = 100 << 10, filler = shared_filler(shared, most, fixed);
            const auto in_lines = [](int bytes) { return (bytes + 127) / 128 * 128; };
            const int fit = shared / (in_lines(fixed + filler) + 1024), without = shared / (in_lines(fixed) + 1024);
            expect(filler >= 0 && fixed + filler <= 48 << 10, "filler", most, fixed);
            expect(filler == 0 ? without <= most : fit >= most, "as many as are to fit", most, fixed);
            expect(most < 3 || most > 11 || fit <= most, "no more than are to fit", most, fixed);
        }
}

int main()
{
    searches();
    chunks();
    fillers();
    bits<int32_t>();
    bits<double>();
    if (failures > 0)
        std::printf("%d failures\n", failures);
    return failures > 0;
}
