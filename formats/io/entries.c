/* The entries of an array, and numbers one a line. Each block of the text is cut at line ends into tiles of fixed size.
 * First all threads count the tiles' lines and entries; sums over the tiles then tell each tile the number of its first
 * line and entry, and how much memory it needs; then all threads parse. So a tile knows everything that an error in it
 * needs to say, the tile of the first error is the first with an error, and nothing depends on how many threads there
 * were.
 *
 * The counting pass reads text that is in the cache and costs about a tenth of the parsing: the place of an array's
 * entry follows from its number.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "entries.h"

#include <stdlib.h>

/* Large enough that a tile's bookkeeping does not show, small enough that 64 of them share a block evenly. */
#ifndef ENTRIES_TILE_BYTES
#define ENTRIES_TILE_BYTES (256 << 10)
#endif
enum { TILE = ENTRIES_TILE_BYTES, TILES = TEXT_BLOCK / TILE + 1 };

struct tile {
    const char *begin, *end;
    int64_t lines, entries; /* in it */
    int64_t line, entry;    /* before it */
    void *row;              /* where its entries go; NULL where there is nothing to keep */
    int32_t *col;
    char *val;
    int64_t kept;
    struct findings found;
};

/* What all tiles of a text share. */
struct parser {
    const struct mtx_header *header;
    const struct entries_options *options;
    int row_bits;
    size_t value_size;
};

/* The cell of the next entry. */
struct cell {
    int64_t row, col;
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

static bool part_is_zero(spmv_type part, const void *value)
{
    return part == SPMV_F32 ? *(const float *)value == 0 : *(const double *)value == 0;
}

/* The imaginary part of a complex value. */
static void *second_part(spmv_type type, void *value)
{
    return (char *)value + spmv_type_size(type_part(type));
}

static bool is_zero(spmv_type type, void *value)
{
    return part_is_zero(type_part(type), value) &&
           (!type_is_complex(type) || part_is_zero(type_part(type), second_part(type, value)));
}

static void keep_cell(const struct parser *parser, struct tile *tile, const struct cell *cell)
{
    if (parser->row_bits == 32)
        ((int32_t *)tile->row)[tile->kept] = (int32_t)cell->row;
    else
        ((int64_t *)tile->row)[tile->kept] = cell->row;
    tile->col[tile->kept] = (int32_t)cell->col;
}

/* How many entries an array holds before column col: all of each column, or from (below) the diagonal on. */
static int64_t array_before(const struct mtx_header *header, int64_t col)
{
    switch (header->symmetry) {
    case SPMV_SYMMETRY_SYMMETRIC:
    case SPMV_SYMMETRY_HERMITIAN:
        return col * header->rows - col * (col - 1) / 2;
    case SPMV_SYMMETRY_SKEW:
        return col * (header->rows - 1) - col * (col - 1) / 2;
    default:
        return col * header->rows;
    }
}

static int64_t array_first_row(const struct mtx_header *header, int64_t col)
{
    return header->symmetry == SPMV_SYMMETRY_GENERAL ? 0 : mtx_keeps_diagonal(header->symmetry) ? col : col + 1;
}

/* The cell of entry number k: the last column with no more than k entries before it. */
static struct cell array_cell(const struct mtx_header *header, int64_t k)
{
    int64_t low = 0, high = header->cols - 1;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (array_before(header, middle) <= k)
            low = middle;
        else
            high = middle - 1;
    }
    return (struct cell){array_first_row(header, low) + k - array_before(header, low), low};
}

static void array_advance(const struct mtx_header *header, struct cell *cell)
{
    if (++cell->row == header->rows)
        cell->row = array_first_row(header, ++cell->col);
}

/* The value at p; the byte behind it, or NULL. */
static const char *parse_value(const struct parser *parser, struct findings *found, const struct place *place,
                               const struct cell *cell, const char *p, const char *end, void *value)
{
    const struct mtx_header *const header = parser->header;
    const spmv_type type = parser->options->type;
    p = findings_value(found, place, p, end, header->field, type_part(type), value);
    if (p == NULL || header->field != SPMV_FIELD_COMPLEX)
        return p;
    const char *const second = text_skip_blanks(p);
    if (*second == '\n')
        return findings_fail_part(found, place, second);
    p = findings_value(found, place, second, end, header->field, type_part(type), second_part(type, value));
    if (p != NULL && header->symmetry == SPMV_SYMMETRY_HERMITIAN && cell->row == cell->col &&
        !part_is_zero(type_part(type), second_part(type, value)))
        return findings_fail_diagonal(found, place, second, header->symmetry, cell->row);
    return p;
}

/* Parses the value at p and what else is on its line; the first byte of the next line, or NULL. */
static const char *parse_line(const struct parser *parser, struct tile *tile, const struct place *place,
                              struct cell *cell, const char *p)
{
    const struct mtx_header *const header = parser->header;
    void *const value = tile->val + tile->kept * (int64_t)parser->value_size;
    p = parse_value(parser, &tile->found, place, cell, p, tile->end, value);
    if (p == NULL)
        return NULL;
    p = text_skip_blanks(p);
    if (*p != '\n')
        return findings_fail_extra(&tile->found, place, p, header);
    if (parser->options->dense) {
        tile->kept++;
        return p + 1;
    }
    if (!is_zero(parser->options->type, value)) {
        keep_cell(parser, tile, cell);
        tile->kept++;
    }
    array_advance(header, cell);
    return p + 1;
}

static void parse_tile(const struct parser *parser, struct tile *tile)
{
    const struct mtx_header *const header = parser->header;
    struct place place = {.line = 0};
    struct cell cell = {0, 0};
    int64_t entry = tile->entry;
    if (!parser->options->dense && entry < header->entries)
        cell = array_cell(header, entry);
    for (const char *p = tile->begin; p != NULL && p < tile->end; place.line++) {
        place.line_begin = p;
        p = text_skip_blanks(p);
        if (*p == '\n')
            p++;
        else if (opens_comment(parser, *p))
            p = (const char *)memchr(p, '\n', (size_t)(tile->end - p)) + 1;
        else if (entry++ == header->entries)
            p = findings_fail_excess(&tile->found, &place, p, header);
        else
            p = parse_line(parser, tile, &place, &cell, p);
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
        tiles[n] = (struct tile){.begin = begin};
        findings_clear(&tiles[n].found);
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
    if (n > 0)
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

/* After parsing: the first error, or the sizes of the new chunks. */
static spmv_status collect_tiles(struct text_source *source, int n, const struct tile *tiles, struct entries *entries)
{
    struct coo_chunk *chunk = entries->chunk + entries->chunks - n;
    for (int t = 0; t < n; t++) {
        const struct tile *const tile = &tiles[t];
        if (tile->found.status != SPMV_OK)
            return text_fail(source, tile->found.status, tile->line + tile->found.error_line, tile->found.error_column,
                             "%s", tile->found.sentence);
        chunk[t].n = tile->kept;
        entries->n += tile->entries;
        remarks_add(&entries->rounded, &tile->found.rounded, tile->line);
        remarks_add(&entries->not_finite, &tile->found.not_finite, tile->line);
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
        .value_size = spmv_type_size(options->type),
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
