/* Twins: matrices with the statistics of others. Declarations that the files of the generator
 * share.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TWIN_H
#define TWIN_H

#include "formats/matrix_internal.h"

/* The requested figures. Bandwidth, neighbours and similarity are those of locality.h. */
struct twin {
    const char *name; /* NULL: figures from the SPEC */
    int64_t rows, cols, nnz;
    double std;  /* of the row lengths */
    int64_t max; /* the longest row */
    double bw_frac, avg_neighbours, cross_row_similarity;
};

/* The known twins: data/twins.csv. */
extern const struct twin twin_list[];
extern const int twin_list_count;

/* Sets length[i], i < rows: the number of entries of row i, 0 <= length <= max. Their sum is nnz,
 * the longest is max, and their standard deviation is close to std if such lengths exist. Rows of
 * similar length are adjacent; the higher the similarity, the more of them. Requires rows, nnz >=
 * 1, max >= mean, and max in range of std (twin_std_range). */
spmv_status twin_lengths(spmv_context *ctx, const struct twin *twin, uint64_t seed, int64_t *length);

/* The range of standard deviations that lengths from 0 to max can have, one of them max, with sum
 * nnz. Least: one row of max and the others equal. Most: only rows of 0 and of max. */
void twin_std_range(const struct twin *twin, double *least, double *most);

/* Fills the columns of a matrix whose row pointers are complete. got: the figures reached; the
 * similarity is estimated from a sample of the rows. */
spmv_status twin_columns(spmv_context *ctx, const struct twin *twin, uint64_t seed, spmv_matrix *m, struct twin *got);

#endif
