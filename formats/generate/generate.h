/* Generated matrices: the list of generators, and what they share.
 *
 * A generator is a function in a file gen_*.c and one line in the list below.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GENERATE_H
#define GENERATE_H

#include "formats/matrix_internal.h"

/* X(name, function, axes, form of its SPEC, description). The function is generate_FUNCTION. axes: of
 * the grid, where one function makes grids of several; otherwise 0. */
#define GENERATOR_LIST(X)                                                                                              \
    X(poisson2d, poisson, 2, "poisson2d:N", "the 5-point Laplacian on an N x N grid")                                  \
    X(poisson3d, poisson, 3, "poisson3d:N", "the 7-point Laplacian on an N x N x N grid")                              \
    X(stencil27, stencil27, 0, "stencil27:N", "26 and -1 for up to 26 neighbours on an N x N x N grid, as in HPCG")    \
    X(diffusion2d, diffusion, 2, "diffusion2d:N,CONTRAST[,ANISO]",                                                     \
      "5-point diffusion, cell coefficients from 1 to CONTRAST")                                                       \
    X(diffusion3d, diffusion, 3, "diffusion3d:N,CONTRAST[,ANISO]",                                                     \
      "7-point diffusion, cell coefficients from 1 to CONTRAST")                                                       \
    X(convdiff2d, convdiff, 2, "convdiff2d:N,PECLET", "5-point convection-diffusion, upwind, not symmetric")           \
    X(convdiff3d, convdiff, 3, "convdiff3d:N,PECLET", "7-point convection-diffusion, upwind, not symmetric")           \
    X(interpolation3d, interpolation3d, 0, "interpolation3d:N,K",                                                      \
      "from aggregates of K x K x K points to the grid of poisson3d:N")                                                \
    X(elasticity2d, elasticity, 2, "elasticity2d:N[,NU]", "elasticity of an N x N grid of nodes, 2 unknowns for each") \
    X(elasticity3d, elasticity, 3, "elasticity3d:N[,NU]",                                                              \
      "elasticity of an N x N x N grid of nodes, 3 unknowns for each")                                                 \
    X(rigid2d, rigid, 2, "rigid2d:N", "the 3 rigid body modes of elasticity2d:N")                                      \
    X(rigid3d, rigid, 3, "rigid3d:N", "the 6 rigid body modes of elasticity3d:N")                                      \
    X(diagonal, diagonal, 0, "diagonal:ROWS", "only the diagonal")                                                     \
    X(banded, banded, 0, "banded:ROWS,HALF", "all entries at most HALF from the diagonal")                             \
    X(dense, dense, 0, "dense:ROWS,COLS", "every entry")                                                               \
    X(arrow, arrow, 0, "arrow:ROWS[,LEN[,OTHERS]]", "a row and a column of LEN, others OTHERS around the diagonal")    \
    X(uniform, uniform, 0, "uniform:ROWS,COLS,MEAN", "random columns, MEAN per row")                                   \
    X(longrows, longrows, 0, "longrows:ROWS,COLS,LEN", "random columns, LEN in every row")                             \
    X(empty, empty, 0, "empty:ROWS,SHARE[,MEAN]", "a SHARE of empty rows, random columns in the others, MEAN per row") \
    X(powerlaw, powerlaw, 0, "powerlaw:ROWS,MEAN,ALPHA,MAX",                                                           \
      "row lengths by a power law, the longest MAX; some columns are hubs")                                            \
    X(rmat, rmat, 0, "rmat:SCALE,EDGES", "R-MAT graph of Graph500: 2^SCALE vertices, EDGES for each")                  \
    X(fem, fem, 0, "fem:NODES,BLOCK,NEIGHBOURS", "dense blocks for neighbours on a three-dimensional mesh")            \
    X(twin, twin, 0, "twin:NAME", "statistics of a known matrix, or twin:rows=R,nnz=N,... (man spmv)")

/* The kind of values of a generated matrix. */
enum generator_values {
    /* the generator's own values, such as a stencil's coefficients; random if it has none */
    GENERATOR_OWN,
    GENERATOR_RANDOM,  /* random_value: full mantissas, random signs */
    GENERATOR_CONSTANT /* ones */
};

/* The parts of NAME:ARGUMENTS[,seed=N][,values=own|random|constant]. */
struct generator_request {
    const struct generator *self;
    const char *arguments; /* without the two options */
    spmv_type type;        /* type of the generated values: SPMV_F64 or SPMV_F32 */
    spmv_type wide;        /* type of the matrix: the same, or the complex type with such parts */
    uint64_t seed;         /* 1 if the SPEC has none */
    enum generator_values values;
    struct job_limit limit;
    /* Only these rows are wanted: rows part / parts to rows (part + 1) / parts - 1. *is_part: set
     * by a generator that makes no others; otherwise they are cut from the whole matrix. */
    int part, parts;
    bool *is_part;
};

/* The first row of the part. */
static inline int64_t generator_part_begin(int64_t rows, int part, int parts)
{
    return rows / parts * part + rows % parts * part / parts;
}

struct generator {
    const char *name, *form, *about;
    int axes;
    /* *matrix is NULL at the call. The same request gives the same bits for any number of threads.
     * In f32 the values are those of f64, rounded. */
    spmv_status (*make)(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix);
};

#define GENERATOR_PROTOTYPE_(name, function, axes, form, about)                                                        \
    spmv_status generate_##function(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix);
GENERATOR_LIST(GENERATOR_PROTOTYPE_)
#undef GENERATOR_PROTOTYPE_

/* Reads the request's arguments, which must be count integers >= 1, separated by commas.
 * SPMV_ERROR_SPEC with a message that quotes the form; SPMV_ERROR_LIMIT for an integer beyond 64
 * bits. */
spmv_status generator_integers(spmv_context *ctx, const struct generator_request *request, int count, int64_t *values);

struct generator_argument {
    int64_t n;   /* of kind 'n' or 'z' */
    double real; /* the number, of any kind */
};

/* Reads arguments separated by commas. kinds has one letter per argument: 'n' an integer >= 1, 'z'
 * an integer >= 0, 'd' a decimal number >= 0 of at most 15 digits such as 2.5. Arguments after a
 * '?' are optional, from the last one on; *given (may be NULL): how many there are. Errors as
 * generator_integers; why describes the arguments, such as "with integers from 1". */
spmv_status generator_arguments(spmv_context *ctx, const struct generator_request *request, const char *kinds,
                                const char *why, struct generator_argument *arguments, int *given);

/* SPMV_ERROR_LIMIT unless a matrix can have this many columns. */
spmv_status generator_columns(spmv_context *ctx, const struct generator_request *request, int64_t cols);

/* Checks the size of a matrix of about this many entries: SPMV_ERROR_LIMIT if its bytes exceed 64
 * bits, SPMV_ERROR_MEMORY if generating it or the caller's job exceeds the memory limit. Every
 * generator calls this before it computes anything. beside: bytes that generating needs besides the
 * matrix. */
spmv_status generator_fits(spmv_context *ctx, const struct generator_request *request, int64_t rows, int64_t cols,
                           double entries, double beside);

/* SPMV_ERROR_SPEC. The message quotes the SPEC and its form, and ends with why; "": the form
 * alone. */
spmv_status generator_fail(spmv_context *ctx, const struct generator_request *request, const char *why);

/* Fills all values of a matrix whose other arrays are complete: random values or ones, as requested
 * (GENERATOR_OWN: random). Value k is number first + k of the seed's stream
 * GENERATOR_STREAM_VALUES. */
enum { GENERATOR_STREAM_VALUES = 0x76616c };
void generator_fill_values(spmv_context *ctx, const struct generator_request *request, int64_t first, spmv_matrix *m);

#endif
