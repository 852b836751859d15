/* Complex matrices and vectors in files: types, writing and reading back the same bits, the binary
 * form and the cache, hermitian files against their definition, and statistics.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <math.h>

#include "core/reals.h"
#include "tests/support/support_vector.h"

#define COMPLEX "%%MatrixMarket matrix coordinate complex general\n"
#define REAL "%%MatrixMarket matrix coordinate real general\n"

static const spmv_type types[] = {SPMV_F64, SPMV_F32, SPMV_C128, SPMV_C64};
enum { TYPES = 4 };

static spmv_status read_as(spmv_context *ctx, const char *text, spmv_type type, spmv_matrix **matrix,
                           spmv_read_info *info)
{
    spmv_read_options options = support_read_options();
    assert_int_equal(options.type, SPMV_TYPE_DEFAULT);
    options.type = type;
    return matrix_read_memory(ctx, "m.mtx", text, (int64_t)strlen(text), &options, matrix, info,
                              info != NULL ? sizeof *info : 0);
}

/* ---------------------------------------------------------------- types */

static void the_file_decides_by_default(void **state)
{
    static const struct {
        const char *text;
        spmv_field field;
        spmv_symmetry symmetry;
        spmv_type type;
    } files[] = {
        {COMPLEX "1 1 1\n1 1 1 2\n", SPMV_FIELD_COMPLEX, SPMV_SYMMETRY_GENERAL, SPMV_C128},
        {"%%MatrixMarket matrix array complex hermitian\n1 1\n1 0\n", SPMV_FIELD_COMPLEX, SPMV_SYMMETRY_HERMITIAN,
         SPMV_C128},
        {REAL "1 1 1\n1 1 1\n", SPMV_FIELD_REAL, SPMV_SYMMETRY_GENERAL, SPMV_F64},
        {"%%MatrixMarket matrix coordinate pattern symmetric\n1 1 1\n1 1\n", SPMV_FIELD_PATTERN,
         SPMV_SYMMETRY_SYMMETRIC, SPMV_F64},
    };
    spmv_context *ctx = *state;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        spmv_matrix *matrix = NULL;
        spmv_read_info info;
        spmv_csr a;
        assert_ok(ctx, read_as(ctx, files[f].text, SPMV_TYPE_DEFAULT, &matrix, &info));
        spmv_matrix_view(matrix, &a);
        assert_int_equal(a.type, files[f].type);
        assert_int_equal(info.field, files[f].field);
        assert_int_equal(info.symmetry, files[f].symmetry);
        spmv_matrix_destroy(matrix);
    }
}

static void check_values(spmv_context *ctx, const char *text, spmv_type type, const void *expected, size_t bytes)
{
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    assert_ok(ctx, read_as(ctx, text, type, &matrix, NULL));
    spmv_matrix_view(matrix, &a);
    assert_memory_equal(a.val, expected, bytes);
    spmv_matrix_destroy(matrix);
}

/* Each part is rounded once, to the requested type: never to f32 via f64. */
static void parts_are_rounded_once(void **state)
{
    const char text[] = COMPLEX "1 2 2\n1 1 1.00000005960464477539062500000000000000000001 0.1\n"
                                "1 2 1.000000059604644775390625 -9007199254740993\n";
    static const spmv_c64 narrow[] = {{0x1.000002p0f, 0x1.99999ap-4f}, {0x1p0f, -0x1p53f}};
    static const spmv_c128 wide[] = {{0x1.000001p0, 0x1.999999999999ap-4}, {0x1.000001p0, -0x1p53}};
    spmv_context *ctx = *state;
    spmv_matrix *matrix = NULL;
    check_values(ctx, text, SPMV_C64, narrow, sizeof narrow);
    check_values(ctx, text, SPMV_C128, wide, sizeof wide);
    assert_fails(ctx, read_as(ctx, COMPLEX "1 1 1\n1 1 0 1e39\n", SPMV_C64, &matrix, NULL), SPMV_ERROR_LIMIT,
                 "m.mtx:3:7: \"1e39\" is too large for f32");
}

static void real_files_as_complex(void **state)
{
    static const struct {
        const char *text, *dense;
    } files[] = {
        {REAL "2 2 3\n1 1 -0\n2 1 2.5\n2 1 1\n", "-0+0i .; 3.5+0i ."},
        {"%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 5\n", ". -5+0i; 5+0i ."},
        {"%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n0\n", "1+0i 2+0i; 2+0i ."},
        {"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1\n", ". .; x ."},
        {REAL "0 3 0\n", ""},
    };
    spmv_context *ctx = *state;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++)
        for (int t = 2; t < TYPES; t++) {
            char dense[256];
            spmv_matrix *matrix = NULL;
            spmv_csr a;
            assert_ok(ctx, read_as(ctx, files[f].text, types[t], &matrix, NULL));
            spmv_matrix_view(matrix, &a);
            assert_int_equal(a.type, types[t]);
            assert_string_equal(as_dense(matrix, dense, sizeof dense), files[f].dense);
            spmv_matrix_destroy(matrix);
        }
}

static void complex_files_are_never_real(void **state)
{
    (void)state;
    spmv_context *ctx = support_context_on(SPMV_BACKEND_REF, 0);
    spmv_matrix *matrix = NULL;
    assert_fails(ctx, read_as(ctx, COMPLEX "1 1 1\n1 1 1 0\n", SPMV_F64, &matrix, NULL), SPMV_ERROR_TYPE,
                 "m.mtx:1:34: the numbers are complex: they can be read as c128 or c64, not as f64");
    assert_null(matrix);
    assert_fails(ctx, read_as(ctx, "%%MatrixMarket  matrix array COMPLEX general\n1 1\n1 0\n", SPMV_F32, &matrix, NULL),
                 SPMV_ERROR_TYPE, "m.mtx:1:30: the numbers are complex: they can be read as c128 or c64, not as f32");
    assert_fails(ctx, read_as(ctx, REAL "1 1 0\n", SPMV_I32, &matrix, NULL), SPMV_ERROR_TYPE, "not as i32");
    assert_fails(ctx, read_as(ctx, REAL "1 1 0\n", SPMV_AFFINE_F64, &matrix, NULL), SPMV_ERROR_TYPE, "affine");
    spmv_context_destroy(ctx);
}

/* ---------------------------------------------------------------- large files */

/* Random entries, some at the same place; hermitian: in the lower half, with a real diagonal. Parts
 * are multiples of 1/8, so every sum is exact. */
struct lines {
    int64_t rows, entries;
    int32_t *row, *col;
    spmv_c128 *val;
    char *text;
    int64_t bytes;
};

static double eighth(uint64_t *seed)
{
    return ((double)(support_random(seed) % 65) - 32) / 8;
}

static struct lines make_lines(int64_t rows, int64_t entries, const char *symmetry, bool lower)
{
    struct lines l = {.rows = rows, .entries = entries};
    uint64_t seed = (uint64_t)(rows + entries);
    l.row = calloc((size_t)entries, sizeof *l.row);
    l.col = calloc((size_t)entries, sizeof *l.col);
    l.val = calloc((size_t)entries, sizeof *l.val);
    l.text = malloc((size_t)entries * 48 + 128);
    assert_true(l.row != NULL && l.col != NULL && l.val != NULL && l.text != NULL);
    l.bytes = sprintf(l.text, "%%%%MatrixMarket matrix coordinate complex %s\n%lld %lld %lld\n", symmetry,
                      (long long)rows, (long long)rows, (long long)entries);
    for (int64_t k = 0; k < entries; k++) {
        int32_t i = (int32_t)(support_random(&seed) % (uint64_t)rows),
                j = (int32_t)(support_random(&seed) % (uint64_t)rows);
        if (lower && i < j) {
            const int32_t other = i;
            i = j;
            j = other;
        }
        l.row[k] = i;
        l.col[k] = j;
        l.val[k] = (spmv_c128){eighth(&seed), lower && i == j ? 0 : eighth(&seed)};
        l.bytes += sprintf(l.text + l.bytes, "%d %d %.17g %.17g\n", (int)i + 1, (int)j + 1, l.val[k].re, l.val[k].im);
    }
    return l;
}

static void free_lines(struct lines *l)
{
    support_free(l->row, l->col, l->val, l->text);
}

/* A file gives the matrix of its entries for any number of threads; duplicate entries are added. */
static void large_files_are_their_entries(void **state)
{
    (void)state;
    struct lines l = make_lines(700, 150000, "general", false);
    int64_t *const row = calloc((size_t)l.entries, sizeof *row);
    for (int64_t k = 0; k < l.entries; k++)
        row[k] = l.row[k];
    for (int t = 0; t < TEAMS; t++) {
        spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, teams[t]);
        spmv_matrix *want = NULL, *got = NULL;
        spmv_read_info info;
        int64_t duplicates = 0;
        assert_ok(ctx, spmv_matrix_from_coo(ctx, l.rows, l.rows, l.entries, row, l.col, l.val, SPMV_C128, &want,
                                            &duplicates));
        assert_ok(ctx, matrix_read_memory(ctx, "l", l.text, l.bytes, NULL, &got, &info, sizeof info));
        assert_true(duplicates > 0 && info.duplicates == duplicates);
        assert_true(same_matrix(got, want));
        spmv_matrix_destroy(want);
        spmv_matrix_destroy(got);
        spmv_context_destroy(ctx);
    }
    free(row);
    free_lines(&l);
}

/* y = A x for the hermitian A given by its lower half, by definition: a_ji is the conjugate of
 * a_ij. */
static void hermitian_products(void **state)
{
    (void)state;
    struct lines l = make_lines(301, 4000, "hermitian", true);
    spmv_c128 *const x = calloc((size_t)l.rows, sizeof *x), *const y = calloc((size_t)l.rows, sizeof *y),
                     *const want = calloc((size_t)l.rows, sizeof *want);
    uint64_t seed = 4;
    for (int64_t i = 0; i < l.rows; i++)
        x[i] = (spmv_c128){eighth(&seed), eighth(&seed)};
    for (int64_t k = 0; k < l.entries; k++) {
        const spmv_c128 v = l.val[k], xj = x[l.col[k]], xi = x[l.row[k]];
        want[l.row[k]].re += v.re * xj.re - v.im * xj.im;
        want[l.row[k]].im += v.re * xj.im + v.im * xj.re;
        if (l.row[k] == l.col[k])
            continue;
        want[l.col[k]].re += v.re * xi.re + v.im * xi.im;
        want[l.col[k]].im += v.re * xi.im - v.im * xi.re;
    }
    static const spmv_backend backends[] = {SPMV_BACKEND_REF, SPMV_BACKEND_OMP};
    for (int b = 0; b < 2; b++) {
        spmv_context *ctx = support_context_on(backends[b], 2);
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        assert_ok(ctx, matrix_read_memory(ctx, "l", l.text, l.bytes, NULL, &matrix, NULL, 0));
        spmv_matrix_view(matrix, &a);
        /* the matrix is its own conjugate transpose */
        static const spmv_operation operations[] = {SPMV_OPERATION_N, SPMV_OPERATION_H};
        for (int o = 0; o < 2; o++) {
            spmv_plan_options options;
            spmv_plan *plan = NULL;
            spmv_plan_options_init(&options, sizeof options);
            options.operation = operations[o];
            assert_ok(ctx, spmv_plan_create(ctx, &a, &options, &plan));
            memset(y, 0xff, (size_t)l.rows * sizeof *y);
            assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, y));
            /* the sums are exact, and 0 may have either sign */
            for (int64_t i = 0; i < l.rows; i++)
                assert_true(y[i].re == want[i].re && y[i].im == want[i].im);
            spmv_plan_destroy(plan);
        }
        spmv_matrix_destroy(matrix);
        spmv_context_destroy(ctx);
    }
    support_free(x, y, want);
    free_lines(&l);
}

/* ---------------------------------------------------------------- out and back */

/* A matrix with random finite bit patterns in both parts. */
static spmv_matrix *random_matrix(spmv_context *ctx, spmv_type type)
{
    enum { ROWS = 200, ENTRIES = 40000 };
    static int64_t row[ENTRIES];
    static int32_t col[ENTRIES];
    static double wide[2 * ENTRIES];
    static float narrow[2 * ENTRIES];
    uint64_t seed = 77;
    spmv_matrix *matrix = NULL;
    for (int k = 0; k < ENTRIES; k++) {
        row[k] = k % ROWS; /* no duplicates: sums could overflow */
        col[k] = k / ROWS;
    }
    for (int k = 0; k < 2 * ENTRIES; k++) {
        const uint64_t bits = support_random(&seed);
        const uint32_t low = (uint32_t)bits;
        memcpy(&wide[k], &bits, sizeof bits);
        memcpy(&narrow[k], &low, sizeof low);
        if (!isfinite(wide[k]))
            wide[k] = -0.0;
        if (!isfinite(narrow[k]))
            narrow[k] = -0.0f;
    }
    assert_ok(ctx,
              spmv_matrix_from_coo(ctx, ROWS, ENTRIES / ROWS, ENTRIES, row, col,
                                   type == SPMV_C64 ? (const void *)narrow : (const void *)wide, type, &matrix, NULL));
    return matrix;
}

static void matrices_round_trip(void **state)
{
    (void)state;
    static const char *const names[] = {"a.mtx", "a.spmv"};
    for (int n = 0; n < 2; n++)
        for (int t = 2; t < TYPES; t++) {
            char path[128];
            spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, 3);
            spmv_matrix *matrix = random_matrix(ctx, types[t]), *back = NULL;
            spmv_read_options options;
            spmv_read_info info;
            spmv_csr a;
            spmv_matrix_view(matrix, &a);
            in_folder(names[n], path);
            assert_ok(ctx, spmv_matrix_write(ctx, &a, path));
            spmv_read_options_init(&options, sizeof options);
            options.type = types[t];
            assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &back, &info, sizeof info));
            assert_int_equal(info.field, SPMV_FIELD_COMPLEX);
            assert_true(same_matrix(matrix, back));
            spmv_matrix_destroy(back);
            /* default options read it as c128, whatever its precision; a real type is refused */
            assert_ok(ctx, spmv_matrix_read(ctx, path, NULL, &back, NULL, 0));
            spmv_matrix_view(back, &a);
            assert_int_equal(a.type, SPMV_C128);
            spmv_matrix_destroy(back);
            options.type = SPMV_F64;
            assert_fails(ctx, spmv_matrix_read(ctx, path, &options, &back, NULL, 0), SPMV_ERROR_TYPE,
                         "the numbers are complex: they can be read as c128 or c64, not as f64");
            spmv_matrix_destroy(matrix);
            spmv_context_destroy(ctx);
            unlink(path);
        }
}

static void written_text(void **state)
{
    static const int32_t row_ptr[] = {0, 2, 3}, col[] = {0, 2, 1};
    static const spmv_c128 val[] = {{1.5, -2}, {-0.0, 0.1}, {1e22, 0}};
    static const spmv_c128 bad[] = {{1.5, -2}, {1, 0}, {0, INFINITY}};
    char path[128];
    size_t bytes = 0;
    spmv_context *ctx = *state;
    spmv_csr a = support_csr(2, 3, row_ptr, col, NULL);
    a.val = val;
    a.type = SPMV_C128;
    assert_ok(ctx, spmv_matrix_write(ctx, &a, in_folder("a.mtx", path)));
    char *const text = get_file(path, &bytes);
    assert_string_equal(text, COMPLEX "2 3 3\n1 1 1.5 -2\n1 3 -0 0.1\n2 2 1e+22 0\n");
    free(text);
    a.val = bad;
    assert_fails(
        ctx, spmv_matrix_write(ctx, &a, path), SPMV_ERROR_UNSUPPORTED,
        "the matrix contains inf (entry 2, column 1 (counted from 0)), which a Matrix Market file cannot represent");
    unlink(path);
}

/* The type in the header, and values of another type than the file's. */
static void binary_form(void **state)
{
    static const int32_t row_ptr[] = {0, 2}, col[] = {0, 2};
    static const spmv_c128 val[] = {{1.5, -2}, {0.1, 1e300}};
    char path[128];
    size_t bytes = 0;
    spmv_context *ctx = *state;
    spmv_matrix *back = NULL;
    spmv_read_options options;
    spmv_csr a = support_csr(1, 3, row_ptr, col, NULL), b;
    a.val = val;
    a.type = SPMV_C128;
    spmv_read_options_init(&options, sizeof options);
    assert_ok(ctx, spmv_matrix_write(ctx, &a, in_folder("a.spmv", path)));
    char *const file = get_file(path, &bytes);
    assert_int_equal(file[16], 5); /* docs/binary-form.md */
    uint64_t at = 0;
    memcpy(&at, file + 64, sizeof at);
    assert_int_equal(at + sizeof val, bytes);
    assert_memory_equal(file + at, val, sizeof val);
    free(file);
    options.type = SPMV_C64;
    assert_fails(ctx, spmv_matrix_read(ctx, path, &options, &back, NULL, 0), SPMV_ERROR_LIMIT,
                 "entry 1 (counted from 0), 1e+300, is too large for f32");
    /* real values read as complex */
    static const double real[] = {1.5, 0.1};
    a.val = real;
    a.type = SPMV_F64;
    assert_ok(ctx, spmv_matrix_write(ctx, &a, path));
    assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &back, NULL, 0));
    spmv_matrix_view(back, &b);
    const spmv_c64 *const narrow = b.val;
    assert_int_equal(b.type, SPMV_C64);
    assert_true(narrow[0].re == 1.5f && narrow[0].im == 0 && narrow[1].re == 0.1f && narrow[1].im == 0);
    spmv_matrix_destroy(back);
    /* a pattern has no type */
    a.val = NULL;
    assert_ok(ctx, spmv_matrix_write(ctx, &a, path));
    assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &back, NULL, 0));
    spmv_matrix_view(back, &b);
    assert_true(b.val == NULL && b.type == SPMV_C64);
    spmv_matrix_destroy(back);
    unlink(path);
}

static int empty_folder(const char *path)
{
    int n = 0;
    DIR *const d = opendir(path);
    for (const struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d))
        if (e->d_name[0] != '.') {
            unlinkat(dirfd(d), e->d_name, 0);
            n++;
        }
    if (d != NULL)
        closedir(d);
    rmdir(path);
    return n;
}

/* A matrix cached with default options is complex and is never returned as real. */
static void cache(void **state)
{
    static const char text[] = COMPLEX "1 1 1\n1 1 1 2\n";
    char path[128], place[128];
    spmv_context *ctx = *state;
    spmv_read_options options;
    spmv_read_info info;
    put_file(in_folder("a.mtx", path), text, sizeof text - 1);
    spmv_read_options_init(&options, sizeof options);
    options.cache_folder = in_folder("cache", place);
    for (int turn = 0; turn < 4; turn++) {
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        options.type = turn < 2 ? SPMV_TYPE_DEFAULT : SPMV_C64;
        assert_ok(ctx, spmv_matrix_read(ctx, path, &options, &matrix, &info, sizeof info));
        assert_string_equal(info.form, turn % 2 == 0 ? "mtx" : "cache");
        assert_int_equal(info.field, SPMV_FIELD_COMPLEX);
        spmv_matrix_view(matrix, &a);
        assert_int_equal(a.type, turn < 2 ? SPMV_C128 : SPMV_C64);
        assert_true(part_of_values(&a, 0) == 1 && part_of_values(&a, 1) == 2);
        spmv_matrix_destroy(matrix);
    }
    spmv_matrix *matrix = NULL;
    options.type = SPMV_F64;
    assert_fails(ctx, spmv_matrix_read(ctx, path, &options, &matrix, NULL, 0), SPMV_ERROR_TYPE, "a.mtx:1:34: ");
    assert_int_equal(empty_folder(place), 2);
    unlink(path);
}

/* ---------------------------------------------------------------- vectors */

static void vectors_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t n;
        double re[3], im[3];
    } files[] = {
        {"1 2\n# c\n\n -0.5\t1e1 \n0 0", 3, {1, -0.5, 0}, {2, 10, 0}},
        {"1\n2.5\n", 2, {1, 2.5}, {0, 0}}, /* real */
        {"", 0, {0}, {0}},
        {"% nothing\n\n", 0, {0}, {0}},
        {"% c\n\n  # d\n3 4\n", 1, {3}, {4}},
        {"%%MatrixMarket matrix array complex general\n2 1\n1 2\n3 4\n", 2, {1, 3}, {2, 4}},
        {"%%MatrixMarket matrix array complex general\n1 2\n1 2\n3 4\n", 2, {1, 3}, {2, 4}},
        {"%%MatrixMarket matrix array complex hermitian\n1 1\n7 0\n", 1, {7}, {0}},
        {"%%MatrixMarket matrix array integer general\n2 1\n1\n-3\n", 2, {1, -3}, {0, 0}},
        {"%%MatrixMarket matrix coordinate complex general\n3 1 3\n3 1 1 2\n1 1 5 6\n3 1 1 1\n",
         3,
         {5, 0, 2},
         {6, 0, 3}},
        {"%%MatrixMarket matrix coordinate pattern general\n3 1 1\n2 1\n", 3, {0, 1, 0}, {0, 0, 0}},
    };
    spmv_context *ctx = *state;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        void *wide = NULL, *narrow = NULL;
        int64_t n = -1;
        assert_ok(ctx, read_vector(ctx, files[f].text, SPMV_C128, &wide, &n));
        assert_int_equal(n, files[f].n);
        assert_ok(ctx, read_vector(ctx, files[f].text, SPMV_C64, &narrow, &n));
        assert_int_equal(n, files[f].n);
        for (int64_t i = 0; i < n; i++) {
            const spmv_c128 w = ((const spmv_c128 *)wide)[i];
            const spmv_c64 s = ((const spmv_c64 *)narrow)[i];
            assert_true(w.re == files[f].re[i] && w.im == files[f].im[i]);
            assert_true((double)s.re == files[f].re[i] && (double)s.im == files[f].im[i]);
        }
        spmv_host_free(wide);
        spmv_host_free(narrow);
    }
}

static void vectors_are_refused(void **state)
{
    static const struct refused_vector bad[] = {
        {"1 2\n3\n", SPMV_ERROR_FORMAT, "x.txt:2:2: the imaginary part is missing"},
        {"1\n2 3\n", SPMV_ERROR_FORMAT, "x.txt:2:3: extra text \"3\" after the number (one per line)"},
        {"1 2\n3 4 5\n", SPMV_ERROR_FORMAT,
         "x.txt:2:5: extra text \"5\" after the number (one per line, real and imaginary part)"},
        {"1 2i\n", SPMV_ERROR_FORMAT, "x.txt:1:3: \"2i\" is not a number"},
        {"(1,2)\n", SPMV_ERROR_FORMAT,
         "x.txt:1:1: \"(1,2)\" is not a number; numbers have a decimal point, and blanks separate them"},
        {"0 1e400\n", SPMV_ERROR_LIMIT, "x.txt:1:3: \"1e400\" is too large for f64"},
        {"%%MatrixMarket matrix array complex general\n2 1\n1 2\n3.5 \n", SPMV_ERROR_FORMAT,
         "x.txt:4:5: the imaginary part is missing"},
        {"%%MatrixMarket matrix array complex general\n2 2\n1 2\n3 4\n5 6\n7 8\n", SPMV_ERROR_SIZE,
         "x.txt:2:1: 2 x 2: a vector has one column (or one row)"},
    };
    spmv_context *ctx = *state;
    assert_vectors_refused(ctx, SPMV_C128, bad, sizeof bad / sizeof bad[0]);
}

static void vectors_round_trip(void **state)
{
    enum { N = 50000 };
    static double values[2 * N];
    char path[128];
    uint64_t seed = 6;
    for (int k = 0; k < 2 * N; k++) {
        const uint64_t bits = support_random(&seed);
        memcpy(&values[k], &bits, sizeof bits);
        if (isnan(values[k]))
            values[k] = INFINITY;
    }
    in_folder("x.txt", path);
    spmv_context *ctx = *state;
    assert_vector_kept(ctx, path, SPMV_C128, values, N);
    /* with a format, and the longest numbers */
    const spmv_c64 small[] = {{0.1f, -2}, {NAN, 3}};
    const spmv_c128 huge = {-1.7e308, 1.7e308};
    char expected[3000];
    size_t bytes = 0;
    assert_ok(ctx, spmv_vector_write(ctx, path, SPMV_C64, small, 2, "%.2f;"));
    char *text = get_file(path, &bytes);
    assert_string_equal(text, "0.10; -2.00;\nnan; 3.00;\n");
    free(text);
    assert_ok(ctx, spmv_vector_write(ctx, path, SPMV_C128, &huge, 1, "%.1000f"));
    snprintf(expected, sizeof expected, "%.1000f %.1000f\n", huge.re, huge.im);
    text = get_file(path, &bytes);
    assert_string_equal(text, expected);
    free(text);
    unlink(path);
}

/* ---------------------------------------------------------------- statistics */

static void statistics_of(spmv_context *ctx, const char *text, spmv_statistics *s)
{
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    assert_ok(ctx, read_as(ctx, text, SPMV_TYPE_DEFAULT, &matrix, NULL));
    spmv_matrix_view(matrix, &a);
    assert_ok(ctx, spmv_matrix_check(ctx, &a));
    assert_ok(ctx, spmv_matrix_statistics(ctx, &a, s, sizeof *s));
    spmv_matrix_destroy(matrix);
}

static void statistics(void **state)
{
    static const struct {
        const char *text;
        int symmetric, skew_symmetric, hermitian;
        int64_t zeros, not_finite;
    } files[] = {
        {"%%MatrixMarket matrix coordinate complex hermitian\n3 3 2\n2 1 1 2\n3 3 4 0\n", 0, 0, 1, 0, 0},
        {"%%MatrixMarket matrix coordinate complex symmetric\n3 3 2\n2 1 1 2\n3 3 4 1\n", 1, 0, 0, 0, 0},
        {"%%MatrixMarket matrix coordinate complex skew-symmetric\n3 3 2\n2 1 1 2\n3 1 0 0\n", 0, 1, 0, 2, 0},
        {"%%MatrixMarket matrix coordinate complex symmetric\n2 2 2\n2 1 1 0\n1 1 3 -0\n", 1, 0, 1, 0, 0},
        {COMPLEX "2 2 2\n1 2 0 1\n2 1 0 -1\n", 0, 1, 1, 0, 0},
        {COMPLEX "2 2 3\n1 1 0 1\n1 2 nan 1\n2 1 1 inf\n", 0, 0, 0, 0, 2},
        {COMPLEX "2 2 2\n1 1 0 0\n2 2 0 1\n", 1, 0, 0, 1, 0},
        {REAL "2 2 2\n1 2 1\n2 1 1\n", 1, 0, 1, 0, 0},
    };
    spmv_context *ctx = *state;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        spmv_statistics s;
        statistics_of(ctx, files[f].text, &s);
        assert_int_equal(s.symmetric, files[f].symmetric);
        assert_int_equal(s.skew_symmetric, files[f].skew_symmetric);
        assert_int_equal(s.hermitian, files[f].hermitian);
        assert_int_equal(s.explicit_zeros, files[f].zeros);
        assert_int_equal(s.not_finite, files[f].not_finite);
    }
}

/* The values of a SPEC are real: imaginary parts are 0. */
static void generated(void **state)
{
    spmv_context *ctx = *state;
    for (int t = 0; t < 2; t++) {
        spmv_matrix *real = NULL, *wide = NULL;
        spmv_csr a, b;
        assert_ok(ctx, spmv_matrix_generate(ctx, "uniform:50,40,4", types[t], &real));
        assert_ok(ctx, spmv_matrix_generate(ctx, "uniform:50,40,4", types[t + 2], &wide));
        spmv_matrix_view(real, &a);
        spmv_matrix_view(wide, &b);
        assert_true(b.type == types[t + 2] && type_is_complex(b.type) && a.nnz == b.nnz && a.nnz > 0);
        assert_memory_equal(a.col, b.col, (size_t)a.nnz * sizeof *a.col);
        for (int64_t k = 0; k < a.nnz; k++)
            assert_true(part_of_values(&b, 2 * k) == part_of_values(&a, k) && part_of_values(&b, 2 * k + 1) == 0);
        spmv_matrix_destroy(real);
        spmv_matrix_destroy(wide);
    }
}

SUPPORT_MAIN(with_omp(the_file_decides_by_default, 2), with_omp(parts_are_rounded_once, 1),
             with_omp(real_files_as_complex, 2), cmocka_unit_test(complex_files_are_never_real),
             cmocka_unit_test(large_files_are_their_entries), cmocka_unit_test(hermitian_products),
             in_a_folder(matrices_round_trip), with_folder(written_text, 2), with_folder(binary_form, 2),
             with_folder(cache, 1), with_teams(vectors_are_read), with_omp(vectors_are_refused, 2),
             with_folder(vectors_round_trip, 2), with_omp(statistics, 2), with_omp(generated, 2))
