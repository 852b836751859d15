/* spmv explain: shows a primitive, or the product built from primitives, step by step.
 *
 * Every array shown comes from the library's traces of a rung. The rungs are those of the GPU,
 * whose steps are computed on the host. The arrays passed between primitives are shown too.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "app/commands.h"
#include "app/explain/explain.h"
#include "app/input.h"
#include "app/options.h"
#include "app/output.h"
#include "core/choice.h"

/* Default limit of the number of values. */
enum { USUAL_MOST = 32 };

/* The subjects of --op. rung: the default of --rung; for a primitive that traces a scan, the rung
 * of the scan. */
static const struct subject {
    const char *name, *rung;
    bool exclusive, heads, keep, an_operator, type; /* the options that it takes */
    spmv_status (*run)(struct explain_job *job, const char *const *words, int count);
} subjects[] = {
    {"spmv", "blelloch", false, false, false, false, true, explain_product},
    {"spgemm", "blelloch", false, false, false, false, false, explain_spgemm},
    {"scan", "blelloch", true, false, false, true, true, explain_scan},
    {"segscan", "blelloch", true, true, false, true, true, explain_segscan},
    {"reduce", "divergent", false, false, false, true, true, explain_reduce},
    {"compact", "blelloch", false, false, true, false, true, explain_compact},
    {"expand", "blelloch", false, false, false, false, false, explain_expand},
    {"gather", "direct", false, false, true, false, true, explain_gather},
    {"sort", "blelloch", false, false, false, false, false, explain_sort},
    {"histogram", "atomic", false, false, false, false, false, explain_histogram},
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

const char *explain_subject_name(int index)
{
    return index >= 0 && index < SUBJECTS ? subjects[index].name : NULL;
}

spmv_status explain_status(const struct explain_job *job, spmv_status st)
{
    return st == SPMV_OK ? st : report(st, spmv_last_error(job->ctx));
}

spmv_status explain_check_size(const struct options *o, const char *what, int64_t n)
{
    const int64_t most = o->size > 0 ? o->size : USUAL_MOST;
    if (n <= most)
        return SPMV_OK;
    complain("%lld %s: explain shows at most %lld (--size N raises that, to %d)", (long long)n, what, (long long)most,
             EXPLAIN_MOST);
    return SPMV_ERROR_LIMIT;
}

void explain_rung(struct explain_job *job, const char *primitive, const char *rung)
{
    spmv_rung_info info;
    if (spmv_rung_describe(job->ctx, primitive, rung, &info, sizeof info) != SPMV_OK)
        return;
    const bool blocks = strchr(info.work, 'B') != NULL || strchr(info.depth, 'B') != NULL;
    explain_text(&job->page, "%.*s: work %s, depth %s%s; %s", (int)strcspn(rung, ":"), rung, info.work, info.depth,
                 blocks ? " (B: values of a block)" : "", info.source);
    json_t *all = json_object_get(job->more, "costs");
    if (all == NULL) {
        json_put(job->more, "costs", json_array());
        all = json_object_get(job->more, "costs");
    }
    json_array_append_new(all, json_pack("{s:s, s:o, s:s, s:s, s:s}", "primitive", primitive, "rung", json_text(rung),
                                         "work", info.work, "depth", info.depth, "source", info.source));
}

void explain_end(struct explain_job *job, int64_t loop)
{
    const struct explain_page *page = &job->page;
    char compare[64] = "";
    if (page->widest > job->n)
        explain_text(&job->page, "cells from %lld on are after the last value: they start as the identity",
                     (long long)job->n);
    if (page->idle > 0)
        explain_text(&job->page,
                     "%d step%s not shown: the threads combine only identities after the last value; their operations "
                     "are counted",
                     page->idle, page->idle == 1 ? " is" : "s are");
    if (loop >= 0)
        snprintf(compare, sizeof compare, "; a loop does %lld operation%s", (long long)loop, loop == 1 ? "" : "s");
    explain_text(&job->page, "%lld operation%s, %d step%s, %d launch%s%s", (long long)page->operations,
                 page->operations == 1 ? "" : "s", page->steps, page->steps == 1 ? "" : "s", page->launches,
                 page->launches == 1 ? "" : "es", compare);
}

static spmv_status find_subject(const struct options *o, const struct subject **found)
{
    for (int k = 0; k < SUBJECTS; k++) {
        if (strcmp(o->op, subjects[k].name) == 0) {
            *found = &subjects[k];
            return SPMV_OK;
        }
    }
    complain("--op %s: explain supports spmv (the product), spgemm (of two matrices), scan, segscan, reduce, "
             "compact, expand, gather, sort and "
             "histogram",
             o->op);
    return SPMV_ERROR_ARGUMENT;
}

/* Refuses options that the subject does not take, and invalid numbers. */
static spmv_status check_wishes(const struct options *o, const struct subject *subject)
{
    const char *wrong = o->exclusive && !subject->exclusive                 ? "exclusive"
                        : o->heads != NULL && !subject->heads               ? "heads"
                        : o->keep != NULL && !subject->keep                 ? "keep"
                        : o->operator_name != NULL && !subject->an_operator ? "operator"
                                                                            : NULL;
    if (wrong != NULL) {
        complain("--%s is not for explain --op %s", wrong, subject->name);
        return SPMV_ERROR_ARGUMENT;
    }
    if (option_given(o, "type") && !subject->type) {
        complain("--type is not for explain --op %s, which %s", subject->name,
                 subject->run == explain_spgemm ? "computes in f64" : "takes integers");
        return SPMV_ERROR_ARGUMENT;
    }
    if (o->size > EXPLAIN_MOST) {
        complain("--size %lld: explain shows at most %d values", (long long)o->size, EXPLAIN_MOST);
        return SPMV_ERROR_ARGUMENT;
    }
    return SPMV_OK;
}

static spmv_status find_operator(const char *name, spmv_op *op)
{
    *op = SPMV_ADD;
    if (name == NULL || spmv_op_parse(name, op) == SPMV_OK)
        return SPMV_OK;
    complain("--operator %s: must be add, mul, min, max or last", name);
    return SPMV_ERROR_ARGUMENT;
}

/* {"op", "rung", "operator", "type", "n"}, members of the subject, and the page. */
static spmv_status write_json(const struct explain_job *job, const struct subject *subject)
{
    json_t *root = json_begin(job->o);
    const char *const op = strcmp(subject->name, "spgemm") == 0 ? "multiply" : subject->name; /* as ever */
    json_t *explain = json_pack("{s:s, s:s, s:s, s:s, s:I}", "op", op, "rung", job->rung, "operator",
                                spmv_op_name(job->op), "type", spmv_type_name(job->o->type), "n", (json_int_t)job->n);
    json_t *page = explain_json(&job->page);
    if (job->more != NULL)
        json_object_update(explain, job->more);
    json_object_update(explain, page);
    json_decref(page);
    json_put(root, "explain", explain);
    return json_finish(job->o, root);
}

spmv_status run_explain(const struct options *o, const char *const *arguments, int count)
{
    const struct subject *subject = NULL;
    struct explain_job job = {.o = o, .kind = o->exclusive ? SPMV_EXCLUSIVE : SPMV_INCLUSIVE, .more = json_object()};
    spmv_status st = find_subject(o, &subject);
    if (st == SPMV_OK)
        st = check_wishes(o, subject);
    if (st == SPMV_OK)
        st = find_operator(o->operator_name, &job.op);
    if (st == SPMV_OK)
        st = explain_picture_ready(o->output);
    if (st == SPMV_OK)
        st = check_writable(o);
    if (st == SPMV_OK)
        st = open_context(o, SPMV_BACKEND_REF, &job.ctx);
    if (st == SPMV_OK) {
        job.rung = choice_is_auto(o->rung) ? subject->rung : o->rung;
        st = subject->run(&job, arguments, count);
    }
    if (st == SPMV_OK)
        st = job.page.status;
    if (st == SPMV_OK && o->output != NULL)
        st = explain_picture_write(&job.page, o->output);
    else if (st == SPMV_OK && !(o->json && o->json_path == NULL)) {
        explain_print(&job.page);
        st = finish_stdout();
    }
    if (st == SPMV_OK && o->json)
        st = write_json(&job, subject);
    explain_free(&job.page);
    input_free(&job.in);
    free(job.values);
    free(job.out);
    free(job.heads);
    json_decref(job.more);
    spmv_context_destroy(job.ctx);
    return st;
}
