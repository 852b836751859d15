/* The component-wise backward error on the host, and the ends of the pass for all backends; see
 * backward_error.h.
 *
 * Rows are cut into tiles of a fixed size; sums and maxima of tiles are combined in their order.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/accuracy/backward_error.h"

#include "core/backend.h"
#include "formats/matrix_internal.h"
#include "solvers/accuracy/backward_error_row.h"

enum { TILE = 512, AT_ONCE = 8 /* columns */ };

#define TEMPLATE "solvers/accuracy/backward_error_typed.h"
#include "core/each/each_floating.h"

static void (*const one[SPMV_TYPE_LIMIT])(const struct backward_job *, int64_t, int64_t,
                                          struct backward_part *) = FLOATING_TABLE(one);
static void (*const tile[SPMV_TYPE_LIMIT])(const struct backward_job *, int64_t, int64_t, int, int,
                                           struct backward_part *) = FLOATING_TABLE(tile);

static double (*const largest_of[SPMV_TYPE_LIMIT])(const struct backward_job *, int64_t, int64_t,
                                                   int) = FLOATING_TABLE(largest);

static void (*const quick[SPMV_TYPE_LIMIT])(const struct backward_job *, int64_t, int64_t,
                                            struct error_quick *) = FLOATING_TABLE(quick);

static spmv_status parts_host(spmv_context *ctx, const struct backward_job *job, struct backward_part **parts,
                              int64_t *tiles)
{
    const int64_t rows = job->a->rows, count = ceil_divide(rows, TILE);
    struct backward_part *of = NULL;
    const spmv_status st =
        host_alloc(ctx, count * job->columns * (int64_t)sizeof *of, "a backward error", (void **)&of);
    if (st != SPMV_OK)
        return st;
#pragma omp parallel for num_threads(host_team(ctx, job->a->nnz)) schedule(dynamic, 1)
    for (int64_t c = 0; c < count; c++) {
        const int64_t begin = c * TILE, end = min_i64(rows, begin + TILE);
        struct backward_part *const own = of + c * job->columns;
        for (int v = 0; v < job->columns; v++)
            own[v] = (struct backward_part){.row = -1};
        if (job->columns == 1)
            one[job->type](job, begin, end, own);
        for (int v = 0; v < job->columns && job->columns > 1; v += AT_ONCE)
            tile[job->type](job, begin, end, v, job->columns - v < AT_ONCE ? job->columns - v : AT_ONCE, own);
    }
    *parts = of;
    *tiles = count;
    return SPMV_OK;
}

/* Sets largest of each column: the largest |x_i|, or the largest of real and imaginary parts. */
static void largest_host(const spmv_context *ctx, const struct backward_job *job, double *largest)
{
    const int64_t rows = job->a->rows;
    for (int v = 0; v < job->columns; v++)
        largest[v] = 0;
        /* the maximum does not depend on the order */
#pragma omp parallel for num_threads(host_team(ctx, rows * job->columns)) schedule(static)
    for (int64_t c = 0; c < ceil_divide(rows, TILE); c++)
        for (int v = 0; v < job->columns; v++) {
            const double most = largest_of[job->type](job, c * TILE, min_i64(rows, (c + 1) * TILE), v);
#pragma omp critical(spmv_backward_error)
            largest[v] = most > largest[v] ? most : largest[v];
        }
}

/* The exact pass. Errors are those of no rows at first. */
static spmv_status find_exact(spmv_context *ctx, struct backward_job job, struct backward_error *errors)
{
    spmv_status st = SPMV_OK;
    const int columns = job.columns;
    struct backward_part *parts = NULL;
    double *largest = NULL;
    struct error_norm *norms = NULL;
    int64_t tiles = 0;
    TRY(host_alloc(ctx, 2 * columns * (int64_t)sizeof *largest, "a backward error", (void **)&largest));
    TRY(host_alloc(ctx, columns * (int64_t)sizeof *norms, "a backward error", (void **)&norms));
    double *const scale = largest + columns;
    if (context_on_device(ctx))
        TRY(backward_parts_cuda(ctx, &job, largest, &parts, &tiles));
    else
        largest_host(ctx, &job, largest);
    for (int v = 0; v < columns; v++) {
        scale[v] = error_scale(largest[v]);
        largest[v] *= scale[v];
        norms[v] = (struct error_norm){0, 0, 0};
    }
    job.largest = largest;
    job.scale = scale;
    if (parts == NULL)
        TRY(parts_host(ctx, &job, &parts, &tiles));
    for (int64_t c = 0; c < tiles; c++)
        for (int v = 0; v < columns; v++) {
            const struct backward_part *const part = &parts[c * columns + v];
            error_norm_add_all(&norms[v], part->norm);
            if (part->row >= 0 && (part->omega > errors[v].omega || errors[v].row < 0)) {
                errors[v].omega = part->omega;
                errors[v].row = part->row;
            }
        }
    for (int v = 0; v < columns; v++)
        errors[v].norm = error_norm_root(norms[v]) / scale[v];
done:
    host_free_all(largest, norms, parts);
    return st;
}

static spmv_status quick_host(spmv_context *ctx, const struct backward_job *job, struct error_quick *found)
{
    const int64_t rows = job->a->rows, count = ceil_divide(rows, TILE);
    const int columns = job->columns;
    struct error_quick *parts = NULL;
    const spmv_status st =
        host_alloc(ctx, count * columns * (int64_t)sizeof *parts, "a backward error", (void **)&parts);
    if (st != SPMV_OK)
        return st;
#pragma omp parallel for num_threads(host_team(ctx, job->a->nnz)) schedule(dynamic, 1)
    for (int64_t c = 0; c < count; c++) {
        for (int v = 0; v < columns; v++)
            parts[c * columns + v] = (struct error_quick){0, 0, c * TILE};
        quick[job->type](job, c * TILE, min_i64(rows, (c + 1) * TILE), parts + c * columns);
    }
    for (int v = 0; v < columns; v++)
        found[v] = parts[v];
    for (int64_t c = 1; c < count; c++)
        for (int v = 0; v < columns; v++)
            error_quick_add_all(&found[v], parts[c * columns + v]);
    host_free(parts);
    return SPMV_OK;
}

/* The quick pass. *decided: whether it decides all columns; then errors are set. */
static spmv_status find_quick(spmv_context *ctx, const struct backward_job *job, const double *bounds,
                              struct backward_error *errors, bool *decided)
{
    spmv_status st = SPMV_OK;
    struct error_quick *found = NULL;
    TRY(host_alloc(ctx, job->columns * (int64_t)sizeof *found, "a backward error", (void **)&found));
    TRY((context_on_device(ctx) ? backward_quick_cuda : quick_host)(ctx, job, found));
    *decided = true;
    for (int v = 0; v < job->columns; v++)
        *decided = *decided && error_quick_decides(found[v], bounds[v]);
    for (int v = 0; v < job->columns && *decided; v++)
        errors[v] = (struct backward_error){found[v].omega, found[v].row, sqrt(found[v].square)};
done:
    host_free(found);
    return st;
}

spmv_status backward_error_find(spmv_context *ctx, const spmv_csr *a, spmv_type type, int columns, const void *b,
                                const void *x, const double *bounds, struct backward_error *errors)
{
    spmv_status st = SPMV_OK;
    const struct backward_job job = {.a = a, .type = type, .columns = columns, .b = b, .x = x};
    bool decided = a->rows == 0;
    for (int v = 0; v < columns; v++)
        errors[v] = (struct backward_error){0, -1, 0};
    if (bounds != NULL && !decided)
        TRY(find_quick(ctx, &job, bounds, errors, &decided));
    if (!decided)
        TRY(find_exact(ctx, job, errors));
done:
    return st;
}

/* ------------------------------------------------------------- ranks */

/* The smallest or largest of all ranks. */
static spmv_status largest_of_ranks(const struct plan_ranks *ranks, double *value)
{
    return ranks->largest(ranks->self, value);
}

/* The exact pass over own rows, on the host. x: with the elements of other ranks in front of the own ones. */
static spmv_status find_exact_own(const spmv_plan *plan, const void *b, const void *x, struct backward_error *error)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = plan->ctx;
    const struct plan_ranks *const ranks = plan->ranks;
    const int64_t size = (int64_t)spmv_type_size(plan->type), rows = plan->a.rows;
    spmv_csr a = plan->a;
    struct csr_copies copies = {0};
    struct backward_part *parts = NULL;
    void *b_copy = NULL, *x_copy = NULL;
    const void *host_b = NULL, *host_x = NULL;
    double largest = 0, scale = 1;
    int64_t tiles = 0;
    st = csr_to_host(ctx, &a, false, &a, &copies);
    if (st == SPMV_OK)
        st = context_read(ctx, b, rows * size, "a backward error", &b_copy, &host_b);
    if (st == SPMV_OK)
        st = context_read(ctx, x, (ranks->before + rows + ranks->after) * size, "a backward error", &x_copy, &host_x);
    struct backward_job job = {.a = &a, .type = plan->type, .columns = 1, .b = host_b};
    job.x = st == SPMV_OK ? (const char *)host_x + ranks->before * size : NULL;
    if (st == SPMV_OK && rows > 0)
        largest_host(ctx, &job, &largest);
    double failed = st;
    TRY(largest_of_ranks(ranks, &failed));
    if (failed != 0) {
        st = st != SPMV_OK ? st : context_fail(ctx, SPMV_ERROR_MEMORY, "a backward error: another rank has no memory");
        goto done;
    }
    TRY(largest_of_ranks(ranks, &largest));
    scale = error_scale(largest);
    largest *= scale;
    job.x = host_x;
    job.largest = &largest;
    job.scale = &scale;
    TRY(parts_host(ctx, &job, &parts, &tiles));
    for (int64_t c = 0; c < tiles; c++)
        if (parts[c].row >= 0 && (parts[c].omega > error->omega || error->row < 0)) {
            error->omega = parts[c].omega;
            error->row = parts[c].row;
        }
done:
    csr_free_host(&copies);
    host_free_all(parts, b_copy, x_copy);
    return st;
}

spmv_status backward_error_of_ranks(const spmv_plan *plan, const void *b, void *x, double bound,
                                    struct backward_error *error)
{
    spmv_status st = SPMV_OK;
    const struct plan_ranks *const ranks = plan->ranks;
    const struct backward_job job = {.a = &plan->a, .type = plan->type, .columns = 1, .b = b, .x = plan_x_of(plan, x)};
    bool decided = true;
    struct backward_error own = {0, -1, 0};
    TRY(ranks->fetch_start(ranks->self, x));
    TRY(ranks->fetch_finish(ranks->self, x));
    if (plan->a.rows > 0)
        TRY(find_quick(plan->ctx, &job, &bound, &own, &decided));
    double open = !decided;
    TRY(largest_of_ranks(ranks, &open));
    if (open != 0) {
        own = (struct backward_error){0, -1, 0};
        TRY(find_exact_own(plan, b, job.x, &own));
    }
    double omega = own.row >= 0 ? own.omega : -1;
    TRY(largest_of_ranks(ranks, &omega));
    double row = own.row >= 0 && own.omega == omega ? -(double)(ranks->first_row + own.row) : -INFINITY;
    TRY(largest_of_ranks(ranks, &row)); /* the first of them */
    *error = (struct backward_error){omega >= 0 ? omega : 0, isfinite(row) ? (int64_t)-row : -1, 0};
done:
    return st;
}
