/* Conversion between numbers and text: correctly rounded input; output with the fewest digits that
 * read back to the same bits. Independent of the locale.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <spmv/types.h>

SPMV_BEGIN_DECLS

enum number_result {
    NUMBER_OK = 0,
    NUMBER_MALFORMED = 1, /* the text is not a number */
    NUMBER_TOO_LARGE = 2  /* its magnitude rounds to infinity */
};

/* A property of a parsed number that may need a warning. */
enum number_remark {
    NUMBER_PLAIN = 0,
    NUMBER_NOT_FINITE = 1, /* inf, infinity or nan */
    NUMBER_ROUNDED = 2     /* an integer that the type cannot represent exactly */
};

/* Reads the decimal number at text into *value (a float or a double: type SPMV_F32 or SPMV_F64),
 * rounded once to nearest even; underflow gives 0. *rest: the first byte after it. Accepts an
 * optional sign, digits with an optional point, an optional exponent after e, E, d or D (Fortran);
 * after digits with a point also an exponent of a sign and three digits without a letter (Fortran);
 * inf, infinity and nan in any case. Reads nothing at or after end. */
enum number_result number_parse(const char *text, const char *end, spmv_type type, void *value, const char **rest,
                                enum number_remark *remark);

/* As number_parse, for an integer: an optional sign and any number of digits. */
enum number_result number_parse_integer(const char *text, const char *end, spmv_type type, void *value,
                                        const char **rest, enum number_remark *remark);

/* Enough for any number_write. */
enum { NUMBER_TEXT = 32 };

/* Writes *value (SPMV_F32 or SPMV_F64) in the fewest digits that read back to the same bits, also
 * inf, -inf and nan. No zero byte is added. Returns the first byte after the text. text: room for
 * NUMBER_TEXT bytes. */
char *number_write(char *text, spmv_type type, const void *value);

SPMV_END_DECLS

#endif
