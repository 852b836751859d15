/* Scan of an array in host memory as something to measure, from end to end: up, the work, and down.
 *
 * Beside it stand, in the sentence on the method, plain copies of as many bytes up and down, one after the other, by
 * the calls that everyone would use: what there is to win by letting them overlap. Bytes that count: 2 n v, what
 * crosses.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"
#include "work.h"

enum { STREAM_IN = 0x696e, WHY_BYTES = 256 };

/* Plain copies go through so much of the context's memory, again and again. */
static const int64_t COPY_BYTES = (int64_t)256 << 20;

static int64_t array_bytes(const struct work *work)
{
    return work->operand->n * (int64_t)spmv_type_size(work->type);
}

static spmv_status fill_scan_host(struct work *work, bool exact)
{
    free(work->host_x);
    work->host_x = work_values(work, work->operand->n, STREAM_IN, exact);
    if (work->host_x == NULL)
        return work_out_of_memory(work, "the elements", array_bytes(work));
    if (!exact)
        return SPMV_OK;
    const spmv_status st = spmv_scan_host(work->checker, SPMV_INCLUSIVE, SPMV_ADD, work->type, work->host_x,
                                          work->expected, work->operand->n, NULL);
    return st == SPMV_OK ? st : work_fail(work, work->checker, st);
}

/* Seconds of the plain copies, [0] up and [1] down, each after one that is not timed. */
static spmv_status time_copies(struct work *work, double seconds[2])
{
    const int64_t bytes = array_bytes(work), most = bytes < COPY_BYTES ? bytes : COPY_BYTES;
    char *const host = work->host_values;
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
        seconds[pass / 2] = monotonic_seconds() - began;
    }
    spmv_free(work->ctx, memory);
    return st == SPMV_OK ? st : work_fail(work, work->ctx, st);
}

static spmv_status setup_scan_host(struct work *work)
{
    const int64_t bytes = array_bytes(work);
    work->problem.n = work->operand->n;
    work->host_values = malloc((size_t)bytes + 1); /* the result */
    work->expected = malloc((size_t)bytes + 1);
    if (work->host_values == NULL || work->expected == NULL)
        return work_out_of_memory(work, "the arrays", 2 * bytes);
    work->result = work->host_values;
    work->result_on_host = true;
    work->result_bytes = bytes;
    work->model_bytes = 2 * (double)bytes;
    return time_copies(work, work->copy_seconds);
}

/* own->plan: the sentence. */
static spmv_status open_scan_host(struct work *work, const char *method, struct own *own)
{
    const double *const seconds = work->copy_seconds;
    if (strcmp(method, "auto") != 0) {
        snprintf(work->error, sizeof work->error, "scan-host has no method %s; there is: auto", method);
        return SPMV_ERROR_METHOD;
    }
    char *const why = malloc(WHY_BYTES);
    if (why == NULL)
        return work_out_of_memory(work, "a sentence", WHY_BYTES);
    const double gigabytes = 1e-9 * (double)array_bytes(work);
    snprintf(why, WHY_BYTES,
             "the only method; plain copies of as many bytes: up %.3g GB/s, down %.3g GB/s, one after the other %.4g s",
             gigabytes / seconds[0], gigabytes / seconds[1], seconds[0] + seconds[1]);
    *own = (struct own){.method = "default", .why = why, .work = work, .plan = why};
    return SPMV_OK;
}

static void close_scan_host(struct own *own)
{
    free(own->plan);
}

static int run_scan_host(void *state)
{
    const struct work *const work = ((const struct own *)state)->work;
    return spmv_scan_host(work->ctx, SPMV_INCLUSIVE, SPMV_ADD, work->type, work->host_x, work->result, work->operand->n,
                          NULL) == SPMV_OK
               ? 0
               : -1;
}

static spmv_status check_scan_host(struct work *work, const void *host_result, double *ratio, int64_t *at)
{
    return work_check_cells(work, host_result, (int64_t)spmv_type_size(work->type), ratio, at);
}

static const char *no_names(spmv_backend backend, int index)
{
    (void)backend;
    (void)index;
    return NULL;
}

const struct operation operation_scan_host = {.name = "scan-host",
                                              .formula = "out[i] = in[0] + ... + in[i], in and out in host memory",
                                              .operator_name = "add",
                                              .kind = "inclusive",
                                              .peer_op = -1,
                                              .method = no_names,
                                              .setup = setup_scan_host,
                                              .fill = fill_scan_host,
                                              .open = open_scan_host,
                                              .run = run_scan_host,
                                              .close = close_scan_host,
                                              .check = check_scan_host};
