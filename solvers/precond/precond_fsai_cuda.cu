/* The factor of fsai on CUDA: one thread a row, with the operations of the host (precond_fsai_rows.h), so with
 * the same bits.
 *
 * A thread has its work memory in global memory, so as many threads run as MEMORY has room for, and take one
 * row after the other. Rows go to places for the longest possible ones; then they are counted, and moved
 * together.
 *
 * What is rare is left to the host: a matrix with an entry that is not finite, or with a pivot that is negative,
 * where a message is to name the row; rows so long that few threads would have memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "device/block.cuh"
#include "device/dispatch.cuh"
#include "device/launch.cuh"

extern "C" {
#include <spmv/primitives.h>

#include "solvers/precond/precond_fsai_rows.h"
}

namespace
{

enum { THREADS = 64 };

/* Bytes of the work memory of all threads, and the threads for which it must have room. */
const int64_t MEMORY = INT64_C(1) << 30;
const int64_t THREADS_LEAST = 2048;

/* What the kernels find; all 0 at first. */
struct findings {
    int longest, longest_joining;     /* entries of a row; of one that may join */
    int not_finite, failed;           /* whether there is such an entry; such a row */
    int wide;                         /* whether f32 is too narrow */
    unsigned long long flipped_first; /* the complement of the first row with an entry left out */
    int64_t left_out, work;
};

__device__ void raise_to(int number, int *to)
{
    if (number > *(volatile int *)to)
        atomicMax(to, number);
}

__global__ void __launch_bounds__(THREADS) root_kernel(const double *diagonal, double *root, int64_t rows)
{
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < rows; i += stride)
        root[i] = 1 / sqrt(diagonal[i]);
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    scale_kernel(fsai_given given, const T *from, double *val, int64_t rows, int64_t most_joining, findings *found)
{
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < rows; i += stride) {
        const int64_t begin = fsai_offset(&given, i), end = fsai_offset(&given, i + 1);
        for (int64_t k = begin; k < end; k++) {
            const double value = from != nullptr ? (double)from[k] : 1;
            val[k] = value * given.root[i] * given.root[given.col[k]];
            if (!isfinite(value))
                found->not_finite = 1;
        }
        raise_to((int)(end - begin), &found->longest);
        if (end - begin <= most_joining)
            raise_to((int)(end - begin), &found->longest_joining);
    }
}

__global__ void __launch_bounds__(THREADS)
    rows_kernel(fsai_given given, fsai_sizes sizes, unsigned char *memory, fsai_block block, findings *found)
{
    const int64_t thread = (int64_t)blockIdx.x * THREADS + threadIdx.x, stride = (int64_t)gridDim.x * THREADS;
    int64_t left_out = 0, work = 0;
    if (thread < block.end) {
        fsai_work *const w = fsai_work_in(memory + thread * sizes.bytes, sizes);
        for (int64_t i = thread; i < block.end; i += stride) {
            fsai_make_row(&given, w, i, &block);
            const int count = block.count[i];
            if (count == 0) {
                found->failed = 1;
                continue;
            }
            if (!fsai_fits_f32(block.val[i * (given.most + 1) + count - 1]))
                found->wide = 1;
            if (block.left_out[i] > 0)
                atomicMax(&found->flipped_first, ~(unsigned long long)i);
            left_out += block.left_out[i];
        }
        work = w->work;
    }
    atomic_add_of_warp(left_out, &found->left_out);
    atomic_add_of_warp(work, &found->work);
}

/* lengths[i] = the entries of row i, and 0 for i = rows. */
__global__ void __launch_bounds__(THREADS) count_kernel(const int32_t *count, int64_t *lengths, int64_t rows)
{
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i <= rows; i += stride)
        lengths[i] = i < rows ? count[i] : 0;
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    move_kernel(fsai_block block, int places, const int64_t *row_ptr, int32_t *col, T *val)
{
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < block.end; i += stride)
        for (int k = 0; k < block.count[i]; k++) {
            col[row_ptr[i] + k] = block.col[i * places + k];
            val[row_ptr[i] + k] = (T)block.val[i * places + k];
        }
}

/* Memory of the device that is freed together. */
struct arrays {
    spmv_context *ctx;
    void *array[9];
    int count;

    template <typename T> spmv_status get(int64_t n, T **memory)
    {
        const spmv_status st = context_alloc(ctx, max_i64(1, n) * (int64_t)sizeof(T), (void **)memory);
        if (st == SPMV_OK)
            array[count++] = *memory;
        return st;
    }

    ~arrays()
    {
        for (int k = 0; k < count; k++)
            context_free(ctx, array[k]);
    }
};

int blocks_for(int64_t rows)
{
    return grid_for(rows, THREADS);
}

spmv_status scale_rows(spmv_context *ctx, const spmv_csr *a, const double *diagonal, const fsai_given &given,
                       double *root, double *val, findings *found)
{
    return on_device(ctx, [=] {
        spmv_status st = launch(ctx, "fsai roots", blocks_for(a->rows), THREADS, root_kernel, diagonal, root, a->rows);
        return st != SPMV_OK ? st : with_zero(ctx, "fsai", a->val != nullptr ? a->type : SPMV_F64, [=](auto zero) {
            return launch(ctx, "fsai scaling", blocks_for(a->rows), THREADS, scale_kernel<decltype(zero)>, given,
                          (const decltype(zero) *)a->val, val, a->rows, fsai_longest_joining(a), found);
        });
    });
}

/* Moves the rows to a matrix of their own. */
spmv_status move_rows(spmv_context *ctx, const fsai_block &block, int places, int64_t rows, spmv_type type,
                      int64_t *lengths, spmv_matrix **g)
{
    int64_t entries = 0;
    spmv_matrix *made = nullptr;
    spmv_status st = on_device(ctx, [=] {
        return launch(ctx, "fsai lengths", blocks_for(rows + 1), THREADS, count_kernel, (const int32_t *)block.count,
                      lengths, rows);
    });
    if (st == SPMV_OK)
        st = spmv_scan(ctx, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_I64, lengths, lengths, rows + 1);
    if (st == SPMV_OK)
        st = spmv_download(ctx, lengths + rows, &entries, 8);
    if (st == SPMV_OK)
        st = matrix_allocate_in(ctx, SPMV_MEMORY_CONTEXT, rows, rows, entries, type, false, &made);
    if (st == SPMV_OK)
        st = on_device(ctx, [=] {
            spmv_status moved = cuda_check(ctx,
                                           cudaMemcpyAsync(made->row_ptr, lengths, (size_t)(rows + 1) * 8,
                                                           cudaMemcpyDeviceToDevice, (cudaStream_t)ctx->stream),
                                           "offsets of a factor");
            return moved != SPMV_OK ? moved : with_zero(ctx, "fsai", type, [=](auto zero) {
                return launch(ctx, "fsai moves", blocks_for(rows), THREADS, move_kernel<decltype(zero)>, block, places,
                              (const int64_t *)made->row_ptr, made->col, (decltype(zero) *)made->val);
            });
        });
    if (st == SPMV_OK)
        *g = made;
    else
        spmv_matrix_destroy(made);
    return st;
}

/* Computes all rows. *found: the result; without failed and not_finite all rows are made. */
spmv_status make_rows(spmv_context *ctx, arrays *memory, const fsai_given &given, const fsai_block &block,
                      const fsai_sizes &sizes, findings *there, findings *found)
{
    const int64_t threads = min_i64(block.end, MEMORY / sizes.bytes), blocks = threads / THREADS + 1;
    unsigned char *work = nullptr;
    spmv_status st = memory->get(blocks * THREADS * sizes.bytes, &work);
    if (st == SPMV_OK)
        st = on_device(ctx, [=] {
            return launch(ctx, "fsai rows", (int)blocks, THREADS, rows_kernel, given, sizes, work, block, there);
        });
    return st != SPMV_OK ? st : spmv_download(ctx, there, found, (int64_t)sizeof *found);
}

} // namespace

extern "C" spmv_status fsai_make_factor_cuda(spmv_preconditioner *m, const struct precond_source *source,
                                             const struct fsai_search *search, spmv_matrix **g, int64_t *left_out,
                                             int64_t *first)
{
    spmv_context *const ctx = m->ctx;
    const spmv_csr *const a = source->a;
    arrays memory = {ctx, {}, 0};
    findings *there = nullptr, found = {};
    double *root = nullptr, *val = nullptr;
    int64_t *lengths = nullptr;
    fsai_given given = {};
    fsai_block block = {};
    given.row_ptr = a->row_ptr;
    given.row_ptr_bits = a->row_ptr_bits;
    given.col = a->col;
    given.search = *search;
    given.most = search->steps * search->size;
    block.end = a->rows;
    *g = nullptr;
    spmv_status st = memory.get(1, &there);
    if (st == SPMV_OK)
        st = spmv_upload(ctx, &found, there, (int64_t)sizeof found);
    if (st == SPMV_OK)
        st = memory.get(a->rows, &root);
    if (st == SPMV_OK)
        st = memory.get(a->nnz, &val);
    if (st == SPMV_OK)
        st = memory.get(a->rows * (given.most + 1), &block.col);
    if (st == SPMV_OK)
        st = memory.get(a->rows * (given.most + 1), &block.val);
    if (st == SPMV_OK)
        st = memory.get(a->rows, &block.count);
    if (st == SPMV_OK)
        st = memory.get(a->rows, &block.left_out);
    if (st == SPMV_OK)
        st = memory.get(a->rows + 1, &lengths);
    given.root = root;
    given.val = val;
    if (st == SPMV_OK)
        st = scale_rows(ctx, a, source->device_diagonal, given, root, val, there);
    if (st == SPMV_OK)
        st = spmv_download(ctx, there, &found, (int64_t)sizeof found);
    given.longest = found.longest_joining;
    const fsai_sizes sizes = fsai_sizes_for(&given, found.longest);
    const bool fits = MEMORY / sizes.bytes >= min_i64(a->rows, THREADS_LEAST);
    if (st == SPMV_OK && !found.not_finite && fits)
        st = make_rows(ctx, &memory, given, block, sizes, there, &found);
    if (st == SPMV_ERROR_MEMORY) { /* the host needs less */
        ctx->error[0] = '\0';
        return SPMV_OK;
    }
    if (st != SPMV_OK || found.not_finite || found.failed || !fits)
        return st;
    st = context_poll(ctx, "preconditioner fsai", found.work);
    if (st == SPMV_OK)
        st = context_keep_pace(ctx, "preconditioner fsai", 1, 1);
    if (st == SPMV_OK)
        st = move_rows(ctx, block, given.most + 1, a->rows, m->type == SPMV_F32 || !found.wide ? SPMV_F32 : SPMV_F64,
                       lengths, g);
    *left_out = found.left_out;
    *first = (int64_t)~found.flipped_first;
    return st;
}
