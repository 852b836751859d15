/* The table of methods: all ways to compute a product, by backend. "auto" takes the first method of
 * the backend that meets the plan's requirements.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/choice.h"
#include "product/plan_internal.h"

static const struct spmv_method methods[] = {
    {.backend = SPMV_BACKEND_REF,
     .name = "definition",
     .why = "the definition: one row after another, summed in long double",
     .can = METHOD_VECTORS | METHOD_MIXED | METHOD_COMPLEX | METHOD_EPILOGUE | METHOD_RANKS,
     .apply = definition_ref_apply},
    {.backend = SPMV_BACKEND_REF,
     .name = "staged",
     .prepare = staged_prepare,
     .apply = staged_apply,
     .release = staged_release},
    {.backend = SPMV_BACKEND_OMP,
     .name = "tiles",
     .why = "tiles of equal work (rows + nonzeros) keep all threads busy whatever the row lengths",
     .can = METHOD_VECTORS | METHOD_MIXED | METHOD_COMPLEX | METHOD_EPILOGUE | METHOD_RANKS,
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
     .name = "slices",
     .why = "neighbouring rows have the same offsets, which slices of rows store once",
     .can = METHOD_MIXED | METHOD_TABLE | METHOD_EPILOGUE | METHOD_RANKS | METHOD_PARTS,
     .prepare = slices_cuda_prepare,
     .update = slices_cuda_update,
     .apply = slices_cuda_apply,
     .dot_parts = slices_cuda_parts,
     .release = slices_cuda_release},
    {.backend = SPMV_BACKEND_CUDA,
     .name = "tiles",
     .why = "tiles of whole rows keep all threads busy whatever the row lengths, in one launch",
     .can = METHOD_MIXED | METHOD_COMPLEX | METHOD_TABLE | METHOD_EPILOGUE,
     .prepare = tiles_cuda_prepare,
     .update = tiles_cuda_update,
     .apply = tiles_cuda_apply,
     .dot_parts = tiles_cuda_parts,
     .release = tiles_cuda_release},
    {.backend = SPMV_BACKEND_CUDA,
     .name = "long",
     .why = "rows have hundreds of entries: warps sum units of equal work in registers",
     .can = METHOD_MIXED,
     .prepare = long_cuda_prepare,
     .apply = long_cuda_apply,
     .release = long_cuda_release},
    {.backend = SPMV_BACKEND_CUDA,
     .name = "groups",
     .why = "neighbouring rows have equal columns, which groups of rows read once",
     .can = METHOD_MIXED | METHOD_EPILOGUE,
     .prepare = groups_cuda_prepare,
     .apply = groups_cuda_apply,
     .dot_parts = groups_cuda_parts,
     .release = groups_cuda_release},
    {.backend = SPMV_BACKEND_CUDA,
     .name = "padded",
     .why = "neighbouring rows have nearly the same length, and their columns are near to each other",
     .can = METHOD_MIXED | METHOD_EPILOGUE,
     .prepare = padded_cuda_prepare,
     .update = padded_cuda_update,
     .apply = padded_cuda_apply,
     .dot_parts = padded_cuda_parts,
     .release = padded_cuda_release},
    {.backend = SPMV_BACKEND_CUDA,
     .name = "vector",
     .why = "a warp sums each row, whatever the rank that has the row",
     .can = METHOD_MIXED | METHOD_COMPLEX | METHOD_RANKS,
     .apply = vector_cuda_apply},
    {.backend = SPMV_BACKEND_CUDA,
     .name = "scalar",
     .can = METHOD_MIXED | METHOD_COMPLEX | METHOD_RANKS,
     .apply = scalar_cuda_apply},
    {.backend = SPMV_BACKEND_CUDA,
     .name = "fused",
     .can = METHOD_MIXED | METHOD_COMPLEX,
     .prepare = fused_cuda_prepare,
     .apply = fused_cuda_apply,
     .release = fused_cuda_release},
    {.backend = SPMV_BACKEND_CUDA,
     .name = "columns",
     .why = "lanes work on adjacent columns of x, so the matrix is read once for all of them",
     .can = METHOD_VECTORS | METHOD_MIXED | METHOD_COMPLEX,
     .prepare = columns_cuda_prepare,
     .apply = columns_cuda_apply,
     .column_parts = columns_cuda_parts,
     .release = columns_cuda_release},
    {.backend = SPMV_BACKEND_CUDA,
     .name = "blocked",
     .why = "gathers from all over an x larger than the last-level cache; blocks of columns keep them in shared memory",
     .can = METHOD_MIXED | METHOD_COMPLEX,
     .prepare = blocked_cuda_prepare,
     .update = blocked_cuda_update,
     .apply = blocked_cuda_apply,
     .release = blocked_cuda_release},
    {.backend = SPMV_BACKEND_CUDA,
     .name = "staged",
     .prepare = staged_prepare,
     .apply = staged_apply,
     .release = staged_release},
#endif
};
enum { METHODS = sizeof methods / sizeof methods[0] };

/* Method number `index` of the backend, or NULL. */
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

/* The backend's methods that have these capabilities. */
static struct names methods_with(spmv_backend backend, unsigned needs)
{
    struct names names = {.on = spmv_backend_name(backend)};
    for (int m = 0; m < METHODS; m++)
        if (methods[m].backend == backend && (needs & ~methods[m].can) == 0)
            names_add_row(&names, methods[m].name, &methods[m]);
    return names;
}

unsigned plan_needs(const spmv_plan *plan)
{
    const bool strided = plan->x_stride != 1 || plan->y_stride != 1;
    return (plan->vectors != 1 || strided ? METHOD_VECTORS : 0) | (plan->a.type != plan->type ? METHOD_MIXED : 0) |
           (type_is_complex(plan->type) ? METHOD_COMPLEX : 0) | (plan->ranks != NULL ? METHOD_RANKS : 0);
}

spmv_status method_choose(spmv_plan *plan, const char *name)
{
    const spmv_backend backend = plan->ctx->backend->id;
    const unsigned needs = plan_needs(plan);
    const struct names suitable = methods_with(backend, needs);
    struct names names = {.on = spmv_backend_name(backend)};
    const void *row = NULL;
    names_add_row(&names, "auto", suitable.count > 0 ? suitable.row[0] : NULL);
    for (int m = 0; m < METHODS; m++)
        if (methods[m].backend == backend)
            names_add_row(&names, methods[m].name, &methods[m]);
    const spmv_status st = choice_take(plan->ctx, SPMV_ERROR_METHOD, "spmv_plan_create", "method", &names, name, &row);
    if (st != SPMV_OK)
        return st;
    const bool named = !choice_is_auto(name);
    const struct spmv_method *const method = row;
    const unsigned lacks = method != NULL ? needs & ~method->can : needs;
    if (method == NULL || lacks != 0) {
        char list[256];
        names_join(&suitable, list, sizeof list);
        return context_fail(plan->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_plan_create: method %s on backend %s has no products %s; there are: %s",
                            named ? name : "auto", spmv_backend_name(backend),
                            lacks & METHOD_VECTORS ? "of several vectors or with strides"
                            : lacks & METHOD_MIXED ? "with values of another type than the sums"
                            : lacks & METHOD_RANKS ? "of several ranks"
                                                   : "in complex types",
                            list);
    }
    plan->method = method;
    plan->named = named;
    snprintf(plan->why, sizeof plan->why, "%s", named ? CHOICE_NAMED : method->why);
    return SPMV_OK;
}

spmv_status method_instead(spmv_plan *plan, const char *name, const char *reason)
{
    const struct spmv_method *const method = method_named(plan->ctx->backend->id, name);
    if (plan->named)
        snprintf(plan->why, sizeof plan->why, "%s instead of %s: %s", name, plan->method->name, reason);
    else
        snprintf(plan->why, sizeof plan->why, "%s", method->why);
    plan_release_state(plan);
    plan->method = method;
    return method->prepare(plan);
}
