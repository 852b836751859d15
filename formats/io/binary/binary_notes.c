/* Notes: the text of the comments, then 32 bytes at the end of the file.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/binary/binary_notes.h"

#include <unistd.h>

#include "formats/io/binary/checksum.h"

enum { VERSION = 1 };
static const char magic[8] = {'S', 'P', 'M', 'V', 'n', 'o', 't', 'e'};

/* The layout in the file, little-endian, without gaps. */
struct tail {
    char magic[8];
    uint32_t version, symmetry;
    uint64_t comments_bytes;
    uint64_t sum; /* checksum of the comments, then of the members before it */
};
_Static_assert(sizeof(struct tail) == 32, "the tail has 32 bytes");

static spmv_status sum_of(spmv_context *ctx, const char *comments, const struct tail *tail, uint64_t *sum)
{
    uint64_t text = 0;
    const spmv_status st = checksum(ctx, comments, (int64_t)tail->comments_bytes, &text);
    *sum = checksum_mix(text, checksum_tile(tail, (int64_t)offsetof(struct tail, sum)));
    return st;
}

spmv_status binary_notes_make(spmv_context *ctx, spmv_symmetry symmetry, const char *comments, void **notes,
                              int64_t *bytes)
{
    const size_t length = comments != NULL ? strlen(comments) : 0;
    struct tail tail = {.version = VERSION, .symmetry = (uint32_t)symmetry, .comments_bytes = length};
    *notes = NULL;
    *bytes = 0;
    if (symmetry == SPMV_SYMMETRY_GENERAL && length == 0)
        return SPMV_OK;
    memcpy(tail.magic, magic, sizeof magic);
    spmv_status st = sum_of(ctx, comments, &tail, &tail.sum);
    if (st == SPMV_OK)
        st = host_alloc(ctx, (int64_t)(length + sizeof tail), "notes", notes);
    if (st != SPMV_OK)
        return st;
    if (length > 0)
        memcpy(*notes, comments, length);
    memcpy((char *)*notes + length, &tail, sizeof tail);
    *bytes = (int64_t)(length + sizeof tail);
    return SPMV_OK;
}

static bool read_at(int fd, void *to, int64_t bytes, int64_t at)
{
    for (int64_t done = 0; done < bytes;) {
        const ssize_t n = pread(fd, (char *)to + done, (size_t)(bytes - done), (off_t)(at + done));
        if (n <= 0)
            return false;
        done += n;
    }
    return true;
}

spmv_status binary_notes_read(spmv_context *ctx, int fd, int64_t file_bytes, spmv_symmetry *symmetry, char **comments)
{
    struct tail tail;
    uint64_t sum = 0;
    void *text = NULL;
    *symmetry = SPMV_SYMMETRY_GENERAL;
    if (comments != NULL)
        *comments = NULL;
    const int64_t end = file_bytes - (int64_t)sizeof tail;
    if (end < 0 || !read_at(fd, &tail, (int64_t)sizeof tail, end) || memcmp(tail.magic, magic, sizeof magic) != 0 ||
        tail.version != VERSION || tail.symmetry < SPMV_SYMMETRY_GENERAL || tail.symmetry > SPMV_SYMMETRY_HERMITIAN ||
        tail.comments_bytes > (uint64_t)end)
        return SPMV_OK;
    const int64_t length = (int64_t)tail.comments_bytes;
    spmv_status st = host_alloc(ctx, length + 1, "comments", &text);
    if (st != SPMV_OK)
        return st;
    ((char *)text)[length] = '\0';
    if (read_at(fd, text, length, end - length))
        st = sum_of(ctx, text, &tail, &sum);
    if (st == SPMV_OK && sum == tail.sum) {
        *symmetry = (spmv_symmetry)tail.symmetry;
        if (comments != NULL) {
            *comments = text;
            text = NULL;
        }
    }
    host_free(text);
    return st;
}
