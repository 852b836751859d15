/* The choice of a product's method, and the tables of ref and omp. The table of cuda, with the reasons to
 * take or decline each method, is cuda/choose.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/choice.h"
#include "product/plan_internal.h"

static const struct spmv_method ref_methods[] = {
    {.name = "definition",
     .why = "the definition: one row after another, summed in long double",
     .can = METHOD_VECTORS | METHOD_MIXED | METHOD_COMPLEX | METHOD_EPILOGUE | METHOD_RANKS | METHOD_HALF,
     .apply = definition_ref_apply},
    {.name = "staged", .prepare = staged_prepare, .apply = staged_apply, .release = staged_release},
    {.name = NULL}};

static const struct spmv_method omp_methods[] = {
    {.name = "tiles",
     .why = "tiles of equal work (rows + nonzeros) keep all threads busy whatever the row lengths",
     .can = METHOD_VECTORS | METHOD_MIXED | METHOD_COMPLEX | METHOD_EPILOGUE | METHOD_RANKS | METHOD_HALF,
     .prepare = tiles_omp_prepare,
     .update = tiles_omp_update,
     .apply = tiles_omp_apply,
     .release = tiles_omp_release},
    {.name = "staged", .prepare = staged_prepare, .apply = staged_apply, .release = staged_release},
    {.name = NULL}};

/* The table of a backend; NULL if this build has none. */
static const struct spmv_method *methods_of(spmv_backend backend)
{
    static const struct spmv_method *const methods[] = {
        [SPMV_BACKEND_REF] = ref_methods, [SPMV_BACKEND_OMP] = omp_methods, [SPMV_BACKEND_CUDA] = cuda_methods};
    return backend_find(backend) != NULL ? methods[backend] : NULL;
}

const char *spmv_method_name(spmv_backend backend, int index)
{
    return names_at(methods_of(backend), sizeof(struct spmv_method), index);
}

const struct spmv_method *method_named(spmv_backend backend, const char *name)
{
    const struct spmv_method *m = methods_of(backend);
    while (m->name != NULL && strcmp(m->name, name) != 0)
        m++;
    return m->name != NULL ? m : NULL;
}

/* The backend's methods that have these capabilities. */
static struct names methods_with(spmv_backend backend, unsigned needs)
{
    struct names names = {.on = spmv_backend_name(backend)};
    for (const struct spmv_method *m = methods_of(backend); m->name != NULL; m++)
        if ((needs & ~m->can) == 0)
            names_add_row(&names, m->name, m);
    return names;
}

unsigned plan_needs(const spmv_plan *plan)
{
    const bool strided = plan->x_stride != 1 || plan->y_stride != 1;
    return (plan->vectors != 1 || strided ? METHOD_VECTORS : 0) | (plan->a.type != plan->type ? METHOD_MIXED : 0) |
           (type_is_complex(plan->type) ? METHOD_COMPLEX : 0) | (type_is_half(plan->type) ? METHOD_HALF : 0) |
           (plan->ranks != NULL ? METHOD_RANKS : 0);
}

static const char *lacking(unsigned needs)
{
    return needs & METHOD_VECTORS ? "no products of several vectors or with strides"
           : needs & METHOD_MIXED ? "no products with values of another type than the sums"
           : needs & METHOD_RANKS ? "no products of several ranks"
           : needs & METHOD_HALF  ? "no products in 16-bit types"
                                  : "no products in complex types";
}

/* Why a plan that chooses its method passes this one over before it prepares it; NULL: it does not. */
static const char *passes(const struct spmv_method *m, const struct facts *facts, unsigned needs)
{
    return (needs & ~m->can) != 0 ? lacking(needs & ~m->can)
           : m->why == NULL       ? "by name only"
           : m->suits != NULL     ? m->suits(facts)
                                  : NULL;
}

spmv_status method_choose(spmv_plan *plan, const char *name)
{
    const spmv_backend backend = plan->ctx->backend->id;
    const unsigned needs = plan_needs(plan);
    const struct names suitable = methods_with(backend, needs);
    struct names names = {.on = spmv_backend_name(backend)};
    const void *row = NULL;
    names_add_row(&names, "auto", suitable.count > 0 ? suitable.row[0] : NULL);
    for (const struct spmv_method *m = methods_of(backend); m->name != NULL; m++)
        names_add_row(&names, m->name, m);
    const spmv_status st = choice_take(plan->ctx, SPMV_ERROR_METHOD, "spmv_plan_create", "method", &names, name, &row);
    if (st != SPMV_OK)
        return st;
    const struct spmv_method *const method = row;
    const unsigned lacks = method != NULL ? needs & ~method->can : needs;
    plan->named = !choice_is_auto(name);
    if (method == NULL || lacks != 0) {
        char list[256];
        names_join(&suitable, list, sizeof list);
        return context_fail(plan->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_plan_create: method %s on backend %s has %s; there are: %s",
                            plan->named ? name : "auto", spmv_backend_name(backend), lacking(lacks), list);
    }
    plan->method = method;
    return SPMV_OK;
}

/* Prepares the plan with a method. plan->declined: why it declined; NULL: it did not. */
static spmv_status prepare_with(spmv_plan *plan, const struct spmv_method *method)
{
    const int64_t before = plan->bytes - plan->prepared_bytes;
    plan->method = method;
    plan->declined = method->suits != NULL ? method->suits(&plan->facts) : NULL;
    if (plan->declined != NULL || method->prepare == NULL)
        return SPMV_OK;
    const spmv_status st = method->prepare(plan);
    if (st == SPMV_OK && plan->declined != NULL) {
        plan_release_state(plan);
        plan->bytes = before + plan->prepared_bytes;
    }
    return st;
}

/* For a plan whose method is fixed: by its name, or because all ranks take the same. */
static spmv_status prepare_fixed(spmv_plan *plan)
{
    const struct spmv_method *const method = plan->method;
    snprintf(plan->why, sizeof plan->why, "%s", plan->named ? CHOICE_NAMED : method->why);
    const spmv_status st = prepare_with(plan, method);
    if (st != SPMV_OK || plan->declined == NULL)
        return st;
    if (plan->ranks != NULL) /* another method would have other bits */
        return context_fail(plan->ctx, SPMV_ERROR_MEMORY, "method %s of several ranks: %s; take method vector",
                            method->name, plan->declined);
    const char *const instead = plan_needs(plan) & METHOD_VECTORS ? "columns" : "tiles";
    snprintf(plan->why, sizeof plan->why, "%s instead of %s: %s", instead, method->name, plan->declined);
    return prepare_with(plan, method_named(plan->ctx->backend->id, instead));
}

/* For a plan that chooses its method: the first one of the table that does not decline. */
static spmv_status prepare_first(spmv_plan *plan)
{
    const struct spmv_method *const methods = methods_of(plan->ctx->backend->id);
    const unsigned needs = plan_needs(plan);
    for (int m = 0; methods[m].name != NULL; m++) {
        plan->passed[m] = passes(&methods[m], &plan->facts, needs);
        if (plan->passed[m] != NULL)
            continue;
        snprintf(plan->why, sizeof plan->why, "%s", methods[m].why); /* prepare may add to it */
        const spmv_status st = prepare_with(plan, &methods[m]);
        if (st != SPMV_OK || plan->declined == NULL)
            return st;
        plan->passed[m] = plan->declined;
    }
    return context_fail(plan->ctx, SPMV_ERROR_UNSUPPORTED, "spmv_plan_create: every method declined");
}

spmv_status method_prepare(spmv_plan *plan)
{
    if (context_on_device(plan->ctx))
        plan_find_facts_cuda(plan);
    return plan->named || plan->ranks != NULL ? prepare_fixed(plan) : prepare_first(plan);
}

spmv_status method_of_facts(spmv_backend backend, unsigned needs, struct facts *facts, method_count count, void *user,
                            const struct spmv_method **method)
{
    const struct spmv_method *m = methods_of(backend);
    for (; m->name != NULL; m++) {
        if (passes(m, facts, needs) != NULL)
            continue;
        const spmv_status st = m->count != NULL ? count(user, m, facts) : SPMV_OK;
        if (st != SPMV_OK)
            return st;
        if (m->pays == NULL || m->pays(facts) == NULL)
            break;
    }
    *method = m->name != NULL ? m : NULL;
    return SPMV_OK;
}

const char *spmv_plan_passed_over(const spmv_plan *plan, int index, const char **reason)
{
    const struct spmv_method *m = plan != NULL ? methods_of(plan->ctx->backend->id) : NULL;
    for (int row = 0; m != NULL && m != plan->method && index >= 0; m++, row++)
        if (plan->passed[row] != NULL && index-- == 0) {
            if (reason != NULL)
                *reason = plan->passed[row];
            return m->name;
        }
    return NULL;
}
