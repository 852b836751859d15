/* Matrices over ranks with more than INT32_MAX columns (spmv_group_matrix_create_wide). test_group and
 * test_group_solvers compare the bits of small matrices whose columns have 64 bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <sys/resource.h>

#include "distributed/group_internal.h"
#include "tests/support/support.h"
#include "tests/support/support_ranks.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MEMORY_WATCHED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEMORY_WATCHED
#endif

enum { MOST_RANKS = 8 };

/* A matrix whose rows ranks give: those of rank 1 are none, and the others nearly equal parts. */
struct job {
    spmv_csr a;         /* cols: those of wide */
    const int64_t *col; /* of all rows */
    bool stays_wide;    /* whatever the number of columns is; col is that of a */
    spmv_status status[MOST_RANKS];
    char message[MOST_RANKS][300];
    /* of the real matrix: the columns that it has, ascending, and the elements of x there */
    const int64_t *distinct;
    int64_t distincts;
    float *y;
    int64_t cols, ghosts; /* as described */
};

static int64_t first_given(const struct job *job, int rank, int ranks)
{
    return rank <= 1 || ranks == 1 ? job->a.rows * rank / ranks : job->a.rows * (rank - 1) / (ranks - 1);
}

/* Stores what a rank returns. The rank goes on without failure: run_ranks is SPMV_OK. */
static void note(struct job *job, spmv_group *group, spmv_status st)
{
    const int rank = spmv_group_rank(group);
    job->status[rank] = st;
    snprintf(job->message[rank], sizeof job->message[rank], "%s",
             st != SPMV_OK ? spmv_last_error(spmv_group_context(group)) : "");
}

static spmv_status make(struct job *job, spmv_group *group, spmv_group_matrix **m)
{
    const int rank = spmv_group_rank(group), ranks = spmv_group_ranks(group);
    const int64_t begin = first_given(job, rank, ranks), end = first_given(job, rank + 1, ranks);
    int64_t *offsets = malloc((size_t)(end - begin + 1) * sizeof *offsets);
    const spmv_csr own = support_rows_of(&job->a, begin, end, offsets);
    const int64_t *const row_ptr = job->a.row_ptr;
    const spmv_status st = job->stays_wide || job->col == NULL
                               ? support_group_matrix(group, job->stays_wide, &own, NULL, m)
                               : spmv_group_matrix_create_wide(group, &own, job->col + row_ptr[begin], NULL, m);
    free(offsets);
    return st;
}

static spmv_status run_ranks(int ranks, spmv_group_fn fn, struct job *job)
{
    char message[300] = "";
    spmv_context_options context = support_context_options();
    context.backend = support_backend;
    context.threads = ranks;
    const spmv_status st = spmv_group_run(ranks, &context, fn, job, message, sizeof message);
    if (st != SPMV_OK)
        fprintf(stderr, "%d ranks: %s\n", ranks, message);
    return st;
}

/* ------------------------------------------------------------- errors */

/* A failure that all ranks know of leaves the group whole. */
static spmv_status make_only(spmv_group *group, void *user)
{
    spmv_group_matrix *m = NULL;
    note(user, group, make(user, group, &m));
    spmv_group_matrix_destroy(m);
    return spmv_group_agree(group, SPMV_OK);
}

enum { FEW = 40 };
static const int64_t many = ((int64_t)1 << 33) + 5;

/* FEW rows with one entry each in the columns, which are spread over all. */
static struct job few_rows(const int64_t *row_ptr, const float *val, int64_t *col, int64_t cols)
{
    for (int64_t k = 0; k < FEW; k++)
        col[k] = (cols - 1) / (FEW - 1) * k;
    const spmv_csr a = {.rows = FEW,
                        .cols = cols,
                        .nnz = FEW,
                        .row_ptr = row_ptr,
                        .row_ptr_bits = 64,
                        .val = val,
                        .type = SPMV_F32,
                        .memory = SPMV_MEMORY_HOST};
    return (struct job){.a = a, .col = col};
}

static void expect_failure(struct job *job, int ranks, spmv_status status, const char *sentence)
{
    assert_int_equal(run_ranks(ranks, make_only, job), SPMV_OK);
    for (int r = 0; r < ranks; r++) {
        if (job->status[r] != status || strstr(job->message[r], sentence) == NULL)
            fail_msg("rank %d of %d: status %d, %s", r, ranks, (int)job->status[r], job->message[r]);
    }
}

static void failures_reach_all_ranks(void **state)
{
    (void)state;
    int64_t row_ptr[FEW + 1], col[FEW];
    float val[FEW];
    for (int64_t i = 0; i <= FEW; i++)
        row_ptr[i] = i;
    for (int64_t i = 0; i < FEW; i++)
        val[i] = 1;
    struct job job = few_rows(row_ptr, val, col, many);
    col[FEW - 1] = many; /* of the last rank, whose rows begin at 20 of 3 ranks */
    expect_failure(&job, 3, SPMV_ERROR_SIZE, "column 8589934597 is outside the 8589934597 columns");
    expect_failure(&job, 3, SPMV_ERROR_SIZE, "row 19, entry 19");
    job = few_rows(row_ptr, val, col, many);
    col[3] = -1;
    expect_failure(&job, 3, SPMV_ERROR_SIZE, "row 3, entry 3: column -1");
    job = few_rows(row_ptr, val, col, 1000); /* 32 bits suffice */
    col[3] = ((int64_t)1 << 32) + 3;
    expect_failure(&job, 3, SPMV_ERROR_SIZE, "row 3, entry 3: column 4294967299 is outside the 1000 columns");
    job = few_rows(row_ptr, val, col, many);
    expect_failure(&job, 1, SPMV_ERROR_LIMIT, "take 5 ranks or more");
    expect_failure(&job, 4, SPMV_ERROR_LIMIT, "take 5 ranks or more");
    job = few_rows(row_ptr, val, col, INT64_MAX);
    expect_failure(&job, 3, SPMV_ERROR_LIMIT, "ranks or more");
    job = few_rows(row_ptr, val, col, many);
    job.col = NULL; /* columns of 32 bits */
    expect_failure(&job, 2, SPMV_ERROR_LIMIT, "take spmv_group_matrix_create_wide");
    job = few_rows(row_ptr, val, col, many);
    row_ptr[30] = 50;
    expect_failure(&job, 3, SPMV_ERROR_SIZE, "ends before it starts");
}

/* ------------------------------------------------------------- what is not there */

static spmv_status ask_for_more(spmv_group *group, void *user)
{
    struct job *const job = user;
    spmv_group_matrix *m = NULL, *other = NULL;
    spmv_preconditioner *precond = NULL;
    spmv_group_solver *solver = NULL;
    spmv_solver_options options = support_solver_options();
    options.null_block = 1;
    const spmv_status st = make(job, group, &m);
    if (st != SPMV_OK)
        return st;
    const spmv_status refused[] = {spmv_group_matrix_transpose(m, &other),
                                   spmv_group_preconditioner_create(m, "amg", &precond),
                                   spmv_group_solver_create(m, &options, &solver)};
    for (int i = 0; i < 3; i++)
        if (refused[i] != SPMV_ERROR_UNSUPPORTED)
            note(job, group, SPMV_ERROR_CHECK);
    spmv_preconditioner_destroy(precond);
    spmv_group_solver_destroy(solver);
    spmv_group_matrix_destroy(other);
    spmv_group_matrix_destroy(m);
    return spmv_group_agree(group, SPMV_OK);
}

static void what_is_not_there_is_refused(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    spmv_matrix *matrix = NULL;
    struct job job = {.stays_wide = true};
    assert_int_equal(spmv_matrix_generate(ctx, "poisson2d:20", SPMV_F64, &matrix), SPMV_OK);
    spmv_matrix_view(matrix, &job.a);
    job.a.memory = SPMV_MEMORY_HOST;
    assert_int_equal(run_ranks(3, ask_for_more, &job), SPMV_OK);
    for (int r = 0; r < 3; r++)
        assert_int_equal(job.status[r], SPMV_OK);
    spmv_matrix_destroy(matrix);
    spmv_context_destroy(ctx);
}

/* ------------------------------------------------------------- few columns */

/* The bits of spmv_group_matrix_create, and what wide ones do not have. */
static spmv_status compare_narrow(spmv_group *group, void *user)
{
    struct job *const job = user;
    spmv_context *const ctx = spmv_group_context(group);
    struct job narrow = *job;
    spmv_group_matrix *m = NULL, *same = NULL, *transpose = NULL;
    spmv_group_matrix_info info = {0};
    double *host = NULL;
    void *x = NULL, *y[2] = {NULL, NULL};
    narrow.col = NULL;
    spmv_status st = make(job, group, &m);
    if (st == SPMV_OK)
        st = make(&narrow, group, &same);
    if (st == SPMV_OK)
        st = spmv_group_matrix_transpose(m, &transpose);
    if (st == SPMV_OK)
        st = spmv_group_matrix_describe(m, &info, sizeof info);
    host = calloc((size_t)(info.own_cols + info.own_rows * 2 + 1), sizeof *host);
    for (int64_t i = 0; i < info.own_cols; i++)
        host[i] = 1 + (double)((info.first_col + i) % 17) / 16;
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (info.own_cols + 1) * 8, &x);
    for (int i = 0; i < 2 && st == SPMV_OK; i++)
        st = spmv_alloc(ctx, (info.own_rows + 1) * 8, &y[i]);
    if (st == SPMV_OK)
        st = spmv_upload(ctx, host, x, info.own_cols * 8);
    st = spmv_group_agree(group, st);
    if (st == SPMV_OK)
        st = spmv_group_apply(m, NULL, x, NULL, y[0]);
    if (st == SPMV_OK)
        st = spmv_group_apply(same, NULL, x, NULL, y[1]);
    for (int i = 0; i < 2 && st == SPMV_OK; i++)
        st = spmv_download(ctx, y[i], host + i * info.own_rows, info.own_rows * 8);
    if (st == SPMV_OK && (m->wide || memcmp(host, host + info.own_rows, (size_t)info.own_rows * 8) != 0))
        note(job, group, SPMV_ERROR_CHECK);
    spmv_free(ctx, x);
    spmv_free(ctx, y[0]);
    spmv_free(ctx, y[1]);
    free(host);
    spmv_group_matrix_destroy(transpose);
    spmv_group_matrix_destroy(same);
    spmv_group_matrix_destroy(m);
    return st;
}

static void few_columns_become_narrow(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    spmv_matrix *matrix = NULL;
    struct job job = {.col = NULL};
    assert_int_equal(spmv_matrix_generate(ctx, "uniform:700,900,5", SPMV_F64, &matrix), SPMV_OK);
    spmv_matrix_view(matrix, &job.a);
    job.a.memory = SPMV_MEMORY_HOST;
    int64_t *col = malloc((size_t)job.a.nnz * sizeof *col);
    for (int64_t k = 0; k < job.a.nnz; k++)
        col[k] = job.a.col[k];
    job.col = col;
    assert_int_equal(run_ranks(3, compare_narrow, &job), SPMV_OK);
    for (int r = 0; r < 3; r++)
        assert_int_equal(job.status[r], SPMV_OK);
    free(col);
    spmv_matrix_destroy(matrix);
    spmv_context_destroy(ctx);
}

/* ------------------------------------------------------------- many columns
 *
 * x has 2^32 elements, of which products read few. The system gives memory to the pages that are written only, so
 * the vectors of the ranks take little of it, as long as the library writes none of them as a whole. So the product is
 * that of the plan, with the elements of x put into the vector that the matrix has; spmv_group_apply would copy x. */

enum { ROWS = 3000, EACH = 8, NNZ = ROWS * EACH, SPOTS = 29 /* few, since a page may have 2 MiB */, WIDTH = 900 };

static float element(int64_t i)
{
    return 1 + (float)(splitmix_mix((uint64_t)i + 3) >> 50) / (1 << 14);
}

static int ascending(const void *a, const void *b)
{
    const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

static int64_t number_of(const struct job *job, int64_t column)
{
    const int64_t *const at = bsearch(&column, job->distinct, (size_t)job->distincts, sizeof column, ascending);
    return at - job->distinct;
}

/* Puts the elements of x that this rank owns to `own`. */
static void put_elements(const struct job *job, const spmv_group_matrix_info *info, float *own)
{
    for (int64_t i = 0; i < job->distincts; i++) {
        const int64_t at = (job->col != NULL ? job->distinct[i] : i) - info->first_col;
        if (at >= 0 && at < info->own_cols)
            own[at] = element(i);
    }
}

static spmv_status multiply(spmv_group *group, void *user)
{
    struct job *const job = user;
    spmv_context *const ctx = spmv_group_context(group);
    const int rank = spmv_group_rank(group), ranks = spmv_group_ranks(group);
    const int64_t *const row_ptr = job->a.row_ptr;
    const float *const val = job->a.val;
    spmv_group_matrix *m = NULL;
    spmv_group_matrix_info info = {0};
    void *y = NULL;
    spmv_status st = make(job, group, &m);
    if (st == SPMV_OK) /* the same values again */
        st = spmv_group_matrix_update_values(m, val + row_ptr[first_given(job, rank, ranks)]);
    if (st == SPMV_OK)
        st = spmv_group_matrix_describe(m, &info, sizeof info);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (info.own_rows + 1) * 4, &y);
    st = spmv_group_agree(group, st);
    if (st == SPMV_OK) {
        put_elements(job, &info, m->x);
        group_begin(group);
        st = group_end(group, spmv_apply(m->plan, NULL, m->x, NULL, y));
    }
    if (st == SPMV_OK)
        st = spmv_group_gather(m, SPMV_GROUP_ROWS, y, rank == 0 ? job->y : NULL);
    if (rank == 0) {
        job->cols = info.cols;
        job->ghosts = info.all_ghosts;
    }
    spmv_free(ctx, y);
    spmv_group_matrix_destroy(m);
    return st;
}

static void many_columns_have_the_bits_of_few(void **state)
{
    (void)state;
#if defined(MEMORY_WATCHED) || defined(HOST_CUDA) /* these write memory that is not used */
    skip();
#endif
    if (support_backend == SPMV_BACKEND_CUDA)
        skip();
    const int64_t cols = ((int64_t)1 << 32) + 12345;
    int64_t *row_ptr = malloc((ROWS + 1) * sizeof *row_ptr), *col = malloc(NNZ * sizeof *col);
    int64_t *distinct = malloc(NNZ * sizeof *distinct);
    int32_t *small = malloc(NNZ * sizeof *small);
    float *val = malloc(NNZ * sizeof *val), *y[2];
    for (int64_t i = 0; i <= ROWS; i++)
        row_ptr[i] = i * EACH;
    for (int64_t k = 0; k < NNZ; k++) { /* some columns repeat */
        const uint64_t mixed = splitmix_mix((uint64_t)k);
        col[k] = (cols - WIDTH) / (SPOTS - 1) * (int64_t)(mixed % SPOTS) + (int64_t)(mixed >> 32) % WIDTH;
        val[k] = element(k + 1) - 1.5f;
        distinct[k] = col[k];
    }
    col[NNZ / 2] = distinct[NNZ / 2] = cols - 1;
    col[NNZ / 2 + 1] = distinct[NNZ / 2 + 1] = 0;
    qsort(distinct, NNZ, sizeof *distinct, ascending);
    int64_t distincts = 0;
    for (int64_t k = 0; k < NNZ; k++)
        if (k == 0 || distinct[k] != distinct[distincts - 1])
            distinct[distincts++] = distinct[k];
    struct job job = {.a = {.rows = ROWS,
                            .cols = distincts,
                            .nnz = NNZ,
                            .row_ptr = row_ptr,
                            .row_ptr_bits = 64,
                            .col = small,
                            .val = val,
                            .type = SPMV_F32,
                            .memory = SPMV_MEMORY_HOST},
                      .distinct = distinct,
                      .distincts = distincts};
    for (int64_t k = 0; k < NNZ; k++)
        small[k] = (int32_t)number_of(&job, col[k]);
    for (int i = 0; i < 2; i++)
        y[i] = calloc(ROWS, sizeof *y[i]);
    job.y = y[0];
    assert_int_equal(run_ranks(1, multiply, &job), SPMV_OK);
    job.a.cols = cols;
    job.a.col = NULL;
    job.col = col;
    job.y = y[1];
    bool refused = false;
    for (int ranks = 3; ranks <= MOST_RANKS; ranks += 5) {
        memset(y[1], 0, ROWS * sizeof *y[1]);
        const spmv_status st = run_ranks(ranks, multiply, &job);
        refused = st == SPMV_ERROR_MEMORY; /* the system may limit memory that is not used */
        if (refused)
            break;
        assert_int_equal(st, SPMV_OK);
        assert_memory_equal(y[0], y[1], ROWS * sizeof *y[0]);
        assert_true(job.cols == cols && job.ghosts > distincts / 4);
    }
    struct rusage use;
    assert_int_equal(getrusage(RUSAGE_SELF, &use), 0);
    assert_true(use.ru_maxrss < 300 << 10); /* KiB */
    free(row_ptr);
    free(col);
    free(distinct);
    free(small);
    free(val);
    free(y[0]);
    free(y[1]);
    if (refused)
        skip();
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_reach_all_ranks),
        cmocka_unit_test(what_is_not_there_is_refused),
        cmocka_unit_test(few_columns_become_narrow),
        cmocka_unit_test(many_columns_have_the_bits_of_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
