/* Shared by all Krylov methods, see krylov.h: checks, the true residual, restarts from it,
 * stagnation, and the choice of the returned x.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/krylov/krylov.h"

#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>

#include "core/backend.h"
#include "core/plural.h"
#include "formats/matrix_internal.h"
#include "product/plan_internal.h"
#include "solvers/krylov/krylov_columns.h"
#include "solvers/precond/precond_internal.h"

/* Bytes of a real number. */
static int64_t size_of(const struct krylov *s)
{
    return (int64_t)spmv_type_size(s->part);
}

/* ------------------------------------------------------------- checks */

spmv_status krylov_check_plan(const char *call, const spmv_plan *plan, const spmv_plan_info *info)
{
    spmv_context *const ctx = plan->ctx;
    if (plan->ranks == NULL) {
        const spmv_status st = csr_check_square(ctx, call, info->rows, info->cols);
        if (st != SPMV_OK)
            return st;
    }
    if (type_is_half(info->type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: the plan has type %s; solvers compute in f64, f32, c128, c64",
                            call, spmv_type_name(info->type));
    if (type_is_complex(info->type) && info->vectors != 1)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "%s: several right-hand sides at once are not supported with type %s", call,
                            spmv_type_name(info->type));
    if (info->vectors > 1 && (info->x_layout != SPMV_LAYOUT_ROWS || info->y_layout != SPMV_LAYOUT_ROWS))
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%s: the plan has %d vectors stored by columns, not by rows",
                            call, info->vectors);
    if (info->x_stride != info->vectors || info->y_stride != info->vectors)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "%s: the plan has %d vectors with strides %lld and %lld; strides are not supported", call,
                            info->vectors, (long long)info->x_stride, (long long)info->y_stride);
    return SPMV_OK;
}

spmv_status krylov_check_options(spmv_context *ctx, const char *call, const struct krylov_options *o)
{
    return OPTIONS_CHECK(ctx, call, {"rtol", o->rtol, 0, INFINITY}, {"atol", o->atol, 0, INFINITY},
                         {"max_iterations", (double)o->max_iterations, 0, INFINITY},
                         {"zero_start", o->zero_start, 0, 1},
                         {"symmetry_check", o->symmetry_check, SPMV_SYMMETRY_TRUST, SPMV_SYMMETRY_SAMPLED});
}

spmv_status krylov_check(const struct krylov *s)
{
    const spmv_status st = krylov_check_plan(s->call, s->plan, &s->info);
    if (st != SPMV_OK)
        return st;
    if (s->info.rows > 0 && (s->b == NULL || s->x == NULL || s->b == s->x))
        return context_fail(s->ctx, SPMV_ERROR_ARGUMENT, "%s: %s", s->call,
                            s->b == NULL   ? "b is NULL"
                            : s->x == NULL ? "x is NULL"
                                           : "b and x are the same array");
    return SPMV_OK;
}

static spmv_status check_precond(const struct krylov *s, spmv_type type)
{
    const spmv_preconditioner *m = s->precond;
    if (m == NULL)
        return SPMV_OK;
    if (precond_context(m) != s->ctx)
        return context_fail(s->ctx, SPMV_ERROR_ARGUMENT, "%s: the preconditioner %s belongs to another context",
                            s->call, precond_name(m));
    if (precond_type(m) != type_part(type))
        return context_fail(s->ctx, SPMV_ERROR_TYPE, "%s: the preconditioner %s has type %s, the plan %s", s->call,
                            precond_name(m), spmv_type_name(precond_type(m)), spmv_type_name(type));
    if (precond_rows(m) != s->info.rows * type_parts(type))
        return context_fail(s->ctx, SPMV_ERROR_SIZE, "%s: the preconditioner %s is for %lld rows, A has %lld%s",
                            s->call, precond_name(m), (long long)precond_rows(m), (long long)s->info.rows,
                            type_is_complex(type) ? " complex ones, which need twice as many real ones" : "");
    return SPMV_OK;
}

void krylov_name_precond(spmv_cg_result *result, const spmv_preconditioner *m)
{
    snprintf(result->precond, sizeof result->precond, "%.*s", (int)sizeof result->precond - 1, precond_name(m));
}

spmv_status krylov_take_precond(struct krylov *s, spmv_type type)
{
    const spmv_status st = check_precond(s, type);
    if (st != SPMV_OK || s->precond == NULL)
        return st;
    for (int v = 0; v < s->info.vectors; v++)
        krylov_name_precond(&s->result[v], s->precond);
    if (precond_is_identity(s->precond))
        s->precond = NULL;
    return SPMV_OK;
}

/* ------------------------------------------------------------- workspace */

spmv_status krylov_open(struct krylov *s)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = s->ctx;
    s->n = s->info.rows;
    s->columns = s->info.vectors;
    s->type = s->info.type;
    s->part = type_part(s->type);
    s->count = s->n * s->columns * type_parts(s->type);
    const int64_t k = s->columns, bytes = s->count * size_of(s);
    if (s->max_iterations == 0)
        s->max_iterations = max_i64(100, 10 * krylov_rows(s));
    TRY(context_lend(ctx, bytes, &s->r));
    TRY(context_lend(ctx, bytes, &s->q));
    TRY(context_lend(ctx, bytes, &s->start_x));
    if (s->on_iterate != NULL)
        TRY(context_lend(ctx, bytes, &s->seen));
    TRY(context_lend(ctx, k * size_of(s), &s->cells));
    TRY(host_alloc(ctx, 3 * k * size_of(s), s->call, &s->values));
    TRY(host_alloc(ctx, k * (int64_t)sizeof *s->norms, s->call, (void **)&s->norms));
    TRY(host_alloc(ctx, k * (int64_t)sizeof *s->flags, s->call, (void **)&s->flags));
    TRY(host_alloc(ctx, k * (int64_t)sizeof *s->column, s->call, (void **)&s->column));
    memset(s->column, 0, (size_t)k * sizeof *s->column);
    if (k > 1) {
        TRY(context_lend(ctx, s->n * size_of(s), &s->one));
        TRY(context_lend(ctx, s->n * (int64_t)sizeof k, &s->index));
        TRY(spmv_map_index(ctx, SPMV_I64, &(const int64_t){0}, &k, s->index, s->n));
    }
done:
    return st;
}

void krylov_close(struct krylov *s)
{
    void *const lent[] = {s->r, s->q, s->start_x, s->seen, s->cells, s->one, s->index};
    for (size_t i = 0; i < sizeof lent / sizeof *lent; i++)
        context_take_back(s->ctx, lent[i]);
    void *const own[] = {s->values, s->norms, s->flags, s->column, s->host};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        host_free(own[i]);
}

/* ------------------------------------------------------------- ranks */

int64_t krylov_rows(const struct krylov *s)
{
    return s->plan->ranks != NULL ? s->plan->ranks->rows : s->info.rows;
}

/* The bytes of other ranks in front of a vector's own elements. */
static int64_t bytes_before(const struct krylov *s, spmv_type part)
{
    return s->plan->ranks != NULL
               ? s->plan->ranks->before * s->info.vectors * type_parts(s->info.type) * (int64_t)spmv_type_size(part)
               : 0;
}

spmv_status krylov_lend(const struct krylov *s, spmv_type part, int64_t count, void **vector)
{
    const struct plan_ranks *ranks = s->plan->ranks;
    const int64_t parts = s->info.vectors * type_parts(s->info.type);
    const int64_t others = ranks != NULL ? max_i64(1, ranks->before + ranks->after) * parts : 0;
    const spmv_status st = context_lend(s->ctx, (count + others) * (int64_t)spmv_type_size(part), vector);
    if (st == SPMV_OK && ranks != NULL)
        *vector = (char *)*vector + bytes_before(s, part);
    return st;
}

void krylov_take_back(const struct krylov *s, spmv_type part, void *vector)
{
    context_take_back(s->ctx, vector != NULL ? (char *)vector - bytes_before(s, part) : NULL);
}

spmv_status krylov_dot(const struct krylov *s, const void *a, const void *b, void *dot)
{
    const struct plan_ranks *ranks = s->plan->ranks;
    return ranks != NULL ? ranks->dot(ranks->self, s->type, a, b, dot)
                         : spmv_dot(s->ctx, s->part, a, b, dot, s->count / s->columns);
}

/* ------------------------------------------------------------- scalars and columns */

spmv_status krylov_read(const struct krylov *s, const void *from, int count, double *to)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_download(s->ctx, from, s->values, count * size_of(s)));
    for (int i = 0; i < count; i++)
        to[i] = real_at(s->part, s->values, i);
done:
    return st;
}

spmv_status krylov_set_cell(const struct krylov *s, double value)
{
    const union real cell = real_scalar(s->part, value);
    return spmv_upload(s->ctx, &cell, s->cells, size_of(s));
}

spmv_status krylov_take(const struct krylov *s, const void *vectors, int v, void *to)
{
    return spmv_gather(s->ctx, s->type, (const char *)vectors + v * size_of(s), s->count - v, s->index, 64, to, s->n);
}

spmv_status krylov_give(const struct krylov *s, const void *from, int v, void *vectors)
{
    return spmv_scatter(s->ctx, s->type, from, s->index, 64, (char *)vectors + v * size_of(s), s->count - v, s->n);
}

spmv_status krylov_norms(const struct krylov *s, const void *u, double *norms)
{
    spmv_status st = SPMV_OK;
    void *scratch = NULL;
    if (s->columns > 1) {
        TRY(context_lend(s->ctx, columns_scratch(s->ctx, s->plan->ranks, s->n, s->columns), &scratch));
        TRY(columns_run(s->ctx, COLUMNS_DOT,
                        &(const struct columns_job){.type = s->type,
                                                    .n = s->n,
                                                    .columns = s->columns,
                                                    .r = (void *)u,
                                                    .q = u,
                                                    .scratch = scratch,
                                                    .sums = norms,
                                                    .ranks = s->plan->ranks}));
    } else {
        TRY(krylov_dot(s, u, u, s->cells));
        TRY(krylov_read(s, s->cells, 1, norms));
    }
    for (int v = 0; v < s->columns; v++)
        norms[v] = sqrt(norms[v]);
done:
    context_take_back(s->ctx, scratch);
    return st;
}

/* Replaces the columns of x selected by which with those of from (NULL: zeros). */
static spmv_status replace_columns(const struct krylov *s, const bool *which, const void *from)
{
    int chosen = 0;
    for (int v = 0; v < s->columns; v++)
        chosen += which[v];
    if (chosen == 0)
        return SPMV_OK;
    if (chosen == s->columns)
        return from != NULL ? spmv_map(s->ctx, SPMV_MAP_COPY, s->part, from, s->x, s->count)
                            : spmv_map_index(s->ctx, s->part, &(const double){0}, NULL, s->x, s->count);
    return columns_copy(s->ctx, &(const struct columns_transfer){.type = s->type,
                                                                 .n = s->n,
                                                                 .from_stride = s->columns,
                                                                 .to_stride = s->columns,
                                                                 .columns = s->columns,
                                                                 .width = s->columns,
                                                                 .which = which,
                                                                 .from = from,
                                                                 .to = s->x});
}

/* ------------------------------------------------------------- residuals */

spmv_status krylov_residual(const struct krylov *s, void *to)
{
    spmv_status st = SPMV_OK;
    spmv_c128 minus = {0}, one = {0}; /* scalars of the type, real or complex */
    real_set(s->part, &minus, 0, -1);
    real_set(s->part, &one, 0, 1);
    TRY(spmv_map(s->ctx, SPMV_MAP_COPY, s->part, s->b, to, s->count));
    TRY(spmv_apply(s->plan, &minus, s->x, &one, to));
done:
    return st;
}

spmv_status krylov_start(const struct krylov *s)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_map(s->ctx, SPMV_MAP_COPY, s->part, s->x, s->start_x, s->count));
    TRY(krylov_residual(s, s->r));
done:
    return st;
}

double krylov_unscaled(const struct krylov *s, double value)
{
    return s->scale != 0 ? value / s->scale : value;
}

double krylov_unscaled_square(const struct krylov *s, double value)
{
    return krylov_unscaled(s, krylov_unscaled(s, value));
}

/* ------------------------------------------------------------- the callback */

/* Calls on_iterate; returns whether it cancels. */
static bool show_iterate(const struct krylov *s, int64_t iteration, double residual)
{
    const void *x = NULL;
    return krylov_unscaled_x(s, &x) != SPMV_OK || s->on_iterate(iteration, residual, x, s->user) != 0;
}

spmv_status krylov_tell(struct krylov *s, int64_t iteration, double residual)
{
    residual = krylov_unscaled(s, residual);
    if ((s->on_iteration != NULL && s->on_iteration(iteration, residual, s->user) != 0) ||
        (s->on_iterate != NULL && show_iterate(s, iteration, residual)) ||
        context_poll(s->ctx, s->call, s->info.nnz + s->count) != SPMV_OK) {
        s->told = SPMV_CANCELLED;
        s->told_at = iteration;
    }
    return s->told;
}

spmv_status krylov_tell_running(struct krylov *s)
{
    double most = 0;
    for (int v = 0; v < s->columns; v++) {
        const double residual = s->column[v].residual;
        if (s->column[v].stop != COLUMN_RUNS)
            continue;
        most = residual <= most ? most : residual;
        if (s->note != NULL && s->note[v].count++ < s->note[v].most)
            s->note[v].residual[s->note[v].count - 1] = residual;
    }
    return krylov_tell(s, s->iterations, most);
}

/* ------------------------------------------------------------- statuses and their messages */

static spmv_status fail_cancelled(const struct krylov *s)
{
    return context_fail(s->ctx, SPMV_CANCELLED, "%s: cancelled by its callback at iteration %lld", s->call,
                        (long long)s->told_at);
}

/* Of column v, with those of the solves before. */
static long long all_iterations(const struct krylov *s, int v)
{
    return (long long)(s->iterations_before + s->result[v].iterations);
}

/* Names the true residual, which must be set. */
static spmv_status fail_limit(const struct krylov *s, int v)
{
    const spmv_cg_result *result = &s->result[v];
    const long long iterations = all_iterations(s, v);
    return context_fail(s->ctx, SPMV_ERROR_ITERATIONS,
                        "%s: the residual is %.3g after %lld iteration%s; the tolerance is %.3g", s->call,
                        krylov_unscaled(s, result->true_residual), iterations, iterations == 1 ? "" : "s",
                        krylov_unscaled(s, result->tolerance));
}

spmv_status krylov_fail_stagnation(const struct krylov *s, int v)
{
    const spmv_cg_result *result = &s->result[v];
    const long long iterations = all_iterations(s, v);
    return context_fail(
        s->ctx, SPMV_ERROR_STAGNATION,
        "%s: the true residual stays at %.3g after %lld iteration%s and %lld restart%s; the tolerance is %.3g", s->call,
        krylov_unscaled(s, result->true_residual), iterations, iterations == 1 ? "" : "s", (long long)result->restarts,
        result->restarts == 1 ? "" : "s", krylov_unscaled(s, result->tolerance));
}

static spmv_status fail_vanishing(const struct krylov *s, double largest)
{
    return context_fail(s->ctx, SPMV_ERROR_STAGNATION,
                        "%s: the largest element of b is %.3g, so squares of residuals underflow in %s: scale b",
                        s->call, largest, spmv_type_name(s->type));
}

spmv_status krylov_fail_overflow(const struct krylov *s, int v)
{
    return context_fail(s->ctx, SPMV_ERROR_NOT_FINITE,
                        "%s: b - A x is not finite after %lld iteration%s: x or a product with it exceeds the range of "
                        "%s: scale A or b",
                        s->call, all_iterations(s, v), plural(all_iterations(s, v)), spmv_type_name(s->type));
}

void krylov_collect(struct krylov *s)
{
    for (int v = 0; v < s->columns; v++)
        if (krylov_is_open(s, v)) {
            s->result[v].iterations += s->column[v].iterations;
            s->result[v].recurrence_residual = s->column[v].residual;
        }
}

spmv_status krylov_verdict(const struct krylov *s, int v)
{
    switch (s->column[v].stop) {
    case COLUMN_RUNS:
        return s->failed != SPMV_OK ? context_fail(s->ctx, s->failed, "%s", s->sentence) : fail_cancelled(s);
    case COLUMN_BROKEN:
        return s->fail_broken(s, v);
    case COLUMN_LIMIT:
        return fail_limit(s, v);
    default:
        return SPMV_OK;
    }
}

/* Sets the status of the column. Keeps the message of the first column, by number, that failed. */
static void close_column(struct krylov *s, int v, spmv_status status)
{
    s->result[v].status = status;
    if (status != SPMV_OK && s->note != NULL)
        snprintf(s->note[v].sentence, sizeof s->note[v].sentence, "%s", spmv_last_error(s->ctx));
    if (status != SPMV_OK && (s->first < 0 || v < s->first)) {
        s->first = v;
        snprintf(s->first_sentence, sizeof s->first_sentence, "%s", spmv_last_error(s->ctx));
    }
}

/* Returns the status of the first failed column with its message, which names the column among
 * several. */
static spmv_status fail_first(const struct krylov *s)
{
    const spmv_status st = s->result[s->first].status;
    const char *text = s->first_sentence;
    const size_t call = strlen(s->call);
    if (s->columns == 1)
        return context_fail(s->ctx, st, "%s", text);
    if (strncmp(text, s->call, call) == 0 && strncmp(text + call, ": ", 2) == 0)
        text += call + 2;
    return context_fail(s->ctx, st, "%s: right-hand side %d of %d: %s", s->call, s->first + 1, s->columns,
                        *text != '\0' ? text : spmv_status_text(st));
}

/* ------------------------------------------------------------- the solve */

/* The front's part before a run, for solvers that do not measure. */
static spmv_status measure(struct krylov *s)
{
    spmv_status st = SPMV_OK;
    if (s->zero_start) /* all bits 0, also as floats */
        TRY(spmv_map_index(s->ctx, s->part, &(const double){0}, NULL, s->x, s->count));
    TRY(krylov_norms(s, s->b, s->norms));
    for (int v = 0; v < s->columns; v++) {
        spmv_cg_result *result = &s->result[v];
        result->norm_b = s->norms[v];
        /* if b'b overflows, a tolerance from rtol would accept anything */
        result->tolerance = fmax(isfinite(s->norms[v]) ? s->rtol * s->norms[v] : 0, s->atol);
    }
done:
    return st;
}

/* The norm of column v of an array in host memory, and its largest modulus. Squares may be out of
 * range, so elements are divided by the largest. */
static double norm_of(const struct krylov *s, const void *numbers, int v, double *largest)
{
    double square = 0;
    *largest = 0;
    for (int64_t i = v; i < s->count; i += s->columns)
        *largest = fmax(*largest, fabs(real_at(s->part, numbers, i)));
    if (*largest == 0)
        return 0;
    for (int64_t i = v; i < s->count; i += s->columns) {
        const double part = real_at(s->part, numbers, i) / *largest;
        square += part * part;
    }
    return *largest * sqrt(square);
}

/* Solves the columns whose solution is x = 0: b = 0. Among several columns, also those for which
 * squares of residuals underflow, as far as atol allows; a single column is scaled instead. */
static spmv_status solve_zeros(struct krylov *s)
{
    spmv_status st = SPMV_OK;
    int zeros = 0;
    for (int v = 0; v < s->columns; v++) {
        const double norm = s->result[v].norm_b;
        s->flags[v] = norm == 0 || (s->columns > 1 && isfinite(norm) &&
                                    krylov_squares_vanish(s->part, norm, s->result[v].tolerance));
        zeros += s->flags[v];
    }
    if (zeros == 0)
        return SPMV_OK;
    TRY(replace_columns(s, s->flags, NULL));
    if (s->columns > 1 && s->host == NULL)
        TRY(host_alloc(s->ctx, s->count * size_of(s), s->call, &s->host));
    if (s->columns > 1)
        TRY(spmv_download(s->ctx, s->b, s->host, s->count * size_of(s)));
    if (zeros == s->columns)
        krylov_tell(s, 0, 0);
    for (int v = 0; v < s->columns; v++) {
        spmv_cg_result *result = &s->result[v];
        double largest = 0;
        if (!s->flags[v])
            continue;
        result->error_estimate = result->norm_b == 0 ? 0 : -1; /* x = 0 is exact */
        if (s->columns > 1) {
            result->norm_b = result->recurrence_residual = result->true_residual = norm_of(s, s->host, v, &largest);
            result->tolerance = fmax(s->rtol * result->norm_b, s->atol);
        }
        close_column(s, v,
                     result->true_residual > result->tolerance ? fail_vanishing(s, largest)
                     : s->told != SPMV_OK                      ? fail_cancelled(s)
                                                               : SPMV_OK);
    }
done:
    return st;
}

/* Prepares a run of the columns without a status. Returns false if there are none. */
static bool open_columns(struct krylov *s)
{
    bool any = false;
    for (int v = 0; v < s->columns; v++) {
        const bool runs = krylov_is_open(s, v);
        s->column[v] = (struct krylov_column){.tolerance = s->result[v].tolerance,
                                              /* until the run computes it */
                                              .start_residual = INFINITY,
                                              .limit = s->max_iterations - s->result[v].iterations,
                                              .stop = runs ? COLUMN_RUNS : COLUMN_DONE};
        any = any || runs;
    }
    return any;
}

/* Whether a run that ended like this must return to its start. This undoes steps that made the
 * residual worse: overflow, or a restart beyond the precision of the type. Without most_growth, a
 * larger residual at the limit or with an indefinite A is kept, since a solver may reduce another
 * norm than that of the residual. */
static bool must_return(const struct krylov *s, spmv_status stop, double start, double residual)
{
    if (!isfinite(residual))
        return true;
    if (stop == SPMV_OK || stop == SPMV_ERROR_NOT_FINITE)
        return start < residual;
    if (s->most_growth == 0 || stop == SPMV_CANCELLED)
        return false;
    return residual > start * (stop == SPMV_ERROR_ITERATIONS     ? s->most_growth
                               : stop == SPMV_ERROR_NOT_POSITIVE ? s->indefinite_growth
                                                                 : 1);
}

/* Sets the status of column v, or none if it must restart, from its true residual. Returns whether
 * x returns to its value at the start of the run. */
static bool settle_column(struct krylov *s, int v, double residual)
{
    spmv_cg_result *result = &s->result[v];
    const double start = s->column[v].start_residual;
    spmv_status stop = krylov_verdict(s, v);
    /* Overflow is the cause: p'Ap <= 0 of numbers near the ends of the range says nothing about
     * A. */
    if (!isfinite(residual) && (stop == SPMV_OK || stop == SPMV_ERROR_NOT_POSITIVE))
        stop = krylov_fail_overflow(s, v);
    const bool back = must_return(s, stop, start, residual);
    result->true_residual = back ? start : residual;
    result->error_estimate = back ? -1 : result->error_estimate;
    const bool arrived = result->true_residual <= result->tolerance;
    if ((stop == SPMV_OK || stop == SPMV_ERROR_BREAKDOWN || stop == SPMV_ERROR_INCONSISTENT) && !arrived) {
        if (s->told == SPMV_OK && s->failed == SPMV_OK && result->true_residual <= 0.5 * start) {
            result->restarts++;
            return back;
        }
        if (stop == SPMV_OK)
            stop = s->told != SPMV_OK ? fail_cancelled(s) : krylov_fail_stagnation(s, v);
    } else if (arrived &&
               (stop == SPMV_ERROR_ITERATIONS || stop == SPMV_ERROR_STAGNATION || stop == SPMV_ERROR_NOT_FINITE ||
                stop == SPMV_ERROR_BREAKDOWN || stop == SPMV_ERROR_INCONSISTENT)) {
        stop = SPMV_OK; /* the run stopped early, but x is good enough */
    }
    if (stop == SPMV_ERROR_ITERATIONS)
        fail_limit(s, v);
    close_column(s, v, stop);
    return back;
}

/* Computes the true residuals of the columns that ran, and settles them. */
static spmv_status settle(struct krylov *s)
{
    spmv_status st = SPMV_OK;
    krylov_collect(s);
    if (!s->knows_residual) {
        TRY(krylov_residual(s, s->q));
        TRY(krylov_norms(s, s->q, s->norms));
    }
    for (int v = 0; v < s->columns; v++)
        s->flags[v] =
            krylov_is_open(s, v) && settle_column(s, v, s->knows_residual ? s->result[v].true_residual : s->norms[v]);
    s->knows_residual = false;
    TRY(replace_columns(s, s->flags, s->start_x));
done:
    return st;
}

/* Solves, or sets wanted_scale (for one right-hand side). */
static spmv_status solve(struct krylov *s)
{
    spmv_status st = SPMV_OK;
    s->first = -1;
    s->iterations = s->iterations_before;
    s->wanted_scale = 0;
    s->knows_residual = false;
    s->from_zero = s->zero_start;
    for (int v = 0; v < s->columns; v++) {
        s->result[v].status = SPMV_ERROR_ARGUMENT; /* until it is settled */
        s->result[v].iterations = s->result[v].restarts = 0;
        s->result[v].error_estimate = -1;
    }
    /* f32 has so small a range that checking first is worth a wait */
    if (!s->measures || s->part == SPMV_F32) {
        TRY(measure(s));
        TRY(krylov_find_scale(s, false, false));
        if (s->wanted_scale != 0)
            goto done;
        TRY(solve_zeros(s));
    }
    for (bool first = true; open_columns(s); first = false) {
        s->failed = s->run(s);
        s->from_zero = false;
        TRY(spmv_status_class(s->failed) < 7 ? s->failed : SPMV_OK);
        snprintf(s->sentence, sizeof s->sentence, "%s", spmv_last_error(s->ctx));
        if (s->measures && first && s->told == SPMV_OK) {
            TRY(krylov_find_scale(s, true, s->column->stop == COLUMN_DONE));
            if (s->wanted_scale != 0)
                goto done;
            TRY(solve_zeros(s));
            if (!krylov_is_open(s, 0))
                break;
        }
        TRY(settle(s));
    }
    if (s->first >= 0)
        st = fail_first(s);
done:
    return st;
}

spmv_status krylov_solve(struct krylov *s)
{
    spmv_status st = solve(s);
    const bool scaled = st == SPMV_OK && s->wanted_scale != 0;
    if (scaled)
        st = krylov_solve_scaled(s, solve);
    for (int v = 0; v < s->columns; v++)
        if (scaled || krylov_is_open(s, v))
            s->result[v].status = st;
    return st;
}

spmv_status krylov_solve_empty(struct krylov *s)
{
    const spmv_status st = krylov_tell(s, 0, 0) != SPMV_OK ? fail_cancelled(s) : SPMV_OK;
    for (int v = 0; v < s->info.vectors; v++)
        s->result[v].status = st;
    return st;
}
