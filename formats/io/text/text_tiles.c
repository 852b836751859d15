/* Tiles of a text. A tile of a file has the lines that begin in its TEXT_TILE bytes. So each thread
 * finds the ends of its tile by itself, with one read that begins a byte early and ends a little
 * late.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/text/text_tiles.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Read beyond a tile. Most lines are shorter, so the end of the tile's last line is read too. */
enum { BEYOND = 256 };

/* Limit of a stream's round, because long lines make long tiles. */
enum { ROUND_BYTES = 2 * TILES_OF_STREAM * TEXT_TILE };

void text_memory_free(struct text_memory *memory)
{
    host_free(memory->at == NULL ? NULL : memory->at - TEXT_PADDING);
    *memory = (struct text_memory){NULL, 0};
}

/* Grows the memory to at least bytes, with padding on both sides. Keeps the first kept bytes. */
static bool memory_grow(struct text_memory *memory, int64_t bytes, int64_t kept)
{
    void *larger = NULL;
    if (bytes <= memory->bytes)
        return true;
    const int64_t room = bytes + bytes / 2;
    if (host_alloc(NULL, room + 2 * TEXT_PADDING, "", &larger) != SPMV_OK)
        return false;
    char *const at = (char *)larger + TEXT_PADDING;
    if (kept > 0)
        memcpy(at, memory->at, (size_t)kept);
    text_memory_free(memory);
    *memory = (struct text_memory){at, room};
    return true;
}

void text_tiles_open(struct text_source *source, struct text_tiles *tiles)
{
    *tiles = (struct text_tiles){.source = source, .status = SPMV_OK};
    tiles->stream = !text_is_random(source);
    tiles->first = tiles->next = source->taken - (source->full - source->next) - (source->open_line_bytes > 0 ? -1 : 0);
    tiles->stop = source->total;
    pthread_mutex_init(&tiles->lock, NULL);
}

void text_tiles_part(struct text_tiles *tiles, int part, int parts)
{
    const int64_t begin = tiles->first, bytes = max_i64(0, tiles->stop - begin);
    tiles->next = begin + bytes / parts * part + bytes % parts * part / parts;
    tiles->stop = begin + bytes / parts * (part + 1) + bytes % parts * (part + 1) / parts;
}

void text_tiles_close(struct text_tiles *tiles)
{
    text_memory_free(&tiles->carry);
    for (int t = 0; t < TILES_OF_STREAM; t++)
        text_memory_free(&tiles->kept[t]);
    pthread_mutex_destroy(&tiles->lock);
}

int text_round_begin(struct text_tiles *tiles)
{
    const int64_t left = tiles->stop - tiles->next;
    tiles->taken = 0;
    tiles->round_bytes = 0;
    clock_gettime(CLOCK_MONOTONIC, &tiles->began);
    if (tiles->stream)
        tiles->most = tiles->ended ? 0 : TILES_OF_STREAM;
    else
        tiles->most = (int)min_i64(TILES_OF_FILE, ceil_divide(max_i64(left, 0), TEXT_TILE));
    return tiles->most;
}

/* ---------------------------------------------------------------- a file */

/* Reads [at, at + bytes) of the text. The text ends earlier only if the file was shortened. */
static bool read_range(struct text_tiles *tiles, int64_t at, char *to, int64_t bytes, int *error)
{
    while (bytes > 0) {
        const int64_t n = text_read_at(tiles->source, at, to, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            *error = n < 0 ? errno : 0;
            return false;
        }
        at += n;
        to += n;
        bytes -= n;
    }
    return true;
}

static spmv_status give_up(struct text_tiles *tiles, spmv_status status, int error, int64_t lacking)
{
    pthread_mutex_lock(&tiles->lock);
    if (tiles->status == SPMV_OK) {
        tiles->status = status;
        tiles->error = error;
        tiles->lacking = lacking;
    }
    pthread_mutex_unlock(&tiles->lock);
    return status;
}

/* The part [from, from + have) of the text that was read for a tile. */
struct text_range {
    struct text_memory *memory;
    int64_t from, have;
};

static spmv_status text_range_extend(struct text_tiles *tiles, struct text_range *s, int64_t end)
{
    int error = 0;
    if (!memory_grow(s->memory, end - s->from + 1, s->have))
        return give_up(tiles, SPMV_ERROR_MEMORY, 0, end - s->from);
    if (!read_range(tiles, s->from + s->have, s->memory->at + s->have, end - s->from - s->have, &error))
        return give_up(tiles, error == 0 ? SPMV_ERROR_CHANGED : SPMV_ERROR_READ, error, 0);
    s->have = end - s->from;
    return SPMV_OK;
}

/* Finds the end of the line that begins at offset line of the memory, searching from offset search.
 * At the end of the text a line end is added. *end 0: the line is too long. */
static spmv_status find_line_end(struct text_tiles *tiles, struct text_range *s, int64_t line, int64_t search,
                                 int64_t *end, int64_t *open_line_bytes)
{
    for (;;) {
        char *const text = s->memory->at;
        char *const found = search < s->have ? memchr(text + search, '\n', (size_t)(s->have - search)) : NULL;
        *end = found != NULL ? found + 1 - text : 0;
        if (found != NULL && *end - line <= TEXT_BLOCK)
            return SPMV_OK;
        *end = 0;
        if (found != NULL || s->have - line >= TEXT_BLOCK)
            return SPMV_OK;
        if (s->from + s->have == tiles->source->total) {
            *open_line_bytes = s->have - line;
            text[s->have++] = '\n';
            *end = s->have;
            return SPMV_OK;
        }
        search = s->have;
        const spmv_status st =
            text_range_extend(tiles, s, min_i64(tiles->source->total, s->from + max_i64(s->have * 2, (int64_t)BEYOND)));
        if (st != SPMV_OK)
            return st;
    }
}

/* Reads the lines that begin in [at, at + TEXT_TILE) of a file. */
static spmv_status read_lines(struct text_tiles *tiles, int64_t at, struct text_memory *memory, struct text_tile *tile,
                              struct text_tile_place *place)
{
    const int64_t total = tiles->source->total, end = min_i64(at + TEXT_TILE, tiles->stop);
    struct text_range s = {.memory = memory, .from = at > tiles->first ? at - 1 : at};
    int64_t begin = 0, stop = 0;
    *place = (struct text_tile_place){.at = at};
    tile->too_long = false;
    tile->begin = tile->end = NULL;
    spmv_status st = text_range_extend(tiles, &s, min_i64(end + BEYOND, total));
    if (st != SPMV_OK)
        return st;
    if (at > tiles->first) {
        const char *const before = memchr(memory->at, '\n', (size_t)(end - at));
        if (before == NULL)
            return SPMV_OK;
        begin = before + 1 - memory->at;
    }
    /* the last line that begins in the tile, and its end */
    const int64_t limit = end - s.from;
    int64_t last = limit - 1;
    while (last > begin && memory->at[last - 1] != '\n')
        last--;
    st = find_line_end(tiles, &s, last, limit - 1, &stop, &place->open_line_bytes);
    if (st != SPMV_OK)
        return st;
    place->too_long = tile->too_long = stop == 0;
    tile->begin = memory->at + begin;
    tile->end = memory->at + (stop == 0 ? last : stop);
    return SPMV_OK;
}

static bool take_of_file(struct text_tiles *tiles, struct text_memory *memory, struct text_tile *tile)
{
    pthread_mutex_lock(&tiles->lock);
    const bool more = tiles->taken < tiles->most && tiles->status == SPMV_OK;
    const int64_t at = tiles->next;
    if (more) {
        tile->number = tiles->taken++;
        tiles->next += TEXT_TILE;
    }
    pthread_mutex_unlock(&tiles->lock);
    return more && read_lines(tiles, at, memory, tile, &tiles->place[tile->number]) == SPMV_OK;
}

/* ---------------------------------------------------------------- a stream */

/* Reads the stream's next tile, whole lines, into memory. The rest of the last line is carried
 * over. */
static spmv_status read_stream(struct text_tiles *tiles, struct text_memory *memory, struct text_tile_place *place)
{
    int64_t have = tiles->carried, wanted = max_i64(TEXT_TILE, 2 * have), line_end = 0;
    *place = (struct text_tile_place){.at = 0};
    if (!memory_grow(memory, wanted, 0)) {
        tiles->lacking = wanted;
        return SPMV_ERROR_MEMORY;
    }
    if (have > 0)
        memcpy(memory->at, tiles->carry.at, (size_t)have);
    for (;;) {
        int64_t got = 0;
        while (have < wanted && !tiles->ended) {
            const spmv_status st = text_read_next(tiles->source, memory->at + have, wanted - have, &got);
            if (st != SPMV_OK)
                return st;
            have += got;
            tiles->ended = got == 0;
        }
        for (line_end = have; line_end > 0 && memory->at[line_end - 1] != '\n';)
            line_end--;
        if (line_end > 0 || tiles->ended || have >= TEXT_BLOCK)
            break;
        wanted = 2 * have;
        if (!memory_grow(memory, wanted, have)) {
            tiles->lacking = wanted;
            return SPMV_ERROR_MEMORY;
        }
    }
    place->too_long = have - line_end >= TEXT_BLOCK;
    if (tiles->ended && line_end < have && !place->too_long) {
        place->open_line_bytes = have - line_end;
        memory->at[have++] = '\n'; /* into the padding */
        line_end = have;
    }
    place->end = line_end;
    tiles->carried = have - line_end;
    if (!memory_grow(&tiles->carry, tiles->carried, 0)) {
        tiles->lacking = tiles->carried;
        return SPMV_ERROR_MEMORY;
    }
    if (tiles->carried > 0)
        memcpy(tiles->carry.at, memory->at + line_end, (size_t)tiles->carried);
    return SPMV_OK;
}

/* Rounds of a slow stream are short, so that progress is reported and reading can be cancelled. */
static bool round_is_long(const struct text_tiles *tiles)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - tiles->began.tv_sec) * 1000000000LL + now.tv_nsec - tiles->began.tv_nsec > 100000000;
}

static bool take_of_stream(struct text_tiles *tiles, struct text_tile *tile)
{
    pthread_mutex_lock(&tiles->lock);
    bool more = tiles->taken < tiles->most && !tiles->ended && tiles->status == SPMV_OK &&
                (tiles->taken == 0 || (tiles->round_bytes < ROUND_BYTES && !round_is_long(tiles)));
    if (more) {
        const int k = tiles->taken;
        tiles->status = read_stream(tiles, &tiles->kept[k], &tiles->place[k]);
        more = tiles->status == SPMV_OK;
        tiles->round_bytes += tiles->kept[k].bytes;
        if (more) {
            tiles->taken++;
            tile->number = k;
            tile->begin = tiles->kept[k].at;
            tile->end = tile->begin + tiles->place[k].end;
            tile->too_long = tiles->place[k].too_long;
            tiles->ended = tiles->ended || tile->too_long;
        }
    }
    pthread_mutex_unlock(&tiles->lock);
    return more;
}

/* ---------------------------------------------------------------- files and streams */

bool text_tile_take(struct text_tiles *tiles, struct text_memory *memory, struct text_tile *tile)
{
    return tiles->stream ? take_of_stream(tiles, tile) : take_of_file(tiles, memory, tile);
}

spmv_status text_round_end(struct text_tiles *tiles, int *n)
{
    struct text_source *const source = tiles->source;
    *n = tiles->taken;
    if (!tiles->stream)
        source->taken = min_i64(tiles->next, source->total);
    for (int t = 0; t < tiles->taken; t++)
        source->open_line_bytes = max_i64(source->open_line_bytes, tiles->place[t].open_line_bytes);
    if (tiles->status == SPMV_OK)
        return SPMV_OK;
    if (tiles->status == SPMV_ERROR_MEMORY)
        return context_fail_memory(source->ctx, "reading a file", tiles->lacking);
    if (tiles->stream)
        return tiles->status; /* the message is set already */
    return text_read_failed(source, tiles->status, tiles->error);
}

spmv_status text_tile_again(struct text_tiles *tiles, int number, struct text_memory *memory, struct text_tile *tile)
{
    struct text_tile_place place = tiles->place[number];
    tile->number = number;
    if (!tiles->stream) {
        const spmv_status st = read_lines(tiles, place.at, memory, tile, &place);
        int n = 0;
        return st == SPMV_OK ? st : text_round_end(tiles, &n);
    }
    tile->begin = tiles->kept[number].at;
    tile->end = tile->begin + place.end;
    tile->too_long = place.too_long;
    return SPMV_OK;
}
