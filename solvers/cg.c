/* Conjugate gradients: the front. Checks once, picks a rung, and does around its recurrence what is the same for all:
 * the true residual, restarts from it, stagnation, which x is returned. The rungs: cg_1_textbook.c and on.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>

#include "backend.h"
#include "cg_internal.h"
#include "precond_internal.h"

/* All rungs; auto takes the first of a backend that supports the solve. */
static const struct cg_method *const methods[] = {
#ifdef SPMV_HAVE_CUDA
    &cg_persistent_cuda, &cg_graph,    &cg_fused_cuda,
#endif
    &cg_fused_omp,       &cg_textbook,
};

enum { METHODS = sizeof methods / sizeof *methods };

void *cg_scalar(const struct cg *cg, enum cg_scalar s)
{
    return cg->scalars + (size_t)s * spmv_type_size(cg->type);
}

void spmv_cg_options_init(spmv_cg_options *options, size_t size)
{
    const spmv_cg_options defaults = {.size = sizeof defaults, .rtol = 1e-8, .symmetry_check = SPMV_SYMMETRY_SAMPLED};
    result_write(options, size, &defaults, sizeof defaults);
}

const char *spmv_cg_method_name(spmv_backend backend, int index)
{
    for (int m = 0; m < METHODS && index >= 0 && (unsigned)backend <= SPMV_BACKEND_CUDA; m++)
        if ((methods[m]->backends & 1u << backend) != 0 && index-- == 0)
            return methods[m]->name;
    return NULL;
}

spmv_status cg_read_scalars(const struct cg *cg, enum cg_scalar first, int count, double *values)
{
    float f32[SCALARS];
    double f64[SCALARS];
    const bool narrow = cg->type == SPMV_F32;
    const spmv_status st = spmv_download(cg->ctx, cg_scalar(cg, first), narrow ? (void *)f32 : (void *)f64,
                                         count * (int64_t)spmv_type_size(cg->type));
    for (int i = 0; i < count && st == SPMV_OK; i++)
        values[i] = narrow ? (double)f32[i] : f64[i];
    return st;
}

spmv_status cg_norm(const struct cg *cg, const void *v, double *norm)
{
    spmv_status st = SPMV_OK;
    double square = 0;
    TRY(spmv_dot(cg->ctx, cg->type, v, v, cg_scalar(cg, SPARE), cg->n));
    TRY(cg_read_scalars(cg, SPARE, 1, &square));
    *norm = sqrt(square);
done:
    return st;
}

/* The constants 1 and -1 in the type, in host memory. */
static const void *plus_one(spmv_type type)
{
    static const double f64 = 1;
    static const float f32 = 1;
    return type == SPMV_F32 ? (const void *)&f32 : (const void *)&f64;
}

static const void *minus_one(spmv_type type)
{
    static const double f64 = -1;
    static const float f32 = -1;
    return type == SPMV_F32 ? (const void *)&f32 : (const void *)&f64;
}

spmv_status cg_residual(const struct cg *cg, void *to)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, cg->b, to, cg->n));
    TRY(spmv_apply(cg->plan, minus_one(cg->type), cg->x, plus_one(cg->type), to));
done:
    return st;
}

spmv_status cg_precondition(const struct cg *cg, const void *r, void *z)
{
    return spmv_preconditioner_apply(cg->precond, r, z);
}

/* The scalar SPARE = value. */
static spmv_status set_spare(const struct cg *cg, double value)
{
    const float narrow = (float)value;
    return spmv_upload(cg->ctx, cg->type == SPMV_F32 ? (const void *)&narrow : (const void *)&value,
                       cg_scalar(cg, SPARE), (int64_t)spmv_type_size(cg->type));
}

/* p += by * M^-1 r. q is overwritten. */
static spmv_status move_p(const struct cg *cg, double by)
{
    spmv_status st = SPMV_OK;
    const void *z = cg->r;
    if (cg->precond != NULL) {
        TRY(cg_precondition(cg, cg->r, cg->q));
        z = cg->q;
    }
    TRY(set_spare(cg, by));
    TRY(spmv_map_axpby(cg->ctx, cg->type, cg_scalar(cg, SPARE), z, NULL, cg->p, cg->n));
done:
    return st;
}

spmv_status cg_start(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, cg->x, cg->start_x, cg->n));
    if (cg->continues) /* p - M^-1 r */
        TRY(move_p(cg, -1));
    TRY(cg_residual(cg, cg->r));
    if (cg->continues) /* + M^-1 new r */
        TRY(move_p(cg, 1));
done:
    return st;
}

/* In the caller's units what is given in those of the recurrence, or a product of two such. */
static double told(const struct cg *cg, double v)
{
    return cg->scale != 0 ? v / cg->scale : v;
}

static double told_square(const struct cg *cg, double v)
{
    return told(cg, told(cg, v));
}

double cg_enough(const struct cg *cg)
{
    return cg_enough_from(cg->type, cg->result->tolerance, cg->start_residual);
}

spmv_status cg_tell(const struct cg *cg, double residual)
{
    const spmv_cg_options *o = cg->options;
    if (o->on_iteration == NULL || o->on_iteration(cg->result->iterations, residual, o->user) == 0)
        return SPMV_OK;
    return cg_fail_cancelled(cg);
}

spmv_status cg_fail_cancelled(const struct cg *cg)
{
    return context_fail(cg->ctx, SPMV_CANCELLED, "spmv_cg: cancelled by its callback at iteration %lld",
                        (long long)cg->result->iterations);
}

spmv_status cg_look_for_breakdown(const struct cg *cg)
{
    const long long k = (long long)cg->result->iterations;
    const double rr = told_square(cg, cg->rr), rz = told_square(cg, cg->rz), pq = told_square(cg, cg->pq);
    if (!isfinite(cg->rr) || (isfinite(cg->rz) && !isfinite(cg->pq)))
        return context_fail(cg->ctx, SPMV_ERROR_NOT_FINITE, "spmv_cg: r'r = %g, p'Ap = %g at iteration %lld", rr, pq,
                            k);
    if (!isfinite(cg->rz))
        return context_fail(cg->ctx, SPMV_ERROR_NOT_FINITE,
                            "spmv_cg: r'M^-1 r = %g (r'r = %g) at iteration %lld, of the preconditioner", rz, rr, k);
    if (cg->rz <= 0)
        return context_fail(
            cg->ctx, SPMV_ERROR_NOT_POSITIVE,
            "spmv_cg: r'M^-1 r = %g <= 0 (r'r = %g) at iteration %lld: the preconditioner is not positive definite", rz,
            rr, k);
    if (cg->pq <= 0)
        return context_fail(cg->ctx, SPMV_ERROR_NOT_POSITIVE,
                            "spmv_cg: p'Ap = %g <= 0 (r'r = %g) at iteration %lld: the matrix is not positive definite",
                            pq, rr, k);
    return SPMV_OK;
}

spmv_status cg_fail_limit(const struct cg *cg)
{
    return context_fail(cg->ctx, SPMV_ERROR_ITERATIONS,
                        "spmv_cg: the residual is %.3g after %lld iteration%s; the tolerance is %.3g",
                        told(cg, cg->result->recurrence_residual), (long long)cg->result->iterations,
                        cg->result->iterations == 1 ? "" : "s", told(cg, cg->result->tolerance));
}

spmv_status cg_fail_stagnation(const struct cg *cg)
{
    const spmv_cg_result *result = cg->result;
    return context_fail(
        cg->ctx, SPMV_ERROR_STAGNATION,
        "spmv_cg: the true residual stays at %.3g after %lld iteration%s and %lld restart%s; the tolerance is %.3g",
        told(cg, result->true_residual), (long long)result->iterations, result->iterations == 1 ? "" : "s",
        (long long)result->restarts, result->restarts == 1 ? "" : "s", told(cg, result->tolerance));
}

spmv_status cg_fail_vanishing(const struct cg *cg, double largest)
{
    return context_fail(cg->ctx, SPMV_ERROR_STAGNATION,
                        "spmv_cg: the largest element of b is %.3g, and squares of residuals vanish in %s: scale b",
                        largest, spmv_type_name(cg->info.type));
}

spmv_status cg_fail_overflow(const struct cg *cg)
{
    return context_fail(
        cg->ctx, SPMV_ERROR_NOT_FINITE,
        "spmv_cg: b - A x is not finite after %lld iterations: x or a product with it exceeds the range "
        "of %s: scale A or b",
        (long long)cg->result->iterations, spmv_type_name(cg->info.type));
}

/* Computes the true residual after the recurrence stopped with *stop_at. Takes back steps that made matters worse:
 * numbers that overflowed, a restart beyond what the type holds. *stop_at becomes SPMV_ERROR_NOT_FINITE where an
 * overflow explains the stop. A larger residual at the limit, or where A proves indefinite, stays: the method reduces
 * the energy norm of the error at each step, not the residual. */
static spmv_status settle(struct cg *cg, spmv_status *stop_at)
{
    spmv_status st = SPMV_OK;
    const spmv_status stop = *stop_at;
    double *residual = &cg->result->true_residual;
    if (!cg->knows_residual) {
        TRY(cg_residual(cg, cg->q));
        TRY(cg_norm(cg, cg->q, residual));
    }
    cg->knows_residual = false;
    if (!isfinite(*residual) && cg_may_overflow(stop))
        *stop_at = cg_fail_overflow(cg);
    const bool shrinks = stop == SPMV_OK || stop == SPMV_ERROR_NOT_FINITE;
    if (!isfinite(*residual) || (shrinks && cg->start_residual < *residual)) {
        TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, cg->start_x, cg->x, cg->n));
        *residual = cg->start_residual;
    }
done:
    return st;
}

/* The square of such a norm, and what it may grow to, overflows; not a number counts as that. */
static bool squares_overflow(spmv_type type, double norm)
{
    return !(norm <= (type == SPMV_F32 ? 0x1p40 : 0x1p480));
}

bool cg_squares_vanish(spmv_type type, double norm_b, double tolerance)
{
    const bool narrow = type == SPMV_F32;
    const double least = fmax(tolerance, (narrow ? 0x1p-48 : 0x1p-106) * norm_b); /* two unit roundoffs below */
    return least < (narrow ? 0x1p-56 : 0x1p-500);
}

/* b is 0. */
static spmv_status solve_zero(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_map_index(cg->ctx, cg->type, &(const double){0}, NULL, cg->x, cg->n)); /* all bits 0, also as a float */
    TRY(cg_tell(cg, 0));
done:
    return st;
}

/* *largest = max |v_i|; |v| into scratch. */
static spmv_status largest_element(const struct cg *cg, const void *v, void *scratch, double *largest)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_map(cg->ctx, SPMV_MAP_ABS, cg->type, v, scratch, cg->n));
    TRY(spmv_reduce(cg->ctx, SPMV_MAX, cg->type, scratch, cg_scalar(cg, SPARE), cg->n));
    TRY(cg_read_scalars(cg, SPARE, 1, largest));
done:
    return st;
}

/* Whether b has to be scaled for squares to fit: then cg->scale is by what. ran: the rung measures, so it has run
 * already, to this stop; x is then put back to where it was. */
static spmv_status find_scale(struct cg *cg, bool ran, spmv_status stop)
{
    spmv_status st = SPMV_OK;
    spmv_cg_result *result = cg->result;
    const bool narrow = cg->type == SPMV_F32;
    /* p'Ap and r'M^-1 r are still smaller than r'r where A is small, or M^-1: a small b is scaled unless all went well
     */
    const bool small = (!ran || stop != SPMV_OK) && result->norm_b < (narrow ? 0x1p-10 : 0x1p-200);
    double largest = 0;
    int exponent = 0;
    if (cg->scale != 0 || (result->norm_b != 0 && !small && !squares_overflow(cg->type, result->norm_b) &&
                           !cg_squares_vanish(cg->type, result->norm_b, result->tolerance)))
        return SPMV_OK;
    TRY(largest_element(cg, cg->b, cg->q, &largest));
    if (!(largest > 0 && isfinite(largest)))
        return SPMV_OK;
    frexp(largest, &exponent);
    const int most = narrow ? 126 : 1022; /* so that the scale and what undoes it are normal numbers */
    exponent = exponent > most ? most : exponent < -most ? -most : exponent;
    if (exponent == 0)
        return SPMV_OK;
    cg->scale = ldexp(1, -exponent);
    if (ran && result->norm_b != 0 && !cg->options->zero_start)
        TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, cg->start_x, cg->x, cg->n));
done:
    return st;
}

/* What a rung that does not measure leaves to the front, before it runs. */
static spmv_status measure(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    spmv_cg_result *result = cg->result;
    if (cg->options->zero_start)
        TRY(spmv_map_index(cg->ctx, cg->type, &(const double){0}, NULL, cg->x, cg->n)); /* all bits 0, also floats */
    TRY(cg_norm(cg, cg->b, &result->norm_b));
    /* where b'b overflows, rtol would allow anything */
    result->tolerance = fmax(isfinite(result->norm_b) ? cg->options->rtol * result->norm_b : 0, cg->options->atol);
done:
    return st;
}

/* Runs the recurrence, and again from the true residual as long as that helps. */
static spmv_status solve(struct cg *cg, int64_t max_iterations)
{
    spmv_status st = SPMV_OK;
    spmv_cg_result *result = cg->result;
    const bool measures = cg->method->measures;
    const double scale = cg->scale;
    cg->start_residual = INFINITY;           /* until a rung knows it */
    if (!measures || cg->type == SPMV_F32) { /* whose range is so small that this is worth a wait */
        TRY(measure(cg));
        TRY(find_scale(cg, false, SPMV_OK));
    }
    for (bool first = true; cg->scale == scale; first = false) {
        spmv_status stop = measures || result->norm_b != 0 ? cg->method->run(cg, max_iterations) : SPMV_OK;
        st = stop;
        if (st != SPMV_OK && spmv_status_class(st) < 7)
            goto done;
        if (measures && first && stop != SPMV_CANCELLED) {
            TRY(find_scale(cg, true, stop));
            st = stop;
            if (cg->scale != scale)
                break;
        }
        if (result->norm_b == 0)
            return solve_zero(cg);
        TRY(settle(cg, &stop));
        st = stop;
        if (cg_has_arrived(stop, result))
            st = SPMV_OK;
        if (st != SPMV_OK || result->true_residual <= result->tolerance)
            goto done;
        if (!(result->true_residual <= 0.5 * cg->start_residual)) {
            st = cg_fail_stagnation(cg);
            goto done;
        }
        result->restarts++;
    }
done:
    return st;
}

static spmv_status check_vectors(const struct cg *cg)
{
    const spmv_plan_info *info = &cg->info;
    const spmv_cg_options *o = cg->options;
    if (info->rows != info->cols)
        return context_fail(cg->ctx, SPMV_ERROR_NOT_SQUARE, "spmv_cg: the matrix has %lld rows and %lld columns",
                            (long long)info->rows, (long long)info->cols);
    if (type_is_complex(info->type))
        return context_fail(cg->ctx, SPMV_ERROR_TYPE, "spmv_cg: not in complex types, and the plan is one in %s",
                            spmv_type_name(info->type));
    if (info->x_stride != info->vectors || info->y_stride != info->vectors)
        return context_fail(cg->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: the plan is for vectors, %d of them, with strides %lld and %lld: there are none "
                            "here",
                            info->vectors, (long long)info->x_stride, (long long)info->y_stride);
    if (info->rows > 0 && (cg->b == NULL || cg->x == NULL || cg->b == cg->x))
        return context_fail(cg->ctx, SPMV_ERROR_ARGUMENT, "spmv_cg: %s",
                            cg->b == NULL   ? "b is NULL"
                            : cg->x == NULL ? "x is NULL"
                                            : "b and x are the same array");
    if (!(o->rtol >= 0) || !(o->atol >= 0) || o->max_iterations < 0)
        return context_fail(cg->ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_cg: rtol %g, atol %g, max_iterations %lld: none may be negative", o->rtol, o->atol,
                            (long long)o->max_iterations);
    if (o->symmetry_check < SPMV_SYMMETRY_TRUST || o->symmetry_check > SPMV_SYMMETRY_SAMPLED)
        return context_fail(cg->ctx, SPMV_ERROR_ARGUMENT, "spmv_cg: symmetry_check is %d", o->symmetry_check);
    return SPMV_OK;
}

static spmv_status check_inner(const struct cg *cg, spmv_plan_info *inner)
{
    spmv_plan *plan = cg->options->inner;
    const spmv_plan_info *info = &cg->info;
    *inner = *info;
    if (plan == NULL)
        return SPMV_OK;
    if (spmv_plan_context(plan) != cg->ctx)
        return context_fail(cg->ctx, SPMV_ERROR_ARGUMENT, "spmv_cg: the inner plan is of another context");
    const spmv_status st = spmv_plan_describe(plan, inner, sizeof *inner);
    if (st != SPMV_OK)
        return st;
    if (info->type != SPMV_F64 || inner->type != SPMV_F32)
        return context_fail(cg->ctx, SPMV_ERROR_TYPE,
                            "spmv_cg: inner iterations are in f32 for a plan of f64, not in %s for %s",
                            spmv_type_name(inner->type), spmv_type_name(info->type));
    if (inner->rows != info->rows || inner->cols != info->cols || inner->nnz != info->nnz)
        return context_fail(cg->ctx, SPMV_ERROR_SIZE,
                            "spmv_cg: the inner plan is of %lld x %lld with %lld nonzeros, the plan of %lld x %lld "
                            "with %lld: not of one matrix",
                            (long long)inner->rows, (long long)inner->cols, (long long)inner->nnz,
                            (long long)info->rows, (long long)info->cols, (long long)info->nnz);
    if (inner->vectors != 1 || inner->x_stride != 1 || inner->y_stride != 1 || info->vectors != 1)
        return context_fail(cg->ctx, SPMV_ERROR_UNSUPPORTED, "spmv_cg: inner iterations are for one right-hand side");
    return SPMV_OK;
}

/* info: of the plan that the recurrence runs with. */
static spmv_status check_precond(const struct cg *cg, const spmv_plan_info *info)
{
    const spmv_preconditioner *m = cg->precond;
    if (m == NULL)
        return SPMV_OK;
    if (precond_context(m) != cg->ctx)
        return context_fail(cg->ctx, SPMV_ERROR_ARGUMENT, "spmv_cg: the preconditioner %s is of another context",
                            precond_name(m));
    if (precond_type(m) != info->type)
        return context_fail(cg->ctx, SPMV_ERROR_TYPE, "spmv_cg: the preconditioner %s is of type %s, the plan of %s",
                            precond_name(m), spmv_type_name(precond_type(m)), spmv_type_name(info->type));
    if (precond_rows(m) != cg->info.rows)
        return context_fail(cg->ctx, SPMV_ERROR_SIZE, "spmv_cg: the preconditioner %s is for %lld rows, A has %lld",
                            precond_name(m), (long long)precond_rows(m), (long long)cg->info.rows);
    return SPMV_OK;
}

static spmv_status fail_no_method(const struct cg *cg, const char *name)
{
    const spmv_backend backend = cg->ctx->backend->id;
    char list[128] = "";
    size_t used = 0;
    const char *known = NULL;
    for (int i = 0; (known = spmv_cg_method_name(backend, i)) != NULL && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, ", %s", known);
    return context_fail(cg->ctx, SPMV_ERROR_METHOD, "spmv_cg: no method %s on backend %s; there are: auto%s", name,
                        spmv_backend_name(backend), list);
}

/* cg->method: the one of that name, or the backend's first that can. Why: what forbade the one before it in the table,
 * or what is said of it there. */
static spmv_status choose(struct cg *cg)
{
    const char *name = cg->options->method, *why = NULL;
    const bool named = name != NULL && strcmp(name, "auto") != 0;
    char *text = cg->result->why;
    const size_t size = sizeof cg->result->why;
    for (int m = 0; m < METHODS && cg->method == NULL; m++) {
        if ((methods[m]->backends & 1u << cg->ctx->backend->id) == 0 || (named && strcmp(methods[m]->name, name) != 0))
            continue;
        const spmv_status st = methods[m]->supports(cg);
        if (st == SPMV_OK) {
            cg->method = methods[m];
        } else if (named || st != SPMV_ERROR_UNSUPPORTED) {
            return st;
        } else {
            why = spmv_last_error(cg->ctx);
            why += strncmp(why, "spmv_cg: ", 9) == 0 ? 9 : 0;
            snprintf(text, size, "%.*s", (int)size - 1, why);
        }
    }
    if (cg->method == NULL)
        return fail_no_method(cg, named ? name : "auto");
    cg->result->method = cg->method->name;
    cg->ctx->error[0] = '\0'; /* what others were refused for is no failure */
    if (named || why == NULL)
        snprintf(text, size, "%s", named ? "asked for by name" : cg->method->why);
    return SPMV_OK;
}

spmv_status cg_open(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    void *scalars = NULL;
    cg->n = cg->info.rows;
    cg->type = cg->info.type;
    const int64_t size = (int64_t)spmv_type_size(cg->type), bytes = cg->n * size;
    if (cg->options->inner != NULL && !cg->keeps)
        cg->method = &cg_inner; /* which chooses */
    else
        TRY(choose(cg));
    TRY(context_lend(cg->ctx, bytes, &cg->r));
    TRY(context_lend(cg->ctx, bytes, &cg->p));
    TRY(context_lend(cg->ctx, bytes, &cg->q));
    TRY(context_lend(cg->ctx, bytes, &cg->start_x));
    TRY(context_lend(cg->ctx, SCALARS * size, &scalars));
    cg->scalars = scalars;
    TRY(cg->method->prepare(cg));
done:
    return st;
}

void cg_close(struct cg *cg)
{
    if (cg->method != NULL)
        cg->method->release(cg);
    cg->method = NULL;
    void *const lent[] = {cg->r, cg->p, cg->q, cg->start_x, cg->scalars};
    for (size_t i = 0; i < sizeof lent / sizeof *lent; i++)
        context_take_back(cg->ctx, lent[i]);
    cg->r = cg->p = cg->q = cg->start_x = cg->scalars = NULL;
}

/* The caller's options, and the scale that his function is not to see. */
struct asked {
    const spmv_cg_options *options;
    double scale;
};

static int tell_unscaled(int64_t iteration, double residual, void *user)
{
    const struct asked *asked = user;
    return asked->options->on_iteration(iteration, residual / asked->scale, asked->options->user);
}

/* to = factor * from, which do not overlap. */
static spmv_status scaled_copy(const struct cg *cg, double factor, const void *from, void *to)
{
    spmv_status st = SPMV_OK;
    TRY(set_spare(cg, factor));
    TRY(spmv_map_index(cg->ctx, cg->type, &(const double){0}, NULL, to, cg->n)); /* all bits 0, also as a float */
    TRY(spmv_map_axpby(cg->ctx, cg->type, cg_scalar(cg, SPARE), from, NULL, to, cg->n));
done:
    return st;
}

/* x *= factor; q holds x as it was. */
static spmv_status scale_x(const struct cg *cg, double factor)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, cg->x, cg->q, cg->n));
    TRY(scaled_copy(cg, factor, cg->q, cg->x));
done:
    return st;
}

/* x and what is known of it, in the caller's units. */
static spmv_status undo_scale(struct cg *cg, double scale)
{
    spmv_cg_result *result = cg->result;
    result->norm_b /= scale;
    result->tolerance /= scale;
    result->recurrence_residual /= scale;
    result->true_residual /= scale;
    return scale_x(cg, 1 / scale);
}

/* The solution, whose largest element is largest / scale, does not fit into the type: x = 0 goes back, with the
 * residual of that. p'Ap <= 0 is then an underflow rather than a property of A. */
static spmv_status give_up_solution(const struct cg *cg, double largest, double scale, spmv_status stop)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_map_index(cg->ctx, cg->type, &(const double){0}, NULL, cg->x, cg->n)); /* all bits 0, also as a float */
    cg->result->true_residual = cg->result->norm_b;
    if (stop != SPMV_ERROR_NOT_FINITE && stop != SPMV_CANCELLED)
        st = context_fail(cg->ctx, SPMV_ERROR_NOT_FINITE,
                          "spmv_cg: the solution exceeds the range of %s: its largest element is about 1e%+.0f; x is "
                          "set to 0; scale A or b",
                          spmv_type_name(cg->type), floor(log10(largest) - log10(scale) + 0.5));
    else
        st = stop;
done:
    return st;
}

/* From the scaled solution to the x that goes back, and its true residual: elements that became 0 or subnormal in the
 * caller's units show in that residual. */
static spmv_status settle_scaled(struct cg *cg, const void *b, double scale, spmv_status stop)
{
    spmv_status st = SPMV_OK;
    spmv_cg_result *result = cg->result;
    const double most = cg->type == SPMV_F32 ? FLT_MAX : DBL_MAX;
    double largest = 0;
    TRY(undo_scale(cg, scale));
    TRY(largest_element(cg, cg->q, cg->r, &largest)); /* undo_scale leaves the scaled x in q */
    cg->b = b;
    cg->scale = 0;
    if (isfinite(largest) && largest / scale > most)
        return give_up_solution(cg, largest, scale, stop);
    TRY(cg_residual(cg, cg->q));
    TRY(scaled_copy(cg, scale, cg->q, cg->r));
    TRY(cg_norm(cg, cg->r, &result->true_residual));
    result->true_residual /= scale;
    st = stop;
    if (stop == SPMV_OK && !isfinite(result->true_residual))
        st = cg_fail_overflow(cg);
    else if (stop == SPMV_OK && !(result->true_residual <= result->tolerance))
        st = cg_fail_stagnation(cg);
done:
    return st;
}

/* The solve of scale A x = scale b: powers of two change no bit but of what would leave the type's range. x = 0 is the
 * better start where squares of the other one's residual do not fit. */
static spmv_status solve_scaled(struct cg *cg, struct asked *asked, spmv_cg_options *o, int64_t max_iterations)
{
    spmv_status st = SPMV_OK;
    const void *b = cg->b;
    const double scale = cg->scale;
    double start = 0;
    void *scaled = NULL;
    asked->scale = scale;
    o->atol = asked->options->atol * scale;
    cg->result->iterations = cg->result->restarts = 0;
    cg->knows_residual = false;
    TRY(context_lend(cg->ctx, cg->n * (int64_t)spmv_type_size(cg->type), &scaled));
    cg->b = scaled;
    TRY(cg_open(cg));
    TRY(scaled_copy(cg, scale, b, scaled));
    if (!o->zero_start) {
        TRY(scale_x(cg, scale));
        TRY(cg_residual(cg, cg->r));
        TRY(cg_norm(cg, cg->r, &start));
        o->zero_start = !isnan(start) && squares_overflow(cg->type, start);
    }
    const spmv_status stop = solve(cg, max_iterations);
    st = stop;
    if (st == SPMV_OK || spmv_status_class(st) >= 7)
        st = settle_scaled(cg, b, scale, stop);
    else
        undo_scale(cg, scale); /* of as much as still works: the caller is told of the first failure */
done:
    cg_close(cg);
    cg->b = b;
    cg->scale = 0;
    context_take_back(cg->ctx, scaled);
    return st;
}

/* From options that are valid, for a plan of one vector. */
static spmv_status solve_one(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    struct asked asked = {cg->options, 1};
    spmv_cg_options o = *cg->options;
    const int64_t max_iterations = o.max_iterations > 0 ? o.max_iterations : max_i64(100, 10 * cg->info.rows);
    if (cg->info.rows == 0)
        return cg_tell(cg, 0);
    if (o.on_iteration != NULL) {
        o.on_iteration = tell_unscaled;
        o.user = &asked;
    }
    cg->options = &o;
    TRY(cg_open(cg));
    st = solve(cg, max_iterations);
    if (cg->scale != 0) { /* not done, only found that it must be */
        cg_close(cg);
        st = solve_scaled(cg, &asked, &o, max_iterations);
    }
done:
    cg_close(cg);
    cg->options = asked.options;
    return st;
}

/* The checks, then the solve, one or several. */
static spmv_status solve_all(struct cg *cg, spmv_cg_result *results)
{
    spmv_status st = SPMV_OK;
    spmv_plan_info recurrence;
    TRY(check_vectors(cg));
    TRY(check_inner(cg, &recurrence));
    TRY(check_precond(cg, &recurrence));
    for (int v = 0; v < cg->info.vectors && cg->precond != NULL; v++)
        snprintf(results[v].precond, sizeof results[v].precond, "%.*s", (int)sizeof results[v].precond - 1,
                 precond_name(cg->precond));
    if (cg->precond != NULL && precond_is_identity(cg->precond))
        cg->precond = NULL;
    if (cg->options->symmetry_check == SPMV_SYMMETRY_SAMPLED)
        TRY(cg_check_symmetry(cg));
    if (cg->info.vectors > 1)
        return cg_solve_several(cg, results);
    TRY(solve_one(cg));
done:
    for (int v = 0; v < cg->info.vectors; v++)
        results[v].status = st;
    return st;
}

/* A result before the solve. */
static const spmv_cg_result unsolved = {
    .size = sizeof unsolved, .status = SPMV_ERROR_ARGUMENT, .method = "", .precond = "none"};

spmv_status spmv_cg(spmv_plan *plan, const void *b, void *x, const spmv_cg_options *options, spmv_cg_result *result,
                    size_t size)
{
    spmv_status st = SPMV_OK;
    if (plan == NULL) {
        result_write(result, size, &unsolved, sizeof unsolved);
        return SPMV_ERROR_ARGUMENT;
    }
    spmv_context *ctx = spmv_plan_context(plan);
    spmv_cg_options o;
    struct cg cg = {.ctx = ctx, .plan = plan, .b = b, .x = x, .options = &o};
    spmv_cg_result *results = NULL;
    TRY(spmv_plan_describe(plan, &cg.info, sizeof cg.info));
    TRY(host_alloc(ctx, cg.info.vectors * (int64_t)sizeof *results, "conjugate gradients", (void **)&results));
    for (int v = 0; v < cg.info.vectors; v++)
        results[v] = unsolved;
    cg.result = results;
    spmv_cg_options_init(&o, sizeof o);
    if (options != NULL && !options_read(&o, sizeof o, options)) {
        st = context_fail(ctx, SPMV_ERROR_ARGUMENT,
                          "cg options of %zu bytes do not fit this library's %zu: fill them with spmv_cg_options_init",
                          options->size, sizeof o);
    } else {
        cg.precond = o.precond;
        st = solve_all(&cg, results);
    }
    for (int v = 0; v < cg.info.vectors && result != NULL; v++)
        result_write((char *)result + (size_t)v * size, size, &results[v], sizeof *results);
done:
    host_free(results);
    return st;
}
