/* The inside of a preconditioner, and the table of kinds.
 *
 * A kind is one way to make an M: one file with a function that fills the preconditioner, one row in the table
 * (precond.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRECOND_INTERNAL_H
#define PRECOND_INTERNAL_H

#include <spmv/preconditioner.h>

#include "backend.h"

enum { PRECOND_NAME = 64, PRECOND_SENTENCE = 512 };

struct spmv_preconditioner {
    spmv_context *ctx;
    spmv_type type;
    int64_t rows;
    spmv_status (*apply)(void *self, const void *r, void *z);
    void (*destroy)(void *self);
    void *self;
    const void *inverse_diagonal; /* of a "jacobi" one */
    bool identity;                /* a "none" one */
    int64_t bytes;
    double seconds;
    double lowest, highest, shift;
    int64_t levels, fallen;
    char name[PRECOND_NAME];
    char why[PRECOND_SENTENCE];
    char layout[PRECOND_SENTENCE];
};

/* What a kind is made from. */
struct precond_source {
    const spmv_csr *a; /* as the caller gave it */
    spmv_csr host;     /* the same, readable on the host, checked: square, every column within, any order */
    double *diagonal;  /* host memory: rows sums of what lies on the diagonal; finite and positive */
    const spmv_preconditioner_options *options;
};

struct precond_kind {
    const char *name;
    bool any_diagonal; /* can be made where the diagonal is not positive */

    /* Fills apply, destroy, self, and what else it has to say. On failure nothing is left in self. */
    spmv_status (*make)(spmv_preconditioner *m, const struct precond_source *source);
};

/* Memory in the context, counted in m->bytes. */
spmv_status precond_alloc(spmv_preconditioner *m, int64_t bytes, void **memory);

/* Host numbers in the context's memory, rounded to m->type, counted in m->bytes. */
spmv_status precond_upload(spmv_preconditioner *m, const double *host, int64_t n, void **memory);

/* 1 / source->diagonal likewise; SPMV_ERROR_NOT_FINITE where one overflows. */
spmv_status precond_upload_reciprocals(spmv_preconditioner *m, const struct precond_source *source, void **reciprocals);

/* The value of entry k. */
static inline double precond_value(const spmv_csr *a, int64_t k)
{
    return a->val == NULL ? 1 : a->type == SPMV_F32 ? (double)((const float *)a->val)[k] : ((const double *)a->val)[k];
}

spmv_status precond_make_none(spmv_preconditioner *, const struct precond_source *);
spmv_status precond_make_jacobi(spmv_preconditioner *, const struct precond_source *);
spmv_status precond_make_block_jacobi(spmv_preconditioner *, const struct precond_source *);
spmv_status precond_make_chebyshev(spmv_preconditioner *, const struct precond_source *);
spmv_status precond_make_ic0(spmv_preconditioner *, const struct precond_source *);
spmv_status precond_make_amg(spmv_preconditioner *, const struct precond_source *);

/* SPMV_OK, or SPMV_ERROR_UNSUPPORTED with the sentence why there is no "amg" for these. */
spmv_status precond_amg_supports(spmv_context *ctx, spmv_type type, int64_t nnz);

/* "auto": the name of a kind, and why (PRECOND_SENTENCE bytes). bad: the first row whose diagonal entry is not positive
 * or not finite; rows when there is none. */
spmv_status precond_choose(spmv_context *ctx, spmv_type type, const struct precond_source *source, int64_t bad,
                           const char **name, char *why);

/* ----------------------------------------------------------- for the solvers */

spmv_context *precond_context(const spmv_preconditioner *m);
spmv_type precond_type(const spmv_preconditioner *m);
int64_t precond_rows(const spmv_preconditioner *m);
const char *precond_name(const spmv_preconditioner *m);

/* The rows reciprocals of the diagonal, in the context's memory, of one that does nothing but multiply by them
 * ("jacobi"), so that a fused kernel can do that without a call; NULL for all others. */
const void *precond_inverse_diagonal(const spmv_preconditioner *m);

/* M is the identity ("none"): a solver is spared it. */
bool precond_is_identity(const spmv_preconditioner *m);

#endif
