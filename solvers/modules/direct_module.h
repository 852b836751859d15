/* The interface of a module with a sparse direct solver: a library opened when the method direct
 * needs it, so that libspmv does not link it.
 *
 * The module is the shared object spmv_direct_klu.so with one symbol, spmv_direct_module. Everything
 * is in host memory. A complex number is two doubles. Functions return SPMV_OK, or another status
 * with a message in why.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef DIRECT_MODULE_H
#define DIRECT_MODULE_H

#include <spmv/types.h>
#include <stdbool.h>
#include <stdint.h>

enum { DIRECT_MODULE_ABI = 3, DIRECT_WHY = 512 };

/* A square matrix by columns (CSC), n > 0. Rows ascend strictly in each column. The arrays must live
 * until close returns. */
struct direct_problem {
    int64_t n;
    const int64_t *col_ptr; /* n + 1 offsets; the first is 0 */
    const int64_t *row;
    bool complex;
    int first_index; /* the number of the first row and column in messages: 0 or 1 */

    /* Takes bytes from the memory limit of the process before they are allocated. False, and nothing
     * is taken: the limit leaves fewer, or the caller's call is cancelled. A negative number gives
     * bytes back. Called in the thread that called the module. */
    bool (*take)(void *user, int64_t bytes);
    void *user;
};

struct direct_figures {
    const char *ordering; /* static storage */
    int64_t blocks;       /* diagonal blocks of the block triangular form */
    int64_t expected;     /* nonzeros that the analysis expects in the factors; 0: unknown */
    int64_t nonzeros;     /* of the factors */
    int64_t bytes;        /* allocated by the module */
    double rcond;         /* estimated reciprocal of the condition number in the 1-norm */
};

struct direct_module {
    int abi;
    const char *version; /* "KLU 1.3.9" */

    /* *state: the analysed pattern. Sets ordering, blocks, expected and bytes. SPMV_ERROR_SINGULAR,
     * SPMV_ERROR_MEMORY or SPMV_ERROR_UNSUPPORTED; *state is then NULL. */
    spmv_status (*open)(const struct direct_problem *problem, void **state, struct direct_figures *figures, char *why);

    /* Factorises these finite values, in place of those before. Sets nonzeros, bytes and rcond. The
     * same values give the same bits. The same errors; there are then no factors. */
    spmv_status (*factor)(void *state, const double *val, struct direct_figures *figures, char *why);

    /* x: b before, the solution after. Only with factors. SPMV_ERROR_UNSUPPORTED. */
    spmv_status (*solve)(void *state, double *x, char *why);
    /* The same for the conjugate transpose. */
    spmv_status (*solve_adjoint)(void *state, double *x, char *why);
    void (*close)(void *state);
};

__attribute__((visibility("default"))) const struct direct_module *spmv_direct_module(void);

#endif
