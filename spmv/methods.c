/* The table of methods: every way to compute a product, by backend; the first of a backend is its default.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "plan_internal.h"

static const struct spmv_method methods[] = {
    {.backend = SPMV_BACKEND_REF,
     .name = "definition",
     .why = "the definition, a row after the other, summed in long double",
     .apply = definition_ref_apply},
    {.backend = SPMV_BACKEND_REF,
     .name = "staged",
     .prepare = staged_prepare,
     .apply = staged_apply,
     .release = staged_release},
    {.backend = SPMV_BACKEND_OMP,
     .name = "tiles",
     .why = "tiles of equal work (rows + nonzeros) keep all threads busy whatever the row lengths",
     .prepare = tiles_omp_prepare,
     .apply = tiles_omp_apply,
     .release = tiles_omp_release},
    {.backend = SPMV_BACKEND_OMP,
     .name = "staged",
     .prepare = staged_prepare,
     .apply = staged_apply,
     .release = staged_release},
};
enum { METHODS = sizeof methods / sizeof methods[0] };

/* Method number index of the backend, or NULL. */
static const struct spmv_method *method_at(spmv_backend backend, int index)
{
    for (int m = 0; m < METHODS; m++)
        if (methods[m].backend == backend && index-- == 0)
            return &methods[m];
    return NULL;
}

const char *spmv_method_name(spmv_backend backend, int index)
{
    const struct spmv_method *method = index < 0 ? NULL : method_at(backend, index);
    return method != NULL ? method->name : NULL;
}

const struct spmv_method *method_find(const spmv_context *ctx, const spmv_csr *a, const char *name)
{
    (void)a; /* each backend has one method that suits every matrix so far */
    if (name == NULL || strcmp(name, "auto") == 0)
        return method_at(ctx->backend->id, 0);
    for (int m = 0; m < METHODS; m++)
        if (methods[m].backend == ctx->backend->id && strcmp(methods[m].name, name) == 0)
            return &methods[m];
    return NULL;
}

void method_list(spmv_backend backend, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; spmv_method_name(backend, i) != NULL && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", spmv_method_name(backend, i));
}
