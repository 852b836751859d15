/* Formats of Fortran as in the heads of Harwell-Boeing files: (26I3), (1P,4D20.12), (10(1X,I7)).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef FORTRAN_H
#define FORTRAN_H

#include <stdbool.h>
#include <stdint.h>

enum { FORTRAN_FIELDS = 256, FORTRAN_LINE = 4096 };

/* The fields of a line. */
struct fortran_format {
    int fields;
    bool integers; /* I; otherwise D, E, F or G */
    struct fortran_field {
        int at, width; /* bytes of the line */
        int digits;    /* after the point, if a number has none */
        int scale;     /* kP: a number without an exponent is divided by 10^k */
    } field[FORTRAN_FIELDS];
};

/* Reads a format; false if it is malformed, mixes integers and other numbers, or exceeds the limits above. */
bool fortran_format_parse(const char *text, const char *end, struct fortran_format *format);

/* Copies the number in [p, end) without blanks to text, with an exponent where the format implies one; text ends with
 * a zero byte. Returns its length; 0: no number, a zero byte in it, or longer than
 * FORTRAN_NUMBER. */
enum { FORTRAN_NUMBER = 64 };
int fortran_number(const char *p, const char *end, const struct fortran_field *field, char text[FORTRAN_NUMBER + 16]);

#endif
