/* Rung 5, "columns": several vectors at once, the columns of a matrix x that lies row by row.
 *
 * Idea: lanes side by side take the columns of x, so that the row of x that an entry of the matrix names is one piece
 * of memory, and the entry is read once for all of them; a lane loads 16 bytes of the row of x where x allows it (PACK
 * columns). A group of width * slots lanes has a row: slots entries at a time, which meet in a fixed tree at the end.
 * Work: nnz * columns products. Depth: a row's entries / slots. Launches: 1, for 16 columns at a time; 3 where rows are
 * long. Bytes: the matrix once, and for each entry a row of x, from cache where it can be: that, not the matrix, is
 * what takes the time from some 4 columns on. Changed since rung 2: a lane has columns of x instead of a part of the
 * row.
 *
 * For solvers, parts of x'y ride along (dots): a lane has the row's element of x ready when it stores y's.
 *
 * Rows of more than LONG * slots entries are cut into pieces of PIECE, for a warp each; a block a row adds the pieces'
 * sums in a fixed order. The plan finds these rows on the device and cuts them on the host, where they are few.
 *
 * Bits: slot s of a group takes entries s, s + slots, ... of its row, or of its piece. How many slots there are follows
 * from the mean row length and from the number of columns, so a column's bits depend on k, but not on where x lies. H.
 * M. Aktulga, A. Buluc, S. Williams, C. Yang, "Optimizing sparse matrix-multiple vectors multiplication for nuclear
 * configuration interaction calculations", IPDPS 2014.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_5_COLUMNS_CUH
#define SPMV_5_COLUMNS_CUH

#include "block.cuh"
#include "spmv_cuda.cuh"

namespace columns
{

enum { BLOCK = 128, BLOCK_WARPS = BLOCK / warp_lanes, MOST = 16, LONG = 256, PIECE = 1024 };

/* Slots of a group are for at least so many entries each. */
enum { EACH_SLOT = 8 };

struct piece {
    int64_t begin, end;
};

struct long_row {
    int64_t row, begin, end; /* its entries */
};

/* Where the pieces of a long row are. */
struct pieces_of_row {
    int64_t row, first, count;
};

/* N neighbouring columns, loaded at once. */
template <typename T, int N> struct alignas(sizeof(T) * N) pack {
    T at[N];
};

/* What a launch works on: `columns` columns of x and y, at most MOST. */
template <typename T, typename Stored> struct job {
    int64_t rows;
    const void *row_ptr;
    bool wide;
    const int32_t *col;
    const Stored *val; /* NULL: a pattern */
    const T *x;
    T *y;
    int64_t x_stride, y_stride;
    int columns;
    int width_log;      /* lanes for the columns */
    int slots_log;      /* entries a group takes at a time, of a row ... */
    int most_slots_log; /* ... and of a piece */
    int64_t longest;    /* longer rows are left out */
    scaling<T> s;

    __device__ int64_t offset(int64_t row) const
    {
        return wide ? ((const int64_t *)row_ptr)[row] : (int64_t)((const int32_t *)row_ptr)[row];
    }
};

/* What may ride along with the products of rows. */
template <typename T> struct dots {
    T *parts;        /* of x'y of each column: one a block and column */
    const int *stop; /* where it is not 0, the product is for nothing; NULL: it never is */
};
struct no_dots {
};

/* A lane's place among those that share a row or piece. */
struct place {
    int slot, slots, column; /* its first column */
};

template <int PACK> __device__ place place_of(int lane, int width_log, int slots_log)
{
    const int in_group = lane & ((1 << (width_log + slots_log)) - 1);
    return {in_group >> width_log, 1 << slots_log, (in_group & ((1 << width_log) - 1)) * PACK};
}

/* sum[i] += the lane's part of entries begin ... end - 1, in column i of its own. */
template <int PACK, typename T, typename Stored>
__device__ void add_entries(const job<T, Stored> &j, place p, int64_t begin, int64_t end, T *sum)
{
    const T *const x = j.x + p.column;
#pragma unroll 4
    for (int64_t k = begin + p.slot; k < end; k += p.slots) {
        const pack<T, PACK> row = *(const pack<T, PACK> *)(x + (int64_t)j.col[k] * j.x_stride);
        if (j.val != nullptr) {
            const T value = T(load_whole(j.val + k));
#pragma unroll
            for (int i = 0; i < PACK; i++)
                sum[i] += value * row.at[i];
        } else {
#pragma unroll
            for (int i = 0; i < PACK; i++)
                sum[i] += row.at[i];
        }
    }
}

/* Slot 0 gets the fixed tree's sum of the slots. All lanes of the warp. */
template <int PACK, typename T> __device__ void add_slots(int width_log, int slots, T *sum)
{
    for (int distance = slots / 2; distance > 0; distance /= 2)
#pragma unroll
        for (int i = 0; i < PACK; i++)
            sum[i] += shuffle_down(sum[i], distance << width_log);
}

/* The block's part of x'y of each column: sum has what a lane of slot 0 adds to its columns, 0 elsewhere. All threads.
 */
template <int PACK, typename T, typename Stored> __device__ void leave_parts(const job<T, Stored> &j, T *parts, T *sum)
{
    __shared__ T of_warps[BLOCK_WARPS][MOST];
    const int lane = (int)threadIdx.x % warp_lanes, thread = (int)threadIdx.x;
    for (int distance = warp_lanes / 2; distance >= 1 << (j.width_log + j.slots_log); distance /= 2)
#pragma unroll
        for (int i = 0; i < PACK; i++)
            sum[i] += shuffle_down(sum[i], distance);
    if (lane < 1 << j.width_log) {
#pragma unroll
        for (int i = 0; i < PACK; i++)
            if (lane * PACK + i < j.columns)
                of_warps[thread / warp_lanes][lane * PACK + i] = sum[i];
    }
    __syncthreads();
    if (thread < j.columns) {
        T all = of_warps[0][thread];
        for (int warp = 1; warp < BLOCK_WARPS; warp++)
            all += of_warps[warp][thread];
        parts[(int64_t)blockIdx.x * j.columns + thread] = all;
    }
}

/* Dots: no_dots, or dots<T>, of a square matrix. */
template <int PACK, typename Dots, typename T, typename Stored>
__global__ void __launch_bounds__(BLOCK) multiply_rows(job<T, Stored> j, Dots dots)
{
    constexpr bool DOT = !std::is_same<Dots, no_dots>::value;
    T dot[PACK] = {};
    if constexpr (DOT) {
        let_next_begin();
        await_kernel_before();
        if (dots.stop != nullptr && *dots.stop != 0)
            return;
    }
    const int lane = (int)threadIdx.x % warp_lanes, group_log = j.width_log + j.slots_log;
    const int group = lane >> group_log, groups = warp_lanes >> group_log;
    const place p = place_of<PACK>(lane, j.width_log, j.slots_log);
    const bool has_columns = p.column < j.columns;
    const int64_t stride = (int64_t)gridDim.x * BLOCK_WARPS * groups;
    /* the same for all lanes of a warp: they leave the loop together */
    for (int64_t first = ((int64_t)blockIdx.x * BLOCK_WARPS + threadIdx.x / warp_lanes) * groups; first < j.rows;
         first += stride) {
        const int64_t row = first + group;
        bool mine = has_columns && row < j.rows;
        const int64_t begin = mine ? j.offset(row) : 0, end = mine ? j.offset(row + 1) : 0;
        T sum[PACK] = {};
        pack<T, PACK> own = {};
        if (end - begin > j.longest)
            mine = false;
        if constexpr (DOT) {
            if (mine && p.slot == 0) /* on its way while the row is added up */
                own = *(const pack<T, PACK> *)(j.x + row * j.x_stride + p.column);
        }
        if (mine)
            add_entries<PACK>(j, p, begin, end, sum);
        add_slots<PACK>(j.width_log, p.slots, sum);
        if (mine && p.slot == 0) {
#pragma unroll
            for (int i = 0; i < PACK; i++) {
                T *const y = &j.y[row * j.y_stride + p.column + i];
                j.s.store(sum[i], y);
                if constexpr (DOT)
                    dot[i] += own.at[i] * *y;
            }
        }
    }
    if constexpr (DOT)
        leave_parts<PACK>(j, dots.parts, dot);
}

/* sums[MOST * piece + column]; a group of lanes a piece. */
template <int PACK, typename T, typename Stored>
__global__ void __launch_bounds__(BLOCK) multiply_pieces(job<T, Stored> j, const piece *pieces, int64_t count, T *sums)
{
    const int lane = (int)threadIdx.x % warp_lanes, group_log = j.width_log + j.most_slots_log;
    const int group = lane >> group_log, groups = warp_lanes >> group_log;
    const place p = place_of<PACK>(lane, j.width_log, j.most_slots_log);
    const int64_t stride = (int64_t)gridDim.x * BLOCK_WARPS * groups;
    /* the same for all lanes of a warp: they leave the loop together */
    for (int64_t first = ((int64_t)blockIdx.x * BLOCK_WARPS + threadIdx.x / warp_lanes) * groups; first < count;
         first += stride) {
        const int64_t i = first + group;
        const bool mine = p.column < j.columns && i < count;
        T sum[PACK] = {};
        if (mine)
            add_entries<PACK>(j, p, pieces[i].begin, pieces[i].end, sum);
        add_slots<PACK>(j.width_log, p.slots, sum);
        if (mine && p.slot == 0) {
#pragma unroll
            for (int c = 0; c < PACK; c++)
                sums[i * MOST + p.column + c] = sum[c];
        }
    }
}

/* y from the sums of the pieces of a long row; a block a row: lane c of each half warp has column c. */
template <typename T, typename Stored>
__global__ void __launch_bounds__(BLOCK)
    add_pieces(job<T, Stored> j, const pieces_of_row *rows, int64_t count, const T *sums)
{
    enum { SLOTS = BLOCK / MOST };
    __shared__ T of_slots[SLOTS][MOST];
    const int column = (int)threadIdx.x % MOST, slot = (int)threadIdx.x / MOST;
    for (int64_t r = blockIdx.x; r < count; r += gridDim.x) {
        const pieces_of_row mine = rows[r];
        T sum = {};
        if (column < j.columns) {
#pragma unroll 4
            for (int64_t i = slot; i < mine.count; i += SLOTS)
                sum += sums[(mine.first + i) * MOST + column];
        }
        of_slots[slot][column] = sum;
        __syncthreads();
        if (slot == 0 && column < j.columns) {
            for (int other = 1; other < SLOTS; other++)
                sum += of_slots[other][column];
            j.s.store(sum, &j.y[mine.row * j.y_stride + column]);
        }
        __syncthreads();
    }
}

/* The rows of more than longest entries, in any order. */
template <typename Offset>
__global__ void __launch_bounds__(BLOCK)
    find_long(const Offset *row_ptr, int64_t rows, int64_t longest, long_row *found, unsigned long long *count)
{
    for (int64_t row = (int64_t)blockIdx.x * BLOCK + threadIdx.x; row < rows; row += (int64_t)gridDim.x * BLOCK) {
        const int64_t begin = (int64_t)row_ptr[row], end = (int64_t)row_ptr[row + 1];
        if (end - begin > longest)
            found[atomicAdd(count, 1ull)] = {row, begin, end};
    }
}

} // namespace columns

#endif
