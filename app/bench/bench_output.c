/* The outputs of spmv bench.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench/bench_output.h"
#include "bench/devices/machine.h"
#include "core/plural.h"

/* ---------------------------------------------------------------- lines of text */

void line_add(struct line *line, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(line->text + line->length, LINE_SIZE - line->length, format, values);
    va_end(values);
    line->length += (size_t)(length > 0 ? length : 0);
    if (line->length >= LINE_SIZE)
        line->length = LINE_SIZE - 1;
}

spmv_status line_end(struct line *line, struct text_file *file)
{
    while (line->length > 0 && line->text[line->length - 1] == ' ')
        line->length--;
    if (line->length == LINE_SIZE - 1)
        line->length--;
    line->text[line->length++] = '\n';
    const spmv_status st = text_file_add(file, line->text, line->length);
    line->length = 0;
    return st;
}

/* ---------------------------------------------------------------- the table */

/* The widest line of the table; only a longer name exceeds it. */
enum { TABLE_WIDTH = 120, SYSTEM_WIDTH = 27 };

spmv_status bench_wrap(struct text_file *file, const char *begin, const char *words)
{
    struct line line = {.length = 0};
    spmv_status st = SPMV_OK;
    line_add(&line, "%s", begin);
    size_t empty = line.length;
    for (words += strspn(words, " "); st == SPMV_OK && *words != '\0'; words += strspn(words, " ")) {
        const int length = (int)strcspn(words, " ");
        if (line.length > empty && line.length + 1 + (size_t)length > TABLE_WIDTH) {
            st = line_end(&line, file);
            line_add(&line, "%s", begin);
        }
        line_add(&line, "%s%.*s", line.length > empty ? " " : "", length, words);
        words += length;
    }
    return st == SPMV_OK ? line_end(&line, file) : st;
}

/* The name of spmv's method as requested: "auto", with a preconditioner "auto, ic0", or of several vectors
 * "auto, 8 vectors". */
static void asked_name(const struct trial *t, const struct result *r, char *text, size_t size)
{
    const char *const precond = r->candidate->precond;
    const int vectors = t->work.vectors;
    const int used = snprintf(text, size, "%s%s%s", r->candidate->name, precond[0] != '\0' ? ", " : "", precond);
    if (vectors > 0)
        snprintf(text + used, size - (size_t)used, ", %d vector%s", vectors, plural(vectors));
}

/* "auto (scalar)", "auto (fused), auto (ic0)", or the peer's name. */
static void system_name(const struct result *r, char *text, size_t size)
{
    const struct candidate *const c = r->candidate;
    const bool method = c->ours && strcmp(c->name, r->method) != 0;
    const bool precond = c->precond[0] != '\0' && r->precond[0] != '\0' && strcmp(c->precond, r->precond) != 0;
    snprintf(text, size, "%s%s%s%s%s%s%s%s%s", c->name, method ? " (" : "", method ? r->method : "", method ? ")" : "",
             c->precond[0] != '\0' ? ", " : "", c->precond, precond ? " (" : "", precond ? r->precond : "",
             precond ? ")" : "");
}

static bool is_probe(const struct result *r)
{
    return r->candidate->peer != NULL && (r->candidate->peer->flags & PEER_PROBE) != 0;
}

/* Number of elements that compact kept: those of its result. */
static int64_t kept_of(const struct trial *t)
{
    return t->work.result_bytes / (int64_t)spmv_type_size(t->work.type);
}

/* The best peer's time over this one. */
static double speed_up(const struct trial *trial, const struct result *r)
{
    const struct result *best = trial_best_peer(trial);
    return best != NULL && r->measured && r->warm.median > 0
               ? best->warm.median / result_steps(trial, best) / (r->warm.median / result_steps(trial, r))
               : 0;
}

/* Whether speed_up is reliable: both times are steady. */
static bool speed_up_counts(const struct trial *trial, const struct result *r)
{
    const struct result *best = trial_best_peer(trial);
    return best != NULL && timing_steady(&best->warm) && timing_steady(&r->warm);
}

/* Adds a number with this many decimals, or fewer if it exceeds the width. */
static void add_number(struct line *line, int width, int decimals, double value, bool there)
{
    char text[64];
    while (snprintf(text, sizeof text, "%.*f", decimals, value) > width && decimals > 0)
        decimals--;
    if (!there)
        line_add(line, " %*s", width, "-");
    else if ((int)strlen(text) <= width)
        line_add(line, " %*s", width, text);
    else
        line_add(line, " %*.3g", width, value);
}

/* The reason why a result has no figure, or else a remark that readers of the figure need. */
static const char *remark_of(const struct result *r, bool *bad)
{
    *bad = true;
    if (r->candidate->missing[0] != '\0')
        return r->candidate->missing;
    if (r->failed[0] != '\0')
        return r->failed;
    *bad = false;
    return r->note;
}

static const char *bits_text(const struct result *r)
{
    return r->bit_repeats == 0 ? "-" : r->bit_different == 0 ? "same" : "differ";
}

/* The result of spmv with which a peer's iterations are compared: the first checked one without a
 * preconditioner; NULL: none, or the peer has one. */
static const struct result *ours_for(const struct trial *t, const struct result *peer)
{
    for (int i = 0; i < t->count && peer->precond[0] == '\0'; i++) {
        const struct result *const r = &t->results[i];
        if (r->candidate->ours && r->checked && (r->precond[0] == '\0' || strcmp(r->precond, "none") == 0))
            return r;
    }
    return NULL;
}

/* Whether a part of the result's time made a preconditioner. */
static bool has_setup(const struct result *r)
{
    return r->measured && (r->candidate->ours || r->precond[0] != '\0');
}

/* What --precond names; of a peer "own", or "". */
static const char *asked_precond(const struct result *r)
{
    return r->candidate->ours ? r->candidate->precond : r->precond;
}

static bool same_iterations(const struct trial *t, const struct result *r)
{
    const struct result *const ours = ours_for(t, r);
    return ours != NULL && ours->solved.iterations == r->solved.iterations;
}

/* Of a solver: whether it converged, and how its iterations compare. */
static void solver_text(const struct trial *t, const struct result *r, char *text, size_t size)
{
    const struct result *const ours = ours_for(t, r);
    const char *const end = result_converged(t, r) ? "converged" : "at the limit";
    const long long more = ours != NULL ? (long long)(r->solved.iterations - ours->solved.iterations) : 0;
    if (r->candidate->ours || ours == NULL)
        snprintf(text, size, "%s", end);
    else if (more == 0)
        snprintf(text, size, "%s, as many iterations as spmv", end);
    else
        snprintf(text, size, "%s, %+lld iterations compared with spmv", end, more);
    if (r->unfinished)
        snprintf(text + strlen(text), size - strlen(text), "; not used");
}

/* The meaning of the columns. */
static const char *legend(const struct bench_run *run)
{
    if (run->solutions)
        return "us: median of whole solutions: of spmv with the set-up of the preconditioner and without the "
               "plan, of peers without a preconditioner or with the set-up of their own; spread: median over minimum, "
               "minus 1, * above 20%; "
               "x best: the best peer's time over this one, in brackets if a spread is above 20%; residual: "
               "||b - A x|| / ||b||, computed here";
    if (run->operation->solver)
        return "us: median of whole solves over their iterations (min alike); spread: median over minimum, minus 1, * "
               "above 20%; share: of the read bandwidth; x best: the best peer's time per iteration over this one, in "
               "brackets if a spread is above 20%; residual: ||b - A x|| / ||b||, computed here";
    return "us: median of one run, runs back to back; min: of the batches; spread: median over minimum, minus 1, * "
           "above 20%; flushed: caches overwritten before each run; share: of the read bandwidth; x best: the best "
           "peer's time over this one, in brackets if a spread is above 20%; error: over its bound";
}

static void bandwidth_text(const struct bench_run *run, char *text, size_t size)
{
    const struct bandwidth *const b = &run->bandwidth;
    char age[64] = "now", triad[48] = "";
    if (run->bandwidth_age >= 0)
        snprintf(age, sizeof age, "%lld min ago", (long long)run->bandwidth_age / 60);
    if (b->triad_gbs > 0)
        snprintf(triad, sizeof triad, ", triad %.1f GB/s", b->triad_gbs);
    snprintf(text, size, "bandwidth measured %s: copy %.1f GB/s, read %.1f GB/s%s", age, b->copy_gbs, b->read_gbs,
             triad);
}

/* "peers: cuSPARSE 12.6.3; CUB 2.8.5": the libraries of the peers that are present, as loaded; "":
 * none. */
static void libraries_text(const struct candidate_list *list, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int c = 0; c < list->count && used < size; c++) {
        const struct candidate *const one = &list->candidates[c];
        if (one->peer != NULL && (one->peer->flags & PEER_PROBE) == 0 && strstr(text, one->module->library) == NULL)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used == 0 ? "peers: " : "; ", one->module->library);
    }
}

static spmv_status table_head(struct text_file *file, const struct bench_run *run)
{
    struct line line = {.length = 0};
    char text[512];
    const bool solver = run->operation->solver;
    size_t used = (size_t)snprintf(text, sizeof text, "%s%s (--op %s) on %s%s%s", run->operation->formula,
                                   run->solutions ? ", whole solutions" : "", run->operation->name, run->device->name,
                                   run->device->software[0] != '\0' ? ", " : "", run->device->software);
    if (run->device->threads > 0)
        snprintf(text + used, sizeof text - used, ", %d thread%s", run->device->threads,
                 run->device->threads == 1 ? "" : "s");
    spmv_status st = bench_wrap(file, "# ", text);
    bandwidth_text(run, text, sizeof text);
    if (st == SPMV_OK)
        st = bench_wrap(file, "# ", text);
    bench_load_text(&run->trust.load, text, sizeof text);
    if (st == SPMV_OK)
        st = bench_wrap(file, "# ", text);
    libraries_text(&run->list, text, sizeof text);
    if (st == SPMV_OK && text[0] != '\0')
        st = bench_wrap(file, "# ", text);
    if (st == SPMV_OK)
        st = bench_wrap(file, "# ", legend(run));
    line_add(&line, "%-*s %10s  %9s %6s %10s", SYSTEM_WIDTH, "system", "us", "min", "spread",
             solver ? "iterations" : "flushed");
    if (run->solutions)
        line_add(&line, " %14s", "set-up, us");
    else
        line_add(&line, " %7s %6s", "GB/s", "share");
    line_add(&line, " %9s %9s %6s %9s", "x best", "plan, us", "bits", solver ? "residual" : "error");
    return st == SPMV_OK ? line_end(&line, file) : st;
}

/* 1.309, or (1.309) if one of the two times is not steady. */
static void add_speed_up(struct line *line, const struct trial *t, const struct result *r)
{
    char text[64] = "-";
    const bool counts = speed_up_counts(t, r);
    if (r->measured && !is_probe(r) && trial_best_peer(t) != NULL)
        snprintf(text, sizeof text, "%s%.3f%s", counts ? "" : "(", speed_up(t, r), counts ? "" : ")");
    if (strlen(text) > 9)
        snprintf(text, sizeof text, "%s%.0f%s", counts ? "" : "(", speed_up(t, r), counts ? "" : ")");
    line_add(line, " %9s", text);
}

static void add_spread(struct line *line, const struct timing *warm, bool there)
{
    const double percent = 100 * timing_spread(warm);
    if (there)
        line_add(line, " %5.*f%%", 0, fmin(percent, 9999));
    else
        line_add(line, " %6s", "-");
}

static spmv_status table_row(struct text_file *file, const struct bench_run *run, const struct trial *t,
                             const struct result *r)
{
    struct line line = {.length = 0};
    char name[4 * NAME_SIZE];
    const double gbs = result_gbs(t, r), us = 1e6 / result_steps(t, r);
    const bool figure = r->measured && !is_probe(r), solver = t->work.operation->solver;
    system_name(r, name, sizeof name);
    if (strlen(name) > SYSTEM_WIDTH) {
        line_add(&line, "%s", name);
        const spmv_status st = line_end(&line, file);
        if (st != SPMV_OK)
            return st;
        name[0] = '\0';
    }
    line_add(&line, "%-*s", SYSTEM_WIDTH, name);
    add_number(&line, 10, 2, us * r->warm.median, r->measured);
    line_add(&line, "%s", r->measured && !timing_steady(&r->warm) ? "*" : " ");
    add_number(&line, 9, 2, us * r->warm.min, r->measured);
    add_spread(&line, &r->warm, r->measured);
    if (solver)
        add_number(&line, 10, 0, (double)r->solved.iterations, r->checked);
    else
        add_number(&line, 10, 2, 1e6 * r->flushed.median, r->flushed.repeats > 0);
    if (run->solutions) {
        add_number(&line, 14, 1, 1e6 * r->figures.setup_seconds, has_setup(r));
    } else {
        add_number(&line, 7, 1, gbs, figure);
        add_number(&line, 6, 3, gbs / t->read_gbs, figure && t->read_gbs > 0);
    }
    add_speed_up(&line, t, r);
    add_number(&line, 9, 1, 1e6 * r->plan_seconds, r->measured);
    line_add(&line, " %6s", bits_text(r));
    if (r->checked)
        line_add(&line, " %9.3g", solver ? r->check.true_residual : r->worst_ratio);
    else
        line_add(&line, " %9s", "-");
    return line_end(&line, file);
}

/* The remarks below the row. */
static spmv_status table_remark(struct text_file *file, const struct trial *t, const struct result *r)
{
    bool bad;
    char solver[128] = "", text[WHY_SIZE + 256];
    const char *const remark_text = remark_of(r, &bad);
    if (t->work.operation->solver && !bad && r->checked)
        solver_text(t, r, solver, sizeof solver);
    snprintf(text, sizeof text, "%s%s%s%s%s%s", r->wrong ? "WRONG " : "",
             is_probe(r) ? "a probe, computes no result " : "",
             bad && r->candidate->missing[0] != '\0' ? "missing: "
             : bad                                   ? "failed: "
                                                     : "",
             solver, solver[0] != '\0' && remark_text[0] != '\0' ? "; " : "", remark_text);
    return text[0] != '\0' ? bench_wrap(file, "    ", text) : SPMV_OK;
}

void trial_trust(const struct trial *t, struct bench_trust *trust)
{
    for (int i = 0; i < t->count; i++)
        if (t->results[i].measured)
            bench_trust_row(trust, &t->results[i].warm);
}

spmv_status bench_table(struct text_file *file, const struct bench_run *run, const struct bench_case *c, bool head)
{
    if (run->operation->on_file)
        return bench_load_table(file, run, c, head);
    struct line line = {.length = 0};
    spmv_status st = head ? table_head(file, run) : SPMV_OK;
    line_add(&line, "%s %s", c->name, spmv_type_name(c->trial->work.type));
    if (st == SPMV_OK)
        st = line_end(&line, file);
    for (int i = 0; st == SPMV_OK && i < c->trial->count; i++) {
        st = table_row(file, run, c->trial, &c->trial->results[i]);
        if (st == SPMV_OK)
            st = table_remark(file, c->trial, &c->trial->results[i]);
    }
    return st;
}

/* ---------------------------------------------------------------- CSV */

/* Adds a field, in quotes if necessary (RFC 4180). */
static void add_text(struct line *line, const char *text)
{
    if (strpbrk(text, ",\"\n\r") == NULL) {
        line_add(line, "%s,", text);
        return;
    }
    line_add(line, "\"");
    for (; *text != '\0'; text++)
        line_add(line, *text == '"' ? "\"\"" : "%c", *text);
    line_add(line, "\",");
}

static void add_real(struct line *line, double value, bool there)
{
    char text[NUMBER_TEXT] = "";
    if (there)
        number_text(value, text);
    line_add(line, "%s,", text);
}

static void add_integer(struct line *line, int64_t value, bool there)
{
    if (there)
        line_add(line, "%lld", (long long)value);
    line_add(line, ",");
}

static const char *state_of(const struct result *r)
{
    return r->candidate->missing[0] != '\0' ? "missing"
           : r->failed[0] != '\0'           ? "failed"
           : r->wrong                       ? "wrong"
           : r->unfinished                  ? "limit"
                                            : "ok";
}

static void add_timing(struct line *line, const struct timing *t, bool there)
{
    add_real(line, t->median, there);
    add_real(line, t->min, there);
    add_real(line, t->max, there);
    add_integer(line, t->repeats, there);
}

/* For a solution with a preconditioner, its set-up is included. */
static double seconds_per_iteration(const struct result *r)
{
    return r->solved.iterations > 0 ? r->warm.median / (double)r->solved.iterations : r->warm.median;
}

static void csv_row(struct line *line, const struct bench_run *run, const struct bench_case *c, const struct result *r)
{
    const struct trial *const t = c->trial;
    const struct peer_problem *const p = &t->work.problem;
    const bool matrix = run->operation->on_matrix, solver = run->operation->solver && r->checked;
    bool bad;
    add_text(line, run->operation->name);
    add_text(line, c->name);
    add_integer(line, p->rows, matrix);
    add_integer(line, p->cols, matrix);
    add_integer(line, p->nnz, matrix);
    add_integer(line, p->n, !matrix);
    add_integer(line, p->segments, p->segments > 0);
    add_integer(line, kept_of(t), p->kept != NULL);
    add_text(line, spmv_type_name(t->work.type));
    add_text(line, spmv_backend_name(run->backend));
    add_text(line, r->candidate->name);
    add_text(line, r->candidate->ours ? "own" : is_probe(r) ? "probe" : "peer");
    add_text(line, r->candidate->ours ? r->method : r->candidate->module != NULL ? r->candidate->module->library : "");
    add_text(line, state_of(r));
    add_real(line, r->plan_seconds, r->measured);
    add_integer(line, r->figures.plan_bytes, r->measured && r->candidate->ours);
    add_real(line, t->work.upload_seconds, r->measured);
    add_real(line, r->first_call_seconds, r->measured);
    add_timing(line, &r->warm, r->measured);
    add_timing(line, &r->flushed, r->flushed.repeats > 0);
    add_integer(line, (int64_t)t->work.model_bytes, true);
    add_real(line, result_gbs(t, r), r->measured && !is_probe(r));
    add_real(line, t->read_gbs, t->read_gbs > 0);
    add_real(line, speed_up(t, r), r->measured && !is_probe(r) && trial_best_peer(t) != NULL);
    add_integer(line, r->bit_repeats, r->bit_repeats > 0);
    add_integer(line, r->bit_different, r->bit_repeats > 0);
    add_real(line, r->worst_ratio, r->checked);
    add_integer(line, r->solved.iterations, solver);
    add_real(line, seconds_per_iteration(r), solver && r->measured);
    add_real(line, r->solved.residual, solver);
    add_real(line, r->check.true_residual, solver);
    add_text(line, remark_of(r, &bad));
    add_real(line, timing_spread(&r->warm), r->measured);
    add_text(line, !r->measured ? "" : timing_steady(&r->warm) ? "yes" : "no");
    add_text(line, !r->measured || is_probe(r) || trial_best_peer(t) == NULL ? ""
                   : speed_up_counts(t, r)                                   ? "yes"
                                                                             : "no");
    add_text(line, run->trust.doubt[0] != '\0' ? "no" : "yes");
    add_text(line, asked_precond(r));
    add_real(line, r->figures.setup_seconds, run->solutions && has_setup(r));
    line->length--; /* the last comma */
}

spmv_status bench_csv(struct text_file *file, const struct bench_run *run, const struct bench_case *c, bool head)
{
    static const char names[] =
        "op,name,rows,cols,nnz,n,segments,kept,type,backend,system,kind,method_or_library,state,plan_seconds,"
        "plan_bytes,upload_seconds,first_call_seconds,median,min,max,repeats,flushed_median,flushed_min,flushed_max,"
        "flushed_repeats,model_bytes,gbs,read_gbs,speedup_over_best_peer,bit_repeats,bit_different,"
        "worst_error_over_bound,iterations,seconds_per_iteration,recurrence_relative,"
        "true_relative,remark,spread,steady,speedup_counts,quiet_at_start,precond,precond_seconds\n";
    spmv_status st = head ? text_file_add(file, names, sizeof names - 1) : SPMV_OK;
    for (int i = 0; st == SPMV_OK && i < c->trial->count; i++) {
        struct line line = {.length = 0};
        csv_row(&line, run, c, &c->trial->results[i]);
        st = line_end(&line, file);
    }
    return st;
}

/* ---------------------------------------------------------------- JSON */

static json_t *json_bits(const struct result *r)
{
    return json_pack("{s:i, s:b}", "repeats", r->bit_repeats, "equal", r->bit_different == 0);
}

static json_t *json_verdict(const struct result *r, const char *reference)
{
    json_t *verify = json_object();
    json_put(verify, "reference", json_string(reference));
    json_put(verify, "worst_error_over_bound", json_number(r->worst_ratio));
    json_put(verify, "worst_row", json_integer((json_int_t)r->worst_at));
    json_put(verify, "passed", json_boolean(!r->wrong));
    return verify;
}

/* The residuals are norms, as in spmv solve. */
static json_t *json_cg(const struct trial *t, const struct result *r)
{
    json_t *cg = json_object();
    json_put(cg, "solver", json_string(t->work.operation->name));
    if (t->work.problem.restart > 0)
        json_put(cg, "restart", json_integer(t->work.problem.restart));
    json_put(cg, "precond", json_string(r->precond[0] != '\0' ? r->precond : "none"));
    json_put(cg, "precision", json_string(spmv_type_name(t->work.type)));
    json_put(cg, "status", json_string(result_converged(t, r) ? "ok" : "iterations"));
    json_put(cg, "iterations", json_integer((json_int_t)r->solved.iterations));
    json_put(cg, "rtol", json_number(t->work.problem.rtol));
    json_put(cg, "recurrence_residual", json_number(r->solved.residual * r->check.norm_b));
    json_put(cg, "true_residual", json_number(r->check.true_residual * r->check.norm_b));
    json_put(cg, "relative_residual", json_number(r->check.true_residual));
    json_put(cg, "setup_seconds", json_number(r->plan_seconds));
    json_put(cg, "seconds_per_iteration", json_number(seconds_per_iteration(r)));
    if (t->work.solutions) {
        json_put(cg, "solution_seconds", json_number(r->warm.median));
        const char *const asked = asked_precond(r);
        json_put(cg, "precond_asked", json_string(asked[0] != '\0' ? asked : "none"));
        json_put(cg, "precond_seconds", json_number(r->figures.setup_seconds));
    }
    if (!r->candidate->ours && ours_for(t, r) != NULL)
        json_put(cg, "iterations_as_ours", json_boolean(same_iterations(t, r)));
    if (!r->candidate->ours)
        json_put(cg, "counts", json_boolean(!r->wrong && !r->unfinished));
    return cg;
}

static const char *reference_of(const struct trial *t)
{
    return spmv_backend_name(spmv_context_backend(t->work.checker));
}

static void put_figures(json_t *object, const struct result *r)
{
    json_put(object, "plan_seconds", json_number(r->plan_seconds));
    json_put(object, "first_call_seconds", json_number(r->first_call_seconds));
    if (r->run_bytes > 0)
        json_put(object, "run_bytes", json_integer((json_int_t)r->run_bytes));
    json_put(object, "seconds", bench_timing_json(&r->warm));
    if (r->flushed.repeats > 0)
        json_put(object, "flushed", bench_timing_json(&r->flushed));
}

static json_t *json_peer(const struct trial *t, const struct result *r)
{
    json_t *peer = json_object();
    json_put(peer, "name", json_string(r->candidate->name));
    if (r->candidate->missing[0] != '\0') {
        json_put(peer, "missing", json_text(r->candidate->missing));
        return peer;
    }
    json_put(peer, "library", json_string(r->candidate->module->library));
    json_put(peer, "settings", json_string(r->candidate->peer->settings));
    if (is_probe(r))
        json_put(peer, "probe", json_true());
    if (r->failed[0] != '\0' || !r->measured) {
        json_put(peer, "failed", json_text(r->failed[0] != '\0' ? r->failed : "not measured"));
        return peer;
    }
    put_figures(peer, r);
    if (r->bit_repeats > 0)
        json_put(peer, "repeatable", json_boolean(r->bit_different == 0));
    if (r->checked)
        json_put(peer, "verify", json_verdict(r, reference_of(t)));
    if (t->work.operation->solver && r->checked)
        json_put(peer, "cg", json_cg(t, r));
    return peer;
}

static json_t *json_peers(const struct trial *t)
{
    json_t *peers = json_array();
    for (int i = 0; i < t->count; i++)
        if (!t->results[i].candidate->ours)
            json_array_append_new(peers, json_peer(t, &t->results[i]));
    return peers;
}

static json_t *json_primitive(const struct bench_run *run, const struct trial *t, const struct result *r)
{
    const struct peer_problem *const p = &t->work.problem;
    json_t *primitive = json_object();
    json_put(primitive, "name", json_string(run->operation->name));
    if (r != NULL)
        json_put(primitive, "rung", json_string(r->method));
    if (run->operation->operator_name != NULL)
        json_put(primitive, "operator", json_string(run->operation->operator_name));
    if (run->operation->kind != NULL)
        json_put(primitive, "kind", json_string(run->operation->kind));
    json_put(primitive, "n", json_integer((json_int_t)p->n));
    if (p->segments > 0)
        json_put(primitive, "segments", json_integer((json_int_t)p->segments));
    if (p->kept != NULL)
        json_put(primitive, "kept", json_integer((json_int_t)kept_of(t)));
    return primitive;
}

/* r NULL: no result of spmv, only peers. */
static json_t *json_result(const struct bench_run *run, const struct trial *t, const struct result *r)
{
    json_t *result = json_object();
    const double gbs = r != NULL ? result_gbs(t, r) : 0;
    json_put(result, "op", json_string(run->operation->name));
    json_put(result, "backend", json_string(spmv_backend_name(run->backend)));
    json_put(result, "type", json_string(spmv_type_name(t->work.type)));
    json_put(result, "upload_seconds", json_number(t->work.upload_seconds));
    json_put(result, "model_bytes", json_integer((json_int_t)t->work.model_bytes));
    if (!run->operation->on_matrix)
        json_put(result, "primitive", json_primitive(run, t, r));
    if (r == NULL)
        return result;
    json_put(result, "asked", json_string(r->candidate->name));
    if (r->failed[0] != '\0' || !r->measured) {
        json_put(result, "failed", json_text(r->failed[0] != '\0' ? r->failed : "not measured"));
        return result;
    }
    json_put(result, "method", json_string(r->method));
    json_put(result, "why", json_string(r->why));
    if (r->layout[0] != '\0')
        json_put(result, "layout", json_string(r->layout));
    json_put(result, "plan_bytes", json_integer((json_int_t)r->figures.plan_bytes));
    put_figures(result, r);
    if (gbs > 0)
        json_put(result, "gbs", json_number(gbs));
    if (t->read_gbs > 0 && gbs > 0)
        json_put(result, "share_of_read_bandwidth", json_number(gbs / t->read_gbs));
    json_put(result, "bitwise", json_bits(r));
    if (r->note[0] != '\0')
        json_put(result, "note", json_string(r->note));
    if (run->operation->solver && r->checked)
        json_put(result, "cg", json_cg(t, r));
    if (run->operation->on_matrix && !run->operation->solver)
        json_put(
            result, "spmv",
            json_pack("{s:o}", "gflops",
                      json_number((type_is_complex(t->work.type) ? 8e-9 : 2e-9) * t->work.products / r->warm.median)));
    return result;
}

json_t *bench_trial_trust(const struct bench_run *run, const struct trial *t)
{
    struct bench_trust trust = run->trust;
    trust.rows = trust.unsteady = 0;
    trial_trust(t, &trust);
    return bench_trust_json(&trust);
}

static json_t *json_case(const struct bench_run *run, const struct bench_case *c, const struct result *r)
{
    const struct trial *const t = c->trial;
    json_t *root = json_begin(run->o);
    const struct bandwidth *const b = &run->bandwidth;
    if (run->backend == SPMV_BACKEND_CUDA)
        json_put(root, "machine",
                 json_pack("{s:{s:s, s:s, s:o, s:o}, s:{s:s, s:i}}", "device", "name", run->device->name, "software",
                           run->device->software, "copy_gbs", json_number(b->copy_gbs), "read_gbs",
                           json_number(b->read_gbs), "cpu", "name", cpu_name(), "threads",
                           spmv_context_threads(t->work.checker)));
    else
        json_put(root, "machine",
                 json_pack("{s:{s:s, s:i, s:o, s:o, s:o}}", "cpu", "name", run->device->name, "threads",
                           run->device->threads, "copy_gbs", json_number(b->copy_gbs), "read_gbs",
                           json_number(b->read_gbs), "triad_gbs", json_number(b->triad_gbs)));
    json_put(root, "bandwidth_age_seconds",
             json_integer((json_int_t)(run->bandwidth_age > 0 ? run->bandwidth_age : 0)));
    json_put(root, "trust", bench_trial_trust(run, t));
    if (c->in != NULL) {
        json_put(root, "matrix", json_matrix(c->name, c->statistics));
        json_put(root, "load", json_load(c->in));
    }
    json_put(root, "result", json_result(run, t, r));
    if (r != NULL && r->checked)
        json_put(root, "verify", json_verdict(r, reference_of(t)));
    json_put(root, "peers", json_peers(t));
    return root;
}

spmv_status bench_json(struct text_file *file, const struct bench_run *run, const struct bench_case *c)
{
    if (run->operation->on_file)
        return json_line(file, bench_load_json(run, c));
    spmv_status st = SPMV_OK;
    bool ours = false;
    for (int i = 0; st == SPMV_OK && i < c->trial->count; i++) {
        if (!c->trial->results[i].candidate->ours)
            continue;
        ours = true;
        st = json_line(file, json_case(run, c, &c->trial->results[i]));
    }
    return ours ? st : json_line(file, json_case(run, c, NULL));
}

/* ---------------------------------------------------------------- the summary */

struct ratio {
    char ours[2 * NAME_SIZE + 32], peer[NAME_SIZE];
    char *on; /* owned */
    spmv_type type;
    double warm, flushed; /* the peer's time over spmv's; 0: unknown or not reliable */
};

static spmv_status add_ratio(struct bench_summary *summary, const struct ratio *ratio)
{
    if (summary->count == summary->capacity) {
        const int64_t capacity = 2 * summary->capacity + 64;
        struct ratio *const more = realloc(summary->ratios, (size_t)capacity * sizeof *more);
        if (more == NULL) {
            free(ratio->on);
            return report(SPMV_ERROR_MEMORY, "no memory for the ratios of the summary");
        }
        summary->ratios = more;
        summary->capacity = capacity;
    }
    summary->ratios[summary->count++] = *ratio;
    return SPMV_OK;
}

static double quotient(const struct timing *peer, const struct timing *ours)
{
    const bool there = peer->repeats > 0 && ours->repeats > 0 && ours->median > 0;
    return there && timing_steady(peer) && timing_steady(ours) ? peer->median / ours->median : 0;
}

static const char best_name[] = "the best peer";

/* The smallest flushed median among measured and right results; it may belong to another peer than
 * the best warm one. */
static struct timing best_flushed(const struct trial *t)
{
    struct timing best = {0};
    for (int i = 0; i < t->count; i++) {
        const struct result *const r = &t->results[i];
        if (r->candidate->peer != NULL && !is_probe(r) && !r->wrong && r->flushed.repeats > 0 &&
            (best.repeats == 0 || r->flushed.median < best.median))
            best = r->flushed;
    }
    return best;
}

spmv_status bench_summary_add(struct bench_summary *summary, const struct bench_case *c)
{
    const struct trial *const t = c->trial;
    const struct result *const best = trial_best_peer(t);
    const struct timing flushed = best_flushed(t);
    spmv_status st = SPMV_OK;
    for (int i = 0; i < t->count; i++) {
        const struct result *const ours = &t->results[i];
        if (!ours->candidate->ours || !ours->measured || best == NULL)
            continue;
        for (int j = -1; st == SPMV_OK && j < t->count; j++) {
            const struct result *const peer = j < 0 ? best : &t->results[j];
            struct ratio ratio = {.type = t->work.type,
                                  .warm = quotient(&peer->warm, &ours->warm),
                                  .flushed = quotient(j < 0 ? &flushed : &peer->flushed, &ours->flushed)};
            if (peer->candidate->ours || !peer->measured || is_probe(peer) || peer->wrong || peer->unfinished)
                continue;
            ratio.warm *= result_steps(t, ours) / result_steps(t, peer);
            asked_name(t, ours, ratio.ours, sizeof ratio.ours);
            snprintf(ratio.peer, sizeof ratio.peer, "%s", j < 0 ? best_name : peer->candidate->name);
            st = allocate("the name of a case", (int64_t)strlen(c->name) + 1, 1, (void **)&ratio.on);
            if (st != SPMV_OK)
                return st;
            memcpy(ratio.on, c->name, strlen(c->name) + 1);
            st = add_ratio(summary, &ratio);
        }
    }
    return st;
}

/* The ratios of one peer to one of spmv in one type. */
struct digest {
    int64_t count, flushed_count, left_out;
    double log_sum, flushed_log_sum, worst, best;
    const char *worst_on, *best_on;
};

static bool same_line(const struct ratio *a, const struct ratio *b)
{
    return a->type == b->type && strcmp(a->ours, b->ours) == 0 && strcmp(a->peer, b->peer) == 0;
}

static struct digest digest_of(const struct bench_summary *summary, const struct ratio *line)
{
    struct digest d = {.worst = INFINITY};
    for (int64_t i = 0; i < summary->count; i++) {
        const struct ratio *const r = &summary->ratios[i];
        if (!same_line(r, line))
            continue;
        if (r->flushed > 0) {
            d.flushed_count++;
            d.flushed_log_sum += log(r->flushed);
        }
        if (r->warm <= 0) {
            d.left_out++;
            continue;
        }
        d.count++;
        d.log_sum += log(r->warm);
        if (r->warm < d.worst) {
            d.worst = r->warm;
            d.worst_on = r->on;
        }
        if (r->warm > d.best) {
            d.best = r->warm;
            d.best_on = r->on;
        }
    }
    return d;
}

static void summary_row(struct line *line, const struct ratio *of, const struct digest *d)
{
    const double count = (double)d->count, flushed = (double)d->flushed_count;
    line_add(line, "%-4s %-20s %-26s %5lld %8lld", spmv_type_name(of->type), of->ours, of->peer, (long long)d->count,
             (long long)d->left_out);
    add_number(line, 8, 3, exp(d->log_sum / count), d->count > 0);
    add_number(line, 8, 3, exp(d->flushed_log_sum / flushed), d->flushed_count > 0);
    add_number(line, 8, 3, d->worst, d->count > 0);
    add_number(line, 8, 3, d->best, d->count > 0);
}

/* The cases with the extreme ratios, below their row. */
static spmv_status summary_cases(const struct digest *d, struct text_file *file)
{
    char *text = NULL;
    const size_t size = strlen(d->worst_on) + strlen(d->best_on) + 32;
    spmv_status st = allocate("the summary", (int64_t)size, 1, (void **)&text);
    if (st != SPMV_OK)
        return st;
    snprintf(text, size, "worst on %s, best on %s", d->worst_on, d->best_on);
    st = bench_wrap(file, "     ", text);
    free(text);
    return st;
}

spmv_status bench_summary_print(const struct bench_summary *summary, struct text_file *file)
{
    struct line line = {.length = 0};
    spmv_status st = SPMV_OK;
    if (summary->count == 0)
        return bench_wrap(file, "# ", "summary: spmv was not measured together with a peer");
    st = bench_wrap(
        file, "# ",
        "summary: time of the peer over that of spmv (above 1: spmv is faster), geometric mean and extremes; left "
        "out: a spread above 20%, of ours or the peer's");
    line_add(&line, "%-4s %-20s %-26s %5s %8s %8s %8s %8s %8s", "type", "ours", "peer", "cases", "left out", "mean",
             "flushed", "worst", "best");
    if (st == SPMV_OK)
        st = line_end(&line, file);
    for (int64_t i = 0; st == SPMV_OK && i < summary->count; i++) {
        const struct ratio *const of = &summary->ratios[i];
        bool first = true;
        for (int64_t j = 0; j < i && first; j++)
            first = !same_line(&summary->ratios[j], of);
        if (!first)
            continue;
        const struct digest d = digest_of(summary, of);
        summary_row(&line, of, &d);
        st = line_end(&line, file);
        if (st == SPMV_OK && d.count > 0)
            st = summary_cases(&d, file);
    }
    return st;
}

void bench_summary_free(struct bench_summary *summary)
{
    for (int64_t i = 0; i < summary->count; i++)
        free(summary->ratios[i].on);
    free(summary->ratios);
    *summary = (struct bench_summary){0};
}
