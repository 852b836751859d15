/* spmv gen: writes a generated matrix to a file, in the form given by the file's name.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "app/commands.h"
#include "app/input.h"
#include "app/job_memory.h"
#include "app/matrix_output.h"
#include "app/options.h"
#include "app/output.h"

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

spmv_status run_gen(const struct options *o, const char *const *arguments, int count)
{
    spmv_context *ctx = NULL;
    struct input in = {0};
    const char *path = NULL;
    (void)count;
    spmv_status st = choose_answer(o, "the matrix", &path);
    if (st == SPMV_OK)
        st = open_context(o, o->backend, &ctx);
    if (st == SPMV_OK)
        st = generate(ctx, o, arguments[0], &in);
    if (st == SPMV_OK)
        st = write_matrix_and_json(ctx, o, &in, path, "generated");
    input_free(&in);
    spmv_context_destroy(ctx);
    return st;
}
