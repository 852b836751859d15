/* The memory limit of the process, the limits of work of set-ups, and cancellation. Work is counted by
 * the calls of the cancel function, so no test needs a clock.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <malloc.h>
#include <math.h>

#include "formats/matrix_internal.h"
#include "solvers/prepare/prepared_system.h"
#include "tests/support/support.h"
#include "tests/support/support_generate.h"
#include "tests/support/support_precond.h"

/* ------------------------------------------------------------------ matrices */

/* A matrix in host memory, put together row by row. */
struct rows {
    int64_t n, end;
    int64_t *ptr;
    int32_t *col;
    double *val;
};

static struct rows open_rows(int64_t n, int64_t entries)
{
    return (struct rows){.n = n,
                         .ptr = support_zeros(n + 1, sizeof(int64_t)),
                         .col = support_zeros(entries, sizeof(int32_t)),
                         .val = support_zeros(entries, sizeof(double))};
}

static void put(struct rows *r, int64_t row, int64_t col, double value)
{
    r->col[r->end] = (int32_t)col;
    r->val[r->end++] = value;
    r->ptr[row + 1] = r->end;
}

static void close_rows(struct rows *r)
{
    support_free(r->ptr, r->col, r->val);
}

static spmv_csr view_of(const struct rows *r)
{
    return (spmv_csr){.rows = r->n,
                      .cols = r->n,
                      .nnz = r->end,
                      .row_ptr = r->ptr,
                      .row_ptr_bits = 64,
                      .col = r->col,
                      .val = r->val,
                      .type = SPMV_F64,
                      .memory = SPMV_MEMORY_HOST};
}

/* Symmetric and positive definite: a large diagonal, and DENSE full rows and columns in between. */
static struct rows with_full_rows(int64_t n)
{
    enum { DENSE = 6 };
    struct rows r = open_rows(n, 2 * (DENSE + 1) * n + n);
    const int64_t apart = n / DENSE;
    for (int64_t i = 0; i < n; i++) {
        if (i % apart == 1) { /* a full row */
            for (int64_t j = 0; j < n; j++)
                put(&r, i, j, i == j ? 4.0 * (double)n : -1);
            continue;
        }
        bool own = false;
        for (int64_t j = 1; j < n; j += apart) { /* the full columns, and the diagonal between them */
            if (!own && i < j)
                put(&r, i, i, 4.0 * (double)n);
            own = own || i < j;
            put(&r, i, j, -1);
        }
        if (!own)
            put(&r, i, i, 4.0 * (double)n);
    }
    return r;
}

/* Full rows and columns in between as above, with entries that no rule drops. */
static struct rows with_heavy_rows(int64_t n)
{
    struct rows r = with_full_rows(n);
    for (int64_t k = 0; k < r.end; k++)
        r.val[k] = r.val[k] < 0 ? -1 : 8;
    return r;
}

/* Each of k rows needs a path through a cycle of k rows before it is matched with a column; two entries
 * in each row. */
static struct rows with_long_paths(int64_t k)
{
    const int64_t n = 3 * k;
    struct rows r = open_rows(n, 2 * n);
    for (int64_t i = 0; i < k; i++) {
        put(&r, i, (i + 1) % n, 1);
        put(&r, i, ((i + 1) % k + 1) % n, 1);
    }
    for (int64_t j = 0; j < k; j++) {
        put(&r, k + j, (j + 1) % n, 1);
        put(&r, k + j, (k + j + 1) % n, exp2(-(double)(j + 1) * 0.01));
    }
    for (int64_t j = 0; j < k; j++) {
        put(&r, 2 * k + j, (2 * k + j + 1) % n, 1);
        put(&r, 2 * k + j, (k + j + 1) % n, 1);
    }
    return r;
}

/* ------------------------------------------------------------------ polls */

struct polls {
    int64_t count, stop_at; /* stop_at < 0: never */
};

static int poll(void *user)
{
    struct polls *const p = user;
    return p->count++ == p->stop_at;
}

/* Cancels from that call on. */
static int poll_on(void *user)
{
    struct polls *const p = user;
    return p->stop_at >= 0 && p->count++ >= p->stop_at;
}

/* Calls of the cancel function while a preconditioner is made: one for each 2^16 units of work. */
static int64_t work_of(spmv_context *ctx, const char *name, const struct rows *r)
{
    struct polls polls = {.stop_at = -1};
    spmv_preconditioner *m = NULL;
    const spmv_csr a = view_of(r);
    assert_ok(ctx, spmv_context_set_cancel(ctx, poll, &polls));
    assert_ok(ctx, spmv_preconditioner_create(ctx, name, &a, NULL, &m));
    assert_ok(ctx, spmv_context_set_cancel(ctx, NULL, NULL));
    spmv_preconditioner_destroy(m);
    return polls.count;
}

/* ------------------------------------------------------------------ tests */

/* With full rows and columns, four times as many rows take about four times the work. */
static void full_rows_take_linear_work(void **state)
{
    spmv_context *ctx = *state;
    struct rows small = with_full_rows(4000), large = with_full_rows(16000);
    static const char *const names[] = {"ilu0", "ic0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int64_t few = work_of(ctx, names[i], &small), many = work_of(ctx, names[i], &large);
        if (few <= 0 || many > 6 * few)
            fail_msg("%s: %lld and %lld units of work", names[i], (long long)few, (long long)many);
    }
    close_rows(&small);
    close_rows(&large);
    small = with_heavy_rows(4000);
    large = with_heavy_rows(16000);
    int64_t work[2]; /* in units: a row asks once at most, however long it is */
    for (int i = 0; i < 2; i++) {
        context_pace(ctx, INT64_MAX);
        work_of(ctx, "ilut", i == 0 ? &small : &large);
        work[i] = ctx->paced;
        context_pace(ctx, 0);
    }
    if (work[0] <= 0 || work[1] > 6 * work[0])
        fail_msg("ilut: %lld and %lld units of work", (long long)work[0], (long long)work[1]);
    close_rows(&small);
    close_rows(&large);
}

/* The searches of the matching end, and all rows are matched, on entries that exist; scale factors
 * still take no entry above 1. */
static void matching_takes_linear_work(void **state)
{
    spmv_context *ctx = *state;
    int64_t work[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        struct rows r = with_long_paths(i == 0 ? 2000 : 8000);
        struct polls polls = {.stop_at = -1};
        double *const logs = support_zeros(r.end, sizeof *logs), *const row = support_zeros(r.n, sizeof *row),
                      *const col = support_zeros(r.n, sizeof *col);
        int32_t *const row_of = support_zeros(r.n, sizeof *row_of);
        int64_t rank = 0;
        bool *const taken = support_zeros(r.n, sizeof *taken);
        for (int64_t k = 0; k < r.end; k++)
            logs[k] = log2(r.val[k]);
        const struct magnitudes m = {.rows = r.n, .ptr = r.ptr, .col = r.col, .log2 = logs};
        assert_ok(ctx, spmv_context_set_cancel(ctx, poll, &polls));
        assert_ok(ctx, prepare_match(ctx, &m, row_of, &rank, row, col));
        assert_ok(ctx, spmv_context_set_cancel(ctx, NULL, NULL));
        work[i] = polls.count;
        assert_int_equal(rank, r.n);
        for (int64_t j = 0; j < r.n; j++) {
            bool there = false;
            const int32_t of = row_of[j];
            assert_true(of >= 0 && of < r.n && !taken[of]);
            taken[of] = true;
            for (int64_t k = r.ptr[of]; k < r.ptr[of + 1]; k++) {
                there = there || r.col[k] == j;
                assert_true(logs[k] + row[of] + col[r.col[k]] <= 1e-9);
            }
            assert_true(there);
        }
        support_free(logs, row, col, row_of, taken);
        close_rows(&r);
    }
    if (work[0] <= 0 || work[1] > 6 * work[0])
        fail_msg("%lld and %lld units of work", (long long)work[0], (long long)work[1]);
}

/* A set-up above its budget is refused with a sentence; a larger budget gives what no budget gives. */
static void budget_of_work(void **state)
{
    spmv_context *ctx = *state;
    spmv_preconditioner *m = NULL;
    spmv_matrix *a = NULL;
    spmv_csr view;
    assert_ok(ctx, spmv_matrix_generate(ctx, "convdiff2d:60,1", SPMV_F64, &a));
    spmv_matrix_view(a, &view);
    static const char *const names[] = {"ilut", "ilu0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        context_budget(ctx, 20000);
        assert_fails(ctx, spmv_preconditioner_create(ctx, names[i], &view, NULL, &m), SPMV_ERROR_LIMIT,
                     "more work than is allowed");
        assert_null(m);
        context_budget(ctx, 1 << 30);
        assert_ok(ctx, spmv_preconditioner_create(ctx, names[i], &view, NULL, &m));
        context_budget(ctx, 0);
        spmv_preconditioner_destroy(m);
        m = NULL;
    }
    spmv_matrix_destroy(a);
}

/* Cancelled at call 0, 1, 2 ...: either nothing is made, or x is the iterate reached, whose residual
 * the result has. In the end nothing is cancelled. The number of calls repeats. */
static void cancelled_at_each_call(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *a = NULL;
    spmv_csr view;
    int64_t made = 0, reached = 0, calls = -1;
    assert_ok(ctx, spmv_matrix_generate(ctx, "convdiff2d:80,1", SPMV_F64, &a));
    spmv_matrix_view(a, &view);
    const int64_t n = view.rows;
    double *const ones = support_zeros(n, sizeof *ones), *const host = support_zeros(n, sizeof *host);
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1;
    void *const b = support_upload(ctx, ones, n * 8), *const x = support_upload(ctx, ones, n * 8);
    for (int64_t at = -1;; at++) {
        struct polls polls = {.stop_at = at};
        spmv_solver *solver = NULL;
        spmv_solver_options o;
        spmv_solver_result result;
        spmv_solver_options_init(&o, sizeof o);
        o.solver = "gmres";
        o.precond = "ilut";
        o.rtol = 1e-12;
        o.zero_start = 1;
        assert_ok(ctx, spmv_context_set_cancel(ctx, at < 0 ? poll : poll_on, &polls));
        spmv_status st = spmv_solver_create(ctx, &view, &o, &solver);
        if (st != SPMV_OK) {
            assert_int_equal(st, SPMV_CANCELLED);
            assert_null(solver);
            made++;
            continue;
        }
        st = spmv_solver_solve(solver, b, x, &result, sizeof result);
        assert_ok(ctx, spmv_context_set_cancel(ctx, NULL, NULL));
        assert_int_equal(result.status, st);
        assert_ok(ctx, spmv_download(ctx, x, host, n * 8));
        long double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            long double r = 1;
            for (int64_t k = row_first(&view, i); k < row_first(&view, i + 1); k++)
                r -= (long double)((const double *)view.val)[k] * host[view.col[k]];
            sum += r * r;
        }
        assert_true(fabs((double)sqrtl(sum) - result.true_residual) <= 1e-10);
        spmv_solver_destroy(solver);
        if (at < 0) {
            assert_int_equal(st, SPMV_OK);
            calls = polls.count;
            continue;
        }
        if (st == SPMV_OK) { /* the last call comes when x is there */
            assert_true(at + 1 >= calls && calls > 2);
            break;
        }
        assert_int_equal(st, SPMV_CANCELLED);
        reached++;
    }
    assert_true(made > 0 && reached > 0);
    spmv_free(ctx, b);
    spmv_free(ctx, x);
    support_free(ones, host);
    spmv_matrix_destroy(a);
}

/* The set-up of each preconditioner can be cancelled at any call; then nothing is made. */
static void each_set_up_is_cancelled(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *a = NULL;
    spmv_csr view;
    static const char *const names[] = {"ilut", "ilu0", "ic0", "cholesky", "fsai", "isai", "amg"};
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:120", SPMV_F64, &a));
    spmv_matrix_view(a, &view);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        spmv_status st = SPMV_CANCELLED;
        int64_t at = 0;
        for (; st != SPMV_OK; at = 2 * at + 1) {
            struct polls polls = {.stop_at = at};
            spmv_preconditioner *m = NULL;
            spmv_preconditioner_options o;
            spmv_preconditioner_options_init(&o, sizeof o);
            o.fill = 1000; /* the whole envelope */
            assert_ok(ctx, spmv_context_set_cancel(ctx, poll_on, &polls));
            st = spmv_preconditioner_create(ctx, names[i], &view, &o, &m);
            if (st != SPMV_OK)
                assert_fails(ctx, st, SPMV_CANCELLED, "cancelled");
            assert_true((st == SPMV_OK) == (m != NULL));
            spmv_preconditioner_destroy(m);
        }
        if (at <= 1)
            fail_msg("%s: never asked", names[i]);
    }
    assert_ok(ctx, spmv_context_set_cancel(ctx, NULL, NULL));
    spmv_matrix_destroy(a);
}

/* Memory in use, as a limit counts it, without what the context keeps for later calls. */
static int64_t in_use(spmv_context *ctx)
{
    const int64_t huge = (int64_t)1 << 60;
    int64_t limit = 0;
    context_release_blocks(ctx);
    malloc_trim(0);
    spmv_memory_limit(huge);
    const int64_t used = huge - memory_limit_left(&limit);
    spmv_memory_limit(0);
    return used;
}

/* Above the limit nothing is allocated, whether the memory is touched or not; freed bytes come back. */
static void memory_limit(void **state)
{
    spmv_context *ctx = *state;
    enum { BLOCK = 1 << 22, BLOCKS = 8 };
    void *block[BLOCKS + 2] = {NULL};
    int made = 0;
    spmv_memory_limit(in_use(ctx) + BLOCKS * BLOCK + BLOCK / 2);
    while (made < BLOCKS + 2 && spmv_alloc(ctx, BLOCK, &block[made]) == SPMV_OK)
        made++;
    assert_int_equal(made, BLOCKS);
    assert_true(strstr(spmv_last_error(ctx), "the limit of") != NULL);
    assert_true(spmv_memory_available(NULL, NULL) < BLOCK);
    spmv_free(ctx, block[--made]);
    assert_ok(ctx, spmv_alloc(ctx, BLOCK, &block[made]));
    made++;
    spmv_memory_limit(0);
    while (made > 0)
        spmv_free(ctx, block[--made]);
}

/* Under "auto" a limit that ilut exceeds gives another preconditioner, with the reason, and the system
 * is solved within the limit. By name it is refused. So few rows are not sampled. */
static void auto_takes_what_fits(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *a = NULL;
    spmv_csr view;
    spmv_solver_options o;
    spmv_solver_result result;
    assert_ok(ctx, spmv_matrix_generate(ctx, "convdiff2d:62,1", SPMV_F64, &a));
    spmv_matrix_view(a, &view);
    double *const values = support_mixed_signs(&view);
    double *const b = support_zeros(view.rows, sizeof *b), *const x = support_zeros(view.rows, sizeof *x);
    for (int64_t i = 0; i < view.rows; i++)
        b[i] = 1;
    spmv_solver_options_init(&o, sizeof o);
    o.solver = "bicgstab";
    o.zero_start = 1;
    assert_ok(ctx, spmv_solve(ctx, &view, b, x, &o, &result, sizeof result));
    assert_string_equal(result.precond, "ilut");
    const int64_t most = in_use(ctx) + 2050000;
    spmv_memory_limit(most);
    assert_ok(ctx, spmv_solve(ctx, &view, b, x, &o, &result, sizeof result));
    assert_string_not_equal(result.precond, "ilut");
    assert_true(strstr(result.why_precond, "ilut, cannot be made") != NULL &&
                strstr(result.why_precond, "bytes") != NULL);
    assert_true(result.true_residual <= result.tolerance);
    o.precond = "ilut";
    assert_fails(ctx, spmv_solve(ctx, &view, b, x, &o, &result, sizeof result), SPMV_ERROR_MEMORY, "the limit of");
    spmv_memory_limit(0);
    support_free(b, x, values);
    spmv_matrix_destroy(a);
}

/* The working memory of a product is compared with max_bytes before it is allocated: with a limit of
 * the process a little above, the message is still that of max_bytes. */
static void working_memory_before_it_is_made(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *a = NULL, *b = NULL, *m = NULL;
    spmv_csr va, vb;
    spmv_spgemm_options o;
    assert_ok(ctx, spmv_matrix_generate(ctx, "dense:1500,1", SPMV_F64, &a));
    assert_ok(ctx, spmv_matrix_generate(ctx, "dense:1,1500", SPMV_F64, &b));
    spmv_matrix_view(a, &va);
    spmv_matrix_view(b, &vb);
    static const char *const names[] = {"expand", "rows"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        spmv_spgemm_options_init(&o, sizeof o);
        o.method = names[i];
        o.max_bytes = i == 0 ? 20000 : 1 << 20;
        spmv_memory_limit(in_use(ctx) + (4 << 20));
        const spmv_status st = spmv_spgemm(ctx, &va, &vb, &o, &m);
        spmv_memory_limit(0);
        assert_int_equal(st, SPMV_ERROR_MEMORY);
        if (strstr(spmv_last_error(ctx), "are allowed") == NULL)
            fail_msg("%s: %s", names[i], spmv_last_error(ctx));
        assert_null(m);
    }
    spmv_matrix_destroy(a);
    spmv_matrix_destroy(b);
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    mallopt(M_MMAP_THRESHOLD, 1 << 17); /* so that freed memory is not resident */
    mallopt(M_TRIM_THRESHOLD, 1 << 17);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_rows_take_linear_work),
        cmocka_unit_test(matching_takes_linear_work),
        cmocka_unit_test(budget_of_work),
        cmocka_unit_test(cancelled_at_each_call),
        cmocka_unit_test(each_set_up_is_cancelled),
        cmocka_unit_test(memory_limit),
        cmocka_unit_test(auto_takes_what_fits),
        cmocka_unit_test(working_memory_before_it_is_made),
    };
    return cmocka_run_group_tests(tests, support_open_omp, support_close);
}
