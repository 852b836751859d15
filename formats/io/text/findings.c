/* Findings of the parser of a tile: error messages and remarks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/text/findings.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/reals.h"
#include "formats/io/text/decimal.h"

void findings_clear(struct findings *findings)
{
    memset(findings, 0, offsetof(struct findings, sentence));
    findings->sentence[0] = '\0';
}

const char *findings_fail(struct findings *findings, const struct place *place, const char *p, spmv_status status,
                          const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(findings->sentence, sizeof findings->sentence, format, arguments);
    va_end(arguments);
    findings->status = status;
    findings->error_line = place->line;
    findings->error_column = p - place->line_begin + 1;
    return NULL;
}

const char *findings_fail_index(struct findings *findings, const struct place *place, const char *p, const char *what,
                                int64_t limit, int64_t size_line)
{
    int64_t index = 0;
    if (parse_count(p, &index) == NULL) {
        char sentence[COUNT_SENTENCE];
        const spmv_status why = explain_count(p, what, sentence);
        return findings_fail(findings, place, p, why, "%s", sentence);
    }
    if (index == 0)
        return findings_fail(findings, place, p, SPMV_ERROR_FORMAT, "%s 0: rows and columns count from 1", what);
    return findings_fail(findings, place, p, SPMV_ERROR_FORMAT, "%s %lld exceeds the %lld %s%s declared on line %lld",
                         what, (long long)index, (long long)limit, what, limit == 1 ? "" : "s", (long long)size_line);
}

const char *findings_fail_value(struct findings *findings, const struct place *place, const char *p,
                                enum number_result result, spmv_field field, spmv_type type)
{
    char shown[TEXT_SHOWN];
    const char *const end = text_token_end(p);
    if (p == end)
        return findings_fail(findings, place, p, SPMV_ERROR_FORMAT, "the value is missing");
    text_show(p, end, shown);
    if (result == NUMBER_TOO_LARGE)
        return findings_fail(findings, place, p, SPMV_ERROR_LIMIT, "\"%s\" is too large for %s", shown,
                             spmv_type_name(type));
    if (field == SPMV_FIELD_INTEGER)
        return findings_fail(findings, place, p, SPMV_ERROR_FORMAT,
                             "\"%s\" is not an integer, as required by the banner", shown);
    return findings_fail(
        findings, place, p, SPMV_ERROR_FORMAT, "\"%s\" is not a number%s", shown,
        memchr(p, ',', (size_t)(end - p)) != NULL ? "; numbers have a decimal point, and blanks separate them" : "");
}

const char *findings_fail_extra(struct findings *findings, const struct place *place, const char *p,
                                const struct mtx_header *header)
{
    char shown[TEXT_SHOWN];
    if (header->array && header->cols > 1)
        return findings_fail(findings, place, p, SPMV_ERROR_FORMAT,
                             "extra text \"%s\" after the %lld numbers of a line: the first line has only as many",
                             text_show(p, text_token_end(p), shown), (long long)header->cols);
    return findings_fail(
        findings, place, p, SPMV_ERROR_FORMAT, "extra text \"%s\" after the %s", text_show(p, text_token_end(p), shown),
        header->array && header->field == SPMV_FIELD_COMPLEX ? "number (one per line, real and imaginary part)"
        : header->array                                      ? "number (one per line)"
        : header->field == SPMV_FIELD_COMPLEX                ? "entry (row, column, real and imaginary part)"
        : header->field != SPMV_FIELD_PATTERN                ? "entry (row, column and value)"
                                                             : "entry (row and column of a pattern)");
}

/* The name of an array of this symmetry. */
static const char *array_name(spmv_symmetry symmetry)
{
    return symmetry == SPMV_SYMMETRY_SKEW        ? "a skew-symmetric"
           : symmetry == SPMV_SYMMETRY_SYMMETRIC ? "a symmetric"
           : symmetry == SPMV_SYMMETRY_HERMITIAN ? "a hermitian"
                                                 : "an";
}

/* Which of its numbers such an array has. */
static const char *array_holds(spmv_symmetry symmetry)
{
    return symmetry == SPMV_SYMMETRY_GENERAL ? ""
           : symmetry == SPMV_SYMMETRY_SKEW  ? ": a skew-symmetric array has no diagonal, and only the lower triangle"
                                             : ": it has only the lower triangle, with the diagonal";
}

const char *findings_fail_excess(struct findings *findings, const struct place *place, const char *p,
                                 const struct mtx_header *header)
{
    char shown[TEXT_SHOWN];
    const bool number = (*p >= '0' && *p <= '9') || *p == '-' || *p == '+' || *p == '.';
    if (number && header->array)
        return findings_fail(findings, place, p, SPMV_ERROR_FORMAT,
                             "more numbers than the %lld of %s array of %lld x %lld%s", (long long)header->entries,
                             array_name(header->symmetry), (long long)header->rows, (long long)header->cols,
                             array_holds(header->symmetry));
    if (number)
        return findings_fail(findings, place, p, SPMV_ERROR_FORMAT, "more entries than the %lld declared on line %lld",
                             (long long)header->entries, (long long)header->size_line);
    return findings_fail(findings, place, p, SPMV_ERROR_FORMAT,
                         "trailing text \"%s\" after the %lld %s declared on line %lld",
                         text_show(p, text_token_end(p), shown), (long long)header->entries,
                         header->entries == 1 ? "entry" : "entries", (long long)header->size_line);
}

static void remark(struct remarks *remarks, const struct place *place, const char *p)
{
    if (remarks->count++ == 0) {
        remarks->line = place->line;
        remarks->column = p - place->line_begin + 1;
    }
}

/* Parses a real number; NULL: it needs the general parser. */
static const char *parse_usual(const char *p, spmv_type type, void *value)
{
    switch ((int)type) {
#define CASE(NAME, name, T)                                                                                            \
    case SPMV_##NAME:                                                                                                  \
        return decimal_parse_##name(p, decimal_stops(p), value);
        REAL_LIST(CASE)
#undef CASE
    default:
        return NULL;
    }
}

const char *findings_value(struct findings *findings, const struct place *place, const char *p, const char *end,
                           spmv_field field, spmv_type type, void *value)
{
    const char *rest = field == SPMV_FIELD_INTEGER ? NULL : parse_usual(p, type, value);
    enum number_remark seen = NUMBER_PLAIN;
    if (rest != NULL && (*rest == '\n' || text_is_blank(*rest)))
        return rest;
    enum number_result result = field == SPMV_FIELD_INTEGER ? number_parse_integer(p, end, type, value, &rest, &seen)
                                                            : number_parse(p, end, type, value, &rest, &seen);
    if (result == NUMBER_OK && !text_is_blank(*rest) && *rest != '\n')
        result = NUMBER_MALFORMED;
    if (result != NUMBER_OK)
        return findings_fail_value(findings, place, p, result, field, type);
    if (seen == NUMBER_ROUNDED)
        remark(&findings->rounded, place, p);
    else if (seen == NUMBER_NOT_FINITE)
        remark(&findings->not_finite, place, p);
    return rest;
}

void findings_several(struct findings *findings, const struct place *place, const char *p)
{
    remark(&findings->several, place, p);
}

const char *findings_fail_part(struct findings *findings, const struct place *place, const char *p)
{
    return findings_fail(findings, place, p, SPMV_ERROR_FORMAT, "the imaginary part is missing");
}

const char *findings_fail_diagonal(struct findings *findings, const struct place *place, const char *p,
                                   spmv_symmetry symmetry, int64_t row)
{
    if (symmetry == SPMV_SYMMETRY_HERMITIAN)
        return findings_fail(findings, place, p, SPMV_ERROR_FORMAT,
                             "the diagonal of a hermitian matrix is real; the imaginary part of (%lld, %lld) is not 0",
                             (long long)row + 1, (long long)row + 1);
    return findings_fail(findings, place, p, SPMV_ERROR_FORMAT,
                         "the diagonal of a skew-symmetric matrix is 0; here (%lld, %lld) is not", (long long)row + 1,
                         (long long)row + 1);
}

void remarks_add(struct remarks *sum, const struct remarks *remarks, int64_t line)
{
    if (sum->count == 0 && remarks->count > 0) {
        *sum = *remarks;
        sum->line += line;
    } else {
        sum->count += remarks->count;
    }
}

static spmv_status warn(struct text_source *source, const struct remarks *remarks, const char *what, const char *type)
{
    if (remarks->count == 0)
        return SPMV_OK;
    return text_warn(source, ":%lld:%lld: %s%s (%lld such numbers in the file)", (long long)remarks->line,
                     (long long)remarks->column, what, type, (long long)remarks->count);
}

spmv_status remarks_warn(struct text_source *source, const struct remarks *rounded, const struct remarks *not_finite,
                         spmv_type type)
{
    const spmv_status st =
        warn(source, rounded, "this integer was rounded: not representable in ", spmv_type_name(type_part(type)));
    return st != SPMV_OK ? st : warn(source, not_finite, "this value is not finite", "");
}

spmv_status remarks_warn_several(struct text_source *source, const struct remarks *several)
{
    if (several->count == 0)
        return SPMV_OK;
    return text_warn(source,
                     ":%lld:%lld: several numbers on a line of an array (%lld such lines); they were taken in "
                     "the standard's order, column by column",
                     (long long)several->line, (long long)several->column, (long long)several->count);
}
