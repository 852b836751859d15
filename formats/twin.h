/* Twins: matrices with the statistics of others. What the files of the generator share.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TWIN_H
#define TWIN_H

#include "matrix_internal.h"

/* What is asked for. Bandwidth, neighbours and similarity are those of locality.h. */
struct twin {
    const char *name; /* NULL: from the SPEC's own figures */
    int64_t rows, cols, nnz;
    double std;  /* of the row lengths */
    int64_t max; /* the longest row */
    double bw_frac, avg_neighbours, cross_row_similarity;
};

/* The known ones: data/twins.csv. */
extern const struct twin twin_list[];
extern const int twin_list_count;

/* length[i], i < rows: the entries of row i, 0 <= length <= max; their sum is nnz, the longest is max, their standard
 * deviation is close to std where such lengths exist. Rows of similar length lie together, the more of them the higher
 * the similarity. Expects rows, nnz >= 1, max >= mean, and max in range of std (twin_std_range). */
spmv_status twin_lengths(spmv_context *ctx, const struct twin *twin, uint64_t seed, int64_t *length);

/* The standard deviations that lengths from 0 to max can have, of which one is max, when their sum is nnz: a row of max
 * and the others alike; rows of 0 and of max alone. */
void twin_std_range(const struct twin *twin, double *least, double *most);

/* The columns of a matrix whose row pointers are complete. got: the figures reached, similarity as estimated from a
 * sample of the rows. */
spmv_status twin_columns(spmv_context *ctx, const struct twin *twin, uint64_t seed, spmv_matrix *m, struct twin *got);

#endif
