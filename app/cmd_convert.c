/* spmv convert: a matrix from one kind of file into another, by the names' endings.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app.h"

static bool ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), n = strlen(ending);
    return length > n && strcmp(path + length - n, ending) == 0;
}

static spmv_status check_ending(const char *path)
{
    if (strcmp(path, "-") == 0 || ends_with(path, ".mtx") || ends_with(path, ".mtx.gz") || ends_with(path, ".spmv"))
        return SPMV_OK;
    complain("%s: the ending of the name says what is written: .mtx, .mtx.gz or .spmv (the binary form); - is text to "
             "standard output",
             path);
    return SPMV_ERROR_ARGUMENT;
}

static spmv_status write_matrix(spmv_context *ctx, const struct input *in, const char *path)
{
    progress_allow(strcmp(path, "-") != 0 || !isatty(STDOUT_FILENO));
    const double began = monotonic_seconds();
    stops_library_writes(path);
    const spmv_status st = spmv_matrix_write(ctx, &in->view, path);
    stops_library_writes(NULL);
    progress_end();
    progress_allow(true);
    if (st == SPMV_OK)
        remark(LEVEL_NORMAL, "%s: %lld x %lld, %lld nonzero%s; read in %s, written in %s", in->argument,
               (long long)in->view.rows, (long long)in->view.cols, (long long)in->view.nnz,
               in->view.nnz == 1 ? "" : "s", seconds_text(in->seconds), seconds_text(monotonic_seconds() - began));
    return write_status(ctx, st, path);
}

static spmv_status write_convert_json(const struct options *o, spmv_context *ctx, const struct input *in)
{
    spmv_statistics statistics;
    const spmv_status st = spmv_matrix_statistics(ctx, &in->view, &statistics, sizeof statistics);
    return st == SPMV_OK ? json_finish(o, json_about(o, ctx, in, &statistics)) : report(st, spmv_last_error(ctx));
}

spmv_status run_convert(const struct options *o, const char *const *arguments, int count)
{
    spmv_context *ctx = NULL;
    struct input in = {0};
    const char *const path = arguments[1];
    (void)count;
    spmv_status st = check_ending(path);
    if (st == SPMV_OK)
        st = check_outputs(o, path);
    if (st == SPMV_OK && o->json && o->json_path == NULL && strcmp(path, "-") == 0)
        st = report(SPMV_ERROR_ARGUMENT,
                    "both the matrix and the JSON cannot go to standard output: name a file with --json=FILE");
    if (st == SPMV_OK)
        st = open_context(o, o->backend == SPMV_BACKEND_AUTO ? SPMV_BACKEND_OMP : o->backend, &ctx);
    if (st == SPMV_OK)
        st = input_load(ctx, o, arguments[0], &in);
    if (st == SPMV_OK)
        st = write_matrix(ctx, &in, path);
    if (st == SPMV_OK && o->json)
        st = write_convert_json(o, ctx, &in);
    input_free(&in);
    spmv_context_destroy(ctx);
    return st;
}
