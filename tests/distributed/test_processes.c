/* Ranks that are processes of one host, each with a GPU, or all with one: they use each other's memory by CUDA IPC
 * (boards.h), and have the bits of one rank. The program starts itself under mpirun on two processes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/runtime.h"
#include "distributed/group_internal.h"
#include "tests/support/support.h"
#ifdef HOST_CUDA
#include "tests/emulated_gpu/cuda_runtime_api.h"
#endif

#ifdef HOST_CUDA /* a thousand times slower; more rows than a level that each rank has whole (SPMV_AMG_WHOLE_ROWS) */
#define SPEC "poisson2d:24"
#else
#define SPEC "poisson2d:400"
#endif
enum { PRODUCTS = 3 }; /* the first one loads kernels, others do not wait for the hosts */

/* The results of all ranks, on rank 0. */
struct outcome {
    double *y, *x;
    double dot;
    int64_t iterations;
    char exchange[16];
};

struct job {
    const spmv_csr *a;
    const char *exchange;
    struct outcome *outcome;
};

static double *vector(int64_t n)
{
    double *const v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = (i % 7 == 0 ? -1 : 1) * (1 + (double)(splitmix_mix((uint64_t)i) >> 40) / (1 << 24));
    return v;
}

/* Products, a dot product, and a solve by conjugate gradients with multigrid. */
static spmv_status compute(spmv_group *group, void *user)
{
    spmv_status st = SPMV_OK;
    const struct job *const job = user;
    spmv_context *const ctx = spmv_group_context(group);
    const bool first = spmv_group_rank(group) == 0;
    const int32_t none[] = {0};
    spmv_csr own = *job->a;
    spmv_group_matrix *m = NULL;
    spmv_preconditioner *precond = NULL;
    spmv_group_matrix_options options;
    spmv_group_matrix_info info;
    spmv_cg_options cg;
    spmv_cg_result result;
    void *x = NULL, *y = NULL;
    double *const host = first ? vector(job->a->rows) : NULL;
    spmv_group_matrix_options_init(&options, sizeof options);
    spmv_cg_options_init(&cg, sizeof cg);
    options.exchange = job->exchange;
    if (!first) {
        own.rows = own.nnz = 0;
        own.row_ptr = none;
        own.row_ptr_bits = 32;
    }
    TRY(spmv_group_matrix_create(group, &own, &options, &m));
    TRY(spmv_group_matrix_describe(m, &info, sizeof info));
    snprintf(job->outcome->exchange, sizeof job->outcome->exchange, "%s", info.exchange);
    TRY(spmv_alloc(ctx, (info.own_rows + 1) * 8, &x));
    TRY(spmv_alloc(ctx, (info.own_rows + 1) * 8, &y));
    TRY(spmv_group_scatter(m, SPMV_GROUP_COLS, host, x));
    for (int i = 0; i < PRODUCTS; i++) {
        TRY(spmv_group_apply(m, &(const double){0.5}, x, &(const double){0}, y));
        TRY(spmv_group_apply(m, &(const double){0.5}, y, &(const double){0}, x));
    }
    TRY(spmv_group_gather(m, SPMV_GROUP_ROWS, x, job->outcome->y));
    TRY(spmv_group_dot(m, x, y, &job->outcome->dot));
    TRY(spmv_group_preconditioner_create(m, "amg", &precond));
    cg.precond = precond;
    cg.rtol = 1e-6;
    TRY(spmv_group_scatter(m, SPMV_GROUP_ROWS, host, y));
    TRY(spmv_group_cg(m, y, x, &cg, &result, sizeof result));
    job->outcome->iterations = result.iterations;
    TRY(spmv_group_gather(m, SPMV_GROUP_ROWS, x, job->outcome->x));
done:
    free(host);
    spmv_free(ctx, x);
    spmv_free(ctx, y);
    spmv_preconditioner_destroy(precond);
    spmv_group_matrix_destroy(m);
    return st;
}

static struct outcome open_outcome(int64_t rows)
{
    return (struct outcome){.y = vector(rows), .x = vector(rows)};
}

static void close_outcome(struct outcome *o)
{
    free(o->x);
    free(o->y);
}

static bool same(const struct outcome *a, const struct outcome *b, int64_t rows)
{
    return memcmp(a->y, b->y, (size_t)rows * 8) == 0 && memcmp(a->x, b->x, (size_t)rows * 8) == 0 && a->dot == b->dot &&
           a->iterations == b->iterations;
}

/* One rank, as a thread. */
static spmv_status compute_alone(struct job *job)
{
    char message[300];
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = support_backend;
    const spmv_status st = spmv_group_run(1, &options, compute, job, message, sizeof message);
    if (st != SPMV_OK)
        fprintf(stderr, "one rank: %s\n", message);
    return st;
}

/* Together: computes by this exchange (NULL: auto), which must be `expected`, or with NULL anything. The bits are
 * those of one. */
static bool has_bits_of_one(spmv_group *group, const spmv_csr *a, const struct outcome *one, const char *exchange,
                            const char *expected)
{
    struct outcome several = open_outcome(a->rows);
    struct job job = {a, exchange, &several};
    spmv_status st = compute(group, &job);
    bool good = st == SPMV_OK;
    if (!good)
        fprintf(stderr, "exchange %s: %s\n", exchange, spmv_last_error(spmv_group_context(group)));
    else if (expected != NULL && strcmp(several.exchange, expected) != 0)
        good = fprintf(stderr, "exchange %s in place of %s\n", several.exchange, expected) < 0;
    else if (spmv_group_rank(group) == 0 && !same(one, &several, a->rows))
        good = fprintf(stderr, "exchange %s: the bits differ from those of one rank\n", several.exchange) < 0;
    if (good && spmv_group_rank(group) == 0)
        printf("%d processes, exchange %s: the bits of one\n", spmv_group_ranks(group), several.exchange);
    close_outcome(&several);
    return spmv_group_agree(group, good ? SPMV_OK : SPMV_ERROR_CHECK) == SPMV_OK;
}

/* Together: bytes that GPUs copy from each other, more each time. */
static spmv_status swap_bytes(spmv_group *group)
{
    enum { TURNS = 5, LEAST = 1000, GROWS = 50 };
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = spmv_group_context(group);
    const int rank = spmv_group_rank(group), ranks = spmv_group_ranks(group);
    int64_t *const offset = malloc((size_t)ranks * sizeof *offset);
    void *to = NULL;
    char *given = NULL, *got = NULL;
    memset(offset, 0, (size_t)ranks * sizeof *offset);
    for (int turn = 0, bytes = LEAST; turn < TURNS; turn++, bytes = turn == 3 ? GROWS * bytes : bytes + LEAST) {
        const struct near_parcel parcel = {(rank + 1) % ranks, NULL, bytes};
        struct near_parcel receive = parcel;
        void *packed = NULL;
        bool moved = false;
        given = malloc((size_t)bytes);
        got = malloc((size_t)bytes);
        TRY(spmv_alloc(ctx, bytes, &to));
        receive.to = to;
        for (int i = 0; i < bytes; i++)
            given[i] = (char)(i * (rank + 3) + turn);
        TRY(near_lend(group, bytes, &packed));
        TRY(spmv_upload(ctx, given, packed, bytes));
        TRY(near_swap(group, offset, &receive, 1, &moved));
        TRY(spmv_download(ctx, to, got, bytes));
        for (int i = 0; i < bytes; i++)
            if (!moved || got[i] != (char)(i * ((rank + 1) % ranks + 3) + turn))
                TRY(context_fail(ctx, SPMV_ERROR_CHECK, "turn %d: byte %d of rank %d is another one", turn, i,
                                 receive.rank));
        spmv_free(ctx, to);
        free(given);
        free(got);
        given = got = NULL;
        to = NULL;
    }
done:
    spmv_free(ctx, to);
    free(given);
    free(got);
    free(offset);
    return st;
}

/* All that the processes do; exit status. */
static int run_processes(spmv_group *group)
{
    spmv_csr a;
    spmv_matrix *matrix = NULL;
    spmv_context *const ctx = spmv_group_context(group);
    bool good = spmv_matrix_generate(ctx, SPEC, SPMV_F64, &matrix) == SPMV_OK;
    spmv_matrix_view(matrix, &a);
    /* one rank; sums through the host are added in another order */
    struct outcome one = open_outcome(a.rows), on_host = open_outcome(a.rows);
    good = good && compute_alone(&(struct job){&a, NULL, &one}) == SPMV_OK &&
           compute_alone(&(struct job){&a, "host", &on_host}) == SPMV_OK;
    good = spmv_group_agree(group, good ? SPMV_OK : SPMV_ERROR_CHECK) == SPMV_OK;
    good = good && has_bits_of_one(group, &a, &on_host, "host", "host");
#ifdef HOST_CUDA
    host_cuda.without_ipc = 1;
    good = good && !near_is_possible(group) && has_bits_of_one(group, &a, &on_host, NULL, "host");
    host_cuda.without_ipc = 0;
#endif
    good = good && has_bits_of_one(group, &a, &one, "peer", "peer");
    if (good) {
        const spmv_status st = near_is_possible(group) ? swap_bytes(group) : SPMV_ERROR_CHECK;
        if (st != SPMV_OK)
            fprintf(stderr, "%s\n", spmv_last_error(ctx));
        good = spmv_group_agree(group, st) == SPMV_OK;
    }
    good = good && has_bits_of_one(group, &a, &one, NULL, "peer"); /* with memory that was given back */
    close_outcome(&on_host);
    close_outcome(&one);
    spmv_matrix_destroy(matrix);
    return good ? 0 : 1;
}

/* Starts two processes of this program. Returns if that is not possible. */
static void start_processes(char **arguments)
{
    static const char *const programs[] = {"mpirun.openmpi", "mpirun.mpich", "mpirun"};
    static const char *const variables[][2] = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                               {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                               {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                               {"OMPI_MCA_plm_rsh_agent", ""},
                                               {"OMPI_MCA_hwloc_base_binding_policy", "none"}};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        (void)setenv(variables[i][0], variables[i][1], 1);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        (void)execlp(programs[i], programs[i], "-n", "2", arguments[0], arguments[1], (char *)NULL);
}

/* Prints why the processes end, if one fails. */
static int print_event(const spmv_event *event, void *user)
{
    (void)user;
    if (event->kind == SPMV_EVENT_WARNING)
        fprintf(stderr, "%s\n", event->text);
    return 0;
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    if (spmv_group_launcher() == NULL) {
        start_processes(argv);
        printf("no mpirun\n");
        return SKIPPED;
    }
#ifdef HOST_CUDA
    host_cuda.processes = 1;
#endif
    spmv_context_options options;
    spmv_context *ctx = NULL;
    spmv_group *group = NULL;
    spmv_context_options_init(&options, sizeof options);
    options.backend = support_backend;
    options.threads = 1;
    options.on_event = print_event;
    options.device = spmv_group_local_rank() % 2;
    if (spmv_context_create(&options, &ctx) != SPMV_OK) {
        options.device = 0; /* two processes of one GPU */
        if (spmv_context_create(&options, &ctx) != SPMV_OK)
            return SKIPPED;
    }
    if (spmv_group_create_mpi(ctx, &group) != SPMV_OK) {
        fprintf(stderr, "%s\n", spmv_last_error(ctx));
        spmv_context_destroy(ctx);
        return SKIPPED;
    }
    int failed = run_processes(group);
    spmv_group_destroy(group);
    spmv_context_destroy(ctx);
#ifdef HOST_CUDA
    if (host_cuda.allocations != 0 || host_cuda.others != 0)
        failed = fprintf(stderr, "%d blocks of memory and %d other objects are left\n", (int)host_cuda.allocations,
                         (int)host_cuda.others) > 0;
#endif
    return failed;
}
