/* Sort and histogram as operations: n keys with random mantissas; n indices, uniform over BINS
 * bins.
 *
 * Both have exactly one right result, to the last bit, so the timed contents are checked too. The
 * right result is the operation's state.
 *
 * Counted bytes, with v the size of a key: sort 2 n v, each key read and written once, the minimum
 * for any sort (a radix sort moves this in each of its passes); histogram 4 n + 4 bins.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "bench/ops/work.h"
#include "formats/generate/random.h"

enum { STREAM_KEYS = 0x6b6579, STREAM_BINS = 0x62696e, BINS = 256 };

/* ---------------------------------------------------------------- sort */

static spmv_status setup_sort(struct work *work)
{
    struct peer_problem *const p = &work->problem;
    const int64_t n = work->operand->n, bytes = n * (int64_t)spmv_type_size(work->type);
    void *const keys = work_values(work, n, STREAM_KEYS, false);
    void *const expected = work->state = work_keep(work, malloc((size_t)bytes + 1));
    if (keys == NULL || expected == NULL) {
        free(keys);
        return work_out_of_memory(work, "the keys", 2 * bytes);
    }
    p->n = n;
    spmv_status st = work_array(work, keys, bytes, &p->in);
    if (st == SPMV_OK)
        st = work_array(work, NULL, bytes, (const void **)&p->out);
    if (st == SPMV_OK) {
        st = spmv_sort_by_key(work->checker, work->type, 0, 8 * (int)spmv_type_size(work->type), keys, NULL, 0,
                              expected, NULL, n);
        if (st != SPMV_OK)
            work_fail(work, work->checker, st);
    }
    free(keys);
    work->result = p->out;
    work->result_bytes = bytes;
    work->model_bytes = 2 * (double)bytes;
    return st;
}

/* Opens a rung by its name. A call with n = 0 reports whether the rung exists. */
static spmv_status open_sort(struct work *work, const char *name, struct method *method)
{
    const spmv_status st = spmv_sort_rung(work->ctx, name, work->type, 0, 1, NULL, NULL, 0, NULL, NULL, 0);
    return work_open_rung(work, name, st, method);
}

static int run_sort(void *state)
{
    const struct method *const method = state;
    const struct peer_problem *const p = &method->work->problem;
    const spmv_status st = spmv_sort_rung(method->work->ctx, method->state, p->type, 0,
                                          8 * (int)spmv_type_size(p->type), p->in, NULL, 0, p->out, NULL, p->n);
    return st == SPMV_OK ? 0 : -1;
}

static spmv_status check_sort(struct work *work, const void *host_result, struct check *check)
{
    return work_check_cells(work, host_result, work->state, (int64_t)spmv_type_size(work->type), check);
}

/* ----------------------------------------------------------- histogram */

static spmv_status setup_histogram(struct work *work)
{
    struct peer_problem *const p = &work->problem;
    const int64_t n = work->operand->n;
    int32_t *const index = malloc((size_t)n * sizeof *index + 1), *const counts = calloc(BINS, sizeof *counts);
    work->state = work_keep(work, counts);
    if (index == NULL || counts == NULL) {
        free(index);
        return work_out_of_memory(work, "the indices", n * 4);
    }
#pragma omp parallel for num_threads(spmv_context_threads(work->checker)) schedule(static)
    for (int64_t i = 0; i < n; i++)
        index[i] = (int32_t)random_below(random_bits(work->operand->seed, STREAM_BINS, (uint64_t)i), BINS);
    p->n = n;
    p->bins = BINS;
    spmv_status st = work_array(work, index, n * 4, (const void **)&p->index);
    if (st == SPMV_OK)
        st = work_array(work, NULL, BINS * 4, (const void **)&p->out);
    if (st == SPMV_OK) {
        st = spmv_histogram(work->checker, SPMV_I32, index, counts, BINS, NULL, n);
        if (st != SPMV_OK)
            work_fail(work, work->checker, st);
    }
    free(index);
    work->result = p->out;
    work->result_bytes = BINS * 4;
    work->model_bytes = 4 * (double)n + 4 * (double)BINS;
    return st;
}

static spmv_status open_histogram(struct work *work, const char *name, struct method *method)
{
    const spmv_status st = spmv_histogram_rung(work->ctx, name, SPMV_I32, NULL, NULL, 0, NULL, 0);
    return work_open_rung(work, name, st, method);
}

static int run_histogram(void *state)
{
    const struct method *const method = state;
    const struct peer_problem *const p = &method->work->problem;
    return spmv_histogram_rung(method->work->ctx, method->state, SPMV_I32, p->index, p->out, p->bins, NULL, p->n) ==
                   SPMV_OK
               ? 0
               : -1;
}

static spmv_status check_histogram(struct work *work, const void *host_result, struct check *check)
{
    return work_check_cells(work, host_result, work->state, 4, check);
}

#define OPERATION(row, text, a_kind, peer)                                                                             \
    const struct operation operation_##row = {                                                                         \
        .name = #row,                                                                                                  \
        .formula = (text),                                                                                             \
        .kind = (a_kind),                                                                                              \
        .peer_op = (peer),                                                                                             \
        .methods = {spmv_##row##_rung_name, open_##row, run_##row, NULL, NULL},                                        \
        .setup = setup_##row,                                                                                          \
        .check = check_##row,                                                                                          \
    };
OPERATION(sort, "out = in, ascending", "stable", PEER_SORT)
OPERATION(histogram, "out[b] = number of i with index[i] == b", NULL, PEER_HISTOGRAM)
