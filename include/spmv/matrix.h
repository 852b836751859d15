/* Sparse matrices in memory: compressed sparse rows (CSR), conversions, statistics, generated
 * matrices.
 *
 * CSR keeps A row by row: V the values, C their columns, R the row pointers. Row i holds the
 * entries row_ptr[i] <= k < row_ptr[i + 1] with column col[k] and value val[k]. See Y. Saad,
 * "Iterative Methods for Sparse Linear Systems", 2nd ed., section 3.4. Indices count from 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_MATRIX_H
#define SPMV_MATRIX_H

#include <spmv/context.h>

SPMV_BEGIN_DECLS

/* A const view of a CSR matrix, over the caller's arrays or a spmv_matrix's. The arrays must
 * outlive what borrows them.
 */
typedef struct spmv_csr {
    int64_t rows, cols, nnz; /* cols < 2^31 */
    const void *row_ptr;     /* rows + 1 offsets, ascending, row_ptr[0] == 0, row_ptr[rows] ==
                                nnz */
    int row_ptr_bits;        /* 32 or 64, signed */
    const int32_t *col;      /* nnz columns, 0 <= col < cols. Products accept any order and repeated
                                columns. */
    const void *val;         /* nnz values of the type; NULL: a pattern matrix, every entry is 1 */
    spmv_type type;          /* of val; not read when val is NULL */
    spmv_memory memory;      /* where the arrays lie */
} spmv_csr;

/* A matrix that owns its storage: host arrays, columns sorted in each row, no column twice, 64-bit
 * row offsets. */
typedef struct spmv_matrix spmv_matrix;

/* Writes the view of a matrix. *view: valid until the matrix is destroyed; view->memory is
 * SPMV_MEMORY_HOST. For a NULL matrix all other members are 0, a view that every function refuses.
 * A NULL view is ignored. */
SPMV_API void spmv_matrix_view(const spmv_matrix *matrix, spmv_csr *view);
SPMV_API void spmv_matrix_destroy(spmv_matrix *matrix);

/* Makes a matrix from nnz coordinate entries (host_row[k], host_col[k], host_val[k]). Columns come
 * out sorted. Entries at the same place are added in the order given. Explicit zeros are kept.
 *
 * host_row, host_col, host_val: nnz elements in host memory, indices counted from 0, in any order;
 * host_val NULL: a pattern, in which entries at the same place become one. type: of host_val and of
 * the matrix. duplicates: how many entries were added into another; may be NULL. Errors:
 * SPMV_ERROR_ARGUMENT, SPMV_ERROR_SIZE (an index is outside; the sentence names the entry),
 * SPMV_ERROR_LIMIT, SPMV_ERROR_TYPE, SPMV_ERROR_MEMORY. The result does not depend on the number of
 * threads. */
SPMV_API spmv_status spmv_matrix_from_coo(spmv_context *ctx, int64_t rows, int64_t cols, int64_t nnz,
                                          const int64_t *host_row, const int32_t *host_col, const void *host_val,
                                          spmv_type type, spmv_matrix **matrix, int64_t *duplicates);

/* B = transpose(A). a: a valid CSR in host memory. Entries of one column of A keep the order of
 * their rows (a stable counting sort), so columns ascend in each row of B. Errors: as
 * spmv_matrix_check, SPMV_ERROR_MEMORY. The result does not depend on the number of threads. */
SPMV_API spmv_status spmv_matrix_transpose(spmv_context *ctx, const spmv_csr *a, spmv_matrix **b);

/* Checks that a, in host memory, is the CSR described above, in O(rows + nnz). Errors:
 * SPMV_ERROR_SIZE (the sentence names the first wrong row or entry); SPMV_ERROR_ARGUMENT,
 * SPMV_ERROR_LIMIT, SPMV_ERROR_TYPE (the view itself is wrong). */
SPMV_API spmv_status spmv_matrix_check(spmv_context *ctx, const spmv_csr *a);

enum { SPMV_HISTOGRAM_BINS = 34 };

typedef struct spmv_statistics {
    size_t size;
    int64_t rows, cols, nnz;
    int64_t row_min, row_max; /* entries in the shortest and longest row */
    double row_mean, row_std; /* population standard deviation */
    int64_t empty_rows, empty_cols;
    int64_t max_row;        /* a longest row, the first; -1 without rows */
    int64_t bandwidth;      /* max |row - column| over the entries */
    double row_extent;      /* mean over non-empty rows of (last column - first column + 1) */
    int64_t diagonal;       /* entries on the diagonal */
    int64_t explicit_zeros; /* stored entries equal to 0; 0 for a pattern */
    int64_t not_finite;     /* stored entries that are infinite or NaN */
    /* histogram[0]: empty rows; histogram[b]: rows with 2^(b-1) <= length < 2^b; the last bin takes
     * all that is longer */
    int64_t histogram[SPMV_HISTOGRAM_BINS];
    int square;
    int pattern_symmetric; /* A has (j, i) wherever it has (i, j) */
    int symmetric;         /* a_ij == a_ji, exactly */
    int skew_symmetric;    /* a_ij == -a_ji, exactly */
    /* How the pattern treats caches; 0 without entries. bw_frac: mean over all rows of (last column
     * - first column + 1) / cols, 0 for an empty row. avg_neighbours: mean over the entries of how
     * many of the columns c - 1, c + 1 beside theirs are in their row. cross_row_similarity: mean
     * over the rows that are not empty of the share of their columns c with c - 1, c or c + 1 in
     * the next such row; the last counts as 0. */
    double bw_frac, avg_neighbours, cross_row_similarity;
    int hermitian; /* a_ij == conjugate of a_ji, exactly; of real values: symmetric */
} spmv_statistics;

/* Computes the statistics of a matrix. The symmetry flags come from all entries, through a
 * transpose. a: in host memory, columns ascending in each row. size: sizeof(spmv_statistics) as the
 * caller sees it. Errors: as spmv_matrix_check, SPMV_ERROR_MEMORY. The result does not depend on
 * the number of threads. */
SPMV_API spmv_status spmv_matrix_statistics(spmv_context *ctx, const spmv_csr *a, spmv_statistics *statistics,
                                            size_t size);

/* A generated matrix. SPECs, all whose numbers are integers from 1 unless a decimal number such as
 * 2.5 is allowed:
 *   poisson2d:N   the 5-point Laplacian on an N x N grid: 4 on the diagonal, -1 for each neighbour; N^2 rows
 *   poisson3d:N   the 7-point Laplacian on an N x N x N grid: 6 on the diagonal, -1 for each neighbour; N^3 rows
 *   stencil27:N   HPCG's operator on an N x N x N grid: 26 on the diagonal, -1 for up to 26 neighbours; N^3 rows
 *   diagonal:ROWS, banded:ROWS,HALF (every |i - j| <= HALF, which may be 0), dense:ROWS,COLS
 *   arrow:ROWS[,LEN[,OTHERS]]        row 0 and column 0 of LEN entries (standard: ROWS), OTHERS in every other row
 *                                    (standard: 2), around the diagonal; LEN + (ROWS - 1) OTHERS in all
 *   uniform:ROWS,COLS,MEAN           every cell with the same probability, a mean of MEAN (decimal) a row
 *   longrows:ROWS,COLS,LEN           LEN random columns in every row
 *   empty:ROWS,SHARE[,MEAN]          square; a SHARE (decimal, 0 to 1) of the rows is empty; the others have random
 *                                    columns, at least one, in the mean MEAN (decimal, standard: 8)
 *   powerlaw:ROWS,MEAN,ALPHA,MAX     square; row lengths with density x^-ALPHA, the longest MAX, in the mean MEAN
 *                                    (decimals); columns have hubs
 *   rmat:SCALE,EDGES                 the graph of Graph500: 2^SCALE vertices, EDGES 2^SCALE edges drawn, repeated ones
 *                                    merged
 *   fem:NODES,BLOCK,NEIGHBOURS       BLOCK unknowns a node, dense blocks for about NEIGHBOURS (decimal) nodes nearby,
 *                                    the node itself among them; symmetric pattern
 *   twin:NAME     a matrix with the statistics of a known one (twin:ldoor): sizes, row lengths, bandwidth, neighbours,
 *                 similarity of rows; docs/formats.md lists them and says what each figure is
 *   twin:rows=R,nnz=N[,cols=][,std=][,max=][,bw_frac=][,avg_neighbours=][,cross_row_similarity=]    of these statistics
 * docs/formats.md defines them in full. Behind them, in any order: ",seed=N" (standard: 1) and
 * ",values=own", "random" or "constant": the generator's own values (the stencils' coefficients;
 * else random ones), random ones (0.5 <= |value| < 1, full mantissas, random signs), ones. The
 * Poisson matrices and the stencil have Dirichlet boundaries and natural ordering (Saad 2003,
 * section 2.2), and are symmetric positive definite with their own values. type: SPMV_F64 (also for
 * SPMV_TYPE_DEFAULT) or SPMV_F32, the f64 values rounded; complex types: these, and 0. The same
 * SPEC gives the same bits, for any number of threads. Errors: SPMV_ERROR_SPEC, SPMV_ERROR_MEMORY,
 * SPMV_ERROR_LIMIT (a size over 2^31 - 1 columns, numbers or entries over 64 bits). */
SPMV_API spmv_status spmv_matrix_generate(spmv_context *ctx, const char *spec, spmv_type type, spmv_matrix **matrix);

/* What is known of a matrix before memory for it is allocated. */
typedef struct spmv_matrix_size {
    size_t size; /* of this struct, as the library knows it */
    int64_t rows, cols;
    int64_t entries;      /* upper bound: mirrored entries included, before entries of one place are
                        added up */
    spmv_type type;       /* of the values */
    int pattern;          /* 1: it has no values */
    int64_t matrix_bytes; /* of its arrays; 0: they are mapped from a file and take no memory */
    int64_t load_bytes;   /* the most memory that reading or generating takes, arrays included */
} spmv_matrix_size;

/* A callback that returns the most memory, in bytes, that the caller's whole job takes with such a
 * matrix, load_bytes and matrix_bytes included; INT64_MAX for more. The library calls it before it
 * allocates memory, from the thread that made the call. */
typedef int64_t (*spmv_job_bytes_fn)(const spmv_matrix_size *matrix, void *user);

typedef struct spmv_generate_options {
    size_t size;
    spmv_type type;              /* as for spmv_matrix_generate; default SPMV_TYPE_DEFAULT */
    int64_t max_bytes;           /* refuse (SPMV_ERROR_MEMORY) what needs more memory; default 0: the machine's
                          physical memory */
    spmv_job_bytes_fn job_bytes; /* the bytes to compare with max_bytes; default NULL: load_bytes */
    void *user;                  /* passed to job_bytes */
} spmv_generate_options;

/* Fills options with the defaults. size: sizeof(spmv_generate_options) as the caller sees it. */
SPMV_API void spmv_generate_options_init(spmv_generate_options *options, size_t size);

/* Generates a matrix as spmv_matrix_generate does, within a limit of memory. options: NULL means
 * defaults. Errors: those of spmv_matrix_generate, and SPMV_ERROR_ARGUMENT (options). */
SPMV_API spmv_status spmv_matrix_generate_within(spmv_context *ctx, const char *spec,
                                                 const spmv_generate_options *options, spmv_matrix **matrix);

/* 1 when the text has the form of a SPEC of a known generator ("poisson2d:..."), else 0; 0 for
 * NULL. */
SPMV_API int spmv_spec_known(const char *spec);

/* The form of the SPEC of generator number index, counted from 0: "poisson2d:N". NULL where index
 * is out of range. *about: a few words on the matrix; about may be NULL. Both texts live as long as
 * the library. */
SPMV_API const char *spmv_spec_form(int index, const char **about);

SPMV_END_DECLS

#endif
