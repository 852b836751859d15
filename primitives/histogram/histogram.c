/* histogram: the public front.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/choice.h"
#include "primitives/histogram/histogram_request.h"

static spmv_status check(spmv_context *ctx, spmv_type count_type, const struct histogram_request *r)
{
    if (count_type != SPMV_I32 && count_type != SPMV_I64)
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_histogram: counts of type %s; supported: i32 and i64",
                            spmv_type_name(count_type));
    if (r->n < 0 || r->bins < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_histogram: %lld elements in %lld bins: sizes must not be negative", (long long)r->n,
                            (long long)r->bins);
    if ((r->n > 0 && r->index == NULL) || (r->bins > 0 && r->counts == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_histogram: %s is NULL though there are %lld",
                            r->n > 0 && r->index == NULL ? "index" : "counts",
                            (long long)(r->n > 0 && r->index == NULL ? r->n : r->bins));
    return SPMV_OK;
}

/* Finds the rung of that name; NULL or "auto": the last of the backend's list. */
static spmv_status find_rung(spmv_context *ctx, const char *name, const struct histogram_rung **rung)
{
    const struct histogram_rung *const rungs = ctx->backend->histogram_rungs;
    const void *found = NULL;
    const spmv_status st = choice_take_rung(ctx, "spmv_histogram_rung", rungs, sizeof *rungs, name, &found);
    *rung = found;
    return st;
}

spmv_status spmv_histogram_rung(spmv_context *ctx, const char *rung, spmv_type count_type, const int32_t *index,
                                void *counts, int64_t bins, void *left_out, int64_t n)
{
    const struct histogram_request r = {.count_bits = 8 * (int)spmv_type_size(count_type),
                                        .index = index,
                                        .counts = counts,
                                        .bins = bins,
                                        .left_out = left_out,
                                        .n = n};
    const int64_t zero = 0; /* valid for both widths */
    const struct histogram_rung *chosen = NULL;
    void *room = NULL;
    spmv_status st = SPMV_OK;
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    TRY(find_rung(ctx, rung, &chosen));
    TRY(check(ctx, count_type, &r));
    if (n > 0)
        TRY(context_workspace(ctx, chosen->scratch(&r), &room));
    if (bins > 0)
        TRY(ctx->backend->map_index(ctx, count_type, &zero, NULL, counts, bins));
    if (left_out != NULL)
        TRY(ctx->backend->map_index(ctx, count_type, &zero, NULL, left_out, 1));
    if (n > 0)
        TRY(chosen->run(ctx, &r, room));
done:
    return st;
}

spmv_status spmv_histogram(spmv_context *ctx, spmv_type count_type, const int32_t *index, void *counts, int64_t bins,
                           void *left_out, int64_t n)
{
    return spmv_histogram_rung(ctx, NULL, count_type, index, counts, bins, left_out, n);
}

const char *spmv_histogram_rung_name(spmv_backend backend, int index)
{
    const struct backend_table *const table = backend_find(backend);
    return table != NULL ? names_at(table->histogram_rungs, sizeof *table->histogram_rungs, index) : NULL;
}
