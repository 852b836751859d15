/* Reads the entries of a coordinate file. Threads take tiles of the text (text_tiles.h). Entries
 * that come in order go directly to their places (coo_ordered.h), others to buckets
 * (coo_buckets.h), from which the matrix is made. So the text is read once, and there is never a
 * list of all entries.
 *
 * The number of lines and entries before a tile is not known while it is parsed. They are added up
 * between rounds, where errors get their line numbers and the first error is found. Only the tile
 * of the last declared entry may be parsed again.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/text/coordinates.h"

#include <omp.h>

#include "formats/coo/coo_buckets.h"
#include "formats/coo/coo_ordered.h"
#include "formats/coo/rows.h"
#include "formats/io/text/text_tiles.h"
#include "formats/io/text/tile_entries.h"

/* One thread reads this many bytes in a few ms. On a busy machine, waking a team for each round can
 * take as long. */
enum { BYTES_WORTH_A_TEAM = 8 * TEAM_WORTH_ASLEEP };

struct job {
    struct text_source *source;
    const struct mtx_header *header;
    spmv_type type;
    struct tile_kind kind;
    tile_entries_way *parse;
    int threads;
    struct text_tiles tiles;
    struct text_memory *memory; /* of each thread */
    /* all entries so far came in order and are in ordered; otherwise they are in buckets */
    bool in_order;
    struct coo_ordered ordered;
    struct coo_buckets *buckets;
    struct findings *found; /* of each tile of a round */
    int64_t entries;        /* in the tiles of earlier rounds */
    struct remarks rounded, not_finite;
};

/* ---------------------------------------------------------------- a round */

/* Parses a tile into a buffer of its own, and copies it to its place if that is known. Returns
 * whether all entries were in order. */
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
    job->parse(&job->kind, tile, (struct tile_target){.ordered = ordered}, found);
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
                job->parse(&job->kind, &tile, (struct tile_target){job->buckets, &job->buckets->writer[own], NULL},
                           &job->found[tile.number]);
                coo_tile_done(job->buckets, own, tile.number);
            }
        }
#pragma omp barrier
        if (job->in_order)
            coo_ordered_flush(&job->ordered, own);
    }
}

/* Fails at line content number excess (from 0) of the tile, which follows the last declared
 * entry. */
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
    if (found.status == SPMV_OK) /* the text has changed since it was parsed */
        return text_read_failed(job->source, SPMV_ERROR_CHANGED, 0);
    return text_fail(job->source, found.status, found.error_line, found.error_column, "%s", found.sentence);
}

/* After parsing: reports the first error, or adds up lines, entries and remarks of the round. */
static spmv_status collect(struct job *job, int n)
{
    struct text_source *const source = job->source;
    for (int t = 0; t < n; t++) {
        const struct findings *const found = &job->found[t];
        const int64_t left = job->header->entries - job->entries;
        if (found->entries + found->entry_is_bad > left)
            return fail_excess(job, t, left);
        if (found->status == SPMV_ERROR_MEMORY)
            return context_fail_memory(source->ctx, "entries of a file",
                                       coordinates_bytes(source, job->header, job->type, 1));
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
    const spmv_status st = coo_ordered_to_buckets(&job->ordered, job->buckets);
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
            TRY(coo_tiles_begin(job->buckets, most));
        read_tiles(job);
        /* An error in parsed text precedes a read error. */
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

spmv_status coordinates_complete(struct text_source *source, const struct mtx_header *header, int64_t entries)
{
    int64_t line = 0, column = 0;
    if (entries == header->entries)
        return SPMV_OK;
    text_end_position(source, &line, &column);
    return text_fail(source, SPMV_ERROR_FORMAT, line, column,
                     "the file ends after %lld of the %lld entries declared on line %lld", (long long)entries,
                     (long long)header->entries, (long long)header->size_line);
}

static int threads_for(const struct text_source *source)
{
    const int64_t left = text_left(source);
    return left < 0 || left >= BYTES_WORTH_A_TEAM ? source->ctx->threads : 1;
}

int64_t coordinates_most(const struct mtx_header *header)
{
    return min_i64(header->entries, INT64_MAX / 2) * (header->symmetry == SPMV_SYMMETRY_GENERAL ? 1 : 2);
}

int64_t coordinates_bytes(const struct text_source *source, const struct mtx_header *header, spmv_type type, int ranks)
{
    return coo_buckets_bytes_ranks(header->rows, header->cols, type, header->field == SPMV_FIELD_PATTERN,
                                   coordinates_most(header), threads_for(source), ranks);
}

/* Makes the memory of a job for this number of threads. */
static spmv_status open_job(struct text_source *source, const struct mtx_header *header, spmv_type type, int threads,
                            struct coo_buckets *buckets, struct job **made)
{
    spmv_status st = SPMV_OK;
    void *memory = NULL, *found = NULL;
    *made = NULL;
    /* The struct is too large for the stack of a thread. */
    TRY(host_alloc(source->ctx, (int64_t)sizeof(struct job), "reading a file", &memory));
    struct job *const job = memory;
    tile_entries_way *const wide = tile_entries_avx2();
    *job = (struct job){.source = source,
                        .header = header,
                        .type = type,
                        .kind = {header, type, &buckets->shape},
                        .parse = wide ? wide : tile_entries_plain,
                        .threads = threads,
                        .buckets = buckets};
    *made = job;
    text_tiles_open(job->source, &job->tiles);
    TRY(host_alloc(job->source->ctx, job->threads * (int64_t)sizeof *job->memory, "reading a file", &memory));
    job->memory = memory;
    memset(memory, 0, (size_t)job->threads * sizeof *job->memory);
    TRY(host_alloc(job->source->ctx, TILES_MOST * (int64_t)sizeof *job->found, "reading a file", &found));
    job->found = found;
done:
    return st;
}

static void close_job(struct job *job)
{
    if (job == NULL)
        return;
    coo_ordered_free(&job->ordered);
    text_tiles_close(&job->tiles);
    for (int t = 0; job->memory != NULL && t < job->threads; t++)
        text_memory_free(&job->memory[t]);
    host_free_all(job->memory, job->found, job);
}

spmv_status coordinates_read(struct text_source *source, const struct mtx_header *header, spmv_type type,
                             int64_t max_bytes, spmv_matrix **matrix, int64_t *duplicates)
{
    spmv_status st = SPMV_OK;
    const bool pattern = header->field == SPMV_FIELD_PATTERN;
    const int threads = threads_for(source);
    struct repeats repeats = {0, 0};
    struct coo_buckets buckets = {.ctx = NULL};
    struct job *job = NULL;
    *matrix = NULL;
    *duplicates = 0;
    TRY(open_job(source, header, type, threads, &buckets, &job));
    /* The header of a pipe cannot be checked against its length; superfluous buckets do no harm. */
    TRY(coo_buckets_begin(source->ctx, header->rows, header->cols, type, pattern, coordinates_most(header), threads,
                          &buckets));
    /* The arrays of the matrix are allocated before its entries are read, so the length of the text
     * must confirm the declared number. */
    job->in_order =
        header->symmetry == SPMV_SYMMETRY_GENERAL && text_is_random(source) && header->rows / 16 <= header->entries;
    if (job->in_order)
        TRY(coo_ordered_begin(source->ctx, header->rows, header->cols, type, pattern, header->entries, threads,
                              TILES_MOST, &job->ordered));
    TRY(read_rounds(job));
    TRY(coordinates_complete(source, header, job->entries));
    TRY(remarks_warn(source, &job->rounded, &job->not_finite, type));
    if (job->in_order)
        *matrix = coo_ordered_matrix(&job->ordered);
    else
        TRY(coo_buckets_matrix(&buckets, max_bytes, matrix, &repeats));
    /* The pattern of a mirrored matrix is symmetric: repeats in one triangle are the repeats in the
     * file. */
    *duplicates = header->symmetry == SPMV_SYMMETRY_GENERAL ? repeats.all : repeats.lower;
done:
    close_job(job);
    coo_buckets_free(&buckets);
    return st;
}

spmv_status coordinates_parse(struct text_source *source, const struct mtx_header *header, spmv_type type, int part,
                              int parts, int64_t entries_before, struct coo_buckets *buckets,
                              struct coordinates_part *found)
{
    spmv_status st = SPMV_OK;
    struct job *job = NULL;
    const int64_t line = source->line, taken = source->taken, open_line_bytes = source->open_line_bytes;
    *found = (struct coordinates_part){.lines = 0};
    TRY(open_job(source, header, type, buckets->writers, buckets, &job));
    text_tiles_part(&job->tiles, part, parts);
    job->threads = (int)min_i64(job->threads, max_i64(1, (job->tiles.stop - job->tiles.next) / BYTES_WORTH_A_TEAM));
    job->entries = entries_before;
    st = read_rounds(job);
    *found = (struct coordinates_part){.lines = source->line - line,
                                       .entries = job->entries - entries_before,
                                       .rounded = job->rounded,
                                       .not_finite = job->not_finite,
                                       .open_line_bytes = source->open_line_bytes};
    source->taken = taken;
    source->open_line_bytes = open_line_bytes;
done:
    close_job(job);
    return st;
}
