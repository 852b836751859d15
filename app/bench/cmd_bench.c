/* spmv bench: compares the times of spmv's methods and of other libraries for the same work.
 *
 * A run has a list of operands (matrices, or a number of elements), each in one or two types. Each
 * such case is a trial (bench/trial.h), whose figures are written when it ends.
 * docs/benchmarking.md describes the measurement.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/bench/bench_output.h"
#include "app/bench/bench_ranks.h"
#include "app/commands.h"
#include "app/input.h"
#include "app/job_memory.h"
#include "app/name_lists.h"
#include "app/options.h"
#include "app/output.h"
#include "app/place/place.h"
#include "app/stops.h"
#include "bench/devices/bandwidth_cache.h"
#include "bench/ops/op_load.h"
#include "bench/suites.h"
#include "core/plural.h"

/* Columns of x when --vectors is not given. */
enum { USUAL_VECTORS = 4, PATH_SIZE = 4096 };

struct bench {
    const struct options *o;
    struct counts widths; /* numbers of vectors to measure; other operations have one, 0 */
    int vectors;          /* the present one */
    struct bench_run run;
    struct device device;
    spmv_context *ctx, *checker;
    struct text_file table, csv, json;
    bool to_table, to_csv, to_json;
    bool csv_headed, table_headed;
    struct bench_summary summary;
    const char *const *operands; /* matrices */
    int operand_count;           /* at least 1: an operation on elements has one without a name */
    spmv_type types[2];
    int type_count;
    int done; /* number of finished cases */
    double began;
    double silent;  /* seconds after began until which nothing is told; 0: SILENT_SECONDS */
    char what[128]; /* the current case, for the progress line */
    const struct trial *trial;
    spmv_status verdict; /* the first failure of a check or a matrix */
};

/* ---------------------------------------------------------------- operation and operands */

static spmv_status choose_suite(struct bench *b)
{
    b->operands = suite_find(b->o->suite); /* options_check has checked the name */
    while (b->operands[b->operand_count] != NULL)
        b->operand_count++;
    return SPMV_OK;
}

static spmv_status choose_operands(struct bench *b, const char *const *arguments, int count)
{
    const struct options *const o = b->o;
    /* spmv, the default, with several vectors is spmm. */
    b->run.operation = operation_find(o->vectors.count > 0 && strcmp(o->op, "spmv") == 0 ? "spmm" : o->op);
    if (b->run.operation->on_file) {
        b->operands = arguments;
        b->operand_count = count;
        return bench_load_check(o, count);
    }
    const bool spmm = strcmp(b->run.operation->name, "spmm") == 0;
    const bool batch = strcmp(b->run.operation->name, "batch") == 0;
    const bool several = spmm || batch || strcmp(b->run.operation->name, "sddmm") == 0;
    b->widths =
        several && o->vectors.count > 0 ? o->vectors : (struct counts){.at = {several ? USUAL_VECTORS : 0}, .count = 1};
    if ((!several && o->vectors.count > 0) || (!spmm && option_given(o, "layout"))) {
        complain("--%s is for --op spmm%s, not for --op %s", option_given(o, "layout") ? "layout" : "vectors",
                 option_given(o, "layout") ? "" : ", sddmm and batch", o->op);
        return SPMV_ERROR_ARGUMENT;
    }
    b->run.solutions = option_given(o, "precond");
    if (b->run.solutions && !b->run.operation->solver) {
        complain("--precond is for --op cg, gmres and bicgstab, not for --op %s", o->op);
        return SPMV_ERROR_ARGUMENT;
    }
    if (option_given(o, "restart") && strcmp(o->op, "gmres") != 0) {
        complain("--restart is for --op gmres, not for --op %s", o->op);
        return SPMV_ERROR_ARGUMENT;
    }
    if (option_given(o, "max-iterations") && !b->run.operation->solver) {
        complain("--max-iterations is for --op cg, gmres and bicgstab, not for --op %s", o->op);
        return SPMV_ERROR_ARGUMENT;
    }
    if ((o->right != NULL || o->project != NULL) && strncmp(b->run.operation->name, "spgemm", 6) != 0) {
        complain("--%s is for --op spgemm and spgemm-numeric, not for --op %s", o->right != NULL ? "right" : "project",
                 o->op);
        return SPMV_ERROR_ARGUMENT;
    }
    if (o->right != NULL && o->project != NULL)
        return report(SPMV_ERROR_ARGUMENT, "either --right or --project, not both");
    if (type_is_half(o->type) && strcmp(b->run.operation->name, "spmv") != 0 && (!several || batch)) {
        complain("--type %s is for --op spmv, spmm and sddmm, not for --op %s", spmv_type_name(o->type), o->op);
        return SPMV_ERROR_TYPE;
    }
    if (!b->run.operation->on_matrix && type_is_complex(o->type)) {
        complain("--type %s is for --op spmv and load: the primitives have real numbers", spmv_type_name(o->type));
        return SPMV_ERROR_TYPE;
    }
    if (!b->run.operation->on_matrix) {
        b->operand_count = 1;
        if (count == 0 && o->suite == NULL)
            return SPMV_OK;
        complain("--op %s works on elements, not on matrices: give their number with --size", o->op);
        return SPMV_ERROR_ARGUMENT;
    }
    if (o->size != 0) {
        complain("--size is the number of elements of a primitive; --op %s works on matrices", o->op);
        return SPMV_ERROR_ARGUMENT;
    }
    if (count > 0 && o->suite != NULL)
        return report(SPMV_ERROR_ARGUMENT, "either matrices or --suite, not both");
    if (o->suite != NULL)
        return choose_suite(b);
    if (count == 0)
        return report(SPMV_ERROR_ARGUMENT, "give matrices to measure, or a suite: --suite small");
    b->operands = arguments;
    b->operand_count = count;
    return check_standard_input(o, arguments, count);
}

/* A suite runs in f64 and f32 unless --type is given; a solver runs in f64. */
static void choose_types(struct bench *b)
{
    b->types[0] = b->o->type;
    b->type_count = 1;
    if (b->o->suite == NULL || option_given(b->o, "type") || b->run.operation->solver)
        return;
    b->types[0] = SPMV_F64;
    b->types[1] = SPMV_F32;
    b->type_count = 2;
}

static spmv_status choose_outputs(struct bench *b)
{
    const struct options *const o = b->o;
    const bool json_is_answer = o->json && o->json_path == NULL, csv_is_answer = o->csv && o->csv_path == NULL;
    if (json_is_answer && csv_is_answer)
        return report(SPMV_ERROR_ARGUMENT,
                      "both JSON and CSV cannot go to standard output: name a file with --json=FILE or --csv=FILE");
    b->to_table = !json_is_answer && !csv_is_answer;
    return SPMV_OK;
}

static spmv_status open_outputs(struct bench *b)
{
    const struct options *const o = b->o;
    spmv_status st = text_file_open(NULL, &b->table);
    if (o->csv)
        st = text_file_open(o->csv_path, &b->csv);
    b->to_csv = o->csv && st == SPMV_OK;
    if (st == SPMV_OK && o->json)
        st = text_file_open(o->json_path, &b->json);
    b->to_json = o->json && st == SPMV_OK;
    return st;
}

/* ---------------------------------------------------------------- devices and contexts */

/* Opens the backend, its device, and another backend for checks. */
static spmv_status open_places(struct bench *b)
{
    const struct options *const o = b->o;
    char why[WHY_SIZE] = "";
    spmv_context *first = NULL;
    const bool on_file = b->run.operation->on_file;
    const spmv_backend asked = on_file && o->backend == SPMV_BACKEND_AUTO ? SPMV_BACKEND_OMP : o->backend;
    spmv_status st = open_context(o, asked, &first); /* resolves auto */
    if (st != SPMV_OK)
        return st;
    b->run.backend = spmv_context_backend(first);
    const int threads = spmv_context_threads(first);
    /* Before the first team of threads, which may spin after its work. */
    const struct machine_load load = machine_load_measure();
    const bool gpu = b->run.backend == SPMV_BACKEND_CUDA && !on_file;
    bench_trust_begin(&b->run.trust, &load, gpu ? 1 : threads);
    const int failed = gpu ? device_open_cuda(o->device, &b->device, why) : device_open_cpu(threads, &b->device, why);
    spmv_context_destroy(first);
    if (failed != 0)
        return report(gpu ? SPMV_ERROR_DEVICE : SPMV_ERROR_MEMORY, why);
    st = open_context_on(o, b->run.backend, b->device.stream, &b->ctx);
    if (st == SPMV_OK)
        st = open_context(o, b->run.backend == SPMV_BACKEND_OMP ? SPMV_BACKEND_REF : SPMV_BACKEND_OMP, &b->checker);
    return st;
}

/* Takes the bandwidth from an earlier run on this machine. Otherwise measures it, and caches it if
 * the machine was quiet. */
static spmv_status measure_roof(struct bench *b)
{
    char why[WHY_SIZE] = "", folder[PATH_SIZE], key[BANDWIDTH_KEY_SIZE];
    const int64_t now = (int64_t)time(NULL);
    const bool cached = user_cache_folder(folder, sizeof folder);
    bandwidth_key(&b->device, key);
    if (cached && bandwidth_recall(folder, key, now, &b->run.bandwidth, &b->run.bandwidth_age))
        return SPMV_OK;
    b->run.bandwidth_age = -1;
    if (b->device.functions->bandwidth(&b->device, &b->run.bandwidth, why) != 0)
        return report(SPMV_ERROR_MEMORY, why);
    if (cached && b->run.trust.doubt[0] == '\0')
        bandwidth_keep(folder, key, now, &b->run.bandwidth);
    return SPMV_OK;
}

/* ---------------------------------------------------------------- progress */

static int cases_of_operand(const struct bench *b)
{
    return b->type_count * b->widths.count;
}

static int cases(const struct bench *b)
{
    return b->operand_count * cases_of_operand(b);
}

static int on_tick(void *user, int contender)
{
    const struct bench *const b = user;
    const int total = cases(b);
    const double spent = monotonic_seconds() - b->began;
    char left[64] = "";
    if (b->done > 0)
        snprintf(left, sizeof left, "; about %.0f s left", spent / b->done * (total - b->done));
    progress_show(b->began, "%d of %d: %s, %s%s", b->done + 1, total, b->what,
                  contender >= 0 ? b->trial->results[contender].candidate->name : "preparing", left);
    return stops_asked();
}

/* The longest time without a line on standard error that is no terminal; it doubles. */
static const double SILENT_SECONDS = 15;

/* Called in each iteration of a solve, which may take minutes. */
static int on_iteration(int64_t iteration, double residual, void *user)
{
    struct bench *const b = user;
    const double spent = monotonic_seconds() - b->began;
    progress_show(b->began, "%d of %d: %s, solving: iteration %lld, residual %.3g", b->done + 1, cases(b), b->what,
                  (long long)iteration, residual);
    if (spent > (b->silent > 0 ? b->silent : SILENT_SECONDS) && !isatty(STDERR_FILENO)) {
        remark(LEVEL_NORMAL, "%d of %d: %s, after %s: iteration %lld of a solve, residual %.3g; several follow",
               b->done + 1, cases(b), b->what, seconds_text(spent), (long long)iteration, residual);
        b->silent = 2 * spent;
    }
    return stops_asked();
}

/* ---------------------------------------------------------------- one case */

static void keep_verdict(struct bench *b, spmv_status status)
{
    if (b->verdict == SPMV_OK)
        b->verdict = status;
}

/* Whether the failure only says that a preconditioner that "all" names is not for this matrix. */
static bool is_unsuited(const struct bench *b, const struct result *r)
{
    const int class = spmv_status_class(r->failed_status); /* 7: no convergence, 8: an unsuited matrix */
    return b->run.solutions && r->candidate->optional &&
           (r->failed_status == SPMV_ERROR_UNSUPPORTED ||
            (b->run.operation->unsymmetric && (class == 7 || class == 8)));
}

/* Reports wrong results. Wrong results or changing bits of spmv make the run fail; those of a peer
 * do not. */
static void judge(struct bench *b, const struct bench_case *c)
{
    for (int i = 0; i < c->trial->count; i++) {
        const struct result *const r = &c->trial->results[i];
        if (r->wrong)
            complain("CHECK FAILED: %s %s by %s: error %.3g times the bound at element %lld", c->name,
                     spmv_type_name(c->trial->work.type), r->candidate->name, r->worst_ratio,
                     (long long)r->worst_at + 1);
        if (!r->candidate->ours)
            continue;
        if (r->bit_different > 0 && !r->figures.bits_may_differ)
            complain("CHECK FAILED: %s %s by %s: %d of %d repeats gave different bits", c->name,
                     spmv_type_name(c->trial->work.type), r->candidate->name, r->bit_different, r->bit_repeats);
        if (is_unsuited(b, r))
            continue;
        if (r->failed[0] != '\0')
            complain("%s %s by %s: %s", c->name, spmv_type_name(c->trial->work.type), r->candidate->name,
                     plain_sentence(r->failed));
        if (r->wrong || (r->bit_different > 0 && !r->figures.bits_may_differ))
            keep_verdict(b, SPMV_ERROR_CHECK);
        else if (r->failed[0] != '\0')
            keep_verdict(b, r->failed_status);
    }
}

static spmv_status put_out(struct bench *b, const struct bench_case *c)
{
    spmv_status st = SPMV_OK;
    progress_end();
    if (b->to_table)
        st = bench_table(&b->table, &b->run, c, !b->table_headed);
    if (st == SPMV_OK && b->to_csv)
        st = bench_csv(&b->csv, &b->run, c, !b->csv_headed);
    if (st == SPMV_OK && b->to_json)
        st = bench_json(&b->json, &b->run, c);
    b->table_headed = b->csv_headed = true;
    trial_trust(c->trial, &b->run.trust);
    if (st == SPMV_OK)
        st = bench_summary_add(&b->summary, c);
    return st;
}

static spmv_status run_case(struct bench *b, const struct operand *operand, struct bench_case *c, spmv_type type)
{
    struct trial *const trial = calloc(1, sizeof *trial);
    if (trial == NULL)
        return report(SPMV_ERROR_MEMORY, "no memory for a trial");
    trial->work = (struct work){.operation = b->run.operation,
                                .operand = operand,
                                .device = &b->device,
                                .ctx = b->ctx,
                                .checker = b->checker,
                                .type = type,
                                .compression = plan_compression(b->o, b->run.backend, b->run.operation->solver),
                                .vectors = b->vectors,
                                .layout = b->o->layout,
                                .restart = b->o->restart,
                                .max_iterations = b->o->max_iterations,
                                .on_iteration = b->run.backend == SPMV_BACKEND_CUDA ? NULL : on_iteration,
                                .user = b,
                                .solutions = b->run.solutions};
    trial->list = &b->run.list;
    measure_defaults(b->run.backend == SPMV_BACKEND_CUDA, &trial->options);
    trial->read_gbs = b->run.bandwidth.read_gbs;
    trial->copy_gbs = b->run.bandwidth.copy_gbs;
    trial->tick = on_tick;
    trial->user = b;
    b->trial = trial;
    c->trial = trial;
    snprintf(b->what, sizeof b->what, "%s%s%s", c->name, operand->path == NULL ? " " : "",
             operand->path == NULL ? spmv_type_name(type) : "");
    spmv_status st = trial_run(trial);
    progress_end();
    if (st == SPMV_OK && !trial->ended && operand->path != NULL)
        st = load_figures(&trial->work)->status; /* status of a failed reading */
    if (st != SPMV_OK && operand->path != NULL) {
        report(st, trial->work.error);
    } else if (st != SPMV_OK) {
        complain("%s %s: %s", c->name, spmv_type_name(type), plain_sentence(trial->work.error));
    } else if (!trial->ended) {
        judge(b, c);
        st = put_out(b, c);
    }
    trial_close(trial);
    free(trial);
    b->done++;
    return st;
}

/* Completes the SPEC. Values are random, so that no method profits from repeated ones; for a solver
 * they are the generator's own, which are positive definite. */
static void complete_spec(const struct bench *b, const char *argument, char *text, size_t size)
{
    const struct operation *const operation = b->run.operation;
    const bool random = !operation->solver && !operation->keeps_values && strstr(argument, "values=") == NULL;
    char seed[32] = "";
    if (strstr(argument, "seed=") == NULL)
        snprintf(seed, sizeof seed, ",seed=%lld", (long long)b->o->seed);
    snprintf(text, size, "%s%s%s", argument, random ? ",values=random" : "", seed);
}

/* Loads a matrix in the type of o. */
static spmv_status load_matrix(const struct bench *b, const struct options *o, const char *argument, struct input *in,
                               bool *spec)
{
    char text[1024];
    *spec = !file_exists(argument) && spmv_spec_known(argument);
    if (*spec)
        complete_spec(b, argument, text, sizeof text);
    progress_show(b->began, "%d of %d: %s", b->done + 1, cases(b), argument);
    return input_load(b->checker, o, JOB_BENCH, *spec ? text : argument, in);
}

/* The other factor of --right or --project. */
static const char *other_factor(const struct options *o)
{
    return o->right != NULL ? o->right : o->project;
}

static spmv_status run_matrix(struct bench *b, const char *argument)
{
    struct input in = {0}, other = {0};
    const char *const factor = other_factor(b->o);
    spmv_statistics statistics;
    struct options o = *b->o;
    bool spec = false, factor_spec = false;
    o.type = type_is_complex(b->o->type) ? SPMV_C128 : SPMV_F64; /* each trial converts to its type */
    spmv_status st = load_matrix(b, &o, argument, &in, &spec);
    if (st == SPMV_OK && factor != NULL)
        st = load_matrix(b, &o, factor, &other, &factor_spec);
    if (st == SPMV_OK) {
        st = spmv_matrix_statistics(b->checker, &in.view, &statistics, sizeof statistics);
        if (st != SPMV_OK)
            report(st, spmv_last_error(b->checker));
    }
    const struct operand operand = {.matrix = &in.view,
                                    .right = b->o->right != NULL ? &other.view : NULL,
                                    .project = b->o->project != NULL ? &other.view : NULL,
                                    .seed = (uint64_t)b->o->seed};
    const char *const name = spec ? argument : in.name;
    char longer[1024];
    if (st == SPMV_OK && factor != NULL)
        snprintf(longer, sizeof longer, "%s, %s %s", name, b->o->right != NULL ? "times" : "projected by",
                 factor_spec ? factor : other.name);
    /* Without --type, a complex file is measured in its own type. */
    const spmv_type own = input_type(&o, &in);
    for (int i = 0; st == SPMV_OK && i < cases_of_operand(b) && !stops_asked(); i++) {
        const spmv_type type = b->types[i % b->type_count];
        b->vectors = b->widths.at[i / b->type_count];
        if (b->vectors > 0)
            snprintf(longer, sizeof longer, "%s, %d vector%s", name, b->vectors, plural(b->vectors));
        struct bench_case c = {
            .name = b->vectors > 0 || factor != NULL ? longer : name, .in = &in, .statistics = &statistics};
        st = run_case(b, &operand, &c, type_is_complex(own) && !option_given(b->o, "type") ? own : type);
    }
    input_free(&in);
    input_free(&other);
    return st;
}

static spmv_status run_file(struct bench *b, const char *path)
{
    const struct operand operand = {.path = path,
                                    .read_type = option_given(b->o, "type") ? b->o->type : SPMV_TYPE_DEFAULT};
    struct bench_case c = {.name = path};
    return run_case(b, &operand, &c, b->types[0]);
}

/* Mean length of segments, as in published figures of the peers. */
enum { MEAN_SEGMENT = 32 };

static spmv_status run_elements(struct bench *b)
{
    const bool gpu = b->run.backend == SPMV_BACKEND_CUDA;
    const int64_t standard = (int64_t)1 << (gpu ? 26 : 24);
    const struct operand operand = {
        .n = b->o->size != 0 ? b->o->size : standard, .mean_segment = MEAN_SEGMENT, .seed = (uint64_t)b->o->seed};
    char name[32];
    snprintf(name, sizeof name, "n=%lld", (long long)operand.n);
    struct bench_case c = {.name = name};
    return run_case(b, &operand, &c, b->types[0]);
}

/* A failure with one matrix is reported, and the other matrices are measured. A device failure, a
 * full disk and an unknown method end the run. */
static bool ends_the_run(spmv_status status)
{
    return spmv_status_class(status) == 6 || status == SPMV_ERROR_WRITE || status == SPMV_ERROR_METHOD;
}

static spmv_status run_all(struct bench *b)
{
    const bool on_file = b->run.operation->on_file;
    if (!b->run.operation->on_matrix && !on_file)
        return run_elements(b);
    for (int i = 0; i < b->operand_count && !stops_asked(); i++) {
        const spmv_status st = on_file ? run_file(b, b->operands[i]) : run_matrix(b, b->operands[i]);
        if (st != SPMV_OK && (ends_the_run(st) || b->operand_count == 1))
            return st;
        keep_verdict(b, st);
        b->done = (i + 1) * cases_of_operand(b);
    }
    return SPMV_OK;
}

static spmv_status close_outputs(struct bench *b, bool keep)
{
    const spmv_status csv = b->to_csv ? text_file_close(&b->csv, keep) : SPMV_OK;
    const spmv_status json = b->to_json ? text_file_close(&b->json, keep) : SPMV_OK;
    return csv != SPMV_OK ? csv : json;
}

/* Writes the summary and the reliability of the figures: below the table, or to standard error. */
static spmv_status summarize(struct bench *b)
{
    char text[WHY_SIZE];
    struct text_file errors = {.errors = true};
    struct text_file *const file = b->to_table ? &b->table : &errors;
    spmv_status st = SPMV_OK;
    if (b->o->summary)
        st = bench_summary_print(&b->summary, file);
    bench_trust_text(&b->run.trust, text, sizeof text);
    if (st == SPMV_OK && b->run.trust.rows > 0 && text[0] != '\0' && (b->to_table || messages_level() > LEVEL_QUIET))
        st = bench_wrap(file, "# ", text);
    return st == SPMV_OK ? finish_stdout() : st;
}

/* --rung or --method: names of the operation's ways on the backend, separated by commas. */
static const char *ways(const struct bench *b)
{
    return option_given(b->o, "rung") ? b->o->rung : b->o->method;
}

static spmv_status check_ways(const struct bench *b)
{
    const bool rungs = option_given(b->o, "rung");
    if (rungs && option_given(b->o, "method"))
        return report(SPMV_ERROR_ARGUMENT, "an operation has rungs or methods: give --rung or --method");
    struct names names = {.count = 0};
    names_add(&names, "auto");
    names_add(&names, "all");
    for (int i = 0; b->run.operation->methods.name(b->run.backend, i) != NULL; i++)
        names_add(&names, b->run.operation->methods.name(b->run.backend, i));
    return names_check(&names, rungs ? "rung" : "method", ways(b), true);
}

/* Refuses options without effect on this run. */
static spmv_status check_effects(const struct bench *b)
{
    bool random = !b->run.operation->solver;
    for (int i = 0; i < b->operand_count && !random; i++)
        random = !file_exists(b->operands[i]);
    if (!random && option_given(b->o, "seed"))
        return report(SPMV_ERROR_ARGUMENT, "--seed has no effect: systems from files have no random numbers");
    if (b->o->summary && strcmp(b->o->peers, "none") == 0)
        return report(SPMV_ERROR_ARGUMENT,
                      "--summary has no effect: it compares with peers, and --peers none has none");
    return SPMV_OK;
}

static spmv_status prepare(struct bench *b, const char *const *arguments, int count)
{
    char why[WHY_SIZE] = "";
    spmv_status st = choose_operands(b, arguments, count);
    if (st == SPMV_OK)
        st = check_effects(b);
    if (st == SPMV_OK)
        st = choose_outputs(b);
    choose_types(b);
    if (st == SPMV_OK)
        st = open_places(b);
    if (st == SPMV_OK)
        st = check_ways(b);
    if (st != SPMV_OK)
        return st;
    st = candidate_list_make(b->run.operation, b->run.backend, b->run.solutions, ways(b), b->o->peers, NULL,
                             &b->run.list, why);
    if (st != SPMV_OK)
        return report(st, why);
    if (b->run.list.count == 0) {
        complain("--op %s: there is no method and no peer on %s", b->o->op, spmv_backend_name(b->run.backend));
        return SPMV_ERROR_UNSUPPORTED;
    }
    if (b->run.solutions)
        st = candidate_list_precondition(b->run.operation, b->o->precond, &b->run.list, why);
    if (st != SPMV_OK)
        return report(st, why);
    st = open_outputs(b);
    return st == SPMV_OK && !b->run.operation->on_file ? measure_roof(b) : st;
}

spmv_status run_bench(const struct options *o, const char *const *arguments, int count)
{
    struct bench b = {.o = o, .began = monotonic_seconds()};
    if (place_has_ranks(o))
        return bench_on_ranks(o, arguments, count);
    b.run.o = o;
    b.run.device = &b.device;
    stops_defer();
    spmv_status st = prepare(&b, arguments, count);
    if (st == SPMV_OK) {
        st = run_all(&b);
        progress_end();
        if (stops_asked())
            complain("interrupted: the results so far are kept");
        const spmv_status closed = close_outputs(&b, b.done > 0 && st != SPMV_ERROR_METHOD);
        st = st != SPMV_OK ? st : closed;
        const spmv_status told = summarize(&b);
        st = st != SPMV_OK ? st : told;
        st = st != SPMV_OK ? st : b.verdict;
        st = st == SPMV_OK && stops_asked() ? SPMV_CANCELLED : st;
    } else {
        close_outputs(&b, false);
    }
    bench_summary_free(&b.summary);
    spmv_context_destroy(b.ctx);
    spmv_context_destroy(b.checker);
    device_close(&b.device);
    return st;
}
