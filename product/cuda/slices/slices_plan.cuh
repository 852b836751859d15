/* Makes the plan of slices on the device, with these kernels:
 *
 *   count        counts the slots of each slice and stores the hash of its pattern in a dictionary;
 *                stops early if the matrix has too many empty places
 *   choose       finds for each slice the first slice with the same hash; it uses that pattern
 *   write        writes the patterns, with the code of each slot's first value
 *   write_heads  writes where the values and the pattern of each slice begin
 *   check        checks each slice against its pattern, and all values against those of the pattern
 *   fill         writes the values in the order of slots; checks each slice against its pattern
 *
 * The rows of a slice are merged to find its slots. A lane holds a position in each of its two
 * rows. The least offset at all positions is the next slot, and each row that has it advances by
 * one entry. So the columns of each row must ascend strictly.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_SLICES_PLAN_CUH
#define PRODUCT_SLICES_PLAN_CUH

#include "product/cuda/slices/slices.cuh"
#include "product/cuda/tiles/spmv_4_tiles_values.cuh"

/* Bits of a pattern's hash. Tests build with few, so that different patterns share a hash. */
#ifndef SPMV_SLICES_HASH_BITS
#define SPMV_SLICES_HASH_BITS 64
#endif

/* The largest number of shared patterns. If there are more, each slice gets its own. Tests build
 * with few. */
#ifndef SPMV_SLICES_PATTERNS
#define SPMV_SLICES_PATTERNS 512
#endif

namespace slices
{

enum {
    ENTRIES = 1024,   /* of the dictionary, a power of 2 */
    MOST_PROBES = 32, /* of a search in the dictionary, which is at most half full */
    MOST_PATTERNS = SPMV_SLICES_PATTERNS,
    NO_OFFSET = INT32_MAX, /* after a row's last entry; all offsets are less */
};

/* The count stops when the slots of a warp so far exceed the largest number of places per nonzero
 * (slices_most_places) by more than SPARE_PLACES places. */
enum { SPARE_PLACES = 16 * ROWS };

/* The results of the kernels. All are 0 before. Flags that are read often do not share a sector of
 * the cache with numbers that many warps add to. */
struct findings {
    /* 1: unsorted: columns do not ascend; unsuited: too many empty places; many: too many patterns;
     * differs: a slice differs from its pattern; varied: a code differs from its pattern's */
    alignas(32) int unsorted, unsuited, many, differs, varied;
    alignas(32) unsigned long long slots, longest;
    alignas(32) unsigned long long pattern_slots; /* of all patterns in the dictionary */
    unsigned patterns;                            /* in the dictionary */
    int reach;      /* the largest distance of an entry of the slice in the middle from the diagonal */
    int part_slots; /* the largest number of slots of one of several equal parts of the slices */
};

struct dictionary {
    unsigned long long *hashes; /* ENTRIES; 0: free */
    unsigned *last;             /* ~(number of the first slice with this hash) */
};

/* Arrays for making the plan, with one element per slice; slots, own_slots and their sums have one
 * more.
 *   slots               slots of the slice
 *   own_slots           the same if the slice writes a pattern, else 0
 *   begins, own_begins  exclusive sums of slots and own_slots
 *   chosen              the slice that writes this slice's pattern */
struct making {
    findings *found;
    dictionary known;
    unsigned long long *hashes;
    int32_t *slots, *own_slots, *begins, *own_begins, *chosen;
    void *scratch; /* for the scans */
};

/* The three sources of stored values: the matrix's own, codes of a table, none. */
template <typename Stored> struct as_is {
    const Stored *val;
    __device__ Stored operator()(int64_t k) const
    {
        return val[k];
    }
};

template <typename T, typename Stored> struct as_codes {
    const Stored *val;
    const tiles::value_table<T> *table;
    __device__ uint8_t operator()(int64_t k) const
    {
        return tiles::code_of(table->bits, tiles::bits_of(val + k));
    }
};

struct no_values {
    __device__ uint8_t operator()(int64_t) const
    {
        return 0;
    }
};

/* The next AHEAD entries of each row of a slice, in shared memory. */
template <typename Value> struct window {
    enum { AHEAD = 8, STRIDE = AHEAD + 1 /* rows begin in different banks */ };
    int64_t at[ROWS], end[ROWS];
    int32_t offset[ROWS * STRIDE];
    Value value[ROWS * STRIDE];
};

/* Merges the rows of a slice; used by a warp. A lane has the positions at[0] and at[1] in its two
 * rows. A slot takes at most one entry of a row, so the next AHEAD entries of all rows last for
 * AHEAD slots. They are loaded together, and neighbouring lanes load neighbouring entries. */
template <typename Offset, typename Value, typename Source> struct merging {
    const int32_t *col;
    Source source;
    window<Value> *near;
    int64_t at[2], end[2], loaded[2];
    int32_t first, next[2]; /* first row of the slice; offsets of the lane's next entries */
    int slots;              /* slots taken since the last load */

    __device__ merging(const Offset *row_ptr, const int32_t *columns, int64_t rows, int64_t slice, Source from,
                       window<Value> *shared)
        : col(columns), source(from), near(shared), first((int32_t)(slice * ROWS)), slots(0)
    {
        for (int i = 0; i < 2; i++) {
            const int64_t r = slice * ROWS + row(i);
            at[i] = r < rows ? (int64_t)row_ptr[r] : 0;
            end[i] = r < rows ? (int64_t)row_ptr[r + 1] : 0;
        }
        load();
    }

    static __device__ int row(int i)
    {
        return (int)threadIdx.x % warp_lanes + i * warp_lanes;
    }

    __device__ void load()
    {
        /* entries of a row; at once by a lane, all read before the first is written: the compiler
         * cannot know that the window does not overlap the matrix */
        enum { AHEAD = window<Value>::AHEAD, AT_ONCE = 8 };
        const int lane = (int)threadIdx.x % warp_lanes;
        slots = 0;
        __syncwarp();
        for (int i = 0; i < 2; i++) {
            near->at[row(i)] = loaded[i] = at[i];
            near->end[row(i)] = end[i];
        }
        __syncwarp();
#pragma unroll 1
        for (int e = lane; e < ROWS * AHEAD; e += AT_ONCE * warp_lanes) {
            int32_t offset[AT_ONCE];
            Value value[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const int r = (e + i * warp_lanes) / AHEAD;
                const int64_t k = near->at[r] + e % AHEAD;
                const bool is_there = k < near->end[r];
                offset[i] = is_there ? col[k] - (first + r) : (int32_t)NO_OFFSET;
                value[i] = is_there ? source(k) : Value();
            }
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const int place = (e + i * warp_lanes) / AHEAD * window<Value>::STRIDE + e % AHEAD;
                near->offset[place] = offset[i];
                near->value[place] = value[i];
            }
        }
        __syncwarp();
        look();
    }

    __device__ int place(int i) const
    {
        return row(i) * window<Value>::STRIDE + (int)(at[i] - loaded[i]);
    }

    __device__ void look()
    {
        for (int i = 0; i < 2; i++)
            next[i] = at[i] < end[i] ? near->offset[place(i)] : (int32_t)NO_OFFSET;
    }

    /* Advances in the rows that have an entry in the slot. */
    __device__ void pass(bool low, bool high)
    {
        at[0] += low;
        at[1] += high;
        if (++slots == window<Value>::AHEAD)
            load();
        else
            look();
    }

    /* The next slot; the offset is NO_OFFSET after the last one. */
    __device__ slot ahead() const
    {
        slot s = {};
        s.offset = tiles::warp_least(next[0] < next[1] ? next[0] : next[1]);
        if (s.offset == NO_OFFSET)
            return s;
        s.low = __ballot_sync(0xffffffffu, next[0] == s.offset);
        s.high = __ballot_sync(0xffffffffu, next[1] == s.offset);
        return s;
    }

    /* The next slot with the code of its first value; advances. Values are codes. */
    __device__ slot take_coded()
    {
        slot s = ahead();
        const bool low = next[0] == s.offset, high = next[1] == s.offset;
        const int value = low ? near->value[place(0)] : high ? near->value[place(1)] : 0;
        s.code = __shfl_sync(0xffffffffu, value, __ffs((int)(s.low | s.high)) - 1);
        pass(low, high);
        return s;
    }

    /* Returns the next slot and advances. Sets *unsorted if the columns of a row do not ascend. */
    __device__ slot take(bool *unsorted)
    {
        const slot s = ahead();
        if (s.offset == NO_OFFSET)
            return s;
        pass(next[0] == s.offset, next[1] == s.offset);
        *unsorted = *unsorted || next[0] <= s.offset || next[1] <= s.offset;
        return s;
    }

    __device__ int64_t length(int i) const
    {
        return end[i] - at[i];
    }
};

__device__ inline unsigned long long hash_of(unsigned long long before, const slot &s)
{
    unsigned long long h = before ^ ((unsigned long long)s.low << 32 | s.high);
    h = (h + (unsigned)s.offset) * 0x9e3779b97f4a7c15ull;
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull;
    return h ^ h >> 32;
}

/* The entry of the dictionary that has this hash or is free, and its content in *there; ENTRIES if
 * MOST_PROBES probes find none. */
__device__ inline int entry_of(const dictionary &known, unsigned long long hash, unsigned long long *there)
{
    int at = (int)(hash % ENTRIES);
    for (int probes = 0; probes < MOST_PROBES; probes++) {
        *there = *(volatile unsigned long long *)&known.hashes[at];
        if (*there == 0 || *there == hash)
            return at;
        at = (int)(((unsigned)at + (unsigned)(hash >> 32 | 1)) % ENTRIES);
    }
    return ENTRIES;
}

/* Stores the hash of a slice's pattern in the dictionary. Called by one thread of a warp. */
__device__ inline void enter(const dictionary &known, unsigned long long hash, int64_t slice, int slots,
                             findings *found)
{
    while (*(volatile int *)&found->many == 0) {
        unsigned long long there = 0;
        const int at = entry_of(known, hash, &there);
        if (at == ENTRIES) {
            found->many = 1;
            return;
        }
        if (there == 0) {
            there = atomicCAS(&known.hashes[at], 0ull, hash);
            if (there == 0) {
                atomicAdd(&found->pattern_slots, (unsigned long long)slots);
                if (atomicAdd(&found->patterns, 1u) >= MOST_PATTERNS)
                    found->many = 1;
                there = hash;
            }
        }
        if (there == hash) {
            if (*(volatile unsigned *)&known.last[at] < ~(unsigned)slice)
                atomicMax(&known.last[at], ~(unsigned)slice);
            return;
        }
    }
}

/* Counts the slots of each slice and collects the patterns. The warps take slices in turn.
 * most_places: the largest number of places per nonzero. */
template <typename Offset>
__global__ void __launch_bounds__(shape::BLOCK, RESIDENT)
    count(const Offset *row_ptr, const int32_t *col, int64_t rows, int64_t slices, int most_places, making m)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    __shared__ window<uint8_t> near[WARPS];
    const int64_t warps = (int64_t)gridDim.x * WARPS;
    int64_t slots = 0, longest = 0, spare = SPARE_PLACES;
    const volatile int *const others = &m.found->unsuited;                       /* what other warps found */
    bool unsorted = false, unsuited = __shfl_sync(0xffffffffu, *others, 0) != 0; /* the same in all lanes */
    for (int64_t slice = (int64_t)blockIdx.x * WARPS + (int)threadIdx.x / warp_lanes; slice < slices && !unsuited;
         slice += warps) {
        merging<Offset, uint8_t, no_values> rows_of(row_ptr, col, rows, slice, {}, near + threadIdx.x / warp_lanes);
        const int64_t mine = rows_of.length(0) > rows_of.length(1) ? rows_of.length(0) : rows_of.length(1);
        longest = mine > longest ? mine : longest;
        unsigned long long hash = 1;
        int k = 0, ends = 0, reach = 0;
        while (spare >= 0) {
            if (k % window<uint8_t>::AHEAD == 0) { /* uses what was loaded that many slots ago */
                if (ends != 0)
                    break;
                ends = __shfl_sync(0xffffffffu, *others, 0);
            }
            const slot s = rows_of.take(&unsorted);
            if (s.offset == NO_OFFSET)
                break;
            hash = hash_of(hash, s);
            const int distance = s.offset < 0 ? -s.offset : s.offset;
            reach = distance > reach ? distance : reach;
            spare += most_places * (__popc(s.low) + __popc(s.high)) - ROWS;
            k++;
        }
        hash = (hash & (~0ull >> (64 - SPMV_SLICES_HASH_BITS))) | 1ull << (SPMV_SLICES_HASH_BITS - 1);
        slots += k;
        if (lane == 0) {
            m.slots[slice] = k;
            m.hashes[slice] = hash;
            if (slice == slices / 2)
                m.found->reach = reach;
            if (spare >= 0)
                enter(m.known, hash, slice, k, m.found);
        }
        unsuited = __ballot_sync(0xffffffffu, spare < 0 || ends != 0) != 0;
    }
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
        const int64_t other = __shfl_xor_sync(0xffffffffu, longest, distance);
        longest = other > longest ? other : longest;
    }
    if (unsorted)
        m.found->unsorted = 1;
    if (unsuited && lane == 0)
        m.found->unsuited = 1;
    if (unsuited || lane > 0)
        return;
    atomicAdd(&m.found->slots, (unsigned long long)slots);
    atomicMax(&m.found->longest, (unsigned long long)longest);
}

/* Chooses for each slice the slice that writes its pattern. shares: slices with the same hash share
 * one; otherwise each slice writes its own. */
static __global__ void __launch_bounds__(shape::BLOCK) choose(int64_t slices, bool shares, making m)
{
    for (int64_t s = (int64_t)blockIdx.x * shape::BLOCK + threadIdx.x; s <= slices;
         s += (int64_t)gridDim.x * shape::BLOCK) {
        unsigned long long there = 0;
        const int64_t chosen =
            s < slices && shares ? (int64_t)~m.known.last[entry_of(m.known, m.hashes[s], &there)] : s;
        if (s < slices)
            m.chosen[s] = (int32_t)chosen;
        else
            m.slots[s] = 0;
        m.own_slots[s] = s < slices && chosen == s ? m.slots[s] : 0;
    }
}

/* Writes the patterns of the chosen slices. capacity: the number of slots that fit in patterns. */
template <typename Offset, typename Source>
__global__ void __launch_bounds__(shape::BLOCK)
    write(const Offset *row_ptr, const int32_t *col, int64_t rows, int64_t slices, int64_t capacity, making m,
          Source codes, slot *patterns)
{
    __shared__ window<uint8_t> near[WARPS];
    const int64_t warps = (int64_t)gridDim.x * WARPS;
    for (int64_t slice = (int64_t)blockIdx.x * WARPS + (int)threadIdx.x / warp_lanes; slice < slices; slice += warps) {
        if (m.chosen[slice] != slice)
            continue;
        merging<Offset, uint8_t, Source> rows_of(row_ptr, col, rows, slice, codes, near + threadIdx.x / warp_lanes);
        const int32_t begin = m.own_begins[slice], end = m.own_begins[slice + 1];
        for (int32_t k = begin; k < end; k++) {
            const slot s = rows_of.take_coded();
            if (threadIdx.x % warp_lanes == 0 && k < capacity)
                patterns[k] = s;
        }
    }
}

/* The number of equal parts of the slices whose slots are compared. */
enum { MOST_PARTS = 128, PART_SLICES = 16 };
inline int64_t parts_of(int64_t slices)
{
    const int64_t parts = slices / PART_SLICES;
    return parts < 1 ? 1 : parts < MOST_PARTS ? parts : (int64_t)MOST_PARTS;
}

static __global__ void __launch_bounds__(shape::BLOCK) write_heads(int64_t slices, int64_t parts, making m, head *heads)
{
    for (int64_t s = (int64_t)blockIdx.x * shape::BLOCK + threadIdx.x; s <= slices;
         s += (int64_t)gridDim.x * shape::BLOCK) {
        heads[s] = {m.begins[s], s < slices ? m.own_begins[m.chosen[s]] : 0};
        if (s < parts)
            atomicMax(&m.found->part_slots, m.begins[slices * (s + 1) / parts] - m.begins[slices * s / parts]);
    }
}

/* Sets found->differs to 1 if a row differs from its slice's pattern, found->varied to 1 if a value differs
 * from that of its slot. */
template <typename Offset, typename Codes>
__global__ void __launch_bounds__(shape::BLOCK)
    check(const Offset *row_ptr, const int32_t *col, int64_t rows, int64_t slices, const head *heads,
          const slot *patterns, int64_t capacity, Codes codes, findings *found)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const int64_t warps = (int64_t)gridDim.x * WARPS;
    bool differs = false, varied = false;
    for (int64_t slice = (int64_t)blockIdx.x * WARPS + (int)threadIdx.x / warp_lanes; slice < slices; slice += warps) {
        const head mine = heads[slice];
        const int count = heads[slice + 1].begin - mine.begin;
        int64_t at[2], end[2];
        for (int i = 0; i < 2; i++) {
            const int64_t row = slice * ROWS + i * warp_lanes + lane;
            at[i] = row < rows ? (int64_t)row_ptr[row] : 0;
            end[i] = row < rows ? (int64_t)row_ptr[row + 1] : 0;
        }
#pragma unroll 4
        for (int k = 0; k < count; k++) {
            const slot s = mine.pattern + k < capacity ? patterns[mine.pattern + k] : slot();
            const unsigned long long value = codes.table->bits[s.code];
            for (int i = 0; i < 2; i++) {
                const bool has = ((i == 0 ? s.low : s.high) >> lane & 1u) != 0, there = has && at[i] < end[i];
                const int64_t first = slice * ROWS + i * warp_lanes + lane;
                differs = differs || has != there || (there && (int64_t)col[at[i]] - first != s.offset);
                varied = varied || (there && tiles::bits_of(codes.val + at[i]) != value);
                at[i] += has;
            }
        }
        differs = differs || at[0] != end[0] || at[1] != end[1];
    }
    if (differs)
        found->differs = 1;
    if (varied)
        found->varied = 1;
}

/* Writes the values in the order of slots; nothing if to is NULL. Sets found->differs to 1 if a row
 * differs from its slice's pattern. */
template <typename Offset, typename Value, typename Source>
__global__ void __launch_bounds__(shape::BLOCK)
    fill(const Offset *row_ptr, const int32_t *col, int64_t rows, int64_t slices, const head *heads,
         const slot *patterns, int64_t capacity, Source source, two<Value> *to, findings *found)
{
    __shared__ window<Value> near[WARPS];
    const int lane = (int)threadIdx.x % warp_lanes;
    const int64_t warps = (int64_t)gridDim.x * WARPS;
    bool differs = false;
    for (int64_t slice = (int64_t)blockIdx.x * WARPS + (int)threadIdx.x / warp_lanes; slice < slices; slice += warps) {
        merging<Offset, Value, Source> rows_of(row_ptr, col, rows, slice, source, near + threadIdx.x / warp_lanes);
        const head mine = heads[slice];
        const int count = heads[slice + 1].begin - mine.begin;
        for (int k = 0; k < count; k++) {
            const slot s = mine.pattern + k < capacity ? patterns[mine.pattern + k] : slot();
            const bool low = (s.low >> lane & 1u) != 0, high = (s.high >> lane & 1u) != 0;
            two<Value> value = {};
            differs = differs || (low && rows_of.next[0] != s.offset) || (high && rows_of.next[1] != s.offset);
            if (low)
                value.low = rows_of.near->value[rows_of.place(0)];
            if (high)
                value.high = rows_of.near->value[rows_of.place(1)];
            rows_of.pass(low, high);
            if (to != nullptr)
                to[((int64_t)mine.begin + k) * warp_lanes + lane] = value;
        }
        differs = differs || rows_of.length(0) != 0 || rows_of.length(1) != 0;
    }
    if (differs)
        found->differs = 1;
}

} // namespace slices

#endif
