/* Peers: other libraries for the same work, in modules that are opened at run time.
 *
 * A module is a shared library spmv_peer_NAME.so (bench/peers/) that exports spmv_peer_module;
 * peer_list.h has a row for it. Only the module links its library. If that library is absent, the
 * module does not open and is reported as missing. Modules include only this header and
 * <spmv/types.h>, and call no function of spmv.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <assert.h>
#include <spmv/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PEER_ABI = 9 };

/* Modules choose between f32 and f64. Another real type does not compile until each of them handles
 * it. */
#define PEER_COUNT_(NAME, name, value, T, CLASS, ARG) PEER_COUNT_##CLASS##_
#define PEER_COUNT_INTEGER_
#define PEER_COUNT_REAL_ +1
#define PEER_COUNT_TUPLE_
enum { PEER_REAL_TYPES = 0 SPMV_TYPES(PEER_COUNT_, ) };
static_assert(PEER_REAL_TYPES == 2, "modules handle f32 and f64");

/* The operations. Scans are inclusive and use the sum. */
enum peer_op {
    PEER_SPMV,      /* y = A x */
    PEER_SCAN,      /* out[i] = in[0] + ... + in[i] */
    PEER_SEGSCAN,   /* the same, restarted where segment[i] != segment[i - 1] */
    PEER_REDUCE,    /* out[0] = in[0] + ... + in[n - 1] */
    PEER_SEGREDUCE, /* out[s] = in[offsets[s]] + ... + in[offsets[s + 1] - 1] */
    PEER_COMPACT,   /* out = the in[i] with flags[i] != 0, in order; kept[0] their number */
    PEER_SORT,      /* out = in in ascending order; no NaN */
    PEER_HISTOGRAM, /* out[b], bins 32-bit integers = how many i have index[i] == b */
    /* y = the x with A x = b, by conjugate gradients without a preconditioner, from x = 0 */
    PEER_CG,
    PEER_SPMM,           /* Y = A X: spmv for several vectors */
    PEER_SPMV_DOT,       /* y = A x, and y[rows] = w[0] y[0] + ... + w[rows - 1] y[rows - 1] */
    PEER_SPGEMM,         /* y = the values of C = A B, pattern included in the time; columns ascend */
    PEER_SPGEMM_NUMERIC, /* the same, with the pattern of C made by open */
    /* as PEER_CG, by restarted GMRES and by BiCGStab; A need not be symmetric */
    PEER_GMRES,
    PEER_BICGSTAB,
    /* as PEER_CG, with the library's preconditioner, whose set-up is part of each run; for comparisons
     * of whole solutions */
    PEER_CG_PRECOND,
    /* Y = A B' at the entries of the matrix, which is a pattern; A in w, B in x, and the entries in y */
    PEER_SDDMM
};

/* Result of a solve, in host memory. */
struct peer_solved {
    int64_t iterations;   /* products with A in the loop (PEER_BICGSTAB: pairs of them) */
    double residual;      /* ||r|| / ||b||, r by the recurrence, after the last update */
    double setup_seconds; /* PEER_CG_PRECOND: of the run, the time for the preconditioner */
};

/* The work, in the memory of the peer's backend. The comment of an array gives its number of
 * elements. All arrays outlive the peer's state. Only y, out and kept may be written. Arrays that
 * the operation does not use are NULL. */
struct peer_problem {
    enum peer_op op;
    spmv_type type; /* of the values: SPMV_F32 or SPMV_F64; for peers with PEER_HALVES also SPMV_BF16 or SPMV_F16 */
    int threads;    /* on a CPU: threads to use, at least 1 */
    void *stream;   /* on a GPU: the cudaStream_t of all work; its device is the current one */

    int64_t rows, cols, nnz; /* nnz <= 2^31 - 1; columns ascend strictly in each row */
    const int32_t *row_ptr;  /* rows + 1 */
    const int32_t *col;      /* nnz */
    const void *val, *x;     /* nnz, cols * vectors */
    /* rows * vectors; PEER_SPMV_DOT: one more; PEER_SPGEMM: entries of C; PEER_SDDMM: nnz */
    void *y;
    /* 1 except for PEER_SPMM and PEER_SDDMM: element v of row i of x is at i * vectors + v, or if by_columns is not 0 at
     * v * cols + i; y likewise */
    int vectors, by_columns;
    const void *w; /* rows; PEER_SDDMM: rows * vectors, stored by rows */

    /* B of PEER_SPGEMM: cols rows; the arrays of A if it is A. */
    int64_t right_cols, right_nnz;
    const int32_t *right_row_ptr, *right_col; /* cols + 1, right_nnz */
    const void *right_val;                    /* right_nnz */

    int64_t n; /* elements of in */
    const void *in;
    void *out;
    const int32_t *segment; /* n: the segment number of each element, ascending */
    int64_t segments;
    const int32_t *offsets; /* segments + 1 */
    const uint8_t *flags;   /* n: 0 or 1 */
    int64_t *kept;          /* 1 element */
    const int32_t *index;   /* n, 0 <= index[i] < bins */
    int64_t bins;

    const void *b;              /* rows; A is square, for PEER_CG symmetric */
    double rtol;                /* stop when ||r|| <= rtol ||b||, r by the recurrence, ... */
    int64_t max_iterations;     /* ... or after this many iterations, which is not a failure */
    struct peer_solved *solved; /* host memory: written by every run */
    int restart;                /* PEER_GMRES: iterations between restarts */
};

/* PEER_PROBE: moves part of the data and computes no result: not checked, not compared. PEER_HALVES: takes 16-bit
 * types, with sums in f32. */
enum { PEER_PROBE = 1, PEER_HALVES = 2 };

struct peer {
    const char *name; /* begins with the module's name: "cusparse-csr-alg1-pre" */
    enum peer_op op;
    /* one line on how the library is used: its best settings, and how they were found */
    const char *settings;
    unsigned flags; /* PEER_PROBE, PEER_HALVES */

    /* Prepares for many runs; may take long, and the caller times it. Returns 0, or -1 with a
     * message in why and all memory released. *state is NULL at the call. */
    int (*open)(const struct peer_problem *problem, void **state, char *why, size_t why_size);

    /* Computes once: queued on the stream of a GPU, complete on return on a CPU. Overwrites the
     * result entirely. Returns 0, or -1 after a failure. */
    int (*run)(void *state);

    /* NULL for most peers. Computes repeats times and returns the total time: for a peer that
     * computes in other processes, so that communication with them is not timed. */
    int (*run_timed)(void *state, int repeats, double *seconds);

    /* NULL for most peers. Copies the result of the last run to y or out: for a peer with the
     * result in other memory. */
    int (*fetch)(void *state);

    void (*close)(void *state); /* NULL for a peer without state to release */
};

struct peer_module {
    int abi;             /* PEER_ABI */
    const char *library; /* with the version in use: "cuSPARSE 12.6.3" */
    const struct peer *peers;
    int count;
};

#define PEER_EXPORT __attribute__((visibility("default")))
PEER_EXPORT const struct peer_module *spmv_peer_module(void);

#ifdef __cplusplus
}
#endif

#endif
