/* The head of a Matrix Market file: banner, comments, size line.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MTX_HEADER_H
#define MTX_HEADER_H

#include <spmv/io.h>

#include "text_source.h"

struct mtx_header {
    bool array;
    spmv_field field;
    spmv_symmetry symmetry;
    int64_t rows, cols;
    int64_t entries;      /* that follow: declared (coordinate) or computed from the sizes (array) */
    int64_t field_column; /* of the word in the banner */
    int64_t size_line;    /* number of the line that declares them; 0: none does, and as many follow as there are */
};

/* Reads the head and checks what can be checked before the entries are seen: that sizes fit (columns below 2^31),
 * that a symmetric matrix is square, that the rest of the text is long enough for so many entries. Errors:
 * SPMV_ERROR_FORMAT, SPMV_ERROR_LIMIT, SPMV_ERROR_UNSUPPORTED and those of text_block. */
spmv_status mtx_header_read(struct text_source *source, struct mtx_header *header);

/* The type that the values are read as: asked, or for SPMV_TYPE_DEFAULT c128 or f64 by the field. SPMV_ERROR_TYPE for
 * complex values where real ones are asked for. */
spmv_status mtx_header_type(struct text_source *source, const struct mtx_header *header, spmv_type asked,
                            spmv_type *type);

/* The shortest text of one entry with its line end: "1 1", "1 1 0", "0"; "0 0" of a complex value. */
int64_t mtx_least_bytes(const struct mtx_header *header);

/* Whether entries of the lower half alone are stored, and the diagonal with them. */
static inline bool mtx_keeps_diagonal(spmv_symmetry symmetry)
{
    return symmetry == SPMV_SYMMETRY_SYMMETRIC || symmetry == SPMV_SYMMETRY_HERMITIAN;
}

/* parse_count for what its loop does not decide: plus signs, leading zeros, what is no count. */
const char *parse_count_slowly(const char *p, int64_t *value);

/* The digits at p, up to a blank or the line end, as a number >= 0 into *value; where they end. NULL when they are not
 * that, or more than 63 bits. A plus sign and leading zeros are taken. */
static inline const char *parse_count(const char *p, int64_t *value)
{
    uint64_t n = 0;
    const char *q = p;
    while (*q >= '0' && *q <= '9')
        n = 10 * n + (uint64_t)(*q++ - '0'); /* 18 digits cannot overflow; what more do is not used */
    if (q == p || q - p > 18 || (!text_is_blank(*q) && *q != '\n'))
        return parse_count_slowly(p, value);
    *value = (int64_t)n;
    return q;
}

/* Why parse_count gave NULL: the status, and a sentence that begins with what ("row", "the number of entries"). */
enum { COUNT_SENTENCE = 320 };
spmv_status explain_count(const char *p, const char *what, char sentence[COUNT_SENTENCE]);

#endif
