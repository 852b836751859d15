/* librsb: recursive sparse blocks (M. Martone, Efficient multithreaded untransposed, transposed or
 * symmetric sparse matrix-vector multiplication with the Recursive Sparse Blocks format, Parallel
 * Computing 40, 2014). The blocks are made from CSR and then tuned by the library itself for the
 * product, with one vector or with several.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <omp.h>
#include <rsb.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/peers/peer.h"

/* Tuning has at most 16 rounds, the library's maximum, of 1 second each. The library times single
 * products, so a disturbance may leave worse blocks than before. The better of both matrices is
 * kept, by the best of COMPARISONS products each. */
enum { TUNING_ROUNDS = 16, COMPARISONS = 9 };
static const double ROUND_SECONDS = 1;

struct librsb {
    const struct peer_problem *problem;
    struct rsb_mtx_t *matrix;
};

/* The library has one global number of threads. Only the OpenMP setting at rsb_lib_init is
 * respected everywhere; rsb_spmv ignores later changes. So the library is started with the first
 * open state and ended with the last one, and all open states have the number of threads of the
 * first. */
static int open_count, library_threads;

static rsb_err_t start_library(int threads)
{
    if (open_count++ > 0)
        return RSB_ERR_NO_ERROR;
    library_threads = threads;
    return rsb_lib_init(RSB_NULL_INIT_OPTIONS);
}

static int failed(rsb_err_t error, const char *what, char *why, size_t why_size)
{
    char text[200] = "";
    rsb_strerror_r(error, text, sizeof text);
    snprintf(why, why_size, "librsb: %s: %s", what, text);
    return -1;
}

static const void *zero(const struct peer_problem *problem)
{
    static const double zero_f64 = 0;
    static const float zero_f32 = 0;
    return problem->type == SPMV_F64 ? (const void *)&zero_f64 : (const void *)&zero_f32;
}

/* The order of the vectors, and the distances between rows or columns of x and y. */
static rsb_flags_t order_of(const struct peer_problem *problem)
{
    return problem->by_columns || problem->vectors == 1 ? RSB_FLAG_WANT_COLUMN_MAJOR_ORDER
                                                        : RSB_FLAG_WANT_ROW_MAJOR_ORDER;
}

static rsb_nnz_idx_t x_lead(const struct peer_problem *problem)
{
    return (rsb_nnz_idx_t)(order_of(problem) == RSB_FLAG_WANT_COLUMN_MAJOR_ORDER ? problem->cols : problem->vectors);
}

static rsb_nnz_idx_t y_lead(const struct peer_problem *problem)
{
    return (rsb_nnz_idx_t)(order_of(problem) == RSB_FLAG_WANT_COLUMN_MAJOR_ORDER ? problem->rows : problem->vectors);
}

static rsb_err_t multiply(const struct peer_problem *problem, const struct rsb_mtx_t *matrix)
{
    if (problem->op == PEER_SPMM)
        return rsb_spmm(RSB_TRANSPOSITION_N, NULL, matrix, problem->vectors, order_of(problem), problem->x,
                        x_lead(problem), zero(problem), problem->y, y_lead(problem));
    return rsb_spmv(RSB_TRANSPOSITION_N, NULL, matrix, problem->x, 1, zero(problem), problem->y, 1);
}

static double best_seconds(const struct peer_problem *problem, const struct rsb_mtx_t *matrix)
{
    double best = 0;
    for (int c = 0; c <= COMPARISONS; c++) { /* the first is a warm-up */
        const double begin = omp_get_wtime();
        multiply(problem, matrix);
        const double seconds = omp_get_wtime() - begin;
        if (c == 1 || (c > 1 && seconds < best))
            best = seconds;
    }
    return best;
}

/* The number of threads is not passed, so the library keeps its own. A copy is tuned in place,
 * because the library prints text if it must leave the matrix unchanged. */
static rsb_err_t tune(const struct peer_problem *problem, struct rsb_mtx_t **matrix)
{
    struct rsb_mtx_t *tuned = NULL;
    rsb_err_t error = rsb_mtx_clone(&tuned, RSB_NUMERICAL_TYPE_SAME_TYPE, RSB_TRANSPOSITION_N, NULL, *matrix,
                                    RSB_FLAG_IDENTICAL_FLAGS);
    if (error == RSB_ERR_NO_ERROR)
        error = rsb_tune_spmm(&tuned, NULL, NULL, TUNING_ROUNDS, ROUND_SECONDS, RSB_TRANSPOSITION_N, NULL, NULL,
                              problem->vectors, order_of(problem), problem->x, x_lead(problem), zero(problem),
                              problem->y, y_lead(problem));
    if (error == RSB_ERR_NO_ERROR && best_seconds(problem, tuned) < best_seconds(problem, *matrix)) {
        struct rsb_mtx_t *untuned = *matrix;
        *matrix = tuned;
        tuned = untuned;
    }
    rsb_mtx_free(tuned);
    return error;
}

static void close_librsb(void *state)
{
    struct librsb *librsb = state;
    rsb_mtx_free(librsb->matrix);
    free(librsb);
    if (--open_count == 0)
        rsb_lib_exit(RSB_NULL_EXIT_OPTIONS);
}

static int open_librsb(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
#ifdef RSB_NUMERICAL_TYPE_FLOAT
    const rsb_type_t type = problem->type == SPMV_F64 ? RSB_NUMERICAL_TYPE_DOUBLE : RSB_NUMERICAL_TYPE_FLOAT;
#else
    const rsb_type_t type = RSB_NUMERICAL_TYPE_DOUBLE;
    if (problem->type != SPMV_F64) {
        snprintf(why, why_size, "this build of librsb has no f32");
        return -1;
    }
#endif
    if (problem->rows > RSB_MAX_MATRIX_DIM || problem->cols > RSB_MAX_MATRIX_DIM || problem->nnz > RSB_MAX_MATRIX_NNZ) {
        snprintf(why, why_size, "librsb: %lld x %lld with %lld entries: it supports up to %lld rows and %lld entries",
                 (long long)problem->rows, (long long)problem->cols, (long long)problem->nnz,
                 (long long)RSB_MAX_MATRIX_DIM, (long long)RSB_MAX_MATRIX_NNZ);
        return -1;
    }
    if (problem->nnz == 0) {
        snprintf(why, why_size, "librsb: a matrix without entries has no blocks");
        return -1;
    }
    if (open_count > 0 && problem->threads != library_threads) {
        snprintf(why, why_size, "librsb is open with %d threads and cannot have %d at the same time", library_threads,
                 problem->threads);
        return -1;
    }
    struct librsb *librsb = calloc(1, sizeof *librsb);
    if (librsb == NULL) {
        snprintf(why, why_size, "out of memory: %zu bytes", sizeof *librsb);
        return -1;
    }
    librsb->problem = problem;
    const int caller = omp_get_max_threads();
    omp_set_num_threads(problem->threads);
    const char *what = "cannot start";
    rsb_err_t error = start_library(problem->threads);
    if (error == RSB_ERR_NO_ERROR) {
        what = "cannot create the matrix";
        librsb->matrix =
            rsb_mtx_alloc_from_csr_const(problem->val, problem->row_ptr, problem->col, (rsb_nnz_idx_t)problem->nnz,
                                         type, (rsb_coo_idx_t)problem->rows, (rsb_coo_idx_t)problem->cols,
                                         RSB_DEFAULT_ROW_BLOCKING, RSB_DEFAULT_COL_BLOCKING, RSB_FLAG_NOFLAGS, &error);
    }
    if (error == RSB_ERR_NO_ERROR) {
        what = "cannot tune";
        error = tune(problem, &librsb->matrix);
    }
    omp_set_num_threads(caller);
    if (error != RSB_ERR_NO_ERROR) {
        failed(error, what, why, why_size);
        close_librsb(librsb);
        return -1;
    }
    *state = librsb;
    return 0;
}

static int run_librsb(void *state)
{
    const struct librsb *librsb = state;
    const int caller = omp_get_max_threads();
    omp_set_num_threads(librsb->problem->threads);
    const rsb_err_t error = multiply(librsb->problem, librsb->matrix);
    omp_set_num_threads(caller);
    return error == RSB_ERR_NO_ERROR ? 0 : -1;
}

static const struct peer peers[] = {
    {.name = "librsb",
     .op = PEER_SPMV,
     .settings =
         "recursive blocks; rsb_tune_spmm (at most 16 rounds of 1 s) kept where its blocks are faster; rsb_spmv",
     .open = open_librsb,
     .run = run_librsb,
     .close = close_librsb},
    {.name = "librsb-spmm",
     .op = PEER_SPMM,
     .settings =
         "recursive blocks; rsb_tune_spmm (at most 16 rounds of 1 s) kept where its blocks are faster; rsb_spmm",
     .open = open_librsb,
     .run = run_librsb,
     .close = close_librsb},
};

const struct peer_module *spmv_peer_module(void)
{
    static const struct peer_module module = {PEER_ABI, "librsb " PEER_LIBRSB_VERSION, peers,
                                              sizeof peers / sizeof peers[0]};
    return &module;
}
