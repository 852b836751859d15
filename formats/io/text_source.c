/* Text in blocks of whole lines. A block is what the buffer holds up to its last line end; the rest moves to the front
 * before the buffer is filled again. Every line ends with '\n', the last one too (one is added), so loops over a line
 * need no other bound.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "text_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN_BYTES = 40 };

static spmv_status open_file(struct text_source *source, const char *path)
{
    if (strcmp(path, "-") == 0) {
        source->name = "standard input";
        source->fd = STDIN_FILENO;
        return SPMV_OK;
    }
    do
        source->fd = open(path, O_RDONLY | O_CLOEXEC);
    while (source->fd < 0 && errno == EINTR);
    if (source->fd < 0)
        return context_fail(source->ctx, SPMV_ERROR_OPEN, "%s: cannot open: %s", path, strerror(errno));
    source->owns_fd = true;
    return SPMV_OK;
}

/* What kind of file, and how many bytes it will give. */
static spmv_status look_at_file(struct text_source *source)
{
    struct stat s;
    if (fstat(source->fd, &s) != 0)
        return context_fail(source->ctx, SPMV_ERROR_OPEN, "%s: cannot open: %s", source->name, strerror(errno));
    if (S_ISDIR(s.st_mode))
        return context_fail(source->ctx, SPMV_ERROR_OPEN, "%s: cannot read: it is a directory", source->name);
    /* files of /proc and the like are regular and say 0 bytes: read to the end as a pipe is */
    if (!S_ISREG(s.st_mode) || s.st_size == 0)
        return SPMV_OK;
    const off_t at = source->owns_fd ? 0 : lseek(source->fd, 0, SEEK_CUR);
    source->file_size = (int64_t)s.st_size;
    source->file_at = max_i64(0, (int64_t)at);
    source->changed = s.st_mtim;
    source->total = at > 0 ? max_i64(0, (int64_t)s.st_size - (int64_t)at) : (int64_t)s.st_size;
    return SPMV_OK;
}

static spmv_status allocate_buffer(struct text_source *source)
{
    /* never smaller than one byte more than the text: a line that fills the buffer is one that is too long */
    source->capacity = source->total >= 0 ? min_i64(source->total + 1, TEXT_BLOCK) : TEXT_BLOCK;
    void *memory = NULL;
    const spmv_status st = host_alloc(source->ctx, source->capacity + 1 + 2 * TEXT_PADDING, "reading a file", &memory);
    source->buffer = st == SPMV_OK ? (char *)memory + TEXT_PADDING : NULL;
    return st;
}

static void begin(struct text_source *source, spmv_context *ctx, const char *name)
{
    *source = (struct text_source){.ctx = ctx, .name = name, .fd = -1, .total = -1, .file_size = -1, .line = 1};
}

spmv_status text_open(spmv_context *ctx, const char *path, struct text_source *source)
{
    spmv_status st = SPMV_OK;
    begin(source, ctx, path);
    TRY(open_file(source, path));
    TRY(look_at_file(source));
    TRY(allocate_buffer(source));
done:
    return st;
}

spmv_status text_open_memory(spmv_context *ctx, const char *name, const char *text, int64_t size,
                             struct text_source *source)
{
    begin(source, ctx, name);
    source->memory = text;
    source->total = size;
    return allocate_buffer(source);
}

void text_close(struct text_source *source)
{
    host_free(source->buffer == NULL ? NULL : source->buffer - TEXT_PADDING);
    source->buffer = NULL;
    if (source->owns_fd)
        close(source->fd);
    source->owns_fd = false;
}

bool text_is_random(const struct text_source *source)
{
    return source->fd < 0 || source->file_size >= 0;
}

int64_t text_read_at(const struct text_source *source, int64_t at, char *to, int64_t bytes)
{
    if (source->fd >= 0)
        return (int64_t)pread(source->fd, to, (size_t)bytes, (off_t)(source->file_at + at));
    const int64_t n = min_i64(bytes, max_i64(0, source->total - at));
    if (n > 0)
        memcpy(to, source->memory + at, (size_t)n);
    return n;
}

static spmv_status fail_read(struct text_source *source, int error)
{
    return context_fail(source->ctx, SPMV_ERROR_READ, "%s: cannot read after %lld bytes: %s", source->name,
                        (long long)source->taken, strerror(error));
}

spmv_status text_read_failed(struct text_source *source, spmv_status status, int error)
{
    if (status != SPMV_ERROR_CHANGED)
        return fail_read(source, error);
    const spmv_status changed = text_check_unchanged(source);
    return changed != SPMV_OK ? changed
                              : context_fail(source->ctx, SPMV_ERROR_CHANGED,
                                             "%s: the file was shortened while it was read", source->name);
}

/* Up to bytes > 0 bytes; *got 0: nothing follows. */
static spmv_status read_some(struct text_source *source, char *to, int64_t bytes, int64_t *got)
{
    if (source->fd < 0) {
        *got = text_read_at(source, source->memory_taken, to, bytes);
        source->memory_taken += *got;
        return SPMV_OK;
    }
    ssize_t n = 0;
    do
        n = read(source->fd, to, (size_t)bytes);
    while (n < 0 && errno == EINTR);
    *got = max_i64(n, 0);
    return n >= 0 ? SPMV_OK : fail_read(source, errno);
}

spmv_status text_read_next(struct text_source *source, char *to, int64_t bytes, int64_t *got)
{
    *got = min_i64(bytes, source->full - source->next);
    if (*got > 0) {
        memcpy(to, source->buffer + source->next, (size_t)*got);
        source->next += *got;
        return SPMV_OK;
    }
    const spmv_status st = read_some(source, to, bytes, got);
    if (st == SPMV_OK)
        source->taken += *got;
    return st;
}

spmv_status text_check_unchanged(struct text_source *source)
{
    struct stat s;
    if (source->file_size < 0 || fstat(source->fd, &s) != 0)
        return SPMV_OK;
    if (s.st_size != source->file_size)
        return context_fail(source->ctx, SPMV_ERROR_CHANGED,
                            "%s: the file changed while it was read: it had %lld bytes, now it has %lld", source->name,
                            (long long)source->file_size, (long long)s.st_size);
    if (s.st_mtim.tv_sec != source->changed.tv_sec || s.st_mtim.tv_nsec != source->changed.tv_nsec)
        return context_fail(source->ctx, SPMV_ERROR_CHANGED, "%s: the file was written to while it was read",
                            source->name);
    return SPMV_OK;
}

/* The head is short: the first time little is read, then more each time. */
enum { FIRST_FILL = 64 << 10, MORE = 8 };

/* Fills the buffer up to what is wanted now or to the end of the text, and there ends an open last line. */
static spmv_status fill(struct text_source *source)
{
    memmove(source->buffer, source->buffer + source->next, (size_t)(source->full - source->next));
    source->full -= source->next;
    source->next = 0;
    source->wanted = min_i64(source->capacity, source->wanted == 0 ? FIRST_FILL : MORE * source->wanted);
    while (!source->at_end && source->full < source->wanted) {
        int64_t got = 0;
        const spmv_status st = read_some(source, source->buffer + source->full, source->wanted - source->full, &got);
        if (st != SPMV_OK)
            return st;
        source->full += got;
        source->taken += got;
        source->at_end = got == 0;
    }
    if (source->at_end && source->full > 0 && source->buffer[source->full - 1] != '\n') {
        const char *last = source->buffer + source->full;
        while (last > source->buffer && last[-1] != '\n')
            last--;
        source->open_line_bytes = source->buffer + source->full - last;
        source->buffer[source->full++] = '\n'; /* at most the byte beyond capacity */
    }
    return SPMV_OK;
}

/* The last line end at hand; NULL without one. */
static const char *last_line_end(const struct text_source *source)
{
    const char *p = source->buffer + source->full;
    while (p > source->buffer + source->next)
        if (*--p == '\n')
            return p;
    return NULL;
}

spmv_status text_tell(struct text_source *source)
{
    char text[256];
    if (source->ctx->on_event == NULL)
        return SPMV_OK;
    snprintf(text, sizeof text, "reading %.200s", source->name);
    return context_event(source->ctx, SPMV_EVENT_PROGRESS, text, source->taken, max_i64(source->total, 0));
}

spmv_status text_block(struct text_source *source, const char **first, const char **end)
{
    *first = *end = NULL;
    const char *last = last_line_end(source);
    while (last == NULL && (source->full - source->next < source->capacity || source->next > 0)) {
        spmv_status st = fill(source);
        if (st == SPMV_OK)
            st = text_tell(source);
        if (st != SPMV_OK)
            return st;
        if (source->full == 0)
            return text_check_unchanged(source);
        last = last_line_end(source);
    }
    if (last == NULL)
        return text_fail(source, SPMV_ERROR_LIMIT, source->line, 1, "a line of more than %lld bytes",
                         (long long)source->capacity - 1);
    *first = source->buffer + source->next;
    *end = last + 1;
    return SPMV_OK;
}

void text_skip(struct text_source *source, const char *position, int64_t lines)
{
    source->next = position - source->buffer;
    source->line += lines;
}

int64_t text_left(const struct text_source *source)
{
    if (source->total < 0)
        return -1;
    const int64_t added = source->open_line_bytes > 0; /* a line end of our own */
    return max_i64(0, source->total - source->taken) + source->full - source->next - added;
}

spmv_status text_fail(struct text_source *source, spmv_status status, int64_t line, int64_t column, const char *format,
                      ...)
{
    char sentence[512];
    va_list arguments;
    const spmv_status changed = text_check_unchanged(source);
    if (changed != SPMV_OK)
        return changed;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return context_fail(source->ctx, status, "%.480s:%lld:%lld: %s", source->name, (long long)line, (long long)column,
                        sentence);
}

void text_end_position(const struct text_source *source, int64_t *line, int64_t *column)
{
    *line = source->open_line_bytes > 0 ? source->line - 1 : source->line;
    *column = source->open_line_bytes + 1;
}

const char *text_show(const char *text, const char *end, char shown[TEXT_SHOWN])
{
    char *to = shown;
    const char *const stop = end - text > SHOWN_BYTES ? text + SHOWN_BYTES : end;
    for (; text < stop && !text_is_blank(*text) && *text != '\n'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c >= 0x20 && c < 0x7f)
            *to++ = (char)c;
        else
            to += snprintf(to, 5, "\\x%02x", c);
    }
    if (text < end && !text_is_blank(*text) && *text != '\n')
        to += snprintf(to, 4, "...");
    *to = '\0';
    return shown;
}
