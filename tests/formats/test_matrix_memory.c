/* Matrices in host memory and in the context's memory: copies, the transpose, the diagonal, row
 * sums. Arrays in the context's memory give the bits of arrays in host memory on ref.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support.h"
#include "tests/support/support_coo.h"

static const spmv_type types[] = {SPMV_F64, SPMV_F32, SPMV_C128, SPMV_C64};
enum { TYPES = sizeof types / sizeof types[0] };

static const char *const specs[] = {"uniform:300,170,6", "uniform:40,3000,9", "empty:500,0.7",       "poisson2d:17",
                                    "dense:1,900",       "dense:900,1",       "powerlaw:700,5,2,300"};
enum { SPECS = sizeof specs / sizeof specs[0] };

/* A matrix of the SPEC with random values, also in the imaginary parts. */
static spmv_matrix *make(spmv_context *ctx, const char *spec, spmv_type type)
{
    spmv_matrix *m = NULL;
    uint64_t random = 7;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, type, &m));
    const bool is_complex = type_is_complex(type);
    for (int64_t k = 0; k < (is_complex ? 2 : 1) * m->nnz; k++)
        real_set(type_part(type), m->val, k, support_uniform(&random));
    return m;
}

/* The matrix in the context's memory; bits of its offsets. */
struct there {
    spmv_csr view;
    void *row_ptr, *col, *val;
};

static struct there bring(spmv_context *ctx, const spmv_csr *a, int bits)
{
    struct there t = {.view = *a};
    int32_t *narrow = support_zeros(a->rows + 1, sizeof *narrow);
    int64_t *wide = support_zeros(a->rows + 1, sizeof *wide);
    for (int64_t i = 0; i <= a->rows; i++)
        narrow[i] = (int32_t)(wide[i] = row_first(a, i));
    t.row_ptr = support_upload(ctx, bits == 32 ? (const void *)narrow : wide, (a->rows + 1) * (bits / 8));
    support_free(narrow, wide);
    t.col = support_upload(ctx, a->col, a->nnz * 4);
    const int64_t stored = max_i64(a->nnz, 1); /* values of no entries are not NULL, unlike a pattern's */
    t.val = a->val != NULL ? support_upload(ctx, a->val, stored * (int64_t)spmv_type_size(a->type)) : NULL;
    t.view.row_ptr = t.row_ptr;
    t.view.row_ptr_bits = bits;
    t.view.col = t.col;
    t.view.val = t.val;
    t.view.memory = SPMV_MEMORY_CONTEXT;
    return t;
}

static void leave(spmv_context *ctx, struct there *t)
{
    support_free_in(ctx, t->row_ptr, t->col, t->val);
}

/* Asserts that a matrix, in any memory, equals a view in host memory. */
static void assert_equals(spmv_context *ctx, const spmv_matrix *got, spmv_memory memory, const spmv_csr *expected)
{
    spmv_csr view;
    spmv_matrix *here = NULL;
    spmv_matrix_view(got, &view);
    assert_int_equal(view.memory, memory);
    assert_int_equal(view.row_ptr_bits, 64);
    assert_ok(ctx, spmv_matrix_copy(ctx, &view, SPMV_MEMORY_HOST, &here));
    spmv_matrix_view(here, &view);
    assert_int_equal(view.memory, SPMV_MEMORY_HOST);
    assert_same_csr(&view, expected);
    spmv_matrix_destroy(here);
}

/* All functions on one matrix. */
static void check(spmv_context *ctx, spmv_context *ref, const spmv_csr *a)
{
    const int64_t size = a->val != NULL ? (int64_t)spmv_type_size(a->type) : 8;
    const int64_t n = min_i64(a->rows, a->cols);
    spmv_matrix *transposed = NULL, *got = NULL, *again = NULL;
    spmv_csr expected, view;
    void *expected_diagonal = support_zeros(n, (size_t)size), *expected_sums = support_zeros(a->rows, (size_t)size);
    void *host = support_zeros(max_i64(n, a->rows), (size_t)size), *device = NULL;
    assert_ok(ref, spmv_matrix_transpose(ref, a, &transposed));
    spmv_matrix_view(transposed, &expected);
    assert_ok(ref, spmv_matrix_diagonal(ref, a, expected_diagonal));
    assert_ok(ref, spmv_matrix_row_sums(ref, a, expected_sums));
    assert_ok(ctx, spmv_alloc(ctx, max_i64(1, max_i64(n, a->rows)) * size, &device));
    for (int bits = 32; bits <= 64; bits += 32) {
        struct there t = bring(ctx, a, bits);
        assert_ok(ctx, spmv_matrix_copy(ctx, &t.view, SPMV_MEMORY_CONTEXT, &got));
        spmv_matrix_view(got, &view);
        assert_ok(ctx, spmv_matrix_copy(ctx, &view, SPMV_MEMORY_CONTEXT, &again));
        assert_equals(ctx, got, SPMV_MEMORY_CONTEXT, a);
        assert_equals(ctx, again, SPMV_MEMORY_CONTEXT, a);
        spmv_matrix_destroy(got);
        spmv_matrix_destroy(again);
        assert_ok(ctx, spmv_matrix_copy(ctx, &t.view, SPMV_MEMORY_HOST, &got));
        assert_equals(ctx, got, SPMV_MEMORY_HOST, a);
        spmv_matrix_destroy(got);
        assert_ok(ctx, spmv_matrix_transpose(ctx, &t.view, &got));
        assert_equals(ctx, got, SPMV_MEMORY_CONTEXT, &expected);
        spmv_matrix_destroy(got);
        assert_ok(ctx, spmv_matrix_diagonal(ctx, &t.view, device));
        assert_ok(ctx, spmv_download(ctx, device, host, n * size));
        assert_memory_equal(host, expected_diagonal, (size_t)(n * size));
        assert_ok(ctx, spmv_matrix_row_sums(ctx, &t.view, device));
        assert_ok(ctx, spmv_download(ctx, device, host, a->rows * size));
        assert_memory_equal(host, expected_sums, (size_t)(a->rows * size));
        leave(ctx, &t);
    }
    assert_ok(ctx, spmv_matrix_copy(ctx, a, SPMV_MEMORY_CONTEXT, &got));
    assert_equals(ctx, got, SPMV_MEMORY_CONTEXT, a);
    spmv_matrix_destroy(got);
    assert_ok(ctx, spmv_matrix_transpose(ctx, a, &got));
    assert_equals(ctx, got, SPMV_MEMORY_HOST, &expected);
    spmv_matrix_destroy(got);
    assert_ok(ctx, spmv_matrix_diagonal(ctx, a, host)); /* host arrays, results in host memory */
    assert_memory_equal(host, expected_diagonal, (size_t)(n * size));
    assert_ok(ctx, spmv_matrix_row_sums(ctx, a, host));
    assert_memory_equal(host, expected_sums, (size_t)(a->rows * size));
    spmv_free(ctx, device);
    spmv_matrix_destroy(transposed);
    support_free(host, expected_diagonal, expected_sums);
}

static void both_memories(void **state)
{
    spmv_context *ctx = *state, *ref = support_context_on(SPMV_BACKEND_REF, 1);
    for (int s = 0; s < SPECS; s++)
        for (int t = 0; t <= TYPES; t++) {
            spmv_matrix *m = make(ref, specs[s], t < TYPES ? types[t] : SPMV_F64);
            spmv_csr a;
            spmv_matrix_view(m, &a);
            if (t == TYPES)
                a.val = NULL;
            check(ctx, ref, &a);
            spmv_matrix_destroy(m);
        }
    spmv_context_destroy(ref);
}

static void without_entries(void **state)
{
    spmv_context *ctx = *state, *ref = support_context_on(SPMV_BACKEND_REF, 1);
    static const int32_t row_ptr[6] = {0, 0, 0, 0, 0, 0};
    static const int64_t sizes[][2] = {{0, 0}, {0, 5}, {5, 0}, {5, 3}};
    for (int s = 0; s < 4; s++) {
        const double none = 0;
        const spmv_csr a = support_csr(sizes[s][0], sizes[s][1], row_ptr, NULL, &none);
        check(ctx, ref, &a);
    }
    spmv_context_destroy(ref);
}

/* Compares the row sums and the diagonal of three rows; device: memory for them. */
static void check_three(spmv_context *ctx, const spmv_csr *a, void *device, const double sums[3],
                        const double diagonal[3])
{
    double got[3];
    assert_ok(ctx, spmv_matrix_row_sums(ctx, a, device));
    assert_ok(ctx, spmv_download(ctx, device, got, sizeof got));
    assert_memory_equal(got, sums, sizeof got);
    assert_ok(ctx, spmv_matrix_diagonal(ctx, a, device));
    assert_ok(ctx, spmv_download(ctx, device, got, sizeof got));
    assert_memory_equal(got, diagonal, sizeof got);
}

/*  | 1e16 .   1   -1e16 |
 *  | .    2   .    .    |
 *  | .    .   .    .    |   1e16 + 1 rounds to 1e16, so the first sum is 0 in this order only. */
static void by_hand(void **state)
{
    spmv_context *ctx = *state;
    static const int32_t row_ptr[4] = {0, 3, 4, 4}, col[4] = {0, 2, 3, 1};
    static const double val[4] = {1e16, 1, -1e16, 2};
    spmv_csr a = support_csr(3, 4, row_ptr, col, val);
    const double before[3] = {9, 9, 9};
    struct there t = bring(ctx, &a, 32);
    void *device = support_upload(ctx, before, sizeof before);
    check_three(ctx, &t.view, device, (double[]){0, 2, 0}, (double[]){1e16, 2, 0});
    t.view.val = NULL; /* a pattern: ones, f64 */
    check_three(ctx, &t.view, device, (double[]){3, 1, 0}, (double[]){1, 1, 0});
    spmv_free(ctx, device);
    leave(ctx, &t);
}

static void refusals(void **state)
{
    spmv_context *ctx = *state;
    static const int32_t row_ptr[3] = {0, 1, 2}, wrong[3] = {0, 2, 1}, col[2] = {0, 1};
    static const double val[2] = {1, 2};
    spmv_csr a = support_csr(2, 2, row_ptr, col, val), bad = support_csr(2, 2, wrong, col, val);
    spmv_matrix *m = NULL;
    double two[2];
    bad.nnz = 2;
    assert_fails(ctx, spmv_matrix_copy(ctx, &a, (spmv_memory)7, &m), SPMV_ERROR_ARGUMENT, "memory is 7");
    assert_null(m);
    assert_fails(ctx, spmv_matrix_copy(ctx, &bad, SPMV_MEMORY_CONTEXT, &m), SPMV_ERROR_SIZE, "row 1");
    assert_null(m);
    assert_fails(ctx, spmv_matrix_diagonal(ctx, &bad, two), SPMV_ERROR_SIZE, "row 1");
    assert_fails(ctx, spmv_matrix_row_sums(ctx, &bad, two), SPMV_ERROR_SIZE, "row 1");
    assert_fails(ctx, spmv_matrix_row_sums(ctx, &a, NULL), SPMV_ERROR_ARGUMENT, "sums is NULL");
    assert_fails(ctx, spmv_matrix_diagonal(ctx, &a, NULL), SPMV_ERROR_ARGUMENT, "diagonal is NULL");
}

/* One wrong number in a matrix of several blocks: the message is that for host memory. */
static void checks(void **state)
{
    enum { ROWS = 700, NNZ = 3 * ROWS };
    spmv_context *ctx = *state;
    static const struct {
        int offset, entry; /* the number that is replaced, or -1 */
        int32_t by;
        bool valid; /* columns need not ascend */
    } wrong[] = {
        {-1, -1, 0, true},          {0, -1, 1, false},     {0, -1, -1, false},         {ROWS, -1, NNZ - 1, false},
        {ROWS, -1, NNZ + 1, false}, {600, -1, 1802, true}, {600, -1, 0, false},        {600, -1, -5, false},
        {1, -1, INT32_MAX, false},  {-1, 0, -1, false},    {-1, NNZ - 1, ROWS, false}, {-1, 1000, -7, false},
        {-1, 1000, ROWS, false},    {-1, 1000, 0, true},   {-1, 1001, ROWS - 1, true}, {-1, NNZ - 1, 0, true}};
    for (size_t w = 0; w < sizeof wrong / sizeof wrong[0]; w++) {
        int32_t row_ptr[ROWS + 1], col[NNZ];
        for (int i = 0; i <= ROWS; i++)
            row_ptr[i] = 3 * i;
        for (int k = 0; k < NNZ; k++)
            col[k] = k / 3 % (ROWS - 9) + k % 3 * 4;
        if (wrong[w].offset >= 0)
            row_ptr[wrong[w].offset] = wrong[w].by;
        if (wrong[w].entry >= 0)
            col[wrong[w].entry] = wrong[w].by;
        spmv_csr a = support_csr(ROWS, ROWS, row_ptr, col, NULL);
        a.nnz = NNZ;
        char message[512];
        const spmv_status st = spmv_matrix_check(ctx, &a);
        assert_int_equal(st, wrong[w].valid ? SPMV_OK : SPMV_ERROR_SIZE);
        snprintf(message, sizeof message, "%s", st == SPMV_OK ? "" : spmv_last_error(ctx));
        int64_t wide[ROWS + 1];
        for (int i = 0; i <= ROWS; i++)
            wide[i] = row_ptr[i];
        void *const arrays[] = {support_upload(ctx, row_ptr, sizeof row_ptr), support_upload(ctx, wide, sizeof wide),
                                support_upload(ctx, col, sizeof col)};
        for (int bits = 32; bits <= 64; bits += 32) {
            a.memory = SPMV_MEMORY_CONTEXT;
            a.row_ptr_bits = bits;
            a.row_ptr = arrays[bits == 64];
            a.col = arrays[2];
            assert_int_equal(spmv_matrix_check(ctx, &a), st);
            if (st != SPMV_OK)
                assert_string_equal(spmv_last_error(ctx), message);
        }
        for (int i = 0; i < 3; i++)
            spmv_free(ctx, arrays[i]);
    }
}

SUPPORT_MAIN(with_context(both_memories), with_context(without_entries), with_context(by_hand), with_context(refusals),
             with_context(checks))
