/* The interface of a preconditioner module: a library opened when a preconditioner needs it, so
 * that libspmv does not link it.
 *
 * A module is a shared object spmv_precond_NAME.so with one symbol, spmv_precond_module. Vectors
 * and the matrix are f64 in host memory. Functions return 0, or another value with a message in
 * why.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRECOND_MODULE_H
#define PRECOND_MODULE_H

#include <stddef.h>
#include <stdint.h>

enum { PRECOND_MODULE_ABI = 1, PRECOND_WHY = 512 };

/* A square matrix in CSR, without duplicate entries, nnz < 2^31. The arrays must live until open
 * returns. */
struct precond_problem {
    int64_t rows, nnz;
    const int64_t *row_ptr;
    const int32_t *col;
    const double *val;
    double strength; /* the threshold of strong couplings */
};

struct precond_module {
    int abi;
    const char *version; /* "hypre 2.26.0" */

    /* *state: the preconditioner */
    int (*open)(const struct precond_problem *problem, void **state, char *why);

    /* z = M^-1 r, no overlap */
    int (*apply)(void *state, const double *r, double *z, char *why);
    void (*close)(void *state);
};

__attribute__((visibility("default"))) const struct precond_module *spmv_precond_module(void);

#endif
