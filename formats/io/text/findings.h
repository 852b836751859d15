/* What the parser of a tile finds besides entries: number of lines, the first error, numbers that
 * need a warning. Line numbers count from the beginning of the tile until they are reported.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef FINDINGS_H
#define FINDINGS_H

#include "formats/io/mtx/mtx_header.h"
#include "formats/io/text/numbers.h"

/* A kind of number that needs a warning: how many there are, and the position of the first. */
struct remarks {
    int64_t count, line, column;
};

enum { FINDING_SENTENCE = 384 };

struct findings {
    int64_t lines, entries; /* read without an error */
    struct remarks rounded, not_finite, several;
    bool entry_is_bad;  /* the error is in entry number entries (from 0) */
    spmv_status status; /* of the first error */
    int64_t error_line, error_column;
    char sentence[FINDING_SENTENCE];
};

/* Position of a parser. */
struct place {
    const char *line_begin;
    int64_t line;
};

void findings_clear(struct findings *findings);

/* Records an error at p. Returns NULL, for the caller to return. */
#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
const char *
findings_fail(struct findings *findings, const struct place *place, const char *p, spmv_status status,
              const char *format, ...);

/* Fails: the row or column number at p is not from 1 to limit. */
const char *findings_fail_index(struct findings *findings, const struct place *place, const char *p, const char *what,
                                int64_t limit, int64_t size_line);

/* Fails: there is no valid value at p. */
const char *findings_fail_value(struct findings *findings, const struct place *place, const char *p,
                                enum number_result result, spmv_field field, spmv_type type);

/* Fails: extra text at p after the entry of a line. */
const char *findings_fail_extra(struct findings *findings, const struct place *place, const char *p,
                                const struct mtx_header *header);

/* Fails: the line at p follows the last declared entry. */
const char *findings_fail_excess(struct findings *findings, const struct place *place, const char *p,
                                 const struct mtx_header *header);

/* Fails: a complex value has no second number at p. */
const char *findings_fail_part(struct findings *findings, const struct place *place, const char *p);

/* Fails: the number at p is not allowed on the diagonal of a skew-symmetric or hermitian matrix.
 * row: from 0. */
const char *findings_fail_diagonal(struct findings *findings, const struct place *place, const char *p,
                                   spmv_symmetry symmetry, int64_t row);

/* Parses the number at p, inside a block or tile, into *value. Returns the byte after it, or NULL
 * after an error. */
const char *findings_value(struct findings *findings, const struct place *place, const char *p, const char *end,
                           spmv_field field, spmv_type type, void *value);

/* Records that a line of an array has another number, at p. */
void findings_several(struct findings *findings, const struct place *place, const char *p);

/* Adds the remarks of the next tile, whose first line is line. */
void remarks_add(struct remarks *sum, const struct remarks *remarks, int64_t line);

/* Issues one warning per kind of remark. SPMV_CANCELLED if the callback cancels. */
spmv_status remarks_warn(struct text_source *source, const struct remarks *rounded, const struct remarks *not_finite,
                         spmv_type type);

/* As remarks_warn, for lines of an array with several numbers. */
spmv_status remarks_warn_several(struct text_source *source, const struct remarks *several);

#endif
