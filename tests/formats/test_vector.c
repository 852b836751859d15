/* Reading and writing vectors: one number on a line, several, Matrix Market files, the binary form,
 * refused files, formats.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "formats/io/packed/packed.h"
#include "formats/io/vectors/binary_vector.h"
#include "tests/support/support_vector.h"

#define ARRAY "%%MatrixMarket matrix array real general\n"
#define COORDINATE "%%MatrixMarket matrix coordinate real general\n"

static void vectors_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t n;
        double values[4];
    } good[] = {
        {"1\n2.5\n-3e2\n", 3, {1, 2.5, -300}},
        {"1\r\n2\r\n", 2, {1, 2}},
        {"1\n2", 2, {1, 2}},
        {"% comment\n# comment\n\n  7\t\n \n#\n8 \n", 2, {7, 8}},
        {"", 0, {0}},
        {"# nothing\n", 0, {0}},
        {"+1\n.5\n5.\n1d2\n", 4, {1, 0.5, 5, 100}},
        {"0\n-0\n0\n", 3, {0, -0.0, 0}},
        {ARRAY "3 1\n1\n0\n3\n", 3, {1, 0, 3}},
        {ARRAY "1 3\n1\n% c\n\n2\n3", 3, {1, 2, 3}},
        {ARRAY "1 1\n4\n", 1, {4}},
        {ARRAY "0 1\n", 0, {0}},
        {"%%matrixmarket matrix ARRAY integer general\n2 1\n-1\n2\n", 2, {-1, 2}},
        {"%%MatrixMarket matrix array real symmetric\n1 1\n4\n", 1, {4}},
        {"%%MatrixMarket matrix array real skew-symmetric\n1 1\n", 1, {0}},
        {COORDINATE "4 1 2\n3 1 1.5\n1 1 2\n", 4, {2, 0, 1.5, 0}},
        {COORDINATE "1 4 2\n1 3 1.5\n1 1 2\n", 4, {2, 0, 1.5, 0}},
        {COORDINATE "2 1 3\n2 1 1\n2 1 2\n1 1 5\n", 2, {5, 3}}, /* added, as in a matrix */
        {"%%MatrixMarket matrix coordinate pattern general\n3 1 2\n1 1\n1 1\n", 3, {1, 0, 0}},
    };
    spmv_context *ctx = *state;
    for (size_t g = 0; g < sizeof good / sizeof good[0]; g++) {
        void *values = NULL;
        int64_t n = -1;
        assert_ok(ctx, read_vector(ctx, good[g].text, SPMV_F64, &values, &n));
        if (n != good[g].n || (n > 0 && memcmp(values, good[g].values, (size_t)n * sizeof(double)) != 0))
            fail_msg("good[%zu]: %lld numbers, the first %g", g, (long long)n, n ? *(double *)values : 0.0);
        assert_true((values == NULL) == (n == 0));
        spmv_host_free(values);
        assert_ok(ctx, read_vector(ctx, good[g].text, SPMV_F32, &values, &n));
        for (int64_t i = 0; i < n; i++)
            assert_true(((float *)values)[i] == (float)good[g].values[i]);
        spmv_host_free(values);
    }
}

static void vectors_are_refused(void **state)
{
    static const struct refused_vector bad[] = {
        {"1\n2 3\n", SPMV_ERROR_FORMAT, "x.txt:2:3: extra text \"3\" after the number (one per line)"},
        {"1, 2\n", SPMV_ERROR_FORMAT,
         "x.txt:1:1: \"1,\" is not a number; numbers have a decimal point, and blanks separate them"},
        /* files of another kind; the others are in test_mtx_read */
        {"{\"x\": [1]}\n", SPMV_ERROR_FORMAT,
         "x.txt:1:1: this looks like a JSON file; convert it in Python: scipy.io.mmwrite(\"A.mtx\", X) for a matrix, "
         "numpy.savetxt(\"b.txt\", X) for a vector, where X is read with json.load"},
        {"1;2;3\n", SPMV_ERROR_FORMAT,
         "x.txt:1:1: this looks like a table with commas or semicolons (.csv); convert it in Python: "
         "scipy.io.mmwrite(\"A.mtx\", numpy.loadtxt(\"FILE\", delimiter=\",\")) for a matrix, "
         "numpy.savetxt(\"b.txt\", numpy.loadtxt(\"FILE\", delimiter=\",\")) for a vector"},
        {"<html>\n", SPMV_ERROR_FORMAT,
         "x.txt:1:1: this looks like a web page; a download may have failed; look at it, and download the file again"},
        {"1\n\n\tone\n", SPMV_ERROR_FORMAT, "x.txt:3:2: \"one\" is not a number"},
        {"1 # comment\n", SPMV_ERROR_FORMAT, "x.txt:1:3: extra text \"#\" after the number (one per line)"},
        {"1e400\n", SPMV_ERROR_LIMIT, "x.txt:1:1: \"1e400\" is too large for f64"},
        {ARRAY "3 2\n1\n2\n3\n4\n5\n6\n", SPMV_ERROR_SIZE, "x.txt:2:1: 3 x 2: a vector has one column (or one row)"},
        {ARRAY "0 0\n", SPMV_ERROR_SIZE, "x.txt:2:1: 0 x 0: a vector has one column (or one row)"},
        {ARRAY "3 1\n1\n2\n", SPMV_ERROR_FORMAT,
         "x.txt:2:1: 3 entries declared, but the 4 bytes that follow cannot hold more than 2"},
        {ARRAY "3 1\n1\n2.5\n", SPMV_ERROR_FORMAT,
         "x.txt:5:1: the file ends after 2 of the 3 entries declared on line 2"},
        {ARRAY "1 1\n1\n2\n", SPMV_ERROR_FORMAT, "x.txt:4:1: more numbers than the 1 of an array of 1 x 1"},
        /* Comments in Matrix Market files start with %. */
        {ARRAY "1 1\n# no\n", SPMV_ERROR_FORMAT, "x.txt:3:1: \"#\" is not a number"},
        {COORDINATE "3 1 1\n4 1 1\n", SPMV_ERROR_FORMAT, "x.txt:3:1: row 4 exceeds the 3 rows declared on line 2"},
        {COORDINATE "2000000000000000000 1 1\n4 1 1\n", SPMV_ERROR_MEMORY,
         "x.txt:2:1: a vector of 2000000000000000000 numbers needs more than the allowed 1000000 bytes of "
         "memory"},
        {"%%MatrixMarket matrix array complex general\n1 1\n1 0\n", SPMV_ERROR_TYPE,
         "x.txt:1:29: the numbers are complex: they can be read as c128 or c64, not as f64"},
        {"%%MatrixMarket matrix\n", SPMV_ERROR_FORMAT, "x.txt:1:22: bad banner: the format is missing"},
    };
    spmv_context *ctx = *state;
    assert_vectors_refused(ctx, SPMV_F64, bad, sizeof bad / sizeof bad[0]);
}

static void arguments_are_refused(void **state)
{
    spmv_context *ctx = *state;
    void *values = NULL;
    int64_t n = 0;
    assert_fails(ctx, read_vector(ctx, "1", SPMV_I32, &values, &n), SPMV_ERROR_TYPE, "i32");
    assert_fails(ctx, spmv_vector_read(ctx, NULL, SPMV_F64, &values, &n), SPMV_ERROR_ARGUMENT, "path");
    assert_fails(ctx, spmv_vector_read(ctx, "x", SPMV_F64, NULL, &n), SPMV_ERROR_ARGUMENT, "host_values");
    assert_fails(ctx, spmv_vector_read(ctx, "/nonexistent/x", SPMV_F64, &values, &n), SPMV_ERROR_OPEN,
                 "/nonexistent/x: cannot open: No such file or directory");
}

/* Written with the fewest digits and read back with the same bits, also values that a matrix file
 * cannot hold, for any team. */
static void large_vectors_round_trip(void **state)
{
    enum { N = 300000 };
    static double values[N];
    char path[128];
    uint64_t seed = 5;
    for (int k = 0; k < N; k++) {
        const uint64_t bits = support_random(&seed);
        memcpy(&values[k], &bits, sizeof bits);
        if (isnan(values[k]))
            values[k] = -INFINITY;
    }
    values[0] = INFINITY;
    values[1] = 0x1p-1074;
    in_folder("x.txt", path);
    assert_vector_kept(*state, path, SPMV_F64, values, N);
    unlink(path);
}

static void not_finite_numbers_warn(void **state)
{
    (void)state;
    struct heard heard = {.events = 0};
    spmv_context *ctx = context_that_tells(2, &heard);
    void *values = NULL;
    int64_t n = 0;
    assert_ok(ctx, read_vector(ctx, "1\n inf\nnan\n", SPMV_F64, &values, &n));
    assert_true(n == 3 && isinf(((double *)values)[1]) && isnan(((double *)values)[2]));
    assert_string_equal(heard.warning, "x.txt:2:2: this value is not finite (2 such numbers in the file)");
    spmv_host_free(values);
    spmv_context_destroy(ctx);
}

static void assert_written(spmv_context *ctx, spmv_type type, const void *values, int64_t n, const char *format,
                           const char *expected)
{
    char path[128];
    size_t bytes = 0;
    assert_ok(ctx, spmv_vector_write(ctx, in_folder("y.txt", path), type, values, n, format));
    char *const text = get_file(path, &bytes);
    assert_string_equal(text, expected);
    free(text);
    unlink(path);
}

static void formats(void **state)
{
    const double x[] = {1, 0.1, -2.5e300, 100000, NAN, -NAN, -INFINITY};
    const float f[] = {0.1f, 16777216.0f, 1e-45f};
    spmv_context *ctx = *state;
    assert_written(ctx, SPMV_F64, x, 7, NULL, "1\n0.1\n-2.5e+300\n1e+05\nnan\nnan\n-inf\n");
    assert_written(ctx, SPMV_F32, f, 3, NULL, "0.1\n16777216\n1e-45\n");
    assert_written(ctx, SPMV_F64, NULL, 0, NULL, "");
    assert_written(ctx, SPMV_F64, x, 2, "%.6g", "1\n0.1\n");
    assert_written(ctx, SPMV_F32, f, 1, "%.6g", "0.1\n");
    assert_written(ctx, SPMV_F64, x, 2, "%%y: %+08.2f;", "%y: +0001.00;\n%y: +0000.10;\n");
    assert_written(ctx, SPMV_F64, x, 1, "%A", "0X1P+0\n");
    static const char *const bad[] = {"",    "x",   "%",   "%d",   "%s",     "%g %g",          "%n",
                                      "%lg", "%Lg", "%*g", "%.*g", "%1001g", "%.99999999999g", "%1$g",
                                      "%g%", "%hhd"};
    for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++)
        assert_fails(ctx, spmv_vector_write(ctx, "/nonexistent/y", SPMV_F64, x, 1, bad[b]), SPMV_ERROR_ARGUMENT,
                     "one floating-point conversion");
    char path[128], expected[1400];
    const double huge = -1.7e308; /* 309 digits, a point and 1000 more */
    snprintf(expected, sizeof expected, "%.1000f\n", huge);
    assert_written(ctx, SPMV_F64, &huge, 1, "%.1000f", expected);
    assert_fails(ctx, spmv_vector_write(ctx, in_folder("none/y", path), SPMV_F64, x, 1, NULL), SPMV_ERROR_OPEN,
                 "none/y: cannot open for writing: No such file or directory");
    assert_fails(ctx, spmv_vector_write(ctx, path, SPMV_I64, x, 1, NULL), SPMV_ERROR_TYPE, "i64");
    assert_fails(ctx, spmv_vector_write(ctx, path, SPMV_F64, NULL, 1, NULL), SPMV_ERROR_ARGUMENT, "missing");
    assert_fails(ctx, spmv_vector_write(ctx, NULL, SPMV_F64, x, 1, NULL), SPMV_ERROR_ARGUMENT, "path");
    assert_fails(ctx, spmv_vector_write(ctx, path, SPMV_F64, x, -1, NULL), SPMV_ERROR_ARGUMENT, "-1");
    if (access("/dev/full", W_OK) == 0)
        assert_fails(ctx, spmv_vector_write(ctx, "/dev/full", SPMV_F64, x, 1, NULL), SPMV_ERROR_WRITE,
                     "No space left on device");
}

/* ---------------------------------------------------------------- several at once */

static spmv_status read_several(spmv_context *ctx, const char *text, spmv_type type, void **values, int64_t *n,
                                int64_t *k)
{
    return vectors_read_memory(ctx, "x", text, (int64_t)strlen(text), type, 1000000, values, n, k);
}

/* A text of k vectors of n numbers each; values: row by row, a complex number as two. */
struct several {
    const char *text;
    int64_t n, k;
    double values[9];
};

static void check_several(spmv_context *ctx, spmv_type type, const struct several *good, size_t count)
{
    for (size_t g = 0; g < count; g++) {
        void *values = NULL;
        int64_t n = -1, k = -1;
        assert_ok(ctx, read_several(ctx, good[g].text, type, &values, &n, &k));
        if (n != good[g].n || k != good[g].k)
            fail_msg("good[%zu]: %lld x %lld", g, (long long)n, (long long)k);
        for (int64_t i = 0; i < n * k * type_parts(type); i++) /* the same bits: -0 is not 0 */
            if (memcmp((double *)values + i, &good[g].values[i], sizeof(double)) != 0)
                fail_msg("good[%zu]: number %lld is %g", g, (long long)i, ((double *)values)[i]);
        spmv_host_free(values);
    }
}

static void several_are_read_row_by_row(void **state)
{
    static const struct several good[] = {
        {"1\n2\n3\n", 3, 1, {1, 2, 3}},
        {"1 2\n3 4\n5 6\n", 3, 2, {1, 2, 3, 4, 5, 6}},
        {"# c\n\n% c\n\t1 2\t3 \r\n\n#\n4 5 6", 2, 3, {1, 2, 3, 4, 5, 6}},
        {"", 0, 1, {0}},
        {ARRAY "3 2\n1\n2\n3\n4\n5\n6\n", 3, 2, {1, 4, 2, 5, 3, 6}},
        {ARRAY "1 3\n1\n2\n3\n", 1, 3, {1, 2, 3}},
        {ARRAY "3 1\n1\n2\n3\n", 3, 1, {1, 2, 3}},
        {ARRAY "0 4\n", 0, 4, {0}},
        {ARRAY "4 0\n", 4, 0, {0}},
        {ARRAY "9223372036854775807 0\n", INT64_MAX, 0, {0}},
        {"%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n", 2, 2, {1, 2, 2, 3}},
        {"%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n", 3, 3, {0, -1, -2, 1, 0, -3, 2, 3, 0}},
        {COORDINATE "3 2 3\n1 2 4\n3 1 5\n3 1 6\n", 3, 2, {0, 4, 0, 0, 11, 0}},
        {"%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n", 2, 2, {0, 1, 1, 0}},
    };
    check_several(*state, SPMV_F64, good, sizeof good / sizeof good[0]);
}

static void several_complex_are_read(void **state)
{
    static const struct several good[] = {
        {"1\n2\n", 2, 1, {1, 0, 2, 0}},
        {"1 2\n3 4\n", 2, 1, {1, 2, 3, 4}},
        {"1 2 3 4\n5 6 7 8\n", 2, 2, {1, 2, 3, 4, 5, 6, 7, 8}},
        {ARRAY "2 2\n1\n2\n3\n4\n", 2, 2, {1, 0, 3, 0, 2, 0, 4, 0}},
        {"%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 3\n4 0\n", 2, 2, {1, 0, 2, -3, 2, 3, 4, 0}},
        {"%%MatrixMarket matrix coordinate complex general\n2 2 1\n2 1 5 6\n", 2, 2, {0, 0, 0, 0, 5, 6, 0, 0}},
    };
    check_several(*state, SPMV_C128, good, sizeof good / sizeof good[0]);
}

static void check_several_refused(spmv_context *ctx, spmv_type type, const struct refused_vector *bad, size_t count)
{
    for (size_t b = 0; b < count; b++) {
        void *values = ctx;
        int64_t n = 5, k = 5;
        const spmv_status st = read_several(ctx, bad[b].text, type, &values, &n, &k);
        assert_string_equal(spmv_last_error(ctx), bad[b].sentence);
        assert_int_equal(st, bad[b].status);
        assert_true(values == NULL && n == 0 && k == 0);
    }
}

static void several_are_refused(void **state)
{
    static const struct refused_vector real[] = {
        {"1 2\n3\n", SPMV_ERROR_FORMAT, "x:2:2: the line ends after 1 of 2 numbers"},
        {"1 2\n3 4 5\n", SPMV_ERROR_FORMAT,
         "x:2:5: extra text \"5\" after the 2 numbers of a line: the first line has only as many"},
        {"1\n3 4\n", SPMV_ERROR_FORMAT, "x:2:3: extra text \"4\" after the number (one per line)"},
        {"1 2\n3 x\n", SPMV_ERROR_FORMAT, "x:2:3: \"x\" is not a number"},
        {COORDINATE "321166762 0 0\n", SPMV_ERROR_MEMORY,
         "x:2:1: 0 vectors of 321166762 numbers need more than the allowed 1000000 bytes of memory"},
        {COORDINATE "2000000000 2000000000 1\n4 1 1\n", SPMV_ERROR_MEMORY,
         "x:2:1: 2000000000 vectors of 2000000000 numbers need more than the allowed 1000000 bytes of "
         "memory"},
    };
    static const struct refused_vector pairs[] = {
        {"1 2 3\n", SPMV_ERROR_FORMAT, "x:1:6: the imaginary part is missing"},
        {"1 2 3 4\n5 6\n", SPMV_ERROR_FORMAT, "x:2:4: the line ends after 1 of 2 numbers"},
    };
    spmv_context *ctx = *state;
    void *values = NULL;
    int64_t n = 0;
    check_several_refused(ctx, SPMV_F64, real, sizeof real / sizeof real[0]);
    check_several_refused(ctx, SPMV_C128, pairs, sizeof pairs / sizeof pairs[0]);
    assert_fails(ctx, spmv_vectors_read(ctx, "x", SPMV_F64, &values, &n, NULL), SPMV_ERROR_ARGUMENT, "k must be");
}

/* ---------------------------------------------------------------- forms of files */

enum { ROWS = 70001, COLS = 3 };

/* Written and read back in every type and form, for any team: the same bits. */
static void forms_round_trip(void **state)
{
    (void)state;
    static const spmv_type types[] = {SPMV_F64, SPMV_F32, SPMV_C128, SPMV_C64};
    static const char *const names[] = {"x.txt", "x.gz", "x.spmv"};
    static double values[2 * ROWS * COLS];
    char path[128];
    uint64_t seed = 7;
    for (int f = 0; f < 3; f++) {
        in_folder(names[f], path);
        for (int t = 0; t < 4; t++) {
            spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, teams[t]);
            if (f == 1 && (t % 2 == 1 || packed_available(ctx, path) != SPMV_OK)) { /* f64, c128 */
                spmv_context_destroy(ctx);
                continue;
            }
            const bool single = types[t] == SPMV_F32 || types[t] == SPMV_C64;
            for (int i = 0; i < 2 * ROWS * COLS; i++) {
                const double value =
                    ldexp((double)(int64_t)support_random(&seed), (int)(support_random(&seed) % 40) - 60);
                if (single)
                    ((float *)values)[i] = (float)value;
                else
                    values[i] = value;
            }
            void *back = NULL;
            int64_t n = 0, k = 0;
            assert_ok(ctx, spmv_vectors_write(ctx, path, types[t], values, ROWS, COLS, NULL));
            assert_ok(ctx, spmv_vectors_read(ctx, path, types[t], &back, &n, &k));
            assert_true(n == ROWS && k == COLS);
            assert_memory_equal(back, values, ROWS * COLS * spmv_type_size(types[t]));
            spmv_host_free(back);
            assert_ok(ctx, spmv_vector_write(ctx, path, types[t], values, ROWS, NULL));
            assert_ok(ctx, spmv_vector_read(ctx, path, types[t], &back, &n));
            assert_int_equal(n, ROWS);
            assert_memory_equal(back, values, ROWS * spmv_type_size(types[t]));
            spmv_host_free(back);
            assert_ok(ctx, spmv_vectors_write(ctx, path, types[t], NULL, 0, 1, NULL));
            assert_ok(ctx, spmv_vectors_read(ctx, path, types[t], &back, &n, &k));
            if (back != NULL || n != 0 || k != 1)
                fail_msg("%s, %s: %lld x %lld", names[f], spmv_type_name(types[t]), (long long)n, (long long)k);
            spmv_context_destroy(ctx);
            unlink(path);
        }
    }
}

static void rows_are_lines(void **state)
{
    const double x[] = {1, 0.5, 2, 0.25, 3, 0.125};
    char path[128];
    size_t bytes = 0;
    spmv_context *ctx = *state;
    in_folder("y.txt", path);
    assert_ok(ctx, spmv_vectors_write(ctx, path, SPMV_F64, x, 2, 3, NULL));
    char *text = get_file(path, &bytes);
    assert_string_equal(text, "1 0.5 2\n0.25 3 0.125\n");
    free(text);
    assert_ok(ctx, spmv_vectors_write(ctx, path, SPMV_C128, x, 1, 3, "%.1f"));
    text = get_file(path, &bytes);
    assert_string_equal(text, "1.0 0.5 2.0 0.2 3.0 0.1\n");
    free(text);
    unlink(path);
    assert_fails(ctx, spmv_vectors_write(ctx, in_folder("y.spmv", path), SPMV_F64, x, 2, 3, "%g"), SPMV_ERROR_ARGUMENT,
                 "y.spmv: the binary form has no format of numbers");
    assert_fails(ctx, spmv_vectors_write(ctx, path, SPMV_F64, x, INT64_MAX / 2, 3, NULL), SPMV_ERROR_ARGUMENT,
                 "missing");
}

/* The bytes that docs/binary-form.md describes. */
static void binary_form_of_a_vector(void **state)
{
    const double x[] = {1, -2.5, 1e300};
    char path[128];
    size_t bytes = 0;
    spmv_context *ctx = *state;
    in_folder("x.spmv", path);
    assert_ok(ctx, spmv_vector_write(ctx, path, SPMV_F64, x, 3, NULL));
    char *const file = get_file(path, &bytes);
    assert_int_equal(bytes, 64 + 24);
    static const unsigned char head[] = {0x89, 'S', 'P', 'V', 'C', 0x0d, 0x0a, 0x1a, 1, 0, 0, 0, 64, 0,
                                         0,    0,   4,   0,   0,   0,    0,    0,    0, 0, 3, 0, 0,  0,
                                         0,    0,   0,   0,   1,   0,    0,    0,    0, 0, 0, 0, 88};
    assert_memory_equal(file, head, sizeof head);
    assert_memory_equal(file + 64, x, sizeof x);
    void *values = NULL;
    int64_t n = 0, k = 0;
    assert_ok(ctx, spmv_vector_read(ctx, path, SPMV_C128, &values, &n)); /* another type */
    assert_true(n == 3 && ((spmv_c128 *)values)[1].re == -2.5 && ((spmv_c128 *)values)[1].im == 0);
    spmv_host_free(values);
    assert_fails(ctx, spmv_vector_read(ctx, path, SPMV_F32, &values, &n), SPMV_ERROR_LIMIT,
                 "entry 2 (counted from 0), 1e+300, is too large for f32");
    spmv_matrix *matrix = NULL;
    assert_fails(ctx, spmv_matrix_read(ctx, path, NULL, &matrix, NULL, 0), SPMV_ERROR_FORMAT,
                 "the binary form of a vector, not of a matrix");
    /* One wrong bit anywhere, or a missing or additional byte, is detected. */
    for (size_t b = 0; b < 8 * bytes; b++) {
        file[b / 8] = (char)(file[b / 8] ^ 1 << b % 8);
        const spmv_status st =
            binary_vector_read_memory(ctx, "x", file, (int64_t)bytes, SPMV_F64, 1000, &values, &n, &k);
        if (spmv_status_class(st) != 3 && st != SPMV_ERROR_UNSUPPORTED)
            fail_msg("bit %zu: %s", b, spmv_status_name(st));
        assert_true(values == NULL && n == 0 && k == 0);
        file[b / 8] = (char)(file[b / 8] ^ 1 << b % 8);
    }
    for (size_t length = 0; length < bytes; length++)
        assert_fails(ctx, binary_vector_read_memory(ctx, "x", file, (int64_t)length, SPMV_F64, 1000, &values, &n, &k),
                     SPMV_ERROR_FORMAT, "x: malformed binary form of a vector: ");
    put_file(path, file, bytes - 1);
    assert_fails(ctx, spmv_vector_read(ctx, path, SPMV_F64, &values, &n), SPMV_ERROR_FORMAT,
                 "3 numbers need 24 bytes after the header; it has 23");
    assert_fails(ctx, binary_vector_read_memory(ctx, "x", file, (int64_t)bytes, SPMV_F64, 23, &values, &n, &k),
                 SPMV_ERROR_MEMORY, "x: a vector of 3 numbers needs more than the 23 bytes");
    const spmv_c64 z[] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
    assert_ok(ctx, spmv_vectors_write(ctx, path, SPMV_C64, z, 2, 2, NULL));
    assert_fails(ctx, spmv_vector_read(ctx, path, SPMV_F64, &values, &n), SPMV_ERROR_TYPE, "the numbers are complex");
    assert_fails(ctx, spmv_vector_read(ctx, path, SPMV_C64, &values, &n), SPMV_ERROR_SIZE,
                 "2 x 2: a vector has one column (or one row)");
    assert_true(values == NULL && n == 0);
    const int64_t row_ptr[] = {0, 1};
    const int32_t col[] = {0};
    const spmv_csr a = support_csr_with(1, 1, 1, row_ptr, 64, col, x, SPMV_F64);
    assert_ok(ctx, spmv_matrix_write(ctx, &a, path));
    assert_fails(ctx, spmv_vector_read(ctx, path, SPMV_F64, &values, &n), SPMV_ERROR_FORMAT,
                 "the binary form of a matrix, not of a vector");
    unlink(path);
    free(file);
}

SUPPORT_MAIN(with_teams(several_are_read_row_by_row), with_omp(several_complex_are_read, 2),
             with_teams(several_are_refused), in_a_folder(forms_round_trip), with_folder(rows_are_lines, 2),
             with_folder(binary_form_of_a_vector, 2), with_omp(vectors_are_read, 3), with_teams(vectors_are_refused),
             with_omp(arguments_are_refused, 1), with_folder(large_vectors_round_trip, 1),
             with_folder(large_vectors_round_trip, 2), with_folder(large_vectors_round_trip, 3),
             with_folder(large_vectors_round_trip, 7), cmocka_unit_test(not_finite_numbers_warn),
             with_folder(formats, 1))
