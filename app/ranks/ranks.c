/* spmv mul and spmv solve on several ranks: processes that mpirun has started, or threads with
 * --ranks N.
 *
 * Rank 0 reads the files, writes the answer and prints; the other ranks are silent. Each rank keeps
 * its own rows only, and checks them against another backend. All ranks return the same status.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/input.h"
#include "app/job_memory.h"
#include "app/output.h"
#include "app/product.h"
#include "app/ranks/ranks.h"
#include "app/ranks/ranks_job.h"
#include "core/plural.h"
#include "core/reals.h"

/* The number of products that are timed. */
enum { REPEATS = 5 };

bool ranks_wanted(const struct options *o)
{
    return o->ranks > 0 || o->gpus > 0 || spmv_group_launcher() != NULL;
}

bool rank_is_root(const struct rank *r)
{
    return spmv_group_rank(r->group) == 0;
}

spmv_status rank_passed(struct rank *r, spmv_status st)
{
    if (st != SPMV_OK && rank_is_root(r) && !r->job->told) {
        complain("%s", plain_sentence(spmv_last_error(r->ctx)));
        r->job->told = true;
    }
    return st;
}

spmv_status rank_agreed(struct rank *r, spmv_status st, bool reported)
{
    if (st != SPMV_OK && reported && rank_is_root(r))
        r->job->told = true;
    return rank_passed(r, spmv_group_agree(r->group, st));
}

/* ---------------------------------------------------------------- the matrix and vectors */

void rank_split_method(const struct options *o, char solver[32], const char **product)
{
    static const char *const solvers[] = {"textbook", "fused", "graph"};
    const size_t length = strcspn(o->method, ":");
    solver[0] = '\0';
    *product = o->method;
    for (int i = 0; i < 3; i++)
        if (strlen(solvers[i]) == length && strncmp(o->method, solvers[i], length) == 0) {
            snprintf(solver, 32, "%s", solvers[i]);
            *product = o->method[length] == ':' ? o->method + length + 1 : "auto";
        }
}

/* Whether the matrix is generated: then each rank makes its part. */
static bool is_generated(const struct ranks_job *job)
{
    return !file_exists(job->arguments[0]) && spmv_spec_known(job->arguments[0]);
}

/* Makes the rank's part of a generated matrix. */
static spmv_status generate(struct rank *r, const struct options *o, spmv_matrix **part)
{
    spmv_generate_options options;
    spmv_generate_options_init(&options, sizeof options);
    options.type = o->type;
    options.part = spmv_group_rank(r->group);
    options.parts = spmv_group_ranks(r->group);
    options.max_bytes = o->max_memory > 0 ? o->max_memory : 0;
    return spmv_matrix_generate_within(r->ctx, r->job->arguments[0], &options, part);
}

/* The ranks on this host, from the launcher's variables; 1 if unknown. */
static int ranks_here(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"};
    int ranks = 1;
    for (int i = 0; i < 2 && ranks <= 1; i++) {
        const char *text = getenv(variables[i]);
        ranks = text != NULL ? atoi(text) : 1;
    }
    return ranks > 1 ? ranks : 1;
}

/* How rank 0 reads a file together with the others. */
struct shared_reading {
    struct rank *r;
    const spmv_group_matrix_options *options;
    bool begun;
};

static spmv_status read_shared(void *user, const char *path, const spmv_read_options *reading, struct input *in)
{
    struct shared_reading *const shared = user;
    struct rank *const r = shared->r;
    shared->begun = true;
    const spmv_status st = spmv_group_agree(r->group, SPMV_OK);
    return st != SPMV_OK
               ? st
               : spmv_group_matrix_read(r->group, path, reading, shared->options, &r->m, &in->info, sizeof in->info);
}

/* Reads the matrix from a file, together. Rank 0 reports errors. */
static spmv_status read_matrix(struct rank *r, const struct options *reading, const spmv_group_matrix_options *options)
{
    struct ranks_job *job = r->job;
    struct shared_reading shared = {.r = r, .options = options};
    const int ranks = spmv_group_launcher() == NULL ? spmv_group_ranks(r->group) : ranks_here();
    if (!rank_is_root(r)) {
        const spmv_status st = spmv_group_agree(r->group, SPMV_OK);
        return st != SPMV_OK ? st : spmv_group_matrix_read(r->group, job->arguments[0], NULL, options, &r->m, NULL, 0);
    }
    const spmv_status st =
        input_read(r->ctx, reading, job->kind->memory, job->arguments[0], read_shared, &shared, ranks, &job->in);
    job->told = job->told || st != SPMV_OK;
    return shared.begun ? st : rank_agreed(r, st, true);
}

/* Makes the matrix: each rank generates or reads a part. */
static spmv_status make_matrix(struct rank *r, const spmv_group_matrix_options *options)
{
    struct ranks_job *job = r->job;
    const struct options reading = options_for_matrix(job->o);
    spmv_csr own;
    spmv_matrix *part = NULL;
    const double start = monotonic_seconds();
    if (!is_generated(job)) {
        const spmv_status st = read_matrix(r, &reading, options);
        if (rank_is_root(r)) {
            job->in.seconds = job->in.info.seconds;
            r->plan_seconds = monotonic_seconds() - start - job->in.seconds;
        }
        return st;
    }
    spmv_status st = generate(r, &reading, &part);
    const double began = monotonic_seconds();
    spmv_matrix_view(part, &own);
    if (rank_is_root(r))
        job->in = (struct input){.argument = job->arguments[0], .seconds = began - start};
    st = rank_agreed(r, st, false);
    if (st == SPMV_OK)
        st = rank_passed(r, spmv_group_matrix_create(r->group, &own, options, &r->m));
    r->plan_seconds = monotonic_seconds() - began;
    spmv_matrix_destroy(part);
    return st;
}

static spmv_status load_matrix(struct rank *r)
{
    struct ranks_job *job = r->job;
    const struct options *o = job->o;
    spmv_group_matrix_options options;
    char solver[32];
    spmv_group_matrix_options_init(&options, sizeof options);
    options.type = o->type;
    rank_split_method(o, solver, &options.method);
    options.exchange = o->exchange;
    options.compression = plan_compression(o, spmv_context_backend(r->ctx), strcmp(job->kind->op, "cg") == 0);
    spmv_status st = make_matrix(r, &options);
    if (st != SPMV_OK)
        return st;
    spmv_group_matrix_describe(r->m, &r->info, sizeof r->info);
    r->size = (int64_t)spmv_type_size(r->info.type);
    st = spmv_alloc(r->ctx, (r->info.own_cols + 1) * r->size, &r->x);
    if (st == SPMV_OK)
        st = spmv_alloc(r->ctx, (r->info.own_rows + 1) * r->size, &r->y);
    if (st == SPMV_OK)
        st = spmv_alloc(r->ctx, (r->info.own_rows + 1) * r->size, &r->b);
    if (st == SPMV_OK && rank_is_root(r) && job->answer_path != NULL)
        st = allocate("the answer", r->info.rows, (size_t)r->size, &r->all);
    return rank_agreed(r, st, false);
}

/* Rank 0 reads a vector and sends each rank its part. path NULL: this vector is not given. */
static spmv_status load_vector(struct rank *r, const char *path, const char *name, spmv_group_side side, void *own)
{
    void *all = NULL;
    spmv_status st = SPMV_OK;
    if (path == NULL)
        return st;
    if (rank_is_root(r)) {
        char why[256];
        const int64_t n = side == SPMV_GROUP_COLS ? r->info.cols : r->info.rows;
        snprintf(why, sizeof why, "%.180s is %lld x %lld", r->job->in.argument, (long long)r->info.rows,
                 (long long)r->info.cols);
        st = vector_load(r->ctx, path, r->info.type, n, name, why, &all);
    }
    st = rank_agreed(r, st, true);
    if (st == SPMV_OK)
        st = rank_passed(r, spmv_group_scatter(r->m, side, all, own));
    spmv_host_free(all);
    return st;
}

/* own = n times value, a number of the type. */
spmv_status rank_fill(struct rank *r, void *own, int64_t n, double value)
{
    const union real number = real_scalar(r->info.type, value);
    return n > 0 ? spmv_map_index(r->ctx, r->info.type, &number, NULL, own, n) : SPMV_OK;
}

/* y = alpha A x + beta y */
spmv_status rank_multiply(struct rank *r, double alpha, const void *x, double beta, void *y)
{
    const union real a = real_scalar(r->info.type, alpha), b = real_scalar(r->info.type, beta);
    return rank_passed(r, spmv_group_apply(r->m, &a, x, &b, y));
}

spmv_status rank_check(struct rank *r, double alpha, const void *x, double beta, const void *y0, const void *y)
{
    const spmv_backend other = spmv_context_backend(r->ctx) == SPMV_BACKEND_OMP ? SPMV_BACKEND_REF : SPMV_BACKEND_OMP;
    const union real a = real_scalar(r->info.type, alpha), b = real_scalar(r->info.type, beta);
    spmv_context_options options;
    spmv_status st = SPMV_OK;
    if (r->job->o->verify == VERIFY_OFF)
        return st;
    const double began = monotonic_seconds();
    if (r->reference == NULL) {
        spmv_context_options_init(&options, sizeof options);
        options.first_index = 1;
        options.backend = other;
        options.threads = spmv_context_threads(r->ctx);
        st = spmv_context_create(&options, &r->reference);
        if (st != SPMV_OK)
            spmv_context_report(r->ctx, st, spmv_last_error(NULL));
        st = rank_agreed(r, st, false);
    }
    if (st == SPMV_OK)
        st = spmv_group_verify(r->m, r->reference, &a, x, &b, y0, y, &r->check, sizeof r->check);
    r->check_seconds += monotonic_seconds() - began;
    if (st == SPMV_ERROR_CHECK) {
        r->verdict = st;
        return SPMV_OK;
    }
    return rank_passed(r, st);
}

void rank_tell_check(const struct rank *r, const char *what)
{
    const struct product p = {.type = r->info.type,
                              .vectors = 1,
                              .reference =
                                  r->reference != NULL ? spmv_backend_name(spmv_context_backend(r->reference)) : "",
                              .info = {.rows = r->info.rows},
                              .check = r->check};
    if (r->job->o->verify == VERIFY_OFF)
        remark(LEVEL_NORMAL, "not checked");
    else
        tell_check(&p, what);
}

/* ---------------------------------------------------------------- mul */

static const char *refuse_product(const struct options *o)
{
    return o->transpose ? "--transpose is not supported on several ranks" : NULL;
}

/* Times products. With beta, y changes with each one, so there is one only. */
static spmv_status time_products(struct rank *r)
{
    const struct options *o = r->job->o;
    double samples[REPEATS];
    int count = 0;
    spmv_status st = SPMV_OK;
    while (count < (o->beta == 0 ? REPEATS : 1) && st == SPMV_OK) {
        const double began = monotonic_seconds();
        st = rank_multiply(r, o->alpha, r->x, o->beta, r->y);
        samples[count++] = monotonic_seconds() - began;
    }
    r->timing = timing_summary(samples, count);
    for (int i = 0; i < count; i++)
        r->seconds += samples[i];
    return st;
}

static spmv_status compute_product(struct rank *r)
{
    const struct ranks_job *job = r->job;
    const char *x_path = job->count > 1 ? job->arguments[1] : NULL;
    spmv_status st = x_path != NULL ? load_vector(r, x_path, "x", SPMV_GROUP_COLS, r->x)
                                    : rank_agreed(r, rank_fill(r, r->x, r->info.own_cols, 1), false);
    if (st == SPMV_OK)
        st = load_vector(r, job->o->y0, "y0", SPMV_GROUP_ROWS, r->y);
    if (st == SPMV_OK && r->info.own_rows > 0)
        st = spmv_map(r->ctx, SPMV_MAP_COPY, r->info.type, r->y, r->b, r->info.own_rows);
    st = rank_agreed(r, st, false);
    if (st == SPMV_OK)
        st = time_products(r);
    if (st == SPMV_OK)
        st = rank_check(r, job->o->alpha, r->x, job->o->beta, job->o->y0 != NULL ? r->b : NULL, r->y);
    if (st == SPMV_OK && job->answer_path != NULL)
        st = rank_passed(r, spmv_group_gather(r->m, SPMV_GROUP_ROWS, r->y, r->all));
    return st;
}

static void tell_product(const struct rank *r)
{
    remark(LEVEL_NORMAL, "load %s, plan %s, product %s", seconds_text(r->job->in.seconds),
           seconds_text(r->plan_seconds), seconds_text(r->timing.median));
    rank_tell_check(r, "y");
}

static json_t *json_product(const struct rank *r)
{
    return json_pack("{s:o}", "seconds", json_timing(&r->timing));
}

static const struct rank_kind product_kind = {.op = "spmv",
                                              .answer = "y",
                                              .memory = JOB_PRODUCT,
                                              .refusal = refuse_product,
                                              .compute = compute_product,
                                              .tell = tell_product,
                                              .json = json_product};

/* ---------------------------------------------------------------- solve */

static const char *refuse_solve(const struct options *o)
{
    if (strcmp(o->solver, "auto") != 0 && strcmp(o->solver, "cg") != 0)
        return "several ranks solve by conjugate gradients only: --solver cg";
    if (o->inner)
        return "--inner is not supported on several ranks";
    if (o->vectors > 1)
        return "several ranks solve for one right-hand side only: without --vectors";
    if (o->plot != NULL)
        return "--plot is not supported on several ranks; --history writes the residuals";
    if (option_of_preconditioner(o) != NULL)
        return "options of preconditioners, such as --block, are not supported on several ranks";
    if (strcmp(o->precond, "all") == 0)
        return "the preconditioners of several ranks are none, jacobi and chebyshev, and of each rank's own block amg, "
               "ic0, cholesky, ilu0 and block-jacobi";
    return NULL;
}

/* The callback of rank 0: the history, and progress. */
static int record(int64_t iteration, double residual, void *user)
{
    struct ranks_job *job = user;
    (void)iteration;
    if (job->o->history == NULL)
        return 0;
    if (job->recorded == job->room) {
        const int64_t room = 2 * job->room + 1024;
        double *more = realloc(job->history, (size_t)room * sizeof *more);
        job->out_of_memory = more == NULL;
        if (more == NULL)
            return 1;
        job->history = more;
        job->room = room;
    }
    job->history[job->recorded++] = residual;
    return 0;
}

spmv_status rank_make_preconditioner(struct rank *r)
{
    const char *name = r->job->o->precond;
    const bool chooses = strcmp(name, "auto") == 0;
    r->precond_name = chooses ? "jacobi" : name;
    spmv_status st = spmv_group_preconditioner_create(r->m, r->precond_name, &r->precond);
    if (chooses && st == SPMV_ERROR_NOT_POSITIVE) {
        r->precond_name = "none";
        return SPMV_OK;
    }
    return rank_passed(r, st);
}

/* x = the known solution */
static spmv_status fill_solution(struct rank *r)
{
    enum { AT_ONCE = 4096 };
    double host[AT_ONCE]; /* or floats */
    const int64_t n = r->info.own_cols;
    spmv_status st = SPMV_OK;
    if (!r->random)
        return rank_fill(r, r->x, n, 1);
    for (int64_t first = 0; first < n && st == SPMV_OK; first += AT_ONCE) {
        const int64_t count = n - first < AT_ONCE ? n - first : (int64_t)AT_ONCE;
        for (int64_t i = 0; i < count; i++)
            real_set(r->info.type, host, i, solution_element(true, r->info.first_col + first + i));
        st = spmv_upload(r->ctx, host, (char *)r->x + first * r->size, count * r->size);
    }
    return st;
}

spmv_status rank_make_b(struct rank *r, bool random)
{
    const struct ranks_job *job = r->job;
    r->makes_b = job->count < 2;
    r->random = random;
    if (!r->makes_b)
        return load_vector(r, job->arguments[1], "b", SPMV_GROUP_ROWS, r->b);
    spmv_status st = rank_agreed(r, fill_solution(r), false);
    if (st == SPMV_OK)
        st = rank_multiply(r, 1, r->x, 0, r->b);
    return st == SPMV_OK ? rank_check(r, 1, r->x, 0, NULL, r->b) : st;
}

static bool is_result(spmv_status st)
{
    return st == SPMV_OK || spmv_status_class(st) == 7 || st == SPMV_ERROR_NOT_POSITIVE;
}

static spmv_status run_cg(struct rank *r)
{
    const struct options *o = r->job->o;
    char method[32];
    const char *product = NULL;
    spmv_cg_options options;
    spmv_cg_options_init(&options, sizeof options);
    rank_split_method(o, method, &product);
    options.rtol = o->rtol;
    options.atol = o->atol;
    options.max_iterations = o->max_iterations;
    options.zero_start = o->x0 == NULL;
    options.precond = r->precond;
    options.method = method[0] != '\0' ? method : NULL;
    options.on_iteration = rank_is_root(r) && o->history != NULL ? record : NULL;
    options.user = r->job;
    spmv_group_matrix_info before = {0}, after = {0};
    spmv_group_matrix_describe(r->m, &before, sizeof before);
    const double began = monotonic_seconds();
    r->stop = spmv_group_cg(r->m, r->b, r->x, &options, &r->result, sizeof r->result);
    r->seconds = monotonic_seconds() - began;
    spmv_group_matrix_describe(r->m, &after, sizeof after);
    r->exchange_seconds = after.exchange_seconds - before.exchange_seconds;
    if (r->job->out_of_memory && rank_is_root(r)) {
        complain("no memory for the history of %lld iteration%s", (long long)r->job->recorded,
                 plural(r->job->recorded));
        r->job->told = true;
    }
    if (!is_result(r->stop))
        return rank_passed(r, r->stop);
    snprintf(r->failure, sizeof r->failure, "%s", r->stop != SPMV_OK ? spmv_last_error(r->ctx) : "");
    return SPMV_OK;
}

/* Computes b - A x again, checks it, and compares its norm with the solver's. */
static spmv_status check_residual(struct rank *r)
{
    spmv_status st = SPMV_OK;
    union real square = {0};
    if (r->job->o->verify == VERIFY_OFF)
        return st;
    if (r->info.own_rows > 0)
        st = spmv_map(r->ctx, SPMV_MAP_COPY, r->info.type, r->b, r->y, r->info.own_rows);
    st = rank_agreed(r, st, false);
    if (st == SPMV_OK)
        st = rank_multiply(r, -1, r->x, 1, r->y);
    if (st == SPMV_OK)
        st = rank_check(r, -1, r->x, 1, r->b, r->y);
    if (st == SPMV_OK)
        st = rank_passed(r, spmv_group_dot(r->m, r->y, r->y, &square));
    r->norm_r = sqrt(real_at(r->info.type, &square, 0));
    const struct real_limits limits = real_limits_of(r->info.type);
    const double least = sqrt((double)r->info.rows * limits.normal);
    const double apart = fabs(r->norm_r - r->result.true_residual);
    if (isfinite(r->result.true_residual) &&
        !(apart <= ((double)r->info.rows + 3) * limits.roundoff * r->norm_r + least))
        r->verdict = SPMV_ERROR_CHECK;
    return st;
}

/* The largest error of x, where the solution is known; on rank 0, which has all of x. */
static void find_error(struct rank *r)
{
    r->largest_error = -1;
    for (int64_t i = 0; r->makes_b && r->all != NULL && i < r->info.rows; i++)
        r->largest_error = fmax(r->largest_error, fabs(real_at(r->info.type, r->all, i) -
                                                       real_rounded(r->info.type, solution_element(r->random, i))));
}

static spmv_status compute_solution(struct rank *r)
{
    const struct ranks_job *job = r->job;
    spmv_status st = SPMV_OK;
    if (r->info.rows != r->info.cols) {
        if (rank_is_root(r)) {
            complain("%s is %lld x %lld: a system A x = b needs a square matrix", job->in.argument,
                     (long long)r->info.rows, (long long)r->info.cols);
            r->job->told = true;
        }
        return SPMV_ERROR_NOT_SQUARE;
    }
    st = rank_make_preconditioner(r);
    if (st == SPMV_OK)
        st = rank_make_b(r, strcmp(job->o->solution, "random") == 0);
    if (st == SPMV_OK)
        st = load_vector(r, job->o->x0, "x0", SPMV_GROUP_COLS, r->x);
    if (st == SPMV_OK)
        st = run_cg(r);
    if (st == SPMV_OK)
        st = check_residual(r);
    if (st == SPMV_OK && job->answer_path != NULL)
        st = rank_passed(r, spmv_group_gather(r->m, SPMV_GROUP_COLS, r->x, r->all));
    find_error(r);
    return st;
}

static const struct rank_kind solve_kind;

/* What to try after a failure of class 7 or 8. On ranks there are fewer methods than without. */
static void tell_next(const struct rank *r, spmv_status stop)
{
    const struct options *const o = r->job->o;
    const bool f32 = r->info.type == SPMV_F32;
    static const char *const only_cg = "on several ranks there is only cg, for symmetric positive definite matrices; "
                                       "without ranks, --solver auto takes";
    const char *const precond = r->precond_name == NULL || strcmp(r->precond_name, "amg") == 0 ? NULL : "--precond amg";
    const double relative = r->result.true_residual / r->result.norm_b;
    if (!rank_is_root(r) || r->job->kind != &solve_kind)
        return;
    if (stop == SPMV_ERROR_NOT_SYMMETRIC)
        complain("%s gmres", only_cg);
    else if (stop == SPMV_ERROR_NOT_POSITIVE && o->precond != NULL && strcmp(o->precond, "auto") != 0 &&
             strcmp(o->precond, "none") != 0)
        complain("try --precond auto; %s minres", only_cg);
    else if (stop == SPMV_ERROR_NOT_POSITIVE)
        complain("%s minres", only_cg);
    else if (stop == SPMV_ERROR_ITERATIONS)
        complain("try %s%sa --max-iterations above %lld%s", precond != NULL ? precond : "",
                 precond != NULL ? ", or " : "", (long long)r->result.iterations, f32 ? ", or --type f64" : "");
    else if (stop == SPMV_ERROR_STAGNATION)
        complain("rounding errors of %s limit the residual: try %s--rtol %.0e, which it reached", f32 ? "f32" : "f64",
                 f32 ? "--type f64, or accept " : "", solve_reachable(relative));
    else if (stop == SPMV_ERROR_NOT_FINITE && strstr(r->failure, " in row ") != NULL)
        return; /* the number is named */
    else if (stop == SPMV_ERROR_NOT_FINITE && f32)
        complain("numbers exceeded the range of f32: try --type f64");
    else if (stop == SPMV_ERROR_NOT_FINITE)
        complain("look for numbers that are very large or not finite in A and b (spmv info)");
}

static double seconds_per_iteration(const struct rank *r)
{
    return r->result.iterations > 0 ? r->seconds / (double)r->result.iterations : 0;
}

static void tell_solution(const struct rank *r)
{
    const spmv_cg_result *result = &r->result;
    remark(LEVEL_NORMAL, "preconditioner %s%s", r->precond_name,
           strcmp(r->precond_name, "none") == 0 || strcmp(r->precond_name, "jacobi") == 0 ||
                   strcmp(r->precond_name, "chebyshev") == 0
               ? ""
               : " of each rank's own block: iterations depend on the number of ranks");
    remark(LEVEL_NORMAL, "load %s, plan %s, solve %s, check %s", seconds_text(r->job->in.seconds),
           seconds_text(r->plan_seconds), seconds_text(r->seconds), seconds_text(r->check_seconds));
    remark(LEVEL_NORMAL, "%s after %lld iteration%s of %s each, by %s", r->stop == SPMV_OK ? "solved" : "stopped",
           (long long)result->iterations, result->iterations == 1 ? "" : "s", seconds_text(seconds_per_iteration(r)),
           result->method);
    remark(LEVEL_NORMAL, "residual %.6g (true), %.6g (recurrence); tolerance %.6g, ||b|| %.6g", result->true_residual,
           result->recurrence_residual, result->tolerance, result->norm_b);
    if (r->largest_error >= 0)
        remark(LEVEL_NORMAL, "largest error against %s: %.3g", r->random ? "the solution" : "ones", r->largest_error);
    rank_tell_check(r, "b - A x");
    if (r->verdict != SPMV_OK && r->check.failed_rows == 0)
        complain("CHECK FAILED: the solver reports a true residual of %.17g; computed again, it is %.17g",
                 result->true_residual, r->norm_r);
    if (r->failure[0] != '\0') {
        complain("%s", plain_sentence(r->failure));
        tell_next(r, r->stop);
    }
}

static json_t *json_solution(const struct rank *r)
{
    const spmv_cg_result *result = &r->result;
    const struct timing once = {r->seconds, r->seconds, r->seconds, 1};
    json_t *cg = json_pack(
        "{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:s, s:s, s:I}", "solver", "cg", "precond", r->precond_name, "status",
        status_word(r->stop), "iterations", (json_int_t)result->iterations, "rtol", json_number(r->job->o->rtol),
        "recurrence_residual", json_number(result->recurrence_residual), "true_residual",
        json_number(result->true_residual), "seconds_per_iteration", json_number(seconds_per_iteration(r)), "method",
        result->method, "why", result->why, "restarts", (json_int_t)result->restarts);
    if (r->largest_error >= 0)
        json_put(cg, "largest_error", json_number(r->largest_error));
    return json_pack("{s:o, s:s, s:O, s:o}", "seconds", json_timing(&once), "operation", "solve", "cg", cg, "solve",
                     cg);
}

static const struct rank_kind solve_kind = {.op = "cg",
                                            .answer = "x",
                                            .memory = JOB_SOLVE,
                                            .refusal = refuse_solve,
                                            .compute = compute_solution,
                                            .tell = tell_solution,
                                            .json = json_solution};

/* ---------------------------------------------------------------- results, on rank 0 */

/* The share of the time of rank 0 that it spends in exchanges and waits for other ranks. */
static double exchange_share(const struct rank *r)
{
    return r->seconds > 0 ? r->exchange_seconds / r->seconds : 0;
}

/* Whether ranks are on GPUs, so that there are several ways to exchange data. */
static bool exchanges(const struct rank *r)
{
    return spmv_context_backend(r->ctx) == SPMV_BACKEND_CUDA;
}

static void tell_ranks(const struct rank *r)
{
    const spmv_group_matrix_info *info = &r->info;
    remark(LEVEL_NORMAL, "%s: %lld x %lld, %lld nonzero%s, %s", r->job->in.argument, (long long)info->rows,
           (long long)info->cols, (long long)info->nnz, info->nnz == 1 ? "" : "s", spmv_type_name(info->type));
    remark(LEVEL_NORMAL, "on %d rank%s (%s%s%s), each %s", spmv_group_ranks(r->group),
           spmv_group_ranks(r->group) == 1 ? "" : "s", spmv_group_transport(r->group),
           exchanges(r) ? ", exchange " : "", exchanges(r) ? info->exchange : "", spmv_context_describe(r->ctx));
    remark(LEVEL_NORMAL, "method %s; %lld chunk%s of rows; the largest share of a rank is %.2f times the mean",
           info->method, (long long)info->chunks, plural(info->chunks), info->imbalance);
    remark(LEVEL_NORMAL,
           "halo: %lld element%s of x move%s for a product, at most %lld to a rank; %.0f %% of the time in "
           "exchange",
           (long long)info->all_ghosts, plural(info->all_ghosts), info->all_ghosts == 1 ? "s" : "",
           (long long)info->most_ghosts, 100 * exchange_share(r));
    if (info->note[0] != '\0')
        remark(LEVEL_NORMAL, "note: %s", info->note);
}

static json_t *json_ranks(const struct rank *r)
{
    const spmv_group_matrix_info *info = &r->info;
    return json_pack("{s:i, s:s, s:s, s:I, s:f, s:I, s:I, s:f, s:s}", "count", spmv_group_ranks(r->group), "transport",
                     spmv_group_transport(r->group), "exchange", info->exchange, "chunks", (json_int_t)info->chunks,
                     "imbalance", info->imbalance, "halo", (json_int_t)info->all_ghosts, "halo_largest",
                     (json_int_t)info->most_ghosts, "exchange_share", exchange_share(r), "note", info->note);
}

static spmv_status write_json(const struct rank *r)
{
    const struct ranks_job *job = r->job;
    json_t *root = json_begin(job->o), *result = job->kind->json(r);
    json_put(root, "machine", json_machine(spmv_context_threads(r->ctx)));
    json_put(root, "matrix",
             json_pack("{s:o, s:I, s:I, s:I}", "name",
                       json_text(job->in.name != NULL ? job->in.name : job->in.argument), "rows",
                       (json_int_t)r->info.rows, "cols", (json_int_t)r->info.cols, "nnz", (json_int_t)r->info.nnz));
    json_put(result, "op", json_string(job->kind->op));
    json_put(result, "backend", json_string(spmv_backend_name(spmv_context_backend(r->ctx))));
    json_put(result, "method", json_string(r->info.method));
    json_put(result, "type", json_string(spmv_type_name(r->info.type)));
    json_put(result, "plan_seconds", json_number(r->plan_seconds));
    json_put(result, "ranks", json_ranks(r));
    json_put(root, "result", result);
    if (job->o->verify != VERIFY_OFF)
        json_put(root, "verify",
                 json_pack("{s:s, s:o, s:I}", "reference", spmv_backend_name(spmv_context_backend(r->reference)),
                           "worst_error_over_bound", json_number(r->check.worst_ratio), "worst_row",
                           (json_int_t)r->check.worst_row));
    return json_finish(job->o, root);
}

static spmv_status write_history(const struct ranks_job *job)
{
    char *text = NULL;
    spmv_status st = allocate("the history", job->recorded + 1, NUMBER_TEXT + 24, (void **)&text);
    if (st != SPMV_OK)
        return st;
    char *to = text + sprintf(text, "iteration,residual\n");
    for (int64_t i = 0; i < job->recorded; i++) {
        to += sprintf(to, "%lld,", (long long)i);
        to += number_text(job->history[i], to);
        *to++ = '\n';
    }
    st = write_text(job->o->history, text, (size_t)(to - text));
    free(text);
    return st;
}

/* Writes all outputs even if one fails; returns the first failure. */
static spmv_status write_results(const struct rank *r)
{
    const struct ranks_job *job = r->job;
    spmv_status answer = SPMV_OK, json = SPMV_OK, history = SPMV_OK;
    if (job->answer_path != NULL)
        answer = write_answer(r->ctx, job->o, job->answer_path, r->info.type, r->all, r->info.rows, 1);
    if (job->kind == &solve_kind && job->o->history != NULL)
        history = write_history(job);
    if (job->o->json)
        json = write_json(r);
    return answer != SPMV_OK ? answer : history != SPMV_OK ? history : json;
}

/* ---------------------------------------------------------------- the ranks */

/* What each rank does. */
static spmv_status run_rank(spmv_group *group, void *user)
{
    struct ranks_job *job = user;
    struct rank r = {.job = job, .group = group, .ctx = spmv_group_context(group), .largest_error = -1};
    r.check.worst_row = -1;
    spmv_status st =
        rank_passed(&r, spmv_group_agree_on(group, SPMV_OK, "another command or other options", job->o->job_line));
    if (st == SPMV_OK)
        st = load_matrix(&r);
    if (st == SPMV_OK)
        st = job->kind->compute(&r);
    if (st != SPMV_OK)
        tell_next(&r, st);
    if (st == SPMV_OK) {
        spmv_status written = SPMV_OK;
        if (r.exchange_seconds == 0) {
            spmv_group_matrix_info info = {0};
            spmv_group_matrix_describe(r.m, &info, sizeof info);
            r.exchange_seconds = info.exchange_seconds;
        }
        if (rank_is_root(&r)) {
            written = write_results(&r);
            tell_ranks(&r);
            job->kind->tell(&r);
            job->told = true; /* whatever follows has been reported */
        }
        st = rank_agreed(&r, written, true);
        st = r.verdict != SPMV_OK ? r.verdict : st != SPMV_OK ? st : r.stop;
    }
    spmv_preconditioner_destroy(r.precond);
    spmv_free(r.ctx, r.x);
    spmv_free(r.ctx, r.y);
    spmv_free(r.ctx, r.b);
    free(r.all);
    spmv_group_matrix_destroy(r.m);
    spmv_context_destroy(r.reference);
    return st;
}

/* Ranks as threads. */
static spmv_status run_threads(struct ranks_job *job)
{
    const struct options *o = job->o;
    char message[1024];
    spmv_context_options context;
    spmv_group_run_options options;
    spmv_context_options_init(&context, sizeof context);
    spmv_group_run_options_init(&options, sizeof options);
    context.backend = o->gpus > 0 ? SPMV_BACKEND_CUDA : o->backend;
    context.device = o->device;
    context.threads = o->threads;
    context.on_event = tell_event;
    context.first_index = 1;
    options.context = &context;
    options.gpus = o->gpus;
    const spmv_status st =
        spmv_group_run_with(o->ranks > 0 ? o->ranks : o->gpus, &options, run_rank, job, message, sizeof message);
    if (st != SPMV_OK && !job->told)
        return report(st, message);
    return st;
}

/* Opens the context of this process. Launchers that bind a rank to its cores leave it only those;
 * with the others, the ranks of a host share its cores. */
static spmv_status open_rank_context(const struct options *given, spmv_context **ctx)
{
    struct options o = *given;
    const int number = spmv_group_local_rank();
    if (o.gpus > 0)
        o.backend = SPMV_BACKEND_CUDA;
    if (number >= 0 && spmv_backend_built(SPMV_BACKEND_CUDA) &&
        (o.backend == SPMV_BACKEND_CUDA || o.backend == SPMV_BACKEND_AUTO) && (o.gpus > 0 || o.device < 0))
        o.device = (o.device > 0 ? o.device : 0) + (o.gpus > 0 ? number % o.gpus : number);
    spmv_status st = open_context(&o, o.backend, ctx);
    if (st != SPMV_OK || o.threads > 0 || getenv("OMP_NUM_THREADS") != NULL)
        return st;
    const int threads = spmv_context_threads(*ctx), ranks = ranks_here();
    if (threads <= 1 || (long)threads * ranks <= sysconf(_SC_NPROCESSORS_ONLN))
        return st;
    o.threads = threads / ranks > 1 ? threads / ranks : 1;
    spmv_context_destroy(*ctx);
    *ctx = NULL;
    return open_context(&o, o.backend, ctx);
}

/* Ranks as processes. Only rank 0 prints. */
static spmv_status run_processes(struct ranks_job *job)
{
    spmv_context *ctx = NULL;
    spmv_group *group = NULL;
    spmv_status st = open_rank_context(job->o, &ctx);
    if (st == SPMV_OK)
        st = spmv_group_create_mpi(ctx, &group);
    if (st != SPMV_OK && ctx != NULL)
        report(st, spmv_last_error(ctx));
    if (st == SPMV_OK) {
        if (spmv_group_rank(group) != 0) {
            messages_open(LEVEL_QUIET);
            progress_allow(false);
        }
        st = run_rank(group, job);
        spmv_group_destroy(group);
    }
    spmv_context_destroy(ctx);
    return st;
}

spmv_status rank_run_job(const struct options *o, const struct rank_kind *kind, const char *const *arguments, int count)
{
    struct ranks_job job = {.o = o, .kind = kind, .arguments = arguments, .count = count};
    const char *refusal = kind->refusal(o);
    if (spmv_group_launcher() != NULL && o->ranks > 0)
        return report(SPMV_ERROR_ARGUMENT, "--ranks has no effect under mpirun, which says how many ranks there are");
    if (refusal == NULL && o->verify == VERIFY_BITWISE)
        refusal = "--verify=bitwise is not supported on several ranks";
    if (refusal == NULL && o->max_seconds > 0)
        refusal = "--max-seconds is not supported on several ranks";
    if (refusal != NULL)
        return report(SPMV_ERROR_UNSUPPORTED, refusal);
    /* the command has checked the other options */
    spmv_status st = kind->answer != NULL ? choose_answer(o, kind->answer, &job.answer_path) : SPMV_OK;
    if (st == SPMV_OK)
        st = spmv_group_launcher() == NULL ? run_threads(&job) : run_processes(&job);
    free(job.history);
    input_free(&job.in);
    return st;
}

spmv_status ranks_multiply(const struct options *o, const char *const *arguments, int count)
{
    return rank_run_job(o, &product_kind, arguments, count);
}

spmv_status ranks_solve(const struct options *o, const char *const *arguments, int count)
{
    return rank_run_job(o, &solve_kind, arguments, count);
}
