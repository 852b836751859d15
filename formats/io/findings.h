/* What the parser of a tile finds besides entries: lines, the first error, numbers worth a warning. Lines count from
 * where the tile begins until they are reported.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef FINDINGS_H
#define FINDINGS_H

#include "mtx_header.h"
#include "numbers.h"

/* A kind of number worth a warning: how many, and where the first stands. */
struct remarks {
    int64_t count, line, column;
};

enum { FINDING_SENTENCE = 384 };

struct findings {
    int64_t lines, entries; /* that were read without an error */
    struct remarks rounded, not_finite, several;
    bool entry_is_bad;  /* the error is one of an entry: number entries, from 0 */
    spmv_status status; /* of the first error */
    int64_t error_line, error_column;
    char sentence[FINDING_SENTENCE];
};

/* Where a parser stands. */
struct place {
    const char *line_begin;
    int64_t line;
};

void findings_clear(struct findings *findings);

/* Fails the tile at p; NULL for the caller to return. */
#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
const char *
findings_fail(struct findings *findings, const struct place *place, const char *p, spmv_status status,
              const char *format, ...);

/* Why the row or column number at p is none from 1 to limit. */
const char *findings_fail_index(struct findings *findings, const struct place *place, const char *p, const char *what,
                                int64_t limit, int64_t size_line);

/* Why there is no value at p. */
const char *findings_fail_value(struct findings *findings, const struct place *place, const char *p,
                                enum number_result result, spmv_field field, spmv_type type);

/* Text at p behind the entry on its line. */
const char *findings_fail_extra(struct findings *findings, const struct place *place, const char *p,
                                const struct mtx_header *header);

/* The line at p comes after the last entry that was declared. */
const char *findings_fail_excess(struct findings *findings, const struct place *place, const char *p,
                                 const struct mtx_header *header);

/* A complex value has no second number at p. */
const char *findings_fail_part(struct findings *findings, const struct place *place, const char *p);

/* The number at p, on the diagonal of a skew-symmetric or hermitian matrix, cannot stand there. row: from 0. */
const char *findings_fail_diagonal(struct findings *findings, const struct place *place, const char *p,
                                   spmv_symmetry symmetry, int64_t row);

/* The number at p, in a block or tile of a text, into *value; the byte behind it, or NULL when it fails the tile. */
const char *findings_value(struct findings *findings, const struct place *place, const char *p, const char *end,
                           spmv_field field, spmv_type type, void *value);

/* A line of an array has another number, at p. */
void findings_several(struct findings *findings, const struct place *place, const char *p);

/* The findings of the next tile, whose first line is line, are added: remarks and lines. */
void remarks_add(struct remarks *sum, const struct remarks *remarks, int64_t line);

/* One warning a kind of remark; SPMV_CANCELLED when the callback says so. */
spmv_status remarks_warn(struct text_source *source, const struct remarks *rounded, const struct remarks *not_finite,
                         spmv_type type);

/* The same of lines of an array with several numbers. */
spmv_status remarks_warn_several(struct text_source *source, const struct remarks *several);

#endif
