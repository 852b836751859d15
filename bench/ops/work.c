/* Operations by name, and arrays that all of them need.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/ops/work.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/timing.h"
#include "core/choice.h"
#include "formats/generate/random.h"

#define DECLARE(name) extern const struct operation operation_##name;
OPERATION_LIST(DECLARE)
#undef DECLARE

#define ADDRESS(name) &operation_##name,
static const struct operation *const operations[] = {OPERATION_LIST(ADDRESS) NULL};
#undef ADDRESS
NAMES_HOLD(sizeof operations / sizeof operations[0]);

const struct operation *operation_at(int index)
{
    return index >= 0 && index < (int)(sizeof operations / sizeof operations[0]) ? operations[index] : NULL;
}

const struct operation *operation_find(const char *name)
{
    for (int i = 0; operation_at(i) != NULL; i++)
        if (strcmp(operation_at(i)->name, name) == 0)
            return operation_at(i);
    return NULL;
}

spmv_status work_fail(struct work *work, spmv_context *ctx, spmv_status status)
{
    const char *const sentence = spmv_last_error(ctx);
    snprintf(work->error, sizeof work->error, "%s", sentence[0] != '\0' ? sentence : spmv_status_text(status));
    return status;
}

spmv_status work_out_of_memory(struct work *work, const char *what, int64_t bytes)
{
    snprintf(work->error, sizeof work->error, "%s: no memory for %lld bytes", what, (long long)bytes);
    return SPMV_ERROR_MEMORY;
}

void *work_keep(struct work *work, void *host_memory)
{
    assert(work->host_array_count < WORK_ARRAYS_MOST);
    work->host_arrays[work->host_array_count++] = host_memory;
    return host_memory;
}

void *work_state(struct work *work, size_t bytes)
{
    work->state = work_keep(work, calloc(1, bytes));
    if (work->state == NULL)
        work_out_of_memory(work, "the state of an operation", (int64_t)bytes);
    return work->state;
}

spmv_status work_array(struct work *work, const void *host_from, int64_t bytes, const void **array)
{
    void *memory = NULL;
    /* an empty array still gets a non-NULL pointer */
    spmv_status st = spmv_alloc(work->ctx, bytes > 0 ? bytes : 1, &memory);
    *array = memory;
    assert(work->array_count < WORK_ARRAYS_MOST);
    work->arrays[work->array_count++] = memory;
    if (st == SPMV_OK && host_from != NULL && bytes > 0) {
        const double began = monotonic_seconds();
        st = spmv_upload(work->ctx, host_from, memory, bytes);
        if (st == SPMV_OK)
            st = spmv_synchronize(work->ctx);
        work->upload_seconds += monotonic_seconds() - began;
    }
    return st == SPMV_OK ? st : work_fail(work, work->ctx, st);
}

void work_fill_values(const struct work *work, int64_t n, uint64_t stream, bool exact, void *values)
{
    const spmv_type part = type_part(work->type);
    const int64_t numbers = n * type_parts(work->type);
    const uint64_t seed = work->operand->seed;
#pragma omp parallel for num_threads(spmv_context_threads(work->checker)) schedule(static)
    for (int64_t i = 0; i < numbers; i++) {
        const uint64_t bits = random_bits(seed, stream, (uint64_t)i);
        const double value = exact ? (double)random_below(bits, 3) - 1 : random_value(bits);
        real_set(part, values, i, value);
    }
}

void *work_values(const struct work *work, int64_t n, uint64_t stream, bool exact)
{
    void *const values = malloc((size_t)n * spmv_type_size(work->type) + 1);
    if (values != NULL)
        work_fill_values(work, n, stream, exact, values);
    return values;
}

spmv_status work_open(struct work *work)
{
    work->problem =
        (struct peer_problem){.op = work->operation->peer_op >= 0 ? (enum peer_op)work->operation->peer_op : PEER_SPMV,
                              .type = work->type,
                              .threads = spmv_context_threads(work->ctx),
                              .stream = work->device->stream};
    return work->operation->setup(work);
}

void work_close(struct work *work)
{
    if (work->operation->release != NULL)
        work->operation->release(work);
    while (work->array_count > 0)
        spmv_free(work->ctx, work->arrays[--work->array_count]);
    while (work->host_array_count > 0)
        free(work->host_arrays[--work->host_array_count]);
    work->problem = (struct peer_problem){0};
    work->kept = NULL;
    work->state = NULL;
    work->products = 0;
}

/* The status of a call of a function of the device. */
static spmv_status of_device(struct work *work, int failed, const char *why)
{
    if (failed == 0)
        return SPMV_OK;
    snprintf(work->error, sizeof work->error, "%s", why);
    return SPMV_ERROR_DEVICE;
}

/* All bits set is NaN in either type, and not a valid index. */
spmv_status work_poison(struct work *work)
{
    char why[WHY_SIZE] = "";
    if (!work->result_on_host)
        return of_device(work, work->device->functions->fill(work->device, 0xff, work->result, work->result_bytes, why),
                         why);
    memset(work->result, 0xff, (size_t)work->result_bytes);
    return SPMV_OK;
}

spmv_status work_keep_result(struct work *work)
{
    char why[WHY_SIZE] = "";
    if (work->result_on_host) {
        if (work->kept == NULL && (work->kept = work_keep(work, malloc((size_t)work->result_bytes + 1))) == NULL)
            return work_out_of_memory(work, "a copy of the result", work->result_bytes);
        memcpy((void *)work->kept, work->result, (size_t)work->result_bytes);
        return SPMV_OK;
    }
    const spmv_status st = work->kept == NULL ? work_array(work, NULL, work->result_bytes, &work->kept) : SPMV_OK;
    return st != SPMV_OK ? st
                         : of_device(work,
                                     work->device->functions->copy(work->device, work->result, (void *)work->kept,
                                                                   work->result_bytes, why),
                                     why);
}

spmv_status work_same_result(struct work *work, bool *same)
{
    char why[WHY_SIZE] = "";
    if (!work->result_on_host)
        return of_device(
            work, work->device->functions->same(work->device, work->result, work->kept, work->result_bytes, same, why),
            why);
    *same = memcmp(work->result, work->kept, (size_t)work->result_bytes) == 0;
    return SPMV_OK;
}

spmv_status work_download(struct work *work, void *host_result)
{
    if (work->result_on_host) {
        memcpy(host_result, work->result, (size_t)work->result_bytes);
        return SPMV_OK;
    }
    const spmv_status st =
        work->result_bytes > 0 ? spmv_download(work->ctx, work->result, host_result, work->result_bytes) : SPMV_OK;
    return st == SPMV_OK ? st : work_fail(work, work->ctx, st);
}

spmv_status work_check_cells(struct work *work, const void *host_result, const void *expected, int64_t cell_bytes,
                             struct check *check)
{
    const char *const got = host_result, *const right = expected;
    const int64_t cells = work->result_bytes / cell_bytes;
    int64_t i = 0;
    while (i < cells && memcmp(got + i * cell_bytes, right + i * cell_bytes, (size_t)cell_bytes) == 0)
        i++;
    check->ratio = i == cells ? 0 : INFINITY;
    check->at = i == cells ? 0 : i;
    if (i == cells)
        return SPMV_OK;
    snprintf(work->error, sizeof work->error, "%s: element %lld of the result is wrong", work->operation->name,
             (long long)i + 1);
    return SPMV_ERROR_CHECK;
}

const char *work_no_names(spmv_backend backend, int index)
{
    (void)backend;
    (void)index;
    return NULL;
}

spmv_status work_open_only(struct work *work, const char *name, struct method *method)
{
    if (!choice_is_auto(name)) {
        snprintf(work->error, sizeof work->error, "%s has no method %s; there is: auto", work->operation->name, name);
        return SPMV_ERROR_METHOD;
    }
    *method = (struct method){.name = "default", .why = "the only method", .work = work};
    return SPMV_OK;
}

spmv_status work_open_rung(struct work *work, const char *name, spmv_status st, struct method *method)
{
    if (st != SPMV_OK)
        return work_fail(work, work->ctx, st);
    const bool by_default = choice_is_auto(name);
    *method = (struct method){.name = by_default ? "default" : name,
                              .why = by_default ? "the backend's choice" : "named",
                              .work = work,
                              .state = by_default ? NULL : (void *)name};
    return SPMV_OK;
}
