/* Conjugate gradients for several right-hand sides at once: as many recurrences side by side, one product with A for
 * all, so the matrix is read once an iteration. A column that is done stands still while the others go on.
 *
 * Vectors are matrices of n rows and k columns, row by row, as the plan has them. On omp the region of
 * cg_2_fused_omp.c runs them, on cuda the kernels of cg_several_cuda.cuh. The textbook does so on every backend and
 * with every preconditioner, by public calls: it keeps its vectors column after column, each as if it were alone, and
 * only p and q = A p take the other form, by a scatter and a gather a column. A column that stands still is not
 * touched. Its scalars are divided on the host. Vector passes an iteration and column beside the product: the
 * textbook's 10, and 2 x 2 to change the form, and those of an index.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>

#include "backend.h"
#include "cg_region.h"
#include "precond_internal.h"

struct several {
    struct cg *cg;
    int k;
    int64_t count; /* rows times k */
    spmv_cg_result *result;
    struct cg_column *column;
    double *now;      /* norms, and what goes to cells or comes from there: 2 k */
    void *values;     /* the same in the type */
    void *cells;      /* 2 k scalars in the context's memory */
    void *host, *old; /* host memory: count elements, for columns that are replaced */
    void *index;      /* i k, i < n, 64 bits: where a column's elements lie behind its first */
    void *one;        /* a column: n elements */
    /* the textbook's, column after column, a stride apart; z = M^-1 r, NULL without M */
    void *x, *r, *p, *q, *z;
    int64_t stride;
    const struct cg_side_by_side *way; /* NULL: the textbook */
    struct cg_region region;
    spmv_status failed; /* the preconditioner, in this run, with its sentence: of the columns that ran */
    char sentence[400];
};

/* Scalar number i, 0 <= i < 2 k. */
static void *cell(const struct several *s, int i)
{
    return (char *)s->cells + (size_t)i * spmv_type_size(s->cg->type);
}

/* Column v of those that lie one after the other. */
static void *column_of(const struct several *s, void *vectors, int v)
{
    return (char *)vectors + (size_t)(v * s->stride) * spmv_type_size(s->cg->type);
}

/* to = column v of vectors, which lie row by row. */
static spmv_status take(const struct several *s, const void *vectors, int v, void *to)
{
    const struct cg *cg = s->cg;
    return spmv_gather(cg->ctx, cg->type, (const char *)vectors + (size_t)v * spmv_type_size(cg->type), s->count - v,
                       s->index, 64, to, cg->n);
}

/* Column v of vectors, which lie row by row, = from. */
static spmv_status give(const struct several *s, const void *from, int v, void *vectors)
{
    const struct cg *cg = s->cg;
    return spmv_scatter(cg->ctx, cg->type, from, s->index, 64, (char *)vectors + (size_t)v * spmv_type_size(cg->type),
                        s->count - v, cg->n);
}

/* now = the first count cells; waits. */
static spmv_status read_cells(const struct several *s, int count)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    const float *f32 = s->values;
    const double *f64 = s->values;
    TRY(spmv_download(cg->ctx, s->cells, s->values, count * (int64_t)spmv_type_size(cg->type)));
    for (int i = 0; i < count; i++)
        s->now[i] = cg->type == SPMV_F32 ? (double)f32[i] : f64[i];
done:
    return st;
}

/* The first count cells = now. */
static spmv_status write_cells(const struct several *s, int count)
{
    const struct cg *cg = s->cg;
    float *f32 = s->values;
    double *f64 = s->values;
    for (int i = 0; i < count; i++) {
        if (cg->type == SPMV_F32)
            f32[i] = (float)s->now[i];
        else
            f64[i] = s->now[i];
    }
    return spmv_upload(cg->ctx, s->values, s->cells, count * (int64_t)spmv_type_size(cg->type));
}

/* now = the norms of all columns of u, which lie row by row. */
static spmv_status column_norms(const struct several *s, const void *u)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    for (int v = 0; v < s->k; v++) {
        TRY(take(s, u, v, s->one));
        TRY(spmv_dot(cg->ctx, cg->type, s->one, s->one, cell(s, v), cg->n));
    }
    TRY(read_cells(s, s->k));
    for (int v = 0; v < s->k; v++)
        s->now[v] = sqrt(s->now[v]);
done:
    return st;
}

/* to = B - A X */
static spmv_status residuals(const struct several *s, void *to)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    const double minus64 = -1, one64 = 1;
    const float minus32 = -1, one32 = 1;
    const bool narrow = cg->type == SPMV_F32;
    TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, cg->b, to, s->count));
    TRY(spmv_apply(cg->plan, narrow ? (const void *)&minus32 : (const void *)&minus64, cg->x,
                   narrow ? (const void *)&one32 : (const void *)&one64, to));
done:
    return st;
}

/* In x, the columns that take says are replaced by those of from (NULL: zeros), through the host. */
static spmv_status replace_columns(const struct several *s, const bool *take, const void *from)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    const size_t size = spmv_type_size(cg->type);
    char *old = s->old;
    bool any = false;
    for (int v = 0; v < s->k; v++)
        any = any || take[v];
    if (!any)
        return SPMV_OK;
    TRY(spmv_download(cg->ctx, cg->x, s->host, s->count * (int64_t)size));
    memset(old, 0, (size_t)s->count * size); /* zeros are all bits 0 */
    if (from != NULL)
        TRY(spmv_download(cg->ctx, from, old, s->count * (int64_t)size));
    for (int64_t i = 0; i < s->count; i++)
        if (take[i % s->k])
            memcpy((char *)s->host + (size_t)i * size, old + (size_t)i * size, size);
    TRY(spmv_upload(cg->ctx, s->host, cg->x, s->count * (int64_t)size));
done:
    return st;
}

/* Not settled yet: it has run in this run. */
static bool is_open(const struct several *s, int v)
{
    return s->result[v].status == SPMV_ERROR_ARGUMENT;
}

static bool runs(const struct several *s, int v)
{
    return s->column[v].stop == CG_RUNS;
}

/* Z = M^-1 R, rr = r'r, rz = r'z, of the columns that run. */
static spmv_status squares(const struct several *s)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    for (int v = 0; v < s->k; v++) {
        const void *r = column_of(s, s->r, v);
        if (!runs(s, v))
            continue;
        TRY(spmv_dot(cg->ctx, cg->type, r, r, cell(s, v), cg->n));
        if (s->z == NULL)
            continue;
        TRY(cg_precondition(cg, r, column_of(s, s->z, v)));
        TRY(spmv_dot(cg->ctx, cg->type, r, column_of(s, s->z, v), cell(s, s->k + v), cg->n));
    }
    TRY(read_cells(s, 2 * s->k));
    for (int v = 0; v < s->k; v++)
        if (runs(s, v)) {
            s->column[v].rr = s->now[v];
            s->column[v].rz = s->now[s->z != NULL ? s->k + v : v];
        }
done:
    return st;
}

/* The columns that run: P = Z, and where they begin. */
static spmv_status start(const struct several *s)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    for (int v = 0; v < s->k; v++)
        if (runs(s, v)) {
            TRY(take(s, cg->x, v, column_of(s, s->x, v)));
            TRY(take(s, cg->r, v, column_of(s, s->r, v)));
        }
    TRY(squares(s));
    for (int v = 0; v < s->k; v++) {
        struct cg_column *c = &s->column[v];
        if (!runs(s, v))
            continue;
        TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, column_of(s, s->z != NULL ? s->z : s->r, v),
                     column_of(s, s->p, v), cg->n));
        c->iterations = 0;
        c->start_residual = sqrt(c->rr);
        c->enough = cg_enough_from(cg->type, c->tolerance, c->start_residual);
    }
done:
    return st;
}

/* Q = A P, pq = p'q, of the columns that run; the others have in P what they had. */
static spmv_status product(const struct several *s)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    for (int v = 0; v < s->k; v++)
        if (runs(s, v))
            TRY(give(s, column_of(s, s->p, v), v, cg->p));
    TRY(spmv_apply(cg->plan, NULL, cg->p, NULL, cg->q));
    for (int v = 0; v < s->k; v++)
        if (runs(s, v)) {
            TRY(take(s, cg->q, v, column_of(s, s->q, v)));
            TRY(spmv_dot(cg->ctx, cg->type, column_of(s, s->p, v), column_of(s, s->q, v), cell(s, v), cg->n));
        }
    TRY(read_cells(s, s->k));
    for (int v = 0; v < s->k; v++)
        if (runs(s, v))
            s->column[v].pq = s->now[v];
done:
    return st;
}

/* One step of the columns that run, given q = A p and p'q. */
static spmv_status step(const struct several *s)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    spmv_context *ctx = cg->ctx;
    void *z = s->z != NULL ? s->z : s->r;
    for (int v = 0; v < s->k; v++) {
        const struct cg_column *c = &s->column[v];
        s->now[v] = runs(s, v) ? c->rz / c->pq : 0;
        s->now[s->k + v] = -s->now[v];
    }
    TRY(write_cells(s, 2 * s->k));
    for (int v = 0; v < s->k; v++)
        if (runs(s, v)) {
            /* x = x + alpha p */
            TRY(spmv_map_axpby(ctx, cg->type, cell(s, v), column_of(s, s->p, v), NULL, column_of(s, s->x, v), cg->n));
            /* r = r - alpha q */
            TRY(spmv_map_axpby(ctx, cg->type, cell(s, s->k + v), column_of(s, s->q, v), NULL, column_of(s, s->r, v),
                               cg->n));
            s->column[v].beta = s->column[v].rz;
            s->column[v].iterations++;
        }
    TRY(squares(s));
    for (int v = 0; v < s->k; v++)
        s->now[v] = runs(s, v) ? s->column[v].rz / s->column[v].beta : 0;
    TRY(write_cells(s, s->k));
    for (int v = 0; v < s->k; v++)
        if (runs(s, v)) /* p = z + beta p */
            TRY(spmv_map_axpby(ctx, cg->type, NULL, column_of(s, z, v), cell(s, v), column_of(s, s->p, v), cg->n));
done:
    return st;
}

/* Nothing forbids another step, given rr, pq and rz. */
static bool is_sound(const struct cg_column *c)
{
    return isfinite(c->rr) && isfinite(c->rz) && isfinite(c->pq) && c->rz > 0 && c->pq > 0;
}

/* Columns that are done stop; the callback is told of the largest residual among those that were not. */
static spmv_status look_around(struct several *s, bool tell)
{
    struct cg_region *region = &s->region;
    const spmv_cg_options *o = s->cg->options;
    double most = 0;
    for (int v = 0; v < s->k; v++) {
        struct cg_column *c = &s->column[v];
        const double residual = sqrt(c->rr);
        if (!runs(s, v))
            continue;
        most = residual <= most ? most : residual;
        if (isfinite(c->rr) && residual <= c->enough)
            c->stop = CG_DONE;
    }
    return tell && o->on_iteration != NULL && o->on_iteration(region->iterations, most, o->user) != 0 ? SPMV_CANCELLED
                                                                                                      : SPMV_OK;
}

static bool any_runs(const struct several *s)
{
    bool any = false;
    for (int v = 0; v < s->k; v++)
        any = any || runs(s, v);
    return any;
}

/* The textbook: the recurrence of all columns whose stop is CG_RUNS. */
static spmv_status run_textbook(struct several *s)
{
    spmv_status st = SPMV_OK;
    struct cg *cg = s->cg;
    struct cg_region *region = &s->region;
    TRY(start(s));
    region->told = look_around(s, region->iterations == 0); /* a run that goes on has been told of already */
    while (region->told == SPMV_OK && any_runs(s)) {
        TRY(product(s));
        for (int v = 0; v < s->k; v++) {
            struct cg_column *c = &s->column[v];
            if (!runs(s, v))
                continue;
            if (!is_sound(c))
                c->stop = CG_BROKEN;
            else if (c->iterations >= c->limit)
                c->stop = CG_LIMIT;
        }
        if (!any_runs(s))
            break;
        TRY(step(s));
        region->iterations++;
        region->told = look_around(s, true);
    }
done:
    for (int v = 0; v < s->k && (st == SPMV_OK || spmv_status_class(st) >= 7); v++)
        if (is_open(s, v)) {
            const spmv_status given = give(s, column_of(s, s->x, v), v, cg->x);
            st = given != SPMV_OK ? given : st;
        }
    return st;
}

/* What the recurrence of column v came to, with its sentence in the context. */
static spmv_status verdict_of(const struct several *s, int v)
{
    struct cg one = *s->cg;
    const struct cg_column *c = &s->column[v];
    one.result = &s->result[v];
    one.rr = c->rr;
    one.pq = c->pq;
    one.rz = c->rz;
    if (c->stop == CG_RUNS && s->failed != SPMV_OK)
        return context_fail(one.ctx, s->failed, "%s", s->sentence);
    return c->stop == CG_RUNS     ? cg_fail_cancelled(&one)
           : c->stop == CG_BROKEN ? cg_look_for_breakdown(&one)
           : c->stop == CG_LIMIT  ? cg_fail_limit(&one)
                                  : SPMV_OK;
}

/* The recurrence of column v is done, the true residual is not, and there is no restart. */
static spmv_status fail_as_far(const struct several *s, int v)
{
    struct cg one = *s->cg;
    one.result = &s->result[v];
    return s->region.told != SPMV_OK ? cg_fail_cancelled(&one) : cg_fail_stagnation(&one);
}

static spmv_status fail_overflow(const struct several *s, int v)
{
    struct cg one = *s->cg;
    one.result = &s->result[v];
    return cg_fail_overflow(&one);
}

/* The columns that ran: their true residuals, and whether they go on. first: the column of least number that failed,
 * whose sentence is kept in text. */
static spmv_status settle(struct several *s, bool *take, int *first, char *text, size_t size)
{
    spmv_status st = SPMV_OK;
    struct cg *cg = s->cg;
    TRY(residuals(s, cg->q));
    TRY(column_norms(s, cg->q));
    for (int v = 0; v < s->k; v++) {
        spmv_cg_result *result = &s->result[v];
        struct cg_column *c = &s->column[v];
        take[v] = false;
        if (!is_open(s, v))
            continue;
        result->iterations += c->iterations;
        result->recurrence_residual = sqrt(c->rr);
        result->true_residual = s->now[v];
        spmv_status stop = verdict_of(s, v);
        if (!isfinite(s->now[v]) && cg_may_overflow(stop))
            stop = fail_overflow(s, v);
        if (!isfinite(s->now[v]) ||
            ((stop == SPMV_OK || stop == SPMV_ERROR_NOT_FINITE) && c->start_residual < s->now[v])) {
            take[v] = true;
            result->true_residual = c->start_residual;
        }
        if (stop == SPMV_OK && !(result->true_residual <= result->tolerance)) {
            if (s->region.told == SPMV_OK && s->failed == SPMV_OK && result->true_residual <= 0.5 * c->start_residual) {
                result->restarts++;
                continue;
            }
            stop = fail_as_far(s, v);
        } else if (cg_has_arrived(stop, result)) {
            stop = SPMV_OK;
        }
        result->status = stop;
        if (stop != SPMV_OK && (*first < 0 || v < *first)) {
            *first = v;
            snprintf(text, size, "%s", spmv_last_error(cg->ctx));
        }
    }
    TRY(replace_columns(s, take, cg->start_x));
done:
    return st;
}

/* The largest modulus in column v of numbers in host memory, and the norm, whose squares may be out of range. */
static double norm_of(const struct several *s, const void *numbers, int v, double *largest)
{
    const float *f32 = numbers;
    const double *f64 = numbers;
    const bool narrow = s->cg->type == SPMV_F32;
    double square = 0;
    *largest = 0;
    for (int64_t i = v; i < s->count; i += s->k)
        *largest = fmax(*largest, narrow ? fabs((double)f32[i]) : fabs(f64[i]));
    if (*largest == 0)
        return 0;
    for (int64_t i = v; i < s->count; i += s->k) {
        const double part = (narrow ? (double)f32[i] : f64[i]) / *largest;
        square += part * part;
    }
    return *largest * sqrt(square);
}

/* Norms and tolerances; a column of zeros is solved by zeros, and so is one whose squares vanish, as far as atol
 * allows. */
static spmv_status begin(struct several *s, bool *zero, int *first, char *text, size_t size)
{
    spmv_status st = SPMV_OK;
    struct cg *cg = s->cg;
    TRY(column_norms(s, cg->b));
    for (int v = 0; v < s->k; v++) {
        spmv_cg_result *result = &s->result[v];
        result->norm_b = s->now[v];
        result->tolerance = fmax(isfinite(s->now[v]) ? cg->options->rtol * s->now[v] : 0, cg->options->atol);
        zero[v] = s->now[v] == 0 || (isfinite(s->now[v]) && cg_squares_vanish(cg->type, s->now[v], result->tolerance));
    }
    TRY(replace_columns(s, zero, NULL));
    for (int v = 0, fetched = 0; v < s->k; v++) {
        spmv_cg_result *result = &s->result[v];
        double largest = 0;
        if (!zero[v])
            continue;
        if (!fetched)
            TRY(spmv_download(cg->ctx, cg->b, s->host, s->count * (int64_t)spmv_type_size(cg->type)));
        fetched = 1;
        result->norm_b = result->recurrence_residual = result->true_residual = norm_of(s, s->host, v, &largest);
        result->tolerance = fmax(cg->options->rtol * result->norm_b, cg->options->atol);
        result->status = result->true_residual <= result->tolerance ? SPMV_OK : cg_fail_vanishing(cg, largest);
        if (result->status != SPMV_OK && *first < 0) {
            *first = v;
            snprintf(text, size, "%s", spmv_last_error(cg->ctx));
        }
    }
done:
    return st;
}

static bool any_open(struct several *s, int64_t max_iterations)
{
    bool open = false;
    for (int v = 0; v < s->k; v++) {
        struct cg_column *c = &s->column[v];
        const bool runs = is_open(s, v);
        *c = (struct cg_column){.tolerance = s->result[v].tolerance,
                                .start_residual = INFINITY, /* until a run knows it */
                                .limit = max_iterations - s->result[v].iterations,
                                .stop = runs ? CG_RUNS : CG_DONE};
        open = open || runs;
    }
    return open;
}

static spmv_status solve(struct several *s, int64_t max_iterations, bool *flags)
{
    spmv_status st = SPMV_OK;
    struct cg *cg = s->cg;
    char text[400] = "";
    int first = -1;
    TRY(begin(s, flags, &first, text, sizeof text));
    while (any_open(s, max_iterations)) {
        TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, cg->x, cg->start_x, s->count));
        TRY(residuals(s, cg->r));
        s->failed = s->way != NULL ? s->way->run(&s->region) : run_textbook(s);
        if (s->failed != SPMV_OK && spmv_status_class(s->failed) < 7) {
            st = s->failed;
            goto done;
        }
        snprintf(s->sentence, sizeof s->sentence, "%s", spmv_last_error(cg->ctx));
        TRY(settle(s, flags, &first, text, sizeof text));
    }
    if (first >= 0) {
        const char *sentence = strncmp(text, "spmv_cg: ", 9) == 0 ? text + 9 : text;
        st = context_fail(cg->ctx, s->result[first].status, "spmv_cg: right-hand side %d of %d: %s", first + 1, s->k,
                          sentence);
    }
done:
    return st;
}

static spmv_status run_omp(struct cg_region *region)
{
    cg_region_run(region);
    return SPMV_OK;
}

static const struct cg_side_by_side several_omp = {.name = "fused",
                                                   .why = "one parallel region for all right-hand sides",
                                                   .backend = SPMV_BACKEND_OMP,
                                                   .supports = cg_region_supports,
                                                   .open = cg_region_open,
                                                   .close = cg_region_close,
                                                   .run = run_omp};

/* Beside the textbook; auto takes the first of a backend that supports the solve. */
static const struct cg_side_by_side *const ways[] = {
#ifdef SPMV_HAVE_CUDA
    &cg_several_graph,
    &cg_several_fused,
#endif
    &several_omp,
};

enum { WAYS = sizeof ways / sizeof *ways };

static spmv_status fail_no_way(const struct cg *cg, const char *name)
{
    const spmv_backend backend = cg->ctx->backend->id;
    char list[64] = "";
    size_t used = 0;
    for (int i = 0; i < WAYS && used < sizeof list; i++)
        if (ways[i]->backend == backend)
            used += (size_t)snprintf(list + used, sizeof list - used, ", %s", ways[i]->name);
    return context_fail(cg->ctx, SPMV_ERROR_UNSUPPORTED,
                        "spmv_cg: method %s is not for several right-hand sides on %s; there are: auto%s, textbook",
                        name, spmv_backend_name(backend), list);
}

/* Which rung: see choose() in cg.c, of which these run several. */
static spmv_status choose(struct several *s)
{
    const struct cg *cg = s->cg;
    const char *name = cg->options->method,
               *why = "it runs several right-hand sides on every backend, with every preconditioner";
    const bool named = name != NULL && strcmp(name, "auto") != 0, textbook = named && strcmp(name, "textbook") == 0;
    for (int i = 0; i < WAYS && s->way == NULL && !textbook; i++) {
        if (ways[i]->backend != cg->ctx->backend->id || (named && strcmp(ways[i]->name, name) != 0))
            continue;
        const spmv_status st = ways[i]->supports(cg->ctx, &cg->info, cg->precond);
        if (st == SPMV_OK)
            s->way = ways[i];
        else if (named || st != SPMV_ERROR_UNSUPPORTED)
            return st;
    }
    if (named && !textbook && s->way == NULL)
        return fail_no_way(cg, name);
    for (int v = 0; v < s->k; v++) {
        s->result[v].method = s->way != NULL ? s->way->name : cg_textbook.name;
        snprintf(s->result[v].why, sizeof s->result[v].why, "%s",
                 named            ? "asked for by name"
                 : s->way != NULL ? s->way->why
                                  : why);
    }
    return SPMV_OK;
}

/* What the textbook needs besides. */
static spmv_status make_columns(struct several *s)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    enum { APART = 32 }; /* so that each is aligned as memory of its own would be */
    s->stride = ceil_divide(cg->n, APART) * APART;
    const int64_t bytes = s->k * s->stride * (int64_t)spmv_type_size(cg->type);
    void **const vectors[] = {&s->x, &s->r, &s->p, &s->q, cg->precond != NULL ? &s->z : NULL};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        if (vectors[i] != NULL)
            TRY(context_lend(cg->ctx, bytes, vectors[i]));
    /* of columns that never run */
    TRY(spmv_map_index(cg->ctx, cg->type, &(const double){0}, NULL, cg->p, s->count)); /* all bits 0, also floats */
done:
    return st;
}

spmv_status cg_solve_several(struct cg *cg, spmv_cg_result *results)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = cg->ctx;
    const spmv_cg_options *o = cg->options;
    struct several s = {.cg = cg, .k = cg->info.vectors, .result = results};
    bool *flags = NULL;
    cg->n = cg->info.rows;
    cg->type = cg->info.type;
    s.count = cg->n * s.k;
    const int64_t bytes = s.count * (int64_t)spmv_type_size(cg->type);
    for (int v = 0; v < s.k; v++)
        results[v].status = SPMV_ERROR_ARGUMENT; /* until it is settled */
    TRY(choose(&s));
    if (cg->n == 0) {
        for (int v = 0; v < s.k; v++)
            results[v].status = SPMV_OK;
        goto done;
    }
    const int64_t size = (int64_t)spmv_type_size(cg->type), k = s.k;
    void **const vectors[] = {&cg->r, &cg->p, &cg->q, &cg->start_x};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        TRY(context_lend(ctx, bytes, vectors[i]));
    TRY(context_lend(ctx, 2 * s.k * size, &s.cells));
    TRY(spmv_map_index(ctx, cg->type, &(const double){0}, NULL, s.cells, 2 * (int64_t)s.k));
    TRY(context_lend(ctx, cg->n * size, &s.one));
    TRY(context_lend(ctx, cg->n * (int64_t)sizeof k, &s.index));
    TRY(spmv_map_index(ctx, SPMV_I64, &(const int64_t){0}, &k, s.index, cg->n));
    if (s.way == NULL)
        TRY(make_columns(&s));
    TRY(host_alloc(ctx, bytes, "conjugate gradients", &s.host));
    TRY(host_alloc(ctx, bytes, "conjugate gradients", &s.old));
    TRY(host_alloc(ctx, s.k * (int64_t)sizeof *s.column, "conjugate gradients", (void **)&s.column));
    TRY(host_alloc(ctx, 2 * s.k * (int64_t)sizeof *s.now, "conjugate gradients", (void **)&s.now));
    TRY(host_alloc(ctx, 2 * s.k * size, "conjugate gradients", &s.values));
    TRY(host_alloc(ctx, s.k * (int64_t)sizeof *flags, "conjugate gradients", (void **)&flags));
    s.region =
        (struct cg_region){.ctx = ctx,
                           .plan = cg->plan,
                           .type = cg->type,
                           .columns = s.k,
                           .inverse_diagonal = cg->precond != NULL ? precond_inverse_diagonal(cg->precond) : NULL,
                           .x = cg->x,
                           .r = cg->r,
                           .p = cg->p,
                           .q = cg->q,
                           .options = o,
                           .column = s.column};
    if (s.way != NULL)
        TRY(s.way->open(&s.region));
    if (o->zero_start)
        TRY(spmv_map_index(ctx, cg->type, &(const double){0}, NULL, cg->x, s.count)); /* all bits 0, also floats */
    TRY(solve(&s, o->max_iterations > 0 ? o->max_iterations : max_i64(100, 10 * cg->n), flags));
done:
    if (s.way != NULL)
        s.way->close(&s.region);
    for (int v = 0; v < s.k && st != SPMV_OK; v++)
        if (results[v].status == SPMV_ERROR_ARGUMENT)
            results[v].status = st;
    void *const memory[] = {cg->r, cg->p, cg->q, cg->start_x, s.cells, s.one, s.index, s.x, s.r, s.p, s.q, s.z};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        context_take_back(ctx, memory[i]);
    host_free(s.host);
    host_free(s.old);
    host_free(s.column);
    host_free(s.now);
    host_free(flags);
    host_free(s.values);
    return st;
}
