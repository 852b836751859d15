/* Formats of Fortran: see fortran.h. The grammar is that of the Fortran standard for input, as far as numbers of a
 * file need it: repeat counts, nested parentheses, nX, kP, Iw.m, Fw.d, Ew.dEe, Dw.d, Gw.d, ESw.d, ENw.d.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/exchange/fortran.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 4 };

struct parser {
    const char *p, *end;
    struct fortran_format *format;
    int at;    /* the next byte of a line */
    int scale; /* of kP */
    bool any;
};

static char next(struct parser *f)
{
    while (f->p < f->end && (*f->p == ' ' || *f->p == '\t'))
        f->p++;
    const char c = f->p < f->end ? *f->p : '\0';
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool take(struct parser *f, char c)
{
    const bool found = next(f) == c;
    f->p += found;
    return found;
}

/* Digits at p; otherwise `absent`. Values stop at FORTRAN_LINE, which is more than any part may have. */
static int take_count(struct parser *f, int absent)
{
    int n = 0;
    if (next(f) < '0' || next(f) > '9')
        return absent;
    for (; next(f) >= '0' && next(f) <= '9'; f->p++)
        n = n > FORTRAN_LINE ? n : 10 * n + (*f->p - '0');
    return n;
}

static bool add_fields(struct parser *f, int count, bool integers, int width, int digits)
{
    struct fortran_format *const to = f->format;
    if (width < 1 || count < 1 || (f->any && to->integers != integers))
        return false;
    to->integers = integers;
    f->any = true;
    for (int i = 0; i < count; i++) {
        if (to->fields == FORTRAN_FIELDS || f->at > FORTRAN_LINE - width)
            return false;
        to->field[to->fields++] = (struct fortran_field){f->at, width, digits, f->scale};
        f->at += width;
    }
    return true;
}

/* One item of a list, after its repeat count. */
static bool parse_field(struct parser *f, int count)
{
    const char letter = next(f);
    if (letter != 'I' && letter != 'D' && letter != 'E' && letter != 'F' && letter != 'G')
        return false;
    f->p++;
    if (letter == 'E' && !take(f, 'S'))
        take(f, 'N');
    const int width = take_count(f, 0);
    const int digits = take(f, '.') ? take_count(f, -1) : 0;
    if (letter != 'I' && take(f, 'E') && take_count(f, -1) < 0)
        return false;
    return digits >= 0 && digits <= FORTRAN_LINE &&
           add_fields(f, count, letter == 'I', width, letter == 'I' ? 0 : digits);
}

static bool parse_list(struct parser *f, int depth)
{
    if (depth == DEPTH || !take(f, '('))
        return false;
    while (!take(f, ')')) {
        if (take(f, ','))
            continue;
        const bool minus = take(f, '-');
        const int count = take_count(f, -1);
        if (take(f, 'P')) {
            if (count < 0 || count > 99)
                return false;
            f->scale = minus ? -count : count;
        } else if (minus) {
            return false;
        } else if (take(f, 'X')) {
            f->at += count < 0 ? 1 : count;
            if (f->at > FORTRAN_LINE)
                return false;
        } else if (next(f) == '(') {
            const char *const list = f->p;
            for (int i = 0; i < (count < 0 ? 1 : count); i++) {
                const int fields = f->format->fields;
                f->p = list;
                if (!parse_list(f, depth + 1) || f->format->fields == fields)
                    return false;
            }
            if (count == 0)
                return false;
        } else if (!parse_field(f, count < 0 ? 1 : count)) {
            return false;
        }
    }
    return true;
}

bool fortran_format_parse(const char *text, const char *end, struct fortran_format *format)
{
    struct parser f = {.p = text, .end = end, .format = format};
    memset(format, 0, sizeof *format);
    return parse_list(&f, 0) && next(&f) == '\0' && format->fields > 0;
}

int fortran_number(const char *p, const char *end, const struct fortran_field *field, char text[FORTRAN_NUMBER + 16])
{
    int n = 0;
    bool point = false, exponent = false, digit = false;
    for (; p < end; p++) {
        if (*p == ' ' || *p == '\t')
            continue;
        if (n == FORTRAN_NUMBER || *p == '\0')
            return 0;
        const bool sign = *p == '+' || *p == '-';
        if (sign && digit && !exponent && text[n - 1] != 'E') { /* 1.0-100 */
            exponent = true;
            text[n++] = 'E';
        }
        const bool letter = *p == 'D' || *p == 'd' || *p == 'E' || *p == 'e' || *p == 'Q' || *p == 'q';
        exponent = exponent || (letter && digit);
        point = point || *p == '.';
        digit = digit || (*p >= '0' && *p <= '9');
        text[n++] = letter && digit ? 'E' : *p;
    }
    text[n] = '\0';
    if (!digit)
        return n;
    char *const letter = exponent ? strchr(text, 'E') : text + n;
    char *rest = letter;
    const long power = exponent ? strtol(letter + 1, &rest, 10) : 0;
    const long shift = (point ? 0 : field->digits) + (exponent ? 0 : field->scale);
    if (shift == 0 || *rest != '\0' || power > FORTRAN_LINE || power < -FORTRAN_LINE)
        return n;
    return (int)(letter - text) + snprintf(letter, 16, "E%ld", power - shift);
}
