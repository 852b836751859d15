/* spmv convert: a matrix from one kind of file into another, by the names' endings. Symmetry and
 * comments stay.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "app.h"

/* Where an ending begins in the path, of length bytes; length: the path does not end so. */
static size_t cut(const char *path, size_t length, const char *ending)
{
    const size_t n = strlen(ending);
    return length > n && strncasecmp(path + length - n, ending, n) == 0 ? length - n : length;
}

/* .mtx, also compressed, or .spmv. */
static bool has_known_ending(const char *path)
{
    static const char *const packings[] = {".gz", ".xz", ".zst", ".bz2"};
    const size_t whole = strlen(path);
    size_t length = whole;
    for (size_t i = 0; i < sizeof packings / sizeof packings[0] && length == whole; i++)
        length = cut(path, whole, packings[i]);
    return cut(path, length, ".mtx") < length || cut(path, length, ".spmv") < length;
}

/* What can be told before the matrix is read. */
static spmv_status check_output(const struct options *o, const char *source, const char *path)
{
    if (strcmp(path, "-") != 0 && !has_known_ending(path)) {
        complain("%s: the ending of the name says what is written: .mtx, .mtx.gz or .spmv (the binary form), also "
                 ".mtx.xz, .mtx.zst and .mtx.bz2; - is text to standard output",
                 path);
        return SPMV_ERROR_ARGUMENT;
    }
    if (o->json && o->json_path == NULL && strcmp(path, "-") == 0)
        return report(SPMV_ERROR_ARGUMENT,
                      "both the matrix and the JSON cannot go to standard output: name a file with --json=FILE");
    spmv_status st = check_format(o, path);
    if (st == SPMV_OK)
        st = check_outputs(o, path);
    if (st == SPMV_OK)
        st = check_inputs(o, &source, 1, path);
    return st;
}

/* With the symmetry of the file, where the values read have it bit by bit, as they do but for
 * real skew-symmetric values that are read as complex ones; else general. */
static spmv_status write_as_it_was(spmv_context *ctx, const struct input *in, const char *path)
{
    spmv_write_options options;
    spmv_write_options_init(&options, sizeof options);
    options.comments = spmv_matrix_comments(in->matrix);
    if (in->info.symmetry != 0)
        options.symmetry = in->info.symmetry;
    spmv_status st = spmv_matrix_write_as(ctx, &in->view, path, &options);
    if (st != SPMV_ERROR_NOT_SYMMETRIC)
        return st;
    remark(LEVEL_NORMAL, "written as a general matrix: %s", spmv_last_error(ctx));
    options.symmetry = SPMV_SYMMETRY_GENERAL;
    return spmv_matrix_write_as(ctx, &in->view, path, &options);
}

static spmv_status write_matrix(spmv_context *ctx, const struct input *in, const char *path)
{
    progress_allow(strcmp(path, "-") != 0 || !isatty(STDOUT_FILENO));
    const double began = monotonic_seconds();
    const spmv_status st = write_as_it_was(ctx, in, path);
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
    spmv_status st = check_output(o, arguments[0], path);
    if (st == SPMV_OK)
        st = open_context(o, o->backend == SPMV_BACKEND_AUTO ? SPMV_BACKEND_OMP : o->backend, &ctx);
    if (st == SPMV_OK)
        st = input_load_with_comments(ctx, o, JOB_FILE, arguments[0], &in);
    if (st == SPMV_OK)
        st = write_matrix(ctx, &in, path);
    if (st == SPMV_OK && o->json)
        st = write_convert_json(o, ctx, &in);
    input_free(&in);
    spmv_context_destroy(ctx);
    return st;
}
