/* Text in blocks of whole lines. A block is the contents of the buffer up to the last line end; the
 * rest moves to the front before the buffer is filled again. Every line ends with '\n' (one is
 * added to the last line if necessary), so loops over a line need no other bound.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/text/text_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/io/text/foreign.h"

enum { SHOWN_BYTES = 40 };

/* Called when a signal interrupts a call that may wait long (a FIFO, standard input): the event
 * callback decides whether to continue. If cancelled, errno is EINTR. */
static bool goes_on(struct text_source *source)
{
    const bool go_on = text_tell(source) == SPMV_OK;
    errno = EINTR;
    return go_on;
}

static int open_for_reading(struct text_source *source, const char *path)
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR && goes_on(source));
    return fd;
}

/* Handles "archive:member" if no file has that name: opens the archive. *member: the part after
 * the colon. */
static spmv_status open_archive(struct text_source *source, const char *path, const char **member)
{
    const int why = errno;
    const char *const colon = strrchr(path, ':');
    if (why == EINTR)
        return SPMV_CANCELLED;
    if (why == ENOENT && colon != NULL && colon > path && colon[1] != '\0') {
        source->path = malloc((size_t)(colon - path) + 1);
        if (source->path == NULL)
            return context_fail_memory(source->ctx, "a file name", colon - path + 1);
        memcpy(source->path, path, (size_t)(colon - path));
        source->path[colon - path] = '\0';
        source->fd = open_for_reading(source, source->path);
        *member = colon + 1;
    }
    return source->fd >= 0 ? SPMV_OK
                           : context_fail(source->ctx, SPMV_ERROR_OPEN, "%s: cannot open: %s", path, strerror(why));
}

static spmv_status open_file(struct text_source *source, const char *path, const char **member)
{
    *member = NULL;
    if (strcmp(path, "-") == 0) {
        source->name = "standard input";
        source->fd = STDIN_FILENO;
        return SPMV_OK;
    }
    source->fd = open_for_reading(source, path);
    const spmv_status st = source->fd >= 0 ? SPMV_OK : open_archive(source, path, member);
    source->owns_fd = st == SPMV_OK;
    return st;
}

/* Determines the kind of file and the number of bytes it will give. */
static spmv_status look_at_file(struct text_source *source)
{
    struct stat s;
    if (fstat(source->fd, &s) != 0)
        return context_fail(source->ctx, SPMV_ERROR_OPEN, "%s: cannot open: %s", source->name, strerror(errno));
    if (S_ISDIR(s.st_mode))
        return context_fail(source->ctx, SPMV_ERROR_OPEN, "%s: cannot read: it is a directory", source->name);
    /* Files such as those of /proc are regular with size 0; they are read to the end like a
     * pipe. */
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
    /* One byte more than the text, up to TEXT_BLOCK, because a line that fills the buffer is
     * reported as too long. */
    source->capacity = source->total >= 0 ? min_i64(source->total + 1, TEXT_BLOCK) : TEXT_BLOCK;
    void *memory = NULL;
    const spmv_status st = host_alloc(source->ctx, source->capacity + 1 + 2 * TEXT_PADDING, "reading a file", &memory);
    source->buffer = st == SPMV_OK ? (char *)memory + TEXT_PADDING : NULL;
    return st;
}

/* ---------------------------------------------------------------- packed texts */

/* Reads bytes of the file or stream without unpacking. */
static int64_t read_raw(struct text_source *source, char *to, int64_t bytes)
{
    ssize_t n = packed_head_give(&source->head, to, bytes);
    if (n > 0)
        return n;
    do
        n = read(source->fd, to, (size_t)bytes);
    while (n < 0 && errno == EINTR && goes_on(source));
    return n;
}

static int64_t read_packed(void *user, char *to, int64_t bytes, spmv_status *failed)
{
    struct text_source *const source = user;
    int64_t n = 0;
    if (source->fd < 0 || source->file_size >= 0)
        do
            n = text_read_at(source, source->packed_at, to, bytes);
        while (n < 0 && errno == EINTR);
    else
        n = read_raw(source, to, bytes);
    if (n < 0 && errno == EINTR)
        *failed = SPMV_CANCELLED;
    else if (n < 0)
        *failed = context_fail(source->ctx, SPMV_ERROR_READ, "%s: cannot read after %lld bytes: %s", source->name,
                               (long long)source->packed_at, strerror(errno));
    source->packed_at += max_i64(n, 0);
    return n;
}

static bool rewind_packed(void *user)
{
    struct text_source *const source = user;
    source->packed_at = 0;
    return source->fd < 0 || source->file_size >= 0;
}

/* Default limit of unpacked text / packed bytes; gzip reaches at most 1032. */
enum { RATIO = 300 };

/* Reads the first bytes, and opens the text as packed if they show it. */
static spmv_status look_at_head(struct text_source *source, const char *member, const struct packed_limits *limits)
{
    char *const head = source->head.byte;
    int64_t n = 0, got = 1;
    while (n < PACKED_HEAD && got > 0) {
        if (source->fd < 0 || source->file_size >= 0)
            got = text_read_at(source, n, head + n, PACKED_HEAD - n);
        else
            got = read_raw(source, head + n, PACKED_HEAD - n);
        n += max_i64(got, 0);
    }
    if (got < 0 && errno == EINTR)
        return SPMV_CANCELLED;
    /* A read error occurs again when the text is read. */
    if (source->fd >= 0 && source->file_size < 0)
        source->head.bytes = n;
    if (!packed_begins(head, n)) {
        source->member = member;
        return SPMV_OK;
    }
    source->packed_input = (struct packed_input){source, read_packed, rewind_packed};
    source->packed_limits = (struct packed_limits){INT64_MAX, RATIO};
    if (limits != NULL && limits->bytes > 0)
        source->packed_limits.bytes = limits->bytes;
    if (limits != NULL && limits->ratio > 0)
        source->packed_limits.ratio = limits->ratio;
    source->packed_total = source->total;
    source->total = -1;
    return packed_open(source->ctx, source->path != NULL ? source->path : source->name, member, &source->packed_input,
                       &source->packed_limits, &source->packed);
}

static void begin(struct text_source *source, spmv_context *ctx, const char *name)
{
    memset(source, 0, sizeof *source);
    source->ctx = ctx;
    source->name = name;
    source->fd = -1;
    source->total = source->file_size = -1;
    source->line = 1;
}

spmv_status text_open(spmv_context *ctx, const char *path, const struct packed_limits *limits,
                      struct text_source *source)
{
    spmv_status st = SPMV_OK;
    const char *member = NULL;
    begin(source, ctx, path);
    TRY(open_file(source, path, &member));
    TRY(look_at_file(source));
    TRY(look_at_head(source, member, limits));
    TRY(allocate_buffer(source));
done:
    return st;
}

spmv_status text_open_memory(spmv_context *ctx, const char *name, const char *member, const char *text, int64_t size,
                             const struct packed_limits *limits, struct text_source *source)
{
    begin(source, ctx, name);
    source->memory = text;
    source->total = size;
    const spmv_status st = look_at_head(source, member, limits);
    return st == SPMV_OK ? allocate_buffer(source) : st;
}

void text_from_lines(spmv_context *ctx, const char *name, const char *lines, int64_t n, struct text_source *source)
{
    begin(source, ctx, name);
    source->memory = lines;
    source->total = n;
}

const char *text_form(const struct text_source *source)
{
    return source->packed != NULL ? packed_form_of(source->packed) : "mtx";
}

void text_close(struct text_source *source)
{
    host_free(source->buffer == NULL ? NULL : source->buffer - TEXT_PADDING);
    source->buffer = NULL;
    packed_close(source->packed);
    source->packed = NULL;
    free(source->path);
    source->path = NULL;
    host_free(source->comments);
    source->comments = NULL;
    if (source->owns_fd)
        close(source->fd);
    source->owns_fd = false;
}

bool text_is_random(const struct text_source *source)
{
    return source->packed == NULL && (source->fd < 0 || source->file_size >= 0);
}

int64_t text_read_at(const struct text_source *source, int64_t at, char *to, int64_t bytes)
{
    if (source->fd >= 0)
        return (int64_t)pread(source->fd, to, (size_t)bytes, (off_t)(source->file_at + at));
    const int64_t total = source->packed != NULL ? source->packed_total : source->total;
    const int64_t n = min_i64(bytes, max_i64(0, total - at));
    if (n > 0)
        memcpy(to, source->memory + at, (size_t)n);
    return n;
}

static spmv_status fail_read(struct text_source *source, int error)
{
    if (error == EINTR)
        return SPMV_CANCELLED;
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

/* Reads up to bytes > 0 bytes; *got is 0 at the end. */
static spmv_status read_some(struct text_source *source, char *to, int64_t bytes, int64_t *got)
{
    if (source->packed != NULL)
        return packed_read(source->packed, to, bytes, got);
    if (source->fd < 0) {
        *got = text_read_at(source, source->memory_taken, to, bytes);
        source->memory_taken += *got;
        return SPMV_OK;
    }
    const int64_t n = read_raw(source, to, bytes);
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

/* The head is short, so the first read is small; each further read is MORE times larger. */
enum { FIRST_FILL = 64 << 10, MORE = 8 };

/* Fills the buffer up to wanted or to the end of the text. At the end, adds a missing last line
 * end. */
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
        source->buffer[source->full++] = '\n'; /* at most in the byte after capacity */
    }
    return SPMV_OK;
}

/* The last line end in the buffer; NULL if there is none. */
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
    const bool packed = source->packed != NULL;
    return context_event(source->ctx, SPMV_EVENT_PROGRESS, text, packed ? packed_taken(source->packed) : source->taken,
                         max_i64(packed ? source->packed_total : source->total, 0));
}

spmv_status text_check_kind(struct text_source *source, const char *begin, const char *end)
{
    const struct foreign *const kind = foreign_kind(begin, end);
    if (kind == NULL)
        return SPMV_OK;
    return text_fail(source, SPMV_ERROR_FORMAT, 1, 1, "this looks like %s; %s", kind->what, kind->how);
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
    if (last == NULL) {
        const spmv_status st =
            source->line == 1 ? text_check_kind(source, source->buffer, source->buffer + source->full) : SPMV_OK;
        if (st != SPMV_OK)
            return st;
        return text_fail(source, SPMV_ERROR_LIMIT, source->line, 1, "a line of more than %lld bytes",
                         (long long)source->capacity - 1);
    }
    *first = source->buffer + source->next;
    *end = last + 1;
    return SPMV_OK;
}

spmv_status text_peek(struct text_source *source, const char **begin, int64_t *bytes)
{
    spmv_status st = SPMV_OK;
    if (source->full == source->next && !source->at_end)
        st = fill(source);
    *begin = source->buffer + source->next;
    *bytes = source->full - source->next - (source->open_line_bytes > 0 && source->full > source->next);
    return st;
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
    const int64_t added = source->open_line_bytes > 0; /* the added line end */
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

spmv_status text_warn(struct text_source *source, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    const int bytes = (int)strlen(sentence) + 1;
    if (bytes > TEXT_WARNINGS - source->warnings_bytes) {
        source->warnings_lost = true;
    } else {
        memcpy(source->warnings + source->warnings_bytes, sentence, (size_t)bytes);
        source->warnings_bytes += bytes;
    }
    return context_warn(source->ctx, "%.300s%s", source->name, sentence);
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
