/* Harwell-Boeing and Rutherford-Boeing files: compressed columns as text, in lines of fixed fields.
 *
 *   line 1    title, 72 bytes, and key
 *   line 2    lines of all sections, of pointers, indices, values and (Harwell-Boeing) right-hand sides
 *   line 3    type of three letters, rows, columns, entries, elemental values
 *   line 4    formats of Fortran, in fields of 16, 16, 20 and 20 bytes
 *   line 5    if there are right-hand sides: their type of three letters and number
 *
 * Sources: I. S. Duff, R. G. Grimes, J. G. Lewis, "Users' guide for the Harwell-Boeing sparse matrix collection",
 * RAL 92-086, 1992; "The Rutherford-Boeing sparse matrix collection", RAL-TR-97-031, 1997.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdio.h>

#include "core/threads.h"
#include "formats/io/exchange/exchange.h"
#include "formats/io/exchange/fortran.h"
#include "formats/io/text/decimal.h"
#include "formats/io/text/numbers.h"
#include "formats/io/text/text_portions.h"

enum { POINTERS, INDICES, VALUES, SIDES, SECTIONS };
static const char *const section_names[SECTIONS] = {"pointers", "indices", "values", "right-hand sides"};

/* The head, and where each line of the file begins. */
struct boeing {
    struct exchange *x;
    const char *text, *end;
    int64_t *line; /* lines + 1 offsets, without the lines after the last section */
    int64_t lines;
    int64_t sizes[SECTIONS]; /* lines of each section */
    char type[4];
    int64_t rows, cols, entries;
};

/* A part of the numbers of a section. */
struct section {
    int number;
    int64_t first_line; /* from 0 */
    int64_t lines;      /* that may be used */
    int64_t count;
    struct fortran_format *format;
};

/* ---------------------------------------------------------------- lines */

static const char *line_begin(const struct boeing *b, int64_t line)
{
    return b->text + b->line[line];
}

/* The end of the line, without its line end. */
static const char *line_end(const struct boeing *b, int64_t line)
{
    const char *end = b->text + b->line[line + 1];
    while (end > line_begin(b, line) && (end[-1] == '\n' || end[-1] == '\r'))
        end--;
    return end;
}

/* The end of the line at p, before the line end or the end of the text. */
static const char *find_end(const char *p, const char *end)
{
    const char *const found = memchr(p, '\n', (size_t)(end - p));
    return found != NULL ? found : end;
}

static spmv_status index_lines(struct boeing *b)
{
    void *memory = NULL;
    int64_t n = 0;
    for (const char *p = b->text; p < b->end; p = find_end(p, b->end) + 1)
        n++;
    if (n >= (b->x->max_bytes - b->x->size) / (int64_t)sizeof *b->line)
        return exchange_refuse(b->x, SPMV_ERROR_MEMORY, "%lld lines need more than the allowed %lld bytes of memory",
                               (long long)n, (long long)b->x->max_bytes);
    const spmv_status st = host_alloc(b->x->ctx, (n + 1) * (int64_t)sizeof *b->line, "lines of a file", &memory);
    if (st != SPMV_OK)
        return st;
    b->line = memory;
    for (const char *p = b->text; p < b->end; p = find_end(p, b->end) + 1)
        b->line[b->lines++] = p - b->text;
    b->line[b->lines] = b->end - b->text;
    return SPMV_OK;
}

/* ---------------------------------------------------------------- head */

/* Reads up to most numbers of the line, from byte at on; returns how many there are; -1: something else. */
static int read_counts(const struct boeing *b, int64_t line, int at, int64_t *counts, int most)
{
    int n = 0;
    const char *p = line_begin(b, line) + at, *const end = line_end(b, line);
    while (p < end) {
        if (*p == ' ' || *p == '\t') {
            p++;
            continue;
        }
        int64_t value = 0;
        const char *const first = p;
        for (; p < end && *p >= '0' && *p <= '9' && p - first < 18; p++)
            value = 10 * value + (*p - '0');
        if (p == first || (p < end && *p != ' ' && *p != '\t') || n == most)
            return -1;
        counts[n++] = value;
    }
    return n;
}

static bool one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* Line 3 has the type, three letters, and at least three integers. */
bool boeing_begins(const unsigned char *head, int64_t bytes)
{
    const char *p = (const char *)head, *const end = p + bytes;
    for (int k = 0; k < 2; k++) {
        p = find_end(p, end);
        if (p == end)
            return false;
        p++;
    }
    const char *const stop = find_end(p, end);
    if (stop - p < 3 || !one_of((char)tolower((unsigned char)p[0]), "rcpiq") ||
        !one_of((char)tolower((unsigned char)p[1]), "suhzr") || !one_of((char)tolower((unsigned char)p[2]), "ae"))
        return false;
    int integers = 0;
    for (p += 3; p < stop; p++) {
        if (!one_of(*p, "0123456789 \r"))
            return false;
        integers += *p != ' ' && *p != '\r' && p[-1] == ' ';
    }
    return integers >= 3;
}

static spmv_status check_type(struct boeing *b)
{
    struct exchange *const x = b->x;
    static const struct {
        char letter;
        spmv_symmetry symmetry;
    } symmetries[] = {{'u', SPMV_SYMMETRY_GENERAL},
                      {'r', SPMV_SYMMETRY_GENERAL},
                      {'s', SPMV_SYMMETRY_SYMMETRIC},
                      {'z', SPMV_SYMMETRY_SKEW},
                      {'h', SPMV_SYMMETRY_HERMITIAN}};
    for (int i = 0; i < 3; i++)
        b->type[i] = (char)tolower((unsigned char)line_begin(b, 2)[i]);
    if (b->type[2] == 'e')
        return text_fail(x->source, SPMV_ERROR_UNSUPPORTED, 3, 1,
                         "type %s: element matrices, which are not assembled, are not read", b->type);
    if (b->type[0] == 'q')
        return text_fail(x->source, SPMV_ERROR_UNSUPPORTED, 3, 1, "type %s: its values are in another file", b->type);
    for (size_t i = 0; i < sizeof symmetries / sizeof symmetries[0]; i++)
        if (symmetries[i].letter == b->type[1])
            x->symmetry = symmetries[i].symmetry;
    x->field = b->type[0] == 'c'   ? SPMV_FIELD_COMPLEX
               : b->type[0] == 'p' ? SPMV_FIELD_PATTERN
               : b->type[0] == 'i' ? SPMV_FIELD_INTEGER
                                   : SPMV_FIELD_REAL;
    x->type = x->field == SPMV_FIELD_COMPLEX ? (x->part == SPMV_F32 ? SPMV_C64 : SPMV_C128) : x->part;
    return SPMV_OK;
}

static spmv_status read_head(struct boeing *b)
{
    struct exchange *const x = b->x;
    int64_t counts[5] = {0};
    if (b->lines < 4)
        return text_fail(x->source, SPMV_ERROR_FORMAT, b->lines, 1, "the head of 4 lines is cut short");
    int n = read_counts(b, 1, 0, counts, 5);
    if (n < 4)
        return text_fail(x->source, SPMV_ERROR_FORMAT, 2, 1, "it must have the lines of 4 or 5 sections");
    x->form = n == 4 ? "rb" : "hb";
    for (int i = 0; i < SECTIONS; i++)
        b->sizes[i] = i + 1 < n ? counts[i + 1] : 0;
    const spmv_status st = check_type(b);
    if (st != SPMV_OK)
        return st;
    memset(counts, 0, sizeof counts);
    n = read_counts(b, 2, 3, counts, 4);
    if (n < 3)
        return text_fail(x->source, SPMV_ERROR_FORMAT, 3, 1, "the number of rows, columns and entries must follow %s",
                         b->type);
    b->rows = counts[0];
    b->cols = counts[1];
    b->entries = counts[2];
    return exchange_shape(x, line_begin(b, 2), b->rows, b->cols);
}

/* The format of the section on line 4. */
static spmv_status read_format(const struct boeing *b, int number, bool integers, struct fortran_format *format)
{
    static const int columns[SECTIONS + 1] = {0, 16, 32, 52, 72};
    const char *const line = line_begin(b, 3), *const stop = line_end(b, 3);
    const int64_t length = stop - line;
    const char *const from = line + min_i64(columns[number], length), *const to =
                                                                          line + min_i64(columns[number + 1], length);
    char shown[TEXT_SHOWN];
    if (!fortran_format_parse(from, to, format) || (integers && !format->integers))
        return text_fail(b->x->source, SPMV_ERROR_FORMAT, 4, columns[number] + 1, "\"%s\" is no format of %s",
                         text_show(from, to, shown), section_names[number]);
    return SPMV_OK;
}

/* ---------------------------------------------------------------- numbers */

/* Where number k of a section is: [*p, *end), empty if the line ends before. */
static const struct fortran_field *find_field(const struct boeing *b, const struct section *s, int64_t k,
                                              const char **p, const char **end)
{
    const struct fortran_field *const field = &s->format->field[k % s->format->fields];
    const int64_t line = s->first_line + k / s->format->fields;
    const char *const begin = line_begin(b, line), *const stop = line_end(b, line);
    *p = begin + min_i64(field->at, stop - begin);
    *end = begin + min_i64(field->at + field->width, stop - begin);
    return field;
}

static spmv_status fail_number(const struct boeing *b, const struct section *s, int64_t k, spmv_status status,
                               const char *reason)
{
    const char *p = NULL, *end = NULL;
    const struct fortran_field *const field = find_field(b, s, k, &p, &end);
    char shown[TEXT_SHOWN];
    while (p < end && *p == ' ')
        p++;
    return text_fail(b->x->source, status, s->first_line + k / s->format->fields + 1, field->at + 1,
                     "%s %lld, \"%s\": %s", section_names[s->number], (long long)k + 1, text_show(p, end, shown),
                     reason);
}

/* Checks that the lines of a section are there, and are enough for its numbers. */
static spmv_status check_section(const struct boeing *b, const struct section *s)
{
    const int64_t need = ceil_divide(s->count, s->format->fields);
    if (s->lines < need)
        return text_fail(b->x->source, SPMV_ERROR_FORMAT, 2, 1, "%lld lines of %s, but %lld of them need %lld lines",
                         (long long)s->lines, section_names[s->number], (long long)s->count, (long long)need);
    if (need > b->lines - s->first_line)
        return text_fail(b->x->source, SPMV_ERROR_FORMAT, b->lines, 1,
                         "the file ends here, within the %lld lines of %s that begin on line %lld", (long long)need,
                         section_names[s->number], (long long)s->first_line + 1);
    return SPMV_OK;
}

/* What becomes of the numbers of a section: integers from 1 to limit, counted from 0, or (integers NULL) real numbers
 * of the type. */
struct target {
    int64_t *integers, limit;
    spmv_type type;
    char *reals;
    bool without_point; /* real numbers in a format of integers */
};

static enum number_result take_integer(const struct target *t, const char *p, const char *end, int64_t k)
{
    int64_t value = 0;
    const char *const first = p + (p < end && *p == '+');
    for (p = first; p < end && *p >= '0' && *p <= '9' && p - first < 18; p++)
        value = 10 * value + (*p - '0');
    if (p == first || p < end || value < 1 || value > t->limit)
        return NUMBER_MALFORMED;
    t->integers[k] = value - 1;
    return NUMBER_OK;
}

/* Parses a number of ordinary length; NULL: it needs the general parser. */
static const char *parse_usual(const char *p, spmv_type type, void *value)
{
    return type == SPMV_F32 ? decimal_parse_f32(p, decimal_stops(p), value)
                            : decimal_parse_f64(p, decimal_stops(p), value);
}

/* Takes the number in [p, end), blanks around it left out. A blank within it means that it is none: the file may not
 * keep to its format. */
static enum number_result take_number(const struct target *t, const struct fortran_field *field, const char *p,
                                      const char *end, int64_t k, enum number_remark *remark)
{
    char text[FORTRAN_NUMBER + 16];
    const char *rest = NULL;
    while (p < end && *p == ' ')
        p++;
    while (end > p && end[-1] == ' ')
        end--;
    if (t->integers != NULL)
        return take_integer(t, p, end, k);
    const size_t length = (size_t)(end - p);
    char *const value = t->reals + (size_t)k * spmv_type_size(t->type);
    /* the usual form is read in place */
    const bool usual = !t->without_point && memchr(p, '.', length) != NULL &&
                       (field->scale == 0 || memchr(p, 'E', length) != NULL || memchr(p, 'D', length) != NULL);
    if (usual && parse_usual(p, t->type, value) == end)
        return NUMBER_OK;
    if (usual && number_parse(p, end, t->type, value, &rest, remark) == NUMBER_OK && rest == end)
        return NUMBER_OK;
    const int n = fortran_number(p, end, field, text);
    if (n == 0 || memchr(p, ' ', length) != NULL)
        return NUMBER_MALFORMED;
    const enum number_result result = t->without_point
                                          ? number_parse_integer(text, text + n, t->type, value, &rest, remark)
                                          : number_parse(text, text + n, t->type, value, &rest, remark);
    return result == NUMBER_OK && rest != text + n ? NUMBER_MALFORMED : result;
}

/* Reads the numbers as words between blanks. False if they are not right, or not as many. SciPy writes such files:
 * its fields are narrower than those of the format on line 4. */
static bool read_words(const struct boeing *b, const struct section *s, const struct target *t)
{
    const struct fortran_field field = {.digits = 0};
    int64_t k = 0;
    enum number_remark remark;
    for (int64_t line = s->first_line; k < s->count && line < b->lines; line++) {
        const char *p = line_begin(b, line), *const end = line_end(b, line);
        while (p < end) {
            const char *const word = p;
            while (p < end && *p != ' ')
                p++;
            if (p > word && (k == s->count || take_number(t, &field, word, p, k++, &remark) != NUMBER_OK))
                return false;
            p += p < end;
        }
    }
    return k == s->count;
}

static spmv_status fail_section(const struct boeing *b, const struct section *s, const struct target *t, int64_t k)
{
    const char *p = NULL, *end = NULL;
    enum number_remark remark;
    char reason[96];
    const struct fortran_field *const field = find_field(b, s, k, &p, &end);
    if (p == end)
        return fail_number(b, s, k, SPMV_ERROR_FORMAT, "the line ends before it");
    if (t->integers != NULL) {
        snprintf(reason, sizeof reason, "not an integer from 1 to %lld", (long long)t->limit);
        return fail_number(b, s, k, SPMV_ERROR_FORMAT, reason);
    }
    return take_number(t, field, p, end, k, &remark) == NUMBER_TOO_LARGE
               ? fail_number(b, s, k, SPMV_ERROR_LIMIT, "too large for the type")
               : fail_number(b, s, k, SPMV_ERROR_FORMAT, "not a number");
}

static spmv_status read_section(const struct boeing *b, const struct section *s, const struct target *t)
{
    int64_t bad = s->count, rounded = s->count, infinite = s->count;
    spmv_status st = check_section(b, s);
    if (st != SPMV_OK)
        return st;
    const int64_t fields = s->format->fields, lines = ceil_divide(s->count, fields);
    const int team = host_team(b->x->ctx, s->count);
#pragma omp parallel for num_threads(team) schedule(static) reduction(min : bad, rounded, infinite)
    for (int64_t line = 0; line < lines; line++) {
        const char *const begin = line_begin(b, s->first_line + line), *const stop = line_end(b, s->first_line + line);
        const int64_t first = line * fields, n = min_i64(fields, s->count - first);
        for (int64_t i = 0; i < n; i++) {
            const struct fortran_field *const field = &s->format->field[i];
            enum number_remark remark = NUMBER_PLAIN;
            const char *const p = begin + min_i64(field->at, stop - begin);
            const char *const end = begin + min_i64(field->at + field->width, stop - begin);
            if (take_number(t, field, p, end, first + i, &remark) != NUMBER_OK)
                bad = min_i64(bad, first + i);
            else if (remark == NUMBER_ROUNDED)
                rounded = min_i64(rounded, first + i);
            else if (remark == NUMBER_NOT_FINITE)
                infinite = min_i64(infinite, first + i);
        }
    }
    if (bad < s->count)
        return !read_words(b, s, t) ? fail_section(b, s, t, bad)
                                    : text_warn(b->x->source,
                                                ":%lld:1: the %s do not keep to the format on line 4; they are read as "
                                                "words between blanks",
                                                (long long)s->first_line + 1, section_names[s->number]);
    if (infinite < s->count)
        st = text_warn(b->x->source, ":%lld:1: numbers that are not finite; this has the first",
                       (long long)(s->first_line + infinite / fields) + 1);
    if (st == SPMV_OK && rounded < s->count)
        st = text_warn(b->x->source, ":%lld:1: integers that %s cannot represent were rounded; this has the first",
                       (long long)(s->first_line + rounded / s->format->fields) + 1, spmv_type_name(t->type));
    return st;
}

static spmv_status read_numbers(const struct boeing *b, struct section *s, int64_t n, spmv_type type, void **values)
{
    int64_t bytes = 0;
    if (!multiply_fits(n, (int64_t)spmv_type_size(type), &bytes) || n > b->x->size)
        return text_fail(b->x->source, SPMV_ERROR_FORMAT, 3, 1, "%lld %s are more than the file can hold", (long long)n,
                         section_names[s->number]);
    spmv_status st = read_format(b, s->number, false, s->format);
    if (st == SPMV_OK)
        st = host_alloc(b->x->ctx, max_i64(bytes, 1), "values", values);
    s->count = n * (type_is_complex(type) ? 2 : 1);
    const struct target target = {.type = type_part(type), .reals = *values, .without_point = s->format->integers};
    return st == SPMV_OK ? read_section(b, s, &target) : st;
}

/* ---------------------------------------------------------------- reading */

/* The first line of each section. */
static int64_t first_line(const struct boeing *b, int number)
{
    int64_t line = b->sizes[SIDES] > 0 ? 5 : 4;
    for (int i = 0; i < number; i++)
        line = min_i64(b->lines, line + min_i64(b->sizes[i], b->lines));
    return line;
}

static spmv_status read_structure(struct boeing *b, int64_t *pointers, int64_t *indices, struct fortran_format *format)
{
    struct exchange *const x = b->x;
    struct section s = {.number = POINTERS, .lines = b->sizes[POINTERS], .count = b->cols + 1, .format = format};
    spmv_status st = SPMV_OK;
    s.first_line = first_line(b, POINTERS);
    TRY(read_format(b, POINTERS, true, format));
    TRY(read_section(b, &s, &(struct target){.integers = pointers, .limit = b->entries + 1}));
    for (int64_t j = 0; j <= b->cols; j++)
        if ((j == 0 && pointers[j] != 0) || (j > 0 && pointers[j] < pointers[j - 1]) ||
            (j == b->cols && pointers[j] != b->entries))
            TRY(fail_number(b, &s, j, SPMV_ERROR_FORMAT,
                            j == 0                          ? "the first must be 1"
                            : pointers[j] < pointers[j - 1] ? "below the one before"
                                                            : "the last must be the number of entries and 1"));
    s = (struct section){INDICES, first_line(b, INDICES), b->sizes[INDICES], b->entries, format};
    TRY(read_format(b, INDICES, true, format));
    TRY(read_section(b, &s, &(struct target){.integers = indices, .limit = b->rows}));
    const struct numbers offsets = {(const unsigned char *)pointers, b->cols + 1, NUMBERS_SIGNED, 8, host_is_big()},
                         index = {(const unsigned char *)indices, b->entries, NUMBERS_SIGNED, 8, host_is_big()};
    TRY(exchange_compressed(x, false, &offsets, section_names[POINTERS], &index, section_names[INDICES]));
done:
    return st;
}

static spmv_status read_matrix(struct boeing *b, struct fortran_format *format)
{
    void *pointers = NULL, *indices = NULL;
    spmv_status st = SPMV_OK;
    struct exchange *const x = b->x;
    struct section s = {.number = VALUES, .lines = b->sizes[VALUES], .format = format};
    if (x->member != NULL)
        return exchange_refuse(x, SPMV_ERROR_OPEN, "the matrix has no name; %s could only be vectors", x->member);
    /* A number takes at least a byte. */
    if (b->entries > x->size || b->cols > x->size)
        return text_fail(x->source, SPMV_ERROR_FORMAT, 3, 1,
                         "%lld columns and %lld entries are more than the file can "
                         "hold",
                         (long long)b->cols, (long long)b->entries);
    TRY(host_alloc(x->ctx, (b->cols + 1) * (int64_t)sizeof(int64_t), "pointers", &pointers));
    TRY(host_alloc(x->ctx, max_i64(1, b->entries) * (int64_t)sizeof(int64_t), "indices", &indices));
    TRY(read_structure(b, pointers, indices, format));
    if (x->field == SPMV_FIELD_PATTERN)
        goto done;
    if (b->sizes[VALUES] == 0 && b->entries > 0)
        TRY(text_fail(x->source, SPMV_ERROR_FORMAT, 2, 1, "type %s, but there are no values", b->type));
    s.first_line = first_line(b, VALUES);
    TRY(read_numbers(b, &s, b->entries, x->type, &x->val));
done:
    host_free_all(pointers, indices);
    return st;
}

/* The right-hand sides, guesses or solutions, one after the other. */
static spmv_status read_sides(struct boeing *b, struct fortran_format *format)
{
    static const struct {
        const char *name;
        char letter;
    } parts[] = {{"rhs", 'f'}, {"guess", 'g'}, {"exact", 'x'}};
    struct exchange *const x = b->x;
    int64_t counts[2] = {0}, n = 0;
    int part = 0;
    char letters[3];
    while (part < 3 && x->member != NULL && strcmp(parts[part].name, x->member) != 0)
        part++;
    if (part == 3)
        return exchange_refuse(x, SPMV_ERROR_OPEN, "no vectors %s: a Harwell-Boeing file has rhs, guess and exact",
                               x->member);
    if (b->sizes[SIDES] == 0)
        return exchange_refuse(x, SPMV_ERROR_FORMAT, "a matrix without right-hand sides, not vectors");
    if (b->lines < 5 || line_end(b, 4) - line_begin(b, 4) < 3 || read_counts(b, 4, 3, counts, 2) < 1)
        return text_fail(x->source, SPMV_ERROR_FORMAT, 5, 1, "it must have the type and number of right-hand sides");
    for (int i = 0; i < 3; i++)
        letters[i] = (char)tolower((unsigned char)line_begin(b, 4)[i]);
    if (letters[0] != 'f')
        return text_fail(x->source, SPMV_ERROR_UNSUPPORTED, 5, 1, "only full right-hand sides (F) are read");
    if (letters[part] != parts[part].letter)
        return text_fail(x->source, SPMV_ERROR_OPEN, 5, 1, "the file has no vectors %s", parts[part].name);
    if (!multiply_fits(b->rows, counts[0], &n) || n > x->size || counts[0] > INT32_MAX)
        return text_fail(x->source, SPMV_ERROR_FORMAT, 5, 1, "%lld right-hand sides are more than the file can hold",
                         (long long)counts[0]);
    struct section s = {.number = SIDES, .lines = INT64_MAX, .format = format};
    s.first_line = first_line(b, SIDES);
    const spmv_status st = read_format(b, SIDES, false, format);
    if (st != SPMV_OK)
        return st;
    const int64_t each = ceil_divide(n * (type_is_complex(x->type) ? 2 : 1), format->fields);
    for (int i = 1; i <= part; i++)
        if (i == 1 || letters[i - 1] == parts[i - 1].letter)
            s.first_line = min_i64(b->lines, s.first_line + each);
    x->cols = counts[0];
    x->dense = true;
    x->symmetry = SPMV_SYMMETRY_GENERAL;
    return read_numbers(b, &s, n, x->type, &x->val);
}

spmv_status boeing_read(struct exchange *x)
{
    struct fortran_format format;
    struct boeing b = {.x = x, .text = (const char *)x->bytes, .end = (const char *)x->bytes + x->size};
    spmv_status st = index_lines(&b);
    if (st == SPMV_OK)
        st = read_head(&b);
    if (st == SPMV_OK)
        st = x->vectors ? read_sides(&b, &format) : read_matrix(&b, &format);
    host_free(b.line);
    return st;
}

/* ---------------------------------------------------------------- writing */

/* A section of the output: numbers right-justified in fields, some of them on each line. */
struct field_text {
    const spmv_csr *columns; /* compressed columns, as rows of the transposed matrix */
    int width, per_line;
    int64_t count;
};

static char *end_number(const struct field_text *t, int64_t k, const char *digits, int n, char *p)
{
    memset(p, ' ', (size_t)(t->width - n));
    memcpy(p + t->width - n, digits, (size_t)n);
    p += t->width;
    if ((k + 1) % t->per_line == 0 || k + 1 == t->count)
        *p++ = '\n';
    return p;
}

static char *write_pointers(const void *user, int64_t first, int64_t end, char *p)
{
    const struct field_text *const t = user;
    char digits[24];
    for (int64_t k = first; k < end; k++)
        p = end_number(t, k, digits, sprintf(digits, "%lld", (long long)row_first(t->columns, k) + 1), p);
    return p;
}

static char *write_indices(const void *user, int64_t first, int64_t end, char *p)
{
    const struct field_text *const t = user;
    char digits[24];
    for (int64_t k = first; k < end; k++)
        p = end_number(t, k, digits, sprintf(digits, "%lld", (long long)t->columns->col[k] + 1), p);
    return p;
}

/* Shortest digits, and always a point: Fortran reads a number without one as a multiple of 10^-d. */
static char *write_values(const void *user, int64_t first, int64_t end, char *p)
{
    const struct field_text *const t = user;
    const spmv_type type = type_part(t->columns->type);
    char digits[NUMBER_TEXT + 1];
    for (int64_t k = first; k < end; k++) {
        int n = (int)(number_write(digits, type, (const char *)t->columns->val + (size_t)k * spmv_type_size(type)) -
                      digits);
        const char *const e = memchr(digits, 'e', (size_t)n);
        const int mantissa = e != NULL ? (int)(e - digits) : n;
        if (memchr(digits, '.', (size_t)n) == NULL) {
            memmove(digits + mantissa + 1, digits + mantissa, (size_t)(n - mantissa));
            digits[mantissa] = '.';
            n++;
        }
        p = end_number(t, k, digits, n, p);
    }
    return p;
}

static int digits_of(int64_t value)
{
    int n = 1;
    while (value >= 10) {
        value /= 10;
        n++;
    }
    return n;
}

/* The columns of A as rows of its transpose; of a symmetric matrix only the entries on and below the diagonal. */
static spmv_status make_columns(const struct exchange_matrix *m, spmv_matrix **columns)
{
    spmv_status st = csr_transpose(m->ctx, m->a, columns);
    if (st != SPMV_OK || m->symmetry == SPMV_SYMMETRY_GENERAL)
        return st;
    spmv_matrix *const t = *columns;
    const size_t size = value_size(t->type, t->pattern);
    int64_t kept = 0, first = 0;
    for (int64_t j = 0; j < t->rows; j++) {
        const int64_t end = t->row_ptr[j + 1];
        for (int64_t k = first; k < end; k++)
            if (t->col[k] >= j) {
                t->col[kept] = t->col[k];
                copy_value(t->val, kept++, t->val, k, size);
            }
        first = end;
        t->row_ptr[j + 1] = kept;
    }
    t->nnz = kept;
    return SPMV_OK;
}

static spmv_status write_boeing(const struct exchange_matrix *m, struct sink *sink, bool harwell)
{
    enum { LINE = 80, WIDE = 25, NARROW = 16 };
    spmv_matrix *columns = NULL;
    spmv_csr a;
    char head[512];
    spmv_status st = SPMV_OK;
    TRY(make_columns(m, &columns));
    spmv_matrix_view(columns, &a);
    const bool single = type_part(a.type) == SPMV_F32;
    const int64_t numbers = a.val == NULL ? 0 : a.nnz * (type_is_complex(a.type) ? 2 : 1);
    struct field_text text[3] = {{&a, digits_of(a.nnz + 1) + 1, 0, a.rows + 1},
                                 {&a, digits_of(a.cols) + 1, 0, a.nnz},
                                 {&a, single ? NARROW : WIDE, 0, numbers}};
    int64_t lines[3], total = 0;
    for (int i = 0; i < 3; i++) {
        text[i].per_line = LINE / text[i].width;
        lines[i] = ceil_divide(text[i].count, text[i].per_line);
        total += lines[i];
    }
    char formats[3][24];
    for (int i = 0; i < 2; i++)
        snprintf(formats[i], sizeof formats[i], "(%dI%d)", text[i].per_line, text[i].width);
    snprintf(formats[2], sizeof formats[2], "(%dE%d.%d)", text[2].per_line, text[2].width, single ? 8 : 16);
    const char letter = m->symmetry == SPMV_SYMMETRY_SYMMETRIC   ? 's'
                        : m->symmetry == SPMV_SYMMETRY_SKEW      ? 'z'
                        : m->symmetry == SPMV_SYMMETRY_HERMITIAN ? 'h'
                        : a.rows == a.cols                       ? 'u'
                                                                 : 'r';
    char type[4] = {a.val == NULL ? 'p' : type_is_complex(a.type) ? 'c' : 'r', letter, 'a', '\0'};
    for (int i = 0; harwell && i < 3; i++) /* the older format is in upper case */
        type[i] = (char)toupper((unsigned char)type[i]);
    int n = snprintf(head, sizeof head, "%-72.72s%-8.8s\n%14lld%14lld%14lld%14lld", "written by spmv", "spmv",
                     (long long)total, (long long)lines[0], (long long)lines[1], (long long)lines[2]);
    n += snprintf(head + n, sizeof head - (size_t)n, "%s\n%s           %14lld%14lld%14lld%14d\n",
                  harwell ? "             0" : "", type, (long long)a.cols, (long long)a.rows, (long long)a.nnz, 0);
    n += snprintf(head + n, sizeof head - (size_t)n, "%-16s%-16s%-20s%s\n", formats[0], formats[1],
                  a.val != NULL ? formats[2] : "", harwell ? "                    " : "");
    TRY(text_portions_head(sink->output, head, n, sink->compression));
    static char *(*const write[3])(const void *, int64_t, int64_t, char *) = {write_pointers, write_indices,
                                                                              write_values};
    for (int i = 0; i < 3; i++) {
        const struct text_portions portions = {write[i], &text[i], text[i].count, text[i].width + 1, sink->compression};
        TRY(text_portions_write(sink->output, &portions));
    }
done:
    spmv_matrix_destroy(columns);
    return st;
}

spmv_status boeing_write(const struct exchange_matrix *matrix, struct sink *sink)
{
    return write_boeing(matrix, sink, true);
}

spmv_status boeing_write_rutherford(const struct exchange_matrix *matrix, struct sink *sink)
{
    return write_boeing(matrix, sink, false);
}
