/* spmv explain of a primitive: scan, segmented scan, reduce, compact.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/explain/explain.h"
#include "app/output.h"
#include "core/reals.h"

/* ---------------------------------------------------------------- values */

static spmv_status read_number(const char *text, double *value)
{
    char *end = NULL;
    errno = 0;
    *value = strtod(text, &end);
    if (end != text && *end == '\0' && (errno == 0 || (*value > -1 && *value < 1)))
        return SPMV_OK;
    complain("%s: %s", text, end != text && *end == '\0' ? "no f64 is so large" : "not a number");
    return SPMV_ERROR_ARGUMENT;
}

spmv_status explain_values(struct explain_job *job, const char *const *words, int count, bool segments, bool *bars)
{
    const size_t size = spmv_type_size(job->o->type);
    bool head = true;
    spmv_status st = allocate("the values", count, size, &job->values);
    if (st == SPMV_OK)
        st = allocate("the head flags", count, 1, (void **)&job->heads);
    for (int k = 0; st == SPMV_OK && k < count; k++) {
        double value = 0;
        if (segments && strcmp(words[k], "|") == 0) {
            head = *bars = true;
            continue;
        }
        st = read_number(words[k], &value);
        real_set(job->o->type, job->values, job->n, value);
        job->heads[job->n++] = head;
        head = false;
    }
    if (st == SPMV_OK && job->n == 0) {
        complain("explain --op %s needs values, such as: spmv explain --op %s 3 1 7 0 4 1 6 3", job->o->op, job->o->op);
        st = SPMV_ERROR_ARGUMENT;
    }
    if (st == SPMV_OK)
        st = explain_check_size(job->o, "values", job->n);
    return st == SPMV_OK ? allocate("the result", job->n, size, &job->out) : st;
}

/* Parses "0,3,5": where segments start, ascending; 0 is implied. */
static spmv_status read_heads(struct explain_job *job)
{
    const char *at = job->o->heads;
    long before = -1;
    do {
        char *end = NULL;
        errno = 0;
        const long head = strtol(at, &end, 10);
        if (end == at || (*end != ',' && *end != '\0') || (*end == ',' && end[1] == '\0') || errno != 0) {
            complain("--heads %s: must be positions separated by commas, such as 0,3,5", job->o->heads);
            return SPMV_ERROR_ARGUMENT;
        }
        if (head <= before || head >= job->n) {
            complain("--heads %s: %ld: positions must ascend, from 0 to %lld", job->o->heads, head,
                     (long long)(job->n - 1));
            return SPMV_ERROR_ARGUMENT;
        }
        job->heads[head] = 1;
        before = head;
        at = *end == ',' ? end + 1 : end;
    } while (*at != '\0');
    return SPMV_OK;
}

/* ---------------------------------------------------------------- primitives */

static const char *kind_name(const struct explain_job *job)
{
    return job->kind == SPMV_EXCLUSIVE ? "exclusive" : "inclusive";
}

/* what: "reduce of"; how: "with the operator add,"; primitive: the primitive of the rung */
static void show_title(struct explain_job *job, const char *what, const char *how, const char *primitive)
{
    explain_text(&job->page, "%s %lld value%s (%s) %s by the rung %s", what, (long long)job->n, job->n == 1 ? "" : "s",
                 spmv_type_name(job->o->type), how, job->rung);
    explain_rung(job, primitive, job->rung);
    explain_text(&job->page, "*: the step changed the cell");
}

static void show_operator_title(struct explain_job *job, const char *what, const char *primitive)
{
    char how[64];
    snprintf(how, sizeof how, "with the operator %s,", spmv_op_name(job->op));
    show_title(job, what, how, primitive);
}

static void about_kind(struct explain_job *job)
{
    json_put(job->more, "kind", json_string(kind_name(job)));
}

spmv_status explain_scan(struct explain_job *job, const char *const *words, int count)
{
    bool bars = false;
    spmv_status st = explain_values(job, words, count, false, &bars);
    if (st != SPMV_OK)
        return st;
    about_kind(job);
    show_operator_title(job, job->kind == SPMV_EXCLUSIVE ? "exclusive scan of" : "inclusive scan of", "scan");
    explain_array(&job->page, "in", "in", job->o->type, job->values, job->n, NULL);
    st = explain_trace_steps(job, (enum explain_trace)job->kind, job->op, job->o->type, NULL, job->values, job->out,
                             job->n);
    explain_array(&job->page, "out", "out", job->o->type, job->out, job->n, NULL);
    explain_end(job, job->n - 1);
    return st;
}

spmv_status explain_segscan(struct explain_job *job, const char *const *words, int count)
{
    bool bars = false;
    spmv_status st = explain_values(job, words, count, true, &bars);
    if (st == SPMV_OK && bars && job->o->heads != NULL)
        st = report(SPMV_ERROR_ARGUMENT, "give segments with --heads or with \"|\" between the values, not with both");
    if (st == SPMV_OK && job->o->heads != NULL)
        st = read_heads(job);
    if (st != SPMV_OK)
        return st;
    int64_t flags[EXPLAIN_MOST], segments = 0;
    for (int64_t i = 0; i < job->n; i++)
        segments += flags[i] = job->heads[i];
    about_kind(job);
    show_operator_title(
        job, job->kind == SPMV_EXCLUSIVE ? "exclusive segmented scan of" : "inclusive segmented scan of", "segscan");
    explain_text(&job->page, "|: a segment starts in the cell's range");
    explain_array(&job->page, "in", "in", job->o->type, job->values, job->n, job->heads);
    explain_array(&job->page, "flags", "head flags", SPMV_I64, flags, job->n, NULL);
    st = explain_trace_steps(job, (enum explain_trace)job->kind, job->op, job->o->type, job->heads, job->values,
                             job->out, job->n);
    explain_array(&job->page, "out", "out", job->o->type, job->out, job->n, job->heads);
    explain_end(job, job->n - segments);
    return st;
}

spmv_status explain_reduce(struct explain_job *job, const char *const *words, int count)
{
    bool bars = false;
    spmv_status st = explain_values(job, words, count, false, &bars);
    if (st != SPMV_OK)
        return st;
    show_operator_title(job, "reduce of", "reduce");
    explain_array(&job->page, "in", "in", job->o->type, job->values, job->n, NULL);
    st = explain_trace_steps(job, EXPLAIN_REDUCE, job->op, job->o->type, NULL, job->values, job->out, job->n);
    explain_array(&job->page, "out", "out", job->o->type, job->out, 1, NULL);
    explain_end(job, job->n - 1);
    return st;
}

spmv_status explain_predicate(const char *text, spmv_predicate *predicate, double *scalar)
{
    char name[32];
    const size_t length = strcspn(text, ":");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), text);
    *scalar = 0;
    if (spmv_predicate_parse(name, predicate) == SPMV_OK)
        return text[length] == ':' ? read_number(text + length + 1, scalar) : SPMV_OK;
    complain("--keep %s: must be a predicate, with its number after a colon: less, less_equal, greater, "
             "greater_equal, equal, not_equal, nonzero",
             text);
    return SPMV_ERROR_ARGUMENT;
}

spmv_status explain_kept(const struct explain_job *job, spmv_predicate predicate, double scalar, const void *values,
                         int64_t n, int64_t *flags)
{
    const size_t size = spmv_type_size(job->o->type);
    const union real typed = real_scalar(job->o->type, scalar);
    double kept = 0;
    spmv_status st = SPMV_OK;
    for (int64_t i = 0; st == SPMV_OK && i < n; i++)
        st = explain_status(job, spmv_compact_if(job->ctx, predicate, 1, job->o->type, &typed,
                                                 (const char *)values + (size_t)i * size, &kept, &flags[i], 1));
    return st;
}

/* Flags, the exclusive scan of the flags, scatter. */
spmv_status explain_compact(struct explain_job *job, const char *const *words, int count)
{
    const char *const test = job->o->keep != NULL ? job->o->keep : "nonzero";
    int64_t flags[EXPLAIN_MOST], places[EXPLAIN_MOST], kept = 0;
    spmv_predicate predicate = SPMV_IS_NONZERO;
    double scalar = 0;
    bool bars = false;
    char title[64];
    spmv_status st = explain_predicate(test, &predicate, &scalar);
    if (st == SPMV_OK)
        st = explain_values(job, words, count, false, &bars);
    if (st == SPMV_OK)
        st = explain_kept(job, predicate, scalar, job->values, job->n, flags);
    if (st != SPMV_OK)
        return st;
    for (int64_t i = 0; i < job->n; i++)
        job->heads[i] = flags[i] != 0;
    show_title(job, "compact of", "by flags, exclusive scan and scatter; the scan", "scan");
    explain_array(&job->page, "in", "in", job->o->type, job->values, job->n, NULL);
    snprintf(title, sizeof title, "flags: %.40s", test);
    explain_array(&job->page, "flags", title, SPMV_I64, flags, job->n, NULL);
    explain_text(&job->page, "exclusive scan of the flags");
    st = explain_trace_steps(job, EXPLAIN_EXCLUSIVE, SPMV_ADD, SPMV_I64, NULL, flags, places, job->n);
    if (st != SPMV_OK)
        return st;
    explain_array(&job->page, "places", "places", SPMV_I64, places, job->n, NULL);
    kept = places[job->n - 1] + flags[job->n - 1];
    explain_text(&job->page, "scatter: out[places[i]] = in[i] where flags[i] is 1; %lld of %lld kept", (long long)kept,
                 (long long)job->n);
    st = explain_status(
        job, spmv_scatter_masked(job->ctx, job->o->type, job->values, places, 64, job->heads, job->out, kept, job->n));
    explain_array(&job->page, "out", "out", job->o->type, job->out, kept, NULL);
    explain_end(job, job->n - 1);
    return st;
}
