/* The direct solver with each of its libraries: known answers for all types, new values, singular matrices, numbers that
 * are not finite, memory, the description, the choice. Of a module that is missing only the refusal is tested.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <unistd.h>

#include "core/runtime.h"
#include "core/system_limits.h"
#include "formats/matrix_internal.h"
#include "solvers/direct/direct.h"
#include "tests/support/support.h"
#include "tests/support/support_module.h"

static const char *library = NULL; /* that the tests are run with; NULL: the solver chooses */

/* ----------------------------------------------------- allocations, the machine's memory */

static int64_t allocations, fail_at = -1; /* the number of the allocation that fails; -1: none */
static int64_t machine = INT64_MAX;       /* bytes of memory that the library sees */

spmv_status __real_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory);
spmv_status __wrap_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory);
int64_t __wrap_host_memory_bytes(void);

spmv_status __wrap_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory)
{
    *memory = NULL;
    return allocations++ == fail_at ? context_fail_memory(ctx, what, bytes)
                                    : __real_host_alloc(ctx, bytes, what, memory);
}

int64_t __wrap_host_memory_bytes(void)
{
    return machine;
}

static int64_t together; /* right-hand sides that were solved several at once */

spmv_status __real_direct_solve_columns(struct direct *direct, spmv_type type, int64_t columns, int64_t stride,
                                        const void *b, void *x);
spmv_status __wrap_direct_solve_columns(struct direct *direct, spmv_type type, int64_t columns, int64_t stride,
                                        const void *b, void *x);

spmv_status __wrap_direct_solve_columns(struct direct *direct, spmv_type type, int64_t columns, int64_t stride,
                                        const void *b, void *x)
{
    together += columns;
    return __real_direct_solve_columns(direct, type, columns, stride, b, x);
}

static bool is(const char *name)
{
    return library != NULL && strcmp(library + strlen("direct:"), name) == 0;
}

/* ------------------------------------------------------------------ matrices */

/* A matrix by rows with doubles, complex or real. parts: 1 or 2. */
struct rows {
    int64_t n, nnz;
    int parts;
    int64_t *row_ptr;
    int32_t *col;
    double *val;
};

static struct rows new_rows(int64_t n, int64_t entries, int parts)
{
    return (struct rows){.n = n,
                         .parts = parts,
                         .row_ptr = support_zeros(n + 1, 8),
                         .col = support_zeros(entries, 4),
                         .val = support_zeros(entries * parts, 8)};
}

static void release(struct rows *r)
{
    support_free(r->row_ptr, r->col, r->val);
}

static void add(struct rows *r, int64_t row, int64_t col, double re, double im)
{
    r->col[r->nnz] = (int32_t)col;
    r->val[r->nnz * r->parts] = re;
    if (r->parts == 2)
        r->val[r->nnz * r->parts + 1] = im;
    r->row_ptr[row + 1] = ++r->nnz;
}

static void swap(struct rows *r, int64_t j, int64_t k)
{
    const int32_t col = r->col[j];
    r->col[j] = r->col[k];
    r->col[k] = col;
    for (int p = 0; p < r->parts; p++) {
        const double value = r->val[j * r->parts + p];
        r->val[j * r->parts + p] = r->val[k * r->parts + p];
        r->val[k * r->parts + p] = value;
    }
}

/* Row i has the entry 4 in column i + 1 (modulo n) and others whose absolute values sum to less than
 * 2, none on the diagonal if n > 1. So the 1-norm and infinity norm condition numbers are below 3
 * before scaling. Rows are in random order inside. scaled: row i is multiplied by a power of two.
 * repeated: the large entry is the sum of two. All values are exact in f32. */
static struct rows random_rows(int64_t n, int parts, bool scaled, bool repeated, uint64_t seed)
{
    struct rows r = new_rows(n, 8 * n, parts);
    for (int64_t i = 0; i < n; i++) {
        const double factor = scaled ? ldexp(1, (int)(support_random(&seed) % 41) - 20) : 1;
        const int64_t large = (i + 1) % n;
        add(&r, i, large, (repeated ? 1 : 4) * factor, 0);
        if (repeated)
            add(&r, i, large, 3 * factor, 0);
        for (int e = 0; e < 3; e++) {
            const int64_t c = (int64_t)(support_random(&seed) % (uint64_t)n);
            const double re = (double)(support_random(&seed) % 255) - 127,
                         im = (double)(support_random(&seed) % 255) - 127;
            if (c != large && c != i)
                add(&r, i, c, re * factor / 512, im * factor / 512);
        }
        r.row_ptr[i + 1] = r.nnz;
        for (int64_t k = r.nnz - 1; k > r.row_ptr[i]; k--)
            swap(&r, k, r.row_ptr[i] + (int64_t)(support_random(&seed) % (uint64_t)(k - r.row_ptr[i] + 1)));
    }
    return r;
}

/* The 5-point Laplacian of a side x side grid. */
static struct rows grid(int64_t side)
{
    const int64_t n = side * side;
    struct rows r = new_rows(n, 5 * n, 1);
    for (int64_t i = 0; i < n; i++) {
        if (i >= side)
            add(&r, i, i - side, -1, 0);
        if (i % side > 0)
            add(&r, i, i - 1, -1, 0);
        add(&r, i, i, 4, 0);
        if (i % side < side - 1)
            add(&r, i, i + 1, -1, 0);
        if (i < n - side)
            add(&r, i, i + side, -1, 0);
    }
    return r;
}

static struct rows dense(int64_t n, const double *values)
{
    struct rows r = new_rows(n, n * n, 1);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++)
            if (values[i * n + j] != 0)
                add(&r, i, j, values[i * n + j], 0);
        r.row_ptr[i + 1] = r.nnz;
    }
    return r;
}

/* y = A x in doubles. */
static void multiply(const struct rows *r, const double *x, double *y)
{
    for (int64_t i = 0; i < r->n; i++) {
        double re = 0, im = 0;
        for (int64_t k = r->row_ptr[i]; k < r->row_ptr[i + 1]; k++) {
            const double *a = r->val + k * r->parts, *v = x + (int64_t)r->col[k] * r->parts;
            re += r->parts == 2 ? a[0] * v[0] - a[1] * v[1] : a[0] * v[0];
            im += r->parts == 2 ? a[0] * v[1] + a[1] * v[0] : 0;
        }
        y[i * r->parts] = re;
        if (r->parts == 2)
            y[i * r->parts + 1] = im;
    }
}

/* The same matrix for the library. */
struct view {
    spmv_context *ctx;
    spmv_csr csr;
    int32_t *narrow;
    void *val;
    void *there[3]; /* in the context's memory */
};

static struct view view_of(spmv_context *ctx, const struct rows *r, spmv_type type, int bits, spmv_memory memory)
{
    struct view v = {.ctx = ctx, .narrow = support_zeros(r->n + 1, 4)};
    for (int64_t i = 0; i <= r->n; i++)
        v.narrow[i] = (int32_t)r->row_ptr[i];
    v.val = support_as(type_part(type), r->val, r->nnz * r->parts, 0);
    v.csr = support_view(r->n, r->n, r->nnz, r->row_ptr, r->col, v.val, type);
    v.csr.row_ptr_bits = bits;
    if (bits == 32)
        v.csr.row_ptr = v.narrow;
    if (memory == SPMV_MEMORY_CONTEXT) {
        v.csr.memory = memory;
        v.csr.row_ptr = v.there[0] = support_upload(ctx, v.csr.row_ptr, (r->n + 1) * (bits / 8));
        v.csr.col = v.there[1] = support_upload(ctx, v.csr.col, r->nnz * 4);
        v.csr.val = v.there[2] = support_upload(ctx, v.val, r->nnz * (int64_t)spmv_type_size(type));
    }
    return v;
}

static void release_view(struct view *v)
{
    for (int i = 0; i < 3; i++)
        spmv_free(v->ctx, v->there[i]);
    support_free(v->narrow, v->val);
}

static struct direct *create(spmv_context *ctx, const struct rows *r)
{
    struct direct *d = NULL;
    struct view v = view_of(ctx, r, r->parts == 2 ? SPMV_C128 : SPMV_F64, 64, SPMV_MEMORY_HOST);
    assert_ok(ctx, direct_create(ctx, &v.csr, library, &d));
    release_view(&v);
    return d;
}

/* Solves with n elements of a type given as doubles; b and x are one array if alias. The solver
 * allocates nothing. */
static spmv_status solve(spmv_context *ctx, struct direct *d, spmv_type type, int64_t n, const double *b, bool alias,
                         double *x)
{
    const int64_t count = n * type_parts(type), bytes = n * (int64_t)spmv_type_size(type);
    void *const there = support_upload_as(ctx, type_part(type), b, count, 0);
    void *const host = support_zeros(n, spmv_type_size(type));
    void *to = there;
    if (!alias)
        assert_ok(ctx, spmv_alloc(ctx, bytes, &to));
    allocations = 0;
    const spmv_status st = direct_solve(d, type, there, to);
    assert_int_equal(allocations, 0);
    if (st == SPMV_OK) {
        if (bytes > 0)
            assert_ok(ctx, spmv_download(ctx, to, host, bytes));
        for (int64_t i = 0; i < count; i++)
            x[i] = real_at(type_part(type), host, i);
    }
    free(host);
    if (!alias)
        spmv_free(ctx, to);
    spmv_free(ctx, there);
    return st;
}

/* ------------------------------------------------------------- known answers */

static void known_answers(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 10, 33, 100, 400};
    static const spmv_type types[] = {SPMV_F64, SPMV_F32, SPMV_C64, SPMV_C128};
    spmv_context *ctx = *state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int t = 0; t < 4; t++)
            for (int variant = 0; variant < 8; variant++) {
                const spmv_type type = types[t];
                const int64_t n = sizes[s], count = n * type_parts(type);
                uint64_t seed = (uint64_t)(100 * s + 10 * (size_t)t) + (uint64_t)variant;
                struct rows r = random_rows(n, type_parts(type), (variant & 1) != 0, (variant & 2) != 0, seed);
                struct view v = view_of(ctx, &r, type, (variant & 2) != 0 ? 32 : 64,
                                        (variant & 4) != 0 ? SPMV_MEMORY_CONTEXT : SPMV_MEMORY_HOST);
                double *const known = support_zeros(count, 8), *const b = support_zeros(count, 8),
                              *const x = support_zeros(count, 8);
                for (int64_t i = 0; i < count; i++) /* few bits, so that b is exact in f32 */
                    known[i] = (double)(support_random(&seed) % 15) - 7;
                multiply(&r, known, b);
                struct direct *d = NULL;
                assert_ok(ctx, direct_create(ctx, &v.csr, library, &d));
                release_view(&v); /* not needed any more */
                assert_ok(ctx, solve(ctx, d, type, n, b, variant % 2 == 1, x));
                /* b is exact, |x| at most 7 and the condition below 3; pivoting may let the entries
                 * of the factors grow, by far less than a thousand */
                const double bound = type_part(type) == SPMV_F32 ? 7 * 0x1p-23 : 1000 * 0x1p-50;
                for (int64_t i = 0; i < count; i++)
                    if (!(fabs(x[i] - known[i]) <= bound))
                        fail_msg("%s, %lld rows, variant %d: x[%lld] = %.17g, not %g", spmv_type_name(type),
                                 (long long)n, variant, (long long)i, x[i], known[i]);
                assert_true(direct_rcond(d) > 0 && direct_rcond(d) <= 1);
                direct_destroy(d);
                support_free(known, b, x);
                release(&r);
            }
}

/* Ones in columns i and i + 1 (backwards, so off the diagonal): exact. A repeated entry counts
 * twice. */
static void patterns(void **state)
{
    enum { N = 20 };
    spmv_context *ctx = *state;
    struct rows r = new_rows(N, 3 * N, 1);
    double known[N], b[N], x[N];
    for (int64_t i = 0; i < N; i++) {
        add(&r, i, N - 1 - i, 1, 0);
        if (i % 3 == 0)
            add(&r, i, N - 1 - i, 1, 0);
        if (i > 0)
            add(&r, i, N - i, 1, 0);
        known[i] = (double)(i * i % 7) - 3;
    }
    multiply(&r, known, b);
    for (int where = 0; where < 2; where++) {
        struct view v = view_of(ctx, &r, SPMV_F64, 32, where == 0 ? SPMV_MEMORY_HOST : SPMV_MEMORY_CONTEXT);
        v.csr.val = NULL;
        v.csr.type = SPMV_C64; /* of no meaning for a pattern */
        struct direct *d = NULL;
        assert_ok(ctx, direct_create(ctx, &v.csr, library, &d));
        assert_ok(ctx, solve(ctx, d, where == 0 ? SPMV_F64 : SPMV_F32, N, b, false, x));
        for (int64_t i = 0; i < N; i++)
            assert_true(is("klu") ? x[i] == known[i] : fabs(x[i] - known[i]) <= 1e-6); /* UMFPACK scales by sums */
        if (is("klu"))
            assert_non_null(strstr(direct_describe(d), "20 diagonal blocks"));
        direct_destroy(d);
        release_view(&v);
    }
    release(&r);
}

/* Rows whose sizes differ by factors of 2^600, with a known solution. */
static void extreme_scales(void **state)
{
    enum { N = 60 };
    spmv_context *ctx = *state;
    struct rows r = random_rows(N, 1, false, false, 9);
    double known[N], b[N], x[N];
    for (int64_t i = 0; i < N; i++) {
        for (int64_t k = r.row_ptr[i]; k < r.row_ptr[i + 1]; k++)
            r.val[k] = ldexp(r.val[k], (int)(i * 37 % 601) - 300);
        known[i] = (double)(i % 9) - 4;
    }
    multiply(&r, known, b);
    struct direct *d = create(ctx, &r);
    assert_ok(ctx, solve(ctx, d, SPMV_F64, N, b, false, x));
    for (int64_t i = 0; i < N; i++)
        assert_true(fabs(x[i] - known[i]) <= 100 * 0x1p-50);
    if (is("klu"))
        assert_true(direct_rcond(d) > 0 && direct_rcond(d) < 0x1p-500);
    direct_destroy(d);
    release(&r);
}

static void small_sizes(void **state)
{
    spmv_context *ctx = *state;
    const double three[] = {3}, twelve[] = {12};
    double x[1] = {0};
    struct rows one = dense(1, three), none = new_rows(0, 0, 1);
    struct direct *d = create(ctx, &one);
    assert_ok(ctx, solve(ctx, d, SPMV_F32, 1, twelve, true, x));
    assert_true(x[0] == 4);
    assert_true(is("cudss") ? direct_rcond(d) < 0 : direct_rcond(d) == 1);
    direct_destroy(d);
    d = create(ctx, &none);
    assert_ok(ctx, direct_solve(d, SPMV_F64, NULL, NULL));
    assert_non_null(strstr(direct_describe(d), "without rows"));
    assert_true(direct_bytes(d) > 0);
    direct_destroy(d);
    direct_destroy(NULL);
    release(&one);
    release(&none);
}

/* -------------------------------------------------- bits, description */

static void same_bits(void **state)
{
    enum { N = 300 };
    spmv_context *ctx = *state;
    for (int parts = 1; parts <= 2; parts++) {
        const spmv_type type = parts == 2 ? SPMV_C128 : SPMV_F64;
        uint64_t seed = 5;
        struct rows r = random_rows(N, parts, true, true, 4);
        double b[2 * N], x[3][2 * N];
        for (int64_t i = 0; i < 2 * N; i++)
            b[i] = support_uniform(&seed);
        struct direct *d = create(ctx, &r), *again = create(ctx, &r);
        assert_ok(ctx, solve(ctx, d, type, N, b, false, x[0]));
        assert_ok(ctx, solve(ctx, d, type, N, b, true, x[1]));
        assert_ok(ctx, solve(ctx, again, type, N, b, false, x[2]));
        assert_memory_equal(x[0], x[1], sizeof(double) * (size_t)(N * parts));
        assert_memory_equal(x[0], x[2], sizeof(double) * (size_t)(N * parts));
        direct_destroy(d);
        direct_destroy(again);
        release(&r);
    }
}

static void description(void **state)
{
    spmv_context *ctx = *state;
    /* a diagonal matrix: the estimate is exact, and the factors are the diagonal */
    const double diagonal[] = {1, 0, 0, 0, 8, 0, 0, 0, 0x1p-7};
    /* the third row is nearly the sum of the others, by more than rounding in the factorisation */
    const double nearly[] = {1, 2, 3, 4, 5, 6, 5, 7, 9 + 0x1p-45};
    struct rows r = dense(3, diagonal), square = grid(12), general = random_rows(300, 1, false, false, 2),
                nearly_singular = dense(3, nearly);
    struct direct *d = create(ctx, &r);
    assert_true(direct_rcond(d) == 0x1p-10);
    assert_non_null(strstr(direct_describe(d), "KLU "));
    assert_non_null(strstr(direct_describe(d), "3 nonzeros in the factors"));
    assert_non_null(strstr(direct_describe(d), "about 9.8e-04"));
    direct_destroy(d);
    d = create(ctx, &square);
    assert_non_null(strstr(direct_describe(d), "1 diagonal block, ordering AMD"));
    assert_true(direct_bytes(d) > 16 * square.nnz);
    /* 2 (n + 1) to 4 (n + 1)^2 / pi^2 for the 2-norm, which is at most 12 times as small */
    assert_true(direct_rcond(d) > 1.0 / 1000 && direct_rcond(d) < 1.0 / 50);
    direct_destroy(d);
    d = create(ctx, &general);
    assert_non_null(strstr(direct_describe(d), "ordering COLAMD"));
    direct_destroy(d);
    release(&r);
    d = create(ctx, &nearly_singular);
    assert_true(direct_rcond(d) < 0x1p-50);
    direct_destroy(d);
    release(&square);
    release(&general);
    release(&nearly_singular);
}

/* ----------------------------------------------------------------- refusals */

/* Creating a solver fails with this status and a message that contains text. */
static void refused(spmv_context *ctx, const struct rows *r, spmv_status expected, const char *text)
{
    struct direct *d = NULL;
    for (int where = 0; where < 2; where++) {
        struct view v = view_of(ctx, r, r->parts == 2 ? SPMV_C128 : SPMV_F64, 64,
                                where == 0 ? SPMV_MEMORY_HOST : SPMV_MEMORY_CONTEXT);
        assert_fails(ctx, direct_create(ctx, &v.csr, library, &d), expected, text);
        assert_null(d);
        release_view(&v);
    }
}

static void singular(void **state)
{
    spmv_context *ctx = *state;
    static const struct {
        const char *text;
        double values[9];
    } cases[] = {
        /* scaled by the sum or the largest of a row without rounding, so pivots are 0 with fused multiply-add too */
        {"no pivot other than 0 is left for column", {1, 2, 1, 2, 4, 2, 1, 1, 2}},
        {"no pivot other than 0 is left for column", {1, 1, 2, 1, -1, 2, 0, 2, 0}},
        {"row 1 and column 1 (counted from 0) are left out", {1, 0, 3, 0, 0, 0, 2, 0, 5}},
        {"row 1 and column 2 (counted from 0) are left out", {1, 1, 0, 0, 0, 0, 1, 5, 0}},
        {"at most 2 of its 3 rows", {1, 0, 0, 2, 0, 0, 1, 2, 3}},
        {"at most 0 of its 3 rows", {0, 0, 0, 0, 0, 0, 0, 0, 0}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct rows r = dense(3, cases[c].values);
        refused(ctx, &r, SPMV_ERROR_SINGULAR, is("klu") ? cases[c].text : "the matrix is singular");
        release(&r);
    }
    /* an entry that is stored and 0; complex, where a number and its repetition cancel */
    struct rows zero = new_rows(1, 1, 1), cancel = new_rows(2, 4, 2);
    add(&zero, 0, 0, 0, 0);
    refused(ctx, &zero, SPMV_ERROR_SINGULAR, is("klu") ? "column 0" : "0 of its 1 pivots");
    add(&cancel, 0, 0, 1, 1);
    add(&cancel, 1, 1, 2, -3);
    add(&cancel, 1, 1, -2, 3);
    refused(ctx, &cancel, SPMV_ERROR_SINGULAR, is("klu") ? "column 1" : "1 of its 2 pivots");
    release(&zero);
    release(&cancel);
}

static void not_finite(void **state)
{
    spmv_context *ctx = *state;
    double values[] = {1, 2, 0, 0, 5, 7, 1, 0, 1}, b[] = {1, 2, 3}, x[3];
    const double bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        values[5] = bad[i];
        struct rows r = dense(3, values);
        refused(ctx, &r, SPMV_ERROR_NOT_FINITE, "row 1, column 2");
        release(&r);
    }
    values[5] = 7;
    struct rows r = dense(3, values), imaginary = new_rows(1, 1, 2);
    add(&imaginary, 0, 0, 1, NAN);
    refused(ctx, &imaginary, SPMV_ERROR_NOT_FINITE, "row 0, column 0");
    struct direct *d = create(ctx, &r);
    for (int i = 0; i < 3; i++) {
        b[1] = bad[i];
        assert_fails(ctx, solve(ctx, d, SPMV_F64, 3, b, false, x), SPMV_ERROR_NOT_FINITE, "in row 1 (counted from 0)");
    }
    b[1] = 2;
    assert_ok(ctx, solve(ctx, d, SPMV_F64, 3, b, false, x));
    direct_destroy(d);
    /* the solution overflows: in f64, and in f32 only */
    const double tiny[] = {0x1p-900}, small[] = {0x1p-100}, large[] = {0x1p900}, wide[] = {0x1p100};
    struct rows a = dense(1, tiny), c = dense(1, small);
    d = create(ctx, &a);
    assert_fails(ctx, solve(ctx, d, SPMV_F64, 1, large, false, x), SPMV_ERROR_NOT_FINITE, "x has inf in row 0");
    direct_destroy(d);
    d = create(ctx, &c);
    assert_ok(ctx, solve(ctx, d, SPMV_F64, 1, wide, false, x));
    assert_true(x[0] == 0x1p200);
    assert_fails(ctx, solve(ctx, d, SPMV_F32, 1, wide, false, x), SPMV_ERROR_NOT_FINITE, "x has inf in row 0");
    direct_destroy(d);
    release(&r);
    release(&imaginary);
    release(&a);
    release(&c);
}

static void wrong_arguments(void **state)
{
    spmv_context *ctx = *state;
    struct direct *d = NULL;
    struct rows r = grid(3);
    struct view v = view_of(ctx, &r, SPMV_F64, 64, SPMV_MEMORY_HOST);
    double x[9];
    spmv_csr wrong = v.csr;
    wrong.cols = 10;
    assert_fails(ctx, direct_create(ctx, &wrong, library, &d), SPMV_ERROR_NOT_SQUARE, "9 rows and 10 columns");
    wrong = v.csr;
    wrong.type = SPMV_I64;
    assert_fails(ctx, direct_create(ctx, &wrong, library, &d), SPMV_ERROR_TYPE, "i64");
    const int32_t column = r.col[4];
    r.col[4] = 9;
    assert_fails(ctx, direct_create(ctx, &v.csr, library, &d), SPMV_ERROR_SIZE, "9");
    r.col[4] = column;
    assert_null(d);
    assert_ok(ctx, direct_create(ctx, &v.csr, library, &d));
    assert_fails(ctx, direct_solve(d, SPMV_C128, x, x), SPMV_ERROR_TYPE, "c128");
    assert_fails(ctx, direct_solve(d, SPMV_I32, x, x), SPMV_ERROR_TYPE, "i32");
    direct_destroy(d);
    release_view(&v);
    release(&r);
}

static void memory(void **state)
{
    spmv_context *ctx = *state;
    struct direct *d = NULL;
    struct rows r = grid(30);
    struct view v = view_of(ctx, &r, SPMV_F64, 64, SPMV_MEMORY_HOST);
    /* the factors have about 20,000 nonzeros of 16 bytes with KLU, of 8 bytes with UMFPACK */
    machine = is("klu") ? 300000 : 150000;
    assert_fails(ctx, direct_create(ctx, &v.csr, library, &d), SPMV_ERROR_MEMORY, "direct: the factors");
    assert_null(d);
    machine = is("klu") ? 400000 : 250000;
    assert_ok(ctx, direct_create(ctx, &v.csr, library, &d));
    direct_destroy(d);
    machine = INT64_MAX;
    release_view(&v);
    v = view_of(ctx, &r, SPMV_F64, 64, SPMV_MEMORY_CONTEXT);
    spmv_status st = SPMV_ERROR_MEMORY;
    int64_t failed = 0;
    for (; st != SPMV_OK; failed++) {
        allocations = 0;
        fail_at = failed;
        st = direct_create(ctx, &v.csr, library, &d);
        if (st != SPMV_OK) {
            assert_int_equal(st, SPMV_ERROR_MEMORY);
            assert_null(d);
        }
    }
    fail_at = -1;
    assert_true(failed > 6);
    direct_destroy(d);
    release_view(&v);
    release(&r);
}

/* A file that is no module. */
static void broken_module(void **state)
{
    spmv_context *ctx = *state;
    char file[64];
    struct rows r = grid(2);
    snprintf(file, sizeof file, "spmv_direct_%s.so", library + strlen("direct:"));
    const struct broken_module broken = broken_module_begin(file);
    refused(ctx, &r, SPMV_ERROR_UNSUPPORTED, is("mumps") ? "libmumps-seq-dev" : "libsuitesparse-dev");
    assert_non_null(strstr(spmv_last_error(ctx), "cannot open"));
    broken_module_end(&broken);
    release(&r);
}

/* ------------------------------------------------------------- positive definite matrices */

/* A Hermitian matrix with the eigenvalues of a grid's Laplacian: D G D^H, with numbers of modulus 1 on the diagonal of D.
 * shift: added to the diagonal. */
static struct rows hermitian_grid(int64_t side, int parts, double shift)
{
    struct rows g = grid(side), r = new_rows(g.n, g.nnz, parts);
    for (int64_t i = 0; i < g.n; i++)
        for (int64_t k = g.row_ptr[i]; k < g.row_ptr[i + 1]; k++) {
            static const double unit[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
            const int turn = parts == 2 ? (int)((7 * i - 7 * g.col[k]) % 4 + 4) % 4 : 0;
            const double value = g.val[k] + (g.col[k] == i ? shift : 0);
            add(&r, i, g.col[k], value * unit[turn][0], value * unit[turn][1]);
        }
    release(&g);
    return r;
}

/* [A B'; B 0] of a grid and differences along its rows: symmetric, with a zero block, and of known inertia. */
static struct rows saddle(int64_t side)
{
    const int64_t n = side * side, m = n - side;
    struct rows r = new_rows(n + m, 5 * n + 4 * m, 1);
    for (int64_t i = 0; i < n; i++) {
        const int64_t line = i / side, at = i % side;
        if (line > 0)
            add(&r, i, i - side, -1, 0);
        if (at > 0)
            add(&r, i, i - 1, -1, 0);
        add(&r, i, i, 4, 0);
        if (at < side - 1)
            add(&r, i, i + 1, -1, 0);
        if (line < side - 1)
            add(&r, i, i + side, -1, 0);
        if (i >= side)
            add(&r, i, n + i - side, 1, 0);
        if (i < m)
            add(&r, i, n + i, -1, 0);
    }
    for (int64_t k = 0; k < m; k++) {
        add(&r, n + k, k, -1, 0);
        add(&r, n + k, k + side, 1, 0);
    }
    return r;
}

/* The Laplacian of a grid with imaginary numbers added to its diagonal: its own transpose, not Hermitian. */
static struct rows complex_symmetric(int64_t side)
{
    struct rows g = grid(side), r = new_rows(g.n, g.nnz, 2);
    for (int64_t i = 0; i < g.n; i++)
        for (int64_t k = g.row_ptr[i]; k < g.row_ptr[i + 1]; k++)
            add(&r, i, g.col[k], g.val[k] - (g.col[k] == i), g.col[k] == i ? 0.25 * (double)(i % 3) : 0.125);
    release(&g);
    return r;
}

/* A matrix that the library takes. cuDSS has no pivots beside the diagonal: it gets two kinds in turn. */
static struct rows suitable(int64_t side, int parts)
{
    if (is("cholmod") || (is("cudss") && side % 2 == 1))
        return hermitian_grid(side, parts, 0);
    if (is("mumps") || is("cudss"))
        return parts == 2 ? complex_symmetric(side) : hermitian_grid(side, 1, -0.5);
    return random_rows(side * side, parts, true, true, 8);
}

/* ------------------------------------------------------------- several right-hand sides */

/* Columns that are more than n apart, in one array or two; the adjoint; a number that is not finite. */
static void several(void **state)
{
    enum { SIDE = 9, N = SIDE * SIDE, K = 5, APART = N + 7 };
    spmv_context *ctx = *state;
    for (int parts = 1; parts <= 2; parts++) {
        const spmv_type type = parts == 2 ? SPMV_C128 : SPMV_F64;
        const int64_t bytes = (K * APART - 7) * 8 * parts, count = K * APART * parts;
        struct rows r = suitable(SIDE, parts);
        struct direct *d = create(ctx, &r), *adjoint = NULL;
        double *const known = support_zeros(count, 8), *const b = support_zeros(count, 8),
                      *const x = support_zeros(count, 8);
        for (int64_t v = 0; v < K; v++) {
            for (int64_t i = 0; i < N * parts; i++)
                known[v * APART * parts + i] = (double)((i * i + 3 * v) % 15) - 7;
            multiply(&r, known + v * APART * parts, b + v * APART * parts);
        }
        void *const there = support_upload(ctx, b, bytes), *const to = support_upload(ctx, x, bytes);
        for (int alias = 0; alias < 2; alias++) {
            void *const target = alias != 0 ? there : to;
            assert_ok(ctx, direct_solve_columns(d, type, K, APART, there, target));
            assert_ok(ctx, spmv_download(ctx, target, x, bytes));
            for (int64_t v = 0; v < K; v++)
                for (int64_t i = v * APART * parts; i < (v * APART + N) * parts; i++)
                    assert_true(fabs(x[i] - known[i]) <= 1e5 * 0x1p-50);
        }
        /* x'b of A x = b is y'c, if A^H y = c and c = x: so y'b = x'x */
        assert_true(direct_has_adjoint(d));
        assert_ok(ctx, direct_create_adjoint(d, &adjoint));
        assert_ok(ctx, spmv_upload(ctx, known, there, bytes));
        assert_ok(ctx, direct_solve_columns(adjoint, type, K, APART, there, to));
        assert_ok(ctx, spmv_download(ctx, to, x, bytes));
        for (int64_t v = 0; v < K; v++) {
            double of_y = 0, of_x = 0;
            for (int64_t i = v * APART * parts; i < (v * APART + N) * parts; i++) {
                of_y += x[i] * b[i]; /* the real part */
                of_x += known[i] * known[i];
            }
            assert_true(fabs(of_y - of_x) <= 1e-9 * of_x);
        }
        b[2 * APART * parts] = NAN;
        assert_ok(ctx, spmv_upload(ctx, b, there, bytes));
        assert_fails(ctx, direct_solve_columns(d, type, K, APART, there, to), SPMV_ERROR_NOT_FINITE, "b has nan");
        assert_ok(ctx, direct_solve_columns(d, type, 0, APART, there, to));
        if (!is("cudss")) { /* which allocates nothing */
            fail_at = 0;
            allocations = 0;
            assert_fails(ctx, direct_solve_columns(d, type, K, APART, there, to), SPMV_ERROR_MEMORY,
                         "right-hand sides");
            fail_at = -1;
        }
        direct_destroy(adjoint);
        direct_destroy(d);
        support_free_in(ctx, there, to);
        support_free(known, b, x);
        release(&r);
    }
}

/* By a solver: the same iterations and, up to rounding, x as alone; a start that is not 0; one right-hand side that
 * is not finite. */
static void several_of_a_solver(void **state)
{
    enum { SIDE = 9, N = SIDE * SIDE, K = 35 }; /* two blocks */
    spmv_context *ctx = *state;
    struct rows r = suitable(SIDE, 1);
    struct view a = view_of(ctx, &r, SPMV_F64, 64, SPMV_MEMORY_HOST);
    double *const known = support_zeros(N * K, 8), *const b = support_zeros(N * K, 8), one[N], of[N];
    spmv_solver_result result[K];
    for (int v = 0; v < K; v++) {
        for (int i = 0; i < N; i++)
            one[i] = known[i * K + v] = (double)((i * i + 3 * v) % 15) - 7;
        multiply(&r, one, of);
        for (int i = 0; i < N; i++)
            b[i * K + v] = of[i];
    }
    for (int begin = 0; begin < 3; begin++) { /* at 0, at another x, and with a NaN in a column */
        spmv_solver *solver = NULL;
        spmv_solver_options o;
        spmv_solver_options_init(&o, sizeof o);
        o.solver = library;
        o.vectors = K;
        o.zero_start = begin != 1;
        double *const x = support_zeros(N * K, 8);
        x[3] = 5;
        b[40 * K + 33] = begin == 2 ? NAN : b[40 * K + 33];
        void *const there = support_upload(ctx, b, 8 * N * K), *const to = support_upload(ctx, x, 8 * N * K);
        assert_ok(ctx, spmv_solver_create(ctx, &a.csr, &o, &solver));
        together = 0;
        const spmv_status st = spmv_solver_solve(solver, there, to, result, sizeof *result);
        assert_int_equal(together, K);
        assert_int_equal(st, begin == 2 ? SPMV_ERROR_NOT_FINITE : SPMV_OK);
        assert_ok(ctx, spmv_download(ctx, to, x, 8 * N * K));
        for (int v = 0; v < K; v++) {
            if (begin == 2 && v == 33)
                continue;
            assert_int_equal(result[v].status, SPMV_OK);
            assert_int_equal(result[v].iterations, 1);
            assert_true(result[v].true_residual <= result[v].tolerance);
            for (int i = 0; i < N; i++)
                assert_true(fabs(x[i * K + v] - known[i * K + v]) <= 1e5 * 0x1p-50);
        }
        spmv_solver_destroy(solver);
        support_free_in(ctx, there, to);
        free(x);
    }
    support_free(known, b);
    release_view(&a);
    release(&r);
}

/* spmv_solver_solve_many: other numbers than that of the option, with A and A', by direct and by gmres. */
static void any_number(void **state)
{
    enum { SIDE = 6, N = SIDE * SIDE, MOST = 4 };
    spmv_context *ctx = *state;
    const bool general = is("klu") || is("umfpack"); /* rows of one size: gmres stops by the norm of all */
    struct rows r = general ? random_rows(N, 1, false, true, 8) : suitable(SIDE, 1), complex = suitable(SIDE, 2);
    struct view a = view_of(ctx, &r, SPMV_F64, 64, SPMV_MEMORY_HOST),
                c = view_of(ctx, &complex, SPMV_C128, 64, SPMV_MEMORY_HOST);
    const char *const solvers[] = {library, "gmres"};
    double *const x = support_zeros(N * MOST, 8), *const b = support_zeros(N * MOST, 8);
    spmv_solver_result result[MOST];
    spmv_solver *solver = NULL;
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    o.rtol = 1e-12;
    for (int which = 0; which < 2; which++) {
        o.solver = solvers[which];
        assert_ok(ctx, spmv_solver_create(ctx, &a.csr, &o, &solver));
        static const int counts[] = {1, MOST, 2, 1};
        for (int t = 0; t < 8; t++) {
            const int k = counts[t / 2];
            const bool transposed = t % 2 == 1;
            memset(b, 0, 8 * N * MOST);
            for (int64_t i = 0; i < N; i++)
                for (int64_t e = r.row_ptr[i]; e < r.row_ptr[i + 1]; e++)
                    for (int v = 0; v < k; v++) { /* x[i, v] = i + v */
                        const int64_t to = transposed ? r.col[e] : i, from = transposed ? i : r.col[e];
                        b[to * k + v] += r.val[e] * (double)(from + v);
                    }
            memset(x, 0, 8 * N * MOST);
            void *const there = support_upload(ctx, b, 8 * N * k), *const to = support_upload(ctx, x, 8 * N * k);
            together = 0;
            assert_ok(ctx, spmv_solver_solve_many(solver, transposed ? SPMV_OPERATION_T : SPMV_OPERATION_N, k, there,
                                                  to, result, sizeof *result));
            assert_int_equal(together, which == 0 && k > 1 ? k : 0);
            assert_ok(ctx, spmv_download(ctx, to, x, 8 * N * k));
            for (int i = 0; i < N * k; i++)
                assert_true(fabs(x[i] - (i / k + i % k)) <= 1e-6);
            for (int v = 0; v < k; v++)
                assert_int_equal(result[v].status, SPMV_OK);
            support_free_in(ctx, there, to);
        }
        assert_fails(ctx, spmv_solver_solve_many(solver, SPMV_OPERATION_N, 0, b, x, NULL, 0), SPMV_ERROR_ARGUMENT,
                     "vectors is 0");
        spmv_solver_destroy(solver);
    }
    o.solver = library;
    assert_ok(ctx, spmv_solver_create(ctx, &c.csr, &o, &solver));
    spmv_determinant told;
    if (is("cudss")) {
        assert_fails(ctx, spmv_solver_determinant(solver, &told, sizeof told), SPMV_ERROR_UNSUPPORTED, "determinant");
    } else {
        assert_ok(ctx, spmv_solver_determinant(solver, &told, sizeof told));
        assert_true(fabs(hypot(told.phase[0], told.phase[1]) - 1) <= 1e-15);
    }
    spmv_solver_destroy(solver);
    support_free(x, b);
    release_view(&a);
    release_view(&c);
    release(&r);
    release(&complex);
}

/* b += op(A) x of complex numbers, k vectors by rows. */
static void multiply_columns(const struct rows *r, spmv_operation operation, int k, const double *x, double *b)
{
    for (int64_t i = 0; i < r->n; i++)
        for (int64_t e = r->row_ptr[i]; e < r->row_ptr[i + 1]; e++)
            for (int v = 0; v < k; v++) {
                const bool turned = operation != SPMV_OPERATION_N;
                const double re = r->val[2 * e],
                             im = operation == SPMV_OPERATION_H ? -r->val[2 * e + 1] : r->val[2 * e + 1];
                double *const to = b + 2 * ((turned ? r->col[e] : i) * k + v);
                const double *const from = x + 2 * ((turned ? i : r->col[e]) * k + v);
                to[0] += re * from[0] - im * from[1];
                to[1] += re * from[1] + im * from[0];
            }
}

/* Several complex right-hand sides, in both types, with A, A' and A^H, by direct and by gmres: each as alone. By direct
 * their first solutions come from one call. One that is not finite does not touch the others. */
static void several_complex(void **state)
{
    enum { SIDE = 5, N = SIDE * SIDE, K = 3 };
    static const spmv_operation operations[] = {SPMV_OPERATION_N, SPMV_OPERATION_T, SPMV_OPERATION_H};
    spmv_context *ctx = *state;
    struct rows r = suitable(SIDE, 2);
    for (int64_t i = 0; i < r.n && (is("klu") || is("umfpack"));
         i++) { /* rows of one size: gmres stops by the norm of all */
        double largest = 0;
        for (int64_t e = 2 * r.row_ptr[i]; e < 2 * r.row_ptr[i + 1]; e++)
            largest = fmax(largest, fabs(r.val[e]));
        for (int64_t e = 2 * r.row_ptr[i]; e < 2 * r.row_ptr[i + 1]; e++)
            r.val[e] /= largest;
    }
    for (int t = 0; t < 12; t++) {
        const bool direct = t % 2 == 0, bad = t >= 6 && direct;
        const spmv_type type = t < 6 ? SPMV_C128 : SPMV_C64;
        const spmv_operation operation = operations[t / 2 % 3];
        const int64_t bytes = (int64_t)(N * K * spmv_type_size(type));
        struct view a = view_of(ctx, &r, type, 32, SPMV_MEMORY_HOST);
        double known[2 * N * K], b[2 * N * K] = {0}, x[2 * N * K];
        spmv_solver_result result[K];
        spmv_solver *solver = NULL;
        spmv_solver_options o;
        spmv_solver_options_init(&o, sizeof o);
        o.solver = direct ? library : "gmres";
        o.rtol = t < 6 ? 1e-12 : 1e-5;
        o.vectors = t % 3 == 0 ? K : 1;
        for (int i = 0; i < 2 * N * K; i++)
            known[i] = (double)(i * i % 15) - 7;
        multiply_columns(&r, operation, K, known, b);
        if (bad)
            b[2 * (7 * K + 1)] = NAN;
        assert_ok(ctx, spmv_solver_create(ctx, &a.csr, &o, &solver));
        void *const there = support_upload_as(ctx, type_part(type), b, 2 * N * K, 0);
        memset(x, 0, sizeof x);
        void *const to = support_upload_as(ctx, type_part(type), x, 2 * N * K, 0), *const host =
                                                                                       support_zeros(bytes, 1);
        together = 0;
        const spmv_status st = o.vectors == K && operation == SPMV_OPERATION_N
                                   ? spmv_solver_solve(solver, there, to, result, sizeof *result)
                                   : spmv_solver_solve_many(solver, operation, K, there, to, result, sizeof *result);
        assert_int_equal(st, bad ? SPMV_ERROR_NOT_FINITE : SPMV_OK);
        assert_int_equal(together, direct ? K : 0);
        if (bad)
            assert_non_null(strstr(spmv_last_error(ctx), "right-hand side 2 of 3"));
        assert_ok(ctx, spmv_download(ctx, to, host, bytes));
        for (int v = 0; v < K; v++) {
            assert_int_equal(result[v].status, bad && v == 1 ? SPMV_ERROR_NOT_FINITE : SPMV_OK);
            assert_true(!direct || result[v].iterations <= 2);
            for (int i = 0; i < 2 * N && !(bad && v == 1); i++) {
                const int at = (i / 2 * K + v) * 2 + i % 2;
                if (!(fabs(real_at(type_part(type), host, at) - known[at]) <= (t < 6 ? 1e-8 : 1e-2)))
                    fail_msg("%s, operation %d: x[%d] = %g, not %g", o.solver, (int)operation, at,
                             real_at(type_part(type), host, at), known[at]);
            }
        }
        spmv_solver_destroy(solver);
        support_free_in(ctx, there, to);
        free(host);
        release_view(&a);
    }
    release(&r);
}

/* ------------------------------------------------------------- determinants and inertia */

/* The determinant by the library is that of dense factors. */
static void same_determinant(spmv_context *ctx, const struct rows *r, const struct direct *d)
{
    struct direct_determinant det, expected;
    struct direct *square = NULL;
    struct view v = view_of(ctx, r, r->parts == 2 ? SPMV_C128 : SPMV_F64, 64, SPMV_MEMORY_HOST);
    assert_ok(ctx, direct_create_dense(ctx, &v.csr, &square));
    assert_ok(ctx, direct_determinant(square, &expected));
    if (is("cudss") && direct_determinant(d, &det) == SPMV_ERROR_UNSUPPORTED)
        goto done;
    assert_ok(ctx, direct_determinant(d, &det));
    if (!(fabs(det.log - expected.log) <= 1e-10 * (1 + fabs(expected.log)) &&
          fabs(det.phase[0] - expected.phase[0]) + fabs(det.phase[1] - expected.phase[1]) <= 1e-9))
        fail_msg("%s: %.17g (%g, %g), not %.17g (%g, %g)", direct_brief(d), det.log, det.phase[0], det.phase[1],
                 expected.log, expected.phase[0], expected.phase[1]);
done:
    direct_destroy(square);
    release_view(&v);
}

/* A full matrix, positive definite: CHOLMOD has one supernode. */
static struct rows full(int64_t n, int parts)
{
    struct rows r = new_rows(n, n * n, parts);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            add(&r, i, j, i == j ? 2 + (double)(i % 5) : 1 / (double)(n + i + j), (double)(i - j) / (double)(n * n));
    return r;
}

static void determinant(void **state)
{
    spmv_context *ctx = *state;
    for (int parts = 1; parts <= 2; parts++)
        for (int64_t side = 1; side < 10; side++) { /* both signs, and more than f64 can hold */
            const bool last = side == 9 && is("cholmod");
            struct rows r = last ? full(90, parts) : suitable(side, parts),
                        other = last ? full(90, parts) : suitable(side, parts);
            for (int64_t k = 0; k < r.nnz * parts; k++) {
                r.val[k] *= 0x1p100;
                other.val[k] *= 0x1p-200;
            }
            struct direct *d = create(ctx, &r);
            same_determinant(ctx, &r, d);
            struct view v = view_of(ctx, &other, parts == 2 ? SPMV_C128 : SPMV_F64, 64, SPMV_MEMORY_HOST);
            assert_ok(ctx, direct_update(d, &v.csr));
            same_determinant(ctx, &other, d);
            direct_destroy(d);
            release_view(&v);
            release(&r);
            release(&other);
        }
}

/* Of dense factors, by hand: rows of the identity in another order, a complex number, no rows. */
static void determinant_by_hand(void **state)
{
    spmv_context *ctx = *state;
    static const double cycle[] = {0, 2, 0, 0, 0, 3, 5, 0, 0}, swapped[] = {0, 2, 0, 3, 0, 0, 0, 0, 0.5};
    struct rows r[] = {dense(3, cycle), dense(3, swapped), new_rows(1, 1, 2), new_rows(0, 0, 1)};
    add(&r[2], 0, 0, -3, 4);
    static const double expected[][3] = {{30, 1, 0}, {3, -1, 0}, {5, -0.6, 0.8}, {1, 1, 0}};
    for (int i = 0; i < 4; i++) {
        struct direct *d = NULL;
        struct direct_determinant det;
        struct view v = view_of(ctx, &r[i], r[i].parts == 2 ? SPMV_C128 : SPMV_F64, 64, SPMV_MEMORY_HOST);
        assert_ok(ctx, direct_create_dense(ctx, &v.csr, &d));
        assert_ok(ctx, direct_determinant(d, &det));
        assert_true(fabs(det.log - log(expected[i][0])) <= 1e-15 && fabs(det.phase[0] - expected[i][1]) <= 1e-15 &&
                    fabs(det.phase[1] - expected[i][2]) <= 1e-15);
        assert_int_equal(det.negative, i < 3 ? -1 : 0);
        direct_destroy(d);
        release_view(&v);
        release(&r[i]);
    }
}

/* Row i has the entry 4 in column i + 1 (modulo n) and so many others anywhere, whose absolute values sum to less than 2. */
static struct rows spread(int64_t n, int64_t others, int parts, uint64_t seed)
{
    struct rows r = new_rows(n, n * (others + 1), parts);
    for (int64_t i = 0; i < n; i++) {
        add(&r, i, (i + 1) % n, 4, 0);
        for (int64_t e = 0; e < others; e++) {
            const int64_t column = (int64_t)(support_random(&seed) % (uint64_t)n);
            const double re = (double)(support_random(&seed) % 255) - 127,
                         im = (double)(support_random(&seed) % 255) - 127;
            add(&r, i, column, re / (256. * (double)others), im / (256. * (double)others));
        }
    }
    return r;
}

/* b = A x, or A^H x */
static void multiply_by(const struct rows *r, bool adjoint, const double *x, double *b)
{
    memset(b, 0, (size_t)(r->n * r->parts) * sizeof *b);
    for (int64_t i = 0; i < r->n; i++)
        for (int64_t k = r->row_ptr[i]; k < r->row_ptr[i + 1]; k++) {
            const int64_t to = adjoint ? r->col[k] : i, from = adjoint ? i : r->col[k];
            if (r->parts == 1) {
                b[to] += r->val[k] * x[from];
                continue;
            }
            const double re = r->val[2 * k], im = adjoint ? -r->val[2 * k + 1] : r->val[2 * k + 1];
            b[2 * to] += re * x[2 * from] - im * x[2 * from + 1];
            b[2 * to + 1] += re * x[2 * from + 1] + im * x[2 * from];
        }
}

/* Dense factors with rows of few numbers and of many, around the sizes of panels and of words of sets. */
static void dense_patterns(void **state)
{
    spmv_context *ctx = *state;
    static const int64_t sizes[] = {1, 3, 4, 5, 63, 64, 65, 67, 130, 200};
    enum { MOST = 200 };
    double x[2 * MOST], b[2 * MOST], found[2 * MOST];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int variant = 0; variant < 8; variant++) {
            const int64_t n = sizes[s], others[] = {0, 1, n / 8, n};
            const int parts = 1 + variant % 2;
            struct rows r = spread(n, others[variant / 2], parts, (uint64_t)(10 * n + variant));
            struct view v = view_of(ctx, &r, parts == 2 ? SPMV_C128 : SPMV_F64, 64, SPMV_MEMORY_HOST);
            struct direct *d = NULL, *adjoint = NULL;
            assert_ok(ctx, direct_create_dense(ctx, &v.csr, &d));
            assert_ok(ctx, direct_create_adjoint(d, &adjoint));
            for (int64_t i = 0; i < n * parts; i++)
                x[i] = (double)(i % 15) - 7;
            for (int of = 0; of < 2; of++) {
                multiply_by(&r, of == 1, x, b);
                void *const there_b = support_upload(ctx, b, n * parts * 8), *const there =
                                                                                 support_upload(ctx, b, n * parts * 8);
                assert_ok(ctx, direct_solve(of == 1 ? adjoint : d, v.csr.type, there_b, there));
                assert_ok(ctx, spmv_download(ctx, there, found, n * parts * 8));
                support_free_in(ctx, there_b, there);
                for (int64_t i = 0; i < n * parts; i++)
                    if (!(fabs(found[i] - x[i]) <= 1e-13))
                        fail_msg("%lld rows, variant %d: %.17g, not %.17g", (long long)n, variant, found[i], x[i]);
            }
            direct_destroy(adjoint);
            direct_destroy(d);
            release_view(&v);
            release(&r);
        }
}

/* Of a library that counts eigenvalues. */
static void inertia(void **state)
{
    spmv_context *ctx = *state;
    enum { SIDE = 6 };
    struct rows r = is("cholmod") ? hermitian_grid(SIDE, 2, 0) : saddle(SIDE);
    struct direct *d = create(ctx, &r);
    struct direct_determinant det;
    assert_ok(ctx, direct_determinant(d, &det));
    const int64_t constraints = is("cholmod") ? 0 : SIDE * SIDE - SIDE;
    assert_int_equal(det.negative, constraints);
    assert_int_equal(det.positive, SIDE * SIDE);
    assert_int_equal(det.zero, 0);
    direct_destroy(d);
    release(&r);
}

/* ||x - known|| stays below this many roundings. */
static void solves(spmv_context *ctx, struct direct *d, const struct rows *r, double bound)
{
    const spmv_type type = r->parts == 2 ? SPMV_C128 : SPMV_F64;
    double *const known = support_zeros(r->n * r->parts, 8), *const b = support_zeros(r->n * r->parts, 8),
                  *const x = support_zeros(r->n * r->parts, 8);
    for (int64_t i = 0; i < r->n * r->parts; i++)
        known[i] = (double)(i * i % 15) - 7;
    multiply(r, known, b);
    assert_ok(ctx, solve(ctx, d, type, r->n, b, false, x));
    for (int64_t i = 0; i < r->n * r->parts; i++)
        assert_true(fabs(x[i] - known[i]) <= bound * 0x1p-50);
    support_free(known, b, x);
}

static void definite(void **state)
{
    spmv_context *ctx = *state;
    for (int parts = 1; parts <= 2; parts++) {
        struct rows r = hermitian_grid(17, parts, 0), indefinite = hermitian_grid(17, parts, -0.5),
                    general = random_rows(50, parts, false, false, 3);
        struct direct *d = create(ctx, &r);
        solves(ctx, d, &r, 1000);
        assert_non_null(strstr(direct_describe(d), "CHOLMOD "));
        assert_true(direct_rcond(d) > 1e-4 && direct_rcond(d) < 1);
        direct_destroy(d);
        refused(ctx, &indefinite, SPMV_ERROR_NOT_POSITIVE, "is not above 0");
        refused(ctx, &general, SPMV_ERROR_NOT_POSITIVE, "symmetric or Hermitian");
        release(&r);
        release(&indefinite);
        release(&general);
    }
    /* one entry differs by a rounding, and by more */
    struct rows r = grid(5);
    r.val[1] *= 1 + 0x1p-52;
    struct direct *d = create(ctx, &r);
    r.val[1] *= 1 + 0x1p-40;
    refused(ctx, &r, SPMV_ERROR_NOT_POSITIVE, "symmetric or Hermitian");
    struct view v = view_of(ctx, &r, SPMV_F64, 64, SPMV_MEMORY_HOST); /* also as new values */
    assert_fails(ctx, direct_update(d, &v.csr), SPMV_ERROR_NOT_POSITIVE, "symmetric or Hermitian");
    direct_destroy(d);
    release_view(&v);
    release(&r);
}

static void indefinite(void **state)
{
    spmv_context *ctx = *state;
    enum { SIDE = 14, ROWS = 2 * SIDE * SIDE - SIDE };
    struct rows r = saddle(SIDE), general = random_rows(50, 1, false, false, 3), complex = hermitian_grid(9, 2, 0),
                shifted = hermitian_grid(17, 1, -0.5);
    double b[ROWS], x[2][ROWS];
    uint64_t seed = 5;
    char count[64];
    snprintf(count, sizeof count, "%d negative eigenvalues", SIDE * SIDE - SIDE); /* as many as constraints */
    for (int i = 0; i < ROWS; i++)
        b[i] = support_uniform(&seed);
    struct direct *d = create(ctx, &r), *again = create(ctx, &r);
    solves(ctx, d, &r, 1e4);
    assert_non_null(strstr(direct_describe(d), "MUMPS "));
    assert_non_null(strstr(direct_describe(d), count));
    assert_ok(ctx, solve(ctx, d, SPMV_F64, ROWS, b, false, x[0]));
    assert_ok(ctx, solve(ctx, again, SPMV_F64, ROWS, b, true, x[1]));
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    direct_destroy(again);
    /* new values, and values that are not symmetric */
    for (int64_t k = 0; k < r.nnz; k++)
        r.val[k] *= 3;
    struct view v = view_of(ctx, &r, SPMV_F64, 64, SPMV_MEMORY_HOST);
    assert_ok(ctx, direct_update(d, &v.csr));
    solves(ctx, d, &r, 1e4);
    ((double *)v.val)[1] *= 2;
    assert_fails(ctx, direct_update(d, &v.csr), SPMV_ERROR_NOT_SYMMETRIC, "takes a symmetric matrix");
    direct_destroy(d);
    release_view(&v);
    d = create(ctx, &shifted);
    solves(ctx, d, &shifted, 1e4);
    direct_destroy(d);
    refused(ctx, &general, SPMV_ERROR_NOT_SYMMETRIC, "takes a symmetric matrix");
    refused(ctx, &complex, SPMV_ERROR_NOT_SYMMETRIC, "takes a symmetric matrix");
    release(&r);
    release(&general);
    release(&complex);
    release(&shifted);
    /* singular: a row and a column of zeros */
    struct rows zero = saddle(4);
    for (int64_t i = 0; i < zero.n; i++)
        for (int64_t k = zero.row_ptr[i]; k < zero.row_ptr[i + 1]; k++)
            zero.val[k] = i == 20 || zero.col[k] == 20 ? 0 : zero.val[k];
    refused(ctx, &zero, SPMV_ERROR_SINGULAR, "singular");
    release(&zero);
    /* singular up to rounding: there are factors */
    struct rows periodic = new_rows(30, 90, 1);
    for (int64_t i = 0; i < 30; i++)
        for (int64_t j = 0; j < 30; j++)
            if (i == j || (i + 1) % 30 == j || (j + 1) % 30 == i)
                add(&periodic, i, j, i == j ? 2 * 0.1 : -0.1, 0);
    d = create(ctx, &periodic);
    assert_true(direct_rcond(d) == 0);
    struct direct_determinant det;
    assert_ok(ctx, direct_determinant(d, &det));
    assert_true(det.positive == 29 && det.negative == 0 && det.zero == 1);
    direct_destroy(d);
    release(&periodic);
}

/* ------------------------------------------------------------- the choice, with all modules */

/* The library of symmetric matrices that are not positive definite: MUMPS, else KLU for light ones. */
static const char *of_indefinite = "KLU";

static void takes(spmv_context *ctx, struct rows r, const char *name)
{
    struct direct *d = create(ctx, &r);
    if (strstr(direct_brief(d), name) == NULL || strstr(direct_brief(d), "since") == NULL)
        fail_msg("%s instead of %s", direct_brief(d), name);
    solves(ctx, d, &r, 1e5);
    direct_destroy(d);
    release(&r);
}

/* The Laplacian of a cube with wind. */
static struct rows windy_cube(int64_t side)
{
    const int64_t n = side * side * side, step[] = {1, side, side * side};
    struct rows r = new_rows(n, 7 * n, 1);
    for (int64_t i = 0; i < n; i++) {
        for (int a = 2; a >= 0; a--)
            if (i / step[a] % side > 0)
                add(&r, i, i - step[a], -1.5, 0);
        add(&r, i, i, 6, 0);
        for (int a = 0; a < 3; a++)
            if (i / step[a] % side < side - 1)
                add(&r, i, i + step[a], -0.5, 0);
    }
    return r;
}

static void choice(void **state)
{
    spmv_context *ctx = *state;
    const double one_below[] = {1, 2, 2, 1};
    takes(ctx, grid(12), "CHOLMOD");
    takes(ctx, hermitian_grid(9, 2, 0), "CHOLMOD");
    takes(ctx, hermitian_grid(9, 1, -0.5), of_indefinite);
    takes(ctx, dense(2, one_below), of_indefinite);
    takes(ctx, hermitian_grid(9, 2, -0.5), "KLU");
    takes(ctx, complex_symmetric(9), of_indefinite);
    takes(ctx, random_rows(60, 1, true, true, 8), "UMFPACK"); /* ordered by COLAMD: its operations are not known */
    takes(ctx, windy_cube(4), "KLU");
    takes(ctx, windy_cube(14), "UMFPACK");
}

/* Where the library for heavy factors is expected to take longer than the limit as well, it is not asked. */
static void analyses_within_a_limit(void **state)
{
    spmv_context *ctx = *state;
    struct direct *d = NULL;
    struct rows cube = windy_cube(14);
    struct view v = view_of(ctx, &cube, SPMV_F64, 64, SPMV_MEMORY_HOST);
    assert_ok(ctx, direct_analyse(ctx, &v.csr, 1, &d)); /* one nanosecond */
    assert_true(direct_expected(d) > 1);
    assert_ok(ctx, direct_factor(d, &v.csr));                          /* by KLU, whose analysis was the only one */
    assert_ptr_equal(strstr(direct_brief(d), "KLU"), direct_brief(d)); /* it begins with that */
    direct_destroy(d);
    release_view(&v);
    release(&cube);
}

/* Light factors that do not fit the memory by KLU, which stores an index with each entry, are those of UMFPACK; if
 * neither fits, the message says what is needed. */
static void fallback_on_memory(void **state)
{
    spmv_context *ctx = *state;
    struct direct *d = NULL;
    struct rows r = windy_cube(5);
    struct view v = view_of(ctx, &r, SPMV_F64, 64, SPMV_MEMORY_HOST);
    assert_ok(ctx, direct_create(ctx, &v.csr, "direct:klu", &d));
    const int64_t entries = strtoll(strstr(direct_describe(d), "ordering AMD, ") + strlen("ordering AMD, "), NULL, 10);
    direct_destroy(d);
    machine = 12 * entries; /* KLU: 16 bytes an entry; UMFPACK: 8 */
    takes(ctx, windy_cube(5), "UMFPACK");
    machine = 2 * entries;
    assert_fails(ctx, direct_create(ctx, &v.csr, NULL, &d), SPMV_ERROR_MEMORY, "direct: the factors");
    machine = INT64_MAX;
    release_view(&v);
    release(&r);
    /* in the factorisation, of a matrix whose factors the analysis does not tell */
    int64_t limit = 0;
    r = random_rows(3000, 1, true, true, 8);
    v = view_of(ctx, &r, SPMV_F64, 64, SPMV_MEMORY_HOST);
    spmv_memory_limit((int64_t)1 << 40);
    spmv_memory_limit(((int64_t)1 << 40) - memory_limit_left(&limit) + 3000000);
    assert_fails(ctx, direct_create(ctx, &v.csr, "direct:umfpack", &d), SPMV_ERROR_MEMORY, "MB expected) by UMFPACK");
    assert_non_null(strstr(spmv_last_error(ctx), " bytes more are needed; the limit of "));
    spmv_memory_limit(0);
    release_view(&v);
    release(&r);
}

/* New values: definite, indefinite, definite, general; the bits are those of a new solver. */
static void new_values(void **state)
{
    spmv_context *ctx = *state;
    static const double shift[] = {0, -0.5, 0.25, 1};
    struct rows first = hermitian_grid(11, 1, 0);
    double b[121], x[2][121];
    uint64_t seed = 3;
    for (int i = 0; i < 121; i++)
        b[i] = support_uniform(&seed);
    struct direct *d = create(ctx, &first);
    for (int t = 0; t < 4; t++) {
        struct rows r = hermitian_grid(11, 1, shift[t]);
        if (t == 3)
            r.val[1] = -0.25;
        struct view v = view_of(ctx, &r, SPMV_F64, 64, t % 2 == 0 ? SPMV_MEMORY_HOST : SPMV_MEMORY_CONTEXT);
        struct direct *const new = create(ctx, &r);
        assert_ok(ctx, direct_update(d, &v.csr));
        assert_string_equal(direct_describe(d), direct_describe(new));
        assert_ok(ctx, solve(ctx, d, SPMV_F64, 121, b, false, x[0]));
        assert_ok(ctx, solve(ctx, new, SPMV_F64, 121, b, false, x[1]));
        assert_memory_equal(x[0], x[1], sizeof x[0]);
        direct_destroy(new);
        release_view(&v);
        release(&r);
    }
    /* values that fail, and then others */
    struct rows r = hermitian_grid(11, 1, 0);
    struct view v = view_of(ctx, &r, SPMV_F64, 64, SPMV_MEMORY_HOST);
    double *const val = v.val;
    val[3] = NAN;
    assert_fails(ctx, direct_update(d, &v.csr), SPMV_ERROR_NOT_FINITE, "nan");
    val[3] = r.val[3];
    assert_ok(ctx, direct_update(d, &v.csr));
    solves(ctx, d, &r, 1000);
    direct_destroy(d);
    release_view(&v);
    release(&r);
    release(&first);
}

/* What follows a module that is missing: MUMPS or KLU in place of CHOLMOD. */
static void missing_module(void **state)
{
    spmv_context *ctx = *state;
    const struct broken_module broken = broken_module_begin("spmv_direct_cholmod.so");
    takes(ctx, grid(12), of_indefinite);
    broken_module_end(&broken);
}

/* Factors on a GPU: definite, symmetric and not, real and complex; new values that are indefinite. */
static void on_gpu(void **state)
{
    spmv_context *ctx = *state;
    for (int parts = 1; parts <= 2; parts++)
        for (int shifted = 0; shifted < 2; shifted++) {
            struct rows r = hermitian_grid(17, parts, shifted * -0.5);
            struct direct *d = create(ctx, &r);
            assert_non_null(strstr(direct_describe(d), "cuDSS "));
            solves(ctx, d, &r, 1e5);
            direct_destroy(d);
            release(&r);
        }
    struct rows cube = windy_cube(9), first = hermitian_grid(11, 1, 0), second = hermitian_grid(11, 1, -0.5);
    struct direct *d = create(ctx, &cube);
    solves(ctx, d, &cube, 1e5);
    direct_destroy(d);
    d = create(ctx, &first);
    struct view v = view_of(ctx, &second, SPMV_F64, 64, SPMV_MEMORY_CONTEXT);
    assert_ok(ctx, direct_update(d, &v.csr));
    solves(ctx, d, &second, 1e5);
    direct_destroy(d);
    release_view(&v);
    release(&cube);
    release(&first);
    release(&second);
}

/* The same matrix with entries in random order in each row, each the sum of two if repeated. */
static struct rows shuffled(const struct rows *r, bool repeated, uint64_t seed)
{
    struct rows s = new_rows(r->n, 2 * r->nnz, r->parts);
    for (int64_t i = 0; i < r->n; i++) {
        for (int64_t k = r->row_ptr[i]; k < r->row_ptr[i + 1]; k++) {
            const double re = r->val[k * r->parts], im = r->parts == 2 ? r->val[k * r->parts + 1] : 0;
            const double share = repeated ? 0.25 : 1;
            add(&s, i, r->col[k], share * re, share * im);
            if (repeated)
                add(&s, i, r->col[k], 0.75 * re, 0.75 * im);
        }
        s.row_ptr[i + 1] = s.nnz;
        for (int64_t k = s.nnz - 1; k > s.row_ptr[i]; k--)
            swap(&s, k, s.row_ptr[i] + (int64_t)(support_random(&seed) % (uint64_t)(k - s.row_ptr[i] + 1)));
    }
    return s;
}

/* A matrix for a library without pivots beside the diagonal: 0 Hermitian, 1 symmetric, 2 general. */
static struct rows on_diagonal(int kind, int parts, double shift)
{
    if (kind == 1)
        return complex_symmetric(7);
    struct rows r = hermitian_grid(7, parts, shift);
    for (int64_t k = 0; kind == 2 && k < r.nnz; k++)
        r.val[k * parts] *= k % 3 == 1 ? 0.5 : 1;
    return r;
}

/* All types, offsets of both sizes, both memories; columns in order, in any order, repeated: the same numbers and, where
 * values are not rounded, the same bits; of new values too. */
static void layouts_on_gpu(void **state)
{
    static const spmv_type types[] = {SPMV_F64, SPMV_F32, SPMV_C64, SPMV_C128};
    spmv_context *ctx = *state;
    for (int t = 0; t < 4; t++)
        for (int kind = 0; kind < 3; kind++) {
            const spmv_type type = types[t];
            const int parts = type_parts(type);
            if (kind == 1 && parts == 1)
                continue;
            struct rows first = on_diagonal(kind, parts, 0), second = on_diagonal(kind, parts, 1);
            const int64_t n = first.n, count = n * parts;
            double *const known = support_zeros(count, 8), *const b = support_zeros(count, 8),
                          *const x = support_zeros(count, 8), *const before = support_zeros(2 * count, 8);
            for (int64_t i = 0; i < count; i++)
                known[i] = (double)(i * i % 15) - 7;
            for (int variant = 0; variant < 6; variant++) {
                struct rows r[2];
                for (int now = 0; now < 2; now++)
                    r[now] = shuffled(now == 0 ? &first : &second, variant % 3 == 2, 8);
                if (variant % 3 == 0)
                    for (int now = 0; now < 2; now++) {
                        release(&r[now]);
                        r[now] = on_diagonal(kind, parts, now);
                    }
                struct direct *d = NULL;
                for (int now = 0; now < 2; now++) {
                    const struct rows *const a = &r[now];
                    struct view v = view_of(ctx, a, type, variant < 3 ? 32 : 64,
                                            variant % 2 == 0 ? SPMV_MEMORY_CONTEXT : SPMV_MEMORY_HOST);
                    multiply(a, known, b);
                    if (now == 0)
                        assert_ok(ctx, direct_create(ctx, &v.csr, library, &d));
                    else
                        assert_ok(ctx, direct_update(d, &v.csr));
                    release_view(&v);
                    assert_ok(ctx, solve(ctx, d, type, n, b, variant % 2 == 1, x));
                    const double bound = type_part(type) == SPMV_F32 ? 1e-3 : 1e5 * 0x1p-50;
                    for (int64_t i = 0; i < count; i++)
                        if (!(fabs(x[i] - known[i]) <= bound))
                            fail_msg("%s, kind %d, variant %d: x[%lld] = %.17g, not %g", spmv_type_name(type), kind,
                                     variant, (long long)i, x[i], known[i]);
                    if (variant > 0)
                        assert_memory_equal(x, before + now * count, (size_t)count * 8);
                    memcpy(before + now * count, x, (size_t)count * 8);
                }
                assert_true(direct_bytes(d) > 12 * first.nnz);
                direct_destroy(d);
                release(&r[0]);
                release(&r[1]);
            }
            support_free(known, b, x, before);
            release(&first);
            release(&second);
        }
}

/* Numbers that are not finite: of A, at first and later; of b, in a column; of x, in f32 alone. */
static void not_finite_on_gpu(void **state)
{
    spmv_context *ctx = *state;
    struct direct *d = NULL;
    struct rows r = grid(3);
    double b[9] = {0}, x[9];
    r.val[4] = NAN; /* row 1, column 1 */
    refused(ctx, &r, SPMV_ERROR_NOT_FINITE, "row 1, column 1");
    r.val[4] = 4;
    d = create(ctx, &r);
    r.val[r.nnz - 1] = -INFINITY;
    struct view v = view_of(ctx, &r, SPMV_F64, 64, SPMV_MEMORY_CONTEXT);
    assert_fails(ctx, direct_update(d, &v.csr), SPMV_ERROR_NOT_FINITE, "row 8, column 8 (counted from 0) is -inf");
    assert_fails(ctx, direct_solve_columns(d, SPMV_F64, 1, 9, v.there[2], v.there[2]), SPMV_ERROR_UNSUPPORTED,
                 "no factors");
    release_view(&v);
    r.val[r.nnz - 1] = 4;
    v = view_of(ctx, &r, SPMV_F64, 64, SPMV_MEMORY_CONTEXT);
    assert_ok(ctx, direct_update(d, &v.csr));
    solves(ctx, d, &r, 1000);
    b[5] = INFINITY;
    assert_fails(ctx, solve(ctx, d, SPMV_F32, 9, b, false, x), SPMV_ERROR_NOT_FINITE,
                 "b has inf in row 5 (counted from 0)");
    direct_destroy(d);
    release_view(&v);
    for (int64_t k = 0; k < r.nnz; k++)
        r.val[k] *= 0x1p-32;
    d = create(ctx, &r);
    b[5] = 0x1p110;
    assert_ok(ctx, solve(ctx, d, SPMV_F64, 9, b, false, x));
    assert_fails(ctx, solve(ctx, d, SPMV_F32, 9, b, false, x), SPMV_ERROR_NOT_FINITE, "x has inf in row");
    direct_destroy(d);
    release(&r);
}

/* New values that make a symmetric matrix general, and symmetric again. */
static void other_kind_on_gpu(void **state)
{
    spmv_context *ctx = *state;
    struct rows r = hermitian_grid(6, 1, 0);
    struct direct *d = create(ctx, &r);
    for (int turn = 0; turn < 4; turn++) {
        r.val[1] = turn % 2 == 0 ? -0.25 : -1;
        struct view v = view_of(ctx, &r, SPMV_F64, 32, turn < 2 ? SPMV_MEMORY_CONTEXT : SPMV_MEMORY_HOST);
        assert_ok(ctx, direct_update(d, &v.csr));
        solves(ctx, d, &r, 1000);
        release_view(&v);
    }
    direct_destroy(d);
    release(&r);
}

#ifdef EMULATED_MODULES
/* Without a library on the host, that for a GPU is taken. Its factors of [0 1; 1 0] replace pivots, and are refused. */
static void chosen_on_gpu(void **state)
{
    spmv_context *ctx = *state;
    static const double crossed[] = {0, 1, 1, 0};
    struct rows r = hermitian_grid(8, 2, 0), cross = dense(2, crossed);
    struct view v = view_of(ctx, &cross, SPMV_F64, 64, SPMV_MEMORY_CONTEXT);
    struct direct *d = create(ctx, &r);
    assert_non_null(strstr(direct_brief(d), "cuDSS"));
    assert_non_null(strstr(direct_brief(d), "since no library on the host"));
    solves(ctx, d, &r, 1000);
    direct_destroy(d);
    assert_fails(ctx, direct_create(ctx, &v.csr, NULL, &d), SPMV_ERROR_UNSUPPORTED, "");
    assert_null(d);
    release_view(&v);
    release(&cross);
    release(&r);
}
#endif

/* Whether the module is available. If not, prints why. */
static bool have_module(const char *name)
{
    spmv_context *ctx = support_context();
    struct rows r = grid(2);
    struct view v = view_of(ctx, &r, SPMV_F64, 64, SPMV_MEMORY_HOST);
    struct direct *d = NULL;
    const spmv_status st = direct_create(ctx, &v.csr, name, &d);
    if (st == SPMV_ERROR_UNSUPPORTED)
        printf("skipped: %s\n", spmv_last_error(ctx));
    direct_destroy(d);
    release_view(&v);
    release(&r);
    spmv_context_destroy(ctx);
    return st != SPMV_ERROR_UNSUPPORTED;
}

/* From now on the module for an emulated GPU is found, with the others of SPMV_MODULE_PATH; or not any more. */
static void emulated_module(bool on)
{
#ifdef EMULATED_MODULES
    const char *const before = getenv("SPMV_MODULE_PATH");
    char path[1024];
    snprintf(path, sizeof path, "%s:%s", EMULATED_MODULES, before != NULL ? before : "");
    if (on)
        setenv("SPMV_MODULE_PATH", path, 1);
    else
        unsetenv("SPMV_MODULE_PATH");
#else
    (void)on;
#endif
}

/* Whether the build has made the module of this name. */
static bool is_built(const char *name)
{
    const char *const built = getenv("SPMV_DIRECT_BUILT");
    return built != NULL && strstr(built, name) != NULL;
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    const struct CMUnitTest without[] = {with_context(broken_module)};
    const struct CMUnitTest general[] = {
        with_context(known_answers),   with_context(patterns),        with_context(extreme_scales),
        with_context(small_sizes),     with_context(same_bits),       with_context(singular),
        with_context(not_finite),      with_context(memory),          with_context(broken_module),
        with_context(wrong_arguments), with_context(several),         with_context(several_of_a_solver),
        with_context(any_number),      with_context(several_complex), with_context(determinant)};
    const struct CMUnitTest gpu[] = {with_context(on_gpu),
                                     with_context(small_sizes),
                                     with_context(wrong_arguments),
                                     with_context(several),
                                     with_context(several_of_a_solver),
                                     with_context(any_number),
                                     with_context(several_complex),
                                     with_context(determinant),
                                     with_context(layouts_on_gpu),
                                     with_context(not_finite_on_gpu),
                                     with_context(other_kind_on_gpu)};
    const struct CMUnitTest klu[] = {with_context(description)};
    const struct CMUnitTest cholmod[] = {with_context(definite),    with_context(broken_module),
                                         with_context(several),     with_context(several_of_a_solver),
                                         with_context(any_number),  with_context(several_complex),
                                         with_context(determinant), with_context(inertia)};
    const struct CMUnitTest mumps[] = {with_context(indefinite),  with_context(broken_module),
                                       with_context(several),     with_context(several_of_a_solver),
                                       with_context(any_number),  with_context(several_complex),
                                       with_context(determinant), with_context(inertia)};
    const struct CMUnitTest always[] = {with_context(determinant_by_hand), with_context(dense_patterns)};
    const struct CMUnitTest all[] = {with_context(choice), with_context(analyses_within_a_limit),
                                     with_context(fallback_on_memory), with_context(new_values),
                                     with_context(missing_module)};
    int failed = cmocka_run_group_tests(always, NULL, NULL), there = 0, count = 0;
    for (int i = 0; direct_named(i) != NULL; i++) {
        library = direct_named(i);
        if (is("cudss")) {
            emulated_module(true);
            if (have_module(library))
                failed += cmocka_run_group_tests(gpu, NULL, NULL);
            emulated_module(false);
            continue;
        }
        const bool optional = is("mumps");
        count += !optional;
        const bool found = have_module(library) || is_built(library + strlen("direct:"));
        there += found && !optional;
        of_indefinite = found && optional ? "MUMPS" : of_indefinite;
        if (!found)
            failed += cmocka_run_group_tests(without, NULL, NULL);
        else if (is("cholmod"))
            failed += cmocka_run_group_tests(cholmod, NULL, NULL);
        else if (is("mumps"))
            failed += cmocka_run_group_tests(mumps, NULL, NULL);
        else
            failed += cmocka_run_group_tests(general, NULL, NULL);
        if (found && is("klu"))
            failed += cmocka_run_group_tests(klu, NULL, NULL);
    }
    library = NULL;
    if (there == count && !have_module("direct:cudss")) /* which takes what is slow on the host */
        failed += cmocka_run_group_tests(all, NULL, NULL);
#ifdef EMULATED_MODULES
    no_modules();
    emulated_module(true);
    const struct CMUnitTest alone[] = {with_context(chosen_on_gpu)};
    failed += cmocka_run_group_tests(alone, NULL, NULL);
#endif
    return failed != 0 ? 1 : there == 0 ? SKIPPED : 0;
}
