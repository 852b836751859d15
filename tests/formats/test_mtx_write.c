/* Writing Matrix Market files: the text, the round trip to the same bits, and replacing an existing
 * file.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <signal.h>

#include "tests/support/support_io.h"

static spmv_context *context(void)
{
    return support_context_on(SPMV_BACKEND_OMP, 2);
}

/* 2 x 3: (1,1) 1.5, (1,3) -0, (2,2) 1e22 */
static spmv_csr small(const double *val)
{
    static const int32_t row_ptr[] = {0, 2, 3}, col[] = {0, 2, 1};
    return support_csr(2, 3, row_ptr, col, val);
}

static const double small_values[] = {1.5, -0.0, 1e22};
static const char small_text[] = "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 1 1.5\n1 3 -0\n2 2 1e+22\n";

static void assert_file(const char *path, const char *expected)
{
    size_t bytes = 0;
    char *const text = get_file(path, &bytes);
    assert_string_equal(text, expected);
    free(text);
}

static int files_in_folder(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void text_is_as_expected(void **state)
{
    char path[128];
    spmv_context *ctx = *state;
    spmv_csr a = small(small_values);
    assert_ok(ctx, spmv_matrix_write(ctx, &a, in_folder("a.mtx", path)));
    assert_file(path, small_text);
    a.val = NULL;
    assert_ok(ctx, spmv_matrix_write(ctx, &a, path));
    assert_file(path, "%%MatrixMarket matrix coordinate pattern general\n2 3 3\n1 1\n1 3\n2 2\n");
    const int64_t none[] = {0};
    const spmv_csr empty = {.cols = 7,
                            .row_ptr = none,
                            .row_ptr_bits = 64,
                            .val = small_values,
                            .type = SPMV_F32,
                            .memory = SPMV_MEMORY_HOST};
    assert_ok(ctx, spmv_matrix_write(ctx, &empty, path));
    assert_file(path, "%%MatrixMarket matrix coordinate real general\n0 7 0\n");
    assert_int_equal(files_in_folder(), 1);
    unlink(path);
}

/* Every exponent with random fractions, subnormals and the ends of the range, in both types; enough
 * to flush the buffer several times. */
static void back_to_the_same_bits(void **state)
{
    enum { N = 60000 };
    static double values[N];
    static float singles[N];
    static int64_t row_ptr[N + 1];
    static int32_t col[N];
    char path[128];
    uint64_t seed = 11;
    const double ends[] = {DBL_MAX, -DBL_MAX, DBL_MIN, 0x1p-1074, -0x1p-1074, 0.0, -0.0, 0.1, 1e23, 9007199254740993.0};
    const float single_ends[] = {FLT_MAX, FLT_MIN, 0x1p-149f, -0x1p-149f, 0.1f, 16777217.0f};
    for (int k = 0; k < N; k++) {
        const uint64_t bits = support_random(&seed);
        const uint32_t word = (uint32_t)(bits >> 32);
        memcpy(&values[k], &bits, sizeof bits);
        memcpy(&singles[k], &word, sizeof word);
        values[k] = isfinite(values[k]) ? values[k] : 1.0;
        singles[k] = isfinite(singles[k]) ? singles[k] : 1.0f;
        if (k % 8 == 3)
            values[k] = (double)(bits >> 12) * 0x1p-1074; /* subnormal */
        row_ptr[k + 1] = k + 1;
        col[k] = k % 1000;
    }
    memcpy(values, ends, sizeof ends);
    memcpy(singles, single_ends, sizeof single_ends);
    spmv_context *ctx = *state;
    for (int t = 0; t < 2; t++) {
        const spmv_csr a = support_csr_with(N, 1000, N, row_ptr, 64, col, t == 0 ? (const void *)values : singles,
                                            t == 0 ? SPMV_F64 : SPMV_F32);
        spmv_read_options options = support_read_options();
        options.type = a.type;
        spmv_matrix *matrix = NULL;
        spmv_csr b;
        assert_ok(ctx, spmv_matrix_write(ctx, &a, in_folder("a.mtx", path)));
        assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &matrix, NULL, 0));
        spmv_matrix_view(matrix, &b);
        assert_int_equal(b.nnz, N);
        assert_memory_equal(b.row_ptr, row_ptr, sizeof row_ptr);
        assert_memory_equal(b.col, col, sizeof col);
        assert_memory_equal(b.val, a.val, N * spmv_type_size(a.type));
        spmv_matrix_destroy(matrix);
    }
    unlink(path);
}

static void what_cannot_be_written(void **state)
{
    char path[128];
    spmv_context *ctx = *state;
    const double infinite[] = {1, INFINITY, 2}, nan[] = {1, 2, NAN};
    spmv_csr a = small(infinite);
    in_folder("a.mtx", path);
    assert_fails(
        ctx, spmv_matrix_write(ctx, &a, path), SPMV_ERROR_UNSUPPORTED,
        "the matrix contains inf (entry 1, column 2 (counted from 0)), which a Matrix Market file cannot represent");
    a = small(nan);
    assert_fails(ctx, spmv_matrix_write(ctx, &a, path), SPMV_ERROR_UNSUPPORTED, "nan");
    a = small(small_values);
    a.type = SPMV_I64;
    assert_fails(ctx, spmv_matrix_write(ctx, &a, path), SPMV_ERROR_TYPE, "i64");
    a = small(small_values);
    a.cols = 2;
    assert_fails(ctx, spmv_matrix_write(ctx, &a, path), SPMV_ERROR_SIZE, "");
    assert_fails(ctx, spmv_matrix_write(ctx, NULL, path), SPMV_ERROR_ARGUMENT, "matrix");
    assert_fails(ctx, spmv_matrix_write(ctx, &a, NULL), SPMV_ERROR_ARGUMENT, "path");
    assert_int_equal(files_in_folder(), 0);
}

static void an_existing_file_is_replaced_whole(void **state)
{
    char path[128], link[128], folder_there[128], dangling[128];
    spmv_context *ctx = *state;
    const spmv_csr a = small(small_values);
    struct stat s;

    /* The file keeps its mode; a new file gets the mode of the umask. */
    put_file(in_folder("a.mtx", path), "old", 3);
    assert_int_equal(chmod(path, 0640), 0);
    assert_ok(ctx, spmv_matrix_write(ctx, &a, path));
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 07777, 0640);
    assert_file(path, small_text);
    unlink(path);
    const mode_t mask = umask(027);
    assert_ok(ctx, spmv_matrix_write(ctx, &a, path));
    umask(mask);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 07777, 0640);

    /* Through a link: the link stays, its target is replaced. */
    put_file(path, "old", 3);
    assert_int_equal(symlink(path, in_folder("link.mtx", link)), 0);
    assert_ok(ctx, spmv_matrix_write(ctx, &a, link));
    assert_int_equal(lstat(link, &s), 0);
    assert_true(S_ISLNK(s.st_mode));
    assert_file(path, small_text);
    assert_int_equal(symlink("nowhere", in_folder("dangling", dangling)), 0);
    assert_fails(ctx, spmv_matrix_write(ctx, &a, dangling), SPMV_ERROR_OPEN, "a link to a missing file");
    unlink(dangling);

    /* folders */
    assert_fails(ctx, spmv_matrix_write(ctx, &a, folder), SPMV_ERROR_OPEN, "Is a directory");
    assert_fails(ctx, spmv_matrix_write(ctx, &a, in_folder("none/a.mtx", folder_there)), SPMV_ERROR_OPEN,
                 "No such file or directory");

    unlink(link);
    unlink(path);
}

/* The longest possible names leave no room for an ending; longer ones are refused before anything
 * is written. */
static void names_of_any_length(void **state)
{
    enum { LONGEST = 255 };
    static const char *const endings[] = {".mtx", ".mtx.gz", ".spmv"};
    char path[sizeof folder + LONGEST + 2];
    spmv_context *ctx = *state;
    const spmv_csr a = small(small_values);
    for (size_t e = 0; e < sizeof endings / sizeof endings[0]; e++)
        for (int length = LONGEST - 30; length <= LONGEST + 1; length++) {
            const int stem = length - (int)strlen(endings[e]);
            memset(path, 'a', sizeof path);
            const int at = snprintf(path, sizeof path, "%s/", folder);
            path[at] = 'a';
            snprintf(path + at + stem, sizeof path - (size_t)(at + stem), "%s", endings[e]);
            if (length > LONGEST) {
                assert_fails(ctx, spmv_matrix_write(ctx, &a, path), SPMV_ERROR_OPEN, "File name too long");
                assert_int_equal(files_in_folder(), 0);
                continue;
            }
            const spmv_status st = spmv_matrix_write(ctx, &a, path);
            if (st == SPMV_ERROR_UNSUPPORTED && e == 1) /* no libarchive */
                continue;
            assert_ok(ctx, st);
            assert_ok(ctx, spmv_matrix_write(ctx, &a, path)); /* over the old file */
            spmv_matrix *matrix = NULL;
            assert_ok(ctx, spmv_matrix_read(ctx, path, NULL, &matrix, NULL, 0));
            spmv_matrix_destroy(matrix);
            assert_int_equal(files_in_folder(), 1);
            unlink(path);
        }
}

/* A text file may have columns in any order, the binary form only ascending ones. */
static void columns_in_any_order(void **state)
{
    static const int32_t row_ptr[] = {0, 2, 3}, col[] = {2, 0, 1};
    char path[128];
    spmv_context *ctx = *state;
    const spmv_csr a = support_csr(2, 3, row_ptr, col, small_values);
    assert_fails(ctx, spmv_matrix_write(ctx, &a, in_folder("a.spmv", path)), SPMV_ERROR_UNSUPPORTED,
                 "the binary form needs ascending columns in each row");
    assert_int_equal(files_in_folder(), 0);
    assert_ok(ctx, spmv_matrix_write(ctx, &a, in_folder("a.mtx", path)));
    assert_file(path, "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 3 1.5\n1 1 -0\n2 2 1e+22\n");
    unlink(path);
}

static void a_failure_leaves_the_old_file(void **state)
{
    (void)state;
    char path[128];
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    struct heard heard = {.events = 0};
    spmv_context *ctx = context_that_tells(1, &heard);
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:300", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    put_file(in_folder("a.mtx", path), "old", 3);
    heard = (struct heard){.thread = heard.thread, .cancel_at = 2};
    assert_fails(ctx, spmv_matrix_write(ctx, &a, path), SPMV_CANCELLED, "writing ");
    assert_file(path, "old");
    assert_int_equal(files_in_folder(), 1);
    unlink(path);
    spmv_matrix_destroy(matrix);
    spmv_context_destroy(ctx);
}

static void a_full_disk_is_told(void **state)
{
    if (access("/dev/full", W_OK) != 0)
        skip();
    spmv_context *ctx = *state;
    const spmv_csr a = small(small_values);
    assert_fails(ctx, spmv_matrix_write(ctx, &a, "/dev/full"), SPMV_ERROR_WRITE,
                 "/dev/full: cannot write: No space left on device");
    assert_int_equal(errno, ENOSPC);
    assert_ok(ctx, spmv_matrix_write(ctx, &a, "/dev/null"));
    struct stat s;
    assert_int_equal(stat("/dev/null", &s), 0);
    assert_true(S_ISCHR(s.st_mode)); /* not replaced by a file */
}

/* "-" writes after what stdio has buffered, and leaves standard output open. */
static void standard_output(void **state)
{
    char path[128];
    spmv_context *ctx = *state;
    const spmv_csr a = small(small_values);
    fflush(stdout);
    const int kept = dup(STDOUT_FILENO);
    const int fd = open(in_folder("out", path), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDOUT_FILENO);
    close(fd);
    printf("before\n");
    const spmv_status st = spmv_matrix_write(ctx, &a, "-");
    printf("after\n");
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    assert_int_equal(st, SPMV_OK);
    char expected[256];
    snprintf(expected, sizeof expected, "before\n%safter\n", small_text);
    assert_file(path, expected);
    unlink(path);

    /* The pipe has no reader any more. */
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    signal(SIGPIPE, SIG_IGN);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[1]);
    const spmv_status gone = spmv_matrix_write(ctx, &a, "-");
    const int why = errno;
    dup2(kept, STDOUT_FILENO);
    close(kept);
    signal(SIGPIPE, SIG_DFL);
    assert_int_equal(gone, SPMV_ERROR_WRITE);
    assert_int_equal(why, EPIPE);
    assert_string_equal(spmv_last_error(ctx), "standard output: cannot write: Broken pipe");
}

/* Many threads write banners at once: mmio builds its text in one buffer. */
static void *write_many(void *argument)
{
    const char *const path = argument;
    spmv_context *ctx = context();
    spmv_csr a = small(path[strlen(path) - 1] == '0' ? small_values : NULL);
    for (int k = 0; k < 200; k++)
        assert_ok(ctx, spmv_matrix_write(ctx, &a, path));
    spmv_context_destroy(ctx);
    return NULL;
}

static void many_threads(void **state)
{
    (void)state;
    char paths[2][128];
    pthread_t threads[2];
    for (int t = 0; t < 2; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, write_many, (void *)in_folder(t ? "t1" : "t0", paths[t])),
                         0);
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    assert_file(paths[0], small_text);
    assert_file(paths[1], "%%MatrixMarket matrix coordinate pattern general\n2 3 3\n1 1\n1 3\n2 2\n");
    unlink(paths[0]);
    unlink(paths[1]);
}

SUPPORT_MAIN(with_folder(text_is_as_expected, 2), with_folder(back_to_the_same_bits, 2),
             with_folder(what_cannot_be_written, 2), with_folder(an_existing_file_is_replaced_whole, 2),
             with_folder(names_of_any_length, 2), with_folder(columns_in_any_order, 2),
             in_a_folder(a_failure_leaves_the_old_file), with_omp(a_full_disk_is_told, 2),
             with_folder(standard_output, 2), in_a_folder(many_threads))
