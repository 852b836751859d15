/* Scan of an array in host memory as an operation, end to end: upload, scan, download.
 *
 * The text on the method also has the times of plain copies of the same bytes up and down, one
 * after the other, with the usual calls: this shows what overlapping can gain. Counted bytes: 2 n
 * v, the bytes transferred.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ops/work.h"
#include "bench/timing.h"

enum { STREAM_IN = 0x696e, WHY_BYTES = 256 };

/* Plain copies reuse this many bytes of the context's memory. */
static const int64_t COPY_BYTES = (int64_t)256 << 20;

static int64_t array_bytes(const struct work *work)
{
    return work->operand->n * (int64_t)spmv_type_size(work->type);
}

struct state {
    void *in, *out, *expected;
    double copy_seconds[2]; /* of plain copies up and down */
};

static spmv_status fill_scan_host(struct work *work, bool exact)
{
    const struct state *const state = work->state;
    const int64_t n = work->operand->n;
    work_fill_values(work, n, STREAM_IN, exact, state->in);
    if (!exact)
        return SPMV_OK;
    const spmv_status st =
        spmv_scan_host(work->checker, SPMV_INCLUSIVE, SPMV_ADD, work->type, state->in, state->expected, n, NULL);
    return st == SPMV_OK ? st : work_fail(work, work->checker, st);
}

/* Times plain copies, [0] up and [1] down, each after an untimed one. */
static spmv_status time_copies(struct work *work, struct state *state)
{
    const int64_t bytes = array_bytes(work), most = bytes < COPY_BYTES ? bytes : COPY_BYTES;
    char *const host = state->out;
    void *memory = NULL;
    spmv_status st = spmv_alloc(work->ctx, most > 0 ? most : 1, &memory);
    memset(host, 0, (size_t)bytes);
    for (int pass = 0; pass < 4 && st == SPMV_OK; pass++) {
        const double began = monotonic_seconds();
        for (int64_t at = 0; at < bytes && st == SPMV_OK; at += most) {
            const int64_t part = bytes - at < most ? bytes - at : most;
            st = pass < 2 ? spmv_upload(work->ctx, host + at, memory, part)
                          : spmv_download(work->ctx, memory, host + at, part);
        }
        state->copy_seconds[pass / 2] = monotonic_seconds() - began;
    }
    spmv_free(work->ctx, memory);
    return st == SPMV_OK ? st : work_fail(work, work->ctx, st);
}

static spmv_status setup_scan_host(struct work *work)
{
    const int64_t bytes = array_bytes(work);
    struct state *const state = work_state(work, sizeof *state);
    if (state == NULL)
        return SPMV_ERROR_MEMORY;
    work->problem.n = work->operand->n;
    state->in = work_keep(work, malloc((size_t)bytes + 1));
    state->out = work_keep(work, malloc((size_t)bytes + 1));
    state->expected = work_keep(work, malloc((size_t)bytes + 1));
    if (state->in == NULL || state->out == NULL || state->expected == NULL)
        return work_out_of_memory(work, "the arrays", 3 * bytes);
    work->result = state->out;
    work->result_on_host = true;
    work->result_bytes = bytes;
    work->model_bytes = 2 * (double)bytes;
    return time_copies(work, state);
}

/* method->state: the text on the method. */
static spmv_status open_scan_host(struct work *work, const char *name, struct method *method)
{
    const double *const seconds = ((const struct state *)work->state)->copy_seconds;
    const spmv_status st = work_open_only(work, name, method);
    if (st != SPMV_OK)
        return st;
    char *const why = malloc(WHY_BYTES);
    if (why == NULL)
        return work_out_of_memory(work, "a sentence", WHY_BYTES);
    const double gigabytes = 1e-9 * (double)array_bytes(work);
    snprintf(why, WHY_BYTES,
             "the only method; plain copies of the same bytes: up %.3g GB/s, down %.3g GB/s, in sequence %.4g s",
             gigabytes / seconds[0], gigabytes / seconds[1], seconds[0] + seconds[1]);
    method->why = method->state = why;
    return SPMV_OK;
}

static void close_scan_host(struct method *method)
{
    free(method->state);
}

static int run_scan_host(void *state)
{
    const struct work *const work = ((const struct method *)state)->work;
    const struct state *const arrays = work->state;
    return spmv_scan_host(work->ctx, SPMV_INCLUSIVE, SPMV_ADD, work->type, arrays->in, arrays->out, work->operand->n,
                          NULL) == SPMV_OK
               ? 0
               : -1;
}

static spmv_status check_scan_host(struct work *work, const void *host_result, struct check *check)
{
    const struct state *const state = work->state;
    return work_check_cells(work, host_result, state->expected, (int64_t)spmv_type_size(work->type), check);
}

const struct operation operation_scan_host = {
    .name = "scan-host",
    .formula = "out[i] = in[0] + ... + in[i], in and out in host memory",
    .operator_name = "add",
    .kind = "inclusive",
    .peer_op = -1,
    .methods = {work_no_names, open_scan_host, run_scan_host, close_scan_host, NULL},
    .setup = setup_scan_host,
    .fill = fill_scan_host,
    .check = check_scan_host};
