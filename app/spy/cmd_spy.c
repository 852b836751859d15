/* spmv spy: a picture of a matrix's pattern, in a file or in the terminal.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <strings.h>

#include "app/commands.h"
#include "app/input.h"
#include "app/job_memory.h"
#include "app/options.h"
#include "app/output.h"
#include "app/spy/spy.h"

enum { STANDARD_SIZE = 800, LEAST_SIZE = 16, MOST_SIZE = 4096 };

static bool ends_in(const char *text, const char *ending)
{
    const size_t length = strlen(text), size = strlen(ending);
    return length > size && strcasecmp(text + length - size, ending) == 0;
}

static spmv_status choose_kind(const char *path, enum spy_kind *kind)
{
    *kind = path == NULL ? SPY_NONE : ends_in(path, ".png") ? SPY_PNG : ends_in(path, ".svg") ? SPY_SVG : SPY_NONE;
    if (path != NULL && *kind == SPY_NONE) {
        complain("-o %s: the name must end in .png or .svg", path);
        return SPMV_ERROR_ARGUMENT;
    }
    return *kind != SPY_NONE ? spy_picture_ready(*kind) : SPMV_OK;
}

static spmv_status choose_size(const struct options *o, bool picture, int *size)
{
    if (o->size > MOST_SIZE || (o->size > 0 && o->size < LEAST_SIZE)) {
        complain("--size %lld: must be from %d to %d pixels", (long long)o->size, LEAST_SIZE, MOST_SIZE);
        return SPMV_ERROR_ARGUMENT;
    }
    *size = o->size > 0 ? (int)o->size : STANDARD_SIZE;
    if (o->size > 0 && !picture)
        return report(SPMV_ERROR_ARGUMENT, "--size needs -o: in the terminal, the picture is as wide as the terminal");
    return SPMV_OK;
}

static json_t *json_axis(const struct spy_axis *axis)
{
    return json_pack("{s:i, s:I}", "cells", axis->cells, "block", (json_int_t)axis->block);
}

/* "matrix" without row lengths, which this command does not compute. */
static json_t *json_spy_matrix(const struct input *in)
{
    return json_pack("{s:o, s:I, s:I, s:I}", "name", json_text(in->name), "rows", (json_int_t)in->view.rows, "cols",
                     (json_int_t)in->view.cols, "nnz", (json_int_t)in->view.nnz);
}

static spmv_status write_spy_json(const struct options *o, const struct input *in, int threads,
                                  const struct spy_bins *bins, int width, int height)
{
    json_t *root = json_begin(o), *spy = json_object();
    json_put(root, "machine", json_machine(threads));
    json_put(root, "matrix", json_spy_matrix(in));
    json_put(root, "load", json_load(in));
    json_put(spy, "rows", json_axis(&bins->rows));
    json_put(spy, "cols", json_axis(&bins->cols));
    json_put(spy, "filled", json_integer((json_int_t)bins->filled));
    if (bins->filled > 0)
        json_put(spy, "density", json_pack("{s:f, s:f}", "min", bins->least, "max", bins->most));
    if (o->output != NULL)
        json_put(spy, "picture", json_pack("{s:i, s:i}", "width", width, "height", height));
    json_put(root, "spy", spy);
    return json_finish(o, root);
}

spmv_status run_spy(const struct options *o, const char *const *arguments, int count)
{
    spmv_context *ctx = NULL;
    struct input in = {0};
    struct spy_bins bins = {0};
    enum spy_kind kind = SPY_NONE;
    int size = 0, width = 0, height = 0, threads = 1;
    const bool json_is_answer = o->json && o->json_path == NULL;
    (void)count;
    spmv_status st = choose_size(o, o->output != NULL || json_is_answer, &size);
    if (st == SPMV_OK)
        st = choose_kind(o->output, &kind);
    if (st == SPMV_OK)
        st = check_writable(o);
    if (st == SPMV_OK) /* never on a GPU */
        st = open_context(o, o->backend == SPMV_BACKEND_AUTO ? SPMV_BACKEND_OMP : o->backend, &ctx);
    if (st == SPMV_OK)
        st = input_load(ctx, o, JOB_LOOK, arguments[0], &in);
    if (st == SPMV_OK)
        threads = spmv_context_threads(ctx);
    if (st == SPMV_OK && kind == SPY_NONE && !json_is_answer)
        st = spy_print(&in, threads, &bins);
    else if (st == SPMV_OK)
        st = spy_bins_make(&in.view, spy_picture_room(kind, size), threads, &bins);
    if (st == SPMV_OK && kind != SPY_NONE)
        st = spy_picture_write(o->output, kind, size, in.name, &bins, &width, &height);
    if (st == SPMV_OK && kind != SPY_NONE)
        remark(LEVEL_NORMAL, "%s: %lld x %lld, %lld nonzero%s; %s: %d x %d pixels, %s", arguments[0],
               (long long)in.view.rows, (long long)in.view.cols, (long long)in.view.nnz, in.view.nnz == 1 ? "" : "s",
               o->output, width, height, spy_cell_text("a cell", &bins));
    if (st == SPMV_OK && o->json)
        st = write_spy_json(o, &in, threads, &bins, width, height);
    spy_bins_free(&bins);
    input_free(&in);
    spmv_context_destroy(ctx);
    return st;
}
