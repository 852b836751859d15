/* The entries of a coordinate file. Threads take tiles of the text (text_tiles.h), whose entries go to their places
 * while they come in order (coo_ordered.h), else to buckets (coo_buckets.h), from which the matrix is made: the text is
 * read once, and no list of all entries ever exists.
 *
 * A tile does not know how many lines and entries came before it. That is added up between rounds, where errors get
 * their line and the first of them is found; only what stands in the tile of the last declared entry is looked for
 * again in the text.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "coordinates.h"

#include <omp.h>

#include "coo_buckets.h"
#include "coo_ordered.h"
#include "decimal.h"
#include "rows.h"
#include "text_tiles.h"

/* One thread reads so much in a few ms, which waking a team for each round can cost on a machine that others use as
 * well. */
enum { BYTES_WORTH_A_TEAM = 2 << 20 };

/* What has constants among its arguments is one function for each of them, whatever the compiler makes of its size. */
#if defined(__GNUC__)
#define FOR_EACH_KIND static inline __attribute__((always_inline))
#else
#define FOR_EACH_KIND static inline
#endif

struct job {
    struct text_source *source;
    const struct mtx_header *header;
    spmv_type type;
    int threads;
    struct text_tiles tiles;
    struct text_memory *memory; /* of each thread */
    bool in_order;              /* the entries so far: they are in ordered, else in buckets */
    struct coo_ordered ordered;
    struct coo_buckets buckets;
    struct findings *found; /* of each tile of a round */
    int64_t entries;        /* in the tiles of earlier rounds */
    struct remarks rounded, not_finite;
};

/* A value while it is parsed: one number, or real and imaginary part. */
union value {
    double f64[2];
    float f32[2];
};

FOR_EACH_KIND void *part_of(spmv_type part, union value *value, int k)
{
    return part == SPMV_F32 ? (void *)&value->f32[k] : (void *)&value->f64[k];
}

/* ---------------------------------------------------------------- the usual line
 *
 * One look at its 64 bytes tells where it and its numbers end. So the next line's begin is known before this one's
 * numbers are, and a processor works on several lines at once. */

/* The number that begins at byte at of the line; where it ends, or 0 for what is to be read by other means. */
FOR_EACH_KIND int usual_number(const char *line, uint64_t stops, int at, spmv_field field, spmv_type part, void *value)
{
    const char *const p = line + at;
    if (field == SPMV_FIELD_INTEGER) {
        const bool negative = *p == '-';
        const int digits = decimal_first(stops >> at >> negative);
        /* so many are exact */
        if (digits == 0 || digits > (part == SPMV_F32 ? 7 : 15))
            return 0;
        const int64_t low = (int64_t)decimal_sixteen(p + negative + digits, digits);
        if (part == SPMV_F32)
            *(float *)value = negative ? -(float)low : (float)low;
        else
            *(double *)value = negative ? -(double)low : (double)low;
        return at + negative + digits;
    }
    const char *const rest =
        part == SPMV_F32 ? decimal_parse_f32(p, stops >> at, value) : decimal_parse_f64(p, stops >> at, value);
    return rest == NULL ? 0 : (int)(rest - line);
}

/* The entry on a line of the usual form, numbers of up to eight digits with one blank between for row and column; the
 * next line, or NULL for what is to be read by other means, wrong lines among it. */
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
    /* what must be 0 on a diagonal is looked at elsewhere */
    if ((symmetry == SPMV_SYMMETRY_SKEW || symmetry == SPMV_SYMMETRY_HERMITIAN) && *row == *col)
        return NULL;
    return at == length || (at == length - 1 && line[at] == '\r') ? line + length + 1 : NULL;
}

/* ---------------------------------------------------------------- any line */

FOR_EACH_KIND const char *skip_blanks(const char *p)
{
    return *p == ' ' && !text_is_blank(p[1]) ? p + 1 : text_skip_blanks(p);
}

/* A row or column number at p, from 1 to limit, into *index from 0. */
static const char *parse_index(const struct job *job, struct findings *found, const struct place *place, const char *p,
                               const char *what, int64_t limit, int64_t *index)
{
    const char *const rest = parse_count(p, index);
    if (rest == NULL || *index < 1 || *index > limit)
        return findings_fail_index(found, place, p, what, limit, job->header->size_line);
    *index -= 1;
    return rest;
}

/* Row and column at p, from 0; where the column ends. */
FOR_EACH_KIND const char *parse_indices(const struct job *job, struct findings *found, const struct place *place,
                                        const char *p, int64_t *row, int64_t *col)
{
    const struct mtx_header *const header = job->header;
    const uint64_t stops = decimal_stops(p);
    const int first = decimal_first(stops), second = decimal_first(stops & (stops - 1)), digits = second - first - 1;
    /* the usual: up to eight digits each, one blank between */
    if (first - 1u < 8u && digits - 1u < 8u && text_is_blank(p[first]) &&
        (text_is_blank(p[second]) || p[second] == '\n')) {
        *row = (int64_t)decimal_eight(p + first, first) - 1;
        *col = (int64_t)decimal_eight(p + second, digits) - 1;
        if ((uint64_t)*row < (uint64_t)header->rows && (uint64_t)*col < (uint64_t)header->cols)
            return p + second;
    }
    p = parse_index(job, found, place, p, "row", header->rows, row);
    return p == NULL ? NULL : parse_index(job, found, place, text_skip_blanks(p), "column", header->cols, col);
}

FOR_EACH_KIND const char *parse_value(struct findings *found, const struct place *place, const char *p, const char *end,
                                      spmv_field field, spmv_type type, void *value)
{
    const char *rest = NULL;
    if (field != SPMV_FIELD_INTEGER) {
        rest = type == SPMV_F32 ? decimal_parse_f32(p, decimal_stops(p), value)
                                : decimal_parse_f64(p, decimal_stops(p), value);
    } else {
        const bool negative = *p == '-';
        const int digits = decimal_first(decimal_stops(p + negative));
        /* seven digits are exact in every type */
        if (digits > 0 && digits < 8) {
            rest = p + negative + digits;
            const int64_t n = (int64_t)decimal_eight(rest, digits), integer = negative ? -n : n;
            if (type == SPMV_F32)
                *(float *)value = (float)integer;
            else
                *(double *)value = n == 0 && negative ? -0.0 : (double)integer;
        }
    }
    if (rest != NULL && (*rest == '\n' || text_is_blank(*rest)))
        return rest;
    return findings_value(found, place, p, end, field, type, value);
}

static bool is_zero(spmv_type part, const union value *value, int k)
{
    return part == SPMV_F32 ? value->f32[k] == 0 : value->f64[k] == 0;
}

static void negate(spmv_type part, union value *value, int k)
{
    if (part == SPMV_F32)
        value->f32[k] = -value->f32[k];
    else
        value->f64[k] = -value->f64[k];
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

/* The value at p, of entry (row, col); the byte behind it, or NULL. */
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

/* The entry at p, and what else is on its line: the first byte of the next line, or NULL. field, type and symmetry are
 * constants, so that each kind of file has its own code. */
FOR_EACH_KIND const char *parse_entry(const struct job *job, struct findings *found, const struct place *place,
                                      const char *p, const char *end, spmv_field field, spmv_type type,
                                      spmv_symmetry symmetry, int64_t *row, int64_t *col, union value *value)
{
    p = parse_indices(job, found, place, p, row, col);
    if (p == NULL)
        return NULL;
    if (field != SPMV_FIELD_PATTERN) {
        p = parse_number(found, place, skip_blanks(p), end, field, type, symmetry, *row, *col, value);
        if (p == NULL)
            return NULL;
    }
    if (*p != '\n')
        p = text_skip_blanks(p);
    return *p == '\n' ? p + 1 : findings_fail_extra(found, place, p, job->header);
}

/* Where a tile's entries go: one of both. */
struct target {
    struct coo_buckets *buckets;
    struct coo_writer *writer;
    struct ordered_tile *ordered;
};

FOR_EACH_KIND void parse_tile_as(const struct job *job, const struct text_tile *tile, struct target target,
                                 struct findings *found, spmv_field field, spmv_type type, spmv_symmetry symmetry,
                                 bool in_order)
{
    const size_t size = field == SPMV_FIELD_PATTERN ? 0
                                                    : (type_part(type) == SPMV_F32 ? sizeof(float) : sizeof(double)) *
                                                          (type_is_complex(type) ? 2 : 1);
    const struct coo_shape shape = job->buckets.shape;
    struct place place = {.line = 0};
    const char *const end = tile->end;
    int64_t entries = 0;
    for (const char *p = tile->begin; p < end; place.line++) {
        int64_t row = 0, col = 0;
        union value value = {.f64 = {0, 0}};
        place.line_begin = p;
        const char *next = usual_entry(job->header, p, field, type, symmetry, &row, &col, &value);
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
            next = parse_entry(job, found, &place, p, end, field, type, symmetry, &row, &col, &value);
        }
        if (next != NULL && in_order)
            ordered_append(target.ordered, row, col, &value, size);
        else if (next != NULL && !append(target.buckets, &shape, target.writer, row, col, &value, type, size, symmetry))
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

static void parse_tile(const struct job *job, const struct text_tile *tile, struct target target,
                       struct findings *found)
{
#define SYMMETRIES(field, type)                                                                                        \
    if (target.ordered != NULL)                                                                                        \
        parse_tile_as(job, tile, target, found, field, type, SPMV_SYMMETRY_GENERAL, true);                             \
    else if (job->header->symmetry == SPMV_SYMMETRY_GENERAL)                                                           \
        parse_tile_as(job, tile, target, found, field, type, SPMV_SYMMETRY_GENERAL, false);                            \
    else if (job->header->symmetry == SPMV_SYMMETRY_SYMMETRIC)                                                         \
        parse_tile_as(job, tile, target, found, field, type, SPMV_SYMMETRY_SYMMETRIC, false);                          \
    else if (job->header->symmetry == SPMV_SYMMETRY_SKEW)                                                              \
        parse_tile_as(job, tile, target, found, field, type, SPMV_SYMMETRY_SKEW, false);
#define COMPLEX_SYMMETRIES(type)                                                                                       \
    SYMMETRIES(SPMV_FIELD_COMPLEX, type)                                                                               \
    else parse_tile_as(job, tile, target, found, SPMV_FIELD_COMPLEX, type, SPMV_SYMMETRY_HERMITIAN, false);
    findings_clear(found);
    if (job->header->field == SPMV_FIELD_PATTERN) {
        SYMMETRIES(SPMV_FIELD_PATTERN, SPMV_F64)
    } else if (job->header->field == SPMV_FIELD_INTEGER) {
        if (job->type == SPMV_F32) {
            SYMMETRIES(SPMV_FIELD_INTEGER, SPMV_F32)
        } else {
            SYMMETRIES(SPMV_FIELD_INTEGER, SPMV_F64)
        }
    } else if (job->header->field == SPMV_FIELD_COMPLEX) {
        if (job->type == SPMV_C64) {
            COMPLEX_SYMMETRIES(SPMV_C64)
        } else {
            COMPLEX_SYMMETRIES(SPMV_C128)
        }
    } else if (job->type == SPMV_F32) {
        SYMMETRIES(SPMV_FIELD_REAL, SPMV_F32)
    } else {
        SYMMETRIES(SPMV_FIELD_REAL, SPMV_F64)
    }
#undef COMPLEX_SYMMETRIES
#undef SYMMETRIES
}

/* ---------------------------------------------------------------- a round */

/* The tile's entries into memory of their own, and to their places where these are known; whether all were in order. */
static bool read_in_order(struct job *job, int own, const struct text_tile *tile)
{
    struct findings *const found = &job->found[tile->number];
    struct ordered_tile *const ordered = coo_ordered_take(&job->ordered, own, tile->number,
                                                          (tile->end - tile->begin) / mtx_least_bytes(job->header) + 1);
    if (ordered == NULL) {
        findings_clear(found);
        findings_fail(found, &(struct place){tile->begin, 0}, tile->begin, SPMV_ERROR_MEMORY,
                      "no memory for more entries");
        return false;
    }
    parse_tile(job, tile, (struct target){.ordered = ordered}, found);
    return coo_ordered_done(&job->ordered, own, ordered, found->status == SPMV_OK);
}

static void read_tiles(struct job *job)
{
#pragma omp parallel num_threads(job->threads)
    {
        const int own = omp_get_thread_num();
        struct text_tile tile;
        bool more = true;
        while (more && text_tile_take(&job->tiles, &job->memory[own], &tile)) {
            if (job->in_order) {
                more = read_in_order(job, own, &tile);
            } else {
                parse_tile(job, &tile, (struct target){&job->buckets, &job->buckets.writer[own], NULL},
                           &job->found[tile.number]);
                coo_tile_done(&job->buckets, own, tile.number);
            }
        }
#pragma omp barrier
        if (job->in_order)
            coo_ordered_flush(&job->ordered, own);
    }
}

/* The declared entries end before line content number excess (from 0) of the tile: fails there. */
static spmv_status fail_excess(struct job *job, int number, int64_t excess)
{
    struct text_tile tile;
    struct findings found;
    struct place place = {.line = job->source->line};
    const spmv_status st = text_tile_again(&job->tiles, number, &job->memory[0], &tile);
    if (st != SPMV_OK)
        return st;
    findings_clear(&found);
    for (const char *p = tile.begin; p < tile.end; place.line++) {
        place.line_begin = p;
        p = text_skip_blanks(p);
        if (*p != '\n' && *p != '%' && excess-- == 0) {
            findings_fail_excess(&found, &place, p, job->header);
            break;
        }
        p = (const char *)memchr(p, '\n', (size_t)(tile.end - p)) + 1;
    }
    if (found.status == SPMV_OK) /* other text than before */
        return text_read_failed(job->source, SPMV_ERROR_CHANGED, 0);
    return text_fail(job->source, found.status, found.error_line, found.error_column, "%s", found.sentence);
}

/* After parsing: the first error, or lines, entries and remarks of the round. */
static spmv_status collect(struct job *job, int n)
{
    struct text_source *const source = job->source;
    for (int t = 0; t < n; t++) {
        const struct findings *const found = &job->found[t];
        const int64_t left = job->header->entries - job->entries;
        if (found->entries + found->entry_is_bad > left)
            return fail_excess(job, t, left);
        if (found->status == SPMV_ERROR_MEMORY)
            return context_fail_memory(source->ctx, "entries of a file", (int64_t)job->buckets.entry_size);
        if (found->status != SPMV_OK)
            return text_fail(source, found->status, source->line + found->error_line, found->error_column, "%s",
                             found->sentence);
        remarks_add(&job->rounded, &found->rounded, source->line);
        remarks_add(&job->not_finite, &found->not_finite, source->line);
        source->line += found->lines;
        job->entries += found->entries;
    }
    return SPMV_OK;
}

static spmv_status use_buckets(struct job *job)
{
    const spmv_status st = coo_ordered_to_buckets(&job->ordered, &job->buckets);
    coo_ordered_free(&job->ordered);
    job->in_order = false;
    return st;
}

static spmv_status read_rounds(struct job *job)
{
    spmv_status st = SPMV_OK;
    for (;;) {
        const int most = text_round_begin(&job->tiles);
        int n = 0;
        if (most == 0)
            return text_check_unchanged(job->source);
        if (job->in_order)
            coo_ordered_round(&job->ordered, most);
        else
            TRY(coo_tiles_begin(&job->buckets, most));
        read_tiles(job);
        /* what was parsed comes before what could not be read */
        st = text_round_end(&job->tiles, &n);
        if (st != SPMV_OK)
            return st;
        TRY(collect(job, n));
        if (job->in_order && job->ordered.broken)
            TRY(use_buckets(job));
        TRY(text_tell(job->source));
    }
done:
    return st;
}

static spmv_status check_complete(const struct job *job)
{
    int64_t line = 0, column = 0;
    if (job->entries == job->header->entries)
        return SPMV_OK;
    text_end_position(job->source, &line, &column);
    return text_fail(job->source, SPMV_ERROR_FORMAT, line, column,
                     "the file ends after %lld of the %lld entries declared on line %lld", (long long)job->entries,
                     (long long)job->header->entries, (long long)job->header->size_line);
}

static int threads_for(const struct text_source *source)
{
    const int64_t left = text_left(source);
    return left < 0 || left >= BYTES_WORTH_A_TEAM ? source->ctx->threads : 1;
}

/* Entries with their mirrors. */
static int64_t most_stored(const struct mtx_header *header)
{
    return min_i64(header->entries, INT64_MAX / 2) * (header->symmetry == SPMV_SYMMETRY_GENERAL ? 1 : 2);
}

int64_t coordinates_bytes(const struct text_source *source, const struct mtx_header *header, spmv_type type)
{
    return coo_buckets_bytes(header->rows, header->cols, type, header->field == SPMV_FIELD_PATTERN, most_stored(header),
                             threads_for(source));
}

static spmv_status prepare(struct job *job)
{
    spmv_status st = SPMV_OK;
    void *memory = NULL, *found = NULL;
    const struct mtx_header *const header = job->header;
    job->threads = threads_for(job->source);
    text_tiles_open(job->source, &job->tiles);
    TRY(host_alloc(job->source->ctx, job->threads * (int64_t)sizeof *job->memory, "reading a file", &memory));
    job->memory = memory;
    memset(memory, 0, (size_t)job->threads * sizeof *job->memory);
    TRY(host_alloc(job->source->ctx, TILES_MOST * (int64_t)sizeof *job->found, "reading a file", &found));
    job->found = found;
    /* of a pipe the number is a claim; more buckets than needed do no harm */
    TRY(coo_buckets_begin(job->source->ctx, header->rows, header->cols, job->type, header->field == SPMV_FIELD_PATTERN,
                          most_stored(header), job->threads, &job->buckets));
    /* the matrix is made before there are entries: its size must be that of the text, and no mere claim */
    job->in_order = header->symmetry == SPMV_SYMMETRY_GENERAL && text_is_random(job->source) &&
                    header->rows / 16 <= header->entries;
    if (job->in_order)
        TRY(coo_ordered_begin(job->source->ctx, header->rows, header->cols, job->type,
                              header->field == SPMV_FIELD_PATTERN, header->entries, job->threads, TILES_MOST,
                              &job->ordered));
done:
    return st;
}

static void release(struct job *job)
{
    coo_ordered_free(&job->ordered);
    coo_buckets_free(&job->buckets);
    text_tiles_close(&job->tiles);
    for (int t = 0; job->memory != NULL && t < job->threads; t++)
        text_memory_free(&job->memory[t]);
    host_free(job->memory);
    host_free(job->found);
}

spmv_status coordinates_read(struct text_source *source, const struct mtx_header *header, spmv_type type,
                             int64_t max_bytes, spmv_matrix **matrix, int64_t *duplicates)
{
    spmv_status st = SPMV_OK;
    struct repeats repeats = {0, 0};
    void *memory = NULL;
    *matrix = NULL;
    *duplicates = 0;
    /* too large for a stack that may be a thread's */
    TRY(host_alloc(source->ctx, (int64_t)sizeof(struct job), "reading a file", &memory));
    struct job *const job = memory;
    *job = (struct job){.source = source, .header = header, .type = type};
    st = prepare(job);
    if (st == SPMV_OK)
        st = read_rounds(job);
    if (st == SPMV_OK)
        st = check_complete(job);
    if (st == SPMV_OK)
        st = remarks_warn(source, &job->rounded, &job->not_finite, type);
    if (st == SPMV_OK && job->in_order)
        *matrix = coo_ordered_matrix(&job->ordered);
    else if (st == SPMV_OK)
        st = coo_buckets_matrix(&job->buckets, max_bytes, matrix, &repeats);
    release(job);
    /* the pattern of a mirrored matrix is symmetric: what the entries repeat is what one triangle repeats */
    *duplicates = header->symmetry == SPMV_SYMMETRY_GENERAL ? repeats.all : repeats.lower;
done:
    host_free(memory);
    return st;
}
