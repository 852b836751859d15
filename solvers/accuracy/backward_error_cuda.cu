/* The component-wise backward error on CUDA (backward_error.h).
 *
 * Idea:     a subwarp, a power of two near the mean length of a row, takes rows; the block keeps
 *           the largest omega and the sum of |r|^2 of its rows.
 * Quick:    one launch and one wait. A subwarp has several rows at a time, so that enough loads are under
 *           way to use the speed of the memory; a warp takes together those that are long for the subwarp.
 *           The last block combines the blocks and writes a few numbers to host memory.
 * Columns:  of several, a subwarp has a row and each lane a column; two launches.
 * Exact:    two launches and one wait; the host combines the blocks. It is rare.
 * Bytes:    quick: the matrix, b and x once.
 * Loses when: a row has many thousand entries: a warp takes it, with 128 entries under way.
 * Bits:     the number of blocks and of lanes follows from the matrix alone, and the blocks are combined
 *           in a fixed order.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/complex.cuh"
#include "device/launch.cuh"
#include "device/loads.cuh"

extern "C" {
#include <spmv/primitives.h>

#include "formats/matrix_internal.h"
#include "solvers/accuracy/backward_error.h"
}

namespace
{

/* BLOCKS: as many as fit on the multiprocessors of an H100 at once. */
enum { BLOCKS = 1056 };
constexpr unsigned all_lanes = 0xffffffffu;

__device__ double part_of(float a, int)
{
    return fabs((double)a);
}
__device__ double part_of(double a, int)
{
    return fabs(a);
}
template <typename Complex> __device__ double part_of(Complex a, int)
{
    const double re = fabs((double)a.re), im = fabs((double)a.im);
    return re > im ? re : im;
}

/* Numbers >= 0 are ordered as their bits are. Blocks of a column: those whose number has that remainder. */
template <typename T>
__global__ void __launch_bounds__(block_threads)
    find_largest(const T *x, int64_t rows, int columns, unsigned long long *largest)
{
    const int v = (int)blockIdx.x % columns, block = (int)blockIdx.x / columns, blocks = (int)gridDim.x / columns;
    double most = 0;
    for (int64_t i = (int64_t)block * block_threads + threadIdx.x; i < rows; i += (int64_t)blocks * block_threads) {
        const double size = part_of(load_whole(x + i * columns + v), 0);
        most = size > most ? size : most;
    }
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
        const double other = __shfl_down_sync(all_lanes, most, distance);
        most = other > most ? other : most;
    }
    if (threadIdx.x % warp_lanes == 0) {
        unsigned long long bits = 0;
        memcpy(&bits, &most, sizeof bits);
        atomicMax(&largest[v], bits);
    }
}

template <typename Offset> struct rows_of {
    const Offset *row_ptr;
    const int32_t *col;
    int64_t rows;
    int columns, lanes;
    const double *largest; /* of each column, not scaled */
    struct backward_part *parts;
};

template <typename V> __device__ void add(error_row *row, double factor, V a, double scale, double x)
{
    error_row_add(row, factor * (double)a, scale * x);
}
template <typename V> __device__ void add(error_row *row, double factor, V a, double scale, float x)
{
    error_row_add(row, factor * (double)a, scale * (double)x);
}
template <typename Complex>
__device__ auto add(error_row *row, double factor, Complex a, double scale, Complex x) -> decltype((void)x.re)
{
    error_row_add_complex(row, factor * (double)a.re, factor * (double)a.im, scale * (double)x.re,
                          scale * (double)x.im);
}

/* The sums of a row, in all lanes of its subwarp. Called by all lanes of a warp; rows beyond the end are
 * empty. */
template <typename T, typename V, typename Offset>
__device__ error_row sums_of(const rows_of<Offset> &of, const V *val, const T *x, int64_t i, int v, double factor,
                             double scale)
{
    error_row row = {0, 0, 0, 0};
    const int lane = (int)threadIdx.x % of.lanes;
    if (i < of.rows)
        for (int64_t k = (int64_t)of.row_ptr[i] + lane; k < (int64_t)of.row_ptr[i + 1]; k += of.lanes)
            add(&row, factor, val != nullptr ? load_whole(val + k) : real_value<V>(1), scale,
                load_whole(x + (int64_t)of.col[k] * of.columns + v));
    for (int distance = of.lanes / 2; distance > 0; distance /= 2) {
        row.re += __shfl_xor_sync(all_lanes, row.re, distance);
        row.im += __shfl_xor_sync(all_lanes, row.im, distance);
        row.terms += __shfl_xor_sync(all_lanes, row.terms, distance);
        row.norm += __shfl_xor_sync(all_lanes, row.norm, distance);
    }
    return row;
}

struct error_numbers {
    double re, im;
};
__device__ error_numbers numbers_of(float b)
{
    return {(double)b, 0};
}
__device__ error_numbers numbers_of(double b)
{
    return {b, 0};
}
template <typename Complex> __device__ error_numbers numbers_of(Complex b)
{
    return {(double)b.re, (double)b.im};
}

/* Keeps the larger omega, on a tie the lower row. */
__device__ void keep(backward_part *part, double omega, int64_t row)
{
    if (row >= 0 && (part->row < 0 || omega > part->omega || (omega == part->omega && row < part->row))) {
        part->omega = omega;
        part->row = row;
    }
}

template <typename T, typename V, typename Offset>
__global__ void __launch_bounds__(block_threads)
    find_parts(const rows_of<Offset> of, const V *val, const T *b, const T *x)
{
    __shared__ backward_part of_warps[block_warps];
    const int v = (int)blockIdx.x % of.columns, block = (int)blockIdx.x / of.columns;
    const int blocks = (int)gridDim.x / of.columns, subwarps = block_threads / of.lanes;
    const double scale = error_scale(of.largest[v]), largest = of.largest[v] * scale;
    backward_part part = {0, -1, {0, 0, 0}};
    for (int64_t first = (int64_t)block * subwarps; first < of.rows; first += (int64_t)blocks * subwarps) {
        const int64_t i = first + threadIdx.x / of.lanes;
        error_numbers right = {0, 0};
        if (i < of.rows)
            right = numbers_of(load_whole(b + i * of.columns + v));
        double factor = 1, omega = 0, size = 0;
        for (int again = 0; again < 2; again++) {
            const error_row row = sums_of(of, val, x, i, v, factor, scale);
            const double re = factor * right.re * scale, im = factor * right.im * scale;
            const bool real = im == 0 && row.im == 0; /* squares of real numbers may leave the range */
            const double modulus = im == 0 ? fabs(re) : error_modulus(re, im);
            const double r = real ? fabs(re + row.re) : error_modulus(re + row.re, im + row.im);
            omega = error_row_omega(row, modulus, r, largest, BACKWARD_TINY);
            size = r / factor;
            const double next = error_row_factor(row, modulus, largest);
            const bool redo = again == 0 && i < of.rows && next != 1;
            if (__ballot_sync(all_lanes, redo) == 0)
                break;
            factor = redo ? next : 1;
        }
        if (i < of.rows && threadIdx.x % of.lanes == 0) {
            error_norm_add(&part.norm, size);
            keep(&part, omega, i);
        }
    }
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
        const double omega = __shfl_down_sync(all_lanes, part.omega, distance);
        const long long row = __shfl_down_sync(all_lanes, (long long)part.row, distance);
        error_norm_add_all(&part.norm, {__shfl_down_sync(all_lanes, part.norm.small, distance),
                                        __shfl_down_sync(all_lanes, part.norm.middle, distance),
                                        __shfl_down_sync(all_lanes, part.norm.large, distance)});
        keep(&part, omega, row);
    }
    if (threadIdx.x % warp_lanes == 0)
        of_warps[threadIdx.x / warp_lanes] = part;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (int w = 1; w < block_warps; w++) {
        error_norm_add_all(&part.norm, of_warps[w].norm);
        keep(&part, of_warps[w].omega, of_warps[w].row);
    }
    of.parts[blockIdx.x] = part;
}

/* ------------------------------------------------------------- the quick pass */

/* A subwarp's rows at a time, and a lane's entries of each. A warp takes a row of more than LONG_ROW entries
 * for each lane of the subwarp. */
enum { QUICK_ROWS = 2, QUICK_STEPS = 2, LONG_ROW = 32, LONG_STEPS = 4 };

template <typename T> constexpr bool is_real = std::is_arithmetic<T>::value;

/* Blocks that fit on a multiprocessor of an H100 at once without spilled registers. */
template <typename T> constexpr int quick_resident = is_real<T> ? 4 : 2;
enum { QUICK_BLOCKS = 132 * 4 };

template <typename T, typename V, typename Offset> struct quick_arrays {
    const Offset *row_ptr;
    const int32_t *col;
    const V *val;
    const T *b, *x;
    int64_t rows;
    int columns, lanes;
    error_quick *parts, *found;
    unsigned *ticket;
    const int64_t *chunk; /* with ranks: a part has the rows of a chunk; else NULL, and of a block */
    int64_t chunks;
};

template <typename V, typename T> __device__ void add_quick(error_row *row, V a, T x)
{
    if constexpr (is_real<T>)
        error_quick_entry(row, (double)a, (double)x);
    else
        error_quick_entry_complex(row, (double)a.re, (double)a.im, (double)x.re, (double)x.im);
}

/* Adds a lane's entries of some rows at once: those at begin[r], begin[r] + apart, ... of the left[r] that
 * follow begin[r]. All loads of a step start before the first is waited for. */
template <int Rows, int Steps, typename T, typename V, typename Offset>
__device__ void add_rows(const quick_arrays<T, V, Offset> &of, int v, Offset (&begin)[Rows], int (&left)[Rows],
                         int apart, error_row (&row)[Rows])
{
    for (;;) {
        int32_t col[Rows][Steps];
        V a[Rows][Steps];
        T x[Rows][Steps];
        bool some = false;
#pragma unroll
        for (int r = 0; r < Rows; r++)
            some = some || left[r] > 0;
        if (!some)
            return;
#pragma unroll
        for (int r = 0; r < Rows; r++)
#pragma unroll
            for (int s = 0; s < Steps; s++) {
                const bool there = s * apart < left[r];
                col[r][s] = 0;
                a[r][s] = real_value<V>(there ? 1 : 0);
                load_once_if(there, of.col + begin[r] + s * apart, &col[r][s]);
                load_once_if(there && of.val != nullptr, of.val + begin[r] + s * apart, &a[r][s]);
            }
#pragma unroll
        for (int r = 0; r < Rows; r++)
#pragma unroll
            for (int s = 0; s < Steps; s++) {
                x[r][s] = T();
                load_gathered_if(s * apart < left[r], of.x + (int64_t)col[r][s] * of.columns + v, &x[r][s]);
            }
#pragma unroll
        for (int r = 0; r < Rows; r++) {
#pragma unroll
            for (int s = 0; s < Steps; s++)
                add_quick(&row[r], a[r][s], x[r][s]);
            begin[r] += Steps * apart;
            left[r] -= Steps * apart;
        }
    }
}

/* All lanes of a subwarp of `lanes` get the sums. */
template <typename T> __device__ void add_lanes(error_row *row, int lanes)
{
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
        row->re += __shfl_xor_sync(all_lanes, row->re, distance);
        if constexpr (!is_real<T>)
            row->im += __shfl_xor_sync(all_lanes, row->im, distance);
        row->terms += __shfl_xor_sync(all_lanes, row->terms, distance);
    }
}

/* The subwarps' long rows, one after the other by the whole warp. long_row: whether the lane's subwarp has one,
 * of `count` entries from begin on; its sums are added to those of the subwarp's first lane. */
template <typename T, typename V, typename Offset>
__device__ void add_long(const quick_arrays<T, V, Offset> &of, int v, bool long_row, Offset begin, int count,
                         error_row *row)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const unsigned waiting = __ballot_sync(all_lanes, long_row);
    for (int subwarp = 0; subwarp < warp_lanes; subwarp += of.lanes)
        if ((waiting >> subwarp & 1u) != 0) {
            Offset own[1] = {(Offset)(__shfl_sync(all_lanes, begin, subwarp) + lane)};
            int left[1] = {__shfl_sync(all_lanes, count, subwarp) - lane};
            error_row sums[1] = {{0, 0, 0, 0}};
            add_rows<1, LONG_STEPS>(of, v, own, left, warp_lanes, sums);
            add_lanes<T>(&sums[0], warp_lanes);
            if (lane == subwarp) {
                row->re += sums[0].re;
                row->im += sums[0].im;
                row->terms += sums[0].terms;
            }
        }
}

/* Thread 0 gets the sum over the block. of_warps is free again on return. */
__device__ error_quick block_quick(error_quick own, error_quick *of_warps)
{
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2)
        error_quick_add_all(&own, shuffle_down(own, distance));
    if (threadIdx.x % warp_lanes == 0)
        of_warps[threadIdx.x / warp_lanes] = own;
    __syncthreads();
    for (int w = 1; w < block_warps && threadIdx.x == 0; w++)
        error_quick_add_all(&own, of_warps[w]);
    __syncthreads();
    return own;
}

template <typename T, typename V, typename Offset>
__global__ void __launch_bounds__(block_threads, quick_resident<T>) find_quick(const quick_arrays<T, V, Offset> of)
{
    __shared__ error_quick of_warps[block_warps];
    const int v = (int)blockIdx.x % of.columns, block = (int)blockIdx.x / of.columns;
    const int blocks = (int)gridDim.x / of.columns, subwarps = block_threads / of.lanes;
    const int lane = (int)threadIdx.x % of.lanes, subwarp = (int)threadIdx.x / of.lanes;
    const bool ranks = of.chunk != nullptr;
    const int64_t rows_at_once = subwarps * QUICK_ROWS, parts = ranks ? of.chunks : block + 1;
    for (int64_t part = block; part < parts; part += blocks) {
        const int64_t begin_row = ranks ? of.chunk[part] : block * rows_at_once,
                      end = ranks ? of.chunk[part + 1] : of.rows;
        error_quick own = {0, 0, begin_row};
        for (int64_t first = begin_row; first < end; first += ranks ? rows_at_once : blocks * rows_at_once) {
            Offset begin[QUICK_ROWS];
            int left[QUICK_ROWS];
            error_row row[QUICK_ROWS];
            bool has_entries[QUICK_ROWS], some_long = false;
#pragma unroll
            for (int r = 0; r < QUICK_ROWS; r++) {
                const int64_t i = first + r * subwarps + subwarp;
                begin[r] = 0;
                left[r] = 0;
                row[r] = {0, 0, 0, 0};
                if (i < end) {
                    begin[r] = of.row_ptr[i];
                    left[r] = (int)(of.row_ptr[i + 1] - begin[r]);
                    if (lane == 0) {
                        const error_numbers right = numbers_of(load_once(of.b + i * of.columns + v));
                        row[r] = {right.re, right.im, is_real<T> ? fabs(right.re) : error_modulus(right.re, right.im),
                                  0};
                    }
                }
            }
#pragma unroll
            for (int r = 0; r < QUICK_ROWS; r++) {
                has_entries[r] = left[r] > 0;
                some_long = some_long || left[r] > LONG_ROW * of.lanes;
            }
            if (of.lanes < warp_lanes && __ballot_sync(all_lanes, some_long) != 0) {
#pragma unroll
                for (int r = 0; r < QUICK_ROWS; r++) {
                    const bool long_row = left[r] > LONG_ROW * of.lanes;
                    add_long(of, v, long_row, begin[r], left[r], &row[r]);
                    left[r] = long_row ? 0 : left[r];
                }
            }
#pragma unroll
            for (int r = 0; r < QUICK_ROWS; r++) {
                begin[r] += lane;
                left[r] -= lane;
            }
            add_rows<QUICK_ROWS, QUICK_STEPS>(of, v, begin, left, of.lanes, row);
#pragma unroll
            for (int r = 0; r < QUICK_ROWS; r++) {
                const int64_t i = first + r * subwarps + subwarp;
                add_lanes<T>(&row[r], of.lanes);
                const double size = is_real<T> ? fabs(row[r].re) : error_modulus(row[r].re, row[r].im);
                if (lane == 0 && i < end)
                    error_quick_add(&own, i, has_entries[r], size, row[r].terms);
            }
        }
        own = block_quick(own, of_warps);
        if (threadIdx.x == 0)
            of.parts[ranks ? part : blockIdx.x] = own;
    }
    if (ranks || !block_is_last(of.ticket))
        return;
    for (int c = 0; c < of.columns; c++) {
        error_quick all = of.parts[c];
        all.square = 0;
        for (int k = (int)threadIdx.x; k < blocks; k += block_threads)
            error_quick_add_all(&all, of.parts[k * of.columns + c]);
        all = block_quick(all, of_warps);
        if (threadIdx.x == 0)
            of.found[c] = all;
    }
}

/* ------------------------------------------------------------- the quick pass of several columns */

/* A block has a stripe of the rows and a panel of at most PANEL columns. A slot takes a row, and each of its lanes a
 * column, so an entry is read once for all of them, and so is a row of x. A row of more than MANY entries is shared by
 * all slots. */
enum { PANEL = 32, SLOTS = 8, MOST_STRIPES = 1056, LEAST_ROWS = 64, MANY = 512 };

template <typename T, typename V, typename Offset> struct column_arrays {
    const Offset *row_ptr;
    const int32_t *col;
    const V *val;
    const T *b, *x;
    int64_t rows, stripe_rows;
    int columns, panels, width; /* width: of a panel; the last may have fewer */
    error_quick *parts;         /* stripes x columns */
};

/* Adds entries begin, begin + step, ... before end. */
template <typename T, typename V, typename Offset>
__device__ void add_column(const column_arrays<T, V, Offset> &of, int column, Offset begin, Offset end, int step,
                           error_row *row)
{
#pragma unroll 4
    for (Offset k = begin; k < end; k += step)
        error_quick_entry(row, of.val != nullptr ? (double)of.val[k] : 1.0,
                          (double)of.x[(int64_t)of.col[k] * of.columns + column]);
}

template <typename T, typename V, typename Offset>
__global__ void __launch_bounds__(PANEL *SLOTS) find_quick_columns(const column_arrays<T, V, Offset> of)
{
    __shared__ error_quick cells[PANEL * SLOTS];
    __shared__ error_row rows[PANEL * SLOTS];
    const int panel = (int)blockIdx.x % of.panels, stripe = (int)blockIdx.x / of.panels;
    const int slot = (int)threadIdx.x / of.width, column = panel * of.width + (int)threadIdx.x % of.width;
    const bool mine = column < of.columns;
    const int64_t begin = stripe * of.stripe_rows,
                  end = begin + of.stripe_rows < of.rows ? begin + of.stripe_rows : of.rows;
    error_quick own = {0, 0, begin};
    bool some_long = false;
    const auto finish = [&](int64_t i, error_row row, bool has_entries) {
        const double right = (double)of.b[i * of.columns + column];
        error_quick_add(&own, i, has_entries, fabs(right + row.re), row.terms + fabs(right));
    };
    for (int64_t i = begin + slot; mine && i < end; i += SLOTS) {
        const Offset from = of.row_ptr[i], to = of.row_ptr[i + 1];
        error_row row = {0, 0, 0, 0};
        if (to - from > MANY) {
            some_long = true;
            continue;
        }
        add_column(of, column, from, to, 1, &row);
        finish(i, row, to > from);
    }
    if (__syncthreads_or(some_long) != 0)
        for (int64_t i = begin; i < end; i++) {
            const Offset from = of.row_ptr[i], to = of.row_ptr[i + 1];
            error_row row = {0, 0, 0, 0};
            if (to - from <= MANY)
                continue;
            if (mine)
                add_column(of, column, (Offset)(from + slot), to, SLOTS, &row);
            rows[threadIdx.x] = row;
            __syncthreads();
            for (int other = 1; slot == 0 && other < SLOTS; other++) {
                row.re += rows[(int)threadIdx.x + other * of.width].re;
                row.terms += rows[(int)threadIdx.x + other * of.width].terms;
            }
            if (slot == 0 && mine)
                finish(i, row, true);
            __syncthreads();
        }
    cells[threadIdx.x] = own;
    __syncthreads();
    for (int other = 1; slot == 0 && other < SLOTS; other++)
        error_quick_add_all(&own, cells[(int)threadIdx.x + other * of.width]);
    if (slot == 0 && mine)
        of.parts[(int64_t)stripe * of.columns + column] = own;
}

/* A warp has a column. */
__global__ void __launch_bounds__(block_threads)
    join_quick_columns(const error_quick *parts, int64_t stripes, int columns, error_quick *found)
{
    const int column = (int)blockIdx.x * block_warps + (int)threadIdx.x / warp_lanes,
              lane = (int)threadIdx.x % warp_lanes;
    error_quick own = {0, 0, INT64_MAX};
    if (column >= columns)
        return;
    for (int64_t stripe = lane; stripe < stripes; stripe += warp_lanes)
        error_quick_add_all(&own, parts[stripe * columns + column]);
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2)
        error_quick_add_all(&own, shuffle_down(own, distance));
    if (lane == 0)
        found[column] = own;
}

/* ------------------------------------------------------------- launches */

/* A power of two of at most a warp, by the mean row of the whole matrix. */
int lanes_for(const backward_job *job)
{
    const int64_t rows = job->ranks != NULL ? job->ranks->rows : job->a->rows;
    const int64_t nnz = job->ranks != NULL ? job->ranks->nnz : job->a->nnz;
    int lanes = 1;
    while (lanes < warp_lanes && 2 * lanes * rows <= nnz)
        lanes *= 2;
    return lanes;
}

int blocks_for(const spmv_csr *a, int each, int most)
{
    const int grid = grid_for(a->rows, each);
    return grid < most ? grid : most;
}

/* Calls body with objects of the types of vectors, values and offsets. */
template <typename Body> spmv_status with_types(spmv_context *ctx, const backward_job *job, const Body &body)
{
    const auto with_offsets = [&](auto vector, auto value) {
        return job->a->row_ptr_bits == 32 ? body(vector, value, (int32_t)0) : body(vector, value, (int64_t)0);
    };
    return on_device(ctx, [&] {
        return with_floating(job->type, [&](auto vector) {
            if constexpr (std::is_same<decltype(vector), double>::value)
                if (job->a->val != nullptr && job->a->type == SPMV_F32)
                    return with_offsets(vector, 0.0f);
            return with_offsets(vector, vector);
        });
    });
}

} // namespace

extern "C" spmv_status backward_parts_cuda(spmv_context *ctx, const backward_job *job, double *largest,
                                           backward_part **parts, int64_t *tiles)
{
    spmv_status st = SPMV_OK;
    const int lanes = lanes_for(job), blocks = blocks_for(job->a, block_threads / lanes, BLOCKS);
    const int64_t bytes = (int64_t)blocks * job->columns * (int64_t)sizeof(backward_part);
    const int64_t largest_bytes = job->columns * (int64_t)sizeof(double);
    void *memory = NULL, *cells = NULL;
    char *host = NULL;
    TRY(host_alloc(ctx, bytes + largest_bytes, "a backward error", (void **)&host));
    TRY(context_lend(ctx, bytes + largest_bytes, &memory));
    cells = (char *)memory + bytes;
    TRY(on_device(ctx, [&] {
        return cuda_check(ctx, cudaMemsetAsync(cells, 0, (size_t)largest_bytes, (cudaStream_t)ctx->stream),
                          "clearing the largest elements");
    }));
    TRY(on_device(ctx, [&] {
        return with_floating(job->type, [&](auto vector) {
            using T = decltype(vector);
            return launch(ctx, "largest element", blocks_for(job->a, block_threads, BLOCKS) * job->columns,
                          block_threads, find_largest<T>, (const T *)job->x, job->a->rows, job->columns,
                          (unsigned long long *)cells);
        });
    }));
    TRY(with_types(ctx, job, [&](auto vector, auto value, auto offset) {
        using T = decltype(vector);
        using V = decltype(value);
        using Offset = decltype(offset);
        const rows_of<Offset> of = {
            (const Offset *)job->a->row_ptr, job->a->col, job->a->rows, job->columns, lanes, (const double *)cells,
            (backward_part *)memory};
        return launch(ctx, "backward error", blocks * job->columns, block_threads, find_parts<T, V, Offset>, of,
                      (const V *)job->a->val, (const T *)job->b, (const T *)job->x);
    }));
    TRY(spmv_download(ctx, memory, host, bytes + largest_bytes));
    memcpy(largest, host + bytes, (size_t)largest_bytes);
    *parts = (backward_part *)(void *)host;
    host = NULL;
    *tiles = blocks;
done:
    context_take_back(ctx, memory);
    host_free(host);
    return st;
}

/* backward_quick_cuda for several columns, of real types. */
static spmv_status quick_columns(spmv_context *ctx, const backward_job *job, error_quick *found)
{
    const int64_t rows = job->a->rows;
    const int64_t stripe_rows =
        ceil_divide(max_i64(1, ceil_divide(rows, (int64_t)MOST_STRIPES)), (int64_t)LEAST_ROWS) * LEAST_ROWS;
    const int64_t stripes = ceil_divide(rows, stripe_rows), bytes = job->columns * (int64_t)sizeof *found;
    const int panels = (int)ceil_divide(job->columns, (int)PANEL), width = (int)ceil_divide(job->columns, panels);
    void *memory = NULL;
    spmv_status st = context_scratch(ctx, (stripes + 1) * bytes, &memory);
    if (st != SPMV_OK)
        return st;
    error_quick *const parts = (error_quick *)memory, *const sums = parts + stripes * job->columns;
    st = with_types(ctx, job, [&](auto vector, auto value, auto offset) {
        using T = decltype(vector);
        using V = decltype(value);
        using Offset = decltype(offset);
        if constexpr (is_real<T>) {
            const column_arrays<T, V, Offset> of = {(const Offset *)job->a->row_ptr,
                                                    job->a->col,
                                                    (const V *)job->a->val,
                                                    (const T *)job->b,
                                                    (const T *)job->x,
                                                    rows,
                                                    stripe_rows,
                                                    job->columns,
                                                    panels,
                                                    width,
                                                    parts};
            return launch(ctx, "quick backward error", (int)(stripes * panels), width * SLOTS,
                          find_quick_columns<T, V, Offset>, of);
        } else {
            return SPMV_ERROR_ARGUMENT; /* complex vectors are single */
        }
    });
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            return launch(ctx, "quick backward error", (int)ceil_divide(job->columns, (int)block_warps), block_threads,
                          join_quick_columns, (const error_quick *)parts, stripes, job->columns, sums);
        });
    return st != SPMV_OK ? st : spmv_download(ctx, sums, found, bytes);
}

extern "C" spmv_status backward_quick_cuda(spmv_context *ctx, const backward_job *job, error_quick *found)
{
    if (job->columns > 1)
        return quick_columns(ctx, job, found);
    const cuda_state *const device = (const cuda_state *)ctx->device;
    const int lanes = lanes_for(job);
    const int blocks = blocks_for(job->a, block_threads / lanes * QUICK_ROWS, QUICK_BLOCKS);
    const int64_t chunks = job->ranks != NULL ? job->ranks->chunks : 0;
    const int64_t bytes = max_i64(job->columns, chunks) * (int64_t)sizeof *found;
    /* the kernel writes to the host */
    const bool at_once = device->mailbox != NULL && bytes <= MAILBOX_BYTES && job->ranks == NULL;
    void *memory = NULL;
    spmv_status st = context_scratch(ctx, job->ranks != NULL ? bytes : (blocks + 1) * bytes, &memory);
    if (st != SPMV_OK)
        return st;
    error_quick *const parts = (error_quick *)memory;
    error_quick *const sums = at_once              ? (error_quick *)device->mailbox
                              : job->ranks != NULL ? parts
                                                   : parts + (int64_t)blocks * job->columns;
    st = with_types(ctx, job, [&](auto vector, auto value, auto offset) {
        using T = decltype(vector);
        using V = decltype(value);
        using Offset = decltype(offset);
        const quick_arrays<T, V, Offset> of = {(const Offset *)job->a->row_ptr,
                                               job->a->col,
                                               (const V *)job->a->val,
                                               (const T *)job->b,
                                               (const T *)job->x,
                                               job->a->rows,
                                               job->columns,
                                               lanes,
                                               parts,
                                               sums,
                                               device->ticket,
                                               job->ranks != NULL ? job->ranks->context_chunk : nullptr,
                                               chunks};
        return launch(ctx, "quick backward error", blocks * job->columns, block_threads, find_quick<T, V, Offset>, of);
    });
    if (st == SPMV_OK)
        st = at_once ? spmv_synchronize(ctx) : spmv_download(ctx, sums, found, bytes);
    if (st == SPMV_OK && at_once)
        memcpy(found, sums, (size_t)bytes);
    return st;
}
