/* The entries of a coordinate file, parsed by all threads, into CSR.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef COORDINATES_H
#define COORDINATES_H

#include "findings.h"
#include "matrix_internal.h"

/* Reads the rest of the text, entries as header tells, one a line, between blank lines and comments, into a matrix:
 * columns sorted, the other half of a symmetric one filled in, entries of one place added in the order of the text.
 * *duplicates: how many were added into another. Warns of numbers that were rounded or are not finite. Errors name line
 * and column; the first in the text is reported, whatever the number of threads; *matrix is then NULL. type: a complex
 * one for field complex, else f64 or f32. max_bytes: SPMV_ERROR_MEMORY where sorting long rows, or many entries
 * in few rows, would take more; coordinates_bytes must fit. */
spmv_status coordinates_read(struct text_source *source, const struct mtx_header *header, spmv_type type,
                             int64_t max_bytes, spmv_matrix **matrix, int64_t *duplicates);

/* The most entries of the matrix: those of the file with their mirrors. */
int64_t coordinates_most(const struct mtx_header *header);

/* The most memory that reading them takes, the matrix included, but for what sorting long rows, or many entries in few
 * rows, takes; INT64_MAX for more. */
int64_t coordinates_bytes(const struct text_source *source, const struct mtx_header *header, spmv_type type);

#endif
