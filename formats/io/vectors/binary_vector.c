/* The binary form of vectors: read into memory, checked, and converted to the requested type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/vectors/binary_vector.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/io/binary/binary_form.h"
#include "formats/io/binary/checksum.h"
#include "formats/io/output_file.h"

enum { VERSION = 1 };
static const char magic[8] = {'\x89', 'S', 'P', 'V', 'C', '\r', '\n', '\x1a'};

/* The layout in the file, little-endian: every member at a multiple of its size, no gaps. */
struct head {
    char magic[8];
    uint32_t version, head_bytes, type, zero;
    uint64_t rows, cols;
    uint64_t bytes; /* of the file */
    uint64_t values_sum;
    uint64_t sum; /* checksum of all members before it */
};
_Static_assert(sizeof(struct head) == 64, "the head has 64 bytes");

static uint64_t head_sum(const struct head *head)
{
    return checksum_mix(0, checksum_tile(head, (int64_t)offsetof(struct head, sum)));
}

bool binary_vector_begins(int fd)
{
    char first[sizeof magic];
    return pread(fd, first, sizeof first, 0) == (ssize_t)sizeof first && memcmp(first, magic, sizeof magic) == 0;
}

/* A file, or bytes in memory (fd -1). */
struct input {
    spmv_context *ctx;
    const char *name;
    int fd;
    const char *memory;
    int64_t bytes;
};

static spmv_status fail(const struct input *in, const char *why)
{
    return context_fail(in->ctx, SPMV_ERROR_FORMAT, "%.480s: malformed binary form of a vector: %s", in->name, why);
}

/* Reads bytes [at, at + n), which lie inside the input. */
static spmv_status take(const struct input *in, int64_t at, int64_t n, void *to)
{
    enum { AT_ONCE = 1 << 30 };
    for (int64_t done = 0; done < n && in->fd >= 0;) {
        const ssize_t got = pread(in->fd, (char *)to + done, (size_t)min_i64(n - done, AT_ONCE), (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return context_fail(in->ctx, SPMV_ERROR_READ, "%.480s: cannot read after %lld bytes: %s", in->name,
                                (long long)(at + done), strerror(errno));
        if (got == 0)
            return context_fail(in->ctx, SPMV_ERROR_CHANGED, "%.480s: the file was shortened while it was read",
                                in->name);
        done += got;
    }
    if (in->fd < 0 && n > 0)
        memcpy(to, in->memory + at, (size_t)n);
    return SPMV_OK;
}

/* *count: the number of values in the file. */
static spmv_status check_head(const struct input *in, const struct head *head, int64_t *count)
{
    int64_t bytes = 0;
    if (!binary_form_possible())
        return context_fail(in->ctx, SPMV_ERROR_UNSUPPORTED, "%.480s: the binary form needs a little-endian machine",
                            in->name);
    if (memcmp(head->magic, magic, sizeof magic) != 0)
        return fail(in, "its signature is missing");
    if (head->version != VERSION)
        return context_fail(in->ctx, SPMV_ERROR_UNSUPPORTED,
                            "%.480s: version %lu of the binary form; this library reads version %d", in->name,
                            (unsigned long)head->version, VERSION);
    if (head->sum != head_sum(head))
        return fail(in, "the checksum of its header does not match");
    if (head->head_bytes != sizeof *head || head->zero != 0 || !type_is_floating((spmv_type)head->type))
        return fail(in, "its header is not of version 1");
    if (head->rows > INT64_MAX || head->cols > INT64_MAX ||
        !multiply_fits((int64_t)head->rows, (int64_t)head->cols, count) ||
        !multiply_fits(*count, (int64_t)spmv_type_size((spmv_type)head->type), &bytes))
        return fail(in, "its sizes are impossible");
    if (head->bytes != (uint64_t)in->bytes || bytes != in->bytes - (int64_t)sizeof *head)
        return context_fail(
            in->ctx, SPMV_ERROR_FORMAT,
            "%.300s: malformed binary form of a vector: %lld numbers need %lld bytes after the header; it has %lld",
            in->name, (long long)*count, (long long)bytes, (long long)in->bytes - (long long)sizeof *head);
    return SPMV_OK;
}

static spmv_status allocate(const struct input *in, int64_t count, spmv_type type, int64_t max_bytes, void **values)
{
    int64_t bytes = 0;
    if (!multiply_fits(count, (int64_t)spmv_type_size(type), &bytes) || bytes > max_bytes)
        return context_fail(in->ctx, SPMV_ERROR_MEMORY,
                            "%.480s: a vector of %lld numbers needs more than the %lld bytes of memory that are "
                            "allowed",
                            in->name, (long long)count, (long long)max_bytes);
    return host_alloc(in->ctx, bytes, "a vector", values);
}

static spmv_status read_input(const struct input *in, spmv_type type, int64_t max_bytes, void **values, int64_t *rows,
                              int64_t *cols)
{
    spmv_status st = SPMV_OK;
    struct head head;
    int64_t count = 0;
    uint64_t sum = 0;
    void *read = NULL, *converted = NULL;
    if (in->bytes < (int64_t)sizeof head)
        return fail(in, "it ends within its header");
    TRY(take(in, 0, (int64_t)sizeof head, &head));
    TRY(check_head(in, &head, &count));
    const spmv_type from = (spmv_type)head.type;
    const int64_t bytes = count * (int64_t)spmv_type_size(from);
    TRY(binary_type_check(in->ctx, in->name, from, type));
    TRY(allocate(in, count, from, max_bytes, &read));
    TRY(take(in, (int64_t)sizeof head, bytes, read));
    TRY(checksum(in->ctx, read, bytes, &sum));
    if (sum != head.values_sum) {
        st = context_fail(in->ctx, SPMV_ERROR_FORMAT, "%.480s: damaged: the checksum of its numbers does not match",
                          in->name);
        goto done;
    }
    if (from != type) {
        TRY(allocate(in, count, type, max_bytes, &converted));
        TRY(binary_values(in->ctx, in->name, from, read, count, type, converted));
        *values = converted;
        converted = NULL;
    } else {
        *values = read;
        read = NULL;
    }
    *rows = (int64_t)head.rows;
    *cols = (int64_t)head.cols;
done:
    host_free(read);
    host_free(converted);
    return st;
}

spmv_status binary_vector_read_memory(spmv_context *ctx, const char *name, const void *memory, int64_t bytes,
                                      spmv_type type, int64_t max_bytes, void **values, int64_t *rows, int64_t *cols)
{
    const struct input in = {ctx, name, -1, memory, bytes};
    *values = NULL;
    *rows = *cols = 0;
    return read_input(&in, type, max_bytes, values, rows, cols);
}

spmv_status binary_vector_read(spmv_context *ctx, const char *name, int fd, spmv_type type, int64_t max_bytes,
                               void **values, int64_t *rows, int64_t *cols)
{
    struct stat s;
    *values = NULL;
    *rows = *cols = 0;
    if (fstat(fd, &s) != 0)
        return context_fail(ctx, SPMV_ERROR_READ, "%.480s: cannot read: %s", name, strerror(errno));
    const struct input in = {ctx, name, fd, NULL, (int64_t)s.st_size};
    return read_input(&in, type, max_bytes, values, rows, cols);
}

spmv_status binary_vector_write(spmv_context *ctx, const char *path, spmv_type type, const void *values, int64_t rows,
                                int64_t cols)
{
    spmv_status st = SPMV_OK;
    struct output_file output = {.fd = -1};
    const int64_t bytes = rows * cols * (int64_t)spmv_type_size(type);
    struct head head = {.version = VERSION,
                        .head_bytes = sizeof head,
                        .type = (uint32_t)type,
                        .rows = (uint64_t)rows,
                        .cols = (uint64_t)cols,
                        .bytes = sizeof head + (uint64_t)bytes};
    memcpy(head.magic, magic, sizeof magic);
    if (!binary_form_possible())
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%s: the binary form needs a little-endian machine", path);
    TRY(checksum(ctx, values, bytes, &head.values_sum));
    head.sum = head_sum(&head);
    TRY(output_open(ctx, path, rows, &output));
    TRY(output_put(&output, &head, (int64_t)sizeof head, 0));
    TRY(output_put(&output, values, bytes, rows));
done:
    return output_close(&output, st);
}
