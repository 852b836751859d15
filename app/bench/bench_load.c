/* spmv bench --op load: its options, table and JSON, which have other figures than the other
 * operations (bench/ops/op_load.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "app/bench/bench_output.h"
#include "app/commands.h"
#include "app/options.h"
#include "app/output.h"
#include "bench/ops/op_load.h"

spmv_status bench_load_check(const struct options *o, int count)
{
    static const char *const others[] = {"vectors", "summary",  "peers",  "precond", "restart",
                                         "method",  "compress", "device", "seed"};
    if (count == 0 || o->csv || o->suite != NULL || o->size != 0)
        return report(SPMV_ERROR_ARGUMENT, "--op load needs files; its results are a table or, with --json, JSON");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (option_given(o, others[i])) {
            complain("--%s is not for bench --op load", others[i]);
            return SPMV_ERROR_ARGUMENT;
        }
    return SPMV_OK;
}

static json_t *json_result(const struct trial *t)
{
    const struct load_figures *const f = load_figures(&t->work);
    const struct timing *const seconds = &t->results[0].warm;
    json_t *result = json_object();
    json_put(result, "op", json_string("load"));
    json_put(result, "type", json_string(spmv_type_name(f->type)));
    json_put(result, "threads", json_integer(f->info.threads));
    json_put(result, "file_bytes", json_integer((json_int_t)f->file_bytes));
    json_put(result, "text_bytes", json_integer((json_int_t)f->info.bytes));
    json_put(result, "matrix_bytes", json_integer((json_int_t)f->matrix_bytes));
    if (f->peak_bytes > 0)
        json_put(result, "peak_bytes", json_integer((json_int_t)f->peak_bytes));
    json_put(result, "bytes_alone_seconds", json_number(f->bytes_seconds));
    json_put(result, "first_call_seconds", json_number(f->first_seconds));
    json_put(result, "seconds", bench_timing_json(seconds));
    json_put(result, "gbs", json_number(result_gbs(t, &t->results[0])));
    return result;
}

json_t *bench_load_json(const struct bench_run *run, const struct bench_case *c)
{
    const struct load_figures *const f = load_figures(&c->trial->work);
    json_t *root = json_begin(run->o);
    json_put(root, "machine", json_machine(f->info.threads));
    json_put(root, "trust", bench_trial_trust(run, c->trial));
    json_put(root, "matrix",
             json_pack("{s:o, s:I, s:I, s:I}", "name", json_text(c->name), "rows", (json_int_t)f->rows, "cols",
                       (json_int_t)f->cols, "nnz", (json_int_t)f->nnz));
    json_put(root, "result", json_result(c->trial));
    return root;
}

static spmv_status head(struct line *line, struct text_file *file, const struct bench_trust *trust)
{
    char text[256];
    bench_load_text(&trust->load, text, sizeof text);
    line_add(line, "# %s\n# spread: median over minimum, minus 1, * above 20%%\n", text);
    line_add(line, "%-28s %7s %9s %9s %9s  %7s %9s %11s %8s", "file", "threads", "MB", "first s", "median s", "spread",
             "MB/s", "bytes alone", "peak/CSR");
    return line_end(line, file);
}

/* A name longer than its column gets a separate line. */
spmv_status bench_load_table(struct text_file *file, const struct bench_run *run, const struct bench_case *c,
                             bool with_head)
{
    enum { NAME_WIDTH = 28 };
    const struct load_figures *const f = load_figures(&c->trial->work);
    const struct timing *const seconds = &c->trial->results[0].warm;
    const bool longer = strlen(c->name) > NAME_WIDTH;
    struct line line = {.length = 0};
    spmv_status st = with_head ? head(&line, file, &run->trust) : SPMV_OK;
    char peak[32] = "-";
    if (f->peak_bytes > 0)
        snprintf(peak, sizeof peak, "%.2f", (double)f->peak_bytes / (double)f->matrix_bytes);
    if (longer) {
        line_add(&line, "%s", c->name);
        st = st == SPMV_OK ? line_end(&line, file) : st;
    }
    line_add(&line, "%-*s %7d %9.1f %9.3g %9.3g%s %6.0f%% %9.0f %11.0f %8s", NAME_WIDTH, longer ? "" : c->name,
             f->info.threads, 1e-6 * (double)f->info.bytes, f->first_seconds, seconds->median,
             timing_steady(seconds) ? " " : "*", 100 * timing_spread(seconds),
             1e-6 * (double)f->info.bytes / seconds->median, 1e-6 * (double)f->file_bytes / f->bytes_seconds, peak);
    return st == SPMV_OK ? line_end(&line, file) : st;
}
