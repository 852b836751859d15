/* The head of a Matrix Market file: banner, comments, size line.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MTX_HEADER_H
#define MTX_HEADER_H

#include <spmv/io.h>

#include "formats/io/text/text_source.h"

struct mtx_header {
    bool array;
    spmv_field field;
    spmv_symmetry symmetry;
    int64_t rows, cols;
    /* number of entries: declared (coordinate) or computed from the sizes (array) */
    int64_t entries;
    int64_t field_column; /* text column of the word in the banner */
    /* line that declares the entries; 0: none, the number of entries is open */
    int64_t size_line;
};

/* Reads the head and checks all that is possible before the entries: sizes fit (columns below
 * 2^31), a symmetric matrix is square, the rest of the text is long enough for the entries. Errors:
 * SPMV_ERROR_FORMAT, SPMV_ERROR_LIMIT, SPMV_ERROR_UNSUPPORTED and those of text_block. */
spmv_status mtx_header_read(struct text_source *source, struct mtx_header *header);

/* The type of the values to be read: asked, or for SPMV_TYPE_DEFAULT c128 or f64 by the field.
 * SPMV_ERROR_TYPE if complex values are requested as real ones. */
spmv_status mtx_header_type(struct text_source *source, const struct mtx_header *header, spmv_type asked,
                            spmv_type *type);

/* Bytes of the shortest entry with its line end: "1 1", "1 1 0", "0"; "0 0" of a complex value. */
int64_t mtx_least_bytes(const struct mtx_header *header);

/* Whether the file stores only the lower half, with the diagonal. */
static inline bool mtx_keeps_diagonal(spmv_symmetry symmetry)
{
    return symmetry == SPMV_SYMMETRY_SYMMETRIC || symmetry == SPMV_SYMMETRY_HERMITIAN;
}

/* The slow path of parse_count: plus signs, leading zeros, errors. */
const char *parse_count_slowly(const char *p, int64_t *value);

/* Parses the digits at p, up to a blank or the line end, into *value >= 0. Returns their end, or
 * NULL if they are malformed or exceed 63 bits. A plus sign and leading zeros are accepted. */
static inline const char *parse_count(const char *p, int64_t *value)
{
    uint64_t n = 0;
    const char *q = p;
    while (*q >= '0' && *q <= '9')
        /* 18 digits cannot overflow; longer numbers are not used here */
        n = 10 * n + (uint64_t)(*q++ - '0');
    if (q == p || q - p > 18 || (!text_is_blank(*q) && *q != '\n'))
        return parse_count_slowly(p, value);
    *value = (int64_t)n;
    return q;
}

/* The reason why parse_count returned NULL: the status, and a sentence that begins with what
 * ("row", "the number of entries"). */
enum { COUNT_SENTENCE = 320 };
spmv_status explain_count(const char *p, const char *what, char sentence[COUNT_SENTENCE]);

#endif
