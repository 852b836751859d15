/* The steps of a trial.
 *
 * First all candidates are opened; they stay open, since they take turns. Each then computes a
 * result in memory filled with NaN, which is checked, and BIT_REPEATS more, whose bits are
 * compared, on the device. Then they are timed. Afterwards each computes as many, which are checked
 * in the same way.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/faults.h"

enum { BIT_REPEATS = 5, OPENINGS = 5 };
/* candidates that open faster are opened OPENINGS times */
static const double QUICK_SECONDS = 0.05;

/* State of a candidate during the trial. */
struct slot {
    const struct peer *peer; /* NULL: spmv */
    struct method method;
    void *state; /* the peer's */
    /* of a peer with a preconditioner of its own: what its runs write; the set-up of the last timed one */
    const struct peer_solved *solved;
    double setup_seconds;
    bool open;
};

static bool has_own_precond(const struct slot *slot)
{
    return slot->peer != NULL && slot->peer->op == PEER_CG_PRECOND;
}

struct run {
    struct trial *trial;
    struct slot slots[CANDIDATES_MOST];
    void *host_result;
};

static int run_once(const struct run *run, int number)
{
    const struct slot *const slot = &run->slots[number];
    return slot->peer != NULL ? slot->peer->run(slot->state)
                              : run->trial->work.operation->methods.run((void *)&slot->method);
}

static void fail(struct result *result, spmv_status status, const char *sentence)
{
    result->failed_status = status;
    snprintf(result->failed, sizeof result->failed, "%s", sentence);
}

static bool takes_part(const struct run *run, int number)
{
    return run->slots[number].open && run->trial->results[number].failed[0] == '\0';
}

static bool tick(struct trial *trial, int number)
{
    trial->ended = trial->ended || (trial->tick != NULL && trial->tick(trial->user, number) != 0);
    return !trial->ended;
}

static void close_slot(struct run *run, int number)
{
    struct slot *const slot = &run->slots[number];
    const struct operation *const operation = run->trial->work.operation;
    if (!slot->open)
        return;
    if (slot->peer != NULL && slot->peer->close != NULL)
        slot->peer->close(slot->state);
    else if (slot->peer == NULL && operation->methods.close != NULL)
        operation->methods.close(&slot->method);
    slot->open = false;
}

/* Opens a candidate and waits until it is ready. */
static void open_once(struct run *run, int number)
{
    struct trial *const trial = run->trial;
    struct work *const work = &trial->work;
    struct result *const result = &trial->results[number];
    struct slot *const slot = &run->slots[number];
    char why[WHY_SIZE] = "";
    const double began = monotonic_seconds();
    slot->peer = result->candidate->peer;
    if (slot->peer == NULL) {
        work->precond = result->candidate->precond;
        const spmv_status st = work->operation->methods.open(work, result->candidate->name, &slot->method);
        if (st != SPMV_OK) {
            fail(result, st, work->error);
            return;
        }
        snprintf(result->method, sizeof result->method, "%s", slot->method.name);
        snprintf(result->why, sizeof result->why, "%s", slot->method.why);
        if (slot->method.layout != NULL)
            snprintf(result->layout, sizeof result->layout, "%s", slot->method.layout);
        result->figures = slot->method.figures;
    } else if (work->operation->on_matrix && work->problem.row_ptr == NULL) {
        fail(result, SPMV_ERROR_LIMIT, "more than 2147483647 nonzeros: its interface has 32-bit row offsets");
        return;
    } else if (type_parts(work->type) > 1) {
        fail(result, SPMV_ERROR_UNSUPPORTED, "it is measured only in real types");
        return;
    } else if (type_is_half(work->type) && (slot->peer->flags & PEER_HALVES) == 0) {
        fail(result, SPMV_ERROR_UNSUPPORTED, "it is measured only in f32 and f64");
        return;
    } else if (slot->peer->open(&work->problem, &slot->state, why, sizeof why) != 0) {
        fail(result, SPMV_ERROR_UNSUPPORTED, why[0] != '\0' ? why : "it could not be prepared");
        return;
    }
    slot->open = true;
    if (work->device->functions->wait(work->device, why) != 0)
        fail(result, SPMV_ERROR_DEVICE, why);
    result->plan_seconds = monotonic_seconds() - began;
}

/* Opens a candidate. If that is quick, it is repeated and the median counts, because the first time
 * may load kernels. */
static void open_slot(struct run *run, int number)
{
    struct result *const result = &run->trial->results[number];
    double seconds[OPENINGS];
    open_once(run, number);
    if (!run->slots[number].open || result->plan_seconds > QUICK_SECONDS)
        return;
    seconds[0] = result->plan_seconds;
    for (int i = 1; i < OPENINGS; i++) {
        close_slot(run, number);
        open_once(run, number);
        if (!run->slots[number].open)
            return;
        seconds[i] = result->plan_seconds;
    }
    result->plan_seconds = timing_summary(seconds, OPENINGS).median;
}

/* Makes the result of the first candidate wrong if a test requests it (faults.h). */
static void plant(const struct trial *trial, const struct result *result, void *host_result)
{
    if (fault_text(FAULT_ERROR) != NULL && result == &trial->results[0] && trial->work.result_bytes > 0)
        memset(host_result, 0xff, spmv_type_size(trial->work.type));
}

/* Computes one result; its memory is filled with NaN before. *seconds: the run alone. */
static spmv_status compute(struct run *run, int number, double *seconds)
{
    struct trial *const trial = run->trial;
    struct work *const work = &trial->work;
    struct result *const result = &trial->results[number];
    const struct slot *const slot = &run->slots[number];
    char why[WHY_SIZE] = "";
    spmv_status st = work_poison(work);
    if (st != SPMV_OK)
        return st;
    if (work->device->functions->wait(work->device, why) != 0) {
        snprintf(work->error, sizeof work->error, "%s", why);
        return SPMV_ERROR_DEVICE;
    }
    const bool memory = work->operation->allocates && work->device->functions->memory_begin != NULL;
    if (memory)
        work->device->functions->memory_begin(work->device);
    const double began = monotonic_seconds();
    int failed = run_once(run, number);
    if (failed == 0)
        failed = work->device->functions->wait(work->device, why);
    *seconds = monotonic_seconds() - began;
    const int64_t bytes = memory ? work->device->functions->memory_end(work->device) : 0;
    result->run_bytes = bytes > result->run_bytes ? bytes : result->run_bytes;
    if (failed == 0 && slot->peer != NULL && slot->peer->fetch != NULL)
        failed = slot->peer->fetch(slot->state);
    if (failed == 0 && slot->peer == NULL && work->operation->methods.fetch != NULL)
        work->operation->methods.fetch(work);
    if (failed == 0 && slot->peer == NULL) { /* the method may be chosen during the run */
        snprintf(result->method, sizeof result->method, "%s", slot->method.name);
        snprintf(result->why, sizeof result->why, "%s", slot->method.why);
    }
    if (failed == 0)
        return SPMV_OK;
    const bool ours_ended = slot->peer == NULL && slot->method.failed != SPMV_OK; /* the run gives the reason */
    fail(result, ours_ended ? slot->method.failed : SPMV_ERROR_DEVICE,
         why[0] != '\0'       ? why
         : slot->peer == NULL ? spmv_last_error(work->ctx)
                              : "a run failed");
    return SPMV_OK;
}

/* Compares the result with the right one. */
static spmv_status check(struct run *run, int number)
{
    struct trial *const trial = run->trial;
    struct work *const work = &trial->work;
    struct result *const result = &trial->results[number];
    const struct slot *const slot = &run->slots[number];
    struct check found = {.at = -1};
    spmv_status st = work_download(work, run->host_result);
    if (st != SPMV_OK)
        return st;
    plant(trial, result, run->host_result);
    st = work->operation->check(work, run->host_result, &found);
    if (st != SPMV_OK && st != SPMV_ERROR_CHECK)
        return st;
    if (!result->checked || !(found.ratio <= result->worst_ratio)) {
        result->worst_ratio = found.ratio;
        result->worst_at = found.at;
    }
    if (!result->checked && work->problem.solved != NULL)
        result->solved = *work->problem.solved;
    if (slot->peer == NULL && slot->method.precond != NULL)
        snprintf(result->precond, sizeof result->precond, "%s", slot->method.precond);
    if (has_own_precond(slot))
        snprintf(result->precond, sizeof result->precond, "own");
    result->check = found;
    result->checked = true;
    result->wrong = result->wrong || st == SPMV_ERROR_CHECK;
    return SPMV_OK;
}

/* A probe only runs and has no result. */
static bool has_result(const struct run *run, int number)
{
    const struct peer *const peer = run->slots[number].peer;
    return takes_part(run, number) && (peer == NULL || (peer->flags & PEER_PROBE) == 0);
}

/* Keeps the result, runs the candidate some more times, and compares the bits. */
static spmv_status compare_bits(struct run *run, int number)
{
    struct result *const result = &run->trial->results[number];
    const int repeats = result->first_call_seconds >= LONG_RUN_SECONDS ? 1 : BIT_REPEATS;
    double seconds;
    spmv_status st = has_result(run, number) ? work_keep_result(&run->trial->work) : SPMV_OK;
    for (int i = 0; st == SPMV_OK && i < repeats && has_result(run, number); i++) {
        bool same = false;
        st = compute(run, number, &seconds);
        if (st == SPMV_OK)
            st = work_same_result(&run->trial->work, &same);
        result->bit_repeats++;
        result->bit_different += !same;
    }
    return st;
}

/* Checks the first result and the bits of the repeats. */
static spmv_status check_first(struct run *run, int number)
{
    spmv_status st = compute(run, number, &run->trial->results[number].first_call_seconds);
    if (st == SPMV_OK && has_result(run, number))
        st = check(run, number);
    return st == SPMV_OK ? compare_bits(run, number) : st;
}

/* After the timing, on the contents that were timed: checks two more results. */
static spmv_status check_again(struct run *run, int number)
{
    double seconds;
    if (!has_result(run, number))
        return SPMV_OK;
    spmv_status st = compute(run, number, &seconds);
    if (st == SPMV_OK && run->trial->work.operation->fill == NULL && has_result(run, number))
        st = check(run, number);
    return st == SPMV_OK ? compare_bits(run, number) : st;
}

struct ticker {
    struct trial *trial;
    const int *numbers; /* index of each contender's result */
};

static int on_tick(void *user, int contender)
{
    const struct ticker *const ticker = user;
    return tick(ticker->trial, ticker->numbers[contender]) ? 0 : 1;
}

/* As the functions of such a peer. */
static int run_with_setup(void *state)
{
    struct slot *const slot = state;
    const int failed = slot->peer->run(slot->state);
    slot->setup_seconds = slot->solved->setup_seconds;
    return failed;
}

static int run_timed_with_setup(void *state, int repeats, double *seconds)
{
    struct slot *const slot = state;
    const int failed = slot->peer->run_timed(slot->state, repeats, seconds);
    slot->setup_seconds = slot->solved->setup_seconds;
    return failed;
}

static struct contender contender_of(const struct trial *trial, struct slot *slot)
{
    if (slot->peer == NULL)
        return (struct contender){.run = trial->work.operation->methods.run, .state = &slot->method};
    slot->solved = trial->work.problem.solved;
    if (!has_own_precond(slot))
        return (struct contender){.run = slot->peer->run, .run_timed = slot->peer->run_timed, .state = slot->state};
    return (struct contender){
        .run = run_with_setup, .run_timed = slot->peer->run_timed != NULL ? run_timed_with_setup : NULL, .state = slot};
}

/* Times all candidates that have not failed. */
static spmv_status time_all(struct run *run)
{
    struct trial *const trial = run->trial;
    struct contender *const contenders = calloc(CANDIDATES_MOST, sizeof *contenders);
    int numbers[CANDIDATES_MOST], count = 0;
    if (contenders == NULL)
        return work_out_of_memory(&trial->work, "the contenders", CANDIDATES_MOST * (int64_t)sizeof *contenders);
    for (int i = 0; i < trial->count; i++) {
        struct slot *const slot = &run->slots[i];
        if (!takes_part(run, i))
            continue;
        numbers[count] = i;
        contenders[count++] = contender_of(trial, slot);
    }
    struct ticker ticker = {.trial = trial, .numbers = numbers};
    if (trial->work.operation->adapt != NULL)
        trial->work.operation->adapt(&trial->options);
    const int failed =
        measure(trial->work.device, contenders, count, &trial->options, on_tick, &ticker, trial->work.error);
    for (int c = 0; c < count; c++) {
        struct result *const result = &trial->results[numbers[c]];
        result->warm = contenders[c].warm;
        result->flushed = contenders[c].flushed;
        result->measured = contenders[c].warm.repeats > 0;
        const struct slot *const slot = &run->slots[numbers[c]];
        if (slot->peer == NULL)
            result->figures = slot->method.figures;
        else
            result->figures.setup_seconds = slot->setup_seconds;
        if (contenders[c].failed)
            fail(result, SPMV_ERROR_DEVICE, contenders[c].why);
    }
    free(contenders);
    return failed == 0 ? SPMV_OK : SPMV_ERROR_DEVICE;
}

/* Excludes peers that stopped short of the tolerance if one of spmv's methods reached it. */
static void mark_unfinished(struct trial *trial)
{
    bool reached = false, there = false;
    for (int i = 0; i < trial->count; i++) {
        const struct result *const r = &trial->results[i];
        there = there || (r->candidate->ours && r->checked);
        reached = reached || (r->candidate->ours && result_converged(trial, r));
    }
    for (int i = 0; i < trial->count; i++) {
        struct result *const r = &trial->results[i];
        r->unfinished = !r->candidate->ours && r->checked && !result_converged(trial, r) && (reached || !there);
    }
}

/* Adds a note to figures above the memory bandwidth: they are possible, but not a speed of
 * memory. */
static void annotate(struct trial *trial)
{
    const double cache = (double)trial->work.device->cache_bytes;
    for (int i = 0; i < trial->count; i++) {
        struct result *const result = &trial->results[i];
        const double gbs = result_gbs(trial, result);
        if (trial->read_gbs <= 0 || gbs <= trial->read_gbs)
            continue;
        snprintf(result->note, sizeof result->note, "above the memory's %.0f GB/s: %s", trial->read_gbs,
                 trial->work.model_bytes <= cache
                     ? "the data fit in the last-level cache"
                     : "a part stays in the last-level cache, or fewer bytes are moved than counted");
    }
}

static spmv_status run_all(struct run *run)
{
    struct trial *const trial = run->trial;
    struct work *const work = &trial->work;
    spmv_status st = SPMV_OK;
    for (int i = 0; i < trial->count && tick(trial, i); i++)
        if (trial->results[i].candidate->missing[0] == '\0')
            open_slot(run, i);
    for (int i = 0; st == SPMV_OK && i < trial->count; i++)
        if (trial->results[i].failed_status == SPMV_ERROR_METHOD) {
            st = SPMV_ERROR_METHOD;
            snprintf(work->error, sizeof work->error, "%s", trial->results[i].failed);
        }
    if (st == SPMV_OK && work->operation->fill != NULL)
        st = work->operation->fill(work, true);
    const bool checked = work->operation->check != NULL;
    for (int i = 0; st == SPMV_OK && checked && i < trial->count && tick(trial, i); i++)
        if (takes_part(run, i))
            st = check_first(run, i);
    if (st == SPMV_OK && work->operation->fill != NULL)
        st = work->operation->fill(work, false);
    if (st == SPMV_OK && !trial->ended)
        st = time_all(run);
    for (int i = 0; st == SPMV_OK && checked && i < trial->count && !trial->ended; i++)
        st = check_again(run, i);
    return st;
}

spmv_status trial_run(struct trial *trial)
{
    struct work *const work = &trial->work;
    struct run *const run = calloc(1, sizeof *run);
    trial->count = trial->list->count;
    for (int i = 0; i < trial->count; i++) {
        trial->results[i] = (struct result){.candidate = &trial->list->candidates[i], .worst_at = -1};
        memcpy(trial->results[i].method, trial->list->candidates[i].name, NAME_SIZE);
    }
    if (run == NULL)
        return work_out_of_memory(work, "a trial", (int64_t)sizeof *run);
    run->trial = trial;
    spmv_status st = tick(trial, -1) ? work_open(work) : SPMV_OK;
    if (st == SPMV_OK && !trial->ended) {
        run->host_result = malloc((size_t)work->result_bytes + 1);
        st = run->host_result != NULL ? run_all(run) : work_out_of_memory(work, "a result", work->result_bytes);
    }
    for (int i = 0; i < trial->count; i++)
        close_slot(run, i);
    if (work->operation->solver)
        mark_unfinished(trial);
    annotate(trial);
    free(run->host_result);
    free(run);
    return st;
}

void trial_close(struct trial *trial)
{
    work_close(&trial->work);
}

double result_gbs(const struct trial *trial, const struct result *result)
{
    return result->measured && result->warm.median > 0 && !trial->work.solutions
               ? 1e-9 * trial->work.model_bytes * result_steps(trial, result) / result->warm.median
               : 0;
}

double result_steps(const struct trial *trial, const struct result *result)
{
    const bool iterations = trial->work.operation->solver && !trial->work.solutions;
    return iterations && result->solved.iterations > 0 ? (double)result->solved.iterations : 1;
}

bool result_converged(const struct trial *trial, const struct result *result)
{
    return result->checked && !result->wrong && result->solved.residual <= trial->work.problem.rtol;
}

const struct result *trial_best_peer(const struct trial *trial)
{
    const struct result *best = NULL;
    for (int i = 0; i < trial->count; i++) {
        const struct result *const r = &trial->results[i];
        if (r->candidate->peer == NULL || (r->candidate->peer->flags & PEER_PROBE) != 0 || !r->measured || r->wrong ||
            r->unfinished)
            continue;
        if (best == NULL || r->warm.median / result_steps(trial, r) < best->warm.median / result_steps(trial, best))
            best = r;
    }
    return best;
}
