/* Choices by name: see choice.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/choice.h"

#include <stdio.h>

#include "core/backend.h"

spmv_status choice_take(spmv_context *ctx, spmv_status status, const char *caller, const char *what,
                        const struct names *names, const char *name, const void **row)
{
    char unknown[768];
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    const char *const word = name != NULL ? name : "auto";
    const int at = names_find(names, word, strlen(word));
    if (at < 0) {
        names_unknown(names, what, word, strlen(word), NULL, unknown, sizeof unknown);
        return context_fail(ctx, status, "%s: %s", caller, unknown);
    }
    *row = names->row[at];
    return SPMV_OK;
}

spmv_status choice_take_rung(spmv_context *ctx, const char *caller, const void *rows, size_t size, const char *name,
                             const void **row)
{
    struct names rungs = {.count = 0};
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    rungs.on = spmv_backend_name(ctx->backend->id);
    names_add(&rungs, "auto");
    names_add_table(&rungs, rows, size);
    rungs.row[0] = rungs.row[rungs.count - 1];
    return choice_take(ctx, SPMV_ERROR_METHOD, caller, "rung", &rungs, name, row);
}

/* Writes a fact as snprintf does. */
static int write_fact(const struct choice_fact *fact, char *text, size_t size)
{
    if (fact->text != NULL)
        return snprintf(text, size, "%s", fact->text);
    return fact->digits == 0 ? snprintf(text, size, "%.0f", fact->number)
                             : snprintf(text, size, "%.*g", fact->digits, fact->number);
}

void choice_reason(const char *reason, const struct choice_fact *facts, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    while (*reason != '\0' && used < size) {
        const size_t plain = strcspn(reason, "{"), name = strcspn(reason + plain, "}");
        used += (size_t)snprintf(text + used, size - used, "%.*s", (int)plain, reason);
        reason += plain;
        if (*reason == '\0' || used >= size)
            break;
        const struct choice_fact *fact = facts;
        while (fact->name != NULL && (strlen(fact->name) != name - 1 || memcmp(fact->name, reason + 1, name - 1) != 0))
            fact++;
        if (fact->name != NULL)
            used += (size_t)write_fact(fact, text + used, size - used);
        reason += name + 1;
    }
}
