/* The benchmark: rounds measured with an artificial clock, the choice of candidates, and whether
 * trials detect wrong results.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/candidate_list.h"
#include "bench/devices/bandwidth_cache.h"
#include "bench/devices/machine.h"
#include "bench/measure.h"
#include "bench/ops/op_load.h"
#include "bench/peers/peer_list.h"
#include "bench/quiet.h"
#include "bench/suites.h"
#include "bench/trial.h"
#include "tests/support/support.h"

/* --------------------------------------------------------------- a device with artificial times */

struct made_up {
    double cost, noise; /* seconds of a run; every other batch takes 1 + noise times as long */
    int runs, batches, flushed, fails_at;
    char letter;
};
static char order[4096];
static int flushes;

static void note(char letter)
{
    const size_t length = strlen(order);
    if (length + 1 < sizeof order) {
        order[length] = letter;
        order[length + 1] = '\0';
    }
}

static int run_made_up(void *state)
{
    struct made_up *const m = state;
    m->runs++;
    return m->fails_at > 0 && m->runs >= m->fails_at ? -1 : 0;
}

static int batch_made_up(struct device *device, int (*run)(void *), void *state, int repeats, double *seconds,
                         char *why)
{
    struct made_up *const m = state;
    (void)device;
    for (int i = 0; i < repeats; i++)
        if (run(state) != 0) {
            snprintf(why, WHY_SIZE, "run %d of %c failed", m->runs, m->letter);
            return -1;
        }
    *seconds = m->cost * repeats;
    if (repeats > 1) {
        note(m->letter);
        *seconds *= ++m->batches % 2 == 0 ? 1 : 1 + m->noise;
    }
    return 0;
}

static int flushed_made_up(struct device *device, int (*run)(void *), void *state, int repeats, double *samples,
                           char *why)
{
    struct made_up *const m = state;
    (void)device;
    (void)why;
    for (int i = 0; i < repeats; i++) {
        run(state);
        samples[i] = 2 * m->cost;
        m->flushed++;
    }
    return 0;
}

static int flush_made_up(struct device *device, char *why)
{
    (void)device;
    (void)why;
    flushes++;
    return 0;
}

static int wait_made_up(struct device *device, char *why)
{
    (void)device;
    (void)why;
    return 0;
}

static const struct device_functions made_up_functions = {
    .time_batch = batch_made_up, .time_flushed = flushed_made_up, .flush = flush_made_up, .wait = wait_made_up};

static const struct measure_options options = {.batch_seconds = 1e-3,
                                               .most_runs = 1000,
                                               .least_rounds = 5,
                                               .most_rounds = 20,
                                               .spread = 0.01,
                                               .flushed_rounds = 3,
                                               .flushed_runs = 4,
                                               .budget_seconds = 10};

static void measure_made_up(struct made_up *m, int count, struct contender *c, measure_tick tick, void *user)
{
    struct device device = {.functions = &made_up_functions};
    char why[WHY_SIZE] = "";
    order[0] = '\0';
    for (int i = 0; i < count; i++) {
        c[i] = (struct contender){.run = run_made_up, .state = &m[i]};
        m[i].letter = (char)('a' + i);
    }
    assert_int_equal(measure(&device, c, count, &options, tick, user, why), 0);
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

/* Candidates without noise: batches as long as requested, the minimum number of rounds, the exact
 * cost. */
static void quiet_figures(void **state)
{
    (void)state;
    struct made_up m[2] = {{.cost = 1e-5}, {.cost = 0.3}};
    struct contender c[2];
    measure_made_up(m, 2, c, NULL, NULL);
    assert_true(near(c[0].warm.median, 1e-5) && near(c[1].warm.median, 0.3));
    assert_true(c[0].batch >= 100 && c[0].batch <= 800 && c[1].batch == 1);
    assert_int_equal(c[0].warm.repeats, 5);
    assert_int_equal(c[1].warm.repeats, 5);
    assert_int_equal(c[0].flushed.repeats, 12);
    assert_int_equal(m[1].flushed, 12);
    assert_true(near(c[0].flushed.median, 2e-5));
}

/* The spread decides the number of rounds: one noisy candidate extends the measurement of all. */
static void noisy_figures(void **state)
{
    (void)state;
    struct made_up m[2] = {{.cost = 1e-4}, {.cost = 1e-4, .noise = 0.5}};
    struct contender c[2];
    measure_made_up(m, 2, c, NULL, NULL);
    assert_int_equal(c[0].warm.repeats, 20);
    assert_int_equal(c[1].warm.repeats, 20);
    assert_true(near(c[0].warm.min, c[0].warm.max));
    assert_true(near(c[1].warm.max, 1.5 * c[1].warm.min));
}

/* Batches of three candidates alternate, and each round starts with another one. */
static void taking_turns(void **state)
{
    (void)state;
    struct made_up m[3] = {{.cost = 1e-4}, {.cost = 1e-4}, {.cost = 1e-4}};
    struct contender c[3];
    measure_made_up(m, 3, c, NULL, NULL);
    assert_non_null(strstr(order, "abcbcacababcbca"));
}

/* A failing candidate is left out with its message; the figures of the others remain. */
static void failing_contender(void **state)
{
    (void)state;
    struct made_up m[3] = {{.cost = 1e-4}, {.cost = 1e-4, .fails_at = 60}, {.cost = 1e-4}};
    struct contender c[3];
    measure_made_up(m, 3, c, NULL, NULL);
    assert_true(c[1].failed && !c[0].failed && !c[2].failed);
    assert_string_equal(c[1].why, "run 60 of b failed");
    assert_true(c[1].warm.repeats == 0 && c[1].warm.median == 0);
    assert_true(c[0].warm.repeats == 5 && c[2].warm.repeats == 5);
}

static int stop_after(void *user, int contender)
{
    (void)contender;
    return --*(int *)user < 0;
}

static void ended_early(void **state)
{
    (void)state;
    int ticks = 2 + 2 * 3;
    struct made_up m[2] = {{.cost = 1e-4}, {.cost = 1e-4}};
    struct contender c[2];
    measure_made_up(m, 2, c, stop_after, &ticks);
    assert_int_equal(c[0].warm.repeats, 3);
    assert_int_equal(c[1].warm.repeats, 3);
    assert_int_equal(c[0].flushed.repeats, 0);
}

static int timed_elsewhere(void *state, int repeats, double *seconds)
{
    struct made_up *const m = state;
    *seconds = m->cost * repeats;
    return 0;
}

/* A peer with its own clock reports its times. The caches are emptied before each of its flushed
 * runs. */
static void own_clock(void **state)
{
    (void)state;
    struct made_up m = {.cost = 7e-4};
    struct contender c = {.run = run_made_up, .run_timed = timed_elsewhere, .state = &m};
    struct device device = {.functions = &made_up_functions};
    char why[WHY_SIZE];
    flushes = 0;
    assert_int_equal(measure(&device, &c, 1, &options, NULL, NULL, why), 0);
    assert_true(near(c.warm.median, 7e-4) && near(c.flushed.median, 7e-4));
    assert_int_equal(flushes, 12);
    assert_int_equal(m.runs, 0);
}

/* A candidate with long runs has no run before its batches and is warm after one run. */
static void long_runs(void **state)
{
    (void)state;
    struct measure_options o = options;
    struct made_up m[2] = {{.cost = 0.7}, {.cost = 0.4}};
    struct device device = {.functions = &made_up_functions};
    struct contender c[2];
    char why[WHY_SIZE] = "";
    for (int i = 0; i < 2; i++)
        c[i] = (struct contender){.run = run_made_up, .state = &m[i]};
    o.long_seconds = 0.5;
    o.flushed_rounds = 0;
    assert_int_equal(measure(&device, c, 2, &o, NULL, NULL, why), 0);
    assert_int_equal(m[0].runs, 1 + 5);         /* one to estimate the time, one a round */
    assert_int_equal(m[1].runs, 1 + 1 + 5 * 2); /* one to estimate, one to confirm, two a round */
    assert_true(near(c[0].warm.median, 0.7) && near(c[1].warm.median, 0.4));
}

static void spread_by_hand(void **state)
{
    (void)state;
    double samples[] = {5, 1, 4, 2, 3}, alike[] = {2, 2, 2};
    assert_true(near(measure_spread(samples, 5), 1.58 * (4 - 2) / (sqrt(5) * 3)));
    assert_true(measure_spread(alike, 3) == 0);
    assert_true(isinf(measure_spread(samples, 1)));
}

/* ---------------------------------------------------------------- choice of candidates */

static const struct candidate *candidate_of(const struct candidate_list *list, const char *name)
{
    for (int e = 0; e < list->count; e++)
        if (strcmp(list->candidates[e].name, name) == 0)
            return &list->candidates[e];
    return NULL;
}

/* The folder in the build tree with the module fake_peer.c. */
static const char *fake_peers(void)
{
    const char *const folder = getenv("SPMV_FAKE_PEERS");
    if (folder == NULL && support_backend != SPMV_BACKEND_CUDA)
        fail_msg("SPMV_FAKE_PEERS should name the folder of fake peers");
    if (folder == NULL)
        skip();
    return folder;
}

/* Every module, and every peer of it, is a name of --peers. */
static void peers_are_listed(void **state)
{
#define PEERS(module, backend, peers, operations, package) #module " " peers " "
    char text[] = "all none " PEER_MODULE_LIST(PEERS);
#undef PEERS
    struct names names = {.count = 0};
    (void)state;
    candidate_list_peers(&names);
    for (const char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        assert_true(names_find(&names, word, strlen(word)) >= 0);
}

static void choosing(void **state)
{
    (void)state;
    const char *const fakes = fake_peers();
    static struct candidate_list r;
    char why[WHY_SIZE] = "";
    const struct operation *const spmv = operation_find("spmv"), *const map = operation_find("map");
    assert_int_equal(candidate_list_make(spmv, SPMV_BACKEND_OMP, false, "tiles,auto,tiles", "none", fakes, &r, why),
                     SPMV_OK);
    assert_int_equal(r.count, 2);
    assert_string_equal(r.candidates[0].name, "tiles");
    assert_string_equal(r.candidates[1].name, "auto");
    assert_int_equal(candidate_list_make(spmv, SPMV_BACKEND_OMP, false, "all", "none", fakes, &r, why), SPMV_OK);
    assert_non_null(candidate_of(&r, "auto"));
    for (int i = 0; spmv_method_name(SPMV_BACKEND_OMP, i) != NULL; i++)
        assert_non_null(candidate_of(&r, spmv_method_name(SPMV_BACKEND_OMP, i)));

    /* a peer, a module, a peer of another backend, and a peer without its module */
    assert_int_equal(
        candidate_list_make(spmv, SPMV_BACKEND_OMP, false, NULL, "loops-merge,cub-scan,eigen", fakes, &r, why),
        SPMV_OK);
    assert_int_equal(r.count, 4);
    assert_true(r.candidates[0].ours);
    assert_non_null(candidate_of(&r, "loops-merge")->peer);
    assert_string_equal(candidate_of(&r, "loops-merge")->module->library, "fake 1");
    assert_non_null(strstr(candidate_of(&r, "cub-scan")->missing, "cuda"));
    assert_non_null(strstr(candidate_of(&r, "eigen")->missing, "libeigen3-dev"));
    assert_null(candidate_of(&r, "eigen")->peer);
    assert_int_equal(candidate_list_make(spmv, SPMV_BACKEND_OMP, false, NULL, "loops", fakes, &r, why), SPMV_OK);
    assert_int_equal(r.count, 4);

    /* all: every peer of the backend for the operation, installed or not */
    assert_int_equal(candidate_list_make(spmv, SPMV_BACKEND_OMP, false, NULL, NULL, fakes, &r, why), SPMV_OK);
    assert_non_null(candidate_of(&r, "petsc"));
    assert_null(candidate_of(&r, "cusparse-sell"));
    assert_int_equal(candidate_list_make(map, SPMV_BACKEND_OMP, false, NULL, "all", fakes, &r, why), SPMV_OK);
    assert_int_equal(r.count, 1);
    assert_int_equal(candidate_list_make(operation_find("scan"), SPMV_BACKEND_OMP, false, NULL, "all", fakes, &r, why),
                     SPMV_OK);
    assert_int_equal(r.count, 2);
    assert_non_null(strstr(candidate_of(&r, "tbb-scan")->missing, "libtbb-dev"));
    assert_int_equal(candidate_list_make(operation_find("scan"), SPMV_BACKEND_CUDA, false, NULL, "all", fakes, &r, why),
                     SPMV_OK);
    assert_int_equal(r.count, 2);
    assert_non_null(candidate_of(&r, "cub-scan"));

    assert_int_equal(candidate_list_make(spmv, SPMV_BACKEND_OMP, false, NULL, "loops,ours", fakes, &r, why),
                     SPMV_ERROR_ARGUMENT);
    assert_non_null(strstr(why, "unknown peer \"ours\""));
    assert_non_null(strstr(why, "graphblas"));
}

/* ---------------------------------------------------------------- trials */

/* The device and the contexts of a test, what it measures, and its candidates. */
static struct places {
    struct device device;
    spmv_context *ctx, *checker;
} places;
static struct trial trial;
static struct candidate_list candidates;

static int open_places(void **state)
{
    char why[WHY_SIZE] = "";
    const spmv_backend other = support_backend == SPMV_BACKEND_OMP ? SPMV_BACKEND_REF : SPMV_BACKEND_OMP;
    spmv_context_options o = support_context_options();
    (void)state;
    const int failed = support_backend == SPMV_BACKEND_CUDA ? device_open_cuda(-1, &places.device, why)
                                                            : device_open_cpu(2, &places.device, why);
    if (failed != 0) {
        print_error("%s\n", why);
        return failed;
    }
    o.backend = support_backend;
    o.stream = places.device.stream;
    o.threads = 2;
    if (spmv_context_create(&o, &places.ctx) != SPMV_OK) {
        print_error("%s\n", spmv_last_error(NULL));
        return -1;
    }
    places.checker = support_context_on(other, 2);
    return 0;
}

static int close_places(void **state)
{
    (void)state;
    spmv_context_destroy(places.ctx);
    spmv_context_destroy(places.checker);
    device_close(&places.device);
    return 0;
}
#define in_places(test) cmocka_unit_test_setup_teardown(test, open_places, close_places)

/* Makes the list of candidates; folder: of the modules of peers, NULL for the usual ones. */
static void choose(const struct operation *operation, const char *methods, const char *peers, const char *folder)
{
    char why[WHY_SIZE] = "";
    if (candidate_list_make(operation, support_backend, false, methods, peers, folder, &candidates, why) != SPMV_OK)
        fail_msg("%s", why);
}

static void start_trial(const struct operation *operation, const struct operand *operand, spmv_type type)
{
    trial = (struct trial){.work = {.operation = operation,
                                    .operand = operand,
                                    .device = &places.device,
                                    .ctx = places.ctx,
                                    .checker = places.checker,
                                    .type = type},
                           .list = &candidates,
                           .options = {.batch_seconds = 1e-5,
                                       .most_runs = 10,
                                       .least_rounds = 2,
                                       .most_rounds = 2,
                                       .spread = 0.01,
                                       .flushed_rounds = 1,
                                       .flushed_runs = 1,
                                       .budget_seconds = 1}};
}

/* The trial ends with this status and a message that contains the words. */
static void assert_ends(spmv_status status, const char *words)
{
    assert_int_equal(trial_run(&trial), status);
    assert_non_null(strstr(trial.work.error, words));
    trial_close(&trial);
}

static spmv_matrix *make_matrix(spmv_context *ctx, const char *spec, spmv_csr *view)
{
    spmv_matrix *m = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, SPMV_F64, &m));
    spmv_matrix_view(m, view);
    return m;
}

/* All methods of every operation, in both types: results are right, repeatable and timed; a planted
 * error is detected. */
static void every_operation(void **state)
{
    (void)state;
    spmv_csr a;
    spmv_csr definite;
    spmv_matrix *const m = make_matrix(places.checker, "poisson2d:40,values=random", &a);
    spmv_matrix *const d = make_matrix(places.checker, "poisson2d:20", &definite); /* solved often */
    for (int i = 0; operation_at(i) != NULL; i++) {
        const struct operation *const op = operation_at(i);
        const bool solves = op->solver || strcmp(op->name, "batch") == 0;
        const spmv_csr *const matrix = solves ? &definite : op->on_matrix ? &a : NULL;
        const struct operand operand = {.matrix = matrix, .n = 10007, .mean_segment = 7, .seed = 3};
        assert_ptr_equal(operation_find(op->name), op);
        if (op->on_file)
            continue; /* reading_files */
        choose(op, "all", "none", NULL);
        for (int k = 0; k < 3; k++) { /* both types, then f64 with an error; ref has only f64, omp f32 and the error */
            if (support_backend != SPMV_BACKEND_CUDA && k == (support_backend == SPMV_BACKEND_REF ? 1 : 0))
                continue;
            const spmv_type type = k % 2 == 0 ? SPMV_F64 : SPMV_F32;
            start_trial(op, &operand, type);
            const bool planted = k >= 2;
            assert_int_equal(planted ? setenv("SPMV_TEST_PLANT_ERROR", "0", 1) : unsetenv("SPMV_TEST_PLANT_ERROR"), 0);
            if (trial_run(&trial) != SPMV_OK)
                fail_msg("%s: %s", op->name, trial.work.error);
            assert_true(trial.work.model_bytes > 0);
            for (int o = 0; o < trial.count; o++) {
                const struct result *const result = &trial.results[o];
                if (result->failed[0] != '\0')
                    fail_msg("%s by %s: %s", op->name, result->candidate->name, result->failed);
                assert_true(result->checked && result->measured);
                assert_int_equal(result->flushed.repeats, op->solver ? 0 : 1);
                assert_int_equal(result->wrong, planted && o == 0);
                assert_true(result->bit_different == 0 || result->figures.bits_may_differ);
                /* a histogram counts, which is exact in any order */
                assert_int_equal(result->figures.bits_may_differ,
                                 strcmp(op->name, "reduce") == 0 && strcmp(result->candidate->name, "atomic") == 0);
                /* a slow machine, where a first call is long, repeats less often */
                assert_int_equal(result->bit_repeats, result->first_call_seconds >= LONG_RUN_SECONDS ? 2 : 10);
                assert_true(result_gbs(&trial, result) > 0);
            }
            trial_close(&trial);
        }
    }
    assert_int_equal(unsetenv("SPMV_TEST_PLANT_ERROR"), 0);
    assert_null(operation_find("nothing"));
    spmv_matrix_destroy(m);
    spmv_matrix_destroy(d);
}

/* Reads of a file are timed, one read per sample, and the trial describes the matrix. A missing or
 * malformed file ends the trial with the status of the reader. */
static void reading_files(void **state)
{
    (void)state;
    char path[] = "/tmp/test_bench_XXXXXX";
    const char text[] = "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 4\n2 3 5\n";
    const struct operation *const load = operation_find("load");
    const struct operand operand = {.path = path, .read_type = SPMV_TYPE_DEFAULT};
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, sizeof text - 1), (ssize_t)sizeof text - 1);
    assert_int_equal(close(file), 0);
    choose(load, "all", "all", NULL);
    assert_int_equal(candidates.count, 1);
    start_trial(load, &operand, SPMV_F64);
    if (trial_run(&trial) != SPMV_OK)
        fail_msg("%s", trial.work.error);
    const struct load_figures *const f = load_figures(&trial.work);
    const struct result *const result = &trial.results[0];
    assert_int_equal(f->file_bytes, sizeof text - 1);
    assert_true(f->rows == 2 && f->cols == 3 && f->nnz == 2 && f->type == SPMV_F64 && f->first_seconds > 0);
    assert_true(result->measured && !result->checked && result->failed[0] == '\0');
    assert_true(result->warm.repeats >= 5 && result->warm.min > 0 && result->flushed.repeats == 0);
    assert_true(near(result_gbs(&trial, result), 1e-9 * (double)f->info.bytes / result->warm.median));
    trial_close(&trial);

    assert_int_equal(truncate(path, 5), 0);
    start_trial(load, &operand, SPMV_F64);
    assert_ends(SPMV_ERROR_FORMAT, path);
    assert_int_equal(unlink(path), 0);
    start_trial(load, &operand, SPMV_F64);
    assert_ends(SPMV_ERROR_OPEN, "cannot open");
}

/* The bytes of the model, calculated by hand, for a 40 x 40 grid and 1000 elements. */
static void model_bytes(void **state)
{
    (void)state;
    spmv_csr a;
    static const struct {
        const char *name;
        double f64, f32;
    } expected[] = {{"spmv", 7840 * 12 + 4 * 1601 + 8 * 3200, 7840 * 8 + 4 * 1601 + 4 * 3200},
                    {"cg", 7840 * 12 + 4 * 1601 + 10 * 8 * 1600, 7840 * 8 + 4 * 1601 + 10 * 4 * 1600},
                    {"map", 16000, 8000},
                    {"reduce", 8000, 4000},
                    {"scan", 16000, 8000},
                    {"segscan", 17000, 9000},
                    {"gather", 20000, 12000},
                    {"gather-sequential", 20000, 12000},
                    {"scatter", 20000, 12000},
                    {"sort", 16000, 8000},
                    {"histogram", 4000 + 1024, 4000 + 1024},
                    {"scan-host", 16000, 8000}};
    spmv_matrix *const m = make_matrix(places.checker, "poisson2d:40", &a);
    candidates.count = 0;
    for (size_t e = 0; e < sizeof expected / sizeof expected[0]; e++) {
        const struct operand operand = {.matrix = &a, .n = 1000, .mean_segment = 32, .seed = 1};
        for (int k = 0; k < 2; k++) {
            start_trial(operation_find(expected[e].name), &operand, k == 0 ? SPMV_F64 : SPMV_F32);
            assert_int_equal(trial_run(&trial), SPMV_OK);
            assert_true(trial.work.model_bytes == (k == 0 ? expected[e].f64 : expected[e].f32));
            trial_close(&trial);
        }
    }
    spmv_matrix_destroy(m);
}

/* Peers that are wrong, not repeatable or failing: all are detected, and none is the best peer. */
static void bad_peers(void **state)
{
    (void)state;
    spmv_csr a;
    if (support_backend == SPMV_BACKEND_CUDA)
        skip(); /* the fake peers run on a CPU */
    const char *const fakes = fake_peers();
    spmv_matrix *const m = make_matrix(places.checker, "poisson2d:40,values=random", &a);
    const struct operand operand = {.matrix = &a, .seed = 1};
    choose(operation_find("spmv"), "auto", "loops", fakes);
    start_trial(operation_find("spmv"), &operand, SPMV_F64);
    trial.read_gbs = 1e-9;
    assert_int_equal(trial_run(&trial), SPMV_OK);
    assert_int_equal(trial.count, 4);
    const struct result *const ours = &trial.results[0], *const wrong = &trial.results[1],
                               *const restless = &trial.results[2], *const failing = &trial.results[3];
    assert_true(!ours->wrong && ours->bit_different == 0 && ours->measured);
    assert_non_null(strstr(ours->note, "above the memory's"));
    assert_true(wrong->wrong && wrong->worst_at == 1599 && wrong->worst_ratio > 1 && wrong->bit_different == 0);
    assert_true(!restless->wrong && restless->bit_different > 0 && restless->measured);
    assert_true(failing->failed[0] != '\0' && !failing->measured && !failing->wrong);
    assert_ptr_equal(trial_best_peer(&trial), restless);
    trial_close(&trial);
    start_trial(operation_find("spmv"), &operand, SPMV_F32);
    assert_int_equal(trial_run(&trial), SPMV_OK);
    assert_string_equal(trial.results[1].failed, "the fake peer supports only f64");
    assert_null(trial_best_peer(&trial));
    trial_close(&trial);
    spmv_matrix_destroy(m);
}

/* Uses the fake solvers, in the folder beside the other fake peers. */
static void choose_solvers(const char *methods)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/solvers", fake_peers());
    choose(operation_find("cg"), methods, "eigen,petsc-cg,hypre", folder);
}

/* Solvers that return a wrong x, stop early, do not converge or take longer. */
static void bad_solvers(void **state)
{
    (void)state;
    if (support_backend == SPMV_BACKEND_CUDA)
        skip(); /* the fake peers run on a CPU */
    choose_solvers("textbook");
    for (int odd = 0; odd < 2; odd++) {
        spmv_csr a;
        spmv_matrix *const m = make_matrix(places.checker, odd ? "poisson2d:41" : "poisson2d:40", &a);
        const struct operand operand = {.matrix = &a, .seed = 1};
        start_trial(operation_find("cg"), &operand, SPMV_F64);
        assert_int_equal(trial_run(&trial), SPMV_OK);
        assert_int_equal(trial.count, 4);
        const struct result *const ours = &trial.results[0], *const wrong = &trial.results[1],
                                   *const lazy = &trial.results[2], *const late = &trial.results[3];
        assert_string_equal(ours->method, "textbook");
        assert_true(!ours->wrong && result_converged(&trial, ours) && ours->check.true_residual <= 1e-8);
        assert_true(ours->solved.iterations > 20 && ours->solved.iterations < 120);
        assert_true(ours->solved.residual <= 1e-8 && ours->solved.residual > 1e-10);
        assert_string_equal(wrong->candidate->name, "eigen-cg");
        assert_true(wrong->wrong && wrong->measured && !result_converged(&trial, wrong));
        assert_true(odd ? isinf(wrong->worst_ratio) : wrong->worst_ratio > 1e6);
        assert_true(odd ? wrong->check.true_residual <= 1e-3 : wrong->check.true_residual > 1e-2);
        assert_true(!lazy->wrong && lazy->unfinished && lazy->solved.iterations == 3000);
        assert_true(lazy->check.true_residual <= 1.1e-3 && lazy->check.true_residual > 1e-5);
        assert_true(!late->wrong && !late->unfinished && result_converged(&trial, late));
        assert_int_equal(late->solved.iterations, ours->solved.iterations + 3);
        assert_ptr_equal(trial_best_peer(&trial), late);
        /* bytes of an iteration over its time */
        assert_true(near(result_gbs(&trial, ours),
                         1e-9 * trial.work.model_bytes * (double)ours->solved.iterations / ours->warm.median));
        trial_close(&trial);
        spmv_matrix_destroy(m);
    }
}

/* The matrix of fourth differences with 700 rows needs more than 3000 iterations. If spmv_cg stops at
 * the limit of 3000, peers that stop there count too. */
static void at_the_limit(void **state)
{
    (void)state;
    enum { ROWS = 700 };
    static const double band[] = {6, -4, 1}; /* by the distance from the diagonal */
    static int64_t row_ptr[ROWS + 1];
    static int32_t col[5 * ROWS];
    static double val[5 * ROWS];
    int64_t nnz = 0;
    if (support_backend != SPMV_BACKEND_OMP)
        skip();
    for (int32_t i = 0; i < ROWS; i++) {
        for (int32_t j = i > 2 ? i - 2 : 0; j < ROWS && j <= i + 2; j++) {
            col[nnz] = j;
            val[nnz++] = band[abs(i - j)];
        }
        row_ptr[i + 1] = nnz;
    }
    const spmv_csr a = support_csr_there(ROWS, ROWS, nnz, row_ptr, 64, col, val, SPMV_F64);
    const struct operand operand = {.matrix = &a, .seed = 1};
    choose_solvers("auto");
    start_trial(operation_find("cg"), &operand, SPMV_F64);
    if (trial_run(&trial) != SPMV_OK)
        fail_msg("%s", trial.work.error);
    const struct result *const ours = &trial.results[0], *const late = &trial.results[3];
    assert_string_equal(ours->failed, "");
    assert_true(ours->measured && !ours->wrong && !result_converged(&trial, ours));
    assert_int_equal(ours->solved.iterations, 3000);
    assert_true(ours->check.true_residual > 1e-8);
    assert_true(late->measured && !late->wrong && !late->unfinished && late->solved.iterations == 3000);
    assert_non_null(trial_best_peer(&trial));
    trial_close(&trial);
    /* another limit */
    start_trial(operation_find("cg"), &operand, SPMV_F64);
    trial.work.max_iterations = 70;
    if (trial_run(&trial) != SPMV_OK)
        fail_msg("%s", trial.work.error);
    assert_int_equal(trial.results[0].solved.iterations, 70);
    assert_int_equal(trial.results[3].solved.iterations, 70);
    trial_close(&trial);
}

/* A system unfit for conjugate gradients is refused before any peer runs. */
static void unfit_systems(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *sentence;
        spmv_status status;
        spmv_type type;
    } cases[] = {
        {"uniform:30,20,3", "30 rows and 20 columns", SPMV_ERROR_NOT_SQUARE, SPMV_F64},
        {"uniform:30,30,3", "not symmetric", SPMV_ERROR_NOT_SYMMETRIC, SPMV_F32},
        {"poisson2d:5", "real types", SPMV_ERROR_TYPE, SPMV_C128},
    };
    choose(operation_find("cg"), "all", "none", NULL);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        spmv_csr a;
        spmv_matrix *const m = make_matrix(places.checker, cases[c].spec, &a);
        const struct operand operand = {.matrix = &a};
        start_trial(operation_find("cg"), &operand, cases[c].type);
        assert_ends(cases[c].status, cases[c].sentence);
        spmv_matrix_destroy(m);
    }
}

static void unknown_method(void **state)
{
    (void)state;
    const struct operand operand = {.n = 100, .mean_segment = 7};
    choose(operation_find("scan"), "auto,nothing", "none", NULL);
    start_trial(operation_find("scan"), &operand, SPMV_F64);
    assert_ends(SPMV_ERROR_METHOD, "nothing");
}

/* Suites contain only valid SPECs: memory is all that generating them lacks. */
static void suites(void **state)
{
    spmv_context *ctx = *state;
    spmv_generate_options within = support_generate_options();
    within.max_bytes = 1;
    const char *about = NULL;
    int count = 0;
    for (; suite_name(count, &about) != NULL; count++) {
        const char *const *specs = suite_find(suite_name(count, &about));
        assert_non_null(specs);
        assert_non_null(about);
        assert_non_null(specs[0]);
        for (int i = 0; specs[i] != NULL; i++) {
            spmv_matrix *m = NULL;
            assert_fails(ctx, spmv_matrix_generate_within(ctx, specs[i], &within, &m), SPMV_ERROR_MEMORY,
                         "are allowed");
        }
    }
    assert_int_equal(count, 7);
    assert_null(suite_find("none"));
}

/* ---------------------------------------------------------------- trust */

static void processor_lists(void **state)
{
    (void)state;
    assert_int_equal(processor_list_count("0-3,8,10-11"), 7);
    assert_int_equal(processor_list_count("5"), 1);
    assert_int_equal(processor_list_count(""), 0);
    static const int in[] = {0, 3, 8, 10, 11}, out[] = {4, 7, 9, 12, 100};
    for (int i = 0; i < 5; i++) {
        assert_true(processor_list_has("0-3,8,10-11", in[i]));
        assert_false(processor_list_has("0-3,8,10-11", out[i]));
    }
    assert_true(processor_list_count(processors_allowed()) >= 1);
}

/* Lines of /proc/stat: user nice system idle iowait irq softirq steal guest. */
static void shares_of_others(void **state)
{
    (void)state;
    struct processor_ticks t = {0};
    assert_false(processor_ticks_add("cpu  1 2 3 4 5 6 7 8 9 10\n", "", &t));
    assert_false(processor_ticks_add("intr 5 5 5\n", "", &t));
    assert_false(processor_ticks_add("cpu4 1 1 1 1 1 1 1 1\n", "0-3,5", &t));
    assert_true(t.busy == 0 && t.total == 0);
    assert_true(processor_ticks_add("cpu5 1 2 3 40 50 6 7 8 1000 1000\n", "0-3,5", &t));
    assert_true(t.busy == 27 && t.total == 117); /* guest time is already counted as user time */
    assert_true(processor_ticks_add("cpu17 10 20 30 40\n", "", &t));
    assert_true(t.busy == 87 && t.total == 217);
    const struct processor_ticks before = {.busy = 100, .total = 1000}, after = {.busy = 150, .total = 1200};
    assert_true(near(others_share(&before, &after, 0), 0.25));
    assert_true(near(others_share(&before, &after, 30), 0.1));
    /* the clock used here is finer than that of /proc/stat */
    assert_true(others_share(&before, &after, 80) == 0);
    assert_true(others_share(&after, &after, 0) == -1);
    const struct machine_load now = machine_load_measure();
    assert_true(now.processors >= 1 && now.machine_processors >= 1 && now.others_share <= 1);
}

static void doubts_about_load(void **state)
{
    (void)state;
    static const struct {
        struct machine_load load;
        int threads;
        const char *doubt;
    } cases[] = {
        {{.load_average = 3.9, .others_share = 0.09, .processors = 4, .machine_processors = 4}, 4, ""},
        {{.load_average = -1, .others_share = -1, .processors = 4, .machine_processors = 4}, 4, ""},
        {{.load_average = 1, .others_share = 0.634, .processors = 4, .machine_processors = 4},
         4,
         "other processes used 63% of the processors at the start"},
        {{.load_average = 1, .others_share = 0, .processors = 2, .machine_processors = 8},
         4,
         "4 threads share 2 processors"},
        {{.load_average = 12.5, .others_share = 0, .processors = 2, .machine_processors = 8},
         2,
         "the load average at the start was 12.5 on 8 processors"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        char text[128] = "?";
        machine_load_doubt(&cases[c].load, cases[c].threads, text, sizeof text);
        assert_string_equal(text, cases[c].doubt);
    }
}

static void spread_of_rows(void **state)
{
    (void)state;
    assert_true(near(timing_spread(&(struct timing){.median = 1.5, .min = 1, .max = 9, .repeats = 5}), 0.5));
    assert_true(timing_spread(&(struct timing){0}) == 0);
    assert_true(isinf(timing_spread(&(struct timing){.median = 1, .repeats = 5})));
    assert_true(timing_steady(&(struct timing){.median = 1.2, .min = 1.01, .max = 9, .repeats = 5}));
    assert_false(timing_steady(&(struct timing){.median = 1.25, .min = 1, .max = 1.3, .repeats = 5}));
}

/* ---------------------------------------------------------------- the stored bandwidth */

static const struct bandwidth kept = {
    .copy_gbs = 12.5, .read_gbs = 20.25, .triad_gbs = 11, .array_bytes = 4096, .threads = 3};

/* Stores a bandwidth and returns the path of the only file in the folder. */
static void file_in(const char *folder, const char *key, char *path, size_t size)
{
    char command[4400];
    assert_true(bandwidth_keep(folder, key, 5000, &kept));
    snprintf(command, sizeof command, "ls -d '%s'/bandwidth-*", folder);
    FILE *const list = popen(command, "r");
    assert_non_null(list);
    assert_non_null(fgets(path, (int)size, list));
    path[strcspn(path, "\n")] = '\0';
    assert_null(fgets(command, sizeof command, list));
    pclose(list);
}

static void bandwidth_is_kept(void **state)
{
    (void)state;
    char folder[] = "/tmp/spmv-bandwidth-XXXXXX", cache[64], path[4200], beside[4300];
    struct bandwidth got;
    struct stat s;
    int64_t age = -7;
    assert_non_null(mkdtemp(folder));
    snprintf(cache, sizeof cache, "%s/a/spmv", folder);
    assert_false(bandwidth_recall(cache, "boot;key", 5000, &got, &age));
    file_in(cache, "boot;key", path, sizeof path);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 07777, 0600);
    assert_int_equal(stat(cache, &s), 0);
    assert_int_equal(s.st_mode & 07777, 0700);
    for (int64_t seconds = 0; seconds <= BANDWIDTH_KEPT_SECONDS; seconds += BANDWIDTH_KEPT_SECONDS) {
        assert_true(bandwidth_recall(cache, "boot;key", 5000 + seconds, &got, &age));
        assert_true(age == seconds && near(got.copy_gbs, 12.5) && near(got.read_gbs, 20.25));
        assert_true(near(got.triad_gbs, 11) && got.array_bytes == 4096 && got.threads == 3);
    }
    assert_false(bandwidth_recall(cache, "boot;key", 5001 + BANDWIDTH_KEPT_SECONDS, &got, &age));
    assert_false(bandwidth_recall(cache, "boot;key", 4999, &got, &age));
    assert_false(bandwidth_recall(cache, "boot;another", 5000, &got, &age));
    /* the same file after another boot */
    assert_false(bandwidth_recall(cache, "next;key", 5000, &got, &age));
    assert_false(bandwidth_recall(cache, "", 5000, &got, &age));
    assert_false(bandwidth_keep(cache, "", 5000, &kept));
    /* a link instead of the file, a FIFO, a file that others may write */
    snprintf(beside, sizeof beside, "%s/elsewhere", folder);
    assert_int_equal(rename(path, beside), 0);
    assert_int_equal(symlink(beside, path), 0);
    assert_false(bandwidth_recall(cache, "boot;key", 5000, &got, &age));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(bandwidth_recall(cache, "boot;key", 5000, &got, &age));
    assert_true(bandwidth_keep(cache, "boot;key", 5000, &kept)); /* replaces it */
    assert_true(bandwidth_recall(cache, "boot;key", 5000, &got, &age));
    assert_int_equal(chmod(path, 0620), 0);
    assert_false(bandwidth_recall(cache, "boot;key", 5000, &got, &age));
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(chmod(cache, 0703), 0);
    assert_false(bandwidth_recall(cache, "boot;key", 5000, &got, &age));
    assert_false(bandwidth_keep(cache, "boot;key", 5000, &kept));
    assert_int_equal(unlink(path) + unlink(beside) + rmdir(cache), 0);
    snprintf(cache, sizeof cache, "%s/a", folder);
    assert_int_equal(rmdir(cache) + rmdir(folder), 0);
}

/* The key contains the boot and everything that the figures depend on. */
static void bandwidth_keys(void **state)
{
    (void)state;
    char a[BANDWIDTH_KEY_SIZE], b[BANDWIDTH_KEY_SIZE];
    struct device device = {.name = "a processor", .threads = 2};
    bandwidth_key(&device, a);
    bandwidth_key(&device, b);
    assert_string_equal(a, b);
    assert_true(strcspn(a, ";") == 36); /* the form of a UUID */
    device.threads = 3;
    bandwidth_key(&device, b);
    assert_string_not_equal(a, b);
    device.threads = 2;
    snprintf(device.name, sizeof device.name, "another");
    bandwidth_key(&device, b);
    assert_string_not_equal(a, b);
}

/* ---------------------------------------------------------------- solutions */

static void choosing_preconditioners(void **state)
{
    (void)state;
    static struct candidate_list r;
    char why[WHY_SIZE];
    const struct operation *const cg = operation_find("cg");
    assert_int_equal(candidate_list_make(cg, SPMV_BACKEND_REF, true, "auto,textbook", "hypre", "/nowhere", &r, why),
                     SPMV_OK);
    assert_int_equal(candidate_list_precondition(cg, "ic0,auto", &r, why), SPMV_OK);
    static const char *const names[] = {"auto", "auto", "textbook", "textbook", "hypre-cg", "hypre-amg-cg"};
    static const char *const preconds[] = {"ic0", "auto", "ic0", "auto", "", ""};
    assert_int_equal(r.count, 6);
    for (int e = 0; e < 6; e++) {
        assert_string_equal(r.candidates[e].name, names[e]);
        assert_string_equal(r.candidates[e].precond, preconds[e]);
        assert_false(r.candidates[e].optional);
    }
    /* iterations: without the peers that have a preconditioner of their own, unless they are named */
    assert_int_equal(candidate_list_make(cg, SPMV_BACKEND_REF, false, "auto", "hypre", "/nowhere", &r, why), SPMV_OK);
    assert_int_equal(r.count, 2);
    assert_string_equal(r.candidates[1].name, "hypre-cg");
    assert_int_equal(candidate_list_make(cg, SPMV_BACKEND_REF, false, "auto", "hypre-amg-cg", "/nowhere", &r, why),
                     SPMV_OK);
    assert_int_equal(r.count, 2);
    assert_string_equal(r.candidates[1].missing, "it takes part with --precond only");
    int known = 0; /* all but ilu0 and ilut, which are for general matrices, and schur, for systems of two fields */
    while (spmv_preconditioner_name(known) != NULL)
        known++;
    known -= 3;
    assert_int_equal(candidate_list_make(cg, SPMV_BACKEND_REF, true, "auto", "none", NULL, &r, why), SPMV_OK);
    assert_int_equal(candidate_list_precondition(cg, "all", &r, why), SPMV_OK);
    assert_int_equal(r.count, known);
    assert_true(r.candidates[0].optional);
    assert_int_equal(candidate_list_make(cg, SPMV_BACKEND_REF, true, "auto", "none", NULL, &r, why), SPMV_OK);
    assert_int_equal(candidate_list_precondition(cg, "ic0,icc", &r, why), SPMV_ERROR_ARGUMENT);
    assert_non_null(strstr(why, "\"icc\""));
    assert_int_equal(candidate_list_precondition(cg, "", &r, why), SPMV_ERROR_ARGUMENT);
    char many[1000] = "ic0";
    while (strlen(many) < 4 * CANDIDATES_MOST)
        strcat(many, ",ic0");
    assert_int_equal(candidate_list_precondition(cg, many, &r, why), SPMV_ERROR_ARGUMENT);
    assert_non_null(strstr(why, "more than 48"));
}

/* Each run creates its preconditioner and solves. The benchmark compares whole solutions, not
 * iterations. */
static void solve_by(const char *op, const char *spec, const char *preconds, spmv_type type)
{
    spmv_csr a;
    char why[WHY_SIZE];
    const struct operation *const operation = operation_find(op);
    spmv_matrix *const m = make_matrix(places.checker, spec, &a);
    const struct operand operand = {.matrix = &a, .seed = 1};
    choose(operation, "auto", "none", NULL);
    assert_int_equal(candidate_list_precondition(operation, preconds, &candidates, why), SPMV_OK);
    start_trial(operation, &operand, type);
    trial.work.solutions = true;
    if (trial_run(&trial) != SPMV_OK)
        fail_msg("%s: %s", op, trial.work.error);
    assert_int_equal(trial.count, candidates.count);
    for (int o = 0; o < trial.count; o++) {
        const struct result *const result = &trial.results[o];
        if (result->failed[0] != '\0')
            fail_msg("%s %s: %s", op, result->candidate->precond, result->failed);
        assert_true(result->checked && result->measured && !result->wrong && result_converged(&trial, result));
        assert_int_equal(result->bit_different, 0);
        assert_true(result_steps(&trial, result) == 1 && result_gbs(&trial, result) == 0);
        if (strcmp(result->candidate->precond, "auto") == 0)
            assert_string_not_equal(result->precond, "auto");
        else
            assert_string_equal(result->precond, result->candidate->precond);
    }
    /* the first is without a preconditioner, the last but one factors */
    const struct result *const factors = &trial.results[trial.count - 2];
    assert_true(factors->figures.setup_seconds > 0);
    assert_true(factors->solved.iterations < trial.results[0].solved.iterations);
    trial_close(&trial);
    spmv_matrix_destroy(m);
}

static void solutions(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        const spmv_type type = k == 0 ? SPMV_F64 : SPMV_F32;
        if (k != (support_backend == SPMV_BACKEND_REF) && support_backend != SPMV_BACKEND_CUDA)
            continue; /* ref in f32, omp in f64 */
        solve_by("cg", "poisson2d:28", "none,jacobi,block-jacobi,chebyshev,amg,auto", type);
        solve_by("gmres", "convdiff2d:28,1", "none,jacobi,ilu0,auto", type);
        solve_by("bicgstab", "convdiff2d:28,1", "none,jacobi,ilu0,auto", type);
    }
}

/* Without a restart GMRES takes fewer iterations. A smaller basis is fewer bytes. */
static void restarted(void **state)
{
    (void)state;
    spmv_csr a;
    spmv_matrix *const m = make_matrix(places.checker, "convdiff2d:24,1", &a);
    const struct operand operand = {.matrix = &a, .seed = 1};
    static const int restarts[] = {0, 50, 200, 5};
    int64_t iterations[4];
    double bytes[4];
    choose(operation_find("gmres"), "auto", "none", NULL);
    for (int k = 0; k < 4; k++) {
        start_trial(operation_find("gmres"), &operand, SPMV_F64);
        trial.work.restart = restarts[k];
        if (trial_run(&trial) != SPMV_OK)
            fail_msg("%s", trial.work.error);
        assert_true(trial.results[0].checked && !trial.results[0].wrong && result_converged(&trial, &trial.results[0]));
        assert_int_equal(trial.work.problem.restart, k == 0 ? 50 : restarts[k]);
        iterations[k] = trial.results[0].solved.iterations;
        bytes[k] = trial.work.model_bytes;
        trial_close(&trial);
    }
    assert_int_equal(iterations[0], iterations[1]);
    assert_true(iterations[2] > 50 && iterations[1] > iterations[2]);
    assert_true(bytes[0] == bytes[1] && bytes[2] > bytes[1]);
    /* whole cycles of 5 steps read 3 vectors of the basis on average, 3 times each */
    const double vector = 576 * sizeof(double), matrix = (double)a.nnz * 12 + 4 * 577, mean = (7 + 3 * 3) * vector;
    assert_true(iterations[3] % 5 == 0 ? bytes[3] == matrix + mean
                                       : bytes[3] < matrix + mean && bytes[3] > matrix + mean - 3 * vector);
    spmv_matrix_destroy(m);
}

SUPPORT_MAIN(cmocka_unit_test(quiet_figures), cmocka_unit_test(noisy_figures), cmocka_unit_test(taking_turns),
             cmocka_unit_test(ended_early), cmocka_unit_test(failing_contender), cmocka_unit_test(own_clock),
             cmocka_unit_test(spread_by_hand), cmocka_unit_test(peers_are_listed), cmocka_unit_test(choosing),
             in_places(every_operation), in_places(reading_files), in_places(model_bytes), in_places(bad_peers),
             in_places(unknown_method), with_context(suites), in_places(bad_solvers), in_places(at_the_limit),
             in_places(unfit_systems), cmocka_unit_test(long_runs), cmocka_unit_test(processor_lists),
             cmocka_unit_test(shares_of_others), cmocka_unit_test(doubts_about_load), cmocka_unit_test(spread_of_rows),
             cmocka_unit_test(bandwidth_is_kept), cmocka_unit_test(bandwidth_keys),
             cmocka_unit_test(choosing_preconditioners), in_places(solutions), in_places(restarted))
