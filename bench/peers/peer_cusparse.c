/* cuSPARSE: y = A x by cusparseSpMV on CSR, coordinates and sliced ELLPACK, with each of its
 * algorithms. The table of peers also has those for several vectors (peer_cusparse_spmm.c).
 *
 * CSR uses the problem's arrays; coordinates and sliced ELLPACK are made when a peer is opened. The
 * height of the slices is the fastest of several: high slices give better coalesced reads, low ones
 * have less padding.
 *
 * Source: the cuSPARSE documentation, "Generic APIs" and "Storage formats".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "bench/peers/cusparse_product.h"
#include "bench/peers/sliced_ell.h"

enum format { CSR, COO, SELL };

/* name, peer, format, algorithm, whether it is preprocessed, settings */
#define VARIANT_LIST(X)                                                                                                \
    X(csr_alg1, "cusparse-csr-alg1", CSR, CUSPARSE_SPMV_CSR_ALG1, false, "CSR, CSR_ALG1")                              \
    X(csr_alg1_pre, "cusparse-csr-alg1-pre", CSR, CUSPARSE_SPMV_CSR_ALG1, true, "CSR, CSR_ALG1, preprocessed")         \
    X(csr_alg2, "cusparse-csr-alg2", CSR, CUSPARSE_SPMV_CSR_ALG2, false, "CSR, CSR_ALG2")                              \
    X(csr_alg2_pre, "cusparse-csr-alg2-pre", CSR, CUSPARSE_SPMV_CSR_ALG2, true, "CSR, CSR_ALG2, preprocessed")         \
    X(coo_alg1, "cusparse-coo-alg1", COO, CUSPARSE_SPMV_COO_ALG1, false, "coordinates by rows, COO_ALG1")              \
    X(coo_alg2, "cusparse-coo-alg2", COO, CUSPARSE_SPMV_COO_ALG2, false, "coordinates by rows, COO_ALG2")              \
    X(sell, "cusparse-sell", SELL, CUSPARSE_SPMV_SELL_ALG1, false,                                                     \
      "sliced ELLPACK, SELL_ALG1; slices of 8, 16 or 32 rows, whichever is fastest when tried")

static const int heights[] = {8, 16, 32};
enum {
    HEIGHTS = sizeof heights / sizeof heights[0],
    MOST_PADDING = 8,         /* more than this many times the nonzeros is refused ... */
    PADDING_ALLOWED = 1 << 20 /* ... from this many stored elements on */
};

/* ------------------------------------------------------------ opening */

static void close_product(void *state)
{
    struct product *const p = state;
    if (p == NULL)
        return;
    product_end(p);
    free(p);
}

static bool make_coo(struct product *p, char *why, size_t why_size)
{
    const struct peer_problem *const q = &p->problem;
    return !bad_cuda(device_alloc((size_t)q->nnz * sizeof(int32_t), &p->index), "cudaMalloc for the row numbers", why,
                     why_size) &&
           !bad_sparse(
               cusparseXcsr2coo(p->handle, q->row_ptr, (int)q->nnz, (int)q->rows, p->index, CUSPARSE_INDEX_BASE_ZERO),
               "cusparseXcsr2coo", why, why_size) &&
           !bad_sparse(cusparseCreateConstCoo(&p->matrix, q->rows, q->cols, q->nnz, p->index, q->col, q->val,
                                              CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, p->type),
                       "cusparseCreateConstCoo", why, why_size) &&
           product_make_buffer(p, why, why_size);
}

static int run_product(void *state)
{
    return product_run(state);
}

/* ----------------------------------------------------- sliced ELLPACK */

static int64_t slices_of(const struct product *p, int height)
{
    return (p->problem.rows + height - 1) / height;
}

/* offsets[s]: where slice s begins. Returns the total number of stored elements, -1 if it exceeds
 * 32 bits. */
static int64_t slice_offsets(const struct product *p, const int32_t *row_ptr, int height, int32_t *offsets)
{
    int64_t stored = 0;
    const int64_t rows = p->problem.rows, slices = slices_of(p, height);
    for (int64_t s = 0; s < slices; s++) {
        int32_t longest = 0;
        for (int64_t r = s * height; r < rows && r < (s + 1) * height; r++)
            if (row_ptr[r + 1] - row_ptr[r] > longest)
                longest = row_ptr[r + 1] - row_ptr[r];
        offsets[s] = (int32_t)stored;
        stored += (int64_t)height * longest;
        if (stored > INT32_MAX)
            return -1;
    }
    offsets[slices] = (int32_t)stored;
    return stored;
}

/* False if the padding is excessive, or the format exceeds the free memory. */
static bool sell_fits(const struct product *p, int64_t stored, char *why, size_t why_size)
{
    const double gigabytes = 1e-9 * (double)stored * (double)(sparse_size(p->type) + sizeof(int32_t));
    size_t free_bytes = 0, all_bytes = 0;
    if (stored < 0 || (stored > PADDING_ALLOWED && stored / MOST_PADDING > p->problem.nnz)) {
        snprintf(why, why_size, "sliced ELLPACK would have more than %s elements for %lld nonzeros",
                 stored < 0 ? "2^31 - 1" : "8 times as many", (long long)p->problem.nnz);
        return false;
    }
    if (bad_cuda(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo", why, why_size))
        return false;
    if (1e9 * gigabytes > (double)free_bytes) {
        snprintf(why, why_size, "sliced ELLPACK needs %.3g GB of the GPU's memory, %.3g are free", gigabytes,
                 1e-9 * (double)free_bytes);
        return false;
    }
    return true;
}

/* offsets: host memory, overwritten. */
static bool make_sell(struct product *p, int height, const int32_t *row_ptr, int32_t *offsets, char *why,
                      size_t why_size)
{
    const struct peer_problem *const q = &p->problem;
    const int64_t slices = slices_of(p, height), stored = slice_offsets(p, row_ptr, height, offsets);
    const size_t offset_bytes = (size_t)(slices + 1) * sizeof *offsets;
    return sell_fits(p, stored, why, why_size) &&
           !bad_cuda(device_alloc(offset_bytes, &p->offsets), "cudaMalloc", why, why_size) &&
           !bad_cuda(device_alloc((size_t)stored * sizeof(int32_t), &p->index), "cudaMalloc", why, why_size) &&
           !bad_cuda(device_alloc((size_t)stored * sparse_size(p->type), &p->values), "cudaMalloc", why, why_size) &&
           !bad_cuda(cudaMemcpyAsync(p->offsets, offsets, offset_bytes, cudaMemcpyHostToDevice, p->stream),
                     "cudaMemcpyAsync", why, why_size) &&
           !bad_cuda(sliced_ell_fill(p->stream, q->rows, height, slices, q->row_ptr, q->col, q->val,
                                     (int)sparse_size(p->type), p->offsets, stored, p->index, p->values),
                     "the kernel that fills sliced ELLPACK", why, why_size) &&
           !bad_cuda(cudaStreamSynchronize(p->stream), "cudaStreamSynchronize", why, why_size) &&
           !bad_sparse(cusparseCreateConstSlicedEll(&p->matrix, q->rows, q->cols, q->nnz, stored, height, p->offsets,
                                                    p->index, p->values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                                    CUSPARSE_INDEX_BASE_ZERO, p->type),
                       "cusparseCreateConstSlicedEll", why, why_size) &&
           product_make_buffer(p, why, why_size);
}

/* The fastest height; 0 if none is possible, with the reason in why. */
static int choose_height(struct product *p, const int32_t *row_ptr, int32_t *offsets, char *why, size_t why_size)
{
    float best = INFINITY, milliseconds = 0;
    int height = 0;
    for (int h = 0; h < HEIGHTS; h++) {
        if (make_sell(p, heights[h], row_ptr, offsets, why, why_size) &&
            product_time(p, &milliseconds, why, why_size) && milliseconds < best) {
            best = milliseconds;
            height = heights[h];
        }
        product_drop_matrix(p);
    }
    return height;
}

static bool make_best_sell(struct product *p, char *why, size_t why_size)
{
    const size_t bytes = (size_t)(p->problem.rows + 1) * sizeof(int32_t);
    int32_t *const row_ptr = malloc(bytes);
    /* The smallest height has the most slices. */
    int32_t *const offsets = malloc((size_t)(slices_of(p, heights[0]) + 1) * sizeof(int32_t));
    bool made = false;
    if (row_ptr == NULL || offsets == NULL) {
        snprintf(why, why_size, "no memory for the row offsets on the host: %zu bytes needed", bytes);
    } else if (!bad_cuda(cudaMemcpyAsync(row_ptr, p->problem.row_ptr, bytes, cudaMemcpyDeviceToHost, p->stream),
                         "cudaMemcpyAsync", why, why_size) &&
               !bad_cuda(cudaStreamSynchronize(p->stream), "cudaStreamSynchronize", why, why_size)) {
        const int height = choose_height(p, row_ptr, offsets, why, why_size);
        made = height != 0 && make_sell(p, height, row_ptr, offsets, why, why_size);
    }
    free(row_ptr);
    free(offsets);
    return made;
}

/* ----------------------------------------------------------- the peers */

static int open_product(const struct peer_problem *problem, enum format format, cusparseSpMVAlg_t algorithm,
                        bool preprocessed, void **state, char *why, size_t why_size)
{
    struct product *const p = new_state(sizeof *p, why, why_size);
    if (p == NULL)
        return -1;
    bool ready =
        product_begin(p, problem, algorithm, why, why_size) && (format == CSR   ? product_make_csr(p, why, why_size)
                                                                : format == COO ? make_coo(p, why, why_size)
                                                                                : make_best_sell(p, why, why_size));
    if (ready && preprocessed)
        ready = product_preprocess(p, why, why_size);
    if (ready && !bad_cuda(cudaStreamSynchronize(p->stream), "cudaStreamSynchronize", why, why_size)) {
        *state = p;
        return 0;
    }
    close_product(p);
    return -1;
}

#define OPEN_(name, peer, format, algorithm, preprocessed, settings)                                                   \
    static int open_##name(const struct peer_problem *problem, void **state, char *why, size_t why_size)               \
    {                                                                                                                  \
        return open_product(problem, format, algorithm, preprocessed, state, why, why_size);                           \
    }
VARIANT_LIST(OPEN_)
#undef OPEN_

/* name, peer, algorithm, whether X and Y are stored by columns, settings */
#define SPMM_LIST(X)                                                                                                   \
    X(spmm_alg1, "cusparse-spmm-alg1", CUSPARSE_SPMM_CSR_ALG1, false, "CSR_ALG1, preprocessed")                        \
    X(spmm_alg1_columns, "cusparse-spmm-alg1-columns", CUSPARSE_SPMM_CSR_ALG1, true,                                   \
      "columns, CSR_ALG1, preprocessed; transposing x and y is not timed")                                             \
    X(spmm_alg2, "cusparse-spmm-alg2", CUSPARSE_SPMM_CSR_ALG2, false, "CSR_ALG2, preprocessed")                        \
    X(spmm_alg3, "cusparse-spmm-alg3", CUSPARSE_SPMM_CSR_ALG3, false, "CSR_ALG3, preprocessed")

#define OPEN_(name, peer, algorithm, by_columns, settings)                                                             \
    static int open_##name(const struct peer_problem *problem, void **state, char *why, size_t why_size)               \
    {                                                                                                                  \
        return spmm_open(problem, algorithm, by_columns, state, why, why_size);                                        \
    }
SPMM_LIST(OPEN_)
#undef OPEN_

#define PEER_(name, peer, format, algorithm, preprocessed, settings)                                                   \
    {peer, PEER_SPMV, "cusparseSpMV: " settings, PEER_HALVES, open_##name, run_product, NULL, NULL, close_product},
#define SPMM_(name, peer, algorithm, by_columns, settings)                                                             \
    {peer,     PEER_SPMM, "cusparseSpMM: CSR, " settings,   PEER_HALVES, open_##name,                                  \
     spmm_run, NULL,      (by_columns) ? spmm_fetch : NULL, spmm_close},
static const struct peer peers[] = {
    VARIANT_LIST(PEER_) SPMM_LIST(SPMM_){"cusparse-sddmm", PEER_SDDMM, "cusparseSDDMM: CSR, ALG_DEFAULT, preprocessed",
                                         PEER_HALVES, sddmm_open, sddmm_run, NULL, NULL, sddmm_close}};
#undef SPMM_
#undef PEER_

const struct peer_module *spmv_peer_module(void)
{
    static char library[48];
    static const struct peer_module module = {PEER_ABI, library, peers, sizeof peers / sizeof peers[0]};
    sparse_version(library, sizeof library);
    return &module;
}
