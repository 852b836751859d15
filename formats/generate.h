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
    X(poisson3d, "poisson3d:N", "the 7-point Laplacian on an N x N x N grid")                                          \
    X(twin, "twin:NAME or twin:rows=R,nnz=N,...", "a matrix with the statistics of another")

/* What the values of a generated matrix are. */
enum generator_values {
    GENERATOR_OWN,     /* the generator's own: a stencil's coefficients; random where it has none */
    GENERATOR_RANDOM,  /* random_value: full mantissas, random signs */
    GENERATOR_CONSTANT /* ones */
};

/* NAME:ARGUMENTS[,seed=N][,values=own|random|constant], taken apart. */
struct generator_request {
    const struct generator *self;
    const char *arguments; /* without the two options */
    spmv_type type;        /* SPMV_F64 or SPMV_F32 */
    uint64_t seed;         /* 1 when the SPEC has none */
    enum generator_values values;
};

struct generator {
    const char *name, *form, *about;
    /* *matrix is NULL when it is called. The same request gives the same bits, for any number of threads; in f32 the
     * values of f64, rounded. */
    spmv_status (*make)(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix);
};

#define GENERATOR_PROTOTYPE_(name, form, about)                                                                        \
    spmv_status generate_##name(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix);
GENERATOR_LIST(GENERATOR_PROTOTYPE_)
#undef GENERATOR_PROTOTYPE_

/* Reads count integers >= 1, separated by commas, that are all of the request's arguments: SPMV_ERROR_SPEC with a
 * sentence that quotes the form, SPMV_ERROR_LIMIT for one beyond 64 bits. */
spmv_status generator_integers(spmv_context *ctx, const struct generator_request *request, int count, int64_t *values);

/* SPMV_ERROR_SPEC: the sentence quotes the SPEC and its form, and ends with why, "" for the form alone. */
spmv_status generator_fail(spmv_context *ctx, const struct generator_request *request, const char *why);

/* Fills all values of a matrix, whose arrays but val are complete: random ones or ones, as the request has it
 * (GENERATOR_OWN: random). Value k is number k of the seed's stream GENERATOR_STREAM_VALUES. */
enum { GENERATOR_STREAM_VALUES = 0x76616c };
void generator_fill_values(spmv_context *ctx, const struct generator_request *request, spmv_matrix *m);

#endif
