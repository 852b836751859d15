/* The matrix of a plan: op(A) in the context's memory with the narrowest row offsets, and the
 * replacement of its values under the same pattern.
 *
 * A matrix in host memory is copied; a matrix in the context's memory is borrowed. A transpose is
 * formed where the arrays can be read: on the device (formats/transpose_cuda.cu) or on the host
 * (formats/transpose.c). Both use stable sorts, so both give the same matrix. Where values may be
 * replaced, the plan of a transposed matrix keeps the index in A of each of its entries.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/matrix_internal.h"
#include "product/plan_internal.h"

static int64_t value_bytes(const spmv_plan *plan)
{
    return (int64_t)spmv_type_size(plan->a.type);
}

/* Narrows row offsets in the context's memory to 32 bits, which halves the bytes that a product reads
 * of them. */
static spmv_status narrow_row_ptr(spmv_plan *plan, const spmv_csr *a)
{
    spmv_status st = SPMV_OK;
    const int64_t n = a->rows + 1;
    TRY(plan_alloc(plan, n * 4, &plan->row_ptr));
    if (csr_on_device(plan->ctx, a))
        TRY(narrow_offsets_cuda(plan->ctx, a->row_ptr, plan->row_ptr, n));
    else
        offsets_to_32(a->row_ptr, plan->row_ptr, n);
    plan->a.row_ptr = plan->row_ptr;
    plan->a.row_ptr_bits = 32;
done:
    return st;
}

/* Sets the arrays of plan->a to those of A without transposition: copies of host arrays, or the
 * arrays in the context's memory. */
static spmv_status take_as_it_is(spmv_plan *plan, const spmv_csr *a)
{
    const spmv_type type = plan->a.type;
    struct csr_copies copies;
    const spmv_status st = csr_to_context(plan->ctx, a, true, &plan->a, &copies);
    plan->a.type = type;
    plan->row_ptr = copies.row_ptr;
    plan->col = copies.col;
    plan->val = copies.val;
    plan->bytes += copies.bytes;
    return st == SPMV_OK && plan->a.row_ptr_bits == 64 && a->nnz <= INT32_MAX ? narrow_row_ptr(plan, a) : st;
}

/* Whether the values of op(A) are the conjugates of those of A. */
static bool conjugates(const spmv_plan *plan)
{
    return plan->operation == SPMV_OPERATION_H && type_is_complex(plan->a.type) && plan->a.val != NULL;
}

/* ------------------------------------------------------------- on the host */

/* Forms the transpose on the host. The plan owns it. */
static spmv_status transpose_on_host(spmv_plan *plan, const spmv_csr *a)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = plan->ctx;
    spmv_csr transposed;
    const spmv_csr any = csr_of_any_values(a);
    TRY(csr_check(ctx, "spmv_plan_create", &any, CSR_ANY_ORDER));
    if (plan->updates)
        TRY(plan_alloc(plan, a->nnz * (plan->from_bits / 8), &plan->from));
    TRY(csr_transpose_numbered(ctx, a, &plan->transposed, (struct entry_numbers){plan->from, plan->from_bits}));
    spmv_matrix_view(plan->transposed, &transposed);
    transposed.memory = SPMV_MEMORY_CONTEXT;
    plan->bytes += (transposed.rows + 1) * (transposed.row_ptr_bits / 8) +
                   transposed.nnz * (4 + (transposed.val != NULL ? value_bytes(plan) : 0));
    transposed.type = plan->a.type;
    plan->a = transposed;
    TRY(take_as_it_is(plan, &transposed));
    if (conjugates(plan))
        csr_conjugate(ctx, plan->transposed);
done:
    return st;
}

/* to[k] = values[from[k]], begin <= k < end; size is a constant after inlining. */
static inline void take_range(const spmv_plan *plan, const void *values, void *to, int64_t begin, int64_t end,
                              size_t size)
{
    for (int64_t k = begin; k < end; k++)
        copy_value(to, k, values, offset_at(plan->from, plan->from_bits, k), size);
}

static void take_on_host(const spmv_plan *plan, const void *values, void *to)
{
    enum { RANGE = 1 << 12 };
    const int64_t n = plan->a.nnz;
#pragma omp parallel for schedule(static) num_threads(host_team(plan->ctx, n))
    for (int64_t begin = 0; begin < n; begin += RANGE)
        SIZED((size_t)value_bytes(plan), take_range(plan, values, to, begin, min_i64(begin + RANGE, n), SIZE))
    if (conjugates(plan))
        csr_conjugate(plan->ctx, plan->transposed);
}

/* ----------------------------------------------------------- on the device */

/* Forms the transpose of a matrix in the device's memory and releases the temporary arrays. */
static spmv_status transpose_device_arrays(spmv_plan *plan, const spmv_csr *a)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = plan->ctx;
    const int bits = a->nnz <= INT32_MAX ? 32 : 64;
    void *for_now = NULL, *from = NULL;
    plan->a.rows = a->cols;
    plan->a.cols = a->rows;
    plan->a.row_ptr_bits = bits;
    TRY(plan_alloc(plan, (a->cols + 1) * (bits / 8), &plan->row_ptr));
    TRY(plan_alloc(plan, a->nnz * (int64_t)sizeof *a->col, &plan->col));
    if (a->val != NULL)
        TRY(plan_alloc(plan, a->nnz * value_bytes(plan), &plan->val));
    if (plan->updates)
        TRY(plan_alloc(plan, a->nnz * (plan->from_bits / 8), &plan->from));
    else
        TRY(spmv_alloc(ctx, a->nnz * (plan->from_bits / 8), &for_now));
    from = plan->updates ? plan->from : for_now;
    TRY(transpose_cuda(ctx, a, plan->row_ptr, bits, plan->col, from, plan->from_bits));
    if (a->val != NULL && a->nnz > 0)
        TRY(take_values_cuda(ctx, plan->a.type, conjugates(plan), a->val, from, plan->from_bits, plan->val, a->nnz));
    plan->a.row_ptr = plan->row_ptr;
    plan->a.col = plan->col;
    plan->a.val = plan->val;
done:
    spmv_free(ctx, for_now);
    return st;
}

static spmv_status transpose_on_device(spmv_plan *plan, const spmv_csr *a)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = plan->ctx;
    spmv_csr there;
    struct csr_copies copies = {0};
    if (a->rows > INT32_MAX)
        return context_fail(ctx, SPMV_ERROR_LIMIT,
                            "spmv_plan_create: the transpose of %lld rows would have as many columns, at most %d are "
                            "possible",
                            (long long)a->rows, INT32_MAX);
    TRY(csr_to_context(ctx, a, false, &there, &copies));
    TRY(transpose_device_arrays(plan, &there));
done:
    csr_free_context(ctx, &copies);
    return st;
}

/* ----------------------------------------------------------- either backend */

spmv_status plan_take_matrix(spmv_plan *plan, const spmv_csr *a)
{
    const spmv_type type = plan->a.type;
    plan->a = *a;
    plan->a.memory = SPMV_MEMORY_CONTEXT;
    plan->a.type = type;
    plan->from_bits = a->nnz <= INT32_MAX ? 32 : 64;
    if (a->memory == SPMV_MEMORY_CONTEXT && !plan_can_load(plan, a->val))
        return context_fail(plan->ctx, SPMV_ERROR_ARGUMENT, "spmv_plan_create: val is not aligned to %zu bytes",
                            spmv_type_size(plan->a.type));
    if (plan->operation == SPMV_OPERATION_N)
        return take_as_it_is(plan, a);
    if (context_on_device(plan->ctx))
        return transpose_on_device(plan, a);
    return transpose_on_host(plan, a);
}

void plan_release_matrix(spmv_plan *plan)
{
    context_free_all(plan->ctx, plan->row_ptr, plan->col, plan->val, plan->from);
    spmv_matrix_destroy(plan->transposed);
}

/* Writes new values into the plan's own array, in the order of the transpose. */
static spmv_status take_through_numbers(spmv_plan *plan, const void *values)
{
    if (context_on_device(plan->ctx))
        return take_values_cuda(plan->ctx, plan->a.type, conjugates(plan), values, plan->from, plan->from_bits,
                                plan->val, plan->a.nnz);
    take_on_host(plan, values, plan->transposed->val);
    return SPMV_OK;
}

/* Copies values into the plan's own array. Primitives have no 16-bit elements. */
static spmv_status copy_values(const spmv_plan *plan, const void *values)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t n = plan->a.nnz, size = value_bytes(plan);
    const struct plan_turn halves = {.columns = (void *)values,
                                     .rows = plan->val,
                                     .n = n,
                                     .column_stride = n,
                                     .row_stride = 1,
                                     .k = 1,
                                     .to_rows = true,
                                     .size = (int)size};
    if (size % 4 == 0)
        return ctx->backend->map(ctx, SPMV_MAP_COPY, SPMV_I32, values, plan->val, n * (size / 4));
    if (context_on_device(ctx))
        return turn_cuda(ctx, &halves);
    memcpy(plan->val, values, (size_t)(n * size));
    return SPMV_OK;
}

/* Replaces the values: copies them, or borrows the new array where the old one was borrowed. */
static spmv_status replace_values(spmv_plan *plan, const void *values)
{
    if (plan->from != NULL)
        return take_through_numbers(plan, values);
    if (plan->val == NULL) { /* borrowed */
        plan->a.val = values;
        return SPMV_OK;
    }
    return copy_values(plan, values);
}

/* spmv_plan_update_values on a context that this thread holds. */
static spmv_status update_values(spmv_plan *plan, const void *values)
{
    spmv_context *ctx = plan->ctx;
    spmv_status st = object_free_of_calls(ctx, &plan->use, "spmv_plan_update_values", "plan");
    if (st != SPMV_OK)
        return st;
    if (!plan->updates)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_plan_update_values: the plan was made without the option update_values");
    if (plan->a.nnz == 0)
        return SPMV_OK;
    if (values == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_plan_update_values: values is NULL");
    if (!plan_can_load(plan, values))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_plan_update_values: values is not aligned to %zu bytes",
                            spmv_type_size(plan->a.type));
    /* An error must be returned before anything changes. */
    st = plan->update_waits ? spmv_synchronize(ctx) : SPMV_OK;
    plan->symmetry = PLAN_SYMMETRY_UNKNOWN;
    if (st == SPMV_OK)
        st = replace_values(plan, values);
    if (context_on_device(ctx))
        plan_values_changed_cuda(plan);
    return st != SPMV_OK || plan->method->update == NULL ? st : plan->method->update(plan);
}

spmv_status spmv_plan_update_values(spmv_plan *plan, const void *values)
{
    bool outer = false;
    if (plan == NULL)
        return SPMV_ERROR_ARGUMENT;
    const spmv_status st = context_hold(plan->ctx, &outer);
    return st != SPMV_OK ? st : context_release(plan->ctx, outer, update_values(plan, values));
}
