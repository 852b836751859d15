/* The rest of a text in tiles of whole lines, for several threads.
 *
 * A round is a number of tiles. Threads take them in ascending order, each into its own memory, so
 * that the parser finds it in the cache. Between rounds the calling thread evaluates the findings,
 * reports progress and may stop. Tiles of a file are read by the threads in parallel, each at its
 * own offset. A sequential text (a pipe, decompressed text) is read by one thread at a time, while
 * others parse earlier tiles.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEXT_TILES_H
#define TEXT_TILES_H

#include <pthread.h>

#include "formats/io/text/text_source.h"

/* Fits in the second-level cache, and large enough to make the cost of bookkeeping negligible. */
#ifndef TEXT_TILE_BYTES
#define TEXT_TILE_BYTES (256 << 10)
#endif
/* Rounds are long enough to make waiting for the last tile negligible, and short enough for smooth
 * progress. A stream's tiles are kept in memory. */
enum { TEXT_TILE = TEXT_TILE_BYTES, TILES_OF_FILE = 256, TILES_OF_STREAM = 64, TILES_MOST = TILES_OF_FILE };

/* Memory that grows; release with text_memory_free. */
struct text_memory {
    char *at;
    int64_t bytes;
};
void text_memory_free(struct text_memory *memory);

/* One tile; begin == end: no line begins in it. */
struct text_tile {
    int number;              /* in its round */
    const char *begin, *end; /* whole lines, each ended by '\n' */
    bool too_long;           /* the next line exceeds TEXT_BLOCK; it is not in the tile */
};

/* State of a tile after its round. */
struct text_tile_place {
    int64_t at, bytes;  /* of a file: offset and size of its lines, once read */
    int64_t begin, end; /* of a stream: in its memory */
    int64_t open_line_bytes;
    bool too_long;
};

struct text_tiles {
    struct text_source *source;
    bool stream;
    int64_t first, next;   /* of a file: offset of the first tile, and of the next */
    int64_t stop;          /* of a file: no tile begins here or later */
    int taken, most;       /* tiles of this round */
    struct timespec began; /* this round */
    bool ended;            /* nothing follows in the text */
    /* of the first failed read; with its errno, or the bytes that could not be allocated */
    spmv_status status;
    int error;
    int64_t lacking;
    struct text_memory carry; /* of a stream: beginning of the next line */
    int64_t carried;
    int64_t round_bytes; /* of a stream: bytes in memory */
    struct text_memory kept[TILES_OF_STREAM];
    struct text_tile_place place[TILES_MOST];
    pthread_mutex_t lock;
};

/* Prepares to read all unread text of the source in tiles. Call text_tiles_close in any case. */
void text_tiles_open(struct text_source *source, struct text_tiles *tiles);
void text_tiles_close(struct text_tiles *tiles);

/* Of a text that can be read anywhere: keeps only part number part of parts equal ones. It has the
 * lines that begin in it. */
void text_tiles_part(struct text_tiles *tiles, int part, int parts);

/* Begins a round. Returns the largest number of its tiles; 0 at the end of the text. */
int text_round_begin(struct text_tiles *tiles);

/* Takes the next tile of the round; false if there is none or reading failed. memory: of the
 * calling thread. The tile stays valid until the thread takes another one. Any thread may call. */
bool text_tile_take(struct text_tiles *tiles, struct text_memory *memory, struct text_tile *tile);

/* Ends the round and returns the status of its reading. *n: the number of tiles taken. */
spmv_status text_round_end(struct text_tiles *tiles, int *n);

/* Reads a tile of the last round again. */
spmv_status text_tile_again(struct text_tiles *tiles, int number, struct text_memory *memory, struct text_tile *tile);

#endif
