/* Products of sparse matrices: checks the matrices and options once, brings arrays into the
 * context's memory, and runs the two phases of a method.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/backend.h"
#include "core/choice.h"
#include "core/clock.h"
#include "spgemm/spgemm_internal.h"

/* The factors in messages. */
static const char A_NAME[] = "spmv_spgemm: A", B_NAME[] = "spmv_spgemm: B";

void spmv_spgemm_options_init(spmv_spgemm_options *options, size_t size)
{
    const spmv_spgemm_options defaults = {.size = sizeof defaults};
    result_write(options, size, &defaults, sizeof defaults);
}

/* ------------------------------------------------------------------------- the methods */

static const struct spgemm_method *methods_of(spmv_backend backend)
{
    static const struct spgemm_method *const methods[] = {[SPMV_BACKEND_REF] = spgemm_methods_ref,
                                                          [SPMV_BACKEND_OMP] = spgemm_methods_omp,
                                                          [SPMV_BACKEND_CUDA] = spgemm_methods_cuda};
    return backend_find(backend) != NULL ? methods[backend] : NULL;
}

const char *spmv_spgemm_method_name(spmv_backend backend, int index)
{
    const struct spgemm_method *const methods = methods_of(backend);
    return names_at(methods, sizeof *methods, index);
}

static spmv_status choose_method(struct spmv_spgemm_plan *plan, const char *name)
{
    const struct spgemm_method *const methods = methods_of(plan->ctx->backend->id);
    const char *const backend = spmv_backend_name(plan->ctx->backend->id);
    struct names names = {.on = backend};
    const void *method = NULL;
    names_add_row(&names, "auto", methods);
    names_add_table(&names, methods, sizeof *methods);
    const spmv_status st = choice_take(plan->ctx, SPMV_ERROR_METHOD, "spmv_spgemm", "method", &names, name, &method);
    if (st != SPMV_OK)
        return st;
    plan->method = method;
    if (choice_is_auto(name))
        snprintf(plan->why, sizeof plan->why, "the default method of the backend %s", backend);
    else
        snprintf(plan->why, sizeof plan->why, "named by the option method");
    return SPMV_OK;
}

/* -------------------------------------------------------------------- the symbolic phase */

static spmv_status check_memories(spmv_context *ctx, const spmv_csr *a, const spmv_csr *b)
{
    if (a->memory == b->memory)
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                        "spmv_spgemm: one factor is in host memory, the other in the context's memory: copy one "
                        "(spmv_matrix_copy)");
}

/* The types and sizes of A and B; fills plan->type. */
static spmv_status check_pair(struct spmv_spgemm_plan *plan, const spmv_csr *a, const spmv_csr *b)
{
    spmv_context *ctx = plan->ctx;
    const spmv_type a_type = a->val != NULL ? a->type : SPMV_TYPE_DEFAULT;
    const spmv_type b_type = b->val != NULL ? b->type : SPMV_TYPE_DEFAULT;
    plan->type = a_type != SPMV_TYPE_DEFAULT ? a_type : b_type != SPMV_TYPE_DEFAULT ? b_type : SPMV_F64;
    if (a->cols != b->rows)
        return context_fail(ctx, SPMV_ERROR_SIZE,
                            "spmv_spgemm: A is %lld x %lld and B is %lld x %lld: the columns of A must be the rows "
                            "of B",
                            (long long)a->rows, (long long)a->cols, (long long)b->rows, (long long)b->cols);
    if (!type_is_floating(plan->type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_spgemm: no products in type %s, only in f64, f32, c128 and c64",
                            spmv_type_name(plan->type));
    if (a_type != b_type && a_type != SPMV_TYPE_DEFAULT && b_type != SPMV_TYPE_DEFAULT)
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_spgemm: A has type %s and B type %s: they must be equal",
                            spmv_type_name(a_type), spmv_type_name(b_type));
    return SPMV_OK;
}

/* Copies the pattern of a host matrix into the context's memory. The address of the values stays as
 * a mark that there are values. */
static spmv_status copy_pattern(spmv_context *ctx, spmv_csr *a, spmv_matrix **copy)
{
    const spmv_csr from = *a;
    spmv_csr pattern = *a;
    pattern.val = NULL;
    const spmv_status st = spmv_matrix_copy(ctx, &pattern, SPMV_MEMORY_CONTEXT, copy);
    if (st != SPMV_OK)
        return st;
    spmv_matrix_view(*copy, a);
    a->val = from.val;
    a->type = from.type;
    return SPMV_OK;
}

/* Whether A and B have the same arrays. */
static bool same_pattern(const spmv_csr *a, const spmv_csr *b)
{
    return a->row_ptr == b->row_ptr && a->row_ptr_bits == b->row_ptr_bits && a->col == b->col && a->rows == b->rows &&
           a->nnz == b->nnz;
}

static spmv_status check_arrays(struct spmv_spgemm_plan *plan, const spmv_csr *a, const spmv_csr *b)
{
    spmv_status st = csr_check_anywhere(plan->ctx, A_NAME, a, CSR_SORTED);
    if (st == SPMV_OK && !same_pattern(a, b))
        st = csr_check_anywhere(plan->ctx, B_NAME, b, CSR_SORTED);
    return st;
}

/* Whether the products need no count: rows of B have about equal lengths, so that there cannot be many
 * more products than with rows of the mean length. */
static bool bound_suffices(const struct spmv_spgemm_plan *plan)
{
    const spmv_csr *const b = &plan->b;
    int64_t rows_times_longest = 0, most = 0;
    return multiply_fits(b->rows, plan->longest, &rows_times_longest) && rows_times_longest / 2 <= b->nnz &&
           multiply_fits(plan->a.nnz, plan->longest, &most);
}

/* Arrays on a device are checked later, with the count of the products, and on the host the columns
 * of A, if the products are counted. at_once: the pattern and values of C are wanted together. */
static spmv_status take_matrices(struct spmv_spgemm_plan *plan, const spmv_csr *a, const spmv_csr *b, bool at_once)
{
    spmv_status st = SPMV_OK;
    const bool same = same_pattern(a, b);
    plan->a = *a;
    plan->b = *b;
    if (csr_on_device(plan->ctx, a))
        return SPMV_OK;
    TRY(csr_check_longest(plan->ctx, same ? A_NAME : B_NAME, b, CSR_SORTED, &plan->longest));
    plan->counted = !at_once || plan->method->at_once == NULL || !bound_suffices(plan);
    if (!same)
        TRY(plan->counted ? csr_check_offsets(plan->ctx, A_NAME, a) : csr_check(plan->ctx, A_NAME, a, CSR_SORTED));
    if (a->memory == SPMV_MEMORY_CONTEXT)
        return SPMV_OK;
    TRY(copy_pattern(plan->ctx, &plan->a, &plan->copied[0]));
    if (same_pattern(a, b)) {
        plan->b = plan->a;
        plan->b.val = b->val;
        plan->b.type = b->type;
    } else {
        TRY(copy_pattern(plan->ctx, &plan->b, &plan->copied[1]));
    }
done:
    return st;
}

spmv_status spgemm_differences(spmv_context *ctx, const void *from, int bits, void *to, int64_t n)
{
    const spmv_type type = bits == 32 ? SPMV_I32 : SPMV_I64;
    const spmv_status st = spmv_map(ctx, SPMV_MAP_NEG, type, from, to, n);
    return st != SPMV_OK ? st : spmv_map_binary(ctx, SPMV_ADD, type, (const char *)from + bits / 8, to, to, n);
}

spmv_status spgemm_entry_offsets(struct spmv_spgemm_plan *plan, int64_t **offsets)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = plan->ctx;
    const spmv_csr *const a = &plan->a, *const b = &plan->b;
    const int bits = b->row_ptr_bits;
    const spmv_type type = bits == 32 ? SPMV_I32 : SPMV_I64;
    void *lengths = NULL, *products = NULL;
    *offsets = NULL;
    TRY(context_alloc(ctx, b->rows * (bits / 8), &lengths));
    TRY(context_alloc(ctx, a->nnz * (bits / 8), &products));
    TRY(context_alloc(ctx, (a->nnz + 1) * (int64_t)sizeof **offsets, (void **)offsets));
    TRY(spgemm_differences(ctx, b->row_ptr, bits, lengths, b->rows));
    TRY(spmv_gather(ctx, type, lengths, b->rows, a->col, 32, products, a->nnz));
    TRY(spmv_expand_offsets(ctx, products, bits, *offsets, a->nnz));
done:
    spmv_free(ctx, lengths);
    spmv_free(ctx, products);
    if (st != SPMV_OK) {
        spmv_free(ctx, *offsets);
        *offsets = NULL;
    }
    return st;
}

/* SPMV_ERROR_MEMORY if the memory cannot hold even a lower bound of the columns of C: a row of C has at
 * least as many entries as the longest row of B that it needs. */
static spmv_status check_room(struct spmv_spgemm_plan *plan)
{
    const spmv_csr *const a = &plan->a, *const b = &plan->b;
    int64_t least = 0;
    if (plan->products <= INT64_MAX / 4 && spgemm_host_has(4 * plan->products))
        return SPMV_OK;
#pragma omp parallel for num_threads(host_team(plan->ctx, a->nnz)) schedule(dynamic, 512) reduction(+ : least)
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t longest = 0;
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            longest = max_i64(longest, row_first(b, a->col[k] + 1) - row_first(b, a->col[k]));
        least += longest;
    }
    return spgemm_room_for_columns(plan, least);
}

/* counts[i] = the products of row i. Returns whether the columns of A exist and ascend. bits: those of
 * the offsets of B, a constant where it is called. */
static inline bool count_rows(const struct spmv_spgemm_plan *plan, int bits, int64_t *counts)
{
    const spmv_csr *const a = &plan->a;
    const void *const b_row_ptr = plan->b.row_ptr;
    const int64_t cols = a->cols;
    bool valid = true;
#pragma omp parallel for num_threads(host_team(plan->ctx, a->nnz)) schedule(dynamic, 512) reduction(&& : valid)
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t end = row_first(a, i + 1);
        int64_t sum = 0, before = -1;
        for (int64_t k = row_first(a, i); k < end; k++) {
            const int64_t j = a->col[k];
            if (j <= before || j >= cols) {
                valid = false;
                break;
            }
            before = j;
            sum += offset_at(b_row_ptr, bits, j + 1) - offset_at(b_row_ptr, bits, j);
        }
        counts[i] = sum;
    }
    return valid;
}

/* Checks the columns of A and counts the products: on the host, of each row, unless a bound suffices. */
static spmv_status count_products(struct spmv_spgemm_plan *plan)
{
    const spmv_csr *const a = &plan->a;
    spmv_status st = SPMV_OK;
    bool valid = false;
    if (csr_on_device(plan->ctx, a)) {
        st = spgemm_survey_cuda(plan, &valid);
        return st != SPMV_OK || valid ? st : check_arrays(plan, a, &plan->b);
    }
    if (!plan->counted) {
        plan->products = spgemm_products_before(plan, a->rows);
        return check_room(plan);
    }
    TRY(host_alloc(plan->ctx, (a->rows + 1) * (int64_t)sizeof *plan->products_before, "the products of the rows",
                   (void **)&plan->products_before));
    valid = plan->b.row_ptr_bits == 32 ? count_rows(plan, 32, plan->products_before)
                                       : count_rows(plan, 64, plan->products_before);
    if (!valid)
        TRY(check_arrays(plan, a, &plan->b)); /* finds the fault */
    TRY(offsets_from_counts(plan->ctx, plan->products_before, a->rows));
    plan->products = plan->products_before[a->rows];
    TRY(check_room(plan));
done:
    return st;
}

spmv_status spgemm_alloc_row_ptr(struct spmv_spgemm_plan *plan)
{
    return plan->row_ptr != NULL
               ? SPMV_OK
               : context_alloc(plan->ctx, (plan->a.rows + 1) * (int64_t)sizeof *plan->row_ptr, (void **)&plan->row_ptr);
}

/* The pattern of a product without entries. */
static spmv_status no_entries(struct spmv_spgemm_plan *plan)
{
    const int64_t zero = 0;
    const spmv_status st = spgemm_alloc_row_ptr(plan);
    return st != SPMV_OK ? st : spmv_map_index(plan->ctx, SPMV_I64, &zero, NULL, plan->row_ptr, plan->a.rows + 1);
}

/* The pattern of C. values not NULL: *values are those of C if the method computes them at the same
 * time, otherwise *values stays NULL. */
static spmv_status find_pattern(struct spmv_spgemm_plan *plan, const spmv_csr *a, const spmv_csr *b, void **values)
{
    if (plan->products == 0)
        return no_entries(plan);
    if (values != NULL && plan->method->at_once != NULL)
        return plan->method->at_once(plan, a->val, b->val, values);
    return plan->method->symbolic(plan);
}

/* As spmv_spgemm_plan_create; values: as find_pattern. */
static spmv_status create_plan(spmv_context *ctx, const spmv_csr *a, const spmv_csr *b,
                               const spmv_spgemm_options *options, void **values, spmv_spgemm_plan **plan_out)
{
    spmv_spgemm_options o;
    spmv_spgemm_plan *plan = NULL;
    const double begin = monotonic_seconds();
    spmv_status st = SPMV_OK;
    spmv_spgemm_options_init(&o, sizeof o);
    TRY(options_take(ctx, "multiply", &o, sizeof o, options));
    TRY(OPTIONS_CHECK(ctx, "spmv_spgemm", {"max_bytes", (double)o.max_bytes, 0, INFINITY}));
    TRY(csr_check_shape(ctx, A_NAME, a));
    TRY(csr_check_shape(ctx, B_NAME, b));
    TRY(host_alloc(ctx, sizeof *plan, "a plan", (void **)&plan));
    memset(plan, 0, sizeof *plan);
    plan->ctx = ctx;
    plan->max_bytes = o.max_bytes;
    TRY(check_memories(ctx, a, b));
    TRY(check_pair(plan, a, b));
    TRY(choose_method(plan, o.method));
    TRY(take_matrices(plan, a, b, values != NULL));
    TRY(count_products(plan));
    TRY(find_pattern(plan, a, b, values));
    TRY(spmv_synchronize(ctx));
    plan->seconds = monotonic_seconds() - begin;
done:
    if (plan != NULL) {
        host_free(plan->products_before);
        plan->products_before = NULL;
    }
    if (st != SPMV_OK) {
        spmv_spgemm_plan_destroy(plan);
        plan = NULL;
    }
    *plan_out = plan;
    return st;
}

spmv_status spmv_spgemm_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_csr *b,
                                    const spmv_spgemm_options *options, spmv_spgemm_plan **plan_out)
{
    const spmv_status st = context_need(ctx, "spmv_spgemm_plan_create", "plan", plan_out);
    if (st != SPMV_OK)
        return st;
    *plan_out = NULL;
    return create_plan(ctx, a, b, options, NULL, plan_out);
}

void spmv_spgemm_plan_destroy(spmv_spgemm_plan *plan)
{
    if (plan == NULL)
        return;
    spmv_context *const ctx = plan->ctx;
    if (plan->method != NULL && plan->method->destroy != NULL)
        plan->method->destroy(plan);
    spmv_free(ctx, plan->row_ptr);
    spmv_free(ctx, plan->col);
    spmv_matrix_destroy(plan->copied[0]);
    spmv_matrix_destroy(plan->copied[1]);
    host_free(plan);
    context_freed(ctx);
}

static int64_t copied_bytes(const spmv_matrix *copy)
{
    return copy != NULL ? matrix_arrays_bytes(copy->rows, copy->nnz, 0) : 0;
}

spmv_status spmv_spgemm_describe(const spmv_spgemm_plan *plan, spmv_spgemm_info *info, size_t size)
{
    const spmv_status st = result_begin(plan != NULL ? plan->ctx : NULL, "spmv_spgemm_describe", info, size);
    if (st != SPMV_OK)
        return st;
    const spmv_spgemm_info full = {.size = sizeof full,
                                   .method = plan->method->name,
                                   .why = plan->why,
                                   .type = plan->type,
                                   .rows = plan->a.rows,
                                   .cols = plan->b.cols,
                                   .nnz = plan->nnz,
                                   .products = plan->products,
                                   .bytes = (plan->a.rows + 1) * (int64_t)sizeof *plan->row_ptr +
                                            plan->nnz * (int64_t)sizeof *plan->col + plan->state_bytes +
                                            copied_bytes(plan->copied[0]) + copied_bytes(plan->copied[1]),
                                   .working_bytes = plan->working_bytes,
                                   .seconds = plan->seconds};
    result_write(info, size, &full, sizeof full);
    return SPMV_OK;
}

void spmv_spgemm_pattern(const spmv_spgemm_plan *plan, spmv_csr *view)
{
    if (view == NULL)
        return;
    *view = (spmv_csr){.memory = SPMV_MEMORY_CONTEXT};
    if (plan == NULL)
        return;
    *view = (spmv_csr){.rows = plan->a.rows,
                       .cols = plan->b.cols,
                       .nnz = plan->nnz,
                       .row_ptr = plan->row_ptr,
                       .row_ptr_bits = 64,
                       .col = plan->col,
                       .type = plan->type,
                       .memory = SPMV_MEMORY_CONTEXT};
}

/* --------------------------------------------------------------------- the numeric phase */

spmv_status spmv_spgemm_values(spmv_spgemm_plan *plan, const void *a_values, const void *b_values, void *c_values)
{
    if (plan == NULL)
        return SPMV_ERROR_ARGUMENT;
    spmv_context *const ctx = plan->ctx;
    const void *const a = plan->a.val != NULL ? a_values : NULL, *const b = plan->b.val != NULL ? b_values : NULL;
    const void *const arrays[] = {a, b, c_values};
    static const char *const names[] = {"a_values", "b_values", "c_values"};
    const bool needed[] = {plan->a.val != NULL, plan->b.val != NULL, true};
    if (plan->nnz == 0)
        return SPMV_OK;
    for (int i = 0; i < 3; i++) {
        if (needed[i] && arrays[i] == NULL)
            return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_spgemm_values: %s is NULL", names[i]);
        if (!values_aligned(ctx, plan->type, arrays[i]))
            return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_spgemm_values: %s is not aligned to %zu bytes",
                                names[i], spmv_type_size(plan->type));
    }
    if (c_values == a || c_values == b)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_spgemm_values: c_values and %s are the same array",
                            c_values == a ? names[0] : names[1]);
    return plan->method->numeric(plan, a, b, c_values);
}

/* -------------------------------------------------------------------------- both phases */

/* A matrix in the memory where the work is done. On the host this is only another name for its
 * memory; on a GPU a host matrix is copied (*owned). */
static spmv_status bring(spmv_context *ctx, const spmv_csr *a, spmv_csr *there, spmv_matrix **owned)
{
    *there = *a;
    there->memory = SPMV_MEMORY_CONTEXT;
    if (a->memory == SPMV_MEMORY_CONTEXT || !context_on_device(ctx))
        return SPMV_OK;
    const spmv_status st = spmv_matrix_copy(ctx, a, SPMV_MEMORY_CONTEXT, owned);
    if (st == SPMV_OK)
        spmv_matrix_view(*owned, there);
    return st;
}

/* Moves a result from the context's memory to the memory of its factors. */
static spmv_status take_home(spmv_context *ctx, spmv_memory memory, spmv_matrix **c)
{
    if (memory == SPMV_MEMORY_CONTEXT)
        return SPMV_OK;
    if (!context_on_device(ctx)) {
        (*c)->ctx = NULL;
        return SPMV_OK;
    }
    spmv_csr there;
    spmv_matrix *here = NULL;
    spmv_matrix_view(*c, &there);
    const spmv_status st = spmv_matrix_copy(ctx, &there, memory, &here);
    spmv_matrix_destroy(*c);
    *c = here;
    return st;
}

/* Makes the matrix C of a plan and its values, which both go over to it. */
static spmv_status adopt(struct spmv_spgemm_plan *plan, void *values, spmv_matrix **c)
{
    spmv_csr view;
    spmv_spgemm_pattern(plan, &view);
    view.val = values;
    const spmv_status st = matrix_adopt(plan->ctx, &view, c);
    if (st == SPMV_OK) {
        plan->row_ptr = NULL;
        if (plan->nnz > 0) /* a matrix without entries does not keep an array of columns */
            plan->col = NULL;
    }
    return st;
}

/* The numeric phase, into new memory. */
static spmv_status new_values(struct spmv_spgemm_plan *plan, const spmv_csr *a, const spmv_csr *b, void **values)
{
    spmv_context *const ctx = plan->ctx;
    const bool host = !context_on_device(ctx);
    int64_t bytes = 0;
    if (!multiply_fits(max_i64(plan->nnz, 1), (int64_t)spmv_type_size(plan->type), &bytes))
        bytes = INT64_MAX;
    if (host && !spgemm_host_has(bytes))
        return context_fail_memory(ctx, "spmv_spgemm: the values of C", bytes);
    const spmv_status st = context_alloc(ctx, bytes, values);
    if (st != SPMV_OK)
        return st;
    if (host)
        pages_ask_large(*values, bytes);
    return spmv_spgemm_values(plan, a->val, b->val, *values);
}

/* C = A B with all arrays in the context's memory. */
static spmv_status multiply_there(spmv_context *ctx, const spmv_csr *a, const spmv_csr *b,
                                  const spmv_spgemm_options *options, spmv_matrix **c)
{
    spmv_status st = SPMV_OK;
    struct spmv_spgemm_plan *plan = NULL;
    void *values = NULL;
    TRY(create_plan(ctx, a, b, options, &values, &plan));
    if (values == NULL)
        TRY(new_values(plan, a, b, &values));
    TRY(adopt(plan, values, c));
    values = NULL;
done:
    spmv_free(ctx, values);
    spmv_spgemm_plan_destroy(plan);
    return st;
}

spmv_status spmv_spgemm(spmv_context *ctx, const spmv_csr *a, const spmv_csr *b, const spmv_spgemm_options *options,
                        spmv_matrix **c)
{
    spmv_csr there[2];
    spmv_matrix *owned[2] = {NULL, NULL};
    spmv_status st = context_need(ctx, "spmv_spgemm", "c", c);
    if (st != SPMV_OK)
        return st;
    *c = NULL;
    TRY(csr_check_shape(ctx, A_NAME, a));
    TRY(csr_check_shape(ctx, B_NAME, b));
    TRY(check_memories(ctx, a, b));
    TRY(bring(ctx, a, &there[0], &owned[0]));
    TRY(bring(ctx, b, &there[1], &owned[1]));
    TRY(multiply_there(ctx, &there[0], &there[1], options, c));
    TRY(take_home(ctx, a->memory, c));
done:
    spmv_matrix_destroy(owned[0]);
    spmv_matrix_destroy(owned[1]);
    return st;
}

spmv_status spmv_spgemm_triple(spmv_context *ctx, const spmv_csr *r, const spmv_csr *a, const spmv_csr *p,
                               const spmv_spgemm_options *options, spmv_matrix **c)
{
    const spmv_csr *const views[3] = {r, a, p};
    static const char *const names[3] = {"spmv_spgemm_triple: R", "spmv_spgemm_triple: A", "spmv_spgemm_triple: P"};
    spmv_csr there[3], ap;
    spmv_matrix *owned[3] = {NULL, NULL, NULL}, *inner = NULL;
    spmv_status st = context_need(ctx, "spmv_spgemm_triple", "c", c);
    if (st != SPMV_OK)
        return st;
    *c = NULL;
    for (int i = 0; i < 3; i++)
        TRY(csr_check_shape(ctx, names[i], views[i]));
    TRY(check_memories(ctx, r, a));
    TRY(check_memories(ctx, a, p));
    if (r->cols != a->rows)
        TRY(context_fail(ctx, SPMV_ERROR_SIZE,
                         "spmv_spgemm_triple: R is %lld x %lld and A is %lld x %lld: the columns of R must be the "
                         "rows of A",
                         (long long)r->rows, (long long)r->cols, (long long)a->rows, (long long)a->cols));
    for (int i = 0; i < 3; i++)
        TRY(bring(ctx, views[i], &there[i], &owned[i]));
    TRY(multiply_there(ctx, &there[1], &there[2], options, &inner));
    spmv_matrix_view(inner, &ap);
    TRY(multiply_there(ctx, &there[0], &ap, options, c));
    TRY(take_home(ctx, r->memory, c));
done:
    spmv_matrix_destroy(inner);
    for (int i = 0; i < 3; i++)
        spmv_matrix_destroy(owned[i]);
    return st;
}
