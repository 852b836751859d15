/* Generated matrices: the list of generators, and what they share.
 *
 * A generator is a function generate_NAME in a file gen_*.c and one line in the list below.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GENERATE_H
#define GENERATE_H

#include "matrix_internal.h"

/* X(name, form of its SPEC, what it is) */
#define GENERATOR_LIST(X)                                                                                              \
    X(poisson2d, "poisson2d:N", "the 5-point Laplacian on an N x N grid")                                              \
    X(poisson3d, "poisson3d:N", "the 7-point Laplacian on an N x N x N grid")

struct generator {
    const char *name, *form, *about;
    /* arguments: the SPEC's text behind "NAME:"; type: SPMV_F64 or SPMV_F32. *matrix is NULL when it is called. */
    spmv_status (*make)(spmv_context *ctx, const struct generator *self, const char *arguments, spmv_type type,
                        spmv_matrix **matrix);
};

#define GENERATOR_PROTOTYPE_(name, form, about)                                                                        \
    spmv_status generate_##name(spmv_context *ctx, const struct generator *self, const char *arguments,                \
                                spmv_type type, spmv_matrix **matrix);
GENERATOR_LIST(GENERATOR_PROTOTYPE_)
#undef GENERATOR_PROTOTYPE_

/* Reads count integers >= 1, separated by commas: SPMV_ERROR_SPEC with a sentence that quotes the form,
 * SPMV_ERROR_LIMIT for one beyond 64 bits. */
spmv_status generator_integers(spmv_context *ctx, const struct generator *self, const char *arguments, int count,
                               int64_t *values);

#endif
