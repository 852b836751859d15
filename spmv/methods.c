/* The table of methods: every way to compute a product, by backend, and which one a plan takes by itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "plan_internal.h"

/* For a method that suits every matrix of its backend. */
static double no_cost(double rows, double nnz, double longest)
{
    (void)rows;
    (void)nnz;
    (void)longest;
    return 0;
}

static const struct spmv_method methods[] = {
    {.backend = SPMV_BACKEND_REF,
     .name = "definition",
     .why = "the definition, a row after the other, summed in long double",
     .cost = no_cost,
     .apply = definition_ref_apply},
    {.backend = SPMV_BACKEND_REF,
     .name = "staged",
     .prepare = staged_prepare,
     .apply = staged_apply,
     .release = staged_release},
    {.backend = SPMV_BACKEND_OMP,
     .name = "tiles",
     .why = "tiles of equal work (rows + nonzeros) keep all threads busy whatever the row lengths",
     .cost = no_cost,
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
     .cost = no_cost,
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

spmv_status row_lengths(spmv_context *ctx, const spmv_csr *a, void *lengths)
{
    const int64_t size = a->row_ptr_bits / 8;
    const spmv_type type = size == 8 ? SPMV_I64 : SPMV_I32;
    const spmv_status st = spmv_map(ctx, SPMV_MAP_NEG, type, a->row_ptr, lengths, a->rows);
    return st != SPMV_OK
               ? st
               : spmv_map_binary(ctx, SPMV_ADD, type, (const char *)a->row_ptr + size, lengths, lengths, a->rows);
}

/* The longest row, by the primitives, wherever the offsets lie. */
static spmv_status longest_row(spmv_plan *plan, int64_t *longest)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *a = &plan->a;
    const int64_t size = a->row_ptr_bits / 8;
    const spmv_type type = size == 8 ? SPMV_I64 : SPMV_I32;
    void *length = NULL;
    union {
        int32_t narrow;
        int64_t wide;
    } most;
    *longest = 0;
    if (a->rows == 0)
        return SPMV_OK;
    TRY(spmv_alloc(plan->ctx, (a->rows + 1) * size, &length));
    void *result = (char *)length + a->rows * size;
    TRY(row_lengths(plan->ctx, a, length));
    TRY(spmv_reduce(plan->ctx, SPMV_MAX, type, length, result, a->rows));
    TRY(spmv_download(plan->ctx, result, &most, size));
    *longest = size == 8 ? most.wide : most.narrow;
done:
    spmv_free(plan->ctx, length);
    return st;
}

bool method_known(spmv_backend backend, const char *name)
{
    return name == NULL || strcmp(name, "auto") == 0 || method_named(backend, name) != NULL;
}

/* The cheapest method of the backend for these sizes; *choices: how many there were to choose from. */
static const struct spmv_method *method_cheapest(spmv_backend backend, double rows, double nnz, double longest,
                                                 int *choices)
{
    const struct spmv_method *best = NULL, *m;
    *choices = 0;
    for (int i = 0; (m = method_at(backend, i)) != NULL; i++) {
        if (m->cost == NULL)
            continue;
        ++*choices;
        if (best == NULL || m->cost(rows, nnz, longest) < best->cost(rows, nnz, longest))
            best = m;
    }
    return best;
}

spmv_status method_choose(spmv_plan *plan, const char *name)
{
    const spmv_backend backend = plan->ctx->backend->id;
    const double rows = (double)max_i64(plan->a.rows, 1), nnz = (double)plan->a.nnz;
    int64_t longest = 0;
    int choices = 0;
    if (name != NULL && strcmp(name, "auto") != 0) {
        plan->method = method_named(backend, name);
        snprintf(plan->why, sizeof plan->why, "asked for by name");
        return SPMV_OK;
    }
    plan->method = method_cheapest(backend, rows, nnz, 0, &choices);
    if (choices == 1) { /* no need to look at the rows */
        snprintf(plan->why, sizeof plan->why, "%s", plan->method->why);
        return SPMV_OK;
    }
    const spmv_status st = longest_row(plan, &longest);
    if (st != SPMV_OK) {
        plan->method = NULL;
        return st;
    }
    plan->method = method_cheapest(backend, rows, nnz, (double)longest, &choices);
    snprintf(plan->why, sizeof plan->why, "rows of %.3g entries on average, %lld at most: %s", nnz / rows,
             (long long)longest, plan->method->why);
    return SPMV_OK;
}

void method_list(spmv_backend backend, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; spmv_method_name(backend, i) != NULL && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", spmv_method_name(backend, i));
}
