/* A text that is read once from front to back, in blocks of whole lines: a file, a pipe, standard input, or memory;
 * unpacked on the way where it is compressed or a member of an archive.
 *
 * Files are read, not mapped: a mapped file that another program shortens kills the reader with SIGBUS, and a library
 * may not install a handler; a pipe cannot be mapped at all. Reading costs one copy within the cache's reach.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEXT_SOURCE_H
#define TEXT_SOURCE_H

#include <sys/types.h>
#include <time.h>

#include "packed.h"

/* The longest line taken, and the size of the blocks. Fuzzing makes them small, to meet their ends in short texts. */
#ifndef TEXT_BLOCK_BYTES
#define TEXT_BLOCK_BYTES (16 << 20)
#endif
enum { TEXT_BLOCK = TEXT_BLOCK_BYTES };

/* Readable bytes before and behind every block and tile, for parsers that look at several bytes at once. */
enum { TEXT_PADDING = 64 };

/* A text has at most one warning of each of six kinds, of some 200 bytes. */
enum { TEXT_WARNINGS = 2048 };

struct text_source {
    spmv_context *ctx;
    const char *name; /* in sentences; of the caller */
    int fd;           /* -1: memory */
    bool owns_fd;
    const char *memory;
    int64_t memory_taken;
    int64_t total; /* bytes of the text; -1: not known (a pipe, a packed text) */
    int64_t taken; /* bytes read from the file so far */
    struct timespec changed;
    int64_t file_size; /* as the file system said when the file was opened; -1: not a regular file */
    int64_t file_at;   /* where the text begins in it */

    char *path; /* of the file, without a member behind it; NULL: as name */
    struct packed *packed;
    struct packed_input packed_input;
    struct packed_limits packed_limits;
    int64_t packed_at, packed_total; /* of the packed bytes: those read, all (-1: not known) */
    char head[PACKED_HEAD];          /* of a stream: its first bytes, read to see what it is */
    int64_t head_bytes, head_given;

    char *buffer;
    int64_t capacity;        /* of buffer, less one byte for a line end of our own */
    int64_t wanted;          /* bytes that the next filling leaves behind at least, where there are so many */
    int64_t next, full;      /* unread bytes: buffer[next .. full) */
    bool at_end;             /* nothing follows in the file */
    int64_t open_line_bytes; /* > 0: so many bytes follow the text's last line end; one was added */
    int64_t line;            /* number of the first unread line */

    int64_t max_comments;   /* bytes of comments of the head to keep; 0: none are kept */
    char *comments;         /* lines with their ends, without a zero byte; NULL: none */
    int64_t comments_bytes; /* of comments_room, which are allocated */
    int64_t comments_room;

    char warnings[TEXT_WARNINGS]; /* told so far: what stood behind the name, each closed by a zero byte */
    int warnings_bytes;
    bool warnings_lost; /* there were more than that holds */
};

/* Opens a file, or standard input for "-"; of an archive its matrix, or for "archive:member" that member. limits (may
 * be NULL; so may each be 0): of what is unpacked. The source must not be moved. Errors: SPMV_ERROR_OPEN,
 * SPMV_ERROR_MEMORY, those of packed_open. text_close in any case. */
spmv_status text_open(spmv_context *ctx, const char *path, const struct packed_limits *limits,
                      struct text_source *source);

/* The same over size bytes of memory; member may be NULL. */
spmv_status text_open_memory(spmv_context *ctx, const char *name, const char *member, const char *text, int64_t size,
                             const struct packed_limits *limits, struct text_source *source);
void text_close(struct text_source *source);

/* The unread lines at hand, more read in when there are none: [*begin, *end), the last ends with '\n' too; both NULL
 * at the end of the text. Tells the event callback how far it is. They stay valid until the next call, and are unread
 * until text_skip. Errors: SPMV_ERROR_READ, SPMV_ERROR_CHANGED, SPMV_ERROR_LIMIT (a line over TEXT_BLOCK),
 * SPMV_CANCELLED. */
spmv_status text_block(struct text_source *source, const char **begin, const char **end);

/* The lines before position, lines of them, are read. */
void text_skip(struct text_source *source, const char *position, int64_t lines);

/* How the text is kept: "mtx", "gz", "tar.gz" ... */
const char *text_form(const struct text_source *source);

/* Bytes that are still unread, so far as known: -1 when not. */
int64_t text_left(const struct text_source *source);

/* Whether any part of the text can be read at any time: a file or memory, no pipe. */
bool text_is_random(const struct text_source *source);

/* Such a part: up to bytes > 0 bytes from place at of the text on; how many, 0 at its end, -1 with errno. Any thread.
 */
int64_t text_read_at(const struct text_source *source, int64_t at, char *to, int64_t bytes);

/* Up to bytes > 0 bytes of what is unread, without regard for lines; *got 0: nothing follows. */
spmv_status text_read_next(struct text_source *source, char *to, int64_t bytes, int64_t *got);

/* The sentence for a text_read_at that failed with that errno, or (SPMV_ERROR_CHANGED) met the end too early. */
spmv_status text_read_failed(struct text_source *source, spmv_status status, int error);

/* The event callback hears how much is taken. SPMV_CANCELLED. */
spmv_status text_tell(struct text_source *source);

/* SPMV_ERROR_CHANGED when the file is no longer what was opened. */
spmv_status text_check_unchanged(struct text_source *source);

/* "name:line:column: sentence" and the status, unless the file changed meanwhile: then SPMV_ERROR_CHANGED. Columns
 * count bytes from 1. */
#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
spmv_status
text_fail(struct text_source *source, spmv_status status, int64_t line, int64_t column, const char *format, ...);

/* A warning event "name" and what follows it (":line:column: sentence", ": sentence"), which the source remembers.
 * SPMV_CANCELLED. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
spmv_status
text_warn(struct text_source *source, const char *format, ...);

/* Where the text ends; only after text_block gave NULL: the line after the last line end, or the place after the last
 * byte. */
void text_end_position(const struct text_source *source, int64_t *line, int64_t *column);

/* A token as it may be shown in a sentence: from text up to a blank or a line end, at most 40 bytes, with bytes that do
 * not print replaced by \xNN; closed by a zero byte. */
enum { TEXT_SHOWN = 176 };
const char *text_show(const char *text, const char *end, char shown[TEXT_SHOWN]);

/* Blanks between the numbers of a line; a carriage return counts, so CR LF is a line end like LF. */
static inline bool text_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static inline const char *text_skip_blanks(const char *p)
{
    while (text_is_blank(*p))
        p++;
    return p;
}

/* The end of the token at p: a blank or the line end. */
static inline const char *text_token_end(const char *p)
{
    while (!text_is_blank(*p) && *p != '\n')
        p++;
    return p;
}

#endif
