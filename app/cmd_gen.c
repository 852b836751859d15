/* spmv gen: a generated matrix into a file, whose name says the form.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app.h"

/* The argument is always a SPEC, even if a file has that name. */
static spmv_status generate(spmv_context *ctx, const struct options *o, const char *spec, struct input *in)
{
    *in = (struct input){.argument = spec, .source = "spec"};
    spmv_status st = allocate("the matrix's name", (int64_t)strlen(spec) + 1, 1, (void **)&in->name);
    if (st != SPMV_OK)
        return st;
    strcpy(in->name, spec);
    return input_generate(ctx, o, JOB_FILE, in);
}

static spmv_status write_matrix(spmv_context *ctx, const struct input *in, const char *path)
{
    /* the matrix and a progress line on the same terminal would mix */
    progress_allow(strcmp(path, "-") != 0 || !isatty(STDOUT_FILENO));
    const double began = monotonic_seconds();
    const spmv_status st = spmv_matrix_write(ctx, &in->view, path);
    progress_allow(true);
    if (st == SPMV_OK)
        remark(LEVEL_NORMAL, "%s: %lld x %lld, %lld nonzero%s; generated in %s, written in %s", in->argument,
               (long long)in->view.rows, (long long)in->view.cols, (long long)in->view.nnz,
               in->view.nnz == 1 ? "" : "s", seconds_text(in->seconds), seconds_text(monotonic_seconds() - began));
    return write_status(ctx, st, path);
}

static spmv_status write_gen_json(const struct options *o, spmv_context *ctx, const struct input *in)
{
    spmv_statistics statistics;
    const spmv_status st = spmv_matrix_statistics(ctx, &in->view, &statistics, sizeof statistics);
    return st == SPMV_OK ? json_finish(o, json_about(o, ctx, in, &statistics)) : report(st, spmv_last_error(ctx));
}

spmv_status run_gen(const struct options *o, const char *const *arguments, int count)
{
    spmv_context *ctx = NULL;
    struct input in = {0};
    const char *path = NULL;
    (void)count;
    spmv_status st = choose_answer(o, "the matrix", &path);
    if (st == SPMV_OK)
        st = check_format(o, path);
    if (st == SPMV_OK)
        st = check_writable(o);
    if (st == SPMV_OK)
        st = open_context(o, o->backend, &ctx);
    if (st == SPMV_OK)
        st = generate(ctx, o, arguments[0], &in);
    if (st == SPMV_OK && path != NULL)
        st = write_matrix(ctx, &in, path);
    if (st == SPMV_OK && o->json)
        st = write_gen_json(o, ctx, &in);
    input_free(&in);
    spmv_context_destroy(ctx);
    return st;
}
