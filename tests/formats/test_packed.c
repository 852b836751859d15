/* Damaged packed files: flips every bit of a small file in turn and truncates it to every length.
 * Either the file is refused or the matrix is the packed one. The files are in tests/data/packed.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/packed/packed.h"
#include "tests/support/support_io.h"

static spmv_status read_bytes(spmv_context *ctx, const char *file, size_t bytes, spmv_matrix **matrix)
{
    return matrix_read_memory(ctx, "packed", file, (int64_t)bytes, NULL, matrix, NULL, 0);
}

/* Reads the bytes. The matrix must equal `want`; returns true if the file is refused. */
static bool refused_or_same(spmv_context *ctx, const char *file, size_t bytes, const spmv_matrix *want,
                            const char *name, const char *what, size_t at)
{
    spmv_matrix *matrix = NULL;
    const spmv_status st = read_bytes(ctx, file, bytes, &matrix);
    const int class = spmv_status_class(st);
    if (st != SPMV_OK && class != 2 && class != 3)
        fail_msg("%s, %s %zu: %s", name, what, at, spmv_last_error(ctx));
    if (st == SPMV_OK && !same_matrix(matrix, want))
        fail_msg("%s, %s %zu: another matrix", name, what, at);
    spmv_matrix_destroy(matrix);
    return st != SPMV_OK;
}

static void every_bit_counts(void **state)
{
    (void)state;
    static const char *const names[] = {
        "matrix.mtx.gz",     "two_pieces.mtx.gz", "twice.mtx.gz.gz", "matrix.tar.gz",
        "two_pieces.tar.gz", "more_after.tar.gz", "matrix.mtx.xz",   "matrix.tar.xz",
        "matrix.mtx.bz2",    "matrix.mtx.zst",    "matrix.tar.zst",
    };
    spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, 2);
    if (packed_available(ctx, "") != SPMV_OK) {
        spmv_context_destroy(ctx);
        skip();
    }
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        char path[512];
        size_t bytes = 0, refused = 0, cut = 0;
        spmv_matrix *want = NULL;
        snprintf(path, sizeof path, "%s/tests/data/packed/%s", support_source_dir(), names[k]);
        char *const file = get_file(path, &bytes);
        assert_ok(ctx, read_bytes(ctx, file, bytes, &want));
        for (size_t b = 0; b < 8 * bytes; b++) {
            file[b / 8] = (char)(file[b / 8] ^ 1 << b % 8);
            refused += refused_or_same(ctx, file, bytes, want, names[k], "bit", b);
            file[b / 8] = (char)(file[b / 8] ^ 1 << b % 8);
        }
        for (size_t length = 0; length < bytes; length++)
            cut += refused_or_same(ctx, file, length, want, names[k], "length", length);
        if (refused < 4 * bytes || cut < bytes / 2)
            fail_msg("%s: %zu of %zu bits and %zu of %zu lengths refused", names[k], refused, 8 * bytes, cut, bytes);
        spmv_matrix_destroy(want);
        free(file);
    }
    spmv_context_destroy(ctx);
}

SUPPORT_MAIN(cmocka_unit_test(every_bit_counts))
