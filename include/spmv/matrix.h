/* Sparse matrices in memory: compressed sparse rows (CSR), conversions, statistics, generated
 * matrices.
 *
 * CSR stores a matrix A row by row. Row i has the entries k = row_ptr[i], ..., row_ptr[i + 1] - 1.
 * Entry k has the column col[k] and the value val[k]. Indices count from 0. For example:
 *
 *     | 2 0 1 |      row_ptr = {0, 2, 3, 5}
 *     | 0 3 0 |      col     = {0, 2, 1, 0, 2}
 *     | 4 0 5 |      val     = {2, 1, 3, 4, 5}
 *
 * An entry may have the value 0. A pattern matrix has no values; each of its entries is 1. See
 * Y. Saad, "Iterative Methods for Sparse Linear Systems", 2nd ed., 2003, section 3.4.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_MATRIX_H
#define SPMV_MATRIX_H

#include <spmv/context.h>

SPMV_BEGIN_DECLS

/* A view of a CSR matrix: it refers to arrays of the caller or of a spmv_matrix and copies nothing.
 * The arrays must outlive everything that uses the view. */
typedef struct spmv_csr {
    int64_t rows, cols, nnz; /* sizes, and the number of stored entries; cols < 2^31 */
    const void *row_ptr;     /* rows + 1 non-decreasing offsets; the first is 0, the last nnz */
    int row_ptr_bits;        /* bits of an offset, signed: 32 or 64 */
    const int32_t *col;      /* nnz columns, 0 <= col < cols. Products take any order in a row and
                                repeated columns. */
    const void *val;         /* nnz values; NULL: a pattern matrix */
    spmv_type type;          /* of val; ignored if val is NULL */
    spmv_memory memory;      /* where the three arrays are */
} spmv_csr;

/* A CSR matrix that owns its arrays, in host memory or in a context's memory. Offsets have 64 bits.
 * In each row the columns ascend and none occurs twice, if the function that made it does not say
 * otherwise. Matrices that are read, generated or made from coordinates are in host memory. A
 * matrix computed from matrices lies where these lie. */
typedef struct spmv_matrix spmv_matrix;

/* Writes the view of a matrix.
 *
 *   *view  its arrays, valid until the matrix is destroyed; view->memory says where they are. For a
 *          NULL matrix view->memory is SPMV_MEMORY_HOST and all other members are 0; every function
 *          refuses such a view. NULL: nothing is written.
 *
 * A matrix in a context's memory must be destroyed before the context. */
SPMV_API void spmv_matrix_view(const spmv_matrix *matrix, spmv_csr *view);
SPMV_API void spmv_matrix_destroy(spmv_matrix *matrix);

/* B = A, in host memory or in the context's memory.
 *
 *   a   in host memory or in the context's memory; columns in any order, which B keeps
 *   to  the memory of B
 *   *b  the copy; NULL after an error
 *
 * Waits if one of the two memories is host memory.
 * Errors: those of spmv_matrix_check for arrays that the host can read, SPMV_ERROR_ARGUMENT (also:
 * an unknown memory), SPMV_ERROR_MEMORY, SPMV_ERROR_DEVICE. */
SPMV_API spmv_status spmv_matrix_copy(spmv_context *ctx, const spmv_csr *a, spmv_memory to, spmv_matrix **b);

/* Makes a CSR matrix from coordinate entries: A[host_row[k], host_col[k]] += host_val[k] for
 * k = 0, ..., nnz - 1. Columns are sorted. Explicit zeros stay.
 *
 *   host_row, host_col  nnz indices each, counted from 0, in any order
 *   host_val            nnz values; NULL: a pattern, where entries at the same place become one
 *   type                of host_val and of the matrix
 *   *matrix             the matrix; NULL after an error
 *   *duplicates         the number of entries that were added to an earlier one; may be NULL
 *
 * Errors: SPMV_ERROR_ARGUMENT, SPMV_ERROR_SIZE (an index out of range; the message names the
 * entry), SPMV_ERROR_LIMIT (cols >= 2^31), SPMV_ERROR_TYPE, SPMV_ERROR_MEMORY.
 * Determinism: entries at the same place are added in the order given. The result does not depend
 * on the number of threads. */
SPMV_API spmv_status spmv_matrix_from_coo(spmv_context *ctx, int64_t rows, int64_t cols, int64_t nnz,
                                          const int64_t *host_row, const int32_t *host_col, const void *host_val,
                                          spmv_type type, spmv_matrix **matrix, int64_t *duplicates);

/* B = transpose(A).
 *
 *   a   in host memory or in the context's memory; columns in any order. On cuda the caller
 *       guarantees the arrays in the context's memory; val must be aligned to its type there.
 *   *b  the transpose, in the same memory; NULL after an error. Entries of one column of A keep the
 *       order of their rows (a stable sort), so columns ascend in each row of B.
 *
 * Errors: those of spmv_matrix_check, SPMV_ERROR_LIMIT (also: rows >= 2^31), SPMV_ERROR_MEMORY.
 * Determinism: the result depends neither on the backend nor on the number of threads.
 * Source: F. G. Gustavson, "Two fast algorithms for sparse matrices: multiplication and permuted
 * transposition", ACM TOMS 4(3), 1978. */
SPMV_API spmv_status spmv_matrix_transpose(spmv_context *ctx, const spmv_csr *a, spmv_matrix **b);

/* diagonal[i] = a_ii for 0 <= i < min(rows, cols), 0 where A has no such entry.
 *
 *   a         in host memory or in the context's memory; columns in any order. If a column occurs
 *             more than once in its row, its first entry counts. On cuda the caller guarantees the
 *             arrays in the context's memory.
 *   diagonal  min(rows, cols) elements of the type of A (f64 for a pattern), in the memory of A
 *
 * Queued. Aliasing: no overlap.
 * Errors: those of spmv_matrix_check, SPMV_ERROR_DEVICE.
 * Determinism: the result depends neither on the backend nor on the number of threads. */
SPMV_API spmv_status spmv_matrix_diagonal(spmv_context *ctx, const spmv_csr *a, void *diagonal);

/* sums[i] = the sum of the values in row i, 0 <= i < rows; 0 for an empty row.
 *
 *   a     in host memory or in the context's memory; columns in any order. On cuda the caller
 *         guarantees the arrays in the context's memory.
 *   sums  rows elements of the type of A (f64 for a pattern), in the memory of A
 *
 * Queued. Aliasing: no overlap.
 * Errors: those of spmv_matrix_check, SPMV_ERROR_DEVICE.
 * Determinism: values are added one after the other, from the first entry of the row to the last,
 * and each sum is rounded in the type. The result depends neither on the backend nor on the number
 * of threads. */
SPMV_API spmv_status spmv_matrix_row_sums(spmv_context *ctx, const spmv_csr *a, void *sums);

/* Checks that a is a valid CSR matrix as described above, in O(rows + nnz) time. Columns may be in
 * any order and may repeat.
 *
 *   a  in host memory or in the context's memory
 *
 * Waits if the host cannot read the arrays. If they are wrong, they are then copied to host memory
 * for the message.
 * Errors: SPMV_ERROR_SIZE (the arrays are wrong; the message names the first wrong row or entry),
 * SPMV_ERROR_ARGUMENT, SPMV_ERROR_LIMIT, SPMV_ERROR_TYPE (a member of the view is wrong). */
SPMV_API spmv_status spmv_matrix_check(spmv_context *ctx, const spmv_csr *a);

enum { SPMV_HISTOGRAM_BINS = 34 };

/* Statistics of a matrix. Means over no rows or no entries are 0. */
typedef struct spmv_statistics {
    size_t size; /* of this struct in bytes */
    int64_t rows, cols, nnz;
    int64_t row_min, row_max;       /* entries in the shortest and in the longest row */
    double row_mean, row_std;       /* entries per row: mean, population standard deviation */
    int64_t empty_rows, empty_cols; /* rows and columns without an entry */
    int64_t max_row;                /* the first of the longest rows; -1 without rows */
    int64_t bandwidth;              /* largest |row - column| of an entry */
    double row_extent;              /* mean of (last - first column + 1) over non-empty rows */
    int64_t diagonal;               /* entries on the diagonal */
    int64_t explicit_zeros;         /* entries with the value 0; 0 for a pattern */
    int64_t not_finite;             /* entries with an infinite or NaN value */

    /* [0]: the number of empty rows. [b]: rows with 2^(b-1) <= length < 2^b entries. The last bin
     * also counts all longer rows. */
    int64_t histogram[SPMV_HISTOGRAM_BINS];

    int square;            /* 1: rows == cols; if 0, the following flags are 0 too */
    int pattern_symmetric; /* 1: entry (j, i) exists wherever entry (i, j) exists */
    int symmetric;         /* 1: a_ij == a_ji exactly */
    int skew_symmetric;    /* 1: a_ij == -a_ji exactly */

    /* How well products with the matrix use caches.
     *   bw_frac               mean over all rows of (last - first column + 1) / cols; an empty row
     *                         counts as 0
     *   avg_neighbours        mean over all entries, with column c, of how many of the columns
     *                         c - 1 and c + 1 their row has as well: 0 to 2
     *   cross_row_similarity  mean over the non-empty rows of the share of their columns c for
     *                         which the next non-empty row has c - 1, c or c + 1; the last
     *                         non-empty row counts as 0
     * P. Mpakos et al., "Feature-based SpMV performance analysis on contemporary devices",
     * IPDPS 2023. */
    double bw_frac, avg_neighbours, cross_row_similarity;

    int hermitian; /* 1: a_ij == conjugate of a_ji exactly; same as symmetric for real values */
} spmv_statistics;

/* Computes the statistics of a matrix. The symmetry flags compare all entries with the transpose.
 *
 *   a           in host memory; columns ascend in each row
 *   statistics  the result
 *   size        sizeof(spmv_statistics)
 *
 * Errors: those of spmv_matrix_check (columns that do not ascend: SPMV_ERROR_SIZE), and
 * SPMV_ERROR_MEMORY.
 * Determinism: the result does not depend on the number of threads. */
SPMV_API spmv_status spmv_matrix_statistics(spmv_context *ctx, const spmv_csr *a, spmv_statistics *statistics,
                                            size_t size);

/* Generates a matrix from a SPEC, a text of the form NAME:NUMBERS[,seed=N][,values=KIND].
 *
 *   SPEC                          matrix
 *   ----------------------------  -------------------------------------------------------------
 *   poisson2d:N                   N^2 rows: 5-point Laplacian on an N x N grid, 4 on the diagonal
 *                                 and -1 for each neighbour
 *   poisson3d:N                   N^3 rows: 7-point Laplacian on an N x N x N grid, 6 on the
 *                                 diagonal and -1 for each neighbour
 *   stencil27:N                   N^3 rows: the operator of HPCG, 26 on the diagonal and -1 for
 *                                 each of up to 26 neighbours
 *   diffusion2d:N,CONTRAST[,ANISO]
 *                                 N^2 rows: diffusion by finite volumes on N x N cells, with random
 *                                 coefficients from 1 to CONTRAST*, faces in x direction times
 *                                 ANISO* (default 1)
 *   diffusion3d:N,CONTRAST[,ANISO]
 *                                 N^3 rows: the same on N x N x N cells
 *   convdiff2d:N,PECLET           N^2 rows: convection-diffusion by upwind differences on an N x N
 *                                 grid, cell Peclet number PECLET* (from 0) along x; not symmetric
 *   convdiff3d:N,PECLET           N^3 rows: the same on an N x N x N grid
 *   interpolation3d:N,K           N^3 rows, a column for each aggregate of K x K x K points: the
 *                                 smoothed interpolation to the grid of poisson3d:N
 *   elasticity2d:N[,NU]           2 N^2 rows: elasticity in a plane by finite elements on an N x N
 *                                 grid of nodes, clamped on one side; Poisson's ratio NU* (default
 *                                 0.3)
 *   elasticity3d:N[,NU]           3 N^3 rows: the same in space
 *   rigid2d:N, rigid3d:N          2 N^2 x 3 and 3 N^3 x 6: the rigid body modes of elasticity2d:N
 *                                 and elasticity3d:N
 *   diagonal:ROWS                 the diagonal only
 *   banded:ROWS,HALF              square: all entries with |i - j| <= HALF; HALF may be 0
 *   dense:ROWS,COLS               all entries
 *   arrow:ROWS[,LEN[,OTHERS]]     square: row 0 and column 0 have LEN entries (default ROWS), each
 *                                 other row has OTHERS (default 2) around the diagonal; in all
 *                                 LEN + (ROWS - 1) OTHERS
 *   uniform:ROWS,COLS,MEAN        each entry with the same probability, on average MEAN* per row
 *   longrows:ROWS,COLS,LEN        LEN random columns in each row
 *   empty:ROWS,SHARE[,MEAN]       square: a share SHARE* (0 to 1) of the rows is empty; the others
 *                                 have one or more random columns, on average MEAN* (default 8)
 *   powerlaw:ROWS,MEAN,ALPHA,MAX  square: row lengths with density x^-ALPHA*, on average MEAN*, the
 *                                 longest MAX; a few columns have many entries
 *   rmat:SCALE,EDGES              the graph of Graph500: 2^SCALE rows, EDGES 2^SCALE random edges,
 *                                 repeated edges merged
 *   fem:NODES,BLOCK,NEIGHBOURS    NODES BLOCK rows, symmetric pattern: a dense BLOCK x BLOCK block
 *                                 for each of about NEIGHBOURS* nodes nearby, itself included
 *   twin:NAME                     the statistics of a known matrix, such as twin:ldoor
 *   twin:rows=R,nnz=N[,OPTION=X]  the statistics given. Options: cols, std, max, bw_frac,
 *                                 avg_neighbours, cross_row_similarity
 *
 * Numbers are integers from 1. Those marked * may be decimal numbers such as 2.5. docs/formats.md
 * defines each SPEC in full and lists the names of twins. Two options may follow, in any order:
 *
 *   seed=N            seed of the random numbers; default 1
 *   values=own        default: the coefficients of matrices on grids (poisson2d to
 *                     rigid3d in the table), else random
 *   values=random     0.5 <= |value| < 1 with random signs
 *   values=constant   all values 1
 *
 * The operators on grids have Dirichlet boundaries and natural ordering (Saad 2003, section 2.2).
 * With their own values they are symmetric positive definite, except convdiff2d and convdiff3d.
 *
 *   type     SPMV_F64 or SPMV_TYPE_DEFAULT: f64. SPMV_F32: the f64 values rounded. SPMV_C128,
 *            SPMV_C64: the same values with imaginary parts of 0.
 *   *matrix  the matrix; NULL after an error
 *
 * Errors: SPMV_ERROR_SPEC (unknown or malformed SPEC; the message shows the form), SPMV_ERROR_TYPE,
 * SPMV_ERROR_MEMORY, SPMV_ERROR_LIMIT (more than 2^31 - 1 columns, numbers or sizes beyond 64
 * bits), SPMV_ERROR_ARGUMENT (NULL).
 * Determinism: the same SPEC gives the same bits, for any number of threads. */
SPMV_API spmv_status spmv_matrix_generate(spmv_context *ctx, const char *spec, spmv_type type, spmv_matrix **matrix);

/* What is known about a matrix before memory for it is allocated. */
typedef struct spmv_matrix_size {
    size_t size;          /* of this struct in bytes, as the library knows it */
    int64_t rows, cols;   /* sizes */
    int64_t entries;      /* upper bound of the stored entries, mirrored ones included */
    spmv_type type;       /* of the values */
    int pattern;          /* 1: no values */
    int64_t matrix_bytes; /* of its arrays; 0: they are mapped from a file and take no memory */
    int64_t load_bytes;   /* the most memory that reading or generating takes, arrays included */
} spmv_matrix_size;

/* A callback that returns how much memory, in bytes, the caller's whole job takes at most with such
 * a matrix: load_bytes and matrix_bytes included, INT64_MAX for more than 63 bits. The library
 * calls it before it allocates memory, in the thread that called the library. */
typedef int64_t (*spmv_job_bytes_fn)(const spmv_matrix_size *matrix, void *user);

typedef struct spmv_generate_options {
    size_t size;    /* sizeof(spmv_generate_options), set by spmv_generate_options_init */
    spmv_type type; /* as for spmv_matrix_generate; default SPMV_TYPE_DEFAULT */

    /* Memory limit in bytes. A job that needs more fails with SPMV_ERROR_MEMORY. Default 0: the
     * physical memory of the machine. */
    int64_t max_bytes;

    /* Returns the bytes to compare with max_bytes. Default NULL: the memory that generating takes
     * (load_bytes). */
    spmv_job_bytes_fn job_bytes;

    void *user; /* passed to job_bytes; default NULL */

    /* With parts > 0: only the rows R part / parts to R (part + 1) / parts - 1 of the R rows of the
     * matrix, 0 <= part < parts, with the columns and values that they have there. Memory is that
     * of these rows, except for rmat, powerlaw, empty and twin, which make the whole matrix first.
     * Default 0: all rows. */
    int part, parts;
} spmv_generate_options;

/* Fills options with the defaults. size: sizeof(spmv_generate_options). */
SPMV_API void spmv_generate_options_init(spmv_generate_options *options, size_t size);

/* Generates a matrix as spmv_matrix_generate does, within a memory limit.
 *
 *   options  NULL means defaults
 *
 * Errors: those of spmv_matrix_generate, and SPMV_ERROR_ARGUMENT (options). */
SPMV_API spmv_status spmv_matrix_generate_within(spmv_context *ctx, const char *spec,
                                                 const spmv_generate_options *options, spmv_matrix **matrix);

/* 1 if the text begins with the name of a generator and a colon ("poisson2d:..."), else 0; 0 for
 * NULL. */
SPMV_API int spmv_spec_known(const char *spec);

/* The form of a generator's SPEC, such as "poisson2d:N". Static storage.
 *
 *   index   0, 1, ...; NULL is returned after the last generator
 *   *about  a few words about the matrix; NULL after the last generator; about may be NULL */
SPMV_API const char *spmv_spec_form(int index, const char **about);

SPMV_END_DECLS

#endif
