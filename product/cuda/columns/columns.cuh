/* Method "columns": several vectors at once, the columns of a matrix x stored row by row.
 *
 * Idea:       neighbouring lanes take the columns of x, so the row of x for an entry is contiguous,
 *             and the entry is read once for all columns; a lane loads 16 bytes of a row of x (PACK
 *             columns) where x allows it. A subwarp of width * slots lanes processes a row: slots
 *             entries at a time, whose sums combine in a fixed tree at the end.
 * Work:       nnz * columns products.
 * Depth:      a row's entries / slots.
 * Launches:   1 for 16 columns at a time; 3 if there are long rows.
 * Bytes:      the matrix once, and a row of x for each entry, from cache where possible. From about
 *             4 columns on, x dominates the time.
 * Changed:    since vector, a lane has columns of x instead of a part of the row.
 * Wins when:  there are several vectors.
 * Bits:       slot s of a subwarp takes entries s, s + slots, ... of its row or fragment. The number
 *             of slots depends on the mean row length and the number of columns. So a column's bits
 *             depend on the number of columns, but not on the alignment of x.
 * Source:     H. M. Aktulga, A. Buluc, S. Williams, C. Yang, "Optimizing sparse matrix-multiple
 *             vectors multiplication for nuclear configuration interaction calculations", IPDPS
 *             2014.
 *
 * For solvers, the kernel also computes parts of x'y (dots): a lane has the row's element of x when
 * it stores that of y.
 *
 * Rows of more than LONG * slots entries are cut into fragments of FRAGMENT entries, one for each
 * subwarp; one block a row adds the sums of the fragments in a fixed order. The plan finds
 * these rows on the device and cuts them on the host, since they are few.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_COLUMNS_CUH
#define PRODUCT_COLUMNS_CUH

#include "device/block.cuh"
#include "product/cuda/spmv_cuda.cuh"

namespace columns
{

enum { BLOCK = 128, BLOCK_WARPS = BLOCK / warp_lanes, MOST = 16, LONG = 256, FRAGMENT = 1024 };

/* The least mean number of entries for each slot of a subwarp. */
enum { EACH_SLOT = 8 };

struct fragment {
    int64_t begin, end;
};

struct long_row {
    int64_t row, begin, end; /* its entries */
};

/* The fragments of a long row: their first one and their number. */
struct fragments_of_row {
    int64_t row, first, count;
};

/* The arguments of a launch for `columns` columns of x and y, at most MOST. T: of sums and scalars; Stored: of
 * values; Element: of vectors. */
template <typename T, typename Stored, typename Element> struct job {
    int64_t rows;
    const void *row_ptr;
    bool wide;
    const int32_t *col;
    const Stored *val; /* NULL: a pattern */
    const Element *x;
    Element *y;
    int64_t x_stride, y_stride;
    int columns;
    int width_log;      /* log2 of the lanes for the columns */
    int slots_log;      /* log2 of the entries that a subwarp takes at a time of a row, */
    int most_slots_log; /* and of a fragment */
    int64_t longest;    /* rows with more entries are skipped */
    scaling<T> s;

    __device__ int64_t offset(int64_t row) const
    {
        return wide ? ((const int64_t *)row_ptr)[row] : (int64_t)((const int32_t *)row_ptr)[row];
    }
};

/* Optional dot products. */
template <typename T> struct dots {
    T *parts;        /* the parts of x'y of each column: one for each block and column */
    const int *stop; /* if *stop is not 0, the product is skipped; NULL: never */
};
struct no_dots {
};

/* The position of a lane in its subwarp. */
struct place {
    int slot, slots, column; /* its first column */
};

template <int PACK> __device__ place place_of(int lane, int width_log, int slots_log)
{
    const int in_subwarp = lane & ((1 << (width_log + slots_log)) - 1);
    return {in_subwarp >> width_log, 1 << slots_log, (in_subwarp & ((1 << width_log) - 1)) * PACK};
}

/* sum[i] += the slot's part of entries begin ... end - 1, in the lane's column i. */
template <int PACK, typename T, typename Stored, typename Element>
__device__ void add_entries(const job<T, Stored, Element> &j, place p, int64_t begin, int64_t end, T *sum)
{
    if (begin >= end) /* x may be NULL */
        return;
    const Element *const x = j.x + p.column;
#pragma unroll 4
    for (int64_t k = begin + p.slot; k < end; k += p.slots) {
        const row_pack<T, Element, PACK> row =
            *(const row_pack<T, Element, PACK> *)(x + (int64_t)j.col[k] * j.x_stride);
        if (j.val != nullptr) {
            const T value = T(load_whole(j.val + k));
#pragma unroll
            for (int i = 0; i < PACK; i++)
                sum[i] = multiply_add<Element>(value, row[i], sum[i]);
        } else {
#pragma unroll
            for (int i = 0; i < PACK; i++)
                sum[i] += row[i];
        }
    }
}

/* Adds the sums of the slots in a fixed tree; slot 0 has the result. Called by all lanes of a
 * warp. */
template <int PACK, typename T> __device__ void add_slots(int width_log, int slots, T *sum)
{
    for (int distance = slots / 2; distance > 0; distance /= 2)
#pragma unroll
        for (int i = 0; i < PACK; i++)
            sum[i] += shuffle_down(sum[i], distance << width_log);
}

/* Writes the block's part of x'y for each column. sum: the contributions of a lane of slot 0, 0 in
 * other lanes. Called by all threads. */
template <int PACK, typename T, typename Stored, typename Element>
__device__ void leave_parts(const job<T, Stored, Element> &j, T *parts, T *sum)
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

/* Dots: no_dots, or dots<T> for a square matrix. */
template <int PACK, typename Dots, typename T, typename Stored, typename Element>
__global__ void __launch_bounds__(BLOCK) multiply_rows(job<T, Stored, Element> j, Dots dots)
{
    constexpr bool DOT = !std::is_same<Dots, no_dots>::value;
    T dot[PACK] = {};
    if constexpr (DOT) {
        let_next_begin();
        await_kernel_before();
        if (dots.stop != nullptr && *dots.stop != 0)
            return;
    }
    const int lane = (int)threadIdx.x % warp_lanes, subwarp_log = j.width_log + j.slots_log;
    const int subwarp = lane >> subwarp_log, subwarps = warp_lanes >> subwarp_log;
    const place p = place_of<PACK>(lane, j.width_log, j.slots_log);
    const bool has_columns = p.column < j.columns;
    const int64_t stride = (int64_t)gridDim.x * BLOCK_WARPS * subwarps;
    /* first is the same for all lanes of a warp, so they leave the loop together. */
    for (int64_t first = ((int64_t)blockIdx.x * BLOCK_WARPS + threadIdx.x / warp_lanes) * subwarps; first < j.rows;
         first += stride) {
        const int64_t row = first + subwarp;
        bool mine = has_columns && row < j.rows;
        const int64_t begin = mine ? j.offset(row) : 0, end = mine ? j.offset(row + 1) : 0;
        T sum[PACK] = {};
        row_pack<T, Element, PACK> own = {};
        if (end - begin > j.longest)
            mine = false;
        if constexpr (DOT) {
            if (mine && p.slot == 0) /* loaded while the row is summed */
                own = *(const row_pack<T, Element, PACK> *)(j.x + row * j.x_stride + p.column);
        }
        if (mine)
            add_entries<PACK>(j, p, begin, end, sum);
        add_slots<PACK>(j.width_log, p.slots, sum);
        if (mine && p.slot == 0) {
#pragma unroll
            for (int i = 0; i < PACK; i++) {
                Element *const y = &j.y[row * j.y_stride + p.column + i];
                j.s.store(sum[i], y);
                if constexpr (DOT)
                    dot[i] += own[i] * *y;
            }
        }
    }
    if constexpr (DOT)
        leave_parts<PACK>(j, dots.parts, dot);
}

/* sums[MOST * fragment + column]; one subwarp a fragment. */
template <int PACK, typename T, typename Stored, typename Element>
__global__ void __launch_bounds__(BLOCK)
    multiply_fragments(job<T, Stored, Element> j, const fragment *fragments, int64_t count, T *sums)
{
    const int lane = (int)threadIdx.x % warp_lanes, subwarp_log = j.width_log + j.most_slots_log;
    const int subwarp = lane >> subwarp_log, subwarps = warp_lanes >> subwarp_log;
    const place p = place_of<PACK>(lane, j.width_log, j.most_slots_log);
    const int64_t stride = (int64_t)gridDim.x * BLOCK_WARPS * subwarps;
    /* first is the same for all lanes of a warp, so they leave the loop together. */
    for (int64_t first = ((int64_t)blockIdx.x * BLOCK_WARPS + threadIdx.x / warp_lanes) * subwarps; first < count;
         first += stride) {
        const int64_t i = first + subwarp;
        const bool mine = p.column < j.columns && i < count;
        T sum[PACK] = {};
        if (mine)
            add_entries<PACK>(j, p, fragments[i].begin, fragments[i].end, sum);
        add_slots<PACK>(j.width_log, p.slots, sum);
        if (mine && p.slot == 0) {
#pragma unroll
            for (int c = 0; c < PACK; c++)
                sums[i * MOST + p.column + c] = sum[c];
        }
    }
}

/* y of the long rows from the sums of their fragments. One block a row: threads with the same
 * number modulo MOST have the same column. */
template <typename T, typename Stored, typename Element>
__global__ void __launch_bounds__(BLOCK)
    add_fragments(job<T, Stored, Element> j, const fragments_of_row *rows, int64_t count, const T *sums)
{
    enum { SLOTS = BLOCK / MOST };
    __shared__ T of_slots[SLOTS][MOST];
    const int column = (int)threadIdx.x % MOST, slot = (int)threadIdx.x / MOST;
    for (int64_t r = blockIdx.x; r < count; r += gridDim.x) {
        const fragments_of_row mine = rows[r];
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

/* Lists the rows of more than `longest` entries, in any order. */
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
