/* Parses the lines of a tile to entries. All functions are static, so that each including file
 * compiles them for its own instruction set (tile_entries.c, tile_entries_avx2.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TILE_ENTRIES_PARSE_H
#define TILE_ENTRIES_PARSE_H

#include "formats/io/text/decimal.h"
#include "formats/io/text/tile_entries.h"

/* Functions with constants among their arguments are always inlined, so that each constant has its
 * own code. With SPMV_QUICK_LOOPS, for tests without a GPU, all constants share it: a fifth of the time
 * to compile. */
#if defined(SPMV_QUICK_LOOPS)
#define FOR_EACH_KIND static __attribute__((unused))
#elif defined(__GNUC__)
#define FOR_EACH_KIND static inline __attribute__((always_inline))
#else
#define FOR_EACH_KIND static inline
#endif

/* A value while it is parsed: one number, or real and imaginary part. */
union value {
    double f64[2];
    float f32[2];
};

FOR_EACH_KIND void *part_of(spmv_type part, union value *value, int k)
{
    return (char *)value + k * real_bytes(part);
}

/* Parses a real number of the type; returns its end, or NULL if it needs the general parser. */
FOR_EACH_KIND const char *parse_real(spmv_type part, const char *p, uint64_t stops, void *value)
{
    switch ((int)part) {
#define CASE(NAME, name, T)                                                                                            \
    case SPMV_##NAME:                                                                                                  \
        return decimal_parse_##name(p, stops, value);
        REAL_LIST(CASE)
#undef CASE
    default:
        return NULL;
    }
}

/* ---------------------------------------------------------------- ordinary lines
 *
 * The ends of the line and of its numbers are found in its first 64 bytes at once. So the beginning
 * of the next line is known before the numbers are converted, and the processor works on several
 * lines at a time. */

/* Parses the number at byte at of the line. Returns its end, or 0 if it needs the general
 * parser. */
FOR_EACH_KIND int usual_number(const char *line, uint64_t stops, int at, spmv_field field, spmv_type part, void *value)
{
    const char *const p = line + at;
    if (field == SPMV_FIELD_INTEGER) {
        const bool negative = *p == '-';
        const int digits = decimal_first(stops >> at >> negative);
        if (digits == 0 || digits > real_limits_of(part).digits)
            return 0;
        const double low = (double)(int64_t)decimal_sixteen(p + negative + digits, digits);
        real_set(part, value, 0, negative ? -low : low);
        return at + negative + digits;
    }
    const char *const rest = parse_real(part, p, stops >> at, value);
    return rest == NULL ? 0 : (int)(rest - line);
}

/* Parses the entry on an ordinary line: row and column of up to eight digits, one blank between.
 * Returns the next line, or NULL if the line needs the general parser, also if it is malformed. */
FOR_EACH_KIND const char *usual_entry(const struct mtx_header *header, const char *line, spmv_field field,
                                      spmv_type type, spmv_symmetry symmetry, int64_t *row, int64_t *col,
                                      union value *value)
{
    const spmv_type part = type_part(type);
    const struct decimal_line look = decimal_look(line);
    if (look.ends == 0)
        return NULL;
    const int length = decimal_first(look.ends), first = decimal_first(look.stops);
    const int second = decimal_first(look.stops & (look.stops - 1)), digits = second - first - 1;
    if (first - 1u >= 8u || digits - 1u >= 8u || line[first] != ' ' || second > length)
        return NULL;
    uint64_t numbers[2];
    decimal_two(line + first, first, line + second, digits, &numbers[0], &numbers[1]);
    *row = (int64_t)numbers[0] - 1;
    *col = (int64_t)numbers[1] - 1;
    if ((uint64_t)*row >= (uint64_t)header->rows || (uint64_t)*col >= (uint64_t)header->cols)
        return NULL;
    int at = second;
    for (int k = 0; k < (field == SPMV_FIELD_PATTERN ? 0 : field == SPMV_FIELD_COMPLEX ? 2 : 1); k++) {
        if (line[at] != ' ')
            return NULL;
        do
            at++;
        while (line[at] == ' ');
        at = usual_number(line, look.stops, at, field, part, part_of(part, value, k));
        if (at == 0)
            return NULL;
    }
    /* The general parser checks values that must be 0 on a diagonal. */
    if ((symmetry == SPMV_SYMMETRY_SKEW || symmetry == SPMV_SYMMETRY_HERMITIAN) && *row == *col)
        return NULL;
    return at == length || (at == length - 1 && line[at] == '\r') ? line + length + 1 : NULL;
}

#ifdef USUAL_REAL
static_assert(REAL_TYPES == 2, "USUAL_REAL reads f32 and f64");

/* As usual_entry for real files, with the instructions of the including file. NULL for all lines
 * that it does not handle. */
FOR_EACH_KIND const char *usual_real_entry(const struct mtx_header *header, const char *line, spmv_type type,
                                           spmv_symmetry symmetry, int64_t *row, int64_t *col, union value *value)
{
    const char *const next = USUAL_REAL(line, header->rows, header->cols, type == SPMV_F32, row, col, value);
    /* The general parser checks values that must be 0 on a diagonal. */
    return next != NULL && symmetry == SPMV_SYMMETRY_SKEW && *row == *col ? NULL : next;
}
#endif

/* ---------------------------------------------------------------- any line */

FOR_EACH_KIND const char *skip_blanks(const char *p)
{
    return *p == ' ' && !text_is_blank(p[1]) ? p + 1 : text_skip_blanks(p);
}

/* Parses a row or column number at p, from 1 to limit, into *index, from 0. */
static const char *parse_index(const struct tile_kind *kind, struct findings *found, const struct place *place,
                               const char *p, const char *what, int64_t limit, int64_t *index)
{
    const char *const rest = parse_count(p, index);
    if (rest == NULL || *index < 1 || *index > limit)
        return findings_fail_index(found, place, p, what, limit, kind->header->size_line);
    *index -= 1;
    return rest;
}

/* Parses row and column at p, from 0. Returns the end of the column. */
FOR_EACH_KIND const char *parse_indices(const struct tile_kind *kind, struct findings *found, const struct place *place,
                                        const char *p, int64_t *row, int64_t *col)
{
    const struct mtx_header *const header = kind->header;
    const uint64_t stops = decimal_stops(p);
    const int first = decimal_first(stops), second = decimal_first(stops & (stops - 1)), digits = second - first - 1;
    /* The ordinary case: up to eight digits each, one blank between. */
    if (first - 1u < 8u && digits - 1u < 8u && text_is_blank(p[first]) &&
        (text_is_blank(p[second]) || p[second] == '\n')) {
        *row = (int64_t)decimal_eight(p + first, first) - 1;
        *col = (int64_t)decimal_eight(p + second, digits) - 1;
        if ((uint64_t)*row < (uint64_t)header->rows && (uint64_t)*col < (uint64_t)header->cols)
            return p + second;
    }
    p = parse_index(kind, found, place, p, "row", header->rows, row);
    return p == NULL ? NULL : parse_index(kind, found, place, text_skip_blanks(p), "column", header->cols, col);
}

FOR_EACH_KIND const char *parse_value(struct findings *found, const struct place *place, const char *p, const char *end,
                                      spmv_field field, spmv_type type, void *value)
{
    const char *rest = NULL;
    if (field != SPMV_FIELD_INTEGER) {
        rest = parse_real(type, p, decimal_stops(p), value);
    } else {
        const bool negative = *p == '-';
        const int digits = decimal_first(decimal_stops(p + negative));
        /* Seven digits are exact in every type. */
        if (digits > 0 && digits < 8) {
            rest = p + negative + digits;
            const double n = (double)(int64_t)decimal_eight(rest, digits);
            real_set(type, value, 0, negative ? -n : n);
        }
    }
    if (rest != NULL && (*rest == '\n' || text_is_blank(*rest)))
        return rest;
    return findings_value(found, place, p, end, field, type, value);
}

static bool is_zero(spmv_type part, const union value *value, int k)
{
    return real_at(part, value, k) == 0;
}

static void negate(spmv_type part, union value *value, int k)
{
    real_set(part, value, k, -real_at(part, value, k));
}

/* Appends the entry and its mirror. */
FOR_EACH_KIND bool append(struct coo_buckets *buckets, const struct coo_shape *shape, struct coo_writer *writer,
                          int64_t row, int64_t col, union value *value, spmv_type type, size_t size,
                          spmv_symmetry symmetry)
{
    if (!coo_append(buckets, shape, writer, row, col, value, size))
        return false;
    if (symmetry == SPMV_SYMMETRY_GENERAL || row == col)
        return true;
    if (symmetry == SPMV_SYMMETRY_SKEW)
        negate(type_part(type), value, 0);
    if (type_is_complex(type) && (symmetry == SPMV_SYMMETRY_SKEW || symmetry == SPMV_SYMMETRY_HERMITIAN))
        negate(type_part(type), value, 1);
    return coo_append(buckets, shape, writer, col, row, value, size);
}

/* Parses the value at p of entry (row, col). Returns the byte after it, or NULL. */
FOR_EACH_KIND const char *parse_number(struct findings *found, const struct place *place, const char *p,
                                       const char *end, spmv_field field, spmv_type type, spmv_symmetry symmetry,
                                       int64_t row, int64_t col, union value *value)
{
    const spmv_type part = type_part(type);
    const char *text = p;
    p = parse_value(found, place, p, end, field, part, part_of(part, value, 0));
    if (p == NULL)
        return NULL;
    bool fits = symmetry != SPMV_SYMMETRY_SKEW || is_zero(part, value, 0);
    if (field == SPMV_FIELD_COMPLEX) {
        const char *const second = skip_blanks(p);
        if (*second == '\n')
            return findings_fail_part(found, place, second);
        p = parse_value(found, place, second, end, field, part, part_of(part, value, 1));
        if (p == NULL)
            return NULL;
        if (fits && (symmetry == SPMV_SYMMETRY_SKEW || symmetry == SPMV_SYMMETRY_HERMITIAN)) {
            fits = is_zero(part, value, 1);
            text = second;
        }
    }
    return fits || row != col ? p : findings_fail_diagonal(found, place, text, symmetry, row);
}

/* Parses the entry at p and checks the rest of its line. Returns the first byte of the next line,
 * or NULL. field, type and symmetry are constants, so that each kind of file has its own code. */
FOR_EACH_KIND const char *parse_entry(const struct tile_kind *kind, struct findings *found, const struct place *place,
                                      const char *p, const char *end, spmv_field field, spmv_type type,
                                      spmv_symmetry symmetry, int64_t *row, int64_t *col, union value *value)
{
    p = parse_indices(kind, found, place, p, row, col);
    if (p == NULL)
        return NULL;
    if (field != SPMV_FIELD_PATTERN) {
        p = parse_number(found, place, skip_blanks(p), end, field, type, symmetry, *row, *col, value);
        if (p == NULL)
            return NULL;
    }
    if (*p != '\n')
        p = text_skip_blanks(p);
    return *p == '\n' ? p + 1 : findings_fail_extra(found, place, p, kind->header);
}

/* Stores the entry in the tile's destination. */
FOR_EACH_KIND bool put(struct tile_target target, const struct coo_shape *shape, int64_t row, int64_t col,
                       union value *value, spmv_type type, size_t size, spmv_symmetry symmetry, bool in_order)
{
    if (!in_order)
        return append(target.buckets, shape, target.writer, row, col, value, type, size, symmetry);
    ordered_append(target.ordered, row, col, value, size);
    return true;
}

FOR_EACH_KIND void parse_tile_as(const struct tile_kind *kind, const struct text_tile *tile, struct tile_target target,
                                 struct findings *found, spmv_field field, spmv_type type, spmv_symmetry symmetry,
                                 bool in_order)
{
    const size_t size = field == SPMV_FIELD_PATTERN ? 0 : (size_t)(real_bytes(type_part(type)) * type_parts(type));
    const struct coo_shape shape = *kind->shape;
    struct place place = {.line = 0};
    const char *const end = tile->end;
    int64_t entries = 0;
    for (const char *p = tile->begin; p < end; place.line++) {
        const char *next = NULL;
        place.line_begin = p;
#ifdef USUAL_REAL
        if (field == SPMV_FIELD_REAL) {
            /* Separate variables, which stay in registers; the address of those below is passed to
             * functions. */
            int64_t row, col;
            union value value;
            next = usual_real_entry(kind->header, p, type, symmetry, &row, &col, &value);
            if (next != NULL && put(target, &shape, row, col, &value, type, size, symmetry, in_order)) {
                p = next;
                entries++;
                continue;
            }
            if (next != NULL) {
                findings_fail(found, &place, p, SPMV_ERROR_MEMORY, "no memory for more entries");
                found->entry_is_bad = true;
                break;
            }
        }
#endif
        int64_t row = 0, col = 0;
        union value value = {.f64 = {0, 0}};
        next = usual_entry(kind->header, p, field, type, symmetry, &row, &col, &value);
        if (next == NULL) {
            p = text_skip_blanks(p);
            if (*p == '\n') {
                p++;
                continue;
            }
            if (*p == '%') {
                p = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
                continue;
            }
            next = parse_entry(kind, found, &place, p, end, field, type, symmetry, &row, &col, &value);
        }
        if (next != NULL && !put(target, &shape, row, col, &value, type, size, symmetry, in_order))
            next = findings_fail(found, &place, p, SPMV_ERROR_MEMORY, "no memory for more entries");
        if (next == NULL) {
            found->entry_is_bad = true;
            break;
        }
        p = next;
        entries++;
    }
    found->entries = entries;
    found->lines = place.line;
    if (tile->too_long && found->status == SPMV_OK)
        findings_fail(found, &(struct place){end, place.line}, end, SPMV_ERROR_LIMIT, "a line of more than %lld bytes",
                      (long long)TEXT_BLOCK - 1);
}

static void parse_tile(const struct tile_kind *kind, const struct text_tile *tile, struct tile_target target,
                       struct findings *found)
{
#define SYMMETRIES(field, type)                                                                                        \
    if (target.ordered != NULL)                                                                                        \
        parse_tile_as(kind, tile, target, found, field, type, SPMV_SYMMETRY_GENERAL, true);                            \
    else if (kind->header->symmetry == SPMV_SYMMETRY_GENERAL)                                                          \
        parse_tile_as(kind, tile, target, found, field, type, SPMV_SYMMETRY_GENERAL, false);                           \
    else if (kind->header->symmetry == SPMV_SYMMETRY_SYMMETRIC)                                                        \
        parse_tile_as(kind, tile, target, found, field, type, SPMV_SYMMETRY_SYMMETRIC, false);                         \
    else if (kind->header->symmetry == SPMV_SYMMETRY_SKEW)                                                             \
        parse_tile_as(kind, tile, target, found, field, type, SPMV_SYMMETRY_SKEW, false);
#define INTEGERS(NAME, name, T)                                                                                        \
    case SPMV_##NAME:                                                                                                  \
        SYMMETRIES(SPMV_FIELD_INTEGER, SPMV_##NAME)                                                                    \
        break;
#define REALS(NAME, name, T)                                                                                           \
    case SPMV_##NAME:                                                                                                  \
        SYMMETRIES(SPMV_FIELD_REAL, SPMV_##NAME)                                                                       \
        break;
#define COMPLEXES(NAME, name, value, T, CLASS, ARG)                                                                    \
    case SPMV_##NAME:                                                                                                  \
        SYMMETRIES(SPMV_FIELD_COMPLEX, SPMV_##NAME)                                                                    \
        else parse_tile_as(kind, tile, target, found, SPMV_FIELD_COMPLEX, SPMV_##NAME, SPMV_SYMMETRY_HERMITIAN,        \
                           false);                                                                                     \
        break;
    findings_clear(found);
    if (kind->header->field == SPMV_FIELD_PATTERN) {
        SYMMETRIES(SPMV_FIELD_PATTERN, SPMV_F64)
    } else if (kind->header->field == SPMV_FIELD_INTEGER) {
        switch ((int)kind->type) {
            REAL_LIST(INTEGERS)
        }
    } else if (kind->header->field == SPMV_FIELD_COMPLEX) {
        switch ((int)kind->type) {
            SPMV_COMPLEX_TYPES(COMPLEXES, )
        }
    } else {
        switch ((int)kind->type) {
            REAL_LIST(REALS)
        }
    }
#undef COMPLEXES
#undef REALS
#undef INTEGERS
#undef SYMMETRIES
}

#endif
