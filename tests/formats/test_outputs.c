/* Output files appear as a whole or not at all, for any owner and after any interruption. The
 * ending of the name selects the form; symmetry and comments are kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* seteuid, setegid, flock */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tests/support/support_io.h"

static int files_in_folder(const char *ending)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        const size_t length = strlen(e->d_name), size = strlen(ending);
        n += e->d_name[0] != '.' && length >= size && strcmp(e->d_name + length - size, ending) == 0;
    }
    closedir(d);
    return n;
}

static void assert_file(const char *path, const char *expected)
{
    size_t bytes = 0;
    char *const text = get_file(path, &bytes);
    assert_string_equal(text, expected);
    free(text);
}

static void assert_mode(const char *path, unsigned mode)
{
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 07777, mode);
}

static spmv_status write_text(spmv_context *ctx, const char *path, const char *text, int keep)
{
    spmv_file *file = NULL;
    spmv_status st = spmv_file_create(ctx, path, &file);
    if (st == SPMV_OK)
        st = spmv_file_write(file, text, (int64_t)strlen(text));
    const spmv_status closed = spmv_file_close(file, keep);
    return st != SPMV_OK ? st : closed;
}

/* ---------------------------------------------------------------- whole files */

static void whole_or_not_at_all(void **state)
{
    char path[128];
    spmv_context *ctx = *state;
    spmv_file *file = NULL;
    assert_ok(ctx, write_text(ctx, in_folder("a", path), "one\n", 1));
    assert_file(path, "one\n");
    assert_ok(ctx, write_text(ctx, path, "two\n", 0));
    assert_file(path, "one\n");
    assert_ok(ctx, spmv_file_create(ctx, path, &file));
    assert_ok(ctx, spmv_file_write(file, "th", 2));
    assert_ok(ctx, spmv_file_write(file, "ree\n", 4));
    assert_ok(ctx, spmv_file_write(file, NULL, 0));
    assert_file(path, "one\n"); /* until the file is closed */
    assert_int_equal(files_in_folder(".part"), 1);
    assert_ok(ctx, spmv_file_close(file, 1));
    assert_file(path, "three\n");
    assert_int_equal(files_in_folder(""), 1);
    unlink(path);
    assert_fails(ctx, spmv_file_create(ctx, in_folder("no/a", path), &file), SPMV_ERROR_OPEN, "No such file");
    assert_null(file);
    assert_fails(ctx, spmv_file_create(ctx, NULL, &file), SPMV_ERROR_ARGUMENT, "path");
    assert_int_equal(spmv_file_create(NULL, path, &file), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_file_write(NULL, "", 0), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_file_close(NULL, 1), SPMV_OK);
}

static void a_failed_write_keeps_the_old_file(void **state)
{
    char path[128];
    spmv_context *ctx = *state;
    spmv_file *file = NULL;
    assert_ok(ctx, write_text(ctx, in_folder("a", path), "old", 1));
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 8;
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_ok(ctx, spmv_file_create(ctx, path, &file));
    const spmv_status first = spmv_file_write(file, "0123456789", 10);
    const int why = errno;
    const spmv_status second = spmv_file_write(file, "x", 1), closed = spmv_file_close(file, 1);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(first, SPMV_ERROR_WRITE);
    assert_int_equal(why, EFBIG);
    assert_int_equal(second, SPMV_ERROR_WRITE);
    assert_int_equal(closed, SPMV_ERROR_WRITE);
    assert_file(path, "old");
    assert_int_equal(files_in_folder(""), 1);
    unlink(path);
}

/* Calls the cleanup of a signal handler without a signal. */
static void unfinished_files_are_removed(void **state)
{
    enum { FILES = 80, KNOWN = 64 };
    char path[128], name[16];
    spmv_file *file[FILES] = {NULL};
    spmv_context *ctx = *state;
    spmv_remove_unfinished(); /* no files yet */
    for (int k = 0; k < FILES; k++) {
        snprintf(name, sizeof name, "f%d", k);
        assert_ok(ctx, spmv_file_create(ctx, in_folder(name, path), &file[k]));
        assert_ok(ctx, spmv_file_write(file[k], "new", 3));
    }
    assert_int_equal(files_in_folder(".part"), FILES);
    /* A forked process leaves the files of its parent. */
    const pid_t child = fork();
    if (child == 0) {
        spmv_remove_unfinished();
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(files_in_folder(".part"), FILES);
    errno = 7;
    spmv_remove_unfinished();
    assert_int_equal(errno, 7);
    assert_int_equal(files_in_folder(""), FILES - KNOWN);
    for (int k = 0; k < FILES; k++) {
        const spmv_status st = spmv_file_close(file[k], 1);
        assert_int_equal(st, k < KNOWN ? SPMV_ERROR_WRITE : SPMV_OK);
    }
    assert_int_equal(files_in_folder(""), FILES - KNOWN);
    for (int k = KNOWN; k < FILES; k++) {
        snprintf(name, sizeof name, "f%d", k);
        unlink(in_folder(name, path));
    }
    /* their places in the list are free again */
    assert_ok(ctx, spmv_file_create(ctx, in_folder("a", path), &file[0]));
    spmv_remove_unfinished();
    assert_int_equal(files_in_folder(""), 0);
    spmv_file_close(file[0], 0);
}

static void set_id_bits_are_not_taken_over(void **state)
{
    char path[128];
    struct stat s;
    spmv_context *ctx = *state;
    assert_ok(ctx, write_text(ctx, in_folder("a", path), "old", 1));
    if (geteuid() == 0)
        assert_int_equal(chown(path, 1234, 2345), 0);
    assert_int_equal(chmod(path, 06755), 0);
    assert_ok(ctx, write_text(ctx, path, "new", 1));
    assert_mode(path, 0755);
    assert_int_equal(stat(path, &s), 0);
    if (geteuid() == 0) { /* owner and group are kept */
        assert_int_equal(s.st_uid, 1234);
        assert_int_equal(s.st_gid, 2345);
    }
    unlink(path);
}

/* A user who cannot give the file to its former group. */
static void a_group_that_cannot_be_kept_reduces_the_mode(void **state)
{
    char path[128];
    if (geteuid() != 0)
        skip();
    spmv_context *ctx = *state;
    assert_int_equal(chmod(folder, 0777), 0);
    assert_ok(ctx, write_text(ctx, in_folder("a", path), "old", 1));
    assert_int_equal(chown(path, 1234, 2345), 0);
    assert_int_equal(chmod(path, 02764), 0);
    assert_int_equal(setegid(3456), 0);
    assert_int_equal(seteuid(1234), 0);
    const spmv_status st = write_text(ctx, path, "new", 1);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(setegid(0), 0);
    assert_int_equal(st, SPMV_OK);
    assert_file(path, "new");
    assert_mode(path, 0744);
    unlink(path);
}

/* --------------------------------------- partial files of a killed writer in the cache */

static void left_over_parts_of_the_cache_go(void **state)
{
    static const char text[] = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n";
    char source[128], place[128], left[160], old[160], held[160], link[160];
    spmv_read_options options;
    spmv_matrix *matrix = NULL;
    struct stat s;
    spmv_context *ctx = *state;
    put_file(in_folder("a.mtx", source), text, sizeof text - 1);
    assert_int_equal(mkdir(in_folder("cache", place), 0700), 0);
    snprintf(left, sizeof left, "%s/spmv-0000000000000007.part", place);
    snprintf(old, sizeof old, "%s/key-f64.spmv.12.0.part", place);
    snprintf(held, sizeof held, "%s/spmv-0000000000000008.part", place);
    snprintf(link, sizeof link, "%s/link.part", place);
    put_file(left, "half", 4);
    put_file(old, "half", 4);
    put_file(held, "half", 4);
    assert_int_equal(symlink("../a.mtx", link), 0);
    const int fd = open(held, O_RDWR); /* an active writer */
    assert_int_equal(flock(fd, LOCK_EX), 0);
    spmv_read_options_init(&options, sizeof options);
    options.cache_folder = place;
    assert_ok(ctx, spmv_matrix_read(ctx, source, &options, &matrix, NULL, 0));
    spmv_matrix_destroy(matrix);
    assert_int_equal(stat(left, &s), -1);
    assert_int_equal(stat(old, &s), -1);
    assert_int_equal(stat(held, &s), 0);
    assert_int_equal(lstat(link, &s), 0);
    close(fd);
    DIR *d = opendir(place);
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        if (e->d_name[0] != '.')
            assert_int_equal(unlinkat(dirfd(d), e->d_name, 0), 0);
    closedir(d);
    rmdir(place);
    unlink(source);
}

/* ---------------------------------------------------------------- endings */

static void endings_say_what_is_written(void **state)
{
    static const struct {
        const char *path;
        spmv_status expected;
        const char *says;
    } names[] = {{"-", SPMV_OK, ""},
                 {"y", SPMV_OK, ""},
                 {"y.txt", SPMV_OK, ""},
                 {"y.mtx", SPMV_OK, ""},
                 {"y.spmv", SPMV_OK, ""},
                 {"y.zip", SPMV_ERROR_ARGUMENT, "y.zip: .zip cannot be written"},
                 {"y.tar.gz", SPMV_ERROR_ARGUMENT, ".tar cannot be written"},
                 {"y.TGZ", SPMV_ERROR_ARGUMENT, ".tgz cannot be written"},
                 {"y.gz.xz", SPMV_ERROR_ARGUMENT, "only one compression"},
                 {"y.spmv.gz", SPMV_ERROR_ARGUMENT, "the binary form cannot be compressed"}};
    spmv_context *ctx = *state;
    const double one = 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const spmv_status st = spmv_output_check(ctx, names[i].path, NULL);
        assert_int_equal(st, names[i].expected);
        if (st != SPMV_OK) {
            assert_non_null(strstr(spmv_last_error(ctx), names[i].says));
            assert_int_equal(spmv_vector_write(ctx, names[i].path, SPMV_F64, &one, 1, NULL), st);
        }
    }
    assert_fails(ctx, spmv_output_check(ctx, "y.mtx", "%g x"), SPMV_ERROR_ARGUMENT, "can contain only numbers");
    assert_fails(ctx, spmv_output_check(ctx, "y.spmv", "%g"), SPMV_ERROR_ARGUMENT, "has no format of numbers");
    assert_ok(ctx, spmv_output_check(ctx, "y.mtx", "%.6g"));
    assert_fails(ctx, spmv_output_check(ctx, NULL, NULL), SPMV_ERROR_ARGUMENT, "path");
}

/* The files have several portions. Any number of threads writes the same bytes, and they give the
 * same matrix. */
static void compressed_files_are_the_same_every_time(void **state)
{
    (void)state;
    static const char *const endings[] = {"a.mtx.gz", "a.mtx.xz", "a.mtx.zst", "a.mtx.bz2"};
    char path[128];
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    spmv_context *one = support_context_on(SPMV_BACKEND_OMP, 1), *ctx = support_context_on(SPMV_BACKEND_OMP, 3);
    if (spmv_output_check(ctx, "a.gz", NULL) == SPMV_ERROR_UNSUPPORTED) {
        spmv_context_destroy(one);
        spmv_context_destroy(ctx);
        skip();
    }
    assert_ok(ctx, spmv_matrix_generate(ctx, "uniform:20000,20000,2", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    for (size_t e = 0; e < sizeof endings / sizeof endings[0]; e++) {
        size_t bytes = 0, again = 0;
        spmv_matrix *back = NULL;
        assert_ok(one, spmv_matrix_write(one, &a, in_folder(endings[e], path)));
        char *const first = get_file(path, &bytes);
        assert_ok(ctx, spmv_matrix_write(ctx, &a, path));
        char *const second = get_file(path, &again);
        assert_int_equal(bytes, again);
        assert_memory_equal(first, second, bytes);
        if (e == 0) /* no time stamp: RFC 1952, bytes 4 to 7 */
            assert_memory_equal(first + 4, "\0\0\0\0", 4);
        assert_ok(ctx, spmv_matrix_read(ctx, path, NULL, &back, NULL, 0));
        assert_true(same_matrix(matrix, back));
        spmv_matrix_destroy(back);
        support_free(first, second);
        unlink(path);
    }
    spmv_matrix_destroy(matrix);
    spmv_context_destroy(one);
    spmv_context_destroy(ctx);
}

/* ---------------------------------------------------------------- vectors */

static void vectors_as_matrix_market(void **state)
{
    (void)state;
    const double values[] = {1, -0.0, 2.5, 1e22, 5e-324, 7};
    char path[128];
    void *back = NULL;
    int64_t n = 0, k = 0;
    struct heard heard = {.events = 0};
    spmv_context *ctx = context_that_tells(2, &heard);
    in_folder("y.mtx", path);
    assert_ok(ctx, spmv_vector_write(ctx, path, SPMV_F64, values, 3, NULL));
    assert_file(path, "%%MatrixMarket matrix array real general\n3 1\n1\n-0\n2.5\n");
    assert_ok(ctx, spmv_vector_read(ctx, path, SPMV_F64, &back, &n));
    assert_int_equal(n, 3);
    assert_memory_equal(back, values, sizeof(double) * 3);
    spmv_host_free(back);
    heard = (struct heard){.thread = heard.thread};
    /* three rows of two: column by column */
    assert_ok(ctx, spmv_vectors_write(ctx, path, SPMV_F64, values, 3, 2, NULL));
    assert_file(path, "%%MatrixMarket matrix array real general\n3 2\n1\n2.5\n5e-324\n-0\n1e+22\n7\n");
    heard = (struct heard){.thread = heard.thread};
    assert_ok(ctx, spmv_vectors_read(ctx, path, SPMV_F64, &back, &n, &k));
    assert_int_equal(n, 3);
    assert_int_equal(k, 2);
    assert_memory_equal(back, values, sizeof values);
    spmv_host_free(back);
    heard = (struct heard){.thread = heard.thread};
    assert_ok(ctx, spmv_vectors_write(ctx, path, SPMV_C128, values, 3, 1, "%.1f"));
    assert_file(path,
                "%%MatrixMarket matrix array complex general\n3 1\n1.0 -0.0\n2.5 10000000000000000000000.0\n0.0 7.0\n");
    heard = (struct heard){.thread = heard.thread};
    assert_ok(ctx, spmv_vectors_write(ctx, path, SPMV_F64, NULL, 0, 1, NULL));
    assert_file(path, "%%MatrixMarket matrix array real general\n0 1\n");
    assert_ok(ctx, spmv_vector_read(ctx, path, SPMV_F64, &back, &n));
    assert_int_equal(n, 0);
    spmv_host_free(back);
    /* A result with infinities is written, with a warning. */
    const double odd[] = {1, INFINITY};
    heard = (struct heard){.thread = heard.thread};
    assert_ok(ctx, spmv_vector_write(ctx, path, SPMV_F64, odd, 2, NULL));
    assert_int_equal(heard.warnings, 1);
    assert_non_null(strstr(heard.warning, "number 1 (counted from 0) is inf"));
    assert_file(path, "%%MatrixMarket matrix array real general\n2 1\n1\ninf\n");
    unlink(path);
    spmv_context_destroy(ctx);
}

/* ---------------------------------------------------------------- symmetry and comments */

static void symmetry_and_comments_stay(void **state)
{
    static const char *const texts[] = {
        "%%MatrixMarket matrix coordinate real symmetric\n% one\n%two\n3 3 4\n1 1 2.5\n2 1 -0\n3 2 1e-300\n3 3 0\n",
        "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 0\n3 2 -7\n",
        "%%MatrixMarket matrix coordinate pattern symmetric\n%\n3 3 2\n1 1\n3 1\n",
        "%%MatrixMarket matrix coordinate complex hermitian\n2 2 3\n1 1 1 0\n2 1 2 -0\n2 2 0 -0\n",
        "%%MatrixMarket matrix coordinate complex skew-symmetric\n2 2 1\n2 1 0 3\n",
        "%%MatrixMarket matrix coordinate complex symmetric\n2 2 2\n1 1 1 2\n2 1 3 4\n",
        "%%MatrixMarket matrix coordinate real general\n% last\n2 3 1\n2 3 1\n"};
    static const char *const endings[] = {"b.mtx", "b.spmv"};
    char path[128], copy[128];
    spmv_context *ctx = *state;
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        spmv_read_options options = support_read_options();
        spmv_matrix *matrix = NULL;
        spmv_read_info info;
        put_file(in_folder("a.mtx", path), texts[t], strlen(texts[t]));
        assert_ok(ctx, spmv_matrix_read(ctx, path, NULL, &matrix, NULL, 0));
        assert_string_equal(spmv_matrix_comments(matrix), ""); /* comments were not requested */
        spmv_matrix_destroy(matrix);
        options.comments = 1;
        assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &matrix, &info, sizeof info));
        for (int e = 0; e < 2; e++) {
            spmv_csr a;
            spmv_matrix *back = NULL;
            spmv_read_info back_info;
            spmv_write_options write = support_write_options();
            write.symmetry = info.symmetry;
            write.comments = spmv_matrix_comments(matrix);
            spmv_matrix_view(matrix, &a);
            assert_ok(ctx, spmv_matrix_write_as(ctx, &a, in_folder(endings[e], copy), &write));
            if (e == 0)
                assert_file(copy, texts[t]);
            assert_ok(ctx, spmv_matrix_read(ctx, copy, &options, &back, &back_info, sizeof back_info));
            assert_true(same_matrix(matrix, back));
            assert_int_equal(back_info.symmetry, info.symmetry);
            assert_string_equal(spmv_matrix_comments(back), spmv_matrix_comments(matrix));
            spmv_matrix_destroy(back);
            unlink(copy);
        }
        spmv_matrix_destroy(matrix);
        unlink(path);
    }
    assert_string_equal(spmv_matrix_comments(NULL), "");
}

static void what_is_not_symmetric_is_refused(void **state)
{
    static const int32_t row_ptr[] = {0, 2, 4}, col[] = {0, 1, 0, 1}, turned[] = {1, 0, 0, 1}, wide[] = {0, 1, 1};
    static const double almost[] = {1, 0.0, -0.0, 1}, whole[] = {1, 2, 2, 1};
    char path[128];
    spmv_context *ctx = *state;
    spmv_write_options write = support_write_options();
    write.symmetry = SPMV_SYMMETRY_SYMMETRIC;
    in_folder("a.mtx", path);
    spmv_csr a = support_csr(2, 2, row_ptr, col, almost);
    assert_fails(ctx, spmv_matrix_write_as(ctx, &a, path, &write), SPMV_ERROR_NOT_SYMMETRIC,
                 "not symmetric, bit by bit, in row 0");
    write.symmetry = SPMV_SYMMETRY_SKEW;
    assert_fails(ctx, spmv_matrix_write_as(ctx, &a, path, &write), SPMV_ERROR_NOT_SYMMETRIC, "not skew-symmetric");
    a.val = NULL;
    assert_fails(ctx, spmv_matrix_write_as(ctx, &a, path, &write), SPMV_ERROR_NOT_SYMMETRIC, "not skew-symmetric");
    write.symmetry = SPMV_SYMMETRY_SYMMETRIC;
    a = support_csr(2, 2, row_ptr, turned, whole);
    assert_fails(ctx, spmv_matrix_write_as(ctx, &a, path, &write), SPMV_ERROR_UNSUPPORTED, "ascend");
    a = support_csr(2, 3, wide, col, whole);
    assert_fails(ctx, spmv_matrix_write_as(ctx, &a, path, &write), SPMV_ERROR_NOT_SYMMETRIC, "2 x 3");
    write.symmetry = (spmv_symmetry)9;
    assert_fails(ctx, spmv_matrix_write_as(ctx, &a, path, &write), SPMV_ERROR_ARGUMENT, "unknown symmetry 9");
    assert_int_equal(files_in_folder(""), 0);
    /* For real values hermitian means symmetric. Lines without a percent sign become comments
     * too. */
    write.symmetry = SPMV_SYMMETRY_HERMITIAN;
    write.comments = "a\n\n%b";
    a = support_csr(2, 2, row_ptr, col, whole);
    assert_ok(ctx, spmv_matrix_write_as(ctx, &a, path, &write));
    assert_file(path, "%%MatrixMarket matrix coordinate real symmetric\n%a\n%\n%b\n2 2 3\n1 1 1\n2 1 2\n2 2 1\n");
    unlink(path);
}

/* Damaged notes are ignored: the matrix is still read. */
static void damaged_notes_are_none(void **state)
{
    static const int32_t row_ptr[] = {0, 1}, col[] = {0};
    static const double val[] = {3};
    char path[128], damaged[128];
    size_t bytes = 0;
    spmv_context *ctx = *state;
    spmv_read_options options;
    spmv_write_options write;
    spmv_read_options_init(&options, sizeof options);
    options.comments = 1;
    spmv_write_options_init(&write, sizeof write);
    write.symmetry = SPMV_SYMMETRY_SYMMETRIC;
    write.comments = "%note\n";
    const spmv_csr a = support_csr(1, 1, row_ptr, col, val);
    assert_ok(ctx, spmv_matrix_write_as(ctx, &a, in_folder("a.spmv", path), &write));
    char *const whole = get_file(path, &bytes);
    for (size_t at = bytes - 32 - 6; at < bytes; at++) {
        spmv_matrix *matrix = NULL;
        spmv_read_info info;
        whole[at] ^= 0x41;
        put_file(in_folder("b.spmv", damaged), whole, bytes);
        whole[at] ^= 0x41;
        assert_ok(ctx, spmv_matrix_read(ctx, damaged, &options, &matrix, &info, sizeof info));
        assert_int_equal(info.symmetry, SPMV_SYMMETRY_GENERAL);
        assert_string_equal(spmv_matrix_comments(matrix), "");
        spmv_matrix_destroy(matrix);
    }
    free(whole);
    unlink(path);
    unlink(damaged);
}

/* The second read takes the matrix from the cache and the comments from the file. */
static void the_cache_keeps_symmetry_and_comments(void **state)
{
    static const char text[] = "%%MatrixMarket matrix coordinate real symmetric\n% one\n2 2 1\n2 1 5\n";
    char path[128], place[128];
    spmv_context *ctx = *state;
    spmv_read_options options = support_read_options();
    options.comments = 1;
    options.cache_folder = in_folder("cache", place);
    put_file(in_folder("a.mtx", path), text, sizeof text - 1);
    for (int k = 0; k < 2; k++) {
        spmv_matrix *matrix = NULL;
        spmv_read_info info;
        assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &matrix, &info, sizeof info));
        assert_string_equal(info.form, k == 0 ? "mtx" : "cache");
        assert_int_equal(info.symmetry, SPMV_SYMMETRY_SYMMETRIC);
        assert_string_equal(spmv_matrix_comments(matrix), "% one\n");
        spmv_matrix_destroy(matrix);
    }
    DIR *d = opendir(place);
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        if (e->d_name[0] != '.')
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    rmdir(place);
    unlink(path);
}

/* ---------------------------------------------------------------- reads that wait */

static volatile sig_atomic_t alarmed;

static void on_alarm(int number)
{
    (void)number;
    alarmed = 1;
}

static int cancel_when_alarmed(const spmv_event *event, void *user)
{
    (void)event;
    (void)user;
    return alarmed;
}

/* A signal interrupts the wait for the writer of a FIFO; the callback then cancels and the call
 * ends. The signal repeats, so the start of the wait does not matter. */
static void a_read_that_waits_can_be_cancelled(void **state)
{
    (void)state;
    char path[128];
    spmv_matrix *matrix = NULL;
    spmv_context *ctx = support_context_telling(1, cancel_when_alarmed, NULL);
    assert_int_equal(mkfifo(in_folder("fifo", path), 0600), 0);
    const struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
    const struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    for (int written_to = 0; written_to < 2; written_to++) {
        /* Without fd the FIFO has no writer; with it nothing is written. */
        const int fd = written_to ? open(path, O_RDWR) : -1;
        alarmed = 0;
        setitimer(ITIMER_REAL, &often, NULL);
        const spmv_status st = spmv_matrix_read(ctx, path, NULL, &matrix, NULL, 0);
        setitimer(ITIMER_REAL, &never, NULL);
        assert_int_equal(st, SPMV_CANCELLED);
        assert_null(matrix);
        if (fd >= 0)
            close(fd);
    }
    unlink(path);
    spmv_context_destroy(ctx);
}

SUPPORT_MAIN(with_folder(whole_or_not_at_all, 2), with_folder(a_failed_write_keeps_the_old_file, 2),
             with_folder(unfinished_files_are_removed, 2), with_folder(set_id_bits_are_not_taken_over, 2),
             with_folder(a_group_that_cannot_be_kept_reduces_the_mode, 2),
             with_folder(left_over_parts_of_the_cache_go, 2), with_omp(endings_say_what_is_written, 2),
             in_a_folder(compressed_files_are_the_same_every_time), in_a_folder(vectors_as_matrix_market),
             with_folder(symmetry_and_comments_stay, 2), with_folder(what_is_not_symmetric_is_refused, 2),
             with_folder(damaged_notes_are_none, 2), with_folder(the_cache_keeps_symmetry_and_comments, 2),
             in_a_folder(a_read_that_waits_can_be_cancelled))
