/* More than 2^31 entries: through a pipe into a matrix, into the binary form and back, and as text.
 * Runs only with SPMV_TEST_LARGE=1, and if about 20 GB of memory and 10 GB of disk are free. The
 * first tests need neither: indices and counts beyond 32 bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>

#include "formats/io/text/arrays.h"
#include "tests/support/support_io.h"

#define MANY (((int64_t)1 << 31) + 81 * 1000)

/* Indices into arrays with up to 2^31 - 1 rows: the number of elements before a column, and its
 * inverse. */
static void places_beyond_32_bits(void **state)
{
    (void)state;
    static const spmv_symmetry symmetries[] = {SPMV_SYMMETRY_GENERAL, SPMV_SYMMETRY_SYMMETRIC, SPMV_SYMMETRY_SKEW,
                                               SPMV_SYMMETRY_HERMITIAN};
    static const int64_t sizes[] = {65537, 3000000, INT32_MAX};
    for (size_t s = 0; s < 4; s++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            const int64_t n = sizes[k];
            const struct mtx_header header = {.array = true, .symmetry = symmetries[s], .rows = n, .cols = n};
            const int64_t cols[] = {0, 1, n / 3, n / 2, n - 2};
            for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++) {
                const int64_t first = symmetries[s] == SPMV_SYMMETRY_GENERAL ? 0
                                      : symmetries[s] == SPMV_SYMMETRY_SKEW  ? cols[c] + 1
                                                                             : cols[c];
                const int64_t before = array_before(&header, cols[c]), last = before + n - 1 - first;
                assert_true(before >= 0 && array_before(&header, cols[c] + 1) == last + 1);
                const struct array_cell top = array_cell(&header, before), bottom = array_cell(&header, last);
                assert_true(top.row == first && top.col == cols[c] && bottom.row == n - 1 && bottom.col == cols[c]);
            }
        }
    /* 2^31 - 1 rows and columns: the number of elements needs 62 bits */
    const struct mtx_header all = {
        .array = true, .symmetry = SPMV_SYMMETRY_GENERAL, .rows = INT32_MAX, .cols = INT32_MAX};
    assert_true(array_before(&all, INT32_MAX) == (int64_t)INT32_MAX * INT32_MAX);
}

/* A large count in the size line is refused if fewer entries follow. */
static void large_counts_are_counted(void **state)
{
    static const struct {
        const char *text, *sentence;
    } bad[] = {
        {"%%MatrixMarket matrix coordinate pattern general\n9 9 2147483649\n1 1\n1 1\n",
         "m:2:5: 2147483649 entries declared, but the 8 bytes that follow cannot hold more than 2"},
        {"%%MatrixMarket matrix coordinate pattern general\n4294967297 9 1\n4294967298 1\n",
         "m:3:1: row 4294967298 exceeds the 4294967297 rows declared on line 2"},
        {"%%MatrixMarket matrix array real symmetric\n65536 65536\n1\n",
         "m:2:1: 2147516416 entries declared, but the 2 bytes that follow cannot hold more than 1"},
    };
    spmv_context *ctx = *state;
    spmv_read_options options = support_read_options();
    options.max_bytes = INT64_MAX;
    for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
        spmv_matrix *matrix = NULL;
        assert_fails(
            ctx, matrix_read_memory(ctx, "m", bad[b].text, (int64_t)strlen(bad[b].text), &options, &matrix, NULL, 0),
            SPMV_ERROR_FORMAT, bad[b].sentence);
    }
}

/* ---------------------------------------------------------------- large files */

static int64_t memory_available(void)
{
    char line[256];
    long long kib = 0;
    FILE *const f = fopen("/proc/meminfo", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL && sscanf(line, "MemAvailable: %lld kB", &kib) != 1)
        continue;
    if (f != NULL)
        fclose(f);
    return (int64_t)kib << 10;
}

static void need(int64_t memory, int64_t disk)
{
    struct statvfs s;
    const char *const asked = getenv("SPMV_TEST_LARGE");
    const int64_t available = memory_available();
    const bool wanted = asked != NULL && strcmp(asked, "1") == 0;
    const int64_t room = statvfs(folder, &s) == 0 ? (int64_t)s.f_bavail * (int64_t)s.f_frsize : 0;
    if (wanted && available >= memory && room >= disk)
        return;
    print_message(
        "skipped: SPMV_TEST_LARGE=1 asks for it; %lld GB of memory are available, %lld GB needed; of disk %lld, %lld\n",
        (long long)(available >> 30), (long long)(memory >> 30), (long long)(room >> 30), (long long)(disk >> 30));
    skip();
}

static bool write_all(int fd, const char *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = write(fd, bytes + done, n - done);
        if (got < 0 && errno != EINTR)
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* A pattern of 9 x 9 cells, each given MANY / 81 times, sorted by row and column. */
static void *feed_entries(void *path)
{
    enum { LINES = 1 << 18, LINE = 4 };
    static char block[LINES * LINE];
    const int fd = open(path, O_WRONLY);
    char head[128];
    bool fine = fd >= 0 && write_all(fd, head,
                                     (size_t)snprintf(head, sizeof head,
                                                      "%%%%MatrixMarket matrix coordinate pattern general\n"
                                                      "9 9 %lld\n",
                                                      (long long)(MANY / 81 * 81)));
    for (int cell = 0; cell < 81 && fine; cell++) {
        for (int k = 0; k < LINES; k++)
            memcpy(block + k * LINE, (const char[]){(char)('1' + cell / 9), ' ', (char)('1' + cell % 9), '\n'}, LINE);
        for (int64_t left = MANY / 81; left > 0 && fine; left -= LINES)
            fine = write_all(fd, block, LINE * (size_t)(left < LINES ? left : LINES));
    }
    if (fd >= 0)
        close(fd);
    return fine ? path : NULL;
}

static void a_pipe_of_more_than_2_31_entries(void **state)
{
    char fifo[128];
    pthread_t writer;
    void *fed = NULL;
    need((int64_t)20 << 30, 0);
    spmv_context *ctx = *state;
    spmv_read_options options = support_read_options();
    options.max_bytes = INT64_MAX; /* the estimate is larger than the memory that is used */
    spmv_read_info info;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    assert_int_equal(mkfifo(in_folder("fifo", fifo), 0600), 0);
    assert_int_equal(pthread_create(&writer, NULL, feed_entries, fifo), 0);
    assert_ok(ctx, spmv_matrix_read(ctx, fifo, &options, &matrix, &info, sizeof info));
    pthread_join(writer, &fed);
    unlink(fifo);
    assert_non_null(fed);
    print_message("%lld entries in %.0f s\n", (long long)info.entries, info.seconds);
    assert_true(info.entries == MANY / 81 * 81 && info.entries > INT32_MAX);
    assert_true(info.duplicates == info.entries - 81);
    spmv_matrix_view(matrix, &a);
    assert_int_equal(a.nnz, 81);
    for (int k = 0; k < 81; k++)
        assert_true(a.col[k] == k % 9 && ((const int64_t *)a.row_ptr)[k / 9] == k / 9 * 9);
    spmv_matrix_destroy(matrix);
}

enum { FULL_ROWS = 46342, FULL_COLS = 46341 };

static void the_binary_form_of_more_than_2_31_entries(void **state)
{
    char path[128];
    const int64_t nnz = (int64_t)FULL_ROWS * FULL_COLS;
    assert_true(nnz > (int64_t)INT32_MAX + 1);
    need(nnz * 4 + ((int64_t)2 << 30), nnz * 4 + ((int64_t)2 << 30));
    spmv_context *ctx = *state;
    int32_t *const col = malloc((size_t)nnz * sizeof *col);
    int64_t *const row_ptr = malloc((FULL_ROWS + 1) * sizeof *row_ptr);
    assert_true(col != NULL && row_ptr != NULL);
    for (int64_t i = 0; i <= FULL_ROWS; i++)
        row_ptr[i] = i * FULL_COLS;
#pragma omp parallel for
    for (int64_t i = 0; i < FULL_ROWS; i++)
        for (int32_t j = 0; j < FULL_COLS; j++)
            col[i * FULL_COLS + j] = j;
    const spmv_csr a = support_csr_with(FULL_ROWS, FULL_COLS, nnz, row_ptr, 64, col, NULL, SPMV_F64);
    assert_ok(ctx, spmv_matrix_write(ctx, &a, in_folder("a.spmv", path)));
    assert_ok(ctx, spmv_matrix_write(ctx, &a, "/dev/null")); /* about 25 GB of text */
    spmv_matrix *matrix = NULL;
    spmv_csr b;
    const spmv_status st = spmv_matrix_read(ctx, path, NULL, &matrix, NULL, 0);
    unlink(path);
    assert_ok(ctx, st);
    spmv_matrix_view(matrix, &b);
    assert_true(b.rows == a.rows && b.cols == a.cols && b.nnz == nnz && b.val == NULL);
    assert_memory_equal(b.row_ptr, row_ptr, (FULL_ROWS + 1) * sizeof *row_ptr);
    assert_true(memcmp(b.col, col, (size_t)nnz * sizeof *col) == 0);
    spmv_matrix_destroy(matrix);
    support_free(col, row_ptr);
}

SUPPORT_MAIN(cmocka_unit_test(places_beyond_32_bits), with_omp(large_counts_are_counted, 2),
             with_folder(a_pipe_of_more_than_2_31_entries, 4),
             with_folder(the_binary_form_of_more_than_2_31_entries, 4))
