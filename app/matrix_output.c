/* Writes a matrix to a file, for the commands gen and convert: text or binary form, the message,
 * and the JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <unistd.h>

#include "app/matrix_output.h"
#include "app/output.h"

/* Writes the matrix with the symmetry of its file, if the values have it bit by bit. That fails
 * only for real skew-symmetric values read as complex ones; then it is written as a general
 * matrix. */
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

spmv_status write_matrix(spmv_context *ctx, const struct input *in, const char *path, const char *made)
{
    /* The matrix and a progress line would mix on the same terminal. */
    progress_allow(strcmp(path, "-") != 0 || !isatty(STDOUT_FILENO));
    const double began = monotonic_seconds();
    const spmv_status st = write_as_it_was(ctx, in, path);
    progress_end();
    progress_allow(true);
    if (st == SPMV_OK)
        remark(LEVEL_NORMAL, "%s: %lld x %lld, %lld nonzero%s; %s in %s, written in %s", in->argument,
               (long long)in->view.rows, (long long)in->view.cols, (long long)in->view.nnz,
               in->view.nnz == 1 ? "" : "s", made, seconds_text(in->seconds),
               seconds_text(monotonic_seconds() - began));
    return write_status(ctx, st, path);
}

spmv_status write_matrix_and_json(spmv_context *ctx, const struct options *o, const struct input *in, const char *path,
                                  const char *made)
{
    spmv_statistics statistics;
    spmv_status st = path != NULL ? write_matrix(ctx, in, path, made) : SPMV_OK;
    if (st != SPMV_OK || !o->json)
        return st;
    st = spmv_matrix_statistics(ctx, &in->view, &statistics, sizeof statistics);
    return st == SPMV_OK ? json_finish(o, json_about(o, ctx, in, &statistics)) : report(st, spmv_last_error(ctx));
}
