/* Plans: checks the matrix view and the options once, takes op(A) into the context's memory
 * (plan_matrix.c), and chooses a method.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/reals.h"
#include "formats/matrix_internal.h"
#include "product/plan_internal.h"

void spmv_plan_options_init(spmv_plan_options *options, size_t size)
{
    const spmv_plan_options defaults = {.size = sizeof defaults, .vectors = 1, .compression = SPMV_COMPRESSION_AUTO};
    result_write(options, size, &defaults, sizeof defaults);
}

spmv_status plan_new_state(spmv_plan *plan, int64_t bytes)
{
    const spmv_status st = host_alloc(plan->ctx, bytes, "a plan", &plan->state);
    if (st == SPMV_OK)
        memset(plan->state, 0, (size_t)bytes);
    return st;
}

void plan_release_state(spmv_plan *plan)
{
    if (plan->state != NULL)
        plan->method->release(plan);
    host_free(plan->state);
    plan->state = NULL;
}

spmv_status plan_alloc(spmv_plan *plan, int64_t bytes, void **memory)
{
    const spmv_status st = context_alloc(plan->ctx, bytes, memory);
    if (st == SPMV_OK)
        plan->bytes += bytes;
    return st;
}

spmv_status plan_alloc_if_room(spmv_plan *plan, int64_t bytes, void **memory)
{
    const spmv_status st = plan_alloc(plan, bytes, memory);
    if (st != SPMV_ERROR_MEMORY)
        return st;
    plan->ctx->error[0] = '\0';
    return SPMV_OK;
}

void plan_free(spmv_plan *plan, int64_t bytes, void *memory)
{
    spmv_free(plan->ctx, memory);
    plan->bytes -= memory != NULL ? bytes : 0;
}

spmv_status plan_check_view(spmv_context *ctx, const char *call, const spmv_csr *a, bool halves)
{
    const spmv_csr any = halves && a != NULL ? csr_of_any_values(a) : (spmv_csr){0};
    const spmv_status st = csr_check_shape(ctx, call, halves && a != NULL ? &any : a);
    if (st != SPMV_OK)
        return st;
    if (csr_on_device(ctx, a))
        return SPMV_OK;
    const int64_t first = offset_at(a->row_ptr, a->row_ptr_bits, 0);
    const int64_t last = offset_at(a->row_ptr, a->row_ptr_bits, a->rows);
    if (first != 0 || last != a->nnz)
        return context_fail(ctx, SPMV_ERROR_SIZE, "%s: row_ptr runs from %lld to %lld, but there are %lld nonzeros",
                            call, (long long)first, (long long)last, (long long)a->nnz);
    return SPMV_OK;
}

enum plan_types plan_types_of(spmv_type stored, spmv_type vectors)
{
#define ROW(name, STORED, VECTORS) {SPMV_##STORED, SPMV_##VECTORS},
    static const spmv_type types[PLAN_TYPES][2] = {PLAN_TYPES_LIST(ROW)};
#undef ROW
    int t = 0;
    while (t < PLAN_TYPES && (types[t][0] != stored || types[t][1] != vectors))
        t++;
    return (enum plan_types)t;
}

/* The type of vectors, from the options and the matrix. */
static spmv_status choose_type(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *o, bool ranks,
                               spmv_type *type)
{
    *type = o->type != SPMV_TYPE_DEFAULT ? o->type : a->val != NULL ? a->type : SPMV_F64;
    if (ranks && type_is_half(*type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_plan_create: no products of ranks in type %s",
                            spmv_type_name(*type));
    if (plan_types_of(*type, *type) == PLAN_TYPES)
        return context_fail(ctx, SPMV_ERROR_TYPE,
                            "spmv_plan_create: no products in type %s, only in f64, f32, c128, c64, bf16 and f16",
                            spmv_type_name(*type));
    if (a->val != NULL && plan_types_of(a->type, *type) == PLAN_TYPES)
        return context_fail(ctx, SPMV_ERROR_TYPE,
                            "spmv_plan_create: values of type %s with vectors of type %s are not supported",
                            spmv_type_name(a->type), spmv_type_name(*type));
    return SPMV_OK;
}

static spmv_status check_options(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *o)
{
    const spmv_status st = OPTIONS_CHECK(
        ctx, "spmv_plan_create", {"operation", o->operation, SPMV_OPERATION_N, SPMV_OPERATION_H},
        {"vectors", o->vectors, 1, INFINITY}, {"symmetric", o->symmetric, 0, 1},
        {"update_values", o->update_values, 0, 1}, {"x_layout", o->x_layout, SPMV_LAYOUT_ROWS, SPMV_LAYOUT_COLUMNS},
        {"y_layout", o->y_layout, SPMV_LAYOUT_ROWS, SPMV_LAYOUT_COLUMNS},
        {"compression", o->compression, SPMV_COMPRESSION_AUTO, SPMV_COMPRESSION_VALUES});
    if (st != SPMV_OK)
        return st;
    for (int i = 0; i < 2; i++) {
        const int64_t stride = i == 0 ? o->x_stride : o->y_stride;
        const bool by_columns = (i == 0 ? o->x_layout : o->y_layout) == SPMV_LAYOUT_COLUMNS;
        const int64_t length = (i == 0) == (o->operation == SPMV_OPERATION_N) ? a->cols : a->rows;
        if (stride != 0 && stride < (by_columns ? length : o->vectors))
            return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_plan_create: %s_stride is %lld, less than the %lld %s",
                                i == 0 ? "x" : "y", (long long)stride,
                                by_columns ? (long long)length : (long long)o->vectors,
                                by_columns ? "elements of a vector" : "vectors");
    }
    if (o->symmetric != 0 || (o->compression == SPMV_COMPRESSION_COLUMNS && ctx->backend->id != SPMV_BACKEND_OMP))
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "spmv_plan_create: %s is not supported",
                            o->symmetric ? "symmetric storage" : "compression");
    if (o->update_values != 0 && a->val == NULL && a->nnz > 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_plan_create: update_values is set, but a pattern has no values");
    return SPMV_OK;
}

/* Adds to the layout that the method has no table of values, where one was requested. Methods with
 * METHOD_TABLE report this themselves. */
static void say_no_table(spmv_plan *plan)
{
    const size_t used = strlen(plan->layout);
    if (plan->compression == SPMV_COMPRESSION_VALUES && (plan->method->can & METHOD_TABLE) == 0)
        snprintf(plan->layout + used, sizeof plan->layout - used,
                 "%sno table of values: only the methods slices and tiles on cuda have them", used > 0 ? "; " : "");
}

/* spmv_plan_create on a context that this thread holds. */
static spmv_status create(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *options,
                          const struct plan_ranks *ranks, spmv_plan **plan_out)
{
    spmv_status st = SPMV_OK;
    spmv_plan_options o;
    spmv_plan *plan = NULL;
    const double begin = monotonic_seconds();
    spmv_plan_options_init(&o, sizeof o);
    TRY(options_take(ctx, "plan", &o, sizeof o, options));
    TRY(plan_check_view(ctx, "spmv_plan_create", a, true));
    TRY(check_options(ctx, a, &o));
    TRY(host_alloc(ctx, sizeof *plan, "a plan", (void **)&plan));
    memset(plan, 0, sizeof *plan);
    plan->ctx = ctx;
    plan->ranks = ranks;
    plan->longest_row = -1;
    const bool turned = o.operation != SPMV_OPERATION_N;
    plan->operation = o.operation;
    plan->compression = (enum spmv_compression)o.compression;
    plan->updates = o.update_values != 0;
    TRY(choose_type(ctx, a, &o, ranks != NULL, &plan->type));
    plan->sums = type_of_sums(plan->type);
    by_columns_set(plan, &o, turned ? a->cols : a->rows, turned ? a->rows : a->cols);
    plan->a.type = a->val != NULL ? a->type : plan->type;
    plan->types = plan_types_of(plan->a.type, plan->type);
    TRY(method_choose(plan, o.method));
    TRY(plan_take_matrix(plan, a));
    TRY(by_columns_prepare(plan));
    TRY(method_prepare(plan));
    say_no_table(plan);
    TRY(epilogue_prepare(plan));
    if (!plan->settled)
        TRY(spmv_synchronize(ctx));
    plan->seconds = monotonic_seconds() - begin;
done:
    if (st != SPMV_OK) {
        spmv_plan_destroy(plan);
        plan = NULL;
    }
    *plan_out = plan;
    return st;
}

spmv_status plan_create_for_rank(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *options,
                                 const struct plan_ranks *ranks, spmv_plan **plan_out)
{
    bool outer = false;
    if (ctx == NULL || plan_out == NULL)
        return context_need(ctx, "spmv_plan_create", "plan", plan_out);
    *plan_out = NULL;
    const spmv_status st = context_hold(ctx, &outer);
    return st != SPMV_OK ? st : context_release(ctx, outer, create(ctx, a, options, ranks, plan_out));
}

spmv_status spmv_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *options,
                             spmv_plan **plan_out)
{
    return plan_create_for_rank(ctx, a, options, NULL, plan_out);
}

void plan_begin_use(spmv_plan *plan)
{
    if (plan != NULL)
        plan->use.calls++;
}

void plan_end_use(spmv_plan *plan)
{
    if (plan != NULL && object_end_use(&plan->use))
        spmv_plan_destroy(plan);
}

void spmv_plan_destroy(spmv_plan *plan)
{
    if (plan == NULL || object_destroyed_later(&plan->use))
        return;
    spmv_context *const ctx = plan->ctx;
    if (plan->borrows) {
        host_free(plan);
        return;
    }
    plan_release_state(plan);
    plan_release_matrix(plan);
    spmv_free(plan->ctx, plan->prepared);
    spmv_free(plan->ctx, plan->epilogue);
    spmv_free(plan->ctx, plan->by_columns.x_rows);
    spmv_free(plan->ctx, plan->by_columns.y_rows);
    host_free(plan);
    context_freed(ctx);
}

spmv_status plan_share(const spmv_plan *plan, const void *val, spmv_plan **shared)
{
    *shared = NULL;
    if (!plan->reads_values || plan->updates)
        return SPMV_OK;
    const spmv_status st = host_alloc(plan->ctx, sizeof **shared, "a plan", (void **)shared);
    if (st != SPMV_OK)
        return st;
    **shared = *plan;
    (*shared)->a.val = val;
    (*shared)->borrows = true;
    (*shared)->use = (struct object_use){0};
    (*shared)->symmetry = PLAN_SYMMETRY_UNKNOWN;
    (*shared)->bytes = 0;
    (*shared)->seconds = 0;
    return SPMV_OK;
}

bool plan_can_load(const spmv_plan *plan, const void *array)
{
    return !context_on_device(plan->ctx) || !type_is_complex(plan->type) ||
           (uintptr_t)array % spmv_type_size(plan->type) == 0;
}

/* One in the type of sums; a complex one is followed by its imaginary part 0. */
static const void *scalar_one(const spmv_plan *plan)
{
    static const double f64[2] = {1, 0};
    static const float f32[2] = {1, 0};
    switch (plan->types) {
    case PLAN_f32:
    case PLAN_c64:
    case PLAN_bf16:
    case PLAN_f16:
        return f32;
    case PLAN_f64:
    case PLAN_mixed:
    case PLAN_c128:
        return f64;
    case PLAN_TYPES:
        break;
    }
    return NULL;
}

static bool is_zero(const spmv_plan *plan, const void *scalar)
{
    const spmv_type part = type_part(plan->sums);
    return real_at(part, scalar, 0) == 0 && (!type_is_complex(plan->type) || real_at(part, scalar, 1) == 0);
}

static const double zeros[2] = {0, 0}; /* all bits 0, which is zero in every type */

struct plan_product plan_product_of(const spmv_plan *plan, const void *host_alpha, const void *x, const void *host_beta,
                                    void *y)
{
    const void *const beta = host_beta != NULL ? host_beta : zeros;
    return (struct plan_product){.alpha = host_alpha != NULL ? host_alpha : scalar_one(plan),
                                 .beta = beta,
                                 .beta_zero = is_zero(plan, beta),
                                 .x = x,
                                 .y = y};
}

spmv_status plan_multiply(const spmv_plan *plan, const struct plan_product *product)
{
    const bool behind = product->epilogue != NULL && (plan->method->can & METHOD_EPILOGUE) == 0;
    const spmv_status st = plan->method->apply(plan, product);
    return st != SPMV_OK || !behind ? st : epilogue_behind(plan, product->y, product->epilogue);
}

spmv_status plan_multiply_together(const spmv_plan *plan, struct plan_product product)
{
    const struct plan_ranks *ranks = plan->ranks;
    void *const own = (void *)product.x;
    const unsigned needs = METHOD_SUBSETS | (product.epilogue != NULL ? METHOD_EPILOGUE : 0);
    const bool split = (plan->method->can & needs) == needs && plan->a.rows > 0;
    spmv_status st = ranks->fetch_start(ranks->self, own, plan->vectors);
    product.x = plan_x_of(plan, own);
    product.subset = PLAN_INNER;
    if (st == SPMV_OK && split)
        st = plan_multiply(plan, &product);
    if (st == SPMV_OK)
        st = ranks->fetch_finish(ranks->self, own, plan->vectors);
    product.subset = split ? PLAN_EDGE : PLAN_ALL;
    return st != SPMV_OK || plan->a.rows == 0 ? st : plan_multiply(plan, &product);
}

/* Checks x and y of a product with at least one row. */
static spmv_status check_vectors(const spmv_plan *plan, const char *call, const void *x, const void *y)
{
    if (y == NULL || (x == NULL && plan->a.cols > 0))
        return context_fail(plan->ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL", call, y == NULL ? "y" : "x");
    if (x == y)
        return context_fail(plan->ctx, SPMV_ERROR_ARGUMENT, "%s: x and y are the same array", call);
    if (!plan_can_load(plan, x) || !plan_can_load(plan, y))
        return context_fail(plan->ctx, SPMV_ERROR_ARGUMENT, "%s: %s is not aligned to %zu bytes", call,
                            plan_can_load(plan, x) ? "y" : "x", spmv_type_size(plan->type));
    return SPMV_OK;
}

spmv_status spmv_apply(spmv_plan *plan, const void *host_alpha, const void *x, const void *host_beta, void *y)
{
    bool outer = false;
    if (plan == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (plan->a.rows == 0 && plan->ranks == NULL)
        return SPMV_OK;
    const struct plan_product product = plan_product_of(plan, host_alpha, x, host_beta, y);
    spmv_status st = context_hold(plan->ctx, &outer);
    if (st != SPMV_OK)
        return st;
    if (plan->a.rows > 0)
        st = check_vectors(plan, "spmv_apply", x, y);
    if (st == SPMV_OK)
        st = plan->ranks != NULL            ? plan_multiply_together(plan, product)
             : plan->by_columns.vectors > 0 ? by_columns_multiply(plan, &product)
                                            : plan_multiply(plan, &product);
    return context_release(plan->ctx, outer, st);
}

void spmv_epilogue_init(spmv_epilogue *epilogue, size_t size)
{
    const spmv_epilogue defaults = {.size = sizeof defaults};
    result_write(epilogue, size, &defaults, sizeof defaults);
}

static spmv_status check_epilogue(const spmv_plan *plan, const void *x, const void *y, const spmv_epilogue *e)
{
    spmv_context *ctx = plan->ctx;
    const bool has_rows = plan->a.rows > 0, sums = e->dot != NULL;
    if (plan_vectors(plan) != 1 || plan->x_stride != 1 || plan->y_stride != 1)
        return context_fail(
            ctx, SPMV_ERROR_UNSUPPORTED,
            "spmv_apply_with: the plan is for %d vectors with strides %lld and %lld, not for one vector",
            plan_vectors(plan), (long long)plan->by_columns.x_stride, (long long)plan->by_columns.y_stride);
    if (type_is_half(plan->type))
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "spmv_apply_with: not in type %s, only in f64, f32, c128, c64",
                            spmv_type_name(plan->type));
    if (has_rows && (e->w != NULL) != sums)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_apply_with: %s is NULL", sums ? "w" : "dot");
    if (e->z != NULL && (e->z == x || e->z == y || (sums && e->z == e->w)))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_apply_with: z and %s are the same array",
                            e->z == x   ? "x"
                            : e->z == y ? "y"
                                        : "w");
    if (sums && (e->dot == x || e->dot == y || e->dot == e->w || e->dot == e->z || e->dot == e->gamma))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_apply_with: dot overlaps another argument");
    const void *const arrays[] = {e->w, e->dot, e->gamma, e->z};
    static const char *const names[] = {"w", "dot", "gamma", "z"};
    for (int i = 0; i < 4; i++)
        if (!plan_can_load(plan, arrays[i]))
            return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_apply_with: %s is not aligned to %zu bytes", names[i],
                                spmv_type_size(plan->type));
    return SPMV_OK;
}

/* spmv_apply_with on a context that this thread holds. */
static spmv_status apply_with(spmv_plan *plan, const void *host_alpha, const void *x, const void *host_beta, void *y,
                              const spmv_epilogue *epilogue)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = plan->ctx;
    struct plan_product product = plan_product_of(plan, host_alpha, x, host_beta, y);
    spmv_epilogue e;
    spmv_epilogue_init(&e, sizeof e);
    if (epilogue != NULL && !options_read(&e, sizeof e, epilogue))
        return context_fail(
            ctx, SPMV_ERROR_ARGUMENT,
            "the epilogue has %zu bytes, this library expects %zu: initialize it with spmv_epilogue_init",
            epilogue->size, sizeof e);
    if (e.w == NULL && e.dot == NULL && e.z == NULL)
        return spmv_apply(plan, host_alpha, x, host_beta, y);
    if (plan->a.rows > 0)
        TRY(check_vectors(plan, "spmv_apply_with", x, y));
    TRY(check_epilogue(plan, x, y, &e));
    if (plan->ranks != NULL) {
        if (e.dot != NULL)
            return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "spmv_apply_with: no dot product of several ranks");
        product.epilogue = &e;
        return plan_multiply_together(plan, product);
    }
    if (plan->a.rows == 0) /* a dot product of no rows: all bits 0 */
        return e.dot == NULL ? SPMV_OK
                             : ctx->backend->map_index(ctx, SPMV_I32, zeros, NULL, e.dot,
                                                       (int64_t)spmv_type_size(plan->type) / 4);
    product.epilogue = &e;
    TRY(plan_multiply(plan, &product));
done:
    return st;
}

spmv_status spmv_apply_with(spmv_plan *plan, const void *host_alpha, const void *x, const void *host_beta, void *y,
                            const spmv_epilogue *epilogue)
{
    bool outer = false;
    if (plan == NULL)
        return SPMV_ERROR_ARGUMENT;
    const spmv_status st = context_hold(plan->ctx, &outer);
    if (st != SPMV_OK)
        return st;
    return context_release(plan->ctx, outer, apply_with(plan, host_alpha, x, host_beta, y, epilogue));
}

spmv_context *spmv_plan_context(const spmv_plan *plan)
{
    return plan != NULL ? plan->ctx : NULL;
}

spmv_status spmv_plan_describe(const spmv_plan *plan, spmv_plan_info *info, size_t size)
{
    const spmv_status st = result_begin(plan != NULL ? plan->ctx : NULL, "spmv_plan_describe", info, size);
    if (st != SPMV_OK)
        return st;
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
                                 .layout = plan->layout,
                                 .vectors = plan_vectors(plan),
                                 .value_type = plan->a.type,
                                 .x_stride = plan->by_columns.x_stride,
                                 .y_stride = plan->by_columns.y_stride,
                                 .x_layout = plan->by_columns.x ? SPMV_LAYOUT_COLUMNS : SPMV_LAYOUT_ROWS,
                                 .y_layout = plan->by_columns.y ? SPMV_LAYOUT_COLUMNS : SPMV_LAYOUT_ROWS};
    result_write(info, size, &full, sizeof full);
    return SPMV_OK;
}
