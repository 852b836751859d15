/* sort: the public front. Checks the arguments once, gets the scratch memory, and first copies the
 * input if the rung cannot sort in place.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/choice.h"
#include "primitives/sort/sort_request.h"

static spmv_status check(spmv_context *ctx, spmv_type key_type, const struct sort_request *r)
{
    if (key_type != SPMV_I32 && key_type != SPMV_I64 && !type_is_real(key_type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_sort_by_key: keys of type %s; supported: i32, i64, f32 and f64",
                            spmv_type_name(key_type));
    if (r->begin_bit < 0 || r->end_bit > 8 * r->key_bytes || r->begin_bit > r->end_bit)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_sort_by_key: invalid range of bits %d to %d for keys of %d bits", r->begin_bit,
                            r->end_bit, 8 * r->key_bytes);
    if (r->n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_sort_by_key: n = %lld is negative", (long long)r->n);
    if (r->value_bytes != 0 && r->value_bytes != 4 && r->value_bytes != 8)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_sort_by_key: values of %d bytes; supported: 4, 8 and 0 (none)", r->value_bytes);
    if (r->n > 0 && (r->in_keys == NULL || r->out_keys == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_sort_by_key: %s is NULL though n = %lld",
                            r->in_keys == NULL ? "in_keys" : "out_keys", (long long)r->n);
    if (r->n > 0 && r->value_bytes > 0 && (r->in_values == NULL || r->out_values == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_sort_by_key: %s is NULL though value_bytes = %d",
                            r->in_values == NULL ? "in_values" : "out_values", r->value_bytes);
    return SPMV_OK;
}

/* Finds the rung of that name; NULL or "auto": the last of the backend's list. */
static spmv_status find_rung(spmv_context *ctx, const char *name, const struct sort_rung **rung)
{
    const struct sort_rung *const rungs = ctx->backend->sort_rungs;
    const void *found = NULL;
    const spmv_status st = choice_take_rung(ctx, "spmv_sort_rung", rungs, sizeof *rungs, name, &found);
    *rung = found;
    return st;
}

static spmv_status copy(spmv_context *ctx, const void *from, void *to, int bytes, int64_t n)
{
    return bytes == 0 || from == to
               ? SPMV_OK
               : ctx->backend->map(ctx, SPMV_MAP_COPY, bytes == 4 ? SPMV_I32 : SPMV_I64, from, to, n);
}

/* Alignment of arrays in the context's memory. */
enum { ROOM_ALIGNMENT = 256 };

static int64_t room_for(int64_t elements, int bytes)
{
    return ceil_divide(elements * bytes, ROOM_ALIGNMENT) * ROOM_ALIGNMENT;
}

static spmv_status run(spmv_context *ctx, const struct sort_rung *rung, struct sort_request *r)
{
    const int passes = rung->digit_bits > 0 ? sort_passes(r, rung->digit_bits) : 1;
    const bool in_place = r->in_keys == r->out_keys || (r->value_bytes > 0 && r->in_values == r->out_values);
    const bool copied = in_place && passes % 2 == 1;
    if (r->n > INT64_MAX / 128)
        return context_fail(ctx, SPMV_ERROR_SIZE, "spmv_sort_by_key: n = %lld: the size in bytes exceeds 64 bits",
                            (long long)r->n);
    const int64_t spares = passes > 1 || copied ? r->n : 0;
    const int64_t keys = room_for(spares, r->key_bytes), values = room_for(spares, r->value_bytes);
    char *room = NULL;
    spmv_status st = SPMV_OK;
    TRY(context_workspace(ctx, keys + values + rung->scratch(r), (void **)&room));
    r->spare_keys = room;
    r->spare_values = room + keys;
    if (copied) {
        TRY(copy(ctx, r->in_keys, r->spare_keys, r->key_bytes, r->n));
        TRY(copy(ctx, r->in_values, r->spare_values, r->value_bytes, r->n));
        r->in_keys = r->spare_keys;
        r->in_values = r->spare_values;
    }
    TRY(rung->run(ctx, r, room + keys + values));
done:
    return st;
}

spmv_status spmv_sort_rung(spmv_context *ctx, const char *rung, spmv_type key_type, int begin_bit, int end_bit,
                           const void *in_keys, const void *in_values, int value_bytes, void *out_keys,
                           void *out_values, int64_t n)
{
    struct sort_request r = {.key_bytes = (int)spmv_type_size(key_type),
                             .value_bytes = value_bytes,
                             .real = type_is_real(key_type),
                             .begin_bit = begin_bit,
                             .end_bit = end_bit,
                             .in_keys = in_keys,
                             .in_values = in_values,
                             .out_keys = out_keys,
                             .out_values = out_values,
                             .n = n};
    const struct sort_rung *chosen = NULL;
    spmv_status st = SPMV_OK;
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    TRY(find_rung(ctx, rung, &chosen));
    TRY(check(ctx, key_type, &r));
    if (n > 1 && begin_bit < end_bit) {
        TRY(run(ctx, chosen, &r));
    } else if (n > 0) {
        TRY(copy(ctx, in_keys, out_keys, r.key_bytes, n));
        TRY(copy(ctx, in_values, out_values, value_bytes, n));
    }
done:
    return st;
}

spmv_status spmv_sort_by_key(spmv_context *ctx, spmv_type key_type, int begin_bit, int end_bit, const void *in_keys,
                             const void *in_values, int value_bytes, void *out_keys, void *out_values, int64_t n)
{
    return spmv_sort_rung(ctx, NULL, key_type, begin_bit, end_bit, in_keys, in_values, value_bytes, out_keys,
                          out_values, n);
}

const char *spmv_sort_rung_name(spmv_backend backend, int index)
{
    const struct backend_table *const table = backend_find(backend);
    return table != NULL ? names_at(table->sort_rungs, sizeof *table->sort_rungs, index) : NULL;
}
