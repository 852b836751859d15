/* librsb: recursive sparse blocks (M. Martone, Efficient multithreaded untransposed, transposed or symmetric sparse
 * matrix-vector multiplication with the Recursive Sparse Blocks format, Parallel Computing 40, 2014). The blocks are
 * made from CSR and then tuned by the library itself for the product with one vector.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <omp.h>
#include <rsb.h>
#include <stdio.h>
#include <stdlib.h>

#include "peer.h"

/* Tuning: at most so many rounds, each of which the library ends after so many seconds; the rest is found sooner. */
enum { TUNING_ROUNDS = 5 };
static const double ROUND_SECONDS = 1;

struct librsb {
    const struct peer_problem *problem;
    struct rsb_mtx_t *matrix;
};

/* The library's number of threads is one for all: what was set last, 0 before the first. */
static int threads_set;
static int open_count;

static rsb_err_t set_threads(int threads)
{
    if (threads == threads_set)
        return RSB_ERR_NO_ERROR;
    const int caller = omp_get_max_threads();
    const rsb_int_t n = threads;
    const rsb_err_t error = rsb_lib_set_opt(RSB_IO_WANT_EXECUTING_THREADS, &n);
    omp_set_num_threads(caller);
    threads_set = error == RSB_ERR_NO_ERROR ? threads : 0;
    return error;
}

static int failed(rsb_err_t error, const char *what, char *why, size_t why_size)
{
    char text[200] = "";
    rsb_strerror_r(error, text, sizeof text);
    snprintf(why, why_size, "librsb: %s: %s", what, text);
    return -1;
}

static void close_librsb(void *state)
{
    struct librsb *librsb = state;
    rsb_mtx_free(librsb->matrix);
    free(librsb);
    if (--open_count == 0) {
        rsb_lib_exit(RSB_NULL_EXIT_OPTIONS);
        threads_set = 0;
    }
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
        snprintf(why, why_size, "librsb: %lld x %lld with %lld entries: it takes up to %lld rows and %lld entries",
                 (long long)problem->rows, (long long)problem->cols, (long long)problem->nnz,
                 (long long)RSB_MAX_MATRIX_DIM, (long long)RSB_MAX_MATRIX_NNZ);
        return -1;
    }
    if (problem->nnz == 0) {
        snprintf(why, why_size, "librsb: a matrix without entries is not taken");
        return -1;
    }
    struct librsb *librsb = calloc(1, sizeof *librsb);
    if (librsb == NULL) {
        snprintf(why, why_size, "out of memory: %zu bytes", sizeof *librsb);
        return -1;
    }
    librsb->problem = problem;
    const int caller = omp_get_max_threads();
    rsb_err_t error = RSB_ERR_NO_ERROR;
    if (open_count++ == 0)
        error = rsb_lib_init(RSB_NULL_INIT_OPTIONS);
    const char *what = "cannot start";
    if (error == RSB_ERR_NO_ERROR) {
        what = "cannot set the number of threads";
        error = set_threads(problem->threads);
    }
    if (error == RSB_ERR_NO_ERROR) {
        what = "cannot make the matrix";
        librsb->matrix =
            rsb_mtx_alloc_from_csr_const(problem->val, problem->row_ptr, problem->col, (rsb_nnz_idx_t)problem->nnz,
                                         type, (rsb_coo_idx_t)problem->rows, (rsb_coo_idx_t)problem->cols,
                                         RSB_DEFAULT_ROW_BLOCKING, RSB_DEFAULT_COL_BLOCKING, RSB_FLAG_NOFLAGS, &error);
    }
    if (error == RSB_ERR_NO_ERROR) {
        /* No count of threads goes in, so the tuning keeps the one that is set. */
        what = "cannot tune";
        error = rsb_tune_spmm(&librsb->matrix, NULL, NULL, TUNING_ROUNDS, ROUND_SECONDS, RSB_TRANSPOSITION_N, NULL,
                              NULL, 1, RSB_FLAG_WANT_COLUMN_MAJOR_ORDER, problem->x, (rsb_nnz_idx_t)problem->cols, NULL,
                              problem->y, (rsb_nnz_idx_t)problem->rows);
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
    const struct peer_problem *problem = librsb->problem;
    static const double zero_f64 = 0;
    static const float zero_f32 = 0;
    const void *zero = problem->type == SPMV_F64 ? (const void *)&zero_f64 : (const void *)&zero_f32;
    if (set_threads(problem->threads) != RSB_ERR_NO_ERROR)
        return -1;
    const int caller = omp_get_max_threads();
    const rsb_err_t error = rsb_spmv(RSB_TRANSPOSITION_N, NULL, librsb->matrix, problem->x, 1, zero, problem->y, 1);
    omp_set_num_threads(caller);
    return error == RSB_ERR_NO_ERROR ? 0 : -1;
}

static const struct peer peers[] = {
    {.name = "librsb",
     .op = PEER_SPMV,
     .settings = "recursive blocks, halfword indices, rsb_tune_spmm (5 rounds of at most 1 s), rsb_spmv",
     .open = open_librsb,
     .run = run_librsb,
     .close = close_librsb},
};

const struct peer_module *spmv_peer_module(void)
{
    static const struct peer_module module = {PEER_ABI, "librsb " PEER_LIBRSB_VERSION, peers, 1};
    return &module;
}
