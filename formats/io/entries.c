/* The entries of a text. Each block of the text is cut at line ends into tiles of fixed size. First all threads count
 * the tiles' lines and entries; sums over the tiles then tell each tile the number of its first line and entry, and
 * how much memory it needs; then all threads parse. So a tile knows everything that an error in it needs to say, the
 * tile of the first error is the first with an error, and nothing depends on how many threads there were.
 *
 * The counting pass reads text that is in the cache and costs about a tenth of the parsing; it is what saves a second
 * copy of the entries, or one of their declared number, which nobody has checked yet.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "entries.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "numbers.h"

/* Large enough that a tile's bookkeeping does not show, small enough that 64 of them share a block evenly. */
#ifndef ENTRIES_TILE_BYTES
#define ENTRIES_TILE_BYTES (256 << 10)
#endif
enum { TILE = ENTRIES_TILE_BYTES, TILES = TEXT_BLOCK / TILE + 1, SENTENCE = 384 };

struct tile {
    const char *begin, *end;
    int64_t lines, entries; /* in it */
    int64_t line, entry;    /* before it */
    void *row;              /* where its entries go; NULL where there is nothing to keep */
    int32_t *col;
    char *val;
    int64_t kept;
    struct entries_remark rounded, not_finite;
    spmv_status status; /* of its first error */
    int64_t error_line, error_column;
    char sentence[SENTENCE];
};

/* What all tiles of a text share. */
struct parser {
    const struct mtx_header *header;
    const struct entries_options *options;
    int row_bits;
    size_t value_size; /* 0: none is kept */
};

/* Where the parser of a tile stands. */
struct place {
    const char *line_begin;
    int64_t line;
    int64_t row, col; /* array: of the next entry */
};

static bool opens_comment(const struct parser *parser, char c)
{
    return c == '%' || (c == '#' && parser->options->number_sign_opens);
}

static void count_tile(const struct parser *parser, struct tile *tile)
{
    for (const char *p = tile->begin; p < tile->end; tile->lines++) {
        p = text_skip_blanks(p);
        if (*p != '\n' && !opens_comment(parser, *p))
            tile->entries++;
        p = (const char *)memchr(p, '\n', (size_t)(tile->end - p)) + 1;
    }
}

/* Fails the tile at p; NULL for the caller to return. */
#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
static const char *
tile_fail(struct tile *tile, const struct place *place, const char *p, spmv_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(tile->sentence, sizeof tile->sentence, format, arguments);
    va_end(arguments);
    tile->status = status;
    tile->error_line = place->line;
    tile->error_column = p - place->line_begin + 1;
    return NULL;
}

static void remark(struct entries_remark *remark, const struct place *place, const char *p)
{
    if (remark->count++ == 0) {
        remark->line = place->line;
        remark->column = p - place->line_begin + 1;
    }
}

/* A row or column number at p, from 1 to limit, into *index from 0. */
static inline const char *parse_index(const struct parser *parser, struct tile *tile, const struct place *place,
                                      const char *p, const char *what, int64_t limit, int64_t *index)
{
    const char *const rest = parse_count(p, index);
    if (rest != NULL && *index >= 1 && *index <= limit) {
        *index -= 1;
        return rest;
    }
    if (rest == NULL) {
        char sentence[COUNT_SENTENCE];
        const spmv_status why = explain_count(p, what, sentence);
        return tile_fail(tile, place, p, why, "%s", sentence);
    }
    if (*index == 0)
        return tile_fail(tile, place, p, SPMV_ERROR_FORMAT, "%s 0: rows and columns count from 1", what);
    return tile_fail(tile, place, p, SPMV_ERROR_FORMAT, "%s %lld exceeds the %lld %ss declared on line %lld", what,
                     (long long)*index, (long long)limit, what, (long long)parser->header->size_line);
}

static const char *explain_value(const struct parser *parser, struct tile *tile, const struct place *place,
                                 const char *p, enum number_result result)
{
    char shown[TEXT_SHOWN];
    const char *const end = text_token_end(p);
    if (p == end)
        return tile_fail(tile, place, p, SPMV_ERROR_FORMAT, "the value is missing");
    text_show(p, end, shown);
    if (result == NUMBER_TOO_LARGE)
        return tile_fail(tile, place, p, SPMV_ERROR_LIMIT, "\"%s\" is too large for %s", shown,
                         spmv_type_name(parser->options->type));
    if (parser->header->field == SPMV_FIELD_INTEGER)
        return tile_fail(tile, place, p, SPMV_ERROR_FORMAT, "\"%s\" is not an integer, as the banner says", shown);
    return tile_fail(tile, place, p, SPMV_ERROR_FORMAT, "\"%s\" is not a number", shown);
}

static inline const char *parse_value(const struct parser *parser, struct tile *tile, const struct place *place,
                                      const char *p, void *value)
{
    const spmv_type type = parser->options->type;
    const char *rest = p;
    enum number_remark seen = NUMBER_PLAIN;
    enum number_result result = parser->header->field == SPMV_FIELD_INTEGER
                                    ? number_parse_integer(p, tile->end, type, value, &rest, &seen)
                                    : number_parse(p, tile->end, type, value, &rest, &seen);
    if (result == NUMBER_OK && !text_is_blank(*rest) && *rest != '\n')
        result = NUMBER_MALFORMED;
    if (result != NUMBER_OK)
        return explain_value(parser, tile, place, p, result);
    if (seen == NUMBER_ROUNDED)
        remark(&tile->rounded, place, p);
    else if (seen == NUMBER_NOT_FINITE)
        remark(&tile->not_finite, place, p);
    return rest;
}

static bool is_zero(spmv_type type, const void *value)
{
    return type == SPMV_F32 ? *(const float *)value == 0 : *(const double *)value == 0;
}

static inline void keep_place(const struct parser *parser, struct tile *tile, int64_t row, int64_t col)
{
    if (parser->row_bits == 32)
        ((int32_t *)tile->row)[tile->kept] = (int32_t)row;
    else
        ((int64_t *)tile->row)[tile->kept] = row;
    tile->col[tile->kept] = (int32_t)col;
}

/* "row column value" or, in a pattern, "row column" */
static const char *parse_coordinate(const struct parser *parser, struct tile *tile, const struct place *place,
                                    const char *p)
{
    const struct mtx_header *const header = parser->header;
    int64_t row = 0, col = 0;
    const char *rest = parse_index(parser, tile, place, p, "row", header->rows, &row);
    if (rest != NULL)
        rest = parse_index(parser, tile, place, text_skip_blanks(rest), "column", header->cols, &col);
    if (rest == NULL)
        return NULL;
    if (parser->value_size > 0) {
        const char *const value_text = text_skip_blanks(rest);
        void *const value = tile->val + tile->kept * (int64_t)parser->value_size;
        rest = parse_value(parser, tile, place, value_text, value);
        if (rest != NULL && header->symmetry == SPMV_SYMMETRY_SKEW && row == col &&
            !is_zero(parser->options->type, value))
            return tile_fail(tile, place, value_text, SPMV_ERROR_FORMAT,
                             "the diagonal of a skew-symmetric matrix is 0; here (%lld, %lld) is not",
                             (long long)row + 1, (long long)col + 1);
    }
    keep_place(parser, tile, row, col);
    tile->kept++;
    return rest;
}

/* How many entries an array holds before column col: all of each column, or from (below) the diagonal on. */
static int64_t array_before(const struct mtx_header *header, int64_t col)
{
    switch (header->symmetry) {
    case SPMV_SYMMETRY_SYMMETRIC:
        return col * header->rows - col * (col - 1) / 2;
    case SPMV_SYMMETRY_SKEW:
        return col * (header->rows - 1) - col * (col - 1) / 2;
    default:
        return col * header->rows;
    }
}

static int64_t array_first_row(const struct mtx_header *header, int64_t col)
{
    return header->symmetry == SPMV_SYMMETRY_GENERAL ? 0 : header->symmetry == SPMV_SYMMETRY_SYMMETRIC ? col : col + 1;
}

/* The place of entry number k of an array: the last column with no more than k entries before it. */
static void array_place(const struct mtx_header *header, int64_t k, struct place *place)
{
    int64_t low = 0, high = header->cols - 1;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (array_before(header, middle) <= k)
            low = middle;
        else
            high = middle - 1;
    }
    place->col = low;
    place->row = array_first_row(header, low) + k - array_before(header, low);
}

static void array_advance(const struct mtx_header *header, struct place *place)
{
    if (++place->row == header->rows)
        place->row = array_first_row(header, ++place->col);
}

/* "value" */
static const char *parse_array(const struct parser *parser, struct tile *tile, struct place *place, const char *p)
{
    void *const value = tile->val + tile->kept * (int64_t)parser->value_size;
    const char *const rest = parse_value(parser, tile, place, p, value);
    if (rest == NULL)
        return NULL;
    if (parser->options->dense) {
        tile->kept++;
        return rest;
    }
    if (!is_zero(parser->options->type, value)) {
        keep_place(parser, tile, place->row, place->col);
        tile->kept++;
    }
    array_advance(parser->header, place);
    return rest;
}

/* A line after the last entry that was declared. */
static void fail_excess(const struct parser *parser, struct tile *tile, const struct place *place, const char *p)
{
    const struct mtx_header *const header = parser->header;
    char shown[TEXT_SHOWN];
    if ((*p >= '0' && *p <= '9') || *p == '-' || *p == '+' || *p == '.')
        tile_fail(tile, place, p, SPMV_ERROR_FORMAT, "more entries than the %lld declared on line %lld",
                  (long long)header->entries, (long long)header->size_line);
    else
        tile_fail(tile, place, p, SPMV_ERROR_FORMAT,
                  "trailing text \"%s\" after the %lld entries declared on line %lld",
                  text_show(p, text_token_end(p), shown), (long long)header->entries, (long long)header->size_line);
}

/* Parses the entry at p and what else is on its line; the first byte of the next line, or NULL. */
static const char *parse_line(const struct parser *parser, struct tile *tile, struct place *place, const char *p)
{
    const bool array = parser->header->array;
    const char *rest = array ? parse_array(parser, tile, place, p) : parse_coordinate(parser, tile, place, p);
    if (rest == NULL)
        return NULL;
    rest = text_skip_blanks(rest);
    if (*rest == '\n')
        return rest + 1;
    char shown[TEXT_SHOWN];
    return tile_fail(tile, place, rest, SPMV_ERROR_FORMAT, "extra text \"%s\" after the %s",
                     text_show(rest, text_token_end(rest), shown),
                     array                    ? "number: one a line"
                     : parser->value_size > 0 ? "entry: row, column and value"
                                              : "entry: row and column of a pattern");
}

static void parse_tile(const struct parser *parser, struct tile *tile)
{
    const struct mtx_header *const header = parser->header;
    struct place place = {.line = tile->line};
    int64_t entry = tile->entry;
    if (header->array && !parser->options->dense && entry < header->entries)
        array_place(header, entry, &place);
    for (const char *p = tile->begin; p != NULL && p < tile->end; place.line++) {
        place.line_begin = p;
        p = text_skip_blanks(p);
        if (*p == '\n') {
            p++;
        } else if (opens_comment(parser, *p)) {
            p = (const char *)memchr(p, '\n', (size_t)(tile->end - p)) + 1;
        } else if (entry++ == header->entries) {
            fail_excess(parser, tile, &place, p);
            return;
        } else {
            p = parse_line(parser, tile, &place, p);
        }
    }
}

/* Cuts [begin, end) at line ends; the number of tiles. */
static int cut_tiles(const char *begin, const char *end, struct tile *tiles)
{
    int n = 0;
    while (begin < end) {
        const char *stop = end;
        if (end - begin > TILE)
            stop = (const char *)memchr(begin + TILE - 1, '\n', (size_t)(end - begin - TILE + 1)) + 1;
        memset(&tiles[n], 0, offsetof(struct tile, sentence));
        tiles[n].begin = begin;
        tiles[n++].end = stop;
        begin = stop;
    }
    return n;
}

/* Memory for what a tile keeps: rows, then columns, then values, in one piece that chunk->row or ->val begins. */
static spmv_status give_memory(struct text_source *source, const struct parser *parser, struct tile *tile,
                               struct entries *entries)
{
    const int64_t n = tile->entries;
    const bool places = !parser->options->dense;
    const int64_t row_bytes = places ? ceil_divide(n * (parser->row_bits / 8), 8) * 8 : 0;
    const int64_t col_bytes = places ? ceil_divide(n * (int64_t)sizeof(int32_t), 8) * 8 : 0;
    const int64_t bytes = row_bytes + col_bytes + n * (int64_t)parser->value_size;
    void *memory = NULL;
    if (bytes > parser->options->max_bytes - entries->bytes)
        return context_fail(source->ctx, SPMV_ERROR_MEMORY,
                            "%.480s: the entries up to line %lld need %lld bytes of memory; %lld are allowed",
                            source->name, (long long)(tile->line + tile->lines - 1),
                            (long long)(entries->bytes + bytes), (long long)parser->options->max_bytes);
    const spmv_status st = host_alloc(source->ctx, bytes, "entries of a file", &memory);
    if (st != SPMV_OK)
        return st;
    entries->bytes += bytes;
    if (places && n > 0) {
        tile->row = memory;
        tile->col = (int32_t *)((char *)memory + row_bytes);
    }
    if (parser->value_size > 0 && n > 0)
        tile->val = (char *)memory + row_bytes + col_bytes;
    entries->chunk[entries->chunks++] = (struct coo_chunk){.row = tile->row, .col = tile->col, .val = tile->val};
    return SPMV_OK;
}

static spmv_status make_room(struct text_source *source, int64_t chunks, struct entries *entries)
{
    if (entries->chunks + chunks <= entries->room)
        return SPMV_OK;
    const int64_t room = 2 * (entries->chunks + chunks);
    struct coo_chunk *const larger = realloc(entries->chunk, (size_t)room * sizeof *larger);
    if (larger == NULL)
        return context_fail_memory(source->ctx, "entries of a file", room * (int64_t)sizeof *larger);
    entries->chunk = larger;
    entries->room = room;
    return SPMV_OK;
}

/* Lines and entries before each tile, and memory for it. */
static spmv_status prepare_tiles(struct text_source *source, const struct parser *parser, int n, struct tile *tiles,
                                 struct entries *entries)
{
    int64_t line = source->line, entry = entries->n;
    spmv_status st = make_room(source, n, entries);
    for (int t = 0; t < n && st == SPMV_OK; t++) {
        tiles[t].line = line;
        tiles[t].entry = entry;
        line += tiles[t].lines;
        entry += tiles[t].entries;
        st = give_memory(source, parser, &tiles[t], entries);
    }
    return st;
}

static void add_remark(struct entries_remark *sum, const struct entries_remark *remark)
{
    if (sum->count == 0)
        *sum = *remark;
    else
        sum->count += remark->count;
}

/* After parsing: the first error, or the sizes of the new chunks. */
static spmv_status collect_tiles(struct text_source *source, int n, const struct tile *tiles, struct entries *entries)
{
    struct coo_chunk *chunk = entries->chunk + entries->chunks - n;
    for (int t = 0; t < n; t++) {
        const struct tile *const tile = &tiles[t];
        if (tile->status != SPMV_OK)
            return text_fail(source, tile->status, tile->error_line, tile->error_column, "%s", tile->sentence);
        chunk[t].n = tile->kept;
        entries->n += tile->entries;
        add_remark(&entries->rounded, &tile->rounded);
        add_remark(&entries->not_finite, &tile->not_finite);
    }
    return SPMV_OK;
}

/* One thread reads so much in some 5 ms, which waking a team for each loop can cost on a machine that others use as
 * well. */
enum { BYTES_WORTH_A_TEAM = 2 << 20 };

static spmv_status read_block(struct text_source *source, const struct parser *parser, const char *begin,
                              const char *end, struct tile *tiles, struct entries *entries)
{
    const int threads = end - begin >= BYTES_WORTH_A_TEAM ? source->ctx->threads : 1;
    const int n = cut_tiles(begin, end, tiles);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int t = 0; t < n; t++)
        count_tile(parser, &tiles[t]);
    spmv_status st = prepare_tiles(source, parser, n, tiles, entries);
    if (st != SPMV_OK)
        return st;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int t = 0; t < n; t++)
        parse_tile(parser, &tiles[t]);
    st = collect_tiles(source, n, tiles, entries);
    if (st == SPMV_OK)
        text_skip(source, end, tiles[n - 1].line + tiles[n - 1].lines - source->line);
    return st;
}

static spmv_status check_complete(struct text_source *source, const struct mtx_header *header,
                                  const struct entries *entries)
{
    int64_t line = 0, column = 0;
    if (header->size_line == 0 || entries->n == header->entries)
        return SPMV_OK;
    text_end_position(source, &line, &column);
    return text_fail(source, SPMV_ERROR_FORMAT, line, column,
                     "the file ends after %lld of the %lld entries declared on line %lld", (long long)entries->n,
                     (long long)header->entries, (long long)header->size_line);
}

spmv_status entries_read(struct text_source *source, const struct mtx_header *header,
                         const struct entries_options *options, struct entries *entries)
{
    spmv_status st = SPMV_OK;
    const struct parser parser = {
        .header = header,
        .options = options,
        .row_bits = header->rows <= INT32_MAX ? 32 : 64,
        .value_size = header->field == SPMV_FIELD_PATTERN ? 0 : spmv_type_size(options->type),
    };
    void *tiles = NULL;
    *entries = (struct entries){.row_bits = parser.row_bits};
    TRY(host_alloc(source->ctx, TILES * (int64_t)sizeof(struct tile), "reading a file", &tiles));
    for (;;) {
        const char *begin = NULL, *end = NULL;
        TRY(text_block(source, &begin, &end));
        if (begin == NULL)
            break;
        TRY(read_block(source, &parser, begin, end, tiles, entries));
    }
    TRY(check_complete(source, header, entries));
done:
    host_free(tiles);
    return st;
}

void entries_free(struct entries *entries)
{
    for (int64_t c = 0; c < entries->chunks; c++) {
        const struct coo_chunk *const chunk = &entries->chunk[c];
        host_free((void *)(chunk->row != NULL ? chunk->row : chunk->val));
    }
    free(entries->chunk);
    *entries = (struct entries){.n = 0};
}

static spmv_status warn(const struct text_source *source, const struct entries_remark *remark, const char *what,
                        const char *type)
{
    if (remark->count == 0)
        return SPMV_OK;
    return context_warn(source->ctx, "%.300s:%lld:%lld: %s%s (%lld such numbers in the file)", source->name,
                        (long long)remark->line, (long long)remark->column, what, type, (long long)remark->count);
}

spmv_status entries_warn(const struct text_source *source, const struct entries *entries, spmv_type type)
{
    const spmv_status st =
        warn(source, &entries->rounded, "this integer was rounded: it is not one of ", spmv_type_name(type));
    return st != SPMV_OK ? st : warn(source, &entries->not_finite, "this value is not finite", "");
}
