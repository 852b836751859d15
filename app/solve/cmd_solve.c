/* spmv solve: solves A x = b, with one preconditioner or with each in turn. Several right-hand sides
 * and their solutions are stored row by row.
 *
 * Steps: load, test that the matrix suits the solver, solve, check the residual, write. x is
 * written even if the solver stopped before the tolerance, or by a signal or a time limit; the exit
 * code and the last message report that. The residual b - A x is checked like any product, row by
 * row against another backend, and its norm against the one that the solver reports. With --precond
 * all, the answer is the x with the fewest iterations, or the smallest residual if none was solved.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "app/commands.h"
#include "app/job_memory.h"
#include "app/options.h"
#include "app/output.h"
#include "app/solve/solve_job.h"
#include "app/stops.h"

static spmv_status first_failure(spmv_status first, spmv_status then)
{
    return first != SPMV_OK ? first : then;
}

/* Writes all outputs even if one fails; returns the first failure. */
static spmv_status write_results(const struct job *job)
{
    spmv_status st = SPMV_OK;
    if (job_writes_x(job))
        st = write_answer(job->place->ctx, job->o, job->wish->answer, job->type, job->attempt[job->best].host_x,
                          job->in.view.rows, job->columns);
    if (job->o->history != NULL)
        st = first_failure(st, job_write_history(job));
    if (job->o->plot != NULL)
        st = first_failure(st, solve_plot_write(job->o->plot, job->in.name, job->attempt, job->attempts));
    return st;
}

/* The status of the command: a failed check before that of the attempt whose x is the answer. */
static spmv_status conclude(const struct job *job, spmv_status st)
{
    const struct attempt *a = &job->attempt[job->best >= 0 ? job->best : 0];
    if (job->best >= 0)
        job_tell_failure(job, a);
    for (int i = 0; i < job->attempts; i++)
        if (job->attempt[i].verdict != SPMV_OK)
            return job->attempt[i].verdict;
    return st != SPMV_OK ? st : a->stop;
}

/* Runs, checks and reports every attempt. *written: whether the JSON was written; a failure there
 * does not stop the attempts. */
static spmv_status run_attempts(struct job *job, struct text_file *json, spmv_status *written)
{
    spmv_status st = SPMV_OK;
    const bool several = job->attempts > 1;
    for (int i = 0; i < job->attempts && st == SPMV_OK && !stops_asked(); i++) {
        struct attempt *a = &job->attempt[i];
        st = job_solve(job, i);
        memory_keep(0);
        if (st == SPMV_OK)
            st = job_check(job, a);
        if (st != SPMV_OK)
            return st;
        if (!several && messages_level() > LEVEL_QUIET)
            job_remark(job, a);
        if (a->ran && a->stop != SPMV_ERROR_UNSUPPORTED)
            job_tell_verdict(job, a);
        if (job->o->json && *written == SPMV_OK && place_writes(job->place))
            *written = json_line(json, job_json(job, a));
    }
    if (several && messages_level() > LEVEL_QUIET)
        job_remark_table(job);
    return st;
}

static spmv_status solve(struct place *place, const struct wish *wish)
{
    struct job job = {.place = place, .o = place->o, .wish = wish, .best = -1};
    struct text_file json = {0};
    const bool writes = place_writes(place);
    spmv_status st = job_load(&job);
    if (st == SPMV_OK && job_is_least_squares(&job)) {
        st = job_solve_least_squares(&job);
        job_release(&job);
        return st;
    }
    if (st == SPMV_OK)
        st = job_begin(&job);
    if (st == SPMV_OK)
        st = place_agree(place, job.o->json && writes ? text_file_open(job.o->json_path, &json) : SPMV_OK);
    if (st == SPMV_OK) {
        spmv_status written = SPMV_OK;
        const spmv_status ran = run_attempts(&job, &json, &written);
        if (writes)
            stops_serve();
        if (job.o->json && writes)
            written = first_failure(written, text_file_close(&json, ran == SPMV_OK && written == SPMV_OK));
        if (writes && (ran == SPMV_OK || job.best >= 0))
            written = first_failure(written, write_results(&job));
        st = first_failure(ran, ran == SPMV_OK ? place_agree(place, written) : written);
        st = conclude(&job, st);
    }
    job_release(&job);
    return st;
}

spmv_status run_solve(const struct options *o, const char *const *arguments, int count)
{
    struct wish wish = {.arguments = arguments, .count = count, .settles = job_decides(o)};
    const spmv_status st = job_check_options(o, &wish);
    stops_after(o->max_seconds);
    return st == SPMV_OK ? place_run(o, job_refuse_ranks, solve, &wish) : st;
}
