/* Multigrid over ranks: one hierarchy for the whole matrix, the same for any number of ranks. On
 * ref, where rows are summed alike with and without ranks, an application has the bits of one
 * rank that has all.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/group.h>
#include <spmv/preconditioner.h>
#include <spmv/primitives.h>
#include <stdlib.h>

#include "core/reals.h"
#include "core/runtime.h"
#include "core/splitmix.h"
#ifdef HOST_CUDA
#include "tests/emulated_gpu/cuda_runtime_api.h"
#endif
#include "tests/support/support.h"
#include "tests/support/support_elements.h"
#include "tests/support/support_fails.h"
#include "tests/support/support_ranks.h"

enum { MOST_ITERATIONS = 400 };

static const struct system {
    const char *spec; /* "elements:SIDE": see support_elements */
    spmv_type type;   /* of the matrix and of vectors */
    int64_t coarse;   /* a larger second level has parts on ranks too */
    const char *says; /* of the hierarchy */
    const char *exchange;
    int block;           /* 0: found */
    const char *vectors; /* near the null space */
    bool unsorted;       /* columns descend in some rows */
    /* ONE_WAY: some entries have none across the diagonal; ROLLERS: some nodes have no first row */
    enum { SYMMETRIC, GENERAL, ONE_WAY, NEGATIVE, ROLLERS } kind;
} systems[] = {
#ifdef HOST_CUDA
    {"poisson3d:9", SPMV_F64, 0, "rows in f32", "peer", 0, NULL, false, SYMMETRIC},
    {"diffusion2d:24,1000000", SPMV_F64, 0, "classical", NULL, 0, NULL, false, SYMMETRIC},
    {"elasticity2d:10", SPMV_F64, 0, "nodes of 2 rows; 3 near-null vectors", NULL, 0, "rigid2d:10", false, SYMMETRIC},
    {"elasticity2d:10", SPMV_F64, 0, "nodes of up to 2 rows", NULL, 0, NULL, false, ROLLERS},
    {"elements:26", SPMV_F64, 100, "degree 3;", NULL, 0, NULL, false, SYMMETRIC},
    {"convdiff2d:26,3", SPMV_F64, 100, "not symmetric", NULL, 0, NULL, false, GENERAL},
    {"convdiff2d:24,3", SPMV_F32, 100, "not symmetric", "peer", 0, NULL, false, ONE_WAY},
#else
    {"poisson3d:36", SPMV_F64, 4096, "rows in f32", NULL, 0, NULL, false, SYMMETRIC},
    {"poisson2d:80", SPMV_F64, 0, "rows in f32", NULL, 0, NULL, true, SYMMETRIC},
    {"stencil27:17", SPMV_F32, 0, "rows in f32", NULL, 0, NULL, false, SYMMETRIC},
    {"diffusion2d:70,1000000", SPMV_F64, 0, "classical", NULL, 0, NULL, false, SYMMETRIC},
    {"elasticity2d:48", SPMV_F64, 0, "nodes of 2 rows", NULL, 0, NULL, false, SYMMETRIC},
    {"elasticity2d:50", SPMV_F64, 0, "nodes of up to 2 rows", NULL, 0, NULL, false, ROLLERS},
    {"elasticity2d:30", SPMV_F64, 0, "nodes of up to 2 rows", NULL, 0, NULL, false, ROLLERS}, /* each rank has all */
    {"elements:126", SPMV_F64, 4096, "degree 3;", NULL, 0, NULL, true, SYMMETRIC},
    {"elasticity3d:12", SPMV_F64, 0, "nodes of 3 rows; 6 near-null vectors", NULL, 3, "rigid3d:12", false, SYMMETRIC},
    {"elasticity2d:46", SPMV_F64, 0, "3 near-null vectors", NULL, 1, "rigid2d:46", false, SYMMETRIC},
    {"convdiff2d:120,3", SPMV_F64, 4096, "not symmetric", NULL, 0, NULL, false, GENERAL},
    {"convdiff3d:17,3", SPMV_F64, 0, "not symmetric", NULL, 0, NULL, true, ONE_WAY},
    {"convdiff2d:110,3", SPMV_F32, 4096, "not symmetric", NULL, 0, NULL, false, ONE_WAY},
    {"convdiff2d:70,3", SPMV_F64, 0, "not symmetric", NULL, 0, NULL, false, NEGATIVE},
    {"convdiff2d:68,3", SPMV_F32, 0, "not symmetric", NULL, 0, NULL, false, NEGATIVE},
#endif
};
enum { SYSTEMS = sizeof systems / sizeof *systems };

#ifdef HOST_CUDA
static const int rank_counts[] = {1, 3};
#else
static const int rank_counts[] = {1, 2, 3, 4, 7};
#endif
enum { COUNTS = sizeof rank_counts / sizeof *rank_counts };

/* What all ranks find, in memory of rank 0. */
struct outcome {
    char layout[512];
    int64_t levels;
    char *applied, *solution; /* M^-1 r, and x */
    double history[MOST_ITERATIONS];
    spmv_cg_result result;
};

struct run {
    const struct system *system;
    const spmv_csr *a;
    struct outcome *outcome;
    const double *near_null;
    int near_nulls;
};

static void fill(spmv_type type, void *numbers, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        real_set(type, numbers, i, (double)(splitmix_mix((uint64_t)i + 11) >> 40) / (1 << 24) - 0.5);
}

static int keep_history(int64_t iteration, double residual, void *user)
{
    if (iteration < MOST_ITERATIONS)
        ((double *)user)[iteration] = residual;
    return 0;
}

static void take_layout(struct outcome *o, const spmv_preconditioner *precond)
{
    spmv_preconditioner_info info;
    if (spmv_preconditioner_describe(precond, &info, sizeof info) != SPMV_OK)
        return;
    snprintf(o->layout, sizeof o->layout, "%s", info.layout);
    o->levels = info.levels;
}

/* The options of a preconditioner; near_null: in the context's memory, from row `first` on. */
static spmv_preconditioner_options precond_options_of(const struct run *run, spmv_context *ctx, int64_t first,
                                                      int64_t rows, void **near_null)
{
    spmv_preconditioner_options options;
    spmv_preconditioner_options_init(&options, sizeof options);
    options.block = run->system->block;
    options.general = run->system->kind != SYMMETRIC && run->system->kind != ROLLERS;
    *near_null = NULL;
    if (run->near_nulls == 0)
        return options;
    const int64_t bytes = rows * run->near_nulls * 8;
    if (spmv_alloc(ctx, bytes + 8, near_null) != SPMV_OK ||
        spmv_upload(ctx, run->near_null + first * run->near_nulls, *near_null, bytes) != SPMV_OK)
        abort();
    options.near_null = *near_null;
    options.near_nulls = run->near_nulls;
    return options;
}

/* The options of a solve, the same with and without ranks. */
static spmv_cg_options options_of(const struct run *run, spmv_preconditioner *precond)
{
    spmv_cg_options options;
    spmv_cg_options_init(&options, sizeof options);
    options.rtol = run->system->type == SPMV_F32 ? 1e-5 : 1e-10;
    options.zero_start = 1;
    options.precond = precond;
    return options;
}

/* What each rank does. */
static spmv_status one_rank(spmv_group *group, void *user)
{
    const struct run *run = user;
    struct outcome *o = run->outcome;
    spmv_context *ctx = spmv_group_context(group);
    const int rank = spmv_group_rank(group), ranks = spmv_group_ranks(group);
    const int64_t rows = run->a->rows, begin = rows * rank / ranks, end = rows * (rank + 1) / ranks;
    const int64_t size = (int64_t)spmv_type_size(run->system->type);
    int64_t *offsets = malloc((size_t)(end - begin + 1) * sizeof *offsets);
    const spmv_csr own = support_rows_of(run->a, begin, end, offsets);
    spmv_group_matrix *m = NULL;
    spmv_group_matrix_options matrix_options;
    spmv_group_matrix_info info = {0};
    spmv_preconditioner *precond = NULL;
    spmv_group_matrix_options_init(&matrix_options, sizeof matrix_options);
    matrix_options.exchange = run->system->exchange;
    void *r = NULL, *z = NULL, *root = rank == 0 ? malloc((size_t)(rows * size)) : NULL;
    if (root != NULL)
        fill(run->system->type, root, rows);
    spmv_status st = spmv_group_matrix_create(group, &own, &matrix_options, &m);
    if (st == SPMV_OK)
        st = spmv_group_matrix_describe(m, &info, sizeof info);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (info.own_rows + 1) * size, &r);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, (info.own_rows + 1) * size, &z);
    void *near_null = NULL;
    const spmv_preconditioner_options precond_options =
        precond_options_of(run, ctx, info.first_row, info.own_rows, &near_null);
    if (st == SPMV_OK)
        st = spmv_group_scatter(m, SPMV_GROUP_ROWS, root, r);
    if (st == SPMV_OK)
        st = spmv_group_preconditioner_create_with(m, "amg", &precond_options, &precond);
    if (st == SPMV_OK && rank == 0)
        take_layout(o, precond);
    if (st == SPMV_OK)
        st = spmv_preconditioner_apply(precond, r, z);
    if (st == SPMV_OK)
        st = spmv_group_gather(m, SPMV_GROUP_ROWS, z, rank == 0 ? o->applied : NULL);
    spmv_cg_options options = options_of(run, precond);
    spmv_cg_result result = {0};
    options.on_iteration = keep_history;
    options.user = o->history;
    if (st == SPMV_OK && run->system->kind == SYMMETRIC)
        st = spmv_group_cg(m, r, z, &options, &result, sizeof result);
    if (st == SPMV_OK)
        st = spmv_group_gather(m, SPMV_GROUP_ROWS, z, rank == 0 ? o->solution : NULL);
    if (rank == 0)
        o->result = result;
    spmv_preconditioner_destroy(precond);
    spmv_free(ctx, r);
    spmv_free(ctx, z);
    spmv_free(ctx, near_null);
    spmv_group_matrix_destroy(m);
    free(root);
    free(offsets);
    return st;
}

static spmv_context_options context_options(void)
{
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = support_backend;
    options.threads = 2;
    return options;
}

/* The same without ranks. */
static spmv_status without_ranks(const struct run *run)
{
    struct outcome *o = run->outcome;
    const spmv_context_options context = context_options();
    const int64_t rows = run->a->rows, bytes = rows * (int64_t)spmv_type_size(run->system->type);
    spmv_context *ctx = NULL;
    spmv_preconditioner *precond = NULL;
    spmv_plan *plan = NULL;
    void *host = malloc((size_t)bytes), *r = NULL, *z = NULL, *near_null = NULL;
    fill(run->system->type, host, rows);
    spmv_status st = spmv_context_create(&context, &ctx);
    const spmv_preconditioner_options precond_options = precond_options_of(run, ctx, 0, rows, &near_null);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, bytes, &r);
    if (st == SPMV_OK)
        st = spmv_alloc(ctx, bytes, &z);
    if (st == SPMV_OK)
        st = spmv_upload(ctx, host, r, bytes);
    if (st == SPMV_OK)
        st = spmv_preconditioner_create(ctx, "amg", run->a, &precond_options, &precond);
    if (st == SPMV_OK)
        take_layout(o, precond);
    if (st == SPMV_OK)
        st = spmv_preconditioner_apply(precond, r, z);
    if (st == SPMV_OK)
        st = spmv_download(ctx, z, o->applied, bytes);
    if (st == SPMV_OK)
        st = spmv_plan_create(ctx, run->a, NULL, &plan);
    const spmv_cg_options options = options_of(run, precond);
    if (st == SPMV_OK && run->system->kind == SYMMETRIC)
        st = spmv_cg(plan, r, z, &options, &o->result, sizeof o->result);
    spmv_plan_destroy(plan);
    spmv_preconditioner_destroy(precond);
    spmv_free(ctx, r);
    spmv_free(ctx, z);
    spmv_free(ctx, near_null);
    spmv_context_destroy(ctx);
    free(host);
    return st;
}

static void open_outcome(struct outcome *o, const struct run *run)
{
    const size_t bytes = (size_t)run->a->rows * spmv_type_size(run->system->type);
    *o = (struct outcome){.applied = malloc(bytes), .solution = malloc(bytes)};
}

static void close_outcome(struct outcome *o)
{
    free(o->applied);
    free(o->solution);
}

static spmv_status run_on_ranks(int ranks, struct run *run)
{
    char message[512] = "";
    const spmv_context_options context = context_options();
    const spmv_status st = spmv_group_run(ranks, &context, one_rank, run, message, sizeof message);
    if (st != SPMV_OK)
        fprintf(stderr, "%s, %d ranks: %s\n", run->system->spec, ranks, message);
    return st;
}

/* Rows of the second level. */
static int64_t second_level(const struct outcome *o)
{
    const char *const comma = strchr(o->layout, ',');
    return comma != NULL ? atoll(comma + 1) : 0;
}

static void compare(const struct outcome *a, const struct outcome *b, const struct run *run)
{
    const size_t bytes = (size_t)run->a->rows * spmv_type_size(run->system->type);
    assert_string_equal(a->layout, b->layout);
    assert_memory_equal(a->applied, b->applied, bytes);
    assert_memory_equal(a->solution, b->solution, bytes);
    assert_int_equal(a->result.iterations, b->result.iterations);
    assert_memory_equal(a->history, b->history, sizeof a->history);
}

/* NULL, and a with arrays of its own, for elements. */
static spmv_matrix *matrix_of(const struct system *s, spmv_csr *a)
{
    int side = 0;
    if (sscanf(s->spec, "elements:%d", &side) == 1) {
        *a = support_elements(side, 0.01);
        return NULL;
    }
    spmv_context *ctx = NULL;
    spmv_matrix *matrix = NULL;
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = SPMV_BACKEND_REF;
    assert_int_equal(spmv_context_create(&options, &ctx), SPMV_OK);
    assert_int_equal(spmv_matrix_generate(ctx, s->spec, s->type, &matrix), SPMV_OK);
    spmv_matrix_view(matrix, a);
    spmv_context_destroy(ctx);
    return matrix;
}

/* The dense matrix of a SPEC, row by row. */
static double *vectors_of(const char *spec, int *count)
{
    const struct system s = {.spec = spec, .type = SPMV_F64};
    spmv_csr v;
    spmv_matrix *const matrix = matrix_of(&s, &v);
    double *const vectors = calloc((size_t)(v.rows * v.cols), sizeof *vectors);
    const int64_t *const row_ptr = v.row_ptr;
    for (int64_t i = 0; i < v.rows; i++)
        for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
            vectors[i * v.cols + v.col[k]] = ((const double *)v.val)[k];
    *count = (int)v.cols;
    spmv_matrix_destroy(matrix);
    return vectors;
}

/* Every third row gets descending columns. The arrays are those of a matrix of this test. */
static void turn_rows(const spmv_csr *a)
{
    const int64_t *const row_ptr = a->row_ptr;
    int32_t *const col = (int32_t *)(uintptr_t)a->col;
    double *const val = (double *)(uintptr_t)a->val;
    for (int64_t i = 0; i < a->rows; i += 3)
        for (int64_t k = row_ptr[i], last = row_ptr[i + 1] - 1; k < last; k++, last--) {
            const int32_t other_col = col[k];
            const double other = val[k];
            col[k] = col[last];
            val[k] = val[last];
            col[last] = other_col;
            val[last] = other;
        }
}

/* Every third row loses its entries behind the diagonal. */
static void cut_rows(spmv_csr *a)
{
    int64_t *const row_ptr = (int64_t *)(uintptr_t)a->row_ptr, kept = 0;
    int32_t *const col = (int32_t *)(uintptr_t)a->col;
    char *const val = (char *)(uintptr_t)a->val;
    const size_t size = spmv_type_size(a->type);
    for (int64_t i = 0, k = 0; i < a->rows; i++) {
        const int64_t end = row_ptr[i + 1];
        for (; k < end; k++)
            if (i % 3 != 0 || col[k] <= i) {
                col[kept] = col[k];
                memmove(val + (size_t)kept++ * size, val + (size_t)k * size, size);
            }
        row_ptr[i + 1] = kept;
    }
    a->nnz = kept;
}

/* Every fifth node of two rows loses the first one, and its column. */
static void remove_rows(spmv_csr *a)
{
    int64_t *const row_ptr = (int64_t *)(uintptr_t)a->row_ptr, kept = 0, rows = 0;
    int32_t *const col = (int32_t *)(uintptr_t)a->col;
    double *const val = (double *)(uintptr_t)a->val;
    for (int64_t i = 0, k = 0; i < a->rows; i++) {
        const int64_t end = row_ptr[i + 1];
        for (; k < end; k++)
            if (i % 10 != 0 && col[k] % 10 != 0) {
                col[kept] = col[k] - col[k] / 10 - 1;
                val[kept++] = val[k];
            }
        if (i % 10 != 0)
            row_ptr[++rows] = kept;
    }
    a->rows = a->cols = rows;
    a->nnz = kept;
}

static void negate(const spmv_csr *a)
{
    for (int64_t k = 0; k < a->nnz; k++)
        real_set(a->type, (void *)(uintptr_t)a->val, k, -real_at(a->type, a->val, k));
}

static void same_hierarchy(void **state)
{
    (void)state;
    for (int s = support_backend == SPMV_BACKEND_REF; s < SYSTEMS; s++) { /* the first is large for ref */
        spmv_csr a;
        spmv_matrix *const matrix = matrix_of(&systems[s], &a);
        struct outcome alone, one, several;
        if (systems[s].kind == ONE_WAY)
            cut_rows(&a);
        if (systems[s].kind == NEGATIVE)
            negate(&a);
        if (systems[s].kind == ROLLERS)
            remove_rows(&a);
        if (systems[s].unsorted)
            turn_rows(&a);
        struct run run = {.system = &systems[s], .a = &a, .outcome = &alone};
        double *const vectors = systems[s].vectors != NULL ? vectors_of(systems[s].vectors, &run.near_nulls) : NULL;
        run.near_null = vectors;
        open_outcome(&alone, &run);
        assert_int_equal(without_ranks(&run), SPMV_OK);
        run.outcome = &one;
        open_outcome(&one, &run);
        /* on omp the numbers of ranks above one take turns; ref is slow, and its ranks do the same */
        for (int k = 0; k < COUNTS; k += support_backend == SPMV_BACKEND_REF ? 3 : 1) {
            if (support_backend == SPMV_BACKEND_OMP && k > 0 && (k + s) % 2 != 0)
                continue;
            if (k > 0) {
                run.outcome = &several;
                open_outcome(&several, &run);
            }
            assert_int_equal(run_on_ranks(rank_counts[k], &run), SPMV_OK);
            if (k > 0) {
                compare(&one, &several, &run);
                close_outcome(&several);
            }
        }
#ifdef HOST_CUDA
        if (systems[s].exchange == NULL) { /* all passes through the memory of hosts */
            run.outcome = &several;
            open_outcome(&several, &run);
            host_cuda.without_peers = 1;
            assert_int_equal(run_on_ranks(3, &run), SPMV_OK);
            host_cuda.without_peers = 0;
            compare(&one, &several, &run);
            close_outcome(&several);
        }
#endif
        assert_non_null(strstr(one.layout, systems[s].says));
        assert_true(one.levels > 1 && second_level(&one) > systems[s].coarse);
        const bool cut = systems[s].kind == ROLLERS; /* such nodes end at the bounds of chunks */
        if (!cut)
            assert_string_equal(alone.layout, one.layout);
        assert_true(llabs(alone.result.iterations - one.result.iterations) <= 1 + 2 * cut);
        if (support_backend == SPMV_BACKEND_REF && !cut)
            assert_memory_equal(alone.applied, one.applied, (size_t)a.rows * spmv_type_size(systems[s].type));
        close_outcome(&alone);
        close_outcome(&one);
        if (matrix == NULL)
            support_free_elements(&a);
        spmv_matrix_destroy(matrix);
        free(vectors);
    }
}

/* ------------------------------------------------------------- the choice */

/* What "auto" takes with and without ranks. Factors of larger matrices, which a CPU may take, are not for ranks:
 * `instead`. */
static const struct choice {
    const char *spec, *instead;
} choices[] = {
#ifdef HOST_CUDA
    {"poisson2d:20", NULL},
#else
    {"poisson2d:60", NULL},        {"poisson2d:200", NULL},          {"poisson3d:30", NULL},
    {"diffusion2d:60,1000", NULL}, {"diffusion2d:90,1000000", NULL}, {"diffusion2d:160,10000", NULL},
    {"elasticity2d:60", NULL},     {"elasticity3d:12", "amg"},       {"diagonal:5000,values=constant", NULL},
    {"poisson3d:1", NULL},
#endif
};
enum { CHOICES = sizeof choices / sizeof *choices };

struct chosen {
    const spmv_csr *a;
    char name[64], why[512];
};

static spmv_status choose_on_rank(spmv_group *group, void *user)
{
    struct chosen *const chosen = user;
    const int rank = spmv_group_rank(group), ranks = spmv_group_ranks(group);
    const int64_t rows = chosen->a->rows, begin = rows * rank / ranks, end = rows * (rank + 1) / ranks;
    int64_t *offsets = malloc((size_t)(end - begin + 1) * sizeof *offsets);
    const spmv_csr own = support_rows_of(chosen->a, begin, end, offsets);
    spmv_group_matrix *m = NULL;
    spmv_preconditioner *precond = NULL;
    spmv_preconditioner_info info;
    spmv_status st = spmv_group_matrix_create(group, &own, NULL, &m);
    if (st == SPMV_OK)
        st = spmv_group_preconditioner_create(m, NULL, &precond);
    if (st == SPMV_OK && rank == 0)
        st = spmv_preconditioner_describe(precond, &info, sizeof info);
    if (st == SPMV_OK && rank == 0) {
        snprintf(chosen->name, sizeof chosen->name, "%s", info.name);
        snprintf(chosen->why, sizeof chosen->why, "%s", info.why);
    }
    spmv_preconditioner_destroy(precond);
    spmv_group_matrix_destroy(m);
    free(offsets);
    return st;
}

static void auto_chooses_as_without_ranks(void **state)
{
    (void)state;
    for (int c = 0; c < CHOICES && support_backend != SPMV_BACKEND_REF; c++) {
        const struct system system = {.spec = choices[c].spec, .type = SPMV_F64};
        const spmv_context_options options = context_options();
        spmv_preconditioner_info info;
        spmv_preconditioner *precond = NULL;
        spmv_context *ctx = NULL;
        spmv_csr a;
        spmv_matrix *const matrix = matrix_of(&system, &a);
        const char *const instead = support_backend == SPMV_BACKEND_CUDA ? NULL : choices[c].instead;
        char message[512];
        assert_int_equal(spmv_context_create(&options, &ctx), SPMV_OK);
        assert_int_equal(spmv_preconditioner_create(ctx, "auto", &a, NULL, &precond), SPMV_OK);
        assert_int_equal(spmv_preconditioner_describe(precond, &info, sizeof info), SPMV_OK);
        for (int ranks = 1; ranks <= 4; ranks += 3) {
            struct chosen chosen = {.a = &a};
            assert_int_equal(spmv_group_run(ranks, &options, choose_on_rank, &chosen, message, sizeof message),
                             SPMV_OK);
            assert_string_equal(chosen.name, instead != NULL ? instead : info.name);
            if (instead == NULL) /* with the same numbers */
                assert_string_equal(chosen.why, info.why);
        }
        spmv_preconditioner_destroy(precond);
        spmv_context_destroy(ctx);
        spmv_matrix_destroy(matrix);
    }
}

/* ------------------------------------------------------------- failures */

spmv_status __real_context_alloc(spmv_context *ctx, int64_t bytes, void **memory);
spmv_status __wrap_context_alloc(spmv_context *ctx, int64_t bytes, void **memory);
spmv_status __wrap_context_alloc(spmv_context *ctx, int64_t bytes, void **memory)
{
    *memory = NULL;
    return fails_now() ? context_fail(ctx, SPMV_ERROR_MEMORY, "no memory") : __real_context_alloc(ctx, bytes, memory);
}

enum { FAILING = 3 };

struct failing {
    const spmv_csr *a;
    int rank, fails_at; /* 0: it is cancelled */
    bool failed;
    spmv_status status[FAILING];
};

static int cancel(void *user)
{
    (void)user;
    return 1;
}

static spmv_status fail_in_setup(spmv_group *group, void *user)
{
    struct failing *f = user;
    spmv_context *ctx = spmv_group_context(group);
    const int rank = spmv_group_rank(group);
    const int64_t rows = f->a->rows, begin = rows * rank / FAILING, end = rows * (rank + 1) / FAILING;
    int64_t *offsets = malloc((size_t)(end - begin + 1) * sizeof *offsets);
    const spmv_csr own = support_rows_of(f->a, begin, end, offsets);
    spmv_group_matrix *m = NULL;
    spmv_preconditioner *precond = NULL;
    spmv_status st = spmv_group_matrix_create(group, &own, NULL, &m);
    if (rank == f->rank && f->fails_at == 0)
        spmv_context_set_cancel(ctx, cancel, NULL);
    fails_at = rank == f->rank ? f->fails_at : 0;
    if (st == SPMV_OK)
        st = spmv_group_preconditioner_create(m, "amg", &precond);
    if (rank == f->rank)
        f->failed = fails_at == 0;
    fails_at = 0;
    f->status[rank] = st;
    spmv_preconditioner_destroy(precond);
    spmv_group_matrix_destroy(m);
    free(offsets);
    return st;
}

/* Each of many allocations of a rank fails in turn, and one rank is cancelled: all ranks end
 * with its status. */
static void failures_end_all(void **state)
{
    (void)state;
    const struct system system = {.spec = support_backend == SPMV_BACKEND_CUDA ? "poisson2d:16" : "poisson2d:66",
                                  .type = SPMV_F64};
    const spmv_context_options options = context_options();
    spmv_csr a;
    spmv_matrix *const matrix = matrix_of(&system, &a);
    struct failing f = {.failed = true};
    int at = 0;
    for (; f.failed; at += 1 + at / 4) {
        f = (struct failing){.a = &a, .rank = at % FAILING, .fails_at = at};
        const spmv_status st = spmv_group_run(FAILING, &options, fail_in_setup, &f, NULL, 0);
        if (support_backend != SPMV_BACKEND_CUDA || st != SPMV_OK) /* there, some products are then made otherwise */
            assert_int_equal(st, at == 0 ? SPMV_CANCELLED : f.failed ? SPMV_ERROR_MEMORY : SPMV_OK);
        for (int r = 0; r < FAILING; r++)
            assert_int_equal(f.status[r], st);
    }
    assert_true(at > 100);
    spmv_matrix_destroy(matrix);
}

SUPPORT_MAIN(cmocka_unit_test(same_hierarchy), cmocka_unit_test(auto_chooses_as_without_ranks),
             cmocka_unit_test(failures_end_all))
