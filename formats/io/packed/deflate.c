/* Unpacks deflated blocks: see deflate.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/packed/deflate.h"

#include "formats/io/packed/archive_library.h"

#ifdef SPMV_HAVE_ARCHIVE

enum { MOST_AT_ONCE = 1 << 30, FIRST = 64 << 10 };

static spmv_status fail_damaged(spmv_context *ctx, const char *what, const z_stream *z, int result)
{
    return context_fail(ctx, SPMV_ERROR_FORMAT, "%.480s: damaged: %s", what,
                        z->msg != NULL           ? z->msg
                        : result == Z_NEED_DICT  ? "it needs a dictionary"
                        : result == Z_STREAM_END ? "bytes follow its end"
                                                 : "it is truncated");
}

spmv_status deflate_unpack(spmv_context *ctx, const char *what, const void *from, int64_t n, bool raw, int64_t most,
                           void **to, int64_t *to_bytes)
{
    const struct archive_library *const lib = archive_library();
    z_stream z = {.next_in = (Bytef *)(uintptr_t)from};
    int64_t room = min_i64(most, max_i64(FIRST, min_i64(n, INT64_MAX / 8) * 4)), used = 0, taken = 0;
    int result = Z_OK;
    *to = NULL;
    *to_bytes = 0;
    if (!lib->zlib_open)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%.480s: zlib (libz.so.1) is needed to unpack it: %s", what,
                            lib->why);
    if (lib->inflateInit2_(&z, raw ? -15 : 15, ZLIB_VERSION, (int)sizeof z) != Z_OK)
        return context_fail_memory(ctx, "unpacking a file", FIRST);
    spmv_status st = host_resize(ctx, max_i64(1, room), "unpacking a file", to);
    while (st == SPMV_OK && result == Z_OK) {
        if (used == room && room >= most) {
            st = context_fail(ctx, SPMV_ERROR_MEMORY, "%.480s: unpacked it needs more than the allowed %lld bytes",
                              what, (long long)most);
            break;
        }
        if (used == room) {
            room = min_i64(most, 2 * room);
            st = host_resize(ctx, room, "unpacking a file", to);
            continue;
        }
        const uInt in = (uInt)min_i64(n - taken, MOST_AT_ONCE), out = (uInt)min_i64(room - used, MOST_AT_ONCE);
        z.avail_in = in;
        z.avail_out = out;
        z.next_out = (Bytef *)*to + used;
        result = lib->inflate(&z, Z_NO_FLUSH);
        taken += in - z.avail_in;
        used += out - z.avail_out;
    }
    if (st == SPMV_OK && (result != Z_STREAM_END || taken != n))
        st = fail_damaged(ctx, what, &z, result);
    lib->inflateEnd(&z);
    *to_bytes = used;
    return st;
}

#else

spmv_status deflate_unpack(spmv_context *ctx, const char *what, const void *from, int64_t n, bool raw, int64_t most,
                           void **to, int64_t *to_bytes)
{
    (void)from, (void)n, (void)raw, (void)most;
    *to = NULL;
    *to_bytes = 0;
    return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%.480s: this build cannot unpack it: it was made without zlib",
                        what);
}

#endif

/* Eight bytes at a time: table[t][b] is the sum of byte b, followed by t zeros. The polynomial is that of zip, ISO 3309,
 * reflected. */
uint32_t crc32_of(uint32_t sum, const void *bytes, int64_t n)
{
    enum { AT_ONCE = 8 };
    uint32_t table[AT_ONCE][256];
    const unsigned char *b = bytes;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int k = 0; k < 8; k++)
            value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
        table[0][i] = value;
    }
    for (int t = 1; t < AT_ONCE; t++)
        for (int i = 0; i < 256; i++)
            table[t][i] = table[t - 1][i] >> 8 ^ table[0][table[t - 1][i] & 255];
    sum = ~sum;
    for (; n >= AT_ONCE; n -= AT_ONCE, b += AT_ONCE) {
        uint32_t next = 0;
        for (int t = 0; t < AT_ONCE; t++)
            next ^= table[AT_ONCE - 1 - t][(t < 4 ? sum >> 8 * t ^ b[t] : b[t]) & 255];
        sum = next;
    }
    for (; n > 0; n--)
        sum = sum >> 8 ^ table[0][(sum ^ *b++) & 255];
    return ~sum;
}
