/* The order of a trial.
 *
 * All are made ready first, and stay so, since they take turns. Each then computes into an
 * overwritten result, which is checked, and BIT_REPEATS times more, whose bits are compared. Then
 * comes the timing; and after it once more a result, which must have the first one's bits or be
 * right by itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BIT_REPEATS = 5, OPENINGS = 5 };
static const double QUICK_SECONDS = 0.05; /* to make something ready: below, OPENINGS times */
static const double LONG_SECONDS = 0.5;   /* of a solve: from there on it is repeated once */

/* What an outcome needs while the trial runs. */
struct stand {
    const struct peer *peer; /* NULL: ours */
    struct own own;
    void *state; /* the peer's */
    bool open;
};

struct course {
    struct trial *trial;
    struct stand stands[ROSTER_MOST];
    void *first, *again; /* host: results */
};

static int run_once(const struct course *course, int number)
{
    const struct stand *const stand = &course->stands[number];
    return stand->peer != NULL ? stand->peer->run(stand->state)
                               : course->trial->work.operation->run((void *)&stand->own);
}

static void fail(struct outcome *outcome, spmv_status status, const char *sentence)
{
    outcome->failed_status = status;
    snprintf(outcome->failed, sizeof outcome->failed, "%s", sentence);
}

static bool takes_part(const struct course *course, int number)
{
    return course->stands[number].open && course->trial->outcomes[number].failed[0] == '\0';
}

static bool tick(struct trial *trial, int number)
{
    trial->ended = trial->ended || (trial->tick != NULL && trial->tick(trial->user, number) != 0);
    return !trial->ended;
}

static void close_stand(struct course *course, int number)
{
    struct stand *const stand = &course->stands[number];
    const struct operation *const operation = course->trial->work.operation;
    if (!stand->open)
        return;
    if (stand->peer != NULL && stand->peer->close != NULL)
        stand->peer->close(stand->state);
    else if (stand->peer == NULL && operation->close != NULL)
        operation->close(&stand->own);
    stand->open = false;
}

/* Makes it ready, and waits until it is. */
static void open_once(struct course *course, int number)
{
    struct trial *const trial = course->trial;
    struct work *const work = &trial->work;
    struct outcome *const outcome = &trial->outcomes[number];
    struct stand *const stand = &course->stands[number];
    char why[WHY_SIZE] = "";
    const double began = monotonic_seconds();
    stand->peer = outcome->entry->peer;
    if (stand->peer == NULL) {
        work->precond = outcome->entry->precond;
        const spmv_status st = work->operation->open(work, outcome->entry->name, &stand->own);
        if (st != SPMV_OK) {
            fail(outcome, st, work->error);
            return;
        }
        snprintf(outcome->method, sizeof outcome->method, "%s", stand->own.method);
        snprintf(outcome->why, sizeof outcome->why, "%s", stand->own.why);
        if (stand->own.layout != NULL)
            snprintf(outcome->layout, sizeof outcome->layout, "%s", stand->own.layout);
        outcome->plan_bytes = stand->own.plan_bytes;
        outcome->bits_may_differ = stand->own.bits_may_differ;
    } else if (work->operation->on_matrix && work->problem.row_ptr == NULL) {
        fail(outcome, SPMV_ERROR_LIMIT, "more than 2147483647 nonzeros: its interface here has 32-bit row offsets");
        return;
    } else if (type_parts(work->type) > 1) {
        fail(outcome, SPMV_ERROR_UNSUPPORTED, "it is measured in real types alone");
        return;
    } else if (stand->peer->open(&work->problem, &stand->state, why, sizeof why) != 0) {
        fail(outcome, SPMV_ERROR_UNSUPPORTED, why[0] != '\0' ? why : "it could not be made ready");
        return;
    }
    stand->open = true;
    if (work->device->functions->wait(work->device, why) != 0)
        fail(outcome, SPMV_ERROR_DEVICE, why);
    outcome->plan_seconds = monotonic_seconds() - began;
}

/* Makes it ready; what is quick, several times, and the median counts: the first may load its
 * kernels. */
static void open_stand(struct course *course, int number)
{
    struct outcome *const outcome = &course->trial->outcomes[number];
    double seconds[OPENINGS];
    open_once(course, number);
    if (!course->stands[number].open || outcome->plan_seconds > QUICK_SECONDS)
        return;
    seconds[0] = outcome->plan_seconds;
    for (int i = 1; i < OPENINGS; i++) {
        close_stand(course, number);
        open_once(course, number);
        if (!course->stands[number].open)
            return;
        seconds[i] = outcome->plan_seconds;
    }
    outcome->plan_seconds = timing_summary(seconds, OPENINGS).median;
}

/* Only tests of the check ask for this. */
static void plant(const struct trial *trial, const struct outcome *outcome, void *host_result)
{
    if (trial->plant_error && outcome == &trial->outcomes[0] && trial->work.result_bytes > 0)
        memset(host_result, 0xff, spmv_type_size(trial->work.type));
}

/* One result, computed over bytes that are no numbers, in host memory. *seconds: the run alone. */
static spmv_status compute(struct course *course, int number, void *host_result, double *seconds)
{
    struct trial *const trial = course->trial;
    struct work *const work = &trial->work;
    struct outcome *const outcome = &trial->outcomes[number];
    const struct stand *const stand = &course->stands[number];
    char why[WHY_SIZE] = "";
    spmv_status st = work_poison(work);
    if (st != SPMV_OK)
        return st;
    if (work->device->functions->wait(work->device, why) != 0) {
        snprintf(work->error, sizeof work->error, "%s", why);
        return SPMV_ERROR_DEVICE;
    }
    const double began = monotonic_seconds();
    int failed = run_once(course, number);
    if (failed == 0)
        failed = work->device->functions->wait(work->device, why);
    *seconds = monotonic_seconds() - began;
    if (failed == 0 && stand->peer != NULL && stand->peer->fetch != NULL)
        failed = stand->peer->fetch(stand->state);
    if (failed == 0 && stand->peer == NULL) { /* a method may choose as it runs */
        snprintf(outcome->method, sizeof outcome->method, "%s", stand->own.method);
        snprintf(outcome->why, sizeof outcome->why, "%s", stand->own.why);
    }
    if (failed == 0) {
        st = work_download(work, host_result);
        plant(trial, outcome, host_result);
        return st;
    }
    fail(outcome, SPMV_ERROR_DEVICE,
         why[0] != '\0'        ? why
         : stand->peer == NULL ? spmv_last_error(work->ctx)
                               : "a run failed");
    return SPMV_OK;
}

/* Compares with what is right. */
static spmv_status check(struct course *course, int number, void *host_result)
{
    struct trial *const trial = course->trial;
    struct outcome *const outcome = &trial->outcomes[number];
    double ratio = 0;
    int64_t at = -1;
    const spmv_status st = trial->work.operation->check(&trial->work, host_result, &ratio, &at);
    if (st != SPMV_OK && st != SPMV_ERROR_CHECK)
        return st;
    if (!outcome->checked || !(ratio <= outcome->worst_ratio)) {
        outcome->worst_ratio = ratio;
        outcome->worst_at = at;
    }
    if (!outcome->checked)
        outcome->solved = trial->work.solved;
    if (course->stands[number].peer == NULL && course->stands[number].own.precond != NULL)
        snprintf(outcome->precond, sizeof outcome->precond, "%s", course->stands[number].own.precond);
    outcome->true_residual = trial->work.true_residual;
    outcome->checked = true;
    outcome->wrong = outcome->wrong || st == SPMV_ERROR_CHECK;
    return SPMV_OK;
}

/* Repeats whose bits are compared with the first. */
static int bit_repeats(const struct outcome *outcome)
{
    return outcome->first_call_seconds >= LONG_SECONDS ? 1 : BIT_REPEATS;
}

/* The first result, checked, and the repeats' bits. A probe has no result: it only runs. */
static spmv_status check_first(struct course *course, int number)
{
    struct trial *const trial = course->trial;
    struct outcome *const outcome = &trial->outcomes[number];
    const size_t bytes = (size_t)trial->work.result_bytes;
    double seconds;
    spmv_status st = compute(course, number, course->first, &outcome->first_call_seconds);
    const bool probe = course->stands[number].peer != NULL && course->stands[number].peer->probe != 0;
    if (st == SPMV_OK && takes_part(course, number) && !probe)
        st = check(course, number, course->first);
    for (int i = 0; st == SPMV_OK && i < bit_repeats(outcome) && takes_part(course, number) && !probe; i++) {
        st = compute(course, number, course->again, &seconds);
        outcome->bit_repeats++;
        outcome->bit_different += memcmp(course->first, course->again, bytes) != 0;
    }
    return st;
}

/* After the timing, on the contents that were timed: two more results. */
static spmv_status check_again(struct course *course, int number)
{
    struct trial *const trial = course->trial;
    struct outcome *const outcome = &trial->outcomes[number];
    double seconds;
    if (!takes_part(course, number) || (course->stands[number].peer != NULL && course->stands[number].peer->probe != 0))
        return SPMV_OK;
    spmv_status st = compute(course, number, course->first, &seconds);
    if (st == SPMV_OK && trial->work.operation->fill == NULL && takes_part(course, number))
        st = check(course, number, course->first);
    for (int i = 0; st == SPMV_OK && i < bit_repeats(outcome) && takes_part(course, number); i++) {
        st = compute(course, number, course->again, &seconds);
        outcome->bit_repeats++;
        outcome->bit_different += memcmp(course->first, course->again, (size_t)trial->work.result_bytes) != 0;
    }
    return st;
}

struct ticker {
    struct trial *trial;
    const int *numbers; /* of the outcomes behind the contenders */
};

static int on_tick(void *user, int contender)
{
    const struct ticker *const ticker = user;
    return tick(ticker->trial, ticker->numbers[contender]) ? 0 : 1;
}

/* Times all that are still there. */
static spmv_status time_all(struct course *course)
{
    struct trial *const trial = course->trial;
    struct contender *const contenders = calloc(ROSTER_MOST, sizeof *contenders);
    int numbers[ROSTER_MOST], count = 0;
    if (contenders == NULL)
        return work_out_of_memory(&trial->work, "the contenders", ROSTER_MOST * (int64_t)sizeof *contenders);
    for (int i = 0; i < trial->count; i++) {
        struct stand *const stand = &course->stands[i];
        if (!takes_part(course, i))
            continue;
        numbers[count] = i;
        contenders[count++] = stand->peer != NULL
                                  ? (struct contender){.run = stand->peer->run,
                                                       .run_timed = stand->peer->run_timed,
                                                       .state = stand->state}
                                  : (struct contender){.run = trial->work.operation->run, .state = &stand->own};
    }
    struct ticker ticker = {.trial = trial, .numbers = numbers};
    if (trial->work.operation->solver) { /* what one iteration leaves in the caches is the next one's business */
        trial->options.flushed_rounds = 0;
        trial->options.long_seconds = LONG_SECONDS;
    }
    const int failed =
        measure(trial->work.device, contenders, count, &trial->options, on_tick, &ticker, trial->work.error);
    for (int c = 0; c < count; c++) {
        struct outcome *const outcome = &trial->outcomes[numbers[c]];
        outcome->warm = contenders[c].warm;
        outcome->flushed = contenders[c].flushed;
        outcome->measured = contenders[c].warm.repeats > 0;
        if (course->stands[numbers[c]].peer == NULL)
            outcome->setup_seconds = course->stands[numbers[c]].own.setup_seconds;
        if (contenders[c].failed)
            fail(outcome, SPMV_ERROR_DEVICE, contenders[c].why);
    }
    free(contenders);
    return failed == 0 ? SPMV_OK : SPMV_ERROR_DEVICE;
}

/* A peer that stopped short of the tolerance does not count beside one of ours that reached it. */
static void mark_unfinished(struct trial *trial)
{
    bool reached = false, there = false;
    for (int i = 0; i < trial->count; i++) {
        const struct outcome *const o = &trial->outcomes[i];
        there = there || (o->entry->ours && o->checked);
        reached = reached || (o->entry->ours && outcome_converged(trial, o));
    }
    for (int i = 0; i < trial->count; i++) {
        struct outcome *const o = &trial->outcomes[i];
        o->unfinished = !o->entry->ours && o->checked && !outcome_converged(trial, o) && (reached || !there);
    }
}

/* A figure beyond what memory can do is not wrong, but it is not memory's. */
static void annotate(struct trial *trial)
{
    const double cache = (double)trial->work.device->cache_bytes;
    for (int i = 0; i < trial->count; i++) {
        struct outcome *const outcome = &trial->outcomes[i];
        const double gbs = outcome_gbs(trial, outcome);
        if (trial->read_gbs <= 0 || gbs <= trial->read_gbs)
            continue;
        snprintf(outcome->note, sizeof outcome->note, "beyond memory's %.0f GB/s: %s", trial->read_gbs,
                 trial->work.model_bytes <= cache
                     ? "the data fits in the last-level cache"
                     : "a part stays in the last-level cache, or less is moved than counted");
    }
}

static spmv_status run_course(struct course *course)
{
    struct trial *const trial = course->trial;
    struct work *const work = &trial->work;
    spmv_status st = SPMV_OK;
    for (int i = 0; i < trial->count && tick(trial, i); i++)
        if (trial->outcomes[i].entry->missing[0] == '\0')
            open_stand(course, i);
    for (int i = 0; st == SPMV_OK && i < trial->count; i++)
        if (trial->outcomes[i].failed_status == SPMV_ERROR_METHOD) {
            st = SPMV_ERROR_METHOD;
            snprintf(work->error, sizeof work->error, "%s", trial->outcomes[i].failed);
        }
    if (st == SPMV_OK && work->operation->fill != NULL)
        st = work->operation->fill(work, true);
    for (int i = 0; st == SPMV_OK && i < trial->count && tick(trial, i); i++)
        if (takes_part(course, i))
            st = check_first(course, i);
    if (st == SPMV_OK && work->operation->fill != NULL)
        st = work->operation->fill(work, false);
    if (st == SPMV_OK && !trial->ended)
        st = time_all(course);
    for (int i = 0; st == SPMV_OK && i < trial->count && !trial->ended; i++)
        st = check_again(course, i);
    return st;
}

spmv_status trial_run(struct trial *trial)
{
    struct work *const work = &trial->work;
    struct course *const course = calloc(1, sizeof *course);
    trial->count = trial->roster->count;
    for (int i = 0; i < trial->count; i++) {
        trial->outcomes[i] = (struct outcome){.entry = &trial->roster->entries[i], .worst_at = -1};
        memcpy(trial->outcomes[i].method, trial->roster->entries[i].name, NAME_SIZE);
    }
    if (course == NULL)
        return work_out_of_memory(work, "a trial", (int64_t)sizeof *course);
    course->trial = trial;
    spmv_status st = tick(trial, -1) ? work_open(work) : SPMV_OK;
    if (st == SPMV_OK && !trial->ended) {
        course->first = malloc((size_t)work->result_bytes + 1);
        course->again = malloc((size_t)work->result_bytes + 1);
        st = course->first != NULL && course->again != NULL
                 ? run_course(course)
                 : work_out_of_memory(work, "two results", 2 * work->result_bytes);
    }
    for (int i = 0; i < trial->count; i++)
        close_stand(course, i);
    if (work->operation->solver)
        mark_unfinished(trial);
    annotate(trial);
    free(course->first);
    free(course->again);
    free(course);
    return st;
}

void trial_close(struct trial *trial)
{
    work_close(&trial->work);
}

double outcome_gbs(const struct trial *trial, const struct outcome *outcome)
{
    return outcome->measured && outcome->warm.median > 0 && !trial->work.solutions
               ? 1e-9 * trial->work.model_bytes * outcome_steps(trial, outcome) / outcome->warm.median
               : 0;
}

double outcome_steps(const struct trial *trial, const struct outcome *outcome)
{
    const bool iterations = trial->work.operation->solver && !trial->work.solutions;
    return iterations && outcome->solved.iterations > 0 ? (double)outcome->solved.iterations : 1;
}

bool outcome_converged(const struct trial *trial, const struct outcome *outcome)
{
    return outcome->checked && !outcome->wrong && outcome->solved.residual <= trial->work.problem.rtol;
}

const struct outcome *trial_best_peer(const struct trial *trial)
{
    const struct outcome *best = NULL;
    for (int i = 0; i < trial->count; i++) {
        const struct outcome *const o = &trial->outcomes[i];
        if (o->entry->peer == NULL || o->entry->peer->probe != 0 || !o->measured || o->wrong || o->unfinished)
            continue;
        if (best == NULL || o->warm.median / outcome_steps(trial, o) < best->warm.median / outcome_steps(trial, best))
            best = o;
    }
    return best;
}
