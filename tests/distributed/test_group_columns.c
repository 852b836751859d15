/* Several right-hand sides on ranks: conjugate gradients solve for all at once, and each has the bits, the result and
 * the message of a solve alone, for any number of ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/runtime.h"
#include "tests/support/support.h"
#include "tests/support/support_ranks.h"

enum { MOST = 6, SIDE = 30, LARGE = 70, ROWS = SIDE * SIDE, RANKS = 7 };
#define GRID "poisson2d"

/* What is solved, and what comes out. */
struct job {
    const spmv_csr *a;
    const char *precond, *rung;
    double rtol;
    int64_t most; /* iterations; 0: the usual limit */
    int k;
    const void *b[MOST]; /* whole vectors */
    const void *x0;      /* the same of all; NULL: starts at 0 */
    int64_t cancel_at;   /* which call of the function that cancels does; -1: none */
    bool told;           /* there is a callback */
    const void *values;  /* NULL, or what the second solve takes */
    /* of rank 0 */
    char *x[MOST];
    spmv_solver_result result[MOST];
    spmv_status status;
    char message[512];
    int64_t calls, told_calls, told_starts;
};

/* ------------------------------------------------------------- a rank */

struct asked {
    struct job *job;
    int64_t calls;
    bool counts;
};

static int cancel(void *user)
{
    struct asked *const asked = user;
    if (asked->counts)
        asked->job->calls++;
    return asked->calls++ == asked->job->cancel_at;
}

static int tell(int64_t iteration, double residual, void *user)
{
    struct job *const job = user;
    job->told_calls++;
    job->told_starts += iteration == 0;
    return residual < 0;
}

/* The rows of a rank, of which the last one has none. */
static spmv_csr rows_of(const spmv_csr *a, int rank, int ranks, int64_t *offsets)
{
    const int64_t shares = ranks > 1 ? ranks - 1 : 1;
    const int64_t begin = a->rows * min_i64(rank, shares) / shares;
    const int64_t end = a->rows * min_i64(rank + 1, shares) / shares;
    return support_rows_of(a, begin, end, offsets);
}

/* Moves a vector between consecutive memory and column v of `rows`. */
static void move_column(char *rows, char *one, int64_t n, int v, int k, size_t size, bool back)
{
    for (int64_t i = 0; i < n; i++) {
        char *const of_rows = rows + (size_t)(i * k + v) * size, *const of_one = one + (size_t)i * size;
        memcpy(back ? of_one : of_rows, back ? of_rows : of_one, size);
    }
}

static spmv_status solve_rank(spmv_group *group, void *user)
{
    struct job *const job = user;
    spmv_context *const ctx = spmv_group_context(group);
    const bool first = spmv_group_rank(group) == 0;
    struct asked asked = {.job = job, .counts = first};
    const size_t size = spmv_type_size(job->a->type);
    spmv_group_matrix *m = NULL;
    spmv_group_solver *solver = NULL;
    spmv_group_matrix_info info;
    spmv_solver_options options;
    spmv_solver_result results[MOST];
    int64_t *const offsets = malloc((size_t)(job->a->rows + 1) * sizeof *offsets);
    const spmv_csr own = rows_of(job->a, spmv_group_rank(group), spmv_group_ranks(group), offsets);
    spmv_solver_options_init(&options, sizeof options);
    options.solver = job->precond != NULL ? "cg" : NULL;
    options.precond = job->precond;
    options.rung = job->rung;
    options.rtol = job->rtol;
    options.max_iterations = job->most;
    options.vectors = job->k;
    options.zero_start = job->x0 == NULL;
    options.on_iteration = job->told ? tell : NULL;
    options.user = job;
    assert_int_equal(spmv_group_matrix_create(group, &own, NULL, &m), SPMV_OK);
    assert_int_equal(spmv_group_matrix_describe(m, &info, sizeof info), SPMV_OK);
    const int64_t n = info.own_rows;
    void *one = NULL;
    assert_int_equal(spmv_alloc(ctx, (n + 1) * (int64_t)size, &one), SPMV_OK);
    char *const b = calloc((size_t)(n + 1) * (size_t)job->k, size), *const x =
                                                                        calloc((size_t)(n + 1) * (size_t)job->k, size);
    for (int v = 0; v < job->k; v++) {
        assert_int_equal(spmv_group_scatter(m, SPMV_GROUP_ROWS, job->b[v], one), SPMV_OK);
        move_column(b, one, n, v, job->k, size, false);
        if (job->x0 != NULL)
            assert_int_equal(spmv_group_scatter(m, SPMV_GROUP_ROWS, job->x0, one), SPMV_OK);
        move_column(x, one, n, v, job->k, size, false);
    }
    spmv_status st = spmv_group_solver_create(m, &options, &solver);
    if (st != SPMV_OK) /* a test must not fail in a thread */
        goto done;
    if (job->values != NULL) {
        char *const before = malloc((size_t)(n + 1) * (size_t)job->k * size);
        memcpy(before, x, (size_t)n * (size_t)job->k * size);
        (void)spmv_group_solver_solve(solver, b, x, results, sizeof *results);
        memcpy(x, before, (size_t)n * (size_t)job->k * size);
        free(before);
        const char *const its = (const char *)job->values + ((const char *)own.val - (const char *)job->a->val);
        assert_int_equal(spmv_group_solver_update_values(solver, its), SPMV_OK);
    }
    if (job->cancel_at >= 0)
        spmv_context_set_cancel(ctx, cancel, &asked);
    st = spmv_group_solver_solve(solver, b, x, results, sizeof *results);
    if (first) {
        job->status = st;
        snprintf(job->message, sizeof job->message, "%s", spmv_last_error(ctx));
        memcpy(job->result, results, (size_t)job->k * sizeof *results);
    }
    spmv_context_set_cancel(ctx, NULL, NULL);
    for (int v = 0; v < job->k; v++) {
        move_column(x, one, n, v, job->k, size, true);
        st = spmv_group_gather(m, SPMV_GROUP_ROWS, one, job->x[v]);
    }
done:
    spmv_group_solver_destroy(solver);
    spmv_group_matrix_destroy(m);
    spmv_free(ctx, one);
    free(b);
    free(x);
    free(offsets);
    return st;
}

static void run(struct job *job, int ranks)
{
    char message[512] = "";
    spmv_context_options context;
    spmv_context_options_init(&context, sizeof context);
    context.backend = support_backend;
    context.threads = ranks + 1; /* one has another number than the others */
    job->calls = job->told_calls = job->told_starts = 0;
    for (int v = 0; v < job->k; v++)
        if (job->x[v] == NULL)
            job->x[v] = calloc((size_t)job->a->rows + 1, spmv_type_size(job->a->type));
    if (spmv_group_run(ranks, &context, solve_rank, job, message, sizeof message) != SPMV_OK)
        fail_msg("%d ranks: %s", ranks, message);
}

static void release(struct job *job)
{
    for (int v = 0; v < job->k; v++)
        free(job->x[v]);
}

/* ------------------------------------------------------------- systems */

/* What becomes of the grid. */
enum turn { AS_IT_IS, INDEFINITE, HEAVIER, PENALIZED };
enum { LOOSE = 20 }; /* rows of INDEFINITE that are coupled to no other, and negative */

static void *values_of(const spmv_csr *a, spmv_type type, enum turn turn)
{
    const int64_t *const row_ptr = a->row_ptr;
    const int parts = type_parts(type);
    void *const values = calloc((size_t)a->nnz + 1, spmv_type_size(type));
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++) {
            double value = real_at(a->type, a->val, k);
            if (turn == INDEFINITE && (i < LOOSE || a->col[k] < LOOSE))
                value = a->col[k] == i ? -(double)(i + 1) : 0;
            if (turn == HEAVIER && a->col[k] == i)
                value += 1 + (double)i / (double)a->rows;
            if (turn == PENALIZED && a->col[k] == i && i < a->rows / 20)
                value = 1e14;
            real_set(type_part(type), values, k * parts, value);
        }
    return values;
}

struct system {
    spmv_matrix *matrix;
    spmv_csr a;
    void *b[MOST];
};

static double mixed(int64_t i)
{
    return 1 + (double)(splitmix_mix((uint64_t)i + 7) >> 40) / (1 << 24);
}

/* Right-hand sides with different ends: 0 and 1: usual ones; 2: solved by one step, up to rounding; 3: small ones,
 * which a solve alone scales; 4: NaN; 5: 0. With INDEFINITE, only 1 and 3 meet the negative rows. */
static void open_system(struct system *s, spmv_type type, enum turn turn, const char *name, int64_t side)
{
    spmv_context *ctx = NULL;
    spmv_context_options options;
    char spec[64];
    const spmv_type part = type_part(type);
    const int parts = type_parts(type);
    snprintf(spec, sizeof spec, "%s:%lld", name, (long long)side);
    spmv_context_options_init(&options, sizeof options);
    options.backend = SPMV_BACKEND_REF;
    assert_int_equal(spmv_context_create(&options, &ctx), SPMV_OK);
    assert_int_equal(spmv_matrix_generate(ctx, spec, SPMV_F64, &s->matrix), SPMV_OK);
    spmv_context_destroy(ctx);
    spmv_matrix_view(s->matrix, &s->a);
    s->a.val = values_of(&s->a, type, turn);
    s->a.type = type;
    for (int v = 0; v < MOST; v++) {
        s->b[v] = calloc((size_t)s->a.rows + 1, spmv_type_size(type));
        for (int64_t i = 0; i < s->a.rows; i++) {
            const double sine = sin(acos(-1.0) * (double)(i % side + 1) / (double)(side + 1)) *
                                sin(acos(-1.0) * (double)(i / side + 1) / (double)(side + 1));
            const double value = v == 2   ? sine
                                 : v == 3 ? mixed(i) * (part == SPMV_F32 ? 0x1p-60 : 0x1p-700)
                                 : v == 5 ? 0
                                          : mixed(i + 1000 * v);
            const double times = turn == PENALIZED && i < s->a.rows / 20 ? 1e14 : 1;
            real_set(part, s->b[v], i * parts, turn == INDEFINITE && i < LOOSE && v % 2 == 0 ? 0 : times * value);
        }
    }
    if (s->a.rows > 0)
        real_set(part, s->b[4], s->a.rows / 2 * parts, NAN);
}

static void close_system(struct system *s)
{
    free((void *)(uintptr_t)s->a.val);
    for (int v = 0; v < MOST; v++)
        free(s->b[v]);
    spmv_matrix_destroy(s->matrix);
}

/* Whether both numbers have the same bits, or are NaN. */
static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void compare(const struct job *job, const struct job *alone, int v, int ranks)
{
    const spmv_solver_result *const its = &job->result[v], *const one = &alone->result[0];
    char *const of = alone->x[0];
    if (its->status != one->status || its->iterations != one->iterations || its->restarts != one->restarts ||
        !same(its->norm_b, one->norm_b) || !same(its->tolerance, one->tolerance) ||
        !same(its->recurrence_residual, one->recurrence_residual) || !same(its->true_residual, one->true_residual) ||
        !same(its->error_estimate, one->error_estimate) || !same(its->backward_error, one->backward_error) ||
        strcmp(its->solver, one->solver) != 0 || strcmp(its->precond, one->precond) != 0)
        fail_msg("%d ranks, right-hand side %d with %s: status %d, %lld iterations, residual %.17g, alone %d, %lld, "
                 "%.17g",
                 ranks, v, job->precond, (int)its->status, (long long)its->iterations, its->true_residual,
                 (int)one->status, (long long)one->iterations, one->true_residual);
    if (memcmp(job->x[v], of, (size_t)job->a->rows * spmv_type_size(job->a->type)) != 0)
        fail_msg("%d ranks, right-hand side %d with %s has other bits than alone", ranks, v, job->precond);
}

/* Solves on 1, 2, 3 and 7 ranks, and alone on one. */
static void check(struct job *job)
{
    static const int counts[] = {1, 2, 3, RANKS};
    struct job alone[MOST];
    spmv_status worst = SPMV_OK;
    int of = 0;
    for (int v = 0; v < job->k; v++) {
        alone[v] = *job;
        alone[v].k = 1;
        alone[v].b[0] = job->b[v];
        alone[v].x[0] = NULL;
        run(&alone[v], 1);
        if (worst == SPMV_OK && alone[v].status != SPMV_OK) {
            worst = alone[v].status;
            of = v;
        }
    }
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        char expected[640] = "";
        run(job, counts[c]);
        for (int v = 0; v < job->k; v++)
            compare(job, &alone[v], v, counts[c]);
        assert_int_equal(job->status, worst);
        if (worst != SPMV_OK && worst != SPMV_ERROR_NOT_FINITE) { /* there the row of a rank is named */
            snprintf(expected, sizeof expected, "right-hand side %d of %d: %s", of + 1, job->k, alone[of].message);
            assert_string_equal(job->message, expected);
        }
    }
    for (int v = 0; v < job->k; v++)
        release(&alone[v]);
}

/* ------------------------------------------------------------- tests */

struct kind {
    spmv_type type;
    const char *precond;
    double rtol;
    const char *name; /* of the matrix */
    int64_t side;
};
static const struct kind kinds[] = {
    {SPMV_F64, "none", 1e-8, GRID, SIDE},
    {SPMV_F64, "jacobi", 1e-10, GRID, SIDE},
    {SPMV_F32, "none", 1e-4, GRID, SIDE},
    {SPMV_F32, "jacobi", 1e-5, GRID, SIDE},
    {SPMV_C128, "jacobi", 1e-8, GRID, SIDE}, /* one after the other */
    {SPMV_F64, NULL, 1e-8, GRID, SIDE},      /* auto */
    {SPMV_F64, "amg", 1e-8, GRID, SIDE},     /* each rank has all levels */
    {SPMV_F32, "amg", 1e-5, GRID, SIDE},
    {SPMV_F64, "amg", 1e-8, GRID, LARGE}, /* ranks have parts of the first one */
    {SPMV_F32, "amg", 1e-4, GRID, LARGE},
    {SPMV_F64, "amg", 1e-8, "elasticity3d", 12}, /* nodes of 3 rows */
    {SPMV_F32, "amg", 1e-3, "elasticity3d", 12},
    {SPMV_F64, NULL, 1e-8, GRID, 150}, /* auto takes amg */
};
enum { KINDS = sizeof kinds / sizeof *kinds, AMG = 6 /* the first with amg */ };

/* Those that are solved for at once, of right-hand sides that differ. */
static void at_once(const struct job *job, int v)
{
    if (support_backend == SPMV_BACKEND_OMP)
        assert_string_equal(job->result[v].rung, "fused");
}

static struct job job_of(const struct kind *kind, const struct system *s, int k)
{
    struct job job = {
        .a = &s->a, .precond = kind->precond, .rtol = kind->rtol, .k = k, .cancel_at = -1, .status = SPMV_OK};
    for (int v = 0; v < k; v++)
        job.b[v] = s->b[v];
    return job;
}

static void each_has_the_bits_of_a_solve_alone(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        struct system s;
        open_system(&s, kinds[i].type, AS_IT_IS, kinds[i].name, kinds[i].side);
        struct job job = job_of(&kinds[i], &s, MOST);
        check(&job);
        if (i >= AMG) {
            assert_string_equal(job.result[1].precond, "amg");
            at_once(&job, 1);
        }
        assert_int_equal(job.result[0].status, SPMV_OK);
        assert_int_equal(job.result[4].status, SPMV_ERROR_NOT_FINITE);
        if (kinds[i].precond != NULL && i < AMG)
            assert_true(job.result[2].iterations < job.result[0].iterations / 4);
        release(&job);
        close_system(&s);
    }
}

/* Another start, another rung, a limit of iterations, a tolerance that restarts do not reach. */
static void starts_rungs_and_limits(void **state)
{
    (void)state;
    struct system s;
    open_system(&s, SPMV_F64, AS_IT_IS, GRID, SIDE);
    for (int i = 0; i < 4; i++) {
        struct job job = job_of(&kinds[i % 2], &s, 4);
        job.x0 = i == 0 ? s.b[1] : NULL;
        job.rung = i == 1 ? "textbook" : NULL;
        job.most = i == 2 ? 7 : 0;
        job.rtol = i == 3 ? 1e-17 : job.rtol;
        check(&job);
        assert_int_equal(job.result[0].status, i == 2   ? SPMV_ERROR_ITERATIONS
                                               : i == 3 ? SPMV_ERROR_STAGNATION
                                                        : SPMV_OK);
        release(&job);
    }
    close_system(&s);
}

/* Residuals of the start with different sizes: of 0 a small one, of 2 none. */
static void start_near(struct system *s, double size)
{
    const int64_t *const row_ptr = s->a.row_ptr;
    for (int64_t i = 0; i < s->a.rows; i++) {
        double sum = 0;
        for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
            sum += real_at(s->a.type, s->a.val, k) * real_at(s->a.type, s->b[1], s->a.col[k]);
        real_set(s->a.type, s->b[0], i, sum + size * mixed(i + 77));
        real_set(s->a.type, s->b[2], i, sum);
    }
}

/* With amg, also where only some arrive within the limit of iterations, or none does. */
static void columns_end_at_different_steps(void **state)
{
    (void)state;
    for (int64_t side = SIDE; side <= LARGE; side += LARGE - SIDE) {
        struct system s;
        open_system(&s, SPMV_F64, AS_IT_IS, GRID, side);
        start_near(&s, 1e-5);
        for (int i = 0; i < 3; i++) {
            struct job job = job_of(&kinds[AMG], &s, MOST);
            job.x0 = s.b[1];
            job.most = i == 1 ? 7 : 0;
            job.rtol = i == 2 ? 1e-17 : job.rtol;
            check(&job);
            if (i < 2) {
                assert_int_equal(job.result[0].status, SPMV_OK);
                assert_int_equal(job.result[1].status, i == 1 ? SPMV_ERROR_ITERATIONS : SPMV_OK);
                assert_true(job.result[0].iterations < job.result[1].iterations);
                at_once(&job, 0);
                at_once(&job, 1);
            }
            release(&job);
        }
        close_system(&s);
    }
}

/* "auto" with a rival that does not begin: what takes many more iterations than the first is solved for alone. */
static void much_longer_ones_run_alone(void **state)
{
    (void)state;
    const struct kind *const kind = &kinds[AMG - 1];
    struct system s;
    open_system(&s, SPMV_F64, AS_IT_IS, GRID, SIDE);
    start_near(&s, 3e-8);
    struct job job = job_of(kind, &s, MOST);
    job.x0 = s.b[1];
    check(&job);
    assert_true(job.result[1].iterations > 2 * job.result[0].iterations + 16);
    release(&job);
    close_system(&s);
}

/* One that is not solved stops no other. */
static void indefinite_rows_stop_only_those_that_meet_them(void **state)
{
    (void)state;
    struct system s;
    open_system(&s, SPMV_F64, INDEFINITE, GRID, SIDE);
    struct job job = job_of(&kinds[0], &s, 3);
    check(&job);
    assert_int_equal(job.result[0].status, SPMV_OK);
    assert_int_equal(job.result[1].status, SPMV_ERROR_NOT_POSITIVE);
    assert_int_equal(job.result[2].status, SPMV_OK);
    release(&job);
    close_system(&s);
}

/* Corrections of an inaccurate x are made for each alone, with another matrix of the group, after the run for all. */
static void wrong_rows_are_corrected(void **state)
{
    (void)state;
    struct system s;
    open_system(&s, SPMV_F64, PENALIZED, GRID, SIDE);
    struct job job = job_of(&kinds[0], &s, 3);
    check(&job);
    assert_true(job.result[0].backward_error <= 1e-4); /* the tolerance alone allows 1 */
    release(&job);
    close_system(&s);
}

static void few_rows(void **state)
{
    (void)state;
    for (int64_t side = 1; side <= 3; side++) {
        struct system s;
        open_system(&s, SPMV_F64, AS_IT_IS, GRID, side);
        struct job job = job_of(&kinds[0], &s, 3);
        check(&job);
        release(&job);
        close_system(&s);
    }
}

/* -A x = -b is solved, also by a rank without rows; what fails, fails on all ranks. */
static void negative_diagonals(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct system s;
        open_system(&s, SPMV_F64, AS_IT_IS, GRID, SIDE);
        for (int64_t e = 0; e < s.a.nnz; e++)
            ((double *)s.a.val)[e] *= -1;
        struct job job = job_of(&kinds[0], &s, 2);
        job.rtol = i == 0 ? job.rtol : 1e-30;
        check(&job);
        assert_int_equal(job.status, i == 0 ? SPMV_OK : SPMV_ERROR_STAGNATION);
        release(&job);
        close_system(&s);
    }
}

static void new_values(void **state)
{
    (void)state;
    struct system s, heavier;
    open_system(&s, SPMV_F64, AS_IT_IS, GRID, SIDE);
    open_system(&heavier, SPMV_F64, HEAVIER, GRID, SIDE);
    for (int i = 0; i < 4; i++) { /* jacobi and amg on 1 and on 3 ranks */
        const struct kind *const kind = i < 2 ? &kinds[1] : &kinds[AMG];
        struct job job = job_of(kind, &s, 4), of_new = job_of(kind, &heavier, 4);
        job.values = heavier.a.val;
        run(&job, 1 + i % 2 * 2);
        run(&of_new, 1 + i % 2 * 2);
        for (int v = 0; v < 4; v++) {
            assert_int_equal(job.result[v].status, SPMV_OK);
            assert_memory_equal(job.x[v], of_new.x[v], ROWS * sizeof(double));
        }
        release(&job);
        release(&of_new);
    }
    close_system(&s);
    close_system(&heavier);
}

/* The function that cancels is asked once an iteration of all. Those that were solved before stay solved. */
static void cancels(void **state)
{
    (void)state;
    static const int which[] = {0, 1, AMG};
    for (int i = 0; i < 3 && support_backend == SPMV_BACKEND_OMP; i++) {
        struct system s;
        open_system(&s, SPMV_F64, AS_IT_IS, GRID, SIDE);
        struct job job = job_of(&kinds[which[i]], &s, 4), stopped = job, alone = job;
        if (which[i] == AMG) {
            start_near(&s, 1);
            job.x0 = stopped.x0 = alone.x0 = s.b[1];
        }
        job.cancel_at = 1 << 30;
        check(&job);
        run(&job, 3);
        assert_int_equal(job.status, SPMV_OK);
        assert_true(job.calls > job.result[0].iterations);
        assert_true(job.calls < job.result[0].iterations + job.result[1].iterations + job.result[3].iterations);
        stopped.cancel_at = alone.cancel_at = job.result[0].iterations / 2;
        alone.k = 1;
        run(&stopped, 3);
        run(&alone, 1);
        assert_int_equal(stopped.status, SPMV_CANCELLED);
        assert_int_equal(stopped.result[0].status, SPMV_CANCELLED);
        assert_int_equal(stopped.result[1].status, SPMV_CANCELLED);
        assert_int_equal(stopped.result[2].status, SPMV_OK);
        compare(&stopped, &alone, 0, 3);
        assert_memory_equal(stopped.x[2], job.x[2], ROWS * sizeof(double));
        release(&job);
        release(&stopped);
        release(&alone);
        close_system(&s);
    }
}

/* The callback counts each right-hand side from iteration 0. */
static void callback(void **state)
{
    (void)state;
    struct system s;
    open_system(&s, SPMV_F64, AS_IT_IS, GRID, SIDE);
    struct job job = job_of(&kinds[0], &s, 3);
    job.told = true;
    check(&job);
    assert_int_equal(job.told_starts, 3);
    assert_int_equal(job.told_calls,
                     job.result[0].iterations + job.result[1].iterations + job.result[2].iterations + 3);
    release(&job);
    close_system(&s);
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_the_bits_of_a_solve_alone),
        cmocka_unit_test(starts_rungs_and_limits),
        cmocka_unit_test(columns_end_at_different_steps),
        cmocka_unit_test(much_longer_ones_run_alone),
        cmocka_unit_test(indefinite_rows_stop_only_those_that_meet_them),
        cmocka_unit_test(wrong_rows_are_corrected),
        cmocka_unit_test(few_rows),
        cmocka_unit_test(negative_diagonals),
        cmocka_unit_test(new_values),
        cmocka_unit_test(cancels),
        cmocka_unit_test(callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
