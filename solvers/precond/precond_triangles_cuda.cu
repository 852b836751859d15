/* The solve of a sparse triangle on CUDA, in one launch.
 *
 *     out_i = (in_i - sum of val out_col) inverse_i,    the sum in the order of the row
 *
 * Rows are solved in the order of their levels. A subwarp has a row: each lane waits for
 * the element of out that its entry needs, and multiplies. When all lanes have their products,
 * the first one subtracts them in the order of the row, as the host does. There is no barrier
 * between levels.
 *
 * Words: an element of out that is not yet known has all bits set, which is not the result of any
 * row (`word_of`). So one load shows whether an element is known, and which value it has. No word
 * guards data elsewhere, and relaxed accesses suffice. A launch expects out in this state. It
 * sets `blank` to it, which is the out of the other triangle: each row does so for its own
 * element, after reading in, so blank may be in. So there is nothing to count or to clear between
 * applications.
 *
 * Tiles: blocks take tiles of rows in order. Where levels are small, a tile has many of them, and
 * elements of the same tile are read from shared memory, which takes a tenth of an access to the
 * second-level cache. Other elements are read from there. Where levels are large, a tile is a
 * part of one.
 *
 * Factors with fill-in have a few long rows in a level, down to one. In a tile of such levels a
 * warp has a row, so what counts is the time from one row to the next: a load from shared memory,
 * a product and a difference, without an exchange between lanes (`solve_alone`).
 *
 * Polling loads of all waiting warps would delay each other. So a tile first waits for one row
 * some levels before its own, its gate, with a single load for each warp. Meanwhile its entries
 * are loaded.
 *
 * Progress: a tile's number is drawn from a counter, so tiles with smaller numbers belong to
 * blocks that run or have finished, and a tile needs no other ones (as in device/lookback.cuh).
 * In a tile, a warp takes rows in their order, and a waiting subwarp does not keep other subwarps of
 * its warp from going on. So the first row that is not solved is always in progress, and waits
 * for nothing.
 *
 * Sources: W. Liu, A. Li, J. Hogg, I. S. Duff, B. Vinter, "A synchronization-free algorithm for
 * parallel sparse triangular solves", Euro-Par 2016; J. Su et al., "CapelliniSpTRSV: a
 * thread-level synchronization-free sparse triangular solve on GPUs", ICPP 2020.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <type_traits>

#include "device/dispatch.cuh"
#include "device/launch.cuh"
#include "device/lookback.cuh"
#include "device/relaxed.cuh"

extern "C" {
#include "solvers/precond/precond_loops.h"
}

namespace
{

/* FEW_LANES: subwarps of at most so many lanes need few warps to hold several levels at a time; with
 * more warps, their polling loads take longer. RESIDENT_THREADS: what a multiprocessor runs at once
 * on every architecture, with 64 registers a thread. */
enum { FEW_LANES = 4, FEW_THREADS = 256, MANY_THREADS = 512, RESIDENT_THREADS = 1024 };

template <int Lanes> constexpr int THREADS = Lanes <= FEW_LANES ? FEW_THREADS : MANY_THREADS;

/* The bits of an element of this size. */
template <typename T> using word_for = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <typename T> constexpr word_for<T> UNKNOWN = ~(word_for<T>)0;

/* Whether the upper half has all bits set, which is so for some NaN only. The instruction keeps the
 * compiler from comparing both halves. */
template <typename T> __device__ bool is_unknown(word_for<T> word)
{
    uint32_t upper;
#ifdef __CUDA_ARCH__
    if constexpr (sizeof word == 8)
        asm("{ .reg .u32 lower; mov.b64 {lower, %0}, %1; }" : "=r"(upper) : "l"(word));
    else
        upper = word;
#else
    upper = (uint32_t)(word >> (8 * sizeof word - 32));
#endif
    return upper == ~0u;
}

/* A NaN that looks like an unknown element becomes another NaN. */
template <typename T> __device__ word_for<T> word_of(T x)
{
    word_for<T> word;
    memcpy(&word, &x, sizeof word);
    return is_unknown<T>(word) ? UNKNOWN<T> >> 1 : word;
}

template <typename T> __device__ T value_of(word_for<T> word)
{
    T x;
    memcpy(&x, &word, sizeof x);
    return x;
}

/* The arguments of a launch; see precond_loops.h. */
template <typename T> struct triangle {
    const precond_tile *tile;
    int tiles;
    int *drawn, *drawn_next;
    const int64_t *ptr;
    const int32_t *col, *row;
    const T *val, *inverse;
    const word_for<T> *in;
    word_for<T> *out, *blank;
};

/* A row as loaded: its number, where its entries begin, and the lower bits of where they end.
 * number < 0: there is no row. Nothing is computed from it before it is needed, which would wait
 * for the loads. */
struct row_found {
    int64_t begin;
    uint32_t end;
    int32_t number;
};

/* An entry, and what the first lane of a subwarp computes with. */
template <typename T> struct loaded {
    int32_t col;
    T val, sum, inverse;
};

/* Whether a lane that waits goes on waiting. On a host that emulates a GPU, the lanes decide
 * together, and other warps run in the meantime. */
__device__ inline bool goes_on(bool waits)
{
#ifdef __CUDA_ARCH__
    return waits;
#else
    return __ballot_sync(0xffffffffu, waits) != 0;
#endif
}

/* Of a lane, whose number is taken modulo the lanes of a warp. */
template <typename X> __device__ X from_lane(X x, int lane)
{
    return __shfl_sync(0xffffffffu, x, lane % (unsigned)warp_lanes);
}

/* Subwarps of this many lanes, in a block of this many threads. */
template <typename T, int Lanes, int Threads> struct solver {
    static constexpr int rows = warp_lanes / Lanes, stride = Threads / Lanes;

    const triangle<T> &t;
    shared_words<word_for<T>> shared; /* elements of the tile */
    bool keeps;                       /* they are needed */
    int part, leader;                 /* the lane's number in its subwarp, and the subwarp's first lane */

    __device__ row_found find(unsigned p, unsigned end) const
    {
        if (p >= end)
            return {0, 0, -1};
        return {t.ptr[p], (uint32_t)t.ptr[p + 1], t.row[p]};
    }

    /* The entries of a row from this lane's first one to the end; 0 or less if there is none. */
    __device__ int count(const row_found &row) const
    {
        return (int)(row.end - (uint32_t)row.begin) - part;
    }

    __device__ loaded<T> load(unsigned p, const row_found &row) const
    {
        loaded<T> got = {};
        if (count(row) > 0) {
            got.col = t.col[row.begin + part];
            got.val = t.val[row.begin + part];
        }
        if (part == 0 && row.number >= 0) {
            got.sum = value_of<T>(t.in[row.number]);
            t.blank[row.number] = UNKNOWN<T>;
            got.inverse = t.inverse[p];
        }
        return got;
    }

    __device__ word_for<T> look(int32_t col) const
    {
        return col < 0 ? shared.read(-1 - col) : load_relaxed(t.out + col);
    }

    /* The bit of a subwarp's last lane, if all its lanes are in `lanes`: all bits of a subwarp are 1
     * if its last one is and adding 1 to the others carries into it. */
    static __device__ unsigned complete(unsigned lanes)
    {
        constexpr unsigned first = Lanes == 32 ? 1u : 0xffffffffu / ((1u << Lanes % 32) - 1u),
                           last = first << (Lanes - 1);
        return ((lanes & ~last) + first) & lanes & last;
    }

    /* The word of an element, once it is known. For all lanes of a warp. */
    __device__ word_for<T> await(int32_t col) const
    {
        word_for<T> word;
        if (col < 0)
            do
                word = shared.read(-1 - col);
            while (goes_on(is_unknown<T>(word)));
        else
            do
                word = load_relaxed(t.out + col);
            while (goes_on(is_unknown<T>(word)));
        return word;
    }

    /* By the first lane of a subwarp. local: the row's place in the tile. */
    __device__ void publish(int local, const row_found &row, const loaded<T> &own) const
    {
        const word_for<T> word = word_of(own.sum * own.inverse);
        if (keeps)
            shared.write(local, word);
        store_relaxed(t.out + row.number, word);
    }

    /* Subtracts the products of the first `count` lanes from the sum of each lane, in order, each
     * as soon as its element is known. For all lanes of a warp. */
    __device__ void subtract(int count, loaded<T> *own) const
    {
        enum { AT_ONCE = 4 };
        bool waits = part < count;
        T product = 0;
        for (int done = 0; done < count;) {
            if (waits) {
                const word_for<T> word = look(own->col);
                waits = is_unknown<T>(word);
                product = own->val * value_of<T>(word);
            }
            const unsigned missing = __ballot_sync(0xffffffffu, waits);
            const int known = missing != 0 ? __ffs((int)missing) - 1 : count;
            /* 0 in lanes that the last step may add: from known on, and from the end of the warp at
             * most the first done % AT_ONCE */
            const T term = part >= done && part < known ? product : 0;
            for (; done < known; done += AT_ONCE)
#pragma unroll
                for (int i = 0; i < AT_ONCE; i++)
                    own->sum -= from_lane(term, done + i);
            done = known;
        }
    }

    /* Solves a row with a warp. The lanes share the entries. In a chain of rows the last elements
     * become known one by one, each soon before the next. All lanes wait for each of these
     * together, so that there is no exchange after the last one. */
    __device__ void solve_alone(int local, const row_found &row, loaded<T> own) const
    {
        static_assert(Lanes == warp_lanes, "a row a warp");
        enum { ONE_BY_ONE = 4 };
        int64_t k = row.begin + part + Lanes; /* the entry after own */
        int left = (int)(row.end - (uint32_t)row.begin);
        for (; left > Lanes; left -= Lanes, k += Lanes) {
            loaded<T> next = {};
            if (part < left - Lanes) {
                next.col = t.col[k];
                next.val = t.val[k];
            }
            subtract(Lanes, &own);
            own.col = next.col;
            own.val = next.val;
        }
        const int first = left > ONE_BY_ONE ? left - ONE_BY_ONE : 0;
        subtract(first, &own);
        int32_t col = from_lane(own.col, first);
        T val = from_lane(own.val, first);
        for (int i = first; i < left; i++) {
            const int32_t col_after = from_lane(own.col, i + 1);
            const T val_after = from_lane(own.val, i + 1);
            own.sum -= val * value_of<T>(await(col));
            col = col_after;
            val = val_after;
        }
        if (part == 0)
            publish(local, row, own);
    }

    /* Solves the rows of a warp, those of each subwarp as soon as possible. */
    __device__ void solve(int local, const row_found &row, loaded<T> own) const
    {
        enum { WAITS, HAS_PRODUCT, IDLE };
        int64_t k = row.begin + part + Lanes; /* the next entry */
        int left = count(row);
        int state = row.number < 0 ? IDLE : left > 0 ? WAITS : HAS_PRODUCT;
        loaded<T> next = {};
        if (left > Lanes) {
            next.col = t.col[k];
            next.val = t.val[k];
        }
        T product = 0;
        for (bool any = true; any;) {
            if (state == WAITS) {
                const word_for<T> word = look(own.col);
                if (!is_unknown<T>(word)) {
                    product = own.val * value_of<T>(word);
                    state = HAS_PRODUCT;
                }
            }
            const unsigned ready = complete(__ballot_sync(0xffffffffu, state == HAS_PRODUCT));
            if (ready == 0)
                continue;
            const bool mine = (ready >> (leader + Lanes - 1) & 1u) != 0, ends = left + part <= Lanes;
            const T subtracted = product;
            word_for<T> early = UNKNOWN<T>; /* the element after, loaded while the sum is computed */
            if (mine) {
                product = 0;
                k += Lanes;
                left -= Lanes;
                if (left > 0) {
                    state = WAITS;
                    own.col = next.col;
                    own.val = next.val;
                    early = look(own.col);
                }
                if (left > Lanes) {
                    next.col = t.col[k];
                    next.val = t.val[k];
                }
            }
#pragma unroll 8 /* registers */
            for (int lane = 0; lane < Lanes; lane++) {
                const T term = Lanes == 1 ? subtracted : from_lane(subtracted, leader + lane);
                own.sum = mine ? own.sum - term : own.sum;
            }
            if (mine && ends) {
                state = IDLE;
                if (part == 0)
                    publish(local, row, own);
            }
            if (!is_unknown<T>(early)) {
                product = own.val * value_of<T>(early);
                state = HAS_PRODUCT;
            }
            any = __ballot_sync(0xffffffffu, state != IDLE) != 0;
        }
    }

    template <bool Alone> __device__ void tile(const precond_tile &of) const
    {
        const unsigned first = (unsigned)of.begin + threadIdx.x / warp_lanes * rows, end = (unsigned)of.end;
        if (first >= end)
            return;
        /* rows are found two steps ahead, and their entries loaded one step */
        unsigned p = first + (unsigned)leader / Lanes;
        row_found row = find(p, end), next_row = find(p + stride, end);
        loaded<T> own = load(p, row);
        if (of.gate >= 0)
            while (is_unknown<T>(load_relaxed(t.out + of.gate))) {
            }
        for (unsigned begin = first; begin < end; begin += stride, p += stride) {
            const loaded<T> next = load(p + stride, next_row);
            const row_found after = find(p + 2 * stride, end);
            if constexpr (Alone)
                solve_alone((int)p - of.begin, row, own);
            else
                solve((int)p - of.begin, row, own);
            row = next_row;
            next_row = after;
            own = next;
        }
    }
};

template <typename T, int Lanes>
__global__ void __launch_bounds__(THREADS<Lanes>, RESIDENT_THREADS / THREADS<Lanes>) triangle_kernel(triangle<T> t)
{
    SPMV_DYNAMIC_SHARED(memory);
    __shared__ int drawn;
    let_next_begin();
    await_kernel_before();
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *t.drawn_next = 0;
    const int lane = (int)threadIdx.x % warp_lanes;
    for (;;) {
        if (threadIdx.x == 0)
            drawn = atomicAdd(t.drawn, 1);
        __syncthreads(); /* also: the tile before is done with shared memory */
        const int number = drawn;
        if (number >= t.tiles)
            return;
        const precond_tile tile = t.tile[number];
        word_for<T> *const shared = (word_for<T> *)memory;
        if (tile.inside != 0)
            for (int i = (int)threadIdx.x; i < tile.end - tile.begin; i += THREADS<Lanes>)
                shared[i] = UNKNOWN<T>;
        __syncthreads();
        const shared_words<word_for<T>> words(shared);
        if (Lanes > FEW_LANES && tile.inside != 0)
            solver<T, warp_lanes, THREADS<Lanes>>{t, words, true, lane, 0}.template tile<true>(tile);
        else
            solver<T, Lanes, THREADS<Lanes>>{t, words, tile.inside != 0, lane % Lanes, lane - lane % Lanes}
                .template tile<false>(tile);
    }
}

template <typename T, int Lanes>
spmv_status solve(spmv_context *ctx, const struct precond_triangle *from, const void *in, void *out, void *blank)
{
    const struct precond_tiles *const tiles = &from->tiles;
    const triangle<T> t = {tiles->tile,
                           (int)tiles->count,
                           tiles->drawn,
                           tiles->drawn_next,
                           from->ptr,
                           from->col,
                           from->row,
                           (const T *)from->val,
                           (const T *)from->inverse,
                           (const word_for<T> *)in,
                           (word_for<T> *)out,
                           (word_for<T> *)blank};
    constexpr int threads = THREADS<Lanes>;
    const int64_t resident = (int64_t)((const cuda_state *)ctx->device)->multiprocessors * (RESIDENT_THREADS / threads);
    const int blocks = (int)min_i64(tiles->count, resident);
    return launch_shaped(ctx, "preconditioner triangle", {blocks, threads, tiles->inside * (int)sizeof(T), true},
                         triangle_kernel<T, Lanes>, t);
}

} // namespace

extern "C" spmv_status precond_triangle_cuda(spmv_context *ctx, spmv_type type, const struct precond_triangle *t,
                                             const void *in, void *out, void *blank)
{
    if (t->rows == 0)
        return SPMV_OK;
    return on_device(ctx, [=] {
        return with_zero(ctx, "preconditioner", type, [=](auto zero) {
            using T = decltype(zero);
            switch (t->tiles.lanes) {
            case 1:
                return solve<T, 1>(ctx, t, in, out, blank);
            case 2:
                return solve<T, 2>(ctx, t, in, out, blank);
            case 4:
                return solve<T, 4>(ctx, t, in, out, blank);
            case 8:
                return solve<T, 8>(ctx, t, in, out, blank);
            case 16:
                return solve<T, 16>(ctx, t, in, out, blank);
            default:
                return solve<T, 32>(ctx, t, in, out, blank);
            }
        });
    });
}

extern "C" spmv_status precond_triangles_begin_cuda(spmv_context *ctx, void *between, int64_t bytes, int *drawn)
{
    return on_device(ctx, [=] {
        const cudaStream_t stream = (cudaStream_t)ctx->stream;
        const spmv_status st = cuda_check(ctx, cudaMemsetAsync(drawn, 0, 2 * sizeof *drawn, stream), "clearing memory");
        return st != SPMV_OK
                   ? st
                   : cuda_check(ctx, cudaMemsetAsync(between, 0xff, (size_t)bytes, stream), "clearing memory");
    });
}
