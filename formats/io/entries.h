/* The numbers of an array, or of lines that hold as many each, parsed by all threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENTRIES_H
#define ENTRIES_H

#include "arrays.h"
#include "findings.h"

struct entries_options {
    spmv_type type;         /* of the numbers: complex for field complex, else SPMV_F64 or SPMV_F32 */
    int64_t max_bytes;      /* that the numbers may take in memory */
    int64_t per_line;       /* so many stand on each line; 0: any number does */
    bool number_sign_opens; /* '#' opens a comment too */
};

struct entries {
    int64_t n;    /* in the text */
    void *values; /* in its order; host_free */
    struct remarks rounded, not_finite;
    struct remarks several; /* lines of more than one, where any number may stand on a line */
};

/* Reads the rest of the text: numbers as header tells, between blank lines and comments; warns of what is worth it.
 * entries_free in any case. Errors name line and column; the first in the text is reported, whatever the number of
 * threads. */
spmv_status entries_read(struct text_source *source, const struct mtx_header *header,
                         const struct entries_options *options, struct entries *entries);
void entries_free(struct entries *entries);

#endif
