/* The rest of a text in tiles of whole lines, for several threads.
 *
 * A round is a number of tiles. Threads take them in ascending order, each into memory where its parser finds it in the
 * cache; between rounds the calling thread looks at what they found, tells the progress and may end the reading. A
 * file's tiles are read by the threads themselves, each at its own place. What can only be read from front to back (a
 * pipe, what is being decompressed) is read by one thread at a time, while the others parse what was read before.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEXT_TILES_H
#define TEXT_TILES_H

#include <pthread.h>

#include "text_source.h"

/* Small enough for the second cache level, large enough that a tile's bookkeeping does not show. */
#ifndef TEXT_TILE_BYTES
#define TEXT_TILE_BYTES (256 << 10)
#endif
/* Rounds long enough that threads which wait for the last tile do not show, and short enough for smooth progress. Those
 * of a stream are kept in memory. */
enum { TEXT_TILE = TEXT_TILE_BYTES, TILES_OF_FILE = 256, TILES_OF_STREAM = 64, TILES_MOST = TILES_OF_FILE };

/* Memory that grows; text_memory_free. */
struct text_memory {
    char *at;
    int64_t bytes;
};
void text_memory_free(struct text_memory *memory);

/* One tile; begin == end: no line begins in it. */
struct text_tile {
    int number;              /* in its round */
    const char *begin, *end; /* whole lines, each ended by '\n' */
    bool too_long;           /* the line that follows is over TEXT_BLOCK; it is not in the tile */
};

/* What a round left behind, tile by tile. */
struct text_tile_place {
    int64_t at, bytes;  /* of a file: where its lines are, once read */
    int64_t begin, end; /* of a stream: in its memory */
    int64_t open_line_bytes;
    bool too_long;
};

struct text_tiles {
    struct text_source *source;
    bool stream;
    int64_t first, next;   /* of a file: where tiles begin; the next tile's place */
    int taken, most;       /* tiles of this round */
    struct timespec began; /* this round */
    bool ended;            /* nothing follows in the text */
    spmv_status status;    /* of the first read that failed, and what the system said, or the bytes that were lacking */
    int error;
    int64_t lacking;
    struct text_memory carry; /* of a stream: the beginning of its next line */
    int64_t carried;
    int64_t round_bytes; /* of a stream: in memory */
    struct text_memory kept[TILES_OF_STREAM];
    struct text_tile_place place[TILES_MOST];
    pthread_mutex_t lock;
};

/* Everything unread in the source will be read in tiles. text_tiles_close in any case. */
void text_tiles_open(struct text_source *source, struct text_tiles *tiles);
void text_tiles_close(struct text_tiles *tiles);

/* A new round: at most so many tiles, 0 at the end of the text. */
int text_round_begin(struct text_tiles *tiles);

/* Takes the next tile of the round; false when there is none, or reading failed. memory: of the calling thread; the
 * tile stays valid until the thread takes another. Any thread. */
bool text_tile_take(struct text_tiles *tiles, struct text_memory *memory, struct text_tile *tile);

/* The round is over: the status of its reading. *n: how many tiles were taken. */
spmv_status text_round_end(struct text_tiles *tiles, int *n);

/* A tile of the round that is over, once more. */
spmv_status text_tile_again(struct text_tiles *tiles, int number, struct text_memory *memory, struct text_tile *tile);

#endif
