/* Lists of rungs by name: see rungs.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/rungs.h"

#include <stdio.h>
#include <string.h>

/* The struct at this place, which begins with its name. */
static const void *rung_at(struct rung_list list, int index)
{
    return (const char *)list.rungs + (size_t)index * list.size;
}

static const char *name_at(struct rung_list list, int index)
{
    return *(const char *const *)rung_at(list, index);
}

static int count(struct rung_list list)
{
    int n = 0;
    while (list.rungs != NULL && name_at(list, n) != NULL)
        n++;
    return n;
}

bool rung_is_auto(const char *name)
{
    return name == NULL || strcmp(name, "auto") == 0;
}

const char *rung_name_at(struct rung_list list, int index)
{
    return index >= 0 && index < count(list) ? name_at(list, index) : NULL;
}

const void *rung_last(struct rung_list list)
{
    return rung_at(list, count(list) - 1);
}

spmv_status rung_find(spmv_context *ctx, const char *caller, struct rung_list list, const char *name, size_t length,
                      const void **rung)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    char known[512] = "auto";
    size_t used = strlen(known);
    for (int i = 0; i < count(list); i++) {
        const char *const one = name_at(list, i);
        if (strlen(one) == length && memcmp(one, name, length) == 0) {
            *rung = rung_at(list, i);
            return SPMV_OK;
        }
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, ", %s", one);
    }
    return context_fail(ctx, SPMV_ERROR_METHOD, "%s: unknown rung \"%s\" on %s; there are: %s", caller, name,
                        spmv_backend_name(ctx->backend->id), known);
}
