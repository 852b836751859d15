/* spmv convert: converts a matrix file to another form, by the endings of the names. Symmetry and
 * comments are kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "app/commands.h"
#include "app/input.h"
#include "app/job_memory.h"
#include "app/matrix_output.h"
#include "app/options.h"
#include "app/output.h"

/* The endings of the forms that are written, for the test and for the message. */
#define FORMS(X) X(".mtx") X(".spmv") X(".rb") X(".hb") X(".petsc") X(".npz") X(".mat")

/* The ending is one of these, also with that of a compression. */
static bool has_known_ending(const char *path)
{
    size_t length = strlen(path);
    cut_compression(path, &length);
#define FORM(ending) cut_ending(path, &length, ending) ||
    return FORMS(FORM) false;
#undef FORM
}

/* Checks the output before the matrix is read. */
static spmv_status check_output(const struct options *o, const char *source, const char *path)
{
    if (strcmp(path, "-") != 0 && !has_known_ending(path)) {
#define FORM(ending) " " ending
#define COMPRESSED(ending) " " ending
        complain("%s: the ending of the name selects the form:" FORMS(FORM) "; after it may stand" COMPRESSIONS(
                     COMPRESSED) " (not after .spmv); - writes Matrix Market to standard output",
                 path);
#undef COMPRESSED
#undef FORM
        return SPMV_ERROR_ARGUMENT;
    }
    if (o->json && o->json_path == NULL && strcmp(path, "-") == 0)
        return report(SPMV_ERROR_ARGUMENT,
                      "both the matrix and the JSON cannot go to standard output: name a file with --json=FILE");
    spmv_status st = check_format(o, path, true);
    const char *const another = path != o->output ? path : NULL;
    if (st == SPMV_OK)
        st = check_outputs(o, another);
    if (st == SPMV_OK)
        st = check_inputs(o, &source, 1, another);
    return st;
}

spmv_status run_convert(const struct options *o, const char *const *arguments, int count)
{
    spmv_context *ctx = NULL;
    struct input in = {0};
    const char *const path = count > 1 ? arguments[1] : o->output;
    if (path == NULL || (count > 1 && o->output != NULL)) {
        complain(path == NULL ? "the output is missing: spmv convert A B, or spmv convert A -o B"
                              : "two outputs, %s and %s: spmv convert A B, or spmv convert A -o B",
                 path, o->output);
        return SPMV_ERROR_ARGUMENT;
    }
    spmv_status st = check_output(o, arguments[0], path);
    if (st == SPMV_OK)
        st = open_context(o, o->backend == SPMV_BACKEND_AUTO ? SPMV_BACKEND_OMP : o->backend, &ctx);
    if (st == SPMV_OK)
        st = input_load_with_comments(ctx, o, JOB_FILE, arguments[0], &in);
    if (st == SPMV_OK)
        st = write_matrix_and_json(ctx, o, &in, path, "read");
    input_free(&in);
    spmv_context_destroy(ctx);
    return st;
}
