/* Every solver on ranks (spmv_group_solver_create): x, iterations and history have the same bits for any number
 * of ranks, "auto" chooses as without ranks, and all ranks end with the same status.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>

#include "core/runtime.h"
#include "distributed/group_internal.h"
#include "tests/support/support.h"
#include "tests/support/support_fails.h"
#include "tests/support/support_ranks.h"

/* What becomes of a generated matrix. */
enum turn {
    AS_IT_IS,
    NEGATED,
    SHIFTED,
    TURNED,
    PENALIZED,
    LARGE_ROWS,
    THREE_DIAGONALS,
    HEAVIER,
    ROW_SUMS_0, /* each */
    LINES,      /* of a grid, not coupled to each other; the rows of every second one have the sum 0 */
    WEIGHTED,   /* D A D, where the rows of A have the sum 0, and d_i is 1 / weight(i) */
    ROWS_TIMES, /* D^-1 A, likewise */
};

struct system_case {
    const char *spec;
    spmv_type type;
    enum turn turn;
    const char *solver, *precond; /* NULL: auto */
    const char *expected;         /* the solver */
    double rtol;
};

#ifdef HOST_CUDA /* a thousand times slower */
#define GRID "poisson2d:11"
#define FLOW "convdiff2d:11,3"
#define AUTO_GRID "poisson2d:15" /* too large for a dense factor */
#define AUTO_FLOW "convdiff2d:15,3"
#define LINES_GRID "poisson2d:5" /* iterates to the limit, which grows with the rows */
#else
#define GRID "poisson2d:30"
#define FLOW "convdiff2d:30,3"
#define AUTO_GRID GRID
#define AUTO_FLOW FLOW
#define LINES_GRID GRID
#endif

static const struct system_case cases[] = {
    {GRID, SPMV_F64, AS_IT_IS, "minres", "jacobi", "minres", 1e-8},
    {GRID, SPMV_F64, SHIFTED, "minres", "none", "minres", 1e-8},
    {FLOW, SPMV_F64, AS_IT_IS, "gmres", "jacobi", "gmres", 1e-8},
    {FLOW, SPMV_F64, AS_IT_IS, "gmres", "none", "gmres", 1e-8},
    {FLOW, SPMV_F64, AS_IT_IS, "bicgstab", "jacobi", "bicgstab", 1e-8},
    {FLOW, SPMV_F32, AS_IT_IS, "gmres", "jacobi", "gmres", 1e-4},
    {GRID, SPMV_F32, AS_IT_IS, "minres", "none", "minres", 1e-4},
    {FLOW, SPMV_C128, TURNED, "gmres", "jacobi", "gmres", 1e-8},
    {FLOW, SPMV_C128, TURNED, "bicgstab", "none", "bicgstab", 1e-8},
    {FLOW, SPMV_C64, TURNED, "gmres", "none", "gmres", 1e-4},
    {GRID, SPMV_C128, AS_IT_IS, "cg", "jacobi", "cg", 1e-8},
    {AUTO_GRID, SPMV_F64, AS_IT_IS, NULL, NULL, "cg", 1e-8},
    {AUTO_GRID, SPMV_F64, NEGATED, NULL, NULL, "cg", 1e-8},
    {AUTO_GRID, SPMV_F64, SHIFTED, NULL, NULL, "minres", 1e-8},
    {AUTO_FLOW, SPMV_F64, AS_IT_IS, NULL, NULL, "gmres", 1e-8},
    {AUTO_FLOW, SPMV_C128, TURNED, NULL, NULL, "gmres", 1e-8},
    {"poisson2d:1", SPMV_F64, AS_IT_IS, "gmres", "none", "gmres", 1e-8},
    /* each rank has the dense factor, also one without rows */
    {"poisson2d:13", SPMV_F64, AS_IT_IS, NULL, NULL, "direct", 1e-8},
    {"convdiff2d:4,3", SPMV_C64, TURNED, NULL, NULL, "direct", 1e-4},
    {"poisson2d:2", SPMV_F32, NEGATED, NULL, NULL, "direct", 1e-4},
};
enum { CASES = sizeof cases / sizeof *cases, MOST_HISTORY = 20000 };

/* The numbers of ranks: of seven, two have no rows. The first one only on an emulated GPU, which is slow. */
static const int rank_counts[] = {3, 2, 7};
#ifdef HOST_CUDA
enum { COUNTS = 1 };
#else
enum { COUNTS = sizeof rank_counts / sizeof *rank_counts };
#endif

struct outcome {
    char *x;
    spmv_solver_result result;
    double *history;
    int64_t told;
};

struct run {
    const struct system_case *of;
    const spmv_csr *a;
    const void *b, *x0; /* all of them; x0 NULL: starts at 0 */
    const void *null;   /* null vectors, all rows */
    int nulls, null_block;
    int64_t stop_at; /* the callback cancels; -1: never */
    bool wide;       /* columns of 64 bits until they are renumbered */
    struct outcome *outcome;
    spmv_status status[8]; /* of each rank */
};

/* ------------------------------------------------------------- systems */

static spmv_matrix *generate(const char *spec, spmv_csr *a)
{
    spmv_context *ctx = NULL;
    spmv_matrix *matrix = NULL;
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = SPMV_BACKEND_REF;
    assert_int_equal(spmv_context_create(&options, &ctx), SPMV_OK);
    assert_int_equal(spmv_matrix_generate(ctx, spec, SPMV_F64, &matrix), SPMV_OK);
    spmv_matrix_view(matrix, a);
    spmv_context_destroy(ctx);
    return matrix;
}

/* Row i of a square grid is in line i modulo its side, so each rank has rows of every line. Its neighbours there. */
static int64_t line_of(int64_t i, int64_t rows)
{
    return i % (int64_t)lround(sqrt((double)rows));
}
static double lines_beside(int64_t i, int64_t rows)
{
    const int64_t side = (int64_t)lround(sqrt((double)rows));
    return (double)(i >= side) + (double)(i + side < rows);
}

/* A power of two, so the null vector of weights has no rounding error. */
static double weight(int64_t i)
{
    return (double)(1 << i % 3);
}

/* The values of the case in its type. Turned: by an angle that grows with the row. */
static void *values_of(const struct system_case *c, const spmv_csr *a)
{
    const int64_t *const row_ptr = a->row_ptr;
    const spmv_type part = type_part(c->type);
    const int parts = type_parts(c->type);
    void *values = calloc((size_t)a->nnz + 1, spmv_type_size(c->type));
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++) {
            const double angle = c->turn == TURNED ? 0.5 + (double)i / (double)a->rows : 0;
            double value = real_at(a->type, a->val, k);
            if (c->turn == NEGATED)
                value = -value;
            if (c->turn == SHIFTED && a->col[k] == i) /* the first rows of an indefinite matrix */
                value = i < a->rows / 50 ? -1 - value : value + 1;
            if (c->turn == PENALIZED && a->col[k] == i && i < a->rows / 20)
                value = 1e14;
            if (c->turn == LARGE_ROWS && i % 4 == 0)
                value *= 1e13;
            if (c->turn == THREE_DIAGONALS) /* of both signs */
                value = a->col[k] == i ? 1 + 0.5 * sin((double)i) : llabs(a->col[k] - i) == 1 ? 1 : 0;
            if (c->turn == HEAVIER && a->col[k] == i)
                value += 1 + (double)i / (double)a->rows;
            if ((c->turn == ROW_SUMS_0 || c->turn == WEIGHTED || c->turn == ROWS_TIMES) && a->col[k] == i)
                value = (double)(row_ptr[i + 1] - row_ptr[i] - 1);
            if (c->turn == WEIGHTED)
                value /= weight(i) * weight(a->col[k]);
            if (c->turn == ROWS_TIMES)
                value *= weight(i);
            if (c->turn == LINES)
                value = a->col[k] == i ? lines_beside(i, a->rows) + (double)(line_of(i, a->rows) % 2)
                                       : -(double)(line_of(i, a->rows) == line_of(a->col[k], a->rows));
            real_set(part, values, k * parts, value * cos(angle));
            if (parts > 1)
                real_set(part, values, k * parts + 1, value * sin(angle));
        }
    return values;
}

/* Element i of the known solution. */
static double known(int64_t i)
{
    return 1 + (double)(splitmix_mix((uint64_t)i + 7) >> 40) / (1 << 24);
}

/* b = A x, in the type of the case. */
static void *right_side(const spmv_csr *a)
{
    const int64_t *const row_ptr = a->row_ptr;
    const spmv_type part = type_part(a->type);
    const int parts = type_parts(a->type);
    void *b = calloc((size_t)a->rows + 1, spmv_type_size(a->type));
    for (int64_t i = 0; i < a->rows; i++)
        for (int p = 0; p < parts; p++) {
            double sum = 0;
            for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
                sum += real_at(part, a->val, k * parts + p) * known(a->col[k]);
            real_set(part, b, i * parts + p, sum);
        }
    return b;
}

/* ------------------------------------------------------------- a run */

static int keep_history(int64_t iteration, double residual, void *user)
{
    struct run *const run = user;
    if (iteration < MOST_HISTORY)
        run->outcome->history[iteration] = residual;
    run->outcome->told++;
    return iteration == run->stop_at;
}

/* The matrix, and vectors of it, of a rank. */
struct part {
    spmv_group_matrix *m;
    spmv_group_matrix_info info;
    void *b, *x, *null;
    int64_t *offsets;
};

/* The null vectors of own rows. */
static spmv_status upload_null(spmv_context *ctx, const struct run *run, struct part *p)
{
    const int64_t row = run->nulls * (int64_t)spmv_type_size(run->of->type), bytes = p->info.own_rows * row;
    const spmv_status st = spmv_alloc(ctx, bytes, &p->null);
    return st == SPMV_OK ? spmv_upload(ctx, (const char *)run->null + p->info.first_row * row, p->null, bytes) : st;
}

static spmv_status open_part(spmv_group *group, const struct run *run, struct part *p)
{
    spmv_context *const ctx = spmv_group_context(group);
    const int64_t rank = spmv_group_rank(group), ranks = spmv_group_ranks(group), rows = run->a->rows;
    const int64_t begin = rows * rank / ranks, end = rows * (rank + 1) / ranks;
    const int64_t size = (int64_t)spmv_type_size(run->of->type);
    p->offsets = malloc((size_t)(end - begin + 1) * sizeof *p->offsets);
    const spmv_csr own = support_rows_of(run->a, begin, end, p->offsets);
    spmv_status st = support_group_matrix(group, run->wide, &own, NULL, &p->m);
    if (st == SPMV_OK)
        st = spmv_group_matrix_describe(p->m, &p->info, sizeof p->info);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (p->info.own_rows + 1) * size, &p->b);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (p->info.own_rows + 1) * size, &p->x);
    if (st == SPMV_OK && run->nulls > 0)
        st = upload_null(ctx, run, p);
    st = spmv_group_agree(group, st);
    if (st == SPMV_OK)
        st = spmv_group_scatter(p->m, SPMV_GROUP_ROWS, run->b, p->b);
    if (st == SPMV_OK && run->x0 != NULL)
        st = spmv_group_scatter(p->m, SPMV_GROUP_COLS, run->x0, p->x);
    return st;
}

static void close_part(spmv_group *group, struct part *p)
{
    spmv_free(spmv_group_context(group), p->b);
    spmv_free(spmv_group_context(group), p->x);
    spmv_free(spmv_group_context(group), p->null);
    spmv_group_matrix_destroy(p->m);
    free(p->offsets);
}

static spmv_status one_rank(spmv_group *group, void *user)
{
    struct run *const run = user;
    const int rank = spmv_group_rank(group);
    struct part p = {.m = NULL};
    spmv_group_solver *solver = NULL;
    spmv_solver_options options;
    spmv_solver_result result;
    spmv_solver_options_init(&options, sizeof options);
    options.solver = run->of->solver;
    options.precond = run->of->precond;
    options.rtol = run->of->rtol;
    options.zero_start = run->x0 == NULL;
    options.estimate_error = run->of->precond == NULL;
    options.on_iteration = keep_history;
    options.user = run;
    options.null_block = run->null_block;
    options.null_vectors = run->nulls;
    spmv_status st = open_part(group, run, &p);
    options.null_space = p.null;
    if (st == SPMV_OK) {
        st = spmv_group_solver_create(p.m, &options, &solver);
        run->status[rank] = st;
    }
    if (st == SPMV_OK) {
        st = spmv_group_solver_solve(solver, p.b, p.x, &result, sizeof result);
        run->status[rank] = st;
        if (rank == 0)
            run->outcome->result = result;
    }
    if (st == SPMV_OK)
        st = spmv_group_gather(p.m, SPMV_GROUP_COLS, p.x, run->outcome->x);
    spmv_group_solver_destroy(solver);
    close_part(group, &p);
    return st;
}

static spmv_status run_ranks(int ranks, spmv_group_fn fn, void *user, char *message, size_t size)
{
    spmv_context_options context;
    spmv_context_options_init(&context, sizeof context);
    context.backend = support_backend;
    context.threads = ranks + 1; /* one has another number than the others */
    return spmv_group_run(ranks, &context, fn, user, message, size);
}

static void open_outcome(struct outcome *o, const spmv_csr *a)
{
    *o = (struct outcome){.x = calloc((size_t)a->rows + 1, 16), .history = calloc(MOST_HISTORY, sizeof *o->history)};
}

static void close_outcome(struct outcome *o)
{
    free(o->x);
    free(o->history);
}

struct system {
    spmv_matrix *matrix;
    spmv_csr a;
    void *val, *b;
};

/* Drops entries that are 0, of real matrices. */
static void drop_zeros(struct system *s)
{
    int64_t *const row_ptr = (int64_t *)(uintptr_t)s->a.row_ptr;
    int32_t *const col = (int32_t *)(uintptr_t)s->a.col;
    int64_t kept = 0;
    for (int64_t i = 0, k = 0; i < s->a.rows; i++) {
        const int64_t end = row_ptr[i + 1];
        for (; k < end; k++)
            if (real_at(s->a.type, s->val, k) != 0) {
                col[kept] = col[k];
                real_set(s->a.type, s->val, kept++, real_at(s->a.type, s->val, k));
            }
        row_ptr[i + 1] = kept;
    }
    s->a.nnz = kept;
}

static void open_system(const struct system_case *c, struct system *s)
{
    s->matrix = generate(c->spec, &s->a);
    s->val = values_of(c, &s->a);
    s->a.val = s->val;
    s->a.type = c->type;
    if (c->turn == LINES)
        drop_zeros(s);
    s->b = right_side(&s->a);
}

static void close_system(struct system *s)
{
    spmv_matrix_destroy(s->matrix);
    free(s->val);
    free(s->b);
}

/* ------------------------------------------------------------- the tests */

static void check_solution(const struct system_case *c, const spmv_csr *a, const struct outcome *o)
{
    const double most = type_part(c->type) == SPMV_F32 ? 0.2 : 1e-3;
    const int parts = type_parts(c->type);
    assert_string_equal(o->result.solver, c->expected);
    for (int64_t i = 0; i < a->rows; i++) {
        const double error = fabs(real_at(type_part(c->type), o->x, i * parts) - known(i));
        if (!(error <= most))
            fail_msg("%s, %s: x[%lld] is off by %g", c->spec, c->expected, (long long)i, error);
    }
}

/* The true residual of f32 and c64 is summed in f64. */
static void check_residual(const struct system_case *c, const struct system *s, const struct outcome *o)
{
    const int64_t *const row_ptr = s->a.row_ptr;
    const spmv_type part = type_part(c->type);
    const int parts = type_parts(c->type);
    double square = 0;
    if (part == SPMV_F64)
        return;
    for (int64_t i = 0; i < s->a.rows; i++)
        for (int p = 0; p < parts; p++) {
            double r = real_at(part, s->b, i * parts + p);
            for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
                for (int q = 0; q < parts; q++) /* i i = -1 */
                    r -= (q == 1 && p == 0 ? -1 : 1) * real_at(part, s->a.val, k * parts + q) *
                         real_at(part, o->x, (int64_t)s->a.col[k] * parts + (p ^ q));
            square += r * r;
        }
    if (!(fabs(o->result.true_residual - sqrt(square)) <= 1e-6 * sqrt(square)))
        fail_msg("%s: the true residual is %g, not %g", c->spec, sqrt(square), o->result.true_residual);
}

static void same_bits_for_any_ranks(void **state)
{
    (void)state;
    for (int k = 0; k < CASES; k++) {
        const struct system_case *const c = &cases[k];
        struct system s;
        struct outcome one;
        char message[512] = "";
#ifdef HOST_CUDA /* slow: two thirds, which have each solver, type and preconditioner */
        if (k % 3 == 2)
            continue;
#endif
        open_system(c, &s);
        open_outcome(&one, &s.a);
        struct run run = {.of = c, .a = &s.a, .b = s.b, .stop_at = -1, .outcome = &one};
        if (run_ranks(1, one_rank, &run, message, sizeof message) != SPMV_OK)
            fail_msg("case %d, %s: %s", k, c->spec, message);
        check_solution(c, &s.a, &one);
        check_residual(c, &s, &one);
        for (int n = 0; n < COUNTS; n++) {
            struct outcome several;
            if (n > 0 && n % 2 != k % 2) /* the numbers behind the first take turns */
                continue;
            open_outcome(&several, &s.a);
            run.outcome = &several;
            if (run_ranks(rank_counts[n], one_rank, &run, message, sizeof message) != SPMV_OK)
                fail_msg("case %d, %s, %d ranks: %s", k, c->spec, rank_counts[n], message);
            assert_true(one.result.true_residual == several.result.true_residual);
            assert_true(one.result.backward_error == several.result.backward_error);
            assert_true(one.result.forward_error == several.result.forward_error);
            if (memcmp(one.x, several.x, (size_t)s.a.rows * spmv_type_size(c->type)) != 0 ||
                one.result.iterations != several.result.iterations || one.told != several.told ||
                memcmp(one.history, several.history, MOST_HISTORY * sizeof *one.history) != 0)
                fail_msg("case %d, %s with %s: %d ranks have other bits than one", k, c->spec, c->expected,
                         rank_counts[n]);
            assert_string_equal(one.result.solver, several.result.solver);
            assert_string_equal(one.result.precond, several.result.precond);
            close_outcome(&several);
        }
        close_outcome(&one);
        close_system(&s);
    }
}

/* What "auto" takes without ranks. */
static void solve_alone(const struct system *s, const struct system_case *c, spmv_solver_result *result)
{
    spmv_context *ctx = NULL;
    spmv_context_options context;
    spmv_solver *solver = NULL;
    spmv_solver_options o;
    spmv_context_options_init(&context, sizeof context);
    spmv_solver_options_init(&o, sizeof o);
    context.backend = support_backend;
    o.rtol = c->rtol;
    o.zero_start = 1;
    assert_int_equal(spmv_context_create(&context, &ctx), SPMV_OK);
    void *const b = support_upload(ctx, s->b, s->a.rows * 8), *const x = support_upload(ctx, s->b, s->a.rows * 8);
    assert_int_equal(spmv_solver_create(ctx, &s->a, &o, &solver), SPMV_OK);
    assert_int_equal(spmv_solver_solve(solver, b, x, result, sizeof *result), SPMV_OK);
    spmv_solver_destroy(solver);
    support_free_in(ctx, b, x);
    spmv_context_destroy(ctx);
}

/* Preconditioners race as without ranks, to the same end; ones that ranks do not have are left out, which the
 * reason says. */
static void auto_races_as_without_ranks(void **state)
{
    (void)state;
    static const struct {
        struct system_case of;
        const char *precond, *why;
        bool alike; /* the same without ranks, which try a sample from 4000 rows on, for minres from 1000 on */
    } races[] = {
        {{"diffusion2d:104,100000", SPMV_F64, AS_IT_IS, NULL, NULL, "cg", 1e-9}, "amg", "with jacobi about", false},
        {{"banded:4000,3", SPMV_F64, THREE_DIAGONALS, NULL, NULL, "gmres", 1e-12}, "ilut", "with ic0", false},
        {{"elasticity2d:40", SPMV_F64, AS_IT_IS, NULL, NULL, "cg", 1e-8}, "", "", true}, /* a factor */
        {{"diffusion2d:60,1000", SPMV_F64, AS_IT_IS, NULL, NULL, "cg", 1e-8}, "", "", true},
        {{"convdiff3d:37,1", SPMV_F64, AS_IT_IS, NULL, NULL, "gmres", 1e-8}, "amg", "errors are smooth", false},
    };
    if (support_backend == SPMV_BACKEND_CUDA)
        skip(); /* where such systems end before a race */
    for (size_t k = 0; k < sizeof races / sizeof *races; k++) {
        const struct system_case *const c = &races[k].of;
        struct system s;
        struct outcome o;
        char message[512] = "";
        spmv_solver_result alone = {.iterations = 0};
        open_system(c, &s);
        if (races[k].alike)
            solve_alone(&s, c, &alone);
        for (int ranks = 1; ranks <= 3; ranks += 2) {
            open_outcome(&o, &s.a);
            struct run run = {.of = c, .a = &s.a, .b = s.b, .stop_at = -1, .outcome = &o};
            if (run_ranks(ranks, one_rank, &run, message, sizeof message) != SPMV_OK)
                fail_msg("race %zu, %s, %d ranks: %s", k, c->spec, ranks, message);
            check_solution(c, &s.a, &o);
            assert_string_equal(o.result.precond, races[k].precond[0] != '\0' ? races[k].precond : alone.precond);
            assert_non_null(strstr(o.result.why_precond, races[k].why));
            if (races[k].alike) {
                assert_string_equal(alone.precond, o.result.precond);
                assert_string_equal(alone.solver, c->expected);
                assert_true(llabs(alone.iterations - o.result.iterations) <= 3);
            }
            close_outcome(&o);
        }
        close_system(&s);
    }
}

/* A start that solves the system needs no iteration; a callback that cancels ends all ranks. */
static void starts_and_cancels(void **state)
{
    (void)state;
    const struct system_case *const c = &cases[2];
    struct system s;
    struct outcome o;
    char message[512] = "";
    open_system(c, &s);
    double *const x0 = malloc((size_t)s.a.rows * sizeof *x0);
    for (int64_t i = 0; i < s.a.rows; i++)
        x0[i] = known(i);
    open_outcome(&o, &s.a);
    struct run run = {.of = c, .a = &s.a, .b = s.b, .x0 = x0, .stop_at = -1, .outcome = &o};
    assert_int_equal(run_ranks(3, one_rank, &run, message, sizeof message), SPMV_OK);
    assert_int_equal(o.result.iterations, 0);
    run.x0 = NULL;
    run.stop_at = 5;
    assert_int_equal(run_ranks(3, one_rank, &run, message, sizeof message), SPMV_CANCELLED);
    for (int r = 0; r < 3; r++)
        assert_int_equal(run.status[r], SPMV_CANCELLED);
    close_outcome(&o);
    close_system(&s);
    free(x0);
}

/* A few rows are so large that the norm of the residual says nothing about the others: these are corrected, with
 * the same bits for any number of ranks. */
static void wrong_rows_are_corrected(void **state)
{
    (void)state;
    static const struct system_case penalized[] = {
        {GRID, SPMV_F64, PENALIZED, "cg", "none", "cg", 1e-8},
        {AUTO_GRID, SPMV_F64, PENALIZED, NULL, NULL, "cg", 1e-8},
        {FLOW, SPMV_F64, PENALIZED, "gmres", "jacobi", "gmres", 1e-8},
        {FLOW, SPMV_C128, PENALIZED, "gmres", "none", "gmres", 1e-8},
        {FLOW, SPMV_F64, LARGE_ROWS, "gmres", "none", "gmres", 1e-8},
    };
    for (size_t k = 0; k < sizeof penalized / sizeof *penalized; k++) {
        const struct system_case *const c = &penalized[k];
        struct system s;
        struct outcome one;
        char message[512] = "";
        open_system(c, &s);
        open_outcome(&one, &s.a);
        struct run run = {.of = c, .a = &s.a, .b = s.b, .stop_at = -1, .outcome = &one};
        if (run_ranks(1, one_rank, &run, message, sizeof message) != SPMV_OK)
            fail_msg("case %zu, %s: %s", k, c->spec, message);
        check_solution(c, &s.a, &one);
        assert_true(one.result.true_residual <= one.result.tolerance && one.result.backward_error <= 1e-4);
        for (int n = COUNTS - 1; n < COUNTS; n++) { /* the other numbers: same_bits_for_any_ranks */
            struct outcome several;
            open_outcome(&several, &s.a);
            run.outcome = &several;
            run.wide = k % 2 == 0;
            assert_int_equal(run_ranks(rank_counts[n], one_rank, &run, message, sizeof message), SPMV_OK);
            assert_memory_equal(one.x, several.x, (size_t)s.a.rows * spmv_type_size(c->type));
            assert_int_equal(one.result.iterations, several.result.iterations);
            assert_int_equal(one.result.backward_row, several.result.backward_row);
            close_outcome(&several);
        }
        close_outcome(&one);
        close_system(&s);
    }
}

/* Columns of 64 bits, which are those of 32 bits once they are renumbered. -A is made of the rows of a rank. */
static void wide_columns_have_same_bits(void **state)
{
    (void)state;
    static const struct system_case wide[] = {
        {GRID, SPMV_F64, NEGATED, NULL, "jacobi", "cg", 1e-8},
        {GRID, SPMV_F64, SHIFTED, "minres", "none", "minres", 1e-8},
        {FLOW, SPMV_F64, AS_IT_IS, NULL, "jacobi", "gmres", 1e-8},
        {FLOW, SPMV_C128, TURNED, NULL, "jacobi", "gmres", 1e-8},
        {AUTO_GRID, SPMV_F64, AS_IT_IS, NULL, NULL, "cg", 1e-8}, /* has no preconditioner that narrow ones do not have */
    };
    for (size_t k = 0; k < sizeof wide / sizeof *wide; k++) {
        const struct system_case *const c = &wide[k];
        struct system s;
        struct outcome one, several;
        char message[512] = "";
        open_system(c, &s);
        open_outcome(&one, &s.a);
        open_outcome(&several, &s.a);
        struct run run = {.of = c, .a = &s.a, .b = s.b, .stop_at = -1, .outcome = &one, .wide = c->precond == NULL};
        if (run_ranks(1, one_rank, &run, message, sizeof message) != SPMV_OK)
            fail_msg("case %zu, %s: %s", k, c->spec, message);
        run.outcome = &several;
        run.wide = true;
        assert_int_equal(run_ranks(rank_counts[0], one_rank, &run, message, sizeof message), SPMV_OK);
        check_solution(c, &s.a, &several);
        assert_memory_equal(one.x, several.x, (size_t)s.a.rows * spmv_type_size(c->type));
        assert_int_equal(one.result.iterations, several.result.iterations);
        close_outcome(&one);
        close_outcome(&several);
        close_system(&s);
    }
}

/* Null vectors of singular matrices are split off as without ranks: a part of b along them that is within the
 * tolerance does no harm, and a larger one is named. */
static void null_vectors_are_split_off(void **state)
{
    (void)state;
    static const struct {
        struct system_case of;
        double along; /* the part of b, relative to its largest element */
        spmv_status expected;
        const char *sentence;
    } parts[] = {
        {{AUTO_GRID, SPMV_F64, ROW_SUMS_0, NULL, NULL, NULL, 1e-8}, 1e-10, SPMV_OK, ""},
        {{AUTO_GRID, SPMV_F64, ROW_SUMS_0, NULL, NULL, NULL, 1e-8},
         1e-3,
         SPMV_ERROR_INCONSISTENT,
         "every row sums to 0"},
        {{GRID, SPMV_F64, ROW_SUMS_0, "cg", "amg", NULL, 1e-8}, 1e-10, SPMV_OK, ""},
        {{GRID, SPMV_F32, ROW_SUMS_0, "minres", "none", NULL, 1e-4}, 1e-5, SPMV_OK, ""},
        {{GRID, SPMV_C128, ROW_SUMS_0, "cg", "jacobi", NULL, 1e-8}, 1e-3, SPMV_ERROR_INCONSISTENT, "every row"},
        {{LINES_GRID, SPMV_F64, LINES, "cg", "jacobi", NULL, 1e-8}, 1e-10, SPMV_OK, ""},
        {{LINES_GRID, SPMV_F64, LINES, "cg", "jacobi", NULL, 1e-8},
         1e-3,
         SPMV_ERROR_INCONSISTENT,
         "of a part of it sums"},
    };
#ifdef HOST_CUDA
    enum { EACH = 3 };
#else
    enum { EACH = 1 };
#endif
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k += EACH) {
        const struct system_case *const c = &parts[k].of;
        struct system s;
        struct outcome one;
        double largest = 0;
        open_system(c, &s);
        const int64_t numbers = s.a.rows * type_parts(c->type);
        for (int64_t i = 0; i < numbers; i++)
            largest = fmax(largest, fabs(real_at(type_part(c->type), s.b, i)));
        for (int64_t i = 0; i < numbers; i++)
            real_set(type_part(c->type), s.b, i, real_at(type_part(c->type), s.b, i) + parts[k].along * largest);
        open_outcome(&one, &s.a);
        for (int n = -1; n < COUNTS; n++) {
            struct outcome several;
            char message[512] = "";
            open_outcome(&several, &s.a);
            struct run run = {.of = c, .a = &s.a, .b = s.b, .stop_at = -1, .outcome = n < 0 ? &one : &several};
            const int ranks = n < 0 ? 1 : rank_counts[n];
            const spmv_status st = run_ranks(ranks, one_rank, &run, message, sizeof message);
            if (st != parts[k].expected || strstr(message, parts[k].sentence) == NULL)
                fail_msg("case %zu, %d ranks: status %d, %s", k, ranks, (int)st, message);
            for (int r = 0; r < ranks; r++)
                assert_int_equal(run.status[r], st);
            assert_int_equal(one.result.iterations, run.outcome->result.iterations);
            assert_true(one.result.true_residual == run.outcome->result.true_residual);
            assert_memory_equal(one.x, run.outcome->x, (size_t)s.a.rows * spmv_type_size(c->type));
            close_outcome(&several);
        }
        assert_true(parts[k].expected != SPMV_OK || one.result.true_residual <= 2 * one.result.tolerance);
        close_outcome(&one);
        close_system(&s);
    }
}

/* ------------------------------------------------------------- given null vectors */

struct null_case {
    struct system_case of;
    int nulls, block;
    double along; /* the part of b, relative to its largest element */
    spmv_status expected;
    int64_t found; /* vectors; 0: half of the lines */
    bool unknown;  /* no solution is known */
};

/* Vector j of the case: (j + 1) times that of the weights, or ones in the lines whose rows sum to 0. */
static void *vectors_of(const struct null_case *c, int64_t rows)
{
    const spmv_type part = type_part(c->of.type);
    const int parts = type_parts(c->of.type);
    void *vectors = calloc((size_t)rows * (size_t)c->nulls + 1, spmv_type_size(c->of.type));
    for (int64_t i = 0; i < rows; i++)
        for (int j = 0; j < c->nulls; j++)
            real_set(part, vectors, (i * c->nulls + j) * parts,
                     c->of.turn == LINES ? (double)(line_of(i, rows) % 2 == 0) : (j + 1) * weight(i));
    return vectors;
}

/* x is the known solution less its part along the null vector v. */
static void check_shortest(const struct null_case *c, int64_t rows, const struct outcome *o)
{
    const spmv_type part = type_part(c->of.type);
    const int parts = type_parts(c->of.type);
    double product = 0, square = 0;
    for (int64_t i = 0; i < rows; i++) {
        const double v = c->block > 0 ? 1 : weight(i);
        product += v * known(i);
        square += v * v;
    }
    for (int64_t i = 0; i < rows; i++) {
        const double v = c->block > 0 ? 1 : weight(i);
        const double error = fabs(real_at(part, o->x, i * parts) - (known(i) - product / square * v));
        if (!(error <= (part == SPMV_F32 ? 0.2 : 1e-4)))
            fail_msg("x[%lld] is off by %g", (long long)i, error);
    }
}

static void add_along(const struct null_case *c, const struct system *s)
{
    const spmv_type part = type_part(c->of.type);
    const int parts = type_parts(c->of.type);
    double largest = 0;
    for (int64_t i = 0; i < s->a.rows * parts; i++)
        largest = fmax(largest, fabs(real_at(part, s->b, i)));
    for (int64_t i = 0; i < s->a.rows; i++)
        real_set(part, s->b, i * parts, real_at(part, s->b, i * parts) + c->along * largest * weight(i));
}

static void check_null_case(const struct null_case *c, const int *counts, int numbers)
{
    struct system s;
    struct outcome one;
    open_system(&c->of, &s);
    add_along(c, &s);
    open_outcome(&one, &s.a);
    void *const vectors = c->nulls > 0 ? vectors_of(c, s.a.rows) : NULL;
    for (int n = -1; n < numbers; n++) {
        struct outcome several;
        char message[512] = "";
        open_outcome(&several, &s.a);
        struct run run = {.of = &c->of,
                          .a = &s.a,
                          .b = s.b,
                          .null = vectors,
                          .nulls = c->nulls,
                          .null_block = c->block,
                          .stop_at = -1,
                          .outcome = n < 0 ? &one : &several};
        const int ranks = n < 0 ? 1 : counts[n];
        const spmv_status st = run_ranks(ranks, one_rank, &run, message, sizeof message);
        if (st != c->expected)
            fail_msg("%s, %d ranks: status %d, %s", c->of.spec, ranks, (int)st, message);
        for (int r = 0; r < ranks; r++)
            assert_int_equal(run.status[r], st);
        const spmv_solver_result *const of_one = &one.result, *const its = &run.outcome->result;
        assert_int_equal(of_one->iterations, its->iterations);
        assert_true(of_one->true_residual == its->true_residual && of_one->null_part == its->null_part);
        assert_memory_equal(one.x, run.outcome->x, (size_t)s.a.rows * spmv_type_size(c->of.type));
        if (st != SPMV_ERROR_ARGUMENT)
            assert_int_equal(its->null_vectors,
                             c->found > 0 ? c->found : (int64_t)(lround(sqrt((double)s.a.rows)) + 1) / 2);
        close_outcome(&several);
    }
    if (c->expected == SPMV_OK && !c->unknown)
        check_shortest(c, s.a.rows, &one);
    if (c->of.expected != NULL && c->expected == SPMV_OK)
        assert_string_equal(one.result.precond, c->of.expected);
    close_outcome(&one);
    close_system(&s);
    free(vectors);
}

/* Their parts of b and x are split off, with the same bits for any number of ranks, also those without rows. A wrong
 * vector is an error of all ranks. `expected` is the preconditioner. */
static void given_null_vectors_are_split_off(void **state)
{
    (void)state;
    static const struct null_case given[] = {
        {{AUTO_GRID, SPMV_F64, WEIGHTED, NULL, NULL, "amg", 1e-8}, 2, 0, 1e-10, SPMV_OK, 1, false},
        {{GRID, SPMV_F64, WEIGHTED, "gmres", "jacobi", NULL, 1e-8}, 1, 0, 1e-3, SPMV_ERROR_INCONSISTENT, 1, false},

        {{GRID, SPMV_F64, ROWS_TIMES, "gmres", "none", NULL, 1e-8}, 0, 1, 0, SPMV_OK, 1, false},
        {{GRID, SPMV_F64, ROW_SUMS_0, "cg", "jacobi", NULL, 1e-8}, 1, 0, 0, SPMV_ERROR_ARGUMENT, 1, false},
#ifndef HOST_CUDA
        {{GRID, SPMV_C128, WEIGHTED, "cg", "jacobi", NULL, 1e-8}, 2, 0, 0, SPMV_OK, 1, false},
        {{GRID, SPMV_F32, WEIGHTED, "minres", "none", NULL, 1e-4}, 2, 0, 0, SPMV_OK, 1, false},
        {{LINES_GRID, SPMV_F64, LINES, "cg", "jacobi", NULL, 1e-8}, 2, 0, 0, SPMV_OK, 0, true},
        {{"poisson2d:2", SPMV_F64, WEIGHTED, "cg", "amg", NULL, 1e-8}, 1, 0, 0, SPMV_OK, 1, false},
#endif
    };
    static const int counts[] = {2, 3, 4};
    for (size_t k = 0; k < sizeof given / sizeof *given; k++)
        check_null_case(&given[k], support_backend == SPMV_BACKEND_CUDA ? counts + 1 : counts,
                        support_backend == SPMV_BACKEND_CUDA ? 1 : 3);
}

/* ------------------------------------------------------------- several right-hand sides */

enum { COLUMNS = 3 };

struct columns_run {
    struct run run;
    const void *b[COLUMNS]; /* each a whole vector */
    struct outcome outcome[COLUMNS];
    spmv_status status;
    char message[512]; /* of rank 0 */
};

/* Moves a vector of own rows between p->x and column v of `rows`, which has COLUMNS by rows; both in host memory. */
static void move_column(char *rows, char *one, int64_t n, int v, size_t size, bool back)
{
    for (int64_t i = 0; i < n; i++) {
        char *const of_rows = rows + (size_t)(i * COLUMNS + v) * size, *const of_one = one + (size_t)i * size;
        memcpy(back ? of_one : of_rows, back ? of_rows : of_one, size);
    }
}

static spmv_status columns_rank(spmv_group *group, void *user)
{
    struct columns_run *const c = user;
    struct run *const run = &c->run;
    spmv_context *const ctx = spmv_group_context(group);
    struct part p = {.m = NULL};
    spmv_group_solver *solver = NULL;
    spmv_solver_options options;
    spmv_solver_result results[COLUMNS];
    spmv_solver_options_init(&options, sizeof options);
    options.solver = run->of->solver;
    options.precond = run->of->precond;
    options.rtol = run->of->rtol;
    options.vectors = COLUMNS;
    options.zero_start = 1;
    options.on_iteration = keep_history;
    options.user = run;
    spmv_status st = open_part(group, run, &p);
    if (st != SPMV_OK)
        return st;
    const size_t size = spmv_type_size(run->of->type);
    const int64_t n = p.info.own_rows, bytes = (n + 1) * (int64_t)size;
    char *const one = calloc((size_t)bytes, 1), *const rows = calloc((size_t)bytes, COLUMNS);
    for (int v = 0; v < COLUMNS && st == SPMV_OK; v++) {
        st = spmv_group_scatter(p.m, SPMV_GROUP_ROWS, c->b[v], p.b);
        if (st == SPMV_OK)
            st = spmv_download(ctx, p.b, one, n * (int64_t)size);
        move_column(rows, one, n, v, size, false);
    }
    void *const b = support_upload(ctx, rows, bytes * COLUMNS), *const x = support_upload(ctx, rows, bytes * COLUMNS);
    if (st == SPMV_OK)
        st = spmv_group_solver_create(p.m, &options, &solver);
    if (st == SPMV_OK) {
        const spmv_status got = spmv_group_solver_solve(solver, b, x, results, sizeof *results);
        if (spmv_group_rank(group) == 0) {
            c->status = got;
            snprintf(c->message, sizeof c->message, "%s", spmv_last_error(ctx));
        }
        st = spmv_group_agree(group, spmv_download(ctx, x, rows, n * COLUMNS * (int64_t)size)); /* it is not broken */
    }
    for (int v = 0; v < COLUMNS && st == SPMV_OK; v++) {
        move_column(rows, one, n, v, size, true);
        st = spmv_upload(ctx, one, p.x, n * (int64_t)size);
        if (st == SPMV_OK)
            st = spmv_group_gather(p.m, SPMV_GROUP_COLS, p.x, c->outcome[v].x);
        if (spmv_group_rank(group) == 0)
            c->outcome[v].result = results[v];
    }
    spmv_group_solver_destroy(solver);
    support_free_in(ctx, b, x);
    close_part(group, &p);
    free(one);
    free(rows);
    return st;
}

/* Each column has the bits and the result of a solve alone, for any number of ranks. One with a NaN fails, and
 * does not stop the others. */
static void several_right_hand_sides(void **state)
{
    (void)state;
    static const struct system_case columns[] = {
        {GRID, SPMV_F64, AS_IT_IS, "cg", "amg", "cg", 1e-8},
        {FLOW, SPMV_F32, AS_IT_IS, "gmres", "jacobi", "gmres", 1e-4},
        {FLOW, SPMV_C128, TURNED, "bicgstab", "none", "bicgstab", 1e-8},
        {"poisson2d:1", SPMV_F64, AS_IT_IS, "cg", "none", "cg", 1e-8}, /* ranks without rows */
    };
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
        const struct system_case *const of = &columns[k];
        const spmv_type part = type_part(of->type);
        const int parts = type_parts(of->type);
        struct system s;
        struct outcome history;
        char message[512] = "", expected[64];
        open_system(of, &s);
        open_outcome(&history, &s.a);
        struct columns_run c = {.run = {.of = of, .a = &s.a, .b = s.b, .stop_at = -1, .outcome = &history}};
        void *b[COLUMNS];
        for (int v = 0; v < COLUMNS; v++) {
            c.b[v] = b[v] = calloc((size_t)s.a.rows + 1, spmv_type_size(of->type));
            for (int64_t i = 0; i < s.a.rows * parts; i++)
                real_set(part, b[v], i, real_at(part, s.b, i) + v * (double)(i % 5));
            open_outcome(&c.outcome[v], &s.a);
        }
        real_set(part, b[1], s.a.rows / 2 * parts, NAN);
        for (int ranks = 1; ranks <= 3; ranks += 2) {
            if (run_ranks(ranks, columns_rank, &c, message, sizeof message) != SPMV_OK)
                fail_msg("%s with %s, %d ranks: %s", of->spec, of->expected, ranks, message);
            assert_int_equal(c.status, SPMV_ERROR_NOT_FINITE);
            snprintf(expected, sizeof expected, "right-hand side 2 of %d: ", COLUMNS);
            assert_memory_equal(c.message, expected, strlen(expected));
            assert_int_equal(c.outcome[1].result.status, SPMV_ERROR_NOT_FINITE);
            for (int v = 0; v < COLUMNS; v += 2) {
                struct outcome alone;
                open_outcome(&alone, &s.a);
                struct run run = {.of = of, .a = &s.a, .b = b[v], .stop_at = -1, .outcome = &alone};
                assert_int_equal(run_ranks(1, one_rank, &run, message, sizeof message), SPMV_OK);
                assert_int_equal(c.outcome[v].result.status, SPMV_OK);
                assert_int_equal(c.outcome[v].result.iterations, alone.result.iterations);
                assert_true(c.outcome[v].result.true_residual == alone.result.true_residual);
                if (memcmp(c.outcome[v].x, alone.x, (size_t)s.a.rows * spmv_type_size(of->type)) != 0)
                    fail_msg("%s with %s, %d ranks: column %d has other bits than alone", of->spec, of->expected, ranks,
                             v);
                close_outcome(&alone);
            }
        }
        for (int v = 0; v < COLUMNS; v++) {
            close_outcome(&c.outcome[v]);
            free(b[v]);
        }
        close_outcome(&history);
        close_system(&s);
    }
}

/* ------------------------------------------------------------- failures */

struct refusal {
    struct run run;
    spmv_status expected;
    const char *sentence;
    void (*change)(spmv_solver_options *options, int rank);
    int wrong; /* ranks with another status or message */
};

static void take_direct(spmv_solver_options *o, int rank)
{
    (void)rank;
    o->solver = "direct";
}
static void take_inner(spmv_solver_options *o, int rank)
{
    (void)rank;
    o->inner = 1;
}
static void take_none(spmv_solver_options *o, int rank)
{
    (void)rank;
    o->vectors = 0;
}
static void differ(spmv_solver_options *o, int rank)
{
    o->restart = rank == 1 ? 20 : 30;
}
static void differ_in_digits(spmv_solver_options *o, int rank)
{
    o->accuracy = rank == 1 ? 10 : 0;
}
static void take_minres(spmv_solver_options *o, int rank)
{
    (void)rank;
    o->solver = "minres";
}
static void take_unknown(spmv_solver_options *o, int rank)
{
    (void)rank;
    o->solver = "qmr";
}
static void take_persistent(spmv_solver_options *o, int rank)
{
    (void)rank;
    o->rung = "persistent";
}
static void take_amg(spmv_solver_options *o, int rank)
{
    (void)rank;
    o->solver = "gmres";
    o->precond = "amg";
}

static spmv_status refused_rank(spmv_group *group, void *user)
{
    struct refusal *const r = user;
    struct part p = {.m = NULL};
    spmv_group_solver *solver = NULL;
    spmv_solver_options options;
    spmv_solver_options_init(&options, sizeof options);
    r->change(&options, spmv_group_rank(group));
    spmv_status st = open_part(group, &r->run, &p);
    if (st == SPMV_OK) {
        spmv_status got = spmv_group_solver_create(p.m, &options, &solver);
        if (got == SPMV_OK)
            got = spmv_group_solver_solve(solver, p.b, p.x, NULL, 0);
        const bool right =
            got == r->expected && strstr(spmv_last_error(spmv_group_context(group)), r->sentence) != NULL;
        if (!right)
            fprintf(stderr, "rank %d: %d, %s\n", spmv_group_rank(group), (int)got,
                    spmv_last_error(spmv_group_context(group)));
#pragma omp atomic
        r->wrong += !right;
        st = spmv_group_agree(group, SPMV_OK); /* the group is not broken */
    }
    spmv_group_solver_destroy(solver);
    close_part(group, &p);
    return st;
}

static void refusals_reach_all_ranks(void **state)
{
    (void)state;
    static const struct {
        void (*change)(spmv_solver_options *, int);
        int of; /* case */
        spmv_status expected;
        const char *sentence;
    } refusals[] = {
        {take_direct, 2, SPMV_ERROR_UNSUPPORTED, "take gmres"},
        {take_inner, 0, SPMV_ERROR_UNSUPPORTED, "take type f32"},
        {take_none, 0, SPMV_ERROR_ARGUMENT, "vectors"},
        {differ, 2, SPMV_ERROR_ARGUMENT, "other options of a solver"},
        {differ_in_digits, 0, SPMV_ERROR_ARGUMENT, "other options of a solver"},
        {take_minres, 2, SPMV_ERROR_NOT_SYMMETRIC, "not symmetric"},
        {take_unknown, 2, SPMV_ERROR_METHOD, "qmr"},
        {take_persistent, 0, SPMV_ERROR_UNSUPPORTED, "no rung persistent for several ranks"},
        {take_amg, 7, SPMV_ERROR_UNSUPPORTED, "take jacobi"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct system_case *const c = &cases[refusals[i].of];
        struct system s;
        char message[512] = "";
        open_system(c, &s);
        struct refusal r = {.run = {.of = c, .a = &s.a, .b = s.b, .stop_at = -1},
                            .expected = refusals[i].expected,
                            .sentence = refusals[i].sentence,
                            .change = refusals[i].change};
        if (run_ranks(3, refused_rank, &r, message, sizeof message) != SPMV_OK)
            fail_msg("refusal %zu: %s", i, message);
        assert_int_equal(r.wrong, 0);
        close_system(&s);
    }
}

/* ------------------------------------------------------------- memory */

struct starving {
    struct run run;
    int fails_at;
    bool failed; /* the allocation was reached */
    spmv_status status[3];
};

/* Rank 1 has no memory for one allocation in the set-up or the solve. */
static spmv_status starving_rank(spmv_group *group, void *user)
{
    struct starving *const s = user;
    const int rank = spmv_group_rank(group);
    struct part p = {.m = NULL};
    spmv_group_solver *solver = NULL;
    spmv_solver_options options;
    spmv_solver_options_init(&options, sizeof options);
    options.solver = s->run.of->solver;
    options.precond = s->run.of->precond;
    options.zero_start = 1;
    spmv_status st = open_part(group, &s->run, &p);
    fails_at = rank == 1 ? s->fails_at : 0;
    if (st == SPMV_OK)
        st = spmv_group_solver_create(p.m, &options, &solver);
    if (st == SPMV_OK)
        st = spmv_group_solver_solve(solver, p.b, p.x, NULL, 0);
    if (rank == 1)
        s->failed = fails_at == 0;
    fails_at = 0;
    s->status[rank] = st;
    spmv_group_solver_destroy(solver);
    close_part(group, &p);
    return st;
}

static void memory_of_one_rank_ends_all(void **state)
{
    (void)state;
    static const struct system_case starved[] = {{FLOW, SPMV_F64, AS_IT_IS, "gmres", "jacobi", NULL, 1e-8},
                                                 {AUTO_FLOW, SPMV_F64, AS_IT_IS, NULL, NULL, NULL, 1e-8},
                                                 {AUTO_GRID, SPMV_F64, NEGATED, NULL, NULL, NULL, 1e-8},
                                                 {GRID, SPMV_F64, PENALIZED, "cg", "none", NULL, 1e-8}};
    for (size_t k = 0; k < sizeof starved / sizeof *starved; k++) {
        struct system of;
        open_system(&starved[k], &of);
        struct starving s = {.run = {.of = &starved[k], .a = &of.a, .b = of.b, .stop_at = -1}, .failed = true};
        int step = 1;
        for (s.fails_at = 1; s.failed; s.fails_at += step) {
            char message[512] = "";
            s.failed = false;
            const spmv_status st = run_ranks(3, starving_rank, &s, message, sizeof message);
            if (s.failed && st != SPMV_OK && st != SPMV_ERROR_MEMORY)
                fail_msg("case %zu, allocation %d: status %d, %s", k, s.fails_at, (int)st, message);
            if (!s.failed && st != SPMV_OK)
                fail_msg("case %zu: %s", k, message);
            if (s.status[0] != s.status[1] || s.status[0] != s.status[2])
                fail_msg("case %zu, allocation %d: ranks end with %d, %d and %d", k, s.fails_at, (int)s.status[0],
                         (int)s.status[1], (int)s.status[2]);
            step = s.fails_at < 24 ? 1 : s.fails_at / 4; /* later ones are alike */
#ifdef HOST_CUDA
            step = s.fails_at < 8 ? 3 : s.fails_at / 2;
#endif
        }
        close_system(&of);
    }
}

/* ------------------------------------------------------------- the transpose */

static spmv_status transposing_rank(spmv_group *group, void *user)
{
    struct run *const run = user;
    spmv_context *const ctx = spmv_group_context(group);
    const int64_t rank = spmv_group_rank(group), ranks = spmv_group_ranks(group), rows = run->a->rows;
    const int64_t begin = rows * rank / ranks, end = rows * (rank + 1) / ranks;
    int64_t *const offsets = malloc((size_t)(end - begin + 1) * sizeof *offsets);
    const spmv_csr own = support_rows_of(run->a, begin, end, offsets);
    spmv_group_matrix *m = NULL, *turned = NULL;
    spmv_group_matrix_info info = {.rows = 0};
    void *x = NULL, *y = NULL;
    spmv_status st = spmv_group_matrix_create(group, &own, NULL, &m);
    if (st == SPMV_OK)
        st = spmv_group_matrix_transpose(m, &turned);
    if (st == SPMV_OK)
        st = spmv_group_matrix_describe(turned, &info, sizeof info);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (info.own_cols + 1) * 16, &x);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (info.own_rows + 1) * 16, &y);
    st = spmv_group_agree(group, st);
    if (st == SPMV_OK)
        st = spmv_group_scatter(turned, SPMV_GROUP_COLS, run->b, x);
    if (st == SPMV_OK)
        st = spmv_group_apply(turned, NULL, x, NULL, y);
    if (st == SPMV_OK)
        st = spmv_group_gather(turned, SPMV_GROUP_ROWS, y, run->outcome->x);
    spmv_free(ctx, x);
    spmv_free(ctx, y);
    spmv_group_matrix_destroy(turned);
    spmv_group_matrix_destroy(m);
    free(offsets);
    return st;
}

static void transpose_multiplies(void **state)
{
    (void)state;
    static const struct system_case turns[] = {{.spec = FLOW, .type = SPMV_F64},
                                               {.spec = "uniform:700,300,5", .type = SPMV_F64},
                                               {.spec = "uniform:200,900,4", .type = SPMV_F64},
                                               {.spec = FLOW, .type = SPMV_C128, .turn = TURNED},
                                               {.spec = "uniform:700,300,5", .type = SPMV_C128}};
    for (size_t k = 0; k < sizeof turns / sizeof *turns; k++) {
        struct system s;
        open_system(&turns[k], &s);
        const spmv_csr a = s.a;
        const int64_t *const row_ptr = a.row_ptr;
        const int parts = type_parts(a.type);
        const size_t size = spmv_type_size(a.type);
        double *const x = calloc((size_t)a.rows, size), *const y = calloc((size_t)a.cols, size);
        char *first = NULL;
        for (int64_t i = 0; i < a.rows; i++) {
            x[i * parts] = known(i);
            for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; e++)
                for (int p = 0; p < parts; p++)
                    y[a.col[e] * parts + p] += real_at(SPMV_F64, a.val, e * parts + p) * known(i);
        }
        for (int ranks = 1; ranks <= 4; ranks++) {
            char message[512] = "";
            struct outcome o = {.x = calloc((size_t)a.cols + 1, size)};
            struct run run = {.a = &a, .b = x, .outcome = &o};
            if (run_ranks(ranks, transposing_rank, &run, message, sizeof message) != SPMV_OK)
                fail_msg("%s, %d ranks: %s", turns[k].spec, ranks, message);
            for (int64_t j = 0; j < a.cols * parts; j++)
                assert_true(fabs(((const double *)(const void *)o.x)[j] - y[j]) <= 1e-12 * (1 + fabs(y[j])));
            if (first != NULL)
                assert_memory_equal(first, o.x, (size_t)a.cols * size);
            if (first == NULL)
                first = o.x;
            else
                free(o.x);
        }
        free(first);
        free(x);
        free(y);
        close_system(&s);
    }
}

/* ------------------------------------------------------------- new values */

static const struct renewal_case {
    struct system_case to; /* the new values; the turn of the first ones */
    enum turn from;
} renewals[] = {
    {{GRID, SPMV_F64, HEAVIER, "cg", "amg", "cg", 1e-8}, AS_IT_IS},
    {{GRID, SPMV_F64, HEAVIER, "cg", "chebyshev", "cg", 1e-8}, AS_IT_IS},
    {{AUTO_GRID, SPMV_F64, SHIFTED, NULL, NULL, "minres", 1e-8}, AS_IT_IS},
    {{AUTO_GRID, SPMV_F64, NEGATED, NULL, NULL, "cg", 1e-8}, SHIFTED},
    {{AUTO_GRID, SPMV_F64, AS_IT_IS, NULL, NULL, "cg", 1e-8}, NEGATED},
    {{FLOW, SPMV_C128, AS_IT_IS, "gmres", "jacobi", "gmres", 1e-8}, TURNED},
    {{AUTO_FLOW, SPMV_F64, LARGE_ROWS, NULL, NULL, "gmres", 1e-8}, AS_IT_IS},
};

struct renewal {
    struct run run;
    const spmv_csr *first; /* the matrix of run with other values */
    int wrong;
    int64_t iterations;
};

/* Solves from 0 and multiplies, to host memory: own_rows elements each. */
static spmv_status use(spmv_group_solver *solver, struct part *p, spmv_type type, char *found, int64_t *iterations)
{
    spmv_context *const ctx = spmv_group_context(p->m->group);
    const int64_t bytes = p->info.own_rows * (int64_t)spmv_type_size(type);
    spmv_solver_result result;
    spmv_status st = spmv_group_solver_solve(solver, p->b, p->x, &result, sizeof result);
    *iterations = result.iterations;
    if (st == SPMV_OK)
        st = spmv_download(ctx, p->x, found, bytes);
    if (st == SPMV_OK)
        st = spmv_group_apply(p->m, NULL, p->b, NULL, p->x);
    return st == SPMV_OK ? spmv_download(ctx, p->x, found + bytes, bytes) : st;
}

static spmv_group_solver *solver_of(const struct renewal *r, spmv_group_matrix *m)
{
    spmv_group_solver *solver = NULL;
    spmv_solver_options options;
    spmv_solver_options_init(&options, sizeof options);
    options.solver = r->run.of->solver;
    options.precond = r->run.of->precond;
    options.zero_start = 1;
    assert_int_equal(spmv_group_solver_create(m, &options, &solver), SPMV_OK);
    return solver;
}

/* A new solver, one that gets the values, and one of a matrix that gets them: twice, the first time its own. */
static spmv_status renewing_rank(spmv_group *group, void *user)
{
    struct renewal *const r = user;
    struct run first = r->run;
    first.a = r->first;
    struct part p = {.m = NULL}, q = {.m = NULL};
    const int64_t rank = spmv_group_rank(group), ranks = spmv_group_ranks(group);
    const int64_t begin = first.a->rows * rank / ranks, entry = ((const int64_t *)first.a->row_ptr)[begin];
    const size_t size = spmv_type_size(first.a->type);
    const char *const old = (const char *)r->first->val + (size_t)entry * size;
    const char *const new = (const char *)r->run.a->val + (size_t)entry *size;
    spmv_preconditioner *precond = NULL;
    int64_t iterations[3] = {0}, before = 0;
    spmv_status st = open_part(group, &r->run, &p);
    if (st == SPMV_OK)
        st = open_part(group, &first, &q);
    if (st != SPMV_OK)
        return st;
    const size_t bytes = 2 * (size_t)p.info.own_rows * size;
    char *const found[] = {calloc(1, bytes + 1), calloc(1, bytes + 1), calloc(1, bytes + 1)};
    spmv_group_solver *const fresh = solver_of(r, p.m);
    st = use(fresh, &p, first.a->type, found[0], &iterations[0]);
    if (st == SPMV_OK && r->run.of->turn == HEAVIER) /* it uses the first plan */
        st = spmv_group_preconditioner_create(q.m, "chebyshev", &precond);
    for (int way = 0; way < 2 && st == SPMV_OK; way++) {
        spmv_group_solver *const solver = solver_of(r, q.m);
        st = use(solver, &q, first.a->type, found[1 + way], &before);
        if (st == SPMV_OK)
            st = way == 0 ? spmv_group_solver_update_values(solver, new) : spmv_group_matrix_update_values(q.m, new);
        if (st == SPMV_OK)
            st = use(solver, &q, first.a->type, found[1 + way], &iterations[1 + way]);
        spmv_group_solver_destroy(solver);
        if (st == SPMV_OK)
            st = spmv_group_matrix_update_values(q.m, old);
    }
    for (int way = 1; way <= 2; way++) {
        const bool same = st == SPMV_OK && iterations[way] == iterations[0] && memcmp(found[0], found[way], bytes) == 0;
#pragma omp atomic
        r->wrong += !same;
    }
    if (rank == 0)
        r->iterations = iterations[0];
    spmv_group_solver_destroy(fresh);
    spmv_preconditioner_destroy(precond);
    for (int way = 0; way < 3; way++)
        free(found[way]);
    close_part(group, &p);
    close_part(group, &q);
    return st;
}

static void new_values_have_the_bits_of_new_solvers(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof renewals / sizeof *renewals; k++) {
        const struct system_case *const c = &renewals[k].to;
        struct system_case before = *c;
        struct system to, from;
        char message[512] = "";
#ifdef HOST_CUDA /* slow: amg (which makes chebyshev too), minres, complex numbers, and gmres */
        if (k == 1 || k == 3 || k == 4)
            continue;
#endif
        before.turn = renewals[k].from;
        open_system(c, &to);
        open_system(&before, &from);
        for (int n = COUNTS - 1; n < COUNTS; n++) {
            const int ranks = rank_counts[n];
            struct renewal r = {.run = {.of = c, .a = &to.a, .b = to.b, .stop_at = -1}, .first = &from.a};
            if (run_ranks(ranks, renewing_rank, &r, message, sizeof message) != SPMV_OK)
                fail_msg("new values, case %zu, %d ranks: %s", k, ranks, message);
            if (r.wrong != 0)
                fail_msg("new values, case %zu: on %d of %d ranks other bits than by a new solver", k, r.wrong, ranks);
            assert_true(r.iterations > 1);
        }
        close_system(&to);
        close_system(&from);
    }
}

/* What refuses new values refuses them on all ranks, and changes nothing. */
static spmv_status refusing_rank(spmv_group *group, void *user)
{
    struct refusal *const r = user;
    struct part p = {.m = NULL};
    spmv_group_matrix *turned = NULL, *pattern = NULL;
    const int rank = spmv_group_rank(group);
    double value = 1;
    spmv_status st = open_part(group, &r->run, &p);
    if (st == SPMV_OK)
        st = spmv_group_matrix_transpose(p.m, &turned);
    if (st != SPMV_OK)
        return st;
    const int64_t offsets[] = {0, 1};
    const int32_t column = rank;
    const spmv_csr one = {.rows = 1,
                          .cols = spmv_group_ranks(group),
                          .nnz = 1,
                          .row_ptr = offsets,
                          .row_ptr_bits = 64,
                          .col = &column,
                          .type = SPMV_F64,
                          .memory = SPMV_MEMORY_HOST};
    st = spmv_group_matrix_create(group, &one, NULL, &pattern);
    const struct {
        spmv_group_matrix *of;
        const void *values;
        spmv_status expected;
        const char *sentence;
    } tries[] = {
        {turned, &value, SPMV_ERROR_UNSUPPORTED, "make it again"},
        {pattern, &value, SPMV_ERROR_UNSUPPORTED, "a pattern"},
        {p.m, rank == 1 ? NULL : r->run.a->val, SPMV_ERROR_ARGUMENT, "values is NULL"},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries && st == SPMV_OK; i++) {
        const spmv_status got = spmv_group_matrix_update_values(tries[i].of, tries[i].values);
        const bool right =
            got == tries[i].expected && strstr(spmv_last_error(spmv_group_context(group)), tries[i].sentence) != NULL;
#pragma omp atomic
        r->wrong += !right;
    }
    if (st == SPMV_OK)
        st = spmv_group_agree(group, SPMV_OK); /* the group is not broken */
    spmv_group_matrix_destroy(turned);
    spmv_group_matrix_destroy(pattern);
    close_part(group, &p);
    return st;
}

static void new_values_are_refused_on_all_ranks(void **state)
{
    (void)state;
    const struct system_case *const c = &cases[0];
    struct system s;
    char message[512] = "";
    open_system(c, &s);
    struct refusal r = {.run = {.of = c, .a = &s.a, .b = s.b, .stop_at = -1}};
    if (run_ranks(3, refusing_rank, &r, message, sizeof message) != SPMV_OK)
        fail_msg("%s", message);
    assert_int_equal(r.wrong, 0);
    close_system(&s);
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_races_as_without_ranks),
        cmocka_unit_test(same_bits_for_any_ranks),
        cmocka_unit_test(starts_and_cancels),
        cmocka_unit_test(wrong_rows_are_corrected),
        cmocka_unit_test(wide_columns_have_same_bits),
        cmocka_unit_test(null_vectors_are_split_off),
        cmocka_unit_test(given_null_vectors_are_split_off),
        cmocka_unit_test(several_right_hand_sides),
        cmocka_unit_test(refusals_reach_all_ranks),
        cmocka_unit_test(memory_of_one_rank_ends_all),
        cmocka_unit_test(transpose_multiplies),
        cmocka_unit_test(new_values_have_the_bits_of_new_solvers),
        cmocka_unit_test(new_values_are_refused_on_all_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
