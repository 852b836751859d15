/* Reads the numbers of an array, or of lines with the same number of values each. Threads take
 * tiles of the text (text_tiles.h) and parse each into memory of its own. Between rounds, when the
 * number of values before each tile is known, they are copied to their places, and lines, remarks
 * and the first error are determined. So the text is read once.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/text/entries.h"

#include <omp.h>

#include "core/reals.h"
#include "formats/io/text/text_tiles.h"
#include "formats/matrix_internal.h"

/* One thread reads this many bytes in some 5 ms. On a busy machine, waking a team for each round
 * can take as long. */
enum { BYTES_WORTH_A_TEAM = 8 * TEAM_WORTH_ASLEEP };

/* The numbers of one tile. */
struct parsed {
    char *values;
    int64_t n, room;
};

struct job {
    struct text_source *source;
    const struct mtx_header *header;
    const struct entries_options *options;
    size_t value_size;
    int threads;
    struct text_tiles tiles;
    struct text_memory *memory; /* of each thread */
    struct findings *found;     /* of each tile of a round */
    struct parsed *parsed;      /* of each tile of a round */
    int64_t room;               /* numbers that fit in entries->values */
    struct entries *entries;
};

/* ---------------------------------------------------------------- a tile */

static bool opens_comment(const struct job *job, char c)
{
    return c == '%' || (c == '#' && job->options->number_sign_opens);
}

/* Makes room for one more number. */
static bool parsed_grow(struct parsed *parsed, size_t value_size)
{
    enum { FIRST = 1024 };
    void *larger = NULL;
    if (parsed->n < parsed->room)
        return true;
    const int64_t room = max_i64(FIRST, 2 * parsed->room);
    if (host_alloc(NULL, room * (int64_t)value_size, "", &larger) != SPMV_OK)
        return false;
    if (parsed->n > 0)
        memcpy(larger, parsed->values, (size_t)parsed->n * value_size);
    host_free(parsed->values);
    parsed->values = larger;
    parsed->room = room;
    return true;
}

/* Parses the number at p into value. Returns the byte after it, or NULL. */
static const char *parse_number(const struct job *job, struct findings *found, const struct place *place, const char *p,
                                const char *end, char *value)
{
    const spmv_field field = job->header->field;
    const spmv_type part = type_part(job->options->type);
    p = findings_value(found, place, p, end, field, part, value);
    if (p == NULL || field != SPMV_FIELD_COMPLEX)
        return p;
    p = text_skip_blanks(p);
    if (*p == '\n')
        return findings_fail_part(found, place, p);
    return findings_value(found, place, p, end, field, part, value + spmv_type_size(part));
}

/* Parses the numbers from p to the end of the line. Returns the first byte of the next line, or
 * NULL. */
static const char *parse_line(const struct job *job, struct findings *found, struct parsed *parsed,
                              const struct place *place, const char *p, const char *end)
{
    const int64_t most = job->options->per_line;
    for (int64_t k = 0; *p != '\n'; k++) {
        if (most > 0 && k == most)
            return findings_fail_extra(found, place, p, job->header);
        if (k == 1 && most == 0)
            findings_several(found, place, p);
        if (!parsed_grow(parsed, job->value_size))
            return findings_fail(found, place, p, SPMV_ERROR_MEMORY, "no memory for more numbers");
        p = parse_number(job, found, place, p, end, parsed->values + parsed->n * (int64_t)job->value_size);
        if (p == NULL)
            return NULL;
        parsed->n++;
        p = text_skip_blanks(p);
        if (*p == '\n' && k + 1 < most)
            return findings_fail(found, place, p, SPMV_ERROR_FORMAT, "the line ends after %lld of %lld numbers",
                                 (long long)(k + 1), (long long)most);
    }
    return p + 1;
}

static void parse_tile(const struct job *job, const struct text_tile *tile, struct parsed *parsed,
                       struct findings *found)
{
    struct place place = {.line = 0};
    const char *const end = tile->end;
    findings_clear(found);
    parsed->n = 0;
    for (const char *p = tile->begin; p < end; place.line++) {
        place.line_begin = p;
        p = text_skip_blanks(p);
        if (*p == '\n')
            p++;
        else if (opens_comment(job, *p))
            p = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
        else
            p = parse_line(job, found, parsed, &place, p, end);
        if (p == NULL) {
            found->entry_is_bad = true;
            break;
        }
    }
    found->entries = parsed->n;
    found->lines = place.line;
    if (tile->too_long && found->status == SPMV_OK)
        findings_fail(found, &(struct place){end, place.line}, end, SPMV_ERROR_LIMIT, "a line of more than %lld bytes",
                      (long long)TEXT_BLOCK - 1);
}

/* ---------------------------------------------------------------- a round */

/* Finds a word (numbered from 0) of a tile of the round that has ended. *p: its position. */
static spmv_status find_word(struct job *job, int number, int64_t word, struct place *place, const char **p)
{
    struct text_tile tile;
    const spmv_status st = text_tile_again(&job->tiles, number, &job->memory[0], &tile);
    if (st != SPMV_OK)
        return st;
    *place = (struct place){.line = job->source->line};
    for (const char *q = tile.begin; q < tile.end; place->line++) {
        place->line_begin = q;
        q = text_skip_blanks(q);
        for (bool comment = opens_comment(job, *q); *q != '\n' && !comment; q = text_skip_blanks(text_token_end(q))) {
            *p = q;
            if (word-- == 0)
                return SPMV_OK;
        }
        q = (const char *)memchr(q, '\n', (size_t)(tile.end - q)) + 1;
    }
    /* the text has changed since it was parsed */
    return text_read_failed(job->source, SPMV_ERROR_CHANGED, 0);
}

static int64_t words_of(const struct job *job, int64_t numbers)
{
    return job->header->field == SPMV_FIELD_COMPLEX ? 2 * numbers : numbers;
}

static spmv_status fail_at(struct job *job, const struct findings *found)
{
    return text_fail(job->source, found->status, found->error_line, found->error_column, "%s", found->sentence);
}

/* Fails at number excess (from 0) of the tile, which follows the last declared entry. */
static spmv_status fail_excess(struct job *job, int tile, int64_t excess)
{
    struct findings found;
    struct place place;
    const char *p = NULL;
    const spmv_status st = find_word(job, tile, words_of(job, excess), &place, &p);
    if (st != SPMV_OK)
        return st;
    findings_clear(&found);
    findings_fail_excess(&found, &place, p, job->header);
    return fail_at(job, &found);
}

static bool imaginary_is_zero(const struct job *job, const char *value)
{
    const spmv_type part = type_part(job->options->type);
    union real im;
    memcpy(&im, value + spmv_type_size(part), spmv_type_size(part));
    return real_at(part, &im, 0) == 0;
}

/* Fails at the first number of the tile that is on a hermitian diagonal and is not real. */
static spmv_status check_diagonal(struct job *job, int tile)
{
    const struct mtx_header *const header = job->header;
    const struct parsed *const parsed = &job->parsed[tile];
    const int64_t first = job->entries->n;
    if (header->symmetry != SPMV_SYMMETRY_HERMITIAN || parsed->n == 0)
        return SPMV_OK;
    const struct array_cell cell = array_cell(header, first);
    for (int64_t col = cell.row == cell.col ? cell.col : cell.col + 1; col < header->cols; col++) {
        const int64_t k = array_before(header, col) - first;
        if (k >= parsed->n)
            break;
        if (!imaginary_is_zero(job, parsed->values + k * (int64_t)job->value_size)) {
            struct findings found;
            struct place place;
            const char *p = NULL;
            const spmv_status st = find_word(job, tile, words_of(job, k) + 1, &place, &p);
            if (st != SPMV_OK)
                return st;
            findings_clear(&found);
            findings_fail_diagonal(&found, &place, p, header->symmetry, col);
            return fail_at(job, &found);
        }
    }
    return SPMV_OK;
}

/* Makes room for n numbers in all. */
static spmv_status make_room(struct job *job, int64_t n)
{
    struct entries *const entries = job->entries;
    const struct text_source *const source = job->source;
    const int64_t size = (int64_t)job->value_size, most = job->options->max_bytes / size;
    void *larger = NULL;
    if (n <= job->room)
        return SPMV_OK;
    if (n > most)
        return context_fail(source->ctx, SPMV_ERROR_MEMORY,
                            "%.480s: the numbers up to line %lld need %lld bytes of memory; %lld are allowed",
                            source->name, (long long)(source->line - 1), (long long)(n * size),
                            (long long)job->options->max_bytes);
    const int64_t room = min_i64(min_i64(max_i64(n, 2 * job->room), most), max_i64(n, job->header->entries));
    const spmv_status st = host_alloc(source->ctx, room * size, "numbers of a file", &larger);
    if (st != SPMV_OK)
        return st;
    if (entries->n > 0)
        memcpy(larger, entries->values, (size_t)(entries->n * size));
    host_free(entries->values);
    entries->values = larger;
    job->room = room;
    return SPMV_OK;
}

/* After parsing: reports the first error, or copies the numbers to their places. */
static spmv_status collect(struct job *job, int n)
{
    struct text_source *const source = job->source;
    struct entries *const entries = job->entries;
    const int64_t before = entries->n, size = (int64_t)job->value_size;
    int64_t place[TILES_MOST];
    for (int t = 0; t < n; t++) {
        const struct findings *const found = &job->found[t];
        const int64_t left = job->header->entries - entries->n;
        const bool excess = found->entries + found->entry_is_bad > left;
        job->parsed[t].n = min_i64(found->entries, left);
        spmv_status st = check_diagonal(job, t);
        if (st == SPMV_OK && excess)
            st = fail_excess(job, t, left);
        if (st != SPMV_OK)
            return st;
        if (found->status == SPMV_ERROR_MEMORY)
            return context_fail_memory(source->ctx, "numbers of a file", (entries->n + found->entries + 1) * size);
        if (found->status != SPMV_OK)
            return text_fail(source, found->status, source->line + found->error_line, found->error_column, "%s",
                             found->sentence);
        remarks_add(&entries->rounded, &found->rounded, source->line);
        remarks_add(&entries->not_finite, &found->not_finite, source->line);
        remarks_add(&entries->several, &found->several, source->line);
        source->line += found->lines;
        place[t] = entries->n;
        entries->n += found->entries;
    }
    const int64_t after = entries->n;
    entries->n = before;
    const spmv_status st = make_room(job, after);
    if (st != SPMV_OK)
        return st;
    entries->n = after;
#pragma omp parallel for num_threads(host_team(source->ctx, after - before)) schedule(dynamic, 1)
    for (int t = 0; t < n; t++)
        if (job->parsed[t].n > 0)
            memcpy((char *)entries->values + place[t] * size, job->parsed[t].values, (size_t)(job->parsed[t].n * size));
    return SPMV_OK;
}

static void read_tiles(struct job *job)
{
#pragma omp parallel num_threads(job->threads)
    {
        struct text_memory *const memory = &job->memory[omp_get_thread_num()];
        struct text_tile tile;
        while (text_tile_take(&job->tiles, memory, &tile))
            parse_tile(job, &tile, &job->parsed[tile.number], &job->found[tile.number]);
    }
}

static spmv_status read_rounds(struct job *job)
{
    spmv_status st = SPMV_OK;
    while (text_round_begin(&job->tiles) > 0) {
        int n = 0;
        read_tiles(job);
        /* An error in parsed text precedes a read error. */
        const spmv_status read = text_round_end(&job->tiles, &n);
        if (read != SPMV_OK)
            return read;
        TRY(collect(job, n));
        TRY(text_tell(job->source));
    }
done:
    return st;
}

static spmv_status check_complete(const struct job *job)
{
    int64_t line = 0, column = 0;
    if (job->header->size_line == 0 || job->entries->n == job->header->entries)
        return SPMV_OK;
    text_end_position(job->source, &line, &column);
    return text_fail(job->source, SPMV_ERROR_FORMAT, line, column,
                     "the file ends after %lld of the %lld entries declared on line %lld", (long long)job->entries->n,
                     (long long)job->header->entries, (long long)job->header->size_line);
}

static spmv_status prepare(struct job *job)
{
    spmv_status st = SPMV_OK;
    struct text_source *const source = job->source;
    void *memory = NULL, *found = NULL, *parsed = NULL;
    const int64_t left = text_left(source);
    job->threads = left < 0 || left >= BYTES_WORTH_A_TEAM ? source->ctx->threads : 1;
    text_tiles_open(source, &job->tiles);
    TRY(host_alloc(source->ctx, job->threads * (int64_t)sizeof *job->memory, "reading a file", &memory));
    job->memory = memory;
    memset(memory, 0, (size_t)job->threads * sizeof *job->memory);
    TRY(host_alloc(source->ctx, TILES_MOST * (int64_t)sizeof *job->parsed, "reading a file", &parsed));
    job->parsed = parsed;
    memset(parsed, 0, TILES_MOST * sizeof *job->parsed);
    TRY(host_alloc(source->ctx, TILES_MOST * (int64_t)sizeof *job->found, "reading a file", &found));
    job->found = found;
    /* Not for a pipe, where the length of the text cannot confirm the declared number. */
    if (left >= 0 && job->header->size_line > 0)
        TRY(make_room(job, job->header->entries));
done:
    return st;
}

static void release(struct job *job)
{
    text_tiles_close(&job->tiles);
    for (int t = 0; job->memory != NULL && t < job->threads; t++)
        text_memory_free(&job->memory[t]);
    for (int t = 0; job->parsed != NULL && t < TILES_MOST; t++)
        host_free(job->parsed[t].values);
    host_free_all(job->memory, job->parsed, job->found);
}

spmv_status entries_read(struct text_source *source, const struct mtx_header *header,
                         const struct entries_options *options, struct entries *entries)
{
    spmv_status st = SPMV_OK;
    void *memory = NULL;
    *entries = (struct entries){.n = 0};
    /* The struct is too large for the stack of a thread. */
    TRY(host_alloc(source->ctx, (int64_t)sizeof(struct job), "reading a file", &memory));
    struct job *const job = memory;
    *job = (struct job){.source = source,
                        .header = header,
                        .options = options,
                        .value_size = spmv_type_size(options->type),
                        .entries = entries};
    st = prepare(job);
    if (st == SPMV_OK)
        st = read_rounds(job);
    if (st == SPMV_OK)
        st = check_complete(job);
    if (st == SPMV_OK)
        st = remarks_warn(source, &entries->rounded, &entries->not_finite, options->type);
    if (st == SPMV_OK && header->rows != 1 && header->cols != 1)
        st = remarks_warn_several(source, &entries->several);
    release(job);
done:
    host_free(memory);
    return st;
}

void entries_free(struct entries *entries)
{
    host_free(entries->values);
    *entries = (struct entries){.n = 0};
}
