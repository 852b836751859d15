/* Conjugate gradients for several right-hand sides at once: as many recurrences side by side, one product with A for
 * all, so the matrix is read once an iteration. A column that is done stands still while the others go on.
 *
 * Vectors are matrices of n rows and k columns, row by row, as the plan has them. On omp the region of
 * cg_2_fused_omp.c runs them. The textbook does so on every backend with public calls alone: sums over the rows of a
 * column, and a scalar a column spread over its rows, are products with the matrix E, whose row i k + v has a 1 in
 * column v: dots = E'(u . w), and spread = E s. Its scalars are divided on the host. A preconditioner, which knows one
 * vector, gets column after column: gathered, solved for, scattered.
 * The textbook is there to be right everywhere, not to be fast.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>

#include "backend.h"
#include "cg_fused_omp.h"
#include "precond_internal.h"

struct several {
    struct cg *cg;
    int k;
    int64_t count; /* rows times k */
    spmv_cg_result *result;
    struct cg_column *column;
    double *now;          /* norms, k */
    spmv_plan *sum, *fan; /* E', E */
    void *product, *dots; /* scratch: count elements, k */
    void *host, *old;     /* host memory: count elements, for columns that are replaced */
    void *spread, *z;     /* textbook: count elements; z = M^-1 r, NULL without M */
    void *index;          /* textbook: i k, i < n, 64 bits: where a column's elements lie behind its first */
    void *one_r, *one_z;  /* textbook: n elements, a column of r and of z */
    bool fused;
    struct cg_region region;
};

/* E and E' as plans. */
static spmv_status make_sums(struct several *s)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = s->cg->ctx;
    int64_t *row_ptr = NULL;
    int32_t *col = NULL;
    spmv_plan_options options;
    TRY(host_alloc(ctx, (s->count + 1) * (int64_t)sizeof *row_ptr, "conjugate gradients", (void **)&row_ptr));
    TRY(host_alloc(ctx, s->count * (int64_t)sizeof *col, "conjugate gradients", (void **)&col));
    for (int64_t i = 0; i <= s->count; i++)
        row_ptr[i] = i;
    for (int64_t i = 0; i < s->count; i++)
        col[i] = (int32_t)(i % s->k);
    const spmv_csr e = {.rows = s->count,
                        .cols = s->k,
                        .nnz = s->count,
                        .row_ptr = row_ptr,
                        .row_ptr_bits = 64,
                        .col = col,
                        .type = s->cg->type,
                        .memory = SPMV_MEMORY_HOST};
    spmv_plan_options_init(&options, sizeof options);
    options.type = s->cg->type;
    if (!s->fused)
        TRY(spmv_plan_create(ctx, &e, &options, &s->fan));
    options.operation = SPMV_OPERATION_T;
    TRY(spmv_plan_create(ctx, &e, &options, &s->sum));
done:
    host_free(row_ptr);
    host_free(col);
    return st;
}

/* dots[v] = u_v'w_v, for every column; waits. */
static spmv_status column_dots(const struct several *s, const void *u, const void *w, double *dots)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    const int64_t size = (int64_t)spmv_type_size(cg->type);
    const float *f32 = s->host;
    const double *f64 = s->host;
    TRY(spmv_map_binary(cg->ctx, SPMV_MUL, cg->type, u, w, s->product, s->count));
    TRY(spmv_apply(s->sum, NULL, s->product, NULL, s->dots));
    TRY(spmv_download(cg->ctx, s->dots, s->host, s->k * size));
    for (int v = 0; v < s->k; v++)
        dots[v] = cg->type == SPMV_F32 ? (double)f32[v] : f64[v];
done:
    return st;
}

static spmv_status column_norms(const struct several *s, const void *u, double *norms)
{
    const spmv_status st = column_dots(s, u, u, norms);
    for (int v = 0; v < s->k && st == SPMV_OK; v++)
        norms[v] = sqrt(norms[v]);
    return st;
}

/* y_v += a_v x_v, or with scale y_v = a_v y_v + x_v, for every column. */
static spmv_status column_axpy(const struct several *s, const double *a, const void *x, bool scale, void *y)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    float *f32 = s->host;
    double *f64 = s->host;
    for (int v = 0; v < s->k; v++) {
        if (cg->type == SPMV_F32)
            f32[v] = (float)a[v];
        else
            f64[v] = a[v];
    }
    TRY(spmv_upload(cg->ctx, s->host, s->dots, s->k * (int64_t)spmv_type_size(cg->type)));
    TRY(spmv_apply(s->fan, NULL, s->dots, NULL, s->spread));
    if (scale) {
        TRY(spmv_map_binary(cg->ctx, SPMV_MUL, cg->type, s->spread, y, y, s->count));
        TRY(spmv_map_binary(cg->ctx, SPMV_ADD, cg->type, x, y, y, s->count));
    } else {
        TRY(spmv_map_binary(cg->ctx, SPMV_MUL, cg->type, s->spread, x, s->spread, s->count));
        TRY(spmv_map_binary(cg->ctx, SPMV_ADD, cg->type, s->spread, y, y, s->count));
    }
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

/* Where column v begins. */
static void *column_of(const struct several *s, void *vectors, int v)
{
    return (char *)vectors + (size_t)v * spmv_type_size(s->cg->type);
}

/* z = M^-1 r of the columns that run; those of the others stay. */
static spmv_status precondition(const struct several *s)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    for (int v = 0; v < s->k; v++) {
        if (s->column[v].stop != CG_RUNS)
            continue;
        TRY(spmv_gather(cg->ctx, cg->type, column_of(s, cg->r, v), s->count - v, s->index, 64, s->one_r, cg->n));
        TRY(cg_precondition(cg, s->one_r, s->one_z));
        TRY(spmv_scatter(cg->ctx, cg->type, s->one_z, s->index, 64, column_of(s, s->z, v), s->count - v, cg->n));
    }
done:
    return st;
}

/* p = 0 in the columns that broke down, now or in a run before: 0 times a number that is not finite would not be 0, and
 * x would not stay. */
static spmv_status clear_broken(const struct several *s)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    for (int v = 0; v < s->k; v++) {
        const struct cg_column *c = &s->column[v];
        if (c->stop != CG_BROKEN && isfinite(c->rr) && isfinite(c->rz))
            continue;
        TRY(spmv_map_index(cg->ctx, cg->type, &(const double){0}, NULL, s->one_r, cg->n)); /* all bits 0, also floats */
        TRY(spmv_scatter(cg->ctx, cg->type, s->one_r, s->index, 64, column_of(s, cg->p, v), s->count - v, cg->n));
    }
done:
    return st;
}

/* rr = r'r, and rz = r'z, of the columns that run, or of all. */
static spmv_status column_squares(const struct several *s, bool all)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    TRY(column_dots(s, cg->r, cg->r, s->now));
    for (int v = 0; v < s->k; v++)
        if (all || s->column[v].stop == CG_RUNS)
            s->column[v].rr = s->column[v].rz = s->now[v];
    if (s->z == NULL)
        goto done;
    TRY(column_dots(s, cg->r, s->z, s->now));
    for (int v = 0; v < s->k; v++)
        if (all || s->column[v].stop == CG_RUNS)
            s->column[v].rz = s->now[v];
done:
    return st;
}

/* Nothing forbids another step, given rr, pq and rz. */
static bool is_sound(const struct cg_column *c)
{
    return isfinite(c->rr) && isfinite(c->rz) && isfinite(c->pq) && c->rz > 0 && c->pq > 0;
}

/* The textbook: the recurrence of all columns whose stop is CG_RUNS. alpha and beta of the others are 0. */
static spmv_status run_textbook(struct several *s, double *alpha, double *beta)
{
    spmv_status st = SPMV_OK;
    struct cg *cg = s->cg;
    struct cg_region *region = &s->region;
    const spmv_cg_options *o = cg->options;
    const void *z = s->z != NULL ? s->z : cg->r;
    region->told = SPMV_OK;
    /* P = Z = M^-1 R, rr = r'r, rz = r'z */
    if (s->z != NULL)
        TRY(precondition(s));
    TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, z, cg->p, s->count));
    TRY(column_squares(s, true));
    for (int v = 0; v < s->k; v++) {
        struct cg_column *c = &s->column[v];
        c->iterations = 0;
        c->start_residual = sqrt(c->rr);
        c->enough = cg_enough_from(cg->type, c->tolerance, c->start_residual);
    }
    for (bool first = true;; first = false) {
        int running = 0;
        double most = 0;
        for (int v = 0; v < s->k; v++) {
            struct cg_column *c = &s->column[v];
            const double residual = sqrt(c->rr);
            if (c->stop != CG_RUNS)
                continue;
            most = residual <= most ? most : residual;
            if (isfinite(c->rr) && residual <= c->enough)
                c->stop = CG_DONE;
            running += c->stop == CG_RUNS;
        }
        if (o->on_iteration != NULL && (!first || region->iterations == 0) &&
            o->on_iteration(region->iterations, most, o->user) != 0) {
            region->told = SPMV_CANCELLED;
            goto done;
        }
        if (running == 0)
            goto done;
        /* Q = A P, pq = p'q */
        TRY(spmv_apply(cg->plan, NULL, cg->p, NULL, cg->q));
        TRY(column_dots(s, cg->p, cg->q, s->now));
        running = 0;
        for (int v = 0; v < s->k; v++) {
            struct cg_column *c = &s->column[v];
            if (c->stop == CG_RUNS) {
                c->pq = s->now[v];
                if (!is_sound(c))
                    c->stop = CG_BROKEN;
                else if (c->iterations >= c->limit)
                    c->stop = CG_LIMIT;
            }
            alpha[v] = c->stop == CG_RUNS ? c->rz / c->pq : 0;
            running += c->stop == CG_RUNS;
        }
        if (running == 0)
            goto done;
        TRY(clear_broken(s));
        /* X = X + P alpha */
        TRY(column_axpy(s, alpha, cg->p, false, cg->x));
        /* R = R - Q alpha */
        for (int v = 0; v < s->k; v++)
            alpha[v] = -alpha[v];
        TRY(column_axpy(s, alpha, cg->q, false, cg->r));
        /* Z = M^-1 R, beta = r'z / old r'z */
        if (s->z != NULL)
            TRY(precondition(s));
        for (int v = 0; v < s->k; v++)
            beta[v] = s->column[v].rz;
        TRY(column_squares(s, false));
        for (int v = 0; v < s->k; v++) {
            struct cg_column *c = &s->column[v];
            beta[v] = c->stop == CG_RUNS ? c->rz / beta[v] : 0;
            c->iterations += c->stop == CG_RUNS;
        }
        /* P = Z + P beta */
        TRY(column_axpy(s, beta, z, true, cg->p));
        region->iterations++;
    }
done:
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
    return s->region.told != SPMV_OK ? cg_fail_cancelled(&one)
           : c->stop == CG_BROKEN    ? cg_look_for_breakdown(&one)
           : c->stop == CG_LIMIT     ? cg_fail_limit(&one)
                                     : SPMV_OK;
}

static spmv_status fail_stagnation(const struct several *s, int v)
{
    struct cg one = *s->cg;
    one.result = &s->result[v];
    return cg_fail_stagnation(&one);
}

/* The columns that ran: their true residuals, and whether they go on. first: the column of least number that failed,
 * whose sentence is kept in text. */
static spmv_status settle(struct several *s, bool *take, int *first, char *text, size_t size)
{
    spmv_status st = SPMV_OK;
    struct cg *cg = s->cg;
    TRY(residuals(s, cg->q));
    TRY(column_norms(s, cg->q, s->now));
    for (int v = 0; v < s->k; v++) {
        spmv_cg_result *result = &s->result[v];
        struct cg_column *c = &s->column[v];
        take[v] = false;
        if (result->status != SPMV_ERROR_ARGUMENT) /* is settled */
            continue;
        result->iterations += c->iterations;
        result->recurrence_residual = sqrt(c->rr);
        result->true_residual = s->now[v];
        spmv_status stop = verdict_of(s, v);
        if (!isfinite(s->now[v]) ||
            ((stop == SPMV_OK || stop == SPMV_ERROR_NOT_FINITE) && c->start_residual < s->now[v])) {
            take[v] = true;
            result->true_residual = c->start_residual;
        }
        if (stop == SPMV_OK && !(result->true_residual <= result->tolerance)) {
            if (result->true_residual <= 0.5 * c->start_residual) {
                result->restarts++;
                continue;
            }
            stop = fail_stagnation(s, v);
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

/* Norms and tolerances; a column of zeros is solved by zeros. */
static spmv_status begin(struct several *s, bool *zero, int *first, char *text, size_t size)
{
    spmv_status st = SPMV_OK;
    struct cg *cg = s->cg;
    TRY(column_norms(s, cg->b, s->now));
    for (int v = 0; v < s->k; v++) {
        spmv_cg_result *result = &s->result[v];
        result->norm_b = s->now[v];
        result->tolerance = fmax(isfinite(s->now[v]) ? cg->options->rtol * s->now[v] : 0, cg->options->atol);
        zero[v] = s->now[v] == 0;
    }
    TRY(replace_columns(s, zero, NULL));
    TRY(spmv_download(cg->ctx, cg->b, s->host, s->count * (int64_t)spmv_type_size(cg->type)));
    for (int v = 0; v < s->k; v++) {
        if (!zero[v])
            continue;
        double largest = 0;
        for (int64_t i = v; i < s->count; i += s->k)
            largest = fmax(largest, cg->type == SPMV_F32 ? (double)fabsf(((const float *)s->host)[i])
                                                         : fabs(((const double *)s->host)[i]));
        s->result[v].status = largest == 0 ? SPMV_OK : cg_fail_vanishing(cg, largest);
        if (largest > 0 && *first < 0) {
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
        const bool runs = s->result[v].status == SPMV_ERROR_ARGUMENT;
        *c = (struct cg_column){.tolerance = s->result[v].tolerance,
                                .limit = max_iterations - s->result[v].iterations,
                                .stop = runs ? CG_RUNS : CG_DONE};
        open = open || runs;
    }
    return open;
}

static spmv_status solve(struct several *s, int64_t max_iterations, bool *flags, double *scalars)
{
    spmv_status st = SPMV_OK;
    struct cg *cg = s->cg;
    char text[400] = "";
    int first = -1;
    TRY(begin(s, flags, &first, text, sizeof text));
    while (any_open(s, max_iterations)) {
        TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, cg->x, cg->start_x, s->count));
        TRY(residuals(s, cg->r));
        if (s->fused)
            cg_region_run(&s->region);
        else
            TRY(run_textbook(s, scalars, scalars + s->k));
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

/* Which rung: see choose() in cg.c, of which only these two run several. */
static spmv_status choose(struct several *s)
{
    const struct cg *cg = s->cg;
    const char *name = cg->options->method,
               *why = "it runs several right-hand sides on every backend, with every preconditioner";
    const bool named = name != NULL && strcmp(name, "auto") != 0, textbook = named && strcmp(name, "textbook") == 0;
    const bool omp = cg->ctx->backend->id == SPMV_BACKEND_OMP;
    const bool fused = named && strcmp(name, "fused") == 0;
    if (named && !textbook && !(fused && omp))
        return context_fail(cg->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: method %s is not for several right-hand sides on %s, only textbook%s", name,
                            spmv_backend_name(cg->ctx->backend->id), omp ? " and fused" : "");
    if (omp && !textbook) {
        const spmv_status st = cg_region_supports(cg->ctx, &cg->info, cg->precond);
        if (st != SPMV_OK && fused)
            return st;
        s->fused = st == SPMV_OK;
        if (s->fused)
            why = "one parallel region for all right-hand sides";
    }
    for (int v = 0; v < s->k; v++) {
        s->result[v].method = s->fused ? cg_fused_omp.name : cg_textbook.name;
        snprintf(s->result[v].why, sizeof s->result[v].why, "%s", named ? "asked for by name" : why);
    }
    return SPMV_OK;
}

/* What the textbook needs besides. */
static spmv_status make_columns(struct several *s)
{
    spmv_status st = SPMV_OK;
    const struct cg *cg = s->cg;
    const int64_t size = (int64_t)spmv_type_size(cg->type), step = s->k;
    TRY(spmv_alloc(cg->ctx, s->count * size, &s->spread));
    TRY(spmv_alloc(cg->ctx, cg->n * (int64_t)sizeof step, &s->index));
    TRY(spmv_map_index(cg->ctx, SPMV_I64, &(const int64_t){0}, &step, s->index, cg->n));
    TRY(spmv_alloc(cg->ctx, cg->n * size, &s->one_r));
    if (cg->precond == NULL)
        goto done;
    TRY(spmv_alloc(cg->ctx, cg->n * size, &s->one_z));
    TRY(spmv_alloc(cg->ctx, s->count * size, &s->z));
    /* of columns that never run */
    TRY(spmv_map_index(cg->ctx, cg->type, &(const double){0}, NULL, s->z, s->count)); /* all bits 0, also floats */
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
    double *scalars = NULL;
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
    void **const vectors[] = {&cg->r, &cg->p, &cg->q, &cg->start_x, &s.product};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        TRY(spmv_alloc(ctx, bytes, vectors[i]));
    TRY(spmv_alloc(ctx, s.k * (int64_t)spmv_type_size(cg->type), &s.dots));
    if (!s.fused)
        TRY(make_columns(&s));
    TRY(host_alloc(ctx, bytes, "conjugate gradients", &s.host));
    TRY(host_alloc(ctx, bytes, "conjugate gradients", &s.old));
    TRY(host_alloc(ctx, s.k * (int64_t)sizeof *s.column, "conjugate gradients", (void **)&s.column));
    TRY(host_alloc(ctx, s.k * (int64_t)sizeof *s.now, "conjugate gradients", (void **)&s.now));
    TRY(host_alloc(ctx, s.k * (int64_t)sizeof *flags, "conjugate gradients", (void **)&flags));
    TRY(host_alloc(ctx, 2 * s.k * (int64_t)sizeof *scalars, "conjugate gradients", (void **)&scalars));
    TRY(make_sums(&s));
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
    if (s.fused)
        TRY(cg_region_open(&s.region));
    if (o->zero_start)
        TRY(spmv_map_index(ctx, cg->type, &(const double){0}, NULL, cg->x, s.count)); /* all bits 0, also floats */
    TRY(solve(&s, o->max_iterations > 0 ? o->max_iterations : max_i64(100, 10 * cg->n), flags, scalars));
done:
    cg_region_close(&s.region);
    spmv_plan_destroy(s.sum);
    spmv_plan_destroy(s.fan);
    for (int v = 0; v < s.k && st != SPMV_OK; v++)
        if (results[v].status == SPMV_ERROR_ARGUMENT)
            results[v].status = st;
    void *const memory[] = {cg->r,    cg->p, cg->q,   cg->start_x, s.product, s.dots,
                            s.spread, s.z,   s.index, s.one_r,     s.one_z};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        spmv_free(ctx, memory[i]);
    host_free(s.host);
    host_free(s.old);
    host_free(s.column);
    host_free(s.now);
    host_free(flags);
    host_free(scalars);
    return st;
}
