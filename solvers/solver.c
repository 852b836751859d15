/* The solver of a matrix: owns the plan, the preconditioner and what they borrow, and calls the
 * method (cg.c).
 *
 * The solver holds A as plain CSR in the context's memory: the caller's arrays, or a copy of arrays
 * in host memory. The plan borrows it, and the preconditioner is made from it, also again from new
 * values. So there is one copy of the pattern, whatever the plan makes of it. With the option inner
 * there is a second array of values, in f32, under the same pattern.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "backend.h"
#include "cg_internal.h"
#include "plan_internal.h"
#include "precond_internal.h"

enum { RUNG_NAME = 32 };

struct spmv_solver {
    spmv_context *ctx;
    spmv_solver_options options; /* strings and structs that it points to are in this struct */
    spmv_preconditioner_options precond_options;
    char precond_name[PRECOND_NAME], rung[RUNG_NAME];
    const char *why;    /* of the method */
    spmv_csr a, narrow; /* in the context's memory; narrow: values in f32, for inner */
    /* what the solver owns of a and narrow */
    void *row_ptr, *col, *val, *narrow_val;
    int64_t bytes; /* of these */
    spmv_plan *plan, *inner;
    spmv_preconditioner *precond; /* NULL: could not be made */
    spmv_status failed;           /* why it could not be made, and the message */
    char sentence[512];
    spmv_cg_result *results; /* one per right-hand side */
    double seconds;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void spmv_solver_options_init(spmv_solver_options *options, size_t size)
{
    const spmv_solver_options defaults = {
        .size = sizeof defaults, .vectors = 1, .rtol = 1e-8, .symmetry_check = SPMV_SYMMETRY_SAMPLED};
    result_write(options, size, &defaults, sizeof defaults);
}

static bool is_auto(const char *name)
{
    return name == NULL || strcmp(name, "auto") == 0;
}

/* ------------------------------------------------------------- checks */

static spmv_status check_rung(spmv_context *ctx, const char *rung)
{
    char list[128] = "";
    const char *name = NULL;
    for (int i = 0; (name = spmv_cg_method_name(ctx->backend->id, i)) != NULL; i++) {
        if (strcmp(name, rung) == 0)
            return SPMV_OK;
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, ", %s", name);
    }
    return context_fail(ctx, SPMV_ERROR_METHOD,
                        "spmv_solver_create: unknown rung \"%.64s\" on backend %s; there are: auto%s", rung,
                        spmv_backend_name(ctx->backend->id), list);
}

/* What can be checked before the plan exists. */
static spmv_status check_arguments(spmv_context *ctx, const spmv_csr *a, const spmv_solver_options *o)
{
    const spmv_status st = plan_check_view(ctx, "spmv_solver_create", a);
    if (st != SPMV_OK)
        return st;
    if (a->rows != a->cols)
        return context_fail(ctx, SPMV_ERROR_NOT_SQUARE, "spmv_solver_create: the matrix has %lld rows and %lld columns",
                            (long long)a->rows, (long long)a->cols);
    if ((a->val != NULL && type_is_complex(a->type)) || type_is_complex(o->type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_solver_create: complex types are not supported");
    if (!is_auto(o->method) && strcmp(o->method, "cg") != 0)
        return context_fail(ctx, SPMV_ERROR_METHOD, "spmv_solver_create: unknown method \"%.64s\"; there are: auto, cg",
                            o->method);
    return is_auto(o->rung) ? SPMV_OK : check_rung(ctx, o->rung);
}

/* ------------------------------------------------------------- the matrix */

/* Allocates memory that the solver owns. */
static spmv_status own(spmv_solver *s, int64_t bytes, void **memory)
{
    const spmv_status st = context_alloc(s->ctx, bytes, memory);
    if (st == SPMV_OK)
        s->bytes += bytes;
    return st;
}

/* Copies a host array into memory that the solver owns. */
static spmv_status copy_in(spmv_solver *s, const void *host, int64_t bytes, void **copy)
{
    const spmv_status st = own(s, bytes, copy);
    return st != SPMV_OK || bytes == 0 ? st : spmv_upload(s->ctx, host, *copy, bytes);
}

/* Sets s->a: the arrays of a in the context's memory. Row offsets of a copy have 32 bits if they
 * fit, so that the plan need not convert them. */
static spmv_status take_matrix(spmv_solver *s, const spmv_csr *a)
{
    spmv_status st = SPMV_OK;
    int32_t *offsets = NULL;
    s->a = *a;
    s->a.memory = SPMV_MEMORY_CONTEXT;
    if (a->memory == SPMV_MEMORY_CONTEXT)
        return SPMV_OK;
    if (a->row_ptr_bits == 64 && a->nnz <= INT32_MAX) {
        TRY(host_alloc(s->ctx, (a->rows + 1) * 4, "row offsets", (void **)&offsets));
        for (int64_t i = 0; i <= a->rows; i++)
            offsets[i] = (int32_t)offset_at(a->row_ptr, 64, i);
        s->a.row_ptr_bits = 32;
    }
    TRY(copy_in(s, offsets != NULL ? offsets : a->row_ptr, (a->rows + 1) * (s->a.row_ptr_bits / 8), &s->row_ptr));
    TRY(copy_in(s, a->col, a->nnz * (int64_t)sizeof *a->col, &s->col));
    if (a->val != NULL)
        TRY(copy_in(s, a->val, a->nnz * (int64_t)spmv_type_size(a->type), &s->val));
    s->a.row_ptr = s->row_ptr;
    if (a->nnz > 0) { /* else col and val stay as they are, since NULL means a pattern */
        s->a.col = s->col;
        s->a.val = s->val;
    }
done:
    host_free(offsets);
    return st;
}

/* Writes the values of A to s->narrow_val, rounded to f32. */
static spmv_status narrow_values(spmv_solver *s)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = s->ctx;
    const int64_t n = s->a.nnz;
    const bool device = ctx->backend->id == SPMV_BACKEND_CUDA;
    double *copy = NULL;
    float *rounded = NULL;
    TRY(host_alloc(ctx, n * (int64_t)sizeof *rounded, "the matrix in f32", (void **)&rounded));
    if (device) {
        TRY(host_alloc(ctx, n * (int64_t)sizeof *copy, "values", (void **)&copy));
        TRY(spmv_download(ctx, s->a.val, copy, n * (int64_t)sizeof *copy));
    }
    const double *const values = device ? copy : s->a.val;
    for (int64_t k = 0; k < n; k++) {
        rounded[k] = (float)values[k];
        if (isfinite(values[k]) && !isfinite(rounded[k])) {
            st = context_fail(ctx, SPMV_ERROR_LIMIT, "spmv_solver: the value of entry %lld, %g, is too large for f32",
                              (long long)k, values[k]);
            goto done;
        }
    }
    TRY(spmv_upload(ctx, rounded, s->narrow_val, n * (int64_t)sizeof *rounded));
done:
    host_free(copy);
    host_free(rounded);
    return st;
}

/* ------------------------------------------------------------- plans and preconditioner */

static spmv_status make_plan(const spmv_solver *s, const spmv_csr *a, spmv_type type, bool updates, spmv_plan **plan)
{
    spmv_plan_options o;
    spmv_plan_options_init(&o, sizeof o);
    o.type = type;
    o.vectors = s->options.vectors;
    o.update_values = updates && a->val != NULL;
    /* no digit depends on this */
    if (s->ctx->backend->id == SPMV_BACKEND_CUDA && o.vectors == 1)
        o.compression = SPMV_COMPRESSION_VALUES;
    return spmv_plan_create(s->ctx, a, &o, plan);
}

/* Makes the plan for the recurrence in f32. */
static spmv_status make_inner(spmv_solver *s, bool updates)
{
    spmv_status st = SPMV_OK;
    spmv_plan_info info;
    TRY(spmv_plan_describe(s->plan, &info, sizeof info));
    if (info.type != SPMV_F64)
        return context_fail(s->ctx, SPMV_ERROR_TYPE, "spmv_solver_create: inner iterations need the type f64, not %s",
                            spmv_type_name(info.type));
    if (info.vectors != 1)
        return context_fail(s->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_solver_create: inner iterations support only one right-hand side");
    s->narrow = s->a;
    if (s->a.val != NULL && s->a.type == SPMV_F64 && s->a.nnz > 0) {
        TRY(own(s, s->a.nnz * (int64_t)sizeof(float), &s->narrow_val));
        TRY(narrow_values(s));
        s->narrow.val = s->narrow_val;
    }
    s->narrow.type = SPMV_F32;
    TRY(make_plan(s, &s->narrow, SPMV_F32, updates, &s->inner));
done:
    return st;
}

/* Makes the preconditioner from the present values, in the type of the recurrence. */
static spmv_status make_precond(spmv_solver *s)
{
    spmv_plan *const plan = s->inner != NULL ? s->inner : s->plan;
    spmv_plan_info info;
    spmv_status st = spmv_plan_describe(plan, &info, sizeof info);
    if (st != SPMV_OK)
        return st;
    s->precond_options.type = info.type;
    s->precond_options.plan = info.vectors == 1 ? plan : NULL;
    st = spmv_preconditioner_create(s->ctx, s->options.precond, s->inner != NULL ? &s->narrow : &s->a,
                                    &s->precond_options, &s->precond);
    s->failed = st;
    snprintf(s->sentence, sizeof s->sentence, "%s", spmv_last_error(s->ctx));
    return st;
}

/* ------------------------------------------------------------- making and destroying */

/* Copies the caller's options, and what they point to. */
static spmv_status take_options(spmv_solver *s, const spmv_solver_options *o)
{
    s->options = *o;
    s->options.precond_options = NULL;
    s->options.method = NULL;
    s->why = is_auto(o->method) ? "the only method for symmetric positive definite matrices" : "requested by name";
    if (o->precond != NULL) {
        snprintf(s->precond_name, sizeof s->precond_name, "%s", o->precond);
        s->options.precond = s->precond_name;
    }
    if (o->rung != NULL) {
        snprintf(s->rung, sizeof s->rung, "%s", o->rung);
        s->options.rung = s->rung;
    }
    spmv_preconditioner_options_init(&s->precond_options, sizeof s->precond_options);
    return options_take(s->ctx, "preconditioner", &s->precond_options, sizeof s->precond_options, o->precond_options);
}

/* updates: the values may be replaced later. */
static spmv_status create(spmv_context *ctx, const spmv_csr *a, const spmv_solver_options *options, bool updates,
                          spmv_solver **solver)
{
    const double begin = now();
    spmv_status st = SPMV_OK;
    spmv_solver *s = NULL;
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    TRY(options_take(ctx, "solver", &o, sizeof o, options));
    TRY(check_arguments(ctx, a, &o));
    TRY(host_alloc(ctx, sizeof *s, "a solver", (void **)&s));
    memset(s, 0, sizeof *s);
    s->ctx = ctx;
    TRY(take_options(s, &o));
    TRY(take_matrix(s, a));
    TRY(make_plan(s, &s->a, o.type, updates, &s->plan));
    if (o.inner != 0)
        TRY(make_inner(s, updates));
    TRY(make_precond(s));
    TRY(host_alloc(ctx, o.vectors * (int64_t)sizeof *s->results, "results of a solver", (void **)&s->results));
    s->seconds = now() - begin;
done:
    if (st != SPMV_OK) {
        spmv_solver_destroy(s);
        s = NULL;
    }
    *solver = s;
    return st;
}

spmv_status spmv_solver_create(spmv_context *ctx, const spmv_csr *a, const spmv_solver_options *options,
                               spmv_solver **solver)
{
    const spmv_status st = context_need(ctx, "spmv_solver_create", "solver", solver);
    return st != SPMV_OK ? st : create(ctx, a, options, true, solver);
}

void spmv_solver_destroy(spmv_solver *s)
{
    if (s == NULL)
        return;
    spmv_preconditioner_destroy(s->precond);
    spmv_plan_destroy(s->inner);
    spmv_plan_destroy(s->plan);
    void *const memory[] = {s->row_ptr, s->col, s->val, s->narrow_val};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        spmv_free(s->ctx, memory[i]);
    context_freed(s->ctx);
    host_free(s->results);
    host_free(s);
}

/* ------------------------------------------------------------- new values */

spmv_status spmv_solver_update_values(spmv_solver *s, const void *values)
{
    const double begin = now();
    spmv_status st = SPMV_OK;
    if (s == NULL)
        return SPMV_ERROR_ARGUMENT;
    spmv_context *const ctx = s->ctx;
    if (s->a.val == NULL)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "spmv_solver_update_values: a pattern has no values");
    st = context_need(ctx, "spmv_solver_update_values", "values", values);
    if (st == SPMV_OK)
        st = spmv_synchronize(ctx); /* refuses a capture before anything changes */
    if (st != SPMV_OK)
        return st;
    const bool renews = s->precond != NULL && s->precond_options.update_values != 0 && precond_renews(s->precond);
    if (!renews) { /* it may use the plan */
        spmv_preconditioner_destroy(s->precond);
        s->precond = NULL;
    }
    if (s->val != NULL)
        TRY(ctx->backend->map(ctx, SPMV_MAP_COPY, SPMV_I32, values, s->val,
                              s->a.nnz * (int64_t)(spmv_type_size(s->a.type) / 4)));
    else
        s->a.val = values;
    TRY(spmv_plan_update_values(s->plan, s->a.val));
    if (s->narrow_val != NULL)
        TRY(narrow_values(s));
    else
        s->narrow.val = s->a.val;
    if (s->inner != NULL)
        TRY(spmv_plan_update_values(s->inner, s->narrow.val));
    TRY(renews ? spmv_preconditioner_update_values(s->precond, s->inner != NULL ? s->narrow.val : s->a.val)
               : make_precond(s));
    s->seconds = now() - begin;
done:
    if (st != SPMV_OK) {
        s->failed = st;
        snprintf(s->sentence, sizeof s->sentence, "%s", spmv_last_error(ctx));
        spmv_preconditioner_destroy(s->precond);
        s->precond = NULL;
    }
    return st;
}

/* ------------------------------------------------------------- solving */

/* The initial value of a result. */
static const spmv_solver_result unsolved = {.size = sizeof unsolved,
                                            .status = SPMV_ERROR_ARGUMENT,
                                            .method = "",
                                            .rung = "",
                                            .precond = "none",
                                            .error_estimate = -1};

/* Writes the result of right-hand side v, if there is room. */
static void give_result(spmv_solver_result *result, size_t size, int v, const spmv_solver_result *full)
{
    if (result != NULL)
        result_write((char *)result + (size_t)v * size, size, full, sizeof *full);
}

static void give_results(const spmv_solver *s, double seconds, spmv_solver_result *result, size_t size)
{
    spmv_preconditioner_info info;
    spmv_solver_result full = unsolved;
    if (result == NULL || spmv_preconditioner_describe(s->precond, &info, sizeof info) != SPMV_OK)
        return;
    full.setup_seconds = s->seconds;
    full.solve_seconds = seconds;
    snprintf(full.why_method, sizeof full.why_method, "%s", s->why);
    snprintf(full.why_precond, sizeof full.why_precond, "%s", info.why);
    for (int v = 0; v < s->options.vectors; v++) {
        const spmv_cg_result *const r = &s->results[v];
        full.iterations = r->iterations;
        full.restarts = r->restarts;
        full.norm_b = r->norm_b;
        full.tolerance = r->tolerance;
        full.recurrence_residual = r->recurrence_residual;
        full.true_residual = r->true_residual;
        full.error_estimate = r->error_estimate;
        full.status = r->status;
        full.method = "cg";
        full.rung = r->method;
        memcpy(full.precond, r->precond, sizeof full.precond);
        memcpy(full.why_rung, r->why, sizeof full.why_rung);
        give_result(result, size, v, &full);
    }
}

spmv_status spmv_solver_solve(spmv_solver *s, const void *b, void *x, spmv_solver_result *result, size_t size)
{
    if (s == NULL) {
        give_result(result, size, 0, &unsolved);
        return SPMV_ERROR_ARGUMENT;
    }
    if (s->precond == NULL) {
        spmv_solver_result full = unsolved;
        full.status = s->failed;
        for (int v = 0; v < s->options.vectors; v++)
            give_result(result, size, v, &full);
        return context_fail(s->ctx, s->failed, "%s", s->sentence);
    }
    const spmv_solver_options *const o = &s->options;
    spmv_cg_options cg;
    spmv_cg_options_init(&cg, sizeof cg);
    cg.rtol = o->rtol;
    cg.atol = o->atol;
    cg.max_iterations = o->max_iterations;
    cg.zero_start = o->zero_start;
    cg.on_iteration = o->on_iteration;
    cg.on_iterate = o->on_iterate;
    cg.user = o->user;
    cg.method = o->rung;
    cg.precond = s->precond;
    cg.symmetry_check = o->symmetry_check;
    cg.inner = s->inner;
    for (int v = 0; v < o->vectors; v++) /* if spmv_cg has no memory for results */
        s->results[v] =
            (spmv_cg_result){.status = SPMV_ERROR_MEMORY, .method = "", .precond = "none", .error_estimate = -1};
    const double begin = now();
    const spmv_status st = spmv_cg(s->plan, b, x, &cg, s->results, sizeof *s->results);
    give_results(s, now() - begin, result, size);
    return st;
}

spmv_status spmv_solver_describe(const spmv_solver *s, spmv_solver_info *info, size_t size)
{
    spmv_solver_info full = {.size = sizeof full};
    spmv_plan_info plan;
    spmv_preconditioner_info precond;
    if (s == NULL) {
        result_write(info, size, &full, sizeof full);
        return SPMV_ERROR_ARGUMENT;
    }
    const spmv_status st = context_need(s->ctx, "spmv_solver_describe", "info", info);
    if (st != SPMV_OK)
        return st;
    full.method = "cg";
    full.why = s->why;
    full.seconds = s->seconds;
    full.plan = s->plan;
    full.precond = s->precond;
    full.bytes = s->bytes;
    if (spmv_plan_describe(s->plan, &plan, sizeof plan) == SPMV_OK)
        full.bytes += plan.bytes;
    if (spmv_plan_describe(s->inner, &plan, sizeof plan) == SPMV_OK)
        full.bytes += plan.bytes;
    if (spmv_preconditioner_describe(s->precond, &precond, sizeof precond) == SPMV_OK)
        full.bytes += precond.bytes;
    result_write(info, size, &full, sizeof full);
    return SPMV_OK;
}

/* The result of a solve that could not begin, for each right-hand side. */
static void give_failure(const spmv_solver_options *options, spmv_status st, spmv_solver_result *result, size_t size)
{
    spmv_solver_result full = unsolved;
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    full.status = st;
    give_result(result, size, 0, &full);
    if (options != NULL && options_read(&o, sizeof o, options))
        for (int v = 1; v < o.vectors; v++)
            give_result(result, size, v, &full);
}

spmv_status spmv_solve(spmv_context *ctx, const spmv_csr *a, const void *b, void *x, const spmv_solver_options *options,
                       spmv_solver_result *result, size_t size)
{
    spmv_solver *solver = NULL;
    spmv_csr borrowed;
    if (a != NULL && ctx != NULL && ctx->backend->id != SPMV_BACKEND_CUDA) {
        borrowed = *a;
        borrowed.memory = a->memory == SPMV_MEMORY_HOST ? SPMV_MEMORY_CONTEXT : a->memory;
        a = &borrowed;
    }
    spmv_status st = ctx == NULL ? SPMV_ERROR_ARGUMENT : create(ctx, a, options, false, &solver);
    if (st != SPMV_OK) {
        give_failure(options, st, result, size);
        return st;
    }
    st = spmv_solver_solve(solver, b, x, result, size);
    spmv_solver_destroy(solver);
    return st;
}
