/* Files of other programs. Those in tests/data/exchange were written by SciPy (.npz, .npy, packed.mat, plain.mat,
 * collection.mat), by h5py (v73.mat) and byte by byte from the description of the format (big_endian.mat, .petsc); they
 * all hold the matrix below.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>

#include "formats/io/exchange/fortran.h"
#include "formats/io/packed/deflate.h"
#include "tests/support/support_io.h"

enum { ROWS = 6, COLS = 4 };
static const double expected[ROWS * COLS] = {1.5, 0, 0, 0, 0, 2, 0, 1e22, 0, 0, 0, 4.94065645841246544e-324,
                                             -3,  0, 4, 0, 0, 0, 0, 0,    7, 0, 0, -0.1};

static const char *const files[] = {"csr.npz",   "csc_stored.npz", "coo.npz",    "bsr.npz",        "dia.npz",
                                    "dense.npy", "plain.mat",      "packed.mat", "collection.mat", "big_endian.mat",
                                    "v73.mat",   "wide.petsc",     "dense.petsc"};
enum { FILES = sizeof files / sizeof files[0] };

static char *get_data(const char *name, size_t *bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/data/exchange/%s", support_source_dir(), name);
    return get_file(path, bytes);
}

static spmv_status read_bytes(spmv_context *ctx, const char *bytes, size_t size, spmv_matrix **matrix)
{
    spmv_read_options options;
    spmv_read_options_init(&options, sizeof options);
    options.max_bytes = 1 << 20;
    return matrix_read_memory(ctx, "file", bytes, (int64_t)size, &options, matrix, NULL, 0);
}

/* Whether this machine lacks the library that the file needs. */
static bool lacks_library(spmv_status st)
{
    return st == SPMV_ERROR_UNSUPPORTED;
}

static void assert_expected(const spmv_matrix *matrix, const char *name)
{
    double dense[ROWS * COLS] = {0};
    spmv_csr a;
    spmv_matrix_view(matrix, &a);
    assert_true(a.rows == ROWS && a.cols == COLS && a.type == SPMV_F64);
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t k = ((const int64_t *)a.row_ptr)[i]; k < ((const int64_t *)a.row_ptr)[i + 1]; k++)
            dense[i * COLS + a.col[k]] = ((const double *)a.val)[k];
    if (memcmp(dense, expected, sizeof dense) != 0)
        fail_msg("%s: another matrix", name);
}

static void files_of_others(void **state)
{
    spmv_context *ctx = *state;
    for (size_t f = 0; f < FILES; f++) {
        size_t bytes = 0;
        spmv_matrix *matrix = NULL;
        char *const file = get_data(files[f], &bytes);
        const spmv_status st = read_bytes(ctx, file, bytes, &matrix);
        if (!lacks_library(st)) {
            if (st != SPMV_OK)
                fail_msg("%s: %s", files[f], spmv_last_error(ctx));
            assert_expected(matrix, files[f]);
        }
        spmv_matrix_destroy(matrix);
        free(file);
    }
}

/* Every byte changed in some ways, and every length: an error or a valid matrix, never a crash. */
static void damaged_files(void **state)
{
    spmv_context *ctx = *state;
    for (size_t f = 0; f < FILES; f++) {
        size_t bytes = 0, refused = 0;
        char *const file = get_data(files[f], &bytes);
        if (strcmp(files[f], "v73.mat") == 0) { /* most of its bytes are read by another library */
            free(file);
            continue;
        }
        for (size_t at = 0; at < 4 * bytes; at++) {
            static const char changes[] = {1, 64, -1};
            char *const copy = malloc(bytes);
            spmv_matrix *matrix = NULL;
            spmv_csr a;
            assert_non_null(copy);
            memcpy(copy, file, bytes);
            if (at < 3 * bytes)
                copy[at / 3] = (char)(copy[at / 3] ^ changes[at % 3]);
            const spmv_status st = read_bytes(ctx, copy, at < 3 * bytes ? bytes : at - 3 * bytes, &matrix);
            const int class = spmv_status_class(st);
            if (st != SPMV_OK && class != 2 && class != 3 && class != 4 && class != 5)
                fail_msg("%s, %zu: %s", files[f], at, spmv_last_error(ctx));
            if (st == SPMV_OK) {
                spmv_matrix_view(matrix, &a);
                assert_ok(ctx, spmv_matrix_check(ctx, &a));
            }
            refused += st != SPMV_OK;
            spmv_matrix_destroy(matrix);
            free(copy);
        }
        if (refused < bytes)
            fail_msg("%s: %zu of %zu refused", files[f], refused, 4 * bytes);
        free(file);
    }
}

/* ---------------------------------------------------------------- Harwell-Boeing */

static void formats_of_fortran(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int fields, width, last_at;
        bool integers;
    } good[] = {
        {"(26I3)", 26, 3, 75, true},         {" ( 5i6 ) ", 5, 6, 24, true},   {"(1P,4D20.12)", 4, 20, 60, false},
        {"(1P4E20.12)", 4, 20, 60, false},   {"(3E26.18)", 3, 26, 52, false}, {"(10(1X,I7))", 10, 7, 73, true},
        {"(2(F10.3,2X))", 2, 10, 12, false}, {"(E25.16E3)", 1, 25, 0, false}, {"(1P,2G15.7,0P,F8.2)", 3, 8, 30, false},
        {"(I8.8)", 1, 8, 0, true},           {"(ES20.10)", 1, 20, 0, false}};
    static const char *const bad[] = {
        "",       "(",          "()",     "(26)",         "(I)",        "(I0)",    "(26A3)",         "(0I3)",
        "26I3",   "(26I3",      "(5I3)x", "(((((I3)))))", "(I3,E10.2)", "(300I3)", "(9999999999I3)", "(2X)",
        "(E10.)", "(9000X,I3)", "(-I3)",  "(2())"};
    static struct fortran_format format;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (!fortran_format_parse(good[i].text, good[i].text + strlen(good[i].text), &format))
            fail_msg("%s is refused", good[i].text);
        const struct fortran_field *const last = &format.field[format.fields - 1];
        if (format.fields != good[i].fields || format.integers != good[i].integers || last->width != good[i].width ||
            last->at != good[i].last_at)
            fail_msg("%s: %d fields, the last of %d at %d", good[i].text, format.fields, last->width, last->at);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (fortran_format_parse(bad[i], bad[i] + strlen(bad[i]), &format))
            fail_msg("%s is accepted", bad[i]);
}

static void numbers_of_fortran(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int digits, scale;
        const char *number;
    } numbers[] = {{"1.5", 2, 0, "1.5"},         {" 1.0-100", 2, 0, "1.0E-100"}, {"1.0D+2", 2, 1, "1.0E+2"},
                   {"- 1 .5d2", 2, 0, "-1.5E2"}, {"12345", 2, 0, "12345E-2"},    {"12345E+2", 2, 0, "12345E0"},
                   {"1.5", 2, 1, "1.5E-1"},      {"15", 1, 1, "15E-2"},          {"-.5", 3, 0, "-.5"},
                   {"inf", 3, 0, "inf"},         {"1.5E", 0, 0, "1.5E"},         {"   ", 0, 0, ""}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct fortran_field field = {0, 20, numbers[i].digits, numbers[i].scale};
        char text[FORTRAN_NUMBER + 16];
        const int n = fortran_number(numbers[i].text, numbers[i].text + strlen(numbers[i].text), &field, text);
        if (n != (int)strlen(text) || strcmp(text, numbers[i].number) != 0)
            fail_msg("%s is %s", numbers[i].text, text);
    }
}

/* 3 x 3: numbers without blanks between them, of several kinds; right-hand sides. */
#define TITLE "title                                                                   KEY     \n"
#define SIZES "             4             1             1             1             1\n"
#define NO_SIDES "             3             1             1             1             0\n"
#define FORMATS "(4I3)           (5I3)           (1P,5D10.2)         (3F4.1)\n"
#define STRUCTURE "  1  3  4  6\n  1  2  2  3  1\n"
#define NUMBERS "  2.00D+00-1.00D+00  1.00-100  3.00d+01     -0.0E0\n"
#define BOEING(type, sides, tail)                                                                                      \
    TITLE sides type "           3             3             5             0\n" FORMATS tail

static void boeing_files(void **state)
{
    static const struct {
        const char *text;
        spmv_status status;
        const char *said; /* of an error */
        double values[9];
    } cases[] = {
        {BOEING("RUA", NO_SIDES, STRUCTURE NUMBERS), SPMV_OK, NULL, {2, 0, -0.0, -1, 1e-100, 0, 0, 0, 30}},
        {BOEING("rua", SIZES, "FGX            1             0\n" STRUCTURE NUMBERS " 1.0 2.0 3.0\n"),
         SPMV_OK,
         NULL,
         {2, 0, -0.0, -1, 1e-100, 0, 0, 0, 30}},
        {BOEING("PUA", NO_SIDES, STRUCTURE), SPMV_OK, NULL, {1, 0, 1, 1, 1, 0, 0, 0, 1}},
        {BOEING("RSA", NO_SIDES, "  1  3  4  6\n  1  2  2  3  1\n" NUMBERS),
         SPMV_OK,
         NULL,
         {2, -1, -0.0, -1, 1e-100, 0, -0.0, 0, 30}},
        /* fields narrower than the format's, as SciPy writes them */
        {BOEING("RUA", NO_SIDES, STRUCTURE " 2.0D+00 -1.0D+00 3.0D+00 7.0D+00 1.0D+00\n"),
         SPMV_OK,
         NULL,
         {2, 0, 1, -1, 3, 0, 0, 0, 7}},
        {BOEING("RZA", NO_SIDES, STRUCTURE NUMBERS), SPMV_ERROR_FORMAT, "diagonal of a skew", {0}},
        {BOEING("RSE", NO_SIDES, STRUCTURE NUMBERS), SPMV_ERROR_UNSUPPORTED, "not assembled", {0}},
        {BOEING("QSA", NO_SIDES, STRUCTURE NUMBERS), SPMV_ERROR_UNSUPPORTED, "another file", {0}},
        {BOEING("RUA", NO_SIDES, "  1  3  4  6\n  1  2  2  4  1\n" NUMBERS),
         SPMV_ERROR_FORMAT,
         ":6:10: indices 4, \"4\": not an integer from 1 to 3",
         {0}},
        {BOEING("RUA", NO_SIDES, "  1  4  3  6\n  1  2  2  3  1\n" NUMBERS),
         SPMV_ERROR_FORMAT,
         ":5:7: pointers 3, \"3\": below the one before",
         {0}},
        {BOEING("RUA", NO_SIDES, "  2  3  4  6\n  1  2  2  3  1\n" NUMBERS),
         SPMV_ERROR_FORMAT,
         "the first must be 1",
         {0}},
        {BOEING("RUA", NO_SIDES, "  1  3  4  5\n  1  2  2  3  1\n" NUMBERS),
         SPMV_ERROR_FORMAT,
         "the last must be",
         {0}},
        {BOEING("RUA", NO_SIDES, "  1  3  4  6\n  1  1  2  3  1\n" NUMBERS),
         SPMV_ERROR_FORMAT,
         "position of another",
         {0}},
        {BOEING("RUA", NO_SIDES, STRUCTURE "  2.00D+00-1.00D+00  1.00-1x0  3.00d+01     -0.0E0\n"),
         SPMV_ERROR_FORMAT,
         ":7:21: values 3, \"1.00-1x0\": not a number",
         {0}},
        {BOEING("RUA", NO_SIDES, STRUCTURE "  2.00D+00-1.00D+00  1.00D+999 3.00d+01     -0.0E0\n"),
         SPMV_ERROR_LIMIT,
         "values 3, \"1.00D+999\": too large",
         {0}},
        {BOEING("RUA", NO_SIDES, STRUCTURE "  2.00D+00-1.00D+00\n"), SPMV_ERROR_FORMAT, "the line ends before it", {0}},
        {BOEING("RUA", NO_SIDES, "  1  3  4  6\n"), SPMV_ERROR_FORMAT, "the file ends here", {0}},
        {TITLE NO_SIDES "RUA    9000000000    9000000000             5             0\n" FORMATS STRUCTURE NUMBERS,
         SPMV_ERROR_LIMIT,
         "columns",
         {0}},
        {TITLE NO_SIDES "RUA    1000000000    1000000000             5             0\n" FORMATS STRUCTURE NUMBERS,
         SPMV_ERROR_FORMAT,
         "than the file can hold",
         {0}},
        {TITLE NO_SIDES
         "RUA             3             3             5             0\n(4I3)           (5A3)\n" STRUCTURE,
         SPMV_ERROR_FORMAT,
         "is no format",
         {0}},
        {TITLE "x\nRUA             3             3             5             0\n" FORMATS,
         SPMV_ERROR_FORMAT,
         ":2:1: ",
         {0}},
    };
    spmv_context *ctx = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        spmv_matrix *matrix = NULL;
        const spmv_status st = read_bytes(ctx, cases[i].text, strlen(cases[i].text), &matrix);
        if (st != cases[i].status || (st != SPMV_OK && strstr(spmv_last_error(ctx), cases[i].said) == NULL))
            fail_msg("case %zu: %s, %s", i, spmv_status_name(st), spmv_last_error(ctx));
        if (st == SPMV_OK) {
            double dense[9] = {0};
            spmv_csr a;
            spmv_matrix_view(matrix, &a);
            for (int64_t r = 0; r < a.rows; r++)
                for (int64_t k = ((const int64_t *)a.row_ptr)[r]; k < ((const int64_t *)a.row_ptr)[r + 1]; k++)
                    dense[3 * r + a.col[k]] = a.val != NULL ? ((const double *)a.val)[k] : 1;
            if (memcmp(dense, cases[i].values, sizeof dense) != 0)
                fail_msg("case %zu: another matrix", i);
        }
        spmv_matrix_destroy(matrix);
    }
}

static void right_hand_sides(void **state)
{
    static const char text[] =
        BOEING("RUA", SIZES,
               "FGX            2             0\n" STRUCTURE NUMBERS " 1.0 2.0 3.0\n 4.0 5.0 6.0\n"
               " 7.0 8.0 9.0\n10.011.012.0\n 1.5 2.5 3.5\n 4.5 5.5  65\n");
    static const struct {
        const char *member;
        double values[6];
    } cases[] = {{"", {1, 4, 2, 5, 3, 6}},
                 {":rhs", {1, 4, 2, 5, 3, 6}},
                 {":guess", {7, 10, 8, 11, 9, 12}},
                 {":exact", {1.5, 4.5, 2.5, 5.5, 3.5, 6.5}}};
    spmv_context *ctx = *state;
    char path[128], named[160];
    put_file(in_folder("a.rua", path), text, strlen(text));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        void *values = NULL;
        int64_t n = 0, k = 0;
        snprintf(named, sizeof named, "%s%s", path, cases[i].member);
        assert_ok(ctx, spmv_vectors_read(ctx, named, SPMV_F64, &values, &n, &k));
        assert_true(n == 3 && k == 2);
        assert_memory_equal(values, cases[i].values, sizeof cases[i].values);
        spmv_host_free(values);
    }
    void *values = NULL;
    int64_t n = 0;
    snprintf(named, sizeof named, "%s:other", path);
    assert_int_equal(spmv_vector_read(ctx, named, SPMV_F64, &values, &n), SPMV_ERROR_OPEN);
    unlink(path);
}

/* ---------------------------------------------------------------- round trips */

enum { N = 300, NNZ = 5 * N };
static int64_t row_ptr[N + 1];
static int32_t col[NNZ];
static double values[2 * NNZ];
static float singles[2 * NNZ];

/* Numbers of every exponent, -0, and (finite false) infinities and NaN, symmetric as asked. */
static spmv_csr make_matrix(spmv_type type, bool pattern, bool finite)
{
    uint64_t random = 7;
    for (int64_t k = 0; k < 2 * NNZ; k++) {
        const int exponent = (int)(support_random(&random) % 2098) - 1074;
        values[k] = ldexp(support_uniform(&random) - 0.5, exponent);
        singles[k] = (float)ldexp(support_uniform(&random) - 0.5, exponent / 8);
    }
    values[0] = singles[0] = -0.0F;
    values[1] = DBL_MAX;
    singles[1] = FLT_MAX;
    values[3] = finite ? 1 : (double)NAN;
    singles[3] = finite ? 1 : INFINITY;
    for (int64_t i = 0; i < N; i++) {
        row_ptr[i + 1] = 5 * (i + 1);
        for (int64_t k = 0; k < 5; k++)
            col[5 * i + k] = (int32_t)(i % 50 + 53 * k);
    }
    spmv_csr a =
        support_view(N, 500, NNZ, row_ptr, col, type_part(type) == SPMV_F32 ? (void *)singles : (void *)values, type);
    if (pattern)
        a.val = NULL;
    return a;
}

static void assert_same_bits(const spmv_csr *a, const spmv_matrix *matrix, const char *name)
{
    spmv_csr b;
    spmv_matrix_view(matrix, &b);
    if (b.rows != a->rows || b.cols != a->cols || b.nnz != a->nnz || (b.val == NULL) != (a->val == NULL) ||
        memcmp(b.row_ptr, a->row_ptr, (size_t)(a->rows + 1) * sizeof(int64_t)) != 0 ||
        memcmp(b.col, a->col, (size_t)a->nnz * sizeof(int32_t)) != 0 ||
        (a->val != NULL && memcmp(b.val, a->val, (size_t)a->nnz * spmv_type_size(a->type)) != 0))
        fail_msg("%s: another matrix", name);
}

static void back_to_the_same_bits(void **state)
{
    static const spmv_type types[] = {SPMV_F64, SPMV_F32, SPMV_C128, SPMV_C64};
    static const char *const names[] = {"a.rb", "a.HB", "a.npz", "a.mat", "a.petsc"};
    spmv_context *ctx = *state;
    for (size_t t = 0; t < 5; t++)
        for (size_t f = 0; f < sizeof names / sizeof names[0]; f++) {
            const bool text = f < 2, pattern = t == 4;
            const spmv_csr a = make_matrix(types[t % 4], pattern, text);
            char path[128];
            spmv_matrix *matrix = NULL;
            spmv_read_options options;
            spmv_read_info info;
            if (pattern && strcmp(names[f], "a.petsc") == 0)
                continue; /* it has no patterns */
            spmv_read_options_init(&options, sizeof options);
            options.type = a.type;
            assert_ok(ctx, spmv_matrix_write(ctx, &a, in_folder(names[f], path)));
            assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &matrix, &info, sizeof info));
            assert_same_bits(&a, matrix, names[f]);
            assert_int_equal(info.field, pattern                   ? SPMV_FIELD_PATTERN
                                         : type_is_complex(a.type) ? SPMV_FIELD_COMPLEX
                                                                   : SPMV_FIELD_REAL);
            spmv_matrix_destroy(matrix);
            unlink(path);
        }
}

/* The lower triangle of a text; a format without infinities refuses them. */
static void symmetric_and_refused(void **state)
{
    static const int64_t rows[] = {0, 2, 4};
    static const int32_t columns[] = {0, 1, 0, 1};
    static const double val[] = {0, -2, 2, 0}, infinite[] = {0, (double)INFINITY, 2, 0};
    spmv_context *ctx = *state;
    spmv_csr a = support_view(2, 2, 4, rows, columns, val, SPMV_F64);
    spmv_matrix *matrix = NULL;
    spmv_read_info info;
    spmv_write_options options;
    char path[128];
    spmv_write_options_init(&options, sizeof options);
    options.symmetry = SPMV_SYMMETRY_SKEW;
    assert_ok(ctx, spmv_matrix_write_as(ctx, &a, in_folder("a.rb", path), &options));
    assert_ok(ctx, spmv_matrix_read(ctx, path, NULL, &matrix, &info, sizeof info));
    assert_int_equal(info.symmetry, SPMV_SYMMETRY_SKEW);
    assert_int_equal(info.entries, 3);
    assert_string_equal(info.form, "rb");
    assert_same_bits(&a, matrix, "a.rb");
    spmv_matrix_destroy(matrix);
    unlink(path);
    a.val = infinite;
    assert_int_equal(spmv_matrix_write(ctx, &a, path), SPMV_ERROR_UNSUPPORTED);
    assert_int_equal(spmv_matrix_write(ctx, &a, in_folder("a.npy", path)), SPMV_ERROR_ARGUMENT);
}

static void vectors_come_back(void **state)
{
    static const char *const names[] = {"x.npy", "x.mat", "x.petsc", "x.npz"};
    static const double numbers[8] = {1.5, -0.0, 1e300, 4.94065645841246544e-324, (double)NAN, 5, 6, -7};
    spmv_context *ctx = *state;
    for (size_t f = 0; f < sizeof names / sizeof names[0]; f++)
        for (int complex = 0; complex < 2; complex++)
            for (int64_t k = 1; k < 3; k++) {
                char path[128];
                void *back = NULL;
                int64_t n = 0, found = 0;
                const spmv_type type = complex ? SPMV_C128 : SPMV_F64;
                const int64_t rows = 8 / (1 + complex) / k;
                const spmv_status st = spmv_vectors_write(ctx, in_folder(names[f], path), type, numbers, rows, k, NULL);
                assert_ok(ctx, st);
                assert_ok(ctx, spmv_vectors_read(ctx, path, type, &back, &n, &found));
                assert_true(n == rows && found == k);
                assert_memory_equal(back, numbers, sizeof numbers);
                spmv_host_free(back);
                unlink(path);
            }
}

static void checksums(void **state)
{
    (void)state;
    assert_int_equal(crc32_of(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(crc32_of(crc32_of(0, "12345678901", 11), "2345678", 7), crc32_of(0, "123456789012345678", 18));
}

SUPPORT_MAIN(with_omp(files_of_others, 2), with_omp(damaged_files, 1), cmocka_unit_test(formats_of_fortran),
             cmocka_unit_test(numbers_of_fortran), with_omp(boeing_files, 2), with_folder(right_hand_sides, 2),
             with_folder(back_to_the_same_bits, 3), with_folder(symmetric_and_refused, 1),
             with_folder(vectors_come_back, 1), cmocka_unit_test(checksums))
