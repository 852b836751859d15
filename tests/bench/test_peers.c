/* CPU peers and the loader of their modules. Checks the y of each peer against sums in long double,
 * on matrices of many shapes; that closing a peer ends its processes and restores settings; and
 * that missing or wrong modules are refused with a message.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <float.h>
#include <math.h>
#include <omp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/peers/peer_list.h"
#include "bench/peers/peer_load.h"
#include "bench/timing.h"
#include "tests/support/support.h"
#include "tests/support/support_factors.h"
#include "tests/support/support_solve.h"

/* A variable in the environment of this program and of all that it starts; it identifies their
 * processes in /proc. */
static const char MARK[] = "SPMV_TEST_PEERS";

/* ------------------------------------------------------------------- matrices */

struct shape {
    const char *name;
    int64_t rows, cols;
    enum { EVEN, EMPTY_ROWS, ONE_LONG, POWER_LAW, NO_ENTRIES } lengths;
    int64_t entries;    /* in an ordinary row */
    bool without_ranks; /* ranks take another of these for it */
};

static const struct shape shapes[] = {
    {"even", 1000, 1000, EVEN, 7, false},
    {"above Eigen's threshold", 5000, 5000, EVEN, 9, true},
    {"1 x 1", 1, 1, EVEN, 1, true},
    {"one row", 1, 5000, EVEN, 4000, true},
    {"one column", 4000, 1, EVEN, 1, true},
    {"tall", 20000, 7, EVEN, 2, false},
    {"wide", 7, 20000, EVEN, 900, false},
    {"fewer rows than threads", 2, 50, EVEN, 20, false},
    {"empty rows", 3000, 2000, EMPTY_ROWS, 11, false},
    {"long row", 2000, 30000, ONE_LONG, 3, false},
    {"power law", 6000, 6000, POWER_LAW, 2000, true},
    {"no entries", 300, 200, NO_ENTRIES, 0, false},
};

static int64_t row_length(const struct shape *shape, int64_t i)
{
    int64_t n = shape->entries;
    switch (shape->lengths) {
    case EVEN:
        break;
    case EMPTY_ROWS: /* includes the first and the last rows */
        n = i < 500 || i >= shape->rows - 500 || i % 3 == 0 ? 0 : n;
        break;
    case ONE_LONG:
        n = i == shape->rows / 3 ? shape->cols - 10 : n;
        break;
    case POWER_LAW:
        n = n / (1 + (i * 7919) % shape->rows) + i % 2;
        break;
    case NO_ENTRIES:
        n = 0;
        break;
    }
    return n < shape->cols ? n : shape->cols;
}

/* Vectors of PEER_SPMM. */
enum { VECTORS = 3 };

static bool is_product(enum peer_op op)
{
    return op == PEER_SPMV || op == PEER_SPMM;
}

/* x: for VECTORS vectors. */
struct matrix {
    int32_t *row_ptr, *col;
    double *val, *x;
    float *val_f32, *x_f32;
};

/* Strictly ascending columns: the row is cut into equal parts, with one entry in each. */
static struct matrix make_matrix(const struct shape *shape, uint64_t seed)
{
    struct matrix m = {.row_ptr = calloc((size_t)shape->rows + 1, sizeof *m.row_ptr)};
    for (int64_t i = 0; i < shape->rows; i++)
        m.row_ptr[i + 1] = m.row_ptr[i] + (int32_t)row_length(shape, i);
    const size_t nnz = (size_t)m.row_ptr[shape->rows], elements = VECTORS * (size_t)shape->cols;
    m.col = malloc((nnz + 1) * sizeof *m.col);
    m.val = malloc((nnz + 1) * sizeof *m.val);
    m.val_f32 = malloc((nnz + 1) * sizeof *m.val_f32);
    m.x = malloc((elements + 1) * sizeof *m.x);
    m.x_f32 = malloc((elements + 1) * sizeof *m.x_f32);
    for (int64_t i = 0; i < shape->rows; i++) {
        const int64_t n = m.row_ptr[i + 1] - m.row_ptr[i];
        for (int64_t j = 0; j < n; j++) {
            const int64_t begin = shape->cols * j / n, end = shape->cols * (j + 1) / n;
            m.col[m.row_ptr[i] + j] = (int32_t)(begin + (int64_t)(support_random(&seed) % (uint64_t)(end - begin)));
        }
    }
    for (size_t k = 0; k < nnz; k++)
        m.val[k] = m.val_f32[k] = (float)support_uniform(&seed);
    for (size_t j = 0; j < elements; j++)
        m.x[j] = m.x_f32[j] = (float)support_uniform(&seed);
    return m;
}

static void free_matrix(struct matrix *m)
{
    support_free(m->row_ptr, m->col, m->val, m->val_f32, m->x, m->x_f32);
}

/* The problem for this op: A x, or a sum or prefix sums of x. y: space for results_most(shape). */
static struct peer_problem make_problem(enum peer_op op, const struct shape *shape, const struct matrix *m,
                                        spmv_type type, int threads, void *y)
{
    const void *x = type == SPMV_F64 ? (const void *)m->x : m->x_f32;
    if (!is_product(op))
        return (struct peer_problem){.op = op, .type = type, .threads = threads, .n = shape->cols, .in = x, .out = y};
    return (struct peer_problem){.op = op,
                                 .type = type,
                                 .threads = threads,
                                 .vectors = op == PEER_SPMM ? VECTORS : 1,
                                 .rows = shape->rows,
                                 .cols = shape->cols,
                                 .nnz = m->row_ptr[shape->rows],
                                 .row_ptr = m->row_ptr,
                                 .col = m->col,
                                 .val = type == SPMV_F64 ? (const void *)m->val : m->val_f32,
                                 .x = x,
                                 .y = y};
}

static int64_t results_most(const struct shape *shape)
{
    return VECTORS * (shape->rows > shape->cols ? shape->rows : shape->cols) + 1;
}

static double number_at(spmv_type type, const void *array, int64_t i)
{
    return type == SPMV_F64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

static void poison(const struct peer_problem *problem)
{
    const int64_t count = is_product(problem->op)      ? problem->rows * problem->vectors
                          : problem->op == PEER_REDUCE ? 1
                                                       : problem->n;
    void *result = is_product(problem->op) ? problem->y : problem->out;
    for (int64_t i = 0; i < count; i++)
        if (problem->type == SPMV_F64)
            ((double *)result)[i] = NAN;
        else
            ((float *)result)[i] = NAN;
}

/* Checks a sum of i + 1 numbers within 2 (i + 4) eps of the sum of magnitudes; any summation order
 * meets it. */
static void check_sums(const struct peer_problem *problem, const char *peer, const char *shape, const char *when)
{
    const double eps = problem->type == SPMV_F64 ? DBL_EPSILON : FLT_EPSILON;
    long double sum = 0, size = 0;
    for (int64_t i = 0; i < problem->n; i++) {
        sum += number_at(problem->type, problem->in, i);
        size += fabsl((long double)number_at(problem->type, problem->in, i));
        if (problem->op == PEER_REDUCE && i < problem->n - 1)
            continue;
        const double got = number_at(problem->type, problem->out, problem->op == PEER_SCAN ? i : 0);
        if (!(fabsl(got - sum) <= 2 * ((long double)i + 4) * eps * size))
            fail_msg("%s, %s, %s, %d threads, %s: the sum up to %lld is %.17g instead of %.17Lg", peer, shape,
                     spmv_type_name(problem->type), problem->threads, when, (long long)i, got, sum);
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Checks the result against `in` sorted by qsort. */
static void check_sorted(const struct peer_problem *problem, const char *peer, const char *shape, const char *when)
{
    double *const right = malloc((size_t)problem->n * sizeof *right + 1);
    assert_non_null(right);
    for (int64_t i = 0; i < problem->n; i++)
        right[i] = number_at(problem->type, problem->in, i);
    qsort(right, (size_t)problem->n, sizeof *right, ascending);
    for (int64_t i = 0; i < problem->n; i++)
        if (!(number_at(problem->type, problem->out, i) == right[i]))
            fail_msg("%s, %s, %s, %d threads, %s: number %lld is not in its place", peer, shape,
                     spmv_type_name(problem->type), problem->threads, when, (long long)i);
    free(right);
}

/* |y_i - r_i| <= 2 (n_i + 3) eps sum_j |a_ij x_j|; any summation order meets it. */
static void check_y(const struct peer_problem *problem, const char *peer, const char *shape, const char *when)
{
    const double eps = problem->type == SPMV_F64 ? DBL_EPSILON : FLT_EPSILON;
    if (problem->op == PEER_SORT) {
        check_sorted(problem, peer, shape, when);
        return;
    }
    if (!is_product(problem->op)) {
        check_sums(problem, peer, shape, when);
        return;
    }
    const int vectors = problem->vectors;
    for (int64_t e = 0; e < problem->rows * vectors; e++) {
        const int64_t i = e / vectors, v = e % vectors;
        long double sum = 0, size = 0;
        for (int32_t k = problem->row_ptr[i]; k < problem->row_ptr[i + 1]; k++) {
            const long double term = (long double)number_at(problem->type, problem->val, k) *
                                     number_at(problem->type, problem->x, (int64_t)problem->col[k] * vectors + v);
            sum += term;
            size += fabsl(term);
        }
        const double y = number_at(problem->type, problem->y, e);
        const double bound = 2.0 * (problem->row_ptr[i + 1] - problem->row_ptr[i] + 3) * eps * (double)size;
        if (!(fabsl((long double)y - sum) <= (long double)bound))
            fail_msg("%s, %s, %s, %d threads, %s: element %lld of y is %.17g instead of %.17Lg", peer, shape,
                     spmv_type_name(problem->type), problem->threads, when, (long long)e, y, sum);
    }
}

/* ------------------------------------------------------------------ processes */

static int is_marked(const char *pid)
{
    char path[300], text[16384], mark[64];
    snprintf(path, sizeof path, "/proc/%s/environ", pid);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return 0;
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    snprintf(mark, sizeof mark, "%s=%d", MARK, (int)getpid());
    for (size_t at = 0; at < n; at += strnlen(text + at, n - at) + 1)
        if (strncmp(text + at, mark, n - at) == 0)
            return 1;
    return 0;
}

/* Counts the processes that this one started. Sets *one to one whose name begins with `name`, if
 * any. */
static int count_processes(const char *name, pid_t *one)
{
    DIR *proc = opendir("/proc");
    assert_non_null(proc);
    int count = 0;
    for (struct dirent *entry = readdir(proc); entry != NULL; entry = readdir(proc)) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || atoi(entry->d_name) == getpid() ||
            !is_marked(entry->d_name))
            continue;
        char path[300], comm[64] = "";
        snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        FILE *f = fopen(path, "r");
        if (f != NULL) {
            if (fgets(comm, sizeof comm, f) != NULL && strncmp(comm, name, strlen(name)) == 0) {
                count++;
                *one = atoi(entry->d_name);
            }
            fclose(f);
        }
    }
    closedir(proc);
    return count;
}

static void assert_no_processes(void)
{
    pid_t one = 0;
    int left = -1;
    /* A killed process may take a moment to end. */
    for (int tries = 0; tries < 100 && (left = count_processes("", &one)) > 0; tries++)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    if (left != 0)
        fail_msg("%d processes are left, one is %d", left, (int)one);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left to wait for */
}

/* -------------------------------------------------------------------- the peers */

static int is_built(const char *name)
{
    char item[64];
    snprintf(item, sizeof item, " %s ", name);
    return strstr(PEERS_BUILT, item) != NULL;
}

static const struct peer_module *load(const char *name)
{
    const struct peer_module *module = NULL;
    char why[WHY_SIZE] = "";
    if (!is_built(name)) {
        assert_int_equal(peer_load(name, NULL, &module, why), -1);
        printf("skipped: %s\n", why);
        skip();
    }
    const int failed = peer_load(name, NULL, &module, why);
    if (failed != 0 && strcmp(name, "mkl") == 0) { /* built without the library */
        assert_non_null(strstr(why, "its library does not start; it needs Intel oneMKL"));
        printf("skipped: %s\n", why);
        skip();
    }
    if (failed != 0)
        fail_msg("%s: %s", name, why);
    assert_non_null(module);
    return module;
}

/* Opens a peer on one matrix, runs it twice, times it and closes it. y is filled with NaN before
 * each run. */
static void peer_is_right(const struct peer *peer, const struct shape *shape, const struct peer_problem *problem)
{
    void *state = NULL;
    char why[WHY_SIZE] = "";
    const int caller = omp_get_max_threads();
    poison(problem);
    if (peer->open(problem, &state, why, sizeof why) != 0) {
        assert_null(state);
        assert_true(strlen(why) > 10);
        if (shape->lengths == NO_ENTRIES || (strcmp(peer->name, "petsc") == 0 && problem->type == SPMV_F32))
            return; /* may be refused */
        fail_msg("%s, %s: %s", peer->name, shape->name, why);
    }
    assert_non_null(state);
    for (int repeat = 0; repeat < 2; repeat++) {
        poison(problem);
        assert_int_equal(peer->run(state), 0);
        assert_int_equal(peer->fetch == NULL ? 0 : peer->fetch(state), 0);
        check_y(problem, peer->name, shape->name, repeat == 0 ? "first run" : "second run");
    }
    if (peer->run_timed != NULL) {
        double one = 0, many = 0;
        assert_int_equal(peer->run_timed(state, 1, &one), 0);
        assert_int_equal(peer->run_timed(state, 10, &many), 0);
        assert_true(one > 0 && many > 0 && many < 60);
        poison(problem);
        assert_int_equal(peer->fetch == NULL ? 0 : peer->fetch(state), 0);
        check_y(problem, peer->name, shape->name, "timed run");
    }
    if (peer->close != NULL)
        peer->close(state);
    assert_int_equal(omp_get_max_threads(), caller);
}

static struct peer_problem system_problem(const struct linear_system *s, int threads, int64_t limit,
                                          struct peer_solved *solved)
{
    return (struct peer_problem){.op = PEER_CG,
                                 .type = s->type,
                                 .threads = threads,
                                 .rows = s->rows,
                                 .cols = s->rows,
                                 .nnz = s->nnz,
                                 .row_ptr = s->row_ptr,
                                 .col = s->col,
                                 .val = s->val,
                                 .y = s->x,
                                 .b = s->b,
                                 .rtol = tolerance_to_solve(s->type),
                                 .max_iterations = limit,
                                 .solved = solved};
}

/* Solvers on ranks, which wait for each other several times an iteration. On busy cores each wait
 * takes milliseconds. They support f64 only. */
static bool of_ranks(const struct peer *peer)
{
    return strcmp(peer->name, "petsc-cg") == 0 || strcmp(peer->name, "hypre-cg") == 0;
}

/* Runs a solver on one system up to the tolerance and to limits. Ranks run once, then twice,
 * timed. */
static void solver_is_right(const struct peer *peer, const struct system_of *of, spmv_type type, int threads,
                            int64_t limit)
{
    struct linear_system s = make_system(of, type);
    struct peer_solved solved = {.iterations = -1, .residual = -1};
    const struct peer_problem problem = system_problem(&s, threads, limit, &solved);
    void *state = NULL;
    char why[WHY_SIZE] = "";
    const bool refuses = type == SPMV_F32 && of_ranks(peer);
    const int failed = peer->open(&problem, &state, why, sizeof why);
    if (failed != 0 && !refuses)
        fail_msg("%s, %s: %s", peer->name, of->name, why);
    assert_int_equal(failed != 0, refuses);
    for (int run = 0; run < 3 && failed == 0; run += of_ranks(peer) ? 2 : 1) {
        double seconds = -1;
        memset(s.x, 0xff, (size_t)s.rows * spmv_type_size(type));
        solved = (struct peer_solved){.iterations = -1, .residual = -1};
        if (run == 2 && peer->run_timed != NULL) {
            assert_int_equal(peer->run_timed(state, of_ranks(peer) ? 2 : 3, &seconds), 0);
            assert_true(seconds > 0);
        } else {
            assert_int_equal(peer->run(state), 0);
        }
        assert_int_equal(peer->fetch == NULL ? 0 : peer->fetch(state), 0);
        check_solve(&s, s.x, &problem, peer->name, of->name);
    }
    if (failed == 0)
        peer->close(state);
    free_system(&s);
}

static bool solves(enum peer_op op)
{
    return op == PEER_CG || op == PEER_CG_PRECOND;
}

/* A solver with a preconditioner of its own: a fraction of the iterations without one, and each run
 * sets it up. With a limit, it stops there. */
static void preconditioned_solver_is_right(const struct peer *peer, int64_t limit)
{
    struct linear_system s = make_system(&systems_to_solve[LAPLACIAN_SYSTEM], SPMV_F64);
    struct peer_solved solved = {.iterations = -1};
    const struct peer_problem problem = system_problem(&s, 3, limit, &solved);
    const int64_t without = system_iterations(&s, problem.rtol, problem.max_iterations);
    void *state = NULL;
    char why[WHY_SIZE] = "";
    if (peer->open(&problem, &state, why, sizeof why) != 0)
        fail_msg("%s: %s", peer->name, why);
    for (int run = 0; run < 2; run++) {
        double seconds = -1;
        memset(s.x, 0xff, (size_t)s.rows * sizeof(double));
        solved = (struct peer_solved){.iterations = -1, .residual = -1};
        assert_int_equal(peer->run_timed(state, 1 + run, &seconds), 0);
        assert_int_equal(peer->fetch(state), 0);
        assert_true(solved.setup_seconds > 0 && solved.setup_seconds < seconds);
        const double residual = system_residual(&s, s.x);
        assert_true(fabs(residual - solved.residual) <= 1e-3 * residual);
        if (limit <= 2) {
            assert_int_equal(solved.iterations, limit);
            assert_true(residual > problem.rtol && residual < 1);
        } else {
            assert_true(solved.residual <= problem.rtol);
            assert_in_range(solved.iterations, 2, without / 8);
        }
    }
    peer->close(state);
    free_system(&s);
}

static void refuses_f32(const struct peer *peer)
{
    struct linear_system s = make_system(&systems_to_solve[EASY_SYSTEM], SPMV_F32);
    struct peer_solved solved;
    const struct peer_problem problem = system_problem(&s, 1, 3000, &solved);
    void *state = NULL;
    char why[WHY_SIZE] = "";
    assert_int_equal(peer->open(&problem, &state, why, sizeof why), -1);
    assert_non_null(strstr(why, "supports only f64"));
    free_system(&s);
}

/* All limits, and one thread, on one system only, because a library of ranks takes long to
 * start. Several ranks have the first and the last limit only, and not the largest system. */
static void solvers_are_right(const struct peer_module *module)
{
    for (int p = 0; p < module->count; p++) {
        if (module->peers[p].op == PEER_CG_PRECOND) {
            preconditioned_solver_is_right(&module->peers[p], 3000);
            preconditioned_solver_is_right(&module->peers[p], 2);
            refuses_f32(&module->peers[p]);
        }
        for (int s = 0; module->peers[p].op == PEER_CG && s < SYSTEMS_TO_SOLVE; s++) {
            const struct system_of *const of = &systems_to_solve[s];
            const int limits = of->side == 60 ? LIMITS_TO_SOLVE : 1;
            for (int l = 0; l < limits; l++) {
                const bool of_several = of_ranks(&module->peers[p]);
                if (!of_several || l == 0 || l == limits - 1)
                    solver_is_right(&module->peers[p], of, SPMV_F64, of_several && of->side > 60 ? 1 : 3,
                                    limits_to_solve[l]);
            }
            if (s == 0 || !of_ranks(&module->peers[p])) /* which refuse it */
                solver_is_right(&module->peers[p], of, SPMV_F32, 2, limits_to_solve[0]);
            if (limits > 1)
                solver_is_right(&module->peers[p], of, SPMV_F64, 1, limits_to_solve[0]);
        }
    }
}

static void products_are_right(const struct peer_module *module)
{
    spmv_context *const ctx = support_context_on(SPMV_BACKEND_OMP, 2);
    for (int p = 0; p < module->count; p++)
        for (int s = 0; support_has_factors(module->peers[p].op) && s < SUPPORT_FACTOR_SPECS; s++) {
            support_factors(ctx, &module->peers[p], SPMV_F64, 3, support_factor_specs[s]);
            support_factors(ctx, &module->peers[p], SPMV_F32, 1, support_factor_specs[s]);
        }
    spmv_context_destroy(ctx);
}

static void module_is_right(const char *name)
{
    const struct peer_module *module = load(name);
    assert_int_equal(module->abi, PEER_ABI);
    assert_true(strlen(module->library) > 3);
    printf("%s: %s\n", name, module->library);
    const bool starts_ranks = strcmp(name, "petsc") == 0; /* which takes long */
    omp_set_num_threads(2);                               /* the setting of the caller: neither 1 nor 3 */
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        if (starts_ranks && shapes[s].without_ranks)
            continue;
        struct matrix m = make_matrix(&shapes[s], 11 + s);
        void *y = malloc((size_t)results_most(&shapes[s]) * sizeof(double));
        for (int p = 0; p < module->count; p++) {
            const enum peer_op op = module->peers[p].op;
            if (solves(op) || support_has_factors(op))
                continue;
            assert_true(is_product(op) || op == PEER_SCAN || op == PEER_REDUCE || op == PEER_SORT);
            assert_int_equal(module->peers[p].flags, 0);
            /* Ranks: one thread and f32, which may be refused, with the first shape only. */
            for (int threads = s > 0 && starts_ranks ? 3 : 1; threads <= 3; threads += 2)
                for (int f64 = s > 0 && starts_ranks; f64 < 2; f64++) {
                    const struct peer_problem problem =
                        make_problem(op, &shapes[s], &m, f64 ? SPMV_F64 : SPMV_F32, threads, y);
                    peer_is_right(&module->peers[p], &shapes[s], &problem);
                }
        }
        free(y);
        free_matrix(&m);
    }
    solvers_are_right(module);
    products_are_right(module);
    assert_no_processes();
}

/* Three problems of one module are open at the same time and run in turn; global state of the
 * library must not mix them up. librsb has one number of threads for all of them, and reports
 * it. */
static void states_are_independent(const char *name)
{
    const struct peer_module *module = load(name);
    enum { STATES = 3 };
    static const int threads[STATES] = {3, 1, 2};
    for (int p = 0; p < module->count; p++) {
        const struct peer *peer = &module->peers[p];
        if (solves(peer->op) || support_has_factors(peer->op))
            continue;
        struct matrix m[STATES];
        struct peer_problem problem[STATES];
        void *state[STATES] = {NULL};
        char why[WHY_SIZE];
        for (int s = 0; s < STATES; s++) {
            m[s] = make_matrix(&shapes[s == 2 ? 8 : s], (uint64_t)s);
            void *y = malloc((size_t)results_most(&shapes[s == 2 ? 8 : s]) * sizeof(double));
            problem[s] = make_problem(peer->op, &shapes[s == 2 ? 8 : s], &m[s], SPMV_F64, threads[s], y);
            if (s > 0 && strcmp(name, "librsb") == 0) {
                assert_int_equal(peer->open(&problem[s], &state[s], why, sizeof why), -1);
                assert_string_equal(why, s == 1 ? "librsb is open with 3 threads and cannot have 1 at the same time"
                                                : "librsb is open with 3 threads and cannot have 2 at the same time");
                problem[s].threads = threads[0];
            }
            assert_int_equal(peer->open(&problem[s], &state[s], why, sizeof why), 0);
        }
        for (int round = 0; round < 2; round++) {
            for (int s = 0; s < STATES; s++) {
                poison(&problem[s]);
                assert_int_equal(peer->run(state[s]), 0);
            }
            for (int s = 0; s < STATES; s++) {
                assert_int_equal(peer->fetch == NULL ? 0 : peer->fetch(state[s]), 0);
                check_y(&problem[s], peer->name, shapes[s == 2 ? 8 : s].name, "three at a time");
            }
        }
        for (int s = 0; s < STATES; s++) {
            if (peer->close != NULL)
                peer->close(state[s]);
            free(is_product(peer->op) ? problem[s].y : problem[s].out);
            free_matrix(&m[s]);
        }
    }
    assert_no_processes();
}

/* Processor time of all threads of this process except this one. */
static double time_of_others(void)
{
    struct timespec all, own;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &all);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
    return (double)(all.tv_sec - own.tv_sec) + 1e-9 * (double)(all.tv_nsec - own.tv_nsec);
}

/* Runs in its own process: the peers of the module run with one thread, while the OpenMP default of
 * the caller is four. Returns 1 if other threads worked. Waiting threads spin there, so that a
 * thread that only joined a team is detected too. */
static int one_thread_works(const char *name)
{
    static const struct shape shape = {"many entries", 40000, 40000, EVEN, 25, false};
    const struct peer_module *module = NULL;
    char why[WHY_SIZE] = "";
    if (peer_load(name, NULL, &module, why) != 0) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    struct matrix m = make_matrix(&shape, 1);
    double *y = malloc((size_t)results_most(&shape) * sizeof *y);
    struct linear_system system = make_system(&(const struct system_of){"200 x 200", 200, 0, 0}, SPMV_F64);
    int failed = 0;
    omp_set_num_threads(4);
    for (int p = 0; p < module->count && !failed; p++) {
        const struct peer *peer = &module->peers[p];
        if (support_has_factors(peer->op))
            continue;
        struct peer_problem problem = make_problem(solves(peer->op) ? PEER_SPMV : peer->op, &shape, &m, SPMV_F64, 1, y);
        struct peer_solved solved;
        if (solves(peer->op))
            problem = system_problem(&system, 1, 3000, &solved);
        void *state = NULL;
        failed = peer->open(&problem, &state, why, sizeof why) != 0;
        const double begin = monotonic_seconds(), others = time_of_others();
        while (!failed && monotonic_seconds() - begin < 0.1)
            failed = peer->run(state) != 0;
        const double worked = time_of_others() - others;
        if (failed || worked > 0.01)
            fprintf(stderr, "%s: %s: other threads worked %g s of %g s with one asked for\n", peer->name, why, worked,
                    monotonic_seconds() - begin);
        failed = failed || worked > 0.01;
        if (peer->close != NULL && state != NULL)
            peer->close(state);
    }
    free(y);
    free_system(&system);
    free_matrix(&m);
    return failed;
}

static void threads_are_those_asked_for(const char *name)
{
    load(name);
    char self[4096] = "", module[64];
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(module, sizeof module, "%s", name);
    char *const argv[] = {self, (char[]){"threads"}, module, NULL};
    const pid_t pid = fork();
    if (pid == 0) {
        setenv("OMP_WAIT_POLICY", "active", 1);
        execv(self, argv);
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define ON_CUDA(module)
#define ON_OMP(module)                                                                                                 \
    static void module##_is_right(void **state)                                                                        \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        module_is_right(#module);                                                                                      \
    }                                                                                                                  \
    static void module##_keeps_states_apart(void **state)                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        states_are_independent(#module);                                                                               \
    }                                                                                                                  \
    static void module##_uses_the_threads_asked_for(void **state)                                                      \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        threads_are_those_asked_for(#module);                                                                          \
    }
#define TESTS_OF(module, backend, peers, operations, brings) ON_##backend(module)
PEER_MODULE_LIST(TESTS_OF)

/* --------------------------------------------------------------- PETSc workers */

struct open_petsc {
    struct matrix m;
    struct peer_problem problem;
    const struct peer *peer;
    void *state;
    pid_t worker;
};

static struct open_petsc open_petsc(double *y)
{
    struct open_petsc p = {.peer = load("petsc")->peers}; /* first: it may skip the test */
    p.m = make_matrix(&shapes[0], 3);
    p.problem = make_problem(PEER_SPMV, &shapes[0], &p.m, SPMV_F64, 3, y);
    return p;
}

static void start_petsc(struct open_petsc *p)
{
    char why[WHY_SIZE] = "";
    if (p->peer->open(&p->problem, &p->state, why, sizeof why) != 0)
        fail_msg("%s", why);
    assert_int_equal(count_processes("petsc_worker", &p->worker), 3);
}

static void petsc_refuses_f32(void **state)
{
    (void)state;
    static float y[1000];
    struct open_petsc p = open_petsc(NULL);
    p.problem = make_problem(PEER_SPMV, &shapes[0], &p.m, SPMV_F32, 2, y);
    char why[WHY_SIZE] = "";
    assert_int_equal(p.peer->open(&p.problem, &p.state, why, sizeof why), -1);
    assert_null(p.state);
    assert_string_equal(why, "this PETSc supports only f64");
    assert_no_processes();
    free_matrix(&p.m);
}

/* After a worker is killed or stopped, runs soon return an error, and keep doing so. Closing leaves
 * nothing behind. */
static void petsc_survives_its_workers(void **state)
{
    (void)state;
    static const int signals[] = {SIGKILL, SIGSTOP};
    static double y[1000];
    for (size_t s = 0; s < 2; s++) {
        struct open_petsc p = open_petsc(y);
        setenv("SPMV_PETSC_TIMEOUT", "3", 1);
        start_petsc(&p);
        assert_int_equal(p.peer->run(p.state), 0);
        assert_int_equal(kill(p.worker, signals[s]), 0);
        double seconds = 0;
        assert_int_equal(p.peer->run(p.state), -1);
        assert_int_equal(p.peer->run_timed(p.state, 3, &seconds), -1);
        assert_int_equal(p.peer->fetch(p.state), -1);
        p.peer->close(p.state);
        assert_no_processes();
        free_matrix(&p.m);
        unsetenv("SPMV_PETSC_TIMEOUT");
    }
}

/* The caller ignores SIGCHLD. */
static void petsc_works_without_sigchld(void **state)
{
    (void)state;
    static double y[1000];
    struct open_petsc p = open_petsc(y);
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;
    assert_int_equal(sigaction(SIGCHLD, &ignore, &before), 0);
    for (int repeat = 0; repeat < 2; repeat++) {
        start_petsc(&p);
        poison(&p.problem);
        assert_int_equal(p.peer->run(p.state), 0);
        assert_int_equal(p.peer->fetch(p.state), 0);
        check_y(&p.problem, "petsc", "even", "without SIGCHLD");
        p.peer->close(p.state);
        p.state = NULL;
        assert_no_processes();
    }
    assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
    free_matrix(&p.m);
}

/* ---------------------------------------------------------------------- the loader */

static void odd_modules_are_refused(void **state)
{
    (void)state;
    char broken[] = "/tmp/spmv-peers-XXXXXX", path[128], why[WHY_SIZE];
    assert_non_null(mkdtemp(broken));
    snprintf(path, sizeof path, "%s/spmv_peer_eigen.so", broken);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("this is no library\n", f);
    fclose(f);
    char other_version[80];
    snprintf(other_version, sizeof other_version, "made for version %d of the interface, this program has %d",
             PEER_ABI + 1, PEER_ABI);
    const struct {
        const char *name, *folder, *sentence;
    } cases[] = {
        {"nonesuch", NULL, "unknown module of peers \"nonesuch\"; there are: cusparse"},
        {"", NULL, "unknown module of peers \"\""},
        {"../loops", NULL, "unknown module of peers \"../loops\""},
        {"loops", "/nonexistent", "spmv_peer_loops.so was not found, in /nonexistent: building it needs OpenMP"},
        {"librsb", broken, "building it needs librsb (Debian: librsb-dev)"},
        {"eigen", broken, "spmv_peer_eigen.so: "},
        {"eigen", broken, "it needs Eigen 3.4 (Debian: libeigen3-dev)"},
        {"loops", PEERS_ODD "ABI", other_version},
        {"loops", PEERS_ODD "SYMBOL", "no function spmv_peer_module"},
        {"loops", PEERS_ODD "NOTHING", "its library does not start; it needs OpenMP"},
        {"loops", PEERS_ODD "NAMES", "has loops-guide instead of \"loops-guided\""},
        {"loops", PEERS_ODD "COUNT", "has nothing instead of \"loops-merge\""},
        {"loops", PEERS_ODD "UNDEFINED", "function_of_an_absent_library"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const struct peer_module *module = (const struct peer_module *)why;
        memset(why, 0, sizeof why);
        assert_int_equal(peer_load(cases[c].name, cases[c].folder, &module, why), -1);
        assert_null(module);
        if (strstr(why, cases[c].sentence) == NULL)
            fail_msg("\"%s\" does not contain \"%s\"", why, cases[c].sentence);
    }
    unlink(path);
    rmdir(broken);
}

/* A module is code, so others must not be able to write to it or to its folder. */
static void modules_of_others_are_refused(void **state)
{
    (void)state;
    static const struct {
        mode_t folder, file;
        const char *sentence;
    } cases[] = {
        {0755, 0644, "cannot open"},
        {0757, 0644, "is not opened, because it is not safe: its folder: others may write to it"},
        {0755, 0646, "is not opened, because it is not safe: others may write to it"},
        {01777, 0644, "is not opened, because it is not safe: its folder: others may write to it"},
    };
    char folder[] = "/tmp/spmv_test_peers_XXXXXX", path[128], why[WHY_SIZE];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/spmv_peer_loops.so", folder);
    FILE *const f = fopen(path, "w");
    assert_non_null(f);
    fputs("no library\n", f);
    fclose(f);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const struct peer_module *module = NULL;
        assert_int_equal(chmod(path, cases[c].file), 0);
        assert_int_equal(chmod(folder, cases[c].folder), 0);
        assert_int_equal(peer_load("loops", folder, &module, why), -1);
        if (strstr(why, cases[c].sentence) == NULL)
            fail_msg("\"%s\" does not contain \"%s\"", why, cases[c].sentence);
    }
    remove(path);
    rmdir(folder);
}

/* SPMV_PEER_PATH precedes the folders near the program; folders in it without the module are
 * skipped. */
static void the_environment_comes_first(void **state)
{
    (void)state;
    const struct peer_module *module = NULL;
    char why[WHY_SIZE] = "";
    setenv("SPMV_PEER_PATH", ":/nonexistent::" PEERS_ODD "ABI:", 1);
    assert_int_equal(peer_load("loops", NULL, &module, why), -1);
    assert_non_null(strstr(why, PEERS_ODD "ABI/spmv_peer_loops.so"));
    setenv("SPMV_PEER_PATH", "/nonexistent", 1);
    assert_int_equal(peer_load("loops", NULL, &module, why), 0);
    assert_int_equal(module->count, 3);
    unsetenv("SPMV_PEER_PATH");
    const struct peer_module *again = NULL;
    assert_int_equal(peer_load("loops", NULL, &again, why), 0);
    assert_ptr_equal(module, again);
}

#define ENTRY_OF_CUDA(module)
#define ENTRY_OF_OMP(module)                                                                                           \
    cmocka_unit_test(module##_is_right), cmocka_unit_test(module##_keeps_states_apart),                                \
        cmocka_unit_test(module##_uses_the_threads_asked_for),
#define ENTRY_OF(module, backend, peers, operations, brings) ENTRY_OF_##backend(module)

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "threads") == 0)
        return one_thread_works(argv[2]);
    support_begin(argc, argv);
    char pid[32];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv(MARK, pid, 1);
    unsetenv("SPMV_PEER_PATH");
    /* clang-format off */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_modules_are_refused),
        cmocka_unit_test(modules_of_others_are_refused),
        cmocka_unit_test(the_environment_comes_first),
        PEER_MODULE_LIST(ENTRY_OF)
        cmocka_unit_test(petsc_refuses_f32),
        cmocka_unit_test(petsc_survives_its_workers),
        cmocka_unit_test(petsc_works_without_sigchld),
    };
    /* clang-format on */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
