/* Reading vectors from texts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_VECTOR_H
#define SUPPORT_VECTOR_H

#include "tests/support/support_io.h"

static inline spmv_status read_vector(spmv_context *ctx, const char *text, spmv_type type, void **values, int64_t *n)
{
    return vector_read_memory(ctx, "x.txt", text, (int64_t)strlen(text), type, 1000000, values, n);
}

/* Writes n numbers to a file and reads them back with the same bits. */
static inline void assert_vector_kept(spmv_context *ctx, const char *path, spmv_type type, const void *values,
                                      int64_t n)
{
    void *back = NULL;
    int64_t read = 0;
    assert_ok(ctx, spmv_vector_write(ctx, path, type, values, n, NULL));
    assert_ok(ctx, spmv_vector_read(ctx, path, type, &back, &read));
    assert_int_equal(read, n);
    assert_memory_equal(back, values, (size_t)n * spmv_type_size(type));
    spmv_host_free(back);
}

/* A text that is not a vector, with the status and the message of reading it. */
struct refused_vector {
    const char *text;
    spmv_status status;
    const char *sentence;
};

static inline void assert_vectors_refused(spmv_context *ctx, spmv_type type, const struct refused_vector *bad,
                                          size_t count)
{
    for (size_t b = 0; b < count; b++) {
        void *values = ctx;
        int64_t n = 5;
        const spmv_status st = read_vector(ctx, bad[b].text, type, &values, &n);
        assert_string_equal(spmv_last_error(ctx), bad[b].sentence);
        assert_int_equal(st, bad[b].status);
        assert_null(values);
        assert_int_equal(n, 0);
    }
}

#endif
