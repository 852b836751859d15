/* Groups of ranks (group.h): the bits of products, dot products and conjugate gradients do not
 * depend on the number of ranks, on which rank gives which rows, or on the transport. Under mpirun,
 * this program runs the same tests on the ranks that were started, with "mpi" as second argument.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <sched.h>
#include <spmv/primitives.h>
#include <stdatomic.h>

#include "core/runtime.h"
#include "distributed/group_internal.h"
#include "tests/support/support.h"
#include "tests/support/support_fails.h"
#include "tests/support/support_ranks.h"
#ifdef HOST_CUDA
#include "tests/emulated_gpu/cuda_runtime_api.h"
#endif

/* The columns of a table of matrices. */
struct matrix_case {
    const char *spec;
    spmv_type type; /* of the matrix */
    spmv_type sums; /* of the vectors */
    bool solvable;  /* symmetric positive definite */
};

static const struct matrix_case cases[] = {
#ifdef HOST_CUDA /* a thousand times slower. The first has more chunks than a kernel has blocks. */
    {"poisson2d:47", SPMV_F64, SPMV_F64, true},
    {"poisson2d:1", SPMV_F64, SPMV_F64, true},
    {"stencil27:9", SPMV_F32, SPMV_F64, true},
    {"uniform:800,900,5", SPMV_F32, SPMV_F32, false},
    {"powerlaw:1100,9,2.1,200", SPMV_F64, SPMV_F64, false},
#else
    {"poisson2d:47", SPMV_F64, SPMV_F64, true},
    {"poisson2d:1", SPMV_F64, SPMV_F64, true},
    {"poisson2d:9", SPMV_F64, SPMV_F64, true}, /* fewer chunks than ranks */
    {"poisson3d:17", SPMV_F32, SPMV_F32, true},
    {"stencil27:11", SPMV_F32, SPMV_F64, true},
    {"diffusion2d:40,1000", SPMV_F64, SPMV_F64, true},
    {"convdiff2d:33,2", SPMV_F64, SPMV_F64, false},
    {"arrow:3000", SPMV_F64, SPMV_F64, false}, /* a row above a rank's share */
    {"powerlaw:5000,9,2.1,2500", SPMV_F64, SPMV_F64, false},
    {"uniform:3000,5000,7", SPMV_F64, SPMV_F64, false},
    {"uniform:5000,300,7", SPMV_F32, SPMV_F64, false},
    {"empty:9000,0.7", SPMV_F64, SPMV_F64, false},
    {"longrows:40,20000,9000", SPMV_F64, SPMV_F64, false}, /* rows of several tiles */
    {"banded:20000,2", SPMV_F64, SPMV_F64, false},
    {"rmat:11,8", SPMV_F64, SPMV_F64, false},
#endif
};
enum { CASES = sizeof cases / sizeof *cases };

/* SIDE: of the grids in tests of failures. BLOCKS: preconditioners of blocks. RTOL: of solves; every
 * iteration runs the same kernels, so the emulated GPU does few of them. */
#ifdef HOST_CUDA /* an odd number, and more than some matrices have chunks */
static const int rank_counts[] = {3, 8};
enum { SIDE = 24, LONGEST_ROW = 9000, BLOCKS = 2 };
static const double RTOL = 0.1;
#define SMALL "poisson2d:14" /* of files */
#else
static const int rank_counts[] = {2, 3, 8};
enum { SIDE = 50, LONGEST_ROW = 30000, BLOCKS = 4 };
static const double RTOL = 1e-10;
#define SMALL "poisson2d:30"
#endif
enum { NEGATIVE = SIDE * SIDE * 4 / 5 }; /* a row */
enum { COUNTS = sizeof rank_counts / sizeof *rank_counts };

/* Which rows each rank gives. */
enum giving { GIVE_FIRST, GIVE_EQUAL, GIVE_LAST, GIVINGS };

/* The preconditioners with the same bits for any number of ranks. chebyshev: with
 * one method, to save time. */
static const char *const preconds[] = {NULL, "jacobi", "chebyshev"};
enum { CHEBYSHEV = 2, PRECONDS = sizeof preconds / sizeof *preconds };

/* The results of one run, on rank 0. */
struct outcome {
    int64_t rows, cols, chunks;
    char *y, *again; /* of the product; of the third one */
    double dot, imbalance;
    spmv_cg_result result[PRECONDS];
    char *solution[PRECONDS], note[256];
    double history[PRECONDS][4000];
};

struct run {
    const struct matrix_case *matrix;
    const spmv_csr *a;
    enum giving giving;
    const char *method;   /* of conjugate gradients */
    const char *product;  /* the method of products; NULL: auto */
    const char *exchange; /* NULL: auto */
    bool wide;            /* columns of 64 bits until they are renumbered */
    struct outcome *outcome;
};

static size_t size_of(const struct run *run)
{
    return spmv_type_size(run->matrix->sums);
}

static void set(spmv_type type, void *numbers, int64_t i)
{
    const double value = 1 + (double)(splitmix_mix((uint64_t)i + 7) >> 40) / (1 << 24);
    real_set(type, numbers, i, i % 3 == 0 ? -value : value);
}

static int64_t first_given(const struct run *run, int rank, int ranks)
{
    const int64_t rows = run->a->rows;
    switch (run->giving) {
    case GIVE_FIRST:
        return rank == 0 ? 0 : rows;
    case GIVE_LAST:
        return rank == ranks ? rows : 0;
    default:
        return rows * rank / ranks;
    }
}

static int keep_history(int64_t iteration, double residual, void *user)
{
    double *history = user;
    if (iteration < 4000)
        history[iteration] = residual;
    return 0;
}

/* The number of preconditioners that are tested in this run. */
static int preconds_of(const struct run *run)
{
    const char *const method = support_backend == SPMV_BACKEND_CUDA ? "graph" : "textbook";
    return run->method != NULL && strcmp(run->method, method) == 0 ? PRECONDS : CHEBYSHEV;
}

/* CG of one rank, started at 0. */
static spmv_status solve(const struct run *run, spmv_group_matrix *m, const void *b, void *x, int p, void *host)
{
    spmv_preconditioner *precond = NULL;
    spmv_cg_options options;
    spmv_cg_options_init(&options, sizeof options);
    spmv_status st = preconds[p] != NULL ? spmv_group_preconditioner_create(m, preconds[p], &precond) : SPMV_OK;
    options.rtol = run->matrix->sums == SPMV_F32 ? fmax(1e-5, RTOL) : RTOL;
    options.zero_start = 1;
    options.precond = precond;
    options.rung = run->method;
    options.on_iteration = keep_history;
    options.user = run->outcome->history[p];
    spmv_cg_result result;
    if (st == SPMV_OK)
        st = spmv_group_cg(m, b, x, &options, &result, sizeof result);
    if (st == SPMV_OK)
        st = spmv_group_gather(m, SPMV_GROUP_COLS, x, host);
    if (st == SPMV_OK && host != NULL)
        run->outcome->result[p] = result;
    spmv_preconditioner_destroy(precond);
    return st;
}

/* What each rank does. All checks of results are made later, on rank 0: cmocka's assertions
 * jump. */
static spmv_status one_rank(spmv_group *group, void *user)
{
    const struct run *run = user;
    struct outcome *o = run->outcome;
    spmv_context *ctx = spmv_group_context(group);
    const int rank = spmv_group_rank(group), ranks = spmv_group_ranks(group);
    const int64_t begin = first_given(run, rank, ranks), end = first_given(run, rank + 1, ranks);
    const spmv_type type = run->matrix->sums;
    const int64_t size = (int64_t)size_of(run);
    int64_t *offsets = malloc((size_t)(end - begin + 1) * sizeof *offsets);
    const spmv_csr own = support_rows_of(run->a, begin, end, offsets);
    spmv_group_matrix_options options;
    spmv_group_matrix *m = NULL;
    spmv_group_matrix_info info = {0};
    void *x = NULL, *y = NULL, *z = NULL, *root = NULL;
    spmv_group_matrix_options_init(&options, sizeof options);
    options.type = type;
    options.exchange = run->exchange;
    options.method = run->product;
    spmv_status st = support_group_matrix(group, run->wide, &own, &options, &m);
    if (st == SPMV_OK)
        st = spmv_group_matrix_describe(m, &info, sizeof info);
    const int64_t longest = info.rows > info.cols ? info.rows : info.cols;
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (info.own_cols + 1) * size, &x);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (info.own_rows + 1) * size, &y);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (info.own_rows + 1) * size, &z);
    if (rank == 0) {
        root = malloc((size_t)((longest + 1) * size));
        for (int64_t i = 0; i < longest; i++)
            set(type, root, i);
        snprintf(o->note, sizeof o->note, "%s", info.note != NULL ? info.note : "");
        o->imbalance = info.imbalance;
        o->chunks = info.chunks;
    }
    st = spmv_group_agree(group, st);
    if (st == SPMV_OK)
        st = spmv_group_scatter(m, SPMV_GROUP_COLS, root, x);
    if (st == SPMV_OK)
        st = spmv_group_scatter(m, SPMV_GROUP_ROWS, root, y);
    const union real alpha = real_scalar(type, 0.75), beta = real_scalar(type, -1.5);
    if (st == SPMV_OK)
        st = spmv_group_apply(m, &alpha, x, &beta, y);
    if (st == SPMV_OK)
        st = spmv_group_gather(m, SPMV_GROUP_ROWS, y, o->y);
    for (int i = 0; i < 2 && st == SPMV_OK; i++) /* kernels are loaded: they may wait for each other */
        st = spmv_group_apply(m, NULL, x, NULL, z);
    if (st == SPMV_OK)
        st = spmv_group_gather(m, SPMV_GROUP_ROWS, z, o->again);
    union real dot = {0};
    if (st == SPMV_OK)
        st = spmv_group_dot(m, y, y, &dot);
    if (rank == 0)
        o->dot = real_at(type, &dot, 0);
    for (int p = 0; p < preconds_of(run) && st == SPMV_OK && run->matrix->solvable; p++)
        st = solve(run, m, y, z, p, rank == 0 ? o->solution[p] : NULL);
    spmv_free(ctx, x);
    spmv_free(ctx, y);
    spmv_free(ctx, z);
    spmv_group_matrix_destroy(m);
    free(root);
    free(offsets);
    return st;
}

static void open_outcome(struct outcome *o, const spmv_csr *a)
{
    *o = (struct outcome){.rows = a->rows, .cols = a->cols};
    o->y = calloc((size_t)a->rows + 1, 8);
    o->again = calloc((size_t)a->rows + 1, 8);
    for (int i = 0; i < PRECONDS; i++)
        o->solution[i] = calloc((size_t)a->rows + 1, 8);
}

static void close_outcome(struct outcome *o)
{
    free(o->y);
    free(o->again);
    for (int i = 0; i < PRECONDS; i++)
        free(o->solution[i]);
}

/* Compares all bits. */
static void compare(const struct outcome *a, const struct outcome *b, size_t size)
{
    assert_memory_equal(a->y, b->y, (size_t)a->rows * size);
    assert_memory_equal(a->again, b->again, (size_t)a->rows * size);
    assert_memory_equal(&a->dot, &b->dot, sizeof a->dot);
    assert_int_equal(a->chunks, b->chunks);
    for (int i = 0; i < PRECONDS; i++) {
        assert_int_equal(a->result[i].iterations, b->result[i].iterations);
        assert_int_equal(a->result[i].restarts, b->result[i].restarts);
        assert_memory_equal(&a->result[i].true_residual, &b->result[i].true_residual, sizeof(double));
        assert_memory_equal(&a->result[i].error_estimate, &b->result[i].error_estimate, sizeof(double));
        assert_memory_equal(a->solution[i], b->solution[i], (size_t)a->rows * size);
        assert_memory_equal(a->history[i], b->history[i], sizeof a->history[i]);
    }
}

/* Checks y against the definition, and that the solves reached their tolerance. */
static void check(const struct run *run, const struct outcome *o)
{
    const spmv_type type = run->matrix->sums;
    const int64_t longest = o->rows > o->cols ? o->rows : o->cols;
    const union real alpha = real_scalar(type, 0.75), beta = real_scalar(type, -1.5);
    spmv_context_options options;
    spmv_context *ctx = NULL;
    char *x = malloc((size_t)(longest + 1) * 8);
    spmv_context_options_init(&options, sizeof options);
    options.backend = support_backend == SPMV_BACKEND_REF ? SPMV_BACKEND_OMP : SPMV_BACKEND_REF;
    assert_int_equal(spmv_context_create(&options, &ctx), SPMV_OK);
    for (int64_t i = 0; i < longest; i++)
        set(type, x, i);
    assert_int_equal(spmv_verify(ctx, run->a, SPMV_OPERATION_N, &alpha, x, &beta, x, o->y, type, NULL, 0), SPMV_OK);
    double sum = 0, bound = 0;
    for (int64_t i = 0; i < o->rows; i++) {
        const double value = real_at(type, o->y, i);
        sum += value * value;
        bound += fabs(value * value);
    }
    assert_true(fabs(sum - o->dot) <= 2 * (double)(o->rows + 2) * real_limits_of(type).roundoff * bound);
    for (int i = 0; i < preconds_of(run) && run->matrix->solvable; i++) {
        assert_int_equal(o->result[i].status, SPMV_OK);
        assert_true(o->result[i].true_residual <= o->result[i].tolerance);
    }
    spmv_context_destroy(ctx);
    free(x);
}

/* The number of GPUs; 0 on other backends. */
static int count_gpus(void)
{
    int count = 0;
    spmv_status st = support_backend == SPMV_BACKEND_CUDA ? SPMV_OK : SPMV_ERROR_NO_DEVICE;
    while (st == SPMV_OK) {
        spmv_context *ctx = NULL;
        spmv_context_options options;
        spmv_context_options_init(&options, sizeof options);
        options.backend = SPMV_BACKEND_CUDA;
        options.device = count;
        st = spmv_context_create(&options, &ctx);
        count += st == SPMV_OK;
        spmv_context_destroy(ctx);
    }
    return count;
}

/* Ranks on as many GPUs as there are. */
static spmv_status run_threads(int ranks, int threads, struct run *run)
{
    char message[512] = "";
    spmv_context_options context;
    spmv_group_run_options options;
    spmv_context_options_init(&context, sizeof context);
    spmv_group_run_options_init(&options, sizeof options);
    const int gpus = count_gpus();
    context.backend = support_backend;
    context.threads = threads;
    options.context = &context;
    options.gpus = gpus < ranks ? gpus : ranks;
    const spmv_status st = spmv_group_run_with(ranks, &options, one_rank, run, message, sizeof message);
    if (st != SPMV_OK && !(st == SPMV_ERROR_UNSUPPORTED && run->exchange != NULL))
        fprintf(stderr, "%s, %d ranks: %s\n", run->matrix->spec, ranks, message);
    return st;
}

/* How ranks solve; optional: where the exchange is not possible, nothing is tested. */
struct way {
    spmv_backend backend; /* SPMV_BACKEND_AUTO: any */
    const char *method, *exchange;
    bool optional;
};

static const struct way ways[] = {{SPMV_BACKEND_AUTO, "textbook", NULL, false},
                                  {SPMV_BACKEND_OMP, "fused", NULL, false},
                                  {SPMV_BACKEND_CUDA, "graph", NULL, true}, /* auto may be host */
                                  {SPMV_BACKEND_CUDA, "textbook", "host", false},
                                  {SPMV_BACKEND_CUDA, "graph", "nccl", true}};
enum { WAYS = sizeof ways / sizeof *ways };

/* Whether the way is for this backend. On emulated GPUs, only the exchange nccl does not need that
 * kernels run at the same time; then each rank has a GPU. It needs the stand-in for NCCL: ctest names
 * its folder. */
static bool is_way(int w)
{
#ifdef HOST_CUDA
    const char *libraries = getenv("LD_LIBRARY_PATH");
    const bool nccl = ways[w].exchange != NULL && strcmp(ways[w].exchange, "nccl") == 0;
    if (nccl && (libraries == NULL || strstr(libraries, "/host_nccl") == NULL)) {
        print_message("no exchange nccl: LD_LIBRARY_PATH does not have the folder host_nccl of the build\n");
        return false;
    }
    host_cuda.devices = nccl ? 8 : 2;
    host_cuda.concurrent = nccl;
#endif
    return ways[w].backend == SPMV_BACKEND_AUTO || ways[w].backend == support_backend;
}

/* Whether the way is not possible here. Emulated GPUs can do all. */
static bool is_skipped(int w, spmv_status st)
{
#ifdef HOST_CUDA
    (void)w;
    (void)st;
    return false;
#else
    return ways[w].optional && st == SPMV_ERROR_UNSUPPORTED;
#endif
}

static spmv_matrix *matrix_of(const struct matrix_case *c, spmv_csr *a)
{
    spmv_context *ctx = NULL;
    spmv_matrix *matrix = NULL;
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = SPMV_BACKEND_REF;
    assert_int_equal(spmv_context_create(&options, &ctx), SPMV_OK);
    assert_int_equal(spmv_matrix_generate(ctx, c->spec, c->type, &matrix), SPMV_OK);
    spmv_matrix_view(matrix, a);
    spmv_context_destroy(ctx);
    return matrix;
}

static void same_bits(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        spmv_csr a;
        spmv_matrix *matrix = matrix_of(&cases[c], &a);
        struct outcome first = {0}; /* of the first way */
        for (int w = 0; w < WAYS; w++) {
            struct outcome one, several;
            struct run run = {
                .matrix = &cases[c], .a = &a, .method = ways[w].method, .exchange = ways[w].exchange, .outcome = &one};
            if (!is_way(w))
                continue;
#ifdef HOST_CUDA /* auto is host there, so the third matrix alone names it; the first is large */
            if (ways[w].exchange != NULL && (strcmp(ways[w].exchange, "host") == 0 ? c != 2 : c == 0))
                continue;
#endif
            open_outcome(&one, &a);
            const spmv_status st = run_threads(1, 1, &run);
            if (is_skipped(w, st)) {
                close_outcome(&one);
                continue;
            }
            assert_int_equal(st, SPMV_OK);
            check(&run, &one);
            for (int k = 0; k < COUNTS; k++) {
                const int ranks = rank_counts[k];
#ifdef HOST_CUDA /* all numbers of ranks with the usual way, which is auto, of one matrix */
                if (ranks != 3 && !(c == 1 && ways[w].exchange == NULL && strcmp(ways[w].method, "graph") == 0))
                    continue;
#endif
                run.outcome = &several;
                run.giving = (enum giving)((c + k) % GIVINGS);
                run.wide = (c + k + w) % 2 == 1;
                open_outcome(&several, &a);
                const spmv_status ran = run_threads(ranks, k % 2 == 0 ? ranks : 2 * ranks, &run);
                if (!is_skipped(w, ran)) {
                    assert_int_equal(ran, SPMV_OK);
                    compare(&one, &several, size_of(&run));
                }
                if (ran == SPMV_OK && one.chunks < ranks)
                    assert_non_null(strstr(several.note, "no rows"));
                close_outcome(&several);
            }
            if (first.y == NULL)
                first = one;
            else {
                assert_memory_equal(first.y, one.y, (size_t)a.rows * size_of(&run));
                for (int i = 0; i < CHEBYSHEV; i++) { /* the same recurrence, rounded differently */
                    const int64_t here = one.result[i].iterations, there = first.result[i].iterations;
                    if (llabs(there - here) > 2 + there / 50)
                        fail_msg("matrix %d, solve %d, way %d: %lld iterations, %lld with the first way", c, i, w,
                                 (long long)here, (long long)there);
                }
                close_outcome(&one);
            }
        }
        close_outcome(&first);
        spmv_matrix_destroy(matrix);
    }
    (void)is_way(0); /* of the emulated GPUs */
}

/* Methods of GPUs that pack rows: the cut into tiles, groups and slices is that of the whole matrix. The last matrix
 * has rows of several tiles. */
static void packed_methods_have_same_bits(void **state)
{
    (void)state;
    static const char *const methods[] = {"tiles", "padded", "groups", "vector"};
    static const struct matrix_case matrices[] = {{"powerlaw:1100,9,2.1,200", SPMV_F64, SPMV_F64, false},
                                                  {"stencil27:9", SPMV_F32, SPMV_F64, true},
                                                  {"banded:3000,2", SPMV_F32, SPMV_F32, false},
                                                  {"longrows:9,7000,3000", SPMV_F64, SPMV_F64, false}};
    for (size_t c = 0; c < sizeof matrices / sizeof *matrices && support_backend == SPMV_BACKEND_CUDA; c++) {
        spmv_csr a;
        spmv_matrix *matrix = matrix_of(&matrices[c], &a);
        for (size_t k = 0; k < sizeof methods / sizeof *methods; k++) {
#ifdef HOST_CUDA /* half of them, with both numbers of ranks as well */
            if ((c + k) % 4 > 1)
                continue;
#endif
            struct outcome one, several;
            struct run run = {.matrix = &matrices[c], .a = &a, .product = methods[k], .outcome = &one};
            open_outcome(&one, &a);
            assert_int_equal(run_threads(1, 1, &run), SPMV_OK);
            check(&run, &one);
            const int ranks = (c + k) % 2 == 0 ? 2 : 5; /* each method and each matrix with both */
            run.outcome = &several;
            run.giving = ranks == 2 ? GIVE_EQUAL : GIVE_FIRST;
            open_outcome(&several, &a);
            assert_int_equal(run_threads(ranks, 1, &run), SPMV_OK);
            compare(&one, &several, size_of(&run));
            close_outcome(&several);
            close_outcome(&one);
        }
        spmv_matrix_destroy(matrix);
    }
}

static void pattern_has_ones(void **state)
{
    (void)state;
    spmv_csr a;
    const struct matrix_case c = {"rmat:9,6", SPMV_F64, SPMV_F64, false};
    spmv_matrix *matrix = matrix_of(&c, &a);
    struct outcome one, three;
    struct run run = {.matrix = &c, .a = &a, .outcome = &one, .giving = GIVE_EQUAL};
    a.val = NULL;
    open_outcome(&one, &a);
    open_outcome(&three, &a);
    assert_int_equal(run_threads(1, 1, &run), SPMV_OK);
    check(&run, &one);
    run.outcome = &three;
    assert_int_equal(run_threads(3, 3, &run), SPMV_OK);
    compare(&one, &three, 8);
    close_outcome(&one);
    close_outcome(&three);
    spmv_matrix_destroy(matrix);
}

#ifdef HOST_CUDA
struct launching {
    const spmv_csr *a;
    int64_t steps, launches; /* of a solve with so many steps */
};

static spmv_status count_launches(spmv_group *group, void *user)
{
    struct launching *l = user;
    spmv_context *ctx = spmv_group_context(group);
    spmv_group_matrix *m = NULL;
    spmv_preconditioner *precond = NULL;
    void *b = NULL, *x = NULL;
    spmv_cg_options cg;
    spmv_cg_options_init(&cg, sizeof cg);
    cg.zero_start = 1;
    cg.rtol = 1e-100;
    cg.max_iterations = l->steps;
    spmv_status st = spmv_group_matrix_create(group, l->a, NULL, &m);
    if (st == SPMV_OK)
        st = spmv_group_preconditioner_create(m, "jacobi", &precond);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, l->a->rows * 8, &b);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, l->a->rows * 8, &x);
    if (st == SPMV_OK)
        st = spmv_map_index(ctx, SPMV_F64, &(const double){1}, &(const double){1e-3}, b, l->a->rows);
    cg.precond = precond;
    const int64_t before = host_cuda.launches;
    if (st == SPMV_OK)
        st = spmv_group_cg(m, b, x, &cg, NULL, 0);
    l->launches = host_cuda.launches - before;
    spmv_preconditioner_destroy(precond);
    spmv_free(ctx, b);
    spmv_free(ctx, x);
    spmv_group_matrix_destroy(m);
    return st;
}

/* A step with jacobi has three kernels on one rank: the product, the sums of its chunks, and one for all
 * vectors. */
static void step_has_one_vector_kernel(void **state)
{
    (void)state;
    spmv_csr a;
    const struct matrix_case c = {"poisson2d:20", SPMV_F64, SPMV_F64, true};
    spmv_matrix *matrix = matrix_of(&c, &a);
    struct launching few = {&a, 10, 0}, more = {&a, 42, 0}; /* whole blocks of steps are queued */
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = support_backend;
    assert_int_equal(spmv_group_run(1, &options, count_launches, &few, NULL, 0), SPMV_ERROR_ITERATIONS);
    assert_int_equal(spmv_group_run(1, &options, count_launches, &more, NULL, 0), SPMV_ERROR_ITERATIONS);
    assert_int_equal(more.launches - few.launches, 3 * (more.steps - few.steps));
    spmv_matrix_destroy(matrix);
}
#endif

/* The plan says that a row above a rank's share makes the ranks unequal. */
static void long_row_is_reported(void **state)
{
    (void)state;
    spmv_csr a;
    char spec[32];
    const struct matrix_case c = {spec, SPMV_F64, SPMV_F64, false};
    snprintf(spec, sizeof spec, "arrow:%d", LONGEST_ROW);
    spmv_matrix *matrix = matrix_of(&c, &a);
    struct outcome o;
    struct run run = {.matrix = &c, .a = &a, .outcome = &o};
    open_outcome(&o, &a);
    assert_int_equal(run_threads(8, 8, &run), SPMV_OK);
    assert_non_null(strstr(o.note, "a long row"));
    assert_true(o.imbalance > 2);
    close_outcome(&o);
    spmv_matrix_destroy(matrix);
}

/* What a rank needs to give the method of its product. */
struct chosen {
    const spmv_csr *a;
    int compression;
    char method[4][32]; /* of each rank */
};

static spmv_status choose_rank(spmv_group *group, void *user)
{
    struct chosen *const chosen = user;
    const int rank = spmv_group_rank(group), ranks = spmv_group_ranks(group);
    const int64_t begin = chosen->a->rows * rank / ranks, end = chosen->a->rows * (rank + 1) / ranks;
    int64_t *offsets = malloc((size_t)(end - begin + 1) * sizeof *offsets);
    const spmv_csr own = support_rows_of(chosen->a, begin, end, offsets);
    spmv_group_matrix_options options;
    spmv_group_matrix_info info = {0};
    spmv_group_matrix *m = NULL;
    spmv_group_matrix_options_init(&options, sizeof options);
    options.compression = chosen->compression;
    spmv_status st = spmv_group_matrix_create(group, &own, &options, &m);
    if (st == SPMV_OK)
        st = spmv_group_matrix_describe(m, &info, sizeof info);
    snprintf(chosen->method[rank], sizeof chosen->method[rank], "%s", info.method != NULL ? info.method : "");
    spmv_group_matrix_destroy(m);
    free(offsets);
    return st;
}

/* All ranks take one method, whatever their number. On cuda it follows from the table of methods. */
static void ranks_take_one_method(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *method; /* on cuda */
        int compression;
    } rows[] = {{"poisson2d:30", "slices", SPMV_COMPRESSION_AUTO},
                {"poisson2d:30", "tiles", SPMV_COMPRESSION_NONE},
                {"rmat:9,6", "tiles", SPMV_COMPRESSION_AUTO},
                {"dense:40,40", "tiles", SPMV_COMPRESSION_AUTO}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        spmv_csr a;
        const struct matrix_case c = {rows[i].spec, SPMV_F64, SPMV_F64, false};
        spmv_matrix *matrix = matrix_of(&c, &a);
        for (int ranks = 1; ranks <= 3; ranks += 2) {
            char message[300];
            struct chosen chosen = {.a = &a, .compression = rows[i].compression};
            spmv_context_options options;
            spmv_context_options_init(&options, sizeof options);
            options.backend = support_backend;
            options.threads = ranks;
            if (spmv_group_run(ranks, &options, choose_rank, &chosen, message, sizeof message) != SPMV_OK)
                fail_msg("%s: %s", rows[i].spec, message);
            for (int r = 0; r < ranks; r++)
                assert_string_equal(chosen.method[r], support_backend == SPMV_BACKEND_CUDA  ? rows[i].method
                                                      : support_backend == SPMV_BACKEND_OMP ? "tiles"
                                                                                            : "definition");
        }
        spmv_matrix_destroy(matrix);
    }
}

/* ------------------------------------------------------------- calls of the transport */

/* What a rank asks of its transport. */
struct tape {
    struct transport real;
    int calls;
    uint64_t call[2048];           /* which function, and the sizes that must be the same on all ranks */
    int gathers, exchanges, sends; /* calls of gather and start; the parcels that these sent */
    bool ended;                    /* a call has failed, or this rank has broken the group */
    int late;                      /* calls after that */
};

static _Thread_local struct tape *tape;

/* Notes a call and its result. */
static spmv_status note(char name, const int64_t *numbers, int count, spmv_status st)
{
    const uint64_t call = group_mix(group_mix(0, &name, 1), numbers, (size_t)count * sizeof *numbers);
    tape->late += tape->ended;
    tape->ended = tape->ended || st != SPMV_OK;
    if (tape->calls < (int)(sizeof tape->call / sizeof *tape->call))
        tape->call[tape->calls++] = call;
    return st;
}

static spmv_status note_gather(struct transport *t, const void *own, void *all, const int64_t *offset)
{
    tape->gathers++;
    return note('g', offset, t->ranks + 1, tape->real.gather(t, own, all, offset));
}

static spmv_status note_start(struct transport *t, const struct transport_parcel *send, int sends,
                              const struct transport_parcel *receive, int receives)
{
    tape->exchanges++;
    tape->sends += sends;
    return note('s', NULL, 0, tape->real.start(t, send, sends, receive, receives));
}

static spmv_status note_finish(struct transport *t)
{
    return note('f', NULL, 0, tape->real.finish(t));
}

static void note_fail(struct transport *t, spmv_status status, const char *why)
{
    tape->ended = true;
    (tape->real.fail)(t, status, why);
}

/* Notes the calls of this rank's thread from now on. */
static void begin_tape(spmv_group *group, struct tape *of_rank)
{
    struct transport *t = &group->transport;
    *of_rank = (struct tape){.real = *t};
    tape = of_rank;
    t->gather = note_gather;
    t->start = note_start;
    t->finish = note_finish;
    t->fail = note_fail;
}

/* All ranks make the same calls in the same order, as far as they come, and none after a failure: else
 * a rank could take bytes of another call for those that it waits for. */
static void check_tapes(const struct tape *of_rank, int ranks)
{
    for (int r = 0; r < ranks; r++) {
        assert_int_equal(of_rank[r].late, 0);
        for (int i = 0; i < of_rank[r].calls && i < of_rank[0].calls; i++)
            if (of_rank[r].call[i] != of_rank[0].call[i])
                fail_msg("call %d of the transport differs on the ranks 0 and %d", i, r);
    }
}

/* ------------------------------------------------------------- the tree of sums */

/* Parts of so many chunks on ranks. */
enum { MOST_RANKS = 8, MOST_PARTS = 1056, SUMS = 3, CUTS = 4 };
struct tree_case {
    bool common; /* ranks have common memory */
    int64_t chunks;
    int64_t cut[MOST_RANKS + 1]; /* the first chunk of each rank */
    const double *part;          /* SUMS * chunks */
    double sum[SUMS];            /* what they must be */
    float sum_f32[SUMS];
    struct tape tape[MOST_RANKS];
};

/* The tree: neighbours are added in pairs, then the pairs, and so on. */
#define ADD_IN_PAIRS(type, name)                                                                                       \
    static type name(const double *part, int64_t n)                                                                    \
    {                                                                                                                  \
        type s[MOST_PARTS];                                                                                            \
        for (int64_t i = 0; i < n; i++)                                                                                \
            s[i] = (type)part[i];                                                                                      \
        for (; n > 1; n = (n + 1) / 2)                                                                                 \
            for (int64_t i = 0; i < (n + 1) / 2; i++)                                                                  \
                s[i] = 2 * i + 1 < n ? s[2 * i] + s[2 * i + 1] : s[2 * i];                                             \
        return n > 0 ? s[0] : 0;                                                                                       \
    }
ADD_IN_PAIRS(double, add_in_pairs)
ADD_IN_PAIRS(float, add_in_pairs_f32)

static spmv_status sum_parts(spmv_group *group, void *user)
{
    spmv_status st = SPMV_OK;
    struct tree_case *const c = user;
    const int rank = spmv_group_rank(group), ranks = spmv_group_ranks(group);
    const int64_t first = c->cut[rank], own = c->cut[rank + 1] - first;
    double sum[SUMS];
    float sum_f32[SUMS], part_f32[SUMS * MOST_PARTS];
    int hops = 0;
    spmv_group_matrix m = {.group = group, .ctx = spmv_group_context(group)};
    m.first = &m; /* no arrays on a GPU */
    m.all_chunks = c->chunks;
    m.chunk_of_rank = c->cut;
    m.ranks.chunks = own;
    for (int known = 1; known < ranks; known *= 2)
        hops++;
    for (int v = 0; v < SUMS; v++)
        for (int64_t i = 0; i < own; i++)
            part_f32[v * own + i] = (float)c->part[v * c->chunks + first + i];
    TRY(group_sums_prepare(&m));
    memset(m.tree.nodes, 0xff, (size_t)(SUMS * m.tree.first[m.tree.levels] * 8)); /* NaN in what nobody computes */
    begin_tape(group, &c->tape[rank]);
    group->transport.common = c->common;
    TRY(group_sum(&m, SPMV_F64, c->part + first, c->chunks, SUMS, sum));
    TRY(group_sum(&m, SPMV_F32, part_f32, own, SUMS, sum_f32));
    const struct tape *const asked = &c->tape[rank];
    if (asked->gathers != (c->common && ranks > 1 ? 2 : 0) || asked->exchanges != (c->common ? 0 : 2 * hops) ||
        asked->sends > 2 * hops)
        st = context_fail(m.ctx, SPMV_ERROR_CHECK, "%d gathers, %d hops, %d messages", asked->gathers, asked->exchanges,
                          asked->sends);
    if (memcmp(sum, c->sum, sizeof sum) != 0 || memcmp(sum_f32, c->sum_f32, sizeof sum_f32) != 0)
        st = context_fail(m.ctx, SPMV_ERROR_CHECK, "the bits differ");
done:
    group->transport = c->tape[rank].real;
    group_sums_release(&m);
    host_free(m.met);
    return st;
}

/* The bits are those of the tree for any number of chunks, and any cut; hops and messages of a rank are the logarithm
 * of the number of ranks, and one step with common memory. */
static void sums_take_few_hops(void **state)
{
    (void)state;
    if (support_backend == SPMV_BACKEND_CUDA)
        skip(); /* nothing of a GPU, whose contexts take time */
    static const int64_t counts[] = {0, 1, 2, 3, 6, 7, 8, 127, 128, 129, 1000, MOST_PARTS};
    static const int ranks_of[] = {1, 2, 3, 4, 7, 8};
    double part[SUMS * MOST_PARTS];
    for (int64_t i = 0; i < SUMS * MOST_PARTS; i++)
        part[i] = ldexp(1 + (double)(splitmix_mix((uint64_t)i) >> 11) / (1LL << 53), (int)(i * 7 % 40) - 20) *
                  (i % 3 == 1 ? -1 : 1);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        for (int i = 0; i < 2 * CUTS * (int)(sizeof ranks_of / sizeof *ranks_of); i++) {
            char message[200];
            const int ranks = ranks_of[i / CUTS / 2];
            struct tree_case c = {.common = i / CUTS % 2 == 0, .chunks = counts[k], .part = part};
            spmv_context_options options;
            spmv_context_options_init(&options, sizeof options);
            options.backend = support_backend;
            options.threads = 1;
            for (int r = 0; r <= ranks; r++) { /* equal shares; most at the front; some have none; one has all */
                const int64_t behind = counts[k] * (ranks - r) * (ranks - r) / ranks / ranks;
                const int even = r < ranks ? r / 2 * 2 : ranks;
                const int64_t cuts[CUTS] = {counts[k] * r / ranks, counts[k] - behind, counts[k] * even / ranks,
                                            r > ranks / 2 ? counts[k] : 0};
                c.cut[r] = cuts[i % CUTS];
            }
            for (int v = 0; v < SUMS; v++) {
                c.sum[v] = add_in_pairs(part + v * counts[k], counts[k]);
                c.sum_f32[v] = add_in_pairs_f32(part + v * counts[k], counts[k]);
            }
            if (spmv_group_run(ranks, &options, sum_parts, &c, message, sizeof message) != SPMV_OK)
                fail_msg("%lld chunks, %d ranks, cut %d: %s", (long long)counts[k], ranks, i % CUTS, message);
        }
}

/* ------------------------------------------------------------- memory that other ranks copy from */

#ifdef HOST_CUDA
enum { NEAR_BYTES = 3000 };
static atomic_bool has_left; /* rank 0 has destroyed its matrix and its copy */
static struct transport waiting;

/* The meeting of a swap, behind which rank 1 waits until rank 0 has gone on. */
static spmv_status gather_late(struct transport *t, const void *own, void *all, const int64_t *offset)
{
    const spmv_status st = waiting.gather(t, own, all, offset);
    while (st == SPMV_OK && !atomic_load(&has_left))
        sched_yield();
    return st;
}

/* The ranks give each other bytes, and rank 0 destroys all that it has before rank 1 copies. */
static spmv_status give_and_leave(spmv_group *group, void *user)
{
    spmv_status st = SPMV_OK;
    const int rank = spmv_group_rank(group);
    const int64_t offset[] = {0, 0};
    spmv_context *const ctx = spmv_group_context(group);
    spmv_group_matrix *m = NULL;
    spmv_csr own = *(const spmv_csr *)user;
    const int32_t none[] = {0};
    char given[NEAR_BYTES], got[NEAR_BYTES];
    void *packed = NULL, *to = NULL;
    bool moved = false;
    if (rank > 0) {
        own.rows = own.nnz = 0;
        own.row_ptr = none;
        own.row_ptr_bits = 32;
    }
    TRY(spmv_group_matrix_create(group, &own, NULL, &m));
    TRY(spmv_alloc(ctx, NEAR_BYTES, &to));
    for (int turn = 0; turn < 3; turn++) { /* at last with memory that was lent before */
        const struct near_parcel parcel = {1 - rank, to, NEAR_BYTES};
        memset(given, 'a' + 2 * turn + rank, sizeof given);
        TRY(near_is_possible(group) ? near_lend(group, NEAR_BYTES, &packed) : SPMV_ERROR_CHECK);
        TRY(spmv_upload(ctx, given, packed, NEAR_BYTES));
        if (turn == 2 && rank == 1) {
            waiting = group->transport;
            group->transport.gather = gather_late;
        }
        TRY(near_swap(group, offset, &parcel, 1, &moved));
        if (turn == 2 && rank == 0) {
            spmv_group_matrix_destroy(m);
            m = NULL;
            for (int i = 0; i < 4; i++) { /* memory that was freed would be given away again */
                void *other = NULL;
                TRY(spmv_alloc(ctx, 1 << 20, &other));
                spmv_free(ctx, other);
            }
            atomic_store(&has_left, true);
        }
        TRY(spmv_download(ctx, to, got, NEAR_BYTES));
        memset(given, 'a' + 2 * turn + 1 - rank, sizeof given);
        if (!moved || memcmp(given, got, sizeof given) != 0)
            TRY(context_fail(ctx, SPMV_ERROR_CHECK, "turn %d of rank %d: other bytes", turn, rank));
    }
done:
    atomic_store(&has_left, true);
    if (rank == 1 && waiting.gather != NULL)
        group->transport.gather = waiting.gather;
    spmv_free(ctx, to);
    spmv_group_matrix_destroy(m);
    return st;
}

/* What a rank gives lives until the last rank has left the group, and no longer. */
static void given_memory_outlives_matrices(void **state)
{
    (void)state;
    char message[300];
    spmv_csr a;
    spmv_matrix *matrix = matrix_of(&(const struct matrix_case){"poisson2d:8", SPMV_F64, SPMV_F64, true}, &a);
    const int64_t allocations = host_cuda.allocations, others = host_cuda.others;
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = support_backend;
    atomic_store(&has_left, false);
    if (spmv_group_run(2, &options, give_and_leave, &a, message, sizeof message) != SPMV_OK)
        fail_msg("%s", message);
    assert_int_equal(host_cuda.allocations, allocations);
    assert_int_equal(host_cuda.others, others);
    spmv_matrix_destroy(matrix);
}
#endif

/* ------------------------------------------------------------- failures */

enum fault {
    FAULT_NONE,
    FAULT_COLUMN,    /* a column out of range on the last rank */
    FAULT_OFFSETS,   /* row offsets that descend on the last rank */
    FAULT_TYPE,      /* other options on the last rank */
    FAULT_COLUMNS,   /* another number of columns on the last rank */
    FAULT_RETURNS,   /* the last rank returns before the product */
    FAULT_NULL,      /* y is NULL on the last rank */
    FAULT_TOLERANCE, /* another tolerance on the last rank */
    FAULT_CANCEL,    /* the callback of rank 0 stops the solve */
    FAULT_CONTEXT,   /* the context of the last rank cancels the solve */
    FAULT_LIMIT,     /* too few iterations */
    FAULT_INDEFINITE,
    FAULT_UNSYMMETRIC,
    FAULT_DIAGONAL, /* a diagonal entry is negative */
    FAULTS
};

static const struct {
    spmv_status status;
    const char *text; /* in the message of a rank without the fault; NULL: of any rank */
} expected[FAULTS] = {[FAULT_NONE] = {SPMV_OK, ""},
                      [FAULT_COLUMN] = {SPMV_ERROR_SIZE, "rank 2: "},
                      [FAULT_OFFSETS] = {SPMV_ERROR_SIZE, "rank 2: "},
                      [FAULT_TYPE] = {SPMV_ERROR_ARGUMENT, "other options"},
                      [FAULT_COLUMNS] = {SPMV_ERROR_SIZE, "columns"},
                      [FAULT_RETURNS] = {SPMV_ERROR_READ, "rank 2: the file is gone"},
                      [FAULT_NULL] = {SPMV_ERROR_ARGUMENT, "rank 2: spmv_group_apply: y is NULL"},
                      [FAULT_TOLERANCE] = {SPMV_ERROR_ARGUMENT, "rank 2 has other options than rank 0"},
                      [FAULT_CANCEL] = {SPMV_CANCELLED, "cancelled"},
                      [FAULT_CONTEXT] = {SPMV_CANCELLED, "cancelled"},
                      [FAULT_LIMIT] = {SPMV_ERROR_ITERATIONS, "after 3 iterations"},
                      [FAULT_INDEFINITE] = {SPMV_ERROR_NOT_POSITIVE, "not positive definite"},
                      [FAULT_UNSYMMETRIC] = {SPMV_ERROR_NOT_SYMMETRIC, "not symmetric"},
                      [FAULT_DIAGONAL] = {SPMV_ERROR_NOT_POSITIVE, "the diagonal entry of row "}};

struct failing {
    const spmv_csr *a;
    enum fault fault;
    spmv_status status[3];
    char message[3][512];
    struct tape tape[3];
};

static int cancel(void *user)
{
    (void)user;
    return 1;
}

static int stop_at_two(int64_t iteration, double residual, void *user)
{
    (void)residual;
    (void)user;
    return iteration == 2;
}

static spmv_status fail_one_rank(spmv_group *group, void *user)
{
    struct failing *f = user;
    spmv_context *ctx = spmv_group_context(group);
    const int rank = spmv_group_rank(group);
    const bool faulty = rank == 2;
    const int64_t n = f->a->rows, begin = n * rank / 3, end = n * (rank + 1) / 3;
    int64_t *offsets = malloc((size_t)(end - begin + 1) * sizeof *offsets);
    spmv_csr own = support_rows_of(f->a, begin, end, offsets);
    int32_t *col = malloc((size_t)own.nnz * sizeof *col);
    spmv_group_matrix_options options;
    spmv_group_matrix_info info = {0};
    spmv_group_matrix *m = NULL;
    spmv_preconditioner *precond = NULL;
    void *x = NULL, *y = NULL;
    begin_tape(group, &f->tape[rank]);
    memcpy(col, own.col, (size_t)own.nnz * sizeof *col);
    own.col = col;
    spmv_group_matrix_options_init(&options, sizeof options);
    if (faulty && f->fault == FAULT_COLUMN)
        col[5] = (int32_t)own.cols;
    if (faulty && f->fault == FAULT_OFFSETS)
        offsets[3] = offsets[5];
    if (faulty && f->fault == FAULT_TYPE)
        options.method = "tiles";
    if (faulty && f->fault == FAULT_COLUMNS)
        own.cols++;
    spmv_status st = spmv_group_matrix_create(group, &own, &options, &m);
    if (st == SPMV_OK)
        st = spmv_group_matrix_describe(m, &info, sizeof info);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (info.own_rows + 1) * 8, &x);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (info.own_rows + 1) * 8, &y);
    if (st == SPMV_OK) {
        double *ones = malloc((size_t)n * sizeof *ones);
        for (int64_t i = 0; i < n; i++)
            ones[i] = 1;
        st = spmv_upload(ctx, ones, x, info.own_rows * 8);
        free(ones);
    }
    if (st == SPMV_OK && faulty && f->fault == FAULT_RETURNS)
        st = spmv_context_report(ctx, SPMV_ERROR_READ, "the file is gone");
    else if (st == SPMV_OK)
        st = spmv_group_apply(m, NULL, x, NULL, faulty && f->fault == FAULT_NULL ? NULL : y);
    spmv_cg_options cg;
    spmv_cg_options_init(&cg, sizeof cg);
    cg.zero_start = 1;
    if (faulty && f->fault == FAULT_TOLERANCE)
        cg.rtol = 0.5;
    if (f->fault == FAULT_CANCEL && rank == 0)
        cg.on_iteration = stop_at_two;
    if (f->fault == FAULT_LIMIT)
        cg.max_iterations = 3;
    if (faulty && f->fault == FAULT_CONTEXT)
        spmv_context_set_cancel(ctx, cancel, NULL);
    if (st == SPMV_OK && f->fault == FAULT_DIAGONAL)
        st = spmv_group_preconditioner_create(m, "jacobi", &precond);
    if (st == SPMV_OK)
        st = spmv_group_cg(m, y, x, &cg, NULL, 0);
    f->status[rank] = st;
    snprintf(f->message[rank], sizeof f->message[rank], "%s", st == SPMV_OK ? "" : spmv_last_error(ctx));
    spmv_free(ctx, x);
    spmv_free(ctx, y);
    spmv_preconditioner_destroy(precond);
    spmv_group_matrix_destroy(m);
    free(col);
    free(offsets);
    return st;
}

static void failures_reach_all_ranks(void **state)
{
    (void)state;
    for (enum fault fault = FAULT_NONE; fault < FAULTS; fault++) {
        struct failing f = {.fault = fault};
        spmv_csr a;
        char spec[32], row[32];
        const struct matrix_case c = {spec, SPMV_F64, SPMV_F64, true};
        snprintf(spec, sizeof spec, fault == FAULT_UNSYMMETRIC ? "convdiff2d:%d,2" : "poisson2d:%d", SIDE);
        snprintf(row, sizeof row, "row %d (counted from 0) is", NEGATIVE);
        spmv_matrix *matrix = matrix_of(&c, &a);
        double *values = malloc((size_t)a.nnz * sizeof *values);
        memcpy(values, a.val, (size_t)a.nnz * sizeof *values);
        a.val = values;
        const int64_t *row_ptr = a.row_ptr;
        for (int64_t k = row_ptr[NEGATIVE]; k < row_ptr[NEGATIVE + 1]; k++)
            if (a.col[k] == NEGATIVE && (fault == FAULT_INDEFINITE || fault == FAULT_DIAGONAL))
                values[k] = -4;
        char message[512];
        spmv_context_options options;
        spmv_context_options_init(&options, sizeof options);
        options.backend = support_backend;
        options.threads = 3;
        f.a = &a;
        const spmv_status st = spmv_group_run(3, &options, fail_one_rank, &f, message, sizeof message);
        assert_int_equal(st, expected[fault].status);
        check_tapes(f.tape, 3);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(f.status[r], expected[fault].status);
            if (r < 2 && strstr(f.message[r], expected[fault].text) == NULL)
                fail_msg("fault %d, rank %d: \"%s\" without \"%s\"", (int)fault, r, f.message[r], expected[fault].text);
            if (fault == FAULT_DIAGONAL && strstr(f.message[r], row) == NULL)
                fail_msg("the row of the whole matrix, %s, is not in \"%s\"", row, f.message[r]);
        }
        free(values);
        spmv_matrix_destroy(matrix);
    }
}

/* ------------------------------------------------------------- memory */

struct starving {
    struct failing f;
    int rank, fails_at;
    bool failed; /* the allocation was reached */
};

static spmv_status starve_one_rank(spmv_group *group, void *user)
{
    struct starving *s = user;
    const bool starves = spmv_group_rank(group) == s->rank;
    if (starves)
        fails_at = s->fails_at;
    const spmv_status st = fail_one_rank(group, &s->f);
    if (starves)
        s->failed = fails_at == 0;
    fails_at = 0;
    return st;
}

/* Each allocation of a rank fails in turn: no rank waits for ever, and all return its status. */
static void memory_of_one_rank_ends_all(void **state)
{
    (void)state;
    spmv_csr a;
    char spec[32];
    const struct matrix_case c = {spec, SPMV_F64, SPMV_F64, true};
    snprintf(spec, sizeof spec, "poisson2d:%d", SIDE);
    spmv_matrix *matrix = matrix_of(&c, &a);
    for (int rank = 0; rank < 3; rank += 2) {
        int at = 1;
        for (struct starving s = {.failed = true}; s.failed; at++) {
            spmv_context_options options;
            spmv_context_options_init(&options, sizeof options);
            options.backend = support_backend;
            options.threads = 3;
            s = (struct starving){.f = {.a = &a}, .rank = rank, .fails_at = at};
            const spmv_status st = spmv_group_run(3, &options, starve_one_rank, &s, NULL, 0);
            assert_int_equal(st, s.failed ? SPMV_ERROR_MEMORY : SPMV_OK);
            for (int r = 0; r < 3; r++)
                assert_int_equal(s.f.status[r], st);
            check_tapes(s.f.tape, 3);
        }
        assert_true(at > 20);
    }
    spmv_matrix_destroy(matrix);
}

#ifdef HOST_CUDA
/* A rank that cannot join the communicator of NCCL ends all, though others wait for it there. */
static void failure_of_nccl_ends_all(void **state)
{
    (void)state;
    spmv_csr a;
    const struct matrix_case c = {"poisson2d:30", SPMV_F64, SPMV_F64, true};
    if (!is_way(WAYS - 1))
        skip();
    spmv_matrix *matrix = matrix_of(&c, &a);
    for (int rank = 0; rank < 3; rank++) {
        char message[512] = "", number[12];
        struct outcome outcome;
        struct run run = {.matrix = &c, .a = &a, .method = "graph", .exchange = "nccl", .outcome = &outcome};
        spmv_context_options context;
        spmv_group_run_options options;
        spmv_context_options_init(&context, sizeof context);
        spmv_group_run_options_init(&options, sizeof options);
        context.backend = support_backend;
        options.context = &context;
        options.gpus = 3;
        snprintf(number, sizeof number, "%d", rank);
        open_outcome(&outcome, &a);
        assert_int_equal(setenv("HOST_NCCL_FAILS", number, 1), 0);
        assert_int_equal(spmv_group_run_with(3, &options, one_rank, &run, message, sizeof message), SPMV_ERROR_DEVICE);
        assert_int_equal(unsetenv("HOST_NCCL_FAILS"), 0);
        assert_non_null(strstr(message, "ncclCommInitRank: an error"));
        close_outcome(&outcome);
    }
    spmv_matrix_destroy(matrix);
}
#endif

/* ------------------------------------------------------------- block preconditioners */

static spmv_status block_rank(spmv_group *group, void *user)
{
    const struct run *run = user;
    spmv_context *ctx = spmv_group_context(group);
    const int rank = spmv_group_rank(group), ranks = spmv_group_ranks(group);
    const int64_t begin = first_given(run, rank, ranks), end = first_given(run, rank + 1, ranks);
    int64_t *offsets = malloc((size_t)(end - begin + 1) * sizeof *offsets);
    const spmv_csr own = support_rows_of(run->a, begin, end, offsets);
    spmv_group_matrix *m = NULL;
    spmv_group_matrix_info info = {0};
    spmv_preconditioner *precond = NULL;
    spmv_cg_options options;
    spmv_cg_result result;
    void *b = NULL, *x = NULL, *root = NULL;
    spmv_cg_options_init(&options, sizeof options);
    options.rtol = fmax(options.rtol, RTOL);
    spmv_status st = spmv_group_matrix_create(group, &own, NULL, &m);
    if (st == SPMV_OK)
        st = spmv_group_matrix_describe(m, &info, sizeof info);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (info.own_rows + 1) * 8, &b);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (info.own_rows + 1) * 8, &x);
    if (rank == 0) {
        root = malloc((size_t)run->a->rows * 8);
        for (int64_t i = 0; i < run->a->rows; i++)
            set(SPMV_F64, root, i);
    }
    if (st == SPMV_OK)
        st = spmv_group_scatter(m, SPMV_GROUP_ROWS, root, b);
    if (st == SPMV_OK)
        st = spmv_group_preconditioner_create(m, run->method, &precond);
    options.precond = precond;
    options.zero_start = 1;
    if (st == SPMV_OK)
        st = spmv_group_cg(m, b, x, &options, &result, sizeof result);
    if (rank == 0 && st == SPMV_OK)
        run->outcome->result[0] = result;
    spmv_free(ctx, b);
    spmv_free(ctx, x);
    spmv_preconditioner_destroy(precond);
    spmv_group_matrix_destroy(m);
    free(root);
    free(offsets);
    return st;
}

static void blocks_precondition(void **state)
{
    (void)state;
    spmv_csr a;
    char spec[32];
    const struct matrix_case c = {spec, SPMV_F64, SPMV_F64, true};
    snprintf(spec, sizeof spec, "diffusion2d:%d,100", SIDE + 10);
    spmv_matrix *matrix = matrix_of(&c, &a);
    int64_t jacobi = 0;
    const char *const names[] = {"jacobi", support_backend == SPMV_BACKEND_CUDA ? "block-jacobi" : "ic0", "amg",
                                 "fsai"};
    for (int i = 0; i < BLOCKS; i++) {
        struct outcome o = {0};
        struct run run = {.matrix = &c, .a = &a, .method = names[i], .outcome = &o, .giving = GIVE_EQUAL};
        char message[512];
        spmv_context_options options;
        spmv_context_options_init(&options, sizeof options);
        options.backend = support_backend;
        options.threads = 3;
        assert_int_equal(spmv_group_run(3, &options, block_rank, &run, message, sizeof message), SPMV_OK);
        assert_true(o.result[0].true_residual <= o.result[0].tolerance);
        assert_string_equal(o.result[0].precond, names[i]);
        if (i == 0)
            jacobi = o.result[0].iterations;
        else
            assert_true(o.result[0].iterations < jacobi);
    }
    spmv_matrix_destroy(matrix);
}

/* ------------------------------------------------------------- reading */

struct reader {
    const char *path;
    struct outcome *outcome;
    int starves, starves_at; /* the rank, and its allocation that fails; 0: none */
    bool failed;
    spmv_status status[3];
    struct tape tape[3];
};

static spmv_status read_rank(spmv_group *group, void *user)
{
    struct reader *r = user;
    const int rank = spmv_group_rank(group);
    spmv_group_matrix *m = NULL;
    spmv_group_matrix_info info = {0};
    spmv_read_info facts = {0};
    double *x = NULL, *y = NULL;
    begin_tape(group, &r->tape[rank]);
    if (rank == r->starves)
        fails_at = r->starves_at;
    spmv_status st = spmv_group_matrix_read(group, r->path, NULL, NULL, &m, &facts, sizeof facts);
    if (rank == r->starves)
        r->failed = r->starves_at > 0 && fails_at == 0;
    fails_at = 0;
    r->status[rank] = st;
    if (st == SPMV_OK)
        st = spmv_group_matrix_describe(m, &info, sizeof info);
    if (st == SPMV_OK)
        st = spmv_alloc(spmv_group_context(group), (info.own_cols + 1) * 8, (void **)&x);
    if (st == SPMV_OK)
        st = spmv_alloc(spmv_group_context(group), (info.own_rows + 1) * 8, (void **)&y);
    const double one = 1;
    if (st == SPMV_OK && info.own_cols > 0)
        st = spmv_map_index(spmv_group_context(group), SPMV_F64, &one, NULL, x, info.own_cols);
    if (st == SPMV_OK)
        st = spmv_group_apply(m, NULL, x, NULL, y);
    if (st == SPMV_OK)
        st = spmv_group_gather(m, SPMV_GROUP_ROWS, y, r->outcome->y);
    if (rank == 0 && st == SPMV_OK && facts.entries == 0)
        st = spmv_context_report(spmv_group_context(group), SPMV_ERROR_CHECK, "no facts about the file");
    spmv_free(spmv_group_context(group), x);
    spmv_free(spmv_group_context(group), y);
    spmv_group_matrix_destroy(m);
    return st;
}

/* Each allocation of a rank fails in turn, while the ranks read a file: no rank waits for ever, all
 * return its status. Returns how many readings failed; the others give the y of one rank. */
static int starve_readers(struct reader *r, const spmv_context_options *options, const struct outcome *one,
                          int64_t rows)
{
    int at = 0, out_of_memory = 0;
    do {
        char message[512] = "";
        r->starves_at = at++;
        r->failed = false;
        const spmv_status st = spmv_group_run(3, options, read_rank, r, message, sizeof message);
        /* if a rank has no memory to open the file, rank 0 sends it the text */
        if (st != SPMV_OK && !(r->failed && st == SPMV_ERROR_MEMORY))
            fail_msg("%s, allocation %d: %s", r->path, r->starves_at, message);
        for (int rank = 0; rank < 3; rank++)
            assert_int_equal(r->status[rank], st);
        check_tapes(r->tape, 3);
        if (st == SPMV_OK)
            assert_memory_equal(one->y, r->outcome->y, (size_t)rows * 8);
        out_of_memory += st != SPMV_OK;
    } while (r->failed || at == 1);
    return out_of_memory;
}

/* Text and binary files give the same y for any number of ranks, also without memory for some step. */
static void files_are_read_in_parts(void **state)
{
    (void)state;
    static const char *const names[] = {"a.mtx", "a.spmv"};
    spmv_csr a;
    char folder[] = "/tmp/spmv_group_XXXXXX", path[64];
    const struct matrix_case c = {SMALL, SPMV_F64, SPMV_F64, true};
    spmv_matrix *matrix = matrix_of(&c, &a);
    struct outcome one, three;
    spmv_context *ctx = NULL;
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = SPMV_BACKEND_REF;
    assert_int_equal(spmv_context_create(&options, &ctx), SPMV_OK);
    options.backend = support_backend;
    options.threads = 3;
    assert_non_null(mkdtemp(folder));
    open_outcome(&one, &a);
    open_outcome(&three, &a);
    for (int i = 0; i < 2; i++) {
        char message[512] = "";
        struct reader r = {.path = path, .outcome = &one};
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(spmv_matrix_write(ctx, &a, path), SPMV_OK);
        if (spmv_group_run(1, &options, read_rank, &r, message, sizeof message) != SPMV_OK)
            fail_msg("%s", message);
        r.outcome = &three;
        for (r.starves = 0; r.starves < 3; r.starves += 2)
            assert_true(starve_readers(&r, &options, &one, a.rows) > 20);
        remove(path);
    }
    remove(folder);
    close_outcome(&one);
    close_outcome(&three);
    spmv_context_destroy(ctx);
    spmv_matrix_destroy(matrix);
}

/* After a failure a rank that calls again fails at once and shows the others nothing: here, ranks 0 and
 * 2 have called as often as would complete the first gather of rank 1. */
static void broken_transport_shows_nothing(void **state)
{
    (void)state;
    enum { RANKS = 3, CALLS = 3 };
    static const int64_t offset[] = {0, 4, 8, 12};
    struct transport t[RANKS];
    int32_t all[RANKS];
    assert_int_equal(transport_threads_open(NULL, RANKS, t), SPMV_OK);
    (t[2].fail)(&t[2], SPMV_ERROR_MEMORY, "rank 2: no memory");
    for (int r = 0; r < RANKS; r += 2)
        for (int32_t call = 1; call <= CALLS; call++) {
            assert_int_equal(t[r].gather(&t[r], &call, all, offset), SPMV_ERROR_MEMORY);
            assert_string_equal(t[r].why, "rank 2: no memory");
        }
    assert_int_equal(t[1].gather(&t[1], &(int32_t){1}, all, offset), SPMV_ERROR_MEMORY);
    for (int r = 0; r < RANKS; r++) {
        const struct transport_parcel none = {.rank = r};
        assert_int_equal(t[r].start(&t[r], &none, 0, &none, 0), SPMV_ERROR_MEMORY);
        assert_int_equal(t[r].finish(&t[r]), SPMV_ERROR_MEMORY);
    }
    for (int r = 0; r < RANKS; r++)
        t[r].close(&t[r]);
}

/* What one rank does of two that are in different functions, or have different texts. */
static spmv_status calls_another_function(spmv_group *group, void *user)
{
    const bool first = spmv_group_rank(group) == 0;
    const int which = *(const int *)user;
    spmv_group_matrix *m = NULL;
    if (which == 0)
        return spmv_group_agree_on(group, SPMV_OK, "another command", first ? "mul" : "solve");
    if (which == 1)
        return first ? spmv_group_agree(group, SPMV_OK) : spmv_group_agree_on(group, SPMV_OK, "another command", "");
    return first ? spmv_group_agree(group, SPMV_OK)
                 : spmv_group_matrix_create(group, NULL, NULL, &m); /* begins with an agreement */
}

static void ranks_in_different_functions_end(void **state)
{
    (void)state;
    static const char *const words[] = {"rank 1 has another command than rank 0", "rank 1 is in another function",
                                        "rank"};
    for (int which = 0; which < 3; which++) {
        char message[300];
        spmv_context_options options;
        spmv_context_options_init(&options, sizeof options);
        options.backend = support_backend;
        options.threads = 2;
        const spmv_status st = spmv_group_run(2, &options, calls_another_function, &which, message, sizeof message);
        assert_int_equal(st, SPMV_ERROR_ARGUMENT);
        assert_non_null(strstr(message, words[which]));
        assert_null(strstr(message, "  "));
    }
}

static void arguments_are_checked(void **state)
{
    (void)state;
    char message[200];
    assert_int_equal(spmv_group_run(0, NULL, one_rank, NULL, message, sizeof message), SPMV_ERROR_ARGUMENT);
    assert_non_null(strstr(message, "0 ranks"));
    assert_int_equal(spmv_group_run(SPMV_GROUP_MAX_THREADS + 1, NULL, one_rank, NULL, NULL, 0), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_group_run(1, NULL, NULL, NULL, message, sizeof message), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_group_agree(NULL, SPMV_OK), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_group_ranks(NULL), 0);
    assert_null(spmv_group_context(NULL));
    assert_string_equal(spmv_group_transport(NULL), "");
    assert_int_equal(spmv_group_matrix_describe(NULL, NULL, 0), SPMV_ERROR_ARGUMENT);
    spmv_group_matrix_destroy(NULL);
    spmv_group_destroy(NULL);
}

/* Runs the cases on the ranks that mpirun has started; rank 0 compares with one rank of threads. */
static int run_mpi(void)
{
    spmv_context_options options;
    spmv_context *ctx = NULL;
    spmv_group *group = NULL;
    int failed = 0;
    spmv_context_options_init(&options, sizeof options);
    options.backend = support_backend;
    options.threads = 1;
    if (spmv_context_create(&options, &ctx) != SPMV_OK)
        return 1;
    if (spmv_group_create_mpi(ctx, &group) != SPMV_OK) {
        fprintf(stderr, "%s\n", spmv_last_error(ctx));
        spmv_context_destroy(ctx);
        return SKIPPED;
    }
    for (int c = 0; c < CASES && !failed; c++) {
        spmv_csr a;
        spmv_matrix *matrix = matrix_of(&cases[c], &a);
        for (int w = 0; w < WAYS && !failed; w++) {
            struct outcome one, several;
            struct run run = {.matrix = &cases[c], .a = &a, .method = ways[w].method, .outcome = &several};
            if (!is_way(w) || ways[w].optional || ways[w].exchange != NULL)
                continue;
            run.giving = (enum giving)(c % GIVINGS);
            run.wide = (c + w) % 2 == 1;
            open_outcome(&several, &a);
            open_outcome(&one, &a);
            failed = one_rank(group, &run) != SPMV_OK;
            if (failed)
                fprintf(stderr, "%s: %s\n", cases[c].spec, spmv_last_error(ctx));
            if (!failed && spmv_group_rank(group) == 0) {
                run.outcome = &one;
                run.wide = false;
                failed = run_threads(1, 1, &run) != SPMV_OK ||
                         memcmp(one.y, several.y, (size_t)a.rows * size_of(&run)) != 0 ||
                         memcmp(one.solution[0], several.solution[0], (size_t)a.rows * size_of(&run)) != 0 ||
                         memcmp(one.solution[1], several.solution[1], (size_t)a.rows * size_of(&run)) != 0 ||
                         memcmp(one.solution[2], several.solution[2], (size_t)a.rows * size_of(&run)) != 0 ||
                         memcmp(one.history, several.history, sizeof one.history) != 0 ||
                         one.result[1].iterations != several.result[1].iterations || one.dot != several.dot;
                if (failed)
                    fprintf(stderr, "%s, %s: the bits differ from those of one rank\n", cases[c].spec, run.method);
            }
            failed = spmv_group_agree(group, failed ? SPMV_ERROR_CHECK : SPMV_OK) != SPMV_OK;
            close_outcome(&one);
            close_outcome(&several);
        }
        spmv_matrix_destroy(matrix);
    }
    if (spmv_group_rank(group) == 0 && !failed)
        printf("%d ranks: the bits of one\n", spmv_group_ranks(group));
    spmv_group_destroy(group);
    spmv_context_destroy(ctx);
    return failed;
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    if (argc > 2 && strcmp(argv[2], "mpi") == 0)
        return run_mpi();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(pattern_has_ones),
        cmocka_unit_test(sums_take_few_hops),
#ifdef HOST_CUDA
        cmocka_unit_test(step_has_one_vector_kernel),
        cmocka_unit_test(given_memory_outlives_matrices),
#endif
        cmocka_unit_test(long_row_is_reported),
        cmocka_unit_test(ranks_take_one_method),
        cmocka_unit_test(packed_methods_have_same_bits),
        cmocka_unit_test(failures_reach_all_ranks),
        cmocka_unit_test(ranks_in_different_functions_end),
        cmocka_unit_test(memory_of_one_rank_ends_all),
#ifdef HOST_CUDA
        cmocka_unit_test(failure_of_nccl_ends_all),
#endif
        cmocka_unit_test(blocks_precondition),
        cmocka_unit_test(files_are_read_in_parts),
        cmocka_unit_test(broken_transport_shows_nothing),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
