/* Filters on the host: see filter.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/filter.h"

#include "core/loops/ops.h"
#include "core/runtime.h"

spmv_status filter_by_predicate(spmv_context *ctx, const char *caller, spmv_predicate predicate, int when,
                                spmv_type type, const void *host_scalar, struct filter *filter)
{
    if (!spmv_predicate_takes(predicate, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: predicate %s is not supported for type %s", caller,
                            spmv_predicate_name(predicate), spmv_type_name(type));
    if (host_scalar == NULL && predicate != SPMV_IS_NONZERO)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: the scalar of %s is NULL", caller,
                            spmv_predicate_name(predicate));
    *filter = (struct filter){.predicate = predicate, .when = when != 0};
    if (host_scalar != NULL)
        memcpy(&filter->scalar, host_scalar, spmv_type_size(type));
    return SPMV_OK;
}

#define TEMPLATE "core/loops/filter_typed.h"
#include "core/each/each_predicate.h"

typedef void flags_loop(const void *in, const void *scalar, bool when, int64_t begin, int64_t end, uint8_t *flags);
#define ENTRY(pair) flags_##pair
static flags_loop *const table[SPMV_PREDICATE_LIMIT][SPMV_TYPE_LIMIT] = PREDICATE_TABLE;

const uint8_t *filter_flags(const struct filter *filter, spmv_type type, const void *in, int64_t begin, int64_t end,
                            uint8_t *room)
{
    if (filter->mask != NULL)
        return filter->mask + begin;
    if (filter->bits != NULL) {
        for (int64_t i = begin; i < end; i++)
            room[i - begin] = flag_bit(filter->bits, i);
        return room;
    }
    table[filter->predicate][type](in, &filter->scalar, filter->when, begin, end, room);
    return room;
}
