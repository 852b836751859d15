/* The table of methods: every way to compute a product, by backend. A plan takes the backend's first by itself.
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
#ifdef SPMV_HAVE_CUDA
    {.backend = SPMV_BACKEND_CUDA,
     .name = "tiles",
     .why = "tiles of whole rows keep all threads busy whatever the row lengths, in one launch",
     .prepare = tiles_cuda_prepare,
     .apply = tiles_cuda_apply,
     .release = tiles_cuda_release},
    {.backend = SPMV_BACKEND_CUDA, .name = "vector", .apply = vector_cuda_apply},
    {.backend = SPMV_BACKEND_CUDA, .name = "scalar", .apply = scalar_cuda_apply},
    {.backend = SPMV_BACKEND_CUDA,
     .name = "staged",
     .prepare = staged_prepare,
     .apply = staged_apply,
     .release = staged_release},
#endif
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

static const struct spmv_method *method_named(spmv_backend backend, const char *name)
{
    for (int m = 0; m < METHODS; m++)
        if (methods[m].backend == backend && strcmp(methods[m].name, name) == 0)
            return &methods[m];
    return NULL;
}

bool method_known(spmv_backend backend, const char *name)
{
    return name == NULL || strcmp(name, "auto") == 0 || method_named(backend, name) != NULL;
}

void method_choose(spmv_plan *plan, const char *name)
{
    const spmv_backend backend = plan->ctx->backend->id;
    const bool named = name != NULL && strcmp(name, "auto") != 0;
    plan->method = named ? method_named(backend, name) : method_at(backend, 0);
    snprintf(plan->why, sizeof plan->why, "%s", named ? "asked for by name" : plan->method->why);
}

void method_list(spmv_backend backend, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; spmv_method_name(backend, i) != NULL && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", spmv_method_name(backend, i));
}
