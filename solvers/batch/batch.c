/* Batches of systems with one pattern: the front.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/choice.h"
#include "formats/matrix_internal.h"
#include "solvers/batch/batch_internal.h"

struct named {
    const char *name;
    int value;
};

static const struct named solvers[] = {{"cg", BATCH_CG}, {"bicgstab", BATCH_BICGSTAB}, {"gmres", BATCH_GMRES}, {0}};
static const struct named preconds[] = {{"none", BATCH_NONE}, {"jacobi", BATCH_JACOBI}, {0}};
static const struct named auto_solver = {"auto", BATCH_BICGSTAB}, auto_precond = {"auto", BATCH_JACOBI_OR_NONE};

const char *spmv_batch_solver_name(int index)
{
    return names_at(solvers, sizeof *solvers, index);
}

void spmv_batch_options_init(spmv_batch_options *options, size_t size)
{
    const spmv_batch_options defaults = {.size = sizeof defaults, .rtol = 1e-8};
    result_write(options, size, &defaults, sizeof defaults);
}

/* ------------------------------------------------------------- making and destroying */

static spmv_status find_name(spmv_context *ctx, const char *what, const struct named *rule, const struct named *table,
                             const char *name, int *value)
{
    struct names names = {.count = 0};
    const void *row = NULL;
    names_add_row(&names, "auto", rule);
    names_add_table(&names, table, sizeof *table);
    const spmv_status st = choice_take(ctx, SPMV_ERROR_METHOD, "spmv_batch_create", what, &names, name, &row);
    if (st == SPMV_OK)
        *value = ((const struct named *)row)->value;
    return st;
}

/* The options, in batch->job. */
static spmv_status take_options(spmv_batch *batch, const spmv_batch_options *o)
{
    enum { DEFAULT_RESTART = 50, MOST_RESTART = 200, LEAST_ITERATIONS = 100, MOST_EXPONENT = 1000 };
    spmv_status st = SPMV_OK;
    struct batch_job *const job = &batch->job;
    int method = 0, precond = 0;
    TRY(OPTIONS_CHECK(batch->ctx, "spmv_batch_create", {"rtol", o->rtol, 0, INFINITY}, {"atol", o->atol, 0, INFINITY},
                      {"max_iterations", (double)o->max_iterations, 0, INFINITY}, {"zero_start", o->zero_start, 0, 1},
                      {"restart", o->restart, 0, MOST_RESTART}));
    TRY(find_name(batch->ctx, "solver", &auto_solver, solvers, o->solver, &method));
    TRY(find_name(batch->ctx, "preconditioner", &auto_precond, preconds, o->precond, &precond));
    job->method = (enum batch_method)method;
    job->precond = (enum batch_precond)precond;
    job->rtol = o->rtol;
    job->atol = o->atol;
    job->zero_start = o->zero_start;
    job->max_iterations = o->max_iterations > 0 ? o->max_iterations : max_i64(10 * batch->rows, LEAST_ITERATIONS);
    job->restart = (int)min_i64(o->restart > 0 ? o->restart : DEFAULT_RESTART, max_i64(batch->rows, 1));
    const spmv_type part = type_part(batch->type);
    job->roundoff = real_limits_of(part).roundoff;
    job->exponent = part == SPMV_F64 ? MOST_EXPONENT : FLT_MAX_EXP - 8;
done:
    return st;
}

/* Memory of the batch, with a copy of an array of host memory if there is one. */
static spmv_status own(spmv_batch *batch, int64_t bytes, const void *from, void **memory)
{
    const spmv_status st = context_alloc(batch->ctx, bytes, memory);
    batch->bytes += st == SPMV_OK ? bytes : 0;
    return st != SPMV_OK || from == NULL || bytes == 0 ? st : spmv_upload(batch->ctx, from, *memory, bytes);
}

/* The pattern with 32-bit offsets. */
static spmv_status copy_pattern(spmv_batch *batch, const spmv_csr *host, int32_t **offsets)
{
    spmv_status st = SPMV_OK;
    TRY(host_alloc(batch->ctx, (batch->rows + 1) * (int64_t)sizeof **offsets, "row offsets", (void **)offsets));
    for (int64_t i = 0; i <= batch->rows; i++)
        (*offsets)[i] = (int32_t)offset_at(host->row_ptr, host->row_ptr_bits, i);
    TRY(own(batch, (batch->rows + 1) * (int64_t)sizeof **offsets, *offsets, (void **)&batch->job.row_ptr));
    TRY(own(batch, batch->nnz * (int64_t)sizeof *host->col, host->col, (void **)&batch->job.col));
done:
    return st;
}

/* The rows of a group by decreasing length, the first ones first: ranks. */
static void rank_rows(const int32_t *row_ptr, int64_t first, int count, int rank[BATCH_WARP])
{
    for (int i = 0; i < count; i++) {
        const int64_t at = first + i;
        rank[i] = 0;
        for (int k = 0; k < count; k++) {
            const int32_t mine = row_ptr[at + 1] - row_ptr[at];
            const int32_t other = row_ptr[first + k + 1] - row_ptr[first + k];
            rank[i] += other > mine || (other == mine && k < i);
        }
    }
}

/* The sum of the longest rows of the groups; INT32_MAX if it is larger. */
static int count_steps(int64_t rows, const int32_t *row_ptr)
{
    int64_t steps = 0;
    for (int64_t first = 0; first < rows; first += BATCH_WARP) {
        int32_t longest = 0;
        for (int64_t i = first; i < first + BATCH_WARP && i < rows; i++)
            longest = row_ptr[i + 1] - row_ptr[i] > longest ? row_ptr[i + 1] - row_ptr[i] : longest;
        steps += longest;
    }
    return (int)min_i64(steps, INT32_MAX);
}

/* The slots in host memory. */
static void fill_slots(struct batch_slots *s, int64_t rows, const int32_t *row_ptr, const int32_t *col)
{
    int32_t place = 0, steps = 0;
    for (int64_t first = 0; first < rows; first += BATCH_WARP) {
        const int count = (int)min_i64(BATCH_WARP, rows - first);
        int rank[BATCH_WARP];
        rank_rows(row_ptr, first, count, rank);
        s->step_first[first / BATCH_WARP] = steps;
        for (int32_t e = 0; place < row_ptr[first + count]; e++) {
            const int32_t start = place;
            s->step_start[steps++] = (uint16_t)start;
            for (int i = 0; i < count; i++)
                if (e < row_ptr[first + i + 1] - row_ptr[first + i]) {
                    s->slot[row_ptr[first + i] + e] = start + rank[i];
                    s->col[start + rank[i]] = (uint16_t)col[row_ptr[first + i] + e];
                    place++;
                }
        }
        for (int i = 0; i < count; i++)
            s->shape[first + i] = BATCH_WARP * (row_ptr[first + i + 1] - row_ptr[first + i]) + rank[i];
    }
}

static spmv_status make_slots(spmv_batch *batch, const int32_t *row_ptr, const int32_t *col)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = batch->ctx;
    struct batch_slots host = {0}, *const s = &batch->job.slots;
    const int64_t nnz = batch->nnz, rows = batch->rows, groups = ceil_divide(rows, BATCH_WARP),
                  number = sizeof *host.slot;
    const char *const what = "places of entries";
    const int64_t short_number = sizeof *host.col;
    TRY(host_alloc(ctx, nnz * number, what, (void **)&host.slot));
    TRY(host_alloc(ctx, nnz * short_number, what, (void **)&host.col));
    TRY(host_alloc(ctx, rows * number, what, (void **)&host.shape));
    TRY(host_alloc(ctx, groups * number, what, (void **)&host.step_first));
    TRY(host_alloc(ctx, s->steps * short_number, what, (void **)&host.step_start));
    fill_slots(&host, rows, row_ptr, col);
    TRY(own(batch, nnz * number, host.slot, (void **)&s->slot));
    TRY(own(batch, nnz * short_number, host.col, (void **)&s->col));
    TRY(own(batch, rows * number, host.shape, (void **)&s->shape));
    TRY(own(batch, groups * number, host.step_first, (void **)&s->step_first));
    TRY(own(batch, s->steps * short_number, host.step_start, (void **)&s->step_start));
done:
    host_free_all(host.slot, host.col, host.shape, host.step_first, host.step_start);
    return st;
}

/* Workspaces on a CPU: all arrays of a system, for each thread. */
static void lay_out(spmv_batch *batch)
{
    enum { LINE = 64 };
    struct batch_job *const job = &batch->job;
    const int64_t size = (int64_t)spmv_type_size(batch->type);
    const int64_t vector = ceil_divide(batch->rows * size, LINE) * LINE;
    int64_t at = vector;
    job->layout.input = 0;
    for (int v = 0; v < batch_vectors(job->method); v++, at += vector)
        job->layout.vector[v] = at;
    if (job->method == BATCH_GMRES) {
        job->layout.basis = at;
        job->layout.scalars = at + job->restart * vector;
        at = job->layout.scalars + ceil_divide(batch_scalars(job->restart) * size, LINE) * LINE;
    }
    job->layout.work_bytes = at;
    batch->groups = batch->ctx->threads;
}

/* What solves need, if the pattern is square. */
static spmv_status prepare(spmv_batch *batch, const int32_t *row_ptr, const int32_t *col)
{
    static const unsigned zero = 0;
    spmv_status st = SPMV_OK;
    struct batch_job *const job = &batch->job;
    void *work = NULL;
    job->rows = (int)batch->rows;
    job->nnz = (int)batch->nnz;
    job->lanes = batch_lanes(batch->rows);
    for (int64_t i = 0; i < batch->rows; i++)
        job->longest = row_ptr[i + 1] - row_ptr[i] > job->longest ? row_ptr[i + 1] - row_ptr[i] : job->longest;
    if (context_on_device(batch->ctx)) {
        job->slots.steps = count_steps(batch->rows, row_ptr);
        TRY(batch_prepare_cuda(batch));
        TRY(own(batch, sizeof zero, &zero, (void **)&job->next));
        if (job->layout.staged)
            TRY(make_slots(batch, row_ptr, col));
    } else {
        lay_out(batch);
    }
    TRY(own(batch, batch->groups * job->layout.work_bytes, NULL, &work));
    job->work = work;
done:
    return st;
}

/* spmv_batch_create on a context that this thread holds. */
static spmv_status create(spmv_context *ctx, const spmv_csr *pattern, const spmv_batch_options *options,
                          spmv_batch **made)
{
    const char *const call = "spmv_batch_create";
    spmv_status st = SPMV_OK;
    spmv_batch *batch = NULL;
    int32_t *offsets = NULL;
    struct csr_copies copies = {0};
    spmv_csr host;
    spmv_batch_options o;
    spmv_batch_options_init(&o, sizeof o);
    TRY(options_take(ctx, "batch", &o, sizeof o, options));
    TRY(csr_check_shape(ctx, call, pattern));
    host = *pattern;
    host.val = NULL;
    TRY(csr_to_host(ctx, &host, false, &host, &copies));
    TRY(csr_check(ctx, call, &host, CSR_ANY_ORDER));
    if (host.rows >= INT32_MAX || host.nnz >= INT32_MAX) {
        st = context_fail(ctx, SPMV_ERROR_LIMIT,
                          "%s: a pattern of %lld rows and %lld entries: fewer than 2^31 - 1 of "
                          "each are possible",
                          call, (long long)host.rows, (long long)host.nnz);
        goto done;
    }
    TRY(host_alloc(ctx, sizeof *batch, "a batch", (void **)&batch));
    *batch = (spmv_batch){.ctx = ctx,
                          .rows = host.rows,
                          .cols = host.cols,
                          .nnz = host.nnz,
                          .type = o.type != SPMV_TYPE_DEFAULT ? o.type
                                  : pattern->val != NULL      ? pattern->type
                                                              : SPMV_F64};
    if (!type_is_floating(batch->type)) {
        st = context_fail(ctx, SPMV_ERROR_TYPE, "%s: no batches of type %s, only of f64, f32, c128 and c64", call,
                          spmv_type_name(batch->type));
        goto done;
    }
    TRY(take_options(batch, &o));
    TRY(copy_pattern(batch, &host, &offsets));
    if (batch->rows == batch->cols && batch->rows > 0)
        TRY(prepare(batch, offsets, host.col));
    TRY(spmv_synchronize(ctx));
done:
    host_free(offsets);
    csr_free_host(&copies);
    if (st != SPMV_OK) {
        spmv_batch_destroy(batch);
        batch = NULL;
    }
    *made = batch;
    return st;
}

spmv_status spmv_batch_create(spmv_context *ctx, const spmv_csr *pattern, const spmv_batch_options *options,
                              spmv_batch **batch)
{
    bool outer = false;
    if (ctx == NULL || batch == NULL)
        return context_need(ctx, "spmv_batch_create", "batch", batch);
    *batch = NULL;
    const spmv_status st = context_hold(ctx, &outer);
    return st != SPMV_OK ? st : context_release(ctx, outer, create(ctx, pattern, options, batch));
}

void spmv_batch_destroy(spmv_batch *batch)
{
    if (batch == NULL)
        return;
    spmv_context *const ctx = batch->ctx;
    const struct batch_job *const job = &batch->job;
    context_free_all(ctx, job->row_ptr, job->col, job->slots.slot, job->slots.col, job->slots.shape,
                     job->slots.step_first, job->slots.step_start, job->next, job->work, batch->outcome);
    host_free(batch);
    context_freed(ctx);
}

int64_t spmv_batch_bytes(const spmv_batch *batch)
{
    return batch != NULL ? batch->bytes : 0;
}

/* ------------------------------------------------------------------------ products and solves */

/* An array of `count` times `each` elements must be there. */
static spmv_status need(const spmv_batch *batch, const char *call, const char *name, const void *array, int64_t count,
                        int64_t each)
{
    return array != NULL || count == 0 || each == 0 ? SPMV_OK : context_need(batch->ctx, call, name, NULL);
}

/* count systems with values, and the arrays that all have. */
static spmv_status check_call(const spmv_batch *batch, const char *call, const void *values, int64_t count)
{
    const spmv_status st = OPTIONS_CHECK(batch->ctx, call, {"count", (double)count, 0, INT32_MAX});
    if (st != SPMV_OK)
        return st;
    return need(batch, call, "values", values, count, batch->nnz);
}

static spmv_status apply(spmv_batch *batch, const void *values, const void *x, void *y, int64_t count)
{
    const char *const call = "spmv_batch_apply";
    spmv_status st = SPMV_OK;
    TRY(check_call(batch, call, values, count));
    TRY(need(batch, call, "x", x, count, batch->cols));
    TRY(need(batch, call, "y", y, count, batch->rows));
    if (count == 0 || batch->rows == 0)
        return SPMV_OK;
    if (context_on_device(batch->ctx))
        return batch_apply_cuda(batch, values, x, y, count);
    batch_apply_host(batch, values, x, y, count);
done:
    return st;
}

spmv_status spmv_batch_apply(spmv_batch *batch, const void *values, const void *x, void *y, int64_t count)
{
    bool outer = false;
    if (batch == NULL)
        return SPMV_ERROR_ARGUMENT;
    const spmv_status st = context_hold(batch->ctx, &outer);
    return st != SPMV_OK ? st : context_release(batch->ctx, outer, apply(batch, values, x, y, count));
}

/* Room for the outcomes of `count` systems. */
static spmv_status need_outcomes(spmv_batch *batch, int64_t count)
{
    const int64_t bytes = count * (int64_t)sizeof *batch->outcome;
    if (count <= batch->outcomes)
        return SPMV_OK;
    context_free(batch->ctx, batch->outcome);
    batch->bytes -= batch->outcomes * (int64_t)sizeof *batch->outcome;
    batch->outcome = NULL;
    batch->outcomes = 0;
    const spmv_status st = own(batch, bytes, NULL, (void **)&batch->outcome);
    batch->outcomes = st == SPMV_OK ? count : 0;
    return st;
}

/* The caller's results, and the status of the batch. */
static spmv_status judge(const spmv_batch *batch, const struct batch_outcome *outcome, int64_t count,
                         spmv_batch_result *results, size_t size)
{
    int64_t failed = 0, first = 0;
    for (int64_t k = count - 1; k >= 0; k--) {
        const struct batch_outcome *const o = &outcome[k];
        const spmv_batch_result full = {.size = sizeof full,
                                        .status = (spmv_status)o->status,
                                        .iterations = o->iterations,
                                        .restarts = o->restarts,
                                        .norm_b = o->norm_b,
                                        .tolerance = o->tolerance,
                                        .recurrence_residual = o->recurrence_residual,
                                        .true_residual = o->true_residual};
        if (results != NULL && size == sizeof full)
            results[k] = full; /* a quarter of the time */
        else if (results != NULL)
            result_write((char *)results + (size_t)k * size, size, &full, sizeof full);
        if (full.status != SPMV_OK) {
            failed++;
            first = k;
        }
    }
    if (failed == 0)
        return SPMV_OK;
    const spmv_status st = (spmv_status)outcome[first].status;
    return context_fail(
        batch->ctx, st,
        "spmv_batch_solve: %lld of %lld systems failed; first system %lld%s: %s, after %lld iterations, "
        "with residual %g for tolerance %g",
        (long long)failed, (long long)count, context_number(batch->ctx, first), context_counted(batch->ctx),
        spmv_status_text(st), (long long)outcome[first].iterations, outcome[first].true_residual,
        outcome[first].tolerance);
}

static spmv_status solve(spmv_batch *batch, const void *values, const void *b, void *x, int64_t count,
                         spmv_batch_result *results, size_t size)
{
    const char *const call = "spmv_batch_solve";
    spmv_context *const ctx = batch->ctx;
    spmv_status st = SPMV_OK;
    struct batch_job job = batch->job;
    TRY(check_call(batch, call, values, count));
    TRY(csr_check_square(ctx, call, batch->rows, batch->cols));
    TRY(need(batch, call, "b", b, count, batch->rows));
    TRY(need(batch, call, "x", x, count, batch->rows));
    if (count > 0 && batch->rows > 0 && b == x)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: b and x are the same array", call);
    if (batch->rows == 0) {
        static const spmv_batch_result empty = {.status = SPMV_OK};
        for (int64_t k = 0; k < count && results != NULL; k++)
            result_write((char *)results + (size_t)k * size, size, &empty, sizeof empty);
        return SPMV_OK;
    }
    if (count == 0)
        return SPMV_OK;
    job.val = values;
    job.b = b;
    job.x = x;
    job.count = count;
    if (context_on_device(ctx)) {
        TRY(spmv_synchronize(ctx)); /* fails while a graph is captured */
        TRY(batch_solve_cuda(batch, &job));
        TRY(spmv_synchronize(ctx));
    } else {
        TRY(need_outcomes(batch, count));
        job.outcome = batch->outcome;
        batch_solve_host(batch, &job);
    }
    st = judge(batch, job.outcome, count, results, size);
done:
    return st;
}

spmv_status spmv_batch_solve(spmv_batch *batch, const void *values, const void *b, void *x, int64_t count,
                             spmv_batch_result *results, size_t size)
{
    bool outer = false;
    if (batch == NULL)
        return SPMV_ERROR_ARGUMENT;
    const spmv_status st = context_hold(batch->ctx, &outer);
    return st != SPMV_OK ? st : context_release(batch->ctx, outer, solve(batch, values, b, x, count, results, size));
}
