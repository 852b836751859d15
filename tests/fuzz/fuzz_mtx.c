/* libFuzzer target for the readers. Any text is read as a matrix in f64 and as a vector in f32,
 * with blocks and tiles of a few bytes, so that short texts cross their borders too. An accepted
 * text must give a valid matrix. A refused one must leave no output and name a position in the
 * text.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/fuzz_target.h"

#include <string.h>

#include "formats/io/exchange/exchange.h"
#include "formats/io/mtx/mtx_read.h"
#include "formats/io/packed/packed.h"

/* Memory limit for one text; small, so that a large declared size costs no time. */
enum { MAX_BYTES = 1 << 20 };

/* Checks for "fuzz:LINE:COLUMN: reason" with a position in the text or directly after it. */
static void check_place(const char *sentence, const uint8_t *data, size_t size)
{
    long long line = 0, column = 0, number = 1;
    int length = 0;
    require(sscanf(sentence, "fuzz:%lld:%lld: %n", &line, &column, &length) == 2 && sentence[length] != '\0',
            "no place or no reason", sentence);
    size_t begin = 0;
    for (size_t b = 0; b < size && number < line; b++) {
        if (data[b] == '\n') {
            number++;
            begin = b + 1;
        }
    }
    size_t end = begin;
    while (end < size && data[end] != '\n')
        end++;
    require(line == number, "a line that is not there", sentence);
    require(column >= 1 && column <= (long long)(end - begin) + 1, "a column that is not there", sentence);
}

static void check_refusal(const spmv_context *ctx, spmv_status st, const uint8_t *data, size_t size)
{
    const char *const sentence = spmv_last_error(ctx);
    const int class = spmv_status_class(st);
    require(class == 3 || class == 4 || st == SPMV_ERROR_MEMORY, "an unexpected status", sentence);
    if (class == 3)
        check_place(sentence, data, size);
}

static void try_matrix(spmv_context *ctx, const uint8_t *data, size_t size)
{
    spmv_matrix *matrix = NULL;
    spmv_read_options options;
    spmv_read_options_init(&options, sizeof options);
    options.max_bytes = MAX_BYTES;
    spmv_read_info info;
    const spmv_status st =
        matrix_read_memory(ctx, "fuzz", (const char *)data, (int64_t)size, &options, &matrix, &info, sizeof info);
    if (st != SPMV_OK) {
        require(matrix == NULL, "a matrix beside an error", spmv_last_error(ctx));
        check_refusal(ctx, st, data, size);
        return;
    }
    check_matrix(ctx, matrix);
    require(info.bytes == (int64_t)size, "bytes not read", "");
    spmv_matrix_destroy(matrix);
}

static void try_vector(spmv_context *ctx, const uint8_t *data, size_t size)
{
    void *values = NULL;
    int64_t n = 0;
    const spmv_status st =
        vector_read_memory(ctx, "fuzz", (const char *)data, (int64_t)size, SPMV_F32, MAX_BYTES, &values, &n);
    if (st != SPMV_OK) {
        require(values == NULL && n == 0, "a vector beside an error", spmv_last_error(ctx));
        check_refusal(ctx, st, data, size);
    }
    /* Reads the last element, so that the sanitizer checks the size. */
    volatile float last = n > 0 ? ((const float *)values)[n - 1] : 0;
    spmv_host_free(values);
    values = NULL;
    const spmv_status complex =
        vector_read_memory(ctx, "fuzz", (const char *)data, (int64_t)size, SPMV_C128, MAX_BYTES, &values, &n);
    if (complex != SPMV_OK)
        check_refusal(ctx, complex, data, size);
    last = n > 0 ? (float)((const spmv_c128 *)values)[n - 1].im : 0;
    spmv_host_free(values);
    values = NULL;
    int64_t k = 0;
    const spmv_status several =
        vectors_read_memory(ctx, "fuzz", (const char *)data, (int64_t)size, SPMV_F64, MAX_BYTES, &values, &n, &k);
    if (several != SPMV_OK) {
        require(values == NULL && n == 0 && k == 0, "vectors beside an error", spmv_last_error(ctx));
        check_refusal(ctx, several, data, size);
    }
    last = n * k > 0 ? (float)((const double *)values)[n * k - 1] : 0;
    (void)last;
    spmv_host_free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spmv_context *const ctx = fuzz_context();
    /* libFuzzer passes NULL for the empty text; NULL would mean a file. */
    const uint8_t *const text = size > 0 ? data : (const uint8_t *)"";
    /* fuzz_packed.c and fuzz_exchange.c test these. */
    if (packed_begins((const char *)text, (int64_t)size) || exchange_begins(text, (int64_t)size) != NULL)
        return 0;
    try_matrix(ctx, text, size);
    try_vector(ctx, text, size);
    return 0;
}
