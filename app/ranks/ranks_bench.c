/* spmv bench on several ranks: the time of a product, and of an iteration of conjugate gradients.
 *
 * The time of an iteration is that of a long solve less the least time of a short one, divided by the
 * difference of their numbers of iterations: what a solve does once does not count.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "app/job_memory.h"
#include "app/options.h"
#include "app/output.h"
#include "app/ranks/ranks_job.h"
#include "bench/timing.h"

/* Numbers of timed runs, and iterations of the short and, by default, of the long solve. */
enum { PRODUCTS = 20, SOLVES = 5, FEW_ITERATIONS = 20, MANY_ITERATIONS = 500 };

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
    if (option_given(o, "precond") && strcmp(o->precond, "none") != 0 && strcmp(o->precond, "jacobi") != 0)
        return "several ranks measure the preconditioners none and jacobi only";
    return NULL;
}

/* One product, checked; then the timed ones. */
static spmv_status measure_products(struct rank *r)
{
    double samples[PRODUCTS];
    spmv_status st = rank_agreed(r, rank_fill(r, r->x, r->info.own_cols, 1.0 / 3), false);
    if (st == SPMV_OK)
        st = rank_multiply(r, 1, r->x, 0, r->y);
    if (st == SPMV_OK)
        st = rank_check(r, 1, r->x, 0, NULL, r->y);
    for (int i = 0; i < PRODUCTS && st == SPMV_OK; i++) {
        const double began = monotonic_seconds();
        st = rank_multiply(r, 1, r->x, 0, r->y);
        if (st == SPMV_OK)
            st = spmv_synchronize(r->ctx);
        samples[i] = monotonic_seconds() - began;
        r->seconds += samples[i];
    }
    if (st == SPMV_OK)
        r->timing = timing_summary(samples, PRODUCTS);
    return st;
}

/* A solve of at most `limit` iterations from 0; *seconds: its time. */
static spmv_status solve(struct rank *r, int64_t limit, double *seconds)
{
    char method[32];
    const char *product = NULL;
    spmv_cg_options options;
    spmv_cg_options_init(&options, sizeof options);
    rank_split_method(r->job->o, method, &product);
    options.rtol = r->info.type == SPMV_F32 ? 1e-5 : 1e-12;
    options.max_iterations = limit;
    options.zero_start = 1;
    options.precond = r->precond;
    options.method = method[0] != '\0' ? method : NULL;
    spmv_status st = rank_agreed(r, SPMV_OK, false); /* all ranks begin now */
    const double began = monotonic_seconds();
    if (st == SPMV_OK)
        st = spmv_group_cg(r->m, r->b, r->x, &options, &r->result, sizeof r->result);
    *seconds = monotonic_seconds() - began;
    r->seconds += *seconds;
    return st == SPMV_ERROR_ITERATIONS || st == SPMV_ERROR_STAGNATION ? SPMV_OK : rank_passed(r, st);
}

static spmv_status measure_solves(struct rank *r)
{
    double samples[SOLVES], few = 0, shortest = 0;
    int64_t iterations = 0; /* of the short solve */
    const int limit = r->job->o->max_iterations > FEW_ITERATIONS ? r->job->o->max_iterations : MANY_ITERATIONS;
    spmv_status st = SPMV_OK;
    r->precond_name = "none";
    if (option_given(r->job->o, "precond"))
        st = rank_make_preconditioner(r);
    if (st == SPMV_OK)
        st = rank_make_b(r, false);
    if (st == SPMV_OK)
        st = solve(r, FEW_ITERATIONS, &few); /* loads the kernels */
    r->seconds = 0;
    for (int i = 0; i < SOLVES && st == SPMV_OK; i++) {
        st = solve(r, FEW_ITERATIONS, &few);
        shortest = i == 0 || few < shortest ? few : shortest;
        iterations = r->result.iterations;
        if (st == SPMV_OK)
            st = solve(r, limit, &samples[i]);
    }
    if (st != SPMV_OK)
        return st;
    const int64_t more = r->result.iterations - iterations;
    for (int i = 0; i < SOLVES; i++)
        samples[i] = more > 0 ? (samples[i] - shortest) / (double)more : samples[i] / (double)(iterations + 1);
    r->timing = timing_summary(samples, SOLVES);
    return SPMV_OK;
}

static void tell(const struct rank *r)
{
    const double seconds = r->timing.median;
    remark(LEVEL_NORMAL, "load %s, plan %s", seconds_text(r->job->in.seconds), seconds_text(r->plan_seconds));
    remark(LEVEL_QUIET, "%s of %s: %s (%s to %s)%s%s, %.1f Gflop/s in products", r->job->kind->op, r->job->in.argument,
           seconds_text(seconds), seconds_text(r->timing.min), seconds_text(r->timing.max),
           r->result.iterations > 0 ? " an iteration, by " : "", r->result.iterations > 0 ? r->result.method : "",
           2e-9 * (double)r->info.nnz / seconds);
    if (r->job->o->verify != VERIFY_OFF && r->check.worst_row >= 0)
        rank_tell_check(r, r->result.iterations > 0 ? "b" : "y");
}

static json_t *json(const struct rank *r)
{
    json_t *root = json_pack("{s:o}", "seconds", json_timing(&r->timing));
    if (r->result.iterations > 0)
        json_put(root, "cg",
                 json_pack("{s:s, s:s, s:I}", "method", r->result.method, "precond", r->precond_name, "iterations",
                           (json_int_t)r->result.iterations));
    return root;
}

static const struct rank_kind product_kind = {
    .op = "spmv", .memory = JOB_PRODUCT, .refusal = refuse, .compute = measure_products, .tell = tell, .json = json};
static const struct rank_kind solve_kind = {
    .op = "cg", .memory = JOB_SOLVE, .refusal = refuse, .compute = measure_solves, .tell = tell, .json = json};

spmv_status ranks_bench(const struct options *o, const char *const *arguments, int count)
{
    spmv_status st = SPMV_OK;
    if (count < 1)
        return report(SPMV_ERROR_ARGUMENT, "bench on several ranks needs a matrix: a file or a generated one");
    if (o->json && count > 1)
        return report(SPMV_ERROR_ARGUMENT, "bench on several ranks writes the JSON of one matrix only");
    for (int i = 0; i < count && st == SPMV_OK; i++)
        st = rank_run_job(o, strcmp(o->op, "cg") == 0 ? &solve_kind : &product_kind, &arguments[i], 1);
    return st;
}
