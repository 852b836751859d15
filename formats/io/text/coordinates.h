/* Parses the entries of a coordinate file with all threads and converts them to CSR.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef COORDINATES_H
#define COORDINATES_H

#include "formats/coo/coo_buckets.h"
#include "formats/io/text/findings.h"
#include "formats/matrix_internal.h"

/* Reads the rest of the text as described by header, one entry per line between blank lines and
 * comments, into a matrix. Columns are sorted, the other half of a symmetric matrix is added, and
 * entries at the same position are added in the order of the text. *duplicates: the number of
 * entries added to another one.
 *
 * Warns of numbers that were rounded or are not finite. Errors name line and column. The first
 * error in the text is reported for any number of threads; *matrix is then NULL. type: complex for
 * field complex, else f64 or f32. max_bytes: limit for sorting long rows, or many entries in few
 * rows (SPMV_ERROR_MEMORY). The caller checks that coordinates_bytes fits. */
spmv_status coordinates_read(struct text_source *source, const struct mtx_header *header, spmv_type type,
                             int64_t max_bytes, spmv_matrix **matrix, int64_t *duplicates);

/* What a part of the entries holds, up to its first error. */
struct coordinates_part {
    int64_t lines, entries;
    struct remarks rounded, not_finite;
    int64_t open_line_bytes; /* as in struct text_source */
};

/* Parses into buckets the lines that begin in part number part of parts equal ones of the unread
 * text, which can be read anywhere (text_is_random). source->line: the number of its first line,
 * for messages. entries_before: the number of entries before the part; too many entries are an
 * error. The text stays unread. Errors as coordinates_read, without warnings. */
spmv_status coordinates_parse(struct text_source *source, const struct mtx_header *header, spmv_type type, int part,
                              int parts, int64_t entries_before, struct coo_buckets *buckets,
                              struct coordinates_part *found);

/* SPMV_ERROR_FORMAT, at the end of the text, unless this is the declared number of entries. */
spmv_status coordinates_complete(struct text_source *source, const struct mtx_header *header, int64_t entries);

/* The largest number of entries of the matrix: those of the file and their mirrors. */
int64_t coordinates_most(const struct mtx_header *header);

/* The largest amount of memory that each of several ranks needs to read the entries, the matrix
 * included; INT64_MAX on overflow. Sorting long rows, or many entries in few rows, is not
 * included. */
int64_t coordinates_bytes(const struct text_source *source, const struct mtx_header *header, spmv_type type, int ranks);

#endif
