/* Measuring: the rounds against a clock that is made up, who takes part, and that trials notice what is wrong.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "measure.h"
#include "roster.h"
#include "suites.h"
#include "support.h"
#include "trial.h"

/* ---------------------------------------------------------------- a device whose time is made up */

struct made_up {
    double cost, noise; /* seconds of a run; every other batch takes so many times as long */
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

/* Quiet contenders: batches as long as asked, the least number of rounds, the very cost. */
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

/* The spread decides how many rounds there are: one restless contender keeps all going. */
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

/* Batches of three contenders take turns, and another begins each round. */
static void taking_turns(void **state)
{
    (void)state;
    struct made_up m[3] = {{.cost = 1e-4}, {.cost = 1e-4}, {.cost = 1e-4}};
    struct contender c[3];
    measure_made_up(m, 3, c, NULL, NULL);
    assert_non_null(strstr(order, "abcbcacababcbca"));
}

/* One that fails is left out with its sentence; the others' figures are there. */
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

/* A peer with a clock of its own is asked for the time, and the caches are emptied before each of its flushed runs. */
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

static void spread_by_hand(void **state)
{
    (void)state;
    double samples[] = {5, 1, 4, 2, 3}, alike[] = {2, 2, 2};
    assert_true(near(measure_spread(samples, 5), 1.58 * (4 - 2) / (sqrt(5) * 3)));
    assert_true(measure_spread(alike, 3) == 0);
    assert_true(isinf(measure_spread(samples, 1)));
}

/* ---------------------------------------------------------------- who takes part */

static const struct entry *entry_of(const struct roster *roster, const char *name)
{
    for (int e = 0; e < roster->count; e++)
        if (strcmp(roster->entries[e].name, name) == 0)
            return &roster->entries[e];
    return NULL;
}

/* The folder of the module fake_peer.c, which stays with the build. */
static const char *fake_peers(void)
{
    const char *const folder = getenv("SPMV_FAKE_PEERS");
    if (folder == NULL && support_backend != SPMV_BACKEND_CUDA)
        fail_msg("SPMV_FAKE_PEERS should name the folder of fake peers");
    if (folder == NULL)
        skip();
    return folder;
}

static void choosing(void **state)
{
    (void)state;
    const char *const fakes = fake_peers();
    static struct roster r;
    char why[WHY_SIZE] = "";
    const struct operation *const spmv = operation_find("spmv"), *const map = operation_find("map");
    assert_int_equal(roster_make(spmv, SPMV_BACKEND_OMP, "tiles,auto,tiles", "none", fakes, &r, why), SPMV_OK);
    assert_int_equal(r.count, 2);
    assert_string_equal(r.entries[0].name, "tiles");
    assert_string_equal(r.entries[1].name, "auto");
    assert_int_equal(roster_make(spmv, SPMV_BACKEND_OMP, "all", "none", fakes, &r, why), SPMV_OK);
    assert_non_null(entry_of(&r, "auto"));
    for (int i = 0; spmv_method_name(SPMV_BACKEND_OMP, i) != NULL; i++)
        assert_non_null(entry_of(&r, spmv_method_name(SPMV_BACKEND_OMP, i)));

    /* a peer, a module, one of another backend, and one whose module is not there */
    assert_int_equal(roster_make(spmv, SPMV_BACKEND_OMP, NULL, "loops-merge,cub-scan,eigen", fakes, &r, why), SPMV_OK);
    assert_int_equal(r.count, 4);
    assert_true(r.entries[0].ours);
    assert_non_null(entry_of(&r, "loops-merge")->peer);
    assert_string_equal(entry_of(&r, "loops-merge")->module->library, "fake 1");
    assert_non_null(strstr(entry_of(&r, "cub-scan")->missing, "cuda"));
    assert_non_null(strstr(entry_of(&r, "eigen")->missing, "libeigen3-dev"));
    assert_null(entry_of(&r, "eigen")->peer);
    assert_int_equal(roster_make(spmv, SPMV_BACKEND_OMP, NULL, "loops", fakes, &r, why), SPMV_OK);
    assert_int_equal(r.count, 4);

    /* all: those of the backend that do the operation, there or not */
    assert_int_equal(roster_make(spmv, SPMV_BACKEND_OMP, NULL, NULL, fakes, &r, why), SPMV_OK);
    assert_non_null(entry_of(&r, "petsc"));
    assert_null(entry_of(&r, "cusparse-sell"));
    assert_int_equal(roster_make(map, SPMV_BACKEND_OMP, NULL, "all", fakes, &r, why), SPMV_OK);
    assert_int_equal(r.count, 1);
    assert_int_equal(roster_make(operation_find("scan"), SPMV_BACKEND_OMP, NULL, "all", fakes, &r, why), SPMV_OK);
    assert_int_equal(r.count, 2);
    assert_non_null(strstr(entry_of(&r, "tbb-scan")->missing, "libtbb-dev"));
    assert_int_equal(roster_make(operation_find("scan"), SPMV_BACKEND_CUDA, NULL, "all", fakes, &r, why), SPMV_OK);
    assert_int_equal(r.count, 2);
    assert_non_null(entry_of(&r, "cub-scan"));

    assert_int_equal(roster_make(spmv, SPMV_BACKEND_OMP, NULL, "loops,mkl", fakes, &r, why), SPMV_ERROR_ARGUMENT);
    assert_non_null(strstr(why, "unknown peer \"mkl\""));
    assert_non_null(strstr(why, "graphblas"));
}

/* ---------------------------------------------------------------- trials */

struct places {
    struct device device;
    spmv_context *ctx, *checker;
};

static void open_places(struct places *p)
{
    char why[WHY_SIZE] = "";
    const spmv_backend other = support_backend == SPMV_BACKEND_OMP ? SPMV_BACKEND_REF : SPMV_BACKEND_OMP;
    spmv_context_options o;
    spmv_context_options_init(&o, sizeof o);
    const int failed = support_backend == SPMV_BACKEND_CUDA ? device_open_cuda(-1, &p->device, why)
                                                            : device_open_cpu(2, &p->device, why);
    if (failed != 0)
        fail_msg("%s", why);
    o.backend = support_backend;
    o.stream = p->device.stream;
    o.threads = 2;
    if (spmv_context_create(&o, &p->ctx) != SPMV_OK)
        fail_msg("%s", spmv_last_error(NULL));
    p->checker = support_context_on(other, 2);
}

static void close_places(struct places *p)
{
    spmv_context_destroy(p->ctx);
    spmv_context_destroy(p->checker);
    device_close(&p->device);
}

static void start_trial(struct trial *t, const struct places *p, const struct operation *operation,
                        const struct operand *operand, spmv_type type, const struct roster *roster)
{
    *t = (struct trial){.work = {.operation = operation,
                                 .operand = operand,
                                 .device = (struct device *)&p->device,
                                 .ctx = p->ctx,
                                 .checker = p->checker,
                                 .type = type},
                        .roster = roster,
                        .options = {.batch_seconds = 1e-5,
                                    .most_runs = 10,
                                    .least_rounds = 2,
                                    .most_rounds = 2,
                                    .spread = 0.01,
                                    .flushed_rounds = 1,
                                    .flushed_runs = 1,
                                    .budget_seconds = 1}};
}

static spmv_matrix *make_matrix(spmv_context *ctx, const char *spec, spmv_csr *view)
{
    spmv_matrix *m = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, SPMV_F64, &m));
    spmv_matrix_view(m, view);
    return m;
}

/* Every operation's own methods, in both types: right, repeatable, timed; a planted error is seen. */
static void every_operation(void **state)
{
    (void)state;
    static struct trial t;
    static struct roster r;
    struct places p;
    spmv_csr a;
    char why[WHY_SIZE];
    open_places(&p);
    spmv_matrix *const m = make_matrix(p.checker, "poisson2d:40,values=random", &a);
    for (int i = 0; operation_at(i) != NULL; i++) {
        const struct operation *const op = operation_at(i);
        const struct operand operand = {.matrix = op->on_matrix ? &a : NULL, .n = 10007, .mean_segment = 7, .seed = 3};
        assert_ptr_equal(operation_find(op->name), op);
        assert_int_equal(roster_make(op, support_backend, "all", "none", NULL, &r, why), SPMV_OK);
        for (int k = 0; k < 4; k++) {
            const spmv_type type = k % 2 == 0 ? SPMV_F64 : SPMV_F32;
            start_trial(&t, &p, op, &operand, type, &r);
            t.plant_error = k >= 2;
            if (trial_run(&t) != SPMV_OK)
                fail_msg("%s: %s", op->name, t.work.error);
            assert_true(t.work.model_bytes > 0);
            for (int o = 0; o < t.count; o++) {
                const struct outcome *const outcome = &t.outcomes[o];
                if (outcome->failed[0] != '\0')
                    fail_msg("%s by %s: %s", op->name, outcome->entry->name, outcome->failed);
                assert_true(outcome->checked && outcome->measured && outcome->flushed.repeats == 1);
                assert_int_equal(outcome->wrong, t.plant_error && o == 0);
                assert_true(outcome->bit_different == 0 || outcome->bits_may_differ);
                assert_int_equal(outcome->bits_may_differ, /* a histogram counts, and is exact in any order */
                                 strcmp(op->name, "reduce") == 0 && strcmp(outcome->entry->name, "atomic") == 0);
                assert_true(outcome->bit_repeats >= 10);
                assert_true(outcome_gbs(&t, outcome) > 0);
            }
            trial_close(&t);
        }
    }
    assert_null(operation_find("nothing"));
    spmv_matrix_destroy(m);
    close_places(&p);
}

/* The bytes that count, by hand, for a 40 x 40 grid and 1000 elements. */
static void model_bytes(void **state)
{
    (void)state;
    static struct trial t;
    static struct roster r;
    struct places p;
    spmv_csr a;
    static const struct {
        const char *name;
        double f64, f32;
    } expected[] = {{"spmv", 7840 * 12 + 4 * 1601 + 8 * 3200, 7840 * 8 + 4 * 1601 + 4 * 3200},
                    {"map", 16000, 8000},
                    {"reduce", 8000, 4000},
                    {"scan", 16000, 8000},
                    {"segscan", 17000, 9000},
                    {"gather", 20000, 12000},
                    {"scatter", 20000, 12000},
                    {"sort", 16000, 8000},
                    {"histogram", 4000 + 1024, 4000 + 1024},
                    {"scan-host", 16000, 8000}};
    open_places(&p);
    spmv_matrix *const m = make_matrix(p.checker, "poisson2d:40", &a);
    r.count = 0;
    for (size_t e = 0; e < sizeof expected / sizeof expected[0]; e++) {
        const struct operand operand = {.matrix = &a, .n = 1000, .mean_segment = 32, .seed = 1};
        for (int k = 0; k < 2; k++) {
            start_trial(&t, &p, operation_find(expected[e].name), &operand, k == 0 ? SPMV_F64 : SPMV_F32, &r);
            assert_int_equal(trial_run(&t), SPMV_OK);
            assert_true(t.work.model_bytes == (k == 0 ? expected[e].f64 : expected[e].f32));
            trial_close(&t);
        }
    }
    spmv_matrix_destroy(m);
    close_places(&p);
}

/* Peers that are wrong, restless, failing: all are seen, and none is the best peer. */
static void bad_peers(void **state)
{
    (void)state;
    static struct trial t;
    static struct roster r;
    struct places p;
    spmv_csr a;
    char why[WHY_SIZE];
    if (support_backend == SPMV_BACKEND_CUDA)
        skip(); /* the fakes are of a CPU */
    const char *const fakes = fake_peers();
    open_places(&p);
    spmv_matrix *const m = make_matrix(p.checker, "poisson2d:40,values=random", &a);
    const struct operand operand = {.matrix = &a, .seed = 1};
    assert_int_equal(roster_make(operation_find("spmv"), support_backend, "auto", "loops", fakes, &r, why), SPMV_OK);
    start_trial(&t, &p, operation_find("spmv"), &operand, SPMV_F64, &r);
    t.read_gbs = 1e-9;
    assert_int_equal(trial_run(&t), SPMV_OK);
    assert_int_equal(t.count, 4);
    const struct outcome *const ours = &t.outcomes[0], *const wrong = &t.outcomes[1], *const restless = &t.outcomes[2],
                                *const failing = &t.outcomes[3];
    assert_true(!ours->wrong && ours->bit_different == 0 && ours->measured);
    assert_non_null(strstr(ours->note, "beyond memory's"));
    assert_true(wrong->wrong && wrong->worst_at == 1599 && wrong->worst_ratio > 1 && wrong->bit_different == 0);
    assert_true(!restless->wrong && restless->bit_different > 0 && restless->measured);
    assert_true(failing->failed[0] != '\0' && !failing->measured && !failing->wrong);
    assert_ptr_equal(trial_best_peer(&t), restless);
    trial_close(&t);
    start_trial(&t, &p, operation_find("spmv"), &operand, SPMV_F32, &r);
    assert_int_equal(trial_run(&t), SPMV_OK);
    assert_string_equal(t.outcomes[1].failed, "a fake has f64 only");
    assert_null(trial_best_peer(&t));
    trial_close(&t);
    spmv_matrix_destroy(m);
    close_places(&p);
}

static void unknown_method(void **state)
{
    (void)state;
    static struct trial t;
    static struct roster r;
    struct places p;
    char why[WHY_SIZE];
    const struct operand operand = {.n = 100, .mean_segment = 7};
    open_places(&p);
    assert_int_equal(roster_make(operation_find("scan"), support_backend, "auto,nothing", "none", NULL, &r, why),
                     SPMV_OK);
    start_trial(&t, &p, operation_find("scan"), &operand, SPMV_F64, &r);
    assert_int_equal(trial_run(&t), SPMV_ERROR_METHOD);
    assert_non_null(strstr(t.work.error, "nothing"));
    trial_close(&t);
    close_places(&p);
}

/* Suites hold SPECs that generators take. */
static void suites(void **state)
{
    (void)state;
    const char *about = NULL;
    int count = 0;
    for (; suite_name(count, &about) != NULL; count++) {
        const char *const *specs = suite_find(suite_name(count, &about));
        assert_non_null(specs);
        assert_non_null(about);
        assert_non_null(specs[0]);
        for (int i = 0; specs[i] != NULL; i++)
            if (!spmv_spec_known(specs[i]))
                fail_msg("%s is no known SPEC", specs[i]);
    }
    assert_int_equal(count, 3);
    assert_null(suite_find("none"));
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiet_figures),  cmocka_unit_test(noisy_figures),     cmocka_unit_test(taking_turns),
        cmocka_unit_test(ended_early),    cmocka_unit_test(failing_contender), cmocka_unit_test(own_clock),
        cmocka_unit_test(spread_by_hand), cmocka_unit_test(choosing),          cmocka_unit_test(every_operation),
        cmocka_unit_test(model_bytes),    cmocka_unit_test(bad_peers),         cmocka_unit_test(unknown_method),
        cmocka_unit_test(suites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
