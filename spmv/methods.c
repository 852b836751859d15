/* The table of methods: every way to compute a product, by backend, and which one a plan takes by itself.
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
    TRY(spmv_map(plan->ctx, SPMV_MAP_NEG, type, a->row_ptr, length, a->rows));
    TRY(spmv_map_binary(plan->ctx, SPMV_ADD, type, (const char *)a->row_ptr + size, length, length, a->rows));
    TRY(spmv_reduce(plan->ctx, SPMV_MAX, type, length, result, a->rows));
    TRY(spmv_download(plan->ctx, result, &most, size));
    *longest = size == 8 ? most.wide : most.narrow;
done:
    spmv_free(plan->ctx, length);
    return st;
}

/* What each method costs beyond streaming the matrix once, in microseconds, from the sizes and the longest row. The
 * constants were measured on an H100 (docs/gpu.md): a thread walks through a row at 50 ns an entry, and where rows are
 * longer than a cache line, neighbouring threads no longer share what they load; a warp costs 0.16 ns a row and 2.5 ns
 * an entry of a long one; the pipeline makes some ten launches and moves everything several times, whatever the rows
 * are. Only their order matters. */
static double scalar_cost(double rows, double nnz, double longest)
{
    const double mean = nnz / rows, line = 16;
    return 50e-3 * longest + (mean > line ? 4e-6 * nnz * (mean / line - 1) : 0);
}

static double vector_cost(double rows, double nnz, double longest)
{
    (void)nnz;
    return 0.16e-3 * rows + 2.5e-3 * longest;
}

static double staged_cost(double rows, double nnz, double longest)
{
    (void)longest;
    return 20 + 28e-6 * nnz + 0.2e-3 * rows;
}

static const struct {
    const char *name, *reason;
    double (*cost)(double rows, double nnz, double longest);
} on_cuda[] = {
    {"vector", "a warp for each row pays", vector_cost},
    {"scalar", "a thread for each row pays, as rows are short", scalar_cost},
    {"staged", "work is shared out by entries, for the longest row would keep one warp busy long after all others",
     staged_cost},
};
enum { ON_CUDA = sizeof on_cuda / sizeof on_cuda[0] };

static spmv_status choose_on_cuda(spmv_plan *plan)
{
    int64_t longest = 0;
    const spmv_csr *a = &plan->a;
    const spmv_status st = longest_row(plan, &longest);
    if (st != SPMV_OK)
        return st;
    const double rows = (double)max_i64(a->rows, 1), nnz = (double)a->nnz;
    int best = 0;
    for (int m = 1; m < ON_CUDA; m++)
        if (on_cuda[m].cost(rows, nnz, (double)longest) < on_cuda[best].cost(rows, nnz, (double)longest))
            best = m;
    plan->method = method_named(SPMV_BACKEND_CUDA, on_cuda[best].name);
    snprintf(plan->why, sizeof plan->why, "rows of %.3g entries on average, %lld at most: %s", nnz / rows,
             (long long)longest, on_cuda[best].reason);
    return SPMV_OK;
}

bool method_known(spmv_backend backend, const char *name)
{
    return name == NULL || strcmp(name, "auto") == 0 || method_named(backend, name) != NULL;
}

spmv_status method_choose(spmv_plan *plan, const char *name)
{
    const spmv_backend backend = plan->ctx->backend->id;
    if (name == NULL || strcmp(name, "auto") == 0) {
        if (backend == SPMV_BACKEND_CUDA)
            return choose_on_cuda(plan);
        plan->method = method_at(backend, 0);
        snprintf(plan->why, sizeof plan->why, "%s", plan->method->why);
    } else {
        plan->method = method_named(backend, name);
        snprintf(plan->why, sizeof plan->why, "asked for by name");
    }
    return SPMV_OK;
}

void method_list(spmv_backend backend, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; spmv_method_name(backend, i) != NULL && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", spmv_method_name(backend, i));
}
