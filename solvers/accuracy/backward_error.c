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

static int64_t tiles_of(const struct backward_job *job)
{
    return job->ranks != NULL ? job->ranks->chunks : ceil_divide(job->a->rows, TILE);
}

/* The first row of a tile; of the one behind the last, the number of rows. */
static int64_t begin_of(const struct backward_job *job, int64_t t)
{
    return job->ranks != NULL ? job->ranks->chunk[t] : min_i64(job->a->rows, t * TILE);
}

static spmv_status parts_host(spmv_context *ctx, const struct backward_job *job, struct backward_part **parts,
                              int64_t *tiles)
{
    const int64_t count = tiles_of(job);
    struct backward_part *of = NULL;
    const spmv_status st =
        host_alloc(ctx, max_i64(1, count) * job->columns * (int64_t)sizeof *of, "a backward error", (void **)&of);
    if (st != SPMV_OK)
        return st;
#pragma omp parallel for num_threads(host_team(ctx, job->a->nnz)) schedule(dynamic, 1)
    for (int64_t c = 0; c < count; c++) {
        const int64_t begin = begin_of(job, c), end = begin_of(job, c + 1);
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

/* The sums of each tile. */
static void quick_tiles(const spmv_context *ctx, const struct backward_job *job, struct error_quick *parts)
{
    const int columns = job->columns;
#pragma omp parallel for num_threads(host_team(ctx, job->a->nnz)) schedule(dynamic, 1)
    for (int64_t c = 0; c < tiles_of(job); c++) {
        for (int v = 0; v < columns; v++)
            parts[c * columns + v] = (struct error_quick){0, 0, begin_of(job, c)};
        quick[job->type](job, begin_of(job, c), begin_of(job, c + 1), parts + c * columns);
    }
}

static spmv_status quick_host(spmv_context *ctx, const struct backward_job *job, struct error_quick *found)
{
    const int64_t count = tiles_of(job);
    const int columns = job->columns;
    struct error_quick *parts = NULL;
    const spmv_status st =
        host_alloc(ctx, count * columns * (int64_t)sizeof *parts, "a backward error", (void **)&parts);
    if (st != SPMV_OK)
        return st;
    quick_tiles(ctx, job, parts);
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

/* Rows of which the largest omega is known, and the first of them in the whole matrix. */
static spmv_status keep_first(const struct plan_ranks *ranks, double omega, int64_t row, struct backward_error *error)
{
    spmv_status st = SPMV_OK;
    const double own = row >= 0 ? omega : -1;
    double most = own;
    TRY(largest_of_ranks(ranks, &most));
    double first = row >= 0 && own == most ? -(double)(ranks->first_row + row) : -INFINITY;
    TRY(largest_of_ranks(ranks, &first));
    error->omega = most >= 0 ? most : 0;
    error->row = isfinite(first) ? (int64_t)-first : -1;
done:
    return st;
}

/* The exact pass over own rows, on the host. job: of the arrays in the context's memory; x: with the elements of other
 * ranks in front of the own ones. */
static spmv_status find_exact_own(const spmv_plan *plan, struct backward_job job, struct backward_error *error)
{
    spmv_status st = SPMV_OK;
    enum { NORMS = 3 };
    spmv_context *const ctx = plan->ctx;
    const struct plan_ranks *const ranks = plan->ranks;
    const int64_t size = (int64_t)spmv_type_size(plan->type), rows = plan->a.rows, chunks = ranks->chunks;
    spmv_csr a = plan->a;
    struct csr_copies copies = {0};
    struct backward_part *parts = NULL, own = {.row = -1};
    struct error_norm norm = {0, 0, 0};
    void *b_copy = NULL, *x_copy = NULL;
    const void *host_b = NULL, *host_x = NULL;
    double largest = 0, scale = 1, *norms = NULL, all[NORMS];
    int64_t tiles = 0;
    st = csr_to_host(ctx, &a, false, &a, &copies);
    if (st == SPMV_OK)
        st = context_read(ctx, job.b, rows * size, "a backward error", &b_copy, &host_b);
    if (st == SPMV_OK)
        st = context_read(ctx, job.x, (ranks->before + rows + ranks->after) * size, "a backward error", &x_copy,
                          &host_x);
    if (st == SPMV_OK)
        st = host_alloc(ctx, max_i64(1, NORMS * chunks) * (int64_t)sizeof *norms, "a backward error", (void **)&norms);
    job.a = &a;
    job.b = host_b;
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
    for (int64_t c = 0; c < tiles; c++) {
        if (parts[c].row >= 0 && (parts[c].omega > own.omega || own.row < 0))
            own = parts[c];
        norms[c] = parts[c].norm.small;
        norms[chunks + c] = parts[c].norm.middle;
        norms[2 * chunks + c] = parts[c].norm.large;
    }
    TRY(ranks->sum(ranks->self, SPMV_F64, norms, chunks, NORMS, all));
    norm = (struct error_norm){all[0], all[1], all[2]};
    error->norm = error_norm_root(norm) / scale;
    TRY(keep_first(ranks, own.omega, own.row, error));
done:
    csr_free_host(&copies);
    host_free_all(parts, b_copy, x_copy, norms);
    return st;
}

/* The quick pass; *decided: as find_quick, by the sums of all ranks. */
static spmv_status find_quick_own(const spmv_plan *plan, const struct backward_job *job, double bound,
                                  struct backward_error *error, bool *decided)
{
    spmv_status st = SPMV_OK;
    const struct plan_ranks *const ranks = plan->ranks;
    const int64_t chunks = ranks->chunks;
    struct error_quick *parts = NULL, own = {0, 0, -1};
    double *squares = NULL, square = 0;
    TRY(host_alloc(plan->ctx, max_i64(1, chunks) * (int64_t)sizeof *parts, "a backward error", (void **)&parts));
    TRY(host_alloc(plan->ctx, max_i64(1, chunks) * (int64_t)sizeof *squares, "a backward error", (void **)&squares));
    memset(parts, 0, (size_t)chunks * sizeof *parts);
    if (plan->a.rows > 0 && context_on_device(plan->ctx))
        TRY(backward_quick_cuda(plan->ctx, job, parts));
    else if (plan->a.rows > 0)
        quick_tiles(plan->ctx, job, parts);
    for (int64_t c = 0; c < chunks; c++) {
        squares[c] = parts[c].square;
        if (plan->a.rows > 0 && (own.row < 0 || parts[c].omega > own.omega))
            own = parts[c];
    }
    TRY(ranks->sum(ranks->self, SPMV_F64, squares, chunks, 1, &square));
    TRY(keep_first(ranks, own.omega, own.row, error));
    error->norm = sqrt(square);
    *decided = error_quick_decides((struct error_quick){error->omega, square, 0}, bound);
done:
    host_free_all(parts, squares);
    return st;
}

spmv_status backward_error_of_ranks(const spmv_plan *plan, const void *b, void *x, double bound,
                                    struct backward_error *error)
{
    spmv_status st = SPMV_OK;
    const struct plan_ranks *const ranks = plan->ranks;
    const struct backward_job job = {
        .a = &plan->a, .ranks = ranks, .type = plan->type, .columns = 1, .b = b, .x = plan_x_of(plan, x)};
    bool decided = true;
    TRY(ranks->fetch_start(ranks->self, x, 1));
    TRY(ranks->fetch_finish(ranks->self, x, 1));
    TRY(find_quick_own(plan, &job, bound, error, &decided));
    if (!decided)
        TRY(find_exact_own(plan, job, error));
done:
    return st;
}
