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
    X(stencil27, "stencil27:N", "26 and -1 for up to 26 neighbours on an N x N x N grid, as in HPCG")                  \
    X(diagonal, "diagonal:ROWS", "the diagonal alone")                                                                 \
    X(banded, "banded:ROWS,HALF", "all entries up to HALF beside the diagonal")                                        \
    X(dense, "dense:ROWS,COLS", "every entry")                                                                         \
    X(arrow, "arrow:ROWS[,LEN[,OTHERS]]", "a row and a column of LEN, others OTHERS around the diagonal")              \
    X(uniform, "uniform:ROWS,COLS,MEAN", "random columns, MEAN a row")                                                 \
    X(longrows, "longrows:ROWS,COLS,LEN", "random columns, LEN in every row")                                          \
    X(empty, "empty:ROWS,SHARE[,MEAN]", "a SHARE of the rows empty, random columns in others, MEAN a row")             \
    X(powerlaw, "powerlaw:ROWS,MEAN,ALPHA,MAX", "row lengths by a power law, the longest MAX; some columns are hubs")  \
    X(rmat, "rmat:SCALE,EDGES", "R-MAT graph of Graph500: 2^SCALE vertices, EDGES drawn for each")                     \
    X(fem, "fem:NODES,BLOCK,NEIGHBOURS", "dense blocks for neighbours on a three-dimensional mesh")                    \
    X(twin, "twin:NAME", "statistics of a known matrix, or twin:rows=R,nnz=N,... (man spmv)")

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
    spmv_type wide;        /* of the matrix: the same, or the complex type of such parts */
    uint64_t seed;         /* 1 when the SPEC has none */
    enum generator_values values;
    struct job_limit limit;
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

struct generator_argument {
    int64_t n;   /* 'n', 'z' */
    double real; /* the number, whatever its kind */
};

/* Reads arguments of these kinds, separated by commas, one letter an argument: 'n' an integer >= 1, 'z' one >= 0, 'd' a
 * decimal number >= 0 of at most 15 digits such as 2.5. Those behind a '?' may be left out, from the last on; *given
 * (may be NULL): how many are there. Errors as generator_integers; why: what they are, "with integers from 1". */
spmv_status generator_arguments(spmv_context *ctx, const struct generator_request *request, const char *kinds,
                                const char *why, struct generator_argument *arguments, int *given);

/* SPMV_ERROR_LIMIT unless so many columns are possible. */
spmv_status generator_columns(spmv_context *ctx, const struct generator_request *request, int64_t cols);

/* A matrix of about so many entries: SPMV_ERROR_LIMIT when they are beyond 64 bits, SPMV_ERROR_MEMORY when generating it
 * or the caller's job takes more memory than allowed. Every generator asks before it computes anything. beside: bytes
 * that generating takes beside the matrix. */
spmv_status generator_fits(spmv_context *ctx, const struct generator_request *request, int64_t rows, int64_t cols,
                           double entries, double beside);

/* SPMV_ERROR_SPEC: the sentence quotes the SPEC and its form, and ends with why, "" for the form alone. */
spmv_status generator_fail(spmv_context *ctx, const struct generator_request *request, const char *why);

/* Fills all values of a matrix, whose arrays but val are complete: random ones or ones, as the request has it
 * (GENERATOR_OWN: random). Value k is number k of the seed's stream GENERATOR_STREAM_VALUES. */
enum { GENERATOR_STREAM_VALUES = 0x76616c };
void generator_fill_values(spmv_context *ctx, const struct generator_request *request, spmv_matrix *m);

#endif
