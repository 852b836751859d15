/* Plans: checks view and options once, has op(A) brought into the context's memory (plan_matrix.c), picks a method.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "matrix_internal.h"
#include "plan_internal.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void spmv_plan_options_init(spmv_plan_options *options, size_t size)
{
    const spmv_plan_options defaults = {.size = sizeof defaults, .vectors = 1, .compression = -1};
    result_write(options, size, &defaults, sizeof defaults);
}

spmv_status plan_alloc(spmv_plan *plan, int64_t bytes, void **memory)
{
    const spmv_status st = spmv_alloc(plan->ctx, bytes, memory);
    if (st == SPMV_OK)
        plan->bytes += bytes;
    return st;
}

static spmv_status check_view(spmv_context *ctx, const spmv_csr *a)
{
    const spmv_status st = csr_check_shape(ctx, "spmv_plan_create", a);
    if (st != SPMV_OK)
        return st;
    if (!plan_reads_on_host(ctx, a))
        return SPMV_OK;
    const int64_t first = offset_at(a->row_ptr, a->row_ptr_bits, 0);
    const int64_t last = offset_at(a->row_ptr, a->row_ptr_bits, a->rows);
    if (first != 0 || last != a->nnz)
        return context_fail(ctx, SPMV_ERROR_SIZE,
                            "spmv_plan_create: row_ptr runs from %lld to %lld, but there are %lld nonzeros",
                            (long long)first, (long long)last, (long long)a->nnz);
    return SPMV_OK;
}

/* The type of the sums, from the options and the matrix. */
static spmv_status choose_type(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *o, spmv_type *type)
{
    *type = o->type != SPMV_TYPE_DEFAULT ? o->type : a->val != NULL ? a->type : SPMV_F64;
    if (*type != SPMV_F64 && *type != SPMV_F32)
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_plan_create: no products in type %s, only f64 and f32",
                            spmv_type_name(*type));
    if (a->val != NULL && a->type != *type)
        return context_fail(ctx, SPMV_ERROR_TYPE,
                            "spmv_plan_create: values of type %s with sums of type %s are not supported",
                            spmv_type_name(a->type), spmv_type_name(*type));
    return SPMV_OK;
}

static spmv_status check_options(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *o)
{
    if (o->operation != SPMV_OPERATION_N && o->operation != SPMV_OPERATION_T && o->operation != SPMV_OPERATION_H)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_plan_create: operation is %d", (int)o->operation);
    if (o->vectors != 1)
        return context_fail(ctx, o->vectors < 1 ? SPMV_ERROR_ARGUMENT : SPMV_ERROR_UNSUPPORTED,
                            "spmv_plan_create: %d vectors at once, only 1 is supported", o->vectors);
    if (o->symmetric != 0 || (o->compression > 0 && ctx->backend->id != SPMV_BACKEND_OMP))
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "spmv_plan_create: %s is not supported",
                            o->symmetric ? "symmetric storage" : "compression");
    if (o->update_values != 0 && a->val == NULL && a->nnz > 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_plan_create: update_values, but a pattern has no values to replace");
    return SPMV_OK;
}

static spmv_status check_method(spmv_context *ctx, const char *name)
{
    char known[256];
    if (method_known(ctx->backend->id, name))
        return SPMV_OK;
    method_list(ctx->backend->id, known, sizeof known);
    return context_fail(ctx, SPMV_ERROR_METHOD, "no method %s on backend %s; there are: auto, %s", name,
                        spmv_backend_name(ctx->backend->id), known);
}

spmv_status spmv_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *options,
                             spmv_plan **plan_out)
{
    spmv_status st = SPMV_OK;
    spmv_plan_options o;
    spmv_plan *plan = NULL;
    const double begin = now();
    *plan_out = NULL;
    spmv_plan_options_init(&o, sizeof o);
    if (options != NULL && !options_read(&o, sizeof o, options))
        return context_fail(
            ctx, SPMV_ERROR_ARGUMENT,
            "plan options of %zu bytes do not fit this library's %zu: fill them with spmv_plan_options_init",
            options->size, sizeof o);
    TRY(check_view(ctx, a));
    TRY(check_options(ctx, a, &o));
    TRY(check_method(ctx, o.method));
    TRY(host_alloc(ctx, sizeof *plan, "a plan", (void **)&plan));
    memset(plan, 0, sizeof *plan);
    plan->ctx = ctx;
    plan->operation = o.operation;
    plan->compression = o.compression;
    plan->updates = o.update_values != 0;
    TRY(choose_type(ctx, a, &o, &plan->type));
    TRY(plan_take_matrix(plan, a));
    method_choose(plan, o.method);
    if (plan->method->prepare != NULL)
        TRY(plan->method->prepare(plan));
    TRY(spmv_synchronize(ctx));
    plan->seconds = now() - begin;
done:
    if (st != SPMV_OK) {
        spmv_plan_destroy(plan);
        plan = NULL;
    }
    *plan_out = plan;
    return st;
}

void spmv_plan_destroy(spmv_plan *plan)
{
    if (plan == NULL)
        return;
    if (plan->method != NULL && plan->method->release != NULL)
        plan->method->release(plan);
    plan_release_matrix(plan);
    host_free(plan);
}

spmv_status spmv_apply(spmv_plan *plan, const void *host_alpha, const void *x, const void *host_beta, void *y)
{
    static const double one_f64 = 1, zero_f64 = 0;
    static const float one_f32 = 1, zero_f32 = 0;
    const bool f32 = plan->type == SPMV_F32;
    const void *alpha = host_alpha != NULL ? host_alpha : f32 ? (const void *)&one_f32 : (const void *)&one_f64;
    const void *beta = host_beta != NULL ? host_beta : f32 ? (const void *)&zero_f32 : (const void *)&zero_f64;
    const bool beta_zero = f32 ? *(const float *)beta == 0 : *(const double *)beta == 0;
    if (plan->a.rows == 0)
        return SPMV_OK;
    if (y == NULL || (x == NULL && plan->a.cols > 0))
        return context_fail(plan->ctx, SPMV_ERROR_ARGUMENT, "spmv_apply: %s is NULL", y == NULL ? "y" : "x");
    if (x == y)
        return context_fail(plan->ctx, SPMV_ERROR_ARGUMENT, "spmv_apply: x and y are the same array");
    return plan->method->apply(plan, alpha, x, beta, beta_zero, y);
}

spmv_context *spmv_plan_context(const spmv_plan *plan)
{
    return plan->ctx;
}

spmv_status spmv_plan_describe(const spmv_plan *plan, spmv_plan_info *info, size_t size)
{
    const spmv_plan_info full = {.size = sizeof full,
                                 .method = plan->method->name,
                                 .why = plan->why,
                                 .type = plan->type,
                                 .operation = plan->operation,
                                 .rows = plan->a.rows,
                                 .cols = plan->a.cols,
                                 .nnz = plan->a.nnz,
                                 .bytes = plan->bytes,
                                 .seconds = plan->seconds,
                                 .layout = plan->layout};
    result_write(info, size, &full, sizeof full);
    return SPMV_OK;
}
