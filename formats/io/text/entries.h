/* Parses with all threads the numbers of an array, or of lines with the same number of values each.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENTRIES_H
#define ENTRIES_H

#include "formats/io/text/arrays.h"
#include "formats/io/text/findings.h"

struct entries_options {
    /* of the numbers: complex for field complex, else SPMV_F64 or SPMV_F32 */
    spmv_type type;
    int64_t max_bytes;      /* limit for the memory of the numbers */
    int64_t per_line;       /* numbers on each line; 0: any number */
    bool number_sign_opens; /* '#' also begins a comment */
};

struct entries {
    int64_t n;    /* numbers read */
    void *values; /* in the order of the text; host_free */
    struct remarks rounded, not_finite;
    struct remarks several; /* lines with more than one number, if per_line is 0 */
};

/* Reads the rest of the text: numbers as described by header, between blank lines and comments.
 * Issues warnings. Call entries_free also after an error. Errors name line and column. The first
 * error in the text is reported for any number of threads. */
spmv_status entries_read(struct text_source *source, const struct mtx_header *header,
                         const struct entries_options *options, struct entries *entries);
void entries_free(struct entries *entries);

#endif
