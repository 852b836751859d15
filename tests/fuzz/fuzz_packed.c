/* libFuzzer target for compressed texts and archives. The first byte selects the matrix or the
 * member _b. An accepted input must give a valid matrix; a refused one must leave no output.
 * Nothing may be written to disk, and memory use must stay small, whatever sizes the input
 * declares.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/fuzz_target.h"

#include "formats/io/mtx/mtx_read.h"
#include "formats/io/text/text_source.h"

static void try_matrix(spmv_context *ctx, const char *data, int64_t size)
{
    spmv_matrix *matrix = NULL;
    spmv_read_options options;
    spmv_read_options_init(&options, sizeof options);
    options.max_bytes = 1 << 20;
    options.max_unpacked_bytes = 1 << 20;
    options.max_unpacked_ratio = 100;
    const spmv_status st = matrix_read_memory(ctx, "fuzz", data, size, &options, &matrix, NULL, 0);
    const int class = spmv_status_class(st);
    if (st != SPMV_OK) {
        require(matrix == NULL, "a matrix beside an error", spmv_last_error(ctx));
        require(class >= 2 && class <= 5, "an unexpected status", spmv_last_error(ctx));
        return;
    }
    spmv_csr a;
    spmv_matrix_view(matrix, &a);
    require(spmv_matrix_check(ctx, &a) == SPMV_OK, "an invalid matrix", spmv_last_error(ctx));
    spmv_matrix_destroy(matrix);
}

/* Reads the text of a member, byte by byte. */
static void try_member(spmv_context *ctx, const char *data, int64_t size)
{
    const struct packed_limits limits = {1 << 20, 100};
    struct text_source source;
    spmv_status st = text_open_memory(ctx, "fuzz", "_b", data, size, &limits, &source);
    char text[4096];
    int64_t got = 1, all = 0;
    while (st == SPMV_OK && got > 0) {
        st = text_read_next(&source, text, sizeof text, &got);
        all += got;
    }
    require(all <= (1 << 20) + (int64_t)sizeof text, "more text than is allowed", "");
    require(st == SPMV_OK || spmv_last_error(ctx)[0] != '\0', "no sentence", "");
    text_close(&source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spmv_context *const ctx = fuzz_context();
    if (size < 2)
        return 0;
    if (data[0] & 1)
        try_matrix(ctx, (const char *)data + 1, (int64_t)size - 1);
    else
        try_member(ctx, (const char *)data + 1, (int64_t)size - 1);
    return 0;
}
