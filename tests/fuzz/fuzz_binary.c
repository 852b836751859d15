/* libFuzzer target for the binary form. Any bytes are read as such a file. If the first byte
 * requests it, all checksums are corrected first, so that the code after them is reached. The
 * result must be a valid matrix with sorted columns, or vectors with as many numbers as the file
 * has.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/fuzz_target.h"

#include "formats/io/binary/binary_form.h"
#include "formats/io/binary/checksum.h"
#include "formats/io/vectors/binary_vector.h"

/* Offsets in the head, as in docs/binary-form.md. */
enum { TYPE = 16, ROWS = 24, NNZ = 40, ARRAYS = 48, SUMS = 80, HEAD_SUM = 120, HEAD = 128 };

static uint64_t word_at(const char *file, int at)
{
    uint64_t word;
    memcpy(&word, file + at, sizeof word);
    return word;
}

static void put_right(spmv_context *ctx, char *file, int64_t size)
{
    uint32_t type;
    memcpy(&type, file + TYPE, sizeof type);
    const uint64_t bytes[3] = {8 * (word_at(file, ROWS) + 1), 4 * word_at(file, NNZ),
                               type == 0 ? 0 : (type == SPMV_F32 ? 4 : 8) * word_at(file, NNZ)};
    for (int k = 0; k < 3; k++) {
        const uint64_t at = word_at(file, ARRAYS + 8 * k), all = (uint64_t)size;
        uint64_t sum = 0;
        if (at <= all && bytes[k] <= all - at && checksum(ctx, file + at, (int64_t)bytes[k], &sum) == SPMV_OK)
            memcpy(file + SUMS + 8 * k, &sum, sizeof sum);
    }
    const uint64_t sum = checksum_mix(0, checksum_tile(file, HEAD_SUM));
    memcpy(file + HEAD_SUM, &sum, sizeof sum);
}

/* Reads the same bytes as vectors, whose head is shorter. */
static void try_vector(spmv_context *ctx, char *file, int64_t bytes, bool right, spmv_type type)
{
    enum { SIZE = 40, VALUES_SUM = 48, VECTOR_SUM = 56, VECTOR_HEAD = 64 };
    void *values = NULL;
    int64_t rows = 0, cols = 0;
    if (right && bytes >= VECTOR_HEAD) {
        const uint64_t all = (uint64_t)bytes;
        uint64_t sum = 0;
        require(checksum(ctx, file + VECTOR_HEAD, bytes - VECTOR_HEAD, &sum) == SPMV_OK, "no sum", "");
        memcpy(file + SIZE, &all, sizeof all);
        memcpy(file + VALUES_SUM, &sum, sizeof sum);
        sum = checksum_mix(0, checksum_tile(file, VECTOR_SUM));
        memcpy(file + VECTOR_SUM, &sum, sizeof sum);
    }
    const spmv_status st = binary_vector_read_memory(ctx, "fuzz", file, bytes, type, 1 << 20, &values, &rows, &cols);
    if (st != SPMV_OK) {
        const int class = spmv_status_class(st);
        require(values == NULL && class >= 3 && class <= 5, "vectors or an unexpected status", spmv_last_error(ctx));
    }
    /* Reads the last element, so that the sanitizer checks the size. */
    volatile float last = rows * cols > 0 ? ((const float *)values)[rows * cols - 1] : 0;
    (void)last;
    spmv_host_free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spmv_context *const ctx = fuzz_context();
    if (size < 2)
        return 0;
    void *file = NULL;
    const int64_t bytes = (int64_t)size - 1;
    require(host_alloc(ctx, bytes, "a file", &file) == SPMV_OK, "no memory", "");
    memcpy(file, data + 1, (size_t)bytes);
    if (data[0] & 1 && bytes >= HEAD) {
        const uint64_t all = (uint64_t)bytes;
        memcpy((char *)file + 72, &all, sizeof all);
        put_right(ctx, file, bytes);
    }
    spmv_matrix *matrix = NULL;
    const spmv_status st =
        binary_form_read_memory(ctx, "fuzz", file, bytes, data[0] & 2 ? SPMV_F32 : SPMV_F64, &matrix);
    if (st != SPMV_OK) {
        const int class = spmv_status_class(st);
        require(matrix == NULL && class >= 3 && class <= 5, "a matrix or an unexpected status", spmv_last_error(ctx));
    } else {
        check_matrix(ctx, matrix);
        spmv_matrix_destroy(matrix);
    }
    memcpy(file, data + 1, (size_t)bytes);
    try_vector(ctx, file, bytes, data[0] & 1, data[0] & 2 ? SPMV_F32 : SPMV_C128);
    host_free(file);
    return 0;
}
