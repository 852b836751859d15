/* The entries of an array, or numbers one a line, parsed by all threads, in chunks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENTRIES_H
#define ENTRIES_H

#include "coo.h"
#include "findings.h"

struct entries_options {
    spmv_type type;         /* of the values: complex for field complex, else SPMV_F64 or SPMV_F32 */
    int64_t max_bytes;      /* that the entries may take in memory */
    bool dense;             /* keep the values alone, all of them, in order; else those that are not 0, with
                               their places */
    bool number_sign_opens; /* '#' opens a comment too */
};

struct entries {
    int64_t n; /* in the text */
    int row_bits;
    int64_t chunks;
    struct coo_chunk *chunk; /* in the order of the text; indices count from 0 and lie inside; for dense only n and val
                                are set */
    struct remarks rounded, not_finite;
    int64_t bytes; /* of memory that the chunks take */
    int64_t room;
};

/* Reads the rest of the text: entries as header tells, one a line, between blank lines and comments. entries_free in
 * any case. Errors name line and column; the first in the text is reported, whatever the number of threads. */
spmv_status entries_read(struct text_source *source, const struct mtx_header *header,
                         const struct entries_options *options, struct entries *entries);
void entries_free(struct entries *entries);

#endif
