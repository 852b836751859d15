/* Shared by tests of preconditioners: a small matrix in host arrays, and M^-1 r.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_PRECOND_H
#define SUPPORT_PRECOND_H

#include "solvers/precond/precond_internal.h"
#include "tests/support/support_dense.h"

/* A square matrix in host arrays, columns ascending. */
struct sparse {
    int64_t n;
    int32_t *row_ptr, *col;
    double *val;
    spmv_csr view;
};

static inline struct sparse from_dense(int64_t n, const double *dense)
{
    struct sparse s = {.n = n};
    s.view = support_csr_of_dense(n, dense, &s.row_ptr, &s.col, &s.val);
    return s;
}

static inline void release(struct sparse *s)
{
    support_free(s->row_ptr, s->col, s->val);
}

/* Preconditioners that solve with triangles row by row: on a CPU only. */
static inline bool is_on_cpu_only(const char *name)
{
    return strcmp(name, "ic0") == 0 || strcmp(name, "cholesky") == 0;
}

/* z = M^-1 r with arrays of doubles on the host. */
static inline void apply(spmv_context *ctx, const spmv_preconditioner *m, const double *r, double *z)
{
    const spmv_type type = precond_type(m);
    const int64_t n = precond_rows(m);
    void *dr = support_upload_as(ctx, type, r, n, 0), *dz = support_upload_as(ctx, type, r, n, 0);
    assert_ok(ctx, spmv_preconditioner_apply(m, dr, dz));
    support_fetch_as(ctx, type, dz, n, z);
    support_free_in(ctx, dr, dz);
}

#endif
