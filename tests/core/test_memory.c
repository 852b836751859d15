/* Fails every allocation of the library in turn: the call must return "out of memory", leave its
 * outputs empty and leak nothing. Functions that must not allocate are checked too.
 *
 * The library is linked with wrapped malloc functions (see tests/CMakeLists.txt), so a counter can
 * refuse the n-th allocation and count the blocks that are not freed.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "core/runtime.h"
#include "formats/matrix_internal.h"
#include "solvers/prepare/prepared_system.h"
#include "tests/support/support.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *memory);

static long allocations;    /* since the last reset */
static long live;           /* not freed yet */
static long refuse_at = -1; /* number of the allocation to refuse */

/* The live blocks, in a hash table by address (open addressing). The library also frees blocks that
 * the C library allocated (open_memstream, realpath); those must not count. A removed entry becomes
 * GONE, so that searches continue past it. */
enum { PLACES = 1 << 16 };
static void *block[PLACES];
static char gone;
#define GONE ((void *)&gone)
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t place_of(const void *memory, bool vacant)
{
    size_t at = ((uintptr_t)memory >> 4) * 0x9e3779b97f4a7c15u >> 48;
    while (block[at] != memory && block[at] != NULL && !(vacant && block[at] == GONE))
        at = (at + 1) % PLACES;
    return at;
}

/* Counts an allocation. Returns true for the one to refuse, and for the next one: the library tries
 * again after it has released what a context keeps. */
static bool refused(void)
{
    pthread_mutex_lock(&lock);
    const bool refuse = refuse_at >= 0 && (allocations == refuse_at || allocations == refuse_at + 1);
    allocations++;
    pthread_mutex_unlock(&lock);
    return refuse;
}

static void *born(void *memory)
{
    if (memory == NULL)
        return NULL;
    pthread_mutex_lock(&lock);
    block[place_of(memory, true)] = memory;
    live++;
    pthread_mutex_unlock(&lock);
    return memory;
}

static void died(const void *memory)
{
    pthread_mutex_lock(&lock);
    const size_t at = place_of(memory, false);
    if (memory != NULL && block[at] == memory) {
        block[at] = GONE;
        live--;
    }
    pthread_mutex_unlock(&lock);
}

void *__wrap_malloc(size_t size)
{
    return refused() ? NULL : born(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refused() ? NULL : born(__real_calloc(count, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    if (refused())
        return NULL;
    died(memory); /* before realloc: another thread may get the old address */
    void *moved = __real_realloc(memory, size);
    born(moved != NULL ? moved : memory);
    return moved;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return refused() ? NULL : born(__real_aligned_alloc(alignment, size));
}

void __wrap_free(void *memory)
{
    died(memory);
    __real_free(memory);
}

/* number of messages so far about memory for the entries of a file */
static long entries_refused;

/* Runs the activity with allocation 0, 1, 2 ... refused until it succeeds. Each failure must return
 * SPMV_ERROR_MEMORY and leave as much memory as before. Returns the number of failures. */
static long fail_each_allocation(const char *name, spmv_status (*activity)(spmv_context *), spmv_context *ctx)
{
    for (long n = 0;; n++) {
        const long before = live;
        allocations = 0;
        refuse_at = n;
        const spmv_status st = activity(ctx);
        refuse_at = -1;
        if (live != before)
            fail_msg("%s: refusing allocation %ld leaked %ld blocks", name, n, live - before);
        if (st == SPMV_OK)
            return n;
        if (st != SPMV_ERROR_MEMORY)
            fail_msg("%s: refusing allocation %ld: %s (%s)", name, n, spmv_status_name(st), spmv_last_error(ctx));
        if (ctx != NULL && strstr(spmv_last_error(ctx), "bytes") == NULL)
            fail_msg("%s: refusing allocation %ld: the sentence \"%s\" does not say how much was needed", name, n,
                     spmv_last_error(ctx));
        /* the memory of the whole read, not the size of one entry */
        const char *const needed = ctx != NULL ? strstr(spmv_last_error(ctx), "entries of a file: ") : NULL;
        if (needed != NULL && strtoll(needed + strlen("entries of a file: "), NULL, 10) < 1000)
            fail_msg("%s: refusing allocation %ld: \"%s\"", name, n, spmv_last_error(ctx));
        entries_refused += needed != NULL;
    }
}

/* Fails if there is a result after a failure. */
static void assert_made(spmv_status st, const void *made, const char *what)
{
    if (st != SPMV_OK && made != NULL)
        fail_msg("%s though making one failed", what);
}

/* The same; releases the matrix. */
static spmv_status matrix_made(spmv_status st, spmv_matrix *matrix)
{
    assert_made(st, matrix, "a matrix");
    spmv_matrix_destroy(matrix);
    return st;
}

static spmv_status make_context(spmv_context *ctx)
{
    (void)ctx;
    spmv_context_options options = support_context_options();
    options.backend = support_backend;
    spmv_context *made = NULL;
    const spmv_status st = spmv_context_create(&options, &made);
    assert_made(st, made, "a context");
    spmv_context_destroy(made);
    return st;
}

static const char *generated_spec;

static spmv_status generate(spmv_context *ctx)
{
    spmv_matrix *matrix = NULL;
    const spmv_status st = spmv_matrix_generate(ctx, generated_spec, SPMV_F64, &matrix);
    return matrix_made(st, matrix);
}

static spmv_status from_coo(spmv_context *ctx)
{
    enum { N = 3000 };
    static int64_t row[N];
    static int32_t col[N];
    static double val[N];
    uint64_t seed = 3;
    for (int k = 0; k < N; k++) {
        row[k] = (int64_t)(support_random(&seed) % 50);
        col[k] = (int32_t)(support_random(&seed) % 50);
        val[k] = support_uniform(&seed);
    }
    spmv_matrix *matrix = NULL;
    const spmv_status st = spmv_matrix_from_coo(ctx, 50, 50, N, row, col, val, SPMV_F64, &matrix, NULL);
    return matrix_made(st, matrix);
}

/* The matrix of the activities that need one. */
static spmv_matrix *poisson;
static spmv_csr poisson_view;

/* The same pattern with an uneven diagonal, for which auto takes cholesky on a CPU and jacobi on a
 * GPU. */
static spmv_csr uneven_view;

static void make_uneven(void)
{
    static double values[5 * 900];
    uneven_view = poisson_view;
    uneven_view.val = values;
    for (int64_t i = 0; i < poisson_view.rows; i++)
        for (int64_t k = row_first(&poisson_view, i); k < row_first(&poisson_view, i + 1); k++)
            values[k] = ((const double *)poisson_view.val)[k] + (poisson_view.col[k] == i ? (double)(i % 2) * 8 : 0);
}

static spmv_status statistics(spmv_context *ctx)
{
    spmv_statistics s;
    return spmv_matrix_statistics(ctx, &poisson_view, &s, sizeof s);
}

static spmv_status transpose(spmv_context *ctx)
{
    spmv_matrix *b = NULL;
    const spmv_status st = spmv_matrix_transpose(ctx, &poisson_view, &b);
    return matrix_made(st, b);
}

static const char *plan_method;

static spmv_status plan_and_transposed_plan(spmv_context *ctx)
{
    spmv_status st = SPMV_OK;
    spmv_plan_options options = support_plan_options();
    options.method = plan_method;
    for (int operation = SPMV_OPERATION_N; operation <= SPMV_OPERATION_T && st == SPMV_OK; operation++) {
        spmv_plan *plan = NULL;
        options.operation = (spmv_operation)operation;
        st = spmv_plan_create(ctx, &poisson_view, &options, &plan);
        assert_made(st, plan, "a plan");
        spmv_plan_destroy(plan);
    }
    return st;
}

/* Creates a preconditioner by name, then one whose pivots fail, so that it retries. */
static const char *preconditioner_name;

/* The options of this preconditioner: of schur, every second row is of the first field. */
static const spmv_preconditioner_options *options_of(const char *name)
{
    enum { ROWS = 8000 };
    static int32_t fields[ROWS];
    static spmv_preconditioner_options o;
    spmv_preconditioner_options_init(&o, sizeof o);
    for (int i = 0; i < ROWS; i++)
        fields[i] = 1 + i % 2;
    o.fields = fields;
    return strcmp(name, "schur") == 0 ? &o : NULL;
}

static spmv_status make_preconditioner(spmv_context *ctx)
{
    static const int32_t row_ptr[] = {0, 3, 6, 9, 12}, col[] = {0, 1, 3, 0, 1, 2, 1, 2, 3, 0, 2, 3};
    static const double val[] = {3, -2, 2, -2, 3, -2, -2, 3, -2, 2, -2, 3};
    const spmv_csr kershaw = support_csr(4, 4, row_ptr, col, val);
    spmv_status st = SPMV_OK;
    for (int i = 0; i < 2 && st == SPMV_OK; i++) {
        spmv_preconditioner *m = NULL;
        st = spmv_preconditioner_create(ctx, preconditioner_name, i == 0 ? &poisson_view : &kershaw,
                                        options_of(preconditioner_name), &m);
        assert_made(st, m, "a preconditioner");
        spmv_preconditioner_destroy(m);
    }
    context_release_blocks(ctx); /* vectors of the check of factors, which the context keeps */
    return st;
}

/* Multigrid with several near-null-space vectors, whose values are renewed. */
static spmv_status make_nodes(spmv_context *ctx)
{
    spmv_preconditioner *m = NULL;
    spmv_preconditioner_options options;
    spmv_preconditioner_options_init(&options, sizeof options);
    options.block = 3;
    options.update_values = 1;
    spmv_status st = spmv_preconditioner_create(ctx, "amg", &poisson_view, &options, &m);
    assert_made(st, m, "a preconditioner");
    if (st == SPMV_OK)
        st = spmv_preconditioner_update_values(m, poisson_view.val);
    spmv_preconditioner_destroy(m);
    return st;
}

/* Prepares a general system, of which the matching needs searches. */
static spmv_status prepared_system(spmv_context *ctx)
{
    static const int32_t row_ptr[] = {0, 3, 6, 9}, col[] = {0, 1, 2, 0, 1, 2, 0, 1, 2};
    static const double val[] = {1, 1, 0.5, 1, 0.5, 0.25, 1, 0.5, 0.25};
    const spmv_csr a = support_csr(3, 3, row_ptr, col, val);
    const struct prepared_system_options options = {.matching = MATCHING_ON};
    struct prepared_system *s = (void *)ctx;
    const spmv_status st = prepared_system_create(ctx, &a, &options, &s);
    assert_made(st, s, "a system");
    prepared_system_destroy(s);
    return st;
}

/* Makes a solver, solves, and gives it new values; preconditioner_name: its preconditioner. */
static char solver_why[512];

static spmv_status make_and_solve(spmv_context *ctx)
{
    static double x[900], b[900];
    spmv_solver_options options = support_solver_options();
    options.precond = preconditioner_name;
    options.zero_start = 1;
    spmv_solver *solver = NULL;
    spmv_solver_result result;
    spmv_status st = spmv_solver_create(ctx, &uneven_view, &options, &solver);
    assert_made(st, solver, "a solver");
    b[450] = 1;
    if (st == SPMV_OK)
        st = spmv_solver_solve(solver, b, x, &result, sizeof result);
    if (st == SPMV_OK)
        snprintf(solver_why, sizeof solver_why, "%s", result.why_precond);
    if (st == SPMV_OK) {
        st = spmv_solver_update_values(solver, uneven_view.val);
        if (st != SPMV_OK && spmv_solver_solve(solver, b, x, NULL, 0) != st)
            fail_msg("a solve after new values failed");
    }
    spmv_solver_destroy(solver);
    context_release_blocks(ctx); /* which the context keeps for the next solve */
    return st;
}

/* With "auto", a preconditioner for which there is no memory is replaced by another one. So a
 * refused allocation is an error or ends in a solution; both leave as much memory as before. */
static void fail_preconditioners(spmv_context *ctx)
{
    preconditioner_name = "auto";
    assert_ok(ctx, make_and_solve(ctx)); /* the scratch of the context stays */
    allocations = 0;
    assert_ok(ctx, make_and_solve(ctx));
    const long all = allocations;
    int replaced = 0;
    for (long n = 0; n < all; n++) {
        const long before = live;
        allocations = 0;
        refuse_at = n;
        solver_why[0] = '\0';
        const spmv_status st = make_and_solve(ctx);
        refuse_at = -1;
        if (live != before || (st != SPMV_OK && st != SPMV_ERROR_MEMORY))
            fail_msg("refusing allocation %ld: %s, %ld blocks leaked", n, spmv_status_name(st), live - before);
        replaced += st == SPMV_OK && strstr(solver_why, "cannot be made") != NULL;
    }
    assert_true(replaced > 0);
}

static spmv_status verify(spmv_context *ctx)
{
    static double x[900], y[900];
    spmv_verify_result result;
    return spmv_verify(ctx, &poisson_view, SPMV_OPERATION_T, NULL, x, NULL, NULL, y, SPMV_F64, &result, sizeof result);
}

static char matrix_path[] = "/tmp/spmv_test_memory_XXXXXX";

static spmv_status read_matrix(spmv_context *ctx)
{
    spmv_matrix *matrix = NULL;
    const spmv_status st = spmv_matrix_read(ctx, matrix_path, NULL, &matrix, NULL, 0);
    return matrix_made(st, matrix);
}

static spmv_status write_matrix(spmv_context *ctx)
{
    return spmv_matrix_write(ctx, &poisson_view, matrix_path);
}

/* Writes a file with this ending and reads it back. */
static spmv_status write_and_read_as(spmv_context *ctx, const char *ending)
{
    char path[80];
    spmv_matrix *matrix = NULL;
    snprintf(path, sizeof path, "%s%s", matrix_path, ending);
    spmv_status st = spmv_matrix_write(ctx, &poisson_view, path);
    if (st == SPMV_OK)
        st = spmv_matrix_read(ctx, path, NULL, &matrix, NULL, 0);
    unlink(path);
    return matrix_made(st, matrix);
}

static spmv_status write_and_read_binary(spmv_context *ctx)
{
    return write_and_read_as(ctx, ".spmv");
}

static spmv_status write_and_read_packed(spmv_context *ctx)
{
    return write_and_read_as(ctx, ".mtx.gz");
}

/* Mirrored and repeated entries, several buckets. */
static spmv_status read_symmetric(spmv_context *ctx)
{
    enum { ROWS = 200000, ENTRIES = 40000 };
    char path[80];
    snprintf(path, sizeof path, "%s.symmetric", matrix_path);
    if (access(path, R_OK) != 0) {
        FILE *const f = fopen(path, "w");
        assert_non_null(f);
        fprintf(f, "%%%%MatrixMarket matrix coordinate real symmetric\n%d %d %d\n", ROWS, ROWS, ENTRIES);
        for (int k = 0; k < ENTRIES; k++)
            fprintf(f, "%d %d %d.5\n", k % (ENTRIES / 2) * 9 + 1, k % 7 + 1, k);
        fclose(f);
    }
    spmv_matrix *matrix = NULL;
    const spmv_status st = spmv_matrix_read(ctx, path, NULL, &matrix, NULL, 0);
    if (st == SPMV_OK)
        unlink(path);
    return matrix_made(st, matrix);
}

static spmv_status write_and_read_vector(spmv_context *ctx)
{
    static const double values[] = {1, 0.1, 3};
    void *back = NULL;
    int64_t n = 0;
    spmv_status st = spmv_vector_write(ctx, matrix_path, SPMV_F64, values, 3, NULL);
    if (st == SPMV_OK)
        st = spmv_vector_read(ctx, matrix_path, SPMV_F64, &back, &n);
    if (st != SPMV_OK && (back != NULL || n != 0))
        fail_msg("a vector though reading one failed");
    spmv_host_free(back);
    return st;
}

/* Primitives grow the scratch of the context, so each call creates a new context. */
static spmv_status primitives(spmv_context *unused)
{
    enum { N = 100000 };
    static double in[N], out[N];
    static const int32_t starts[] = {0, 5, N / 2};
    const spmv_segments segments = {.form = SPMV_SEGMENT_STARTS, .heads = starts, .bits = 32, .count = 3};
    (void)unused;
    spmv_context_options options = support_context_options();
    options.backend = support_backend;
    spmv_context *ctx = NULL;
    spmv_status st = spmv_context_create(&options, &ctx);
    if (st == SPMV_OK)
        st = spmv_reduce(ctx, SPMV_ADD, SPMV_F64, in, out, N);
    if (st == SPMV_OK)
        st = spmv_scan(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, in, out, N);
    if (st == SPMV_OK)
        st = spmv_segscan(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, &segments, in, out, N);
    if (st == SPMV_OK)
        st = spmv_segreduce(ctx, SPMV_ADD, SPMV_F64, &segments, in, out, N);
    spmv_context_destroy(ctx);
    return st;
}

/* ------------------------------------------------------------------ the tests */

static void each_allocation(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "poisson2d:20",           "stencil27:7",         "banded:50,3",       "dense:20,30",
        "arrow:50,20,3",          "uniform:50,60,2.5",   "longrows:3,500,60", "empty:50,0.5",
        "powerlaw:500,3,2.1,300", "rmat:6,200", /* merges, and sorts long rows */
        "fem:50,2,5.5",           "interpolation3d:5,2", "elasticity2d:4",    "rigid3d:2"};
    const long before = live; /* allocated by the CUDA runtime before main */
    spmv_context *ctx = support_context();
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:30", SPMV_F64, &poisson));
    spmv_matrix_view(poisson, &poisson_view);
    make_uneven();
    const int file = mkstemp(matrix_path);
    assert_true(file >= 0);
    close(file);

    assert_true(fail_each_allocation("make_context", make_context, NULL) > 0);
    assert_true(fail_each_allocation("primitives", primitives, NULL) > 0);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        generated_spec = specs[i];
        assert_true(fail_each_allocation(generated_spec, generate, ctx) > 0);
    }
    assert_true(fail_each_allocation("from_coo", from_coo, ctx) > 0);
    assert_true(fail_each_allocation("transpose", transpose, ctx) > 0);
    assert_true(fail_each_allocation("statistics", statistics, ctx) > 0);
    for (int i = 0; (plan_method = spmv_method_name(support_backend, i)) != NULL; i++)
        assert_true(fail_each_allocation("plan_and_transposed_plan", plan_and_transposed_plan, ctx) > 0);
    for (int i = 0; (preconditioner_name = spmv_preconditioner_name(i)) != NULL; i++)
        /* ic0 and cholesky are not on cuda */
        if (support_backend != SPMV_BACKEND_CUDA ||
            (strcmp(preconditioner_name, "ic0") != 0 && strcmp(preconditioner_name, "cholesky") != 0)) {
            /* the scratch of the context grows here and stays */
            assert_ok(ctx, make_preconditioner(ctx));
            assert_true(fail_each_allocation(preconditioner_name, make_preconditioner, ctx) > 0);
        }
    preconditioner_name = "auto";
    assert_true(fail_each_allocation(preconditioner_name, make_preconditioner, ctx) > 0);
    assert_ok(ctx, make_nodes(ctx)); /* the scratch of the context stays */
    assert_true(fail_each_allocation("make_nodes", make_nodes, ctx) > 0);
    fail_preconditioners(ctx);
    preconditioner_name = support_backend == SPMV_BACKEND_CUDA ? "block-jacobi" : "ic0";
    assert_true(fail_each_allocation("make_and_solve", make_and_solve, ctx) > 0);
    assert_true(fail_each_allocation("prepared_system", prepared_system, ctx) > 0);
    assert_true(fail_each_allocation("verify", verify, ctx) > 0);
    assert_true(fail_each_allocation("write_matrix", write_matrix, ctx) > 0);
    assert_true(fail_each_allocation("read_matrix", read_matrix, ctx) > 0);
    assert_true(fail_each_allocation("read_symmetric", read_symmetric, ctx) > 0);
    assert_true(fail_each_allocation("write_and_read_binary", write_and_read_binary, ctx) > 0);
    if (write_and_read_packed(ctx) != SPMV_ERROR_UNSUPPORTED) /* libarchive is available */
        assert_true(fail_each_allocation("write_and_read_packed", write_and_read_packed, ctx) > 0);
    assert_true(fail_each_allocation("write_and_read_vector", write_and_read_vector, ctx) > 0);

    assert_true(entries_refused > 0);
    unlink(matrix_path);
    spmv_matrix_destroy(poisson);
    spmv_context_destroy(ctx);
    assert_int_equal(live, before);
}

/* spmv_apply allocates nothing, for any method. */
static void products_allocate_nothing(void **state)
{
    spmv_context *ctx = *state;
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:150", SPMV_F64, &poisson));
    spmv_matrix_view(poisson, &poisson_view);
    static double x[150 * 150], y[150 * 150];
    const double beta = 0.5;
    for (int i = 0; spmv_method_name(support_backend, i) != NULL; i++) {
        spmv_plan_options options = support_plan_options();
        options.method = spmv_method_name(support_backend, i);
        spmv_plan *plan = NULL;
        assert_ok(ctx, spmv_plan_create(ctx, &poisson_view, &options, &plan));
        allocations = 0;
        assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, y));
        assert_ok(ctx, spmv_apply(plan, &beta, x, &beta, y));
        assert_int_equal(allocations, 0);
        spmv_plan_destroy(plan);
    }
    spmv_matrix_destroy(poisson);
}

/* Applying a preconditioner of this library allocates nothing. */
static void preconditioners_allocate_nothing(void **state)
{
    spmv_context *ctx = *state;
    enum { LARGE = 60 };
    double *const r = calloc(LARGE * LARGE * LARGE, sizeof *r), *const z = calloc(LARGE * LARGE * LARGE, sizeof *z);
    const char *name = NULL;
    for (int i = 0; (name = spmv_preconditioner_name(i)) != NULL; i++) {
        spmv_preconditioner *m = NULL;
        /* On omp the levels of triangular solves are large enough to be shared by threads. ilut applies its
         * factors with the same code as ilu0. */
        const bool triangular = strcmp(name, "ic0") == 0 || strcmp(name, "ilu0") == 0;
        const char *const spec = triangular && support_backend == SPMV_BACKEND_OMP ? "poisson3d:60"
                                 : strcmp(name, "cholesky") == 0 ? "poisson3d:10" /* a small envelope */
                                                                 : "poisson3d:20";
        assert_ok(ctx, spmv_matrix_generate(ctx, spec, SPMV_F64, &poisson));
        spmv_matrix_view(poisson, &poisson_view);
        assert_true(poisson_view.rows <= LARGE * LARGE * LARGE);
        assert_true(strcmp(name, "schur") != 0 || poisson_view.rows == 8000);
        assert_ok(ctx, spmv_preconditioner_create(ctx, name, &poisson_view, options_of(name), &m));
        allocations = 0;
        assert_ok(ctx, spmv_preconditioner_apply(m, r, z));
        assert_ok(ctx, spmv_preconditioner_apply(m, r, z));
        assert_int_equal(allocations, 0);
        spmv_preconditioner_destroy(m);
        spmv_matrix_destroy(poisson);
    }
    support_free(r, z);
}

/* ------------------------------------------------------------------- solvers */

static spmv_plan *cg_plan;
static spmv_cg_options cg_options;
static double cg_b[3 * 900], cg_x[3 * 900];

static spmv_status solve(spmv_context *ctx)
{
    spmv_cg_result results[3];
    const spmv_status st = spmv_cg(cg_plan, cg_b, cg_x, &cg_options, results, sizeof *results);
    context_release_blocks(ctx); /* which the context keeps for the next solve */
    return st;
}

/* Counts allocations from iteration 0 on; there must be none. */
static int nothing_allocated(int64_t iteration, double residual, void *user)
{
    (void)residual;
    if (iteration == 0)
        allocations = 0;
    else if (allocations != 0)
        fail_msg("%s: %ld allocations before iteration %lld", cg_options.rung, allocations, (long long)iteration);
    *(int64_t *)user = iteration;
    return 0;
}

/* A solve allocates only before its first iteration, and each of those allocations may fail. Every
 * rung runs plain, with jacobi, with an inner plan, with three right-hand sides, and with those and
 * jacobi. */
static void solves_allocate_before_the_loop(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *narrow = NULL;
    spmv_csr narrow_view;
    spmv_plan *plan[3] = {NULL};
    spmv_preconditioner *jacobi = NULL;
    spmv_plan_options options;
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:30", SPMV_F64, &poisson));
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:30", SPMV_F32, &narrow));
    spmv_matrix_view(poisson, &poisson_view);
    spmv_matrix_view(narrow, &narrow_view);
    assert_ok(ctx, spmv_preconditioner_create(ctx, "jacobi", &poisson_view, NULL, &jacobi));
    spmv_plan_options_init(&options, sizeof options);
    for (int columns = 1; columns <= 3; columns += 2) {
        options.vectors = columns;
        assert_ok(ctx, spmv_plan_create(ctx, &poisson_view, &options, &plan[columns / 2]));
    }
    assert_ok(ctx, spmv_plan_create(ctx, &narrow_view, NULL, &plan[2]));
    for (int i = 0; i < 3 * 900; i++)
        cg_b[i] = 1 + i % 7;
    for (int i = 0; spmv_cg_rung_name(support_backend, i) != NULL; i++)
        for (int form = 0; form < 5; form++) {
            int64_t last = 0;
            spmv_cg_options_init(&cg_options, sizeof cg_options);
            cg_options.rung = spmv_cg_rung_name(support_backend, i);
            cg_options.zero_start = 1;
            cg_options.precond = form == 1 || form == 4 ? jacobi : NULL;
            cg_options.inner = form == 2 ? plan[2] : NULL;
            cg_plan = plan[form >= 3];
            assert_ok(ctx, solve(ctx)); /* the scratch of the context stays */
            assert_true(fail_each_allocation(cg_options.rung, solve, ctx) >= 4);
            cg_options.on_iteration = nothing_allocated;
            cg_options.user = &last;
            assert_ok(ctx, solve(ctx));
            assert_true(last > 20);
        }
    for (int i = 0; i < 3; i++)
        spmv_plan_destroy(plan[i]);
    spmv_preconditioner_destroy(jacobi);
    spmv_matrix_destroy(poisson);
    spmv_matrix_destroy(narrow);
}

SUPPORT_MAIN(cmocka_unit_test(each_allocation), with_context(products_allocate_nothing),
             with_context(solves_allocate_before_the_loop), with_context(preconditioners_allocate_nothing))
