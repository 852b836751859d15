/* libFuzzer target for files of other programs, other than HDF5 files, which another library reads. Any bytes are read
 * as a matrix, as vectors, and as a variable named A. An accepted file must give a valid matrix. The checksums of zip
 * archives are not compared, so that the code after them is reached.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/fuzz_target.h"

#include "formats/io/exchange/exchange.h"

/* Memory limit for one file; small, so that a large declared size costs no time. */
enum { MAX_BYTES = 1 << 20 };

static spmv_status fits(const struct exchange *x, int64_t bytes, int64_t entries, spmv_type type, const void *user)
{
    (void)entries, (void)type, (void)user;
    return bytes > MAX_BYTES || x->rows > MAX_BYTES / 16
               ? context_fail(x->ctx, SPMV_ERROR_MEMORY, "%s: more than is allowed", x->name)
               : SPMV_OK;
}

static void check_refusal(spmv_context *ctx, spmv_status st)
{
    const char *const sentence = spmv_last_error(ctx);
    const int class = spmv_status_class(st);
    require(class >= 2 && class <= 5, "an unexpected status", sentence);
    require(strncmp(sentence, "fuzz", 4) == 0 || st == SPMV_ERROR_MEMORY, "no name", sentence);
}

static void try_matrix(spmv_context *ctx, const uint8_t *data, size_t size, const char *member, spmv_type type)
{
    const struct exchange_format *format = NULL;
    struct text_source source;
    spmv_matrix *matrix = NULL;
    spmv_read_info info = {.size = sizeof info};
    spmv_status st = text_open_memory(ctx, "fuzz", member, (const char *)data, (int64_t)size, NULL, &source);
    if (st == SPMV_OK)
        st = exchange_find(&source, &format);
    if (st == SPMV_OK && format != NULL)
        st = exchange_read_matrix(&source, format, type, MAX_BYTES, fits, NULL, &matrix, &info);
    text_close(&source);
    if (st != SPMV_OK) {
        require(matrix == NULL, "a matrix beside an error", spmv_last_error(ctx));
        check_refusal(ctx, st);
    } else if (matrix != NULL) {
        check_matrix(ctx, matrix);
        spmv_matrix_destroy(matrix);
    }
}

static void try_vectors(spmv_context *ctx, const uint8_t *data, size_t size)
{
    const struct exchange_format *format = NULL;
    struct text_source source;
    void *values = NULL;
    int64_t rows = 0, cols = 0;
    spmv_status st = text_open_memory(ctx, "fuzz", NULL, (const char *)data, (int64_t)size, NULL, &source);
    if (st == SPMV_OK)
        st = exchange_find(&source, &format);
    if (st == SPMV_OK && format != NULL)
        st = exchange_read_vectors(&source, format, SPMV_C128, MAX_BYTES, &values, &rows, &cols);
    text_close(&source);
    if (st != SPMV_OK)
        check_refusal(ctx, st);
    /* Reads the last element, so that the sanitizer checks the size. */
    volatile double last = values != NULL && rows * cols > 0 ? ((const spmv_c128 *)values)[rows * cols - 1].im : 0;
    (void)last;
    spmv_host_free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spmv_context *const ctx = fuzz_context();
    /* Compressed files are tested by fuzz_packed.c, Matrix Market by fuzz_mtx.c. */
    if (size == 0 || packed_begins((const char *)data, (int64_t)size) || mat_hdf5_begins(data, (int64_t)size) ||
        exchange_begins(data, (int64_t)size) == NULL)
        return 0;
    try_matrix(ctx, data, size, NULL, SPMV_TYPE_DEFAULT);
    try_matrix(ctx, data, size, NULL, SPMV_F32);
    try_matrix(ctx, data, size, "A", SPMV_C64);
    try_vectors(ctx, data, size);
    return 0;
}
