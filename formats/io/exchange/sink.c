/* Output of files of other programs: bytes are collected, compressed if the name says so, and written.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "formats/io/exchange/exchange.h"

static spmv_status flush(struct sink *sink)
{
    char *packed = NULL;
    int64_t bytes = sink->used;
    if (bytes == 0)
        return SPMV_OK;
    if (sink->compression != COMPRESSION_NONE &&
        !packed_pack(sink->compression, (const char *)sink->buffer, sink->used, &packed, &bytes))
        return context_fail_memory(sink->output->ctx, "compressing a file", sink->used);
    const spmv_status st =
        output_put(sink->output, packed != NULL ? packed : (const char *)sink->buffer, bytes, sink->used);
    host_free(packed);
    sink->used = 0;
    return st;
}

spmv_status sink_put(struct sink *sink, const void *bytes, int64_t n)
{
    sink->total += n;
    for (int64_t done = 0; done < n;) {
        const int64_t now = min_i64(n - done, SINK_BYTES - sink->used);
        memcpy(sink->buffer + sink->used, (const char *)bytes + done, (size_t)now);
        sink->used += now;
        done += now;
        const spmv_status st = sink->used == SINK_BYTES ? flush(sink) : SPMV_OK;
        if (st != SPMV_OK)
            return st;
    }
    return SPMV_OK;
}

spmv_status sink_put_integer(struct sink *sink, int64_t value, int width, bool big)
{
    unsigned char bytes[8];
    put_bytes(bytes, (uint64_t)value, width, big);
    return sink_put(sink, bytes, width);
}

spmv_status sink_put_reals(struct sink *sink, spmv_type type, const void *values, int64_t n, bool wide, bool big)
{
    spmv_status st = SPMV_OK;
    for (int64_t k = 0; k < n && st == SPMV_OK; k++) {
        uint64_t bits = 0;
        uint32_t half = 0;
        if (type == SPMV_F32 && !wide) {
            memcpy(&half, (const float *)values + k, sizeof half);
            st = sink_put_integer(sink, half, 4, big);
        } else {
            const double value = real_at(type, values, k);
            memcpy(&bits, &value, sizeof bits);
            st = sink_put_integer(sink, (int64_t)bits, 8, big);
        }
    }
    return st;
}

spmv_status sink_print(struct sink *sink, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return sink_put(sink, text, min_i64(n, (int64_t)sizeof text - 1));
}

/* Opens the file and calls one of both. */
static spmv_status write_file(spmv_context *ctx, const char *path, enum compression compression,
                              const struct exchange_format *format, const struct exchange_matrix *matrix,
                              const struct exchange_vectors *vectors)
{
    spmv_status st = SPMV_OK;
    struct output_file output = {.fd = -1};
    void *buffer = NULL;
    if (matrix != NULL ? format->write_matrix == NULL : format->write_vectors == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%.300s: %s are not written as .%s", path,
                            matrix != NULL ? "matrices" : "vectors", format->form);
    struct sink sink = {.output = &output, .compression = compression};
    TRY(host_alloc(ctx, SINK_BYTES, "writing a file", &buffer));
    sink.buffer = buffer;
    TRY(output_open(ctx, path, 0, &output));
    TRY(matrix != NULL ? format->write_matrix(matrix, &sink) : format->write_vectors(vectors, &sink));
    TRY(flush(&sink));
done:
    host_free(buffer);
    return output_close(&output, st);
}

spmv_status exchange_write_matrix(const struct exchange_format *format, enum compression compression,
                                  const struct exchange_matrix *matrix)
{
    return write_file(matrix->ctx, matrix->path, compression, format, matrix, NULL);
}

spmv_status exchange_write_vectors(const struct exchange_format *format, enum compression compression,
                                   const struct exchange_vectors *vectors)
{
    return write_file(vectors->ctx, vectors->path, compression, format, NULL, vectors);
}
