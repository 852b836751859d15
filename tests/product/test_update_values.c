/* spmv_plan_update_values: on every method the product with the new values has the bits of a plan
 * made from them; plans from host arrays, from borrowed ones, and transposed. The transpose in a
 * plan equals that of spmv_matrix_transpose, array by array.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/matrix_internal.h"
#include "product/plan_internal.h"
#include "tests/support/support.h"
#include "tests/support/support_slow.h"

#ifdef HOST_CUDA
#include <cuda_runtime_api.h>
#endif

struct matrix {
    int64_t rows, cols, nnz;
    int64_t *row_ptr;
    int32_t *col;
    void *val;
    spmv_type type;
};

static void *random_values(spmv_type type, int64_t n, uint64_t seed)
{
    void *values = support_zeros(2 * n, 8);
    const bool single = type == SPMV_F32 || type == SPMV_C64;
    const int64_t numbers = type == SPMV_C64 || type == SPMV_C128 ? 2 * n : n;
    for (int64_t k = 0; k < numbers; k++)
        if (single)
            ((float *)values)[k] = (float)support_uniform(&seed);
        else
            ((double *)values)[k] = support_uniform(&seed);
    return values;
}

static bool brief;

/* kind 0: rows of 0 to 12 entries, columns anywhere; 1: a row of 3000 among short ones, the upper
 * half of the columns empty; 2: all entries in one column; 3: no entries; 4: one entry. */
enum { KINDS = 5 };

static struct matrix make_matrix(int64_t rows, int64_t cols, int kind, spmv_type type)
{
    uint64_t random = (uint64_t)(rows * 7 + cols + kind);
    struct matrix m = {.rows = rows, .cols = cols, .row_ptr = support_zeros(rows + 1, 8), .type = type};
    for (int64_t i = 0; i < rows; i++) {
        const int64_t few = (int64_t)(support_random(&random) % 13);
        m.row_ptr[i + 1] = m.row_ptr[i] + (kind == 0   ? few
                                           : kind == 1 ? (i == rows / 3 ? 3000 : few % 3)
                                           : kind == 2 ? few % 4
                                           : kind == 3 ? 0
                                                       : i == rows - 1);
    }
    m.nnz = m.row_ptr[rows];
    m.col = support_zeros(m.nnz, 4);
    for (int64_t k = 0; k < m.nnz; k++)
        m.col[k] = kind == 2 ? (int32_t)(cols - 1)
                             : (int32_t)(support_random(&random) % (uint64_t)(kind == 1 ? (cols + 1) / 2 : cols));
    m.val = random_values(type, m.nnz, 5);
    return m;
}

static void free_matrix(struct matrix *m)
{
    support_free(m->row_ptr, m->col, m->val);
}

static spmv_csr view_of(const struct matrix *m, const void *val)
{
    return support_view(m->rows, m->cols, m->nnz, m->row_ptr, m->col, val, m->type);
}

static spmv_plan *make_plan(spmv_context *ctx, const spmv_csr *a, const char *method, spmv_operation operation,
                            int update_values)
{
    spmv_plan_options options = support_plan_options();
    options.method = method;
    options.operation = operation;
    options.type = a->type;
    options.update_values = update_values;
    spmv_plan *plan = NULL;
    assert_ok(ctx, spmv_plan_create(ctx, a, &options, &plan));
    return plan;
}

/* The bytes of y = op(A) x; the caller frees them. */
static void *product(spmv_context *ctx, spmv_plan *plan, const void *x, int64_t bytes)
{
    void *y = support_zeros(bytes, 1), *device_y = support_upload(ctx, y, bytes);
    assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, device_y));
    assert_ok(ctx, spmv_download(ctx, device_y, y, bytes));
    spmv_free(ctx, device_y);
    return y;
}

/* One plan, some updates. borrowed: the plan is made from arrays in the context's memory. */
static void check_updates(spmv_context *ctx, const struct matrix *m, const char *method, spmv_operation operation,
                          bool borrowed, int updates)
{
    const bool transposed = operation != SPMV_OPERATION_N;
    const int64_t size = (int64_t)spmv_type_size(m->type);
    const int64_t x_n = transposed ? m->rows : m->cols, y_bytes = (transposed ? m->cols : m->rows) * size;
    void *x = random_values(m->type, x_n, 9), *device_x = support_upload(ctx, x, x_n * size);
    spmv_csr a = view_of(m, m->val);
    void *row_ptr = NULL, *col = NULL, *val = NULL;
    if (borrowed) {
        row_ptr = support_upload(ctx, m->row_ptr, (m->rows + 1) * 8);
        col = support_upload(ctx, m->col, m->nnz * 4);
        val = support_upload(ctx, m->val, m->nnz * size);
        a.row_ptr = row_ptr;
        a.col = col;
        a.val = val;
        a.memory = SPMV_MEMORY_CONTEXT;
    }
    spmv_plan *plan = make_plan(ctx, &a, method, operation, 1);
    free(product(ctx, plan, device_x, y_bytes));
    for (int round = 0; round < updates; round++) {
        void *fresh = random_values(m->type, m->nnz, 100 + (uint64_t)round);
        void *device_fresh = support_upload(ctx, fresh, m->nnz * size);
        const spmv_csr b = view_of(m, fresh);
        spmv_plan *other = make_plan(ctx, &b, method, operation, 0);
        assert_ok(ctx, spmv_plan_update_values(plan, device_fresh));
        assert_ok(ctx, spmv_synchronize(ctx));
        const bool copies = transposed || !borrowed;
        /* The plan has its own copy, so this change must have no effect. */
        if (copies && m->nnz > 0)
            assert_ok(ctx, spmv_upload(ctx, m->val, device_fresh, m->nnz * size));
        void *got = product(ctx, plan, device_x, y_bytes), *expected = product(ctx, other, device_x, y_bytes);
        if (memcmp(got, expected, (size_t)y_bytes) != 0)
            fail_msg("%s, %s, %lld x %lld, operation %d, %s: other bits than from a new plan", method,
                     spmv_type_name(m->type), (long long)m->rows, (long long)m->cols, (int)operation,
                     borrowed ? "borrowed" : "from the host");
        support_free(got, expected, fresh);
        spmv_plan_destroy(other);
        /* A borrowed array stays in use until the next update. */
        if (!copies && round == 0)
            assert_ok(ctx, spmv_plan_update_values(plan, val));
        spmv_free(ctx, device_fresh);
    }
    spmv_plan_destroy(plan);
    support_free_in(ctx, row_ptr, col, val, device_x);
    free(x);
}

static const spmv_type types[] = {SPMV_F64, SPMV_F32, SPMV_C64, SPMV_C128};
enum { TYPES = sizeof types / sizeof types[0] };

/* All methods take real types; some lack other types. */
static bool takes(spmv_context *ctx, const struct matrix *m, const char *method)
{
    const spmv_csr a = view_of(m, m->val);
    spmv_plan_options options;
    spmv_plan *plan = NULL;
    spmv_plan_options_init(&options, sizeof options);
    options.method = method;
    const spmv_status st = spmv_plan_create(ctx, &a, &options, &plan);
    spmv_plan_destroy(plan);
    if (st != SPMV_ERROR_UNSUPPORTED)
        assert_ok(ctx, st);
    assert_true(st == SPMV_OK || m->type == SPMV_C64 || m->type == SPMV_C128);
    return st == SPMV_OK;
}

static void values_are_replaced(void **state)
{
    spmv_context *ctx = *state;
    const char *method;
    for (int kind = 0; kind < (brief ? 1 : KINDS); kind++) {
        for (int t = 0; t < TYPES; t++) {
            struct matrix m = make_matrix(211, kind == 0 ? 90 : 300, kind, types[t]);
            for (int i = 0; (method = spmv_method_name(support_backend, i)) != NULL; i++) {
                if (!takes(ctx, &m, method))
                    continue;
                /* On an emulated GPU each method, type and product takes every other kind of matrix,
                 * with two updates if it is transposed and one if not, then vice versa. */
                for (int number = SLOW ? (kind + t + i) % 2 : 0; number < 6; number += SLOW ? 2 : 1)
                    check_updates(ctx, &m, method, (spmv_operation)(number / 2), number % 2,
                                  SLOW && (kind + number / 2) % 2 ? 1 : 2);
            }
            free_matrix(&m);
        }
    }
}

static void refusals(void **state)
{
    spmv_context *ctx = *state;
    struct matrix m = make_matrix(20, 20, 0, SPMV_F64);
    spmv_csr a = view_of(&m, m.val);
    spmv_plan *plan = make_plan(ctx, &a, NULL, SPMV_OPERATION_N, 0);
    assert_fails(ctx, spmv_plan_update_values(plan, m.val), SPMV_ERROR_UNSUPPORTED, "without the option update_values");
    spmv_plan_destroy(plan);
    plan = make_plan(ctx, &a, NULL, SPMV_OPERATION_T, 1);
    assert_fails(ctx, spmv_plan_update_values(plan, NULL), SPMV_ERROR_ARGUMENT, "values is NULL");
    spmv_plan_destroy(plan);
    spmv_plan_options options = support_plan_options();
    options.update_values = 1;
    a.val = NULL;
    assert_fails(ctx, spmv_plan_create(ctx, &a, &options, &plan), SPMV_ERROR_ARGUMENT, "a pattern has no values");
    assert_null(plan);
    free_matrix(&m);
}

/* --------------------------------------------------------------- transposes */

static void same_array(spmv_context *ctx, const void *memory, const void *expected, int64_t bytes, const char *what,
                       const struct matrix *m)
{
    void *got = support_zeros(bytes, 1);
    assert_ok(ctx, spmv_download(ctx, memory, got, bytes));
    if (bytes > 0 && memcmp(got, expected, (size_t)bytes) != 0)
        fail_msg("%lld x %lld, %lld nonzeros: %s is another than the host's", (long long)m->rows, (long long)m->cols,
                 (long long)m->nnz, what);
    free(got);
}

static void check_transpose(spmv_context *ctx, const struct matrix *m, bool pattern, bool borrowed)
{
    const int64_t size = (int64_t)spmv_type_size(m->type);
    spmv_csr a = view_of(m, pattern ? NULL : m->val), b;
    spmv_matrix *matrix = NULL;
    assert_ok(ctx, spmv_matrix_transpose(ctx, &a, &matrix));
    spmv_matrix_view(matrix, &b);
    int32_t *narrow = support_zeros(b.rows + 1, 4), *offsets = support_zeros(m->rows + 1, 4);
    for (int64_t i = 0; i <= b.rows; i++)
        narrow[i] = (int32_t)((const int64_t *)b.row_ptr)[i];
    for (int64_t i = 0; i <= m->rows; i++)
        offsets[i] = (int32_t)m->row_ptr[i];
    void *row_ptr = NULL, *col = NULL, *val = NULL;
    if (borrowed) { /* and with 32-bit offsets */
        row_ptr = support_upload(ctx, offsets, (m->rows + 1) * 4);
        col = support_upload(ctx, m->col, m->nnz * 4);
        val = pattern ? NULL : support_upload(ctx, m->val, m->nnz * size);
        a.row_ptr = row_ptr;
        a.row_ptr_bits = 32;
        a.col = col;
        a.val = val;
        a.memory = SPMV_MEMORY_CONTEXT;
    }
    spmv_plan_options options = support_plan_options();
    options.operation = SPMV_OPERATION_T;
    options.type = m->type;
    spmv_plan *plan = NULL;
    assert_ok(ctx, spmv_plan_create(ctx, &a, &options, &plan));
    assert_true(plan->a.rows == b.rows && plan->a.cols == b.cols && plan->a.nnz == b.nnz);
    assert_int_equal(plan->a.row_ptr_bits, 32);
    same_array(ctx, plan->a.row_ptr, narrow, (b.rows + 1) * 4, "row_ptr", m);
    same_array(ctx, plan->a.col, b.col, b.nnz * 4, "col", m);
    assert_true(b.nnz == 0 || (plan->a.val == NULL) == pattern);
    if (!pattern && b.nnz > 0)
        same_array(ctx, plan->a.val, b.val, b.nnz * size, "val", m);
    spmv_plan_destroy(plan);
    spmv_matrix_destroy(matrix);
    support_free_in(ctx, row_ptr, col, val);
    support_free(narrow, offsets);
}

static void transposes_are_the_hosts(void **state)
{
    spmv_context *ctx = *state;
    const struct {
        int64_t rows, cols;
    } sizes[] = {{211, 300}, {300, 17}, {1, 500}, {500, 1}, {700, 700}, {40, 3000}, {5, 5}};
    for (size_t s = 0; s < (brief ? 1 : sizeof sizes / sizeof sizes[0]); s++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int variant = 0; variant < 4 * TYPES; variant++) {
                struct matrix m = make_matrix(sizes[s].rows, sizes[s].cols, kind, types[variant / 4]);
                check_transpose(ctx, &m, variant % 2, variant / 2 % 2);
                free_matrix(&m);
            }
}

/* No rows, no columns, neither. */
static void transposes_without_entries(void **state)
{
    spmv_context *ctx = *state;
    const struct {
        int64_t rows, cols;
    } sizes[] = {{0, 0}, {0, 7}, {7, 0}, {7, 9}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int variant = 0; variant < 4; variant++) {
            struct matrix m = make_matrix(sizes[s].rows, sizes[s].cols, 3, SPMV_F64);
            check_transpose(ctx, &m, variant % 2, variant / 2);
            free_matrix(&m);
        }
}

/* 64-bit numbers and offsets, which plans use from 2^31 nonzeros on. */
static void wide_numbers(void **state)
{
    (void)state;
#ifdef SPMV_HAVE_CUDA
    if (support_backend != SPMV_BACKEND_CUDA)
        return;
    spmv_context *ctx = support_context();
    for (int kind = 0; kind < KINDS; kind++) {
        struct matrix m = make_matrix(300, 211, kind, SPMV_F64);
        const int64_t numbers = m.nnz * 8;
        int64_t *from = support_zeros(m.nnz, 8);
        spmv_csr a = view_of(&m, m.val);
        spmv_matrix *b = NULL;
        assert_ok(ctx, csr_transpose_numbered(ctx, &a, &b, (struct entry_numbers){from, 64}));
        void *row_ptr = support_upload(ctx, m.row_ptr, (m.rows + 1) * 8);
        void *col = support_upload(ctx, m.col, m.nnz * 4), *val = support_upload(ctx, m.val, numbers);
        void *b_row_ptr = NULL, *b_col = NULL, *b_from = NULL, *b_val = NULL;
        assert_ok(ctx, spmv_alloc(ctx, (m.cols + 1) * 8, &b_row_ptr));
        assert_ok(ctx, spmv_alloc(ctx, m.nnz * 4, &b_col));
        assert_ok(ctx, spmv_alloc(ctx, numbers, &b_from));
        assert_ok(ctx, spmv_alloc(ctx, numbers, &b_val));
        a.row_ptr = row_ptr;
        a.col = col;
        a.memory = SPMV_MEMORY_CONTEXT;
        assert_ok(ctx, transpose_cuda(ctx, &a, b_row_ptr, 64, b_col, b_from, 64));
        same_array(ctx, b_row_ptr, b->row_ptr, (b->rows + 1) * 8, "row_ptr", &m);
        if (m.nnz > 0) {
            assert_ok(ctx, take_values_cuda(ctx, SPMV_F64, false, val, b_from, 64, b_val, m.nnz));
            same_array(ctx, b_col, b->col, m.nnz * 4, "col", &m);
            same_array(ctx, b_from, from, numbers, "the entries' numbers", &m);
            same_array(ctx, b_val, b->val, numbers, "val", &m);
        }
        void *const memory[] = {row_ptr, col, val, b_row_ptr, b_col, b_from, b_val};
        for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
            spmv_free(ctx, memory[i]);
        spmv_matrix_destroy(b);
        free(from);
        free_matrix(&m);
    }
    spmv_context_destroy(ctx);
#endif
}

/* A plan keeps the transposed matrix, what an epilogue needs and, with update_values, the entry
 * numbers; all other memory is freed. */
static void nothing_more_is_kept(void **state)
{
    (void)state;
#ifdef HOST_CUDA
    spmv_context *ctx = support_context();
    struct matrix m = make_matrix(300, 211, 0, SPMV_F64);
    const spmv_csr a = view_of(&m, m.val);
    const int64_t before = host_cuda.allocations, epilogue = ctx->backend->dot_scratch(ctx, SPMV_F64, m.cols);
    spmv_plan *plan = make_plan(ctx, &a, "scalar", SPMV_OPERATION_T, 0);
    assert_int_equal(host_cuda.allocations, before + 4);
    assert_int_equal(plan->bytes, (m.cols + 1) * 4 + m.nnz * 12 + epilogue);
    spmv_plan_destroy(plan);
    plan = make_plan(ctx, &a, "scalar", SPMV_OPERATION_T, 1);
    assert_int_equal(host_cuda.allocations, before + 5);
    assert_int_equal(plan->bytes, (m.cols + 1) * 4 + m.nnz * 16 + epilogue);
    spmv_plan_destroy(plan);
    assert_int_equal(host_cuda.allocations, before);
    free_matrix(&m);
    spmv_context_destroy(ctx);
#endif
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    brief = support_brief(argc, argv);
    const struct CMUnitTest tests[] = {with_context(values_are_replaced),      with_context(refusals),
                                       with_context(transposes_are_the_hosts), with_context(transposes_without_entries),
                                       cmocka_unit_test(wide_numbers),         cmocka_unit_test(nothing_more_is_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
