/* The interface of a module with a sparse direct solver: a library opened when the solver direct
 * needs it, so that libspmv does not link it.
 *
 * A module is a shared object, such as spmv_direct_klu.so, with one symbol, spmv_direct_module. Everything
 * is in host memory, or, of a module that computes on a GPU, the matrix and the vectors are in the device's memory, and
 * calls may only queue their work. A complex number is two doubles. Functions return SPMV_OK, or another status
 * with a message in why.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef DIRECT_MODULE_H
#define DIRECT_MODULE_H

#include <math.h>
#include <pthread.h>
#include <spmv/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/hypot.h"

enum { DIRECT_MODULE_ABI = 6, DIRECT_WHY = 512 };

struct direct_problem;

/* What modules share in a process (suitesparse.h). */
struct direct_shared {
    pthread_mutex_t lock;

    /* Of the module that counts the memory of the allocator: what is allocated in this thread from now on is for this
     * problem; NULL: for none. */
    void (*count_for)(const struct direct_problem *problem);

    int calls, threads; /* in progress; of BLAS outside of them */
};

/* A matrix in the device's memory, by rows (CSR). Columns ascend strictly in each row. */
struct direct_device {
    int64_t nnz; /* below 2^31 */
    const int32_t *row_ptr, *col;
    const double *val; /* factor finds others in the same place */
    void *stream;      /* a cudaStream_t, which may be another one in each call; its device is current */
};

/* A square matrix, n > 0, by columns (CSC), whose rows ascend strictly, or in the device's memory. The arrays must live
 * until close returns. */
struct direct_problem {
    int64_t n;
    const int64_t *col_ptr; /* n + 1 offsets; the first is 0 */
    const int64_t *row;
    const double *val;                  /* of which the analysis may make use; factor may be given others */
    const struct direct_device *device; /* of a module for a GPU, in place of the three above; else NULL */
    bool complex;
    bool symmetric;  /* A = A^T, of the values too, but for rounding: one triangle is enough */
    bool hermitian;  /* A = A^H; of a real matrix the same */
    int first_index; /* the number of the first row and column in messages: 0 or 1 */
    double most;     /* nanoseconds: an order that takes longer to find is not looked for; INFINITY: any is */

    /* Takes bytes from the memory limit of the process before they are allocated. False, and nothing
     * is taken: the limit leaves fewer, or the caller's call is cancelled. A negative number gives
     * bytes back. Called in the thread that called the module. */
    bool (*take)(void *user, int64_t bytes);
    void *user;
    struct direct_shared *shared;
};

struct direct_figures {
    const char *ordering; /* static storage */
    int64_t blocks;       /* diagonal blocks of the block triangular form; 0: there is none */
    int64_t expected;     /* nonzeros that the analysis expects in the factors; 0: unknown */
    int64_t entry_bytes;  /* of each of them */
    double operations;    /* that it expects of the factorisation; 0: unknown */
    double nanoseconds;   /* that these take, within a factor of two or three; 0: unknown */
    double dense;         /* the same by a library with dense parts and a fast BLAS */
    int64_t nonzeros;     /* of the factors */
    int64_t bytes;        /* allocated by the module */
    double rcond; /* estimated reciprocal of the condition number in the 1-norm, or by the pivots; below 0: unknown */
    int64_t negative, zero; /* eigenvalues below 0, and those that are 0 to rounding; negative below 0: both unknown */
    bool has_determinant;   /* of the factors: log |det A|, and det A / |det A| */
    double log_determinant, phase[2];
    bool no_adjoint; /* solve_adjoint is not supported, for this matrix */
};

struct direct_module {
    int abi;
    const char *version; /* "KLU 1.3.9" */

    /* *state: the analysed pattern. Sets ordering, blocks, expected, operations and bytes. SPMV_ERROR_SINGULAR,
     * SPMV_ERROR_MEMORY or SPMV_ERROR_UNSUPPORTED; *state is then NULL. */
    spmv_status (*open)(const struct direct_problem *problem, void **state, struct direct_figures *figures, char *why);

    /* Factorises these finite values, in place of those before. Sets nonzeros, bytes, rcond, negative, zero and the
     * determinant. The same values give the same bits. The same errors, and SPMV_ERROR_NOT_POSITIVE: A is not positive definite, which
     * the module needs; there are then no factors. */
    spmv_status (*factor)(void *state, const double *val, struct direct_figures *figures, char *why);

    /* x: right-hand sides before, the solutions after, each of n numbers, one behind the other. Only with factors. The
     * bits may depend on how many they are. SPMV_ERROR_UNSUPPORTED, SPMV_ERROR_MEMORY. */
    spmv_status (*solve)(void *state, double *x, int64_t columns, char *why);
    spmv_status (*solve_adjoint)(void *state, double *x, int64_t columns, char *why); /* with A^H */
    void (*close)(void *state);
};

/* What modules multiply a determinant from: the logarithm and the phase of its factors. */
struct direct_product {
    double log, phase[2];
};

static inline struct direct_product direct_product_of_none(void)
{
    const struct direct_product one = {0, {1, 0}};
    return one;
}

/* Multiplies by a number, of one or two doubles. 0: the logarithm becomes -INFINITY and the phase 0. */
static inline void direct_product_add(struct direct_product *p, const double *number, bool complex)
{
    const double im = complex ? number[1] : 0, size = complex ? real_hypot(number[0], im) : fabs(number[0]);
    if (size == 0) {
        p->log = -INFINITY;
        p->phase[0] = p->phase[1] = 0;
        return;
    }
    const double re = number[0] / size, turn = im / size, before = p->phase[0];
    p->log += log(size);
    p->phase[0] = before * re - p->phase[1] * turn;
    p->phase[1] = before * turn + p->phase[1] * re;
}

/* The figures get it. The phase of complex numbers loses its modulus 1 to rounding, bit by bit. */
static inline void direct_product_tell(const struct direct_product *p, struct direct_figures *figures)
{
    const double size = real_hypot(p->phase[0], p->phase[1]);
    figures->has_determinant = true;
    figures->log_determinant = p->log;
    figures->phase[0] = size > 0 ? p->phase[0] / size : 0;
    figures->phase[1] = size > 0 ? p->phase[1] / size : 0;
}

__attribute__((visibility("default"))) const struct direct_module *spmv_direct_module(void);

#endif
