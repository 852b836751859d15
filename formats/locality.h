/* Three figures of a pattern that determine how well products use caches.
 *
 * The features are those of P. Mpakos, D. Galanopoulos, P. Anastasiadis, N. Papadopoulou, N.
 * Koziris, G. Goumas, "Feature-based SpMV performance analysis on contemporary devices", IPDPS
 * 2023, as their program measures them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOCALITY_H
#define LOCALITY_H

#include "formats/matrix_internal.h"

struct matrix_locality {
    /* mean over all rows of (last column - first column + 1) / cols; an empty row counts as 0 */
    double bw_frac;
    /* mean over the entries of how many of the columns c - 1 and c + 1 their row has */
    double avg_neighbours;
    /* mean over the non-empty rows of the share of their columns c for which the next non-empty row
     * has one of c - 1, c, c + 1; the last row counts as 0 */
    double cross_row_similarity;
};

/* a: host memory, columns sorted and unique in each row (not checked). All figures are 0 for a
 * matrix without entries. The same bits for any number of threads. */
void matrix_locality(spmv_context *ctx, const spmv_csr *a, struct matrix_locality *locality);

/* The number of the n columns (ascending) that are within 1 of one of the m other columns
 * (ascending). */
int64_t locality_matches(const int32_t *col, int64_t n, const int32_t *other, int64_t m);

#endif
