/* Reading Matrix Market files: accepted files, refused files and their messages, for any number of
 * threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <sys/prctl.h>
#include <time.h>

#include "bench/process_memory.h"
#include "tests/support/support_io.h"

#define GENERAL "%%MatrixMarket matrix coordinate real general\n"
#define INTEGER "%%MatrixMarket matrix coordinate integer general\n"
#define PATTERN "%%MatrixMarket matrix coordinate pattern general\n"
#define SYMMETRIC "%%MatrixMarket matrix coordinate real symmetric\n"
#define SKEW "%%MatrixMarket matrix coordinate real skew-symmetric\n"
#define ARRAY "%%MatrixMarket matrix array real general\n"
#define COMPLEX "%%MatrixMarket matrix coordinate complex general\n"
#define COMPLEX_SKEW "%%MatrixMarket matrix coordinate complex skew-symmetric\n"
#define HERMITIAN "%%MatrixMarket matrix coordinate complex hermitian\n"
#define COMPLEX_ARRAY "%%MatrixMarket matrix array complex general\n"
#define SYMMETRIC_ARRAY "%%MatrixMarket matrix array real symmetric\n"
#define SKEW_ARRAY "%%MatrixMarket matrix array real skew-symmetric\n"
#define HERMITIAN_ARRAY "%%MatrixMarket matrix array complex hermitian\n"

#define TEXT(literal) literal, sizeof(literal) - 1

/* ---------------------------------------------------------------- accepted files */

static const struct good {
    const char *text, *dense;
    int64_t duplicates;
    int warnings;
} good[] = {
    /* formats, fields, symmetries */
    {GENERAL "3 3 4\n1 1 1\n3 2 -2.5\n1 3 2\n3 3 1e2\n", "1 . 2; . . .; . -2.5 100", 0, 0},
    {INTEGER "2 2 2\n1 1 -7\n2 2 +8\n", "-7 .; . 8", 0, 0},
    {PATTERN "2 3 3\n1 3\n1 1\n2 2\n", "x . x; . x .", 0, 0},
    {SYMMETRIC "3 3 3\n1 1 1\n2 1 2\n3 2 3\n", "1 2 .; 2 . 3; . 3 .", 0, 0},
    {SKEW "3 3 2\n2 1 2\n3 2 -3\n", ". -2 .; 2 . 3; . -3 .", 0, 0},
    {"%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 5\n", ". -5; 5 .", 0, 0},
    {"%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n", ". x; x .", 0, 0},
    /* in column order; zeros are dropped */
    {ARRAY "2 3\n1\n2\n0\n4\n5\n-0\n", "1 . 5; 2 4 .", 0, 0},
    {"%%MatrixMarket matrix array integer general\n1 2\n3\n4\n", "3 4", 0, 0},
    {"%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n", "1 2 3; 2 4 5; 3 5 6", 0, 0},
    {"%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n", ". -1 -2; 1 . -3; 2 3 .", 0, 0},
    {"%%MatrixMarket matrix array real skew-symmetric\n1 1\n", ".", 0, 0},
    /* complex values */
    {COMPLEX "2 3 3\n1 1 1 2\n2 3 -0.5 1e1\n1 2 0 -3\n", "1+2i 0-3i .; . . -0.5+10i", 0, 0},
    {COMPLEX "1 2 1\n 1\t2  1d1\t -2.5D-1 \r\n", ". 10-0.25i", 0, 0},
    {"%%MatrixMarket matrix coordinate complex symmetric\n2 2 2\n1 1 1 2\n2 1 3 4\n", "1+2i 3+4i; 3+4i .", 0, 0},
    {COMPLEX_SKEW "2 2 2\n1 1 0 -0\n2 1 3 -4\n", "0-0i -3+4i; 3-4i .", 0, 0},
    {HERMITIAN "3 3 3\n1 1 5 0\n2 1 3 4\n1 3 1 2\n", "5+0i 3-4i 1+2i; 3+4i . .; 1-2i . .", 0, 0},
    {COMPLEX_ARRAY "2 2\n1 2\n0 0\n0 1e-3\n-1 0\n", "1+2i 0+0.001i; . -1+0i", 0, 0},
    {"%%MatrixMarket matrix array complex symmetric\n2 2\n1 2\n3 4\n5 6\n", "1+2i 3+4i; 3+4i 5+6i", 0, 0},
    {"%%MatrixMarket matrix array complex skew-symmetric\n2 2\n3 4\n", ". -3-4i; 3+4i .", 0, 0},
    {HERMITIAN_ARRAY "2 2\n1 -0\n3 4\n5 0\n", "1-0i 3-4i; 3+4i 5+0i", 0, 0},
    {COMPLEX "1 1 3\n1 1 1 2\n1 1 0.5 -4\n1 1 2 1\n", "3.5-1i", 2, 0},
    /* each entry with its mirror image */
    {HERMITIAN "2 2 2\n2 1 1 2\n1 2 3 5\n", ". 4+3i; 4-3i .", 1, 1},
    {COMPLEX "1 2 2\n1 1 inf 1\n1 2 1 -Inf\n", "inf+1i 1-infi", 0, 1},
    /* shapes */
    {GENERAL "0 0 0\n", "", 0, 0},
    {GENERAL "2 0 0\n", "", 0, 0},
    {GENERAL "0 5 0", "", 0, 0},
    {GENERAL "2 2 0\n", ". .; . .", 0, 0},
    {ARRAY "0 3\n", "", 0, 0},
    {GENERAL "1 4 1\n1 4 1\n", ". . . 1", 0, 0},
    /* Repeated entries are added, explicit zeros stay, a pattern has each entry once. */
    {GENERAL "1 2 4\n1 1 1\n1 2 0\n1 1 2\n1 1 4\n", "7 0", 2, 0},
    {PATTERN "1 2 3\n1 1\n1 1\n1 2\n", "x x", 1, 0},
    /* The upper triangle may stand for the lower one. If both are present they are added, with a
     * warning. */
    {SYMMETRIC "2 2 1\n1 2 3\n", ". 3; 3 .", 0, 0},
    {SKEW "2 2 1\n1 2 3\n", ". 3; -3 .", 0, 0},
    {SYMMETRIC "2 2 3\n1 2 3\n2 1 3\n1 1 1\n", "1 6; 6 .", 1, 1},
    {SKEW "2 2 2\n1 1 0\n2 1 1\n", "0 -1; 1 .", 0, 0}, /* a zero on the diagonal is valid */
    /* layout: case, blanks, tabs, CR LF, comments and blank lines anywhere, no final line end */
    {"%%matrixmarket MATRIX Coordinate REAL GENERAL\n1 1 1\n1 1 5\n", "5", 0, 0},
    {"%%MATRIXMARKET\tmatrix  coordinate real general  \n1 1 1\n1 1 5\n", "5", 0, 0},
    {"%%MatrixMarket matrix coordinate real general\r\n%c\r\n\r\n1 1 1\r\n1 1 5\r\n", "5", 0, 0},
    {GENERAL "%\n\n  % indented\n \t \n\t1\t 1  1 \n\n% between\n  1\t1   5  \n\n%end", "5", 0, 0},
    {GENERAL "1 1 1\n1 1 5", "5", 0, 0},
    {GENERAL "1 1 1\n1 1 5\r", "5", 0, 0},
    {GENERAL "+1 01 000000000000000000000000001\n+1 00000000000000000000000001 5\n", "5", 0, 0},
    /* found in real files: one percent sign, a byte order mark, blanks before the banner, trailing
     * blanks */
    {"%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 5\n", "5", 0, 1},
    {"\xef\xbb\xbf" GENERAL "1 1 1\n1 1 5\n", "5", 0, 1},
    {" \t" GENERAL "1 1 1\n1 1 5\n", "5", 0, 1},
    {"\xef\xbb\xbf %matrixmarket matrix coordinate pattern general \n1 1 1\n1 1 \n", "x", 0, 1},
    /* a hermitian matrix that is not complex */
    {"%%MatrixMarket matrix coordinate pattern hermitian\n2 2 1\n2 1\n", ". x; x .", 0, 1},
    {"%%MatrixMarket matrix array REAL Hermitian\n2 2\n1\n2\n3\n", "1 2; 2 3", 0, 1},
    {"%%MatrixMarket matrix coordinate integer hermitian\n2 2 1\n1 2 7\n", ". 7; 7 .", 0, 1},
    /* fields that are not in the standard */
    {"%%MatrixMarket matrix coordinate unsigned-integer general\n1 2 2\n1 1 7\n1 2 9007199254740992\n",
     "7 9.00719925e+15", 0, 1},
    {"%%MatrixMarket matrix coordinate Unsigned-Integer symmetric\n2 2 1\n2 1 3\n", ". 3; 3 .", 0, 1},
    {"%%MatrixMarket matrix array unsigned-integer general\n2 1\n3\n4\n", "3; 4", 0, 1},
    {"%%MatrixMarket matrix coordinate double general\n1 2 2\n1 1 0.5\n1 2 1.5d3\n", "0.5 1500", 0, 1},
    {"%%MatrixMarket matrix array DOUBLE skew-symmetric\n2 2\n1.5\n", ". -1.5; 1.5 .", 0, 1},
    /* with integers that f64 does not hold: both warnings */
    {"%%MatrixMarket matrix coordinate unsigned-integer general\n1 1 1\n1 1 18446744073709551615\n", "1.84467441e+19",
     0, 2},
    /* several numbers on a line of an array: column order, with a warning where another order is
     * possible */
    {ARRAY "2 1\n1 2\n", "1; 2", 0, 0},
    {ARRAY "1 3\n1\n2 3\n", "1 2 3", 0, 0},
    {ARRAY "2 2\n1 2\n% c\n 3\t4\n", "1 3; 2 4", 0, 1},
    {ARRAY "2 2\n1 2 3\n\n4", "1 3; 2 4", 0, 1},
    {COMPLEX_ARRAY "2 2\n1 2 3 4\n5 6\n7 8\n", "1+2i 5+6i; 3+4i 7+8i", 0, 1},
    {HERMITIAN_ARRAY "2 2\n1 0 2 3 4 0\n", "1+0i 2-3i; 2+3i 4+0i", 0, 1},
    /* numbers */
    {ARRAY "9 1\n+1.5\n.5\n5.\n1.e2\n1d1\n2.5D-1\n-0.0625E+2\n00001\n1e-400\n",
     "1.5; 0.5; 5; 100; 10; 0.25; -6.25; 1; .", 0, 0},
    /* Fortran writes exponents of three digits without a letter. */
    {ARRAY "9 1\n0.577-104\n-1.5+103\n+.5+002\n5.-001\n0.0-999\n1.5D+03\n1.5d3\n1.5D-003\n1.e+003\n",
     "5.77e-105; -1.5e+103; 50; 0.5; .; 1500; 1500; 0.0015; 1000", 0, 0},
    {GENERAL "1 3 3\n1 1 0.577-104\n1 2 0.25+001 \n 1  3\t-.25+001\r\n", "5.77e-105 2.5 -2.5", 0, 0},
    {SYMMETRIC "2 2 1\n2 1 0.577-104", ". 5.77e-105; 5.77e-105 .", 0, 0},
    {COMPLEX "1 2 2\n1 1 0.5-001 -0.5+001\n1 2 1 0.5-002\n", "0.05-5i 1+0.005i", 0, 0},
    {COMPLEX_ARRAY "1 1\n0.5-001 0.5D+01\n", "0.05+5i", 0, 0},
    {ARRAY "3 1\ninf\n-Infinity\n+INF\n", "inf; -inf; inf", 0, 1},
    {INTEGER "1 1 1\n1 1 9007199254740992\n", "9.00719925e+15", 0, 0},
    {INTEGER "1 1 1\n1 1 9007199254740993\n", "9.00719925e+15", 0, 1},
    {INTEGER "1 1 1\n1 1 10000000000000000000000\n", "1e+22", 0, 0}, /* exact */
    {INTEGER "1 1 1\n1 1 -00000000000000000000000000000000000000042\n", "-42", 0, 0},
};

static void reads(void **state)
{
    (void)state;
    for (size_t g = 0; g < sizeof good / sizeof good[0]; g++) {
        struct heard heard = {.events = 0};
        spmv_context *ctx = context_that_tells(2, &heard);
        spmv_matrix *matrix = NULL;
        spmv_read_info info;
        char dense[256];
        assert_ok(ctx, matrix_read_memory(ctx, "good.mtx", good[g].text, (int64_t)strlen(good[g].text), NULL, &matrix,
                                          &info, sizeof info));
        assert_string_equal(as_dense(matrix, dense, sizeof dense), good[g].dense);
        assert_int_equal(info.duplicates, good[g].duplicates);
        if (heard.warnings != good[g].warnings)
            fail_msg("good[%zu]: %d warnings: %s", g, heard.warnings, heard.warning);
        spmv_matrix_destroy(matrix);
        spmv_context_destroy(ctx);
    }
}

static void not_a_number_is_read(void **state)
{
    (void)state;
    struct heard heard = {.events = 0};
    spmv_context *ctx = context_that_tells(1, &heard);
    const char text[] = GENERAL "2 2 3\n1 1 1\n  1 2 NaN\n2 2 -nan\n";
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    assert_ok(ctx, matrix_read_memory(ctx, "a.mtx", text, sizeof text - 1, NULL, &matrix, NULL, 0));
    spmv_matrix_view(matrix, &a);
    assert_true(isnan(((const double *)a.val)[1]) && isnan(((const double *)a.val)[2]));
    assert_string_equal(heard.warning, "a.mtx:4:7: this value is not finite (2 such numbers in the file)");
    spmv_matrix_destroy(matrix);
    spmv_context_destroy(ctx);
}

static void rounded_integers_are_told(void **state)
{
    (void)state;
    struct heard heard = {.events = 0};
    spmv_context *ctx = context_that_tells(3, &heard);
    const char text[] = INTEGER "1 3 3\n1 1 16777216\n1 2 16777217\n1 3 -123456789123456789123456789\n";
    spmv_read_options options = support_read_options();
    options.type = SPMV_F32;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    assert_ok(ctx, matrix_read_memory(ctx, "a.mtx", text, sizeof text - 1, &options, &matrix, NULL, 0));
    spmv_matrix_view(matrix, &a);
    assert_int_equal(a.type, SPMV_F32);
    const float *v = a.val;
    assert_true(v[0] == 16777216.0f && v[1] == 16777216.0f && v[2] == -123456789123456789123456789.0f);
    assert_string_equal(heard.warning,
                        "a.mtx:4:5: this integer was rounded: not representable in f32 (2 such numbers in "
                        "the file)");
    spmv_matrix_destroy(matrix);
    spmv_context_destroy(ctx);
}

/* A value is rounded once, to nearest even, directly to the type: ties, double rounding through
 * f64, the ends of the range, long texts. The expected bits are constants, not computed. */
static void numbers_are_rounded_correctly(void **state)
{
    static const struct {
        const char *text;
        double f64;
        float f32;
    } numbers[] = {
        {"1.00000005960464477539062500000000000000000001", 0x1.000001p0,
         0x1.000002p0f},                                      /* just over half an ulp of f32 */
        {"1.000000059604644775390625", 0x1.000001p0, 0x1p0f}, /* a tie of f32: to even */
        {"1.000000178813934326171875", 0x1.000003p0, 0x1.000004p0f},
        {"0.1", 0x1.999999999999ap-4, 0x1.99999ap-4f},
        {"9007199254740993", 0x1p53, 0x1p53f},
        {"9007199254740993.00000000000000000000000000000000000000001", 0x1.0000000000001p53, 0x1p53f},
        {"2.2250738585072011e-308", 0x0.fffffffffffffp-1022, 0.0f}, /* made PHP hang */
        {"4.9406564584124654e-324", 0x1p-1074, 0.0f},
        {"2.4703282292062328e-324", 0x1p-1074, 0.0f},    /* just over half of it */
        {"2.4703282292062327e-324", 0.0, 0.0f},          /* just under half */
        {"7.0064923216240854e-46", 0x1p-150, 0x1p-149f}, /* just over half of the smallest float */
        {"7.0064923216240853e-46", 0x1p-150, 0.0f},      /* just under half */
        {"1.4012984643e-45", 0x1.ffffffffd90e2p-150, 0x1p-149f},
        {"3.4028234663852886e38", 0x1.fffffep127, 0x1.fffffep127f},
        {"0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000001e90", 1e3, 1e3f},
        /* Fortran's exponent without a letter */
        {"0.49406564584124654-323", 0x1p-1074, 0.0f},
        {"0.24703282292062327-323", 0.0, 0.0f},
        {"-0.34028234663852886+039", -0x1.fffffep127, -0x1.fffffep127f},
        {"0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000001+090", 1e3, 1e3f},
        {"123456789012345678901234567890e-29", 0x1.3c0ca428c59fbp0, 0x1.3c0ca4p0f},
    };
    spmv_context *ctx = *state;
    for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
        void *values = NULL;
        int64_t n = 0;
        const int64_t bytes = (int64_t)strlen(numbers[k].text);
        assert_ok(ctx, vector_read_memory(ctx, numbers[k].text, numbers[k].text, bytes, SPMV_F64, 0, &values, &n));
        if (n != 1 || memcmp(values, &numbers[k].f64, sizeof(double)) != 0)
            fail_msg("%s: f64 %a", numbers[k].text, *(double *)values);
        spmv_host_free(values);
        assert_ok(ctx, vector_read_memory(ctx, numbers[k].text, numbers[k].text, bytes, SPMV_F32, 0, &values, &n));
        if (memcmp(values, &numbers[k].f32, sizeof(float)) != 0)
            fail_msg("%s: f32 %a", numbers[k].text, (double)*(float *)values);
        spmv_host_free(values);
    }
}

static void information_is_filled(void **state)
{
    spmv_context *ctx = *state;
    const char text[] = "%%MatrixMarket matrix array integer symmetric\n2 2\n1\n0\n3\n";
    spmv_matrix *matrix = NULL;
    struct {
        spmv_read_info info;
        char more[8]; /* members of a newer caller */
    } newer;
    memset(&newer, 0x55, sizeof newer);
    assert_ok(ctx, matrix_read_memory(ctx, "a", text, sizeof text - 1, NULL, &matrix, &newer.info, sizeof newer));
    assert_int_equal(newer.info.size, sizeof newer);
    assert_int_equal(newer.info.bytes, sizeof text - 1);
    assert_true(newer.info.seconds > 0 && newer.info.seconds < 60);
    assert_int_equal(newer.info.threads, 3);
    assert_int_equal(newer.info.entries, 3);
    assert_int_equal(newer.info.duplicates, 0);
    assert_int_equal(newer.info.array, 1);
    assert_int_equal(newer.info.field, SPMV_FIELD_INTEGER);
    assert_int_equal(newer.info.symmetry, SPMV_SYMMETRY_SYMMETRIC);
    assert_int_equal(newer.more[0], 0);
    spmv_matrix_destroy(matrix);
}

/* ---------------------------------------------------------------- files of another kind */

/* what follows "a.mtx:1:1: this looks like " begins with these words, and names this tool */
static const struct {
    const char *text;
    size_t bytes;
    const char *what, *tool;
} other_kinds[] = {
    {TEXT("\x89HDF\r\n\x1a\n\0"), "an HDF5 file;", "h5py"},
    {TEXT("\0\0\0\0\3\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0x\0xxxxxxxxxxxx"), "a MATLAB file of version 4;", "-v7"},
    {TEXT("\x80\4\x95\1\0"), "a Python pickle;", "pickle.load"},
    {TEXT("7z\xbc\xaf\x27\x1c\0"), "a 7z archive;", "unpack"},
    {TEXT("\x1f\x9d\x90"), "compressed by compress (.Z);", "unpack"},
    {TEXT("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
     "a pointer of Git LFS, not the file itself;", "git lfs pull"},
    {TEXT("\n \xef\xbb\xbf"), NULL, NULL},
    {TEXT("\xef\xbb\xbf\n <!doctype html><html>\n"), "a web page;", "download"},
    {TEXT("<HTML>\n"), "a web page;", "download"},
    {TEXT("<?xml version=\"1.0\"?>\n"), "an XML file;", "Matrix Market"},
    {TEXT("{\"rows\": 3}\n"), "a JSON file;", "json.load"},
    {TEXT("[[1, 2], [3, 4]]"), "a list in brackets;", "json.load"},
    {TEXT("\xfe\xff\0%\0%"), "text in UTF-16;", "iconv"},
    {TEXT("1,2,3\n4,5,6\n"), "a table with commas or semicolons (.csv);", "numpy.loadtxt"},
    {TEXT("row;col;value\r\n1;1;2\r\n"), "a table with commas or semicolons (.csv);", "numpy.loadtxt"},
    /* none of them */
    {TEXT("title\n1 2 3\nRSA\n"), NULL, NULL},
    {TEXT("title\n1 2 3\nRSA 3 3 x\n"), NULL, NULL},
    {TEXT("title\nRSA 3 3 4 0\n"), NULL, NULL},
    {TEXT("RSA"), NULL, NULL},
    {TEXT("3 3 4\n1 1 1.5\n"), NULL, NULL},
    {TEXT("1,5\n2,5\n"), NULL, NULL},
    {TEXT("% a, b, c\n1\n"), NULL, NULL},
    {TEXT("MATLAB"), NULL, NULL},
    {TEXT("\x80\x94\xb6,,,\1\n"), NULL, NULL},
};

static void other_kinds_are_named(void **state)
{
    spmv_context *ctx = *state;
    static const char looks[] = "a.mtx:1:1: this looks like ", banner[] = "a.mtx:1:1: bad banner: ";
    for (size_t k = 0; k < sizeof other_kinds / sizeof other_kinds[0]; k++) {
        const char *const what = other_kinds[k].what;
        spmv_matrix *matrix = NULL;
        assert_int_equal(matrix_read_memory(ctx, "a.mtx", other_kinds[k].text, (int64_t)other_kinds[k].bytes, NULL,
                                            &matrix, NULL, 0),
                         SPMV_ERROR_FORMAT);
        assert_null(matrix);
        const char *const said = spmv_last_error(ctx);
        const bool right = what == NULL
                               ? strncmp(said, banner, sizeof banner - 1) == 0
                               : strncmp(said, looks, sizeof looks - 1) == 0 &&
                                     strncmp(said + sizeof looks - 1, what, strlen(what)) == 0 &&
                                     strstr(said, other_kinds[k].tool) != NULL && said[strlen(said) - 1] != ' ';
        if (!right)
            fail_msg("other_kinds[%zu]: %s", k, said);
    }
}

/* A text without line ends that is longer than the longest line. */
static void another_kind_in_one_line(void **state)
{
    spmv_context *ctx = *state;
    const int64_t bytes = TEXT_BLOCK + 100;
    char *const text = malloc((size_t)bytes);
    spmv_matrix *matrix = NULL;
    assert_non_null(text);
    memset(text, '1', (size_t)bytes);
    memcpy(text, "{\"a\":", 5);
    assert_int_equal(matrix_read_memory(ctx, "a.mtx", text, bytes, NULL, &matrix, NULL, 0), SPMV_ERROR_FORMAT);
    assert_non_null(strstr(spmv_last_error(ctx), "this looks like a JSON file;"));
    free(text);
}

/* ---------------------------------------------------------------- refused files */

#define BANNER_WANTED                                                                                                  \
    "bad banner: line 1 must read \"%%MatrixMarket matrix coordinate|array real|integer|complex|pattern "              \
    "general|symmetric|skew-symmetric|hermitian\", found "

static const struct mangled {
    const char *text;
    size_t bytes;
    spmv_status status;
    const char *sentence; /* the whole message after "m.mtx:" */
} mangled[] = {
    /* banner */
    {TEXT(""), SPMV_ERROR_FORMAT, "1:1: the file is empty"},
    {TEXT("\n"), SPMV_ERROR_FORMAT, "1:1: " BANNER_WANTED "\"\""},
    {TEXT("1 1 1\n"), SPMV_ERROR_FORMAT, "1:1: " BANNER_WANTED "\"1\""},
    {TEXT("\n" GENERAL), SPMV_ERROR_FORMAT, "1:1: " BANNER_WANTED "\"\""},
    {TEXT("%%%MatrixMarket matrix coordinate real general\n"), SPMV_ERROR_FORMAT,
     "1:1: " BANNER_WANTED "\"%%%MatrixMarket\""},
    {TEXT("\xff\xfe%%MatrixMarket matrix coordinate real general\n"), SPMV_ERROR_FORMAT,
     "1:1: this looks like text in UTF-16; convert it: iconv -f UTF-16 -t UTF-8 FILE"},
    {TEXT("  \xef\xbb\xbf" GENERAL), SPMV_ERROR_FORMAT, "1:1: " BANNER_WANTED "\"\""},
    {TEXT("\xef\xbb\xbf  %MatrixMarket matrix\n"), SPMV_ERROR_FORMAT, "1:26: bad banner: the format is missing"},
    {TEXT("%%MatrixMarket"), SPMV_ERROR_FORMAT, "1:15: bad banner: the object is missing"},
    {TEXT("%%MatrixMarket matrix coordinate real\n"), SPMV_ERROR_FORMAT, "1:38: bad banner: the symmetry is missing"},
    {TEXT("%%MatrixMarket matrix coordinate real general x y\n"), SPMV_ERROR_FORMAT,
     "1:47: bad banner: extra text \"x\" after the symmetry"},
    {TEXT("%%MatrixMarket graph coordinate real general\n"), SPMV_ERROR_FORMAT,
     "1:16: object \"graph\" is unknown; it must be matrix"},
    {TEXT("%%MatrixMarket Vector coordinate real general\n"), SPMV_ERROR_UNSUPPORTED,
     "1:16: object \"Vector\" is not supported; write a vector as \"matrix array\" with one column"},
    {TEXT("%%MatrixMarket matrix elemental real general\n"), SPMV_ERROR_FORMAT,
     "1:23: format \"elemental\" is unknown; it must be coordinate or array"},
    {TEXT("%%MatrixMarket matrix array float general\n"), SPMV_ERROR_FORMAT,
     "1:29: field \"float\" is unknown; it must be real, integer, complex or pattern"},
    {TEXT("%%MatrixMarket matrix array double upper\n"), SPMV_ERROR_FORMAT,
     "1:36: symmetry \"upper\" is unknown; it must be general, symmetric, skew-symmetric or hermitian"},
    {TEXT("%%MatrixMarket matrix array real upper\n"), SPMV_ERROR_FORMAT,
     "1:34: symmetry \"upper\" is unknown; it must be general, symmetric, skew-symmetric or hermitian"},
    {TEXT("%%MatrixMarket matrix array pattern general\n"), SPMV_ERROR_FORMAT,
     "1:29: field \"pattern\" cannot be combined with array: no values would be stored"},
    {TEXT("%%MatrixMarket matrix coordinate pattern skew-symmetric\n"), SPMV_ERROR_FORMAT,
     "1:42: symmetry \"skew-symmetric\" cannot be combined with pattern, which has no signs"},
    {TEXT("%%MatrixMarket matrix coordinate real "
          "general_general_general_general_general_general_general_general_g\n1 1 0\n"),
     SPMV_ERROR_FORMAT, "1:39: symmetry \"general_general_general_general_general_...\" is unknown: it is too long"},
    {TEXT("%%MatrixMarket matrix coordinate real gene\0ral\n1 1 0\n"), SPMV_ERROR_FORMAT,
     "1:39: symmetry \"gene\\x00ral\" is unknown: it contains a zero byte"},
    /* size line */
    {TEXT(GENERAL), SPMV_ERROR_FORMAT, "2:1: the size line is missing: the file ends here"},
    {TEXT(GENERAL "% only\n\n%a comment"), SPMV_ERROR_FORMAT, "4:11: the size line is missing: the file ends here"},
    {TEXT(GENERAL "3 3\n1 1 1\n"), SPMV_ERROR_FORMAT, "2:4: malformed size line: the number of entries is missing"},
    {TEXT(GENERAL "% c\n 3 x 1\n"), SPMV_ERROR_FORMAT,
     "3:4: malformed size line: the number of columns \"x\" is not an integer"},
    {TEXT(GENERAL "-3 3 1\n"), SPMV_ERROR_FORMAT, "2:1: malformed size line: the number of rows \"-3\" is negative"},
    {TEXT(GENERAL "3 3 1.5\n"), SPMV_ERROR_FORMAT,
     "2:5: malformed size line: the number of entries \"1.5\" is not an integer"},
    {TEXT(GENERAL "3 3 1 1\n"), SPMV_ERROR_FORMAT,
     "2:7: malformed size line: extra text \"1\" after the number of entries"},
    {TEXT(ARRAY "3 3 9\n"), SPMV_ERROR_FORMAT,
     "2:5: malformed size line: extra text \"9\" after the number of columns"},
    {TEXT(GENERAL "3 3 9223372036854775808\n"), SPMV_ERROR_LIMIT,
     "2:5: malformed size line: the number of entries \"9223372036854775808\" does not fit in 63 bits"},
    {TEXT(GENERAL "99999999999999999999999999 3 1\n"), SPMV_ERROR_LIMIT,
     "2:1: malformed size line: the number of rows \"99999999999999999999999999\" does not fit in 63 bits"},
    {TEXT(GENERAL "1 2147483648 1\n1 1 1\n"), SPMV_ERROR_LIMIT,
     "2:3: 2147483648 columns: at most 2147483647 are supported"},
    {TEXT(ARRAY "9223372036854775807 2\n"), SPMV_ERROR_LIMIT,
     "2:1: an array of 9223372036854775807 x 2 entries: their number does not fit in 63 bits"},
    {TEXT(SYMMETRIC "2 3 1\n2 1 1\n"), SPMV_ERROR_FORMAT, "2:3: a symmetric matrix must be square, this one is 2 x 3"},
    {TEXT(HERMITIAN "3 2 1\n2 1 1 1\n"), SPMV_ERROR_FORMAT,
     "2:3: a hermitian matrix must be square, this one is 3 x 2"},
    {TEXT(COMPLEX "9 9 3\n1 1 1\n1 1 1\n1 1 1\n"), SPMV_ERROR_FORMAT,
     "2:5: 3 entries declared, but the 18 bytes that follow cannot hold more than 2"},
    {TEXT(COMPLEX_ARRAY "2 1\n1\n2\n"), SPMV_ERROR_FORMAT,
     "2:1: 2 entries declared, but the 4 bytes that follow cannot hold more than 1"},
    {TEXT(SKEW "3 2 1\n2 1 1\n"), SPMV_ERROR_FORMAT, "2:3: a skew-symmetric matrix must be square, this one is 3 x 2"},
    {TEXT(GENERAL "9 9 4\n1 1 1\n1 1 1\n1 1 1\n"), SPMV_ERROR_FORMAT,
     "2:5: 4 entries declared, but the 18 bytes that follow cannot hold more than 3"},
    {TEXT(GENERAL "9 9 9000000000000000000\n1 1 1"), SPMV_ERROR_FORMAT,
     "2:5: 9000000000000000000 entries declared, but the 5 bytes that follow cannot hold more than 1"},
    {TEXT(ARRAY "2000000000 2000000000\n1\n"), SPMV_ERROR_FORMAT,
     "2:1: 4000000000000000000 entries declared, but the 2 bytes that follow cannot hold more than 1"},
    {TEXT(GENERAL "9223372036854775807 1 0\n"), SPMV_ERROR_MEMORY,
     "2:1: a 9223372036854775807 x 1 matrix with 0 stored entries needs more than 9223372036854775807 bytes "
     "(9.22e+09 GB) of memory to read; 1000000 are allowed"},
    {TEXT(GENERAL "1000000 1 0\n"), SPMV_ERROR_MEMORY,
     "2:1: a 1000000 x 1 matrix with 0 stored entries needs 8000008 bytes (0.008 GB) of memory to read; 1000000 are "
     "allowed"},
    /* indices */
    {TEXT(GENERAL "3 3 2\n1 1 1\n0 1 1\n"), SPMV_ERROR_FORMAT, "4:1: row 0: rows and columns count from 1"},
    {TEXT(GENERAL "3 3 2\n1 1 1\n1 0 1\n"), SPMV_ERROR_FORMAT, "4:3: column 0: rows and columns count from 1"},
    {TEXT(GENERAL "% c\n3 8 1\n 4 1 1\n"), SPMV_ERROR_FORMAT, "4:2: row 4 exceeds the 3 rows declared on line 3"},
    {TEXT(GENERAL "% c\n3 8 1\n3 9 1\n"), SPMV_ERROR_FORMAT, "4:3: column 9 exceeds the 8 columns declared on line 3"},
    {TEXT(GENERAL "3 3 1\n1 -2 1\n"), SPMV_ERROR_FORMAT, "3:3: column \"-2\" is negative"},
    {TEXT(GENERAL "3 3 1\n1.0 2 1\n"), SPMV_ERROR_FORMAT, "3:1: row \"1.0\" is not an integer"},
    {TEXT(GENERAL "3 3 1\n1 99999999999999999999 1\n"), SPMV_ERROR_LIMIT,
     "3:3: column \"99999999999999999999\" does not fit in 63 bits"},
    {TEXT(GENERAL "3 3 1\n1      \n"), SPMV_ERROR_FORMAT, "3:8: column is missing"},
    {TEXT(GENERAL "3 3 1\nabcdef\n"), SPMV_ERROR_FORMAT, "3:1: row \"abcdef\" is not an integer"},
    {TEXT(GENERAL "3 3 1\n1 \0 1\n"), SPMV_ERROR_FORMAT, "3:3: column \"\\x00\" is not an integer"},
    /* values */
    {TEXT(GENERAL "3 3 2\n1 1 1\n2 2  \n"), SPMV_ERROR_FORMAT, "4:6: the value is missing"},
    {TEXT(GENERAL "3 3 1\n1 1 x1.5e\n"), SPMV_ERROR_FORMAT, "3:5: \"x1.5e\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 1.5e\n"), SPMV_ERROR_FORMAT, "3:5: \"1.5e\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 1.5d\n"), SPMV_ERROR_FORMAT, "3:5: \"1.5d\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 1,5\n"), SPMV_ERROR_FORMAT,
     "3:5: \"1,5\" is not a number; numbers have a decimal point, and blanks separate them"},
    /* exponents without a letter: three digits after a number with a point */
    {TEXT(GENERAL "3 3 1\n1 1 5-104\n"), SPMV_ERROR_FORMAT, "3:5: \"5-104\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 1.5-04\n"), SPMV_ERROR_FORMAT, "3:5: \"1.5-04\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 1.5+1040\n"), SPMV_ERROR_FORMAT, "3:5: \"1.5+1040\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 1.5e1+104\n"), SPMV_ERROR_FORMAT, "3:5: \"1.5e1+104\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 1.5+104-104\n"), SPMV_ERROR_FORMAT, "3:5: \"1.5+104-104\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 1.5+d104\n"), SPMV_ERROR_FORMAT, "3:5: \"1.5+d104\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 -1.5+309\n"), SPMV_ERROR_LIMIT, "3:5: \"-1.5+309\" is too large for f64"},
    {TEXT(INTEGER "3 3 1\n1 1 1-104\n"), SPMV_ERROR_FORMAT,
     "3:5: \"1-104\" is not an integer, as required by the banner"},
    {TEXT(GENERAL "3 3 1\n1 1 --1\n"), SPMV_ERROR_FORMAT, "3:5: \"--1\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 +-1\n"), SPMV_ERROR_FORMAT, "3:5: \"+-1\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 0x10\n"), SPMV_ERROR_FORMAT, "3:5: \"0x10\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 nan(1)\n"), SPMV_ERROR_FORMAT, "3:5: \"nan(1)\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 .\n"), SPMV_ERROR_FORMAT, "3:5: \".\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 -\n"), SPMV_ERROR_FORMAT, "3:5: \"-\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 1\0\n"), SPMV_ERROR_FORMAT, "3:5: \"1\\x00\" is not a number"},
    {TEXT(GENERAL "3 3 1\n1 1 1e999\n"), SPMV_ERROR_LIMIT, "3:5: \"1e999\" is too large for f64"},
    {TEXT(GENERAL "3 3 1\n1 1 -1e99999999999999999999\n"), SPMV_ERROR_LIMIT,
     "3:5: \"-1e99999999999999999999\" is too large for f64"},
    {TEXT(GENERAL "3 3 1\n1 1 1D999\n"), SPMV_ERROR_LIMIT, "3:5: \"1D999\" is too large for f64"},
    {TEXT(INTEGER "3 3 1\n1 1 1.0\n"), SPMV_ERROR_FORMAT, "3:5: \"1.0\" is not an integer, as required by the banner"},
    {TEXT(INTEGER "3 3 1\n1 1 inf\n"), SPMV_ERROR_FORMAT, "3:5: \"inf\" is not an integer, as required by the banner"},
    {TEXT(SKEW "2 2 2\n2 1 1\n2 2 1\n"), SPMV_ERROR_FORMAT,
     "4:5: the diagonal of a skew-symmetric matrix is 0; here (2, 2) is not"},
    /* complex values */
    {TEXT(COMPLEX "3 3 2\n1 1 1.25 0\n2 2  \n"), SPMV_ERROR_FORMAT, "4:6: the value is missing"},
    {TEXT(COMPLEX "3 3 2\n1 1 1 0\n2 2 1.5 \n"), SPMV_ERROR_FORMAT, "4:9: the imaginary part is missing"},
    {TEXT(COMPLEX "3 3 1\n1 1 1.5\n2 2\n"), SPMV_ERROR_FORMAT, "3:8: the imaginary part is missing"},
    {TEXT(COMPLEX "3 3 1\n1 1 1+2i 0\n"), SPMV_ERROR_FORMAT, "3:5: \"1+2i\" is not a number"},
    {TEXT(COMPLEX "3 3 1\n1 1 1 2i\n"), SPMV_ERROR_FORMAT, "3:7: \"2i\" is not a number"},
    {TEXT(COMPLEX "3 3 1\n1 1 (1, 2)\n"), SPMV_ERROR_FORMAT,
     "3:5: \"(1,\" is not a number; numbers have a decimal point, and blanks separate them"},
    {TEXT(COMPLEX "3 3 1\n1 1 1e999 0\n"), SPMV_ERROR_LIMIT, "3:5: \"1e999\" is too large for f64"},
    {TEXT(COMPLEX "3 3 1\n1 1 0 -1e999\n"), SPMV_ERROR_LIMIT, "3:7: \"-1e999\" is too large for f64"},
    {TEXT(COMPLEX "3 3 1\n1 1 1 2 3\n"), SPMV_ERROR_FORMAT,
     "3:9: extra text \"3\" after the entry (row, column, real and imaginary part)"},
    {TEXT(COMPLEX "3 3 1\n1 4 1 2\n"), SPMV_ERROR_FORMAT, "3:3: column 4 exceeds the 3 columns declared on line 2"},
    {TEXT(COMPLEX "3 3 2\n1 1 1.00 2.0000\n"), SPMV_ERROR_FORMAT,
     "4:1: the file ends after 1 of the 2 entries declared on line 2"},
    {TEXT(HERMITIAN "2 2 2\n2 1 1 1\n2 2 1  1e-300\n"), SPMV_ERROR_FORMAT,
     "4:8: the diagonal of a hermitian matrix is real; the imaginary part of (2, 2) is not 0"},
    {TEXT(HERMITIAN "2 2 1\n1 1 1 nan\n"), SPMV_ERROR_FORMAT,
     "3:7: the diagonal of a hermitian matrix is real; the imaginary part of (1, 1) is not 0"},
    {TEXT(COMPLEX_SKEW "2 2 1\n2 2 1 0\n"), SPMV_ERROR_FORMAT,
     "3:5: the diagonal of a skew-symmetric matrix is 0; here (2, 2) is not"},
    {TEXT(COMPLEX_SKEW "2 2 1\n2 2 0 1\n"), SPMV_ERROR_FORMAT,
     "3:7: the diagonal of a skew-symmetric matrix is 0; here (2, 2) is not"},
    {TEXT(COMPLEX_ARRAY "2 1\n1.0 2\n3\n"), SPMV_ERROR_FORMAT, "4:2: the imaginary part is missing"},
    {TEXT(COMPLEX_ARRAY "2 1\n1 2\n3 x\n"), SPMV_ERROR_FORMAT, "4:3: \"x\" is not a number"},
    {TEXT(COMPLEX_ARRAY "1 1\n1 2 3\n"), SPMV_ERROR_FORMAT, "3:5: more numbers than the 1 of an array of 1 x 1"},
    {TEXT(HERMITIAN_ARRAY "2 2\n1 0\n2 3\n4 5\n"), SPMV_ERROR_FORMAT,
     "5:3: the diagonal of a hermitian matrix is real; the imaginary part of (2, 2) is not 0"},
    /* content of a line */
    {TEXT(GENERAL "3 3 1\n1 1 1 1\n"), SPMV_ERROR_FORMAT,
     "3:7: extra text \"1\" after the entry (row, column and value)"},
    {TEXT(PATTERN "3 3 1\n1 1 1.0\n"), SPMV_ERROR_FORMAT,
     "3:5: extra text \"1.0\" after the entry (row and column of a pattern)"},
    {TEXT(ARRAY "2 1\n1 2 3\n"), SPMV_ERROR_FORMAT, "3:5: more numbers than the 2 of an array of 2 x 1"},
    {TEXT(SKEW_ARRAY "3 3\n0\n1\n2\n0\n3\n0\n"), SPMV_ERROR_FORMAT,
     "6:1: more numbers than the 3 of a skew-symmetric array of 3 x 3: a skew-symmetric array has no diagonal, and "
     "only "
     "the lower triangle"},
    {TEXT(SYMMETRIC_ARRAY "2 2\n1\n2\n2\n3\n"), SPMV_ERROR_FORMAT,
     "6:1: more numbers than the 3 of a symmetric array of 2 x 2: it has only the lower triangle, with the diagonal"},
    {TEXT(HERMITIAN_ARRAY "2 2\n1 0 2 0 4 0 5 0\n"), SPMV_ERROR_FORMAT,
     "3:13: more numbers than the 3 of a hermitian array of 2 x 2: it has only the lower triangle, with the "
     "diagonal"},
    {TEXT(ARRAY "2 2\n1 2 3\n%\n4 5\n"), SPMV_ERROR_FORMAT, "5:3: more numbers than the 4 of an array of 2 x 2"},
    {TEXT(ARRAY "2 2\n1 2 3\n4 x\n"), SPMV_ERROR_FORMAT,
     "4:3: trailing text \"x\" after the 4 entries declared on line 2"},
    {TEXT(ARRAY "2 2\n1 2 x\n\n\n"), SPMV_ERROR_FORMAT, "3:5: \"x\" is not a number"},
    {TEXT(ARRAY "2 2\n1 2\n3\n\n"), SPMV_ERROR_FORMAT,
     "6:1: the file ends after 3 of the 4 entries declared on line 2"},
    {TEXT(HERMITIAN_ARRAY "2 2\n1 0 2 3 4 1\n"), SPMV_ERROR_FORMAT,
     "3:11: the diagonal of a hermitian matrix is real; the imaginary part of (2, 2) is not 0"},
    {TEXT(HERMITIAN_ARRAY "2 2\n1 0 2 x\n 3 4\n"), SPMV_ERROR_FORMAT, "3:7: \"x\" is not a number"},
    {TEXT(HERMITIAN_ARRAY "2 2\n1 1 2 x\n 3 4\n"), SPMV_ERROR_FORMAT,
     "3:3: the diagonal of a hermitian matrix is real; the imaginary part of (1, 1) is not 0"},
    {TEXT(GENERAL "3 3 1\n1 1 1 % note\n"), SPMV_ERROR_FORMAT,
     "3:7: extra text \"%\" after the entry (row, column and value)"},
    /* number of entries */
    {TEXT(GENERAL "3 3 2\n1 1 1\n% and then\n"), SPMV_ERROR_FORMAT,
     "5:1: the file ends after 1 of the 2 entries declared on line 2"},
    {TEXT(GENERAL "3 3 2\n1 1 1.000000"), SPMV_ERROR_FORMAT,
     "3:13: the file ends after 1 of the 2 entries declared on line 2"},
    {TEXT(ARRAY "2 2\n1.00\n2.00\n3.00\n"), SPMV_ERROR_FORMAT,
     "6:1: the file ends after 3 of the 4 entries declared on line 2"},
    {TEXT(GENERAL "3 3 1\n1 1 1\n\n 2 2 2\n"), SPMV_ERROR_FORMAT, "5:2: more entries than the 1 declared on line 2"},
    {TEXT(GENERAL "3 3 0\n1 1 1\n"), SPMV_ERROR_FORMAT, "3:1: more entries than the 0 declared on line 2"},
    {TEXT(ARRAY "1 2\n1\n2\n3\n"), SPMV_ERROR_FORMAT, "5:1: more numbers than the 2 of an array of 1 x 2"},
    {TEXT(GENERAL "3 3 1\n1 1 1\nEND of file\n"), SPMV_ERROR_FORMAT,
     "4:1: trailing text \"END\" after the 1 entry declared on line 2"},
    {TEXT(GENERAL "3 3 1\n1 1 1\n\0\0\0"), SPMV_ERROR_FORMAT,
     "4:1: trailing text \"\\x00\\x00\\x00\" after the 1 entry declared on line 2"},
    /* The first error is reported. */
    {TEXT(GENERAL "3 3 2\n1 1 x\n0 0 0\n"), SPMV_ERROR_FORMAT, "3:5: \"x\" is not a number"},
    /* A file with old Macintosh line ends is one line. */
    {TEXT("%%MatrixMarket matrix coordinate real general\r1 1 1\r1 1 1\r"), SPMV_ERROR_FORMAT,
     "1:46: a carriage return alone does not end a line; convert the file: tr '\\r' '\\n' <FILE >NEW"},
};

static void refuses(void **state)
{
    spmv_read_options options = support_read_options();
    options.max_bytes = 1000000;
    spmv_context *ctx = *state;
    for (size_t m = 0; m < sizeof mangled / sizeof mangled[0]; m++) {
        char expected[512];
        spmv_matrix *matrix = (spmv_matrix *)ctx;
        snprintf(expected, sizeof expected, "m.mtx:%s", mangled[m].sentence);
        const spmv_status st =
            matrix_read_memory(ctx, "m.mtx", mangled[m].text, (int64_t)mangled[m].bytes, &options, &matrix, NULL, 0);
        assert_string_equal(spmv_last_error(ctx), expected);
        assert_int_equal(st, mangled[m].status);
        assert_null(matrix);
    }
}

static void refuses_too_large_for_f32(void **state)
{
    spmv_context *ctx = *state;
    void *values = NULL;
    int64_t n = 0;
    /* Half an ulp above the largest float rounds up out of range. */
    assert_fails(ctx, vector_read_memory(ctx, "x", "3.4028235677973367e38", 21, SPMV_F32, 0, &values, &n),
                 SPMV_ERROR_LIMIT, "x:1:1: \"3.4028235677973367e38\" is too large for f32");
    assert_ok(ctx, vector_read_memory(ctx, "x", "3.4028235677973365e38", 21, SPMV_F32, 0, &values, &n));
    assert_true(*(float *)values == 0x1.fffffep127f);
    spmv_host_free(values);
}

/* Each prefix of a file is refused with a position in it, or lacks only line ends and gives the
 * whole matrix. The last value has one digit, because a number with fewer digits is still a
 * number. */
static void every_prefix_is_refused_or_equal(void **state)
{
    static const char *const whole[] = {
        "%%MatrixMarket matrix coordinate real symmetric\n% c\n\n12 12 3\n1 1 1.25\n12 3 -4e-5\n\n3 2 7\n% the end\n",
        "%%MatrixMarket matrix coordinate pattern general\r\n3 3 3\r\n1 1\r\n2 2\r\n3 3\r\n",
        "%%MatrixMarket matrix array integer general\n2 2\n10\n-20\n30\n4\n",
        "%%MatrixMarket matrix coordinate complex hermitian\n% c\n12 12 3\n1 1 1.25 0\n12 3 -4e-5 .5\n\n3 2 7 -8\n%\n",
        "%%MatrixMarket matrix array complex symmetric\n2 2\n10 -1\n-20 2.5\n30 4\n",
    };
    spmv_context *ctx = *state;
    for (size_t w = 0; w < sizeof whole / sizeof whole[0]; w++) {
        const int64_t bytes = (int64_t)strlen(whole[w]);
        spmv_matrix *full = NULL;
        assert_ok(ctx, matrix_read_memory(ctx, "w", whole[w], bytes, NULL, &full, NULL, 0));
        int64_t equal = 0;
        for (int64_t b = 0; b < bytes; b++) {
            /* A copy of exactly b bytes, so that a sanitizer detects a read past them. */
            char *const prefix = malloc((size_t)b + (b == 0));
            memcpy(prefix, whole[w], (size_t)b);
            spmv_matrix *matrix = NULL;
            const spmv_status st = matrix_read_memory(ctx, "p", prefix, b, NULL, &matrix, NULL, 0);
            int line = 0, column = 0;
            if (st == SPMV_OK) {
                assert_true(same_matrix(matrix, full));
                equal++;
            } else {
                assert_int_equal(sscanf(spmv_last_error(ctx), "p:%d:%d: ", &line, &column), 2);
                assert_true(line >= 1 && column >= 1);
                assert_int_equal(spmv_status_class(st), 3);
            }
            spmv_matrix_destroy(matrix);
            free(prefix);
        }
        assert_true(equal >= 1 && equal <= 12);
        spmv_matrix_destroy(full);
    }
}

/* ------------------------------------------------- large files: tiles, blocks, threads */

enum { LARGE = 800000, LARGE_ROWS = 50000 };

/* Over 20 MB, so several blocks and many tiles, with comments, blank lines and duplicates. Entry k
 * is on line k + 3 + k / 1000. */
static char *large_text(size_t *bytes)
{
    char *const text = malloc(LARGE * 48u);
    char *p = text + sprintf(text, "%s%d %d %d\n", GENERAL, LARGE_ROWS, LARGE_ROWS, LARGE);
    uint64_t seed = 7;
    for (int k = 0; k < LARGE; k++) {
        const int row = (int)(support_random(&seed) % LARGE_ROWS), col = (int)(support_random(&seed) % 40);
        if (k % 1000 == 999)
            p += sprintf(p, k % 2000 == 999 ? "\n" : "%% comment\n");
        p += sprintf(p, "%05d %05d 0.%017llu\n", row + 1, col + 1,
                     (unsigned long long)(support_random(&seed) % 100000000000000000u)); /* 10 times as fast as %.17g */
    }
    *bytes = (size_t)(p - text);
    return text;
}

/* The first byte of a line. */
/* A loop of its own: sanitizers that check whole strings make each strchr read the 20 MB to their
 * end. */
static char *next_line(char *text)
{
    while (*text != '\n')
        text++;
    return text + 1;
}

static char *find_line(char *text, int64_t line)
{
    while (--line > 0)
        text = next_line(text);
    return text;
}

static void same_for_any_team(void **state)
{
    (void)state;
    size_t bytes = 0;
    char *const text = large_text(&bytes);
    assert_true(bytes > (20u << 20));
    spmv_matrix *first = NULL;
    for (int t = 0; t < TEAMS; t++) {
        spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, teams[t]);
        spmv_matrix *matrix = NULL;
        spmv_read_info info;
        assert_ok(ctx, matrix_read_memory(ctx, "l", text, (int64_t)bytes, NULL, &matrix, &info, sizeof info));
        assert_int_equal(info.entries, LARGE);
        assert_true(info.duplicates > 1000);
        if (first == NULL)
            first = matrix;
        else
            assert_true(same_matrix(first, matrix));
        if (first != matrix)
            spmv_matrix_destroy(matrix);
        spmv_context_destroy(ctx);
    }
    spmv_matrix_destroy(first);
    free(text);
}

static void same_sentence_for_any_team(void **state)
{
    (void)state;
    static const int64_t lines[] = {3, 5000, 300001, 640000, 799000, LARGE + LARGE / 1000 + 2};
    size_t bytes = 0;
    char *const text = large_text(&bytes);
    text[bytes] = '\0';
    /* From the last line to the first, so that each new error precedes the earlier ones. */
    for (size_t e = sizeof lines / sizeof lines[0]; e-- > 0;) {
        char expected[64];
        char *line = find_line(text, lines[e]);
        int64_t at = lines[e];
        while (*line == '\n' || *line == '%') {
            line = next_line(line);
            at++;
        }
        line[7] = 'x';
        snprintf(expected, sizeof expected, "l:%lld:7: column \"", (long long)at);
        char sentence[512] = "";
        for (int t = 0; t < TEAMS; t++) {
            spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, teams[t]);
            spmv_matrix *matrix = NULL;
            assert_fails(ctx, matrix_read_memory(ctx, "l", text, (int64_t)bytes, NULL, &matrix, NULL, 0),
                         SPMV_ERROR_FORMAT, expected);
            if (sentence[0] != '\0')
                assert_string_equal(sentence, spmv_last_error(ctx));
            snprintf(sentence, sizeof sentence, "%s", spmv_last_error(ctx));
            assert_null(matrix);
            spmv_context_destroy(ctx);
        }
    }
    free(text);
}

/* Positions of array entries in every tile: a_ij = n j + i + 1, by columns, read as general,
 * symmetric and skew-symmetric, with one number on a line and with seven. */
static void large_arrays(void **state)
{
    enum { N = 400 };
    static const char *const names[] = {"general", "symmetric", "skew-symmetric"};
    spmv_context *ctx = *state;
    for (int pass = 0; pass < 6; pass++) {
        const int s = pass / 2, per_line = pass % 2 == 0 ? 1 : 7;
        int written = 0;
        char *const text = malloc(N * N * 12u + 100);
        char *p = text + sprintf(text, "%%%%MatrixMarket matrix array integer %s\n%d %d\n", names[s], N, N);
        for (int j = 0; j < N; j++)
            for (int i = s == 0 ? 0 : s == 1 ? j : j + 1; i < N; i++)
                p += sprintf(p, "%10d%c", N * j + i + 1, ++written % per_line == 0 ? '\n' : ' ');
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        assert_ok(ctx, matrix_read_memory(ctx, "array", text, p - text, NULL, &matrix, NULL, 0));
        spmv_matrix_view(matrix, &a);
        assert_int_equal(a.nnz, s == 2 ? N * (N - 1) : N * N);
        for (int64_t i = 0; i < N; i++)
            for (int64_t k = ((const int64_t *)a.row_ptr)[i]; k < ((const int64_t *)a.row_ptr)[i + 1]; k++) {
                const int64_t j = a.col[k];
                const bool above = s != 0 && j > i;
                const double stored = (double)(above ? N * i + j + 1 : N * j + i + 1);
                assert_true(((const double *)a.val)[k] == (above && s == 2 ? -stored : stored));
            }
        spmv_matrix_destroy(matrix);
        free(text);
    }
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    return *seed ^= *seed << 17;
}

/* What is done with entries does not depend on the way they were read. */
static void skip_if_plain(void)
{
#if defined(PLAIN_ENTRIES)
    skip();
#endif
}

/* Unordered entries with many duplicates give the matrix of spmv_matrix_from_coo, a different
 * algorithm. The shapes make buckets of rows, of row ranges, of column ranges, and one bucket with
 * nearly everything; general and mirrored. */
static void shapes_of_buckets(void **state)
{
    (void)state;
    skip_if_plain();
    enum { N = 120000 };
    static const struct {
        int64_t rows, cols;
        int one_row_in; /* number of entries in row 0; 0: not more than in other rows */
        bool mirrored;
    } shapes[] = {{1, 800000, 0, false},    {3, 70000, 0, false},       {100000, 1, 0, false},
                  {5000, 5000, 0, false},   {5000, 5000, 2, false},     {400000, 40, 0, false},
                  {20000, 20000, 0, true},  {40, 40, 0, true},          {3, 3, 0, true},
                  {700000, 9000, 3, false}, {700000, 400000, 0, false}, {1, 2147483647, 0, false}};
    int64_t *const row = malloc(2 * N * sizeof *row);
    int32_t *const col = malloc(2 * N * sizeof *col);
    double *const val = malloc(2 * N * sizeof *val);
    char *const text = malloc(N * 48u + 200);
    spmv_context *maker = support_context_on(SPMV_BACKEND_OMP, 0); /* test_matrix: its threads do not matter */
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        uint64_t seed = 88172645463325252u + s;
        int64_t n = 0;
        char *p = text + sprintf(text, "%s%lld %lld %d\n", shapes[s].mirrored ? SYMMETRIC : GENERAL,
                                 (long long)shapes[s].rows, (long long)shapes[s].cols, N);
        for (int k = 0; k < N; k++, n++) {
            const bool first = shapes[s].one_row_in > 0 && next_random(&seed) % (uint64_t)shapes[s].one_row_in == 0;
            row[n] = first ? 0 : (int64_t)(next_random(&seed) % (uint64_t)shapes[s].rows);
            col[n] = (int32_t)(next_random(&seed) % (uint64_t)shapes[s].cols);
            const int64_t value = (int64_t)next_random(&seed); /* integers are printed faster */
            val[n] = (double)value;
            p += sprintf(p, "%lld %d %lld\n", (long long)row[n] + 1, (int)col[n] + 1, (long long)value);
            if (shapes[s].mirrored && row[n] != col[n]) {
                row[n + 1] = col[n];
                col[n + 1] = (int32_t)row[n];
                val[n + 1] = val[n];
                n++;
            }
        }
        spmv_matrix *want = NULL;
        int64_t duplicates = 0;
        assert_ok(maker, spmv_matrix_from_coo(maker, shapes[s].rows, shapes[s].cols, n, row, col, val, SPMV_F64, &want,
                                              &duplicates));
        /* Two of the teams, in turns: same_for_any_team has all. */
        for (int t = (int)s % 2; t < TEAMS; t += 2) {
            spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, teams[t]);
            spmv_matrix *got = NULL;
            spmv_read_info info;
            assert_ok(ctx, matrix_read_memory(ctx, "s", text, p - text, NULL, &got, &info, sizeof info));
            if (!same_matrix(want, got))
                fail_msg("shape %zu, %d threads: other arrays", s, teams[t]);
            if (!shapes[s].mirrored)
                assert_int_equal(info.duplicates, duplicates);
            spmv_matrix_destroy(got);
            spmv_context_destroy(ctx);
        }
        spmv_matrix_destroy(want);
    }
    spmv_context_destroy(maker);
    support_free(row, col, val, text);
}

/* Ordered entries with empty rows, as most programs write them; then with one entry out of order or
 * repeated, early, late or at an end. The result is that of spmv_matrix_from_coo. */
static void order_and_where_it_ends(void **state)
{
    (void)state;
    skip_if_plain();
    enum { N = 120000, COLS = 70000 };
    static const struct {
        int at; /* position of an entry that precedes its predecessor; 0: none */
        bool twice;
        bool pattern;
    } cases[] = {{0, false, false},     {0, false, true},     {1, false, false},     {1, true, true},
                 {N / 2, false, false}, {N / 2, true, false}, {N - 1, false, false}, {N - 1, true, true},
                 {N - 1, false, true},  {70001, true, false}};
    int64_t *const row = malloc(N * sizeof *row);
    int32_t *const col = malloc(N * sizeof *col);
    double *const val = malloc(N * sizeof *val);
    int64_t *const value = malloc(N * sizeof *value);
    char *const text = malloc(N * 48u + 200);
    spmv_context *maker = support_context_on(SPMV_BACKEND_OMP, 0);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        uint64_t seed = 88172645463325252u + c;
        int64_t i = 5, j = -1;
        for (int k = 0; k < N; k++) {
            const int64_t step = 1 + (int64_t)(next_random(&seed) % 9000);
            if (j + step >= COLS) {
                i += 1 + (next_random(&seed) % 4 == 0 ? (int64_t)(next_random(&seed) % 3) : 0);
                j = -1;
            }
            j += step;
            row[k] = i;
            col[k] = (int32_t)j;
            value[k] = (int64_t)next_random(&seed);
            val[k] = (double)value[k];
        }
        const int at = cases[c].at;
        if (at > 0 && cases[c].twice) {
            row[at] = row[at - 1];
            col[at] = col[at - 1];
        } else if (at > 0) {
            const int64_t other_row = row[at];
            const int32_t other_col = col[at];
            row[at] = row[at - 1];
            col[at] = col[at - 1];
            row[at - 1] = other_row;
            col[at - 1] = other_col;
        }
        char *p = text + sprintf(text, "%s%lld %d %d\n",
                                 cases[c].pattern ? "%%MatrixMarket matrix coordinate pattern general\n" : GENERAL,
                                 (long long)i + 8, COLS, N);
        for (int k = 0; k < N; k++)
            p += cases[c].pattern
                     ? sprintf(p, "%lld %d\n", (long long)row[k] + 1, (int)col[k] + 1)
                     : sprintf(p, "%lld %d %lld\n", (long long)row[k] + 1, (int)col[k] + 1, (long long)value[k]);
        spmv_matrix *want = NULL;
        int64_t duplicates = 0;
        assert_ok(maker, spmv_matrix_from_coo(maker, i + 8, COLS, N, row, col, cases[c].pattern ? NULL : val, SPMV_F64,
                                              &want, &duplicates));
        assert_int_equal(duplicates, at > 0 && cases[c].twice);
        for (int t = 0; t < TEAMS; t++) {
            spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, teams[t]);
            spmv_matrix *got = NULL;
            spmv_read_info info;
            assert_ok(ctx, matrix_read_memory(ctx, "o", text, p - text, NULL, &got, &info, sizeof info));
            assert_int_equal(info.duplicates, duplicates);
            if (!same_matrix(want, got))
                fail_msg("case %zu, %d threads: other arrays", c, teams[t]);
            spmv_matrix_destroy(got);
            spmv_context_destroy(ctx);
        }
        spmv_matrix_destroy(want);
    }
    spmv_context_destroy(maker);
    support_free(row, col, val, value, text);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESSES_CHECKED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ADDRESSES_CHECKED
#endif

/* Returns N of "needs N bytes" in the message that refuses the file. */
static int64_t bytes_said(spmv_context *ctx, const char *path, spmv_type type)
{
    spmv_read_options options;
    spmv_matrix *matrix = NULL;
    long long said = 0;
    spmv_read_options_init(&options, sizeof options);
    options.max_bytes = 1;
    options.type = type;
    assert_int_equal(spmv_matrix_read(ctx, path, &options, &matrix, NULL, 0), SPMV_ERROR_MEMORY);
    const char *const needs = strstr(spmv_last_error(ctx), " needs ");
    assert_non_null(needs);
    assert_int_equal(sscanf(needs, " needs %lld bytes", &said), 1);
    return said;
}

/* Writes n > 0 in decimal; faster than fprintf. */
static void write_number(FILE *f, int n)
{
    char digits[16];
    int at = sizeof digits;
    for (; n > 0; n /= 10)
        digits[--at] = (char)('0' + n % 10);
    for (; at < (int)sizeof digits; at++)
        putc_unlocked(digits[at], f);
}

/* The memory that the reader reports for an unordered file is what reading takes: never less, not
 * much more. */
static void memory_as_said(void **state)
{
    (void)state;
#if defined(ADDRESSES_CHECKED) /* the memory of the sanitizer is resident too */
    skip();
#endif
    skip_if_plain();
    /* MANY entries use large pages, which are returned later. */
    enum { N = 2000000, MANY = 4400000 };
    static const struct {
        const char *banner;
        int rows;
        bool pattern, mirrored, crowded;
        spmv_type type;
        int entries;
        bool same_file; /* as the case before */
    } cases[] = {{"real general", 200000, false, false, false, SPMV_F64, N, false},
                 {"real general", 200000, false, false, false, SPMV_F32, N, true},
                 {"real general", 200000, false, false, false, SPMV_C128, N, true},
                 {"real general", 3000000, false, false, false, SPMV_F64, N, false},
                 {"real general", 200000, false, false, true, SPMV_F64, N, false},
                 {"pattern general", 200000, true, false, false, SPMV_F64, N, false},
                 {"real symmetric", 200000, false, true, false, SPMV_F64, N, false},
                 {"real general", 200000, false, false, false, SPMV_F64, MANY, false},
                 {"real general", 200000, false, false, true, SPMV_F64, MANY, false}};
    static const int threads[] = {1, 3};
/* Freed memory returns to the system, so that it counts again when it is allocated again. */
#if defined(M_MMAP_THRESHOLD)
    mallopt(M_MMAP_THRESHOLD, 1 << 16);
#endif
/* Which pages of 2 MB are touched depends on timing and can add some MB. */
#if defined(PR_SET_THP_DISABLE)
    assert_int_equal(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
#endif
    char path[128];
    in_folder("memory.mtx", path);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        uint64_t seed = 88172645463325252u + c;
        FILE *const f = fopen(path, cases[c].same_file ? "a" : "w");
        assert_non_null(f);
        if (!cases[c].same_file)
            fprintf(f, "%%%%MatrixMarket matrix coordinate %s\n%d %d %d\n", cases[c].banner, cases[c].rows,
                    cases[c].rows, cases[c].entries);
        const char *const value = cases[c].pattern ? "\n" : " 1.5\n";
        for (int k = 0; k < cases[c].entries && !cases[c].same_file; k++) {
            const int i = (int)(next_random(&seed) % (uint64_t)cases[c].rows) + 1;
            const int j = (int)(next_random(&seed) % (uint64_t)cases[c].rows) + 1;
            write_number(f, cases[c].crowded && k % 4 > 0 ? i % 9 + 1 : cases[c].mirrored ? (i > j ? i : j) : i);
            putc_unlocked(' ', f);
            write_number(f, cases[c].mirrored ? (i < j ? i : j) : j);
            fputs(value, f);
        }
        assert_int_equal(fclose(f), 0);
        /* Only the first case with both numbers of threads, the others with one of them, in turns. */
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
            if (c > 0 && t != c % 2)
                continue;
            spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, threads[t]);
            spmv_read_options options;
            spmv_matrix *matrix = NULL;
            spmv_read_options_init(&options, sizeof options);
            options.type = cases[c].type;
            const int64_t said = bytes_said(ctx, path, cases[c].type);
            options.max_bytes = said;
            if (cases[c].crowded) { /* which is detected only when the entries have been read */
                assert_int_equal(spmv_matrix_read(ctx, path, &options, &matrix, NULL, 0), SPMV_ERROR_MEMORY);
                options.max_bytes = 2 * said;
            }
            /* Memory that is already free in the process does not show up, so take the maximum of
             * several runs where the first takes too little. The system counts pages in batches for
             * each core. The last large page of a group and the next group count in full, but exist
             * only briefly or, without large pages as here, not at all. */
            int64_t taken = 0;
            bool too_little = true;
            for (int again = 0; again < 3 && too_little; again++) {
#if defined(M_MMAP_THRESHOLD)
                malloc_trim(0);
#endif
                const int64_t before = process_memory("VmRSS");
                if (before == 0 || !process_memory_reset_peak())
                    skip();
                assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &matrix, NULL, 0));
                taken = process_memory("VmHWM") - before > taken ? process_memory("VmHWM") - before : taken;
                spmv_matrix_destroy(matrix);
                const int64_t beside = cases[c].entries > N ? taken / 2 : taken / 10;
                too_little = !cases[c].crowded && said > taken + beside + (8 << 20);
            }
            if (taken > options.max_bytes + (1 << 20) || too_little)
                fail_msg("%s, %d rows, %s, %d threads: %.1f MB said, %.1f taken", cases[c].banner, cases[c].rows,
                         spmv_type_name(cases[c].type), threads[t], 1e-6 * (double)said, 1e-6 * (double)taken);
            spmv_context_destroy(ctx);
        }
    }
    assert_int_equal(remove(path), 0);
#if defined(PR_SET_THP_DISABLE)
    assert_int_equal(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
#endif
}

/* Numbers of every length and form, compared with the C library, which rounds correctly too. */
static void numbers_as_the_c_library_reads_them(void **state)
{
    (void)state;
    enum { N = 200000 };
    static const char *const formats[] = {"%.17g", "%.16g", "%.9g", "%.3g", "%.25f", "%.12e", "%.0f", "%+.7f"};
    char *const text = malloc(N * 64u);
    double *const want = malloc(N * sizeof *want);
    uint64_t seed = 4711;
    for (int range = 0; range < 3; range++) {
        char *p = text;
        for (int k = 0; k < N; k++) {
            uint64_t bits = next_random(&seed);
            if (range == 0)
                bits = (bits & 0x800fffffffffffffu) | (uint64_t)(1023 - 40 + bits % 80) << 52;
            else if (range == 1)
                bits = (bits & 0x800fffffffffffffu) | (uint64_t)(1023 - 2 + bits % 5) << 52;
            double value;
            memcpy(&value, &bits, sizeof value);
            const char *const format = formats[range == 2 ? k % 2 : k % (int)(sizeof formats / sizeof formats[0])];
            if (!isfinite(value))
                value = 1;
            char *const begin = p;
            p += sprintf(p, format, value);
            want[k] = strtod(begin, NULL);
            *p++ = '\n';
        }
        spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, 2);
        void *values = NULL;
        int64_t n = 0;
        assert_ok(ctx, vector_read_memory(ctx, "n", text, p - text, SPMV_F64, 0, &values, &n));
        assert_int_equal(n, N);
        for (int k = 0; k < N; k++)
            if (memcmp((const double *)values + k, &want[k], sizeof *want) != 0)
                fail_msg("range %d, number %d: %.17g instead of %.17g", range, k, ((const double *)values)[k], want[k]);
        spmv_host_free(values);
        spmv_context_destroy(ctx);
    }
    support_free(want, text);
}

static void a_line_that_never_ends(void **state)
{
    const size_t bytes = (17u << 20);
    char *const text = malloc(bytes);
    memset(text, '%', bytes);
    memcpy(text, GENERAL "1 1 1\n1 1 1\n", sizeof GENERAL + 11);
    spmv_context *ctx = *state;
    spmv_matrix *matrix = NULL;
    assert_fails(ctx, matrix_read_memory(ctx, "l", text, (int64_t)bytes, NULL, &matrix, NULL, 0), SPMV_ERROR_LIMIT,
                 "l:4:1: a line of more than 16777215 bytes");
    free(text);
}

/* ---------------------------------------------------------------- files */

static void files_that_cannot_be_read(void **state)
{
    char path[128];
    spmv_context *ctx = *state;
    spmv_matrix *matrix = NULL;
    assert_fails(ctx, spmv_matrix_read(ctx, in_folder("none.mtx", path), NULL, &matrix, NULL, 0), SPMV_ERROR_OPEN,
                 "none.mtx: cannot open: No such file or directory");
    assert_fails(ctx, spmv_matrix_read(ctx, folder, NULL, &matrix, NULL, 0), SPMV_ERROR_OPEN,
                 "cannot read: it is a directory");
    put_file(in_folder("empty.mtx", path), "", 0);
    assert_fails(ctx, spmv_matrix_read(ctx, path, NULL, &matrix, NULL, 0), SPMV_ERROR_FORMAT,
                 "empty.mtx:1:1: the file is empty");
    unlink(path);
    assert_fails(ctx, spmv_matrix_read(ctx, NULL, NULL, &matrix, NULL, 0), SPMV_ERROR_ARGUMENT, "path");
    assert_fails(ctx, spmv_matrix_read(ctx, path, NULL, NULL, NULL, 0), SPMV_ERROR_ARGUMENT, "matrix");
    spmv_read_options options = support_read_options();
    options.type = SPMV_I32;
    assert_fails(ctx, spmv_matrix_read(ctx, path, &options, &matrix, NULL, 0), SPMV_ERROR_TYPE, "i32");
    options.type = SPMV_F32;
    options.max_bytes = -1;
    assert_fails(ctx, spmv_matrix_read(ctx, path, &options, &matrix, NULL, 0), SPMV_ERROR_ARGUMENT, "max_bytes");
    options.size = 1;
    assert_fails(ctx, spmv_matrix_read(ctx, path, &options, &matrix, NULL, 0), SPMV_ERROR_ARGUMENT,
                 "spmv_read_options_init");
}

/* ---------------------------------------------------------------- the binary form and the cache */

/* A copy counts against max_bytes; mapped memory does not. */
static void binary_forms_keep_to_the_limit(void **state)
{
    char path[128];
    spmv_context *ctx = *state;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    assert_ok(ctx, spmv_matrix_generate(ctx, "banded:1000,4", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    assert_ok(ctx, spmv_matrix_write(ctx, &a, in_folder("a.spmv", path)));
    static const spmv_type types[] = {SPMV_C128, SPMV_C64, SPMV_F32};
    spmv_read_options options = support_read_options();
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        const int64_t bytes = 8 * (a.rows + 1) + (4 + (int64_t)spmv_type_size(types[t])) * a.nnz;
        spmv_matrix *copy = NULL;
        options.type = types[t];
        options.max_bytes = bytes - 1;
        assert_fails(ctx, spmv_matrix_read(ctx, path, &options, &copy, NULL, 0), SPMV_ERROR_MEMORY,
                     "a.spmv: a copy as ");
        assert_null(copy);
        options.max_bytes = bytes;
        assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &copy, NULL, 0));
        spmv_matrix_destroy(copy);
    }
    spmv_matrix *mapped = NULL;
    options.type = SPMV_F64;
    options.max_bytes = 1;
    assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &mapped, NULL, 0));
    assert_true(same_matrix(mapped, matrix));
    spmv_matrix_destroy(mapped);
    spmv_matrix_destroy(matrix);
    unlink(path);
}

/* Returns the path of the only file in a folder. */
static const char *only_file(const char *place, char path[512])
{
    int n = 0;
    DIR *const d = opendir(place);
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        if (e->d_name[0] != '.') {
            snprintf(path, 512, "%s/%.300s", place, e->d_name);
            n++;
        }
    closedir(d);
    assert_int_equal(n, 1);
    return path;
}

static void same_facts(const spmv_read_info *a, const spmv_read_info *b)
{
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->entries, b->entries);
    assert_int_equal(a->duplicates, b->duplicates);
    assert_int_equal(a->array, b->array);
    assert_int_equal(a->field, b->field);
    assert_int_equal(a->symmetry, b->symmetry);
}

/* Records warnings only: the progress of writing the cache starts again at 0. */
static int hear_warnings(const spmv_event *event, void *user)
{
    return event->kind == SPMV_EVENT_WARNING ? hear(event, user) : 0;
}

/* A matrix from the cache has the information of its file and the warnings of its first reading. */
static void a_cache_tells_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int warnings;
    } files[] = {
        /* both triangles, an integer above 2^53 */
        {"%%MatrixMarket matrix coordinate integer symmetric\n2 2 3\n1 2 9007199254740993\n2 1 1\n1 1 3\n", 2},
        {"%MatrixMarket matrix array real hermitian\n2 2\n1\ninf\n0\n", 3},
        {"%%MatrixMarket matrix array integer skew-symmetric\n2 2\n5\n", 0},
        {"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n", 0},
        {"%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n1 1 1\n2 2 1\n", 0},
        {"%%MatrixMarket matrix coordinate complex hermitian\n2 2 1\n2 1 1 2\n", 0},
        {"%%MatrixMarket matrix array real general\n2 2\n1 2\n3 4\n", 1},
    };
    char path[128], place[128], kept[512];
    struct heard heard = {.thread = pthread_self()};
    spmv_context *ctx = support_context_telling(2, hear_warnings, &heard);
    spmv_read_options options = support_read_options();
    in_folder("a.mtx", path);
    in_folder("cache", place);
    for (size_t k = 0; k < sizeof files / sizeof files[0]; k++) {
        struct heard plain;
        spmv_read_info want, info;
        spmv_matrix *matrix = NULL, *cached = NULL;
        put_file(path, files[k].text, strlen(files[k].text));
        options.cache_folder = NULL;
        heard = (struct heard){.thread = heard.thread};
        assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &matrix, &want, sizeof want));
        assert_int_equal(heard.warnings, files[k].warnings);
        plain = heard;
        options.cache_folder = place;
        for (int turn = 0; turn < 2; turn++) {
            heard = (struct heard){.thread = heard.thread};
            assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &cached, &info, sizeof info));
            assert_string_equal(info.form, turn == 0 ? "mtx" : "cache");
            same_facts(&info, &want);
            assert_int_equal(heard.warnings, plain.warnings);
            assert_string_equal(heard.warning, plain.warning);
            assert_true(same_matrix(cached, matrix));
            spmv_matrix_destroy(cached);
        }
        spmv_matrix_destroy(matrix);
        if (files[k].warnings > 0) { /* the callback may cancel at a repeated warning too */
            heard = (struct heard){.thread = heard.thread, .cancel_at = files[k].warnings};
            assert_fails(ctx, spmv_matrix_read(ctx, path, &options, &cached, &info, sizeof info), SPMV_CANCELLED,
                         "a.mtx");
            assert_null(cached);
        }
    }
    unlink(only_file(place, kept)); /* nothing is left of the older contents of the path */
    rmdir(place);
    unlink(path);
    spmv_context_destroy(ctx);
}

/* If the information is damaged or missing, the file is read and cached again. */
static void damaged_facts_are_read_again(void **state)
{
    enum { FACTS = 2112 };
    static const char text[] = "%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n2 1 1\n1 2 7\n";
    char path[128], place[128], kept[512];
    spmv_context *ctx = *state;
    spmv_read_options options;
    spmv_read_info want, info;
    spmv_matrix *matrix = NULL;
    size_t bytes = 0;
    put_file(in_folder("a.mtx", path), text, sizeof text - 1);
    spmv_read_options_init(&options, sizeof options);
    options.cache_folder = in_folder("cache", place);
    assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &matrix, &want, sizeof want));
    spmv_matrix_destroy(matrix);
    char *const whole = get_file(only_file(place, kept), &bytes);
    assert_int_equal(want.duplicates, 1);
    for (size_t at = bytes - FACTS; at < bytes; at += at < bytes - FACTS + 64 || at >= bytes - 8 ? 1 : 31)
        for (int turn = 0; turn < 2; turn++) {
            if (turn == 0) {
                whole[at] = (char)(whole[at] ^ 0x41);
                put_file(kept, whole, bytes);
                whole[at] = (char)(whole[at] ^ 0x41);
            }
            assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &matrix, &info, sizeof info));
            assert_string_equal(info.form, turn == 0 ? "mtx" : "cache");
            same_facts(&info, &want);
            spmv_matrix_destroy(matrix);
        }
    /* the binary form without the information */
    spmv_csr a;
    assert_ok(ctx, spmv_matrix_read(ctx, path, NULL, &matrix, NULL, 0));
    spmv_matrix_view(matrix, &a);
    assert_ok(ctx, spmv_matrix_write(ctx, &a, kept));
    spmv_matrix_destroy(matrix);
    assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &matrix, &info, sizeof info));
    assert_string_equal(info.form, "mtx");
    spmv_matrix_destroy(matrix);
    /* a cached file can be read as an ordinary binary file */
    assert_ok(ctx, spmv_matrix_read(ctx, kept, NULL, &matrix, &info, sizeof info));
    assert_string_equal(info.form, "binary");
    spmv_matrix_destroy(matrix);
    free(whole);
    unlink(kept);
    rmdir(place);
    unlink(path);
}

static void an_empty_cache_folder_is_none(void **state)
{
    (void)state;
    static const char text[] = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n";
    char path[128];
    struct heard heard = {.events = 0};
    spmv_context *ctx = context_that_tells(1, &heard);
    spmv_read_options options;
    spmv_read_info info;
    spmv_read_options_init(&options, sizeof options);
    options.cache_folder = "";
    put_file(in_folder("a.mtx", path), text, sizeof text - 1);
    for (int turn = 0; turn < 2; turn++) {
        spmv_matrix *matrix = NULL;
        heard = (struct heard){.thread = heard.thread};
        assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &matrix, &info, sizeof info));
        assert_string_equal(info.form, "mtx");
        assert_int_equal(heard.warnings, 0);
        spmv_matrix_destroy(matrix);
    }
    unlink(path);
    spmv_context_destroy(ctx);
}

/* ---------------------------------------------------------------- pipes, events */

struct feed {
    int fd;
    const char *path, *text;
    size_t bytes;
};

/* Writes the text in portions of odd size, then closes the pipe. */
static void *feed_pipe(void *argument)
{
    const struct feed *const feed = argument;
    const int fd = feed->path != NULL ? open(feed->path, O_WRONLY) : feed->fd;
    for (size_t done = 0; done < feed->bytes;) {
        const size_t portion = feed->bytes - done < 7777 ? feed->bytes - done : 7777;
        const ssize_t n = write(fd, feed->text + done, portion);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    close(fd);
    return NULL;
}

/* A file, standard input at an offset in a file, standard input from a pipe, and a FIFO give the
 * same matrix. */
static void same_from_everywhere(void **state)
{
    size_t bytes = 0;
    char path[128], fifo[128];
    char *const text = large_text(&bytes);
    put_file(in_folder("large.mtx", path), text, bytes);
    spmv_context *ctx = *state;
    spmv_matrix *want = NULL, *got = NULL;
    spmv_read_info info;
    assert_ok(ctx, spmv_matrix_read(ctx, path, NULL, &want, &info, sizeof info));
    assert_int_equal(info.bytes, bytes);

    const int stdin_kept = dup(STDIN_FILENO);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    char *const shifted = malloc(bytes + 6);
    memcpy(shifted, "before", 6);
    memcpy(shifted + 6, text, bytes);
    assert_int_equal(fwrite(shifted, 1, bytes + 6, f), bytes + 6);
    fflush(f);
    assert_int_equal(lseek(fileno(f), 6, SEEK_SET), 6);
    dup2(fileno(f), STDIN_FILENO);
    assert_ok(ctx, spmv_matrix_read(ctx, "-", NULL, &got, &info, sizeof info));
    assert_true(same_matrix(want, got));
    assert_int_equal(info.bytes, bytes);
    spmv_matrix_destroy(got);
    fclose(f);
    free(shifted);

    int ends[2];
    pthread_t writer;
    assert_int_equal(pipe(ends), 0);
    struct feed feed = {.fd = ends[1], .text = text, .bytes = bytes};
    assert_int_equal(pthread_create(&writer, NULL, feed_pipe, &feed), 0);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    assert_ok(ctx, spmv_matrix_read(ctx, "-", NULL, &got, NULL, 0));
    assert_true(same_matrix(want, got));
    spmv_matrix_destroy(got);
    pthread_join(writer, NULL);
    dup2(stdin_kept, STDIN_FILENO);
    close(stdin_kept);

    assert_int_equal(mkfifo(in_folder("fifo", fifo), 0600), 0);
    feed = (struct feed){.path = fifo, .text = text, .bytes = bytes};
    assert_int_equal(pthread_create(&writer, NULL, feed_pipe, &feed), 0);
    assert_ok(ctx, spmv_matrix_read(ctx, fifo, NULL, &got, NULL, 0));
    assert_true(same_matrix(want, got));
    spmv_matrix_destroy(got);
    pthread_join(writer, NULL);

    unlink(fifo);
    unlink(path);
    spmv_matrix_destroy(want);
    free(text);
}

/* The length of a pipe is unknown, so a wrong number of entries is detected by the memory that they
 * would need, or at the end. */
static void lies_through_a_pipe(void **state)
{
    static const struct {
        const char *text, *sentence;
        spmv_status status;
    } lies[] = {
        {GENERAL "9 9 100000000000000000\n1 1 1\n", "2:1: a 9 x 9 matrix with 100000000000000000 stored entries needs ",
         SPMV_ERROR_MEMORY},
        {ARRAY "1000000 2000000\n1\n", "2:1: a 1000000 x 2000000 matrix with 2000000000000 stored entries needs ",
         SPMV_ERROR_MEMORY},
        {ARRAY "1000 2000\n1 2\n", "4:1: the file ends after 2 of the 2000000 entries declared on line 2",
         SPMV_ERROR_FORMAT},
    };
    char fifo[128];
    spmv_context *ctx = *state;
    for (size_t k = 0; k < sizeof lies / sizeof lies[0]; k++) {
        pthread_t writer;
        spmv_matrix *matrix = NULL;
        assert_int_equal(mkfifo(in_folder("fifo", fifo), 0600), 0);
        struct feed feed = {.path = fifo, .text = lies[k].text, .bytes = strlen(lies[k].text)};
        assert_int_equal(pthread_create(&writer, NULL, feed_pipe, &feed), 0);
        assert_fails(ctx, spmv_matrix_read(ctx, fifo, NULL, &matrix, NULL, 0), lies[k].status, lies[k].sentence);
        pthread_join(writer, NULL);
        unlink(fifo);
    }
}

/* The limit bounds the memory that the entries really take, not only the declared size. */
static void entries_keep_to_the_limit(void **state)
{
    enum { N = 100000 };
    char *const text = malloc(N * 2 + 100);
    char *p = text + sprintf(text, "%s%d 1\n", ARRAY, N);
    for (int k = 0; k < N; k++)
        p += sprintf(p, "1\n");
    spmv_context *ctx = *state;
    spmv_read_options options = support_read_options();
    spmv_matrix *matrix = NULL;
    options.max_bytes = 2400000 - 1; /* 8 bytes for each number, 16 for each row */
    assert_fails(ctx, matrix_read_memory(ctx, "x", text, p - text, &options, &matrix, NULL, 0), SPMV_ERROR_MEMORY,
                 "x:2:1: a 100000 x 1 matrix with 100000 stored entries needs 2400000 bytes");
    options.max_bytes = 2400000; /* the size of the matrix is known after the entries are read */
    assert_fails(ctx, matrix_read_memory(ctx, "x", text, p - text, &options, &matrix, NULL, 0), SPMV_ERROR_MEMORY,
                 "x:2:1: a 100000 x 1 matrix with 100000 stored entries needs 3600000 bytes");
    options.max_bytes = 3600000;
    assert_ok(ctx, matrix_read_memory(ctx, "x", text, p - text, &options, &matrix, NULL, 0));
    spmv_matrix_destroy(matrix);
    free(text);
}

static void shorten(void *path)
{
    assert_int_equal(truncate(path, 17 << 20), 0);
}

static void lengthen(void *path)
{
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    fputs("1 1 1\n", f);
    fclose(f);
}

/* Different contents of the same length: only the time of modification differs. */
static void overwrite(void *path)
{
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void files_that_change(void **state)
{
    (void)state;
    static const struct {
        void (*change)(void *path);
        const char *sentence;
    } changes[] = {
        {shorten, "changed while it was read: it had "},
        {lengthen, "changed while it was read: it had "},
        {overwrite, "was written to while it was read"},
    };
    size_t bytes = 0;
    char path[128];
    char *const text = large_text(&bytes);
    for (size_t k = 0; k < sizeof changes / sizeof changes[0]; k++) {
        put_file(in_folder("changing.mtx", path), text, bytes);
        struct heard heard = {.at_first = changes[k].change, .thing = path};
        spmv_context *ctx = context_that_tells(2, &heard);
        spmv_matrix *matrix = NULL;
        assert_fails(ctx, spmv_matrix_read(ctx, path, NULL, &matrix, NULL, 0), SPMV_ERROR_CHANGED, changes[k].sentence);
        assert_null(matrix);
        spmv_context_destroy(ctx);
    }
    unlink(path);
    free(text);
}

static void progress_and_cancelling(void **state)
{
    (void)state;
    size_t bytes = 0;
    char path[128];
    char *const text = large_text(&bytes);
    put_file(in_folder("large.mtx", path), text, bytes);
    free(text);
    struct heard heard = {.events = 0};
    spmv_context *ctx = context_that_tells(3, &heard);
    spmv_matrix *matrix = NULL;
    assert_ok(ctx, spmv_matrix_read(ctx, path, NULL, &matrix, NULL, 0));
    assert_true(heard.progress >= 2);
    assert_int_equal(heard.done, bytes);
    assert_int_equal(heard.total, bytes);
    spmv_matrix_destroy(matrix);
    spmv_context_destroy(ctx);
    for (int at = 1; at <= heard.events; at++) {
        struct heard stopped = {.cancel_at = at};
        ctx = context_that_tells(3, &stopped);
        assert_fails(ctx, spmv_matrix_read(ctx, path, NULL, &matrix, NULL, 0), SPMV_CANCELLED, "cancelled");
        assert_null(matrix);
        spmv_context_destroy(ctx);
    }
    unlink(path);

    /* A warning can cancel too, even one after the matrix is complete. */
    const char both[] = SYMMETRIC "2 2 2\n1 2 3\n2 1 3\n";
    heard = (struct heard){.events = 0};
    ctx = context_that_tells(1, &heard);
    assert_ok(ctx, matrix_read_memory(ctx, "b", both, sizeof both - 1, NULL, &matrix, NULL, 0));
    assert_string_equal(heard.warning,
                        "b: 1 entry of a symmetric file repeats the position of another, itself or mirrored; "
                        "the values were added");
    spmv_matrix_destroy(matrix);
    spmv_context_destroy(ctx);
    struct heard stopped = {.cancel_at = heard.events};
    ctx = context_that_tells(1, &stopped);
    assert_fails(ctx, matrix_read_memory(ctx, "b", both, sizeof both - 1, NULL, &matrix, NULL, 0), SPMV_CANCELLED,
                 "cancelled");
    assert_null(matrix);
    spmv_context_destroy(ctx);
}

SUPPORT_MAIN(cmocka_unit_test(reads), cmocka_unit_test(not_a_number_is_read),
             cmocka_unit_test(rounded_integers_are_told), with_omp(numbers_are_rounded_correctly, 1),
             with_omp(other_kinds_are_named, 2), with_omp(another_kind_in_one_line, 2),
             with_omp(information_is_filled, 3), with_teams(refuses), with_omp(refuses_too_large_for_f32, 1),
             with_omp(every_prefix_is_refused_or_equal, 2), cmocka_unit_test(same_for_any_team),
             cmocka_unit_test(same_sentence_for_any_team), with_omp(large_arrays, 3),
             cmocka_unit_test(shapes_of_buckets), cmocka_unit_test(order_and_where_it_ends),
             in_a_folder(memory_as_said), cmocka_unit_test(numbers_as_the_c_library_reads_them),
             with_omp(a_line_that_never_ends, 2), with_folder(files_that_cannot_be_read, 1),
             with_folder(binary_forms_keep_to_the_limit, 1), in_a_folder(a_cache_tells_the_same),
             with_folder(damaged_facts_are_read_again, 1), in_a_folder(an_empty_cache_folder_is_none),
             with_folder(same_from_everywhere, 3), with_folder(lies_through_a_pipe, 2),
             with_omp(entries_keep_to_the_limit, 2), in_a_folder(files_that_change),
             in_a_folder(progress_and_cancelling))
