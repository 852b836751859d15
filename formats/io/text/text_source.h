/* A text that is read once from front to back, in blocks of whole lines: a file, a pipe, standard
 * input, or memory. A compressed text, or a member of an archive, is unpacked during reading.
 *
 * Files are read, not mapped: if another program shortens a mapped file, the reader gets SIGBUS,
 * for which a library must not install a handler, and a pipe cannot be mapped. Reading costs one
 * copy within the cache.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEXT_SOURCE_H
#define TEXT_SOURCE_H

#include <sys/types.h>
#include <time.h>

#include "formats/io/packed/packed.h"

/* Length of the longest line and size of the blocks. Fuzzing makes them small, so that short texts
 * reach their ends. */
#ifndef TEXT_BLOCK_BYTES
#define TEXT_BLOCK_BYTES (16 << 20)
#endif
enum { TEXT_BLOCK = TEXT_BLOCK_BYTES };

/* Readable bytes before and after every block and tile, for parsers that load several bytes at
 * once. */
enum { TEXT_PADDING = 64 };

/* A text has at most seven kinds of warnings of some 200 bytes, one of each. */
enum { TEXT_WARNINGS = 2048 };

struct text_source {
    spmv_context *ctx;
    const char *name; /* for messages; owned by the caller */
    int fd;           /* -1: memory */
    bool owns_fd;
    const char *memory;
    int64_t memory_taken;
    int64_t total; /* bytes of the text; -1: unknown (a pipe, a packed text) */
    int64_t taken; /* bytes read from the file so far */
    struct timespec changed;
    int64_t file_size; /* when the file was opened; -1: not a regular file */
    int64_t file_at;   /* offset of the text in the file */

    char *path;         /* of the file, without a member; NULL: same as name */
    const char *member; /* of "file:member", if the file is no archive (exchange.h); NULL: none */
    struct packed *packed;
    struct packed_input packed_input;
    struct packed_limits packed_limits;
    int64_t packed_at, packed_total; /* packed bytes read, and their total (-1: unknown) */
    struct packed_head head;         /* of a stream */

    char *buffer;
    int64_t capacity;        /* of buffer, without one byte for an added line end */
    int64_t wanted;          /* bytes that the next fill provides at least, if there are as many */
    int64_t next, full;      /* unread bytes: buffer[next .. full) */
    bool at_end;             /* end of file reached */
    int64_t open_line_bytes; /* bytes after the text's last line end, if one was added; else 0 */
    int64_t line;            /* number of the first unread line */

    int64_t max_comments;   /* limit for comments of the head; 0: keep none */
    char *comments;         /* lines with their ends, without a zero byte; NULL: none */
    int64_t comments_bytes; /* of comments_room, which are allocated */
    int64_t comments_room;

    /* issued so far: the text after the name, each with a zero byte */
    char warnings[TEXT_WARNINGS];
    int warnings_bytes;
    bool warnings_lost; /* there were more than fit */
};

/* Opens a file, or standard input for "-"; of an archive its matrix or, for "archive:member", that
 * member. limits: for unpacking (may be NULL, members may be 0). The source must not be moved.
 * Errors: SPMV_ERROR_OPEN, SPMV_ERROR_MEMORY, those of packed_open. Call text_close also after an
 * error. */
spmv_status text_open(spmv_context *ctx, const char *path, const struct packed_limits *limits,
                      struct text_source *source);

/* As text_open, for size bytes in memory; member may be NULL. */
spmv_status text_open_memory(spmv_context *ctx, const char *name, const char *member, const char *text, int64_t size,
                             const struct packed_limits *limits, struct text_source *source);

/* A source of n bytes of whole lines of another text, for tiles (text_tiles.h). It needs no
 * text_close. */
void text_from_lines(spmv_context *ctx, const char *name, const char *lines, int64_t n, struct text_source *source);
void text_close(struct text_source *source);

/* Returns the unread lines in the buffer, and reads more if there are none: [*begin, *end). The
 * last one ends with '\n' too. Both are NULL at the end of the text. Reports progress to the event
 * callback. The lines stay valid until the next call, and unread until text_skip. Errors:
 * SPMV_ERROR_READ, SPMV_ERROR_CHANGED, SPMV_ERROR_LIMIT (a line over TEXT_BLOCK),
 * SPMV_CANCELLED. */
spmv_status text_block(struct text_source *source, const char **begin, const char **end);

/* The unread bytes in the buffer, at least the first kilobytes of the source if it has them. They stay unread. Without a
 * line end that was added. Errors: as text_block, but for the length of lines. */
spmv_status text_peek(struct text_source *source, const char **begin, int64_t *bytes);

/* Marks the text before position, which has this many lines, as read. */
void text_skip(struct text_source *source, const char *position, int64_t lines);

/* The form of the text: "mtx", "gz", "tar.gz" ... */
const char *text_form(const struct text_source *source);

/* The number of unread bytes; -1 if unknown. */
int64_t text_left(const struct text_source *source);

/* Whether any part of the text can be read at any time: a file or memory, not a pipe. */
bool text_is_random(const struct text_source *source);

/* Reads up to bytes > 0 bytes from offset at of such a text. Returns their number, 0 at the end, -1
 * with errno. Any thread may call. */
int64_t text_read_at(const struct text_source *source, int64_t at, char *to, int64_t bytes);

/* Reads up to bytes > 0 unread bytes, without regard for lines; *got is 0 at the end. */
spmv_status text_read_next(struct text_source *source, char *to, int64_t bytes, int64_t *got);

/* The error for a text_read_at that failed with this errno or (SPMV_ERROR_CHANGED) met the end too
 * early. */
spmv_status text_read_failed(struct text_source *source, spmv_status status, int error);

/* Reports progress to the event callback. SPMV_CANCELLED. */
spmv_status text_tell(struct text_source *source);

/* SPMV_ERROR_CHANGED if the file has changed since it was opened. */
spmv_status text_check_unchanged(struct text_source *source);

/* Fails with "name:line:column: message" and the status; with SPMV_ERROR_CHANGED if the file has
 * changed. Columns count bytes from 1. */
#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
spmv_status
text_fail(struct text_source *source, spmv_status status, int64_t line, int64_t column, const char *format, ...);

/* Fails if the lines [begin, end) at the beginning of the text show another kind of file
 * (foreign.h). */
spmv_status text_check_kind(struct text_source *source, const char *begin, const char *end);

/* Issues a warning event: "name" and the text (":line:column: message", ": message"). The source
 * keeps the text. SPMV_CANCELLED. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
spmv_status
text_warn(struct text_source *source, const char *format, ...);

/* The end of the text, after text_block returned NULL: the line after the last line end, or the
 * position after the last byte. */
void text_end_position(const struct text_source *source, int64_t *line, int64_t *column);

/* Copies a token for messages: from text up to a blank or line end, at most 40 bytes; unprintable
 * bytes become \xNN. Ends with a zero byte. */
enum { TEXT_SHOWN = 176 };
const char *text_show(const char *text, const char *end, char shown[TEXT_SHOWN]);

/* A blank between the numbers of a line. Includes the carriage return, so that CR LF is a line end
 * like LF. */
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
