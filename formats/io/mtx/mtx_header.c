/* The head of a Matrix Market file. Sizes are read here in 64 bits, because mmio uses int.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/mtx/mtx_header.h"

#include <stdio.h>

#include "formats/io/mtx/mmio_banner.h"

const char *parse_count_slowly(const char *p, int64_t *value)
{
    uint64_t n = 0;
    const char *const first = *p == '+' ? p + 1 : p;
    for (p = first; *p >= '0' && *p <= '9'; p++) {
        const uint64_t digit = (uint64_t)(*p - '0');
        if (n > ((uint64_t)INT64_MAX - digit) / 10)
            return NULL;
        n = 10 * n + digit;
    }
    if (p == first || (!text_is_blank(*p) && *p != '\n'))
        return NULL;
    *value = (int64_t)n;
    return p;
}

spmv_status explain_count(const char *p, const char *what, char sentence[COUNT_SENTENCE])
{
    char shown[TEXT_SHOWN];
    const char *const end = text_token_end(p);
    const bool negative = *p == '-';
    const char *const first = negative || *p == '+' ? p + 1 : p;
    const char *digits = first;
    while (*digits >= '0' && *digits <= '9')
        digits++;
    const bool integer = digits == end && digits > first;
    const char *why = "is not an integer";
    if (p == end)
        snprintf(sentence, COUNT_SENTENCE, "%s is missing", what);
    else if (integer)
        why = negative ? "is negative" : "does not fit in 63 bits";
    if (p != end)
        snprintf(sentence, COUNT_SENTENCE, "%s \"%s\" %s", what, text_show(p, end, shown), why);
    return integer && !negative ? SPMV_ERROR_LIMIT : SPMV_ERROR_FORMAT;
}

/* Keeps the comment [p, end), where end is its line end. */
static spmv_status keep_comment(struct text_source *source, const char *p, const char *end)
{
    if (end > p && end[-1] == '\r')
        end--;
    const int64_t bytes = end - p + 1, whole = source->comments_bytes + bytes;
    if (whole > source->max_comments)
        return context_fail(source->ctx, SPMV_ERROR_MEMORY,
                            "%.480s: its comments need more than the allowed %lld bytes of memory", source->name,
                            (long long)source->max_comments);
    if (whole > source->comments_room) {
        void *more = NULL;
        const int64_t room = 2 * whole;
        const spmv_status st = host_alloc(source->ctx, room, "comments", &more);
        if (st != SPMV_OK)
            return st;
        if (source->comments_bytes > 0)
            memcpy(more, source->comments, (size_t)source->comments_bytes);
        host_free(source->comments);
        source->comments = more;
        source->comments_room = room;
    }
    char *to = source->comments + source->comments_bytes;
    for (; p < end; p++)
        *to++ = *p != '\0' ? *p : ' '; /* comments are returned as a string */
    *to = '\n';
    source->comments_bytes = whole;
    return SPMV_OK;
}

/* Consumes the next line that is neither blank nor a comment. *begin: its first token. */
static spmv_status content_line(struct text_source *source, const char **begin, const char **line,
                                const char **line_end)
{
    spmv_status st = SPMV_OK;
    for (;;) {
        const char *end = NULL;
        st = text_block(source, line, &end);
        if (st != SPMV_OK || *line == NULL)
            return st;
        *line_end = memchr(*line, '\n', (size_t)(end - *line));
        text_skip(source, *line_end + 1, 1);
        *begin = text_skip_blanks(*line);
        if (*begin != *line_end && **begin != '%')
            return SPMV_OK;
        if (*begin != *line_end && source->max_comments > 0)
            TRY(keep_comment(source, *begin, *line_end));
    }
done:
    return st;
}

static void read_code(MM_typecode code, struct mtx_header *header)
{
    header->array = mm_is_array(code) != 0;
    header->field = mm_is_pattern(code)   ? SPMV_FIELD_PATTERN
                    : mm_is_integer(code) ? SPMV_FIELD_INTEGER
                    : mm_is_complex(code) ? SPMV_FIELD_COMPLEX
                                          : SPMV_FIELD_REAL;
    header->symmetry = mm_is_symmetric(code)   ? SPMV_SYMMETRY_SYMMETRIC
                       : mm_is_skew(code)      ? SPMV_SYMMETRY_SKEW
                       : mm_is_hermitian(code) ? SPMV_SYMMETRY_HERMITIAN
                                               : SPMV_SYMMETRY_GENERAL;
    /* The conjugate of a real number is the number itself. */
    if (header->symmetry == SPMV_SYMMETRY_HERMITIAN && header->field != SPMV_FIELD_COMPLEX)
        header->symmetry = SPMV_SYMMETRY_SYMMETRIC;
}

static spmv_status read_banner(struct text_source *source, struct mtx_header *header)
{
    const char *line = NULL, *end = NULL;
    MM_typecode code;
    spmv_status st = text_block(source, &line, &end);
    if (st != SPMV_OK)
        return st;
    if (line == NULL)
        return text_fail(source, SPMV_ERROR_FORMAT, 1, 1, "the file is empty");
    const char *const block_end = end;
    end = memchr(line, '\n', (size_t)(end - line));
    if (!banner_tag(line, end))
        st = text_check_kind(source, line, block_end);
    if (st == SPMV_OK)
        st = banner_read(source, line, end, &code, &header->field_column);
    if (st != SPMV_OK)
        return st;
    text_skip(source, end + 1, 1);
    read_code(code, header);
    return SPMV_OK;
}

/* Reads the numbers of the size line, 3 or 2. columns[k]: text column of number k. */
static spmv_status read_sizes(struct text_source *source, int numbers, int64_t sizes[3], int64_t columns[3])
{
    static const char *const names[3] = {"the number of rows", "the number of columns", "the number of entries"};
    const char *p = NULL, *line = NULL, *end = NULL;
    const spmv_status st = content_line(source, &p, &line, &end);
    const int64_t number = source->line - 1;
    if (st != SPMV_OK)
        return st;
    if (line == NULL) {
        int64_t last = 0, column = 0;
        text_end_position(source, &last, &column);
        return text_fail(source, SPMV_ERROR_FORMAT, last, column, "the size line is missing: the file ends here");
    }
    for (int k = 0; k < numbers; k++) {
        p = text_skip_blanks(p);
        columns[k] = p - line + 1;
        const char *const rest = parse_count(p, &sizes[k]);
        if (rest == NULL) {
            char sentence[COUNT_SENTENCE];
            const spmv_status why = explain_count(p, names[k], sentence);
            return text_fail(source, why, number, columns[k], "malformed size line: %s", sentence);
        }
        p = rest;
    }
    p = text_skip_blanks(p);
    if (p != end) {
        char shown[TEXT_SHOWN];
        return text_fail(source, SPMV_ERROR_FORMAT, number, p - line + 1,
                         "malformed size line: extra text \"%s\" after the %s", text_show(p, end, shown),
                         numbers == 3 ? "number of entries" : "number of columns");
    }
    return SPMV_OK;
}

/* The number of values that an array of this symmetry stores; false if it exceeds 63 bits. */
static bool array_entries(const struct mtx_header *header, int64_t *entries)
{
    const int64_t n = header->rows;
    if (header->symmetry == SPMV_SYMMETRY_GENERAL)
        return multiply_fits(header->rows, header->cols, entries);
    /* n (n + 1) / 2 with the diagonal, n (n - 1) / 2 without; n < 2^31 here. */
    *entries = mtx_keeps_diagonal(header->symmetry) ? n * (n + 1) / 2 : n * (n - 1) / 2;
    return true;
}

int64_t mtx_least_bytes(const struct mtx_header *header)
{
    return (header->array                         ? 2
            : header->field == SPMV_FIELD_PATTERN ? 4
                                                  : 6) +
           (header->field == SPMV_FIELD_COMPLEX ? 2 : 0);
}

static spmv_status check_sizes(struct text_source *source, struct mtx_header *header, const int64_t columns[3])
{
    const int64_t line = header->size_line;
    if (header->cols > INT32_MAX)
        return text_fail(source, SPMV_ERROR_LIMIT, line, columns[1], "%lld columns: at most %d are supported",
                         (long long)header->cols, INT32_MAX);
    if (header->symmetry != SPMV_SYMMETRY_GENERAL && header->rows != header->cols)
        return text_fail(source, SPMV_ERROR_FORMAT, line, columns[1],
                         "a %s matrix must be square, this one is %lld x %lld",
                         header->symmetry == SPMV_SYMMETRY_SKEW        ? "skew-symmetric"
                         : header->symmetry == SPMV_SYMMETRY_HERMITIAN ? "hermitian"
                                                                       : "symmetric",
                         (long long)header->rows, (long long)header->cols);
    if (header->array && !array_entries(header, &header->entries))
        return text_fail(source, SPMV_ERROR_LIMIT, line, columns[0],
                         "an array of %lld x %lld entries: their number does not fit in 63 bits",
                         (long long)header->rows, (long long)header->cols);
    const int64_t left = text_left(source);
    /* the last line may lack a line end */
    const int64_t most = (left + 1) / mtx_least_bytes(header);
    if (left >= 0 && header->entries > most)
        return text_fail(source, SPMV_ERROR_FORMAT, line, header->array ? columns[0] : columns[2],
                         "%lld entries declared, but the %lld bytes that follow cannot hold more than %lld",
                         (long long)header->entries, (long long)left, (long long)most);
    return SPMV_OK;
}

spmv_status mtx_header_type(struct text_source *source, const struct mtx_header *header, spmv_type asked,
                            spmv_type *type)
{
    const bool complex = header->field == SPMV_FIELD_COMPLEX;
    *type = asked != SPMV_TYPE_DEFAULT ? asked : complex ? SPMV_C128 : SPMV_F64;
    if (!complex || type_is_complex(*type))
        return SPMV_OK;
    return text_fail(source, SPMV_ERROR_TYPE, 1, header->field_column,
                     "the numbers are complex: they can be read as c128 or c64, not as %s", spmv_type_name(*type));
}

spmv_status mtx_header_read(struct text_source *source, struct mtx_header *header)
{
    *header = (struct mtx_header){.array = false};
    int64_t sizes[3] = {0, 0, 0}, columns[3] = {1, 1, 1};
    spmv_status st = SPMV_OK;
    TRY(read_banner(source, header));
    TRY(read_sizes(source, header->array ? 2 : 3, sizes, columns));
    header->rows = sizes[0];
    header->cols = sizes[1];
    header->entries = sizes[2];
    header->size_line = source->line - 1;
    TRY(check_sizes(source, header, columns));
done:
    return st;
}
