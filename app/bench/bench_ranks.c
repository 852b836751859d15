/* spmv bench on several ranks: the time of a product, and of an iteration of conjugate gradients or, with
 * a preconditioner other than jacobi, of a whole solution: set-up and solve.
 *
 * The time of an iteration is that of a long solve less the least time of a short one, divided by the
 * difference of their numbers of iterations: what a solve does once does not count.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "app/bench/bench_ranks.h"
#include "app/input.h"
#include "app/job_memory.h"
#include "app/output.h"
#include "app/product.h"
#include "app/solve/solve.h"
#include "bench/timing.h"
#include "core/choice.h"
#include "core/reals.h"

/* Numbers of timed runs, of products that a GPU has queued in each, and iterations of the short and, by default, of
 * the long solve, and of a whole solution. */
enum { PRODUCTS = 20, QUEUED = 10, SOLVES = 5, FEW_ITERATIONS = 20, MANY_ITERATIONS = 500, MOST_ITERATIONS = 3000 };

static const char *refuse(const struct options *o)
{
    static const char *const without[] = {"suite", "csv",     "summary", "seed",   "vectors",
                                          "right", "project", "size",    "restart"};
    static char text[80];
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (option_given(o, without[i])) {
            snprintf(text, sizeof text, "--%s is not supported on several ranks", without[i]);
            return text;
        }
    if (option_given(o, "peers") && strcmp(o->peers, "none") != 0)
        return "--peers is not supported on several ranks, except --peers none";
    if (strcmp(o->op, "spmv") != 0 && strcmp(o->op, "cg") != 0)
        return "several ranks measure --op spmv and --op cg only";
    if (option_given(o, "precond") && (strchr(o->precond, ',') != NULL || strcmp(o->precond, "all") == 0))
        return "several ranks measure one preconditioner at a time: give --precond one name";
    return NULL;
}

struct bench {
    struct place *place;
    struct input in;
    struct product p; /* x, and y or the right-hand side */
    bool solves;
    void *x; /* of the solves */
    spmv_preconditioner *precond;
    const char *precond_name;
    bool solutions; /* are timed, not iterations */
    double rtol;
    double precond_seconds; /* of the last solution */
    spmv_cg_result result;
    struct timing timing;
};

/* One product, checked; then the timed ones. */
static spmv_status measure_products(struct bench *b)
{
    struct product *const p = &b->p;
    const union real one = real_scalar(p->type, 1), zero = real_scalar(p->type, 0);
    const int queued = spmv_context_backend(p->ctx) == SPMV_BACKEND_CUDA ? QUEUED : 1;
    double samples[PRODUCTS];
    spmv_status st = SPMV_OK;
    place_start(b->place);
    for (int i = 0; i < PRODUCTS && st == SPMV_OK; i++) {
        const double began = monotonic_seconds();
        for (int k = 0; k < queued && st == SPMV_OK; k++)
            st = spmv_group_apply(b->place->matrix, &one, p->x, &zero, p->y);
        if (st == SPMV_OK && (st = spmv_synchronize(p->ctx)) != SPMV_OK) /* the others wait for the next product */
            spmv_group_break(b->place->group, st, spmv_last_error(p->ctx));
        samples[i] = (monotonic_seconds() - began) / queued;
    }
    place_stop(b->place);
    if (st == SPMV_OK)
        b->timing = timing_summary(samples, PRODUCTS);
    return place_passed(b->place, st);
}

/* A solve of at most `limit` iterations from 0; *seconds: its time. */
static spmv_status solve(struct bench *b, int64_t limit, double *seconds)
{
    spmv_cg_options options;
    spmv_cg_options_init(&options, sizeof options);
    options.rtol = b->rtol;
    options.max_iterations = limit;
    options.zero_start = 1;
    options.precond = b->precond;
    options.rung = b->place->o->rung;
    spmv_status st = place_agree(b->place, SPMV_OK); /* all ranks begin now */
    if (st != SPMV_OK)
        return st;
    place_start(b->place);
    st = spmv_group_cg(b->place->matrix, b->p.y, b->x, &options, &b->result, sizeof b->result);
    place_stop(b->place);
    *seconds = b->place->seconds;
    return st == SPMV_ERROR_ITERATIONS || st == SPMV_ERROR_STAGNATION ? SPMV_OK : place_passed(b->place, st);
}

/* Makes the preconditioner. *seconds: the time. */
static spmv_status make_precond(struct bench *b, double *seconds)
{
    const double began = monotonic_seconds();
    const spmv_status st = spmv_group_preconditioner_create(b->place->matrix, b->precond_name, &b->precond);
    *seconds = monotonic_seconds() - began;
    return place_passed(b->place, st);
}

/* Whole solutions, after one that is not timed. All ranks begin at the same time, and end together. */
static spmv_status measure_solutions(struct bench *b)
{
    double samples[SOLVES], seconds = 0;
    const int limit = b->place->o->max_iterations > 0 ? b->place->o->max_iterations : MOST_ITERATIONS;
    spmv_status st = SPMV_OK;
    for (int i = -1; i < SOLVES && st == SPMV_OK; i++) {
        st = place_agree(b->place, SPMV_OK);
        if (st == SPMV_OK)
            st = make_precond(b, &b->precond_seconds);
        if (st == SPMV_OK)
            st = solve(b, limit, &seconds);
        if (st == SPMV_OK && b->result.status != SPMV_OK)
            st = place_passed(b->place, b->result.status); /* its time means nothing */
        spmv_preconditioner_destroy(b->precond);
        b->precond = NULL;
        samples[i > 0 ? i : 0] = b->precond_seconds + seconds;
    }
    if (st == SPMV_OK)
        b->timing = timing_summary(samples, SOLVES);
    return st;
}

static spmv_status measure_iterations(struct bench *b)
{
    double samples[SOLVES], few = 0, shortest = 0;
    int64_t iterations = 0; /* of the short solve */
    const struct options *const o = b->place->o;
    const int limit = o->max_iterations > FEW_ITERATIONS ? o->max_iterations : MANY_ITERATIONS;
    spmv_status st = option_given(o, "precond") ? make_precond(b, &b->precond_seconds) : SPMV_OK;
    if (st == SPMV_OK)
        st = solve(b, FEW_ITERATIONS, &few); /* loads the kernels */
    for (int i = 0; i < SOLVES && st == SPMV_OK; i++) {
        st = solve(b, FEW_ITERATIONS, &few);
        shortest = i == 0 || few < shortest ? few : shortest;
        iterations = b->result.iterations;
        if (st == SPMV_OK)
            st = solve(b, limit, &samples[i]);
    }
    if (st != SPMV_OK)
        return st;
    const int64_t more = b->result.iterations - iterations;
    for (int i = 0; i < SOLVES; i++)
        samples[i] = more > 0 ? (samples[i] - shortest) / (double)more : samples[i] / (double)(iterations + 1);
    b->timing = timing_summary(samples, SOLVES);
    return SPMV_OK;
}

static spmv_status measure_solves(struct bench *b)
{
    const struct options *const o = b->place->o;
    if (option_given(o, "precond"))
        b->precond_name = o->precond;
    b->solutions = strcmp(b->precond_name, "none") != 0 && strcmp(b->precond_name, "jacobi") != 0;
    b->rtol = b->solutions ? real_limits_of(b->p.type).tolerance : b->p.type == SPMV_F32 ? 1e-5 : 1e-12;
    const spmv_status st = place_vectors(b->place, "the vector x", SPMV_GROUP_COLS, 1, 0, &b->x);
    return st != SPMV_OK ? st : b->solutions ? measure_solutions(b) : measure_iterations(b);
}

/* The result goes to standard output, unless JSON does. */
static spmv_status tell(const struct bench *b)
{
    const struct options *const o = b->place->o;
    const double seconds = b->timing.median;
    char text[1024];
    if (b->solutions)
        snprintf(text, sizeof text, "cg of %s: %s (%s to %s) a solution, set-up of %s %s, %lld iterations, by %s",
                 b->in.argument, seconds_text(seconds), seconds_text(b->timing.min), seconds_text(b->timing.max),
                 b->result.precond, seconds_text(b->precond_seconds), (long long)b->result.iterations, b->result.rung);
    else
        snprintf(text, sizeof text, "%s of %s: %s (%s to %s)%s%s, %.1f Gflop/s in products", b->solves ? "cg" : "spmv",
                 b->in.argument, seconds_text(seconds), seconds_text(b->timing.min), seconds_text(b->timing.max),
                 b->solves ? " an iteration, by " : "", b->solves ? b->result.rung : "",
                 1e-9 * product_flops(&b->p) / seconds);
    progress_end();
    if (o->json && o->json_path == NULL)
        remark(LEVEL_QUIET, "%s", text);
    else
        puts(text);
    remark_plan(b->in.argument, &b->p);
    remark(LEVEL_NORMAL, "load %s, plan %s", seconds_text(b->in.seconds), seconds_text(b->p.info.seconds));
    if (b->place->o->verify != VERIFY_OFF)
        tell_check(&b->p, b->solves ? "b" : "y");
    return finish_stdout();
}

static json_t *json_cg(const struct bench *b)
{
    const spmv_cg_result *const r = &b->result;
    json_t *const cg =
        json_pack("{s:s, s:s, s:I}", "method", r->rung, "precond", r->precond, "iterations", (json_int_t)r->iterations);
    if (b->solutions) {
        json_put(cg, "rtol", json_number(b->rtol));
        json_put(cg, "relative_residual", json_number(r->norm_b > 0 ? r->true_residual / r->norm_b : 0));
        json_put(cg, "precond_seconds", json_number(b->precond_seconds));
        json_put(cg, "solution_seconds", json_number(b->timing.median));
    }
    return cg;
}

static spmv_status write_json(const struct bench *b)
{
    const struct options *const o = b->place->o;
    json_t *const root = json_about(o, b->p.ctx, &b->in, NULL);
    json_t *const result = json_plan(&b->p, b->solves ? "cg" : "spmv");
    json_put(result, "seconds", json_timing(&b->timing));
    if (b->solves)
        json_put(result, "cg", json_cg(b));
    json_put(root, "result", result);
    if (o->verify != VERIFY_OFF)
        json_put(root, "verify", json_check(&b->p));
    return json_finish(o, root);
}

/* Loads the matrix and makes one product, which is checked: y, or b of the solves. */
static spmv_status begin(struct bench *b, const char *argument, void **x)
{
    struct place *const place = b->place;
    const struct options *const o = place->o;
    spmv_status st = place_load(place, b->solves ? JOB_SOLVE : JOB_PRODUCT, argument, o->method, b->solves, &b->in);
    if (st == SPMV_OK)
        st = place_known_vectors(place, o->type, b->in.view.cols, 1, false, x);
    if (st != SPMV_OK)
        return st;
    b->p =
        (struct product){.place = place, .a = &b->in.view, .method = o->method, .type = o->type, .alpha = 1, .x = *x};
    st = product_plan(place->ctx, &b->p);
    if (st == SPMV_OK)
        st = product_run(&b->p);
    return st == SPMV_OK && o->verify != VERIFY_OFF ? product_check(o, &b->p) : st;
}

static spmv_status measure(struct place *place, const struct wish *wish)
{
    struct bench b = {.place = place, .solves = strcmp(place->o->op, "cg") == 0, .precond_name = "none"};
    void *x = NULL;
    spmv_status st = begin(&b, wish->arguments[0], &x), verdict = SPMV_OK;
    if (st == SPMV_ERROR_CHECK) {
        verdict = st;
        st = SPMV_OK;
    }
    if (st == SPMV_OK)
        st = b.solves ? measure_solves(&b) : measure_products(&b);
    if (st == SPMV_OK) {
        if (place_writes(place)) {
            st = place->o->json ? write_json(&b) : SPMV_OK;
            const spmv_status told = tell(&b);
            st = st != SPMV_OK ? st : told;
        }
        st = place_agree(place, st);
    }
    spmv_preconditioner_destroy(b.precond);
    place_free(place, b.x);
    place_free(place, x);
    product_free(&b.p);
    input_free(&b.in);
    return verdict != SPMV_OK ? verdict : st;
}

spmv_status bench_on_ranks(const struct options *o, const char *const *arguments, int count)
{
    spmv_status st = SPMV_OK;
    if (count < 1)
        return report(SPMV_ERROR_ARGUMENT, "bench on several ranks needs a matrix: a file or a generated one");
    if (o->json && count > 1)
        return report(SPMV_ERROR_ARGUMENT, "bench on several ranks writes the JSON of one matrix only");
    for (int i = 0; i < count && st == SPMV_OK; i++)
        st = place_run(o, refuse, measure, &(const struct wish){.arguments = &arguments[i], .count = 1});
    return st;
}
