/* Peers: other libraries that do what we do, in modules that are opened while the program runs.
 *
 * A module is a shared library spmv_peer_NAME.so (bench/peers/) that exports spmv_peer_module; its row in peer_list.h
 * names it. It links its library, we do not: a module whose library is absent does not open, and is reported as
 * missing. Modules see this header and <spmv/types.h> only, and call nothing of ours.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <spmv/types.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PEER_ABI = 4 };

/* What is computed. Sums, inclusive where nothing else is said. */
enum peer_op {
    PEER_SPMV,      /* y = A x */
    PEER_SCAN,      /* out[i] = in[0] + ... + in[i] */
    PEER_SEGSCAN,   /* the same, begun anew where segment[i] != segment[i - 1] */
    PEER_REDUCE,    /* out[0] = in[0] + ... + in[n - 1] */
    PEER_SEGREDUCE, /* out[s] = in[offsets[s]] + ... + in[offsets[s + 1] - 1] */
    PEER_COMPACT,   /* out = the in[i] with flags[i] != 0, in order; kept[0] their number */
    PEER_SORT,      /* out = in in ascending order; no NaN */
    PEER_HISTOGRAM, /* out[b], bins 32-bit integers = how many i have index[i] == b */
    PEER_CG,        /* y = the x with A x = b by conjugate gradients without a preconditioner, from 0 on */
    PEER_SPMM,      /* Y = A X: spmv for several vectors, x and y row by row */
    PEER_SPMV_DOT   /* y = A x, and y[rows] = w[0] y[0] + ... + w[rows - 1] y[rows - 1] */
};

/* What a solve did, in host memory. */
struct peer_solved {
    int64_t iterations; /* products with A in the loop, that is changes of x */
    double residual;    /* ||r|| / ||b||, r by the recurrence, after the last of them */
};

/* The work, in the memory of the peer's backend. Everything outlives the peer's state and must not be written, but for
 * y, out and kept. Arrays that the op does not name are NULL. */
struct peer_problem {
    enum peer_op op;
    spmv_type type; /* of the values: SPMV_F32 or SPMV_F64 */
    int threads;    /* on a CPU: to use, from 1 */
    void *stream;   /* on a GPU: the cudaStream_t that all work is queued on; the device is the current one */

    int64_t rows, cols, nnz; /* nnz <= 2^31 - 1; columns ascend strictly in each row */
    const int32_t *row_ptr;  /* rows + 1 */
    const int32_t *col;      /* nnz */
    const void *val, *x;     /* nnz, cols * vectors */
    void *y;                 /* rows * vectors; PEER_SPMV_DOT: one more */
    int vectors;             /* 1 but for PEER_SPMM: element v of row i of x lies at i * vectors + v, y likewise */
    const void *w;           /* rows */

    int64_t n; /* elements of in */
    const void *in;
    void *out;
    const int32_t *segment; /* n: the number of the segment that an element lies in, ascending */
    int64_t segments;
    const int32_t *offsets; /* segments + 1 */
    const uint8_t *flags;   /* n: 0 or 1 */
    int64_t *kept;          /* 1 */
    const int32_t *index;   /* n, 0 <= index[i] < bins */
    int64_t bins;

    const void *b;              /* rows; A is square and symmetric */
    double rtol;                /* stops as soon as ||r|| <= rtol ||b||, r by the recurrence, ... */
    int64_t max_iterations;     /* ... or after so many iterations, which is no failure */
    struct peer_solved *solved; /* host memory: every run writes it */
};

struct peer {
    const char *name; /* "cusparse-csr-alg1-pre": the module's name comes first */
    enum peer_op op;
    const char *settings; /* one line on how it is used: its best settings, and how they were found */
    int probe;            /* 1: moves a part of the data and computes no result: not checked, no competitor */

    /* Makes ready for many runs; may take long: the caller times it. Returns 0, or -1 with a sentence in why and all
     * released. *state is NULL when it is called. */
    int (*open)(const struct peer_problem *problem, void **state, char *why, size_t why_size);

    /* Computes once: on a GPU queued on the stream, on a CPU done when it returns. Overwrites the result entirely. 0,
     * or -1 when it failed. */
    int (*run)(void *state);

    /* NULL for most. Computes so many times and says how long that took in all: for a peer that computes elsewhere, in
     * other processes, so that the way there is not timed. */
    int (*run_timed)(void *state, int repeats, double *seconds);

    /* NULL for most. Brings the result of the last run to y or out: for a peer whose result lies elsewhere. */
    int (*fetch)(void *state);

    void (*close)(void *state); /* NULL for a peer that holds nothing */
};

struct peer_module {
    int abi;             /* PEER_ABI */
    const char *library; /* with the version that runs: "cuSPARSE 12.6.3" */
    const struct peer *peers;
    int count;
};

#define PEER_EXPORT __attribute__((visibility("default")))
PEER_EXPORT const struct peer_module *spmv_peer_module(void);

#ifdef __cplusplus
}
#endif

#endif
